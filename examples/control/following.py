"""Functions for the demonstrations of control: tables, figures, target motions and the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sarrus import Rotation
from sarrus.laws import Law, spline

sys.path.append(str(Path(__file__).parents[1]))  # folder of showing.py
from showing import Panel, figure, table

__all__ = ["Figures", "Panel", "along", "command_line", "norm", "rise", "table", "written"]

Figures = str | Path | None


def rise(t: np.ndarray | float, duration: float) -> np.ndarray:
    """Return values that rise from 0 to 1 within a duration [s], with continuous acceleration."""
    s = np.clip(np.asarray(t) / duration, 0.0, 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)


def along(t: np.ndarray, poses: np.ndarray) -> list[Law]:
    """Return six time functions, rotation vector and position, through poses (n, 4, 4) at times t (n,) [s].

    Rotations have to stay below half a turn.
    """
    x = np.array([np.r_[Rotation.from_matrix(X[:3, :3]).log(), X[:3, 3]] for X in poses])
    slopes = np.gradient(x, t, axis=0, edge_order=2)[[0, -1]].T
    return [spline(t, values, slopes=tuple(ends)) for values, ends in zip(x.T, slopes, strict=True)]


def written(folder: Figures, name: str, title: str, panels: list[Panel]) -> None:
    """Write the figure folder/name.png; do nothing if `folder` is None."""
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        figure(title, panels, Path(folder) / f"{name}.png")


def command_line(main: Callable[..., Any]) -> None:
    """Run a demonstration's main(figures, duration) with the arguments of the command line."""
    parser = ArgumentParser(description=(main.__globals__["__doc__"] or "").splitlines()[0])
    parser.add_argument("--figures", metavar="FOLDER", help="folder for figures; default: no figures")
    parser.add_argument("--duration", type=float, metavar="SECONDS", help="simulated time")
    main(**{name: value for name, value in vars(parser.parse_args()).items() if value is not None})


def norm(x: np.ndarray) -> np.ndarray:
    """Return the norm along the last axis."""
    return np.linalg.norm(x, axis=-1)
