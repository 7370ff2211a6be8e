"""Friction of contacts against spinning and rolling: closed forms and laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import CollisionContacts, RigidContact
from sarrus.shapes import Plane, Sphere

G = 9.81
MASS, RADIUS = 0.5, 0.1
INERTIA = 0.4 * MASS * RADIUS**2
# what contact's steps are held to [m, m/s]: cones to 1e-10 of the largest velocity
AT_REST = 1e-9
AT = np.array([0, 0, 0, 1, 0, 0, RADIUS])


def ball(slope=0.0, shapes=False, **numbers):
    """A ball on level ground, or where gravity leans along x; and its contact."""
    b = sarrus.Builder("ball", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    b.add_body("ball", sarrus.Inertia.sphere(mass=MASS, radius=RADIUS))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    if not shapes:
        return b.build(), [RigidContact("ball", radius=RADIUS, **numbers)]
    b.add_shape("ball", Sphere(RADIUS), **numbers)
    b.add_shape("ground", Plane(), name="floor")
    b.set_home({"float": AT})
    return b.build(), []


def roller(slope=0.0, shapes=False, **numbers):
    """The same ball on axes that do not turn with it: (x, z, turn about y), of which steps are exact."""
    b = sarrus.Builder("roller", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    for name in ("along", "up"):
        b.add_body(name, sarrus.Inertia.zero())
    b.add_body("ball", sarrus.Inertia.sphere(mass=MASS, radius=RADIUS))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "along")
    b.add_joint("z", sarrus.Prismatic("z"), "along", "up")
    b.add_joint("turn", sarrus.Revolute("y"), "up", "ball")
    acting = [RigidContact("ball", radius=RADIUS, offset=-RADIUS, **numbers)]
    if shapes:
        b.add_shape("ball", Sphere(RADIUS), **numbers)
        b.add_shape("ground", Plane(), (0, 0, -RADIUS), name="floor")
        acting = []
    return b.build(), acting


def simulate(robot, q, v, duration, acting, **options):
    return sarrus.simulate(robot, q, v, duration, acting, **({"method": "contact", "dt": 2e-3} | options))


@pytest.mark.parametrize("shapes", [False, True])
def test_a_spinning_ball_stops_in_time(shapes):
    """w = w0 - mu m g t / I, and at rest after t = I w0 / (mu m g); it never leaves the ground."""
    mu, w = 2e-3, 5.0
    robot, acting = ball(shapes=shapes, torsional_friction=mu)
    stops = INERTIA * w / (mu * MASS * G)
    run = simulate(robot, AT, [0, 0, w, 0, 0, 0], 1.5 * stops, acting)
    assert_allclose(run.v[:, 2], np.maximum(w * (1 - run.t / stops), 0.0), atol=1e-8)
    assert abs(run.q[:, 6] - RADIUS).max() < AT_REST
    assert abs(run.v[-1]).max() < AT_REST
    assert run.statistics["contact"]["work"] <= 0.0
    assert run.statistics["contact"]["natural_map"] < 1e-9 * w
    assert run.statistics["contact"]["as_touching"] == 0


@pytest.mark.parametrize("shapes", [False, True])
def test_a_rolling_ball_is_braked(shapes):
    """About the point that touches (I + m r2) dw/dt = -mu m g, until it rests."""
    mu, v = 5e-3, 1.0
    robot, acting = roller(shapes=shapes, friction=0.6, rolling_friction=mu)
    brakes = mu * MASS * G * RADIUS / (INERTIA + MASS * RADIUS**2)
    run = simulate(robot, np.zeros(3), [v, 0, v / RADIUS], 1.5 * v / brakes, acting)
    assert_allclose(run.v[:, 0], np.maximum(v - brakes * run.t, 0.0), atol=1e-7)
    assert_allclose(run.v[:, 2], run.v[:, 0] / RADIUS, atol=1e-7)
    assert abs(run.v[-1]).max() < AT_REST
    assert abs(run.q[:, 1]).max() < AT_REST


@pytest.mark.parametrize("shapes", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.99, 1.01, 2.0])
def test_a_ball_on_a_ramp_rolls_where_it_is_steep_enough(share, shapes):
    """The ball rests while tan(slope) < mu / r; else (I + m r2) a = r m g (r sin - mu cos)."""
    mu = 0.02
    slope = np.arctan(share * mu / RADIUS)
    robot, acting = roller(slope, shapes=shapes, friction=0.9, rolling_friction=mu)
    run = simulate(robot, np.zeros(3), np.zeros(3), 0.5, acting)
    pull = RADIUS * MASS * G * (RADIUS * np.sin(slope) - mu * np.cos(slope)) / (INERTIA + MASS * RADIUS**2)
    assert_allclose(run.v[:, 0], max(pull, 0.0) * run.t, rtol=1e-8, atol=AT_REST)
    if share < 1.0:
        assert abs(run.q).max() < AT_REST


def parallelogram(length=0.3):
    """Return two cranks about vertical axes and a rod between them, closed by a ball: one crank may slide along its axis, and rests on its point."""
    b = sarrus.Builder("parallelogram", gravity=(0, 0, -G))
    b.add_body("crank", sarrus.Inertia.box(1.0, (0.1, 0.1, 0.1)))
    b.add_body("other", sarrus.Inertia.box(1.0, (0.1, 0.1, 0.1)))
    b.add_body("rod", sarrus.Inertia.box(0.6, (0.01, 0.4, 0.01)))
    b.add_joint("stands", sarrus.Cylindrical("z"), "ground", "crank")
    b.add_joint("turns", sarrus.Revolute("z"), "ground", "other", at_parent=(0, 0.4, 0))
    b.add_joint("one", sarrus.Spherical(), "crank", "rod", at_parent=(length, 0, 0), at_child=(0, -0.2, 0))
    b.add_joint("end", sarrus.Spherical(), "other", "rod", at_parent=(length, 0, 0), at_child=(0, 0.2, 0), loop=True)
    return b.build()


def test_a_loop_that_turns_on_a_point_is_braked():
    """(I1 + I2 + m l2) dw/dt = -mu (m1 + m / 2) g: both ends carry the weight of the rod."""
    mu, w, length = 0.01, 3.0, 0.3
    robot = parallelogram(length)
    q, v = robot.assemble(), np.zeros(robot.nv)
    for name in ("stands", "turns"):
        v[robot.joint(name).v_slice][0] = w
    v[robot.joint("one").v_slice] = 0, 0, -w  # the rod does not turn
    floor = RigidContact("crank", torsional_friction=mu)
    axis = 2.0 * sarrus.Inertia.box(1.0, (0.1, 0.1, 0.1)).about_com[2, 2] + 0.6 * length**2
    brakes = mu * 1.3 * G / axis
    run = simulate(robot, q, v, 0.5 * w / brakes, [floor], dt=1e-3)
    turning = run.v[:, robot.joint("turns").v_slice][:, 0]
    assert_allclose(turning, w - brakes * run.t, atol=2e-3 * w)
    held = run.statistics["contact"]
    assert held["kinematics"] < 1e-11
    assert held["natural_map"] < 1e-9 * w
    assert held["primal"] < 1e-9
    assert held["dual"] < 1e-8 * w
    assert_allclose(run.internal_state[1:, 4], -mu * run.internal_state[1:, 0], rtol=1e-6)  # at its limit


def test_moments_stay_within_their_disks_and_take_energy():
    """A plate on three balls spins and slides: in every step its moments are within the pressure's limit, and energy decreases."""
    b = sarrus.Builder("plate")
    b.add_body("plate", sarrus.Inertia.box(2.0, (0.3, 0.3, 0.05)))
    b.add_joint("float", sarrus.Free(), "ground", "plate")
    for i, (x, y) in enumerate([(0.1, 0.0), (-0.05, 0.08), (-0.05, -0.08)]):
        b.add_frame(f"ball{i}", "plate", (x, y, -0.02))
    robot = b.build()
    mu_s, mu_r = 0.02, 0.01
    balls = [
        RigidContact(f"ball{i}", radius=0.02, friction=0.3, torsional_friction=mu_s, rolling_friction=mu_r)
        for i in range(3)
    ]
    q = np.array([0, 0, 0, 1, 0, 0, 0.1])
    run = simulate(robot, q, [2.0, 1.0, 6.0, 1.0, 0.5, 0], 1.0, balls)
    z = run.internal_state.reshape(len(run), 3, 7)
    assert z[:, :, 0].max() > 0.0
    assert (abs(z[:, :, 4]) <= mu_s * z[:, :, 0] + 1e-7).all()
    assert (np.linalg.norm(z[:, :, 5:], axis=2) <= mu_r * z[:, :, 0] + 1e-7).all()
    assert np.diff(run.energy).max() < 1e-6
    assert run.statistics["contact"]["work"] < 1e-6
    free = [RigidContact(f"ball{i}", radius=0.02, friction=0.3) for i in range(3)]
    assert simulate(robot, q, [2.0, 1.0, 6.0, 1.0, 0.5, 0], 1.0, free).internal_state.shape[1] == 12


def test_shapes_and_points_are_one():
    numbers = {"friction": 0.4, "torsional_friction": 2e-3, "rolling_friction": 1e-3}
    v = [1.0, -20.0, 5.0, 1.0, 0.3, 0.0]
    runs = []
    for shapes in (False, True):
        robot, acting = ball(shapes=shapes, **numbers)
        runs.append(simulate(robot, AT, v, 0.5, acting))
    assert_allclose(runs[0].v, runs[1].v, atol=1e-9)
    pressed = runs[1].contacts
    normal = pressed.force[:, 2]
    assert (abs(pressed.moment[:, 2]) <= 2e-3 * normal * (1 + 1e-6)).all()
    across = np.linalg.norm(pressed.moment[:, :2], axis=1)
    assert across.max() > 0.0
    assert (across <= 1e-3 * normal * (1 + 1e-6)).all()
    # the moments act in what a state of the run is asked for, too
    k = pressed.sample[-1]
    wrench = runs[1].mechanism.forward_dynamics(runs[1].q[k], runs[1].v[k], runs[1].tau[k])
    assert np.isfinite(wrench).all()


def test_it_goes_on_bit_for_bit():
    robot, acting = ball(shapes=True, torsional_friction=2e-3, rolling_friction=1e-3)
    v = [1.0, -20.0, 5.0, 1.0, 0.3, 0.0]
    whole = simulate(robot, AT, v, 0.2, acting)
    half = simulate(robot, AT, v, 0.1, acting)
    rest = sarrus.simulate(robot, duration=0.1, resume=half)
    assert_array_equal(rest.q[-1], whole.q[-1])


def test_runs_have_numbers_of_their_own():
    robot, _ = ball(shapes=True)
    mu = np.array([0.0, 1e-3, 2e-3])
    w = [0, 0, 5.0, 0, 0, 0]
    runs = sarrus.simulate_many(robot, AT, w, 0.1, CollisionContacts(torsional_friction=mu), dt=2e-3, method="contact")
    assert_allclose(runs.v[:, -1, 2], 5.0 - mu * MASS * G * 0.1 / INERTIA, atol=1e-8)


def point(**numbers):
    return [sarrus.ContactPoint("ball", radius=RADIUS, **numbers)]


def test_accelerations_of_what_spins_and_rolls():
    robot, _ = ball()
    mu = 5e-3
    spins = robot.contact_dynamics(AT, [0, 0, -2.0, 0, 0, 0], np.zeros(6), point(torsional_friction=mu))
    assert_allclose(spins.motion, [0, 0, mu * MASS * G / INERTIA, 0, 0, 0], atol=1e-9)
    assert_allclose(spins.moments, [[0, 0, mu * MASS * G]], atol=1e-9)
    rolls = robot.contact_dynamics(AT, [0, 10.0, 0, 1.0, 0, 0], np.zeros(6), point(rolling_friction=mu))
    brakes = mu * MASS * G / (INERTIA + MASS * RADIUS**2)
    # v is told in the ball's axes, of which the rate is w x v away
    assert_allclose(rolls.motion[1], -brakes, atol=1e-9)
    assert_allclose(rolls.motion[3], -brakes * RADIUS, atol=1e-9)


@pytest.mark.parametrize("share", [0.5, 1.5])
def test_it_holds_a_ball_on_a_ramp(share):
    mu = 0.02
    slope = np.arctan(share * mu / RADIUS)
    robot, _ = ball(slope)
    answer = robot.contact_dynamics(AT, np.zeros(6), np.zeros(6), point(friction=0.9, rolling_friction=mu))
    pull = RADIUS * MASS * G * (RADIUS * np.sin(slope) - mu * np.cos(slope)) / (INERTIA + MASS * RADIUS**2)
    assert_allclose(answer.motion[3], max(pull, 0.0), atol=1e-9)


def test_an_impact_brakes_spin():
    """Spin is reduced by mu times the impulse, at most to zero."""
    robot, _ = ball()
    for w, left in ((5.0, 5.0 - 5e-3 * MASS * 2.0 / INERTIA), (0.1, 0.0)):
        hit = robot.contact_impact(AT, [0, 0, w, 0, 0, -2.0], point(torsional_friction=5e-3))
        assert_allclose(hit.motion, [0, 0, left, 0, 0, 0], atol=1e-9)
        assert_allclose(hit.moments[0, 2], INERTIA * (left - w), atol=1e-9)


def test_numbers_of_pairs(tmp_path):
    """The geometric mean of both shapes' values, the value of one, or that of the pair; files of the library contain it."""
    b = sarrus.Builder("two")
    for name, coefficients in (
        ("a", {"torsional_friction": 0.04}),
        ("b", {"torsional_friction": 0.01, "rolling_friction": 0.3}),
    ):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(f"{name}_float", sarrus.Free(), "ground", name)
        b.add_shape(name, Sphere(0.1), **coefficients)
    b.add_shape("ground", Plane(), name="floor")
    b.set_contact("a", "floor", rolling_friction=0.5)
    b.set_home({"a_float": (0, 0, 0, 1, 0, 0, 0.1), "b_float": (0, 0, 0, 1, 0.25, 0, 0.1)})
    robot = b.build()
    robot.save(tmp_path / "two.json")
    for one in (robot, sarrus.load(tmp_path / "two.json")):
        touching = one.contacts(one.assemble(), within=1.0)
        numbers = dict(
            zip(touching.shapes, zip(touching.torsional_friction, touching.rolling_friction, strict=True), strict=True)
        )
        assert_allclose(numbers["a", "b"], (0.02, 0.3))
        assert_allclose(numbers["a", "floor"], (0.04, 0.5))
        assert_allclose(numbers["b", "floor"], (0.01, 0.3))


@pytest.mark.parametrize("name", ["torsional_friction", "rolling_friction"])
def test_what_is_refused(name):
    robot, _ = ball()
    for bad in (-1.0, np.nan):
        with pytest.raises((sarrus.ModelError, ValueError), match=name):
            robot.contact_dynamics(AT, np.zeros(6), np.zeros(6), point(**{name: bad}))
        with pytest.raises((sarrus.ModelError, ValueError), match=name):
            simulate(robot, AT, np.zeros(6), 0.1, [RigidContact("ball", radius=RADIUS, **{name: bad})])
        with pytest.raises((sarrus.ModelError, ValueError), match=name):
            robot.to_builder().add_shape("ball", Sphere(RADIUS), **{name: bad})
