"""Arms with revolute joints, and hands."""

from __future__ import annotations

import cmath
import math

import numpy as np

from .._renamed import renamed_arguments
from ..building.builder import Builder
from ..description.joints import Fixed, Prismatic, Revolute, Spherical, Universal
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import Drawing, apex, in_space, positive, positive_or_zero


def six_axis_arm(
    sphere: float = 0.0, upper: float = 0.4, fore: float = 0.4, tool: float = 0.1, fingertip: float = 0.0
) -> Mechanism:
    """Arm with a shoulder, an elbow and a spherical wrist: six degrees of freedom. The tip can slide or roll on a fixed ball.

    With all joints at zero the arm is stretched along x, 0.4 m above the ground. At home the tool points down. A point tip slides on the ball without
    friction.

    Parameters
    ----------
    sphere : radius of the ball [m], which the tip touches at the ball's top at home; 0: no ball
    upper, fore, tool : lengths of the upper arm, the forearm and the tool, to its tip [m]
    fingertip : radius of the round end of the tool [m], which rolls on the ball without slip or spin; 0: a point tip, which slides

    Returns
    -------
    Mechanism with the bodies "column", "upper", "fore", "roll", "wrist" and "tool", and the frame "tip". The joints "turn" (z), "shoulder"
    and "elbow" (y), "roll" (x), "wrist" (y) and "tool" (x) are all actuated. With a ball, the mechanism also has the frame "ball" at the ball's
    centre and the constraint "contact". The constraint's first multiplier is the normal force on the tip, away from the ball [N]. A round tip has
    three more multipliers: two tangential forces [N], and the moment about the normal [N m]

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Li and Wu 2011, 4.6 (6-DoF manipulator on a sphere with frictionless point contact; rolling on a sphere).

    Examples
    --------
    >>> import sarrus
    >>> arm = sarrus.mechanisms.six_axis_arm(sphere=0.2)
    >>> arm.nv, arm.nc, len(arm.actuated)
    (6, 1, 6)
    >>> sarrus.mechanisms.six_axis_arm(sphere=0.2, fingertip=0.02).nc
    4
    """
    positive(upper=upper, fore=fore, tool=tool)
    positive_or_zero(sphere=sphere, fingertip=fingertip)
    if fingertip and not sphere:
        raise ModelError(f"fingertip = {fingertip!r} m requires a ball; pass its radius sphere=")
    b = Drawing("six-axis arm")
    before, at = "ground", (0.0, 0.0, 0.0)
    # name of joint and body, axis, mass [kg], length along x, angle at home, effort limit [N m]
    level, bent = -0.8, 1.6
    for joint, body, axis, mass, length, angle, effort in (
        ("turn", "column", "z", 8.0, 0.0, 0.0, 150.0),
        ("shoulder", "upper", "y", 6.0, upper, level, 150.0),
        ("elbow", "fore", "y", 3.0, fore, bent, 100.0),
        ("roll", "roll", "x", 1.0, 0.0, 0.0, 30.0),
        ("wrist", "wrist", "y", 1.0, 0.0, math.pi / 2 - level - bent, 30.0),
        ("tool", "tool", "x", 0.5, tool, 0.0, 30.0),
    ):
        rod = Inertia.rod(mass, (0, 0, 0), (length, 0, 0), radius=length / 8) if length else Inertia.sphere(mass, 0.06)
        b.link(body, rod, joint, Revolute(axis, effort_limit=effort), before, at, home=angle, actuated=True)
        before, at = body, (0.0, 0.0, 0.4) if body == "column" else (length, 0.0, 0.0)
    b.add_frame("tip", "tool", at)
    if sphere:
        reach = upper * math.cos(level) + fore * math.cos(level + bent)
        height = 0.4 - upper * math.sin(level) - fore * math.sin(level + bent) - tool
        middle = (reach, 0.0, height - sphere)
        b.add_frame("ball", "ground", middle)
        if fingertip:
            center = (tool - fingertip, 0.0, 0.0)
            b.add_rolling(
                "contact", "tool", radius=fingertip, center=center, point=middle, on_radius=sphere, spin=False
            )
        else:
            b.add_distance("contact", ("ground", middle), ("tool", at), length=sphere)
    return b.build()


@renamed_arguments(apart="spacing")
def two_arms(spacing: float = 0.6, load: float = 2.0) -> Mechanism:
    """Two six-axis arms side by side that hold one load: six degrees of freedom, twelve motors.

    Parameters
    ----------
    spacing : distance between the arms' bases, equal to the distance between their grips on the load [m]
    load : mass of the load [kg]

    Returns
    -------
    Mechanism with the bodies and joints of two :func:`six_axis_arm`, prefixed "left_" and "right_", and the body "load" (its frame midway between the
    grips). The fixed joints are "left_grip" and "right_grip"; the latter closes the loop

    Raises
    ------
    ModelError
        An argument is not positive.

    References
    ----------
    van der Merwe 1995, 6.1: closed chains of two manipulators and their load.

    Examples
    --------
    >>> import sarrus
    >>> arms = sarrus.mechanisms.two_arms()
    >>> arms.nv, arms.nc, len(arms.actuated), arms.internal_efforts(arms.assemble()).shape
    (12, 6, 12, (12, 6))
    """
    positive(spacing=spacing, load=load)
    b, arm = Builder("two arms"), six_axis_arm()
    tip = next(frame.placement for frame in arm.description.frames if frame.name == "tip")
    b.add_body("load", Inertia.box(load, (0.1, spacing, 0.1)))
    for side, y in (("left", spacing / 2), ("right", -spacing / 2)):
        b.attach(arm, prefix=f"{side}_", at=(0.0, y, 0.0))
        ends = f"{side}_tool", "load"
        b.add_joint(f"{side}_grip", Fixed(), *ends, at_parent=tip, at_child=(0.0, y, 0.0), loop=side == "right")
    return b.build()


def human_arm(mass: float = 70.0, height: float = 1.75) -> Mechanism:
    """A person's right arm with seven degrees of freedom: spherical shoulder, elbow, rotating forearm, and a wrist of two axes.

    At home the upper arm hangs down (-z), the elbow is bent by a right angle and the hand points forward (x).

    Parameters
    ----------
    mass : mass of the person [kg]
    height : height of the person [m]

    Returns
    -------
    Mechanism with the bodies "upper arm", "forearm", "radius" and "hand", and the frame "fingers". The joints "shoulder" (Spherical),
    "elbow" (y), "pronation" (along the forearm) and "wrist" (Universal y x) are all actuated

    Raises
    ------
    ModelError
        An argument is not positive.

    References
    ----------
    van der Merwe 1995, 6.1 (human limbs). Winter, Biomechanics and motor control of human movement, 2009, table 4.1 (masses, lengths,
    centres of mass and radii of gyration).

    Examples
    --------
    >>> import sarrus
    >>> arm = sarrus.mechanisms.human_arm()
    >>> arm.nv, round(arm.mass, 2)
    (7, 3.5)
    """
    positive(mass=mass, height=height)

    def limb(fraction: float, length: float, center: float, gyration: float) -> Inertia:
        """Inertia of a slender limb below its upper end."""
        across = fraction * mass * (gyration * length) ** 2
        return Inertia(fraction * mass, (0.0, 0.0, -center * length), np.diag([across, across, 0.02 * across]))

    upper, fore, hand = 0.186 * height, 0.146 * height, 0.108 * height
    b = Drawing("human arm")
    b.link("upper arm", limb(0.028, upper, 0.436, 0.322), "shoulder", Spherical(), "ground", actuated=True)
    # half of the forearm's mass rotates with the radius (pronation)
    forearm, elbow = limb(0.008, fore, 0.430, 0.303), (0, 0, -upper)
    b.link("forearm", forearm, "elbow", Revolute("-y"), "upper arm", elbow, home=math.pi / 2, actuated=True)
    b.link("radius", forearm, "pronation", Revolute("z"), "forearm", actuated=True)
    palm, wrist = limb(0.006, hand, 0.506, 0.297), Universal("y", "x")
    b.link("hand", palm, "wrist", wrist, "radius", (0, 0, -fore), actuated=True)
    b.add_frame("fingers", "hand", (0.0, 0.0, -hand))
    return b.build()


# ---- hands -----------------------------------------------------------------------------------------------------------


def three_finger_hand(
    palm_radius: float = 0.06,
    proximal: float = 0.06,
    distal: float = 0.05,
    object_radius: float = 0.03,
    object_height: float = 0.09,
    object_mass: float = 0.2,
    mass: float = 0.05,
) -> Mechanism:
    """Hand of three fingers, palm up, that hold a ball at three points of its equator: six degrees of freedom, nine motors.

    Each contact is a point contact that neither slips nor separates (hard finger with friction). The motors control the ball's six degrees of freedom
    and three internal forces.

    Parameters
    ----------
    palm_radius : distance of the fingers' bases from the palm's centre [m]
    proximal, distal : lengths of the fingers' links [m]; the knuckle between the first two joints has the length proximal / 3
    object_radius, object_height : radius of the ball, and height of its centre above the palm at home [m]
    object_mass : mass of the ball [kg]
    mass : mass of a finger's link [kg]; the knuckle has a third of it

    Returns
    -------
    Mechanism with the bodies "object" and "knuckle<k>", "proximal<k>", "distal<k>", k = 1, 2, 3 at 0, 120 and 240 degrees from x. The
    joints "spread<k>" (sideways), "bend<k>" and "curl<k>" (inwards) are actuated. The passive joints are "float" (the ball's Free joint) and
    "contact<k>" (Spherical loop joints)

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the fingers do not reach the ball.

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
    # points of a finger in its upright plane, x outwards and z up: the joint above the knuckle, the contact, the elbow outside
    knuckle = proximal / 3
    root = complex(palm_radius, knuckle)
    contact = complex(object_radius, object_height)
    elbow = apex(contact, root, distal, proximal)
    first, second = elbow - root, contact - elbow
    # links are along z at zero, and rotate from z to x
    bend = -cmath.phase(first / 1j)
    curl = -cmath.phase(second / first)

    b = Drawing("hand of three fingers")
    turns = [Transform.from_rpy(0, 0, 2 * math.pi * k / 3) for k in range(3)]
    for k, turn in enumerate(turns, start=1):
        previous, place = "ground", turn @ Transform(translation=(palm_radius, 0, 0))
        for part, joint, axis, size, portion, angle in (
            ("knuckle", "spread", "x", knuckle, 1 / 3, 0.0),
            ("proximal", "bend", "y", proximal, 1.0, bend),
            ("distal", "curl", "y", distal, 1.0, curl),
        ):
            rod = Inertia.rod(portion * mass, (0, 0, 0), (0, 0, size), radius=proximal / 8)
            b.link(f"{part}{k}", rod, f"{joint}{k}", Revolute(axis), previous, place, home=angle, actuated=True)
            previous, place = f"{part}{k}", Transform(translation=(0, 0, size))
    b.floating("object", Inertia.sphere(object_mass, object_radius), (0, 0, object_height))
    for k, turn in enumerate(turns, start=1):
        ends, at = (f"distal{k}", "object"), turn.apply((object_radius, 0, 0))
        b.add_joint(f"contact{k}", Spherical(), *ends, at_parent=(0, 0, distal), at_child=at, loop=True)
    return b.build()


def gripper(reach: float = 0.15, mass: float = 0.9) -> Mechanism:
    """Gripper of two fingers on linkages, on a vertical slide, with the linkage of Robotiq's 2F-85: four degrees of freedom, two motors.

    One motor rotates both drivers, which a gear couples. Driver, coupler, finger, link and hand form a closed chain of five bars on each side. A
    spring at the link presses the coupler against a stop on the driver (simulate with ``limits="enforce"``). While the coupler is at its stop, the
    chain is a parallelogram and the pads stay upright. If an object touches a finger above its pad, the coupler leaves its stop and the finger closes
    around the object. At home the gripper is open, with the pads downwards and the hand's frame at z = 0.

    Parameters
    ----------
    reach : distance from the hand's frame down to the ends of the pads [m]; 0.15 is about the original size
    mass : total mass [kg]

    Returns
    -------
    Mechanism with the bodies "hand", "left_driver", "left_coupler", "left_link", "left_finger", and the same on the right (x > 0). The joints
    "lift" (upwards) and "right_driver" (closing for positive rates) are actuated. The passive joints are "left_driver", "left_stop" (coupler on
    driver), "left_link", "left_finger" (on the link), and the same on the right. The loop joints are "left_pin" and "right_pin" (coupler and finger).
    The constraint is "gear". The frames "left_pad" and "right_pad" are at the centres of the pads' surfaces. The pads are 0.15 reach wide and 0.25
    reach high; at home their distance is 0.57 reach

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.gripper()
    >>> robot.nv, robot.nc, robot.mobility(robot.assemble()).degrees_of_freedom
    (9, 11, 4)
    """
    positive(reach=reach, mass=mass)
    # points of the right finger: axes of the driver and the link in the hand, the driver's pin, the coupler's pin on the finger, the link's end, the pad
    driver, link, pin, grip = 0.2 - 0.37j, 0.08 - 0.42j, 0.41 - 0.34j, 0.45 - 0.65j
    end, pad = link + (grip - driver), 0.285 - 0.87j
    b = Drawing("gripper")
    hand = Inertia.box(0.84 * mass, (0.6 * reach, 0.4 * reach, 0.5 * reach))
    b.link("hand", hand, "lift", Prismatic("z"), "ground", home=0.0, actuated=True)
    for side, sign in (("left", -1.0), ("right", 1.0)):

        def at(start: complex, stop: complex, sign: float = sign) -> tuple[float, float, float]:
            return in_space(reach * complex(sign * (stop - start).real, (stop - start).imag))

        for body, parent, joint, near, start, stop, share, kind in (
            ("driver", "hand", "driver", 0j, driver, pin, 0.01, Revolute("y", armature=5e-3 * mass * reach**2, damping=1e-3)),
            ("coupler", f"{side}_driver", "stop", driver, pin, grip, 0.015, Revolute("y", limits=(-1.57, 0.0) if sign > 0 else (0.0, 1.57))),
            ("link", "hand", "link", 0j, link, end, 0.025, Revolute("y", stiffness=0.05, rest=2.6 * sign)),
            ("finger", f"{side}_link", "finger", link, end, pad, 0.03, Revolute("y")),
        ):  # fmt: skip
            rod = Inertia.rod(share * mass, (0, 0, 0), at(start, stop), radius=0.03 * reach)
            names, motor = (f"{side}_{body}", f"{side}_{joint}"), body == "driver" and sign > 0
            b.link(names[0], rod, names[1], kind, parent, at(near, start), home=0.0, actuated=motor)
        bodies, on_coupler, on_finger = (f"{side}_coupler", f"{side}_finger"), at(pin, grip), at(end, grip)
        b.add_joint(f"{side}_pin", Revolute("y"), *bodies, at_parent=on_coupler, at_child=on_finger, loop=True)
        b.add_frame(f"{side}_pad", f"{side}_finger", at(end, pad))
    b.add_coupler("gear", {"left_driver": 1.0, "right_driver": 1.0})
    return b.build()
