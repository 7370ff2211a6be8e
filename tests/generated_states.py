"""States for the comparison of generated code with the core, the comparison, and the compiler."""

import shutil

import numpy as np
import pytest

from sarrus.generation.recorder import sample_configurations, sample_motion

CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="needs a C compiler")
STRICT = [
    "-std=c99",
    "-O1",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-pedantic",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Werror",
]


def states(robot, count, seed=5):
    """Return states other than those of the recording."""
    rng, time = np.random.default_rng(seed), np.zeros(count)
    q = sample_configurations(robot, time, rng) if robot.constraints else robot.random(rng, size=count)
    return {"q": q, **sample_motion(robot, q, time, rng)}


def difference(a, b):
    """Return the largest error of each state, relative to the largest entry of the result, or to one."""
    a, b = a.reshape(len(b), -1), b.reshape(len(b), -1)
    return (np.abs(a - b) / np.maximum(np.abs(b).max(axis=1, keepdims=True, initial=1e-9), 1e-9)).max(
        axis=1, initial=0.0
    )
