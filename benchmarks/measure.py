"""Interleaved timing. Only measurements that follow each other directly are compared, because the machine's speed changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

Sample = Callable[[], float]  # function that executes one short repetition, and returns seconds per state

FEWEST, MOST = 7, 300  # smallest and largest number of rounds


def interleave(sides: Mapping[str, Sample], seconds: float) -> dict[str, NDArray[np.float64]]:
    """Return the time per state (rounds,) [s] of each side, that is, of each function that is compared.

    The sides A, B, C are measured alternately (A, B, C, A, B, C, ...) for about `seconds`.
    """
    for sample in sides.values():
        sample()  # warms up caches, workspaces and branch predictors
    times: dict[str, list[float]] = {name: [] for name in sides}
    end = perf_counter() + seconds
    for i in range(MOST):
        if i >= FEWEST and perf_counter() > end:
            break
        for name, sample in sides.items():
            times[name].append(sample())
    return {name: np.array(t) for name, t in times.items()}


def repeated(sample: Callable[[int], float], states: int, seconds: float = 1e-3) -> Sample:
    """Return a sample that calls `sample(repeats)`; `repeats` is the number of passes through the states that take about `seconds`."""
    sample(1)
    repeats = max(1, round(seconds / (states * sample(1))))
    return lambda: sample(repeats)


def statement(code: str, variables: str, states: Sequence[object], **names: object) -> Sample:
    """Return a sample that times a line of Python for all `states`.

    Each state is unpacked into `variables`; `names` has all other names that the line uses. As in timeit, the line is compiled into the loop, so that
    the time includes no function call. It includes the loop itself, about 20 ns per pass.
    """
    names = {"states": states, "perf_counter": perf_counter, **names}
    source = f"""def loop(repeats, {", ".join(f"{name}={name}" for name in names)}):
    start = perf_counter()
    for _ in range(repeats):
        for {variables} in states:
            {code}
    return (perf_counter() - start) / (repeats * len(states))"""
    exec(source, names)
    loop: Callable[[int], float] = names["loop"]  # type: ignore[assignment]
    return repeated(loop, len(states))


def ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return median and quartiles of the ratios of measurements in the same round."""
    low, median, high = np.quantile(numerator / denominator, [0.25, 0.5, 0.75])
    return float(median), float(low), float(high)
