"""Control by tasks: priorities, and invariance of notation, frames, units and number of runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import control


def state(robot, seed):
    """Return a moving state on the loops."""
    q = robot.random(np.random.default_rng(seed), closed=bool(robot.nc))
    v = np.random.default_rng(seed).normal(size=robot.nv)
    return q, robot.project_velocity(q, v) if robot.nc else v


def near(robot, q, frame, seed):
    """Return a pose near that of a frame."""
    rng = np.random.default_rng(seed + 100)
    X = robot.pose(q, frame)
    turn = sarrus.Rotation.exp(rng.normal(size=3) * 0.3).matrix
    goal = np.eye(4)
    goal[:3, :3], goal[:3, 3] = turn @ X[:3, :3], X[:3, 3] + rng.normal(size=3) * 0.1
    return goal


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
    """Position, velocity and acceleration of the target are used, also for rotations: no error arises from zero."""
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


@pytest.mark.parametrize("limited", [False, True])
def test_units_do_not_matter(limited):
    """The same linkage in millimetres: values of forces are a thousand times larger, those of moments a million times."""

    def five_bar(unit):
        b = sarrus.Builder(gravity=(0.0, -9.81 * unit, 0.0))
        lengths = {"a": 0.3, "b": 0.5, "c": 0.4, "d": 0.35}
        for name, length in lengths.items():
            b.add_body(name, sarrus.Inertia.rod(length * 2.0, (0, 0, 0), (length * unit, 0, 0)))
        b.add_joint("m1", sarrus.Revolute("z"), "ground", "a", actuated=True)
        b.add_joint("p1", sarrus.Revolute("z"), "a", "b", at_parent=(0.3 * unit, 0, 0), actuated=True)
        b.add_joint("m2", sarrus.Revolute("z"), "ground", "d", at_parent=(0.4 * unit, 0, 0), actuated=True)
        b.add_joint("p2", sarrus.Revolute("z"), "d", "c", at_parent=(0.35 * unit, 0, 0))
        b.add_joint(
            "tip", sarrus.Revolute("z"), "b", "c", at_parent=(0.5 * unit, 0, 0), at_child=(0.4 * unit, 0, 0), loop=True
        )
        return b.build()

    efforts = []
    for unit in (1.0, 1000.0):
        robot = five_bar(unit)
        q = robot.assemble(fixed={"m1": 1.9, "m2": 1.0}, near={"p1": -1.2})
        v = robot.complete_velocity(q, {"m1": 1.0, "m2": -0.5})
        goal = robot.pose(q, "b")[:3, 3] + np.array([0.02, -0.05, 0.0]) * unit
        limits = control.Limits(effort=0.9 * unit**2, velocity=np.inf, position={}) if limited else None
        law = control.TaskControl(
            robot, [control.FrameTask("b", goal, "tx ty"), control.JointTask("tip", 0.0, priority=1)], limits
        )
        answer = law.solve(0.0, q, v)
        efforts.append(np.array(list(answer.efforts.values())) / unit**2)
        if limited:
            assert answer.active
    assert np.abs(efforts[0] - efforts[1]).max() < 1e-8 * np.abs(efforts[0]).max()


def test_the_frames_of_a_description_do_not_matter():
    """A rotated and moved ground, with gravity and targets, has the same efforts."""
    rng = np.random.default_rng(5)
    turn, shift = sarrus.Rotation.exp(rng.normal(size=3)), rng.normal(size=3)

    def arm(R, p):
        b = sarrus.Builder(gravity=R.apply([0.0, 0.0, -9.81]))
        b.add_body("one", sarrus.Inertia.sphere(2.0, 0.1)), b.add_body("two", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(
            "j1",
            sarrus.Spherical(),
            "ground",
            "one",
            at_parent=sarrus.Transform(R, p),
            at_child=(0, 0, 0.3),
            actuated=True,
        )
        b.add_joint(
            "j2", sarrus.Revolute("y"), "one", "two", at_parent=(0, 0, -0.3), at_child=(0, 0, 0.2), actuated=True
        )
        return b.build()

    answers = []
    for R, p in ((sarrus.Rotation(), np.zeros(3)), (turn, shift)):
        robot = arm(R, p)
        q, v = np.array([0.1, -0.2, 0.3, np.sqrt(0.86), 0.7]), np.array([0.3, -0.1, 0.5, 0.4])
        goal = R.apply([0.2, 0.1, -0.7]) + p
        law = control.TaskControl(robot, control.FrameTask("two", goal), limits=None)
        answers.append(law(0.0, q, v))
    assert np.abs(answers[0] - answers[1]).max() < 1e-9 * np.abs(answers[0]).max()


def test_which_joint_closes_does_not_matter():
    """Motors and tasks at a tree joint, or at the same joint as a loop joint."""
    efforts = []
    for closing in ("a", "b", "c", "d"):
        b = sarrus.Builder(gravity=(0.0, -9.81, 0.0))
        for name, length in (("crank", 0.2), ("rod", 0.5), ("rocker", 0.4)):
            b.add_body(name, sarrus.Inertia.rod(length, (0, 0, 0), (length, 0, 0)))
        ends = {
            "a": ("ground", "crank", 0.0, 0.0),
            "b": ("crank", "rod", 0.2, 0.0),
            "c": ("rod", "rocker", 0.5, 0.4),
            "d": ("ground", "rocker", 0.5, 0.0),
        }
        for name, (parent, child, at_parent, at_child) in ends.items():
            b.add_joint(
                name, sarrus.Revolute("z"), parent, child, at_parent=(at_parent, 0, 0), at_child=(at_child, 0, 0),
                actuated=name in "ac", loop=name == closing,
            )  # fmt: skip
        robot = b.build()
        q = robot.assemble(fixed={"a": 0.8}, near={"b": -0.5, "d": 1.2})
        v = robot.complete_velocity(q, {"a": 2.0})
        law = control.TaskControl(
            robot, control.JointTask("c", float(robot.joint_states(q).q["c"][0]) + 0.3), limits=None
        )
        found = law.solve(0.0, q, v).efforts
        efforts.append([found["a"], found["c"]])
    assert np.abs(np.ptp(efforts, axis=0)).max() < 1e-8 * np.abs(efforts).max()


# ---- many runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["six_axis_arm", "delta", "stewart"])
@pytest.mark.parametrize("limited", [False, True])
def test_many_runs_are_its_runs(name, limited):
    """Runs with their own targets and gains, in lanes and one by one."""
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


@pytest.mark.parametrize("seed", range(3))
def test_control_under_rolling_without_spin(seed):
    """Li and Wu 4.6, control law 2, for an arm that rolls on a ball.

    tau = M (J u' + J' u) + C + N - A^T lambda_d, with A J = 0. u are two components of the tip's angular velocity, and four tasks are the contact's
    forces.
    """
    robot, rng = sarrus.mechanisms.six_axis_arm(sphere=0.2, fingertip=0.02), np.random.default_rng(seed)
    q = robot.assemble(near=robot.assemble() + 0.3 * rng.normal(size=6))
    v = robot.project_velocity(q, rng.normal(size=6))
    target, forces = sarrus.Rotation.exp(0.1 * rng.normal(size=3)).matrix, np.array([8.0, 1.0, -2.0, 0.1])
    X = robot.pose(q, "tip")
    X[:3, :3] = target @ X[:3, :3]
    motion = control.FrameTask("tip", X, components="rx ry", stiffness=25.0, damping=10.0)
    law = control.TaskControl(
        robot, [motion, *(control.ForceTask("contact", f, rows=[k]) for k, f in enumerate(forces))]
    )

    A, gamma = robot.constraint_jacobian(q), robot.constraint_bias(q, v)
    J = robot.jacobian(q, "tip", expressed_in="world_aligned")[:2]
    J_rate = robot.jacobian_derivative(q, v, "tip", expressed_in="world_aligned")[:2]
    off = sarrus.Rotation(target).log()[:2]
    a = np.linalg.solve(np.vstack([A, J]), np.r_[gamma, 25.0 * off - 10.0 * J @ v - J_rate @ v])
    tau = robot.mass_matrix(q) @ a + robot.bias_forces(q, v) - A.T @ forces
    assert_allclose(law(0.0, q, v), tau, rtol=1e-9, atol=1e-9 * np.abs(tau).max())


def rolling_as_functions():
    """Return an arm that rolls on a ball, and the same with rows by a Python function."""
    robot = sarrus.mechanisms.six_axis_arm(sphere=0.2, fingertip=0.02)
    b = robot.to_builder()
    b.remove_constraint("contact")
    b.add_pfaffian(
        "contact", robot.constraint_jacobian, list(robot.joints), value=[0.0] * 4, derivative=robot.constraint_jacobian_derivative
    )  # fmt: skip
    return robot, b.build()


@pytest.mark.parametrize(
    "law",
    [
        lambda robot, X: control.TaskControl(robot, control.FrameTask("tip", X, components="rx ry", stiffness=25.0)),
        lambda robot, X: control.ComputedTorque({"turn": 0.1, "roll": 0.2}, proportional=25.0, derivative=10.0),
        lambda robot, X: control.PDPlus(
            {"turn": sarrus.laws.harmonic(0.3, 2.0), "roll": sarrus.laws.harmonic(0.2, 3.0)}, proportional=25.0, derivative=10.0
        ),
        lambda robot, X: control.GravityCompensation(),
    ],
    ids=["tasks", "computed torque", "PD+", "gravity"],
)  # fmt: skip
def test_rows_that_are_functions_are_rows_to_every_controller(law):
    """Rolling without spin by the core's constraint, and by rows of a Python function."""
    robots, rng = rolling_as_functions(), np.random.default_rng(1)
    q = robots[0].assemble(near=robots[0].assemble() + 0.1 * rng.normal(size=6))
    v = robots[0].project_velocity(q, 0.3 * rng.normal(size=6))
    X = robots[0].pose(q + 0.05, "tip")
    runs = [
        sarrus.simulate(robot, q, v, 0.02, law(robot, X), dt=2e-3, stabilisation="none", limits="ignore")
        for robot in robots
    ]
    for mine, others in ((runs[0].tau, runs[1].tau), (runs[0].v, runs[1].v)):
        assert_allclose(others, mine, rtol=1e-7, atol=1e-7 * np.abs(mine).max())
    if isinstance(made := law(robots[1], X), control.TaskControl):
        assert_allclose(made(0.0, q, v), law(robots[0], X)(0.0, q, v), rtol=1e-9, atol=1e-9)
