"""Contacts that share a body constrain one motion of it together, for any velocity, order and size."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from oracles import task_control as oracle
from sarrus import control

OFF = 1e-6  # the reference's finite differences
SAME = 1e-9  # two ways of the same, of the largest number
FREE = control.Limits(effort=np.inf, velocity=np.inf, position={})
CORNERS = {"a": (0.15, 0.05), "b": (-0.05, 0.05), "c": (-0.05, -0.05), "d": (0.15, -0.05)}
LINE, TRIANGLE, RECTANGLE = ("a", "c"), ("a", "b", "d"), ("a", "b", "c", "d")


def leg():
    """Return the humanoid leg with frames at the corners of its sole, and one in their centre."""
    b = sarrus.mechanisms.humanoid_leg().to_builder()
    for name, (x, y) in {**CORNERS, "middle": (0.05, 0.0)}.items():
        b.add_frame(name, "foot", (x, y, -0.08))
    return b.build()


def turning(robot, speed, seed=0):
    """Return a state in which the foot rotates about all axes."""
    rng = np.random.default_rng(seed)
    q = robot.assemble()
    if robot.nc:
        q = robot.project_configuration(robot.integrate(q, robot.project_velocity(q, 0.05 * rng.normal(size=robot.nv))))
    v = rng.normal(size=robot.nv)
    v = robot.project_velocity(q, v) if robot.nc else v
    w = robot.velocity(q, v, "foot")[:3]
    return q, v * speed / np.linalg.norm(w)


def held(robot, q):
    """Return the task that keeps the pelvis at its pose, and the pose."""
    X = robot.pose(q, "pelvis")
    return control.FrameTask("pelvis", X, stiffness=20.0), X


def net(robot, q, forces, place):
    """Return [moment; force] about a point of forces at frames along world axes."""
    axes = oracle.world_axes([0, 0, 1])
    total = np.zeros(6)
    for frame, f in forces.items():
        push = axes.T @ f
        total += np.r_[np.cross(robot.pose(q, frame)[:3, 3] - place, push), push]
    return total


SPEEDS = (0.0, 1e-6, 0.01, 0.1, 1.0, 10.0)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("points", [LINE, TRIANGLE, RECTANGLE])
def test_points_of_a_foot_as_the_reference(points, speed):
    """Accelerations, efforts and the forces of least norm."""
    robot = leg()
    q, v = turning(robot, speed)
    task, X = held(robot, q)
    law = control.TaskControl(
        robot, task, None, [control.PointContact(p, damping=7.0) for p in points], force_arm=0.01
    )  # fmt: skip
    here = law.solve(0.0, q, v)
    known = oracle.solve(
        robot, q, v, [oracle.frame_task(robot, q, v, "pelvis", X, stiffness=20.0)],
        contacts=[c._replace(cone=np.zeros((0, 3))) for c in oracle.points_of_one_body(robot, q, v, points, friction=0.7, damping=7.0)],
        last=({"efforts": 1.0, "forces": 0.01}, {"multipliers": 1.0}),
    ).found  # fmt: skip
    for mine, theirs in (
        (here.acceleration, known["acceleration"]),
        (np.array(list(here.efforts.values())), known["efforts"]),
        (np.concatenate(list(here.forces.values())), known["forces"]),
    ):
        assert_allclose(mine, theirs, atol=OFF * (1.0 + np.abs(theirs).max()))


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("points", [TRIANGLE, RECTANGLE])
def test_points_say_what_a_surface_at_their_middle_says(points, speed):
    """Six rows: the same accelerations, efforts and wrench."""
    b = leg().to_builder()
    middle = np.mean([CORNERS[p] for p in points], axis=0)
    b.add_frame("here", "foot", (*middle, -0.08))
    robot = b.build()
    q, v = turning(robot, speed)
    task, _ = held(robot, q)
    on_points = control.TaskControl(robot, task, None, [control.PointContact(p) for p in points]).solve(0.0, q, v)
    on_sole = control.TaskControl(robot, task, None, control.SurfaceContact("here", (0.2, 0.1))).solve(0.0, q, v)
    assert_allclose(
        on_points.acceleration, on_sole.acceleration, atol=SAME * (1.0 + np.abs(on_sole.acceleration).max())
    )
    assert_allclose(on_points.tau, on_sole.tau, atol=1e-8 * (1.0 + np.abs(on_sole.tau).max()))
    X = robot.pose(q, "here")
    force, moment = np.split(on_sole.forces["here"], 2)
    wrench = np.r_[X[:3, :3] @ moment, X[:3, :3] @ force]
    assert_allclose(net(robot, q, on_points.forces, X[:3, 3]), wrench, atol=1e-8 * (1.0 + np.abs(wrench).max()))


@pytest.mark.parametrize("limits", [None, FREE])
def test_the_order_of_contacts_does_not_matter(limits):
    robot = leg()
    q, v = turning(robot, 1.0)
    task, _ = held(robot, q)
    points = [control.PointContact(p, friction=0.9, damping=5.0 + k) for k, p in enumerate(RECTANGLE)]
    answers = [control.TaskControl(robot, task, limits, order).solve(0.0, q, v) for order in permutations(points)]
    size = max(np.abs(f).max() for f in answers[0].forces.values())
    for answer in answers[1:]:
        assert_allclose(answer.tau, answers[0].tau, atol=1e-8 * (1.0 + np.abs(answers[0].tau).max()))
        for frame, force in answer.forces.items():
            assert_allclose(force, answers[0].forces[frame], atol=1e-8 * size)


def test_a_body_has_the_mean_damping_of_its_contacts():
    robot = leg()
    q, v = turning(robot, 1.0)
    answers = [
        control.TaskControl(
            robot,
            held(robot, q)[0],
            None,
            [control.PointContact(p, damping=d) for p, d in zip("abd", dampings, strict=True)],
        ).solve(0.0, q, v)
        for dampings in ((5.0, 5.0, 20.0), (10.0, 10.0, 10.0))
    ]
    assert_allclose(answers[0].acceleration, answers[1].acceleration, rtol=1e-12)


@pytest.mark.parametrize("points", [2, 3, 4])
def test_size_and_mass_change_nothing(points):
    """A box that rotates on some of its corners has the same acceleration in its own units."""
    answers = []
    for l, m in [(1e-3, 1e-6), (0.01, 1e3), (1.0, 1.0), (100.0, 1e-2), (100.0, 1e6)]:
        b = sarrus.Builder("box", gravity=(0, 0, -9.81 * l))
        b.add_body("box", sarrus.Inertia.box(m, (l, 0.7 * l, 0.1 * l)))
        b.add_joint("float", sarrus.Free(), "ground", "box", actuated=True)
        for k in range(points):
            b.add_frame(f"foot{k}", "box", (0.5 * l * (-1) ** k, 0.3 * l * (-1) ** (k // 2), -0.1 * l * k))
        robot = b.build()
        feet = [control.PointContact(f"foot{k}") for k in range(points)]
        weights = [l**-2, l**-2, l**-2, 1.0, 1.0, 1.0]  # of moments and forces
        task = control.FrameTask("box", [0.1 * l, 0.0, 0.0])
        law = control.TaskControl(robot, task, None, feet, effort_weights=weights, force_arm=0.1)
        unit = np.array([1, 1, 1, l, l, l])
        v = np.array([1.0, -2.0, 0.5, 0.1, 0.2, -0.3]) * unit
        answer = law.solve(0.0, robot.neutral(), v)
        answers.append(np.r_[answer.acceleration / unit, np.concatenate(list(answer.forces.values())) / (m * 9.81 * l)])
    for answer in answers[1:]:
        assert_allclose(answer, answers[0], atol=1e-8 * np.abs(answers[0]).max())


@pytest.mark.parametrize("apart", [1e-8, 1e-5, 1e-3, 0.1])
def test_points_that_nearly_are_in_line_ask_for_nothing_great(apart):
    """Damping of the twist is the same as for points that are far from a line."""
    b = sarrus.Builder("box")
    b.add_body("box", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "box", actuated=True)
    for k, place in enumerate([(0.1, 0, 0), (-0.1, 0, 0), (0.05, apart, 0)]):
        b.add_frame(f"foot{k}", "box", place)
    robot = b.build()
    feet = [control.PointContact(f"foot{k}", damping=20.0) for k in range(3)]
    v = np.array([3.0, -2.0, 1.0, 0.0, 0.0, 0.0])
    goal = control.FrameTask("box", np.eye(4), stiffness=0.0, damping=20.0)
    a = control.TaskControl(robot, goal, None, feet).solve(0.0, robot.neutral(), v).acceleration
    assert_allclose(a[:3], -20.0 * v[:3], atol=1e-6 * 60.0)


# ---- bodies that hold each other -------------------------------------------------------------------------------------


def welded(how):
    """Return a foot of two parts: one body, welds in the tree or as a loop, or a truss; with the same frames."""
    b = sarrus.Builder("feet")
    if how == "one":
        b.add_body("heel", sarrus.Inertia.box(2.0, (0.2, 0.1, 0.05)))
        b.add_joint("float", sarrus.Free(), "ground", "heel", actuated=True)
        b.add_body("toe", sarrus.Inertia.box(1.0, (0.2, 0.1, 0.05)))
        b.add_joint("weld", sarrus.Fixed(), "heel", "toe", at_parent=(0.2, 0, 0))
    else:
        b.add_body("heel", sarrus.Inertia.box(2.0, (0.2, 0.1, 0.05)))
        b.add_joint("float", sarrus.Free(), "ground", "heel", actuated=True)
        b.add_body("toe", sarrus.Inertia.box(1.0, (0.2, 0.1, 0.05)))
        if how == "loop":
            b.add_joint("loose", sarrus.Free(), "ground", "toe")
            b.add_joint("weld", sarrus.Fixed(), "heel", "toe", at_parent=(0.2, 0, 0), loop=True)
        else:  # two pins
            b.add_joint("pin", sarrus.Revolute("y"), "heel", "toe", at_parent=(0.2, 0, 0))
            b.add_joint("other", sarrus.Revolute("y"), "heel", "toe", at_parent=(0.2, 0, 0.1), at_child=(0, 0, 0.1), loop=True)  # fmt: skip
    b.add_frame("a", "heel", (-0.1, 0.05, 0))
    b.add_frame("b", "heel", (-0.1, -0.05, 0.02))
    b.add_frame("c", "toe", (0.1, 0.05, 0))
    b.add_frame("d", "toe", (0.1, -0.05, 0))
    return b.build()


@pytest.mark.parametrize("how", ["loop", "pins"])
@pytest.mark.parametrize("limits", [None, FREE])
def test_bodies_that_are_held_together_are_one(how, limits):
    found = []
    for robot in (welded("one"), welded(how)):
        q = robot.project_configuration(robot.assemble()) if robot.nc else robot.neutral()
        w, u = np.array([1.0, -2.0, 3.0]), np.array([0.1, 0.2, 0.3])
        v = np.zeros(robot.nv)
        v[robot.joint("float").v_slice] = [*w, *u]
        if "loose" in robot.joints:
            v[robot.joint("loose").v_slice] = [*w, *(u + np.cross(w, [0.2, 0, 0]))]
        feet = [control.PointContact(p) for p in RECTANGLE]
        law = control.TaskControl(robot, control.FrameTask("heel", [0.0, 0.0, 0.1]), limits, feet, force_arm=0.01)
        answer = law.solve(0.0, q, v)
        found.append([*answer.acceleration[:6], *np.concatenate(list(answer.forces.values()))])
    assert_allclose(found[1], found[0], atol=1e-7 * np.abs(found[0]).max())


def test_a_link_on_a_pin_whose_tip_stands():
    """The pin is the second point: the tip requires a feasible motion of the link."""
    b = sarrus.Builder("link")
    b.add_body("link", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.02))
    b.add_joint("pin", sarrus.Revolute("y"), "ground", "link", actuated=True)
    b.add_frame("tip", "link", (0.5, 0, 0))
    robot = b.build()
    law = control.TaskControl(robot, control.JointTask("pin", 1.0), None, control.PointContact("tip", damping=10.0))
    for w in SPEEDS:
        assert_allclose(law.solve(0.0, [0.3], [w]).acceleration, -10.0 * w, atol=1e-9 * (1.0 + w * w))


@pytest.mark.parametrize("limited", [False, True])
def test_many_runs_are_its_runs(limited):
    """Lanes whose feet rotate differently have the results of single runs."""
    robot = leg()
    states = [turning(robot, speed, seed) for seed, speed in enumerate((0.0, 0.01, 0.5, 1.0, 3.0))]
    q, v = (np.stack(x) for x in zip(*states, strict=True))
    task = control.FrameTask("pelvis", robot.pose(robot.assemble(), "pelvis"))
    law = control.TaskControl(robot, task, FREE if limited else None, [control.PointContact(p) for p in RECTANGLE])
    many = sarrus.simulate_many(robot, q, v, 1e-3, law, dt=2e-4, limits="ignore")
    for k in range(len(q)):
        one = sarrus.simulate(robot, q[k], v[k], 1e-3, law, dt=2e-4, limits="ignore")
        assert_allclose(many.v[k, -1], one.v[-1], atol=1e-7 * (1.0 + np.abs(one.v[-1]).max()))


# ---- what cannot be ----------------------------------------------------------------------------------------------------


def straight_arm():
    """A stretched arm swings through: the tip is at rest, and its acceleration cannot be prevented."""
    b = sarrus.Builder("arm")
    for name in ("upper", "lower"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.02))
    b.add_joint("shoulder", sarrus.Revolute("y"), "ground", "upper", actuated=True)
    b.add_joint("elbow", sarrus.Revolute("y"), "upper", "lower", at_parent=(0.5, 0, 0), actuated=True)
    b.add_frame("tip", "lower", (0.5, 0, 0))
    return b.build(), np.array([0.3, 0.0]), np.array([1.0, -2.0])


@pytest.mark.parametrize("limits", [None, FREE])
def test_contacts_that_contradict_the_mechanism_are_named(limits):
    robot, q, v = straight_arm()
    law = control.TaskControl(robot, control.JointTask("elbow", 0.0), limits, control.PointContact("tip"))
    for ask in (law, law.solve):
        with pytest.raises(sarrus.StateError, match=r"TaskControl of 'arm': contacts are inconsistent .*the contact of 'tip'; leave a contact out"):  # fmt: skip
            ask(0.0, q, v)
    for controller in (law, control.SampleAndHold(law, 1e-3), [control.FeedforwardEffort("elbow", 0.0), law]):
        with pytest.raises(sarrus.IntegrationError, match=r"TaskControl of 'arm': contacts are inconsistent .*'tip'"):
            sarrus.simulate(robot, q, v, 0.01, controller, limits="ignore")


@pytest.mark.parametrize("limits", [None, FREE])
def test_a_hard_task_against_a_foot_is_named(limits):
    robot = leg()
    q, v = turning(robot, 0.1)
    goal = robot.pose(q, "foot")
    goal[2, 3] += 0.1
    tasks = [held(robot, q)[0], control.FrameTask("foot", goal, "tz", hard=True)]
    feet = [control.PointContact(p) for p in RECTANGLE]
    law = control.TaskControl(robot, tasks, limits, feet)
    said = r"TaskControl of 'humanoid leg': hard tasks and contacts are inconsistent.*FrameTask\('foot'\) and the contact of 'a'.*make one of these tasks hard=False, or leave a contact out"  # fmt: skip
    with pytest.raises(sarrus.StateError, match=said):
        law.solve(0.0, q, v)
    with pytest.raises(sarrus.IntegrationError, match=said):
        sarrus.simulate(robot, q, v, 0.01, law, limits="ignore")
