"""SDF: small documents with values by hand, errors, and published files."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference_models
import sarrus
from sarrus.io import document, sdf, sdf_document
from sarrus.shapes import Box, Cylinder, Mesh, Sphere

UNIT = "<inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"


def link(name, pose="", inside=UNIT, relative_to=None):
    at = "" if relative_to is None else f' relative_to="{relative_to}"'
    return f'<link name="{name}"><pose{at}>{pose}</pose>{inside}</link>'


def joint(name, parent, child, kind="revolute", inside="<axis><xyz>0 0 1</xyz></axis>"):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def model(*parts, version="1.9", name="m", attributes=""):
    return f'<sdf version="{version}">\n<model name="{name}" {attributes}>\n' + "\n".join(parts) + "\n</model>\n</sdf>"


def world(*parts, version="1.9"):
    return f'<sdf version="{version}">\n<world name="w">\n' + "\n".join(parts) + "\n</world>\n</sdf>"


def a_model(*parts, name="m"):
    return f'<model name="{name}">' + "".join(parts) + "</model>"


def specs(robot):
    return {spec.name: spec for spec in robot.description.joints}


def inertia(robot, body):
    return next(spec.inertia for spec in robot.description.bodies if spec.name == body)


def placed(robot, frame):
    """Return the pose of a frame in the file."""
    return robot.pose(robot.assemble(), frame)


# --- frames ---------------------------------------------------------------------------------------------------------


def test_pendulum():
    """From the version of Gazebo's tutorials to the newest."""
    text = model(
        link("bob", "0 0 3 0 0 0", "<inertial><pose>0 0 -0.5 0 0 0</pose><mass>2</mass><inertia><ixx>0</ixx><iyy>0</iyy><izz>0</izz></inertia></inertial>"),
        joint("pin", "world", "bob", inside="<axis><xyz>0 1 0</xyz></axis>"), name="pendulum", version="{}",
    )  # fmt: skip
    for minor in range(3, 13):
        p = sarrus.loads(text.replace("{}", f"1.{minor}"))
        assert (p.name, p.joints, p.warnings) == ("pendulum", ("pin",), ())
        assert_allclose(p.gravity_forces([np.pi / 2]), [9.81])
        assert_allclose(p.pose([0.3], "bob")[:3, 3], [0, 0, 3])


def test_what_nothing_holds_floats_from_where_the_file_has_it():
    r = sarrus.loads(model("<pose>1 2 3 0 0 1.5707963267948966</pose>", link("a", "1 0 0 0 0 0")))
    assert (r.joint("root_joint").kind, r.nv) == ("Free", 6)
    assert_allclose(r.assemble(), [0, 0, np.sqrt(0.5), np.sqrt(0.5), 1, 3, 3])
    r = sarrus.loads(model(link("a", "1 0 0 0 0 0")), floating_base=False)
    assert r.nv == 0
    assert_allclose(r.pose([], "a")[:3, 3], [1, 0, 0])


def test_the_canonical_link_is_the_root():
    parts = link("a"), link("b", "1 0 0 0 0 0"), joint("j", "a", "b")
    assert specs(sarrus.loads(model(*parts)))["root_joint"].child == "a"
    assert specs(sarrus.loads(model(*parts, attributes='canonical_link="b"')))["root_joint"].child == "b"


def test_poses_are_relative_to_frames():
    """A link on a frame on a joint on a link, each a quarter turn about z and a metre along x further."""
    step = "1 0 0 0 0 90"
    text = model(
        f'<pose degrees="true">{step}</pose>',
        f'<link name="a"><pose degrees="true">{step}</pose>{UNIT}</link>',
        f'<joint name="j" type="revolute"><pose degrees="true" relative_to="a">{step}</pose><parent>a</parent><child>b</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint>",
        f'<frame name="f" attached_to="a"><pose degrees="true" relative_to="j">{step}</pose></frame>',
        f'<link name="b"><pose degrees="true" relative_to="f">{step}</pose>{UNIT}</link>',
        '<frame name="g" attached_to="b"/>',
        '<frame name="h" attached_to="f"><pose rotation_format="quat_xyzw">0 0 2 0 0 0.6 0.8</pose></frame>',
    )
    r = sarrus.loads(text)
    X = sarrus.Transform.from_rpy(0, 0, np.pi / 2, (1, 0, 0))
    a = X @ X
    for frame, expected in {"a": a, "f": a @ X @ X, "b": a @ X @ X @ X, "g": a @ X @ X @ X}.items():
        assert_allclose(placed(r, frame), expected.matrix, atol=1e-14)
    f, h = (next(x for x in r.description.frames if x.name == name) for name in "fh")
    assert f.body == h.body == "a"
    turn = sarrus.Rotation.from_axis_angle("z", 2 * np.arctan2(0.6, 0.8))
    assert_allclose(placed(r, "h")[:3, :3], placed(r, "f")[:3, :3] @ turn.matrix, atol=1e-14)
    j = specs(r)["j"]
    assert_allclose(j.at_parent.matrix, X.matrix, atol=1e-14)
    assert_allclose((j.at_parent @ j.at_child.inverse()).matrix, (X @ X @ X).matrix, atol=1e-14)


def test_poses_up_to_1_6_say_frame():
    r = sarrus.loads(
        model(link("a", "1 0 0 0 0 0"), link("b", "0 1 0 0 0 0").replace("<pose>", '<pose frame="a">'), version="1.6")
    )
    assert_allclose(placed(r, "b")[:3, 3], [1, 1, 0])


QUARTER = "0 0 0 0 0 1.5707963267948966"


@pytest.mark.parametrize(
    ("version", "told", "axis"),
    [
        ("1.4", "<xyz>1 0 0</xyz>", [0, -1, 0]),  # in the model's frame, in which the link is turned
        ("1.4", "<xyz>1 0 0</xyz><use_parent_model_frame>0</use_parent_model_frame>", [1, 0, 0]),
        ("1.5", "<xyz>1 0 0</xyz>", [1, 0, 0]),
        ("1.6", "<xyz>1 0 0</xyz><use_parent_model_frame>true</use_parent_model_frame>", [0, -1, 0]),
        ("1.7", "<xyz>1 0 0</xyz>", [1, 0, 0]),
        ("1.7", '<xyz expressed_in="__model__">1 0 0</xyz>', [0, -1, 0]),
        ("1.7", '<xyz expressed_in="a">2 0 0</xyz>', [0, -1, 0]),
        ("1.7", '<xyz expressed_in="f">1 0 0</xyz>', [1, 0, 0]),
        ("1.12", "", [0, 0, 1]),
    ],
)
def test_the_frame_of_an_axis(version, told, axis):
    """The model is rotated, so that its axes differ from the world's."""
    parts = (
        "<pose>0 0 0 1 0 0</pose>",
        link("a"),
        link("b", QUARTER),
        joint("j", "a", "b", inside=f"<axis>{told}</axis>"),
    )
    r = sarrus.loads(model(*parts, '<frame name="f" attached_to="b"/>', version=version))
    assert_allclose(specs(r)["j"].joint.axis, axis, atol=1e-14)


def test_nested_models():
    inner = a_model(
        "<pose>0 0 1 0 0 0</pose>", link("x", "1 0 0 0 0 0"), link("y", "0 1 0 0 0 0"), joint("k", "x", "y"),
        '<frame name="grip" attached_to="y"><pose>0 0 0.5 0 0 0</pose></frame>', name="inner",
    )  # fmt: skip
    r = sarrus.loads(model(link("a"), inner, joint("j", "a", "inner::y"), joint("l", "a", "inner", "fixed", "")))
    assert r.bodies == ("a", "inner::x", "inner::y")
    assert (r.joints[1:], r.loop_joints) == (("inner::k", "j"), ()) or r.loop_joints
    assert_allclose(placed(r, "inner::y")[:3, 3], [0, 1, 1])
    assert_allclose(placed(r, "inner::grip")[:3, 3], [0, 1, 1.5])
    assert specs(r)["l"].child == "inner::x"  # the model's canonical link
    assert_allclose(specs(r)["l"].at_child.translation, [-1, 0, 0])


def test_a_placement_frame_is_where_the_pose_puts_it():
    inner = (
        '<model name="inner" placement_frame="tip"><pose>5 0 0 0 0 0</pose>' + link("x", "0 0 1 0 0 0") + "{}</model>"
    )
    tip = '<frame name="tip" attached_to="x"><pose>0 0 2 0 0 0</pose></frame>'
    r = sarrus.loads(model(link("a"), inner.format(tip), joint("j", "a", "inner::tip")))
    assert_allclose(placed(r, "inner::tip")[:3, 3], [5, 0, 0])
    assert_allclose(placed(r, "inner::x")[:3, 3], [5, 0, -2])


# --- loops ----------------------------------------------------------------------------------------------------------

# bars of 1 m upwards at x = 0 and 2, and a coupler
BARS = link("base"), link("left", relative_to="base"), link("top", "0 0 1 0 0 0"), link("right", "2 0 0 0 0 0")
Y = "<axis><xyz>0 1 0</xyz></axis>"
HINGED = (
    joint("w", "world", "base", "fixed", ""), joint("j_left", "base", "left", inside=Y), joint("j_top", "left", "top", inside=Y),
    joint("j_right", "base", "right", inside=Y),
)  # fmt: skip
PIN = joint("pin", "top", "right", inside=f"<pose>0 0 1 0 0 0</pose>{Y}")


def test_a_link_with_two_parents_closes_a_loop():
    """The four-bar of Gazebo's tutorials; other readers omit one of its joints."""
    r = sarrus.loads(model(*BARS, *HINGED, PIN))
    assert (len(r.loop_joints), r.nc, r.nv) == (1, 5, 3)
    assert np.abs(r.constraint_residual(r.neutral())).max() < 1e-14
    q = r.assemble(fixed={"j_left": 0.3})
    assert_allclose(r.pose(q, "top")[:3, :3], np.eye(3), atol=1e-12)
    assert_allclose(r.pose(q, "right")[:3, :3], r.pose(q, "left")[:3, :3], atol=1e-12)


def test_a_directed_cycle_has_no_root_and_none_is_needed():
    """Four links, each the child of the previous one: the first is the root."""
    places = {"a": "0 0 0", "b": "1 0 0", "c": "1 0 1", "d": "0 0 1"}
    names = list(places)
    ring = [joint(f"j{k}", names[k - 1], names[k], inside=Y) for k in range(4)]
    r = sarrus.loads(model(*(link(name, f"{place} 0 0 0") for name, place in places.items()), *ring))
    assert (specs(r)["root_joint"].child, len(r.loop_joints), r.nv) == ("a", 1, 9)
    q = r.assemble()
    assert np.abs(r.constraint_residual(q)).max() < 1e-14
    assert r.nv - np.linalg.matrix_rank(r.constraint_jacobian(q), tol=1e-9) == 7


def test_the_sign_of_a_joint_is_its_direction_whatever_the_tree():
    """The child is on the ground, and the parent hangs on it."""
    r = sarrus.loads(
        model(
            link("a", "1 0 0 0 0 0"), link("b"), joint("w", "world", "b", "fixed", ""), joint("j", "a", "b", inside=Y)
        )
    )
    # b turns by q as seen from a
    q = [0.3]
    assert_allclose(r.pose(q, "a")[:3, :3].T, sarrus.Rotation.from_axis_angle("y", 0.3).matrix, atol=1e-14)
    assert_allclose(r.pose(q, "b"), np.eye(4), atol=1e-14)


# --- joints ---------------------------------------------------------------------------------------------------------


def one_joint(kind, inside, version="1.11"):
    return specs(sarrus.loads(model(link("a"), link("b"), joint("j", "a", "b", kind, inside), version=version)))["j"]


AXES = "<axis><xyz>1 0 0</xyz>{}</axis><axis2><xyz>0 1 0</xyz>{}</axis2>"


def test_kinds_of_joints():
    kinds = {
        "revolute": "Revolute", "continuous": "Revolute", "prismatic": "Prismatic", "ball": "Spherical", "fixed": "Fixed",
        "universal": "Universal", "revolute2": "Universal",
    }  # fmt: skip
    for kind, expected in kinds.items():
        assert one_joint(kind, AXES.format("", "")).kind == expected
    two = one_joint(
        "revolute2",
        AXES.format("<dynamics><damping>2</damping></dynamics>", "<limit><lower>-1</lower><upper>3</upper></limit>"),
    ).joint
    assert_allclose([two.axis1, two.axis2], [[1, 0, 0], [0, 1, 0]])
    assert_allclose(two.damping, [2, 0])
    assert_allclose(two.limits, [[-np.inf, -1], [np.inf, 3]])


@pytest.mark.parametrize(
    ("told", "lead"),
    [
        ("<screw_thread_pitch>0.5</screw_thread_pitch>", 0.5),
        ("<thread_pitch>10</thread_pitch>", -2 * np.pi / 10),
        ("<thread_pitch>10</thread_pitch><screw_thread_pitch>0.5</screw_thread_pitch>", 0.5),
    ],
)
def test_screws(told, lead):
    """The advance of a rotation about z: metres per turn of a right-handed screw, or radians per metre of a left-handed one."""
    r = sarrus.loads(model(link("a"), joint("j", "world", "a", "screw", f"<axis><xyz>0 0 1</xyz></axis>{told}")))
    assert_allclose(r.pose([2 * np.pi], "a")[:3, 3], [0, 0, lead], atol=1e-14)


def test_limits_springs_and_losses():
    inside = """<axis><limit><lower>-1</lower><upper>2</upper><effort>5</effort><velocity>3</velocity></limit>
        <dynamics><damping>0.1</damping><friction>0.2</friction><spring_stiffness>4</spring_stiffness><spring_reference>0.5</spring_reference>
        </dynamics></axis>"""
    j = one_joint("revolute", inside)
    assert_allclose(np.ravel(j.joint.limits), [-1, 2])
    values = [
        getattr(j.joint, name)[0]
        for name in ("velocity_limit", "effort_limit", "damping", "friction", "stiffness", "rest")
    ]
    assert_allclose(values, [3, 5, 0.1, 0.2, 4, 0.5])
    none = "<axis><limit><lower>-1e16</lower><upper>1e16</upper><effort>-1</effort><velocity>0</velocity></limit><dynamics/></axis>"
    assert one_joint("revolute", none).joint == one_joint("revolute", "<axis/>").joint


@pytest.mark.parametrize(
    ("effort", "driven"),
    [("", True), ("<effort>-1</effort>", True), ("<effort>2</effort>", True), ("<effort>0</effort>", False)],
)
def test_an_effort_of_zero_is_passive(effort, driven):
    for kind in ("revolute", "prismatic", "continuous"):
        assert one_joint(kind, f"<axis><limit>{effort}</limit></axis>").actuated is driven
    assert not one_joint("ball", "").actuated and not one_joint("fixed", "").actuated


GEAR = """<gearbox_ratio>4</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>
          <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 {}</xyz></axis2>"""


@pytest.mark.parametrize(("forward", "sign"), [(True, 1), (True, -1), (False, 1)])
def test_gearbox(forward, sign):
    """Angle of the large wheel = -4 times that of the small one, each from the base, about axis and axis2."""
    small = joint("small", *(("base", "a") if forward else ("a", "base")))
    gear = joint("gear", "a", "b", "gearbox", GEAR.format(sign))
    parts = (
        link("base"),
        link("a"),
        link("b"),
        joint("w", "world", "base", "fixed", ""),
        small,
        joint("large", "base", "b"),
        gear,
    )
    r = sarrus.loads(model(*parts))
    assert (r.joints[1:], r.constraints, r.warnings) == (("small", "large"), ("gear",), ())
    q = r.assemble(fixed={"small": 0.1})
    turned = [sarrus.Rotation.from_matrix(r.pose(q, body)[:3, :3]).log()[2] for body in "ab"]
    assert_allclose(sign * turned[1], -4 * turned[0], atol=1e-12)


def test_mimic():
    """q = 2 (q_leader - 0.1) + 0.3; the follower has no motor."""
    mimic = (
        '<axis><mimic joint="j"><multiplier>2</multiplier><offset>0.3</offset><reference>0.1</reference></mimic></axis>'
    )
    drakes = '<axis/><drake:mimic joint="j" multiplier="2" offset="0.1"/>'
    plugin = '<plugin name="p"><joint>j</joint><mimicJoint>k</mimicJoint><multiplier>2</multiplier><offset>.1</offset></plugin>'
    for inside, besides in ((mimic, ""), (drakes, ""), ("<axis/>", plugin)):
        r = sarrus.loads(model(*map(link, "abc"), joint("j", "a", "b"), joint("k", "b", "c", inside=inside), besides))
        assert (r.constraints, r.actuated, r.warnings) == (("k mimics j",), ("j",), ())
        q = r.neutral()
        q[r.joint("j").q_slice], q[r.joint("k").q_slice] = 0.4, 0.9
        assert_allclose(r.constraint_residual(q), 0.0, atol=1e-14)
    second = mimic.replace('joint="j"', 'joint="j" axis="axis2"')
    r = sarrus.loads(
        model(
            *map(link, "abc"),
            joint("j", "a", "b", "universal", AXES.format("", "")),
            joint("k", "b", "c", inside=second),
        )
    )
    assert r.description.constraints[0].terms == (("k", 0, (1.0,)), ("j", 1, (-2.0,)))


# --- links ----------------------------------------------------------------------------------------------------------


def test_defaults_of_inertia():
    r = sarrus.loads(model(link("none", inside=""), link("mass", inside="<inertial><mass>3</mass></inertial>")))
    assert inertia(r, "none") == sarrus.Inertia(1.0, np.zeros(3), np.eye(3))
    assert inertia(r, "mass") == sarrus.Inertia(3.0, np.zeros(3), np.eye(3))
    assert (
        "<link name='none'> has no <inertial>: it has SDF's defaults, 1 kg and 1 kg m² about each axis" in r.warnings[0]
    )


SHAPES = {  # shape, volume, moments per kg; a capsule's are those of its parts, integrated numerically
    "<box><size>1 2 3</size></box>": (6, [13 / 12, 10 / 12, 5 / 12]),
    "<sphere><radius>2</radius></sphere>": (32 / 3 * np.pi, [1.6, 1.6, 1.6]),
    "<cylinder><radius>1</radius><length>2</length></cylinder>": (2 * np.pi, [7 / 12, 7 / 12, 0.5]),
    "<ellipsoid><radii>1 2 3</radii></ellipsoid>": (8 * np.pi, [13 / 5, 10 / 5, 5 / 5]),
}


@pytest.mark.parametrize(("shape", "expected"), SHAPES.items())
def test_inertia_of_collisions(shape, expected):
    volume, moments = expected
    collision = (
        f"<collision name='c'><pose>1 0 0 0 0 0</pose><density>10</density><geometry>{shape}</geometry></collision>"
    )
    I = inertia(sarrus.loads(model(link("a", inside=f'<inertial auto="true"/>{collision}'))), "a")
    assert_allclose([I.mass, *I.com], [10 * volume, 1, 0, 0])
    assert_allclose(I.about_com, 10 * volume * np.diag(moments), atol=1e-12)
    water = collision.replace("<density>10</density>", "")
    two = link(
        "a",
        inside=f'<inertial auto="true"><density>20</density></inertial>{water}{water.replace(">1 0 0 ", ">-1 0 0 ")}',
    )
    I = inertia(sarrus.loads(model(two)), "a")
    assert_allclose([I.mass, *I.com], [40 * volume, 0, 0, 0], atol=1e-9)
    I = inertia(sarrus.loads(model(link("a", inside=f'<inertial auto="1"/>{water}'))), "a")
    assert_allclose(I.mass, 1000 * volume)
    I = inertia(sarrus.loads(model(link("a", inside=f'<inertial auto="1"><mass>3</mass></inertial>{water}'))), "a")
    assert_allclose(I.about_com, 3 * np.diag(moments), atol=1e-12)


def test_inertia_of_a_capsule():
    """Its volume in slices along z: discs of radius rho with moments rho^2/4 + z^2 and rho^2/2 per kilogram."""
    shape = "<capsule><radius>0.5</radius><length>2</length></capsule>"
    collision = f"<collision name='c'><geometry>{shape}</geometry></collision>"
    I = inertia(sarrus.loads(model(link("a", inside=f'<inertial auto="true"/>{collision}'))), "a")
    z = (np.arange(30000) + 0.5) / 10000 - 1.5
    rho2 = 0.25 - np.maximum(np.abs(z) - 1.0, 0.0) ** 2
    slices = 1000 * np.pi * rho2 / 10000
    assert_allclose(I.mass, slices.sum(), rtol=1e-7)
    across, along = (slices * (rho2 / 4 + z**2)).sum(), (slices * rho2 / 2).sum()
    assert_allclose(I.about_com, np.diag([across, across, along]), rtol=1e-7, atol=1e-9)


def test_looks():
    visual = "<visual name='v'><pose>0 0 1 0 0 0</pose><geometry>{}</geometry><material><diffuse>1 0 0 0.5</diffuse></material></visual>"
    shapes = {
        "<box><size>1 2 3</size></box>": Box((1, 2, 3)),
        "<cylinder><radius>1</radius><length>2</length></cylinder>": Cylinder(1, 2),
        "<sphere><radius>2</radius></sphere>": Sphere(2),
        "<mesh><uri>model://a/b.stl</uri><scale>1 1 -1</scale></mesh>": Mesh("model://a/b.stl", (1, 1, -1)),
    }
    r = sarrus.loads(model(link("a", inside=UNIT + "".join(map(visual.format, shapes)) + visual.format("<plane/>"))))
    assert [v.shape for v in r.description.visuals] == list(shapes.values())
    assert {v.color for v in r.description.visuals} == {(1, 0, 0, 0.5)}
    assert_allclose(r.description.visuals[0].placement.translation, [0, 0, 1])
    assert not r.warnings
    r = sarrus.loads(model(link("a", inside=UNIT + visual.format("<box><size>1 2</size></box>"))))
    assert "<size> of <visual name='v'> expects 3 numbers, got '1 2'; it is not shown" in r.warnings[0]


# --- worlds and includes --------------------------------------------------------------------------------------------


def test_the_model_of_a_world_that_moves():
    ground = a_model("<static>true</static>", link("plane"), name="ground_plane")
    text = world("<gravity>0 0 -1.5</gravity>", ground, a_model(link("a"), name="robot"))
    r = sarrus.loads(text)
    assert (r.name, r.bodies) == ("robot", ("a",))
    assert_allclose(r.description.gravity, [0, 0, -1.5])
    old = world("<physics type='ode'><gravity>0 0 -2</gravity></physics>", a_model(link("a")), version="1.4")
    assert_allclose(sarrus.loads(old).description.gravity, [0, 0, -2])


def test_which_of_several_models():
    text = world(a_model(link("a"), name="one"), a_model(link("b"), name="two"))
    with pytest.raises(sarrus.ModelError, match="has 2 moving models, 'one', 'two': select one, model='one'"):
        sarrus.loads(text)
    assert sarrus.loads(text, model="two").bodies == ("b",)
    with pytest.raises(sarrus.ModelError, match=r"has no model 'tow'; did you mean 'two'\?"):
        sarrus.loads(text, model="tow")
    tied = text.replace("</world>", joint("j", "one::a", "two::b") + "</world>")
    assert sarrus.loads(tied).bodies == ("one::a", "two::b")
    assert sarrus.loads(tied).nv == 7


def test_joints_of_the_world_hold_models():
    two = a_model(link("a"), name="one"), a_model("<static>true</static>", link("b"), name="two")
    r = sarrus.loads(world(*two, joint("j", "world", "one::a")))
    assert (r.name, r.joints, r.bodies) == ("one", ("j",), ("a",))
    r = sarrus.loads(world(*two, joint("j", "two::b", "one::a")), model="one")
    assert r.nv == 6 and "<joint name='j'> connects model 'one' to another model, and is not read" in r.warnings[0]


def test_static_models_are_fixed():
    r = sarrus.loads(model("<static>1</static>", link("a", "1 0 0 0 0 0"), link("b"), joint("j", "a", "b")))
    assert r.nv == 0
    assert_allclose(r.pose([], "a")[:3, 3], [1, 0, 0])


@pytest.fixture
def files(tmp_path):
    """Write a model in a folder with two versions, and one in a separate file."""
    (tmp_path / "arm").mkdir()
    config = '<?xml version="1.0"?><model><name>arm</name><sdf version="1.4">old.sdf</sdf><sdf version="1.10">new.sdf</sdf></model>'
    (tmp_path / "arm" / "model.config").write_text(config)
    (tmp_path / "arm" / "old.sdf").write_text("<sdf/>")
    inside = link("a", "1 0 0 0 0 0"), link("b"), joint("j", "a", "b"), '<frame name="f" attached_to="b"/>'
    (tmp_path / "arm" / "new.sdf").write_text(model("<pose>0 0 7 0 0 0</pose>", *inside, name="arm"))
    (tmp_path / "plain.sdf").write_text(model(link("p"), name="plain"))
    return tmp_path


def included(uri, inside="", attributes=""):
    return f"<include {attributes}><uri>{uri}</uri>{inside}</include>"


def test_includes(files):
    text = model(
        link("base"), included("model://arm", "<name>left</name><pose>0 0 5 0 0 0</pose>"), included("model://arm"),
        included("plain.sdf", "<placement_frame>p</placement_frame><pose relative_to='base'>1 0 0 0 0 0</pose>"),
        joint("j", "left::b", "base"), joint("k", "base", "arm::a"), joint("l", "base", "plain::p"),
    )  # fmt: skip
    (files / "main.sdf").write_text(text)
    r = sarrus.load(files / "main.sdf")
    assert r.bodies == ("base", "left::a", "left::b", "arm::a", "arm::b", "plain::p")
    for frame, place in {"left::a": (1, 0, 5), "arm::a": (1, 0, 7), "plain::p": (1, 0, 0)}.items():
        assert_allclose(placed(r, frame)[:3, 3], place)
    assert not r.warnings


def test_merged_includes_have_no_name_of_their_own(files):
    text = model(
        link("base"), included("model://arm", "<pose>0 0 5 0 0 0</pose>", 'merge="true"'), joint("k", "base", "a")
    )
    (files / "main.sdf").write_text(text)
    r = sarrus.load(files / "main.sdf")
    assert (r.bodies, r.joints) == (("base", "a", "b"), ("root_joint", "j", "k"))
    assert_allclose(placed(r, "a")[:3, 3], [1, 0, 5])


def test_where_models_are_looked_for(files, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "w.world"
    elsewhere.write_text(world(included("model://sun"), included("model://arm")))
    with pytest.raises(sarrus.ModelError, match=r"names 'model://arm', which does not exist: .*load"):
        sarrus.load(elsewhere)
    assert sarrus.load(elsewhere, package_dirs=[files]).name == "arm"
    assert sarrus.load(elsewhere, package_dirs=[files / "arm"]).name == "arm"
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(files))
    assert sarrus.load(elsewhere).name == "arm"


@pytest.mark.parametrize(
    "uri", ["../secret.sdf", "model://../secret.sdf", "model://arm/../../secret.sdf", "/etc/passwd", "file:///etc/passwd", "a\0b",
            "file://../secret.sdf", "model:///etc"]
)  # fmt: skip
def test_includes_do_not_lead_out_of_the_folders_that_are_searched(files, uri):
    (files / "in").mkdir()
    (files / "secret.sdf").write_text(model(link("p"), name="secret"))
    (files / "in" / "main.sdf").write_text(model(link("base"), included(uri)))
    with pytest.raises(sarrus.ModelError):
        sarrus.load(files / "in" / "main.sdf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX'")
@pytest.mark.parametrize("uri", ["link.sdf", "model://linked", "model://outside", "pipe.sdf", "device.sdf"])
def test_includes_are_files_of_those_folders(tmp_path, uri):
    """By real path; reading a pipe or a device might not end."""
    secret, folder = tmp_path / "secret", tmp_path / "in"
    for made in (secret, folder, folder / "linked"):
        made.mkdir()
    (secret / "model.sdf").write_text(model(link("p"), name="secret"))
    (folder / "link.sdf").symlink_to("../secret/model.sdf")
    (folder / "linked" / "model.sdf").symlink_to("../../secret/model.sdf")
    (folder / "outside").symlink_to("../secret")
    os.mkfifo(folder / "pipe.sdf")
    (folder / "device.sdf").symlink_to("/dev/zero")
    (folder / "main.sdf").write_text(model(link("base"), included(uri)))
    for package_dirs in ([], [folder]):
        if uri.startswith("model") and not package_dirs:
            continue  # which finds it above as well
        with pytest.raises(sarrus.ModelError):
            sarrus.load(folder / "main.sdf", package_dirs=package_dirs)


def test_all_includes_together_are_of_some_size(files, monkeypatch):
    (files / "main.sdf").write_text(
        model(link("base"), included("model://arm"), included("model://arm", "<name>two</name>"))
    )
    size = (files / "arm" / "new.sdf").stat().st_size
    monkeypatch.setattr(sdf_document, "LARGEST", 2 * size - 1)
    with pytest.raises(sarrus.ModelError, match="makes the model larger than"):
        sarrus.load(files / "main.sdf")


def test_nothing_is_fetched(files):
    (files / "main.sdf").write_text(model(included("https://fuel.gazebosim.org/x")))
    with pytest.raises(sarrus.ModelError, match="https:// is not read; expected model://, package:// or a file"):
        sarrus.load(files / "main.sdf")


def test_includes_in_circles_and_without_end(files):
    (files / "a.sdf").write_text(model(included("b.sdf"), name="a"))
    (files / "b.sdf").write_text(model(included("a.sdf"), name="b"))
    with pytest.raises(sarrus.ModelError, match=r"includes in a circle: b.sdf > a.sdf > b.sdf"):
        sarrus.load(files / "a.sdf")
    for k in range(15):  # each twice what the next one is
        twice = [included(f"c{k + 1}.sdf", f"<name>{side}</name>") for side in "lr"]
        (files / f"c{k}.sdf").write_text(model(*twice, name="c"))
    (files / "c15.sdf").write_text(model(link("l"), name="c"))
    with pytest.raises(sarrus.ModelError, match="is one of more than 1000"):
        sarrus.load(files / "c0.sdf")


def test_includes_without_a_folder():
    with pytest.raises(sarrus.ModelError, match=r"'x\.sdf', which does not exist"):
        sarrus.loads(model(included("x.sdf")))


# --- Drake ----------------------------------------------------------------------------------------------------------


def points(kind, rest):
    ends = f"<{kind}_body_A>top</{kind}_body_A><{kind}_p_AP>2 0 0</{kind}_p_AP><{kind}_body_B>right</{kind}_body_B><{kind}_p_BQ>0 0 1</{kind}_p_BQ>"
    return (
        f"<{kind}>{ends}"
        + "".join(f"<{kind}_{name}>{value}</{kind}_{name}>" for name, value in rest.items())
        + f"</{kind}>"
    )


def test_drake_s_ball_constraint():
    r = sarrus.loads(model(*BARS, *HINGED, points("drake:ball_constraint", {})))
    assert (r.nc, r.warnings) == (3, ())
    assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3], atol=1e-12)


def test_drake_s_distance_constraint():
    """The coupler's end is half a metre from the right bar's; with a stiffness the constraint is a spring."""
    r = sarrus.loads(model(*BARS, *HINGED, points("drake:distance_constraint", {"distance": 0.5})))
    assert (r.description.constraints[0].length, r.nc, r.warnings) == (0.5, 1, ())
    r = sarrus.loads(
        model(*BARS, *HINGED, points("drake:distance_constraint", {"distance": 0.5, "stiffness": 3, "damping": 2}))
    )
    spring = r.description.springs[0]
    assert (spring.stiffness, spring.rest_length, spring.damping, r.nc) == (3, 0.5, 2, 0)


def test_drake_s_spring():
    r = sarrus.loads(
        model(*BARS, *HINGED, points("drake:linear_spring_damper", {"free_length": 0.5, "stiffness": 3, "damping": 2}))
    )
    spring = r.description.springs[0]
    assert (spring.first, spring.second) == (("top", (2, 0, 0)), ("right", (0, 0, 1)))
    assert (spring.stiffness, spring.rest_length, spring.damping, r.warnings) == (3, 0.5, 2, ())


TENDON = """<drake:tendon_constraint><drake:tendon_constraint_joint name='j_left' a='2'/><drake:tendon_constraint_joint name='j_right' a='1'/>
  <drake:tendon_constraint_offset>0.5</drake:tendon_constraint_offset><drake:tendon_constraint_lower_limit>0.8</drake:tendon_constraint_lower_limit>
  <drake:tendon_constraint_upper_limit>{}</drake:tendon_constraint_upper_limit></drake:tendon_constraint>"""


def test_drake_s_tendons():
    """2 q_left + q_right + 0.5 = 0.8."""
    r = sarrus.loads(model(*BARS, *HINGED, TENDON.format(0.8)))
    q = r.neutral()
    q[r.joint("j_left").q_slice], q[r.joint("j_right").q_slice] = 0.1, 0.1
    assert_allclose(r.constraint_residual(q), 0.0, atol=1e-14)
    r = sarrus.loads(model(*BARS, *HINGED, TENDON.format(0.9)))
    assert r.nc == 0 and "is elastic or has play, and is not read: the joints are not coupled" in r.warnings[0]


BUSHING = """<drake:linear_bushing_rpy><drake:bushing_frameA>f</drake:bushing_frameA><drake:bushing_frameC>g</drake:bushing_frameC>
  <drake:bushing_torque_stiffness>1 2 3</drake:bushing_torque_stiffness><drake:bushing_torque_damping>0 0 0</drake:bushing_torque_damping>
  <drake:bushing_force_stiffness>5 5 5</drake:bushing_force_stiffness><drake:bushing_force_damping>0 0 0</drake:bushing_force_damping>
  </drake:linear_bushing_rpy>"""


def test_drake_s_bushing():
    """Energy of six springs: half of k times the squares of roll, pitch and yaw of A in C's reverse, and of the displacement."""
    frames = '<frame name="f" attached_to="a"/><frame name="g" attached_to="c"/>'
    r = sarrus.loads(model(link("a"), link("c"), joint("w", "world", "c", "fixed", ""), frames, BUSHING))
    assert (r.nc, r.nv) == (0, 6)
    roll, pitch, yaw = 0.1, -0.2, 0.3
    R_AC = sarrus.Rotation.from_rpy(roll, pitch, yaw)  # of Drake: the angles by which C is turned in A
    q = np.array([*R_AC.inverse().quaternion, 0.1, 0.2, 0.3])
    still = sarrus.loads(model(link("a"), link("c"), joint("w", "world", "c", "fixed", "")))
    energy = r.potential_energy(q) - still.potential_energy(q)
    assert_allclose(energy, (1 * roll**2 + 2 * pitch**2 + 3 * yaw**2 + 5 * (0.01 + 0.04 + 0.09)) / 2, rtol=1e-12)


def test_drake_s_planar_joint():
    """x, y and an angle of the child's frame in the parent's, relative to the file's pose."""
    planar = """<drake:joint name="p" type="planar"><drake:parent>a</drake:parent><drake:child>b</drake:child>
                <drake:damping>1 2 3</drake:damping></drake:joint>"""
    r = sarrus.loads(model(link("a"), joint("w", "world", "a", "fixed", ""), link("b", "1 2 0 0 0 0.5"), planar))
    assert_allclose(r.assemble(), [1, 2, 0.5])
    assert_allclose(r.pose(r.assemble(), "b"), sarrus.Transform.from_rpy(0, 0, 0.5, (1, 2, 0)).matrix, atol=1e-14)
    assert_allclose(r.joint("p").type.damping, [1, 2, 3])


# --- what is refused ------------------------------------------------------------------------------------------------

BAD = {
    "no version": ("<sdf><model name='m'/></sdf>", ":1: <sdf> has no version"),
    "old": (model(link("a"), version="1.2"), "has version 1.2; expected 1.3 to 1.12"),
    "odd version": (model(link("a"), version="x"), "has version 'x'; expected 1.3 to 1.12"),
    "no model": ('<sdf version="1.7"/>', "has no model"),
    "no links": (model("<pose/>"), "<model name='m'> has no links"),
    "two worlds": ('<sdf version="1.7"><world name="a"/><world name="b"/></sdf>', "is one of 2 worlds"),
    "no name": (model("<link/>"), ":3: <link> of <model name='m'> has no name"),
    "one name twice": (model(link("a"), link("a")), ":4: <link name='a'> has the same name as the link in line 3"),
    "a name of two": (model(link("a"), link("b"), joint("b", "a", "b")), "has the same name as the link in line 4"),
    "unknown parent": (model(link("abc"), joint("j", "abd", "abc")), "refers to 'm::abd', which is no frame, link, joint or model; did you mean 'abc'?"),
    "unknown child": (model(link("a"), joint("j", "a", "x")), "refers to 'm::x', which is no frame"),
    "no child": (model(link("a"), '<joint name="j" type="fixed"><parent>a</parent></joint>'), "has no <child>"),
    "empty child": (model(link("a"), joint("j", "a", " ")), "<child> of <joint name='j'> is empty"),
    "a circle of poses": (model(link("a", relative_to="b"), link("b", relative_to="a")), "is placed relative to itself: 'm::a', 'm::b'"),
    "a circle of frames": (
        model(link("a"), '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>', joint("j", "f", "a")),
        "is attached to itself",
    ),
    "joined to itself": (model(link("a"), joint("j", "a", "a")), "connects body 'a' to itself"),
    "a pose of five": (model(link("a", "1 2 3 4 5")), "<pose> of <link name='a'> expects 6 numbers, got '1 2 3 4 5'"),
    "a broken number": (model(link("a", "0 0 0 0 0 -junk0.0001")), "expects 6 numbers, got '0 0 0 0 0 -junk0.0001'"),
    "no finite number": (model(link("a", "0 0 0 0 0 1e400")), "has a number that is not finite: '0 0 0 0 0 1e400'"),
    "no rotation": (model(link("a").replace("<pose>", '<pose rotation_format="quat_xyzw">0 0 0 0 0 0 0')), "has a quaternion of length 0"),
    "no format": (model(link("a").replace("<pose>", '<pose rotation_format="x">')), "has an unknown rotation_format 'x'"),
    "a mass": (model(link("a", inside="<inertial><mass>-1</mass></inertial>")), "<mass> of <link name='a'> is negative: -1 kg"),
    "unknown type": (model(link("a"), link("b"), joint("j", "a", "b", "magic")), "has an unknown type 'magic'"),
    "zero axis": (model(link("a"), link("b"), joint("j", "a", "b", inside="<axis><xyz>0 0 0</xyz></axis>")), "<axis> of <joint name='j'> is zero"),
    "limits": (
        model(link("a"), link("b"), joint("j", "a", "b", inside="<axis><limit><lower>2</lower><upper>1</upper></limit></axis>")),
        "<limit> of <joint name='j'> has its lower limit above the upper: 2 > 1",
    ),
    "no truth": (model("<static>maybe</static>", link("a")), "<static> of <model name='m'> expects true or false, got 'maybe'"),
    "leader": (model(link("a"), link("b"), joint("j", "a", "b", inside='<axis><mimic joint="k"/></axis>')), "<mimic> of <joint name='j'> names an unknown joint 'k'"),
    "gearbox": (
        model(link("base"), link("a"), link("b"), joint("j", "base", "b"), joint("g", "a", "b", "gearbox", GEAR.format(1))),
        "<joint name='g'> couples 'm::a' and 'm::base', which no revolute joint connects",
    ),
    "auto": (model(link("a", inside='<inertial auto="true"/>')), "has auto=true, but no <collision> has a volume"),
    "auto of a mesh": (
        model(link("a", inside='<inertial auto="true"/><collision name="c"><geometry><mesh/></geometry></collision>')),
        "<mesh> of <collision name='c'> has no inertia by auto",
    ),
    "placement": (model(link("a"), attributes='placement_frame="x"'), "refers to 'm::x'"),
    "entities": ('<!DOCTYPE sdf [<!ENTITY a "b">]><sdf/>', "a DOCTYPE, or an entity, is not allowed in a model file"),
    "deep": ('<sdf version="1.7">' + '<model name="m">' * 10**5, "is nested deeper than 100 elements"),
    "a long number": (model(link("a", "0 " * 10**6)), "expects 6 numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_models(text, message, monkeypatch):
    """Errors are raised after a few elements and numbers, for any size of the file."""
    looked = []
    for name, real in (("float", float), ("Element", document.Element)):
        monkeypatch.setattr(document, name, lambda *x, real=real: looked.append(real) or real(*x), raising=False)
    with pytest.raises(sarrus.ModelError) as error:
        sarrus.loads(text)
    assert message in str(error.value)
    assert str(error.value).startswith("<string>:")
    assert len(str(error.value)) < 500
    assert len(looked) < 500


def test_long_chains_of_frames():
    """A model whose frames are relative to each other in a chain: no recursion that ends the interpreter."""
    frames = "".join(
        f'<frame name="f{k + 1}"><pose relative_to="f{k}">0 0 1e-3 0 0 0</pose></frame>' for k in range(3000)
    )
    r = sarrus.loads(model(link("a"), '<frame name="f0" attached_to="a"/>', frames))
    assert_allclose(placed(r, "f3000")[:3, 3], [0, 0, 3])


@pytest.mark.parametrize("named", ["m", "__model__", "nested"])
def test_joints_that_gazebo_attaches(named):
    """A four-bar that Gazebo closes as it starts: the links keep the poses of the file."""
    plugin = DETACHABLE.replace(">m<", f">{named}<").replace(">a<", ">bar<").replace(">box<", ">rocker<")
    rocker = link("rocker", ".2 0 .3 0 0 0")
    parts = [link("crank"), link("rod", ".2 0 0 0 0 0"), rocker, link("bar", ".4 0 .1 0 0 0")]
    key = "rocker"
    if named == "nested":
        parts[2], key = f'<model name="nested">{rocker}</model>', "nested::rocker"
    hinges = [
        f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child><axis><xyz>0 1 0</xyz></axis></joint>'
        for name, parent, child in (
            ("a", "world", "crank"),
            ("b", "crank", "rod"),
            ("c", "world", key),
            ("d", "rod", "bar"),
        )
    ]
    robot = sarrus.loads(model(*parts, *hinges, plugin))
    assert robot.mobility(robot.assemble()).degrees_of_freedom == 1
    (spec,) = (spec for spec in robot.description.joints if spec.joint.kind == "Fixed")
    assert {spec.parent, spec.child} == {"bar", key} and spec.name == "bar_to_rocker"
    assert_allclose(robot.pose(robot.assemble(), key)[:3, 3], [0.2, 0, 0.3], atol=1e-12)
    assert any(
        "is read as a fixed joint between 'bar' and 'rocker', which Gazebo can detach" in x for x in robot.warnings
    )


def test_two_plugins_that_attach_the_same_links():
    """The second one is redundant: the links are joined once, with a warning."""
    plugin = DETACHABLE.replace("<child_link>box", "<child_link>b")
    again = plugin.replace("<parent_link>a", "<parent_link>b").replace("<child_link>b", "<child_link>a")
    for second in (plugin, again):
        robot = sarrus.loads(model(link("a"), link("b"), plugin, second))
        assert [spec.kind for spec in robot.description.joints if spec.name == "a_to_b"] == ["Fixed"] and not robot.nc
        (told,) = (x for x in robot.warnings if "as another plugin does" in x)
        assert "it is read once" in told and not any("is not read" in x for x in robot.warnings)


DETACHABLE = """<plugin filename="gz-sim-detachable-joint-system" name="gz::sim::systems::DetachableJoint">
    <parent_link>a</parent_link><child_model>m</child_model><child_link>box</child_link></plugin>"""


TOUCHING = """<collision name="c"><geometry><sphere><radius>.1</radius></sphere></geometry><surface>{}</surface>{}</collision>"""
ODE = "<friction><ode><mu>.3</mu><mu2>{}</mu2></ode></friction>"
PROXIMITY = "<drake:proximity_properties>{}</drake:proximity_properties>"


@pytest.mark.parametrize(
    ("surface", "besides", "mu", "warning"),
    [
        (ODE.format(".3"), "", 0.3, ""),
        (ODE.format(".2"), "", 0.3, "anisotropic friction is not read"),
        (ODE.format(".3"), PROXIMITY.format("<drake:mu_dynamic>.5</drake:mu_dynamic>"), 0.5, ""),
        ("", PROXIMITY.format("<drake:mu_static>.6</drake:mu_static>"), 0.6, ""),
        ("", PROXIMITY.format("<drake:mu_dynamic>.5</drake:mu_dynamic><drake:mu_static>.6</drake:mu_static>"), 0.5, "drake:mu_static"),
        ("<contact><collide_without_contact>1</collide_without_contact></contact>", "", None, "collide_without_contact is not read"),
        ("<contact><collide_bitmask>1</collide_bitmask></contact>", "", None, "<collide_bitmask> is not read"),
    ],
)  # fmt: skip
def test_what_changes_how_shapes_touch(surface, besides, mu, warning):
    robot = sarrus.loads(model(link("a", inside=UNIT + TOUCHING.format(surface, besides))))
    (shape,) = robot.description.shapes
    told = [one for one in robot.warnings if "may touch, which only" not in one]
    assert shape.friction == mu and len(told) == bool(warning) and all(warning in one for one in told)


def test_what_a_model_says_of_its_own_contacts_is_told():
    parts = (
        "<self_collide>0</self_collide>",
        '<drake:collision_filter_group name="g"/>',
        "<self_collide>1</self_collide>",
    )
    assert [len(sarrus.loads(model(link("a"), part)).warnings) for part in parts] == [1, 1, 0]


def test_what_is_of_no_concern_is_not_told_of():
    still = "<velocity_decay><linear>0</linear><angular>0</angular></velocity_decay><kinematic>false</kinematic>"
    sensors = '<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>'
    assert not sarrus.loads(model(link("a", inside=UNIT + still), sensors)).warnings


@pytest.mark.parametrize(
    ("parts", "warning"),
    [
        (("<color/>", link("a")), "<string>:3: <color> in <model> is not read"),
        ((link("a", inside=UNIT + "<gravity>0</gravity>"),), "<gravity> of a link is not read: gravity acts on it"),
        ((link("a"), link("b")), "<link name='b'> is connected neither to the ground nor to the first link: it floats freely"),
        ((link("a", inside=UNIT + "<velocity_decay><linear>0</linear><angular>.1</angular></velocity_decay>"),), "<velocity_decay> is not read: links move without this drag"),
        ((link("a", inside=UNIT + "<kinematic>1</kinematic>"),), "<kinematic> is not read"),
        ((link("a"), DETACHABLE), "connects 'a' and 'box' at run time in Gazebo, and is not read: write a <joint> of type fixed between them"),
        ((link("a"), '<plugin filename="gz-sim-lift-drag-system" name="gz::sim::systems::LiftDrag"/>'), "plugins are not read, and their effects on bodies and joints are missing: 'gz::sim::systems::LiftDrag'"),
        ((link("a"), '<plugin name="p"><joint>j</joint><mimicJoint>k</mimicJoint></plugin>'), "couples joint 'k' to 'j', which are not two joints of the model: it is not read"),
        ((link("a", inside=UNIT.replace("<ixx>0.1", "<ixx>0.9")),), "no body of 1 kg has principal moments of inertia 0.1, 0.1, 0.9"),
    ],
)  # fmt: skip
def test_warnings(parts, warning):
    (only,) = sarrus.loads(model(*parts)).warnings
    assert warning in only


def test_load_takes_sdf_and_worlds(tmp_path):
    for name in ("a.sdf", "a.world", "a.SDF"):
        (tmp_path / name).write_text(model(link("a")))
        assert sarrus.load(tmp_path / name).bodies == ("a",)
    with pytest.raises(sarrus.ModelError, match="loops does not apply to this format"):
        sarrus.load(tmp_path / "a.sdf", loops={})


# --- models that others published ------------------------------------------------------------------------------------

SDFS = [*reference_models.references("gazebo"), *reference_models.references("drake")]
WATER_BALL = 0.4 * (3 / (4e3 * np.pi)) ** (2 / 3) * 1e-3 ** (5 / 3)  # moment of one gram [kg m²]
# what the references did to the files, besides their `repair`
ALTERED = {
    # a joint that closes a loop became a frame, and lost its degrees
    "closed_loop_four_bar_linkage.sdf": [
        (
            '<pose degrees="true" relative_to="upper_left_link_lower_mount">0 0 0 -25',
            '<pose relative_to="upper_left_link_lower_mount">0 0 0 -25',
        )
    ],
    # Drake takes a ball of water for an inertia that no body has, and sarrus what the file says
    "cassie.sdf": [("9.4e-7<", f"{WATER_BALL}<"), ("9.4e-6<", f"{WATER_BALL}<"), ("9.4e-9<", "0<")],
}


@pytest.mark.skipif(not SDFS, reason="the published models are not beside the checkout")
@pytest.mark.parametrize("reference", SDFS, ids=lambda path: path.name.partition(".")[0])
def test_published_models(reference):
    """Poses, mass matrix, bias, accelerations, rank and degrees of freedom are those of Drake and dense algebra."""
    numbers, path = reference_models.read(reference)
    text = path.read_text()
    for old, new in [*numbers["repair"], *ALTERED.get(path.name, [])]:
        assert old in text
        text = text.replace(old, new)
    builder = sdf.read(text, source=path.name, beside=str(path.parent))
    tree = [name for name, _ in numbers["tree_joints"]]
    robot = reference_models.on_tree(builder, [*tree, "root_joint"])
    assert robot.nc == numbers["rows"]
    assert set(robot.loop_joints) == {name for name, _ in numbers["loop_joints"]}
    roots = {name: "root_joint" for name, kind in numbers["tree_joints"] if "floating" in kind}
    for one in numbers["configurations"]:
        rank, off, allowed = reference_models.check(robot, one, numbers["velocities"], roots)
        assert rank == one["rank"]
        assert off < allowed


@pytest.mark.skipif(not SDFS, reason="the published models are not beside the checkout")
def test_published_grippers_and_broken_numbers():
    folder = reference_models.MODELS / "gazebo"
    with pytest.raises(
        sarrus.ModelError, match=r"cassie\.sdf:788: <pose> of <link .*> expects 6 numbers, got '-0\.01793 -junk0\.0001"
    ):
        sarrus.load(folder / "cassie" / "cassie.sdf")
    gripper = sarrus.load(folder / "gazebo_models" / "pr2_gripper.sdf")
    assert (len(gripper.loop_joints), gripper.nc, gripper.actuated) == (5, 25, ())
    assert np.abs(gripper.constraint_residual(gripper.assemble())).max() < 1e-12
    assert [gripper.constraint(name).kind for name in gripper.loop_joints].count("Helical") == 2
    bars = sarrus.load(reference_models.MODELS / "drake" / "four_bar.sdf")
    assert (bars.joints, bars.actuated, bars.frames[-2:]) == (
        ("joint_WA", "joint_AB", "joint_WC"),
        ("joint_WA",),
        ("Bc_bushing", "Cb_bushing"),
    )


def test_defaults_of_joints_are_those_of_sdf():
    """A pitch of 1 m/rev, and axes along z; each with a warning."""
    axis2 = "<axis2><xyz>1 0 0</xyz></axis2>"
    text = model(link("a"), link("b"), link("c"), joint("j", "a", "b", "screw"))
    robot = sarrus.loads(
        text.replace(
            "</model>",
            joint("k", "b", "c", "universal", axis2).replace("<axis>", "<!--").replace("</axis>", "-->") + "</model>",
        )
    )
    j, k = (specs(robot)[name].joint for name in "jk")
    assert j.pitch == 1 / (2 * np.pi)
    assert k.axis1.tolist() == [0, 0, 1]
    assert any("no <screw_thread_pitch>" in warning for warning in robot.warnings)
    assert any("<joint name='k'> has no <axis>" in warning for warning in robot.warnings)


def test_mimics_in_a_circle():
    def circle(multiplier):
        mimic = "<axis><mimic joint='{}' axis='axis'><multiplier>{}</multiplier></mimic></axis>"
        first, second = (
            joint(*ends, inside=mimic.format(*to))
            for ends, to in ((("j", "a", "b"), ("k", 2)), (("k", "b", "c"), ("j", multiplier)))
        )
        return [
            w for w in sarrus.loads(model(link("a"), link("b"), link("c"), first, second)).warnings if "circle" in w
        ]

    assert "'j', 'k': they cannot move" in circle(2)[0]
    assert "the last one is redundant" in circle(0.5)[0]
