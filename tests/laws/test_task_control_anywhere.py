"""Control by tasks: size, mass, axes of the world and the spanning tree have no effect, near singular positions too.

A result agrees with the slow reference, or reports damping, or is an error.
"""

import contextlib
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
    """Return three rods in series in a plane; the world with its gravity may be rotated about the plane's normal."""
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
    b.add_frame("end", "b", (l, 0, 0))
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
        v = robot.complete_velocity(q, {"m1": 0.5, "m2": -0.3})
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
    """Equal damping and small efforts, also if a whole level is scaled down, along one axis of the world or all."""
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
    """A truss with a motor, and a pendulum with another one, which follows its task."""
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
        with pytest.raises(sarrus.IntegrationError, match="singular position"):
            sarrus.simulate(robot, q, v, 0.01, dt=1e-3, controller=law)
        return
    answer = law.solve(0.0, q, v)
    # the crank's own motion tells what is right: m_1/3 + m_2 + m_3/3 and the weights, at cos = 1
    wanted = 100.0 * (1.0 - near) - 20.0 * 2.0
    assert answer.efforts["m"] == pytest.approx(wanted * (1.0 / 3 + 1.0 + 1.0 / 3) - 9.81 * 2.0, rel=1e-6)


def test_rows_that_are_singular_together_are_damped():
    """Each of them has a direction of its own, by the angle between two short ones."""
    robot = arm()
    for near in 10.0 ** np.arange(-16, -8):
        q = np.array([-2.6e-3, -near, 1.5 * near])
        law = control.TaskControl(robot, control.FrameTask("tip", [3.01, 0.0, 0.1]), limits=None)
        assert np.abs(efforts(law.solve(0.0, q, np.zeros(3)))).max() < 1e6


@pytest.mark.parametrize("near", [0.0, 1e-15, 1e-12, 1e-10, 1e-7, 1e-6, 1e-5])
def test_what_can_be_had_within_limits_is_found_near_a_singular_position(near):
    law = control.TaskControl(arm(), control.FrameTask("tip", [1.0, 0, 1.0]), control.Limits(effort=5.0))
    answer = law.solve(0.0, [0.0, near, 0.0], np.zeros(3))
    assert answer.status == "solved" and np.abs(answer.tau).max() == pytest.approx(5.0, rel=1e-9)


def test_no_limit_is_none():
    """An infinite limit has no effect for any efforts."""
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


def delta(l, m):
    return sarrus.mechanisms.delta(True, 0.2 * l, 0.3 * l, 0.6 * l, 0.06 * l, 0.5 * m)


def tripod(l, m):
    """A body that floats, on three legs of two motors each."""
    b = sarrus.Builder("tripod", gravity=(0, 0, -9.81 * l))
    b.add_body("trunk", sarrus.Inertia.box(3.0 * m, (0.5 * l, 0.4 * l, 0.1 * l)))
    b.add_joint("float", sarrus.Free(), "ground", "trunk")
    for k, (x, y) in enumerate([(0.3, 0.0), (-0.3, 0.2), (-0.3, -0.2)]):
        for body, parent, axis, at in (
            ("upper", "trunk", "y", (x * l, y * l, 0)),
            ("lower", f"upper{k}", "x", (0, 0, -0.3 * l)),
        ):
            b.add_body(f"{body}{k}", sarrus.Inertia.rod(0.5 * m, (0, 0, 0), (0, 0, -0.3 * l), 0.02 * l))
            b.add_joint(f"{body}{k}", sarrus.Revolute(axis), parent, f"{body}{k}", at_parent=at, actuated=True)
        b.add_frame(f"foot{k}", f"lower{k}", (0, 0, -0.3 * l))
    return b.build()


def drawn(seed):
    """A robot of any size: an arm, loops or feet; a tenth of them near where they are stretched. Two tasks, and limits of effort that may act."""
    rng = np.random.default_rng([seed, 23])
    l, m, near = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-9, 5), rng.random() < 0.1
    kind = rng.choice(["arm", "five-bar", "four-bar", "delta", "tripod"], p=[0.4, 0.25, 0.1, 0.1, 0.15])
    tiny = 10 ** rng.uniform(-12, -6) * rng.normal(size=2)
    feet, parts = [], [3, 5]
    if kind == "arm":
        robot, frame, motor = arm(l, m), "tip", "j1"
        q = np.append(rng.uniform(-2, 2), tiny) if near else rng.uniform(-2, 2, 3)
    elif kind == "five-bar":
        robot, frame, motor = five_bar(l, m), "end", "m1"
        q = robot.assemble(fixed={"e1": tiny[0]} if near else {}, near={"m1": -2.0, "m2": -1.0})
    elif kind == "four-bar":
        robot, frame, motor, parts = four_bar(str(rng.choice(["p1", "p", "p2"])), None, l, m), "b", "m", [3]
        q = robot.assemble(fixed={"m": rng.uniform(0.3, 2.8)}, near={"p": 1.0})
    elif kind == "delta":
        robot, frame, motor, parts = delta(l, m), "platform", "motor1", [3, 4, 5]
        q = robot.assemble()
    else:
        robot, frame, motor, parts = tripod(l, m), "trunk", "upper0", [3, 4, 5]
        q = robot.neutral()
        q[-6:] = rng.uniform(-0.5, 0.5, 6)
        feet = [control.PointContact(f"foot{k}", float(rng.choice([0.3, 0.7]))) for k in range(3)]

    def velocity(size):
        moves = {name: size * rng.normal() for name in robot.actuated}
        return robot.complete_velocity(q, moves)

    if kind in ("five-bar", "delta") and not near:
        with contextlib.suppress(sarrus.StateError):  # out of reach: where it is, then
            q = robot.project_configuration(robot.integrate(q, velocity(0.2)))
    v = np.zeros(robot.nv) if kind == "tripod" else velocity(1.0)
    parts = sorted(rng.choice(parts, int(rng.integers(1, len(parts) + 1)), replace=False).tolist())
    goal = robot.pose(q, frame)[:3, 3] + l * rng.normal(size=3) * (0.1 if kind == "tripod" else 1.0)
    first = control.FrameTask(frame, [goal[c - 3] for c in parts], " ".join(("tx", "ty", "tz")[c - 3] for c in parts))
    tasks = [first, control.JointTask(motor, 0.3, priority=1)]
    limit = 10 ** rng.uniform(-1, 3) * m * l * (9.81 if kind == "delta" else l)
    return robot, q, v, frame, parts, goal, motor, tasks, feet, limit, l, m


def equations(robot, q, v, frame, parts, goal, motor, feet, limit, l, m):
    """Levels as rows and what they must be, for efforts in units of the limit and forces in units of weights; and limits as rows that stay below."""
    held = [robot.jacobian(q, foot.frame, expressed_in="world_aligned")[3:] for foot in feet]
    B = np.concatenate([robot.actuation_matrix(q) * limit, *(9.81 * m * l * J.T for J in held)], axis=1)
    rest = np.zeros(robot.nv)
    a_0 = robot.forward_dynamics(q, v, rest)
    A = np.stack([robot.forward_dynamics(q, v, force) - a_0 for force in B.T], axis=1)
    n, motors = B.shape[1], B.shape[1] - 3 * len(feet)

    def point(name):
        J = robot.jacobian(q, name, expressed_in="world_aligned")[3:]
        return J, robot.acceleration(q, v, rest, name, expressed_in="world_aligned")[3:] + J @ a_0

    stay = [(J @ A / l, (-20.0 * J @ v - drift) / l) for J, drift in map(point, (foot.frame for foot in feet))]
    J, drift = point(frame)
    wanted = 100.0 * (goal - robot.pose(q, frame)[:3, 3]) - 20.0 * J @ v - drift
    some = [c - 3 for c in parts]
    at, q_at = robot.joint(motor).v_slice.start, robot.joint(motor).q_slice.start
    turn = np.array([100.0 * (0.3 - q[q_at]) - 20.0 * v[at] - a_0[at]])
    G, g = [np.eye(n)[:motors], -np.eye(n)[:motors]], np.ones(2 * motors)
    for k, foot in enumerate(feet):
        x, y, z = np.eye(n)[motors + 3 * k : motors + 3 * k + 3]
        G.append(np.stack([side - foot.friction / np.sqrt(2.0) * z for side in (x, -x, y, -y)]))
    G = np.concatenate(G)
    levels = [((J @ A)[some] / l, wanted[some] / l), (A[[at]], turn)]
    return stay, levels, G, np.append(g, np.zeros(len(G) - len(g))), motors


def compared(count, expected, same):
    """Return the numbers of `count` robots with the `same` result as expected, damped ones, conflicts and failures."""
    told = dict.fromkeys(("compared", "damped", "conflicts", "errors"), 0)
    for seed in range(count):
        robot, q, v, frame, parts, goal, motor, tasks, feet, limit, l, m = drawn(seed)
        law = control.TaskControl(
            robot, tasks, control.Limits(effort=limit, velocity=np.inf, position={}), feet, force_arm=0.1 * l
        )
        try:
            answer = law.solve(0.0, q, v)
        except sarrus.StateError:
            told["errors"] += 1
            continue
        stay, levels, G, g, motors = equations(robot, q, v, frame, parts, goal, motor, feet, limit, l, m)
        # least effort: in units of the motors' limits, and forces with the arm that they are weighed by
        arms = np.append(np.full(motors, limit), np.full(3 * len(feet), 0.1 * l * 9.81 * m * l)) / limit
        z = np.append(efforts(answer, limit), np.ravel(list(answer.forces.values())) / (9.81 * m * l))
        assert np.abs(z[:motors]).max() <= 1.0
        if answer.damping > 0.0:
            told["damped"] += 1
            continue
        x = expected(stay, [*levels, (np.diag(arms), np.zeros(len(z)))], G, g)
        assert (answer.status == "solved") == (x is not None), (seed, answer.status, x)
        if x is None:
            told["conflicts"] += 1
            continue
        told["compared"] += 1
        assert np.abs(z - x).max() < same * max(1.0, np.abs(x).max()), (seed, z, x)
    assert told["errors"] <= 0.02 * count and told["damped"] <= 0.2 * count and told["compared"] >= 0.6 * count, told
    return told


def test_efforts_are_those_of_the_reference_or_damped_or_an_error():
    """Level by level, in units of the limits."""

    def reference(stay, levels, G, g):
        x, N = np.zeros(G.shape[1]), np.eye(G.shape[1])
        if stay:
            x, N = oracle.met(*map(np.concatenate, zip(*stay, strict=True)))
        start, beyond = oracle.feasible(oracle.within(G, N), g - G @ x)
        if beyond.any():
            return None
        x = x + N @ start
        for rows, b in levels:
            x, N = oracle.best(rows, b, x, N, G, g)
        return x

    print(compared(5000 if SOAK else 80, reference, 1e-6))


def test_efforts_are_those_of_an_interior_point_method():
    """Its levels are equations of the next ones; equal to its digits."""
    cvxopt = pytest.importorskip("cvxopt")
    cvxopt.solvers.options.update(show_progress=False, abstol=1e-13, reltol=1e-12, feastol=1e-12, maxiters=60)

    def least(A, b, x, N, G, g):
        """Return the best x + N y: rows of limits scaled to their length, by the size of the level's goal."""
        B, H = oracle.within(A, N), oracle.within(G, N)
        some = np.linalg.norm(H, axis=1) > 0.0
        k = np.maximum(g - G @ x, 0.0)[some]
        target = b - A @ x
        unit = max(np.abs(target).max(), 1e-9)
        P, f = B.T @ B / unit**2 + 1e-14 * np.eye(N.shape[1]), -B.T @ target / unit**2
        found = cvxopt.solvers.qp(*map(cvxopt.matrix, (P, f, H[some], k)))
        return x + N @ np.ravel(found["x"]), N @ oracle.null_space(B)

    def expected(stay, levels, G, g):
        x, N = np.zeros(G.shape[1]), np.eye(G.shape[1])
        if stay:
            x, N = oracle.met(*map(np.concatenate, zip(*stay, strict=True)))
        # one more unknown: by how much all limits are missed
        H = np.concatenate([np.concatenate([G @ N, -np.ones((len(G), 1))], axis=1), -np.eye(N.shape[1] + 1)[-1:]])
        found = cvxopt.solvers.lp(*map(cvxopt.matrix, (np.eye(N.shape[1] + 1)[-1], H, np.append(g - G @ x, 0.0))))
        y = np.ravel(found["x"])
        if y[-1] > 1e-7:
            return None
        x = x + N @ y[:-1]
        for rows, b in levels:
            if N.shape[1]:
                x, N = least(rows, b, x, N, G, g)
        return x

    print(compared(500 if SOAK else 30, expected, 1e-4))
