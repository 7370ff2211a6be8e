"""Derivatives with respect to placements of joints, lengths, radii, ratios and springs, compared with differences of mechanisms."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import sarrus
from sarrus.description.constraints import ConstraintSpec, DistanceSpec
from sarrus.description.joints import NONLINEAR
from tests.effort import examples
from tests.laws.test_derivatives import OVERCONSTRAINED, SMOOTH, assert_close, slope
from tests.random_closed import closed_mechanisms
from tests.random_mechanisms import mechanisms, random_state, seeds

D = sarrus.derivatives
STEP = 1e-4


def changed(robot, change):
    """Return a mechanism that is built with these changes, by the names of `dimensions`."""
    d, names = robot.description, D.dimensions(robot)
    get = {name: change[where] for name, where in names.items()}

    def placed(at, name):
        return at @ sarrus.Transform.exp(get[name])

    def joint(spec):
        kind = spec.joint
        terms = {
            term: getattr(kind, term) + get[f"{spec.name}.{term}"]
            for term in ("stiffness", "rest", "damping", "friction", "armature", "pitch", *NONLINEAR)
            if f"{spec.name}.{term}" in get
        }
        kind = dataclasses.replace(kind, **terms) if terms else kind
        ends = {f"at_{end}": placed(getattr(spec, f"at_{end}"), f"{spec.name}.{end}") for end in ("parent", "child")}
        return dataclasses.replace(spec, joint=kind, **ends)

    def spring(spec):
        new = {
            field: getattr(spec, field) + get[f"{spec.name}.{term}"][0]
            for term, field in (("rest", "rest_length"), *((x, x) for x in ("stiffness", "damping", *NONLINEAR)))
        }
        return dataclasses.replace(spec, **new)

    def constraint(spec):
        new = {
            field: getattr(spec, field) + get[f"{spec.name}.{field}"][0]
            for field in ("length", "radius", "on_radius", "offset")
            if f"{spec.name}.{field}" in get and getattr(spec, field) is not None
        }
        if isinstance(spec, DistanceSpec):
            for end, field in (("parent", "first"), ("child", "second")):
                body, point = getattr(spec, field)
                new[field] = body, tuple(np.add(point, get[f"{spec.name}.{end}"][3:]).tolist())
        if (flat := get.get(f"{spec.name}.coefficients")) is not None:
            each = np.split(flat, np.cumsum([len(c) for *_, c in spec.terms])[:-1])
            new["terms"] = tuple(
                (j, k, tuple(np.add(c, more).tolist())) for (j, k, c), more in zip(spec.terms, each, strict=True)
            )
        return dataclasses.replace(spec, **new) if new else spec

    return sarrus.Mechanism(
        dataclasses.replace(
            d,
            gravity=tuple(np.add(d.gravity, get["gravity"]).tolist()),
            joints=tuple(map(joint, d.joints)),
            springs=tuple(map(spring, d.springs)),
            constraints=tuple(map(constraint, d.constraints)),
        )
    )


def directions(robot, rng, count=4):
    """Return directions of all dimensions together, and of each kind."""
    names = D.dimensions(robot)
    n = max((where.stop for where in names.values()), default=0)
    others = {c.spec.name for c in map(robot.constraint, robot.constraints) if isinstance(c.spec, ConstraintSpec)}
    others -= {c.spec.name for c in map(robot.constraint, robot.constraints) if isinstance(c.spec, DistanceSpec)}
    still = [
        where
        for name, where in names.items()
        if name.rpartition(".")[0] in others and name.endswith(("parent", "child"))
    ]

    def without(d):
        """Return d without frames of rolling bodies, which a description does not have, and without zero terms, which cannot be negative."""
        for where in still:
            d[where] = 0.0
        for spec in robot.description.joints:
            for term in ("stiffness", "damping", "friction", "armature"):
                if (where := names.get(f"{spec.name}.{term}")) is not None:
                    d[where] *= np.broadcast_to(getattr(spec.joint, term), where.stop - where.start) > 0.1
            for term in (
                ("quadratic_stiffness", "cubic_stiffness") if spec.joint.quaternion else ()
            ):  # equal about all axes
                d[names.get(f"{spec.name}.{term}", slice(0))] = 0.0
        return d

    yield without(rng.normal(size=n))
    for sort in dict.fromkeys(name.rpartition(".")[2] for name in names):
        d = np.zeros(n)
        for name, where in names.items():
            if name == sort or name.endswith("." + sort):
                d[where] = rng.normal(size=where.stop - where.start)
        yield without(d)


@examples(25)
@given(mechanisms(springs=True, friction=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_inverse_dynamics(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng)
    assume(np.abs(v).min(initial=1.0) > 1e-3)
    found = D.inverse_dynamics(robot, q, v, a).dimensions
    w = rng.normal(size=robot.nv)
    assert_close(D.inverse_dynamics_vjp(robot, q, v, a, w, dimensions=True).dimensions, w @ found, 1e-12)
    for d in directions(robot, rng):
        wanted = slope(lambda s, d=d: changed(robot, s * d).inverse_dynamics(q, v, a), 1e-3)
        assert_close(found @ d, wanted, 1e-7)


@examples(10)
@given(mechanisms(springs=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_forward_dynamics_of_trees(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(robot, rng)
    a = robot.forward_dynamics(q, v, tau)
    found = D.forward_dynamics(robot, q, v, tau).dimensions
    M, needs = robot.mass_matrix(q), D.inverse_dynamics(robot, q, v, a).dimensions
    assert_close(M @ found, -needs, 1e-9 + (1e-15 * np.linalg.cond(M) if robot.nv else 0.0))


def near(robot, q, v, tau, time):
    """Return that mechanism, with q and v on its loops, as near as possible."""
    moved = robot.project_configuration(q, time=time)
    velocity = robot.project_velocity(moved, v, time=time)
    return moved, velocity, robot.forward_dynamics(moved, velocity, tau, time=time)


def assert_follows(robot, q, v, tau, time, found, d):
    """Check derivatives although positions and velocities may follow any path on the loops; derivatives by q and v account for the path."""

    def there(s):
        return near(changed(robot, s * d), q, v, tau, time)

    h = 3e-5  # with 1e-4 the loops of Bennett's linkage, which changes open to second order, leave 2e-5 of the differences
    ends = [there(s) for s in (h, -h, 2 * h, -2 * h)]
    moves = [robot.difference(q, end[0]) for end in ends]
    moved = (8 * (moves[0] - moves[1]) - (moves[2] - moves[3])) / (12 * h)
    velocity, wanted = ((8 * (ends[0][k] - ends[1][k]) - (ends[2][k] - ends[3][k])) / (12 * h) for k in (1, 2))
    told = found.dimensions @ d + found.q @ moved + found.v @ (velocity - found.velocity @ moved)
    assert_close(told, wanted, 1e-5)


@pytest.mark.parametrize("cut", [0, 2])
@pytest.mark.parametrize("name", ["stewart", "delta", "slider_crank", "four_bar", "bennett", "scissor_lift"])
def test_closed_mechanisms(name, cut):
    robot = sarrus.Mechanism(getattr(sarrus.mechanisms, name)().description, substructures=cut)
    rng = np.random.default_rng(0)
    q = robot.assemble()
    v, tau, w = robot.project_velocity(q, rng.normal(size=robot.nv)), *rng.normal(size=(2, robot.nv))
    found = D.forward_dynamics(robot, q, v, tau)
    exists = np.isfinite(found.dimensions).all(axis=0)
    assert exists.any()
    product = D.forward_dynamics_vjp(robot, q, v, tau, w, dimensions=True).dimensions
    assert_array_equal(np.isfinite(product), exists)
    assert_close(product[exists], (w @ found.dimensions)[exists], 1e-9)
    answer = dataclasses.replace(found)
    vars(answer)["dimensions"] = np.where(exists, found.dimensions, 0.0)
    for d in directions(robot, rng):
        if (exists & (d != 0)).any():
            assert_follows(robot, q, v, tau, None, answer, np.where(exists, d, 0.0))


@examples(15)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds())
def test_random_closed_mechanisms(closed, seed):
    """Every kind of constraint and loop joint."""
    rng = np.random.default_rng(seed)
    robot, (q, v, tau, time) = closed.robot, closed.state
    J = robot.constraint_jacobian(q, time=time)
    singular = np.linalg.svd(J, compute_uv=False)
    assume(len(J) == 0 or (len(singular) == len(J) and singular[-1] > 0.05 * singular[0]))
    assume(not robot._rough or np.abs(v).min(initial=1.0) > 0.1)
    found = D.forward_dynamics(robot, q, v, tau, time=time)
    assert np.isfinite(found.dimensions).all()
    for d in directions(robot, rng):
        assert_follows(robot, q, v, tau, time, found, d / max(1.0, np.abs(d).max(initial=0.0)))


@pytest.mark.parametrize("name", OVERCONSTRAINED)
def test_where_loops_cannot_close(name):
    """Placements have no derivative exactly if those of positions have none."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble()
    v = robot.project_velocity(q, np.ones(robot.nv))
    leading = robot.joints[0]
    try:
        closes = D.assembled_positions(robot, q, [leading]).closes
    except sarrus.StateError:
        pytest.skip("led by more than one joint")
    found, names = D.forward_dynamics(robot, q, v, np.zeros(robot.nv)).dimensions, D.dimensions(robot)
    joints = (*robot.joints, *robot.loop_joints)
    for joint, of_joint in zip(joints, closes, strict=True):
        for side, mine in zip(("parent", "child"), of_joint, strict=True):
            open_ = np.isnan(found[:, names[f"{joint}.{side}"]]).all(axis=0)
            assert not np.any(~mine & ~open_)


def test_under_wrenches_and_in_batches():
    robot = sarrus.mechanisms.stewart()
    rng = np.random.default_rng(1)
    q = robot.random(1, 5, closed=True)
    v = robot.project_velocity(q, rng.normal(size=(5, robot.nv)))
    tau, w = rng.normal(size=(2, 5, robot.nv))
    load = {"platform": rng.normal(size=(5, 6))}
    found = D.forward_dynamics(robot, q, v, tau, wrenches=load, threads=2).dimensions
    one = D.forward_dynamics(robot, q[3], v[3], tau[3], wrenches={"platform": load["platform"][3]})
    assert_array_equal(found[3], one.dimensions)
    product = D.forward_dynamics_vjp(robot, q, v, tau, w, wrenches=load, dimensions=True)
    assert_close(product.dimensions, np.einsum("ni,nij->nj", w, found), 1e-10)
    d = next(directions(robot, rng))

    def there(s):
        other = changed(robot, s * d)
        moved = other.project_configuration(q[3])
        velocity = other.project_velocity(moved, v[3])
        pushed = {"platform": load["platform"][3]}
        return robot.difference(q[3], moved), velocity, other.forward_dynamics(moved, velocity, tau[3], wrenches=pushed)

    moved, velocity, wanted = (slope(lambda s, k=k: there(s)[k]) for k in range(3))
    assert_close(one.dimensions @ d + one.q @ moved + one.v @ (velocity - one.velocity @ moved), wanted, 1e-6)


def test_pitches_and_gravity():
    """Screws in both directions of the tree, also followed by another screw."""
    rng = np.random.default_rng(1)
    builder = sarrus.Builder("screws")
    for name in "abc":
        builder.add_body(name, sarrus.Inertia.from_parameters([1.3, 0.1, 0.2, -0.1, 0.9, 0.05, 0.8, 0.02, -0.03, 1.0]))
    for name, kind, ends in (
        ("first", sarrus.Helical("x", 0.3), ("ground", "a")),
        ("back", sarrus.Helical("z", -0.2), ("b", "a")),
        ("last", sarrus.Revolute("y"), ("b", "c")),
    ):
        places = {f"at_{end}": sarrus.Transform.exp(0.5 * rng.normal(size=6)) for end in ("parent", "child")}
        builder.add_joint(name, kind, *ends, **places)
    robot = builder.build()
    q, v, a = rng.normal(size=(3, 3))
    found, names = D.inverse_dynamics(robot, q, v, a).dimensions, D.dimensions(robot)
    assert robot.joint("back").reversed and "last.pitch" not in names
    for name in ("first.pitch", "back.pitch", "gravity"):
        d = np.zeros(found.shape[-1])
        d[names[name]] = rng.normal(size=names[name].stop - names[name].start)
        wanted = slope(lambda s, d=d: changed(robot, s * d).inverse_dynamics(q, v, a), 1e-3)
        assert_close(found @ d, wanted, 1e-9)
