"""What shapes do to each other along a motion with rigid contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Array, NDArray
from ..mechanism import Mechanism

__all__ = ["ContactForces"]

BEFORE = 2  # as in cpp/elements/shape_contacts.hpp
FEATURES = 2**14  # as in cpp/contact/scene.hpp


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Points in which shapes press on each other, sample by sample: :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>`.

    Attributes
    ----------
    sample : (n,) of the trajectory; what is told there is of the step that leads to it
    shapes, bodies : n pairs of names, first and second
    id : (n,) of a point, as in :class:`~sarrus.results.Contacts`
    position : (n, 3) in the world [m]
    force : (n, 3) on the first body, in the world: the mean of the step [N]. Where forces are not unique, as under four feet, they are the least
        ones of those that make this motion, by the sum of squares, each times the mean inverse mass that its point feels
    moment : (n, 3) on the first body besides, of friction against spinning and rolling [N m]
    natural_map : (samples,) how far the conditions of contact are off, as a velocity [m/s]
    left_out : how many points more press than are kept: over eight a shape. They act as the others do
    """

    sample: NDArray[np.int64]
    shapes: tuple[tuple[str, str], ...]
    bodies: tuple[tuple[str, str], ...]
    id: NDArray[np.int64]
    position: Array
    force: Array
    moment: Array
    natural_map: Array
    left_out: int

    @classmethod
    def of_states(cls, robot: Mechanism, z: Array, kept: int) -> ContactForces:
        """From what runs keep of it (samples, BEFORE + numbers of each point kept)."""
        known, pairs = robot.description.shapes, robot._may_touch
        pressing = z[:, 1].astype(int)
        points = z[:, BEFORE:].reshape(len(z), kept, -1)
        there = np.arange(kept) < pressing[:, None]
        rows = points[there]
        name = rows[:, 0].astype(np.int64)
        ends = [(known[pairs[k].first], known[pairs[k].second]) for k in (name // FEATURES).tolist()]
        return cls(
            np.nonzero(there)[0], tuple((a.name, b.name) for a, b in ends), tuple((a.body, b.body) for a, b in ends), name,
            rows[:, 4:7], rows[:, 1:4], rows[:, 7:] if rows.shape[1] > 7 else np.zeros_like(rows[:, 1:4]), z[:, 0], int(np.maximum(pressing - kept, 0).sum()),
        )  # fmt: skip
