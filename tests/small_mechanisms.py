"""Mechanisms with closed-form solutions, methods of simulation, and states of mechanisms with loops."""

import numpy as np

import sarrus

FIXED = ("euler", "semi_implicit", "rk4", "rkmk4", "implicit_midpoint", "independent", "rosenbrock")
METHODS = (*FIXED, "dopri5")


def slider(axis="x", mass=1.0, gravity=(0.0, 0.0, 0.0), **joint):
    """Return a mechanism with one body on a straight line."""
    b = sarrus.Builder("slider", gravity=gravity)
    b.add_body("block", sarrus.Inertia.sphere(mass, 0.1))
    b.add_joint("slide", sarrus.Prismatic(axis, **joint), "ground", "block")
    return b.build()


def table(mass=1.0):
    """Return a mechanism with one body that translates along x and z under gravity."""
    b = sarrus.Builder("table")
    b.add_body("along")
    b.add_body("block", sarrus.Inertia.sphere(mass, 0.1))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "along")
    b.add_joint("z", sarrus.Prismatic("z"), "along", "block")
    return b.build()


def four_bar():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return robot, q, robot.project_velocity(q, [6.0, 0.0, 0.0])


def shaken_four_bar(earlier=0.0):
    """Return a four-bar with a pivot on a slide that a prescribed motion shakes, earlier by this time."""
    b = sarrus.Builder("shaken four-bar")
    for name, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.02))
    b.add_body("slide", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "slide", tree=True)
    b.add_prescribed_motion("drive", "rail", sarrus.laws.harmonic(0.15, rate=2.0, phase=2.0 * earlier))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0.4, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("y"), "slide", "rocker", at_parent=(1.0, 0, 0))
    b.add_joint(
        "pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=True
    )
    return b.build()


def double_pendulum():
    return sarrus.mechanisms.double_pendulum(), np.array([1.0, 0.5]), np.array([0.2, -0.3])


def bars(lengths, ground, *, limits=None, laws=None, actuated=()):
    """Return a loop of bars, with pins about y, from the origin to a point of the ground on the x axis; q = 0 is the straight chain."""
    b = sarrus.Builder("loop of bars")
    near, end = "ground", 0.0
    for k, length in enumerate(lengths):
        b.add_body(f"bar{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
        joint = sarrus.Revolute("y", limits=(limits or {}).get(k))
        b.add_joint(f"pin{k}", joint, near, f"bar{k}", at_parent=(end, 0, 0), actuated=k in actuated)
        near, end = f"bar{k}", length
    places = {"at_parent": (end, 0, 0), "at_child": (ground, 0, 0)}
    b.add_joint(f"pin{len(lengths)}", sarrus.Revolute("y"), near, "ground", **places, loop=True)
    for k, law in (laws or {}).items():
        b.add_prescribed_motion(f"drive{k}", f"pin{k}", law)
    return b.build()


def two_wheels(offset, rate):
    """Return two driven wheels with a belt: the first at 2 rad/s, the second at another rate and from another angle."""
    b = sarrus.Builder("two wheels, coupled and driven")
    for k, name in enumerate(("first", "second")):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(name, sarrus.Revolute("z"), "ground", name, at_parent=(0.2 * k, 0, 0))
    b.add_coupler("belt", {"first": 1.0, "second": -1.0})
    b.add_prescribed_motion("drive 1", "first", sarrus.laws.polynomial(0.0, 2.0))
    b.add_prescribed_motion("drive 2", "second", sarrus.laws.polynomial(offset, rate))
    return b.build()


def at(robot, coordinates):
    """Return the configuration with these coordinates of joints, and neutral coordinates of the others."""
    q = robot.neutral()
    for name, values in dict(coordinates).items():
        q[robot.joint(name).q_slice] = values
    return q


def near_home(robot, rng, size=()):
    """Return closed configurations near home, and constraint-consistent velocities: q, v."""
    home = at(robot, robot.description.home)
    step = robot.project_velocity(home, rng.uniform(-0.3, 0.3, (*size, robot.nv)))
    q = robot.project_configuration(robot.integrate(home, step))
    return q, robot.project_velocity(q, rng.standard_normal((*size, robot.nv)))


def gate():
    """Gate on a hinge, with the studs of a gas spring, whose length is 0.41 m at home; with the hinge at zero it is 0.56 m."""
    b = sarrus.Builder("gate")
    b.add_body("gate", sarrus.Inertia.box(25.0, (0.9, 1.2, 0.05)))
    b.add_joint("hinge", sarrus.Revolute("-y"), "ground", "gate", at_child=(-0.45, 0, 0), actuated=True)
    b.add_frame("stud", "gate", (-0.25, 0.5, 0))
    b.add_frame("pillar", "ground", (0.12, 0.5, -0.55))
    b.add_frame("edge", "gate", (0.45, 0, 0))
    b.set_home({"hinge": -0.8})
    return b.build()
