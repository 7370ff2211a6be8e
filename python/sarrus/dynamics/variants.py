"""Mechanisms with the same structure and different parameters: functions of a state of variants, one for each row of a batch, and copies.

The core stores the parameters of all variants, and evaluates each row of a batch with its own (``cpp/mechanism/variants.hpp``). For
``Mechanism.replace``, the core computes the copy's parameters (cpp/bindings/changes.hpp). The copy's description is created at first access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, check_mapping, real_array, real_numbers
from ..description.constraints import Part, PfaffianSpec
from ..description.joints import NONLINEAR, PASSIVE
from ..description.specs import Description
from ..errors import ModelError, ShapeError
from ..spatial import Inertia, Transform, checked_poses
from .loop_operations import LoopFunctions
from .operations import StateFunctions

if TYPE_CHECKING:
    from ..description.contacts import Pair
    from ..shapes import ContactShape

    Base = LoopFunctions  # the class that defines the attributes named below
else:
    Base = _core.Mechanism

# attributes of the structure, which all variants share
STRUCTURE = (
    "_asks_for_rows", "_at", "_closing_joints", "_constraints", "_joints", "_limited", "_may_touch", "_motors", "_pfaffian_numbers", "_prescribed", "_set_motors", "_solids", "_tree_joint", "actuated", "bodies",
    "constraint", "constraints", "description", "frames", "joint", "joints", "loop_joints", "name", "neutral",
)  # fmt: skip
# functions of a state that are written in Python, and use parameters only through the core
IN_PYTHON = (
    "_by_joint", "_near", "_within_limits", "impact", "joint_states", "project_configuration", "project_velocity",
)  # fmt: skip
# indices of the regressor's parameters in the core's order: m, m c, xx, xy, xz, yy, yz, zz
CORE_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


class VariantFunctions(Base):
    """Functions of a state, evaluated for all variants of :class:`sarrus.results.Variants`."""

    base: LoopFunctions
    _may_touch: list[Pair]
    _solids: list[ContactShape]
    _changes: dict[str, Any]  # array of values of all variants, by the caller's keys
    _which: NDArray[np.intp]  # rows of these arrays that belong to this subset of the variants
    _prepared: dict[Any, Any]

    def __init__(self, base: LoopFunctions, changes: Mapping[str, Any]) -> None:
        if base._asks_for_rows:
            name = next(
                c.name for c in base._constraints.values() if isinstance(c.spec, PfaffianSpec) and callable(c.spec.rows)
            )
            raise ModelError(f"variants do not support constraint '{name}', whose rows are a function of q")
        arrays = {key: _arrays(base, key, x) for key, x in changes.items() if not isinstance(x, Mapping) or x}
        sizes = {
            len(x) for values in arrays.values() for x in (values.values() if isinstance(values, dict) else [values])
        }
        if len(sizes) != 1:
            got = " and ".join(map(str, sorted(sizes))) if sizes else "none"
            raise ShapeError(f"each quantity must have the same number of values, one for each variant; got {got}")
        self._vary(base, sizes.pop(), arrays)

    def _vary(self, base: LoopFunctions, count: int, changes: dict[str, Any]) -> None:
        _core.Mechanism.__init__(cast(Any, self), base, count, changes)
        vars(self).update(base=base, _changes=changes, _which=np.arange(count), _prepared={})

    @property
    def _base(self) -> LoopFunctions:
        return self.base

    def __len__(self) -> int:
        return int(self._count)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """Return the i-th variant as a mechanism; for a slice, indices or a mask, return a subset of the variants."""
        rows = np.arange(len(self))[index]
        if isinstance(rows, np.ndarray):
            if rows.ndim != 1:
                raise IndexError(f"an index of variants must have one axis; got {rows.ndim}")
            return self._of_rows(rows)
        return self.base._copy({
            key: _row(key, values, self._which[rows]) for key, values in self._changes.items()
        })  # fmt: skip

    def _of_rows(self, indices: ArrayLike) -> Any:
        """Return the variants with these indices, in this order; indices may repeat."""
        rows = np.asarray(indices)
        subset = type(self).__new__(type(self))
        _core.Mechanism.__init__(subset, self, rows.tolist())
        vars(subset).update(base=self.base, _changes=self._changes, _which=self._which[rows], _prepared={})
        return subset

    def _like(self, other: LoopFunctions) -> Any:
        """Return the same variants of another mechanism, which has the same tree, but more constraints or other motors."""
        variants = type(self).__new__(type(self))
        variants._vary(other, self._varied, self._changes)
        return variants if np.array_equal(self._which, variants._which) else variants._of_rows(self._which)

    @property
    def _varied(self) -> int:
        """Number of variants from which this subset was selected."""
        if "gravity" in self._changes:
            return len(self._changes["gravity"])
        by_name = next(iter(self._changes.values()))
        return len(next(iter(by_name.values())))

    @cached_property
    def _rough(self) -> dict[str, Any]:
        rough = dict(self.base._rough)
        for name, friction in self._changes.get("friction", {}).items():
            joint = self.base.joint(name)
            rough[name] = replace(joint, type=joint.type._with({"friction": friction.max(axis=0)}))
        return rough

    def _holding(self, *_: Any) -> Any:
        raise TypeError(
            "project_configuration() of variants does not support locked=: use variants[i], or assemble(near=, fixed=)"
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"variants are immutable; cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.base, len(self), self._own_changes())

    def _own_changes(self) -> dict[str, Any]:
        """Return the changed parameters of this subset of the variants."""
        return {
            key: {name: x[self._which] for name, x in values.items()}
            if isinstance(values, dict)
            else values[self._which]
            for key, values in self._changes.items()
        }

    def __repr__(self) -> str:
        varied = ", ".join(self._changes)
        return f"<{len(self)} variants of {self.base!r}: {varied}>"


def _rebuilt(kind: Any, base: LoopFunctions, count: int, changes: dict[str, Any]) -> Any:
    variants = kind.__new__(kind)
    variants._vary(base, count, changes)
    return variants


def _base_property(name: str) -> property:
    return property(lambda self: getattr(self.base, name))


if not TYPE_CHECKING:
    for _name in STRUCTURE:
        setattr(VariantFunctions, _name, _base_property(_name))
    for _class in (StateFunctions, LoopFunctions):
        for _name, _value in vars(_class).items():
            if isinstance(_value, MethodDescriptorType) or _name in IN_PYTHON:
                setattr(VariantFunctions, _name, _value)


# ---- parameters with a row for each variant--------------------------------------------------------------------------------------------------


def _row(key: str, values: Any, i: int) -> Any:
    """Return the arguments of `Mechanism.replace` for the i-th variant."""
    if key == "gravity":
        return tuple(values[i].tolist())
    makers: dict[str, Callable[[Array], Any]] = {"inertias": _inertia, "placements": _transform}
    make = makers.get(key, _number)
    return {name: make(x[i]) for name, x in values.items()}


def _inertia(x: Array) -> Inertia:
    return Inertia.from_parameters(x[CORE_ORDER], check=False)  # this permutation is its own inverse


def _transform(x: Array) -> Transform:
    return Transform(x[:9].reshape(3, 3).T, x[9:])


def _number(x: Array) -> Any:
    return float(x[0]) if len(x) == 1 else x.copy()


def _arrays(base: LoopFunctions, key: str, values: Any) -> Any:
    """Return the core's input: an array (N, k) of the k values of each name."""
    if key == "gravity":
        return _finite(key, _rows(key, values, 1)).copy()
    check_mapping(key, values, "names to the numbers of all variants", 0)
    make = partial({"inertias": _inertias, "placements": _placements}.get(key, _terms), base, key)
    return {name: np.array(make(name, x), order="C") for name, x in values.items()}


def _rows(label: str, value: Any, axes: int) -> Array:
    x = real_array(label, value)
    if x.ndim != 1 + axes:
        raise ShapeError(f"{label} must have {1 + axes} axes, the first one over variants; got shape {x.shape}")
    return x


def _finite(label: str, x: Array, good: Any = True) -> Array:
    bad = ~(np.isfinite(x) & good).all(axis=tuple(range(1, x.ndim)))
    if bad.any():
        i = int(bad.argmax())
        raise ModelError(f"{label}: variant {i} has the invalid value {x[i].tolist()}")
    return x


def _inertias(base: LoopFunctions, key: str, name: str, value: Any) -> Array:
    label = f"{key} of '{name}'"
    if isinstance(value, Sequence) and all(isinstance(x, Inertia) for x in value):
        parameters = np.array([x.parameters for x in value]).reshape(-1, 10)
    else:
        parameters = _rows(label, value, 1)
        if parameters.shape[-1] != 10:
            raise ShapeError(f"{label} needs (N, 10) parameters, or N Inertias; got shape {parameters.shape}")
        _finite(label, parameters)
        for i in np.flatnonzero(_perhaps_unphysical(parameters)):
            try:
                Inertia.from_parameters(parameters[i])
            except ModelError as error:
                raise ModelError(f"{label}: variant {i}: {error}") from None
    return parameters[:, CORE_ORDER]


def _perhaps_unphysical(parameters: Array) -> NDArray[np.bool_]:
    """Return a mask (N,) of pseudo-inertias that may not be positive semidefinite; the class Inertia checks these exactly."""
    m, h = parameters[:, 0], parameters[:, 1:4]
    xx, xy, yy, xz, yz, zz = parameters[:, 4:].T
    half = 0.5 * (xx + yy + zz)
    # L D L^T factorisation of all variants at once
    P = [[half - xx], [-xy, half - yy], [-xz, -yz, half - zz], [*h.T, m]]
    size, bad = [abs(row[-1]) for row in P], np.zeros(len(m), bool)
    for k in range(4):
        pivot, none = P[k][k], abs(P[k][k]) <= 1e-9 * size[k]
        bad |= pivot < -1e-9 * size[k]
        for i in range(k + 1, 4):
            bad |= none & (P[i][k] ** 2 > 1e-9 * size[k] * size[i])
            for l in range(k + 1, i + 1):
                P[i][l] = P[i][l] - np.where(none, 0.0, P[i][k] * P[l][k] / np.where(none, 1.0, pivot))
    return bad


def _placements(base: LoopFunctions, key: str, name: str, value: Any) -> Array:
    """Return the placements as rows (N, 12): the columns of the rotation, then the translation."""
    label = f"{key} of '{name}'"
    if isinstance(value, Sequence) and all(isinstance(x, Transform) for x in value):
        value = np.array([x.matrix for x in value]).reshape(-1, 4, 4)
    x = real_array(label, value)
    if x.ndim == 2 and x.shape[-1] == 3:
        H = np.tile(np.eye(4), (len(x), 1, 1))
        H[:, :3, 3] = x
    elif x.ndim == 3 and x.shape[1:] == (4, 4):
        H = checked_poses(label, _finite(label, x))
    else:
        raise ShapeError(f"{label} needs translations (N, 3) or poses (N, 4, 4); got shape {x.shape}")
    _finite(label, H[:, :3, 3], abs(H[:, :3, 3]) <= 1e100)
    return np.concatenate([np.swapaxes(H[:, :3, :3], 1, 2).reshape(-1, 9), H[:, :3, 3]], axis=1)


def _terms(base: LoopFunctions, key: str, name: str, value: Any) -> Array:
    """Return the parameter of each variant (N, k), with a value for each of the k velocities if it has several."""
    label = f"{key} of '{name}'"
    x = real_array(label, value)
    count = base.joint(name).type.nv if key not in ("lengths", "pitch") and name in base._joints else 1
    if x.ndim == 1:
        x = np.repeat(x[:, None], count, axis=1)
    signed = key in ("pitch", *NONLINEAR) or (key == "rest" and name in base._joints)
    good = True if signed else x > 0.0 if key == "lengths" else x >= 0.0
    if x.ndim != 2 or x.shape[1] != count:
        raise ShapeError(f"{label} needs (N,) or (N, {count}) numbers; got shape {x.shape}")
    return _finite(label, x, good)


OF_JOINT_TYPES = {key: key for key in (*PASSIVE, "pitch")}  # changes of a field of the joint type
OF_SPRINGS = {"stiffness": "stiffness", "damping": "damping", "rest": "rest_length"} | {
    name: name for name in NONLINEAR
}
P = TypeVar("P", bound=Part)


def _replaced_inertia(subject: str, value: Any) -> Inertia:
    if not isinstance(value, Inertia):
        raise ModelError(f"{subject} needs a sarrus.Inertia; got {value!r}")
    return value


def _placement(subject: str, value: Any) -> Transform:
    try:
        return value if isinstance(value, Transform) else Transform(translation=value)
    except ValueError as error:
        expected = "a Transform or a translation of three numbers"
        raise ModelError(f"{subject} must be {expected}; got {value!r} ({error})") from None


def _numbers(subject: str, value: Any) -> Any:
    """Return a float, or a read-only copy of an array; the core checks if the joint type supports it."""
    try:
        numbers = real_numbers(value)
    except (TypeError, ValueError):
        raise ModelError(f"{subject} needs numbers; got {value!r}") from None
    numbers.flags.writeable = False
    return float(numbers) if numbers.ndim == 0 else numbers


_SORTS: dict[str, tuple[type, Callable[[str, Any], Any]]] = {
    "inertias": (Inertia, _replaced_inertia),
    "placements": (Transform, _placement),
}


def checked_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that are not None, in new dicts of floats, read-only arrays, inertias and placements."""
    changes: dict[str, Any] = {}
    for key, values in given.items():
        if values is None:
            continue
        if key == "gravity":
            x = _numbers(key, values)
            if getattr(x, "shape", ()) != (3,) or not all(abs(g) < float("inf") for g in x):
                raise ModelError(f"gravity needs three finite numbers [m/s2]; got {values!r}")
            changes[key] = tuple(x.tolist())
            continue
        check_mapping(key, values, "names to their new values", 0)
        plain, check = _SORTS.get(key, (float, _numbers))
        changes[key] = {name: x if type(x) is plain else check(f"{key} of '{name}'", x) for name, x in values.items()}
    return changes


def merged(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return all changes; later changes replace earlier changes of the same parameter."""
    both = {**earlier, **later}
    for key in earlier.keys() & later.keys() - {"gravity"}:
        both[key] = {**earlier[key], **later[key]}
    return both


def replaced(d: Description, changes: Mapping[str, Any]) -> Description:
    """Return the description with the given parameters, which the core has already checked."""
    frames = {frame.name for frame in d.frames}
    ends = {name: at for name, at in changes.get("placements", {}).items() if name not in frames}

    def of(name: str, fields: Mapping[str, str]) -> dict[str, Any]:
        return {field: changes[key][name] for key, field in fields.items() if name in changes.get(key, ())}

    def changed(part: P, terms: Mapping[str, Any]) -> P:
        return replace(part, **terms) if terms else part  # type: ignore[type-var]

    joints = []
    for spec in d.joints:
        terms: dict[str, Any] = {f"at_{e}": ends[at] for e in ("parent", "child") if (at := f"{spec.name}.{e}") in ends}
        if numbers := of(spec.name, OF_JOINT_TYPES):
            terms["joint"] = spec.joint._with(numbers)
        joints.append(changed(spec, terms))
    return replace(
        d,
        gravity=changes.get("gravity", d.gravity),
        bodies=tuple(changed(body, of(body.name, {"inertias": "inertia"})) for body in d.bodies),
        joints=tuple(joints),
        frames=tuple(changed(frame, of(frame.name, {"placements": "placement"})) for frame in d.frames),
        constraints=tuple(changed(c, of(c.name, {"lengths": "length"})) for c in d.constraints),
        springs=tuple(changed(s, of(s.name, OF_SPRINGS)) for s in d.springs),
    )
