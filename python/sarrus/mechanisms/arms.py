"""Arms whose joints all turn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..building.builder import Builder
from ..description.joints import Revolute
from ..errors import ModelError
from ..spatial import Inertia
from .drawing import is_zero, positive

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["six_axis_arm"]


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
            round_end = {"radius": fingertip, "center": (tool - fingertip, 0.0, 0.0), "spin": False}
            b.add_rolling("contact", "tool", point=middle, on_radius=sphere, **round_end)
        else:
            b.add_distance("contact", ("ground", middle), ("tool", at), length=sphere)
    b.set_home(home)
    return b.build()
