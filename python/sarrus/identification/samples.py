"""Samples of measured motions and efforts, and their computation from encoder readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_number, real_array
from .._renamed import renamed_arguments
from .._showing import Brief
from ..errors import ModelError, ShapeError
from ..mechanism import Mechanism, checked_mechanism

SETTLES = 4.0  # half length of the filter, in periods of the cut-off frequency


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Brief):
    """Measured motion and efforts, with a row for each sample.

    Attributes
    ----------
    efforts : joint to the efforts of its motor (n,) or (n, nv of the joint) [N m, N]. A passive joint may be included with zeros, as a measurement
    q, v : (n, nq), (n, nv) configurations and velocities [rad, m; rad/s, m/s], with closed loops
    a : (n, nv) accelerations [rad/s^2, m/s^2], or None, for :func:`identify_runs`
    t : (n,) times [s], or None; uniformly spaced if `a` is None
    directions : joint to (n, nv of the joint) factors of Coulomb friction from -1 to 1 (dimensionless); None: the signs of the velocities. If efforts
        are filtered, use the filtered signs, because the filtered friction does not jump at reversals
    """

    efforts: Mapping[str, Array]
    q: Array
    v: Array
    a: Array | None = None
    t: Array | None = None
    directions: Mapping[str, Array] | None = None

    def __post_init__(self) -> None:
        for name in ("q", "v", "a", "t"):
            if (value := getattr(self, name)) is not None or name in "qv":
                object.__setattr__(self, name, real_array(name, value))
        check_mapping("efforts", self.efforts, "joints to (n,) efforts each")
        efforts = {name: real_array(f"efforts of '{name}'", u) for name, u in self.efforts.items()}
        efforts = {name: u[:, None] if u.ndim == 1 else u for name, u in efforts.items()}
        object.__setattr__(self, "efforts", efforts)
        parts: dict[str, Any] = {"q": self.q, "v": self.v, "a": self.a, "t": self.t}
        parts |= {f"efforts of '{name}'": u for name, u in efforts.items()}
        if self.directions is not None:
            check_mapping("directions", self.directions, "joints to (n, nv of the joint) numbers each", 0)
            directions = {name: real_array(f"directions of '{name}'", d) for name, d in self.directions.items()}
            object.__setattr__(self, "directions", directions)
            parts |= {f"directions of '{name}'": d for name, d in directions.items()}
        for label, x in parts.items():
            if x is None:
                continue
            if x.ndim != (1 if label == "t" else 2) or x.shape[:1] != self.q.shape[:1]:
                rows = f" for each of the {len(self.q)} rows of q" if self.q.ndim else " for one sample"
                raise ShapeError(f"{label} needs one row{rows}; got shape {x.shape}")
            if not np.isfinite(x).all():
                raise ShapeError(
                    f"{label} must be finite; row {int(np.argwhere(~np.isfinite(x))[0, 0])} is not: remove such samples"
                )

    def __len__(self) -> int:
        return len(self.q)

    @renamed_arguments(which="selection")
    def rows(self, selection: Any) -> Samples:
        """Return a subset of the samples; raise IndexError for an invalid selection.

        Parameters
        ----------
        selection : slice, indices or mask of the samples
        """
        try:
            indices = np.arange(len(self))[selection]
        except (IndexError, TypeError, ValueError) as error:
            raise IndexError(f"selection must be a slice, indices or a mask of {len(self)} samples; {error}") from None
        a, t = (None if x is None else x[indices] for x in (self.a, self.t))
        efforts, directions = (
            None if by_joint is None else {name: x[indices] for name, x in by_joint.items()}
            for by_joint in (self.efforts, self.directions)
        )
        assert efforts is not None
        return Samples(efforts, self.q[indices], self.v[indices], a, t, directions)

    @classmethod
    def from_joints(
        cls, robot: Mechanism, t: ArrayLike, joints: Mapping[str, ArrayLike], efforts: Mapping[str, ArrayLike], *, cutoff: float,
        near: ArrayLike | None = None,
    ) -> Samples:  # fmt: skip
        """Return samples from encoder readings: filtered without delay and differentiated; the coordinates of all joints follow from the loops.

        Parameters
        ----------
        robot : the nominal mechanism
        t : (n,) uniformly spaced times [s]
        joints : joint with one coordinate to its readings (n,) [rad, m]; the joints must determine the motion
        efforts : joint to measured efforts (n,) or (n, nv of the joint) [N m, N]. They, and the signs of the velocities in Coulomb friction,
            are filtered like the readings, so that both sides of the equations lose the same frequencies
        cutoff : cut-off frequency of half amplitude [Hz]; the amplitude error is 1e-4 below 0.7 of it, and the signal vanishes above 1.3 of it
        near : initial guess of the first configuration [rad, m], as in :meth:`sarrus.Mechanism.follow`

        Returns
        -------
        Samples without four periods of the cut-off frequency at each end of the record, where the filter is incomplete

        Raises
        ------
        ShapeError, ModelError
            Times are not uniformly spaced, or the record is shorter than twelve periods of the cut-off.
        AssemblyError
            The loops do not close along the readings.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> from sarrus.identification import Samples
        >>> robot = sarrus.mechanisms.four_bar()
        >>> t = np.linspace(0.0, 4.0, 801)
        >>> crank = {"motor": 0.5 + np.sin(2 * t)}
        >>> data = Samples.from_joints(robot, t, crank, {"motor": np.zeros(801)}, cutoff=5.0)
        >>> bool(abs(data.v[:, 0] - 2 * np.cos(2 * data.t)).max() < 1e-3)
        True
        """
        checked_mechanism(robot, "robot")
        t, cutoff = real_array("t", t), checked_number("cutoff", cutoff)
        if t.ndim != 1 or len(t) < 3 or np.ptp(np.diff(t)) > 1e-6 * (t[-1] - t[0]) / len(t) or t[-1] <= t[0]:
            raise ShapeError(f"t must be increasing, evenly spaced times (n,); got shape {t.shape}")
        step = (t[-1] - t[0]) / (len(t) - 1)
        half = int(np.ceil(SETTLES / (cutoff * step)))
        if len(t) < 3 * half:
            raise ModelError(
                f"{len(t)} samples last {t[-1] - t[0]:.3g} s, but the filter requires at least {3 * SETTLES:g} periods of the cut-off of {cutoff:g} Hz: pass a longer record or a higher cutoff"
            )
        readings = [_readings(argument, x, t) for argument, x in (("joints", joints), ("efforts", efforts))]
        smooth, rate, acceleration = _kernels(step, cutoff, half)
        inside = slice(half, len(t) - half)
        # the signs of velocities are filtered in turn, which requires velocities at the ends of the record: the readings are mirrored at their last
        # value
        mirrored = {name: np.pad(y, half, mode="reflect", reflect_type="odd") for name, y in readings[0].items()}
        positions, rates, accelerations = (
            {name: np.convolve(y, kernel, "valid") for name, y in mirrored.items()}
            for kernel in (smooth, rate, acceleration)
        )
        q = robot.follow(positions, near)
        v = robot.complete_velocity(q, rates)
        directions = {
            name: np.stack([np.convolve(np.sign(x), smooth, "valid") for x in rates.T], axis=1)
            for name, rates in robot.joint_states(q, v).v.items()
            if rates.shape[1]
        }
        q, v = q[inside], v[inside]
        a = robot.complete_acceleration(q, v, {name: x[inside] for name, x in accelerations.items()})
        forces = {name: np.convolve(u, smooth, "valid") for name, u in readings[1].items()}
        return cls(forces, q, v, a, t[inside], directions)


def _readings(argument: str, value: Any, t: Array) -> dict[str, Array]:
    """Return the readings of each joint; raise ShapeError unless they have a value for each time."""
    check_mapping(argument, value, "joints to (n,) readings each")
    readings = {name: real_array(f"{argument}['{name}']", x) for name, x in value.items()}
    for name, x in readings.items():
        if x.shape != t.shape:
            raise ShapeError(f"{argument}['{name}'] needs ({len(t)},) numbers, one for each time; got shape {x.shape}")
    return readings


def _kernels(step: float, cutoff: float, half: int) -> list[Array]:
    """Return the kernels of a low-pass filter (sinc in Kaiser's window) and of its first two derivatives."""
    t = step * np.arange(-half, half + 1)
    h = np.sinc(2.0 * cutoff * t) * np.kaiser(len(t), 8.0)
    spectrum, rate = np.fft.rfft(np.pad(h / h.sum(), half)), 2j * np.pi * np.fft.rfftfreq(len(t) + 2 * half, step)
    kernels = [np.fft.irfft(spectrum * rate**k, len(t) + 2 * half)[half : half + len(t)] for k in range(3)]
    # the truncated kernels of derivatives have a nonzero sum. A multiple of the filter is subtracted, so that a machine at rest has zero velocity
    return [kernels[0], *(kernel - kernel.sum() * kernels[0] for kernel in kernels[1:])]


def checked_samples(data: Any) -> Samples:
    """Return the samples; raise TypeError for other types."""
    if not isinstance(data, Samples):
        raise TypeError(f"data are sarrus.identification.Samples; got {data!r}")
    return data
