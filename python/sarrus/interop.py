"""Conversion of states to the order and conventions of MuJoCo and Pinocchio, and back; :mod:`sarrus.io` converts models.

Conventions of MuJoCo's qpos and qvel, and of q and v:

==========  ============================  ==============================  ===================================================
joint       q                             qpos                            v and qvel
==========  ============================  ==============================  ===================================================
hinge       angle                         the same                        the same
slide       displacement                  the same                        the same
ball        quaternion x, y, z, w         quaternion w, x, y, z           angular velocity in the body's axes, in both
free        quaternion x, y, z, w;        position; quaternion            v: angular, linear, in the body's axes;
            position                      w, x, y, z                      qvel: linear in the world's axes, angular in the body's
==========  ============================  ==============================  ===================================================

A nonzero `ref` of a hinge or slide is included in qpos and in q, see :mod:`sarrus.io.mujoco`. Joints are in the order in which they were added. For
models read from MJCF, or converted by :func:`sarrus.io.from_mujoco`, this is MuJoCo's order. For other models, the argument `joints` sets MuJoCo's
order. Motors of transmissions are tendons in MuJoCo and have no entries in qpos; their coordinates follow from those of the joints.

Conventions of Pinocchio's q and v. Joints correspond by their names; Pinocchio's vectors are in the order of Pinocchio's model:

===================  ==============================  =====================================  =========================================
Pinocchio's joint    sarrus                          Pinocchio's q                          Pinocchio's v
===================  ==============================  =====================================  =========================================
RX, Revolute...      Revolute                        the same                               the same
RUBX, ...Unbounded   Revolute                        cosine, sine                           the same
PX, HX, Translation  Prismatic, Helical, Gimbal      the same                               the same
Universal            Universal                       the same                               the same
SphericalZYX         three of Revolute               the same                               the same
Spherical            Spherical                       quaternion x, y, z, w, in both         angular velocity in the body's axes, in both
FreeFlyer            Free                            position; quaternion x, y, z, w        linear, angular, in the body's axes
Planar               Planar                          x, y; cosine, sine                     the same, in the body's axes
Composite            its joints, one after another   theirs, one after another              theirs, one after another
Mimic                its joint, and a coupler        none                                   none
===================  ==============================  =====================================  =========================================

If a joint of Pinocchio corresponds to several joints of sarrus, their names are numbered: `wrist_1`, `wrist_2`. A joint of several axes (Cylindrical,
Gimbal) may be a Composite in Pinocchio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ._arrays import Array, ArrayLike, checked_names, real_array
from ._core.spatial import rotation_from_quaternion
from ._deferred import attributes
from .analysis.linear_algebra import applied, transposed
from .description.joints import Free, Gimbal, Helical, JointType, Planar, Prismatic, Revolute, Spherical, Universal
from .errors import ModelError, ShapeError, check_name, raise_no_such_name
from .mechanism import Joint, Mechanism, checked_mechanism

if TYPE_CHECKING:
    import pinocchio

__all__ = ["from_mujoco_state", "from_pinocchio_state", "to_mujoco_state", "to_pinocchio_state"]

__getattr__ = attributes(__name__, {})


def __dir__() -> list[str]:
    return sorted(__all__)


# number of a joint's coordinates -> indices in qpos of the coordinates in the order of q
FROM_QPOS = {1: [0], 4: [1, 2, 3, 0], 7: [4, 5, 6, 3, 0, 1, 2]}


@overload
def to_mujoco_state(
    robot: Mechanism, q: ArrayLike, v: None = None, *, joints: Iterable[str] | None = None
) -> Array: ...
@overload
def to_mujoco_state(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, *, joints: Iterable[str] | None = None
) -> tuple[Array, Array]: ...
def to_mujoco_state(
    robot: Mechanism, q: ArrayLike, v: ArrayLike | None = None, *, joints: Iterable[str] | None = None
) -> Array | tuple[Array, Array]:
    """Return the state in MuJoCo's convention: qpos, or the tuple (qpos, qvel) if `v` is passed.

    Parameters
    ----------
    robot : the mechanism
    q : (..., nq) configuration [rad, m]
    v : (..., nv) velocity [rad/s, m/s]
    joints : names of all moving joints in MuJoCo's order: ``[model.joint(i).name for i in range(model.njnt)]``; default: the robot's order

    Returns
    -------
    qpos (..., nq), and qvel (..., nv) if `v` is passed

    Raises
    ------
    ModelError
        The robot has a joint that MuJoCo lacks, or a Free joint whose coordinates are not the pose of a body in the world.
    NameNotFoundError, ShapeError
        A name in `joints` is unknown; q or v has a wrong shape.

    Examples
    --------
    >>> import sarrus
    >>> from sarrus import interop
    >>> stone = sarrus.loads("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    >>> interop.to_mujoco_state(stone, [0, 0, 0.6, 0.8, 1, 2, 3], [0, 0, 5, 1, 0, 0])[0].tolist()
    [1.0, 2.0, 3.0, 0.8, 0.0, 0.0, 0.6]
    """
    return _turned(robot, q, v, joints, back=False)


@overload
def from_mujoco_state(
    robot: Mechanism, qpos: ArrayLike, qvel: None = None, *, joints: Iterable[str] | None = None
) -> Array: ...
@overload
def from_mujoco_state(
    robot: Mechanism, qpos: ArrayLike, qvel: ArrayLike, *, joints: Iterable[str] | None = None
) -> tuple[Array, Array]: ...
def from_mujoco_state(
    robot: Mechanism, qpos: ArrayLike, qvel: ArrayLike | None = None, *, joints: Iterable[str] | None = None
) -> Array | tuple[Array, Array]:
    """Return a state of MuJoCo in sarrus' convention: q, or the tuple (q, v) if `qvel` is passed.

    Quaternions are not normalised. Errors are those of :func:`to_mujoco_state`.

    Parameters
    ----------
    robot : the mechanism
    qpos : (..., nq) configuration in MuJoCo's order [rad, m]
    qvel : (..., nv) velocity in MuJoCo's order [rad/s, m/s]
    joints : names of all moving joints in MuJoCo's order; default: the robot's order

    >>> import sarrus
    >>> from sarrus import interop
    >>> stone = sarrus.loads("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    >>> q, v = interop.from_mujoco_state(stone, [1, 2, 3, 0, 0, 0, 1], [1, 0, 0, 0, 0, 5])
    >>> q.tolist(), (v + 0.0).tolist()  # turned by half a turn about z
    ([0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 5.0, -1.0, 0.0, 0.0])
    """
    return _turned(robot, qpos, qvel, joints, back=True)


def _turned(
    robot: Mechanism, q: ArrayLike, v: ArrayLike | None, joints: Iterable[str] | None, *, back: bool
) -> Array | tuple[Array, Array]:
    names = ("qpos", "qvel") if back else ("q", "v")
    own, fewer = (checked_mechanism(robot).nq, robot.nv), len(robot._motors)
    other = own[0] - fewer, own[1] - fewer  # motors of transmissions have no entries in qpos and qvel
    (nq, nv), (new_nq, new_nv) = (other, own) if back else (own, other)
    x, y = _sized(names[0], q, nq), _sized(names[1], np.zeros(nv) if v is None else v, nv)
    x_new, y_new = (
        np.empty((*x.shape[:-1], new_nq)),
        np.empty((*np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), new_nv)),
    )
    iq = iv = 0
    for joint in _in_order(robot, joints):
        sarrus, mujoco = (joint.q_slice, joint.v_slice), (slice(iq, iq + joint.nq), slice(iv, iv + joint.nv))
        (old_q, old_v), (new_q, new_v) = (mujoco, sarrus) if back else (sarrus, mujoco)
        order = FROM_QPOS[joint.nq]
        x_new[..., new_q] = x[..., old_q][..., order if back else np.argsort(order)]
        y_new[..., new_v] = y[..., old_v]
        if joint.nv == 6 and v is not None:
            first, second = y[..., old_v][..., :3], y[..., old_v][..., 3:]
            quaternion = x[..., old_q][..., [4, 5, 6, 3]] if back else x[..., old_q][..., :4]
            linear, angular = (first, second) if back else (second, first)
            R = rotation_from_quaternion(quaternion)
            linear = applied(transposed(R) if back else R, linear)
            parts = np.broadcast_arrays(*((angular, linear) if back else (linear, angular)))
            y_new[..., new_v] = np.concatenate(parts, axis=-1)
        iq, iv = iq + joint.nq, iv + joint.nv
    if back:
        robot._set_motors(x_new)
        robot._set_motors(y_new, rate=True)
    return x_new if v is None else (x_new, y_new)


def _sized(name: str, x: ArrayLike, n: int, owner: str = "this mechanism") -> Array:
    array = real_array(name, x)
    if array.shape[-1:] != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; {owner} requires (..., {n})")
    return array


def _in_order(robot: Mechanism, names: Iterable[str] | None) -> Iterator[Joint]:
    moving = {name: joint for name in robot.joints if (joint := robot.joint(name)).nq and name not in robot._motors}
    specs = {spec.name: spec for spec in robot.description.joints}
    order = list(moving) if names is None else checked_names("joints", names)
    for name in order:
        check_name("moving joint", name, moving, "joints")
    if sorted(order) != sorted(moving):
        left_out = [name for name in moving if name not in order]
        raise ModelError(
            f"joints must name each moving joint of the robot once; {len(order)} are named, missing: {left_out}"
        )
    for name in order:
        joint, spec = moving[name], specs[name]
        if joint.kind not in ("Revolute", "Prismatic", "Spherical", "Free"):
            raise ModelError(f"joint '{name}' is {joint.kind}: MuJoCo has hinges, slides, balls and free joints only")
        if joint.kind == "Free" and (
            spec.parent != "ground" or spec.at_parent != spec.at_child or spec.at_parent.log().any()
        ):
            raise ModelError(
                f"joint '{name}': MuJoCo's free joints have the pose of a body's frame in the world; expected at_parent and at_child to be identities"
            )
        yield joint


# --- Pinocchio ------------------------------------------------------------------------------------------------------------------------

# indices of the coordinates and velocities of a Free joint in q and v of Pinocchio's FreeFlyer
FREE_Q, FREE_V = [3, 4, 5, 6, 0, 1, 2], [3, 4, 5, 0, 1, 2]


@overload
def to_pinocchio_state(robot: Mechanism, model: pinocchio.Model, q: ArrayLike, v: None = None) -> Array: ...
@overload
def to_pinocchio_state(robot: Mechanism, model: pinocchio.Model, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]: ...
def to_pinocchio_state(
    robot: Mechanism, model: pinocchio.Model, q: ArrayLike, v: ArrayLike | None = None
) -> Array | tuple[Array, Array]:
    """Return the state in Pinocchio's convention: q, or the tuple (q, v) if `v` is passed.

    Parameters
    ----------
    robot : the mechanism
    model : a ``pinocchio.Model``, from :func:`~sarrus.io.to_pinocchio`, the argument of :func:`sarrus.io.from_pinocchio`, or read by
        Pinocchio from the same file; Pinocchio is not imported
    q : (..., nq) configuration of the robot [rad, m]
    v : (..., nv) velocity of the robot [rad/s, m/s]

    Returns
    -------
    q (..., model.nq), and v (..., model.nv) if `v` is passed. Both have no entries for mimic joints, whose coordinates are omitted

    Raises
    ------
    ModelError
        The robot and the model do not have the same joints. Or the child of a joint of several axes is nearer to the ground, so that Pinocchio's
        coordinates are those of the inverse joint.
    ShapeError
        q or v has a wrong shape.

    Examples
    --------
    >>> from sarrus import interop
    >>> model = pinocchio.buildModelFromUrdf("robot.urdf")  # doctest: +SKIP
    >>> robot = sarrus.load("robot.urdf")  # doctest: +SKIP
    >>> pinocchio.rnea(model, model.createData(), *interop.to_pinocchio_state(robot, model, q, v), a)  # doctest: +SKIP
    """
    x, y = _sized("q", q, checked_mechanism(robot).nq), _sized("v", np.zeros(robot.nv) if v is None else v, robot.nv)
    x_new, y_new = np.zeros((*x.shape[:-1], checked_model(model).nq)), np.zeros((*y.shape[:-1], model.nv))
    for joint, own_q, own_v, mimic in _shared(robot, model):
        if mimic is not None:
            continue
        order_q, order_v = _orders(joint)
        part = x[..., joint.q_slice][..., np.argsort(order_q)]
        if own_q.stop - own_q.start > joint.nq:
            part = np.concatenate([part[..., :-1], np.cos(part[..., -1:]), np.sin(part[..., -1:])], axis=-1)
        x_new[..., own_q] = part
        y_new[..., own_v] = y[..., joint.v_slice][..., np.argsort(order_v)]
    return x_new if v is None else (x_new, y_new)


@overload
def from_pinocchio_state(robot: Mechanism, model: pinocchio.Model, q: ArrayLike, v: None = None) -> Array: ...
@overload
def from_pinocchio_state(
    robot: Mechanism, model: pinocchio.Model, q: ArrayLike, v: ArrayLike
) -> tuple[Array, Array]: ...
def from_pinocchio_state(
    robot: Mechanism, model: pinocchio.Model, q: ArrayLike, v: ArrayLike | None = None
) -> Array | tuple[Array, Array]:
    """Return a state of Pinocchio in sarrus' convention: q, or the tuple (q, v) if `v` is passed.

    Angles computed from cosine and sine are between -pi and pi. Coordinates of mimic joints are computed from the joints that they mimic. Errors
    are those of :func:`to_pinocchio_state`.

    Parameters
    ----------
    robot : the mechanism
    model : a ``pinocchio.Model`` with the same joints, see :func:`to_pinocchio_state`
    q : (..., model.nq) configuration in Pinocchio's order [rad, m]
    v : (..., model.nv) velocity in Pinocchio's order [rad/s, m/s]

    >>> from sarrus import interop
    >>> q = interop.from_pinocchio_state(robot, model, pinocchio.neutral(model))  # doctest: +SKIP
    """
    nq, nv = checked_mechanism(robot).nq, robot.nv
    x = _sized("q", q, checked_model(model).nq, "Pinocchio's model")
    y = _sized("v", np.zeros(model.nv) if v is None else v, model.nv, "Pinocchio's model")
    x_new, y_new = np.zeros((*x.shape[:-1], nq)), np.zeros((*y.shape[:-1], nv))
    for joint, own_q, own_v, mimic in _shared(robot, model):
        if mimic is not None:
            leader, scaling, offset = mimic
            x_new[..., joint.q_slice] = scaling * x_new[..., leader.q_slice] + offset
            y_new[..., joint.v_slice] = scaling * y_new[..., leader.v_slice]
            continue
        order_q, order_v = _orders(joint)
        part = x[..., own_q]
        if own_q.stop - own_q.start > joint.nq:
            part = np.concatenate([part[..., :-2], np.arctan2(part[..., -1:], part[..., -2:-1])], axis=-1)
        x_new[..., joint.q_slice] = part[..., order_q]
        y_new[..., joint.v_slice] = y[..., own_v][..., order_v]
    return x_new if v is None else (x_new, y_new)


def checked_model(model: Any) -> Any:
    if not hasattr(model, "jointPlacements"):
        raise TypeError(f"model must be a pinocchio.Model, or have its attributes; got {model!r}")
    return model


class Part(NamedTuple):
    """Joint of Pinocchio, or one joint of a composite joint: its joint type in sarrus, and its number of coordinates in Pinocchio.

    `places` contains the placements between the previous joint of the composite joint and this joint.
    """

    places: tuple[Any, ...]
    type: JointType
    nq: int


def parts_of(joint: Any, n: int, name: str) -> list[Part]:
    """Split a joint of Pinocchio, whose number of coordinates is n, into elementary joints, a :class:`Part` each.

    Raises ModelError if sarrus has no such joint.
    """
    kind = joint.shortname()
    model = joint.extract() if hasattr(joint, "extract") else joint
    if kind == "JointModelComposite":
        parts: list[Part] = []
        for inner, place in zip(model.joints, model.jointPlacements, strict=True):
            first, *remaining = parts_of(inner, n, name)
            parts += [Part((place, *first.places), first.type, first.nq), *remaining]
        return parts
    if kind == "JointModelSphericalZYX":
        return [Part((), Revolute(axis), 1) for axis in "zyx"]
    types = {
        "JointModelSpherical": Spherical(),
        "JointModelFreeFlyer": Free(),
        "JointModelPlanar": Planar("z"),
        "JointModelTranslation": Gimbal("tx ty tz"),
    }
    if kind in types:
        return [Part((), types[kind], joint.nq)]
    if kind == "JointModelUniversal":
        return [Part((), Universal(model.axis1, model.axis2), 2)]
    cure = "replace it by joints with one axis"
    if kind == "JointModelMimic" and "JointModelH" in str(model):
        kind, cure = f"{kind} of a screw", "Pinocchio's algorithms omit the pitch in the velocities of such a joint"
    elif kind == "JointModelMimic" and model.scaling == 0.0:
        cure = "its scaling must not be zero"
    elif kind == "JointModelMimic" or joint.nv == 1:  # the axis is read from the joint's motion subspace
        data = joint.createData()
        joint.calc(data, np.zeros(n))
        slide, turn = np.split(np.ravel(data.S) / getattr(model, "scaling", 1.0), 2)
        if not turn.any():
            return [Part((), Prismatic(slide), joint.nq)]
        return [Part((), Helical(turn, float(slide @ turn)) if slide.any() else Revolute(turn), joint.nq)]
    raise ModelError(f"joint '{name}' is a {kind}, which has no counterpart in sarrus: {cure}")


def mimics(model: Any) -> dict[int, int]:
    """Return the index of each mimic joint, with the index of the joint that it mimics."""
    return dict(zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ()), strict=True))


def part_names(name: str, parts: list[Part]) -> list[str]:
    """Return the names of the joints for the parts of a joint."""
    return [name] if len(parts) == 1 else [f"{name}_{k}" for k in range(1, len(parts) + 1)]


def _shared(robot: Mechanism, model: Any) -> Iterator[tuple[Joint, slice, slice, tuple[Joint, float, float] | None]]:
    """Yield the joints that both models have, with their slices of Pinocchio's q and v, and the joint that each mimics or None.

    Mimic joints come last.
    """
    leader_of = mimics(model)
    moving = {name: robot.joint(name) for name in robot.joints if robot.joint(name).nq}
    left, names, mimics_found = dict(moving), list(model.names), []
    for i in range(1, len(names)):
        name, pinocchio_joint = names[i], model.joints[i]
        parts = parts_of(pinocchio_joint, model.nq, name)
        if name in moving and len(parts) > 1:  # a composite joint that corresponds to one joint of sarrus
            parts = [Part((), moving[name].type, sum(part.nq for part in parts))]
        iq, iv = pinocchio_joint.idx_q, pinocchio_joint.idx_v
        for part_name, part in zip(part_names(name, parts), parts, strict=True):
            if part_name not in moving:
                raise_no_such_name("joint", part_name, moving, "model")
            joint = left.pop(part_name)
            angle_in_two = joint.kind == "Planar" or (joint.nq == 1 and part.nq == 2)
            if joint.nv != part.type.nv or part.nq != (0 if i in leader_of else joint.nq + angle_in_two):
                fault = f"joint '{part_name}' is {joint.kind} with {joint.nq} coordinates in the robot, but a {pinocchio_joint.shortname()}"
                raise ModelError(
                    f"{fault} with {part.nq} in Pinocchio's model: robot and model must describe the same mechanism"
                )
            if joint.reversed and (joint.type.quaternion or joint.kind == "Planar"):
                fault = f"joint '{part_name}' ({joint.kind}) has its child nearer to the ground"
                raise ModelError(
                    f"{fault}, so that Pinocchio's coordinates belong to the inverse motion: exchange parent and child"
                )
            if i in leader_of:
                leader = names[leader_of[i]]
                if leader not in moving:
                    raise_no_such_name("joint", leader, moving, "model")
                mimic = pinocchio_joint.extract() if hasattr(pinocchio_joint, "extract") else pinocchio_joint
                mimics_found.append((joint, slice(0), slice(0), (moving[leader], mimic.scaling, mimic.offset)))
            else:
                yield joint, slice(iq, iq + part.nq), slice(iv, iv + joint.nv), None
            iq, iv = iq + part.nq, iv + joint.nv
    if left:
        raise ModelError(
            f"the model has no joint {', '.join(map(repr, left))}, which the robot has: robot and model must describe the same mechanism"
        )
    yield from mimics_found


def _orders(joint: Joint) -> tuple[list[int], list[int]]:
    """Return the indices into Pinocchio's coordinates and velocities of a joint, in the order of sarrus."""
    if joint.kind == "Free":
        return FREE_Q, FREE_V
    turned_round = joint.reversed and joint.nq > 1  # the inverse joint has the axes in reverse order
    return list(range(joint.nq))[:: -1 if turned_round else 1], list(range(joint.nv))[:: -1 if turned_round else 1]
