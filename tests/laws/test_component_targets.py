"""Frames of which only some components are prescribed: height of a wheel, x of a nozzle, orientation without position. NaN marks free components."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import mechanisms
from sarrus.analysis.linear_algebra import velocity_scale

CLOSED = 1e-12  # targets and loops are satisfied to rounding
SAME = 1e-9  # two solutions on one branch: rounding times the condition of the loops
NAN = np.nan


@functools.cache
def suspension(arm=0.45):
    """Double wishbone: the wheel has one degree of freedom, which its height leads."""
    b = sarrus.Builder("double wishbone")
    for body in ("lower arm", "upper arm", "upright"):
        b.add_body(body, sarrus.Inertia.sphere(2.0, 0.1))
    tilted = sarrus.Transform.from_rpy(0.0, 0.05, 0.03, (0.0, 0.35, 0.0))
    b.add_joint("lower", sarrus.Revolute("x"), "ground", "lower arm", at_parent=tilted)
    b.add_joint("lower ball", sarrus.Spherical(), "lower arm", "upright", at_parent=(0.0, arm, 0.0))
    b.add_joint("upper", sarrus.Revolute("x"), "ground", "upper arm", at_parent=(0.02, 0.4, 0.25))
    b.add_joint(
        "upper ball",
        sarrus.Spherical(),
        "upper arm",
        "upright",
        at_parent=(0.0, 0.33, 0.02),
        at_child=(-0.02, -0.05, 0.27),
    )
    b.add_distance("tie rod", ("ground", (0.12, 0.38, 0.08)), ("upright", (0.12, 0.0, 0.1)), length=0.42)
    b.add_frame("wheel", "upright", (0.0, 0.1, 0.12))
    return b.build()


def alone(values, axis):
    """Positions (n, 3) of which one coordinate is prescribed."""
    points = np.full((len(values), 3), NAN)
    points[:, axis] = values
    return points


def test_the_height_of_a_wheel_leads():
    """The path has the heights, is smooth, and is that of the arm's angle as input."""
    robot = suspension()
    start = robot.assemble()
    height = robot.pose(start, "wheel")[2, 3]
    heights = height + np.linspace(0.0, 0.12, 61)
    q = robot.follow(frames={"wheel": alone(heights, 2)}, near=start)
    assert_allclose(robot.pose(q, "wheel")[:, 2, 3], heights, rtol=0, atol=CLOSED)
    assert abs(robot.constraint_residual(q)).max() < CLOSED
    assert np.ptp(robot.pose(q, "wheel")[:, 1, 3]) > 1e-3  # the track changes, because y is free
    steps = robot.difference(q[:-1], q[1:])
    assert abs(np.diff(steps, axis=0)).max() < 0.05 * abs(steps).max()
    led_by_arm = robot.follow({"lower": q[:, robot.joint("lower").q_slice.start]}, near=start)
    assert_allclose(robot.difference(led_by_arm, q), 0.0, rtol=0, atol=SAME)
    back = robot.follow(frames={"wheel": alone(heights[::-1], 2)}, near=q[-1])
    assert_allclose(robot.difference(back[::-1], q), 0.0, rtol=0, atol=SAME)
    together = robot.inverse_kinematics({"wheel": alone(heights, 2)}, near=q[0])
    assert_allclose(robot.difference(together, q), 0.0, rtol=0, atol=SAME)
    single = robot.inverse_kinematics({"wheel": (NAN, NAN, float(heights[5]))}, near=q[4])
    assert_allclose(robot.difference(single, q[5]), 0.0, rtol=0, atol=SAME)


def test_the_path_ends_where_the_wheel_is_highest():
    robot = suspension()
    start = robot.assemble()
    heights = robot.pose(start, "wheel")[2, 3] + np.linspace(0.0, 1.0, 21)
    with pytest.raises(sarrus.PathTrackingError, match="the branch ends between inputs") as end:
        robot.follow(frames={"wheel": alone(heights, 2)}, near=start)
    reached = robot.pose(end.value.path, "wheel")[:, 2, 3]
    assert_allclose(reached, heights[: len(reached)], rtol=0, atol=CLOSED)
    with pytest.raises(sarrus.AssemblyError, match=r"frame 'wheel' stays [0-9.]+ m away") as far:
        robot.inverse_kinematics({"wheel": (NAN, NAN, 3.0)}, near=start)
    assert float(str(far.value).split("stays ")[1].split()[0]) < 3.0  # the distance along z alone


@pytest.mark.parametrize("axis", [0, 2])
def test_one_coordinate_of_a_five_bar_leads_with_one_motor_fixed(axis):
    robot = mechanisms.five_bar()
    start = robot.assemble()
    tip, motor = robot.pose(start, "tip")[:3, 3], robot.joint("left_motor").q_slice.start
    values = tip[axis] + np.linspace(0.0, 0.02, 11)
    held = np.full(11, start[motor])
    q = robot.follow({"left_motor": held}, start, frames={"tip": alone(values, axis)})
    assert_allclose(robot.pose(q, "tip")[:, axis, 3], values, rtol=0, atol=CLOSED)
    assert_allclose(q[:, motor], held, rtol=0, atol=1e-15)
    by_motors = robot.assemble(start, fixed={name: robot.joint_states(q).q[name][:, 0] for name in robot.actuated})
    assert_allclose(by_motors, q, rtol=0, atol=SAME)
    once = robot.inverse_kinematics({"tip": alone(values, axis)}, near=start, fixed={"left_motor": held})
    assert_allclose(once, q, rtol=0, atol=SAME)


def test_a_delta_with_x_and_y_of_its_platform():
    """Two coordinates and a motor determine a Delta; without the motor the height hardly changes, because the motion is least."""
    robot = mechanisms.delta()
    start = robot.assemble()
    p, angle = robot.pose(start, "platform")[:3, 3], float(start[robot.joint("motor1").q_slice][0])
    target = {"platform": (p[0] + 0.04, p[1] - 0.03, NAN)}
    q = robot.inverse_kinematics(target, near=start, fixed={"motor1": angle})
    found = robot.pose(q, "platform")[:3, 3]
    assert_allclose(found[:2], target["platform"][:2], rtol=0, atol=CLOSED)
    assert abs(found[2] - p[2]) > 1e-4
    whole = robot.inverse_kinematics({"platform": found}, near=start)
    assert_allclose(robot.difference(whole, q), 0.0, rtol=0, atol=SAME)
    free = robot.inverse_kinematics(target, near=start)
    assert_allclose(robot.pose(free, "platform")[:2, 3], target["platform"][:2], rtol=0, atol=CLOSED)
    assert np.linalg.norm(robot.difference(start, free)) < np.linalg.norm(robot.difference(start, q))


def test_orientation_and_height_of_a_stewart_platform():
    """A pose with free coordinates of its position, or with a free rotation."""
    robot = mechanisms.stewart()
    start = robot.assemble()
    p = robot.pose(start, "platform")[:3, 3]
    target = sarrus.Transform(sarrus.Rotation.from_rpy(0.1, -0.05, 0.2), p + np.array([0.0, 0.0, 0.03])).matrix
    free = target.copy()
    free[:2, 3] = NAN
    q = robot.inverse_kinematics({"platform": free}, near=start)
    found = robot.pose(q, "platform")
    assert_allclose(found[:3, :3], target[:3, :3], rtol=0, atol=CLOSED)
    assert_allclose(found[2, 3], target[2, 3], rtol=0, atol=CLOSED)
    free[2, 3] = NAN
    turned = robot.inverse_kinematics({"platform": free}, near=start)
    assert_allclose(robot.pose(turned, "platform")[:3, :3], target[:3, :3], rtol=0, atol=CLOSED)
    path = np.stack([robot.pose(start, "platform"), target])
    path[:, :3, 3] = NAN
    assert_allclose(
        robot.pose(robot.follow(frames={"platform": path}, near=start)[-1], "platform")[:3, :3],
        target[:3, :3],
        rtol=0,
        atol=CLOSED,
    )
    point = target.copy()
    point[:3, :3] = NAN
    moved = robot.inverse_kinematics({"platform": point}, near=start)
    assert_allclose(
        robot.difference(moved, robot.inverse_kinematics({"platform": target[:3, 3]}, near=start)),
        0.0,
        rtol=0,
        atol=SAME,
    )


def test_states_of_a_batch_may_have_different_free_components():
    robot = mechanisms.delta()
    start = robot.assemble()
    p = robot.pose(start, "platform")[:3, 3]
    targets = p + 0.02 * np.random.default_rng(0).normal(size=(7, 3))
    for row, free in enumerate([(), (0,), (1,), (0, 1), (2,), (0, 1, 2), (2,)]):
        targets[row, list(free)] = NAN
    q, status = robot.inverse_kinematics({"platform": targets}, near=start, return_status=True)
    assert status.tolist() == [0, 0, 0, 0, 0, int(sarrus.results.Status.INVALID_STATE), 0]
    assert np.isnan(q[5]).all()
    for k in (0, 1, 2, 3, 4, 6):
        one = robot.inverse_kinematics({"platform": targets[k]}, near=start)
        assert_allclose(robot.difference(one, q[k]), 0.0, rtol=0, atol=SAME)


def test_variants_are_as_one_by_one():
    robot, arms = suspension(), [0.44, 0.45, 0.46]
    several = robot.variants(placements={"lower ball.parent": [(0.0, arm, 0.0) for arm in arms]})
    start = several.assemble()
    target = robot.pose(start[1], "wheel")[2, 3] + 0.02
    q = several.inverse_kinematics({"wheel": (NAN, NAN, float(target))}, near=start)
    assert_allclose(several.pose(q, "wheel")[:, 2, 3], target, rtol=0, atol=CLOSED)
    for k in range(3):
        one = several[k].inverse_kinematics({"wheel": (NAN, NAN, float(target))}, near=start[k])
        assert_allclose(robot.difference(one, q[k]), 0.0, rtol=0, atol=SAME)


@pytest.mark.parametrize("axes", ["frame", "world_aligned"])
@pytest.mark.parametrize("given", [(5,), (3, 4), (0,), (1, 5)], ids=str)
def test_velocities_and_accelerations_by_components(axes, given):
    """The given components are attained by the least motion: it is orthogonal to all motions without these components, in units of motion."""
    robot = mechanisms.stewart()
    rng, start = np.random.default_rng(1), robot.assemble()
    q = robot.project_configuration(robot.integrate(start, 0.05 * rng.normal(size=robot.nv)))
    prescribed = np.full(6, NAN)
    prescribed[list(given)] = rng.normal(size=len(given))
    v = robot.complete_velocity(q, frames={"platform": prescribed}, expressed_in=axes)
    V = robot.velocity(q, v, "platform", expressed_in=axes)
    assert_allclose(V[list(given)], prescribed[list(given)], rtol=0, atol=1e-12)
    assert_allclose(robot.constraint_jacobian(q) @ v, 0.0, rtol=0, atol=1e-12)
    whole = robot.complete_velocity(
        q, frames={"platform": V}, expressed_in=axes
    )  # the platform determines all other motions
    assert_allclose(whole, v, rtol=0, atol=1e-9)
    rows = np.concatenate([robot.constraint_jacobian(q), robot.jacobian(q, "platform", expressed_in=axes)[list(given)]])
    singular = np.linalg.svd(rows)
    others = singular[2][np.count_nonzero(singular[1] > 1e-9 * singular[1][0]) :]
    assert len(others) == 6 - len(given)
    unit = velocity_scale(robot)
    assert_allclose(others @ (v / unit**2), 0.0, rtol=0, atol=1e-9 * np.linalg.norm(v / unit**2))
    many = robot.complete_velocity(
        np.stack([q, q]), frames={"platform": np.stack([prescribed, 2.0 * prescribed])}, expressed_in=axes
    )
    assert_allclose(many, [v, 2.0 * v], rtol=0, atol=1e-12)
    v = robot.project_velocity(q, rng.normal(size=robot.nv))
    a = robot.complete_acceleration(q, v, frames={"platform": prescribed}, expressed_in=axes)
    A = robot.acceleration(q, v, a, "platform", expressed_in=axes)
    assert_allclose(A[list(given)], prescribed[list(given)], rtol=0, atol=1e-9)
    assert_allclose(robot.constraint_jacobian(q) @ a, robot.constraint_bias(q, v), rtol=0, atol=1e-9)


def test_the_speed_of_a_wheel_is_the_derivative_of_its_path():
    """Height z(t) = z0 + 0.5 t + 0.3 t^2: velocities and accelerations are the differences of the path, of fourth order."""
    robot, h = suspension(), 1e-3
    start = robot.assemble()
    t = h * np.arange(-2, 3)
    heights = robot.pose(start, "wheel")[2, 3] + 0.5 * t + 0.3 * t**2
    q = robot.inverse_kinematics({"wheel": alone(heights, 2)}, near=start)
    d = robot.difference(q[2], q)
    v = robot.complete_velocity(q[2], frames={"wheel": (NAN, NAN, 0.5)}, expressed_in="world_aligned")
    a = robot.complete_acceleration(q[2], v, frames={"wheel": (NAN, NAN, 0.6)}, expressed_in="world_aligned")
    assert_allclose((d[0] - 8 * d[1] + 8 * d[3] - d[4]) / (12 * h), v, rtol=0, atol=1e-8)  # h^4 and rounding / h
    assert_allclose((-d[0] + 16 * d[1] + 16 * d[3] - d[4]) / (12 * h**2), a, rtol=0, atol=1e-6)  # rounding / h^2
    z = robot.acceleration(q[2], v, a, "wheel", expressed_in="world_aligned")[5]
    assert z == pytest.approx(0.6, abs=1e-11)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ((NAN, NAN, NAN), "is NaN in all components; NaN marks free components, expected a number for at least one"),
        ((NAN, 0.0, np.inf), "must be finite, or NaN for free components"),
        (
            np.where(np.eye(4) > 0.0, NAN, np.eye(4)),
            "NaN in a part of its rotation; expected a whole rotation, or NaN in its nine entries",
        ),
        (np.vstack([np.full((3, 4), NAN), [0.0, 0.0, 0.0, 1.0]]), "is NaN in all components"),
    ],
)
def test_invalid_targets(target, text):
    robot = mechanisms.delta()
    start = robot.assemble()
    for near in (None, start):
        with pytest.raises((sarrus.StateError, ValueError), match=text):
            robot.inverse_kinematics({"platform": target}, near=near)
    path = np.stack([np.asarray(target, float)] * 2)
    with pytest.raises((sarrus.StateError, ValueError), match=text):
        robot.follow(frames={"platform": path}, near=start)


def test_free_components_that_change_along_a_path():
    robot = mechanisms.delta()
    points = np.array([(0.0, 0.0, NAN), (0.0, NAN, -0.5)])
    with pytest.raises(
        ValueError, match=r"the target of frame 'platform' has other free components \(NaN\) at input 1 than before"
    ):
        robot.follow(frames={"platform": points})


def test_invalid_velocities():
    robot = mechanisms.delta()
    q = robot.assemble()
    with pytest.raises(
        sarrus.StateError, match="velocities of frame 'platform' are NaN in all components; NaN marks free"
    ):
        robot.complete_velocity(q, frames={"platform": (NAN, NAN, NAN)})
    with pytest.raises(sarrus.StateError):
        robot.complete_velocity(q, frames={"platform": (NAN, NAN, np.inf)})
    v = robot.complete_velocity(np.stack([q, q]), frames={"platform": np.array([(NAN, NAN, 0.1), (NAN, 0.0, 0.1)])})
    assert np.isfinite(v[1]).all()
    assert np.isnan(v[0]).all()  # y is not free, because it is prescribed in the other state
