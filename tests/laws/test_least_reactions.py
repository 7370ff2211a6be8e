"""Indeterminate reactions: of least norm over all joints, for any spanning tree, or distributed by compliance."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Builder, Fixed, Gimbal, Inertia, Prismatic, Revolute, Spherical
from sarrus.dynamics.reactions import least_reactions
from tests.effort import SOAK
from tests.laws.test_joint_wrenches import unbalanced
from tests.oracles.reactions import Equilibrium, about
from tests.random_closed import ALL_CONSTRAINTS, DRIVEN, random_closed

OPEN = ["bennett", "goldberg_5r", "goldberg_6r", "bricard", "myard", "schatz", "sarrus_linkage", "double_hooke", "four_bar", "five_bar", "three_rrr", "slider_crank", "peaucellier", "scissor_lift", "miura_fold", "hoberman_ring", "net", "strandbeest_leg", "gripper", "wren_platform", "biped", "two_links", "biped_leg", "hoberman_sphere", "four_bar_ladder"]  # fmt: skip
UNIQUE = ("whipple_bicycle", "delta")
DECLARATIONS = 10 if SOAK else 3
# relative to what bodies need; accelerations and pseudo-inverses have some digits less than the shares
SHARED, DEFINED, BALANCED = 1e-9, 1e-9, 1e-11


def tilted(name):
    """Yield planar linkages with gravity across their planes."""
    robot = getattr(sarrus.mechanisms, name)(*(4,) * (name == "four_bar_ladder"))
    return sarrus.Mechanism(dataclasses.replace(robot.description, gravity=(1.3, -2.1, -9.4)))


def moving(robot, rng):
    """Return a state, and its accelerations without motor forces."""
    q, v = robot.assemble(), np.zeros(robot.nv)
    if robot.name != "Wren platform":  # whose home is a bifurcation: not every velocity begins a motion
        v = robot.project_velocity(q, rng.normal(size=robot.nv))
        q = robot.project_configuration(robot.integrate(q, 0.1 * v))
        v = robot.project_velocity(q, rng.normal(size=robot.nv))
    return q, v, robot.forward_dynamics(q, v, np.zeros(robot.nv))


def can_swap(robot):
    needed = {n for c in robot.description.constraints for n in c.joints_related}
    both_ways = [
        j for j in robot.description.joints if j.joint.kind in ("Revolute", "Prismatic") and j.name not in needed
    ]
    return [j.name for j in both_ways if not np.any(j.joint.stiffness)]


def declared_anew(robot, rng, swap=()):
    """Return the same mechanism: bodies and joints in another order, other loop joints, parent and child of some joints swapped."""
    d = robot.description
    needed = {n for c in d.constraints for n in c.joints_related}
    bodies, joints = ([x[i] for i in rng.permutation(len(x))] for x in (d.bodies, d.joints))
    joints = [
        dataclasses.replace(j, parent=j.child, child=j.parent, at_parent=j.at_child, at_child=j.at_parent)
        if j.name in swap and j.name not in needed else j
        for j in joints
    ]  # fmt: skip
    group, tree = {}, set()

    def root(body):
        return root(group[body]) if body in group else body

    for k in sorted(
        rng.permutation(len(joints)), key=lambda k: not (joints[k].name in needed or joints[k].joint.kind == "Free")
    ):
        parent, child = root(joints[k].parent), root(joints[k].child)
        if parent != child and joints[k].joint.kind != "Cable":
            group[parent] = child
            tree.add(joints[k].name)
    joints = tuple(dataclasses.replace(j, tree=j.name in tree, loop=j.name not in tree) for j in joints)
    return sarrus.Mechanism(dataclasses.replace(d, bodies=tuple(bodies), joints=joints, home=(), configurations=()))


def state_in(other, robot, q, v, a, swap=()):
    states = robot.joint_states(q, v, a)
    parts = []
    for of, place, size in (
        (states.q, "q_slice", other.nq),
        (states.v, "v_slice", other.nv),
        (states.a, "v_slice", other.nv),
    ):
        x = np.zeros(size)
        for name in other.joints:
            x[getattr(other.joint(name), place)] = -of[name] if name in swap else of[name]
        parts.append(x)
    return parts


def any_multipliers(robot, q, v, a):
    """Return multipliers with the same J^T lambda, of least norm in this tree."""
    return np.linalg.pinv(robot.constraint_jacobian(q).T, rcond=1e-11) @ robot.inverse_dynamics(q, v, a)


def on_one_side(robot, q, loads):
    """Return the wrench of each joint on the body whose name is first, in the world."""
    out = {}
    for spec in robot.description.joints:
        X = (np.eye(4) if spec.child == "ground" else robot.pose(q, spec.child)) @ spec.at_child.matrix
        N, F = X[:3, :3] @ loads[spec.name][:3], X[:3, :3] @ loads[spec.name][3:]
        sign = 1.0 if spec.child < spec.parent else -1.0
        out[spec.name] = sign * np.concatenate([(N + np.cross(X[:3, 3], F)) / robot._length, F])
    return out


def largest_difference(one, other):
    return max(np.abs(one[name] - other[name]).max() for name in one)


@pytest.mark.parametrize("name", [*OPEN, *UNIQUE])
def test_of_least_norm_whatever_the_cut(name):
    robot = tilted(name)
    q, v, a = moving(robot, np.random.default_rng(7))
    loads = robot.joint_wrenches(q, v, a, multipliers=any_multipliers(robot, q, v, a))
    left, size = unbalanced(robot, q, v, a, loads)
    if not robot.description.springs:
        assert max(np.abs(wrench).max() for wrench in left.values()) < BALANCED * size

    # by definition
    tau = np.zeros(robot.nv)
    _, loops = robot.forward_dynamics(q, v, tau, return_reactions=True)
    at = Equilibrium(robot, q)
    x = at.coordinates(loads, loops.multipliers)
    assert_allclose(x, at.least(x), atol=DEFINED * size)

    # in all functions that say what joints carry, of one state or many
    for joint in set(loops.wrenches) & set(loads):
        assert_allclose(loops.wrenches[joint], loads[joint], atol=SHARED * size)
    many = robot.joint_wrenches(*(np.stack([x, x]) for x in (q, v, a)), multipliers=loops.multipliers)
    for joint, load in loads.items():
        assert_allclose(many[joint], [load, load], atol=SHARED * size)

    check_declared_anew(robot, q, v, a, loads, size)


def check_declared_anew(robot, q, v, a, loads, size):
    """Check equal loads for other orders, cuts, directions of joints and solvers, for one state and for many."""
    ours = on_one_side(robot, q, loads)
    for k in range(DECLARATIONS):
        swap = can_swap(robot)[k % 2 :: 2] if k % 3 == 2 else []
        other = declared_anew(robot, np.random.default_rng(100 + k), swap)
        other = sarrus.Mechanism(other.description, substructures=(None, 0, 1)[k % 3])
        there = state_in(other, robot, q, v, a, swap)
        many = [np.stack([x, x]) for x in there]
        none = np.zeros(other.nv)
        for mu in (
            any_multipliers(other, *there),
            other.forward_dynamics(*there[:2], none, return_reactions=True, check=False)[1].multipliers,
        ):
            theirs = other.joint_wrenches(*there, multipliers=mu)
            assert largest_difference(ours, on_one_side(other, there[0], theirs)) < SHARED * size
            for name, load in other.joint_wrenches(*many, multipliers=mu).items():
                assert_allclose(load, [theirs[name]] * 2, atol=SHARED * size)


@pytest.mark.parametrize("seed", range(100 if SOAK else 6))
def test_of_least_norm_in_random_mechanisms(seed):
    """All kinds of joints and constraints, some of them duplicated."""
    kinds = tuple(kind for kind in ALL_CONSTRAINTS if kind not in DRIVEN and "pfaffian" not in kind)
    for draw in range(20):
        how = {"bodies": 3 + seed % 5, "loops": 1 + seed % 3, "copies": seed % 3, "floating": seed % 4 == 0}
        closed = random_closed(1000 * seed + draw, kinds=kinds, **how)
        robot, q, v = closed.robot, closed.q, closed.v
        try:
            if robot.nc and declared_anew(robot, np.random.default_rng(0)):
                break
        except sarrus.ModelError:  # some joints stand in trees only
            continue
    a, loops = robot.forward_dynamics(q, v, np.zeros(robot.nv), return_reactions=True)
    loads = robot.joint_wrenches(q, v, a, multipliers=any_multipliers(robot, q, v, a))
    size = max(np.abs(wrench).max() for wrench in loads.values())
    at = Equilibrium(robot, q)
    x = at.coordinates(loads, loops.multipliers)
    assert_allclose(x, at.least(x), atol=DEFINED * size)
    check_declared_anew(robot, q, v, a, loads, size)


def built(bodies, joints):
    b = Builder("held")
    for body in bodies:
        b.add_body(*body)
    for name, kind, parent, child, at, here in joints:
        b.add_joint(name, kind, parent, child, at_parent=at, at_child=here)
    return b.build()


def at_rest(robot, q=None, **how):
    """Return the state of rest under gravity."""
    q, rest = robot.assemble() if q is None else q, np.zeros(robot.nv)
    return robot.joint_wrenches(q, rest, rest, multipliers=any_multipliers(robot, q, rest, rest), **how)


def frame(heights, order=1):
    hinges = [(n, Revolute("z"), "ground", "frame", (0, 0, z), (0, 0, z)) for n, z in heights.items()][::order]
    return built([("frame", Inertia(10.0, (0.4, 0, 0), np.eye(3)))], hinges)


AXIAL = np.array([0, 0, 0, 0, 0, 1e-6])


def test_a_frame_on_hinges():
    """10 kg on two hinges, half on each. A hinge with axial compliance carries nothing beside a rigid one, else a part by its compliance."""

    def carried(robot, names, **how):
        return [at_rest(robot, **how)[name][5] for name in names]

    for order in (1, -1):
        door = frame({"low": 0.2, "high": 1.8}, order)
        assert_allclose(carried(door, ("low", "high")), [49.05, 49.05], atol=1e-10)
        assert_allclose(carried(door, ("low", "high"), compliance={"low": AXIAL}), [0.0, 98.1], atol=1e-7)
        both = {"low": AXIAL, "high": 3 * np.diag(AXIAL)}
        assert_allclose(carried(door, ("low", "high"), compliance=both), [73.575, 24.525], atol=1e-7)
    three = frame({"low": 0.2, "middle": 1.0, "high": 1.8})
    assert_allclose(
        carried(three, ("low", "middle", "high"), compliance={"low": AXIAL}), [0.0, 49.05, 49.05], atol=1e-7
    )


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e3])
def test_a_table_on_four_legs(size):
    """The load is off the centre: the result is that of three equations of four springs, in any unit of length."""
    a, b, mass = 0.5 * size, 0.3 * size, 10.0 * size**3
    e, give = np.array([0.1, -0.06]) * size, np.array([1.0, 2.0, 3.0, 5.0])
    corner = np.array([(x, y) for x in (-a, a) for y in (-b, b)])
    legs = [f"leg{i}" for i in range(4)]
    feet = [
        (n, Spherical(), "ground", "top", (x, y, 0), (x, y, -0.7 * size))
        for n, (x, y) in zip(legs, corner, strict=True)
    ]
    table = built([("top", Inertia(mass, (*e, 0), mass * size**2 * np.eye(3)))], feet)

    weight = 9.81 * mass
    by_hand = weight * (0.25 + corner @ (e / (4 * np.array([a, b]) ** 2)))
    loads = at_rest(table)
    assert_allclose([loads[n][5] for n in legs], by_hand, rtol=1e-10)
    B = np.column_stack([np.ones(4), corner])
    by_hand = B @ np.linalg.solve(B.T / give @ B, weight * np.array([1, *e])) / give
    loads = at_rest(table, compliance={n: g * AXIAL for n, g in zip(legs, give, strict=True)})
    assert_allclose([loads[n][5] for n in legs], by_hand, rtol=1e-7)


def cantilever(s, sign=1.0, EI=7.0e3):
    """Return the 6 x 6 compliance of a beam of length s along sign x."""
    C = np.diag([s / EI, s / EI, s / EI, s / 1e7, s**3 / (3 * EI), s**3 / (3 * EI)])
    C[1, 5] = C[5, 1] = -sign * s * s / (2 * EI)
    C[2, 4] = C[4, 2] = sign * s * s / (2 * EI)
    return C


def test_a_clamped_beam():
    """F b^2 (3 a + b) / L^3 and F a b^2 / L^2 at the walls."""
    L, a, F = 2.0, 0.7, 98.1
    b = L - a
    ends = [(name, Fixed(), "ground", "load", (a, 0, 0), None) for name in ("left", "right")]
    beam = built([("load", Inertia(10.0, (0, 0, 0), np.eye(3)))], ends)
    w = at_rest(beam, compliance={"left": cantilever(a), "right": cantilever(b, -1.0)})
    got = [w["left"][5], w["left"][1] - a * w["left"][5], w["right"][5], w["right"][1] + b * w["right"][5]]
    by_hand = [b * b * (3 * a + b) / L**3, -a * b * b / L**2, a * a * (3 * b + a) / L**3, a * a * b / L**2]
    assert_allclose(got, F * np.array(by_hand), rtol=1e-9)


def test_a_beam_on_three_supports():
    """A load in the middle of each span: the supports carry 5/32, 22/32 and 5/32 of both."""
    s, _L = 0.5, 0.0
    bodies = [
        (f"n{i}", Inertia(10.0, (0, 0, 0), 1e-3 * np.eye(3)))
        if i % 2
        else (f"n{i}", Inertia(1e-300, (0, 0, 0), np.zeros((3, 3))))
        for i in range(5)
    ]
    spans = [(f"s{i}", Fixed(), f"n{i - 1}", f"n{i}", (s, 0, 0), None) for i in range(1, 5)]
    supports = [(n, Revolute("y"), "ground", f"n{i}", (s * i, 0, 0), None) for n, i in (("A", 0), ("B", 2), ("C", 4))]
    beam = built(bodies, supports + spans)
    w = at_rest(beam, np.zeros(beam.nq), compliance={n: cantilever(s) for n, *_ in spans})
    assert_allclose([w[x][5] / (20 * 9.81) for x in "ABC"], [5 / 32, 22 / 32, 5 / 32], atol=1e-7)


def test_relations_between_coordinates():
    """A duplicate of a gear, also in another unit, changes no joint, and each carries half; a belt and a weld share."""
    told = []
    for names in (("mesh",), ("mesh", "again")):
        g = Builder("gears")
        for n, x in (("small", 0.0), ("large", 0.3)):
            g.add_body(n, Inertia(1.0, (0.1, 0, 0), 0.01 * np.eye(3)))
            g.add_joint(n + "_axle", Revolute("y"), "ground", n, at_parent=(x, 0, 0))
        for n, unit in zip(names, (1.0, 5.0), strict=False):
            g.add_coupler(n, {"small_axle": 0.1 * unit, "large_axle": 0.2 * unit})
        robot = g.build()
        _, loops = robot.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2), return_reactions=True)
        told.append((np.concatenate(list(at_rest(robot, np.zeros(2)).values())), loops.multipliers))
    assert_allclose(told[1][0], told[0][0], atol=1e-12)
    assert_allclose(told[1][1] * [1, 5] / told[0][1], 0.5)

    b = Builder("slides")
    for i in (0, 1):
        b.add_body(f"b{i}", Inertia(1.0 + i, (0.05, 0, 0), 0.01 * np.eye(3)))
        b.add_joint(
            f"slide{i}",
            Prismatic("z", stiffness=100.0, rest=0.1 * i),
            "ground",
            f"b{i}",
            at_parent=(0.8 * i, 0, 0),
            tree=True,
        )
    b.add_joint("weld", Fixed(), "b0", "b1", at_parent=(0.8, 0, 0), loop=True)
    b.add_coupler("belt", {"slide0": 2.0, "slide1": -2.0})
    robot, rest = b.build(), np.zeros(2)
    a, loops = robot.forward_dynamics(rest, rest, rest, return_reactions=True)
    loads = robot.joint_wrenches(rest, rest, a, multipliers=loops.multipliers)
    belt = loops.multipliers[robot.constraint("belt").rows][0]
    assert abs(loads["weld"][5] - 2 * belt + 10 / 3) < 1e-9
    at = Equilibrium(robot, rest)
    x = at.coordinates(loads, loops.multipliers)
    assert_allclose(x, at.least(x), atol=1e-12)


@pytest.mark.parametrize("turned", [0.0, 0.7, np.pi / 2])
def test_relations_that_move_a_free_body(turned):
    """Each of two equal relations carries half, also along joints without rows; those of parallel gimbal axes do not change."""
    kinds = sarrus.Free(), Gimbal(("rx", "ry", "rz", "tx", "ty", "tz")), Gimbal(("rx", "ry", "rz"))
    for kind in kinds:
        b = Builder("held in the air")
        b.add_body("box", Inertia(2.0, (0.1, 0.2, 0.3), np.eye(3)))
        b.add_joint("air", kind, "ground", "box", tree=True)
        b.add_body("arm", Inertia(1.0, (0.4, 0, 0), 0.1 * np.eye(3)))
        b.add_joint("hinge", Revolute("y"), "box", "arm", at_parent=(0.5, 0, 0), tree=True)
        rng = np.random.default_rng(2)
        rows = rng.normal(size=(2, kind.nv + 1))
        for n, unit in (("once", 1.0), ("again", 5.0)):
            b.add_pfaffian(n, unit * rows, ("air", "hinge"))
        b.add_pfaffian("other", rng.normal(size=rows.shape), ("air", "hinge"))
        b.add_joint("pin", Revolute("y"), "box", "arm", at_parent=(0.5, 0.2, 0), at_child=(0, 0.2, 0), loop=True)
        robot = b.build()
        q, rest = robot.neutral(), np.zeros(robot.nv)
        if kind.kind == "Gimbal":
            q[1] = turned
        a, mu = rng.normal(size=robot.nv), rng.normal(size=robot.nc)
        shared, J = least_reactions(robot, q, rest, a, mu), robot.constraint_jacobian(q)
        assert_allclose(J.T @ shared, J.T @ mu, atol=1e-11 * np.abs(J.T @ mu).max())
        once, again = (shared[robot.constraint(n).rows] for n in ("once", "again"))
        if turned < 1.0 or kind.kind == "Free":
            assert_allclose(5 * again, once, atol=1e-9 * np.abs(once).max())


@pytest.mark.parametrize("name", ["bennett", "four_bar", "scissor_lift", "net", "miura_fold", "wren_platform"])
def test_shares_by_compliance_are_those_of_bushings(name):
    """A C^-1 A^T d = f, x = C^-1 A^T d: the displacement method, which has no self-stress."""
    rng, robot = np.random.default_rng(3), tilted(name)
    q, v, a = moving(robot, rng)
    unit, gives = np.repeat([1.0 / robot._length, 1.0], 3), {}
    at = Equilibrium(robot, q)
    C, end = np.zeros((at.A.shape[1],) * 2), 0
    for part in at.parts:
        assert len(part) == 6
        joint, _, _, X, basis, at_joint = part
        Y = rng.normal(size=(6, 6))
        gives[joint] = 1e-6 * (Y @ Y.T + 0.3 * np.eye(6)) * np.outer(unit, unit)
        w = (
            np.kron(np.eye(2), X[:3, :3].T) @ about(at_joint - X[:3, 3]) @ (basis / unit[:, None])
        )  # in the joint's frame
        here = slice(end, end := end + basis.shape[1])
        C[here, here] = w.T @ gives[joint] @ w
    x = at.coordinates(
        robot.joint_wrenches(q, v, a, multipliers=any_multipliers(robot, q, v, a), compliance=gives), np.zeros(0)
    )
    f = at.A @ x
    d = np.linalg.lstsq(at.A @ np.linalg.solve(C, at.A.T), f, rcond=1e-12)[0]
    assert_allclose(x, np.linalg.solve(C, at.A.T @ d), atol=1e-7 * np.abs(f).max())


@pytest.mark.parametrize("angle", [1e-2, 1e-5, 1e-6])
def test_near_a_singular_position(angle):
    """A parallelogram that is nearly flat, where another computation is used."""
    along = (1.0, 0, 0)
    bodies = [(n, Inertia(1.0, (0.5, up, 0), 0.1 * np.eye(3))) for n, up in (("left", 0), ("right", 0), ("top", 0.3))]
    pins = [("a", "ground", "left", None, None), ("b", "ground", "right", along, None), ("c", "left", "top", along, None),
            ("d", "right", "top", along, along)]  # fmt: skip
    robot = built(bodies, [(n, Revolute("y"), parent, child, at, here) for n, parent, child, at, here in pins])
    q, rest = np.zeros(robot.nq), np.zeros(robot.nv)
    for name in robot.joints:
        q[robot.joint(name).q_slice] = angle if name in "ab" else -angle
    a, loops = robot.forward_dynamics(q, rest, rest, return_reactions=True)
    at, loads = Equilibrium(robot, q), robot.joint_wrenches(q, rest, a, multipliers=loops.multipliers)
    x = at.coordinates(loads, loops.multipliers)
    assert_allclose(x, at.least(x), atol=1e-9 * np.abs(x).max())


def test_what_compliances_must_be():
    robot = frame({"low": 0.2, "high": 1.8})
    for wrong, error, match in (
        ({"door": AXIAL}, sarrus.NameNotFoundError, "no joint or rod is named 'door'"),
        ({"low": AXIAL[:3]}, sarrus.ShapeError, r"compliance\['low'\] has shape \(3,\)"),
        ({"low": -AXIAL}, ValueError, r"compliance\['low'\] must be positive semidefinite"),
        ({"low": np.triu(np.ones((6, 6)))}, ValueError, "finite and symmetric"),
        ([AXIAL], TypeError, "compliance must be a mapping"),
    ):
        with pytest.raises(error, match=match):
            at_rest(robot, compliance=wrong)


def test_impulses_and_runs():
    """Impulses do not depend on the tree either, and runs have the results of single states."""
    robot = sarrus.mechanisms.scissor_lift()
    q, w = robot.assemble(), np.random.default_rng(1).normal(size=robot.nv)
    change, impulses = robot.impact(q, w)
    x = [robot._loop_wrenches(q, impulses)]
    at = Equilibrium(robot, q)
    rest = np.zeros(robot.nv)
    none = np.zeros(robot._all_nv - robot.nv)
    loads = robot._joint_loads(q, rest, change - w, impulses, none) - robot._joint_loads(
        q, rest, rest, 0 * impulses, none
    )
    x = at.coordinates({name: loads[place] for name, place in robot._load_places}, impulses)
    assert_allclose(x, at.least(x), atol=1e-10 * np.abs(x).max())

    run = sarrus.simulate(robot, q, rest, 0.02)
    loads = run.joint_wrenches()
    for k in (0, -1):
        one = robot.joint_wrenches(run.q[k], run.v[k], run.a[k], multipliers=run.reactions.multipliers[k])
        for name, load in one.items():
            assert_allclose(loads[name][k], load, atol=1e-8)
            if name in run.reactions.wrenches:
                assert_allclose(run.reactions.wrenches[name][k], load, atol=1e-8)


def test_impulses_of_variants():
    """Each variant has the result of its mechanism."""
    robot = sarrus.mechanisms.scissor_lift()
    q, v = robot.assemble(), np.full(robot.nv, 0.1)
    variants = robot.variants(gravity=np.array([[0.0, 0.0, -9.81], [0.0, 0.0, -1.6]]))
    for k, (after, impulses) in enumerate(zip(*variants.impact(q, v), strict=True)):
        alone, shared = variants[k].impact(q, v)
        assert_allclose(after, alone, atol=1e-12)
        assert_allclose(impulses, shared, atol=1e-10 * np.abs(shared).max())


def test_no_states_have_no_reactions():
    """Arrays without rows, a finding of the fuzzer."""
    robot = sarrus.mechanisms.slider_crank()
    q, v = np.zeros((0, robot.nq)), np.zeros((0, robot.nv))
    wrenches = robot.joint_wrenches(q, v, v)
    assert all(x.shape == (0, 6) for x in wrenches.values())
    assert robot.impact(q, v)[0].shape == (0, robot.nv)
