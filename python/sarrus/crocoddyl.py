"""Action model of Crocoddyl for a step of a mechanism, with closed loops and quaternions. Needs ``pip install crocoddyl``.

>>> import crocoddyl  # doctest: +SKIP
>>> model = sarrus.crocoddyl.ActionModel(robot, 0.02, costs)  # doctest: +SKIP
>>> problem = crocoddyl.ShootingProblem(x0, [model] * 50, last)  # doctest: +SKIP
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import crocoddyl
import numpy as np

from . import derivatives as D
from ._arrays import Array
from .analysis.closing import check_timeless
from .control.elements import EffortTable
from .errors import AssemblyError, DriftWarning, IntegrationError, ModelError, StateError
from .mechanism import Mechanism
from .simulation.sweep import simulate_many

__all__ = ["ActionModel", "State", "StateResidual"]

# errors that depend on the state; all other errors are faults of the model's arguments
NO_ANSWER = (StateError, AssemblyError, IntegrationError)


@contextmanager
def _step_may_fail() -> Iterator[None]:
    """Suppress errors that depend on the state, and warnings about open loops: solvers add displacements to states, and each step closes the loops."""
    with suppress(*NO_ANSWER), warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        yield


class State(crocoddyl.StateAbstract):
    """State x = (q, v) of a mechanism. Its tangent vectors are (dq (nv), dv (nv)); the state `zero` is the home configuration at rest.

    For invalid states (not finite, or with quaternions of zero norm) the methods return NaN, because an exception inside a solver would end the
    process.
    """

    def __init__(self, robot: Mechanism) -> None:
        super().__init__(robot.nq + robot.nv, 2 * robot.nv)
        self.robot = robot

    def zero(self) -> Array:
        return np.concatenate([self.robot.assemble(), np.zeros(self.robot.nv)])

    def rand(self) -> Array:
        rng, closed = np.random.default_rng(), bool(self.robot.constraints)
        q, v = self.robot.random(rng, closed=closed), rng.standard_normal(self.robot.nv)
        return np.concatenate([q, self.robot.project_velocity(q, v) if closed else v])

    def diff(self, x0: Array, x1: Array) -> Array:
        n = self.robot.nq
        with suppress(StateError):
            return np.concatenate([self.robot.difference(x0[:n], x1[:n]), x1[n:] - x0[n:]])
        return np.full(self.ndx, np.nan)

    def integrate(self, x: Array, dx: Array) -> Array:
        n, nv = self.robot.nq, self.robot.nv
        with suppress(StateError):
            return np.concatenate([self.robot.integrate(x[:n], dx[:nv]), x[n:] + dx[nv:]])
        return np.full(self.nx, np.nan)

    def Jdiff(self, x0: Array, x1: Array, firstsecond: Any = crocoddyl.Jcomponent.both) -> Any:
        n, eye = self.robot.nq, np.eye(self.robot.nv)
        with suppress(StateError):
            by = D.difference(self.robot, x0[:n], x1[:n])
            return _chosen(firstsecond, _blocks(by.q0, -eye), _blocks(by.q1, eye))
        return _chosen(firstsecond, *np.full((2, self.ndx, self.ndx), np.nan))

    def Jintegrate(self, x: Array, dx: Array, firstsecond: Any = crocoddyl.Jcomponent.both) -> Any:
        eye = np.eye(self.robot.nv)
        with suppress(StateError):
            by = D.integrate(self.robot, x[: self.robot.nq], dx[: self.robot.nv])
            return _chosen(firstsecond, _blocks(by.q, eye), _blocks(by.dv, eye))
        return _chosen(firstsecond, *np.full((2, self.ndx, self.ndx), np.nan))


class StateResidual(crocoddyl.ResidualModelAbstract):
    """Residual: difference of a state from a reference.

    ``crocoddyl.ResidualModelState`` assumes a diagonal derivative, which is wrong for quaternions.
    """

    def __init__(self, state: State, reference: Array, nu: int) -> None:
        super().__init__(state, state.ndx, nu, True, True, False)
        self.reference = reference

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        data.r = self.state.diff(self.reference, x)

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        data.Rx = self.state.Jdiff(self.reference, x, crocoddyl.Jcomponent.second)


class ActionModel(crocoddyl.ActionModelAbstract):
    """Action model of one step of :func:`~sarrus.simulate_many`, with exact derivatives. The controls are the motors' efforts.

    If the step fails (the loops cannot be closed, or an iteration does not converge), the next state and its derivatives are NaN. Crocoddyl's solvers
    then reduce their step length; an exception would end the process. The terminal node has no efforts, and therefore no costs of efforts.

    Parameters
    ----------
    robot : the mechanism; the initial state of a step is projected onto the constraints
    dt : length of the step [s]; 0 for the terminal node, which has costs but no step
    costs : ``crocoddyl.CostModelSum`` over ``State(robot)`` and the motors
    options : options `method`, `stabilisation` and `gains` of :func:`~sarrus.simulate_many`

    Raises
    ------
    ModelError
        - A prescribed motion varies in time.
        - A cost uses ``crocoddyl.ResidualModelState``, but the mechanism has quaternions, for which the derivative of this residual is wrong. Use
          :class:`StateResidual`.
    """

    def __init__(self, robot: Mechanism, dt: float, costs: Any, **options: Any) -> None:
        check_timeless(robot, "crocoddyl.ActionModel")
        super().__init__(costs.state, robot.nu, costs.nr)
        self.robot, self.dt, self.costs, self.options = robot, dt, costs, options
        self._check()
        if dt > 0.0:
            # wrong options must raise here, because an exception in a solver ends the process
            with _step_may_fail():
                self._step(costs.state.zero(), np.zeros(self.nu))

    def createData(self) -> Any:
        self._check()
        return _Data(self)

    def _check(self) -> None:
        residuals = {name: item.cost.residual for name, item in self.costs.costs.todict().items()}
        wrong = [name for name, residual in residuals.items() if type(residual) is crocoddyl.ResidualModelState]
        zero = self.costs.state.zero()
        J = self.costs.state.Jdiff(zero, self.costs.state.integrate(zero, np.full(2 * self.robot.nv, 0.3)))[1]
        if wrong and np.abs(J - np.diag(np.diag(J))).max(initial=0.0) > 1e-9:
            raise ModelError(
                f"cost '{wrong[0]}': crocoddyl.ResidualModelState assumes a diagonal derivative of differences of states, which is wrong for "
                f"'{self.robot.name}': use sarrus.crocoddyl.StateResidual"
            )

    def _step(self, x: Array, u: Array) -> Array:
        n, efforts = self.robot.nq, EffortTable([0.0], u[None])
        runs = simulate_many(self.robot, x[:n], x[n:], self.dt, efforts, dt=self.dt, limits="ignore", **self.options)
        return np.concatenate([runs.q[0, -1], runs.v[0, -1]])

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        self.costs.calc(data.costs, x, *([] if u is None else [u]))
        data.xnext = np.array(x)
        if u is not None and self.dt > 0.0:
            data.xnext = np.full_like(data.xnext, np.nan)
            with _step_may_fail():
                data.xnext = self._step(x, u)
        data.cost = data.costs.cost

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        self.costs.calcDiff(data.costs, x, *([] if u is None else [u]))
        if u is not None and self.dt > 0.0:
            n, efforts = self.robot.nq, EffortTable([0.0], u[None])
            data.Fx, data.Fu = np.full_like(data.Fx, np.nan), np.full_like(data.Fu, np.nan)
            with _step_may_fail():
                S = D.step(self.robot, x[:n], x[n:], self.dt, controller=efforts, **self.options)
                data.Fx, data.Fu = np.hstack([S.q, S.v]), S.parameters["EffortTable.u"]
        for name in ("Lx", "Lu", "Lxx", "Lxu", "Luu"):
            setattr(data, name, getattr(data.costs, name))


class _Data(crocoddyl.ActionDataAbstract):
    def __init__(self, model: ActionModel) -> None:
        super().__init__(model)
        self.costs = model.costs.createData(crocoddyl.DataCollectorAbstract())
        self.costs.shareMemory(self)


def _blocks(a: Array, b: Array) -> Array:
    zero = np.zeros_like(a)
    return np.block([[a, zero], [zero, b]])


def _chosen(component: Any, first: Array, second: Array) -> Any:
    if component == crocoddyl.Jcomponent.both:
        return [first, second]
    return first if component == crocoddyl.Jcomponent.first else second
