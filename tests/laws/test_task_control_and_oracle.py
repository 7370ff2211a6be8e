"""TaskControl, compared with the slow reference without elimination: tasks of all kinds, priorities, limits, contacts."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import sarrus
from oracles import task_control as oracle
from sarrus import control

# the reference's finite differences are right to about 1e-9 of accelerations, which efforts have times an inertia
OFF = 1e-6


def on_loops(make, seed, size=0.1):
    """Return a mechanism, a configuration near its home, and a velocity."""
    robot, rng = make(), np.random.default_rng(seed)
    q = robot.assemble()
    if robot.nc:
        q = robot.project_configuration(robot.integrate(q, robot.project_velocity(q, size * rng.normal(size=robot.nv))))
        return robot, q, robot.project_velocity(q, 3 * size * rng.normal(size=robot.nv)), rng
    return robot, robot.integrate(q, size * rng.normal(size=robot.nv)), 3 * size * rng.normal(size=robot.nv), rng


def moved(X, rng, size=0.05):
    """Return a pose near another one."""
    Y = X.copy()
    Y[:3, :3] = sarrus.Rotation.exp(size * rng.normal(size=3)).matrix @ X[:3, :3]
    Y[:3, 3] += size * rng.normal(size=3)
    return Y


def compare(robot, q, v, tasks, wanted, *, limits=None, bounds=(), contacts=(), feet=(), force_arm=0.01, acts=None):
    """Compare one state of both implementations; `acts`: a limit must be active for a meaningful case."""
    law = control.TaskControl(robot, tasks, limits, contacts, force_arm=force_arm)
    here = law.solve(0.0, q, v)
    known = oracle.solve(
        robot,
        q,
        v,
        wanted,
        limits=bounds,
        contacts=feet,
        last=({"efforts": 1.0, "forces": force_arm}, {"multipliers": 1.0}),
    )
    assert known.conflict == () and here.status == "solved"
    a, u = known.found["acceleration"], known.found["efforts"]
    assert_allclose(here.acceleration, a, atol=OFF * (1 + np.abs(a).max()))
    assert_allclose(np.ravel(list(here.efforts.values())), u, atol=OFF * (1 + np.abs(u).max()))
    f = known.found["forces"]
    if len(f):
        assert_allclose(np.concatenate(list(here.forces.values())), f, atol=OFF * (1 + np.abs(f).max()))
    if acts is not None:
        assert bool(here.active) == acts
    return here, known


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make", [sarrus.mechanisms.delta, sarrus.mechanisms.stewart, sarrus.mechanisms.three_finger_hand]
)
def test_poses(make, seed):
    """Weighted poses of a platform or an object: more rows than degrees of freedom for the Delta, more motors in the hand."""
    robot, q, v, rng = on_loops(make, seed, 0.02)
    frame = "object" if "object" in robot.frames else "platform"
    X, weight = moved(robot.pose(q, frame), rng, 0.01), rng.uniform(0.5, 2.0, 6)
    task = control.FrameTask(frame, X, stiffness=50.0, damping=7.0, weight=weight)
    wanted = oracle.frame_task(robot, q, v, frame, X, stiffness=50.0, damping=7.0, weight=weight)
    compare(robot, q, v, task, [wanted])


@pytest.mark.parametrize("seed", range(3))
def test_along_the_axes_of_the_target(seed):
    robot, q, v, rng = on_loops(lambda: sarrus.mechanisms.six_axis_arm(sphere=0.2), seed)
    X = moved(robot.pose(q, "tip"), rng)
    task = control.FrameTask("tip", X, components="rx ty tz", axes="target")
    axes = np.kron(np.eye(2), X[:3, :3].T)
    wanted = oracle.frame_task(robot, q, v, "tip", X, rows=[0, 4, 5], axes=axes)
    compare(robot, q, v, task, [wanted])


@pytest.mark.parametrize("seed", range(3))
def test_force_and_motion_on_the_ball(seed):
    robot, q, v, rng = on_loops(lambda: sarrus.mechanisms.six_axis_arm(sphere=0.2), seed)
    X = moved(robot.pose(q, "tip"), rng)
    tasks = [control.ForceTask("contact", 7.0), control.FrameTask("tip", X, priority=1)]
    wanted = [oracle.Task({"multipliers": np.eye(1)}, [7.0]), oracle.frame_task(robot, q, v, "tip", X, priority=1)]
    _, known = compare(robot, q, v, tasks, wanted)
    assert_allclose(known.found["multipliers"], 7.0)


@pytest.mark.parametrize("seed", range(3))
def test_relative_poses_centre_of_mass_and_momentum(seed):
    robot, q, _, rng = on_loops(sarrus.mechanisms.three_finger_hand, seed, 0.02)
    v = np.zeros(robot.nv)
    X = np.linalg.solve(robot.pose(q, "distal1"), robot.pose(q, "distal2"))
    place = robot.center_of_mass(q) + 0.01
    tasks = [
        control.RelativeTask("distal2", "distal1", X, components="tx ty tz"),
        control.CenterOfMassTask(list(place), priority=1),
        control.MomentumTask([0.0, 0.0, 0.0], "rx ry rz", gain=5.0, priority=2),
    ]
    wanted = [
        oracle.relative_task(robot, q, v, "distal2", "distal1", X, rows=slice(3, 6)),
        oracle.center_of_mass_task(robot, q, v, place, priority=1),
        oracle.momentum_task(robot, q, v, np.zeros(6), gain=5.0, rows=slice(0, 3), priority=2),
    ]
    compare(robot, q, v, tasks, wanted)


def test_a_component_along_turning_axes_dies_as_told():
    """A carriage keeps its distance along the rotating x-axis of a turntable; the component along y is not controlled."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    for name in ("table", "beam", "carriage"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("turn", sarrus.Revolute("z"), "ground", "table", actuated=True)
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "beam", actuated=True)
    b.add_joint("y", sarrus.Prismatic("y"), "beam", "carriage", actuated=True)
    robot = b.build()
    task = control.RelativeTask("carriage", "table", [0.5, 0.0, 0.0], components="tx", stiffness=100.0)
    law = control.TaskControl(robot, [control.JointTask("turn", sarrus.laws.polynomial(0.0, 1.5)), task])
    run = sarrus.simulate(robot, [0.0, 0.6, 0.8], [1.5, 0.0, 0.0], 2.0, law)
    c, s = np.cos(run.q[:, 0]), np.sin(run.q[:, 0])
    error = 0.5 - (c * run.q[:, 1] + s * run.q[:, 2])
    # critically damped, from -0.1 m and with the rate that the table's turning gives
    rate = -1.5 * 0.8
    assert_allclose(error, (-0.1 + (rate - 1.0) * run.t) * np.exp(-10.0 * run.t), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_impedance(seed):
    robot, q, v, rng = on_loops(sarrus.mechanisms.stewart, seed, 0.05)
    X = moved(robot.pose(q, "platform"), rng)
    inertia, stiffness, damping = (np.diag(rng.uniform(1, 3, 6)) * scale for scale in (2.0, 300.0, 40.0))
    inertia[0, 1] = inertia[1, 0] = 0.5
    push = rng.normal(size=6)
    task = control.ImpedanceTask("platform", X, inertia, stiffness, damping, wrench=push.tolist())
    wanted = oracle.impedance_task(
        robot, q, v, "platform", X, inertia=inertia, stiffness=stiffness, damping=damping, wrench=push
    )
    compare(robot, q, v, task, [wanted])


@pytest.mark.parametrize(
    ("seed", "friction"),
    [(0, 0.6), (1, 0.6), (0, 0.04), (1, 0.04), (1, 0.05)],
)
def test_a_foot_on_the_ground(seed, friction):
    """A patch with its centre of pressure, on a leg with loops; with little friction the pelvis task is not fully achieved."""
    robot, q, v, rng = on_loops(sarrus.mechanisms.humanoid_leg, seed, 0.02)
    X = moved(robot.pose(q, "pelvis"), rng, 0.02)
    task = control.FrameTask("pelvis", X, stiffness=20.0)
    wanted = oracle.frame_task(robot, q, v, "pelvis", X, stiffness=20.0)
    sole = {"size": (0.2, 0.1), "friction": friction, "torsion": 0.02}
    compare(
        robot, q, v, task, [wanted], limits=control.Limits(effort=np.inf, velocity=np.inf, position={}),
        contacts=[control.SurfaceContact("sole", damping=20.0, **sole)],
        feet=[oracle.surface_contact(robot, q, v, "sole", damping=20.0, **sole)],
    )  # fmt: skip


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_priorities_and_limits_of_effort(seed, limited):
    """Position of a platform, then its orientation, then the lengths of its legs."""
    robot, q, v, rng = on_loops(sarrus.mechanisms.stewart, seed, 0.05)
    X = moved(robot.pose(q, "platform"), rng)
    leg = robot.joint("leg1").q_slice
    tasks = [
        control.FrameTask("platform", X, components="tx ty"),
        control.FrameTask("platform", X, components="rx ry rz tz", priority=1),
        control.JointTask("leg1", float(q[leg][0]) + 0.1, priority=2),
    ]
    wanted = [
        oracle.frame_task(robot, q, v, "platform", X, rows=slice(3, 5)),
        oracle.frame_task(robot, q, v, "platform", X, rows=[0, 1, 2, 5], priority=1),
        oracle.joint_task(robot, q, v, "leg1", float(q[leg][0]) + 0.1, priority=2),
    ]
    free = oracle.solve(robot, q, v, wanted).found["efforts"]
    most = 0.8 * np.abs(free).max() if limited else np.inf
    compare(
        robot, q, v, tasks, wanted,
        limits=control.Limits(effort=most), bounds=oracle.effort_limits(np.full(6, -most), np.full(6, most)), acts=limited,
    )  # fmt: skip


FOUR, TWO, THREE = ("LF", "RF", "LH", "RH"), ("LF", "RH"), ("RF", "LH", "RH")


@pytest.mark.parametrize(
    ("feet", "friction"),
    [
        *((FOUR, friction) for friction in (0.7, 0.2, 0.0)),
        (TWO, 0.7),
        (TWO, 0.2),
        (TWO, 0.0),
        (THREE, 0.7),
        (THREE, 0.2),
        (THREE, 0.0),
    ],
)
def test_a_quadruped_on_its_feet(feet, friction):
    """First the trunk, within friction cones; then the posture of all legs, including swinging ones."""
    robot, q, v, rng = on_loops(sarrus.mechanisms.quadruped, 3, 0.03)
    X, home = moved(robot.pose(q, "trunk"), rng, 0.03), robot.assemble()
    tasks = [control.FrameTask("trunk", X, stiffness=30.0), control.PostureTask(home, priority=1)]
    angles = {name: float(home[robot.joint(name).q_slice][0]) for name in robot.joints if name != "float"}
    posture = [oracle.joint_task(robot, q, v, name, angle, priority=1) for name, angle in angles.items()]
    compare(
        robot, q, v, tasks, [oracle.frame_task(robot, q, v, "trunk", X, stiffness=30.0), *posture],
        limits=control.Limits(effort=60.0, velocity=np.inf, position={}),
        bounds=oracle.effort_limits(np.full(12, -60.0), np.full(12, 60.0)),
        contacts=[control.PointContact(f"{foot}_foot", friction) for foot in feet],
        feet=[oracle.point_contact(robot, q, v, f"{foot}_foot", friction=friction, damping=20.0) for foot in feet],
    )  # fmt: skip


@pytest.mark.parametrize("pull", [0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_quadruped_pulled_beyond_its_friction(seed, pull):
    """Limits that the trunk presses against stay active, while the legs and then the least efforts use the freedom that is left."""
    robot, q, v, rng = on_loops(sarrus.mechanisms.quadruped, seed, 0.03)
    X, home = robot.pose(q, "trunk"), robot.assemble()
    X[:3, 3] += pull * rng.uniform(0.5, 1.0, 3)
    tasks = [control.FrameTask("trunk", X, stiffness=30.0), control.PostureTask(home, priority=1)]
    angles = {name: float(home[robot.joint(name).q_slice][0]) for name in robot.joints if name != "float"}
    posture = [oracle.joint_task(robot, q, v, name, angle, priority=1) for name, angle in angles.items()]
    compare(
        robot, q, v, tasks, [oracle.frame_task(robot, q, v, "trunk", X, stiffness=30.0), *posture],
        limits=control.Limits(effort=40.0, velocity=np.inf, position={}),
        bounds=oracle.effort_limits(np.full(12, -40.0), np.full(12, 40.0)),
        contacts=[control.PointContact(f"{foot}_foot", 0.7) for foot in FOUR],
        feet=[oracle.point_contact(robot, q, v, f"{foot}_foot", friction=0.7, damping=20.0) for foot in FOUR],
        acts=True,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [2, 4, 18, 24, 26, 28])
def test_a_joint_at_its_limit_moves_like_one_that_a_task_holds(seed):
    """Velocity limit 0 against a hard task: five priorities, whose active limits change from one priority to the next."""
    robot, rng = sarrus.mechanisms.quadruped(), np.random.default_rng(seed)
    q, v = robot.integrate(robot.assemble(), 0.05 * rng.normal(size=robot.nv)), np.zeros(robot.nv)
    joint, X = list(robot.joints)[int(rng.integers(1, len(robot.joints)))], robot.pose(q, "trunk")
    X[:3, 3] += 0.5 * rng.normal(size=3)
    X[:3, :3] = sarrus.Rotation.exp(0.3 * rng.normal(size=3)).matrix @ X[:3, :3]
    components = rng.permutation(["tx", "ty", "tz rx", "ry rz"])
    tasks = [control.FrameTask("trunk", X, c, stiffness=60.0, priority=1 + k) for k, c in enumerate(components)]
    tasks.append(control.PostureTask(robot.assemble(), priority=6))
    feet = [control.PointContact(f"{foot}_foot", 0.5) for foot in FOUR]
    free = control.TaskControl(robot, tasks, None, feet).solve(0.0, q, v)
    most = 0.6 * float(np.abs(np.ravel(list(free.efforts.values()))).max())
    limits = [control.Limits(effort=most, velocity=velocity, position={}) for velocity in ({joint: 0.0}, np.inf)]
    hold = control.JointTask(joint, float(q[robot.joint(joint).q_slice][0]), hard=True)
    limited = control.TaskControl(robot, tasks, limits[0], feet).solve(0.0, q, v)
    held = control.TaskControl(robot, [hold, *tasks], limits[1], feet).solve(0.0, q, v)
    assert limited.status == held.status == "solved" and held.active
    # both are solved to rounding, about 1e-12 of the efforts, times the condition of five nested levels
    assert_allclose(limited.tau, held.tau, atol=1e-8 * (1 + np.abs(held.tau).max()))


@pytest.mark.parametrize(
    ("feet", "torsion"), [(FOUR[:1], 0.05), (FOUR[:1], 0.002), (TWO, 0.05), (TWO, 0.003), (THREE, 0.02)]
)
def test_feet_that_do_not_spin(feet, torsion):
    """Soft fingers: a moment about the normal, limited by the normal force."""
    robot, q, v, rng = on_loops(sarrus.mechanisms.quadruped, 3, 0.03)
    X, home = moved(robot.pose(q, "trunk"), rng, 0.05), robot.assemble()
    tasks = [control.FrameTask("trunk", X, stiffness=30.0), control.PostureTask(home, priority=1)]
    angles = {name: float(home[robot.joint(name).q_slice][0]) for name in robot.joints if name != "float"}
    posture = [oracle.joint_task(robot, q, v, name, angle, priority=1) for name, angle in angles.items()]
    cone = {"friction": 0.6, "damping": 20.0, "torsion": torsion}
    compare(
        robot, q, v, tasks, [oracle.frame_task(robot, q, v, "trunk", X, stiffness=30.0), *posture],
        limits=control.Limits(effort=60.0, velocity=np.inf, position={}),
        bounds=oracle.effort_limits(np.full(12, -60.0), np.full(12, 60.0)),
        contacts=[control.PointContact(f"{foot}_foot", **cone) for foot in feet],
        feet=[oracle.point_contact(robot, q, v, f"{foot}_foot", **cone) for foot in feet],
    )  # fmt: skip


def drawn(seed):
    """Return a leg on its sole, a platform or a hand, with two frames of two priorities, some components of each, and insufficient efforts."""
    rng = np.random.default_rng(1000 + seed)
    make, first, second, most = (
        (sarrus.mechanisms.humanoid_leg, "pelvis", "shank", (10, 60)),
        (sarrus.mechanisms.stewart, "platform", "piston2", (10, 80)),
        (sarrus.mechanisms.three_finger_hand, "object", "distal2", (0.005, 0.2)),
    )[seed % 3]
    robot, q, v, _ = on_loops(make, seed, 0.05 if first == "platform" else 0.02)
    contacts, feet = [], []
    if first == "pelvis":
        sole = {"size": (0.2, 0.1), "friction": rng.uniform(0.02, 0.3), "torsion": rng.uniform(0.001, 0.03)}
        contacts.append(control.SurfaceContact("sole", damping=20.0, **sole))
        feet.append(oracle.surface_contact(robot, q, v, "sole", damping=20.0, **sole))
    strong, names, tasks, wanted = rng.uniform(*most), np.array(["rx", "ry", "rz", "tx", "ty", "tz"]), [], []
    poses = [moved(robot.pose(q, frame), rng, 0.02) for frame in (first, second)]
    rows = [sorted(rng.choice(6, rng.integers(1, 6), replace=False)) for _ in poses]
    weights = [rng.uniform(0.5, 2.0, len(rows[0])), np.ones(len(rows[1]))]
    for k, (frame, X) in enumerate(zip((first, second), poses, strict=True)):
        gains = {"stiffness": 20.0 + 10.0 * k, "weight": weights[k], "priority": k}
        tasks.append(control.FrameTask(frame, X, components=" ".join(names[rows[k]]), **gains))
        wanted.append(oracle.frame_task(robot, q, v, frame, X, rows=rows[k], **gains))
    bounds = oracle.effort_limits(*np.outer([-strong, strong], np.ones(len(robot.actuated))))
    limits = control.Limits(effort=strong, velocity=np.inf, position={})
    return robot, q, v, tasks, wanted, limits, bounds, contacts, feet


@pytest.mark.parametrize(
    "seed",
    [*range(15), 45, 51],
)
def test_drawn_tasks_within_limits(seed):
    """Each priority has the least possible error, and among these solutions efforts are least, unless singular."""
    robot, q, v, tasks, wanted, limits, bounds, contacts, feet = drawn(seed)
    here = control.TaskControl(robot, tasks, limits, contacts, force_arm=0.01).solve(0.0, q, v)
    last = ({"efforts": 1.0, "forces": 0.01}, {"multipliers": 1.0})
    known = oracle.solve(robot, q, v, wanted, limits=bounds, contacts=feet, last=last)
    assert known.conflict == () and here.status == "solved"
    for missed, left in zip(here.missed, known.left.values(), strict=True):
        assert np.sum(missed**2) <= left * (1 + 1e-3) + 1e-12  # damping, where there is any, costs as much
    if here.damping == 0.0:
        assert_allclose(np.ravel(list(here.efforts.values())), known.found["efforts"], atol=1e-5 * limits.effort)


# ---- limits --------------------------------------------------------------------------------------------------------


def moving(name, seed):
    """Return a random state of an arm, or of loops and a floating base near home; at rest, slow or fast."""
    robot, q, _, rng = on_loops(getattr(sarrus.mechanisms, name), seed, 0.2)
    if name == "six_axis_arm":
        q = robot.random(rng)
    v = rng.normal(size=robot.nv) * rng.choice([0.0, 0.1, 1.0, 3.0])
    return robot, q, robot.project_velocity(q, v) if robot.nc else v, rng


def what_must_give_way(robot, q, v, wanted, effort, speed, feet):
    """Return the parts of limits that a hard task and contacts allow, by linear programmes: the start of a status, and the task's rows J a = goal."""
    S, a_0 = robot.actuation_matrix(q), robot.forward_dynamics(q, v, np.zeros(robot.nv))
    along = np.concatenate([S.T, *(foot.jacobian for foot in feet)])
    n, motors = len(along), S.shape[1]
    size = np.where(
        np.arange(n) < motors, effort, 10.0 + 3.0 * effort
    )  # of unknowns y: efforts between -1 and 1, forces free
    A = np.stack([robot.forward_dynamics(q, v, one) - a_0 for one in along], axis=-1)
    cones, first = np.zeros((0, n)), motors
    for foot in feet:
        cone = np.zeros((len(foot.cone), n))
        cone[:, first : first + len(foot.jacobian)] = foot.cone
        cones, first = np.concatenate([cones, cone * size]), first + len(foot.jacobian)
    J = np.concatenate([*(foot.jacobian for foot in feet), wanted.rows["acceleration"]])
    goal = np.concatenate([*(foot.acceleration for foot in feet), wanted.goal]) - J @ a_0
    length = np.linalg.norm(J @ A, axis=1)
    equations, goal = J @ A * size / length[:, None], goal / length
    box, m = [(-1.0, 1.0)] * motors + [(None, None)] * (n - motors), len(goal)
    missed = linprog(
        np.r_[np.zeros(n), np.ones(2 * m)], A_ub=np.pad(cones, ((0, 0), (0, 2 * m))), b_ub=np.zeros(len(cones)),
        A_eq=np.concatenate([equations, np.eye(m), -np.eye(m)], axis=1), b_eq=goal, bounds=box + [(0.0, None)] * (2 * m),
    ).fun  # fmt: skip
    if missed > 1e-7 * (1.0 + np.abs(goal).max()):
        return "hard tasks violated"
    if not np.isfinite(speed):
        return "solved"
    room = np.concatenate([(speed - v) / 0.01 - a_0, (speed + v) / 0.01 + a_0])  # 0.01 s: the horizon of Limits
    rows = np.concatenate(
        [np.pad(cones, ((0, 0), (0, 1))), np.c_[A * size, -np.ones(len(v))], np.c_[-A * size, -np.ones(len(v))]]
    )
    beyond = linprog(
        np.eye(n + 1)[n], A_ub=rows, b_ub=np.r_[np.zeros(len(cones)), room], A_eq=np.pad(equations, ((0, 0), (0, 1))), b_eq=goal,
        bounds=[*box, (0.0, None)],
    ).fun  # fmt: skip
    return "limits of motion violated" if beyond > 1e-7 * (1.0 + np.abs(room).max()) else "solved"


@pytest.mark.parametrize("name", ["six_axis_arm", "quadruped", "delta", "stewart", "humanoid_leg"])
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_what_gives_way_is_what_has_to(name, first):
    """A hard task within limits of efforts, velocities and friction: it is achieved, or motion limits are relaxed, or it is missed.

    Efforts are from a millionth of a newton to plenty; up to three lower priorities have no effect on the hard task.
    """
    for seed in range(first, first + 10):
        robot, q, v, rng = moving(name, seed)
        frame = "pelvis" if name == "humanoid_leg" else robot.frames[-1]
        parts = ["tx", "ty", "tz"] if name == "delta" else ["rx", "ry", "rz", "tx", "ty", "tz"]
        rows = sorted(rng.choice(len(parts), rng.integers(1, len(parts) + 1), replace=False).tolist())
        X, stiffness = robot.pose(q, frame).copy(), 10 ** rng.uniform(1, 5)
        X[:3, 3] += 0.2 * rng.normal(size=3)
        tasks = [control.FrameTask(frame, X, " ".join(parts[r] for r in rows), hard=True, stiffness=stiffness)]
        tasks += [
            control.JointTask(str(rng.choice(robot.actuated)), 0.3, priority=k) for k in range(rng.integers(0, 4))
        ]
        effort, speed = 10 ** rng.uniform(-6, 3), float(rng.choice([np.inf, 1.0, 0.1]))
        sole = {"size": (0.2, 0.1), "friction": 0.4, "torsion": 0.02, "damping": 20.0}
        stands = name == "humanoid_leg"
        contacts = [control.SurfaceContact("sole", **sole)] if stands else []
        feet = [oracle.surface_contact(robot, q, v, "sole", **sole)] if stands else []
        limits = control.Limits(effort=effort, velocity=dict.fromkeys(robot.joints, speed), position={})
        answer = control.TaskControl(robot, tasks, limits, contacts).solve(0.0, q, v)
        wanted = oracle.frame_task(
            robot, q, v, frame, X, stiffness=stiffness, rows=[r + 3 for r in rows] if name == "delta" else rows
        )
        expected = what_must_give_way(robot, q, v, wanted, effort, speed, feet)
        assert answer.status.startswith(expected), (seed, answer)
        assert max(np.abs(u).max() for u in answer.efforts.values()) <= effort
        if expected != "hard tasks violated":  # with the efforts as they are
            off = wanted.rows["acceleration"] @ answer.acceleration - wanted.goal
            assert np.abs(off).max() < OFF * (1.0 + np.abs(wanted.goal).max())


def motion_bounds(at, rate, lower, upper, speed, braking, horizon):
    """Return the largest acceleration up and down: to the largest speed within the horizon, or to the speed that can still stop in time."""

    def up(room, rate):
        stop = np.max(np.roots([0.5 / braking, horizon, -max(room, 0.0)]))  # u horizon + u^2 / (2 braking) = room
        most = min(speed, stop) if room > 0.0 else max(-speed, room / horizon)
        slows = np.clip(rate, 0.0, stop) / (horizon + stop / braking) if stop < speed else 0.0  # the rate of that u
        return (most - rate) / horizon - slows

    return -up(at - lower, -rate), up(upper - at, rate)


@pytest.mark.parametrize("what", ["power", "velocity", "position"])
@pytest.mark.parametrize("name", ["six_axis_arm", "delta", "three_finger_hand", "stewart"])
def test_limits_of_power_and_motion(name, what):
    """Trees and loops, motors and passive joints, compared with the slow reference, with the same limits in efforts or accelerations."""
    acted = 0
    for seed in range(4):
        robot, q, v, rng = on_loops(getattr(sarrus.mechanisms, name), seed, 0.1)
        if name == "six_axis_arm":  # which is singular at home
            q = robot.integrate([0.3, 0.8, -1.6, 0.2, 1.2, 0.1], 0.1 * rng.normal(size=6))
        frame = robot.frames[-1]
        X = moved(robot.pose(q, frame), rng)
        task = control.FrameTask(frame, X, components="tx ty tz", stiffness=400.0)
        wanted = [oracle.frame_task(robot, q, v, frame, X, stiffness=400.0, rows=slice(3, 6))]
        motors = [robot.joint(n).v_slice for n in robot.actuated]
        free = oracle.solve(robot, q, v, wanted).found
        rates = np.concatenate([v[s] for s in motors])
        most = np.full(len(rates), 0.9 * np.abs(free["efforts"]).max())
        given = {"velocity": np.inf, "position": {}}
        bounds, a = (), free["acceleration"]
        if what == "power":
            power = 0.7 * np.abs(free["efforts"] * rates).max()
            given |= {"power": power, "effort": most[0]}
            most = np.minimum(most, power / np.abs(rates))
            bounds = oracle.effort_limits(-most, most)
        else:
            # of the joints of one velocity those that the task moves most
            joints = [n for n in robot.joints if robot.joint(n).nv == 1]
            joints = sorted(joints, key=lambda n: -abs(float(a[robot.joint(n).v_slice][0])))[:2]
            places = [robot.joint(n).v_slice.start for n in joints]
            given["effort"] = np.inf
            if what == "velocity":
                given |= {"velocity": dict.fromkeys(joints, 0.3), "horizon": 0.05}
                ends = [(-1e9, 1e9)] * len(joints)
            else:
                at = [float(q[robot.joint(n).q_slice][0]) for n in joints]
                ends = [(x - 0.02, x + 0.02) for x in at]
                given |= {"position": dict(zip(joints, ends, strict=True)), "horizon": 0.05, "braking": 5.0}
            speed, braking = (0.3, 10.0) if what == "velocity" else (np.inf, 5.0)
            sides = np.array([
                motion_bounds(float(q[robot.joint(n).q_slice][0]), v[k], *end, speed, braking, 0.05)
                for n, k, end in zip(joints, places, ends, strict=True)
            ])  # fmt: skip
            bounds = oracle.acceleration_limits(np.eye(robot.nv)[places], *sides.T)
        here, _ = compare(robot, q, v, [task], wanted, limits=control.Limits(**given), bounds=bounds)
        acted += bool(here.active)
    assert acted


@pytest.mark.parametrize("speed", [0.25, 0.3, 0.35])
def test_a_limit_far_from_the_motion_without_limits(speed):
    """A weak motor leaves the motion to a slider that is almost perpendicular to it, whose largest velocity without limits would be far."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    parent = "ground"
    for name, axis in (("x", (1, 0, 0)), ("y", (0.1, 1, 0)), ("z", (0.09, 0, 1))):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(f"along {name}", sarrus.Prismatic(axis), parent, name, actuated=True)
        parent = name
    robot = b.build()
    q, v, X = robot.neutral(), np.zeros(3), np.eye(4)
    X[0, 3] = 1.0
    task = control.FrameTask("z", X, components="tx", stiffness=1.0)
    wanted = [oracle.frame_task(robot, q, v, "z", X, stiffness=1.0, rows=slice(3, 4))]
    free = oracle.solve(robot, q, v, wanted).found
    weak, horizon = np.array([0.5, 100.0, 100.0]) * [abs(free["efforts"][0]), 1.0, 1.0], 0.05
    largest = speed / horizon
    assert largest - free["acceleration"][2] > 4.0 * np.abs(free["acceleration"]).max()
    bounds = (
        *oracle.effort_limits(-weak, weak),
        *oracle.acceleration_limits(np.eye(3)[[2]], [-largest], [largest]),
    )
    limits = control.Limits(
        effort=dict(zip(robot.actuated, weak.tolist(), strict=True)),
        velocity={"along z": speed},
        position={},
        horizon=horizon,
    )
    here, _ = compare(robot, q, v, [task], wanted, limits=limits, bounds=bounds)
    assert "motion of 'along z'" in here.active


def sweeping(name, limits=None):
    """Return the run and the controller of a robot whose tool moves back and forth, with or without limits."""
    robot = getattr(sarrus.mechanisms, name)()
    q = np.array([0.3, 0.8, -1.6, 0.2, 1.2, 0.1]) if name == "six_axis_arm" else robot.assemble()
    frame, size = robot.frames[-1], 0.03 if name == "five_bar" else 0.1
    goal = [sarrus.laws.harmonic(size, 6.0, offset=x) for x in robot.pose(q, frame)[:3, 3]]
    goal, components = (goal[::2], "tx tz") if name == "five_bar" else (goal, "tx ty tz")
    tasks = [control.FrameTask(frame, goal, components, stiffness=400.0), control.PostureTask(q, priority=1)]
    law = control.TaskControl(robot, tasks, limits)
    return robot, sarrus.simulate(robot, q, np.zeros(robot.nv), 1.0, law, limits="ignore"), law


SWEEPING = ["six_axis_arm", "delta", "five_bar", "stewart"]


@pytest.mark.parametrize("name", SWEEPING)
def test_effort_and_power_are_kept_exactly_along_a_motion(name):
    """Limits are satisfied exactly, in every state, and are active in some."""
    robot, run, law = sweeping(name)

    def motors(run, law):
        for t, q, v in zip(run.t[::5], run.q[::5], run.v[::5], strict=True):
            answer = law.solve(t, q, v)
            yield answer.active, [(u, float(v[robot.joint(n).v_slice][0])) for n, u in answer.efforts.items()]

    free = [pair for _, pairs in motors(run, law) for pair in pairs]
    effort, power = 0.9 * max(abs(u) for u, _ in free), 0.5 * max(abs(u * v) for u, v in free)
    _, run, law = sweeping(name, control.Limits(effort=effort, velocity=np.inf, position={}, power=power))
    acted = 0
    for active, pairs in motors(run, law):
        acted += any(a.startswith("effort") for a in active)
        for u, v in pairs:
            assert abs(Fraction(u)) <= Fraction(effort) and abs(Fraction(u) * Fraction(v)) <= Fraction(power)
    assert acted


@pytest.mark.parametrize("name", SWEEPING)
def test_velocity_and_position_are_kept_along_a_motion(name):
    """Limits of motors and passive joints are satisfied up to the error of a step, and are active."""
    robot, run, _ = sweeping(name)
    where = {n: robot.joint(n) for n in robot.joints if robot.joint(n).nv == 1}
    speed = 0.6 * max(np.abs(run.v[:, joint.v_slice]).max() for joint in where.values())
    name_of_widest, joint = max(where.items(), key=lambda item: np.ptp(run.q[:, item[1].q_slice]))
    way = run.q[:, joint.q_slice][:, 0]
    end = way[0] + 0.3 * (way.max() - way[0])
    limits = control.Limits(
        effort=np.inf, velocity=dict.fromkeys(where, speed), position={name_of_widest: (-1e3, end)}, braking=20.0
    )
    _, run, _ = sweeping(name, limits)
    fastest = max(np.abs(run.v[:, joint.v_slice]).max() for joint in where.values())
    highest = run.q[:, joint.q_slice].max()
    assert 0.99 * speed < fastest < speed * (1.0 + 1e-3)
    assert end - 1e-3 < highest < end + 1e-4
