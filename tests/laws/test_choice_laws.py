"""Invariance of results under choices of the library and of the call.

Choices are the spanning tree, order of bodies and joints, number of threads, single states or batches. Joints have no terms here (damping, friction,
armature, stiffness): test_closing_joint_laws.py covers them.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sarrus
from sarrus.description import CouplerSpec, PfaffianSpec
from tests.effort import examples
from tests.laws.test_laws import assert_equal
from tests.random_closed import CLOSING, closed_mechanisms, random_closed
from tests.random_mechanisms import seeds

# between two trees: coordinates of closing joints come from poses, and rows may be ill-conditioned by a factor of 1e3
RECUT = 1e-9
# of least norm: singular values of what motors can do down to 1e-7 of the largest count
EFFORTS = 1e-6
# of a state that is found again from another tree's coordinates
PLACED = 1e-10

law = examples(15)
# what cannot close a loop stays in the tree: the free joint, and gimbals that turn about all three axes
UNCUT = ("Free",)


def recut(closed, rng):
    """Return the same mechanism and state with all parts added in another order, and with other loop joints."""
    d = closed.description
    needed = {name for spec in d.constraints if isinstance(spec, CouplerSpec) for name in spec.position_joints}
    needed |= {name for spec in d.constraints if isinstance(spec, PfaffianSpec) for name in spec.joints}

    def stays(spec):
        kind = spec.joint
        return spec.name in needed or kind.kind in UNCUT or {"rx", "ry", "rz"} <= set(getattr(kind, "free", ()))

    order = [d.joints[k] for k in rng.permutation(len(d.joints))]
    group = {body.name: body.name for body in d.bodies} | {"ground": "ground"}

    def root(body):
        while group[body] != body:
            body = group[body]
        return body

    closing = set()
    for spec in sorted(order, key=lambda spec: (bool(spec.laws), spec.name not in needed, not stays(spec))):
        ends = root(spec.parent), root(spec.child)
        if ends[0] == ends[1] or spec.laws:
            closing.add(spec.name)
        else:
            group[ends[0]] = ends[1]
    joints = [dataclasses.replace(s, tree=s.name not in closing, loop=s.name in closing) for s in order]
    d = dataclasses.replace(
        d,
        joints=tuple(joints),
        bodies=tuple(d.bodies[k] for k in rng.permutation(len(d.bodies))),
        frames=tuple(d.frames[k] for k in rng.permutation(len(d.frames))),
        constraints=tuple(d.constraints[k] for k in rng.permutation(len(d.constraints))),
    )
    return closed.in_other_tree(d, tuple(spec.name for spec in joints if spec.name in closing))


def carried(robot, q, v, a, multipliers, time):
    """Return joint name -> wrench on its child about the world's origin, in world axes, for either direction in the tree."""
    loops = robot._loop_wrenches(q, multipliers, time=time) if robot.nc else np.zeros((len(robot.constraints), 6))
    known = dict(zip(robot.constraints, loops, strict=True))
    known |= sarrus.formulations.reactions(robot, q, v, a, multipliers=multipliers, time=time)
    wrenches = {}
    for spec in robot.description.joints:
        back = robot.joint(spec.name).reversed and spec.name in robot.joints
        body, at = (spec.parent, spec.at_parent) if back else (spec.child, spec.at_child)
        pose = (np.eye(4) if body == "ground" else robot.pose(q, body)) @ at.matrix
        moment, force = pose[:3, :3] @ known[spec.name][:3], pose[:3, :3] @ known[spec.name][3:]
        wrenches[spec.name] = (-1 if back else 1) * np.concatenate([moment + np.cross(pose[:3, 3], force), force])
    return wrenches


@law
@given(closed_mechanisms(hints=False, copies=st.just(0)), seeds())
def test_whichever_joints_close_the_loops(closed, seed):
    """Poses, velocities, accelerations, mobility, and wrenches of all joints, for several spanning trees."""
    first = closed.in_other_tree(closed.description, closed.robot.loop_joints)
    second, time = recut(closed, np.random.default_rng(seed)), closed.time
    assert set(second.robot.loop_joints) == set(second.closing)
    answers = []
    for one in (first, second):
        robot, q, v = one.robot, one.q, one.v
        assert_equal(robot.constraint_residual(q, time=time), np.zeros(robot.nc), PLACED)
        a, loops = robot.forward_dynamics(q, v, np.zeros(robot.nv), time=time, return_reactions=True)
        found = robot.mobility(q, time=time)
        multipliers = loops.multipliers if robot.nc else np.zeros(0)  # a free joint closes a loop by no row
        answers.append((robot, q, v, a, multipliers, found))
    (one, q, v, a, mu, found), (other, q_, v_, a_, mu_, found_) = answers
    scale = np.abs(a).max(initial=1.0)
    for body in one.bodies:
        assert_equal(other.pose(q_, body), one.pose(q, body), PLACED)
        assert_equal(other.velocity(q_, v_, body), one.velocity(q, v, body), RECUT)
        assert_equal(other.acceleration(q_, v_, a_, body), one.acceleration(q, v, a, body), RECUT, scale)
    assert_equal(other.kinetic_energy(q_, v_), one.kinetic_energy(q, v), RECUT)
    assert found_.degrees_of_freedom == found.degrees_of_freedom and found_.redundant == found.redundant
    assert found_.unique_reactions == found.unique_reactions
    wrenches, wrenches_ = carried(one, q, v, a, mu, time), carried(other, q_, v_, a_, mu_, time)
    heaviest = max(np.abs(x).max() for x in wrenches.values())
    for name, unique in found.unique_reactions.items():
        if unique and name in wrenches:
            assert_equal(wrenches_[name], wrenches[name], RECUT, heaviest)


@law
@given(
    closed_mechanisms(hints=False, kinds=CLOSING, joints=("revolute", "prismatic", "cylindrical", "spherical")), seeds()
)
def test_efforts_of_motors_wherever_the_loops_are_cut(closed, seed):
    """The motion for equal motor efforts, and the efforts of least norm for that motion."""
    rng = np.random.default_rng(seed)
    first = closed.in_other_tree(closed.description, closed.robot.loop_joints)
    second = recut(closed, rng)
    # a motor in a joint that closes a loop is refused where its direction follows from others
    kept = set(first.robot.joints) & set(second.robot.joints)
    motors = [spec.name for spec in closed.description.joints if spec.joint.nv == 1 and spec.name in kept]
    u = np.linspace(1.0, 2.0, len(motors))
    answers = []
    for one in (first, second):
        robot, q, v = one.robot, one.q, one.v
        tau = np.zeros(robot.nv)
        for name, effort in zip(motors, u, strict=True):
            tau[robot.joint(name).v_slice] = effort
        answers.append((robot, q, v, robot.forward_dynamics(q, v, tau)))
    (one, q, v, a), (other, q_, v_, a_) = answers
    scale = np.abs(a).max(initial=1.0)
    for body in one.bodies:
        assert_equal(other.acceleration(q_, v_, a_, body), one.acceleration(q, v, a, body), RECUT, scale)
    if motors:
        efforts = [r.actuator_efforts(q, v, a, actuated=motors) for r, q, v, a in answers]
        assert_equal(efforts[1], efforts[0], EFFORTS)


ASKED = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "tau"),
    "actuator_efforts": ("q", "v", "a"),
    "constraint_jacobian": ("q",),
    "constraint_bias": ("q", "v"),
    "constraint_residual": ("q",),
    "mass_matrix": ("q",),
    "project_velocity": ("q", "v"),
    "project_configuration": ("q",),
}
TIMELESS = ("inverse_dynamics", "mass_matrix")
# one state and many run the same source with multiplications fused in other places
BATCH = 1e-10


@pytest.mark.parametrize("name", ASKED)
@examples(4)
@given(seed=seeds())
def test_however_it_is_asked(name, seed):
    """Single states, a batch, a batch with two axes, strides, `out=`, one thread and three."""
    closed = random_closed(seed, bodies=5, loops=1 + seed % 2)
    robot = closed.robot
    states = closed.states(np.random.default_rng(seed), 6)
    batch = {k: np.array([getattr(s, k) for s in states]) for k in ("q", "v", "tau")}
    time = np.array([s.time for s in states])
    batch["a"] = robot.forward_dynamics(batch["q"], batch["v"], batch["tau"], time=time)
    given_ = [batch[k] for k in ASKED[name]]

    def ask(arrays, time, **how):
        how |= {} if name in TIMELESS else {"time": time}
        if name == "actuator_efforts" and robot.nu == 0:
            return np.zeros(())
        return getattr(robot, name)(*arrays, **how)

    try:
        expected = ask(given_, time)
    except sarrus.NotRealizableError:
        return
    alone = [ask([x[k] for x in given_], time[k]) for k in range(len(time))]
    if np.shape(expected):
        assert_equal(np.array(alone), expected, BATCH, np.abs(expected).max(initial=0.0))
        out = np.full_like(expected, np.nan)
        assert ask(given_, time, out=out) is out
        assert_same(out, expected)
    assert_same(ask(given_, time, threads=3), expected)
    split = ask([x.reshape(2, 3, -1) for x in given_], time.reshape(2, 3))
    assert_same(np.reshape(split, np.shape(expected)), expected)
    strided = [np.repeat(x, 2, axis=-1)[..., ::2] for x in given_]
    assert_equal(
        ask(strided, time), expected, BATCH, np.abs(expected).max(initial=0.0)
    )  # functions of q see the strides


def assert_same(x, y):
    np.testing.assert_array_equal(x, y)
