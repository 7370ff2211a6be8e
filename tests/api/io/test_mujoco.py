"""States and compiled models of MuJoCo, and MuJoCo's reading of the same documents, if it is installed."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import interop
from sarrus.spatial import Rotation

MODELS = Path(__file__).parents[4] / "shared" / "models"
FILES = sorted(p for folder in ("menagerie", "mujoco") for p in (MODELS / folder).rglob("*.xml"))

WORLD = """<worldbody>
  <site name="w" pos="1 2 3" zaxis="1 1 1"/>
  <frame pos="0.5 0 0" euler="0 0 45" childclass="a">
    <body name="base" pos="1 2 3" axisangle="1 0 0 30"><freejoint name="root"/>
      <geom size=".15"/> <geom type="box" pos=".1 0 0" zaxis="1 2 3" mass="2"/>
      <body name="arm" pos="0.3 0 0" xyaxes="1 1 0 0 1 1">
        <joint name="j1" pos=".1 .2 .3"/>
        <joint name="s1" class="b" pos=".1 0 0" axis="0 1 0"/>
        <joint name="j2" axis="0 0 1" pos="0 .2 0" range="0 0"/>
        <geom type="cylinder" fromto="0 0 0 .3 .2 .1" size=".05"/> <geom type="ellipsoid" class="b" group="2"/>
        <frame pos="0 0 .3" quat="0 0 1 1">
          <geom type="sphere" pos="0 1 0" size=".05"/> <site name="tip" pos=".1 .1 .1"/>
          <joint name="j3" axis="0 1 0" pos=".05 0 0"/> <joint name="j4" type="slide" axis="1 1 0" ref="0"/>
          <body name="hand" pos="0 0 .1" childclass="main">
            <joint name="ball" type="ball" pos="0 .1 0" stiffness="2" damping="0.3"/>
            <geom type="capsule" fromto="0 0 0 0 0 .4" size=".03"/> <geom type="box" group="4" mass="100"/>
            <site name="palm" quat="1 2 3 4" pos=".1 .2 .3"/>
            <body pos="0 0 .2"><geom size=".01"/><site name="deep" pos="0 0 .1"/></body>
          </body>
          <body name="finger" pos="0 .1 .1"><joint name="j5" ref="3"/><geom size=".02"/></body>
        </frame>
      </body>
    </body>
  </frame>
  <body name="other" pos="0 0 1" quat="1 1 0 0">
    <joint name="k1"/><joint name="k2" type="slide" axis="0 0 2" ref=".3"/>
    <inertial pos=".1 .2 .3" mass="3" fullinertia="1 1.2 1.4 .1 .2 .3"/> <geom size="5"/>
    <body name="leaf" pos="0 1 0"><joint springdamper=".4 .6" springref="7"/>
      <inertial pos="0 0 0.1" axisangle="0 1 0 20" mass="1" diaginertia=".1 .2 .25"/></body>
  </body>
  <body name="stone" pos="0 0 5" quat="-1 0 1 0"><freejoint name="fall"/><geom type="box"/></body>
</worldbody>"""
REST = """<compiler eulerseq="XYz" inertiagrouprange="0 3"/><compiler boundmass="0.01"/>
<option gravity="0 1 -9"><flag contact="disable"/></option>
<default>
  <geom density="500" size=".1 .2 .3"/> <joint damping="0.1" armature="0.02" axis="1 2 3"/>
  <motor gear="2"/> <equality active="true"/> <site euler="0 30 0"/>
  <default class="a">
    <geom type="capsule"/> <joint stiffness="3" springref="10" ref="20" range="-30 40"/>
    <default class="b"><joint type="slide" ref="0.2"/><geom euler="10 20 30"/></default>
  </default>
</default>
<tendon>
  <fixed name="t1"><joint joint="k1" coef="2"/><joint joint="k2" coef="-3"/></fixed>
  <fixed name="t2"><joint joint="j1" coef="1.5"/></fixed>
</tendon>
<actuator>
  <motor joint="k1" ctrlrange="-3 2"/> <general tendon="t1" gear="3" forcerange="-1 5"/>
  <position joint="j2" kp="3" forcerange="-2 2"/> <motor joint="ball" gear="1 0 0"/> <motor site="tip" refsite="w"/>
  <general joint="j3" armature="0.1" damping="0.2" gear="5"/>
</actuator>"""
EQUALITIES = {
    "connect": '<connect body1="hand" body2="other" anchor=".1 .2 .3"/>',
    "connect to the world": '<connect body1="leaf" anchor="0 .2 .3"/>',
    "weld": '<weld body1="hand" body2="leaf" anchor=".1 .2 .4"/>',
    "weld, relpose": '<weld body1="base" body2="leaf" anchor=".1 .2 .4" relpose="1 2 3 1 1 0 0" torquescale="0.2"/>',
    "weld of a point": '<weld body1="base" body2="leaf" anchor="1 0 0" torquescale="0"/>',
    "weld by sites": '<weld site1="tip" site2="w"/>',
    "connect by sites": '<connect site1="palm" site2="w"/>',
    "polynomial": '<joint joint1="k1" joint2="j1" polycoef=".1 .2 .3 .4 .5"/>',
    "one joint": '<joint joint1="s1" polycoef=".3"/>',
    "two joints": '<joint joint1="s1" joint2="k2" polycoef=".3 4"/>',
    "tendons": '<tendon tendon1="t1" tendon2="t2" polycoef="1 2 3"/>',
    "tendons, linear": '<tendon tendon1="t2" tendon2="t1" polycoef="1 2"/>',
    "one tendon": '<tendon tendon1="t1"/>',
}
KEY = '<keyframe><key name="home" qpos="1 2 3 0.5 0.5 -0.5 0.5 1 2 3 4 8 0 1 0 0 9 5 6 7 1 1 1 1 0 0 0"/><key/></keyframe>'
TEXT = f"<mujoco model='all'>{WORLD}{REST}{KEY}<equality>{''.join(EQUALITIES.values())}</equality></mujoco>"


def velocity_map(robot, q):
    """Return T with qvel = T v."""
    T = np.eye(robot.nv)
    for joint in map(robot.joint, robot.joints):
        if joint.kind == "Free":
            R, at = Rotation.from_quaternion(q[joint.q_slice][:4]).matrix, joint.v_slice.start
            T[at : at + 6, at : at + 6] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
    return T


def states(mujoco, model, count=3):
    """Yield MuJoCo states at qpos0 and random ones, with all quantities computed, and their origin."""
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    for k in range(count):
        data.qpos[:] = model.qpos0
        if k:
            mujoco.mj_integratePos(model, data.qpos, 0.5 * rng.normal(size=model.nv), 1.0)
            data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        yield data


def compare(mujoco, model, robot):
    """Compare poses, mass matrix and qpos0."""
    assert (robot.nq, robot.nv) == (model.nq, model.nv)
    assert_allclose(interop.to_mujoco_state(robot, robot.configuration("qpos0")), model.qpos0, rtol=0, atol=1e-10)
    assert_allclose(
        robot.gravity, 0.0 * robot.gravity if "gravity is disabled" in str(robot.warnings) else model.opt.gravity
    )
    for data in states(mujoco, model):
        q, v = interop.from_mujoco_state(robot, data.qpos.copy(), data.qvel.copy())
        for back, theirs in zip(interop.to_mujoco_state(robot, q, v), (data.qpos, data.qvel), strict=True):
            assert_allclose(back, theirs, rtol=0, atol=1e-12)
        for k in range(1, model.nbody):
            pose = robot.pose(q, model.body(k).name or f"body{k}")
            assert_allclose(pose[:3, 3], data.xpos[k], rtol=0, atol=1e-10)
            assert_allclose(pose[:3, :3].ravel(), data.xmat[k], rtol=0, atol=1e-10)
        if model.nv:
            M = np.zeros((model.nv, model.nv))
            mujoco.mj_fullM(model, data, M)
            T = velocity_map(robot, q)
            assert_allclose(T.T @ M @ T, robot.mass_matrix(q), rtol=0, atol=1e-10 * abs(M).max())


# --- states -------------------------------------------------------------------------------------------------------


def floating():
    b = sarrus.Builder()
    for name in "abcd":
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("free", sarrus.Free(), "ground", "a")
    b.add_joint("ball", sarrus.Spherical(), "a", "b")
    b.add_joint("hinge", sarrus.Revolute("x"), "b", "c")
    b.add_joint("weld", sarrus.Fixed(), "c", "d")
    return b


def test_states_by_hand():
    """A body rotated by a quarter turn about z: its x-axis is the world's y."""
    robot, h = floating().build(), np.sqrt(0.5)
    q = [0, 0, h, h, 1, 2, 3, 0.6, 0, 0, 0.8, 5]
    v = [1, 2, 3, 10, 0, 20, 4, 5, 6, 7]
    qpos, qvel = interop.to_mujoco_state(robot, q, v)
    assert_allclose(qpos, [1, 2, 3, h, 0, 0, h, 0.8, 0.6, 0, 0, 5])
    assert_allclose(qvel, [0, 10, 20, 1, 2, 3, 4, 5, 6, 7], atol=1e-14)
    for ours, back in zip((q, v), interop.from_mujoco_state(robot, qpos, qvel), strict=True):
        assert_allclose(back, ours, atol=1e-14)
    qpos = interop.to_mujoco_state(robot, q, joints=["hinge", "free", "ball"])
    assert_allclose(qpos, [5, 1, 2, 3, h, 0, 0, h, 0.8, 0.6, 0, 0])
    assert_allclose(interop.from_mujoco_state(robot, qpos, joints=["hinge", "free", "ball"]), q)


def test_velocity_is_of_the_body_in_the_world():
    """MuJoCo's linear velocity is the rate of the position; its angular velocity is in the body's axes."""
    robot, rng = floating().build(), np.random.default_rng(3)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    qvel = interop.to_mujoco_state(robot, q, v)[1]
    assert_allclose(qvel[:3], robot.velocity(q, v, "a", expressed_in="world_aligned")[3:], atol=1e-13)
    assert_allclose(qvel[3:6], robot.velocity(q, v, "a")[:3], atol=1e-13)


def test_many_states():
    robot, rng = floating().build(), np.random.default_rng(4)
    q, v = robot.random(rng, (3, 2)), rng.normal(size=(2, robot.nv))
    qpos, qvel = interop.to_mujoco_state(robot, q, v)
    assert (qpos.shape, qvel.shape) == ((3, 2, robot.nq), (3, 2, robot.nv))
    one = interop.to_mujoco_state(robot, q[2, 1], v[1])
    assert_allclose(np.concatenate(one), np.concatenate([qpos[2, 1], qvel[2, 1]]), atol=1e-14)
    back = interop.from_mujoco_state(robot, qpos, qvel)
    assert_allclose(back[0], q)
    assert_allclose(back[1], np.broadcast_to(v, (3, 2, robot.nv)), atol=1e-13)


def test_bad_states():
    robot = floating().build()
    with pytest.raises(sarrus.ShapeError, match=r"q has shape \(3,\); this mechanism requires \(..., 12\)"):
        interop.to_mujoco_state(robot, np.zeros(3))
    with pytest.raises(sarrus.ShapeError, match=r"qvel has shape \(\); this mechanism requires \(..., 10\)"):
        interop.from_mujoco_state(robot, np.zeros(12), 1.0)
    with pytest.raises(sarrus.NameNotFoundError, match="joints: no moving joint is named 'weld'"):
        interop.to_mujoco_state(robot, robot.neutral(), joints=["free", "ball", "weld"])
    with pytest.raises(sarrus.ModelError, match=r"each moving joint of the robot once; 2 are named, missing: .'ball'."):
        interop.to_mujoco_state(robot, robot.neutral(), joints=["free", "hinge"])
    with pytest.raises(TypeError, match="mechanism must be a Mechanism"):
        interop.to_mujoco_state(None, [0.0])
    other = floating()
    other.add_body("e", sarrus.Inertia.sphere(1.0, 0.1))
    other.add_joint("plane", sarrus.Planar("z"), "ground", "e")
    with pytest.raises(sarrus.ModelError, match="joint 'plane' is Planar: MuJoCo has hinges"):
        interop.to_mujoco_state(other.build(), np.zeros(15))
    other = floating()
    other.add_body("e", sarrus.Inertia.sphere(1.0, 0.1))
    other.add_joint("loose", sarrus.Free(), "ground", "e", at_child=(1, 0, 0))
    with pytest.raises(sarrus.ModelError, match="joint 'loose': MuJoCo's free joints have the pose of a body's frame"):
        interop.to_mujoco_state(other.build(), np.zeros(19))


# --- compiled models ----------------------------------------------------------------------------------------------


def test_arrays_of_no_library():
    """A pendulum from arrays alone, with its mass 1 m under the pin."""
    none = np.zeros(0)
    model = SimpleNamespace(
        nbody=2, njnt=1, nq=1, nv=1, neq=0, nsite=0, ngeom=0, nkey=0, qpos0=np.array([0.5]), qpos_spring=np.zeros(1),
        opt=SimpleNamespace(gravity=np.array([0, 0, -10.0]), disableflags=0), key_qpos=np.zeros((0, 1)),
        body_parentid=[0, 0], body_pos=np.zeros((2, 3)), body_quat=np.array([[1.0, 0, 0, 0]] * 2),
        body_ipos=np.array([[0, 0, 0], [0, 0, -1.0]]), body_iquat=np.array([[1.0, 0, 0, 0]] * 2),
        body_mass=[0.0, 2.0], body_inertia=np.zeros((2, 3)), body_jntadr=[-1, 0], body_jntnum=[0, 1],
        jnt_type=[3], jnt_qposadr=[0], jnt_dofadr=[0], jnt_bodyid=[1], jnt_pos=np.zeros((1, 3)), jnt_limited=[0],
        jnt_axis=np.array([[0, 1.0, 0]]), jnt_stiffness=[0.0], jnt_range=np.zeros((1, 2)), jnt_actfrclimited=[0],
        jnt_actfrcrange=np.zeros((1, 2)), dof_damping=[0.0], dof_armature=[0.0], dof_frictionloss=[0.0],
        actuator_trntype=none,
    )  # fmt: skip
    robot = sarrus.io.from_mujoco(model)
    assert (robot.joints, robot.bodies, robot.warnings) == (("body1_hinge",), ("body1",), ())
    assert_allclose(robot.gravity_forces([0.5 + np.pi / 2]), [20])
    assert_allclose(robot.configuration("qpos0"), [0.5])
    model.body_plugin = [-1, 0]
    assert sarrus.io.from_mujoco(model).warnings == ("MjModel: forces of plugins on bodies are not read",)
    with pytest.raises(TypeError, match=r"model: expected a mujoco.MjModel, or an object with its arrays; got 3"):
        sarrus.io.from_mujoco(3)


def both(text):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    return mujoco, model, sarrus.loads(text), sarrus.io.from_mujoco(model)


def test_the_document_and_the_compiled_model_are_one():
    _, _, read, taken = both(TEXT)
    assert (read.name, read.frames, read.actuated, read.nc) == (taken.name, taken.frames, taken.actuated, taken.nc)
    ours, theirs = read.description, taken.description
    for a, b in zip(ours.joints, theirs.joints, strict=True):
        assert (a.name, a.bodies, a.kind, a.loop, a.tree) == (b.name, b.bodies, b.kind, b.loop, b.tree)
        for term in ("limits", "damping", "friction", "armature", "stiffness", "rest", "effort_limit"):
            one, other = getattr(a.joint, term), getattr(b.joint, term)
            assert (one is None) == (other is None)
            if one is not None:
                assert_allclose(np.ravel(one), np.ravel(other), rtol=1e-12)
        for one, other in ((a.at_parent, b.at_parent), (a.at_child, b.at_child)):
            assert_allclose(one.translation, other.translation, atol=1e-13)
    for a, b in zip(ours.bodies, theirs.bodies, strict=True):
        assert a.name == b.name
        assert_allclose(a.inertia.matrix, b.inertia.matrix, atol=1e-13 * abs(a.inertia.matrix).max())
    for a, b in zip(ours.constraints, theirs.constraints, strict=True):
        assert (a.name, str(a)) == (b.name, str(b))
    for name in dict(read.description.configurations):
        assert_allclose(read.configuration(name), taken.configuration(name), atol=1e-14)
    assert [v.shape for v in ours.visuals] == [v.shape for v in theirs.visuals]


def test_replicas():
    inside = """<replicate count="2" sep="-" offset="1 0 0" euler="0 90 0"><body name="b" pos="0 .5 0">
        <joint name="j" pos=".1 0 0"/><geom size=".1"/><site name="s"/></body></replicate>"""
    text = f"""<mujoco><compiler eulerseq="zyx"/><worldbody><body name="base"><joint/><geom size="1"/>
      <replicate count="10" offset="0 1 0" euler="20 0 30">{inside}<body><geom size=".2"/></body></replicate></body>
      <replicate count="3" offset="0 0 1"><body name="f" pos="1 1 1"><freejoint/><geom type="box" size=".1 .2 .3"/></body></replicate>
      </worldbody></mujoco>"""
    mujoco, model, read, taken = both(text)
    assert read.bodies == taken.bodies
    assert read.joints == taken.joints
    compare(mujoco, model, read)


def test_what_is_not_read_of_a_compiled_model():
    text = f"""<mujoco><option density="1"><flag spring="disable" limit="disable"/></option>
      <worldbody><body name="m" mocap="true"/><body name="ground" gravcomp=".5"><geom size="1"/>
        <joint name="j" damping="1 2" stiffness="3 4" range="-1 1"/><site name="s"/></body></worldbody>
      <tendon><spatial name="t"><site site="s"/><site site="w"/><site site="s"/></spatial></tendon>
      <actuator><motor tendon="t"/><position joint="j"/></actuator>
      <equality>{EQUALITIES["one joint"].replace("s1", "j").replace("<joint", "<joint name='j' active='false'")}
        <joint name="j2" joint1="j"/></equality></mujoco>""".replace('<body name="m"', '<site name="w"/><body name="m"')
    _, _, read, taken = both(text)
    assert sorted(taken.warnings) == [
        "MjModel: actuators that act on neither joints nor fixed tendons are not read",
        "MjModel: body 'ground' becomes 'ground_body': 'ground' is the world",
        "MjModel: body_gravcomp is not read",
        "MjModel: control laws of actuators are not read",
        "MjModel: equality j is inactive, and left out",
        "MjModel: limit is disabled, and left out",
        "MjModel: mocap bodies do not move",
        "MjModel: spring is disabled, and left out",
        "MjModel: the drag of the medium is not read",
    ]
    for robot in (read, taken):
        assert repr(robot.joint("j").type) == "Revolute('z', damping=1, quadratic_damping=2)"
        assert robot.bodies == ("m", "ground_body")
        assert robot.constraints == ("j2",)


def test_an_equality_of_a_spatial_tendon_is_refused():
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><site name="w"/><body><geom size="1"/><joint/><site name="s" pos="1 0 0"/></body></worldbody>
      <tendon><spatial name="t"><site site="s"/><site site="w"/><site site="s"/></spatial></tendon>
      <equality><tendon name="e" tendon1="t"/></equality></mujoco>"""
    with pytest.raises(sarrus.ModelError, match="equality e is of a flex or a spatial tendon"):
        sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(text))


def test_poses_and_mass_matrix():
    mujoco, model, read, taken = both(TEXT)
    compare(mujoco, model, read)
    compare(mujoco, model, taken)


def test_forces():
    """Gravity, Coriolis forces, springs and dampers: inverse dynamics at random accelerations."""
    mujoco, model, *robots = both(re.sub("<equality>.*</equality>", "", TEXT))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # theirs of limits
    rng = np.random.default_rng(1)
    for data in states(mujoco, model):
        for robot in robots:
            q, v = interop.from_mujoco_state(robot, data.qpos.copy(), data.qvel.copy())
            a = rng.normal(size=model.nv)
            T, h = velocity_map(robot, q), 1e-6
            rate = (
                velocity_map(robot, robot.integrate(q, h * v)) - velocity_map(robot, robot.integrate(q, -h * v))
            ) / (2 * h)
            data.qacc[:] = T @ a + rate @ v
            mujoco.mj_inverse(model, data)
            tau = robot.inverse_dynamics(q, v, a)
            assert_allclose(T.T @ data.qfrc_inverse, tau, rtol=0, atol=1e-7 * abs(tau).max())


@pytest.mark.parametrize("equality", EQUALITIES.values(), ids=EQUALITIES)
def test_equalities(equality):
    """Closed loops are closed in both, and the rows span the same space there."""
    mujoco, model, *robots = both(f"<mujoco>{WORLD}{REST}<equality>{equality}</equality></mujoco>")
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    for data in states(mujoco, model):
        for robot in robots:
            q = robot.assemble(near=interop.from_mujoco_state(robot, data.qpos.copy()))
            data.qpos[:] = interop.to_mujoco_state(robot, q)
            mujoco.mj_forward(model, data)
            assert_allclose(data.efc_pos[: data.ne], 0, atol=1e-11)
            theirs = data.efc_J.reshape(-1, model.nv)[: data.ne] @ velocity_map(robot, q)
            ours = robot.constraint_jacobian(q)
            ranks = [np.linalg.matrix_rank(x, tol=1e-8) for x in (ours, theirs, np.vstack([ours, theirs]))]
            assert ranks == [robot.nc] * 3


@pytest.mark.skipif(not FILES, reason="the published models are not beside the checkout")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_files_of_others(path, tmp_path):
    """Files as MuJoCo compiles them, without missing meshes, so that bodies with masses from meshes have none."""
    mujoco = pytest.importorskip("mujoco")
    if path.parent.name == "robotiq_2f85" and path.name != "2f85.explicit.xml":
        with pytest.raises(sarrus.ModelError, match=r"its mass by mesh 'base_mount', .*from_mujoco"):
            sarrus.load(path)
        return
    robot = sarrus.load(path)
    for file in path.parent.glob("*.xml"):
        text = re.sub(r"<!--.*?-->", "", file.read_text(), flags=re.S)
        text = re.sub(r"<asset>.*?</asset>", "", text, flags=re.S)
        text = re.sub(r"(<default.*)?<geom[^>]*(?<=mesh=)[^>]*/>", "", text)
        text = re.sub(r'material="\w+"', "", text)
        (tmp_path / file.name).write_text(text)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / path.name))
    compare(mujoco, model, robot)
    compare(mujoco, model, sarrus.io.from_mujoco(model))


POLYNOMIAL = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody><site name="w" pos="0 0.1 0.5"/>
  <body name="a"><joint name="h" axis="0 1 0" ref="0.1" springref="0.4" stiffness="3 -2 5" damping="0.3 0.2 0.7"/><geom size="0.1" mass="1" pos="0.5 0 0"/>
  <body name="b" pos="1 0 0"><joint name="s" type="slide" axis="1 0 0.2" springref="-0.2" stiffness="0 0 50" damping="0 2"/><geom size="0.1" mass="2" pos="0.3 0 0.1"/>
    <site name="p" pos="0.1 0 0"/>
  <body name="c" pos="0.5 0 0.2"><joint name="ball" type="ball" stiffness="2 3 4" damping="0.2 0.3 0.4"/><geom size="0.1" mass="1" pos="0.2 0.1 0"/></body></body></body></worldbody>
  <tendon><spatial name="string" stiffness="20 -3 6" damping="0 2 1" springlength="0.7"><site site="w"/><site site="p"/></spatial>
    <spatial name="cubic" stiffness="0 0 9" springlength="0.2"><site site="w"/><site site="p"/></spatial>{}</tendon>
  <actuator><motor joint="h" gear="-2" damping="0.1 0.2 0.3" armature="0.02"/>{}</actuator></mujoco>"""
FIXED = '<fixed name="t" stiffness="4 -3 2" damping="0.1 0.2 0.3"><joint joint="h" coef="2"/><joint joint="s" coef="-0.5"/></fixed>'
DRIVEN = (
    '<fixed name="t"><joint joint="h" coef="2"/><joint joint="s" coef="-0.5"/></fixed>',
    '<motor tendon="t" gear="3" armature="0.1" damping="0.1 0.2 0.3"/>',
)


@pytest.mark.parametrize("parts", [("", ""), (FIXED, ""), DRIVEN], ids=["joints", "tendon", "motor of a tendon"])
def test_polynomial_springs_and_dampers(parts, tmp_path):
    """Passive forces are MuJoCo's: k0 x + k1 x² + k2 x³ and c0 v + c1 v |v| + c2 v³, along joints, tendons and actuators; also of written files."""
    text = POLYNOMIAL.format(*parts)
    mujoco, model, read, taken = both(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups of shapes
        read.save(tmp_path / "written.xml")
    written = sarrus.load(tmp_path / "written.xml")
    rotor, length = bool(parts[0]), np.array([2.0, -0.5, 0.0, 0.0, 0.0])
    for robot in (read, taken, written):
        assert not [note for note in robot.warnings if "not read" in note]
        for data in states(mujoco, model, 4):
            q, v = interop.from_mujoco_state(robot, data.qpos.copy(), data.qvel.copy())
            none = dict.fromkeys((*robot.joints, *(s.name for s in robot.description.springs)), 0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a rest without stiffness
                bare = robot.replace(**dict.fromkeys(PASSIVE_TERMS, none))
            rest = np.zeros(robot.nv)
            ours = robot.inverse_dynamics(q, v, rest) - bare.inverse_dynamics(q, v, rest)
            ours = ours[:5] + length * ours[5] if rotor else ours
            theirs = data.qfrc_passive + data.qfrc_actuator  # the latter by the damping of actuators
            assert_allclose(-ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
            mujoco.mj_energyPos(model, data)
            assert_allclose(robot.potential_energy(q), data.energy[0], rtol=1e-12)
    if parts == DRIVEN:
        for robot in (read, taken):
            assert robot.joint("t").type.armature == [0.1 * 9] and "t" in robot.actuated


PASSIVE_TERMS = ("stiffness", "quadratic_stiffness", "cubic_stiffness", "damping", "quadratic_damping", "cubic_damping")


def test_polynomial_dampers_of_a_free_joint_act_along_other_axes():
    """MuJoCo's act along the world's axes, and the sum is not the same along others, unlike for linear dampers."""
    _, _, *robots = both(
        '<mujoco><worldbody><body><joint name="f" type="free" damping="1 2"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    for robot in robots:
        assert any("quadratic_damping of a free joint acts along the body's axes" in note for note in robot.warnings)


def test_switched_off_springs_have_no_polynomials():
    off = POLYNOMIAL.format("", "").replace(
        'gravity="0 0 0"/>', 'gravity="0 0 0"><flag spring="disable" damper="disable"/></option>'
    )
    for robot in both(off)[2:]:
        assert not robot.joint("ball").type.cubic_damping.any() and not robot.description.springs


SCALED = """<mujoco><compiler angle="radian"/><worldbody><body name="base" pos="0.1 0 0"><joint name="free" type="free"/><geom size=".2" mass="3"/>
  <frame pos="1 2 3" euler="0.1 0.2 0.3" {}><body name="a" pos=".1 .2 .3"><joint name="h" pos=".01 .02 .03" stiffness="2 3 4" damping="5 6 7" armature=".1"
      frictionloss=".2" range="-1 2" ref=".5" springref=".7" actuatorfrcrange="-3 3"/>
    <geom name="g" type="box" size=".1 .2 .3" pos=".01 0 0" density="500"/><site name="p" pos=".1 .2 0"/><geom type="capsule" fromto="0 0 0 0 .1 1" size=".1"/>
    <frame pos="0 0.1 0" {}><body name="b" pos=".5 0 0"><joint name="s" type="slide" stiffness="2 3 4" damping="5 6 7" armature=".1" frictionloss=".2"
        range="-.1 .2" ref=".05" springref=".07" actuatorfrcrange="-3 3"/><geom name="g2" size=".1" mass="2" friction=".8 .2 .3" condim="6"/>
      <body name="c" pos="0 0 .3"><joint type="ball" name="ball" stiffness="2 3 4" damping="5 6 7" armature=".1" frictionloss=".2"/>
        <inertial pos="0 .1 .1" mass="3" diaginertia="1 2 2.5"/></body></body></frame></body></frame></body></worldbody>
  <actuator><motor joint="h" gear="3" forcerange="-2 2" armature=".3" damping=".4 .5 .6"/><motor joint="s" gear="3" ctrlrange="-2 2" armature=".3" damping=".4 .5 .6"/></actuator>
  <keyframe><key name="k" qpos="1 2 3 1 0 0 0 1.5 .5"/></keyframe></mujoco>"""
SCALES = ('scale="2"', 'scale="2" massscale="5"', 'scale="2" scaling="geometry"', 'scale="2 2 2" scaling="geometry" massscale="3"', 'massscale="3"')  # fmt: skip


@pytest.mark.parametrize("inner", ["", 'scale="1.5" scaling="geometry"', 'scale="0.7"'])
@pytest.mark.parametrize("outer", SCALES)
def test_frames_that_scale_their_contents(outer, inner):
    """Bodies, joints, geoms, sites, actuators of joints and keys in a <frame scale> are those of MuJoCo's compiler."""
    mujoco, model, read, taken = both(SCALED.format(outer, inner))
    compare(mujoco, model, read)
    assert not [note for note in read.warnings if "scale" in note]
    for name in read.joints:
        for field in (*PASSIVE_TERMS, "armature", "friction", "rest", "limits", "effort_limit"):
            one, other = (getattr(robot.joint(name).type, field) for robot in (read, taken))
            assert (one is None) == (other is None), field
            if one is not None:
                assert_allclose(one, other, rtol=1e-12, err_msg=f"{name} {field}")
    for name in ("qpos0", "k"):
        assert_allclose(read.configuration(name), taken.configuration(name), rtol=1e-12, atol=1e-15)
    q = read.configuration("k")
    assert_allclose(read.pose(q, "p"), taken.pose(q, "p"), rtol=0, atol=1e-12)
    shapes = [
        [(s.shape, s.torsional_friction, s.rolling_friction) for s in robot.description.shapes]
        for robot in (read, taken)
    ]
    assert repr(shapes[0]) == repr(shapes[1])


@pytest.mark.parametrize(
    ("section", "error"),
    [
        ('<equality><connect body1="a" anchor="0 0 0"/></equality>', "refers to 'a', which is in a <frame> with a scale"),
        ('<equality><joint joint1="s" joint2="h"/></equality>', "refers to 's', which is in a <frame> with a scale"),
        ('<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>', "refers to 'h', which is in a <frame>"),
        ('<tendon><spatial name="t"><site site="p"/><site site="w"/></spatial></tendon>', "refers to 'p', which is in a <frame>"),
    ],
)  # fmt: skip
def test_what_refers_to_scaled_parts(section, error):
    text = (
        SCALED.format('scale="2"', "")
        .replace("<worldbody>", '<worldbody><site name="w"/>')
        .replace("<actuator>", f"{section}<actuator>")
    )
    with pytest.raises(sarrus.ModelError, match=error):
        sarrus.loads(text)
    for scale in ('scale="1 2 3" scaling="geometry"', 'scale="0"', 'scale="-1"', 'scale="inf"', 'massscale="-1"'):
        with pytest.raises(sarrus.ModelError, match=r"scale|finite"):
            sarrus.loads(SCALED.format(scale, ""))


def test_each_direction_of_a_ball_has_its_damping():
    _, model, _, _ = both(
        '<mujoco><worldbody><body><joint name="b" type="ball" damping="1"/><geom size=".1" pos=".1 0 0"/></body></worldbody></mujoco>'
    )
    model.dof_damping[:] = 1, 2, 3
    assert sarrus.io.from_mujoco(model).joint("b").type.damping.tolist() == [1, 2, 3]


TOUCHING = """<mujoco><asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset><worldbody>
<geom type="plane" size="1 1 1" name="floor" friction=".7"/>
<body name="a" pos="0 0 1"><freejoint/><geom name="a" size=".1"/><geom type="capsule" size=".2 .1" condim="4"/><geom type="mesh" mesh="m" mass="0"/></body>
<body name="b" pos="0 0 2"><freejoint/><geom name="sphere_a" size=".1" contype="2" conaffinity="2"/>
<geom size=".2 .3 .1" type="box" condim="6" friction=".5 .01 .002"/><geom size=".1" contype="0" conaffinity="0"/></body></worldbody>
<contact><exclude body1="a" body2="b"/><pair geom1="floor" geom2="sphere_a" friction=".3 .3 .01 .001 .001" condim="6"/></contact></mujoco>"""


def test_shapes_that_touch_are_those_of_the_file():
    """Shapes of a compiled model equal those that `load` reads from its text; meshes have MuJoCo's vertices."""
    mujoco = pytest.importorskip("mujoco")
    compiled = sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(TOUCHING))
    read = sarrus.loads(TOUCHING.replace('<geom type="mesh" mesh="m" mass="0"/>', ""))
    shapes = {spec.name: spec for spec in compiled.description.shapes}
    (hull,) = (spec for spec in shapes.values() if isinstance(spec.shape, sarrus.shapes.ConvexPoints))
    assert len(hull.shape.points) == 4 and hull.body == "a"
    told = {spec.name: spec for spec in read.description.shapes}
    assert {name: spec for name, spec in shapes.items() if spec is not hull}.keys() == told.keys()
    for name, spec in told.items():
        other = shapes[name]
        assert (other.body, other.shape, other.group, other.friction) == (
            spec.body,
            spec.shape,
            spec.group,
            spec.friction,
        )
        assert (other.torsional_friction, other.rolling_friction) == (spec.torsional_friction, spec.rolling_friction)
        assert_allclose(other.placement.matrix, spec.placement.matrix, atol=1e-12)

    def pairs(robot):
        return {
            (frozenset((c.first, c.second)), c.touching, c.friction, c.rolling_friction)
            for c in robot.description.contacts
        }

    assert pairs(read) <= pairs(compiled) and pairs(read)
    assert any("meshes touch planes only" in one for one in compiled.warnings)
    run = sarrus.simulate(compiled, compiled.assemble(), np.zeros(compiled.nv), 1.0, method="contact", limits="ignore")
    assert compiled.pose(run.q[-1], "a")[2, 3] > 0.05


TENDON = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/>
  <worldbody><body name="a"><joint name="j" axis="0 1 0" ref="0.1" springref="0.4"/><geom size="0.1" mass="1" pos="0.5 0 0"/>
    <body name="b" pos="1 0 0"><joint name="k" axis="0 1 0" springref="-0.2"/><geom size="0.1" mass="2" pos="0.3 0 0.1"/></body></body></worldbody>
  <tendon><fixed name="t" {}><joint joint="j" coef="2"/><joint joint="k" coef="-0.5"/></fixed></tendon>
  <keyframe><key name="bent" qpos="0.7 0.5"/></keyframe></mujoco>"""


@pytest.mark.parametrize(
    "terms",
    [
        'stiffness="50"',
        'stiffness="50" springlength="0.3" damping="2"',
        'stiffness="50" springlength="-0.7"',
        'armature="0.3" damping="0.5" range="-1 1.5"',
        'frictionloss="0.7"',
    ],
)
def test_passive_terms_of_fixed_tendons(terms):
    """Accelerations are those of MuJoCo with the same motion; its dry friction is a force 0.7 along the tendon. Configurations close the coupler."""
    mujoco = pytest.importorskip("mujoco")
    text = TENDON.format(terms)
    model = mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    for robot in (sarrus.loads(text), sarrus.io.from_mujoco(model)):
        assert robot.joints == ("j", "k", "t")
        for name in ("qpos0", "bent"):
            assert_allclose(robot.constraint_residual(robot.configuration(name)), 0, atol=1e-15)
        if "range" in terms:
            assert_allclose(np.ravel(robot.joint("t").type.limits), [-1, 1.5])
        for _ in range(3):
            data.qpos[:], data.qvel[:] = rng.normal(size=(2, 2))
            length = np.array([2.0, -0.5])
            data.qfrc_applied[:] = -0.7 * length * np.sign(length @ data.qvel) if "friction" in terms else 0.0
            model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS) | int(
                mujoco.mjtDisableBit.mjDSBL_LIMIT
            )
            mujoco.mj_forward(model, data)
            q, v = ([*x, length @ x] for x in (data.qpos, data.qvel))
            assert_allclose(robot.forward_dynamics(q, v, np.zeros(3))[:2], data.qacc, rtol=1e-9, atol=1e-9)


def test_tendons_that_are_slack_or_switched_off():
    text = TENDON.format('stiffness="50" springlength="0.3 0.4" damping="2"')
    robot = sarrus.loads(text)
    assert any("a tendon whose springlength is a range is not read" in note for note in robot.warnings)
    assert robot.joint("t").type.stiffness[0] == 0.0 and robot.joint("t").type.damping[0] == 2.0
    off = text.replace('gravity="0 0 0"/>', 'gravity="0 0 0"><flag spring="disable" damper="disable"/></option>')
    assert sarrus.loads(off).joints == ("j", "k")
    mujoco = pytest.importorskip("mujoco")
    for one, joints in ((text, ("j", "k", "t")), (off, ("j", "k"))):
        robot = sarrus.io.from_mujoco(mujoco.MjModel.from_xml_string(one))
        assert robot.joints == joints and any("springlength is a range" in note for note in robot.warnings) == (
            one == text
        )
