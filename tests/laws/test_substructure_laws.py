"""Substructures change only the cost of results.

All functions that solve for the loops, with substructures of one body and of several, are compared with joint coordinates.
"""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sarrus
from tests.effort import examples
from tests.laws.test_laws import assert_equal
from tests.random_closed import closed_mechanisms, random_closed
from tests.random_mechanisms import seeds

# rows may be ill-conditioned by a factor of 1e3, and pieces that float add what a chain of them is by
SAME = 1e-9
# of least norm: singular values of what motors can do down to 1e-7 of the largest count
EFFORTS = 1e-6
# joints whose rows are plain components can be cut, and a free one is a piece as it is
CHAINS = ("revolute", "prismatic", "cylindrical", "spherical", "planar", "free")

law = examples(15)


def in_two_ways(description, bodies):
    return sarrus.Mechanism(description, substructures=0), sarrus.Mechanism(description, substructures=bodies)


def test_the_mechanisms_of_these_laws_are_cut():
    cut = 0
    for seed in range(20):
        closed = random_closed(seed, joints=CHAINS)
        cut += "cut at" in sarrus.Mechanism(closed.description, substructures=1)._how_solved()
    assert cut >= 15


@law
@given(closed_mechanisms(joints=st.just(CHAINS)), st.integers(1, 3), seeds())
def test_motions_and_what_rows_carry(closed, bodies, seed):
    rng, time = np.random.default_rng(seed), closed.time
    whole, cut = in_two_ways(closed.description, bodies)
    q, v, tau = closed.q, closed.v, closed.tau
    answers = [robot.forward_dynamics(q, v, tau, time=time, return_reactions=True) for robot in (whole, cut)]
    (a, loops), (a_, loops_) = answers
    assert_equal(a_, a, SAME)
    assert_equal(loops_.multipliers, loops.multipliers, SAME, np.abs(tau).max() + np.abs(a).max())
    batch = cut.forward_dynamics(np.tile(q, (5, 1)), np.tile(v, (5, 1)), np.tile(tau, (5, 1)), time=time)
    assert_equal(batch, np.tile(a, (5, 1)), SAME)

    other = rng.normal(size=whole.nv)
    for metric in ("mass", "euclidean"):
        want = whole.project_velocity(q, other, metric=metric, time=time)
        assert_equal(cut.project_velocity(q, other, metric=metric, time=time), want, SAME)
        near = whole.integrate(q, 1e-4 * other)
        want = whole.project_configuration(near, metric=metric, time=time)
        assert_equal(cut.project_configuration(near, metric=metric, time=time), want, 1e-8)
    if not any(c.kind == "Pfaffian" for c in map(whole.constraint, whole.constraints)):
        want, got = whole.impact(q, other, time=time), cut.impact(q, other, time=time)
        assert_equal(got[0], want[0], SAME)
        assert_equal(got[1], want[1], SAME, np.abs(other).max())


@law
@given(closed_mechanisms(joints=st.just(CHAINS)), st.integers(1, 3), seeds())
def test_efforts_of_motors(closed, bodies, seed):
    rng = np.random.default_rng(seed)
    joints = [
        dataclasses.replace(j, actuated=j.joint.kind == "Revolute" and not j.laws) for j in closed.description.joints
    ]
    description = dataclasses.replace(closed.description, joints=tuple(joints))
    whole, cut = in_two_ways(description, bodies)
    if not whole.nu:
        return
    q, v, time = closed.q, closed.v, closed.time
    pushed = np.zeros(whole.nv)  # by motors of the tree, so that others have a share in what is asked of them
    for name in [name for name in whole.actuated if name in whole.joints]:
        pushed[whole.joint(name).v_slice] = rng.normal()
    a = whole.forward_dynamics(q, v, pushed, time=time)
    u = whole.actuator_efforts(q, v, a, time=time)
    assert_equal(cut.actuator_efforts(q, v, a, time=time), u, EFFORTS)
    many = cut.actuator_efforts(*(np.tile(x, (5, 1)) for x in (q, v, a)), time=time)
    assert_equal(many, np.tile(u, (5, 1)), EFFORTS)


@law
@given(
    closed_mechanisms(joints=st.just(CHAINS), kinds=st.just(("revolute", "spherical", "distance"))),
    st.integers(1, 3),
    seeds(),
)
def test_closing(closed, bodies, seed):
    rng = np.random.default_rng(seed)
    whole, cut = in_two_ways(closed.description, bodies)
    q = closed.q
    near = whole.integrate(q, 1e-3 * rng.normal(size=whole.nv))
    want = whole.assemble(near=near)
    assert_equal(np.abs(cut.constraint_residual(cut.assemble(near=near))), np.zeros(whole.nc), 1e-9)
    assert_equal(whole.difference(want, cut.assemble(near=near)), np.zeros(whole.nv), 1e-6)
    assert_equal(cut.mobility_map(q[None]).rank, whole.mobility_map(q[None]).rank, 0)


@pytest.mark.parametrize("bodies", [1, 2])
def test_simulation(bodies):
    description = sarrus.mechanisms.four_bar_ladder(6).description
    runs = []
    for robot in in_two_ways(description, bodies):
        start = robot.assemble(near=robot.neutral())
        runs.append(sarrus.simulate(robot, start, np.zeros(robot.nv), 0.2))
    assert_equal(runs[1].q[-1], runs[0].q[-1], 1e-9)


def test_armature_of_a_joint_that_is_cut():
    """A ring whose joints all have armature: ball joints, joints with armature about some axes only, and pins."""
    rng = np.random.default_rng(3)
    d = sarrus.mechanisms.ring(8).description
    joints = [
        dataclasses.replace(
            j, joint=dataclasses.replace(j.joint, armature=tuple(rng.uniform(0, 1, size=j.joint.nv) * (k % 3 > 0)))
        )
        for k, j in enumerate(d.joints)
    ]
    whole, cut = in_two_ways(dataclasses.replace(d, joints=tuple(joints)), 1)
    q = whole.assemble(near=whole.neutral())
    tau = rng.normal(size=whole.nv)
    v = whole.project_velocity(q, tau)
    assert_equal(cut.project_velocity(q, tau), v, SAME)
    assert_equal(cut.forward_dynamics(q, v, tau), whole.forward_dynamics(q, v, tau), SAME)


@pytest.mark.parametrize(("make", "size"), [(sarrus.mechanisms.ring, (300,)), (sarrus.mechanisms.net, (12, 12))])
def test_many_bodies_cut_in_several_ways(make, size):
    """Too many bodies to compare with joint coordinates: substructures of one, of four, and of the cheapest number."""
    robot = make(*size)
    rng = np.random.default_rng(0)
    q, tau = robot.neutral(), rng.normal(size=robot.nv)
    v = robot.project_velocity(q, rng.normal(size=robot.nv))
    a, loops = robot.forward_dynamics(q, v, tau, return_reactions=True)
    J, gamma = robot.constraint_jacobian(q), robot.constraint_bias(q, v)
    assert_equal(J @ a, gamma, SAME, np.abs(a).max())
    work = robot.mass_matrix(q) @ a + robot.bias_forces(q, v) - tau - J.T @ loops.multipliers
    assert_equal(work, np.zeros(robot.nv), SAME, np.abs(robot.mass_matrix(q) * a).sum(axis=1).max())
    for bodies in (1, 4):
        other = sarrus.Mechanism(robot.description, substructures=bodies)
        assert other._how_solved() != robot._how_solved()
        assert_equal(other.forward_dynamics(q, v, tau), a, SAME)


@pytest.mark.parametrize("seed", range(3))
def test_dependent_rows_carry_the_least_in_every_configuration(seed):
    """Goldberg's linkage in eight thousand configurations; in some, rounding makes its rows carry a thousand times the necessary load.

    In one configuration the accelerations have such an error, and their residual cannot be distinguished from that of the least multipliers.
    """
    whole, cut = in_two_ways(sarrus.mechanisms.goldberg_6r().description, 2)
    rng = np.random.default_rng(seed)
    home = whole.assemble()
    along = whole.project_velocity(home, rng.normal(size=whole.nv)) * rng.uniform(-0.3, 0.3, size=(8000, 1))
    q, found = whole.project_configuration(whole.integrate(np.tile(home, (len(along), 1)), along), return_status=True)
    v, tau = whole.project_velocity(q, rng.normal(size=along.shape)), rng.normal(size=along.shape)
    sizes, sound = [], found == 0
    for robot in (whole, cut):
        _, loops, status = robot.forward_dynamics(q, v, tau, return_reactions=True, return_status=True)
        sizes.append(np.linalg.norm(loops.multipliers, axis=-1))
        sound &= status == 0
    assert sound.mean() > 0.99
    assert np.sum(np.abs((sizes[1] / sizes[0])[sound] - 1.0) > 1e-6) <= 1


def test_a_choice_by_hand_is_kept():
    robot = sarrus.Mechanism(sarrus.mechanisms.ring(12).description, substructures=1)
    assert robot._how_solved().startswith("12 substructures")
    assert pickle.loads(pickle.dumps(robot))._how_solved() == robot._how_solved()


def test_what_is_chosen():
    """A long ring is cut, a ladder is not; an unreasonable choice raises an error."""
    assert "substructures, cut at" in sarrus.mechanisms.ring(60)._how_solved()
    ladder = sarrus.mechanisms.four_bar_ladder(20)
    assert ladder._how_solved().startswith("joint coordinates") and str(ladder).endswith(ladder._how_solved())
    assert "solver" not in str(sarrus.mechanisms.pendulum())
    with pytest.raises(ValueError, match="substructures must be at least 0; got -2"):
        sarrus.Mechanism(sarrus.mechanisms.four_bar().description, substructures=-2)
