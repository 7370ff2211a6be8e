"""Yoshikawa's measure: run where the method was added."""

import numpy as np

import sarrus

robot = sarrus.mechanisms.delta()
q = robot.assemble()
found = robot.manipulability(q, "platform")
s = np.linalg.svd(robot.loop_jacobian(q, "platform"), compute_uv=False)
assert np.allclose(found["singular_values"], s, rtol=1e-9)
assert np.isclose(found["measure"], s.prod(), rtol=1e-9)
print("a public method")
