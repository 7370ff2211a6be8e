"""What the joints carry along a motion: how much at most, when, and in which directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Array
from .._files import needed
from .._showing import table
from ..analysis.actuation.joint_wrenches import JointWrenches
from ..errors import raise_no_such_name

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


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
        from ..figures.figures import of_effort
        from .storage import wrench_columns

        if not samples:
            return pandas.DataFrame(self.summary, columns=PinLoad._fields)
        table = {"t [s]": self.t}
        for name, wrench in self.items():
            table |= zip(wrench_columns(name), wrench.T, strict=True)
        for name, u in self.efforts.items():
            table |= {f"effort:{label} [{unit}]": x for label, unit, x in of_effort(self._at[0], name, u)}
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
