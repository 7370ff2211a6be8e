#!/bin/sh
# Pinocchio 4.1.0 drops a body of a MuJoCo file, with all that it carries, if its element has no attribute: a second link of a double pendulum is gone
# without an error when it is written <body>, and there when it is written <body pos="0 0 0">. mujoco 4.0.0 needs no attribute: names and places
# have defaults. If it is the only body the reader says that there is none.
#
# Output seen:
#   <body>:              mujoco 2 joints, 2 kg; pinocchio ['shoulder'], 1 kg
#   <body pos="0 0 0">:  mujoco 2 joints, 2 kg; pinocchio ['shoulder', 'elbow'], 2 kg
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet pin==4.1.0 mujoco==4.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import mujoco
import pinocchio as pin

LINK = '<joint name="{}" axis="0 1 0"/><geom type="sphere" size="0.1" mass="1" pos="0 0 0.5"/>'
for element, wanted in ("<body>", ["shoulder"]), ('<body pos="0 0 0">', ["shoulder", "elbow"]):
    with open("arm.xml", "w") as file:
        file.write(
            f'<mujoco><worldbody><body name="upper">{LINK.format("shoulder")}{element}{LINK.format("elbow")}</body></body></worldbody></mujoco>'
        )
    compiled = mujoco.MjModel.from_xml_path("arm.xml")
    model = pin.buildModelFromMJCF("arm.xml")
    names, mass = list(model.names)[1:], sum(inertia.mass for inertia in model.inertias)
    print(f"{element + ':':20} mujoco {compiled.nv} joints, {compiled.body_mass.sum():g} kg; pinocchio {names}, {mass:g} kg")
    assert (compiled.nv, names) == (2, wanted), "one of them changed"
PYTHON
