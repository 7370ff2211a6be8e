"""Overconstrained mechanisms of several loops, which have more degrees of freedom than the mobility formula counts."""

from __future__ import annotations

import math

import numpy as np

from ..building.builder import Builder
from ..description.joints import Free, Prismatic, Revolute, Universal
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import between_zero_and, integer, positive


def sarrus_linkage(plate: float = 0.5, width: float = 0.4, mass: float = 1.0, platform_mass: float = 2.0) -> Mechanism:
    """Sarrus' linkage, in which two pairs of hinged plates guide a platform on an exact vertical line: one degree of freedom.

    One pair alone allows the platform a planar motion with three degrees of freedom. Both pairs together allow only a motion along a vertical line,
    although Kutzbach's formula gives no degree of freedom. At height h of the platform, the lower plates have the angle asin(h / (2 plate)) to the
    ground. At home this angle is 45 degrees, and the plates lean outwards.

    Parameters
    ----------
    plate : length of a plate, from hinge to hinge [m]
    width : width of the plates, and side of the square platform [m]
    mass : mass of a plate [kg]
    platform_mass : mass of the platform [kg]

    Returns
    -------
    Mechanism with the bodies "lower_a", "upper_a", "lower_b", "upper_b" and "platform" (its frame in its middle, above the origin). The
    joints are "base_a" (actuated), "knee_a", "top_a", "base_b", "knee_b" and "top_b". Pair a moves in the x-z plane, pair b in the y-z plane

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Sarrus, Note sur la transformation des mouvements rectilignes alternatifs, en mouvements circulaires; et réciproquement, Comptes
    Rendus 36, 1853.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.sarrus_linkage(plate=0.5)
    >>> q = robot.assemble(fixed={"base_a": -np.pi / 6})
    >>> robot.pose(q, "platform").round(9) + 0.0
    array([[1. , 0. , 0. , 0. ],
           [0. , 1. , 0. , 0. ],
           [0. , 0. , 1. , 0.5],
           [0. , 0. , 0. , 1. ]])
    """
    positive(plate=plate, width=width, mass=mass, platform_mass=platform_mass)
    thin = plate / 50
    panel = Inertia.box(mass, (plate, width, thin)).transformed(Transform(translation=(plate / 2, 0, 0)))
    end, rise = (plate, 0, 0), math.pi / 4
    b = Builder("Sarrus linkage")
    b.add_body("platform", Inertia.box(platform_mass, (width, width, thin)))
    home: dict[str, float] = {}
    for pair, turn in (("a", 0.0), ("b", math.pi / 2)):
        edge = Transform.from_rpy(0, 0, turn) @ Transform(translation=(width / 2, 0, 0))
        b.add_body(f"lower_{pair}", panel)
        b.add_body(f"upper_{pair}", panel)
        b.add_joint(f"base_{pair}", Revolute("y"), "ground", f"lower_{pair}", at_parent=edge, actuated=pair == "a")
        b.add_joint(f"knee_{pair}", Revolute("y"), f"lower_{pair}", f"upper_{pair}", at_parent=end)
        ends = f"upper_{pair}", "platform"
        b.add_joint(f"top_{pair}", Revolute("y"), *ends, at_parent=end, at_child=edge, loop=pair == "b")
        home |= {f"base_{pair}": -rise, f"knee_{pair}": 2 * rise - math.pi}
    b.set_home({**home, "top_a": math.pi - rise})
    return b.build()


def tsai_3upu(
    base: float = 0.4, platform: float = 0.2, height: float = 0.5, mass: float = 1.0, platform_mass: float = 2.0
) -> Mechanism:
    """Tsai's 3-UPU manipulator, whose platform translates without rotation on three legs: three degrees of freedom.

    In each leg, the first axis of the lower universal joint is parallel to the last axis of the upper one. Each leg prevents a rotation of the
    platform about one direction; at home this is the direction of the leg. If both radii are equal, the three directions coincide at home, which is a
    singular position. The platform can then rotate about two more axes, even if all legs are locked.

    Parameters
    ----------
    base, platform : radii of the circles of the legs' lower and upper ends [m]; equal radii make home singular
    height : height of the platform at home [m]
    mass : mass of half a leg [kg]
    platform_mass : mass of the platform [kg]

    Returns
    -------
    Mechanism with the bodies "lower1", "upper1", ... and "platform" (its frame in its middle). The joints are "base1" (universal), "leg1"
    (actuated), "top1" (universal), ...; "top2" and "top3" close the loops

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Tsai, Kinematics of a three-DOF platform with three extensible limbs, Recent advances in robot kinematics, 1996. Di Gregorio and
    Parenti-Castelli, Mobility analysis of the 3-UPU parallel mechanism assembled for a pure translational motion, Journal of Mechanical
    Design 124, 2002 (singular positions).

    Examples
    --------
    >>> import sarrus
    >>> tsai_3upu = sarrus.mechanisms.tsai_3upu
    >>> [robot.mobility(robot.assemble()).degrees_of_freedom for robot in (tsai_3upu(), tsai_3upu(0.3, 0.3))]
    [3, 5]
    """
    positive(base=base, platform=platform, height=height, mass=mass, platform_mass=platform_mass)
    b = Builder("Tsai's 3-UPU manipulator")
    b.add_body("platform", Inertia.cylinder(platform_mass, platform, platform / 10))
    for k in (1, 2, 3):
        out = np.array([math.cos(2 * math.pi * k / 3), math.sin(2 * math.pi * k / 3), 0.0])
        leg, tangent = (platform - base) * out + (0, 0, height), np.cross((0, 0, 1), out)
        across, thick = np.cross(tangent, leg), float(np.linalg.norm(leg)) / 40
        b.add_body(f"lower{k}", Inertia.rod(mass, (0, 0, 0), leg / 2, radius=thick))
        # the body's frame is at its upper end
        b.add_body(f"upper{k}", Inertia.rod(mass, (0, 0, 0), -leg / 2, radius=thick))
        b.add_joint(f"base{k}", Universal(tangent, across), "ground", f"lower{k}", at_parent=base * out)
        b.add_joint(f"leg{k}", Prismatic(leg), f"lower{k}", f"upper{k}", at_parent=leg, actuated=True)
        b.add_joint(f"top{k}", Universal(across, tangent), f"upper{k}", "platform", at_child=platform * out, loop=k > 1)
    return b.build()


def wren_platform(
    legs: int = 5, radius: float = 0.3, leg: float = 0.6, lean: float = 0.3, platform_mass: float = 1.0
) -> Mechanism:
    """Wren's platform on any number of equal, parallel legs with ball joints: two degrees of freedom.

    If the legs lean, the platform translates on a sphere, for any number of legs. Kutzbach's formula gives 6 minus the number of legs. To first
    order, the platform can also rotate about the direction of the legs. If the legs are upright, this rotation is part of a finite screw motion, so
    that the mechanism is kinematotropic: its mobility differs between branches.

    Parameters
    ----------
    legs : number of legs, 4 or more
    radius : radius of the circles of the legs' lower and upper ends [m]
    leg : length of a massless leg [m]
    lean : angle between the legs and the vertical at home, in (0, pi/2) [rad]
    platform_mass : mass of the platform [kg]

    Returns
    -------
    Mechanism with the body "platform" (its frame in its middle), the joint "float" and the constraints "leg1", ...

    Raises
    ------
    ModelError
        There are fewer than four legs, a dimension or a mass is not positive, or the lean is out of range.

    References
    ----------
    Wohlhart, Kinematotropic linkages, Recent advances in robot kinematics, 1996.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.wren_platform()
    >>> mobility = robot.mobility(robot.assemble())
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom
    (3, 2)
    """
    integer("legs", legs, 4)
    positive(radius=radius, leg=leg, platform_mass=platform_mass)
    between_zero_and("pi/2", lean=lean)
    b = Builder("Wren platform")
    b.add_body("platform", Inertia.cylinder(platform_mass, radius, radius / 10))
    b.add_joint("float", Free(), "ground", "platform")
    for k in range(legs):
        end = (radius * math.cos(2 * math.pi * k / legs), radius * math.sin(2 * math.pi * k / legs), 0.0)
        b.add_distance(f"leg{k + 1}", ("ground", end), ("platform", end), length=leg)
    b.set_home({"float": [0, 0, 0, 1, leg * math.sin(lean), 0, leg * math.cos(lean)]})
    return b.build()
