"""What the demonstrations share: a table, figures, motions to follow, a command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))  # where showing.py stands, which all examples share
from showing import Panel, figure, table

__all__ = ["Panel", "command_line", "figure", "rise", "table", "written"]

Figures = str | Path | None


def rise(t: float, duration: float) -> tuple[float, float, float]:
    """From 0 to 1 without a jump in the acceleration: value, rate, acceleration."""
    s = min(max(t / duration, 0.0), 1.0)
    value, rate = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2
    return value, rate / duration, 60 * s * (1 - s) * (1 - 2 * s) / duration**2


def written(folder: Figures, name: str, title: str, panels: list[Panel]) -> None:
    """The figure folder/name.png; nothing without a folder."""
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        figure(title, panels, Path(folder) / f"{name}.png")


def command_line(main: Callable[..., Any]) -> None:
    """Run a demonstration's main(figures, duration) with what stands on the command line."""
    parser = ArgumentParser(description=(main.__globals__["__doc__"] or "").splitlines()[0])
    parser.add_argument("--figures", metavar="FOLDER", help="where figures go; default: none")
    parser.add_argument("--duration", type=float, metavar="SECONDS", help="of what is simulated")
    main(**{name: value for name, value in vars(parser.parse_args()).items() if value is not None})


def norm(x: np.ndarray) -> np.ndarray:
    """Of the last axis."""
    return np.linalg.norm(x, axis=-1)
