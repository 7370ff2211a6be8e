"""Legs: Jansen's leg with a crank, a leg with a knee of crossed links, a leg with an ankle on rods, a quadruped and a biped."""

from __future__ import annotations

import cmath
import math
from typing import NamedTuple

from ..description.joints import Fixed, Revolute, Spherical, Universal
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import Drawing, Point, apex, in_space, positive, true_or_false


def strandbeest_leg(scale: float = 0.01, density: float = 0.2) -> Mechanism:
    """Leg of Theo Jansen's Strandbeest, eleven tubes that convert a crank's rotation into steps: one degree of freedom.

    The crank's axis is at the origin. During half a rotation of the crank, the foot stays at almost constant height; during the other half it moves
    forward above the ground.

    Parameters
    ----------
    scale : length of one unit of Jansen's dimensions [m]; Jansen's own legs have 0.01
    density : density of the tubes [kg/m]

    Returns
    -------
    Mechanism with the bodies "crank", "upper" and "lower" (the two triangles), "j", "k", "c" and "f" (tubes, by Jansen's letters). It has
    ten joints, among them "motor" (actuated), and the frame "foot"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Jansen, The great pretender, 2007: his "holy numbers".

    Examples
    --------
    >>> import sarrus
    >>> leg = sarrus.mechanisms.strandbeest_leg()
    >>> leg.nv, len(leg.loop_joints)
    (7, 3)
    """
    positive(scale=scale, density=density)
    numbers = (38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 7.8, 15.0)
    a, b, c, d, e, f, g, h, i, j, k, l, m = (scale * number for number in numbers)

    def tube(start: complex, end: complex) -> Inertia:
        return Inertia.rod(density * abs(end - start), in_space(start), in_space(end))

    # the third corner of each triangle, in a frame at its first corner with x along its first side
    outer = apex(0, b, d, e)
    foot = apex(0, g, i, h)
    # positions of the joints: crank pin, fixed pivot, top, knee, outer corners of the upper and lower triangle
    pin, pivot = m * cmath.exp(1j * math.pi / 3), complex(-a, -l)
    top, knee = apex(pivot, pin, b, j), apex(pin, pivot, k, c)
    hip = pivot + outer * (top - pivot) / b
    heel = apex(knee, hip, g, f)

    s = Drawing("Strandbeest leg")
    s.bar("crank", density * m, m, pin, "motor", "ground", actuated=True)
    s.plate("upper", tube(0, b) + tube(0, outer) + tube(b, outer), top - pivot, "pivot_upper", "ground", pivot)
    s.bar("c", density * c, c, knee - pivot, "pivot_c", "ground", pivot)
    s.bar("j", density * j, j, top - pin, "crank_j", "crank", m)
    s.bar("k", density * k, k, knee - pin, "crank_k", "crank", m)
    s.bar("f", density * f, f, heel - hip, "upper_f", "upper", outer)
    s.plate("lower", tube(0, g) + tube(0, foot) + tube(g, foot), heel - knee, "c_lower", "c", c)
    s.close("j_upper", "j", "upper", j, b)
    s.close("k_c", "k", "c", k, c)
    s.close("f_lower", "f", "lower", f, g)
    s.add_frame("foot", "lower", in_space(foot))
    return s.build()


def biped_leg(thigh: float = 0.4, shank: float = 0.4, mass: float = 20.0) -> Mechanism:
    """Pelvis, thigh, shank and foot with a knee of two crossed links: nine degrees of freedom, six of the floating pelvis.

    The links of the knee cross each other like the cruciate ligaments. The instantaneous axis of the knee, at the crossing, moves by a few
    centimetres in the x-z plane when the knee bends. At home the pelvis is upright, the sole is on the ground, and the knee is bent.

    Parameters
    ----------
    thigh : length from the hip to the midpoint between the upper ends of the links [m]
    shank : length from the midpoint between the lower ends of the links to the ankle [m]
    mass : total mass [kg], of which the pelvis has one half and the thigh a quarter

    Returns
    -------
    Mechanism with the bodies "pelvis", "thigh", "front" and "rear" (the links, named by the position of their upper ends), "shank" and "foot" (its
    frame at the ankle). The joints "hip", "knee" (front link on the thigh) and "ankle" are about y and actuated. The passive joints are "float",
    "rear_upper", "front_lower" and "rear_lower". The frame is "sole"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> leg = sarrus.mechanisms.biped_leg()
    >>> leg.joints, leg.loop_joints
    (('float', 'hip', 'knee', 'rear_upper', 'front_lower', 'ankle'), ('rear_lower',))
    """
    positive(thigh=thigh, shank=shank, mass=mass)
    # half the distance between the links' ends on the thigh, half of that on the shank, and the links' length; all are proportional to the leg's
    # length
    upper, lower, link, sole = 0.05 * thigh, 0.04 * thigh, 0.12 * thigh, 0.15 * thigh
    lean = cmath.exp(0.3j)  # rotation of the thigh at home, forward
    # for a straight knee, the two links are mirror images of each other in the thigh's frame; the front link ends at the rear of the shank
    front, rear = upper - 1j * thigh, -upper - 1j * thigh
    straight = complex(-upper - lower, -math.sqrt(link**2 - (upper + lower) ** 2))
    shank_rear = front + straight * cmath.exp(-0.2j)
    shank_front = apex(rear, shank_rear, link, 2 * lower)
    forward = lean * (shank_front - shank_rear)
    ankle = lean * (shank_rear + shank_front) / 2 - 1j * shank * forward / abs(forward)

    s = Drawing("biped leg")
    pelvis = Inertia.box(0.5 * mass, (thigh / 2, thigh / 2, thigh / 2))
    s.floating("pelvis", pelvis, (0, 0, sole - ankle.imag))
    upper_leg = Inertia.rod(0.25 * mass, (0, 0, 0), (0, 0, -thigh), radius=thigh / 10)
    s.plate("thigh", upper_leg, lean, "hip", "pelvis", actuated=True)
    s.bar("front", 0.02 * mass, link, lean * (shank_rear - front), "knee", "thigh", front, actuated=True)
    s.bar("rear", 0.02 * mass, link, lean * (shank_front - rear), "rear_upper", "thigh", rear)
    lower_leg = Inertia.rod(0.15 * mass, (0, 0, 0), (0, 0, -shank), radius=shank / 15)
    s.plate("shank", lower_leg, forward, "front_lower", "front", link, at_child=in_space(-lower))
    s.close("rear_lower", "rear", "shank", link, lower)
    flat = Inertia.box(0.06 * mass, (thigh / 2, thigh / 4, sole / 2))
    flat = flat.transformed(Transform(translation=(thigh / 10, 0, -0.75 * sole)))
    s.plate("foot", flat, 1, "ankle", "shank", -1j * shank, actuated=True)
    s.add_frame("sole", "foot", (0, 0, -sole))
    return s.build()


def humanoid_leg(floating: bool = True, thigh: float = 0.4, shank: float = 0.4, mass: float = 20.0) -> Mechanism:
    """Pelvis and a leg whose ankle is moved by rods from two motors on the shank: six degrees of freedom, and six of a floating pelvis.

    The hip has three axes, the knee one and the ankle two. Each motor moves one side of the heel by a crank and a rod. Equal motions of the two
    motors pitch the foot, opposite motions roll it. At home the knee is bent and the sole is level.

    Parameters
    ----------
    floating : True if the pelvis floats, False if it is fixed to the ground
    thigh, shank : lengths from hip to knee and from knee to ankle [m]
    mass : total mass [kg], of which the pelvis has one half and the thigh a quarter; the shank with its motors has most of the remaining quarter

    Returns
    -------
    Mechanism with the bodies "pelvis", "hip1", "hip2", "thigh", "shank", "foot" (its frame at the ankle), "left_crank", "left_rod",
    "right_crank" and "right_rod". The joints are "float", "hip_yaw", "hip_roll", "hip_pitch", "knee" and "ankle" (Universal y x, not
    actuated). Each side has the joints "left_motor", "left_rod" (Universal y x) and "left_ball" (Spherical, closes the loop). The frame is
    "sole"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> leg = sarrus.mechanisms.humanoid_leg(floating=False)
    >>> leg.nv, leg.nc, leg.actuated
    (12, 6, ('hip_yaw', 'hip_roll', 'hip_pitch', 'knee', 'left_motor', 'right_motor'))
    """
    true_or_false(floating=floating)
    positive(thigh=thigh, shank=shank, mass=mass)
    bend, sole, crank, rod, side = 0.3, 0.2 * shank, 0.125 * shank, 0.6 * shank, 0.125 * shank
    b = Drawing("humanoid leg")
    pelvis = Inertia.box(0.5 * mass, (thigh / 2, thigh / 2, thigh / 2))
    down = Inertia.rod(0.25 * mass, (0, 0, 0), (0, 0, -thigh), radius=thigh / 8)
    lower = Inertia.rod(0.16 * mass, (0, 0, 0), (0, 0, -shank), radius=shank / 10)
    flat = Inertia.box(0.04 * mass, (thigh / 2, thigh / 4, sole / 2))
    hip = (0.0, 0.0, sole + (thigh + shank) * math.cos(bend))
    if floating:
        b.floating("pelvis", pelvis, hip)
    else:
        b.link("pelvis", pelvis, "float", Fixed(), "ground", hip)
    before, at = "pelvis", (0.0, 0.0, 0.0)
    for name, body, axis, inertia, end, angle, effort in (
        ("hip_yaw", "hip1", "z", Inertia.sphere(0.015 * mass, thigh / 10), 0.0, 0.0, 100.0),
        ("hip_roll", "hip2", "x", Inertia.sphere(0.015 * mass, thigh / 10), 0.0, 0.0, 150.0),
        ("hip_pitch", "thigh", "y", down, thigh, -bend, 150.0),
        ("knee", "shank", "y", lower, shank, 2 * bend, 200.0),
    ):
        b.link(body, inertia, name, Revolute(axis, effort_limit=effort), before, at, home=angle, actuated=True)
        before, at = body, (0.0, 0.0, -end)
    flat = flat.transformed(Transform(translation=(thigh / 8, 0, -0.75 * sole)))
    b.link("foot", flat, "ankle", Universal("y", "x"), "shank", at, home=[-bend, 0.0])
    # crank, rod, heel and shank form a parallelogram if the foot does not roll
    for name, y in (("left", side), ("right", -side)):
        tip, low, axle, motor = (-crank, 0, 0), (0, 0, -rod), (0, y, rod - shank), Revolute("y", effort_limit=80.0)
        arm, bar = (Inertia.rod(0.005 * mass, (0, 0, 0), reach) for reach in (tip, low))
        b.link(f"{name}_crank", arm, f"{name}_motor", motor, "shank", axle, home=-bend, actuated=True)
        b.link(f"{name}_rod", bar, f"{name}_rod", Universal("y", "x"), f"{name}_crank", tip, home=[bend, 0.0])
        ends = f"{name}_rod", "foot"
        b.add_joint(f"{name}_ball", Spherical(), *ends, at_parent=low, at_child=(-crank, y, 0), loop=True)
    b.add_frame("sole", "foot", (0, 0, -sole))
    return b.build()


def quadruped(thigh: float = 0.3, shank: float = 0.3, mass: float = 46.0) -> Mechanism:
    """Quadruped with three motors in each leg, about as large as ANYmal: eighteen degrees of freedom.

    The legs are LF, RF, LH and RH (left or right, fore or hind); x points forward, y to the left. The fore and the hind knees point towards each
    other, and feet are points. At home all feet are on z = 0, under the hips.

    Parameters
    ----------
    thigh, shank : lengths from hip to knee and from knee to foot [m]
    mass : total mass [kg]: the trunk has 28/46 of it, each hip 1.5/46, each thigh 2.5/46 and each shank 0.5/46

    Returns
    -------
    Mechanism with the bodies "trunk", "LF_hip", "LF_thigh", "LF_shank", ..., and the frames "LF_foot", "RF_foot", "LH_foot" and
    "RH_foot". The joints are "float", "LF_HAA" (x: abduction), "LF_HFE" (y: hip), "LF_KFE" (y: knee), .... All but "float" are actuated,
    with limits of 80 N m and 10 rad/s

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the shanks are too short.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.quadruped()
    >>> robot.nv, len(robot.actuated)
    (18, 12)
    >>> robot.pose(robot.assemble(), "LF_foot")[:3, 3].round(3) + 0.0
    array([0.3 , 0.25, 0.  ])
    """
    positive(thigh=thigh, shank=shank, mass=mass)
    bend, part = 0.6, mass / 46.0
    if not thigh * math.sin(bend) < shank:
        raise ModelError(
            f"shank must be longer than {thigh * math.sin(bend):g} m, so that the feet are under the hips; got {shank!r}"
        )
    lean = math.asin(thigh * math.sin(bend) / shank)
    b = Drawing("quadruped")
    height = thigh * math.cos(bend) + shank * math.cos(lean)
    b.floating("trunk", Inertia.box(28.0 * part, (2 * thigh, thigh, 2 * thigh / 3)), (0, 0, height))
    for leg, x, y in (("LF", 1, 1), ("RF", 1, -1), ("LH", -1, 1), ("RH", -1, -1)):
        before, at = "trunk", (x * thigh, y * thigh / 2, 0.0)
        for joint, body, axis, inertia, end, angle in (
            ("HAA", "hip", "x", Inertia.sphere(1.5 * part, thigh / 6), (0.0, y * thigh / 3, 0.0), 0.0),
            ("HFE", "thigh", "y", _rod(2.5 * part, thigh), (0.0, 0.0, -thigh), x * bend),
            ("KFE", "shank", "y", _rod(0.5 * part, shank), (0.0, 0.0, -shank), -x * (bend + lean)),
        ):
            motor, part_of_leg = Revolute(axis, effort_limit=80.0, velocity_limit=10.0), f"{leg}_{body}"
            b.link(part_of_leg, inertia, f"{leg}_{joint}", motor, before, at, home=angle, actuated=True)
            before, at = part_of_leg, end
        b.add_frame(f"{leg}_foot", before, at)
    return b.build()


def _rod(mass: float, length: float) -> Inertia:
    """Return the inertia of a rod along -z from the frame's origin."""
    return Inertia.rod(mass, (0, 0, 0), (0, 0, -length), radius=length / 12)


# ---- a biped ---------------------------------------------------------------------------------------------------------
# Two legs, in which motors at the hips move the knees and ankles by linkages.


# points of a limb in its x-z plane, relative to the hip's axis, for a leg of length 1: knee, first and second axis of the ankle, axis and pin of the
# crank, and the rod's pin on the shin
HIP, KNEE, TURN, ANKLE = 0j, 0.07 - 0.5j, -0.9j, -1.0j
CRANK, PIN, HEEL = 0.1 + 0.1j, 0.27 + 0.15j, 0.23 - 0.42j
# distances of the inner and outer limbs from the pelvis' centre plane, and height of the ankle above the sole
INNER, OUTER, SOLE = 0.15, 0.37, 0.1


class _Part(NamedTuple):
    """Body of a limb: axis and position of its joint, position of its far end, and its fraction of the total mass."""

    name: str
    parent: str
    joint: str
    axis: str
    at: complex
    end: complex
    mass: float


LIMB = (
    _Part("thigh", "hip", "swing", "y", HIP, KNEE, 0.03),
    _Part("shin", "thigh", "knee", "y", KNEE, TURN, 0.03),
    _Part("turn", "shin", "turn", "z", TURN, ANKLE, 0.01),
    _Part("cross", "turn", "lean", "x", ANKLE, -1.05j, 0.005),
    _Part("crank", "hip", "crank", "y", CRANK, PIN, 0.005),
    _Part("rod", "crank", "pin", "y", PIN, HEEL, 0.01),
)


def biped(leg: float = 0.3, mass: float = 2.5) -> Mechanism:
    """Biped in which two parallel limbs connect each foot to the pelvis: twelve motors, six loops, eighteen degrees of freedom.

    The hip of a limb has a roll axis (x) in the pelvis, and a swing axis (y) of the thigh. A crank next to the thigh moves the shin by a rod; these
    bodies form a four-bar linkage. The ankle has axes z, x and y between shin and foot. The two limbs of a leg form a loop of eleven joints. Six
    motors control all six degrees of freedom of a foot. At home the soles are on z = 0, and the biped is symmetric. Twelve of the thirty constraint
    rows are redundant, because the four four-bar linkages are planar.

    Parameters
    ----------
    leg : vertical distance from the hip's axis to the ankle's axis at home [m]
    mass : total mass [kg]

    Returns
    -------
    Mechanism with the bodies "pelvis", "left_foot" (its frame at the ankles' axis, between the limbs) and those of four limbs. A limb has
    the bodies "left_inner_hip", "..._thigh", "..._shin", "..._turn", "..._cross", "..._crank" and "..._rod". The other limbs have the prefixes
    "left_outer", "right_inner" and "right_outer". Actuated joints of a leg are "left_inner_roll", "left_inner_swing", "left_inner_crank",
    "left_outer_swing", "left_outer_crank" and "left_inner_ankle". The other joints are "float", "left_inner_knee", "..._turn", "..._lean" and
    "..._pin" (crank and rod). Loop joints are "..._heel" (rod and shin) and "left_outer_ankle". The frames are "left_sole" and "right_sole"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Gim, Kim and Yamane, Design and fabrication of a bipedal robot using serial-parallel hybrid leg mechanism, IROS 2018 (the topology, with
    other sizes and masses).

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.biped()
    >>> robot.nv, robot.nc, robot.mobility(robot.assemble()).degrees_of_freedom
    (36, 30, 18)
    """
    positive(leg=leg, mass=mass)
    b = Drawing("biped")
    b.floating("pelvis", Inertia.box(0.3 * mass, (0.3 * leg, 0.9 * leg, 0.2 * leg)), (0, 0, (1.0 + SOLE) * leg))
    flat = Inertia.box(0.05 * mass, (0.45 * leg, 0.3 * leg, 0.04 * leg))
    flat, ankle = flat.transformed(Transform(translation=(0, 0, -0.08 * leg))), Revolute("y", effort_limit=6.0)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        foot, middle = f"{side}_foot", sign * (INNER + OUTER) / 2
        for name, y in (("inner", sign * INNER), ("outer", sign * OUTER)):
            limb, inner, at = f"{side}_{name}", name == "inner", (0.0, (y - middle) * leg, 0.0)
            _limb(b, limb, (0.0, y * leg, 0.0), leg, mass)
            if inner:
                b.add_body(foot, flat)
            b.add_joint(f"{limb}_ankle", ankle, f"{limb}_cross", foot, at_child=at, actuated=inner, loop=not inner)
        b.home[f"{side}_inner_ankle"] = 0.0
        b.add_frame(f"{side}_sole", foot, (0, 0, -SOLE * leg))
    return b.build()


def _limb(b: Drawing, limb: str, hip: Point, leg: float, mass: float) -> None:
    """Add a limb from the pelvis to the cross of the ankle, with the crank and the rod of its four-bar linkage.

    The bodies' frames are at their joints.
    """
    side, roll = Inertia.box(0.06 * mass, (0.15 * leg, 0.1 * leg, 0.15 * leg)), Revolute("x", effort_limit=6.0)
    b.link(f"{limb}_hip", side, f"{limb}_roll", roll, "pelvis", hip, home=0.0, actuated=limb.endswith("inner"))
    starts = {"hip": HIP}
    for part in LIMB:
        starts[part.name], near = part.at, starts[part.parent]
        rod = Inertia.rod(part.mass * mass, (0, 0, 0), in_space(leg * (part.end - part.at)), radius=0.02 * leg)
        motor = part.joint in ("swing", "crank")
        body, parent, joint = (f"{limb}_{name}" for name in part[:3])
        kind = Revolute(part.axis, effort_limit=6.0) if motor else Revolute(part.axis)
        b.link(body, rod, joint, kind, parent, in_space(leg * (part.at - near)), home=0.0, actuated=motor)
    b.close(f"{limb}_heel", f"{limb}_rod", f"{limb}_shin", leg * (HEEL - PIN), leg * (HEEL - KNEE))
