"""Laws of every simulation method, compared with closed-form motions or another integrator.

Orders are measured where truncation is well above rounding: half the step of a method of order p leaves 2^-p of the error, +-12 %.
"""

import dataclasses
import os
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import sarrus
from tests.random_closed import ALL_CONSTRAINTS, DRIVEN, random_closed

ORDERS = {"euler": 1, "semi_implicit": 1, "rk4": 4, "rkmk4": 4, "implicit_midpoint": 2, "independent": 4}
METHODS = (*ORDERS, "dopri5")
ALL_ORDERS = ORDERS | {"rosenbrock": 4, "contact": 2}  # where nothing is stiff, and nothing touches
WITHOUT_CALLERS = tuple(kind for kind in ALL_CONSTRAINTS if kind != "pfaffian of q")
OF_NO_TIME = tuple(kind for kind in WITHOUT_CALLERS if kind not in DRIVEN)
STABILISATIONS = ("none", "corrective", "baumgarte", "projection")
INERTIA = np.array([[0.30, 0.02, -0.03], [0.02, 0.50, 0.04], [-0.03, 0.04, 0.65]])  # about the centre of mass [kg m2]
COM = np.array([0.2, -0.1, 0.3])  # [m]


def four_bar():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return robot, q, robot.project_velocity(q, [6.0, 0.0, 0.0])


def tight(rhs, y, duration):
    """Integrate by DOP853 with the least tolerance: its error is some 1e-12 of y."""
    return solve_ivp(rhs, (0.0, duration), y, method="DOP853", rtol=3e-14, atol=1e-14).y[:, -1]


# ---- motions that are known without sarrus' integrators --------------------------------------------------------------


def fourbar_case():
    """Return a four-bar and its exact flow: J a = gamma stays on the loops, so that integrators without stabilisation can be compared."""
    robot, q, v = four_bar()
    nv = robot.nv
    y = tight(lambda t, y: np.r_[y[nv:], robot.forward_dynamics(y[:nv], y[nv:], np.zeros(nv))], np.r_[q, v], 0.5)
    assert np.abs(robot.constraint_residual(y[:nv])).max() < 1e-12
    return robot, q, v, 0.5, y[:nv], y[nv:]


def one_body(joint, com):
    b = sarrus.Builder("top")
    b.add_body("top", sarrus.Inertia(2.0, com, INERTIA))
    b.add_joint("joint", joint, "ground", "top")
    return b.build()


def spun(quaternion, omega, duration, inertia=INERTIA, moment=lambda R: np.zeros(3)):
    """Euler's equations and the rate of a quaternion (x, y, z, w), written out."""

    def rate(t, y):
        p, w = y[:4] / np.linalg.norm(y[:4]), y[4:]
        x, s = p[:3], p[3]
        turning = np.r_[s * w + np.cross(x, w), -x @ w] / 2.0
        momentum = moment(Rotation.from_quat(p).as_matrix()) - np.cross(w, inertia @ w)
        return np.r_[turning, np.linalg.solve(inertia, momentum)]

    y = tight(rate, np.r_[quaternion, omega], duration)
    return y[:4] / np.linalg.norm(y[:4]), y[4:]


def spherical_case():
    """Return a heavy top on its point: inertia about the point, moment of gravity."""
    robot = one_body(sarrus.Spherical(), COM)
    q, v = robot.normalize([0.1, -0.2, 0.3, 0.9]), np.array([4.0, -3.0, 2.0])
    about_point = INERTIA + 2.0 * (COM @ COM * np.eye(3) - np.outer(COM, COM))
    weight = np.array([0.0, 0.0, -2.0 * 9.81])
    return robot, q, v, 0.5, *spun(q, v, 0.5, about_point, lambda R: np.cross(COM, R.T @ weight))


def free_case():
    """Return an asymmetric thrown body whose frame is not at its centre of mass, which follows a parabola."""
    robot = one_body(sarrus.Free(), COM)
    q = robot.normalize([0.1, -0.2, 0.3, 0.9, 1.0, 2.0, 3.0])
    w, u, T = np.array([4.0, -3.0, 2.0]), np.array([0.5, 0.3, -0.2]), 0.5
    p, w_end = spun(q[:4], w, T)
    R, R_end = Rotation.from_quat(q[:4]).as_matrix(), Rotation.from_quat(p).as_matrix()
    fall = np.array([0.0, 0.0, -9.81])
    centre = q[4:] + R @ COM + R @ (u + np.cross(w, COM)) * T + fall * T**2 / 2.0
    rate = R @ (u + np.cross(w, COM)) + fall * T
    return robot, q, np.r_[w, u], T, np.r_[p, centre - R_end @ COM], np.r_[w_end, R_end.T @ rate - np.cross(w_end, COM)]


def planar_case():
    """Return a gliding plate: its centre of mass moves on a straight line (level plane), and it rotates uniformly."""
    com = np.array([0.2, -0.1, 0.0])
    robot = one_body(sarrus.Planar("z"), com)
    q, v, T = np.array([0.3, -0.4, 0.5]), np.array([1.0, 0.5, 5.0]), 0.5

    def turn(angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    c, across = com[:2], np.array([-com[1], com[0]]) * v[2]
    R, R_end = turn(q[2]), turn(q[2] + v[2] * T)
    rate = R @ (v[:2] + across)
    place = q[:2] + R @ c + rate * T - R_end @ c
    return robot, q, v, T, np.r_[place, q[2] + v[2] * T], np.r_[R_end.T @ rate - across, v[2]]


CASES = {"four_bar": fourbar_case, "spherical": spherical_case, "free": free_case, "planar": planar_case}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


def error(case, **options):
    robot, q, v, duration, q_end, v_end = case
    run = sarrus.simulate(robot, q, v, duration, **options)
    assert run.t[-1] == duration
    return max(np.abs(robot.difference(q_end, run.q[-1])).max(), np.abs(run.v[-1] - v_end).max())


@pytest.mark.parametrize("method", ALL_ORDERS)
def test_order(case, method):
    """Halving the step leaves 2^-order of the error."""
    order = ALL_ORDERS[method]
    steps = {1: 1e-3, 2: 1 / 400, 4: 1 / 250}[order] / np.array([1.0, 2.0])
    e = [error(case, method=method, dt=dt) for dt in steps]
    if e[0] < 1e-11:
        assert max(e) < 1e-11  # the method follows this motion exactly: there is no order to measure
        return
    assert np.log2(e[0] / e[1]) == pytest.approx(order, abs=0.17 if order < 4 else 0.35), e


@pytest.mark.filterwarnings("ignore::sarrus.DriftWarning")
@pytest.mark.parametrize("stabilisation", STABILISATIONS)
@pytest.mark.parametrize("method", [m for m in ORDERS if m != "independent"])
def test_order_with_every_stabilisation(method, stabilisation):
    """Stabilisation of loops does not reduce the order of a method."""
    known, order = fourbar_case(), ORDERS[method]
    e = [error(known, method=method, stabilisation=stabilisation, dt=dt) for dt in (1 / 800, 1 / 1600)]
    assert np.log2(e[0] / e[1]) == pytest.approx(order, abs=0.17 if order < 4 else 0.45), e


def test_order_of_dormand_prince(case):
    """The tolerances accept all steps, so their length is fixed: order 5."""
    e = [error(case, method="dopri5", dt=h, max_step=h, rtol=1.0, atol=1.0) for h in (1 / 100, 1 / 200)]
    if e[0] < 1e-11:
        assert max(e) < 1e-11
        return
    # an even higher rate is no fault: on some motions the leading term is small
    assert np.log2(e[0] / e[1]) > 4.7, e


def test_tolerances_are_proportional(case):
    """A tenth of the tolerance gives about a tenth of the error, which is at most a hundred tolerances."""
    tolerances = 10.0 ** -np.arange(4.0, 11.0)
    e = np.array([error(case, method="dopri5", dt=0.5, rtol=x, atol=x) for x in tolerances])
    assert (e < 100.0 * tolerances + 1e-12).all(), e
    if e[0] > 1e-9:
        slope = np.polyfit(np.log10(tolerances), np.log10(e), 1)[0]
        assert 0.7 < slope < 1.3, (slope, e)


# ---- what is conserved -----------------------------------------------------------------------------------------------


def long_run(robot, q, v, method, dt, steps, every):
    """Return energies at samples, with memory for these only."""
    times = np.arange(0, steps + 1, every) * dt
    run = sarrus.simulate(robot, q, v, times[-1], method=method, dt=dt, times=times)
    assert len(run) == len(times) and run.statistics["steps"] == steps
    return run.energy - run.energy[0], run


def drift_of(off):
    """Return the gain of a straight line through all samples, which ignores oscillation."""
    return np.polyfit(np.linspace(0.0, 1.0, len(off)), off, 1)[0]


def energetic(name):
    if name == "four_bar":
        return four_bar()
    if name == "pendulum":
        return sarrus.mechanisms.pendulum(), [2.0], [0.0]
    return sarrus.mechanisms.double_pendulum(), [1.0, 0.5], [0.0, 0.0]


LONG = [
    ("pendulum", "semi_implicit", 0.05),
    ("pendulum", "implicit_midpoint", 2e-5),
    ("double_pendulum", "implicit_midpoint", 1e-3),
    ("four_bar", "implicit_midpoint", 2e-5),
]


@pytest.mark.parametrize(("name", "method", "most"), LONG)
def test_energy_has_no_drift(name, method, most):
    """Over 10^5 steps energy oscillates, with an amplitude of the method's order, and its mean is constant."""
    off, run = long_run(*energetic(name), method, 1e-3, 100_000, 8)
    swing = np.abs(off).max()
    assert swing < most
    assert abs(drift_of(off)) < 0.05 * swing
    assert run.loop_error.max() < 1e-12


def test_semi_implicit_drifts_in_proportion_to_the_step():
    """If M depends on q, the method is not symplectic: the loss halves with the step."""
    lost = [drift_of(long_run(*four_bar(), "semi_implicit", dt, round(20.0 / dt), 8)[0]) for dt in (1e-3, 5e-4)]
    assert lost[0] / lost[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.skipif("SARRUS_SOAK" not in os.environ, reason="ten seconds: SARRUS_SOAK=1 pytest tests/laws -k million")
@pytest.mark.parametrize(("name", "method", "most"), [*LONG, ("four_bar", "rk4", 2e-8), ("pendulum", "rk4", 2e-10)])
def test_energy_over_a_million_steps(name, method, most):
    """Over 10^6 steps rk4 loses as much energy as its truncation error."""
    off, run = long_run(*energetic(name), method, 1e-3, 1_000_000, 80)
    swing = np.abs(off).max()
    assert swing < most
    assert method == "rk4" or abs(drift_of(off)) < 0.05 * swing
    assert run.loop_error.max() < 1e-12


@pytest.mark.parametrize(
    ("method", "most"),
    [("semi_implicit", 0.1), ("rk4", 4e-7), ("rkmk4", 4e-7), ("implicit_midpoint", 4e-5), ("independent", 4e-7)],
)
def test_energy_of_the_crank_rocker(method, most):
    """The documented loss over 10^4 steps of 1 ms [J]; for the midpoint rule, the size of its error of order 2."""
    off, run = long_run(*four_bar(), method, 1e-3, 10_000, 1)
    assert np.abs(off).max() < most
    assert run.loop_error.max() < (1e-10 if method == "semi_implicit" else 1e-12)


def floating_tree():
    """Return four bodies that swing on one another, in free space."""
    b = sarrus.Builder("floating tree", gravity=(0.0, 0.0, 0.0))
    for k in range(4):
        b.add_body(f"b{k}", sarrus.Inertia(1.0 + k, (0.1, 0.05 * k, -0.1), INERTIA))
    b.add_joint("float", sarrus.Free(), "ground", "b0")
    b.add_joint("ball", sarrus.Spherical(), "b0", "b1", at_parent=(0.5, 0.0, 0.0))
    b.add_joint("hinge", sarrus.Revolute("y"), "b1", "b2", at_parent=(0.0, 0.5, 0.0))
    b.add_joint("slide", sarrus.Planar("z"), "b0", "b3", at_parent=(0.0, 0.0, 0.5))
    robot = b.build()
    rng = np.random.default_rng(3)
    return robot, robot.random(rng), rng.normal(size=robot.nv)


@pytest.mark.parametrize("method", [*ORDERS, "dopri5"])
def test_momentum_of_a_floating_tree(method):
    """Without external forces linear and angular momentum are constant, to the order of the method."""
    robot, q, v = floating_tree()
    off = []
    for dt in (2e-3, 1e-3):
        options = {"rtol": 1.0, "atol": 1.0, "max_step": dt} if method == "dopri5" else {}
        run = sarrus.simulate(robot, q, v, 1.0, method=method, dt=dt, **options)
        off.append(np.abs(run.momentum - run.momentum[0]).max())
    order = ORDERS.get(method, 5)
    size = np.abs(run.momentum[0]).max()
    assert off[1] < size * {1: 1e-2, 2: 1e-4, 4: 1e-8, 5: 1e-9}[order]
    if off[1] > 1e-12 * size:
        assert np.log2(off[0] / off[1]) > order - 0.3, off


def floating_pair(b, name, closing, free):
    """Return two bodies connected by a joint, one or both of them with a free joint; a body swings on the second."""
    for k in range(3):
        b.add_body(f"{name}{k}", sarrus.Inertia(1.0 + k, (0.1, 0.05 * k, -0.1), INERTIA))
    b.add_joint(f"{name} float", sarrus.Free(), "ground", f"{name}0")
    if free:
        b.add_joint(f"{name} other", sarrus.Free(), "ground", f"{name}1")
    b.add_joint(f"{name} pin", closing, f"{name}0", f"{name}1", at_parent=(0.5, 0.0, 0.0), at_child=(-0.5, 0, 0))
    b.add_joint(f"{name} hinge", sarrus.Revolute("y"), f"{name}1", f"{name}2", at_parent=(0.0, 0.5, 0.0))


@pytest.mark.parametrize("closing", [sarrus.Spherical(), sarrus.Revolute("x"), sarrus.Prismatic("y")])
def test_the_midpoint_rule_keeps_the_momentum_of_whatever_floats(closing):
    """For every spanning tree, and for several groups."""
    b = sarrus.Builder("groups", gravity=(0.0, 0.0, 0.0))
    floating_pair(b, "a", closing, free=True)
    floating_pair(b, "b", closing, free=False)
    robot = b.build()
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    run = sarrus.simulate(robot, q, v, 1.0, method="implicit_midpoint", dt=5e-3)
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-12 * np.abs(run.momentum).max()


@pytest.mark.parametrize("free", [True, False], ids=["the joint closes", "the joint carries"])
@pytest.mark.parametrize("method", ALL_ORDERS)
def test_momentum_of_floating_bodies_is_of_the_order_of_the_method(method, free):
    """For any loop joint and any method, to its order or to rounding."""
    b = sarrus.Builder("pair", gravity=(0.0, 0.0, 0.0))
    floating_pair(b, "a", sarrus.Revolute("x"), free=free)
    robot = b.build()
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    runs = [sarrus.simulate(robot, q, v, 0.5, method=method, dt=dt) for dt in (4e-3, 2e-3)]
    off = [np.abs(run.momentum - run.momentum[0]).max() / np.abs(run.momentum).max() for run in runs]
    order = ALL_ORDERS[method]
    assert off[1] < {1: 2e-3, 2: 2e-6, 4: 1e-11}[order]
    assert off[1] < 1e-13 or np.log2(off[0] / off[1]) > order - 0.2, off


@pytest.mark.parametrize("method", [*ALL_ORDERS, "dopri5"])
def test_what_hangs_at_rest_stays_at_rest(method):
    """A loop in equilibrium under gravity, without dampers: no step causes a motion."""
    robot = sarrus.mechanisms.four_bar()
    at = sarrus.equilibrium(robot, robot.assemble(fixed={"motor": -1.5}))
    run = sarrus.simulate(robot, at.q, np.zeros(robot.nv), 0.5, method=method, dt=2e-3)
    assert np.abs(run.v).max() < 1e-9


@pytest.mark.parametrize("joint", [sarrus.Spherical(), sarrus.Free()])
def test_a_free_top_keeps_energy_and_momentum(joint):
    """The midpoint rule conserves energy, and momentum with its direction, to rounding over 2000 steps, in each of which some ten numbers are
    rounded; a free body moves on a straight line.
    """
    b = sarrus.Builder("top", gravity=(0.0, 0.0, 0.0))
    b.add_body("top", sarrus.Inertia(2.0, (0.0, 0.0, 0.0), INERTIA))
    b.add_joint("joint", joint, "ground", "top")
    top = b.build()
    v = np.array([0.1, 5.0, 0.1, 0.3, -0.2, 0.4])[: top.nv]
    run = sarrus.simulate(top, top.neutral(), v, 20.0, method="implicit_midpoint", dt=1e-2)
    rounding = 10 * len(run) * np.finfo(float).eps
    size = np.linalg.norm(run.momentum[0])
    assert np.abs(run.energy / run.energy[0] - 1.0).max() < rounding
    lever = 1.0 + np.abs(run.q[:, 4:]).max(initial=0.0)  # what linear momentum is off by counts at the origin
    assert np.abs(run.momentum / size - run.momentum[0] / size).max() < rounding * lever
    assert np.abs(np.linalg.norm(run.q[:, :4], axis=1) - 1.0).max() < 1e-14
    assert np.ptp(run.q[:, 1]) > 0.5  # it tumbles
    if top.nv == 6:
        assert_allclose(run.q[-1, 4:], v[3:] * 20.0, atol=rounding * 20.0)


# ---- a run that goes on ----------------------------------------------------------------------------------------------


def remembering():
    """Return force elements, two of which have memory."""
    return [
        sarrus.control.PID("motor", 20.0, 30.0, 2.0, target=sarrus.laws.harmonic(0.3, rate=3.0, offset=0.5), limits=(-15, 15)),
        sarrus.control.LuGreFriction("pivot", sliding=0.3, stiffness=100.0, damping=1.0),
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pieces", [(0.5, 0.5), (0.3141, 0.0007, 0.4), (0.0305, 0.0101, 0.0003, 0.25)])
def test_a_run_in_pieces_is_the_run_in_one(method, pieces):
    """Bit for bit: the partial step at the end of a segment is reported, but the run does not continue from it."""
    robot, q, v = four_bar()
    options = {"controller": remembering(), "method": method, "dt": 1e-3}
    whole = sarrus.simulate(robot, q, v, 1.0, **options)
    part = sarrus.simulate(robot, q, v, pieces[0], **options)
    for more in pieces[1:]:
        part = sarrus.simulate(robot, duration=more, resume=part.checkpoint, **options)
    rest = 1.0 - part.t[-1]
    if rest > 0.0:
        part = sarrus.simulate(robot, duration=rest, resume=part.checkpoint, **options)
    assert part.t[-1] == pytest.approx(1.0, abs=1e-15)
    if part.t[-1] == whole.t[-1]:
        for name in ("q", "v", "internal_state"):
            assert_array_equal(getattr(part, name)[-1], getattr(whole, name)[-1])
    if method != "dopri5":  # whose samples count from where the piece begins
        there = np.searchsorted(whole.t, part.t[1:])
        same = (there < len(whole.t)) & (whole.t[np.minimum(there, len(whole.t) - 1)] == part.t[1:])
        assert same.sum() > 10
        assert_array_equal(part.q[1:][same], whole.q[there[same]])
        assert_array_equal(part.internal_state[1:][same], whole.internal_state[there[same]])


def test_adaptive_pieces_do_not_show_in_the_steps():
    """For any cuts of a run, also if the last step to a cut is rejected: the following steps are those of the whole run."""
    robot, q, v = four_bar()
    options = {"method": "dopri5", "rtol": 1e-8, "atol": 1e-10, "times": [2.0]}
    whole = sarrus.simulate(robot, q, v, 2.0, **options)
    differ = []
    for cut in np.linspace(0.01, 1.9, 64):
        cut = np.round(cut * 1024) / 1024  # exact, as is 2 - cut
        first = sarrus.simulate(robot, q, v, cut, method="dopri5", rtol=1e-8, atol=1e-10)
        second = sarrus.simulate(robot, duration=2.0 - cut, resume=first.checkpoint, **options)
        if not (np.array_equal(second.q[-1], whole.q[-1]) and np.array_equal(second.v[-1], whole.v[-1])):
            differ.append(cut)
    assert not differ


def test_adaptive_pieces_where_steps_are_refused():
    """The run is cut soon after a jump of an effort, with active step control."""
    robot = sarrus.mechanisms.pendulum()
    jump = sarrus.control.FeedforwardEffort("pivot", sarrus.laws.Law((0.0, 0.5), ((0.0,), (20.0,))))
    options = {"method": "dopri5", "rtol": 1e-9, "atol": 1e-9, "controller": jump}
    whole = sarrus.simulate(robot, [1.0], [0.0], 1.0, times=[1.0], **options)
    assert whole.statistics["rejected"] > 10
    differ = []
    for cut in 0.5 + np.arange(1, 65) / 1024:
        first = sarrus.simulate(robot, [1.0], [0.0], cut, **options)
        second = sarrus.simulate(robot, duration=1.0 - cut, resume=first.checkpoint, times=[1.0], **options)
        if not np.array_equal(second.q[-1], whole.q[-1]):
            differ.append(cut)
    assert not differ


def test_time_is_a_multiple_of_the_step():
    """Times are multiples of the step, not sums: after 10^4 steps the grid is exact."""
    robot = sarrus.mechanisms.pendulum()
    run = sarrus.simulate(robot, [0.1], [0.0], 10.0, method="euler", dt=1e-3)
    assert_allclose(run.t, np.arange(10001) * 1e-3, rtol=2e-16, atol=0.0)


# ---- loops -----------------------------------------------------------------------------------------------------------


def test_drift():
    """Without help loops open, farther with time; forces keep them near, projection closes them."""
    robot, q, v = four_bar()
    worst = {}
    for how in STABILISATIONS:
        run = sarrus.simulate(robot, q, v, 20.0, stabilisation=how, dt=4e-3)
        worst[how] = run.loop_error[: len(run) // 4].max(), run.loop_error[-len(run) // 4 :].max()
    early, late = worst["none"]
    assert late > 2.0 * early > 1e-9
    for how in ("corrective", "baumgarte"):
        early, bounded = worst[how]
        assert bounded < 2.0 * early and bounded < late, worst
    assert max(worst["projection"]) < 1e-12


@pytest.mark.parametrize("how", ["corrective", "baumgarte"])
def test_forces_bring_open_loops_back(how):
    """Initially open loops close by their gains: e'' + g_v e' + g_p e = 0 along the rows."""
    robot, q, v = four_bar()
    opened = sarrus.simulate(robot, q + np.array([0.0, 1e-4, 0.0]), v, 0.0, stabilisation="none").checkpoint
    run = sarrus.simulate(robot, duration=2.0, resume=opened, stabilisation=how, dt=1e-3)
    phi = robot.constraint_residual(run.q)
    first = np.abs(phi[0]).max()
    assert first > 3e-5
    if how == "corrective":  # overdamped through the masses, some g_v / g_p = 2/3 s
        assert np.abs(phi[-1]).max() < 0.1 * first
        return
    # alpha = beta = 10/s: (a + b t) exp(-10 t), b by the rate too at which it begins to open, some 60/s of it: the crank's 6 rad/s times 10
    assert np.abs(phi[1000]).max() < 70.0 * np.exp(-10.0) * first
    assert np.abs(phi[-1]).max() < 140.0 * np.exp(-20.0) * first + 1e-9  # and what truncation opens all the time


@pytest.mark.parametrize("method", METHODS)
def test_a_rolling_disc_does_not_slip(method):
    """J v = 0 at every sample of a disc that leans, turns and rolls."""
    disc = sarrus.mechanisms.rolling_disc()
    lean = np.r_[Rotation.from_euler("xz", [0.3, 0.2]).as_quat(), 0.0, 0.0, 0.28]
    q, w = disc.project_configuration(lean), np.array([0.5, 8.0, 0.8])
    J = disc.constraint_jacobian(q)
    v = np.r_[w, np.linalg.solve(J[:, 3:], -J[:, :3] @ w)]
    run = sarrus.simulate(disc, q, v, 1.0, method=method, dt=1e-3, times=np.arange(0, 1001, 50) * 1e-3)
    # between its steps dopri5 shows its polynomial, as precise as its tolerance
    sound = 1e-4 if method == "dopri5" else 1e-12
    slip = np.einsum("nij,nj->ni", disc.constraint_jacobian(run.q), run.v)
    assert np.abs(slip).max() < sound
    assert run.loop_error.max() < sound
    assert np.abs(run.q[-1, 4:6] - run.q[0, 4:6]).max() > 0.5  # it went somewhere
    assert np.abs(run.energy - run.energy[0]).max() < {"euler": 0.5, "semi_implicit": 0.5}.get(method, 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_prescribed_motion_follows_its_law(method):
    """The crank of a four-bar turned by a law: at steps to rounding, and its velocity too."""
    law = sarrus.laws.harmonic(0.4, rate=5.0, offset=0.5)
    b = sarrus.Builder("double pendulum, led")
    for k in (1, 2):
        b.add_body(f"b{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    b.add_joint("led", sarrus.Revolute("y"), "ground", "b1")
    b.add_joint("free", sarrus.Revolute("y"), "b1", "b2", at_parent=(0, 0, -1))
    b.add_prescribed_motion("drive", "led", law)
    robot = b.build()
    start = 0.25
    run = sarrus.simulate(
        robot, [law(start), 0.3], [law.derivatives(start)[1], 0.0], 1.0, method=method, dt=1e-3, start=start
    )
    g, rate, _ = law.derivatives(run.t)
    near = 1e-5 if method == "dopri5" else 1e-12
    assert_allclose(run.q[:, 0], g, atol=near)
    # semi_implicit has the mean rate of its last step
    assert_allclose(run.v[:, 0], rate, atol=2e-2 if method == "semi_implicit" else 10 * near)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rk4", {}),
        ("rkmk4", {}),
        ("implicit_midpoint", {}),
        ("dopri5", {"rtol": 1e-8, "atol": 1e-8}),
    ],
)
@pytest.mark.parametrize("closing", ["point", "weld"])
def test_through_flat_positions(closing, method, options):
    """A ladder of parallelograms falls through its singular, flat positions, and stays a ladder with one angle."""
    run = fallen_ladder(closing, 1.0, method=method, dt=1e-3, **options)
    lean = run.q[:, 0]
    assert from_flat(lean).min() < 0.01
    assert np.abs(np.diff(np.sign(np.cos(lean)))).sum() >= 4  # it went through, at least twice
    assert np.abs(run.energy - run.energy[0]).max() < (1e-2 if method == "implicit_midpoint" else 2e-5)
    assert run.statistics["beyond_tolerance"] == 0


@pytest.mark.parametrize("tolerance", [1e-9, 1e-10, 1e-11])
@pytest.mark.parametrize("closing", ["point", "weld"])
def test_tolerances_that_rounding_does_not_allow_near_flat_positions(closing, tolerance):
    """Accelerations are off by more than that there, and rounding decides whether a step leads across: a run goes on, and is still right,
    or ends there with an error that holds what is right; never elsewhere.
    """
    for speed in (1.0, 1.02, 1.04, 1.06):
        try:
            run = fallen_ladder(closing, speed, method="dopri5", rtol=tolerance, atol=tolerance)
        except sarrus.IntegrationError as failed:
            run = failed.trajectory
            assert from_flat(run.q[-1, 0]) < 0.01, speed
        assert np.abs(run.energy - run.energy[0]).max() < 2e-5, speed


def fallen_ladder(closing, speed, **options):
    """Return a run of eight parallelograms for 4 s, and check that they stay parallelograms."""
    robot = sarrus.mechanisms.four_bar_ladder(8, closing=closing)
    pivots = [robot.joint(name).v_slice.start for name in robot.joints if name.startswith("pivot")]
    signs = -np.ones(robot.nv)
    signs[pivots] = 1.0
    try:
        return ladder(sarrus.simulate(robot, np.zeros(robot.nq), speed * signs, 4.0, **options), signs)
    except sarrus.IntegrationError as failed:
        ladder(failed.trajectory, signs)
        raise


def ladder(run, signs):
    assert np.abs(run.q * signs - run.q[:, :1]).max() < 1e-6
    return run


def from_flat(lean):
    return np.abs(np.mod(lean, np.pi) - np.pi / 2)


# ---- loops whose rows agree only where they are closed ---------------------------------------------------------------


def in_motion(robot, rate):
    """Return the state at home with the fastest joint at this rate [rad/s]."""
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(1).normal(size=robot.nv))
    return robot, q, v * rate / np.abs(v).max()


@pytest.fixture(scope="module")
def bennett_case():
    """Return a run by independent coordinates in steps of 1/16 ms, with an error of some 1e-13."""
    robot, q, v = in_motion(sarrus.mechanisms.bennett(), 5.0)
    run = sarrus.simulate(robot, q, v, 0.25, method="independent", dt=1 / 16000, times=[0.25])
    return robot, q, v, 0.25, run.q[-1], run.v[-1]


@pytest.mark.parametrize("method", ORDERS)
def test_order_on_bennetts_linkage(bennett_case, method):
    """If its loop had a gap, its three hinges could not move at all; tests for this must not affect the order."""
    order = ORDERS[method]
    steps = {1: 1 / 800, 2: 1 / 400, 4: 1 / 200}[order] / np.array([1.0, 2.0])
    e = [error(bennett_case, method=method, dt=dt) for dt in steps]
    assert e[0] < {1: 0.1, 2: 1e-3, 4: 1e-7}[order], e
    assert np.log2(e[0] / e[1]) == pytest.approx(order, abs=0.25 if order < 4 else 0.4), e


def test_bennetts_linkage_by_tolerances(bennett_case):
    tolerances = 10.0 ** -np.arange(4.0, 11.0)
    e = np.array([error(bennett_case, method="dopri5", dt=0.25, rtol=x, atol=x) for x in tolerances])
    assert (e < 300.0 * tolerances + 1e-12).all(), e / tolerances


@pytest.mark.parametrize("method", METHODS)
def test_bennetts_linkage_driven(method):
    """A law drives its one freedom: the rows then have full rank, and must nevertheless be tested for consistency."""
    d = sarrus.mechanisms.bennett().description
    law = sarrus.laws.harmonic(0.5, rate=6.0, offset=2 * np.pi / 3)
    drive = sarrus.description.CouplerSpec("drive", (("joint1", 0, (1.0,)),), 0.0, law)
    robot = sarrus.Mechanism(dataclasses.replace(d, constraints=(drive,)))
    q = robot.assemble()
    v = robot.project_velocity(q, np.zeros(3), time=0.0)
    run = sarrus.simulate(robot, q, v, 0.5, method=method, dt=4e-3)
    assert_allclose(run.q[:, 0], law(run.t), atol=1e-5 if method == "dopri5" else 1e-10)
    assert_allclose(np.tan(run.q[:, 0] / 2) * np.tan(run.q[:, 1] / 2), -1.0 - np.sqrt(3.0), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sarrus.StiffnessWarning")  # loops that nothing closes lose energy
def test_stages_are_closed_also_where_a_run_goes_on():
    """The closure of loops may change between pieces; the second one equals that of a run from the start."""
    robot, q, v = in_motion(sarrus.mechanisms.bennett(), 1.0)
    begun = sarrus.simulate(robot, q, v, 0.0, stabilisation="none").checkpoint
    late = sarrus.simulate(robot, duration=0.1, resume=begun, stabilisation="projection")
    whole = sarrus.simulate(robot, q, v, 0.1, stabilisation="projection")
    assert np.abs(late.q[-1] - whole.q[-1]).max() < 1e-9
    # from the same state to the last bit: drift would make 1e-16 of it 1e-7, as loops are closed by nothing here
    begun = sarrus.simulate(robot, q, v, 0.0, stabilisation="projection")
    late = sarrus.simulate(robot, duration=0.02, resume=begun, stabilisation="none")
    free = sarrus.simulate(robot, begun.q[-1], begun.v[-1], 0.02, dt=1e-3, stabilisation="none")
    assert_array_equal(late.q, free.q)
    kept = sarrus.simulate(robot, duration=0.02, resume=begun, stabilisation="projection")
    assert np.abs(late.q - kept.q).max() > 1e-6


# ---- the midpoint rule -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["four_bar", "bennett", "bricard", "stewart", "rolling_disc", "five_bar"])
def test_the_midpoint_rule_goes_back(name):
    """The rule and its projection are symmetric: a reversed run ends at its start, to rounding that 50 steps amplify."""
    robot, q, v = in_motion(getattr(sarrus.mechanisms, name)(), 1.5)
    there = sarrus.simulate(robot, q, v, 0.1, method="implicit_midpoint", dt=2e-3)
    back = sarrus.simulate(robot, there.q[-1], -there.v[-1], 0.1, method="implicit_midpoint", dt=2e-3)
    assert np.abs(robot.difference(q, there.q[-1])).max() > 1e-3
    assert np.abs(robot.difference(q, back.q[-1])).max() < 1e-10
    assert np.abs(back.v[-1] + v).max() < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "delta", "stewart", "biped"])
def test_both_iterations_of_the_midpoint_rule_have_the_same_solution(name):
    """Dry friction, here of 1e-200 N m, requires the iteration with evaluations; else a simplified Newton iteration solves the equation. The biped
    floats. The difference is the rounding of 20 steps.
    """
    robot, q, v = in_motion(getattr(sarrus.mechanisms, name)(), 1.0)
    b = robot.to_builder()
    sliding = next(j for j in robot.joints if abs(v[robot.joint(j).v_slice]).min() > 0.1 and robot.joint(j).nv == 1)
    b.set_joint(sliding, dataclasses.replace(robot.joint(sliding).type, friction=1e-200))
    runs = [sarrus.simulate(r, q, v, 0.04, method="implicit_midpoint", dt=2e-3) for r in (robot, b.build())]
    assert np.abs(robot.difference(runs[0].q, runs[1].q)).max() < 1e-12
    assert np.abs(runs[0].v - runs[1].v).max() < 1e-12 * np.abs(v).max() * robot.nv


@pytest.mark.parametrize(
    ("seed", "kinds"), [(2933, WITHOUT_CALLERS), (11, OF_NO_TIME), (25, OF_NO_TIME), (2, OF_NO_TIME)]
)
def test_a_step_of_the_midpoint_rule_goes_back_on_any_loops(seed, kinds):
    """The error is the square of the drift. For seed 2933 the correction of positions first increases that of velocities."""
    c = random_closed(seed, bodies=7, loops=2, copies=0, floating=False, branching=0.3, kinds=kinds)
    q, v, _, time = c.state
    h, how = 5e-3, {"method": "implicit_midpoint", "dt": 5e-3, "stabilisation": "projection"}
    there = sarrus.simulate(c.robot, q, v, h, start=float(time), **how)
    back = sarrus.simulate(c.robot, there.q[-1], -there.v[-1], h, start=float(time), **how)
    assert np.abs(c.robot.difference(there.q[0], back.q[-1])).max() < 1e-11
    assert np.abs(back.v[-1] + there.v[0]).max() < 1e-10


def test_the_midpoint_rule_on_every_joint():
    """Order 2 on a chain of a free, a universal, a planar, a gimbal, a cylindrical and a spherical joint."""
    b = sarrus.Builder("chain")
    joints = (
        sarrus.Free(), sarrus.Universal("x", "y"), sarrus.Planar("y"), sarrus.Gimbal("rz tx ry"), sarrus.Cylindrical("x"),
        sarrus.Spherical(),
    )  # fmt: skip
    for k, joint in enumerate(joints):
        b.add_body(f"b{k}", sarrus.Inertia(1.0 + k, (0.1, 0.05 * k, -0.1), INERTIA))
        b.add_joint(f"j{k}", joint, f"b{k - 1}" if k else "ground", f"b{k}", at_parent=(0.3, 0.1, 0.2))
    robot = b.build()
    rng = np.random.default_rng(0)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    run = sarrus.simulate(robot, q, v, 0.25, method="dopri5", rtol=1e-12, atol=1e-13, times=[0.25])
    known = robot, q, v, 0.25, run.q[-1], run.v[-1]
    e = [error(known, method="implicit_midpoint", dt=dt) for dt in (1 / 400, 1 / 800)]
    assert np.log2(e[0] / e[1]) == pytest.approx(2.0, abs=0.05), e


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_the_midpoint_rule_comes_to_rest(dt):
    """On a plane the velocity decays to rounding, at the depth that carries the weight, k d^1.5 = m g."""
    b = sarrus.Builder("weight")
    b.add_body("weight", sarrus.Inertia(1.0, (0.0, 0.0, 0.0), 0.01 * np.eye(3)))
    b.add_joint("slide", sarrus.Prismatic("z"), "ground", "weight")
    plane = sarrus.control.CompliantContact("weight", radius=0.1, dissipation=5.0)
    run = sarrus.simulate(b.build(), [0.12], [0.0], 2.0, plane, method="implicit_midpoint", dt=dt)
    assert run.q[-1, 0] == pytest.approx(0.1 - (9.81 / 1e5) ** (2 / 3), abs=1e-8)
    assert abs(run.v[-1, 0]) < 1e-8


# ---- forces that jump ------------------------------------------------------------------------------------------------


def driven_by_jumps():
    """A pendulum whose torque jumps twice. Known in pieces, none of which has a jump."""
    robot, at, levels = sarrus.mechanisms.pendulum(), (0.0, 0.5, 0.7, 1.0), (0.0, 2.0, -3.0)
    q, v = [1.0], [0.0]
    for begin, end, level in zip(at[:-1], at[1:], levels, strict=True):
        torque = sarrus.control.FeedforwardEffort("pivot", level)
        run = sarrus.simulate(
            robot, q, v, end - begin, torque, method="dopri5", rtol=1e-13, atol=1e-13, start=begin, times=[end]
        )
        q, v = run.q[-1], run.v[-1]
    law = sarrus.laws.Law(at[:-1], tuple((level,) for level in levels))
    return (robot, [1.0], [0.0], 1.0, q, v), sarrus.control.FeedforwardEffort("pivot", law)


def bouncing():
    """A ball that is thrown on the floor, and up again: one bounce."""
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia(1.0, (0.0, 0.0, 0.0), 0.01 * np.eye(3)))
    b.add_joint("fly", sarrus.Free(), "ground", "ball")
    floor = sarrus.control.CompliantContact("ball", radius=0.1, stiffness=1e4, slip_velocity=0.1)
    q, v = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.3], [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    return as_tight(b.build(), q, v, 0.35, floor), floor


def sticking():
    """A block pushed to and fro, that sticks and slips."""
    b = sarrus.Builder("block", gravity=(0.0, 0.0, 0.0))
    b.add_body("block", sarrus.Inertia(1.0, (0.0, 0.0, 0.0), 0.01 * np.eye(3)))
    b.add_joint("slide", sarrus.Prismatic("x"), "ground", "block")
    acts = [
        sarrus.control.LuGreFriction("slide", sliding=1.0, sticking=1.5),
        sarrus.control.FeedforwardEffort("slide", sarrus.laws.harmonic(3.0, rate=4.0)),
    ]
    return as_tight(b.build(), [0.0], [0.0], 1.0, acts), acts


def as_tight(robot, q, v, duration, acts):
    run = sarrus.simulate(robot, q, v, duration, acts, method="dopri5", rtol=1e-13, atol=1e-13, times=[duration])
    return robot, q, v, duration, run.q[-1], run.v[-1]


@pytest.mark.parametrize("build", [driven_by_jumps, bouncing, sticking])
def test_tolerances_where_forces_jump(build):
    """Short steps lead across a jump, so that none is taken whose error is too large; what the estimate does not see of a jump within a
    step, and bounces make larger, is less than 400 tolerances, as with other codes (260 with SciPy's RK45).
    """
    known, acts = build()
    robot, q, v, duration, q_end, v_end = known
    for tolerance in 10.0 ** -np.arange(4.0, 11.0):
        run = sarrus.simulate(
            robot, q, v, duration, acts, method="dopri5", rtol=tolerance, atol=tolerance, times=[duration]
        )
        assert run.statistics["beyond_tolerance"] == 0, tolerance
        off = max(np.abs(robot.difference(q_end, run.q[-1])).max(), np.abs(run.v[-1] - v_end).max())
        assert off < 400.0 * tolerance + 1e-11, (tolerance, off)


# ---- what must be said -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sarrus.StiffnessWarning")
@pytest.mark.parametrize("method", ["euler", "semi_implicit", "rk4", "implicit_midpoint"])
@pytest.mark.parametrize("dt", [0.05, 0.3])
def test_loops_that_steps_cannot_close_are_an_error(method, dt):
    """Steps too long for this crank: an error, or loops that are closed; and what the error holds is closed too."""
    robot, q, v = four_bar()
    try:
        run = sarrus.simulate(robot, q, v, 3.0, method=method, dt=dt)
    except sarrus.IntegrationError as failed:
        run = failed.trajectory
    assert run.loop_error.max() < 1e-8


@pytest.mark.parametrize("method", METHODS)
def test_events_in_what_was_shown_of_a_step(method):
    """A piece shows a part of the step that the next one takes: what happened in it happened once, and in the piece that showed it."""
    robot = sarrus.mechanisms.pendulum()
    down = {"method": method, "dt": 1e-2}
    event = sarrus.Event(lambda t, q, v: q[0], "down", terminal=False)
    (once,) = sarrus.simulate(robot, [1.0], [0.0], 1.0, events=event, **down).events["down"]
    first = sarrus.simulate(robot, [1.0], [0.0], once + 1e-3, events=event, **down)
    assert len(first.events["down"]) == 1
    rest = sarrus.simulate(robot, duration=0.4, resume=first.checkpoint, events=event, **down)
    assert len(rest.events["down"]) == 0
    stops = sarrus.Event(lambda t, q, v: q[0], "down")
    rest = sarrus.simulate(robot, duration=0.4, resume=first.checkpoint, events=stops, **down)
    assert rest.status == "finished"


# ---- end stops -------------------------------------------------------------------------------------------------------


def slider(mass=1.0, **joint):
    b = sarrus.Builder("slider", gravity=(0.0, 0.0, 0.0))
    b.add_body("block", sarrus.Inertia.sphere(mass, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", **joint), "ground", "block")
    return b.build()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_end_stop_against_its_equation(side):
    """m x'' = -(k d + c d'), |c d'| <= k d, by SciPy: through the impact and out of it."""
    m, k, c = 2.0, 3e4, 250.0

    def rate(t, y):
        d = max(y[0] - 0.2, 0.0)
        return [y[1], -(k * d + np.clip(c * y[1], -k * d, k * d)) / m]

    known = solve_ivp(rate, (0.0, 0.3), [0.0, 1.5], method="DOP853", rtol=1e-11, atol=1e-12, max_step=1e-4).y[:, -1]
    stop = sarrus.control.EndStop("slide", (-0.2, 0.2), k, c)
    run = sarrus.simulate(
        slider(m), [0.0], [side * 1.5], 0.3, stop, method="dopri5", rtol=1e-9, atol=1e-10, max_step=1e-3
    )
    assert_allclose([run.q[-1, 0], run.v[-1, 0]], side * known, rtol=1e-6)
    assert side * run.v[-1, 0] < -0.1
    # it never pulls, and acts nowhere else
    beyond = side * run.q[:, 0] > 0.2
    assert beyond.any() and (side * run.tau[beyond, 0] <= 0.0).all() and (run.tau[~beyond] == 0.0).all()


@pytest.mark.parametrize("method", ["semi_implicit", "rk4", "rkmk4", "implicit_midpoint", "dopri5"])
@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
def test_default_end_stops_hold(method, mass):
    """Steps of 1 ms, any inertia: every impact loses energy, the penetration is v/(600/s), and there is no warning.

    The energy is that of motion and of the stop's spring; a step of 1 ms may increase it by 4 %.
    """
    stiffness = 2.5e5 * mass
    run = sarrus.simulate(
        slider(mass, limits=(-0.05, 0.05)), [0.0], [3.0], 2.0, limits="enforce", method=method, dt=1e-3, max_step=1e-3
    )
    depth = np.maximum(np.abs(run.q[:, 0]) - 0.05, 0.0)
    assert 3.0 / 800 < depth.max() < 3.0 / 500
    energy = run.kinetic_energy + 0.5 * stiffness * depth**2
    assert (energy[1:] - np.minimum.accumulate(energy)[:-1]).max() < 0.04 * energy[0]
    assert energy[-1] < 0.1 * energy[0]


def test_an_end_stop_brings_to_rest():
    """A pendulum falls on its stop and lies there: the torque of gravity at the depth that carries it."""
    robot = sarrus.mechanisms.pendulum()
    stop = sarrus.control.EndStop("pivot", (0.5, 2.0), stiffness=1e4, damping=100.0)
    run = sarrus.simulate(robot, [1.0], [0.0], 10.0, stop)
    depth = 0.5 - run.q[-1, 0]
    assert abs(run.v[-1, 0]) < 1e-6
    assert 1e4 * depth == pytest.approx(robot.inverse_dynamics(run.q[-1], [0.0], [0.0])[0], rel=1e-6)


# ---- steps and the rates of what acts --------------------------------------------------------------------------------


def effective_inertia(robot, q, iv):
    """1 / (M^-1) of one velocity, on the loops."""
    rest, unit = np.zeros(robot.nv), np.eye(robot.nv)[iv]
    return 1.0 / (robot.forward_dynamics(q, rest, unit) - robot.forward_dynamics(q, rest, rest))[iv]


def rate_of(mass, stiffness, damping):
    """The fastest of m x'' + c x' + k x = 0."""
    return np.abs(np.roots([mass, damping, stiffness])).max()


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize(("stiffness", "damping"), [(4e4, 0.0), (0.0, 300.0), (4e4, 900.0)])
@pytest.mark.parametrize("build", ["slider", "four-bar", "spring"])
def test_the_fastest_rate(build, stiffness, damping, lanes):
    """Spring and damper on one degree of freedom, as a controller on a tree, on loops, and as springs of the model: |rate| dt, which
    three products of power iteration estimate as accurately as a limit requires.
    """
    if build == "four-bar":
        robot, q, _ = four_bar()
        acts = sarrus.control.PID("motor", stiffness, 0.0, damping, target=q[0])
        mass = effective_inertia(robot, q, 0)
    elif build == "slider":
        robot, q, acts, mass = (
            slider(3.0),
            np.zeros(1),
            sarrus.control.PID("slide", stiffness, 0.0, damping),
            3.0,
        )
    else:
        b = sarrus.Builder("spring", gravity=(0.0, 0.0, 0.0))
        b.add_body("block", sarrus.Inertia.sphere(3.0, 0.1))
        b.add_joint("slide", sarrus.Prismatic("x", stiffness=stiffness / 4, damping=damping / 4), "ground", "block")
        b.add_spring(
            "coil", ("ground", (-1.0, 0.0, 0.0)), ("block", (0.0, 0.0, 0.0)), stiffness=0.75 * stiffness, rest_length=1.0,
            damping=0.75 * damping,
        )  # fmt: skip
        robot, q, acts, mass = b.build(), np.zeros(1), None, 3.0
    dt = 1.5 / rate_of(mass, stiffness, damping)
    if lanes:
        runs = sarrus.simulate_many(robot, np.tile(q, (5, 1)), np.zeros(robot.nv), dt, acts, method="rk4", dt=dt)
        assert_allclose(runs.stiffness, 1.5, rtol=0.15)
    else:
        run = sarrus.simulate(robot, q, np.zeros(robot.nv), dt, acts, method="rk4", dt=dt)
        assert run.statistics["stiffness"] == pytest.approx(1.5, rel=0.15)


@pytest.mark.parametrize(("method", "edge"), [("euler", 2.0), ("semi_implicit", 2.0), ("rk4", 2.785), ("rkmk4", 2.785)])
def test_the_edge_of_stability(method, edge):
    """A damper whose rate is a little less than a step can follow brings to rest, without a word; a little more, and it warns and grows."""
    brake = sarrus.control.PID("slide", derivative=0.97 * edge / 1e-3)
    below = sarrus.simulate(slider(), [0.0], [1.0], 0.5, brake, method=method)
    assert abs(below.v[-1, 0]) < 1e-6
    brake = sarrus.control.PID("slide", derivative=1.01 * edge / 1e-3)
    with pytest.warns(sarrus.StiffnessWarning, match=f"'{method}' with dt = 0.001 s is unstable"):
        above = sarrus.simulate(slider(), [0.0], [1.0], 0.5, brake, method=method, dt=1e-3)
    assert abs(above.v[-1, 0]) > 1e3


def test_a_short_impact_is_not_overlooked():
    """Five steps on a stop that is too stiff, between two tests of the rates."""
    stop = sarrus.control.EndStop("slide", (-1.0, 0.0115), stiffness=1e7, damping=0.0)
    with pytest.warns(sarrus.StiffnessWarning):
        sarrus.simulate(slider(), [0.0], [1.0], 0.03, stop, method="rk4", dt=1e-3)


def quadruped():
    """A trunk on four legs of two joints, held by PIDs, dropped by some millimetres on point feet."""
    b = sarrus.Builder("quadruped")
    b.add_body("trunk", sarrus.Inertia.box(10.0, (0.5, 0.3, 0.1)))
    b.add_joint("base", sarrus.Free(), "ground", "trunk")
    acts = []
    for k, (x, y) in enumerate([(0.25, 0.15), (0.25, -0.15), (-0.25, 0.15), (-0.25, -0.15)]):
        for part, mass in (("thigh", 1.0), ("shank", 0.3)):
            b.add_body(f"{part}{k}", sarrus.Inertia.rod(mass, (0, 0, 0), (0, 0, -0.25)))
        b.add_joint(f"hip{k}", sarrus.Revolute("y"), "trunk", f"thigh{k}", at_parent=(x, y, 0))
        b.add_joint(f"knee{k}", sarrus.Revolute("y"), f"thigh{k}", f"shank{k}", at_parent=(0, 0, -0.25))
        b.add_frame(f"foot{k}", f"shank{k}", (0, 0, -0.25))
        acts += [sarrus.control.PID(f"{name}{k}", 300.0, 0.0, 10.0, at) for name, at in (("hip", 0.4), ("knee", -0.8))]
        acts.append(sarrus.control.CompliantContact(f"foot{k}"))
    robot = b.build()
    q = robot.neutral()
    for k in range(4):
        q[robot.joint(f"hip{k}").q_slice], q[robot.joint(f"knee{k}").q_slice] = 0.4, -0.8
    q[robot.joint("base").q_slice.stop - 1] = 0.47
    return robot, q, acts


def test_a_quadruped_stands():
    """Reference: "dopri5" with rtol = 1e-9, and "rk4" with dt = 2e-6, agree on 0.4540502994 m and 4.2607890 mm."""
    robot, q, acts = quadruped()
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.5, acts)
    feet = run.frame("foot0")[:, :3, 3]
    assert run.frame("trunk")[-1, 2, 3] == pytest.approx(0.4540502994, abs=2e-5)
    assert feet[0, 0] - feet[-1, 0] == pytest.approx(4.2607890e-3, abs=2e-5)
    with pytest.warns(sarrus.StiffnessWarning, match="implicit_midpoint"):
        coarse = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.5, acts, method="rk4", dt=2.5e-4)
    feet = coarse.frame("foot0")[:, :3, 3]
    assert abs(feet[0, 0] - feet[-1, 0] - 4.2607890e-3) > 1e-3  # which is why it warns


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("turn", [0.6, 1.0, 2.0, 2.6])
def test_steps_that_eat_a_motion_are_warned_of(turn, many):
    """A spring without a damper keeps its energy; explicit steps of order 4 take (rate h)^6 / 72 of it each."""
    robot = slider(stiffness=(turn / 1e-3) ** 2)
    call = sarrus.simulate_many if many else sarrus.simulate
    with pytest.warns(sarrus.StiffnessWarning, match="% of the energy"):
        call(robot, [0.01], [0.0], 1.0, method="rk4", dt=1e-3)


def test_steps_that_keep_a_motion_are_not_warned_of():
    """Nor those of one that is soon gone: damped, or on an end stop."""
    run = sarrus.simulate(slider(stiffness=(0.2 / 1e-3) ** 2), [0.01], [0.0], 1.0, method="rk4")
    assert run.statistics["energy_eaten"] == pytest.approx(1.0 - run.energy[-1] / run.energy[0], rel=0.1)
    hold = sarrus.control.PID("slide", proportional=1e6, derivative=1e3)  # rate h = 1, damped by a half
    sarrus.simulate(slider(), [0.01], [0.0], 1.0, hold, method="rk4")
    sarrus.simulate(slider(), [0.0], [1.0], 1.0, sarrus.control.EndStop("slide", (-0.1, 0.1)), method="rk4")


def in_free_motion(robot):
    q = robot.assemble()
    return robot, q, robot.project_velocity(q, 3.0 * np.random.default_rng(0).standard_normal(robot.nv))


@pytest.mark.parametrize(("method", "what"), [("implicit_midpoint", "gains"), ("rk4", "loses")])
def test_energy_that_comes_from_nowhere_is_warned_of(method, what):
    """A free motion in too long steps warns; a tenth of the step conserves energy, without a warning. A motor's work causes none."""
    robot, q, v = in_free_motion(sarrus.mechanisms.four_bar())
    with pytest.warns(
        sarrus.StiffnessWarning, match=f"{what} .* of its largest kinetic energy, though no force .* it: the"
    ):
        sarrus.simulate(robot, q, v, 3.0, method=method, dt=0.1)
    with pytest.warns(sarrus.StiffnessWarning, match=r"no force .* it \(in 3 of 3 runs\)"):
        sarrus.simulate_many(robot, q, np.array([v, 0.1 * v, v]), 3.0, method=method, dt=0.1)
    sarrus.simulate(robot, q, v, 3.0, method=method, dt=0.01)
    sarrus.simulate(robot, q, v, 1.5, sarrus.control.FeedforwardEffort("motor", 0.1), method=method, dt=0.01)
    sarrus.simulate(robot, q, v, 1.5, lambda t, q, v: [0.1, 0.0, 0.0], method=method, dt=0.01)


def test_energy_of_what_is_pressed_in_the_beginning_comes_from_somewhere():
    robot = slider()
    stop = sarrus.control.EndStop("slide", (-0.1, 0.1), stiffness=1e3, damping=0.0)
    for start in ([-0.2], [0.05]):
        run = sarrus.simulate(robot, start, [-0.1], 0.1, stop, method="rk4")
        assert (run.energy[-1] > 2.0 * run.energy[0]) == (start == [-0.2])


def test_every_kind_of_element_is_in_the_watch():
    """A stiff law of tasks as the PID of the same gains."""
    b = sarrus.Builder("pendulum")
    b.add_body("rod", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0)))
    b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rod", actuated=True)
    robot = b.build()
    task = sarrus.control.JointTask("pivot", 0.5, stiffness=2e7, damping="critical")
    control = sarrus.control.TaskControl(robot, task, limits=None)
    with pytest.warns(sarrus.StiffnessWarning, match="unstable"):
        sarrus.simulate(robot, [0.1], [0.0], 0.003, control, method="rk4", dt=1e-3)


def test_default_end_stops_are_the_same_for_every_cut():
    """Their stiffness depends on the effective inertia of a joint on the loops, at the start of the run."""
    energies = []
    for closing in ("p2", "p", "p1", "m"):
        b = sarrus.Builder("four-bar")
        for name, length in ("a", 0.4), ("b", 1.1), ("c", 0.9):
            b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
        for name, parent, child, at_parent, at_child in (
            ("m", "ground", "a", 0.0, 0.0), ("p1", "a", "b", 0.4, 0.0), ("p", "ground", "c", 1.0, 0.0), ("p2", "b", "c", 1.1, 0.9),
        ):  # fmt: skip
            b.add_joint(
                name, sarrus.Revolute("y", limits=(-1.0, -0.5) if name == "p2" else None), parent, child,
                at_parent=(at_parent, 0, 0), at_child=(at_child, 0, 0), tree=name != closing, loop=name == closing,
            )  # fmt: skip
        robot = b.build()
        q = robot.assemble(fixed={"m": 0.5}, near={"p2": -0.66})
        run = sarrus.simulate(robot, q, robot.complete_velocity(q, {"m": 6.0}), 0.5, limits="enforce", dt=2e-4)
        energies.append(run.energy[-1])
        again = sarrus.simulate(robot, duration=0.1, resume=run, limits="enforce", dt=2e-4)  # with the same stops
        assert again.status == "finished"
    assert np.ptp(energies) < 1e-6 * abs(energies[0])


@pytest.mark.parametrize("dt", [1e-3, 5e-4, 1e-4])
def test_steps_in_which_feet_slip_to_and_fro_are_warned_of(dt):
    """Long steps saturate the friction of contacts, whose slope at the speed of that slipping is small: the worst steps were the silent ones."""
    robot = sarrus.mechanisms.quadruped()
    q = robot.assemble().copy()
    feet = [name for name in robot.frames if name.endswith("foot")]
    q[robot.joint(robot.joints[0]).q_slice.start + 6] -= min(robot.pose(q, foot)[2, 3] for foot in feet) - 1e-3
    acts = [sarrus.control.CompliantContact(foot, friction=0.8) for foot in feet]
    for name in robot.actuated:
        target = float(q[robot.joint(name).q_slice.start])
        acts.append(sarrus.control.PID(name, proportional=300.0, derivative=10.0, target=target))
    with pytest.warns(sarrus.StiffnessWarning, match="is unstable for the applied forces"):
        sarrus.simulate(robot, q, np.zeros(robot.nv), 0.5, acts, method="rk4", dt=dt, limits="ignore")


@pytest.mark.parametrize("closing", ["rail", "crank pin"])
def test_a_run_that_ends_off_the_loops_says_so(closing):
    """Corrective forces on a light rotating slider are too stiff for the steps: a warning; otherwise none."""
    b = sarrus.Builder("slider-crank")
    b.add_body("crank", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0), 0.01))
    b.add_body("rod", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.01))
    b.add_body("slider", sarrus.Inertia.sphere(1.0, 0.1))
    how = {n: {"tree": n != closing, "loop": n == closing} for n in ("crank pin", "rod pin", "rail", "slider pin")}
    b.add_joint("crank pin", sarrus.Revolute("y"), "ground", "crank", **how["crank pin"])
    b.add_joint("rod pin", sarrus.Revolute("y"), "crank", "rod", at_parent=(0.4, 0, 0), **how["rod pin"])
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "slider", **how["rail"])
    b.add_joint("slider pin", sarrus.Revolute("y"), "rod", "slider", at_parent=(1.0, 0, 0), **how["slider pin"])
    robot = b.build()
    q = robot.assemble(near={n: x for n, x in (("crank pin", 0.7), ("rod pin", -1.0)) if n in robot.joints})
    v = robot.project_velocity(q, np.linspace(1.0, -0.5, robot.nv), metric="euclidean")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        one = sarrus.simulate(robot, q, v, 0.009, method="rk4", dt=1e-3, stabilisation="corrective")
        many = sarrus.simulate_many(robot, [q, q, q], v, 0.009, method="rk4", dt=1e-3, stabilisation="corrective")
    open_ = one.loop_error[-1] > 1e-2
    assert open_ == (closing == "rail")
    assert np.abs(robot.constraint_residual(many.q[:, -1])).max() > 1e-2 or not open_
    messages = [str(w.message) for w in said if issubclass(w.category, sarrus.DriftWarning)]
    assert len(messages) == 2 * open_
    assert not open_ or (
        "the run ends with open loops" in messages[0] and "3 of 3 runs end with open loops" in messages[1]
    )
