"""A run equals a sweep with one run: simulate() and simulate_many() have the same start and the same states."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Builder, Inertia, Revolute, control, laws
from tests.small_mechanisms import FIXED

START, DURATION = 0.2, 0.0305  # a part of a step is left at the end
ROUNDING = 1e-9  # of lanes, whose last digits are others, along thirty steps
KNOWN = 1e-3  # of rates, which are found by differences
KINDS = ("limits", "stop", "stiction", "pid", "sampled", "law of time", "prescribed", "near", "friction")
PINS = {
    "m": ("ground", "a", 0.0, 0.0),
    "p1": ("a", "b", 0.4, 0.0),
    "p": ("ground", "c", 1.0, 0.0),
    "p2": ("b", "c", 1.1, 0.9),
}


def linkage(kind, closed):
    """Return a four-bar, or the chain of its crank and coupler; it is driven beyond its limits."""
    b = Builder("linkage", gravity=(0, 0, -9.81))
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9))[: 2 + closed]:
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    for name, (parent, child, at_parent, at_child) in PINS.items():
        if not closed and child == "c":
            continue
        joint = {"friction": 0.05} if kind == "friction" else {"stiffness": 0.5} if kind == "near" else {}
        if name == "m":
            joint |= {"limits": (-0.6, 0.6), "velocity_limit": 7.0, "effort_limit": 3.0}
        b.add_joint(
            name, Revolute("y", **joint), parent, child, at_parent=(at_parent, 0, 0), at_child=(at_child, 0, 0), loop=name == "p2",
            actuated=name == "m",
        )  # fmt: skip
    if kind == "prescribed":
        b.add_prescribed_motion("drive", "m", laws.polynomial(0.5, 6.0) + laws.harmonic(0.1, rate=5.0))
    return b.build()


def acting(kind):
    pid = control.PID("m", proportional=60.0, integral=5.0, derivative=1.0, target=1.0)
    return {
        "limits": [pid],
        "stop": [pid],
        "stiction": [control.LuGreFriction("m", 2.0)],
        "pid": [pid],
        "sampled": [control.SampleAndHold(pid, 0.007, delay=0.002)],
        "law of time": [control.FeedforwardEffort("m", laws.harmonic(4.0, rate=40.0))],
        "near": [control.PID("p2", proportional=1.0, target=6.0)],
    }.get(kind, [])


def run_and_runs(kind, closed, method, stabilisation):
    robot = linkage(kind, closed)
    fixed = {} if kind == "prescribed" else {"m": 0.5}
    q = robot.assemble(fixed=fixed, time=START) if closed else np.array([0.5, 0.3])
    v = np.full(robot.nv, 6.0)  # which loops do not allow
    options = {
        "method": method, "dt": 1e-3, "stabilisation": stabilisation, "start": START, "limits": "enforce" if kind == "stop" else "warn",
        "near": {"p2": [7.0]} if kind == "near" else None,
    }  # fmt: skip
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = sarrus.simulate(robot, q, v, DURATION, acting(kind), **options)
        several = len(said)
        runs = sarrus.simulate_many(robot, q, v[None], DURATION, acting(kind), **options)
    return run, runs, [str(x.message) for x in said[:several]], [str(x.message) for x in said[several:]]


def everything(run):
    """Return the data of a Trajectory that its samples do not contain."""
    known = [run.t, run.q, run.v, run.internal_state, run.tau, run.a]
    return [*known, *(x for x in (run.loop_q, run.friction) if x is not None)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("stabilisation", ["tree", "none", "corrective", "baumgarte", "projection"])
def test_one_run_is_a_sweep_of_one(kind, method, stabilisation):
    """Bit for bit, with warnings. Runs in lanes differ in the last digits, and begin in the same way."""
    closed = stabilisation != "tree"
    if not closed and kind in ("near", "prescribed"):
        pytest.skip("of loops")
    run, runs, said, of_all = run_and_runs(kind, closed, method, stabilisation if closed else "projection")
    one = runs[0]
    assert run.status == one.status == "finished"
    assert_array_equal(one.q[0], run.q[0])
    assert_array_equal(one.v[0], run.v[0])
    assert_array_equal(one.internal_state[0], run.internal_state[0])
    left = {(x["joint"], x["index"], x["quantity"]): x["reached"] for x in run.statistics["limits"]}
    several = {
        (limit.joint, limit.index, limit.quantity): (limit.upper if x > 0.0 else limit.lower) + x
        for limit, x in zip(runs.limits, runs.excess[0], strict=True)
        if x
    }
    stiffness = run.statistics["stiffness"] or 0.0
    if sarrus._core.methods[method].in_lanes:
        for x, y in zip(everything(one), everything(run), strict=True):
            assert_allclose(x, y, rtol=ROUNDING, atol=ROUNDING * (1.0 + np.abs(y).max(initial=0.0)))
        assert runs.stiffness[0] == pytest.approx(stiffness, rel=KNOWN)
    else:
        for x, y in zip(everything(one), everything(run), strict=True):
            assert_array_equal(x, y)
        assert runs.stiffness[0] == stiffness
        assert of_all == said
    assert several == pytest.approx(left, rel=1e-6, abs=1e-8)  # within the slack that limits have
    assert kind != "limits" or left
