"""Result of :func:`~sarrus.simulate_many`: the trajectories of many runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, checked_count, checked_path
from .._core import Status
from .._files import needed, replacing
from .._renamed import renamed_arguments, renamed_attribute
from .._showing import table
from ..mechanism import Mechanism, checked_mechanism
from ..variants import Variants
from . import storage
from .histories import PlaneContact
from .limits import Limit
from .setup import plane_contacts, touching_states
from .trajectory import Trajectory

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from .sweep import RunForces


def status_name(status: int) -> str:
    """Return the name of a run's status, such as "no convergence"."""
    return "finished" if status == Status.FINISHED else Status(status).name.lower().replace("_", " ")


class Sweep:
    """Results of many runs of one or several mechanisms.

    Unpack the arrays by ``t, q, v, status = runs``. ``runs[3]`` is the fourth run as a :class:`Trajectory`.

    Attributes
    ----------
    t : (n,) sample times of all runs [s]
    q, v : (runs, n, nq), (runs, n, nv) configuration and velocity [rad, m; rad/s, m/s]; NaN after a run that ended early
    internal_state : (runs, n, nz) internal states of force elements, current values of sampled controllers, and revolutions of loop joints; see
        :class:`Trajectory`
    status : (runs,) int8, the :class:`~sarrus.results.Status` of each run
    limits : tuple of :class:`~sarrus.simulation.limits.Limit`, the limits of the (first) mechanism's joints, in the order of `excess`
    excess : (runs, limits) largest violation of each limit, positive above the upper and negative below the lower limit, 0 without violation
        [rad, m; rad/s, m/s; N m, N]; NaN for failed runs
    stiffness : (runs,) largest |lambda| dt, for eigenvalues lambda of small motions under the applied forces (dimensionless); 0 for implicit steps,
        NaN for failed runs
    efforts : (runs, n, nv) efforts of a policy [N m, N], constant from each sample to the next; None without a policy

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> runs = sarrus.simulate_many(robot, np.linspace(0.1, 0.4, 4)[:, None], [0.0], 1.0, every=100)
    >>> runs
    <Sweep of 'pendulum': 4 runs, 11 samples over 1 s, all finished>
    >>> runs[3]
    Trajectory of 'pendulum': 11 samples over 1 s, rk4, finished
    >>> len(runs[1:3])
    2
    """

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    @renamed_arguments(z="internal_state")
    def __init__(
        self, mechanism: Mechanism | Variants, t: Array, q: Array, v: Array, status: NDArray[np.int8], *, internal_state: Array, limits:
        Sequence[Limit] = (), excess: Array | None = None, stiffness: Array | None = None, efforts: Array | None = None, counted: int = 0,
        mechanisms: Sequence[Mechanism] | Variants | None = None, acting: RunForces | Sequence[RunForces] | None = None,
    ) -> None:  # fmt: skip
        self._mechanism, self.t, self.q, self.v, self.status = mechanism, t, q, v, status
        self.internal_state = internal_state
        self.limits, self.efforts, self._counted = tuple(limits), efforts, counted
        self._mechanisms = mechanisms if mechanisms is None or isinstance(mechanisms, Variants) else list(mechanisms)
        self._acting = acting
        self.excess = np.full((len(q), len(self.limits)), np.nan) if excess is None else excess
        self.stiffness = np.full(len(q), np.nan) if stiffness is None else stiffness

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of all runs; if the mechanisms differ, that of the first run."""
        if isinstance(self._mechanism, Variants):
            self._mechanism = self._mechanism[0]
        return cast(Mechanism, self._mechanism)

    @property
    def mechanisms(self) -> Sequence[Mechanism] | None:
        """(runs,) mechanism of each run; None if all runs have the same mechanism."""
        # a list, so that each mechanism is created only once, because this takes time
        if isinstance(self._mechanisms, Variants):
            self._mechanisms = list(self._mechanisms)
        return self._mechanisms

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the arrays t, q, v and status."""
        return iter((self.t, self.q, self.v, self.status))

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.q)

    def __getitem__(self, index: Any) -> Any:
        """Return a single run as a :class:`Trajectory` up to its end; for a slice, indices or a mask, return a Sweep of these runs."""
        if isinstance(index, (slice, np.ndarray, list)):
            arrays = ("q", "v", "status", "internal_state", "excess", "stiffness")
            subset = {name: getattr(self, name)[index] for name in arrays}
            subset["efforts"] = None if self.efforts is None else self.efforts[index]
            each = self._mechanisms
            subset["mechanisms"] = (
                each[np.arange(len(self))[index]] if isinstance(each, Variants) else _subset(each, index)
            )
            return Sweep(**self._fields() | subset, acting=_subset(self._acting, index))
        try:
            i = range(len(self))[index]
        except IndexError:
            raise IndexError(f"index {index!r} is out of range: there are {len(self)} runs") from None
        lost = np.isnan(self.q[i]).any(axis=1)
        n = int(lost.argmax()) if lost.any() else len(lost)
        t, q, v, z = self.t[:n], self.q[i, :n], self.v[i, :n], self.internal_state[i, :n]
        efforts = friction = method = touching = None
        on_planes: tuple[PlaneContact, ...] = ()
        mechanism = self.mechanism if self._mechanisms is None else self._mechanisms[i]
        acting = self._acting[i] if isinstance(self._acting, Sequence) else self._acting
        if acting is not None:
            acting = acting.for_run(i, mechanism)
            method, core = acting.setup.method, acting.setup.core()
            touching, on_planes = touching_states(core), plane_contacts(acting.setup, core)
            policy_efforts = None if self.efforts is None else self.efforts[i, :n]
            efforts = partial(acting.efforts, i, policy_efforts)
            friction = partial(acting.friction, i, policy_efforts) if core.has_friction else None
        statistics = {} if method is None else {"method": method}
        return Trajectory(
            mechanism, t, q, v, internal_state=z, loop_q=z[:, z.shape[1] - self._counted :] if self._counted else None,
            efforts=efforts, friction=friction, statistics=statistics, status=status_name(self.status[i]), touching=touching,
            on_planes=on_planes,
        )  # fmt: skip

    def __repr__(self) -> str:
        counts = [(name, int(count)) for name, count in self._counts().items()]
        ended = f"all {counts[0][0]}" if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts)
        over = f"{len(self.t)} samples over {np.ptp(self.t):.6g} s"
        return f"<Sweep of '{self.mechanism.name}': {len(self)} runs, {over}{', ' * bool(ended)}{ended}>"

    def _counts(self) -> dict[str, int]:
        kinds, counts = np.unique(self.status, return_counts=True)
        return {status_name(k): int(n) for k, n in zip(kinds, counts, strict=True)}

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"runs": len(self), "samples": len(self.t)}
        facts["time"] = f"{self.t[0]:.6g} s to {self.t[-1]:.6g} s"
        facts |= self._counts()
        for limit, excess in zip(self.limits, np.nan_to_num(self.excess).T, strict=True):
            if excess.any():
                facts[f"{limit.quantity} of '{limit.joint}'"] = f"left by {np.count_nonzero(excess)} runs"
        return table(facts.items(), f"Sweep of '{self.mechanism.name}'")

    def _by_mechanism(self) -> Iterator[tuple[Mechanism, NDArray[np.bool_]]]:
        """Yield each mechanism once, with a mask (runs, 1) of its runs."""
        per_run = [self.mechanism] * len(self) if self.mechanisms is None else self.mechanisms
        for mechanism in dict.fromkeys(per_run):
            yield mechanism, np.array([other is mechanism for other in per_run], bool)[:, None]

    # ---- files and tables --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all data to an .npz file, or the table of :meth:`to_dataframe` to a .parquet file (needs pandas and pyarrow).

        The table is written in blocks, so that the runs of a `store` folder are never in memory all at once. The .npz also contains the mechanism, or
        the mechanisms of all runs, and the force elements, pickled.

        Parameters
        ----------
        path : file name that ends in .npz or .parquet

        Raises ValueError for another ending, ModelError if the mechanism contains a function that cannot be pickled.
        """
        path = checked_path(path)
        if storage.suffix(path, (".npz", ".parquet"), "sweep") == ".npz":
            storage.write_sweep(path, self._fields() | {"acting": self._acting})
        else:
            with replacing(path) as file:
                storage.write_parquet(file, self._tables())

    def _fields(self) -> dict[str, Any]:
        names = ("mechanism", "t", "q", "v", "status", "internal_state", "limits", "excess", "stiffness", "efforts")
        hidden = {"counted": self._counted, "mechanisms": self._mechanisms}
        return {name: getattr(self, name) for name in names} | hidden

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | Sequence[Mechanism] | None = None) -> Sweep:
        """Read a file that :meth:`save` wrote.

        Without ``mechanism=`` an .npz is **unpickled**, and a pickle can run any program: load only files from people whom you trust. With
        ``mechanism=`` nothing is unpickled, and the force elements remain unknown. A .parquet contains q, v and status only.

        Parameters
        ----------
        path : file name that ends in .npz or .parquet
        mechanism : the mechanism of all runs, or a list with the mechanism of each run; required for a .parquet

        Raises OSError if the file does not exist, ValueError if sarrus did not write it, or if it belongs to another mechanism.
        """
        path = checked_path(path)
        several: list[Any] = list(mechanism) if isinstance(mechanism, (list, tuple)) else [mechanism]
        for item in several if mechanism is not None else ():
            checked_mechanism(item)
        npz = storage.suffix(path, (".npz", ".parquet"), "sweep") == ".npz"
        if not npz and (mechanism is None or not several):
            raise TypeError("a .parquet does not contain the mechanism: Sweep.load(path, mechanism=...)")
        if npz and several != [mechanism]:
            raise TypeError("an .npz contains the mechanism of each run: omit mechanism=")
        try:
            if npz:
                return cls(**storage.read_sweep(path, several[0]))
            return cls(**storage.read_parquet(path, several))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a table with a row for each run and sample. Needs pandas.

        Columns: run; the index of its mechanism if the mechanisms differ; status; ``t [s]``; coordinates such as ``q:motor [rad]``; velocities such
        as ``v:motor [rad/s]``.
        """
        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        return pandas.concat(self._tables(), ignore_index=True)

    def _tables(self, rows: int = 2**18) -> Iterator[pandas.DataFrame]:
        """Yield the table in blocks of about `rows` rows, with complete runs; without runs, an empty block."""
        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        n, columns = len(self.t), storage.joint_columns(self.mechanism, self.mechanism.joints, "qv")
        numbers = None if self.mechanisms is None else storage.numbered(self.mechanisms)
        many = max(1, rows // n)
        for first in range(0, max(1, len(self)), many):
            runs = np.arange(first, min(first + many, len(self)))
            x = np.concatenate([self.q[runs], self.v[runs]], axis=-1).reshape(len(runs) * n, len(columns))
            frame = pandas.DataFrame(x, columns=columns)
            frame.insert(0, "t [s]", np.tile(self.t, len(runs)))
            frame.insert(0, "status", np.repeat(self.status[runs], n))
            if numbers is not None:
                frame.insert(0, "mechanism", np.repeat(numbers[runs], n))
            frame.insert(0, "run", np.repeat(runs, n))
            yield frame

    # ---- pictures ----------------------------------------------------------------------------------------------------

    @renamed_arguments(what="quantities")
    def plot(
        self, quantities: str | Sequence[str] | None = None, ax: Axes | None = None, *, quantiles: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
        lines: int = 0,
    ) -> Axes:  # fmt: skip
        """Plot quantiles of the runs against time: bands between pairs of quantiles, and the median as a line. Needs matplotlib.

        Runs that have ended are not included.

        Parameters
        ----------
        quantities : as in :meth:`Trajectory.plot`: "q", "v", "energy", the name of a tree joint or of a frame; or a list of these
        ax : axes of matplotlib, for quantities with the same unit; default: a new figure
        quantiles : quantiles from 0 to 1 (dimensionless). The smallest and the largest bound a band, the next pair another band, and so on; a
            quantile without partner is a line
        lines : number of single runs, evenly distributed over the runs, that are also drawn as thin lines

        Raises NameNotFoundError for an unknown quantity, ValueError for invalid quantiles.
        """
        from ..figures import figures as pictures

        return pictures.bundle(self, quantities, quantiles, checked_count("lines", lines, 0), ax)


def _subset(per_run: Any, index: Any) -> Any:
    """Return the items of a sequence for the indexed runs; the sequence has an item for each run."""
    if isinstance(per_run, Sequence):
        return [per_run[i] for i in np.arange(len(per_run))[index]]
    return None if per_run is None else per_run.of(index)
