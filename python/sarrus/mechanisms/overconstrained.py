"""Overconstrained mechanisms, which have more degrees of freedom than the mobility formula counts: platforms, and single loops of hinges."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._arrays import ArrayLike
from ..description.joints import Prismatic, Revolute, Universal
from ..errors import ModelError, check_choice
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import Drawing, between_zero_and, integer, positive

# ---- platforms -------------------------------------------------------------------------------------------------------


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
    end, rise, hinge = (plate, 0, 0), math.pi / 4, Revolute("y")
    b = Drawing("Sarrus linkage")
    b.add_body("platform", Inertia.box(platform_mass, (width, width, thin)))
    for pair, turn in (("a", 0.0), ("b", math.pi / 2)):
        edge, upper = Transform.from_rpy(0, 0, turn) @ Transform(translation=(width / 2, 0, 0)), f"upper_{pair}"
        b.link(f"lower_{pair}", panel, f"base_{pair}", hinge, "ground", edge, home=-rise, actuated=pair == "a")
        b.link(upper, panel, f"knee_{pair}", hinge, f"lower_{pair}", end, home=2 * rise - math.pi)
        b.add_joint(f"top_{pair}", hinge, upper, "platform", at_parent=end, at_child=edge, loop=pair == "b")
    b.home["top_a"] = math.pi - rise
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
    b = Drawing("Tsai's 3-UPU manipulator")
    b.add_body("platform", Inertia.cylinder(platform_mass, platform, platform / 10))
    for k in (1, 2, 3):
        out = np.array([math.cos(2 * math.pi * k / 3), math.sin(2 * math.pi * k / 3), 0.0])
        leg, tangent = (platform - base) * out + (0, 0, height), np.cross((0, 0, 1), out)
        across, thick = np.cross(tangent, leg), float(np.linalg.norm(leg)) / 40
        # the upper body's frame is at its upper end
        lower, upper = (Inertia.rod(mass, (0, 0, 0), half, radius=thick) for half in (leg / 2, -leg / 2))
        b.link(f"lower{k}", lower, f"base{k}", Universal(tangent, across), "ground", base * out)
        b.link(f"upper{k}", upper, f"leg{k}", Prismatic(leg), f"lower{k}", leg, actuated=True)
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
    b = Drawing("Wren platform")
    plate, height = Inertia.cylinder(platform_mass, radius, radius / 10), leg * math.cos(lean)
    b.floating("platform", plate, (leg * math.sin(lean), 0, height))
    for k in range(legs):
        end = (radius * math.cos(2 * math.pi * k / legs), radius * math.sin(2 * math.pi * k / legs), 0.0)
        b.add_distance(f"leg{k + 1}", ("ground", end), ("platform", end), length=leg)
    return b.build()


# ---- single loops of four, five and six hinges -----------------------------------------------------------------------

Hinge = tuple[Any, Any]  # point of the axis (3,) [m], and direction: (3,) or "x", "y" or "z"


def along(length: float, twist: float) -> Transform:
    """Return the transform from a hinge to the next one; `length` [m] and `twist` [rad] are along and about their common normal."""
    return Transform.from_rpy(twist, 0, 0, (length, 0, 0))


def hinge_loop(name: str, hinges: Sequence[Hinge], mass: float) -> Drawing:
    """Return a closed chain of bars between `hinges`, whose axes are those at home, q = 0. The last bar, from the last hinge to the first, is the
    ground.

    Bar k is between hinge k and the next hinge. Its frame is at the end nearer to the ground, parallel to the ground at home. The middle hinge is the
    loop joint.
    """
    points, axes = zip(*hinges, strict=True)
    last, middle = len(hinges), len(hinges) // 2 + 1
    at = np.array(points, dtype=float)
    # the frames of the bars on both branches, from the ground to the middle hinge
    frames = np.array([np.zeros(3), *at[: middle - 1], *at[middle:], np.zeros(3)])
    bars = ["ground", *(f"link{k}" for k in range(1, last)), "ground"]
    b = Drawing(name)
    for k in range(1, last):
        b.add_body(bars[k], Inertia.rod(mass, (0, 0, 0), (at[k] if k < middle else at[k - 1]) - frames[k]))
    for k in range(1, last + 1):
        parent, child = (k - 1, k) if k <= middle else (k, k - 1)
        places: dict[str, Any] = {"at_parent": at[k - 1] - frames[parent], "at_child": at[k - 1] - frames[child]}
        hinge, closing = Revolute(axes[k - 1]), k == middle
        b.add_joint(f"joint{k}", hinge, bars[parent], bars[child], **places, actuated=k == 1, loop=closing)
    b.home = {f"joint{k}": 0.0 for k in range(1, last + 1) if k != middle}
    return b


def bennett(
    length: float = 0.5, twist: float = math.pi / 6, other_twist: float = math.pi / 3, mass: float = 1.0
) -> Mechanism:
    """Bennett's linkage, four bars and four skew hinges: one degree of freedom, although Kutzbach's formula gives -2.

    Opposite bars are equal, and the ratio length / sin(twist) is the same for all four bars, which determines the other length. Opposite hinges
    rotate by equal and opposite angles. For neighbouring hinges, the product tan(theta1 / 2) tan(theta2 / 2) is constant: sin((twist + other_twist) /
    2) / sin((twist - other_twist) / 2).

    Parameters
    ----------
    length : length of the ground and of the opposite bar, along the common normals of their hinges [m]
    twist, other_twist : angle between the hinges of these two bars, and angle between the hinges of the other two bars; both in (0, pi), and
        different [rad]
    mass : mass of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1", "link2" and "link3"; their frames are at the hinge nearer to the ground, with z along it. The
    joints are "joint1" (actuated, about z at the origin), "joint2", "joint3" and "joint4" (the second hinge on the ground)

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or a twist is out of range or equal to the other.

    References
    ----------
    Bennett, A new mechanism, Engineering 76, 1903.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.bennett()
    >>> q = robot.assemble(fixed={"joint1": 1.0})
    >>> print((np.tan(q[0] / 2) * np.tan(q[1] / 2)).round(6), (np.sin(np.pi / 4) / np.sin(-np.pi / 12)).round(6))
    -2.732051 -2.732051
    """
    positive(length=length, mass=mass)
    checked_twists(twist=twist, other_twist=other_twist)
    # bars 1 and 3 have the other length; bar 2 and the ground, from hinge 4 to hinge 1, have `length`
    other = length * math.sin(other_twist) / math.sin(twist)
    product = math.sin((twist + other_twist) / 2) / math.sin((twist - other_twist) / 2)
    first = 2 * math.pi / 3
    second = 2 * math.atan(product / math.tan(first / 2))

    b, hinge = Drawing("Bennett linkage"), Revolute("z")
    rail, rod, back = (Inertia.rod(mass, (0, 0, 0), (reach, 0, 0)) for reach in (other, length, -other))
    b.link("link1", rail, "joint1", hinge, "ground", home=first, actuated=True)
    b.link("link2", rod, "joint2", hinge, "link1", along(other, other_twist), home=second)
    b.link("link3", back, "joint4", hinge, "ground", along(length, twist).inverse(), home=second)
    places: dict[str, Any] = {"at_parent": along(length, twist), "at_child": along(other, other_twist).inverse()}
    b.add_joint("joint3", hinge, "link2", "link3", **places, loop=True)
    return b.build()


def checked_twists(**twists: float) -> None:
    """Raise ModelError if a twist is out of range or equal to the first one, because such a Bennett loop cannot move."""
    between_zero_and("pi", **twists)
    (first, first_twist), *rest = twists.items()
    for name, value in rest:
        if abs(value - first_twist) < 1e-6:
            raise ModelError(f"{name} and {first} must differ; got {value!r} twice: such a linkage cannot move")


def bennett_row(
    rails: Sequence[tuple[float, float]], leg: tuple[float, float], angle: float
) -> tuple[list[Transform], list[Transform]]:
    """Return the frames of the hinges along the rails and at the ends of the legs, for a row of Bennett loops that share legs.

    Rails and legs are (length [m], twist [rad]). The rails are on one line, and the first rail begins at the origin. `angle` [rad] is between the
    first leg and this line. In each loop, the tangents of half the angles of its two legs have a constant ratio.
    """
    heads, feet = [Transform()], [Transform.from_rpy(0, 0, angle) @ along(*leg)]
    for length, twist in rails:
        ratio = math.sin((leg[1] + twist) / 2) / math.sin((leg[1] - twist) / 2)
        angle = 2 * math.atan(ratio * math.tan(angle / 2))
        heads.append(heads[-1] @ along(length, twist))
        feet.append(heads[-1] @ Transform.from_rpy(0, 0, angle) @ along(*leg))
    return heads, feet


def hinges_of(frames: Sequence[Transform]) -> list[Hinge]:
    """Return hinges about the z axes of frames."""
    return [(frame.translation, frame.rotation[:, 2]) for frame in frames]


def _goldberg(name: str, leg: float, leg_twist: float, mass: float, **twists: float) -> Mechanism:
    positive(leg=leg, mass=mass)
    checked_twists(leg_twist=leg_twist, **twists)
    size = leg / math.sin(leg_twist)
    rails = [(size * math.sin(twist), twist) for twist in twists.values()]
    heads, feet = bennett_row(rails, (leg, leg_twist), 1.0)
    return hinge_loop(name, hinges_of([heads[0], *feet, heads[-1]]), mass).build()


def goldberg_5r(
    leg: float = 0.5, leg_twist: float = 1.2, twist: float = 0.5, other_twist: float = 0.8, mass: float = 1.0
) -> Mechanism:
    """Goldberg's linkage of five hinges: one degree of freedom, although Kutzbach's formula gives -1.

    It consists of two Bennett linkages whose common bar is removed. At one end of the common bar, one bar of each linkage is joined to form a
    straight bar, the ground. At the other end the two linkages share a hinge.

    Parameters
    ----------
    leg : length of the bars on the ground, and of the common bar [m]
    leg_twist : angle between their hinges, in (0, pi) [rad]
    twist, other_twist : angles between the hinges of the other bars of the first and second loop, in (0, pi), different from leg_twist
        [rad]. The lengths of these bars are leg sin(twist) / sin(leg_twist)
    mass : mass of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1" to "link4" and the joints "joint1" (actuated) to "joint5"; "joint3", the shared hinge, closes the
    loop. The ground bar is on the x axis, from joint1 at the origin to joint5

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, a twist is out of range, or a twist equals leg_twist.

    References
    ----------
    Goldberg, New five-bar and six-bar linkages in three dimensions, Transactions of the ASME 65, 1943.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.goldberg_5r()
    >>> mobility = robot.mobility(robot.assemble(fixed={"joint1": 0.5}))
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom, mobility.kutzbach
    (1, 1, -1)
    """
    return _goldberg("Goldberg 5R linkage", leg, leg_twist, mass, twist=twist, other_twist=other_twist)


def goldberg_6r(
    leg: float = 0.5,
    leg_twist: float = 1.2,
    twist: float = 0.5,
    other_twist: float = 0.8,
    third_twist: float = 0.3,
    mass: float = 1.0,
) -> Mechanism:
    """Goldberg's linkage of six hinges: one degree of freedom, although Kutzbach's formula gives 0.

    It consists of three Bennett linkages whose common bars are removed: :func:`goldberg_5r` with a third Bennett linkage along the straight bar, the
    ground.

    Parameters
    ----------
    leg : length of the bars on the ground, and of the common bars [m]
    leg_twist : angle between their hinges, in (0, pi) [rad]
    twist, other_twist, third_twist : angles between the hinges of the other bars of the three loops, in (0, pi), different from
        leg_twist [rad]. The lengths of these bars are leg sin(twist) / sin(leg_twist)
    mass : mass of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1" to "link5" and the joints "joint1" (actuated) to "joint6"; "joint4" closes the loop. The ground bar
    is on the x axis, from joint1 at the origin to joint6

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, a twist is out of range, or a twist equals leg_twist.

    References
    ----------
    Goldberg, New five-bar and six-bar linkages in three dimensions, Transactions of the ASME 65, 1943.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.goldberg_6r()
    >>> mobility = robot.mobility(robot.assemble(fixed={"joint1": 0.5}))
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom, mobility.kutzbach
    (1, 1, 0)
    """
    twists = {"twist": twist, "other_twist": other_twist, "third_twist": third_twist}
    return _goldberg("Goldberg 6R linkage", leg, leg_twist, mass, **twists)


def myard(leg: float = 0.4, leg_twist: float = 0.6, mass: float = 1.0) -> Mechanism:
    """Myard's linkage of five hinges, a Bennett linkage and its mirror image: one degree of freedom, although Kutzbach's formula gives -1.

    The mirror is the x-y plane. It contains the common bar of the two linkages, which is removed, and the hinge at one end of this bar. The hinge at
    the bar's other end is normal to the mirror. There, the bars of both linkages form one body between two hinges whose axes intersect in the mirror.
    The linkage stays symmetric when it moves.

    Parameters
    ----------
    leg : length of the bars at the hinge in the mirror [m]
    leg_twist : angle between their hinges, in (0, pi) except pi/2 [rad]. The next bars have a twist of pi/2 and the length
        leg / sin(leg_twist)
    mass : mass of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1" to "link4" and the joints "joint1" to "joint5". "joint1" is actuated; its axis is in the mirror, between the
    ground (one of the two bars of length `leg`) and link1. "joint3" closes the loop

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the twist is out of range.

    References
    ----------
    Myard, Contribution à la géométrie des systèmes articulés, Bulletin de la Société mathématique de France 59, 1931.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.myard()
    >>> mobility = robot.mobility(robot.assemble(fixed={"joint1": 0.5}))
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom, mobility.kutzbach
    (1, 1, -1)
    """
    positive(leg=leg, mass=mass)
    checked_twists(leg_twist=leg_twist, **{"a right angle": math.pi / 2})
    heads, feet = bennett_row([(leg / math.sin(leg_twist), math.pi / 2)], (leg, leg_twist), 1.0)
    mirror = np.array([1, 1, -1])
    first, second, (meeting, axis) = hinges_of([heads[1], feet[1], feet[0]])
    # the third hinge is at the far end of the body whose two hinges intersect at `meeting`
    third = (meeting + leg / 2 * axis, axis)
    fifth, fourth = ((point * mirror, axis * mirror) for point, axis in (second, third))
    return hinge_loop("Myard linkage", [first, second, third, fourth, fifth], mass).build()


def schatz(length: float = 0.3, shaft: float = 0.2, mass: float = 1.0) -> Mechanism:
    """Schatz' linkage, the drive of the Turbula mixer: one degree of freedom, although Kutzbach's formula gives 0.

    A body tumbles between two parallel shafts without a full rotation. The axes of neighbouring hinges are perpendicular, except for the two parallel
    shafts. Three bars have the same length, and the distance of the shafts is sqrt(3) times this length. The linkage is derived from Bricard's
    trihedral linkage.

    Parameters
    ----------
    length : length of the three bars from fork to fork [m]; the middle bar carries the mixing vessel
    shaft : length of the shafts, up to the forks [m]
    mass : mass of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1" and "link5" (the shafts, about z), "link2", "link3" (the tumbling body) and "link4". The joints are
    "joint1" (actuated) to "joint6"; "joint4" closes the loop. The forks of the shafts are at the origin and at (length sqrt(3), 0, 0)

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Schatz, US patent 2302804, 1942. Lee and Dai, Configuration analysis of the Schatz linkage, Proceedings of the Institution of
    Mechanical Engineers C 217, 2003.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.schatz()
    >>> mobility = robot.mobility(robot.assemble(fixed={"joint1": 0.5}))
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom, mobility.kutzbach
    (1, 1, 0)
    """
    positive(length=length, shaft=shaft, mass=mass)
    # at home the three bars are mutually perpendicular, so that their vector sum has the norm sqrt(3) times a bar's length; the middle bar is level
    first = np.array([1 / math.sqrt(3), -1 / math.sqrt(6), 1 / math.sqrt(2)])
    middle = np.array([1 / math.sqrt(3), math.sqrt(2 / 3), 0.0])
    third = first * (1, 1, -1)
    down, across = np.array([0.0, 0.0, -shaft]), np.array([math.sqrt(3) * length, 0.0, 0.0])
    knee, elbow = length * first, length * (first + middle)
    hinges = [(down, "z"), ((0, 0, 0), middle), (knee, third), (elbow, first), (across, middle), (across + down, "z")]
    return hinge_loop("Schatz linkage", hinges, mass).build()


def double_hooke(angle: float = 0.5, shaft: float = 0.3, middle: float = 0.4, mass: float = 1.0) -> Mechanism:
    """Double Hooke joint between parallel shafts, which rotate at equal velocities: one degree of freedom, although Kutzbach's formula gives 0.

    The linkage has six hinges, and both forks of the middle shaft are in one plane. The first joint varies the velocity ratio between cos(angle) and
    its inverse, and the second joint compensates it.

    Parameters
    ----------
    angle : angle between the outer shafts and the middle shaft, in (0, pi/2) [rad]
    shaft, middle : length of each outer shaft up to its cross, and length of the middle shaft [m]
    mass : mass of each shaft and each cross [kg]

    Returns
    -------
    Mechanism with the bodies "link1" (driving shaft), "link2" (cross), "link3" (middle shaft, along x at home), "link4" (cross) and
    "link5" (driven shaft). The joints are "joint1" (actuated) to "joint6"; "joint4" closes the loop

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the angle is out of range.

    References
    ----------
    Hooke, Lectiones Cutlerianae, 1679; Hunt, Kinematic geometry of mechanisms, 1978 (linkages of six hinges).

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.double_hooke()
    >>> q = robot.follow({"joint1": np.linspace(0.0, 2.0, 3)})
    >>> q[:, robot.joint("joint6").q_slice].ravel().round(9)
    array([0., 1., 2.])
    """
    positive(shaft=shaft, middle=middle, mass=mass)
    between_zero_and("pi/2", angle=angle)
    c, s = math.cos(angle), math.sin(angle)
    along_shafts, fork = np.array([c, 0, -s]), np.array([s, 0, c])
    across, end = np.array([0, 1.0, 0]), np.array([middle, 0, 0])
    arm = shaft / 10  # half the length of a cross' arm
    near = [(-shaft * along_shafts, along_shafts), (arm * fork, fork), (arm * across, across)]
    hinges = [*near, (end + arm * across, across), (end + arm * fork, fork), (end + shaft * along_shafts, along_shafts)]
    return hinge_loop("double Hooke joint", hinges, mass).build()


Kind = Literal[
    "trihedral",
    "line-symmetric",
    "plane-symmetric",
    "line-symmetric octahedral",
    "plane-symmetric octahedral",
    "doubly collapsible octahedral",
]


def bricard(edge: float = 1.0, mass: float = 1.0, kind: Kind = "trihedral") -> Mechanism:
    """Bricard's linkages of six hinges: one degree of freedom, although Kutzbach's formula gives 0.

    The trihedral linkage has six bars. At home they are along six edges of a cube, and the hinge between two bars is along the third edge of their
    corner. The linkage can turn inside out. At home, q = 0, the bars' frames are parallel to the ground. The doubly collapsible octahedron is an
    exception: it is flat at q = 0, and its home is another configuration.

    Parameters
    ----------
    edge : length of the cube's edges, or length scale of the other kinds, whose proportions are fixed [m]
    mass : mass of each moving bar [kg]
    kind : one of the following.
        "trihedral": along the edges of a cube.
        "line-symmetric": a rotation by pi about z maps each hinge to the opposite hinge.
        "plane-symmetric": the first and the fourth hinge are in the x-z plane; the other four hinges form two pairs of mirror images in this plane.
        "line-symmetric octahedral", "plane-symmetric octahedral", "doubly collapsible octahedral": Bricard's three flexible octahedra. The hinges are
        along a closed path over six edges of the octahedron; the other six edges keep their lengths. The last kind has two flat configurations

    Returns
    -------
    Mechanism with the bodies "link1" to "link5"; the sixth bar is the ground (of the trihedral linkage from (0, 0, edge) to the origin). The joints
    are "joint1" (actuated) to "joint6"; joint k connects bar k - 1 to bar k

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the kind does not exist.

    References
    ----------
    Bricard, Mémoire sur la théorie de l'octaèdre articulé, Journal de mathématiques pures et appliquées, 1897, and Leçons de cinématique,
    volume 2, 1927. Baker, An analysis of the Bricard linkages, Mechanism and Machine Theory 15, 1980. Five rods of 1 m and 1 kg along a
    cube: IFToMM, Library of computational benchmark problems, problem A04.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.bricard()
    >>> mobility = robot.mobility(robot.neutral())
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom, mobility.kutzbach
    (1, 1, 0)
    """
    positive(edge=edge, mass=mass)
    check_choice("kind", kind, _BRICARD, ModelError)
    hinges = [(edge * np.array(point, dtype=float), axis) for point, axis in _BRICARD[kind]()]
    b = hinge_loop("Bricard linkage" if kind == "trihedral" else f"Bricard linkage, {kind}", hinges, mass)
    # this linkage is flat at q = 0, where two branches meet; therefore another configuration is its home
    if kind == "doubly collapsible octahedral":
        robot = b.build()
        b.home = dict(zip(robot.joints, robot.assemble(fixed={"joint1": 1.0}), strict=True))
    return b.build()


def _cube() -> list[Hinge]:
    # corners of the cube along the loop: from the origin by +x, +y, +z to (1, 1, 1), then by -x, -y to the ground's second end (0, 0, 1)
    corners = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1), (0, 0, 1))
    return [*zip(corners, ("y", "z", "x", "y", "z", "x"), strict=True)]


# rotation by pi about z, and reflection in the x-z plane, as factors of (x, y, z)
HALF_TURN, MIRROR = np.array([-1.0, -1.0, 1.0]), np.array([1.0, -1.0, 1.0])


def _line_symmetric() -> list[Hinge]:
    points = np.array([(1.0, 0.2, 0.1), (0.6, 0.9, 0.5), (-0.3, 1.0, -0.2)])
    axes = np.array([(0.3, 0.4, 1.0), (1.0, 0.1, 0.3), (0.2, 1.0, -0.6)])
    return [*zip([*points, *points * HALF_TURN], [*axes, *axes * HALF_TURN], strict=True)]


def _plane_symmetric() -> list[Hinge]:
    points = np.array([(1.0, 0.0, 0.0), (0.5, 0.6, 0.4), (-0.4, 0.8, -0.2), (-1.0, 0.0, 0.1)])
    axes = np.array([(0.3, 0.0, 1.0), (1.0, 0.3, 0.5), (-0.2, 1.0, 0.4), (1.0, 0.0, 0.5)])
    return [*zip([*points, *points[2:0:-1] * MIRROR], [*axes, *axes[2:0:-1] * MIRROR], strict=True)]


def _along_edges(corners: ArrayLike) -> list[Hinge]:
    """Return the hinges along the edges of a closed path over the six corners of an octahedron.

    Corners k and k + 3 are opposite: no edge joins them.
    """
    a = np.array(corners, dtype=float)
    b = np.roll(a, -1, axis=0)
    return [*zip((a + b) / 2, b - a, strict=True)]


def _line_symmetric_octahedron() -> list[Hinge]:
    corners = np.array([(1.0, 0.2, 0.0), (0.1, 0.9, 0.6), (0.5, -0.4, 1.0)])
    return _along_edges([*corners, *corners * HALF_TURN])


def _plane_symmetric_octahedron() -> list[Hinge]:
    corners = np.array([(1.0, 0.0, 0.1), (0.3, 0.8, 0.5), (0.2, 0.7, -0.6), (-0.9, 0.0, 0.3)])
    return _along_edges([*corners, *corners[1:3] * MIRROR])


def _doubly_collapsible_octahedron() -> list[Hinge]:
    """Return the corners of the flat octahedron.

    Four edges between two pairs of opposite corners are tangent to one circle, and four other edges to a concentric circle.
    """
    first, fourth = -0.7 + 0.7j, -0.2 + 1.0j

    def meeting(radius: float, side: int) -> complex:
        """Return the intersection of two tangents to a circle of this radius, one from the first corner and one from the fourth corner."""
        u, w = (
            cmath.exp(1j * (cmath.phase(-corner) + side * math.asin(radius / abs(corner))))
            for corner in (first, fourth)
        )
        return first + u * ((fourth - first) * w.conjugate()).imag / (u * w.conjugate()).imag

    second, fifth = (meeting(0.2, side) for side in (1, -1))
    third, sixth = (meeting(0.7, side) for side in (1, -1))
    return _along_edges([(c.real, c.imag, 0.0) for c in (first, second, third, fourth, fifth, sixth)])


_BRICARD = {
    "trihedral": _cube,
    "line-symmetric": _line_symmetric,
    "plane-symmetric": _plane_symmetric,
    "line-symmetric octahedral": _line_symmetric_octahedron,
    "plane-symmetric octahedral": _plane_symmetric_octahedron,
    "doubly collapsible octahedral": _doubly_collapsible_octahedron,
}
