"""Errors of the accelerations of sarrus and of Pinocchio's two solvers, relative to a dense pseudo-inverse in extended precision.

The reference is in ``tests/oracles``: constraints are computed from geometry, and a = J^+ gamma + Z y with J Z = 0, in 80-bit NumPy if the machine
supports it. Run ``python -m benchmarks --accuracy`` in a checkout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracles import Closed

from .loop_models import FAST, LoopModel, States, all_closed, almost_flat
from .loop_peers import DEFAULT, SOURCE, NoPeerError, PinocchioLoops, Settings
from .peers import Array
from .tables import GOALS, Run

# singular values of J below this fraction of the largest one are rounding errors, because J is as exact as q
NEGLIGIBLE = 1e-11

STATES = 16
FEW_STATES = 3  # number of states for mechanisms with many velocities
LARGE = 100

ANYWHERE, NEARLY_FLAT = (GOALS["accuracy"][f"error, {where}"].number for where in ("anywhere", "nearly flat"))
ANGLES = (1e-2, 1e-4, 1e-6, 0.0)  # distances from the flat position [rad]
# largest factor between the reported and the true residual, unless both are rounding
HONEST = GOALS["accuracy"]["residual that is reported, off by"].number
ROUNDING = 1e-13
STILL = 1e-4  # rows with a smaller mobility, relative to the largest, are considered immobile

PEERS = {
    "exact, default": ("exact", DEFAULT),
    "exact, mu 1e-6": ("exact", Settings(mu=1e-6)),
    "exact, mu 1e-8": ("exact", Settings(mu=1e-8)),
    "exact, mu 1e-10": ("exact", Settings(mu=1e-10)),
    "exact, mu 1e-12": ("exact", Settings(mu=1e-12)),
    "exact, mu 1e-14": ("exact", Settings(mu=1e-14)),
    "ABA, default": ("loop-constrained ABA", DEFAULT),
    "ABA, mu 1e-4": ("loop-constrained ABA", Settings(mu=1e-4)),
    "ABA, mu 1e-6": ("loop-constrained ABA", Settings(mu=1e-6)),
    "ABA, mu 1e-8": ("loop-constrained ABA", Settings(mu=1e-8)),
    "ABA, mu 1e-10": ("loop-constrained ABA", Settings(mu=1e-10)),
    "ABA, mu 1e-12": ("loop-constrained ABA", Settings(mu=1e-12)),
}


@dataclass(frozen=True)
class Accuracy:
    """Errors of one mechanism at some states.

    Attributes
    ----------
    section : "anywhere" or "nearly flat"
    smallest : smallest singular value of J above rounding, relative to the largest, in the worst state
    error : relative error of sarrus' accelerations in the worst state, one state per call
    batch_error : relative error of sarrus' accelerations in the worst state, all states in one call
    bar : limit of the error
    reported, true : relative residual that sarrus reports in the worst state, and the true residual
    peers : (solver, settings) -> relative error in the worst state; NaN is the worst error
    residuals : (solver, settings) -> (reported, true) absolute residual of J a = gamma in the worst state
    """

    section: str
    title: str
    states: int
    smallest: float
    error: float
    batch_error: float
    bar: float
    reported: float
    true: float
    peers: dict[str, float] = field(default_factory=dict)
    residuals: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        return max(self.error, self.batch_error) <= self.bar  # False if one of the errors is NaN

    @property
    def off_by(self) -> float:
        """Ratio of the reported and the true residual, the larger one divided by the smaller one; 1 if both are rounding errors."""
        low, high = sorted((self.reported, self.true))
        return high / low if high > ROUNDING else 1.0

    @property
    def honest(self) -> bool:
        return self.off_by <= HONEST


class Reference:
    """Dense reference solution of one mechanism.

    Parameters
    ----------
    robot : `sarrus.Mechanism`
    """

    def __init__(self, robot: Any) -> None:
        self.robot = robot
        self._oracle = Closed(robot.description, closing=robot.loop_joints, dtype=np.longdouble, negligible=NEGLIGIBLE)

    def accelerations(self, states: States) -> Array:
        """Return accelerations (count, nv), in extended precision."""
        return np.array([self._oracle.forward_dynamics(*state) for state in zip(*states)])

    def residual(self, q: Array, v: Array, tau: Array, a: Array, multipliers: Array) -> float:
        """Return the norm of [M a + h - tau - J^T multipliers; J a - gamma], relative to [tau - h; gamma].

        Entries are weighted by their mobility: 1/M_ii for velocities, and 1/(J M^-1 J^T)_rr for constraint rows. Immobile rows, such as out-of-plane
        rows of a planar linkage, contain only rounding errors. Their weight is therefore limited.
        """
        oracle = self._oracle
        M = oracle.mass_matrix(q)
        h = oracle.inverse_dynamics(q, v, np.zeros(self.robot.nv))
        # uses the constraint rows of sarrus, because the multipliers refer to them
        J = np.asarray(self.robot.constraint_jacobian(q), np.longdouble)
        gamma = np.asarray(self.robot.constraint_bias(q, v), np.longdouble)
        force_weights = 1 / np.diag(M)
        mobility = np.einsum("rk,rk->r", J, np.linalg.solve(M.astype(float), J.T.astype(float)).T)
        row_weights = 1 / np.maximum(mobility, STILL * mobility.max())
        left = _square(M @ a + h - tau - J.T @ multipliers, force_weights) + _square(J @ a - gamma, row_weights)
        scale = _square(tau - h, force_weights) + _square(gamma, row_weights)
        return float(np.sqrt(left / scale)) if scale else 0.0

    def open_by(self, q: Array, v: Array, a: Array) -> float:
        """Return the largest entry of J a - gamma."""
        J, _, gamma = self._oracle.constraint_rows(q, v)
        return float(np.abs(J @ a - gamma).max())

    def smallest(self, q: Array) -> float:
        """Return the smallest singular value of J above rounding, relative to the largest."""
        s = np.linalg.svd(self.robot.constraint_jacobian(q), compute_uv=False)
        return float(min(s[s > NEGLIGIBLE * s[0]] / s[0]))


def relative_error(got: Array, wanted: Array) -> Array:
    """Return the relative errors (count,), each in units of the norm of the state's reference."""
    wanted = np.asarray(wanted, np.longdouble)
    sizes = np.sqrt(np.sum(wanted**2, axis=1))
    return np.asarray(np.sqrt(np.sum((got - wanted) ** 2, axis=1)) / sizes, float)


def measure(section: str, title: str, robot: Any, states: States, bar: float, library: Path | None) -> Accuracy:
    """Return the errors of one mechanism at these states, as an :class:`Accuracy`."""
    reference = Reference(robot)
    wanted = reference.accelerations(states)
    answers, reported, true = [], [], []
    for state in zip(*states):
        a, reactions = robot.forward_dynamics(*state, return_reactions=True)
        answers.append(robot.forward_dynamics(*state))
        reported.append(float(reactions.residual))
        true.append(reference.residual(*state, a, reactions.multipliers))
    errors, together = relative_error(np.array(answers), wanted), robot.forward_dynamics(*states)
    worst = int(np.argmax(true))
    peers: dict[str, float] = {}
    residuals: dict[str, tuple[float, float]] = {}
    for label, (solver, settings) in PEERS.items() if library else ():
        assert library
        # a new solver for each state, because the loop-constrained ABA returns NaN in all calls after the first NaN
        try:
            peer = PinocchioLoops(library, robot)
        except NoPeerError:
            break
        peer.set(solver, settings)
        theirs, said = peer.accelerations(solver, states)
        error = relative_error(theirs, wanted)
        k = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        peers[label] = float(error[k])
        residuals[label] = (said[k].absolute_residual, reference.open_by(states.q[k], states.v[k], theirs[k]))
    return Accuracy(
        section,
        title,
        len(states.q),
        min(reference.smallest(q) for q in states.q),
        float(errors.max()),
        float(relative_error(together, wanted).max()),
        bar,
        reported[worst],
        true[worst],
        peers,
        residuals,
    )


def rows(run: Run) -> list[Accuracy]:
    """Measure all mechanisms at random states, and ladder(8) near its flat position."""
    results, library = [], run.library(SOURCE)
    fast = {model.make().description for model in FAST}
    models: list[LoopModel] = [*FAST, *(m for m in all_closed() if m.robot.description not in fast)]
    for model in run.of(models, models, [*FAST[:2], *models[len(FAST) :]]):
        run.tell(f"{model.title}: accuracy")
        count = run.of(FEW_STATES if model.robot.nv > LARGE else STATES, FEW_STATES, 1)
        states = model.states(count, seed=1)
        results.append(measure("anywhere", model.title, model.robot, states, ANYWHERE, library))
    ladder = next(model for model in FAST if model.name == "ladder8")
    for angle in ANGLES:
        where = f"{angle:.0e} rad from it" if angle else "exactly there"
        run.tell(f"{ladder.title}, flat position: {where}")
        states = almost_flat(ladder.robot, angle, run.of(STATES, FEW_STATES, 1))
        results.append(measure("nearly flat", where, ladder.robot, states, NEARLY_FLAT, library))
    return results


def seen(rows: Sequence[Accuracy]) -> dict[str, float | None]:
    """Return the largest errors by the names of their goals."""
    errors_by_goal: dict[str, float | None] = {"residual that is reported, off by": max(r.off_by for r in rows)}
    for section in ("anywhere", "nearly flat"):
        errors = [(r.error, r.batch_error) for r in rows if r.section == section]
        errors_by_goal[f"error, {section}"] = float(np.max(errors))  # NaN if one of the errors is NaN
    return errors_by_goal


def markdown(results: Sequence[Accuracy]) -> str:
    """Return tables of the errors of sarrus and its peers, and of their reported residuals."""
    lines = [f"The reference: {np.finfo(np.longdouble).bits} bits, {np.finfo(np.longdouble).precision} digits"]
    lines += ["", "**Relative error of accelerations, against a dense pseudo-inverse in extended precision**", ""]
    lines += ["| mechanism | states | smallest singular value | one state | many states | at most | |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for r in results:
        verdict = "reached" if r.reached else "**not reached**"
        lines.append(
            f"| {_title(r)} | {r.states} | {r.smallest:.0e} | {r.error:.0e} | {r.batch_error:.0e} | {r.bar:.0e} | {verdict} |"
        )
    with_peers = [r for r in results if r.peers]
    if with_peers:
        lines += ["", "**The same for Pinocchio's solvers, by the parameter that the user must choose**", ""]
        lines += [f"| mechanism | {' | '.join(with_peers[0].peers)} |", "|---" * (1 + len(with_peers[0].peers)) + "|"]
        lines += [f"| {_title(r)} | {' | '.join(f'{e:.0e}' for e in r.peers.values())} |" for r in with_peers]
    lines += ["", "**Residuals: reported, and true**", ""]
    lines += ["| mechanism | sarrus says | true | |", "|---|---|---|---|"]
    lines += [
        f"| {_title(r)} | {r.reported:.0e} | {r.true:.0e} | {'right' if r.honest else '**wrong**'} |" for r in results
    ]
    if with_peers:
        chosen = ["exact, mu 1e-8", "ABA, mu 1e-6"]
        heads = " | ".join(f"{label}: says | true" for label in chosen)
        lines += ["", "**The same for Pinocchio: absolute, of J a = gamma**", "", f"| mechanism | {heads} |"]
        lines += ["|---" * (1 + 2 * len(chosen)) + "|"]
        for r in with_peers:
            pairs = " | ".join(f"{said:.0e} | {true:.0e}" for said, true in (r.residuals[label] for label in chosen))
            lines.append(f"| {_title(r)} | {pairs} |")
    return "\n".join(lines) + "\n"


def _title(r: Accuracy) -> str:
    return r.title if r.section == "anywhere" else f"ladder(8), flat position: {r.title}"


def _square(x: Any, weights: Any) -> Any:
    return np.sum(weights * x * x)
