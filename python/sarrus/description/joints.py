"""The joints of a mechanism: what each leaves free, how its coordinates are counted, and the passive forces along them.

A joint places the frame that it has on its child (the successor) in the frame that it has on its parent (the predecessor). Rot(a, x) turns
by x radians about the axis a, Trans(d) displaces by d; all axes are in the joint's own frame.

=============  ===========================================  =====================================================
joint          coordinates q                                pose of the successor in the predecessor
=============  ===========================================  =====================================================
Fixed          none                                         identity
Revolute       angle                                        Rot(axis, q)
Prismatic      displacement                                 Trans(q axis)
Helical        angle                                        Rot(axis, q) Trans(pitch q axis)
Cylindrical    angle, displacement                          Rot(axis, q0) Trans(q1 axis)
Universal      two angles                                   Rot(axis1, q0) Rot(axis2, q1)
Planar         x, y, angle                                  Trans(q0 ex + q1 ey) Rot(normal, q2)
Spherical      unit quaternion (x, y, z, w)                 R(q)
Free           unit quaternion (x, y, z, w), position       Trans(position) R(quaternion)
Gimbal         any of rx ry rz tx ty tz, in this order      Rot(x) Rot(y) Rot(z) Trans(tx, ty, tz)
Cable          length                                       any: it holds nothing, and is never in the tree
=============  ===========================================  =====================================================

The velocity v of a joint is the time derivative of q, except for Planar (velocity along the successor's own two axes, then the rate),
Spherical (angular velocity of the successor in its own axes) and Free ([angular; linear] velocity of the successor in its own axes).

References: van der Merwe 1995, ch. 2 (2.9-2.39).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, real_numbers
from ..errors import ModelError

if TYPE_CHECKING:
    from typing import Self

_NAMED = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
TURN = 2.0 * math.pi
# a limit passed by less is kept [rad, sizes of the bodies]: more than closing the loops leaves in any joint
LIMIT_MARGIN = 1e-5
PARAMETERS = ("rx", "ry", "rz", "tx", "ty", "tz")
PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")
BOUNDS = ("velocity_limit", "effort_limit")
_CORE: dict[str, dict[str, Any]] = _core.joint_table()


def _frozen(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


_ZEROS = {count: _frozen(np.zeros(count)) for count in range(8)}


def unit_axis(axis: str | ArrayLike) -> Array:
    """Unit vector (3,) of an axis given as ``"x"``, ``"-z"`` or three numbers; ModelError where it has no direction.

    >>> from sarrus.description.joints import unit_axis
    >>> unit_axis("-y").tolist()
    [0.0, -1.0, 0.0]
    """
    if isinstance(axis, str):
        if axis.lstrip("+-") not in _NAMED or len(axis) > 2:
            raise ModelError(f"an axis is 'x', 'y', 'z', one of these with a minus, or three numbers; got '{axis}'")
        return _frozen(np.array(_NAMED[axis[-1]]) * (-1.0 if axis[0] == "-" else 1.0) + 0.0)
    try:
        vector = real_numbers(axis)
    except (TypeError, ValueError):
        raise ModelError(f"an axis is a name or three numbers; got {axis!r}") from None
    if vector.shape != (3,) or not all(map(math.isfinite, vector.tolist())):
        raise ModelError(f"an axis needs three finite numbers; got {axis!r}")
    largest = max(map(abs, vector.tolist()))
    if largest < 1e-12:
        raise ModelError(f"an axis needs a direction; got {axis!r}")
    # a unit vector stays what it is, so that it reads as it was written
    if abs(math.hypot(*vector.tolist()) - 1.0) > 4e-16:
        vector = vector / largest  # before it is squared
        vector = vector / math.hypot(*vector.tolist())
    return _frozen(vector + 0.0)  # -0 becomes 0, so that equal axes hash alike


def axis_frame(normal: ArrayLike) -> Array:
    """Rotation (3, 3) whose third column is the normal: a planar joint's ex, ey and normal, in the joint's frame.

    ex is the x-axis made perpendicular to the normal (the y-axis, where the normal is near x); for z these are the frame's own axes.

    >>> from sarrus.description.joints import axis_frame
    >>> axis_frame([0, 0, 1]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _frozen(_core.axis_frame(unit_axis(normal).tolist()))


def turns_into(x: Array, low: Array, high: Array, margin: Array | float) -> Array:
    """Whole turns [rad] that bring angles beyond their limits within them, as few as possible; none where none do."""
    if (x >= low - margin).all() and (x <= high + margin).all():
        return np.zeros(np.shape(x))
    up = np.where(x < low - margin, np.ceil((low - x - margin) / TURN), 0.0)
    turns = np.where(x > high + margin, np.floor((high - x + margin) / TURN), up)
    there = x + TURN * np.where(np.isfinite(turns), turns, 0.0)
    fits = (there >= low - margin) & (there <= high + margin)
    return np.where(fits, there - x, 0.0)


def middle(low: float, high: float) -> float:
    """From where the turns of an angle are counted that is to stay between two limits; of one limit, a quarter turn within it."""
    if np.isfinite([low, high]).all():
        return (low + high) / 2.0
    return low + np.pi / 2 if np.isfinite(low) else high - np.pi / 2 if np.isfinite(high) else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class JointType:
    """What all joints share: limits, and the passive forces along each velocity.

    Parameters
    ----------
    limits : (lower, upper), each a number or one per coordinate, or None [rad, m]; infinite for the four of a quaternion
    velocity_limit, effort_limit : number or one per velocity, or None [rad/s, m/s; N m, N]
    damping : viscous friction, number or (nv,) [N m s/rad, N s/m] (van der Merwe 4.26)
    friction : Coulomb friction, number or (nv,) [N m, N]; it opposes motion and is zero at rest, but in a simulation,
        where it holds up to this much
    armature : inertia that a motor's rotor adds along the joint, number or (nv,) [kg m2, kg]
    stiffness, rest : a spring along the joint and where it is relaxed, numbers or (nv,)

    Attributes
    ----------
    nq, nv : how many coordinates and velocities it has
    coordinates, velocities : (name, unit) of each; the unit is "rad", "m" or "1", the parts of a quaternion, of velocities per second
    rates : of each coordinate, whether its rate is the velocity of the same index
    quaternion : whether q starts with one
    whole_turns_return : whether an angle that has made a whole turn is where it was; a screw's is not
    constant_subspace : whether the motion space is the same everywhere, in the successor's axes
    holds_nothing : whether it is but a length between two bodies
    axes, numbers : the fields that are axes, and the other ones with their units
    free_components : of [angular; linear] in the successor's axes, z along its axis, as bits; None where they are combined

    Damping, friction and springs act wherever the joint is, in the tree or where it closes a loop. There it reads its own coordinates off the
    bodies, which do not tell whole turns. Simulations count them, from an angle in [-pi, pi] or within its limits on, for all that acts. A function
    of one state cannot: its spring acts on the angle nearest to its rest, a task on that nearest to its target. No function of a state looks
    at limits.

    Raises ModelError for numbers that are not finite, negative friction or inertia, limits the wrong way round, and whatever is given
    to a joint that does not move.
    """

    limits: Any = field(default=None, kw_only=True)
    velocity_limit: Any = field(default=None, kw_only=True)
    effort_limit: Any = field(default=None, kw_only=True)
    damping: Any = field(default=0.0, kw_only=True)
    friction: Any = field(default=0.0, kw_only=True)
    armature: Any = field(default=0.0, kw_only=True)
    stiffness: Any = field(default=0.0, kw_only=True)
    rest: Any = field(default=0.0, kw_only=True)

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    # what the core's joint says of itself
    coordinates: ClassVar[tuple[tuple[str, str], ...]] = ()
    velocities: ClassVar[tuple[tuple[str, str], ...]] = ()
    rates: ClassVar[tuple[bool, ...]] = ()
    quaternion: ClassVar[bool] = False
    whole_turns_return: ClassVar[bool] = True
    constant_subspace: ClassVar[bool] = True
    holds_nothing: ClassVar[bool] = False
    axes: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[tuple[tuple[str, str], ...]] = ()
    free_components: ClassVar[int | None] = None

    def __init_subclass__(cls) -> None:
        for name, fact in _CORE.get(cls.__name__, {}).items():
            setattr(cls, name, fact)
        cls.nq, cls.nv = len(cls.coordinates), len(cls.velocities)

    def __post_init__(self) -> None:
        for name in self.axes:
            self._set(name, unit_axis(getattr(self, name)))
        self._set_numbers()
        for name in (*PASSIVE, *BOUNDS):
            number, bound = getattr(self, name), name in BOUNDS
            if number is None and bound:
                continue
            values = self._per(name, number, self.nv, infinite=bound)
            if name != "rest" and values is not _ZEROS[self.nv] and (values < 0.0).any():
                raise ModelError(f"{self.kind}: {name} cannot be negative; got {number!r}")
            self._set(name, values)
        if self.limits is not None:
            self._set("limits", self._checked_limits())

    def _set_numbers(self) -> None:
        for name, _ in self.numbers:
            self._set(name, float(self._per(name, getattr(self, name), 1)[0]))

    def _checked_limits(self) -> tuple[Array, Array]:
        try:
            lower, upper = self.limits
        except (TypeError, ValueError):
            raise ModelError(f"{self.kind}: limits are a pair (lower, upper); got {self.limits!r}") from None
        low, high = (self._per("limits", x, self.nq, infinite=True) for x in (lower, upper))
        if (low > high).any():
            raise ModelError(f"{self.kind}: lower limit {lower!r} is above upper limit {upper!r}")
        if self.quaternion and np.isfinite((low[:4], high[:4])).any():
            fault = "a quaternion takes no limits, its four numbers are no angles"
            cure = "give infinite ones for the first four coordinates, or chain joints of one axis"
            raise ModelError(f"{self.kind}: {fault}: {cure}; got {self.limits!r}")
        return low, high

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _per(self, name: str, value: ArrayLike, count: int, *, infinite: bool = False) -> Array:
        if type(value) is float and value == 0.0:  # most are, in a large file
            return _ZEROS[count]
        try:
            array = real_numbers(value)
        except (TypeError, ValueError):
            raise ModelError(f"{self.kind}: {name} needs numbers; got {value!r}") from None
        if count == 0 and array.any():
            raise ModelError(f"{self.kind}: {name} acts on nothing, as this joint does not move; got {value!r}")
        if array.ndim > 1 or (array.ndim == 1 and array.size != count):
            raise ModelError(f"{self.kind}: {name} needs one number or {count}; got {value!r}")
        numbers = array.ravel().tolist()
        if any(map(math.isnan, numbers)) or not (infinite or all(map(math.isfinite, numbers))):
            raise ModelError(f"{self.kind}: {name} must be finite; got {value!r}")
        return _frozen(np.full(count, array))

    @property
    def kind(self) -> str:
        """The type's name."""
        return type(self).__name__

    @property
    def pin(self) -> tuple[Array, Array | None]:
        """Where it is drawn: a point (3,) of the successor's frame, and its axis through it; None where it has not one axis."""
        return _ZEROS[3], getattr(self, self.axes[0]) if len(self.axes) == 1 else None

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for array in (*state.values(), *(self.limits or ())):
            if isinstance(array, np.ndarray):  # which copies of it forget
                array.flags.writeable = False

    def _content(self) -> tuple[object, ...]:
        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(plain, value))
            return value.tobytes() if isinstance(value, np.ndarray) else value

        return (self.kind, *(plain(getattr(self, f.name)) for f in fields(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JointType) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        names = [f.name for f in fields(self) if not f.kw_only]
        shown = [_text(getattr(self, name)) for name in names]
        for name in PASSIVE:
            values = getattr(self, name)
            if values.any():
                shown.append(f"{name}={_text(values)}")
        if self.limits is not None:
            shown.append(f"limits=({_text(self.limits[0])}, {_text(self.limits[1])})")
        return f"{self.kind}({', '.join(shown)})"

    def _with(self, numbers: dict[str, Any]) -> Self:
        """With other numbers of the passive forces, or others of its own, which the core has looked at."""
        changed = object.__new__(type(self))
        vars(changed).update(vars(self))
        for name, value in numbers.items():
            x = self._per(name, value, self.nv if name in PASSIVE else 1)
            changed._set(name, x if name in PASSIVE else float(x[0]))
        return changed

    def _core_numbers(self) -> list[float]:
        """Those of the core's fields, in their order."""
        return [getattr(self, name) for name, _ in self.numbers]


def _text(value: object) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    for name, axis in _NAMED.items():
        if value.shape == (3,) and np.array_equal(np.abs(value), axis):
            return f"'{name}'" if value.sum() > 0 else f"'-{name}'"
    shown = [f"{x:.6g}" for x in value]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(JointType):
    """A weld.

    >>> from sarrus import Fixed
    >>> Fixed()
    Fixed()
    """


@dataclass(frozen=True, eq=False, repr=False)
class Revolute(JointType):
    """Turns about an axis; q is the angle [rad].

    >>> from sarrus import Revolute
    >>> Revolute("z", limits=(-1, 1), damping=0.1)
    Revolute('z', damping=0.1, limits=(-1, 1))
    """

    axis: Any


@dataclass(frozen=True, eq=False, repr=False)
class Prismatic(JointType):
    """Slides along an axis; q is the displacement [m].

    >>> from sarrus import Prismatic
    >>> Prismatic([0, 3, 4]).axis.tolist()
    [0.0, 0.6, 0.8]
    """

    axis: Any


@dataclass(frozen=True, eq=False, repr=False)
class Helical(JointType):
    """A screw: turns by q [rad] and advances by pitch q, pitch in metres per radian.

    >>> from sarrus import Helical
    >>> Helical("x", pitch=0.002)
    Helical('x', 0.002)
    """

    axis: Any
    pitch: float


@dataclass(frozen=True, eq=False, repr=False)
class Cylindrical(JointType):
    """Turns about and slides along one axis; q = (angle [rad], displacement [m]).

    >>> from sarrus import Cylindrical
    >>> Cylindrical("y").nv
    2
    """

    axis: Any


@dataclass(frozen=True, eq=False, repr=False)
class Universal(JointType):
    """Cross joint: turns by q0 about axis1, fixed in the predecessor, then by q1 about axis2, fixed in the successor [rad].

    The axes need not be perpendicular.

    >>> from sarrus import Universal
    >>> Universal("x", "y").nq
    2
    """

    axis1: Any
    axis2: Any


@dataclass(frozen=True, eq=False, repr=False)
class Planar(JointType):
    """Glides on a plane: q = (x, y [m], angle about the normal [rad]), x and y along :func:`axis_frame`.

    v = (velocity along the successor's own two axes [m/s], rate [rad/s]), so that the motion space is constant.

    >>> from sarrus import Planar
    >>> Planar("z").nq
    3
    """

    normal: Any


@dataclass(frozen=True, eq=False, repr=False)
class Spherical(JointType):
    """Ball joint: q is a unit quaternion (x, y, z, w), v the successor's angular velocity in its own axes [rad/s].

    A stiffness (one number for all directions) acts on the rotation vector of q.

    >>> from sarrus import Spherical
    >>> Spherical().nq, Spherical().nv
    (4, 3)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.stiffness != self.stiffness[0]).any() or self.rest.any():
            raise ModelError("Spherical: a ball joint's spring has one stiffness, and is at rest at the identity")


@dataclass(frozen=True, eq=False, repr=False)
class Free(JointType):
    """No joint: q = (quaternion x y z w, position [m]) of the successor, v = [angular; linear] velocity in its own axes.

    >>> from sarrus import Free
    >>> Free().nq, Free().nv
    (7, 6)
    """


@dataclass(frozen=True, eq=False, repr=False)
class Gimbal(JointType):
    """The general joint of van der Merwe (2.17-2.39): any of rx ry rz tx ty tz free, the others held.

    Rotations about x, y, z, each axis carried along by the ones before, then a displacement along the axes so turned. The coordinates
    are the free parameters in that order, with their absolute values.

    Parameters
    ----------
    free : str or sequence of names among ``rx ry rz tx ty tz``
    fixed : (6,) values of the parameters that are not free [rad, m]; those of free ones are ignored

    >>> from sarrus import Gimbal
    >>> Gimbal("tx rz").free
    ('rz', 'tx')
    """

    free: Any
    fixed: Any = (0.0,) * 6

    def __post_init__(self) -> None:
        known = " ".join(PARAMETERS)
        try:
            names: Sequence[Any] = self.free.split() if isinstance(self.free, str) else tuple(self.free)
        except TypeError:
            raise ModelError(f"Gimbal: free must name some of {known}; got {self.free!r}") from None
        for name in names:
            if not isinstance(name, str) or name not in PARAMETERS:
                raise ModelError(f"Gimbal: '{name}' is not one of {known}")
        if len(set(names)) != len(names):
            raise ModelError(f"Gimbal: a parameter is named twice in {self.free!r}")
        self._set("free", tuple(name for name in PARAMETERS if name in names))
        self._set("fixed", _frozen(np.where(np.isin(PARAMETERS, names), 0.0, self._per("fixed", self.fixed, 6))))
        letters = tuple(c for c in type(self).coordinates if c[0] in names)
        for name, value in {"coordinates": letters, "velocities": letters, "nq": len(names), "nv": len(names)}.items():
            self._set(name, value)
        super().__post_init__()

    @property
    def pin(self) -> tuple[Array, Array | None]:
        """What is held of its displacement is carried along by its rotations: it turns at the other end of that."""
        turning = [k for k in range(3) if PARAMETERS[k] in self.free]
        return -self.fixed[3:], np.eye(3)[turning[0]] if len(turning) == 1 and not self.fixed[:3].any() else None

    def _set_numbers(self) -> None:
        pass  # they are checked above, all together

    def _core_numbers(self) -> list[float]:
        return [sum(1 << PARAMETERS.index(name) for name in self.free), *self.fixed.tolist()]


@dataclass(frozen=True, eq=False, repr=False)
class Cable(JointType):
    """A straight line between two bodies, whose length is q [m]: what :meth:`Builder.add_cable <sarrus.Builder.add_cable>` adds.

    It holds nothing. Motors, springs, dampers and stops along it pull where their effort is negative, as its length grows with q.

    Parameters
    ----------
    axis, radius : of a pulley [m] over whose rim it runs before it leaves the parent; 0: none. The cable comes to the joint's origin along the
        axis, tangent to the rim, and the pulley turns about it so that the child is in its plane. Its length is counted from that origin.

    >>> from sarrus.description.joints import Cable
    >>> Cable().nv, Cable("z", 0.1).radius
    (1, 0.1)
    """

    axis: Any = (0.0, 0.0, 1.0)
    radius: float = 0.0

    holds_nothing = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius < 0.0:
            raise ModelError(f"Cable: the radius of its pulley cannot be negative; got {self.radius!r}")

    @property
    def pin(self) -> tuple[Array, Array | None]:
        """It turns about no axis."""
        return _ZEROS[3], None


def _declared(name: str) -> type[JointType]:
    """The class of a joint that has none above: its axes and its numbers, as the core's joint names them."""
    row = _CORE[name]
    units = "".join(f", {key} in {unit}" for key, unit in row["numbers"])
    names = ", ".join(f"{coordinate or 'q'} [{unit}]" for coordinate, unit in row["coordinates"])
    return make_dataclass(
        name,
        [*((axis, Any) for axis in row["axes"]), *((key, float) for key, _ in row["numbers"])],
        bases=(JointType,),
        namespace={"__doc__": f"q = ({names}){units}.", "__module__": __name__},
        frozen=True,
        eq=False,
        repr=False,
    )


globals().update({name: _declared(name) for name in _CORE if name not in globals()})
JOINT_TYPES: dict[str, type[JointType]] = {name: globals()[name] for name in _CORE}
