"""Laws of mechanisms with a floating base, whose motion follows from momentum: random trees and closed mechanisms."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sarrus
from tests.effort import examples
from tests.laws.test_laws import DIFFERENCING, REPRESENTATION, assert_equal, path, rate
from tests.random_closed import CLOSING, closed_mechanisms
from tests.random_mechanisms import (
    PLACES,
    mechanisms,
    random_state,
    seeds,
)

EPS = np.finfo(float).eps
# of a few bodies of like size, a base among them: sums of their momenta, and a division by an inertia whose condition is about a hundred
ROUNDING = 1e4 * EPS
# of loops whose rows, in `random_closed`, are independent to a thirtieth, and are solved to rounding over that, squared
OF_LOOPS = 1e-10

floating = mechanisms(floating=True, bodies=st.integers(2, 8), backward=0.0)
law = examples(15)
# what closes loops between bodies, whatever the base does; two in three leave the ground alone
closed_and_floating = closed_mechanisms(
    floating=True, kinds=(*CLOSING, "distance", "coupler", "sphere on sphere", "pfaffian"), bodies=st.integers(4, 7)
).filter(lambda closed: not closed.robot._tie)


def base_of(robot):
    return next(j for j in map(robot.joint, robot.joints) if "ground" in (j.parent, j.child))


def joints_of(robot):
    return np.delete(np.arange(robot.nv), base_of(robot).v_slice)


# ---- the generalized Jacobian ----------------------------------------------------------------------------------------------------------


@law
@given(floating, st.sampled_from(PLACES), REPRESENTATION, seeds())
def test_it_agrees_with_the_oracle(robot, at, axes, seed):
    """H about the world's origin, and derivatives by the complex step."""
    from tests.oracles import Dense

    rng, oracle = np.random.default_rng(seed), Dense(robot.description)
    q, v, _ = random_state(robot, rng, at)
    h = rng.normal(size=6)
    for frame in ("tool", "frame0", "body0"):
        for name, given_ in ("generalized_jacobian", (q,)), ("generalized_jacobian_derivative", (q, v)):
            ours = getattr(sarrus.floating, name)(robot, *given_, frame, expressed_in=axes)
            assert_equal(ours, getattr(oracle, name)(*given_, frame, expressed_in=axes), ROUNDING)
    assert_equal(sarrus.floating.momentum_velocity(robot, q, v, h), oracle.momentum_velocity(q, v, h), ROUNDING)


@law
@given(floating, REPRESENTATION, seeds())
def test_momentum_is_the_given_one_and_frames_move_by_it(robot, axes, seed):
    rng = np.random.default_rng(seed)
    q, v, _ = random_state(robot, rng)
    h = rng.normal(size=6)
    moving, rest = (
        sarrus.floating.momentum_velocity(robot, q, v, h),
        sarrus.floating.momentum_velocity(robot, q, 0 * v, h),
    )
    assert_equal(robot.momentum(q, moving), h, ROUNDING)
    assert_equal(robot.momentum(q, sarrus.floating.momentum_velocity(robot, q, v)), 0 * h, ROUNDING)
    joints = joints_of(robot)
    assert np.array_equal(moving[joints], v[joints])
    J = sarrus.floating.generalized_jacobian(robot, q, "tool", expressed_in=axes)
    drift = robot.velocity(q, rest, "tool", expressed_in=axes)
    assert_equal(robot.velocity(q, moving, "tool", expressed_in=axes), J @ v[joints] + drift, ROUNDING)


@law
@given(floating, REPRESENTATION, seeds())
def test_its_derivative_is_its_rate(robot, axes, seed):
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    v = 0.3 * v / max(1.0, np.abs(v).max())  # the inverse of an inertia has steeper derivatives than sines and cosines
    expected = rate(sarrus.floating.generalized_jacobian(robot, path(robot, q, v), "tool", expressed_in=axes))
    found = sarrus.floating.generalized_jacobian_derivative(robot, q, v, "tool", expressed_in=axes)
    assert_equal(found, expected, 1e3 * DIFFERENCING)


@law
@given(floating, st.integers(0, 7), seeds())
def test_it_does_not_matter_which_body_is_called_the_base(robot, body, seed):
    rng = np.random.default_rng(seed)
    q, v, _ = random_state(robot, rng)
    other = f"body{body % len(robot.bodies)}"
    d = robot.description
    specs = [
        dataclasses.replace(s, child=other, at_child=sarrus.Transform()) if s.parent == "ground" else s
        for s in d.joints
    ]
    turned = sarrus.Mechanism(dataclasses.replace(d, joints=tuple(specs)))
    assert turned.joints == robot.joints
    base = base_of(robot)
    at_parent = next(s.at_parent for s in d.joints if s.name == base.name)
    at = at_parent.inverse() @ sarrus.Transform.from_matrix(robot.pose(q, other))
    p = q.copy()
    p[base.q_slice] = [*sarrus.Rotation(at.rotation).quaternion, *at.translation]
    assert_equal(turned.pose(p, "tool"), robot.pose(q, "tool"), ROUNDING)
    for axes in ("frame", "world_aligned"):
        ours, theirs = (
            sarrus.floating.generalized_jacobian(r, x, "tool", expressed_in=axes) for r, x in ((robot, q), (turned, p))
        )
        assert_equal(theirs, ours, ROUNDING)


@law
@given(floating, seeds())
def test_it_does_not_matter_where_it_floats(robot, seed):
    rng = np.random.default_rng(seed)
    q, _, _ = random_state(robot, rng)
    elsewhere = q.copy()
    elsewhere[base_of(robot).q_slice] = [*sarrus.Rotation.exp(rng.normal(size=3)).quaternion, *rng.normal(size=3) * 100]
    ours = sarrus.floating.generalized_jacobian(robot, q, "tool")
    assert_equal(sarrus.floating.generalized_jacobian(robot, elsewhere, "tool"), ours, 100 * ROUNDING)


@law
@given(floating, seeds())
def test_the_partition_is_the_equations_of_motion_in_any_coordinates_of_the_base(robot, seed):
    """[H_b H_bm; H_bm^T H_m] [x_b-ddot; phi-ddot] + c = [F_b; tau], for x_b-dot the velocity of any frame, also of the tool."""
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng)
    tau, joints = robot.inverse_dynamics(q, v, a), joints_of(robot)
    for base in (None, "tool"):
        for axes in ("frame", "world_aligned", "world"):
            form = sarrus.floating.equations_of_motion(robot, q, v, base=base, expressed_in=axes, end_points=["frame1"])
            frame = base or base_of(robot).child
            x = robot.velocity(q, v, frame, expressed_in=axes)
            assert_equal(form.base_velocity, x, ROUNDING)
            assert np.array_equal(form.joint_velocity, v[joints])
            A = (
                robot.jacobian(q, frame, expressed_in=axes) @ a
                + robot.jacobian_derivative(q, v, frame, expressed_in=axes) @ v
            )
            both, Z = np.concatenate([A, a[joints]]), form.velocity_map
            H = np.block([[form.base_inertia, form.coupling_inertia], [form.coupling_inertia.T, form.joint_inertia]])
            scale = np.abs(H).max() * max(1.0, np.abs(both).max(), np.abs(v).max() ** 2)
            assert_equal(H @ both + [*form.base_bias, *form.joint_bias], Z.T @ tau, ROUNDING, scale)
            assert_equal(Z @ [*x, *v[joints]], v, ROUNDING)
            # of the end point: 3.16, 3.17, and the same J*, whatever the base's coordinates
            at = form.end_points["frame1"]
            V = at.base_jacobian @ x + at.joint_jacobian @ v[joints]
            assert_equal(V, robot.velocity(q, v, "frame1", expressed_in=axes), ROUNDING)
            rates = at.base_jacobian_derivative @ x + at.joint_jacobian_derivative @ v[joints]
            A_1 = at.base_jacobian @ A + at.joint_jacobian @ a[joints] + rates
            J, J_dot = (
                f(*g, "frame1", expressed_in=axes)
                for f, g in ((robot.jacobian, (q,)), (robot.jacobian_derivative, (q, v)))
            )
            assert_equal(A_1, J @ a + J_dot @ v, ROUNDING, scale)
            own = sarrus.floating.generalized_jacobian(robot, q, "frame1", expressed_in=axes)
            assert_equal(form.generalized_jacobian("frame1"), own, ROUNDING)
            drift = robot.velocity(q, v, "frame1", expressed_in=axes) - own @ v[joints]
            assert_equal(form.drift("frame1"), drift, ROUNDING, np.abs(v).max())
    assert_equal(
        sarrus.floating.equations_of_motion(robot, q, v, expressed_in="world").momentum, robot.momentum(q, v), ROUNDING
    )


@law
@given(floating, st.sampled_from(["frame", "world_aligned"]), seeds())
def test_motors_feel_the_generalized_inertia(robot, axes, seed):
    """H* phi-ddot + c* = tau if no force acts on the base."""
    rng = np.random.default_rng(seed)
    assume(not robot._massless)
    q, v, tau = random_state(robot, rng)
    joints, base = joints_of(robot), base_of(robot)
    tau[base.v_slice] = 0.0
    a = robot.forward_dynamics(q, v, tau)
    form = sarrus.floating.equations_of_motion(robot, q, v, expressed_in=axes)
    H, c = form.generalized_inertia, form.generalized_bias
    assert_equal(
        H @ a[joints] + c,
        tau[joints],
        ROUNDING,
        np.abs(H).max(initial=0.0) * np.abs(a).max() + np.abs(c).max(initial=0.0),
    )


@law
@given(floating, seeds())
def test_the_reaction_is_what_the_base_alone_needs(robot, seed):
    """Newton's and Euler's equations of the base with the reaction, the free joint's force, gravity and wrenches (3.38, 3.39)."""
    from tests.oracles import Dense

    rng, oracle = np.random.default_rng(seed), Dense(robot.description)
    q, v, a = random_state(robot, rng)
    wrenches = {"tool": rng.normal(size=6), "frame0": rng.normal(size=6)}
    host = next(f.body for f in robot.description.frames if f.name == "tool")
    b = robot.bodies.index("body0")
    welded = [s for s in robot.description.joints if s.joint.nv == 0 and "body0" in (s.parent, s.child)]
    assume(not welded and host != "body0")
    moment, force = oracle.required(q, v, a, wrenches)
    c = oracle.centers(oracle.place(q))[b]
    given_ = robot.inverse_dynamics(q, v, a, wrenches=wrenches)[base_of(robot).v_slice]
    J = robot.jacobian(q, "body0", expressed_in="world")[:, base_of(robot).v_slice]
    needed = np.concatenate([moment[b] + np.cross(c, force[b]), force[b]])
    found = sarrus.floating.base_reaction(robot, q, v, a, expressed_in="world", wrenches=wrenches)
    assert_equal(found, needed - np.linalg.solve(J.T, given_), ROUNDING, np.abs(given_).max())
    of_joints = sarrus.formulations.reactions(robot, q, v, a, wrenches=wrenches)
    specs = {s.name: s for s in robot.description.joints}
    total = np.zeros(6)
    for name, w in of_joints.items():
        s = specs[name]
        if s.parent == "body0":
            X = robot.pose(q, s.child) @ s.at_child.matrix
            f = X[:3, :3] @ w[3:]
            total -= np.concatenate([X[:3, :3] @ w[:3] + np.cross(X[:3, 3], f), f])
    assert_equal(found, total, ROUNDING, np.abs(given_).max())


@law
@given(floating, seeds())
def test_momentum_about_any_point(robot, seed):
    from tests.oracles import Dense

    rng = np.random.default_rng(seed)
    q, v, _ = random_state(robot, rng)
    oracle, point = Dense(robot.description), rng.normal(size=3)
    assert_equal(
        sarrus.floating.momentum_about(robot, q, v, point=point), oracle.momentum_matrix(q, point) @ v, ROUNDING
    )
    assert_equal(
        sarrus.floating.momentum_about(robot, q, v), sarrus.floating.centroidal_momentum(robot, q, v), ROUNDING
    )
    X = robot.pose(q, "tool")
    seen = np.kron(np.eye(2), X[:3, :3].T) @ sarrus.floating.momentum_about(robot, q, v, point=X[:3, 3])
    assert_equal(sarrus.floating.momentum_about(robot, q, v, point="tool", axes="tool"), seen, ROUNDING)


# ---- with loops ------------------------------------------------------------------------------------------------------------------------


@law
@given(closed_and_floating, seeds())
def test_loops_leave_momentum_as_it_is(closed, seed):
    """The base's velocity follows from momentum, the loops stay closed, and J* gives the frame's velocity."""
    robot, (q, v, _, time) = closed.robot, closed.state
    h = np.random.default_rng(seed).normal(size=6)
    moving = sarrus.floating.momentum_velocity(robot, q, v, h)
    assert_equal(robot.momentum(q, moving), h, ROUNDING)
    J, c = robot.constraint_jacobian(q, time=time), robot.constraint_velocity(q, time=time)
    assert_equal(J @ moving, c, OF_LOOPS, np.abs(v).max())
    form = sarrus.floating.equations_of_motion(robot, q, moving, end_points=["tool"], time=time)
    joints = joints_of(robot)
    found = sarrus.floating.generalized_jacobian(robot, q, "tool") @ moving[joints] + form.drift("tool")
    # what prescribed motions add to v is in the momentum, and in the velocity by the same right
    assert_equal(found, robot.velocity(q, moving, "tool"), OF_LOOPS, np.abs(moving).max())


@law
@given(closed_and_floating, seeds())
def test_with_loops_motion_is_that_of_independent_coordinates(closed, seed):
    """y-dot determines all velocities; H* y-ddot + c* = G^T tau is the motion of the closed mechanism with motors only."""
    robot, (q, v, tau, time) = closed.robot, closed.state
    own = base_of(robot).v_slice
    form = sarrus.floating.equations_of_motion(robot, q, v, end_points=["tool"], time=time)
    Z, y = form.velocity_map, form.joint_velocity
    assert_equal(robot.constraint_jacobian(q, time=time) @ Z, np.zeros((robot.nc, Z.shape[1])), OF_LOOPS)
    drift = robot.constraint_velocity(q, time=time)
    if not drift.any():
        assert_equal(Z @ [*form.base_velocity, *y], v, OF_LOOPS, np.abs(v).max())
        assert_equal(
            robot.velocity(q, sarrus.floating.momentum_velocity(robot, q, v), "tool"),
            form.generalized_jacobian("tool") @ y,
            OF_LOOPS,
            np.abs(v).max(),
        )
    tau[own] = 0.0
    a = robot.forward_dynamics(q, v, tau, time=time)
    names = [f"{j.name}[{k}]" if j.nv > 1 else j.name for j in map(robot.joint, robot.joints) for k in range(j.nv)]
    a_y = a[[names.index(name) for name in form.coordinates]]
    H, c, of_joints = form.generalized_inertia, form.generalized_bias, Z.copy()
    of_joints[own] = 0.0
    size = np.abs(H).max(initial=0.0) * np.abs(a).max() + np.abs(c).max(initial=0.0)
    # tau at the joints works along Z's joint columns, base motion included where v of the base is not what floats: here it is
    assert_equal(H @ a_y + c, (of_joints.T @ tau)[6:], OF_LOOPS, size)


@examples(10)
@given(closed_and_floating.filter(lambda closed: not closed.robot._asks_for_rows))
def test_rates_of_the_reduced_jacobian(closed):
    """Compared with differences along a motion on the loops."""
    robot, (q, v, _, time) = closed.robot, closed.state
    form = sarrus.floating.equations_of_motion(robot, q, v, time=time)
    assume(len(form.coordinates) > 0 and not robot.constraint_velocity(q, time=time).any())
    independent = [(n.split("[")[0], int(n.split("[")[1][:-1])) if "[" in n else n for n in form.coordinates]
    v = v / max(1.0, np.abs(v).max())
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    step = 1e-4

    def there(t):
        p = robot.project_configuration(robot.integrate(q, t * v + 0.5 * t * t * a))
        return sarrus.floating.generalized_jacobian(robot, p, "tool", independent=independent)

    J = sarrus.floating.generalized_jacobian(robot, q, "tool", independent=independent)
    assert_equal(J, form_jacobian(robot, q, v), OF_LOOPS)
    found = sarrus.floating.generalized_jacobian_derivative(robot, q, v, "tool", independent=independent)
    expected = (8 * (there(step) - there(-step)) - (there(2 * step) - there(-2 * step))) / (12 * step)
    # rounding of the loops' closing over the step; the truncation is h^4
    assert_equal(found, expected, 1e-6, np.abs(J).max() ** 2)


def form_jacobian(robot, q, v):
    return sarrus.floating.equations_of_motion(robot, q, v, end_points=["tool"]).generalized_jacobian("tool")


# ---- the reaction null space -------------------------------------------------------------------------------------------------------------


@examples(10)
@given(
    st.one_of(
        mechanisms(floating=True, bodies=st.integers(3, 8)).map(lambda robot: (robot, None)),
        closed_and_floating.map(lambda closed: (closed.robot, closed.state)),
    ),
    st.sampled_from(["rx ry rz", "tx", "rx ry rz tx ty tz"]),
    seeds(),
)
def test_reactionless_motions_leave_the_base_at_rest(drawn, components, seed):
    robot, state = drawn
    rng = np.random.default_rng(seed)
    q, time = (random_state(robot, rng)[0], None) if state is None else (state.q, state.time)
    found = sarrus.floating.reaction_null_space(robot, q, components=components, time=time)
    N, joints = found.basis, joints_of(robot)
    names = ["rx", "ry", "rz", "tx", "ty", "tz"]
    at_rest = [names.index(c) for c in components.split()]
    size = max(1.0, np.abs(N).max(initial=0.0))
    for column in N.T:
        V = robot.velocity(q, column, base_of(robot).child, expressed_in="world_aligned")
        assert_equal(V[at_rest], np.zeros(len(at_rest)), OF_LOOPS, size)
        assert_equal(robot.momentum(q, column), np.zeros(6), OF_LOOPS, size)
    rows = robot.constraint_jacobian(q, time=time)[:, joints] if robot.nc else np.zeros((0, len(joints)))
    assert_equal(rows @ N[joints], np.zeros((len(rows), N.shape[1])), OF_LOOPS, size)
    P = found.projector
    assert_equal(P @ P, P, OF_LOOPS)
    assert round(np.trace(P)) == found.freedom == np.linalg.matrix_rank(N[joints]) if N.size else True
    # and no other: what is left of the joints' freedom moves the base
    J = sarrus.floating.generalized_jacobian(robot, q, base_of(robot).child, expressed_in="world_aligned")[at_rest]
    J = J / max(np.linalg.norm(J), 1e-300)
    both = np.concatenate([rows, J])
    assert (
        found.freedom == len(joints) - np.linalg.matrix_rank(both, tol=1e-7 * np.linalg.norm(both, 2))
        if both.size
        else True
    )


# ---- what it is for ------------------------------------------------------------------------------------------------------------------


def seven_bodies(balanced=False):
    """Return a satellite with an arm of six joints, optionally with a second arm of three joints that compensates the reaction on the base."""
    rng = np.random.default_rng(7)
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia.box(20.0, (0.8, 1.0, 1.2)))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    before, at = "satellite", (0.4, 0.1, 0.2)
    for k, axis in enumerate(("z", "y", "y", "x", "y", "x")):
        b.add_body(
            f"link{k}",
            sarrus.Inertia.box(2.5 - 0.3 * k, (0.4, 0.2, 0.2)).transformed(sarrus.Transform(translation=(0.2, 0, 0))),
        )
        b.add_joint(f"joint{k}", sarrus.Revolute(axis), before, f"link{k}", at_parent=at, actuated=True)
        before, at = f"link{k}", tuple(np.array([0.4, 0, 0]) + rng.normal(size=3) * 0.02)
    b.add_frame("hand", before, (0.4, 0, 0))
    before, at = "satellite", (-0.4, 0, 0)
    for k, axis in enumerate("xyz" * balanced):
        b.add_body(f"other{k}", sarrus.Inertia.rod(3.0, (0, 0, 0), (0, 0.4, 0.1), radius=0.1))
        b.add_joint(f"balance{k}", sarrus.Revolute(axis), before, f"other{k}", at_parent=at, actuated=True)
        before, at = f"other{k}", (0, 0.4, 0.1)
    return b.build()


FOLDED = np.array([0, 0, 0, 1, 0, 0, 0, 0.3, -0.9, 1.4, 0.2, 0.7, -0.3])
BALANCED = np.array([*FOLDED[:7], 0.95, -0.51, -1.41, -2.38, 2.8, 1.22, 2.73, 2.74, -1.5])


@pytest.mark.parametrize(("method", "drift"), [("implicit_midpoint", 1e-12), ("rk4", 1e-10)])
def test_motors_do_not_change_momentum(method, drift):
    """10^5 steps of a millisecond, with nonzero initial momentum; the hand moves by J* in all of them."""
    robot = seven_bodies()
    v = sarrus.floating.momentum_velocity(
        robot, FOLDED, np.r_[np.zeros(6), 0.1, -0.05, 0.1, 0.05, -0.1, 0.1], [0.5, -0.2, 0.3, 0.1, 0.2, -0.1]
    )
    times = np.linspace(0.0, 100.0, 201)
    efforts = [
        sarrus.control.FeedforwardEffort(f"joint{k}", sarrus.laws.harmonic(0.01, 1.0 + 0.3 * k)) for k in range(6)
    ]
    run = sarrus.simulate(robot, FOLDED, v, 100.0, efforts, method=method, dt=1e-3, times=times)
    h = robot.momentum(run.q, run.v)
    assert np.abs(h - h[0]).max() < drift * np.linalg.norm(h[0])
    still = sarrus.floating.momentum_velocity(robot, run.q, np.zeros(robot.nv), h)
    moved = robot.velocity(run.q, still, "hand") + np.einsum(
        "nij,nj->ni", sarrus.floating.generalized_jacobian(robot, run.q, "hand"), run.v[:, 6:]
    )
    assert_allclose(moved, robot.velocity(run.q, run.v, "hand"), rtol=0, atol=ROUNDING * np.abs(run.v).max())


def test_the_basis_is_orthonormal_in_the_joints():
    found = sarrus.floating.reaction_null_space(seven_bodies(), FOLDED)
    N = found.basis[6:]
    assert_allclose(N.T @ N, np.eye(3), rtol=0, atol=1e-13)
    assert_allclose(N @ N.T, found.projector, rtol=0, atol=1e-13)


def test_the_midpoint_rule_keeps_momentum_in_coarse_steps_too():
    """RK4 does not conserve momentum; gravity changes momentum by m g t."""
    robot = seven_bodies()
    efforts = [sarrus.control.FeedforwardEffort(f"joint{k}", 1.0 * (-1) ** k) for k in range(6)]
    drift = {}
    for method in ("implicit_midpoint", "rk4"):
        v = sarrus.floating.momentum_velocity(
            robot, FOLDED, np.r_[np.zeros(6), np.ones(6)], [0.5, -0.2, 0.3, 0.1, 0.2, -0.1]
        )
        run = sarrus.simulate(robot, FOLDED, v, 2.0, efforts, method=method, dt=2e-2)
        h = robot.momentum(run.q, run.v)
        drift[method] = np.abs(h - h[0]).max()
    assert drift["implicit_midpoint"] < 1e-12 < 1e-6 < drift["rk4"]
    heavy = sarrus.Mechanism(dataclasses.replace(robot.description, gravity=(0.0, 0.0, -9.81)))
    run = sarrus.simulate(heavy, FOLDED, v, 2.0, efforts, method="implicit_midpoint", dt=2e-2)
    expected = h[0, 3:] + heavy.mass * np.outer(run.t, heavy.gravity)
    assert_allclose(heavy.momentum(run.q, run.v)[:, 3:], expected, rtol=0, atol=1e-10)


def test_a_reactionless_motion_leaves_the_attitude_as_it_is():
    """Ten seconds along the reaction null space, then the same commanded joint motion on a free base."""
    robot = seven_bodies()

    def as_they_like(t, q):
        return np.r_[np.zeros(6), 0.2 * np.sin(0.6 * t + np.arange(6))]

    def velocity(t, q):
        return np.r_[np.zeros(6), sarrus.floating.reaction_null_space(robot, q).projector @ as_they_like(t, q)[6:]]

    run = sarrus.floating.motion(robot, FOLDED, velocity, np.linspace(0, 10, 401), step=0.025)
    assert run.disturbance < 1e-12
    assert np.ptp(run.q[:, 7:], axis=0).max() > 0.3
    assert sarrus.floating.motion(robot, FOLDED, as_they_like, [0, 10.0]).disturbance > 1e-2

    def hermite(t, q):
        """Return cubic polynomials through the samples of the joints and their rates."""
        k = min(int(t / 0.025), 399)
        s, (y0, y1), (m0, m1) = t / 0.025 - k, run.q[k : k + 2, 7:], run.v[k : k + 2, 6:]
        return np.r_[
            np.zeros(6), 6 * s * (1 - s) * (y1 - y0) / 0.025 + (1 - 4 * s + 3 * s * s) * m0 + (3 * s * s - 2 * s) * m1
        ]

    assert sarrus.floating.motion(robot, FOLDED, hermite, [0.0, 10.0], step=0.0125).disturbance < 1e-6


def test_a_path_comes_through_its_way_points():
    robot = seven_bodies(balanced=True)
    start = robot.pose(BALANCED, "hand")
    places = start[:3, 3] + np.array([[0.03, 0.05, -0.02], [-0.05, 0.02, 0.03]])
    free = sarrus.floating.path(robot, BALANCED, {"hand": places}, [1.0, 2.0], step=0.02)
    quiet = sarrus.floating.path(robot, BALANCED, {"hand": places}, [1.0, 2.0], step=0.02, still="rx ry rz")
    assert quiet.disturbance < 1e-9 < 1e-4 < free.disturbance
    for run in (free, quiet):
        for place, t in zip(places, (1.0, 2.0), strict=True):
            assert_allclose(robot.pose(run.q[np.searchsorted(run.t, t)], "hand")[:3, 3], place, rtol=0, atol=1e-6)
        assert_allclose(robot.momentum(run.q, run.v), 0.0, rtol=0, atol=1e-12)
    pose = start.copy()
    pose[:3, :3] = sarrus.Rotation.exp([0.1, -0.1, 0.2]).matrix @ pose[:3, :3]
    pose[:3, 3] = places[0]
    run = sarrus.floating.path(robot, BALANCED, {"hand": pose[None]}, [1.0], step=0.02, momentum=[0.1, 0, 0, 1.0, 0, 0])
    assert_allclose(robot.pose(run.q[-1], "hand"), pose, rtol=0, atol=1e-6)
    assert_allclose(robot.momentum(run.q, run.v), [[0.1, 0, 0, 1.0, 0, 0]] * len(run.t), rtol=0, atol=1e-12)


@pytest.mark.parametrize("momentum", [None, [0.2, -0.1, 0.3, 1.0, 0.5, -2.0]])
def test_resolved_rates_move_the_hand_as_said(momentum):
    robot = seven_bodies(balanced=True)
    rng = np.random.default_rng(1)
    q = robot.integrate(BALANCED, 0.2 * rng.normal(size=(5, robot.nv)))
    wanted = 0.1 * rng.normal(size=(5, 6))
    v = sarrus.floating.resolved_rate(robot, q, {"hand": wanted}, momentum=momentum)
    assert_allclose(robot.velocity(q, v, "hand", expressed_in="world_aligned"), wanted, rtol=0, atol=1e-11)
    assert_allclose(
        robot.momentum(q, v), np.broadcast_to(np.zeros(6) if momentum is None else momentum, (5, 6)), rtol=0, atol=1e-12
    )
    v = sarrus.floating.resolved_rate(
        robot, q, {("hand", "tx ty tz"): wanted[:, 3:]}, still="rx ry rz", momentum=momentum
    )
    assert_allclose(
        robot.velocity(q, v, "hand", expressed_in="world_aligned")[:, 3:], wanted[:, 3:], rtol=0, atol=1e-11
    )
    assert_allclose(robot.velocity(q, v, "satellite")[:, :3], 0.0, rtol=0, atol=1e-11)


def stewart_on_a_satellite():
    """Return six legs between a satellite and a platform; every loop contains the base."""
    fixed = sarrus.mechanisms.stewart().description
    base = sarrus.description.BodySpec("satellite", sarrus.Inertia.box(40.0, (1, 1, 0.4)))
    joints = [
        dataclasses.replace(
            s,
            parent="satellite" if s.parent == "ground" else s.parent,
            child="satellite" if s.child == "ground" else s.child,
        )
        for s in fixed.joints
    ]
    free = dataclasses.replace(sarrus.mechanisms.pendulum().description.joints[0], name="base", joint=sarrus.Free(), parent="ground",
                               child="satellite", at_parent=sarrus.Transform(), at_child=sarrus.Transform(), actuated=False)  # fmt: skip
    return sarrus.Mechanism(
        dataclasses.replace(fixed, bodies=(base, *fixed.bodies), joints=(free, *joints), gravity=(0.0, 0.0, 0.0))
    )


def test_a_stewart_platform_on_a_floating_base():
    robot = stewart_on_a_satellite()
    q = robot.assemble()
    J = sarrus.floating.generalized_jacobian(robot, q, "platform", independent="actuated")
    assert J.shape == (6, 6)
    assert np.linalg.matrix_rank(J) == 6
    rates = np.array([0.1, -0.2, 0.05, 0.1, 0.0, -0.1])
    v = robot.complete_velocity(q, dict(zip(robot.actuated, rates, strict=True)))
    v = sarrus.floating.momentum_velocity(robot, q, v)
    assert_allclose(robot.constraint_jacobian(q) @ v, 0.0, atol=1e-11)
    assert_allclose(robot.momentum(q, v), 0.0, atol=1e-11)
    assert_allclose(J @ rates, robot.velocity(q, v, "platform"), rtol=0, atol=1e-10)
    efforts = [sarrus.control.FeedforwardEffort(name, 20.0 * (-1) ** k) for k, name in enumerate(robot.actuated)]
    run = sarrus.simulate(robot, q, v, 0.5, efforts, method="implicit_midpoint", dt=2e-3)
    assert np.abs(run.v).max() > 0.5
    assert_allclose(robot.momentum(run.q, run.v), 0.0, rtol=0, atol=1e-12)


def test_a_path_of_a_closed_mechanism_keeps_its_loops():
    robot = stewart_on_a_satellite()
    q = robot.assemble()
    place = robot.pose(q, "platform")[:3, 3] + [0.02, -0.03, 0.04]
    for still in "", "rx ry rz":
        run = sarrus.floating.path(robot, q, {"platform": [place]}, [1.0], step=0.05, still=still)
        assert np.abs(robot.constraint_residual(run.q)).max() < 1e-9
        assert np.abs(np.einsum("nij,nj->ni", robot.constraint_jacobian(run.q), run.v)).max() < 1e-9
        assert_allclose(robot.momentum(run.q, run.v), 0.0, rtol=0, atol=1e-11)
        assert_allclose(robot.pose(run.q[-1], "platform")[:3, 3], place, rtol=0, atol=1e-6)
        assert (run.disturbance < 1e-10) == bool(still)


@pytest.mark.parametrize("seed", range(3))
def test_where_the_map_finds_a_dynamic_singularity_the_hand_loses_a_direction(seed):
    """A planar arm with two links: near the straight elbow the determinant of J* changes its sign, that of J does not."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia.box(4.0, (0.6, 0.6, 0.6)))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    b.add_body("upper", sarrus.Inertia.rod(1.0 + 0.2 * seed, (0, 0, 0), (1, 0, 0), radius=0.05))
    b.add_body("lower", sarrus.Inertia.rod(1.5, (0, 0, 0), (1, 0, 0), radius=0.05))
    b.add_joint("shoulder", sarrus.Revolute("z"), "satellite", "upper", at_parent=(0.5, 0, 0))
    b.add_joint("elbow", sarrus.Revolute("z"), "upper", "lower", at_parent=(1, 0, 0))
    b.add_frame("hand", "lower", (1, 0, 0))
    robot = b.build()
    angles = np.linspace(-2.0, 2.0, 400)
    q = np.tile(robot.neutral(), (400, 1))
    q[:, 7], q[:, 8] = 1.0, angles

    def determinant(q):
        return np.linalg.det(
            sarrus.floating.generalized_jacobian(robot, q, "hand", expressed_in="world_aligned")[..., 3:5, :]
        )

    d = determinant(q)
    crossings = np.flatnonzero(d[:-1] * d[1:] < 0)
    assert len(crossings) == 1
    low, high = q[crossings[0]], q[crossings[0] + 1]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if determinant(middle) * determinant(low) > 0 else (low, middle)
    found = sarrus.floating.dynamic_singularity_map(robot, np.array([low, q[300]]), ("hand", "tx ty"))
    assert found.singularity.tolist() == ["dynamic", "regular"]
    assert found.rank.tolist() == [1, 2]
    assert found.smallest[0] < 1e-12 < 0.1 < found.smallest_fixed[0]
    straight = q[300].copy()
    straight[8] = 0.0
    assert sarrus.floating.dynamic_singularity_map(robot, straight, ("hand", "tx ty")).rank_fixed == 1
    with pytest.raises(sarrus.StateError, match="no joint velocity produces these frame velocities"):
        sarrus.floating.resolved_rate(
            robot,
            low,
            {
                ("hand", "tx ty"): np.linalg.svd(
                    sarrus.floating.generalized_jacobian(robot, low, "hand", expressed_in="world_aligned")[3:5]
                )[0][:, 1]
            },
        )


# ---- closed forms ----------------------------------------------------------------------------------------------------------------------


def test_a_wheel_on_a_satellite_turns_it_back():
    """I_1 w = -I_2 (w + rate) about the common axis; the other velocities are zero."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia(7.0, (0, 0, 0), np.diag([1.0, 2.0, 2.5])))
    b.add_body("wheel", sarrus.Inertia(1.0, (0, 0, 0), np.diag([0.1, 0.1, 0.15])))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    b.add_joint("axle", sarrus.Revolute("z"), "satellite", "wheel")
    robot = b.build()
    J = sarrus.floating.generalized_jacobian(robot, robot.neutral(), "satellite")
    assert_allclose(J[:, 0], [0, 0, -0.15 / (2.5 + 0.15), 0, 0, 0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 0.4, 2.0])
def test_two_rods_hinged_at_their_ends(angle):
    """Planar rods of masses m_1, m_2 at r_1, r_2 from the hinge: w_1 ((I_1 + I_2 + mu |d|^2)) = -rate (I_2 - mu d . r_2), mu the reduced mass."""
    m_1, m_2, r_1, r_2, I_1, I_2 = 3.0, 2.0, 0.7, 0.4, 0.5, 0.2
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("first", sarrus.Inertia(m_1, (0, 0, 0), np.diag([I_1 / 2, I_1 / 2, I_1])))
    b.add_body("second", sarrus.Inertia(m_2, (r_2, 0, 0), np.diag([I_2 / 2, I_2 / 2, I_2])))
    b.add_joint("base", sarrus.Free(), "ground", "first")
    b.add_joint("hinge", sarrus.Revolute("z"), "first", "second", at_parent=(r_1, 0, 0))
    robot = b.build()
    q = robot.neutral()
    q[7] = angle
    mu = m_1 * m_2 / (m_1 + m_2)
    out = r_2 * np.array([np.cos(angle), np.sin(angle)])
    d = np.array([r_1, 0.0]) + out
    # about the centre of mass of both: I_1 w_1 + I_2 (w_1 + rate) + mu d x (w_1 x d + rate x out) = 0
    w = -(I_2 + mu * d @ out) / (I_1 + I_2 + mu * d @ d)
    assert_allclose(sarrus.floating.generalized_jacobian(robot, q, "first")[2, 0], w, rtol=1e-14)
