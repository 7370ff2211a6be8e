"""The slow reference for control by tasks, compared with closed forms, SciPy's optimiser and the library's inverse dynamics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import sarrus
from oracles import task_control as oracle


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("trial", range(20))
def test_least_squares_within_limits_is_optimal(trial):
    """Against SLSQP, with fewer rows than unknowns too; limits hold."""
    rng = np.random.default_rng(trial)
    n, m, rows = int(rng.integers(2, 7)), int(rng.integers(1, 8)), int(rng.integers(1, 12))
    A, b, H, k = rng.normal(size=(m, n)), 3 * rng.normal(size=m), rng.normal(size=(rows, n)), rng.uniform(0, 0.5, rows)
    z = oracle.least_squares(A, b, H, k)
    assert (H @ z <= k + 1e-12).all()
    other = minimize(
        lambda z: 0.5 * np.sum((A @ z - b) ** 2),
        np.zeros(n),
        jac=lambda z: A.T @ (A @ z - b),
        constraints={"type": "ineq", "fun": lambda z: k - H @ z, "jac": lambda z: -H},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    # SLSQP squares its error
    assert_allclose(A @ z, A @ other.x, atol=1e-6)


def test_infeasible_limits_are_named():
    """Two limits that contradict each other, and a third that is none of it."""
    robot = sarrus.mechanisms.double_pendulum()
    q = np.array([0.3, 0.4])
    limits = (
        oracle.Limit("first", {"efforts": np.eye(2)[:1]}, [-1.0]),
        oracle.Limit("second", {"efforts": -np.eye(2)[:1]}, [-1.0]),
        oracle.Limit("third", {"efforts": np.eye(2)[1:]}, [-1.0]),
    )
    answer = oracle.solve(robot, q, np.zeros(2), [], actuated=robot.joints, limits=limits)
    assert answer.conflict == ("first", "second")
    assert oracle.solve(robot, q, np.zeros(2), [], actuated=robot.joints, limits=limits[1:]).conflict == ()


def test_equations_that_contradict_each_other_are_refused():
    robot = sarrus.mechanisms.pendulum()
    task = [oracle.Task({"acceleration": np.eye(1)}, [goal], hard=True) for goal in (1.0, 2.0)]
    with pytest.raises(ValueError, match="contradict"):
        oracle.solve(robot, [0.1], [0.0], task, actuated=robot.joints)


def test_posture_gives_inverse_dynamics_of_trees(rng):
    robot = sarrus.mechanisms.stanford_arm()
    q, v, goal = robot.random(rng), rng.normal(size=5), robot.random(rng)
    task = oracle.posture_task(robot, q, v, goal, stiffness=30.0)
    answer = oracle.solve(robot, q, v, [task], actuated=robot.joints)
    a = 30.0 * robot.difference(q, goal) - 2 * np.sqrt(30.0) * v
    assert_allclose(answer.found["acceleration"], a, atol=1e-7)  # of the differences
    assert_allclose(answer.found["efforts"], robot.inverse_dynamics(q, v, a), atol=1e-6)


@pytest.mark.parametrize("make", [sarrus.mechanisms.three_rrr, sarrus.mechanisms.delta, sarrus.mechanisms.stewart])
def test_a_determined_motion_of_loops_takes_the_least_efforts(make, rng):
    """Efforts of a motion of the tool are those of the library, of least norm where motors are more than freedoms."""
    robot = make()
    q = robot.assemble()
    v = robot.project_velocity(q, 0.2 * rng.normal(size=robot.nv))
    frame, rows = ("tip", slice(3, 5)) if "tip" in robot.frames else ("platform", slice(None))
    X = robot.pose(q, frame)
    X[:3, 3] += 0.01
    task = oracle.frame_task(robot, q, v, frame, X, rows=rows)
    answer = oracle.solve(robot, q, v, [task])
    a = answer.found["acceleration"]
    assert_allclose(robot.constraint_jacobian(q) @ a, robot.constraint_bias(q, v), atol=1e-9)
    assert_allclose(answer.found["efforts"], robot.actuator_efforts(q, v, a), atol=1e-7)


def test_lower_priorities_do_not_disturb_higher_ones(rng):
    """Within limits too: the position comes first, then the whole pose, then a posture."""
    robot = sarrus.mechanisms.stanford_arm()
    q, v = robot.random(rng), rng.normal(size=5)
    X = robot.pose(robot.random(rng), "tip")
    first = oracle.frame_task(robot, q, v, "tip", X, rows=slice(3, 6))
    second = oracle.frame_task(robot, q, v, "tip", X, rows=slice(0, 3), priority=1)
    third = oracle.posture_task(robot, q, v, robot.random(rng), priority=2)
    free = oracle.solve(robot, q, v, [first], actuated=robot.joints)
    bound = 0.7 * np.abs(free.found["efforts"])
    for limits in ((), oracle.effort_limits(-bound, bound)):
        left = [
            oracle.solve(robot, q, v, tasks, actuated=robot.joints, limits=limits).left
            for tasks in ([first], [first, second], [third, first, second])
        ]
        assert_allclose(left[1][0], left[0][0], rtol=1e-9, atol=1e-9)
        assert_allclose(left[2][0], left[0][0], rtol=1e-9, atol=1e-9)
        assert_allclose(left[2][1], left[1][1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("slope", "stands"), [(0.0, True), (0.49, True), (0.51, False)])
def test_four_feet_carry_the_weight_within_their_cones(slope, stands):
    """A box without motors on four points: forces of least norm; on a slope that is steeper than friction, the feet are in conflict."""
    b = sarrus.Builder("table", gravity=(9.81 * slope, 0, -9.81))
    b.add_body("table", sarrus.Inertia.box(8.0, (1.0, 1.0, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "table")
    corners = [(x, y, 0.0) for x in (0.5, -0.5) for y in (0.5, -0.5)]
    for k, corner in enumerate(corners):
        b.add_frame(f"foot{k}", "table", corner)
    robot = b.build()
    q, v = robot.neutral(), np.zeros(6)
    feet = [oracle.point_contact(robot, q, v, f"foot{k}", friction=0.5 * np.sqrt(2.0)) for k in range(4)]
    answer = oracle.solve(robot, q, v, [], actuated=[], contacts=feet)
    if not stands:
        assert set(answer.conflict) <= {f"contact {k}" for k in range(4)} and answer.conflict
        return
    forces = answer.found["forces"].reshape(4, 3) @ oracle.world_axes([0, 0, 1])
    assert_allclose(forces, np.tile(-8.0 / 4 * robot.gravity, (4, 1)), atol=1e-9)
    assert_allclose(answer.found["acceleration"], 0.0, atol=1e-9)


def test_momentum_and_center_of_mass_agree(rng):
    """Linear momentum is mass times the velocity of the centre of mass."""
    robot = sarrus.mechanisms.free_flyer()
    q, v = robot.assemble(), 0.1 * rng.normal(size=robot.nv)
    of_mass = oracle.center_of_mass_task(robot, q, v, robot.center_of_mass(q), stiffness=0.0, damping=3.0)
    of_momentum = oracle.momentum_task(robot, q, v, np.zeros(6), gain=3.0, rows=slice(3, 6))
    mass = robot.mass
    assert_allclose(mass * of_mass.rows["acceleration"], of_momentum.rows["acceleration"], atol=1e-7 * mass)
    assert_allclose(mass * of_mass.goal, of_momentum.goal, atol=1e-7 * mass)


def test_rows_of_frames_are_those_of_the_library(rng):
    robot = sarrus.mechanisms.stanford_arm()
    q, v = robot.random(rng), rng.normal(size=5)
    J, bias = oracle.rates(robot, q, v, oracle.frame_displacement(robot, q, "tip"))
    assert_allclose(J, robot.jacobian(q, "tip", expressed_in="world_aligned"), atol=1e-9)
    known = robot.acceleration(q, v, np.zeros(5), "tip", expressed_in="world_aligned")
    assert_allclose(bias, known, atol=1e-8 * (1 + np.abs(known).max()))
