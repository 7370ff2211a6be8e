"""Hands that hold something."""

from __future__ import annotations

import cmath
import math

from numpy.typing import ArrayLike

from ..building.builder import Builder
from ..description.joints import Free, Revolute, Spherical
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import apex, positive


def three_finger_hand(
    palm_radius: float = 0.06,
    proximal: float = 0.06,
    distal: float = 0.05,
    object_radius: float = 0.03,
    object_height: float = 0.09,
    object_mass: float = 0.2,
    mass: float = 0.05,
) -> Mechanism:
    """Three fingers of three joints each, palm up, hold a ball by three points on its equator.

    Each contact is a point that neither slips nor lets go (hard finger with friction). The ball has all six degrees of freedom; nine
    motors move it, and squeeze it in three ways.

    Parameters
    ----------
    palm_radius : of the fingers' bases from the middle [m]
    proximal, distal : lengths of the fingers' links [m]; the knuckle between the first two joints has proximal / 3
    object_radius, object_height : of the ball, and of its middle over the palm at home [m]
    object_mass : [kg]
    mass : of a finger's link [kg]; the knuckle has a third

    Returns
    -------
    Mechanism with the bodies "knuckle<k>", "proximal<k>", "distal<k>", k = 1, 2, 3 at 0, 120 and 240 degrees from x, and "object", and
    the joints "spread<k>" (sideways), "bend<k>" and "curl<k>" (inwards, all actuated), "float" and "contact<k>" (Spherical)

    Raises
    ------
    ModelError
        A size that is not positive; fingers that do not reach the ball.

    References
    ----------
    Murray, Li and Sastry, A mathematical introduction to robotic manipulation, 1994, ch. 5 (grasps).

    Examples
    --------
    >>> import sarrus
    >>> hand = sarrus.mechanisms.three_finger_hand()
    >>> hand.nv, len(hand.actuated), hand.nc
    (15, 9, 9)
    """
    positive(palm_radius=palm_radius, proximal=proximal, distal=distal, mass=mass)
    positive(object_radius=object_radius, object_height=object_height, object_mass=object_mass)
    # a finger in its upright plane, x outwards and z up: the joint above the knuckle, the elbow outside, the contact
    knuckle = proximal / 3
    root = complex(palm_radius, knuckle)
    contact = complex(object_radius, object_height)
    elbow = apex(contact, root, distal, proximal)
    first, second = elbow - root, contact - elbow
    # links are along z at zero, and turn from z to x
    bend = -cmath.phase(first / 1j)
    curl = -cmath.phase(second / first)

    b = Builder("hand of three fingers")
    home: dict[str, ArrayLike] = {}
    turns = [Transform.from_rpy(0, 0, 2 * math.pi * k / 3) for k in range(3)]
    for k, turn in enumerate(turns, start=1):
        previous, place = "ground", turn @ Transform(translation=(palm_radius, 0, 0))
        for part, joint, axis, size, portion, angle in (
            ("knuckle", "spread", "x", knuckle, 1 / 3, 0.0),
            ("proximal", "bend", "y", proximal, 1.0, bend),
            ("distal", "curl", "y", distal, 1.0, curl),
        ):
            b.add_body(f"{part}{k}", Inertia.rod(portion * mass, (0, 0, 0), (0, 0, size), radius=proximal / 8))
            b.add_joint(f"{joint}{k}", Revolute(axis), previous, f"{part}{k}", at_parent=place, actuated=True)
            home[f"{joint}{k}"] = angle
            previous, place = f"{part}{k}", Transform(translation=(0, 0, size))
    b.add_body("object", Inertia.sphere(object_mass, object_radius))
    b.add_joint("float", Free(), "ground", "object")
    home["float"] = [0, 0, 0, 1, 0, 0, object_height]
    for k, turn in enumerate(turns, start=1):
        at = turn.apply((object_radius, 0, 0))
        ends = f"distal{k}", "object"
        b.add_joint(f"contact{k}", Spherical(), *ends, at_parent=(0, 0, distal), at_child=at, loop=True)
    b.set_home(home)
    return b.build()
