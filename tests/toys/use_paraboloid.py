"""A bead in a bowl: run where the constraint was added."""

import pickle
import warnings

import numpy as np
import pytest

import sarrus
from sarrus.io import complete

warnings.simplefilter("error")

A = 0.8


def bead(**numbers):
    b = sarrus.Builder("bead")
    b.add_body("bead", sarrus.Inertia.sphere(0.5, 0.02))
    b.add_joint("float", sarrus.Free(), "ground", "bead")
    b.add_constraint("bowl", "Paraboloid", "ground", "bead", at_parent=(0.0, 0.0, 1.0), **numbers)
    return b


robot = bead(a=A).build()
assert robot.description.constraints == (
    sarrus.ParaboloidSpec("bowl", "ground", "bead", A, at_parent=sarrus.Transform(translation=(0, 0, 1.0))),
)
assert robot.constraint("bowl").row_names == ("bowl: height",)
r, rate = 0.3, np.sqrt(2.0 * 9.81 * A)  # of circles, whatever their radius
q, v = robot.neutral(), np.zeros(6)
q[4:], v[3:] = (r, 0.0, 1.0 + A * r**2), (0.0, rate * r, 0.0)
assert np.abs(robot.constraint_residual(q)).max() < 1e-15
assert robot.mobility(q).degrees_of_freedom == 5
run = sarrus.simulate(robot, q, v, 2.0 * np.pi / rate, method="dopri5", rtol=1e-10)
assert np.allclose(run.q[-1], q, atol=1e-7) and np.ptp(run.energy) < 1e-8
runs = sarrus.simulate_many(robot, q, [v, 0.5 * v], 0.5)
alone = sarrus.simulate(robot, q, 0.5 * v, 0.5, method="rk4")
assert np.allclose(runs.q[1, -1], alone.q[-1], atol=1e-10)

# a bowl that turns and moves, and a point beside the bead's centre
b = sarrus.Builder("tray")
b.add_body("tray", sarrus.Inertia(2.0, (0.0, 0.0, 0.1), 0.1 * np.eye(3)))
b.add_joint("base", sarrus.Free(), "ground", "tray")
b.add_body("bead", sarrus.Inertia.sphere(0.5, 0.02))
b.add_joint("float", sarrus.Free(), "ground", "bead")
b.add_constraint("bowl", "Paraboloid", "tray", "bead", a=A, at_parent=(0.1, 0.0, 0.2), at_child=(0.0, 0.02, 0.03))
tray = b.build()
rng = np.random.default_rng(1)
q = tray.project_configuration(tray.random(rng))
v = tray.project_velocity(q, rng.normal(size=12))
a = tray.forward_dynamics(q, v, np.zeros(12))
step = 1e-5
q_1, q_0 = (tray.integrate(q, s * step * v + 0.5 * step**2 * a) for s in (1.0, -1.0))
assert np.abs(tray.constraint_jacobian(q_1) @ (v + step * a)).max() < 1e-7
slope = (tray.constraint_residual(q_1) - tray.constraint_residual(q_0)) / (2.0 * step)
assert np.abs(slope).max() < 1e-7
spun = sarrus.simulate(tray, q, v, 0.5, method="dopri5", rtol=1e-10)
assert np.ptp(spun.energy) < 1e-6

for one in (robot, tray):
    again = complete.read(complete.write(one.description)).build()
    assert again == one and hash(again.description) == hash(one.description)
    assert pickle.loads(pickle.dumps(one)) == one
assert "Paraboloid" in complete.schema()["$defs"]
for ending in ("urdf", "sdf", "xml"):
    with pytest.raises(sarrus.ModelError, match="bowl"):
        robot.save(f"bead.{ending}")
for wrong, message in (({}, "a"), ({"a": np.nan}, "bowl.*a"), ({"a": 1.0, "b": 2.0}, "b")):
    with pytest.raises(sarrus.ModelError, match=message):
        bead(**wrong)
print("a bead in a bowl")
