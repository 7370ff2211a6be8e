#!/bin/sh
# Pinocchio 4.1.0 reads a MuJoCo world with several bodies as the first one alone. Two arms on one table, or a robot beside an object, become one
# arm: no error, no warning, nothing in the model says so. mujoco 4.0.0 compiles the same text to three bodies and three joints.
#
# Output seen:
#   mujoco 4.0.0: 3 joints, 6 kg;  pinocchio 4.1.0: 1 joint ['left'], 1 kg
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet pin==4.1.0 mujoco==4.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import mujoco
import pinocchio as pin

arms = "".join(
    f'<body name="{name} arm" pos="{k} 0 0"><joint name="{name}" axis="0 1 0"/><geom type="sphere" size="0.1" mass="{k + 1}" pos="0 0 0.5"/></body>'
    for k, name in enumerate(("left", "middle", "right"))
)
with open("arms.xml", "w") as file:
    file.write(f"<mujoco><worldbody>{arms}</worldbody></mujoco>")
compiled = mujoco.MjModel.from_xml_path("arms.xml")
model = pin.buildModelFromMJCF("arms.xml")
mass, names = sum(inertia.mass for inertia in model.inertias), list(model.names)[1:]
print(f"mujoco {mujoco.__version__}: {compiled.nv} joints, {compiled.body_mass.sum():g} kg;  pinocchio {pin.__version__}: {model.nv} joint {names}, {mass:g} kg")
assert (compiled.nv, compiled.body_mass.sum()) == (3, 6.0)
assert (names, mass) == (["left"], 1.0), "the reader changed"
PYTHON
