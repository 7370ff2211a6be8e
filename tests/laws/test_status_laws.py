"""A status is never 0, and an error is always raised, if the residual exceeds rounding: anywhere, near singular configurations, off the loops.

The residual is that of the result: the loops of a configuration, J v - c of a velocity, J a - gamma and the equations of motion of an acceleration.
Every function has its own test, so that one failure cannot hide another.
"""

import contextlib

import numpy as np
import pytest

import sarrus
from tests.random_closed import random_closed

# [rad, m] of loops of about a metre; Newton's steps end at 1e-12 or where rounding ends them
CLOSED = 1e-8
# relative, of equations that were solved; where J is nearly singular what is left of them is still small (least squares)
SOLVED = 1e-8

GALLERY = (
    "four_bar",
    "slider_crank",
    "watt",
    "five_bar",
    "three_rrr",
    "delta",
    "stewart",
    "bennett",
    "bricard",
    "sarrus_linkage",
    "scissor_lift",
    "peaucellier",
    "two_links",
    "hslm",
    "rolling_disc",
)
KINDS = ("revolute", "prismatic", "universal", "spherical", "planar", "cylindrical", "distance", "coupler", "disc")
SEEDS = range(2)
ROWS = 64


def drawn(name, seed):
    """Return a mechanism and configurations (ROWS, nq): closed, off by 1e-12 to 1, and random; some next to singular ones."""
    rng = np.random.default_rng(seed)
    robot = random_closed(seed, bodies=4, kinds=KINDS).robot if name == "random" else getattr(sarrus.mechanisms, name)()
    home = robot.neutral()
    with contextlib.suppress(sarrus.AssemblyError):
        home = robot.assemble()
    away = 10.0 ** rng.uniform(-12, 0, (ROWS, 1)) * rng.normal(size=(ROWS, robot.nv))
    q = robot.integrate(np.broadcast_to(home, (ROWS, robot.nq)), away)
    q[: ROWS // 4] = robot.random(rng, size=ROWS // 4)
    for k in range(0, ROWS, 4):  # stretched and folded: angles at, and a little off, multiples of a quarter turn
        for joint in map(robot.joint, robot.joints):
            if joint.kind == "Revolute" and rng.random() < 0.5:
                q[k, joint.q_slice] = rng.integers(-2, 3) * np.pi / 2 + rng.choice([0.0, 1e-12, 1e-9, 1e-7, 1e-5])
    return robot, q, rng


def everywhere(check):
    """Return a test over all mechanisms, which names those that violate the law."""

    def test(*args, **kwargs):
        broken = {}
        for name in (*GALLERY, "random"):
            for seed in SEEDS:
                worst = check(*drawn(name, seed), *args, **kwargs)
                if not worst < 1.0:
                    broken[name, seed] = float(worst)
        assert not broken  # by how many times it is beyond the bound

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


def worst(values, bound):
    return np.max(values, initial=0.0) / bound


def open_by(robot, q):
    return np.abs(robot.constraint_residual(q, time=np.zeros(len(q)))).max(axis=-1, initial=0.0)


def on_loops(robot, q):
    """Return the mechanisms that close, and their closed states."""
    q, status = robot.project_configuration(q, time=np.zeros(len(q)), return_status=True)
    return q[(status == 0) & (open_by(robot, np.where(np.isfinite(q), q, robot.neutral())) < CLOSED)]


def scale_of(J, v):
    return np.maximum(1.0, np.abs(J).max(axis=(-2, -1), initial=0.0) * np.abs(v).max(axis=-1, initial=0.0))


def slip(robot, q, v):
    """Return the largest |J v - c|, relative."""
    time = np.zeros(len(q))
    J, c = robot.constraint_jacobian(q, time=time), robot.constraint_velocity(q, time=time)
    return np.abs(np.einsum("nij,nj->ni", J, v) - c).max(axis=-1, initial=0.0) / scale_of(J, v)


def unsolved(robot, q, v, a):
    """Return the largest |J a - gamma|, relative."""
    time = np.zeros(len(q))
    J, gamma = robot.constraint_jacobian(q, time=time), robot.constraint_bias(q, v, time=time)
    scale = np.maximum(scale_of(J, a), np.abs(gamma).max(axis=-1, initial=0.0))
    return np.abs(np.einsum("nij,nj->ni", J, a) - gamma).max(axis=-1, initial=0.0) / scale


@everywhere
def test_a_projected_configuration_is_closed(robot, q, rng):
    by_metric = []
    for metric in ("mass", "euclidean"):
        found, status = robot.project_configuration(q, metric=metric, time=np.zeros(ROWS), return_status=True)
        by_metric.append(worst(open_by(robot, found[status == 0]), CLOSED))
    return max(by_metric)


@everywhere
def test_one_projected_configuration_is_closed_or_an_error(robot, q, rng):
    found = []
    for one in q[:8]:
        with contextlib.suppress(sarrus.SarrusError):
            found.append(robot.project_configuration(one, time=0.0))
    return worst(open_by(robot, np.reshape(found, (-1, robot.nq))), CLOSED)


@everywhere
def test_an_assembled_configuration_is_closed(robot, q, rng):
    found = []
    for near in (*q[:3], *robot.random(rng, size=2)):
        with contextlib.suppress(sarrus.AssemblyError):
            found.append(robot.assemble(near=near, starts=3, time=0.0))
    return worst(open_by(robot, np.reshape(found, (-1, robot.nq))), CLOSED)


def projected_velocities(robot, q, rng):
    by_metric = []
    for metric in ("mass", "euclidean"):
        v = rng.normal(size=(len(q), robot.nv))
        found, status = robot.project_velocity(q, v, metric=metric, time=np.zeros(len(q)), return_status=True)
        by_metric.append(worst(slip(robot, q[status == 0], found[status == 0]), SOLVED))
    return max(by_metric)


@everywhere
def test_a_projected_velocity_is_allowed(robot, q, rng):
    return projected_velocities(robot, on_loops(robot, q), rng)


@everywhere
def test_a_projected_velocity_is_allowed_off_the_loops(robot, q, rng):
    """Rows that agree on the loops are inconsistent off them."""
    return projected_velocities(robot, q, rng)


def moving(robot, q, rng):
    """Return states that the constraints allow, and efforts."""
    q = on_loops(robot, q)
    v, status = robot.project_velocity(
        q, rng.normal(size=(len(q), robot.nv)), time=np.zeros(len(q)), return_status=True
    )
    q, v = q[status == 0], v[status == 0]
    return q, v, rng.normal(size=v.shape)


@everywhere
def test_an_acceleration_satisfies_the_constraints(robot, q, rng):
    q, v, tau = moving(robot, q, rng)
    a, status = robot.forward_dynamics(q, v, tau, time=np.zeros(len(q)), return_status=True)
    sound = status == 0
    return worst(unsolved(robot, q[sound], v[sound], a[sound]), SOLVED)


@everywhere
def test_a_reported_residual_is_small(robot, q, rng):
    """The residual that forward dynamics reports is small if its status is 0."""
    q, v, tau = moving(robot, q, rng)
    how = {"time": np.zeros(len(q)), "return_status": True, "return_reactions": True}
    _, loops, status = robot.forward_dynamics(q, v, tau, **how)
    return worst(loops.residual[status == 0], SOLVED)


@everywhere
def test_no_acceleration_is_found_off_the_loops(robot, q, rng):
    found = 0
    for offset in (0.03, 0.3):
        away = robot.integrate(q, offset * rng.normal(size=(ROWS, robot.nv)))
        away = away[open_by(robot, away) > 1e-2]  # a thousandth may be measured
        zero = np.zeros((len(away), robot.nv))
        _, status = robot.forward_dynamics(away, zero, zero, time=np.zeros(len(away)), return_status=True)
        found += (status == 0).sum()
    return found


@everywhere
def test_no_acceleration_is_found_for_a_forbidden_velocity(robot, q, rng):
    q = on_loops(robot, q)
    v = rng.normal(size=(len(q), robot.nv))
    bad = slip(robot, q, v) > 1e-2
    _, status = robot.forward_dynamics(
        q[bad], v[bad], np.zeros_like(v[bad]), time=np.zeros(bad.sum()), return_status=True
    )
    return (status == 0).sum()


def test_near_a_flat_parallelogram():
    """The loop's rows lose rank: status and residual agree."""
    robot = sarrus.mechanisms.four_bar_ladder(1)
    crank, rest, efforts = robot.joints[0], np.zeros(robot.nv), np.ones(robot.nv)
    believed = {}
    for angle in 10.0 ** np.arange(-12.0, -3.0):
        at = {crank: np.pi / 2 + angle}
        q = robot.assemble(near=at, fixed=at)
        _, loops, status = robot.forward_dynamics(q, rest, efforts, return_status=True, return_reactions=True)
        if status == 0:
            believed[angle] = float(loops.residual)
    assert believed and max(believed.values()) < SOLVED


def test_overflow_is_not_called_dependence_of_rows():
    """The planar loop of a four-bar has redundant rows in every state; they are not the reason why a result overflows."""
    robot = sarrus.mechanisms.four_bar()
    q, rest = robot.assemble(fixed={"motor": 0.5}), np.zeros(3)
    for call in (
        lambda: robot.forward_dynamics(q, rest, [1e300, 0.0, 0.0], return_reactions=True),
        lambda: robot.impact(q, [1e300, 0.0, 0.0]),
    ):
        with pytest.raises(sarrus.StateError, match="has no result: the result overflows"):
            call()
