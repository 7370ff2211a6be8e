"""What efforts depend on linearly, and which of it they tell: the parameters of bodies and joints, and their base.

Motors give S u, loops J^T lambda, and u_k = x_k . tau along the motion x_k that the loops allow (cpp/loops/effort_regressor.hpp). So what loops carry
does not enter, and u = W pi + ... is one row a motor: with more motors than freedoms of what they share out, without what they do against each other.

References
----------
Gautier, M. (1991). Numerical calculation of the base inertial parameters of robots. *Journal of Robotic Systems* 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import cast

import numpy as np

from .._arrays import Array, NDArray, check_mapping, checked_names
from .._core.spatial import pseudo_inertia
from ..analysis.assembly.closing import on_its_tree
from ..analysis.independent_coordinates import joint_velocity
from ..analysis.scaling import velocity_scale
from ..errors import ModelError, ShapeError, StateError, check_name
from ..mechanism import Mechanism
from .samples import Samples

# ---- physically consistent parameters --------------------------------------------------------------------------------
# Parameters that bodies can have, nearest to an estimate of their base parameters: pseudo-inertias positive semidefinite, friction not negative.
#
# What efforts do not tell stays as near as it can to the mechanism's own numbers, by the divergence of its log-determinant, which does not depend on frames and
# units, and which is a barrier: minimise (B pi - beta)^T C^-1 (B pi - beta) + mu D(pi | nominal), mu to zero. Newton's steps in the metric of D.
#
# References
# ----------
# Wensing, P., Kim, S., Slotine, J.-J. (2018). Linear matrix inequalities for physically consistent inertial parameter identification.
# Lee, T., Wensing, P., Park, F. (2019). Geometric robot dynamic identification: a convex programming approach. *IEEE Transactions on Robotics* 36.

THIN = 1e-2  # of a body's spread, what a rod without thickness gets as one: the divergence is from bodies with volume
FLAT = 1e-11  # of the largest, an eigenvalue at which a pseudo-inertia counts as one without volume
ENOUGH = 1e-6  # of an estimate's variance, what a step may leave

_UNITS = pseudo_inertia(np.eye(10))  # of each parameter


def pseudo_inertias(parameters: Array) -> Array:
    """(..., 4, 4) of inertial parameters (..., 10)."""
    return np.asarray(np.einsum("...p,pij->...ij", parameters, _UNITS))


def with_volume(parameters: Array) -> Array:
    """Parameters (n, 10) of bodies whose pseudo-inertia is positive definite: a rod gets a little thickness, a point a little size."""
    x = parameters.copy()
    P = pseudo_inertias(x)
    size = np.trace(P[:, :3, :3] - P[:, :3, 3:] * P[:, 3:, :3] / P[:, 3:, 3:], axis1=1, axis2=2)
    more = THIN * np.maximum(size, 1e-4 * x[:, 0])
    x[:, [4, 6, 9]] += 2.0 * more[:, None]
    return x


def consistent_parameters(
    B: Array, beta: Array, root: Array, nominal: Array, bodies: int, signed: Array, last: float = 1e-3
) -> Array:
    """pi (p,) with B pi near beta in the metric root^T root = C^-1, 10 of each body first, then numbers that are positive unless `signed`.

    Parameters
    ----------
    nominal : (p,) from which it departs as little as the rest lets it; of a number that is not told beside zero, a size
    last : the weight of the divergence at the end, where an estimate's variance counts as 1
    """
    n, x = 10 * bodies, nominal.astype(float)
    x[:n] = with_volume(x[:n].reshape(-1, 10)).ravel()
    x0, P0 = x.copy(), pseudo_inertias(x[:n].reshape(-1, 10))
    inverse0, scale = np.linalg.inv(P0), np.abs(x0[n:])
    M, rhs = root @ B, root @ beta

    def barrier(x: Array) -> float:
        P, s = pseudo_inertias(x[:n].reshape(-1, 10)), x[n:] / x0[n:]
        of_P = np.linalg.eigvalsh(P)
        if (of_P[:, 0] <= FLAT * of_P[:, -1]).any() or s[np.logical_not(signed)].min(initial=1.0) <= FLAT:
            return float(np.inf)
        of_bodies = np.sum(inverse0 * P, axis=(1, 2)) - np.linalg.slogdet(P)[1] + np.linalg.slogdet(P0)[1] - 4.0
        of_joints = np.where(signed, 0.5 * (s - 1.0) ** 2, s - np.log(np.where(signed, 1.0, s)) - 1.0)
        return float(of_bodies.sum() + of_joints.sum())

    def value(x: Array, mu: float) -> float:
        return float(np.sum((M @ x - rhs) ** 2)) + mu * barrier(x)

    # from where the divergence weighs as much as all that is to be fitted: Newton's steps then stay where they are good
    most = max(float(np.sum((M @ x - rhs) ** 2)), 1e2 * last)
    weights = np.append(10.0 ** np.arange(np.log10(most), np.log10(last), -1.0), last)
    for mu in weights:
        now = value(x, mu)
        for _ in range(30):
            inverse = np.linalg.inv(pseudo_inertias(x[:n].reshape(-1, 10)))
            each = inverse[:, None] @ _UNITS
            gradient = ((inverse0 - inverse).reshape(-1, 16) @ _UNITS.reshape(10, 16).T).ravel()
            H = each.reshape(-1, 10, 16) @ each.swapaxes(2, 3).reshape(-1, 10, 16).swapaxes(1, 2)
            L = np.linalg.cholesky(H + 1e-14 * np.eye(10) * np.trace(H, axis1=1, axis2=2)[:, None, None])
            s = x[n:]
            # in coordinates in which the barrier's Hessian is the unit matrix: x = back y
            back = np.zeros((len(x), len(x)))
            for b, of_body in enumerate(np.linalg.inv(L).swapaxes(1, 2)):
                back[10 * b : 10 * b + 10, 10 * b : 10 * b + 10] = of_body
            slope = np.where(signed, scale, s)
            back[range(n, len(x)), range(n, len(x))] = slope
            g = np.concatenate([gradient, np.where(signed, (s - x0[n:]) / scale**2, 1.0 / x0[n:] - 1.0 / s)]) @ back
            A, r = M @ back, M @ x - rhs
            # least |A d + r|^2 + mu/2 |d + g|^2, by the smaller of the two normal equations
            e = -A.T @ np.linalg.solve(A @ A.T + 0.5 * mu * np.eye(len(A)), r - A @ g)
            # within Dikin's ellipsoid: no eigenvalue falls below a tenth, and the next step's metric is sound
            step, length = back @ (e - g), min(1.0, 0.9 / max(float(np.linalg.norm(e - g)), 0.9))
            while length > 1e-9 and not (there := value(x + length * step, mu)) <= now:
                length *= 0.5
            if length <= 1e-9:
                break
            x, now = x + length * step, there
            if (decrement := float(np.sum((e - g) ** 2))) * mu < ENOUGH or (decrement < 1e-2 and mu > last):
                break
    return x


# ---- regressor and base parameters -----------------------------------------------------------------------------------

PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
TERMS = ("damping", "friction", "armature", "stiffness", "offset")
SAME = 1e-8  # of a column, what others must leave of it: those of the core are known to 1e-12, and nature has nothing in between
ROUNDING = 1e-10  # of the most that a parameter moves the efforts by
BLOCK = 256  # states whose rows the cache holds, and enough of them for NumPy's calls to count little


class EffortModel:
    """The rows of chosen motors, by the parameters of chosen bodies and terms of joints.

    Attributes
    ----------
    robot : the mechanism, with motors where efforts were measured
    names : of all parameters: "body.m", "body.Ixx", "joint.damping"
    values : (p,) that the mechanism has
    bodies, terms : those of the bodies, 10 each, stand first; (term, joint, index) of the others
    units : (p,) what is much of each parameter, by the mechanism's mass, length and rate of swinging: what is small beside them is the same for any size
    turn : (nv,) of each velocity what is as much as 1 rad/s; turn_of_motors : (nu,)
    """

    def __init__(
        self, robot: Mechanism, joints: Sequence[str], terms: Mapping[str, Sequence[str]] | None, bodies: Sequence[str] | None
    ) -> None:  # fmt: skip
        for joint in joints:
            check_name("joint", joint, robot._joints, "efforts")
        self.robot = (
            robot if tuple(joints) == robot.actuated else cast(Mechanism, on_its_tree(robot, actuated=tuple(joints)))
        )
        specs = {body.name: body.inertia for body in robot.description.bodies}
        chosen = (
            [name for name, I in specs.items() if I.mass > 0.0] if bodies is None else checked_names("bodies", bodies)
        )
        for name in chosen:
            check_name("body", name, specs, "bodies")
        self.bodies = tuple(name for name in specs if name in chosen)
        self.terms = tuple(self._terms({} if terms is None else terms))
        self.names = (
            *(f"{body}.{p}" for body in self.bodies for p in PARAMETERS),
            *(f"{joint}.{term}" + f"[{k}]" * (robot.joint(joint).type.nv > 1) for term, joint, k in self.terms),
        )
        self.values = self.values_of(robot)
        order = list(specs)
        place = self.robot.nv + 10 * np.array([order.index(name) for name in self.bodies], int)[:, None] + np.arange(10)
        self._columns = place.ravel()
        self.turn = velocity_scale(self.robot)
        self.turn_of_motors = velocity_scale(self.robot, self.robot.actuated)
        gravity = float(np.linalg.norm(robot.gravity))
        self.rate = np.sqrt(gravity / robot._length) if gravity > 0.0 else 1.0
        self.units = self._units()

    def _units(self) -> Array:
        mass, length, rate = self.robot.mass or 1.0, self.robot._length, self.rate
        of_bodies = mass * length ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
        orders = {"armature": (0, 2), "damping": (1, 2), "stiffness": (2, 2), "friction": (2, 1), "offset": (2, 1)}
        of_joints = [
            mass * length**2 * rate ** orders[term][0] / velocity_scale(self.robot, [joint])[k] ** orders[term][1]
            for term, joint, k in self.terms
        ]
        return np.concatenate([np.tile(of_bodies, len(self.bodies)), of_joints])

    def values_of(self, robot: Mechanism) -> Array:
        """(p,) that a mechanism of the same parts has."""
        bodies = {body.name: body.inertia.parameters for body in robot.description.bodies}
        kinds = [(robot.joint(joint).type, term, k) for term, joint, k in self.terms]
        of_joints = [np.broadcast_to(getattr(kind, term, 0.0), kind.nv)[k] for kind, term, k in kinds]
        return np.concatenate([np.zeros(0), *(bodies[name] for name in self.bodies), of_joints])

    def _terms(self, terms: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, int]]:
        check_mapping("terms", terms, "names of terms to joints", 0)
        for term, joints in terms.items():
            if term not in TERMS:
                raise ModelError(f"'{term}' is not one of {', '.join(TERMS)}")
            for joint in checked_names(f"joints of '{term}'", joints):
                check_name("joint", joint, self.robot._joints, term)
                kind = self.robot.joint(joint).type
                if term == "stiffness" and kind.nv != 1:
                    raise ModelError(f"stiffness is identified of joints with one coordinate; '{joint}' has {kind.nv}")
                yield from ((term, joint, k) for k in range(kind.nv))

    @property
    def motors(self) -> tuple[str, ...]:
        """Of each effort the joint, "joint[1]" where it has several."""
        sizes = {name: self.robot.joint(name).type.nv for name in self.robot.actuated}
        return tuple(name + f"[{k}]" * (size > 1) for name, size in sizes.items() for k in range(size))

    def measured(self, data: Samples) -> Array:
        """(n, nu) in the order of the mechanism's motors."""
        sizes = {name: self.robot.joint(name).type.nv for name in self.robot.actuated}
        for name, size in sizes.items():
            if data.efforts[name].shape[1] != size:
                raise ShapeError(f"efforts of '{name}' need {size} columns; got shape {data.efforts[name].shape}")
        return np.concatenate([data.efforts[name] for name in sizes], axis=1)

    def rows(
        self, q: Array, v: Array, a: Array, kept: NDArray[np.intp] | None = None, directions: Mapping[str, Array] | None = None
    ) -> Array:  # fmt: skip
        """(nu, n, . + 1) columns of W that are kept, and the efforts of the mechanism as it is; StateError where they are not determined."""
        rows, _, status = self._rows(q, v, a, kept, directions)
        if np.any(status):
            raise StateError(
                f"sample {int(np.argmax(status != 0))}: efforts do not follow from the motion, or it is not sound"
            )
        return rows

    def _rows(
        self, q: Array, v: Array, a: Array, kept: NDArray[np.intp] | None = None, directions: Mapping[str, Array] | None = None
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """The same, the motions (n, nu, nv) along which motors give them, and a status of each state."""
        robot, nv, bodies = self.robot, self.robot.nv, 10 * len(self.bodies)
        kept = np.arange(len(self.names)) if kept is None else kept
        every, status = robot._effort_regressor(q, v, a, return_status=True)
        # of what is not the core's, any column, to hold the place; NumPy takes from a whole array twice as fast as from each motor's part
        columns = np.append(self._columns, np.zeros(len(self.terms) + 1, int))[np.append(kept, -1)]
        rows: Array = every.take(columns, axis=-1, mode="clip").swapaxes(0, 1)
        along = every[..., :nv]
        for i in np.flatnonzero(kept >= bodies):
            rows[..., i] = self._of_joint(self.terms[kept[i] - bodies], q, v, a, along, directions).T
        rows[..., -1] = (along @ robot.inverse_dynamics(q, v, a)[..., None])[..., 0].T
        return rows, along, np.asarray(status)

    def _of_joint(
        self, which: tuple[str, str, int], q: Array, v: Array, a: Array, along: Array, directions: Mapping[str, Array] | None
    ) -> Array:  # fmt: skip
        """(n, nu) what one of a joint's unit of a term asks of the motors."""
        term, joint, k = which
        j = self.robot.joint(joint)
        if j.closes_loop:
            states = self.robot.joint_states(q, v, a)
            x, dx, ddx = states.q[joint], states.v[joint][:, k], states.a[joint][:, k]
            moves = (along @ joint_velocity(self.robot, q, joint)[..., k, :, None])[..., 0]
        else:
            x, dx, ddx = q[:, j.q_slice], v[:, j.v_slice][:, k], a[:, j.v_slice][:, k]
            moves = along[..., j.v_slice.start + k]
        if term == "stiffness":
            return np.asarray(moves * (x - np.broadcast_to(j.type.rest, 1)))
        signs = np.sign(dx) if directions is None or joint not in directions else directions[joint][:, k]
        by = {"damping": dx, "friction": signs, "armature": ddx, "offset": np.ones(len(q))}[term]
        return np.asarray(moves * by[:, None])

    def anywhere(self, data: Samples, seed: int = 0) -> Array:
        """Rows (., p) of states about those measured, that move and accelerate in all ways that the loops allow: twice as many as columns, and
        others each time.
        """
        robot, turn, rng = self.robot, self.turn, np.random.default_rng(seed)
        states = 10 + 2 * len(self.names) // robot.nu

        def some() -> Array:
            return rng.normal(size=(states, robot.nv))

        some_of = rng.integers(len(data), size=states) if seed else np.linspace(0, len(data) - 1, states).astype(int)
        q = data.q[some_of]
        away = robot.integrate(q, 0.1 * robot.project_velocity(q, turn * some()))
        closed, status = robot.project_configuration(away, return_status=True)
        q = np.where((status == 0)[:, None], closed, q)
        v = robot.project_velocity(q, self.rate * turn * some())
        efforts = some() * np.abs(turn * robot.bias_forces(q, v)).max() / turn
        a, unsound = robot.forward_dynamics(q, v, efforts, return_status=True)
        q, v, a = (x[unsound == 0] for x in (q, v, a))
        rows, along, status = self._rows(q, v, a)
        good = status == 0
        if robot.nc:  # but for what fell so near a singular position that rounding shows
            J, x = robot.constraint_jacobian(q) * turn, np.swapaxes(along / turn, 1, 2)
            size = np.linalg.norm(J, axis=(1, 2)) * np.linalg.norm(x, axis=(1, 2))
            good &= np.linalg.norm(J @ x, axis=(1, 2)) < 1e-3 * SAME * size
        rows = self.turn_of_motors[:, None, None] * rows[:, good, :-1]
        return np.asarray(rows.reshape(rows.shape[0] * rows.shape[1], len(self.names)))


@dataclass(frozen=True, eq=False)
class Base:
    """Which parameters a set of rows tells: W pi = W[:, kept] (combination @ pi).

    Attributes
    ----------
    kept : columns that do not depend on those before them
    combination : (base, p)
    unseen : columns that are zero
    size : (base,) of the columns kept, in the mean over rows
    """

    kept: NDArray[np.intp]
    combination: Array
    unseen: NDArray[np.intp]
    size: Array

    def expressions(self, names: Sequence[str], units: Array, least: float = 1e-7) -> tuple[str, ...]:
        """Base parameters by name: "arm.m + 0.4 hand.m"."""
        rows = zip(self.combination, self.kept.tolist(), strict=True)
        return tuple(combined(row, names, first, units, least) for row, first in rows)


def combined(row: Array, names: Sequence[str], first: int, units: Array, least: float) -> str:
    """A combination of names, of which one stands first; of each name a unit, and what that brings beside the largest is left out up to `least`."""
    brings = np.abs(row * units)
    rest = [i for i in np.flatnonzero(brings > least * brings.max(initial=0.0)).tolist() if i != first]
    parts = [
        f" {'-' if row[i] < 0 else '+'} {'' if abs(abs(row[i]) - 1) < 1e-7 else f'{abs(row[i]):.4g} '}{names[i]}"
        for i in rest
    ]
    return names[first] + "".join(parts)


def independent_columns(X: Array, order: NDArray[np.intp] | None, floor: Array) -> Base:
    """The columns of X (rows, p) that depend on none before them, in this order, or that with most left first; what is below `floor` (p,) is none.

    Gram and Schmidt's method, twice: of columns of length one, what those before leave is the distance from their span.
    """
    rows, X = len(X), np.asarray(np.linalg.qr(X, mode="r")) if len(X) > X.shape[1] else X
    size = np.linalg.norm(X, axis=0)
    seen = size > np.maximum(floor, np.finfo(float).tiny)
    least = np.maximum(SAME, np.where(seen, floor / np.where(seen, size, 1.0), np.inf))
    unit = X / np.where(seen, size, 1.0)
    kept, left = list[int](), np.where(seen, unit, 0.0)
    for k in range(len(size)):
        away = np.linalg.norm(left, axis=0) / least
        j = int(np.argmax(away > (1.0 - SAME) * away.max())) if order is None else int(order[k])  # of equals the first
        if away[j] > 1.0:
            kept.append(j)
            basis = left[:, j] / np.linalg.norm(left[:, j])
            for _ in range(2):
                left = left - np.outer(basis, basis @ left)
        elif order is None:
            break
    rest = np.linalg.lstsq(unit[:, kept], unit, rcond=None)[0] if kept else np.zeros((0, X.shape[1]))
    rest[np.abs(rest) < 0.1 * SAME] = 0.0
    combination = rest * size / size[kept][:, None]
    combination[:, ~seen] = 0.0
    combination[:, kept] = np.eye(len(kept))
    return Base(np.array(kept, np.intp), combination, np.flatnonzero(~seen), size[kept] / np.sqrt(rows))


def base_of(model: EffortModel, data: Samples) -> Base:
    """What efforts of these motors can tell, wherever near the data the mechanism moves: the heaviest bodies' parameters first."""
    mass = np.repeat(model.values[: 10 * len(model.bodies) : 10], 10)
    order = np.concatenate([np.arange(len(mass), len(model.names)), np.argsort(-mass, kind="stable")]).astype(np.intp)

    def told(X: Array) -> tuple[Base, Array]:
        # what is much of a parameter moves efforts: by rounding of the most that any does is by nothing, as in a joint that the loops hold fast
        moves = np.linalg.norm(X, axis=0) * model.units
        floor = ROUNDING * moves.max(initial=0.0) / model.units
        return independent_columns(X, order, floor), np.maximum(SAME * np.linalg.norm(X, axis=0), floor)

    X = model.anywhere(data)
    base, least = told(X)
    # where the data are of several branches, few rows may be of one of them: until others tell nothing new
    for seed in count(1):
        others = model.anywhere(data, seed)
        left = others - others[:, base.kept] @ base.combination
        if np.all(np.linalg.norm(left, axis=0) <= least):
            break
        before, X = len(base.kept), np.vstack([X, others])
        base, least = told(X)
        if len(base.kept) <= before:
            break
    if not len(base.kept):
        raise ModelError(f"efforts of {', '.join(model.motors) or 'no motor'} tell none of the parameters")
    return base
