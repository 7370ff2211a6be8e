"""Derivatives of the equations of motion, compared with differences of independent oracles; choices of the library have no effect."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from tests.effort import examples
from tests.laws.test_choice_laws import recut
from tests.oracles import Dense
from tests.random_closed import ALL_CONSTRAINTS, closed_mechanisms, random_closed
from tests.random_mechanisms import PLAIN_JOINTS, mechanisms, random_mechanism, random_state, seeds
from tests.variants import scaled

D = sarrus.derivatives
SMOOTH = tuple(kind for kind in ALL_CONSTRAINTS if kind != "pfaffian of q")
# of oracles in extended precision: truncation h^4, and rounding 1e-19 / h
STEP, DIGITS = 1e-4, 1e-9
# of the core's own functions, which round to 1e-15 or 1e-13 / h where loops are ill-conditioned
NEAR = 1e-7


def slope(f, h=STEP):
    """Return f'(0) by central differences of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def columns(f, directions):
    """Return one column for each direction (nv, k)."""
    slopes = [slope(lambda s, d=d: f(s * d)) for d in directions.T]
    return np.stack(slopes, axis=-1) if slopes else np.zeros((0, 0))


def assert_close(found, wanted, digits=DIGITS):
    wanted = np.asarray(wanted, dtype=np.float64)
    assert_allclose(found, wanted, rtol=0, atol=digits * max(1.0, np.abs(wanted).max(initial=0.0)))


# ---- trees -----------------------------------------------------------------------------------------------------------


@examples(15)
@given(mechanisms(springs=True, friction=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_inverse_dynamics(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng)
    assume(np.abs(v).min(initial=1.0) > 4 * STEP)  # differences do not see Coulomb friction jump
    one = np.eye(robot.nv)
    oracle = Dense(robot.description, dtype=np.longdouble)
    found = D.inverse_dynamics(robot, q, v, a)
    assert_close(found.q, columns(lambda d: oracle.inverse_dynamics(oracle.integrate(q, d), v, a), one))
    assert_close(found.v, columns(lambda d: oracle.inverse_dynamics(q, v + d, a), one))
    assert_close(found.a, columns(lambda d: oracle.inverse_dynamics(q, v, a + d), one))
    assert found.parameters.shape == (robot.nv, 10 * len(robot.bodies))


@examples(10)
@given(mechanisms(springs=True), seeds())
def test_under_wrenches_on_ground_that_moves(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng)
    body = rng.choice(robot.bodies)
    loads = {
        "wrenches": {body: rng.normal(size=6)},
        "base_velocity": rng.normal(size=6),
        "base_acceleration": rng.normal(size=6),
    }
    found = D.inverse_dynamics(robot, q, v, a, **loads)
    one = np.eye(robot.nv)
    assert_close(found.q, columns(lambda d: robot.inverse_dynamics(robot.integrate(q, d), v, a, **loads), one), NEAR)
    assert_close(found.v, columns(lambda d: robot.inverse_dynamics(q, v + d, a, **loads), one), NEAR)
    inertia = np.concatenate([np.zeros(0), *(body.inertia.parameters for body in robot.description.bodies)])
    without = robot.inverse_dynamics(q, v, a, wrenches=loads["wrenches"]) - robot.regressor(q, v, a) @ inertia
    assert_close(found.parameters @ inertia, robot.inverse_dynamics(q, v, a, **loads) - without, 1e-12)
    tau, pushed = rng.normal(size=robot.nv), {"wrenches": loads["wrenches"]}
    found = D.forward_dynamics(robot, q, v, tau, **pushed)
    rounding = 1e-15 * np.linalg.cond(robot.mass_matrix(q)) / STEP if robot.nv else 0.0  # of the differences
    moved = columns(lambda d: robot.forward_dynamics(robot.integrate(q, d), v, tau, **pushed), one)
    assert_close(found.q, moved, NEAR + rounding)


@examples(15)
@given(mechanisms(springs=True, armature=True), seeds())
def test_forward_dynamics_of_trees(robot, seed):
    """Minus M^-1 times the derivatives of inverse dynamics."""
    are_those_of_inverse_dynamics(robot, seed)


@pytest.mark.parametrize("branching", [0.0, 0.3, 1.0])
def test_forward_dynamics_of_large_trees(branching):
    """The columns fill several registers, and the order of velocities differs from that of the bodies."""
    robot = random_mechanism(7, bodies=24, joints=PLAIN_JOINTS, branching=branching, shuffled=True, armature=True)
    assert robot.nv > 32
    q = are_those_of_inverse_dynamics(robot, 7)
    M, inverse = robot.mass_matrix(q), robot.mass_matrix_inverse(q)
    assert_close(M @ inverse, np.eye(robot.nv), np.linalg.cond(M) * 1e-15)
    assert_array_equal(inverse, inverse.T)


def are_those_of_inverse_dynamics(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(robot, rng)
    a = robot.forward_dynamics(q, v, tau)
    found, inverse, M = D.forward_dynamics(robot, q, v, tau), D.inverse_dynamics(robot, q, v, a), robot.mass_matrix(q)
    size = np.linalg.cond(M) * 1e-15 if robot.nv else 0.0
    for column, needs in ((found.q, inverse.q), (found.v, inverse.v), (-found.tau, np.eye(robot.nv))):
        assert_close(M @ column, -needs, 1e-9 + size)
    assert_array_equal(found.tau, found.tau.T)
    assert_array_equal(found.displacement, np.eye(robot.nv))
    assert_array_equal(found.velocity, 0)
    return q


# ---- closed mechanisms -----------------------------------------------------------------------------------------------


@examples(15)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds())
@example(random_closed(1666, bodies=4, loops=1, copies=1, branching=0.0, kinds=SMOOTH), 0)
def test_forward_dynamics_of_closed_mechanisms(closed, seed):
    """Every kind of constraint and loop joint, in motion, compared with the oracle in extended precision along the loops."""
    robot, (q, v, tau, time), oracle = closed.robot, closed.state, closed.precise
    found = D.forward_dynamics(robot, q, v, tau, time=time)
    J = robot.constraint_jacobian(q, time=time)
    held = [row for c in robot.constraints for row in robot.constraint(c).holonomic]
    assert_allclose(J[held] @ found.displacement, 0, atol=1e-9)
    assert_allclose(J @ found.change, 0, atol=1e-9)
    assert_allclose(found.tau, found.tau.T, atol=1e-10 * np.abs(found.tau).max(initial=1.0))
    depend = np.linalg.matrix_rank(J, tol=1e-9 * np.abs(J).max(initial=1.0)) < len(J)

    def on_loops(x, u):
        """Dependent rows are inconsistent for any gap of the loops, where the oracle's choice of rows decides; so states are on the loops."""
        if not depend:
            return x, u
        x = robot.project_configuration(np.asarray(x, dtype=float), time=time)
        return x, robot.project_velocity(x, np.asarray(u, dtype=float), time=time)

    assert max(found.residual_q.max(initial=0.0), found.residual_v.max(initial=0.0)) < 1e-9
    for k in range(robot.nv):
        d, w, u = found.displacement[:, k], found.velocity[:, k], found.change[:, k]

        def along(s, d=d, w=w):
            return oracle.forward_dynamics(*on_loops(oracle.integrate(q, s * d), v + s * w), tau, time=time)

        assert_close(found.q[:, k], slope(along), 1e-8)
        assert_close(found.v[:, k], slope(lambda s, u=u: oracle.forward_dynamics(q, v + s * u, tau, time=time)), 1e-8)
        moved = robot.integrate(q, 1e-5 * d), robot.integrate(q, -1e-5 * d)
        allowed = [
            robot.constraint_velocity(x, time=time) - robot.constraint_jacobian(x, time=time) @ (v + s * w)
            for x, s in zip(moved, (1e-5, -1e-5), strict=True)
        ]
        assert_allclose((allowed[0] - allowed[1]) / 2e-5, 0, atol=1e-6 * max(1.0, np.abs(v).max(), np.abs(w).max()))


OVERCONSTRAINED = (
    "bennett",
    "bricard",
    "goldberg_5r",
    "goldberg_6r",
    "sarrus_linkage",
    "four_bar",
    "scissor_lift",
)


@pytest.mark.parametrize("name", OVERCONSTRAINED)
def test_where_rows_depend_on_each_other(name):
    robot = getattr(sarrus.mechanisms, name)()
    rng = np.random.default_rng(0)
    q = robot.assemble()
    v, tau = robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    found = D.forward_dynamics(robot, q, v, tau)
    assert max(found.residual_q.max(), found.residual_v.max()) < 1e-9

    def along(s, d):
        there = robot.project_configuration(robot.integrate(q, s * d))
        return robot.forward_dynamics(there, robot.project_velocity(there, v), tau)

    # where a loop is closed to 1e-14, so are the directions that it leaves
    assert_close(
        found.q, np.stack([slope(lambda s, d=d: along(s, d), 1e-3) for d in found.displacement.T], axis=-1), 1e-5
    )


def multipliers_along(robot, q, v, tau, d, **how):
    """Return the multipliers of the motion from this state, as far as the loops allow it, with the projected velocity."""

    def there(s):
        moved = robot.project_configuration(robot.integrate(q, s * d[0]), **how)
        velocity = robot.project_velocity(moved, v + s * d[1], **how)
        return robot.forward_dynamics(moved, velocity, tau + s * d[2], return_reactions=True, **how)[1].multipliers

    return there


@pytest.mark.parametrize("name", [*OVERCONSTRAINED, "stewart", "slider_crank", "delta"])
@pytest.mark.parametrize("cut", [0, 2])
def test_multipliers(name, cut):
    """Differences along the loops; for indeterminate multipliers of dependent rows, those of least norm."""
    robot = sarrus.Mechanism(getattr(sarrus.mechanisms, name)().description, substructures=cut)
    rng = np.random.default_rng(0)
    q = robot.assemble()
    v, tau = robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    found = D.forward_dynamics(robot, q, v, tau)
    zero = np.zeros(robot.nv)
    directions, allowed, _ = np.linalg.svd(found.displacement)
    # what is none, of mechanisms with one freedom, would be differences of one configuration's rounding
    for d in directions.T[:2][allowed[:2] > 1e-9]:
        d, u, w = found.displacement @ d, *rng.normal(size=(2, robot.nv))
        d, u = d / max(1.0, np.abs(d).max()), found.change @ u
        for part, along, direction in (
            ("q", (d, found.velocity @ d, zero), d), ("v", (zero, u, zero), u), ("tau", (zero, zero, w), w),
        ):  # fmt: skip
            wanted = slope(multipliers_along(robot, q, v, tau, along), 1e-3)
            # of q the differences' own: projected positions of dependent rows are known to 1e-9, steps are 1e-3
            assert_close(getattr(found.multipliers, part) @ direction, wanted, 1e-5 if part == "q" else 1e-6)


@examples(15)
# reactions that change within 0.01 rad
@example(random_closed(1941, loops=1, copies=1, floating=False, branching=1.0, kinds=SMOOTH), 1)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds())
def test_multipliers_of_closed_mechanisms(closed, seed):
    """J^T dlambda is the change of M a + h - tau - J^T lambda at constant lambda, with dlambda of least norm."""
    robot, (q, v, tau, time), rng = closed.robot, closed.state, np.random.default_rng(seed)
    found = D.forward_dynamics(robot, q, v, tau, time=time)
    _, reactions = robot.forward_dynamics(q, v, tau, time=time, return_reactions=True)
    assume(reactions.error < 1e-9)
    d, u, w = rng.normal(size=(3, robot.nv))
    d, u = found.displacement @ d, found.change @ u

    def needs(s):
        moved = robot.integrate(q, s * d)
        along = v + s * (u + found.velocity @ d)
        a = robot.forward_dynamics(q, v, tau, time=time) + s * (found.q @ d + found.v @ u + found.tau @ w)
        h = robot.inverse_dynamics(moved, along, a) - tau - s * w
        return h - robot.constraint_jacobian(moved, time=time).T @ reactions.multipliers

    assume(not robot._rough and np.abs(v).min(initial=1.0) > 4 * STEP)
    change = found.multipliers.q @ d + found.multipliers.v @ u + found.multipliers.tau @ w
    J = robot.constraint_jacobian(q, time=time)
    size = max(1.0, np.abs(reactions.multipliers).max(initial=0.0), np.abs(change).max(initial=0.0))
    assert_allclose(J.T @ change, slope(needs), rtol=0, atol=1e-6 * size * max(1.0, np.abs(J).max(initial=0.0)))


@pytest.mark.parametrize("name", ["biped", "four_bar", "sarrus_linkage"])
@pytest.mark.parametrize("m", [1.0, 1e-3, 1e-6])
def test_multipliers_in_any_unit(name, m):
    """Lengths in metres or micrometres: the generalised forces of dependent rows keep their digits."""
    robot, units = scaled(getattr(sarrus.mechanisms, name)(), m, m**3, 1.0)
    unit = units.velocities(robot)
    q = robot.assemble(tolerance=1e-13)
    v = robot.project_velocity(q, np.cos(np.arange(robot.nv)) * unit)
    d, tau = robot.project_velocity(q, np.sin(np.arange(robot.nv)) * unit), np.zeros(robot.nv)
    found = D.forward_dynamics(robot, q, v, tau)

    def velocity(s):
        return robot.project_velocity(robot.project_configuration(robot.integrate(q, s * d)), v)

    def multipliers(s):
        there = robot.project_configuration(robot.integrate(q, s * d))
        return robot.forward_dynamics(there, velocity(s), tau, return_reactions=True)[1].multipliers

    change = found.multipliers.q @ d + found.multipliers.v @ (slope(velocity, 1e-3) - found.velocity @ d)
    forces, wanted = (unit * (robot.constraint_jacobian(q).T @ x) for x in (change, slope(multipliers, 1e-3)))
    assert_allclose(forces, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())


def driven(robot, angle, speed):
    q = robot.assemble(fixed={"motor": angle})
    return q, robot.complete_velocity(q, {"motor": speed}), np.array([0.3, -0.2, 0.1])


@pytest.mark.parametrize("term", ["friction", "quadratic_damping", "cubic_damping"])
@pytest.mark.parametrize("joint", ["pin1", "pivot", "pin2", "spring"])
@pytest.mark.parametrize("speed", [1.0, 1e-2, -20.0])
def test_multipliers_with_forces_that_are_not_smooth(joint, term, speed):
    """Dependent rows: joints of the tree and of the loop, and springs between bodies, do not cross zero speed in the differences."""
    robot = sarrus.mechanisms.four_bar()
    if joint == "spring":
        b, damping = robot.to_builder(), {} if term == "friction" else {term: 30.0}
        b.add_spring(
            "spring", ("crank", (0.1, 0, 0)), ("rocker", (0.2, 0, 0)), stiffness=3.0, rest_length=0.1, **damping
        )
        robot = b.build()
    else:
        robot = robot.replace(**{term: {joint: 3.0}})
    (q, v, tau), zero = driven(robot, 0.5, speed), np.zeros(3)
    found = D.forward_dynamics(robot, q, v, tau)
    d, u = found.displacement @ np.ones(3), found.change @ np.ones(3)
    wanted = slope(multipliers_along(robot, q, v, tau, (zero, u, zero)), 1e-4 * abs(speed))
    assert_close(found.multipliers.v @ u, wanted, 1e-6)
    wanted = slope(multipliers_along(robot, q, v, tau, (d, found.velocity @ d, zero)), 1e-3)
    assert_close(found.multipliers.q @ d, wanted, 1e-5)  # projected positions are known to 1e-9


@pytest.mark.parametrize("beside", [1e-2, 1e-5, -1e-5])
def test_multipliers_with_friction_of_a_joint_that_turns_back(beside):
    """Friction is a constant effort, however slow the joint is. Quadratic damping has no slope at rest."""
    robot = sarrus.mechanisms.four_bar()
    pivot = robot.joint("pivot").v_slice.start
    low, high = 1.8, 2.4  # angles of the crank between which the rocker turns back
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = driven(robot, middle, 1.0)[1][pivot] * driven(robot, low, 1.0)[1][pivot] > 0
        low, high = (middle, high) if same else (low, middle)
    q, v, tau = driven(robot, low + beside, 1.0)
    assert 0 < abs(v[pivot]) < 2 * abs(beside)
    effort, rate = -3.0 * np.eye(3)[pivot], v[pivot]
    for changes, same in (
        ({"friction": {"pivot": 3.0}}, robot),
        ({"quadratic_damping": {"pivot": 3.0}}, robot.replace(damping={"pivot": 6.0 * abs(rate)})),
    ):
        constant = effort * np.sign(rate) if "friction" in changes else -effort * rate * abs(rate)
        found = D.forward_dynamics(robot.replace(**changes), q, v, tau).multipliers
        wanted = D.forward_dynamics(same, q, v, tau + constant).multipliers
        for name in ("q", "v", "tau"):
            assert_close(getattr(found, name), getattr(wanted, name), 1e-6)


@pytest.mark.parametrize("time", [0.1, np.float64(0.1), np.array([0.1, 0.2])])
def test_multipliers_of_dependent_rows_at_times(time):
    """Any number is a time."""
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_prescribed_motion("swing", "motor", sarrus.laws.harmonic(0.3, 4.0))
    robot, zero = b.build().replace(friction={"pin1": 0.3, "pin2": 0.2}), np.zeros(3)
    q = np.stack([robot.assemble(time=t) for t in np.atleast_1d(time)])
    v = np.stack([robot.complete_velocity(x, {}, time=t) for x, t in zip(q, np.atleast_1d(time), strict=True)])
    found = D.forward_dynamics(robot, q, v, zero, time=time).multipliers
    for i, t in enumerate(np.atleast_1d(time)):
        one = D.forward_dynamics(robot, q[i], v[i], zero, time=float(t)).multipliers
        assert_close(found.q[i], one.q, 1e-12)
        assert_close(
            one.tau @ np.ones(3),
            slope(multipliers_along(robot, q[i], v[i], zero, (zero, zero, np.ones(3)), time=t)),
            NEAR,
        )


def test_rows_that_contradict_off_the_loops_are_told():
    robot = sarrus.mechanisms.bennett()
    q = robot.assemble()
    v = robot.project_velocity(q, np.ones(robot.nv))
    found = D.forward_dynamics(robot, q, v, np.zeros(robot.nv), along="any")
    assert found.residual_q.max() > 1e-3
    assert_array_equal(found.displacement, np.eye(robot.nv))


# ---- products with one vector ----------------------------------------------------------------------------------------


@examples(25)
@given(mechanisms(springs=True, friction=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_products_of_inverse_dynamics(robot, seed):
    """For every joint, in both directions, with wrenches and moving ground: equal to those of the matrices."""
    rng = np.random.default_rng(seed)
    state = random_state(robot, rng)
    loads = {
        "wrenches": {rng.choice(robot.bodies): rng.normal(size=6)},
        "base_velocity": rng.normal(size=6),
        "base_acceleration": rng.normal(size=6),
    }
    w, *changes = rng.normal(size=(4, robot.nv))
    matrices = D.inverse_dynamics(robot, *state, **loads)
    found = D.inverse_dynamics_vjp(robot, *state, w, **loads)
    for name in ("q", "v", "a"):
        assert_close(getattr(found, name), w @ getattr(matrices, name), 1e-12)
    assert_close(found.parameters, w @ matrices.parameters, 1e-12)
    assert_close(
        D.inverse_dynamics_vjp(robot, *state, w).parameters, w @ D.inverse_dynamics(robot, *state).parameters, 1e-12
    )
    along = sum(m @ d for m, d in zip((matrices.q, matrices.v, matrices.a), changes, strict=True))
    assert_close(D.inverse_dynamics_jvp(robot, *state, *changes, **loads), along, 1e-12)


@examples(25)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds(), st.sampled_from(["tangent", "any"]))
def test_products_of_forward_dynamics(closed, seed, along):
    """For all kinds of constraints and loop joints: equal to those of the matrices, and by inertial parameters to differences."""
    rng = np.random.default_rng(seed)
    robot, state = closed.robot, (closed.q, closed.v, closed.tau)
    how = {"time": closed.time, "along": along, "return_status": True}
    w, *changes = rng.normal(size=(4, robot.nv))
    matrices, status = D.forward_dynamics(robot, *state, **how)
    assume(status == 0 and matrices.residual_q.max(initial=0.0) < 1e-9)
    found, status = D.forward_dynamics_vjp(robot, *state, w, **how)
    assert status == 0
    size = max(np.abs(m).max(initial=1.0) for m in (matrices.q, matrices.v, matrices.tau))
    for name in ("q", "v", "tau"):
        assert_allclose(getattr(found, name), w @ getattr(matrices, name), rtol=0, atol=1e-9 * size)
    a = robot.forward_dynamics(*state, time=closed.time)
    assert_allclose(found.parameters, -found.tau @ robot.regressor(closed.q, closed.v, a), rtol=0, atol=1e-9 * size)
    wanted = sum(m @ d for m, d in zip((matrices.q, matrices.v, matrices.tau), changes, strict=True))
    product, status = D.forward_dynamics_jvp(robot, *state, *changes, **how)
    assert status == 0
    assert_allclose(product, wanted, rtol=0, atol=1e-9 * size)


@examples(25)
@given(
    closed_mechanisms(kinds=st.just(("fixed", "revolute", "prismatic", "cylindrical", "planar", "spherical"))),
    seeds(),
    st.sampled_from(["tangent", "any"]),
)
@example(
    random_closed(1666, bodies=4, loops=1, copies=1, branching=0.0, kinds=SMOOTH), 0, "any"
)  # columns not in the order of links
def test_matrices_of_plain_joints_are_what_dual_numbers_say(closed, seed, along):
    """The recursions for all columns agree with products along one direction by dual numbers."""
    robot, state, rng = closed.robot, (closed.q, closed.v, closed.tau), np.random.default_rng(seed)
    how = {"time": closed.time, "along": along, "return_status": True}
    matrices, status = D.forward_dynamics(robot, *state, **how)
    assume(status == 0)
    for d, e in rng.normal(size=(2, 2, robot.nv)):
        product, verdict = D.forward_dynamics_jvp(robot, *state, d, e, e, **how)
        assume(verdict == 0)
        size = max(np.abs(m).max(initial=1.0) for m in (matrices.q, matrices.v, matrices.tau))
        wanted = matrices.q @ d + matrices.v @ e + matrices.tau @ e
        assert_allclose(product, wanted, rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize("cut", [0, 2])
@pytest.mark.parametrize("name", ["four_bar", "delta", "stewart", "bennett"])
def test_rotors_in_joints_that_close_loops(name, cut):
    """Matrix, products and differences agree."""
    description = getattr(sarrus.mechanisms, name)().description
    closing = sarrus.Mechanism(description).loop_joints
    joints = [
        dataclasses.replace(j, joint=dataclasses.replace(j.joint, armature=0.3)) if j.name in closing else j
        for j in description.joints
    ]
    robot = sarrus.Mechanism(dataclasses.replace(description, joints=joints), substructures=cut)
    rng, n = np.random.default_rng(1), robot.nv
    q = robot.assemble(tolerance=1e-13)
    v, tau = robot.project_velocity(q, rng.normal(size=n)), rng.normal(size=n)
    found, at = D.forward_dynamics(robot, q, v, tau), robot.forward_dynamics(q, v, tau)
    assert_close(found.tau, [robot.forward_dynamics(q, v, tau + e) - at for e in np.eye(n)])  # which is symmetric
    d, u, w = rng.normal(size=(3, n))
    step = found.displacement @ d
    there = [robot.project_configuration(robot.integrate(q, s * step)) for s in (1e-4, -1e-4, 2e-4, -2e-4)]
    a = [robot.forward_dynamics(x, robot.project_velocity(x, v), tau) for x in there]
    moved = [robot.project_velocity(x, v) for x in there]
    along, follows = ((8 * (x[0] - x[1]) - (x[2] - x[3])) / 12e-4 for x in (a, moved))
    assert_close(found.q @ d + found.v @ (follows - found.velocity @ d), along, 1e-6)
    wanted = found.q @ d + found.v @ u + found.tau @ w
    assert_close(D.forward_dynamics_jvp(robot, q, v, tau, d, u, w), wanted)
    product = D.forward_dynamics_vjp(robot, q, v, tau, w)
    for part in ("q", "v", "tau"):
        assert_close(getattr(product, part), w @ getattr(found, part))


def test_the_gradient_by_inertial_parameters_is_that_of_the_accelerations():
    description = sarrus.mechanisms.slider_crank().description
    bodies = [dataclasses.replace(b, inertia=b.inertia + sarrus.Inertia.sphere(1.0, 0.5)) for b in description.bodies]
    change = 0.1 * np.random.default_rng(0).normal(size=(len(bodies), 10))

    def robot(share):
        inertias = [
            sarrus.Inertia.from_parameters(b.inertia.parameters + share * d)
            for b, d in zip(bodies, change, strict=True)
        ]
        heavier = [dataclasses.replace(b, inertia=inertia) for b, inertia in zip(bodies, inertias, strict=True)]
        return sarrus.Mechanism(dataclasses.replace(description, bodies=heavier))

    q = robot(0).project_configuration([0.4, -0.3, 0.0])
    v, w = robot(0).project_velocity(q, np.ones(3)), np.array([1.0, -2.0, 0.5])
    found = D.forward_dynamics_vjp(robot(0), q, v, v, w).parameters
    assert_close(found @ change.ravel(), slope(lambda s: w @ robot(s).forward_dynamics(q, v, v), 1e-3), 1e-9)


@pytest.mark.parametrize("name", OVERCONSTRAINED)
def test_products_where_rows_depend_on_each_other(name):
    robot = getattr(sarrus.mechanisms, name)()
    rng = np.random.default_rng(0)
    q = robot.assemble()
    v = robot.project_velocity(q, rng.normal(size=robot.nv))
    tau, w, d, e = rng.normal(size=(4, robot.nv))
    matrices = D.forward_dynamics(robot, q, v, tau)
    found = D.forward_dynamics_vjp(robot, q, v, tau, w)
    assert_close(found.q, w @ matrices.q, 1e-8)
    assert_close(found.v, w @ matrices.v, 1e-8)
    assert_close(
        D.forward_dynamics_jvp(robot, q, v, tau, d, e, tau), matrices.q @ d + matrices.v @ e + matrices.tau @ tau, 1e-8
    )


@pytest.mark.parametrize("maker", ["ring", "four_bar_ladder", "net"])
def test_products_of_substructures(maker):
    robot = getattr(sarrus.mechanisms, maker)(*(3,) * (maker == "net") or (12,))
    cut = sarrus.Mechanism(robot.description, substructures=3)
    rng = np.random.default_rng(1)
    q = robot.assemble()
    v, tau, w = robot.project_velocity(q, rng.normal(size=robot.nv)), *rng.normal(size=(2, robot.nv))
    found, wanted = D.forward_dynamics_vjp(cut, q, v, tau, w), D.forward_dynamics_vjp(robot, q, v, tau, w)
    matrices = D.forward_dynamics(robot, q, v, tau)
    for name in ("q", "v", "tau", "parameters"):
        assert_close(getattr(found, name), getattr(wanted, name), 1e-8)
    for name in ("q", "v", "tau"):
        assert_close(getattr(wanted, name), w @ getattr(matrices, name), 1e-8)


@pytest.mark.parametrize("product", ["vjp", "jvp"])
@pytest.mark.parametrize("where", ["off the loops", "at a singular position"])
def test_products_say_where_there_is_no_derivative(where, product):
    singular = where != "off the loops"
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0) if singular else sarrus.mechanisms.bennett()
    q = np.zeros(3) if singular else robot.assemble()
    v = robot.project_velocity(q, [1.0, -1.0, 1.0])
    ask, ones = getattr(D, f"forward_dynamics_{product}"), (np.ones(3),) * (1 if product == "vjp" else 3)
    how = {"along": "tangent" if singular else "any"}
    _, status = ask(robot, q, v, np.zeros(3), *ones, return_status=True, **how)
    assert status == sarrus.results.Status.INCONSISTENT_CONSTRAINTS
    with pytest.raises(sarrus.StateError, match="no derivative"):
        ask(robot, q, v, np.zeros(3), *ones, **how)


def test_products_of_a_batch():
    robot = sarrus.mechanisms.stewart()
    rng = np.random.default_rng(0)
    q = robot.random(1, 6, closed=True)
    v = robot.project_velocity(q, rng.normal(size=(6, robot.nv)))
    tau, w = rng.normal(size=(2, 6, robot.nv))
    q[2] = np.nan
    found, status = D.forward_dynamics_vjp(robot, q, v, tau, w, threads=2, return_status=True)
    assert_array_equal(status, [0, 0, 1, 0, 0, 0])
    assert np.isnan(found.q[2]).all()
    assert_are_those_of_each(
        found, status, lambda i, **how: D.forward_dynamics_vjp(robot, q[i], v[i], tau[i], w[i], **how)
    )
    place = np.empty((6, robot.nv))
    along = D.forward_dynamics_jvp(robot, q[3], v[3], tau[3], w, w, w[0], out=place)
    assert along is place
    assert_array_equal(along[1], D.forward_dynamics_jvp(robot, q[3], v[3], tau[3], w[1], w[1], w[0]))


def assert_are_those_of_each(found, status, one, digits=1e-10):
    """Check that results of a batch equal those of each state, up to rounding."""
    for i in range(len(status)):
        alone, verdict = one(i, return_status=True)
        assert status[i] == verdict
        for field in dataclasses.fields(alone):
            x, y = getattr(found, field.name), getattr(alone, field.name)
            if y is not None and verdict == 0:
                assert_allclose(x[i], y, rtol=0, atol=digits * np.abs(y).max(initial=1.0))


@examples(15)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds(), st.sampled_from(["tangent", "any"]))
def test_products_of_closed_mechanisms_side_by_side(closed, seed, along):
    robot, rng = closed.robot, np.random.default_rng(seed)
    how = {"time": closed.time, "return_status": True}
    v, _ = robot.project_velocity(closed.q, closed.v + rng.normal(size=(5, robot.nv)), **how)
    tau, w = rng.normal(size=(2, 5, robot.nv))

    def forward(i, **options):
        return D.forward_dynamics_vjp(robot, closed.q, v[i], tau[i], w[i], time=closed.time, along=along, **options)

    assert_are_those_of_each(*forward(slice(None), return_status=True), forward, 1e-8)
    if robot.nu:
        u = rng.normal(size=(5, robot.nu))

        def efforts(i, **options):
            return D.actuator_efforts_vjp(robot, closed.q, v[i], tau[i], u[i], time=closed.time, check=False, **options)

        assert_are_those_of_each(*efforts(slice(None), return_status=True), efforts, 1e-8)


@examples(15)
@given(mechanisms(springs=True, friction=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_products_of_trees_side_by_side(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, a = (np.stack(x) for x in zip(*(random_state(robot, rng) for _ in range(5)), strict=True))
    w = rng.normal(size=(5, robot.nv))
    loads = {"wrenches": {rng.choice(robot.bodies): rng.normal(size=6)}, "base_velocity": rng.normal(size=6)}

    def inverse(i, **options):
        return D.inverse_dynamics_vjp(robot, q[i], v[i], a[i], w[i], dimensions=True, **loads, **options)

    def forward(i, **options):
        return D.forward_dynamics_vjp(robot, q[i], v[i], a[i], w[i], **options)

    for ask in (inverse, forward):
        assert_are_those_of_each(*ask(slice(None), return_status=True), ask)


def test_products_tell_state_by_state_where_there_is_no_derivative():
    """In a batch only the singular state, the one off the loops, and the one with inconsistent rows fail."""
    # its rows depend on one another in the singular state alone
    robot = sarrus.without_redundant_constraints(sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0))
    q = robot.assemble(fixed={"motor": 0.7}, branch="any")
    q = np.stack([q, np.zeros(3), q, q + np.array([0.0, 0.1, 0.0]), q])
    v, w = np.zeros((5, 3)), np.ones(3)
    v[0] = v[4] = robot.project_velocity(q[0], [1.0, -1.0, 1.0])
    found, status = D.forward_dynamics_vjp(robot, q, v, v, w, return_status=True)
    assert_array_equal(status, [0, 3, 0, 4, 0])
    assert_are_those_of_each(
        found, status, lambda i, **how: D.forward_dynamics_vjp(robot, q[i], v[i], v[i], w, **how), 1e-9
    )
    robot = sarrus.mechanisms.bennett()  # at rest rows agree
    q = robot.assemble()
    v = np.array([[0.0], [1.0]] * 3) * robot.project_velocity(q, np.ones(3))
    how = {"along": "any", "return_status": True}
    found, status = D.forward_dynamics_vjp(robot, q, v, v[0], w, **how)
    assert_array_equal(status, [D.forward_dynamics_vjp(robot, q, one, v[0], w, **how)[1] for one in v])
    assert status[1] == 3


# ---- what the library chooses ----------------------------------------------------------------------------------------


class Bodies:
    """A closed state in terms of its bodies."""

    def __init__(self, closed):
        self.robot, self.q, self.v, self.zero = closed.robot, closed.q, closed.v, np.zeros(closed.robot.nv)
        self.a = self.robot.forward_dynamics(self.q, self.v, self.zero, time=closed.time)
        self.found = D.forward_dynamics(self.robot, self.q, self.v, self.zero, time=closed.time)
        self.J = self.of(self.robot.jacobian, self.q)

    def of(self, function, *state):
        bodies = sorted(self.robot.bodies)
        return np.concatenate([function(*state, body, expressed_in="world_aligned") for body in bodies])

    def motion(self, moved):
        """Return the displacement or velocity of the joints that gives the bodies this motion."""
        x = np.linalg.lstsq(self.J, moved, rcond=1e-10)[0]
        assert_allclose(self.J @ x, moved, atol=1e-7 * max(1.0, np.abs(moved).max(initial=0.0)))
        return x

    def rate(self, d, w, da):
        """Return the rates of the bodies' velocities and accelerations along a change of the joints' positions, velocities and accelerations."""

        def there(s):
            q, v, a = self.robot.integrate(self.q, s * d), self.v + s * w, self.a + s * da
            return np.stack([self.of(self.robot.velocity, q, v), self.of(self.robot.acceleration, q, v, a)])

        return slope(there, 1e-3 / max(1.0, np.abs(d).max(initial=0.0)))

    def change(self, d, w):
        """Return the change of these rates with positions and velocities."""
        return self.rate(d, w, self.found.q @ d + self.found.v @ (w - self.found.velocity @ d))


@examples(15)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds())
def test_joints_that_close_loops_are_a_choice(closed, seed):
    """A change of the state, converted to another tree, causes the same change of the bodies' accelerations."""
    rng = np.random.default_rng(seed)
    one, other = Bodies(closed), Bodies(recut(closed, rng))
    d = one.found.displacement @ rng.normal(size=len(one.v))
    w = one.found.velocity @ d + one.found.change @ rng.normal(size=len(one.v))
    faster, wanted = one.change(d, w)
    d = other.motion(one.J @ d)
    w = other.motion(faster - other.rate(d, other.zero, other.zero)[0])
    assert_close(other.change(d, w)[1], wanted, 1e-6)


@pytest.mark.parametrize("maker", ["ring", "delta", "four_bar_ladder"])
@pytest.mark.parametrize("bodies", [1, 3])
def test_substructures_are_a_choice(maker, bodies):
    make = getattr(sarrus.mechanisms, maker)
    description = (make(12) if maker != "delta" else make()).description
    whole, cut = (sarrus.Mechanism(description, substructures=n) for n in (0, bodies))
    rng = np.random.default_rng(1)
    q = whole.assemble()
    v, tau = whole.project_velocity(q, rng.normal(size=whole.nv)), rng.normal(size=whole.nv)
    found, wanted = D.forward_dynamics(cut, q, v, tau), D.forward_dynamics(whole, q, v, tau)
    for field in dataclasses.fields(wanted):
        if not field.name.startswith(("residual", "_")):
            assert_close(getattr(found, field.name), getattr(wanted, field.name), 1e-8)


def test_a_batch_is_its_states():
    robot = sarrus.mechanisms.stewart()
    rng = np.random.default_rng(0)
    q = robot.random(1, 6, closed=True)
    v = robot.project_velocity(q, rng.normal(size=(6, robot.nv)))
    tau = rng.normal(size=(6, robot.nv))
    q[2] = np.nan
    found, status = D.forward_dynamics(robot, q, v, tau, threads=2, return_status=True)
    assert_array_equal(status, [0, 0, 1, 0, 0, 0])
    assert np.isnan(found.q[2]).all()
    one = D.forward_dynamics(robot, q[4], v[4], tau[4])
    for field in dataclasses.fields(one):
        if not field.name.startswith("_"):
            assert_array_equal(getattr(found, field.name)[4], getattr(one, field.name))
    for name in ("q", "v", "tau"):
        assert_array_equal(getattr(found.multipliers, name)[4], getattr(one.multipliers, name))
    assert np.isnan(found.multipliers.q[2]).all()


@examples(20)
@given(mechanisms(springs=True, friction=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_a_batch_of_a_tree_is_its_states(robot, seed):
    """For trees states are in lanes; for one state, directions."""
    rng = np.random.default_rng(seed)
    states = [random_state(robot, rng) for _ in range(7)]
    q, v, a = (np.stack(x) for x in zip(*states))
    loads = {"wrenches": {rng.choice(robot.bodies): rng.normal(size=(7, 6))}}
    ground = {"base_velocity": rng.normal(size=6), "base_acceleration": rng.normal(size=6)}
    lost = robot.nv > 0
    if lost:
        v[5, 0] = np.nan
    inverse, status = D.inverse_dynamics(robot, q, v, a, **loads, **ground, return_status=True)
    forward, _ = D.forward_dynamics(robot, q, v, a, **loads, check=False, threads=2, return_status=True)
    assert_array_equal(status, [0] * 5 + [int(lost), 0])
    for i in (0, 3, 4, 6):
        load = {"wrenches": {name: w[i] for name, w in loads["wrenches"].items()}}
        one = D.inverse_dynamics(robot, q[i], v[i], a[i], **load, **ground)
        for name in ("q", "v", "a"):
            assert_close(getattr(inverse, name)[i], getattr(one, name), 1e-12)
        one, rounding = (
            D.forward_dynamics(robot, q[i], v[i], a[i], **load),
            np.linalg.cond(robot.mass_matrix(q[i])) * 1e-14 if lost else 0.0,
        )
        for name in ("q", "v", "tau", "displacement", "change", "velocity"):
            assert_close(getattr(forward, name)[i], getattr(one, name), 1e-12 + rounding)


# ---- singular positions, and what has no derivative ------------------------------------------------------------------


@pytest.mark.parametrize("angle", [1e-1, 1e-3, 1e-4])
def test_near_a_singular_position(angle):
    """A nearly flat parallelogram moves like its crank: I(q) a + I' v^2 / 2 + g(q) = tau, in closed form."""
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    q = robot.project_configuration([angle, -angle, angle])
    v = robot.complete_velocity(q, {"motor": 1.3})
    tau = np.array([0.7, 0.0, 0.0])
    found = D.forward_dynamics(robot, q, v, tau)
    d = found.displacement[:, 0] / found.displacement[0, 0]
    assert_allclose(d, [1, -1, 1], atol=1e-9)
    g = 9.81  # rods of 1 kg: two that turn about an end, and one that goes with both; I is constant
    I, slope_of_weight = 2 * 0.5**2 / 3 + 0.5**2, (2 * 0.25 + 0.5) * g * np.sin(angle)
    a = found.q[:, 0] / found.displacement[0, 0]
    assert_allclose(a, np.array([1, -1, 1]) * a[0], atol=1e-6)
    assert_allclose(abs(a[0]), slope_of_weight / I, atol=1e-6)


def test_a_singular_position_has_a_status():
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    flat = np.zeros(3)
    v = robot.project_velocity(flat, [1.0, -1.0, 1.0])
    _, status = D.forward_dynamics(robot, flat, v, np.zeros(3), return_status=True)
    assert status == sarrus.results.Status.INCONSISTENT_CONSTRAINTS
    with pytest.raises(sarrus.StateError, match="singular"):
        D.forward_dynamics(robot, flat, v, np.zeros(3))


def test_what_is_refused_and_warned_of():
    pendulum = sarrus.mechanisms.pendulum()
    with pytest.raises(ValueError, match="'tangent' or 'any'"):
        D.forward_dynamics(pendulum, [0.0], [0.0], [0.0], along="here")
    b = sarrus.Builder()
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("pin", sarrus.Revolute("y", friction=0.2), "ground", "bob", at_child=(0, 0, 1))
    for ask in (D.inverse_dynamics, D.forward_dynamics):
        with pytest.warns(sarrus.ModelWarning, match="'pin' is at rest"):
            ask(b.build(), [0.0], [0.0], [0.0])


@examples(10)
@given(closed_mechanisms(kinds=st.just(("pfaffian of q",))))
def test_rows_of_the_user_have_no_rate(closed):
    assume(closed.robot._asks_for_rows)
    with pytest.raises(sarrus.StateError, match="function of q"):
        D.forward_dynamics(closed.robot, closed.q, closed.v, closed.tau, time=closed.time)


# ---- what motors must do ---------------------------------------------------------------------------------------------


@examples(20)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds(), st.booleans())
def test_actuator_efforts(closed, seed, weighted):
    """Differences along the loops; motors in tree joints and in loop joints, redundant and weighted."""
    rng = np.random.default_rng(seed)
    robot, q, v, time = closed.robot, closed.q, closed.v, closed.time
    how = {"time": time, "return_status": True}
    D_a, status = D.forward_dynamics(robot, q, v, 0 * v, **how)
    assume(robot.nu > 0 and status == 0)
    how |= {"weights": rng.uniform(0.5, 2.0, robot.nu)} if weighted else {}
    a = robot.forward_dynamics(q, v, 0 * v, time=time)
    assume(robot.actuator_efforts(q, v, a, **how)[1] == 0)
    found, status = D.actuator_efforts(robot, q, v, a, **how)
    assert status == 0
    d, w, b = D_a.displacement @ rng.normal(size=robot.nv), *rng.normal(size=(2, robot.nv))

    def efforts(s_q=0.0, s_v=0.0, s_a=0.0):
        there = robot.project_configuration(robot.integrate(q, s_q * d), time=time) if s_q else q
        return robot.actuator_efforts(there, v + s_v * w, a + s_a * b, check=False, **how)[0]

    h = 2e-4 / max(1.0, np.abs(d).max())
    for column, wanted, digits in (
        (found.q @ d, slope(lambda s: efforts(s_q=s), h), 1e-6),
        (found.v @ w, slope(lambda s: efforts(s_v=s), 1e-2), 1e-8),
        (found.a @ b, efforts(s_a=1.0) - efforts(), 1e-8),
    ):
        size = max(1.0, np.abs(wanted).max(), np.abs(found.q).max(), np.abs(efforts()).max())
        assert_allclose(column, wanted, rtol=0, atol=digits * size)
    cotangent = rng.normal(size=robot.nu)
    product, _ = D.actuator_efforts_vjp(robot, q, v, a, cotangent, **how)
    for name in ("q", "v", "a", "parameters"):
        assert_close(getattr(product, name), cotangent @ getattr(found, name), 1e-9)


def test_efforts_of_redundant_motors_in_joints_that_close_loops():
    """Every joint of a four-bar has a motor; the loop joint has no special role."""
    description = sarrus.mechanisms.four_bar().description
    joints = [dataclasses.replace(j, actuated=True) for j in description.joints]
    one = sarrus.Mechanism(dataclasses.replace(description, joints=joints))
    other = sarrus.Mechanism(
        dataclasses.replace(
            description, joints=[dataclasses.replace(j, loop=j.name == "pin1", tree=j.name == "pin2") for j in joints]
        )
    )
    assert one.loop_joints != other.loop_joints
    wanted = None
    for robot in (one, other):
        q = robot.assemble(fixed={"motor": 0.7}, tolerance=1e-13)
        v = robot.complete_velocity(q, {"motor": 2.0})
        a = robot.complete_acceleration(q, v, {"motor": 1.0})
        D_u = D.actuator_efforts(robot, q, v, a)
        found = dict(zip(robot.actuated, D_u.q @ v + D_u.v @ a, strict=True))

        def along(s, robot=robot, q=q, v=v, a=a):
            there = robot.project_configuration(robot.integrate(q, s * v))
            return robot.actuator_efforts(there, v + s * a, a, check=False)

        assert_close(np.array(list(found.values())), slope(along, 1e-3), 1e-8)
        efforts = dict(zip(robot.actuated, robot.actuator_efforts(q, v, a), strict=True))
        wanted = wanted or efforts
        assert_close(np.array([efforts[name] for name in wanted]), list(wanted.values()), 1e-9)


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-12, 0.0])
def test_efforts_near_a_singular_position(angle):
    """The closed form, or a status; a batch equals single states."""
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    d = np.array([1.0, -1.0, 1.0])
    q, v = angle * d, 1.3 * d
    a = 3.0 * d
    found, status = D.actuator_efforts(robot, q, v, a, return_status=True)
    assert D.actuator_efforts_vjp(robot, q, v, a, [1.0], return_status=True)[1] == status
    assert_array_equal(D.actuator_efforts(robot, np.stack([q] * 5), v, a, return_status=True)[1], np.repeat(status, 5))
    if angle < 1e-4:
        assert status == sarrus.results.Status.NO_ANSWER
        with pytest.raises(sarrus.StateError, match="singular"):
            D.actuator_efforts(robot, q, v, a)
        return
    assert status == 0
    assert_allclose(found.q[0] @ d, (2 * 0.25 + 0.5) * 9.81 * np.sin(angle), atol=1e-8)


def test_efforts_that_nobody_can_give():
    b = sarrus.Builder()
    body = sarrus.Inertia.sphere(1.0, 0.1)
    b.add_body("one", body)
    b.add_body("two", body)
    b.add_joint("driven", sarrus.Revolute("y"), "ground", "one", at_child=(0, 0, 1), actuated=True)
    b.add_joint("loose", sarrus.Revolute("y"), "one", "two", at_child=(0, 0, 1))
    robot = b.build()
    ask = (robot, [0.3, 0.2], [0.0, 0.0], [1.0, 0.0])
    assert D.actuator_efforts(*ask, return_status=True)[1] == sarrus.results.Status.INCONSISTENT_CONSTRAINTS
    with pytest.raises(sarrus.NotRealizableError, match="'loose'"):
        D.actuator_efforts(*ask)
    with pytest.raises(sarrus.ShapeError, match="cotangent has shape"):
        D.actuator_efforts_vjp(*ask, [1.0, 2.0])
