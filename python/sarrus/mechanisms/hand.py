"""Hands that hold something."""

from __future__ import annotations

import cmath
import math

from .._arrays import ArrayLike
from ..building.builder import Builder
from ..description.joints import Free, Prismatic, Revolute, Spherical
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import apex, in_space, positive


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
        b.add_joint(
            f"contact{k}", Spherical(), f"distal{k}", "object", at_parent=(0, 0, distal), at_child=at, loop=True
        )
    b.set_home(home)
    return b.build()


def gripper(reach: float = 0.15, mass: float = 0.9) -> Mechanism:
    """Two fingers on linkages, pads downwards, on a slide that lifts them: the linkage of Robotiq's 2F-85.

    One motor turns both drivers, and a gear makes them alike. Of each finger driver, coupler, finger and link are five bars in a ring with the
    hand; a spring in the link holds the coupler against a stop on the driver (``limits="stop"``), with which they are a parallelogram and the
    pads stay upright. What touches a finger above its pad bends the coupler off its stop: the finger closes around it. At home it is open,
    the hand's frame at z = 0.

    Parameters
    ----------
    reach : from the hand's frame down to the ends of the pads [m]; 0.15 is about as large as the original
    mass : of everything [kg]

    Returns
    -------
    Mechanism with the bodies "hand", "left_driver", "left_coupler", "left_link", "left_finger" and the same on the right (x > 0); the joints
    "lift" (upwards) and "right_driver" (both actuated; it closes as it turns up), "left_driver", "left_stop" (coupler on driver), "left_link",
    "left_finger" (on the link), "left_pin" (coupler and finger, closing) and so on; the constraint "gear"; the frames "left_pad" and "right_pad"
    in the middle of the pads' surfaces, which are 0.15 reach wide, 0.25 reach high, and 0.57 reach apart

    Raises
    ------
    ModelError
        A size that is not positive.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.gripper()
    >>> robot.nv, robot.nc, robot.mobility(robot.assemble()).degrees_of_freedom
    (9, 11, 4)
    """
    positive(reach=reach, mass=mass)
    # of the right finger: axes of the driver and the link in the hand, the driver's pin, where the coupler holds the finger, the link's end, the pad
    driver, link, pin, holds = 0.2 - 0.37j, 0.08 - 0.42j, 0.41 - 0.34j, 0.45 - 0.65j
    end, pad = link + (holds - driver), 0.285 - 0.87j
    b = Builder("gripper")
    b.add_body("hand", Inertia.box(0.84 * mass, (0.6 * reach, 0.4 * reach, 0.5 * reach)))
    b.add_joint("lift", Prismatic("z"), "ground", "hand", actuated=True)
    for side, sign in (("left", -1.0), ("right", 1.0)):

        def at(start: complex, stop: complex, sign: float = sign) -> tuple[float, float, float]:
            return in_space(reach * complex(sign * (stop - start).real, (stop - start).imag))

        for body, parent, joint, near, start, stop, share, kind in (
            ("driver", "hand", "driver", 0j, driver, pin, 0.01, Revolute("y", armature=5e-3 * mass * reach**2, damping=1e-3)),
            ("coupler", f"{side}_driver", "stop", driver, pin, holds, 0.015, Revolute("y", limits=(-1.57, 0.0) if sign > 0 else (0.0, 1.57))),
            ("link", "hand", "link", 0j, link, end, 0.025, Revolute("y", stiffness=0.05, rest=2.6 * sign)),
            ("finger", f"{side}_link", "finger", link, end, pad, 0.03, Revolute("y")),
        ):  # fmt: skip
            b.add_body(f"{side}_{body}", Inertia.rod(share * mass, (0, 0, 0), at(start, stop), radius=0.03 * reach))
            motor = body == "driver" and sign > 0
            b.add_joint(f"{side}_{joint}", kind, parent, f"{side}_{body}", at_parent=at(near, start), actuated=motor)
        bodies, on_coupler, on_finger = (f"{side}_coupler", f"{side}_finger"), at(pin, holds), at(end, holds)
        b.add_joint(f"{side}_pin", Revolute("y"), *bodies, at_parent=on_coupler, at_child=on_finger, loop=True)
        b.add_frame(f"{side}_pad", f"{side}_finger", at(end, pad))
    b.add_coupler("gear", {"left_driver": 1.0, "right_driver": 1.0})
    b.set_home(dict.fromkeys(b.build().joints, 0.0))
    return b.build()
