"""Checks of the arguments of simulate() and simulate_many(), before a run starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, check_mapping, checked_number, real_array, real_rows
from ..errors import ModelError, check_choice
from ..mechanism import Mechanism
from .limits import OnLimits

METHODS: dict[str, _core.Method] = _core.methods
MethodName = Literal[
    "auto", "euler", "semi_implicit", "rk4", "rkmk4", "dopri5", "implicit_midpoint", "independent", "contact", "rosenbrock"
]  # fmt: skip
Stabilisation = Literal["none", "corrective", "baumgarte", "projection"]
STABILISATIONS: dict[str, tuple[float, float]] = _core.stabilisations  # default gains
MOST_STEPS = 2**53  # the largest count that a double represents exactly
SHORTEST_PERIOD = 1e-9  # shortest sampling period, as a fraction of the duration: more samples would take days
SHORTEST_PART = 1e-3  # shortest sampling period, as a fraction of a step: Ctrl-C is only checked between steps
STEP = 1e-3  # default step [s]
FINER = (
    4,
    16,
    64,
)  # divisors of the default step, powers of two, that are tried in turn if longer steps are unreliable
MOST_FINER = 2**20  # largest number of shorter steps of a run


CHOICES: dict[str, Any] = {"method": ("auto", *METHODS), "limits": OnLimits, "stabilisation": STABILISATIONS}


class StepOptions(TypedDict, total=False):
    """Options of a step; see :func:`~sarrus.simulate`."""

    method: MethodName
    stabilisation: Stabilisation
    gains: tuple[float, float] | None


class RunOptions(StepOptions, total=False):
    """Options of a run; see :func:`~sarrus.simulate`."""

    dt: float | None
    limits: OnLimits
    start: float
    near: Mapping[str, ArrayLike] | None


@dataclass(frozen=True, eq=False)
class Stepping:
    """Checked options of a run, and its duration [s]."""

    duration: float
    method: str = "auto"
    dt: float = STEP
    stabilisation: str = "projection"
    gains: Any = None
    limits: str = "warn"
    start: float = 0.0
    near: Mapping[str, ArrayLike] | None = None

    @classmethod
    def checked(cls, function: str, mechanism: Mechanism, duration: Any, options: Mapping[str, object]) -> Stepping:
        """Check the options of a call of `function` (its name, for messages), and add defaults."""
        for name in options.keys() - DEFAULTS.keys():
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        values: dict[str, Any] = DEFAULTS | dict(options)
        if values["dt"] is None:
            values["dt"] = STEP
        for name, choices in CHOICES.items():
            check_choice(name, values[name], choices)
        values["start"], duration, values["dt"] = checked_times(values["start"], duration, values["dt"])
        values["gains"] = checked_gains(mechanism, values["stabilisation"], values["gains"])
        return cls(duration, **values)


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Stepping)[1:]} | {"dt": None}


def checked_times(start: Any, duration: Any, dt: Any) -> tuple[float, float, float]:
    """Return start, duration and step in seconds; raise ValueError if the number of steps exceeds MOST_STEPS."""
    start = checked_number("start", start, "")
    duration = checked_number("duration", duration, "seconds, not negative")
    step = checked_number("dt", dt)
    if not np.isfinite(start + duration):
        raise ValueError(f"start + duration must be finite; got {start!r} and {duration!r}")
    if step < np.finfo(np.float64).tiny or duration > step * MOST_STEPS:
        raise ValueError(f"dt = {step!r} s is too short: {duration!r} s must be at most 2^53 steps of it")
    return start, duration, step


def checked_gains(mechanism: Mechanism, stabilisation: str, values: Any) -> tuple[float, float]:
    """Return the two gains of a stabilisation, or its default gains if `values` is None."""
    if stabilisation == "corrective" and mechanism.nc and mechanism._without_inertia:
        raise ModelError(
            f"stabilisation 'corrective' needs inertia along each joint of the tree; joint '{mechanism._without_inertia[0]}' has none: "
            "pass 'projection' or 'baumgarte', or give inertia to a body that the joint moves"
        )
    defaults = STABILISATIONS[stabilisation]
    if values is None:
        return defaults
    if not any(defaults):
        names = " and ".join(repr(name) for name, gains in STABILISATIONS.items() if any(gains))
        raise ValueError(f"stabilisation '{stabilisation}' has no gains, only {names} have; got {values!r}")
    try:
        gains = real_array("gains", values)
        sound = gains.shape == (2,) and bool((np.isfinite(gains) & (gains >= 0.0)).all())
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(
            f"gains must be two finite numbers that are not negative, (of velocities, of positions); got {values!r}"
        )
    return float(gains[0]), float(gains[1])


def check_longest_step(max_step: float, start: float, duration: float) -> None:
    latest = max(abs(start), abs(start + duration))
    if latest + max_step == latest or duration > max_step * MOST_STEPS:
        raise ValueError(
            f"max_step = {max_step!r} s is too short: time near {latest!r} s does not advance by such a step, or {duration!r} s take more "
            "than 2^53 steps"
        )


def check_advance(start: float, duration: float, dt: float) -> None:
    """Raise ValueError if times are so large that adding dt, or the duration, does not change them."""
    end = start + duration
    spacing = float(np.spacing(max(abs(start), abs(end))))
    if duration > 0.0 and (end == start or dt < spacing):
        raise ValueError(
            f"time cannot advance from start = {start!r} s by dt = {dt!r} s for {duration!r} s: adjacent doubles differ by {spacing:.3g} s; "
            "pass a start nearer to zero"
        )


def finer_steps(stepping: Stepping) -> Iterator[int]:
    """Yield the numbers by which dt may be divided: time advances, and the number of steps is bounded."""
    end = stepping.start + stepping.duration
    shortest = max(stepping.duration / MOST_FINER, float(np.spacing(max(abs(stepping.start), abs(end)))))
    yield from (divisor for divisor in FINER if stepping.dt / divisor >= shortest)


def check_periods(terms: Sequence[Mapping[str, Any]], duration: float, dt: float) -> None:
    """Raise ValueError for a period of SampleAndHold that is too short for the step or the duration."""
    least = max(SHORTEST_PERIOD * duration, SHORTEST_PART * dt) * (1.0 - 1e-9)
    for period in (term["period"] for term in terms if term["kind"] == "SampleAndHold"):
        if period < least:
            raise ValueError(
                f"period = {period!r} s of SampleAndHold is too short for {duration!r} s in steps of dt = {dt!r} s; expected at least {least:.3g} s. "
                "Give the controllers without SampleAndHold, or a smaller dt"
            )


def check_memory(states: float, runs: int, size: int) -> None:
    """Raise MemoryError if the samples of the runs would exceed this machine's memory; called before a run starts."""
    try:
        available = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # this operating system does not report the size of its memory
        return
    needed = 8.0 * states * runs * max(size, 1)
    if needed > available:
        raise MemoryError(
            f"the samples ({states * runs:.3g} states of {size} numbers) need {needed / 2**30:.3g} GiB, but this machine has {available / 2**30:.3g} GiB: pass "
            f"a longer dt, or store fewer samples by {'every=' if runs > 1 else 'times='}"
        )


def checked_turns(mechanism: Mechanism, near: Mapping[str, ArrayLike] | None, runs: int) -> dict[str, Array]:
    """Return joint name -> nearby coordinates (runs, nq of the joint), which select the initial revolutions of loop joints."""
    check_mapping("near", near, "joints' names to their coordinates", 0, optional=True)
    turns = {}
    for name, coordinates in (near or {}).items():
        if not mechanism.joint(name).closes_loop:
            raise ModelError(
                f"near: joint '{name}' is in the tree, so q already contains its turns; expected a loop joint"
            )
        size = mechanism.joint(name).type.nq
        rows = real_rows(f"near['{name}']", coordinates, size, (runs,))
        turns[name] = np.broadcast_to(rows, (runs, size))
    return turns


def progress_bar(total: float, shown: bool, unit: str = "s") -> Any:
    """Return a progress bar of tqdm, or None if it is not `shown`."""
    if not shown:
        return None
    from .._files import needed

    return needed("tqdm.auto", "progress=True needs tqdm", "tqdm").tqdm(total=total, unit=unit, unit_scale=unit == "s")
