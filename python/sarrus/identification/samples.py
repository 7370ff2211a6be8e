"""Measured motions and efforts, and what is made of encoders' readings alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_number, real_array
from .._showing import Brief
from ..errors import ModelError, ShapeError
from ..mechanism import Mechanism, checked_mechanism

SETTLES = 4.0  # periods of the cut-off, to either side, that the filter is long


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Brief):
    """A motion and the efforts measured along it, one row a sample.

    Attributes
    ----------
    efforts : joint to what its motor gave, (n,) or (n, nv of the joint) [N m, N]. A joint that nothing drives has zeros: they are measurements too
    q, v : (n, nq), (n, nv), the loops closed
    a : (n, nv), or None where accelerations are not known: then runs are compared, not equations
    t : (n,) [s], or None; evenly spaced where there is no `a`
    directions : joint to (n, nv of the joint) what Coulomb's friction of one is multiplied by; None: the signs of its velocities. Where efforts are
        filtered these are the signs filtered likewise: at a reversal efforts no longer jump
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
        for what, x in parts.items():
            if x is None:
                continue
            if x.ndim != (1 if what == "t" else 2) or x.shape[:1] != self.q.shape[:1]:
                of_q = f" for each of the {len(self.q)} rows of q" if self.q.ndim else " a sample"
                raise ShapeError(f"{what} needs one row{of_q}; got shape {x.shape}")
            if not np.isfinite(x).all():
                raise ShapeError(
                    f"{what} must be finite; row {int(np.argwhere(~np.isfinite(x))[0, 0])} is not: leave such samples out"
                )

    def __len__(self) -> int:
        return len(self.q)

    def rows(self, which: Any) -> Samples:
        """Some of them, by a slice, indices or a mask; IndexError for anything else."""
        try:
            which = np.arange(len(self))[which]
        except (IndexError, TypeError, ValueError) as error:
            raise IndexError(f"which must be a slice, indices or a mask of {len(self)} samples; {error}") from None
        a, t = (None if x is None else x[which] for x in (self.a, self.t))
        efforts, directions = (
            None if of is None else {name: x[which] for name, x in of.items()} for of in (self.efforts, self.directions)
        )
        assert efforts is not None
        return Samples(efforts, self.q[which], self.v[which], a, t, directions)

    @classmethod
    def from_joints(
        cls, robot: Mechanism, t: ArrayLike, joints: Mapping[str, ArrayLike], efforts: Mapping[str, ArrayLike], *, cutoff: float,
        near: ArrayLike | None = None,
    ) -> Samples:  # fmt: skip
        """From the coordinates of the joints that have encoders: filtered without delay, differentiated, and completed by the loops.

        Parameters
        ----------
        t : (n,) [s], evenly spaced
        joints : joint with one coordinate to its readings (n,) [rad, m]; as many as determine the motion
        efforts : as the attribute; they are filtered likewise, and so are the signs of velocities, so that both sides of the equations lose the same
        cutoff : frequency at which half is kept [Hz]; from 0.7 of it down motion is kept to 1e-4, from 1.3 up nothing is
        near : as :meth:`sarrus.Mechanism.follow`, the configuration to start from, at the first reading

        Returns
        -------
        Samples, without the ends, where the filter has not settled (four periods of the cut-off each)

        Raises
        ------
        ShapeError, ModelError
            Times that are not even, or a record shorter than twelve periods of the cut-off.
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
            raise ShapeError(f"t must be evenly spaced times (n,), which grow; got shape {t.shape}")
        step = (t[-1] - t[0]) / (len(t) - 1)
        half = int(np.ceil(SETTLES / (cutoff * step)))
        if len(t) < 3 * half:
            raise ModelError(
                f"{len(t)} samples last {t[-1] - t[0]:.3g} s, less than {3 * SETTLES:g} periods of a cut-off of {cutoff:g} Hz"
            )
        readings = [_readings(what, x, t) for what, x in (("joints", joints), ("efforts", efforts))]
        smooth, rate, acceleration = _kernels(step, cutoff, half)
        inside = slice(half, len(t) - half)
        # signs of velocities are filtered once more, so velocities are wanted at the ends too, where readings are mirrored in their last one
        mirrored = {name: np.pad(y, half, mode="reflect", reflect_type="odd") for name, y in readings[0].items()}
        positions, rates, accelerations = (
            {name: np.convolve(y, kernel, "valid") for name, y in mirrored.items()}
            for kernel in (smooth, rate, acceleration)
        )
        q = robot.follow(positions, near)
        v = robot.complete_velocity(q, rates)
        directions = {
            name: np.stack([np.convolve(np.sign(x), smooth, "valid") for x in of_joint.T], axis=1)
            for name, of_joint in robot.joint_states(q, v).v.items()
            if of_joint.shape[1]
        }
        q, v = q[inside], v[inside]
        a = robot.complete_acceleration(q, v, {name: x[inside] for name, x in accelerations.items()})
        forces = {name: np.convolve(u, smooth, "valid") for name, u in readings[1].items()}
        return cls(forces, q, v, a, t[inside], directions)


def _readings(what: str, of: Any, t: Array) -> dict[str, Array]:
    """Numbers of each joint, one for each time."""
    check_mapping(what, of, "joints to (n,) readings each")
    readings = {name: real_array(f"{what}['{name}']", x) for name, x in of.items()}
    for name, x in readings.items():
        if x.shape != t.shape:
            raise ShapeError(f"{what}['{name}'] needs ({len(t)},) numbers, one for each time; got shape {x.shape}")
    return readings


def _kernels(step: float, cutoff: float, half: int) -> list[Array]:
    """Low-pass filter (sinc in Kaiser's window), and the first two derivatives through it."""
    t = step * np.arange(-half, half + 1)
    h = np.sinc(2.0 * cutoff * t) * np.kaiser(len(t), 8.0)
    spectrum, rate = np.fft.rfft(np.pad(h / h.sum(), half)), 2j * np.pi * np.fft.rfftfreq(len(t) + 2 * half, step)
    kernels = [np.fft.irfft(spectrum * rate**k, len(t) + 2 * half)[half : half + len(t)] for k in range(3)]
    # less what cutting their ends off has left, in the shape of the filter itself: a machine at rest does not move
    return [kernels[0], *(kernel - kernel.sum() * kernels[0] for kernel in kernels[1:])]


def checked_samples(data: Any) -> Samples:
    """TypeError for anything else."""
    if not isinstance(data, Samples):
        raise TypeError(f"data are sarrus.identification.Samples; got {data!r}")
    return data
