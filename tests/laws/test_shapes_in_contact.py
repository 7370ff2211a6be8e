"""Shapes in steps of rigid contact: closed forms, and invariance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.transform import Rotation

import sarrus
from sarrus.control import CollisionContacts
from sarrus.shapes import Box, Capsule, ConvexPoints, Cylinder, Plane, Point, Sphere

G = 9.81
# what contact's steps are held to [m, m/s]: cones to 1e-10 of the largest velocity, loops to rounding
AT_REST, LOOPS = 1e-9, 1e-12


def floating(b, name, inertia, *shapes, **numbers):
    """Return a free body with shapes at these positions; at home each is high up, farther than the one before."""
    b.add_body(name, inertia)
    b.add_joint(f"{name}_float", sarrus.Free(), "ground", name)
    high = (name for name in b._joints if name.endswith("_float"))
    b.set_home({name: (0, 0, 0, 1, 0, 0, 10.0 + 10.0 * k) for k, name in enumerate(high)})
    for shape in shapes:
        shape, place = shape if isinstance(shape, tuple) else (shape, None)
        b.add_shape(name, shape, place, **numbers)


def brick(slope=0.0, friction=0.6, restitution=None, size=(0.2, 0.2, 0.1)):
    b = sarrus.Builder("brick", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    floating(b, "brick", sarrus.Inertia.box(2.0, size), Box(size))
    b.add_shape("ground", Plane(), name="floor", friction=friction, restitution=restitution)
    return b


AT = np.array([0, 0, 0, 1, 0, 0, 0.05])


def contact(robot, q, v=None, duration=1.0, *acting, **options):
    start = np.zeros(robot.nv) if v is None else v
    return sarrus.simulate(robot, q, start, duration, list(acting), method="contact", **options)


# ---- closed forms -------------------------------------------------------------------------------------------------------------------


def test_a_block_sticks_on_an_incline_for_a_minute():
    run = contact(brick(np.radians(20)).build(), AT, duration=60.0, dt=4e-3, times=np.linspace(0, 60, 61))
    assert abs(run.q - AT).max() < AT_REST
    assert abs(run.v).max() < AT_REST


def test_a_block_slides_by_coulombs_law():
    v, speed = np.array([0, 0, 0, 1.0, 0.5, 0]), np.hypot(1.0, 0.5)
    run = contact(brick(friction=0.3).build(), AT, v, 0.6, dt=2e-3)
    assert_allclose(np.linalg.norm(run.v[:, 3:5], axis=1), np.maximum(speed - 0.3 * G * run.t, 0.0), atol=1e-8)
    assert abs(run.v[-1]).max() < AT_REST


def test_ten_boxes_rest_on_each_other():
    b, size = sarrus.Builder("stack"), (0.2, 0.2, 0.1)
    b.add_shape("ground", Plane())
    q = []
    for i in range(10):
        floating(b, f"b{i}", sarrus.Inertia.box(1.0, size), Box(size), friction=0.5)
        turn = [0, 0, np.sin(0.15 * i), np.cos(0.15 * i)]
        q += [*turn, 0.003 * np.sin(2 * i), 0.003 * np.cos(3 * i), 0.05 + 0.1 * i]
    b.set_home({f"b{i}_float": q[7 * i : 7 * i + 7] for i in range(10)})
    run = contact(b.build(), q, duration=0.4, dt=4e-3)
    assert abs(run.v).max() < 1e-8
    assert abs(run.q - q).max() < 1e-8


def ball(restitution=None, friction=0.4, radius=0.1):
    b = sarrus.Builder("ball")
    floating(b, "ball", sarrus.Inertia.sphere(0.5, radius), Sphere(radius))
    b.add_shape("ground", Plane(), friction=friction, restitution=restitution)
    return b.build(), np.array([0, 0, 0, 1, 0, 0, radius])


def test_a_ball_with_backspin_slips_then_rolls():
    """v = v0 - mu g t and spin w = w0 + 5/2 mu g t / r until v = w r, then constant.

    First order in the step, during which its axes rotate.
    """
    robot, q = ball()
    run = contact(robot, q, [0, -20.0, 0, 1.0, 0, 0], dt=1e-3)
    rolls = (1.0 + 20.0 * 0.1) / (3.5 * 0.4 * G)
    world = [robot.velocity(*x, "ball", expressed_in="world_aligned") for x in zip(run.q, run.v, strict=True)]
    spin, along = np.array(world)[:, [1, 3]].T
    slips, after = run.t < rolls - 2e-3, run.t > rolls + 0.1
    assert_allclose(along[slips], 1.0 - 0.4 * G * run.t[slips], atol=0.02)
    assert_allclose(spin[slips], -20.0 + 2.5 * 0.4 * G / 0.1 * run.t[slips], atol=0.2)
    assert_allclose(along[after], 0.1 * spin[after], atol=1e-6)
    assert_allclose(along[after], 1.0 - 0.4 * G * rolls, atol=0.02)
    assert_allclose(run.q[:, 6], 0.1, atol=1e-4)


@pytest.mark.parametrize("restitution", [0.5, 0.8])
def test_a_bouncing_ball_comes_to_rest(restitution):
    """Heights decrease by e^2 per bounce, to the order of dt; it rests after infinitely many bounces in finite time."""
    robot, q = ball(restitution)
    run = contact(robot, q + np.array([0, 0, 0, 0, 0, 0, 1.0]), duration=8.0, dt=5e-4)
    z = run.q[:, 6] - 0.1
    tops = z[1:-1][(z[1:-1] >= z[:-2]) & (z[1:-1] > z[2:]) & (z[1:-1] > 0.01)][:2]
    assert_allclose(tops, [restitution**2, restitution**4], rtol=0.05)
    assert abs(run.v[-1]).max() < AT_REST
    assert abs(z[-1]) < 1e-3


@pytest.mark.parametrize("what", ["cylinder", "capsule"])
def test_a_roller_rolls_down_a_ramp(what):
    """a = g sin / (1 + I / m r^2), without slip, and straight: to rounding, for steps of any length."""
    ramp, r, half, m = np.radians(10), 0.1, 0.2, 3.0
    b = sarrus.Builder("roller", gravity=(G * np.sin(ramp), 0, -G * np.cos(ramp)))
    inertia = np.diag([0.02, 0.02, 0.5 * m * r**2])
    shape = Cylinder(r, 2 * half) if what == "cylinder" else Capsule(r, 2 * half)
    floating(b, "roller", sarrus.Inertia(m, (0, 0, 0), inertia), shape, friction=0.5)
    b.add_shape("ground", Plane())
    robot = b.build()
    lying = [np.sin(-np.pi / 4), 0, 0, np.cos(np.pi / 4), 0, 0, r]  # its axis along y
    fast = G * np.sin(ramp) / 1.5
    for dt in (4e-3, 1e-3):
        run = contact(robot, lying, duration=1.0, dt=dt)
        world = robot.velocity(run.q[-1], run.v[-1], "roller", expressed_in="world_aligned")
        assert_allclose([world[1] * r, world[3]], fast, rtol=1e-10)
        assert_allclose([world[0], world[2], world[4]], 0.0, atol=1e-9)
        assert_allclose(run.q[:, 6], r, atol=1e-10)


def test_two_balls_of_one_mass_exchange_their_velocities():
    """Head-on, with restitution one, without gravity; momentum is conserved for any restitution."""
    b = sarrus.Builder("billiards", gravity=(0, 0, 0))
    for name in ("one", "other"):
        floating(b, name, sarrus.Inertia.sphere(1.0, 0.1), Sphere(0.1), restitution=1.0, friction=0.3)
    b.set_home({"other_float": (0, 0, 0, 1, 0.5, 0, 0)})
    robot, v = b.build(), np.zeros(12)
    v[3] = 2.0
    q = robot.assemble()
    run = contact(robot, q, v, 0.5, dt=1e-3)
    assert_allclose(run.v[-1], np.roll(v, 6), atol=1e-9)
    soft = contact(robot, q, v, 0.5, CollisionContacts(restitution=0.0), dt=1e-3)
    assert_allclose(soft.v[-1][[3, 9]], 1.0, atol=1e-9)


def test_a_fast_ball_does_not_pass_through_a_thin_plate():
    b = sarrus.Builder("plate", gravity=(0, 0, 0))
    floating(b, "ball", sarrus.Inertia.sphere(0.1, 0.01), Sphere(0.01))
    b.add_shape("ground", Box((1.0, 1.0, 1e-3)), (0, 0, -0.5))
    robot, v = b.build(), [0, 0, 0, 0, 0, -50.0]
    for restitution, after in ((0.0, 0.0), (0.5, 25.0)):
        run = contact(robot, robot.neutral(), v, 0.1, CollisionContacts(restitution=restitution), dt=4e-3)
        assert run.q[:, 6].min() > -0.5
        assert_allclose(run.v[-1, 5], after, atol=1e-7)


# ---- loops --------------------------------------------------------------------------------------------------------------------------


def four_bar(closing=3, order=1, turn=None, size=1.0, mass=1.0):
    """Return a loop of four boxes in free motion above the ground; times and masses scale with its size."""
    up = np.eye(3) if turn is None else Rotation.from_euler("zyx", turn).as_matrix()
    b = sarrus.Builder("four bar", gravity=tuple(up @ (0, 0, -G * size)))
    half = {"a": (0.1, 0.02, 0.02), "b": (0.02, 0.02, 0.1), "c": (0.1, 0.02, 0.02), "d": (0.02, 0.02, 0.1)}
    for name, h in list(half.items())[::order]:
        full = tuple(2 * size * x for x in h)
        b.add_body(name, sarrus.Inertia.box(0.5 * mass, full))
        b.add_shape(name, Box(full), friction=0.6)
    b.add_shape("ground", Plane(), sarrus.Transform(up))
    b.add_joint("float", sarrus.Free(), "ground", "a")
    pins = [
        ("a", "b", (0.12, 0, 0), (0, 0, -0.12)),
        ("b", "c", (0, 0, 0.12), (0.12, 0, 0)),
        ("c", "d", (-0.12, 0, 0), (0, 0, 0.12)),
        ("d", "a", (0, 0, -0.12), (-0.12, 0, 0)),
    ]
    for k, (parent, child, at, of) in enumerate(pins):
        at, of = ([size * x for x in p] for p in (at, of))
        b.add_joint(f"pin{k}", sarrus.Revolute("y"), parent, child, at_parent=at, at_child=of, loop=k == closing)
    at_home = Rotation.from_matrix(up).as_quat()
    b.set_home({"float": (*at_home, *(up @ (0, 0, size)))})
    robot = b.build()
    tilt = Rotation.from_matrix(up) * Rotation.from_euler("yx", [0.3, 0.2])
    q = robot.neutral()
    q[robot.joint("float").q_slice] = [*tilt.as_quat(), *(up @ (0, 0, 0.12 * size))]
    return robot, q, up


def dropped(duration=0.3, dt=1e-3, **how):
    robot, q, up = four_bar(**how)
    run = contact(robot, q, duration=duration, dt=dt)
    places = np.array([[up.T @ robot.pose(x, body)[:3, 3] for body in "abcd"] for x in run.q[::10]])
    return robot, run, places / how.get("size", 1.0)


@pytest.mark.filterwarnings("ignore:by 'contact' the energy:sarrus.errors.StiffnessWarning")  # impacts at 2 ms: 1.3 %
def test_a_four_bar_is_dropped_on_the_ground():
    """Loops are satisfied in position and velocity after every step, nothing penetrates, and finally it rests."""
    robot, run, _ = dropped(3.0, 2e-3)
    assert abs(robot.constraint_residual(run.q)).max() < LOOPS
    J = robot.constraint_jacobian(run.q)
    assert abs(np.einsum("nij,nj->ni", J, run.v)).max() < 1e-11
    assert min(robot.contacts(x).distance.min(initial=0.0) for x in run.q[::20]) > -1e-3
    assert abs(run.v[-1]).max() < AT_REST


@pytest.fixture(scope="module")
def as_it_is():
    return dropped()[2]


@pytest.mark.parametrize(
    "how",
    [{"order": -1}, {"closing": 0}, {"closing": 1}, {"turn": (0.4, -1.1, 2.0)}, {"size": 1e-4}, {"size": 1e3}, {"mass": 1e-6}],
    ids=["order", "closing", "other closing", "axes", "0.1 mm", "km", "mg"],
)  # fmt: skip
def test_what_the_library_chooses_does_not_matter(how, as_it_is):
    """Order of shapes, loop joint, axes, sizes (with gravity, so that seconds are unchanged) and masses."""
    assert_allclose(dropped(**how)[2], as_it_is, atol=1e-6)


def test_hinged_boxes_fold_and_rest():
    """Two boxes with a hinge, which do not collide with each other, land and rest on their edges and sides."""
    b, size = sarrus.Builder("hinged"), (0.3, 0.2, 0.1)
    b.add_body("one", sarrus.Inertia.box(1.0, size))
    b.add_body("other", sarrus.Inertia.box(1.0, size))
    b.add_joint("float", sarrus.Free(), "ground", "one")
    b.add_joint("hinge", sarrus.Revolute("y"), "one", "other", at_parent=(0.17, 0, 0), at_child=(-0.17, 0, 0))
    for name in ("one", "other"):
        b.add_shape(name, Box(size), friction=0.7)
    b.add_shape("ground", Plane())
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 1)})
    robot = b.build()
    run = contact(robot, [0, 0.2, 0, np.sqrt(1 - 0.04), 0, 0, 0.3, 0.4], duration=3.0, dt=2.5e-3)
    assert abs(run.v[-1]).max() < AT_REST
    assert robot.contacts(run.q[-1], within=1e-6).distance.min() > -1e-3


def gripper():
    """Return two fingers on parallelograms, each a loop, and a cube between their pads."""
    b = sarrus.Builder("gripper")
    for side, name in ((1, "right"), (-1, "left")):
        for part, x in (("crank", 0.025), ("rocker", 0.055)):
            b.add_body(f"{name}_{part}", sarrus.Inertia.rod(0.05, (0, 0, 0), (0, 0, -0.1), 0.005))
            pivot = sarrus.Revolute("y", damping=0.01)
            b.add_joint(f"{name}_{part}", pivot, "ground", f"{name}_{part}", at_parent=(side * x, 0, 0))
        b.add_body(f"{name}_pad", sarrus.Inertia.box(0.05, (0.01, 0.03, 0.06)))
        b.add_joint(f"{name}_tip", sarrus.Revolute("y"), f"{name}_crank", f"{name}_pad", at_parent=(0, 0, -0.1))
        ends = {"at_parent": (0, 0, -0.1), "at_child": (side * 0.03, 0, 0)}
        b.add_joint(f"{name}_loop", sarrus.Revolute("y"), f"{name}_rocker", f"{name}_pad", loop=True, **ends)
        b.add_shape(f"{name}_pad", Box((0.01, 0.03, 0.06)), (0, 0, -0.03), friction=0.8)
    floating(b, "cube", sarrus.Inertia.box(0.1, (0.04, 0.04, 0.04)), Box((0.04, 0.04, 0.04)), friction=0.8)
    b.set_home({"cube_float": (0, 0, 0, 1, 0, 0, -0.13)})
    return b.build()


def test_a_gripper_of_linkages_holds_a_cube_for_a_minute():
    robot = gripper()
    squeeze = [sarrus.control.PID(f"{name}_crank", proportional=10.0, derivative=0.1, target=0.3 * side) for side, name in ((1, "right"), (-1, "left"))]  # fmt: skip
    times = np.linspace(0.1, 60.0, 61)
    run = contact(robot, robot.assemble(), None, 60.0, *squeeze, dt=2e-3, times=times)
    poses = np.array([np.linalg.inv(robot.pose(q, "right_pad")) @ robot.pose(q, "cube") for q in run.q])
    assert abs(poses[:, :3, 3] - poses[0, :3, 3]).max() < 1e-7  # the goal is 1e-4
    assert abs(robot.constraint_residual(run.q)).max() < LOOPS
    last = run.contacts.sample == len(run) - 1
    up = sum((f if bodies[0] == "cube" else -f) for f, bodies in zip(run.contacts.force[last], np.array(run.contacts.bodies)[last], strict=True))  # fmt: skip
    assert_allclose(up, [0, 0, 0.1 * G], atol=1e-6)


# ---- laws ---------------------------------------------------------------------------------------------------------------------------


def two_apart(alone=False, order=1):
    """Return a sliding brick, and far away a tumbling one; or the first alone."""
    b = sarrus.Builder("two")
    b.add_shape("ground", Plane(), friction=0.4)
    for name in ("brick", "far")[: 1 if alone else 2][::order]:
        floating(b, name, sarrus.Inertia.box(1.0, (0.2, 0.2, 0.1)), Box((0.2, 0.2, 0.1)))
    at = {"brick_float": AT, "far_float": (0.1, 0.2, 0, np.sqrt(0.95), 100.0, 0, 0.3)}
    b.set_home({name: x for name, x in at.items() if not alone or name[0] == "b"})
    robot = b.build()
    v = np.zeros(robot.nv)
    v[robot.joint("brick_float").v_slice] = [0, 0, 0, 1.0, 0.5, 0]
    return robot, contact(robot, robot.assemble(), v, 0.6, dt=2e-3)


def test_what_is_far_away_has_no_part_in_it():
    _, one = two_apart(alone=True)
    for order in (1, -1):
        robot, both = two_apart(order=order)
        assert_allclose(both.q[:, robot.joint("brick_float").q_slice], one.q, atol=1e-10)


@pytest.mark.filterwarnings("ignore:by 'contact' the energy:sarrus.errors.StiffnessWarning")  # impacts at 2 ms: 1.3 %
def test_it_goes_on_bit_for_bit():
    robot, q, _ = four_bar()
    whole = contact(robot, q, duration=0.4, dt=2e-3)
    half = contact(robot, q, duration=0.2, dt=2e-3)
    rest = sarrus.simulate(robot, duration=0.2, resume=half)
    assert_array_equal(rest.q[-1], whole.q[-1])
    assert_array_equal(rest.internal_state[-1], whole.internal_state[-1])


def test_many_runs_are_each_what_one_is():
    """To rounding (of lanes, along hits), with friction and restitution of each run, on one thread or two."""
    robot, q, _ = four_bar()
    v = robot.project_velocity(q, 0.3 * np.random.default_rng(5).normal(size=(5, robot.nv)))
    mu, e = np.linspace(0.1, 0.9, 5), np.linspace(0.0, 0.6, 5)
    for threads in (1, 2):
        runs = sarrus.simulate_many(
            robot, q, v, 0.3, CollisionContacts(mu, e), method="contact", dt=2e-3, threads=threads, every=50
        )
        for k in range(5):
            one = contact(robot, q, v[k], 0.3, CollisionContacts(mu[k], e[k]), dt=2e-3)
            assert_allclose(runs.q[k, -1], one.q[-1], atol=1e-9)
            assert_allclose(runs.internal_state[k, -1], one.internal_state[-1], rtol=1e-6, atol=1e-6)


def test_points_and_shapes_are_one():
    """A sphere on a plane, as shapes and as a RigidContact."""
    robot, q = ball(0.5)
    v = np.array([0, -20.0, 0, 1.0, 0, -2.0])
    shapes = contact(robot, q + np.array([0, 0, 0, 0, 0, 0, 0.2]), v, dt=1e-3)
    plain = robot.to_builder()
    plain.remove_shape("ground")
    point = sarrus.control.RigidContact("ball", radius=0.1, friction=0.4, restitution=0.5)
    same = contact(plain.build(), q + np.array([0, 0, 0, 0, 0, 0, 0.2]), v, 1.0, point, dt=1e-3)
    assert_allclose(shapes.q, same.q, atol=1e-9)


@pytest.mark.parametrize("away", [0.0, 1.0, 100.0])
def test_where_the_frame_of_convex_points_stands_does_not_matter(away):
    """A brick as a box, and as its corners in another frame; a fall so fast that it would penetrate deeply in a step bounces before."""
    size = (0.2, 0.3, 0.1)
    corners = np.array(list(np.ndindex(2, 2, 2))) * size - np.array(size) / 2
    runs = []
    for shape, at in ((Box(size), 0.0), (ConvexPoints(np.add(corners, (away, 0, 0))), away)):
        b = sarrus.Builder("brick")
        floating(b, "brick", sarrus.Inertia.box(1.0, size), (shape, (-at, 0, 0)), friction=0.5, restitution=0.5)
        b.add_shape("ground", Plane())
        robot = b.build()
        runs.append(contact(robot, [0, 0, 0, 1, 0, 0, 0.25], [0, 0, 0, 0, 0, -30.0], 0.04, dt=4e-3))
    assert_allclose(runs[1].q, runs[0].q, atol=1e-12)
    half = contact(robot, runs[1].q[0], runs[1].v[0], 0.02, dt=4e-3)
    assert_array_equal(sarrus.simulate(robot, duration=0.02, resume=half).q[-1], runs[1].q[-1])


# ---- numbers, and what is refused ---------------------------------------------------------------------------------------------------


def test_numbers_of_pairs():
    """Coefficients of shapes, of all pairs, and of one pair."""
    b = brick(friction=0.3)
    b.add_shape("brick", Point(), (0, 0, 1.0), name="mast")
    b.remove_shape("brick")  # so that it is not of the first pair
    b.add_shape("brick", Box((0.2, 0.2, 0.1)))
    robot, v = b.build(), [0, 0, 0, 1.0, 0, 0]
    for numbers, mu in (({}, 0.3), ({"friction": 0.1}, 0.1), ({"friction": {("floor", "brick"): 0.2}}, 0.2), ({"friction": {("mast", "floor"): 9.0}}, 0.3)):  # fmt: skip
        run = contact(robot, AT, v, 0.1, CollisionContacts(**numbers), dt=1e-3)
        assert_allclose(run.v[-1, 3], 1.0 - mu * G * 0.1, atol=1e-9)


def test_what_is_refused():
    robot = brick().build()
    for wrong, error, told in (
        (CollisionContacts(friction=-1.0), sarrus.ModelError, "friction of CollisionContacts must not be negative"),
        (CollisionContacts(restitution=2.0), sarrus.ModelError, "restitution of CollisionContacts must be from 0 to 1"),
        (
            CollisionContacts(friction={("brick", "flor"): 1.0}),
            sarrus.ModelError,
            "is not a pair of shapes that may touch",
        ),
        (CollisionContacts(friction=[0.1, 0.2]), sarrus.ShapeError, "simulate_many"),
    ):
        with pytest.raises(error, match=told):
            contact(robot, AT, None, 0.1, wrong)
    with pytest.raises(sarrus.ModelError, match="several"):
        contact(robot, AT, None, 0.1, CollisionContacts(), CollisionContacts())
    with pytest.raises(sarrus.ModelError, match="CollisionContacts requires method='contact'"):
        sarrus.simulate(robot, AT, np.zeros(6), 0.1, CollisionContacts(), method="rk4")
    with pytest.raises(sarrus.ModelError, match="'pendulum' has no pair of shapes that may touch"):
        sarrus.simulate(sarrus.mechanisms.pendulum(), [0.0], [0.0], 0.1, CollisionContacts())
    assert sarrus.simulate(robot, AT, np.zeros(6), 0.1, CollisionContacts()).statistics["method"] == "contact"


def test_shapes_may_differ_from_run_to_run():
    """Bricks of several heights, each in its own run."""
    heights = (0.1, 0.2, 0.3)
    robots = [brick(size=(0.2, 0.2, h)).build() for h in heights]
    q = np.array([[0, 0, 0, 1, 0, 0, h / 2 + 0.05] for h in heights])
    runs = sarrus.simulate_many(robots, q, np.zeros(6), 0.4, method="contact", dt=2e-3, every=200)
    assert_allclose(runs.q[:, -1, 6], np.array(heights) / 2, atol=1e-6)
    for k, robot in enumerate(robots):
        assert_array_equal(runs.q[k, -1], contact(robot, q[k], duration=0.4, dt=2e-3).q[-1])
    other = sarrus.Builder("ball")
    floating(other, "brick", sarrus.Inertia.sphere(1.0, 0.1), Sphere(0.1))
    other.add_shape("ground", Plane())
    with pytest.raises(sarrus.ModelError, match="different shapes that touch"):
        sarrus.simulate_many([robots[0], other.build()], q[:2], np.zeros(6), 0.1, method="contact")


def test_variants_are_each_what_one_is():
    """Variants of masses, gravity and joint placements, with friction of each; also one alone, and with loops."""
    robot, q, _ = four_bar()
    inertia = robot.description.bodies[0].inertia.parameters
    pin = robot.description.joints[1].at_parent.matrix
    moved = [sarrus.Transform(translation=(d, 0, 0)).matrix @ pin for d in (0.0, 0.005, -0.01)]
    changes = {
        "inertias": {"a": inertia * np.array([[1.0], [2.0], [0.5]])},
        "placements": {f"{robot.description.joints[1].name}.parent": np.array(moved)},
        "gravity": np.array([[0, 0, -G], [0, 0, -1.6], [2.0, 0, -G]]),
    }
    mu = np.array([0.1, 0.5, 0.9])
    for name, change in changes.items():
        for some in (slice(None), slice(1, 2)):
            variants = robot.variants(**{name: change})[some]
            starts = variants.project_configuration(np.tile(q, (len(variants), 1)))
            many = sarrus.simulate_many(
                variants, starts, np.zeros(robot.nv), 0.2, CollisionContacts(mu[some]), method="contact", dt=2e-3
            )
            assert not many.status.any()
            for k, (one, friction) in enumerate(zip(variants, mu[some], strict=True)):
                alone = contact(one, starts[k], None, 0.2, CollisionContacts(friction), dt=2e-3)
                assert_array_equal(many.q[k], alone.q, err_msg=name)
                assert_array_equal(many[k].contacts.force, alone.contacts.force, err_msg=name)


# ---- what runs tell -----------------------------------------------------------------------------------------------------------------


def test_contacts_carry_the_weight(tmp_path):
    """Forces at each sample, of least norm under four feet, by pairs; also from a file, and of one run of many."""
    robot = brick().build()
    run = contact(robot, AT, duration=0.1, dt=2e-3)
    run.save(tmp_path / "run.npz")
    many = sarrus.simulate_many(robot, AT, np.zeros((2, 6)), 0.1, method="contact", dt=2e-3, every=25)
    for one in (run, type(run).load(tmp_path / "run.npz"), many[1]):
        last = one.contacts.sample == len(one) - 1
        assert_allclose(one.contacts.force[last], np.tile([0, 0, 2.0 * G / 4], (4, 1)), atol=1e-6)
        assert {one.contacts.shapes[k] for k in np.flatnonzero(last)} == {("brick", "floor")}
        assert_array_equal(np.sort(one.contacts.id[last]), np.sort(robot.contacts(AT, within=1e-3).id))
        assert_allclose(np.abs(one.contacts.position[last]), np.tile([0.1, 0.1, 0], (4, 1)), atol=1e-9)
        assert one.contacts.natural_map.max() < 1e-9
        assert one.contacts.left_out == 0
    # they are part of what acts, so that accelerations are those of the motion
    assert_allclose(run.tau[-1], [0, 0, 0, 0, 0, 2.0 * G], atol=1e-6)
    assert_allclose(run.a[-1], 0.0, atol=1e-6)
    at = contact(robot, AT, duration=0.1, dt=2e-3, times=[0.0513]).contacts  # names of points are not interpolated
    assert_allclose(at.force.sum(axis=0), [0, 0, 2.0 * G], atol=1e-6)
    with pytest.raises(sarrus.ModelError, match="has no rigid contact"):
        sarrus.simulate(sarrus.mechanisms.pendulum(), [0.0], [0.0], 0.1).contacts  # noqa: B018


def test_forces_that_are_not_unique_are_the_least():
    """Four uneven feet: each is weighted by its inverse mass tr(J M^-1 J^T) / 3, in closed form."""
    center, inertia = np.array([0.03, 0.01, 0.02]), sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1))
    b = sarrus.Builder("table")
    floating(b, "table", inertia.transformed(center), Box((0.2, 0.3, 0.1)))
    b.add_shape("ground", Plane(), name="floor", friction=0.6)
    pressed = contact(b.build(), AT, duration=0.1, dt=2e-3).contacts
    last = pressed.sample == pressed.sample.max()
    at = pressed.position[last]
    arms = at - (AT[4:] + center)
    # of a cube's equal moments I = m a^2 / 6: tr(1 / m + [r]^T I^-1 [r]) / 3
    inverse_mass = 1.0 / 2.0 + 2.0 * (arms**2).sum(axis=1) / (2.0 * 0.01 / 6.0) / 3.0
    lever = np.vstack([np.ones(4), arms[:, 0], arms[:, 1]]) / np.sqrt(inverse_mass)
    expected = np.linalg.pinv(lever) @ [2.0 * G, 0.0, 0.0] / np.sqrt(inverse_mass)
    assert_allclose(pressed.force[last], np.outer(expected, [0, 0, 1]), atol=1e-5)


@pytest.mark.filterwarnings("ignore:by 'contact' the energy:sarrus.errors.StiffnessWarning")  # impacts at 2 ms: 1.3 %
def test_statistics_say_how_well_steps_hold():
    """The statistics of a run are those of its samples, from rows of the loops and distances in the middle of a step."""
    robot, run, _ = dropped(1.0, 2e-3)
    held = run.statistics["contact"]
    middle = robot.integrate(run.q[:-1], 1e-3 * run.v[:-1])
    sunk = max(-robot.contacts(q).distance.min(initial=0.0) for q in middle)
    assert held["penetration"] > 0.0
    assert (
        abs(held["penetration"] - sunk) < 1e-6 * np.abs(run.v).max() ** 2
    )  # ways bend by h^2 w^2 r / 8 in half a step
    slip = np.einsum("nij,nj->ni", robot.constraint_jacobian(run.q), run.v)
    assert abs(slip).max() < 10 * held["kinematics"] + LOOPS
    assert held["kinematics"] < 1e-11
    assert held["positions"] < 1e-11
    assert held["momentum"] < 1e-10
    speed = np.abs(run.v).max()
    assert held["natural_map"] < 1e-9 * speed
    assert held["dual"] < 1e-8 * speed
    assert held["primal"] < 1e-8
    assert held["complementarity"] < 1e-8
    # without restitution contacts only take, but for what comes out, and what ways bend in half a step
    assert held["work"] < 1e-5
    assert "contact" not in sarrus.simulate(sarrus.mechanisms.pendulum(), [0.0], [0.0], 0.1).statistics


def test_what_a_user_adds_to_a_file_is_told_of():
    """Warnings of a file name its shapes; for an added shape, the methods that ignore it warn."""
    text = """<robot name="box"><link name="box"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>"""
    b = sarrus.loads(text, floating_base=True).to_builder()
    assert any("may touch" in x or "shapes" in x for x in b.warnings)
    b.add_shape("ground", Plane(), (0, 0, -2.0))
    robot = b.build()
    with pytest.warns(sarrus.ModelWarning, match="pass through each other"):
        sarrus.simulate(robot, robot.neutral(), np.zeros(6), 0.01, method="rk4")


@pytest.mark.parametrize("size", [1e-5, 1.0])
def test_overlap_is_of_the_shapes_own_size(size):
    """A hundredth of a sphere's radius is an overlap, a ten-millionth is rounding, for any size."""
    for share, told in ((1e-2, True), (1e-7, False)):
        b = sarrus.Builder("ball")
        floating(b, "ball", sarrus.Inertia.sphere(1.0, size), Sphere(size))
        b.add_shape("ground", Plane(), (0, 0, -size * (1 - share)))
        b.set_home({})
        if told:
            with pytest.warns(sarrus.ModelWarning, match="overlap in the home configuration"):
                b.build()
        else:
            b.build()


def _prism(sides):
    angle = 2.0 * np.pi * np.arange(sides) / sides
    return ConvexPoints([(0.1 * np.cos(x), 0.1 * np.sin(x), z) for x in angle for z in (-0.15, 0.15)])


@pytest.mark.parametrize("shape", [Cylinder(0.1, 0.3), _prism(12)], ids=["cylinder", "prism"])
@pytest.mark.parametrize("share", [0.75, 0.9])
def test_what_stands_on_many_points_rests(shape, share):
    """A pull with a fraction of the tipping force: the loaded points stay among the selected ones."""
    inner = 0.1 if isinstance(shape, Cylinder) else 0.1 * np.cos(np.pi / 12)
    pull = share * G * inner / 0.15
    b = sarrus.Builder("pulled", gravity=(pull * np.cos(0.7), pull * np.sin(0.7), -G))
    floating(b, "body", sarrus.Inertia.box(1.0, (0.2, 0.2, 0.3)), shape, friction=2.0)
    b.add_shape("ground", Plane())
    run = contact(b.build(), [0, 0, 0, 1, 0, 0, 0.15], duration=2.0, dt=2e-3)
    still = run.t > 1.0
    assert np.abs(run.v[still, :3]).max() < 1e-6
    assert np.linalg.norm(run.q[-1, 4:6]) < 1e-4
