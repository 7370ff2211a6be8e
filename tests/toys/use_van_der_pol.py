"""Van der Pol's oscillator on a spring: run where the force element was added."""

import warnings

import numpy as np
import pytest

import sarrus
from sarrus.control import VanDerPol

warnings.simplefilter("error")

b = sarrus.Builder("oscillator", gravity=(0, 0, 0))
b.add_body("mass", sarrus.Inertia.sphere(1.0, 0.1))
b.add_joint("slide", sarrus.Prismatic("x", stiffness=1.0), "ground", "mass")
robot = b.build()

run = sarrus.simulate(robot, [0.5], [0.0], 100.0, VanDerPol("slide", mu=0.1), dt=0.01)
assert np.isclose(np.abs(run.q[5000:]).max(), 2.0, rtol=3e-3)  # the limit cycle, up to mu^2
assert run.statistics["stiffness"] > 0.0

mu = np.array([0.1, 0.2, 0.4])
runs = sarrus.simulate_many(robot, [0.5], [0.0], 100.0, VanDerPol("slide", mu), dt=0.01)
for k, one in enumerate(mu):
    alone = sarrus.simulate(robot, [0.5], [0.0], 100.0, VanDerPol("slide", one), dt=0.01)
    assert np.allclose(runs.q[k], alone.q, atol=1e-9)
assert np.allclose(np.abs(runs.q[:, 5000:]).max(axis=(1, 2)), 2.0, rtol=1e-2)

with pytest.warns(sarrus.StiffnessWarning):  # damps by mu (q^2 - 1) = 3600/s
    sarrus.simulate(robot, [2.0], [0.0], 0.01, VanDerPol("slide", mu=1200.0), dt=0.001, limits="ignore")

with pytest.raises(sarrus.ModelError, match="mu of VanDerPol must not be negative"):
    sarrus.simulate(robot, [0.1], [0.0], 1.0, VanDerPol("slide", mu=-1.0))
with pytest.raises(sarrus.NameNotFoundError, match="slider"):
    sarrus.simulate(robot, [0.1], [0.0], 1.0, VanDerPol("slider", mu=1.0))
with pytest.raises(sarrus.ModelError, match="VanDerPol cannot be sampled"):
    sarrus.simulate(robot, [0.1], [0.0], 1.0, sarrus.control.SampleAndHold(VanDerPol("slide", mu=1.0)))
half = sarrus.simulate(robot, [0.5], [0.0], 5.0, VanDerPol("slide", mu=0.1), dt=0.01)
again = sarrus.simulate(robot, duration=5.0, controller=VanDerPol("slide", mu=0.1), dt=0.01, resume=half)
assert np.allclose(again.q[-1], run.q[1000], atol=1e-12)
print("a limit cycle, of one run and of many")
