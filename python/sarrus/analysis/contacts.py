"""Where a mechanism's shapes touch, or come near each other, in a state."""

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
    """Points in which shapes touch or come near each other: answer of :meth:`sarrus.Mechanism.contacts`.

    Attributes
    ----------
    position : (n, 3) midway between both surfaces, in the world [m]
    normal : (n, 3) unit, in the world; it pushes the first shape away from the second
    distance : (n,) between the surfaces along it; negative: sunk in [m]
    shapes, bodies : n pairs of names, first and second
    id : (n,) of a point, the same as long as the same features of the same shapes touch
    friction, restitution, torsional_friction, rolling_friction : (n,) of the pair
    state : (n,) which of a batch's states, counted over all its axes
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
    """Pairs of its shapes."""
    return touching_pairs(robot.description)


def touching(robot: LoopFunctions) -> tuple[_core.Scene, list[str], list[Pair]]:
    """The core's scene of its shapes, the bodies whose poses that takes, and the pairs that may touch."""
    pairs: list[Pair] = robot._may_touch  # type: ignore[attr-defined]  # Mechanism has it
    terms, bodies = scene(robot.description, robot._solids, pairs)  # type: ignore[attr-defined]
    return _core.Scene(*terms), bodies, pairs


def overlapping(robot: LoopFunctions, q: Array) -> Iterator[str]:
    """A sentence where shapes that may touch are sunk into each other at home."""
    if not robot.description.shapes or told_by_file(robot.description):
        return
    here = contacts(robot, q)
    size = {spec.name: spec.shape._reach for spec in robot.description.shapes}

    def rounds(pair: tuple[str, str]) -> float:
        """What rounding may sink two of them in by: of points as much as of what they touch, of their place if that has no size either."""
        sizes = [x for x in (size[name] for name in pair) if 0.0 < x < np.inf]
        return OVERLAP * min(sizes, default=robot._length)

    pairs = dict.fromkeys(pair for pair, d in zip(here.shapes, here.distance, strict=True) if d < -rounds(pair))
    if pairs:
        listed = ", ".join(f"'{one}' and '{other}'" for one, other in list(pairs)[:4]) + " …" * (len(pairs) > 4)
        yield f"shapes overlap at home: {listed}. Builder.set_contact(one, other, enabled=False) lets them"


def contacts(self: LoopFunctions, q: ArrayLike, *, within: float = 0.0) -> Contacts:
    """Where shapes touch: at most four points of each pair that may (:meth:`~sarrus.Builder.add_shape`, :meth:`~sarrus.Builder.set_contact`).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m, quaternions (x, y, z, w)]
    within : how far apart they may be [m]

    Returns
    -------
    Contacts, state by state and pair by pair

    Raises
    ------
    ModelError
        Shapes may touch of which it is not known where: a cylinder and a box, say.
    ShapeError, StateError
        q has another size, or is not finite.
    TypeError, ValueError
        `within` is no number, or not finite.

    Notes
    -----
    Distances are exact, but where a side of a box stands for an edge that leans by less than 0.01 rad: there they are off by 5e-5 of
    themselves. Of two boxes that are sunk deeply into each other they are those of the corners of what overlaps, which may be less than the way
    out. A cylinder on a plane touches in points of its rims.

    References
    ----------
    Gottschalk, Lin and Manocha 1996 (two boxes: fifteen axes); Sutherland and Hodgman 1974 (what two sides share).

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.shapes import Plane, Sphere
    >>> b = sarrus.mechanisms.pendulum().to_builder()
    >>> b.add_shape("bob", Sphere(0.1), (0, 0, -1), name="ball")
    >>> b.add_shape("ground", Plane(), (0, 0, -1.2), name="floor")
    >>> found = b.build().contacts([0.0], within=0.2)
    >>> found.shapes, found.distance.round(9), found.normal
    ((('ball', 'floor'),), array([0.1]), array([[0., 0., 1.]]))
    """
    reach = checked_number("within", within, "")
    core, bodies, pairs = self._touching  # type: ignore[attr-defined]  # Mechanism has it
    shapes = self.description.shapes
    one = self.pose(q, "ground")  # also of robots without shapes: q is looked at
    poses = np.stack([self.pose(q, body) for body in bodies], axis=-3) if bodies else one[..., None, :, :]
    state, pair, name, position, normal, distance = core.touching(poses.reshape(-1, *poses.shape[-3:]), reach)
    known = [pairs[k] for k in pair.tolist()]
    ends = [(shapes[k.first], shapes[k.second]) for k in known]
    numbers = {name: np.array([getattr(k, name) for k in known]) for name in COEFFICIENTS}
    return Contacts(
        position, normal, distance,
        tuple((a.name, b.name) for a, b in ends), tuple((a.body, b.body) for a, b in ends), name,
        state=state, **numbers,
    )  # fmt: skip
