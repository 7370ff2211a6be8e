"""Sine and cosine of the kernels, read from the pose of one revolute joint, compared with NumPy's."""

import numpy as np
import pytest

import sarrus

ANGLES = {
    "small": np.concatenate([[0.0, 1e-300, -1e-8], np.linspace(-np.pi, np.pi, 4001)]),
    "near multiples of pi/2": (np.arange(-3000, 3000) * (np.pi / 2))[:, None].repeat(3, 1).ravel(),
    "many turns": np.random.default_rng(0).uniform(-1.6e6, 1.6e6, 20_000),
    "beyond the reduction": np.array([1.7e6, -1e9, 1e15, 1e300]),
}


@pytest.fixture(scope="module")
def hinge():
    builder = sarrus.Builder()
    builder.add_body("door", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_joint("hinge", sarrus.Revolute("z"), "ground", "door")
    return builder.build()


@pytest.mark.parametrize("angles", ANGLES.values(), ids=ANGLES)
def test_sine_and_cosine(hinge, angles):
    """The error is within 2 ulp of 1, and within 2 ulp of the value away from zero crossings."""
    batch = hinge.pose(angles[:, None], "door")
    single = np.array([hinge.pose(np.array([x]), "door") for x in angles[::7]])
    eps = np.finfo(float).eps
    for got, x in ((batch, angles), (single, angles[::7])):
        for value, exact in ((got[:, 0, 0], np.cos(x)), (got[:, 1, 0], np.sin(x))):
            error = np.abs(value - exact)
            assert error.max() <= 2 * eps
            clear = np.abs(exact) > 1e-3
            assert (error[clear] <= 2 * eps * np.abs(exact[clear])).all()
