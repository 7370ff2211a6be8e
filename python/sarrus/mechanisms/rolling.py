"""Wheels that roll without slip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..building.builder import Builder
from ..description.joints import Free, Prismatic, Revolute
from ..spatial import Inertia
from .drawing import positive, true_or_false

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["rolling_disc"]


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
    upright : whether it is kept upright and has the coordinates of the slides: q = (x, y, steering angle, rolling angle). It rolls
        along x at a steering angle of zero; the two angles are driven. Otherwise it is free to lean and fall
    radius : [m]
    mass : [kg]
    steer_inertia, roll_inertia : about a diameter and about the axle [kg m²]; the second is at most twice the first

    Returns
    -------
    Mechanism with the body "disc" (its frame in its middle, y along the axle) and the constraint "contact": one row along the normal and
    two across, which are not holonomic. Free, it hangs on the joint "float"; upright, on the joints "x", "y", "steer" and "roll", with
    bodies without mass between them. At home it stands at the origin

    Raises
    ------
    ModelError
        A size that is not positive; inertias that no body can have.

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
