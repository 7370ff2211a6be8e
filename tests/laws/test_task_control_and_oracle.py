"""TaskControl against the slow reference, in which nothing is eliminated: tasks of all kinds, priorities, limits, contacts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from oracles import task_control as oracle
from sarrus import control

# the reference's finite differences are right to about 1e-9 of accelerations, which efforts have times an inertia
OFF = 1e-6
TURNING = pytest.mark.xfail(
    strict=True, reason="components along turning axes are those of an acceleration that is not their own"
)
HELD = pytest.mark.xfail(strict=True, reason="limits that a priority does not need hold the ones below back")


def on_loops(make, seed, size=0.1):
    """A mechanism, a configuration near its home, and a velocity."""
    robot, rng = make(), np.random.default_rng(seed)
    q = robot.assemble()
    if robot.nc:
        q = robot.project_configuration(robot.integrate(q, robot.project_velocity(q, size * rng.normal(size=robot.nv))))
        return robot, q, robot.project_velocity(q, 3 * size * rng.normal(size=robot.nv)), rng
    return robot, robot.integrate(q, size * rng.normal(size=robot.nv)), 3 * size * rng.normal(size=robot.nv), rng


def moved(X, rng, size=0.05):
    """A pose near another one."""
    Y = X.copy()
    Y[:3, :3] = sarrus.Rotation.exp(size * rng.normal(size=3)).matrix @ X[:3, :3]
    Y[:3, 3] += size * rng.normal(size=3)
    return Y


def compare(robot, q, v, tasks, wanted, *, limits=None, bounds=(), contacts=(), feet=(), force_arm=0.01, acts=None):
    """One state, both ways; `acts`: whether a limit must be active for the case to say something."""
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
    """Of a platform or an object, with a weight each: more rows than freedoms on the Delta, more motors in the hand."""
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


@TURNING
def test_a_component_along_turning_axes_dies_as_told():
    """A carriage keeps its distance along x of a turntable; what is along y is nobody's."""
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
    """A patch with its centre of pressure, on a leg with loops; with little friction the pelvis gets less than it wants."""
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
    """Position of a platform, then its orientation, then its legs' lengths."""
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
        pytest.param(TWO, 0.2, marks=HELD),
        (TWO, 0.0),
        (THREE, 0.7),
        pytest.param(THREE, 0.2, marks=HELD),
        (THREE, 0.0),
    ],
)
def test_a_quadruped_on_its_feet(feet, friction):
    """The trunk comes first, within cones; then the posture of all legs, those that swing too."""
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


def drawn(seed):
    """A leg on its sole, a platform or a hand; two frames of two priorities, some components of each; efforts that do not suffice."""
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
    [*range(6), pytest.param(6, marks=HELD), *range(7, 15), 45, pytest.param(51, marks=HELD)],
)
def test_drawn_tasks_within_limits(seed):
    """Each priority is missed by no more than need be, and of what is left the efforts are least, where nothing is near to singular."""
    robot, q, v, tasks, wanted, limits, bounds, contacts, feet = drawn(seed)
    here = control.TaskControl(robot, tasks, limits, contacts).solve(0.0, q, v)
    last = ({"efforts": 1.0, "forces": 0.01}, {"multipliers": 1.0})
    known = oracle.solve(robot, q, v, wanted, limits=bounds, contacts=feet, last=last)
    assert known.conflict == () and here.status == "solved"
    for missed, left in zip(here.missed, known.left.values(), strict=True):
        assert np.sum(missed**2) <= left * (1 + 1e-3) + 1e-12  # damping, where there is any, costs as much
    if here.damping == 0.0:
        assert_allclose(np.ravel(list(here.efforts.values())), known.found["efforts"], atol=1e-5 * limits.effort)
