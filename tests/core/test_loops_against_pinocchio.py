"""Comparison of closed chains with Pinocchio: welds, ball joints, and hinges as two points on a line; requires the extra [bench]."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_against_oracle import assert_agrees
from tests.effort import examples
from tests.random_closed import closed_mechanisms

pytest.importorskip("pinocchio")
import pinocchio as pin

from tests.oracles.pinocchio_model import SWAP, Pinocchio, placement

# theirs depends on a parameter, which is small enough here for what has independent rows ...
RELATIVE = 1e-9
# ... and where rows depend on each other leaves this
REDUNDANT = 1e-5

law = examples(30)


class ClosedPinocchio(Pinocchio):
    """The tree in Pinocchio, with its loop joints as rigid constraints."""

    def __init__(self, description, closing):
        joints = tuple(spec for spec in description.joints if spec.name not in closing)
        super().__init__(dataclasses.replace(description, joints=joints, constraints=()))
        self.constraints, self.wrench_of = pin.StdVec_RigidConstraintModel(), {}
        for spec in description.joints:
            if spec.name not in closing:
                continue
            (child, at_child), (parent, at_parent) = self.body[spec.child], self.body[spec.parent]
            at_child, at_parent = at_child * placement(spec.at_child), at_parent * placement(spec.at_parent)
            kind = pin.ContactType.CONTACT_6D if spec.joint.kind == "Fixed" else pin.ContactType.CONTACT_3D
            self.wrench_of[spec.name] = len(self.constraints)
            points = [0.0, 0.5] if spec.joint.kind == "Revolute" else [0.0]
            for along in points:
                shift = pin.SE3(np.eye(3), along * np.array(getattr(spec.joint, "axis", np.zeros(3))))
                ends = child, at_child * shift, parent, at_parent * shift
                self.constraints.append(pin.RigidConstraintModel(kind, self.model, *ends, pin.ReferenceFrame.LOCAL))
        self.states = pin.StdVec_RigidConstraintData()
        self.states.extend([constraint.createData() for constraint in self.constraints])

    def constrained(self, q, v, tau, mu):
        """Return a, and [moment; force] on each child in its joint frame."""
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.states)
        tau = self.V @ (tau - self._passive(v))
        settings = pin.ProximalSettings(1e-14, mu, 100)
        a = pin.constraintDynamics(
            self.model, self.data, self.configuration(q), self.V @ v, tau, self.constraints, self.states, settings
        )
        wrenches = {name: SWAP @ self.states[k].contact_force.vector for name, k in self.wrench_of.items()}
        return self.V.T @ a, wrenches


@law
@given(closed=closed_mechanisms(kinds=("fixed", "spherical"), copies=0, friction=st.booleans(), armature=st.booleans()))
def test_forward_dynamics(closed):
    """Accelerations, and the wrenches of the loop joints."""
    q, v, tau, _ = closed.state
    theirs = ClosedPinocchio(closed.description, closed.closing)
    if not theirs.constraints:
        return
    a, reactions = closed.robot.forward_dynamics(q, v, tau, return_reactions=True)
    expected, wrenches = theirs.constrained(q, v, tau, 1e-12)
    assert_agrees(a, expected, RELATIVE)
    for name, wrench in wrenches.items():
        assert_agrees(reactions.wrenches[name], wrench, RELATIVE * (1 + np.abs(reactions.multipliers).max()))


@law
@given(closed=closed_mechanisms(kinds=("revolute", "spherical", "fixed"), copies=st.integers(0, 2)))
def test_forward_dynamics_of_redundant_loops(closed):
    """A hinge as two points has one redundant row; copies of constraints add more."""
    q, v, tau, _ = closed.state
    theirs = ClosedPinocchio(closed.description, closed.closing)
    if not theirs.constraints:
        return
    expected, _ = theirs.constrained(q, v, tau, 1e-8)
    assert_agrees(closed.robot.forward_dynamics(q, v, tau), expected, REDUNDANT)
