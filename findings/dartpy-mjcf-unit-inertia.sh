#!/bin/sh
# dartpy 6.20.0 reads MuJoCo files, and gives every body of theirs the unit inertia tensor, 1 kg m² about each axis, whatever <inertial> or the geoms say; no
# message names it. Masses and centres of this arm are right, and so are its gravity torques: it holds still under them. But its forearm of 2 kg and 0.3 m, with
# 0.015 kg m² about its centre and 0.06 about the elbow, needs 17 times the torque to accelerate.
#
# Behaviour: two links, of which the upper one states its inertia and the lower one gets it from its box. M is the mass matrix at q = 0.3, -0.7.
# Output seen:
#   mujoco 4.0.0     M = 0.6638 0.1520 0.1520 0.0603
#   dartpy 6.20.0    M = 2.6286 1.1368 1.1368 1.0450   moments of the bodies: [1. 1. 1.] [1. 1. 1.]
#   gravity torques differ by 4e-16 N m
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet dartpy==6.20.0 mujoco==4.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
from pathlib import Path

import dartpy
import mujoco
import numpy as np

Q = [0.3, -0.7]
Path("arm.xml").write_text("""<mujoco><compiler angle="radian"/><worldbody><body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
<inertial pos="0 0 0.2" mass="2" diaginertia="0.02 0.02 0.002"/><geom type="sphere" size="0.05"/><body name="lower" pos="0 0 0.4">
<joint name="elbow" axis="0 1 0"/><geom type="box" size="0.02 0.02 0.15" pos="0 0 0.15" mass="2" contype="0" conaffinity="0"/></body></body></worldbody></mujoco>""")
model = mujoco.MjModel.from_xml_path("arm.xml")
data = mujoco.MjData(model)
data.qpos[:] = Q
mujoco.mj_forward(model, data)
M = np.zeros((2, 2))
for k, unit in enumerate(np.eye(2)):
    mujoco.mj_mulM(model, data, M[k], unit)
world = dartpy.utils.MjcfParser.readWorld(str(Path("arm.xml").resolve()))
arm = world.getSkeleton(0)
arm.setPositions(Q)
found = np.array(arm.getMassMatrix())
bodies = [arm.getBodyNode(k).getInertia() for k in range(2)]
moments = [np.array(body.getMoment()).diagonal() for body in bodies]
print(f"mujoco {mujoco.__version__}     M =", *(f"{x:.4f}" for x in M.ravel()))
print(f"dartpy {dartpy.__version__}    M =", *(f"{x:.4f}" for x in found.ravel()), "  moments of the bodies:", *moments)
gravity = np.array(arm.getGravityForces()) - data.qfrc_bias
print(f"gravity torques differ by {np.abs(gravity).max():.0e} N m")
assert [body.getMass() for body in bodies] == [2.0, 2.0] and np.abs(gravity).max() < 1e-9, "masses and centres are right"
assert all(np.array_equal(body.getMoment(), np.eye(3)) for body in bodies), "the reader changed"
rates = np.array([[1, 0], [1, 1]])  # of the bodies about y
missing = [1 - 0.02, 1 - model.body("lower").inertia[1]]
assert np.allclose(found - M, rates.T @ np.diag(missing) @ rates, atol=1e-9), "the mass matrix changed"
PYTHON
