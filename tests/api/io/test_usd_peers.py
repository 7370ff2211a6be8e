"""USD there and back with the programs that define its schemas: the converters of MJCF and URDF, and Newton."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Inertia

SINGLE = 1e-6  # stages hold masses and frames in single precision

MJCF = """<mujoco model="all"><compiler angle="radian"/><worldbody>
  <body name="crank" pos="0.1 0.2 0.3" euler="0.4 0.5 0.6"><joint name="j" axis="0 1 0" damping="0.5" armature="0.1" frictionloss="0.3" stiffness="2" springref="0.4"
    ref="0.2" range="-1 2"/><inertial pos="0.5 0 0.1" mass="2" fullinertia="0.3 0.4 0.5 0.01 0.02 -0.03"/>
    <body name="fork" pos="1 0 0"><joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0" pos="0 0 0.1" damping="0.2"/><geom size="0.1" mass="1" pos="0 0 0.4"/>
      <body name="ball" pos="0 0 1"><joint name="b" type="ball" damping="0.7" armature="0.05"/><geom type="box" size="0.1 0.2 0.3" mass="1.5" pos="0.1 0 0"/></body></body></body>
  <body name="rack" pos="0 3 0"><joint name="s" type="slide" axis="1 0 0" damping="0.7" stiffness="3" range="-0.5 0.5"/><geom size="0.1" mass="1"/></body>
  </worldbody>
  <equality><joint joint1="y" joint2="x" polycoef="0.1 2 0.3 0 0"/><joint joint1="s" joint2="j" polycoef="0 0.4 0 0 0"/></equality>
  <actuator><motor joint="j" gear="2" ctrlrange="-3 3"/><motor joint="x"/></actuator></mujoco>"""


def test_mjcf_by_the_converter(tmp_path):
    """Mass matrix, bias forces, couplers, limits and motors are those of the MJCF, up to its reference 0.2 of joint j."""
    converter = pytest.importorskip("mujoco_usd_converter")
    (tmp_path / "all.xml").write_text(MJCF)
    converter.Converter().convert(str(tmp_path / "all.xml"), str(tmp_path / "stage"))
    robot, right = sarrus.load(next((tmp_path / "stage").glob("*.usda"))), sarrus.loads(MJCF)
    assert set(robot.joints) == set(right.joints) and set(robot.actuated) == set(right.actuated) == {"j", "x"}
    offset, rng = {"j": 0.2}, np.random.default_rng(0)
    order = np.concatenate([np.arange(right.nv)[right.joint(name).v_slice] for name in robot.joints])
    for _ in range(3):
        v = rng.normal(size=right.nv)
        q = right.integrate(right.neutral(), rng.normal(size=right.nv))
        states = right.joint_states(q).q
        theirs = robot._at({name: x - offset.get(name, 0.0) for name, x in states.items()}.items())
        assert_allclose(robot.mass_matrix(theirs), right.mass_matrix(q)[np.ix_(order, order)], atol=SINGLE)
        assert_allclose(robot.bias_forces(theirs, v[order]), right.bias_forces(q, v)[order], atol=20 * SINGLE)
        assert_allclose(np.sort(robot.constraint_residual(theirs)), np.sort(right.constraint_residual(q)), atol=SINGLE)
    for name in ("j", "s"):
        limits = np.ravel(right.joint(name).type.limits) - offset.get(name, 0.0)
        assert_allclose(np.ravel(robot.joint(name).type.limits), limits, atol=SINGLE)
    assert robot.joint("j").type.effort_limit[0] == right.joint("j").type.effort_limit[0] == 6.0


URDF = """<robot name="arm"><link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><mass value="2"/><inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="-0.03"/></inertial></link>
  <link name="cross"/><link name="hand"><inertial><origin xyz="0 0 0.3"/><mass value="1"/><inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="a" type="revolute"><origin xyz="0 0 1" rpy="0.3 0.2 0.1"/><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="7" velocity="3"/><dynamics damping="0.4" friction="0.2"/></joint>
  <joint name="b" type="continuous"><origin xyz="0 0 1"/><parent link="upper"/><child link="cross"/><axis xyz="1 0 0"/></joint>
  <joint name="c" type="prismatic"><parent link="cross"/><child link="hand"/><axis xyz="0 0 1"/><limit lower="-0.1" upper="0.2" effort="9" velocity="0.5"/></joint>
</robot>"""


def test_urdf_by_the_converter(tmp_path):
    converter = pytest.importorskip("urdf_usd_converter")
    (tmp_path / "arm.urdf").write_text(URDF)
    converter.Converter().convert(str(tmp_path / "arm.urdf"), str(tmp_path / "stage"))
    robot, right = sarrus.load(next((tmp_path / "stage").glob("*.usda"))), sarrus.loads(URDF)
    moving = [name for name in robot.joints if robot.joint(name).nv]
    assert moving == ["a", "b", "c"]
    q, v = np.array([0.3, -0.4, 0.1]), np.array([1.0, 2.0, -1.5])
    assert_allclose(robot.mass_matrix(q), right.mass_matrix(q), atol=SINGLE)
    assert_allclose(robot.bias_forces(q, v), right.bias_forces(q, v), atol=20 * SINGLE)
    for name in ("a", "c"):
        for field in ("effort_limit", "velocity_limit", "damping", "friction", "limits"):
            ours, theirs = (np.ravel(getattr(x.joint(name).type, field)) for x in (robot, right))
            assert_allclose(ours, theirs, rtol=SINGLE, atol=SINGLE, err_msg=field)


def test_newton_reads_what_is_written(tmp_path):
    """Newton's reader without further schemas finds damping, friction, armature, velocity limits, limits and couplers."""
    newton = pytest.importorskip("newton")
    b = sarrus.Builder("written")
    for name in "abc":
        b.add_body(name, Inertia.box(1.0, (0.1, 0.2, 0.3)))
    terms = {
        "damping": 0.7,
        "friction": 0.2,
        "armature": 0.3,
        "limits": (-1, 2),
        "velocity_limit": 3.0,
        "effort_limit": 5.0,
    }
    b.add_joint("j", sarrus.Revolute("y", **terms), "ground", "a", actuated=True)
    b.add_joint("k", sarrus.Prismatic("x", **(terms | {"limits": (-0.1, 0.2)})), "a", "b", actuated=True)
    b.add_joint("l", sarrus.Revolute("z"), "b", "c")
    b.add_coupler("gear", {"l": 1.0, "j": -2.0}, offset=0.5)
    robot = b.build()
    robot.save(tmp_path / "written.usda")
    builder = newton.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_usd(str(tmp_path / "written.usda"))
    at = {label.rpartition("/")[2]: builder.joint_qd_start[k] for k, label in enumerate(builder.joint_label)}
    numbers = {
        "damping": 0.7,
        "friction": 0.2,
        "armature": 0.3,
        "velocity_limit": 3.0,
        "effort_limit": 5.0,
        "limit_upper": None,
    }
    for name, upper in (("j", 2.0), ("k", 0.2)):
        for field, value in (numbers | {"limit_upper": upper}).items():
            assert getattr(builder, f"joint_{field}")[at[name]] == pytest.approx(value, rel=SINGLE), (name, field)
    labels = [label.rpartition("/")[2] for label in builder.joint_label]
    assert builder.joint_mimic_joint[labels.index("l")] == labels.index("j")
    assert_allclose(builder.joint_mimic_coeffs[labels.index("l")], (0.5, 2.0), rtol=SINGLE)
    assert replace(sarrus.load(tmp_path / "written.usda").description, warnings=()).joints
