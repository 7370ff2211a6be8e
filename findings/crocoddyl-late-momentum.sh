#!/bin/sh
# Crocoddyl 3.2.1: a cost on the centroidal momentum is that of the state of the last calcDiff, not of the state that it is asked for. calc of the free forward
# dynamics and of both inverse dynamics leaves the momentum out. ResidualModelCentroidalMomentum reads it all the same: it finds zero before the first calcDiff,
# which computes it on its way to the derivatives, and the state of that calcDiff after it. So the cost of the same state has two values, and a line search,
# which calls calc alone, gets the same cost for every step that it tries, whatever its momentum. No message names it. It is right for terminal nodes, for the
# forward dynamics with contacts, and for free ones with an armature, even one of zeros: these compute more terms.
#
# Behaviour: a floating body with an arm, the reference 0, three states. The residual is documented as r = h - href. True is Pinocchio 4.0.0's.
# Output seen (norm of the residual at calc, after calcDiff of the states before; true value):
#   true                   10.092 10.978 14.343
#   free, forward          0.000 10.092 10.978
#   the same, armature 0   10.092 10.978 14.343
#   free, inverse          0.000 10.092 10.978
#   contact, forward       10.092 10.978 14.343
#   contact, inverse       0.000 10.092 10.978
#   cost of state 1: 0.000 before its calcDiff
#   costs of states 1, 2, 3 after it: 50.927 50.927 50.927 true: 50.927 60.256 102.864
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet --only-binary :all: crocoddyl==3.2.1 pin==4.0.0 libpinocchio==4.0.0 example-robot-data==5.0.0 \
  example-robot-data-loaders==5.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import crocoddyl
import numpy as np
import pinocchio as pin

LINK = '<link name="{}"><inertial><origin xyz="0 0.03 0.2"/><mass value="{}"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
JOINT = """<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><origin xyz="0.1 0 0.3"/><axis xyz="{}"/>
<limit lower="-3" upper="3" effort="9" velocity="9"/></joint>"""
model = pin.buildModelFromXML(
    f'<robot name="arm">{LINK.format("body", 5)}{LINK.format("upper", 2)}{LINK.format("lower", 1)}'
    f'{JOINT.format("shoulder", "body", "upper", "0 1 0")}{JOINT.format("elbow", "upper", "lower", "1 0 0")}</robot>',
    pin.JointModelFreeFlyer(),
)
state = crocoddyl.StateMultibody(model)
actuation = crocoddyl.ActuationModelFloatingBase(state)
directions = np.array([np.sin(np.arange(1, 17) * k) for k in (1.0, 2.0, 3.0)])
states = [state.integrate(state.zero(), np.concatenate([0.3 * d[:8], d[8:]])) for d in directions]


def true_momentum(x):
    return pin.computeCentroidalMomentum(model, model.createData(), x[: model.nq], x[model.nq :]).vector.copy()


def action(name):
    nu = {"free, inverse": model.nv, "contact, inverse": model.nv + 3}.get(name, actuation.nu)
    costs = crocoddyl.CostModelSum(state, nu)
    costs.addCost("momentum", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelCentroidalMomentum(state, np.zeros(6), nu)), 1.0)
    contacts = crocoddyl.ContactModelMultiple(state, nu)
    contacts.addContact("hand", crocoddyl.ContactModel3D(state, model.getFrameId("lower"), np.zeros(3), pin.LOCAL, nu, np.zeros(2)))
    if name == "free, inverse":
        return crocoddyl.DifferentialActionModelFreeInvDynamics(state, actuation, costs)
    if name == "contact, inverse":
        return crocoddyl.DifferentialActionModelContactInvDynamics(state, actuation, contacts, costs)
    if name == "contact, forward":
        return crocoddyl.DifferentialActionModelContactFwdDynamics(state, actuation, contacts, costs)
    found = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
    if name == "the same, armature 0":
        found.armature = np.zeros(model.nv)
    return found


true = [np.linalg.norm(true_momentum(x)) for x in states]
print(f"{'true':22}", *(f"{h:.3f}" for h in true))
for name in "free, forward", "the same, armature 0", "free, inverse", "contact, forward", "contact, inverse":
    model_ = action(name)
    data, u, found = model_.createData(), np.zeros(model_.nu), []
    for x in states:
        model_.calc(data, x, u)
        found.append(np.linalg.norm(data.costs.costs["momentum"].residual.r))
        assert abs(data.cost - found[-1] ** 2 / 2) < 1e-9
        model_.calcDiff(data, x, u)
    print(f"{name:22}", *(f"{h:.3f}" for h in found))
    wanted = true if name in ("the same, armature 0", "contact, forward") else [0.0, *true[:-1]]
    assert np.allclose(found, wanted, atol=1e-9), "what the cost is of changed"

node, u = action("free, forward"), np.zeros(actuation.nu)
data = node.createData()
node.calc(data, states[0], u)
before = data.cost
node.calcDiff(data, states[0], u)
tries = []
for x in states:
    node.calc(data, x, u)
    tries.append(data.cost)
wanted = [h**2 / 2 for h in true]
print(f"cost of state 1: {before:.3f} before its calcDiff")
print("costs of states 1, 2, 3 after it:", *(f"{cost:.3f}" for cost in tries), "true:", *(f"{cost:.3f}" for cost in wanted))
assert before == 0.0 and np.allclose(tries, wanted[0], atol=1e-9), "the costs of the tries changed"
for name in "free, forward", "free, inverse", "contact, inverse":
    last = action(name)
    data = last.createData()
    last.calc(data, states[1])
    assert abs(data.cost - wanted[1]) < 1e-9, "the cost of a terminal node is right"
PYTHON
