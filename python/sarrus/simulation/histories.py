"""Contact forces and joint wrenches along a motion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Array, NDArray
from .._files import needed
from .._showing import table
from ..analysis.actuation.joint_wrenches import JointWrenches
from ..errors import raise_no_such_name
from ..mechanism import Mechanism

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

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


# ---- joint wrenches along a motion -----------------------------------------------------------------------------------


class PinLoad(NamedTuple):
    """How large a force or moment of a joint is along a motion.

    Attributes
    ----------
    joint, quantity, unit : whose; "force" or "moment", "N" or "N m"
    maximum, when : its largest size, and the time of it [s]
    mean, rms : over time, of its size
    not_unique : its components that no rigid-body model determines, such as "y"; "" where there are none
    """

    joint: str
    quantity: str
    unit: str
    maximum: float
    when: float
    mean: float
    rms: float
    not_unique: str


class JointWrenchHistory(JointWrenches):
    """Wrenches (n, 6) of all joints along a motion, made by :meth:`Trajectory.joint_wrenches`; printed, a table.

    Attributes
    ----------
    t : (n,) [s]

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> loads = sarrus.simulate(robot, [0.5], [0.0], 2.0).joint_wrenches()
    >>> pivot = loads.summary[0]
    >>> pivot.joint, pivot.quantity, round(pivot.maximum, 2), pivot.unit
    ('pivot', 'force', 24.42, 'N')
    """

    t: Array

    def __init__(self, loads: JointWrenches, t: Array) -> None:
        super().__init__(dict(loads), loads.efforts, loads._at)
        self.t = t

    def __reduce__(self) -> tuple[type[JointWrenchHistory], tuple[JointWrenches, Array]]:
        return JointWrenchHistory, (JointWrenches(dict(self), self.efforts, self._at), self.t)

    @property
    def summary(self) -> tuple[PinLoad, ...]:
        """Force and moment of every joint; what is nothing but rounding is left out, unless it is not unique."""
        return tuple(self._summaries())

    def _summaries(self) -> Iterator[PinLoad]:
        kinds = (("force", "N", slice(3, 6)), ("moment", "N m", slice(0, 3)))
        sizes = {
            (name, kind): np.linalg.norm(x[:, part], axis=1) for name, x in self.items() for kind, _, part in kinds
        }
        largest = max((float(np.nanmax(size, initial=0.0)) for size in sizes.values()), default=0.0)
        sizes = {which: np.where(size > 1e-12 * largest, size, 0.0 * size) for which, size in sizes.items()}
        for name in self:
            for kind, unit, _ in kinds:
                size = sizes[name, kind]
                k = int(np.nanargmax(np.append(size, -1.0)))
                loose = "".join(x.split()[1] for x in self.not_unique.get(name, ()) if x.startswith(kind))
                if k == len(size) or (size[k] == 0.0 and not loose):
                    continue
                mean, rms = self._mean(size), float(np.sqrt(self._mean(size**2)))
                yield PinLoad(name, kind, unit, float(size[k]), float(self.t[k]), mean, rms, loose)

    def _mean(self, size: Array) -> float:
        """Over time, by trapezia: samples need not be evenly spaced."""
        known = np.isfinite(size)
        t, y = self.t[known], size[known]
        if len(t) < 2 or t[-1] == t[0]:
            return float(y.mean()) if len(y) else np.nan
        return float(((y[1:] + y[:-1]) / 2.0 * np.diff(t)).sum() / (t[-1] - t[0]))

    def __str__(self) -> str:
        rows = self.summary
        wide = max([len("joint"), *(len(row.joint) for row in rows)])
        head = f"{'joint':<{wide}}  {'':<6}  {'maximum':>10}  {'at t [s]':>9}  {'mean':>10}  {'rms':>10}"
        over = np.ptp(self.t) if len(self.t) else 0.0
        lines = [f"What the joints of '{self._at[0].name}' carry over {over:.6g} s", head]
        for row in rows:
            numbers = f"{row.maximum:>10.4g}  {row.when:>9.4g}  {row.mean:>10.4g}  {row.rms:>10.4g}  {row.unit:<3}"
            loose = f"  not unique: {' '.join(row.not_unique)}" if row.not_unique else ""
            lines.append(f"{row.joint:<{wide}}  {row.quantity:<6}  {numbers}{loose}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for r in self.summary:
            numbers = [f"{x:.4g}" for x in (r.maximum, r.when, r.mean, r.rms)]
            rows.append((r.joint, r.quantity, *numbers, r.unit, " ".join(r.not_unique)))
        return table(rows, "What joints carry", ("", "", "maximum", "at t [s]", "mean", "rms", "", "not unique"))

    def to_dataframe(self, *, samples: bool = False) -> pandas.DataFrame:
        """The summary as a table; or of all samples ``t [s]``, wrenches, and what motors and prescribed motions do. Needs pandas.

        Parameters
        ----------
        samples : whether there is a row per sample, with columns ``wrench:pin:0 [N m]`` to ``wrench:pin:5 [N]`` and ``effort:motor [N m]``
        """
        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        from ..figures.figures import effort_curves
        from .storage import wrench_columns

        if not samples:
            return pandas.DataFrame(self.summary, columns=PinLoad._fields)
        table = {"t [s]": self.t}
        for name, wrench in self.items():
            table |= zip(wrench_columns(name), wrench.T, strict=True)
        for name, u in self.efforts.items():
            table |= {f"effort:{label} [{unit}]": x for label, unit, x in effort_curves(self._at[0], name, u)}
        return pandas.DataFrame(table)

    def polar(self, joint: str | Sequence[str], ax: Axes | None = None) -> Axes:
        """Draw the force across a joint's axis as its tip moves about the pin, in the joint's frame on the child [N]. Needs matplotlib.

        What a bearing feels: where the load stands on the pin, and where it goes round. Joints without an axis have the plane of the
        frame's x and y.

        Parameters
        ----------
        joint : a name or several
        ax : polar axes; default: a new figure

        Raises NameNotFoundError where a joint of that name carries nothing.
        """
        from ..figures import canvas

        names = [joint] if isinstance(joint, str) else list(joint)
        curves = {}
        for name in names:
            if name not in self:
                raise_no_such_name("joint", name, self)
            x, y = self._across(name)
            force = self[name][:, 3:]
            curves[name] = np.arctan2(force @ y, force @ x), np.hypot(force @ x, force @ y)
        return canvas.polar(curves, "force across the axis [N]", ax)

    def _across(self, name: str) -> tuple[Array, Array]:
        """Two unit vectors across the joint's axis, in its frame: the frame's own where the axis is one of them."""
        robot = self._at[0]
        axis = robot.joint(name).type.pin[1] if name in robot._joints else None
        if axis is None:
            axis = np.array([0.0, 0.0, 1.0])
        along = int(np.abs(axis).argmax())
        x = np.eye(3)[(along + 1) % 3]
        x = x - (x @ axis) * axis
        x /= np.linalg.norm(x)
        return x, np.cross(axis, x)
