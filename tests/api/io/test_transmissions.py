"""Transmissions in files: ros_control's and ros2_control's in URDF, tendons with armature in MJCF, against MuJoCo; and their writers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import interop
from tests.laws.test_transmissions import DIFFERENTIAL, wrist

LINK = """<link name="{}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><axis xyz="{3}"/></joint>"""
ARM = (
    "".join(LINK.format(name) for name in "ABC")
    + JOINT.format("j", "A", "B", "0 1 0")
    + JOINT.format("k", "B", "C", "1 0 0")
)
# in the order of ros2_control, in which roles are attributes; the second motor comes first
ROS2 = """<ros2_control name="wrist" type="system">
    <joint name="j"><command_interface name="position"/></joint><joint name="k"><command_interface name="position"/></joint>
    <transmission name="t"><plugin>transmission_interface/{}</plugin>
      <actuator name="right" role="actuator2"><mechanical_reduction>30</mechanical_reduction></actuator>
      <actuator name="left" role="actuator1"><mechanical_reduction>20</mechanical_reduction>
        <drake:rotor_inertia value="1e-4"/><drake:gear_ratio value="3"/></actuator>
      <joint name="j" role="joint1"><mechanical_reduction>2</mechanical_reduction><offset>0.5</offset></joint>
      <joint name="k" role="joint2"><mechanical_reduction>-3</mechanical_reduction></joint>
    </transmission></ros2_control>"""
ROS1 = """<transmission name="t"><type>transmission_interface/{}</type>
      <joint name="k"><role>joint2</role><mechanicalReduction>-3</mechanicalReduction></joint>
      <joint name="j"><role>joint1</role><mechanicalReduction>2</mechanicalReduction><offset>0.5</offset></joint>
      <actuator name="left"><role>actuator1</role><mechanicalReduction>20</mechanicalReduction>
        <drake:rotor_inertia value="1e-4"/><drake:gear_ratio value="3"/></actuator>
      <actuator name="right"><role>actuator2</role><mechanicalReduction>30</mechanicalReduction></actuator></transmission>"""
DRAKE = 'xmlns:drake="http://drake.mit.edu"'


def urdf(*parts):
    return f'<robot name="r" {DRAKE}>{ARM}{"".join(parts)}</robot>'


def joints_of(kind, left, right):
    """Return the coordinates of the joints j and k by the formulas of ros_control, from those of the motors."""
    if kind == "DifferentialTransmission":
        return (left / 20 + right / 30) / (2 * 2) + 0.5, (left / 20 - right / 30) / (2 * -3)
    return left / (2 * 20) + 0.5, (right / 30 - left / (2 * 20) * 1.0) / -3


@pytest.mark.parametrize("text", [ROS1, ROS2], ids=["ros_control", "ros2_control"])
@pytest.mark.parametrize("kind", ["DifferentialTransmission", "FourBarLinkageTransmission"])
def test_transmissions_of_ros_control(kind, text):
    """Positions are those of the documentation of transmission_interface, and power is conserved."""
    robot = sarrus.loads(urdf(text.format(kind)))
    assert (robot.actuated, robot.warnings) == (("left", "right"), ())
    q = robot.assemble(fixed={"left": 7.0, "right": -11.0})
    assert_allclose([q[robot.joint(name).q_slice][0] for name in "jk"], joints_of(kind, 7.0, -11.0), rtol=1e-12)
    assert robot.joint("left").type.armature[0] == pytest.approx(9e-4, rel=1e-15)
    assert_allclose(robot.constraint_residual(robot.assemble()), 0.0, atol=1e-12)


@pytest.mark.parametrize("text", [ROS1, ROS2], ids=["ros_control", "ros2_control"])
def test_transmissions_without_rotor_inertia(text):
    """They do not change the motion: the joints are those of other programs, and have the motors."""
    text = text.replace('<drake:rotor_inertia value="1e-4"/>', "")
    robot = sarrus.loads(urdf(text.format("DifferentialTransmission")))
    assert (robot.joints[1:], robot.actuated, robot.nc, robot.warnings) == (("j", "k"), ("j", "k"), 0, ())


def test_incomplete_transmissions():
    """A warning names the transmission; its motors are then at the joints."""
    for text, reason in (
        (
            ROS1.replace('<actuator name="right">', "<!-- ").replace(
                "</actuator></transmission>", " --></transmission>"
            ),
            "1 actuators and 2 joints",
        ),
        (ROS1.replace('name="k"', 'name="none"'), "two joints of one axis"),
    ):
        robot = sarrus.loads(urdf(text.format("DifferentialTransmission")))
        assert "left" not in robot.joints and "j" in robot.actuated
        assert any("<transmission name='t'>" in warning and reason in warning for warning in robot.warnings)
    robot = sarrus.loads(urdf(ROS1.format("DifferentialTransmission")), loops={"name_mot": ["j"]})
    assert robot.actuated == ("j",) and any("the sidecar lists the motors" in warning for warning in robot.warnings)
    limited = ARM.replace('xyz="0 1 0"/>', 'xyz="0 1 0"/><limit effort="5" velocity="1"/>')
    robot = sarrus.loads(urdf(ROS1.format("DifferentialTransmission")).replace(ARM, limited))
    assert "effort limits of joints that <transmission name='t'> drives have no effect" in robot.warnings[0]
    with pytest.raises(sarrus.ModelError, match=r"<string>:\d+: .*'left' in matrix has only zeros"):
        sarrus.loads(urdf(ROS1.replace(">20<", ">0<").format("DifferentialTransmission")))
    with pytest.raises(sarrus.ModelError, match=r"expects a number, got 'many'"):
        sarrus.loads(urdf(ROS1.replace(">20<", ">many<").format("DifferentialTransmission")))


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml", "json"])
def test_files_contain_transmissions(suffix, tmp_path):
    """Dynamics and motors are the same after a round trip; the offset of a tendon is the only loss."""
    robot = wrist(DIFFERENTIAL, friction=[0.01, 0.02], damping=1e-3, effort_limit=[2.0, 3.0], limits=(-5.0, 6.0))
    robot.save(tmp_path / f"wrist.{suffix}")
    options = {"loops": tmp_path / "wrist.yaml"} if suffix == "urdf" else {}
    same = sarrus.load(tmp_path / f"wrist.{suffix}", **options)
    assert (same.actuated, same.warnings) == (robot.actuated, ())
    q = robot.assemble(fixed={"elbow": 0.1, "bend": 0.2, "roll": -0.3})
    v = robot.complete_velocity(q, {"elbow": 1.0, "bend": 2.0, "roll": -0.5})
    assert_allclose(same.forward_dynamics(q, v, np.ones(5)), robot.forward_dynamics(q, v, np.ones(5)), rtol=1e-12)
    for name in ("left", "right"):
        one, other = same.joint(name), robot.joint(name)
        assert_allclose(one.limits, other.limits)
        assert_allclose(one.type.effort_limit, other.type.effort_limit)


def test_what_usd_cannot_represent(tmp_path):
    pytest.importorskip("pxr")
    with pytest.raises(sarrus.ModelError, match="USD cannot represent: constraint 'cables_left"):
        wrist(DIFFERENTIAL).save(tmp_path / "wrist.usda")


def test_what_formats_cannot_represent(tmp_path):
    robot = wrist(DIFFERENTIAL, offset=[0.3, 0.0], velocity_limit=10.0)
    with pytest.warns(sarrus.errors.ModelWarning) as warned:
        robot.save(tmp_path / "wrist.xml")
    texts = [str(one.message) for one in warned]
    for loss in (
        "the offset of motor 'left'",
        "the velocity limit of joint 'left'",
        "the velocity limit of joint 'right'",
    ):
        assert sum(loss in text for text in texts) == 1
    b = wrist(DIFFERENTIAL).to_builder()
    b.add_frame("encoder", "left_rotor")
    with pytest.warns(
        sarrus.errors.ModelWarning, match="moving bodies without mass, which MuJoCo rejects: 'left_rotor'"
    ):
        b.build().save(tmp_path / "encoder.xml")


# ---- tendons of MuJoCo -----------------------------------------------------------------------------------------------------------------

TENDONS = """<mujoco><compiler angle="radian"/><option><flag {flags}/></option><worldbody>
  <body><joint name="a" axis="0 1 0" ref="0.2"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
  <body pos=".3 0 0"><joint name="b" axis="1 0 0" springref="0.1"/><joint name="c" type="slide" axis="1 0 0"/>
    <geom type="box" size=".1 .02 .03" pos=".1 .02 0"/></body></body></worldbody>
  <tendon>
    <fixed name="t" armature=".3" damping=".7" stiffness="5" {spring}><joint joint="a" coef="2"/><joint joint="b" coef="-3"/></fixed>
    <fixed name="u" armature=".2" range="-1 1.5" {limited}><joint joint="b" coef="1"/><joint joint="c" coef="4"/></fixed>
    <fixed name="plain"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon>
  <actuator><motor tendon="t" gear="2" forcerange="-3 3"/><motor joint="a" gear="5"/></actuator>
  <keyframe><key name="k" qpos=".3 -.2 .1"/></keyframe></mujoco>"""
SPRINGS = ['springlength="0.4"', ""]


def acceleration(text, qpos, qvel, ctrl):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.ctrl = qpos, qvel, ctrl
    mujoco.mj_forward(model, data)
    return model, data.qacc


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("spring", SPRINGS)
def test_tendons_with_armature_move_as_in_mujoco(spring, compiled):
    """Accelerations, actuators, springs, dampers and limits of fixed tendons with armature are those of MuJoCo."""
    text = TENDONS.format(spring=spring, limited='limited="true"', flags="")
    qpos, qvel, ctrl = [0.1, 0.2, 0.05], [0.4, -0.3, 0.2], [0.6, -0.4]
    model, expected = acceleration(text.replace('limited="true"', 'limited="false"'), qpos, qvel, ctrl)
    robot = sarrus.io.from_mujoco(acceleration(text, qpos, qvel, ctrl)[0]) if compiled else sarrus.loads(text)
    assert (robot.joints[-2:], robot.actuated) == (("t", "u"), ("a", "t"))
    assert robot.warnings == ()
    assert robot.joint("t").type.effort_limit[0] == 6.0
    assert robot.joint("u").limits[1].tolist() == [1.5] and robot.joint("u").kind == "Prismatic"
    q, v = interop.from_mujoco_state(robot, qpos, qvel)
    tau = robot.actuation_matrix(q) @ [5 * ctrl[1], 2 * ctrl[0]]
    assert_allclose(robot.forward_dynamics(q, v, tau)[:3], expected, rtol=1e-10)
    back = interop.to_mujoco_state(robot, q, v)
    assert_allclose(np.concatenate(back), [*qpos, *qvel], rtol=0, atol=0)
    assert_allclose(robot.constraint_residual(robot.configuration("k")), 0.0, atol=1e-15)
    assert_allclose(robot.configuration("k"), [0.3, -0.2, 0.1, 1.2, 0.2], atol=1e-15)


def test_flags_of_tendons_with_armature():
    text = TENDONS.format(spring=SPRINGS[0], limited="", flags='spring="disable" damper="disable" limit="disable"')
    for robot in (sarrus.loads(text), sarrus.io.from_mujoco(acceleration(text, [0.0] * 3, [0.0] * 3, [0.0] * 2)[0])):
        motor = robot.joint("t").type
        assert motor.stiffness[0] == motor.damping[0] == 0.0 and robot.joint("u").limits is None


def test_springs_that_are_slack_are_named():
    text = TENDONS.format(spring='springlength="0.1 0.4"', limited="", flags="")
    for robot in (sarrus.loads(text), sarrus.io.from_mujoco(acceleration(text, [0.0] * 3, [0.0] * 3, [0.0] * 2)[0])):
        (warning,) = robot.warnings
        assert "springlength is a range is not read" in warning and robot.joint("t").type.stiffness[0] == 0.0
