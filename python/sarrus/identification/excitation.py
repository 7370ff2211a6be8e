"""Exciting motions for identification: Fourier series of the driven joints that minimise the condition number of the regressor.

References
----------
Swevers, J., Ganseman, C., Tükel, D., De Schutter, J., Van Brussel, H. (1997). Optimal robot excitation and identification. *IEEE Transactions on
Robotics and Automation* 13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _arrays
from .._arrays import Array, ArrayLike
from .._showing import Brief
from ..errors import AssemblyError, ModelError, ShapeError
from ..mechanism import Mechanism, checked_mechanism
from .model import EffortModel, Samples, base_of


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Brief):
    """Periodic motion for identification.

    Attributes
    ----------
    coefficients : driven joint to (2 harmonics,) Fourier coefficients of its coordinate minus `middle`: of sines, then of cosines [rad, m]
    middle : driven joint to the middle of its range [rad, m]
    period : period [s]
    condition, first_condition : condition number of the regressor with columns of unit norm (dimensionless), for this motion and for the best random
        motion before the search
    q, v, a, t : (n, nq), (n, nv), (n, nv), (n,) samples of the motion with closed loops [rad, m; rad/s, m/s; rad/s^2, m/s^2; s]
    """

    coefficients: Mapping[str, Array]
    middle: Mapping[str, float]
    period: float
    condition: float
    first_condition: float
    q: Array
    v: Array
    a: Array
    t: Array

    def joints(self, t: ArrayLike) -> dict[str, Array]:
        """Return a dictionary from each driven joint to its coordinates (n,) at times t [rad, m], for `follow` or the targets of a controller.

        Parameters
        ----------
        t : (n,) times [s]
        """
        t = _arrays.real_array("t", t)
        if t.ndim != 1:
            raise ShapeError(f"t must be (n,) times; got shape {t.shape}")
        waves = _waves(t, self.period, len(next(iter(self.coefficients.values()))) // 2)[0]
        return {name: self.middle[name] + waves @ c for name, c in self.coefficients.items()}


def exciting_motion(
    robot: Mechanism, ranges: Mapping[str, tuple[float, float]], period: float, *, near: ArrayLike | None = None, harmonics: int = 5,
    terms: Mapping[str, Sequence[str]] | None = None, bodies: Sequence[str] | None = None, efforts: Sequence[str] | None = None,
    samples: int = 60, rounds: int = 40, seed: int = 0,
) -> Excitation:  # fmt: skip
    """Optimise a periodic motion of the driven joints for the identification of base parameters.

    The motion minimises the condition number of the regressor, within the ranges of the joints and with closed loops. The method is an evolution
    strategy: in each round, eight random variations of the best motion are evaluated. Variations whose loops do not close, or change the branch, are
    rejected.

    Parameters
    ----------
    robot : the nominal mechanism
    ranges : driven joint with one coordinate to its (lowest, highest) coordinate [rad, m]; the joints must determine the motion
    period : period [s]
    near : (nq,) initial guess of the first configuration [rad, m]; default: the home configuration
    harmonics : number of harmonics of each joint
    terms, bodies : as in :func:`identify`
    efforts : names of the joints whose efforts will be measured; default: the joints of `ranges`
    samples : number of samples at which the motion is evaluated
    rounds, seed : number of rounds of the search, and seed of its random numbers

    Raises
    ------
    AssemblyError
        No motion within the ranges was found whose loops close; reduce the ranges.

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.identification import exciting_motion
    >>> robot = sarrus.mechanisms.five_bar()
    >>> home = robot.assemble()
    >>> x = {name: float(home[robot.joint(name).q_slice][0]) for name in robot.actuated}
    >>> motion = exciting_motion(robot, {name: (x[name] - 0.3, x[name] + 0.3) for name in x}, 4.0, rounds=5)
    >>> motion.condition <= motion.first_condition, bool(abs(robot.constraint_residual(motion.q)).max() < 1e-9)
    (True, True)
    """
    checked_mechanism(robot, "robot")
    _arrays.check_counts(harmonics=harmonics, samples=samples, rounds=rounds)
    period = _arrays.checked_number("period", period)
    _arrays.check_mapping("ranges", ranges, "joints to (lowest, highest)")
    both = np.stack([_arrays.real_array(f"ranges['{name}']", x) for name, x in ranges.items()])
    if both.ndim != 2 or both.shape[1] != 2:
        raise ShapeError(f"ranges must be (lowest, highest) of each joint; got {dict(ranges)}")
    low, high = both.T
    if not (low < high).all() or not np.isfinite(high - low).all():
        raise ModelError(f"ranges must be (lowest, highest), the first below the second; got {dict(ranges)}")
    measured = [] if efforts is None else _arrays.checked_names("efforts", efforts)
    model = EffortModel(robot, tuple(measured or ranges), terms, bodies)
    rng = np.random.default_rng(_arrays.checked_count("seed", seed, 0))
    t = np.linspace(0.0, period, samples, endpoint=False)
    waves, middle, kept = _waves(t, period, harmonics), 0.5 * (low + high), None
    start = near if near is not None else robot.assemble(near=dict(zip(ranges, middle.tolist(), strict=True)))

    def motion(c: Array) -> tuple[Array, Array, Array] | None:
        """Return q, v and a for coefficients (joints, 2 harmonics); None if loops cannot be closed."""
        at = [dict(zip(ranges, (w @ c.T).T, strict=True)) for w in waves]
        try:
            q = robot.follow({name: middle[i] + x for i, (name, x) in enumerate(at[0].items())}, start)
        except AssemblyError:
            return None
        v = robot.complete_velocity(q, at[1], return_status=True)[0]
        a = robot.complete_acceleration(q, v, at[2], return_status=True)[0]
        return (q, v, a) if np.isfinite(a).all() else None

    def condition(moved: tuple[Array, Array, Array] | None) -> float:
        nonlocal kept
        if moved is None:
            return float(np.inf)
        if kept is None:
            kept = base_of(model, Samples(dict.fromkeys(ranges, t), *moved)).kept
        X = (model.turn_of_motors[:, None, None] * model.rows(*moved, kept)[..., :-1]).reshape(-1, len(kept))
        return float(np.linalg.cond(X / np.maximum(np.linalg.norm(X, axis=0), 1e-300)))

    def within(c: Array) -> Array:
        """Return the coefficients scaled to the largest motion within the ranges."""
        x = waves[0] @ c.T
        return np.asarray(c * (0.5 * (high - low) / np.maximum(np.abs(x).max(axis=0), 1e-300))[:, None])

    best, lowest, size, first = np.zeros((len(low), 2 * harmonics)), float(np.inf), 0.3, float(np.inf)
    falling = np.tile(1.0 / np.arange(1, harmonics + 1), 2)
    for k in range(rounds + 3):
        drawn = k < 3 or not np.isfinite(lowest)
        for _ in range(8):
            change = rng.normal(size=best.shape) * falling * 0.5 * (high - low)[:, None]
            c = within(change if drawn else best + size * change)
            if (value := condition(motion(c))) < lowest:
                best, lowest, size = c, value, min(1.3 * size, 0.5)
        size = max(0.85 * size, 0.01)
        first = lowest if k < 3 else first
    moved = motion(best)
    if moved is None or not np.isfinite(lowest):
        raise AssemblyError(
            f"none of {8 * (rounds + 3)} motions in these ranges closes the loops on one branch: narrow the ranges"
        )
    each = {name: best[i] for i, name in enumerate(ranges)}
    return Excitation(each, dict(zip(ranges, middle.tolist(), strict=True)), period, lowest, first, *moved, t)


def _waves(t: Array, period: float, harmonics: int) -> tuple[Array, Array, Array]:
    """Return sines and cosines (n, 2 harmonics), and their first two derivatives."""
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    sin, cos = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    return np.hstack([sin, cos]), np.hstack([w * cos, -w * sin]), np.hstack([-(w**2) * sin, -(w**2) * cos])
