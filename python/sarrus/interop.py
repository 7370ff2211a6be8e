"""States in the order and the conventions of other programs.

MuJoCo's qpos and qvel, next to q and v:

==========  ============================  ==============================  ===================================================
joint       q                             qpos                            v and qvel
==========  ============================  ==============================  ===================================================
hinge       angle                         the same                        the same
slide       displacement                  the same                        the same
ball        quaternion x, y, z, w         quaternion w, x, y, z           angular velocity in the body's axes, in both
free        quaternion x, y, z, w;        position; quaternion            v: angular, linear, in the body's axes;
            position                      w, x, y, z                      qvel: linear in the world's axes, angular in the body's
==========  ============================  ==============================  ===================================================

A hinge or slide with a `ref` has it in both: see :mod:`sarrus.io.mujoco`. Joints stand in the order in which they were added, which in models
read from MJCF or taken by :func:`sarrus.from_mujoco` is MuJoCo's; `joints=` tells another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import Array, real_array
from .errors import ModelError, ShapeError, raise_no_such_name
from .mechanism import Joint, Mechanism, checked_mechanism

__all__ = ["from_mujoco", "to_mujoco"]


def __dir__() -> list[str]:
    return sorted(__all__)


# where of qpos the coordinates of a joint with so many are
FROM_QPOS = {1: [0], 4: [1, 2, 3, 0], 7: [4, 5, 6, 3, 0, 1, 2]}


@overload
def to_mujoco(robot: Mechanism, q: ArrayLike, v: None = None, *, joints: Iterable[str] | None = None) -> Array: ...
@overload
def to_mujoco(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, *, joints: Iterable[str] | None = None
) -> tuple[Array, Array]: ...
def to_mujoco(
    robot: Mechanism, q: ArrayLike, v: ArrayLike | None = None, *, joints: Iterable[str] | None = None
) -> Array | tuple[Array, Array]:
    """The state as MuJoCo has it: qpos, or with a v (qpos, qvel).

    Parameters
    ----------
    q : (..., nq)
    v : (..., nv)
    joints : their names in MuJoCo's order, each once: ``[model.joint(i).name for i in range(model.njnt)]``; default: the robot's order

    Returns
    -------
    qpos (..., nq), and qvel (..., nv) if v is given

    Raises
    ------
    ModelError
        The robot has a joint that MuJoCo has not, or a Free joint whose coordinates are not the pose of a body in the world.
    NameNotFoundError, ShapeError
        Of `joints`; of q and v.

    Examples
    --------
    >>> import sarrus
    >>> from sarrus import interop
    >>> stone = sarrus.loads("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    >>> interop.to_mujoco(stone, [0, 0, 0.6, 0.8, 1, 2, 3], [0, 0, 5, 1, 0, 0])[0].tolist()
    [1.0, 2.0, 3.0, 0.8, 0.0, 0.0, 0.6]
    """
    return _turned(robot, q, v, joints, back=False)


@overload
def from_mujoco(
    robot: Mechanism, qpos: ArrayLike, qvel: None = None, *, joints: Iterable[str] | None = None
) -> Array: ...
@overload
def from_mujoco(
    robot: Mechanism, qpos: ArrayLike, qvel: ArrayLike, *, joints: Iterable[str] | None = None
) -> tuple[Array, Array]: ...
def from_mujoco(
    robot: Mechanism, qpos: ArrayLike, qvel: ArrayLike | None = None, *, joints: Iterable[str] | None = None
) -> Array | tuple[Array, Array]:
    """The state from MuJoCo's: q, or with a qvel (q, v). Quaternions are kept as they are. See :func:`to_mujoco`.

    >>> import sarrus
    >>> from sarrus import interop
    >>> stone = sarrus.loads("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    >>> q, v = interop.from_mujoco(stone, [1, 2, 3, 0, 0, 0, 1], [1, 0, 0, 0, 0, 5])
    >>> q.tolist(), (v + 0.0).tolist()  # turned by half a turn about z
    ([0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 5.0, -1.0, 0.0, 0.0])
    """
    return _turned(robot, qpos, qvel, joints, back=True)


def _turned(
    robot: Mechanism, q: ArrayLike, v: ArrayLike | None, joints: Iterable[str] | None, *, back: bool
) -> Array | tuple[Array, Array]:
    names = ("qpos", "qvel") if back else ("q", "v")
    x = _sized(names[0], q, checked_mechanism(robot).nq)
    y = None if v is None else _sized(names[1], v, robot.nv)
    lead = x.shape[:-1] if y is None else np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    x_new, y_new = np.empty_like(x), None if y is None else np.empty((*lead, robot.nv))
    iq = iv = 0
    for joint in _in_order(robot, joints):
        here, there = (joint.q_slice, joint.v_slice), (slice(iq, iq + joint.nq), slice(iv, iv + joint.nv))
        (old_q, old_v), (new_q, new_v) = (there, here) if back else (here, there)
        order = FROM_QPOS[joint.nq]
        x_new[..., new_q] = x[..., old_q][..., order if back else np.argsort(order)]
        if y is not None and y_new is not None:
            y_new[..., new_v] = y[..., old_v]
            if joint.nv == 6:
                one, other = y[..., old_v][..., :3], y[..., old_v][..., 3:]
                quaternion = x[..., old_q][..., [4, 5, 6, 3]] if back else x[..., old_q][..., :4]
                linear, angular = (one, other) if back else (other, one)
                linear = _rotated(quaternion * ([-1, -1, -1, 1] if back else 1), linear)
                parts = np.broadcast_arrays(*((angular, linear) if back else (linear, angular)))
                y_new[..., new_v] = np.concatenate(parts, axis=-1)
        iq, iv = iq + joint.nq, iv + joint.nv
    return x_new if y_new is None else (x_new, y_new)


def _rotated(quaternion: Array, vector: Array) -> Array:
    u, w = quaternion[..., :3], quaternion[..., 3:]
    t = 2 * np.cross(u, vector)
    rotated: Array = vector + (w * t + np.cross(u, t)) / (quaternion**2).sum(axis=-1, keepdims=True)
    return rotated


def _sized(name: str, x: ArrayLike, n: int) -> Array:
    array = real_array(name, x)
    if array.shape[-1:] != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; this mechanism wants (..., {n})")
    return array


def _in_order(robot: Mechanism, names: Iterable[str] | None) -> Iterator[Joint]:
    moving = {name: robot.joint(name) for name in robot.joints if robot.joint(name).nq}
    specs = {spec.name: spec for spec in robot.description.joints}
    order = list(moving) if names is None else list(names)
    for name in order:
        if name not in moving:
            raise_no_such_name("moving joint", name, moving, "joints")
    if sorted(order) != sorted(moving):
        left_out = [name for name in moving if name not in order]
        raise ModelError(
            f"joints wants each moving joint of the robot once; left out: {left_out}, of {len(order)} named"
        )
    for name in order:
        joint, spec = moving[name], specs[name]
        if joint.kind not in ("Revolute", "Prismatic", "Spherical", "Free"):
            raise ModelError(f"joint '{name}' is {joint.kind}: MuJoCo has hinges, slides, balls and free joints only")
        if joint.kind == "Free" and (
            spec.parent != "ground" or spec.at_parent != spec.at_child or spec.at_parent.log().any()
        ):
            raise ModelError(
                f"joint '{name}': MuJoCo's free joints give the pose of a body's frame in the world, this one does not"
            )
        yield joint
