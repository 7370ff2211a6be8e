"""Steps of a mechanism as an action model of Crocoddyl, loops and quaternions included: ``pip install crocoddyl``.

>>> import crocoddyl  # doctest: +SKIP
>>> model = sarrus.crocoddyl.ActionModel(robot, 0.02, costs)  # doctest: +SKIP
>>> problem = crocoddyl.ShootingProblem(x0, [model] * 50, last)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import crocoddyl
import numpy as np

from . import derivatives as D
from ._arrays import Array
from .control.sampling import Efforts
from .mechanism import Mechanism
from .simulation.sweep import simulate_many

__all__ = ["ActionModel", "State", "StateResidual"]


class State(crocoddyl.StateAbstract):
    """x = (q, v) of a mechanism; changes are displacements and changes of v, as everywhere in sarrus."""

    def __init__(self, robot: Mechanism) -> None:
        super().__init__(robot.nq + robot.nv, 2 * robot.nv)
        self.robot = robot

    def zero(self) -> Array:
        return np.concatenate([self.robot.neutral(), np.zeros(self.robot.nv)])

    def rand(self) -> Array:
        rng = np.random.default_rng()
        return np.concatenate([self.robot.random(rng), rng.standard_normal(self.robot.nv)])

    def diff(self, x0: Array, x1: Array) -> Array:
        n = self.robot.nq
        return np.concatenate([self.robot.difference(x0[:n], x1[:n]), x1[n:] - x0[n:]])

    def integrate(self, x: Array, dx: Array) -> Array:
        n, nv = self.robot.nq, self.robot.nv
        return np.concatenate([self.robot.integrate(x[:n], dx[:nv]), x[n:] + dx[nv:]])

    def Jdiff(self, x0: Array, x1: Array, firstsecond: Any = crocoddyl.Jcomponent.both) -> Any:
        n, eye = self.robot.nq, np.eye(self.robot.nv)
        by = D.difference(self.robot, x0[:n], x1[:n])
        return _chosen(firstsecond, _blocks(by.q0, -eye), _blocks(by.q1, eye))

    def Jintegrate(self, x: Array, dx: Array, firstsecond: Any = crocoddyl.Jcomponent.both) -> Any:
        by, eye = D.integrate(self.robot, x[: self.robot.nq], dx[: self.robot.nv]), np.eye(self.robot.nv)
        return _chosen(firstsecond, _blocks(by.q, eye), _blocks(by.dv, eye))


class StateResidual(crocoddyl.ResidualModelAbstract):
    """How far a state is from another one: in place of Crocoddyl's, which takes the derivative of that for diagonal, as it is without quaternions."""

    def __init__(self, state: State, reference: Array, nu: int) -> None:
        super().__init__(state, state.ndx, nu, True, True, False)
        self.reference = reference

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        data.r = self.state.diff(self.reference, x)

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        data.Rx = self.state.Jdiff(self.reference, x, crocoddyl.Jcomponent.second)


class ActionModel(crocoddyl.ActionModelAbstract):
    """A step, of :func:`~sarrus.simulate_many` with these options, under efforts of the motors, with its exact derivatives.

    Parameters
    ----------
    robot : the mechanism; the start is brought onto its loops
    dt : length of the step [s]; 0: of the last node, which costs and goes nowhere
    costs : ``crocoddyl.CostModelSum`` over ``State(robot)`` and the motors
    options : method, stabilisation, gains of the step
    """

    def __init__(self, robot: Mechanism, dt: float, costs: Any, **options: Any) -> None:
        super().__init__(costs.state, robot.nu, costs.nr)
        self.robot, self.dt, self.costs, self.options = robot, dt, costs, options

    def createData(self) -> Any:
        return _Data(self)

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        n, u = self.robot.nq, np.zeros(self.nu) if u is None else u
        data.xnext = np.array(x)
        if self.dt > 0.0:
            efforts = Efforts([0.0], u[None])
            runs = simulate_many(
                self.robot, x[:n], x[n:], self.dt, efforts, dt=self.dt, limits="ignore", **self.options
            )
            data.xnext = np.concatenate([runs.q[0, -1], runs.v[0, -1]])
        self.costs.calc(data.costs, x, u)
        data.cost = data.costs.cost

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        n, u = self.robot.nq, np.zeros(self.nu) if u is None else u
        if self.dt > 0.0:
            S = D.step(self.robot, x[:n], x[n:], self.dt, controller=Efforts([0.0], u[None]), **self.options)
            data.Fx, data.Fu = np.hstack([S.q, S.v]), S.parameters["Efforts.u"]
        self.costs.calcDiff(data.costs, x, u)
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


def _chosen(which: Any, first: Array, second: Array) -> Any:
    if which == crocoddyl.Jcomponent.both:
        return [first, second]
    return first if which == crocoddyl.Jcomponent.first else second
