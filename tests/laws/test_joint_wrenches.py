"""Joint wrenches: every body satisfies the equations of Newton and Euler, and the spanning tree has no effect."""

import numpy as np
import pytest
from hypothesis import assume, given
from numpy.testing import assert_allclose

import sarrus
from tests.effort import examples
from tests.laws.test_closing_joint_laws import RECUT, RECUTS, TERMS, cuts
from tests.laws.test_laws import assert_equal, wrench_at
from tests.oracles.reactions import Equilibrium
from tests.random_closed import ALL_CONSTRAINTS, closed_mechanisms
from tests.random_mechanisms import mechanisms, random_state, seeds

law = examples(15)
# of a body's balance, relative to the largest force in it
BALANCED = 1e-9


def unbalanced(robot, q, v, a, loads):
    """Return the residual of each body's momentum, weight and joint wrenches, about the world's origin, and the largest of these terms."""
    d, left, largest = robot.description, {}, 1.0
    pose = {"ground": np.eye(4)} | {body: robot.pose(q, body) for body in robot.bodies}
    for body in d.bodies:
        (w, _), (dw, p) = (
            np.split(x(*state, body.name), 2)
            for x, state in ((robot.velocity, (q, v)), (robot.acceleration, (q, v, a)))
        )
        R, I = pose[body.name][:3, :3], body.inertia
        c, about = R @ I.com, R @ I.about_com @ R.T
        w, dw, p = R @ w, R @ dw, R @ p
        force = I.mass * (p + np.cross(dw, c) + np.cross(w, np.cross(w, c)) - robot.gravity)
        moment = about @ dw + np.cross(w, about @ w) + np.cross(pose[body.name][:3, 3] + c, force)
        left[body.name] = -np.concatenate([moment, force])
        largest = max(largest, np.abs(left[body.name]).max())
    placed = {spec.name: (spec.parent, spec.child, spec.at_child) for spec in d.joints}
    placed |= {name: (*robot.constraint(name).bodies, robot.constraint(name).spec.at_child)
               for name in set(loads) - set(placed)}  # fmt: skip
    for name, load in loads.items():
        parent, child, at = placed[name]
        wrench = wrench_at(load, pose[child] @ at.matrix)
        largest = max(largest, np.abs(wrench).max())
        for body, sign in ((parent, -1.0), (child, 1.0)):
            if body != "ground":
                left[body] = left[body] + sign * wrench
    return left, largest


def assert_balanced(robot, q, v, a, loads):
    left, largest = unbalanced(robot, q, v, a, loads)
    for wrench in left.values():
        assert_equal(wrench, np.zeros(6), BALANCED, scale=largest)


@law
@given(mechanisms(), seeds())
def test_bodies_of_a_tree_are_balanced(robot, seed):
    q, v, a = random_state(robot, np.random.default_rng(seed))
    loads = robot.joint_wrenches(q, v, a)
    assert_balanced(robot, q, v, a, loads)
    assert loads.indeterminate == {}
    tau = robot.inverse_dynamics(q, v, a)
    assert all((effort == tau[robot.joint(name).v_slice]).all() for name, effort in loads.efforts.items())


@law
@given(closed_mechanisms(kinds=tuple(kind for kind in ALL_CONSTRAINTS if not kind.startswith("pfaffian"))))
def test_bodies_of_loops_are_balanced(closed):
    """Rods, rolling contacts and prescribed motions too, for all forces along the joints of the tree."""
    robot, (q, v, tau, time) = closed.robot, closed.state
    a, loops = robot.forward_dynamics(q, v, tau, time=time, return_reactions=True)
    loads = robot.joint_wrenches(q, v, a, multipliers=loops.multipliers, actuated=robot.joints, time=time)
    assert_balanced(robot, q, v, a, loads)
    scale = max(1.0, np.abs(tau).max(initial=0.0), np.abs(loops.multipliers).max(initial=0.0))
    for name in robot.joints:
        assert_equal(loads.efforts[name], tau[robot.joint(name).v_slice], 1e-8, scale=scale)


@law
@given(RECUTS, seeds())
def test_a_cut_changes_nothing(closed, seed):
    """Motors in all joints, including loop joints, with friction, springs and armature."""
    told, angles = [], []
    for one in cuts(closed, np.random.default_rng(seed), *TERMS):
        robot, q, v = one.robot, one.q, one.v
        angles.append(robot.joint_states(q, v).v)
        for name, rates in angles[-1].items():
            alike = np.allclose(rates, angles[0][name], atol=1e-6)
            # with the other set of angles of a gimbal, its second motor acts in the opposite direction: that is another load
            assume(alike or not isinstance(robot.joint(name).type, sarrus.Gimbal))
            assert alike, name
        motors = sorted(spec.name for spec in closed.description.joints if spec.joint.nv)
        u = np.linspace(1.0, 2.0, sum(robot.joint(name).type.nv for name in motors))
        a = robot.forward_dynamics(q, v, robot.actuation_matrix(q, actuated=motors) @ u)
        loads = robot.joint_wrenches(q, v, a, actuated=motors)
        assert_balanced(robot, q, v, a, loads)
        told.append((loads, loads.indeterminate if robot.nc else {}))
    largest = max(1.0, *(np.abs(load).max() for load in told[0][0].values()))
    for loads, loose in told[1:]:
        assert loose == told[0][1]
        for name, load in loads.items():
            assert_equal(load, told[0][0][name], 100 * RECUT, scale=largest)


def test_a_batch_is_its_states():
    robot = sarrus.mechanisms.slider_crank()
    q = robot.follow({"motor": np.linspace(0.3, 1.0, 4)}, robot.assemble(fixed={"motor": 0.3}))
    v = robot.complete_velocity(q, {"motor": 2.0})
    a = robot.complete_acceleration(q, v, {"motor": 0.0})
    many = robot.joint_wrenches(q, v, a)
    for k in range(4):
        one = robot.joint_wrenches(q[k], v[k], a[k])
        for name, load in one.items():
            np.testing.assert_allclose(many[name][k], load, atol=1e-12)
        np.testing.assert_allclose(many.efforts["motor"][k], one.efforts["motor"], atol=1e-12)
    assert many.indeterminate == one.indeterminate
    assert repr(many) == f"<JointWrenches of '{robot.name}': 4 joints in 4 states>"
    unique = robot.mobility(q[0]).unique_reactions
    assert {name for name, known in unique.items() if not known} == set(many.indeterminate)


def test_efforts_of_a_prescribed_motion():
    """A crank that follows a time function has the torque that its motor would have."""
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_prescribed_motion("drive", "motor", sarrus.laws.polynomial(0.5, 3.0))
    driven, free = b.build(), sarrus.mechanisms.four_bar()
    q = free.assemble(fixed={"motor": 0.5})
    v = free.complete_velocity(q, {"motor": 3.0})
    a = free.complete_acceleration(q, v, {"motor": 0.0})
    by_law, by_motor = driven.joint_wrenches(q, v, a, actuated=(), time=0.0), free.joint_wrenches(q, v, a)
    np.testing.assert_allclose(by_law.efforts["drive"], by_motor.efforts["motor"], atol=1e-11)
    for name in by_motor:
        np.testing.assert_allclose(by_law[name], by_motor[name], atol=1e-11)


def test_a_batch_marks_its_bad_states():
    robot = sarrus.mechanisms.four_bar()
    q = np.array([robot.assemble(), np.full(3, np.nan)])
    loads = robot.joint_wrenches(q, np.zeros(3), np.zeros(3))
    assert all(np.isfinite(load[0]).all() and np.isnan(load[1]).all() for load in loads.values())
    assert loads.indeterminate == robot.joint_wrenches(q[0], np.zeros(3), np.zeros(3)).indeterminate


def test_what_cannot_be_told():
    robot = sarrus.mechanisms.four_bar()
    q, rest = robot.assemble(), np.zeros(3)
    with pytest.raises(sarrus.NotRealizableError, match="cannot produce this motion"):
        robot.joint_wrenches(q, rest, rest, actuated=())
    a, loops = robot.forward_dynamics(q, rest, [0.0, 1.0, 0.0], return_reactions=True)
    with pytest.raises(sarrus.ModelError, match="pass the driven joints as actuated="):
        robot.joint_wrenches(q, rest, a, multipliers=loops.multipliers, actuated=["pin2"])


def test_a_swinging_pendulum(tmp_path):
    """The pivot carries m (g cos q + l v^2) along the rod; the time-weighted mean does not depend on the spacing of samples."""
    robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    t = np.sort(np.concatenate([np.linspace(0.0, 1.0, 400), np.linspace(0.9, 1.0, 300)]))
    q, v, a = np.sin(2 * t)[:, None], 2 * np.cos(2 * t)[:, None], -4 * np.sin(2 * t)[:, None]
    loads = sarrus.Trajectory.from_motion(robot, t, q, v, a).joint_wrenches()
    along, across = 2.0 * (9.81 * np.cos(q) + 0.5 * v**2), 2.0 * (9.81 * np.sin(q) + 0.5 * a)
    force = np.hypot(along, across)[:, 0]
    row = loads.summary[0]
    assert (row.joint, row.quantity, row.unit, row.indeterminate) == ("pivot", "force", "N", "")
    assert (row.maximum, row.when) == (pytest.approx(force.max()), t[force.argmax()])
    even = np.interp(np.linspace(0.0, 1.0, 20001), t, force)
    assert row.mean == pytest.approx(even.mean(), rel=1e-4)
    assert row.rms == pytest.approx(np.sqrt((even**2).mean()), rel=1e-4)
    assert "pivot  force " in str(loads) and ">pivot</th>" in loads._repr_html_()
    np.testing.assert_allclose(
        loads.efforts["pivot"][:, 0], 2.0 * (9.81 * 0.5 * np.sin(q) + 0.25 * a)[:, 0], atol=1e-12
    )


def test_as_a_data_frame():
    pytest.importorskip("pandas")
    robot = sarrus.mechanisms.pendulum()
    loads = sarrus.Trajectory.from_motion(robot, np.linspace(0.0, 1.0, 5), *np.ones((3, 5, 1))).joint_wrenches()
    assert loads.to_dataframe().loc[0, "maximum"] == loads.summary[0].maximum


def test_along_a_run_as_in_its_states():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    drive = sarrus.control.PID("motor", proportional=20.0, derivative=2.0, target=1.0)
    run = sarrus.simulate(robot, q, np.zeros(3), 0.1, controller=drive)
    along, by_state = run.joint_wrenches(), robot.joint_wrenches(run.q, run.v, run.a)
    for name, load in by_state.items():
        np.testing.assert_allclose(along[name], load, atol=1e-7)
    np.testing.assert_allclose(along.efforts["motor"][:, 0], run.tau[:, 0], atol=1e-12)
    # what acts in a joint without a motor is told too
    pushed = sarrus.simulate(robot, q, np.zeros(3), 0.1, controller=sarrus.control.FeedforwardEffort("pin1", 3.0))
    np.testing.assert_allclose(pushed.joint_wrenches().efforts["pin1"], 3.0, atol=1e-9)


def test_multipliers_of_one_state_serve_many():
    robot = sarrus.mechanisms.stewart()
    q = np.broadcast_to(robot.assemble(), (2, 3, robot.nq))
    rest, mu = np.zeros((2, 3, robot.nv)), np.arange(float(robot.nc))
    one = robot.joint_wrenches(q, rest, rest, multipliers=mu)
    each = robot.joint_wrenches(q, rest, rest, multipliers=np.broadcast_to(mu, (2, 3, robot.nc)))
    for name in robot.constraints:
        assert one[name].shape == (2, 3, 6)
        np.testing.assert_allclose(one[name], each[name])
    with pytest.raises(sarrus.ShapeError, match="multipliers has leading axes"):
        robot.joint_wrenches(q, rest, rest, multipliers=np.ones((4, robot.nc)))


def test_a_frame_that_nothing_moves():
    """All joints of the tree are locked, and a rod acts on a body at rest. Forward dynamics has no answer, statics has; off the loops neither has."""
    none = np.zeros(0)
    upright, leaning = (guyed_mast(at) for at in (0.0, 0.5))
    assert (upright.nv, upright.nc) == (0, 1)
    loads = upright.joint_wrenches(none, none, none)
    assert_balanced(upright, none, none, none, loads)
    # the lock alone would do, but stay, foot and lock share the weight
    x = Equilibrium(upright, none).coordinates(
        loads, upright.actuator_efforts(none, none, none, return_reactions=True)[1]
    )
    assert_allclose(x, Equilibrium(upright, none).least(x), atol=1e-11)
    with pytest.raises(sarrus.StateError):
        leaning.joint_wrenches(none, none, none)


def guyed_mast(at):
    b = sarrus.Builder("mast")
    b.add_body("mast", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, 1), 0.01))
    b.add_joint("foot", sarrus.Revolute("y"), "ground", "mast")
    b.add_distance("stay", ("ground", (1, 0, 0)), ("mast", (0, 0, 1)), length=np.sqrt(2.0))
    b.lock("foot", at=at)
    return b.build()
