#!/bin/sh
# TrueRig 0.1.1 converts robot models with a report of everything that it changed, after its README: its representation records all of the source, and each thing
# that a target can't express is logged. But a hinge loses its damping, dry friction, armature, spring and torque limit on the way from MJCF to MJCF, and the report,
# of which --strict makes a test, names none of the five. Its dry friction and torque limit are lost from URDF to MJCF too, its damping from MJCF to URDF.
#
# Behaviour: one arm on a hinge, of which mujoco 4.0.0 reads both files; `truerig convert --strict --report json` ends with 0, without a word on the joint.
# Output seen (damping, dry friction, armature, stiffness, torque limit):
#   MJCF, as written       0.4  0.2  0.05  3  7
#   MJCF to MJCF           0  0  0  0  0      exit status 0, events that name the joint: 0
#   MJCF to URDF           0  0  0  0  0      exit status 0, events that name the joint: 0
#   URDF, as written       0.4  0.2  0  0  7
#   URDF to MJCF           0.4  0  0  0  0    exit status 0, events that name the joint: 0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet truerig==0.1.1 mujoco==4.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import subprocess
from pathlib import Path

import mujoco

MJCF = """<mujoco model="hinge"><compiler angle="radian"/><worldbody><body name="base"><body name="arm"><joint name="axle" axis="0 1 0" range="-1 2" limited="true"
damping="0.4" frictionloss="0.2" armature="0.05" stiffness="3" actuatorfrcrange="-7 7"/><inertial pos="0 0 0.3" mass="1" diaginertia="0.1 0.1 0.01"/>
</body></body></worldbody></mujoco>"""
URDF = """<robot name="hinge"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 0.3"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="axle" type="revolute"><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="7" velocity="3"/><dynamics damping="0.4" friction="0.2"/></joint></robot>"""
Path("hinge.xml").write_text(MJCF)
Path("hinge.urdf").write_text(URDF)


def read(path):
    """Return what the joint of a file has in MuJoCo."""
    model = mujoco.MjModel.from_xml_path(path)
    joint = model.joint("axle")
    limit = model.jnt_actfrcrange[joint.id][1] if model.jnt_actfrclimited[joint.id] else 0.0
    return tuple(float(x) for x in (joint.damping[0], joint.frictionloss[0], joint.armature[0], joint.stiffness[0], limit))


def converted(source, target):
    """Return what is left of the joint, and how many lines of the report name it."""
    run = subprocess.run(["venv/bin/truerig", "convert", "--strict", "--report", "json", source, target], capture_output=True, text=True)
    return read(target), run.returncode, sum("axle" in line for line in (run.stdout + run.stderr).splitlines())


def show(title, values, *report):
    note = "exit status {}, events that name the joint: {}".format(*report) if report else ""
    print(title.ljust(22), f"{'  '.join(f'{x:g}' for x in values):18}", note)


show("MJCF, as written", read("hinge.xml"))
first, second, third = converted("hinge.xml", "first.xml"), converted("hinge.urdf", "second.xml"), converted("hinge.xml", "third.urdf")
show("MJCF to MJCF", *first)
show("MJCF to URDF", *third)
show("URDF, as written", read("hinge.urdf"))
show("URDF to MJCF", *second)
assert read("hinge.xml") == (0.4, 0.2, 0.05, 3.0, 7.0) and read("hinge.urdf") == (0.4, 0.2, 0.0, 0.0, 7.0)
assert first == ((0.0, 0.0, 0.0, 0.0, 0.0), 0, 0), "the converter changed"
assert second == ((0.4, 0.0, 0.0, 0.0, 0.0), 0, 0) and third == ((0.0, 0.0, 0.0, 0.0, 0.0), 0, 0), "the converter changed"
PYTHON
