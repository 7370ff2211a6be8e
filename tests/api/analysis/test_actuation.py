"""Motor efforts in closed mechanisms: unique, impossible, or the best of many."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.analysis import actuation
from tests.oracles.reactions import Equilibrium
from tests.random_closed import CLOSING, RELATIONS, random_closed
from tests.small_mechanisms import near_home

EXACT = 1e-11  # of the largest force: rounding over the best conditioned third of what J leaves free


def realizable(robot, q, v, a, **how):
    """Return True if motors can cause a motion that the loops allow."""
    return robot.actuator_efforts(q, v, a, exact=True, return_status=True, **how)[1] == 0


def state(robot, rng, size=()):
    """Return states near home on the loops, and an allowed motion: q, v, a."""
    q, v = near_home(robot, rng, size)
    return q, v, robot.forward_dynamics(q, v, rng.standard_normal((*size, robot.nv)))


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def agree(got, expected, tolerance=EXACT):
    assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


def transposed(A):
    return np.swapaxes(A, -1, -2)  # .mT came with NumPy 2


def times(A, x):
    return (A @ x[..., None])[..., 0]


REDUNDANT = {
    "five-bar, 3": lambda: sarrus.mechanisms.five_bar(actuated=3),
    "five-bar, 4": lambda: sarrus.mechanisms.five_bar(actuated=4),
    "3-RR": lambda: sarrus.mechanisms.three_rrr(),
    "3-RRR, 6": lambda: sarrus.mechanisms.three_rrr(actuated=6, platform=0.1),
}


@pytest.fixture(params=REDUNDANT, scope="module")
def redundant(request):
    return REDUNDANT[request.param]()


# ---- the mathematics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_against_the_oracle(seed):
    """Random mechanisms with motors in all joints, including loop joints; weighted, too."""
    s = random_closed(seed, kinds=CLOSING if seed % 2 else (*CLOSING, *RELATIONS), copies=seed % 3, loops=1 + seed % 3)
    robot, oracle = s.robot, s.oracle
    a = oracle.forward_dynamics(s.q, s.v, s.tau)
    names = [n for n in robot.joints if robot.joint(n).nv]
    names += [n for n in robot.loop_joints if robot.joint(n).type.nv and robot.joint(n).kind != "Gimbal"]
    S = robot.actuation_matrix(s.q, actuated=names)
    agree(S, oracle.actuation_matrix(s.q, names))
    weights = np.linspace(1, 3, S.shape[1])
    for more in ({}, {"weights": weights}):
        u = robot.actuator_efforts(s.q, s.v, a, actuated=names, **more)
        expected, left = oracle.actuator_efforts(s.q, s.v, a, actuated=names, **more)
        assert left < EXACT
        agree(u, expected, 1e-10)


def test_the_usual_call_is_the_general_one(redundant, rng):
    q, v, a = state(redundant, rng, (20,))
    tool = {redundant.frames[-1]: rng.standard_normal((20, 6))}
    agree(redundant.actuator_efforts(q, v, a), redundant.actuator_efforts(q, v, a, preload=0.0))
    usual = redundant.actuator_efforts(q, v, a, wrenches=tool)
    agree(usual, redundant.actuator_efforts(q, v, a, wrenches=tool, actuated=redundant.actuated))


def test_the_usual_call_takes_the_nearest_acceleration(redundant, rng):
    """Gauss' principle: the loops remove the part M^-1 J^T of a; the exact option raises an error for such a."""
    q, v, a = state(redundant, rng, (10,))
    along_rows = redundant.mass_matrix_inverse(q) @ transposed(redundant.constraint_jacobian(q))
    beyond = times(along_rows, rng.standard_normal((10, redundant.nc)))
    agree(redundant.actuator_efforts(q, v, a + beyond), redundant.actuator_efforts(q, v, a))
    assert not realizable(redundant, q, v, a + beyond).any()


def test_as_many_motors_as_freedoms(rng):
    """The effort that caused the motion is returned, for any weights."""
    robot = sarrus.mechanisms.five_bar()
    q, v, _ = state(robot, rng, (10,))
    u = rng.standard_normal((10, 2))
    a = robot.forward_dynamics(q, v, times(robot.actuation_matrix(robot.neutral()), u))
    agree(robot.actuator_efforts(q, v, a), u)
    agree(robot.actuator_efforts(q, v, a, preload=[5.0, -3.0], weights=[1.0, 9.0]), u)
    assert robot.internal_efforts(q).shape == (10, 2, 0)


def test_efforts_bring_the_motion_about(redundant, rng):
    q, v, a = state(redundant, rng, (10,))
    S = redundant.actuation_matrix(redundant.neutral())
    preload, weights = rng.standard_normal(redundant.nu), rng.uniform(0.5, 2.0, redundant.nu)
    for more in ({}, {"preload": preload}, {"weights": weights, "distribution": "weighted"}):
        u = redundant.actuator_efforts(q, v, a, **more)
        agree(redundant.forward_dynamics(q, v, times(S, u)), a, 1e-10)


def test_power_is_rate_of_energy(redundant, rng):
    """S^T v are the motors' velocities, and their power is the rate of energy."""
    q, v, a = state(redundant, rng, (10,))
    power = (
        redundant.actuator_efforts(q, v, a, preload=1.0) * times(transposed(redundant.actuation_matrix(q)), v)
    ).sum(axis=-1)
    kinetic = (times(redundant.mass_matrix(q), a) + times(redundant.coriolis_matrix(q, v), v)) * v
    agree(power, (kinetic + redundant.gravity_forces(q) * v).sum(axis=-1), 1e-10)


def test_efforts_are_in_the_order_in_which_the_motors_are_named(redundant, rng):
    motion, names = state(redundant, rng), redundant.actuated[::-1]
    u = redundant.actuator_efforts(*motion, actuated=names)
    agree(u, redundant.actuator_efforts(*motion, actuated=redundant.actuated)[::-1])
    S = redundant.actuation_matrix(motion[0], actuated=names)
    agree(S, redundant.actuation_matrix(motion[0])[:, ::-1])


def test_internal_efforts_move_nothing(redundant, rng):
    q, v, a = state(redundant, rng, (10,))
    internal = redundant.internal_efforts(q)
    freedom = sarrus.formulations.free_motions(redundant, q).freedom
    assert internal.shape == (10, redundant.nu, redundant.nu - freedom[0])
    agree(transposed(internal) @ internal, np.broadcast_to(np.eye(internal.shape[-1]), (10, *internal.shape[-1:] * 2)))
    u = redundant.actuator_efforts(q, v, a) + internal.sum(axis=-1)
    agree(redundant.forward_dynamics(q, v, times(redundant.actuation_matrix(redundant.neutral()), u)), a, 1e-10)


def test_optimality(redundant, rng):
    """W (u - preload) has no component along the internal efforts, so no change without effect on the motion is better."""
    q, v, a = state(redundant, rng, (10,))
    preload, weights = rng.standard_normal(redundant.nu), rng.uniform(0.2, 5.0, redundant.nu)
    internal = redundant.internal_efforts(q)
    for u0, w in ((0.0, 1.0), (preload, 1.0), (0.0, weights), (preload, weights)):
        u = redundant.actuator_efforts(q, v, a, preload=u0, weights=w)
        agree(times(transposed(internal), w * (u - u0)), np.zeros((10, internal.shape[-1])))


@pytest.mark.parametrize("decades", [3, 6, 10])
@pytest.mark.parametrize("substructures", [0, 1])
def test_weights_of_many_decades(redundant, substructures, decades, rng):
    """The motion is caused at no higher cost than by least squares, for any weights of the motors, in a batch and alone."""
    robot = sarrus.Mechanism(redundant.description, substructures=substructures)
    q, v, a = state(redundant, rng, (12,))
    weights = 10.0 ** rng.uniform(-0.5 * decades, 0.5 * decades, (12, robot.nu))
    u, status = robot.actuator_efforts(q, v, a, weights=weights, return_status=True)
    assert not status.any()
    S = robot.actuation_matrix(q)
    agree(redundant.forward_dynamics(q, v, times(S, u)), a, 1e-8)
    N = sarrus.formulations.free_motions(redundant, q).basis
    effect, need = transposed(N) @ S / np.sqrt(weights)[:, None], times(transposed(N), robot.inverse_dynamics(q, v, a))
    least = [np.linalg.lstsq(E, b, rcond=1e-12)[0] for E, b in zip(effect, need, strict=True)]
    assert_allclose((weights * u**2).sum(axis=-1), np.square(least).sum(axis=-1), rtol=1e-6)
    agree(u[:3], [robot.actuator_efforts(q[i], v[i], a[i], weights=weights[i]) for i in range(3)], 1e-8)


def test_preload_keeps_its_internal_part(redundant, rng):
    q, v, a = state(redundant, rng)
    internal, preload = redundant.internal_efforts(q), rng.standard_normal(redundant.nu)
    u = redundant.actuator_efforts(q, v, a, preload=preload)
    agree(internal.T @ u, internal.T @ preload)
    agree(redundant.actuator_efforts(q, v, a, preload=u), u)


def test_reactions_close_the_balance(redundant, rng):
    """S u + J^T lambda = M a + h, with lambda as in forward dynamics: reactions of least norm over all joints."""
    q, v, a = state(redundant, rng, (5,))
    u, multipliers = redundant.actuator_efforts(q, v, a, return_reactions=True)
    J = redundant.constraint_jacobian(q)
    held = times(redundant.actuation_matrix(redundant.neutral()), u) + times(transposed(J), multipliers)
    agree(held, redundant.inverse_dynamics(q, v, a))
    _, forward = redundant.forward_dynamics(
        q, v, times(redundant.actuation_matrix(redundant.neutral()), u), return_reactions=True
    )
    agree(multipliers, forward.multipliers, 1e-10)
    loads = redundant.joint_wrenches(q, v, a)
    for k in range(len(q)):
        at = Equilibrium(redundant, q[k])
        x = at.coordinates({name: load[k] for name, load in loads.items()}, multipliers[k])
        agree(x, at.least(x), 1e-9)


def test_motor_in_a_joint_that_closes_the_loop(rng):
    """The same four-bar with its driven pin as tree joint and as loop joint: the same efforts, except for reactions."""
    spec = sarrus.mechanisms.four_bar().description
    driven = {
        how: sarrus.Mechanism(
            dataclasses.replace(
                spec,
                joints=tuple(
                    dataclasses.replace(j, actuated=j.name == "pin2", tree=j.name != loop, loop=j.name == loop)
                    for j in spec.joints
                ),
            )
        )
        for how, loop in (("closing", "pin2"), ("in tree", "pin1"))
    }
    closing, in_tree = driven["closing"], driven["in tree"]
    q, v, a = state(closing, rng)
    crank, rocker = (closing.joint(name).q_slice for name in ("motor", "pivot"))
    pose = np.linalg.inv(closing.pose(q, "coupler")) @ closing.pose(q, "rocker")
    values = {
        "motor": (q[crank], v[crank], a[crank]),
        "pivot": (q[rocker], v[rocker], a[rocker]),
        "pin2": ([np.arctan2(pose[0, 2], pose[0, 0])], *(closing.actuation_matrix(q).T @ x for x in (v, a))),
    }
    other = [np.zeros(3) for _ in range(3)]
    for name, parts in values.items():
        for x, part in zip(other, parts, strict=True):
            x[in_tree.joint(name).v_slice] = part
    agree(in_tree.constraint_residual(other[0]), np.zeros(5))
    for more in ({}, {"preload": 0.0}):
        agree(closing.actuator_efforts(q, v, a, **more), in_tree.actuator_efforts(*other, **more), 1e-10)


def test_prescribed_motion(rng):
    """The rows of a prescribed crank carry the part of the load that the motor does not."""
    b = sarrus.Builder("led", gravity=(0, 0, 0))
    for name in ("slide", "arm"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "slide", actuated=True)
    b.add_joint("hinge", sarrus.Revolute("z"), "slide", "arm", at_child=(-0.5, 0, 0))
    b.add_prescribed_motion("swing", "hinge", sarrus.laws.harmonic(0.4, rate=3.0))
    robot, time = b.build(), np.linspace(0.0, 1.0, 7)
    x, rate, second = 0.4 * np.sin(3 * time), 1.2 * np.cos(3 * time), -3.6 * np.sin(3 * time)
    rest = np.zeros(7)
    q, v, a = (np.stack([rest, y], axis=-1) for y in (x, rate, second))
    u, multipliers = robot.actuator_efforts(q, v, a, time=time, preload=0.0, return_reactions=True)
    agree(np.stack([u[:, 0], multipliers[:, 0]], axis=-1), robot.inverse_dynamics(q, v, a))
    with pytest.raises(sarrus.StateError, match="violates the loops: 'swing' is open"):
        robot.actuator_efforts(q[1], v[1], a[1], time=0.0, preload=0.0)


# ---- limits ----------------------------------------------------------------------------------------------------------


def best_by_trying(u, internal, low, high):
    """Return the solution with the smallest change, by trying all sets of active limits."""
    found = []
    for pattern in itertools.product((None, low, high), repeat=len(u)):
        held = [i for i, limit in enumerate(pattern) if limit is not None]
        if len(held) > internal.shape[1]:
            continue
        gap = np.array([pattern[i][i] - u[i] for i in held])
        y = np.linalg.lstsq(internal[held], gap, rcond=None)[0] if held else np.zeros(internal.shape[1])
        candidate = u + internal @ y
        if (candidate > low - 1e-9).all() and (candidate < high + 1e-9).all():
            found.append((y @ y, tuple(candidate)))
    return np.array(min(found)[1]) if found else None


def test_limits_against_trying_all(redundant, rng):
    q, v, a = state(redundant, rng, (12,))
    free = redundant.actuator_efforts(q, v, a)
    internal = redundant.internal_efforts(q)
    size = np.abs(free).max(axis=-1, keepdims=True)
    # about efforts that would do, but for a third of the states about others
    middle = free + times(internal, size * rng.uniform(-0.5, 0.5, (12, internal.shape[-1])))
    middle[8:] += size[8:] * rng.uniform(-0.6, 0.6, (4, redundant.nu))
    low, high = middle - size * rng.uniform(0.05, 0.4, free.shape), middle + size * rng.uniform(0.05, 0.4, free.shape)
    u, status = redundant.actuator_efforts(q, v, a, limits=(low, high), return_status=True)
    limited = ((free < low) | (free > high)).any(axis=-1)
    assert limited[:8].sum() >= 2 and (status[:8] == 0).all() and status.any()
    for i in range(12):
        expected = best_by_trying(free[i], internal[i], low[i], high[i])
        assert (status[i] == 2) == (expected is None)
        assert_allclose(u[i], np.nan if expected is None else expected, rtol=0, atol=1e-10 * size[i, 0])


def test_limits_with_weights_and_preload(rng):
    """u^T W u about the preload is minimal: no step along the internal efforts within the limits reduces it."""
    robot = sarrus.mechanisms.three_rrr(actuated=6, platform=0.1)
    q, v, a = state(robot, rng, (5,))
    weights, preload = rng.uniform(0.3, 3.0, 6), rng.standard_normal(6)
    free = robot.actuator_efforts(q, v, a, weights=weights, preload=preload)
    limit = 0.9 * np.abs(free).max(axis=-1, keepdims=True) * np.ones(6)
    u = robot.actuator_efforts(q, v, a, weights=weights, preload=preload, limits=(-limit, limit))
    assert (np.abs(u) <= limit).all()
    assert (np.abs(u) == limit).any(axis=-1).all()  # limits that hold are met exactly
    internal = robot.internal_efforts(q)

    def cost(u):
        return (weights * (u - preload) ** 2).sum(axis=-1)

    for _ in range(200):
        other = u + times(internal, 0.1 * rng.standard_normal(3) * limit[:, :1])
        kept = (np.abs(other) <= limit).all(axis=-1)
        assert (cost(other) >= cost(u))[kept].all()
    assert (cost(free) < cost(u)).all()


def test_limits_that_are_too_narrow(rng):
    """The error reports the missing amount: limits wider by it suffice, slightly less do not."""
    robot = sarrus.mechanisms.five_bar(actuated=4)
    q, v, a = state(robot, rng)
    with pytest.raises(sarrus.NotRealizableError, match="wider by") as error:
        robot.actuator_efforts(q, v, a, limits=(-1e-3, 1e-3))
    missing = float(str(error.value).split("wider by ")[1].split()[0])
    assert realizable(robot, q, v, a, limits=(-1e-3 - 1.01 * missing, 1e-3 + 1.01 * missing))
    assert not realizable(robot, q, v, a, limits=(-1e-3 - 0.99 * missing, 1e-3 + 0.99 * missing))


@pytest.mark.parametrize("heavier", [1e-15, 1e-9, 1e9])
@pytest.mark.parametrize("of", ["revolute", "cables"])
def test_limits_know_no_unit_of_force(rng, of, heavier):
    """Wide and narrow limits for bodies of micrograms too, because the solver's own tolerance is absolute."""
    robot = sarrus.mechanisms.five_bar(actuated=4) if of == "revolute" else sarrus.mechanisms.cable_platform()
    bodies = robot.description.bodies
    other = robot.replace(
        inertias={b.name: sarrus.Inertia.from_parameters(heavier * b.inertia.parameters) for b in bodies}
    )
    q, v, a = state(robot, rng)
    limit = np.abs(robot.actuator_efforts(q, v, a)).max()
    low, high = (-0.9 * limit, 0.9 * limit) if of == "revolute" else (-20.0 * limit, -0.01 * limit)
    u = robot.actuator_efforts(q, v, a, limits=(low, high))
    agree(other.actuator_efforts(q, v, a, limits=(heavier * low, heavier * high)) / heavier, u)
    lacking = []
    for one, scale in ((robot, 1.0), (other, heavier)):
        with pytest.raises(sarrus.NotRealizableError, match="wider by") as error:
            one.actuator_efforts(q, v, a, limits=(-1e-3 * limit * scale, 1e-3 * limit * scale))
        lacking.append(float(str(error.value).split("wider by ")[1].split()[0]) / scale)
    assert_allclose(lacking[1], lacking[0], rtol=1e-2)  # of which three digits are told


def test_limits_on_one_side_and_none(rng):
    robot = sarrus.mechanisms.five_bar(actuated=4)
    q, v, a = state(robot, rng)
    free = robot.actuator_efforts(q, v, a)
    assert_array_equal(
        robot.actuator_efforts(q, v, a, limits=(-np.inf, np.inf), preload=0.0),
        robot.actuator_efforts(q, v, a, preload=0.0),
    )
    low = np.array([free[0] + 0.5, -np.inf, -np.inf, -np.inf])
    u = robot.actuator_efforts(q, v, a, limits=(low, np.inf))
    assert low[0] <= u[0] <= low[0] * (1.0 + np.sign(low[0]) * 1e-14)
    fixed = np.array([free[0] + 0.5, np.inf, np.inf, np.inf])
    agree(robot.actuator_efforts(q, v, a, limits=(low, fixed)), u)


def test_wide_limits_change_nothing(redundant, rng, monkeypatch):
    """Wide limits change neither the motion nor the distribution."""
    q, v, a = state(redundant, rng, (3, 2))
    v, a = v + 1e-5 * rng.standard_normal(v.shape), a + rng.standard_normal(a.shape)  # drift: the loops do not allow it
    usual = redundant.actuator_efforts(q, v, a)
    size = np.abs(usual).max() + 1.0
    low, high = -np.linspace(1.0, 2.0, redundant.nu) * size, size
    monkeypatch.setattr(actuation, "_narrowed", lambda *motion: pytest.fail("shared out again"))
    assert_array_equal(redundant.actuator_efforts(q, v, a, limits=(low, high)), usual)
    out = np.empty(usual.shape)
    u, status = redundant.actuator_efforts(q, v, a, limits=(low, np.inf), out=out, return_status=True)
    assert u is out and (status == 0).all() and status.shape == (3, 2) and status.dtype == np.int8
    assert_array_equal(out, usual)
    one = redundant.actuator_efforts(q[0, 0], v[0, 0], a[0, 0])
    assert_array_equal(redundant.actuator_efforts(q[0, 0], v[0, 0], a[0, 0], limits=(-size, size)), one)
    several = redundant.actuator_efforts(q[0, 0], v[0, 0], a[0, 0], limits=(low, np.full((4, 1, redundant.nu), size)))
    assert_array_equal(several, np.broadcast_to(one, (4, 1, redundant.nu)))


def test_narrow_limits_take_the_same_motions(redundant, rng):
    """Efforts beyond limits are redistributed for the nearest motion that the loops allow; other states are unchanged."""
    q, v, a = state(redundant, rng, (6,))
    along_rows = redundant.mass_matrix_inverse(q) @ transposed(redundant.constraint_jacobian(q))
    drift = a + times(along_rows, rng.standard_normal((6, redundant.nc)))
    usual = redundant.actuator_efforts(q, v, a)
    limit = np.sort(np.abs(usual).max(axis=-1))[3] * 0.99
    u, status = redundant.actuator_efforts(q, v, drift, limits=(-limit, limit), return_status=True)
    expected, found = redundant.actuator_efforts(q, v, a, limits=(-limit, limit), preload=0.0, return_status=True)
    assert_array_equal(status, found)
    assert 2 <= (np.abs(usual).max(axis=-1) > limit).sum() <= 4
    agree(u, expected)
    for i in range(6):
        if status[i] == 0:
            agree(redundant.actuator_efforts(q[i], v[i], drift[i], limits=(-limit, limit)), u[i])
        else:
            with pytest.raises(sarrus.NotRealizableError, match="within the limits"):
                redundant.actuator_efforts(q[i], v[i], drift[i], limits=(-limit, limit))
    assert not (
        redundant.actuator_efforts(q, v, drift, limits=(-9e9, 9e9), exact=True, return_status=True)[1] == 0
    ).any()
    with pytest.raises(sarrus.StateError, match=r"q\[0\] is nan"):
        redundant.actuator_efforts(np.full(redundant.nq, np.nan), v[0], a[0], limits=(-1.0, 1.0))


# ---- too few motors --------------------------------------------------------------------------------------------------


def test_too_few_motors(rng):
    robot = sarrus.mechanisms.five_bar()
    q, v, a = state(robot, rng)
    with pytest.raises(
        sarrus.NotRealizableError, match=r"'left_motor'.* along '\w+'.* drive 1 of 2 degrees of freedom"
    ):
        robot.actuator_efforts(q, v, a, actuated=["left_motor"])
    with pytest.raises(sarrus.NotRealizableError, match="without motors"):
        robot.actuator_efforts(q, v, a, actuated=[])
    # but this motor's own motion it can make
    own = robot.forward_dynamics(q, v, [1.5, 0.0, 0.0, 0.0])
    agree(robot.actuator_efforts(q, v, own, actuated=["left_motor"]), [1.5])
    assert robot.actuator_efforts(q, v, own, actuated=["left_motor"], exact=True, return_status=True)[1] == 0
    assert not realizable(robot, q, v, a, actuated=["left_motor"])


def test_two_motors_that_see_the_same_freedom(rng):
    """As many motors as degrees of freedom may be insufficient: a belt couples the second to the first."""
    robot = sarrus.mechanisms.five_bar()
    crank = robot.joint("left_motor")
    b = sarrus.Builder("with a belt")
    for body in robot.description.bodies:
        b.add_body(body.name, body.inertia)
    b.add_body("pulley", sarrus.Inertia.sphere(1.0, 0.1))
    for j in robot.description.joints:
        b.add_joint(j.name, j.joint, j.parent, j.child, at_parent=j.at_parent, at_child=j.at_child, loop=j.loop)
    b.add_joint("shaft", sarrus.Revolute("y"), "ground", "pulley")
    b.add_coupler("belt", {crank.name: 1.0, "shaft": -2.0})
    b.set_home(dict(robot.description.home))
    belted = b.build()
    q, v, a = state(belted, rng)
    with pytest.raises(sarrus.NotRealizableError, match="drive 1 of 2 degrees of freedom"):
        belted.actuator_efforts(q, v, a, actuated=["left_motor", "shaft"])


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_batches_and_broadcasting(redundant, rng):
    q, v, a = state(redundant, rng, (3, 2))
    nu = redundant.nu
    preload = rng.standard_normal((3, 1, nu))
    limit = np.abs(redundant.actuator_efforts(q, v, a, preload=preload)).max() * 0.95
    u, multipliers, status = redundant.actuator_efforts(
        q, v, a, preload=preload, limits=(-limit, limit), return_reactions=True, return_status=True
    )
    assert u.shape == (3, 2, nu) and multipliers.shape == (3, 2, redundant.nc) and status.shape == (3, 2)
    for i, j in np.ndindex(3, 2):
        if status[i, j] == 0:
            one = redundant.actuator_efforts(q[i, j], v[i, j], a[i, j], preload=preload[i, 0], limits=(-limit, limit))
            agree(u[i, j], one)
    assert redundant.actuator_efforts(q[:0], v[:0], a[:0], preload=0.0).shape == (0, 2, nu)


def test_one_bad_state_spoils_no_other(redundant, rng):
    q, v, a = state(redundant, rng, (4,))
    sound = redundant.actuator_efforts(q, v, a, preload=1.0)
    q[1, 0], v[2, 0] = np.nan, v[2, 0] + 1.0
    u, status = redundant.actuator_efforts(q, v, a, preload=1.0, return_status=True)
    assert status.tolist() == [0, 1, 4, 0]
    assert np.isnan(u[1:3]).all()
    assert_array_equal(u[[0, 3]], sound[[0, 3]])
    assert np.isnan(redundant.actuator_efforts(q, v, a, preload=1.0)[1:3]).all()


def test_out(redundant, rng):
    q, v, a = state(redundant, rng, (4,))
    out = np.empty((4, redundant.nu))
    assert redundant.actuator_efforts(q, v, a, preload=1.0, out=out) is out
    assert_array_equal(out, redundant.actuator_efforts(q, v, a, preload=1.0))
    with pytest.raises(sarrus.ShapeError, match="out has shape"):
        redundant.actuator_efforts(q, v, a, preload=1.0, out=np.empty(3))


BAD = {
    "no such joint": ({"actuated": ["left_mtor"]}, sarrus.errors.NameNotFoundError, "did you mean"),
    "one name": ({"actuated": "left_motor"}, sarrus.ModelError, "sequence of joints' names"),
    "twice": ({"actuated": ["left_motor"] * 2}, sarrus.ModelError, "'left_motor' twice"),
    "distribution": ({"distribution": "fair"}, ValueError, "got 'fair'"),
    "no weights": ({"distribution": "weighted"}, ValueError, "needs weights"),
    "zero weight": ({"weights": [1, 0, 1]}, ValueError, "weights must be positive"),
    "too few weights": ({"weights": [1, 1]}, sarrus.ShapeError, r"weights has shape \(2,\).* 3 entries"),
    "preload": ({"preload": [np.nan, 0, 0]}, ValueError, "preload must be finite"),
    "limits": ({"limits": (1.0, -1.0)}, ValueError, "lower limit is above"),
    "limits without order": ({"limits": (np.nan, 1.0)}, ValueError, "or a limit is NaN.* got nan and 1.0"),
    "one limit": ({"limits": (1.0,)}, sarrus.ShapeError, r"limits must be a pair .*; got \(1.0,\)"),
    "limits' shape": ({"limits": (-np.ones(2), 1.0)}, sarrus.ShapeError, r"limits\[0\] has shape \(2,\)"),
    "axes": ({"preload": np.zeros((2, 3)), "weights": np.ones((4, 3))}, sarrus.ShapeError, "do not broadcast"),
    "frame": ({"wrenches": {"tol": np.zeros(6)}, "preload": 0.0}, sarrus.errors.NameNotFoundError, "tol"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_arguments(what, rng):
    robot = sarrus.mechanisms.five_bar(actuated=3)
    arguments, error, message = BAD[what]
    with pytest.raises(error, match=message):
        robot.actuator_efforts(*state(robot, rng), **arguments)


def test_motions_that_the_loops_do_not_allow(rng):
    robot = sarrus.mechanisms.five_bar(actuated=3)
    q, v, a = state(robot, rng)
    for preload in (0.0, 1.0):  # the first is the default
        with pytest.raises(sarrus.StateError, match="'pin' does not allow this velocity"):
            robot.actuator_efforts(q, v + np.eye(4)[0], a, preload=preload)
        with pytest.raises(sarrus.StateError, match=r"q\[0\] is nan"):
            robot.actuator_efforts(np.full(4, np.nan), v, a, preload=preload)
    assert not realizable(robot, q, v + np.eye(4)[0], a) and not realizable(robot, q, v, a + np.eye(4)[0])


def test_weights_and_preload_take_the_motions_that_the_usual_call_takes(redundant, rng):
    """Components of an acceleration that the loops prevent have no effect on weights or preload."""
    q, v, a = state(redundant, rng)
    along_rows = redundant.mass_matrix_inverse(q) @ redundant.constraint_jacobian(q).T
    beyond = a + along_rows @ rng.standard_normal(redundant.nc)
    for more in ({"actuated": list(redundant.actuated)[::-1]}, {"weights": 2.0}, {"preload": 0.1}):
        agree(redundant.actuator_efforts(q, v, beyond, **more), redundant.actuator_efforts(q, v, a, **more))


def test_gimbal_that_closes_a_loop_may_have_a_motor():
    closed = random_closed(3, kinds=("gimbal rx ry tx tz",), loops=1)
    (name,) = closed.closing
    S = closed.robot.actuation_matrix(closed.q, actuated=[name])
    agree(S.T @ closed.v, closed.oracle.closing_velocities(closed.q, closed.v)[name])


def test_trees_need_no_loops():
    """Motors in all joints of a tree have the efforts of inverse dynamics."""
    robot = sarrus.mechanisms.double_pendulum()
    motion = [0.3, -0.5], [1.0, 2.0], [0.5, -1.0]
    agree(robot.actuator_efforts(*motion, actuated=robot.joints), robot.inverse_dynamics(*motion))
    with pytest.raises(sarrus.NotRealizableError, match="along 'shoulder'"):
        robot.actuator_efforts(*motion, actuated=["elbow"])


@pytest.mark.parametrize("name", ["five_bar", "three_rrr"])
def test_every_option_is_asked_of_the_core_in_the_same_words(name, rng):
    """Motors in any order of names, with their weights and limits; many states and one."""
    robot = {"five_bar": REDUNDANT["five-bar, 4"], "three_rrr": REDUNDANT["3-RRR, 6"]}[name]()
    q, v, a = state(robot, rng, (3,))
    order = rng.permutation(robot.nu)
    names = [robot.actuated[k] for k in order]
    w, p = rng.uniform(0.5, 2.0, robot.nu), rng.standard_normal(robot.nu)
    usual = robot.actuator_efforts(q, v, a, weights=w, preload=p)
    agree(robot.actuator_efforts(q, v, a, actuated=names, weights=w[order], preload=p[order]), usual[:, order])
    size = np.abs(usual).max() * np.linspace(0.8, 0.95, robot.nu)
    asked = {"weights": w, "preload": p, "limits": (-size, size)}
    turned = {"weights": w[order], "preload": p[order], "limits": (-size[order], size[order]), "actuated": names}
    for more in ({}, {"return_reactions": True}):
        many, status = [
            robot.actuator_efforts(q, v, a, return_status=True, **x, **more)[:: len(more) + 1] for x in (asked, turned)
        ]
        assert_array_equal(many[1], status[1])
        agree(status[0], many[0][:, order])
    out = np.empty(robot.nu)
    assert robot.actuator_efforts(q[0], v[0], a[0], actuated=names, out=out) is out
    agree(out, robot.actuator_efforts(q[0], v[0], a[0])[order])


@pytest.mark.parametrize(
    "more", [{"limits": (-1e3, 1e3)}, {"distribution": "minimum-norm"}, {"return_reactions": True}]
)
def test_states_off_the_loops_are_answered_on_request(more):
    """The results with check=False are those without the option, for all other options."""
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.7}) + 5e-3
    v = a = np.zeros(robot.nv)
    with pytest.raises(sarrus.StateError, match="violates the loops"):
        robot.actuator_efforts(q, v, a)
    plain = robot.actuator_efforts(q, v, a, check=False)
    asked = robot.actuator_efforts(q, v, a, check=False, **more)
    agree(asked[0] if "return_reactions" in more else asked, plain)
