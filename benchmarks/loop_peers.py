"""Pinocchio's constrained dynamics, in C++, on mechanisms that sarrus has built.

Pinocchio's loop constraints are points (three rows) and welds (six rows), so that only spherical and fixed loop joints can be compared.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .loop_models import States
from .peers import Array, pointer

SOURCE = Path(__file__).with_name("pinocchio_loops_peer.cpp")

# The order is that of joint_model() in pinocchio_loops_peer.cpp.
JOINT_KINDS = ["RX", "RY", "RZ", "Revolute", "PX", "PY", "PZ", "Prismatic", "Universal", "Spherical", "Free"]
ROWS = {"Spherical": 3, "Fixed": 6}
SOLVERS = ["exact", "loop-constrained ABA"]


class NoPeerError(ValueError):
    """Error of a mechanism with a joint or loop joint that Pinocchio lacks."""


@dataclass(frozen=True)
class Settings:
    """Settings of a proximal solver: tolerance, parameter, and largest number of iterations."""

    accuracy: float = 1e-10
    mu: float = 1e-8
    iterations: int = 10


# Pinocchio's default values of ProximalSettings
DEFAULT = Settings(accuracy=1e-12, mu=0.0, iterations=1)


class Said(NamedTuple):
    """Report of a solver about its convergence."""

    iterations: int
    absolute_residual: float
    relative_residual: float


class PinocchioLoops:
    """Pinocchio's two solvers on one mechanism, called and timed inside C++.

    Raises
    ------
    NoPeerError
        The mechanism has a joint or a closure that the peer lacks.
    """

    def __init__(self, library: Path, robot: Any) -> None:
        self._c = ctypes.CDLL(str(library))
        self._c.loops_new.restype = ctypes.c_void_p
        self._c.loops_time.restype = ctypes.c_double
        description, self._nv = robot.description, robot.nv
        specs = {spec.name: spec for spec in description.joints}
        tree = _depth_first([robot.joint(name) for name in robot.joints])
        number = {"ground": 0} | {joint.child: i for i, joint in enumerate(tree, 1)}
        # in Pinocchio, every body's frame is at its joint
        frame = {joint.child: specs[joint.name].at_child.inverse() for joint in tree}

        def place(at: Any, body: str) -> Array:
            here = frame[body] @ at if body in frame else at
            return np.append(here.rotation, here.translation)

        kinds, axes = zip(*(_kind(joint.type) for joint in tree))
        inertias = {body.name: body.inertia.transformed(frame[body.name]) for body in description.bodies}
        inertia = [np.concatenate([[I.mass], I.com, I.about_com.ravel()]) for I in (inertias[j.child] for j in tree)]
        closing = [specs[name] for name in robot.constraints if name in specs and _closes(specs[name])]
        if len(closing) < len(robot.constraints):
            raise NoPeerError("constraints that are no joints have no peer")
        self._peer = ctypes.c_void_p(
            self._c.loops_new(
                len(tree),
                _integers([number[joint.parent] for joint in tree]),
                _integers(kinds),
                pointer(np.array(axes)),
                pointer(np.array([place(specs[joint.name].at_parent, joint.parent) for joint in tree])),
                pointer(np.array(inertia)),
                pointer(np.array(description.gravity, dtype=float)),
                len(closing),
                _integers([ROWS[spec.joint.kind] for spec in closing]),
                _integers([[number[spec.parent], number[spec.child]] for spec in closing]),
                pointer(
                    np.array([[place(s.at_parent, s.parent), place(s.at_child, s.child)] for s in closing], dtype=float)
                ),
            )
        )
        if not self._peer:
            raise ValueError("Pinocchio refused the model")
        # index arrays: Pinocchio's q = sarrus' q[self._q], and so on. Joints are depth first, and a free joint's position comes before its quaternion
        self._q = np.concatenate([_order(joint.kind, joint.q_slice) for joint in tree])
        self._v = np.concatenate([_order(joint.kind, joint.v_slice) for joint in tree])

    def __del__(self) -> None:
        if getattr(self, "_peer", None):
            self._c.loops_delete(self._peer)

    def set(self, solver: str, settings: Settings) -> None:
        mu, accuracy = ctypes.c_double(settings.mu), ctypes.c_double(settings.accuracy)
        self._c.loops_settings(self._peer, SOLVERS.index(solver), accuracy, mu, settings.iterations)

    def states(self, states: States) -> States:
        """Return states in Pinocchio's coordinates."""
        q, v, tau = states
        return States(*(np.ascontiguousarray(x) for x in (q[:, self._q], v[:, self._v], tau[:, self._v])))

    def time(self, solver: str, theirs: States, repeats: int) -> float:
        """Return the time per call [s] over `repeats` passes through states in Pinocchio's coordinates."""
        q, v, tau = map(pointer, theirs)
        return float(self._c.loops_time(self._peer, SOLVERS.index(solver), len(theirs.q), q, v, tau, repeats))

    def accelerations(self, solver: str, states: States) -> tuple[Array, list[Said]]:
        """Return the accelerations (count, nv) in sarrus' coordinates, and the solver's report for each state."""
        answers, said = np.empty_like(states.v), []
        a, report = np.empty(self._nv), np.empty(3)
        for i, state in enumerate(zip(*self.states(states))):
            self._c.loops_call(self._peer, SOLVERS.index(solver), *map(pointer, (*state, a, report)))
            answers[i, self._v] = a
            said.append(Said(int(report[0]), float(report[1]), float(report[2])))
        return answers, said


def _closes(spec: Any) -> bool:
    if spec.joint.kind not in ROWS or spec.laws:
        raise NoPeerError(f"a closing joint of type {spec.joint} has no peer")
    return True


def _kind(joint: Any) -> tuple[int, Array]:
    """Return the index of a joint's kind in `JOINT_KINDS`, and its axes (2, 3)."""
    axes = np.zeros((2, 3))
    kind = joint.kind
    if kind in ("Revolute", "Prismatic"):
        axes[0] = joint.axis
        along = np.flatnonzero(joint.axis == 1)
        if len(along):
            kind = kind[0] + "XYZ"[along[0]]
    elif kind == "Universal":
        axes[:] = joint.axis1, joint.axis2
    if kind not in JOINT_KINDS:
        raise NoPeerError(f"{joint} has no peer")
    return JOINT_KINDS.index(kind), axes


def _depth_first(tree: list[Any]) -> list[Any]:
    """Return joints in Pinocchio's order, depth first."""
    if any(joint.reversed for joint in tree):
        raise NoPeerError("joints that the tree passes from child to parent have no peer")
    order: list[Any] = []
    waiting = [joint for joint in reversed(tree) if joint.parent == "ground"]
    while waiting:
        order.append(waiting.pop())
        waiting += [joint for joint in reversed(tree) if joint.parent == order[-1].child]
    return order


def _order(kind: str, where: slice) -> Any:
    """Return the order of a free joint's entries: linear first in Pinocchio, last in sarrus."""
    return np.roll(np.arange(where.start, where.stop), 3 if kind == "Free" else 0)


def _integers(values: Any) -> ctypes.c_void_p:
    return pointer(np.array(values, dtype=np.int32))
