"""Joint types: degrees of freedom, coordinates, limits, and passive forces.

A joint has a frame on its predecessor (the parent) and a frame on its successor (the child). Its coordinates determine the pose of the second frame
in the first. Rot(a, x) is a rotation by x radians about the axis a, and Trans(d) a displacement by d; all axes are in the joint's own frame.

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
Cable          length                                       any: unconstrained, never in the tree
=============  ===========================================  =====================================================

The velocity v of a joint is the time derivative of q, except for Planar (velocity along the successor's own two axes, then the rate),
Spherical (angular velocity of the successor in its own axes) and Free ([angular; linear] velocity of the successor in its own axes).

References: van der Merwe 1995, ch. 2 (2.9-2.39).
"""

from __future__ import annotations

import math
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, real_numbers
from .._deferred import dataclass
from ..errors import ModelError

if TYPE_CHECKING:
    from typing import Self

TURN = 2.0 * math.pi
# tolerance of joint limits [rad, mean body sizes]: larger than the error of loop closure in any joint
LIMIT_MARGIN = 1e-5
PARAMETERS = ("rx", "ry", "rz", "tx", "ty", "tz")
SHARED = (  # line of a type's docstring that is replaced by the docstring of the base class
    "    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for "
    "``sarrus.description.joints.JointType``"
)
NONLINEAR = ("quadratic_stiffness", "cubic_stiffness", "quadratic_damping", "cubic_damping")
SPRINGS = ("stiffness", *NONLINEAR[:2])
PASSIVE = ("damping", "friction", "armature", "stiffness", "rest", *NONLINEAR)
BOUNDS = ("velocity_limit", "effort_limit")
_CORE: dict[str, dict[str, Any]] = _core.joint_table()


def _frozen(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


_ORIGIN = _frozen(np.zeros(3))


def unit_axis(axis: str | ArrayLike) -> Array:
    """Return the unit vector (3,) of an axis: ``"x"``, ``"-z"`` or three numbers. Raise ModelError if it has no direction.

    >>> from sarrus.description.joints import unit_axis
    >>> unit_axis("-y").tolist()
    [0.0, -1.0, 0.0]
    """
    unit: Array = _core.unit_axis(axis)
    return unit


def axis_frame(normal: ArrayLike) -> Array:
    """Return the rotation (3, 3) whose third column is the normal: a planar joint's ex, ey and normal, in the joint's frame.

    ex is the x-axis made perpendicular to the normal (the y-axis, if the normal is near x); for z these are the frame's own axes.

    >>> from sarrus.description.joints import axis_frame
    >>> axis_frame([0, 0, 1]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _frozen(_core.axis_frame(unit_axis(normal).tolist()))


def turns_into(x: Array, low: Array, high: Array, margin: Array | float) -> Array:
    """Return the smallest shifts by full revolutions [rad] that move angles into their limits; 0 if there is no such shift."""
    if (x >= low - margin).all() and (x <= high + margin).all():
        return np.zeros(np.shape(x))
    up = np.where(x < low - margin, np.ceil((low - x - margin) / TURN), 0.0)
    turns = np.where(x > high + margin, np.floor((high - x + margin) / TURN), up)
    turned = x + TURN * np.where(np.isfinite(turns), turns, 0.0)
    fits = (turned >= low - margin) & (turned <= high + margin)
    return np.where(fits, turned - x, 0.0)


def middle(low: float, high: float) -> float:
    """Return the angle from which full revolutions are counted: the middle between two limits, or a quarter of a revolution from a single limit."""
    if np.isfinite([low, high]).all():
        return (low + high) / 2.0
    return low + np.pi / 2 if np.isfinite(low) else high - np.pi / 2 if np.isfinite(high) else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class JointType:
    """Base class of joint types, with limits and the passive forces along each velocity.

    Parameters
    ----------
    limits : (lower, upper) limits of the coordinates, each a number or (nq,) [rad, m]; infinite for the entries of a quaternion; None: no limits
    velocity_limit, effort_limit : limits of the velocities and efforts, numbers or (nv,) [rad/s, m/s; N m, N]; None: no limit
    damping : viscous friction, number or (nv,) [N m s/rad, N s/m] (van der Merwe 4.26)
    friction : Coulomb friction, number or (nv,) [N m, N]. It opposes motion, and is zero at rest in functions of a state; simulations have static
        friction up to this value
    armature : inertia that a motor's rotor adds along the joint, number or (nv,) [kg m2, kg]
    stiffness, rest : stiffness of a spring along the joint, and coordinates at which it is relaxed, numbers or (nv,) [N m/rad, N/m; rad, m]
    quadratic_stiffness, cubic_stiffness : nonlinear terms of the spring, of either sign, numbers or (nv,) [N m/rad², N/m²; N m/rad³, N/m³]. The effort
        against the deflection x from rest is stiffness x + quadratic_stiffness x² + cubic_stiffness x³; x of a ball joint is the angle of the rotation
    quadratic_damping, cubic_damping : nonlinear terms of the damper, of either sign, numbers or (nv,) [N m s²/rad², N s²/m²; N m s³/rad³, N s³/m³].
        The effort against the velocity v is damping v + quadratic_damping v |v| + cubic_damping v³

    Attributes
    ----------
    nq, nv : numbers of coordinates and velocities
    coordinates, velocities : (name, unit) of each coordinate and velocity. Units of coordinates are "rad", "m", or "1" for entries of a quaternion;
        units of velocities are "rad" or "m", per second
    rates : for each coordinate, True if its rate is the velocity of the same index
    quaternion : True if q begins with a quaternion
    whole_turns_return : True if a full revolution of an angle restores the pose, which is not so for a screw
    constant_subspace : True if the motion space is constant in the successor's axes
    holds_nothing : True for a cable, which does not constrain the relative motion of its bodies
    axes, numbers : names of the axes of the joint, and names and units of its other parameters
    free_components : free components of [angular; linear] in the successor's axes, z along its axis, as bits; None if components are coupled

    Damping, friction and springs act on tree joints and on loop joints. The poses of the bodies determine an angle of a loop joint only up to full
    revolutions. Simulations count revolutions, from an angle in [-pi, pi] or within the limits. In functions of a state, a spring acts on the angle
    nearest to its rest, and a task on the angle nearest to its target. Functions of a state ignore limits.

    Raises ModelError for values that are not finite, negative friction or inertia, a lower limit above the upper limit, and passive forces of
    a joint that does not move.
    """

    limits: Any = field(default=None, kw_only=True)
    velocity_limit: Any = field(default=None, kw_only=True)
    effort_limit: Any = field(default=None, kw_only=True)
    damping: Any = field(default=0.0, kw_only=True)
    friction: Any = field(default=0.0, kw_only=True)
    armature: Any = field(default=0.0, kw_only=True)
    stiffness: Any = field(default=0.0, kw_only=True)
    rest: Any = field(default=0.0, kw_only=True)
    quadratic_stiffness: Any = field(default=0.0, kw_only=True)
    cubic_stiffness: Any = field(default=0.0, kw_only=True)
    quadratic_damping: Any = field(default=0.0, kw_only=True)
    cubic_damping: Any = field(default=0.0, kw_only=True)

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    # properties of the joint type of the same name in the core
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
        if cls.__doc__ and JointType.__doc__:  # for help(): the arguments that all types share
            shared = JointType.__doc__.partition("----------\n")[2].partition("\n\n")[0]
            cls.__doc__ = cls.__doc__.replace(SHARED.strip(), shared.strip())  # Python 3.13 removes indentation
        for name, fact in _CORE.get(cls.__name__, {}).items():
            setattr(cls, name, fact)
        cls.nq, cls.nv = len(cls.coordinates), len(cls.velocities)

    def __post_init__(self) -> None:
        core, fields = _core.joint_type(self.kind, vars(self))
        vars(self).update(fields, _core=core)
        if self.quaternion and self.nv == 3:  # a ball joint's springs act on the rotation vector
            return
        for k in np.flatnonzero([np.asarray(getattr(self, name)) for name in SPRINGS]) % max(self.nv, 1):
            if not self.rates[k]:
                raise ModelError(
                    f"a {self.kind} joint cannot have stiffness along velocity {k}, which is not the rate of a coordinate; use "
                    'sarrus.Gimbal("rx ry rz tx ty tz", stiffness=...) with the free parameters that you need, sarrus.control.Bushing, or Builder.add_spring'
                )

    @property
    def kind(self) -> str:
        """The type's name."""
        return type(self).__name__

    @property
    def pin(self) -> tuple[Array, Array | None]:
        """Point (3,) at which the joint is drawn, in the successor's frame, and the axis through it; None unless the joint has a single axis."""
        return _ORIGIN, getattr(self, self.axes[0]) if len(self.axes) == 1 else None

    @property
    def _sprung(self) -> bool:
        """True if a spring acts along the joint."""
        return any(getattr(self, name).any() for name in SPRINGS)

    @property
    def _damped(self) -> bool:
        """True if a damper acts along the joint."""
        return any(getattr(self, name).any() for name in ("damping", *NONLINEAR[2:]))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        JointType.__post_init__(self)

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
        text = repr(vars(self)["_core"])
        return self.kind + text[text.index("(") :]  # a subclass may have another name than the core's type

    def _with(self, numbers: dict[str, Any]) -> Self:
        """Return the joint type with other numerical parameters."""
        return replace(self, **numbers)


_core.hand_over(JointType=JointType, real_numbers=real_numbers)


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(JointType):
    """Weld: no relative motion.

    Parameters
    ----------
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Fixed
    >>> Fixed()
    Fixed()
    """


@dataclass(frozen=True, eq=False, repr=False)
class Revolute(JointType):
    """Revolute joint: rotation about an axis; q is the angle [rad].

    Parameters
    ----------
    axis : "x", "-y", … or a vector (3,) of any nonzero length, in the joint's frame (dimensionless)
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Revolute
    >>> Revolute("z", limits=(-1, 1), damping=0.1)
    Revolute('z', damping=0.1, limits=(-1, 1))
    """

    axis: Any


@dataclass(frozen=True, eq=False, repr=False)
class Prismatic(JointType):
    """Prismatic joint: translation along an axis; q is the displacement [m].

    Parameters
    ----------
    axis : "x", "-y", … or a vector (3,) of any nonzero length, in the joint's frame (dimensionless)
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Prismatic
    >>> Prismatic([0, 3, 4]).axis.tolist()
    [0.0, 0.6, 0.8]
    """

    axis: Any


@dataclass(frozen=True, eq=False, repr=False)
class Helical(JointType):
    """Screw joint: rotation by q [rad] about an axis, and translation by pitch q along it.

    Parameters
    ----------
    axis : "x", "-y", … or a vector (3,) of any nonzero length, in the joint's frame (dimensionless)
    pitch : translation per angle [m/rad]
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Helical
    >>> Helical("x", pitch=0.002)
    Helical('x', 0.002)
    """

    axis: Any
    pitch: float


@dataclass(frozen=True, eq=False, repr=False)
class Cylindrical(JointType):
    """Cylindrical joint: rotation about and translation along the same axis; q = (angle [rad], displacement [m]).

    Parameters
    ----------
    axis : "x", "-y", … or a vector (3,) of any nonzero length, in the joint's frame (dimensionless)
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Cylindrical
    >>> Cylindrical("y").nv
    2
    """

    axis: Any


@dataclass(frozen=True, eq=False, repr=False)
class Universal(JointType):
    """Universal joint: rotation by q0 about axis1, fixed in the predecessor, then by q1 about axis2, fixed in the successor [rad].

    The axes may have any angle to each other.

    Parameters
    ----------
    axis1, axis2 : "x", "-y", … or a vector (3,) of any nonzero length, in the joint's frame (dimensionless)
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Universal
    >>> Universal("x", "y").nq
    2
    """

    axis1: Any
    axis2: Any


@dataclass(frozen=True, eq=False, repr=False)
class Planar(JointType):
    """Planar joint: motion in a plane; q = (x, y [m], angle about the normal [rad]), with x and y along the axes of :func:`axis_frame`.

    v = (velocity along the successor's own two axes [m/s], angular velocity [rad/s]), so that the motion space is constant.

    Parameters
    ----------
    normal : "x", "-y", … or a vector (3,) of any nonzero length, in the joint's frame (dimensionless)
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Planar
    >>> Planar("z").nq
    3
    """

    normal: Any


@dataclass(frozen=True, eq=False, repr=False)
class Spherical(JointType):
    """Ball joint: q is a unit quaternion (x, y, z, w), and v the successor's angular velocity in its own axes [rad/s].

    A stiffness [N m/rad], equal in all directions, acts on the rotation vector of q.

    Parameters
    ----------
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Spherical
    >>> Spherical().nq, Spherical().nv
    (4, 3)
    """


@dataclass(frozen=True, eq=False, repr=False)
class Free(JointType):
    """Free motion: q = (quaternion (x, y, z, w), position [m]) of the successor, v = [angular; linear] velocity in its own axes [rad/s, m/s].

    Parameters
    ----------
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Free
    >>> Free().nq, Free().nv
    (7, 6)
    """


@dataclass(frozen=True, eq=False, repr=False)
class Gimbal(JointType):
    """General joint of van der Merwe (2.17-2.39), with the parameters rx ry rz tx ty tz, each of them free or fixed.

    The pose is a rotation about x, then y, then z, about successively rotated axes, followed by a displacement along the rotated axes. The
    coordinates are the free parameters in this order [rad, m].

    Parameters
    ----------
    free : names of the free parameters, such as "rx tz" or a sequence of names
    fixed : (6,) values of the fixed parameters [rad, m]; entries of free parameters are ignored
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus import Gimbal
    >>> Gimbal("tx rz").free
    ('rz', 'tx')
    """

    free: Any
    fixed: Any = (0.0,) * 6

    def __post_init__(self) -> None:
        super().__post_init__()
        letters = tuple(c for c in type(self).coordinates if c[0] in self.free)
        vars(self).update(coordinates=letters, velocities=letters, nq=len(letters), nv=len(letters))

    @property
    def pin(self) -> tuple[Array, Array | None]:
        """Far end of the joint's fixed displacement, which moves with the joint's rotations."""
        turning = [k for k in range(3) if PARAMETERS[k] in self.free]
        return -self.fixed[3:], np.eye(3)[turning[0]] if len(turning) == 1 and not self.fixed[:3].any() else None


@dataclass(frozen=True, eq=False, repr=False)
class Cable(JointType):
    """Straight line between two bodies, whose length is q [m]; :meth:`Builder.add_cable <sarrus.Builder.add_cable>` adds it.

    It does not constrain the bodies. Motors, springs, dampers and stops along it pull if their effort is negative, because q is the length.

    Parameters
    ----------
    axis : direction from which the cable arrives at the pulley, in the joint's frame: "x", "y", "z" or a vector (dimensionless)
    radius : radius of a pulley on the parent [m]; 0 for none. The cable arrives at the joint's origin tangent to the rim. The pulley swivels about
        this tangent so that the child's point is in its plane. The length of the cable begins at the joint's origin
    limits, velocity_limit, effort_limit, damping, friction, armature, stiffness, rest : as for ``sarrus.description.joints.JointType``

    >>> from sarrus.description.joints import Cable
    >>> Cable().nv, Cable("z", 0.1).radius
    (1, 0.1)
    """

    axis: Any = (0.0, 0.0, 1.0)
    radius: float = 0.0

    holds_nothing = True

    @property
    def pin(self) -> tuple[Array, Array | None]:
        """Origin of the frame; a cable has no axis of rotation."""
        return _ORIGIN, None


def _declared(name: str) -> type[JointType]:
    """Return a generated class for a joint type of the core that has no class above, with the fields of the core's joint."""
    row = _CORE[name]
    units = "".join(f", {key} in {unit}" for key, unit in row["numbers"])
    names = ", ".join(f"{coordinate or 'q'} [{unit}]" for coordinate, unit in row["coordinates"])
    fields = dict.fromkeys(row["axes"], Any) | {key: float for key, _ in row["numbers"]}
    members = {"__doc__": f"q = ({names}){units}.", "__module__": __name__, "__annotations__": fields}
    return dataclass(type(name, (JointType,), members), frozen=True, eq=False, repr=False)


globals().update({name: _declared(name) for name in _CORE if name not in globals()})
JOINT_TYPES: dict[str, type[JointType]] = {name: globals()[name] for name in _CORE}
