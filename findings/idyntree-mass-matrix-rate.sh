#!/bin/sh
# iDynTree 15.1.0: the time derivative of the mass matrix is wrong as soon as the base moves. getCoriolisAndMassMatrices documents dM/dt = C + C'. With the
# base at rest it is so. A robot that moves as a whole gets a derivative in the body's representation too, in which its mass matrix is constant; in the inertial
# one it is exactly double. The matrix C is wrong with it, though C v is right: a momentum observer takes C' v, and lacks the moments and forces of a base that
# coasts.
#
# Behaviour: a base with an arm of one hinge; true is the central difference of iDynTree's own mass matrix along the motion (largest entry). Pinocchio 4.1.0
# gives C + C' = dM/dt of the same model, in the body's representation. Where M is constant C' v is -C v.
# Output seen:
#   representation  motion of       true   iDynTree
#   body            hinge           0.6305 0.6305
#   body            base, straight  0.0000 0.9000
#   body            base, turning   0.0000 0.4953
#   mixed           hinge           0.6037 0.6037
#   mixed           base, straight  0.0000 0.9000
#   mixed           base, turning   0.6963 1.3926
#   inertial        hinge           0.6037 0.6037
#   inertial        base, straight  1.5335 3.0669
#   inertial        base, turning   0.8991 1.7982
#   both, body: C' v 0.000 0.000 0.000 0.000 0.000 0.000 -0.061
#   both, body: true -0.212 -0.155 0.271 0.127 -0.129 -0.025 -0.061
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet idyntree==15.1.0 pin==4.1.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import idyntree.bindings as idt
import numpy as np
import pinocchio as pin

LINK = """<link name="{}"><inertial><origin xyz="{}"/><mass value="{}"/>
<inertia ixx="0.1" iyy="0.12" izz="0.09" ixy="0.01" ixz="-0.02" iyz="0.015"/></inertial></link>"""
with open("arm.urdf", "w") as file:
    file.write(f"""<robot name="arm">{LINK.format("base", "0.1 0 0.2", 1)}{LINK.format("link", "-0.1 0.1 0.3", 2)}<joint name="hinge" type="revolute">
<parent link="base"/><child link="link"/><origin xyz="0.1 0 0.2"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint></robot>""")
loader, robot = idt.ModelLoader(), idt.KinDynComputations()
assert loader.loadModelFromFile("arm.urdf") and robot.loadRobotModel(loader.model())
model = pin.buildModelFromUrdf("arm.urdf", pin.JointModelFreeFlyer())
GRAVITY = np.array([0.0, 0.0, -9.81])
PLACE = pin.exp6(np.array([0.1, 0.2, 0.3, 0.3, -0.2, 0.5])).homogeneous
ANGLE, H = np.array([0.4]), 1e-6


def moved(name, v, h):
    """Return the base and the angle after a time h of the motion v."""
    step = pin.exp6(h * v[:6]).homogeneous
    if name == "mixed":
        base = PLACE.copy()
        base[:3, :3] = pin.exp3(h * v[3:6]) @ PLACE[:3, :3]
        base[:3, 3] += h * v[:3]
        return base, ANGLE + h * v[6:]
    return (PLACE @ step if name == "body" else step @ PLACE), ANGLE + h * v[6:]


def mass_matrix(name, v, h):
    assert robot.setRobotState(*moved(name, v, h), v[:6], v[6:], GRAVITY)
    M = idt.MatrixDynSize()
    assert robot.getFreeFloatingMassMatrix(M)
    return M.toNumPy().copy()


def matrices(name, v):
    """Return C, M and dM/dt of iDynTree."""
    assert robot.setRobotState(PLACE, ANGLE, v[:6], v[6:], GRAVITY)
    found = [idt.MatrixDynSize() for _ in range(3)]
    assert robot.getCoriolisAndMassMatrices(*found)
    return [X.toNumPy().copy() for X in found]


def velocity_terms(name, v):
    """Return the generalised forces of the velocities: all but gravity."""
    assert robot.setRobotState(PLACE, ANGLE, v[:6], v[6:], np.zeros(3))
    bias = idt.FreeFloatingGeneralizedTorques(robot.model())
    assert robot.generalizedBiasForces(bias)
    return np.concatenate([bias.baseWrench().toNumPy(), bias.jointTorques().toNumPy()])


def by_pinocchio(v):
    q = np.concatenate([pin.SE3ToXYZQUAT(pin.SE3(PLACE)), ANGLE])
    C = pin.computeCoriolisMatrix(model, model.createData(), q, v)
    return C + C.T


print("representation  motion of       true   iDynTree")
motions = {"hinge": np.eye(7)[6], "base, straight": np.array([0.1, 0.2, 0.3, 0, 0, 0, 0]), "base, turning": np.array([0, 0, 0, 0.4, 0.5, 0.6, 0])}
for name, constant in ("body", idt.BODY_FIXED_REPRESENTATION), ("mixed", idt.MIXED_REPRESENTATION), ("inertial", idt.INERTIAL_FIXED_REPRESENTATION):
    assert robot.setFrameVelocityRepresentation(constant)
    for motion, v in motions.items():
        true = (mass_matrix(name, v, H) - mass_matrix(name, v, -H)) / (2 * H)
        C, M, rate = matrices(name, v)
        print(f"{name:15} {motion:15} {np.abs(true).max():.4f} {np.abs(rate).max():.4f}")
        assert np.allclose(M, mass_matrix(name, v, 0.0)) and np.allclose(rate, C + C.T) and np.allclose(C @ v, velocity_terms(name, v))
        if name == "body":
            assert np.allclose(by_pinocchio(v), true, atol=1e-7), "Pinocchio's is right"
        if motion == "hinge":
            assert np.allclose(rate, true, atol=1e-7), "the derivative is right with the base at rest"
        elif name == "inertial":
            assert np.abs(true).max() > 0.1 and np.allclose(rate, 2 * true, atol=1e-7), "the derivative changed"
        else:
            assert np.abs(rate - true).max() > 0.1, "the derivative changed"
both = motions["base, straight"] + motions["base, turning"]
assert robot.setFrameVelocityRepresentation(idt.BODY_FIXED_REPRESENTATION)
C = matrices("body", both)[0]
found, wanted = C.T @ both, -velocity_terms("body", both)
for title, x in ("C' v", found), ("true", wanted):
    print(f"both, body: {title}", *(f"{y + 0.0:.3f}" for y in np.round(x, 6)))
assert np.abs(found - wanted).max() > 0.1, "what a momentum observer sees changed"
PYTHON
