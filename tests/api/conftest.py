"""Fixtures of several packages."""

import numpy as np
import pytest

from tests.random_mechanisms import ALL_JOINTS, random_mechanism
from tests.trajectories import sampled, smooth_motion


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture
def mixed():
    """Return joints of every kind, with efforts, events, internal states and a checkpoint."""
    rng = np.random.default_rng(4)
    robot = random_mechanism(3, bodies=len(ALL_JOINTS))
    motion = smooth_motion(robot, rng)
    return sampled(
        robot,
        motion,
        7,
        efforts=rng.standard_normal((7, robot.nv)),
        internal_state=rng.standard_normal((7, 2)),
        events={"touch down": [0.5, 1 / 3], "never": []},
        statistics={"method": "rk4", "steps": np.int64(6), "seconds": 0.25, "evaluations": None},
        status="terminated: touch down",
        checkpoint={"x": np.arange(3.0), "h": 0.1},
    )
