#!/bin/sh
# Exudyn 1.13.6: its two kinematic trees in Python, the readable counterparts of the one in C++, give wrong dynamics for three valid models, without an error.
# KinematicTree33 gives each sliding joint the mass of the tree's last link instead of all that it carries: two sliders of 2 and 3 kg in a row get a singular
# mass matrix. KinematicTree66 multiplies transformations element by element on the way to the frame of an external force: a force on the second link of an arm
# arrives as another one. Robot.GetKinematicTree66 leaves out the parents: two fingers on one palm become a chain of three.
#
# Behaviour: closed forms for the sliders and the force; Pinocchio 4.1.0 for the hand, at q = 0.1, 0.2, 0.3. The force on the first link arrives, which shows
# that it is given in the world as documented (with the sign reversed: M a + f = tau needs f = -J' F).
# Output seen:
#   sliders   KinematicTree33 [3 3 3 3], KinematicTree66 [5 3 3 3], true [5 3 3 3]
#   force on link 1: f = [2.2912 0.    ], J' F = [2.2912 0.    ]
#   force on link 2: f = [4.6539 2.2912], J' F = [2.2912 0.6761]
#   hand      parents [-1  0  1], M[1, 2] 0.4600, Pinocchio's 0.0000; those of the robot are [-1, 0, 0]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet exudyn==1.13.6 pin==4.1.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
import pinocchio as pin
from exudyn.kinematicTree import KinematicTree33, KinematicTree66, MassCOMinertia2T66
from exudyn.rigidBodyUtilities import HT0, HTtranslate, RotationTranslation2T66Inverse
from exudyn.robotics import Robot, RobotLink

# sliders of 2 and 3 kg, one on the other
masses, unit, zero = (2.0, 3.0), np.eye(3), np.zeros(3)
by_vectors = KinematicTree33(["Px", "Px"], [unit, unit], [zero, zero], [unit, unit], [zero, zero], masses)
by_matrices = KinematicTree66(["Px", "Px"], [np.eye(6)] * 2, [MassCOMinertia2T66(m, zero, unit) for m in masses])
M33, M66 = (tree.ComputeMassMatrixAndForceTerms([0.1, 0.2], [0.0, 0.0])[0] for tree in (by_vectors, by_matrices))
true = np.array([[5.0, 3.0], [3.0, 3.0]])
print(f"sliders   KinematicTree33 {M33.ravel().astype(int)}, KinematicTree66 {M66.ravel().astype(int)}, true {true.ravel().astype(int)}")

# a force at the tip of an arm of two links of 1 m, as moment about the world's origin and force
q, gravity = np.array([0.3, 0.5]), [0.0, 0.0, 0.0]
steps = [np.eye(6), RotationTranslation2T66Inverse(A=unit, v=np.array([1.0, 0.0, 0.0]))]
arm = KinematicTree66(["Rz", "Rz"], steps, [MassCOMinertia2T66(1.0, np.array([0.5, 0.0, 0.0]), 0.1 * unit)] * 2, gravity=gravity)
elbow = np.array([np.cos(q[0]), np.sin(q[0]), 0.0])
tip = elbow + [np.cos(q.sum()), np.sin(q.sum()), 0.0]
F = np.array([1.0, 2.0, 0.0])
wrench, nothing = np.concatenate([np.cross(tip, F), F]), np.zeros(6)
seen, wanted = [], [np.array([np.cross(tip, F)[2], 0.0]), np.array([np.cross(tip, F)[2], np.cross(tip - elbow, F)[2]])]
for link, forces in enumerate(([wrench, nothing], [nothing, wrench])):
    seen.append(arm.ComputeMassMatrixAndForceTerms(q, [0.0, 0.0], forces)[1])
    print(f"force on link {link + 1}: f = {np.round(seen[link], 4)}, J' F = {np.round(wanted[link], 4)}")

# a palm with two fingers
inertia = np.diag([0.1, 0.2, 0.3])
hand = Robot(gravity=[0, 0, -9.81])
hand.AddLink(RobotLink(mass=1.0, COM=[0.5, 0, 0.1], inertia=inertia, jointType="Rz", parent=-1, preHT=HT0()))
for place in [1, 0, 0], [0, 1, 0]:
    hand.AddLink(RobotLink(mass=1.0, COM=[0.5, 0, 0.1], inertia=inertia, jointType="Ry", parent=0, preHT=HTtranslate(place)))
tree = hand.GetKinematicTree66()
q = np.array([0.1, 0.2, 0.3])
found = tree.ComputeMassMatrixAndForceTerms(q, np.zeros(3))[0]
model = pin.Model()
for parent, joint, place in (0, pin.JointModelRZ(), [0, 0, 0]), (1, pin.JointModelRY(), [1, 0, 0]), (1, pin.JointModelRY(), [0, 1, 0]):
    index = model.addJoint(parent, joint, pin.SE3(unit, np.array(place, float)), "")
    model.appendBodyToJoint(index, pin.Inertia(1.0, np.array([0.5, 0, 0.1]), inertia), pin.SE3.Identity())
M = pin.crba(model, model.createData(), q)
M = np.triu(M) + np.triu(M, 1).T
parents = [hand.GetParentIndex(i) for i in range(3)]
print(f"hand      parents {tree.parents}, M[1, 2] {found[1, 2]:.4f}, Pinocchio's {M[1, 2]:.4f}; those of the robot are {parents}")
assert np.allclose(M66, true) and np.allclose(M33, 3.0), "the mass matrix of sliders changed"
assert np.allclose(seen[0], wanted[0]) and np.allclose(seen[1], [4.6538560, 2.2912101]), "external forces changed"
assert parents == [-1, 0, 0] and list(tree.parents) == [-1, 0, 1] and abs(M[1, 2]) < 1e-12 and abs(found[1, 2] - 0.46) < 1e-4, "the parents changed"
PYTHON
