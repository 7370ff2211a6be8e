"""Contact points of a mechanism's collision shapes in a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_number
from ..description.contacts import COEFFICIENTS, OVERLAP, Pair, scene, told_by_file, touching_pairs
from ..dynamics.loop_operations import LoopFunctions


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contact points of collision shapes that touch, overlap or are close: the result of :meth:`sarrus.Mechanism.contacts`.

    Attributes
    ----------
    position : (n, 3) midpoint between the surfaces of the two shapes, in the world [m]
    normal : (n, 3) unit vector from the second shape to the first, in the world (dimensionless)
    distance : (n,) distance between the surfaces along the normal [m]; negative for penetration
    shapes, bodies : n pairs (first, second) of names
    id : (n,) integer identifier of a point; it does not change while the same features (faces, edges, corners) of the same shapes touch
    friction, restitution : (n,) coefficients of the pair (dimensionless)
    torsional_friction, rolling_friction : (n,) largest friction moments of the pair per normal force [m]
    state : (n,) index of the state in the flattened batch
    """

    position: Array
    normal: Array
    distance: Array
    shapes: tuple[tuple[str, str], ...]
    bodies: tuple[tuple[str, str], ...]
    id: NDArray[np.int64]
    friction: Array
    restitution: Array
    state: NDArray[np.int64]
    torsional_friction: Array
    rolling_friction: Array


def may_touch(robot: LoopFunctions) -> list[Pair]:
    """Return the pairs of the mechanism's shapes that may touch."""
    return touching_pairs(robot.description)


def touching(robot: LoopFunctions) -> tuple[_core.Scene, list[str], list[Pair]]:
    """Return the core's scene of the shapes, the bodies whose poses it expects, and the pairs that may touch."""
    pairs: list[Pair] = robot._may_touch  # type: ignore[attr-defined]  # Mechanism has it
    terms, bodies = scene(robot.description, robot._solids, pairs)  # type: ignore[attr-defined]
    return _core.Scene(*terms), bodies, pairs


def overlapping(robot: LoopFunctions, q: Array) -> Iterator[str]:
    """Yield a warning if, in the home configuration q, two shapes overlap that may touch."""
    if not robot.description.shapes or told_by_file(robot.description):
        return
    home_contacts = contacts(robot, q)
    size = {spec.name: spec.shape._reach for spec in robot.description.shapes}

    def rounds(pair: tuple[str, str]) -> float:
        """Return the overlap of two shapes [m] that counts as rounding, relative to the smaller shape, or to the mechanism if both are unbounded."""
        sizes = [x for x in (size[name] for name in pair) if 0.0 < x < np.inf]
        return OVERLAP * min(sizes, default=robot._length)

    pairs = dict.fromkeys(
        pair for pair, d in zip(home_contacts.shapes, home_contacts.distance, strict=True) if d < -rounds(pair)
    )
    if pairs:
        listed = ", ".join(f"'{first}' and '{second}'" for first, second in list(pairs)[:4]) + " …" * (len(pairs) > 4)
        yield f"shapes overlap at home: {listed}. Builder.set_contact(first, second, enabled=False) allows it"


def contacts(self: LoopFunctions, q: ArrayLike, *, within: float = 0.0) -> Contacts:
    """Return the contact points of collision shapes: at most four for each pair that may touch.

    Shapes are added by :meth:`~sarrus.Builder.add_shape`; :meth:`~sarrus.Builder.set_contact` selects pairs.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m, quaternions (x, y, z, w)]
    within : largest distance between the surfaces at a returned point [m]; the default 0 returns points of surfaces that touch or overlap

    Returns
    -------
    Contacts, ordered by state, then by pair

    Raises
    ------
    ModelError
        The contact points of a pair that may touch are not implemented, such as a cylinder and a box.
    ShapeError, StateError
        q does not have nq entries in its last axis, or is not finite.
    TypeError, ValueError
        `within` is not a number, or not finite.

    Notes
    -----
    Distances are exact, with two exceptions:

    - an edge at an angle of less than 0.01 rad to a face is treated as parallel to it, with a relative error of 5e-5
    - if two boxes overlap deeply, the distances are those of the corners of the overlap, which may be less than the displacement that
      separates the boxes

    The contact points of a cylinder on a plane are on its rims.

    References
    ----------
    Gottschalk, Lin and Manocha 1996 (two boxes: fifteen axes); Sutherland and Hodgman 1974 (overlap of two faces).

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.shapes import Plane, Sphere
    >>> b = sarrus.mechanisms.pendulum().to_builder()
    >>> b.add_shape("bob", Sphere(0.1), (0, 0, -1), name="ball")
    >>> b.add_shape("ground", Plane(), (0, 0, -1.2), name="floor")
    >>> points = b.build().contacts([0.0], within=0.2)
    >>> points.shapes, points.distance.round(9), points.normal
    ((('ball', 'floor'),), array([0.1]), array([[0., 0., 1.]]))
    """
    reach = checked_number("within", within, "")
    core, bodies, pairs = self._touching  # type: ignore[attr-defined]  # Mechanism has it
    shapes = self.description.shapes
    ground_pose = self.pose(q, "ground")  # also checks q of robots without shapes
    poses = np.stack([self.pose(q, body) for body in bodies], axis=-3) if bodies else ground_pose[..., None, :, :]
    state, pair, name, position, normal, distance = core.touching(poses.reshape(-1, *poses.shape[-3:]), reach)
    point_pairs = [pairs[k] for k in pair.tolist()]
    ends = [(shapes[k.first], shapes[k.second]) for k in point_pairs]
    numbers = {name: np.array([getattr(k, name) for k in point_pairs]) for name in COEFFICIENTS}
    return Contacts(
        position, normal, distance,
        tuple((a.name, b.name) for a, b in ends), tuple((a.body, b.body) for a, b in ends), name,
        state=state, **numbers,
    )  # fmt: skip
