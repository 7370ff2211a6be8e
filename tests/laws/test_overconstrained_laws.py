"""Linkages whose rows are dependent only on the loops: from any state, a run conserves energy or raises an error."""

import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Builder, Inertia, Revolute, Transform
from tests.effort import SOAK

STARTS = 100 if SOAK else 12
# of the largest of the energies' sizes: what rk4 itself loses is told by "independent", which has no rows that could disagree
ROUNDING = 1e-10


def bar(length, twist):
    """Return the transform from a hinge's axis z to the next one's, along their common normal x (Denavit and Hartenberg's a and alpha)."""
    return Transform.from_rpy(twist, 0, 0, (length, 0, 0))


def chain_of_hinges(name, bars, angles, cut):
    """Return a closed chain of bars (length, twist), the last of which is the ground, with one hinge as loop joint."""
    n, b = len(bars), Builder(name)
    for k, (length, _) in enumerate(bars[:-1]):
        b.add_body(f"bar{k}", Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    bodies = [*(f"bar{k}" for k in range(n - 1)), "ground"]
    at_ends = [*(bar(*each) for each in bars[:-1]), None]
    for k in range(n):
        if k == 0:
            b.add_joint("hinge0", Revolute("z"), "ground", "bar0", loop=k == cut)
        elif k == n - 1:
            end = bar(*bars[-1]).inverse()  # the ground's frame is at its far end
            b.add_joint(
                f"hinge{k}",
                Revolute("z"),
                bodies[k - 1],
                "ground",
                at_parent=at_ends[k - 1],
                at_child=end,
                loop=k == cut,
            )
        else:
            b.add_joint(f"hinge{k}", Revolute("z"), bodies[k - 1], bodies[k], at_parent=at_ends[k - 1], loop=k == cut)
    b.set_home({f"hinge{k}": angle for k, angle in enumerate(angles) if k != cut})
    return b.build()


def bennett_angles(a, c, first):
    """Return the angles of the four hinges of Bennett's linkage with bars a, c, a, c, each before its bar."""
    ratio = math.sin((c[1] + a[1]) / 2) / math.sin((c[1] - a[1]) / 2)
    second = 2 * math.atan(ratio / math.tan(first / 2))
    angles = (first, second, -first, -second)
    X = np.eye(4)
    for angle, each in zip(angles, (a, c, a, c), strict=True):
        X = X @ Transform.from_rpy(0, 0, angle).matrix @ bar(*each).matrix
    assert_allclose(X, np.eye(4), atol=1e-13)
    return angles


def bennett(twist, other_twist, length=0.6, first=2.0, cut=3):
    a, c = (length * math.sin(twist) / math.sin(other_twist), twist), (length, other_twist)
    return chain_of_hinges("Bennett", [a, c, a, c], bennett_angles(a, c, first), cut)


def goldberg(twists, common_twist=0.9, length=0.6, first=0.7, cut=None):
    """Return Goldberg's linkage with 5 (6) hinges: two (three) Bennett linkages that share bars, which are removed.

    Goldberg, New five-bar and six-bar linkages in three dimensions, Transactions of the ASME 65, 1943.
    """
    common = (length, common_twist)
    bars = [(length * math.sin(twist) / math.sin(common_twist), twist) for twist in twists]
    parts = []
    for a in bars:
        parts.append(bennett_angles(a, common, first))
        first = -parts[-1][1] - math.pi  # the bars a make one straight bar
    around = [(sum(a[0] for a in bars), sum(a[1] for a in bars)), common, *bars[::-1], common]
    angles = [parts[0][0], parts[-1][1], parts[-1][2]]
    angles += [parts[i][3] + math.pi + parts[i - 1][2] for i in range(len(bars) - 1, 0, -1)]
    return chain_of_hinges("Goldberg", around, [*angles, parts[0][3]], len(around) - 1 if cut is None else cut)


LINKAGES = {
    "Bennett, small twists": lambda: bennett(0.05, 0.08),
    "Bennett, smaller ones": lambda: bennett(0.02, 0.025),
    "Bennett, cut at the ground": lambda: bennett(0.5, 1.1, cut=0),
    "Goldberg 5R": lambda: goldberg((0.5, 1.3)),
    "Goldberg 5R, cut in the middle": lambda: goldberg((0.5, 1.3), cut=2),
    "Goldberg 5R, short": lambda: goldberg((0.9, 0.4), 1.2, 0.4, 1.1, cut=4),
    "Goldberg 5R, small twists": lambda: goldberg((0.2, 0.13), 0.25, cut=1),
    "Goldberg 6R": lambda: goldberg((0.5, 1.3, 0.35)),
    **{
        f"Bricard, {kind}": functools.partial(sarrus.mechanisms.bricard, kind=kind)
        for kind in (
            "trihedral",
            "line-symmetric",
            "plane-symmetric",
            "line-symmetric octahedral",
            "plane-symmetric octahedral",
            "doubly collapsible octahedral",
        )
    },
    "Sarrus": sarrus.mechanisms.sarrus_linkage,
    "Myard": sarrus.mechanisms.myard,
    "Schatz": sarrus.mechanisms.schatz,
}


def starts(robot, count=STARTS, speed=1.0, seed=0):
    """Yield closed configurations with velocities.

    Omitted are configurations that cannot move, as some octahedra have, and those so near to a singular position that the velocity is uncertain.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, v = robot.random(rng, closed=True), rng.normal(size=robot.nv) * speed
        s = np.linalg.svd(robot.constraint_jacobian(q), compute_uv=False)
        locked = (s > 1e-12).sum() == robot.nv
        if not (locked or ((s > 1e-12) & (s < 1e-3 * s[0])).any()):
            yield q, robot.project_velocity(q, v)


def swing(robot, q, v, duration=1.0, **options):
    """Return the variation of the energy, relative to its size or to the kinetic one."""
    run = sarrus.simulate(robot, q, v, duration, **options)
    kinetic = robot.kinetic_energy(run.q, run.v).max()
    return np.abs(run.energy - run.energy[0]).max() / max(kinetic, abs(run.energy[0]), 1e-6)


@pytest.fixture(scope="module", params=LINKAGES)
def linkage(request):
    return LINKAGES[request.param]()


def lost_by_half_the_steps(linkage, q, v, dt):
    """Assert that half the step loses at most a tenth of the energy, or rounding."""
    whole, half = (swing(linkage, q, v, method="rk4", dt=h) for h in (dt, dt / 2))
    return half / max(ROUNDING, 0.1 * whole)


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_energy_as_in_independent_coordinates(linkage, dt):
    """If it were locked off the loops, a linkage would lose tenths of its energy; the steps themselves lose 1e-12."""
    lost = []
    for q, v in starts(linkage):
        lost.append(swing(linkage, q, v, method="rk4", dt=dt))
        lost[-1] /= ROUNDING + 10.0 * swing(linkage, q, v, method="independent", dt=dt)
        if (
            lost[-1] >= 1.0
        ):  # steps may be too long for a motion: halved they lose less than a tenth; being held fast stays
            lost[-1] = lost_by_half_the_steps(linkage, q, v, dt)
    assert len(lost) >= STARTS / 4
    assert max(lost) < 1.0, lost


def test_rows_that_agree_by_a_turning_combination():
    """A double Hooke joint: the force along the middle shaft does no work, in any direction of the shaft.

    If the velocity of a stage is off the loops, its rows are inconsistent, and the step is repeated.
    """
    robot = sarrus.mechanisms.double_hooke()
    ends = []
    for q, v in starts(robot, speed=3.0):
        assert np.linalg.svd(robot.constraint_jacobian(q + 0.01), compute_uv=False)[-1] < 1e-14
        assert swing(robot, q, v) < 1e-6
        ends.append(sarrus.simulate(robot, q, v, 0.2).checkpoint["close_stages"])
    assert len(ends) == STARTS
    assert any(ends)


@pytest.mark.parametrize("name", ["tsai_3upu", "wren_platform"])
@pytest.mark.filterwarnings("ignore::sarrus.StiffnessWarning")  # whose energy the steps change there
def test_through_singular_positions(name):
    """The number of degrees of freedom changes at singular positions, which the runs cross.

    A run conserves energy as well as fast motion permits, or fails.
    """
    robot = getattr(sarrus.mechanisms, name)()
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(STARTS):
        q, v = robot.random(rng, closed=True), rng.normal(size=robot.nv)
        try:
            v = robot.project_velocity(q, v)
            lost = swing(robot, q, v)
            if lost >= 1e-4:  # as above
                lost = 1e-4 * lost_by_half_the_steps(robot, q, v, 1e-3)
        except sarrus.SarrusError:
            continue
        assert lost < 1e-4
        kept += 1
    assert kept >= STARTS / 4 or name == "wren_platform"


@pytest.mark.parametrize(
    ("method", "most"), [("rkmk4", 1e-7), ("dopri5", 1e-4), ("implicit_midpoint", 1e-3), ("semi_implicit", 0.1)]
)
def test_energy_by_other_methods(linkage, method, most):
    for q, v in starts(linkage, 8):
        try:
            lost = swing(linkage, q, v, 0.25, method=method)
        except sarrus.IntegrationError:
            continue
        assert lost < most


def test_many_at_once_as_one_by_one(linkage):
    q, v = map(np.array, zip(*starts(linkage, 12), strict=True))
    runs = sarrus.simulate_many(linkage, q, v, 0.2, every=200)
    assert_array_equal(runs.status, 0)
    for k in range(len(q)):
        alone = sarrus.simulate(linkage, q[k], v[k], 0.2)
        assert_allclose(runs.q[k, -1], alone.q[-1], atol=1e-10)
        assert_allclose(runs.v[k, -1], alone.v[-1], atol=1e-9 * (1.0 + np.abs(alone.v).max()))
    # whoever runs beside it
    assert_allclose(sarrus.simulate_many(linkage, q[::-1], v[::-1], 0.2, every=200).q[::-1], runs.q, atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dopri5"])
def test_a_run_finds_out_on_its_way(linkage, method):
    """Without a request for closed stages, constraint forces that do work are detected. A run so slow that their work is negligible continues."""
    for q, v in starts(linkage, 6):
        start = sarrus.simulate(linkage, q, v, 0.0, method=method)
        told = {**start.checkpoint, "close_stages": False}
        run, known = (
            sarrus.simulate(linkage, duration=0.1, resume=x, dt=1e-3, rtol=1e-9, atol=1e-9) for x in (told, start)
        )
        if not run.checkpoint["close_stages"]:
            most = 1e-6 * linkage.kinetic_energy(run.q, run.v).max()
            assert np.abs(run.energy - run.energy[0]).max() < most
        else:  # and what was stepped wrongly is stepped again
            assert_allclose(run.q, known.q, atol=1e-8)


REGULAR = ["four_bar", "five_bar", "slider_crank", "watt", "strandbeest_leg", "three_rrr", "delta", "stewart", "hslm"]


@pytest.mark.parametrize("name", REGULAR)
def test_rows_that_agree_everywhere_cost_nothing(name):
    """Stages are projected only if necessary, with or without redundancy."""
    robot = getattr(sarrus.mechanisms, name)()
    for q, v in starts(robot, 8):
        assert not sarrus.simulate(robot, q, v, 0.01).checkpoint["close_stages"]


def test_overconstrained_from_every_start(linkage):
    for q, v in starts(linkage):
        assert sarrus.simulate(linkage, q, v, 0.0).checkpoint["close_stages"]
