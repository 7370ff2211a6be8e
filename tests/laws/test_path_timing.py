"""Fastest timings of paths: closed forms, limits along the whole motion, an oracle, and invariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.control.path import path_through
from tests.oracles.path_timing import fastest_duration
from tests.random_mechanisms import ALL_JOINTS, random_mechanism
from tests.variants import scaled

KEPT = (
    1.0 + 1e-6
)  # use of a limit between the samples at which it is imposed, where its error is of third order in the grid
FINE = 0.01  # relative accuracy of the dynamic programme


def slide(length=1.0, velocity=None):
    """Return a path of a mass of 2 kg along x, driven by a motor without gravity."""
    b = sarrus.Builder("slide", gravity=(0.0, 0.0, 0.0))
    b.add_body("cart", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
    b.add_joint("motor", sarrus.Prismatic("x"), "ground", "cart", actuated=True)
    v = None if velocity is None else ([velocity], [velocity])
    return path_through(b.build(), [0.0, 1.0], [[0.0], [length]], v=v)


def delta_path(**changes):
    robot = sarrus.mechanisms.delta().replace(**changes)
    points = [(0.0, 0.0, -0.5), (0.1, 0.0, -0.45), (0.0, 0.1, -0.5), (-0.1, 0.0, -0.4), (0.0, 0.0, -0.5)]
    q = robot.inverse_kinematics({"platform": points}, near=robot.assemble())
    return path_through(robot, np.linspace(0.0, 1.0, len(points)), q)


def sprung_path():
    """Return a path of the delta robot with all forces that are odd in the velocity, of motors, passive joints, loops, and between bodies."""
    b = delta_path().mechanism.to_builder()
    wall = ("ground", (0.3, 0.2, 0.0)), ("platform", (0.0, 0.0, 0.0))
    b.add_spring("wall", *wall, stiffness=0.0, rest_length=0.5, quadratic_damping=3.0, cubic_damping=0.5)
    robot = b.build().replace(
        friction={"motor1": 0.3},
        damping={"motor2": 0.1},
        quadratic_damping={"motor1": 0.05, "elbow1a": 0.03, "ball2a": 0.02},
        cubic_damping={"motor3": 0.01, "elbow2b": 0.02, "ball1b": 0.01},
    )
    return path_through(robot, delta_path().t, delta_path().q)


def stewart_path():
    robot = sarrus.mechanisms.stewart()
    home = robot.assemble()
    poses = np.array([robot.pose(home, "platform")] * 4)
    poses[1:, :3, 3] += [(0.1, 0.0, 0.05), (0.0, 0.1, -0.03), (-0.05, -0.05, 0.0)]
    return path_through(robot, np.linspace(0.0, 1.0, 4), robot.inverse_kinematics({"platform": poses}, near=home))


def arm_path(seed=0, points=9, moving=False):
    """Return a path of a 6-axis arm; `moving`: with velocities at its ends."""
    robot, rng = sarrus.mechanisms.six_axis_arm(), np.random.default_rng(seed)
    v = tuple(rng.standard_normal((2, 6))) if moving else None
    return path_through(robot, np.linspace(0.0, 1.0, points), 0.4 * rng.standard_normal((points, 6)), v=v)


def motion(timed, instants=20_011):
    return timed.at(np.linspace(0.0, timed.duration, instants))


# ---- closed forms --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("velocity", [None, 1.0], ids=["from rest", "moving"])
def test_bang_bang(velocity):
    """A mass is accelerated along half of the path, and braked along the other half: T = 2 sqrt(L / a). A force of m a is the same limit."""
    path = slide(velocity=velocity)
    timings = path.timed(acceleration=4.0), path.timed(effort=8.0), path.timed(acceleration=4.0, effort=8.0)
    for timed in timings:
        # a path from rest is a cubic of its parameter, so that s'' varies within each interval
        assert_allclose(timed.duration, 1.0, rtol=2e-6 if velocity else 2e-4)
        q, _, a = timed.at([0.1, 0.3, 0.7, 0.9])
        assert_allclose(q[:2, 0], 2.0 * np.array([0.1, 0.3]) ** 2, atol=1e-4)
        assert_allclose(np.abs(a), 4.0, rtol=1e-3)


def test_trapezium():
    """With a limit of the velocity, T = L / v + v / a."""
    timed = slide(velocity=1.0).timed(velocity=0.5, acceleration=4.0)
    assert_allclose(timed.duration, 1.0 / 0.5 + 0.5 / 4.0, rtol=2e-5)
    assert timed.active[0] == "the acceleration 4 of 'motor'"
    assert timed.active[500] == "the velocity 0.5 of 'motor'"


def test_free_joints():
    """Without motors, limits apply to all joints of the tree."""
    path = path_through(sarrus.mechanisms.double_pendulum(), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.25]])
    assert_allclose(path.timed(acceleration=4.0).duration, 1.0, rtol=2e-4)


# ---- limits --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "limits"),
    [
        (lambda: arm_path(), {"velocity": 3.0, "acceleration": 20.0}),
        (lambda: arm_path(moving=True), {"velocity": 3.0, "acceleration": 20.0, "effort": 90.0}),
        (lambda: arm_path(1), {"effort": 120.0}),
        (lambda: delta_path(), {"effort": 6.0}),
        (lambda: delta_path(), {"effort": 6.0, "velocity": 8.0, "acceleration": 150.0}),
        (lambda: delta_path(damping=dict.fromkeys(("motor1", "motor2", "motor3"), 0.3)), {"effort": 6.0}),
        (lambda: delta_path(friction=dict.fromkeys(("motor1", "motor2", "motor3"), 0.5)), {"effort": 6.0}),
        (lambda: delta_path(quadratic_damping=dict.fromkeys(("motor1", "motor2", "motor3"), 0.3)), {"effort": 6.0}),
        (lambda: delta_path(cubic_damping=dict.fromkeys(("motor1", "motor2", "motor3"), 0.1)), {"effort": 6.0}),
        (lambda: delta_path(cubic_damping=dict.fromkeys(("motor1", "motor2", "motor3"), 1000.0)), {"effort": 6.0}),
        (lambda: sprung_path(), {"effort": 6.0}),
        (lambda: stewart_path(), {"effort": 120.0}),
        (lambda: stewart_path(), {"effort": 150.0, "velocity": 0.4}),
    ],
)
def test_limits_hold_along_the_motion(path, limits):
    """Inverse dynamics of the timed motion is within the limits, at many more times than grid points, and reaches them."""
    path = path()
    robot, timed = path.mechanism, path.timed(**limits)
    q, v, a = motion(timed)
    states = robot.joint_states(q, v, a)
    uses = {"effort": lambda: robot.actuator_efforts(q[1:-1], v[1:-1], a[1:-1])}
    uses["velocity"] = lambda: np.column_stack([states.v[name] for name in robot.actuated])
    uses["acceleration"] = lambda: np.column_stack([states.a[name] for name in robot.actuated])
    use = np.array([np.abs(uses[name]()).max() / limit for name, limit in limits.items()])
    assert use.max() <= KEPT
    assert use.max() > 0.999
    assert np.mean([name != "" for name in timed.active]) > 0.9  # a fastest motion uses a limit at each time


@pytest.mark.parametrize("seed", range(4))
def test_every_joint_type(seed):
    """Limits of joints with several velocities, such as ball and free joints."""
    robot, rng = random_mechanism(seed, bodies=3, joints=ALL_JOINTS), np.random.default_rng(seed)
    start = robot.random(rng)
    q = [start, *(robot.integrate(start, 0.4 * rng.standard_normal(robot.nv)) for _ in range(3))]
    names = [name for name in robot.joints if robot.joint(name).nv]
    limits = {"velocity": dict.fromkeys(names, 1.0), "acceleration": dict.fromkeys(names, 3.0)}
    states = robot.joint_states(*motion(path_through(robot, [0.0, 0.3, 0.7, 1.0], q).timed(**limits), 5001))
    assert max(np.abs(states.v[name]).max() for name in names) == pytest.approx(1.0, abs=1e-6)
    assert max(np.abs(states.a[name]).max() for name in names) == pytest.approx(3.0, abs=3e-6)


def test_loop_joint():
    """Limits of joints that close loops."""
    robot = sarrus.mechanisms.four_bar()
    q = robot.follow({"motor": np.linspace(0.5, 2.5, 9)})
    timed = path_through(robot, np.linspace(0.0, 1.0, 9), q).timed(
        velocity={"motor": 5.0, "pin2": 2.0}, acceleration={"pin2": 30.0}
    )
    states = robot.joint_states(*motion(timed))
    assert np.abs(states.v["pin2"]).max() <= 2.0 * KEPT
    assert np.abs(states.a["pin2"]).max() <= 30.0 * KEPT
    assert {"the velocity 2 of 'pin2'", "the acceleration 30 of 'pin2'"} <= set(timed.active)


# ---- optimality ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "limits"),
    [
        (lambda: delta_path(), {"effort": 6.0}),
        (lambda: delta_path(), {"effort": 6.0, "velocity": 8.0}),
        (lambda: sprung_path(), {"effort": 6.0}),
        (lambda: stewart_path(), {"effort": 120.0}),
        (lambda: arm_path(moving=True, points=4), {"velocity": 3.0, "acceleration": 20.0, "effort": 90.0}),
    ],
)
def test_dynamic_programme(path, limits):
    path = path()
    slow = fastest_duration(path, np.linspace(path.t[0], path.t[-1], 141), **limits)
    assert_allclose(path.timed(**limits).duration, slow, rtol=FINE)


def test_units_of_the_parameter():
    """Only the geometry of the path counts, not its times."""
    path = delta_path()
    slow = path_through(path.mechanism, 50.0 * path.t + 7.0, path.q)
    assert_allclose(slow.timed(effort=6.0).duration, path.timed(effort=6.0).duration, rtol=1e-9)


def test_backward():
    """The reversed path takes as long, if dampers and friction do nothing."""
    path = delta_path()
    back = path_through(path.mechanism, path.t, path.q[::-1])
    limits = {"effort": 6.0, "velocity": 8.0}
    assert_allclose(back.timed(**limits).duration, path.timed(**limits).duration, rtol=2e-4)


def test_grid():
    """The duration converges, from above."""
    path = delta_path()
    durations = np.array([path.timed(effort=6.0, grid=grid).duration for grid in (250, 500, 1000, 4000)])
    assert (np.diff(durations) < 0.0).all()
    assert_allclose(durations[2], durations[3], rtol=2e-3)


def test_toppra():
    """The duration of toppra with the same path and a grid of the same number of points, on a 7-axis arm with 500 waypoints."""
    toppra = pytest.importorskip("toppra")
    from scipy.interpolate import CubicSpline

    b, rng, s = sarrus.Builder("arm"), np.random.default_rng(0), np.linspace(0.0, 1.0, 500)
    for k, axis in enumerate("zyzyzyz"):
        b.add_body(f"link{k}", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.2)))
        before = f"link{k - 1}" if k else "ground"
        b.add_joint(f"joint{k}", sarrus.Revolute(axis), before, f"link{k}", at_parent=(0.0, 0.0, 0.2), actuated=True)
    waves = rng.normal(size=(2, 7, 3)) / [1.0, 2.0, 3.0]
    q = np.sum(waves[0] * np.cos(np.pi * np.arange(1, 4) * s[:, None, None] + waves[1]), axis=-1)
    v = CubicSpline(s, q)([0.0, 1.0], 1)
    path = toppra.SplineInterpolator(s, q, bc_type=((1, v[0]), (1, v[1])))
    fast, strong = np.full(7, 2.5), np.full(7, 12.0)
    scheme = toppra.constraint.DiscretizationType.Interpolation
    limits = [
        toppra.constraint.JointVelocityConstraint(np.stack([-fast, fast], axis=1)),
        toppra.constraint.JointAccelerationConstraint(
            np.stack([-strong, strong], axis=1), discretization_scheme=scheme
        ),
    ]
    grid = np.linspace(0.0, 1.0, 999)
    theirs = toppra.algorithm.TOPPRA(limits, path, gridpoints=grid, solver_wrapper="seidel").compute_trajectory(0, 0)
    ours = path_through(b.build(), s, q, v=tuple(v)).timed(velocity=2.5, acceleration=12.0)
    assert_allclose(ours.duration, theirs.duration, rtol=1e-4)


@pytest.mark.parametrize(("m", "kg"), [(1e-5, 1e-9), (1e3, 1e3)])
def test_units(m, kg):
    """Durations and efforts are those of the same machine in other units of length, mass and time."""
    path = delta_path()
    robot, units = scaled(path.mechanism, m, kg)
    other = path_through(robot, path.t, path.q * units.coordinates(path.mechanism))
    limits = {"velocity": 12.0, "acceleration": 150.0, "effort": 6.0}
    factors = {"velocity": 1.0 / units.s, "acceleration": units.s**-2, "effort": units.force * units.m}
    for feed in ({}, {"platform": (0.8, 20.0)}):
        tool = {name: (speed * m / units.s, a * m / units.s**2) for name, (speed, a) in feed.items()}
        timed = path.timed(**limits, feed=feed)
        same = other.timed(**{name: x * factors[name] for name, x in limits.items()}, feed=tool)
        assert_allclose(same.duration, timed.duration * units.s, rtol=1e-8)
        assert_allclose(same.rates[1:-1] * units.s, timed.rates[1:-1], rtol=1e-6)


# ---- feed ----------------------------------------------------------------------------------------------------------------------------


def rounded_square(side, radius):
    """Return arc lengths and points of a square, from the middle of a side; the curvature of the corners is at most 1 / radius."""
    corner = np.pi * radius  # the curvature is sin² / radius
    near = np.geomspace(0.1 * radius, side / 2.0, 60)
    one = np.concatenate(
        [side / 2.0 - near[::-1], side / 2.0 + np.linspace(0.0, corner, 49), side / 2.0 + corner + near]
    )
    length = side + corner
    s = np.unique(np.concatenate([one + k * length for k in range(4)]).round(12))
    fine = np.linspace(0.0, 4.0 * length, 400_001)
    turned = np.clip(np.mod(fine, length) - side / 2.0, 0.0, corner)
    heading = np.pi / 2.0 * (fine // length) + turned / (2.0 * radius) - np.sin(2.0 * turned / radius) / 4.0
    steps = np.stack([np.cos(heading), np.sin(heading)])
    xy = np.cumsum((steps[:, 1:] + steps[:, :-1]) / 2.0, axis=1) * fine[1]
    return s, np.stack([np.interp(s, fine, np.append(0.0, x)) for x in xy], axis=1) - [0.0, side / 2.0]


def test_feed():
    """100 mm/s around a square with corners of 1 mm: held on the straights, and never exceeded; nor is the acceleration in the corners."""
    robot, side, radius, feed, most = sarrus.mechanisms.delta(), 0.08, 1e-3, 0.1, 2.0
    s, xy = rounded_square(side, radius)
    q = robot.inverse_kinematics({"platform": np.column_stack([xy, np.full(len(s), -0.5)])}, near=robot.assemble())
    ends = [
        robot.complete_velocity(x, {}, frames={"platform": [1.0, 0.0, 0.0]}, expressed_in="world_aligned")
        for x in q[[0, -1]]
    ]
    timed = path_through(robot, s, q, v=tuple(ends)).timed(feed={"platform": (feed, most)}, effort=6.0)
    q, v, a = motion(timed, 40_001)
    speed = np.linalg.norm(robot.velocity(q, v, "platform", expressed_in="world_aligned")[:, 3:], axis=1)
    acceleration = np.linalg.norm(robot.acceleration(q, v, a, "platform", expressed_in="world_aligned")[:, 3:], axis=1)
    assert speed.max() <= feed * KEPT
    assert acceleration.max() <= most * KEPT
    s = np.interp(np.linspace(0.0, timed.duration, len(q)), timed.t, timed.s)
    place, corner = np.mod(s, side + np.pi * radius), np.pi * radius
    to_corner = np.maximum(side / 2.0 - place, place - side / 2.0 - corner)
    brake = (
        1.1 * feed**2 / (2.0 * most)
    )  # distance to reach the feed from rest, with a reserve for the polygon in the circle
    straight = (to_corner > brake) & (s > brake) & (s < s[-1] - brake)
    assert straight.mean() > 0.6
    assert_allclose(speed[straight], feed, rtol=1e-6)
    middle = np.abs(place - side / 2.0 - corner / 2.0) < 1e-5
    assert_allclose(speed[middle], np.sqrt(most * radius), rtol=3e-3)  # the acceleration in the corner is v² / radius
