"""Motions of a closed chain that each motor causes, efforts of the motors, and derivatives of both with respect to dimensions.

Let x_k be the velocity that satisfies the constraints while motor k moves at unit rate and all other motors are at rest. By virtual power, effort k
is u_k = x_k . tau. A joint can be cut in some directions, by adding fixed joints with motors. The efforts of these motors are then the joint's
reactions in these directions.

The derivative of x_k is computed from accelerations. If motor k accelerates the mechanism from rest, the acceleration is proportional to x_k. Its
exact derivative with respect to dimensions is `sarrus.derivatives.forward_dynamics`; the component along the motors is removed. The result does not
depend on masses. Therefore a twin of the mechanism with the same tree is used, in which all bodies have unit mass; massless bodies could make the
equations singular.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from . import derivatives
from ._arrays import Array
from ._core import tolerances
from .analysis.closing import prepared
from .analysis.linear_algebra import sliding_velocities
from .description.joints import PASSIVE, Prismatic, Revolute
from .description.specs import BodySpec, Description, JointSpec
from .dimensions import AXES, Dimensions, Moves, Tied
from .dynamics.variants import _rebuilt
from .errors import ModelError
from .mechanism import Mechanism
from .spatial import Inertia, Transform

ALONE = 1e-6  # tolerance of the rates of the other motors, in a motion in which one motor has unit rate


class MotorMotions:
    """Motions and efforts of a mechanism's motors. To compute a reaction, one joint can be cut along some `AXES` of its frame on the child.

    Attributes
    ----------
    robot, twin : the mechanism with the cut; the twin has bodies of unit mass
    fixed_joints : joints added by the cut
    columns : (m) indices of the motors' velocities, then of the velocities of the fixed joints
    scale : (nv,) units of velocities: the mechanism's length for linear velocities, 1 for angular ones
    """

    def __init__(self, robot: Mechanism, joint: str, axes: Sequence[str]) -> None:
        self.base, self.fixed_joints = robot, tuple(f"{joint} along {axis}" for axis in axes)
        d = _on_its_tree(robot)
        d = _cut(d, joint, axes, self.fixed_joints) if axes else d
        self.robot, self.twin = Mechanism(d), Mechanism(_of_equal_bodies(d, robot._length))
        if not robot.actuated:
            raise ModelError(f"'{robot.name}' has no motors: to_builder().set_joint(joint, actuated=True) adds one")
        self.columns, motors = list[int](), (*robot.actuated, *self.fixed_joints)
        self._order = [self.robot.actuated.index(name) for name in motors]
        for name in motors:
            if self.robot.joint(name).closes_loop or self.robot.joint(name).nv != 1:
                raise ModelError(
                    f"the motor of '{name}' must be in a tree joint with one coordinate; add_joint(..., tree=True) keeps a joint in the tree"
                )
            self.columns.append(self.robot.joint(name).v_slice.start)
        self.scale = np.where(sliding_velocities(self.robot), robot._length, 1.0)
        self._moved = {f"{joint}.child": f"{self.fixed_joints[-1]}.child"} if axes else {}

    @classmethod
    def of(cls, robot: Mechanism, joint: str = "", axes: Sequence[str] = ()) -> MotorMotions:
        """Return the motions of a mechanism; the object is created once and cached."""
        return prepared(robot, ("motor motions", joint, tuple(axes)), lambda: cls(robot, joint, axes))

    def renamed(self, dimension: str) -> str:
        """Return the name that a dimension has in the mechanism with the cut."""
        frame, _, axis = dimension.rpartition(".")
        return f"{self._moved.get(frame, frame)}.{axis}"

    def configurations(self, q: Array) -> Array:
        """Return configurations (..., nq) of the mechanism with the cut."""
        q_cut = np.zeros((*q.shape[:-1], self.robot.nq))
        for name in self.base.joints:
            q_cut[..., self.robot.joint(name).q_slice] = q[..., self.base.joint(name).q_slice]
        return q_cut

    def variants(self, variants: Any) -> tuple[Any, Any]:
        """Return the corresponding variants of the mechanism with the cut, and of its twin."""
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
        """Return the motions x_k (N, n, m, nv) of variants of `robot`; NaN if a motion does not exist.

        If motors are redundant, they share the motion.
        """
        rest = np.zeros(self.robot.nv)
        x, status = many._effort_regressor(q, rest, rest, return_status=True)
        return np.where(np.asarray(status == 0)[..., None, None], x[..., self._order, : self.robot.nv], np.nan)

    def efforts(self, variants: Any, q: Array, rates: Array, bends: Array) -> Array:
        """Return the efforts (N, n, m) for velocities `rates` (n, m) and accelerations `bends` (n, m) of the motors.

        Fixed joints of the cut do not move.
        """
        q, (many, twins) = self.configurations(q), self.variants(variants)
        x = self.units(many, q)
        off = np.abs(x[..., self.columns] - np.eye(len(self.columns)))
        independent = np.asarray((off < ALONE).all(axis=(-2, -1)))
        if not independent.any():
            cut = "; another possible reason: components of the joint's wrench are indeterminate (joint_wrenches(q, v, a).indeterminate)"
            raise ModelError(
                f"motors ({', '.join(self.base.actuated)}) do not move independently of each other; expected as many motors as degrees of freedom{cut * bool(self.fixed_joints)}"
            )
        x = np.where(independent[..., None, None], x, np.nan)
        v = np.einsum("nk,mnkv->mnv", rates, x)
        drift = twins.forward_dynamics(q, v, np.zeros(self.robot.nv), check=False, return_status=True)[0]
        a = drift + np.einsum("mnk,mnkv->mnv", bends - drift[..., self.columns], x)
        return cast(Array, np.einsum("mnkv,mnv->mnk", x, many.inverse_dynamics(q, v, a, return_status=True)[0]))

    def actuation(self, variants: Any, q: Array) -> Array:
        """Return the smallest singular value (N, n) of the map from motions of unit norm to motor velocities.

        As many singular values are considered as there are degrees of freedom.
        """
        x = np.swapaxes(self.units(self.variants(variants)[0], self.configurations(q)), -1, -2)
        along = x / self.scale[:, None] * self.scale[self.columns]
        sound = np.asarray(np.isfinite(along).all(axis=(-2, -1)))
        U, size, _ = np.linalg.svd(np.where(sound[..., None, None], along, 0.0), full_matrices=False)
        # mask of the nonzero singular values. Their number is that of the degrees of freedom, which is smaller than that of the motors if motors
        # are redundant
        free = size > tolerances.present * size[..., :1]
        seen = np.linalg.svd(U[..., self.columns, :] * free[..., None, :], compute_uv=False)
        least = np.take_along_axis(seen, np.maximum(free.sum(axis=-1, keepdims=True) - 1, 0), axis=-1)[..., 0]
        return np.where(sound, least, np.nan)


class MotorChanges:
    """Derivatives of motions and efforts of one mechanism with respect to p dimensions, at configurations q (n, nq).

    The driven joints are fixed, so that q depends on the dimensions.

    Attributes
    ----------
    basis : (n, nv, k) motions x_k that satisfy the constraints, of the driven joints and of the fixed joints of the cut
    """

    def __init__(self, of: MotorMotions, moves: Moves, q: Array) -> None:
        names = [Tied(t.name, {of.renamed(name): x for name, x in t.coefficients.items()}) for t in moves.of._ties]
        leading = (*moves.of.leading, *of.fixed_joints)
        self.q, self.columns, self.scale = of.configurations(q), of.columns, of.scale
        self.robot = Dimensions(of.robot, leading, names).changed(moves.x)
        dimensions = Dimensions(of.twin, leading, names)
        if moves.together.any():
            name = moves.of.names[int(np.argmax(moves.together))]
            raise ModelError(
                f"efforts have no derivatives with respect to '{name}', because its members alone would open the loops: pass an objective that has "
                "rows() only, so that differences are used"
            )
        self.twin = dimensions.changed(moves.x)
        D = derivatives.assembled_positions(self.twin, self.q, leading)
        twin_moves = Moves(dimensions, D, moves.x)
        self.basis, self.dq = D.leading, twin_moves.coordinates()
        self.by_numbers = twin_moves.numbers(derivatives.dimensions(self.twin))

    def accelerations(self, v: Array, a: Array, dv: Array, x: Array, kept: Array) -> Array:
        """Return derivatives (..., n, nv, p) of accelerations with respect to dimensions, at constant rates.

        Rate i of a velocity v is the product of row i of `kept` (n, k, nv) with v. Motion k of x (n, nv, k) has rate k equal to 1, and all other
        rates zero.
        """
        F = derivatives.forward_dynamics(self.twin, self.q, v, self.twin.inverse_dynamics(self.q, v, a))
        da = np.nan_to_num(F.dimensions) @ self.by_numbers + F.q @ self.dq + F.v @ (dv - F.velocity @ self.dq)
        return np.asarray(da - x @ (kept @ da))

    def actuation(self) -> tuple[Array, Array]:
        """Return :meth:`MotorMotions.actuation` (n,) and its derivatives (n, p).

        The derivative of a singular value of a matrix B is u . dB w, with its left and right singular vectors u and w.
        """
        T = np.linalg.qr(self.basis / self.scale[:, None])[0]  # motions of unit norm
        U, sizes, W = np.linalg.svd(T[:, self.columns], full_matrices=False)
        y = (T @ W[:, -1, :, None])[..., 0] * self.scale
        still, fixed, units = np.zeros(len(self.scale)), np.zeros_like(self.dq), self.scale[:, None]
        dy = self.accelerations(still, y, fixed, T * units, np.swapaxes(T, 1, 2) / self.scale)
        return sizes[:, -1], np.einsum("nk,nkp->np", U[:, :, -1], (dy / self.scale[:, None])[:, self.columns])

    def efforts(self, rates: Array, bends: Array) -> tuple[Array, Array]:
        """Return :meth:`MotorMotions.efforts` (n, m) and their derivatives (n, m, p)."""
        q, nv = self.q, self.robot.nv
        if self.basis.shape[-1] != len(self.columns):
            raise ModelError(
                f"efforts require as many motors as degrees of freedom; got {len(self.columns)} motors for {self.basis.shape[-1]} degrees of freedom"
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


def _cut(d: Description, joint: str, axes: Sequence[str], fixed_joints: Sequence[str]) -> Description:
    """Return a description in which the joint is cut: its child becomes a massless body, and fixed joints in series connect this body to the original
    child.
    """
    links = [f"{name}, parent" for name in fixed_joints]
    joints = []
    for j in d.joints:
        if j.name != joint:
            joints.append(j)
            continue
        joints.append(dataclasses.replace(j, child=links[0], at_child=Transform()))
        for k, (name, axis) in enumerate(zip(fixed_joints, axes, strict=True)):
            last = k + 1 == len(fixed_joints)
            kind = (Revolute if axis in AXES[:3] else Prismatic)(axis[-1])
            child, at = (j.child, j.at_child) if last else (links[k + 1], Transform())
            joints.append(JointSpec(name, kind, links[k], child, at_child=at, actuated=True, tree=True))
    bodies = (*d.bodies, *(BodySpec(name, Inertia.zero()) for name in links))
    return dataclasses.replace(d, bodies=bodies, joints=tuple(joints))


def _of_equal_bodies(d: Description, length: float) -> Description:
    """Return a description with bodies of unit mass, without springs and friction."""
    bodies = [dataclasses.replace(b, inertia=Inertia(1.0, (0.0, 0.0, 0.0), length**2 * np.eye(3))) for b in d.bodies]
    joints = []
    for j in d.joints:
        none = {term: 0.0 for term in PASSIVE if term != "rest" and np.any(getattr(j.joint, term, 0.0))}
        joints.append(dataclasses.replace(j, joint=dataclasses.replace(j.joint, **none)) if none else j)
    return dataclasses.replace(d, bodies=tuple(bodies), joints=tuple(joints), springs=())
