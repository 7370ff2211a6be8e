"""Parallel manipulators, in which several legs carry one tool."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np

from ..description.joints import Fixed, Prismatic, Revolute, Spherical, Universal
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia, Rotation, Transform
from .drawing import Drawing, Point, apex, in_space, integer, positive, positive_or_zero, real, true_or_false

# directions of the drives of Klipper's printers from x [rad]: linear Delta, rotary Delta
TOWERS = (math.radians(210), math.radians(330), math.radians(90))
ARMS = (math.radians(30), math.radians(150), math.radians(270))


def five_bar(
    actuated: int = 2, crank: float = 0.3, rod: float = 0.5, base: float = 0.4, mass: float = 1.0
) -> Mechanism:
    """Planar manipulator of two cranks and two rods in the x-z plane: two degrees of freedom.

    With more than two motors the manipulator is redundantly actuated, so that the motors can apply internal forces without moving it.

    Parameters
    ----------
    actuated : number of motors. 2: at the cranks; 3: at the left elbow too; 4: at both elbows
    crank, rod : distances between the pins [m]
    base : distance of the cranks' axes, at the origin and on the x axis [m]
    mass : mass of each bar [kg]

    Returns
    -------
    Mechanism with the bodies "left_crank", "left_rod", "right_crank" and "right_rod". The joints are "left_motor", "left_elbow",
    "right_motor", "right_elbow" and "pin". The frame "tip" is on the left rod, above the middle of the base at home

    Raises
    ------
    ModelError
        The number of motors is not from 2 to 4, a dimension or a mass is not positive, or the bars do not reach each other.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar(actuated=3)
    >>> robot.actuated
    ('left_motor', 'left_elbow', 'right_motor')
    """
    integer("actuated", actuated, 2, 4)
    positive(crank=crank, rod=rod, base=base, mass=mass)
    # smallest and largest distance between the elbows, limited by the base and the cranks, and by the rods
    nearest, farthest = max(base - 2 * crank, 0.0), min(base + 2 * crank, 2 * rod)
    if not nearest < farthest:
        raise ModelError(f"rods of {rod:g} m on cranks of {crank:g} m with base = {base:g} m do not reach each other")
    distance = (nearest + farthest) / 2
    left = crank * cmath.exp(1j * math.acos((base - distance) / (2 * crank)))
    right = base - left.conjugate()
    tip = apex(left, right, rod, rod)

    b = Drawing("five-bar")
    b.bar("left_crank", mass, crank, left, "left_motor", "ground", actuated=True)
    b.bar("left_rod", mass, rod, tip - left, "left_elbow", "left_crank", crank, actuated=actuated > 2)
    b.bar("right_crank", mass, crank, right - base, "right_motor", "ground", base, actuated=True)
    b.bar("right_rod", mass, rod, tip - right, "right_elbow", "right_crank", crank, actuated=actuated > 3)
    b.close("pin", "left_rod", "right_rod", rod, rod)
    b.add_frame("tip", "left_rod", in_space(rod))
    return b.build()


def three_rrr(
    actuated: int = 3, platform: float = 0.0, base: float = 0.5, link: float = 0.3, mass: float = 0.2
) -> Mechanism:
    """Three chains of two links in the x-y plane that meet in a point or carry a platform: two or three degrees of freedom.

    Without a platform, as in the lecture notes, the manipulator has two degrees of freedom, and three motors at the base joints actuate it
    redundantly. With a platform, which can rotate, it has three degrees of freedom. Motors at the elbows are additional, redundant actuators.

    Parameters
    ----------
    actuated : number of motors, 3 to 6. Three are at the base joints of the chains; additional ones are at the elbows of the first, second and third
        chain
    platform : distance of the platform's three pins from its centre [m]; 0: no platform, the chains' tips are pinned to each other
    base : side of the equilateral triangle of base joints [m]; two of them are at (0, 0) and (base, 0)
    link : length of each link [m]
    mass : mass of each link and of the platform [kg]

    Returns
    -------
    Mechanism with the bodies "upper1" and "lower1" to "upper3" and "lower3", and "platform", if there is one. The joints "base1",
    "elbow1", ..., "tip2", "tip3" and, with a platform, "tip1", are all about z. The frame "tip" is at the common point of the chains; the body
    "platform" has its frame at its centre. Gravity (0, 0, -9.81) m/s² is normal to the plane. At home the tip or the platform is at the centre of the
    base triangle

    Raises
    ------
    ModelError
        The number of motors is not from 3 to 6, a dimension or a mass is not positive, or the links do not reach the platform.

    References
    ----------
    Li and Wu 2011, 4.6, redundant parallel manipulator.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.three_rrr()
    >>> robot.pose(robot.assemble(), "tip")[:2, 3].round(6)
    array([0.25    , 0.144338])
    """
    integer("actuated", actuated, 3, 6)
    positive(base=base, link=link, mass=mass)
    positive_or_zero(platform=platform)
    corners = [0j, base + 0j, base * cmath.exp(1j * math.pi / 3)]
    middle = sum(corners) / 3
    pins = [platform * (corner - middle) / abs(corner - middle) for corner in corners]
    end, rod = (link, 0, 0), Inertia.rod(mass, (0, 0, 0), (link, 0, 0))
    b = Drawing("3-RRR" if platform else "redundant 3-RR")
    for k, (corner, pin) in enumerate(zip(corners, pins, strict=True), start=1):
        elbow = apex(corner, middle + pin, link, link)  # the elbow is on the left, seen from the base
        upper, lower, at = elbow - corner, middle + pin - elbow, (corner.real, corner.imag, 0)
        hinge, motor, bend = Revolute("z"), actuated >= 3 + k, cmath.phase(lower / upper)
        b.link(f"upper{k}", rod, f"base{k}", hinge, "ground", at, home=cmath.phase(upper), actuated=True)
        b.link(f"lower{k}", rod, f"elbow{k}", hinge, f"upper{k}", end, home=bend, actuated=motor)
        if platform and k == 1:
            b.home["tip1"] = -cmath.phase(lower)
    if platform:
        # moment of inertia of a triangular plate about an axis in its plane through its centre
        across = mass * platform**2 / 8
        b.add_body("platform", Inertia(mass, (0, 0, 0), np.diag([across, across, 2 * across])))
        for k, pin in enumerate(pins, start=1):
            at = (pin.real, pin.imag, 0)
            b.add_joint(f"tip{k}", Revolute("z"), f"lower{k}", "platform", at_parent=end, at_child=at, loop=k > 1)
    else:
        for k in (2, 3):
            b.add_joint(f"tip{k}", Revolute("z"), "lower1", f"lower{k}", at_parent=end, at_child=end, loop=True)
        b.add_frame("tip", "lower1", end)
    return b.build()


def delta(
    platform_free: bool = True,
    base_radius: float = 0.2,
    arm: float = 0.3,
    forearm: float = 0.6,
    platform_radius: float = 0.06,
    mass: float = 0.5,
) -> Mechanism:
    """Clavel's Delta robot, whose platform translates without rotation: three degrees of freedom.

    A parallelogram of two rods connects each of the three driven arms to the platform. The arms swing in vertical planes at 0, 120 and 240 degrees
    from x; positive angles are downwards. At home all arms are horizontal and the platform hangs below the centre of the base.

    Parameters
    ----------
    platform_free : if True, the platform has a Free joint to the ground, and the joints of all six rods to it are loop joints. If False, the first
        rod connects it to the tree
    base_radius : distance of the motors' axes from the centre of the base [m]
    arm, forearm : distances between the joints [m]; the distance of a forearm's rods is arm / 3
    platform_radius : distance of the rods' lower ends from the platform's centre [m]
    mass : mass of an arm and of the platform [kg]; a rod has a tenth of this mass

    Returns
    -------
    Mechanism with the bodies "arm<k>", "rod<k>a", "rod<k>b", k = 1, 2, 3, and "platform". The joints are "motor<k>" (actuated),
    "elbow<k>a", "elbow<k>b" (Universal y x), "float", and "ball<k>a", "ball<k>b" (Spherical)

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the forearms do not reach the platform from level arms.

    References
    ----------
    Clavel, US patent 4976582, 1990.

    Examples
    --------
    All arms down by 0.3 rad:

    >>> import sarrus
    >>> robot = sarrus.mechanisms.delta()
    >>> q = robot.assemble(fixed={"motor1": 0.3, "motor2": 0.3, "motor3": 0.3})
    >>> robot.pose(q, "platform").round(4) + 0.0
    array([[ 1.    ,  0.    ,  0.    ,  0.    ],
           [ 0.    ,  1.    ,  0.    ,  0.    ],
           [ 0.    ,  0.    ,  1.    , -0.5106],
           [ 0.    ,  0.    ,  0.    ,  1.    ]])
    """
    true_or_false(platform_free=platform_free)
    positive(base_radius=base_radius, arm=arm, forearm=forearm, platform_radius=platform_radius, mass=mass)
    inwards = base_radius + arm - platform_radius
    if not abs(inwards) < forearm:
        raise ModelError(f"forearm must be longer than {abs(inwards):g} m to reach the platform; got {forearm!r}")
    depth, lean = math.sqrt((forearm - inwards) * (forearm + inwards)), math.asin(inwards / forearm)
    spacing = arm / 3
    b = Drawing("Delta robot")
    upper, rod = Inertia.rod(mass, (0, 0, 0), (arm, 0, 0)), Inertia.rod(mass / 10, (0, 0, 0), (0, 0, -forearm))
    turns = [Transform.from_rpy(0, 0, 2 * math.pi * k / 3) for k in range(3)]
    for k, turn in enumerate(turns, start=1):
        at = turn @ Transform(translation=(base_radius, 0, 0))
        b.link(f"arm{k}", upper, f"motor{k}", Revolute("y"), "ground", at, home=0.0, actuated=True)
        for side, across in (("a", -spacing / 2), ("b", spacing / 2)):
            # axes y and then x, so that the rod cannot spin about itself
            elbow, tip = Universal("y", "x"), (arm, across, 0)
            b.link(f"rod{k}{side}", rod, f"elbow{k}{side}", elbow, f"arm{k}", tip, home=[lean, 0.0])
    plate = Inertia.cylinder(mass, platform_radius, platform_radius / 5)
    b.floating("platform", plate, (0, 0, -depth), free=platform_free)
    if not platform_free:
        b.home["ball1a"] = Rotation.from_axis_angle("y", -lean).quaternion
    for k, turn in enumerate(turns, start=1):
        for side, across in (("a", -spacing / 2), ("b", spacing / 2)):
            ends, corner = (f"rod{k}{side}", "platform"), turn.apply((platform_radius, across, 0))
            loop = platform_free or (k, side) != (1, "a")
            b.add_joint(f"ball{k}{side}", Spherical(), *ends, at_parent=(0, 0, -forearm), at_child=corner, loop=loop)
    return b.build()


def delta_printer(
    arm: float = 0.334, delta_radius: float = 0.18, effector_radius: float = 0.03, spacing: float = 0.05,
    angles: Sequence[float] = TOWERS, mass: float = 0.1,
) -> Mechanism:  # fmt: skip
    """3D printer with three towers (a linear Delta): carriages move an effector, which does not rotate, by pairs of rods.

    The coordinate of a carriage is the height of its rod ends above the bed: ``z + sqrt(arm**2 - d**2)`` at height z of the nozzle and horizontal
    distance d between the ends of a rod. At home the nozzle is on the centre of the bed, which is the world's origin. The dimensions that Klipper
    calibrates are "carriage<k>.offset" (endstop), "tower<k>.parent.rz" (angle), "carriage<k>.parent.x" (delta_radius) and "ball<k>a.parent.z",
    "ball<k>b.parent.z" (arm_length, with negative sign).

    Parameters
    ----------
    arm : length of the rods, Klipper's `arm_length` [m]
    delta_radius : horizontal distance between the ends of a rod with the nozzle over the centre of the bed, as in Klipper [m]
    effector_radius : horizontal distance of the rods' lower ends from the nozzle [m]
    spacing : distance of the two rods of a carriage [m]
    angles : (3,) directions of the towers from x, about z [rad]; default: 210, 330 and 90 degrees, those of Klipper's stepper_a, _b and _c
    mass : mass of a carriage and of the effector [kg]; a rod has a tenth of this mass

    Returns
    -------
    Mechanism with the bodies "tower<k>", "carriage<k>", "rod<k>a", "rod<k>b", k = 1, 2, 3, and "effector". The joints are "tower<k>" (Fixed),
    "carriage<k>" (Prismatic z, actuated), "top<k>a", "top<k>b" (Universal y x), "float", and "ball<k>a", "ball<k>b" (Spherical). The frame
    "nozzle" is at the centre of the effector, at the height of the rods' lower ends

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, there are not three angles, or the rods do not reach the effector.

    Examples
    --------
    >>> import sarrus
    >>> printer = sarrus.mechanisms.delta_printer()
    >>> q = printer.inverse_kinematics({"nozzle": (0.05, 0.02, 0.01)}, near=printer.assemble())
    >>> [round(1e3 * float(printer.joint_states(q).q[name][0]), 2) for name in printer.actuated]
    [248.89, 307.06, 298.89]
    """
    positive(arm=arm, delta_radius=delta_radius, effector_radius=effector_radius, spacing=spacing, mass=mass)
    if not delta_radius < arm:
        raise ModelError(f"arm must be longer than delta_radius = {delta_radius:g} m to reach the nozzle; got {arm!r}")
    height = math.sqrt((arm - delta_radius) * (arm + delta_radius))
    at, carriage = (delta_radius + effector_radius, 0, 0), Inertia.sphere(mass, spacing / 2)
    drive = ("carriage", Prismatic("z"), at, carriage, (0, 0, 0), height)
    return _printer("Delta printer", drive, math.asin(delta_radius / arm), arm, effector_radius, spacing, angles, mass)


def rotary_delta_printer(
    upper_arm: float = 0.17, lower_arm: float = 0.32, shoulder_radius: float = 0.0339, shoulder_height: float = 0.4129, effector_radius: float = 0.03,
    spacing: float = 0.05, angles: Sequence[float] = ARMS, mass: float = 0.1,
) -> Mechanism:  # fmt: skip
    """3D printer with three swinging arms above the bed (a rotary Delta), which move an effector, which does not rotate, by pairs of rods.

    The coordinate of an arm is its angle below the horizontal. At home the nozzle is on the centre of the bed, which is the world's origin.

    Parameters
    ----------
    upper_arm, lower_arm : lengths of the arms, and of the rods, Klipper's `upper_arm_length` and `lower_arm_length` [m]
    shoulder_radius : horizontal distance of the arms' axes from the centre, less `effector_radius`, as in Klipper [m]
    shoulder_height : height of the arms' axes above the bed, as in Klipper [m]
    effector_radius : horizontal distance of the rods' lower ends from the nozzle [m]
    spacing : distance of the two rods of an arm [m]
    angles : (3,) directions of the arms from x, about z [rad]; default: 30, 150 and 270 degrees, as in Klipper
    mass : mass of an arm and of the effector [kg]; a rod has a tenth of this mass

    Returns
    -------
    Mechanism as of :func:`delta_printer`, with the bodies and joints "arm<k>" (Revolute y, actuated) in place of the carriages

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, there are not three angles, or the arms do not reach the bed.

    Examples
    --------
    >>> import sarrus
    >>> printer = sarrus.mechanisms.rotary_delta_printer()
    >>> q = printer.inverse_kinematics({"nozzle": (0.05, 0.02, 0.01)}, near=printer.assemble())
    >>> [round(float(printer.joint_states(q).q[name][0]), 4) for name in printer.actuated]
    [0.6606, 0.9199, 0.8833]
    """
    positive(upper_arm=upper_arm, lower_arm=lower_arm, shoulder_radius=shoulder_radius, shoulder_height=shoulder_height)
    positive(effector_radius=effector_radius, spacing=spacing, mass=mass)
    # triangle of shoulder, elbow and rod end: the elbow is outside the line from the shoulder to the rod end
    reach = math.hypot(shoulder_radius, shoulder_height)
    if not abs(upper_arm - lower_arm) < reach < upper_arm + lower_arm:
        raise ModelError(
            f"upper_arm = {upper_arm:g} m and lower_arm = {lower_arm:g} m do not reach the bed, {reach:g} m away"
        )
    inner = math.acos((reach**2 + upper_arm**2 - lower_arm**2) / (2 * reach * upper_arm))
    angle = math.pi - math.atan2(shoulder_height, shoulder_radius) - inner
    lean = math.atan2(shoulder_radius + upper_arm * math.cos(angle), shoulder_height - upper_arm * math.sin(angle))
    at, inertia = (
        (shoulder_radius + effector_radius, 0, shoulder_height),
        Inertia.rod(mass, (0, 0, 0), (upper_arm, 0, 0)),
    )
    drive = ("arm", Revolute("y"), at, inertia, (upper_arm, 0, 0), angle)
    return _printer("rotary Delta printer", drive, lean, lower_arm, effector_radius, spacing, angles, mass)


def _printer(
    name: str, drive: tuple[str, Prismatic | Revolute, Point, Inertia, Point, float], lean: float, rod: float, effector_radius: float, spacing: float,
    angles: Sequence[float], mass: float,
) -> Mechanism:  # fmt: skip
    """Return a printer with three drives: name, joint, place on the tower, inertia, place of the rod ends, home coordinate. `lean` is the angle of the
    rods from the vertical [rad].
    """
    moving, joint, at, inertia, end, home = drive
    if np.shape(angles) != (3,):
        raise ModelError(f"angles must be three angles [rad], one for each tower; got {angles!r}")
    b = Drawing(name)
    down = lean - (home if isinstance(joint, Revolute) else 0.0)
    turns = [Transform.from_rpy(0, 0, real("angles", angle)) for angle in angles]
    for k, turn in enumerate(turns, start=1):
        b.link(f"tower{k}", Inertia.sphere(mass, spacing / 2), f"tower{k}", Fixed(), "ground", turn)
        b.link(f"{moving}{k}", inertia, f"{moving}{k}", joint, f"tower{k}", at, home=home, actuated=True)
        for side, across in (("a", -spacing / 2), ("b", spacing / 2)):
            part = Inertia.rod(mass / 10, (0, 0, 0), (0, 0, -rod))
            top = np.add(end, (0, across, 0))
            b.link(f"rod{k}{side}", part, f"top{k}{side}", Universal("y", "x"), f"{moving}{k}", top, home=[down, 0.0])
    b.floating("effector", Inertia.cylinder(mass, effector_radius, effector_radius / 5), (0, 0, 0))
    b.add_frame("nozzle", "effector", (0, 0, 0))
    for k, turn in enumerate(turns, start=1):
        for side, across in (("a", -spacing / 2), ("b", spacing / 2)):
            ball, ends = f"ball{k}{side}", (f"rod{k}{side}", "effector")
            corner = turn.apply((effector_radius, across, 0))
            b.add_joint(ball, Spherical(), *ends, at_parent=(0, 0, -rod), at_child=corner, loop=True)
    return b.build()


def cable_platform(
    length: float = 4.0, width: float = 3.0, height: float = 2.0, platform: float = 0.5, radius: float = 0.05, mass: float = 20.0
) -> Mechanism:  # fmt: skip
    """Platform on eight cables from the corners of a room: six degrees of freedom, and two independent internal forces of the cables.

    The upper cables end at the platform's lower corners, the lower cables at its upper corners. Each cable runs along a vertical post in a corner of
    the room to a pulley, which swivels about the post. The cable's coordinate is its length between pulley and platform. Cables can only pull, so
    that the winches' efforts are negative. With bounds `least` and `most` [N] of the tensions, compute them by ``actuator_efforts(q, v, a,
    limits=(-most, -least))``.

    Parameters
    ----------
    length, width, height : sizes of the room along x, y and z [m]
    platform : size of the box-shaped platform along y [m]; its sizes along x and z are three fifths of this
    radius : radius of the pulleys [m]; 0: no pulleys
    mass : mass of the platform [kg]

    Returns
    -------
    Mechanism with the body "platform", the joint "float" and the actuated cables "cable1" to "cable8", the upper cables first. At home the platform
    is at the centre of the room

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the platform or the pulleys do not fit into the room.

    References
    ----------
    Pott, Cable-Driven Parallel Robots, 2018 (the topology of IPAnema).

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.cable_platform()
    >>> rest = np.zeros(6)
    >>> u = robot.actuator_efforts(robot.assemble(), rest, rest, limits=(-1000.0, -20.0))
    >>> u.shape, bool((u <= -20.0).all())
    ((8,), True)
    """
    positive(length=length, width=width, height=height, platform=platform, mass=mass)
    positive_or_zero(radius=radius)
    sides = platform * np.array([0.6, 1.0, 0.6])
    room = np.array([length, width, height])
    if (sides + 8.0 * radius >= room).any():
        raise ModelError(f"a platform of {platform:g} m with pulleys of {radius:g} m does not fit into the room")
    b = Drawing("cable platform")
    b.floating("platform", Inertia.box(mass, sides), (0, 0, height / 2))
    for k in range(8):
        up, corner = (1, -1)[k // 4], np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)][k % 4])
        post = (*(corner * room[:2] / 2), (1 + up) * height / 2)
        hook = (*(corner * sides[:2] / 2), -up * sides[2] / 2)
        axis = "z" if up > 0 else "-z"
        b.add_cable(f"cable{k + 1}", ("ground", post), ("platform", hook), radius=radius, axis=axis, actuated=True)
    return b.build()


def stewart(
    platform_free: bool = True,
    base_radius: float = 1.0,
    platform_radius: float = 0.5,
    height: float = 1.0,
    leg_mass: float = 1.0,
    platform_mass: float = 10.0,
) -> Mechanism:
    """Stewart and Gough's platform on six extensible legs (6-UPS): six degrees of freedom.

    The lower ends of the legs are on a circle, in pairs around 0, 120 and 240 degrees; the two ends of a pair are 30 degrees apart. The upper ends
    are in pairs around 60, 180 and 300 degrees, so that neighbouring legs lean towards each other. At home the platform is level above the centre of
    the base. The coordinate of a leg is its length [m].

    Parameters
    ----------
    platform_free : if True, the platform has a Free joint to the ground and all six legs close loops (24 velocities, 18 constraint rows). If False,
        the first leg connects it to the tree (21 velocities, 15 rows)
    base_radius, platform_radius : distances of the legs' lower and upper ends from the centres of base and platform [m]
    height : height of the platform at home [m]
    leg_mass : mass of each of the two parts of a leg [kg]
    platform_mass : mass of the platform [kg]

    Returns
    -------
    Mechanism with the bodies "cylinder<k>" and "piston<k>", k = 1 ... 6, and "platform". The joints are "foot<k>" (Universal x y),
    "leg<k>" (Prismatic, actuated), "float" and "ball<k>" (Spherical)

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Gough and Whitehall, Universal tyre test machine, 1962; Stewart, A platform with six degrees of freedom, 1965.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.stewart()
    >>> robot.nv, robot.constraint_jacobian(robot.assemble()).shape
    (24, (18, 24))
    """
    true_or_false(platform_free=platform_free)
    positive(base_radius=base_radius, platform_radius=platform_radius, height=height)
    positive(leg_mass=leg_mass, platform_mass=platform_mass)
    feet, tops = [], []
    for k in range(6):
        pair, side = divmod(k + 1, 2)
        below = math.radians(120 * pair + 30 * side - 15)
        above = math.radians(60 + 120 * (k // 2) + 30 * (k % 2) - 15)
        feet.append(base_radius * np.array([math.cos(below), math.sin(below), 0]))
        tops.append(platform_radius * np.array([math.cos(above), math.sin(above), 0]))

    b = Drawing("Stewart platform")
    for k, (foot, top) in enumerate(zip(feet, tops, strict=True), start=1):
        leg = np.add(top, (0, 0, height)) - foot
        length = float(np.linalg.norm(leg))
        half = 0.6 * length  # each of the leg's two parts has this length, so that they overlap
        tilt = math.atan2(-leg[1], leg[2]), math.asin(leg[0] / length)
        cylinder = Inertia.rod(leg_mass, (0, 0, 0), (0, 0, half), radius=half / 20)
        b.link(f"cylinder{k}", cylinder, f"foot{k}", Universal("x", "y"), "ground", foot, home=tilt)
        piston = Inertia.rod(leg_mass, (0, 0, -half), (0, 0, 0), radius=half / 40)
        b.link(f"piston{k}", piston, f"leg{k}", Prismatic("z"), f"cylinder{k}", home=length, actuated=True)
        if k == 1 and not platform_free:
            turn = Rotation.from_axis_angle("x", tilt[0]) @ Rotation.from_axis_angle("y", tilt[1])
            b.home["ball1"] = turn.inverse().quaternion
    plate = Inertia.cylinder(platform_mass, platform_radius, platform_radius / 10)
    b.floating("platform", plate, (0, 0, height), free=platform_free)
    for k, top in enumerate(tops, start=1):
        loop = platform_free or k > 1
        b.add_joint(f"ball{k}", Spherical(), f"piston{k}", "platform", at_child=top, loop=loop)
    return b.build()
