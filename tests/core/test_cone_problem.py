"""Solver of the cone problem of contact, compared with its conditions, a slow fixed point and closed forms."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given
from hypothesis import strategies as st

from sarrus import _core
from tests.effort import examples
from tests.oracles.cones import Problem, by_fixed_point, natural_map, violations
from tests.random_mechanisms import seeds

DATA = Path(__file__).parents[1] / "data"
# what the solver promises of the natural map, as a share of the largest velocity
REACHED = 1e-10
# the fixed point stops where a round changes 1e-13, and its rounds contract slowly
SLOW = 1e-6


class Answer:
    def __init__(self, problem, guess=None, slip=None, turning=None):
        guess = np.zeros(len(problem.w)) if guess is None else guess
        slip = np.zeros(0) if slip is None else slip
        moments = [(*moment, 0.0, 0.0) for moment in problem.moments] if turning is None else turning
        told = _core.cone_problem(
            problem.G, problem.w, problem.friction, problem.low, problem.high, guess, slip, moments, problem.floor
        )
        self.reached, self.p, self.least, self.natural_map, self.iterations, self.stage = told
        self.u = problem.velocity(self.p)


def random_problem(seed, *, contacts=None, intervals=None, most_friction=1.0, bodies=3, scale=1.0, turns=False):
    """Return contacts between rigid bodies: G has the rank of the bodies' motions, and the free velocities are possible ones."""
    rng = np.random.default_rng(seed)
    contacts = int(rng.integers(1, 7)) if contacts is None else contacts
    intervals = int(rng.integers(0, 4)) if intervals is None else intervals
    J, turning, moments = np.zeros((3 * contacts + intervals, 6 * bodies)), [], []
    for i in range(contacts):
        first, second = rng.choice(bodies + 1, 2, replace=False)  # the last one is the ground
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        for body, sign in ((first, 1), (second, -1)):
            if body < bodies:
                x, y, z = rng.normal(size=3)
                arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
                J[3 * i : 3 * i + 3, 6 * body : 6 * body + 6] = sign * Q @ np.hstack([arm, np.eye(3)])
        for rows in ([0], [1, 2]) if turns else ():
            if rng.random() < 0.7:
                moments.append((i, len(rows), rng.uniform(0, 0.5 * most_friction)))
                spin = np.zeros((len(rows), 6 * bodies))
                for body, sign in ((first, 1), (second, -1)):
                    if body < bodies:
                        spin[:, 6 * body : 6 * body + 3] = sign * Q[rows]
                turning.append(spin)
    for j in range(intervals):
        J[3 * contacts + j, rng.integers(6 * bodies)] = 1.0
    J = np.vstack([J[: 3 * contacts], *turning, J[3 * contacts :]])
    inertia = np.repeat(rng.uniform(0.3, 3.0, bodies), 6) * scale
    G, w = (J / inertia) @ J.T, J @ rng.normal(size=6 * bodies)
    low = np.where(rng.random(intervals) < 0.5, 0.0, -rng.uniform(0, 0.3, intervals)) * scale
    high = np.where(low == 0.0, np.inf, -low)
    return Problem(G, w, rng.uniform(0, most_friction, contacts), low, high, moments)


def foot(push, mass=2.0, half=(0.1, 0.06), friction=0.5, dt=1e-3, turn=0.0):
    """Return the four corners of a rigid foot with this mass, pushed by a force along x at the ground: twelve rows of rank six."""
    corners = [(x, y, 0.0) for x in (-half[0], half[0]) for y in (-half[1], half[1])]
    J = []
    for x, y, z in corners:
        arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        J.append(np.hstack([arm, np.eye(3)])[[2, 0, 1]])
    J = np.vstack(J)
    inertia = np.array([0.01, 0.01, 0.02, 1, 1, 1]) * mass
    free = np.array([0, 0, turn, push * dt / mass, 0, -9.81 * dt])
    return Problem((J / inertia) @ J.T, J @ free, np.full(4, friction))


def assert_solves(problem, answer):
    """Check the conditions of the problem, relative to the norms of the compared terms."""
    assert answer.reached
    speed = abs(problem.w).max()
    assert answer.natural_map <= REACHED * speed
    impulse = max(abs(answer.p).max(), 1e-300)
    worst = violations(problem, answer.p)
    # a natural map of r in m/s is one of r / G_ii in N s
    mobility = max(np.diag(problem.G)[np.diag(problem.G) > 0].min(), 1e-300)
    assert worst["primal"] <= 2 * REACHED * speed / mobility
    assert worst["dual"] <= 20 * REACHED * speed
    assert worst["complementarity"] <= 20 * REACHED * speed * (impulse + speed / mobility)


@examples(60)
@given(seed=seeds())
def test_random_problems_are_solved(seed):
    problem = random_problem(seed)
    assert_solves(problem, Answer(problem))


@examples(60)
@given(seed=seeds())
def test_random_problems_with_moments_are_solved(seed):
    problem = random_problem(seed, turns=True)
    assert_solves(problem, Answer(problem))


@examples(10)
@given(seed=seeds())
def test_velocities_with_moments_are_those_of_the_slow_fixed_point(seed):
    problem = random_problem(seed, contacts=2, intervals=1, most_friction=0.3, turns=True)
    expected = by_fixed_point(problem, rounds=1000)
    if abs(natural_map(problem, expected)).max() > SLOW * abs(problem.w).max():
        return  # it did not arrive
    assert abs(Answer(problem).u - problem.velocity(expected)).max() <= 100 * SLOW * abs(problem.w).max()


@examples(60)
@given(seed=seeds(), turns=st.booleans())
def test_random_problems_with_least_normal_impulses_are_solved(seed, turns):
    """Some contacts have a lower bound on p_n, with friction of up to mu times the whole p_n; other contacts have none."""
    problem, rng = random_problem(seed, turns=turns), np.random.default_rng(seed)
    problem.floor = rng.uniform(0, 1, len(problem.friction)) * (rng.random(len(problem.friction)) < 0.5)
    answer = Answer(problem)
    assert answer.reached
    impulse, speed = max(abs(answer.p).max(), 1.0), max(abs(problem.w).max(), abs(problem.G).max())
    worst = violations(problem, answer.p)
    assert worst["primal"] <= 1e-8 * impulse
    assert worst["dual"] <= 1e-8 * speed
    assert worst["complementarity"] <= 1e-7 * impulse * speed


@pytest.mark.parametrize(("floor", "normal"), [(0.0, 1.0), (0.5, 1.0), (3.0, 3.0)])
def test_friction_is_of_all_of_the_normal_impulse(floor, normal):
    """A mass lands at 1 m/s and slides at 2 m/s.

    If the lower bound exceeds the stopping impulse, it takes off, with the friction of the whole impulse.
    """
    answer = Answer(Problem(np.eye(3), np.array([-1.0, 2.0, 0.0]), np.array([0.4]), floor=np.array([floor])))
    assert answer.reached
    np.testing.assert_allclose(answer.p, [normal, -min(0.4 * normal, 2.0), 0.0], atol=1e-9)
    np.testing.assert_allclose(answer.u, [normal - 1.0, 2.0 - min(0.4 * normal, 2.0), 0.0], atol=1e-9)


def disk_on_the_ground(spin, mass=2.0, inertia=0.01):
    """Return a pressed point with a moment about its normal: rows n, t1, t2, spin."""
    G = np.diag([1 / mass, 1 / mass, 1 / mass, 1 / inertia])
    return Problem(G, np.array([-9.81e-3, 0, 0, spin]), np.array([0.5]), moments=[(0, 1, 0.02)])


@pytest.mark.parametrize("share", [-3.0, -0.5, 0.5, 1.0, 3.0])
def test_spinning_is_braked_by_no_more_than_the_moment_and_lifts_nothing(share):
    most = 0.02 * 2.0 * 9.81e-3  # mu p_n [N m s]
    answer = Answer(disk_on_the_ground(share * most / 0.01))
    assert answer.reached
    np.testing.assert_allclose(answer.p[3], -np.clip(share, -1, 1) * most, rtol=1e-9)
    np.testing.assert_allclose(answer.u[0], 0.0, atol=1e-12)  # by a cone without the shift it would rise by mu |u_spin|


def test_moments_against_what_turns_already():
    """For accelerations, the moment opposes the present rotation, whatever the angular acceleration."""
    problem = disk_on_the_ground(0.0)
    answer = Answer(problem, turning=[(0, 1, 0.02, -1.0, 0.0)])
    assert answer.reached
    np.testing.assert_allclose(answer.p[3], 0.02 * answer.p[0], rtol=1e-9)
    np.testing.assert_allclose(answer.u[3], answer.p[3] / 0.01, rtol=1e-9)


@examples(20)
@given(seed=seeds())
def test_velocities_are_those_of_the_slow_fixed_point(seed):
    """With moderate friction the velocity is unique."""
    problem = random_problem(seed, most_friction=0.3)
    expected = by_fixed_point(problem)
    if abs(natural_map(problem, expected)).max() > SLOW * abs(problem.w).max():
        return  # it did not arrive
    assert abs(Answer(problem).u - problem.velocity(expected)).max() <= 100 * SLOW * abs(problem.w).max()


@examples(30)
@given(seed=seeds())
def test_without_friction_it_is_least_squares(seed):
    """min 1/2 p G p + w p, p >= 0, against SciPy's nonnegative least squares with G = A A^T."""
    problem = random_problem(seed, intervals=0, most_friction=0.0)
    answer, n = Answer(problem), slice(0, None, 3)
    assert_solves(problem, answer)
    values, vectors = np.linalg.eigh(problem.G[n, n])
    keep = values > 1e-12 * values[-1]
    root = (vectors[:, keep] * np.sqrt(values[keep])).T
    right = -(vectors[:, keep] / np.sqrt(values[keep])).T @ problem.w[n]
    p, _ = scipy.optimize.nnls(root, right)
    assert abs(problem.G[n, n] @ p + problem.w[n] - answer.u[n]).max() <= 1e-9 * abs(problem.w).max()


@examples(30)
@given(seed=seeds(), order=seeds())
@example(4557, 0)  # of which Newton's steps from the impulses miss the least ones
def test_neither_order_nor_start_matter(seed, order):
    problem = random_problem(seed, most_friction=0.3)
    k, rng = len(problem.friction), np.random.default_rng(order)
    contacts, intervals = rng.permutation(k), rng.permutation(len(problem.low))
    rows = np.concatenate([(3 * contacts[:, None] + np.arange(3)).ravel(), 3 * k + intervals]).astype(int)
    other = Problem(
        problem.G[np.ix_(rows, rows)],
        problem.w[rows],
        problem.friction[contacts],
        problem.low[intervals],
        problem.high[intervals],
    )
    one = Answer(problem)
    start = Answer(other, guess=abs(one.p).max() * rng.normal(size=len(problem.w)))
    speed = abs(problem.w).max()
    assert abs(one.u[rows] - start.u).max() <= 1e-8 * speed
    # forces that are not unique are the least ones, to what they are found to
    assert abs(one.least[rows] - start.least).max() <= 1e-5 * max(abs(one.p).max(), 1e-300)


@pytest.mark.parametrize("mass", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("speed", [1e-6, 1.0, 1e3])
def test_units_do_not_matter(mass, speed):
    """Scaled masses and speeds scale the impulses by mass times speed."""
    for seed in range(10):
        problem = random_problem(seed, contacts=3, intervals=2)
        unit = Answer(problem)
        other = Problem(
            problem.G / mass,
            problem.w * speed,
            problem.friction,
            problem.low * mass * speed,
            problem.high * mass * speed,
        )
        assert unit.reached
        np.testing.assert_allclose(
            Answer(other).p, unit.p * mass * speed, rtol=1e-9, atol=1e-9 * mass * speed * abs(unit.p).max()
        )


def test_light_and_heavy_bodies_together():
    """A tenth of a gram on a plate of ten tonnes: each row is scaled by its own inverse mass."""
    J = np.zeros((6, 12))
    J[0:3, 3:6], J[0:3, 9:12] = np.eye(3)[[2, 0, 1]], -np.eye(3)[[2, 0, 1]]
    J[3:6, 9:12] = np.eye(3)[[2, 0, 1]]
    masses = np.repeat([1e-4, 1e4], 6)
    problem = Problem((J / masses) @ J.T, J @ np.array([0, 0, 0, 1.0, 0, -1, 0, 0, 0, 0, 0, -1]), np.array([0.5, 0.3]))
    answer = Answer(problem)
    assert answer.reached
    # the plate stops, and so does the gram on it, which slips on and has lost mu times what it had downwards
    np.testing.assert_allclose(answer.u, [0, 1.0 - 0.5 * 1.0, 0, 0, 0, 0], atol=1e-8)


@pytest.mark.parametrize("share", [0.3, 0.999999, 1.0, 1.000001, 3.0])
def test_flat_foot_at_the_limit_of_friction(share):
    """The foot sticks up to mu m g and slides beyond. At the limit all four corners are at rest and on their cones' boundary."""
    limit = 0.5 * 2.0 * 9.81
    problem = foot(share * limit)
    answer = Answer(problem)
    assert_solves(problem, answer)
    excess = max(share - 1.0, 0.0) * limit * 1e-3 / 2.0
    np.testing.assert_allclose(answer.u.reshape(-1, 3)[:, 1], excess, atol=1e-9 * abs(problem.w).max())
    # they share the weight alike, as the least forces do
    np.testing.assert_allclose(answer.least.reshape(-1, 3)[:, 0].sum(), 2.0 * 9.81e-3, rtol=1e-6)


@pytest.mark.parametrize("share", [-0.2, 0.0, 0.1])
def test_least_forces_of_a_foot_are_alike(share):
    """A standing rigid table loads each of its four legs by a quarter, also if the initial guess loads some legs more."""
    quarter = 2.0 * 9.81e-3 / 4
    guess = np.outer(quarter * (1.0 + share * np.array([1.0, -1.0, -1.0, 1.0])), [1.0, 0.0, 0.0])
    answer = Answer(foot(0.0), guess=guess.ravel())
    np.testing.assert_allclose(answer.least.reshape(-1, 3), [[quarter, 0, 0]] * 4, rtol=1e-6, atol=1e-10)


def test_what_rests_takes_one_factor():
    """A standing foot, from forces near those of the last step: twelve rows of rank six; the initial guess does not change the result."""
    problem, rng = foot(2.0), np.random.default_rng(0)
    far = Answer(problem, guess=rng.normal(size=12))
    near = Answer(problem, guess=far.least * (1.0 + 1e-3 * rng.normal(size=12)))
    assert_solves(problem, near)
    assert (near.iterations, near.stage) == (1, 1)
    np.testing.assert_allclose(near.least, far.least, atol=1e-9 * abs(far.least).max())
    np.testing.assert_allclose(near.u, far.u, atol=2 * REACHED * abs(problem.w).max())


@pytest.mark.parametrize("share", [-3.0, -1.5, 1.5, 3.0])
def test_what_begins_to_slip_is_not_held_by_the_factor_of_rest(share):
    """Start from the forces of a standing foot that is now pushed beyond friction, and the reverse."""
    limit = 0.5 * 2.0 * 9.81
    rests, slips = foot(0.0), foot(share * limit)
    answer = Answer(slips, guess=Answer(rests).least)
    assert_solves(slips, answer)
    np.testing.assert_allclose(
        answer.u.reshape(-1, 3)[:, 1], np.sign(share) * (abs(share) - 1.0) * limit * 1e-3 / 2.0, atol=1e-9
    )
    assert_solves(rests, Answer(rests, guess=answer.least))


def test_what_the_search_for_the_least_forces_alone_solves_is_solved():
    """Four contacts with twelve rows of rank seven, which only the last stage (search for the least forces) solves."""
    rows = """-1 2 -2 2 0 2 0  1 0 0 2 -2 -2 1  1 -1 2 0 0 -1 -1  -1 -1 -1 -1 2 -2 1  -2 1 2 1 -2 -2 1  0 1 -1 2 2 0 -2
    -1 -1 -2 -1 -2 0 1  2 2 2 0 0 -1 0  0 1 2 2 2 0 -1  1 0 1 0 0 0 0  -2 -1 0 -2 -1 2 -1  -1 2 1 -1 0 1 -2"""
    Y, motion = np.array(rows.split(), float).reshape(12, 7), np.array([0.0, -1, -2, -1, 1, 2, -1])
    problem = Problem(Y @ Y.T, Y @ motion, np.full(4, 0.5), np.zeros(0), np.zeros(0))
    assert_solves(problem, Answer(problem))


def hyperstatic(seed):
    """Return many points of one to three boxes on the ground.

    A loop removes some of the boxes' motions, so there are four times as many rows as motions; friction is up to 2, in any units.
    """
    rng = np.random.default_rng(seed)
    bodies = int(rng.integers(1, 4))
    each = 16 if bodies == 1 else 8
    rows, inertia, weight = [], [], []
    for body in range(bodies):
        size, mass = 10.0 ** rng.uniform(-0.5, 0.5, 2)
        inertia += [*(mass * size**2 * rng.uniform(0.1, 1, 3)), mass, mass, mass]
        weight += [0, 0, 0, 0, 0, -1]
        for _ in range(each):
            x, y, z = size * np.array([*rng.choice([-1.0, 1.0, -0.6, 0.6], 2), -0.3])
            J = np.zeros((3, 6 * bodies))
            arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
            J[:, 6 * body : 6 * body + 6] = np.hstack([arm, np.eye(3)])[[2, 0, 1]]
            rows.append(J)
    root = np.sqrt(np.array(inertia))
    Y = np.vstack(rows) / root
    if bodies > 1:
        taken = np.linalg.qr(rng.normal(size=(6 * bodies, int(rng.integers(1, 6 * bodies - 4)))))[0]
        Y = Y - (Y @ taken) @ taken.T
    w = Y @ (rng.choice([0.01, 0.3, 1.0]) * rng.normal(size=len(root)) + root * weight)
    if rng.random() < 0.5:  # some are a little away
        w[::3] += abs(rng.normal(size=len(w) // 3)) * 10.0 ** rng.uniform(-5, -1)
    mass, speed = 10.0 ** rng.integers(-6, 7), 10.0 ** rng.integers(-6, 4)
    return Problem(Y @ Y.T / mass, w * speed, rng.uniform(0, 2, bodies * each))


def test_many_points_on_few_bodies():
    """Many solutions for the forces exist, and with friction of up to 2 the fixed-point shift alone need not converge. Failures are reported."""
    left = 0
    for seed in range(100):
        problem = hyperstatic(seed)
        answer = Answer(problem)
        if answer.reached:
            assert_solves(problem, answer)
        else:
            left += 1
            assert answer.natural_map > REACHED * abs(problem.w).max()
    assert left <= 3  # 6 where De Saxce's shift was only renewed


def test_sixteen_corners_of_a_four_bar():
    """A step in which four boxes in a ring come to lie: 48 rows of rank 7. The rates of the shift lead to the solution."""
    told = json.loads((DATA / "four_bar_sixteen_corners.json").read_text())
    Y = np.array(told["Y"])
    problem = Problem(Y @ Y.T, np.array(told["w"]), np.full(len(Y) // 3, told["friction"]))
    assert_solves(problem, Answer(problem))


def painleve(mu=2.0, degrees=60.0, slip=-0.5, fall=-9.81e-3):
    """Return a rod of 1 kg and 1 m that slides on one end, inclined so that friction drives it into the ground: G_n - mu G_nt < 0."""
    c, s = 0.5 * np.cos(np.radians(degrees)), 0.5 * np.sin(np.radians(degrees))
    # of the end below the middle: it moves with v + w x r, in the plane x, z
    J = np.array([[c, 0, 1], [-s, 1, 0], [0, 0, 0]])
    G = J @ np.diag([12.0, 1.0, 1.0]) @ J.T
    G[2, 2] = 1.0
    return Problem(G, np.array([fall, slip, 0.0]), np.array([mu]))


def test_painleves_rod_ends_in_an_impact_that_sticks():
    """Continued sliding is impossible, because a normal impulse with friction makes the end sink faster. The solution stops the slip at once."""
    problem = painleve()
    slides_on = problem.G[0, 0] + problem.friction[0] * problem.G[0, 1]
    assert min(slides_on, problem.G[0, 0] - problem.friction[0] * problem.G[0, 1]) < 0
    for slip in (-0.5, 0.5):
        problem = painleve(slip=slip)
        answer = Answer(problem)
        assert_solves(problem, answer)
    sinks = problem.G[0, 0] + problem.friction[0] * problem.G[0, 1] * -np.sign(0.5)
    if sinks < 0:
        np.testing.assert_allclose(answer.u, 0.0, atol=1e-10)


@examples(30)
@given(w=st.floats(-3, 3), g=st.floats(0.1, 10), low=st.sampled_from([0.0, -0.2]), high=st.sampled_from([np.inf, 0.2]))
def test_one_interval(w, g, low, high):
    """p = clip(-w / g)."""
    answer = Answer(Problem(np.array([[g]]), np.array([w]), np.zeros(0), np.array([low]), np.array([high])))
    assert answer.reached
    np.testing.assert_allclose(answer.p, [np.clip(-w / g, low, high)], atol=1e-9)


def test_what_cannot_be_solved_is_told():
    """Contact between immovable bodies: no impulse can remove the approach velocity, and this is reported."""
    for G in (np.zeros((3, 3)), np.diag([0.0, 1.0, 1.0])):
        answer = Answer(Problem(G, np.array([-1.0, 0.2, 0.0]), np.array([0.5])))
        assert not answer.reached
        assert answer.natural_map >= 1e-3
        assert np.isfinite(answer.p).all()


def test_what_parts_or_rests_has_no_impulse():
    answer = Answer(Problem(np.eye(6), np.array([0.1, 5, 0, 0, 0, 0]), np.array([0.5, 0.5])))
    assert answer.reached
    assert answer.stage == 0
    np.testing.assert_array_equal(answer.p, 0.0)


def test_contacts_that_slip_have_friction_against_that():
    """With p_t = -mu p_n d for any u_t, the normal part is a linear complementarity problem."""
    rng = np.random.default_rng(4)
    for seed in range(20):
        problem = random_problem(seed, contacts=3, intervals=0, most_friction=0.2)
        angle = rng.uniform(0, 6, 3)
        d = np.column_stack([np.cos(angle), np.sin(angle)])
        d[1] = 0.0  # this one is at rest
        answer = Answer(problem, slip=d.ravel())
        assert answer.reached
        p, u = answer.p.reshape(-1, 3), answer.u.reshape(-1, 3)
        size, speed = max(abs(p).max(), 1e-300), abs(problem.w).max()
        assert p[:, 0].min() >= -1e-8 * size
        for i in (0, 2):
            np.testing.assert_allclose(p[i, 1:], -problem.friction[i] * p[i, 0] * d[i], atol=1e-8 * size)
            assert u[i, 0] >= -1e-8 * speed
            assert abs(p[i, 0] * u[i, 0]) <= 1e-8 * size * speed


def test_bad_input_is_refused():
    good = Problem(np.eye(3), np.zeros(3), np.array([0.5]))
    with pytest.raises(ValueError, match="finite"):
        Answer(Problem(np.eye(3) * np.nan, np.zeros(3), np.array([0.5])))
    with pytest.raises(ValueError, match="wrong sizes"):
        Answer(Problem(np.eye(2), np.zeros(3), np.array([0.5])))
    with pytest.raises(ValueError, match="wrong sizes"):
        Answer(Problem(np.eye(3), np.zeros(3), np.array([0.5]), floor=np.zeros(2)))
    with pytest.raises(ValueError, match="wrong sizes"):
        Answer(Problem(np.eye(4), np.zeros(4), np.array([0.5]), moments=[(1, 1, 0.1)]))
    with pytest.raises(ValueError, match="wrong sizes"):  # contact by contact
        Answer(Problem(np.eye(8), np.zeros(8), np.array([0.5, 0.5]), moments=[(1, 1, 0.1), (0, 1, 0.1)]))
    assert Answer(good, guess=np.full(3, 1e300)).reached


@pytest.mark.parametrize("length", [1e-12, 1e-7, 1e-3, 1e7])
def test_metres_and_radians_are_not_compared(length):
    """With another unit of length, and with moments and intervals in other units, the velocities and the number of iterations are the same."""
    for seed in range(20):
        problem = random_problem(seed, contacts=4, intervals=2, turns=True)
        unit = np.ones(len(problem.w))
        unit[:12] = length
        other = Problem(
            unit[:, None] * problem.G * unit, unit * problem.w, problem.friction, problem.low, problem.high,
            tuple((contact, rows, length * mu) for contact, rows, mu in problem.moments),
        )  # fmt: skip
        here, there = Answer(problem), Answer(other)
        assert there.reached == here.reached and there.iterations == here.iterations
        np.testing.assert_allclose(there.u / unit, here.u, rtol=0.0, atol=1e-9 * abs(problem.w).max())
