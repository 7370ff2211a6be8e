"""Laws of control by tasks: size, mass, axes of the world and the joint that closes change nothing, near singular positions too.

And what it says is right: beside the slow reference, or damped and told, or an error.
"""

import copy
import pickle

import numpy as np
import pytest

import sarrus
from oracles import task_control as oracle
from sarrus import control
from tests.effort import SOAK

SAME = 1e-9  # of efforts, relative: what scaled numbers differ by


def rod(mass, length):
    return sarrus.Inertia.rod(mass, (0, 0, 0), (length, 0, 0), 0.02 * length)


def arm(l=1.0, m=1.0, turn=None):
    """Three rods in a plane, of which each carries the next; the world with its gravity may be turned about the plane's normal."""
    R = turn or sarrus.Rotation()
    b = sarrus.Builder("arm", gravity=R.apply([0.0, 0.0, -9.81 * l]))
    for i in range(3):
        b.add_body(f"b{i}", rod(m, l))
        place = sarrus.Transform(R, np.zeros(3)) if i == 0 else (l, 0, 0)
        b.add_joint(
            f"j{i}", sarrus.Revolute("y"), f"b{i - 1}" if i else "ground", f"b{i}", at_parent=place, actuated=True
        )
    b.add_frame("tip", "b2", (l, 0, 0))
    return b.build()


def four_bar(closing, limits=None, l=1.0, m=1.0):
    """Crank, coupler and rocker; `closing`: which joint closes the loop."""
    b = sarrus.Builder("four-bar", gravity=(0, 0, -9.81 * l))
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        b.add_body(name, rod(m, length * l))
    ends = {
        "m": ("ground", "a", 0.0, 0.0),
        "p1": ("a", "b", 0.4, 0.0),
        "p": ("ground", "c", 1.0, 0.0),
        "p2": ("b", "c", 1.1, 0.9),
    }
    for name, (parent, child, at_parent, at_child) in ends.items():
        b.add_joint(
            name, sarrus.Revolute("y", limits=(limits or {}).get(name)), parent, child, at_parent=(at_parent * l, 0, 0),
            at_child=(at_child * l, 0, 0), actuated=name == "m", loop=name == closing, tree=name != closing,
        )  # fmt: skip
    return b.build()


def five_bar(l, m):
    b = sarrus.Builder("five-bar", gravity=(0, 0, -9.81 * l))
    for name in "abcd":
        b.add_body(name, rod(m, l))
    b.add_joint("m1", sarrus.Revolute("y"), "ground", "a", actuated=True)
    b.add_joint("e1", sarrus.Revolute("y"), "a", "b", at_parent=(l, 0, 0))
    b.add_joint("m2", sarrus.Revolute("y"), "ground", "c", at_parent=(0.8 * l, 0, 0), actuated=True)
    b.add_joint("e2", sarrus.Revolute("y"), "c", "d", at_parent=(l, 0, 0))
    b.add_joint("tip", sarrus.Revolute("y"), "b", "d", at_parent=(l, 0, 0), at_child=(l, 0, 0))
    return b.build()


def piston(closing):
    """A slider that drives its crank; `closing`: which joint closes the loop."""
    b = sarrus.Builder("piston")
    (
        b.add_body("crank", rod(1.0, 0.3)),
        b.add_body("rod", rod(1.0, 1.0)),
        b.add_body("slider", sarrus.Inertia.box(1.0, (0.1, 0.1, 0.1))),
    )
    ends = {
        "crank": (sarrus.Revolute("y"), "ground", "crank", 0.0, 0.0),
        "pin": (sarrus.Revolute("y"), "crank", "rod", 0.3, 0.0),
        "wrist": (sarrus.Revolute("y"), "rod", "slider", 1.0, 0.0),
        "rail": (sarrus.Prismatic("x"), "ground", "slider", 0.0, 0.0),
    }
    for name, (kind, parent, child, at_parent, _) in ends.items():
        b.add_joint(
            name, kind, parent, child, at_parent=(at_parent, 0, 0), actuated=name == "rail", loop=name == closing, tree=name != closing
        )  # fmt: skip
    return b.build()


def efforts(answer, size=1.0):
    return np.ravel(list(answer.efforts.values())) / size


SIZES = [(1.0, 1.0), (1e-5, 1e-12), (1e-2, 1e-3), (1e2, 1e5), (1e3, 1e6)]


@pytest.mark.parametrize("near", [0.3, 1e-4, 1e-7, 0.0])
@pytest.mark.parametrize("limit", [None, 5.0])
def test_size_and_mass_change_nothing_of_an_arm(near, limit):
    found = []
    for l, m in SIZES:
        limits = None if limit is None else control.Limits(effort=limit * m * l * l)
        law = control.TaskControl(arm(l, m), control.FrameTask("tip", [1.0 * l, 0.0, 1.0 * l]), limits)
        answer = law.solve(0.0, [0.1, near, near], np.zeros(3))
        found.append([*efforts(answer, m * l * l), answer.damping, *answer.missed[0] / l, *answer.acceleration])
    assert np.abs(np.array(found) - found[0]).max() < 1e-6 * np.abs(found[0]).max()
    assert limit is None or np.abs(found[0][:3]).max() <= limit


def test_size_and_mass_change_nothing_where_limits_act_on_a_loop():
    """Both motors at their limit: the first joint misses least, the second does what is left."""
    for l, m in SIZES:
        robot = five_bar(l, m)
        q = robot.assemble(near={"m1": -2.0, "m2": -1.0})
        v = robot.velocities(q, {"m1": 0.5, "m2": -0.3})
        tasks = [control.JointTask("m1", -1.0), control.JointTask("m2", -2.0, priority=1)]
        answer = control.TaskControl(robot, tasks, control.Limits(effort=6.0 * m * l * l)).solve(0.0, q, v)
        assert np.abs(efforts(answer, 6.0 * m * l * l) - 1.0).max() < SAME and answer.status == "solved"


def test_size_and_mass_change_nothing_of_feet():
    """A box on four points: within their cones, that carry its weight."""
    for l, m in SIZES:
        b = sarrus.Builder("box", gravity=(0, 0, -9.81 * l))
        b.add_body("box", sarrus.Inertia.box(m, (l, l, 0.1 * l)))
        b.add_joint("float", sarrus.Free(), "ground", "box", actuated=True)
        for k in range(4):
            b.add_frame(f"foot{k}", "box", (0.5 * l * (-1) ** k, 0.5 * l * (-1) ** (k // 2), 0.0))
        robot = b.build()
        feet = [control.PointContact(f"foot{k}", friction=0.5) for k in range(4)]
        limits = control.Limits(effort=1e-3 * m * l)
        law = control.TaskControl(robot, control.FrameTask("box", [0.1 * l, 0.0, 0.0]), limits, feet)
        answer = law.solve(0.0, robot.neutral(), np.zeros(6))
        forces = np.array(list(answer.forces.values())) / (m * 9.81 * l)
        assert answer.status == "solved" and abs(forces[:, 2].sum() - 1.0) < 1e-2
        assert (np.abs(forces[:, :2]) <= 0.5 * forces[:, 2:] + 1e-6).all()


@pytest.mark.parametrize("near", [0.3, 1e-3, 1e-6, 1e-9])
def test_axes_of_the_world_change_nothing(near):
    """Also where a level shrinks as a whole, along an axis of the world or across all of them: it is damped as much, and little effort suffices."""
    found = []
    for angle in (0.0, 0.3, np.pi / 4, 2.0):
        R = sarrus.Rotation.exp([0.0, angle, 0.0])
        law = control.TaskControl(arm(turn=R), control.FrameTask("tip", R.apply([1.0, 0.0, 1.0])), limits=None)
        answer = law.solve(0.0, [0.0, near, 0.0], np.zeros(3))
        found.append([*efforts(answer), answer.damping])
    assert np.abs(np.array(found) - found[0]).max() < 1e-6 * np.abs(found[0]).max()
    assert (found[0][-1] > 0.0) == (near < 1e-2) and np.abs(found[0]).max() < 1e5


@pytest.mark.parametrize("near", [1e-5, 1e-8])
def test_a_motor_that_loses_its_leverage_is_damped_whichever_joint_closes(near):
    """A piston near its dead centre."""
    found = []
    for closing in ("crank", "pin", "wrist", "rail"):
        robot = piston(closing)
        q = robot.assemble(
            fixed={"crank": near} if closing != "crank" else {},
            near={"pin": -near, "rail": 1.3, "wrist": 0.0, "crank": near},
        )
        answer = control.TaskControl(robot, control.JointTask("crank", 0.1), limits=None).solve(0.0, q, np.zeros(3))
        if closing == "crank":  # its angle follows from the others, known to rounding of a double root
            assert answer.damping > 0.0
            continue
        found.append([*efforts(answer), answer.damping])
    assert np.abs(np.array(found) - found[0]).max() < 1e-4 * np.abs(found[0]).max()
    assert found[0][-1] > 0.0 and np.abs(found[0]).max() < 1e7


def test_a_motor_that_can_move_nothing_gets_nothing():
    """A truss with a motor, and a pendulum with its own: the second does what it is asked for."""
    b = sarrus.Builder("truss and pendulum")
    for name in "abp":
        b.add_body(name, rod(1.0, 1.0))
    b.add_joint("pin1", sarrus.Revolute("y"), "ground", "a", actuated=True)
    b.add_joint("pin2", sarrus.Revolute("y"), "ground", "b", at_parent=(0.7, 0, 0))
    b.add_joint("apex", sarrus.Revolute("y"), "a", "b", at_parent=(1, 0, 0), at_child=(1, 0, 0))
    b.add_joint("motor", sarrus.Revolute("y"), "a", "p", at_parent=(0.3, 0, 0.2), actuated=True)
    robot = b.build()
    q = robot.assemble(near={"pin1": -1.0, "pin2": -2.0, "motor": 0.4})
    tasks = [control.JointTask("motor", 1.0), control.JointTask("pin1", 0.0, priority=1)]
    for limits in (None, control.Limits(effort=50.0)):
        answer = control.TaskControl(robot, tasks, limits).solve(0.0, q, np.zeros(3))
        assert answer.efforts["pin1"] == 0.0 and answer.damping == 0.0
        a = robot.forward_dynamics(q, np.zeros(3), answer.tau)[robot.joint("motor").v_slice]
        assert a == pytest.approx(60.0, rel=1e-9)


def test_limits_of_a_joint_that_closes_count_its_turns():
    found = []
    for closing in ("p2", "p", "m"):
        robot = four_bar(closing, {"p": (3.7, 5.2)})
        q = robot.assemble(fixed={"m": 0.5}, near={"p": 4.4})
        found.append(control.TaskControl(robot, control.JointTask("m", 1.2)).solve(0.0, q, np.zeros(3)).efforts["m"])
    assert np.ptp(found) < 1e-8 * abs(found[0])


@pytest.mark.parametrize("near", [1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 3e-9])
def test_near_singular_loops_it_answers_as_forward_dynamics_or_says_so(near):
    """A flat parallelogram that moves."""
    b = sarrus.Builder("parallelogram")
    for name, length in (("a", 1.0), ("b", 2.0), ("c", 1.0)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    b.add_joint("m", sarrus.Revolute("y"), "ground", "a", actuated=True)
    b.add_joint("p1", sarrus.Revolute("y"), "a", "b", at_parent=(1, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "ground", "c", at_parent=(2, 0, 0))
    b.add_joint("p2", sarrus.Revolute("y"), "b", "c", at_parent=(2, 0, 0), at_child=(1, 0, 0))
    robot = b.build()
    q, v = np.array([near, -near, near]), np.array([2.0, -2.0, 2.0])
    law = control.TaskControl(robot, control.JointTask("m", 1.0), limits=None)
    if near < 5e-8:
        with pytest.raises(sarrus.StateError, match="singular position"):
            law.solve(0.0, q, v)
        return
    answer = law.solve(0.0, q, v)
    # the crank's own motion tells what is right: m_1/3 + m_2 + m_3/3 and the weights, at cos = 1
    wanted = 100.0 * (1.0 - near) - 20.0 * 2.0
    assert answer.efforts["m"] == pytest.approx(wanted * (1.0 / 3 + 1.0 + 1.0 / 3) - 9.81 * 2.0, rel=1e-6)


@pytest.mark.parametrize("near", [0.0, 1e-15, 1e-12, 1e-10, 1e-7, 1e-6, 1e-5])
def test_what_can_be_had_within_limits_is_found_near_a_singular_position(near):
    law = control.TaskControl(arm(), control.FrameTask("tip", [1.0, 0, 1.0]), control.Limits(effort=5.0))
    answer = law.solve(0.0, [0.0, near, 0.0], np.zeros(3))
    assert answer.status == "solved" and np.abs(answer.tau).max() == pytest.approx(5.0, rel=1e-9)


def test_no_limit_is_none():
    """However large efforts are."""
    robot = arm(m=1e32)
    law = control.TaskControl(
        robot, control.JointTask("j0", 1.0), control.Limits(effort=np.inf, velocity=np.inf, position={})
    )
    free = control.TaskControl(robot, control.JointTask("j0", 1.0), limits=None)
    assert np.abs(law(0.0, [0.1, 0.4, 0.3], np.zeros(3)) / free(0.0, [0.1, 0.4, 0.3], np.zeros(3)) - 1.0).max() < SAME
    assert np.abs(law(0.0, [0.1, 0.4, 0.3], np.zeros(3))).max() > 1e32


def test_copies_and_pickles_do_the_same():
    law = control.TaskControl(
        five_bar(1.0, 1.0), control.JointTask("m1", 0.2), effort_weights=[1.0, 2.0], force_arm=0.1
    )
    q = law.robot.assemble(near={"m1": -2.0, "m2": -1.0})
    for other in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law), copy.copy(law)):
        assert np.array_equal(other(0.0, q, np.zeros(4)), law(0.0, q, np.zeros(4)))


def drawn(seed):
    """A planar arm or a five-bar of any size, a tenth of them near where it is stretched; two tasks, and limits of effort that may act."""
    rng = np.random.default_rng([seed, 23])
    l, m, near = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-9, 5), rng.random() < 0.1
    if rng.random() < 0.3:
        robot = five_bar(l, m)
        q = robot.assemble(near={"m1": -2.0, "m2": -1.0})
        q = robot.project_configuration(robot.integrate(q, robot.project_velocity(q, 0.2 * rng.normal(size=robot.nv))))
        v = robot.project_velocity(q, rng.normal(size=robot.nv))
        frame, at = "b", robot.joint("m1").v_slice.start
    else:
        robot = arm(l, m)
        q = rng.uniform(-2, 2, 3)
        if near:
            q[1:] = 10 ** rng.uniform(-12, -6) * rng.normal(size=2)
        v, frame, at = rng.normal(size=3), "tip", 1
    n = int(rng.integers(1, 3))
    parts = sorted(rng.choice([3, 5], n, replace=False).tolist())
    goal = robot.pose(q, frame)[:3, 3] + l * rng.normal(size=3)
    first = control.FrameTask(frame, [goal[c - 3] for c in parts], " ".join(("tx", "ty", "tz")[c - 3] for c in parts))
    second = control.JointTask("m1" if frame == "b" else "j1", 0.3, priority=1)
    limit = 10 ** rng.uniform(-1, 3) * m * l * l
    return robot, q, v, frame, parts, goal, at, [first, second], limit, l


def test_efforts_are_those_of_the_reference_or_damped_or_an_error():
    """Level by level, in units of the limits."""
    damped = failed = 0
    count = 5000 if SOAK else 80
    for seed in range(count):
        robot, q, v, frame, parts, goal, at, tasks, limit, l = drawn(seed)
        law = control.TaskControl(robot, tasks, control.Limits(effort=limit, velocity=np.inf, position={}))
        try:
            answer = law.solve(0.0, q, v)
        except sarrus.StateError:
            failed += 1
            continue
        z = efforts(answer, limit)
        assert answer.status == "solved" and np.abs(z).max() <= 1.0
        if answer.damping > 0.0:
            damped += 1
            continue
        a_0 = robot.forward_dynamics(q, v, np.zeros(robot.nv))
        B = robot.actuation_jacobian(q) * limit
        A = np.stack([robot.forward_dynamics(q, v, tau) - a_0 for tau in B.T], axis=1)
        J = robot.jacobian(q, frame, expressed_in="world_aligned")
        drift = robot.acceleration(q, v, np.zeros(robot.nv), frame, expressed_in="world_aligned")
        error = goal - robot.pose(q, frame)[:3, 3]
        wanted = np.array([100.0 * error[c - 3] - 20.0 * (J @ v)[c] - drift[c] - (J @ a_0)[c] for c in parts])
        turn = np.array([100.0 * (0.3 - q[at]) - 20.0 * v[at] - a_0[at]])
        x, N, G = np.zeros(len(z)), np.eye(len(z)), np.concatenate([np.eye(len(z)), -np.eye(len(z))])
        for rows, b in (((J @ A)[parts] / l, wanted / l), (A[[at]], turn), (np.eye(len(z)), np.zeros(len(z)))):
            x, N = oracle.best(rows, b, x, N, G, np.ones(2 * len(z)))
        assert np.abs(z - x).max() < 1e-6, (seed, z, x)
    assert failed <= 0.02 * count and damped <= 0.2 * count
