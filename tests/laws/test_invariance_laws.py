"""Invariance of all public functions of a state: units, axes of the world, order of a description, spanning tree and batches.

The table in tests/public.py lists the transformation of each result.
"""

import dataclasses

import numpy as np
import pytest

import sarrus
from tests.effort import SOAK
from tests.public import ANY, LOOPS, ROWS, Case, ask, case, functions, public, scaled_answer, turned_answer
from tests.variants import in_tree_of, moved, rebuilt, recut, reordered, scaled

# relative to the largest entry: what ill-conditioned equations of these mechanisms make of rounding
SAME = 1e-8
SIZES = [(1e-5, 1e-12), (1e-5, 1e6), (1e-2, 1e-6), (1e3, 1e6), (1e3, 1e-12)]
ZERO = 1e-11  # rad, and whatever else is nothing here: rates of constraints, residuals
# assembled configurations end where their steps do: to the square root of rounding where they are free to drift
CLOSE = {"assemble": 1e-6, "project_configuration": 1e-7, "follow": 1e-6, "inverse_kinematics": 1e-6}
# near a singular position q on the loops is known to 1e-12, and changes these by 1e6 times as much
NOTHING = {"derivatives.forward_dynamics": 1e-6}


def table(which):
    """Return (name, row, field, axes) of all results of a mechanism with a known transformation."""
    for name, row in ROWS.items():
        if row.answer is None or which not in row.of:
            continue
        for field, axes in row.answer.items() if isinstance(row.answer, dict) else [("", row.answer)]:
            if axes is not None:
                yield name, row, field, axes


def part(answer, field):
    return np.asarray(getattr(answer, field) if field else answer)


def asked(c, name, field):
    """Return a part of a result, or the error."""
    try:
        return part(ask(c.robot, name, c), field)
    except sarrus.SarrusError as error:
        return f"{type(error).__name__}: {error}"


def off(name, one, other, same=SAME, nothing=ZERO):
    """Return a message of the difference of two results that must agree, or None."""
    if isinstance(one, str) or isinstance(other, str):
        return None if isinstance(one, str) and isinstance(other, str) else (name, one, other)
    if one.dtype.kind not in "fc":
        return None if np.array_equal(one, other) else (name, one, other)
    error = np.abs(one - other).max(initial=0.0) / max(np.abs(one).max(initial=0.0), 1e-300)
    size = np.abs(one).max(initial=0.0)
    return None if error <= CLOSE.get(name.split()[0], same) or size * error <= nothing else (name, error)


def report(wrong):
    assert not wrong, "\n" + "\n".join(f"{w[0]}: {w[1:]}" for w in wrong)


@pytest.mark.parametrize(("length", "mass"), SIZES)
@pytest.mark.parametrize("which", ANY)
def test_units(which, length, mass):
    """A mechanism of other dimensions and masses under the same gravity has all results in its units."""
    report(in_other_units(case(which), which, length, mass))


@pytest.mark.parametrize("away", [1e-4, 1e-6, 1e-7])
@pytest.mark.parametrize(("length", "mass"), SIZES[:1] + SIZES[2:4])
def test_units_near_a_singular_position(away, length, mass):
    """A nearly flat parallelogram, whose rank depends on the tolerance."""
    report(in_other_units(nearly_flat(away), "four-bar", length, mass, SAME * max(1.0, 1e-6 / away), NOTHING))


def nearly_flat(away):
    b = sarrus.Builder("parallelogram")
    for name, length in (("a", 0.4), ("b", 1.0), ("c", 0.4)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    b.add_joint("m", sarrus.Revolute("y"), "ground", "a", actuated=True)
    b.add_joint("p1", sarrus.Revolute("y"), "a", "b", at_parent=(0.4, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "ground", "c", at_parent=(1.0, 0, 0))
    b.add_joint("p2", sarrus.Revolute("y"), "b", "c", at_parent=(1.0, 0, 0), at_child=(0.4, 0, 0), loop=True)
    robot = b.build()
    turn = np.zeros(3)
    for name, sign in (("m", 1.0), ("p1", -1.0), ("p", 1.0)):
        turn[robot.joint(name).v_slice] = sign
    tau = np.array([1.0, 0.5, 0.2])
    return Case(robot, away * turn, turn, robot.forward_dynamics(away * turn, turn, tau), tau, "b", ("m",))


def in_other_units(c, which, length, mass, same=SAME, nothing=None):
    """Return the differences of results in other units of length and mass."""
    robot, units = scaled(c.robot, length, mass)
    wrong, v = [], units.velocities(robot)
    state = {
        "q": c.q * units.coordinates(robot),
        "v": c.v * v,
        "a": c.a * v / units.s,
        "tau": c.tau * units.efforts(robot),
    }
    other = dataclasses.replace(c, robot=robot, **state)
    for name, row, field, axes in table(which):
        plain, big = asked(c, name, field), asked(other, name, field)
        if not isinstance(plain, str) and not isinstance(big, str) and plain.dtype.kind == "f":
            big = big / scaled_answer(axes, row.unit, c.robot, units)
        wrong.append(off(name, plain, big, same, (nothing or {}).get(name, ZERO)))
    return [w for w in wrong if w]


@pytest.mark.parametrize("which", ANY)
def test_axes_of_the_world(which):
    """In another pose, with rotated gravity, results in coordinates are unchanged, and those in world axes rotate."""
    c, wrong = case(which), []
    T = sarrus.Transform(sarrus.Rotation.exp([0.4, -0.7, 1.1]), (0.3, -0.2, 0.5))
    other = dataclasses.replace(c, robot=moved(c.robot, T))
    for name, _, field, axes in table(which):
        plain, turned = asked(c, name, field), asked(other, name, field)
        if not isinstance(plain, str) and plain.dtype.kind == "f":
            plain = turned_answer(axes, T)(plain)
        wrong.append(off(name, plain, turned))
    report([w for w in wrong if w])


@pytest.mark.parametrize("which", ANY)
def test_order_of_the_description(which):
    """Bodies, joints, frames and constraints in another order, with the same tree, give the same values in another order."""
    c, wrong = case(which), []
    joints = tuple(
        dataclasses.replace(j, tree=not c.robot.joint(j.name).closes_loop, loop=c.robot.joint(j.name).closes_loop)
        for j in c.robot.description.joints
    )
    robot = reordered(rebuilt(c.robot, joints=joints), np.random.default_rng(1))
    assert robot.joints != c.robot.joints or len(robot.joints) < 3
    places = [np.arange(c.robot.nv)[c.robot.joint(name).v_slice] for name in robot.joints]
    v = np.concatenate(places)
    q = np.concatenate([np.arange(c.robot.nq)[c.robot.joint(name).q_slice] for name in robot.joints])
    rows = np.concatenate(
        [np.zeros(0, int), *(np.arange(c.robot.nc)[c.robot.constraint(n).rows] for n in robot.constraints)]
    )
    u = np.array([c.robot.actuated.index(name) for name in robot.actuated], int)
    order = {"q": q, "v": v, "acc": v, "tau": v, "step": v, "rows": rows, "u": u, "uacc": u}
    other = dataclasses.replace(c, robot=robot, q=c.q[q], v=c.v[v], a=c.a[v], tau=c.tau[v])
    for name, _, field, axes in table(which):
        plain, sorted_ = asked(c, name, field), asked(other, name, field)
        if not isinstance(plain, str) and plain.dtype.kind == "f":
            counted = [axis.lstrip("/") for axis in axes.split() if axis not in ("/s",)]
            for k, axis in enumerate(counted):
                if axis in order and plain.ndim:
                    plain = np.take(plain, order[axis], axis=plain.ndim - len(counted) + k)
        wrong.append(off(name, plain, sorted_))
    report([w for w in wrong if w])


@pytest.mark.parametrize("which", LOOPS)
def test_joints_that_close_the_loops(which):
    """The same motion has the same result for every tree, for all functions that are not about the tree."""
    c, wrong, trees = case(which), [], 0
    candidates = [name for name in c.robot.joints if name not in c.fixed]
    for name_of_cut in candidates if SOAK else candidates[:: max(1, len(candidates) // 3)]:
        robot = recut(c.robot, name_of_cut)
        if robot is None or not set(c.fixed) <= set(robot.joints) or set(robot.joints) == set(c.robot.joints):
            continue
        trees += 1
        q, v, a = in_tree_of(robot, c.robot, c.q, c.v, c.a)
        # the same generalised force on all that the loops leave free
        N = np.stack(
            [in_tree_of(robot, c.robot, c.q, n)[1] for n in sarrus.formulations.free_motions(c.robot, c.q).basis.T]
        )
        tau = np.linalg.lstsq(N, sarrus.formulations.free_motions(c.robot, c.q).basis.T @ c.tau, rcond=None)[0]
        other = dataclasses.replace(c, robot=robot, q=q, v=v, a=a, tau=tau)
        for name, row, field, axes in table(which):
            if row.tree:
                continue
            plain, cut = asked(c, name, field), asked(other, name, field)
            counted = axes.split()
            if not isinstance(plain, str) and plain.dtype.kind == "f" and counted and counted[0] in ("q", "v", "acc"):
                place = ("q", "v", "acc").index(counted[0])
                # told of configurations as they are, of rates at this state
                plain = in_tree_of(robot, c.robot, plain) if place == 0 else carried_over(robot, c, plain, place)
            if counted and counted[0].startswith("rows"):
                plain, cut = (x if isinstance(x, str) else np.abs(x).max(initial=0.0)[None] for x in (plain, cut))
            wrong.append(off(f"{name} where {name_of_cut} closes", plain, cut))
    assert trees
    report([w for w in wrong if w])


def carried_over(robot, c, x, place):
    return in_tree_of(robot, c.robot, c.q, x)[1] if place == 1 else in_tree_of(robot, c.robot, c.q, c.v, x)[2]


@pytest.mark.parametrize("which", ANY)
def test_one_state_or_many(which):
    """A state alone, in a batch, and on two threads has the same result."""
    c, wrong, rng = case(which), [], np.random.default_rng(4)
    q, v, a, tau = (np.stack([x] * 11) for x in (c.q, c.v, c.a, c.tau))
    v[:5] *= rng.uniform(0.2, 3.0, (5, 1))
    a[:5] = c.robot.forward_dynamics(q[:5], v[:5], tau[:5])
    many = dataclasses.replace(c, q=q, v=v, a=a, tau=tau)
    signatures = public()
    for name, _, field, _ in table(which):
        if name in ("neutral", "follow", "assembly_modes", "mobility", "linearize") or not ROWS[name].args(c):
            continue
        plain = asked(c, name, field)
        for threads in {}, {"threads": 2}:
            if threads and "threads" not in signatures[name].parameters:
                continue
            batch = np.asarray(part(ask(c.robot, name, many, **threads), field)[-1])
            wrong.append(off(name, plain, batch) if not isinstance(plain, str) else None)
    report([w for w in wrong if w])


def test_what_is_about_the_tree_says_so():
    """The first paragraph of the docstring mentions the tree."""
    for name, row in ROWS.items():
        if row.tree:
            assert "tree" in (functions()[name].__doc__ or "").split("\n\n")[0], name
