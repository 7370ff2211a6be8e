"""Skeleton of a mechanism without meshes: bars from joint to joint.

A bar belongs to one body, or it is between two bodies that a sliding joint or a massless rod connects. The places of a body are the points of joints,
rods and frames on it:

body with two places      one bar
places on a line          bars from each place to the next
places in a plane         bars along their convex hull; inner places are joined to its nearest corner
places in space           bars to their middle
one place                 a bar to the centre of mass, or the box of the inertia if the two coincide
rolling disc or sphere    for a disc its rim and two diameters, for a sphere three great circles
sliding joint             a bar that stretches, from its place on one body to its place on the other
distance                  a bar of constant length
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, real_array
from ..analysis.closing import start_near
from ..description.joints import JointType
from ..description.specs import BodySpec, JointSpec
from ..errors import ShapeError, check_name
from ..mechanism import Mechanism, checked_mechanism

FLAT = 0.02  # places are considered on one line or plane up to this distance, relative to their extent
SAME = 1e-9  # places are considered equal up to this relative distance
CORNERS = 24  # corners of the polygon that represents a circle
EDGES = 12  # edges of a box
# colours of bodies, in turn: Tol's light scheme, which colour-blind readers distinguish (personal.sron.nl/~pault)
PALETTE: tuple[tuple[int, int, int], ...] = (
    (119, 170, 221), (238, 136, 102), (68, 187, 153), (238, 221, 136), (153, 221, 255), (255, 170, 187), (187, 204, 51),
    (170, 170, 0),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Bar:
    """Straight line between two points of bodies.

    The owner is the body to which the bar belongs, or the constraint if the bar is a massless rod.

    Attributes
    ----------
    owner : body or constraint
    first, second : (body, position (3,) in the body's frame [m]) of each end
    slides : True if the bar connects two bodies, so that its length changes
    """

    owner: str
    first: tuple[str, Array]
    second: tuple[str, Array]
    slides: bool = False


@dataclass(frozen=True, eq=False)
class Place:
    """Position and axis of a joint on its child.

    Attributes
    ----------
    joint, kind, body : names of the joint, of its type, and of its child
    point : (3,) position in the child's frame [m]
    axis : (3,) unit vector of the joint's axis in the child's frame (dimensionless); None if the joint has no single axis
    """

    joint: str
    kind: str
    body: str
    point: Array
    axis: Array | None


class Skeleton:
    """Bars, joints and anchors of a mechanism, in any number of configurations.

    Attributes
    ----------
    mechanism : the mechanism
    bars, owners : tuple of :class:`Bar`, and their distinct owners in the order of the bars
    joints : joint name to :class:`Place`, of all joints except free joints
    plates : body to its places (k, 3) in its frame [m], for bodies with more than two places that are not on a line
    colors : owner to its colour, red, green and blue from 0 to 255
    boxes : bodies that are shown as the box of their inertia
    slender : owners of bars that slide along other bars, like a rod in a cylinder
    anchors : (k, 3) points of joints and rods on the ground, in the world [m]
    size : characteristic length [m], the largest extent of the mechanism at home

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.figures.skeleton import Skeleton
    >>> skeleton = Skeleton(sarrus.mechanisms.four_bar())
    >>> skeleton.owners
    ('crank', 'coupler', 'rocker')
    >>> bars = skeleton.segments(skeleton.mechanism.assemble(fixed={"motor": 0.5}))
    >>> float(np.linalg.norm(bars["coupler"][0, 1] - bars["coupler"][0, 0]).round(12))
    1.1
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = checked_mechanism(mechanism)
        d = mechanism.description
        self.joints = {spec.name: _place(spec) for spec in d.joints if not _floats(spec.joint)}
        places: dict[str, list[Array]] = {"ground": [], **{body.name: [] for body in d.bodies}}
        for spec in d.joints:
            # omit the frame of a gliding joint (see _glides) on the parent: the child moves away from it, so it does not define the parent's shape
            if not _glides(spec.joint):
                places[spec.parent].append(spec.at_parent.translation)
            if not _floats(spec.joint):
                places[spec.child] += [self.joints[spec.name].point, spec.at_child.translation]
        rods = [c for c in d.constraints if len(c.points) == 2]
        for rod in rods:
            for end, point in rod.points:
                places[end].append(np.array(point))
        self.anchors = _distinct(places.pop("ground"))
        for frame in d.frames:
            if frame.body in places:
                places[frame.body].append(frame.placement.translation)
        circles = {c.bodies[1]: c.circles for c in d.constraints if c.circles}
        bars: list[Bar] = []
        self.plates: dict[str, Array] = {}
        self.boxes: set[str] = set()
        for body in d.bodies:
            corners = _distinct(places[body.name])
            if body.name not in circles and len(corners) > 2:
                _, extents, _ = principal(corners)
                if extents[1] > FLAT * extents[0]:  # the corners are not on a line
                    self.plates[body.name] = corners
            lines = _round(circles[body.name]) if body.name in circles else _shape(body, places[body.name])
            if len(lines) == EDGES and len(corners) < 2:
                self.boxes.add(body.name)
            bars += [Bar(body.name, (body.name, a), (body.name, b)) for a, b in lines]
            for spec in d.joints:
                moves = spec.parent if spec.child == "ground" else spec.child
                if moves == body.name and _slides(spec):
                    parent, child = spec.at_parent.translation, self.joints[spec.name].point
                    bars.append(Bar(body.name, (spec.parent, parent), (spec.child, child), slides=True))
        for rod in rods:
            (first, p), (second, r) = rod.points
            bars.append(Bar(rod.name, (first, np.array(p)), (second, np.array(r))))
        self.bars = tuple(bars)
        self.owners = tuple(dict.fromkeys(bar.owner for bar in bars))
        body_colors = {body: PALETTE[k % len(PALETTE)] for k, body in enumerate(mechanism.bodies)}
        self.colors = {owner: body_colors.get(owner, PALETTE[0]) for owner in (*body_colors, *self.owners)}
        self.slender = frozenset(bar.owner for bar in self.bars if bar.slides)
        low, high = self.bounds(start_near(mechanism, None, {}, 0.0))
        self.size = float((high - low).max()) or 1.0

    def segments_flat(self, q: ArrayLike) -> Array:
        """Return the ends (..., S, 2, 3) of all bars in the world [m], in the order of `bars`.

        Parameters
        ----------
        q : (..., nq) configurations [rad, m]

        >>> import numpy as np
        >>> import sarrus
        >>> from sarrus.figures.skeleton import Skeleton
        >>> pendulum = sarrus.mechanisms.pendulum()
        >>> Skeleton(pendulum).segments_flat(np.zeros((50, 1))).shape
        (50, 1, 2, 3)
        """
        poses, lead = self._poses(q)
        ends = np.empty((*lead, len(self.bars), 2, 3))
        for k, bar in enumerate(self.bars):
            for end, (body, point) in enumerate((bar.first, bar.second)):
                ends[..., k, end, :] = moved(poses[body], point)
        return ends

    def segments(self, q: ArrayLike) -> dict[str, Array]:
        """Return the end points (..., k, 2, 3) of the k bars of each body or rod in the world [m].

        Parameters
        ----------
        q : (..., nq) configurations [rad, m]
        """
        ends, owners = self.segments_flat(q), np.array([bar.owner for bar in self.bars])
        return {owner: ends[..., owners == owner, :, :] for owner in self.owners}

    def joint_points(self, q: ArrayLike) -> dict[str, Array]:
        """Return the points of the joints in the world, joint to (..., 3) [m].

        Parameters
        ----------
        q : (..., nq) configurations [rad, m]
        """
        poses, _ = self._poses(q)
        return {name: moved(poses[place.body], place.point) for name, place in self.joints.items()}

    def joint_axis(self, q: ArrayLike, name: str) -> Array:
        """Return the axis of a joint in the world (..., 3), of unit length; NaN if it has no single axis.

        Parameters
        ----------
        q : (..., nq) configurations [rad, m]
        name : name of the joint
        """
        check_name("joint", name, self.joints)
        place = self.joints[name]
        poses, lead = self._poses(q)
        if place.axis is None:
            return np.full((*lead, 3), np.nan)
        return np.asarray(poses[place.body][..., :3, :3] @ place.axis)

    def _points(self, q: ArrayLike) -> Array:
        """Return the finite points of all bars, anchors and joints (k, 3) [m]."""
        shown = [self.segments_flat(q), self.anchors, *self.joint_points(q).values()]
        points: Array = np.concatenate([part.reshape(-1, 3) for part in shown])
        return points[np.isfinite(points).all(axis=1)]

    def bounds(self, q: ArrayLike) -> tuple[Array, Array]:
        """Return the lowest and highest corner (3,) of the box around bars, joints and anchors in all configurations [m].

        Parameters
        ----------
        q : (..., nq) configurations [rad, m]

        >>> import numpy as np
        >>> import sarrus
        >>> from sarrus.figures.skeleton import Skeleton
        >>> low, high = Skeleton(sarrus.mechanisms.pendulum(length=0.5)).bounds([[0.0], [-np.pi / 2]])
        >>> low.round(6).tolist(), high.round(6).tolist()
        ([0.0, 0.0, -0.5], [0.5, 0.0, 0.0])
        """
        points = self._points(q)
        return (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.zeros(3))

    def _poses(self, q: ArrayLike) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Return the poses (..., 4, 4) of the ground and of all bodies, and the leading axes of the configurations."""
        q = real_array("q", q)
        if q.ndim == 0 or q.shape[-1] != self.mechanism.nq:
            raise ShapeError(f"q has shape {q.shape}; its last axis must have nq = {self.mechanism.nq} coordinates")
        kinematics = self.mechanism.kinematics(q)
        # include the pose of the ground, because the ground may be the child of a loop joint
        ground = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
        poses = {"ground": ground, **{body: kinematics.pose(body) for body in self.mechanism.bodies}}
        return poses, q.shape[:-1]


def _place(spec: JointSpec) -> Place:
    at, (point, axis) = spec.at_child, spec.joint.pin
    return Place(spec.name, spec.kind, spec.child, at.apply(point), None if axis is None else at.rotation @ axis)


def _glides(joint: JointType) -> bool:
    """Return True if a joint translates along axes that rotate with it, as planar and free joints do."""
    return any(unit == "m" and not rate for (_, unit), rate in zip(joint.coordinates, joint.rates, strict=False))


def _floats(joint: JointType) -> bool:
    return joint.nv == 6 and _glides(joint)


def _slides(spec: JointSpec) -> bool:
    """Return True if a joint's places on its two bodies move apart, so that a bar connects them. Returns False if the motion is prescribed."""
    joint = spec.joint
    along = any(unit == "m" for _, unit in joint.coordinates) or not joint.whole_turns_return
    return along and not _glides(joint) and not spec.laws


Lines = list[tuple[Array, Array]]


def _shape(body: BodySpec, places: list[Array]) -> Lines:
    """Return bars between the places on a body."""
    points = _distinct(places)
    if len(points) == 1 and body.inertia.mass > 0:
        points = _distinct([*points, body.inertia.com])
    if len(points) < 2:
        return _box(body)
    middle, extents, axes = principal(points)
    flat = (points - middle) @ axes.T
    if extents[1] <= FLAT * extents[0]:
        order = np.argsort(flat[:, 0])
        return list(zip(points[order[:-1]], points[order[1:]], strict=True))
    if extents[2] > FLAT * extents[0]:
        return [(middle, point) for point in points]
    hull = _convex_hull(flat[:, :2])
    lines = [(points[a], points[b]) for a, b in zip(hull, np.roll(hull, -1), strict=True)]
    for point in np.delete(points, hull, axis=0):
        lines.append((point, points[hull][np.argmin(np.linalg.norm(points[hull] - point, axis=1))]))
    return lines


def principal(points: Array) -> tuple[Array, Array, Array]:
    """Return the middle of points (k, 3), and their extents (3,), largest first, along their principal axes (3, 3)."""
    middle = points.mean(axis=0)
    _, extents, axes = np.linalg.svd(points - middle)
    return middle, np.append(extents, np.zeros(3))[:3], axes


def moved(pose: Array, point: Array) -> Array:
    """Return points (..., 3) of a body in the world."""
    return np.asarray((pose[..., :3, :3] @ point[..., None])[..., 0] + pose[..., :3, 3])


def _distinct(points: list[Array]) -> Array:
    """Return points (k, 3) without duplicates."""
    kept: list[Array] = []
    near = SAME * max((float(np.abs(p).max()) for p in points), default=0.0)
    for point in points:
        if all(np.abs(point - other).max() > near for other in kept):
            kept.append(np.asarray(point))
    return np.array(kept).reshape(-1, 3)


def _convex_hull(points: Array) -> list[int]:
    """Return the corners of the hull of points (k, 2), counterclockwise (Andrew, Information Processing Letters 9, 1979)."""
    order = np.lexsort((points[:, 1], points[:, 0]))

    def chain(indices: NDArray[np.intp]) -> list[int]:
        corners: list[int] = []
        for k in indices:
            while len(corners) > 1:
                (ax, ay), (bx, by) = points[corners[-1]] - points[corners[-2]], points[k] - points[corners[-2]]
                if ax * by - ay * bx > 0.0:
                    break
                corners.pop()
            corners.append(int(k))
        return corners[:-1]

    return chain(order) + chain(order[::-1])


def _box(body: BodySpec) -> Lines:
    """Return the edges of the uniform box that has the body's inertia; no edges for a point mass."""
    mass = body.inertia.mass
    if mass <= 0:
        return []
    moments, axes = np.linalg.eigh(body.inertia.about_com)
    # half edges a of the box along the principal axes, from m a^2 / 3 = (sum of the three moments) / 2 - moment about the edge's axis
    half = np.sqrt(np.maximum(3.0 / mass * (moments.sum() / 2 - moments), 0.0))
    if half.max() == 0.0:
        return []
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    corners = body.inertia.com + (signs * half) @ axes.T
    pairs = itertools.combinations(range(8), 2)
    return [(corners[a], corners[b]) for a, b in pairs if (signs[a] != signs[b]).sum() == 1]


def _round(circles: Sequence[tuple[ArrayLike, ArrayLike, float]]) -> Lines:
    """Return the rims of circles; for a single circle, which represents a disc, also two diameters."""
    lines: Lines = []
    for center, normal, radius in circles:
        _, _, axes = np.linalg.svd(np.array(normal)[None])
        angle = np.linspace(0.0, 2 * np.pi, CORNERS + 1)[:, None]
        rim = center + radius * (np.cos(angle) * axes[1] + np.sin(angle) * axes[2])
        lines += itertools.pairwise(rim)
        if len(circles) == 1:
            lines += [(rim[k], rim[k + CORNERS // 2]) for k in (0, CORNERS // 4)]
    return lines
