"""The motions along which motors work, loops included, what motors must do, and how both change with dimensions.

Effort k is the power of the generalised force along the motion on the loops in which motor k alone moves, at unit rate: u_k = x_k . tau (virtual
power). Where a joint is cut in some directions by held joints with motors, their efforts are what it carries in these directions.

How x_k changes is read off accelerations: motor k accelerates the mechanism from rest along x_k, so that x_k changes as that acceleration does
(`sarrus.derivatives.forward_dynamics`, exact by dimensions), less what motors must take back of it. Masses play no part in it: it is asked of a
twin on the same tree whose bodies weigh one each, to which bodies without mass do no harm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from . import derivatives
from ._arrays import Array
from ._core import tolerances
from .analysis.assembly.closing import prepared
from .analysis.scaling import sliding_velocities
from .description.joints import Prismatic, Revolute
from .description.specs import BodySpec, Description, JointSpec
from .dimensions import AXES, Dimensions, Moves
from .dynamics.variants import _rebuilt
from .errors import ModelError
from .mechanism import Mechanism
from .spatial import Inertia, Transform

ALONE = 1e-6  # of unit rates, how far off other motors' may be where each moves alone


class MotorMotions:
    """A mechanism with motors in its tree, one of whose joints is cut in some directions (`AXES` of its frame on the child).

    Attributes
    ----------
    robot, twin : with the cut; the twin's bodies weigh one each
    held : the joints that the cut has added
    columns : (m) velocities of the motors, then of those
    scale : (nv,) how velocities compare, slides by the mechanism's length
    """

    def __init__(self, robot: Mechanism, joint: str, axes: Sequence[str]) -> None:
        self.base, self.held = robot, tuple(f"{joint} along {axis}" for axis in axes)
        d = _on_its_tree(robot)
        d = _cut(d, joint, axes, self.held) if axes else d
        self.robot, self.twin = Mechanism(d), Mechanism(_of_equal_bodies(d, robot._length))
        if not robot.actuated:
            raise ModelError(f"'{robot.name}' has no motors: to_builder().set_actuated(joint) adds one")
        self.columns, motors = list[int](), (*robot.actuated, *self.held)
        self._order = [self.robot.actuated.index(name) for name in motors]
        for name in motors:
            if self.robot.joint(name).closes_loop or self.robot.joint(name).nv != 1:
                raise ModelError(
                    f"the motor of '{name}' is in no joint of the tree with one coordinate; add_joint(..., tree=True) keeps it there"
                )
            self.columns.append(self.robot.joint(name).v_slice.start)
        self.scale = np.where(sliding_velocities(self.robot), robot._length, 1.0)
        self._moved = {f"{joint}.child": f"{self.held[-1]}.child"} if axes else {}

    @classmethod
    def of(cls, robot: Mechanism, joint: str = "", axes: Sequence[str] = ()) -> MotorMotions:
        """Made once of a mechanism."""
        return prepared(robot, ("motor motions", joint, tuple(axes)), lambda: cls(robot, joint, axes))

    def renamed(self, dimension: str) -> str:
        """A dimension of the mechanism, as the one that is cut has it."""
        frame, _, axis = dimension.rpartition(".")
        return f"{self._moved.get(frame, frame)}.{axis}"

    def configurations(self, q: Array) -> Array:
        """(..., nq) of those of the mechanism."""
        there = np.zeros((*q.shape[:-1], self.robot.nq))
        for name in self.base.joints:
            there[..., self.robot.joint(name).q_slice] = q[..., self.base.joint(name).q_slice]
        return there

    def variants(self, variants: Any) -> tuple[Any, Any]:
        """The same of the mechanism that is cut, and of its twin."""
        changes = variants._own_changes()
        if "placements" in changes:
            changes["placements"] = {self._moved.get(frame, frame): x for frame, x in changes["placements"].items()}
        geometric = {"gravity": np.zeros((len(variants), 3))}
        geometric |= {key: changes[key] for key in ("placements", "lengths", "pitch") if key in changes}
        many, twins = (
            _rebuilt(type(variants), robot, len(variants), of)
            for robot, of in ((self.robot, changes), (self.twin, geometric))
        )
        return many, twins

    def units(self, many: Any, q: Array) -> Array:
        """(N, n, m, nv) of variants of `robot` each motor's motion at unit rate, of redundant ones their shares; NaN where there are none."""
        rest = np.zeros(self.robot.nv)
        x, status = many._effort_regressor(q, rest, rest, return_status=True)
        return np.where(np.asarray(status == 0)[..., None, None], x[..., self._order, : self.robot.nv], np.nan)

    def efforts(self, variants: Any, q: Array, rates: Array, bends: Array) -> Array:
        """(N, n, m) at rates (n, m) of the motors, and accelerations; what is held stays."""
        q, (many, twins) = self.configurations(q), self.variants(variants)
        x = self.units(many, q)
        off = np.abs(x[..., self.columns] - np.eye(len(self.columns)))
        alone = np.asarray((off < ALONE).all(axis=(-2, -1)))
        if not alone.any():
            cut = "; or no rigid body determines all components of what the joint carries (joint_wrenches(q, v, a).indeterminate)"
            raise ModelError(
                f"motors ({', '.join(self.base.actuated)}) do not move independently of each other: there must be as many as freedoms{cut * bool(self.held)}"
            )
        x = np.where(alone[..., None, None], x, np.nan)
        v = np.einsum("nk,mnkv->mnv", rates, x)
        drift = twins.forward_dynamics(q, v, np.zeros(self.robot.nv), check=False, return_status=True)[0]
        a = drift + np.einsum("mnk,mnkv->mnv", bends - drift[..., self.columns], x)
        return cast(Array, np.einsum("mnkv,mnv->mnk", x, many.inverse_dynamics(q, v, a, return_status=True)[0]))

    def actuation(self, variants: Any, q: Array) -> Array:
        """(N, n) the smallest singular value of what motors see of motions of size one, of as many as there are freedoms."""
        x = np.swapaxes(self.units(self.variants(variants)[0], self.configurations(q)), -1, -2)
        along = x / self.scale[:, None] * self.scale[self.columns]
        sound = np.asarray(np.isfinite(along).all(axis=(-2, -1)))
        U, size, _ = np.linalg.svd(np.where(sound[..., None, None], along, 0.0), full_matrices=False)
        free = size > tolerances.present * size[..., :1]  # of redundant motors, less than there are
        seen = np.linalg.svd(U[..., self.columns, :] * free[..., None, :], compute_uv=False)
        least = np.take_along_axis(seen, np.maximum(free.sum(axis=-1, keepdims=True) - 1, 0), axis=-1)[..., 0]
        return np.where(sound, least, np.nan)


class MotorChanges:
    """How these change in one mechanism, at q (n, nq), with p dimensions, by which q goes along with the joints that lead it.

    Attributes
    ----------
    basis : (n, nv, k) motions on the loops, of the joints that lead and those that are held
    """

    def __init__(self, of: MotorMotions, moves: Moves, q: Array) -> None:
        names, leading = [of.renamed(name) for name in moves.of.names], (*moves.of.leading, *of.held)
        self.q, self.columns, self.scale = of.configurations(q), of.columns, of.scale
        self.robot = Dimensions(of.robot, leading, names).changed(moves.x)
        dimensions = Dimensions(of.twin, leading, names)
        self.twin = dimensions.changed(moves.x)
        D = derivatives.assembled_positions(self.twin, self.q, leading)
        here = Moves(dimensions, D, moves.x)
        self.basis, self.dq = D.leading, here.coordinates()
        self.by_numbers = here.numbers(derivatives.dimensions(self.twin))

    def accelerations(self, v: Array, a: Array, dv: Array, x: Array, kept: Array) -> Array:
        """(..., n, nv, p) with the rates `kept` (n, k, nv) of them, which motions x (n, nv, k) have one each of, as they are."""
        F = derivatives.forward_dynamics(self.twin, self.q, v, self.twin.inverse_dynamics(self.q, v, a))
        da = np.nan_to_num(F.dimensions) @ self.by_numbers + F.q @ self.dq + F.v @ (dv - F.velocity @ self.dq)
        return np.asarray(da - x @ (kept @ da))

    def actuation(self) -> tuple[Array, Array]:
        """(n,) and (n, p), as :meth:`MotorMotions.actuation`: of a singular value, u . d(B) w by its singular vectors."""
        T = np.linalg.qr(self.basis / self.scale[:, None])[0]  # motions of size one
        U, sizes, W = np.linalg.svd(T[:, self.columns], full_matrices=False)
        y = (T @ W[:, -1, :, None])[..., 0] * self.scale
        still, fixed, units = np.zeros(len(self.scale)), np.zeros_like(self.dq), self.scale[:, None]
        dy = self.accelerations(still, y, fixed, T * units, np.swapaxes(T, 1, 2) / self.scale)
        return sizes[:, -1], np.einsum("nk,nkp->np", U[:, :, -1], (dy / self.scale[:, None])[:, self.columns])

    def efforts(self, rates: Array, bends: Array) -> tuple[Array, Array]:
        """(n, m) and (n, m, p), as :meth:`MotorMotions.efforts`."""
        q, nv = self.q, self.robot.nv
        if self.basis.shape[-1] != len(self.columns):
            raise ModelError(
                f"efforts are of as many motors as freedoms; got {len(self.columns)} for {self.basis.shape[-1]}"
            )
        kept = np.eye(nv)[self.columns]
        x = self.basis @ np.linalg.inv(kept @ self.basis)
        dx = self.accelerations(np.zeros(nv), np.moveaxis(x, -1, 0), np.zeros_like(self.dq), x, kept)
        v, dv = (x @ rates[..., None])[..., 0], np.einsum("knvp,nk->nvp", dx, rates)
        drift = self.twin.forward_dynamics(q, v, np.zeros(nv), check=False, return_status=True)[0]
        a = drift + (x @ (bends - drift[:, self.columns])[..., None])[..., 0]
        da = self.accelerations(v, a, dv, x, kept)
        D, tau = derivatives.inverse_dynamics(self.robot, q, v, a), self.robot.inverse_dynamics(q, v, a)
        dtau = D.dimensions @ self.by_numbers + D.q @ self.dq + D.v @ dv + D.a @ da
        u = np.einsum("nvk,nv->nk", x, tau)
        return u, np.einsum("knvp,nv->nkp", dx, tau) + np.swapaxes(x, 1, 2) @ dtau


def _on_its_tree(robot: Mechanism) -> Description:
    d = robot.description
    joints = [dataclasses.replace(j, tree=j.name in robot.joints, loop=j.name not in robot.joints) for j in d.joints]
    return dataclasses.replace(d, joints=tuple(joints), shapes=())


def _cut(d: Description, joint: str, axes: Sequence[str], held: Sequence[str]) -> Description:
    """The joint moves a body without mass, along which held joints lead to its child."""
    links = [f"{name}, from there" for name in held]
    joints = []
    for j in d.joints:
        if j.name != joint:
            joints.append(j)
            continue
        joints.append(dataclasses.replace(j, child=links[0], at_child=Transform()))
        for k, (name, axis) in enumerate(zip(held, axes, strict=True)):
            last = k + 1 == len(held)
            kind = (Revolute if axis in AXES[:3] else Prismatic)(axis[-1])
            child, at = (j.child, j.at_child) if last else (links[k + 1], Transform())
            joints.append(JointSpec(name, kind, links[k], child, at_child=at, actuated=True, tree=True))
    bodies = (*d.bodies, *(BodySpec(name, Inertia.zero()) for name in links))
    return dataclasses.replace(d, bodies=bodies, joints=tuple(joints))


def _of_equal_bodies(d: Description, length: float) -> Description:
    """Without springs and friction."""
    bodies = [dataclasses.replace(b, inertia=Inertia(1.0, (0.0, 0.0, 0.0), length**2 * np.eye(3))) for b in d.bodies]
    joints = []
    for j in d.joints:
        none = {
            term: 0.0
            for term in ("stiffness", "damping", "friction", "armature")
            if np.any(getattr(j.joint, term, 0.0))
        }
        joints.append(dataclasses.replace(j, joint=dataclasses.replace(j.joint, **none)) if none else j)
    return dataclasses.replace(d, bodies=tuple(bodies), joints=tuple(joints), springs=())
