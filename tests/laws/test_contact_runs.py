"""Whole runs of method="contact": what physics keeps, they keep, and errors fall with the square of the step."""

import itertools

import numpy as np
import pytest

import sarrus
from sarrus import control
from sarrus.shapes import Box, Plane

G = 9.81


def with_box_at_rest(add, home=None):
    """A mechanism that touches nothing, beside a box that lies on the ground, so that every step has contacts."""
    b = sarrus.Builder("beside a box")
    b.add_body("box", sarrus.Inertia.box(1.0, (0.1, 0.1, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "box")
    b.add_shape("box", Box((0.1, 0.1, 0.1)))
    b.add_shape("ground", Plane(), name="floor")
    add(b)
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.05), **(home or {})})
    return b.build()


def spread(run):
    """Largest change of the energy."""
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
    """Energy of rotation, and the angular momentum about the centre of mass; the box stays where it is."""
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
    """A double pendulum that swings high."""
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
    """Springs and dampers along joints, and PID with its integral: differences fall with the square of the step, also while something presses elsewhere."""

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


@pytest.mark.parametrize("stiffness", [1e2, 1e8])
def test_a_spring_along_a_joint_keeps_its_energy(stiffness):
    """However fast it swings: the midpoint rule."""

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


# ---- what a run reports -------------------------------------------------------------------------------------------------------------


def arm():
    """A hand on a slide, and a ball beside it, which both come to lie on the ground."""
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
    """m a = m g + f of a ball that slips and rolls, with accelerations of the run's own velocities; on a plane of another body that moves."""
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
