"""TaskControl with rigid joints: the law of the mechanism in which these joints are locked."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import control

SPRINGS = {"spring": 0.05, "toe spring": -0.1}


def leg(stiffness=800.0, locked=False, loop=False):
    """Return a floating leg with two springs: one between the motor and a link of its closed knee, one in the foot."""
    b = sarrus.mechanisms.biped_leg().to_builder()
    b.add_body("rotor", sarrus.Inertia.cylinder(0.3, 0.03, 0.02, "y"))
    b.set_joint("knee", sarrus.Revolute("y", armature=0.05), child="rotor")
    spring = sarrus.Revolute("y", stiffness=stiffness, damping=0.2)
    b.add_joint("spring", spring, "rotor", "front", loop=loop)
    b.set_joint("rear_lower", loop=not loop)
    b.add_body("toe", sarrus.Inertia.box(0.2, (0.1, 0.1, 0.02)))
    b.add_joint("toe spring", spring, "foot", "toe", at_parent=(0.1, 0, -0.06))
    if locked:
        for name, angle in SPRINGS.items():
            b.lock(name, at=angle)
    return b.build()


def tasks(robot):
    return [
        control.CenterOfMassTask([0.1, 0.0, 0.7], stiffness=50.0),
        control.FrameTask("pelvis", np.eye(4), "ry", stiffness=30.0, priority=1),
    ]


def law(robot, rigid=(), limits=None, **more):
    feet = [control.PointContact("sole", friction=0.6)]
    return control.TaskControl(robot, tasks(robot), limits, feet, rigid=rigid, **more)


def states(robot, seed, speed=1.0):
    rng = np.random.default_rng(seed)
    q = robot.assemble(fixed=SPRINGS, near=robot.assemble() + 0.0)
    return q, robot.project_velocity(q, speed * rng.normal(size=robot.nv))


def rates(robot):
    return [robot.joint(name).v_slice.start for name in SPRINGS]


def without_springs(robot, locked, q, v):
    """Return the state of the locked mechanism, after the inelastic impact that stops the springs."""
    rows = np.zeros((len(SPRINGS), robot.nv))
    rows[range(len(SPRINGS)), rates(robot)] = 1.0
    J = np.vstack([robot.constraint_jacobian(q), rows])
    M = robot.mass_matrix(q)
    response = np.linalg.solve(M, J.T)
    v = v - response @ np.linalg.lstsq(J @ response, J @ v, rcond=1e-12)[0]
    names = [name for name in locked.joints if locked.joint(name).nv]
    state = [
        np.concatenate([x[getattr(robot.joint(n), part)] for n in names])
        for x, part in ((q, "q_slice"), (v, "v_slice"))
    ]
    return *state, v


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_locked_mechanism(seed):
    """Efforts, contact forces and accelerations, in states in which the springs vibrate."""
    robot, locked = leg(), leg(locked=True)
    q, v = states(robot, seed)
    q_locked, v_locked, stopped = without_springs(robot, locked, q, v)
    assert_allclose(stopped[rates(robot)], 0.0, atol=1e-12)
    expected = law(locked).solve(0.0, q_locked, v_locked)
    found = law(robot, list(SPRINGS)).solve(0.0, q, v)
    size = np.abs(list(expected.efforts.values())).max()
    for name, effort in expected.efforts.items():
        assert found.efforts[name] == pytest.approx(
            effort, abs=1e-7 * size
        )  # the weight of the constraint forces, 1e-6
    assert_allclose(found.forces["sole"], expected.forces["sole"], atol=1e-7 * size)
    assert_allclose(found.acceleration[rates(robot)], 0.0, atol=1e-9 * np.abs(found.acceleration).max())
    assert_allclose(found.tau[rates(robot)], 0.0)  # springs have no motors
    assert len(found.errors) == len(found.missed) == 2


def test_a_spring_may_be_the_loop_joint():
    """The same state, in the coordinates of another spanning tree."""
    robot, other = leg(), leg(loop=True)
    assert other.loop_joints == ("spring",)
    q, v = states(robot, 2)
    by_joint = robot.joint_states(q, v)
    names = [name for name in other.joints if other.joint(name).nv]
    moved = [np.concatenate([x[name] for name in names]) for x in (by_joint.q, by_joint.v)]
    expected = law(robot, list(SPRINGS)).solve(0.0, q, v)
    found = law(other, list(SPRINGS)).solve(0.0, *moved)
    size = np.abs(list(expected.efforts.values())).max()
    for name, effort in expected.efforts.items():
        assert found.efforts[name] == pytest.approx(effort, abs=1e-8 * size)


def test_stiffness_has_no_effect():
    q, v = states(leg(), 0)
    soft, stiff = (law(leg(k), list(SPRINGS)).solve(0.0, q, v).tau for k in (10.0, 1e5))
    assert_allclose(soft, stiff, atol=1e-9 * np.abs(stiff).max())


def test_limits_of_the_motors_hold():
    robot = leg()
    q, v = states(robot, 1)
    wide = control.Limits(position={}, velocity=np.inf)  # friction cones only
    most = 0.5 * max(abs(x) for x in law(robot, list(SPRINGS), wide).solve(0.0, q, v).efforts.values())
    limits = control.Limits(effort=most, position={}, velocity=np.inf)
    found = law(robot, list(SPRINGS), limits).solve(0.0, q, v)
    assert max(abs(x) for x in found.efforts.values()) <= most
    assert any("effort" in name for name in found.active)
    assert_allclose(found.acceleration[rates(robot)], 0.0, atol=1e-7 * np.abs(found.acceleration).max())


def test_it_stands_on_its_springs():
    """In C++, and with many runs: the leg moves by the deflection of the springs, and remains upright."""
    robot = leg()
    ground = sarrus.Transform.from_matrix(robot.pose(robot.assemble(), "foot"))
    b = robot.to_builder()
    b.add_joint("stance", sarrus.Fixed(), "ground", "foot", at_parent=ground, loop=True)
    standing = b.build()
    q = standing.assemble()
    start = standing.pose(q, "pelvis")
    task = control.FrameTask("pelvis", start, "tx tz ry", stiffness=400.0)
    acts = control.TaskControl(standing, task, rigid=list(SPRINGS))
    assert acts.native
    run = sarrus.simulate(standing, q, np.zeros(standing.nv), 0.3, acts, limits="ignore")
    assert run.statistics["method"] != "contact"
    moved = run.frame("pelvis")[:, :3, 3] - start[:3, 3]
    assert np.abs(moved).max() < 0.05
    assert run.frame("pelvis")[:, 2, 2].min() > 0.99
    many = sarrus.simulate_many(standing, np.tile(q, (3, 1)), np.zeros((3, standing.nv)), 0.02, acts, limits="ignore")
    assert_allclose(many.q[0, -1], many.q[2, -1], atol=1e-12)
    copy = pickle.loads(pickle.dumps(acts))
    assert copy.rigid_joints == acts.rigid_joints == tuple(SPRINGS)
    assert_allclose(copy(0.0, q, np.zeros(standing.nv)), acts(0.0, q, np.zeros(standing.nv)))


def test_wrong_names(tmp_path):
    robot = leg()
    for rigid, error, message in (
        (["spring", "spring"], sarrus.ModelError, "rigid contains joint 'spring' twice"),
        ("spring", sarrus.ModelError, "rigid must be a sequence of joints' names"),
        (3, TypeError, "rigid must be a sequence of joints' names; got 3"),
        (["string"], sarrus.NameNotFoundError, "no joint is named 'string'; did you mean 'spring'"),
        (["knee"], sarrus.ModelError, "rigid: joint 'knee' has a motor in this controller; expected a passive joint"),
    ):
        with pytest.raises(error, match=message):
            law(robot, rigid)
    welded = robot.to_builder()
    welded.lock("spring")
    with pytest.raises(sarrus.ModelError, match="rigid: joint 'spring' does not move"):
        law(welded.build(), ["spring"])
    task = control.TaskControl(robot, tasks(robot), None, rigid=["spring"])
    with pytest.raises(
        sarrus.ModelError, match="a TaskControl with rigid joints cannot be generated as C; rigid: spring"
    ):
        sarrus.generation.generate(robot, {"law": task}, tmp_path)
