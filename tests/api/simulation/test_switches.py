"""Clutches, brakes and welds that engage, slip and release during a run, against closed form and conservation laws."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import laws
from sarrus.control import PID, Clutch, ComputedTorque, FeedforwardEffort, Lock, SampleAndHold, Weld

ROUNDING = 1e-12  # relative rounding of 1,000 steps, and of an event within a step
FIRST, SECOND = 0.3, 0.5  # inertias of the discs [kg m2]


def discs(**options):
    """Return two discs on one shaft line, without gravity."""
    b = sarrus.Builder("discs", gravity=(0, 0, 0))
    for name, inertia in (("first", FIRST), ("second", SECOND)):
        b.add_body(name, sarrus.Inertia(1.0, (0, 0, 0), inertia * np.eye(3)))
        b.add_joint(f"{name}_axle", sarrus.Revolute("z", **options), "ground", name)
    return b.build()


def clutch(**options):
    return Clutch("first_axle", "second_axle", **options)


def satellites():
    b = sarrus.Builder("satellites", gravity=(0, 0, 0))
    for name, mass in (("chaser", 100.0), ("target", 30.0)):
        b.add_body(name, sarrus.Inertia.box(mass, (1.0, 1.0, 1.5)))
        b.add_joint(f"{name}_motion", sarrus.Free(), "ground", name)
    robot = b.build()
    q = robot.normalize(np.array([0.0, 0, 0, 1, 0, 0, 0, 0.1, 0.2, 0, 0.9, 2.0, 0.3, 0.1]))
    return robot, q, np.array([0.1, 0, 0.2, 0.5, 0, 0, -0.2, 0.3, 0, 0, 0.1, 0])


def changes(run):
    return [(x["name"], x["change"]) for x in run.statistics["switches"]]


def times(run):
    return [x["time"] for x in run.statistics["switches"]]


def jumps(run):
    """Return the indices of the samples before the changes."""
    return np.flatnonzero(np.diff(run.t) == 0.0)


# ---- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, -2.5])
def test_a_clutch_without_capacity_engages_by_an_impulse(ratio):
    """v1 = ratio v2 afterwards; the momentum ratio I1 v1 + I2 v2 does not change, because the impulses are (p, -ratio p)."""
    run = sarrus.simulate(discs(), [0.0, 0.0], [10.0, -2.0], 1.0, clutch(ratio=ratio, on=0.3337))
    second = (ratio * FIRST * 10.0 - SECOND * 2.0) / (ratio**2 * FIRST + SECOND)
    assert_allclose(run.v[-1], [ratio * second, second], rtol=ROUNDING)
    k = jumps(run)[0]
    assert run.t[k] == run.t[k + 1] == 0.3337  # to the bit
    assert_array_equal(run.v[k], [10.0, -2.0])
    lost = 0.5 * (FIRST * 100.0 + SECOND * 4.0 - (ratio**2 * FIRST + SECOND) * second**2)
    change = run.statistics["switches"][0]
    assert_allclose(change["energy_lost"], lost, rtol=ROUNDING)
    assert_allclose(run.kinetic_energy[k] - run.kinetic_energy[-1], lost, rtol=ROUNDING)
    assert_allclose(change["impulse"], FIRST * (ratio * second - 10.0), rtol=ROUNDING)
    assert_allclose(run.q[-1, 0] - run.q[k, 0], ratio * (run.q[-1, 1] - run.q[k, 1]), rtol=ROUNDING)


@pytest.mark.parametrize("times", [None, [0.0, 0.4, 1.0], [0.4, 1.0]])
@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit_midpoint", "contact"])
@pytest.mark.parametrize("on", [None, 0.0])
def test_an_impulse_at_the_start_has_two_samples(on, method, times):
    """The first sample is the given state, so that the change of energy equals the work, as for an impulse during the run."""
    robot, q, v = satellites()
    runs = [
        (discs(), [0.0, 0.0], [10.0, -2.0], clutch(on=on)),
        (discs(friction=0.1), [0.0, 0.0], [10.0, -2.0], [clutch(on=on), Lock("first_axle", on=on)]),
        (robot, q, v, Weld("chaser", "target", on=on)),
    ]
    for mechanism, start, speed, switches in runs:
        half = sarrus.Event(lambda t, q, v: t - 0.5, "half", terminal=False)
        run = sarrus.simulate(mechanism, start, speed, 1.0, switches, method=method, dt=1e-2, times=times, events=half)
        assert_allclose(run.events["half"], [0.5], rtol=ROUNDING)
        lost = sum(x["energy_lost"] for x in run.statistics["switches"])
        assert lost > 0.0
        if times is None:
            assert_array_equal(jumps(run), [0])
            assert_allclose(run.energy[0] - run.energy[1], lost, rtol=ROUNDING)
        else:
            assert_array_equal(run.t, times)
        if times is None or times[0] == 0.0:
            assert_array_equal(run.v[0], speed)
            assert_allclose(run.energy[-1] - run.energy[0], run.statistics["work"], rtol=1e-9)


@pytest.mark.parametrize("capacity", [np.inf, 5.0])
def test_a_lock_at_rest_at_the_start_has_one_sample(capacity):
    run = sarrus.simulate(discs(), [0.0, 0.0], [0.0, 0.0], 0.1, Lock("first_axle", capacity=capacity))
    assert len(jumps(run)) == 0


@pytest.mark.parametrize(
    ("ratio", "method"), [(1.0, "rk4"), (-2.5, "rk4"), (1.0, "dopri5"), (1.0, "contact"), (1.0, "implicit_midpoint")]
)
def test_a_slipping_clutch_locks_in_closed_form(ratio, method):
    """The relative speed falls by C (1/I1 + ratio^2/I2) per second; the clutch dissipates C times the mean relative speed times the time."""
    C, speed = 1.5, 10.0 + 2.0 * ratio
    run = sarrus.simulate(
        discs(), [0.0, 0.0], [10.0, -2.0], 3.0, clutch(ratio=ratio, capacity=C, on=0.3337), method=method
    )
    duration = abs(speed) / (C * (1.0 / FIRST + ratio**2 / SECOND))
    assert changes(run) == [("Clutch(first_axle, second_axle)", "slips"), ("Clutch(first_axle, second_axle)", "locks")]
    assert_allclose(times(run), [0.3337, 0.3337 + duration], rtol=ROUNDING)
    second = (ratio * FIRST * 10.0 - SECOND * 2.0) / (ratio**2 * FIRST + SECOND)
    assert_allclose(run.v[-1], [ratio * second, second], rtol=ROUNDING)
    assert_allclose(run.statistics["work"], -0.5 * C * abs(speed) * duration, rtol=ROUNDING)
    slip = (run.t > 0.34) & (run.t < 0.35)
    assert_allclose(
        run.tau[slip], np.broadcast_to(-C * np.sign(speed) * np.array([1.0, -ratio]), run.tau[slip].shape), rtol=0.0
    )


def test_a_brake_slips_at_its_capacity_and_holds_below_it():
    """A load 2 t on a brake of 1.5 N m: it slips from t = 0.75 s; v = (t^2 - 0.75^2 - 1.5 (t - 0.75)) / I. Then the load decreases."""
    load = FeedforwardEffort("first_axle", laws.polynomial(0.0, 2.0))
    run = sarrus.simulate(discs(), [0.0, 0.0], [0.0, 0.0], 2.0, [load, Lock("first_axle", capacity=1.5)])
    assert changes(run) == [("Lock(first_axle)", "locks"), ("Lock(first_axle)", "slips")]
    assert_allclose(
        times(run)[1], 0.75, rtol=2e-11
    )  # brakes at rest have a relative compliance of 1e-11 (friction.hpp)
    assert_allclose(run.v[-1, 0], (4.0 - 0.75**2 - 1.5 * 1.25) / FIRST, rtol=2e-11)
    k = jumps(run)[-1]
    assert np.abs(run.v[:k, 0]).max() < 1e-30
    assert_allclose(run.tau[:k, 0], 0.0, atol=ROUNDING)  # load and brake
    assert_allclose(run.a[k + 1 :, 0], (2.0 * run.t[k + 1 :] - 1.5) / FIRST, rtol=ROUNDING, atol=ROUNDING)


def test_a_brake_that_stops_a_swing_slips_back_if_the_load_exceeds_it():
    """A pendulum with m g l = 9.81 N m at 1 rad: a brake of 5 N m is weaker than gravity, and one of 9 N m holds."""
    robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    for capacity, expected in ((5.0, ["slips", "slips"]), (9.0, ["slips", "locks"])):
        run = sarrus.simulate(robot, [0.9], [1.5], 0.4, Lock("pivot", capacity=capacity))
        assert [change for _, change in changes(run)] == expected
        top = jumps(run)[0]
        assert_allclose(run.v[top], 0.0, atol=1e-12)
        gravity = -9.81 * np.sin(run.q[top + 1, 0])
        assert_allclose(run.a[top + 1, 0] * 0.5, min(0.0, gravity + capacity), atol=1e-10)
        stop = (
            run.kinetic_energy[0]
            - (run.potential_energy[top] - run.potential_energy[0])
            - capacity * (run.q[top, 0] - 0.9)
        )
        assert abs(stop) < 1e-10  # energy of the motion until the stop; rk4 with steps of 1 ms


def test_a_brake_of_a_slider_lets_the_crank_pass_its_dead_centres():
    """At a dead centre the speed of the slider is zero, but no brake stops the crank there. The brake dissipates C for each metre of the slider."""
    b = sarrus.mechanisms.slider_crank().to_builder()
    robot = sarrus.Mechanism(dataclasses.replace(b.build().description, gravity=(0.0, 0.0, 0.0)))
    q = robot.assemble(fixed={"motor": 0.4})
    run = sarrus.simulate(robot, q, robot.complete_velocity(q, {"motor": 20.0}), 1.0, Lock("guide", capacity=2.0))
    assert [change for _, change in changes(run)] == ["slips"] * 6  # in the other direction after each dead centre
    way = np.abs(np.diff(run.joint("guide")[:, 0])).sum()
    assert_allclose(run.energy[-1] - run.energy[0], -2.0 * way, rtol=1e-7)  # rk4 with steps of 1 ms
    assert run.v[-1, 0] > 10.0


def test_docking_conserves_momentum_and_separation_changes_no_velocity():
    robot, q, v = satellites()
    run = sarrus.simulate(robot, q, v, 3.0, Weld("chaser", "target", on=0.5, off=2.0), method="implicit_midpoint")
    dock, part = jumps(run)
    assert run.t[dock] == 0.5
    assert run.t[part] == 2.0
    size = np.abs(run.momentum[0]).max()
    assert_allclose(run.momentum, np.broadcast_to(run.momentum[0], run.momentum.shape), atol=ROUNDING * size)
    assert_array_equal(run.v[part], run.v[part + 1])
    T = run.kinetic_energy
    assert_allclose(run.statistics["switches"][0]["energy_lost"], T[dock] - T[dock + 1], rtol=ROUNDING)
    relative = np.linalg.inv(run.frame("chaser")) @ run.frame("target")
    assert_allclose(
        relative[dock : part + 1], np.broadcast_to(relative[dock], relative[dock : part + 1].shape), atol=1e-13
    )
    # the wrenches of the weld on both bodies accelerate them as the weld does
    assert_allclose(run.a, robot.forward_dynamics(run.q, run.v, run.tau, wrenches=run.wrenches), atol=ROUNDING)
    # by hand: the impulse on the target is the change of its momentum, in its axes
    after, before = run.v[dock + 1, 6:], run.v[dock, 6:]
    assert_allclose(
        run.statistics["switches"][0]["impulse"], robot.mass_matrix(run.q[dock])[6:, 6:] @ (after - before), atol=1e-10
    )


def test_a_separating_pair_has_the_common_velocity():
    """Two welded masses, pushed with 6 N for a second: 1.2 m/s; released, the pushed one accelerates alone."""
    b = sarrus.Builder("stages", gravity=(0, 0, 0))
    for name, mass in (("upper", 2.0), ("lower", 3.0)):
        b.add_body(name, sarrus.Inertia.sphere(mass, 0.1))
        b.add_joint(f"{name}_rail", sarrus.Prismatic("x"), "ground", name)
    run = sarrus.simulate(
        b.build(), [0.0, 0.0], [0.0, 0.0], 2.0, [FeedforwardEffort("upper_rail", 6.0), Weld("upper", "lower", off=1.0)]
    )
    assert_allclose(run.v[-1], [1.2 + 6.0 / 2.0, 1.2], rtol=ROUNDING)
    assert_allclose(run.wrenches["lower"][10], [0, 0, 0, 6.0 * 3.0 / 5.0, 0, 0], atol=ROUNDING)


def test_a_weld_breaks_at_its_capacity():
    """A mass hangs on a weld; its load grows by 10 N/s from 19.62 N, and the weld breaks at 25 N."""
    b = sarrus.Builder("hook")
    b.add_body("mass", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("rail", sarrus.Prismatic("z"), "ground", "mass")
    robot, pull = b.build(), FeedforwardEffort("rail", laws.polynomial(0.0, -10.0))
    run = sarrus.simulate(robot, [0.0], [0.0], 1.0, [pull, Weld("ground", "mass", capacity=(np.inf, 25.0))])
    assert changes(run) == [("Weld(ground, mass)", "locks"), ("Weld(ground, mass)", "releases")]
    assert_allclose(times(run)[1], (25.0 - 19.62) / 10.0, rtol=10.0 * ROUNDING)
    run = sarrus.simulate(robot, [0.0], [0.0], 0.5, Weld("ground", "mass", capacity=(np.inf, 19.0)))
    assert times(run) == [0.0, 0.0]  # it cannot hold the weight


# ---- laws for mechanisms with loops -----------------------------------------------------------------------------------


def rocker():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return robot, q, robot.complete_velocity(q, {"motor": 6.0})


@pytest.mark.parametrize(
    "method", ["rk4", "rkmk4", "semi_implicit", "dopri5", "implicit_midpoint", "independent", "rosenbrock", "contact"]
)
def test_locks_of_a_linkage_hold_it_with_every_method(method):
    robot, q, v = rocker()
    run = sarrus.simulate(robot, q, v, 0.6, Lock("pin1", on=0.2501, off=0.4), method=method)
    k = jumps(run)[0]
    still = (run.t > 0.2501) & (run.t < 0.4)
    assert np.abs(run.v[still]).max() < 1e-14
    assert np.abs(run.v[-1]).max() > 0.1
    assert run.loop_error.max() < 1e-12
    # first-order steps project velocities by the metric at their beginning, and the impact completes that
    rtol = 1e-4 if method == "semi_implicit" else 1e-10
    assert_allclose(
        run.statistics["switches"][0]["energy_lost"], run.kinetic_energy[k] - run.kinetic_energy[k + 1], rtol=rtol
    )
    # forces of locks are efforts and wrenches of the trajectory
    again = robot.forward_dynamics(run.q, run.v, run.tau, wrenches=run.wrenches, check=False)
    assert_allclose(run.a, again, atol=1e-10 if method != "contact" else 1e-8)


@pytest.mark.parametrize("joint", ["motor", "pin1", "pivot", "pin2"])
def test_the_impulse_of_a_lock_minimises_the_change_in_the_metric_of_the_mass(joint):
    """A linkage with one degree of freedom stops, whichever joint locks: it loses all its energy. A loop joint locks by a redundant weld."""
    robot, q, v = rocker()
    run = sarrus.simulate(robot, q, v, 0.3, Lock(joint, on=0.2501))
    k = jumps(run)[0]
    assert_allclose(run.statistics["switches"][0]["energy_lost"], run.kinetic_energy[k], rtol=ROUNDING)
    assert np.abs(run.v[k + 1 :]).max() < 1e-14


def test_redundant_locks_share_the_load_by_least_norm():
    robot, q, v = rocker()
    run = sarrus.simulate(robot, q, v, 0.3, [Lock(joint, on=0.25) for joint in robot.joints])
    total = sum(x["energy_lost"] for x in run.statistics["switches"])
    assert_allclose(total, run.kinetic_energy[jumps(run)[0]], rtol=ROUNDING)
    assert np.abs(run.v[-1]).max() < 1e-14
    assert np.isfinite(run.tau).all()


@pytest.mark.parametrize("held", [("upper",), ("lower",), ("upper", "lower")])
@pytest.mark.parametrize("method", ["contact", "rk4"])
@pytest.mark.parametrize("arm", [0.0, 0.5])
def test_locks_hold_joints_with_dry_friction(held, method, arm):
    """The friction of a locked joint is indeterminate. If all joints are locked, velocities of the joints are rounding errors."""
    b = sarrus.Builder("two links")
    for name in ("first", "second"):
        b.add_body(name, sarrus.Inertia(1.0, (arm, 0, 0), 0.1 * np.eye(3)))
    b.add_joint("upper", sarrus.Revolute("y", friction=0.3), "ground", "first")
    b.add_joint("lower", sarrus.Revolute("y", friction=0.1), "first", "second", at_parent=(1, 0, 0))
    robot, q = b.build(), np.array([0.0, 0.5])
    run = sarrus.simulate(robot, q, [0.0, 0.0], 0.3, [Lock(joint) for joint in held], method=method)
    moved = dict(zip(robot.joints, abs(run.q - q).max(axis=0), strict=True))
    assert all(moved[joint] < 1e-15 for joint in held)
    assert all(moved[joint] > 0.1 for joint in robot.joints if joint not in held and (arm or joint == "upper"))


@pytest.mark.parametrize(
    "joint",
    [
        sarrus.Planar("z"),
        sarrus.Spherical(),
        sarrus.Free(),
        sarrus.Universal("x", "y"),
        sarrus.Cylindrical("z"),
        sarrus.Helical("z", pitch=0.1),
    ],
    ids=lambda joint: joint.kind,
)
def test_every_joint_type_locks(joint):
    b = sarrus.Builder("pair")
    b.add_body("carrier", sarrus.Inertia.box(1.0, (0.3, 0.2, 0.1)))
    b.add_body("wheel", sarrus.Inertia(1.0, (0.1, 0.2, 0.3), np.eye(3)))
    b.add_joint("joint", joint, "ground", "carrier")
    b.add_joint("axle", sarrus.Revolute("x"), "carrier", "wheel", at_parent=(0.1, 0.2, 0))
    robot, rng = b.build(), np.random.default_rng(1)
    q, v = robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    run = sarrus.simulate(robot, q, v, 0.5, Lock("joint", on=0.2))
    k = jumps(run)[0]
    assert np.abs(run.v[k + 1 :, robot.joint("joint").v_slice]).max() < 1e-14
    assert np.ptp(run.energy[k + 1 :]) < 1e-9
    assert_allclose(
        run.statistics["switches"][0]["energy_lost"], run.kinetic_energy[k] - run.kinetic_energy[k + 1], atol=1e-13
    )


def test_bearing_loads_during_a_weld_are_those_of_a_built_weld():
    robot = sarrus.mechanisms.double_pendulum()
    run = sarrus.simulate(robot, [0.4, 0.3], [0.5, -1.0], 0.2, Weld("ground", "upper", on=0.1), method="dopri5")
    b = robot.to_builder()
    b.add_joint(
        "weld",
        sarrus.Fixed(),
        "ground",
        "upper",
        at_parent=sarrus.Transform.from_matrix(robot.pose(run.q[-1], "upper")),
        loop=True,
    )
    expected = b.build().joint_wrenches(run.q[-1], run.v[-1], run.a[-1], actuated=[])
    assert_allclose(run.joint_wrenches(actuated=["shoulder"])["elbow"][-1], expected["elbow"], atol=1e-10)
    assert_allclose(
        run.wrenches["upper"][-1], expected["weld"], atol=1e-6
    )  # least norm with the shoulder, which has 5 of these 6 rows


def test_controllers_use_the_mechanism_without_locks():
    """Computed torque of a free arm: as long as the elbow is locked, its motor has the effort of the unlocked arm."""
    robot = sarrus.mechanisms.double_pendulum()
    law = ComputedTorque({"shoulder": 0.5, "elbow": 0.1})
    run = sarrus.simulate(robot, [0.3, 0.2], [0.0, 0.0], 0.3, [law, Lock("elbow")])
    q, v, tau = run.q[-1], run.v[-1], run.tau[-1]
    a = -20.0 * v + 100.0 * (np.array([0.5, 0.1]) - q)
    assert_allclose(tau[0], robot.inverse_dynamics(q, v, a)[0], rtol=1e-12)


# ---- events, times and samples ----------------------------------------------------------------------------------------


def test_switches_at_events_and_at_times_to_the_bit():
    robot, q, v = rocker()
    passed = sarrus.Event(lambda t, q, v: q[0] - 1.0, name="passed", terminal=False)
    run = sarrus.simulate(robot, q, v, 0.5, Lock("motor", on=lambda t, q, v: q[0] - 1.5, off=0.3333), events=passed)
    on, off = jumps(run)
    assert_allclose(run.q[on, 0], 1.5, rtol=1e-14)
    assert run.t[off] == 0.3333
    assert_allclose(run.events["passed"], sarrus.simulate(robot, q, v, 0.5, events=passed).events["passed"], rtol=1e-13)
    requested = np.linspace(0.0, 0.5, 11)
    assert_array_equal(
        sarrus.simulate(robot, q, v, 0.5, Lock("motor", on=0.1234, off=0.25), times=requested).t, requested
    )
    ended = sarrus.simulate(robot, q, v, 0.5, Lock("motor", on=0.2), events=lambda t, q, v: t - 0.31)
    assert ended.status == "terminated: event"
    assert_allclose(ended.t[-1], 0.31, rtol=1e-14)


def test_gears_shift():
    """Two clutches with ratios 3 and 1 alternate; momentum about the shafts as by hand."""
    low, high = clutch(ratio=3.0, on=[0.1, 0.5], off=[0.3], name="low"), clutch(on=0.3, off=0.5, name="high")
    run = sarrus.simulate(discs(), [0.0, 0.0], [9.0, 0.0], 0.7, [low, high])
    v = np.array([9.0, 0.0])
    for ratio in (3.0, 1.0, 3.0):
        second = (ratio * FIRST * v[0] + SECOND * v[1]) / (ratio**2 * FIRST + SECOND)
        v = np.array([ratio * second, second])
    assert_allclose(run.v[-1], v, rtol=ROUNDING)
    assert changes(run) == [
        ("low", "locks"),
        ("high", "locks"),
        ("low", "releases"),
        ("low", "locks"),
        ("high", "releases"),
    ]


def test_internal_states_of_controllers_continue():
    """A switch of a separate disc changes neither a digital controller with a delay, nor an integral; 0.2 s and 0.45 s are steps of the run."""
    b = sarrus.mechanisms.double_pendulum().to_builder()
    b.add_body("disc", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("axle", sarrus.Revolute("y"), "ground", "disc")
    robot, pid = b.build(), PID("elbow", 10.0, 5.0, 1.0, target=1.0)
    for law in (pid, SampleAndHold(pid, period=5e-3, delay=2e-3)):
        run, alone = (
            sarrus.simulate(robot, [0.3, 0.2, 0.0], [0.0, 0.0, 0.0], 0.6, [law, *locks])
            for locks in ([Lock("axle", on=0.2, off=0.45)], [])
        )
        assert_allclose(run.q[-1], alone.q[-1], atol=1e-13)
        assert_allclose(run.internal_state[-1], alone.internal_state[-1], atol=1e-12)


def test_a_gripper_lifts_a_box_off_the_ground():
    b = sarrus.Builder("pick")
    for body, mass in (("hand", 2.0), ("box", 1.0)):
        b.add_body(body, sarrus.Inertia.box(mass, (0.2, 0.2, 0.2)))
    b.add_joint("lift", sarrus.Prismatic("z"), "ground", "hand", actuated=True)
    b.add_joint("motion", sarrus.Free(), "ground", "box")
    b.add_shape("ground", sarrus.shapes.Plane())
    b.add_shape("box", sarrus.shapes.Box((0.2, 0.2, 0.2)))
    b.set_home({"motion": [0, 0, 0, 1, 0, 0, 0.1001]})
    robot = b.build()
    servo = PID("lift", 2000.0, 0.0, 200.0, target=sarrus.control.rest_to_rest(0.35, 0.8, 0.5))
    q = np.array([0.35, 0, 0, 0, 1, 0, 0, 0.1])
    run = sarrus.simulate(
        robot, q, np.zeros(robot.nv), 1.2, [servo, Weld("hand", "box", on=0.1, off=0.8)], method="contact"
    )
    height = run.frame("box")[:, 2, 3]
    assert height[run.t < 0.8].max() > 0.4
    assert_allclose(height[[0, -1]], 0.1, atol=1e-6)  # it lies on the ground before and afterwards
    assert_allclose(run.contacts.force[-4:, 2].sum(), -9.81, rtol=1e-3)


def test_results_are_saved_and_limits_are_reported_once(tmp_path):
    robot = discs(velocity_limit=5.0)
    with pytest.warns(sarrus.LimitWarning) as warned:
        run = sarrus.simulate(robot, [0.0, 0.0], [10.0, -2.0], 1.0, clutch(on=[0.2, 0.6], off=0.4))
    assert len(warned) == 1
    assert [limit["joint"] for limit in run.statistics["limits"]] == ["first_axle"]
    run.save(tmp_path / "run.npz")
    again = sarrus.Trajectory.load(tmp_path / "run.npz", robot)
    assert again.statistics["switches"] == run.statistics["switches"]
    assert_array_equal(again.tau, run.tau)


# ---- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Lock(3), TypeError, "joint of a Lock"),
        (lambda: Lock("a", capacity=-1.0), ValueError, "capacity"),
        (lambda: Lock("a", capacity="big"), TypeError, "capacity"),
        (lambda: Lock("a", on=np.nan), ValueError, "finite"),
        (lambda: Lock("a", on=[[1.0]]), sarrus.ShapeError, "times"),
        (lambda: Lock("a", on="now"), sarrus.ShapeError, "on must be"),
        (lambda: Lock("a", on=[1.0, 2.0]), ValueError, "alternate"),
        (lambda: Lock("a", on=1.0, off=0.5), ValueError, "alternate"),
        (lambda: Lock("a", on=1.0, off=1.0), ValueError, "alternate"),
        (lambda: Lock("a", name=3), TypeError, "name"),
        (lambda: Clutch("a", "b", ratio=0.0), ValueError, "Lock for one joint"),
        (lambda: Clutch("a", "a"), ValueError, "another joint"),
        (lambda: Weld("a", "b", capacity=3.0), sarrus.ShapeError, r"\(moment, force\)"),
        (lambda: Weld("a", "b", capacity=(1.0, np.nan)), ValueError, "capacity"),
        (lambda: Weld("a", None), TypeError, "child of a Weld"),
    ],
)
def test_wrong_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_switches_that_do_not_fit_the_mechanism():
    robot, start = sarrus.mechanisms.double_pendulum(), ([0.3, 0.2], [0.0, 0.0], 0.1)
    for switches, error, message in (
        (Lock("knee"), sarrus.NameNotFoundError, "knee"),
        (Weld("ground", "hand"), sarrus.ModelError, "body 'hand', which does not exist"),
        (Weld("lower", "lower"), sarrus.ModelError, "itself"),
        (Clutch("elbow", "knee"), sarrus.NameNotFoundError, "knee"),
        (Clutch(("elbow", 3), "shoulder"), sarrus.ModelError, "elbow"),
        ([Lock("elbow"), Lock("elbow")], ValueError, "pass name="),
        (
            Lock("elbow", name="shoulder"),
            ValueError,
            "a switch has the name of a joint or a constraint, 'shoulder'; expected another name=",
        ),
    ):
        with pytest.raises(error, match=message):
            sarrus.simulate(robot, *start, switches)
    fourbar, q, v = rocker()
    with pytest.raises(sarrus.ModelError, match="capacity"):
        sarrus.simulate(fourbar, q, v, 0.1, Lock("pin2", capacity=1.0))
    with pytest.raises(sarrus.ModelError, match="pin2"):
        sarrus.simulate(fourbar, q, v, 0.1, Clutch("motor", "pin2"))


def test_unsupported_uses_name_the_cure():
    robot, lock = sarrus.mechanisms.double_pendulum(), Lock("elbow")
    with pytest.raises(sarrus.ModelError, match=r"call simulate\(\) for each run"):
        sarrus.simulate_many(robot, [0.3, 0.2], [0.0, 0.0], 0.1, lock)
    with pytest.raises(sarrus.ModelError, match=r"simulate\(\)"):
        sarrus.simulate(robot, [0.3, 0.2], [0.0, 0.0], 0.1, SampleAndHold([lock], period=0.01))
    with pytest.raises(ValueError, match="sensitivities"):
        sarrus.simulate(robot, [0.3, 0.2], [0.0, 0.0], 0.1, lock, sensitivities=())
    run = sarrus.simulate(robot, [0.3, 0.2], [0.0, 0.0], 0.1, lock)
    with pytest.raises(sarrus.ModelError, match="switches"):
        sarrus.simulate(robot, duration=0.1, resume=run)


def test_locks_against_a_prescribed_motion_are_errors():
    b = sarrus.mechanisms.double_pendulum().to_builder()
    b.add_prescribed_motion("drive", "shoulder", laws.harmonic(0.3, 2.0))
    robot = b.build()
    with pytest.raises(sarrus.StateError, match=r"Lock\(shoulder\): cannot engage at t = 0.05"):
        sarrus.simulate(
            robot,
            robot.assemble(),
            robot.project_velocity(robot.assemble(), [0.0, 0.0]),
            0.1,
            Lock("shoulder", on=0.05),
        )


def test_many_random_switches_conserve_what_they_must():
    """Angular momentum of three discs with four clutches; the energy falls at each impulse by the energy that it reports."""
    b = sarrus.Builder("discs", gravity=(0, 0, 0))
    inertia = np.array([0.2, 0.5, 0.8])
    for k, x in enumerate(inertia):
        b.add_body(f"disc{k}", sarrus.Inertia(1.0, (0, 0, 0), x * np.eye(3)))
        b.add_joint(f"axle{k}", sarrus.Revolute("z"), "ground", f"disc{k}")
    robot, rng = b.build(), np.random.default_rng(3)
    pairs = list(itertools.combinations(range(3), 2))
    switches = [
        Clutch(f"axle{i}", f"axle{j}", capacity=capacity, on=on, off=on + 0.2)
        for (i, j), on, capacity in zip(pairs, rng.uniform(0.0, 0.4, 3), (np.inf, 2.0, np.inf), strict=True)
    ]
    run = sarrus.simulate(robot, np.zeros(3), rng.normal(size=3), 1.0, switches)
    assert_allclose(run.v @ inertia, run.v[0] @ inertia, rtol=1e-11)
    assert_allclose(run.energy[-1] - run.energy[0], run.statistics["work"], rtol=1e-10)


def test_impulses_of_prescribed_motions_do_work():
    """The drive of a prescribed speed supplies energy when a clutch engages: the work is the change of kinetic energy."""
    b = sarrus.Builder("discs", gravity=(0, 0, 0))
    for name in ("a", "b"):
        b.add_body(name, sarrus.Inertia(1.0, (0, 0, 0), 0.1 * np.eye(3)))
        b.add_joint(f"j{name}", sarrus.Revolute("z"), "ground", name)
    b.add_prescribed_motion("drive", "ja", sarrus.laws.polynomial([0.0, 5.0]))
    run = sarrus.simulate(b.build(), [0.0, 0.0], [5.0, 1.0], 0.5, Clutch("ja", "jb", on=0.3))
    assert_allclose(run.v[-1], 5.0, rtol=1e-12)
    assert_allclose(run.statistics["work"], 0.5 * 0.1 * (5.0**2 - 1.0), rtol=1e-9)


@pytest.mark.parametrize("times", [[0.25], [1.0, 1.75], [2.0]])
def test_samples_at_given_times(times):
    """A clutch with a capacity ends the slipping at 1.75 s, between the requested times."""
    both = clutch(capacity=0.5, on=0.25)
    run = sarrus.simulate(discs(), [0.0, 0.0], [5.0, 1.0], 2.0, both, times=times)
    assert run.t.tolist() == times


def test_contacts_of_welded_bodies_keep_their_names():
    """Shapes of welded bodies may stand before others in the order of pairs."""
    b = sarrus.Builder("spheres")
    for name in "AB":
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(f"free {name}", sarrus.Free(), "ground", name)
        b.add_shape(name, sarrus.shapes.Sphere(0.1), friction=0.5)
    b.add_shape("ground", sarrus.shapes.Plane(), friction=0.5)
    b.set_home({"free A": (0, 0, 0, 1, 0, 0, 0.1), "free B": (0, 0, 0, 1, 0.3, 0, 0.1)})
    robot = b.build()
    q = robot.assemble()
    run = sarrus.simulate(robot, q, np.zeros(12), 0.1, Weld("A", "B"), method="contact")
    assert_allclose(run.a[-1], 0.0, atol=1e-6)
    assert_allclose(run.v[-1], 0.0, atol=1e-9)
