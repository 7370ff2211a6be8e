"""Reduced and projected equations of motion: as many coordinates as degrees of freedom, for any loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from tests.random_closed import CLOSING, RELATIONS, random_closed
from tests.small_mechanisms import near_home

EXACT = 1e-10  # of the largest entry: rounding over the worst conditioned constraint that is drawn, and some products


def agree(got, expected, tolerance=EXACT):
    assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


def times(A, x):
    return (A @ x[..., None])[..., 0]


def later(robot, q, v, h):
    """Return the configuration of a motion without forces after h, to third order, with closed loops."""
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    return robot.project_configuration(robot.integrate(q, h * v + h**2 / 2 * a))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture(params=range(10))
def closed(request):
    """Return a random mechanism with loops in a state, and its constrained acceleration by the slow reference."""
    k = request.param
    s = random_closed(k, kinds=CLOSING if k % 2 else (*CLOSING, *RELATIONS), copies=k % 3, loops=1 + k % 3)
    return s.robot, s.q, s.v, s.tau, s.oracle.forward_dynamics(s.q, s.v, s.tau)


# ---- projections -----------------------------------------------------------------------------------------------------


def test_projections(closed):
    """Lemmas 1 and 2 of the slides: P_T keeps allowed motions, P_omega removes J^T, and M maps one to the other."""
    robot, q, *_ = closed
    P_omega, P_T = sarrus.formulations.projections(robot, q)
    J, M = robot.constraint_jacobian(q), robot.mass_matrix(q)
    size = np.abs(P_T).max() ** 2
    assert_allclose(P_T @ P_T, P_T, atol=EXACT * size)
    assert_allclose(P_omega @ M, M @ P_T, atol=EXACT * size * np.abs(M).max())
    assert_allclose(J @ P_T, 0, atol=EXACT * size)
    assert_allclose(P_omega @ J.T, 0, atol=EXACT * size)
    assert np.trace(P_T).round(6) == robot.nv - np.linalg.matrix_rank(J, tol=1e-9)


def test_projected_equations(closed):
    robot, q, v, tau, a = closed
    s = sarrus.formulations.projected_dynamics(robot, q, v, tau)
    agree(s.acceleration, a)
    agree(s.inertia @ a + s.bias, s.force)
    agree(s.curvature, s.across + s.constraint_force)
    agree(robot.constraint_jacobian(q).T @ s.multipliers, s.constraint_force)
    agree(
        sarrus.formulations.virtual_work(robot, q, v, a, tau),
        np.zeros(robot.nv),
        EXACT * np.abs(s.P_omega).max() * np.abs(tau).max(),
    )


def test_projected_velocity_is_the_nearest(rng):
    robot = sarrus.mechanisms.stewart()
    q, _ = near_home(robot, rng, (4,))
    v = rng.standard_normal((4, robot.nv))
    agree(times(sarrus.formulations.projections(robot, q)[1], v), robot.project_velocity(q, v))


def test_more_of_the_same_rows_change_nothing():
    plain, copied = (random_closed(5, loops=1, copies=copies) for copies in (0, 2))
    assert copied.robot.nc > plain.robot.nc
    for one, other in zip(
        sarrus.formulations.projections(plain.robot, plain.q),
        sarrus.formulations.projections(copied.robot, plain.q),
        strict=True,
    ):
        agree(one, other)


def test_curvature_does_not_depend_on_coordinates(rng):
    """A ball on a rod in Cartesian coordinates, and in polar ones with Coriolis forces, has the same force along the rod."""
    b = sarrus.Builder("ball on a rod", gravity=(0, 0, 0))
    b.add_body("ball", sarrus.Inertia.from_points([2.0], [(0, 0, 0)]))
    b.add_joint("place", sarrus.Gimbal("tx ty tz"), "ground", "ball")
    b.add_distance("rod", ("ground", (0, 0, 0)), ("ball", (0, 0, 0)), length=1.5)
    cartesian = b.build()
    q = np.array([0.5, 1.0, 1.0])
    q *= 1.5 / np.linalg.norm(q)
    v = cartesian.project_velocity(q, [1.0, -2.0, 0.5])
    agree(sarrus.formulations.projected_dynamics(cartesian, q, v).curvature, -2.0 * (v @ v) / 1.5**2 * q)

    b = sarrus.Builder("ball on a telescope", gravity=(0, 0, 0))
    b.add_body("fork")
    b.add_body("ball", sarrus.Inertia.from_points([2.0], [(0, 0, 0)]))
    b.add_joint("turn", sarrus.Universal("z", "y"), "ground", "fork")
    b.add_joint("reach", sarrus.Prismatic("x"), "fork", "ball")
    b.add_distance("rod", ("ground", (0, 0, 0)), ("ball", (0, 0, 0)), length=1.5)
    polar = b.build()
    angles = np.array([np.arctan2(q[1], q[0]), np.arcsin(-q[2] / 1.5), 1.5])
    at = np.linalg.solve(polar.jacobian(angles, "ball", expressed_in="world_aligned")[3:], v)
    agree(polar.pose(angles, "ball")[:3, 3], q)
    # along the reach it is the same force; across it nothing of it is left
    agree(sarrus.formulations.projected_dynamics(polar, angles, at).curvature, [0, 0, -2.0 * (v @ v) / 1.5])


def test_free_motions_stand_in_the_first_columns():
    """Number and order of free motions; beside a state with more of them zeros follow, and an invalid state gives NaN."""
    robot = sarrus.mechanisms.four_bar(
        crank=1.0, coupler=2.0, rocker=1.0, ground=2.0
    )  # flat, it can also become a kite
    q = np.stack([robot.assemble(fixed={"motor": 0.7}, branch="any"), np.zeros(3), np.full(3, np.nan)])
    one, flat = (sarrus.formulations.free_motions(robot, x) for x in q[:2])
    assert (one.basis.shape, flat.basis.shape, int(one.freedom), int(flat.freedom)) == ((3, 1), (3, 2), 1, 2)
    agree(robot.constraint_jacobian(q[0]) @ one.basis[:, 0], np.zeros(robot.nc))
    for free in (one, flat):
        agree(free.basis.T @ free.basis, np.eye(int(free.freedom)))
    together = sarrus.formulations.free_motions(robot, q)
    assert together.freedom.tolist() == [1, 2, -1]
    assert_array_equal(together.basis[0, :, 1], np.zeros(3))
    for several, free in zip(together.basis, (one, flat), strict=False):
        agree(several @ several.T, free.basis @ free.basis.T)
    assert np.isnan(together.basis[2]).all()
    # nothing moves, nothing is known
    assert sarrus.formulations.free_motions(robot, q[:0]).basis.shape == (0, 3, 0)
    assert np.isnan(sarrus.formulations.free_motions(robot, q[2:]).basis).all()
    assert np.isnan(sarrus.formulations.projections(robot, q)[1][2]).all()
    assert np.isnan(sarrus.formulations.projections(robot, q[2:])[1]).all()


# ---- reduced form ----------------------------------------------------------------------------------------------------


def test_reduced_form(closed):
    robot, q, v, tau, a = closed
    form = sarrus.formulations.reduced_dynamics(robot, q, v)
    k = len(form.coordinates)
    E = robot.actuation_matrix(q, actuated=robot.joints).T[[names(robot).index(name) for name in form.coordinates]]
    agree(E @ form.jacobian, np.eye(k))
    agree(robot.constraint_jacobian(q) @ form.jacobian, np.zeros((robot.nc, k)))
    agree(form.velocity, E @ v)
    agree(form.full_velocity(form.velocity), v)
    agree(form.full_acceleration(E @ a), a)
    agree(form.inverse(E @ a), form.reduced_force(tau))
    agree(form.forward(form.reduced_force(tau)), E @ a)
    if not form.drift.any():  # no Pfaffian row asks for a velocity
        agree(0.5 * form.velocity @ form.mass_matrix @ form.velocity, robot.kinetic_energy(q, v))
        agree(form.jacobian_derivative @ form.velocity, form.bias_acceleration)


def names(robot):
    """Return the names of the velocities in reduced equations."""
    joints = [robot.joint(name) for name in robot.joints]
    return [j.name if j.nv == 1 else f"{j.name}[{k}]" for j in joints for k in range(j.nv)]


def test_chosen_coordinates_are_good_ones(closed):
    """Greedy pivots: the dependent velocities are at most 2^k times the chosen ones (here far less)."""
    robot, q, v, *_ = closed
    form = sarrus.formulations.reduced_dynamics(robot, q, v)
    assert np.abs(form.jacobian).max() <= 2.0 ** len(form.coordinates)


@pytest.mark.parametrize("make", ["five_bar", "three_rrr", "stewart", "bennett", "sarrus_linkage", "delta"])
def test_jacobian_derivative_is_the_rate(make, rng):
    """The rate along a motion, also for overconstrained mechanisms, by differences with h^2 = 1e-8."""
    robot = getattr(sarrus.mechanisms, make)()
    q, v = near_home(robot, rng)
    h = 1e-4
    form = sarrus.formulations.reduced_dynamics(robot, q, v)
    columns = [(name.split("[")[0], int(name.split("[")[1][:-1]) if "[" in name else 0) for name in form.coordinates]
    after, before = (
        sarrus.formulations.reduced_dynamics(robot, later(robot, q, v, s * h), v, independent=columns).jacobian
        for s in (1, -1)
    )
    agree(form.jacobian_derivative, (after - before) / (2 * h), 1e-5)


def test_names_of_coordinates(rng):
    robot = sarrus.mechanisms.stewart()
    q, v = near_home(robot, rng)
    platform = next(name for name in robot.joints if robot.joint(name).nv == 6)
    legs = sarrus.formulations.reduced_dynamics(robot, q, v, independent="actuated")
    assert legs.coordinates == robot.actuated
    free = sarrus.formulations.reduced_dynamics(robot, q, v, independent=[platform])
    assert free.coordinates == tuple(f"{platform}[{k}]" for k in range(6))
    swapped = sarrus.formulations.reduced_dynamics(robot, q, v, independent=[(platform, k) for k in (5, 0, 1, 2, 3, 4)])
    agree(swapped.mass_matrix, free.mass_matrix[np.ix_([5, 0, 1, 2, 3, 4], [5, 0, 1, 2, 3, 4])])
    # the same mechanism: forces along the legs that hold it at rest hold it in any coordinates
    agree(
        legs.reduced_force(robot.gravity_forces(q)),
        legs.jacobian[robot.joint(platform).v_slice].T @ free.reduced_force(robot.gravity_forces(q)),
    )


def test_task_coordinates(rng):
    """With a frame's velocity as coordinate, the mass matrix is the operational inertia of the closed mechanism."""
    robot = sarrus.mechanisms.five_bar()
    q, v = near_home(robot, rng, (6,))
    form = sarrus.formulations.reduced_dynamics(robot, q, v, task=("tip", "tx tz"))
    assert form.coordinates == ("tip tx", "tip tz")
    agree(form.velocity, robot.velocity(q, v, "tip", expressed_in="world_aligned")[:, [3, 5]])
    agree(
        form.mass_matrix,
        sarrus.formulations.operational_inertia(robot, q, "tip", components="tx tz", expressed_in="world_aligned"),
    )
    a = form.full_acceleration(np.array([1.0, -2.0]))
    agree(
        robot.acceleration(q, v, a, "tip", expressed_in="world_aligned")[:, [3, 5]],
        np.broadcast_to([1.0, -2.0], (6, 2)),
    )
    h = 1e-4
    one = [
        sarrus.formulations.reduced_dynamics(robot, later(robot, q, v, s * h), v, task=("tip", "tx tz")).jacobian
        for s in (1, -1)
    ]
    agree(form.jacobian_derivative, (one[0] - one[1]) / (2 * h), 1e-5)
    whole = sarrus.mechanisms.stewart()
    q, v = near_home(whole, rng)
    agree(
        sarrus.formulations.reduced_dynamics(whole, q, v, task="platform").mass_matrix,
        sarrus.formulations.operational_inertia(whole, q, "platform", expressed_in="world_aligned"),
    )


def test_operational_inertia_of_a_closed_mechanism(rng):
    """The inverse maps a wrench on the frame to the change of the frame's acceleration."""
    robot = sarrus.mechanisms.delta()
    q, v = near_home(robot, rng, (3,))
    inverse = sarrus.formulations.operational_inertia_inverse(robot, q, "platform")
    rest = np.zeros(robot.nv)
    for k, w in enumerate(np.eye(6)):
        pushed, left = (robot.forward_dynamics(q, v, rest, wrenches={"platform": f}) for f in (w, 0 * w))
        agree(
            robot.acceleration(q, v, pushed, "platform") - robot.acceleration(q, v, left, "platform"), inverse[..., k]
        )
    tree = sarrus.mechanisms.stanford_arm()
    q = tree.random(rng)
    agree(
        sarrus.formulations.operational_inertia_inverse(tree, q, "tip"),
        tree.jacobian(q, "tip") @ sarrus.formulations.omega(tree, q, "tip"),
    )
    with pytest.raises(AttributeError, match=r"is now sarrus.formulations.operational_inertia"):
        tree.loop_operational_inertia  # noqa: B018
    with pytest.raises(sarrus.StateError, match="'platform' can move in 3 of 6 directions"):
        sarrus.formulations.operational_inertia(robot, near_home(robot, rng)[0], "platform")


def test_prescribed_motion():
    """A prescribed joint appears in drift and bias of the other joints' equation."""
    b = sarrus.Builder("led", gravity=(0, -9.81, 0))
    for name in ("slide", "arm"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "slide")
    b.add_joint("hinge", sarrus.Revolute("z"), "slide", "arm", at_child=(-0.5, 0, 0))
    b.add_prescribed_motion("swing", "rail", sarrus.laws.harmonic(0.4, rate=3.0))
    robot, time = b.build(), np.linspace(0.0, 1.0, 5)
    x, rate, second = 0.4 * np.sin(3 * time), 1.2 * np.cos(3 * time), -3.6 * np.sin(3 * time)
    q, v = np.stack([x, 0 * x + 0.7], axis=-1), np.stack([rate, 0 * x - 2.0], axis=-1)
    form = sarrus.formulations.reduced_dynamics(robot, q, v, independent=["hinge"], time=time)
    agree(form.drift, np.stack([rate, 0 * x], axis=-1))
    agree(form.bias_acceleration, np.stack([second, 0 * x], axis=-1))
    agree(form.full_velocity(form.velocity), v)
    # a pendulum whose pivot accelerates along x
    inertia = 0.5**2 + 2 / 5 * 0.1**2
    agree(form.mass_matrix[:, 0, 0], np.full(5, inertia))
    agree(form.bias[:, 0], 0.5 * (9.81 * np.cos(0.7) - np.sin(0.7) * second))


def test_batches(rng):
    robot = sarrus.mechanisms.five_bar()
    q, v = near_home(robot, rng, (2, 3))
    form = sarrus.formulations.reduced_dynamics(robot, q, v, independent="actuated")
    cog = sarrus.formulations.cog_jacobians(robot, q, v)
    for i, j in np.ndindex(2, 3):
        one = sarrus.formulations.reduced_dynamics(robot, q[i, j], v[i, j], independent="actuated")
        for name in ("jacobian", "jacobian_derivative", "bias_acceleration", "mass_matrix", "bias"):
            agree(getattr(form, name)[i, j], getattr(one, name), 1e-11)
        agree(cog.G[i, j], sarrus.formulations.cog_jacobians(robot, q[i, j], v[i, j]).G, 1e-11)
    q[1, 2, 0] = np.nan
    spoilt = sarrus.formulations.reduced_dynamics(robot, q, v, independent="actuated")
    assert np.isnan(spoilt.mass_matrix[1, 2]).all() and np.isnan(spoilt.bias[1, 2]).all()
    assert_array_equal(spoilt.mass_matrix[0], form.mass_matrix[0])
    assert np.isnan(sarrus.formulations.projected_dynamics(robot, q, v).acceleration[1, 2]).all()
    assert np.isnan(sarrus.formulations.cog_jacobians(robot, q, v).H[1, 2]).all()


BAD = {
    "name": (["mtor"], sarrus.errors.NameNotFoundError, "no joint is named 'mtor'"),
    "string": ("left_motor", sarrus.ModelError, "a sequence of joints' names"),
    "closing": (["pin", "left_motor"], sarrus.ModelError, "'pin' closes a loop"),
    "index": ([("left_motor", 1), "right_motor"], sarrus.ModelError, "has 1 velocities"),
    "twice": (["left_motor", "left_motor"], sarrus.ModelError, "named twice"),
    "too few": (["left_motor"], sarrus.StateError, "left_motor determine 1 of 2 degrees of freedom"),
    "too many": (["left_motor", "right_motor", "left_elbow"], sarrus.StateError, "not independent: there are 2"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_coordinates(what, rng):
    independent, error, message = BAD[what]
    robot = sarrus.mechanisms.five_bar()
    with pytest.raises(error, match=message):
        sarrus.formulations.reduced_dynamics(robot, *near_home(robot, rng), independent=independent)


def test_coordinates_that_are_not_independent_here():
    """A four-bar's rocker at its dead centre does not determine the crank; in a batch only this state has no result."""
    b = sarrus.Builder("dead centre")
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 2.0)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    b.add_joint("motor", sarrus.Revolute("z"), "ground", "crank")
    b.add_joint("knee", sarrus.Revolute("z"), "crank", "coupler", at_parent=(1, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("z"), "ground", "rocker", at_parent=(2.5, 0, 0))
    b.add_joint("pin", sarrus.Revolute("z"), "coupler", "rocker", at_parent=(2, 0, 0), at_child=(2, 0, 0), loop=True)
    robot = b.build()
    # crank and coupler in one line of 3 m
    x = (9 + 6.25 - 4) / 5
    direction = np.arctan2(np.sqrt(9 - x * x), x)
    dead = np.array([direction, 0.0, np.arctan2(np.sqrt(9 - x * x), x - 2.5)])
    agree(robot.constraint_residual(dead), np.zeros(5))
    rest = np.zeros(3)
    with pytest.raises(sarrus.StateError, match="pivot determine 0 of 1 degrees of freedom"):
        sarrus.formulations.reduced_dynamics(robot, dead, rest, independent=["pivot"])
    near = robot.project_configuration(dead + 0.1 * np.eye(3)[0])
    both = sarrus.formulations.reduced_dynamics(robot, np.stack([dead, near]), rest, independent=["pivot"])
    assert np.isnan(both.mass_matrix[0]).all()
    agree(
        both.mass_matrix[1], sarrus.formulations.reduced_dynamics(robot, near, rest, independent=["pivot"]).mass_matrix
    )
    assert np.isfinite(sarrus.formulations.reduced_dynamics(robot, dead, rest).mass_matrix).all()


# ---- COG Jacobians ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["five_bar", "stewart", "bennett", "delta", "biped_leg"])
def test_cog_form_is_the_reduced_form(make, rng):
    """H, B and the energy for rigid bodies in space are sums over the links."""
    robot = getattr(sarrus.mechanisms, make)()
    q, v = near_home(robot, rng, (3,))
    form = sarrus.formulations.reduced_dynamics(robot, q, v)
    chosen = [(n.split("[")[0], int(n.split("[")[1][:-1]) if "[" in n else 0) for n in form.coordinates]
    cog = sarrus.formulations.cog_jacobians(robot, q, v, active=chosen)
    agree(cog.H, form.mass_matrix)
    agree(cog.B, form.bias)
    a = rng.standard_normal((3, len(chosen)))
    agree(cog.efforts(a), form.inverse(a))
    agree(times(cog.stack_derivative, form.velocity), cog.bias_acceleration.reshape(3, -1))
    agree(times(cog.body_G, form.velocity), times(sarrus.floating.center_of_mass_jacobian(robot, q), v))


def test_cog_jacobians_are_velocities_of_the_links(rng):
    """3: [linear; angular] velocities of the centres of gravity, in world axes."""
    robot = sarrus.mechanisms.stewart()
    q, v = near_home(robot, rng)
    cog = sarrus.formulations.cog_jacobians(robot, q, v)
    motion = times(cog.G, sarrus.formulations.reduced_dynamics(robot, q, v, independent="actuated").velocity)
    for body, got in zip(robot.description.bodies, motion, strict=True):
        R = robot.pose(q, body.name)[:3, :3]
        angular, linear = robot.velocity(q, v, body.name, expressed_in="world_aligned").reshape(2, 3)
        agree(got, [*(linear + np.cross(angular, R @ body.inertia.com)), *angular])


def test_cog_jacobians_of_redundant_motors(rng):
    """Three motors for two degrees of freedom: G of least norm gives the least torques, and its rate is correct."""
    robot = sarrus.mechanisms.three_rrr()
    q, v = near_home(robot, rng)
    a = robot.forward_dynamics(q, v, rng.standard_normal(6))
    motors = [robot.joint(name).v_slice.start for name in robot.actuated]
    cog = sarrus.formulations.cog_jacobians(robot, q, v)
    agree(cog.efforts(a[motors]), robot.actuator_efforts(q, v, a))
    agree(
        times(cog.G, v[motors]),
        times(sarrus.formulations.cog_jacobians(robot, q, v, active=["base1", "base2"]).G, v[motors[:2]]),
    )
    h = 1e-4
    after, before = (sarrus.formulations.cog_jacobians(robot, later(robot, q, v, s * h), v).G for s in (1, -1))
    agree(cog.G_dot, (after - before) / (2 * h), 1e-5)
    with pytest.raises(sarrus.StateError, match="base1 determine 1 of 2"):
        sarrus.formulations.cog_jacobians(robot, q, v, active=["base1"])


# ---- nothing moves ---------------------------------------------------------------------------------------------------


def structure():
    """Return a triangle of three bars."""
    b = sarrus.Builder("triangle")
    for name in ("left", "right"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("foot", sarrus.Revolute("y"), "ground", "left")
    b.add_joint("top", sarrus.Revolute("y"), "left", "right", at_parent=(1, 0, 0))
    b.add_joint("heel", sarrus.Revolute("y"), "right", "ground", at_parent=(1, 0, 0), at_child=(1, 0, 0), loop=True)
    return b.build()


def welded():
    b = sarrus.Builder("bracket")
    b.add_body("bracket", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("weld", sarrus.Fixed(), "ground", "bracket")
    return b.build()


@pytest.mark.parametrize("make", [structure, welded])
@pytest.mark.parametrize("lead", [(), (2,), (0,)])
def test_no_freedoms(make, lead):
    """Without coordinates the results are empty."""
    robot = make()
    q = np.broadcast_to(robot.assemble(), (*lead, robot.nq))
    v = np.zeros((*lead, robot.nv))
    form, cog = (
        sarrus.formulations.reduced_dynamics(robot, q, v),
        sarrus.formulations.cog_jacobians(robot, q, v, active=[]),
    )
    assert form.coordinates == ()
    assert form.jacobian.shape == (*lead, robot.nv, 0) and form.mass_matrix.shape == (*lead, 0, 0)
    none = np.zeros((*lead, 0))
    assert form.forward(none).shape == form.inverse(none).shape == form.reduced_force(v).shape == (*lead, 0)
    agree(form.full_velocity(none), v)
    agree(form.full_acceleration(none), v)
    assert cog.stack.shape == cog.stack_derivative.shape == (*lead, 6 * len(robot.bodies), 0)
    assert cog.H.shape == (*lead, 0, 0) and cog.body_G.shape == (*lead, 3, 0)
    assert sarrus.formulations.free_motions(robot, q).basis.shape == (*lead, robot.nv, 0)


@pytest.mark.parametrize("lead", [(0,), (1,), (2, 3)])
def test_no_sound_states(lead):
    """Invalid states do not affect the choice of coordinates."""
    robot = sarrus.mechanisms.four_bar()
    q = np.full((*lead, 3), np.nan)
    for found in (
        sarrus.formulations.reduced_dynamics(robot, q, q, independent=["motor"]).mass_matrix,
        sarrus.formulations.cog_jacobians(robot, q, q, active=["motor"]).H,
    ):
        assert found.shape == (*lead, 1, 1) and np.isnan(found).all()
