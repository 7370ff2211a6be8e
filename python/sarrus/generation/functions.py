"""Functions that :func:`~sarrus.generation.generate` accepts by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .. import _recording
from ..control import TaskControl
from ..errors import raise_no_such_name
from .elimination import eliminated, solutions
from .recorder import Numbers, Recorder

Function = Callable[[Recorder], Mapping[str, Numbers]]
# operations of the core that have other arguments besides a state, so that only a Recorder can call them
COMPOSED_ONLY = ("integrate", "coordinate_rate")


def _core_function(name: str) -> Callable[[Recorder, str], Mapping[str, Numbers]]:
    inputs, *_ = _recording.operations[name]

    def recorded(r: Recorder, frame: str) -> Mapping[str, Numbers]:
        state = [r._time() if key == "time?" else None if key[-1] == "?" else getattr(r, key) for key in inputs.split()]
        return {RESULTS.get(name, name): r.call(name, *state, frame=frame or None)}

    return recorded


RESULTS = {
    "inverse_dynamics": "tau", "bias_forces": "tau", "gravity_forces": "tau", "forward_dynamics": "a", "mass_matrix": "M", "jacobian": "J",
    "constraint_jacobian": "J", "constraint_bias": "gamma", "constraint_residual": "phi", "actuator_efforts": "u",
}  # fmt: skip


def _inverse_dynamics_derivatives(r: Recorder, _: str) -> Mapping[str, Numbers]:
    tau = r.call("inverse_dynamics", r.q, r.v, r.a)
    return {"dtau_dq": _by_tangent(r, tau, ()), "dtau_dv": r.derivatives(tau, r.v)}


def _forward_dynamics_derivatives(r: Recorder, _: str) -> Mapping[str, Numbers]:
    """Return the derivatives by the implicit function theorem.

    M da - J' dlambda = -d(forces) and J da = -d(rows), where d(...) are derivatives at constant a and lambda. With a solution x of J x = -d(rows) and
    the null space N of J: da = x - N (N' M N)^-1 N' (d(forces) + M x).
    """
    n, time = r.robot.nv, r._time()
    a = r.apart(r.call("forward_dynamics", r.q, r.v, r.tau, time))
    M, J = r.call("mass_matrix", r.q), r.call("constraint_jacobian", r.q, time)
    forces = r.call("inverse_dynamics", r.q, r.v, a)
    multipliers = r.apart(solutions(r, J.T, forces - r.tau)[0])
    N = r.apart(solutions(r, J, J[:, :0])[1])
    rows = J @ a - r.call("constraint_bias", r.q, r.v, time)
    left = np.concatenate([rows, N.T @ (forces - J.T @ multipliers)])
    constants = np.concatenate([a, multipliers, N.ravel()])
    by_v = r.derivatives(left, np.concatenate([r.v, constants]))[:, :n]
    by_rows, by_forces = np.split(np.hstack([_by_tangent(r, left, constants), by_v]), [len(J)])
    x, _N = solutions(r, J, -by_rows)
    y = eliminated(r, N.T @ M @ N, np.hstack([by_forces + N.T @ M @ x, N.T]))
    da = x - N @ y[:, : 2 * n]
    return {"da_dq": da[:, :n], "da_dv": da[:, n:], "da_dtau": N @ y[:, 2 * n :]}


def _actuator_efforts_derivatives(r: Recorder, _: str) -> Mapping[str, Numbers]:
    u = r.call("actuator_efforts", r.q, r.v, r.a, r._time())
    return {"du_dq": _by_tangent(r, u, ()), "du_dv": r.derivatives(u, r.v), "du_da": r.derivatives(u, r.a)}


def _by_tangent(r: Recorder, results: Numbers, constants: Numbers) -> Numbers:
    """Return derivatives of results with respect to displacements in the tangent space.

    They follow from derivatives with respect to q, because q-dot is linear in v. Results in `constants` do not depend on q.
    """
    by_q = r.derivatives(results, np.concatenate([r.q, constants]))[:, : r.robot.nq]
    return by_q @ np.stack([r.call("coordinate_rate", r.q, unit) for unit in np.eye(r.robot.nv)], axis=1)


def _positions(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    q, residual = r.positions(_names(joints))
    return {"q": q, "residual": residual}


def _step(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    """Return q and v after a step of the explicit midpoint rule.

    Both are projected onto the constraints, while the coordinates and velocities of `joints` are fixed.
    """
    q0, v0, tau, fixed = r.q, r.v, r.tau, _names(joints)
    dt = r.input("dt", np.full((len(r._configurations), 1), 1e-3))[0]

    def on_loops(q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
        if not r.robot.constraints:
            return q, v
        q = r._merged(r.closed(r._loop_coordinates(q), fixed, 1)[0], q)
        return q, r.velocities(q, fixed, v[r._indices(fixed)[1]])

    a = r.call("forward_dynamics", q0, v0, tau)
    q, v = on_loops(r.call("integrate", q0, v0 * dt / 2), v0 + a * dt / 2)
    a = r.call("forward_dynamics", q, v, tau)
    q, v = on_loops(r.call("integrate", q0, v * dt), v0 + a * dt)
    return {"q_next": q, "v_next": v}


def _rates(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    _, driven = r._indices(_names(joints))
    return {"v": r.velocities(r.q, _names(joints), r.input("rates", r._samples["v"][:, driven]))}


def _joint_jacobian(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    start, _, to = joints.partition(">")
    return {"J": _jacobian_rows(r, r.q, _names(start), _names(to))}


def _torque_map(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    """Return the efforts tau of the joints before ">" that are equivalent to efforts u of the joints after it.

    By virtual work, tau = J^T u, if v_after = J v_before.
    """
    start, _, to = joints.partition(">")
    J = _jacobian_rows(r, r.q, _names(start), _names(to))
    return {"tau": J.T @ r.input("u", r._samples["tau"][:, r._indices(_names(to))[1]])}


def _transmission(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    """Return positions, Jacobian and efforts from the coordinates of the joints before ">" and the efforts u of the joints after it."""
    start, _, to = joints.partition(">")
    q, residual = r.positions(_names(start))
    J = _jacobian_rows(r, q, _names(start), _names(to))
    u = r.input("u", r._samples["tau"][:, r._indices(_names(to))[1]])
    return {"q": q, "J": J, "tau": J.T @ u, "residual": residual}


def _reduced(result: str, operation: str) -> Callable[[Recorder, str], Mapping[str, Numbers]]:
    """Return a function that reduces the mechanism's inertia or gravity forces to some joints."""

    def recorded(r: Recorder, joints: str) -> Mapping[str, Numbers]:
        J, x = r.joint_jacobian(r.q, _names(joints)), r.call(operation, r.q)
        return {result: J.T @ x @ J if np.ndim(x) == 2 else J.T @ x}

    return recorded


def _jacobian_rows(r: Recorder, q: Numbers, start: list[str], to: list[str]) -> Numbers:
    return r.joint_jacobian(q, start)[r._indices(to)[1]]


def task_function(law: TaskControl) -> Function:
    """Return a function whose results are the efforts of a TaskControl, the acceleration errors of its task rows (`missed`), and the rates of its
    internal states.
    """
    return lambda r: {key: x for key, x in r.tasks(law).items() if key in ("efforts", "missed", "z_dot")}


def _names(joints: str) -> list[str]:
    return [name for name in joints.split(",") if name]


# name -> function of a recorder and of the text after the colon
NAMED: dict[str, Callable[[Recorder, str], Mapping[str, Numbers]]] = {
    **{name: _core_function(name) for name in _recording.operations if name not in COMPOSED_ONLY},
    "inverse_dynamics_derivatives": _inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": _forward_dynamics_derivatives,
    "actuator_efforts_derivatives": _actuator_efforts_derivatives,
    "positions": _positions,
    "rates": _rates,
    "step": _step,
    "joint_jacobian": _joint_jacobian,
    "torque_map": _torque_map,
    "transmission": _transmission,
    "reduced_inertia": _reduced("M", "mass_matrix"),
    "reduced_gravity": _reduced("tau", "gravity_forces"),
}


def by_name(text: str) -> Function:
    """Return the function for a text NAME or NAME:OPERAND; the operand is a frame or a list of joints."""
    name, _, operand = text.partition(":")
    if name not in NAMED:
        raise_no_such_name("function", name, NAMED)
    core = _recording.operations.get(name, ("", "", True))
    needs_operand = core[2] if name in _recording.operations else not name.endswith("_derivatives")
    # the operand of "step" is optional, because trees need no joints
    if needs_operand != bool(operand) and name != "step":
        kind = "the name of a frame" if name in _recording.operations else "names of joints"
        cure = f"{name} requires {kind}, {name}:NAME" if needs_operand else f"{name} takes no name after a colon"
        raise ValueError(f"'{text}': {cure}")
    if name in ("joint_jacobian", "torque_map", "transmission") and not all(operand.partition(">")[::2]):
        raise ValueError(f"'{text}': {name} requires input and output joints, {name}:JOINT,JOINT>JOINT,JOINT")
    return lambda recorder: NAMED[name](recorder, operand)
