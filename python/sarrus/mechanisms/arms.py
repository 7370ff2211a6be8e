"""Arms whose joints all turn."""

from __future__ import annotations

import math

import numpy as np

from ..building.builder import Builder
from ..description.joints import Fixed, Revolute, Spherical, Universal
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia
from .drawing import is_zero, positive


def six_axis_arm(
    sphere: float = 0.0, upper: float = 0.4, fore: float = 0.4, tool: float = 0.1, fingertip: float = 0.0
) -> Mechanism:
    """Arm with a shoulder, an elbow and a spherical wrist; its tip may be kept on a ball, on which it slides without friction, or rolls.

    With all joints at zero it is stretched along x, 0.4 m above the ground. At home the tool points down.

    Parameters
    ----------
    sphere : radius of the ball [m], whose top the tip touches at home; 0 for none
    upper, fore, tool : lengths of the upper arm, the forearm and the tool, to its tip [m]
    fingertip : radius of the round end of the tool [m], which rolls on the ball without slip or spin; 0: the tip is a point, and slides

    Returns
    -------
    Mechanism with the bodies "column", "upper", "fore", "roll", "wrist" and "tool", the joints "turn" (z), "shoulder", "elbow" (y),
    "roll" (x), "wrist" (y) and "tool" (x), all actuated, and the frame "tip". With a ball: the frame "ball" in its middle and the constraint
    "contact", whose first multiplier is the force [N] on the tip, away from the ball; of a round tip three more, two across and the moment
    about the normal

    Raises
    ------
    ModelError
        A size that is not positive.

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
    for name, radius in (("sphere", sphere), ("fingertip", fingertip)):
        if not is_zero(radius):
            positive(**{name: radius})
    if fingertip and not sphere:
        raise ModelError(f"fingertip = {fingertip!r} m rolls on a ball: give its radius, sphere=")
    b = Builder("six-axis arm")
    before, at, home = "ground", (0.0, 0.0, 0.0), {}
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
        if length:
            inertia = Inertia.rod(mass, (0, 0, 0), (length, 0, 0), radius=length / 8)
        else:
            inertia = Inertia.sphere(mass, 0.06)
        b.add_body(body, inertia)
        b.add_joint(joint, Revolute(axis, effort_limit=effort), before, body, at_parent=at, actuated=True)
        home[joint] = angle
        before, at = body, (0.0, 0.0, 0.4) if body == "column" else (length, 0.0, 0.0)
    b.add_frame("tip", "tool", at)
    if sphere:
        reach = upper * math.cos(level) + fore * math.cos(level + bent)
        height = 0.4 - upper * math.sin(level) - fore * math.sin(level + bent) - tool
        b.add_frame("ball", "ground", (reach, 0.0, height - sphere))
        middle = (reach, 0.0, height - sphere)
        if fingertip:
            center = (tool - fingertip, 0.0, 0.0)
            b.add_rolling(
                "contact", "tool", radius=fingertip, center=center, point=middle, on_radius=sphere, spin=False
            )
        else:
            b.add_distance("contact", ("ground", middle), ("tool", at), length=sphere)
    b.set_home(home)
    return b.build()


def two_arms(apart: float = 0.6, load: float = 2.0) -> Mechanism:
    """Two six-axis arms side by side that hold one load: twelve motors for its six freedoms.

    Parameters
    ----------
    apart : between the arms, and between their grips on the load [m]
    load : its mass [kg]

    Returns
    -------
    Mechanism with the two arms' bodies and joints, as :func:`six_axis_arm` has them, behind "left_" and "right_", the body "load" (its frame in
    the middle of the grips), and the fixed joints "left_grip" and "right_grip", of which one closes the loop

    Raises
    ------
    ModelError
        A number that is not positive.

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
    positive(apart=apart, load=load)
    b, arm = Builder("two arms"), six_axis_arm()
    tip = next(frame.placement for frame in arm.description.frames if frame.name == "tip")
    b.add_body("load", Inertia.box(load, (0.1, apart, 0.1)))
    for side, y in (("left", apart / 2), ("right", -apart / 2)):
        b.attach(arm, prefix=f"{side}_", at=(0.0, y, 0.0))
        ends = f"{side}_tool", "load"
        b.add_joint(f"{side}_grip", Fixed(), *ends, at_parent=tip, at_child=(0.0, y, 0.0), loop=side == "right")
    return b.build()


def human_arm(mass: float = 70.0, height: float = 1.75) -> Mechanism:
    """A person's right arm, hanging: a ball in the shoulder, elbow and forearm that turn, a wrist of two axes.

    At home the upper arm hangs down (-z), the elbow is bent by a right angle and the hand points forward (x).

    Parameters
    ----------
    mass : of the person [kg]
    height : of the person [m]

    Returns
    -------
    Mechanism with the bodies "upper arm", "forearm", "radius" and "hand", the joints "shoulder" (Spherical), "elbow" (y), "pronation" (along the
    forearm) and "wrist" (Universal y x), all actuated, and the frame "fingers": seven degrees of freedom

    Raises
    ------
    ModelError
        A number that is not positive.

    References
    ----------
    van der Merwe 1995, 6.1: a human's limbs. Winter, Biomechanics and motor control of human movement, 2009, table 4.1: masses, lengths, centres
    of mass and radii of gyration.

    Examples
    --------
    >>> import sarrus
    >>> arm = sarrus.mechanisms.human_arm()
    >>> arm.nv, round(arm.mass, 2)
    (7, 3.5)
    """
    positive(mass=mass, height=height)

    def limb(share: float, length: float, center: float, gyration: float) -> Inertia:
        """Slender, down from its upper end."""
        across = share * mass * (gyration * length) ** 2
        return Inertia(share * mass, (0.0, 0.0, -center * length), np.diag([across, across, 0.02 * across]))

    upper, fore, hand = 0.186 * height, 0.146 * height, 0.108 * height
    b = Builder("human arm")
    b.add_body("upper arm", limb(0.028, upper, 0.436, 0.322))
    b.add_body("forearm", limb(0.008, fore, 0.430, 0.303))  # half of it turns with the radius
    b.add_body("radius", limb(0.008, fore, 0.430, 0.303))
    b.add_body("hand", limb(0.006, hand, 0.506, 0.297))
    b.add_joint("shoulder", Spherical(), "ground", "upper arm", actuated=True)
    b.add_joint("elbow", Revolute("-y"), "upper arm", "forearm", at_parent=(0, 0, -upper), actuated=True)
    b.add_joint("pronation", Revolute("z"), "forearm", "radius", actuated=True)
    b.add_joint("wrist", Universal("y", "x"), "radius", "hand", at_parent=(0, 0, -fore), actuated=True)
    b.add_frame("fingers", "hand", (0.0, 0.0, -hand))
    b.set_home({"elbow": math.pi / 2})
    return b.build()
