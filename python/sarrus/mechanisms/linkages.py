"""Pendulums, and planar linkages of bars and pins, in the x-z plane."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np

from ..description.joints import Revolute
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .drawing import Drawing, apex, in_space, integer, positive, real

# ---- pendulums: point masses on massless rods, hanging along -z at q = 0 and swinging about y ------------------------


def pendulum(mass: float = 1.0, length: float = 1.0) -> Mechanism:
    """Point mass at the end of a massless rod.

    Parameters
    ----------
    mass : mass of the bob [kg]
    length : length from the pivot, at the origin, to the mass [m]

    Returns
    -------
    Mechanism with the joint "pivot", the body "bob" (its frame at the pivot) and the frame "tip" at the mass

    Raises
    ------
    ModelError
        A mass or a length is not positive.

    Examples
    --------
    The horizontal pendulum needs the torque m g l:

    >>> import numpy as np
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> pendulum.inverse_dynamics([np.pi / 2], [0.0], [0.0]).round(3)
    array([9.81])
    """
    return _hang("pendulum", ["pivot"], ["bob"], [mass], [length])


def double_pendulum(masses: Sequence[float] = (1.0, 1.0), lengths: Sequence[float] = (1.0, 1.0)) -> Mechanism:
    """Pendulum on the end of a pendulum; the second angle is measured from the first rod.

    Parameters
    ----------
    masses : (2,) masses at the ends of the upper and the lower rod [kg]
    lengths : (2,) lengths of the upper and the lower rod [m]

    Returns
    -------
    Mechanism with the joints "shoulder" and "elbow", the bodies "upper" and "lower" (their frames at the joints) and the
    frame "tip" at the lower mass

    Raises
    ------
    ModelError
        A mass or a length is not positive, or there are not two of them.

    Examples
    --------
    In the horizontal, stretched configuration the upper joint carries both masses:

    >>> import numpy as np
    >>> import sarrus
    >>> double = sarrus.mechanisms.double_pendulum(masses=(1.0, 2.0), lengths=(0.5, 0.5))
    >>> double.gravity_forces([np.pi / 2, 0.0]).round(3)
    array([24.525,  9.81 ])
    """
    for name, value in (("masses", masses), ("lengths", lengths)):
        if np.shape(value) != (2,):
            raise ModelError(f"{name} needs two numbers, upper and lower; got {value!r}")
    return _hang("double pendulum", ["shoulder", "elbow"], ["upper", "lower"], masses, lengths)


def _hang(
    name: str, joints: Sequence[str], bodies: Sequence[str], masses: Sequence[float], lengths: Sequence[float]
) -> Mechanism:
    """Return a chain of massless rods that hang one below the other, each with a point mass at its lower end."""
    b = Drawing(name)
    parent, end = "ground", (0.0, 0.0, 0.0)
    for joint, body, mass, length in zip(joints, bodies, masses, lengths, strict=True):
        positive(**{f"mass of {body}": mass, f"length of {body}": length})
        lower_end = (0.0, 0.0, -length)
        b.link(body, Inertia(mass, lower_end, np.zeros((3, 3))), joint, Revolute("y"), parent, end)
        parent, end = body, lower_end
    b.add_frame("tip", parent, end)
    return b.build()


# ---- linkages --------------------------------------------------------------------------------------------------------


def four_bar(
    crank: float = 0.4, coupler: float = 1.1, rocker: float = 0.9, ground: float = 1.0, mass: float = 1.0
) -> Mechanism:
    """Planar four-bar linkage, the simplest closed chain that moves: one degree of freedom.

    The bodies' frames are at the ends nearer to the ground, with x along the bars. The crank rotates about the origin, the rocker about a pivot on
    the x axis. At home no bars cross, and the rocker is above the x axis. The shortest bar can rotate fully if the sum of the shortest and the
    longest bar does not exceed the sum of the other two (Grashof). With the default dimensions, the shortest bar is the crank.

    Kutzbach's formula gives -2 degrees of freedom. Three of the five constraint rows of pin2 are redundant, because the axes of the other three
    joints are parallel.

    Parameters
    ----------
    crank, coupler, rocker, ground : distances between the pins [m]
    mass : mass of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "crank", "coupler" and "rocker" and the joints "motor" (actuated), "pin1", "pivot" and "pin2"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or a bar is at least as long as the other three together.

    References
    ----------
    Grashof, Theoretische Maschinenlehre, 1883.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> robot.joints, robot.loop_joints
    (('motor', 'pin1', 'pivot'), ('pin2',))
    """
    positive(crank=crank, coupler=coupler, rocker=rocker, ground=ground, mass=mass)
    # smallest and largest distance between the crank's pin and the rocker's pivot, limited by crank and ground, and by coupler and rocker
    nearest = max(abs(ground - crank), abs(coupler - rocker))
    farthest = min(ground + crank, coupler + rocker)
    if not nearest < farthest:
        raise ModelError(
            f"a loop of bars {crank}, {coupler}, {rocker}, {ground} m does not close: one bar is longer than the other three together"
        )
    bridged = (nearest + farthest) / 2
    knee = crank * cmath.exp(
        1j * math.acos((crank**2 + (ground - bridged) * (ground + bridged)) / (2 * crank * ground))
    )
    tip = apex(knee, ground, coupler, rocker)

    b = Drawing("four-bar")
    b.bar("crank", mass, crank, knee, "motor", "ground", actuated=True)
    b.bar("coupler", mass, coupler, tip - knee, "pin1", "crank", crank)
    b.bar("rocker", mass, rocker, tip - ground, "pivot", "ground", ground)
    b.close("pin2", "coupler", "rocker", coupler, rocker, loop=False)  # the loop joint is chosen automatically
    return b.build()


def slider_crank(crank: float = 0.3, rod: float = 1.0, offset: float = 0.0, mass: float = 1.0) -> Mechanism:
    """Slider-crank: a crank, a connecting rod, and a slider that moves along x; one degree of freedom.

    Parameters
    ----------
    crank, rod : distances between the pins [m]
    offset : offset of the slider's line above the crank's axis [m]
    mass : mass of the crank, of the rod and of the slider [kg]

    Returns
    -------
    Mechanism with the bodies "crank", "rod" and "slider" and the joints "motor" (actuated), "pin", "guide" (the slider's x [m]) and
    "wrist"

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, or the rod is too short for a full rotation of the crank.

    Examples
    --------
    The stroke of a slider in line with the crank is twice the crank:

    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.slider_crank(crank=0.3, rod=1.0)
    >>> ends = [robot.assemble(fixed={"motor": angle})[robot.joint("guide").q_slice] for angle in (0, np.pi)]
    >>> (ends[0] - ends[1]).round(9)
    array([0.6])
    """
    positive(crank=crank, rod=rod, mass=mass)
    real("offset", offset)
    if not rod > crank + abs(offset):
        raise ModelError(f"rod must be longer than crank and offset together, {crank + abs(offset):g} m; got {rod!r}")
    pin = crank * cmath.exp(1j * math.pi / 3)
    drop = pin.imag - offset
    slider = complex(pin.real + math.sqrt((rod - drop) * (rod + drop)), offset)

    b = Drawing("slider-crank")
    b.bar("crank", mass, crank, pin, "motor", "ground", actuated=True)
    b.bar("rod", mass, rod, slider - pin, "pin", "crank", crank)
    block = Inertia.box(mass, (crank / 2, crank / 4, crank / 4))
    b.slider("slider", block, slider.real, "guide", "ground", 1j * offset)
    b.close("wrist", "rod", "slider", rod)
    return b.build()


def watt(arm: float = 1.0, coupler: float = 0.5, mass: float = 1.0) -> Mechanism:
    """Watt's linkage: the middle of the coupler between two equal arms moves almost on a straight line; one degree of freedom.

    At home the arms are horizontal and the coupler is vertical. The coupler's midpoint is then at (arm, 0, 0), the midpoint of the approximately
    straight line, which is along z.

    Parameters
    ----------
    arm, coupler : distances between the pins [m]
    mass : mass of each bar [kg]

    Returns
    -------
    Mechanism with the bodies "left", "coupler" and "right", the joints "motor" (actuated), "pin1", "pivot" and "pin2" and the frame
    "midpoint" on the coupler

    Raises
    ------
    ModelError
        A dimension or a mass is not positive.

    References
    ----------
    Watt, British patent 1432, 1784.

    Examples
    --------
    10 cm above home, the midpoint is 5 micrometres off the line:

    >>> import sarrus
    >>> robot = sarrus.mechanisms.watt(arm=1.0, coupler=0.5)
    >>> robot.pose(robot.assemble(fixed={"motor": -0.1}), "midpoint")[:3, 3].round(6) + 0.0
    array([0.999995, 0.      , 0.099784])
    """
    positive(arm=arm, coupler=coupler, mass=mass)
    half = 0.5j * coupler
    b = Drawing("Watt linkage")
    b.bar("left", mass, arm, 1, "motor", "ground", -half, actuated=True)
    b.bar("coupler", mass, coupler, 1j, "pin1", "left", arm)
    b.bar("right", mass, arm, -1, "pivot", "ground", 2 * arm + half)
    b.close("pin2", "coupler", "right", coupler, arm)
    b.add_frame("midpoint", "coupler", in_space(coupler / 2))
    return b.build()


def peaucellier(long: float = 1.0, short: float = 0.5, crank: float = 0.4, mass: float = 1.0) -> Mechanism:
    """Peaucellier and Lipkin's linkage, whose pen moves on an exact straight line: seven bars, ten pins, one degree of freedom.

    Two long bars connect the pole O at the origin to two opposite corners of a rhombus of four short bars. The distances of its other corners, P and
    Q, from the pole satisfy OP OQ = long² - short². The crank moves P on a circle through the pole. Therefore Q moves on the straight line x = (long²
    - short²) / (2 crank).

    Parameters
    ----------
    long, short, crank : distances between the pins [m]; the crank turns about (crank, 0, 0)
    mass : mass of each bar [kg]

    Returns
    -------
    Mechanism with the bodies "crank", "long_a", "long_b", "near_a", "near_b", "far_a" and "far_b". It has ten joints, among them
    "motor" (actuated), and the frame "pen" at Q

    Raises
    ------
    ModelError
        A dimension or a mass is not positive, the long bars are no longer than the short ones, or the crank does not reach the rhombus.

    References
    ----------
    Peaucellier, Note sur une question de géométrie de compas, Nouvelles annales de mathématiques, 1873.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.peaucellier()
    >>> for angle in (-0.5, -1.0):
    ...     x, y, z = robot.pose(robot.assemble(fixed={"motor": angle}), "pen")[:3, 3]
    ...     print(x.round(12), z.round(4))
    0.9375 0.2394
    0.9375 0.5122
    """
    positive(long=long, short=short, crank=crank, mass=mass)
    if not short < long < short + 2 * crank:
        raise ModelError(
            f"long must be more than short, {short:g} m, and less than short and twice crank together, "
            f"{short + 2 * crank:g} m; got {long!r}"
        )
    # distance of P from the pole at home, the midpoint of its range
    near = (long - short + min(2 * crank, long + short)) / 2
    p = near * cmath.exp(1j * math.acos(near / (2 * crank)))
    a, c = apex(0, p, long, short), apex(p, 0, short, long)
    q = p * (long - short) * (long + short) / near**2

    b = Drawing("Peaucellier linkage")
    b.bar("crank", mass, crank, p - crank, "motor", "ground", crank, actuated=True)
    for side, corner in (("a", a), ("b", c)):
        b.bar(f"long_{side}", mass, long, corner, f"pole_{side}", "ground")
        b.bar(f"near_{side}", mass, short, p - corner, f"inner_{side}", f"long_{side}", long)
        b.bar(f"far_{side}", mass, short, q - corner, f"outer_{side}", f"long_{side}", long)
        b.close(f"p_{side}", "crank", f"near_{side}", crank, short)
    b.close("q", "far_a", "far_b", short, short)
    b.add_frame("pen", "far_a", in_space(short))
    return b.build()


def scissor_lift(stages: int = 3, length: float = 1.0, mass: float = 1.0, platform_mass: float = 10.0) -> Mechanism:
    """Scissor lift of crossed bars, driven by a slide at its lower end: one degree of freedom.

    If the bars have the angle `a` to the ground, the height is stages x length x sin(a), and the lower roller is at x = length x cos(a). At home the
    angle is 30 degrees. Every stage adds one loop.

    Parameters
    ----------
    stages : number of crosses, 1 or more
    length : length of a bar [m]
    mass : mass of a bar [kg]; a roller has a tenth of this mass
    platform_mass : mass of the platform [kg]

    Returns
    -------
    Mechanism with the bodies "rise1" (up to the right), "fall1" (up to the left), ..., "roller", "top_roller" and "platform". The
    platform's frame is above the origin. The joint "slide" is actuated; its coordinate is the roller's x [m]

    Raises
    ------
    ModelError
        There is no stage, or a dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> lift = sarrus.mechanisms.scissor_lift(stages=2)
    >>> q = lift.assemble(fixed={"slide": 0.8})
    >>> lift.pose(q, "platform")[:3, 3].round(9) + 0.0
    array([0. , 0. , 1.2])
    """
    integer("stages", stages, 1)
    positive(length=length, mass=mass, platform_mass=platform_mass)
    rise = cmath.exp(1j * math.pi / 6)
    width = length * rise.real
    wheel = Inertia.cylinder(mass / 10, length / 20, length / 20, axis="y")

    b = Drawing("scissor lift")
    b.slider("roller", wheel, width, "slide", "ground", actuated=True)
    left, right = ("base", "ground", 0.0), ("heel", "roller", 0.0)  # pins of the stage's two bars
    for k in range(1, stages + 1):
        b.bar(f"rise{k}", mass, length, rise, *left)
        b.bar(f"fall{k}", mass, length, -rise.conjugate(), *right)
        b.close(f"center{k}", f"rise{k}", f"fall{k}", length / 2, length / 2)
        left, right = (f"left{k}", f"fall{k}", length), (f"right{k}", f"rise{k}", length)
    plate = Inertia.box(platform_mass, (length, length / 2, length / 20))
    plate = plate.transformed(Transform(translation=(length / 2, 0, 0)))
    b.plate("platform", plate, 1, "top_left", f"fall{stages}", length)
    b.slider("top_roller", wheel, width, "top_slide", "platform")
    b.close("top_right", f"rise{stages}", "top_roller", length)
    return b.build()
