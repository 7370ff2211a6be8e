#!/bin/sh
# Pink 4.4.0: ManipulabilityTask, which is there to raise the manipulability of an arm, lowers it for valid settings, without an error. Its Jacobian is
# documented as the gradient of compute_manipulability, and is built from the products w_j x v_i of columns of the frame's Jacobian. These are the derivatives
# of a Jacobian along the axes of the world at the frame's origin. The task takes LOCAL or WORLD instead: their derivatives have another term, v_j x w_i, and
# vanish for half of the pairs. The gradient is right all the same where the measure is that of the other Jacobian too: for all six rows, for the rotations, and
# for the position in LOCAL. It is wrong for the position in WORLD, and for planar_xy in WORLD and, off the plane, in LOCAL.
#
# Behaviour: an arm of 7 joints and a planar one of 4, for which planar_xy is documented. The gradient stands beside central differences of the task's own
# compute_manipulability, the tensor of compute_kinematic_hessian (documented as dJ/dq) beside those of Pinocchio's Jacobian. The last columns are the rate of
# the measure along the task's Jacobian, per unit of step: as the task predicts it, and as it is. A negative rate leads to a singularity.
# Output seen:
#   arm      frame  rows         gradient off by  Hessian off by  predicted  actual
#   spatial  LOCAL  all          2e-10            0.98            0.216      0.216
#   spatial  LOCAL  orientation  5e-10            0.98            0.802      0.802
#   spatial  LOCAL  position     1e-10            0.83            0.193      0.193
#   spatial  LOCAL  planar_xy    4e-01            0.75            0.651      0.305
#   spatial  WORLD  all          1e-09            0.91            0.216      0.216
#   spatial  WORLD  orientation  2e-10            0.00            0.802      0.802
#   spatial  WORLD  position     1e+00            0.91            1.883      -0.141
#   spatial  WORLD  planar_xy    2e+00            0.87            2.608      0.107
#   planar   LOCAL  planar_xy    2e-10            1.02            0.276      0.276
#   planar   WORLD  planar_xy    8e-01            0.85            0.947      -0.057
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet --only-binary :all: pin-pink==4.4.0 pin==4.1.0 libpinocchio==4.1.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import numpy as np
import pinocchio as pin
from pink.configuration import Configuration
from pink.tasks import ManipulabilityTask

JOINT = """<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/><origin xyz="{2}"/><axis xyz="{3}"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>"""
SPATIAL = ("0 0 0.3", "0 0 1"), ("0 0 0.1", "0 1 0"), ("0 0 0.4", "0 1 0"), ("0 0 0.4", "0 1 0"), ("0 0 0.1", "0 0 1"), ("0 0 0.1", "0 1 0"), ("0.1 0 0", "0 0 1")
PLANAR = ("0 0 0", "0 0 1"), ("0.5 0 0", "0 0 1"), ("0.4 0 0", "0 0 1"), ("0.3 0 0", "0 0 1")


def arm(joints):
    links = "".join(f'<link name="l{k}"/>' for k in range(len(joints) + 1))
    return pin.buildModelFromXML(f'<robot name="arm">{links}{"".join(JOINT.format(k + 1, k, *joint) for k, joint in enumerate(joints))}</robot>')


def differences(function, q, h=1e-6):
    """Return the derivative of a function of q: its first index is that of q."""
    return np.array([(function(q + e) - function(q - e)) / (2 * h) for e in h * np.eye(len(q))])


def case(model, q, frame, rows):
    """Return the errors of gradient and Hessian, and the rates along the task's Jacobian."""
    tip = f"l{model.nv}"
    task = ManipulabilityTask(tip, model, reference_frame=frame, mask=rows)
    kept = np.ones(6, bool) if task.mask is None else task.mask.astype(bool)

    def at(q):
        return Configuration(model, model.createData(), q)

    def jacobian(q):
        data = model.createData()
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        return pin.getFrameJacobian(model, data, model.getFrameId(tip), frame)[kept].copy()

    gradient, true = task.compute_jacobian(at(q))[0], differences(lambda q: task.compute_manipulability(at(q)), q)
    J = jacobian(q)
    assert abs(task.compute_manipulability(at(q)) - np.sqrt(np.linalg.det(J @ J.T))) < 1e-12, "the measure is the documented one"
    bend = np.abs(task.compute_kinematic_hessian(at(q)) - differences(jacobian, q)).max()
    size = np.linalg.norm(gradient)
    return np.abs(gradient - true).max(), bend, size, true @ gradient / size


spatial, planar = (arm(SPATIAL), np.array([0.3, 0.5, 0.7, 0.4, 0.9, -0.6, 0.2])), (arm(PLANAR), np.array([0.3, 0.9, -0.5, 0.4]))
cases = [("spatial", *spatial, frame, rows) for frame in (pin.LOCAL, pin.WORLD) for rows in (None, "orientation", "position", "planar_xy")]
cases += [("planar", *planar, frame, "planar_xy") for frame in (pin.LOCAL, pin.WORLD)]
right = {("spatial", "LOCAL", "all"), ("spatial", "LOCAL", "orientation"), ("spatial", "LOCAL", "position")}
right |= {("spatial", "WORLD", "all"), ("spatial", "WORLD", "orientation"), ("planar", "LOCAL", "planar_xy")}
print("arm      frame  rows         gradient off by  Hessian off by  predicted  actual")
seen = {}
for name, model, q, frame, rows in cases:
    key = name, str(frame), rows or "all"
    seen[key] = off, bend, predicted, actual = case(model, q, frame, rows)
    print(f"{name:8} {key[1]:6} {key[2]:12} {off:<16.0e} {bend:<15.2f} {predicted:<10.3f} {actual:.3f}")
    assert bend < 1e-8 if key == ("spatial", "WORLD", "orientation") else bend > 0.1, "the Hessian changed"
    assert (off < 1e-8 and abs(actual - predicted) < 1e-8) if key in right else off > 0.3, "the gradient changed"
assert seen["spatial", "WORLD", "position"][3] < -0.1 and seen["planar", "WORLD", "planar_xy"][3] < -0.05, "the task no longer lowers the manipulability"
PYTHON
