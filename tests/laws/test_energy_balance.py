"""Energy balance of runs: initial energy plus work minus dissipation; runs whose steps violate it raise a warning."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sarrus
from sarrus import control, laws
from tests.effort import examples
from tests.random_closed import closed_mechanisms
from tests.random_mechanisms import seeds

METHODS = list(sarrus._core.methods)


def damped_four_bar(closing):
    """Return a four-bar with dampers in tree and loop joints, a spring with a damper, and armature."""
    b = sarrus.Builder("four-bar")
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    pin = sarrus.Revolute("y", damping=0.2, armature=0.05)
    b.add_joint("m", sarrus.Revolute("y", damping=0.1), "ground", "a", actuated=True)
    b.add_joint("p1", pin, "a", "b", at_parent=(0.4, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "ground", "c", at_parent=(1.0, 0, 0), loop=closing == "p")
    b.add_joint("p2", pin, "b", "c", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=closing == "p2")
    b.add_spring("spring", ("ground", (0.5, 0, 1)), ("b", (0.5, 0, 0)), stiffness=50.0, rest_length=0.5, damping=3.0)
    return b.build()


ACTS = {
    "nothing": None,
    "a law": control.FeedforwardEffort("m", laws.harmonic(3.0, 5.0)),
    "a controller": control.PID("m", 20.0, 5.0, 2.0, target=1.0),
    "a function": lambda t, q, v: np.array([2.0 * np.sin(3.0 * t), 0.0, 0.0]),
}


@pytest.mark.parametrize("acts", ACTS)
@pytest.mark.parametrize("closing", ["p", "p2"])
@pytest.mark.parametrize("method", METHODS)
def test_work_is_the_change_of_energy(method, closing, acts):
    robot = damped_four_bar(closing)
    q = robot.assemble(fixed={"m": 0.7}, tolerance=1e-13)
    v, off = robot.complete_velocity(q, {"m": 4.0}), []
    for dt in (2e-3, 1e-3):
        run = sarrus.simulate(robot, q, v, 0.5, ACTS[acts], method=method, dt=dt)
        change = run.energy[-1] - run.energy[0]
        off.append(abs(change - run.statistics["work"]) / run.kinetic_energy.max())
        assert abs(run.statistics["work"]) > 0.1
    first = method in ("euler", "semi_implicit")
    assert off[1] < (2e-2 if first else 1e-5)
    assert (
        off[1] < (1e-4 if first else 1e-9) or off[1] < (0.6 if first else 0.35) * off[0] or method == "dopri5"
    )  # by the order of the method


@pytest.mark.parametrize("method", METHODS)
def test_a_law_of_time_does_work(method):
    """A prescribed motion in the middle of a chain does work on the bodies beyond it."""
    b = sarrus.Builder("swing")
    for name in ("a", "b"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.01))
    b.add_joint("free", sarrus.Revolute("y"), "ground", "a")
    b.add_joint("led", sarrus.Revolute("y"), "a", "b", at_parent=(0.5, 0, 0))
    b.add_prescribed_motion("drive", "led", laws.harmonic(1.0, 6.0))
    robot = b.build()
    q = robot.project_configuration(np.zeros(2))
    run = sarrus.simulate(robot, q, robot.project_velocity(q, np.zeros(2), time=0.0), 0.25, method=method)
    change = run.energy[-1] - run.energy[0]
    assert abs(change) > 0.5
    share = {"euler": 1e-2, "semi_implicit": 1e-2, "contact": 1e-3}.get(method, 1e-5)
    assert abs(change - run.statistics["work"]) < share * run.kinetic_energy.max()


@pytest.mark.parametrize("method", METHODS)
def test_work_up_to_an_event(method):
    """If an event ends a run within a step, the balance includes the part of the step before it, and the work of dry friction."""
    b = sarrus.Builder("pendulum")
    b.add_body("rod", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1.0), 0.01))
    b.add_joint("pivot", sarrus.Revolute("y", damping=0.3, friction=0.5), "ground", "rod")
    event = sarrus.Event(lambda t, q, v: q[0] - 0.4321, "passed", direction=-1)
    run = sarrus.simulate(b.build(), [1.5], [0.0], 2.0, method=method, events=event, dt=1e-3)
    assert run.status.startswith("terminated") and run.statistics["work"] < -0.5
    off = run.energy[-1] - run.energy[0] - run.statistics["work"]
    assert abs(off) < (1e-2 if method in ("euler", "semi_implicit") else 1e-4) * run.kinetic_energy.max()


@pytest.mark.parametrize("method", METHODS)
def test_work_of_a_run_in_pieces(method):
    """A run that continues from the middle of a step counts the work from there; each of its pieces is balanced."""
    b = sarrus.Builder("pendulum")
    b.add_body("rod", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1.0), 0.01))
    b.add_joint("pivot", sarrus.Revolute("y", damping=0.3, friction=0.5), "ground", "rod")
    how = {"method": method, "dt": 1e-3}
    run = sarrus.simulate(b.build(), [1.5], [-3.0], 0.2505, **how)
    for duration in (0.0003, 0.0704, 0.2):
        run = sarrus.simulate(run.mechanism, duration=duration, resume=run, **how)
        off = run.energy[-1] - run.energy[0] - run.statistics["work"]
        assert abs(off) < (1e-2 if method in ("euler", "semi_implicit") else 1e-5) * run.kinetic_energy.max()


def test_contacts_take_energy_and_give_none():
    """A ball falls obliquely and slides, with friction, restitution and rolling friction: the dissipated energy is their work."""
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(mass=1.0, radius=0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    ground = sarrus.control.RigidContact("ball", radius=0.1, friction=0.3, restitution=0.5, rolling_friction=1e-3)
    run = sarrus.simulate(b.build(), [0, 0, 0, 1, 0, 0, 0.4], [0, 5.0, 0, 2.0, 0, 0], 1.0, ground)
    assert run.statistics["work"] < -1.0
    assert abs(run.energy[-1] - run.energy[0] - run.statistics["work"]) < 1e-3 * run.kinetic_energy.max()


def test_a_fast_damper_is_measured_though_stages_do_not_resolve_it():
    """The damper's rate is twice that of the step; power at the stages would be 1.5 times the available energy."""
    b = sarrus.Builder("brake", gravity=(0, 0, 0))
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", damping=2000.0), "ground", "block")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sarrus.simulate(b.build(), [0.0], [1.0], 0.1, method="rk4")


@pytest.mark.parametrize("method", ["euler", "semi_implicit", "dopri5"])
def test_methods_of_first_order_and_adaptive_ones_are_judged(method):
    """Long steps, or an unusable tolerance, raise a warning."""
    robot = damped_four_bar("p2")
    q = robot.assemble(fixed={"m": 0.7})
    v, how = robot.complete_velocity(q, {"m": 20.0}), {"rtol": 0.1, "atol": 0.1} if method == "dopri5" else {"dt": 1e-2}
    with pytest.warns(sarrus.StiffnessWarning, match=f"by '{method}' the energy balance, with the work of all forces"):
        sarrus.simulate(robot, q, v, 1.0, method=method, **how)


def wire(damping=1e4):
    """Return a mass on a spring of 1e8 N/m."""
    b = sarrus.Builder("wire")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("at", sarrus.Gimbal("tx ty tz"), "ground", "bob")
    b.add_spring("wire", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), stiffness=1e8, rest_length=1.0, damping=damping)
    return b.build()


def test_a_stiff_spring_that_rotates_loses_energy_and_the_warning_names_it():
    """The damper dissipates almost nothing, but rosenbrock's steps lose a third of the energy. The recommended method conserves it."""
    robot, q = wire(), [np.sin(1), 0, -np.cos(1)]
    with pytest.warns(sarrus.StiffnessWarning, match=r"energy balance.* wrong by .* spring 'wire'.*implicit_midpoint"):
        run = sarrus.simulate(robot, q, np.zeros(3), 2.0, method="rosenbrock", dt=1e-3)
    assert run.energy[0] - run.energy[-1] > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sarrus.simulate(robot, q, np.zeros(3), 2.0, method="implicit_midpoint")
    assert abs(run.energy[-1] - run.energy[0] - run.statistics["work"]) < 1e-3 * run.kinetic_energy.max()


def test_runs_side_by_side_measure_theirs():
    robot = damped_four_bar("p2")
    q = robot.assemble(near={"p1": -0.1, "p": 1.3}, fixed={"m": 0.7})
    v = np.stack([robot.complete_velocity(q, {"m": x}) for x in (40.0, 60.0, 0.1)])
    for method in ("rk4", "implicit_midpoint"):
        with pytest.warns(sarrus.StiffnessWarning, match=r"largest kinetic energy \(in [12] of 3 runs\)"):
            sarrus.simulate_many(robot, q, v, 1.0, control.FeedforwardEffort("m", 0.1), method=method, dt=3e-2)


@examples(10)
@given(closed_mechanisms(), seeds(), st.sampled_from(METHODS))
def test_random_mechanisms_keep_their_balance_or_say_so(closed, seed, method):
    """Runs at the default step, with a controller and time functions, satisfy the balance or raise a warning."""
    robot, rng = closed.robot, np.random.default_rng(seed)
    v = robot.project_velocity(closed.q, rng.normal(size=robot.nv), time=closed.time)
    acts = [control.PID(name, 30.0, 0.0, 1.0) for name in robot.joints if robot.joint(name).type.nv == 1][:1]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = sarrus.simulate(robot, closed.q, v, 0.3, acts, method=method, start=closed.time)
    off = run.energy[-1] - run.energy[0] - run.statistics["work"]
    assert abs(off) < 1e-2 * run.kinetic_energy.max() or any(w.category is sarrus.StiffnessWarning for w in told)
