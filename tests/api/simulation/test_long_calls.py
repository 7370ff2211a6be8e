"""Very long calls end by Ctrl-C and with the interpreter, or raise an error at once."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import sarrus
from sarrus import control
from sarrus.errors import IntegrationError, ModelWarning


def several(count=4):
    robots = [sarrus.mechanisms.four_bar(crank=crank) for crank in np.linspace(0.3, 0.4, count)]
    return robots, np.stack([robot.assemble(fixed={"motor": 0.5}) for robot in robots])


@pytest.mark.parametrize("apart", [False, True])
def test_ctrl_c_ends_runs_of_several_mechanisms_on_threads(apart, monkeypatch):
    if apart:  # as for mechanisms that are no variants of one structure
        monkeypatch.setattr("sarrus.simulation.sweep._alike", lambda robots: None)
    robots, q = several()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    runs = sarrus.simulate_many(robots, q, np.zeros(3), 20_000.0, every=10**7, threads=2)
    assert (runs.status == sarrus.results.Status.INTERRUPTED).all()


def test_runs_that_are_done_by_then_are_kept():
    """The call is interrupted after the first runs are done."""
    robots, q = several(64)
    robots, q, told = robots * 4, np.tile(q, (4, 1)), []

    def interrupt(done, runs):
        told.append((done, runs))
        if len(told) == 1:
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    runs = sarrus.simulate_many(robots, q, np.zeros(3), 8.0, every=8000, threads=2, progress=interrupt)
    assert told[0][0] < told[0][1] == len(robots)
    done = runs.status == sarrus.results.Status.FINISHED
    assert done.any() and not done.all() and (runs.status[~done] == sarrus.results.Status.INTERRUPTED).all()
    assert np.isfinite(runs.q[done]).all() and np.isnan(runs.q[~done, -1]).all()
    first = int(done.argmax())
    one = sarrus.simulate_many([robots[first]], q[first : first + 1], np.zeros(3), 8.0, every=8000)
    assert np.abs(runs.q[first] - one.q[0]).max() < 1e-9  # side by side with others the last digits are others


@pytest.mark.parametrize("apart", ["", "sarrus.simulation.sweep._alike = lambda robots: None\n"])
def test_the_interpreter_ends_while_a_daemon_thread_is_inside(apart):
    program = (
        "import threading, time, numpy as np, sarrus, sarrus.simulation.sweep\n"
        f"{apart}"
        "robots = [sarrus.mechanisms.four_bar(crank=c) for c in (0.3, 0.35, 0.4)]\n"
        "q = np.stack([r.assemble(fixed={'motor': 0.5}) for r in robots])\n"
        "run = lambda: sarrus.simulate_many(robots, q, np.zeros(3), 1e9, every=10**9, threads=2)\n"  # takes hours
        "threading.Thread(target=run, daemon=True).start()\n"
        "time.sleep(0.5)\n"
    )
    environment = os.environ | {"SKBUILD_EDITABLE_VERBOSE": "0"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600, env=environment)  # raises TimeoutExpired


@pytest.mark.parametrize("period", [1e-9, 1e-300])
@pytest.mark.parametrize("many", [False, True])
def test_periods_that_are_nothing_beside_a_step_are_refused(period, many):
    robot = sarrus.mechanisms.four_bar()
    call = sarrus.simulate_many if many else sarrus.simulate
    with pytest.raises(ValueError, match="too short"):
        call(robot, robot.assemble(), np.zeros(3), 0.01, control.SampleAndHold([control.PID("motor")], period=period))


@pytest.mark.parametrize(("duration", "dt"), [(1e9, 1e-3), (1.0, 1e-15)])
@pytest.mark.parametrize("many", [False, True])
def test_runs_that_fit_into_no_memory_are_refused_at_once(duration, dt, many):
    call = sarrus.simulate_many if many else sarrus.simulate
    with pytest.raises(MemoryError, match="GiB"):  # to compute them would take days
        call(sarrus.mechanisms.pendulum(), [0.1], [0.0], duration, dt=dt)


def test_a_policy_that_raises_stop_iteration():
    def policy(t, q, v):
        raise StopIteration("of the caller")

    with pytest.raises(StopIteration, match="of the caller"):
        sarrus.simulate_many(sarrus.mechanisms.pendulum(), [[0.1]], [0.0], 0.1, policy=policy)


@pytest.mark.parametrize("many", [False, True])
def test_ctrl_c_ends_a_step_with_very_many_samples(many):
    """Efforts with a zero-order hold and very many samples within one step."""
    robot = sarrus.mechanisms.quadruped()
    q, v = robot.assemble(), np.zeros(robot.nv)
    times = np.arange(1_000_000) * 8e-6
    held = control.EffortTable(times, np.zeros((len(times), 1)), joints=robot.actuated[:1])
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    if many:
        runs = sarrus.simulate_many(robot, np.stack([q] * 32), v, 100.0, held, dt=10.0)
        assert (runs.status == sarrus.results.Status.INTERRUPTED).all()
    else:
        assert sarrus.simulate(robot, q, v, 100.0, held, dt=10.0).status == "interrupted"


def heap(count):
    """Return boxes at one position, all in contact with each other."""
    b = sarrus.Builder("heap")
    b.add_shape("ground", sarrus.shapes.Plane())
    for k in range(count):
        b.add_body(f"box{k}", sarrus.Inertia.box(1.0, (0.2, 0.2, 0.2)))
        b.add_joint(f"float{k}", sarrus.Free(), "ground", f"box{k}")
        b.add_shape(f"box{k}", sarrus.shapes.Box((0.2, 0.2, 0.2)))
    with pytest.warns(ModelWarning, match="overlap in the home configuration"):
        robot = b.build()
    q = robot.neutral().reshape(count, 7)
    q[:, 6] = 0.11
    return robot, q.ravel()


def test_a_heap_with_more_contacts_than_a_step_may_work_for_is_refused():
    robot, q = heap(40)
    with pytest.raises(IntegrationError, match=r"more contacts are coupled .* enabled=False"):
        sarrus.simulate(robot, q, np.zeros(robot.nv), 1e-3, method="contact")


@pytest.mark.parametrize("count", [20, 25])
def test_ctrl_c_ends_a_step_with_very_many_contacts(count):
    robot, q = heap(count)
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert sarrus.simulate(robot, q, np.zeros(robot.nv), 1e-3, method="contact").status == "interrupted"
