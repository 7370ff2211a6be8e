#!/bin/sh
# Pinocchio 4.1.0: the mass matrix of a model with a mimic joint depends on how often it was asked for. If a joint follows the mimic joint in the chain, crba
# adds its coupling to the leading joint's to what it wrote the last time, instead of starting anew. The first call is right, the third one is no longer a mass
# matrix: one of its eigenvalues is negative. It is so with the default convention (LOCAL), and not with Convention.WORLD, nor with a new Data for each call.
#
# Behaviour: the same model, q and data at each call. rnea, which gives the columns of the true matrix, is the same all the time.
# Output seen (M[0, 1] and the smaller eigenvalue of M, at calls 1 to 4):
#   by rnea 0.1300, 0.1914
#   LOCAL   0.1300  0.6342  1.1384  1.6426    0.1914 -0.2795 -0.7792 -1.2816
#   WORLD   0.1300  0.1300  0.1300  0.1300    0.1914 0.1914 0.1914 0.1914
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet pin==4.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import pinocchio as pin

LINK = '<link name="{}"><inertial><origin xyz="0.1 0 0.3"/><mass value="1.{}"/><inertia ixx="0.1" iyy="0.12" izz="0.09" ixy="0" ixz="0" iyz="0"/></inertial></link>'
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0.1 0 0.3"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/>{3}</joint>"""
links = "".join(LINK.format(name, k) for k, name in enumerate(("upper", "lower", "tip"), 1))
joints = (
    JOINT.format("drive", "base", "upper", "") + JOINT.format("follower", "upper", "lower", '<mimic joint="drive" multiplier="-1"/>') + JOINT.format("wrist", "lower", "tip", "")
)
model = pin.buildModelFromXML(f'<robot name="finger"><link name="base"/>{links}{joints}</robot>', mimic=True)
assert (model.nq, model.njoints, pin.__version__) == (2, 4, "4.1.0")
q, zero = np.array([0.3, 0.3]), np.zeros(2)


def by_rnea():
    data = model.createData()
    gravity = pin.rnea(model, data, q, zero, zero).copy()
    return np.array([pin.rnea(model, data, q, zero, a) - gravity for a in np.eye(2)])


wanted = by_rnea()
print(f"by rnea {wanted[0, 1]:.4f}, {np.linalg.eigvalsh(wanted)[0]:.4f}")
seen = {}
for convention in (pin.Convention.LOCAL, pin.Convention.WORLD):
    data = model.createData()
    seen[convention] = calls = [np.array(pin.crba(model, data, q, convention)) for _ in range(4)]
    print(f"{convention}  ", "  ".join(f"{M[0, 1]:.4f}" for M in calls), "  ", " ".join(f"{np.linalg.eigvalsh(M)[0]:.4f}" for M in calls))
assert np.allclose(pin.crba(model, model.createData(), q), wanted), "the first call is right"
assert all(np.allclose(M, wanted) for M in seen[pin.Convention.WORLD])
step = [after[0, 1] - before[0, 1] for before, after in zip(seen[pin.Convention.LOCAL], seen[pin.Convention.LOCAL][1:])]
assert min(step) > 0.4 and np.ptp(step) < 1e-9, "the mass matrix no longer grows"
assert np.linalg.eigvalsh(seen[pin.Convention.LOCAL][2])[0] < 0
PYTHON
