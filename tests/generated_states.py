"""States that generated code and the core are compared in, and how."""

import numpy as np

from sarrus.generation import samples


def states(robot, count, seed=5):
    """Not those that the recording had."""
    rng, time = np.random.default_rng(seed), np.zeros(count)
    q = samples.configurations(robot, time, rng)
    return {"q": q, **samples.motion(robot, q, time, rng)}


def difference(a, b):
    """Largest one of each state, relative to the largest entry of the answer, or to one."""
    a, b = a.reshape(len(b), -1), b.reshape(len(b), -1)
    return (np.abs(a - b) / np.maximum(np.abs(b).max(axis=1, keepdims=True, initial=1e-9), 1e-9)).max(
        axis=1, initial=0.0
    )
