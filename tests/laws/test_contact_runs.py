"""Runs of method="contact": conserved quantities, and errors of second order in the step."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sarrus
from sarrus import control
from sarrus.shapes import Box, Capsule, ConvexPoints, Cylinder, Ellipsoid, Plane, Point, Sphere
from tests.random_closed import CLOSING
from tests.random_mechanisms import random_inertia, random_joint, random_transform

G = 9.81


def with_box_at_rest(add, home=None):
    """Return the mechanism, without contacts, and a box on the ground, so that every step has contacts."""
    b = sarrus.Builder("beside a box")
    b.add_body("box", sarrus.Inertia.box(1.0, (0.1, 0.1, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "box")
    b.add_shape("box", Box((0.1, 0.1, 0.1)))
    b.add_shape("ground", Plane(), name="floor")
    add(b)
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.05), **(home or {})})
    return b.build()


def spread(run):
    """Return the largest change of the energy."""
    return float(np.abs(run.energy - run.energy[0]).max())


def ball(radius=0.1):
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(0.5, radius))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    return b.build()


def test_a_ball_rolls_on_for_ten_seconds():
    q, v = np.array([0, 0, 0, 1, 0, 0, 0.1]), np.array([0, 30.0, 0, 3.0, 0, 0])
    run = sarrus.simulate(ball(), q, v, 10.0, control.RigidContact("ball", radius=0.1))
    speed = np.linalg.norm(run.v[:, 3:], axis=1)
    np.testing.assert_allclose(speed, 3.0, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(run.q[-1, 4:], [30.0, 0.0, 0.1], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("degrees", [10, 30, 45])
def test_a_ball_rolls_down_an_incline(degrees):
    """a = 5/7 g sin, without a lag of half a step in the path."""
    slope = np.radians(degrees)
    b = sarrus.Builder("ball", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    b.add_body("ball", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    foot = control.RigidContact("ball", radius=0.1, friction=2.0)
    run = sarrus.simulate(b.build(), np.array([0, 0, 0, 1, 0, 0, 0.1]), np.zeros(6), 1.0, foot, dt=1e-3)
    a = 5.0 / 7.0 * G * np.sin(slope)
    np.testing.assert_allclose(run.q[:, 4], 0.5 * a * run.t**2, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(run.v[:, 3:], axis=1), a * run.t, rtol=0.0, atol=1e-11)


def tumbling():
    def add(b):
        b.add_body("fly", sarrus.Inertia(1.0, (0, 0, 0), np.diag([0.01, 0.015, 0.02])))
        b.add_joint("ff", sarrus.Free(), "ground", "fly", at_parent=(0, 5.0, 500.0))

    robot = with_box_at_rest(add)
    v = np.zeros(robot.nv)
    v[robot.joint("ff").v_slice] = [5.0, 30.0, 4.0, 10.0, 0.0, 0.0]
    return robot, v


def test_a_body_tumbles_beside_a_box_at_rest():
    """Rotational energy, and angular momentum about the centre of mass; the box does not move."""
    robot, v = tumbling()
    run = sarrus.simulate(robot, robot.assemble(), v, 10.0, method="contact", dt=1e-3)
    w = run.v[:, robot.joint("ff").v_slice][:, :3]
    I = np.diag([0.01, 0.015, 0.02])
    turning = 0.5 * np.einsum("ni,ij,nj->n", w, I, w)
    np.testing.assert_allclose(turning, turning[0], rtol=1e-6)
    R = robot.pose(run.q, "fly")[:, :3, :3]
    momentum = np.einsum("nij,nj->ni", R, w @ I)
    np.testing.assert_allclose(
        momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-4 * np.linalg.norm(momentum[0])
    )
    # its centre flies a parabola, which half a drift, a kick, half a drift follow exactly
    place = robot.pose(run.q, "fly")[:, :3, 3]
    path = place[0] + np.outer(run.t, [10.0, 0, 0]) - np.outer(0.5 * G * run.t**2, [0, 0, 1])
    np.testing.assert_allclose(place, path, rtol=0.0, atol=1e-8)
    box = run.v[:, robot.joint("float").v_slice]
    assert np.abs(box).max() < 1e-12


def chain(b):
    """Return a double pendulum with large swings."""
    for name, parent, at in (("upper", "ground", (0, 3.0, 3.0)), ("lower", "upper", (0, 0, -1.0))):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1.0), radius=0.02))
        b.add_joint(f"at {name}", sarrus.Revolute("y"), parent, name, at_parent=at)


def four_bar(b):
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), radius=0.02))
    b.add_joint("crank", sarrus.Revolute("y"), "ground", "a", at_parent=(0, 3.0, 3.0))
    b.add_joint("p1", sarrus.Revolute("y"), "a", "b", at_parent=(0.4, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "ground", "c", at_parent=(1.0, 3.0, 3.0))
    b.add_joint("p2", sarrus.Revolute("y"), "b", "c", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=True)


def swinging(which):
    robot = with_box_at_rest(which)
    q, v = robot.assemble(fixed={"crank": 0.5}) if which is four_bar else robot.assemble(), np.zeros(robot.nv)
    if which is four_bar:
        v = robot.complete_velocity(q, {"crank": 10.0, "float": np.zeros(6)})
    else:
        q[robot.joint("at upper").q_slice], q[robot.joint("at lower").q_slice] = 2.0, 1.0
    return robot, q, v


@pytest.mark.parametrize("which", [chain, four_bar])
def test_mechanisms_beside_a_box_at_rest_are_of_second_order(which):
    robot, q, v = swinging(which)
    lost = []
    for dt in (4e-3, 2e-3, 1e-3):
        run = sarrus.simulate(robot, q, v, 2.0, method="contact", dt=dt)
        assert run.statistics["contact"]["kinematics"] < 1e-9
        assert run.loop_error.max() < 1e-12
        lost.append(spread(run))
    orders = np.log2(np.array(lost[:-1]) / lost[1:])
    assert orders.min() > 1.6, (lost, orders)
    assert lost[-1] < 5e-3


def test_what_flies_freely_under_control_is_of_second_order():
    """Springs and dampers along joints, and PID with integral: errors fall with the square of the step, also during contact elsewhere."""

    def add(b):
        chain(b)
        b.add_body("cart", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
        b.add_joint(
            "rail", sarrus.Prismatic("x", stiffness=300.0, damping=2.0), "ground", "cart", at_parent=(0, -2.0, 1.0)
        )

    robot = with_box_at_rest(add)
    q = robot.assemble()
    q[robot.joint("at upper").q_slice], q[robot.joint("rail").q_slice] = 1.0, 0.2
    hold = control.PID("at lower", 40.0, 10.0, 4.0, target=sarrus.laws.harmonic(0.5, 3.0))

    def end(dt):
        run = sarrus.simulate(robot, q, np.zeros(robot.nv), 1.0, hold, method="contact", dt=dt)
        return np.concatenate([run.q[-1], run.v[-1]])

    ends = [end(dt) for dt in (4e-3, 2e-3, 1e-3, 5e-4)]
    off = [np.abs(a - b).max() for a, b in itertools.pairwise(ends)]
    orders = np.log2(np.array(off[:-1]) / off[1:])
    assert orders.min() > 1.7, (off, orders)


@pytest.mark.parametrize("kind", [*CLOSING[1:], "cable"])
def test_armature_between_bodies_that_fly_is_of_second_order(kind):
    """Armature of a loop joint, or of a cable, between a free and a planar body, which rotate and translate; relative to adaptive steps."""
    rng = np.random.default_rng(1)
    b = sarrus.Builder("pair", gravity=(0, 0, 0))
    for name, joint in (("a", sarrus.Free()), ("b", sarrus.Planar("z"))):
        b.add_body(name, random_inertia(rng))
        b.add_joint(f"at {name}", joint, "ground", name, tree=True)
    if kind == "cable":
        b.add_cable("between", ("a", (0.1, 0.2, 1.0)), ("b", (0.2, 0.1, 0.0)), armature=0.5)
    else:
        joint, X = random_joint(kind, rng, armature=True), random_transform(rng)
        b.add_joint("between", joint, "a", "b", at_parent=X, at_child=X, loop=True)
    robot = b.build()
    q = robot.assemble()
    v = robot.project_velocity(q, 2.0 * rng.normal(size=robot.nv))
    exact = sarrus.simulate(robot, q, v, 0.1, method="dopri5", rtol=1e-11, atol=1e-12)
    errors = []
    for dt in (4e-3, 2e-3):
        run = sarrus.simulate(robot, q, v, 0.1, method="contact", dt=dt)
        errors.append(np.linalg.norm(robot.difference(exact.q[-1], run.q[-1])))
    assert errors[1] < 0.3 * errors[0] < 1e-3


@pytest.mark.parametrize("stiffness", [1e2, 1e8])
def test_a_spring_along_a_joint_keeps_its_energy(stiffness):
    """The midpoint rule conserves energy at any frequency."""

    def add(b):
        b.add_body("cart", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
        b.add_joint("rail", sarrus.Prismatic("x", stiffness=stiffness), "ground", "cart", at_parent=(0, -2.0, 1.0))

    robot = with_box_at_rest(add)
    q, v = robot.assemble(), np.zeros(robot.nv)
    v[robot.joint("rail").v_slice] = 1.0
    run = sarrus.simulate(robot, q, v, 1.0, method="contact", dt=1e-3)
    np.testing.assert_allclose(run.energy, run.energy[0], rtol=1e-10)


def test_a_damper_faster_than_the_step_stops_its_joint():
    def add(b):
        b.add_body("wheel", sarrus.Inertia(0.15, (0, 0, 0), np.diag([1e-5, 2e-5, 2e-5])))
        b.add_joint("axle", sarrus.Revolute("x", damping=1.0), "ground", "wheel", at_parent=(0, -2.0, 1.0))

    robot = with_box_at_rest(add)
    v = np.zeros(robot.nv)
    v[robot.joint("axle").v_slice] = 1.0
    run = sarrus.simulate(robot, robot.assemble(), v, 0.1, method="contact", dt=1e-3)
    rate = np.abs(run.v[:, robot.joint("axle").v_slice][:, 0])
    assert rate[1] < 0.05
    assert (np.diff(rate) <= 0.0).all()
    assert rate[-1] < 1e-12


# ---- shapes that roll, pivot and slide ----------------------------------------------------------------------------------------------

ROD = (0.04, 0.04, 1.0)
CORNERS = tuple(itertools.product((-0.02, 0.02), (-0.02, 0.02), (-0.5, 0.5)))
SKEWED = Rotation.from_euler("z", 0.05).as_matrix() @ np.diag([2.6e-4, 8.1e-3, 8.2e-3])
SKEWED = SKEWED @ Rotation.from_euler("z", 0.05).as_matrix().T


def rod_of(shape):
    """Return an inclined rod that falls from rest."""
    return sarrus.Inertia.box(1.0, ROD), shape, (0.2, 0.0), (0.0, 0.0, 0.0), 0.4


# inertia; shape; roll and pitch at first; angular velocity there; for how long. Where friction holds they roll or pivot, without it they slide.
MOVING = {
    "ball with its mass aside": (sarrus.Inertia(1.0, (0.03, 0.01, 0.02), np.diag([3e-3, 4e-3, 5e-3])), Sphere(0.1), (0.3, 0.2), (1, 5, 0), 1.0),
    "ellipsoid": (sarrus.Inertia(1.0, (0, 0, 0), np.diag([3e-3, 4e-3, 5e-3])), Ellipsoid((0.12, 0.1, 0.08)), (0.2, 0.1), (3, 1, 2), 0.5),
    "rattleback": (sarrus.Inertia(1.0, (0, 0, -0.002), SKEWED), Ellipsoid((0.2, 0.03, 0.02)), (0.02, 0.01), (0, 0, -5), 0.5),
    "capsule on its end": (sarrus.Inertia(1.0, (0, 0, 0), np.diag([8e-3, 8e-3, 1e-3])), Capsule(0.05, 0.3), (0.5, 0), (0, 1, 20), 0.15),
    "disc on its rim": (sarrus.Inertia.cylinder(1.0, 0.1, 0.02), Cylinder(0.1, 0.02), (1.4, 0.0), (0.3, 0, 20), 0.5),
    "disc that wobbles": (sarrus.Inertia.cylinder(1.0, 0.1, 0.02), Cylinder(0.1, 0.02), (0.4, 0.0), (1.0, -11.0, 0.0), 0.2),
    "top": (sarrus.Inertia(1.0, (0, 0, 0.1), np.diag([2e-3] * 3)), Point(), (0.3, 0.0), (0, 0, 60.0), 0.5),
    "rod of a capsule": rod_of(Capsule(0.02, 1.0)),
    "rod of a box": rod_of(Box(ROD)),
    "rod of corners": rod_of(ConvexPoints(CORNERS)),
}  # fmt: skip


def moving(name, friction):
    """Return a state on the ground with zero velocity at the contact."""
    inertia, shape, lean, w, duration = MOVING[name]
    b = sarrus.Builder(name)
    b.add_body("body", inertia)
    b.add_joint("float", sarrus.Free(), "ground", "body")
    b.add_shape("body", shape, friction=friction)
    b.add_shape("ground", Plane(), name="floor")
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 2.0)})
    robot, R = b.build(), Rotation.from_euler("xy", lean)
    q = np.array([*R.as_quat(), 0.0, 0.0, 2.0])
    touching = robot.contacts(q, within=10.0)
    lowest = touching.distance.argmin()
    q[6] -= touching.distance[lowest]
    arm = touching.position[lowest] + [0.0, 0.0, touching.distance[lowest] / 2 - 2.0]
    u = np.cross(arm, R.apply(w))
    return robot, q, np.array([*w, *R.inv().apply(u)]), duration


@pytest.mark.parametrize("friction", [5.0, 0.0], ids=["rolls", "slides"])
@pytest.mark.parametrize("name", MOVING)
def test_shapes_that_roll_pivot_and_slide_are_of_second_order(name, friction):
    """Energy and penetration; the contact point moves along both surfaces, and the normal rotates."""
    robot, q, v, duration = moving(name, friction)
    lost, sunk = [], []
    for dt in (2e-3, 1e-3, 5e-4):
        run = sarrus.simulate(robot, q, v, duration, method="contact", dt=dt)
        assert (np.abs(run.contacts.force).max(axis=1) > 0.0).sum() > 0.9 * (len(run) - 2)
        lost.append(spread(run)), sunk.append(run.statistics["contact"]["penetration"])
    orders = np.log2(np.array(lost[:-1]) / lost[1:])
    assert orders.min() > 1.7 or max(lost) < 1e-9, (lost, orders)
    assert sunk[-1] < 1e-7


@pytest.mark.parametrize("below", [Sphere(0.3), Capsule(0.3, 1.0)], ids=["ball", "capsule"])
def test_a_ball_on_a_round_shape_is_of_second_order(below):
    b = sarrus.Builder("round")
    b.add_body("ball", sarrus.Inertia(1.0, (0, 0, 0), np.diag([3e-3, 4e-3, 5e-3])))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    b.add_shape("ball", Sphere(0.1), friction=20.0)
    b.add_shape("ground", below, sarrus.Transform(sarrus.Rotation.from_rpy(0, np.pi / 2, 0)), name="below")
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.4)})
    robot, R, w = b.build(), Rotation.from_euler("xy", [0.3, 0.2]), np.array([3.0, 1.0, 1.0])
    q = np.array([*R.as_quat(), 0.0, 0.0, 0.4])
    v = np.array([*w, *R.inv().apply(np.cross([0, 0, -0.1], R.apply(w)))])
    lost = [spread(sarrus.simulate(robot, q, v, 0.4, method="contact", dt=dt)) for dt in (2e-3, 1e-3, 5e-4)]
    orders = np.log2(np.array(lost[:-1]) / lost[1:])
    assert orders.min() > 1.8, (lost, orders)


def test_what_rolls_off_an_edge_loses_nothing_there():
    """The last step with contact does not apply its force again for a contact that lies ahead of the step."""
    b = sarrus.Builder("edge")
    b.add_body("ball", sarrus.Inertia(1.0, (0, 0, 0), np.diag([4e-3] * 3)))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    b.add_shape("ball", Sphere(0.1), friction=20.0)
    b.add_shape("ground", Box((0.1, 1.0, 0.2)), (0, 0, -0.1), name="step")
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 1.0)})
    q = np.array([0, 0, 0, 1, 0.05 + 0.1 * np.sin(0.05), 0, 0.1 * np.cos(0.05)])
    v = np.array([0, 0.5, 0, 0.05 * np.cos(0.05), 0, -0.05 * np.sin(0.05)])
    run = sarrus.simulate(b.build(), q, v, 0.4, method="contact", dt=1e-3)
    assert run.q[-1, 6] < 0.02  # it has left
    assert spread(run) < 2e-5


# ---- what a run reports -------------------------------------------------------------------------------------------------------------


def arm():
    """Return a hand on a slide and a ball, which both come to rest on the ground."""
    b = sarrus.Builder("arm")
    b.add_body("slide", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("z", sarrus.Prismatic("z"), "ground", "slide")
    b.add_body("hand", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("wrist", sarrus.Revolute("y"), "slide", "hand")
    b.add_body("ball", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball", at_parent=(2.0, 0, 0))
    return b


def test_reported_accelerations_and_loads_contain_the_contacts(tmp_path):
    b = arm()
    b.add_shape("ball", sarrus.shapes.Sphere(0.1))
    b.add_shape("ground", Plane(), name="floor")
    b.set_home({"z": 0.1, "float": (0, 0, 0, 1, 0, 0, 0.1)})
    robot = b.build()
    run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 0.1, control.RigidContact("hand", radius=0.1))
    run.save(tmp_path / "run.npz")
    for one in (run, sarrus.Trajectory.load(tmp_path / "run.npz", robot)):
        np.testing.assert_allclose(one.a[1:], 0.0, atol=1e-6)
        loads = one.joint_wrenches()
        np.testing.assert_allclose(
            loads["wrist"][1:, 5], -G, rtol=1e-9
        )  # the ground carries the hand and the slide on it
        assert not loads.efforts or max(np.abs(x[1:]).max(initial=0.0) for x in loads.efforts.values()) < 1e-6
        pressed = one.contacts
        last = pressed.sample == len(one) - 1
        carried = dict(
            zip(np.array(pressed.shapes, dtype=object)[last, 0].tolist(), pressed.force[last, 2], strict=True)
        )
        assert carried == pytest.approx({"hand": 3.0 * G, robot.description.shapes[0].name: 0.5 * G}, rel=1e-9)
    assert {"ground"} <= {body for pair in run.contacts.bodies for body in pair}


def test_each_body_is_in_balance_with_its_contact_forces():
    """m a = m g + f of a slipping and rolling ball, with accelerations from the run's velocities; also on a plane of a moving body."""
    b = sarrus.Builder("ball on a sled", gravity=(1.0, 0.0, -G))
    b.add_body("sled", sarrus.Inertia.box(5.0, (2.0, 2.0, 0.1)))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "sled")
    b.add_body("ball", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    robot = b.build()
    foot = control.RigidContact("ball", on="sled", offset=0.05, radius=0.1, friction=0.2)
    q, v = np.array([0.0, 0, 0, 0, 1, 0, 0, 0.15]), np.array([0.0, 0, 20.0, 3.0, 0.0, 0.5, 0])
    dt = 1e-3
    run = sarrus.simulate(robot, q, v, 0.3, foot, dt=dt)
    R = robot.pose(run.q, "ball")[:, :3, :3]
    u = np.einsum("nij,nj->ni", R, run.v[:, 4:])
    force, at = np.zeros((len(run), 3)), run.contacts.sample
    np.add.at(force, at, run.contacts.force)
    np.testing.assert_allclose(0.5 * np.diff(u, axis=0), dt * (force[1:] + 0.5 * np.array([1.0, 0, -G])), atol=1e-12)
    np.testing.assert_allclose(5.0 * np.diff(run.v[:, 0]), dt * (5.0 - force[1:, 0]), atol=1e-12)
    # and accelerations of the state are those of these forces, to the order of a step
    a = np.diff(run.v, axis=0) / dt
    steady = np.abs(np.diff(force[1:], axis=0)).max(axis=1) < 0.05  # but where it begins to roll
    assert steady.mean() > 0.95
    np.testing.assert_allclose(run.a[1:-1][steady], 0.5 * (a[1:] + a[:-1])[steady], atol=0.2)
