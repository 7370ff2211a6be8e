"""How right are the accelerations? sarrus and Pinocchio's two solvers beside a dense pseudo-inverse in extended precision.

The reference is ``tests/oracles``: constraints from geometry, a = J^+ gamma + Z y with J Z = 0, in 80-bit NumPy where the machine has it.
``python -m benchmarks --accuracy``, from a checkout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracles import Closed

from .loop_models import FAST, LoopModel, States, all_closed, almost_flat
from .loop_peers import DEFAULT, NoPeerError, PinocchioLoops, Settings
from .peers import Array

# below this times the largest, a singular value of J is the rounding of q: J is as good as the q that it is told
NEGLIGIBLE = 1e-11

STATES = 16
FEW_STATES = 3  # of mechanisms with more velocities than
LARGE = 100

ANYWHERE, NEARLY_FLAT = 1e-10, 1e-8  # the relative errors to reach
ANGLES = (1e-2, 1e-4, 1e-6, 0.0)  # from the flat position [rad]
HONEST = 10.0  # a reported residual is the true one to this factor, or both are rounding:
ROUNDING = 1e-13
STILL = 1e-4  # a row that moves less than this, relative, counts as one that nothing moves

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
    """Of one mechanism at some states.

    Attributes
    ----------
    section : "anywhere" or "nearly flat"
    smallest : singular value of J that counts, relative to the largest, in the worst state
    error : relative, of sarrus' accelerations, one state at a time, in the worst state
    batch_error : the same for all states in one call
    bar : what it must not exceed
    reported, true : relative residual that sarrus reports in the worst state, and what its answer really leaves
    peers : relative error in the worst state by solver and settings; NaN counts as the worst
    residuals : by the same, (reported, true) absolute residual of J a = gamma in the worst state
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
        return max(self.error, self.batch_error) <= self.bar  # not, if one of them is NaN

    @property
    def honest(self) -> bool:
        low, high = sorted((self.reported, self.true))
        return high <= max(ROUNDING, HONEST * low)


class Reference:
    """The dense answer for one mechanism.

    Parameters
    ----------
    robot : `sarrus.Mechanism`
    """

    def __init__(self, robot: Any) -> None:
        self.robot = robot
        self._oracle = Closed(robot.description, closing=robot.loop_joints, dtype=np.longdouble, negligible=NEGLIGIBLE)

    def accelerations(self, states: States) -> Array:
        """(count, nv), in extended precision."""
        return np.array([self._oracle.forward_dynamics(*state) for state in zip(*states)])

    def residual(self, q: Array, v: Array, tau: Array, a: Array, multipliers: Array) -> float:
        """What [M a + h - tau - J^T multipliers; J a - gamma] leaves of [tau - h; gamma].

        Each entry is weighed by what it would move: 1/M_ii, and for rows 1/(J M^-1 J^T)_rr. Rows that nothing moves, such as those
        across the plane of a planar linkage, hold rounding only and get no more weight than others.
        """
        oracle = self._oracle
        M = oracle.mass_matrix(q)
        h = oracle.inverse_dynamics(q, v, np.zeros(self.robot.nv))
        # sarrus' own rows: multipliers belong to them, and any other basis would do as well
        J = np.asarray(self.robot.constraint_jacobian(q), np.longdouble)
        gamma = np.asarray(self.robot.constraint_bias(q, v), np.longdouble)
        of_force = 1 / np.diag(M)
        mobility = np.einsum("rk,rk->r", J, np.linalg.solve(M.astype(float), J.T.astype(float)).T)
        of_rows = 1 / np.maximum(mobility, STILL * mobility.max())
        left = _square(M @ a + h - tau - J.T @ multipliers, of_force) + _square(J @ a - gamma, of_rows)
        whole = _square(tau - h, of_force) + _square(gamma, of_rows)
        return float(np.sqrt(left / whole)) if whole else 0.0

    def open_by(self, q: Array, v: Array, a: Array) -> float:
        """Largest entry of J a - gamma."""
        J, _, gamma = self._oracle.constraint_rows(q, v)
        return float(np.abs(J @ a - gamma).max())

    def smallest(self, q: Array) -> float:
        """The smallest singular value of J that is none of rounding, relative."""
        s = np.linalg.svd(self.robot.constraint_jacobian(q), compute_uv=False)
        return float(min(s[s > NEGLIGIBLE * s[0]] / s[0]))


def relative_error(got: Array, wanted: Array) -> Array:
    """(count,) in the norm of each state's answer."""
    wanted = np.asarray(wanted, np.longdouble)
    sizes = np.sqrt(np.sum(wanted**2, axis=1))
    return np.asarray(np.sqrt(np.sum((got - wanted) ** 2, axis=1)) / sizes, float)


def measure(section: str, title: str, robot: Any, states: States, bar: float, library: Path | None) -> Accuracy:
    """One mechanism at these states."""
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
        try:  # a new one each time: once it has met a NaN, the loop-constrained ABA keeps it
            peer = PinocchioLoops(library, robot)
        except NoPeerError:
            break
        peer.set(solver, settings)
        theirs, said = peer.complete_acceleration(solver, states)
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


def run(library: Path | None, tell: Callable[[str], None], quick: bool = False) -> list[Accuracy]:
    """All mechanisms anywhere, and ladder(8) near its flat position."""
    results = []
    fast = {model.make().description for model in FAST}
    models: list[LoopModel] = [*FAST, *(m for m in all_closed() if m.robot.description not in fast)]
    for model in models:
        tell(f"{model.title}: accuracy")
        count = FEW_STATES if quick or model.robot.nv > LARGE else STATES
        states = model.states(count, seed=1)
        results.append(measure("anywhere", model.title, model.robot, states, ANYWHERE, library))
    ladder = next(model for model in FAST if model.name == "ladder8")
    for angle in ANGLES:
        where = f"{angle:.0e} rad from it" if angle else "exactly there"
        tell(f"{ladder.title}, flat position: {where}")
        states = almost_flat(ladder.robot, angle, FEW_STATES if quick else STATES)
        results.append(measure("nearly flat", where, ladder.robot, states, NEARLY_FLAT, library))
    return results


def as_numbers(results: list[Accuracy], facts: dict[str, Any]) -> dict[str, Any]:
    """For JSON, which knows no NaN: None there."""

    def known(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: known(value) for key, value in x.items()}
        if isinstance(x, (list, tuple)):
            return [known(value) for value in x]
        return None if isinstance(x, float) and not np.isfinite(x) else x

    rows = [{**known(asdict(r)), "reached": r.reached, "honest": r.honest} for r in results]
    return {"facts": facts, "rows": rows}


def markdown(results: list[Accuracy], facts: dict[str, Any]) -> str:
    """Errors of sarrus, errors of its peers, and what all of them say of themselves."""
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    lines += [f"- the reference: {np.finfo(np.longdouble).bits} bits, {np.finfo(np.longdouble).precision} digits"]
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
    verdicts = [r.reached for r in results] + [r.honest for r in results]
    lines += ["", f"{sum(verdicts)} of {len(verdicts)} reached."]
    return "\n".join(lines) + "\n"


def _title(r: Accuracy) -> str:
    return r.title if r.section == "anywhere" else f"ladder(8), flat position: {r.title}"


def _square(x: Any, weights: Any) -> Any:
    return np.sum(weights * x * x)
