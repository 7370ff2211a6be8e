"""Steps with rigid contact: closed forms, and laws of each step, with loops and friction cones in one configuration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.transform import Rotation

import sarrus
from sarrus.control import PID, CompliantContact, EndStop, RigidContact
from tests.small_mechanisms import slider

G = 9.81
# what contact's steps are held to [m, m/s]: cones to 1e-10 of the largest velocity, loops to rounding
AT_REST, LOOPS = 1e-9, 1e-12


def boxed(b, name, half, mass=1.0):
    """Return a body with its eight corners as frames, the lower ones first."""
    b.add_body(name, sarrus.Inertia.box(mass=mass, size=tuple(2 * h for h in half)))
    names = [f"{name}_{i}" for i in range(8)]
    for i, corner in enumerate(names):
        place = (half[0] * (1 - 2 * (i & 1)), half[1] * (1 - (i & 2)), half[2] * ((i & 4) // 2 - 1))
        b.add_frame(corner, name, place)
    return names


def block(slope=0.0):
    b = sarrus.Builder("block", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    corners = boxed(b, "block", (0.1, 0.1, 0.05))
    b.add_joint("float", sarrus.Free(), "ground", "block")
    return b.build(), corners


AT = np.array([0, 0, 0, 1, 0, 0, 0.05])


def test_a_block_sticks_on_an_incline_for_a_minute():
    robot, corners = block(np.radians(20))
    run = sarrus.simulate(robot, AT, np.zeros(6), 60.0, [RigidContact(c, friction=0.6) for c in corners], dt=4e-3)
    assert run.statistics["method"] == "contact"
    assert abs(run.q - AT).max() < AT_REST
    assert abs(run.v).max() < AT_REST


def test_a_block_slides_by_coulombs_law():
    robot, corners = block()
    v = np.array([0, 0, 0, 1.0, 0.5, 0])
    run = sarrus.simulate(robot, AT, v, 0.6, [RigidContact(c, friction=0.3) for c in corners], dt=2e-3)
    speed = np.hypot(1.0, 0.5)
    assert_allclose(np.linalg.norm(run.v[:, 3:5], axis=1), np.maximum(speed - 0.3 * G * run.t, 0.0), atol=1e-8)
    assert abs(run.v[-1]).max() < AT_REST


def test_forces_carry_the_weight():
    """Contact forces balance the weight along z; those of least norm are equal."""
    robot, corners = block()
    feet = [RigidContact(c) for c in corners[:4]]
    run = sarrus.simulate(robot, AT, np.zeros(6), 0.1, feet, dt=2e-3)
    z = run.internal_state[-1].reshape(4, 4)
    assert_allclose(z[:, 0], G / 4, rtol=1e-5)
    assert_allclose(z[:, 1:3], 0.0, atol=5e-6)
    assert z[:, 3].max() < 1e-10


def ball(height=0.0, restitution=0.0, friction=0.4):
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(mass=0.5, radius=0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    q = np.array([0, 0, 0, 1, 0, 0, 0.1 + height])
    return b.build(), q, RigidContact("ball", radius=0.1, friction=friction, restitution=restitution)


def test_a_ball_with_backspin_slips_then_rolls():
    """While it slips, v = v0 - mu g t and spin w = w0 + 5/2 mu g t / r; afterwards v = w r.

    First order in the step, during which its axes rotate.
    """
    robot, q, ground = ball()
    run = sarrus.simulate(robot, q, [0, -20.0, 0, 1.0, 0, 0], 1.0, ground, dt=1e-3)
    first_order = 20.0 * 1e-3  # radians a step
    rolls = (1.0 + 20.0 * 0.1) / (3.5 * 0.4 * G)
    slips = run.t < rolls - 2e-3
    # the velocity is told in the ball's axes
    along = np.array(
        [
            robot.velocity(q, v, "ball", expressed_in="world_aligned")[[1, 3, 5]]
            for q, v in zip(run.q, run.v, strict=True)
        ]
    )
    assert_allclose(along[slips, 1], 1.0 - 0.4 * G * run.t[slips], atol=first_order)
    assert_allclose(along[slips, 0], -20.0 + 2.5 * 0.4 * G / 0.1 * run.t[slips], atol=10 * first_order)
    after = run.t > rolls + 0.1
    assert_allclose(along[after, 1], 0.1 * along[after, 0], atol=1e-6)
    assert_allclose(along[after, 1], 1.0 - 0.4 * G * rolls, atol=first_order)
    assert_allclose(run.q[:, 6], 0.1, atol=1e-4)


@pytest.mark.parametrize("restitution", [0.5, 0.8])
def test_a_bouncing_ball_comes_to_rest(restitution):
    """Heights decrease by e^2 per bounce, to the order of dt; it rests after infinitely many bounces in finite time."""
    robot, q, ground = ball(1.0, restitution)
    run = sarrus.simulate(robot, q, np.zeros(6), 8.0, ground, dt=5e-4)
    z = run.q[:, 6] - 0.1
    tops = z[1:-1][(z[1:-1] >= z[:-2]) & (z[1:-1] > z[2:]) & (z[1:-1] > 0.01)][:2]
    assert_allclose(tops, [restitution**2, restitution**4], rtol=0.05)
    assert abs(run.v[-1]).max() < AT_REST
    assert abs(z[-1]) < 1e-3


def rod(degrees):
    a = np.radians(degrees)
    b = sarrus.Builder("rod")
    b.add_body("rod", sarrus.Inertia(1.0, (0, 0, 0), np.diag([1e-4, 1 / 12, 1 / 12])))
    b.add_joint("float", sarrus.Free(), "ground", "rod")
    for i in (0, 1):
        b.add_frame(f"tip{i}", "rod", (i - 0.5, 0, 0))
    q = [0, -np.sin(a / 2), 0, np.cos(a / 2), 0, 0, 0.5 * np.sin(a)]
    return b.build(), np.array(q), np.array([0, 0, 0, -3.0 * np.cos(a), 0, 3.0 * np.sin(a)])


@pytest.mark.parametrize("degrees", [35, 60, 75])
def test_painleves_rod(degrees):
    """The rod slides in a configuration in which friction drives it into the ground: an impact stops its tip. Energy falls, and the tips stay above the ground."""
    robot, q, v = rod(degrees)
    run = sarrus.simulate(robot, q, v, 0.4, [RigidContact(f"tip{i}", friction=2.0) for i in (0, 1)], dt=1e-3)
    energy = robot.kinetic_energy(run.q, run.v) + robot.potential_energy(run.q)
    assert np.diff(energy).max() < 1e-2
    tips = np.array([[robot.pose(x, f"tip{i}")[2, 3] for i in (0, 1)] for x in run.q])
    assert tips.min() > -5e-3


def dropped_four_bar(kp=None, closing=3):
    """Return a loop of four boxes in free motion above the ground."""
    b, corners = sarrus.Builder("four bar"), []
    half = {"a": (0.1, 0.02, 0.02), "b": (0.02, 0.02, 0.1), "c": (0.1, 0.02, 0.02), "d": (0.02, 0.02, 0.1)}
    for name, size in half.items():
        corners += boxed(b, name, size, 0.5)
    b.add_joint("float", sarrus.Free(), "ground", "a")
    pins = [
        ("a", "b", (0.12, 0, 0), (0, 0, -0.12)),
        ("b", "c", (0, 0, 0.12), (0.12, 0, 0)),
        ("c", "d", (-0.12, 0, 0), (0, 0, 0.12)),
        ("d", "a", (0, 0, -0.12), (-0.12, 0, 0)),
    ]
    for k, (parent, child, at, of) in enumerate(pins):
        b.add_joint(f"pin{k}", sarrus.Revolute("y"), parent, child, at_parent=at, at_child=of, loop=k == closing)
    robot = b.build()
    q = np.array(robot.neutral())
    q[robot.joint("float").q_slice] = [0, 0, 0, 1, 0, 0, 0.12]
    control = [] if kp is None else [PID(f"pin{k}", proportional=kp, derivative=0.02 * kp) for k in range(3)]
    return robot, q, [RigidContact(c, friction=0.7) for c in corners] + control


def test_a_four_bar_falls_and_lies_still():
    """Position and velocity satisfy the loops after every step, for any contact; finally nothing moves."""
    robot, q, acting = dropped_four_bar()
    v = np.zeros(robot.nv)
    v[:6] = [1.0, -2.0, 0.5, 0.3, 0.2, 0]
    run = sarrus.simulate(robot, q, robot.project_velocity(q, v), 3.0, acting, dt=2e-3)
    assert abs(robot.constraint_residual(run.q)).max() < LOOPS
    slip = np.einsum("kij,kj->ki", robot.constraint_jacobian(run.q), run.v)
    assert abs(slip).max() < LOOPS * max(abs(run.v).max(), 1.0)
    natural_map = run.internal_state.reshape(len(run.t), -1, 4)[:, :, 3].max()
    assert natural_map < 1e-8
    assert abs(run.v[-200:]).max() < 1e-8
    energy = robot.kinetic_energy(run.q, run.v) + robot.potential_energy(run.q)
    assert np.diff(energy).max() < 1e-2


def test_stiff_control_is_implicit():
    """Gains of 1000 and 20 on bars of half a kilogram at 2.5 ms: an explicit damper would be unstable. It stands without creep."""
    robot, q, acting = dropped_four_bar(1000.0)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 3.0, acting, dt=2.5e-3)
    assert abs(run.v[-400:]).max() < 1e-8
    assert abs(robot.constraint_residual(run.q)).max() < LOOPS
    feet = np.array([[robot.pose(x, f"a_{i}")[:3, 3] for i in range(4)] for x in run.q[-400::20]])
    assert abs(feet - feet[0]).max() < 1e-7


def test_neither_order_nor_number_of_runs_matter():
    robot, q, acting = dropped_four_bar()
    v = robot.project_velocity(q, np.r_[0.5, 1.0, 0, 0.2, 0, 0, np.zeros(robot.nv - 6)])
    how = {"dt": 2e-3, "method": "contact"}
    run = sarrus.simulate(robot, q, v, 0.2, acting, **how)
    other = sarrus.simulate(robot, q, v, 0.2, acting[::-1], **how)
    assert_allclose(other.q, run.q, atol=1e-6)
    many = sarrus.simulate_many(robot, np.array([q, q]), np.array([v, v]), 0.2, acting, **how)
    assert_allclose(many.q[0, -1], run.q[-1], atol=1e-9)  # rounding of lanes, along hits


def thrown(length=1.0, mass=1.0, turn=(0.0, 0.0, 0.0)):
    """Return positions and velocities of the corners of a box that lands on a corner, bounces and slides, in its lengths, in rotated world axes."""
    R = Rotation.from_rotvec(turn)
    b = sarrus.Builder("thrown", gravity=tuple(R.apply([0, 0, -G * length])))
    corners = boxed(b, "box", (0.1 * length, 0.15 * length, 0.05 * length), mass)
    b.add_joint("float", sarrus.Free(), "ground", "box")
    b.add_frame("floor", "ground", sarrus.Transform(R.as_matrix(), (0, 0, 0)))
    robot = b.build()
    q = np.concatenate([(R * Rotation.from_rotvec([0.5, 0.3, 0.1])).as_quat(), R.apply([0, 0, 0.25 * length])])
    v = np.array([1.0, -2.0, 0.5, 0.6 * length, 0.2 * length, -0.5 * length])  # in the box's own axes
    touching = [RigidContact(c, on="floor", friction=0.4, restitution=0.3) for c in corners]
    # until it turns on four corners: what each of these carries, and with that how friction brakes the turn, is not unique (docs/contact.md)
    run = sarrus.simulate(robot, q, v, 0.3, touching, dt=2e-3)
    assert np.abs(run.internal_state[:, ::4]).max() > 5.0 * mass * length  # it was hit
    places = np.array([R.inv().apply(robot.pose(x, c)[:3, 3]) for x in run.q[::20] for c in corners])
    return places / length, run.v[::20] / ([1, 1, 1] + [length] * 3)


@pytest.mark.parametrize(
    "how",
    [
        {"length": 1e-3},
        {"length": 1e-5, "mass": 1e-9},
        {"length": 1e3, "mass": 1e6},
        {"mass": 1e-6},
        {"turn": (0.4, -1.1, 2.0)},
    ],
    ids=["mm", "1e-5 m", "km", "mg", "axes"],
)
def test_sizes_masses_and_axes_do_not_matter(how):
    places, speeds = thrown()
    other, other_speeds = thrown(**how)
    assert_allclose(other, places, atol=1e-7)
    assert_allclose(other_speeds, speeds, atol=1e-6)


@pytest.mark.parametrize("armature", [0.0, 0.3])
def test_a_short_step_is_what_contact_dynamics_says(armature):
    """From rest, for a four-bar that is pushed onto the ground, with a rotor in its loop joint."""
    b = sarrus.Builder("four-bar")
    for name, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.02))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", at_parent=(-0.5, 0, 0))
    b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0.4, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=(0.5, 0, 0))
    pin2 = sarrus.Revolute("y", armature=armature)
    b.add_joint("pin2", pin2, "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=True)
    b.add_frame("tip", "coupler", (0.5, 0.0, 0.0))
    robot = b.build()
    q, v, h = robot.assemble(), np.zeros(robot.nv), 1e-6
    level = robot.pose(q, "tip")[:3, 3] @ (0, 0, 1)
    answer = robot.contact_dynamics(q, v, v, [sarrus.ContactPoint("tip", normal="z", friction=0.4)])
    run = sarrus.simulate(robot, q, v, h, RigidContact("tip", normal="z", offset=level, friction=0.4), dt=h)
    assert np.abs(answer.forces).max() > 0.1
    assert_allclose(run.v[-1] / h, answer.motion, atol=1e-4)
    assert_allclose(run.internal_state[-1, 0], answer.forces[0, 2], rtol=1e-4)


def crane(feet):
    """Return a box that carries a four-bar, with contacts at these corners, on sloped ground."""
    b = sarrus.Builder("crane", gravity=(1.5, -0.8, -G))
    corners = boxed(b, "box", (0.3, 0.2, 0.1), mass=3.0)[:feet]
    b.add_joint("float", sarrus.Free(), "ground", "box")
    for name, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.02))
    b.add_joint("motor", sarrus.Revolute("y"), "box", "crank", at_parent=(-0.5, 0.1, 0.2))
    b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0.4, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("y"), "box", "rocker", at_parent=(0.5, 0.1, 0.2))
    b.add_joint(
        "pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=True
    )
    return b.build(), corners


@pytest.mark.parametrize("turning", [0.0, 0.01])
@pytest.mark.parametrize("feet", [2, 3, 4])
def test_points_of_one_body_move_as_the_body_does(feet, turning):
    """Rows of three points and more depend on the six velocities of the body; `contact_dynamics` has all of them, and the same result."""
    robot, corners = crane(feet)
    q = robot.assemble()
    q = robot.project_configuration(np.r_[0, 0, 0, 1, 0, 0, 0.1, q[7:]])
    v, h = np.zeros(robot.nv), 1e-6
    points = [
        sarrus.ContactPoint(c, normal="z", friction=0.4, torsional_friction=turning, rolling_friction=turning)
        for c in corners
    ]
    answer = robot.contact_dynamics(q, v, v, points)
    touching = [RigidContact(c, friction=0.4, torsional_friction=turning, rolling_friction=turning) for c in corners]
    run = sarrus.simulate(robot, q, v, h, touching, dt=h, method="contact")
    assert np.abs(answer.forces).max() > 1.0
    assert_allclose(run.v[-1] / h, answer.motion, atol=1e-4 * np.abs(answer.motion).max())


def test_it_goes_on_bit_for_bit():
    robot, q, acting = dropped_four_bar()
    whole = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.4, acting, dt=2e-3)
    half = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.2, acting, dt=2e-3)
    rest = sarrus.simulate(robot, duration=0.2, controller=acting, resume=half)
    assert_array_equal(rest.q[-1], whole.q[-1])


def test_a_box_rests_on_a_box():
    """A stack of ten boxes, each on a plane of the one below, does not move."""
    b, acting = sarrus.Builder("stack"), []
    for i in range(10):
        corners = boxed(b, f"b{i}", (0.1, 0.1, 0.05))
        b.add_joint(f"f{i}", sarrus.Free(), "ground", f"b{i}")
        on, offset = ("ground", 0.0) if i == 0 else (f"b{i - 1}", 0.05)
        acting += [RigidContact(c, on=on, offset=offset, friction=0.5) for c in corners[:4]]
    robot = b.build()
    turned = [
        np.r_[0, 0, np.sin(0.15 * i), np.cos(0.15 * i), 0.003 * np.sin(2 * i), 0.003 * np.cos(3 * i), 0.05 + 0.1 * i]
        for i in range(10)
    ]
    q = np.concatenate(turned)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.4, acting, dt=4e-3)
    assert abs(run.v).max() < 1e-8
    assert abs(run.q - q).max() < 1e-8


def test_dry_friction_of_a_joint_is_exact():
    """A slider decelerates by c / m and then stops; one that is pushed by less than c does not start to move."""
    robot = slider(mass=2.0, friction=3.0)
    run = sarrus.simulate(robot, [0.0], [1.0], 1.0, method="contact", dt=1e-3)
    assert_allclose(run.v[:, 0], np.maximum(1.0 - 1.5 * run.t, 0.0), atol=1e-9)
    held = sarrus.simulate(robot, [0.0], [0.0], 0.1, lambda t, q, v: [2.999], method="contact")
    assert_allclose(held.v, 0.0, atol=1e-12)


@pytest.mark.parametrize("gap", [5e-3, 2e-2])
def test_what_an_impact_elsewhere_moves_is_stopped(gap):
    """A ball hits one end of a see-saw. In the same step the other end, at rest and far from the ceiling, would penetrate it."""
    b = sarrus.Builder("see-saw")
    b.add_body("beam", sarrus.Inertia.box(1.0, (1.0, 0.1, 0.02)))
    b.add_joint("pin", sarrus.Revolute("y"), "ground", "beam")
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("fall", sarrus.Prismatic("z"), "ground", "ball", at_parent=(-0.45, 0, 0))
    b.add_frame("end", "beam", (0.5, 0, 0))
    robot = b.build()
    touching = [RigidContact("ball", on="beam", radius=0.05), RigidContact("end", normal=(0, 0, -1), offset=-gap)]
    run = sarrus.simulate(robot, [0.0, 0.051], [0.0, -10.0], 0.02, touching, dt=2e-3)
    height = robot.pose(run.q, "end")[:, 2, 3]
    assert height.max() < gap + 1e-6
    assert height[-1] > gap - 1e-6  # it is held there


def test_end_stops_are_rigid():
    """Bodies that fall on a stop do not penetrate it, do not bounce, and stay there."""
    robot = sarrus.mechanisms.pendulum()
    run = sarrus.simulate(robot, [1.2], [0.0], 2.0, EndStop("pivot", limits=(0.4, 2.0)), method="contact", dt=1e-3)
    assert run.q.min() > 0.4 - 1e-9
    assert abs(run.q[-1, 0] - 0.4) < 1e-9
    assert abs(run.v[-1, 0]) < AT_REST


def test_free_flight_is_of_second_order():
    """An exact parabola; a body rotating about a general axis; a four-bar with a stiff controller in the air, on its loops."""
    robot, q, ground = ball(2.0)
    run = sarrus.simulate(robot, q, [0, 0, 0, 1.0, 0, 0], 0.4, ground, dt=4e-3)
    assert_allclose(run.q[:, 6], 2.1 - 0.5 * G * run.t**2, atol=1e-12)
    assert_allclose(run.v[-1, 5], -G * 0.4, atol=1e-12)

    robot, _ = block()
    spun = np.array([3.0, -2.0, 4.0, 0.5, 0, 2.0])
    four, high, acting = dropped_four_bar(kp=20.0)
    high[four.joint("float").q_slice][6] += 1.0
    for one, q, v, forces in (
        (robot, np.array([0, 0, 0, 1, 0, 0, 2.0]), spun, [RigidContact("block_0")]),
        (four, high, four.project_velocity(high, np.linspace(1.0, -1.0, four.nv)), acting),
    ):
        plain = [f for f in forces if not isinstance(f, RigidContact)]
        exact = sarrus.simulate(one, q, v, 0.1, plain, method="dopri5", rtol=1e-11, atol=1e-12).q[-1]
        errors = []
        for dt in (4e-3, 2e-3):
            run = sarrus.simulate(one, q, v, 0.1, forces, dt=dt, method="contact")
            errors.append(np.linalg.norm(one.difference(exact, run.q[-1])))
            assert abs(one.constraint_residual(run.q)).max(initial=0.0) < LOOPS
        assert errors[1] < 0.3 * errors[0] < 3e-3


def test_what_does_not_go_together_is_refused():
    robot, q, ground = ball()
    with pytest.raises(sarrus.ModelError, match="RigidContact requires method='contact'"):
        sarrus.simulate(robot, q, np.zeros(6), 0.1, ground, method="rk4")
    with pytest.raises(sarrus.ModelError, match="compliant"):
        sarrus.simulate(robot, q, np.zeros(6), 0.1, [ground, CompliantContact("ball")])
    with pytest.raises(sarrus.ModelError, match="projection"):
        sarrus.simulate(robot, q, np.zeros(6), 0.1, ground, stabilisation="none")
    with pytest.raises(sarrus.ModelError, match="restitution"):
        sarrus.simulate(robot, q, np.zeros(6), 0.1, RigidContact("ball", restitution=2.0))
    for frame, on in (("ball", "ball"), ("ground", "ground")):
        with pytest.raises(
            sarrus.ModelError, match=f"RigidContact of '{frame}' is on '{on}', which belongs to the same body"
        ):
            sarrus.simulate(robot, q, np.zeros(6), 0.1, RigidContact(frame, on=on))
        with pytest.raises(sarrus.ModelError, match=r"ContactPoint of .* belongs to the same body"):
            robot.contact_impact(q, np.zeros(6), [sarrus.ContactPoint(frame, on=on)])
    with pytest.raises(sarrus.NameNotFoundError, match="bal"):
        sarrus.simulate(robot, q, np.zeros(6), 0.1, RigidContact("bal"))


def pressed(method="contact"):
    """Return a pendulum that leans on its stop."""
    robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    stop = EndStop("pivot", limits=(0.3, 2.0))
    return robot, sarrus.simulate(robot, [0.3], [0.0], 0.2, stop, method=method, dt=1e-3)


def test_what_leans_on_a_stop_has_no_acceleration():
    """Free body of the link: its weight, and the forces of stop and joint."""
    robot, run = pressed()
    moment = 2.0 * G * 0.5 * np.sin(0.3)
    assert_allclose(run.tau[1:], np.full((len(run.t) - 1, 1), moment), rtol=1e-8)
    assert abs(run.a[1:]).max() < 1e-7
    wrench = run.joint_wrenches()["pivot"][-1]
    assert_allclose(np.linalg.norm(wrench[3:]), 2.0 * G, rtol=1e-8)
    assert_allclose(np.linalg.norm(wrench[:3]), moment, rtol=1e-7)
    assert_allclose(run.tau[1:], robot.inverse_dynamics(run.q, run.v, 0.0 * run.v)[1:], rtol=1e-8)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_stops_that_move_push_by_what_the_motion_lacks(side):
    """The mean forces of the steps equal the change of momentum, on either side of the stop."""
    robot = slider()
    stop = EndStop("slide", limits=(-0.1, 0.1))
    run = sarrus.simulate(robot, [0.0], [side], 0.3, [stop, lambda t, q, v: [side * 3.0]], method="contact", dt=1e-3)
    mass = robot.mass_matrix(run.q)[:, 0, 0]
    gained = mass[1:] * np.diff(run.v[:, 0]) / 1e-3 - 3.0 * side
    assert_allclose(run.internal_state[1:, 0], gained, atol=1e-6)
    assert run.internal_state[-1, 0] == pytest.approx(-3.0 * side, rel=1e-8)
    assert abs(run.a[-1]).max() < 1e-7


def test_a_loop_on_a_stop_is_in_balance():
    """A four-bar whose motor pushes against a stop: virtual work, and reactions of a mechanism at rest."""
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.7})
    stop = EndStop("motor", limits=(-3.0, 0.7))
    push = sarrus.control.FeedforwardEffort("motor", sarrus.laws.polynomial(40.0))
    run = sarrus.simulate(robot, q, np.zeros(3), 0.2, [stop, push], method="contact", dt=1e-3)
    assert abs(run.v).max() < AT_REST
    assert abs(run.a[1:]).max() < 1e-6
    at_rest = robot.actuator_efforts(q, np.zeros(3), np.zeros(3))
    assert_allclose(run.internal_state[-1, -1] + 40.0, at_rest[0], rtol=1e-6)
    right = robot.forward_dynamics(q, np.zeros(3), run.tau[-1], return_reactions=True)[1]
    for name, wrench in run.reactions.wrenches.items():
        assert_allclose(wrench[-1], right.wrenches[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bounded", ["controller", "motor"])
def test_what_saturates_gives_way(bounded):
    """A stiff controller at its effort limit cannot hold a weight, which falls at once with g less that force over the mass."""
    b = sarrus.Builder("lift")
    b.add_body("weight", sarrus.Inertia.sphere(50.0, 0.1))
    limits = {"effort_limit": 100.0} if bounded == "motor" else {}
    b.add_joint("guide", sarrus.Prismatic("z", **limits), "ground", "weight", actuated=True)
    range_ = {"limits": (-100.0, 100.0)} if bounded == "controller" else {}
    hold = sarrus.control.PID("guide", 4e4, 0.0, 4e3, target=1.0, **range_)
    run = sarrus.simulate(b.build(), [0.0], [0.0], 0.2, [hold], method="contact", dt=1e-3, limits="enforce")
    np.testing.assert_allclose(run.v[:, 0], (100.0 / 50.0 - 9.81) * run.t, atol=1e-12)


def test_constant_rows_of_velocities_keep_their_multipliers():
    """A slide that a row lowers at 0.5 m/s: the row carries the weight, and does its work."""
    b = sarrus.Builder("lift")
    b.add_body("cabin", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("guide", sarrus.Prismatic("z"), "ground", "cabin")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("pivot", sarrus.Revolute("y"), "cabin", "bob", at_child=(0.0, 0.0, 0.5))
    b.add_pfaffian("winch", [[1.0]], ["guide"], value=-0.5)
    robot = b.build()
    q, v = np.array([0.0, 0.5]), np.array([-0.5, 0.0])
    runs = {method: sarrus.simulate(robot, q, v, 0.5, dt=1e-3, method=method) for method in ("rk4", "contact")}
    one, other = runs["rk4"], runs["contact"]
    assert_allclose(other.q, one.q, rtol=0.0, atol=1e-5)
    assert_allclose(other.v[:, 0], -0.5, rtol=0.0, atol=1e-12)
    work = [run.statistics["work"] for run in runs.values()]
    assert work[1] == pytest.approx(work[0], rel=1e-4)
    assert work[0] == pytest.approx(one.energy[-1] - one.energy[0], rel=1e-5)
