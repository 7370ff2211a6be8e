"""Numbers of parts that nobody can build are refused at once; rows that say the same hundreds of times are told apart in seconds."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import sarrus
from sarrus.analysis.mobility.self_stress import removable_rows


def test_a_paddle_of_too_many_panels():
    with pytest.raises(sarrus.ModelError, match="panels must be a whole number, from 1 to 1000"):
        sarrus.mechanisms.free_flyer(panels=2**70)


def test_rows_that_can_go_are_the_last_ones():
    """All but the first weld of two hundred between two bodies: blocks of rows and one row at a time choose the same."""
    U, s, _ = np.linalg.svd(np.tile(np.eye(6), (200, 1)))
    assert removable_rows(U[:, len(s) :]) == list(range(6, 1200))


def net(columns, rows):
    """Of bars, each pinned to its neighbours: as many loops as bars."""
    b = sarrus.Builder("net")
    at = {"a": (0.5, 0, 0), "b": (0, 0.5, 0)}
    for i in range(columns):
        for j in range(rows):
            b.add_body(f"{i} {j}", sarrus.Inertia.sphere(1.0, 0.1))
            before = [f"{i - 1} {j}"] * (i > 0) + [f"{i} {j - 1}"] * (j > 0) or ["ground"]
            for name, parent in zip(at, before, strict=False):
                b.add_joint(
                    f"{name} {i} {j}", sarrus.Spherical(), parent, f"{i} {j}", at_parent=at[name], at_child=(0, 0, 0)
                )
    return b


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_a_large_mechanism_that_is_built_can_be_interrupted():
    builder = net(45, 45)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        builder.build()
    assert time.perf_counter() - begun < 5.0  # one where nothing else runs
