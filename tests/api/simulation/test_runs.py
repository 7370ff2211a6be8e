"""Results of many runs: trajectories, files, tables, bundles; and a policy for all runs at once."""

import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import PID, FeedforwardEffort, LuGreFriction, SampleAndHold
from sarrus.simulation.sweep import Status, Sweep
from tests.trajectories import same

FOURBAR = sarrus.mechanisms.four_bar()
CRANKS = np.linspace(0.2, 1.4, 11)
START = np.array([FOURBAR.assemble(fixed={"motor": x}, near=FOURBAR.assemble(fixed={"motor": 0.5})) for x in CRANKS])
GAINS = np.linspace(5.0, 20.0, len(CRANKS))


def drives(gain):
    return [PID("motor", gain, 10.0, 1.0, target=1.0), LuGreFriction("pivot", 0.1 * gain, stiffness=100.0)]


def sweep(duration=0.1, **options):
    given = {"every": 5, "method": "rk4"} | options
    return sarrus.simulate_many(FOURBAR, START, np.zeros(3), duration, drives(GAINS), **given)


def equal(one, other):
    for name in ("t", "q", "v", "internal_state", "status", "excess", "stiffness"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.limits == other.limits and one.mechanism == other.mechanism


# ---- each of them ----------------------------------------------------------------------------------------------------


def test_a_run_is_a_trajectory():
    """With forces and internal states, as simulate() returns it."""
    runs = sweep()
    for i in (0, 7, -1):
        one = sarrus.simulate(FOURBAR, START[i], np.zeros(3), 0.1, drives(GAINS[i]), method="rk4")
        run = runs[i]
        assert (run.status, run.statistics["method"], len(run)) == ("finished", "rk4", 21)
        for name, tolerance in (("q", 1e-11), ("v", 1e-10), ("internal_state", 1e-10), ("tau", 1e-8), ("a", 1e-7)):
            assert_allclose(getattr(run, name), getattr(one, name)[::5], atol=tolerance)
        assert_allclose(run.reactions.wrenches["pin2"], one.reactions.wrenches["pin2"][::5], atol=1e-7)
    with pytest.raises(IndexError, match="index 11 is out of range: there are 11 runs"):
        runs[11]


def test_some_of_them():
    runs = sweep()
    for which in (slice(2, 9, 3), np.array([2, 5, 8]), np.isin(np.arange(11), (2, 5, 8))):
        some = runs[which]
        assert len(some) == 3
        assert_array_equal(some.q, runs.q[[2, 5, 8]])
        same(some[1], runs[5])


def test_a_run_that_failed_goes_as_far_as_it_went():
    robot = sarrus.mechanisms.pendulum()
    runs = sarrus.simulate_many(robot, [[0.1], [np.nan]], [0.0], 0.01)
    assert (runs[0].status, runs[1].status, len(runs[1])) == ("finished", "invalid state", 0)
    assert repr(runs) == "<Sweep of 'pendulum': 2 runs, 11 samples over 0.01 s, 1 finished, 1 invalid state>"
    assert "<td" in runs._repr_html_() and "array" not in runs._repr_html_()


def test_pickles():
    runs = sweep()
    again = pickle.loads(pickle.dumps(runs))
    equal(runs, again)
    same(runs[3], again[3])


# ---- a policy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "rkmk4"])
@pytest.mark.parametrize("duration", [0.05, 0.0497])
def test_a_policy_is_a_sampled_controller(method, duration):
    """Called once per step, with held efforts, like SampleAndHold in each run."""
    asked = []

    def policy(t, q, v):
        asked.append(t)
        return np.stack([3.0 - 2.0 * q[:, 0] - v[:, 0], np.sin(t) + 0.0 * q[:, 0], 0.0 * q[:, 0]], axis=-1)

    options = {"method": method, "start": 0.2}
    others = [PID("pin1", 3.0, 1.0, 0.1, target=-1.0), FeedforwardEffort("pivot", 0.3)]
    runs = sarrus.simulate_many(FOURBAR, START, np.zeros(3), duration, others, every=7, policy=policy, **options)
    assert_allclose(asked, 0.2 + 1e-3 * np.arange(50), rtol=1e-14)
    for i in (0, 6, 10):
        alone = SampleAndHold(lambda t, q, v: policy(t, q[None], v[None])[0], period=1e-3)
        one = sarrus.simulate(FOURBAR, START[i], np.zeros(3), duration, [alone, *others], **options)
        k = np.unique(np.r_[np.arange(0, len(one), 7), len(one) - 1])
        assert_allclose(runs.q[i], one.q[k], atol=1e-12)
        assert_allclose(runs.v[i], one.v[k], atol=1e-11)
        assert_allclose(runs[i].tau[:-1], one.tau[k][:-1], atol=1e-11)


def test_a_policy_on_joints_of_any_kind():
    """Efforts of a free body are its wrench, in its own axes."""
    b = sarrus.Builder("stone", gravity=(0.0, 0.0, 0.0))
    b.add_body("stone", sarrus.Inertia.sphere(2.0, 0.5))
    b.add_joint("float", sarrus.Free(), "ground", "stone")
    robot = b.build()
    push = np.array([[0.0, 0.0, 0.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]])
    runs = sarrus.simulate_many(robot, np.tile(robot.neutral(), (2, 1)), np.zeros(6), 0.5, policy=lambda t, q, v: push)
    assert_allclose(runs.v[0, -1], [0, 0, 0, 1.0, 0, 0], atol=1e-12)
    assert_allclose(runs.v[1, -1, 2], 0.05 / (0.4 * 2.0 * 0.25), rtol=1e-9)


def test_effort_limits_hold_a_policy():
    b = sarrus.Builder("slider", gravity=(0.0, 0.0, 0.0))
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", effort_limit=2.0), "ground", "block")
    robot, policy = b.build(), lambda t, q, v: np.array([[1.0], [50.0]])
    runs = sarrus.simulate_many(robot, [[0.0], [0.0]], [0.0], 0.5, policy=policy, limits="enforce")
    assert_allclose(runs.v[:, -1, 0], [0.5, 1.0])
    with pytest.warns(sarrus.LimitWarning, match="reaches 50"):
        runs = sarrus.simulate_many(robot, [[0.0], [0.0]], [0.0], 0.5, policy=policy)
    assert_allclose(runs.excess[:, 0], [0.0, 48.0])
    assert_allclose(runs[1].tau[:, 0], 50.0)
    # what was left at one time is not forgotten at the next
    with pytest.warns(sarrus.LimitWarning, match="at t = 0.1 s and reaches -7"):
        runs = sarrus.simulate_many(
            robot, [[0.0], [0.0]], [0.0], 0.3, policy=lambda t, q, v: np.array([[0.0], [-7.0 * (0.0995 < t < 0.2)]])
        )
    assert_allclose(runs.excess[:, 0], [0.0, -5.0])


@pytest.mark.parametrize("every", [1, 7])
def test_a_policy_changes_no_record(every):
    """Rates are evaluated as often as without a policy, in runs with one record."""
    damper = sarrus.control.PID("motor", 200.0, 0.0, 5.0)
    v = FOURBAR.project_velocity(START[0], [6.0, 0.0, 0.0])
    options = {"dt": 2e-3, "every": every}
    plain = sarrus.simulate_many(FOURBAR, START, v, 0.301, damper, **options)
    runs = sarrus.simulate_many(FOURBAR, START, v, 0.301, damper, policy=lambda t, q, v: np.zeros_like(v), **options)
    assert_array_equal(runs.q, plain.q)
    assert_array_equal(runs.stiffness, plain.stiffness)
    assert (runs.stiffness > 0.0).all()


def test_failed_runs_do_not_disturb_a_policy():
    robot = sarrus.mechanisms.double_pendulum()
    seen = []

    def policy(t, q, v):
        seen.append(q.copy())
        return np.where(np.arange(3)[:, None] == 1, np.nan if t > 0.005 else 1e200 * (t > 0.003), 0.0 * q)

    runs = sarrus.simulate_many(robot, [[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]], [0.0, 0.0], 0.02, policy=policy)
    assert runs.status.tolist() == [0, Status.DIVERGED, 0]
    assert np.isfinite(seen).all()
    alone = sarrus.simulate_many(robot, [[0.1, 0.0], [0.3, 0.0]], [0.0, 0.0], 0.02)
    assert_allclose(runs.q[[0, 2]], alone.q, atol=1e-15)
    assert np.isnan(runs.q[1, -1]).all() and 3 <= len(runs[1]) <= 6


def test_policies_that_are_none():
    robot, q = sarrus.mechanisms.pendulum(), [[0.1], [0.2]]

    def run(policy, **options):
        return sarrus.simulate_many(robot, q, [0.0], 0.01, policy=policy, **options)

    with pytest.raises(sarrus.ShapeError, match=r"returned shape \(2,\); it must return \(2, 1\)"):
        run(lambda t, q, v: q[:, 0])
    with pytest.raises(sarrus.StateError, match=r"returned \[nan\] for run 1 at t = 0 s; efforts must be finite"):
        run(lambda t, q, v: np.array([[0.0], [np.nan]]))
    with pytest.raises(TypeError, match="policy must be a function"):
        run(3.0)
    with pytest.raises(ZeroDivisionError):
        run(lambda t, q, v: 1 / 0)

    class Pool:
        def submit(self):
            raise AssertionError

    with pytest.raises(TypeError, match="policy= is evaluated in this process"):
        run(lambda t, q, v: q, executor=Pool())

    def stop(t, q, v):
        if t > 0.0045:
            raise KeyboardInterrupt
        return 0.0 * q

    runs = run(stop)
    assert (runs.status == Status.INTERRUPTED).all()
    assert np.isfinite(runs.q[:, :6]).all() and np.isnan(runs.q[:, 6:]).all()


# ---- files and tables ------------------------------------------------------------------------------------------------


def test_npz(tmp_path):
    runs = sweep()
    runs.save(tmp_path / "runs.npz")
    again = Sweep.load(tmp_path / "runs.npz")
    equal(runs, again)
    same(runs[4], again[4])
    # with the mechanism nothing is unpickled, and what acts is unknown
    quiet = Sweep.load(tmp_path / "runs.npz", FOURBAR)
    equal(runs, quiet)
    with pytest.raises(sarrus.ModelError, match="unknown"):
        quiet[0].tau  # noqa: B018
    with pytest.raises(ValueError, match="to a mechanism other than 'four-bar'"):
        Sweep.load(tmp_path / "runs.npz", sarrus.mechanisms.four_bar(crank=0.3))
    held = sarrus.simulate_many(FOURBAR, START, np.zeros(3), 0.01, policy=lambda t, q, v: 1.0 - q)
    held.save(tmp_path / "held.npz")
    same(held[2], Sweep.load(tmp_path / "held.npz")[2])
    assert_allclose(held[2].tau[0], 1.0 - START[2])


def test_files_that_are_none(tmp_path):
    runs = sweep(0.005)
    with pytest.raises(ValueError, match=r"a sweep is a \.npz or a \.parquet file; got 'runs.csv'"):
        runs.save(tmp_path / "runs.csv")
    runs[0].save(tmp_path / "one.npz")
    with pytest.raises(ValueError, match="not a sweep saved by sarrus: the file lacks"):
        Sweep.load(tmp_path / "one.npz")
    runs.save(tmp_path / "runs.npz")
    data = (tmp_path / "runs.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="not a sweep saved by sarrus"):
        Sweep.load(tmp_path / "half.npz")
    with pytest.raises(TypeError, match=r"does not contain the mechanism; pass it: Sweep.load\(path, mechanism=...\)"):
        Sweep.load(tmp_path / "runs.parquet")


def test_table_and_parquet(tmp_path):
    pytest.importorskip("pandas")
    runs = sweep()
    assert (
        list(runs[:0].to_dataframe().columns) == list(runs.to_dataframe().columns) and len(runs[:0].to_dataframe()) == 0
    )
    frame = runs.to_dataframe()
    assert list(frame.columns) == [
        *("run", "status", "t [s]"),
        *(f"{x}:{joint} [{unit}]" for x, unit in (("q", "rad"), ("v", "rad/s")) for joint in FOURBAR.joints),
    ]
    assert_array_equal(frame[frame.run == 3]["q:pivot [rad]"], runs.q[3, :, 2])
    pytest.importorskip("pyarrow")
    runs.save(tmp_path / "runs.parquet")
    again = Sweep.load(tmp_path / "runs.parquet", FOURBAR)
    for name in ("t", "q", "v", "status"):
        assert_array_equal(getattr(runs, name), getattr(again, name))
    frame.rename(columns=lambda head: head.split(" [")[0]).to_parquet(tmp_path / "old.parquet", index=False)
    assert_array_equal(Sweep.load(tmp_path / "old.parquet", FOURBAR).q, runs.q)
    with pytest.raises(ValueError, match="the columns of the table do not fit 'pendulum'"):
        Sweep.load(tmp_path / "runs.parquet", sarrus.mechanisms.pendulum())


def test_parquets_that_hold_something_else(tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    sweep(0.005).save(tmp_path / "runs.parquet")
    whole = pandas.read_parquet(tmp_path / "runs.parquet")
    for column, value, fault in (("status", 1e9, "the table contains an unknown status"), ("run", np.inf, "the rows of the table must be consecutive runs"),
                                 ("status", np.nan, "the table contains an unknown status"), ("run", -2.0, "the rows of the table must be consecutive runs")):  # fmt: skip
        odd = whole.astype({column: float})
        odd.loc[0 if column == "status" else len(odd) - 1, column] = value
        odd.to_parquet(tmp_path / "odd.parquet")
        with pytest.raises(ValueError, match=fault):
            Sweep.load(tmp_path / "odd.parquet", FOURBAR)
    data = (tmp_path / "runs.parquet").read_bytes()
    for junk in (b"", b"junk", data[: len(data) // 2]):
        (tmp_path / "junk.parquet").write_bytes(junk)
        with pytest.raises(ValueError, match=r"junk\.parquet: the table cannot be read"):
            Sweep.load(tmp_path / "junk.parquet", FOURBAR)
    with pytest.raises(FileNotFoundError):
        Sweep.load(tmp_path / "gone.parquet", FOURBAR)


@pytest.mark.parametrize("several", [False, True])
def test_a_table_is_written_by_parts(tmp_path, monkeypatch, several):
    """Whole runs are written in numbered parts; for few samples the table is unchanged."""
    pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    robots = [sarrus.mechanisms.pendulum(length=length) for length in (1.0, 2.0, 1.0, 3.0, 2.0)]
    runs = sarrus.simulate_many(
        robots if several else robots[0], np.linspace(0.1, 0.5, 5)[:, None], [0.0], 0.1, every=10
    )
    whole, tables = runs.to_dataframe(), Sweep._tables
    monkeypatch.setattr(Sweep, "_tables", lambda self: tables(self, 2 * len(self.t)))
    runs.save(tmp_path / "runs.parquet")
    assert parquet.ParquetFile(tmp_path / "runs.parquet").num_row_groups == 3
    assert parquet.read_table(tmp_path / "runs.parquet").to_pandas().equals(whole)
    assert runs.to_dataframe().equals(whole) and whole["run"].tolist() == np.repeat(np.arange(5), len(runs.t)).tolist()
    assert not several or whole["mechanism"].tolist() == np.repeat([0, 1, 0, 2, 1], len(runs.t)).tolist()


def test_parquet_of_several_mechanisms(tmp_path):
    pytest.importorskip("pyarrow")
    robots = [sarrus.mechanisms.pendulum(length=length) for length in (0.3, 0.5, 0.3)]
    runs = sarrus.simulate_many(robots, [0.1], [0.0], 0.01)
    runs.save(tmp_path / "runs.parquet")
    again = Sweep.load(tmp_path / "runs.parquet", robots)
    assert_array_equal(again.q, runs.q)
    assert again.mechanisms == robots and again[1].mechanism == robots[1]
    assert runs.to_dataframe()["mechanism"].tolist() == [0] * 11 + [1] * 11 + [0] * 11
    for wrong in (robots[0], robots[:2], [robots[0]] * 3, [robots[0], *robots[:2]]):
        with pytest.raises(ValueError, match="the 3 runs of the table have 2 mechanisms"):
            Sweep.load(tmp_path / "runs.parquet", wrong)
    with pytest.raises(TypeError, match="does not contain the mechanism"):
        Sweep.load(tmp_path / "runs.parquet", [])
    runs.save(tmp_path / "runs.npz")
    with pytest.raises(TypeError, match="omit mechanism="):
        Sweep.load(tmp_path / "runs.npz", robots)


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_bundles(pyplot):
    runs = sweep()
    ax = runs.plot("motor", lines=3)
    (band, inner), lines = ax.collections, ax.lines
    assert len(lines) == 4 and inner.get_paths()
    assert_allclose(lines[-1].get_ydata(), np.median(runs.q[:, :, 0], axis=0))
    for collection, (low, high) in ((band, (0.05, 0.95)), (inner, (0.25, 0.75))):
        corners = collection.get_paths()[0].vertices
        for k in (3, 17):
            y = corners[corners[:, 0] == runs.t[k], 1]
            assert_allclose([y.min(), y.max()], np.quantile(runs.q[:, k, 0], [low, high]))
    assert ax.get_ylabel() == "motor [rad]"
    assert [line.get_label() for line in runs.plot().lines] == ["motor", "pin1", "pivot"]
    both = runs.plot(["energy", "coupler"], quantiles=[0.0, 1.0]).figure.axes
    assert [axes.get_ylabel() for axes in both] == ["energy [J]", "[m]"]
    with pytest.raises(sarrus.NameNotFoundError, match="no quantity, joint or frame is named 'moter'"):
        runs.plot("moter")
    with pytest.raises(ValueError, match="quantiles must be one or several numbers from 0 to 1"):
        runs.plot(quantiles=[5, 95])


def test_bundles_of_what_has_failed(pyplot):
    """Bundles contain the runs that exist at each time."""
    robot = sarrus.mechanisms.pendulum()
    runs = sarrus.simulate_many(robot, [[0.1], [np.nan], [0.3]], [0.0], 0.01)
    assert_allclose(runs.plot().lines[0].get_ydata(), runs.q[[0, 2], :, 0].mean(axis=0))
    assert np.isfinite(runs.plot("energy").lines[0].get_ydata()).all()
    none = sarrus.simulate_many(robot, [[np.nan]], [0.0], 0.01)
    none.plot().figure.canvas.draw()


def test_a_file_of_before_knows_what_acts(tmp_path, monkeypatch):
    """The shared data of runs was one class, with the clock; now a single run has another class too."""
    module, robot = sys.modules["sarrus.simulation.sweep"], sarrus.mechanisms.pendulum()
    push = sarrus.control.FeedforwardEffort("pivot", [1.0, 2.0])
    runs = sarrus.simulate_many(robot, [0.1], [0.0], 0.01, push)
    now = runs._acting
    for name in ("Acting", "_Job", "_Clock"):
        monkeypatch.setattr(module, name, type(name, (), {"__module__": module.__name__}), raising=False)
    clock, job, acting = module._Clock(), module._Job(), module.Acting()
    clock.__dict__.update(start=0.0, dt=1e-3, whole=10, rest=0.0, every=1)
    job.__dict__.update(now.setup.__dict__, clock=clock, threads=1)
    acting.__dict__.update(job=job, parameters=now.parameters)
    runs._acting = acting
    runs.save(tmp_path / "before.npz")
    monkeypatch.undo()
    again = Sweep.load(tmp_path / "before.npz")
    assert [again[k].tau[0, 0] for k in (0, 1)] == [1.0, 2.0]
    assert again[0].statistics == {"method": "rk4"}
