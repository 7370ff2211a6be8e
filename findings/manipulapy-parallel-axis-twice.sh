#!/bin/sh
# ManipulaPy 1.4.2 counts the distance of a link's centre of mass twice: it moves the inertia tensor of a URDF from the centre to the link's frame, and then
# weighs it with the Jacobian of the centre. Every link whose centre lies off its frame gets m d² too much. Its forward kinematics and its gravity torques are
# right, so nothing looks wrong at rest: the mass matrix, and with it the velocity terms, the inverse and the forward dynamics, are not.
#
# Behaviour: a pendulum with 2 kg at 0.5 m (moment at its centre 0.1 kg m²) has a mass matrix of 1.1 instead of 0.6 kg m². For two of the robots that come with
# the package, the diagonal of the mass matrix is compared with Pinocchio's (4.1.0) for the same file, at q = 0.3, 0.12, ... -0.6.
# Output seen:
#   pendulum  M 1.1000, true 0.6000
#   ur5       M / Pinocchio's: 1.184 1.048 1.001 1.000 1.014 1.000, gravity torques within 7e-15 N m
#   xarm6     M / Pinocchio's: 1.147 1.389 1.079 1.542 1.498 1.001, gravity torques within 2e-15 N m
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet ManipulaPy==1.4.2 pin==4.1.0 numpy==2.4.6
cd "$folder"
MANIPULAPY_QUIET=1 venv/bin/python -W ignore - 2>warnings <<'PYTHON' || { cat warnings; exit 1; }
import numpy as np
import pinocchio as pin
from ManipulaPy.ManipulaPy_data import get_robot_urdf
from ManipulaPy.urdf_processor import URDFToSerialManipulator

G = [0.0, 0.0, -9.81]
with open("pendulum.urdf", "w") as file:
    file.write("""<robot name="pendulum"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="swing" type="revolute"><parent link="base"/>
<child link="rod"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint></robot>""")
for name, path in ("pendulum", "pendulum.urdf"), ("ur5", str(get_robot_urdf("ur5"))), ("xarm6", str(get_robot_urdf("xarm6"))):
    dynamics = URDFToSerialManipulator(path).initialize_manipulator_dynamics()
    model = pin.buildModelFromUrdf(path)
    data = model.createData()
    q = np.linspace(0.3, -0.6, model.nq)
    found, wanted = np.array(dynamics.mass_matrix(q)), pin.crba(model, data, q).copy()
    gravity = np.array(dynamics.gravity_forces(q, G)) - pin.computeGeneralizedGravity(model, data, q)
    if name == "pendulum":
        print(f"pendulum  M {found[0, 0]:.4f}, true {wanted[0, 0]:.4f}")
        assert abs(wanted[0, 0] - 0.6) < 1e-12 and abs(found[0, 0] - 1.1) < 1e-12, "the mass matrix changed"
    else:
        ratio = found.diagonal() / wanted.diagonal()
        print(f"{name:9} M / Pinocchio's: {' '.join(f'{x:.3f}' for x in ratio)}, gravity torques within {np.abs(gravity).max():.0e} N m")
        assert ratio.max() > 1.1, "the mass matrix changed"
    assert np.abs(gravity).max() < 1e-9, "the gravity torques are right"
PYTHON
