"""Two legs whose knees and ankles are moved by linkages from motors in the hips."""

from __future__ import annotations

from typing import NamedTuple

from .._arrays import ArrayLike
from ..building.builder import Builder
from ..description.joints import Free, Revolute
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import positive

Point = tuple[float, float, float]

# of a limb in its x-z plane, from the hip's axis, where the leg is as long as one: knee, ankle's first and second axis, the crank's axis and
# its pin, where the rod holds the shin
HIP, KNEE, TURN, ANKLE = (0.0, 0.0), (0.07, -0.5), (0.0, -0.9), (0.0, -1.0)
CRANK, PIN, HEEL = (0.1, 0.1), (0.27, 0.15), (0.23, -0.42)
INNER, OUTER, SOLE = 0.15, 0.37, 0.1  # limbs from the middle, and the sole below the ankle


class _Part(NamedTuple):
    """A body of a limb, the axis and the place of the joint before it, where its far end is, and its share of the mass."""

    name: str
    parent: str
    joint: str
    axis: str
    at: tuple[float, float]
    end: tuple[float, float]
    mass: float


LIMB = (
    _Part("thigh", "hip", "swing", "y", HIP, KNEE, 0.03),
    _Part("shin", "thigh", "knee", "y", KNEE, TURN, 0.03),
    _Part("turn", "shin", "turn", "z", TURN, ANKLE, 0.01),
    _Part("cross", "turn", "lean", "x", ANKLE, (0.0, -1.05), 0.005),
    _Part("crank", "hip", "crank", "y", CRANK, PIN, 0.005),
    _Part("rod", "crank", "pin", "y", PIN, HEEL, 0.01),
)


def biped(leg: float = 0.3, mass: float = 2.5) -> Mechanism:
    """Two feet, each on two limbs side by side, twelve motors and six loops: hips, knees and ankles have no motor below the hip but one.

    A limb rolls about x in the pelvis, and its thigh swings about y. A crank beside it moves the shin by a rod, a four-bar. Below it turns about
    z, x and y to the foot, which both limbs of a leg hold: a loop of eleven joints. So a foot has all six freedoms, by six motors. At home
    soles are on z = 0, and everything is as far right as left. Of the thirty rows of the loops twelve are redundant, those that keep the four
    four-bars in their planes.

    Parameters
    ----------
    leg : from the hip's axis down to the ankle's [m]
    mass : of everything [kg]

    Returns
    -------
    Mechanism with the bodies "pelvis", "left_foot" (its frame at the ankles' axis, between the limbs), "left_inner_hip", "left_inner_thigh",
    "left_inner_shin", "left_inner_turn", "left_inner_cross", "left_inner_crank", "left_inner_rod", the same of "left_outer" and on the
    right; the joints "float", "left_inner_roll", "left_inner_swing", "left_inner_crank", "left_outer_swing", "left_outer_crank" and
    "left_inner_ankle" (actuated), those between as "left_inner_knee", "..._turn", "..._lean", "..._pin" (crank and rod), and the closing
    "..._heel" (rod and shin) and "left_outer_ankle"; the frames "left_sole" and "right_sole"

    Raises
    ------
    ModelError
        A size that is not positive.

    References
    ----------
    Gim, Kim and Yamane, Design and fabrication of a bipedal robot using serial-parallel hybrid leg mechanism, IROS 2018: the topology; sizes
    and masses are others.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.biped()
    >>> robot.nv, robot.nc, robot.mobility(robot.assemble()).degrees_of_freedom
    (36, 30, 18)
    """
    positive(leg=leg, mass=mass)
    b = Builder("biped")
    b.add_body("pelvis", Inertia.box(0.3 * mass, (0.3 * leg, 0.9 * leg, 0.2 * leg)))
    b.add_joint("float", Free(), "ground", "pelvis")
    home: dict[str, ArrayLike] = {"float": [0, 0, 0, 1, 0, 0, (1.0 + SOLE) * leg]}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        foot, middle = f"{side}_foot", sign * (INNER + OUTER) / 2
        for limb, y in ((f"{side}_inner", sign * INNER), (f"{side}_outer", sign * OUTER)):
            inner = limb.endswith("inner")
            _limb(b, limb, (0.0, y * leg, 0.0), leg, mass)
            home |= {f"{limb}_{joint}": 0.0 for joint in ("roll", *(part.joint for part in LIMB))}
            if inner:
                flat = Inertia.box(0.05 * mass, (0.45 * leg, 0.3 * leg, 0.04 * leg))
                b.add_body(foot, flat.transformed(Transform(translation=(0, 0, -0.08 * leg))))
            ankle = Revolute("y", effort_limit=6.0)
            at = (0.0, (y - middle) * leg, 0.0)
            b.add_joint(f"{limb}_ankle", ankle, f"{limb}_cross", foot, at_child=at, actuated=inner, loop=not inner)
        home[f"{side}_inner_ankle"] = 0.0
        b.add_frame(f"{side}_sole", foot, (0, 0, -SOLE * leg))
    b.set_home(home)
    return b.build()


def _limb(b: Builder, limb: str, hip: Point, leg: float, mass: float) -> None:
    """From the pelvis to the cross in the ankle, and the crank and the rod that close its four-bar; frames are where their joints are."""
    b.add_body(f"{limb}_hip", Inertia.box(0.06 * mass, (0.15 * leg, 0.1 * leg, 0.15 * leg)))
    roll = Revolute("x", effort_limit=6.0)
    b.add_joint(f"{limb}_roll", roll, "pelvis", f"{limb}_hip", at_parent=hip, actuated=limb.endswith("inner"))
    starts = {"hip": HIP}
    for part in LIMB:
        starts[part.name], near = part.at, starts[part.parent]
        body = f"{limb}_{part.name}"
        end = tuple(leg * x for x in _between(part.at, part.end))
        b.add_body(body, Inertia.rod(part.mass * mass, (0, 0, 0), end, radius=0.02 * leg))
        motor = part.joint in ("swing", "crank")
        joint = Revolute(part.axis, effort_limit=6.0) if motor else Revolute(part.axis)
        place = tuple(leg * x for x in _between(near, part.at))
        b.add_joint(f"{limb}_{part.joint}", joint, f"{limb}_{part.parent}", body, at_parent=place, actuated=motor)
    on_rod, on_shin = (tuple(leg * x for x in _between(at, HEEL)) for at in (PIN, KNEE))
    bodies = f"{limb}_rod", f"{limb}_shin"
    b.add_joint(f"{limb}_heel", Revolute("y"), *bodies, at_parent=on_rod, at_child=on_shin, loop=True)


def _between(start: tuple[float, float], end: tuple[float, float]) -> Point:
    """From one point of the x-z plane to another."""
    return end[0] - start[0], 0.0, end[1] - start[1]
