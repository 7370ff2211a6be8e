"""What a mechanism did: samples of a motion, and all that follows from them."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ModelError, ShapeError, raise_no_such_name
from .joints import JointType
from .loops.functions import LoopReactions
from .mechanism import Mechanism

if TYPE_CHECKING:
    import pandas
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

__all__ = ["Trajectory"]

Array: TypeAlias = NDArray[np.float64]
Efforts: TypeAlias = Callable[[Array, Array, Array, Array], ArrayLike]

FORMAT = 1  # of .npz files


class Trajectory:
    """A motion, sampled: made by :func:`~sarrus.simulate`. It does not change; its arrays are read-only.

    What is not given is computed when it is asked for first, for all samples at once, and kept.

    Parameters
    ----------
    mechanism : what moves
    t : (n,) [s], not decreasing
    q, v : (n, nq), (n, nv)
    memory : (n, m) what controllers and friction remember
    efforts : generalised forces (n, nv) of all that acts, or the function (t, q, v, memory) -> (n, nv) that tells them; None: nothing acts
    statistics : what it took: "method", "steps", "refused", "evaluations", "seconds"
    status : "finished", "terminated: <event>", "interrupted", "diverged"; "unknown" when read from a .csv
    events : name -> times (k,) at which it happened [s]
    checkpoint : from where :func:`~sarrus.simulate` can go on

    Raises
    ------
    ShapeError
        The arrays do not fit the mechanism or one another.
    ValueError
        The times are not finite, or decrease.

    Examples
    --------
    >>> import sarrus
    >>> t = np.linspace(0.0, 1.0, 11)
    >>> run = Trajectory(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), t, np.sin(t)[:, None], np.cos(t)[:, None])
    >>> run
    Trajectory of 'pendulum': 11 samples over 1 s, finished
    >>> run.energy.round(2)[0], run.frame("tip").shape
    (np.float64(-9.56), (11, 4, 4))
    >>> q, v = run.at(0.25)
    >>> bool(abs(q[0] - np.sin(0.25)) < 1e-6)
    True
    """

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    memory: Array | None
    efforts: Efforts | Array | None
    statistics: dict[str, Any]
    status: str
    events: dict[str, Array]
    checkpoint: Any

    def __init__(
        self,
        mechanism: Mechanism,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        *,
        memory: ArrayLike | None = None,
        efforts: Efforts | ArrayLike | None = None,
        statistics: Mapping[str, Any] | None = None,
        status: str = "finished",
        events: Mapping[str, ArrayLike] | None = None,
        checkpoint: Any = None,
    ) -> None:
        times = _kept(t)
        if times.ndim != 1:
            raise ShapeError(f"t must be (n,); got {times.shape}")
        if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
            raise ValueError("t must be finite times, none before the one that it follows")
        n, rows = len(times), {"q": (q, mechanism.nq), "v": (v, mechanism.nv), "memory": (memory, None)}
        if not callable(efforts):
            rows["efforts"] = (efforts, mechanism.nv)
        arrays: dict[str, Any] = {name: None if x is None else _kept(x) for name, (x, _) in rows.items()}
        for name, (_, wide) in rows.items():
            x = arrays[name]
            if x is not None and (x.ndim != 2 or len(x) != n or (wide is not None and x.shape[1] != wide)):
                raise ShapeError(f"{name} must be ({n}, {'m' if wide is None else wide}), a row a time; got {x.shape}")
        # past __setattr__, which refuses
        self.__dict__.update(
            {"efforts": efforts, **arrays},
            mechanism=mechanism,
            t=times,
            statistics=dict(statistics or {}),
            status=status,
            events={name: _kept(at) for name, at in (events or {}).items()},
            checkpoint=checkpoint,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Trajectory does not change; cannot set '{name}'")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Trajectory does not change; cannot delete '{name}'")

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.t)

    def __repr__(self) -> str:
        over = f" over {self.t[-1] - self.t[0]:.6g} s" if len(self) else ""
        how = [str(self.statistics["method"])] if "method" in self.statistics else []
        samples = "1 sample" if len(self) == 1 else f"{len(self)} samples"
        return f"Trajectory of '{self.mechanism.name}': {samples}{over}, {', '.join([*how, self.status])}"

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Trajectory], tuple[dict[str, Any]]]:
        names = ("mechanism", "t", "q", "v", "memory", "statistics", "status", "events", "checkpoint")
        # a function of the controllers does not travel; what it says does
        return _remade, ({name: getattr(self, name) for name in names} | {"efforts": self._known_efforts},)

    # ---- what follows from the samples -------------------------------------------------------------------------------

    @cached_property
    def tau(self) -> Array:
        """(n, nv) generalised force of all that acts, contacts too; joint friction and springs of the mechanism are not in it [N m, N]."""
        if self.efforts is None:
            return _kept(np.zeros_like(self.v))
        if not callable(self.efforts):
            return self.efforts
        memory = np.empty((len(self), 0)) if self.memory is None else self.memory
        tau = _kept(self.efforts(self.t, self.q, self.v, memory)) if len(self) else _kept(self.v)
        if tau.shape != self.v.shape:
            raise ShapeError(f"efforts returned shape {tau.shape}; it must return {self.v.shape}")
        return tau

    @property
    def _known_efforts(self) -> Array | None:
        return None if self.efforts is None else self.tau

    @cached_property
    def a(self) -> Array:
        """(n, nv) generalised acceleration [rad/s2, m/s2]; NaN where there is none."""
        return _kept(self.mechanism.forward_dynamics(self.q, self.v, self.tau, time=self.t))

    @cached_property
    def reactions(self) -> LoopReactions | dict[str, Array]:
        """What constraints carry: :class:`~sarrus.LoopReactions` of loops, or on a tree :meth:`Mechanism.reactions`, joint name -> (n, 6).

        A force that acts elsewhere than at a joint (contact, a wrench on a frame) counts as `tau` would.
        """
        _, found = self.mechanism.forward_dynamics(self.q, self.v, self.tau, time=self.t, return_reactions=True)
        if isinstance(found, LoopReactions):
            _freeze(found.multipliers, found.residual, *found.wrenches.values())
            return found
        return {name: _kept(wrench) for name, wrench in found.items()}

    @cached_property
    def kinetic_energy(self) -> Array:
        """(n,) [J]."""
        return _kept(self.mechanism.kinetic_energy(self.q, self.v))

    @cached_property
    def potential_energy(self) -> Array:
        """(n,) of gravity and joint springs [J]."""
        return _kept(self.mechanism.potential_energy(self.q))

    @cached_property
    def energy(self) -> Array:
        """(n,) kinetic and potential [J]."""
        return _kept(self.kinetic_energy + self.potential_energy)

    @cached_property
    def momentum(self) -> Array:
        """(n, 6) [angular, about the world's origin; linear], world axes [kg m2/s, kg m/s]."""
        return _kept(self.mechanism.momentum(self.q, self.v))

    @cached_property
    def loop_error(self) -> Array:
        """(n,) how far the loops are open: the largest row of :meth:`Mechanism.loop_residual` [rad, m]; zero without loops."""
        if not self.mechanism.nc:
            return _kept(np.zeros(len(self)))
        return _kept(np.abs(self.mechanism.loop_residual(self.q, time=self.t)).max(axis=-1))

    def joint(self, name: str) -> Array:
        """(n, nq of the joint) its coordinates."""
        joint = self.mechanism.joint(name)
        if joint.closes_loop:
            raise ModelError(f"joint '{name}' closes a loop; it has no coordinates in q")
        return self.q[:, joint.q_slice]

    def frame(self, name: str) -> Array:
        """(n, 4, 4) poses of a frame or body in the world."""
        return self.mechanism.pose(self.q, name)

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Configuration and velocity at any times (...) from the first sample to the last: q (..., nq), v (..., nv).

        A cubic between samples that has their coordinates and velocities (Hermite's), for rotations on their manifold; off by O(dt^4), as
        is the loops' closure, and exact at samples. Between two samples a body should turn by less than half a turn.

        Raises
        ------
        ValueError
            A time outside.
        """
        t = np.asarray(t, dtype=np.float64)
        inside = (t >= self.t[0]) & (t <= self.t[-1]) if len(self) else np.zeros(t.shape, dtype=bool)
        if not inside.all():
            known = f"{self.t[0]:.9g} s to {self.t[-1]:.9g} s" if len(self) else "no time at all"
            raise ValueError(f"t = {t[~inside].flat[0]:.9g} s is outside: the trajectory holds {known}")
        k = np.searchsorted(self.t, t, side="right") - 1
        q, v = self.q.take(k, axis=0), self.v.take(k, axis=0)
        between = t != self.t[k]
        if between.any():
            k = k[between]
            q[between], v[between] = self._between(t[between], k)
        return q, v

    def _between(self, t: Array, k: NDArray[np.intp]) -> tuple[Array, Array]:
        """State at times (m,) after samples k (m,)."""
        h = (self.t[k + 1] - self.t[k])[:, None]
        s = (t - self.t[k])[:, None] / h
        q, v = np.empty((len(t), self.mechanism.nq)), np.empty((len(t), self.mechanism.nv))
        for name in self.mechanism.joints:
            joint = self.mechanism.joint(name)
            iq, iv = joint.q_slice, joint.v_slice
            way = _WAYS.get(joint.kind, _hermite)
            q[:, iq], v[:, iv] = way(s, h, self.q[k, iq], self.v[k, iv], self.q[k + 1, iq], self.v[k + 1, iv])
        return q, v

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file, as its name ends: all of it to .npz, the table of :meth:`to_dataframe` to .csv.

        The .npz holds the mechanism too, pickled. The .csv has every digit of its numbers (an older pandas reads the last one right
        with ``float_precision="round_trip"``).

        Raises
        ------
        ValueError
            The name ends otherwise.
        ModelError
            The mechanism holds a function that cannot be pickled.
        """
        path = Path(path)
        if _suffix(path) == ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(self._columns(self._known_efforts is not None))
                for first in range(0, len(self), 65536):  # numbers as objects take a multiple of their memory
                    writer.writerows(self._table(slice(first, first + 65536)).tolist())
            return
        try:
            pickled = pickle.dumps((self.mechanism.description, self.checkpoint))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ModelError(
                f"'{self.mechanism.name}' holds a function that cannot be pickled ({error}): save as .csv, "
                "or define the function at the top of a module"
            ) from error
        notes = {"format": FORMAT, "statistics": self.statistics, "status": self.status, "events": list(self.events)}
        given = {"t": self.t, "q": self.q, "v": self.v, "memory": self.memory, "tau": self._known_efforts}
        arrays: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
        arrays |= {f"event_{k}": at for k, at in enumerate(self.events.values())}
        arrays |= {"notes": np.array(json.dumps(notes, default=_plain)), "pickled": np.frombuffer(pickled, np.uint8)}
        with path.open("wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | None = None) -> Trajectory:
        """Read what :meth:`save` wrote.

        Without ``mechanism=`` an .npz is **unpickled**, and a pickle can run any program: load only files from people whom you trust.
        With it nothing is unpickled; the checkpoint is then left out. A .csv needs it: it holds no mechanism, and no status, events
        or statistics.

        Raises
        ------
        ValueError
            The file is none that sarrus wrote, or is of another mechanism.
        """
        path = Path(path)
        if _suffix(path) == ".csv":
            if mechanism is None:
                raise TypeError("a .csv does not hold the mechanism: Trajectory.load(path, mechanism=...)")
            return cls._load_csv(path, mechanism)
        foreign = f"{path}: not a trajectory that sarrus saved"
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
                arrays = dict(file)
            notes = json.loads(arrays.pop("notes").item())
            pickled = arrays.pop("pickled").tobytes()
        except (ValueError, KeyError, EOFError, AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise
            raise ValueError(foreign) from error
        if notes.get("format") != FORMAT:
            raise ValueError(f"{path}: format {notes.get('format')!r}; this sarrus reads format {FORMAT}")
        checkpoint = None
        if mechanism is None:
            description, checkpoint = pickle.loads(pickled)
            mechanism = Mechanism(description)
        return cls(
            mechanism,
            *(arrays[name] for name in ("t", "q", "v")),
            memory=arrays.get("memory"),
            efforts=arrays.get("tau"),
            statistics=notes["statistics"],
            status=notes["status"],
            events={name: arrays[f"event_{k}"] for k, name in enumerate(notes["events"])},
            checkpoint=checkpoint,
        )

    @classmethod
    def _load_csv(cls, path: Path, mechanism: Mechanism) -> Trajectory:
        nq, nv = mechanism.nq, mechanism.nv
        one = cls(mechanism, [], np.empty((0, nq)), np.empty((0, nv)))
        with path.open(newline="", encoding="utf-8") as file:
            head = next(csv.reader(file), [])
            acts = len(head) == len(one._columns(True))
            if head != one._columns(acts):
                missing = [name for name in one._columns(acts) if name not in head]
                raise ValueError(
                    f"{path}: its columns are not those of '{mechanism.name}'"
                    + (f"; column '{missing[0]}' is missing" if missing else "")
                )
            lines = file.read()
        table = np.loadtxt(io.StringIO(lines), delimiter=",", ndmin=2) if lines else np.empty((0, len(head)))
        t, q, v, tau, _ = np.split(table, np.cumsum([1, nq, nv, nv if acts else 0]), axis=1)
        return cls(mechanism, t[:, 0], q, v, efforts=tau if acts else None, status="unknown")

    def to_dataframe(self) -> pandas.DataFrame:
        """Table with a row per sample: t, q:joint, v:joint, tau:joint if anything acts, energy, loop_error.

        Joints of several coordinates have a column for each, q:joint:0 and so on. Needs pandas.
        """
        try:
            import pandas
        except ImportError as missing:
            raise ImportError('to_dataframe() needs pandas: pip install "sarrus[dataframe]"') from missing
        return pandas.DataFrame(self._table(slice(None)), columns=self._columns(self._known_efforts is not None))

    def _columns(self, acts: bool) -> list[str]:
        named = ["t", *self._entries("q"), *self._entries("v"), *(self._entries("v", "tau") if acts else ())]
        return [*named, "energy", "loop_error"]

    def _entries(self, space: str, shown: str = "") -> Iterator[str]:
        """Names of the entries of q or v."""
        for name in self.mechanism.joints:
            joint = self.mechanism.joint(name)
            size = joint.nq if space == "q" else joint.nv
            yield from (f"{shown or space}:{name}" + (f":{k}" if size > 1 else "") for k in range(size))

    def _table(self, rows: slice) -> Array:
        acting = self._known_efforts
        parts = [self.t, self.q, self.v, *([] if acting is None else [acting]), self.energy, self.loop_error]
        return np.column_stack([x[rows] for x in parts])

    # ---- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, what: str | Sequence[str] = "q", ax: Axes | None = None) -> Axes:
        """Draw something against time, in black lines of different dashes. Needs matplotlib.

        Parameters
        ----------
        what : "q", "v", "a", "tau" of all joints; "energy"; "loop_error"; "momentum"; "reactions", the size of the force in every
            constraint or joint; the name of a joint: its coordinates, or where it closes a loop its reaction force; the name of a frame:
            where it is; or several of these names
        ax : where to draw; default: a new figure
        """
        from . import plot

        names = [what] if isinstance(what, str) else list(what)
        lines: dict[str, Array] = {}
        labels, units = [], []
        for name in names:
            label, found = self._curves(name)
            labels.append(label)
            for text, unit, y in found:
                lines[text] = y
                if unit not in units:
                    units.append(unit)
        title = labels[0] if len(set(labels)) == 1 else ", ".join(dict.fromkeys(labels))
        y_label = f"{title} [{', '.join(units)}]" if units else title
        return plot.curves(self.t, lines, y_label, ax=ax, log=names == ["loop_error"])

    def _curves(self, what: str) -> tuple[str, list[tuple[str, str, Array]]]:
        """What an axis says, and (name, unit, values (n,)) of each curve."""
        robot = self.mechanism
        if what in _SPACES:
            label, space, units = _SPACES[what]
            values = getattr(self, what)
            found = []
            for name in robot.joints:
                joint = robot.joint(name)
                at = joint.q_slice if space == "q" else joint.v_slice
                parts = _components(joint.type, space)
                for k, (part, unit) in enumerate(parts):
                    found.append((f"{name} {part}".strip(), units[unit], values[:, at.start + k]))
            return label, found
        if what == "energy":
            parts_of = {"total": self.energy, "kinetic": self.kinetic_energy, "potential": self.potential_energy}
            return "energy", [(name, "J", y) for name, y in parts_of.items()]
        if what == "loop_error":
            return "opening of the loops", [("loop_error", "rad, m", self.loop_error)]
        if what == "momentum":
            shown = [("angular", "kg m²/s"), ("linear", "kg m/s")]
            return "momentum", [
                (f"{kind} {axis}", unit, self.momentum[:, 3 * i + k])
                for i, (kind, unit) in enumerate(shown)
                for k, axis in enumerate("xyz")
            ]
        if what == "reactions":
            forces = {name: np.linalg.norm(wrench[:, 3:], axis=1) for name, wrench in self._wrenches().items()}
            only = f" by {next(iter(forces))}" if len(forces) == 1 else ""
            return f"force carried{only}", [(name, "N", force) for name, force in forces.items()]
        if what in (*robot.joints, *robot.loop_joints):
            joint = robot.joint(what)
            if joint.closes_loop:
                return f"force carried by {what}", [
                    (axis, "N", self._wrenches()[what][:, 3 + k]) for k, axis in enumerate("xyz")
                ]
            parts, coordinates = _components(joint.type, "q"), self.joint(what)
            return what, [
                (f"{what} {part}".strip(), _SPACES["q"][2][unit], coordinates[:, k])
                for k, (part, unit) in enumerate(parts)
            ]
        if what not in robot.frames:
            quantities = (*_SPACES, "energy", "loop_error", "momentum", "reactions")
            known = (*quantities, *robot.joints, *robot.loop_joints, *robot.frames)
            raise_no_such_name("quantity, joint or frame", what, known)
        place = self.frame(what)[:, :3, 3]
        return f"position of {what}", [(f"{what} {axis}", "m", place[:, k]) for k, axis in enumerate("xyz")]

    def _wrenches(self) -> dict[str, Array]:
        found = self.reactions
        return found.wrenches if isinstance(found, LoopReactions) else found

    def animate(
        self, path: str | os.PathLike[str] | None = None, *, speed: float = 1.0, frames_per_second: float = 30.0
    ) -> FuncAnimation:
        """Film of the motion; a notebook shows it as a player that can be turned. Needs matplotlib.

        Parameters
        ----------
        path : where it goes: .gif, .mp4 (needs the program ffmpeg), or .html, a page of its own that needs no network
        speed : 2.0 shows it twice as fast
        frames_per_second : of the film

        Raises
        ------
        ValueError
            The name ends otherwise, or there is nothing to show.
        FileNotFoundError
            No ffmpeg for an .mp4.
        """
        from . import plot
        from .skeleton import Skeleton

        if not (speed > 0.0 and np.isfinite(speed) and frames_per_second > 0.0 and np.isfinite(frames_per_second)):
            raise ValueError(f"speed and frames_per_second must be positive; got {speed!r} and {frames_per_second!r}")
        sound = np.isfinite(self.q).all(axis=1) & np.isfinite(self.v).all(axis=1)
        if not sound.any():
            raise ValueError("there is nothing to show: no sample is finite")
        # a run that diverged is shown as far as it went well
        end = len(self) if sound.all() else max(int(np.argmin(sound)), 1)
        first, last = self.t[0], self.t[end - 1]
        pictures = 1 + round((last - first) / speed * frames_per_second)
        times = np.linspace(first, last, pictures)
        q = self.at(times)[0]
        skeleton = Skeleton(self.mechanism)
        joints = list(skeleton.joint_points(q).values())
        marks = np.stack(joints, axis=1) if joints else np.empty((pictures, 0, 3))
        bars = skeleton.segments_flat(q)
        return plot.film(times, bars, marks, skeleton.anchors, self.mechanism.name, frames_per_second, path)


def _remade(given: dict[str, Any]) -> Trajectory:
    return Trajectory(**given)


def _kept(values: ArrayLike) -> Array:
    """A copy that does not change."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def _freeze(*arrays: Array) -> None:
    for x in arrays:
        x.setflags(write=False)


def _plain(value: Any) -> Any:
    """NumPy's numbers, for JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return str(value)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".csv"):
        raise ValueError(f"a trajectory is a .npz or a .csv file; got '{path.name}'")
    return suffix


# ---- names and units of coordinates ----------------------------------------------------------------------------------

_XYZ = ("x", "y", "z")
# by kind: what each coordinate of q, and each velocity, is called, and whether it turns ("rad"), shifts ("m") or is a quaternion's ("1")
_Q: dict[str, list[tuple[str, str]]] = {
    "Fixed": [],
    "Prismatic": [("", "m")],
    "Cylindrical": [("angle", "rad"), ("shift", "m")],
    "Universal": [("1", "rad"), ("2", "rad")],
    "Planar": [("x", "m"), ("y", "m"), ("angle", "rad")],
    "Spherical": [(f"q{axis}", "1") for axis in "xyzw"],
    "Free": [*((f"q{axis}", "1") for axis in "xyzw"), *((axis, "m") for axis in _XYZ)],
}
_V: dict[str, list[tuple[str, str]]] = {
    "Spherical": [(axis, "rad") for axis in _XYZ],
    "Free": [*((f"turn {axis}", "rad") for axis in _XYZ), *((axis, "m") for axis in _XYZ)],
}
_SPACES = {
    "q": ("joint coordinates", "q", {"rad": "rad", "m": "m", "1": "1"}),
    "v": ("joint velocities", "v", {"rad": "rad/s", "m": "m/s"}),
    "a": ("joint accelerations", "v", {"rad": "rad/s²", "m": "m/s²"}),
    "tau": ("joint forces", "v", {"rad": "N m", "m": "N"}),
}


def _components(joint: JointType, space: str) -> list[tuple[str, str]]:
    if joint.kind == "Gimbal":
        names: tuple[str, ...] = joint.free  # type: ignore[attr-defined]
        return [(name if len(names) > 1 else "", "rad" if name[0] == "r" else "m") for name in names]
    one = _Q.get(joint.kind, [("", "rad")])
    return one if space == "q" else _V.get(joint.kind, one)


# ---- between two samples ---------------------------------------------------------------------------------------------


def _hermite(s: Array, h: Array, x0: Array, r0: Array, x1: Array, r1: Array) -> tuple[Array, Array]:
    """Cubic and its rate at the share s of an interval h, from values x and rates r at the ends."""
    slope = (x1 - x0) / h
    second, third = 3 * slope - 2 * r0 - r1, r0 + r1 - 2 * slope
    return x0 + s * h * (r0 + s * (second + s * third)), r0 + s * (2 * second + 3 * s * third)


def _turning(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> tuple[Array, Array]:
    """Unit quaternion q0 exp(x) with x(s) a cubic: smooth, so that the error is that of any Hermite cubic.

    v = x' - (1 - cos)/|x|² x × x' + (|x| - sin)/|x|³ x × (x × x') is the velocity in the body (right Jacobian), and
    x' = v + ½ x × v + (1 - |x|/2 cot |x|/2)/|x|² x × (x × v) its inverse.
    """
    between = _product(q0 * [-1, -1, -1, 1], q1)
    between = np.where(between[:, 3:] < 0.0, -between, between)  # the shorter way
    sine = np.linalg.norm(between[:, :3], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, between[:, 3:])
    x1 = between[:, :3] * angle / np.where(sine > 0.0, sine, 1.0)
    half, small = angle / 2.0, angle < 1e-2
    safe = np.where(small, 1.0, half)
    inverse = np.where(small, 1 / 12 + angle**2 / 720, (1.0 - safe / np.tan(safe)) / (4.0 * safe**2))
    turned = np.cross(x1, v1)
    x, rate = _hermite(s, h, np.zeros_like(x1), v0, x1, v1 + turned / 2.0 + inverse * np.cross(x1, turned))
    angle = np.linalg.norm(x, axis=1, keepdims=True)
    small = angle < 1e-2
    safe = np.where(small, 1.0, angle)
    first = np.sinc(angle / (2.0 * np.pi)) ** 2 / 2.0
    second = np.where(small, 1 / 6 - angle**2 / 120, (safe - np.sin(safe)) / safe**3)
    turned = np.cross(x, rate)
    step = np.concatenate([x * np.sinc(angle / (2.0 * np.pi)) / 2.0, np.cos(angle / 2.0)], axis=1)
    q = _product(q0, step)
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q, rate - first * turned + second * np.cross(x, turned)


def _flying(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> tuple[Array, Array]:
    """A free joint: it turns, and its origin goes on a cubic in the axes of its predecessor: a thrown body's parabola is exact."""
    q, spin = _turning(s, h, q0[:, :4], v0[:, :3], q1[:, :4], v1[:, :3])
    r0, r1 = _turned(q0[:, :4], v0[:, 3:]), _turned(q1[:, :4], v1[:, 3:])
    p, rate = _hermite(s, h, q0[:, 4:], r0, q1[:, 4:], r1)
    return np.hstack([q, p]), np.hstack([spin, _turned(q * [-1, -1, -1, 1], rate)])


def _gliding(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> tuple[Array, Array]:
    """A planar joint: its velocity is in its own axes, its coordinates are not."""

    def along(angle: Array, v: Array, sign: float) -> Array:
        c, s = np.cos(angle), sign * np.sin(angle)
        return np.column_stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1], v[:, 2]])

    q, rate = _hermite(s, h, q0, along(q0[:, 2], v0, 1.0), q1, along(q1[:, 2], v1, 1.0))
    return q, along(q[:, 2], rate, -1.0)


def _product(p: Array, q: Array) -> Array:
    """Of quaternions (m, 4), (x, y, z, w)."""
    u, v, a, b = p[:, :3], q[:, :3], p[:, 3:], q[:, 3:]
    return np.hstack([a * v + b * u + np.cross(u, v), a * b - (u * v).sum(axis=1, keepdims=True)])


def _turned(q: Array, x: Array) -> Array:
    """Vectors (m, 3), turned by unit quaternions."""
    around = 2.0 * np.cross(q[:, :3], x)
    return x + q[:, 3:] * around + np.cross(q[:, :3], around)


_WAYS = {"Spherical": _turning, "Free": _flying, "Planar": _gliding}
