"""Contact forces and joint wrenches along a motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from .. import _core
from .._arrays import Array, NDArray
from .._files import needed
from .._renamed import renamed_attribute
from .._showing import table
from ..analysis.actuation import JointWrenches
from ..errors import raise_no_such_name
from ..mechanism import Mechanism

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["ContactForces"]

FEATURES = 2**14  # largest number of features of a shape, as in cpp/contact/scene.hpp


class PlaneContact(NamedTuple):
    """A :class:`~sarrus.control.RigidContact` of a run, with the indices of its states in z."""

    frame: str
    on: str
    normal: tuple[float, float, float]  # unit vector in the axes of the frame `on`
    radius: float
    first: int
    states: int


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Active points of rigid contact at each sample, from :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>`; n points in all.

    Attributes
    ----------
    sample : (n,) index of the trajectory's sample; forces are those of the step before the sample
    shapes : n pairs (first, second) of names; for a :class:`~sarrus.control.RigidContact`, its frame and the frame of its plane
    bodies : n pairs (first, second) of names of the bodies of these shapes or frames
    id : (n,) identifier of a point, as in :class:`~sarrus.results.Contacts`; -1 - k for the k-th RigidContact
    position : (n, 3) position of the point in the world [m]; for shapes, at the middle of the step
    force : (n, 3) contact force on the first body, in the world, mean over the step [N]. If forces are indeterminate, as under four feet, they
        minimise the sum of squares, each weighted by the mean inverse effective mass of its point
    moment : (n, 3) moment of spinning and rolling friction on the first body, in the world [N m]
    natural_map : (samples,) residual of the contact conditions, as a velocity [m/s]
    left_out : number of active points that are not stored, summed over all samples, because there are more than eight times the number of
        shapes. Their forces act in the simulation, too
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
    def of(
        cls, mechanism: Mechanism, q: Array, z: Array, touching: Any, on_planes: Sequence[PlaneContact]
    ) -> ContactForces:
        """Return contact forces from the states of a simulation.

        Parameters
        ----------
        q : (samples, nq) configurations [rad, m]
        z : (samples, nz) internal states, impulses of contacts among them [N s]
        touching : layout of the contacts of shapes in z, as in :class:`~sarrus.Trajectory`
        on_planes : every RigidContact, with the indices of its states in z
        """
        sample, names, *rest = _core.contact_points(mechanism, q, z, touching, on_planes)
        shapes, pairs = mechanism.description.shapes, mechanism._may_touch
        body = {frame.name: frame.body for frame in mechanism.description.frames}
        ends: list[tuple[tuple[str, str], tuple[str, str]]] = []
        for k in names.tolist():
            if k < 0:
                frame, on = on_planes[-1 - k][:2]
                ends.append(((frame, on), (body.get(frame, frame), body.get(on, on))))
            else:
                first, second = (shapes[i] for i in (pairs[k // FEATURES].first, pairs[k // FEATURES].second))
                ends.append(((first.name, second.name), (first.body, second.body)))
        return cls(sample, tuple(shapes for shapes, _ in ends), tuple(bodies for _, bodies in ends), names, *rest)

    def by_pair(self, samples: int) -> dict[str, tuple[Array, Array]]:
        """Return position (samples, 3) [m] and force (samples, 3) [N] on the first body of each pair, by names such as ``"ball-floor"``.

        The force is the sum over all points of the pair. The position is the mean of the points, weighted by their forces. In samples without
        contact, the position is that of the previous contact, or of the first contact if there is none before.

        Parameters
        ----------
        samples : number of samples of the trajectory
        """
        pairs = np.array(["-".join(pair) for pair in self.shapes], dtype=object)
        sums: dict[str, tuple[Array, Array]] = {}
        for name in dict.fromkeys(pairs.tolist()):
            points = np.flatnonzero(pairs == name)
            at, push = self.sample[points], np.linalg.norm(self.force[points], axis=1)
            place, force, weight = np.zeros((samples, 3)), np.zeros((samples, 3)), np.zeros(samples)
            np.add.at(force, at, self.force[points])
            np.add.at(place, at, push[:, None] * self.position[points])
            np.add.at(weight, at, push)
            pressed = np.flatnonzero(weight > 0.0)
            place[pressed] /= weight[pressed, None]
            last = np.maximum(np.searchsorted(pressed, np.arange(samples), side="right") - 1, 0)
            sums[name] = place[pressed[last]], force
        return sums

    def wrenches(self, mechanism: Mechanism, q: Array) -> dict[str, Array]:
        """Return the wrench of all points on each moving body: name -> (samples, 6) [moment; force] at its origin, in its axes [N m, N].

        Parameters
        ----------
        mechanism : mechanism of the motion
        q : (samples, nq) configurations [rad, m]
        """
        sums: dict[str, Array] = {}
        bodies = np.array(self.bodies, dtype=object).reshape(-1, 2)
        for name in dict.fromkeys(bodies.ravel().tolist()):
            if name == "ground":
                continue
            X, total = mechanism.pose(q, name), np.zeros((len(q), 6))
            for end, sign in ((0, 1.0), (1, -1.0)):
                points = np.flatnonzero(bodies[:, end] == name)
                at, force = self.sample[points], self.force[points]
                moment = self.moment[points] + np.cross(self.position[points] - X[at, :3, 3], force)
                np.add.at(total, at, sign * np.concatenate([moment, force], axis=-1))
            turned = [np.einsum("nji,nj->ni", X[:, :3, :3], x) for x in (total[:, :3], total[:, 3:])]
            sums[name] = np.concatenate(turned, axis=-1)
        return sums


# ---- joint wrenches along a motion -----------------------------------------------------------------------------------


class PinLoad(NamedTuple):
    """Statistics of the force or moment of a joint along a motion.

    Attributes
    ----------
    joint, quantity, unit : name of the joint; "force" or "moment"; "N" or "N m"
    maximum, when : largest magnitude, in `unit`, and the time at which it occurs [s]
    mean, rms : mean and root mean square of the magnitude over time, in `unit`
    indeterminate : components that a rigid-body model does not determine, such as "y"; "" if there are none
    """

    joint: str
    quantity: str
    unit: str
    maximum: float
    when: float
    mean: float
    rms: float
    indeterminate: str

    def __getattr__(self, name: str) -> NoReturn:
        renamed_attribute(self, name)


class JointWrenchHistory(JointWrenches):
    """Wrenches (n, 6) of all joints along a motion, from :meth:`Trajectory.joint_wrenches`; ``print`` displays the `summary` as a table.

    Attributes
    ----------
    t : (n,) times of the samples [s]

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
        """Statistics of force and moment of every joint; determinate forces and moments that are zero up to rounding are omitted."""
        return tuple(self._summaries())

    def _summaries(self) -> Iterator[PinLoad]:
        kinds = (("force", "N", slice(3, 6)), ("moment", "N m", slice(0, 3)))
        norm = np.linalg.norm
        sizes = {(name, kind): norm(x[:, part], axis=1) for name, x in self.items() for kind, _, part in kinds}
        largest = max((float(np.nanmax(size, initial=0.0)) for size in sizes.values()), default=0.0)
        sizes = {key: np.where(size > 1e-12 * largest, size, 0.0 * size) for key, size in sizes.items()}
        for name in self:
            for kind, unit, _ in kinds:
                size = sizes[name, kind]
                k = int(np.nanargmax(np.append(size, -1.0)))
                loose = "".join(x.split()[1] for x in self.indeterminate.get(name, ()) if x.startswith(kind))
                if k == len(size) or (size[k] == 0.0 and not loose):
                    continue
                mean, rms = self._mean(size), float(np.sqrt(self._mean(size**2)))
                yield PinLoad(name, kind, unit, float(size[k]), float(self.t[k]), mean, rms, loose)

    def _mean(self, size: Array) -> float:
        """Return the mean over time by the trapezoidal rule, because samples may not be evenly spaced."""
        finite = np.isfinite(size)
        t, y = self.t[finite], size[finite]
        if len(t) < 2 or t[-1] == t[0]:
            return float(y.mean()) if len(y) else np.nan
        return float(((y[1:] + y[:-1]) / 2.0 * np.diff(t)).sum() / (t[-1] - t[0]))

    def __str__(self) -> str:
        rows = self.summary
        wide = max([len("joint"), *(len(row.joint) for row in rows)])
        head = f"{'joint':<{wide}}  {'':<6}  {'maximum':>10}  {'at t [s]':>9}  {'mean':>10}  {'rms':>10}"
        over = np.ptp(self.t) if len(self.t) else 0.0
        lines = [f"Joint wrenches of '{self._at[0].name}' over {over:.6g} s", head]
        for row in rows:
            numbers = f"{row.maximum:>10.4g}  {row.when:>9.4g}  {row.mean:>10.4g}  {row.rms:>10.4g}  {row.unit:<3}"
            loose = f"  not unique: {' '.join(row.indeterminate)}" if row.indeterminate else ""
            lines.append(f"{row.joint:<{wide}}  {row.quantity:<6}  {numbers}{loose}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for r in self.summary:
            numbers = [f"{x:.4g}" for x in (r.maximum, r.when, r.mean, r.rms)]
            rows.append((r.joint, r.quantity, *numbers, r.unit, " ".join(r.indeterminate)))
        return table(rows, "Joint wrenches", ("", "", "maximum", "at t [s]", "mean", "rms", "", "not unique"))

    def to_dataframe(self, *, samples: bool = False) -> pandas.DataFrame:
        """Return the summary as a table, or a table of all samples. Needs pandas.

        Parameters
        ----------
        samples : False returns a row for each entry of `summary`. True returns a row for each sample, with columns ``t [s]``,
            ``wrench:pin:0 [N m]`` to ``wrench:pin:5 [N]`` for joint "pin" and, for motors and prescribed motions, ``effort:motor [N m]``
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
        """Plot the force perpendicular to a joint's axis in polar coordinates, in the joint's frame on the child [N]. Needs matplotlib.

        The diagram displays whether the load of a bearing has a fixed direction in the child, or rotates. For joints without an axis, the plane is
        the frame's x-y plane.

        Parameters
        ----------
        joint : name or names of joints
        ax : polar axes of matplotlib; default: a new figure

        Raises
        ------
        NameNotFoundError
            The motion has no wrench of a joint with this name.
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
        """Return two unit vectors perpendicular to the joint's axis, in the joint's frame.

        These are axes of the frame if the joint's axis is an axis of the frame.
        """
        mechanism = self._at[0]
        axis = mechanism.joint(name).type.pin[1] if name in mechanism._joints else None
        if axis is None:
            axis = np.array([0.0, 0.0, 1.0])
        along = int(np.abs(axis).argmax())
        x = np.eye(3)[(along + 1) % 3]
        x = x - (x @ axis) * axis
        x /= np.linalg.norm(x)
        return x, np.cross(axis, x)
