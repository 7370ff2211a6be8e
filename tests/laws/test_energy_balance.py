"""Energy at the end is that at the start, with the work of what acts and less what dampers take; where steps spoil that, a run says so."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sarrus
from sarrus import control, laws
from tests.effort import examples
from tests.random_closed import closed_mechanisms
from tests.random_mechanisms import seeds

MEASURE = ["rk4", "rkmk4", "implicit_midpoint", "rosenbrock", "independent"]


def damped_four_bar(closing):
    """Dampers in joints of the tree and in one that closes, a spring with a damper, armature."""
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
    "a law": control.PrescribedEffort("m", laws.harmonic(3.0, 5.0)),
    "a controller": control.PID("m", 20.0, 5.0, 2.0, target=1.0),
    "a function": lambda t, q, v: np.array([2.0 * np.sin(3.0 * t), 0.0, 0.0]),
}


@pytest.mark.parametrize("acts", ACTS)
@pytest.mark.parametrize("closing", ["p", "p2"])
@pytest.mark.parametrize("method", MEASURE)
def test_work_is_the_change_of_energy(method, closing, acts):
    robot = damped_four_bar(closing)
    q = robot.assemble(fixed={"m": 0.7}, tolerance=1e-13)
    v, off = robot.complete_velocity(q, {"m": 4.0}), []
    for dt in (2e-3, 1e-3):
        run = sarrus.simulate(robot, q, v, 0.5, ACTS[acts], method=method, dt=dt)
        change = run.energy[-1] - run.energy[0]
        off.append(abs(change - run.statistics["work"]) / run.kinetic_energy.max())
        assert abs(run.statistics["work"]) > 0.1
    assert off[1] < 1e-5
    assert off[1] < 1e-9 or off[1] < 0.3 * off[0]  # by the order of the method


def wire(damping=1e4):
    """A bob on a spring of 1e8 N/m."""
    b = sarrus.Builder("wire")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("at", sarrus.Gimbal("tx ty tz"), "ground", "bob")
    b.add_spring("wire", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), stiffness=1e8, rest_length=1.0, damping=damping)
    return b.build()


def test_a_stiff_spring_that_rotates_loses_energy_and_the_warning_names_it():
    """Its damper takes next to nothing; rosenbrock's steps take a third of the motion. What the warning recommends keeps it."""
    robot, q = wire(), [np.sin(1), 0, -np.cos(1)]
    with pytest.warns(
        sarrus.StiffnessWarning, match=r"wrong by .* beside the work .* spring 'wire'.*implicit_midpoint"
    ):
        run = sarrus.simulate(robot, q, np.zeros(3), 2.0, method="rosenbrock")
    assert run.energy[0] - run.energy[-1] > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sarrus.simulate(robot, q, np.zeros(3), 2.0, method="implicit_midpoint")
    assert abs(run.energy[-1] - run.energy[0] - run.statistics["work"]) < 1e-3 * run.kinetic_energy.max()


def test_runs_side_by_side_measure_theirs():
    robot = damped_four_bar("p2")
    q = robot.assemble(fixed={"m": 0.7})
    v = np.stack([robot.complete_velocity(q, {"m": x}) for x in (40.0, 60.0, 0.1)])
    for method in ("rk4", "implicit_midpoint"):
        with pytest.warns(sarrus.StiffnessWarning, match=r"beside the work of what acts \(in [12] of 3 runs\)"):
            sarrus.simulate_many(robot, q, v, 1.0, control.PrescribedEffort("m", 0.1), method=method, dt=3e-2)


@examples(10)
@given(closed_mechanisms(), seeds(), st.sampled_from(MEASURE))
def test_random_mechanisms_keep_their_balance_or_say_so(closed, seed, method):
    """At the default step, under a controller: of what is driven or sticks the work is not known."""
    robot, rng = closed.robot, np.random.default_rng(seed)
    d = robot.description
    assume(not any(j.laws for j in d.joints) and not any(np.any(j.joint.friction) for j in d.joints))
    assume(not any(hasattr(c, "rows") or c.prescribed(0.0) for c in d.constraints))
    v = robot.project_velocity(closed.q, rng.normal(size=robot.nv))
    acts = [control.PID(name, 30.0, 0.0, 1.0) for name in robot.joints if robot.joint(name).type.nv == 1][:1]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = sarrus.simulate(robot, closed.q, v, 0.3, acts, method=method)
    off = run.energy[-1] - run.energy[0] - run.statistics["work"]
    assert abs(off) < 1e-2 * run.kinetic_energy.max() or any(w.category is sarrus.StiffnessWarning for w in told)
