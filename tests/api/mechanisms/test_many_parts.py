"""Too many parts raise an error at once; hundreds of equal rows are processed within seconds."""

import os
import signal
import subprocess
import sys

import pytest

import sarrus
from sarrus import _core


def test_a_paddle_of_too_many_panels():
    with pytest.raises(sarrus.ModelError, match="panels must be a whole number from 1 to 1000"):
        sarrus.mechanisms.free_flyer(panels=2**70)


def test_rows_that_can_go_are_the_last_ones():
    """For forty welds between a body and the ground, all but the first are removed, by blocks of rows and row by row."""
    b = sarrus.Builder("welded")
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("free", sarrus.Free(), "ground", "block", tree=True)
    for k in range(40):
        b.add_joint(f"weld {k:02d}", sarrus.Fixed(), "ground", "block", loop=True)
    robot = b.build()
    m = robot.mobility(robot.neutral())
    assert (m.degrees_of_freedom, m.redundant) == (0, 39 * 6)
    assert set(m.redundant_rows) == {row for name in robot.constraints[1:] for row in robot.constraint(name).row_names}
    assert list(m.redundant_rows) == [row for row in robot._row_names if row in set(m.redundant_rows)]


def net(columns, rows):
    """Return a net of scissors, each pinned to its neighbours: as many loops as bars."""
    b = sarrus.Builder("net")
    end, pin = {-1: (-0.5, 0, 0), 1: (0.5, 0, 0)}, sarrus.Revolute("y")
    for i in range(columns):
        for j in range(rows):
            a, c = f"a {i} {j}", f"c {i} {j}"
            for name in (a, c):
                b.add_body(name, sarrus.Inertia.rod(1.0, end[-1], end[1], 0.01))
            b.add_joint(f"middle {i} {j}", pin, a, c)
            ties = [("right", i + 1, j, 1, -1, 1, -1)] * (i + 1 < columns) + [("up", i, j + 1, 1, 1, -1, -1)] * (
                j + 1 < rows
            )
            for where, k, m, of_a, at_c, of_c, at_a in ties:
                b.add_joint(f"{where} a {i} {j}", pin, a, f"c {k} {m}", at_parent=end[of_a], at_child=end[at_c])
                b.add_joint(f"{where} c {i} {j}", pin, c, f"a {k} {m}", at_parent=end[of_c], at_child=end[at_a])
    b.add_joint("base", pin, "ground", "a 0 0", at_child=end[-1])
    return b


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends the process there")
@pytest.mark.parametrize("after", [0.1, 0.3, 0.6, 1.0, 3.0])
def test_a_large_mechanism_that_is_built_can_be_interrupted(after):
    """In any phase of construction. The signal comes from another process, because construction holds the GIL."""
    description = net(45, 45)._described(())
    built = []  # extend appends what the core returns before Python raises anything: a mechanism that is complete shows here
    program = f"import os, time; time.sleep({after}); os.kill({os.getpid()}, {int(signal.SIGINT)})"
    with subprocess.Popen([sys.executable, "-c", program]), pytest.raises(KeyboardInterrupt):
        built.extend(map(_core.Mechanism, [description], [-1]))
    assert not built
