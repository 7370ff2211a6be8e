"""A model in every library, with the same states in each library's coordinates, and a check that the libraries' results agree."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

import sarrus

from .models import Model
from .peers import ALGORITHMS, Array, PinocchioCpp, load_mujoco, pin, pinocchio_model

TOLERANCE = 1e-10  # largest difference between libraries, relative to the norm of each result
CHECKED = 32  # number of states that are compared


class DisagreementError(RuntimeError):
    """Error if two libraries give different results, so that their times are meaningless."""


class Subject:
    """A model that is loaded by every library, with `count` random states.

    Attributes
    ----------
    pin, pin_data, robot, cpp, mujoco : the model in each library; None without the library
    q, v, a, tau : (count, nq) and (count, nv) states of sarrus, tau = M a + h
    pin_q, pin_v, pin_a, pin_tau : the same states in Pinocchio's coordinates
    """

    def __init__(self, model: Model, library: Path | None, count: int, seed: int = 0) -> None:
        self.model = model
        self.robot: Any = sarrus.loads(model.urdf, floating_base=model.floating)
        self.pin: Any = None
        self.pin_data = self.cpp = self.mujoco = self.pin_q = self.pin_v = self.pin_a = self.pin_tau = self.pin
        if pin is None:
            rng = np.random.default_rng(seed)
            self.q = self.robot.random(rng, size=count)
            self.v, self.a = rng.uniform(-1, 1, (2, count, self.robot.nv))
            self.tau = self.robot.inverse_dynamics(self.q, self.v, self.a)
            return
        self.pin = pinocchio_model(model)
        self.pin_data = self.pin.createData()
        self.cpp = PinocchioCpp(library, self.pin) if library else None
        if (self.robot.nq, self.robot.nv) != (self.pin.nq, self.pin.nv):
            raise DisagreementError(f"{model.title}: sarrus has nv = {self.robot.nv}, Pinocchio {self.pin.nv}")

        rng = np.random.default_rng(seed)
        self.pin_q = rng.uniform(-np.pi, np.pi, (count, self.pin.nq))
        if model.floating:
            self.pin_q[:, 3:7] /= np.linalg.norm(self.pin_q[:, 3:7], axis=1, keepdims=True)
        self.pin_v, self.pin_a = rng.uniform(-1, 1, (2, count, self.pin.nv))
        self.pin_tau = np.array(
            [pin.rnea(self.pin, self.pin_data, *s) for s in zip(self.pin_q, self.pin_v, self.pin_a)]
        )

        q_order, self.v_order = self._orders()
        self.q = np.ascontiguousarray(self.pin_q[:, q_order])
        self.v, self.a, self.tau = (
            np.ascontiguousarray(x[:, self.v_order]) for x in (self.pin_v, self.pin_a, self.pin_tau)
        )
        self.mujoco = load_mujoco(model, self.pin)

    def first(self, count: int) -> Subject:
        """Return the subject with its first `count` states."""
        short = copy(self)
        for name in ("q", "v", "a", "tau", *(("pin_q", "pin_v", "pin_a", "pin_tau") if self.pin else ())):
            setattr(short, name, getattr(self, name)[:count])
        return short

    def mujoco_states(self) -> tuple[Array, Array, Array, Array]:
        """States q, v, a, tau in MuJoCo's coordinates."""
        assert self.mujoco
        return self.mujoco.states(self.pin_q, self.pin_v, self.pin_a, self.pin_tau)

    def _orders(self) -> tuple[Any, Any]:
        """Return index arrays: q = pin_q[q_order], v = pin_v[v_order]."""
        q_order, v_order = np.empty(self.pin.nq, dtype=int), np.empty(self.pin.nv, dtype=int)
        free = [name for name in self.robot.joints if self.robot.joint(name).nq == 7]
        for i in range(1, self.pin.njoints):
            theirs = self.pin.joints[i]
            ours = self.robot.joint(free[0] if theirs.nq == 7 else self.pin.names[i])
            q = theirs.idx_q + np.arange(theirs.nq)
            v = theirs.idx_v + np.arange(theirs.nv)
            # [position; quaternion], [linear; angular] in Pinocchio, reversed in sarrus
            q_order[ours.q_slice] = np.roll(q, 4) if theirs.nq == 7 else q
            v_order[ours.v_slice] = np.roll(v, 3) if theirs.nq == 7 else v
        return q_order, v_order

    def check(self) -> dict[str, float]:
        """Return the largest relative difference of every library from Pinocchio, for single states and a batch.

        Without Pinocchio, sarrus' results for single states and for a batch are compared.

        Raises
        ------
        DisagreementError
            The difference of sarrus or the C++ peer from Pinocchio's Python bindings exceeds `TOLERANCE`.
        """
        n = min(CHECKED, len(self.q))
        q, v, a, tau = self.q[:n], self.v[:n], self.a[:n], self.tau[:n]
        f = self.robot
        if self.pin:
            pin_states = list(zip(self.pin_q[:n], self.pin_v[:n], self.pin_a[:n], self.pin_tau[:n]))
            pin_M = np.array([pin.crba(self.pin, self.pin_data, x[0]) for x in pin_states])
            M = pin_M[:, self.v_order][:, :, self.v_order]
        else:
            M = f.mass_matrix(q)
        errors = {
            "inverse_dynamics": _error([f.inverse_dynamics(*s) for s in zip(q, v, a)], tau),
            "forward_dynamics": _error([f.forward_dynamics(*s) for s in zip(q, v, tau)], a),
            "mass_matrix": _error([f.mass_matrix(x) for x in q], M),
            "inverse_dynamics, batch": _error(f.inverse_dynamics(q, v, a), tau),
            "forward_dynamics, batch": _error(f.forward_dynamics(q, v, tau), a),
            "mass_matrix, batch": _error(f.mass_matrix(q), M),
        }
        if self.cpp:
            wanted = {"rnea": self.pin_tau[:n], "aba": self.pin_a[:n], "crba": pin_M}
            for algorithm in ALGORITHMS:
                kind, *form = algorithm.split()
                if form == ["derivatives"]:
                    continue
                got = [self.cpp.call(algorithm, x[0], x[1], x[2] if kind == "rnea" else x[3]) for x in pin_states]
                errors[f"Pinocchio C++ {algorithm}"] = _error(got, wanted[kind])
        for what, error in errors.items():
            if not error < TOLERANCE:
                raise DisagreementError(f"{self.model.title}, {what}: off by {error:.1e}, more than {TOLERANCE:.0e}")
        if self.mujoco:  # if MuJoCo's results differ, it is left out of the tables without an error
            mq, mv, ma, mtau = self.first(n).mujoco_states()
            errors["MuJoCo mj_inverse"] = _error([self.mujoco.inverse(*s) for s in zip(mq, mv, ma)], mtau)
            errors["MuJoCo mj_forward"] = _error([self.mujoco.forward(*s) for s in zip(mq, mv, mtau)], ma)
            if max(errors["MuJoCo mj_inverse"], errors["MuJoCo mj_forward"]) > 1e-8:
                self.mujoco = None
        return errors


def _error(got: Any, wanted: Array) -> float:
    """Return the largest difference, relative to the norm of each state's result."""
    got = np.asarray(got).reshape(len(wanted), -1)
    wanted = wanted.reshape(len(wanted), -1)
    return float(np.max(np.linalg.norm(got - wanted, axis=1) / np.linalg.norm(wanted, axis=1)))
