"""What callers of simulate() and simulate_many() give, looked at before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
STABILISATIONS: dict[str, tuple[float, float]] = _core.stabilisations  # and their gains
MOST_STEPS = 2**53  # which a double still counts
SHORTEST_PERIOD = 1e-9  # of the duration: more samples than that never end
SHORTEST_PART = 1e-3  # of a step: signals are looked for between steps


CHOICES: dict[str, Any] = {"method": ("auto", *METHODS), "limits": OnLimits, "stabilisation": STABILISATIONS}


class StepOptions(TypedDict, total=False):
    """How steps are taken: see :func:`~sarrus.simulate`."""

    method: MethodName
    stabilisation: Stabilisation
    gains: tuple[float, float] | None


class RunOptions(StepOptions, total=False):
    """And what runs of them have in common."""

    dt: float
    limits: OnLimits
    start: float
    near: Mapping[str, ArrayLike] | None


@dataclass(frozen=True, eq=False)
class Stepping:
    """These options, each of which means something, and how long it goes on [s]."""

    duration: float
    method: str = "auto"
    dt: float = 1e-3
    stabilisation: str = "projection"
    gains: Any = None
    limits: str = "warn"
    start: float = 0.0
    near: Mapping[str, ArrayLike] | None = None

    @classmethod
    def checked(cls, function: str, robot: Mechanism, duration: Any, options: Mapping[str, object]) -> Stepping:
        """Of a function of this name."""
        for name in options.keys() - DEFAULTS.keys():
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        how: dict[str, Any] = DEFAULTS | dict(options)
        for what, known in CHOICES.items():
            check_choice(what, how[what], known)
        how["start"], duration, how["dt"] = checked_times(how["start"], duration, how["dt"])
        how["gains"] = checked_gains(robot, how["stabilisation"], how["gains"])
        return cls(duration, **how)


DEFAULTS = {field.name: field.default for field in fields(Stepping)[1:]}


def checked_times(start: Any, duration: Any, dt: Any) -> tuple[float, float, float]:
    """Seconds that can be counted in steps."""
    start = checked_number("start", start, "")
    duration = checked_number("duration", duration, "seconds, not negative")
    step = checked_number("dt", dt)
    if not np.isfinite(start + duration):
        raise ValueError(f"start + duration must be finite; got {start!r} and {duration!r}")
    if step < np.finfo(np.float64).tiny or duration > step * MOST_STEPS:
        raise ValueError(f"dt = {step!r} s is too short: {duration!r} s must be at most 2^53 steps of it")
    return start, duration, step


def checked_gains(mechanism: Mechanism, stabilisation: str, asked: Any) -> tuple[float, float]:
    """The two gains of a stabilisation, its own where none are given."""
    if stabilisation == "corrective" and mechanism.nc and mechanism._without_inertia:
        raise ModelError(
            f"stabilisation 'corrective' pushes the bodies with their loops open, where nothing has inertia along joint "
            f"'{mechanism._without_inertia[0]}': take 'projection' or 'baumgarte', or give a body that it carries a mass"
        )
    defaults = STABILISATIONS[stabilisation]
    if asked is None:
        return defaults
    if not any(defaults):
        takes = " and ".join(repr(name) for name, gains in STABILISATIONS.items() if any(gains))
        raise ValueError(f"stabilisation '{stabilisation}' takes no gains, as {takes} do; got {asked!r}")
    try:
        gains = real_array("gains", asked)
        sound = gains.shape == (2,) and bool((np.isfinite(gains) & (gains >= 0.0)).all())
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(
            f"gains must be two finite numbers that are not negative, (of velocities, of positions); got {asked!r}"
        )
    return float(gains[0]), float(gains[1])


def check_longest_step(max_step: float, start: float, duration: float) -> None:
    latest = max(abs(start), abs(start + duration))
    if latest + max_step == latest or duration > max_step * MOST_STEPS:
        raise ValueError(
            f"max_step = {max_step!r} s is too short: time does not advance by it near {latest!r} s, or {duration!r} s are more "
            "than 2^53 of it"
        )


def check_advance(start: float, duration: float, dt: float) -> None:
    """ValueError where times are so large that steps of dt, or the whole duration, would leave them as they are."""
    end = start + duration
    apart = float(np.spacing(max(abs(start), abs(end))))
    if duration > 0.0 and (end == start or dt < apart):
        raise ValueError(
            f"time cannot advance from start = {start!r} s by dt = {dt!r} s for {duration!r} s: doubles are {apart:.3g} s apart there; "
            "start nearer to zero"
        )


def check_periods(terms: Sequence[Mapping[str, Any]], duration: float, dt: float) -> None:
    """ValueError for a SampleAndHold period so short that a step, or the whole run, would be nothing but samples."""
    least = max(SHORTEST_PERIOD * duration, SHORTEST_PART * dt) * (1.0 - 1e-9)
    for period in (term["period"] for term in terms if term["kind"] == "SampleAndHold"):
        if period < least:
            raise ValueError(
                f"period = {period!r} s of SampleAndHold is too short for {duration!r} s in steps of dt = {dt!r} s: it must be at least {least:.3g} s. "
                "Give the controllers without SampleAndHold, or shorter steps"
            )


def check_memory(states: float, runs: int, size: int) -> None:
    """MemoryError for states that would not fit into this machine's memory, before any of them is computed."""
    try:
        there = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not on this system
        return
    needed = 8.0 * states * runs * max(size, 1)
    if needed > there:
        raise MemoryError(
            f"{states * runs:.3g} states of {size} numbers take {needed / 2**30:.3g} GiB, and this machine has {there / 2**30:.3g}: give a "
            f"longer dt, or keep fewer of them, by {'every=' if runs > 1 else 'times='}"
        )


def checked_turns(robot: Mechanism, near: Mapping[str, ArrayLike] | None, runs: int) -> dict[str, Array]:
    """Coordinates (runs, nq of the joint) from which turns of joints that close loops are counted."""
    check_mapping("near", near, "joints' names to their coordinates", 0, optional=True)
    turns = {}
    for name, coordinates in (near or {}).items():
        if not robot.joint(name).closes_loop:
            raise ModelError(f"near names joint '{name}', which stands in the tree: q says how often it has turned")
        size = robot.joint(name).type.nq
        rows = real_rows(f"near['{name}']", coordinates, size, (runs,))
        turns[name] = np.broadcast_to(rows, (runs, size))
    return turns


def progress_bar(total: float, shown: bool, unit: str = "s") -> Any:
    """Of tqdm, or None."""
    if not shown:
        return None
    from .._files import needed

    return needed("tqdm.auto", "progress=True shows a bar by tqdm", "tqdm").tqdm(
        total=total, unit=unit, unit_scale=unit == "s"
    )
