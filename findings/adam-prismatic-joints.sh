#!/bin/sh
# adam-robotics 0.5.0 has no mass matrix for a model with a sliding joint: its NumPy and its CasADi backend both end with a mismatch of shapes from
# inside the library, which names neither the joint nor its type. The same cart with a revolute joint works. The file is plain URDF.
#
# Output seen:
#   revolute: NumPy 7x7, CasADi 7x7
#   prismatic: NumPy ValueError, CasADi RuntimeError
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet "adam-robotics[casadi]==0.5.0" casadi==3.8.2 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import numpy as np
from adam.casadi import KinDynComputations as ByCasadi
from adam.numpy import KinDynComputations as ByNumpy

ROBOT = """<robot name="cart"><link name="rail"/>
<link name="cart"><inertial><origin xyz="0 0 0" rpy="0 0 0"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="{}"><parent link="rail"/><child link="cart"/><origin xyz="0 0 1" rpy="0 0 0"/><axis xyz="1 0 0"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>"""
seen = {}
for kind in "revolute", "prismatic":
    with open("cart.urdf", "w") as file:
        file.write(ROBOT.format(kind))
    for backend in ByNumpy, ByCasadi:
        try:
            M = backend("cart.urdf", ["slide"]).mass_matrix(np.eye(4), np.array([0.3]))
            seen[kind, backend is ByNumpy] = "x".join(map(str, np.shape(M)))
        except Exception as error:
            seen[kind, backend is ByNumpy] = type(error).__name__
    print(f"{kind}: NumPy {seen[kind, True]}, CasADi {seen[kind, False]}")
assert (seen["revolute", True], seen["revolute", False]) == ("7x7", "7x7")
assert (seen["prismatic", True], seen["prismatic", False]) == ("ValueError", "RuntimeError"), "it changed"
PYTHON
