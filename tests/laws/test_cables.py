"""Cables (lines between two bodies whose length is a coordinate), compared with other computations, differences and closed forms."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import sarrus
from sarrus import control
from sarrus.description.joints import Cable

G = 9.81
RADII = (0.0, 0.07)
# of differences of steps of 1e-5 in what is of size one: truncation 1e-10, rounding 1e-11
DIFFERENCES = 1e-8


def swinging(radius, **terms):
    """Return an arm on a slide and a free body, with cables between them and from the ground, each with passive terms; and a state."""
    b = sarrus.Builder("swinging")
    b.add_body("cart", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), radius=0.05))
    b.add_body("load", sarrus.Inertia.box(1.5, (0.2, 0.3, 0.25)))
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "cart")
    b.add_joint("hinge", sarrus.Revolute("y"), "cart", "arm")
    b.add_joint("float", sarrus.Free(), "ground", "load")
    b.add_cable(
        "a", ("ground", (0.3, 0.1, 2.0)), ("load", (0.1, 0.05, 0.1)), radius=radius, axis=(0.2, 0.1, 1.0), **terms
    )
    b.add_cable("b", ("arm", (0.5, 0.0, 0.1)), ("load", (-0.1, 0.1, 0.1)), radius=radius, axis="x", **terms)
    b.add_cable("c", ("load", (0.0, 0.0, 0.1)), ("cart", (0.0, 0.1, 0.0)), radius=radius, axis="z", **terms)
    robot = b.build()
    rng = np.random.default_rng(3)
    q = robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv))
    q[robot.joint("float").q_slice][4:] = (0.9, 0.2, -0.8)
    return robot, q, rng.normal(size=robot.nv), rng.normal(size=robot.nv)


def around(radius, p):
    """Return the length from the first point of contact with a wheel to p, in the joint's axes: by the angle of the tangent."""
    rho, z = np.hypot(p[0], p[1]), p[2]

    def radial(turned):  # of the way from the rim, that is turned by so much from where it began, to p
        out = np.array([-np.cos(turned), np.sin(turned)])
        return out @ (np.array([rho - radius, z]) - radius * out)

    grid = np.linspace(0.0, 2.0 * np.pi, 721)
    ends = []
    for low, high in itertools.pairwise(grid):
        if radial(low) * radial(high) <= 0.0:
            turned = brentq(radial, low, high, xtol=1e-15)
            out, ahead = np.array([-np.cos(turned), np.sin(turned)]), np.array([np.sin(turned), np.cos(turned)])
            way = np.array([rho - radius, z]) - radius * out
            if way @ ahead > 0.0:  # it goes on as it has come
                ends.append(radius * turned + np.linalg.norm(way))
    return min(ends)


def ends(robot, q, name):
    """Return the second point, in axes at the first whose z-axis is that of the pulley."""
    spec = next(j for j in robot.description.joints if j.name == name)
    X, Y = (robot.pose(q, f"{name}.{end}") for end in ("parent", "child"))
    p = X[:3, :3].T @ (Y[:3, 3] - X[:3, 3])
    E = sarrus.description.joints.axis_frame(spec.joint.axis)
    return E.T @ p


@pytest.mark.parametrize("radius", RADII)
def test_length_is_straight_and_around_the_pulley(radius):
    robot, q, _, _ = swinging(radius)
    lengths = robot.joint_states(q).q
    for name in "abc":
        p = ends(robot, q, name)
        expected = around(radius, p) if radius else np.linalg.norm(p)
        assert abs(lengths[name][0] - expected) < 1e-12
    wheel = swinging(0.1)[0]
    below = wheel.integrate(wheel.neutral(), np.zeros(wheel.nv))
    assert np.isfinite(wheel.joint_states(below).q["c"][0])


@pytest.mark.parametrize("radius", RADII)
def test_velocity_and_acceleration_are_rates_of_the_length(radius):
    robot, q, v, a = swinging(radius)
    h = 1e-5

    def state(t):
        # v and a of the tree, to second order
        return robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a

    now = robot.joint_states(q, v, a)
    before, after = (robot.joint_states(*state(t)) for t in (-h, h))
    S = robot.actuation_matrix(q, actuated=list("abc"))
    for k, name in enumerate("abc"):
        assert abs((after.q[name] - before.q[name])[0] / (2 * h) - now.v[name][0]) < DIFFERENCES
        assert abs((after.v[name] - before.v[name])[0] / (2 * h) - now.a[name][0]) < DIFFERENCES
        assert abs(S[:, k] @ v - now.v[name][0]) < 1e-13


@pytest.mark.parametrize("radius", RADII)
def test_a_cable_that_hangs_straight_down_has_all_derivatives(radius):
    """If p is on the axis of its pulley (without a pulley: on the line itself), the plane of the cable is undefined."""
    b = sarrus.Builder("plumb")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "bob")
    b.add_cable(
        "rope",
        ("ground", (0, 0, 0)),
        ("bob", (0, 0, 0)),
        radius=radius,
        axis="-z",
        stiffness=5.0,
        damping=0.1,
        armature=0.3,
    )
    robot = b.build()
    q, v = np.array([0, 0, 0, 1, 0, 0, -1.3]), np.array([0.1, 0.2, 0.3, 0.5, -0.4, 0.2])
    states = robot.joint_states(q, v, np.zeros(6))
    assert abs(states.q["rope"][0] - 1.3) < 1e-15
    # of a straight line: the centripetal part of v across it, and what the turning axes of v make of v
    p_dot_dot = np.cross(v[:3], v[3:])
    assert abs(states.a["rope"][0] - ((0.5**2 + 0.4**2) / 1.3 - p_dot_dot[2])) < 1e-12
    by = sarrus.derivatives.forward_dynamics(robot, q, v, np.zeros(6))
    h, d = 1e-6, np.eye(6)
    numeric = np.stack([
        robot.forward_dynamics(robot.integrate(q, h * x), v, np.zeros(6)) - robot.forward_dynamics(robot.integrate(q, -h * x), v, np.zeros(6))
        for x in d
    ], axis=1) / (2 * h)  # fmt: skip
    assert abs(by.q - numeric).max() < 1e-7 * (1.0 + abs(numeric).max())
    assert np.isfinite(by.v).all()


@pytest.mark.parametrize("radius", RADII)
def test_power_and_derivatives_with_all_terms(radius):
    """tau.v is the rate of energy with springs and armature; derivatives of forward dynamics, and pullbacks of efforts, agree with differences."""
    robot, q, v, _ = swinging(radius, stiffness=30.0, rest=0.8, armature=0.4)
    tau = np.linspace(-1.0, 1.0, robot.nv)
    a = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-11)
    np.testing.assert_allclose(robot.mass_matrix(q) @ a + robot.bias_forces(q, v), tau, atol=1e-11)
    h = 1e-5

    def energy(t):
        at, speed = robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a
        return robot.kinetic_energy(at, speed) + robot.potential_energy(at)

    assert abs((energy(h) - energy(-h)) / (2 * h) - tau @ v) < 1e-6

    damped, *_ = swinging(radius, stiffness=30.0, rest=0.8, armature=0.4, damping=2.0)
    by = sarrus.derivatives.forward_dynamics(damped, q, v, tau)

    def difference(f):
        return np.stack([f(h * x) - f(-h * x) for x in np.eye(robot.nv)], axis=1) / (2 * h)

    np.testing.assert_allclose(
        by.q, difference(lambda x: damped.forward_dynamics(damped.integrate(q, x), v, tau)), atol=1e-5
    )
    np.testing.assert_allclose(by.v, difference(lambda x: damped.forward_dynamics(q, v + x, tau)), atol=1e-5)
    np.testing.assert_allclose(by.tau, difference(lambda x: damped.forward_dynamics(q, v, tau + x)), atol=1e-6)


def test_many_states_and_files(tmp_path):
    robot, q, v, a = swinging(0.07, stiffness=30.0, rest=0.8)
    Q = np.stack([robot.integrate(q, 0.05 * k * v) for k in range(9)])
    together = robot.forward_dynamics(Q, v, np.zeros(robot.nv))
    one_by_one = np.stack([robot.forward_dynamics(x, v, np.zeros(robot.nv)) for x in Q])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-12)
    robot.save(tmp_path / "cables.json")
    again = sarrus.load(tmp_path / "cables.json")
    assert again == robot
    np.testing.assert_array_equal(again.forward_dynamics(q, v, a), robot.forward_dynamics(q, v, a))
    for other in ("cables.urdf", "cables.xml", "cables.sdf"):
        with pytest.raises(sarrus.ModelError, match="Cable"):
            robot.save(tmp_path / other)


# ---- the eight-cable platform -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", RADII)
def test_tensions_of_the_platform(radius):
    """Tensions are within limits, in equilibrium, and of least norm."""
    robot = sarrus.mechanisms.cable_platform(radius=radius)
    q, rest = robot.assemble(), np.zeros(6)
    q = robot.integrate(q, [0.1, -0.1, 0.15, 0.4, 0.3, 0.2])
    a = np.array([0.1, 0.2, -0.1, 1.0, -2.0, 1.5])
    least, most = 25.0, 600.0
    u = robot.actuator_efforts(q, rest, a, limits=(-most, -least))
    S = robot.actuation_matrix(q)
    np.testing.assert_allclose(S @ u, robot.inverse_dynamics(q, rest, a), atol=1e-9 * most)
    assert ((u <= -least + 1e-9) & (u >= -most)).all() and (abs(u + least) < 1e-9).any()
    # by another programme
    tau = robot.inverse_dynamics(q, rest, a)
    best = minimize(
        lambda x: 0.5 * x @ x / 1e4, u + np.linspace(-1, 1, 8), jac=lambda x: x / 1e4, bounds=[(-most, -least)] * 8,
        constraints={"type": "eq", "fun": lambda x: S @ x - tau, "jac": lambda x: S}, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert np.linalg.norm(u) <= np.linalg.norm(best.x) * (1 + 1e-6)
    with pytest.raises(sarrus.NotRealizableError, match="within the limits"):
        robot.actuator_efforts(q, rest, 100.0 * a, limits=(-most, -least))
    assert robot.internal_efforts(q).shape == (8, 2)


def test_platform_is_led_by_lengths_and_by_its_pose():
    robot = sarrus.mechanisms.cable_platform()
    q = robot.integrate(robot.assemble(), [0.05, 0.1, -0.1, 0.3, 0.2, 0.1])
    lengths = {name: x for name, x in robot.joint_states(q).q.items() if name.startswith("cable")}
    six = {name: lengths[name] for name in list(lengths)[:6]}
    found = robot.assemble(fixed=six)
    assert all(abs(robot.joint_states(found).q[name] - x).max() < 1e-9 for name, x in six.items())
    J = robot.loop_jacobian(q, "platform")
    v = np.linspace(0.1, 0.6, 6)
    rates = robot.actuation_matrix(q).T @ v
    np.testing.assert_allclose(J @ rates, v, atol=1e-9)  # of the platform, in its own axes


@pytest.mark.parametrize("law", ["computed torque", "tasks"])
def test_platform_follows_under_laws_that_know_it(law):
    """Eight winches on a mechanism without constraint rows."""
    robot = sarrus.mechanisms.cable_platform()
    q, rest = robot.assemble(), np.zeros(6)
    goal = robot.pose(q, "platform")
    goal[:3, 3] += (0.2, 0.1, 0.1)
    if law == "tasks":
        limits = control.Limits(effort={f"cable{k}": (-2000.0, 0.0) for k in range(1, 9)})
        by = control.TaskControl(robot, control.FrameTask("platform", goal, stiffness=25.0), limits)
    else:
        b = sarrus.Builder("planar")
        b.add_body("platform", sarrus.Inertia.box(5.0, (0.4, 0.1, 0.3)))
        b.add_body("slide", sarrus.Inertia.sphere(0.1, 0.01))
        b.add_joint("x", sarrus.Prismatic("x"), "ground", "slide")
        b.add_joint("z", sarrus.Prismatic("z"), "slide", "platform")
        for k, (x, z) in enumerate(itertools.product((-2.0, 2.0), (0.0, 3.0))):
            b.add_cable(f"cable{k}", ("ground", (x, 0, z)), ("platform", (0, 0, 0)), actuated=True)
        robot = b.build()
        q, rest = np.array([0.1, 1.5]), np.zeros(2)
        by = control.ComputedTorque({"x": 0.5, "z": 1.2}, proportional=25.0, derivative=10.0)
    run = sarrus.simulate(robot, q, rest, 3.0, by, dt=2e-3)
    if law == "tasks":
        assert abs(run.frame("platform")[-1] - goal).max() < 1e-3
    else:
        assert abs(run.q[-1] - (0.5, 1.2)).max() < 1e-4


# ---- ropes: slack, taut, over pulleys --------------------------------------------------------------------------------


def hung(masses, cables):
    """Return weights that slide along z, each on cables: weight, origin, name."""
    b = sarrus.Builder("hung")
    for k, (mass, _) in enumerate(masses):
        b.add_body(f"weight{k}", sarrus.Inertia.sphere(mass, 0.05))
        b.add_joint(f"slide{k}", sarrus.Prismatic("z"), "ground", f"weight{k}", at_parent=(0.4 * k, 0, 0))
    for name, weight, place, options in cables:
        b.add_cable(name, ("ground", place), (f"weight{weight}", (0, 0, 0)), **options)
    return b.build(), np.array([z for _, z in masses])


def test_atwood_machine():
    """A rope over a pulley with two segments on each side: a = (m1 - m2) g / (m1 + m2), and equal tensions."""
    r, m1, m2 = 0.2, 3.0, 2.0
    # from the top of the pulley, one fall each way, around a quarter of it
    over = {"radius": r}
    robot, q = hung(
        [(m1, -1.0), (m2, -1.0)],
        [("left", 0, (r, 0, r), {**over, "axis": "-x"}), ("right", 1, (0.4 - r, 0, r), {**over, "axis": "x"})],
    )
    lengths = robot.joint_states(q).q
    np.testing.assert_allclose([lengths[n][0] for n in ("left", "right")], 0.5 * np.pi * r + 1.0, atol=1e-14)
    rope = control.EndStop(("left", "right"), limits=(-np.inf, float(lengths["left"][0] + lengths["right"][0])))
    run = sarrus.simulate(robot, q, np.zeros(2), 0.5, rope, method="contact", dt=1e-3)
    a = (m1 - m2) / (m1 + m2) * G
    np.testing.assert_allclose(run.v[:, 0], -a * run.t, atol=1e-9)
    np.testing.assert_allclose(run.v[:, 1], a * run.t, atol=1e-9)
    assert abs(run.q.sum(axis=1) - run.q[0].sum()).max() < 1e-9  # it neither stretches nor is slack


def test_block_and_tackle():
    """A block on two segments of a rope, whose third carries a counterweight: a = g (2 m2 - m1) / (m1 + 4 m2)."""
    m1, m2 = 10.0, 6.0
    robot, q = hung([(m1, -2.0), (m2, -1.0)], [("one", 0, (0, 0, 0), {}), ("two", 1, (0.4, 0, 0), {})])
    rope = control.EndStop(("one", "one", "two"), limits=(-np.inf, 5.0))
    run = sarrus.simulate(robot, q, np.zeros(2), 0.3, rope, method="contact", dt=1e-3)
    a = G * (2 * m2 - m1) / (m1 + 4 * m2)
    np.testing.assert_allclose(run.v, np.outer(run.t, [a, -2 * a]), atol=1e-9)


def test_slack_then_taut():
    """Two weights on one rope, the heavy one thrown up: the rope is slack while both fly; then an impulse removes their separation velocity."""
    m1, m2 = 3.0, 1.0
    robot, q = hung([(m1, -1.0), (m2, -1.0)], [("one", 0, (0, 0, 0), {}), ("two", 1, (0.4, 0, 0), {})])
    rope = control.EndStop(("one", "two"), limits=(-np.inf, 2.0))
    # the rope is slack while z1 + z2 > -2: both in free fall, taut again when (v1 + v2) t = g t^2
    v = np.array([1.5, 0.5])
    t = v.sum() / G
    run = sarrus.simulate(robot, q, v, 1.5 * t, rope, method="contact", dt=1e-4)
    slack = run.t < t - 2e-4
    np.testing.assert_allclose(run.v[slack], v - G * run.t[slack, None], atol=1e-9)
    at = v - G * t  # then a plastic impact along (1, 1)
    jump = -at.sum() / (1 / m1 + 1 / m2)
    after = at + jump * np.array([1 / m1, 1 / m2])
    a = (m1 - m2) / (m1 + m2) * G
    expected = after[0] - a * (run.t[-1] - t)
    assert abs(run.v[-1, 0] - expected) < G * 2e-4 and abs(run.v[-1].sum()) < 1e-9


def test_elastic_rope_pulls_only():
    """A fall on a rope with a spring: m v^2 / 2 + m g x = k x^2 / 2 at its longest; it returns without loss of energy, and is free above."""
    m, k, v = 2.0, 400.0, 1.0
    robot, q = hung([(m, -1.0)], [("rope", 0, (0, 0, 0), {})])
    rope = control.EndStop("rope", limits=(-np.inf, 1.0), stiffness=k, damping=0.0)
    run = sarrus.simulate(robot, q, [-v], 1.2, rope, method="dopri5", dt=1e-3, rtol=1e-9, atol=1e-12)
    longest = m * G / k + np.sqrt((m * G / k) ** 2 + m * v * v / k)
    highest = v * v / (2 * G)
    assert abs(-run.q.min() - 1.0 - longest) < 1e-5 and abs(run.q.max() + 1.0 - highest) < 1e-5


def test_rope_on_a_drum_with_inertia():
    """A winch as a motor with rotor inertia along the cable: a load falls with m g / (m + I / r^2)."""
    m, rotor = 4.0, 1.5
    robot, q = hung([(m, -1.0)], [("rope", 0, (0, 0, 0), {"armature": rotor})])
    np.testing.assert_allclose(robot.forward_dynamics(q, [0.0], [0.0]), [-G * m / (m + rotor)], rtol=1e-13)


@pytest.mark.parametrize("method", ["contact", "rk4"])
def test_elevator(method):
    """A driven winch holds the weight by its tension, which cannot push."""
    m = 50.0
    robot, q = hung([(m, -3.0)], [("rope", 0, (0, 0, 0), {"actuated": True})])
    winch = control.PID("rope", 4e4, 4e4, 4e3, target=control.rest_to_rest(3.0, 2.0, 1.0), limits=(-2000.0, 0.0))
    run = sarrus.simulate(robot, q, [0.0], 3.0, [winch], method=method, dt=1e-3)
    assert abs(run.q[-1, 0] + 2.0) < 2e-3
    assert abs(run.tau[-1, 0] - m * G) < 1.0
    fast = control.PID("rope", 4e4, 0.0, 4e3, target=4.0, limits=(-2000.0, 0.0))  # downwards: only gravity does that
    fall = sarrus.simulate(robot, q, [0.0], 0.2, [fast], method=method, dt=1e-3)
    np.testing.assert_allclose(fall.v[:, 0], -G * fall.t, atol=1e-9)


# ---- what it is not ----------------------------------------------------------------------------------------------------


def test_it_carries_nothing_in_the_tree():
    b = sarrus.Builder("b")
    b.add_body("weight", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_cable("rope", ("ground", (0, 0, 0)), ("weight", (0, 0, 0)))
    with pytest.raises(sarrus.ModelError, match="no joint connects the ground to 'weight'"):
        b.build()
    b.add_joint("float", sarrus.Free(), "ground", "weight")
    assert b.build().loop_joints == ("rope",)
    b.add_joint("other", Cable(), "ground", "weight", tree=True)
    with pytest.raises(sarrus.ModelError, match="'other' does not constrain its bodies"):
        b.build()


def test_inside_its_pulley_there_is_no_cable():
    robot, q = hung([(1.0, 0.05)], [("rope", 0, (0, 0, 0), {"radius": 0.2, "axis": "x", "stiffness": 1.0})])
    with pytest.raises(sarrus.StateError):
        robot.forward_dynamics(q, [0.0], [0.0])


@pytest.mark.parametrize(
    "bad", [{"radius": -0.1}, {"radius": np.nan}, {"axis": (0, 0, 0)}, {"damping": -1.0}, {"limits": (2.0, 1.0)}]
)
def test_bad_cables(bad):
    b = sarrus.Builder("b")
    b.add_body("weight", sarrus.Inertia.sphere(1.0, 0.1))
    with pytest.raises(sarrus.ModelError):
        b.add_cable("rope", ("ground", (0, 0, 0)), ("weight", (0, 0, 0)), **bad)
    with pytest.raises(sarrus.ModelError, match="to itself"):
        b.add_cable("rope", ("weight", (0, 0, 0)), ("weight", (0, 0, 1)))


def test_bad_sums():
    robot, q = hung([(1.0, -1.0)], [("rope", 0, (0, 0, 0), {})])
    for joint, words in (((), "must name at least one joint"), (("rope", "rope"), "has no limits")):
        with pytest.raises(sarrus.ModelError, match=words):
            sarrus.simulate(robot, q, [0.0], 0.1, control.EndStop(joint))
    with pytest.raises(sarrus.NameNotFoundError):
        sarrus.simulate(robot, q, [0.0], 0.1, control.EndStop(("rope", "ripe"), (0.0, 1.0)))


def test_laws_drive_the_winches_and_nothing_else():
    """One cable cannot hold a weight that slides in both directions, and the slides get no efforts instead."""
    b = sarrus.Builder("planar")
    b.add_body("weight", sarrus.Inertia.sphere(5.0, 0.1))
    b.add_body("slide", sarrus.Inertia.sphere(0.1, 0.01))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "slide")
    b.add_joint("z", sarrus.Prismatic("z"), "slide", "weight")
    b.add_cable("cable", ("ground", (0, 0, 3)), ("weight", (0, 0, 0)), actuated=True)
    law = control.ComputedTorque({"x": 0.5, "z": 1.2})
    with pytest.raises(sarrus.IntegrationError):
        sarrus.simulate(b.build(), [0.1, 1.5], [0.0, 0.0], 0.1, law)
