"""Trajectories in files: loaded ones equal the saved ones, and invalid files raise errors."""

import csv
import io
import pickle
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
import sarrus.simulation.storage
from sarrus.simulation.trajectory import Trajectory
from tests.trajectories import everything_same, fourbar_run, same


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_npz_holds_everything(mixed, tmp_path):
    mixed.save(tmp_path / "run.npz")
    back = Trajectory.load(tmp_path / "run.npz")
    everything_same(back, mixed)
    assert_array_equal(back.checkpoint["x"], mixed.checkpoint["x"])
    assert back.checkpoint["h"] == 0.1


def test_npz_with_a_function_for_efforts(tmp_path):
    run = fourbar_run(5, efforts=lambda t, q, v, z: np.ones_like(v))
    run.save(str(tmp_path / "run.npz"))
    same(Trajectory.load(str(tmp_path / "run.npz")), run)


def test_nothing_is_unpickled_with_a_mechanism(mixed, tmp_path, monkeypatch):
    mixed.save(tmp_path / "run.npz")
    monkeypatch.setattr(sarrus.simulation.storage.pickle, "loads", lambda *_: pytest.fail("unpickled"))
    back = Trajectory.load(tmp_path / "run.npz", mechanism=mixed.mechanism)
    everything_same(back, mixed)
    assert back.checkpoint is None


def test_foreign_files(tmp_path):
    text, arrays = tmp_path / "a.npz", tmp_path / "b.npz"
    text.write_text("no archive")
    np.savez(arrays, t=np.zeros(3))
    for path in (text, arrays):
        with pytest.raises(ValueError, match="not a trajectory saved by sarrus"):
            Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        Trajectory.load(tmp_path / "none.npz")
    for use in (fourbar_run(3).save, Trajectory.load):
        with pytest.raises(ValueError, match=r"\.npz or a \.csv"):
            use(tmp_path / "run.mat")


def rewritten(path, changes):
    """Return the arrays of an .npz with some changed, or removed if None."""
    with np.load(path) as file:
        arrays = dict(file) | changes
    np.savez(path, **{name: x for name, x in arrays.items() if x is not None})


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_a_file_of_another_mechanism(ending, tmp_path):
    path = tmp_path / f"run.{ending}"
    sarrus.simulate(sarrus.mechanisms.pendulum(length=1.0), [0.5], [0.0], 0.01).save(path)
    with pytest.raises(
        ValueError, match=rf"run\.{ending}: the file belongs to a mechanism other than 'pendulum': .* (not|but) "
    ):
        Trajectory.load(path, mechanism=sarrus.mechanisms.pendulum(length=3.0))
    # what another machine's rounding does to a description is no other mechanism
    near = sarrus.mechanisms.pendulum(length=np.nextafter(1.0, 2.0))
    assert near != sarrus.mechanisms.pendulum(length=1.0)
    assert Trajectory.load(path, mechanism=near).mechanism == near


def test_every_part_of_a_description_is_compared(tmp_path):
    """Names, numbers, springs, laws, limits, and numbers of parts."""

    def made(name="slide", stiffness=3.0, rate=2.0, limits=None, extra=False):
        builder = sarrus.Builder("made")
        for k in range(2 + extra):
            builder.add_body(f"body{k}", sarrus.Inertia.sphere(1.0, 0.2))
            builder.add_joint(
                name if k == 0 else f"joint{k}", sarrus.Prismatic("x", limits=limits), "ground", f"body{k}"
            )
        builder.add_spring(
            "spring", ("ground", (0, 0, 0)), ("body0", (1.0, 0, 0)), stiffness=stiffness, rest_length=1.0
        )
        builder.add_prescribed_motion("drive", "joint1", sarrus.laws.harmonic(1.0, rate=rate))
        return builder.build()

    robot = made()
    run = Trajectory(robot, [0.0], np.zeros((1, 2)), np.zeros((1, 2)))
    run.save(tmp_path / "run.npz")
    Trajectory.load(tmp_path / "run.npz", mechanism=made())
    for change, told in (
        ({"name": "slip"}, r"joints\[0\]\.name is 'slide', not 'slip'"),
        ({"stiffness": 4.0}, r"springs\[0\]\.stiffness is 3\.0, not 4\.0"),
        ({"rate": 5.0}, r"law\.harmonics\[0\]\[1\] is 2\.0, not 5\.0"),
        ({"limits": (-1.0, 1.0)}, r"joints\[0\]\.joint\.limits differs"),
        ({"extra": True}, r"bodies differs"),
    ):
        with pytest.raises(ValueError, match=told):
            Trajectory.load(tmp_path / "run.npz", mechanism=made(**change))


def test_an_npz_takes_no_more_memory_than_it_is_long(tmp_path, monkeypatch):
    """Declared sizes are compared with the file's size before memory is allocated."""
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("an array was made"))
    robot, bomb, boast = sarrus.mechanisms.pendulum(), tmp_path / "bomb.npz", tmp_path / "boast.npz"
    np.savez_compressed(bomb, t=np.zeros(10**6))
    with pytest.raises(
        ValueError,
        match=r"bomb\.npz: .*compressed, \d+ bytes for 8000\d+; sarrus writes uncompressed arrays.*np\.savez",
    ):
        Trajectory.load(bomb, mechanism=robot)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(boast, "w") as archive:
        archive.writestr("t.npy", head.getvalue())
    with pytest.raises(ValueError, match=r"boast\.npz: .*t\.npy does not fit its shape \(1000000000000000,\)"):
        Trajectory.load(boast, mechanism=robot)


WRONG_NPZ = {
    "no notes": {"notes": None},
    "no description": {"description": None},
    "no q": {"q": None},
    "an old format": {"notes": np.array('{"format": 1}')},
    "notes that are no JSON": {"notes": np.array("{")},
    "notes that are a list": {"notes": np.array("[]")},
    "notes that are numbers": {"notes": np.zeros(3)},
    "notes that lack things": {"notes": np.array('{"format": 2}')},
    "events that are not there": {"notes": np.array('{"format": 2, "statistics": {}, "status": "", "events": ["x"]}')},
    "events that are no names": {"notes": np.array('{"format": 2, "statistics": {}, "status": "", "events": 3}')},
    "statistics that are a number": {"notes": np.array('{"format": 2, "statistics": 3, "status": "", "events": []}')},
    "a description that is no JSON": {"description": np.zeros(3, np.uint8)},
    "objects": {"q": np.array([[None]] * 3, dtype=object)},
    "complex numbers": {"q": np.zeros((3, 3), complex)},
    "texts": {"q": np.full((3, 3), "0.0")},
    "records": {"q": np.zeros(3, dtype=[("x", "f8")])},
    "another shape": {"q": np.zeros((3, 4))},
    "one number": {"t": np.array(0.0)},
    "times that go back": {"t": np.array([1.0, 0.0, 2.0])},
    "efforts of another shape": {"tau": np.zeros((2, 3))},
}


@pytest.mark.parametrize("what", WRONG_NPZ)
def test_wrong_npz(what, tmp_path):
    path, run = tmp_path / "run.npz", fourbar_run(3)
    run.save(path)
    rewritten(path, WRONG_NPZ[what])
    with pytest.raises(ValueError, match=r"run\.npz: "):
        Trajectory.load(path, mechanism=run.mechanism)


@pytest.mark.parametrize(
    "pickled", [b"", b"garbage", pickle.dumps(3), pickle.dumps((3, None)), b"cnowhere\nto_be_found\n."]
)
def test_wrong_pickles(pickled, tmp_path):
    path, run = tmp_path / "run.npz", fourbar_run(3)
    run.save(path)
    rewritten(path, {"pickled": np.frombuffer(pickled, np.uint8)})
    with pytest.raises(ValueError, match=r"run\.npz: the mechanism of the file cannot be unpickled .*mechanism="):
        Trajectory.load(path)
    same(Trajectory.load(path, mechanism=run.mechanism), run)


def test_damaged_npz(tmp_path, rng):
    """Truncated or with changed bytes: a ValueError that names the file, or the saved trajectory."""
    path, run = tmp_path / "run.npz", fourbar_run(3)
    run.save(path)
    whole = path.read_bytes()
    for k in range(0, len(whole), 97):
        path.write_bytes(whole[:k])
        with pytest.raises(ValueError, match=r"run\.npz: not a trajectory"):
            Trajectory.load(path, mechanism=run.mechanism)
    said = []
    for _ in range(300):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            same(Trajectory.load(path, mechanism=run.mechanism), run)
        except ValueError as error:
            said.append(str(error))
    assert said
    assert all(text.startswith(f"{path}: ") for text in said)


WRONG_CSV = {
    "empty": b"",
    "a row too short": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0\n",
    "ragged": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0,0\n1,0,0\n",
    "words": b"t,q:pivot,v:pivot,energy,loop_error\n0,zero,0,0,0\n",
    "a comment": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0,0#,1\n",
    "NUL in the head": b"t,q:pivot\0,v:pivot,energy,loop_error\n",
    "NUL in a row": b"t,q:pivot,v:pivot,energy,loop_error\n0,0\0,0,0,0\n",
    "an endless name": b"t" * 200_000,
    "no text": b"\xff\xfe\x00\x01",
    "no text in a row": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0,\xff\n",
    "other columns": b"t,v:pivot,q:pivot,energy,loop_error\n",
    "times that go back": b"t,q:pivot,v:pivot,energy,loop_error\n1,0,0,0,0\n0,0,0,0,0\n",
}


@pytest.mark.parametrize("what", WRONG_CSV)
def test_wrong_csv(what, tmp_path):
    path = tmp_path / "run.csv"
    path.write_bytes(WRONG_CSV[what])
    with pytest.raises(ValueError, match=r"run\.csv: "):
        Trajectory.load(path, mechanism=sarrus.mechanisms.pendulum())


def test_a_mechanism_that_does_not_pickle(tmp_path):
    builder = sarrus.Builder("skate")
    builder.add_body("skate", sarrus.Inertia.sphere(1.0, 0.2))
    builder.add_joint("x", sarrus.Prismatic("x"), "ground", "skate")
    builder.add_pfaffian("blade", lambda q: np.ones((1, 1)), joints=["x"], value=[0.0])
    run = Trajectory(builder.build(), [0.0], [[0.0]], [[0.0]])
    with pytest.raises(sarrus.ModelError, match="cannot be pickled"):
        run.save(tmp_path / "run.npz")
    assert not (tmp_path / "run.npz").exists()


def test_csv_is_exact(mixed, tmp_path):
    mixed.save(tmp_path / "run.csv")
    back = Trajectory.load(tmp_path / "run.csv", mechanism=mixed.mechanism)
    same(back, mixed)
    assert back.status == "unknown"
    with pytest.raises(TypeError, match="mechanism="):
        Trajectory.load(tmp_path / "run.csv")
    with pytest.raises(
        ValueError, match=r"columns of the table do not fit 'pendulum'; column 'q:pivot \[rad\]' is missing"
    ):
        Trajectory.load(tmp_path / "run.csv", mechanism=sarrus.mechanisms.pendulum())


def test_csv_columns(tmp_path):
    builder = sarrus.Builder("odd")
    builder.add_body("ball", sarrus.Inertia.sphere(1.0, 0.2))
    builder.add_joint('socket, "big"', sarrus.Spherical(), "ground", "ball")
    run = Trajectory(builder.build(), [0.1], [[0.0, 0.0, 0.6, 0.8]], [[1.0, 2.0, 1 / 3]], a=[[4.0, 5.0, 6.0]])
    run.save(tmp_path / "run.csv")
    with open(tmp_path / "run.csv", newline="", encoding="utf-8") as file:
        head, row = csv.reader(file)
    assert head == [
        "t [s]",
        *(f'q:socket, "big":{k} [1]' for k in range(4)),
        *(f'v:socket, "big":{k} [rad/s]' for k in range(3)),
        *(f'a:socket, "big":{k} [rad/s^2]' for k in range(3)),
        "energy [J]",
        "loop_error [rad or m]",
    ]
    assert row[0] == "0.1" and row[7] == repr(1 / 3)
    back = Trajectory.load(tmp_path / "run.csv", run.mechanism)
    assert_array_equal(np.hstack([back.q, back.v, back.a]), np.hstack([run.q, run.v, run.a]))
    with pytest.raises(sarrus.ModelError, match="unknown"):
        back.tau  # noqa: B018


def test_csv_without_samples(tmp_path):
    for robot in (sarrus.mechanisms.pendulum(), sarrus.mechanisms.four_bar()):
        run = Trajectory(robot, [], np.zeros((0, robot.nq)), np.zeros((0, robot.nv)))
        run.save(tmp_path / "run.csv")
        assert len(Trajectory.load(tmp_path / "run.csv", robot)) == 0


def test_csv_of_before(mixed, tmp_path):
    """Headers without units, and no loop joints."""
    for run in (mixed, fourbar_run(5, efforts=np.ones((5, 3)))):
        run.save(tmp_path / "run.csv")
        with open(tmp_path / "run.csv", newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        count = head.index("loop_error [rad or m]") + 1
        with open(tmp_path / "old.csv", "w", newline="", encoding="utf-8") as file:
            heads = [name.rsplit(" [", 1)[0] for name in head[:count]]
            csv.writer(file).writerows([heads, *(row[:count] for row in rows)])
        same(Trajectory.load(tmp_path / "old.csv", run.mechanism), run)


def test_csv_with_frames(tmp_path):
    run = fourbar_run(5)
    run.save(tmp_path / "run.csv", frames=("coupler", "rocker"))
    with open(tmp_path / "run.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head[-6:] == [f"{axis}:{name} [m]" for name in ("coupler", "rocker") for axis in "xyz"]
    assert_array_equal(np.array(rows, float)[:, -6:-3], run.frame("coupler")[:, :3, 3])
    same(Trajectory.load(tmp_path / "run.csv", run.mechanism), run)
    with pytest.raises(sarrus.NameNotFoundError, match="tipp"):
        run.save(tmp_path / "run.csv", frames="tipp")
    with pytest.raises(ValueError, match=r"frames= selects columns of a \.csv"):
        run.save(tmp_path / "run.npz", frames="coupler")


def test_csv_of_a_spring_that_has_been_wound_up(tmp_path):
    """Its energy includes the counted turns, which the columns of loop joints contain."""
    builder = sarrus.Builder("wound up")
    for name, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        builder.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    builder.add_joint("motor", sarrus.Revolute("y", stiffness=0.01), "ground", "crank", loop=True)
    builder.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0.4, 0, 0))
    builder.add_joint("pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0))
    builder.add_joint("pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=(1.0, 0, 0))
    robot = builder.build()
    q = robot.assemble(fixed={"motor": 0.5})
    run = sarrus.simulate(robot, q, robot.complete_velocity(q, {"motor": 40.0}), 0.5)
    turned = run.joint("motor")[:, 0]
    assert robot.joint("motor").closes_loop and turned[-1] - turned[0] > 4.0 * np.pi
    run.save(tmp_path / "run.csv")
    back = Trajectory.load(tmp_path / "run.csv", robot)
    assert_array_equal(back.joint("motor")[:, 0], turned)
    assert_array_equal(back.energy, run.energy)
    uncounted = Trajectory(robot, run.t, run.q, run.v)  # whose spring knows of no turns
    uncounted.save(tmp_path / "run.csv")
    assert_array_equal(Trajectory.load(tmp_path / "run.csv", robot).energy, uncounted.energy)


def test_dataframe(tmp_path):
    pandas = pytest.importorskip("pandas")
    run = fourbar_run(5, efforts=np.ones((5, 3)))
    table = run.to_dataframe()
    units = {"q": "rad", "v": "rad/s", "tau": "N m"}
    assert list(table) == [
        "t [s]",
        *(f"{x}:{name} [{unit}]" for x, unit in units.items() for name in run.mechanism.joints),
        *("energy [J]", "loop_error [rad or m]", "q:pin2 [rad]", "v:pin2 [rad/s]"),
    ]
    assert_array_equal(table["v:motor [rad/s]"], run.v[:, 0])
    assert_array_equal(table["energy [J]"], run.energy)
    assert_array_equal(table["q:pin2 [rad]"], run.joint("pin2")[:, 0])
    assert_array_equal(table["v:pin2 [rad/s]"], run.mechanism.joint_states(run.q, run.v).v["pin2"][:, 0])
    run.save(tmp_path / "run.csv")
    # by default some versions of pandas miss the last digit
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "run.csv"), table, rtol=1e-14, atol=1e-300)
    assert not [name for name in fourbar_run(5, efforts=None).to_dataframe() if name.startswith("tau")]


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        fourbar_run(3).to_dataframe()


def test_pickle(mixed):
    everything_same(pickle.loads(pickle.dumps(mixed)), mixed)
    run = fourbar_run(3, efforts=lambda t, q, v, z: np.ones_like(v))
    same(pickle.loads(pickle.dumps(run)), run)
    error = pickle.loads(pickle.dumps(sarrus.IntegrationError("it diverged", run)))
    same(error.trajectory, run)


def test_files_of_runs_do_not_tell_whose_folders_meshes_lie_in(tmp_path):
    """They are relative to the file's folder, and are found from there after both have moved."""
    old, meshes = tmp_path / "old", tmp_path / "old" / "meshes"
    meshes.mkdir(parents=True)
    robot = sarrus.mechanisms.pendulum()
    mesh = sarrus.shapes.Mesh("bob.stl", beside=str(meshes), package_dirs=(str(old),))
    visual = sarrus.description.VisualSpec(robot.bodies[0], mesh)
    robot = sarrus.Mechanism(replace(robot.description, visuals=(visual,)))
    law = sarrus.control.ComputedTorque({robot.joints[0]: 1.0}, proportional=1.0, derivative=1.0)
    run = sarrus.simulate(robot, [0.1], [0.0], 0.01, law, method="rk4", dt=1e-3)
    other = sarrus.Mechanism(replace(robot.description, name="other"), substructures=0)
    many = sarrus.simulate_many([robot, other], [[0.1], [0.2]], [0.0], 0.01)
    run.save(old / "run.npz")
    many.save(old / "sweep.npz")
    for file in ("run.npz", "sweep.npz"):
        assert str(tmp_path).encode() not in (old / file).read_bytes()
    old.rename(tmp_path / "new")
    for loaded in (
        sarrus.Trajectory.load(tmp_path / "new/run.npz"),
        sarrus.results.Sweep.load(tmp_path / "new/sweep.npz"),
    ):
        (visual,) = loaded.mechanism.description.visuals
        assert visual.shape.beside == str(tmp_path / "new/meshes")
        assert visual.shape.package_dirs == (str(tmp_path / "new"),)
        assert loaded.mechanism == robot
    assert loaded.mechanisms[1].description.visuals == (visual,)
