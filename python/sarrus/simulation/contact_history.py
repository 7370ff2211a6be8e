"""Forces of rigid contact along a motion, of shapes and of points on planes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Array, NDArray
from ..mechanism import Mechanism

__all__ = ["ContactForces"]

BEFORE = 2  # as in cpp/elements/shape_contacts.hpp
FEATURES = 2**14  # as in cpp/contact/scene.hpp


class PlaneContact(NamedTuple):
    """A :class:`~sarrus.control.RigidContact` of a run, and where its states are in z."""

    frame: str
    on: str
    normal: tuple[float, float, float]  # in the axes of `on`
    radius: float
    first: int
    states: int


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Points that press in rigid contact, sample by sample: :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>`.

    Attributes
    ----------
    sample : (n,) of the trajectory; forces are those of the step that leads to it
    shapes, bodies : n pairs of names, first and second; of a :class:`~sarrus.control.RigidContact` its frame and what it is on
    id : (n,) of a point, as in :class:`~sarrus.results.Contacts`; of the k-th RigidContact -1 - k
    position : (n, 3) in the world, of shapes in the middle of the step [m]
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

    @classmethod
    def of_planes(cls, robot: Mechanism, q: Array, z: Array, planes: Iterable[PlaneContact]) -> list[ContactForces]:
        """Of points and spheres on planes each, from their states in the configurations q (samples, nq)."""
        body = {frame.name: frame.body for frame in robot.description.frames}
        each: list[ContactForces] = []
        for k, (frame, on, normal, radius, first, size) in enumerate(planes):
            (sample,) = np.nonzero(z[:, first] > 0.0)
            n, states = len(sample), z[sample, first : first + size]
            axes = _contact_axes(robot.pose(q[sample], on)[:, :3, :3] @ np.array(normal))
            place = robot.pose(q[sample], frame)[:, :3, 3] - radius * axes[:, 0]
            force = np.einsum("ni,nij->nj", states[:, :3], axes)
            moment = np.einsum("ni,nij->nj", states[:, 4:7], axes) if size > 4 else np.zeros((n, 3))
            names, bodies = (frame, on), (body.get(frame, frame), body.get(on, on))
            each.append(
                cls(sample, (names,) * n, (bodies,) * n, np.full(n, -1 - k), place, force, moment, z[:, first + 3], 0)
            )
        return each

    @classmethod
    def together(cls, parts: list[ContactForces]) -> ContactForces:
        """All parts, sample by sample."""
        if len(parts) == 1:
            return parts[0]
        sample = np.concatenate([part.sample for part in parts])
        order = np.argsort(sample, kind="stable")
        shapes, bodies = (
            [pair for part in parts for pair in part.shapes],
            [pair for part in parts for pair in part.bodies],
        )
        names = np.concatenate([part.id for part in parts])
        position, force, moment = (
            np.concatenate([getattr(part, name) for part in parts])[order] for name in ("position", "force", "moment")
        )
        off: Array = np.max([part.natural_map for part in parts], axis=0)
        return cls(
            sample[order], tuple(shapes[k] for k in order), tuple(bodies[k] for k in order), names[order], position, force, moment,
            off, sum(part.left_out for part in parts),
        )  # fmt: skip

    def by_pair(self, samples: int) -> dict[str, tuple[Array, Array]]:
        """Sum of the points of each pair that presses, ``"ball-floor"`` -> (samples, 3) where, and (samples, 3) the force on the first [m, N].

        Where is the mean of the points, by their forces; while nothing presses, where it did last, or will first.
        """
        pairs = np.array(["-".join(pair) for pair in self.shapes], dtype=object)
        sums: dict[str, tuple[Array, Array]] = {}
        for name in dict.fromkeys(pairs.tolist()):
            those = np.flatnonzero(pairs == name)
            at, push = self.sample[those], np.linalg.norm(self.force[those], axis=1)
            place, force, weight = np.zeros((samples, 3)), np.zeros((samples, 3)), np.zeros(samples)
            np.add.at(force, at, self.force[those])
            np.add.at(place, at, push[:, None] * self.position[those])
            np.add.at(weight, at, push)
            pressed = np.flatnonzero(weight > 0.0)
            place[pressed] /= weight[pressed, None]
            last = np.maximum(np.searchsorted(pressed, np.arange(samples), side="right") - 1, 0)
            sums[name] = place[pressed[last]], force
        return sums

    def wrenches(self, robot: Mechanism, q: Array) -> dict[str, Array]:
        """Sum of all points on each body but the ground: name -> (samples, 6) [moment; force] at its origin, in its axes [N m, N]."""
        sums: dict[str, Array] = {}
        bodies = np.array(self.bodies, dtype=object).reshape(-1, 2)
        for name in dict.fromkeys(bodies.ravel().tolist()):
            if name == "ground":
                continue
            X, total = robot.pose(q, name), np.zeros((len(q), 6))
            for end, sign in ((0, 1.0), (1, -1.0)):
                those = np.flatnonzero(bodies[:, end] == name)
                at, force = self.sample[those], self.force[those]
                moment = self.moment[those] + np.cross(self.position[those] - X[at, :3, 3], force)
                np.add.at(total, at, sign * np.concatenate([moment, force], axis=-1))
            turned = [np.einsum("nji,nj->ni", X[:, :3, :3], x) for x in (total[:, :3], total[:, 3:])]
            sums[name] = np.concatenate(turned, axis=-1)
        return sums


def _contact_axes(normal: Array) -> Array:
    """Normals (n, 3) and the tangents that belong to them, rows of (n, 3, 3), as cpp/contact/point.hpp has them."""
    start = np.where(np.abs(normal[:, :1]) > 0.9, [0.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    across = start - np.sum(start * normal, axis=1, keepdims=True) * normal
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.stack([normal, across, np.cross(normal, across)], axis=1)
