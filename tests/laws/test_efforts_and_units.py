"""Efforts in other units of length and mass: those of a scaled mechanism are scaled."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Builder, Inertia, Prismatic, Revolute

SIZES = [(1e-5, 1.0), (1e-3, 1e-12), (1e3, 1e6), (1e-5, 1e-12), (1e2, 1e-6)]
MOTORS = {  # of the slider-crank with a pendulum on its slider
    "rotary": ("crank",),
    "linear": ("rail",),
    "redundant, rotary": ("crank", "pin", "swing"),
    "redundant, both": ("crank", "rail", "swing"),
    "closing": ("close", "swing"),
    "enough": ("rail", "swing"),
}


def slider_crank(motors, L=1.0, m=1.0, closing="close", substructures=None):
    b = Builder("slider-crank", gravity=(0, 0, -9.81 * L))
    b.add_body("crank", Inertia.rod(m, (0, 0, 0), (0.3 * L, 0, 0), 0.01 * L))
    b.add_body("rod", Inertia.rod(m, (0, 0, 0), (L, 0, 0), 0.01 * L))
    b.add_body("slider", Inertia.box(m, (0.1 * L,) * 3))
    b.add_body("bob", Inertia.rod(m, (0, 0, 0), (0, 0, -0.5 * L), 0.01 * L))
    how = {
        n: {"actuated": n in motors, "loop": n == closing, "tree": n != closing}
        for n in ("crank", "pin", "rail", "close", "swing")
    }
    b.add_joint("crank", Revolute("y"), "ground", "crank", **how["crank"])
    b.add_joint("pin", Revolute("y"), "crank", "rod", at_parent=(0.3 * L, 0, 0), **how["pin"])
    b.add_joint("rail", Prismatic("x"), "ground", "slider", **how["rail"])
    b.add_joint("close", Revolute("y"), "rod", "slider", at_parent=(L, 0, 0), **how["close"])
    b.add_joint("swing", Revolute("y"), "slider", "bob", **how["swing"])
    robot = sarrus.Mechanism(b.build().description, substructures=substructures)
    slides = np.array([robot.joint(n).type.kind == "Prismatic" for n in robot.joints])
    unit = np.where(slides, L, 1.0)
    if (L, m, substructures) != (1.0, 1.0, 0):
        _, q, v, _ = slider_crank(motors, closing=closing, substructures=0)
        return robot, unit * q, unit * v, unit
    q = robot.assemble(near={n: x for n, x in (("crank", 0.7), ("pin", -0.9), ("rail", 1.2)) if n in robot.joints})
    v = robot.project_velocity(q, np.linspace(0.5, 1.0, robot.nv), metric="euclidean")
    return robot, q, v, unit


def motion(robot, q, v, motors, u):
    return robot.forward_dynamics(q, v, robot.actuation_matrix(q, actuated=motors) @ u)


@pytest.mark.parametrize("substructures", [0, 1])
@pytest.mark.parametrize("closing", ["close", "pin", "crank"])
@pytest.mark.parametrize("name", MOTORS)
def test_size_and_mass_change_nothing(name, closing, substructures):
    motors = MOTORS[name]
    found = []
    for L, m in [(1.0, 1.0), *SIZES]:
        robot, q, v, _ = slider_crank(motors, L, m, closing, substructures)
        unit = np.array([m * L if n == "rail" else m * L**2 for n in robot.actuated])
        a = motion(robot, q, v, robot.actuated, np.linspace(1.0, 2.0, len(motors)) * unit)
        short, status = robot.actuator_efforts(q, v, a, return_status=True)
        general, general_status = robot.actuator_efforts(q, v, a, actuated=robot.actuated, return_status=True)
        assert status == general_status == 0
        many = robot.actuator_efforts(np.tile(q, (5, 1)), v, a)[4]
        found.append([short / unit, general / unit, many / unit])
    assert_allclose(found, np.broadcast_to(found[0][1], np.shape(found)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("motor", ["crank", "rail"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_one_motor_cannot_do_it_cannot_in_any_size(motor, share):
    """The pendulum has no motor: a motion that requires one raises an error, and another one does not."""
    for L, m in [(1.0, 1.0), *SIZES]:
        robot, q, v, _ = slider_crank((motor,), L, m)
        S = robot.actuation_matrix(q, actuated=[motor, "swing"])
        a = robot.forward_dynamics(q, v, S @ (np.array([L if motor == "crank" else 1.0, share * L]) * m * L))
        want = 3 if share else 0
        assert robot.actuator_efforts(q, v, a, return_status=True)[1] == want
        assert robot.actuator_efforts(q, v, a, actuated=[motor], return_status=True)[1] == want


def test_a_small_force_beside_a_large_moment():
    """One unit decides if a motion is realisable: a slider 0.1 mm long whose rail lacks its motor."""
    L = 1e-4
    robot, q, v, _ = slider_crank(("swing",), L)
    a = motion(robot, q, v, ["crank"], np.array([L * L]))
    assert_array_equal(robot.actuator_efforts(q, v, a, return_status=True)[1], 3)
