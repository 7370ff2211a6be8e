"""Lattices: nets, rings and sheets of any number of cells. At home all bodies' frames are parallel to the ground's frame."""

from __future__ import annotations

import cmath
import math
from itertools import pairwise, product
from typing import Literal

import numpy as np

from .._arrays import Array
from ..description.joints import Fixed, Revolute, Spherical, Universal
from ..errors import ModelError, check_choice
from ..mechanism import Mechanism
from ..spatial import Inertia
from .drawing import Drawing, between_zero_and, cells, integer, positive

Closing = Literal["point", "weld"]


def net(rows: int = 3, columns: int = 3, length: float = 0.5, mass: float = 0.2) -> Mechanism:
    """Planar net of rods in the x-z plane, whose cells are four-bar linkages: rows + columns degrees of freedom.

    The net hangs from the corner of its first cell. At a node, each rod is pinned to the next one, so that n rods have n - 1 pins. The loop of each
    cell adds five constraint rows, of which three are redundant.

    Parameters
    ----------
    rows, columns : numbers of rows and columns of cells
    length : length of a rod [m]
    mass : mass of a rod [kg]

    Returns
    -------
    Mechanism with the bodies "across<i>_<j>" (from node j to node j + 1 of line i, along x at home) and "down<i>_<j>" (from line i to
    line i + 1, leaning by 0.5 rad at home), counted from 0. The joints are "hook" and "pin<i>_<j>_<k>", the k-th pin of a node

    Raises
    ------
    ModelError
        There is no row or no column, or a dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.net(2, 3)
    >>> mobility = robot.mobility(robot.neutral())
    >>> mobility.degrees_of_freedom, mobility.redundant
    (5, 18)
    """
    cells(rows, columns)
    positive(length=length, mass=mass)
    across, down = np.array([length, 0.0, 0.0]), length * np.array([math.sin(0.5), 0.0, -math.cos(0.5)])
    b = Drawing(f"net of {rows} by {columns} four-bars")
    # node -> (rod, point of the node on the rod) for each of its rods
    nodes = product(range(rows + 1), range(columns + 1))
    meeting: dict[tuple[int, int], list[tuple[str, Array]]] = {node: [] for node in nodes}
    for i, j in meeting:
        for name, step, end in (("across", across, (i, j + 1)), ("down", down, (i + 1, j))):
            if end in meeting:
                rod = f"{name}{i}_{j}"
                b.add_body(rod, Inertia.rod(mass, (0, 0, 0), step))
                meeting[i, j].append((rod, np.zeros(3)))
                meeting[end].append((rod, step))
    b.add_joint("hook", Revolute("y"), "ground", "across0_0")
    for (i, j), rods in meeting.items():
        for k, ((parent, at_parent), (child, at_child)) in enumerate(pairwise(rods)):
            b.add_joint(f"pin{i}_{j}_{k}", Revolute("y"), parent, child, at_parent=at_parent, at_child=at_child)
    return b.build()


def ring(n: int = 12, length: float = 0.2, mass: float = 0.1) -> Mechanism:
    """Closed chain of n rods with ball joints: 3 n - 3 degrees of freedom, of which n are spins of rods about themselves.

    One node hangs on the ground. At home the ring is a regular polygon in a horizontal plane.

    Parameters
    ----------
    n : number of rods, 3 or more
    length : length of a rod [m]. Its thickness is a fifth of the length, so that its moment of inertia about its own axis is not zero
    mass : mass of a rod [kg]

    Returns
    -------
    Mechanism with the bodies "rod1" to "rod<n>". The joints are "hook" (rod1 on the ground, at the origin), "ball1" (from rod1 to rod2),
    ..., and "ball<n>", which closes the ring

    Raises
    ------
    ModelError
        There are fewer than three rods, or a dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.mechanisms.ring(12)
    <Mechanism 'ring of 12 rods': 12 bodies, nq = 48, nv = 36, 1 constraints of nc = 3 rows>
    """
    integer("n", n, 3)
    positive(length=length, mass=mass)
    b = Drawing(f"ring of {n} rods")
    ends = [length * np.array([math.cos(turn), math.sin(turn), 0.0]) for turn in 2 * math.pi * np.arange(n) / n]
    for k, end in enumerate(ends, start=1):
        b.add_body(f"rod{k}", Inertia.rod(mass, (0, 0, 0), end, radius=length / 10))
    b.add_joint("hook", Spherical(), "ground", "rod1")
    for k, end in enumerate(ends, start=1):
        b.add_joint(f"ball{k}", Spherical(), f"rod{k}", f"rod{k % n + 1}", at_parent=end, loop=k == n)
    return b.build()


def chain_mail(rows: int = 3, columns: int = 4, radius: float = 0.05, mass: float = 0.05) -> Mechanism:
    """Mail of rings, each connected to its four neighbours by massless ties of constant length.

    Each ring adds 6 degrees of freedom; each ball joint removes 3, and each tie 1. The rings of the first row hang from the ground by ball joints. At
    home the mail is horizontal.

    Parameters
    ----------
    rows, columns : numbers of rows and columns of rings
    radius : radius of a ring, and length of a tie [m]
    mass : mass of a ring [kg]

    Returns
    -------
    Mechanism with the bodies "ring<i>_<j>", counted from 0, in row i along x and column j along y. The joints are "hook<j>" of the first
    row, and "float<i>_<j>" of the other rings. The constraints are "down<i>_<j>" and "across<i>_<j>", to the next row and column

    Raises
    ------
    ModelError
        There is no row or no column, or a dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.chain_mail(2, 3)
    >>> robot.nv, robot.nc, robot.mobility(robot.assemble()).degrees_of_freedom
    (27, 7, 20)
    """
    cells(rows, columns)
    positive(radius=radius, mass=mass)
    hoop = Inertia(mass, (0, 0, 0), mass * radius**2 * np.diag([0.5, 0.5, 1.0]))
    b = Drawing(f"chain mail of {rows} by {columns} rings")
    for i, j in product(range(rows), range(columns)):
        if i == 0:
            hook, edge = (0.0, 3 * radius * j, 0.0), (-radius, 0, 0)
            b.link(f"ring0_{j}", hoop, f"hook{j}", Spherical(), "ground", hook, at_child=edge)
        else:
            b.floating(f"ring{i}_{j}", hoop, (3 * radius * i + radius, 3 * radius * j, 0.0), f"float{i}_{j}")
    for i, j in product(range(rows), range(columns)):
        for name, axis, (row, column) in (("down", 0, (i + 1, j)), ("across", 1, (i, j + 1))):
            if row < rows and column < columns:
                edge = radius * np.eye(3)[axis]
                ends = (f"ring{i}_{j}", edge), (f"ring{row}_{column}", -edge)
                b.add_distance(f"{name}{i}_{j}", *ends, length=radius)
    return b.build()


def tensegrity_prism(
    n: int = 3, radius: float = 0.3, height: float = 0.6, stiffness: float = 2000.0, mass: float = 0.5
) -> Mechanism:
    """Tensegrity prism of n struts that do not touch: n degrees of freedom.

    The struts' lower ends (feet) are on a circle. Ties of constant length connect their upper ends (heads) to a regular polygon, and springs pull the
    heads down. About the vertical axis, a head is rotated relative to its foot by pi/2 + pi/n. At this angle a spring from a head to the next foot
    has the smallest length that the struts allow. Therefore the prism is in equilibrium for any tension of the springs.

    Parameters
    ----------
    n : number of struts, 3 or more
    radius : radius of the circle of feet, and of the circle of heads [m]
    height : height of the heads above the feet at home [m]
    stiffness : stiffness of a spring [N/m]; its free length is nine tenths of its length at home
    mass : mass of a strut [kg]

    Returns
    -------
    Mechanism with the bodies "strut1", ... (their frames at the feet) and the joints "foot1", .... The constraints "tie1", ... connect each head to
    the next one; the springs are "spring1", ...

    Raises
    ------
    ModelError
        There are fewer than three struts, or a dimension or a mass is not positive.

    References
    ----------
    Snelson, US patent 3169611, 1965. Tibert and Pellegrino, Review of form-finding methods for tensegrity structures, International
    Journal of Space Structures 18, 2003 (the angle).

    Examples
    --------
    >>> import sarrus
    >>> prism = sarrus.mechanisms.tensegrity_prism()
    >>> prism.mobility(prism.assemble()).degrees_of_freedom
    3
    """
    integer("n", n, 3)
    positive(radius=radius, height=height, stiffness=stiffness, mass=mass)
    twist = math.pi / 2 + math.pi / n
    angles = 2 * math.pi * np.arange(n) / n
    feet, heads = (radius * np.array([np.cos(x), np.sin(x), 0 * x]).T for x in (angles, angles + twist))
    heads += (0.0, 0.0, float(height))
    b = Drawing(f"tensegrity prism of {n} struts")
    for k in range(n):
        strut = Inertia.rod(mass, (0, 0, 0), heads[k] - feet[k])
        # neither axis is along the strut, so that the strut cannot spin about itself
        b.link(f"strut{k + 1}", strut, f"foot{k + 1}", Universal("x", "y"), "ground", feet[k])
    for k in range(n):
        after = (k + 1) % n
        head, next_head = (f"strut{k + 1}", heads[k] - feet[k]), (f"strut{after + 1}", heads[after] - feet[after])
        b.add_distance(f"tie{k + 1}", head, next_head, length=2 * radius * math.sin(math.pi / n))
        rest_length = 0.9 * float(np.linalg.norm(heads[k] - feet[after]))
        foot = ("ground", feet[after])
        b.add_spring(f"spring{k + 1}", foot, head, stiffness=stiffness, rest_length=rest_length)
    return b.build()


def _scissors(n: int, arm: float) -> tuple[float, dict[str, tuple[complex, complex]]]:
    """Return the radius [m] of the circle through the middle pins of n scissors, and the ends of the two bars of a scissors.

    Ends are complex numbers relative to the middle pin, for the scissors that lies in direction 1 from the ring's centre. The first end is at the
    previous scissors, the second at the next.
    """
    # half: half the angle that a scissors subtends at the ring's centre. fold: angle of the bars from their direction at the ring's largest radius
    half, fold = math.pi / n, math.pi / 4 - math.pi / (3 * n)
    corner = math.pi / 2 + half
    bars = {
        side: (cmath.rect(arm, turn - corner), cmath.rect(arm, turn + corner))
        for side, turn in (("left", -fold), ("right", fold))
    }
    # at this radius the ends of the bars are on the rays at the angles +half and -half from the ring's centre
    return arm * math.cos(fold) / math.sin(half), bars


def _ring_of_scissors(
    b: Drawing, bars: dict[str, tuple[complex, complex]], plane: Array, directions: list[complex], mass: float, label: str = ""
) -> list[tuple[str, str, str, Array, Array]]:  # fmt: skip
    """Add the bent bars of a ring of scissors, two rods each. Return its pins in turn: name, bar and next bar, and the pin's places on both.

    `plane` (2, 3) has the axes of the ring's plane, in which `directions` are those of the scissors from the ring's centre.
    """
    ends: dict[str, list[Array]] = {}
    for k, out in enumerate(directions, start=1):
        for side, pair in bars.items():
            ends[f"{side}{label}{k}"] = points = [_in_plane(plane, z * out) for z in pair]
            b.add_body(f"{side}{label}{k}", sum((Inertia.rod(mass / 2, (0, 0, 0), p) for p in points), Inertia.zero()))
    pins = []
    for k in range(1, len(directions) + 1):
        for place, side, next_side in (("outer", "left", "right"), ("inner", "right", "left")):
            bar, next_bar = f"{side}{label}{k}", f"{next_side}{label}{k % len(directions) + 1}"
            pins.append((f"{place}{label}{k}", bar, next_bar, ends[bar][1], ends[next_bar][0]))
    return pins


def hoberman_ring(n: int = 6, arm: float = 0.2, mass: float = 0.2) -> Mechanism:
    """Hoberman's ring, a planar expanding ring of n scissors: one degree of freedom, though Kutzbach counts less than zero.

    A scissors has two bars, pinned in their middle. Each bar is bent there by the angle 2 pi / n that the scissors subtends. Therefore its ends stay
    on two lines through the ring's centre when the ring expands (Hoberman's angulated elements). The ring hangs from the middle pin of its first
    scissors, at the top. Two gears keep this scissors symmetric.

    Parameters
    ----------
    n : number of scissors, 3 or more
    arm : length of a bent bar from its middle to either end [m]
    mass : mass of a bent bar [kg]

    Returns
    -------
    Mechanism with the bodies "left1", "right1", ... (mirror images of each other, with frames at the pin in their middle). The joints are
    "hook" (actuated, on left1) and "hook_right", "middle<k>" (of each scissors except the first), and "outer<k>" and "inner<k>" to the next scissors.
    The constraint is "gears"

    Raises
    ------
    ModelError
        There are fewer than three scissors, or a dimension or a mass is not positive.

    References
    ----------
    Hoberman, US patent 4942700, 1990. You and Pellegrino, Foldable bar structures, International Journal of Solids and Structures 34,
    1997.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.hoberman_ring()
    >>> mobility = robot.mobility(robot.assemble())
    >>> mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom
    (1, 1)
    """
    integer("n", n, 3)
    positive(arm=arm, mass=mass)
    radius, bars = _scissors(n, arm)
    b = Drawing(f"Hoberman ring of {n} scissors")
    directions = [1j * cmath.exp(2j * math.pi * k / n) for k in range(n)]
    pins = _ring_of_scissors(b, bars, np.eye(3)[[0, 2]], directions, mass)
    for k in range(2, n + 1):
        b.add_joint(f"middle{k}", Revolute("y"), f"left{k}", f"right{k}")
    top = (0.0, 0.0, radius)
    b.add_joint("hook", Revolute("y"), "ground", "left1", at_parent=top, actuated=True, tree=True)
    b.add_joint("hook_right", Revolute("y"), "ground", "right1", at_parent=top, tree=True)
    b.add_coupler("gears", {"hook": 1.0, "hook_right": 1.0})
    for name, bar, next_bar, end, start in pins:
        b.add_joint(name, Revolute("y"), bar, next_bar, at_parent=end, at_child=start)
    return b.build()


def hoberman_sphere(scissors: int = 1, arm: float = 0.2, mass: float = 0.1) -> Mechanism:
    """Hoberman's expanding sphere of three rings: one degree of freedom, though Kutzbach counts far less than zero.

    The three rings are in perpendicular planes, and share an outer and an inner hub at each of their crossings. The sphere hangs from its top hub.
    The actuated joints are at the scissors next to this hub.

    Parameters
    ----------
    scissors : number of scissors of a ring between two crossings, 1 or more
    arm : length of a bent bar from its middle to either end [m]
    mass : mass of a bent bar, and of a hub [kg]

    Returns
    -------
    Mechanism with the bodies "left<c><k>" and "right<c><k>" (c = x, y, z, the axis of the ring; k from 1), and the hubs "outer+z",
    "inner+z", .... The joint "hook" welds the top hub to the ground. "middle<c><k>" connects the bars of a scissors. "<outer or inner><c><k>"
    connects a bar to the next one. At a crossing, "<...> in" and "<...> out" connect the bars to the hub

    Raises
    ------
    ModelError
        There are no scissors, or a dimension or a mass is not positive.

    References
    ----------
    Hoberman, Radial expansion/retraction truss structures, US patent 5024031, 1991.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.hoberman_sphere()
    >>> mobility = robot.mobility(robot.assemble())
    >>> len(robot.bodies), mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom
    (36, 1, 1)
    """
    integer("scissors", scissors, 1)
    positive(arm=arm, mass=mass)
    n = 4 * scissors
    radius, bars = _scissors(n, arm)
    b = Drawing(f"Hoberman sphere of {3 * n} scissors")
    signs = [sign + axis for axis in "xyz" for sign in "+-"]
    for hub in (f"{place}{sign}" for place in ("outer", "inner") for sign in signs):
        b.add_body(hub, Inertia.sphere(mass, arm / 10))
    directions = [cmath.exp(1j * math.pi * (2 * k + 1) / n) for k in range(n)]
    top = None
    for c, normal in enumerate("xyz"):
        hinge, names = Revolute(normal), ("xyz"[c - 2], "xyz"[c - 1])  # names of the axes in the ring's plane
        plane = np.eye(3)[[c - 2, c - 1]]
        pins = _ring_of_scissors(b, bars, plane, directions, mass, normal)
        for k in range(1, n + 1):
            b.add_joint(f"middle{normal}{k}", hinge, f"left{normal}{k}", f"right{normal}{k}")
        for index, (name, bar, next_bar, end, start) in enumerate(pins):
            k = index // 2 + 1
            if k % scissors:
                b.add_joint(name, hinge, bar, next_bar, at_parent=end, at_child=start)
                continue
            quarter = k // scissors % 4
            hub = f"{name[:5]}{'+-'[quarter // 2]}{names[quarter % 2]}"
            uppermost = top is None and hub == "outer+z"
            b.add_joint(f"{name} in", hinge, hub, bar, at_child=end, actuated=uppermost)
            b.add_joint(f"{name} out", hinge, hub, next_bar, at_child=start)
            if uppermost:
                top = _in_plane(plane, radius * directions[k - 1]) + end
    b.add_joint("hook", Fixed(), "ground", "outer+z", at_parent=top)
    return b.build()


def _in_plane(plane: Array, z: complex) -> Array:
    """Return the point (3,) of a plane with two axes (2, 3)."""
    return np.asarray(z.real * plane[0] + z.imag * plane[1])


def miura_fold(
    rows: int = 3, columns: int = 4, side: float = 0.2, angle: float = math.pi / 3, fold: float = 0.6, mass: float = 0.1
) -> Mechanism:
    """Miura's fold, a sheet of rigid parallelograms hinged along creases: one degree of freedom for any number of facets.

    The sheet contracts in both directions at once until it is flat. Four creases meet at each inner vertex, and each inner vertex adds a loop with
    five constraint rows.

    Parameters
    ----------
    rows, columns : numbers of rows and columns of facets, both at least 2; rows follow each other along y
    side : length of all sides of a facet [m]
    angle : angle of a facet's corner, in (0, pi/2) [rad]
    fold : fold angle at home, in (0, pi/2) [rad]. The limits (flat sheet and fully folded sheet) are excluded, because several branches meet there
    mass : mass of a facet [kg]

    Returns
    -------
    Mechanism with the bodies "facet<i>_<j>", counted from 0; facet0_0 is the ground. A facet's frame is at its corner nearest to the
    ground at home. The joints "across<i>_<j>" and "along<i>_<j>" connect a facet to those of the next column and row; "across0_0" is
    actuated

    Raises
    ------
    ModelError
        There are fewer than two rows or columns, an angle is out of range, or a dimension or a mass is not positive.

    References
    ----------
    Schenk and Guest, Geometry of Miura-folded metamaterials, PNAS 110, 2013.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.miura_fold(3, 3)
    >>> mobility = robot.mobility(robot.neutral())
    >>> robot.nv, robot.nc, mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom
    (8, 20, 1, 1)
    """
    cells(rows, columns, 2)
    positive(side=side, mass=mass)
    between_zero_and("pi/2", angle=angle, fold=fold)
    rise = side * math.sin(fold) * math.sin(angle)
    stretch = math.hypot(1.0, math.cos(fold) * math.tan(angle))
    wide, shift = side * math.cos(fold) * math.tan(angle) / stretch, side / stretch
    deep = math.sqrt((side - rise) * (side + rise))

    def corner(i: int, j: int) -> Array:
        return np.array([wide * j, deep * i + shift * (j % 2), rise * (i % 2)])

    b = Drawing(f"Miura fold of {rows} by {columns} facets")
    facets = {(i, j): f"facet{i}_{j}" for i, j in product(range(rows), range(columns))} | {(0, 0): "ground"}
    for (i, j), facet in facets.items():
        along, across = corner(i + 1, j) - corner(i, j), corner(i, j + 1) - corner(i, j)
        if facet != "ground":
            # four point masses with the same second moments as a plate (points of Gauss quadrature)
            corners = product((-0.5 / math.sqrt(3), 0.5 / math.sqrt(3)), repeat=2)
            places = [(0.5 + x) * along + (0.5 + y) * across for x, y in corners]
            b.add_body(facet, Inertia.from_points([mass / 4] * 4, places))
        for name, crease, step, index in (("across", along, across, (i, j + 1)), ("along", across, along, (i + 1, j))):
            if index in facets:
                motor = facet == "ground" and name == "across"
                b.add_joint(f"{name}{i}_{j}", Revolute(crease), facet, facets[index], at_parent=step, actuated=motor)
    return b.build()


# ---- ladders of four-bars: rows of loops -----------------------------------------------------------------------------


def four_bar_ladder(n: int, closing: Closing = "point", length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Row of n parallelograms in the x-z plane, n + 1 vertical and n horizontal rods: one degree of freedom for any n.

    Every loop has redundant constraints. At q = 0 the vertical rods are upright; at home they lean by 0.5 rad towards x. If all pivots are at pi/2
    and all hinges at -pi/2, or the reverse, all rods are on one line. The rank of the constraints drops in this position, and any parallelogram can
    become an antiparallelogram.

    Parameters
    ----------
    n : number of loops
    closing : "point": the far end of a horizontal rod is pinned at one point to the next vertical rod (three rows per loop, one of them
        redundant). "weld": every horizontal rod is cut in the middle. Its far half is pinned to the next vertical rod, and a Fixed joint welds the
        halves (six rows per loop, three of them redundant)
    length : length of a rod [m]
    mass : mass of a rod [kg]

    Returns
    -------
    Mechanism with the bodies "vertical0" to "vertical<n>" and "horizontal1" ... (or "left1", "right1", ...). The joints are "pivot0"
    (actuated), "pivot1", ..., "hinge1", ... and "pin1", ... (with "weld" also "weld1", ..., and the pins are on the right halves)

    Raises
    ------
    ModelError
        There is no loop, `closing` is neither choice, or a dimension or a mass is not positive.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.mechanisms.four_bar_ladder(8)
    <Mechanism 'ladder of 8 four-bars': 17 bodies, nq = 17, nv = 17, 8 constraints of nc = 24 rows>
    >>> sarrus.mechanisms.four_bar_ladder(8, closing="weld").nv
    25
    """
    integer("n", n, 1)
    positive(length=length, mass=mass)
    check_choice("closing", closing, Closing, ModelError)
    welded = closing == "weld"
    top, end, middle = (0, 0, length), (length, 0, 0), (length / 2, 0, 0)
    back = (-length / 2, 0, 0)

    b = Drawing(f"ladder of {n} four-bar{'s' if n > 1 else ''}")
    lean, hinge = 0.5, Revolute("y")
    for k in range(n + 1):
        rod, at = Inertia.rod(mass, (0, 0, 0), top), (k * length, 0, 0)
        b.link(f"vertical{k}", rod, f"pivot{k}", hinge, "ground", at, home=lean, actuated=k == 0)
    for k in range(1, n + 1):
        bar, name = Inertia.rod(mass, (0, 0, 0), end), f"horizontal{k}"
        if welded:
            bar, name = Inertia.rod(mass / 2, (0, 0, 0), middle), f"left{k}"
        b.link(name, bar, f"hinge{k}", hinge, f"vertical{k - 1}", top, home=-lean)
        if welded:
            half = Inertia.rod(mass / 2, back, (0, 0, 0))
            b.link(f"right{k}", half, f"pin{k}", hinge, f"vertical{k}", top, home=-lean)
            b.add_joint(f"weld{k}", Fixed(), name, f"right{k}", at_parent=middle, at_child=back, loop=True)
        else:
            b.add_joint(f"pin{k}", Spherical(), name, f"vertical{k}", at_parent=end, at_child=top, loop=True)
    return b.build()
