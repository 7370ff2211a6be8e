"""Spatial linkages that move although the mobility formula says that they should not."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from ..building.builder import Builder
from ..description.joints import Revolute
from ..errors import ModelError
from ..spatial import Inertia, Transform
from .drawing import positive

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["bennett", "bricard", "sarrus_linkage"]


def bennett(
    length: float = 0.5, twist: float = math.pi / 6, other_twist: float = math.pi / 3, mass: float = 1.0
) -> Mechanism:
    """Bennett's linkage: four bars and four hinges that are neither parallel nor meet in a point.

    Opposite bars are alike, and length / sin(twist) is the same for all, from which the other length follows. Kutzbach counts -2
    degrees of freedom; it has one. Opposite hinges turn by equal and opposite amounts, and neighbours so that
    tan(theta1 / 2) tan(theta2 / 2) is constant, sin((twist + other_twist) / 2) / sin((twist - other_twist) / 2).

    Parameters
    ----------
    length : of the ground and the bar across from it, along the common normals of their hinges [m]
    twist, other_twist : between the hinges of these bars, and of the other two, in (0, pi) and different [rad]
    mass : of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1", "link2" and "link3" (their frames at the hinge nearer to the ground, z along it) and the joints
    "joint1" (actuated, about z at the origin), "joint2", "joint4" (the other one on the ground) and "joint3"

    Raises
    ------
    ModelError
        A size that is not positive; a twist out of range or as large as the other.

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
    for name, value in (("twist", twist), ("other_twist", other_twist)):
        if not (isinstance(value, Real) and 0 < value < math.pi):
            raise ModelError(f"{name} must be between 0 and pi; got {value!r}")
    if abs(twist - other_twist) < 1e-6:
        raise ModelError(f"twist and other_twist must differ; got {twist!r} twice: such a linkage does not turn")
    # bars 1 and 3 have the other length; the ground, from hinge 4 to hinge 1, and bar 2 the given one
    other = length * math.sin(other_twist) / math.sin(twist)
    product = math.sin((twist + other_twist) / 2) / math.sin((twist - other_twist) / 2)
    first = 2 * math.pi / 3
    second = 2 * math.atan(product / math.tan(first / 2))

    def along(size: float, angle: float) -> Transform:
        return Transform.from_rpy(angle, 0, 0, (size, 0, 0))

    b = Builder("Bennett linkage")
    for name, reach in (("link1", other), ("link2", length), ("link3", -other)):
        b.add_body(name, Inertia.rod(mass, (0, 0, 0), (reach, 0, 0)))
    b.add_joint("joint1", Revolute("z"), "ground", "link1", actuated=True)
    b.add_joint("joint2", Revolute("z"), "link1", "link2", at_parent=along(other, other_twist))
    b.add_joint("joint4", Revolute("z"), "ground", "link3", at_parent=along(length, twist).inverse())
    b.add_joint(
        "joint3",
        Revolute("z"),
        "link2",
        "link3",
        at_parent=along(length, twist),
        at_child=along(other, other_twist).inverse(),
        loop=True,
    )
    b.set_home({"joint1": first, "joint2": second, "joint4": second})
    return b.build()


def bricard(edge: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Bricard's linkage: six bars, at home along six edges of a cube, and a hinge between neighbours along the third edge there.

    Kutzbach counts no degree of freedom; it has one, and turns itself inside out. The bars' frames are parallel at home, q = 0.

    Parameters
    ----------
    edge : of the cube [m]
    mass : of each moving bar [kg]

    Returns
    -------
    Mechanism with the bodies "link1" to "link5" (the sixth is the ground, from (0, 0, edge) to the origin) and the joints "joint1"
    (actuated) to "joint6"; joint k is at the near end of bar k

    Raises
    ------
    ModelError
        A size that is not positive.

    References
    ----------
    Bricard, Mémoire sur la théorie de l'octaèdre articulé, Journal de mathématiques pures et appliquées, 1897. Five rods of 1 m and
    1 kg: IFToMM, Library of computational benchmark problems, problem A04.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.bricard()
    >>> mobility = robot.mobility(robot.neutral())
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom, mobility.kutzbach
    (1, 1, 0)
    """
    positive(edge=edge, mass=mass)
    # from the origin along x, y, z, and from the other end of the ground, (0, 0, edge), along y and x: both ways meet at (1, 1, 1)
    edges = {"link1": "x", "link2": "y", "link3": "z", "link4": "x", "link5": "y"}
    ends = {name: edge * np.eye(3)["xyz".index(axis)] for name, axis in edges.items()}
    b = Builder("Bricard linkage")
    for name, end in ends.items():
        b.add_body(name, Inertia.rod(mass, (0, 0, 0), end))
    b.add_joint("joint1", Revolute("y"), "ground", "link1", actuated=True)
    b.add_joint("joint2", Revolute("z"), "link1", "link2", at_parent=ends["link1"])
    b.add_joint("joint3", Revolute("x"), "link2", "link3", at_parent=ends["link2"])
    b.add_joint("joint4", Revolute("y"), "link3", "link4", at_parent=ends["link3"], at_child=ends["link4"], loop=True)
    b.add_joint("joint5", Revolute("z"), "link5", "link4", at_parent=ends["link5"])
    b.add_joint("joint6", Revolute("x"), "ground", "link5", at_parent=(0, 0, edge))
    b.set_home({f"joint{k}": 0.0 for k in (1, 2, 3, 5, 6)})
    return b.build()


def sarrus_linkage(plate: float = 0.5, width: float = 0.4, mass: float = 1.0, platform_mass: float = 2.0) -> Mechanism:
    """Sarrus' linkage: two pairs of hinged plates, in planes across each other, let the platform move straight up and down, exactly.

    Each pair alone would leave the platform three degrees of freedom in its plane; both together leave the straight line, and Kutzbach
    none. At height h the lower plates stand at asin(h / (2 plate)) over the ground; at home at 45 degrees, leaning outwards.

    Parameters
    ----------
    plate : of a plate, from hinge to hinge [m]
    width : of plates and platform, which is a square [m]
    mass : of a plate [kg]
    platform_mass : [kg]

    Returns
    -------
    Mechanism with the bodies "lower_a", "upper_a", "lower_b", "upper_b" and "platform" (its frame in its middle, over the origin) and
    the joints "base_a" (actuated), "knee_a", "top_a", "base_b", "knee_b", "top_b"; pair a moves in the x-z plane, b in the y-z plane

    Raises
    ------
    ModelError
        A size that is not positive.

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
        b.add_joint(
            f"top_{pair}", Revolute("y"), f"upper_{pair}", "platform", at_parent=end, at_child=edge, loop=pair == "b"
        )
        home |= {f"base_{pair}": -rise, f"knee_{pair}": 2 * rise - math.pi}
    b.set_home({**home, "top_a": math.pi - rise})
    return b.build()
