"""URDF: elements that are read, warnings, errors."""

import copy
import os
import pickle
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.shapes import Box, Cylinder, Mesh, Sphere

LINK = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
A, B, C = (LINK.format(name) for name in "ABC")


def joint(name, parent, child, kind="revolute", inside='<limit lower="-1" upper="1" effort="5" velocity="2"/>'):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*parts, name="r"):
    return f'<robot name="{name}">\n' + "\n".join(parts) + "\n</robot>"


def specs(mechanism):
    return {spec.name: spec for spec in mechanism.description.joints}


def inertia(mechanism, body):
    return next(spec.inertia for spec in mechanism.description.bodies if spec.name == body)


# --- what is read -------------------------------------------------------------------------------------------------


def test_pendulum_from_text():
    p = sarrus.loads(
        robot(
            '<link name="support"/>',
            """<link name="bob"><inertial>
                 <origin xyz="0 0 -0.5" rpy="0 0 0"/><mass value="2"/><inertia ixx="0" iyy="0" izz="0"/>
               </inertial></link>""",
            joint("pin", "support", "bob", "continuous", '<origin xyz="0 0 3"/><axis xyz="0 1 0"/>'),
            name="pendulum",
        )
    )
    assert (p.name, p.nq, p.nv) == ("pendulum", 1, 1)
    assert [b.name for b in p.description.bodies] == ["support", "bob"]
    assert_allclose(p.gravity_forces([np.pi / 2]), [9.81])
    assert_allclose(p.pose([0.3], "bob")[:3, 3], [0, 0, 3])
    assert not p.warnings


def test_the_reader_is_there_without_an_import_of_its_own():
    """`sarrus.io` needs no import of its own."""
    code = "import sarrus; assert sarrus.io.urdf.read and sarrus.io.load is sarrus.load"
    ran = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ran.returncode == 0


def test_bytes_and_declared_encoding():
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>' + robot(LINK.format("Füße"))
    assert sarrus.loads(text.encode("latin-1")).description.bodies[0].name == "Füße"


def test_load_takes_any_path(tmp_path):
    path = tmp_path / "two.URDF"
    path.write_text(robot(A, B, joint("j", "A", "B")))
    assert sarrus.load(path).nq == sarrus.load(str(path)).nq == 1


def test_inertia_is_turned_and_placed():
    text = robot(
        """<link name="A"><inertial>
             <origin xyz="1 2 3" rpy="0.1 -0.2 0.3"/>
             <mass value="4"/>
             <inertia ixx="2" iyy="3" izz="4" ixy="0.1" ixz="-0.2" iyz="0.3"/>
           </inertial></link>"""
    )
    I = inertia(sarrus.loads(text), "A")
    R = sarrus.Transform.from_rpy(0.1, -0.2, 0.3, (0, 0, 0)).rotation
    assert I.mass == 4
    assert_allclose(I.com, [1, 2, 3])
    tensor = np.array([[2, 0.1, -0.2], [0.1, 3, 0.3], [-0.2, 0.3, 4]])
    assert_allclose(I.about_com, R @ tensor @ R.T, atol=1e-15)


def test_joint_kinds():
    kinds = {
        "revolute": sarrus.Revolute,
        "continuous": sarrus.Revolute,
        "prismatic": sarrus.Prismatic,
        "planar": sarrus.Planar,
        "floating": sarrus.Free,
        "ball": sarrus.Spherical,
        "fixed": sarrus.Fixed,
    }
    for kind, expected in kinds.items():
        spec = specs(sarrus.loads(robot(A, B, joint("j", "A", "B", kind, '<axis xyz="0 0 2"/>'))))["j"]
        assert type(spec.joint) is expected
        if kind in ("revolute", "prismatic"):
            assert_allclose(spec.joint.axis, [0, 0, 1])
        if kind == "planar":
            assert_allclose(spec.joint.normal, [0, 0, 1])


@pytest.mark.parametrize(
    ("axis", "place"),
    [
        ("1 0 0", [0, 2, -1]), ("0 1 0", [1, 0, -2]), ("0 0 1", [1, 2, 0]), ("0 0 -1", [1, -2, 0]), ("-1 0 0", [0, 2, 1]),
        ("0 -1 0", [1, 0, 2]), ("1 2 2", [2 / 3, 4 / 3, -5 / 3]), ("2 -1 -2", [1, 2, 0]),
    ],
)  # fmt: skip
def test_planar_joints_count_as_in_mujoco(axis, place, tmp_path):
    """x and y are those after the least rotation from z to the axis: positions at q = (1, 2, any angle) by MuJoCo 4.0, before and after saving."""
    text = robot(A, B, joint("j", "A", "B", "planar", f'<axis xyz="{axis}"/>'))
    plane = sarrus.loads(text)
    turned = sarrus.Rotation.from_axis_angle([float(x) for x in axis.split()], 0.7).matrix
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sarrus.ModelWarning)
        plane.save(tmp_path / "plane.urdf")
    for one in (plane, sarrus.load(tmp_path / "plane.urdf")):
        pose = one.pose([1.0, 2.0, 0.7], "B")
        assert_allclose(pose[:3, 3], place, atol=1e-12)
        assert_allclose(pose[:3, :3], turned, atol=1e-12)
        assert one.bodies == plane.bodies and one.joint("j").type == plane.joint("j").type


def test_axis_is_x_unless_given_and_free_to_be_zero_on_a_fixed_joint():
    assert_allclose(specs(sarrus.loads(robot(A, B, joint("j", "A", "B"))))["j"].joint.axis, [1, 0, 0])
    assert sarrus.loads(robot(A, B, joint("j", "A", "B", "fixed", '<axis xyz="0 0 0"/>'))).nv == 0


def test_limits_and_losses():
    inside = '<limit lower="-1" upper="2" effort="5" velocity="3"/><dynamics damping="0.1" friction="0.2"/>'
    j = specs(sarrus.loads(robot(A, B, joint("j", "A", "B", inside=inside))))["j"].joint
    assert_allclose(np.ravel(j.limits), [-1, 2])
    assert_allclose(
        [np.squeeze(x) for x in (j.velocity_limit, j.effort_limit, j.damping, j.friction)], [3, 5, 0.1, 0.2]
    )


def test_zeros_and_infinities_are_no_limits():
    """Exporters write zeros and infinities for missing limits."""
    plain = specs(sarrus.loads(robot(A, B, joint("j", "A", "B", "continuous", ""))))["j"].joint
    for limit in ('effort="0" velocity="0"', 'lower="0" upper="0" effort="0" velocity="0"'):
        r = sarrus.loads(robot(A, B, joint("j", "A", "B", inside=f"<limit {limit}/>")))
        assert specs(r)["j"].joint == plain
        assert r.warnings == ("<string>:4: empty ranges are read as unlimited: joints 'j'",)
    many = [joint(f"j{k}", "A", f"B{k}", inside='<limit lower="0" upper="0"/>') for k in range(8)]
    r = sarrus.loads(robot(A, *(f'<link name="B{k}"/>' for k in range(8)), *many))
    assert [text.partition("joints ")[2] for text in r.warnings if "empty" in text] == [
        "'j0', 'j1', 'j2', 'j3', 'j4', 'j5' (and 2 more)"
    ]
    r = sarrus.loads(
        robot(A, B, joint("j", "A", "B", inside='<limit lower="-inf" upper="inf" effort="inf" velocity="1"/>'))
    )
    assert not r.warnings


def test_joints_keep_the_order_of_the_file():
    """The order is not that of the tree; the root's own joint is first."""
    r = sarrus.loads(robot(A, B, C, joint("outer", "B", "C"), joint("inner", "A", "B")), floating_base=True)
    assert list(specs(r)) == ["root_joint", "outer", "inner"]
    assert (r.nq, r.nv) == (9, 8)
    assert r.joint("outer").q_slice == slice(7, 8)


def test_root_joint_gives_way():
    r = sarrus.loads(robot(A, B, joint("root_joint", "A", "B")))
    assert list(specs(r)) == ["root_joint_", "root_joint"]


def test_a_link_called_ground_is_a_body():
    text = robot('<link name="ground"/>', A, joint("j", "ground", "A"))
    for floating in (False, True):
        r = sarrus.loads(text, floating_base=floating)
        assert [b.name for b in r.description.bodies] == ["ground_link", "A"]
        assert "becomes body 'ground_link'" in r.warnings[0]


def test_joints_and_links_may_share_names():
    assert sarrus.loads(robot(A, B, joint("B", "A", "B"))).nq == 1


# --- what is warned about -----------------------------------------------------------------------------------------


def test_known_and_idle_parts_are_quiet():
    r = sarrus.loads(
        robot(
            '<material name="steel"><color rgba="1 1 1 1"/></material>',
            '<link name="A"><visual><geometry><mesh filename="a.stl"/></geometry></visual></link>',
            B,
            joint("j", "A", "B", "continuous", "<calibration/><safety_controller/>"),
            '<transmission name="t"><anything/></transmission>',
            '<gazebo reference="A"><anything/></gazebo>',
            "<ros2_control/>",
        ).replace("<robot ", '<robot xmlns:xacro="http://wiki.ros.org/xacro" ')
    )
    assert not r.warnings


def test_collisions_that_nobody_simulates_are_told_in_one_line():
    links = [f'<link name="{name}"><collision/><collision/></link>' for name in "AB"]
    r = sarrus.loads(robot(*links, joint("j", "A", "B")))
    told = "<string>:2: shapes of <collision> may touch, which only simulate(method='contact') computes"
    assert r.warnings[0] == f"{told} (and 3 more)"


@pytest.mark.parametrize(
    ("parts", "warning"),
    [
        (('<link name="A"><contact/></link>',), "<string>:2: <contact> in <link> is not read"),
        (
            ("<closed_chain/>", A, "<closed_chain/>"),
            "<string>:2: <closed_chain> in <robot> is not read (and 1 more)",
        ),
        (('<link name="A" type="hard"/>',), "<string>:2: attribute 'type' of <link> is not read"),
        (
            (A, B, joint("j", "A", "B", "continuous", '<dynamics K="1"/>')),
            "<string>:4: attribute 'K' of <dynamics> is not read",
        ),
        (
            (A, B, joint("j", "A", "B", inside="")),
            "<string>:4: <joint name='j'> has no <limit>: read as unlimited",
        ),
        (
            (A, B, joint("j", "A", "B", "continuous", '<mimic joint="k"/>')),
            "<string>:4: <joint name='j'> moves freely, its <mimic> (j = 1 k) is not read: there is no joint 'k'",
        ),
        (
            (A, B, C, joint("j", "A", "B", "planar", ""), joint("k", "B", "C", "continuous", '<mimic joint="j"/>')),
            "<string>:6: <joint name='k'> moves freely, its <mimic> (k = 1 j) is not read: joint 'j' has no single axis",
        ),
        (
            (A, B, joint("j", "A", "B", "continuous", '<limit velocity="-1" effort="1"/>')),
            "<string>:4: <joint name='j'> has a negative limit of velocity: read as unlimited",
        ),
        (
            (A, B, C, *(joint(*ends, "continuous", '<limit lower="-1" upper="1"/>') for ends in ("jAB", "kBC"))),
            "<string>:5: lower and upper limit of a continuous joint are not read (and 1 more)",
        ),
        (
            (A.replace('izz="1"', 'izz="3"'),),
            "<string>:2: <link name='A'>: no body of 1 kg has principal moments of inertia 1, 1, 3 kg m²; the values are kept",
        ),
        (
            (A.replace('ixx="1"', 'ixx="-1"'),),
            "<string>:2: <link name='A'>: no body of 1 kg has principal moments of inertia -1, 1, 1 kg m²; the values are kept",
        ),
        (
            (A.replace('mass value="1"', 'mass value="0"'),),
            "<string>:2: <link name='A'>: no body of 0 kg has principal moments of inertia 1, 1, 1 kg m²; the values are kept",
        ),
    ],
)
def test_warnings(parts, warning):
    assert warning in sarrus.loads(robot(*parts)).warnings


def test_impossible_inertia_keeps_its_values():
    I = inertia(sarrus.loads(robot(A.replace('izz="1"', 'izz="3"'))), "A")
    assert_allclose(I.about_com, np.diag([1, 1, 3]))


@pytest.mark.parametrize("moments", [(1, 1, 2), (1, 1, 2.000001), (0, 0, 0), (1e-20, 0, 3e-20)])
def test_possible_inertia_to_the_decimals_of_a_file(moments):
    """Plates and points are bodies; their moments have six digits, or are rounding errors of zero."""
    text = '<link name="A"><inertial><mass value="1"/><inertia ixx="{}" iyy="{}" izz="{}"/></inertial></link>'
    assert not sarrus.loads(robot(text.format(*moments))).warnings


def test_two_parents_close_a_loop():
    ring = A, B, C, joint("j", "A", "B"), joint("k", "A", "C")
    r = sarrus.loads(robot(*ring, joint("l", "B", "C", "continuous", "")))
    assert (r.joints, r.loop_joints) == (("root_joint", "j", "k"), ("l",))
    assert not r.warnings


# --- what is refused ----------------------------------------------------------------------------------------------

ENTITY_BOMB = '<!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>' + robot("&b;")
EXTERNAL_ENTITY = '<!DOCTYPE robot [<!ENTITY secret SYSTEM "file:///etc/hostname">]>' + robot("&secret;")
BAD_MODELS = {
    "empty": ("", "<string>:1: not well-formed XML: no element found"),
    "truncated": (robot(A, B)[:-30], "<string>:3: not well-formed XML: "),
    "crossed tags": ("<robot><link></robot></link>", "<string>:1: not well-formed XML: mismatched tag"),
    "twice an attribute": ('<robot name="a" name="b"/>', "not well-formed XML: duplicate attribute"),
    "binary": (b"\x7fELF\x00\x01", "<string>:1: not well-formed XML: "),
    "bad UTF-8": (b'<robot name="\xff\xfe"/>', "not well-formed XML: "),
    "unheard-of encoding": (
        b'<?xml version="1.0" encoding="klingon"?><robot/>',
        "<string>: cannot decode: unknown encoding",
    ),
    "encoding that expat cannot read": (
        b'<?xml version="1.0" encoding="shift_jis"?><robot/>',
        "<string>: cannot decode: ",
    ),
    "lone surrogate": (robot(LINK.format("\ud800")), "<string>: cannot decode: "),
    "entity bomb": (ENTITY_BOMB, "<string>:1: a DOCTYPE, or an entity, is not allowed in a model file"),
    "external entity": (EXTERNAL_ENTITY, "a DOCTYPE, or an entity, is not allowed"),
    "undeclared entity": (robot("&lol;"), "<string>:2: not well-formed XML: undefined entity"),
    "nested too deep": ("<robot>" + "<a>" * 10**5, "<string>:1: <a> is nested deeper than 100 elements"),
    "xacro in it": (
        robot(A, "<xacro:macro/>"),
        "<string>:3: <xacro:macro> is a xacro macro; expand the file first",
    ),
    "another format": ("<lidar/>", "<string>:1: <lidar> is not the root of a URDF"),
    "no links": (robot(), "<string>:1: <robot name='r'> has no links"),
    "robot that clears the screen": (
        robot(A).replace('name="r"', 'name="&#x9b;2J"'),
        r"<string>:1: <robot name='\\x9b2J'>: a mechanism needs a name that can be printed; '\\x9b2J' contains U\+009B",
    ),
    "link on two lines": (
        robot(A.replace('name="A"', 'name="A&#10;B"')),
        r"<string>:2: <link name='A\\nB'>: a body needs a name that can be printed; 'A\\nB' contains U\+000A",
    ),
    "joint written backwards": (
        robot(A, B, joint("\u202ej", "A", "B")),
        r"<string>:4: <joint name='\\u202ej'>: a joint needs a name that can be printed; '\\u202ej' contains U\+202E",
    ),
    "link without name": (robot("<link/>"), "<string>:2: <link> has no name"),
    "link with an empty name": (robot('<link name=""/>'), "<string>:2: <link name=''> has no name"),
    "joint without name": (robot(A, B, joint("", "A", "B")), "<string>:4: <joint name=''> has no name"),
    "two links of one name": (
        robot(A, B, A),
        "<string>:4: <link name='A'> has the same name as the element in line 2",
    ),
    "two joints of one name": (
        robot(A, B, C, joint("j", "A", "B"), joint("j", "B", "C")),
        "<string>:6: <joint name='j'> has the same name as the element in line 5",
    ),
    "no parent": (
        robot(A, B, '<joint name="j" type="fixed"><child link="B"/></joint>'),
        "<joint name='j'> has no <parent>",
    ),
    "no child": (
        robot(A, B, '<joint name="j" type="fixed"><parent link="A"/></joint>'),
        "<joint name='j'> has no <child>",
    ),
    "parent without link": (
        robot(A, B, joint("j", "A", "B").replace('<parent link="A"/>', "<parent/>")),
        "<string>:4: <parent> of <joint name='j'> has no link",
    ),
    "unknown parent": (
        robot(A, B, joint("j", "X", "B")),
        "<string>:4: <parent> of <joint name='j'> names an unknown link 'X'",
    ),
    "unknown child": (
        robot(A, B, joint("j", "A", "X")),
        "<string>:4: <child> of <joint name='j'> names an unknown link 'X'",
    ),
    "link joined to itself": (robot(A, B, joint("j", "B", "B")), "<joint name='j'> connects link 'B' to itself"),
    "ring without root": (
        robot(A, B, joint("j", "A", "B"), joint("k", "B", "A")),
        "<string>:1: <robot name='r'> has no root: every link is the child of a joint",
    ),
    "ring adrift": (
        robot(A, B, C, joint("j", "B", "C"), joint("k", "C", "B")),
        "<string>:3: <link name='B'> is not connected to the root 'A'; all links without a connection: 'B', 'C'",
    ),
    "no type": (
        robot(A, B, joint("j", "A", "B").replace('type="revolute"', "")),
        "<joint name='j'> has no type",
    ),
    "unknown type": (
        robot(A, B, joint("j", "A", "B", "hinge")),
        "<joint name='j'> has an unknown type 'hinge'; expected one of",
    ),
    "axis zero": (
        robot(A, B, joint("j", "A", "B", inside='<axis xyz="0 0 0"/>')),
        "<string>:4: <axis> of <joint name='j'> is zero; expected the direction of a moving joint",
    ),
    "axis of two numbers": (
        robot(A, B, joint("j", "A", "B", inside='<axis xyz="0 1"/>')),
        "<axis> of <joint name='j'> expects 3 numbers in xyz, got '0 1'",
    ),
    "origin in words": (
        robot(A, B, joint("j", "A", "B", inside='<origin xyz="here and there"/>')),
        "<origin> of <joint name='j'> expects 3 numbers in xyz, got 'here and there'",
    ),
    "decimal comma": (
        robot(A.replace('mass value="1"', 'mass value="1,5"')),
        "<string>:2: <mass> .* a number in value, got '1,5'",
    ),
    "Python's own digits": (
        robot(A.replace('mass value="1"', 'mass value="1_0"')),
        "a number in value, got '1_0'",
    ),
    "mass without value": (
        robot(A.replace('mass value="1"', "mass")),
        "<mass> of <link name='A'> has no value",
    ),
    "no mass": (robot(A.replace('<mass value="1"/>', "")), "<inertial> of <link name='A'> has no <mass>"),
    "no tensor": (
        robot('<link name="A"><inertial><mass value="1"/></inertial></link>'),
        "<inertial> of <link name='A'> has no <inertia>",
    ),
    "no ixx": (robot(A.replace('ixx="1"', "")), "<inertia> of <link name='A'> has no ixx"),
    "two masses": (
        robot(A.replace("<mass", '<mass value="2"/><mass')),
        "<mass> .*appears twice; first in line 2",
    ),
    "NaN": (
        robot(A.replace('ixx="1"', 'ixx="nan"')),
        "<inertia> .*has a number in ixx that is not finite: 'nan'",
    ),
    "infinite mass": (
        robot(A.replace('mass value="1"', 'mass value="1e999"')),
        "a number in value that is not finite",
    ),
    "infinite origin": (
        robot(A, B, joint("j", "A", "B", inside='<origin xyz="0 0 inf"/>')),
        "a number in xyz that is not finite: '0 0 inf'",
    ),
    "NaN as limit": (
        robot(A, B, joint("j", "A", "B", inside='<limit lower="nan" upper="1"/>')),
        "<limit> .*not finite: 'nan'",
    ),
    "negative mass": (
        robot(A.replace('mass value="1"', 'mass value="-1"')),
        "<string>:2: <mass> .*is negative: -1 kg",
    ),
    "limits crossed": (
        robot(A, B, joint("j", "A", "B", inside='<limit lower="1" upper="-1"/>')),
        "<limit> of <joint name='j'> has its lower limit above the upper: 1 > -1",
    ),
    "negative damping": (
        robot(A, B, joint("j", "A", "B", inside='<dynamics damping="-1"/>')),
        "<dynamics> of <joint name='j'> has a negative damping: -1",
    ),
    "mimic of nobody": (
        robot(A, B, joint("j", "A", "B", inside="<mimic/>")),
        "<mimic> of <joint name='j'> has no joint",
    ),
    "mimic of itself": (
        robot(A, B, joint("j", "A", "B", inside='<mimic joint="j" multiplier="2"/>')),
        "<string>:4: <mimic> of <joint name='j'> names the joint itself",
    ),
    "misspelt parent": (
        robot(LINK.format("foot"), B, joint("j", "fot", "B")),
        "unknown link 'fot'; did you mean 'foot'?",
    ),
    "inertia beyond numbers": (
        robot(
            A.replace('xx="1" iyy="1" izz="1"', 'xx="1.7e308" iyy="1.7e308" izz="1.7e308" ixy="1.7e308"').replace(
                "<mass", '<origin rpy="1 1 1"/><mass'
            )
        ),
        "<string>:2: <link name='A'>: about_com = ",
    ),
    "ring of joints that follow": (
        robot(
            A,
            B,
            C,
            *(
                joint(*ends, "continuous", f'<mimic joint="{leader}"/>')
                for ends, leader in (("jAB", "k"), ("kAC", "l"), ("lBC", "j"))
            ),
        ),
        "<string>: joint 'l' cannot be in the tree",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_bad_models(text, message):
    with pytest.raises(sarrus.ModelError, match=message.replace("(", r"\(")):
        sarrus.loads(text)


TRIED = [
    "",
    " ",
    "nan",
    "inf",
    "1e999",
    "-1e308",
    "1e-320",
    "-1",
    "0",
    "0 0 0",
    "1 2",
    "1_0",
    "0x1",
    "１",
    "\u0663",
    "\u202e",
    "\U0001f600",
]
TRIED += [
    "A",
    "j",
    "ground",
    "root_joint",
    "k mimics j",
    "fixed",
    "floating",
    "ball",
    "planar",
    "none",
    "x" * 5000,
    "9" * 400,
]


def damaged(rng, root):
    """Return documents with a few changes: another or missing attribute, an element missing, doubled, nested in another, or renamed."""
    for _ in range(rng.integers(1, 5)):
        elements = list(root.iter())
        one, other = (elements[k] for k in rng.integers(len(elements), size=2))
        attribute = (*one.attrib, "name", "type", "link", "joint", "xyz", "value")[rng.integers(len(one.attrib) + 6)]
        change = rng.integers(5)
        if change == 0:
            one.set(attribute, TRIED[rng.integers(len(TRIED))])
        elif change == 1:
            one.attrib.pop(attribute, None)
        elif change == 2:
            one.tag = other.tag
        elif change == 3:
            for owner in elements:
                if one in owner:
                    owner.remove(one)
        elif len(elements) < 200:
            other.append(copy.deepcopy(one))
    return ElementTree.tostring(root, encoding="unicode")


@pytest.mark.filterwarnings("ignore::sarrus.ModelWarning")
def test_whatever_is_wrong_with_a_file_the_error_says_where():
    text = robot(
        '<material name="blue"><color rgba="0 0 1 1"/></material>', visual(BOX, '<material name="blue"/>'), B, C,
        joint("j", "A", "B", inside='<origin xyz="0 0 1" rpy="0 1 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/>'),
        joint("k", "B", "C", "prismatic", '<mimic joint="j" multiplier="2"/><dynamics damping="1" friction="2"/>'),
    )  # fmt: skip
    rng, errors = np.random.default_rng(1), []
    for _ in range(500):
        try:
            sarrus.loads(damaged(rng, ElementTree.fromstring(text)))
        except sarrus.ModelError as error:
            errors.append(str(error))
    assert 100 < len(errors) < 400
    assert [error for error in errors if not error.startswith("<string>:")] == []


def test_a_long_attribute_is_not_read_whole(monkeypatch):
    read = []
    monkeypatch.setattr(sarrus.io.document, "float", lambda text: read.append(text) or float(text), raising=False)
    for numbers in "0 " * 10**6, "0" * 10**6:
        with pytest.raises(
            sarrus.ModelError, match=r"<string>:4: <axis> of <joint name='j'> expects 3 numbers in xyz, got '0"
        ):
            sarrus.loads(robot(A, B, joint("j", "A", "B", "continuous", f'<axis xyz="{numbers}"/>')))
    assert len(read) < 20


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda p: sarrus.load("a\0.urdf"), sarrus.ModelError, "null character"),
        (
            lambda p: sarrus.load(p, package_dirs=None),
            sarrus.ModelError,
            "package_dirs: expected a list of folders; got None",
        ),
        (lambda p: sarrus.load(p, package_dirs=[None]), sarrus.ModelError, r"package_dirs: .*; got \[None\]"),
        (
            lambda p: sarrus.load(p, floating_base="no"),
            sarrus.ModelError,
            "floating_base: expected True or False; got 'no'",
        ),
        (
            lambda p: sarrus.io.urdf.read(p.read_text(), floating_base=np.ones(2)),
            sarrus.ModelError,
            "floating_base: expected True or False; got array",
        ),
        (lambda p: sarrus.loads(None), TypeError, "text: expected the document, as str or bytes; got None"),
        (sarrus.loads, TypeError, "sarrus.load reads files"),
    ],
)
def test_bad_arguments(tmp_path, attempt, error, message):
    (tmp_path / "arm.urdf").write_text(robot(A))
    with pytest.raises(error, match=message):
        attempt(tmp_path / "arm.urdf")


def test_every_truncation_and_every_missing_line_is_an_answer():
    """A damaged file results in a mechanism or a ModelError, nothing else."""
    text = robot(
        A, B, C, joint("j", "A", "B", inside='<origin xyz="0 0 1"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/>'),
        joint("k", "B", "C", "prismatic", '<mimic joint="j"/><dynamics damping="1"/>'),
    )  # fmt: skip
    lines = text.splitlines()
    all_damaged = [text[:i] for i in range(0, len(text), 3)]
    all_damaged += ["\n".join(lines[:i] + lines[i + 1 :]) for i in range(len(lines))]
    all_damaged += [text[:i] + "0" + text[i + 1 :] for i in range(0, len(text), 3)]
    for each in all_damaged:
        with suppress(sarrus.ModelError):
            sarrus.loads(each)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arm.xyz", "cannot read .xyz; expected one of .urdf"),
        ("arm", "cannot read a file without suffix; expected one of .urdf"),
    ],
)
def test_other_formats(tmp_path, name, message):
    with pytest.raises(sarrus.ModelError, match=message):
        sarrus.load(tmp_path / name)


@pytest.mark.parametrize("text", [robot(), '\n {"name": "arm"}', "#usda 1.0"])
def test_contents_instead_of_a_name(text):
    with pytest.raises(
        sarrus.ModelError, match=r"must be the name of a file; got its contents; sarrus.loads reads"
    ) as raised:
        sarrus.load(text)
    assert len(str(raised.value)) < 120  # a model of a hundred links is not printed


def test_errors_name_the_file(tmp_path):
    (tmp_path / "arm.urdf").write_text(robot())
    with pytest.raises(sarrus.ModelError, match=r"^arm\.urdf:1: "):
        sarrus.load(tmp_path / "arm.urdf")
    with pytest.raises(FileNotFoundError):
        sarrus.load(tmp_path / "leg.urdf")


# --- what links look like -----------------------------------------------------------------------------------------


def visual(geometry, inside="", link="A"):
    return LINK.format(link).replace("</link>", f"<visual><geometry>{geometry}</geometry>{inside}</visual></link>")


BOX = '<box size="1 2 3"/>'


def test_visuals_are_shapes_places_and_colours(tmp_path):
    """A link may have several visuals; a material's name may be defined by the robot, or by another visual."""
    text = robot(
        visual(BOX, '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><material name="steel"/>'),
        visual(
            '<cylinder radius="0.1" length="2"/>', '<material name="rust"><color rgba="0.5 0.2 0 1"/></material>', "B"
        ),
        visual('<sphere radius="0.3"/>', '<material name="rust"/>', "C").replace(
            "</link>",
            '<visual><geometry><mesh filename="package://r/c.stl" scale="1 -1 0.001"/></geometry></visual></link>',
        ),
        joint("j", "A", "B"),
        joint("k", "B", "C"),
        '<material name="steel"><color rgba="0.7 0.8 0.9 0.5"/></material>',
    )
    (tmp_path / "r.urdf").write_text(text)
    r = sarrus.load(tmp_path / "r.urdf", package_dirs=[tmp_path / "packages"])
    looks = r.description.visuals
    assert [(v.body, v.color) for v in looks] == [
        ("A", (0.7, 0.8, 0.9, 0.5)), ("B", (0.5, 0.2, 0.0, 1.0)), ("C", (0.5, 0.2, 0.0, 1.0)), ("C", None)
    ]  # fmt: skip
    mesh = Mesh("package://r/c.stl", (1.0, -1.0, 0.001), str(tmp_path), (str(tmp_path / "packages"),))
    assert [v.shape for v in looks] == [Box((1.0, 2.0, 3.0)), Cylinder(0.1, 2.0), Sphere(0.3), mesh]
    assert looks[0].placement == sarrus.Transform.from_rpy(0.1, 0.2, 0.3, (1, 2, 3))
    assert looks[1].placement == sarrus.Transform()
    assert not r.warnings
    assert pickle.loads(pickle.dumps(r)).description.visuals == looks


def test_looks_are_no_part_of_what_a_mechanism_is():
    """Its meshes are elsewhere on another machine; a run of it can be shown there."""
    clad, bare = sarrus.loads(robot(visual(BOX))), sarrus.loads(robot(A))
    assert clad == bare and hash(clad) == hash(bare)


MESH = '<mesh filename="a.stl" scale="{}"/>'


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        (visual(""), "<visual> of <link name='A'> has 0 shapes in <geometry>; expected one"),
        (visual(BOX + BOX), "<visual> of <link name='A'> has 2 shapes in <geometry>; expected one"),
        (
            visual("<capsule/>"),
            "<capsule> of <link name='A'> is an unknown shape; expected one of box, cylinder, sphere, mesh",
        ),
        (visual('<box size="1 2"/>'), "<box> of <link name='A'> expects 3 numbers in size, got '1 2'"),
        (visual('<box size="1 0 1"/>'), "size of a box must be positive"),
        (visual('<sphere radius="-1"/>'), "radius of a sphere must be positive"),
        (visual('<cylinder radius="1"/>'), "<cylinder> of <link name='A'> has no length"),
        (visual("<mesh/>"), "<mesh> of <link name='A'> has no filename"),
        (visual(MESH.format("1 0 1")), "scale of a mesh must not be zero"),
        (visual(MESH.format("1 nan 1")), "has a number in scale that is not finite"),
        (visual(BOX, '<origin rpy="north"/>'), "<origin> of <link name='A'> expects 3 numbers in rpy, got 'north'"),
    ],
)
def test_a_faulty_visual_is_left_out_and_a_warning(link, fault):
    r = sarrus.loads(robot(link))
    assert r.description.visuals == () and r == sarrus.loads(robot(A))
    (warning,) = r.warnings
    assert warning.startswith("<string>:2: ") and fault in warning and warning.endswith("; it is not shown")


@pytest.mark.parametrize("rgba", ["255 0 0 1", "1 0 0", "red"])
def test_a_faulty_colour_is_left_out_and_a_warning(rgba):
    r = sarrus.loads(robot(visual(BOX, f'<material name="red"><color rgba="{rgba}"/></material>')))
    assert r.description.visuals[0].color is None
    (warning,) = r.warnings
    assert warning.startswith("<string>:2: <color> of <material name='red'> expects ") and repr(rgba) in warning


def test_loading_needs_no_mesh():
    """A robot may have hundreds of meshes, perhaps on a network drive: the modules that read them are not even imported."""
    import subprocess
    import sys

    code = (
        "import sys, sarrus; r = sarrus.loads(sys.argv[1]); assert len(r.description.visuals) == 1; "
        "sys.exit(bool({'trimesh', 'viser', 'sarrus.viewer.shapes'} & set(sys.modules)))"
    )
    text = robot(visual('<mesh filename="package://nowhere/a.stl"/>'))
    assert subprocess.run([sys.executable, "-c", code, text], check=False).returncode == 0


def test_package_dirs_are_a_list(tmp_path):
    (tmp_path / "r.urdf").write_text(robot(A))
    with pytest.raises(sarrus.ModelError, match="expected a list of folders"):
        sarrus.load(tmp_path / "r.urdf", package_dirs=str(tmp_path))


# --- the robots that people have ----------------------------------------------------------------------------------


def robots():
    """Return the URDF files of the PyPI package example-robot-data, if it is installed."""
    prefix = find_spec("cmeel")
    if prefix is None or prefix.origin is None:
        return []
    folder = Path(prefix.origin).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
    empty = ("ur3.urdf",)  # a macro file, expanded to nothing
    return sorted(path for path in folder.glob("**/*.urdf") if path.name not in empty)


@pytest.mark.skipif(not robots(), reason="example-robot-data is not installed")
@pytest.mark.parametrize("floating", [False, True])
def test_robots_are_what_pinocchio_reads(floating):
    """Mass matrix and gravity forces of every robot at a random configuration."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(2)
    for path in robots():
        ours = sarrus.load(path, floating_base=floating)
        theirs = (
            pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
            if floating
            else pin.buildModelFromUrdf(str(path))
        )
        assert ours.nv == theirs.nv, path
        q, order, q_theirs = ours.neutral(), np.zeros(ours.nv, int), pin.neutral(theirs)
        for name in list(theirs.names)[1:]:
            model = theirs.joints[theirs.getJointId(name)]
            here, there = ours.joint(name), slice(model.idx_v, model.idx_v + model.nv)
            order[there] = np.arange(ours.nv)[here.v_slice]
            if model.nv == 1:
                angle = rng.uniform(-1, 1)
                q[here.q_slice] = angle
                q_theirs[model.idx_q : model.idx_q + model.nq] = (
                    angle if model.nq == 1 else (np.cos(angle), np.sin(angle))
                )
        if floating:  # Pinocchio: [linear; angular]
            order[:6] = order[[3, 4, 5, 0, 1, 2]]
        data = theirs.createData()
        M = pin.crba(theirs, data, q_theirs)
        M = np.triu(M) + np.triu(M, 1).T
        assert_allclose(
            ours.mass_matrix(q)[np.ix_(order, order)],
            M,
            rtol=0,
            atol=1e-10 * np.abs(M).max(initial=1),
            err_msg=path.name,
        )
        g = pin.computeGeneralizedGravity(theirs, data, q_theirs)
        assert_allclose(
            ours.gravity_forces(q)[order], g, rtol=0, atol=1e-10 * np.abs(g).max(initial=1), err_msg=path.name
        )


# --- joints that follow others ------------------------------------------------------------------------------------

FOLLOWER = joint("k", "B", "C", "continuous", '<mimic joint="j" multiplier="-2" offset="0.5"/>')


def test_mimic_is_a_coupler():
    """k = -2 j + 0.5, and the joint remains a joint."""
    r = sarrus.loads(robot(A, B, C, FOLLOWER, joint("j", "A", "B")))
    assert not r.warnings
    assert r.description.constraints == (
        sarrus.description.CouplerSpec("k mimics j", (("k", 0, (1.0,)), ("j", 0, (2.0,))), 0.5),
    )
    assert (r.joints, r.constraints, r.nq) == (("root_joint", "k", "j"), ("k mimics j",), 2)
    assert r.constraint_residual([-0.5, 0.5]) == 0.0
    assert_allclose(r.constraint_residual([0.0, 0.25]), 0.0 + 2 * 0.25 - 0.5)


def test_mimic_leaves_the_tree_as_it_is():
    free = sarrus.loads(robot(A, B, C, joint("j", "A", "B"), joint("k", "B", "C", "continuous", "")))
    tied = sarrus.loads(robot(A, B, C, joint("j", "A", "B"), FOLLOWER))
    state = np.random.default_rng(4).normal(size=(3, free.nv))
    assert np.array_equal(tied.inverse_dynamics(*state), free.inverse_dynamics(*state))


def test_both_joints_of_a_mimic_stay_in_the_tree():
    """If a loop contains them, another joint is the loop joint."""
    ring = [A, B, C, joint("j", "A", "B"), *(joint(*ends, "continuous", "") for ends in ("kAC", "lBC"))]
    assert sarrus.loads(robot(*ring)).loop_joints == ("l",)
    r = sarrus.loads(robot(*ring[:-1], joint("l", "B", "C", "continuous", '<mimic joint="j"/>')))
    assert (r.loop_joints, r.constraints) == (("k",), ("k", "l mimics j"))


def test_a_mimic_s_name_gives_way():
    r = sarrus.loads(robot(A, B, C, joint("j", "A", "B"), FOLLOWER, joint("k mimics j", "A", "C", "continuous", "")))
    assert "k mimics j_" in r.constraints


def test_two_mimics_of_one_name_give_way():
    """Joint "a mimics b" follows c, and joint a follows "b mimics c"."""
    names = {"a": "AB", "c": "AC", "b mimics c": "BD", "a mimics b": "BE"}
    follows = {"a mimics b": "c", "a": "b mimics c"}
    parts = [
        joint(name, *ends, "continuous", f'<mimic joint="{follows[name]}"/>' if name in follows else "")
        for name, ends in names.items()
    ]
    r = sarrus.loads(robot(*(LINK.format(name) for name in "ABCDE"), *parts))
    assert r.constraints == ("a mimics b mimics c", "a mimics b mimics c_")


PLUGIN = """<gazebo><plugin name="{}" filename="libroboticsgroup_gazebo_mimic_joint_plugin.so">
    <joint>{}</joint><mimicJoint>{}</mimicJoint><multiplier>-2</multiplier><offset>0.5</offset></plugin></gazebo>"""


def test_a_plugin_of_gazebo_makes_one_joint_mimic_another():
    """k = -2 j + 0.5, like `<mimic>`, if the joint itself has none."""
    told = sarrus.loads(robot(A, B, C, FOLLOWER, joint("j", "A", "B")))
    plain = joint("k", "B", "C", "continuous", "")
    read = sarrus.loads(robot(A, B, C, plain, joint("j", "A", "B"), PLUGIN.format("p", "j", "k")))
    assert read.description == told.description and not read.warnings and read.actuated == ("j",)
    both = sarrus.loads(robot(A, B, C, FOLLOWER, joint("j", "A", "B"), PLUGIN.format("p", "x", "k")))
    assert both.description == told.description and not both.warnings
    for ends in (("j", "x"), ("x", "k")):
        free = sarrus.loads(robot(A, B, C, plain, joint("j", "A", "B"), PLUGIN.format("p", *ends)))
        assert free.nc == 0 and "there is no joint 'x'" in free.warnings[0]


@pytest.mark.parametrize(
    ("name", "told"), [("buoyancy", True), ("odd", True), ("gazebo_ros_control", False), ("imu", False)]
)
def test_plugins_that_may_act_are_told_of(name, told):
    plugin = f'<gazebo><plugin name="{name}" filename="lib{name}.so"/></gazebo>'
    warnings = sarrus.loads(robot(A, B, joint("j", "A", "B"), plugin)).warnings
    assert (
        warnings
        == (f"<string>:5: plugins are not read, and their effects on bodies and joints are missing: '{name}'",) * told
    )


BALL = """<link name="B"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
    <collision><geometry><sphere radius=".1"/></geometry>{}</collision></link>"""
PROXIMITY = '<drake:proximity_properties><drake:mu_dynamic value=".5"/></drake:proximity_properties>'


@pytest.mark.parametrize(
    ("inside", "gazebo", "mu", "warning"),
    [
        ("", "<mu1>.3</mu1><mu2>.3</mu2>", 0.3, ""),
        ("", "<mu1>.3</mu1><mu2>.2</mu2>", 0.3, "anisotropic friction is not read"),
        (PROXIMITY, "<mu1>.3</mu1>", 0.5, ""),
        ("", "<selfCollide>true</selfCollide>", None, ""),
        ("", "<selfCollide>false</selfCollide>", None, "<selfCollide> is not read"),
        ("", "<dampingFactor>.1</dampingFactor>", None, "<dampingFactor> in <gazebo> is not read"),
    ],
)  # fmt: skip
def test_what_gazebo_and_drake_say_of_touching(inside, gazebo, mu, warning):
    robot_ = sarrus.loads(
        robot(A, BALL.format(inside), joint("j", "A", "B"), f'<gazebo reference="B">{gazebo}</gazebo>')
    )
    (shape,) = robot_.description.shapes
    told = [one for one in robot_.warnings if "may touch, which only" not in one]
    assert shape.friction == mu and len(told) == bool(warning) and all(warning in one for one in told)


MOTOR = '<transmission name="t"><joint name="{}"/><actuator name="m">{}</actuator></transmission>'


def test_rotors_of_drake_s_transmissions():
    """Inertia times the squared ratio is added to that of the arm; the default ratio is one."""
    rotor = '<drake:rotor_inertia value="0.002"/>'
    bare = sarrus.loads(robot(A, B, joint("j", "A", "B"), MOTOR.format("j", "")))
    for told, armature in ((rotor + '<drake:gear_ratio value="10"/>', 0.2), (rotor, 0.002)):
        arm = sarrus.loads(robot(A, B, joint("j", "A", "B"), MOTOR.format("j", told)))
        assert_allclose(arm.mass_matrix([0.3]) - bare.mass_matrix([0.3]), [[armature]])
        assert not arm.warnings and arm.actuated == ("j",)
    ball = sarrus.loads(robot(A, B, joint("j", "A", "B", "ball", ""), MOTOR.format("j", rotor)))
    assert any("the rotor inertia of a motor of 'j' is not read" in one for one in ball.warnings)
    with pytest.raises(sarrus.ModelError, match="armature"):
        sarrus.loads(robot(A, B, joint("j", "A", "B"), MOTOR.format("j", rotor.replace("0.002", "-1"))))


def test_mimic_of_a_fixed_joint_is_idle():
    r = sarrus.loads(robot(A, B, C, joint("j", "A", "B"), joint("k", "B", "C", "fixed", '<mimic joint="j"/>')))
    assert not r.constraints and not r.warnings


def test_what_moves_is_actuated_unless_it_follows_another():
    """URDF has no element for passive joints; a mimic joint has no motor."""
    leader = joint("j", "A", "B")
    follower = joint("k", "B", "C", inside='<mimic joint="j"/><limit effort="1" velocity="1" lower="-1" upper="1"/>')
    assert sarrus.loads(robot(A, B, C, leader, follower), floating_base=True).actuated == ("j",)


@pytest.mark.parametrize(
    ("multiplier", "offset", "means"),
    [(2, 0, "they cannot move"), (0.5, 0, "the last one is redundant"), (0.5, 1, "contradict one another")],
)
def test_mimics_in_a_circle(multiplier, offset, means):
    first = joint("j", "A", "B", "continuous", '<mimic joint="k" multiplier="2"/>')
    second = joint("k", "B", "C", "continuous", f'<mimic joint="j" multiplier="{multiplier}" offset="{offset}"/>')
    (warning,) = sarrus.loads(robot(A, B, C, first, second)).warnings
    assert warning.startswith("<string>:5: joints mimic one another in a circle, 'j', 'k': ") and means in warning


@pytest.mark.parametrize("number", ["\u0663", "\uff11", "1_0", "1\u00a0"])
def test_digits_of_other_scripts_are_no_numbers(number):
    with pytest.raises(sarrus.ModelError, match="expects a number in value"):
        sarrus.loads(robot(A.replace('mass value="1"', f'mass value="{number}"')))
