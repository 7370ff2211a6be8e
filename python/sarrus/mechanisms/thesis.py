"""Mechanisms of van der Merwe's thesis, chapters 2, 4, 5, 6 and 8, with the thesis' parameters."""

from __future__ import annotations

import math

import numpy as np

from ..building.tables import from_sdof
from ..description.joints import Fixed, Prismatic, Revolute, Universal
from ..mechanism import Mechanism
from ..spatial import Inertia, Rotation, Transform
from .drawing import Drawing, true_or_false


def four_link_chain() -> Mechanism:
    """Chain of four links whose tip is pinned to the ground: two degrees of freedom.

    At home, q = 0, the links point up, right, up, right, and the tip is at (2, 0, 3) m. Three of the pin's five rows are redundant; the
    other two fix the tip in x and z.

    Returns
    -------
    Mechanism, gravity (0, 0, -10) m/s², with the bodies "link1" to "link4" and the frame "tip". The joints "joint1" to "joint4" are about
    y, all actuated, with friction 0.25 N m s/rad; "pin" closes the loop

    References
    ----------
    van der Merwe 1995, 5.5: Tables 5.1 and 5.2, friction 5.5.5. The result below is the acceleration of the first step in 5.133.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> chain = sarrus.mechanisms.four_link_chain()
    >>> chain.forward_dynamics(np.zeros(4), np.zeros(4), np.zeros(4)).round(6) + 0.0
    array([  0.      ,  10.526316, -10.526316, -10.526316])
    """
    # displacements "Disp" of Table 5.1
    upright = np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    moments = ((1, 1, 0.1), (0.02, 0.2, 0.2), (0.2, 0.2, 0.02), (0.02, 0.2, 0.2))
    b = Drawing("four-link chain", gravity=(0, 0, -10))
    parent, place = "ground", np.zeros(3)
    for k, (mass, end, moment) in enumerate(zip((2, 1, 1, 1), upright, moments, strict=True), start=1):
        link, hinge = Inertia(mass, end / 2, np.diag(moment)), Revolute("y", damping=0.25)
        b.link(f"link{k}", link, f"joint{k}", hinge, parent, place, home=0.0, actuated=True)
        parent, place = f"link{k}", end
    b.add_joint("pin", Revolute("y"), "ground", "link4", at_parent=upright.sum(axis=0), at_child=place, loop=True)
    b.add_frame("tip", "link4", place)
    return b.build()


def two_links(reference_free: bool = True) -> Mechanism:
    """Two equal links, hinged to the ground at a distance of 0.8 m, that carry the reference member: one degree of freedom.

    The reference member moves on a circle of radius 1.5 m without rotation, because the links form a parallelogram. At home the links are
    45 degrees below the x axis.

    Parameters
    ----------
    reference_free : if True, the reference member has a Free joint to the ground and both tips are loop joints, as in chapter 6. If False, only the
        second tip is a loop joint

    Returns
    -------
    Mechanism, gravity (0, 0, -10) m/s², with the bodies "link1", "link2" and "reference" (its frame at its centre). The hinges "joint1" and "joint2"
    (actuated), "tip1" and "tip2" are about y; the Free joint is "float"

    References
    ----------
    van der Merwe 1995, 6.5: 6.66-6.87. The result below is the acceleration of the links in 6.152.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.two_links(reference_free=False)
    >>> robot.forward_dynamics(robot.assemble(), np.zeros(3), np.zeros(3))[:2].round(6)
    array([4.942882, 4.942882])
    """
    true_or_false(reference_free=reference_free)
    angle, end = math.pi / 4, np.array([1.5, 0, 0])
    distance = np.array([0.8, 0, 0])
    b = Drawing("two links and a reference member", gravity=(0, 0, -10))
    link = Inertia(1.0, (0.75, 0, 0), np.diag([0.025, 0.25, 0.25]))
    for k in (1, 2):
        at = (k - 1) * distance
        b.link(f"link{k}", link, f"joint{k}", Revolute("y"), "ground", at, home=angle, actuated=True)
    middle = Rotation.from_axis_angle("y", angle).apply(end) + distance / 2
    b.floating("reference", Inertia(5.0, (0, 0, 0), 0.5 * np.eye(3)), middle, free=reference_free)
    if not reference_free:
        b.home["tip1"] = -angle
    for k, at in ((1, -distance / 2), (2, distance / 2)):
        loop = reference_free or k == 2
        b.add_joint(f"tip{k}", Revolute("y"), f"link{k}", "reference", at_parent=end, at_child=at, loop=loop)
    return b.build()


# Table 8.1: Rot(z) and Disp(x) of link 1, Disp(x) of link 2; link 2 is level
SLOPE, REACH, WRIST = -1.1669367, 1.0874871, 0.1
# Rot(y) of link 1 of each chain, and the chain's point on the reference member (8.1-8.3). Table 8.1 has only the first angle; the other two follow,
# because all chains point to the centre
CHAINS = ((-math.pi / 6, (-0.05, 0, -0.025)), (7 * math.pi / 6, (0.05, 0, -0.025)), (math.pi / 2, (0, 0, 0.05)))


def hslm(reference_free: bool = True) -> Mechanism:
    """High Stiffness Low Mass mechanism, in which three extensible legs carry a tool: three degrees of freedom, y up.

    Each leg rotates about y and z at the ground and extends by a slide. Its second link, horizontal at home, rotates about y and z relative to the
    first and is welded to the reference member. The slides and the last rotation of each leg are actuated. Coordinates are not relative to home:
    they have the values of the thesis' table, and home is the configuration in the table.

    The printed table omits three data. The mass of the reference member, 5 kg, follows from the printed forces. Its moment of inertia, 0.5 kg m², is
    arbitrary, because it does not affect the motions in the thesis. The second and the third leg are assumed to point inwards like the first. Link 1
    slides as a rigid body; in the thesis its centre of mass is at rest relative to the leg's pivot.

    Parameters
    ----------
    reference_free : if True, the reference member has a Free joint to the ground and all three welds are loop joints, as in chapter 6. If False, the
        first weld is a tree joint

    Returns
    -------
    Mechanism, gravity (0, -10, 0) m/s², with the bodies "cylinder<k>" and "cross<k>" (massless), "link1_<k>", "link2_<k>", k = 1, 2, 3,
    and "reference". The reference member's frame is at the centre of the circle through the welds, which is the origin at home. The joints are
    "swing<k>" (Universal y z), "slide<k>" (actuated), "yaw<k>", "pitch<k>" (actuated), "float" and "weld<k>"

    References
    ----------
    van der Merwe 1995, ch. 8: Tables 8.1 and 8.2, 8.1-8.3. The result below is the mechanism's free fall.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.hslm()
    >>> fall = robot.forward_dynamics(robot.assemble(), np.zeros(robot.nv), np.zeros(robot.nv))
    >>> fall[robot.joint("float").v_slice].round(5) + 0.0
    array([  0.     ,   0.     ,   0.     ,   0.     , -10.02864,   0.     ])
    """
    true_or_false(reference_free=reference_free)
    turn = [Rotation.from_axis_angle("y", yaw) for yaw, _ in CHAINS]
    b = Drawing("High Stiffness Low Mass mechanism", gravity=(0, -10, 0))
    first = Inertia(2.0, (0.5, 0, 0), np.diag([0.05, 0.5, 0.5]))
    second = Inertia(0.5, (0.05, 0, 0), np.diag([0.00006, 0.0006, 0.0006]))
    # the slide's coordinate is the distance of the link's far end from the pivot, as in the table
    tip = (REACH, 0, 0)
    for k, (yaw, at) in enumerate(CHAINS, start=1):
        leg = turn[k - 1].apply(np.add(Rotation.from_axis_angle("z", SLOPE).apply(tip), (WRIST, 0, 0)))
        pivot, (cylinder, link1) = np.subtract(at, leg), (f"cylinder{k}", f"link1_{k}")
        b.link(cylinder, None, f"swing{k}", Universal("y", "z"), "ground", pivot, home=[yaw, SLOPE])
        b.link(link1, first, f"slide{k}", Prismatic("x"), cylinder, at_child=tip, home=REACH, actuated=True)
        b.link(f"cross{k}", None, f"yaw{k}", Revolute("y"), link1, tip, home=0.0)
        b.link(f"link2_{k}", second, f"pitch{k}", Revolute("z"), f"cross{k}", home=-SLOPE, actuated=True)
    b.floating("reference", Inertia(5.0, (0, 0, 0), 0.5 * np.eye(3)), (0, 0, 0), free=reference_free)
    for k, (_, at) in enumerate(CHAINS, start=1):
        wrist, place = (WRIST, 0, 0), Transform(turn[k - 1], at)
        ends, loop = (f"link2_{k}", "reference"), reference_free or k > 1
        b.add_joint(f"weld{k}", Fixed(), *ends, at_parent=wrist, at_child=place, loop=loop)
    return b.build()


# ---- the Stanford manipulator of van der Merwe's thesis, chapters 2 and 4 --------------------------------------------


# Table 4.1, one row for each link: Rot(x), Rot(y), Rot(z) [rad], Disp(x), Disp(y), Disp(z) [m]; then the indices of the variable entries
PARAMETERS = (
    (0, 0, 0, 0, 0.5, -0.15),
    (0, 0, 0, 0.8, 0, 0),
    (0, 0, 0, 0.2, 0, 0),
    (0, 0, 0, 0.05, 0, 0),
)
FREE = ("ry", "rz tx", "rz", "rx")

# 4.33-4.35 and Table 4.2: mass [kg], centre of mass [m] and principal moments about it [kg m²], along the link's axes
MASS = (2, 2, 0.8, 0.5)
COM = ((0, 0.3, -0.07), (0.3, 0, 0), (0.12, 0, 0), (0.05, 0, 0))
INERTIA = ((0.1, 0.02, 0.1), (0.002, 0.25, 0.25), (0.002, 0.008, 0.008), (0.001, 0.004, 0.004))


def stanford_arm() -> Mechanism:
    """Stanford manipulator: four links, five degrees of freedom, y up.

    q = (base about y, arm about z, slide of the arm along x, wrist about z, gripper about x) [rad, rad, m, rad, rad].
    At q = (0, 0, 0.8, 0, 0), the table's configuration, all link frames are parallel and the arm is stretched along x.
    The arm slides as a rigid body, so that its centre of mass moves relative to the frame of link 2 as in 4.63.

    Returns
    -------
    Mechanism, gravity (0, -9.81, 0) m/s², with the bodies "link1" to "link4" and the frame "tip" at the end of the gripper

    References
    ----------
    van der Merwe 1995: Tables 4.1 and 4.2, 4.33-4.35; the result below is 4.62.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.stanford_arm()
    >>> arm.inverse_dynamics([0, 0, 0.8, 0, 0], [1.5, 0, 0.4, 1, 3], np.zeros(5)).round(5).tolist()
    [2.26935, 18.25191, -4.40825, 2.16351, 0.0015]
    """
    return from_sdof(PARAMETERS, FREE, MASS, COM, INERTIA, gravity=(0, -9.81, 0))
