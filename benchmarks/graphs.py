"""Cost of forward dynamics for mechanisms with many loops (rings, strips, nets), compared with a sparse factorisation.

The comparison is SciPy's factorisation of the saddle matrix of the same mechanism in maximal coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import sarrus

from .tables import Row, Run, installed

MU = 2e-15
BATCH = 64


def rows(run: Run) -> list[Row]:
    """Measure families of mechanisms and the growth of their times, relative to a sparse factorisation; also batches, and large mechanisms."""
    m, results, seconds = sarrus.mechanisms, [], run.seconds
    peer = installed("scipy")

    def family(name: str, sizes: tuple[int, ...], make: Callable[[int], sarrus.Mechanism]) -> None:
        run.tell(name)
        times = [_one(make(n), seconds) for n in sizes]
        results.extend(Row(f"{name}, {n}", 1e3 * t, "ms") for n, t in zip(sizes, times, strict=True))
        results.append(Row(f"{name}, growth a doubling", max(b / a for a, b in pairwise(times)), "times"))

    family("ring", run.of((50, 100, 200, 400), (50, 100, 200, 400), (4, 8)), m.ring)
    family("strip", run.of((4, 8, 16, 32), (4, 8, 16, 32), (1, 2)), lambda k: m.net(4, k))
    ratios = []
    for k in run.of((8, 12, 20), (8, 12, 20), (3,)):
        run.tell(f"net of {k} x {k}")
        robot = m.net(k, k)
        if peer:
            ours, theirs = _interleaved(partial(_dynamics, robot), Saddle(robot, robot.neutral()).factor, seconds)
            ratios.append(ours / theirs)
            results.append(Row(f"net, {k} x {k}", 1e3 * ours, "ms", f"{ours / theirs:.2f} of splu"))
        else:
            results.append(Row(f"net, {k} x {k}", 1e3 * _one(robot, seconds), "ms"))
    results.append(Row("net, over splu's factorisation alone", max(ratios, default=None), ""))
    for name, make in (
        ("ring", partial(m.ring, run.of(100, 100, 8))),
        ("net", partial(m.net, *run.of((8, 8), (8, 8), (2, 2)))),
    ):
        robot = make()
        one, many = _interleaved(partial(_dynamics, robot), partial(_dynamics, robot, BATCH), seconds)
        results.append(Row(f"{name}, batch over one state", one / (many / BATCH), "times", robot.name))
    run.tell("large ones")
    few, side, steps = run.of((20, 40, 500), (20, 40, 500), (3, 4, 8))
    start = perf_counter()
    m.net(few, few)
    results.append(Row("net of 400 four-bars, built", perf_counter() - start, "s", f"{few} x {few}"))
    robot = m.net(side, side)
    results.append(Row("net of 1600 four-bars", _one(robot, seconds), "s", f"{side} x {side}"))
    results.append(Row("net of 1600 four-bars: error", _error(robot) if peer else None))
    ladder = m.four_bar_ladder(steps)
    q = ladder.assemble()
    near = ladder.integrate(q, 1e-3 * np.random.default_rng(0).normal(size=ladder.nv))
    assembled = _time(lambda: ladder.assemble(near=near), run.of(0.5, 0.3, 0.0))
    return [*results, Row("ladder of 500, assembled from 1e-3 off", assembled, "s", f"of {steps}")]


def plot(path: Path, rows: Sequence[Row], run: Run) -> None:
    """Draw the cost of four families of mechanisms over the number of loops."""
    from matplotlib.figure import Figure

    m, seconds = sarrus.mechanisms, run.of(1.0, 0.1, 0.0)
    families: dict[str, tuple[Callable[[int], sarrus.Mechanism], list[int], Callable[[int], int]]] = {
        "ladder of n": (m.four_bar_ladder, [4, 16, 64, 256], lambda n: n),
        "strip of 1 x n": (lambda n: m.net(1, n), [4, 16, 64, 256], lambda n: n),
        "strip of 4 x n": (lambda n: m.net(4, n), [4, 8, 16, 32, 64], lambda n: 4 * n),
        "net of n x n": (lambda n: m.net(n, n), [2, 4, 8, 16, 32], lambda n: n * n),
    }
    ax = Figure(figsize=(6.4, 4.0), layout="constrained").add_subplot()
    for (name, (make, all_sizes, loops)), style in zip(families.items(), ("-", "--", "-.", ":"), strict=True):
        sizes = run.of(all_sizes, all_sizes, all_sizes[:2])
        ax.loglog(
            [loops(n) for n in sizes], [1e3 * _one(make(n), seconds) for n in sizes], style, color="black", label=name
        )
    ax.set_xlabel("loops")
    ax.set_ylabel("forward dynamics, one state [ms]")
    ax.legend(frameon=False)
    ax.figure.savefig(path, dpi=120)


def _dynamics(robot: sarrus.Mechanism, count: int = 0) -> Any:
    shape = (count,) if count else ()
    q, rest = np.broadcast_to(robot.neutral(), (*shape, robot.nq)), np.zeros((*shape, robot.nv))
    return robot.forward_dynamics(q, rest, rest, threads=1)


def _one(robot: sarrus.Mechanism, seconds: float) -> float:
    return _time(lambda: _dynamics(robot), seconds)


def _time(call: Callable[[], object], seconds: float) -> float:
    return _interleaved(call, call, seconds)[0]


def _interleaved(first: Callable[[], object], second: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Return the median times of both functions, which are timed alternately."""
    times: tuple[list[float], list[float]] = ([], [])
    first(), second()
    end = perf_counter() + seconds
    while perf_counter() < end or len(times[0]) < 5:
        for call, own in zip((first, second), times, strict=True):
            start = perf_counter()
            call()
            own.append(perf_counter() - start)
    return median(times[0]), median(times[1])


class Saddle:
    """Saddle matrix [M G^T; G -mu] of floating bodies at rest.

    G has rows for all joints, which are pins about y or balls; mu is the regularisation.
    """

    def __init__(self, robot: sarrus.Mechanism, q: np.ndarray) -> None:
        import scipy.sparse as sparse

        d = robot.description
        self.bodies = {b.name: k for k, b in enumerate(d.bodies)}
        pose = {b.name: robot.pose(q, b.name) for b in d.bodies} | {"ground": np.eye(4)}
        masses, force = [], []
        for b in d.bodies:
            R = pose[b.name][:3, :3]
            about = R @ b.inertia.about_com @ R.T
            masses.append(np.block([[about, np.zeros((3, 3))], [np.zeros((3, 3)), b.inertia.mass * np.eye(3)]]))
            force.append(np.r_[np.zeros(3), b.inertia.mass * np.asarray(d.gravity)])
        row = 0
        data: list[tuple[int, int, float]] = []
        for j in d.joints:
            frame = pose[j.parent] @ j.at_parent.matrix
            ball = j.joint.kind == "Spherical"
            for name, sign in ((j.parent, -1.0), (j.child, 1.0)):
                if name == "ground":
                    continue
                body = d.bodies[self.bodies[name]]
                arm = frame[:3, 3] - (pose[name] @ np.r_[body.inertia.com, 1.0])[:3]
                part = np.hstack([-_skew(arm), np.eye(3)])
                if not ball:
                    part = np.vstack([part, np.hstack([np.eye(3)[[0, 2]], np.zeros((2, 3))])])
                for r, c in zip(*np.nonzero(part), strict=True):
                    data.append((row + int(r), 6 * self.bodies[name] + int(c), sign * part[r, c]))
            row += 3 if ball else 5
        r, c, x = zip(*data, strict=True)
        self.M = sparse.block_diag(masses).tocsc()
        self.G = sparse.csc_matrix((x, (r, c)), shape=(row, 6 * len(d.bodies)))
        self.f = np.concatenate(force)
        size = np.asarray(self.G.multiply(self.G).sum(axis=1)).ravel() / self.M.diagonal().max()
        spin = 1e-9 * sparse.diags(
            self.M.diagonal().max() * np.ones(len(self.f))
        )  # a thin rod has no inertia about its own axis, so that the matrix would be singular
        self.matrix = sparse.bmat([[self.M + spin, self.G.T], [self.G, -MU * sparse.diags(size)]]).tocsc()
        self.exact = sparse.bmat([[self.M, self.G.T], [self.G, None]]).tocsr()

    def factor(self) -> Any:
        """Factorise by minimum degree, without pivoting."""
        import scipy.sparse.linalg as linalg

        return linalg.splu(
            self.matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )

    def accelerations(self) -> np.ndarray:
        """Return accelerations (bodies, 6) [rad/s², m/s² of the centre of mass], with pivoting and refinement: an independent reference."""
        import scipy.sparse as sparse
        import scipy.sparse.linalg as linalg

        n, rows = len(self.f), self.G.shape[0]
        b = np.r_[self.f, np.zeros(rows)]
        regular = (self.exact - sparse.diags(np.r_[np.zeros(n), np.full(rows, 1e-9)])).tocsc()
        lu, x = linalg.splu(regular), np.zeros(n + rows)
        for _ in range(12):
            x += lu.solve(b - self.exact @ x)
        return x[:n].reshape(-1, 6)


def _skew(p: np.ndarray) -> np.ndarray:
    return np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])


def _error(robot: sarrus.Mechanism) -> float:
    """Return the error of the bodies' angular accelerations, relative to the largest."""
    q, rest = robot.neutral(), np.zeros(robot.nv)
    a = robot.forward_dynamics(q, rest, rest)
    want = Saddle(robot, q).accelerations()
    got = np.array([robot.pose(q, b)[:3, :3] @ robot.acceleration(q, rest, a, b)[:3] for b in robot.bodies])
    return float(np.abs(got - want[:, :3]).max() / np.abs(want[:, :3]).max())
