"""Massless bodies in loops: well-posed results are limits for vanishing mass; others raise errors with the names."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Builder, Inertia, Prismatic, Revolute
from sarrus.description import RollingSpec
from sarrus.simulation.setup import METHODS

LIGHT = 1e-9  # [kg] beside 1 kg
NOTHING = Inertia(0.0, (0, 0, 0), np.zeros((3, 3)))
SLIDER_CRANK = ("crank pin", "rod pin", "rail", "slider pin")
START = {"crank pin": 0.7, "rod pin": -1.0, "rail": 1.2}


def rod(mass, length):
    return Inertia.rod(mass, (0, 0, 0), (length, 0, 0), 0.01) if mass else NOTHING


def slider_crank(closing="slider pin", crank=1.0, rod_mass=0.0, slider=1.0, substructures=None):
    b = Builder("slider-crank")
    b.add_body("crank", rod(crank, 0.4))
    b.add_body("rod", rod(rod_mass, 1.0))
    b.add_body("slider", Inertia.sphere(slider, 0.1) if slider else NOTHING)
    kind = {name: {"tree": name != closing, "loop": name == closing} for name in SLIDER_CRANK}
    b.add_joint("crank pin", Revolute("y"), "ground", "crank", actuated=True, **kind["crank pin"])
    b.add_joint("rod pin", Revolute("y"), "crank", "rod", at_parent=(0.4, 0, 0), **kind["rod pin"])
    b.add_joint("rail", Prismatic("x"), "ground", "slider", **kind["rail"])
    b.add_joint("slider pin", Revolute("y"), "rod", "slider", at_parent=(1.0, 0, 0), **kind["slider pin"])
    return sarrus.Mechanism(b.build().description, substructures=substructures)


def state(robot):
    q = robot.assemble(near={name: x for name, x in START.items() if name in robot.joints})
    return q, robot.project_velocity(q, np.linspace(1.0, -0.5, robot.nv), metric="euclidean")


MASSLESS = {"the rod": {}, "all but the slider": {"crank": 0.0}, "all but the crank": {"slider": 0.0}}
solvers = pytest.mark.parametrize("substructures", [0, 1, 2])
cuts = pytest.mark.parametrize("closing", SLIDER_CRANK)


@solvers
@cuts
@pytest.mark.parametrize("which", MASSLESS)
def test_what_a_mass_that_tends_to_zero_does(which, closing, substructures):
    """Every tree, joint coordinates and substructures, single states and batches: accelerations, forces, impacts, nearest velocities, efforts."""
    masses = {"crank": 1.0, "rod_mass": 0.0, "slider": 1.0, **MASSLESS[which]}
    answers = {}
    for light in (0.0, LIGHT, 2 * LIGHT):
        robot = slider_crank(closing, **{k: m or light for k, m in masses.items()}, substructures=substructures)
        q, v = state(sarrus.Mechanism(robot.description, substructures=0))
        tau = robot.actuation_matrix(q, actuated=["crank pin"])[:, 0]
        a, loops = robot.forward_dynamics(q, v, tau, return_reactions=True)
        pushed = v + np.linspace(-0.3, 0.4, robot.nv)
        answers[light] = [
            a,
            robot.forward_dynamics(np.tile(q, (5, 1)), np.tile(v, (5, 1)), tau)[3],
            loops.multipliers,
            *robot.impact(q, pushed),
            robot.project_velocity(q, pushed),
            robot.actuator_efforts(q, v, a) - 1.0,
        ]
        assert loops.error < 1e-10
    for none, one, two in zip(*answers.values(), strict=True):
        assert_allclose(none, 2 * one - two, atol=1e-8 * max(1.0, np.abs(none).max()))


@cuts
@pytest.mark.parametrize("method", sorted(METHODS))
def test_simulation(closing, method):
    ends = []
    for light in (0.0, LIGHT):
        robot = slider_crank(closing, rod_mass=light)
        q, v = state(robot)
        run = sarrus.simulate(robot, q, v, 0.1, method=method, dt=1e-3)
        ends.append(np.concatenate([run.q[-1], run.v[-1]]))
    assert_allclose(ends[0], ends[1], atol=1e-5)


@cuts
@solvers
def test_what_else_is_asked_of_them(closing, substructures):
    """Linear models, reduced equations, mobility, nearest configurations, and corrective stabilisation, which needs inertia if loops are open."""
    answers = []
    for light in (0.0, LIGHT):
        robot = slider_crank(closing, rod_mass=light, substructures=substructures)
        q, v = state(sarrus.Mechanism(robot.description, substructures=0))
        rest, tau = np.zeros(robot.nv), robot.actuation_matrix(q, actuated=["crank pin"])[:, 0]
        held = robot.actuator_efforts(q, rest, rest)[0] * tau
        near = robot.integrate(q, 1e-4 * np.linspace(1.0, -0.5, robot.nv))
        reduced = sarrus.formulations.reduced_dynamics(robot, q, v, independent=[robot.joints[0]])
        answers.append(
            [
                robot.linearize(q, rest, held).A,
                reduced.forward([1.0]),
                robot.mobility(q).degrees_of_freedom,
                robot.project_configuration(near, metric="mass"),
            ]
        )
        if light:
            continue
        run = {"duration": 0.002, "method": "rk4", "dt": 1e-4, "stabilisation": "corrective"}
        if robot._without_inertia:
            with pytest.raises(
                sarrus.ModelError, match=r"'corrective' needs inertia along each joint .* pass 'projection'"
            ):
                sarrus.simulate(robot, q, v, **run)
        else:
            assert sarrus.simulate(robot, q, v, **run).loop_error.max() < 1e-6
    for none, some in zip(*answers, strict=True):
        assert_allclose(none, some, atol=1e-5 * max(1.0, np.abs(none).max()))


def floating_chain(masses):
    """Return two massless rods in series between a crank and a pendulum, which remove three of four degrees of freedom."""
    b = Builder("six-bar")
    for k, mass in enumerate(masses):
        b.add_body(f"b{k}", rod(mass, 0.5))
        b.add_joint(f"j{k}", Revolute("y"), f"b{k - 1}" if k else "ground", f"b{k}", at_parent=(0.5 if k else 0, 0, 0))
    b.add_joint(
        "close", Revolute("y"), f"b{len(masses) - 1}", "ground", at_parent=(0.5, 0, 0), at_child=(1.1, 0, 0), loop=True
    )
    return b.build()


@pytest.mark.parametrize("which", list(itertools.combinations(range(3), 1)) + list(itertools.combinations(range(3), 2)))
def test_anywhere_in_the_tree(which):
    ends = []
    for light in (0.0, LIGHT, 2 * LIGHT):
        robot = floating_chain([light if k in which else 1.0 for k in range(3)])
        q = robot.assemble(near={"j0": -1.0, "j1": 1.0, "j2": 0.7})
        ends.append(robot.forward_dynamics(q, np.zeros(3), np.ones(3)))
    assert_allclose(ends[0], 2 * ends[1] - ends[2], atol=1e-8 * np.abs(ends[0]).max())


def test_a_point_mass_on_its_axis():
    """The body has mass, but no inertia about the axis."""
    found = []
    for size in (0.0, 1e-10, 2e-10):
        b = Builder("bush")
        b.add_body("bush", Inertia(1.0, (0, 0, 0), np.eye(3) * size))
        b.add_body("arm", rod(1.0, 0.5))
        b.add_joint("turn", Revolute("y"), "ground", "bush")
        b.add_joint("pin", Revolute("y"), "ground", "arm", at_parent=(1.0, 0, 0))
        b.add_coupler("gear", {"turn": 1.0, "pin": -2.0})
        found.append(b.build().forward_dynamics(np.zeros(2), np.zeros(2), [0.3, 0.0]))
    assert_allclose(found[0], 2 * found[1] - found[2], rtol=1e-8)


def test_a_motion_without_inertia_is_named():
    """A four-bar without mass."""
    robot = floating_chain([0.0, 0.0, 0.0])
    q = robot.assemble(near={"j0": -1.0, "j1": 1.0, "j2": 0.7})
    with pytest.raises(sarrus.StateError, match="a motion without inertia, of joints"):
        robot.forward_dynamics(q, np.zeros(3), np.zeros(3))
    assert robot.forward_dynamics(q, np.zeros(3), np.zeros(3), return_status=True)[1] == 2


def test_a_joint_that_no_loop_holds_is_named():
    d = slider_crank().description
    spin = Builder("spinning")
    for body in d.bodies:
        spin.add_body(body.name, body.inertia)
    for j in d.joints:
        spin.add_joint(
            j.name, j.joint, j.parent, j.child, at_parent=j.at_parent, at_child=j.at_child, tree=j.tree, loop=j.loop
        )
    spin.add_body("vane", NOTHING)
    spin.add_joint("loose", Revolute("z"), "slider", "vane")
    robot = spin.build()

    assert robot.warnings == ("nothing has inertia along joint 'loose': forward dynamics has no answer",)
    with pytest.raises(sarrus.StateError, match="nothing has inertia along joint 'loose'"):
        robot.forward_dynamics(robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv))


@pytest.mark.parametrize("method", ["rk4", "contact", "implicit_midpoint", "dopri5"])
def test_a_run_says_what_has_no_inertia(method):
    """The message blames neither constraints, of which there are none, nor the steps."""
    b = Builder("ball")
    b.add_body("ball", NOTHING)
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    robot = b.build()
    with pytest.raises(sarrus.IntegrationError, match="no body has inertia along joint 'float'"):
        sarrus.simulate(robot, robot.neutral(), np.zeros(6), 0.1, method=method)


def test_rounding_holds_nothing():
    """An upright disc on a massless yoke on level ground: the row of the height is zero or rounding, and does not affect the motion."""
    steer, roll, mass, radius = 0.05, 0.1, 2.0, 0.3
    b = Builder("disc on a yoke")
    b.add_body("yoke")
    b.add_body("disc", Inertia(mass, (0, 0, 0), np.diag([steer, roll, steer])))
    b.add_joint("plane", sarrus.Gimbal("rz tx ty"), "ground", "yoke", at_parent=(0, 0, radius))
    b.add_joint("axle", Revolute("y"), "yoke", "disc")
    rolls = RollingSpec("floor", "disc", radius, (0, 0, 0), (0, 1, 0), "ground", (0, 0, 0), (0, 0, 1), None)
    robot = sarrus.Mechanism(dataclasses.replace(b.build().description, constraints=(rolls,)))
    heading = np.linspace(0.05, 6.0, 64)
    q = np.stack([heading, np.full(64, 0.4), np.full(64, -0.2), np.full(64, 0.7)], axis=-1)
    v = np.array([0.3, radius - 0.2 * 0.3, -0.4 * 0.3, 1.0])
    for a in (
        robot.forward_dynamics(q, v, [0.02, 0, 0, 0.5]),
        [robot.forward_dynamics(x, v, [0.02, 0, 0, 0.5]) for x in q],
    ):
        assert_allclose(
            np.asarray(a)[:, [0, 3]], np.tile([0.02 / steer, 0.5 / (roll + mass * radius**2)], (64, 1)), rtol=1e-9
        )
