"""Laws of control by tasks: the slow oracle's answers, whatever closes; priorities; limits; frames, units and ways of writing that do not matter."""

import dataclasses

import numpy as np
import pytest
import sarrus
from oracles import task_control as oracle
from sarrus import control

LEAST = ({"efforts": 1.0, "forces": 0.01}, {"multipliers": 1.0})


def state(robot, seed):
    """On the loops, and moving."""
    q = robot.random(np.random.default_rng(seed), closed=bool(robot.nc))
    v = np.random.default_rng(seed).normal(size=robot.nv)
    return q, robot.project_velocity(q, v) if robot.nc else v


def near(robot, q, frame, seed):
    """A pose near that of a frame."""
    rng = np.random.default_rng(seed + 100)
    X = robot.pose(q, frame)
    turn = sarrus.Rotation.exp(rng.normal(size=3) * 0.3).matrix
    goal = np.eye(4)
    goal[:3, :3], goal[:3, 3] = turn @ X[:3, :3], X[:3, 3] + rng.normal(size=3) * 0.1
    return goal


def agrees(law, answer, expected, tolerance=1e-6):
    """Accelerations and efforts are the oracle's."""
    a, u = expected.found["acceleration"], expected.found["efforts"]
    efforts = np.concatenate([np.atleast_1d(x) for x in answer.efforts.values()])
    scale = 1.0 + np.abs(a).max()
    assert np.abs(answer.acceleration - a).max() < tolerance * scale, (answer, expected)
    assert np.abs(efforts - u).max() < tolerance * (1.0 + np.abs(u).max()), (answer, expected)


TREES = {"panda-like": lambda: sarrus.mechanisms.six_axis_arm(), "double pendulum": lambda: sarrus.mechanisms.double_pendulum()}


@pytest.mark.parametrize("seed", range(6))
def test_tasks_of_an_arm_are_the_oracles(seed):
    robot = sarrus.mechanisms.six_axis_arm()
    q, v = state(robot, seed)
    frame = robot.frames[-1]
    goal = near(robot, q, frame, seed)
    law = control.TaskControl(
        robot,
        [
            control.FrameTask(frame, goal, "tx ty tz", stiffness=[50.0, 60.0, 70.0], damping=3.0, axes="target"),
            control.JointTask(robot.joints[0], 0.2, priority=1, weight=2.0),
            control.PostureTask(0.1 * np.ones(robot.nq), priority=2, stiffness=9.0),
        ],
        limits=None,
    )
    expected = oracle.solve(
        robot, q, v,
        [
            oracle.frame_task(robot, q, v, frame, goal, stiffness=np.array([1, 1, 1, 50.0, 60.0, 70.0]), damping=3.0 * np.ones(6),
                              rows=slice(3, 6), axes=np.kron(np.eye(2), goal[:3, :3].T)),
            oracle.joint_task(robot, q, v, robot.joints[0], 0.2, priority=1, weight=2.0),
            oracle.posture_task(robot, q, v, 0.1 * np.ones(robot.nq), priority=2, stiffness=9.0),
        ],
        last=LEAST,
    )  # fmt: skip
    agrees(law, law.solve(0.0, q, v), expected)


@pytest.mark.parametrize("name", ["five_bar", "delta", "stewart", "three_rrr", "four_bar"])
@pytest.mark.parametrize("seed", range(3))
def test_tasks_where_loops_close_are_the_oracles(name, seed):
    robot = getattr(sarrus.mechanisms, name)()
    q, v = state(robot, seed)
    frame, motor = robot.frames[-1], robot.actuated[0]
    goal = near(robot, q, frame, seed)
    law = control.TaskControl(
        robot,
        [control.JointTask(motor, 0.3, stiffness=20.0), control.FrameTask(frame, goal, "tx ty tz", priority=1)],
        limits=None,
    )
    expected = oracle.solve(
        robot, q, v,
        [
            oracle.joint_task(robot, q, v, motor, 0.3, stiffness=20.0),
            oracle.frame_task(robot, q, v, frame, goal, rows=slice(3, 6), priority=1),
        ],
        last=LEAST,
    )  # fmt: skip
    answer = law.solve(0.0, q, v)
    if answer.damping == 0.0:
        agrees(law, answer, expected)


@pytest.mark.parametrize("seed", range(4))
def test_a_relative_and_a_momentum_task_are_the_oracles(seed):
    robot = sarrus.mechanisms.six_axis_arm()
    q, v = state(robot, seed)
    frame, reference = "tip", "fore"
    goal = near(robot, q, frame, seed)
    goal = np.linalg.solve(robot.pose(q, reference), goal)
    law = control.TaskControl(
        robot,
        [
            control.RelativeTask(frame, reference, goal, "tx ty"),
            control.MomentumTask([0.1, -0.2], "rx ry", gain=5.0, priority=1),
            control.CenterOfMassTask([0.2], "ty", priority=2),
        ],
        limits=None,
    )
    expected = oracle.solve(
        robot, q, v,
        [
            oracle.relative_task(robot, q, v, frame, reference, goal, rows=slice(3, 5)),
            oracle.momentum_task(robot, q, v, np.r_[0.1, -0.2, np.zeros(4)], gain=5.0, rows=slice(0, 2), priority=1),
            oracle.center_of_mass_task(robot, q, v, np.r_[0.0, 0.2, 0.0], rows=slice(1, 2), priority=2),
        ],
        last=LEAST,
    )  # fmt: skip
    agrees(law, law.solve(0.0, q, v), expected)


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_limits_of_effort_are_the_oracles(seed, share):
    """Two tasks that want more than the motors have; redundant motors share."""
    robot = sarrus.mechanisms.three_rrr(actuated=6) if seed % 2 else sarrus.mechanisms.six_axis_arm()
    q, v = state(robot, seed)
    frame = robot.frames[-1]
    goal = near(robot, q, frame, seed)
    tasks = [control.FrameTask(frame, goal, "tx ty"), control.FrameTask(frame, goal, "rz", priority=1)]
    free = control.TaskControl(robot, tasks, limits=None).solve(0.0, q, v)
    most = share * max(np.abs(u).max() for u in free.efforts.values())
    answer = control.TaskControl(robot, tasks, limits=control.Limits(effort=most, velocity=np.inf, position={})).solve(0.0, q, v)
    nu = len(answer.efforts)
    expected = oracle.solve(
        robot, q, v,
        [
            oracle.frame_task(robot, q, v, frame, goal, rows=slice(3, 5)),
            oracle.frame_task(robot, q, v, frame, goal, rows=slice(2, 3), priority=1),
        ],
        limits=oracle.effort_limits(-most * np.ones(nu), most * np.ones(nu)),
        last=LEAST,
    )  # fmt: skip
    assert max(abs(u) for u in answer.efforts.values()) <= most
    assert answer.active
    if answer.damping == 0.0:
        agrees(None, answer, expected, 1e-5)


STAND = dict(friction=0.6, damping=0.0)
FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")


def standing(seed):
    """A quadruped on its feet, pushed about."""
    robot = sarrus.mechanisms.quadruped()
    q = robot.neutral()
    for leg in ("LF", "RF", "LH", "RH"):
        q[robot.joint(f"{leg}_HFE").q_slice], q[robot.joint(f"{leg}_KFE").q_slice] = 0.5, -1.0
    rng = np.random.default_rng(seed)
    return robot, q, 0.0 * rng.normal(size=robot.nv)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("push", [0.02, 0.3])
def test_feet_stay_within_their_cones(seed, push):
    robot, q, v = standing(seed)
    goal = robot.pose(q, "trunk")
    goal[:3, 3] += push * np.random.default_rng(seed).normal(size=3)
    contacts = [control.PointContact(foot, **STAND) for foot in FEET]
    law = control.TaskControl(
        robot, [control.FrameTask("trunk", goal), control.PostureTask(q, priority=1)], contacts=contacts,
        limits=control.Limits(effort=np.inf, velocity=np.inf, position={}),
    )  # fmt: skip
    answer = law.solve(0.0, q, v)
    for force in answer.forces.values():
        assert np.abs(force[:2]).max() <= 0.6 / np.sqrt(2.0) * force[2] + 1e-7 and force[2] >= -1e-9
    expected = oracle.solve(
        robot, q, v,
        [oracle.frame_task(robot, q, v, "trunk", goal)],
        contacts=[oracle.point_contact(robot, q, v, foot, friction=0.6 / np.sqrt(2.0)) for foot in FEET],
        last=LEAST,
    )  # fmt: skip
    assert answer.status == "solved"
    agrees(law, answer, expected, 1e-5)


def test_the_trunk_needs_its_feet():
    """A push that no cone can give: what can be done is done, and efforts are those of the oracle's least squares."""
    robot, q, v = standing(0)
    goal = robot.pose(q, "trunk")
    goal[2, 3] -= 5.0
    law = control.TaskControl(robot, control.FrameTask("trunk", goal), contacts=[control.PointContact(f, **STAND) for f in FEET])
    answer = law.solve(0.0, q, v)
    assert any("pulls" in name for name in answer.active)
    assert min(f[2] for f in answer.forces.values()) >= -1e-9


# ---- priorities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["six_axis_arm", "delta", "stewart", "three_rrr", "quadruped"])
@pytest.mark.parametrize("limited", [False, True])
def test_a_lower_task_never_disturbs_a_higher_one(name, limited):
    robot = getattr(sarrus.mechanisms, name)()
    for seed in range(5):
        q, v = state(robot, seed)
        frame = robot.frames[-1]
        high = control.FrameTask(frame, near(robot, q, frame, seed), "tx ty")
        low = [
            control.JointTask(robot.actuated[0], 1.0, stiffness=1e4, priority=1),
            control.CenterOfMassTask([1.0, 2.0, 3.0], stiffness=1e3, priority=2),
        ]
        limits = control.Limits(effort=200.0, velocity=np.inf, position={}) if limited else None
        alone = control.TaskControl(robot, high, limits).solve(0.0, q, v)
        with_low = control.TaskControl(robot, [*low, high], limits).solve(0.0, q, v)
        size = 1.0 + np.abs(alone.missed[0]).max() + np.abs(alone.errors[0]).max() * 100.0
        assert np.abs(alone.missed[0] - with_low.missed[2]).max() <= 1e-9 * size


# ---- ways of writing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["six_axis_arm", "delta", "stewart"])
def test_equal_tasks_in_two_ways(name):
    robot = getattr(sarrus.mechanisms, name)()
    q, v = state(robot, 3)
    frame = robot.frames[-1]
    goal = near(robot, q, frame, 3)
    vector, place = sarrus.Rotation.from_matrix(goal[:3, :3]).log(), goal[:3, 3]

    def tau(*tasks):
        return control.TaskControl(robot, tasks, limits=None)(0.0, q, v)

    whole = tau(control.FrameTask(frame, goal))
    same = [
        control.FrameTask(frame, [*vector, *place]),
        control.FrameTask(frame, lambda t: goal),
        control.FrameTask(frame, lambda t: (goal, np.zeros(6), np.zeros(6))),
        control.FrameTask(frame, [sarrus.laws.polynomial(x) for x in [*vector, *place]]),
        control.RelativeTask(frame, "ground", goal),
        control.FrameTask(frame, goal, axes="target"),
        control.ImpedanceTask(frame, goal, inertia=2.0, stiffness=200.0, damping=40.0),
    ]
    size = 1.0 + np.abs(whole).max()
    for task in same:
        assert np.abs(tau(task) - whole).max() < 1e-7 * size, task
    parts = tau(control.FrameTask(frame, goal, "tx ty tz"), control.FrameTask(frame, goal, "rx ry rz"))
    assert np.abs(parts - whole).max() < 1e-7 * size
    both = dict.fromkeys(robot.actuated[:2], 0.3)
    one = tau(control.PostureTask(both))
    assert np.abs(tau(*(control.JointTask(joint, 0.3) for joint in both)) - one).max() < 1e-9 * size


def test_a_target_that_moves_is_followed_exactly():
    """Position, velocity and acceleration of the target count, of rotations too: no error grows where there was none."""
    robot = sarrus.mechanisms.six_axis_arm()
    q = np.array([0.3, 0.8, -1.6, 0.2, 1.2, 0.1])
    frame = robot.frames[-1]
    X = robot.pose(q, frame)
    vector = sarrus.Rotation.from_matrix(X[:3, :3]).log()
    swing = [sarrus.laws.polynomial(vector[0]), *(sarrus.laws.harmonic(0.1, 2.0, offset=x) for x in vector[1:])]
    ways = [sarrus.laws.harmonic(0.03, 2.0, offset=x) for x in X[:3, 3]]
    law = control.TaskControl(robot, control.FrameTask(frame, [*swing, *ways]), limits=None)
    J = robot.jacobian(q, frame, expressed_in="world_aligned")

    def rates(laws):
        return np.array([(one(1e-6) - one(-1e-6)) / 2e-6 for one in laws])

    turned = [sarrus.Rotation.exp([one(t) for one in swing]).matrix for t in (-1e-6, 1e-6)]
    w = sarrus.Rotation.from_matrix(turned[1] @ turned[0].T).log() / 2e-6
    v = np.linalg.solve(J, np.r_[w, rates(ways)])
    run = sarrus.simulate(robot, q, v, 2.0, controller=law, limits="ignore")
    for t, at in zip(run.t[::200], run.q[::200], strict=True):
        goal = sarrus.Rotation.exp([one(t) for one in swing]).matrix
        assert np.abs(robot.pose(at, frame)[:3, 3] - [one(t) for one in ways]).max() < 1e-7
        assert np.abs(robot.pose(at, frame)[:3, :3] - goal).max() < 1e-7


# ---- many runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["six_axis_arm", "delta", "stewart"])
@pytest.mark.parametrize("limited", [False, True])
def test_many_runs_are_its_runs(name, limited):
    """Targets and gains of their own, side by side and one by one."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble() if robot.nc else np.array([0.3, 0.8, -1.6, 0.2, 1.2, 0.1])
    frame, runs = robot.frames[-1], 5
    rng = np.random.default_rng(0)
    goals = robot.pose(q, frame)[:3, 3] + rng.normal(size=(runs, 3)) * 0.03
    gains = rng.uniform(50.0, 200.0, (runs, 1))
    limits = control.Limits(effort=30.0, velocity=np.inf, position={}) if limited else None
    v, rest = np.zeros(robot.nv), control.PostureTask(dict.fromkeys(robot.actuated, 0.3), priority=1)
    many = sarrus.simulate_many(
        robot, np.tile(q, (runs, 1)), np.tile(v, (runs, 1)), 0.2, limits="ignore",
        controller=control.TaskControl(robot, [control.FrameTask(frame, goals, "tx ty tz", stiffness=gains), rest], limits),
    )  # fmt: skip
    for i in range(runs):
        law = control.TaskControl(robot, [control.FrameTask(frame, goals[i], stiffness=gains[i, 0]), rest], limits)
        one = sarrus.simulate(robot, q, v, 0.2, controller=law, limits="ignore")
        assert np.abs(many.q[i, -1] - one.q[-1]).max() < 1e-8
