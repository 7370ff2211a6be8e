"""Extensions of URDF for loops and actuators: small documents with values by hand, and published files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference_models
import sarrus
from sarrus.io import urdf


def link(name, mass=1.0):
    return f'<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>'


def joint(name, parent, child, xyz="0 0 0", kind="continuous", inside='<axis xyz="0 0 1"/>', rpy="0 0 0"):
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot(*parts):
    return '<robot name="r">\n' + "\n".join(parts) + "\n</robot>"


# a parallelogram in the plane z = 0: two bars of 1 m from (0, 0) and (2, 0), and a coupler of 2 m on the first; square at q = 0
BARS = (
    '<link name="base"/>', *map(link, ("left", "top", "right")),
    joint("j_left", "base", "left"), joint("j_top", "left", "top", "0 1 0"), joint("j_right", "base", "right", "2 0 0"),
)  # fmt: skip
LOOP = """<loop name="pin" type="{}"><predecessor link="top"><origin xyz="2 0 0"/></predecessor>
          <successor link="right"><origin xyz="0 1 0"/></successor><axis xyz="0 0 1"/></loop>"""
HINGES = {
    "URDF+": LOOP.format("revolute"),
    "Isaac": """<loop_joint name="pin" type="revolute"><link1 link="top" xyz="2 0 0"/><link2 link="right" xyz="0 1 0"/>
                <axis xyz="0 0 1"/></loop_joint>""",
    "Fusion": """<loop_joint name="pin" type="revolute"><parent link="top"/><child link="right"/>
                 <parent_origin xyz="2 0 0"/><child_origin xyz="0 1 0"/><axis xyz="0 0 1" frame="parent"/></loop_joint>""",
    "proposed for ROS": """<constraint name="pin" type="revolute"><parent link="top"/><parent_origin xyz="2 0 0"/>
        <parent_axis xyz="0 0 1"/><child link="right"/><child_origin xyz="0 1 0"/><child_axis xyz="0 0 1"/></constraint>""",
    "Gazebo": """<gazebo><joint name="pin" type="revolute"><parent>top</parent><child>right</child><pose>0 1 0 0 0 0</pose>
                 <axis><xyz>0 0 1</xyz></axis></joint></gazebo>""",
}


@pytest.mark.parametrize("text", HINGES.values(), ids=HINGES)
def test_a_hinge_closes_the_parallelogram(text):
    """Opposite bars stay parallel: the coupler reverses the rotation of its bar."""
    r = sarrus.loads(robot(*BARS, text))
    assert (r.joints[1:], r.loop_joints, r.nc, r.warnings) == (("j_left", "j_top", "j_right"), ("pin",), 5, ())
    q = r.assemble(fixed={"j_left": 0.3})
    assert_allclose(q, [0.3, -0.3, 0.3], atol=1e-12)
    assert_allclose(r.pose(q, "top")[:3, :3], np.eye(3), atol=1e-12)
    assert np.linalg.matrix_rank(r.constraint_jacobian(q), tol=1e-9) == 2


def test_urdf_plus_says_which_joints_are_independent():
    """URDF+ states a choice of coordinates, which needs no warning."""
    r = sarrus.loads(robot(*BARS, HINGES["URDF+"]).replace('name="j_left"', 'name="j_left" independent="true"'))
    assert not r.warnings


@pytest.mark.parametrize(("kind", "rows"), [("spherical", 3), ("fixed", 6), ("prismatic", 5), ("planar", 3)])
def test_kinds_of_closing_joints(kind, rows):
    assert sarrus.loads(robot(*BARS, LOOP.format(kind))).nc == rows


def test_isaac_s_documents_write_the_first_link_twice():
    text = '<loop_joint name="pin" type="spherical"><link1 link="top" xyz="2 0 0"/><link1 link="right" xyz="0 1 0"/></loop_joint>'
    r = sarrus.loads(robot(*BARS, text))
    assert r.loop_joints == ("pin",) and r.nc == 3
    assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3], atol=1e-12)


def test_axes_are_told_in_the_frame_of_the_parent_alone():
    """The right bar's frame is rotated: at q = 0 its x-axis is the parent's z-axis."""
    turned = joint("j_right", "base", "right", "2 0 0", inside='<axis xyz="1 0 0"/>', rpy="0 -1.5707963267948966 0")
    for how in ("Fusion", "Gazebo"):
        # in the right link, z of the world is x, and (0, 1, 0) is itself
        text = HINGES[how].replace("<xyz>0 0 1</xyz>", "<xyz>1 0 0</xyz>")
        r = sarrus.loads(robot(*BARS[:-1], turned, text))
        assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3], atol=1e-12)
    text = HINGES["proposed for ROS"].replace('<child_axis xyz="0 0 1"/>', '<child_axis xyz="1 0 0"/>')
    r = sarrus.loads(robot(*BARS[:-1], turned, text))
    assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3], atol=1e-12)


def test_gazebo_joints_may_hold_the_world_and_have_axes_in_the_model():
    text = """<gazebo><joint name="pin" type="prismatic"><parent>world</parent><child>top</child><pose>1 0 0 0 0 1.5707963267948966</pose>
              <axis><xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis></joint></gazebo>"""
    r = sarrus.loads(
        robot(*BARS[:-1], '<link name="world_"/>', joint("w", "base", "world_", kind="fixed"), text, BARS[-1])
    )
    spec = next(j for j in r.description.joints if j.name == "pin")
    assert (spec.parent, spec.child) == ("ground", "top")
    assert_allclose(spec.at_parent.translation, [1, 1, 0])
    assert_allclose(spec.joint.axis, [0, -1, 0], atol=1e-14)  # its frame is a quarter turn from the model's


def test_gazebo_joints_may_be_placed_relative_to_a_link_and_be_gearboxes():
    """Bars with opposite rotations: left = -2 right."""
    text = HINGES["Gazebo"].replace("<pose>0 1 0 0 0 0</pose>", '<pose relative_to="top">2 0 0 0 0 0</pose>')
    r = sarrus.loads(robot(*BARS, text))
    assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3], atol=1e-12)
    text = """<gazebo><joint name="gear" type="gearbox"><parent>right</parent><child>left</child><gearbox_ratio>2</gearbox_ratio>
              <gearbox_reference_body>base</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis></joint></gazebo>"""
    r = sarrus.loads(robot(*BARS, text))
    assert (r.constraints, r.warnings) == (("gear",), ())
    assert_allclose(r.assemble(fixed={"j_right": 0.1, "j_top": 0.0}), [-0.2, 0, 0.1], atol=1e-12)


def test_coupling_of_two_ways():
    """3 (a + b) = c, from the common ancestor of the paths to the root."""
    text = """<coupling name="belt"><predecessor link="B"/><successor link="C"/><ratio value="3"/></coupling>"""
    links = [
        '<link name="base"/>',
        *map(link, "ABC"),
        joint("a", "base", "A"),
        joint("b", "A", "B"),
        joint("c", "base", "C"),
    ]
    r = sarrus.loads(robot(*links, text))
    assert r.constraints == ("belt",)
    assert_allclose(r.constraint_residual([0.1, 0.2, 0.9]), 0.0, atol=1e-14)
    assert abs(r.constraint_residual([0.1, 0.2, 0.3])[0]) > 0.5
    assert not r.warnings
    # both hang on A, which counts on neither
    links[-1] = joint("c", "A", "C")
    r = sarrus.loads(robot(*links, text))
    assert_allclose(r.constraint_residual([0.1, 0.2, 0.6]), 0.0, atol=1e-14)


# --- sidecars --------------------------------------------------------------------------------------------------------

ENDS = (
    link("end_A"), joint("f_A", "top", "end_A", "2 0 0", "fixed"), link("end_B"),
    joint("f_B", "right", "end_B", "0 1 0"),
)  # fmt: skip


def test_sidecar_as_a_dict():
    """Frames are links or joints; the joint between the bars is a tree joint, and the loop is a weld."""
    for names in (["end_A", "end_B"], ["f_A", "f_B"]):
        r = sarrus.loads(robot(*BARS, *ENDS), loops={"closed_loop": [names], "type": ["6d"], "name_mot": ["j_left"]})
        assert r.actuated == ("j_left",)
        assert (r.nc, r.loop_joints) == (6, (" ".join(names),))
        assert set(names) <= set(r.frames)
        assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3, -0.3], atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "rows"), [("3d", 3), ("3D", 3), ("6D", 6), ("revolute", 5), ("universal", 4), (sarrus.Prismatic("x"), 5)]
)
def test_types_of_loops(kind, rows):
    assert sarrus.loads(robot(*BARS, *ENDS), loops={"closed_loop": [["end_A", "end_B"]], "type": [kind]}).nc == rows


def test_unknown_types_of_loops_are_welds_with_a_warning():
    r = sarrus.loads(robot(*BARS, *ENDS), loops={"closed_loop": [["end_A", "end_B"]], "type": ["5d"]})
    assert r.nc == 6 and r.warnings == (
        "loops: type '5d' is unknown and read as 6d; expected 3d, 6d, revolute, universal",
    )


def test_retyped_joints():
    """A ball joint, a weld, and two revolute joints about axes of the joint's frame, for any axis in the URDF."""
    loops = {
        "joint_name": ["j_left", "j_top", "j_right", "none"],
        "joint_type": ["SPHERICAL", "FIXED", "UJOINT_YX", "FIXED"],
    }
    r = sarrus.loads(robot(*BARS), loops=loops)
    assert [(r.joint(name).kind, name) for name in r.joints[1:]] == [
        ("Spherical", "j_left"), ("Fixed", "j_top"), ("Revolute", "j_right_Y"), ("Revolute", "j_right_X")
    ]  # fmt: skip
    assert r.warnings == ("loops: joint_name 'none' is not a joint of the URDF; there are: j_left, j_right, j_top",)
    q = r.neutral()
    q[-2:] = 0.3, 0.4
    R = sarrus.Rotation.from_axis_angle("y", 0.3) @ sarrus.Rotation.from_axis_angle("x", 0.4)
    assert_allclose(r.pose(q, "right")[:3, :3], R.matrix, atol=1e-14)
    assert_allclose(r.pose(q, "right")[:3, 3], [2, 0, 0])
    assert set(r.actuated) == {"j_left", "j_right_Y", "j_right_X"}
    assert sarrus.loads(robot(*BARS), loops={**loops, "name_mot": ["j_right_X"]}).actuated == ("j_right_X",)


def test_a_sidecar_in_a_file(tmp_path, monkeypatch):
    """Its name is relative to the working directory or to the URDF; an unrequested one beside the URDF is reported."""
    pytest.importorskip("yaml")
    (tmp_path / "r.urdf").write_text(robot(*BARS, *ENDS))
    (tmp_path / "robot.yaml").write_text("closed_loop: [['end_A', 'end_B']]\ntype: ['3d']\nname_mot: ['j_left']")
    for loops in ("robot.yaml", tmp_path / "robot.yaml"):
        r = sarrus.load(tmp_path / "r.urdf", loops=loops)
        assert (r.nc, r.warnings) == (3, ())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "robot.yaml").write_text("name_mot: ['j_left']")
    r = sarrus.load(tmp_path / "r.urdf", loops="robot.yaml")
    assert (
        r.nc == 0
        and "read from the working directory; there is another 'robot.yaml' in the URDF's folder" in r.warnings[0]
    )
    r = sarrus.load(tmp_path / "r.urdf")
    assert r.nc == 0
    assert r.warnings == (
        "r.urdf:1: robot.yaml in its folder seems to contain loops and motors and is not read: load(..., loops='robot.yaml')",
    )
    with pytest.raises(FileNotFoundError):
        sarrus.load(tmp_path / "r.urdf", loops="none.yaml")


BAD_SIDECARS = {
    "no dict": (3, "loops: expected the name of a YAML file, or a dict; got 3"),
    "unknown link": ({"closed_loop": [["end_A", "end_C"]]}, "closed_loop: 'end_C' is neither a link nor a joint"),
    "one name": ({"closed_loop": [["end_A"]]}, "closed_loop: expected pairs of names; got a list"),
    "itself": ({"closed_loop": [["end_A", "f_A"]]}, r"closed_loop: \['end_A', 'f_A'\] connects link 'end_A' to itself"),
    "a text": ({"closed_loop": "end_A"}, "closed_loop: expected a list; got str 'end_A'"),
    "types": (
        {"closed_loop": [["end_A", "end_B"]], "type": []},
        "closed_loop and type: expected the same number of entries; got 1 and 0",
    ),
    "no type": ({"closed_loop": [["end_A", "end_B"]], "type": [3]}, "type: expected names; got int 3"),
    "joint types": (
        {"joint_name": ["j_top"]},
        "joint_name and joint_type: expected the same number of entries; got 1 and 0",
    ),
    "unknown joint type": (
        {"joint_name": ["j_top"], "joint_type": ["UJOINT_XX"]},
        "joint_type 'UJOINT_XX' is unknown; expected SPHERICAL, FIXED, UJOINT_XY and so on",
    ),
    "motors": ({"name_mot": [1]}, "name_mot: expected names; got int 1"),
}


@pytest.mark.parametrize(("loops", "message"), BAD_SIDECARS.values(), ids=BAD_SIDECARS)
def test_bad_sidecars(loops, message):
    with pytest.raises(sarrus.ModelError, match=message):
        sarrus.loads(robot(*BARS, *ENDS), loops=loops)


def test_unknown_keys_and_motors_are_warnings():
    r = sarrus.loads(robot(*BARS), loops={"closed_loops": [], "name_mot": ["j_lefft"]})
    assert r.actuated == ()
    assert r.warnings == (
        "loops: key 'closed_loops' is not read; did you mean 'closed_loop'?",
        "loops: name_mot 'j_lefft' is not a moving joint; did you mean 'j_left'?",
    )


@pytest.mark.parametrize(
    "text", ["[" * 10**5, "{a: " * 10**5, "- " * 10**5, "&a [*a]", "a: !!python/object/apply:os.system [x]",
             "\x00", "closed_loop: [" + "[a, b], " * 10**5 + "]", "# " + "x" * 10**6]
)  # fmt: skip
def test_hostile_sidecars(tmp_path, text):
    pytest.importorskip("yaml")
    (tmp_path / "r.urdf").write_text(robot(*BARS))
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(sarrus.ModelError, match=r"r\.yaml"):
        sarrus.load(tmp_path / "r.urdf", loops=tmp_path / "r.yaml")


# --- roots, motors, Drake -------------------------------------------------------------------------------------------


def test_an_undeclared_world_is_the_ground_and_other_roots_float():
    r = sarrus.loads(robot(link("A"), link("B"), link("C"), joint("j", "world", "A", "0 0 1"), joint("k", "B", "C")))
    assert (r.joints, r.joint("root_joint").kind, r.nv) == (("root_joint", "j", "k"), "Free", 8)
    assert_allclose(r.pose(r.neutral(), "A")[:3, 3], [0, 0, 1])
    assert r.warnings == (
        "<string>:3: <link name='B'> is no joint's child, and not the first such link: it floats freely",
    )
    with pytest.raises(sarrus.ModelError, match="cannot float, because a joint connects it to 'world', the ground"):
        sarrus.loads(robot(link("A"), joint("j", "world", "A")), floating_base=True)


def test_of_several_roots_the_first_is_the_base():
    r = sarrus.loads(robot(link("A"), link("B")))
    assert [r.joint(name).kind for name in ("root_joint", "root_joint_B")] == ["Fixed", "Free"]
    assert "<link name='B'> is no joint's child, and not the first such link: it floats freely" in r.warnings[0]
    # two links that carry a third close a loop
    r = sarrus.loads(robot(*map(link, "ABC"), joint("j", "A", "C"), joint("k", "B", "C")))
    assert (r.nv, r.warnings) == (2, ())


TRANSMISSION = '<transmission name="t"><type>x</type><joint name="{}"><hardwareInterface/></joint></transmission>'
CONTROL = """<ros2_control name="c" type="system"><joint name="{}"><command_interface name="position"/></joint>
             <joint name="j_right"><state_interface name="position"/></joint></ros2_control>"""


@pytest.mark.parametrize("text", [TRANSMISSION, CONTROL])
def test_transmissions_and_ros2_control_say_what_is_driven(text):
    assert sarrus.loads(robot(*BARS)).actuated == ("j_left", "j_top", "j_right")
    r = sarrus.loads(robot(*BARS, text.format("j_top")))
    assert r.actuated == ("j_top",)
    assert r.warnings[0].endswith(
        "joints without a motor, in a file that has motors, are read as passive: 'j_left', 'j_right'"
    )
    r = sarrus.loads(robot(*BARS, text.format("j_down")))
    assert r.actuated == () and any("a motor drives 'j_down', which is not a joint" in text for text in r.warnings)
    assert sarrus.loads(robot(*BARS, text.format("j_top")), loops={"name_mot": ["j_left"]}).actuated == ("j_left",)


BALL = """<drake:ball_constraint><drake:ball_constraint_body_A name="top"/><drake:ball_constraint_p_AP value="2 0 0"/>
          <drake:ball_constraint_body_B name="right"/><drake:ball_constraint_p_BQ value="0 1 0"/></drake:ball_constraint>"""


def test_drake_s_ball_constraint():
    r = sarrus.loads(robot(*BARS, BALL))
    assert (r.loop_joints, r.nc, r.warnings) == (("ball_constraint_1",), 3, ())
    assert_allclose(r.assemble(fixed={"j_left": 0.3}), [0.3, -0.3, 0.3], atol=1e-12)


def test_drake_s_joints_and_frames():
    inside = '<axis xyz="0 0 1"/><drake:screw_thread_pitch value="0.5"/>'
    parts = [joint("s", "A", "B", kind="screw", inside=inside), joint("u", "B", "C", kind="universal")]
    text = robot(
        *map(link, "ABC"),
        *(p.replace("joint name", "drake:joint name").replace("</joint", "</drake:joint") for p in parts),
    )
    r = sarrus.loads(text.replace("</robot>", '<frame name="tip" link="C" xyz="0 0 1" rpy="0 0 0"/></robot>'))
    assert_allclose(r.joint("s").type.pitch, 0.5 / (2 * np.pi))
    assert (r.joint("u").kind, r.frames[-1], r.warnings) == ("Universal", "tip", ())
    assert_allclose(r.pose([2 * np.pi, 0, 0], "tip")[:3, 3], [0, 0, 1.5], atol=1e-14)


def test_drake_s_bushing_between_frames():
    """Half of a stiffness of 5 N/m times the squared distance of two frames, independent of their rotation."""
    numbers = {
        "torque_stiffness": "0 0 0",
        "torque_damping": "0 0 0",
        "force_stiffness": "5 5 5",
        "force_damping": "0 0 0",
    }
    inside = "".join(f'<drake:bushing_{name} value="{value}"/>' for name, value in numbers.items())
    frames = (
        '<frame name="f" link="top" xyz="2 0 0" rpy="0 0 0"/>',
        '<frame name="g" link="right" xyz="0 1 0" rpy="0 0 0"/>',
    )
    names = '<drake:bushing_frameA name="f"/><drake:bushing_frameC name="g"/>'
    r = sarrus.loads(robot(*BARS, *frames, f"<drake:linear_bushing_rpy>{names}{inside}</drake:linear_bushing_rpy>"))
    bare = sarrus.loads(robot(*BARS, *frames))
    q = [0.1, 0.2, 0.3]
    apart = r.pose(q, "f")[:3, 3] - r.pose(q, "g")[:3, 3]
    assert r.nc == 0 and not r.warnings
    assert_allclose(r.potential_energy(q) - bare.potential_energy(q), 2.5 * apart @ apart, rtol=1e-12)


def test_types_with_joint_behind_them():
    """Forks of urdfdom write such types."""
    text = """<constraint name="pin" type="{}"><parent link="top"/><parent_origin xyz="1 0 0"/><child link="right"/></constraint>"""
    read = [
        sarrus.loads(robot(*BARS, text.format(kind))) for kind in ("ball", "spherical", "spherical_joint", "ball_joint")
    ]
    assert all(one.description == read[0].description for one in read) and read[0].nc == 3


def test_springs_of_gazebo_are_told_of():
    r = sarrus.loads(robot(*BARS, '<gazebo reference="j_top"><springStiffness>3</springStiffness></gazebo>'))
    assert "<springStiffness> in <gazebo> is not read" in r.warnings[0]


BAD = {
    "unknown link": (LOOP.format("revolute").replace("top", "tip"), "<predecessor> of <loop name='pin'> names an unknown link 'tip'"),
    "unknown type": (LOOP.format("magic"), "<loop name='pin'> has an unknown type 'magic'"),
    "no successor": (LOOP.format("fixed").replace("successor", "other"), "<loop name='pin'> has no <successor>"),
    "one link": ('<loop_joint name="pin" type="spherical"><link1 link="top"/></loop_joint>', "has 1 of the links <link1> and <link2>; expected both"),
    "no number": (LOOP.format("fixed").replace("2 0 0", "2 0 z"), "<origin> of <loop name='pin'> expects 3 numbers in xyz, got '2 0 z'"),
    "zero axis": (LOOP.format("revolute").replace("0 0 1", "0 0 0"), "<axis> of <loop name='pin'> is zero"),
    "itself": (LOOP.format("fixed").replace("right", "top"), "<loop name='pin'>: joint 'pin' connects body 'top' to itself"),
    "frame": (HINGES["Fusion"].replace('"parent"', '"moon"'), "has frame 'moon'; expected 'parent'"),
    "body of a ball": (BALL.replace("top", "tip"), "names an unknown link or frame 'tip'"),
    "coupling": (
        '<coupling name="c"><predecessor link="left"/><successor link="x"/></coupling>',
        "<successor> of <coupling name='c'> names an unknown link 'x'",
    ),
    "gazebo": (HINGES["Gazebo"].replace(">top<", ">tip<"), "<parent> of <joint name='pin'> names an unknown link 'tip'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_loops(text, message):
    with pytest.raises(sarrus.ModelError, match=r"^<string>:\d+: ") as error:
        sarrus.loads(robot(*BARS, text))
    assert message in str(error.value)


def test_xacro(tmp_path):
    path = tmp_path / "r.urdf.xacro"
    text = robot('<xacro:property name="m" value="2"/>', link("A", "${m + 1}"))
    path.write_text(text.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'))
    try:
        import xacro  # noqa: F401
    except ImportError:
        with pytest.raises(sarrus.ModelError, match="xacro is a macro language; pip install xacro, or expand it first"):
            sarrus.load(path)
        return
    assert sarrus.load(path).description.bodies[0].inertia.mass == 3.0
    path.write_text(path.read_text().replace("${m + 1}", "${n}"))
    with pytest.raises(
        sarrus.ModelError,
        match=r"xacro fails: name 'n' is not defined.*; values of the file's arguments: arguments=\{'name': value\}",
    ):
        sarrus.load(path)
    argument = text.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"')
    argument = argument.replace("<xacro:property", '<xacro:arg name="n" DEFAULT/><xacro:property')
    path.write_text(argument.replace("${m + 1}", "$(arg n)").replace("DEFAULT", 'default="4"'))
    assert sarrus.load(path).description.bodies[0].inertia.mass == 4.0
    path.write_text(argument.replace("${m + 1}", "$(arg n)").replace("DEFAULT", ""))
    with pytest.raises(sarrus.ModelError, match=r"xacro fails: .*values of the file's arguments: arguments="):
        sarrus.load(path)
    path.write_text(argument.replace("${m + 1}", "$(arg n)").replace("DEFAULT", 'default="4"'))
    for value in (5, "5"):
        assert sarrus.load(path, arguments={"n": value}).description.bodies[0].inertia.mass == 5.0
    for wrong, said in (
        ({"n": 5, "legs": 4, "arms": 2}, "the file has no argument 'arms', 'legs'"),
        (["n"], "expected a dict of names and values; got"),
        ({1: 5}, "expected a dict of names and values; got"),
    ):
        with pytest.raises(sarrus.ModelError, match=said):
            sarrus.load(path, arguments=wrong)
    (tmp_path / "r.urdf").write_text(robot(link("A", "1")))
    with pytest.raises(sarrus.ModelError, match=r"arguments does not apply to this format; arguments= is for \.xacro"):
        sarrus.load(tmp_path / "r.urdf", arguments={"n": 5})


# --- models that others published ------------------------------------------------------------------------------------

URDFS = [*reference_models.references("example-parallel-robots"), *reference_models.references("urdf-ext")]


@pytest.mark.skipif(not URDFS, reason="the published models are not beside the checkout")
@pytest.mark.parametrize("reference", URDFS, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_published_models(reference):
    """Mass matrix, bias, accelerations, rank and degrees of freedom are those of Pinocchio and dense algebra."""
    numbers, path = reference_models.read(reference)
    pytest.importorskip("yaml")
    loops = "robot.yaml" if "sidecar" in numbers else None
    builder = urdf.read(path.read_bytes(), source=path.name, beside=str(path.parent), loops=loops)
    robot = reference_models.on_tree(builder, [*numbers["joints"], "root_joint"])
    assert robot.nc == numbers["rows"]
    if "actuated" in numbers:
        assert set(robot.actuated) == set(numbers["actuated"])
    for k, one in enumerate(numbers["configurations"]):
        if path.parent.name == "generalized_rbda" and k == 0:
            one = {**one, "links": {}}  # not those of its q: link1 turns by joint1 alone
        rank, off, allowed = reference_models.check(robot, one, numbers["joints"], {})
        assert rank == one["rank"]
        assert off < allowed


@pytest.mark.skipif(not URDFS, reason="the published models are not beside the checkout")
@pytest.mark.parametrize(
    "name", ["5bar_linkage", "cassie_like", "digit_like", "disney_robot", "robot_delta", "kangaroo_like"]
)
def test_assembling_from_zero(name):
    """Loops open by up to 0.9 m and half a turn; the error for loops that cannot close gives the least gap."""
    pytest.importorskip("yaml")
    robot = sarrus.load(reference_models.MODELS / "example-parallel-robots" / name / "robot.urdf", loops="robot.yaml")
    if name == "kangaroo_like":
        with pytest.raises(sarrus.AssemblyError, match=r"the remaining gap is 0\.0\d+ m and 0\.\d+ rad"):
            robot.assemble()
        return
    assert np.abs(robot.constraint_residual(robot.assemble())).max() < 1e-12


@pytest.mark.parametrize("text", ["name_mot: [A]\nname_mot: [B]\n", '{"name_mot": ["A"], "name_mot": ["B"]}'])
def test_a_key_twice_in_a_sidecar(tmp_path, text):
    (tmp_path / "r.urdf").write_text(robot(*BARS))
    (tmp_path / "side.yaml").write_text(text)
    if not text.startswith("{"):
        pytest.importorskip("yaml")
    with pytest.raises(sarrus.ModelError, match=r"side.yaml: has the key 'name_mot' twice"):
        sarrus.load(tmp_path / "r.urdf", loops="side.yaml")


@pytest.mark.parametrize(
    ("text", "what"), [("name_mot: [a]", "motors"), ("joint_type: [SPHERICAL]", "types of joints")]
)
def test_a_sidecar_that_nobody_asked_for(tmp_path, text, what):
    (tmp_path / "r.urdf").write_text(robot(*BARS))
    (tmp_path / "r.yaml").write_text(text)
    (warning,) = sarrus.load(tmp_path / "r.urdf").warnings
    assert (
        warning == f"r.urdf:1: r.yaml in its folder seems to contain {what} and is not read: load(..., loops='r.yaml')"
    )
