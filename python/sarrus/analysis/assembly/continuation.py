"""Following a branch: a curve of configurations over what prescribes it, the held joints and time.

A step goes along the tangent and then back onto the loops, where :mod:`sarrus.analysis.assembly.multistart` closes them; one after which that would be far is halved.
With U S V^T the scaled J of the joints that may move, the tangent that goes with a velocity g of those that are held, and with c of what
is prescribed, is the one of least norm,

  x = g + V S^-1 U^T (c - J g).

Where J has lost rank branches meet. What is then undetermined goes on as it went before, straight through. Where branches only nearly
meet a step must not change over to the other one: on a branch the sign of det(U^T J V) with the U and V of one configuration stays what
it is nearby, and it is another one on the other. A step on which it changes is halved too, to the end if branches meet exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._arrays import Array, checked_number
from ..joint_targets import quoted
from .multistart import SMALL, Search

EPS = float(np.finfo(np.float64).eps)
ONTO = np.array([1e-3, 18.0, 1e300])  # damping and steps of the way back: a prediction is near
ASIDE = 0.1  # how far a prediction may miss the branch, relative to its length


def checked_steps(max_step: float, min_step: float) -> tuple[float, float]:
    """Both, where steps of such sizes come to an end; ValueError where they would not."""
    longest, shortest = checked_number("max_step", max_step), checked_number("min_step", min_step)
    if not EPS <= shortest <= 1.0:
        raise ValueError(f"min_step is a part of the way, from {EPS:.3g}, which is rounding, to 1; got {min_step!r}")
    if longest < shortest:
        raise ValueError(f"max_step must be at least min_step = {min_step!r}; got {max_step!r}")
    return longest, shortest


class Branch:
    """A curve of configurations over what prescribes it, of which one is known."""

    def __init__(self, search: Search, max_step: float, min_step: float, tolerance: float) -> None:
        self.search, self.max_step, self.min_step, self.tolerance = search, max_step, min_step, tolerance
        self.rank = 0
        self.bases: tuple[Array, Array] | None = None  # U and V, where inputs determine the motion
        self.last = np.zeros(search.robot.nv), np.ones(1)  # tangent, and the inputs' velocities that it belongs to

    def tangent(self, q: Array, rates: Array, seconds: float, led: Array) -> Array:
        """Scaled velocity along the branch with which the held joints move as given, and targets lead the rows' residuals by `led`."""
        search, loops = self.search, self.search.loops
        J = loops.jacobian(q)[loops.holonomic]
        c = (loops.row_scale * search.robot.constraint_velocity(q, **loops.data(q)) * seconds - led)[loops.holonomic]
        U, s, V = np.linalg.svd(J * search.moving, full_matrices=False)
        kept = s > SMALL * s.max(initial=0.0)
        self.bases = (U[:, kept], V[kept]) if kept.sum() == search.moving.sum() else None
        pace = np.concatenate([rates, [seconds], led])
        onward = np.zeros_like(rates)
        if kept.sum() < self.rank:  # branches meet: straight on
            before, pace_before = self.last
            onward = before * search.moving * float(pace @ pace_before) / max(float(pace_before @ pace_before), 1e-300)
        else:
            self.rank = int(kept.sum())
        missing = c - J @ (rates + onward)
        x = rates + onward + V[kept].T @ ((U[:, kept].T @ missing) / s[kept])
        self.last = x, pace
        return np.asarray(x)

    def advance(
        self, q: Array, goal: Array, time: float, end: float, lead: Callable[[float], Array | None]
    ) -> tuple[Array, float]:
        """The configuration in which the held joints are where they are in the goal, or where the branch ends; part of the way made.

        `lead` says where the targets of frames are after a part of the way.
        """
        search, loops = self.search, self.search.loops

        def led(part: float) -> Array:
            """How fast the targets open the rows; a tangent needs no more digits than differences give."""
            if loops.targets is None:
                return np.zeros(search.robot.nc)
            there = []
            for side in (part + 1e-4, part - 1e-4):
                loops.targets = lead(side)
                there.append(loops.residual(q))
            loops.targets = lead(part)
            return np.asarray((there[0] - there[1]) / 2e-4)

        displacement = loops.difference(q, goal) * ~search.moving
        at_goal = np.zeros(search.robot.nq, bool)
        for name in search.held:
            at_goal[search.robot.joint(name).q_slice] = True
        done, step = 0.0, 1.0
        while done < 1.0:
            loops.time = time + done * (end - time)
            x = self.tangent(q, displacement, end - time, led(done))
            fastest = float(np.abs(x).max(initial=0.0))
            step = min(step, 1.0 - done, self.max_step / max(fastest, self.max_step))
            predicted = loops.step(q, step * x)
            if last := step >= 1.0 - done:
                predicted = np.where(at_goal, goal, predicted)
            loops.time = end if last else time + (done + step) * (end - time)
            loops.targets = lead(1.0 if last else done + step)
            corrected, left = search.close(predicted[None], ONTO)
            aside = float(np.abs(loops.difference(predicted, corrected[0])).max(initial=0.0))
            stays = step < self.min_step or not self.changes_over(corrected)
            if left[0] <= self.tolerance and aside <= ASIDE * step * fastest + self.tolerance and stays:
                q, done, step = corrected[0], 1.0 if last else done + step, 2.0 * step
            elif step < self.min_step:
                break
            else:
                step /= 2.0
        return q, done

    def changes_over(self, q: Array) -> bool:
        """Whether the configuration found (1, nq) is on another branch than the one to which the last tangent belongs."""
        if self.bases is None:
            return False
        U, V = self.bases
        return bool(np.linalg.slogdet(U.T @ self.search.jacobian(q)[0] @ V.T)[0] < 0.0)

    def why(self, q: Array) -> str:
        """Where it ends, and why it does not go on."""
        robot = self.search.robot
        now = robot.joint_states(q, time=self.search.loops.time).q
        at = {name: np.array2string(now[name], precision=6)[1:-1].strip() for name in self.search.held}
        reached = ", ".join(f"{name} = {x}" for name, x in at.items())
        where = f", at {reached}" if reached else ""
        J = self.search.jacobian(q[None])[0]
        x = np.linalg.svd(J)[2][max(self.rank - 1, 0)] if len(J) else np.zeros(robot.nv)
        slowest = float(np.linalg.norm(J @ x))
        moving = quoted(name for name in robot.joints if np.abs(x[robot.joint(name).v_slice]).max(initial=0.0) > 0.1)
        if slowest < 0.05 and moving:
            return f"{where}: a limit position (dead point), where {moving} can move while the inputs rest"
        return f"{where}: no step, however small, closes the loops"
