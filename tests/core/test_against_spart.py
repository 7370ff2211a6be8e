"""Comparison of floating trees with SPARTpy, a toolkit for free-flying robots: positions, velocities, dynamics, generalized Jacobian.

SPARTpy's base has the angular velocity in the body's axes and the linear velocity in the world's; there is no gravity. It compiles C code when it is
first used.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

spart = pytest.importorskip("SPARTpy")
ROUNDING = 1e-11  # relative; its C has the same double numbers


@pytest.fixture(scope="module")
def theirs():
    path = Path(spart.__file__).parent / "urdf" / "floating_7dof_manipulator.urdf"
    try:
        return path, spart.SPART(str(path))
    except (OSError, RuntimeError) as error:
        pytest.skip(f"SPARTpy does not run here: {error}")


@pytest.fixture(scope="module")
def ours(theirs):
    """Return the mechanism without the link on a fixed joint, because SPARTpy's dynamics omit the mass of such a link."""
    b = sarrus.load_builder(theirs[0], floating_base=True)
    b.remove_body("Link_EE")
    return sarrus.Mechanism(dataclasses.replace(b.build().description, gravity=(0.0, 0.0, 0.0)))


class State:
    """Random state, in both conventions."""

    def __init__(self, robot, seed):
        rng = np.random.default_rng(seed)
        self.q, self.v, self.a = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        self.q[4:7] = rng.normal(size=3)
        self.R, self.r = robot.pose(self.q, robot.bodies[0])[:3, :3], self.q[4:7]
        self.to_ours = np.eye(robot.nv)  # v = to_ours u
        self.to_ours[3:6, 3:6] = self.R.T
        self.u = self.to_ours.T @ self.v

    def at(self, engine):
        """Return the arguments that all functions of SPART require."""
        _, RL, _, rL, e, g = engine.kinematics(self.R, self.r, self.q[7:])
        Bij, Bi0, P0, pm = engine.diff_kinematics(self.R, self.r, rL, e, g)
        return rL, Bij, Bi0, P0, pm, *engine.i_i(self.R, RL)

    def efforts(self, engine, u, rate):
        """Return the generalised forces (nv,) of a motion."""
        _, Bij, Bi0, P0, pm, I0, Im = self.at(engine)
        t0, tL = engine.velocities(Bij, Bi0, P0, pm, u[:6], u[6:])
        t0dot, tLdot = engine.accelerations(t0, tL, P0, pm, Bi0, Bij, u[:6], u[6:], rate[:6], rate[6:])
        still = np.zeros(6), np.zeros((6, engine.robot.n_links_joints))
        tau = engine.inverse_dynamics(*still, t0, tL, t0dot, tLdot, P0, pm, I0, Im, Bij, Bi0)
        return np.concatenate([np.ravel(x) for x in tau])


@pytest.mark.parametrize("seed", range(5))
def test_dynamics(theirs, ours, seed):
    state, engine = State(ours, seed), theirs[1]
    still = np.zeros(ours.nv)
    M = np.array([state.efforts(engine, still, x) for x in np.eye(ours.nv)])
    mine = state.to_ours.T @ ours.mass_matrix(state.q) @ state.to_ours
    assert_allclose(M, mine, rtol=0, atol=ROUNDING * np.abs(mine).max())
    # the base's linear velocity turns in its own axes
    a = state.to_ours @ state.a
    a[3:6] -= np.cross(state.v[:3], state.v[3:6])
    tau = state.to_ours.T @ ours.inverse_dynamics(state.q, state.v, a)
    assert_allclose(state.efforts(engine, state.u, state.a), tau, rtol=0, atol=ROUNDING * np.abs(tau).max())


@pytest.mark.parametrize("seed", range(5))
def test_motion_without_momentum(theirs, ours, seed):
    """Compute the base's velocity from the joints' by both mass matrices, then the velocities of all links: the generalized Jacobian."""
    state, engine = State(ours, seed), theirs[1]
    H = np.array([state.efforts(engine, np.zeros(ours.nv), x) for x in np.eye(ours.nv)])
    joints = state.v[6:]
    base = -np.linalg.solve(H[:6, :6], H[:6, 6:] @ joints)
    rL, Bij, Bi0, P0, pm, _, _ = state.at(engine)
    _, tL = engine.velocities(Bij, Bi0, P0, pm, base, joints)
    floating = sarrus.floating.momentum_velocity(ours, state.q, np.r_[np.zeros(6), joints])
    assert_allclose(np.linalg.solve(state.to_ours, floating)[:6], base, rtol=0, atol=ROUNDING * np.abs(base).max())
    for k, spec in enumerate(ours.description.bodies[1:]):
        pose = ours.pose(state.q, spec.name)
        out = pose[:3, :3] @ spec.inertia.com
        assert_allclose(pose[:3, 3] + out, rL[:, k], rtol=0, atol=1e-9)
        twist = sarrus.floating.generalized_jacobian(ours, state.q, spec.name, expressed_in="world_aligned") @ joints
        twist[3:] += np.cross(twist[:3], out)
        assert_allclose(twist, tL[:, k], rtol=0, atol=ROUNDING * 10 * np.abs(tL).max())
