"""A bead on an ellipse, in the tree and closing a loop: run where the joint was added."""

import warnings

import numpy as np
import pytest

import sarrus
from sarrus.io import complete

warnings.simplefilter("error")


def bead(*, closing):
    b = sarrus.Builder("bead")
    b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.02))
    b.add_body("bead", sarrus.Inertia.sphere(2.0, 0.05))
    b.add_joint("pin", sarrus.Revolute("y"), "ground", "arm", actuated=True)
    b.add_joint("slot", sarrus.Prismatic("x"), "arm", "slide")
    b.add_body("slide", sarrus.Inertia.sphere(0.5, 0.02))
    b.add_joint("ball", sarrus.Revolute("y"), "slide", "bead", loop=not closing, tree=closing)
    b.add_joint("track", sarrus.Elliptic("y", 0.6, 0.4), "ground", "bead", loop=closing, tree=not closing)
    return b.build()


ends = []
for closing in (False, True):
    robot = bead(closing=closing)
    q = robot.assemble(fixed={"track": 1.0}, near={"slot": 0.5})
    assert np.abs(robot.constraint_residual(q)).max() < 1e-12
    assert robot.mobility(q).degrees_of_freedom == 1
    v = robot.complete_velocity(q, {"track": 0.7})
    run = sarrus.simulate(robot, q, v, 1.0, method="dopri5", rtol=1e-10)
    assert np.ptp(run.energy) < 1e-7, np.ptp(run.energy)
    ends.append([run.joint(name)[-1].item() for name in ("track", "pin")])
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    step = 1e-5
    q_1, q_0 = (robot.integrate(q, s * step * v + 0.5 * step**2 * a) for s in (1.0, -1.0))
    assert np.abs(robot.constraint_jacobian(q_1) @ (v + step * a)).max() < 1e-8
    again = complete.read(complete.write(robot.description)).build().description
    assert again == robot.description
    for ending in ("urdf", "sdf", "xml"):
        with pytest.raises(sarrus.ModelError, match="track"):
            robot.save(f"bead.{ending}")
assert np.allclose(*ends, atol=1e-7), ends
C = sarrus.formulations.christoffel_symbols(robot, q)
assert np.allclose(np.einsum("ijk,j,k->i", C, v, v), robot.coriolis_matrix(q, v) @ v, atol=1e-10)
print("an ellipse in the tree and across a loop")
