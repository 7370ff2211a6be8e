#!/bin/sh
# Pinocchio 4.1.0: the analytical derivatives of inverse dynamics are wrong, without an error, for joints whose motion subspace depends on the
# configuration: the ellipsoid joint that entered with this line of releases, SphericalZYX and Universal. rnea and aba of the same joints are right.
#
# Behaviour: computeRNEADerivatives differs from central differences of rnea by as much as the derivatives are large (revolute joints: 1e-9 of them),
# and C v + g of computeCoriolisMatrix is not the bias of nonLinearEffects. An optimiser that differentiates through such a joint gets no hint.
# Output seen (relative errors of dtau/dq, dtau/dv, and of C v + g):
#   RevoluteUnaligned  dq 9e-11  dv 2e-09  bias 1e-15
#   Spherical          dq 1e-10  dv 4e-10  bias 1e-15
#   SphericalZYX       dq 0.2  dv 0.6  bias 0.1
#   Universal          dq 0.05  dv 0.5  bias 0.02
#   Ellipsoid          dq 0.3  dv 0.7  bias 0.06
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet pin==4.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import pinocchio as pin

x, y = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0), np.array([3.0, 0.0, -1.0]) / np.sqrt(10.0)
joints = {
    "RevoluteUnaligned": (pin.JointModelRevoluteUnaligned(x), True),
    "Spherical": (pin.JointModelSpherical(), True),
    "SphericalZYX": (pin.JointModelSphericalZYX(), False),
    "Universal": (pin.JointModelUniversal(x, y), False),
    "Ellipsoid": (pin.JointModelEllipsoid(0.5, 0.3, 0.2), False),
}
rotate = pin.SE3(pin.exp3(np.array([0.3, -0.2, 0.5])), np.array([0.1, 0.2, 0.3]))
body = pin.Inertia(2.0, np.array([0.1, -0.05, 0.2]), np.diag([0.3, 0.4, 0.5]))
for name, (joint, right) in joints.items():
    model = pin.Model()
    for k, one in enumerate((pin.JointModelRX(), joint, pin.JointModelRY())):
        model.addJoint(k, one, rotate, f"joint {k}")
        model.appendBodyToJoint(k + 1, body, pin.SE3.Identity())
    data = model.createData()
    q = pin.integrate(model, pin.neutral(model), np.linspace(0.3, 0.8, model.nv))
    v, a = np.linspace(-1.0, 1.5, model.nv), np.linspace(0.5, -1.0, model.nv)
    steps = 1e-6 * np.eye(model.nv)
    by_q, by_v = [], []
    for step in steps:
        by_q.append(pin.rnea(model, data, pin.integrate(model, q, step), v, a) - pin.rnea(model, data, pin.integrate(model, q, -step), v, a))
        by_v.append(pin.rnea(model, data, q, v + step, a) - pin.rnea(model, data, q, v - step, a))
    wanted = [np.array(by).T / 2e-6 for by in (by_q, by_v)]
    pin.computeRNEADerivatives(model, data, q, v, a)
    errors = [np.abs(D - W).max() / np.abs(W).max() for D, W in zip((data.dtau_dq, data.dtau_dv), wanted)]
    acceleration = pin.aba(model, data, q, v, pin.rnea(model, data, q, v, a))
    assert np.abs(acceleration - a).max() < 1e-9, "the dynamics themselves are right"
    bias = np.array(pin.nonLinearEffects(model, data, q, v))
    gravity = np.array(pin.computeGeneralizedGravity(model, data, q))
    errors.append(np.abs(pin.computeCoriolisMatrix(model, data, q, v) @ v + gravity - bias).max() / np.abs(bias).max())
    print(f"{name:18} dq {errors[0]:.1g}  dv {errors[1]:.1g}  bias {errors[2]:.1g}")
    assert pin.__version__ == "4.1.0"
    assert (max(errors[:2]) < 1e-6) if right else (min(errors[:2]) > 1e-2), f"{name} changed"
PYTHON
