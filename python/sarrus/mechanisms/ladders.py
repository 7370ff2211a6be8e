"""Ladders of four-bars: loops beside loops, as many as one likes."""

from __future__ import annotations

from typing import Literal

from ..building.builder import Builder
from ..description.joints import Fixed, Revolute, Spherical
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia
from .drawing import positive, whole

__all__ = ["four_bar_ladder"]


def four_bar_ladder(
    n: int, closing: Literal["point", "weld"] = "point", length: float = 1.0, mass: float = 1.0
) -> Mechanism:
    """Row of n parallelograms: n + 1 rods that stand on the ground and n that lie on their ends, in the x-z plane.

    One degree of freedom for any n, and redundant constraints in every loop. At home all standing rods lean by 0.5 rad towards x;
    standing upright is q = 0. At pivots of +-pi/2 and hinges of -+pi/2 all rods lie flat and the rank of the constraints drops: any
    parallelogram may go on as an antiparallelogram from there.

    Parameters
    ----------
    n : number of loops
    closing : "point", a lying rod's far end is held in one point of the next standing rod (three rows a loop, one of them
        redundant); "weld", every lying rod is cut in the middle, its far half hangs on the next standing rod, and the halves are welded
        (six rows a loop, three of them redundant)
    length : of a rod [m]
    mass : of a rod [kg]

    Returns
    -------
    Mechanism with the bodies "vertical0" to "vertical<n>" and "horizontal1" ... (or "left1", "right1", ...), and the joints "pivot0"
    (actuated), "pivot1", ..., "hinge1", ... and "pin1", ... (or, with "weld", pins on the right halves and "weld1", ...)

    Raises
    ------
    ModelError
        No loop; another closing; a size that is not positive.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.mechanisms.four_bar_ladder(8)
    <Mechanism 'ladder of 8 four-bars': 17 bodies, nq = 17, nv = 17, 8 constraints of nc = 24 rows>
    >>> sarrus.mechanisms.four_bar_ladder(8, closing="weld").nv
    25
    """
    whole("n", n, 1)
    positive(length=length, mass=mass)
    if str(closing) not in ("point", "weld"):  # an array has no one answer to `in`
        raise ModelError(f"closing is 'point' or 'weld'; got {closing!r}")
    welded = closing == "weld"
    top, end, middle = (0, 0, length), (length, 0, 0), (length / 2, 0, 0)
    back = (-length / 2, 0, 0)

    b = Builder(f"ladder of {n} four-bar{'s' if n > 1 else ''}")
    lean = 0.5
    home: dict[str, float] = {}
    for k in range(n + 1):
        b.add_body(f"vertical{k}", Inertia.rod(mass, (0, 0, 0), top))
        place = (k * length, 0, 0)
        b.add_joint(f"pivot{k}", Revolute("y"), "ground", f"vertical{k}", at_parent=place, actuated=k == 0)
        home[f"pivot{k}"] = lean
    for k in range(1, n + 1):
        rod = f"left{k}" if welded else f"horizontal{k}"
        b.add_body(rod, Inertia.rod(mass / 2, (0, 0, 0), middle) if welded else Inertia.rod(mass, (0, 0, 0), end))
        b.add_joint(f"hinge{k}", Revolute("y"), f"vertical{k - 1}", rod, at_parent=top)
        home[f"hinge{k}"] = -lean
        if welded:
            b.add_body(f"right{k}", Inertia.rod(mass / 2, back, (0, 0, 0)))
            b.add_joint(f"pin{k}", Revolute("y"), f"vertical{k}", f"right{k}", at_parent=top)
            b.add_joint(f"weld{k}", Fixed(), rod, f"right{k}", at_parent=middle, at_child=back, loop=True)
            home[f"pin{k}"] = -lean
        else:
            b.add_joint(f"pin{k}", Spherical(), rod, f"vertical{k}", at_parent=end, at_child=top, loop=True)
    b.set_home(home)
    return b.build()
