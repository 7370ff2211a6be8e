"""Derivatives through time, compared with differences of runs and closed forms, and equal for all ways of computation."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import (
    PID,
    ActuatorModel,
    CompliantContact,
    ComputedTorque,
    EffortTable,
    EndStop,
    FeedforwardEffort,
    LuGreFriction,
    SampleAndHold,
)
from tests.effort import examples
from tests.laws.test_choice_laws import recut
from tests.random_closed import ALL_CONSTRAINTS, DRIVEN, closed_mechanisms, random_closed
from tests.random_mechanisms import mechanisms, random_state, seeds
from tests.small_mechanisms import slider
from tests.variants import scaled

D = sarrus.derivatives
METHODS = ("euler", "semi_implicit", "rk4", "rkmk4", "implicit_midpoint")
SMOOTH = tuple(kind for kind in ALL_CONSTRAINTS if kind != "pfaffian of q")
FREE = tuple(kind for kind in SMOOTH if kind not in DRIVEN)  # of time, at which a change leaves a motion
SCALABLE = tuple(kind for kind in FREE if not kind.startswith("pfaffian"))  # whose numbers' units are known
# fourth-order differences: truncation h^4, and what rounding and closed loops leave, 1e-14 / h
H, DIGITS = 2e-3, 1e-9


def end(robot, q, v, duration, controller=None, **how):
    """Return the final states of runs: (runs, nq), (runs, nv), (runs, nz)."""
    runs = sarrus.simulate_many(robot, q, v, duration, controller, every=10**6, limits="ignore", **how)
    assert not runs.status.any()
    return runs.q[:, -1], runs.v[:, -1], runs.internal_state[:, -1]


def differences(robot, q, v, directions, *args, h=H, **how):
    """Return the change of a run's end (2 nv, k), along changes of its start (k, 2 nv)."""
    steps = h * np.array([1.0, -1.0, 2.0, -2.0])
    change = (steps[:, None, None] * directions).reshape(len(steps) * len(directions), 2 * robot.nv)
    starts = robot.integrate(np.broadcast_to(q, (len(change), robot.nq)), change[:, : robot.nv])
    starts = robot.project_configuration(starts, time=how.get("start", 0.0)) if robot.nc else starts
    q1, v1, _ = end(robot, starts, v + change[:, robot.nv :], *args, **how)
    q0, _, _ = end(robot, q[None], v[None], *args, **how)
    moved = np.hstack([robot.difference(np.broadcast_to(q0[0], q1.shape), q1), v1]).reshape(
        4, len(directions), 2 * robot.nv
    )
    return ((8.0 * (moved[0] - moved[1]) - (moved[2] - moved[3])) / (12.0 * h)).T


def assert_close(found, wanted, digits=DIGITS):
    assert_allclose(found, wanted, rtol=0, atol=digits * max(1.0, np.abs(wanted).max(initial=0.0)))


def crank_rocker():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return robot, q, robot.project_velocity(q, [3.0, 0.0, 0.0])


# ---- one step ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_of_an_oscillator(method):
    """x'' = -k x - d x': a step is a matrix, the polynomial of the method in A h."""
    k, d, h = 3.0, 0.4, 0.1
    A = np.array([[0.0, 1.0], [-k, -d]])
    rk4 = sum(np.linalg.matrix_power(A * h, n) / (1, 1, 2, 6, 24)[n] for n in range(5))
    wanted = {
        "euler": np.eye(2) + h * A,
        "semi_implicit": [[1 - h * h * k, h * (1 - h * d)], [-h * k, 1 - h * d]],
        "implicit_midpoint": np.linalg.solve(np.eye(2) - 0.5 * h * A, np.eye(2) + 0.5 * h * A),
    }
    spring = PID("slide", proportional=k, derivative=d)
    found = D.step(slider(), [0.3], [0.2], h, controller=spring, method=method)
    assert_allclose(np.hstack([found.q, found.v])[:2], wanted.get(method, rk4), rtol=0, atol=1e-15)


@examples(4)
@given(mechanisms(springs=True, armature=True, backward=st.sampled_from([0.0, 0.5])), st.sampled_from(METHODS), seeds())
def test_on_trees(robot, method, seed):
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    found = D.step(robot, q, v, 0.01, method=method)
    wanted = differences(robot, q, v, np.eye(2 * robot.nv), 0.01, dt=0.01, method=method)
    assert_close(np.hstack([found.q, found.v])[: 2 * robot.nv], wanted, 1e-6 if method == "implicit_midpoint" else 1e-8)


@examples(8)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), st.sampled_from(METHODS), st.sampled_from(["projection", "baumgarte"]))
def test_on_loops(closed, method, stabilisation):
    """Differences are short ones: farther off the loops the way back onto them is no smooth function."""
    robot, (q, v, _, time) = closed.robot, closed.state
    how = {"method": method, "stabilisation": stabilisation}
    found = D.step(robot, q, v, 0.005, time=float(time), **how)
    wanted = differences(robot, q, v, np.eye(2 * robot.nv), 0.005, h=1e-5, dt=0.005, start=float(time), **how)
    assert_close(np.hstack([found.q, found.v])[: 2 * robot.nv], wanted, 1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["four_bar", "bennett", "stewart", "delta"])
def test_of_the_gallery(name, method):
    """Bennett's rows agree only on the loops: its stages are closed, and off the loops no direction is the nearest one's."""
    robot = getattr(sarrus.mechanisms, name)()
    q, nv = robot.assemble(), robot.nv
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=nv))
    directions = np.eye(2 * nv)
    if name == "bennett":
        directions[:nv, :nv] = robot.project_velocity(np.tile(q, (nv, 1)), np.eye(nv))
    found = D.step(robot, q, v, 0.01, method=method)
    wanted = differences(robot, q, v, directions, 0.01, dt=0.01, method=method)
    # off Bennett's loops steps onto them go this way or that by a millionth of how far it is
    assert_close(np.hstack([found.q, found.v]) @ directions.T, wanted, 1e-5 if name == "bennett" else 1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["stewart", "delta", "tensegrity_prism"])
def test_long_steps_agree_both_ways(name, method):
    """In long steps projections are large, so the changes of their directions count. The prism has springs between bodies, which do no work in them."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble()
    v, w = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv)), np.ones(robot.nv)
    J, found = (f(robot, q, v, 0.01, *args, method=method) for f, args in ((D.step, ()), (D.step_vjp, (w, w))))
    assert_close(np.concatenate([found.q, found.v]), np.tile(w, 2) @ np.hstack([J.q, J.v]), 1e-11)


@pytest.mark.parametrize("closed", [False, True])
def test_of_dampers_that_are_faster_than_the_step(closed):
    """Their force is evaluated after the middle of an implicit step, by an amount that depends on M at the beginning."""
    b = sarrus.Builder("damped bars")
    for name, length in ("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    b.add_joint("motor", sarrus.Revolute("y", damping=200.0), "ground", "crank")
    b.add_joint("pin1", sarrus.Revolute("y", damping=60.0), "crank", "coupler", at_parent=(0.4, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("y", damping=80.0), "ground", "rocker", at_parent=(1.0, 0, 0))
    if closed:
        ends = {"at_parent": (1.1, 0, 0), "at_child": (0.9, 0, 0)}
        b.add_joint("pin2", sarrus.Revolute("y"), "coupler", "rocker", **ends)
    robot = b.build()
    q = robot.assemble(fixed={"motor": 0.5}) if closed else np.array([0.5, -0.7, 0.2])
    v = robot.project_velocity(q, [3.0, -1.0, 2.0])
    how = {"method": "implicit_midpoint"}
    found, w = D.step(robot, q, v, 0.02, **how), np.random.default_rng(0).normal(size=(2, robot.nv))
    J = np.hstack([found.q, found.v])
    # on loops, the step takes M before the projection at its beginning, and its derivatives after it
    assert_close(J, differences(robot, q, v, np.eye(2 * robot.nv), 0.02, dt=0.02, **how), 1e-7)
    back = D.step_vjp(robot, q, v, 0.02, *w, **how)
    assert_close(np.concatenate([back.q, back.v]), w.ravel() @ J, 1e-11)


@pytest.mark.parametrize(
    "controller",
    [
        [EndStop("motor", (-1.0, 0.45), stiffness=2e3, damping=5.0)],
        [
            PID("motor", 100.0, 5.0, 10.0, target=0.4),
            ActuatorModel("motor", time_constant=0.05, torque_speed=(30.0, 9.0)),
        ],
    ],
    ids=["end stop", "drive"],
)
def test_implicit_steps_with_fast_forces(controller):
    """Their stiffness and damping, and the rates of internal states, are in the equation of the step."""
    robot, q, v = crank_rocker()
    how = {"controller": controller, "method": "implicit_midpoint"}
    found, w = D.step(robot, q, v, 0.01, **how), np.random.default_rng(0).normal(size=(2, robot.nv))
    J = np.hstack([found.q, found.v])
    wanted = differences(
        robot, q, v, np.eye(2 * robot.nv), 0.01, controller, h=1e-4, dt=0.01, method="implicit_midpoint"
    )
    assert_close(J[: 2 * robot.nv], wanted, 1e-7)
    back = D.step_vjp(robot, q, v, 0.01, *w, **how)
    assert_close(np.concatenate([back.q, back.v]), w.ravel() @ J[: 2 * robot.nv], 1e-11)


def test_implicit_steps_near_a_singular_position():
    """Bars nearly on one line: least motions are large. The error grows with the inverse of the distance."""
    robot = sarrus.mechanisms.four_bar_ladder(3)
    q = robot.assemble(fixed={"pivot0": np.pi / 2 - 0.1})
    v, w = robot.project_velocity(q, np.full(robot.nv, 0.3)), np.ones(robot.nv)
    J, found = (
        f(robot, q, v, 0.01, *args, method="implicit_midpoint") for f, args in ((D.step, ()), (D.step_vjp, (w, w)))
    )
    wanted = differences(robot, q, v, np.eye(2 * robot.nv), 0.01, h=1e-4, dt=0.01, method="implicit_midpoint")
    assert_close(np.hstack([J.q, J.v]), wanted, 1e-7)
    assert_close(np.concatenate([found.q, found.v]), np.tile(w, 2) @ np.hstack([J.q, J.v]), 1e-11)


@pytest.mark.parametrize("name", ["stewart", "delta", "tensegrity_prism"])
def test_implicit_steps_of_batches(name):
    """Derivatives of a state do not depend on the others in its lanes, which share pivots and rounds of corrections."""
    robot = getattr(sarrus.mechanisms, name)()
    rng, how = np.random.default_rng(0), {"method": "implicit_midpoint"}
    q = np.tile(robot.assemble(), (64, 1))
    v, w = robot.project_velocity(q, rng.normal(size=(64, robot.nv))), rng.normal(size=(64, robot.nv))
    J, found = D.step(robot, q, v, 0.01, **how), D.step_vjp(robot, q, v, 0.01, w, w, **how)
    for some in slice(0, 1), slice(5, 8):
        alone, back = (
            D.step(robot, q[some], v[some], 0.01, **how),
            D.step_vjp(robot, q[some], v[some], 0.01, w[some], w[some], **how),
        )
        for x, y in (alone.q, J.q), (alone.v, J.v), (back.q, found.q), (back.v, found.v):
            assert_close(x, y[some], 1e-11)
    wanted = np.einsum("nr,nrc->nc", np.hstack([w, w]), np.concatenate([J.q, J.v], axis=-1))
    assert_close(np.hstack([found.q, found.v]), wanted, 1e-11)


def test_only_independent_changes_are_needed():
    """Derivatives by all changes are those by each change alone, though only as many as there are degrees of freedom go through the steps."""
    robot = sarrus.mechanisms.delta()
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    for method in ("rk4", "implicit_midpoint"):
        J = D.step(robot, q, v, 0.01, method=method)
        for k in range(0, robot.nv, 4):
            one, none = np.eye(robot.nv)[k], np.zeros(robot.nv)
            assert_close(J.q[:, k], np.concatenate(D.step_jvp(robot, q, v, 0.01, one, none, method=method)), 1e-10)
            assert_close(J.v[:, k], np.concatenate(D.step_jvp(robot, q, v, 0.01, none, one, method=method)), 1e-10)


def test_products_are_those_of_the_matrix():
    robot, q, v = crank_rocker()
    drive = [PID("motor", 4.0, 2.0, 0.3, target=1.0), FeedforwardEffort("pivot", 0.5)]
    how = {"controller": drive, "internal_state": [0.7], "method": "rkmk4"}
    rng = np.random.default_rng(1)
    dq, dv, dz, wq, wv, wz = (rng.normal(size=n) for n in (3, 3, 1, 3, 3, 1))
    J = D.step(robot, q, v, 0.01, **how)
    after = np.concatenate(D.step_jvp(robot, q, v, 0.01, dq, dv, dz, **how))
    assert_allclose(after, J.q @ dq + J.v @ dv + J.internal_state @ dz, rtol=0, atol=1e-13)
    before, w = D.step_vjp(robot, q, v, 0.01, wq, wv, wz, **how), np.concatenate([wq, wv, wz])
    for name in ("q", "v", "internal_state"):
        assert_allclose(getattr(before, name), w @ getattr(J, name), rtol=0, atol=1e-12, err_msg=name)
    assert before.parameters.keys() == J.parameters.keys()
    for name, by in before.parameters.items():
        assert_allclose(by, w @ J.parameters[name], rtol=0, atol=1e-12, err_msg=name)


@examples(6)
@given(closed_mechanisms(kinds=st.just(FREE)), seeds())
def test_which_joint_closes_does_not_matter(closed, seed):
    """Along the motion itself: what other coordinates call the same change."""
    changes = []
    for one in (closed, recut(closed, np.random.default_rng(seed))):
        robot, (q, v, _, time) = one.robot, one.state
        a = robot.forward_dynamics(q, v, np.zeros(robot.nv), time=time)
        dq, dv, _ = D.step_jvp(robot, q, v, 1e-4, v, a, time=float(time), method="rkmk4")
        changes.append({name: (dq[robot.joint(name).v_slice], dv[robot.joint(name).v_slice]) for name in robot.joints})
    for name in changes[0].keys() & changes[1].keys():
        assert_close(np.array(changes[0][name]), np.array(changes[1][name]), 1e-6)


@examples(12)
@given(
    closed_mechanisms(kinds=st.just(SCALABLE)),
    st.sampled_from(METHODS),
    st.sampled_from(["projection", "baumgarte", "none"]),
    st.sampled_from([(1e-6, 1e-9), (1e3, 1e6)]),
)
def test_other_units_change_nothing(closed, method, stabilisation, by):
    """Forward and back: directions of angles and of lengths are a million apart there, and go side by side."""
    robot, (q, v, _, time) = closed.robot, closed.state
    how = {"method": method, "stabilisation": stabilisation, "time": float(time)}
    other, units = scaled(robot, *by, 1.0)
    there = q * units.coordinates(robot), v * units.velocities(robot), 0.005
    size = np.tile(units.velocities(robot), 2)
    w = np.random.default_rng(0).normal(size=(2, robot.nv))
    try:
        S = D.step(robot, q, v, 0.005, **how)
    except sarrus.StateError:  # near a singular position
        return
    wanted, found = (np.hstack([x.q, x.v])[: 2 * robot.nv] for x in (S, D.step(other, *there, **how)))
    assert_close(found / size[:, None] * size, wanted)
    back = D.step_vjp(robot, q, v, 0.005, *w, **how)
    from_there = D.step_vjp(other, *there, *w / units.velocities(robot), **how)
    wanted, found = (np.concatenate([x.q, x.v]) for x in (back, from_there))
    assert_close(found * size, wanted, 1e-8 if method == "semi_implicit" else DIGITS)


# ---- back --------------------------------------------------------------------------------------------------------------


def both_ways(robot, q, v, controller=None, seed=0, duration=0.03, dt=0.01, **how):
    """Gradients by all numbers: back by vector-Jacobian products, and forward by derivative matrices of each stage."""
    rng, how = np.random.default_rng(seed), {"dt": dt, "limits": "ignore"} | how
    runs = sarrus.simulate_many(robot, q, v, duration, controller, **how)
    assert not runs.status.any()
    names = list(runs._acting.names)
    S = sarrus.simulate(robot, q, v, duration, controller, sensitivities=names, **how).sensitivities
    w = [rng.normal(size=(1, len(runs.t), n)) for n in (robot.nv, robot.nv, S.internal_state.shape[-1])]
    stacked = np.concatenate([S.q, S.v, S.internal_state, *(S.parameters[name] for name in names)], axis=-1)
    wanted = np.einsum("kr,krc->c", np.concatenate([x[0] for x in w], axis=-1), stacked)
    return flat(D.rollouts_vjp(runs, *w))[0], wanted


@pytest.mark.filterwarnings("ignore::sarrus.errors.DriftWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stabilisation", ["projection", "none"])
@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "scissor_lift", "bennett", "stewart", "delta"])
def test_of_the_gallery_back(name, stabilisation, method):
    """Loops with redundant rows included; Bennett's, which agree only on the loops, go along directions both ways."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    joint = next(name for name in robot.joints if robot.joint(name).nv == 1)
    drive = [PID(joint, 2.0, 1.0, 0.3, target=0.4), EffortTable([0.0, 0.01, 0.02], np.ones((3, 1)), [joint])]
    if name == "bennett" and stabilisation != "projection":
        return  # drifts, and off the loops it cannot move
    found, wanted = both_ways(robot, q, v, drive, method=method, stabilisation=stabilisation)
    # off Bennett's loops steps onto them go this way or that by a millionth of how far it is
    assert_close(found, wanted, 1e-5 if name == "bennett" else DIGITS)


# rows that hold at once, although the least motion at the end of the step changes with the end
@example(random_closed(4, bodies=4, loops=1, floating=False, branching=0.0, kinds=SMOOTH), "implicit_midpoint", 0)
@examples(12)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), st.sampled_from(METHODS), seeds())
def test_on_loops_back(closed, method, seed):
    """Products of matrices; for rows that constrain velocities only, and for implicit steps, along directions."""
    robot, (q, v, _, time) = closed.robot, closed.state
    w, how = np.random.default_rng(seed).normal(size=(2, robot.nv)), {"method": method, "time": float(time)}
    try:
        S = D.step(robot, q, v, 0.005, **how)
    except sarrus.StateError:  # near a singular position
        return
    found = D.step_vjp(robot, q, v, 0.005, *w, **how)
    wanted = w.ravel() @ np.hstack([S.q, S.v])
    # symplectic steps say of v what the displacement was: with what its projection leaves, over h
    assert_close(np.concatenate([found.q, found.v]), wanted, 1e-8 if method == "semi_implicit" else DIGITS)


@examples(12)
@given(
    mechanisms(springs=True, armature=True, backward=st.sampled_from([0.0, 0.5])),
    st.sampled_from(METHODS),
    seeds(),
)
def test_on_trees_back(robot, method, seed):
    rng = np.random.default_rng(seed)
    q, v, _ = random_state(robot, rng)
    w = rng.normal(size=(2, robot.nv))
    S, found = D.step(robot, q, v, 0.01, method=method), D.step_vjp(robot, q, v, 0.01, *w, method=method)
    assert_close(np.concatenate([found.q, found.v]), w.ravel() @ np.hstack([S.q, S.v]), 1e-11)


# ---- force elements ----------------------------------------------------------------------------------------------------


ELEMENTS = {
    "gains": lambda x: PID("slide", x, 2.0 * x, 0.1 * x, target=0.4),
    "efforts": lambda x: EffortTable(
        [0.0, 0.03, 0.05, 2.0], np.sin(x * np.arange(4.0))[:, None], ["slide"], hold=False
    ),
    "held efforts": lambda x: EffortTable([0.0, 0.033, 0.05, 2.0], np.sin(x * np.arange(4.0))[:, None], ["slide"]),
    "efforts that begin late": lambda x: [
        EffortTable([0.03, 0.055], [[x], [x * x]], ["slide"]),
        EffortTable([0.04, 0.07], [[x], [-x]], ["slide"], hold=False),
    ],
    "end stop": lambda x: EndStop("slide", (-1.0, 0.1 * x), stiffness=50.0 * x, damping=2.0),
    "a drive": lambda x: [
        PID("slide", 20.0, 1.0, 0.1, target=0.4),
        ActuatorModel("slide", time_constant=0.05 * x, torque_speed=(3.0 * x, 0.9)),
    ],
    "bristles": lambda x: LuGreFriction("slide", 0.2 * x, 0.3 * x, stiffness=100.0, damping=1.0),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_numbers_of_elements(name):
    """The chain rule over all parameters that depend on x."""
    robot, element, x, h = slider(), ELEMENTS[name], 1.3, 1e-3
    how = {"method": "rk4", "dt": 0.01}
    runs = sarrus.simulate_many(robot, [0.2], [0.5], 0.1, element(x), limits="ignore", **how)
    wq = np.zeros((len(runs.t), 1))
    wq[-1] = 1.0
    found = D.rollouts_vjp(runs, q=wq)

    def numbers(x):
        return runs_of(x)._acting.parameters

    def runs_of(x):
        return sarrus.simulate_many(robot, [0.2], [0.5], 0.1, element(x), limits="ignore", **how)

    def slope(f):
        return (8.0 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12.0 * h)

    with np.errstate(invalid="ignore"):
        rate = np.nan_to_num(slope(numbers))  # infinite ones stay
    flat = np.zeros(len(rate))
    for of, by in found.parameters.items():
        flat[runs._acting.names[of]] = by[0]
    assert abs(flat).max() > 1e-6
    assert_close(flat @ rate, slope(lambda x: runs_of(x).q[0, -1, 0]))


def test_contact():
    """A ball that rolls and slips on the ground, with respect to its start."""
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.2))
    b.add_joint("free", sarrus.Free(), "ground", "ball")
    robot = b.build()
    q, v = robot.neutral(), np.array([0.3, 0.2, 0.1, 0.5, -0.2, 0.0])
    q[-1] = 0.198
    contact = CompliantContact("ball", radius=0.2, stiffness=2e4, friction=0.4, slip_velocity=0.1)
    for method in ("rkmk4", "implicit_midpoint"):
        how = {"method": method, "dt": 1e-3}
        runs = sarrus.simulate_many(robot, q, v, 0.02, contact, limits="ignore", **how)
        found = D.rollouts_vjp(runs, v=np.vstack([np.zeros((len(runs.t) - 1, 6)), np.ones((1, 6))]))
        wanted = np.ones(6) @ differences(robot, q, v, np.eye(12), 0.02, contact, h=1e-5, **how)[6:]
        assert_close(np.concatenate([found.q[0], found.v[0]]), wanted, 1e-6)


# ---- many steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_rollouts_of_the_crank_rocker(method):
    """Gradients with respect to all parameters of a motor's efforts, and to the initial state."""
    robot, q, v = crank_rocker()
    t = np.linspace(0.0, 0.1, 11)
    u = np.sin(30.0 * t)[:, None]
    rng = np.random.default_rng(3)
    wq, wv = rng.normal(size=(2, 21, 3))

    def number(q, v, u):
        runs = sarrus.simulate_many(robot, q, v, 0.1, EffortTable(t, u, ["motor"]), method=method, dt=5e-3)
        assert not runs.status.any()
        off = robot.difference(np.broadcast_to(first.q[:1], runs.q.shape), runs.q)
        return np.einsum("kr,nkr->n", wq, off) + np.einsum("kr,nkr->n", wv, runs.v), runs

    first = sarrus.simulate_many(robot, q, v, 0.1, EffortTable(t, u, ["motor"]), method=method, dt=5e-3)
    found = D.rollouts_vjp(first, wq, wv)
    steps = H * np.array([1.0, -1.0, 2.0, -2.0])
    by_start = []
    for d in np.eye(6):
        starts = robot.project_configuration(robot.integrate(np.tile(q, (4, 1)), np.outer(steps, d[:3])))
        x, _ = number(starts, v + np.outer(steps, d[3:]), u)
        by_start.append((8.0 * (x[0] - x[1]) - (x[2] - x[3])) / (12.0 * H))
    assert_close(np.concatenate([found.q[0], found.v[0]]), np.array(by_start))
    by_u = []
    for k in range(len(u)):
        x = [number(q, v, u + s * np.eye(len(u))[:, k : k + 1])[0][0] for s in steps]
        by_u.append((8.0 * (x[0] - x[1]) - (x[2] - x[3])) / (12.0 * H))
    assert_close(found.parameters["EffortTable.u"][0].ravel(), np.array(by_u))


@pytest.mark.parametrize("name", ["pendulum", "four_bar", "stewart"])
@pytest.mark.parametrize("method", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("time", [0.0, 0.5])
def test_a_step_begins_with_the_sample_of_a_table(name, method, time):
    """Values that are held between samples are sampled at the beginning of a step, as at the beginning of a run."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    driven = list(robot.actuated or robot.joints)
    table = EffortTable([0.0], np.ones((1, len(driven))), driven)
    found = D.step(robot, q, v, 2e-3, method=method, controller=table, time=time)
    pushed = [sarrus.control.FeedforwardEffort(joint, 1.0) for joint in driven]
    wanted = D.step(robot, q, v, 2e-3, method=method, controller=pushed, time=time)
    assert_close(found.q, wanted.q)
    assert_close(found.v, wanted.v)


PUSH = [EffortTable([0.0, 0.02, 0.05], np.ones((3, 1)), ["motor"]), PID("pivot", 2.0, 0.5, 0.2, target=1.0)]


def pushed_runs(count=9, **how):
    robot, q, v = crank_rocker()
    speeds = np.linspace(0.2, 1.0, count)[:, None] * v
    return sarrus.simulate_many(robot, q, speeds, 0.1, PUSH, **{"dt": 0.004, "method": "rk4"} | how)


def cotangents(runs, seed=0):
    rng = np.random.default_rng(seed)
    n, nv = len(runs.t), runs.mechanism.nv
    return rng.normal(size=(len(runs), n, nv)), rng.normal(size=(len(runs), n, nv)), rng.normal(size=(len(runs), n, 1))


def flat(x):
    return np.concatenate(
        [x.q, x.v, x.internal_state, *(by.reshape(len(x.q), -1) for by in x.parameters.values())], axis=-1
    )


def test_adjoint_is_the_transpose_of_sensitivities():
    runs = pushed_runs(2)
    names = list(runs._acting.names)
    robot, q, v = crank_rocker()
    run = sarrus.simulate(robot, q, 0.2 * v, 0.1, PUSH, dt=0.004, method="rk4", sensitivities=names)
    S, w = run.sensitivities, [x[:1] for x in cotangents(runs[:1])]
    stacked = np.concatenate([S.q, S.v, S.internal_state, *(S.parameters[name] for name in names)], axis=-1)
    wanted = np.einsum("kr,krc->c", np.concatenate([x[0] for x in w], axis=-1), stacked)
    assert_close(flat(D.rollouts_vjp(runs[:1], *w))[0], wanted, 1e-12)


@pytest.mark.parametrize("every", [2, 3, 7, 26, 1000])
def test_checkpoints_change_nothing(every):
    """Results are equal bit for bit: samples between checkpoints have no effect."""
    fine, coarse = pushed_runs(), pushed_runs(every=every)
    kept = np.isin(fine.t, coarse.t)
    w = cotangents(coarse)
    spread = [np.zeros((len(fine), len(fine.t), x.shape[-1])) for x in w]
    for to, x in zip(spread, w, strict=True):
        to[:, kept] = x
    assert_array_equal(flat(D.rollouts_vjp(coarse, *w)), flat(D.rollouts_vjp(fine, *spread)))


def test_threads_and_company_change_nothing():
    runs = pushed_runs(37)
    w = cotangents(runs)
    all_at_once = flat(D.rollouts_vjp(runs, *w))
    assert_array_equal(flat(D.rollouts_vjp(runs, *w, threads=2)), all_at_once)
    for i in (0, 5, 36):
        assert_allclose(
            flat(D.rollouts_vjp(runs[i : i + 1], *(x[i : i + 1] for x in w)))[0], all_at_once[i], rtol=1e-12, atol=1e-12
        )


def test_one_state_with_parameters_of_several_steps():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble()
    v = robot.project_velocity(q, [2.0, 0.0, 0.0])
    stiffness = [10.0, 30.0]

    def spring(kp):
        return PID("motor", proportional=kp, derivative=0.1, target=0.3)

    several = D.step(robot, q, v, 1e-3, controller=spring(stiffness))
    back = D.step_vjp(robot, q, v, 1e-3, np.ones(robot.nv), controller=spring(stiffness))
    assert len(several.q) == 2 and back.q.shape == (2, robot.nv)
    for i, kp in enumerate(stiffness):
        assert_close(several.q[i], D.step(robot, q, v, 1e-3, controller=spring(kp)).q)
        assert_close(back.q[i], D.step_vjp(robot, q, v, 1e-3, np.ones(robot.nv), controller=spring(kp)).q)


def test_last_step_may_be_shorter():
    robot, q, v = crank_rocker()
    short = sarrus.simulate_many(robot, q, v, 0.025, dt=0.01, every=3)
    w = np.zeros((len(short.t), 3))
    w[-1] = 1.0
    found = D.rollouts_vjp(short, v=w)
    wanted = np.ones(3) @ differences(robot, q, v, np.eye(6), 0.025, dt=0.01)[3:]
    assert_close(np.concatenate([found.q[0], found.v[0]]), wanted)


def test_a_run_that_failed_is_not_a_number():
    runs = pushed_runs(5)
    runs.status[2] = sarrus.simulation.sweep.Status.DIVERGED
    found = flat(D.rollouts_vjp(runs, *cotangents(runs)))
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[[0, 1, 3, 4]]).all()


# ---- what has none -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("robot", "controller", "how", "fault"),
    [
        (lambda: slider(friction=0.5), None, {}, "dry friction"),
        (slider, SampleAndHold(PID("slide", 1.0), 0.01), {}, "SampleAndHold"),
        (slider, ComputedTorque({"slide": 0.0}, 1.0, 1.0), {}, "ComputedTorque"),
        (slider, None, {"method": "dopri5"}, "dopri5"),
        (slider, None, {"method": "independent"}, "independent"),
        (slider, lambda t, q, v: -q, {}, "function"),
    ],
)
def test_refused(robot, controller, how, fault):
    with pytest.raises((sarrus.ModelError, ValueError, TypeError), match=fault):
        sarrus.simulate(robot(), [0.2], [0.5], 0.1, controller, **{"method": "rk4"} | how, sensitivities=())
    if callable(controller) or how.get("method") == "dopri5":
        return
    runs = sarrus.simulate_many(robot(), [0.2], [0.5], 0.1, controller, **{"method": "rk4"} | how)
    with pytest.raises(sarrus.ModelError, match=fault):
        D.rollouts_vjp(runs)


def test_defaults_that_are_not_differentiated():
    """Default parameters are numbers of a run: a warning names those that differ from start to start."""
    robot = sarrus.mechanisms.four_bar()
    q, v, how = robot.assemble(fixed={"motor": 0.5}), np.zeros(3), {"method": "rk4", "dt": 1e-3}
    stop, given = EndStop("pivot", (-1.9, -1.8)), EndStop("pivot", (-1.9, -1.8), stiffness=2e3, damping=2.0)

    def derived(robot, q, v, stop, **limits):
        sarrus.simulate(robot, q, v, 0.01, stop, sensitivities=[], **how, **limits)
        D.rollouts_vjp(sarrus.simulate_many(robot, q, v, 0.01, stop, **how, **limits))
        if not limits:
            D.step(robot, q, v, 1e-3, controller=stop, method="rk4")

    builder = robot.to_builder()
    builder.set_joint("pivot", sarrus.Revolute("y", limits=(-1.9, -1.0)))
    for made, controller, limits, count in ((robot, stop, {}, 3), (builder.build(), None, {"limits": "enforce"}, 2)):
        with pytest.warns(
            sarrus.ModelWarning, match=r"EndStop\(pivot\).stiffness.*give stiffness= and damping="
        ) as seen:
            derived(made, q, v, controller, **limits)
        assert len(seen) == count
    derived(robot, q, v, given)  # no warning
    derived(slider(), [0.2], [0.5], EndStop("slide", (-1.0, 0.1)))  # its inertia is constant


def test_events_are_refused():
    with pytest.raises(ValueError, match="events"):
        sarrus.simulate(slider(), [0.2], [0.5], 0.1, events=lambda t, q, v: q[0], sensitivities=())


def test_a_singular_position_has_none():
    robot = sarrus.mechanisms.four_bar(crank=1.0, coupler=1.0, rocker=1.0, ground=1.0)
    flat_position = robot.assemble(fixed={"motor": 0.0}, near=robot.neutral())
    with pytest.raises(sarrus.StateError):
        D.step(robot, flat_position, np.zeros(3), 1e-3)


def test_runs_of_variants_are_refused():
    """Derivatives for variants would need other numbers than those of the run."""
    robot = sarrus.mechanisms.pendulum()
    body = robot.description.bodies[-1]
    robots = robot.variants(inertias={body.name: np.outer([1.0, 2.0], body.inertia.parameters)})
    runs = sarrus.simulate_many(robots, [0.3], [0.0], 0.01, dt=1e-3)
    with pytest.raises(sarrus.ModelError, match="variants"):
        sarrus.derivatives.rollouts_vjp(runs, v=runs.v)
