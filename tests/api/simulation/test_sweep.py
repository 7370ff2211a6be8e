"""simulate_many() for users: single runs in lanes, threads, executors, failures."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import PID, CompliantContact, ComputedTorque, FeedforwardEffort, LuGreFriction
from sarrus.simulation import storage
from sarrus.simulation.sweep import Status, Sweep
from tests.small_mechanisms import FIXED, two_wheels

CRANKS = np.linspace(0.2, 1.4, 21)  # more than the lanes hold, and no multiple of them


def slider(**joint):
    """Return one body on a straight line, without gravity."""
    b = sarrus.Builder("slider", gravity=(0.0, 0.0, 0.0))
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", **joint), "ground", "block")
    return b.build()


@pytest.fixture(scope="module")
def states():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    q = np.array([robot.assemble(fixed={"motor": x}, near=q) for x in CRANKS])
    return robot, q, robot.project_velocity(q, np.tile([6.0, 0.0, 0.0], (len(q), 1)))


def drives(gain):
    return [
        PID("motor", gain, 10.0, 1.0, target=sarrus.laws.harmonic(0.3, rate=3.0), limits=(-5.0, 5.0)),
        FeedforwardEffort("pin1", 0.1),
        LuGreFriction("pivot", 0.1 * gain, stiffness=100.0),
        CompliantContact("rocker", stiffness=1e3, offset=-0.2, normal="x"),
    ]


# ---- they are single runs --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sarrus.DriftWarning")
@pytest.mark.parametrize("stabilisation", ["none", "corrective", "baumgarte", "projection"])
@pytest.mark.parametrize("method", FIXED)
def test_many_runs_are_single_runs(states, method, stabilisation):
    """Gains differ between runs. Lanes round differently: some 1e-15 per step and unit, times the sensitivity of the motion in 0.1 s."""
    robot, q, v = states
    gains = np.linspace(5.0, 20.0, len(q))
    options = {"method": method, "dt": 1e-3, "stabilisation": stabilisation, "start": 0.3}
    t, q_many, v_many, status = sarrus.simulate_many(robot, q, v, 0.1, drives(gains), every=7, **options)
    assert not status.any()
    assert_allclose(t, 0.3 + np.r_[np.arange(0, 100, 7), 100] * 1e-3, rtol=1e-14)
    for i in range(0, len(q), 5):
        run = sarrus.simulate(robot, q[i], v[i], 0.1, drives(gains[i]), **options)
        k = np.r_[np.arange(0, 100, 7), 100]
        assert_allclose(q_many[i], run.q[k], atol=1e-11)
        assert_allclose(v_many[i], run.v[k], atol=1e-10)


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("every", [1, 4, 5, 7, 1000])
@pytest.mark.parametrize("duration", [0.02, 0.0205, 4e-4, 0.0])
def test_what_is_kept(states, method, every, duration):
    """Initial state, every `every` steps, and the end, which may be within a step; each as in simulate()."""
    robot, q, v = states
    runs = sarrus.simulate_many(robot, q[:3], v[:3], duration, drives(9.0), every=every, method=method, start=-0.1)
    run = sarrus.simulate(robot, q[1], v[1], duration, drives(9.0), method=method, dt=1e-3, start=-0.1)
    k = np.unique(np.r_[np.arange(0, len(run), every), len(run) - 1])
    assert_allclose(runs.t, run.t[k], rtol=1e-14)
    assert runs.t[-1] == -0.1 + duration
    assert runs.q.shape == (3, len(k), 3)
    assert runs.v.shape == (3, len(k), 3)
    assert_allclose(runs.q[1], run.q[k], atol=1e-12)
    assert_allclose(runs.v[1], run.v[k], atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "rkmk4", "implicit_midpoint"])
def test_loops_that_agree_only_where_they_are_closed(method):
    """Bricard's linkage can move only on its loops: in lanes as alone, also beside an invalid run."""
    robot = sarrus.mechanisms.bricard()
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    runs = sarrus.simulate_many(robot, [np.full(robot.nq, np.nan), q], v, 0.2, method=method, every=50)
    run = sarrus.simulate(robot, q, v, 0.2, method=method)
    assert_array_equal(runs.status, [Status.INVALID_STATE, 0])
    assert_allclose(runs.q[1], run.q[::50], atol=1e-11)
    assert_allclose(runs.v[1], run.v[::50], atol=1e-10)


def test_the_end_is_where_it_was_asked_for():
    """n dt may differ from the duration in the last digit."""
    robot = slider()
    for n in (1, 3, 6, 29, 115, 1001):
        for duration in (n * 1e-3, n / 1000, np.nextafter(n / 1000, 1e9), np.nextafter(n / 1000, 0.0)):
            runs = sarrus.simulate_many(robot, [0.0], [1.0], duration)
            assert len(runs.t) == n + 1
            assert runs.t[-1] == duration
            assert (np.diff(runs.t) > 0.0).all()


def test_the_result_is_a_tuple_with_names(states):
    robot, q, v = states
    runs = sarrus.simulate_many(robot, q, v, 0.01)
    assert isinstance(runs, Sweep)
    t, q_many, _, status = runs
    assert t is runs.t
    assert q_many is runs.q
    assert status.dtype == np.int8
    assert (status == Status.FINISHED).all()
    assert all(x.flags.c_contiguous and x.flags.owndata for x in runs)  # none holds more memory than it shows
    again = pickle.loads(pickle.dumps(runs))
    assert type(again) is Sweep
    assert_array_equal(again.v, runs.v)


def test_one_state_for_all():
    """q, v and parameters may each be one for all runs, or one per run."""
    robot = sarrus.mechanisms.pendulum()
    gains = np.linspace(1.0, 5.0, 6)
    one = sarrus.simulate_many(robot, [0.1], [0.0], 0.1, PID("pivot", gains))
    all_of_them = sarrus.simulate_many(robot, np.full((6, 1), 0.1), np.zeros((1, 1)), 0.1, PID("pivot", gains))
    assert one.q.shape == (6, 101, 1)
    for a, b in zip(one, all_of_them, strict=True):
        assert_array_equal(a, b)
    alone = sarrus.simulate_many(robot, [0.1], [0.0], 0.1, PID("pivot", gains[2]))
    assert alone.q.shape == (1, 101, 1)
    assert_allclose(alone.q[0], one.q[2], atol=1e-14)


def test_gains_of_computed_torque_run_by_run():
    """(runs, nv) or (runs, 1), or (nv,) for all runs."""
    robot = sarrus.mechanisms.double_pendulum()
    targets = {name: sarrus.laws.harmonic(0.5, rate=2.0) for name in robot.joints}
    kp, kd = np.linspace([40.0, 90.0], [100.0, 200.0], 5), np.linspace(10.0, 30.0, 5)[:, None]
    runs = sarrus.simulate_many(robot, [0.3, 0.1], [0.0, 0.0], 0.2, ComputedTorque(targets, kp, kd))
    for k in range(5):
        alone = sarrus.simulate(robot, [0.3, 0.1], [0.0, 0.0], 0.2, ComputedTorque(targets, kp[k], kd[k, 0]))
        assert_allclose(runs.q[k], alone.q, atol=1e-12)


@pytest.mark.parametrize("executor", [None, "threads"])
def test_no_runs(executor):
    """An empty sweep is valid."""
    robot = sarrus.mechanisms.pendulum()
    with ThreadPoolExecutor(1) as pool:
        options = {"executor": pool} if executor else {}
        runs = sarrus.simulate_many(robot, np.zeros((0, 1)), [0.0], 0.1, **options)
        same = sarrus.simulate_many(robot, [0.0], [0.0], 0.1, PID("pivot", np.zeros(0)), **options)
    for r in (runs, same):
        assert r.q.shape == r.v.shape == (0, 101, 1)
        assert r.status.shape == (0,)
        assert len(r.t) == 101


def test_threads_change_nothing(states):
    robot, q, v = states
    one, two, more = (
        sarrus.simulate_many(robot, np.vstack([q, q]), np.vstack([v, v]), 0.1, threads=n) for n in (1, 2, np.int64(50))
    )
    for a, b, c in zip(one, two, more, strict=True):
        assert_array_equal(a, b)
        assert_array_equal(a, c)


def test_blocks_change_nothing(states, monkeypatch):
    """A long batch is processed in blocks, so that only requested samples are stored for all runs."""
    robot, q, v = states
    whole = sarrus.simulate_many(robot, q, v, 0.02)
    monkeypatch.setattr("sarrus.simulation.setup.BLOCK", 8)
    parts = sarrus.simulate_many(robot, q, v, 0.02)
    for a, b in zip(whole, parts, strict=True):
        assert_array_equal(a, b)


def test_two_callers_at_once(states):
    """Two threads have the results of separate calls."""
    robot, q, v = states
    alone = [sarrus.simulate_many(robot, q, v, 0.3, drives(g)) for g in (5.0, 9.0)]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda g: sarrus.simulate_many(robot, q, v, 0.3, drives(g)), (5.0, 9.0)))
    for a, b in zip(alone, both, strict=True):
        assert_array_equal(a.q, b.q)


# ---- over executors --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def dask():
    """Return a cluster of two processes on this machine, which is closed after the test."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=40
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class Waiting:
    """An executor whose jobs never begin, or finish later, without further attributes."""

    def __init__(self):
        self.jobs = []

    def submit(self, job, *arguments):
        self.jobs.append(Future())
        return self.jobs[-1]


def sweep(states, method="rk4", **options):
    """Return runs of unequal groups, two of them invalid, up to a partial step."""
    robot, q, v = states
    q, v = np.repeat(q, 2, axis=0)[:37], np.repeat(v, 2, axis=0)[:37]
    q[3], v[30] = np.nan, np.inf
    gains = np.linspace(5.0, 20.0, len(q))
    return sarrus.simulate_many(robot, q, v, 0.0305, drives(gains), every=10, method=method, **options)


def same(a, b):
    for x, y in zip(a, b, strict=True):
        assert_array_equal(x, y)
        assert x.dtype == y.dtype


@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "independent"])
def test_executors_change_nothing(states, processes, method):
    """Bit for bit: shares are whole packets, for any number of workers."""
    plain = sweep(states, method)
    assert_array_equal(np.flatnonzero(plain.status), [3, 30])
    for workers in (1, 2, 5):
        with ThreadPoolExecutor(workers) as pool:
            same(sweep(states, method, executor=pool), plain)
            same(sweep(states, method, executor=pool, threads=2), plain)
    same(sweep(states, method, executor=processes), plain)


def test_dask_changes_nothing(states, dask):
    """Dask's executor, with its own number of workers, and no output."""
    same(sweep(states, executor=dask.get_executor()), sweep(states))
    same(sweep(states, "independent", executor=dask.get_executor()), sweep(states, "independent"))
    assert sarrus.simulation.workers._workers(dask.get_executor()) == 2
    robot = sarrus.mechanisms.pendulum()
    with pytest.raises(sarrus.NameNotFoundError, match="elbow"):
        sarrus.simulate_many(robot, [0.0], [0.0], 0.1, PID("elbow"), executor=dask.get_executor())


class Scales:
    """An executor that measures the size of its jobs."""

    def __init__(self, workers):
        self._max_workers, self.weights = workers, []

    def submit(self, job, *arguments):
        self.weights.append(len(pickle.dumps((job, *arguments))))
        job = Future()
        job.set_exception(MyError("weighed"))
        return job


@pytest.mark.parametrize(("runs", "workers", "jobs"), [(64, 2, 8), (64, 100, 8), (1000, 2, 8), (200_000, 1, 7)])
def test_shares(runs, workers, jobs):
    """Several shares per worker, at least a packet each, and below the 10 MB at which Dask warns."""
    robot, gains = sarrus.mechanisms.double_pendulum(), np.ones(runs)
    scales = Scales(workers)
    with pytest.raises(MyError):
        sarrus.simulate_many(
            robot, np.zeros((runs, 2)), [0.0, 0.0], 1e-3, [PID(name, gains) for name in robot.joints], executor=scales
        )
    assert len(scales.weights) == jobs
    assert max(scales.weights) < 5e6


def test_everything_travels(states):
    """Mechanisms, laws and elements are sent, because a worker may be remote."""
    robot, _, _ = states
    ramp = sarrus.laws.polynomial(0.0, 1.0) + sarrus.laws.harmonic(0.1, rate=2.0)
    things = [*drives(np.arange(3.0) + 1.0), ComputedTorque({"motor": ramp}), ramp]
    for thing in things:
        assert repr(pickle.loads(pickle.dumps(thing))) == repr(thing)
    for mechanism in (robot, sarrus.mechanisms.hslm(), sarrus.mechanisms.rolling_disc()):
        there = pickle.loads(pickle.dumps(mechanism))
        assert there == mechanism
        q = mechanism.assemble()
        assert_array_equal(there.mass_matrix(q), mechanism.mass_matrix(q))


def test_a_job_leaves_what_it_gets_alone(states):
    """An executor may pass read-only arrays, or the caller's own, and Ray returns read-only ones."""

    class Locked(Waiting):
        def submit(self, job, *arguments):
            for x in arguments:
                if isinstance(x, np.ndarray):
                    x.setflags(write=False)
            kept, ended, record = job(*arguments)
            for answer in (kept, ended, *record.values()):
                answer.setflags(write=False)
            super().submit(job).set_result((kept, ended, record))
            return self.jobs[-1]

    same(sweep(states, executor=Locked()), sweep(states))


class MyError(Exception):
    pass


class Failing(ThreadPoolExecutor):
    """An executor whose third job fails."""

    begun = 0

    def submit(self, job, *arguments):
        Failing.begun += 1
        if Failing.begun != 3:
            return super().submit(job, *arguments)

        def fails():
            raise MyError("of the worker")

        return super().submit(fails)


def test_what_a_job_raises_comes_through():
    """Waiting jobs are cancelled."""
    robot = sarrus.mechanisms.pendulum()
    q = np.zeros((64, 1))
    with Failing(1) as pool, pytest.raises(MyError, match="of the worker"):
        sarrus.simulate_many(robot, q, [0.0], 0.1, executor=pool)


def test_jobs_are_cancelled_when_one_fails():
    pool = Waiting()
    robot = sarrus.mechanisms.pendulum()

    def fail():
        while len(pool.jobs) < 8:
            time.sleep(1e-3)
        pool.jobs[0].set_exception(MyError("early"))

    threading.Thread(target=fail).start()
    with pytest.raises(MyError, match="early"):
        sarrus.simulate_many(robot, np.zeros((64, 1)), [0.0], 0.1, executor=pool)
    assert len(pool.jobs) == 8
    assert all(job.cancelled() for job in pool.jobs[1:])


def test_ctrl_c_cancels_jobs():
    """Missing results are marked, and no further job begins."""
    pool = Waiting()
    robot = sarrus.mechanisms.pendulum()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    runs = sarrus.simulate_many(robot, np.linspace(0.0, 1.0, 64)[:, None], [0.0], 0.1, executor=pool)
    assert (runs.status == Status.INTERRUPTED).all()
    assert_array_equal(runs.q[:, 0, 0], np.linspace(0.0, 1.0, 64))
    assert np.isnan(runs.q[:, 1:]).all()
    assert all(job.cancelled() for job in pool.jobs)


def test_ctrl_c_keeps_what_came_back():
    class First(Waiting):
        def submit(self, job, *arguments):
            super().submit(job, *arguments)
            if len(self.jobs) == 1:
                self.jobs[0].set_result(job(*arguments))
            return self.jobs[-1]

    robot = sarrus.mechanisms.pendulum()
    q = np.linspace(0.0, 1.0, 64)[:, None]
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    runs = sarrus.simulate_many(robot, q, [0.0], 0.1, executor=First())
    assert_array_equal(runs.status, np.repeat([Status.FINISHED, Status.INTERRUPTED], [8, 56]))
    assert_array_equal(runs.q[:8], sarrus.simulate_many(robot, q[:8], [0.0], 0.1).q)


# ---- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED)
def test_a_bad_run_spoils_its_row_only(method):
    """One run begins with NaN, one with infinity, one diverges; the others are unchanged."""
    robot = slider(stiffness=1e6)
    q = np.full((11, 1), 1e-3)
    v = np.zeros((11, 1))
    q[3], v[5], v[7] = np.nan, np.inf, 1e300
    options = {"method": method, "dt": 1e-4}
    t, q_many, _, status = sarrus.simulate_many(robot, q, v, 0.05, FeedforwardEffort("slide", 1.0), **options)
    sound = [i for i in range(11) if i not in (3, 5, 7)]
    assert not status[sound].any()
    assert status[3] == status[5] == Status.INVALID_STATE
    assert np.isnan(q_many[[3, 5]]).all()
    alone = sarrus.simulate_many(robot, q[sound], v[sound], 0.05, FeedforwardEffort("slide", 1.0), **options)
    assert_allclose(q_many[sound], alone.q, rtol=1e-12)
    assert len(t) == 501


def test_a_run_that_diverges_is_kept_until_then():
    robot = slider(stiffness=1e6)
    with pytest.warns(sarrus.StiffnessWarning, match=r"in 2 of 3 runs"):
        _, q, v, status = sarrus.simulate_many(robot, [[0.0], [0.1], [0.0]], [0.0], 100.05, dt=0.1, method="rk4")
    assert_array_equal(status, [0, Status.DIVERGED, 0])
    ended = np.isnan(q[1, :, 0])
    assert np.isnan(v[1, ended]).all()
    assert 1 < np.argmax(ended) < 1000
    assert ended[np.argmax(ended) :].all()
    with pytest.raises(sarrus.IntegrationError) as caught:
        sarrus.simulate(robot, [0.1], [0.0], 100.05, dt=0.1, method="rk4")
    assert abs(len(caught.value.trajectory) - np.argmax(ended)) <= 1


def test_one_that_fails_in_the_last_part_of_a_step():
    """The run is marked like one that fails in a full step."""
    robot = slider(stiffness=1e6)
    v = np.array([[1.0], [1.7e308], [1.0]])
    with pytest.warns(sarrus.StiffnessWarning, match=r"dt = 0.05 s .* fastest rate is 1e\+03/s"):
        runs = sarrus.simulate_many(robot, [0.0], v, 0.05, dt=100.0, method="rk4")
    with pytest.warns(sarrus.StiffnessWarning):
        alone = sarrus.simulate_many(robot, [0.0], [1.0], 0.05, dt=100.0, method="rk4")
    assert_array_equal(runs.status, [0, Status.DIVERGED, 0])
    assert_array_equal(runs.t, [0.0, 0.05])
    assert np.isnan(runs.q[1, 1])
    assert_array_equal(runs.q[0], alone.q[0])


@pytest.fixture(scope="module")
def unreachable():
    """Yield states of a four-bar from which small steps do not lead onto its loop: flat, and open along the line."""
    robot = sarrus.mechanisms.four_bar()
    x = np.pi * np.round(np.random.default_rng(0).normal(size=(200, 3)))
    far = ~(np.abs(robot.constraint_residual(robot.project_configuration(x))).max(axis=1) <= 1e-8)
    assert far.any()
    return x[far]


@pytest.mark.parametrize("method", FIXED)
def test_loops_too_far_open(states, unreachable, method):
    """A run among many is marked if simulate() would raise an error; its neighbours are unchanged."""
    robot, q, v = states
    with pytest.raises(sarrus.StateError, match="open by"):
        sarrus.simulate(robot, unreachable[0], v[0], 0.01, method=method)
    mixed, u = np.insert(q, [2, 9], unreachable[0], axis=0), np.insert(v, [2, 9], v[0], axis=0)
    runs = sarrus.simulate_many(robot, mixed, u, 0.0105, method=method)
    alone = sarrus.simulate_many(robot, q, v, 0.0105, method=method)
    bad = [2, 10]
    assert_array_equal(np.flatnonzero(runs.status), bad)
    assert (runs.status[bad] == Status.INVALID_STATE).all()
    assert np.isnan(runs.q[bad]).all()
    assert np.isnan(runs.v[bad]).all()
    assert_allclose(np.delete(runs.q, bad, axis=0), alone.q, atol=1e-12)
    assert_allclose(np.delete(runs.v, bad, axis=0), alone.v, atol=1e-11)


@pytest.mark.parametrize("method", FIXED)
def test_none_of_them_sound(unreachable, method):
    """There is no error, but each run is marked."""
    robot = sarrus.mechanisms.four_bar()
    for q in (unreachable[:1], np.full((9, 3), np.nan)):
        runs = sarrus.simulate_many(robot, q, [1.0, 0.0, 0.0], 0.01, method=method)
        assert (runs.status == Status.INVALID_STATE).all()
        assert np.isnan(runs.q).all()


def test_velocities_that_contradict():
    """A belt connects two wheels with inconsistent rates: their angles agree at t = 0.5 s, but no motion does."""
    robot = two_wheels(-0.5, 3.0)
    with pytest.raises(sarrus.StateError, match="contradict one another"):
        sarrus.simulate(robot, [1.0, 1.0], [2.0, 2.0], 0.01, start=0.5)
    runs = sarrus.simulate_many(robot, [[1.0, 1.0], [1.0, 1.1], [1.0, np.nan]], [2.0, 2.0], 0.01, start=0.5)
    assert runs.status.tolist() == [
        Status.INCONSISTENT_CONSTRAINTS,
        Status.INCONSISTENT_CONSTRAINTS,
        Status.INVALID_STATE,
    ]
    assert np.isnan(runs.v).all()


def test_a_quaternion_that_is_no_rotation():
    b = sarrus.Builder("top")
    b.add_body("top", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("ball", sarrus.Spherical(), "ground", "top")
    robot = b.build()
    q = np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    runs = sarrus.simulate_many(robot, q, [1.0, 0.0, 0.0], 0.1)
    assert_array_equal(runs.status, [0, Status.INVALID_STATE, 0])
    assert_allclose(runs.q[2], runs.q[0], atol=1e-15)


@pytest.mark.filterwarnings("ignore::sarrus.DriftWarning")
def test_loops_that_are_left_open_on_purpose(states):
    """stabilisation="none" starts at the given state."""
    robot, q, v = states
    runs = sarrus.simulate_many(robot, q + 1e-3, v, 0.01, stabilisation="none")
    assert not runs.status.any()
    assert_array_equal(runs.q[:, 0], q + 1e-3)


def test_ctrl_c_during_many_runs():
    """Unfinished runs are marked, and contain no uninitialised values."""
    robot = sarrus.mechanisms.pendulum()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    _, q, _, status = sarrus.simulate_many(robot, np.linspace(0, 1, 64)[:, None], [0.0], 5000.0, every=1000, threads=2)
    assert (status == Status.INTERRUPTED).any()
    finite = np.isfinite(q[:, :, 0])
    assert (np.abs(q[finite]) < 4.0).all()
    assert finite[:, 0].all()
    assert finite[status == 0].all()
    assert not finite[status == Status.INTERRUPTED][:, -1].all()


def test_ctrl_c_between_blocks(monkeypatch):
    """Blocks after the interrupted one do not begin."""
    monkeypatch.setattr("sarrus.simulation.setup.BLOCK", 8)
    robot = sarrus.mechanisms.pendulum()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    runs = sarrus.simulate_many(robot, np.linspace(0, 1, 800)[:, None], [0.0], 2000.0, every=1000)
    assert runs.status[-1] == Status.INTERRUPTED
    assert np.isnan(runs.q[-1, 1:]).all()
    assert np.isfinite(runs.q[:, 0]).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_is_soon(threads):
    """With any number of steps between samples, none of the much longer runs reaches its end."""
    robot = sarrus.mechanisms.pendulum()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    runs = sarrus.simulate_many(robot, np.full((32, 1), 0.1), [0.0], 10_000.0, every=10**9, threads=threads)
    assert (runs.status == Status.INTERRUPTED).all()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_what_another_signal_raises_comes_through():
    """A time limit's signal is not Ctrl-C."""

    def late(*_):
        raise MyError("too late")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(MyError, match="too late"):
            sarrus.simulate_many(sarrus.mechanisms.pendulum(), np.full((32, 1), 0.1), [0.0], 200.0, every=1000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


BAD_MANY = [
    ({"method": "dopri5"}, ValueError, "dopri5"),
    ({"method": "rk5"}, ValueError, "method must be one of"),
    ({"stabilisation": "glue"}, ValueError, "stabilisation must be one of"),
    ({"gains": (1.0, np.nan), "stabilisation": "baumgarte"}, ValueError, "gains must be two"),
    ({"gains": (1.0, 1.0)}, ValueError, "has no gains"),
    ({"dt": 0.0}, ValueError, "dt must be positive and finite; got 0.0"),
    ({"start": 1e16}, ValueError, "time cannot advance"),
    ({"v": np.ma.array([0.1], mask=[True])}, TypeError, "v must be numbers"),
    ({"dt": -1.0}, ValueError, "dt must be positive"),
    ({"dt": np.nan}, ValueError, "dt must be positive"),
    ({"dt": np.inf}, ValueError, "dt must be positive and finite"),
    ({"dt": 1e-320}, ValueError, "dt = .*too short"),
    ({"dt": 1e-320, "duration": 0.0}, ValueError, "dt = .*too short"),
    ({"dt": 1e-18}, ValueError, r"too short: 0.1 s must be at most 2\^53 steps"),
    ({"dt": "1e-3"}, TypeError, "dt must be a number; got '1e-3'"),
    ({"duration": -1.0}, ValueError, "duration must be seconds, not negative and finite; got -1.0"),
    ({"duration": np.inf}, ValueError, "duration must"),
    ({"duration": np.nan}, ValueError, "duration must"),
    ({"duration": None}, TypeError, "duration must be a number; got None"),
    ({"start": np.nan}, ValueError, "start must be finite; got nan"),
    ({"start": "now"}, TypeError, "start must be a number; got 'now'"),
    ({"threads": 0}, ValueError, "threads must be at least 1; got 0"),
    ({"threads": 2.0}, TypeError, "threads must be an integer of at least 1; got 2.0"),
    ({"threads": True}, TypeError, "threads must be an integer .*got True"),
    ({"every": 0}, ValueError, "every must be at least 1; got 0"),
    ({"every": 2.5}, TypeError, "every must be an integer of at least 1; got 2.5"),
    ({"every": np.True_}, TypeError, "every must be an integer .*True"),
    ({"executor": 2}, TypeError, r"executor must be .*submit\(\); got 2"),
    ({"q": np.zeros((3, 1)), "v": np.zeros((2, 1))}, sarrus.ShapeError, "different numbers of runs"),
    ({"q": np.zeros((0, 1)), "v": np.zeros((2, 1))}, sarrus.ShapeError, "different numbers of runs"),
    ({"q": np.zeros((3, 2))}, sarrus.ShapeError, r"\(runs, 1\).*got \(3, 2\)"),
    ({"q": np.zeros((2, 3, 1))}, sarrus.ShapeError, r"\(runs, 1\)"),
    ({"q": 0.1}, sarrus.ShapeError, r"\(runs, 1\).*got \(\)"),
    ({"q": "up"}, TypeError, r"q must be numbers \(runs, 1\); got 'up'"),
    ({"v": [[1j]]}, TypeError, "v must be numbers"),
    ({"v": [[0.0], [0.0, 1.0]]}, TypeError, "v must be numbers"),
    ({"q": None}, TypeError, "q must be numbers .*None"),
    ({"controller": lambda t, q, v: [0.0]}, TypeError, r"simulate\(\)"),
    ({"controller": 3}, TypeError, "controller must be a function .*got 3"),
    ({"controller": PID("elbow")}, sarrus.NameNotFoundError, "elbow"),
    ({"controller": PID("pivot", np.ones(3)), "q": np.zeros((2, 1))}, sarrus.ShapeError, "different numbers of runs"),
    ({"controller": [PID("pivot", np.ones(3)), PID("pivot", np.ones(2))]}, sarrus.ShapeError, "same number of runs"),
    ({"controller": PID("pivot", limits=(np.zeros(2), [1.0, -1.0]))}, sarrus.ModelError, "limits"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_MANY)
def test_bad_arguments_of_many(options, error, message):
    given = {"q": [[0.1]], "v": [0.0], "duration": 0.1} | options
    with pytest.raises(error, match=message):
        sarrus.simulate_many(sarrus.mechanisms.pendulum(), **given)


def test_more_than_memory_holds():
    """The error is raised before a run begins."""
    with pytest.raises(MemoryError):
        sarrus.simulate_many(sarrus.mechanisms.pendulum(), np.zeros((1000, 1)), [0.0], 1e6, dt=1e-9)


def test_limits_of_many_runs():
    """End stops that differ between runs act as in single runs; violations are reported once for all."""
    robot = slider(limits=(-0.2, 0.2), effort_limit=10.0, velocity_limit=100.0)
    v, stiffness, upper = np.linspace(0.5, 3.0, 9)[:, None], np.linspace(1e3, 1e4, 9), np.linspace(0.1, 0.15, 9)
    made = sarrus.control.EndStop
    for limits in ("ignore", "enforce"):
        stop = made("slide", (-0.2, upper), stiffness=stiffness, damping=30.0)
        runs = sarrus.simulate_many(robot, [0.0], v, 0.2, stop, limits=limits, every=10)
        for k in range(9):
            alone = made("slide", (-0.2, upper[k]), stiffness=stiffness[k], damping=30.0)
            run = sarrus.simulate(robot, [0.0], v[k], 0.2, alone, limits=limits)
            assert_allclose(runs.q[k], run.q[::10], rtol=0, atol=1e-12)
    assert [x.quantity for x in runs.limits] == ["position", "velocity", "effort"]
    with pytest.warns(sarrus.LimitWarning, match=r"'slide' leaves its limits \(-0.2, 0.2\) .*in 3 of 4 runs") as told:
        runs = sarrus.simulate_many(robot, [0.0], [[0.5], [1.5], [-2.5], [2.5]], 0.2, every=1000)
    assert len(told) == 1 and told[0].filename == __file__
    assert_allclose(runs.excess[:, 0], [0.0, 0.1, -0.3, 0.3], atol=1e-8)
    assert (runs.excess[:, 1:] == 0.0).all()
    t, q, v, status = runs  # as ever
    assert q.shape == (4, 2, 1)


def test_stiffness_of_many_runs():
    """The steps that are checked do not depend on neighbouring lanes."""
    robot = slider()
    stop = sarrus.control.EndStop("slide", (-1.0, 0.05), stiffness=1e5)
    v = np.linspace(0.3, 2.0, 7)[:, None]
    runs = sarrus.simulate_many(robot, [0.0], v, 0.2, stop)
    alone = [sarrus.simulate(robot, [0.0], x, 0.2, stop).statistics["stiffness"] for x in v]
    assert_allclose(runs.stiffness, alone, rtol=1e-6)
    assert 0.1 < runs.stiffness.max() < 2.0
    assert pickle.loads(pickle.dumps(runs)).stiffness.shape == (7,)


@pytest.mark.parametrize("apart", [True, False])
def test_laws_and_numbers_of_runs_of_several_mechanisms(apart, monkeypatch):
    """Each mechanism gets only the laws of its own runs; otherwise the cost for n mechanisms would grow as n squared."""
    if apart:
        monkeypatch.setattr(sarrus.simulation.sweep, "_alike", lambda robots: None)
    lengths = (0.3, 0.5, 0.3, 0.4, 0.5, 0.3)
    robots = [sarrus.mechanisms.pendulum(length=length) for length in lengths]
    laws = [sarrus.laws.harmonic(1.0, rate) for rate in (1.0, 2.0, 3.0, 1.0, 2.0, 4.0)]
    acting = [FeedforwardEffort("pivot", laws), PID("pivot", np.arange(6.0), target=laws[::-1], integral=1.0)]
    runs = sarrus.simulate_many(robots, [0.1], [0.0], 0.5, acting)
    for k, robot in enumerate(robots):
        alone = [FeedforwardEffort("pivot", laws[k]), PID("pivot", float(k), target=laws[5 - k], integral=1.0)]
        run = sarrus.simulate(robot, [0.1], [0.0], 0.5, alone)
        assert_allclose(runs.q[k], run.q, atol=1e-12)
        assert_allclose(runs[k].tau, run.tau, atol=1e-12)
    told = [
        len(value[0])
        for one in (runs._acting if apart else [runs._acting])
        for term in one.setup.terms
        for value in term.values()
        if isinstance(value, tuple) and isinstance(value[0], list)
    ]
    assert (len(told), max(told)) == ((12, 3) if apart else (2, 4)), told
    for wrong in (laws[:5], [*laws, laws[0]]):
        match = (
            f"from run to run must have one item for each of the 6 runs; got {len(wrong)}"
            if apart
            else "with 6 mechanisms, have different numbers of runs"
        )
        with pytest.raises(sarrus.ShapeError, match=match):
            sarrus.simulate_many(robots, [0.1], [0.0], 0.01, FeedforwardEffort("pivot", wrong))
    assert sarrus.simulate_many(robots, [0.1], [0.0], 0.01, FeedforwardEffort("pivot", laws[:1])).status.max() == 0


def test_a_list_of_one_mechanism():
    robot = sarrus.mechanisms.pendulum()
    q = np.linspace(0.1, 0.5, 5)[:, None]
    listed, plain = sarrus.simulate_many([robot], q, [0.0], 0.01), sarrus.simulate_many(robot, q, [0.0], 0.01)
    assert_array_equal(listed.q, plain.q)
    assert_array_equal(listed.status, plain.status)


# ---- a folder, and how far it is -------------------------------------------------------------------------------------


def stored(runs=300, executor=None, several=False, **options):
    """Return four-bars with friction and different laws; some start in invalid states."""
    robot = sarrus.mechanisms.four_bar()
    q = np.tile(robot.assemble(fixed={"motor": 0.5}), (runs, 1))
    q[7] = np.nan
    robots = [robot, sarrus.mechanisms.four_bar(crank=0.35)] * (runs // 2) if several else robot
    acting = [
        PID("motor", np.linspace(5.0, 50.0, runs), 2.0, 1.0, target=[sarrus.laws.harmonic(1.0, k) for k in range(runs)]),
        LuGreFriction("pivot", 0.1, stiffness=100.0),
    ]  # fmt: skip
    how = {"method": "rk4", "every": 5, "executor": executor, "limits": "ignore"} | options
    return sarrus.simulate_many(robots, q, np.zeros(3), 0.05, acting, **how)


def same_runs(one, other):
    for name in ("t", "q", "v", "internal_state", "status", "excess", "stiffness"):
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert_array_equal(one[200].tau, other[200].tau)


@pytest.mark.filterwarnings("ignore::sarrus.StiffnessWarning")
@pytest.mark.parametrize("several", [False, True])
def test_a_store_goes_on_where_it_was_cut_off(tmp_path, several):
    folder, done = tmp_path / "runs", []

    def cut_off(n, runs):
        done.append(n)
        if len(done) == 2:
            raise RuntimeError("a crash")

    with pytest.raises(RuntimeError, match="a crash"):
        stored(store=folder, several=several, progress=cut_off)
    status = np.load(folder / "status.npy")
    assert 0 < done[-1] == np.count_nonzero(status != Status.INTERRUPTED) < 300
    assert np.isnan(np.load(folder / "q.npy")[status == Status.INTERRUPTED, 1:]).all()
    whole, more = stored(several=several), []
    again = stored(store=folder, several=several, progress=lambda n, runs: more.append(n))
    same_runs(again, whole)
    assert more[0] > done[-1] and more[-1] == 300  # what was done was not done again
    assert again.status[7] != 0 and np.count_nonzero(again.status) == 1
    assert_array_equal(np.load(folder / "v.npy"), whole.v)
    assert_array_equal(np.load(folder / "t.npy"), whole.t)
    with pytest.raises(ValueError, match="read-only"):
        again.q[0] = 0.0
    finished = []
    same_runs(stored(store=folder, several=several, progress=lambda *n: finished.append(n)), whole)
    assert not finished
    with ThreadPoolExecutor(2) as pool:
        same_runs(stored(store=tmp_path / "spread", several=several, executor=pool), whole)


@pytest.mark.filterwarnings("ignore::sarrus.StiffnessWarning")
def test_a_store_of_other_arguments_is_refused(tmp_path):
    stored(store=tmp_path / "x")
    for what, changed in {
        "times": {"dt": 5e-4}, "method": {"stabilisation": "none"}, "q": {"runs": 299},
        "mechanism": {"several": True}, "near": {"near": {"pin2": [0.1]}},
    }.items():  # fmt: skip
        with pytest.raises(sarrus.ModelError, match=rf"have different arguments: .*\b{what}\b"):
            stored(store=tmp_path / "x", **changed)
    whole = (tmp_path / "x" / "v.npy").read_bytes()
    np.save(tmp_path / "other.npy", np.zeros(3))
    for changed in ((tmp_path / "other.npy").read_bytes(), whole[:-8], whole[:150], b"junk", b""):
        (tmp_path / "x" / "v.npy").write_bytes(changed)
        with pytest.raises(sarrus.ModelError, match=r"v\.npy was changed"):
            stored(store=tmp_path / "x")
    (tmp_path / "x" / "v.npy").unlink()
    with pytest.raises(sarrus.ModelError, match=r"v\.npy was changed"):
        stored(store=tmp_path / "x")
    (tmp_path / "x" / "arguments.json").write_text("[1]")
    with pytest.raises(sarrus.ModelError, match="was not written by sarrus"):
        stored(store=tmp_path / "x")
    robot = sarrus.mechanisms.pendulum()
    with pytest.raises(ValueError, match="store= stores each run"):
        sarrus.simulate_many(robot, [0.1], [0.0], 0.1, policy=lambda t, q, v: v, store=tmp_path / "y")


def test_a_store_after_ctrl_c(tmp_path):
    def cut_off(done, runs):
        raise KeyboardInterrupt

    first = stored(store=tmp_path / "x", progress=cut_off, limits="warn")
    assert 0 < np.count_nonzero(first.status == Status.INTERRUPTED) < 300
    same_runs(stored(store=tmp_path / "x", limits="warn"), stored(limits="warn"))


def test_a_store_is_one_call_s_at_a_time(tmp_path):
    """A second call during a write raises an error, for any arguments; so does one within `progress`."""
    refused, far = [], []

    def meanwhile(done, runs):
        far.append(done)
        for options in ({}, {"dt": 5e-4}) if done < runs and not refused else ():
            with pytest.raises(sarrus.ModelError, match="another call of simulate_many") as error:
                stored(store=tmp_path / "x", limits="warn", **options)
            refused.append(error)

    same_runs(stored(store=tmp_path / "x", limits="warn", progress=meanwhile), stored(limits="warn"))
    assert len(refused) == 2 and far[-1] == 300
    same_runs(stored(store=tmp_path / "x", limits="warn"), stored(limits="warn"))


def test_two_calls_begin_in_one_new_folder(tmp_path):
    """Each caller that gets a result gets the correct one, and a later call too."""
    robot, starts, meet = sarrus.mechanisms.pendulum(), (0.3, 0.8), threading.Barrier(2)

    def runs(start, **options):
        return np.array(sarrus.simulate_many(robot, np.full((200, 1), start), [0.0], 0.1, **options).q)

    def begin(start):
        meet.wait()
        try:
            return runs(start, store=folder)
        except sarrus.ModelError:
            return None

    for trial in range(4):
        folder = tmp_path / str(trial)
        with ThreadPoolExecutor(2) as pool:
            answers = [*pool.map(begin, starts)]
        for start, answer in zip(starts, answers, strict=True):
            if answer is not None:
                assert_array_equal(answer, runs(start))
                assert_array_equal(runs(start, store=folder), answer)
        assert sum(answer is not None for answer in answers) == 1


def test_a_new_store_in_place_of_half_of_one_cuts_no_mapped_file(tmp_path):
    first = stored(store=tmp_path / "x", limits="warn")
    (tmp_path / "x" / "arguments.json").unlink()  # as where a call ended while it made the folder
    same_runs(stored(store=tmp_path / "x", runs=250, limits="warn"), stored(runs=250, limits="warn"))
    same_runs(first, stored(limits="warn"))


def test_a_store_of_more_than_the_disk_has(tmp_path, monkeypatch):
    usage = SimpleNamespace(free=10000)
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(MemoryError, match=r"GiB, and the disk of '.*' has .* free: store fewer"):
        stored(store=tmp_path / "x", limits="warn")
    assert not [*(tmp_path / "x").glob("*.npy")]
    usage.free = 10**7
    first = stored(store=tmp_path / "x", limits="warn")
    usage.free = 10000  # it is all there
    same_runs(stored(store=tmp_path / "x", limits="warn"), first)


def test_a_bar_of_runs(capsys):
    pytest.importorskip("tqdm")
    sarrus.simulate_many(sarrus.mechanisms.pendulum(), np.zeros((200, 1)), [0.0], 0.01, progress=True)
    assert "200/200" in capsys.readouterr().err
