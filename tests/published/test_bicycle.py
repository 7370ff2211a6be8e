"""The Whipple bicycle against its benchmark: Meijaard, Papadopoulos, Ruina and Schwab (2007). Values are in tests/data."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

CASE = json.loads((Path(__file__).parents[1] / "data" / "meijaard2007_bicycle.json").read_text())
# of numbers up to a thousand, by differences that keep 13 digits
DIGITS = 1e-9


@pytest.fixture(scope="module")
def bicycle():
    return sarrus.mechanisms.whipple_bicycle()


def upright(bicycle, speed, coordinates=("lean", "steer", "rear wheel")):
    q = bicycle.assemble()
    v = bicycle.complete_velocity(q, {"rear wheel": speed / 0.3, "lean": 0.0, "steer": 0.0})
    return bicycle.linearize(q, v, coordinates=coordinates)


def nearest(eigenvalues, wanted):
    return np.array([eigenvalues[abs(eigenvalues - x).argmin()] for x in wanted])


@pytest.mark.parametrize("coordinates", [("lean", "steer", "rear wheel"), ("lean", ("place", 2), ("place", 0)), None])
@pytest.mark.parametrize("row", CASE["eigenvalues"], ids=lambda row: f"{row['speed']:g} m/s")
def test_eigenvalues(bicycle, row, coordinates):
    """The benchmark's eigenvalues do not depend on coordinates; all other eigenvalues belong to position, heading and speed, which are free."""
    wanted = np.array(row["real"]) + 1j * np.array(row["imag"])
    linear = upright(bicycle, row["speed"], coordinates)
    found = linear.modes().eigenvalues
    assert_allclose(nearest(found, wanted), wanted, rtol=0, atol=CASE["tolerance"])
    assert len(found) == 10 and (abs(found) < 1e-3).sum() == 6
    assert linear.error.max() < 1e-9


@pytest.mark.parametrize("speed", [0.0, 3.0, 5.0, 10.0])
def test_equations(bicycle, speed):
    """M q'' + v C1 q'' + (g K0 + v^2 K2) q = f, with the opposite sign of the steering angle, whose axis points up."""
    linear = upright(bicycle, speed)
    M, C1, K0, K2 = (np.array(CASE[k]) for k in ("M", "C1", "K0", "K2"))
    turn = np.diag([1.0, -1.0])
    y, u = [linear.states.index(n) for n in ("lean", "steer")], [linear.states.index(n) for n in ("lean'", "steer'")]
    stiffness, damping = (-turn @ np.linalg.solve(M, K) @ turn for K in (CASE["g"] * K0 + speed**2 * K2, speed * C1))
    assert_allclose(linear.A[np.ix_(u, y)], stiffness, rtol=0, atol=DIGITS)
    assert_allclose(linear.A[np.ix_(u, u)], damping, rtol=0, atol=DIGITS)
    steering = bicycle.actuated.index("steer")
    assert_allclose(linear.B[u, steering], (turn @ np.linalg.inv(M) @ turn)[:, 1], rtol=0, atol=DIGITS)


def test_it_runs_straight_and_steadily(bicycle):
    linear = upright(bicycle, 4.0)
    rate = dict(zip(linear.states, linear.rate, strict=True))
    moving = {name for name, x in rate.items() if abs(x) > 1e-9}
    assert moving == {"rear wheel", "front wheel", "place[0]"}
    assert linear.velocities == ("lean", "steer", "rear wheel")
    assert set(linear.coordinates) - set(linear.velocities) == {"front wheel", "place[0]", "place[1]", "place[2]"}


def test_a_push_decays_while_it_is_self_stable(bicycle):
    """In simulations a lean decays at 5 m/s and grows at 3 m/s."""
    q = bicycle.assemble()
    for speed, falls in ((5.0, False), (3.0, True)):
        v = bicycle.complete_velocity(q, {"rear wheel": speed / 0.3, "lean": 1e-3, "steer": 0.0})
        run = sarrus.simulate(bicycle, q, v, duration=3.0, dt=2e-3)
        lean = bicycle.joint("lean").q_slice
        first, last = abs(run.q[: len(run.t) // 3, lean]).max(), abs(run.q[-len(run.t) // 3 :, lean]).max()
        assert (last > first) == falls
