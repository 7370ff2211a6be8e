"""Rotations, poses, inertias and spatial vectors.

Objects of the classes `Rotation`, `Transform` and `Inertia` are immutable, comparable, hashable and picklable; their arrays are read-only. Spatial
vectors are plain arrays (..., 6), [angular; linear], expressed in the axes and at the origin of their frame. Motions are [angular velocity; velocity
of the origin] [rad/s, m/s], forces [moment; force] [N m, N].
The functions of the groups SO(3) and SE(3), from `exp` to `product_of_exponentials`, accept and return arrays with any leading axes.

The pose of frame B in frame A consists of the rotation R and the translation p, with p_A = R p_B + p. In van der Merwe's thesis, A is the transpose
of R, and b is p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ._arrays import Array, ArrayLike, common_axes, real_numbers
from ._core import spatial as _core
from .errors import ModelError, ShapeError

__all__ = [
    "Inertia", "Rotation", "Transform", "ad", "ad_dual", "adjoint", "adjoint_dual", "body_jacobian", "cross_force",
    "cross_motion", "exp", "left_jacobian", "left_jacobian_inverse", "log", "product_of_exponentials", "right_jacobian",
    "right_jacobian_inverse", "spatial_jacobian", "transform_force", "transform_motion",
]  # fmt: skip


_ZERO = (0.0, 0.0, 0.0)
# rounding error of R^T R; a matrix with a larger error is replaced by the nearest rotation
_ROUNDING = 16 * np.finfo(float).eps
# largest length of a body [m], whose square times any reasonable mass does not overflow
LARGEST = 1e100
# bound of the error of R^T R for a rotation matrix rounded to four decimals; this error is at most sqrt(3) 1e-4
_FOUR_DIGITS = 2e-4
# relative tolerance of the triangle inequality: moments rounded to six digits may violate it by their last digit
_SIX_DIGITS = 1e-5


def _floats(name: str, x: ArrayLike, shape: tuple[int | str, ...]) -> Array:
    try:
        return real_numbers(x)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{name} must be an array {_text(shape)} of real numbers: {error}") from None


def _text(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _array(name: str, x: ArrayLike, shape: tuple[int | str, ...]) -> Array:
    """Return a read-only float64 copy of a finite array. `shape` is the expected shape, in which "n" is any length; -0 becomes 0."""
    a = _floats(name, x, shape)
    if a.shape != shape and (
        a.ndim != len(shape) or any(n not in ("n", k) for n, k in zip(shape, a.shape, strict=True))
    ):
        raise ShapeError(f"{name} has shape {a.shape}; it must be {_text(shape)}")
    # uses Python's floats, because NumPy takes several times as long for a few numbers
    if not (all(map(math.isfinite, a.ravel().tolist())) if a.size <= 36 else np.isfinite(a).all()):
        raise ModelError(f"{name} = {a.tolist()} is not finite")
    return _frozen(a)


def _frozen(a: Array) -> Array:
    a = a + 0.0
    a.setflags(write=False)
    return a


def _number(name: str, x: ArrayLike) -> float:
    if type(x) is float and math.isfinite(x):  # twenty times as fast as the general conversion
        return x + 0.0
    return float(_array(name, x, ()))


def _lengths(name: str, x: ArrayLike, shape: tuple[int, ...] = (), *, signed: bool = False) -> Array:
    """Return lengths or positions [m]; raise ModelError if they are so large that the inertia of a body would overflow."""
    a = _array(name, x, shape)
    sizes = a.ravel().tolist()
    negative, large = not signed and min(sizes) < 0.0, max(map(abs, sizes)) > LARGEST
    if negative or large:
        shown = f"{name} = {a.tolist() if shape else f'{a:g}'}"
        raise ModelError(f"{shown} is {'negative' if negative else f'too large for a body: at most {LARGEST:g} m'}")
    return a


def _vectors(name: str, x: ArrayLike, n: int) -> Array:
    """Return a float64 array (..., n). Entries that are not finite are kept, because they affect only their own row of a batch."""
    a = _floats(name, x, ("...", n))
    if a.ndim == 0 or a.shape[-1] != n:
        raise ShapeError(f"{name} has shape {a.shape}; its last axis must be {n}")
    return a


def _pair(first: str, x: ArrayLike, second: str, y: ArrayLike) -> tuple[Array, ...]:
    """Return both arrays (..., 6) with the same leading axes."""
    a, b = _vectors(first, x, 6), _vectors(second, y, 6)
    common_axes({first: a.shape[:-1], second: b.shape[:-1]})
    return np.broadcast_arrays(a, b)


def _pose(pose: Any) -> Transform:
    """Return a Transform from a Transform or from a translation (3,) [m]."""
    if isinstance(pose, Transform):
        return pose
    try:
        return Transform.from_translation(pose)
    except ValueError:
        fault = "pose must be a Transform, such as Transform.from_matrix(H), or a translation (3,)"
        raise TypeError(f"{fault}; got {pose!r}") from None


def _mapped(matrix: Array, vectors: Array, shift: Array | float = 0.0) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # entries that are not finite are kept
        return np.asarray(vectors @ matrix.T + shift)


def _unit(name: str, axis: str | ArrayLike) -> Array:
    """Return the unit vector (3,) of an axis: "x", "-y", …, or a vector."""
    if isinstance(axis, str):
        if axis.removeprefix("-") not in ("x", "y", "z"):
            raise ModelError(f'{name} = "{axis}" is not one of "x", "y", "z", "-x", "-y", "-z", nor a vector')
        return np.asarray(np.eye(3)["xyz".index(axis[-1])] * (-1.0 if axis[0] == "-" else 1.0) + 0.0)
    a = _array(name, axis, (3,))
    if not a.any():
        raise ModelError(f"{name} = {a.tolist()} has no direction")
    a = a / float(np.abs(a).max())  # scaled first, because the squares of entries such as 1e-200 would underflow to 0
    return a / math.hypot(*a)


def _orthonormal(name: str, x: ArrayLike) -> Array:
    R = _array(name, x, (3, 3))
    # uses Python's floats, because NumPy takes several times as long for nine numbers
    a, b, c, d, e, f, g, h, i = R.ravel().tolist()
    lengths = a * a + d * d + g * g - 1.0, b * b + e * e + h * h - 1.0, c * c + f * f + i * i - 1.0
    defect = max(map(abs, (*lengths, a * b + d * e + g * h, a * c + d * f + g * i, b * c + e * f + h * i)))
    if not defect <= _FOUR_DIGITS:
        raise ModelError(f"{name} = {R.tolist()} is not a rotation: R^T R differs from the identity by {defect:.2g}")
    if a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) < 0:
        raise ModelError(f"{name} = {R.tolist()} is a reflection: its determinant is -1; are its axes left-handed?")
    return _frozen(_core.nearest_rotation(R)) if defect > _ROUNDING else R


class _Value:
    """Base class of immutable objects; equality, hash, copies and representation depend on the contents only."""

    __slots__: tuple[str, ...] = ()
    __array_ufunc__ = None  # makes array @ object and array + object raise TypeError instead of returning object arrays

    def _set(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def _content(self) -> tuple[Any, ...]:
        return tuple([x.tobytes() if isinstance(x, np.ndarray) else x for x in self._values()])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._content()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def __repr__(self) -> str:
        shown = (repr(x.tolist() if isinstance(x, np.ndarray) else x) for x in self._values())
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, eq=False, repr=False, init=False, slots=True)
class Rotation(_Value):
    """Rotation of a frame B relative to a frame A: v_A = R v_B.

    Parameters
    ----------
    matrix : (3, 3) matrix R (dimensionless), a rotation to at least four digits; the nearest exact rotation is stored

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> quarter = sarrus.Rotation.from_axis_angle("z", np.pi / 2)
    >>> quarter.apply([1, 0, 0]).round(12)
    array([0., 1., 0.])
    >>> (quarter @ quarter).rpy.round(4)
    array([0.    , 0.    , 3.1416])
    """

    matrix: Array

    def __init__(self, matrix: ArrayLike = ((1, 0, 0), (0, 1, 0), (0, 0, 1))) -> None:
        self._set(_orthonormal("matrix", matrix))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Return `Rotation(matrix)`.

        Parameters
        ----------
        matrix : (3, 3) rotation matrix (dimensionless)
        """
        return cls(matrix)

    @classmethod
    def from_quaternion(cls, quaternion: ArrayLike) -> Rotation:
        """Return the rotation of a quaternion (x, y, z, w) of any nonzero length.

        Parameters
        ----------
        quaternion : (4,) x, y, z, w (dimensionless)
        """
        q = _array("quaternion", quaternion, (4,))
        if not q.any():
            raise ModelError("quaternion = [0, 0, 0, 0] is not a rotation; (x, y, z, w) = (0, 0, 0, 1) is the identity")
        return cls(_core.rotation_from_quaternion(q / np.abs(q).max()))

    @classmethod
    def from_rpy(cls, roll: float, pitch: float, yaw: float) -> Rotation:
        """Return R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF: rotations about fixed axes, roll first [rad].

        Parameters
        ----------
        roll, pitch, yaw : angles about the fixed x, y and z axes [rad]
        """
        angles = [_number("roll", roll), _number("pitch", pitch), _number("yaw", yaw)]
        return cls(_core.rotation_from_rpy(angles))

    @classmethod
    def from_axis_angle(cls, axis: str | ArrayLike, angle: float) -> Rotation:
        """Return the rotation about an axis, "x", "-y", … or a vector of any nonzero length, by an angle [rad].

        Parameters
        ----------
        axis : "x", "-y", … or a vector (3,) of any nonzero length (dimensionless)
        angle : angle of the rotation [rad]
        """
        return cls.exp(_unit("axis", axis) * _number("angle", angle))

    @classmethod
    def exp(cls, vector: ArrayLike) -> Rotation:
        """Return the rotation of a rotation vector (3,), axis times angle [rad].

        Parameters
        ----------
        vector : (3,) rotation vector, axis times angle [rad]
        """
        return cls(_core.exp_rotation(_array("vector", vector, (3,))))

    @property
    def quaternion(self) -> Array:
        """Unit quaternion (4,) x, y, z, w, with w >= 0."""
        return _core.quaternion_from_rotation(self.matrix)

    @property
    def rpy(self) -> Array:
        """Angles (3,) roll, pitch, yaw [rad], with |pitch| <= pi/2.

        In gimbal lock, |pitch| = pi/2, only yaw - roll (pitch > 0) or yaw + roll (pitch < 0) is determined, and yaw is 0.
        """
        return _core.rpy_from_rotation(self.matrix) + 0.0

    @property
    def axis_angle(self) -> tuple[Array, float]:
        """Unit axis (3,), and angle in [0, pi] [rad]; for the identity, the axis is x."""
        r = self.log()
        return (_unit("axis", r), math.hypot(*r)) if r.any() else (np.array([1.0, 0.0, 0.0]), 0.0)

    def log(self) -> Array:
        """Return the rotation vector (3,) [rad], axis times angle, with a norm of at most pi."""
        return _core.log_rotation(self.matrix)

    def inverse(self) -> Rotation:
        """Return the inverse rotation, of A relative to B."""
        return Rotation(self.matrix.T)

    def apply(self, vectors: ArrayLike) -> Array:
        """Return R v for vectors (..., 3).

        Parameters
        ----------
        vectors : (..., 3) components of vectors in B [any unit]
        """
        return _vectors("vectors", vectors, 3) @ self.matrix.T

    def __matmul__(self, other: Rotation) -> Rotation:
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(self.matrix @ other.matrix)


_NO_TURN = Rotation()


@dataclass(frozen=True, eq=False, repr=False, init=False, slots=True)
class Transform(_Value):
    """Pose of a frame B in a frame A: p_A = rotation p_B + translation.

    Parameters
    ----------
    rotation : (3, 3) or `Rotation` (dimensionless)
    translation : (3,) origin of B in A [m]

    References
    ----------
    van der Merwe 1995, eqs 2.5-2.8 and 4.23 (rotation = A^T, translation = b).

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> T = sarrus.Transform.from_rpy(0, 0, np.pi / 2, (1, 0, 0))
    >>> T.apply([1, 0, 0]).round(12)
    array([1., 1., 0.])
    >>> (T @ T.inverse()).matrix.round(12).tolist() == np.eye(4).tolist()
    True
    """

    rotation: Array
    translation: Array

    def __init__(self, rotation: Rotation | ArrayLike = _NO_TURN, translation: ArrayLike = _ZERO) -> None:
        R = rotation.matrix if isinstance(rotation, Rotation) else _orthonormal("rotation", rotation)
        self._set(R, _array("translation", translation, (3,)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Transform:
        """Return the pose of a homogeneous matrix [R p; 0 1] (4, 4).

        Parameters
        ----------
        matrix : (4, 4) homogeneous matrix, its last column in m [dimensionless, m]
        """
        H = _array("matrix", matrix, (4, 4))
        if np.any(H[3] != (0, 0, 0, 1)):
            raise ModelError(f"matrix has the last row {H[3].tolist()}; a pose has [0, 0, 0, 1]")
        return cls(H[:3, :3], H[:3, 3])

    @classmethod
    def from_rpy(cls, roll: float, pitch: float, yaw: float, translation: ArrayLike = _ZERO) -> Transform:
        """Return the pose with R = Rz(yaw) Ry(pitch) Rx(roll) [rad] and a translation (3,) [m], as in URDF's origin.

        Parameters
        ----------
        roll, pitch, yaw : angles about the fixed x, y and z axes [rad]
        translation : (3,) origin of B in A [m]
        """
        return cls(Rotation.from_rpy(roll, pitch, yaw), translation)

    @classmethod
    def from_translation(cls, translation: ArrayLike) -> Transform:
        """Return the pose without rotation, with a translation (3,) [m].

        Parameters
        ----------
        translation : (3,) origin of B in A [m]
        """
        return cls(translation=translation)

    @classmethod
    def exp(cls, motion: ArrayLike) -> Transform:
        """Return the pose that a frame reaches from the identity in unit time at a constant motion (6,) [rad, m], expressed in the moving frame.

        Parameters
        ----------
        motion : (6,) rotation vector and translation, [angular; linear], of the constant motion in the axes of the moving frame [rad, m]

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> quarter_turn_about_far_point = sarrus.Transform.exp([0, 0, np.pi / 2, np.pi / 2, 0, 0])
        >>> quarter_turn_about_far_point.translation.round(12)
        array([1., 1., 0.])
        """
        return cls.from_matrix(_core.exp_pose(_array("motion", motion, (6,))))

    def log(self) -> Array:
        """Return the constant motion (6,) [rad, m] that reaches this pose from the identity in unit time, with a rotation of at most pi."""
        return _core.log_pose(self.matrix)

    @property
    def matrix(self) -> Array:
        """Homogeneous matrix (4, 4), [R p; 0 1]."""
        H = np.eye(4)
        H[:3, :3], H[:3, 3] = self.rotation, self.translation
        return H

    @property
    def motion_matrix(self) -> Array:
        """Matrix X (6, 6) that maps a motion's components in B to its components in A. Eq. 2.6 is `inverse().motion_matrix`."""
        return _core.motion_matrix(self.matrix)

    @property
    def force_matrix(self) -> Array:
        """Matrix (6, 6) that maps a force's components in B to its components in A (4.23); the inverse transpose of `motion_matrix`."""
        return _core.force_matrix(self.matrix)

    def inverse(self) -> Transform:
        """Return the pose of A in B."""
        return Transform(self.rotation.T, -_mapped(self.rotation.T, self.translation))

    def apply(self, points: ArrayLike) -> Array:
        """Return the coordinates (..., 3) in A of points with coordinates in B [m].

        Parameters
        ----------
        points : (..., 3) coordinates of points in B [m]
        """
        return _mapped(self.rotation, _vectors("points", points, 3), self.translation)

    def __matmul__(self, other: Transform) -> Transform:
        if not isinstance(other, Transform):
            return NotImplemented
        return Transform(self.rotation @ other.rotation, _mapped(self.rotation, other.translation, self.translation))


@dataclass(frozen=True, eq=False, repr=False, init=False, slots=True)
class Inertia(_Value):
    """Inertia of a rigid body, in a frame of the body.

    Parameters
    ----------
    mass : mass [kg]
    com : (3,) centre of mass [m]
    about_com : (3, 3) inertia tensor about the centre of mass, in the frame's axes [kg m²]
    check : True to raise an error for physically impossible inertias. Inertias that are not finite or not symmetric always raise an error

    Raises
    ------
    ModelError
        The mass is negative; a massless body has rotational inertia; the tensor is asymmetric; or a principal moment exceeds the sum of the other two
        by more than 1e-5 of the largest (the tolerance for moments rounded to six digits).

    References
    ----------
    van der Merwe 1995, eqs 3.29-3.33, 4.1-4.4; Wensing, Kim, Slotine, Linear matrix inequalities for physically
    consistent inertial parameter identification, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> link = sarrus.Inertia(2.0, (0, 0.3, -0.07), np.diag([0.1, 0.02, 0.1]))
    >>> link.about_origin.round(4)
    array([[0.2898, 0.    , 0.    ],
           [0.    , 0.0298, 0.042 ],
           [0.    , 0.042 , 0.28  ]])
    >>> hammer = sarrus.Inertia.rod(0.2, (0, 0, 0), (0, 0, 0.3)) + sarrus.Inertia.box(
    ...     1.0, (0.1, 0.02, 0.02)
    ... ).transformed(sarrus.Transform(translation=(0, 0, 0.3)))
    >>> hammer.com.round(4)
    array([0.   , 0.   , 0.275])
    """

    mass: float
    com: Array
    about_com: Array

    def __init__(self, mass: float, com: ArrayLike, about_com: ArrayLike, *, check: bool = True) -> None:
        tensor = _array("about_com", about_com, (3, 3))
        xx, xy, xz, yx, yy, yz, zx, zy, zz = tensor.ravel().tolist()
        uneven = max(abs(xy - yx), abs(xz - zx), abs(yz - zy))
        if uneven > 1e-8 * max(map(abs, (xx, xy, xz, yx, yy, yz, zx, zy, zz))):
            raise ModelError(f"about_com = {tensor.tolist()} is not symmetric")
        m, c = _number("mass", mass), _array("com", com, (3,))
        x, y, z = c.tolist()
        if not math.isfinite(m * (x * x + y * y + z * z)):
            fault = f"so far from the origin that a mass of {m:g} has no finite inertia about the origin"
            raise ModelError(f"com = {[x, y, z]} is {fault}")
        self._set(m, c, _frozen(0.5 * tensor + 0.5 * tensor.T) if uneven else tensor)
        if check and not self.is_physical():
            raise ModelError(self._fault())

    @classmethod
    def zero(cls) -> Inertia:
        """Return the inertia of a massless body."""
        return cls(0.0, _ZERO, np.zeros((3, 3)))

    @classmethod
    def box(cls, mass: float, size: ArrayLike) -> Inertia:
        """Return the inertia of a solid box about its centre; `size` (3,) [m] has the lengths of its edges along x, y and z.

        Parameters
        ----------
        mass : mass [kg]
        size : (3,) lengths of the edges along x, y and z [m]
        """
        return cls._from_euler(mass, _ZERO, np.diag(_lengths("size", size, (3,)) ** 2 / 12))

    @classmethod
    def cylinder(cls, mass: float, radius: float, length: float, axis: str | ArrayLike = "z") -> Inertia:
        """Return the inertia of a solid cylinder about its centre; `axis` is "x", "y", "z" or a vector, `radius` and `length` are in m.

        Parameters
        ----------
        mass : mass [kg]
        radius, length : radius and length of the cylinder [m]
        axis : axis of the cylinder, "x", "y", "z" or a vector (3,) of any nonzero length (dimensionless)
        """
        u, r, h = _unit("axis", axis), _lengths("radius", radius), _lengths("length", length)
        uu = np.outer(u, u)
        return cls._from_euler(mass, _ZERO, r**2 / 4 * (np.eye(3) - uu) + h**2 / 12 * uu)

    @classmethod
    def sphere(cls, mass: float, radius: float) -> Inertia:
        """Return the inertia of a solid sphere about its centre; `radius` is in m.

        Parameters
        ----------
        mass : mass [kg]
        radius : radius of the sphere [m]
        """
        return cls._from_euler(mass, _ZERO, _lengths("radius", radius) ** 2 / 5 * np.eye(3))

    @classmethod
    def rod(cls, mass: float, start: ArrayLike, end: ArrayLike, radius: float = 0.0) -> Inertia:
        """Return the inertia of a uniform rod from `start` (3,) to `end` (3,) [m]; if `radius` [m] is not zero, the rod is a solid cylinder.

        Parameters
        ----------
        mass : mass [kg]
        start, end : (3,) end points of the rod in the frame [m]
        radius : radius of the cylinder [m]; 0: a thin rod
        """
        a, b = (_lengths(name, x, (3,), signed=True) for name, x in (("start", start), ("end", end)))
        r, d = _lengths("radius", radius), b - a
        spread = np.outer(d, d) / 12
        if r > 0:
            u = _unit("end - start", d)
            spread = spread + r**2 / 4 * (np.eye(3) - np.outer(u, u))
        return cls._from_euler(mass, 0.5 * (a + b), spread)

    @classmethod
    def from_points(cls, masses: ArrayLike, points: ArrayLike) -> Inertia:
        """Return the inertia of point masses (n,) [kg] at points (n, 3) [m].

        Parameters
        ----------
        masses : (n,) masses, not negative [kg]
        points : (n, 3) positions of the masses in the frame [m]
        """
        m, p = _array("masses", masses, ("n",)), _array("points", points, ("n", 3))
        if len(m) != len(p):
            raise ShapeError(f"masses has {len(m)} entries, but points has {len(p)} rows")
        if (m < 0).any():
            raise ModelError(f"masses = {m.tolist()}: none may be negative")
        total = m.sum()
        if total == 0:
            return cls.zero()
        com = m @ p / total
        r = p - com
        return cls._from_euler(total, com, (r.T * m) @ r / total)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, *, check: bool = True) -> Inertia:
        """Return the inertia of a spatial inertia matrix (6, 6), eq. 4.1.

        Parameters
        ----------
        matrix : (6, 6) spatial inertia about the frame's origin, [moment; force] by [angular; linear] acceleration [kg m², kg m, kg]
        check : True to raise an error for physically impossible inertias
        """
        M = _array("matrix", matrix, (6, 6))
        xx, xy, xz, yy, yz, zz = M[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
        parameters = [M[5, 5], M[2, 4], M[0, 5], M[1, 3], xx, xy, yy, xz, yz, zz]
        if np.abs(M - _core.inertia_matrix(parameters)).max() > 1e-8 * np.abs(M).max():
            rigid = "a rigid body's [I, skew(m c); skew(m c)^T, m 1] (van der Merwe 4.1)"
            raise ModelError(f"matrix = {M.tolist()} is not {rigid}")
        return cls.from_parameters(parameters, check=check)

    @classmethod
    def from_parameters(cls, parameters: ArrayLike, *, check: bool = True) -> Inertia:
        """Return the inertia from its parameters (10,) [m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin].

        Inverse dynamics is linear in these parameters.

        Parameters
        ----------
        parameters : (10,) mass, first moment and inertia about the origin, in the order above [kg, kg m, kg m²]
        check : True to raise an error for physically impossible inertias
        """
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = _array("parameters", parameters, (10,))
        h, about_origin = np.array([hx, hy, hz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if m == 0 and h.any():
            raise ModelError(
                f"first moment m c = {h.tolist()} of a body without mass; expected zero, or a positive mass"
            )
        com = h / m if m != 0 else np.zeros(3)
        about_com = _core.parallel_axes([-m, *com], about_origin)
        # the subtraction of the parallel-axis term leaves a rounding error in the tensor; remove it, so that the parameters of a point mass return
        # a point mass
        size, lost = np.abs(about_com).max(), _ROUNDING * np.abs(about_origin).max()
        if size <= lost:
            return cls(m, com, np.zeros((3, 3)), check=check)
        body = cls(m, com, about_com, check=False)
        if check and not body.is_physical(max(_SIX_DIGITS, lost / size)):
            raise ModelError(body._fault())
        return body

    @classmethod
    def _from_euler(cls, mass: float, com: ArrayLike, spread: Array) -> Inertia:
        """Return the inertia from the Euler tensor about the centre of mass per unit mass (3.30)."""
        m = _number("mass", mass)
        with np.errstate(over="ignore"):  # overflow is detected later, because the result is not finite
            tensor = m * spread
        return cls(m, com, _core.inertia_tensor(tensor))

    @property
    def about_origin(self) -> Array:
        """Inertia tensor (3, 3) about the frame's origin (3.31) [kg m²]."""
        return _core.parallel_axes([self.mass, *self.com], self.about_com)

    @property
    def matrix(self) -> Array:
        """Spatial inertia (6, 6) about the frame's origin (4.1): momentum = matrix @ velocity."""
        return _core.inertia_matrix(self.parameters)

    @property
    def parameters(self) -> Array:
        """Parameters (10,) [m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin], in the order of `Mechanism.regressor`."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.about_origin
        return np.array([self.mass, *(self.mass * self.com), xx, xy, yy, xz, yz, zz])

    @property
    def euler_tensor(self) -> Array:
        """Euler tensor (3, 3) about the frame's origin, the integral of r r^T dm (3.29) [kg m²]."""
        return _core.euler_tensor(self.about_origin)

    @property
    def pseudo_inertia(self) -> Array:
        """Pseudo-inertia (4, 4), [Euler tensor, m c; (m c)^T, m] about the origin: positive semidefinite for physical bodies."""
        return _core.pseudo_inertia(self.parameters)

    @property
    def principal_moments(self) -> Array:
        """Principal moments (3,) about the centre of mass, ascending [kg m²]."""
        return _core.principal_moments(self.about_com)

    def is_physical(self, tolerance: float = _SIX_DIGITS) -> bool:
        """Return True if the inertia is physically possible.

        The inertia is possible if mass and tensor are zero. It is also possible if the mass is positive, and no principal moment exceeds the sum of
        the other two by more than `tolerance` times the largest. This is equivalent to a positive semidefinite `pseudo_inertia`, and to the existence
        of a mass distribution with this inertia.

        Parameters
        ----------
        tolerance : tolerance of the triangle inequality, relative to the largest principal moment (dimensionless)
        """
        return _core.is_physical(self.mass, self.about_com, tolerance)

    def _fault(self) -> str:
        if self.mass < 0:
            return f"mass = {self.mass:g} is negative"
        if self.mass == 0:
            return "a massless body has no rotational inertia; give that of a motor's rotor as armature of its joint"
        low, middle, high = self.principal_moments
        return (
            f"about_com has the principal moments {low:.6g}, {middle:.6g}, {high:.6g}; no body has one larger than the "
            "sum of the other two: is the tensor about the centre of mass, and in kg m²?"
        )

    def transformed(self, pose: Transform | ArrayLike) -> Inertia:
        """Return the inertia of the same body in another frame A (4.4). `pose` is the pose of the current frame in A, or its translation (3,) [m].

        Parameters
        ----------
        pose : pose of the current frame in A, a Transform or a translation (3,) [m]
        """
        at = _pose(pose)
        R = at.rotation
        return Inertia(self.mass, at.apply(self.com), R @ self.about_com @ R.T, check=False)

    def __add__(self, other: Inertia) -> Inertia:
        """Return the inertia of two rigidly connected bodies; all inertias are in one frame."""
        if not isinstance(other, Inertia):
            return NotImplemented
        m = self.mass + other.mass
        if m == 0:
            if self.mass != 0:
                raise ModelError(f"masses {self.mass:g} and {other.mass:g} sum to zero, so there is no centre of mass")
            return Inertia(0.0, _ZERO, self.about_com + other.about_com, check=False)
        d = other.com - self.com
        # the reduced mass and the distance d of the centres avoid the cancellation of a sum about a distant origin
        about_com = _core.parallel_axes([self.mass * other.mass / m, *d], self.about_com + other.about_com)
        return Inertia(m, self.com + other.mass / m * d, about_com, check=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Inertia, check=False), self._values()


def cross_motion(v: ArrayLike, m: ArrayLike) -> Array:
    """Return v x m, the rate of a motion m that is constant in a frame moving at v.

    v and m are motions (..., 6), whose leading axes broadcast. The result is the motion [w x m_angular; w x m_linear + v_linear x m_angular], with w
    = v_angular.

    Parameters
    ----------
    v, m : (..., 6) motions [angular; linear], in the same frame [rad/s, m/s]; leading axes broadcast

    References
    ----------
    Featherstone, Rigid Body Dynamics Algorithms, 2008, eq. 2.31.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.spatial.cross_motion([0, 0, 2, 0, 0, 0], [1, 0, 0, 0, 3, 0])
    array([ 0.,  2.,  0., -6.,  0.,  0.])
    """
    return _core.cross_motion(*_pair("v", v, "m", m))


def cross_force(v: ArrayLike, f: ArrayLike) -> Array:
    """Return v x* f, the rate of a force f that is constant in a frame moving at v; (v x m).f = -m.(v x* f).

    v is a motion (..., 6), f a force (..., 6); leading axes broadcast. The result is the force [w x moment + v_linear x force; w x force], with w =
    v_angular.

    Parameters
    ----------
    v : (..., 6) motion [angular; linear] [rad/s, m/s]
    f : (..., 6) force [moment; force], in the same frame [N m, N]; leading axes broadcast

    References
    ----------
    Featherstone, Rigid Body Dynamics Algorithms, 2008, eq. 2.32.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.spatial.cross_force([0, 0, 2, 0, 0, 0], [1, 0, 0, 0, 3, 0])
    array([ 0.,  2.,  0., -6.,  0.,  0.])
    """
    return _core.cross_force(*_pair("v", v, "f", f))


def transform_motion(pose: Transform, m: ArrayLike) -> Array:
    """Return the components (..., 6) in frame A of a motion with components m in frame B; `pose` is the pose of B in A (2.5).

    Parameters
    ----------
    pose : pose of B in A, a Transform or a translation (3,) [m]
    m : (..., 6) components of motions in B, [angular; linear] [rad/s, m/s]

    Examples
    --------
    >>> import sarrus
    >>> axle = sarrus.Transform(translation=(0, 1, 0))
    >>> sarrus.spatial.transform_motion(axle, [0, 0, 2, 0, 0, 0])
    array([0., 0., 2., 2., 0., 0.])
    """
    return _mapped(_pose(pose).motion_matrix, _vectors("m", m, 6))


def transform_force(pose: Transform, f: ArrayLike) -> Array:
    """Return the components (..., 6) in frame A of a force with components f in frame B; `pose` is the pose of B in A (4.23).

    Parameters
    ----------
    pose : pose of B in A, a Transform or a translation (3,) [m]
    f : (..., 6) components of forces in B, [moment; force] [N m, N]

    Examples
    --------
    >>> import sarrus
    >>> axle = sarrus.Transform(translation=(0, 1, 0))
    >>> sarrus.spatial.transform_force(axle, [0, 0, 0, 5, 0, 0])
    array([ 0.,  0., -5.,  5.,  0.,  0.])
    """
    return _mapped(_pose(pose).force_matrix, _vectors("f", f, 6))


# ---- the groups of rotations and of rigid motions --------------------------------------------------------------------


def exp(x: ArrayLike) -> Array:
    """Return the exponential of so(3) or se(3): rotations (..., 3, 3) of rotation vectors (..., 3), poses (..., 4, 4) of motions (..., 6).

    `Rotation.exp` and `Transform.exp` compute the exponential of one vector and return objects.

    Parameters
    ----------
    x : rotation vectors (axis times angle) [rad]; or motions [angular; linear] [rad, m] that are constant in the moving frame for unit time

    References
    ----------
    Li and Wu 2011, 4.3; Murray, Li and Sastry 1994, 2.14 and 2.36.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> sarrus.spatial.exp([[0, 0, np.pi / 2], [0, 0, np.pi]]).round(12)[:, 0].tolist()
    [[0.0, -1.0, 0.0], [-1.0, -0.0, 0.0]]
    >>> sarrus.spatial.exp([0, 0, np.pi / 2, np.pi / 2, 0, 0])[:3, 3].round(12)
    array([1., 1., 0.])
    """
    return _of_algebra("x", x, _core.exp_rotation, _core.exp_pose)


def log(X: ArrayLike | Rotation | Transform) -> Array:
    """Return the logarithm of rotations (..., 3, 3) or poses (..., 4, 4): the x with exp(x) = X and a rotation of at most pi.

    Returns (..., 3) [rad] or (..., 6) [rad, m]. If the rotation is pi, two opposite axes are possible, and one of them is returned. Raises ModelError
    for matrices that are not rotations or poses to four digits. The logarithm of a matrix that is not finite is NaN.

    Parameters
    ----------
    X : rotations (..., 3, 3) (dimensionless) or poses (..., 4, 4) [dimensionless, m]; or a `Rotation` or a `Transform`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> half_turn = np.diag([-1.0, 1.0, -1.0])
    >>> sarrus.spatial.log(half_turn).round(6)
    array([0.      , 3.141593, 0.      ])
    """
    A = X.matrix if isinstance(X, (Rotation, Transform)) else _floats("X", X, ("...", 3, 3))
    if A.shape[-2:] == (3, 3):
        return np.asarray(_core.log_rotation(_checked_rotations("X", A)))
    return np.asarray(_core.log_pose(checked_poses("X", A)))


def left_jacobian(x: ArrayLike) -> Array:
    """Return the left Jacobian J_l(x) = sum of ad(x)^n / (n + 1)!, n >= 0, of rotation vectors (..., 3) or motions (..., 6).

    The result is (..., 3, 3) or (..., 6, 6), with exp(x + dx) = exp(J_l dx) exp(x) to first order. If x depends on time, the velocity of the frame
    exp(x) is J_l x-dot in space axes; :func:`right_jacobian` returns it in body axes.

    Parameters
    ----------
    x : (..., 3) rotation vectors [rad], or (..., 6) motions [angular; linear] for unit time [rad, m]

    References
    ----------
    Selig, Geometric Fundamentals of Robotics, 2005, 4.5; Iserles, Munthe-Kaas, Nørsett and Zanna, Lie-group methods, 2000, 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> x, dx = np.array([0.3, -1.2, 0.7]), np.array([1e-7, 2e-7, 0.0])
    >>> moved = sarrus.spatial.exp(x + dx) @ sarrus.spatial.exp(x).T
    >>> bool(np.allclose(sarrus.spatial.log(moved), sarrus.spatial.left_jacobian(x) @ dx, atol=1e-13))
    True
    """
    return _of_algebra("x", x, _core.left_jacobian_rotation, _core.left_jacobian_pose)


def right_jacobian(x: ArrayLike) -> Array:
    """Return the right Jacobian J_r(x) = J_l(-x), with exp(x + dx) = exp(x) exp(J_r dx) to first order: :func:`left_jacobian` in body axes.

    Parameters
    ----------
    x : (..., 3) rotation vectors [rad], or (..., 6) motions [angular; linear] for unit time [rad, m]

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> x = np.array([0.3, -1.2, 0.7])
    >>> R = sarrus.spatial.exp(x)
    >>> bool(np.allclose(R @ sarrus.spatial.right_jacobian(x), sarrus.spatial.left_jacobian(x)))
    True
    """
    return _of_algebra("x", x, _core.left_jacobian_rotation, _core.left_jacobian_pose, -1.0)


def left_jacobian_inverse(x: ArrayLike) -> Array:
    """Return the inverse of :func:`left_jacobian`: log(exp(dx) exp(x)) = x + J_l^-1 dx to first order.

    The inverse does not exist if the rotation angle of x is a nonzero multiple of 2 pi.

    Parameters
    ----------
    x : (..., 3) rotation vectors [rad], or (..., 6) motions [angular; linear] for unit time [rad, m]

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> x = [0.3, -1.2, 0.7, 0.1, 0.2, 0.3]
    >>> bool(np.allclose(sarrus.spatial.left_jacobian_inverse(x) @ sarrus.spatial.left_jacobian(x), np.eye(6)))
    True
    """
    return _of_algebra("x", x, _core.left_jacobian_inverse_rotation, _core.left_jacobian_inverse_pose)


def right_jacobian_inverse(x: ArrayLike) -> Array:
    """Return the inverse of :func:`right_jacobian`: log(exp(x) exp(dx)) = x + J_r^-1 dx to first order.

    The inverse does not exist if the rotation angle of x is a nonzero multiple of 2 pi.

    Parameters
    ----------
    x : (..., 3) rotation vectors [rad], or (..., 6) motions [angular; linear] for unit time [rad, m]

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> x = [0.3, -1.2, 0.7]
    >>> bool(np.allclose(sarrus.spatial.right_jacobian_inverse(x) @ sarrus.spatial.right_jacobian(x), np.eye(3)))
    True
    """
    return _of_algebra("x", x, _core.left_jacobian_inverse_rotation, _core.left_jacobian_inverse_pose, -1.0)


def adjoint(pose: ArrayLike | Transform) -> Array:
    """Return the adjoint matrices Ad = [R 0; p~ R, R] (..., 6, 6) of poses (..., 4, 4) of B in A.

    Ad maps a motion's components in B to its components in A; p~ is the skew-symmetric matrix of p. It is Ad_g of Li and Wu (2011, 4.2) and of
    Murray, Li and Sastry (1994, 2.58), but with the angular components first.

    Parameters
    ----------
    pose : (..., 4, 4) poses of B in A [dimensionless, m], or a `Transform`

    Examples
    --------
    >>> import sarrus
    >>> axle = sarrus.Transform(translation=(0, 1, 0))
    >>> (sarrus.spatial.adjoint(axle) @ [0, 0, 2, 0, 0, 0]).tolist()
    [0.0, 0.0, 2.0, 2.0, 0.0, 0.0]
    """
    return np.asarray(_core.motion_matrix(checked_poses("pose", pose)))


def adjoint_dual(pose: ArrayLike | Transform) -> Array:
    """Return Ad* = Ad^-T (..., 6, 6) of poses (..., 4, 4) of B in A; it maps a force's components in B to its components in A.

    It equals Ad_g^T of Li and Wu (2011) if g is the pose of A in B.

    Parameters
    ----------
    pose : (..., 4, 4) poses of B in A [dimensionless, m], or a `Transform`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> pose = sarrus.spatial.exp([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    >>> bool(np.allclose(sarrus.spatial.adjoint_dual(pose).T @ sarrus.spatial.adjoint(pose), np.eye(6)))
    True
    """
    return np.asarray(_core.force_matrix(checked_poses("pose", pose)))


def ad(v: ArrayLike) -> Array:
    """Return the matrices ad = [w~ 0; v~ w~] (..., 6, 6) of motions (..., 6): ad(v) m = v x m, see :func:`cross_motion`.

    Parameters
    ----------
    v : (..., 6) motions [angular; linear] [rad/s, m/s]

    Examples
    --------
    >>> import sarrus
    >>> (sarrus.spatial.ad([0, 0, 2, 0, 0, 0]) @ [1, 0, 0, 0, 3, 0]).tolist()
    [0.0, 2.0, 0.0, -6.0, 0.0, 0.0]
    """
    return np.asarray(_core.ad(_vectors("v", v, 6)))


def ad_dual(v: ArrayLike) -> Array:
    """Return the matrices ad* = -ad^T (..., 6, 6) of motions (..., 6): ad_dual(v) f = v x* f, see :func:`cross_force`.

    Li and Wu (2011) use ad_V^T, which is the negative.

    Parameters
    ----------
    v : (..., 6) motions [angular; linear] [rad/s, m/s]

    Examples
    --------
    >>> import sarrus
    >>> (sarrus.spatial.ad_dual([0, 0, 2, 0, 0, 0]) @ [1, 0, 0, 0, 3, 0]).tolist()
    [0.0, 2.0, 0.0, -6.0, 0.0, 0.0]
    """
    return np.asarray(_core.ad_dual(_vectors("v", v, 6)))


def product_of_exponentials(screws: ArrayLike, q: ArrayLike, home: ArrayLike | Transform | None = None) -> Array:
    """Return the pose (..., 4, 4) of the end of a serial chain: exp(xi_1 q_1) ... exp(xi_n q_n) home.

    Parameters
    ----------
    screws : (..., n, 6) [angular; linear] of each joint at q = 0, in space axes, as returned by `sarrus.formulations.joint_screws`
    q : (..., n) joint coordinates [rad, m]
    home : (..., 4, 4) or `Transform`, pose of the chain's end at q = 0 [dimensionless, m]; default: the identity

    References
    ----------
    Li and Wu 2011, 4.3; Murray, Li and Sastry 1994, 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> q = np.array([0.1, -0.4])
    >>> tip = sarrus.spatial.product_of_exponentials(sarrus.formulations.joint_screws(arm), q, arm.pose(arm.neutral(), "tip"))
    >>> bool(np.allclose(tip, arm.pose(q, "tip")))
    True
    """
    X = _exponentials(screws, q)[0]
    if home is None:
        return X
    at = checked_poses("home", home)
    common_axes({"screws and q": X.shape[:-2], "home": at.shape[:-2]})
    return np.asarray(X @ at)


def spatial_jacobian(screws: ArrayLike, q: ArrayLike) -> Array:
    """Return the spatial Jacobian (..., 6, n) of a serial chain, [angular; linear] in space axes (Murray, Li and Sastry 1994, 3.54).

    Column k is the screw xi_k, transformed by exp(xi_1 q_1) ... exp(xi_(k-1) q_(k-1)). The result equals `Mechanism.jacobian` of a frame at the
    chain's end with ``expressed_in="world"``. Arguments are those of :func:`product_of_exponentials`.

    Parameters
    ----------
    screws, q : (..., n, 6), (..., n) as for :func:`product_of_exponentials` [rad, m]

    Examples
    --------
    >>> import sarrus
    >>> sarrus.spatial.spatial_jacobian([[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -1, 0]], [1.5707963267948966, 0.0]).round(6)[3:5]
    array([[ 0.,  1.],
           [ 0., -0.]])
    """
    return _exponentials(screws, q)[1]


def body_jacobian(screws: ArrayLike, q: ArrayLike, home: ArrayLike | Transform | None = None) -> Array:
    """Return the body Jacobian (..., 6, n) of a serial chain, [angular; linear] in the frame of its end (Murray, Li and Sastry 1994, 3.56).

    The body Jacobian is Ad^-1 of the end's pose times the spatial Jacobian, and equals `Mechanism.jacobian` of a frame at the chain's end. Arguments
    are those of :func:`product_of_exponentials`.

    Parameters
    ----------
    screws, q, home : (..., n, 6), (..., n), (..., 4, 4) as for :func:`product_of_exponentials` [rad, m]

    Examples
    --------
    >>> import sarrus
    >>> sarrus.spatial.body_jacobian([[0, 0, 1, 0, 0, 0]], [0.3], sarrus.Transform(translation=(2, 0, 0)))[:, 0].round(12).tolist()
    [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]
    """
    X, J = _exponentials(screws, q)
    at = X if home is None else product_of_exponentials(screws, q, home)
    # Ad^-1 is the transpose of Ad*
    return np.asarray(np.swapaxes(_core.force_matrix(at), -1, -2) @ J)


def _of_algebra(name: str, x: ArrayLike, rotation: Any, motion: Any, sign: float = 1.0) -> Array:
    a = _floats(name, x, ("...", 3))
    if a.ndim == 0 or a.shape[-1] not in (3, 6):
        raise ShapeError(f"{name} has shape {a.shape}; its last axis must be 3, rotation vectors, or 6, motions")
    return np.asarray((rotation if a.shape[-1] == 3 else motion)(sign * a))


def _checked_rotations(name: str, R: Array) -> Array:
    """Return the matrices (..., 3, 3); raise ModelError if a finite matrix is not a rotation to four digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        defect = abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-2, -1))
        reflected = np.linalg.det(R) < 0.0
    for i in np.argwhere((defect > _FOUR_DIGITS) | ((defect <= _FOUR_DIGITS) & reflected)):
        where = f"{name}{list(map(int, i))}" if R.ndim > 2 else name
        fault = "a reflection: its determinant is -1" if reflected[tuple(i)] else f"off by {defect[tuple(i)]:.2g}"
        raise ModelError(f"{where} contains {R[tuple(i)].tolist()}, which is not a rotation: {fault}")
    return R


def checked_poses(name: str, poses: ArrayLike | Transform) -> Array:
    """Return the homogeneous matrices (..., 4, 4); raise ModelError if a finite matrix is not a pose to four digits."""
    H = poses.matrix if isinstance(poses, Transform) else _floats(name, poses, ("...", 4, 4))
    if H.ndim < 2 or H.shape[-2:] != (4, 4):
        raise ShapeError(f"{name} has shape {H.shape}; it must be a Transform, or poses (..., 4, 4)")
    last = H[..., 3, :]
    if (np.isfinite(last) & (last != (0.0, 0.0, 0.0, 1.0))).any():
        raise ModelError(f"{name} has the last row {last.reshape(-1, 4)[0].tolist()}; a pose has [0, 0, 0, 1]")
    _checked_rotations(name, H[..., :3, :3])
    return H


def _exponentials(screws: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return the product of exponentials (..., 4, 4) and its spatial Jacobian (..., 6, n)."""
    xi, angle = _floats("screws", screws, ("...", "n", 6)), _floats("q", q, ("...", "n"))
    if xi.ndim < 2 or xi.shape[-1] != 6:
        raise ShapeError(f"screws has shape {xi.shape}; it must be (..., n, 6)")
    n = xi.shape[-2]
    if angle.ndim == 0 or angle.shape[-1] != n:
        raise ShapeError(f"q has shape {angle.shape}; with {n} screws its last axis must be {n}")
    lead = common_axes({"screws": xi.shape[:-2], "q": angle.shape[:-1]})
    X, J = _core.product_of_exponentials(np.broadcast_to(xi, (*lead, n, 6)), np.broadcast_to(angle, (*lead, n)))
    return np.asarray(X), np.asarray(J)
