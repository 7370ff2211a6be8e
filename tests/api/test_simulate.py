"""simulate() and simulate_many(): orders, energies, loops, events, checkpoints, what acts, and what callers may get wrong."""

import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import control, mechanisms

FIXED = ("euler", "semi_implicit", "rk4", "rkmk4", "implicit_midpoint", "independent")
ORDER = {"euler": 1, "semi_implicit": 1, "rk4": 4, "rkmk4": 4, "implicit_midpoint": 2, "independent": 4}


def four_bar(speed=6.0):
    robot = mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    v = np.linalg.svd(robot.constraint_jacobian(q))[2][-1]
    return robot, q, v * (speed / v[0])


def top():
    """A body that spins freely, about no axis of its own, and flies."""
    b = sarrus.Builder("top", gravity=(0, 0, 0))
    b.add_body("top", sarrus.Inertia(2.0, (0.0, 0.0, 0.0), np.diag([1.0, 2.0, 2.5])))
    b.add_joint("free", sarrus.Free(), "ground", "top")
    robot = b.build()
    return robot, robot.neutral(), np.array([1.0, 2.0, 0.5, 0.3, -0.2, 0.1])


@pytest.mark.parametrize("make", [four_bar, top])
@pytest.mark.parametrize("method", FIXED)
def test_order_of_convergence(method, make):
    """Halving the step takes 2^order off the error; within half an order, as terms of higher order are not nothing."""
    robot, q, v = make()
    exact = sarrus.simulate(robot, q, v, 0.4, method="dopri5", rtol=1e-13, atol=1e-14).q[-1]
    dt = 0.002 if ORDER[method] == 1 else 0.005
    errors = [
        np.abs(robot.difference(exact, sarrus.simulate(robot, q, v, 0.4, method=method, dt=step).q[-1])).max()
        for step in (dt, dt / 2.0)
    ]
    assert abs(np.log2(errors[0] / errors[1]) - ORDER[method]) < 0.5


@pytest.mark.parametrize("method", [*FIXED, "dopri5"])
def test_loops_stay_closed_and_energy_stays(method):
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 2.0, method=method)
    assert run.loop_error.max() < 1e-12
    bounds = {"euler": 0.5, "semi_implicit": 0.1, "implicit_midpoint": 1e-3, "dopri5": 1e-4}
    assert np.abs(run.energy - run.energy[0]).max() < bounds.get(method, 4e-7)


def test_a_free_body_keeps_its_momentum():
    """Both invariants are quadratic: the midpoint rule keeps them to rounding."""
    robot, q, v = top()
    run = sarrus.simulate(robot, q, v, 20.0, method="implicit_midpoint", dt=0.01)
    assert np.abs(run.kinetic_energy / run.kinetic_energy[0] - 1.0).max() < 1e-11
    spin = run.v[:, :3] * (1.0, 2.0, 2.5)
    assert np.abs(np.linalg.norm(spin, axis=1) / np.linalg.norm(spin[0]) - 1.0).max() < 1e-11


@pytest.mark.parametrize(
    ("stabilisation", "bound"), [("none", 1.0), ("baumgarte", 1e-4), ("corrective", 1e-2), ("projection", 1e-12)]
)
def test_stabilisations(stabilisation, bound):
    """Each holds the loops of a coarse run as well as it can; without any of them they drift."""
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 2.0, method="rk4", dt=0.01, stabilisation=stabilisation)
    assert run.loop_error.max() < bound
    if stabilisation == "none":
        assert run.loop_error.max() > 1e-7


def test_a_disc_rolls_without_slip():
    robot = mechanisms.rolling_disc()
    q = robot.assemble()
    v = robot.project_velocity(q, 0.3 * np.random.default_rng(0).normal(size=robot.nv))
    run = sarrus.simulate(robot, q, v, 0.5)
    slip = np.einsum("nij,nj->ni", robot.constraint_jacobian(run.q), run.v)
    assert np.abs(slip).max() < 1e-11
    assert np.abs(run.energy - run.energy[0]).max() < 1e-7 * np.abs(run.energy).max()


def test_through_singular_positions():
    """A ladder that starts upright passes its flat positions, where the rank drops, on the smooth branch."""
    robot = mechanisms.four_bar_ladder(8)
    q = robot.assemble(fixed={"pivot0": 0.0})
    way = np.array([1.0 if robot.joint(name).parent == "ground" else -1.0 for name in robot.joints])
    run = sarrus.simulate(robot, q, robot.project_velocity(q, way), 5.0)
    assert np.ptp((run.q - run.q[0]) * way, axis=1).max() < 1e-8
    assert np.abs(run.energy - run.energy[0]).max() < 1e-6
    assert np.ptp(run.q[:, 0]) > np.pi  # it did pass


# ---- samples, events, checkpoints --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_samples(method):
    robot, q, v = four_bar()
    every = sarrus.simulate(robot, q, v, 0.5, method=method)
    assert_allclose(every.t, np.linspace(0.0, 0.5, 501), atol=1e-14)
    some = sarrus.simulate(robot, q, v, 0.5, method=method, times=[0.0, 0.1, 0.25])
    assert_array_equal(some.t, [0.0, 0.1, 0.25])
    assert_allclose(some.q, every.q[[0, 100, 250]], atol=1e-9)
    between = sarrus.simulate(robot, q, v, 0.5, method=method, times=[0.1234])
    assert_allclose(between.q[0], every.at(0.1234)[0], atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_events(method):
    """A body that falls from 1 m is down after sqrt(2/g), and at its top when its speed is zero."""
    b = sarrus.Builder("stone")
    b.add_body("stone", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("z", sarrus.Prismatic("z"), "ground", "stone")
    robot = b.build()
    top = sarrus.Event(lambda t, q, v: v[0], "top", terminal=False, direction=-1)
    down = sarrus.Event(lambda t, q, v: q[0], "down", direction=-1)
    run = sarrus.simulate(robot, [1.0], [2.0], 5.0, method=method, events=[top, down], dt=0.01)
    falls = (2.0 + np.sqrt(4.0 + 2.0 * 9.81)) / 9.81
    assert run.status == "terminated: down"
    assert_allclose(run.events["top"], [2.0 / 9.81], atol=1e-12)
    assert_allclose([run.events["down"][0], run.t[-1]], falls, atol=1e-12)
    assert abs(run.q[-1, 0]) < 1e-12


@pytest.mark.parametrize("method", [*FIXED, "dopri5"])
def test_a_run_that_goes_on_is_one_that_never_stopped(method):
    """Bit for bit, also where the first part is no multiple of the step, with a controller that remembers."""
    robot, q, v = four_bar()
    options = {"method": method, "controller": control.PID("motor", 5.0, 3.0, 1.0, target=2.0)}
    whole = sarrus.simulate(robot, q, v, 0.2, **options)
    first = sarrus.simulate(robot, q, v, 0.0503, **options)
    second = sarrus.simulate(robot, duration=0.1497, resume=pickle.loads(pickle.dumps(first.checkpoint)), **options)
    assert_array_equal(second.q[-1], whole.q[-1])
    assert_array_equal(second.v[-1], whole.v[-1])
    assert second.t[0] == first.t[-1]


# ---- what acts -----------------------------------------------------------------------------------------------------------


def test_native_control_is_the_same_in_python():
    robot = mechanisms.pendulum()
    native = control.PID("pivot", proportional=30.0, derivative=4.0, target=0.5, limits=(-3.0, 3.0))
    compiled = sarrus.simulate(robot, [0.0], [0.0], 2.0, controller=native)
    python = sarrus.simulate(
        robot, [0.0], [0.0], 2.0, controller=lambda t, q, v: np.clip(30.0 * (0.5 - q) - 4.0 * v, -3.0, 3.0)
    )
    assert_allclose(compiled.q, python.q, atol=1e-12)
    assert_allclose(compiled.tau, python.tau, atol=1e-9)
    assert np.abs(compiled.tau).max() == 3.0


def test_integral_part_rests_at_the_limit():
    """Held back by a limit for a second, it does not have to unwind: the overshoot is that of a controller without limit."""
    robot = mechanisms.pendulum()
    gains = {"proportional": 40.0, "integral": 30.0, "derivative": 12.0, "target": control.rest_to_rest(0.0, 0.4, 1.0)}
    run = sarrus.simulate(robot, [0.0], [0.0], 6.0, controller=control.PID("pivot", limits=(-5.0, 5.0), **gains))
    assert abs(run.q[-1, 0] - 0.4) < 5e-3
    assert run.q.max() < 0.45


def test_computed_torque():
    """Errors die as e'' + kd e' + kp e = 0 says: critically damped, (1 + w t) exp(-w t)."""
    robot = mechanisms.double_pendulum()
    wanted = dict.fromkeys(robot.joints, 0.3)
    run = sarrus.simulate(robot, [0.3, 0.8], [0.0, 0.0], 1.0, controller=control.ComputedTorque(wanted, 100.0, 20.0))
    assert_allclose(run.q[:, 1] - 0.3, 0.5 * (1.0 + 10.0 * run.t) * np.exp(-10.0 * run.t), atol=1e-8)
    assert_allclose(run.q[:, 0], 0.3, atol=1e-8)


def test_stiction_holds_and_lets_go():
    """On a slide pushed by a ramp: at rest until the push exceeds what sticks."""
    b = sarrus.Builder("slide", gravity=(0, 0, 0))
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "block")
    robot = b.build()
    push = control.PrescribedEffort("x", sarrus.laws.polynomial(0.0, 1.0))
    run = sarrus.simulate(robot, [0.0], [0.0], 3.0, [push, control.Stiction("x", sliding=1.5, sticking=2.0)])
    assert np.abs(run.q[run.t < 1.9]).max() < 1e-3
    assert run.v[-1, 0] > 0.3


def test_a_ball_comes_to_rest_on_the_ground():
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("free", sarrus.Free(), "ground", "ball")
    robot = b.build()
    q = robot.neutral()
    q[6] = 0.3
    run = sarrus.simulate(robot, q, np.zeros(6), 3.0, control.Contact("ball", radius=0.1), dt=2e-4)
    sunk = (9.81 / 1e5) ** (1.0 / 1.5)
    assert_allclose(run.q[-1, 6], 0.1 - sunk, atol=2e-3)
    peaks = run.energy[run.q[:, 6] > 0.1]
    assert np.all(np.diff(peaks) < 1e-6)


def test_a_controller_may_push_frames():
    robot = mechanisms.double_pendulum()
    run = sarrus.simulate(
        robot, [0.1, 0.2], [0.0, 0.0], 0.1, lambda t, q, v: (np.zeros(2), {robot.bodies[-1]: [0, 0, 0, 1, 0, 0]})
    )
    pushed = robot.jacobian(run.q[0], robot.bodies[-1]).T @ [0, 0, 0, 1, 0, 0]
    assert_allclose(run.tau[0], pushed, atol=1e-12)


# ---- many runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED)
def test_many_runs_are_runs_one_by_one(method):
    robot, q, v = four_bar()
    speeds = np.linspace(-1.0, 1.0, 19)[:, None]
    gains = np.linspace(1.0, 10.0, 19)
    t, Q, V, status = sarrus.simulate_many(
        robot, q, v * speeds, 0.1, control.PID("motor", gains, target=1.0), method=method, every=10, threads=2
    )
    assert Q.shape == (19, 11, 3) and not status.any()
    for k in (0, 8, 18):
        run = sarrus.simulate(
            robot, q, v * speeds[k], 0.1, control.PID("motor", float(gains[k]), target=1.0), method=method
        )
        assert_allclose(Q[k], run.q[::10], atol=1e-11)
        assert_allclose(t, run.t[::10], atol=1e-15)


def test_threads_and_executors_change_nothing():
    robot, q, v = four_bar()
    many = [
        sarrus.simulate_many(robot, q, v * np.linspace(0.1, 1.0, 40)[:, None], 0.05, every=50, **how)
        for how in ({}, {"threads": 2}, {"executor": ThreadPoolExecutor(2)})
    ]
    assert_array_equal(many[0][1], many[1][1])
    assert_allclose(many[0][1], many[2][1], atol=1e-13)  # other neighbours in the lanes


def test_a_bad_run_spoils_only_itself():
    robot = mechanisms.double_pendulum()
    q = np.zeros((20, 2))
    q[7, 0] = np.nan
    _, Q, _, status = sarrus.simulate_many(robot, q, np.ones((20, 2)), 0.01)
    assert status[7] == 1 and np.isnan(Q[7]).all()
    assert not np.delete(status, 7).any() and np.isfinite(np.delete(Q, 7, axis=0)).all()


# ---- what may go wrong ---------------------------------------------------------------------------------------------------


def test_divergence_keeps_what_there_was():
    robot = mechanisms.pendulum()
    with pytest.raises(sarrus.IntegrationError, match="diverges") as raised:
        sarrus.simulate(robot, [0.0], [0.1], 10.0, lambda t, q, v: 1.7e308 * np.sign(np.nan_to_num(v)))
    run = pickle.loads(pickle.dumps(raised.value)).trajectory
    assert run.status == "diverged" and 1 < len(run.t) < 10_000 and np.isfinite(run.q).all()


def test_what_a_controller_raises_comes_through():
    class Tired(Exception):
        pass

    def controller(t, q, v):
        if t > 0.05:
            raise Tired("enough")
        return np.zeros(1)

    for method in ("rk4", "dopri5"):
        with pytest.raises(Tired, match="enough"):
            sarrus.simulate(mechanisms.pendulum(), [0.0], [0.1], 1.0, controller, method=method)


def test_interrupted_runs_return_what_there_is():
    robot, q, v = four_bar()
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    run = sarrus.simulate(robot, q, v, 1e4, times=[0.0, 1e4])
    timer.join()
    assert run.status == "interrupted" and run.checkpoint["k"] > 100


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "rk5"}, ValueError, "method must be one of 'auto', 'euler'"),
        ({"stabilisation": "glue"}, ValueError, "stabilisation must be"),
        ({"dt": 0.0}, ValueError, "dt must be positive"),
        ({"duration": -1.0}, ValueError, "duration must be seconds"),
        ({"times": [0.2, 0.1]}, ValueError, "each after the one before"),
        ({"times": [5.0]}, ValueError, "must lie between"),
        ({"q": np.zeros(4)}, sarrus.ShapeError, r"must be \(3,\)"),
        ({"v": [np.nan, 0.0, 0.0]}, sarrus.StateError, "v must be finite"),
        ({"controller": lambda t, q, v: np.zeros(2)}, sarrus.ShapeError, r"returned shape \(2,\)"),
        ({"controller": lambda t, q, v: np.full(3, np.nan)}, sarrus.StateError, "must be finite"),
        ({"controller": control.PID("pin2")}, sarrus.ModelError, "closes a loop"),
        ({"controller": control.PID("moter")}, sarrus.NameNotFoundError, "did you mean 'motor'"),
        ({"controller": "motor"}, TypeError, "no element of control"),
        ({"controller": control.ComputedTorque({})}, sarrus.ModelError, "for trees"),
    ],
)
def test_bad_arguments(options, error, message):
    robot, q, v = four_bar()
    with pytest.raises(error, match=message):
        sarrus.simulate(robot, **{"q": q, "v": v, "duration": 1.0} | options)


def test_checkpoints_belong_to_their_mechanism():
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 0.01)
    with pytest.raises(sarrus.ModelError, match="another mechanism"):
        sarrus.simulate(mechanisms.five_bar(), duration=1.0, resume=run.checkpoint)
    with pytest.raises(sarrus.ModelError, match="another method"):
        sarrus.simulate(robot, duration=1.0, resume=run.checkpoint, method="dopri5")


def test_loops_that_cannot_close():
    b = sarrus.Builder("too far")
    b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("pin", sarrus.Revolute("y"), "ground", "arm")
    b.add_distance("rod", ("ground", (5, 0, 0)), ("arm", (1, 0, 0)), length=1.0)
    with pytest.raises(sarrus.StateError, match="loops are open by 3"):
        sarrus.simulate(b.build(), [0.0], [0.0], 1.0)
