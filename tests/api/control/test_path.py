"""Paths through waypoints: smooth, on the loops, and usable by controllers."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

import sarrus
from sarrus.control.path import path_through
from tests.random_closed import ALL_CONSTRAINTS, random_closed
from tests.random_mechanisms import ALL_JOINTS, random_mechanism

TIMES = np.array([0.0, 0.5, 1.3, 1.6])
ROUNDING = 1e-12  # of numbers of size 1 to 10, over some hundred operations
ROLLS = ("disc", "sphere", "sphere on sphere", "sphere in sphere", "pfaffian", "pfaffian of q")
HOLONOMIC = tuple(kind for kind in ALL_CONSTRAINTS if kind not in ROLLS)
IDENTITY = [0.0, 0.0, 0.0, 1.0]


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def ball(seed=0):
    return random_mechanism(seed, bodies=1, joints=("spherical",))


def through(mechanism, rng, times=TIMES, v=True):
    q = np.array([mechanism.random(rng) for _ in times])
    return path_through(mechanism, times, q, v=tuple(rng.standard_normal((2, mechanism.nv))) if v else None)


def open_five_bar():
    """Return a five-bar path through four points of its motors, at rest at both ends."""
    robot = sarrus.mechanisms.five_bar()
    q = robot.follow({"left_motor": np.array([0.5, 0.8, 0.3, 0.4]), "right_motor": np.array([2.0, 1.8, 2.2, 2.4])})
    return path_through(robot, TIMES, q)


def closed_paths():
    """Return paths on loops of every holonomic kind, including driven ones, with end velocities."""
    for seed in (0, 2, 7, 13, 18, 26, 47, 63, 79, 104):
        state = random_closed(seed, bodies=5, loops=2, kinds=HOLONOMIC, mobility=2, floating=seed % 2 == 0)
        robot = sarrus.Mechanism(state.description)
        rng = np.random.default_rng(seed)
        t = state.time + np.array([0.0, 0.3, 0.7, 0.9])
        near = [robot.integrate(state.q, 0.2 * rng.standard_normal(robot.nv)) for _ in t[1:]]
        q = [state.q, *(robot.project_configuration(x, time=s) for x, s in zip(near, t[1:]))]
        v = [robot.project_velocity(q[k], rng.standard_normal(robot.nv), time=t[k]) for k in (0, -1)]
        yield path_through(robot, t, q, v=v), np.array(q), np.array(v)


def off_by_differences(path, h, beyond=0.0):
    """Return the relative difference of v and a from central differences, away from the kinks of the third derivative."""
    robot, t = path.mechanism, path.t
    times = np.linspace(t[0] - beyond + 3e-3, t[-1] + beyond - 3e-3, 97)
    times = times[np.abs(times[:, None] - t).min(axis=1) > 2.5e-3]
    _, v, a = path.at(times)
    (q0, v0, _), (q1, v1, _) = path.at(times - h), path.at(times + h)
    off = np.abs(robot.difference(q0, q1) / (2 * h) - v).max(), np.abs((v1 - v0) / (2 * h) - a).max()
    return off[0] / np.abs(v).max(), off[1] / np.abs(a).max()


def assert_derivatives(path, beyond=0.0):
    """Check O(h^2): a quarter for half of h; or rounding, eps / h, if the path is very smooth."""
    coarse, fine = off_by_differences(path, 2e-3, beyond), off_by_differences(path, 1e-3, beyond)
    for large, small in zip(coarse, fine):
        assert small < 0.27 * large + 1e-10
        assert small < 1e-2


def assert_smooth_at_way_points(path):
    """q, v and a from both sides, 1e-8 s apart: third derivatives below 5e4 leave 1e-3 of jumps of size 1 to 100."""
    near = 1e-8
    jumps = [
        max(np.abs(x - y).max() for x, y in zip(path.at(t - near)[1:], path.at(t + near)[1:])) for t in path.t[1:-1]
    ]
    fine = [
        max(np.abs(x - y).max() for x, y in zip(path.at(t - near / 10)[1:], path.at(t + near / 10)[1:]))
        for t in path.t[1:-1]
    ]
    # they go to zero with the distance, as what is continuous does
    assert max(jumps) < 1e-3
    assert max(fine) < 0.2 * max(jumps) + 1e-9


# ---- trees -----------------------------------------------------------------------------------------------------------


def test_coordinates_that_add_up_go_on_complete_cubic_splines(rng):
    arm = sarrus.mechanisms.stanford_arm()
    path = through(arm, rng)
    spline = CubicSpline(TIMES, path.q, bc_type=((1, path.v[0]), (1, path.v[-1])))
    times = np.linspace(*TIMES[[0, -1]], 50)
    for k, values in enumerate(path.at(times)):
        assert_allclose(values, spline(times, k), rtol=0, atol=100 * ROUNDING)


def test_rotations_are_those_of_scipy(rng):
    """SciPy's rotation splines, with their end velocities; small rotations, because SciPy stops after ten iterations."""
    robot = ball()
    q = Rotation.from_rotvec(rng.uniform(-0.5, 0.5, (6, 3))).as_quat()
    times = np.array([0.0, 0.4, 1.0, 1.1, 2.0, 2.2])
    spline = RotationSpline(times, Rotation.from_quat(q))
    path = path_through(robot, times, q, v=tuple(spline(times[[0, -1]], 1)))
    between = np.linspace(0.0, 2.2, 101)
    x, v, a = path.at(between)
    assert_allclose((spline(between).inv() * Rotation.from_quat(x)).magnitude(), 0.0, atol=1e-8)
    # scipy stops at changes of 1e-9 of the rates
    assert_allclose(v, spline(between, 1), rtol=0, atol=1e-7)
    assert_allclose(a, spline(between, 2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_every_joint_passes_its_way_points_smoothly(seed):
    robot = random_mechanism(seed, bodies=len(ALL_JOINTS))
    rng = np.random.default_rng(seed)
    path = through(robot, rng)
    q, v, _ = path.at(path.t)
    assert np.abs(robot.difference(path.q, q)).max() < ROUNDING
    assert_allclose(v, path.v, rtol=0, atol=100 * ROUNDING)
    assert_derivatives(path, beyond=0.3)
    assert_smooth_at_way_points(path)


def test_many_way_points_do_not_amplify_errors(rng):
    """A densely sampled rotation with known velocity: the spline's error is O(h^3), at both ends."""
    robot = ball()
    v_of = np.array([0.3, -1.0, 0.7])
    for n, most in ((51, 1e-4), (201, 2e-6)):
        times = np.linspace(0.0, 5.0, n)
        turns = Rotation.from_rotvec(np.sin(times)[:, None] * v_of) * Rotation.from_rotvec(
            np.cos(2 * times)[:, None] * [1.0, 0.5, 0.0]
        )
        h = 1e-4
        before, after = (
            Rotation.from_rotvec(np.sin(s)[:, None] * v_of)
            * Rotation.from_rotvec(np.cos(2 * s)[:, None] * [1.0, 0.5, 0.0])
            for s in (times - h, times + h)
        )
        v = (before.inv() * after).as_rotvec() / (2 * h)
        path = path_through(robot, times, turns.as_quat(), v=(v[0], v[-1]))
        assert np.abs(path.v - v).max() < most


def test_uneven_times_and_large_rotations_find_a_spline():
    rng = np.random.default_rng(1)
    robot = ball()
    for _ in range(10):
        times = np.cumsum(10.0 ** rng.uniform(-1, 1, 12))
        path = path_through(robot, times, Rotation.random(12, rng=rng).as_quat())
        gap = 1e-9 * np.diff(times).min()
        before, after = path.at(times[1:-1] - gap)[2], path.at(times[1:-1] + gap)[2]
        assert np.abs(after - before).max() < 1e-5 * np.abs(after).max()


def test_a_body_thrown_through_points_goes_on_its_parabola():
    robot = random_mechanism(0, bodies=1, joints=("free",))
    t = np.array([0.0, 0.2, 0.7, 1.0])
    g = np.array([0.0, 0.0, -9.81])
    turns = Rotation.from_rotvec(t[:, None] * [0.0, 0.0, 2.0])
    q = np.hstack([turns.as_quat(), t[:, None] * [1.0, 0.0, 3.0] + t[:, None] ** 2 * g / 2])
    v = np.hstack([np.tile([0.0, 0.0, 2.0], (4, 1)), turns.inv().apply([1.0, 0.0, 3.0] + t[:, None] * g)])
    path = path_through(robot, t, q, v=(v[0], v[-1]))
    assert_allclose(path.v, v, atol=ROUNDING)
    x, _, a = path.at(0.45)
    assert_allclose(x[4:], 0.45 * np.array([1.0, 0.0, 3.0]) + 0.45**2 * g / 2, atol=ROUNDING)
    # in axes that turn: a = R^T g - ω × v
    turned = Rotation.from_quat(x[:4]).inv().apply(g) - np.cross([0.0, 0.0, 2.0], path.at(0.45)[1][3:])
    assert_allclose(a, [0.0, 0.0, 0.0, *turned], atol=ROUNDING)


def test_before_and_after_it_rests_or_goes_straight_on(rng):
    robot = random_mechanism(5, bodies=len(ALL_JOINTS))
    rest = through(robot, rng, v=False)
    q, v, a = rest.at([-3.0, 7.0])
    assert np.abs(robot.difference(rest.q[[0, -1]], q)).max() < ROUNDING
    assert_array_equal(v, 0.0)
    assert_array_equal(a, 0.0)
    spinning = through(ball(), rng)
    _, v, a = spinning.at([-3.0, 7.0])
    assert_allclose(v, spinning.v[[0, -1]], atol=ROUNDING)
    assert_allclose(a, 0.0, atol=ROUNDING)
    coasting = through(sarrus.mechanisms.double_pendulum(), rng)
    assert_allclose(coasting.at(3.6)[0], coasting.q[-1] + 2.0 * coasting.v[-1], atol=10 * ROUNDING)


def test_the_signs_of_quaternions_do_not_matter(rng):
    robot = ball()
    q = Rotation.random(5, rng=rng).as_quat()
    times = np.arange(5.0)
    one, other = (path_through(robot, times, x) for x in (q, q * np.array([[1], [-1], [1], [1], [-1]])))
    between = np.linspace(0.0, 4.0, 33)
    for x, y in zip(one.at(between), other.at(between)):
        assert_array_equal(x, y)
    # and q goes on without jumps of sign
    assert np.abs(np.diff(one.at(np.linspace(0.0, 4.0, 401))[0], axis=0)).max() < 0.1
    twice = path_through(robot, times, 2.0 * q)
    assert_allclose(twice.q, one.q, atol=ROUNDING)


@pytest.mark.parametrize("noise", [0.0, 1e-16, -1e-16])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_half_a_turn_goes_about_the_vector_part_as_it_is_given(sign, noise):
    path = path_through(ball(), [0.0, 1.0], [IDENTITY, [0.0, 0.0, sign, noise]])
    assert_allclose(path.at(0.5)[0], [0.0, 0.0, sign * np.sqrt(0.5), np.sqrt(0.5)], atol=ROUNDING)
    # more than that is the other way
    path = path_through(ball(), [0.0, 1.0], [IDENTITY, [0.0, 0.0, sign, -1e-3]])
    assert path.at(0.5)[0][2] * sign < 0.0


def test_way_points_that_are_one():
    path = path_through(ball(), [0.0, 1.0, 2.0], [IDENTITY] * 3)
    q, v, a = path.at([0.3, 1.7])
    assert_array_equal(q, [IDENTITY] * 2)
    assert not v.any() and not a.any()


def test_shapes_of_times(rng):
    path = through(random_mechanism(2, bodies=4), rng)
    nq, nv = path.mechanism.nq, path.mechanism.nv
    for shape in ((), (0,), (5,), (2, 3)):
        assert [x.shape for x in path.at(np.full(shape, 0.7))] == [(*shape, nq), (*shape, nv), (*shape, nv)]
    times = rng.uniform(-1, 3, 20)
    for k, x in enumerate(path.at(times)):
        assert_allclose(x, [path.at(t)[k] for t in times], rtol=0, atol=ROUNDING)


def test_one_time_is_what_many_are():
    """Equal to the last bit, before, between, at and after waypoints; also for a time that is a NumPy number."""
    for path in (through(random_mechanism(3), np.random.default_rng(0)), open_five_bar()):
        times = np.concatenate([path.t, np.linspace(-0.1, 1.7, 23)])
        many = path.at(times)
        for k, t in enumerate(times):
            for x, y, z in zip(many, path.at(float(t)), path.at(t)):
                assert_array_equal(x[k], y)
                assert_array_equal(x[k], z)


@pytest.mark.parametrize("make", [lambda: through(random_mechanism(3), np.random.default_rng(0)), open_five_bar])
def test_pickles(make):
    path = make()
    other = pickle.loads(pickle.dumps(path))
    times = np.linspace(-0.1, 2.0, 20)
    for x, y in zip(path.at(times), other.at(times)):
        assert_allclose(x, y, rtol=0, atol=100 * ROUNDING)
    with pytest.raises(ValueError, match="read-only"):
        other.q[0] = 0.0
    with pytest.raises(AttributeError):
        other.t = times
    assert "through 4 waypoints, 0 s to 1.6 s" in repr(other)


# ---- in use ----------------------------------------------------------------------------------------------------------


def test_laws_are_the_path(rng):
    robot = random_mechanism(3, bodies=len(ALL_JOINTS))
    path = through(robot, rng)
    times = np.linspace(-0.5, 2.0, 40)
    q, v, _ = path.at(times)
    for name in robot.joints:
        joint = robot.joint(name)
        if joint.kind in ("Spherical", "Free"):
            with pytest.raises(sarrus.ModelError, match=r"requires a joint without a quaternion.*: use Path\.at"):
                path.law(name)
            continue
        for index in range(joint.nq):
            assert_allclose(path.law(name, index)(times), q[:, joint.q_slice][:, index], rtol=0, atol=100 * ROUNDING)
        with pytest.raises(sarrus.ModelError, match=f"index {joint.nq}"):
            path.law(name, joint.nq)
    with pytest.raises(sarrus.NameNotFoundError):
        path.law("elbow")


def test_computed_torque_follows_a_path_of_an_arm():
    b = sarrus.Builder("arm")
    parent = "ground"
    for k, axis in enumerate("zyy"):
        b.add_body(f"link{k}", sarrus.Inertia(1.0, [0.0, 0.0, 0.2], np.diag([0.02, 0.03, 0.01])))
        b.add_joint(f"joint{k}", sarrus.Revolute(axis), parent, f"link{k}", at_parent=[0.0, 0.0, 0.4 * (k > 0)])
        parent = f"link{k}"
    arm = b.build()
    path = path_through(arm, [0.0, 0.6, 1.0, 2.0], [[0.0, 0.5, 1.0], [1.0, 0.8, 0.3], [1.5, 0.0, 0.9], [0.5, 0.5, 0.5]])
    drive = sarrus.control.ComputedTorque({name: path.law(name) for name in arm.joints})
    # steps that adapt: where it comes to rest its acceleration jumps
    run = sarrus.simulate(arm, path.q[0], path.v[0], 2.5, controller=drive, method="dopri5", rtol=1e-9, atol=1e-9)
    assert np.abs(run.q - path.at(run.t)[0]).max() < 1e-6
    assert np.abs(run.v - path.at(run.t)[1]).max() < 1e-5


def test_a_flying_body_follows_the_forces_of_its_path(rng):
    robot = random_mechanism(1, bodies=1, joints=("free",))
    path = through(robot, rng)

    def forces(t, q, v):
        return robot.inverse_dynamics(*path.at(t))

    run = sarrus.simulate(robot, path.q[0], path.v[0], 1.6, controller=forces, dt=4e-3)
    # RK4, and no feedback: steps across the kinks of a at the waypoints are off by the cube of dt
    assert np.abs(robot.difference(path.at(run.t)[0], run.q)).max() < 1e-6


# ---- closed loops ----------------------------------------------------------------------------------------------------


def test_paths_stay_on_loops_of_all_kinds():
    for path, q, v in closed_paths():
        robot = path.mechanism
        at, rate, _ = path.at(path.t)
        assert np.abs(robot.difference(q, at)).max() < ROUNDING
        assert_allclose(rate[[0, -1]], v, rtol=0, atol=100 * ROUNDING)
        times = np.linspace(*path.t[[0, -1]], 41)
        at, rate, a = path.at(times)
        assert np.abs(robot.constraint_residual(at, time=times)).max() < ROUNDING
        J, c = robot.constraint_jacobian(at, time=times), robot.constraint_velocity(at, time=times)
        assert_allclose((J @ rate[..., None])[..., 0], c, rtol=0, atol=100 * ROUNDING)
        bias = robot.constraint_bias(at, rate, time=times)
        assert_allclose((J @ a[..., None])[..., 0], bias, rtol=0, atol=1e4 * ROUNDING)  # accelerations of 1e2 to 1e3
        assert_derivatives(path)
        assert_smooth_at_way_points(path)


@pytest.mark.parametrize(
    "make",
    [
        sarrus.mechanisms.four_bar,
        sarrus.mechanisms.stewart,
    ],
)
def test_paths_of_the_gallery(make, rng):
    robot = make()
    if robot.name == "four-bar":  # a quarter of a turn of the crank each
        q = robot.follow({"motor": np.linspace(0.0, 1.5 * np.pi, 4)})
    else:
        home = robot.assemble()
        steps = 0.15 * rng.standard_normal((3, robot.nv))
        q = np.array([home, *robot.project_configuration(robot.integrate(home, steps))])
    path = path_through(robot, TIMES, q)
    times = np.linspace(-0.2, 1.8, 101)
    assert np.abs(robot.constraint_residual(path.at(times)[0])).max() < ROUNDING
    assert_allclose(path.at([-1.0, 3.0])[2], 0.0, atol=ROUNDING)
    assert_derivatives(path)
    assert_smooth_at_way_points(path)
    # the motors of a path at rest at its ends
    assert np.isfinite(robot.actuator_efforts(*path.at(times))).all()


def test_way_points_close_by_make_the_loops_follow_the_spline():
    """Half the spacing of waypoints reduces the loops' change of the spline to a sixteenth."""
    robot = sarrus.mechanisms.four_bar()
    off = []
    for n in (9, 17, 33):
        crank = np.linspace(0.5, 3.0, n)
        q = robot.follow({"motor": crank})
        turning = [robot.project_velocity(x, [1.0, 0.0, 0.0]) for x in q[[0, -1]]]
        path = path_through(robot, np.linspace(0.0, 1.0, n), q, v=tuple(2.5 * v / v[0] for v in turning))
        middle = (path.t[:-1] + path.t[1:]) / 2
        middle = middle[abs(middle - 0.5) < 0.2]
        plain = CubicSpline(path.t, path.q, bc_type=((1, path.v[0]), (1, path.v[-1])))(middle)
        off.append(np.abs(path.at(middle)[0] - plain).max())
    assert off[1] < off[0] / 8 and off[2] < off[1] / 8


def test_motors_of_a_closed_mechanism_follow_its_path():
    path = open_five_bar()
    robot = path.mechanism
    times = np.linspace(-0.1, 1.7, 301)
    q, v, a = path.at(times)
    laws = {name: path.law(name) for name in robot.joints}
    for k, law in enumerate(laws.values()):
        known = law.derivatives(times)
        assert_allclose(known[0], q[:, k], rtol=0, atol=2e-10)
        assert_allclose(known[1], v[:, k], rtol=0, atol=1e-7)
        assert_allclose(known[2], a[:, k], rtol=0, atol=1e-3)
    gains = {"proportional": 400.0, "derivative": 20.0}
    motors = [sarrus.control.PID(name, target=laws[name], **gains) for name in robot.actuated]
    feedforward = []
    for name, u in zip(robot.actuated, robot.actuator_efforts(q, v, a).T):
        feedforward.append(sarrus.control.FeedforwardEffort(name, sarrus.laws.spline(times, u)))
    run = sarrus.simulate(robot, path.q[0], path.at(0.0)[1], 1.6, controller=[*motors, *feedforward])
    assert np.abs(run.q - path.at(run.t)[0]).max() < 1e-4


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"times": [0.0, 1.0, 1.0]}, sarrus.ModelError, "must increase; got 1 and then 1"),
        ({"times": [0.0, 2.0, 1.0]}, sarrus.ModelError, "must increase; got 2 and then 1"),
        ({"times": [0.0, np.nan, 1.0]}, sarrus.StateError, r"times\[1\] is nan"),
        ({"times": [0.0, 1.0]}, sarrus.ShapeError, r"\(n, nq\) = \(2, 2\); got shape \(3, 2\)"),
        ({"times": [0.0]}, sarrus.ShapeError, "two waypoints or more"),
        ({"times": 1.0}, sarrus.ShapeError, r"got shape \(\)"),
        ({"times": "soon"}, sarrus.ShapeError, "array of real numbers; got 'soon'"),
        ({"q": np.zeros((3, 5))}, sarrus.ShapeError, r"got shape \(3, 5\)"),
        ({"q": [[0, 0], [0, np.inf], [0, 0]]}, sarrus.StateError, r"q\[1, 1\] is inf"),
        ({"v": [0.0, 0.0, 0.0]}, sarrus.ShapeError, "two velocities, at its first and at its last"),
        ({"v": 3.0}, sarrus.ShapeError, "two velocities"),
        ({"v": ([0.0], [0.0])}, sarrus.ShapeError, r"\(nv,\) = \(2,\); got shape \(1,\)"),
        ({"v": ([0.0, 0.0], [0.0, np.nan])}, sarrus.StateError, r"v\[1\] is nan"),
        ({"mechanism": "arm"}, TypeError, "'arm'"),
    ],
)
def test_errors_say_what_is_wrong(change, error, message):
    given = {"mechanism": sarrus.mechanisms.double_pendulum(), "times": [0.0, 1.0, 2.0], "q": np.zeros((3, 2))} | change
    with pytest.raises(error, match=message):
        path_through(**given)


def test_a_quaternion_of_zeros_is_refused():
    with pytest.raises(sarrus.StateError):
        path_through(ball(), [0.0, 1.0], [IDENTITY, np.zeros(4)])


def test_times_that_are_not_finite_are_refused():
    path = open_five_bar()
    for t in (np.nan, [0.0, np.inf]):
        with pytest.raises(sarrus.StateError, match="must be finite"):
            path.at(t)


def test_way_points_off_the_loops_are_refused():
    robot = sarrus.mechanisms.four_bar()
    q = robot.follow({"motor": np.array([0.0, 0.5, 1.0])})
    with pytest.raises(sarrus.StateError, match=r"waypoint 1 does not close the loops: 'pin2: .*project_configuration"):
        path_through(robot, [0.0, 1.0, 2.0], q + np.array([[0, 0, 0], [0, 0, 0.01], [0, 0, 0]]))
    with pytest.raises(
        sarrus.StateError, match=r"velocity at the last waypoint violates the loops: J v - c .*project_velocity"
    ):
        path_through(robot, [0.0, 1.0, 2.0], q, v=(np.zeros(3), [1.0, 0.0, 0.0]))
    with pytest.raises(sarrus.ModelError, match="'pin2' closes a loop"):
        path_through(robot, [0.0, 1.0, 2.0], q).law("pin2")


def test_way_points_on_two_branches_are_refused():
    robot = sarrus.mechanisms.four_bar()
    modes = robot.assembly_modes(fixed={"motor": 0.5})
    with pytest.raises(sarrus.StateError, match=r"waypoints 0 and 1 .* different branches"):
        path_through(robot, [0.0, 1.0], modes[:2])


def test_a_way_point_where_the_loops_lose_rank_is_refused():
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, ground=1.0)  # a parallelogram, flat at the start
    q = robot.assemble(fixed={"motor": 0.0})
    there = robot.assemble(near=q, fixed={"motor": 0.4})
    with pytest.raises(sarrus.StateError, match="at waypoint 0 the loops allow 2 independent motions, elsewhere 1"):
        path_through(robot, [0.0, 1.0], [q, there])


def test_rolling_is_refused():
    robot = sarrus.mechanisms.rolling_disc()
    with pytest.raises(sarrus.ModelError, match="constrains velocities only"):
        path_through(robot, [0.0, 1.0], [robot.assemble()] * 2)


def test_beyond_its_way_points_a_path_says_where_loops_no_longer_close():
    robot = sarrus.mechanisms.four_bar()
    q = robot.follow({"motor": np.array([0.5, 0.7])})
    v = [robot.project_velocity(x, [3.0, 0.0, 0.0]) for x in q]
    path = path_through(robot, [0.0, 0.1], q, v=v)
    assert np.abs(robot.constraint_residual(path.at(0.15)[0])).max() < ROUNDING
    with pytest.raises(sarrus.StateError, match=r"at t = 20 s the loops cannot close: .* is extrapolated"):
        path.at(20.0)


def test_it_is_part_of_control():
    assert sarrus.control.path_through is path_through


@pytest.mark.parametrize(
    ("t", "q", "message"),
    [
        ([0.0, 1.0], np.zeros((2, 1)), r"q of a path must be \(2, 2\); got \(2, 1\)"),
        ([0.0, 1.0, 2.0], np.zeros((1, 2)), r"q of a path must be \(3, 2\)"),
        ([0.0], np.zeros((1, 2)), "at least two waypoints"),
        ([0.0, 1.0], np.full((2, 2), np.nan), "must be finite"),
    ],
)
def test_the_core_checks_sizes(t, q, message):
    """C++ programs have no other check."""
    with pytest.raises(ValueError, match=message):
        sarrus._core.Path.through(sarrus.mechanisms.double_pendulum(), np.array(t), q, None)
