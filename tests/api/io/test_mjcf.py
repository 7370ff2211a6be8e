"""MJCF: elements that are read, warnings, errors; values by hand, and by MuJoCo if it is installed."""

import contextlib
import importlib.util
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.io import mjcf_document
from sarrus.io.mesh_files import triangles
from sarrus.shapes import Box, Cylinder, Mesh, Sphere

READS_MESHES = importlib.util.find_spec("trimesh") is not None  # an extra brings it
MASS = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def model(world="", *sections, name="m"):
    return f'<mujoco model="{name}">\n<worldbody>{world}</worldbody>\n' + "\n".join(sections) + "\n</mujoco>"


def body(name, *inside, attributes=""):
    return f'<body name="{name}" {attributes}>{MASS}{"".join(inside)}</body>'


def specs(mechanism):
    return {spec.name: spec for spec in mechanism.description.joints}


def joint_of(text, name="j"):
    return specs(sarrus.loads(text))[name].joint


def inertia(mechanism, name):
    return next(spec.inertia for spec in mechanism.description.bodies if spec.name == name)


# --- what is read -------------------------------------------------------------------------------------------------


def test_pendulum_from_text():
    p = sarrus.loads(
        model(
            """<body name="bob" pos="0 0 3"><joint name="pin" axis="0 2 0"/>
                 <inertial pos="0 0 -.5" mass="2" diaginertia="0 0 0"/></body>""",
            '<option gravity="0 0 -1.62"/>',
            name="pendulum",
        )
    )
    assert (p.name, p.joints, p.bodies) == ("pendulum", ("pin",), ("bob",))
    assert_allclose(p.gravity_forces([np.pi / 2]), [1.62])
    assert_allclose(p.pose([0.3], "bob")[:3, 3], [0, 0, 3])
    assert not p.warnings


@pytest.mark.parametrize("name", ["arm.xml", "arm.MJCF"])
def test_files_by_suffix_and_root(tmp_path, name):
    (tmp_path / name).write_text(model(body("a", '<joint name="j"/>')))
    assert sarrus.load(tmp_path / name).joints == ("j",)


def test_an_xml_may_be_urdf(tmp_path):
    (tmp_path / "a.xml").write_text('<robot name="r"><link name="a"/></robot>')
    assert sarrus.load(tmp_path / "a.xml").name == "r"


def test_kinds_of_joints():
    robot = sarrus.loads(
        model(
            body("f", '<freejoint name="free"/>', body("b", '<joint name="ball" type="ball" pos="0 0 1"/>'))
            + body(
                "s", '<joint name="slide" type="slide" axis="0 0 2"/>', body("h", '<joint name="hinge"/>', body("w"))
            )
        )
    )
    assert [(s.name, s.kind) for s in robot.description.joints] == [
        ("free", "Free"), ("ball", "Spherical"), ("slide", "Prismatic"), ("hinge", "Revolute"), ("w_weld", "Fixed"),
    ]  # fmt: skip
    q = robot._at({"ball": [1, 0, 0, 0], "slide": 2.0}.items())  # half a turn about x, about (0, 0, 1)
    assert_allclose(robot.pose(q, "b")[:3, 3], [0, 0, 2], atol=1e-14)
    assert_allclose(robot.pose(q, "w")[:3, 3], [0, 0, 2])


def test_several_joints_act_in_the_order_of_the_file():
    """A slide after a hinge moves along the rotated axis; each hinge is about its own point of the body."""
    robot = sarrus.loads(
        model(body("a", '<joint name="j" axis="0 0 1" pos="1 0 0"/><joint name="k" type="slide" axis="1 0 0"/>'))
    )
    assert robot.bodies == ("a.j", "a")
    assert_allclose(robot.pose([np.pi / 2, 3.0], "a")[:3, 3], [1, 2, 0], atol=1e-14)
    assert_allclose(robot.mass, 1.0)


def test_a_coordinate_counts_from_ref():
    """At the file's pose the coordinate is ref: an angle in degrees, or a length for a slide."""
    robot = sarrus.loads(
        model(
            body("a", '<joint name="j" ref="90" range="0 180" stiffness="2" springref="45"/>', attributes='pos="1 0 0"')
            + body("b", '<joint name="k" type="slide" axis="1 0 0" ref=".2" range="-1 1"/>')
        )
    )
    assert_allclose(robot.configuration("qpos0"), [np.pi / 2, 0.2])
    assert dict(robot.description.home) == {"j": (np.pi / 2,), "k": (0.2,)}
    assert_allclose(robot.pose([np.pi / 2, 0.2], "a"), sarrus.Transform(translation=(1, 0, 0)).matrix, atol=1e-14)
    assert_allclose(robot.pose([np.pi, 0.5], "a")[:3, 0], [0, 1, 0], atol=1e-14)
    assert_allclose(robot.pose([np.pi, 0.5], "b")[:3, 3], [0.3, 0, 0], atol=1e-14)
    j, k = (specs(robot)[name].joint for name in "jk")
    assert_allclose(np.ravel(j.limits), [0, np.pi])
    assert_allclose(np.ravel(k.limits), [-1, 1])
    assert_allclose((j.stiffness[0], j.rest[0]), [2, np.pi / 4])
    assert_allclose(robot.bias_forces([np.pi, 0.5], [0, 0])[0], 2 * 3 * np.pi / 4)


def test_terms_of_joints():
    inside = '<joint name="j" damping="1" frictionloss="2" armature="3" stiffness="4" actuatorfrcrange="-5 6"/>'
    j = joint_of(model(body("a", inside)))
    assert [x[0] for x in (j.damping, j.friction, j.armature, j.stiffness, j.effort_limit)] == [1, 2, 3, 4, 6]
    assert j.limits is None


def test_spring_and_damper_by_time_constant_and_ratio():
    """Time constant 0.5 s, damping ratio 0.8: x'' + 2/0.5 x' + x/(0.5 0.8)^2 = 0 for the joint's inertia, here 3."""
    j = joint_of(model(body("a", '<joint name="j" armature="2" springdamper="0.5 0.8" stiffness="9" damping="9"/>')))
    assert_allclose((j.damping[0], j.stiffness[0], j.rest[0]), [3 * 4, 3 / 0.16, 0])


@pytest.mark.parametrize(
    ("orientation", "x", "z"),
    [
        ('quat="2 0 0 2"', [0, 1, 0], [0, 0, 1]),
        ('euler="90 0 90"', [0, 0, 1], [0, -1, 0]),  # x, then z as that has turned it
        ('axisangle="0 0 3 90"', [0, 1, 0], [0, 0, 1]),
        ('xyaxes="0 2 0 -1 5 0"', [0, 1, 0], [0, 0, 1]),
        ('zaxis="0 3 0"', [1, 0, 0], [0, 1, 0]),
        ('zaxis="0 0 -1"', [1, 0, 0], [0, 0, -1]),
    ],
)
def test_orientations(orientation, x, z):
    pose = sarrus.loads(model(body("a", attributes=orientation))).pose([], "a")
    assert_allclose(pose[:3, 0], x, atol=1e-14)
    assert_allclose(pose[:3, 2], z, atol=1e-14)


def test_units_and_sequence_of_angles():
    def pose(compiler, euler):
        return sarrus.loads(model(body("a", attributes=f'euler="{euler}"'), compiler)).pose([], "a")[:3, :3]

    fixed = sarrus.Rotation.from_rpy(0.1, 0.2, 0.3).matrix
    assert_allclose(pose('<compiler angle="radian" eulerseq="XYZ"/>', ".1 .2 .3"), fixed, atol=1e-14)
    assert_allclose(pose('<compiler angle="radian" eulerseq="zyx"/>', ".3 .2 .1"), fixed, atol=1e-14)
    # sections merge, wherever they stand
    assert_allclose(pose('<compiler eulerseq="zyx"/><compiler angle="radian"/>', ".3 .2 .1"), fixed, atol=1e-14)


def test_frames_move_what_is_in_them():
    inside = '<frame pos="0 0 5" euler="0 0 90"><joint name="j" axis="1 0 0" pos="1 0 0"/><site name="s"/></frame>'
    robot = sarrus.loads(
        model('<frame pos="1 0 0" euler="0 0 90">' + body("a", inside, attributes='pos="1 0 0"') + "</frame>")
    )
    assert_allclose(robot.pose([0.0], "a")[:3, 3], [1, 1, 0], atol=1e-14)
    assert_allclose(robot.pose([0.0], "s")[:3, 3], [1, 1, 5], atol=1e-14)
    assert_allclose(specs(robot)["j"].joint.axis, [0, 1, 0], atol=1e-14)
    assert_allclose(specs(robot)["j"].at_child.translation, [0, 1, 5], atol=1e-14)


def test_sites_become_frames():
    robot = sarrus.loads(
        model(
            '<site name="w" pos="1 0 0"/>' + body("a", '<site name="a" pos="0 1 0"/><site/>', attributes='pos="0 0 1"')
        )
    )
    assert robot.frames == ("ground", "a", "w", "a_site")
    assert_array_equal(robot.pose([], "a_site")[:3, 3], [0, 1, 1])


def test_names_that_are_missing_or_taken():
    robot = sarrus.loads(
        model(
            f"<body>{MASS}<joint/><joint/></body>" + body("ground", '<joint name="body1_hinge__"/>'),
            '<equality><connect body1="ground" anchor="0 0 0"/><joint joint1="body1_hinge__" name="body1_hinge"/>'
            '<joint joint1="body1_hinge__" name="body1_hinge__"/></equality>',
        )
    )
    assert robot.joints == ("body1_hinge2", "body1_hinge3", "body1_hinge__")
    assert robot.constraints == ("ground_body to ground", "body1_hinge", "body1_hinge__2")
    assert "becomes body 'ground_body'" in robot.warnings[0]


# --- classes ------------------------------------------------------------------------------------------------------


def test_classes():
    """Precedence: the element, its class, the nearest childclass, main; a nested class inherits from its parent."""
    classes = """<default><joint damping="1" armature="1" frictionloss="1" stiffness="1"/>
      <default class="a"><joint armature="2" frictionloss="2" stiffness="2"/>
        <default class="b"><joint frictionloss="3" stiffness="3"/></default></default>
      <default class="c"><joint armature="4"/></default></default>"""
    world = body(
        "1", '<joint name="own" class="b" stiffness="9"/>',
        body("2", '<joint name="above"/>', '<frame childclass="c"><joint name="framed"/></frame>'),
        body("3", '<joint name="other" class="main"/>', attributes='childclass="c"'),
        attributes='childclass="a"',
    ) + body("4", '<joint name="plain"/><joint name="of_class" class="b"/>')  # fmt: skip
    joints = specs(sarrus.loads(model(world, classes)))  # which stand behind what they are for

    def terms(name):
        j = joints[name].joint
        return [x[0] for x in (j.damping, j.armature, j.friction, j.stiffness)]

    assert terms("own") == [1, 2, 3, 9]
    assert terms("above") == [1, 2, 2, 2]
    assert terms("framed") == [1, 4, 1, 1]
    assert terms("other") == terms("plain") == [1, 1, 1, 1]
    assert terms("of_class") == [1, 2, 3, 3]


def test_numbers_that_an_element_leaves_to_its_class():
    """Only the first number of a size may be given; an orientation replaces one in another form."""
    classes = '<default><geom type="capsule" size="1 2" euler="90 0 0" density="3"/></default>'
    inside = '<geom size="1.5"/><geom quat="1 0 0 0"/>'
    robot = sarrus.loads(model(f'<body name="a">{inside}</body>', classes))
    first, second = (v.shape for v in robot.description.visuals if isinstance(v.shape, Cylinder))
    assert (first, second) == (Cylinder(1.5, 4.0), Cylinder(1.0, 4.0))
    places = [v.placement.rotation for v in robot.description.visuals if isinstance(v.shape, Cylinder)]
    assert_allclose(places[0][:, 2], [0, -1, 0], atol=1e-14)
    assert_allclose(places[1], np.eye(3))


def test_freejoint_has_no_class():
    robot = sarrus.loads(model(body("a", '<freejoint name="f"/>'), '<default><joint damping="1"/></default>'))
    assert not specs(robot)["f"].joint.damping.any()


# --- inertia ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("geom", "mass", "moments"),
    [
        ('type="sphere" size=".5"', 1000 * np.pi / 6, np.full(3, 100 * np.pi / 6)),
        ('type="box" size=".1 .2 .3" density="500"', 24, [24 * 0.13 / 3, 24 * 0.1 / 3, 24 * 0.05 / 3]),
        ('type="cylinder" size=".5 1" mass="12"', 12, [0.75 + 4, 0.75 + 4, 1.5]),
        ('type="ellipsoid" size="1 2 3" mass="5"', 5, [13, 10, 5]),
        # cylinder and half spheres as their volumes, 2 and 4/3: 6 and 4 kg
        ('type="capsule" size="1 1" mass="10"', 10, [6 * (3 + 4) / 12 + 4 * (0.4 + 1 + 0.75)] * 2 + [3 + 1.6]),
    ],
)  # fmt: skip
def test_inertia_of_geoms(geom, mass, moments):
    found = inertia(sarrus.loads(model(f'<body name="a"><geom {geom} pos="1 0 0"/></body>')), "a")
    assert_allclose(found.mass, mass)
    assert_allclose(found.com, [1, 0, 0])
    assert_allclose(found.about_com, np.diag(moments), atol=1e-12)


def test_geoms_between_points_add_up():
    inside = '<geom type="cylinder" size=".1" fromto="0 0 0 2 0 0" mass="3"/><geom size=".1" mass="1" pos="1 0 4"/>'
    found = inertia(sarrus.loads(model(f'<body name="a">{inside}<geom size="9" group="6"/></body>')), "a")
    rod, ball = sarrus.Inertia.rod(3, (0, 0, 0), (2, 0, 0), 0.1), sarrus.Inertia.sphere(1, 0.1)
    assert_allclose(found.matrix, (rod + ball.transformed(sarrus.Transform(translation=(1, 0, 4)))).matrix, atol=1e-12)


def test_inertial_before_geoms():
    box = '<geom type="box" size="1 1 1" mass="7"/>'
    told = '<inertial pos="0 0 0" mass="1" fullinertia="1 2 2.5 .1 .2 .3"/>'
    world = f'<body name="a">{told}{box}</body><body name="b">{box}</body>'
    robot = sarrus.loads(model(world))
    assert_allclose(inertia(robot, "a").about_com, [[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    assert inertia(robot, "b").mass == 7
    assert inertia(sarrus.loads(model(world, '<compiler inertiafromgeom="true"/>')), "a").mass == 7
    with pytest.raises(sarrus.ModelError, match="<body name='b'> has no <inertial>, and inertiafromgeom is false"):
        sarrus.loads(model(world, '<compiler inertiafromgeom="false"/>'))


def test_inertias_that_the_compiler_changes():
    world = '<body name="a"><inertial pos="0 0 0" mass="1" diaginertia="1 1 4"/></body>' + body("b")
    assert "no body of 1 kg has principal moments of inertia 1, 1, 4" in sarrus.loads(model(world)).warnings[0]

    def changed(compiler):
        return inertia(sarrus.loads(model(world, f"<compiler {compiler}/>")), "a")

    assert_allclose(changed('balanceinertia="true"').about_com, 2 * np.eye(3))
    assert_allclose(np.sort(changed('boundinertia="3"').principal_moments), [3, 3, 4])
    assert changed('boundmass="5"').mass == 5
    assert_allclose((changed('settotalmass="8"').mass, changed('settotalmass="8"').about_com[2, 2]), [4, 16])


# --- equalities ---------------------------------------------------------------------------------------------------


def test_connect_where_the_bodies_meet_at_qpos0():
    world = body("a", '<joint name="j" axis="0 1 0" ref="30"/>', attributes='pos="0 0 1"') + body("b", "<freejoint/>")
    robot = sarrus.loads(
        model(
            world,
            '<equality><connect body1="a" body2="b" anchor="1 2 3"/><connect body1="a" anchor="0 0 1"/></equality>',
        )
    )
    assert [(s.name, s.kind, s.loop) for s in robot.description.joints[2:]] == [
        ("a to b", "Spherical", True), ("a to ground", "Spherical", True),
    ]  # fmt: skip
    assert_allclose(specs(robot)["a to b"].at_child.translation, [1, 2, 4])
    assert_allclose(robot.constraint_residual(robot.configuration("qpos0")), 0, atol=1e-14)
    assert robot.nc == 6


def test_sites_are_drawn_together():
    world = '<site name="w" pos="1 0 0" euler="0 0 90"/>' + body(
        "b", '<freejoint name="f"/><site name="s" pos="0 0 1"/>'
    )
    for kind, rows in (("connect", 3), ("weld", 6)):
        robot = sarrus.loads(model(world, f'<equality><{kind} name="e" site1="w" site2="s"/></equality>'))
        assert robot.nc == rows
        q = robot.assemble()
        pose = robot.pose(q, "s")
        assert_allclose(pose[:3, 3], [1, 0, 0], atol=1e-12)
        if kind == "weld":
            assert_allclose(pose[:3, :3], sarrus.Rotation.from_rpy(0, 0, np.pi / 2).matrix, atol=1e-12)


def test_welds():
    world = body("a", attributes='pos="0 0 1"') + body("b", "<freejoint/>", attributes='pos="1 0 0"')

    def weld(attributes):
        robot = sarrus.loads(model(world, f'<equality><weld name="e" body1="a" body2="b" {attributes}/></equality>'))
        return robot, robot.pose(robot.assemble(), "b")

    assert_allclose(weld('anchor="0 5 0"')[1][:3, 3], [1, 0, 0], atol=1e-12)  # as they are
    robot, pose = weld('anchor="0 5 0" relpose="0 0 2 0 0 0 1"')  # half a turn about z; b's point lies 2 above a
    assert_allclose(pose[:3, 3], [0, 5, 3], atol=1e-9)
    assert_allclose(pose[:3, :3], np.diag([-1, -1, 1]), atol=1e-9)
    assert robot.nc == 6
    assert weld('torquescale="0"')[0].nc == 3


def test_couplers_of_joints():
    """q1 - ref1 = a0 + a1 (q2 - ref2) + ..., up to the fourth power."""
    world = body("a", '<joint name="j" ref="1" type="slide"/>') + body("b", '<joint name="k" ref="2" type="slide"/>')

    def rest(equality, q):
        return sarrus.loads(model(world, f"<equality><joint {equality}/></equality>")).constraint_residual(q)

    x, y = 0.7, 1 + 0.1 + 0.2 * -1.3 + 0.3 * 1.69 + 0.4 * -2.197 + 0.5 * 2.8561
    assert_allclose(rest('joint1="j" joint2="k" polycoef=".1 .2 .3 .4 .5"', [y, x]), 0, atol=1e-14)
    assert_allclose(rest('joint1="j" joint2="k"', [0.5 + 1, 0.5 + 2]), 0)
    assert_allclose(rest('joint1="j" joint2="k" polycoef=".1"', [0.6 + 1, 0.5 + 2]), 0, atol=1e-14)
    assert_allclose(rest('joint1="j" polycoef=".25"', [1.25, 9.0]), 0)


def test_couplers_of_tendons():
    world = body("a", '<joint name="j" ref="1" type="slide"/>') + body("b", '<joint name="k" type="slide"/>')
    tendons = """<tendon><fixed name="both"><joint joint="j" coef="2"/><joint joint="k" coef="3"/></fixed>
        <fixed name="one"><joint joint="k" coef="4"/></fixed></tendon>"""

    def rest(equality, q):
        return sarrus.loads(model(world, tendons, f"<equality><tendon {equality}/></equality>")).constraint_residual(q)

    # 2 (j - 1) + 3 k = 1 + 5 (4 k) + 6 (4 k)^2
    assert_allclose(rest('tendon1="both" tendon2="one" polycoef="1 5 6"', [1 + (1 + 17 * 0.5 + 96 * 0.25) / 2, 0.5]), 0)
    assert_allclose(rest('tendon1="both" polycoef="7"', [3.0, 1.0]), 0, atol=1e-14)
    assert_allclose(rest('tendon1="one" tendon2="both"', [4.0, 6.0]), 0, atol=1e-14)
    with pytest.raises(sarrus.ModelError, match=r"<string>:\d: .*degree 2 of a sum of 2 joints"):
        rest('tendon1="one" tendon2="both" polycoef="0 1 1"', [0.0, 0.0])


STRUNG = """<site name="w" pos="0 0 1"/><body name="a"><joint name="j" axis="0 1 0" ref="30"/><geom size=".1" pos=".3 0 0"/><site name="s" pos=".3 0 0"/></body>"""
STRINGS = """<tendon><spatial name="t" stiffness="3" damping=".2" springlength=".5"><site site="w"/><site site="s"/></spatial>
    <spatial name="u" stiffness="3"><site site="w"/><site site="s"/></spatial></tendon>"""


def test_straight_tendons_are_springs():
    """The rest length is the tendon's, or that of the joints' springref: accelerations are those of MuJoCo 4.0."""
    text = model(STRUNG, STRINGS)
    read = [sarrus.loads(text)]
    with contextlib.suppress(ImportError):
        import mujoco

        read.append(sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(text)))
    for robot in read:
        assert not robot.warnings
        assert [(spec.name, spec.stiffness, spec.damping) for spec in robot.description.springs] == [
            ("t", 3, 0.2),
            ("u", 3, 0),
        ]
        assert_allclose([spec.rest_length for spec in robot.description.springs], [0.5, 0.8888194417315589])
        assert_allclose(robot.forward_dynamics([0.4], [0.7], [0.0]), 29.62736445)


def test_straight_tendons_of_held_length_are_distances():
    text = model(STRUNG, STRINGS, '<equality><tendon name="e" tendon1="t" polycoef=".1 1 0 0 0"/></equality>')
    read = [sarrus.loads(text)]
    with contextlib.suppress(ImportError):
        import mujoco

        read.append(sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(text)))
    for robot in read:
        assert not robot.warnings and robot.constraints == ("e",)
        assert_allclose(robot.constraint("e").spec.length, 1.1440306508910552)  # MuJoCo's length0 + 0.1


def test_what_straight_tendons_do_not_say():
    slack = STRINGS.replace('springlength=".5"', 'springlength=".5 .6" stiffness="3"').replace(
        'stiffness="3" damping', "damping"
    )
    told = sarrus.loads(model(STRUNG, slack, "<option><flag spring='disable'/></option>")).warnings
    assert any("springlength is a range" in one for one in told)
    assert any(
        "other than springs between two sites" in one
        for one in sarrus.loads(model(STRUNG, STRINGS.replace('stiffness="3"', ""))).warnings
    )


def test_inactive_equalities_are_left_out():
    world, equality = body("a", "<joint/>"), '<equality><connect name="c" body1="a" anchor="1 0 0"{}/></equality>'
    assert sarrus.loads(model(world, equality.format(""))).nc == 3
    for robot in (
        sarrus.loads(model(world, equality.format(' active="false"'))),
        sarrus.loads(model(world, equality.format(""), '<default><equality active="false"/></default>')),
        sarrus.loads(model(world, equality.format(""), '<option><flag equality="disable"/></option>')),
    ):
        assert robot.nc == 0
        assert "left out" in robot.warnings[0]


# --- actuators and keyframes --------------------------------------------------------------------------------------


def test_actuators():
    world = "".join(body(name, f'<joint name="{name}"/>') for name in "abcdef")
    robot = sarrus.loads(
        model(
            world,
            '<tendon><fixed name="t"><joint joint="c" coef="2"/><joint joint="d" coef="-.5"/></fixed></tendon>',
            """<default><motor ctrlrange="-3 2"/></default>
            <actuator><motor joint="a" gear="10"/><general joint="a" forcerange="-4 4" gainprm="9" ctrllimited="false"/>
            <position joint="b" kp="3" gear="-2" forcerange="-1 7" ctrlrange="-9 9"/>
            <motor tendon="t" armature="0"/><velocity joint="e" armature=".5" damping=".25" gear="4"/></actuator>""",
        )
    )
    assert robot.actuated == ("a", "b", "c", "d", "e")
    limits = {name: s.joint.effort_limit for name, s in specs(robot).items()}
    assert [limits[name] and limits[name][0] for name in "abcd"] == [34, 14, 6, 1.5]
    assert limits["e"] is None
    e = specs(robot)["e"].joint
    assert (e.armature[0], e.damping[0]) == (8, 4)
    assert sum("control law is not read" in warning for warning in robot.warnings) == 2


def test_names_are_those_of_one_kind():
    """Geoms, sites and bodies may have the names of joints, and geoms those of bodies, as in MuJoCo 4.0."""
    arm = '<body name="j"><joint name="j" axis="0 1 0" class="k"/>{}</body>'
    robot = sarrus.loads(
        model(
            arm.format('<site name="j"/><geom name="j" type="capsule" size=".05" fromto="0 0 0 .5 0 0"/>'),
            '<default><joint limited="true"/><default class="k"><joint range="-30 30"/></default></default>',
            '<actuator><motor joint="j" gear="50" armature="1e-4" damping="1e-3" ctrlrange="-2 2"/></actuator>',
        )
    )
    j = specs(robot)["j"].joint
    assert_allclose(robot.mass_matrix([0.0]), [[0.65058579]])
    assert (j.damping[0], j.effort_limit[0]) == (2.5, 100) and robot.warnings == ()
    assert_allclose(j.limits, [[-np.pi / 6], [np.pi / 6]])

    # an unnamed geom has its body's name here; a pair is of the one that has it in the file
    a, b = (f'<body name="{x}" pos="0 0 {z}"><freejoint/>{{}}</body>' for x, z in (("a", 1), ("b", 2)))
    geoms = '<geom size=".1" contype="0"/>', '<geom name="a" size=".1"/>'
    pair = '<contact><pair geom1="floor" geom2="a" friction=".3"/></contact>'
    robot = sarrus.loads(
        model('<geom name="floor" type="plane" size="1 1 1"/>' + a.format(geoms[0]) + b.format(geoms[1]), pair)
    )
    (told,) = (spec for spec in robot.description.contacts if spec.friction == 0.3)
    body_of = {spec.name: spec.body for spec in robot.description.shapes}
    assert {body_of[told.first], body_of[told.second]} == {"ground", "b"}


def test_a_dcmotor_without_an_input_is_no_motor():
    text = model(
        body("a", '<joint name="j"/>'), '<actuator><dcmotor joint="j" {} motorconst="1" resistance="2"/></actuator>'
    )
    read = [sarrus.loads(text.format(told)) for told in ('input="voltage"', 'input="none"')]
    assert [robot.actuated for robot in read] == [("j",), ()]
    assert "a <dcmotor> without an input is not a motor" in read[1].warnings[0]
    mujoco = pytest.importorskip("mujoco")
    if int(mujoco.__version__.partition(".")[0]) >= 4:
        for told, robot in zip(('input="voltage"', 'input="none"'), read, strict=True):
            compiled = mujoco.MjModel.from_xml_string(text.format(told))
            assert sarrus.io.from_mujoco(compiled).actuated == robot.actuated


def test_short_keyframes_are_filled_up():
    """Missing entries are those of qpos0, as in MuJoCo 4.0, which gives the values."""
    world = body("a", '<joint name="j" ref="30"/>', body("b", '<joint name="k" type="ball"/>')) + body(
        "c", "<freejoint/>"
    )
    keys = '<keyframe><key name="one" qpos="1"/><key name="two" qpos="1 0 1"/></keyframe>'
    robot = sarrus.loads(model(world, keys))
    floats = [0, 0, 0, 1, 0, 0, 0]
    assert_allclose(robot.configuration("one"), [1, 0, 0, 0, 1, *floats], atol=1e-15)
    assert_allclose(robot.configuration("two"), [1, 1, 0, 0, 0, *floats], atol=1e-15)
    with pytest.raises(sarrus.ModelError, match="expects 1 to 12 numbers in qpos, got 13"):
        sarrus.loads(model(world, f'<keyframe><key qpos="{"1 " * 13}"/></keyframe>'))


def test_keyframes_are_configurations():
    world = body("a", '<freejoint name="f"/>', body("b", '<joint name="j" type="ball"/>')) + body(
        "c", '<joint name="k"/>'
    )
    key = '<keyframe><key name="home" qpos="1 2 3 0 0 0 2 1 0 0 0 5"/><key/><key name="bad" qpos="1 x"/></keyframe>'
    with pytest.raises(sarrus.ModelError, match="<key name='bad'> expects 2 numbers in qpos, got '1 x'"):
        sarrus.loads(model(world, key))
    robot = sarrus.loads(model(world, key.replace('<key name="bad" qpos="1 x"/>', "")))
    assert tuple(dict(robot.description.configurations)) == ("qpos0", "home", "key1")
    assert_array_equal(robot.configuration("home"), [0, 0, 1, 0, 1, 2, 3, 0, 0, 0, 1, 5])
    assert_array_equal(robot.configuration("key1"), robot.configuration("qpos0"))


@pytest.mark.parametrize(
    ("keys", "home"),
    [
        ('<key name="low" qpos="1"/><key name="home" qpos="2"/>', 2.0),
        ('<key name="low" qpos="1"/>', 1.0),
        ('<key name="low" qpos="1"/><key name="high" qpos="2"/>', 0.0),
        ('<key name="qpos0" qpos="0"/>', 0.0),
    ],
)
def test_the_key_named_home_or_the_only_one_is_the_home(keys, home):
    text = model(body("a", '<joint name="j"/>'), f"<keyframe>{keys}</keyframe>")
    assert sarrus.loads(text).description.home == (("j", (home,)),)
    mujoco = pytest.importorskip("mujoco")
    compiled = sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(text))
    assert compiled.description.home == (("j", (home,)),)


SPHERES = '<geom name="{}" size="0.1" {}/>'


@pytest.mark.parametrize(
    ("floor", "one", "other", "rest", "n"),
    [
        ("", "", "", "", 0),  # parent and child
        ('<geom type="plane" size="1 1 1"/>', "", "", "", 3),
        ('<geom type="plane" size="1 1 1"/>', "", "", '<option><flag contact="disable"/></option>', 0),
        ('<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>', "", "", "", 0),
        ('<geom type="plane" size="1 1 1" contype="2" conaffinity="0"/>', 'conaffinity="3"', "", "", 3),
        ('<geom type="plane" size="1 1 1" contype="2" conaffinity="0"/>', 'contype="4"', "", "", 0),
        ('<body name="c" pos="3 0 0"><joint/><geom size="1"/></body>', "", "", "", 3),
    ],
)
def test_geoms_that_may_touch_are_told(floor, one, other, rest, n):
    """Pairs that MuJoCo checks for collision."""
    second = body("b", '<joint name="k"/>' + SPHERES.format("b", other), 'pos="0 0 1"')
    text = model(floor + body("a", '<joint name="j"/>' + SPHERES.format("a", one) + second), rest)
    told = f"{n} geoms may touch, which only simulate(method='contact') computes"
    assert sarrus.loads(text).warnings == ((f"<string>:1: {told}",) if n else ())
    mujoco = pytest.importorskip("mujoco")
    assert (f"MjModel: {told}" in sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(text)).warnings) == bool(n)


# --- looks --------------------------------------------------------------------------------------------------------


TOUCHING = {
    "margin of geoms is not read": 'margin=".03"',
    "surfacevel of geoms is not read": 'surfacevel="1 0"',
    "adhesion of geoms is not read": 'adhesion="3"',
    "priority of geoms is not read": 'priority="1"',
}


@pytest.mark.parametrize("warning", TOUCHING)
def test_what_changes_how_geoms_touch_is_told(warning):
    """MuJoCo 4.0 adds two margins: a ball of 0.1 m with margins rests at 0.17 m."""
    world = '<geom type="plane" size="1 1 1" {0}/><body name="a" pos="0 0 .3"><freejoint/><geom size=".1" class="c"/><geom size=".1" {0} {1}/></body>'
    default = f'<default><geom/><default class="c"><geom {TOUCHING[warning]}/></default></default>'
    for told, classes in (("", default), (TOUCHING[warning], '<default><default class="c"/></default>')):
        warnings = sarrus.loads(model(world.format(told, ""), classes)).warnings
        assert len(warnings) == 2 and warning in warnings[1]
    none = f'contype="0" conaffinity="0" {TOUCHING[warning]}'
    assert not sarrus.loads(model(f'<body name="a"><freejoint/><geom size=".1" {none}/></body>')).warnings
    mujoco = pytest.importorskip("mujoco")
    if int(mujoco.__version__.partition(".")[0]) >= 4:
        compiled = mujoco.MjModel.from_xml_string(model(world.format(TOUCHING[warning], ""), default))
        assert any(warning in one for one in sarrus.io.from_mujoco(compiled).warnings)


def test_what_changes_how_pairs_touch_is_told():
    world = '<geom type="plane" size="1 1 1" name="f"/><body name="a"><freejoint/><geom name="g" size=".1"/></body>'
    told = sarrus.loads(model(world, '<contact><pair geom1="f" geom2="g" margin=".01"/></contact>')).warnings
    assert any("margin of <pair> is not read" in one for one in told)
    told = sarrus.loads(model(world, '<option><flag override="enable"/></option>')).warnings
    assert any("override" in one for one in told)


def test_visuals(tmp_path):
    text = model(
        """<geom type="plane" size="1 1 1"/><body name="a">
        <geom type="box" size="1 2 3" rgba="1 0 0 1"/><geom size=".5" material="blue" pos="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0 0 4" size=".1"/><geom type="mesh" mesh="part" mass="0" group="1"/>
        <geom type="box" size="1 1 1" group="3"/><geom type="ellipsoid" size="1 2 3"/></body>""",
        '<asset><material name="blue" rgba="0 0 1 .5"/><mesh file="x/part.stl" scale="2 2 2"/></asset><compiler meshdir="meshes"/>',
    )
    (tmp_path / "a.xml").write_text(text)
    robot = sarrus.load(tmp_path / "a.xml")
    shapes = [(v.shape, v.color) for v in robot.description.visuals]
    gray = (0.5, 0.5, 0.5, 1.0)
    assert shapes == [
        (Box((2, 4, 6)), (1, 0, 0, 1)), (Sphere(0.5), (0, 0, 1, 0.5)), (Cylinder(0.1, 4), gray), (Sphere(0.1), gray),
        (Sphere(0.1), gray), (Mesh("meshes/x/part.stl", (2, 2, 2), str(tmp_path)), gray),
    ]  # fmt: skip
    assert_allclose([v.placement.translation[2] for v in robot.description.visuals], [0, 1, 2, 4, 0, 0], atol=1e-14)
    assert ["ellipsoid is not shown" in warning for warning in robot.warnings] == [True]


# --- includes -----------------------------------------------------------------------------------------------------


def test_includes(tmp_path):
    """Relative to the main file's folder, in place, for any root element; a line number is that of the included file."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "main.xml").write_text(model('<include file="parts/arm.xml"/>', '<include file="defaults.xml"/>'))
    (tmp_path / "defaults.xml").write_text('<mujocoinclude><default><joint damping="3"/></default></mujocoinclude>')
    (tmp_path / "parts" / "arm.xml").write_text("<x>" + body("a", '<include file="parts/hand.xml"/>') + "</x>")
    (tmp_path / "parts" / "hand.xml").write_text('<x>\n<joint name="j" odd="1"/>\n</x>')
    robot = sarrus.load(tmp_path / "main.xml")
    assert specs(robot)["j"].joint.damping[0] == 3
    assert robot.warnings == ("parts/hand.xml:2: attribute 'odd' of <joint> is not read",)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.xml": '<include file="b.xml"/>', "b.xml": '<include file="a.xml"/>'},
            "b.xml:1: .*'a.xml', which the main file includes already",
        ),
        ({"a.xml": '<include file="a.xml"/>'}, "a.xml:1: .*'a.xml', which the main file includes already"),
        (
            {"a.xml": '<include file="b.xml"/><include file="./b.xml"/>', "b.xml": ""},
            "'./b.xml', which a.xml:1 includes already",
        ),
        ({"a.xml": '<include file="b.xml"/>'}, "a.xml:1: <include> cannot read 'b.xml': No such file"),
        ({"a.xml": '<include file="../b.xml"/>'}, "a.xml:1: <include> names .*outside of the main file's folder"),
        ({"a.xml": '<include file="/etc/passwd"/>'}, "outside of the main file's folder"),
        ({"a.xml": '<include file="."/>'}, "outside of the main file's folder"),
        ({"a.xml": "<include/>"}, "a.xml:1: <include> has no file"),
    ],
)
def test_bad_includes(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(f"<mujoco>{text}</mujoco>")
    with pytest.raises(sarrus.ModelError, match=message):
        sarrus.load(tmp_path / "a.xml")
    with pytest.raises(sarrus.ModelError, match=r"needs the folder of the document|has no file"):
        sarrus.loads(f"<mujoco>{files['a.xml']}</mujoco>")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX'")
@pytest.mark.parametrize(
    ("kind", "message"),
    [("link", "outside of the main file's folder"), ("pipe", "it is no regular file"), ("folder", "it is no regular file"),
     ("device", "outside of the main file's folder"), ("large", "expected at most 1000")],
)  # fmt: skip
def test_includes_are_files_of_the_folder(tmp_path, monkeypatch, kind, message):
    """By real path; reading a pipe or a device might not end."""
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.xml").write_text("<mujoco/>")
    (folder / "link").symlink_to("../secret.xml")
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "device").symlink_to("/dev/zero")
    (folder / "large").write_text("<mujoco/>" + " " * 1000)
    monkeypatch.setattr(mjcf_document, "LARGEST", 1000)
    (folder / "a.xml").write_text(f'<mujoco><include file="{kind}"/></mujoco>')
    with pytest.raises(sarrus.ModelError, match=message):
        sarrus.load(folder / "a.xml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links are POSIX'")
def test_files_beside_the_folder_of_the_model(tmp_path):
    """MuJoCo reads them; here the caller states the allowed folders."""
    (tmp_path / "robot").mkdir()
    (tmp_path / "common").mkdir()
    text = model(
        body("a", '<joint name="j"/>', '<geom type="mesh" mesh="m"/>'),
        '<asset><mesh name="m" file="../common/m.stl"/></asset>',
    )
    path = tmp_path / "robot" / "robot.xml"
    path.write_text(text.replace("<worldbody>", '<include file="../common/floor.xml"/><worldbody>', 1))
    (tmp_path / "common" / "floor.xml").write_text(
        '<mujoco><worldbody><geom type="plane" size="1 1 .1"/></worldbody></mujoco>'
    )
    (tmp_path / "common" / "m.stl").write_text("solid m\nendsolid m\n")
    with pytest.raises(
        sarrus.ModelError, match=r"outside of the main file's folder: .*load\(\.\.\., package_dirs=\[\.\.\.\]\) allows"
    ):
        sarrus.load(path)
    for folders in ([tmp_path], [tmp_path / "common"]):
        robot = sarrus.load(path, package_dirs=folders)
        assert robot.nv == 1 and any("its file or trimesh is missing" in one for one in robot.warnings) != READS_MESHES
    with pytest.raises(sarrus.ModelError, match="outside of the main file's folder"):
        sarrus.load(path, package_dirs=[tmp_path / "robot"])


def test_masks_of_meshes_that_are_not_there():
    """Shapes that are not read have no group."""
    masks = ('contype="0" conaffinity="1"', 'contype="1" conaffinity="0"')
    geoms = "".join(f'<geom type="mesh" mesh="m" {one}/>' for one in masks)
    text = model(
        '<geom type="plane" size="1 1 .1"/>' + body("a", "<freejoint/>", geoms, '<geom size=".1"/>'),
        '<asset><mesh name="m" file="no.stl"/></asset>',
    )
    robot = sarrus.loads(text)
    assert [spec.body for spec in robot.description.shapes] == ["ground", "a"]
    assert any("a mesh in <geom> is not read as a collision shape" in one for one in robot.warnings)


def test_a_link_to_an_include_is_that_include(tmp_path):
    (tmp_path / "b.xml").write_text("<mujoco/>")
    (tmp_path / "c.xml").symlink_to("b.xml")
    (tmp_path / "a.xml").write_text('<mujoco><include file="b.xml"/><include file="c.xml"/></mujoco>')
    with pytest.raises(sarrus.ModelError, match=r"'c.xml', which a.xml:1 includes already"):
        sarrus.load(tmp_path / "a.xml")


# --- what is warned about -----------------------------------------------------------------------------------------


def test_what_is_not_read_is_told_once_by_kind():
    robot = sarrus.loads(
        model(
            body("a", '<joint name="j" damping="1 2" odd="3"/>', attributes='gravcomp="1"')
            + body("b", '<joint name="k" stiffness="1 0 2" odd="3"/>', attributes='mocap="true"')
            + body("c", '<joint name="l" type="ball" range="0 30"/><thing/><plugin plugin="cable"/>'),
            '<option density="1"/><foo/><sensor><gyro site="none"/></sensor><custom><numeric name="x"/></custom>',
            '<tendon><spatial><site site="s"/></spatial></tendon>',
        )
    )
    assert sorted(robot.warnings) == [
        "<string>:2: <plugin> in <body> is not read",
        "<string>:2: <thing> in <body> is not read",
        "<string>:2: a mocap body does not move",
        "<string>:2: attribute 'odd' of <joint> is not read (and 1 more)",
        "<string>:2: gravcomp is not read",
        "<string>:2: the limit of a ball joint is not read",
        "<string>:3: <foo> in <mujoco> is not read",
        "<string>:3: the drag of the medium is not read",
        "<string>:4: <spatial> tendons other than springs between two sites are not read",
    ]


def test_ranges_that_hold_only_if_told():
    """With autolimits false, a range requires limited="true"."""
    text = model(body("a", '<joint name="j" range="-1 1" {}/>'), '<compiler angle="radian" autolimits="false"/>')
    assert joint_of(text.format("")).limits is None
    assert "range of <joint> is not read: autolimits is false" in sarrus.loads(text.format("")).warnings[0]
    assert_allclose(np.ravel(joint_of(text.format('limited="true"')).limits), [-1, 1])
    assert joint_of(text.format('limited="false"').replace('autolimits="false"', "")).limits is None


def test_flags_switch_terms_off():
    text = model(
        body("a", '<joint name="j" damping="1" stiffness="2" frictionloss="3" range="-1 1"/>'), "<option>{}</option>"
    )
    off = '<flag spring="disable" damper="disable" frictionloss="disable" limit="disable" gravity="disable"/>'
    robot = sarrus.loads(text.format(off))
    assert repr(specs(robot)["j"].joint) == "Revolute('z')"
    assert_array_equal(robot.gravity, 0)
    assert len(robot.warnings) == 5
    assert (
        repr(joint_of(text.format('<flag passive="disable"/>')))
        == "Revolute('z', friction=3, limits=(-0.0174533, 0.0174533))"
    )


# --- what is refused ----------------------------------------------------------------------------------------------

BAD = {
    "another root": ("<mujoco2/>", "<mujoco2> is not the root of a URDF"),
    "no bodies": ("<mujoco/>", "needs at least one body"),
    "broken": ("<mujoco><worldbody></mujoco>", "<string>:1: not well-formed XML: mismatched tag"),
    "entity bomb": ('<!DOCTYPE m [<!ENTITY a "b">]><mujoco model="&a;"/>', "a DOCTYPE, or an entity, is not allowed"),
    "nested too deep": ("<mujoco><worldbody>" + "<body>" * 10**5, "is nested deeper than 500 elements"),
    "too many": (model("<body/>" * 10**5), "exceeds the limit of 50000 bodies, joints"),
    "too large a number": (model(body("a", attributes='pos="0 0 1e400"')), "<body name='a'> has a number in pos that is not finite"),
    "huge sizes": (model('<body name="a"><geom size="1e200"/></body>'), "<string>:2: <geom> of <body name='a'>: about_com = .* is not finite"),
    "tiny sizes": (model('<body name="a"><geom size="1e-320"/></body>'), "<geom> of <body name='a'> gives .* whose volume is zero"),
    "tiny capsule": (model('<body name="a"><geom type="capsule" mass="1" size="1e-200 1e-200"/></body>'), "whose volume is zero"),
    "huge gear": (
        model(body("a", '<joint name="j"/>'), '<actuator><general joint="j" gear="1e200" armature="1"/></actuator>'),
        "Revolute: armature must be finite",
    ),
    "no way to turn": (
        model(body("a", '<joint type="slide" springdamper="1 1"/><joint type="slide"/>')),
        "a body, or joint, has no inertia, or several joints move it in the same way",
    ),
    "no number": (model(body("a", '<joint armature="x"/>')), "<joint> of <body name='a'> expects a number in armature, got 'x'"),
    "too many numbers": (model(body("a", f'<joint damping="{"1 " * 10**6}"/>')), "expects at most 3 numbers in damping"),
    "unknown type": (model(body("a", '<joint type="screw"/>')), "expects one of free, ball, slide, hinge in type, got 'screw'"),
    "unknown class": (model(body("a", '<joint class="x"/>')), "has an unknown class 'x'; did you mean|has an unknown class 'x'"),
    "unknown childclass": (model(body("a", "<joint/>", attributes='childclass="x"')), "has an unknown class 'x'"),
    "class twice": (model("", "<default><default class='a'/><default class='a'/></default>"), "needs a unique class: there is another 'a'"),
    "class without a name": (model("", "<default><default/></default>"), "<default> needs a unique class"),
    "main by another name": (model("", "<default class='a'/>"), "is the outermost and has class 'a'; expected 'main'"),
    "two bodies of a name": (model(body("a") + body("a")), "<body name='a'> has the same name as the element at <string>:2"),
    "two joints of a name": (model(body("a", '<joint name="j"/><joint name="j"/>')), "<joint name='j'> has the same name as the element at"),
    "world by name": (model(body("world")), "<body name='world'> has the name of the world"),
    "two orientations": (model(body("a", attributes='euler="0 0 0" quat="1 0 0 0"')), "has two orientations, quat and euler"),
    "no direction": (model(body("a", attributes='quat="0 0 0 0"')), r"<string>:2: .*is not a rotation"),
    "zaxis of no length": (model(body("a", attributes='zaxis="0 0 0"')), "<string>:2: <body name='a'>: a direction of zero length"),
    "xyaxes along one line": (model(body("a", attributes='xyaxes="1 0 0 2 0 0"')), "<string>:2: <body name='a'>: "),
    "axis of no length": (model(body("a", '<joint axis="0 0 0"/>')), "<string>:2: <joint> of <body name='a'>: an axis must be longer than 1e-12"),
    "fromto of no length": (model('<body name="a"><geom type="capsule" size="1" fromto="1 1 1 1 1 1"/></body>'), "has two points in fromto whose distance is zero"),
    "size missing": (model('<body name="a"><geom type="box" size="1 1"/></body>'), "of type box expects 3 positive numbers in size, got 1.0 1.0"),
    "negative mass": (model('<body name="a"><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'), "has a negative mass: -1 kg"),
    "inertial without moments": (model('<body name="a"><inertial pos="0 0 0" mass="1"/></body>'), "expects one of diaginertia and fullinertia"),
    "inertial without pos": (model('<body name="a"><inertial mass="1" diaginertia="1 1 1"/></body>'), "<inertial> of <body name='a'> has no pos"),
    "two inertials": (model(body("a", MASS)), "<inertial> of <body name='a'> appears twice"),
    "mass from a mesh": (model('<body name="a"><geom type="mesh" mesh="m"/></body>'), "gives <body name='a'> its mass by mesh 'm', which does not exist"),
    "free and hinged": (model(body("a", "<freejoint/><joint/>")), "is free; expected it to be the only joint of a body in the world"),
    "free on a body": (model(body("a", body("b", "<freejoint/>"))), "is free; expected it to be the only joint"),
    "joint of the world": (model("<joint/>"), "<joint> is in the world, which does not move"),
    "attach": (model('<attach model="x" body="y"/>'), "<attach> generates bodies and is not read: compile the file with MuJoCo"),
    "replicate nothing": (model('<replicate count="0"/>'), "<replicate> expects a count of one or more, got 0"),
    "replicate without a count": (model("<replicate/>"), "<replicate> has no count"),
    "replicate a bomb": (model('<replicate count="999">' * 9 + "</replicate>" * 9), "<replicate> generates more than 50000 elements"),
    "reference to what is replicated": (
        model(f'<replicate count="2">{body("a")}</replicate>', '<equality><connect body1="a" anchor="0 0 0"/></equality>'),
        "<connect> names an unknown body1 'a'; did you mean 'a[01]'",
    ),
    "global coordinates": (model(body("a"), '<compiler coordinate="global"/>'), "has global coordinates"),
    "eulerseq": (model(body("a"), '<compiler eulerseq="xyw"/>'), "expects three letters of xyzXYZ in eulerseq, got 'xyw'"),
    "limits the wrong way": (model(body("a", '<joint range="2 1"/>')), "has the lower end of range above the upper: 2 > 1"),
    "connect to nobody": (model(body("a"), '<equality><connect body1="b" anchor="0 0 0"/></equality>'), "<connect> names an unknown body1 'b'"),
    "connect nowhere": (model(body("a"), '<equality><connect body1="a"/></equality>'), "<connect> has no anchor"),
    "connect to itself": (model(body("a"), '<equality><connect body1="a" body2="a" anchor="0 0 0"/></equality>'), "<string>:3: .* connects body 'a' to itself"),
    "weld of no site": (model(body("a"), '<equality><weld site1="s" site2="t"/></equality>'), "<weld> names an unknown site1 's'"),
    "joint without joint1": (model(body("a"), "<equality><joint/></equality>"), "<joint> has no joint1"),
    "joint with itself": (model(body("a", '<joint name="j"/>'), '<equality><joint joint1="j" joint2="j"/></equality>'), "<joint> names 'j' twice"),
    "ball coupled": (model(body("a", '<joint name="j" type="ball"/>'), '<equality><joint joint1="j"/></equality>'), "uses joint 'j', which has several coordinates"),
    "flex": (model(body("a"), '<equality><flex flex="f"/></equality>'), "<flex> is an equality that is not read"),
    "spatial": (model(body("a"), '<tendon><spatial name="s"/></tendon><equality><tendon tendon1="s"/></equality>'), "uses the spatial tendon 's'"),
    "motor of nothing": (model(body("a"), '<actuator><motor joint="j"/></actuator>'), "<motor> names an unknown joint 'j'"),
    "name that clears the screen": (model(body("&#x9b;2J")), r"a body needs a name that can be printed"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_models(text, message):
    with pytest.raises(sarrus.ModelError, match=message):
        sarrus.loads(text)


def test_floating_base_is_for_urdf():
    with pytest.raises(sarrus.ModelError, match="floating_base does not apply to MJCF"):
        sarrus.loads(model(body("a")), floating_base=True)


def test_chains_as_deep_as_they_are_long():
    n = 200
    text = "".join(f'<body name="b{k}" pos="0 0 1">{MASS}<joint/>' for k in range(n)) + "</body>" * n
    robot = sarrus.loads(model(text))
    assert_allclose(robot.pose(np.zeros(n), f"b{n - 1}")[2, 3], n)


# --- masses from meshes -------------------------------------------------------------------------------------------


def write_boxes(path, *boxes):
    """Write a binary STL of boxes, each of half sizes about a centre; triangles are counterclockwise from outside."""
    faces = []
    for half, center in boxes:
        for k in range(3):
            for sign in (-1, 1):
                u, v, w = np.eye(3)[k] * sign, np.eye(3)[(k + 1) % 3], np.eye(3)[(k + 2) % 3] * sign
                a, b, c, d = (u - v - w, u + v - w, u + v + w, u - v + w)
                faces += [(a, b, c), (a, c, d)]
        faces[-12:] = (np.array(faces[-12:]) * half + center).tolist()
    record = np.zeros(len(faces), np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")]))
    record["corners"] = faces
    path.write_bytes(bytes(80) + np.uint32(len(faces)).tobytes() + record.tobytes())


MESHES = """<mujoco><compiler meshdir="parts"/><asset><mesh file="part.stl" {}/></asset>
  <worldbody><body name="a"><joint/><geom type="mesh" mesh="part" {} pos="0 0 1" euler="90 0 0"/></body></worldbody></mujoco>"""


def with_mesh(tmp_path, *boxes, asset="", geom=""):
    (tmp_path / "parts").mkdir(exist_ok=True)
    write_boxes(tmp_path / "parts" / "part.stl", *boxes)
    (tmp_path / "a.xml").write_text(MESHES.format(asset, geom))
    return tmp_path / "a.xml"


@pytest.mark.parametrize("way", ["legacy", "exact", "convex"])
def test_mass_of_a_box_mesh(tmp_path, way):
    """2 x 4 x 6 m about (1, 0, 0), from a mesh of half that size, mirrored; 1000 kg/m3."""
    pytest.importorskip("trimesh")
    path = with_mesh(tmp_path, ((0.5, 1, 1.5), (0.5, 0, 0)), asset=f'scale="2 2 -2" inertia="{way}"')
    found = inertia(sarrus.load(path), "a")
    assert_allclose((found.mass, *found.com), (48000, 1, 0, 1), atol=1e-9)
    assert_allclose(found.about_com, np.diag([4000 * 52, 4000 * 20, 4000 * 40]), atol=1e-6)  # its y and z are turned
    heavier = inertia(sarrus.load(with_mesh(tmp_path, ((1, 1, 1), (0, 0, 0)), geom='mass="6"')), "a")
    assert_allclose((heavier.mass, *np.diag(heavier.about_com)), (6, 4, 4, 4))


def test_meshes_that_are_none(tmp_path):
    pytest.importorskip("trimesh")
    path = tmp_path / "run.csv"
    path.write_text("t,q")
    for name in (path, str(path)):
        with pytest.raises(sarrus.ModelError, match=r"cannot read mesh 'run\.csv'"):
            triangles(name)


def test_mass_of_a_surface(tmp_path):
    """A cube of edge 2: six faces of 4 m2, by 1 kg/m2; I = 10/9 m (edge/2)^2."""
    pytest.importorskip("trimesh")
    found = inertia(
        sarrus.load(with_mesh(tmp_path, ((1, 1, 1), (0, 0, 0)), asset='inertia="shell"', geom='density="1"')), "a"
    )
    assert_allclose(found.mass, 24)
    assert_allclose(found.about_com, 24 * 10 / 9 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("way", ["legacy", "exact", "convex", "shell"])
def test_mass_of_any_mesh_is_that_of_mujoco(tmp_path, way):
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("trimesh")
    two = ((1, 0.5, 0.2), (0, 0, 0)), ((0.2, 0.3, 1), (0.7, 0, 1.5))
    path = with_mesh(tmp_path, *two, asset=f'inertia="{way}" scale="1 -2 .5" refpos=".1 .2 .3" refquat="1 0 0 1"')
    ours, theirs = (
        inertia(r, "a") for r in (sarrus.load(path), sarrus.io.from_mujoco(mujoco.MjModel.from_xml_path(str(path))))
    )
    assert_allclose(ours.matrix, theirs.matrix, rtol=0, atol=1e-7 * abs(theirs.matrix).max())


def test_meshes_that_give_no_mass(tmp_path, monkeypatch):
    path = with_mesh(tmp_path, ((1, 1, 1), (0, 0, 0)))
    text = path.read_text()

    def refused(message, text=text):
        path.write_text(text)
        with pytest.raises(sarrus.ModelError, match=message):
            sarrus.load(path)

    refused("of a shape fitted to a mesh|by a shape fitted to a mesh", text.replace('type="mesh"', 'type="box"'))
    refused(r"outside of the file's folder", text.replace('meshdir="parts"', 'meshdir="../parts"'))
    refused("whose file 'parts.x/part.stl' does not exist: .*from_mujoco", text.replace('"parts"', '"parts.x"'))
    monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
    refused(r"<body name='a'> its mass by mesh 'part', which needs trimesh \(pip install trimesh\)")
    monkeypatch.undo()
    pytest.importorskip("trimesh")
    (tmp_path / "parts" / "part.stl").write_bytes(b"solid nothing")
    refused(r"a.xml:2: <geom> of <body name='a'>: (cannot read mesh|mesh) 'part.stl'")


def test_a_gear_acts_on_what_there_is():
    """The square of the gear overflows, but there is no armature to multiply."""
    text = model(body("a", '<joint name="j"/>'), '<actuator><general joint="j" gear="1e200" damping="0"/></actuator>')
    assert (joint_of(text).armature, joint_of(text).damping) == (0.0, 0.0)


def test_two_bodies_tied_a_hundred_times_over():
    """Dependent rows cost the cube of their number when a mechanism is built."""
    body = '<body name="{0}"><freejoint/><geom size="0.1"/></body>'
    tie = '<connect body1="a" body2="b" anchor="0 0 0"/>'
    text = "<mujoco><worldbody>{}{}</worldbody><equality>{}</equality></mujoco>"
    assert sarrus.loads(text.format(body.format("a"), body.format("b"), 3 * tie)).nc == 9
    with pytest.raises(sarrus.ModelError, match="101 joints and constraints connect 'a' and 'b'"):
        sarrus.loads(text.format(body.format("a"), body.format("b"), 101 * tie))


@pytest.mark.parametrize(
    ("begins", "tie", "ends"),
    [
        (
            "<mujoco><worldbody><body name='a'><freejoint/></body><body name='b'><freejoint/></body></worldbody><equality>",
            "<connect body1='a' body2='b' anchor='0 0 0'/>",
            "</equality></mujoco>",
        ),
        (
            "<robot><link name='a'/><link name='b'/>",
            "<joint name='{0}' type='fixed'><parent link='a'/><child link='b'/></joint>",
            "</robot>",
        ),
        (
            "<sdf version='1.9'><model name='m'><link name='a'/><link name='b'/>",
            "<joint name='j{0}' type='fixed'><parent>a</parent><child>b</child></joint>",
            "</model></sdf>",
        ),
    ],
)
def test_ties_are_counted_before_they_are_read(begins, tie, ends, monkeypatch):
    """Thousands of them would take seconds before an error."""
    monkeypatch.setattr(sarrus.Builder, "add_joint", lambda *a, **k: pytest.fail("a joint was read"))
    text = begins + "".join(tie.format(k) for k in range(101)) + ends
    with pytest.raises(sarrus.ModelError, match="101 joints and constraints connect"):
        sarrus.loads(text)


# --- attributes of several numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "warning"),
    [
        ('<actuator><motor joint="j" forcerange="-1 5"/></actuator>', "effort limits of the two directions differ; the larger one is used for both"),
        ('<tendon><fixed name="t" range="0 1"><joint joint="j" coef="1"/></fixed></tendon>', "range of tendons is not read"),
        ('<tendon><fixed name="t" actuatorfrcrange="-1 1"><joint joint="j" coef="1"/></fixed></tendon>', "actuatorfrcrange of tendons is not read"),
    ],
)  # fmt: skip
def test_what_stands_behind_the_first_number(sections, warning):
    (said,) = sarrus.loads(model(body("a", '<joint name="j"/>'), sections)).warnings
    assert said == f"<string>:3: {warning}"


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_key_with_a_quaternion_of_zeros():
    """MuJoCo reads it as no rotation; here with a warning and the line of the key."""
    robot = sarrus.loads(
        model(body("a", '<freejoint name="f"/>'), '<keyframe>\n<key name="k" qpos="1 2 3 0 0 0 0"/></keyframe>')
    )
    assert robot.configuration("k").tolist() == [0, 0, 0, 1, 1, 2, 3]
    assert robot.warnings == (
        "<string>:4: key 'k' has a quaternion of zeros for joint 'f': read as no rotation, as in MuJoCo",
    )


def test_keys_that_share_a_name():
    keys = '<keyframe><key name="k" qpos="1"/>\n<key name="k" qpos="2"/></keyframe>'
    with pytest.raises(sarrus.ModelError, match=r"<string>:4: <key name='k'>: has the same name as another key"):
        sarrus.loads(model(body("a", '<joint name="j"/>'), keys))


# --- what others fall back on ---------------------------------------------------------------------------------------


def test_the_least_mass_stands_for_an_inertial_that_is_not_there():
    text = model(
        '<body name="a"><joint/><geom size="1"/></body>',
        '<compiler inertiafromgeom="false" boundmass="2" boundinertia="3"/>',
    )
    I = inertia(sarrus.loads(text), "a")
    assert (I.mass, np.diag(I.about_com).tolist()) == (2, [3, 3, 3])


@pytest.mark.parametrize("told", ['vertex="0 0 0 1 0 0 0 1 0 0 0 1"', 'builtin="sphere" params="2"'])
def test_meshes_without_files_are_left_to_mujoco(told):
    text = model('<body><freejoint/><geom type="mesh" mesh="m"/></body>', f'<asset><mesh name="m" {told}/></asset>')
    with pytest.raises(sarrus.ModelError, match=r"<mesh name='m'> is defined by \w+ instead of a file.*from_mujoco"):
        sarrus.loads(text)
