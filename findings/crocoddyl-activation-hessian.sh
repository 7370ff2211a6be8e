#!/bin/sh
# Crocoddyl 3.2.1: three activations of its costs have a second derivative that is not that of their own first one. ActivationModelSmooth1Norm, and
# ActivationModelSmooth2Norm of one residual, have sqrt(r^2 + eps), whose second derivative is eps / (r^2 + eps)^(3/2); theirs lacks the factor eps, so it is
# right for the default of 1 alone, and 100 times too large for 0.01. ActivationModelWeightedQuadraticBarrier takes its weights squared in value and
# gradient, and once in the Hessian: 10 times too small for a weight of 10. Gradients agree with values, so all looks well but for the solver, which takes
# steps of a wrong length, and needs many times the iterations or ends without an answer.
#
# Behaviour: one residual of 0.5 (norms) or 3 (barrier at 1), central differences of the activation's own Ar. Then a cart (1 kg, from 3 m at rest, 40 steps of
# 0.05 s) with each of them on its state, solved by FDDP with at most 500 iterations, beside the same activation in Python with the second derivative of theirs.
# Output seen (second derivative, central difference; iterations, with "-" where it does not converge):
#   Smooth1Norm, eps 1.0                   0.7155    0.7155
#   Smooth2Norm, eps 1.0                   0.7155    0.7155
#   Smooth1Norm, eps 0.1                   4.8295    0.4829
#   Smooth2Norm, eps 0.1                   4.8295    0.4829
#   Smooth1Norm, eps 0.01                  7.5429    0.0754
#   Smooth2Norm, eps 0.01                  7.5429    0.0754
#   WeightedQuadraticBarrier, weight 1.0   1.0000    1.0000
#   WeightedQuadraticBarrier, weight 0.1   0.1000    0.0100
#   WeightedQuadraticBarrier, weight 10.0  10.0000   100.0000
#   WeightedQuad, weight 10                10.0000   10.0000
#   Smooth1Norm, eps 1                     4    with the true Hessian 4
#   Smooth1Norm, eps 0.1                   76   with the true Hessian 5
#   Smooth1Norm, eps 0.01                  -    with the true Hessian 10
#   WeightedQuadraticBarrier, weight 1     12   with the true Hessian 12
#   WeightedQuadraticBarrier, weight 0.1   59   with the true Hessian 8
#   WeightedQuadraticBarrier, weight 30    -    with the true Hessian 29
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


def barrier(weights):
    ones = np.ones(len(weights))
    return crocoddyl.ActivationModelWeightedQuadraticBarrier(crocoddyl.ActivationBounds(-ones, ones), weights)


def derivatives(activation, r):
    data = activation.createData()
    activation.calc(data, np.array([r]))
    activation.calcDiff(data, np.array([r]))
    return data.a_value, data.Ar[0], np.ravel(data.Arr)[0]


def compare(title, activation, r, h=1e-6):
    """Print the second derivative and its difference quotient, and return their ratio."""
    (_, gradient, second), after, before = (derivatives(activation, x) for x in (r, r + h, r - h))
    assert abs(gradient - (after[0] - before[0]) / (2 * h)) < 1e-7 * (1 + abs(gradient)), "the gradient is right"
    true = (after[1] - before[1]) / (2 * h)
    print(f"{title:38} {second:<9.4f} {true:.4f}")
    return second / true


for eps in 1.0, 0.1, 0.01:
    assert abs(compare(f"Smooth1Norm, eps {eps}", crocoddyl.ActivationModelSmooth1Norm(1, eps), 0.5) * eps - 1) < 1e-6, "the Hessian changed"
    assert abs(compare(f"Smooth2Norm, eps {eps}", crocoddyl.ActivationModelSmooth2Norm(1, eps), 0.5) * eps - 1) < 1e-6, "the Hessian changed"
for weight in 1.0, 0.1, 10.0:
    assert abs(compare(f"WeightedQuadraticBarrier, weight {weight}", barrier(np.array([weight])), 3.0) * weight - 1) < 1e-6, "the Hessian changed"
assert abs(compare("WeightedQuad, weight 10", crocoddyl.ActivationModelWeightedQuad(np.array([10.0])), 3.0) - 1) < 1e-6, "the activation without bounds is right"


class TrueNorm(crocoddyl.ActivationModelAbstract):
    """The sum of sqrt(r^2 + eps)."""

    def __init__(self, size, eps):
        crocoddyl.ActivationModelAbstract.__init__(self, size)
        self.eps = eps

    def calc(self, data, r):
        data.a_value = np.sqrt(r * r + self.eps).sum()

    def calcDiff(self, data, r):
        root = np.sqrt(r * r + self.eps)
        data.Ar, data.Arr = r / root, np.diag(self.eps / root**3)


class TrueBarrier(crocoddyl.ActivationModelAbstract):
    """Half the square of what exceeds -1 to 1, times the weights."""

    def __init__(self, weights):
        crocoddyl.ActivationModelAbstract.__init__(self, len(weights))
        self.squares = weights**2

    def calc(self, data, r):
        out = r - np.clip(r, -1, 1)
        data.a_value = 0.5 * self.squares @ out**2

    def calcDiff(self, data, r):
        out = r - np.clip(r, -1, 1)
        data.Ar, data.Arr = self.squares * out, np.diag(self.squares * (out != 0))


cart = pin.Model()
cart.appendBodyToJoint(cart.addJoint(0, pin.JointModelPX(), pin.SE3.Identity(), "rail"), pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
state = crocoddyl.StateMultibody(cart)


def solve(activation):
    """Return whether FDDP converges, its iterations and the cost."""
    costs = crocoddyl.CostModelSum(state, 1)
    costs.addCost("state", crocoddyl.CostModelResidual(state, activation, crocoddyl.ResidualModelState(state, np.zeros(2), 1)), 1.0)
    costs.addCost("force", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, 1)), 0.01)
    node = crocoddyl.IntegratedActionModelEuler(crocoddyl.DifferentialActionModelFreeFwdDynamics(state, crocoddyl.ActuationModelFull(state), costs), 0.05)
    solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(np.array([3.0, 0.0]), [node] * 40, node))
    done = solver.solve([], [], 500)
    return done, solver.iter, solver.cost


for title, theirs, true, least in (
    ("Smooth1Norm, eps 1", crocoddyl.ActivationModelSmooth1Norm(2, 1.0), TrueNorm(2, 1.0), 1),
    ("Smooth1Norm, eps 0.1", crocoddyl.ActivationModelSmooth1Norm(2, 0.1), TrueNorm(2, 0.1), 5),
    ("Smooth1Norm, eps 0.01", crocoddyl.ActivationModelSmooth1Norm(2, 0.01), TrueNorm(2, 0.01), 20),
    ("WeightedQuadraticBarrier, weight 1", barrier(np.ones(2)), TrueBarrier(np.ones(2)), 1),
    ("WeightedQuadraticBarrier, weight 0.1", barrier(0.1 * np.ones(2)), TrueBarrier(0.1 * np.ones(2)), 4),
    ("WeightedQuadraticBarrier, weight 30", barrier(30 * np.ones(2)), TrueBarrier(30 * np.ones(2)), 10),
):
    found, wanted = solve(theirs), solve(true)
    print(f"{title:38} {found[1] if found[0] else '-':<4} with the true Hessian {wanted[1]}")
    assert wanted[0] and wanted[1] < 50 and found[2] > wanted[2] - 1e-6, "the true Hessian converges"
    assert found[1] >= least * wanted[1], "the solver's iterations changed"
PYTHON
