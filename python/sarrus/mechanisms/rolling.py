"""Wheels that roll without slip."""

from __future__ import annotations

import numpy as np

from ..building.builder import Builder
from ..description.joints import Free, Planar, Prismatic, Revolute
from ..mechanism import Mechanism
from ..spatial import Inertia
from .drawing import positive, real, true_or_false


def rolling_disc(
    upright: bool = False,
    radius: float = 0.3,
    mass: float = 2.0,
    steer_inertia: float = 0.05,
    roll_inertia: float = 0.1,
) -> Mechanism:
    """Disc that rolls without slip on the plane z = 0, like a coin, or upright, like a unicycle's wheel.

    Parameters
    ----------
    upright : if True, the disc stays upright, with q = (x, y, steering angle, rolling angle) [m, m, rad, rad]. At a steering angle of zero it rolls
        along x; both angles are actuated. If False, the disc can lean and fall
    radius : radius of the disc [m]
    mass : mass of the disc [kg]
    steer_inertia, roll_inertia : moments of inertia about a diameter and about the axle [kg m²]; the second is at most twice the first

    Returns
    -------
    Mechanism with the body "disc" (its frame at its centre, y along the axle). The constraint "contact" has one row along the plane's normal and two
    tangential, nonholonomic rows. If the disc is free, its joint is "float". If it stays upright, it has the joints "x", "y", "steer" and "roll",
    with massless bodies between them. At home the disc is upright at the origin

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the inertias are unphysical.

    References
    ----------
    Li and Wu 2011, 4.6, rolling disk: x' = radius cos(steer) roll', y' = radius sin(steer) roll'.

    Examples
    --------
    >>> import sarrus
    >>> disc = sarrus.mechanisms.rolling_disc(upright=True)
    >>> disc.forward_dynamics([0, 0, 0.2, 0], [0, 0, 0, 0], [0, 0, 0.02, 0.5]).round(6)
    array([0.525036, 0.10643 , 0.4     , 1.785714])
    """
    true_or_false(upright=upright)
    positive(radius=radius, mass=mass, steer_inertia=steer_inertia, roll_inertia=roll_inertia)
    b = Builder("rolling disc")
    b.add_body("disc", Inertia(mass, (0, 0, 0), np.diag([steer_inertia, roll_inertia, steer_inertia])))
    if upright:
        for body in ("along", "across", "fork"):
            b.add_body(body)
        b.add_joint("x", Prismatic("x"), "ground", "along", at_parent=(0, 0, radius))
        b.add_joint("y", Prismatic("y"), "along", "across")
        b.add_joint("steer", Revolute("z"), "across", "fork", actuated=True)
        b.add_joint("roll", Revolute("y"), "fork", "disc", actuated=True)
        b.set_home({"x": 0.0, "y": 0.0, "steer": 0.0, "roll": 0.0})
    else:
        b.add_joint("float", Free(), "ground", "disc")
        b.set_home({"float": [0, 0, 0, 1, 0, 0, radius]})
    b.add_rolling("contact", "disc", radius=radius, axle=(0, 1, 0))
    return b.build()


def whipple_bicycle(wheelbase: float = 1.02, trail: float = 0.08, tilt: float = np.pi / 10) -> Mechanism:
    """Whipple bicycle with a rigid rider: two frames, a steering hinge, and two knife-edged wheels that roll without slip.

    Parameters that are not arguments have the values of the benchmark of Meijaard, Papadopoulos, Ruina and Schwab (2007). The x-axis points forward,
    y to the left, z up. The tree has nine coordinates and nine velocities. The constraints leave seven coordinates and three velocities independent.

    Parameters
    ----------
    wheelbase : distance of the wheels' contacts at home [m]
    trail : distance of the front wheel's contact behind the intersection of the steering axis with the ground [m]
    tilt : angle between the vertical and the steering axis, which leans backwards [rad]

    Returns
    -------
    Mechanism with the bodies "rear frame", "rear wheel", "front frame" and "front wheel". Three massless bodies connect the ground and the
    rear frame's hub, by the joints "place" (x, y, heading), "height", "lean" and "pitch". The other joints are "rear wheel" and "steer",
    which are actuated, and "front wheel". The constraints are "rear contact" and "front contact". At home the bicycle is upright on z = 0,
    and rolls along x at 0.3 m times the velocity of "rear wheel"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the trail or the tilt is not a number.

    References
    ----------
    Meijaard, J., Papadopoulos, J., Ruina, A. and Schwab, A., Linearized dynamics equations for the balance and steer of a bicycle: a
    benchmark and review, Proc. R. Soc. A 463, 2007, table 1.

    Examples
    --------
    >>> import sarrus
    >>> bicycle = sarrus.mechanisms.whipple_bicycle()
    >>> bicycle.nv, int(sarrus.formulations.free_motions(bicycle, bicycle.assemble()).freedom)
    (9, 3)
    """
    positive(wheelbase=wheelbase)
    trail, tilt = real("trail", trail), real("tilt", tilt)
    rear, front = 0.3, 0.35  # radii of the wheels [m]
    axis = (-np.sin(tilt), 0.0, np.cos(tilt))

    def symmetric(xx: float, yy: float, zz: float, xz: float) -> list[list[float]]:
        return [[xx, 0.0, xz], [0.0, yy, 0.0], [xz, 0.0, zz]]

    b = Builder("Whipple bicycle")
    for body in ("at place", "at height", "leaning"):
        b.add_body(body)
    # origins of the bodies' frames: the rear bodies' at the rear hub, the front frame's at the intersection of the steering axis with the ground
    b.add_body("rear frame", Inertia(85.0, (0.3, 0.0, 0.9 - rear), symmetric(9.2, 11.0, 2.8, -2.4)))
    b.add_body("rear wheel", Inertia(2.0, (0, 0, 0), np.diag([0.0603, 0.12, 0.0603])))
    grip = (0.9 - wheelbase - trail, 0.0, 0.7)
    b.add_body("front frame", Inertia(4.0, grip, symmetric(0.05892, 0.06, 0.00708, 0.00756)))
    b.add_body("front wheel", Inertia(3.0, (0, 0, 0), np.diag([0.1405, 0.28, 0.1405])))
    b.add_joint("place", Planar("z"), "ground", "at place", at_parent=(0.0, 0.0, rear))
    b.add_joint("height", Prismatic("z"), "at place", "at height")
    b.add_joint("lean", Revolute("x"), "at height", "leaning")
    b.add_joint("pitch", Revolute("y"), "leaning", "rear frame")
    b.add_joint("rear wheel", Revolute("y"), "rear frame", "rear wheel", actuated=True)
    head = (wheelbase + trail, 0.0, -rear)
    b.add_joint("steer", Revolute(axis), "rear frame", "front frame", at_parent=head, actuated=True)
    b.add_joint("front wheel", Revolute("y"), "front frame", "front wheel", at_parent=(-trail, 0.0, front))
    b.add_rolling("rear contact", "rear wheel", radius=rear, axle="y")
    b.add_rolling("front contact", "front wheel", radius=front, axle="y")
    return b.build()
