"""Statuses and errors near a singular position, compared with the exact accelerations of a flat parallelogram."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from benchmarks.loop_models import almost_flat
from benchmarks.near_singular import DISTINCT, exact, off

EPS = np.finfo(np.float64).eps
STATES = 60
WITHIN = 100.0  # of the truth
# [rad]: the regularisation's square root is 4.5e-8, and nearer than that of rounding times it the row that vanishes is rounding
FLAT = 1e-12


@pytest.fixture(scope="module", params=[1, 3])
def ladder(request):
    return sarrus.mechanisms.four_bar_ladder(request.param)


def states(robot, angle):
    return (np.array(x) for x in almost_flat(robot, angle, STATES))


def rms(x):
    return np.sqrt(np.mean(np.square(x)))


@pytest.mark.parametrize("angle", [*10.0 ** np.arange(-3.0, -16.1, -0.5), 0.0])
def test_the_error_is_what_it_is_said_to_be(ladder, angle):
    q, v, tau = states(ladder, angle)
    a, loops, status = ladder.forward_dynamics(q, v, tau, return_reactions=True, return_status=True)
    assert_array_equal(ladder.forward_dynamics(q, v, tau, return_status=True)[1] == 0, status == 0)
    answered = status == 0
    assert np.isin(status, [0, 2]).all()
    assert np.isnan(loops.error[~answered]).all()
    assert np.isnan(loops.residual[~answered]).all()
    assert (loops.residual[answered] < 1e-11).all()
    if angle > DISTINCT or angle < FLAT:
        assert answered.all()
    if not answered.any():
        return
    error = off(a, exact(ladder, angle, q, v, tau))[answered]
    assert (error < WITHIN * loops.error[answered] + EPS).all(), (error, loops.error)
    assert rms(loops.error[answered]) < WITHIN * (rms(error) + EPS)


def test_the_error_of_regular_positions_is_rounding():
    for name in ("four_bar", "delta", "stewart", "bennett", "three_rrr"):
        robot = getattr(sarrus.mechanisms, name)()
        q = robot.assemble()
        v = robot.project_velocity(q, np.ones(robot.nv))
        _, loops = robot.forward_dynamics(q, v, np.zeros(robot.nv), return_reactions=True)
        assert 1e-18 < loops.error < 1e-12


def test_one_state_and_many_say_the_same(ladder):
    q, v, tau = states(ladder, 1e-5)
    many = ladder.forward_dynamics(q, v, tau, return_reactions=True)[1]
    one = [ladder.forward_dynamics(*x, return_reactions=True)[1].error for x in zip(q, v, tau, strict=True)]
    assert_allclose(np.log10(many.error), np.log10(one), atol=1.0)


def test_where_rounding_decides_which_velocities_are_allowed(ladder):
    """The error reports the near singularity, and no inconsistency of constraints, because rest satisfies them."""
    q, v, _ = (x[0] for x in states(ladder, 1e-8))
    with pytest.raises(
        sarrus.StateError, match="so near to a singular configuration that the allowed velocities depend"
    ):
        ladder.project_velocity(q, v + np.arange(ladder.nv))


def scissors(columns, rows, angle, substructures):
    """Return a net of scissors that is flat except for an angle, and its configuration: half a bar is 0.5 m long."""
    b, names = sarrus.Builder("net"), [(i, j) for i in range(columns) for j in range(rows)]
    right, left = (0.5, 0, 0), (-0.5, 0, 0)
    for (i, j), bar in ((at, bar) for at in names for bar in "ab"):
        b.add_body(f"{bar}{i}_{j}", sarrus.Inertia.rod(1.0, left, right, 0.01))
    pins = [("ground", "a0_0", (0, 0, 0), left)]
    for i, j in names:
        pins.append((f"a{i}_{j}", f"b{i}_{j}", (0, 0, 0), (0, 0, 0)))
        if i + 1 < columns:
            pins += [(f"a{i}_{j}", f"b{i + 1}_{j}", right, left), (f"b{i}_{j}", f"a{i + 1}_{j}", right, left)]
        if j + 1 < rows:
            pins += [(f"a{i}_{j}", f"b{i}_{j + 1}", right, right), (f"b{i}_{j}", f"a{i}_{j + 1}", left, left)]
    for k, (parent, child, at_parent, at_child) in enumerate(pins):
        b.add_joint(f"pin{k}", sarrus.Revolute("y"), parent, child, at_parent=at_parent, at_child=at_child)
    robot = sarrus.Mechanism(b.build().description, substructures=substructures)
    turned = {"a": -angle, "b": angle, "g": 0.0}
    q = np.zeros(robot.nq)
    for joint in map(robot.joint, robot.joints):
        q[joint.q_slice] = turned[joint.child[0]] - turned[joint.parent[0]]
    return robot, q


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 0.0])
@pytest.mark.parametrize("size", [(3, 3), (6, 6), (16, 4)])
def test_substructures_answer_as_joint_coordinates_do(size, angle):
    """Deviations are at most a hundred times the reported ones, and at rounding level from a thousandth of a radian on."""
    found = []
    for substructures in (0, 1):
        robot, q = scissors(*size, angle, substructures)
        tau = np.cos(np.arange(robot.nv))
        a, loops = robot.forward_dynamics(q, np.zeros(robot.nv), tau, return_reactions=True)
        found.append((a, loops.error))
    (want, error), (a, said) = found
    off_by = np.abs(a - want).max() / np.abs(want).max()
    assert off_by < WITHIN * (said + error)
    assert angle < 1e-4 or off_by < 1e-9


def tilted(tilt):
    """Return a double pendulum with two points fixed to a parallel pendulum whose pin is tilted: rows that are equal except for the tilt."""
    b = sarrus.Builder("two points")
    b.add_body("a", sarrus.Inertia(1.0, (0, 0, 0.1), np.eye(3) * 0.01))
    b.add_body("b", sarrus.Inertia(1.0, (0.1, 0, 0), np.eye(3) * 0.01))
    b.add_body("c", sarrus.Inertia(1.0, (0, 0, 0.1), np.eye(3) * 0.01))
    b.add_joint("ja", sarrus.Revolute("y"), "ground", "a", at_parent=(0, 0, 0))
    b.add_joint("jb", sarrus.Revolute("y"), "a", "b", at_parent=(0, 0, 0.2))
    b.add_joint("jc", sarrus.Revolute((tilt, 1.0, 0.0)), "ground", "c", at_parent=(0.3, 0, 0))
    for name, y in (("left", 0.01), ("right", -0.01)):
        b.add_joint(name, sarrus.Spherical(), "b", "c", at_parent=(0.3, y, 0), at_child=(0, y, 0.2), loop=True)
    return b.build()


@pytest.mark.parametrize("substructures", [0, 1])
@pytest.mark.parametrize("tilt", [0.0, *10.0 ** np.arange(-15.0, -3.9, 0.5)])
def test_rows_that_nearly_say_the_same(tilt, substructures):
    """The rows are equal, or lock the mechanism, or rounding decides, in which case the error contains their names and the cure."""
    robot = sarrus.Mechanism(tilted(tilt).description, substructures=substructures)
    q, v, tau = np.array([0.5, -0.5, 0.5]), np.zeros(3), np.zeros(3)
    a, status = robot.forward_dynamics(q, v, tau, check=False, return_status=True)
    same = sarrus.Mechanism(tilted(0.0).description, substructures=0).forward_dynamics(q, v, tau)
    if status == 0:
        assert min(np.abs(a - same).max(), np.abs(a).max()) < 1e-4 * np.abs(same).max()
    else:
        assert status == 2
        with pytest.raises(
            sarrus.StateError,
            match=r"rows of 'left', 'right' are nearly, but not exactly, dependent .*without_redundant_constraints\(\)",
        ):
            robot.forward_dynamics(q, v, tau, check=False)
    assert status == 0 or 1e-12 < tilt < (1e-5, 2e-4)[substructures]  # many pieces round more


@pytest.mark.parametrize("substructures", [0, 1])
@pytest.mark.parametrize("name", ["sarrus_linkage", "bennett", "bricard"])
def test_a_gap_does_not_hold_an_overconstrained_linkage_fast(name, substructures):
    """Rows that are equal on the loops differ by a gap off them: it has no effect, or is reported."""
    robot = sarrus.Mechanism(getattr(sarrus.mechanisms, name)().description, substructures=substructures)
    q, v, tau = robot.assemble(), np.zeros(robot.nv), np.ones(robot.nv)
    want = robot.forward_dynamics(q, v, tau)
    answered = 0
    for gap in 10.0 ** np.arange(-14.0, -3.9, 0.5):
        for seed in range(4):
            there = robot.integrate(q, gap * np.random.default_rng(seed).standard_normal(robot.nv))
            a, status = robot.forward_dynamics(there, v, tau, return_status=True)
            if status == 0:
                answered += 1
                assert np.abs(a - want).max() < 1e-4 * np.abs(want).max()
            elif status != 3:
                decides = "decides whether they lock the mechanism"  # a gap of rounding is rounding, too
                said = rf"(open by|the gap of).* {decides}.*project_config" if gap > 1e-12 else decides
                with pytest.raises(sarrus.StateError, match=said):
                    robot.forward_dynamics(there, v, tau)
                closed = robot.project_configuration(there)
                assert_allclose(robot.forward_dynamics(closed, v, tau), want, atol=100 * gap * np.abs(want).max())
    assert answered


@pytest.mark.parametrize("substructures", [0, 1])
@pytest.mark.parametrize("name", ["sarrus_linkage", "bennett", "bricard"])
def test_a_gap_decides_about_no_velocity_nor_effort(name, substructures):
    robot = sarrus.Mechanism(getattr(sarrus.mechanisms, name)().description, substructures=substructures)
    q, rest, push = robot.assemble(), np.zeros(robot.nv), np.ones(robot.nv)
    a = robot.forward_dynamics(q, rest, push)
    functions = {
        "project_velocity": lambda q, **how: robot.project_velocity(q, push, **how),
        "impact": lambda q, **how: robot.impact(q, push, **how),
        "actuator_efforts": lambda q, **how: robot.actuator_efforts(q, rest, a, **how),
    }
    for what, ask in functions.items():
        want = part(ask(q))
        told = set()
        for gap in 10.0 ** np.arange(-14.0, -3.9, 1.0):
            for seed in range(3):
                there = robot.integrate(q, gap * np.random.default_rng(seed).standard_normal(robot.nv))
                try:
                    off = np.abs(part(ask(there)) - want).max() / np.abs(want).max()
                except sarrus.SarrusError as error:
                    told |= {4} if "decides whether they lock" in str(error) else {3}
                else:
                    told |= {0}
                    # of loops that stand open by a ten-thousandth, efforts are what the gap leaves of them
                    assert off < (1e-3 if gap < 5e-5 else 0.3), (what, gap, seed)
        assert 0 in told and told - {0}, (what, told)


def part(answer):
    return np.asarray(answer[0] if isinstance(answer, tuple) else answer)
