#!/bin/sh
# A joint's damping may have up to three coefficients in mujoco 4.0.0 (of v, v|v|, v^3). Pinocchio 4.1.0 reads such a joint as undamped: the linear
# coefficient, which its model has a place for, goes with the others, and nothing says so.
#
# Output seen:
#   damping="1":      mujoco pulls with -2 N m at 2 rad/s, pinocchio's model.damping is [1.]
#   damping="1 2 3":  mujoco pulls with -34 N m at 2 rad/s, pinocchio's model.damping is [0.]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet pin==4.1.0 mujoco==4.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import mujoco
import pinocchio as pin

seen = []
for damping in "1", "1 2 3":
    with open("hinge.xml", "w") as file:
        file.write(
            f'<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0" damping="{damping}"/><geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>'
        )
    compiled = mujoco.MjModel.from_xml_path("hinge.xml")
    data = mujoco.MjData(compiled)
    data.qvel[:] = 2.0
    mujoco.mj_forward(compiled, data)
    read = pin.buildModelFromMJCF("hinge.xml").damping
    seen.append((round(float(data.qfrc_damper[0]), 9), float(read[0])))
    print(f'damping="{damping}":  mujoco pulls with {data.qfrc_damper[0]:g} N m at 2 rad/s, pinocchio\'s model.damping is {read}')
assert seen == [(-2.0, 1.0), (-34.0, 0.0)], "one of them changed"
PYTHON
