"""Kutta's method of third order: run where it was added, with what its C++ program printed as argument."""

import sys
from typing import get_args

import numpy as np

import sarrus
from sarrus.simulation.setup import MethodName

assert "kutta3" in get_args(MethodName)
b = sarrus.Builder("pendulum")
b.add_body("rod", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rod")
pendulum, four_bar = b.build(), sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
q = four_bar.project_configuration([0.5, -1.7, -1.9])
v = four_bar.project_velocity(q, [6.0, -8.0, -4.0])
said = dict(line.split(" = ") for line in sys.argv[1].splitlines())

for name, robot, q0, v0 in (("pendulum", pendulum, np.array([0.3]), np.zeros(1)), ("four-bar", four_bar, q, v)):
    exact = sarrus.simulate(robot, q0, v0, 1.0, method="dopri5", rtol=1e-12, atol=1e-12).q[-1, 0]
    ends = []
    for steps in (50, 100, 200):
        alone = sarrus.simulate(robot, q0, v0, 1.0, method="kutta3", dt=1.0 / steps)
        many = sarrus.simulate_many(
            robot, np.tile(q0, (5, 1)), np.tile(v0, (5, 1)), 1.0, method="kutta3", dt=1.0 / steps
        )
        assert np.allclose(many.q[:, -1], alone.q[-1], atol=1e-11)
        ends.append(alone.q[-1, 0])
    error = np.abs(np.array(ends) - exact)
    order = np.log2(error[:-1] / error[1:])
    assert np.all(np.abs(order - 3.0) < 0.4), (name, order)
    assert np.allclose(np.array(said[name].split(), float), ends, atol=1e-10), name  # from C++
print("of third order, alone and side by side, from C++ and Python")
