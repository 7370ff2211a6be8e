"""Mechanisms of several loops that move although the mobility formula says that they should not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..building.builder import Builder
from ..description.joints import Revolute
from ..spatial import Inertia, Transform
from .drawing import positive

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["sarrus_linkage"]


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
