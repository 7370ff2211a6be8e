"""Laws of rigid contact in one state: equations of motion with loops and contacts, Coulomb's law, and invariance of the motion."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sarrus
from sarrus import ContactPoint
from tests.effort import examples
from tests.laws.test_contact_steps import dropped_four_bar
from tests.random_closed import CLOSING, closed_mechanisms
from tests.random_mechanisms import mechanisms, random_state, seeds

# of the natural map the solver promises 1e-10; forces are reported as the least ones, whose own map is 1e-8 of what it compares
CONES = 1e-7
# of the equations of motion and of the loops, whose residual is what the solver makes small
SOLVED = 1e-9

KINDS = (*CLOSING, "distance", "coupler", "disc", "sphere", "sphere in sphere")
CLOSED = closed_mechanisms(kinds=KINDS, copies=st.integers(0, 2), armature=st.booleans())
TREES = mechanisms(armature=st.booleans())


def size(*arrays):
    return max(np.abs(x).max(initial=0.0) for x in arrays)


def place_and_rows(robot, q, c):
    """Return the position of a contact and the Jacobian of its point, in the world, of the second body too."""
    centre = robot.pose(q, c.frame)[:3, 3]
    n = sarrus.description.joints.unit_axis(c.normal)
    p = centre - c.radius * n

    def rows(frame):
        if frame == "ground":
            return np.zeros((3, robot.nv))
        J, o = robot.jacobian(q, frame, expressed_in="world_aligned"), robot.pose(q, frame)[:3, 3]
        x, y, z = p - o
        return J[3:] + np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]]) @ J[:3]

    return p, rows(c.frame) - rows(c.on)


def random_contacts(robot, rng, count, q=None, v=None, friction=0.5):
    """Return points and spheres of bodies on planes of other bodies; with v, on planes along which they slip."""
    names = ["ground", *robot.bodies]
    found = []
    for _ in range(20 * count):
        frame, on = (
            names[1 + rng.integers(len(names) - 1)],
            names[rng.integers(len(names)) if rng.random() < 0.4 else 0],
        )
        if frame == on or len(found) == count:
            continue
        normal, radius = rng.normal(size=3), 0.1 * rng.integers(2) * rng.random()
        c = ContactPoint(frame, tuple(normal), friction * rng.random(), radius, on=on)
        if v is not None:
            # across what the centre does relative to the second body, and to the point of the ball that touches
            c = dataclasses.replace(c, radius=0.0)
            u = place_and_rows(robot, q, c)[1] @ v
            normal -= u * (u @ normal) / max(u @ u, 1e-300)
            c = dataclasses.replace(c, normal=tuple(normal))
        found.append(c)
    return found


def assert_obeys(robot, q, v, tau, contacts, answer, time=None):
    """M a + h = tau + J^T lambda + Jc^T f for some lambda, J a = gamma; Coulomb's law of forces and accelerations of the contacts."""
    a, f = answer.motion, answer.forces
    J, gamma = robot.constraint_jacobian(q, time=time), robot.constraint_bias(q, v, time=time)
    M, h = robot.mass_matrix(q), robot.bias_forces(q, v)
    rows = [place_and_rows(robot, q, c)[1] for c in contacts]
    open_forces = M @ a + h - tau - sum((R.T @ x for R, x in zip(rows, f, strict=True)), np.zeros(robot.nv))
    multipliers = np.linalg.lstsq(J.T, open_forces, rcond=1e-9)[0] if len(J) else np.zeros(0)
    scale = size(M @ a, h, tau, f)
    assert size(open_forces - J.T @ multipliers) <= CONES * scale
    if len(J):
        assert size(J @ a - gamma) <= SOLVED * (size(J) * size(a) + size(gamma)) + 1e-12
    for c, R, x in zip(contacts, rows, f, strict=True):
        n = sarrus.description.joints.unit_axis(c.normal)
        push, pull = x @ n, np.linalg.norm(x - (x @ n) * n)
        assert push >= -CONES * scale
        assert pull <= c.friction * push + CONES * scale
        u = R @ v
        slip = u - (u @ n) * n
        if np.linalg.norm(slip) > 1e-7 and push > CONES * scale:
            assert size(x - push * n + c.friction * push * slip / np.linalg.norm(slip)) <= CONES * scale


def moved(robot, q, v, a, h):
    """Return the configuration after h, for these velocities and accelerations: exact to h^3."""
    return robot.integrate(q, h * v + 0.5 * h * h * a)


def relative(robot, q, v, c):
    """Return the distance of the centre along the normal, in the second body's axes, and the velocity of the contact points there."""
    X, Y = robot.pose(q, c.frame), robot.pose(q, c.on)
    return Y[:3, :3].T @ (X[:3, 3] - Y[:3, 3])


@examples(15)
@given(st.one_of(CLOSED, TREES), seeds())
def test_at_rest_they_stay_within_their_cones(drawn, seed):
    """From rest: complementarity of accelerations and forces, u_n >= 0, and u_t opposite to friction at its limit."""
    rng = np.random.default_rng(seed)
    robot = getattr(drawn, "robot", drawn)
    if not robot.nv or not robot.bodies:
        return
    q = drawn.q if robot is not drawn else random_state(robot, rng)[0]
    v, tau = np.zeros(robot.nv), rng.normal(size=robot.nv)
    contacts = random_contacts(robot, rng, int(rng.integers(1, 6)))
    try:
        answer = robot.contact_dynamics(q, v, tau, contacts)
    except sarrus.StateError:
        return  # between bodies that nothing can move, or where something has no inertia
    assert_obeys(robot, q, v, tau, contacts, answer)
    free = robot.forward_dynamics(q, v, tau)
    summed = np.linalg.lstsq(robot.mass_matrix(q), tau - robot.inverse_dynamics(q, v, 0 * v), rcond=None)[
        0
    ]  # what cancels, with all loops open
    for c, x in zip(contacts, answer.forces, strict=True):
        R, n = place_and_rows(robot, q, c)[1], sarrus.description.joints.unit_axis(c.normal)
        u, scale = R @ answer.motion, size(R @ answer.motion, R @ free, answer.motion, summed)
        push, ut = x @ n, u - (u @ n) * n
        assert u @ n >= -CONES * scale
        assert abs(push * (u @ n)) <= CONES * scale * max(size(answer.forces), 1e-300)
        pull = x - push * n
        if np.linalg.norm(ut) > 1e-4 * scale and push > 1e-4 * size(answer.forces):
            assert size(pull + c.friction * push * ut / np.linalg.norm(ut)) <= 1e-3 * size(answer.forces)


@examples(10)
@given(CLOSED, seeds())
def test_slipping_has_friction_against_it(closed, seed):
    """In motion, on planes along which the points slip: friction opposes slipping, and pressed points keep their distance."""
    rng = np.random.default_rng(seed)
    robot, (q, v, tau, _) = closed.robot, closed.state
    contacts = random_contacts(robot, rng, 3, q, v, friction=0.2)
    try:
        answer = robot.contact_dynamics(q, v, tau, contacts)
    except sarrus.StateError:
        return
    assert_obeys(robot, q, v, tau, contacts, answer)
    h = 1e-4
    for c, x in zip(contacts, answer.forces, strict=True):
        n = robot.pose(q, c.on)[:3, :3].T @ sarrus.description.joints.unit_axis(c.normal)
        there = [relative(robot, moved(robot, q, k * v, answer.motion, h), v, c) for k in (-1, 0, 1)]
        away = n @ (there[0] - 2 * relative(robot, q, v, c) + there[2]) / h**2
        # differences of second order, of numbers of the size of one
        wrong = 1e-3 * (1 + size(answer.motion) + size(v) ** 2) * (1 + size(v))
        assert away >= -wrong
        if x @ x > 1e-6 * size(answer.forces) ** 2:
            assert abs(away) <= wrong


def block(friction=0.5, feet=4):
    b = sarrus.Builder("block")
    b.add_body("block", sarrus.Inertia.box(mass=2.0, size=(0.2, 0.2, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "block")
    places = [(-0.1, -0.1), (-0.1, 0.1), (0.1, -0.1), (0.1, 0.1)][:feet]
    for i, (x, y) in enumerate(places):
        b.add_frame(f"foot{i}", "block", (x, y, -0.05))
    return b.build(), [ContactPoint(f"foot{i}", friction=friction) for i in range(feet)]


AT = [0, 0, 0, 1, 0, 0, 0.05]


@pytest.mark.parametrize("push", [3.0, 9.81 - 1e-6, 9.81 + 1e-6, 15.0])
def test_a_pushed_block(push):
    """The block sticks up to mu m g, then accelerates by (F - mu m g) / m; forces of the feet have least norm."""
    robot, feet = block()
    answer = robot.contact_dynamics(AT, np.zeros(6), [0, 0, 0, push, 0, 0], feet)
    assert_allclose(answer.motion, [0, 0, 0, max(push - 9.81, 0) / 2, 0, 0], atol=1e-8)
    assert_allclose(answer.forces.sum(axis=0), [-min(push, 9.81), 0, 19.62], atol=1e-4)


def test_a_sliding_block():
    robot, feet = block(0.3)
    answer = robot.contact_dynamics(AT, [0, 0, 0, 0.3, -0.4, 0], np.zeros(6), feet)
    assert_allclose(answer.motion, [0, 0, 0, -0.3 * 9.81 * 0.6, 0.3 * 9.81 * 0.8, 0], atol=1e-8)


def test_what_moves_away_is_not_held():
    robot, feet = block()
    answer = robot.contact_dynamics(AT, [0, 0, 0, 0, 0, 0.1], np.zeros(6), feet)
    assert_allclose(answer.motion, [0, 0, 0, 0, 0, -9.81], atol=1e-12)
    assert_allclose(answer.forces, 0.0, atol=1e-12)


def ball(radius=0.1):
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(mass=0.5, radius=radius))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    return b.build(), [ContactPoint("ball", radius=radius, friction=0.4)]


def test_a_rolling_ball_rolls_on():
    """The centre keeps height and speed, although the contact point accelerates upwards: v^2 / r."""
    robot, touching = ball()
    q, v = [0, 0, 0, 1, 0, 0, 0.1], [0, 20.0, 0, 2.0, 0, 0]
    answer = robot.contact_dynamics(q, v, np.zeros(6), touching)
    assert_allclose(robot.acceleration(q, v, answer.motion, "ball", expressed_in="world_aligned"), 0.0, atol=1e-8)
    assert_allclose(answer.forces, [[0, 0, 0.5 * 9.81]], atol=1e-6)


def test_a_ball_with_backspin():
    """The ball slips: mu g decelerates the centre, and 5/2 mu g / r the spin."""
    robot, touching = ball()
    q, v = [0, 0, 0, 1, 0, 0, 0.1], [0, -20.0, 0, 1.0, 0, 0]
    answer = robot.contact_dynamics(q, v, np.zeros(6), touching)
    a = robot.acceleration(q, v, answer.motion, "ball", expressed_in="world_aligned")
    assert_allclose(a, [0, 2.5 * 0.4 * 9.81 / 0.1, 0, -0.4 * 9.81, 0, 0], atol=1e-8)


def test_a_puck_on_a_turntable():
    """The puck rotates with the table: friction causes w^2 r inwards, and starts to tip the puck."""
    b = sarrus.Builder("turntable")
    b.add_body("table", sarrus.Inertia.box(mass=5.0, size=(1, 1, 0.1)))
    b.add_joint("turn", sarrus.Revolute("z"), "ground", "table")
    b.add_body("puck", sarrus.Inertia.box(mass=0.5, size=(0.1, 0.1, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "puck")
    b.add_frame("under", "puck", (0, 0, -0.05))
    robot = b.build()
    turn, free = robot.joint("turn"), robot.joint("float")
    q, v = np.array(robot.neutral()), np.zeros(robot.nv)
    q[free.q_slice] = [0, 0, 0, 1, 0.3, 0, 0.05]
    rate = 2.0
    v[turn.v_slice] = rate
    v[free.v_slice] = [0, 0, rate, 0, rate * 0.3, 0]
    answer = robot.contact_dynamics(q, v, np.zeros(robot.nv), [ContactPoint("under", friction=0.5, on="table")])
    gives_way = 1 + 0.05**2 / (0.02 / 12)  # of the foot, 1 + m h^2 / I
    assert_allclose(answer.forces, [[-0.5 * rate**2 * 0.3 / gives_way, 0, 0.5 * 9.81]], atol=1e-6)


def test_impact_of_a_ball_and_of_a_block():
    robot, touching = ball()
    hit = [dataclasses.replace(touching[0], restitution=0.7)]
    answer = robot.contact_impact([0, 0, 0, 1, 0, 0, 0.1], [0, 0, 0, 0, 0, -3.0], hit)
    assert_allclose(answer.motion, [0, 0, 0, 0, 0, 2.1], atol=1e-9)
    assert_allclose(answer.forces, [[0, 0, 0.5 * 5.1]], atol=1e-6)
    robot, feet = block(10.0)
    answer = robot.contact_impact(AT, [0, 0, 0, 1.0, 0, -2.0], feet)
    assert_allclose(answer.motion, 0.0, atol=1e-9)


@examples(10)
@given(CLOSED, seeds())
def test_impacts_take_energy_and_keep_loops(closed, seed):
    """Without restitution the kinetic energy decreases, J v is unchanged, and momentum changes by the impulses."""
    rng = np.random.default_rng(seed)
    robot, (q, v, _, _) = closed.robot, closed.state
    contacts = random_contacts(robot, rng, 3)
    try:
        answer = robot.contact_impact(q, v, contacts)
    except sarrus.StateError:
        return
    after, J = answer.motion, robot.constraint_jacobian(q)
    assert robot.kinetic_energy(q, after) <= robot.kinetic_energy(q, v) * (1 + 1e-9) + 1e-12
    if len(J):
        assert size(J @ after) <= 1e-11 * (1 + size(J)) * (1 + size(v, after))
    rows = [place_and_rows(robot, q, c)[1] for c in contacts]
    change = robot.mass_matrix(q) @ (after - v) - sum(
        (R.T @ x for R, x in zip(rows, answer.forces, strict=True)), np.zeros(robot.nv)
    )
    multipliers = np.linalg.lstsq(J.T, change, rcond=1e-9)[0] if len(J) else np.zeros(0)
    # along what hardly moves the contacts forces are known no better
    assert size(change - J.T @ multipliers) <= 1e-3 * (size(answer.forces) + size(robot.mass_matrix(q) @ v))


@examples(8)
@given(closed_mechanisms(kinds=CLOSING), seeds())
def test_order_does_not_matter(closed, seed):
    """Contacts in another order have the same motion and the same forces of least norm."""
    rng = np.random.default_rng(seed)
    robot, q = closed.robot, closed.q
    v, tau = np.zeros(robot.nv), closed.state.tau
    contacts = random_contacts(robot, rng, 4)
    try:
        answer = robot.contact_dynamics(q, v, tau, contacts)
    except sarrus.StateError:
        return
    order = rng.permutation(len(contacts))
    other = robot.contact_dynamics(q, v, tau, [contacts[i] for i in order])
    assert_allclose(other.motion, answer.motion, atol=1e-7 * (1 + size(answer.motion)))
    assert_allclose(other.forces, answer.forces[order], atol=1e-4 * (1 + size(answer.forces)))


def test_which_joint_closes_the_loop_does_not_matter():
    """A pulled four-bar on the ground has the same motion and forces for any loop joint."""
    answers = []
    for closing in (3, 1, 2):
        robot, q, _ = dropped_four_bar(closing=closing)
        contacts = [ContactPoint(f"a_{i}", friction=0.4) for i in range(4)]
        v = np.zeros(robot.nv)
        tau = robot.jacobian(q, "c", expressed_in="world_aligned").T @ [0.05, 0.1, 0.0, 1.0, 3.0, 0.5]
        answer = robot.contact_dynamics(q, v, tau, contacts)
        moves = [robot.acceleration(q, v, answer.motion, name, expressed_in="world_aligned") for name in "abcd"]
        answers.append((np.array(moves), answer.forces))
    for moves, forces in answers[1:]:
        assert_allclose(moves, answers[0][0], atol=1e-7)
        assert_allclose(forces, answers[0][1], atol=1e-6)


def test_a_loop_that_is_pressed_onto_the_ground_stays():
    """A motor presses the coupler onto the ground: the point sticks, and with it the mechanism, which has one degree of freedom."""
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    for normal in ("z", (0.3, 0, 1)):
        answer = robot.contact_dynamics(q, np.zeros(3), [3.0, 0, 0], [ContactPoint("coupler", normal, 2.0)])
        assert size(answer.forces) > 1.0
        assert_allclose(answer.motion, 0.0, atol=1e-8)


def test_wrong_uses_are_refused():
    robot, feet = block()
    q, zero = AT, np.zeros(6)
    with pytest.raises(TypeError, match="ContactPoint"):
        robot.contact_dynamics(q, zero, zero, ["foot0"])
    with pytest.raises(sarrus.NameNotFoundError, match="foot9"):
        robot.contact_dynamics(q, zero, zero, [ContactPoint("foot9")])
    with pytest.raises(sarrus.ModelError, match="friction"):
        robot.contact_dynamics(q, zero, zero, [ContactPoint("foot0", friction=-1.0)])
    with pytest.raises(sarrus.ModelError, match="restitution"):
        robot.contact_impact(q, zero, [ContactPoint("foot0", restitution=1.5)])
    with pytest.raises(sarrus.ShapeError, match="one state"):
        robot.contact_dynamics(np.array([q, q]), np.zeros((2, 6)), np.zeros((2, 6)), feet)
    with pytest.raises(sarrus.StateError, match="finite"):
        robot.contact_dynamics(q, zero, zero * np.nan, feet)
    with pytest.raises(sarrus.StateError, match="impact"):
        robot.contact_dynamics(q, [0, 0, 0, 0, 0, -1.0], zero, feet)


@pytest.mark.parametrize("pieces", [0, 2])
def test_substructures_say_the_same(pieces):
    """A mechanism in substructures solves for each column separately, with the same result."""
    robot = sarrus.mechanisms.four_bar_ladder(6)
    other = sarrus.Mechanism(robot.description, substructures=pieces)
    q = robot.assemble()
    tau = np.random.default_rng(0).normal(size=robot.nv)
    contacts = [ContactPoint(robot.bodies[k], "y", 0.5) for k in (1, 4)]
    one, two = (r.contact_dynamics(q, np.zeros(r.nv), tau, contacts) for r in (robot, other))
    assert_allclose(one.motion, two.motion, atol=1e-8 * (1 + size(one.motion)))
    assert_allclose(one.forces, two.forces, atol=1e-6 * (1 + size(one.forces)))


@pytest.mark.parametrize("friction", [0.0, 1e-12])
def test_what_is_lifted_off_ground_parts(friction):
    """Without friction the cone is a ray, and a lifting pull leaves no force."""
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    ball, q = b.build(), np.array([0, 0, 0, 1, 0, 0, 0.1])
    foot = [ContactPoint("ball", radius=0.1, friction=friction)]
    answer = ball.contact_dynamics(q, np.zeros(6), [0, 0, 0, 0, 0, 6.0], foot)
    assert_allclose(answer.motion, [0, 0, 0, 0, 0, 6.0 / 0.5 - 9.81], atol=1e-9)
    assert_allclose(answer.forces, 0.0, atol=1e-9)
    lifted = sarrus.simulate(
        ball, q, np.zeros(6), 0.6,
        [sarrus.control.Thruster("ball", sarrus.laws.harmonic(15.0, 3.0), axis="z"), sarrus.control.RigidContact("ball", radius=0.1, friction=friction)],
    )  # fmt: skip
    assert lifted.q[-1, 6] > 0.2


@pytest.mark.parametrize("mass", [1e-9, 0.0])
def test_a_point_of_a_massless_body_carries(mass):
    """A four-bar rests on a point of its coupler: the force of least norm of the two that balance one degree of freedom."""
    b = sarrus.Builder("four-bar")
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        light = name == "b"
        if light and not mass:
            b.add_body(name)
        else:
            b.add_body(name, sarrus.Inertia.rod(mass if light else 1.0, (0, 0, 0), (length, 0, 0), 0.01))
    b.add_joint("m", sarrus.Revolute("y"), "ground", "a")
    b.add_joint("p1", sarrus.Revolute("y"), "a", "b", at_parent=(0.4, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "ground", "c", at_parent=(1.0, 0, 0))
    b.add_joint("p2", sarrus.Revolute("y"), "b", "c", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0))
    b.add_frame("tip", "b", (0.5, 0, 0.2))
    robot = b.build()
    q, rest = robot.assemble(near={"p1": 0.2, "p": 1.3}, fixed={"m": 0.5}), np.zeros(3)
    answer = robot.contact_dynamics(q, rest, rest, [ContactPoint("tip", friction=1.0)])
    assert_allclose(answer.motion, 0.0, atol=1e-6)
    moves = robot.project_velocity(q, [1.0, 0.0, 0.0])
    tip = robot.velocity(q, moves, "tip", expressed_in="world_aligned")[3:]
    held = tip * (robot.gravity_forces(q) @ moves) / (tip @ tip)  # by virtual work, along the way of the point
    assert_allclose(answer.forces[0], held, atol=1e-4)
