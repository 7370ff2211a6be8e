"""Laws of mechanics for any closed mechanism, including redundant and driven ones, drawn at random over all kinds of constraints."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from benchmarks.loop_models import almost_flat
from sarrus.description import DistanceSpec, FrameSpec, JointSpec, RollingSpec
from sarrus.spatial import Transform
from tests.effort import examples
from tests.laws.test_laws import DIFFERENCING, TIMES, assert_equal, rate
from tests.oracles.reactions import Equilibrium
from tests.random_closed import CLOSING, State, closed_mechanisms, random_closed
from tests.random_mechanisms import random_transform, seeds

# of accelerations, relative to the largest: the issue's
RELATIVE = 1e-10
# of the equations of motion and the constraints, whose residual is what the solver makes small
SOLVED = 1e-11
# one state and many run the same source with multiplications fused in other places; corrections then stop at other roundings
BATCH = 1e-11

law = examples(15)
CLOSED = closed_mechanisms(friction=st.booleans(), armature=st.booleans(), springs=st.booleans())
RESTING = closed_mechanisms(kinds=(*CLOSING, "distance", "coupler", "disc", "sphere", "sphere in sphere"))


def size(*arrays):
    return max(np.abs(x).max(initial=0.0) for x in arrays)


# ---- motion under constraints ----------------------------------------------------------------------------------------


@law
@given(CLOSED, seeds())
def test_equations_of_motion(closed, seed):
    """M a + h = tau + J^T lambda and J a = gamma, with external wrenches, up to the reported residual."""
    rng = np.random.default_rng(seed)
    robot, (q, v, tau, time) = closed.robot, closed.state
    wrenches = {"tool": rng.normal(size=6)}
    a, reactions = robot.forward_dynamics(q, v, tau, time=time, wrenches=wrenches, return_reactions=True)
    M, h, J = robot.mass_matrix(q), robot.bias_forces(q, v, wrenches=wrenches), robot.constraint_jacobian(q, time=time)
    assert_equal(M @ a + h, tau + J.T @ reactions.multipliers, SOLVED, scale=size(M @ a, h))
    assert_equal(J @ a, robot.constraint_bias(q, v, time=time), SOLVED, scale=size(J) * size(a))
    assert 0 <= reactions.residual < SOLVED


@law
@given(CLOSED, seeds())
def test_residual_rate(closed, seed):
    """phi' = J v - c along any motion from a closed configuration, for allowed and other velocities v."""
    robot, (q, _, _, time) = closed.robot, closed.state
    v = np.random.default_rng(seed).normal(size=robot.nv)
    v /= max(1.0, np.abs(v).sum())
    times = TIMES / 10  # what is driven may move at several rad/s
    phi = robot.constraint_residual(robot.integrate(q, times[:, None] * v), time=time + times)
    holonomic = np.array([h for name in robot.constraints for h in robot.constraint(name).holonomic], bool)
    expected = robot.constraint_jacobian(q, time=time) @ v - robot.constraint_velocity(q, time=time)
    # ten times the rounding, and rods, spheres and gimbals' arms may be short
    assert_equal(10 * rate(phi)[holonomic], expected[holonomic], 1e3 * DIFFERENCING)
    assert_array_equal(phi[:, ~holonomic], 0)


@law
@given(CLOSED)
def test_the_rates_of_the_constraints_are_consistent(closed):
    """d/dt (J v - c) = J a - gamma along any motion through an allowed state."""
    robot, (q, v, _, time) = closed.robot, closed.state
    share = max(1.0, np.abs(v).sum())
    times = TIMES / share / 4
    qs = robot.integrate(q, times[:, None] * v)
    J, c = robot.constraint_jacobian(qs, time=time + times), robot.constraint_velocity(qs, time=time + times)
    slip = np.einsum("...ij,j->...i", J, v) - c
    # rows whose basis turns add a multiple of J v - c, which vanishes in the middle
    expected = -robot.constraint_bias(q, v, time=time)
    assert_equal(rate(slip) * share * 4, expected, 1e6 * DIFFERENCING, scale=size(J) * share)


@law
@given(RESTING, seeds())
def test_reactions_do_no_work(closed, seed):
    """The virtual power of the multipliers, and of the wrenches, is zero in every allowed motion."""
    robot, (q, v, tau, _) = closed.robot, closed.state
    _, reactions = robot.forward_dynamics(q, v, tau, return_reactions=True)
    J = robot.constraint_jacobian(q)
    w = robot.project_velocity(q, np.random.default_rng(seed).normal(size=robot.nv))
    scale = size(reactions.multipliers) * size(J) * size(w)
    assert_equal(reactions.multipliers @ J @ w, 0.0, SOLVED, scale=scale)
    power, _ = power_of_wrenches(closed, reactions.wrenches, w)
    assert_equal(power, 0.0, SOLVED, scale=scale)


@law
@given(closed_mechanisms())
def test_power_is_the_rate_of_energy(closed):
    """tau.v + lambda.c = d(T + U)/dt, the power of motors and of prescribed motions, without friction."""
    robot, (q, v, tau, time) = closed.robot, closed.state
    a, reactions = robot.forward_dynamics(q, v, tau, time=time, return_reactions=True)
    power = tau @ v + reactions.multipliers @ robot.constraint_velocity(q, time=time)
    speed = max(1.0, np.abs(v).sum(), np.sqrt(np.abs(a).sum()))
    times = TIMES[:, None] / speed
    qs, vs = robot.integrate(q, times * (v + times / 2 * a)), v + times * a
    # q along that path moves with v and a only to first order, which is what the middle needs
    energy = robot.kinetic_energy(qs, vs) + robot.potential_energy(qs)
    scale = size(energy) * speed + size(reactions.multipliers)
    assert_equal(rate(energy) * speed, power, 1e3 * DIFFERENCING, scale=scale)


def cut(closed):
    """Return the tree without its loop joints, rods and rolling constraints, and the frames of their wrenches.

    name -> (frame on the child, frame on the parent at the same point with the same axes, name of the wrench).
    """
    d, robot, q = closed.description, closed.robot, closed.q
    frames, ends = [], {}
    for name in robot.constraints:
        spec = robot.constraint(name).spec
        if isinstance(spec, JointSpec):
            parent, child, at_child = spec.parent, spec.child, spec.at_child
        elif isinstance(spec, DistanceSpec):
            (parent, _), (child, point) = spec.first, spec.second
            at_child = Transform(translation=np.array(point))
        elif isinstance(spec, RollingSpec):
            parent, child, at_child = spec.on, spec.body, Transform(translation=np.array(spec.center))
        else:
            continue
        at_parent = np.linalg.inv(robot.pose(q, parent)) @ robot.pose(q, child) @ at_child.matrix
        placement = Transform(at_parent[:3, :3], at_parent[:3, 3])
        ends[name] = f"{name} on child", f"{name} on parent"
        frames += [FrameSpec(ends[name][0], child, at_child), FrameSpec(ends[name][1], parent, placement)]
    tree = dataclasses.replace(
        d,
        joints=tuple(spec for spec in d.joints if spec.name not in robot.loop_joints),
        constraints=(),
        frames=(*d.frames, *frames),
    )
    return sarrus.Mechanism(tree), ends


def power_of_wrenches(closed, wrenches, v):
    """Return the power of the wrenches on the children and their opposites on the parents in a motion v, and the constraints without any."""
    tree, ends = cut(closed)
    power = sum(
        wrenches[name] @ (tree.velocity(closed.q, v, child) - tree.velocity(closed.q, v, parent))
        for name, (child, parent) in ends.items()
    )
    return power, set(wrenches) - set(ends)


@law
@given(closed_mechanisms(kinds=(*CLOSING, "prescribed frame", "distance", "disc", "sphere", "sphere on sphere")))
def test_wrenches_stand_for_the_joints(closed):
    """The tree without loop joints, with their wrenches as applied forces, moves as before."""
    robot, (q, v, tau, time) = closed.robot, closed.state
    a, reactions = robot.forward_dynamics(q, v, tau, time=time, return_reactions=True)
    tree, ends = cut(closed)
    acting = {child: reactions.wrenches[name] for name, (child, _) in ends.items()}
    acting |= {parent: -reactions.wrenches[name] for name, (_, parent) in ends.items()}
    # as an equation of forces: solving for a would multiply rounding by the condition number of M
    needed = tree.inverse_dynamics(q, v, a, wrenches=acting)
    M = robot.mass_matrix(q)
    assert_equal(needed, tau, RELATIVE, scale=size(M @ a, *acting.values(), np.zeros(1)))
    carried = sarrus.formulations.reactions(robot, q, v, a, multipliers=reactions.multipliers, time=time)
    for name, wrench in sarrus.formulations.reactions(tree, q, v, a, wrenches=acting).items():
        assert_equal(carried[name], wrench, RELATIVE, scale=size(wrench, *acting.values(), np.ones(1)))


@law
@given(CLOSED, seeds())
def test_nothing_changes_when_all_is_moved(closed, seed):
    """The whole mechanism moved with rotated gravity, including the points on the ground to which loops close."""
    T, d = random_transform(np.random.default_rng(seed)), closed.description

    def moved(spec):
        if isinstance(spec, DistanceSpec):
            return dataclasses.replace(spec, first=point(*spec.first), second=point(*spec.second))
        if isinstance(spec, RollingSpec):
            turned = {end: tuple(T.rotation @ getattr(spec, end)) for end in ("normal", "axle") if getattr(spec, end)}
            on_ground = (
                {"point": point(spec.on, spec.point)[1], "normal": turned["normal"]} if spec.on == "ground" else {}
            )
            body = {"center": point(spec.body, spec.center)[1]} if spec.body == "ground" else {}
            body |= {"axle": turned["axle"]} if spec.body == "ground" and spec.axle else {}
            return dataclasses.replace(spec, **on_ground, **body)
        if isinstance(spec, JointSpec):
            ends = {at: T @ getattr(spec, at) for at in ("at_parent", "at_child") if getattr(spec, at[3:]) == "ground"}
            return dataclasses.replace(spec, **ends)
        return spec

    def point(body, p):
        return body, tuple(T.rotation @ p + T.translation) if body == "ground" else p

    other = sarrus.Mechanism(
        dataclasses.replace(
            d,
            gravity=tuple((T.rotation @ d.gravity).tolist()),
            joints=tuple(moved(spec) for spec in d.joints),
            constraints=tuple(moved(spec) for spec in d.constraints),
        )
    )
    q, v, tau, time = closed.state
    a = closed.robot.forward_dynamics(q, v, tau, time=time)
    assert_equal(other.forward_dynamics(q, v, tau, time=time), a, RELATIVE)
    assert_equal(other.constraint_residual(q, time=time), np.zeros(other.nc))


# ---- velocities ------------------------------------------------------------------------------------------------------


@law
@given(CLOSED, seeds(), st.sampled_from(["mass", "euclidean"]))
def test_projected_velocities(closed, seed, metric):
    """They satisfy the constraints, and the difference is perpendicular to all allowed velocities."""
    robot, (q, allowed, _, time) = closed.robot, closed.state
    v = np.random.default_rng(seed).normal(size=robot.nv)
    w = robot.project_velocity(q, v, metric=metric, time=time)
    J, c = robot.constraint_jacobian(q, time=time), robot.constraint_velocity(q, time=time)
    assert_equal(J @ w, c, SOLVED, scale=size(J) * size(w))
    assert_equal(robot.project_velocity(q, w, metric=metric, time=time), w, RELATIVE)
    M = robot.mass_matrix(q) if metric == "mass" else np.eye(robot.nv)
    assert_equal((allowed - w) @ M @ (v - w), 0.0, RELATIVE, scale=size(M) * size(v, w, allowed) ** 2)


@law
@given(RESTING, seeds(), st.sampled_from([0.0, 0.3, 1.0]))
def test_impacts(closed, seed, restitution):
    """Newton's hypothesis; momentum changes by the impulses; the energy lost is (1 - e^2) times that of the part that was stopped."""
    robot, q = closed.robot, closed.q
    v = np.random.default_rng(seed).normal(size=robot.nv)
    after, impulses = robot.impact(q, v, restitution=restitution)
    J, M = robot.constraint_jacobian(q), robot.mass_matrix(q)
    assert_equal(J @ after, -restitution * J @ v, SOLVED, scale=size(J) * size(v, after))
    assert_equal(M @ (after - v), J.T @ impulses, SOLVED, scale=size(M) * size(v, after))
    stopped = robot.project_velocity(q, v)
    lost = (1 - restitution**2) * robot.kinetic_energy(q, v - stopped)
    before = robot.kinetic_energy(q, v)
    assert_equal(before - robot.kinetic_energy(q, after), lost, RELATIVE, scale=before)
    assert lost >= 0
    if restitution == 0.0:
        assert_equal(after, stopped, RELATIVE)


# ---- batches ---------------------------------------------------------------------------------------------------------

ASKED = {
    "forward_dynamics": lambda m, s, **more: m.forward_dynamics(s.q, s.v, s.tau, time=s.time, **more),
    "constrained_motion": lambda m, s, **more: m._constrained_motion(s.q, s.v, s.tau, time=s.time, **more),
    "constraint_jacobian": lambda m, s, **more: m.constraint_jacobian(s.q, time=s.time, **more),
    "constraint_velocity": lambda m, s, **more: m.constraint_velocity(s.q, time=s.time, **more),
    "constraint_bias": lambda m, s, **more: m.constraint_bias(s.q, s.v, time=s.time, **more),
    "constraint_residual": lambda m, s, **more: m.constraint_residual(s.q, time=s.time, **more),
    "project_velocity": lambda m, s, **more: m.project_velocity(s.q, s.tau, time=s.time, **more),
}


@functools.cache
def batch(seed):
    """Return a mechanism, eleven of its states one by one, and stacked."""
    closed = random_closed(seed, copies=seed % 2, loops=3, floating=seed % 2 == 0, friction=True)
    states = closed.states(np.random.default_rng(seed), 11)
    return closed.robot, states, State(*map(np.array, zip(*states, strict=True)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ASKED)
def test_a_batch_is_its_states(name, seed):
    """Results are equal up to fused multiplications, and bit for bit for any number of threads and any position in the batch."""
    ask, (robot, states, stacked) = ASKED[name], batch(seed)
    whole = ask(robot, stacked)
    # multipliers of redundant rows are least to the accuracy of the steps that find them
    tolerance = 1e-8 if name == "constrained_motion" else BATCH
    for k, state in enumerate(states):
        assert_equal(whole[k], ask(robot, state), tolerance)
    for threads in 2, 5:
        assert_array_equal(ask(robot, stacked, threads=threads), whole)
    assert_array_equal(ask(robot, State(*(x[::-1] for x in stacked)))[::-1], whole)


@pytest.mark.parametrize("name", ASKED)
def test_a_bad_sample_spoils_only_itself(name):
    ask, (robot, _, stacked) = ASKED[name], batch(3)
    clean = ask(robot, stacked)
    q = stacked.q.copy()
    q[4, 0] = np.nan
    result, status = ask(robot, stacked._replace(q=q), return_status=True)
    assert_array_equal(np.flatnonzero(status), [4])
    assert status[4] == 1
    assert np.isnan(result[4]).all()
    good = np.arange(len(q)) != 4
    assert_array_equal(result[good], clean[good])


# ---- what cannot be --------------------------------------------------------------------------------------------------


def arm():
    b = sarrus.Builder("arm")
    for k in range(2):
        b.add_body(f"link{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("shoulder", sarrus.Revolute("y"), "ground", "link0")
    b.add_joint("elbow", sarrus.Revolute("y"), "link0", "link1", at_parent=(1, 0, 0))
    return b


def test_contradictory_motions_have_no_answer():
    """Two joints with prescribed motions, and a gear: inconsistent states are reported, without effect on their neighbours."""
    b = arm()
    b.add_prescribed_motion("slow", "shoulder", sarrus.laws.harmonic(1.0, 1.0))
    b.add_prescribed_motion("quick", "elbow", sarrus.laws.harmonic(-0.5, 2.0))
    b.add_coupler("belt", {"shoulder": 1.0, "elbow": 1.0})
    robot = b.build()
    q, v, tau = np.zeros(2), np.array([1.0, -1.0]), np.zeros(2)
    a = robot.forward_dynamics(q, v, tau, time=0.0)  # both start alike
    assert_equal(a, np.zeros(2))
    assert_equal(robot.project_velocity(q, np.zeros(2), time=0.0), v)
    _, status = robot.forward_dynamics(q, v, tau, time=[0.0, 0.7, 0.0], return_status=True)
    assert_array_equal(status, [0, 4, 0])  # at 0.7 s they are to stand elsewhere, and cannot move as they are told
    result, status = robot.forward_dynamics(q, v, tau, time=[0.0, 0.7, 0.0], check=False, return_status=True)
    assert_array_equal(status, [0, 3, 0])
    assert np.isnan(result[1]).all()
    assert_equal(result[[0, 2]], np.stack([a, a]))
    for ask in (robot.project_velocity, lambda *state, time: robot.forward_dynamics(*state, tau, time=time)):
        with pytest.raises(sarrus.StateError, match=r"slow|quick|belt"):
            ask(q, v, time=0.7)


@pytest.mark.parametrize("axis", ["z", (0.2, 0.7, -0.67)])
@pytest.mark.parametrize("more", [1, 2])
def test_a_door_on_two_hinges(axis, more):
    """Redundant rows are rounding, or duplicates: hinges share the load, as unit bushings would."""
    b = sarrus.Builder()
    b.add_body("door", sarrus.Inertia.box(20.0, (0.8, 0.04, 2.0)))
    corner, along = np.array([-0.4, 0, -0.8]), np.array(sarrus.Revolute(axis).axis)
    b.add_joint("hinge", sarrus.Revolute(axis), "ground", "door", at_child=corner)
    alone = b.build()
    for k in range(1, more + 1):
        up = 1.37 * k * along
        b.add_joint(f"hinge{k}", sarrus.Revolute(axis), "ground", "door", at_parent=up, at_child=corner + up)
    door = b.build()
    q, v, tau = [0.3], [1.0], [2.0]
    a, reactions = door.forward_dynamics(q, v, tau, return_reactions=True)
    assert_equal(a, alone.forward_dynamics(q, v, tau))
    loads = door.joint_wrenches(q, v, a, multipliers=reactions.multipliers, actuated=[door.joints[0]])
    at = Equilibrium(door, np.array(q))
    x = at.coordinates(loads, reactions.multipliers)
    assert_equal(x, at.least(x), scale=200.0)
    assert max(np.abs(load).max() for load in loads.values()) < 1e4  # and nothing by rounding; the door weighs 200 N


@pytest.mark.parametrize("angle", [0.5, np.pi / 2, 2.0, 3.0, -2.5])
@pytest.mark.parametrize("free", ["ry", "ry rz", "rx ry", "ry tx"])
def test_a_gimbal_turns_beyond_a_quarter(angle, free):
    """Fixed angles do not change if a free one passes 90 degrees, where only the three together are singular."""
    b = sarrus.Builder()
    b.add_body("wheel", sarrus.Inertia(1.0, (0.1, 0, 0), 0.1 * np.eye(3)))
    b.add_joint("free", sarrus.Free(), "ground", "wheel", tree=True)
    b.add_joint("gimbal", sarrus.Gimbal(free), "ground", "wheel", loop=True)
    robot = b.build()
    q = np.array([0, np.sin(angle / 2), 0, np.cos(angle / 2), 0, 0, 0])
    assert_equal(robot.constraint_residual(q), np.zeros(robot.nc))
    tree = sarrus.Builder()
    tree.add_body("wheel", sarrus.Inertia(1.0, (0.1, 0, 0), 0.1 * np.eye(3)))
    tree.add_joint("gimbal", sarrus.Gimbal(free), "ground", "wheel")
    tree = tree.build()
    x, x_rate = np.zeros(tree.nv), np.linspace(1, 2, tree.nv)
    x[free.split().index("ry")] = angle
    v = tree.velocity(x, x_rate, "wheel")
    a = robot.forward_dynamics(q, v, np.zeros(6))
    expected = tree.acceleration(x, x_rate, tree.forward_dynamics(x, x_rate, np.zeros(tree.nv)), "wheel")
    assert_equal(a, np.concatenate([expected[:3], expected[3:] - np.cross(v[:3], v[3:])]), RELATIVE)


def test_nothing_closes_without_loops():
    """For a tree, functions of constraints return empty results."""
    robot = arm().build()
    q, v, tau = np.zeros(2), np.ones(2), np.ones(2)
    assert robot.nc == 0 and robot.constraints == () and robot.loop_joints == ()
    assert robot.constraint_jacobian(q).shape == (0, 2)
    assert robot.constraint_residual(np.zeros((3, 2))).shape == (3, 0)
    assert_equal(robot.project_velocity(q, v), v)
    assert_equal(
        robot.forward_dynamics(q, v, tau, time=1.0, return_reactions=True)[0], robot.forward_dynamics(q, v, tau)
    )


def test_a_coupler_knows_a_planar_joint():
    """x and y do not change at the rates v, which are along the body's axes: a relation between them depends on q, or raises an error."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("puck", sarrus.Inertia(1.0, (0, 0, 0), 0.1 * np.eye(3)))
    b.add_joint("table", sarrus.Planar("z"), "ground", "puck")
    try:
        b.add_coupler("line", {("table", 0): 1.0, ("table", 1): -1.0})
        robot = b.build()
    except sarrus.ModelError:
        return
    q, v = np.array([0.2, 0.2, 0.7]), np.array([1.0, 0.3, -0.4])
    phi = robot.constraint_residual(robot.integrate(q, TIMES[:, None] * v))
    assert_equal(rate(phi), robot.constraint_jacobian(q) @ v, 1e3 * DIFFERENCING)


# ---- states that have no answer are told ---------------------------------------------------------------------------------


def off_by(robot, q, v, time):
    """Return the largest gap and the largest rate along a row."""
    J = robot.constraint_jacobian(q, time=time)
    gap, rate = robot.constraint_residual(q, time=time), J @ v - robot.constraint_velocity(q, time=time)
    return np.abs(gap).max(), np.abs(rate).max()


@law
@given(closed_mechanisms(), st.sampled_from([1e-7, 3e-2, 0.3]), st.booleans())
def test_states_off_the_loops_are_told(closed, by, in_velocity):
    """An open loop, or a velocity that is not allowed: status 4 and an error with its name; smaller deviations have a result."""
    robot, (q, v, tau, time) = closed.robot, closed.state
    rng = np.random.default_rng(0)
    assert robot.forward_dynamics(q, v, tau, time=time, return_status=True)[1] == 0
    step = rng.standard_normal(robot.nv)
    if in_velocity:
        v = v + by * (1.0 + np.linalg.norm(v)) * step
    else:
        q = robot.integrate(q, by * step)
    _, status = robot.forward_dynamics(q, v, tau, time=time, return_status=True)
    gap, rate = off_by(robot, q, v, time)
    if max(gap, rate) < 1e-5:
        assert status == 0
    if gap > 0.1:  # bodies of 1 m and joints of 1 rad
        assert status == 4
    batch, codes = robot.forward_dynamics(np.stack([q, q]), v, tau, time=time, return_status=True)
    assert_array_equal(codes, [status, status])
    assert np.isnan(batch).all() == (status != 0)
    if status == 4:
        with pytest.raises(sarrus.StateError, match=r"is open by|does not allow this velocity"):
            robot.forward_dynamics(q, v, tau, time=time)


FOUR_BAR_OFF = [
    ([0.5, 0.0, 0.0], [0.0, 0.0, 0.0], "'pin2' is open by 0.719"),
    (None, [1.0, 0.0, 0.0], "'pin2' does not allow"),
]


@pytest.mark.parametrize(("q", "v", "says"), FOUR_BAR_OFF)
@pytest.mark.parametrize("ask", ["forward_dynamics", "actuator_efforts"])
def test_a_four_bar_off_its_loop(ask, q, v, says):
    robot = sarrus.mechanisms.four_bar()
    function = getattr(robot, ask)
    q, v, zero = robot.assemble() if q is None else np.array(q), np.array(v), np.zeros(3)
    with pytest.raises(sarrus.StateError, match=says):
        function(q, v, zero)
    answer, status = function(np.stack([q, robot.assemble()]), np.stack([v, zero]), zero, return_status=True)
    assert_array_equal(status, [4, 0])
    assert np.isnan(answer[0]).all()
    assert np.isfinite(answer[1]).all()
    assert np.isfinite(function(q, v, zero, check=False)).all()


@pytest.mark.parametrize(
    ("make", "locked"),
    [
        (sarrus.mechanisms.four_bar, ["pivot"]),
        (sarrus.mechanisms.five_bar, ["left_motor", "right_motor"]),
        (sarrus.mechanisms.slider_crank, ["guide"]),
    ],
)
@pytest.mark.parametrize("metric", ["mass", "euclidean"])
def test_configurations_that_stay_open_are_told(make, locked, metric):
    """Fixed coordinates that the other joints cannot reach are reported."""
    robot, how = make(), {"metric": metric, "locked": locked}
    q, status = robot.project_configuration(robot.random(0, size=2000), **how, return_status=True)
    closed = status == 0
    assert closed.any()
    assert not closed.all()
    assert np.isin(status, [0, 2]).all()
    assert np.isnan(q[~closed]).all()
    assert np.abs(robot.constraint_residual(q[closed])).max() < 1e-8
    lost = robot.random(0, size=2000)[~closed][0]
    with pytest.raises(
        sarrus.StateError, match=r"does not close the loops from this configuration: '\w+' still has an error of"
    ):
        robot.project_configuration(lost, **how)


@pytest.mark.parametrize("angle", 10.0 ** np.arange(-14.0, -3.0))
def test_so_near_to_a_singular_position_that_rounding_decides(angle):
    """A flat parallelogram: the acceleration is that of its branch, or that of the pseudo-inverse at the flat position, or there is no answer."""
    robot, state = sarrus.mechanisms.four_bar_ladder(1), almost_flat
    q, v, tau = (np.asarray(x)[0] for x in state(robot, angle, 1))
    q_near, v_near, tau_near = (np.asarray(x)[0] for x in state(robot, 1e-4, 1))
    on_the_branch = robot.forward_dynamics(q_near, v_near, tau_near)
    flat = robot.forward_dynamics(*(np.asarray(x)[0] for x in state(robot, 0.0, 1)))
    a, status = robot.forward_dynamics(q, v, tau, return_status=True)
    both, reactions, status_of_both = robot.forward_dynamics(q, v, tau, return_reactions=True, return_status=True)
    for answer, code in ((a, status), (both, status_of_both)):
        assert code in (0, 2)
        if code == 0:
            near = min(np.abs(answer - on_the_branch).max(), np.abs(answer - flat).max())
            assert near < 1e-4
    if status_of_both == 0:
        assert reactions.residual < 1e-11
    assert angle < 1e-7 or status == 0


def test_bias_of_a_closing_universal_joint_off_the_constraints():
    """-J-dot v for any v, by differences along the motion."""
    b = sarrus.Builder()
    b.add_body("one", sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    b.add_body("two", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_joint("free", sarrus.Free(), "ground", "one")
    b.add_joint("ball", sarrus.Spherical(), "one", "two", at_parent=(0.3, 0.1, 0.0), tree=True)
    b.add_joint("cross", sarrus.Universal("x", (0.2, 0.9, 0.1)), "ground", "two", at_child=(0.1, 0.4, 0.2), loop=True)
    robot = b.build()
    rng = np.random.default_rng(3)
    for _ in range(10):
        q, v, h = robot.random(rng), rng.standard_normal(robot.nv), 1e-5
        rate = (
            robot.constraint_jacobian(robot.integrate(q, h * v)) - robot.constraint_jacobian(robot.integrate(q, -h * v))
        ) / (2 * h)
        assert_allclose(robot.constraint_bias(q, v), -rate @ v, rtol=0, atol=1e-8)
