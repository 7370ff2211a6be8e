"""Default steps of simulate(): 1 ms, or shorter ones where these are too long; samples stay 1 ms apart."""

import warnings

import numpy as np
import pytest

import sarrus

METHODS = [name for name, facts in sarrus._core.methods.items() if not facts.adaptive]
AT = [0.01], [0.0]


def slider(rate):
    """A mass of 1 kg on a spring; rate [rad/s]."""
    b = sarrus.Builder("slider")
    b.add_body("mass", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", stiffness=rate**2), "ground", "mass")
    return b.build()


STIFF, SOFT = slider(2500.0), slider(5.0)
FINE = 1e-3 / 16  # which resolves the stiff one


@pytest.mark.filterwarnings("error::sarrus.StiffnessWarning")
def test_steps_are_shortened_until_they_resolve_the_motion():
    run = sarrus.simulate(STIFF, *AT, 0.2, method="rk4")
    assert run.statistics["dt"] == FINE and run.statistics["steps"] == 3200
    assert np.array_equal(run.t, sarrus.simulate(SOFT, *AT, 0.2, method="rk4").t)
    fine = sarrus.simulate(STIFF, *AT, 0.2, method="rk4", dt=FINE)
    assert np.array_equal(run.q, fine.q[::16]) and np.array_equal(run.v, fine.v[::16])
    assert np.array_equal(run.t, fine.t[::16])
    assert abs(run.energy[-1] - run.energy[0]) < 1e-2 * run.energy[0]


@pytest.mark.parametrize("method", METHODS)
def test_steps_that_resolve_the_motion_stay_1_ms(method):
    run, same = (sarrus.simulate(SOFT, [0.0], [0.1], 0.1, method=method, **given) for given in ({}, {"dt": 1e-3}))
    assert run.statistics["dt"] == 1e-3 and run.statistics["steps"] == 100
    assert np.array_equal(run.q, same.q) and np.array_equal(run.v, same.v) and np.array_equal(run.t, same.t)


def test_a_given_step_is_kept():
    with pytest.warns(sarrus.StiffnessWarning):
        run = sarrus.simulate(STIFF, *AT, 0.2, method="rk4", dt=1e-3)
    assert run.statistics["dt"] == 1e-3


@pytest.mark.filterwarnings("error::sarrus.StiffnessWarning")
def test_a_failed_run_is_repeated_and_its_end_is_a_sample():
    """The motion diverges by rk4's steps above 0.348 ms, at any duration."""
    run = sarrus.simulate(slider(8000.0), *AT, 0.10033, method="rk4")
    assert run.statistics["dt"] == 1e-3 / 64
    assert len(run.t) == 102 and run.t[-1] == 0.10033


def test_the_warning_remains_if_no_step_is_short_enough():
    with pytest.warns(sarrus.StiffnessWarning) as told:
        run = sarrus.simulate(slider(1.5e5), *AT, 0.01, method="rk4")
    assert len(told) == 1 and run.statistics["dt"] == 1e-3 / 64
    with pytest.raises(sarrus.IntegrationError, match=r"dt = 1\.56e-05"):
        sarrus.simulate(slider(1e6), *AT, 0.1, method="rk4")


def test_long_runs_are_not_repeated():
    """More than 2^20 shorter steps."""
    with pytest.warns(sarrus.StiffnessWarning):
        run = sarrus.simulate(slider(600.0), *AT, 300.0, method="rk4", times=np.linspace(0.0, 300.0, 20))
    assert run.statistics["dt"] == 1e-3


@pytest.mark.parametrize("first", [0.05, 0.05037, 0.05012])
def test_a_resumed_run_keeps_the_steps_and_the_samples(first, tmp_path):
    whole = sarrus.simulate(STIFF, *AT, 0.12, method="rk4")
    begun = sarrus.simulate(STIFF, *AT, first, method="rk4")
    begun.save(tmp_path / "run.npz")
    for checkpoint in (begun, begun.checkpoint):
        rest = sarrus.simulate(STIFF, duration=0.12 - first, resume=checkpoint)
        later = whole.t > first + 1e-9
        assert rest.statistics["dt"] == whole.statistics["dt"] == FINE
        assert np.array_equal(rest.q[1:-1], whole.q[later][:-1]) and np.array_equal(rest.t[1:-1], whole.t[later][:-1])
        assert rest.q[-1] == pytest.approx(whole.q[-1], abs=1e-12)


@pytest.mark.parametrize("every", [0, -4, 2.5, "4", True])
def test_a_checkpoint_with_invalid_spacing_is_rejected(every):
    checkpoint = sarrus.simulate(SOFT, *AT, 0.01).checkpoint
    with pytest.raises(sarrus.ModelError, match="'every' of the checkpoint"):
        sarrus.simulate(SOFT, duration=0.01, resume={**checkpoint, "every": every})


def test_functions_of_the_caller_are_not_called_for_a_second_run():
    times = []

    def controller(t, q, v):
        times.append(t)
        return [0.0]

    with pytest.warns(sarrus.StiffnessWarning):
        run = sarrus.simulate(slider(1000.0), *AT, 0.05, controller, method="rk4")
    late = int(np.flatnonzero(np.array(times) > 0.049)[0])
    assert run.statistics["dt"] == 1e-3 and min(times[late:]) > 0.04


def test_events_and_times_of_shortened_steps():
    times = [0.0, 0.00213, 0.0317]
    run = sarrus.simulate(STIFF, *AT, 0.05, method="rk4", times=times)
    fine = sarrus.simulate(STIFF, *AT, 0.05, method="rk4", times=times, dt=run.statistics["dt"])
    assert run.statistics["dt"] == FINE and np.array_equal(run.q, fine.q) and np.array_equal(run.t, times)
    end = sarrus.Event(lambda t, q, v: t - 0.03141, name="end")
    run = sarrus.simulate(STIFF, *AT, 0.05, method="rk4", events=end)
    assert run.statistics["dt"] == FINE and run.status == "terminated: end"
    assert run.t[-1] == pytest.approx(0.03141, abs=1e-9) and len(run.t) == 33


def test_many_runs_keep_1_ms():
    """Each is the result of a single run with this step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = sarrus.simulate_many(STIFF, [[0.01], [0.02]], [0.0], 0.1, method="rk4")
        single = sarrus.simulate(STIFF, *AT, 0.1, method="rk4", dt=1e-3)
    assert np.allclose(runs.q[0], single.q, rtol=0.0, atol=1e-14)
