"""Legs: one that walks by turning a crank, and one with a knee that rolls."""

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING

from ..description.joints import Free
from ..spatial import Inertia, Transform
from .drawing import Drawing, apex, in_space, positive

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["biped_leg", "strandbeest_leg"]


def strandbeest_leg(scale: float = 0.01, density: float = 0.2) -> Mechanism:
    """A leg of Theo Jansen's Strandbeest: eleven tubes that turn the crank's circle into steps.

    The crank's axis is the origin. While the foot is on the ground it keeps its height nearly, and in the rest of a turn it is lifted
    and put forward.

    Parameters
    ----------
    scale : metres to one of Jansen's units; his beaches have 0.01
    density : of the tubes [kg/m]

    Returns
    -------
    Mechanism with the bodies "crank", "upper" and "lower" (the two triangles), "j", "k", "c" and "f" (tubes, by Jansen's letters), the
    joint "motor" (actuated) among ten, and the frame "foot": one degree of freedom

    Raises
    ------
    ModelError
        A size that is not positive.

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

    # the triangles, each from its first corner along its first side
    outer = apex(0, b, d, e)
    foot = apex(0, g, i, h)
    # where the joints are: crank pin, fixed pivot, top, knee, outer corner of the upper triangle, and of the lower one
    pin, pivot = m * cmath.exp(1j * math.pi / 3), complex(-a, -l)
    top, knee = apex(pivot, pin, b, j), apex(pin, pivot, k, c)
    hip = pivot + outer * (top - pivot) / b
    heel = apex(knee, hip, g, f)

    s = Drawing("Strandbeest leg")
    s.bar("crank", density * m, m, pin)
    s.body("upper", tube(0, b) + tube(0, outer) + tube(b, outer), top - pivot)
    s.bar("c", density * c, c, knee - pivot)
    s.bar("j", density * j, j, top - pin)
    s.bar("k", density * k, k, knee - pin)
    s.bar("f", density * f, f, heel - hip)
    s.body("lower", tube(0, g) + tube(0, foot) + tube(g, foot), heel - knee)
    s.pin("motor", "ground", "crank", actuated=True)
    s.pin("pivot_upper", "ground", "upper", pivot)
    s.pin("pivot_c", "ground", "c", pivot)
    s.pin("crank_j", "crank", "j", m)
    s.pin("crank_k", "crank", "k", m)
    s.pin("upper_f", "upper", "f", outer)
    s.pin("c_lower", "c", "lower", c)
    s.pin("j_upper", "j", "upper", j, b, loop=True)
    s.pin("k_c", "k", "c", k, c, loop=True)
    s.pin("f_lower", "f", "lower", f, g, loop=True)
    s.builder.add_frame("foot", "lower", in_space(foot))
    return s.build()


def biped_leg(thigh: float = 0.4, shank: float = 0.4, mass: float = 20.0) -> Mechanism:
    """Pelvis, thigh, shank and foot, with a knee of two crossed links, as the cruciate ligaments are; the pelvis floats.

    The knee's axis, where the links cross, moves as it bends: by a few centimetres, all in the x-z plane. Nine degrees of freedom: six of
    the pelvis, hip, knee and ankle. At home the pelvis is upright at a height at which the sole is on the ground, and the knee is bent.

    Parameters
    ----------
    thigh : from the hip to the middle between the upper ends of the links [m]
    shank : from the middle between their lower ends to the ankle [m]
    mass : of everything [kg]: half the pelvis, a quarter the thigh, the rest lower down

    Returns
    -------
    Mechanism with the bodies "pelvis", "thigh", "front", "rear" (the links, by their upper ends), "shank" and "foot" (its frame at the
    ankle), the joints "float", "hip", "knee" (of the front link on the thigh), "ankle" (all three about y and actuated), "rear_upper",
    "front_lower" and "rear_lower", and the frame "sole"

    Raises
    ------
    ModelError
        A size that is not positive.

    Examples
    --------
    >>> import sarrus
    >>> leg = sarrus.mechanisms.biped_leg()
    >>> leg.joints, leg.loop_joints
    (('float', 'hip', 'knee', 'rear_upper', 'front_lower', 'ankle'), ('rear_lower',))
    """
    positive(thigh=thigh, shank=shank, mass=mass)
    # half the distances between the links' ends on thigh and shank, and the links; all go with the leg's size
    upper, lower, link, sole = 0.05 * thigh, 0.04 * thigh, 0.12 * thigh, 0.15 * thigh
    lean = cmath.exp(0.3j)  # of the thigh, forward
    # the knee in the thigh's axes: straight, it is symmetric; the front link leads to the rear of the shank and swings as it bends
    front, rear = upper - 1j * thigh, -upper - 1j * thigh
    straight = complex(-upper - lower, -math.sqrt(link**2 - (upper + lower) ** 2))
    shank_rear = front + straight * cmath.exp(-0.2j)
    shank_front = apex(rear, shank_rear, link, 2 * lower)
    forward = lean * (shank_front - shank_rear)
    ankle = lean * (shank_rear + shank_front) / 2 - 1j * shank * forward / abs(forward)

    s = Drawing("biped leg")
    s.body("pelvis", Inertia.box(0.5 * mass, (thigh / 2, thigh / 2, thigh / 2)))
    s.body("thigh", Inertia.rod(0.25 * mass, (0, 0, 0), (0, 0, -thigh), radius=thigh / 10), lean)
    s.bar("front", 0.02 * mass, link, lean * (shank_rear - front))
    s.bar("rear", 0.02 * mass, link, lean * (shank_front - rear))
    s.body("shank", Inertia.rod(0.15 * mass, (0, 0, 0), (0, 0, -shank), radius=shank / 15), forward)
    flat = Inertia.box(0.06 * mass, (thigh / 2, thigh / 4, sole / 2))
    s.body("foot", flat.transformed(Transform(translation=(thigh / 10, 0, -0.75 * sole))))
    s.builder.add_joint("float", Free(), "ground", "pelvis")
    s.home["float"] = [0, 0, 0, 1, 0, 0, sole - ankle.imag]
    s.pin("hip", "pelvis", "thigh", actuated=True)
    s.pin("knee", "thigh", "front", front, actuated=True)
    s.pin("rear_upper", "thigh", "rear", rear)
    s.pin("front_lower", "front", "shank", link, -lower)
    s.pin("rear_lower", "rear", "shank", link, lower, loop=True)
    s.pin("ankle", "shank", "foot", -1j * shank, actuated=True)
    s.builder.add_frame("sole", "foot", (0, 0, -sole))
    return s.build()
