"""`sarrus demo`: the Stanford manipulator closes a valve. van der Merwe 1995, section 4.6, figures 4.2 to 4.6."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sarrus.cli import demo
from sarrus.mechanisms import stanford_arm

CASE = json.loads((Path(__file__).parents[1] / "data" / "thesis_4_6_valve.json").read_text())
REACH, TURN = demo.phases()


@pytest.fixture(scope="module")
def arm():
    return stanford_arm()


@pytest.mark.parametrize("row", CASE["rows"], ids=lambda row: f"t={row['t']},moment={row['tip_moment']}")
def test_motion_and_joint_forces(arm, row):
    motion = (TURN if row["tip_moment"] else REACH).at([row["t"]])
    got = {"q": motion.q, "v": motion.v, "a": motion.a, "tau": demo.joint_forces(arm, motion)}
    assert motion.moment == [row["tip_moment"]]
    for name, value in got.items():
        scale = max(1.0, np.abs(row[name]).max())  # a zero may be as wrong as its neighbours
        assert_allclose(value, [row[name]], rtol=0, atol=CASE["tolerance"] * scale, err_msg=name)


def test_gripper_comes_down_on_the_tap_and_stays(arm):
    """The gripper points straight down and rotates clockwise, seen from above: after half a turn its y axis is reversed."""
    poses = arm.pose(TURN.at([1.0, 1.1, 1.5]).q, "tip")
    assert_allclose(poses[:, :3, 3], np.tile(demo.TAP, (3, 1)), atol=1e-14)
    assert_allclose(poses[:, :3, 0], np.tile([0, -1, 0], (3, 1)), atol=1e-14)
    assert_allclose(poses[2, :3, 1], -poses[0, :3, 1], atol=1e-14)


@pytest.mark.parametrize("phase", [REACH, TURN], ids=["reach", "turn"])
def test_work_of_the_joints(arm, phase):
    """The work lifts the arm and rotates the tap; the arm is at rest before and after, so no kinetic energy remains."""
    x, weight = np.polynomial.legendre.leggauss(40)
    motion = phase.at(phase.begins + phase.duration * (x + 1) / 2)
    work = phase.duration / 2 * weight @ (demo.joint_forces(arm, motion) * motion.v).sum(axis=1)
    lifted = arm.potential_energy(phase.end) - arm.potential_energy(phase.start)
    assert_allclose(work, lifted + phase.moment * (phase.end - phase.start)[4], rtol=1e-10)


def test_table(arm):
    lines = demo.table(arm).splitlines()
    assert lines[0].split("  ")[-5:] == ["base [N m]", "arm [N m]", "slide [N]", "wrist [N m]", "gripper [N m]"]
    printed = [line.split() for line in lines if line.lstrip()[:1].isdigit()]
    known = {(f"{row['t']:.2f}", row["tip_moment"] > 0): row["tau"] for row in CASE["rows"]}
    turning = [False] * 5 + [True] * 3
    for (t, *tau), turns in zip(printed, turning, strict=True):
        assert_allclose(np.array(tau, float), known[t, turns], atol=0.0005001)
    assert "-0.000" not in demo.table(arm)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figure(arm, tmp_path, suffix):
    """Five curves in five colours; without matplotlib an error names the missing library (test_cli checks the advice)."""
    path = tmp_path / f"valve.{suffix}"
    if find_spec("matplotlib") is None:
        with pytest.raises(ModuleNotFoundError, match="matplotlib"):
            demo.draw(arm, path)
        return
    demo.draw(arm, path)
    assert path.stat().st_size > 10_000
    if suffix == "png":
        from matplotlib.image import imread

        image = np.round(255 * imread(path)[..., :3]).astype(int)
        height, width, _ = image.shape
        assert 1000 < width < height
        curves = [(0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0x00, 0x9E, 0x73), (0x88, 0x22, 0x55), (0, 0, 0)]
        for colour in curves:  # each from the legend to the last panel
            rows, columns = np.nonzero((image == colour).all(axis=-1))
            assert len(rows) > 5000
            assert np.ptp(rows) > 0.7 * height and np.ptp(columns) > 0.7 * width
