"""Wheels that roll without slip, and robots on a moving base: in orbit, on an asteroid, on wheels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arrays import ArrayLike
from ..building.changes import Placement
from ..description.joints import Free, JointType, Planar, Prismatic, Revolute, Universal
from ..mechanism import Mechanism
from ..shapes import Box, Cylinder
from ..spatial import Inertia, Rotation, Transform
from .drawing import Drawing, Point, integer, positive, real, true_or_false

# ---- wheels that roll without slip -----------------------------------------------------------------------------------


def rolling_disc(
    upright: bool = False,
    radius: float = 0.3,
    mass: float = 2.0,
    steer_inertia: float = 0.05,
    roll_inertia: float = 0.1,
) -> Mechanism:
    """Disc that rolls without slip on the plane z = 0, like a coin, or upright, like a unicycle's wheel.

    Parameters
    ----------
    upright : if True, the disc stays upright, with q = (x, y, steering angle, rolling angle) [m, m, rad, rad]. At a steering angle of zero it rolls
        along x; both angles are actuated. If False, the disc can lean and fall
    radius : radius of the disc [m]
    mass : mass of the disc [kg]
    steer_inertia, roll_inertia : moments of inertia about a diameter and about the axle [kg m²]; the second is at most twice the first

    Returns
    -------
    Mechanism with the body "disc" (its frame at its centre, y along the axle). The constraint "contact" has one row along the plane's normal and two
    tangential, nonholonomic rows. If the disc is free, its joint is "float". If it stays upright, it has the joints "x", "y", "steer" and "roll",
    with massless bodies between them. At home the disc is upright at the origin

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the inertias are unphysical.

    References
    ----------
    Li and Wu 2011, 4.6, rolling disk: x' = radius cos(steer) roll', y' = radius sin(steer) roll'.

    Examples
    --------
    >>> import sarrus
    >>> disc = sarrus.mechanisms.rolling_disc(upright=True)
    >>> disc.forward_dynamics([0, 0, 0.2, 0], [0, 0, 0, 0], [0, 0, 0.02, 0.5]).round(6)
    array([0.525036, 0.10643 , 0.4     , 1.785714])
    """
    true_or_false(upright=upright)
    positive(radius=radius, mass=mass, steer_inertia=steer_inertia, roll_inertia=roll_inertia)
    b = Drawing("rolling disc")
    disc = Inertia(mass, (0, 0, 0), np.diag([steer_inertia, roll_inertia, steer_inertia]))
    b.floating("disc", disc, (0, 0, radius), free=not upright)
    if upright:
        b.link("along", None, "x", Prismatic("x"), "ground", (0, 0, radius), home=0.0)
        b.link("across", None, "y", Prismatic("y"), "along", home=0.0)
        b.link("fork", None, "steer", Revolute("z"), "across", home=0.0, actuated=True)
        b.add_joint("roll", Revolute("y"), "fork", "disc", actuated=True)
        b.home["roll"] = 0.0
    b.add_rolling("contact", "disc", radius=radius, axle=(0, 1, 0))
    return b.build()


def whipple_bicycle(wheelbase: float = 1.02, trail: float = 0.08, tilt: float = np.pi / 10) -> Mechanism:
    """Whipple bicycle with a rigid rider: two frames, a steering hinge, and two knife-edged wheels that roll without slip.

    Parameters that are not arguments have the values of the benchmark of Meijaard, Papadopoulos, Ruina and Schwab (2007). The x-axis points forward,
    y to the left, z up. The tree has nine coordinates and nine velocities. The constraints leave seven coordinates and three velocities independent.

    Parameters
    ----------
    wheelbase : distance of the wheels' contacts at home [m]
    trail : distance of the front wheel's contact behind the intersection of the steering axis with the ground [m]
    tilt : angle between the vertical and the steering axis, which leans backwards [rad]

    Returns
    -------
    Mechanism with the bodies "rear frame", "rear wheel", "front frame" and "front wheel". Three massless bodies connect the ground and the
    rear frame's hub, by the joints "place" (x, y, heading), "height", "lean" and "pitch". The other joints are "rear wheel" and "steer",
    which are actuated, and "front wheel". The constraints are "rear contact" and "front contact". At home the bicycle is upright on z = 0,
    and rolls along x at 0.3 m times the velocity of "rear wheel"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the trail or the tilt is not a number.

    References
    ----------
    Meijaard, J., Papadopoulos, J., Ruina, A. and Schwab, A., Linearized dynamics equations for the balance and steer of a bicycle: a
    benchmark and review, Proc. R. Soc. A 463, 2007, table 1.

    Examples
    --------
    >>> import sarrus
    >>> bicycle = sarrus.mechanisms.whipple_bicycle()
    >>> bicycle.nv, int(sarrus.formulations.free_motions(bicycle, bicycle.assemble()).freedom)
    (9, 3)
    """
    positive(wheelbase=wheelbase)
    trail, tilt = real("trail", trail), real("tilt", tilt)
    rear, front = 0.3, 0.35  # radii of the wheels [m]
    axis = (-np.sin(tilt), 0.0, np.cos(tilt))

    def symmetric(xx: float, yy: float, zz: float, xz: float) -> list[list[float]]:
        return [[xx, 0.0, xz], [0.0, yy, 0.0], [xz, 0.0, zz]]

    # origins of the bodies' frames: the rear bodies' at the rear hub, the front frame's at the intersection of the steering axis with the ground
    frame = Inertia(85.0, (0.3, 0.0, 0.9 - rear), symmetric(9.2, 11.0, 2.8, -2.4))
    fork = Inertia(4.0, (0.9 - wheelbase - trail, 0.0, 0.7), symmetric(0.05892, 0.06, 0.00708, 0.00756))
    rear_wheel = Inertia(2.0, (0, 0, 0), np.diag([0.0603, 0.12, 0.0603]))
    front_wheel = Inertia(3.0, (0, 0, 0), np.diag([0.1405, 0.28, 0.1405]))
    b = Drawing("Whipple bicycle")
    b.link("at place", None, "place", Planar("z"), "ground", (0.0, 0.0, rear))
    b.link("at height", None, "height", Prismatic("z"), "at place")
    b.link("leaning", None, "lean", Revolute("x"), "at height")
    b.link("rear frame", frame, "pitch", Revolute("y"), "leaning")
    b.link("rear wheel", rear_wheel, "rear wheel", Revolute("y"), "rear frame", actuated=True)
    head = (wheelbase + trail, 0.0, -rear)
    b.link("front frame", fork, "steer", Revolute(axis), "rear frame", head, actuated=True)
    b.link("front wheel", front_wheel, "front wheel", Revolute("y"), "front frame", (-trail, 0.0, front))
    b.add_rolling("rear contact", "rear wheel", radius=rear, axle="y")
    b.add_rolling("front contact", "front wheel", radius=front, axle="y")
    return b.build()


# ---- robots on a moving base: the applications of SpaceDyn (3.8, figure 7) -------------------------------------------

MOST_PANELS = 1000  # per paddle; with so many panels, the paddle bends like a continuous beam


def free_flyer(panels: int = 3, frequency: float = 0.2, wheels: bool = False) -> Mechanism:
    """Free-flying satellite of ETS-VII's class, with an arm of six joints and two flexible solar paddles: 12 + 2 × panels degrees of freedom.

    Each paddle is a chain of rigid panels with springs in the hinges, which approximates a clamped beam that bends out of the paddle's plane (finite
    segments). Dimensions and masses are round values for this class: 2.5 t, an arm of 2 m, paddles of 6 m.

    Parameters
    ----------
    panels : number of panels of each paddle, 1 to 1000
    frequency : frequency of the first bending mode of a uniform, clamped paddle [Hz]. It determines the springs' stiffness. The damping ratio of this
        mode is 0.5 %
    wheels : True to add three reaction wheels, and thus three degrees of freedom

    Returns
    -------
    Mechanism without gravity, with the bodies "satellite", "link1" to "link6", and the panels "left1", "right1", … from the satellite
    outwards, along y and -y. The joints are "base" (free), "joint1" to "joint6" (actuated), and "left1 hinge", …; the frame is "hand".
    Reaction wheels are the bodies "x wheel", "y wheel", "z wheel" on the actuated joints "x axle", "y axle", "z axle". At home the arm
    is bent

    Raises
    ------
    ModelError
        The number of panels is not from 1 to 1000, or the frequency is not positive.

    References
    ----------
    SpaceDyn 1999, figure 7(a). Yoshida, K., Engineering Test Satellite VII flight experiments for space robot dynamics and control,
    Int. J. Robotics Research 22, 2003. Yoshida, K., Nenchev, D., Inaba, N. and Oda, M., Extended ETS-VII experiments for space robot teleoperation
    and attitude disturbance control, 2000.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer()
    >>> robot.nv, round(robot.mass), robot.actuated[-1]
    (18, 2740, 'joint6')
    """
    integer("panels", panels, 1, MOST_PANELS)
    positive(frequency=frequency)
    true_or_false(wheels=wheels)
    length, width, mass = 6.0, 2.0, 50.0  # dimensions [m] and mass [kg] of a paddle
    rigidity = mass * length**3 * (2.0 * math.pi * frequency / 1.8751040687**2) ** 2  # EI [N m²] of the clamped beam
    b = Drawing("free flyer", gravity=(0, 0, 0))
    _box(b, "satellite", 2500.0, (2.6, 2.3, 2.0), "base", Free(), "ground", home=[0, 0, 0, 1, 0, 0, 0])
    _arm(b, "satellite", (0.9, 0.0, 1.0))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        before, at = "satellite", (0.0, sign * 1.15, 0.0)
        for k in range(panels):
            step = length / panels
            # each hinge represents the bending of half a panel on either side of it. The first hinge has half a panel on one side only, so it is
            # twice as stiff
            stiffness = rigidity / step * (1.0 if k else 2.0)
            damping = 0.01 * stiffness / (2.0 * math.pi * frequency)
            panel, middle = f"{side}{k + 1}", (0.0, sign * step / 2.0, 0.0)
            hinge, size = Revolute("x", stiffness=stiffness, damping=damping), (width, step, 0.03)
            _box(b, panel, mass / panels, size, f"{panel} hinge", hinge, before, at, middle=middle)
            before, at = panel, (0.0, sign * step, 0.0)
    for axis in "xyz" if wheels else "":
        wheel = Inertia.cylinder(5.0, 0.15, 0.05, axis)
        b.link(f"{axis} wheel", wheel, f"{axis} axle", Revolute(axis), "satellite", actuated=True)
    return b.build()


def macro_micro_arm(stiffness: float = 2e5, damping: float = 400.0) -> Mechanism:
    """Small arm at the end of a long arm with flexible joints, as on a space station: nine degrees of freedom.

    Parameters
    ----------
    stiffness, damping : stiffness and damping of each joint of the long arm [N m/rad, N m s/rad]

    Returns
    -------
    Mechanism without gravity. The bodies are "mast", "upper" and "lower" of the long arm (two booms of 5 m), and "link1" to "link6" of the small arm
    (2 m). Joints are "yaw", "shoulder", "elbow" (springs, relaxed at q = 0), and "joint1" to "joint6" (actuated). Frames are "wrist" (of the long
    arm) and "hand"

    Raises
    ------
    ModelError
        An argument is not positive.

    References
    ----------
    SpaceDyn 1999, figure 7(b). Nenchev, D., Yoshida, K., Vichitkulsawat, P. and Uchiyama, M., Reaction null-space control of flexible
    structure mounted manipulator systems, IEEE Trans. Robotics and Automation 15, 1999.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.macro_micro_arm()
    >>> swings = robot.linearize(robot.assemble(), [0.0] * 9).modes().eigenvalues[-6:]   # of the long arm
    >>> bool((swings.real < 0.0).all()), abs(swings).min().round(1).item()
    (True, 3.6)
    """
    positive(stiffness=stiffness, damping=damping)
    b = Drawing("macro-micro arm", gravity=(0, 0, 0))
    elastic = {"stiffness": stiffness, "damping": damping}
    _box(b, "mast", 50.0, (0.4, 0.4, 0.5), "yaw", Revolute("z", **elastic), "ground", middle=(0.0, 0.0, 0.25))
    hinge, raised = Revolute("y", **elastic), Transform.from_rpy(0, -0.7, 0, (0, 0, 0.5))
    _tube(b, "upper", 200.0, (5.0, 0, 0), 0.15, "shoulder", hinge, "mast", raised)
    _tube(b, "lower", 200.0, (5.0, 0, 0), 0.15, "elbow", hinge, "upper", Transform.from_rpy(0, 1.2, 0, (5.0, 0, 0)))
    upright = Transform.from_rpy(0, -0.5, 0, (5.0, 0, 0))
    b.add_frame("wrist", "lower", upright)
    _arm(b, "lower", upright)
    return b.build()


def sampler(horn: float = 1.0, stiffness: float = 2e3, gravity: float = 8e-5) -> Mechanism:
    """Spacecraft of MUSES-C's (Hayabusa's) class, which samples an asteroid with a horn: eleven degrees of freedom.

    The horn swings about two axes and slides along a third; springs act on all three. The hinges of the two solar paddles have springs, too. The
    mechanism has no contact model. For a simulation, add a :class:`~sarrus.control.CompliantContact` at each frame of the horn's rim.

    Parameters
    ----------
    horn : length of the horn [m]
    stiffness : stiffness of the horn along its axis [N/m]
    gravity : gravitational acceleration on the asteroid [m/s²]

    Returns
    -------
    Mechanism with the bodies "spacecraft" (500 kg), "tube" and "mouth" (upper and lower half of the horn), "left paddle" and "right paddle". The
    joints are "base" (free), "swing" (universal), "slide", "left hinge" and "right hinge". The frames are "tip" (the middle of the rim) and "rim1" to
    "rim4" on the mouth. At home the rim is on z = 0

    Raises
    ------
    ModelError
        An argument is not positive.

    References
    ----------
    SpaceDyn 1999, figure 7(c). Yoshida, K. and Hiraoka, T., Touch down simulation of the MUSES-C satellite for asteroid sampling, AIAA
    Modeling and Simulation Technologies Conf., paper 98-4376, 1998.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.sampler()
    >>> robot.nv, abs(robot.pose(robot.assemble(), "tip")[2, 3].round(12).item())
    (11, 0.0)
    """
    positive(horn=horn, stiffness=stiffness, gravity=gravity)
    b = Drawing("sampler", gravity=(0, 0, -gravity))
    radius, below = 0.1, 0.55  # radius of the horn [m], and distance of its root below the spacecraft's centre [m]
    half, end = 0.5 * horn, (0, 0, -0.5 * horn)
    _box(b, "spacecraft", 500.0, (1.0, 1.6, 1.1), "base", Free(), "ground", home=[0, 0, 0, 1, 0, 0, below + horn])
    # a damping ratio of 0.1 for the spacecraft's mass on the horn's spring
    swing = Universal("x", "y", stiffness=0.1 * stiffness, damping=0.01 * math.sqrt(500.0 * stiffness))
    slide = Prismatic("z", stiffness=stiffness, damping=0.2 * math.sqrt(500.0 * stiffness))
    # the two halves of the horn; the frames of both are at the horn's root
    b.link("tube", Inertia.rod(3.0, (0, 0, 0), end, radius=radius), "swing", swing, "spacecraft", (0, 0, -below))
    b.link("mouth", Inertia.rod(2.0, (0, 0, 0), end, radius=radius), "slide", slide, "tube", end)
    for body, wide in (("tube", 1.0), ("mouth", 1.05)):
        b.add_visual(body, Cylinder(wide * radius, half), (0, 0, -half / 2))
    b.add_frame("tip", "mouth", end)
    for k in range(4):
        angle = k * math.pi / 2
        b.add_frame(f"rim{k + 1}", "mouth", (radius * math.cos(angle), radius * math.sin(angle), -half))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        hinge, at = Revolute("x", stiffness=500.0, damping=5.0), (0.0, sign * 0.8, 0.5)
        paddle, middle = f"{side} paddle", (0.0, sign * 1.0, 0.0)
        _box(b, paddle, 20.0, (1.4, 2.0, 0.03), f"{side} hinge", hinge, "spacecraft", at, middle=middle)
    return b.build()


def rover(
    wheel: float = 0.065, length: float = 0.5, track: float = 0.4, mass: float = 10.0, rolling: bool = False
) -> Mechanism:
    """Planetary rover on six wheels with rockers and bogies: sixteen velocities, one degree of freedom with rolling wheels.

    A differential couples the rockers. Each rocker has a rear wheel, and a bogie with a front and a middle wheel, so that all wheels have the same
    load on level ground. For simulations on rough ground, add a :class:`~sarrus.control.CompliantContact` with the wheel's radius to each wheel. With
    ``rolling``, constraints make the wheels roll without slip on the plane z = 0.

    Parameters
    ----------
    wheel : radius of a wheel [m]
    length : distance between front and rear axles [m]
    track : distance between left and right wheels [m]
    mass : total mass [kg], of which the chassis has six tenths and each wheel 0.05
    rolling : True if the wheels roll without slip on level ground

    Returns
    -------
    Mechanism with the bodies "chassis" (its frame between the rockers' pivots), "left rocker", "left bogie", "left front wheel", "left
    middle wheel", "left rear wheel", and the same on the right. The joints are "base" (free), "left rocker pivot", "left bogie pivot",
    "left front axle" and so on, all but "base" about y; axles are actuated. The constraints are "differential" and, with ``rolling``, one for each
    wheel with the wheel's name. At home the rover is on z = 0

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    SpaceDyn 1999, figure 7(d). Yoshida, K., Shiwa, T. and Oda, M., Dynamic simulation of an articulated off-road vehicle, AIAA Modeling
    and Simulation Technologies Conf., paper 98-4362, 1998. Bickler, D., Articulated suspension system, US patent 4 840 394, 1989.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.rover(rolling=True)
    >>> robot.nv, int(sarrus.formulations.free_motions(robot, robot.assemble()).freedom)
    (16, 1)
    """
    positive(wheel=wheel, length=length, track=track, mass=mass)
    true_or_false(rolling=rolling)
    pivot, hinge = 0.3 * length, 0.1 * length  # heights [m] of the rockers' and the bogies' pivots above the axles
    b = Drawing("rover")
    size = (0.8 * length, 0.6 * track, 0.2 * length)
    _box(b, "chassis", 0.6 * mass, size, "base", Free(), "ground", home=[0, 0, 0, 1, 0, 0, wheel + pivot])
    # points relative to the rocker's pivot: the axles at x = -length/2, 0 and length/2, the bogie's pivot at x = length/4
    ends: dict[str, list[Point]] = {
        "rocker": [(-length / 2, 0.0, -pivot), (length / 4, 0.0, hinge - pivot)],
        "bogie": [(-length / 4, 0.0, -hinge), (length / 4, 0.0, -hinge)],
    }
    hub, tire = Inertia.cylinder(0.05 * mass, wheel, 0.8 * wheel, "y"), Cylinder(wheel, 0.8 * wheel)
    for side, y in (("left", track / 2), ("right", -track / 2)):
        for name, parent, at in (("rocker", "chassis", (0.0, y, 0.0)), ("bogie", f"{side} rocker", ends["rocker"][1])):
            rear, front = (Inertia.rod(0.0125 * mass, (0, 0, 0), end, radius=0.1 * wheel) for end in ends[name])
            b.link(f"{side} {name}", rear + front, f"{side} {name} pivot", Revolute("y"), parent, at)
        for name, arm, k in (("front", "bogie", 1), ("middle", "bogie", 0), ("rear", "rocker", 0)):
            body, axle = f"{side} {name} wheel", f"{side} {name} axle"
            b.link(body, hub, axle, Revolute("y"), f"{side} {arm}", ends[arm][k], actuated=True)
            b.add_visual(body, tire, Transform.from_rpy(math.pi / 2, 0, 0))
            if rolling:
                b.add_rolling(body, body, radius=wheel, axle="y")
    b.add_coupler("differential", {"left rocker pivot": 1.0, "right rocker pivot": 1.0})
    return b.build()


def _box(
    b: Drawing, body: str, mass: float, size: Point, joint: str, kind: JointType, parent: str, at: Placement = None, *,
    middle: Point = (0.0, 0.0, 0.0), home: ArrayLike | None = None,
) -> None:  # fmt: skip
    """Add a body with the inertia of a uniform box, centred at the point `middle` of the body's frame, and its joint."""
    place = Transform(translation=middle)
    b.link(body, Inertia.box(mass, size).transformed(place), joint, kind, parent, at, home=home)
    b.add_visual(body, Box(size), place)


def _tube(
    b: Drawing, body: str, mass: float, end: Point, radius: float, joint: str, kind: JointType, parent: str, at: Placement, **options: Any
) -> None:  # fmt: skip
    """Add a tube along x or z, from the origin of its frame to `end`, and its joint."""
    b.link(body, Inertia.rod(mass, (0, 0, 0), end, radius=radius), joint, kind, parent, at, **options)
    tilt = Rotation() if end[2] else Rotation.from_rpy(0, math.pi / 2, 0)
    b.add_visual(body, Cylinder(radius, float(np.linalg.norm(end))), Transform(tilt, np.asarray(end) / 2))


def _arm(b: Drawing, parent: str, at: Placement) -> None:
    """Add an arm of 2 m and 140 kg with the shoulder, elbow and wrist of a typical industrial robot. At q = 0 its links are along x."""
    axes, masses = "zyyxyx", (35.0, 25.0, 20.0, 20.0, 20.0, 20.0)
    reach: tuple[Point, ...] = ((0, 0, 0.3), (0.8, 0, 0), (0.6, 0, 0), (0.2, 0, 0), (0.2, 0, 0), (0.2, 0, 0))
    for k, (axis, mass, end) in enumerate(zip(axes, masses, reach, strict=True), 1):
        _tube(b, f"link{k}", mass, end, 0.08, f"joint{k}", Revolute(axis), parent, at, actuated=True)
        parent, at = f"link{k}", end
    b.add_frame("hand", parent, at)
    b.home |= {"joint2": -0.9, "joint3": 1.5, "joint5": 0.6}
