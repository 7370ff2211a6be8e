"""Lattices: nets, rings and sheets of as many cells as one likes. All bodies' frames are parallel to the ground's at home."""

from __future__ import annotations

import cmath
import math
from itertools import pairwise, product
from typing import Literal

import numpy as np

from .._arrays import Array, ArrayLike
from ..building.builder import Builder
from ..description.joints import Fixed, Free, Revolute, Spherical, Universal
from ..errors import ModelError, check_choice
from ..mechanism import Mechanism
from ..spatial import Inertia
from .drawing import between_zero_and, cells, in_space, positive, whole

Closing = Literal["point", "weld"]


def net(rows: int = 3, columns: int = 3, length: float = 0.5, mass: float = 0.2) -> Mechanism:
    """Planar net of rods: cells are four-bars, and it hangs from the corner of its first one.

    Where rods meet they are pinned to one another one by one, so that there is a pin less than rods. The net stays in the x-z plane. It
    has rows + columns degrees of freedom; each cell's loop adds five rows, of which three are redundant.

    Parameters
    ----------
    rows, columns : of cells
    length : of a rod [m]
    mass : of a rod [kg]

    Returns
    -------
    Mechanism with the bodies "across<i>_<j>" (from node j to node j + 1 of line i, along x at home) and "down<i>_<j>" (from line i to
    line i + 1, leaning by 0.5 rad at home), counted from 0; and the joints "hook" and "pin<i>_<j>_<k>", the k-th pin of a node

    Raises
    ------
    ModelError
        No row or no column; a size that is not positive.

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
    b = Builder(f"net of {rows} by {columns} four-bars")
    # of each node, the rods that meet there, with the place where it is on them
    nodes = product(range(rows + 1), range(columns + 1))
    meeting: dict[tuple[int, int], list[tuple[str, Array]]] = {node: [] for node in nodes}
    for i, j in meeting:
        for name, way, far in (("across", across, (i, j + 1)), ("down", down, (i + 1, j))):
            if far in meeting:
                rod = f"{name}{i}_{j}"
                b.add_body(rod, Inertia.rod(mass, (0, 0, 0), way))
                meeting[i, j].append((rod, np.zeros(3)))
                meeting[far].append((rod, way))
    b.add_joint("hook", Revolute("y"), "ground", "across0_0")
    for (i, j), rods in meeting.items():
        for k, ((one, at_one), (other, at_other)) in enumerate(pairwise(rods)):
            b.add_joint(f"pin{i}_{j}_{k}", Revolute("y"), one, other, at_parent=at_one, at_child=at_other)
    return b.build()


def ring(n: int = 12, length: float = 0.2, mass: float = 0.1) -> Mechanism:
    """Closed chain of n rods with a ball in every joint, one node of which hangs on the ground. At home it lies level, a regular polygon.

    It has 3 n - 3 degrees of freedom, of which n are rods that spin about themselves.

    Parameters
    ----------
    n : number of rods, 3 or more
    length : of a rod [m]; it is a fifth of that thick, so that it resists spinning
    mass : of a rod [kg]

    Returns
    -------
    Mechanism with the bodies "rod1" to "rod<n>" and the joints "hook" (rod1 on the ground, in the origin), "ball1" (from rod1 to rod2),
    ..., and "ball<n>", which closes the ring

    Raises
    ------
    ModelError
        Fewer than three rods; a size that is not positive.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.mechanisms.ring(12)
    <Mechanism 'ring of 12 rods': 12 bodies, nq = 48, nv = 36, 1 constraints of nc = 3 rows>
    """
    whole("n", n, 3)
    positive(length=length, mass=mass)
    b = Builder(f"ring of {n} rods")
    ways = [length * np.array([math.cos(turn), math.sin(turn), 0.0]) for turn in 2 * math.pi * np.arange(n) / n]
    for k, way in enumerate(ways, start=1):
        b.add_body(f"rod{k}", Inertia.rod(mass, (0, 0, 0), way, radius=length / 10))
    b.add_joint("hook", Spherical(), "ground", "rod1")
    for k, way in enumerate(ways, start=1):
        b.add_joint(f"ball{k}", Spherical(), f"rod{k}", f"rod{k % n + 1}", at_parent=way, loop=k == n)
    return b.build()


def chain_mail(rows: int = 3, columns: int = 4, radius: float = 0.05, mass: float = 0.05) -> Mechanism:
    """Mail of rings, each tied to its four neighbours by small rings without mass: stretched, these keep two points at their distance.

    The rings of the first row hang on the ground, in balls; at home the mail lies level. It has 6 degrees of freedom for each ring, less
    3 for each ball and 1 for each tie.

    Parameters
    ----------
    rows, columns : of rings
    radius : of a ring; ties are as long [m]
    mass : of a ring [kg]

    Returns
    -------
    Mechanism with the bodies "ring<i>_<j>", counted from 0, in row i along x and column j along y; the joints "hook<j>", and
    "float<i>_<j>" of the rings that only ties hold; and the constraints "down<i>_<j>" and "across<i>_<j>", to the next row and column

    Raises
    ------
    ModelError
        No row or no column; a size that is not positive.

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
    b = Builder(f"chain mail of {rows} by {columns} rings")
    home: dict[str, list[float]] = {}
    for i, j in product(range(rows), range(columns)):
        place = (3 * radius * i + radius, 3 * radius * j, 0.0)
        b.add_body(f"ring{i}_{j}", hoop)
        if i == 0:
            hook = (0.0, 3 * radius * j, 0.0)
            b.add_joint(f"hook{j}", Spherical(), "ground", f"ring0_{j}", at_parent=hook, at_child=(-radius, 0, 0))
        else:
            b.add_joint(f"float{i}_{j}", Free(), "ground", f"ring{i}_{j}")
            home[f"float{i}_{j}"] = [0, 0, 0, 1, *place]
    for i, j in product(range(rows), range(columns)):
        for name, way, far in (("down", "x", (i + 1, j)), ("across", "y", (i, j + 1))):
            if far[0] < rows and far[1] < columns:
                edge = radius * np.eye(3)["xy".index(way)]
                ends = (f"ring{i}_{j}", edge), (f"ring{far[0]}_{far[1]}", -edge)
                b.add_distance(f"{name}{i}_{j}", *ends, length=radius)
    b.set_home(home)
    return b.build()


def tensegrity_prism(
    n: int = 3, radius: float = 0.3, height: float = 0.6, stiffness: float = 2000.0, mass: float = 0.5
) -> Mechanism:
    """Prism of n struts that do not touch: their feet stand on a circle, their heads are tied to a polygon, and springs pull these down.

    A strut's head is turned against its foot by 90 degrees and half a side of the polygon. Where the heads' polygon is turned so, a
    spring from a head down to the next foot is as short as the struts allow: springs of any tension hold the prism up. It has n degrees
    of freedom.

    Parameters
    ----------
    n : number of struts, 3 or more
    radius : of the circles of feet and heads [m]
    height : of the heads at home [m]
    stiffness : of a spring, which is nine tenths as long without load as at home [N/m]
    mass : of a strut [kg]

    Returns
    -------
    Mechanism with the bodies "strut1", ... (their frames at the feet), the joints "foot1", ..., the constraints "tie1", ... from a head
    to the next, and the springs "spring1", ...

    Raises
    ------
    ModelError
        Fewer than three struts; a size that is not positive.

    References
    ----------
    Snelson, US patent 3169611, 1965. Tibert and Pellegrino, Review of form-finding methods for tensegrity structures, International
    Journal of Space Structures 18, 2003: the angle.

    Examples
    --------
    >>> import sarrus
    >>> prism = sarrus.mechanisms.tensegrity_prism()
    >>> prism.mobility(prism.assemble()).degrees_of_freedom
    3
    """
    whole("n", n, 3)
    positive(radius=radius, height=height, stiffness=stiffness, mass=mass)
    twist = math.pi / 2 + math.pi / n
    angles = 2 * math.pi * np.arange(n) / n
    feet, heads = (radius * np.array([np.cos(x), np.sin(x), 0 * x]).T for x in (angles, angles + twist))
    heads += (0.0, 0.0, float(height))
    b = Builder(f"tensegrity prism of {n} struts")
    for k in range(n):
        b.add_body(f"strut{k + 1}", Inertia.rod(mass, (0, 0, 0), heads[k] - feet[k]))
        # neither axis is along the strut: it does not spin about itself
        b.add_joint(f"foot{k + 1}", Universal("x", "y"), "ground", f"strut{k + 1}", at_parent=feet[k])
    for k in range(n):
        after = (k + 1) % n
        head, next_head = (f"strut{k + 1}", heads[k] - feet[k]), (f"strut{after + 1}", heads[after] - feet[after])
        b.add_distance(f"tie{k + 1}", head, next_head, length=2 * radius * math.sin(math.pi / n))
        rest_length = 0.9 * float(np.linalg.norm(heads[k] - feet[after]))
        foot = ("ground", feet[after])
        b.add_spring(f"spring{k + 1}", foot, head, stiffness=stiffness, rest_length=rest_length)
    return b.build()


def _scissors(n: int, arm: float) -> tuple[float, dict[str, tuple[complex, complex]]]:
    """Of a ring of n scissors the radius of their middles, and of both bars, straight out from the centre, the ends: those to the scissors before
    and to the ones after, from the bar's middle.
    """
    # of a scissors' angle; how far it is from its largest size
    half, fold = math.pi / n, math.pi / 4 - math.pi / (3 * n)
    corner = math.pi / 2 + half
    bars = {
        side: (cmath.rect(arm, turn - corner), cmath.rect(arm, turn + corner))
        for side, turn in (("left", -fold), ("right", fold))
    }
    return arm * math.cos(fold) / math.sin(half), bars  # ends then lie on the lines at +- half


def _bent_bar(mass: float, *ends: ArrayLike) -> Inertia:
    """Two rods from the frame's origin."""
    return sum((Inertia.rod(mass / 2, (0, 0, 0), end) for end in ends), Inertia.zero())


def hoberman_ring(n: int = 6, arm: float = 0.2, mass: float = 0.2) -> Mechanism:
    """Hoberman's ring: n scissors of two bent bars each; it grows and shrinks and stays a ring. Planar, as one circle of his sphere.

    Every bar is bent in its middle by the angle 2 pi / n that its scissors take of the circle; so its ends stay on two lines through the
    centre whatever the size (Hoberman's angulated elements). It hangs from the pin of its first scissors, on top, where two gears keep
    these symmetrical; shrinking lifts it. Kutzbach counts fewer degrees of freedom than none; it has one.

    Parameters
    ----------
    n : number of scissors, 3 or more
    arm : of a bent bar, from its middle to either end [m]
    mass : of a bent bar [kg]

    Returns
    -------
    Mechanism with the bodies "left1", "right1", ... (mirror images of each other; their frames at the pin in their middle), the joints
    "hook" (actuated, on left1) and "hook_right", "middle<k>" (of all but the first scissors), "outer<k>" and "inner<k>", to the next
    scissors, and the constraint "gears"

    Raises
    ------
    ModelError
        Fewer than three scissors; a size that is not positive.

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
    whole("n", n, 3)
    positive(arm=arm, mass=mass)
    radius, bars = _scissors(n, arm)
    b = Builder(f"Hoberman ring of {n} scissors")
    ends: dict[str, tuple[complex, complex]] = {}
    for k in range(n):
        out = 1j * cmath.exp(2j * math.pi * k / n)
        for side, (first, last) in bars.items():
            ends[f"{side}{k + 1}"] = pair = first * out, last * out
            b.add_body(f"{side}{k + 1}", _bent_bar(mass, *map(in_space, pair)))
        if k > 0:
            b.add_joint(f"middle{k + 1}", Revolute("y"), f"left{k + 1}", f"right{k + 1}")
    top = in_space(radius * 1j)
    b.add_joint("hook", Revolute("y"), "ground", "left1", at_parent=top, actuated=True, tree=True)
    b.add_joint("hook_right", Revolute("y"), "ground", "right1", at_parent=top, tree=True)
    b.add_coupler("gears", {"hook": 1.0, "hook_right": 1.0})
    for k in range(n):
        for name, one, other in (("outer", "left", "right"), ("inner", "right", "left")):
            one, other = f"{one}{k + 1}", f"{other}{(k + 1) % n + 1}"
            before, after = in_space(ends[one][1]), in_space(ends[other][0])
            b.add_joint(f"{name}{k + 1}", Revolute("y"), one, other, at_parent=before, at_child=after)
    return b.build()


def hoberman_sphere(scissors: int = 1, arm: float = 0.2, mass: float = 0.1) -> Mechanism:
    """Hoberman's sphere: three of his rings at right angles, which share a hub, outside and inside, wherever two of them cross.

    It grows and shrinks and stays a sphere. It hangs from its top hub, and the scissors next to that one are driven. Kutzbach counts
    far fewer degrees of freedom than none; it has one.

    Parameters
    ----------
    scissors : on a ring between two crossings, 1 or more
    arm : of a bent bar, from its middle to either end [m]
    mass : of a bent bar, and of a hub [kg]

    Returns
    -------
    Mechanism with the bodies "left<c><k>" and "right<c><k>" (c = x, y, z, the axis of the ring; k from 1), "outer+z", "inner+z", ... (hubs);
    the joints "hook" (welds the top hub to the ground), "middle<c><k>", and "<outer or inner><c><k>", from the bar before to the next one
    or, at a crossing, "<...> in" and "<...> out" to the hub and on

    Raises
    ------
    ModelError
        No scissors; a size that is not positive.

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
    whole("scissors", scissors, 1)
    positive(arm=arm, mass=mass)
    n = 4 * scissors
    radius, bars = _scissors(n, arm)
    b = Builder(f"Hoberman sphere of {3 * n} scissors")
    signs = [sign + axis for axis in "xyz" for sign in "+-"]
    for hub in (f"{where}{sign}" for where in ("outer", "inner") for sign in signs):
        b.add_body(hub, Inertia.sphere(mass, arm / 10))
    top = None
    for c, normal in enumerate("xyz"):
        names = "xyz"[c - 2], "xyz"[c - 1]  # of the axes in the ring's plane
        plane = np.eye(3)[[c - 2, c - 1]]
        ends: dict[str, tuple[complex, complex]] = {}
        ways = [cmath.exp(1j * math.pi * (2 * k + 1) / n) for k in range(n)]
        for k, out in enumerate(ways):
            for side, (first, last) in bars.items():
                ends[f"{side}{normal}{k + 1}"] = pair = first * out, last * out
                b.add_body(f"{side}{normal}{k + 1}", _bent_bar(mass, *(_along(plane, z) for z in pair)))
            b.add_joint(f"middle{normal}{k + 1}", Revolute(normal), f"left{normal}{k + 1}", f"right{normal}{k + 1}")
        for k in range(n):
            for where, one, other in (("outer", "left", "right"), ("inner", "right", "left")):
                one, other = f"{one}{normal}{k + 1}", f"{other}{normal}{(k + 1) % n + 1}"
                before, after = _along(plane, ends[one][1]), _along(plane, ends[other][0])
                name, crossing = f"{where}{normal}{k + 1}", (k + 1) % scissors == 0
                if not crossing:
                    b.add_joint(name, Revolute(normal), one, other, at_parent=before, at_child=after)
                    continue
                quarter = (k + 1) // scissors % 4
                hub = f"{where}{'+-'[quarter // 2]}{names[quarter % 2]}"
                b.add_joint(
                    f"{name} in", Revolute(normal), hub, one, at_child=before, actuated=top is None and hub == "outer+z"
                )
                b.add_joint(f"{name} out", Revolute(normal), hub, other, at_child=after)
                if hub == "outer+z" and top is None:
                    top = _along(plane, radius * ways[k] + ends[one][1])
    b.add_joint("hook", Fixed(), "ground", "outer+z", at_parent=top)
    return b.build()


def _along(plane: Array, z: complex) -> Array:
    """The point (3,) of a plane, of which two axes are given."""
    return np.asarray(z.real * plane[0] + z.imag * plane[1])


def miura_fold(
    rows: int = 3, columns: int = 4, side: float = 0.2, angle: float = math.pi / 3, fold: float = 0.6, mass: float = 0.1
) -> Mechanism:
    """Miura's fold: a sheet of rigid parallelograms, hinged along its creases, that folds flat in both directions at once.

    Four creases meet in each inner corner, and each adds a loop of five rows; the sheet has one degree of freedom for any number of facets.

    Parameters
    ----------
    rows, columns : of facets, both at least 2; rows follow each other along y
    side : of a facet [m]
    angle : of a facet's corner, in (0, pi/2) [rad]
    fold : by which the facets stand up at home, from 0, flat, to pi/2, folded, both excluded: there it may fold in other ways [rad]
    mass : of a facet [kg]

    Returns
    -------
    Mechanism with the bodies "facet<i>_<j>", counted from 0 (facet0_0 is the ground; a facet's frame is in its corner nearest to that at
    home), and the joints "across<i>_<j>" and "along<i>_<j>", from there to the facets of the next column and row; "across0_0" is actuated

    Raises
    ------
    ModelError
        Fewer than two rows or columns; an angle out of range; a size that is not positive.

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

    b = Builder(f"Miura fold of {rows} by {columns} facets")
    facets = {(i, j): f"facet{i}_{j}" for i, j in product(range(rows), range(columns))} | {(0, 0): "ground"}
    for (i, j), facet in facets.items():
        along, across = corner(i + 1, j) - corner(i, j), corner(i, j + 1) - corner(i, j)
        if facet != "ground":
            # a plate's second moments are those of four points, as Gauss places them
            corners = product((-0.5 / math.sqrt(3), 0.5 / math.sqrt(3)), repeat=2)
            places = [(0.5 + x) * along + (0.5 + y) * across for x, y in corners]
            b.add_body(facet, Inertia.from_points([mass / 4] * 4, places))
        for name, crease, step, far in (("across", along, across, (i, j + 1)), ("along", across, along, (i + 1, j))):
            if far in facets:
                motor = facet == "ground" and name == "across"
                b.add_joint(f"{name}{i}_{j}", Revolute(crease), facet, facets[far], at_parent=step, actuated=motor)
    return b.build()


# ---- ladders of four-bars: loops beside loops, as many as one likes --------------------------------------------------


def four_bar_ladder(n: int, closing: Closing = "point", length: float = 1.0, mass: float = 1.0) -> Mechanism:
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
    check_choice("closing", closing, Closing, ModelError)
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
