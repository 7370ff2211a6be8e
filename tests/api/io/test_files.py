"""Saving replaces a file atomically, for every format."""

import os
import resource
import stat
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import sarrus
from sarrus._files import replacing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and permissions are POSIX'")


@pytest.fixture(scope="module")
def run():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return sarrus.simulate(robot, q, np.zeros(robot.nv), 0.02, method="rk4", dt=1e-3)


@pytest.fixture(scope="module")
def runs():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return sarrus.simulate_many(robot, np.stack([q, q]), np.zeros(robot.nv), 0.01)


WRITERS = {
    "json": lambda run, runs, path: run.mechanism.save(path),
    "xml": lambda run, runs, path: run.mechanism.save(path),
    "sdf": lambda run, runs, path: run.mechanism.save(path),
    "urdf": lambda run, runs, path: run.mechanism.save(path),
    "npz": lambda run, runs, path: run.save(path),
    "csv": lambda run, runs, path: run.save(path),
    "html": lambda run, runs, path: run.animate(path),
    "gif": lambda run, runs, path: run.animate(path),
    "sweep.npz": lambda run, runs, path: runs.save(path),
    "parquet": lambda run, runs, path: runs.save(path),
}


def save(name, run, runs, path):
    for package in {"gif": ["matplotlib", "PIL"], "html": ["matplotlib"], "parquet": ["pandas", "pyarrow"]}.get(
        name, []
    ):
        pytest.importorskip(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        WRITERS[name](run, runs, path)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(name, run, runs, tmp_path):
    path = tmp_path / f"file.{name}"
    save(name, run, runs, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(Exception) as error:  # noqa: PT011 - whatever the library that writes makes of it
            save(name, run, runs, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert not isinstance(error.value, AssertionError)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_urdf_and_its_sidecar_are_replaced_together(run, tmp_path, monkeypatch):
    path = tmp_path / "file.urdf"
    path.write_text("old")
    write = Path.write_text

    def failing(self, text, **options):
        if self.suffix == ".yaml":
            raise OSError(28, "No space left on device", str(self))
        return write(self, text, **options)

    monkeypatch.setattr(Path, "write_text", failing)
    with pytest.raises(OSError, match="No space left") as error:
        save("urdf", run, None, path)
    assert error.value.filename == str(tmp_path / "file.yaml")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file.urdf", "old")]


def test_permissions_stay(tmp_path):
    path = tmp_path / "robot.json"
    before = os.umask(0o027)
    try:
        sarrus.mechanisms.pendulum().save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        sarrus.mechanisms.four_bar().save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)
    assert sarrus.load(path) == sarrus.mechanisms.four_bar()


def test_links_lead_to_the_new_file(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link.json").symlink_to("there/robot.json")
    for robot in (sarrus.mechanisms.pendulum(), sarrus.mechanisms.four_bar()):
        robot.save(tmp_path / "link.json")
        assert (tmp_path / "link.json").is_symlink()
        assert sarrus.load(tmp_path / "there" / "robot.json") == robot


def test_the_longest_name(tmp_path):
    path = tmp_path / ("x" * 250 + ".json")
    sarrus.mechanisms.pendulum().save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_is_no_file_is_written_as_it_stands(tmp_path):
    with replacing("/dev/null") as file:
        assert file == Path("/dev/null")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(IsADirectoryError):
        sarrus.mechanisms.pendulum().save(tmp_path / "folder.json")


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        sarrus.mechanisms.pendulum().save(tmp_path / "no" / "robot.json")
    assert error.value.filename == str(tmp_path / "no" / "robot.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_file_that_is_not_to_be_written(tmp_path):
    path = tmp_path / "robot.json"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        sarrus.mechanisms.pendulum().save(path)
    assert path.read_text() == "old"
    tmp_path.chmod(0o555)  # takes no new file
    path.chmod(0o644)
    try:
        sarrus.mechanisms.pendulum().save(path)
    finally:
        tmp_path.chmod(0o755)
    assert sarrus.load(path) == sarrus.mechanisms.pendulum()


def test_an_interrupt_leaves_the_old_file(tmp_path):
    path = tmp_path / "robot.json"
    path.write_text("old")

    def interrupted(file):
        file.write_text("new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        interrupted(file)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("robot.json", "old")]
