"""Functions for all examples: tables, figures, films, motors with recorded efforts, and the command line."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from os import PathLike
from typing import NamedTuple

import numpy as np

from sarrus import Trajectory
from sarrus.control import FeedforwardEffort
from sarrus.figures import canvas as plot
from sarrus.laws import spline

Path = str | PathLike[str]


class Panel(NamedTuple):
    """Curves over one axis: name -> values (n,) over x (n,)."""

    title: str
    y_label: str
    x: np.ndarray
    lines: Mapping[str, np.ndarray]
    x_label: str = "t [s]"
    equal: bool = False  # True: equal scales of both axes


def table(title: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[float | None]]]) -> None:
    """Print a table of numbers; None is a value that the publication lacks, or a time that the simulation did not reach."""
    rows = [(name, ["-" if x is None else f"{x:.7g}" for x in numbers]) for name, numbers in rows]
    wide = max(len(name) for name, _ in rows)
    print(f"\n{title}\n{'':{wide}}" + "".join(f"{column:>18}" for column in columns))
    for name, numbers in rows:
        print(f"{name:{wide}}" + "".join(f"{x:>18}" for x in numbers))


def figure(title: str, panels: Sequence[Panel], output: Path | None) -> None:
    """Draw panels in a column, and write them to a file (.png, .pdf, .svg); do nothing if `output` is None."""
    if output is None:
        return
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(6.4, 3.0 * len(panels) + 0.4), layout="constrained", dpi=150)
    sheet.suptitle(title, fontsize=13, fontweight="bold")
    for ax, panel in zip(np.atleast_1d(sheet.subplots(len(panels))), panels, strict=True):
        plot.curves(panel.x, panel.lines, panel.y_label, ax=ax)
        ax.set_title(panel.title, loc="left", fontsize=11, pad=22 if ax.get_legend() else 6)
        ax.set_xlabel(panel.x_label, fontsize=11)
        if panel.equal:
            ax.autoscale(axis="x")
            ax.set_aspect("equal", adjustable="datalim")
    sheet.savefig(output)
    print(f"\nfigures: {output}")


def films(runs: Mapping[str, Trajectory], folder: Path | None, speed: float = 1.0) -> None:
    """Write a film of each simulation to folder/name.html; do nothing if `folder` is None."""
    if folder is None:
        return
    for name, run in runs.items():
        page = os.path.join(folder, f"{name}.html")
        run.animate(page, speed=speed)
        print(f"film: {page}")


def played_back(joints: Sequence[str], t: np.ndarray, efforts: np.ndarray) -> list[FeedforwardEffort]:
    """Return motors that apply efforts (n, joints) [N m, N] at times t (n,) [s], interpolated by splines."""
    slopes = np.gradient(efforts, t, axis=0, edge_order=2)[[0, -1]].T
    return [
        FeedforwardEffort(joint, spline(t, u, slopes=tuple(ends)))
        for joint, u, ends in zip(joints, efforts.T, slopes, strict=True)
    ]


def command_line(main: Callable[..., object]) -> None:
    """Run an example's main(output, duration) with the arguments of the command line."""
    summary = main.__globals__["__doc__"].splitlines()[0]
    parser = ArgumentParser(description=summary)
    parser.add_argument("--output", metavar="FILE", help="file for the figures (.png, .pdf, .svg); default: no figures")
    parser.add_argument(
        "--duration", type=float, metavar="SECONDS", help="simulated time; default: the time in the publication"
    )
    if "films" in signature(main).parameters:
        parser.add_argument("--films", metavar="FOLDER", help="folder for films, one page for each; default: no films")
    arguments = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    main(**arguments)
