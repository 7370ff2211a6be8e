"""Force elements for users: controllers, friction and contact satisfy their formulas."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import (
    PID,
    ActuatorModel,
    CompliantContact,
    ComputedTorque,
    EffortTable,
    FeedforwardEffort,
    GravityCompensation,
    LuGreFriction,
    PDPlus,
    Quantisation,
    ReactionWheel,
    SampleAndHold,
    Thruster,
)
from sarrus.control.element import declared
from tests.oracles.steps import rk4
from tests.small_mechanisms import METHODS, double_pendulum, four_bar, slider, table

G = 9.81


def test_native_pid_is_the_one_in_python():
    """Limits are reached on both sides, and the integral stops meanwhile: equal to rounding."""
    robot = sarrus.mechanisms.pendulum()
    target = sarrus.laws.harmonic(1.5, rate=6.0, offset=0.3)
    kp, ki, kd, limits = 30.0, 80.0, 4.0, (-9.0, 12.0)
    pid = PID("pivot", kp, ki, kd, target=target, limits=limits)
    seen = []

    def rate(t, y):
        g, g_dot, _ = target.derivatives(t)
        off = g - y[0]
        u = kp * off + y[2] + kd * (g_dot - y[1])
        seen.append(u)
        # in 1 ms at a limit, and no farther
        slowest, fastest = min(limits[0] - u, 0.0) * 1e3, max(limits[1] - u, 0.0) * 1e3
        return np.r_[
            y[1], robot.forward_dynamics(y[:1], y[1:2], [np.clip(u, *limits)]), np.clip(ki * off, slowest, fastest)
        ]

    y = rk4(rate, np.zeros(3), 1e-3, 3000)
    run = sarrus.simulate(robot, [0.0], [0.0], 3.0, pid)
    assert max(seen) > limits[1] + 1.0
    assert min(seen) < limits[0] - 1.0
    assert_allclose(np.hstack([run.q, run.v, run.internal_state]), y, atol=1e-9)
    assert run.tau.min() == limits[0]
    assert run.tau.max() == limits[1]


@pytest.mark.parametrize("method", METHODS)
def test_native_pd_is_the_one_in_python(method):
    """Every method, on a mechanism with a loop, beside another force."""
    robot, q, v = four_bar()
    motor = robot.joint("motor").v_slice.start
    target = sarrus.laws.harmonic(0.3, rate=3.0, offset=0.5)
    push = sarrus.laws.polynomial(0.0, 2.0)

    def pd(t, q, v):
        g, rate, _ = target.derivatives(t)
        tau = np.zeros(3)
        tau[motor] = np.clip(40.0 * (g - q[motor]) + 3.0 * (rate - v[motor]), -15.0, 15.0) + push(t)
        return tau

    native = [PID("motor", 40.0, 0.0, 3.0, target=target, limits=(-15.0, 15.0)), FeedforwardEffort("motor", push)]
    options = {"method": method, "dt": 2e-3}
    a = sarrus.simulate(robot, q, v, 0.5, native, **options)
    b = sarrus.simulate(robot, q, v, 0.5, pd, **options)
    # dopri5 decides on steps by numbers that differ in their last digit
    near = 1e-6 if method == "dopri5" else 1e-9
    assert_allclose(a.q, b.q, atol=near)
    assert_allclose(a.v, b.v, atol=10 * near)
    assert_allclose(a.tau, b.tau, atol=100 * near)


def test_a_prescribed_effort():
    """x = t^3/6 for f = t, m = 1, which rk4 integrates exactly."""
    run = sarrus.simulate(
        slider(), [0.0], [0.0], 2.0, FeedforwardEffort("slide", sarrus.laws.polynomial(0.0, 1.0)), dt=0.1
    )
    assert_allclose(run.q[:, 0], run.t**3 / 6.0, atol=1e-14)
    assert_allclose(run.tau[:, 0], run.t, atol=1e-15)


def test_computed_torque_errors_die_as_oscillators():
    """e = e0 (1 + w t) exp(-w t) with kp = w^2, kd = 2 w, for any motion and damping of the mechanism."""
    b = sarrus.Builder("damped")
    b.add_body("upper", sarrus.Inertia.rod(2.0, (0, 0, 0), (0, 0, -1)))
    b.add_body("lower", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    b.add_joint("one", sarrus.Revolute("y", damping=0.5, stiffness=3.0), "ground", "upper")
    b.add_joint("two", sarrus.Revolute("x", damping=0.2), "upper", "lower", at_parent=(0, 0, -1))
    robot = b.build()
    one, two = sarrus.laws.harmonic(0.5, rate=3.0), sarrus.control.rest_to_rest(0.0, 1.0, 0.8)
    w = np.array([8.0, 12.0])
    law = ComputedTorque({"one": one, "two": two}, proportional=w**2, derivative=2 * w)
    start = np.array([0.3, -0.2])
    run = sarrus.simulate(robot, start, [one.derivatives(0.0)[1], 0.0], 1.0, law, dt=5e-4)
    wanted = np.stack([one(run.t), two(run.t)], axis=1)
    e = (start - wanted[0]) * (1.0 + w * run.t[:, None]) * np.exp(-w * run.t[:, None])
    assert_allclose(run.q - wanted, e, atol=1e-8)  # rk4's own error


def test_stiction_holds_and_slips():
    """Pulled by less than `sticking` it stays at the deflection of its bristles; by more, it slides with friction `sliding`."""
    sliding, sticking, stiffness = 1.0, 1.5, 1e4
    friction = LuGreFriction("slide", sliding, sticking, stribeck_velocity=0.01, stiffness=stiffness)
    held = sarrus.simulate(slider(), [0.0], [0.0], 2.0, [FeedforwardEffort("slide", 1.2), friction])
    assert np.abs(held.q).max() < 3.0 * sticking / stiffness
    assert np.abs(held.v[1000:]).max() < 1e-9
    assert_allclose(held.tau[1000:], 0.0, atol=1e-6)  # friction carries all of the pull
    pulled = sarrus.simulate(slider(), [0.0], [0.0], 0.3, [FeedforwardEffort("slide", 1.7), friction], dt=2e-4)
    assert_allclose(pulled.tau[1000:], 0.7, atol=0.01)
    assert_allclose(np.gradient(pulled.v[1000:, 0], pulled.t[1000:]), 0.7, atol=0.01)


def test_stiction_as_it_comes():
    """Default parameters and default step: 1 N on 1 kg stops 1 m/s within 1 s."""
    run = sarrus.simulate(slider(), [0.0], [1.0], 2.0, LuGreFriction("slide", 1.0))
    assert_allclose(run.v[500], 0.5, atol=0.02)
    assert np.abs(run.v[1200:]).max() < 1e-3
    assert_allclose(run.q[-1], 0.5, atol=0.02)


def test_stiction_takes_no_more_than_it_may():
    """A block thrown at 0.1 m/s: friction never exceeds `sticking` by much, and the distance is v^2/(2 a)."""
    run = sarrus.simulate(
        slider(), [0.0], [0.1], 0.3, LuGreFriction("slide", 1.0), dt=2e-5, times=np.linspace(0.0, 0.3, 3001)
    )
    assert np.abs(run.tau).max() < 1.1
    assert_allclose(run.q[-1], 0.1**2 / 2.0, rtol=0.05)


@pytest.mark.parametrize("limits", [(3.7, 5.2), (3.7, 4.3)])
def test_end_stops_of_joints_that_close_loops_are_within_their_turn(limits):
    """The pivot may be the loop joint, although a pose determines an angle only in -pi to pi."""
    energies = []
    for cut in ("p2", "p"):
        b = sarrus.Builder("four-bar")
        for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
            b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
        places = {
            "m": ("ground", "a", {}), "p1": ("a", "b", {"at_parent": (0.4, 0, 0)}), "p": ("ground", "c", {"at_parent": (1.0, 0, 0)}),
            "p2": ("b", "c", {"at_parent": (1.1, 0, 0), "at_child": (0.9, 0, 0)}),
        }  # fmt: skip
        for name, (parent, child, at) in places.items():
            b.add_joint(name, sarrus.Revolute("y"), parent, child, tree=name != cut, loop=name == cut, **at)
        robot = b.build()
        q = robot.assemble(fixed={"m": 0.5}, near={"p": 4.4})
        stop = sarrus.control.EndStop("p", limits=limits, stiffness=1e4, damping=5.0)
        run = sarrus.simulate(robot, q, robot.complete_velocity(q, {"m": 6.0}), 0.2, stop, dt=2.5e-4)
        energies.append(float(robot.kinetic_energy(run.q[-1], run.v[-1])))
    assert energies[1] == pytest.approx(energies[0], rel=1e-6)


def test_a_limit_on_one_side():
    """Infinity means no limit."""
    robot = sarrus.mechanisms.pendulum()
    a, b = (sarrus.simulate(robot, [1.0], [0.0], 0.5, PID("pivot", 9.0, limits=(-5.0, x))) for x in (np.inf, 1e9))
    assert_array_equal(a.q, b.q)


def test_a_bouncing_point_comes_to_rest():
    """Each bounce loses energy; finally the ground carries the weight: k d^n = m g."""
    robot = slider("z", gravity=(0.0, 0.0, -G))
    ground = CompliantContact("block", radius=0.1, stiffness=1e5, exponent=1.5, dissipation=1.0)
    run = sarrus.simulate(robot, [0.4], [0.0], 6.0, ground, dt=2e-4)
    depth = np.maximum(0.1 - run.q[:, 0], 0.0)
    energy = run.energy + 1e5 * depth**2.5 / 2.5
    assert np.diff(energy).max() < 1e-5 * (energy[0] - energy[-1])  # what a step of the contact is off by
    rest = 0.1 - (G / 1e5) ** (1.0 / 1.5)
    assert_allclose(run.q[-1], rest, atol=1e-5)
    assert abs(run.v[-1, 0]) < 1e-3
    tops = (run.v[:-1, 0] > 0.0) & (run.v[1:, 0] <= 0.0) & (run.q[:-1, 0] > 0.101)
    assert tops.sum() >= 3
    assert (np.diff(run.q[:-1, 0][tops]) < 0.0).all()
    assert run.tau.min() >= 0.0  # a plane does not pull


def test_friction_stays_in_its_cone():
    """A block thrown along the ground: |f_x| <= mu f_z, with equality during fast sliding."""
    mu = 0.4
    ground = CompliantContact("block", radius=0.1, stiffness=1e5, dissipation=1.0, friction=mu, slip_velocity=1e-3)
    rest = 0.1 - (G / 1e5) ** (1.0 / 1.5)
    run = sarrus.simulate(table(), [0.0, rest], [1.0, 0.0], 0.5, ground, dt=1e-4)
    f_x, f_z = run.tau.T
    assert (np.abs(f_x) <= mu * f_z * (1.0 + 1e-12)).all()
    fast = run.v[:, 0] > 0.05
    assert fast.sum() > 1000
    assert_allclose(f_x[fast], -mu * f_z[fast], rtol=1e-3)
    assert_allclose(run.q[-1, 0], 1.0 / (2.0 * mu * G), rtol=0.01)  # v^2/(2 mu g)
    assert abs(run.v[-1, 0]) < 1e-3
    assert np.diff(run.energy + 1e5 * np.maximum(0.1 - run.q[:, 1], 0.0) ** 2.5 / 2.5).max() < 1e-9


def test_a_contact_acts_as_its_wrench_would():
    """On an inclined rotating body: tau is J^T of a force at the contact point."""
    b = sarrus.Builder("ball on an arm")
    b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.2))
    b.add_joint("shoulder", sarrus.Universal("y", "z"), "ground", "arm", at_parent=(0, 0, 0.3))
    b.add_joint("wrist", sarrus.Spherical(), "arm", "ball", at_parent=(1, 0, 0))
    robot = b.build()
    rng = np.random.default_rng(1)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    q[:2] = 0.2, 0.4
    normal = np.array([0.1, 0.2, 1.0]) / np.linalg.norm([0.1, 0.2, 1.0])
    k, n, c, mu, slip_velocity, radius = 1e3, 1.3, 0.7, 0.5, 0.05, 0.25
    centre = robot.pose(q, "ball")[:3, 3]
    offset = normal @ centre - radius + 0.04  # pressed in by 0.04
    ground = CompliantContact("ball", radius, normal, offset, k, n, c, mu, slip_velocity)
    tau = sarrus.simulate(robot, q, v, 0.0, ground).tau[0]
    J = robot.jacobian(q, "ball")
    R = robot.pose(q, "ball")[:3, :3]
    arm = R.T @ (-radius * normal)
    J_point = R @ (J[3:] + np.cross(J[:3].T, arm).T)
    u = J_point @ v
    f = k * 0.04**n * (1.0 - c * normal @ u)
    slip = u - normal * (normal @ u)
    force = f * (normal - mu * slip / np.sqrt(slip @ slip + slip_velocity**2))
    assert f > 0.0
    assert_allclose(tau, J_point.T @ force, rtol=1e-10, atol=1e-10)


def test_ground_that_slopes_is_a_plane_that_leans():
    """A height of 0.3 x over the level plane, and the plane perpendicular to (-0.3, 0, 1): all results of a run agree."""
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.2))
    b.add_joint("fly", sarrus.Free(), "ground", "ball")
    robot = b.build()
    q, v = [0, 0, 0, 1, 0.1, 0.0, 0.25], [0, 3.0, 0, 1.0, 0.2, 0]
    how = {"radius": 0.2, "stiffness": 1e4, "slip_velocity": 0.02}
    slope = sarrus.laws.polynomial(0.05, 0.3)
    runs = [
        sarrus.simulate(robot, q, v, 0.3, contact, method="rk4", dt=2e-4)
        for contact in (
            CompliantContact("ball", height=slope, **how),
            CompliantContact("ball", normal=(-0.3, 0, 1), offset=0.05 / np.hypot(0.3, 1), **how),
        )
    ]
    assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    assert np.abs(runs[0].q[-1, 4:] - np.array([0.1, 0.0, 0.25])).max() > 0.1


def test_rough_ground_gives_back_what_it_took():
    """Without friction and dissipation the force has the potential k d^(n+1)/(n+1) of the depth at the nearest point."""
    robot, k, radius = table(), 2e4, 0.1
    ground = sarrus.laws.harmonic(0.05, rate=4.0)  # its narrowest valleys have a radius of 1.25 m
    frictionless = {"stiffness": k, "dissipation": 0.0, "friction": 0.0, "exponent": 1.0}
    contact = CompliantContact("block", radius=radius, height=ground, **frictionless)
    run = sarrus.simulate(robot, [0.0, 0.2], [2.0, 0.0], 2.0, contact, method="rk4", dt=2e-4)
    s = np.linspace(-0.3, run.q[:, 0].max() + 0.3, 4001)
    near = np.array([np.hypot(s - x, ground(s) - z).min() for x, z in run.q[::10]])
    below = run.q[::10, 1] < ground(run.q[::10, 0])
    depth = np.maximum(radius - np.where(below, -near, near), 0.0)
    energy = run.energy[::10] + k * depth**2 / 2
    assert (depth > 0.0).sum() > 20 and np.ptp(run.v[:, 0]) > 0.5  # it bounces from slopes, to and fro
    assert_allclose(energy, energy[0], rtol=2e-4)  # of steps and of the search's grid


def satellite_with_wheel():
    b = sarrus.Builder("satellite", gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia(10.0, (0.1, 0, 0), np.diag([1.0, 2.0, 1.5])))
    b.add_body("wheel", sarrus.Inertia.cylinder(1.0, 0.2, 0.05, "z"))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    at = sarrus.Transform.from_rpy(0.0, 0.3, 0.0, (0.0, 0.0, 0.2))
    b.add_joint("axle", sarrus.Revolute("z"), "satellite", "wheel", at_parent=at)
    b.add_frame("nozzle", "satellite", sarrus.Transform.from_rpy(0.5, -0.4, 0.2, (-0.3, 0.2, 0.1)))
    return b.build()


@pytest.mark.parametrize(("asked", "given"), [(3.0, 3.0), (7.0, 5.0), (-2.0, 0.5)])
def test_a_thruster_acts_as_a_wrench_of_its_frame(asked, given):
    """A force along its axis, in one direction, within limits."""
    robot = satellite_with_wheel()
    rng = np.random.default_rng(2)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    run = sarrus.simulate(robot, q, v, 0.0, Thruster("nozzle", asked, "-y", limits=(0.5, 5.0)))
    assert_allclose(run.tau[0], robot.jacobian(q, "nozzle").T @ [0, 0, 0, 0, -given, 0], atol=1e-13)
    a = robot.forward_dynamics(q, v, np.zeros(7), wrenches={"nozzle": [0, 0, 0, 0, -given, 0]})
    assert_allclose(run.a[0], a, rtol=1e-12)


def test_thrust_over_time_is_momentum():
    """A pulse of 2 N s, by a time function that becomes negative, where the thrust is zero."""
    robot = satellite_with_wheel()
    pulse = sarrus.laws.Law((0.0, 0.5, 1.0), ((0.0,), (4.0,), (-4.0,)))
    run = sarrus.simulate(robot, robot.neutral(), np.zeros(7), 2.0, Thruster("nozzle", pulse), dt=1e-3)
    frame = run.frame("nozzle")
    along = frame[:, :3, 0] * np.clip(pulse(run.t), 0.0, None)[:, None]
    impulse = ((along[1:] + along[:-1]) / 2 * np.diff(run.t)[:, None]).sum(axis=0)
    assert_allclose(run.momentum[-1, 3:], impulse, atol=2e-3)  # a step of the pulse's ends
    assert np.linalg.norm(run.momentum[-1, 3:]) == pytest.approx(2.0, rel=1e-2)


def test_a_wheel_saturates():
    """Torque is limited until the wheel's momentum is at its limit, for any commands; total momentum stays zero."""
    robot, inertia = satellite_with_wheel(), 0.02  # 1 kg of radius 0.2 m
    push = np.array([0.0] * 6 + [0.6])

    def asks(t, q, v):
        return push

    for asked in ([ReactionWheel("axle", 0.6, 0.5, 0.25)], [ReactionWheel("axle", 0.0, 0.5, 0.25), asks]):
        run = sarrus.simulate(robot, robot.neutral(), np.zeros(7), 2.0, asked)
        assert_allclose(run.tau[[0, 100, 400], 6], 0.5, rtol=1e-12)
        assert_allclose(inertia * run.v[-1, 6], 0.25, rtol=1e-6)
        assert inertia * run.v[:, 6].max() < 0.25 * (1 + 1e-9)
        assert abs(run.tau[-1, 6]) < 1e-6
        assert np.abs(run.momentum).max() < 1e-12
    # beyond it, it is braked
    fast = sarrus.simulate(robot, robot.neutral(), [0, 0, 0, 0, 0, 0, 20.0], 1.0, ReactionWheel("axle", 0.6, 0.5, 0.25))
    assert fast.tau[0, 6] == -0.5
    assert_allclose(inertia * fast.v[-1, 6], 0.25, rtol=1e-6)


def test_many_runs_of_thrusters_and_wheels_are_as_one_by_one():
    robot = satellite_with_wheel()
    limits, torques = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, np.inf])
    ground = sarrus.laws.harmonic(0.1, rate=1.0, offset=-0.5)

    def acts(most, torque):
        return [
            Thruster("nozzle", 2.5, limits=(0.0, most)),
            ReactionWheel("axle", 0.3, torque, 1.0),
            CompliantContact("satellite", 0.6, height=ground, stiffness=1e3, slip_velocity=0.1),
        ]

    runs = sarrus.simulate_many(robot, robot.neutral(), np.zeros(7), 0.5, acts(limits, torques), method="rk4")
    for k in range(3):
        one = sarrus.simulate(robot, robot.neutral(), np.zeros(7), 0.5, acts(limits[k], torques[k]), method="rk4")
        assert_allclose(runs.q[k, -1], one.q[-1], rtol=1e-10, atol=1e-12)


def test_a_controller_with_wrenches():
    """A wrench on a frame as in forward_dynamics, beside tau."""
    robot, q, v = double_pendulum()
    tau, wrench = np.array([0.5, -0.2]), np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    run = sarrus.simulate(robot, q, v, 0.0, lambda t, q, v: (tau, {"tip": wrench}))
    assert_allclose(run.a[0], robot.forward_dynamics(q, v, tau, wrenches={"tip": wrench}), rtol=1e-12)
    both = sarrus.simulate(robot, q, v, 0.0, [lambda t, q, v: tau, lambda t, q, v: ([0.0, 0.0], {"tip": wrench})])
    assert_array_equal(both.tau, run.tau)


def test_the_state_a_controller_gets_is_its_own():
    """Changes that a controller makes to its arguments have no effect."""

    def careless(t, q, v):
        q[:], v[:] = 7.0, np.nan
        return [0.0]

    robot = sarrus.mechanisms.pendulum()
    a, b = (sarrus.simulate(robot, [1.0], [0.0], 0.1, c) for c in (careless, None))
    assert_array_equal(a.q, b.q)


BAD_ANSWERS = [
    (lambda t, q, v: np.zeros(3), sarrus.ShapeError, r"\(3,\).*\(2,\)"),
    (lambda t, q, v: np.zeros((1, 2)), sarrus.ShapeError, r"\(1, 2\)"),
    (lambda t, q, v: [0.0, np.nan], sarrus.StateError, "nan.*t = 0.*finite"),
    (lambda t, q, v: [np.inf, 0.0], sarrus.StateError, "finite"),
    (lambda t, q, v: 1 / 0, ZeroDivisionError, "division"),
    (lambda t, q, v: "much", ValueError, "much"),
    (lambda t, q, v: (np.zeros(2), {"nose": np.zeros(6)}), sarrus.NameNotFoundError, "nose"),
    (lambda t, q, v: (np.zeros(2), {"tip": np.zeros(3)}), ValueError, "3"),
    (lambda t, q: np.zeros(2), TypeError, "positional"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("controller", "error", "message"), BAD_ANSWERS)
def test_bad_answers_of_a_controller(method, controller, error, message):
    robot, q, v = double_pendulum()
    with pytest.raises(error, match=message):
        sarrus.simulate(robot, q, v, 0.1, controller, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_exceptions_of_a_controller_come_unchanged(method):
    """Exceptions late in the run are unchanged, with their attributes, and the next run is valid."""
    robot, q, v = four_bar()
    mine = LookupError("with", "things")

    def controller(t, q, v):
        if t > 0.05:
            raise mine
        return np.zeros(3)

    with pytest.raises(LookupError) as caught:
        sarrus.simulate(robot, q, v, 1.0, controller, method=method)
    assert caught.value is mine
    assert sarrus.simulate(robot, q, v, 0.04, controller, method=method).status == "finished"


def test_a_kind_without_a_class_gets_one_from_the_core():
    """Its fields read the same as those of the hand-written class: numbers and laws of each run, joints, limits."""
    made = declared("PID", __name__)
    robot, target = sarrus.mechanisms.pendulum(), sarrus.laws.harmonic(0.3, rate=2.0)
    by_hand = PID("pivot", [20.0, 30.0], 1.0, 5.0, [target, 0.2], (-3.0, [1.0, 2.0]))
    fields = {name: getattr(by_hand, name) for name in ("target", "proportional", "integral", "derivative", "limits")}
    runs = [
        sarrus.simulate_many(robot, [0.1], [0.0], 1.0, element, method="rk4")
        for element in (by_hand, made(joint="pivot", **fields))
    ]
    assert_array_equal(runs[1].q, runs[0].q)
    with pytest.raises(sarrus.ModelError, match="integral of PID must be finite; got nan"):
        sarrus.simulate(robot, [0.1], [0.0], 1.0, made("pivot", 0.0, 1.0, np.nan, 1.0, (-1.0, 1.0)))
    with pytest.raises(sarrus.ModelError, match="index 2"):
        sarrus.simulate(robot, [0.1], [0.0], 1.0, made("pivot", 0.0, 1.0, 0.0, 1.0, (-1.0, 1.0), index=2))


def test_the_core_takes_no_other_fields_than_a_kind_has():
    robot = sarrus.mechanisms.pendulum()

    def simulation(**term):
        return sarrus._core.Simulation(
            robot,
            "rk4",
            "none",
            (0.0, 0.0),
            [term],
            [],
            np.zeros(1),
            None,
            [],
            None,
            [],
            [],
            robot._units_of_motion,
        )

    law = (0.0,), [1.0], []
    assert simulation(kind="FeedforwardEffort", joint=0, effort=law).size == 2
    for wrong in ({"kind": "PID2"}, {"kind": "FeedforwardEffort", "joint": 0, "effort": law, "index": 0}):
        with pytest.raises(ValueError, match=wrong["kind"]):
            simulation(**wrong)
    with pytest.raises(KeyError, match="effort"):
        simulation(kind="FeedforwardEffort", joint=0)


@pytest.mark.parametrize(
    "kind",
    [PID, FeedforwardEffort, ComputedTorque, PDPlus, GravityCompensation, LuGreFriction, CompliantContact, sarrus.control.RigidContact,
     sarrus.control.EndStop, sarrus.control.AppliedWrench, Thruster, ActuatorModel, ReactionWheel, SampleAndHold, sarrus.control.CollisionContacts],
)  # fmt: skip
def test_defaults_are_those_of_the_core(kind):
    """A C++ program that omits an argument has the default value of the class."""

    def text(x):
        if x is None or isinstance(x, str):
            return repr(x)
        return str(list(map(float, x))) if isinstance(x, tuple) else repr(float(x))

    core = sarrus._core.element_defaults(kind.__name__)
    of_class = {f.name: text(f.default) for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING}
    for internal in ("inertia", "calls", "pairs"):
        core.pop(internal, None)
    assert core == of_class


# ---- what is refused -------------------------------------------------------------------------------------------------


def pendulum_runs(**options):
    return sarrus.simulate(sarrus.mechanisms.pendulum(), [0.1], [0.0], 1.0, **options)


BAD_ELEMENTS = [
    (PID("pivot", limits=(1.0, -1.0)), sarrus.ModelError, r"limits of PID .*got \(1.0, -1.0\)"),
    (PID("pivot", limits=(np.nan, 1.0)), sarrus.ModelError, "limits of PID .*nan"),
    (PID("pivot", limits=(np.inf, np.inf)), sarrus.ModelError, "limits of PID .*inf"),
    (PID("pivot", limits=(1.0,)), sarrus.ModelError, r"limits of PID must be two.*got \(1.0,\)"),
    (PID("pivot", limits=5.0), sarrus.ModelError, "limits of PID must be two.*got 5.0"),
    (PID("pivot", limits=("low", 1.0)), sarrus.ModelError, "limits of PID must be a number.*'low'"),
    (PID("pivot", proportional="much"), sarrus.ModelError, "proportional of PID must be a number.*'much'"),
    (PID("pivot", integral=np.inf), sarrus.ModelError, "integral of PID must be finite; got inf"),
    (PID("pivot", derivative=None), sarrus.ModelError, "derivative of PID .*None"),
    (PID("pivot", proportional=1j), sarrus.ModelError, "proportional of PID .*1j"),
    (PID("pivot", proportional=[[1.0]]), sarrus.ShapeError, r"proportional of PID .*\(runs,\); got \(1, 1\)"),
    (PID("pivot", index=0.5), sarrus.ModelError, "index 0.5"),
    (PID("pivot", index=-1), sarrus.ModelError, "index -1"),
    (PID("pivot", target=np.nan), sarrus.ModelError, "target of 'pivot' .*nan"),
    (FeedforwardEffort("pivot", np.inf), sarrus.ModelError, "effort of 'pivot' .*inf"),
    (FeedforwardEffort("pivot", 1.0, index="z"), sarrus.ModelError, "index 'z'"),
    (LuGreFriction("pivot", 1.0, sticking=0.5), sarrus.ModelError, "sticking .*no less than sliding; got 0.5 and 1.0"),
    (
        LuGreFriction("pivot", 1.0, damping=-1.0),
        sarrus.ModelError,
        "damping of LuGreFriction must not be negative; got -1.0",
    ),
    (
        LuGreFriction("pivot", 1.0, stiffness=0.0),
        sarrus.ModelError,
        "stiffness of LuGreFriction must be positive; got 0.0",
    ),
    (
        LuGreFriction("pivot", 1.0, stribeck_velocity=np.nan),
        sarrus.ModelError,
        "stribeck_velocity of LuGreFriction must be finite",
    ),
    (LuGreFriction("pivot", None), sarrus.ModelError, "sliding of LuGreFriction .*None"),
    (
        CompliantContact("tip", radius=-0.1),
        sarrus.ModelError,
        "radius of CompliantContact must not be negative; got -0.1",
    ),
    (
        CompliantContact("tip", radius=np.nan),
        sarrus.ModelError,
        "radius of CompliantContact must be a finite number; got nan",
    ),
    (
        CompliantContact("tip", offset=[0.0, 1.0]),
        sarrus.ModelError,
        r"offset of CompliantContact must be a finite number; got \[0.0, 1.0\]",
    ),
    (
        CompliantContact("tip", stiffness=-1.0),
        sarrus.ModelError,
        "stiffness of CompliantContact must be positive; got -1.0",
    ),
    (
        CompliantContact("tip", exponent=0.0),
        sarrus.ModelError,
        "exponent of CompliantContact must be positive; got 0.0",
    ),
    (
        CompliantContact("tip", dissipation=-1.0),
        sarrus.ModelError,
        "dissipation of CompliantContact must not be negative",
    ),
    (CompliantContact("tip", friction=-1.0), sarrus.ModelError, "friction of CompliantContact must not be negative"),
    (
        CompliantContact("tip", slip_velocity=0.0),
        sarrus.ModelError,
        "slip_velocity of CompliantContact must be positive",
    ),
    (CompliantContact("tip", normal=(0.0, 0.0, np.nan)), sarrus.ModelError, "three finite numbers"),
    (CompliantContact("tip", height=np.nan), sarrus.ModelError, "height of 'tip' .*nan"),
    (
        CompliantContact("tip", height=0.1, along=(1, 0, 1)),
        sarrus.ModelError,
        "along of CompliantContact must be perpendicular to its normal",
    ),
    (Thruster("nozzle", 1.0), sarrus.NameNotFoundError, "nozzle"),
    (Thruster("tip", "full"), sarrus.ModelError, "thrust of 'tip' .*'full'"),
    (Thruster("tip", 1.0, limits=(2.0, 1.0)), sarrus.ModelError, "limits of Thruster must be"),
    (Thruster("tip", 1.0, axis="w"), sarrus.ModelError, "'w'"),
    (ReactionWheel("axle"), sarrus.NameNotFoundError, "axle"),
    (
        ReactionWheel("pivot", torque_limit=-1.0),
        sarrus.ModelError,
        "torque_limit of ReactionWheel must not be negative",
    ),
    (
        ReactionWheel("pivot", momentum_limit=np.nan),
        sarrus.ModelError,
        "momentum_limit of ReactionWheel must not be neg",
    ),
    (ReactionWheel("pivot", torque=np.inf), sarrus.ModelError, "torque of 'pivot' .*inf"),
    ([ReactionWheel("pivot"), ReactionWheel("pivot")], sarrus.ModelError, "'pivot' has several ReactionWheel"),
    (ComputedTorque({"elbow": 0.0}), sarrus.NameNotFoundError, "elbow"),
    (ComputedTorque([0.0]), sarrus.ModelError, r"targets of ComputedTorque must map .*got \[0.0\]"),
    (ComputedTorque({"pivot": "up"}), sarrus.ModelError, "target of 'pivot' .*'up'"),
    (ComputedTorque({}, proportional=np.nan), sarrus.ModelError, "proportional of ComputedTorque must be finite"),
    (ComputedTorque({}, derivative=[1.0, 2.0]), sarrus.ShapeError, r"derivative of ComputedTorque .*got \(2,\)"),
    ([ComputedTorque({}), PDPlus({})], sarrus.ModelError, "several controllers of all joints, such as PDPlus"),
    (GravityCompensation(np.inf), sarrus.ModelError, "scale of GravityCompensation must be finite; got inf"),
    (SampleAndHold(PID("pivot"), period=0.0), sarrus.ModelError, "period of SampleAndHold must be positive; got 0.0"),
    (
        SampleAndHold(PID("pivot"), delay=-1.0),
        sarrus.ModelError,
        "delay of SampleAndHold must be from 0 to 10000 periods of 0.001 s; got -1.0",
    ),
    (SampleAndHold(PID("pivot"), 1e-3, 11.0), sarrus.ModelError, "delay of SampleAndHold .*0.001 s; got 11.0 s"),
    (SampleAndHold(PID("elbow")), sarrus.NameNotFoundError, "elbow"),
    (SampleAndHold(CompliantContact("tip")), sarrus.ModelError, "CompliantContact cannot be sampled"),
    (SampleAndHold(SampleAndHold(PID("pivot"))), sarrus.ModelError, "SampleAndHold cannot be sampled"),
    (SampleAndHold(PID), TypeError, "PID is a class"),
    (SampleAndHold(3.0), TypeError, "controller must be a function .*got 3.0"),
    (SampleAndHold(lambda t, q, v: None), TypeError, "returned None"),
    (SampleAndHold(lambda t, q, v: [1.0, 2.0]), sarrus.ShapeError, r"returned shape \(2,\)"),
    (
        SampleAndHold(lambda t, q, v: ([0.0], {"tip": np.ones(6)})),
        TypeError,
        "in SampleAndHold returned wrenches; expected efforts",
    ),
    (
        SampleAndHold(PID("pivot"), quantisation=-0.1),
        sarrus.ModelError,
        "position of Quantisation must not be negative",
    ),
    (SampleAndHold(PID("pivot"), quantisation=Quantisation(effort={"elbow": 1.0})), sarrus.NameNotFoundError, "elbow"),
    (
        SampleAndHold(PID("pivot"), quantisation="fine"),
        sarrus.ModelError,
        "position of Quantisation must be a finite number",
    ),
    (
        EffortTable([0.0, 0.1], [[1.0]]),
        sarrus.ShapeError,
        r"u of EffortTable must be \(n, m\) = \(2, 1\) .*got \(1, 1\)",
    ),
    (EffortTable([0.1, 0.1], [[1.0], [2.0]]), sarrus.ModelError, "times of EffortTable must increase"),
    (
        EffortTable([], np.zeros((0, 1))),
        sarrus.ShapeError,
        r"times of EffortTable must be \(n,\), the same in all runs; got \(0,\)",
    ),
    (EffortTable([0.0], [[np.nan]]), sarrus.ModelError, "u of EffortTable must be finite"),
    (
        EffortTable([0.0], [[1.0]], joints="pivot"),
        TypeError,
        "joints of EffortTable must be a sequence of names; got 'pivot'",
    ),
    (EffortTable([0.0], np.ones((3, 1, 1))), sarrus.ShapeError, "simulate_many"),
    (ActuatorModel("pivot"), sarrus.ModelError, "'pivot' has no effect: pass time_constant"),
    (ActuatorModel("pivot", 0.1, 3.0), sarrus.ModelError, "got both"),
    (ActuatorModel("pivot", 0.0), sarrus.ModelError, "time_constant of ActuatorModel must be positive; got 0.0"),
    (
        ActuatorModel("pivot", torque_speed=3.0),
        sarrus.ModelError,
        "torque_speed of ActuatorModel must be .*got 3.0",
    ),
    (ActuatorModel("pivot", torque_speed=(1.0, -2.0)), sarrus.ModelError, "torque_speed .* must be positive"),
    (
        ActuatorModel("pivot", 0.1, gear_ratio=0.0),
        sarrus.ModelError,
        "gear_ratio of ActuatorModel must be positive",
    ),
    ([ActuatorModel("pivot", 0.1)] * 2, sarrus.ModelError, "joint 'pivot' has several ActuatorModel"),
]


@pytest.mark.parametrize(("element", "error", "message"), BAD_ELEMENTS)
def test_bad_elements(element, error, message):
    with pytest.raises(error, match=message):
        pendulum_runs(controller=element)


@pytest.mark.parametrize(
    ("element", "error", "message"),
    [
        (PID("pin2", index=1), sarrus.ModelError, "'pin2' has 1 coordinates; index 1 is out of range"),
        (PID("moter"), sarrus.NameNotFoundError, "did you mean 'motor'"),
        (ComputedTorque({}), sarrus.ModelError, "targets of ComputedTorque .*determine 0 of 1 degrees of freedom"),
        (PDPlus({"motor": 0.5, "pin1": 1.0}), sarrus.ModelError, "targets of PDPlus .*motor, pin1 are not independent"),
        (ComputedTorque({"pin2": 0.5}), sarrus.ModelError, "'pin2' closes a loop and has no target of ComputedTorque"),
        (ComputedTorque({"motor": 0.5}, [1.0, 2.0]), sarrus.ShapeError, r"proportional of ComputedTorque .*got \(2,\)"),
    ],
)
def test_bad_elements_where_loops_close(element, error, message):
    with pytest.raises(error, match=message):
        sarrus.simulate(*four_bar(), 1.0, element)


@pytest.mark.parametrize(("mass", "sinking", "damped"), [(8.0, 2e-3, 0.3), (0.5, 1e-2, 0.1), (300.0, 1e-4, 0.5)])
def test_how_stiff_a_ground(mass, sinking, damped):
    """The choice by docs/contact.md: penetration, frequency and damping are as stated."""
    b = sarrus.Builder("box")
    b.add_body("box", sarrus.Inertia.sphere(mass, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "box")
    rate = np.sqrt(1.5 * 9.81 / sinking)
    ground = CompliantContact("box", stiffness=9.81 * mass / sinking**1.5, dissipation=2.0 * damped * rate / 9.81)
    start = np.array([0, 0, 0, 1, 0, 0, -sinking * 1.001])
    run = sarrus.simulate(b.build(), start, np.zeros(6), 8.0 / rate, ground, dt=0.01 / rate, method="rk4")
    decay, swing = damped * rate, rate * np.sqrt(1.0 - damped**2)
    expected = np.exp(-decay * run.t) * (np.cos(swing * run.t) + decay / swing * np.sin(swing * run.t))
    assert_allclose((-run.q[:, 6] / sinking - 1.0) / 1e-3, expected, atol=2e-3)  # linear to a thousandth


def test_how_fast_what_falls_returns():
    b = sarrus.Builder("ball", gravity=(0.0, 0.0, 0.0))
    b.add_body("ball", sarrus.Inertia.sphere(8.0, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    stiffness = 8.0 * 9.81 / 2e-3**1.5
    for speed, dissipation, told in ((0.1, 0.5, 0.968), (0.5, 0.5, 0.86)):
        ground = CompliantContact("ball", stiffness=stiffness, dissipation=dissipation, friction=0.0)
        run = sarrus.simulate(b.build(), [0, 0, 0, 1, 0, 0, 0.0], [0, 0, 0, 0, 0, -speed], 0.2, ground, dt=1e-4, method="rk4")  # fmt: skip
        assert_allclose(run.v[-1, 5] / speed, told, atol=4e-3)
    ground = CompliantContact("ball", stiffness=stiffness, dissipation=0.0, friction=0.0)
    run = sarrus.simulate(b.build(), [0, 0, 0, 1, 0, 0, 0.0], [0, 0, 0, 0, 0, -1.0], 0.1, ground, dt=1e-4, method="rk4")
    assert_allclose(-run.q[:, 6].min(), (1.25 / 9.81 * 2e-3**1.5) ** 0.4, rtol=1e-3)
    assert_allclose(-run.q[:, 6].min(), 0.011, atol=5e-4)
