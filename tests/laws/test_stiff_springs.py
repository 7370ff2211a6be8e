"""Springs between bodies that steps of method="contact" do not resolve: bounded, with the correct energy and deflection."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.control import CompliantContact, RigidContact
from sarrus.errors import IntegrationError

G = 9.81
STEP = 2e-3
EXACT = 1e-9  # of a length: rates of 1e9 N/m leave of rounding 1e-7 times as much


def bob(stiffness, damping=0.0, joint=None):
    b = sarrus.Builder("bob")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("at", joint or sarrus.Gimbal("tx ty tz"), "ground", "bob")
    ends = ("ground", (0, 0, 0)), ("bob", (0, 0, 0))
    b.add_spring("wire", *ends, stiffness=stiffness, rest_length=1.0, damping=damping)
    return b.build()


@pytest.mark.parametrize("damping", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("stiffness", [1e6, 1e7, 1e8, 1e9])
def test_a_bob_on_a_stiff_wire_keeps_its_energy(stiffness, damping):
    robot = bob(stiffness, damping)
    run = sarrus.simulate(robot, [np.sin(1), 0, -np.cos(1)], np.zeros(3), 2.0, method="contact", dt=STEP)
    stretch = np.linalg.norm(run.q, axis=1) - 1.0
    assert run.energy.max() - run.energy[0] < 1e-4 * G  # of the energy of a fall by one length
    assert abs(run.energy[-1] - run.energy[0]) < 1e-3 * G
    assert abs(stretch).max() < 1e-4


@pytest.mark.parametrize("stiffness", [1e6, 1e9])
def test_the_path_is_that_of_a_rigid_pendulum(stiffness):
    robot = bob(stiffness)
    q = [np.sin(1), 0, -np.cos(1)]
    ends = []
    for dt in (4e-3, 2e-3, 1e-3):
        run = sarrus.simulate(robot, q, np.zeros(3), 1.0, method="contact", dt=dt)
        ends.append(np.arctan2(run.q[-1, 0], -run.q[-1, 2]))
    b = sarrus.Builder("rod")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("at", sarrus.Gimbal("tx ty tz"), "ground", "bob")
    b.add_distance("rod", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), length=1.0)
    run = sarrus.simulate(b.build(), q, np.zeros(3), 1.0, dt=1e-3)
    right = np.arctan2(run.q[-1, 0], -run.q[-1, 2])
    off = abs(np.array(ends) - right)
    assert off[2] < 1e-5 + 2 * G / stiffness
    assert off[1] < 0.3 * off[0] + 4 * G / stiffness  # of second order


@pytest.mark.parametrize("damping", [0.0, 1e5])
@pytest.mark.parametrize("stiffness", [1e5, 1e6, 1e9])
def test_a_weight_hangs_where_it_is_in_balance(stiffness, damping):
    robot = bob(stiffness, damping)
    q = [0.0, 0.0, -1.0 - G / stiffness]
    run = sarrus.simulate(robot, q, np.zeros(3), 1.0, method="contact", dt=STEP)
    assert_allclose(run.q, np.broadcast_to(q, run.q.shape), atol=EXACT)


@pytest.mark.filterwarnings(
    "ignore:by 'contact' the energy:sarrus.errors.StiffnessWarning"
)  # of a motion of 0.1 um, unresolved
def test_a_damped_weight_settles_in_balance():
    robot = bob(1e8, 2e4)
    run = sarrus.simulate(robot, [0.0, 0.0, -1.0], np.zeros(3), 1.0, method="contact", dt=STEP)
    assert_allclose(run.q[-1, 2], -1.0 - G / 1e8, atol=EXACT)
    assert abs(run.v[-1]).max() < 1e-6


@pytest.mark.parametrize("stiffness", [1e4, 1e8])
def test_a_spring_presses_what_lies_on_the_ground(stiffness):
    """A spring between two weights, one above the other; the ground carries both."""
    b = sarrus.Builder("two")
    for name in ("lower", "upper"):
        b.add_body(name, sarrus.Inertia.sphere(2.0, 0.05))
        b.add_joint(f"{name}_guide", sarrus.Prismatic("z"), "ground", name)
    b.add_spring("coil", ("lower", (0, 0, 0)), ("upper", (0, 0, 0)), stiffness=stiffness, rest_length=0.5)
    robot = b.build()
    q = [0.05, 0.55 - 2.0 * G / stiffness]
    run = sarrus.simulate(robot, q, np.zeros(2), 1.0, RigidContact("lower", radius=0.05), dt=STEP)
    assert_allclose(run.q, np.broadcast_to(q, run.q.shape), atol=EXACT)
    assert_allclose(run.contacts.force[-1], (0.0, 0.0, 4.0 * G), rtol=1e-6, atol=1e-6)


def test_a_stiff_spring_of_two_free_bodies_keeps_their_momentum():
    b = sarrus.Builder("dumbbell", gravity=(0, 0, 0))
    for name in ("one", "two"):
        b.add_body(name, sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
        b.add_joint(f"{name}_float", sarrus.Free(), "ground", name)
    b.add_spring("rod", ("one", (0.05, 0, 0)), ("two", (-0.05, 0, 0)), stiffness=1e8, rest_length=0.4)
    robot = b.build()
    q = robot.neutral()
    q[robot.joint("two_float").q_slice.start + 4] = 0.5
    v = np.zeros(robot.nv)
    v[robot.joint("two_float").v_slice] = 1.0, 2.0, 3.0, 0.0, 2.0, 0.0
    run = sarrus.simulate(robot, q, v, 2.0, method="contact", dt=1e-3)
    assert abs(run.energy - run.energy[0]).max() < 2e-3 * run.energy[0]
    momentum = robot.momentum(run.q, run.v)
    assert_allclose(momentum[:, 3:], np.broadcast_to(momentum[0, 3:], momentum[:, 3:].shape), atol=1e-6)


@pytest.mark.parametrize("numbers", [{"stiffness": 1e8}, {"stiffness": 1e8, "damping": 1e5}])
def test_stiff_joints_that_close_loops(numbers):
    """A cable whose length is the coordinate of a loop joint without constraint rows."""
    b = sarrus.Builder("cable")
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("at", sarrus.Gimbal("tx ty tz"), "ground", "bob")
    b.add_cable("rope", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), rest=1.0, **numbers)
    robot = b.build()
    run = sarrus.simulate(robot, [0.6, 0, -0.8], np.zeros(3), 2.0, method="contact", dt=STEP)
    length = np.linalg.norm(run.q, axis=1)
    assert abs(length - 1.0).max() < 1e-4
    assert run.energy.max() - run.energy[0] < 1e-2 * G


@pytest.mark.parametrize("stiffness", [1e4, 1e9])
def test_auto_takes_a_method_that_follows_springs(stiffness):
    robot = bob(stiffness)
    run = sarrus.simulate(robot, [np.sin(1), 0, -np.cos(1)], np.zeros(3), 0.1, dt=STEP)
    assert run.statistics["method"] == ("rk4" if stiffness < 1e5 else "implicit_midpoint")
    assert abs(run.energy - run.energy[0]).max() < 1e-3 * G


def test_a_contact_that_steps_cannot_follow_is_named_with_its_rate_and_a_cure():
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    robot = b.build()
    ground = CompliantContact("ball", stiffness=1e9, radius=0.05, height=sarrus.laws.polynomial(0, 0, 0.5))
    q = np.array([0, 0, 0, 1, 0.1, 0, 0.06])
    with pytest.raises(
        IntegrationError, match=r"stiffness 1e\+09 of CompliantContact of 'ball' is too fast .* dt = .* RigidContact"
    ):
        sarrus.simulate(robot, q, np.zeros(6), 1.0, ground, dt=STEP)


@pytest.mark.parametrize("stiffness", [1e3, 1e5, 1e7])
def test_a_drive_does_the_work_that_a_spring_passes_on(stiffness):
    """A prescribed motion shakes a table with a load on a spring: its work is the change of energy, without a warning."""
    b = sarrus.Builder("shaker")
    for name in ("table", "load"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.05))
        b.add_joint(f"{name}_guide", sarrus.Prismatic("z"), "ground", name)
    b.add_spring("coil", ("table", (0, 0, 0)), ("load", (0, 0, 0)), stiffness=stiffness, rest_length=0.5)
    b.add_prescribed_motion("drive", "table_guide", sarrus.laws.harmonic(0.05, 8.0))
    robot = b.build()
    q = robot.assemble(near={"load_guide": 0.5 - G / stiffness})
    run = sarrus.simulate(robot, q, robot.complete_velocity(q, {}), 1.0, method="contact", dt=STEP)
    change = run.energy[-1] - run.energy[0]
    assert_allclose(run.statistics["work"], change, atol=1e-2 * run.kinetic_energy.max())
