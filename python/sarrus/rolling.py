"""Rolling and sliding contact of two surfaces: Montana's equations, for planes, spheres, cylinders, tori and user-defined patches.

The surfaces of this module are parametrised, for the kinematics of a permanent contact. Shapes of bodies for drawings and collisions are in
:mod:`sarrus.shapes`.

There are five contact coordinates: two coordinates u (2,) on each surface, and the angle psi between the surfaces' frames at the contact. The frame
of a surface at u has x along the first coordinate line, z along the outward normal, and y perpendicular to both. At the contact, the points of both
surfaces coincide, the normals are opposite, and psi is the angle between the x-axes. The rates of the five coordinates, in rolling, sliding and
spinning, depend on the metric, curvature and torsion of both surfaces:

>>> import numpy as np
>>> from sarrus.rolling import PlaneSurface, RollingContact, SphereSurface
>>> ball = RollingContact(PlaneSurface(), SphereSurface(0.1))
>>> ball.rates([0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0, 0.0])   # about y at 2 rad/s: along x at 0.2 m/s
array([0.2, 0. , 2. , 0. , 0. ])

References
----------
Montana, The kinematics of contact and grasp, Int. J. Robotics Research 7, 1988; Murray, Li and Sastry, A mathematical introduction to robotic
manipulation, 1994, ch. 5. Both references require orthogonal coordinate lines. In this module the metric is a full matrix, so that any coordinates
are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ._arrays import Array, ArrayLike, check_callable, checked_number, common_axes, real_array, real_rows
from ._deferred import attributes
from .errors import IntegrationError, ModelError, ShapeError, StateError

__all__ = [
    "CylinderSurface",
    "Patch",
    "PlaneSurface",
    "RollingContact",
    "SphereSurface",
    "Surface",
    "SurfaceGeometry",
    "TorusSurface",
]

__getattr__ = attributes(__name__, {})

LARGEST = 1e50  # largest length [m]; its fourth power and the inverse of that are finite
SINGULAR = 1e-9  # relative determinant below which a matrix counts as singular


@dataclass(frozen=True, eq=False)
class SurfaceGeometry:
    """Local geometry of a surface at a point, in the axes of its frame at that point.

    Attributes
    ----------
    point : (..., 3) [m]
    frame : (..., 3, 3) columns x along the first coordinate line, y, and the normal z (dimensionless)
    metric : M (..., 2, 2): M du is the displacement of the point along x and y [m]. M is diagonal for orthogonal coordinate lines
    curvature : K (..., 2, 2) [1/m], symmetric: K M du is the change of the unit normal along x and y. K is positive definite for a ball
    torsion : T (..., 1, 2) [1/m]: T M du is the rotation of the frame about z [rad]
    """

    point: Array
    frame: Array
    metric: Array
    curvature: Array
    torsion: Array


class Surface:
    """Base class of surfaces with coordinates u (..., 2): a point, and its derivatives with respect to u.

    Methods that a derived class does not define raise NotImplementedError.
    """

    def point(self, u: Array) -> Array:
        """Return the point c (..., 3) [m].

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of the class [rad, m]
        """
        raise NotImplementedError(f"{type(self).__name__} does not define point(u)")

    def first(self, u: Array) -> Array:
        """Return dc/du (..., 3, 2).

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of the class [rad, m]
        """
        raise NotImplementedError(f"{type(self).__name__} does not define first(u)")

    def second(self, u: Array) -> Array:
        """Return d2c/du2 (..., 3, 2, 2).

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of the class [rad, m]
        """
        raise NotImplementedError(f"{type(self).__name__} does not define second(u)")

    def side(self, u: Array) -> Array:
        """Return 1 (...) if dc/du_1 x dc/du_2 is the outward normal, else -1.

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of the class [rad, m]
        """
        return np.ones(real_rows("u", u, 2).shape[:-1])

    def geometry(self, u: ArrayLike) -> SurfaceGeometry:
        """Return frame, metric, curvature and torsion at u (..., 2).

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of the class [rad, m]

        Raises
        ------
        StateError
            The coordinate lines are parallel or degenerate, such as at a sphere's poles. In a batch, such rows are NaN instead.

        Examples
        --------
        >>> from sarrus.rolling import CylinderSurface
        >>> CylinderSurface(0.5).geometry([0.3, 1.0]).curvature.round(12).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
        """
        u = real_rows("u", u, 2)
        c_u, c_uu = self.first(u), self.second(u)
        normal = self.side(u)[..., None] * np.cross(c_u[..., 0], c_u[..., 1])
        length, area = np.sqrt((c_u * c_u).sum(axis=-2)), np.sqrt((normal * normal).sum(axis=-1))
        bad = ~(area > SINGULAR * np.maximum(length.prod(axis=-1), length.max(axis=-1) ** 2))
        if bad.any() and u.ndim == 1:
            raise StateError(
                f"{self} has no frame at u = {u}, because its coordinate lines do not cross; rotate the surface on its body"
            )
        length, area = np.where(bad[..., None], np.nan, length), np.where(bad, np.nan, area)
        x, z = c_u[..., 0] / length[..., :1], normal / area[..., None]
        y = np.cross(z, x)
        metric = np.stack([x, y], axis=-2) @ c_u
        per_length = _inverse(metric)
        # z . c_j = 0 for the derivatives c_j of the point with respect to u_j; its derivative with respect to u_k is z_k . c_j = -z . c_jk
        normal_rate = -(z[..., None, None, :] @ c_uu.swapaxes(-3, -2))[..., 0, :]
        turn_rate = (y[..., None, :] @ c_uu[..., 0])[..., 0, :] / length[..., :1]
        return SurfaceGeometry(
            point=self.point(u),
            frame=np.stack([x, y, z], axis=-1),
            metric=metric,
            curvature=per_length.swapaxes(-1, -2) @ normal_rate @ per_length,
            torsion=turn_rate[..., None, :] @ per_length,
        )


@dataclass(frozen=True)
class PlaneSurface(Surface):
    """Plane z = 0 with outward normal z; u = (x, y) [m]."""

    def point(self, u: ArrayLike) -> Array:
        """Return the point c (..., 3) [m].

        Parameters
        ----------
        u : (..., 2) x and y [m]
        """
        u = real_rows("u", u, 2)
        return np.concatenate([u, np.zeros_like(u[..., :1])], axis=-1)

    def first(self, u: ArrayLike) -> Array:
        """Return dc/du (..., 3, 2), the axes x and y.

        Parameters
        ----------
        u : (..., 2) x and y [m]
        """
        return np.broadcast_to(np.eye(3)[:, :2], (*real_rows("u", u, 2).shape[:-1], 3, 2))

    def second(self, u: ArrayLike) -> Array:
        """Return d2c/du2 (..., 3, 2, 2), zero.

        Parameters
        ----------
        u : (..., 2) x and y [m]
        """
        return np.zeros((*real_rows("u", u, 2).shape[:-1], 3, 2, 2))


class _Revolved(Surface):
    """Surface of revolution around the z axis; u_1 is the angle around z, and u_2 moves along the profile."""

    def _profile(self, w: Array) -> tuple[Array, ...]:
        """Return the distance from the z axis and the height for u_2, their derivatives, and their second derivatives."""
        raise NotImplementedError

    def _turned(self, u: ArrayLike) -> tuple[Array, ...]:
        """Return cosine and sine of the angle around z, and the profile."""
        u = real_rows("u", u, 2)
        return np.cos(u[..., 0]), np.sin(u[..., 0]), *self._profile(u[..., 1])

    def point(self, u: ArrayLike) -> Array:
        """Return the point c (..., 3) [m].

        Parameters
        ----------
        u : (..., 2) angle around z [rad], and coordinate along the profile
        """
        c, s, r, z, *_ = self._turned(u)
        return _vector(r * c, r * s, z)

    def first(self, u: ArrayLike) -> Array:
        """Return dc/du (..., 3, 2): around the z axis, and along the profile.

        Parameters
        ----------
        u : (..., 2) angle around z [rad], and coordinate along the profile
        """
        c, s, r, _, dr, dz, *_ = self._turned(u)
        return _columns((-r * s, r * c, 0 * r), (dr * c, dr * s, dz))

    def second(self, u: ArrayLike) -> Array:
        """Return d2c/du2 (..., 3, 2, 2).

        Parameters
        ----------
        u : (..., 2) angle around z [rad], and coordinate along the profile
        """
        c, s, r, _, dr, _, ddr, ddz = self._turned(u)
        mixed = (-dr * s, dr * c, 0 * r)
        return np.stack([_columns((-r * c, -r * s, 0 * r), mixed), _columns(mixed, (ddr * c, ddr * s, ddz))], axis=-1)

    def side(self, u: ArrayLike) -> Array:
        """Return 1 if the point is at a positive distance from the z axis, else -1.

        Parameters
        ----------
        u : (..., 2) angle around z [rad], and coordinate along the profile
        """
        return np.asarray(np.sign(self._turned(u)[2]))


@dataclass(frozen=True)
class CylinderSurface(_Revolved):
    """Cylinder around the z axis; u = (angle around z [rad], height [m]).

    Attributes
    ----------
    radius : radius [m]; negative for contact on the inside of a hollow cylinder
    """

    radius: float

    def __post_init__(self) -> None:
        _check_length(self, "radius", self.radius)

    def _profile(self, w: Array) -> tuple[Array, ...]:
        zero = np.zeros_like(w)
        return abs(self.radius) + zero, w, zero, zero + 1.0, zero, zero

    def side(self, u: ArrayLike) -> Array:
        """Return -1 for a hollow cylinder, else 1.

        Parameters
        ----------
        u : (..., 2) angle around z [rad] and height [m]
        """
        return np.asarray(np.sign(self.radius) * super().side(u))


@dataclass(frozen=True)
class TorusSurface(_Revolved):
    """Torus around the z axis; u = (angle around z, angle around the tube) [rad]. The second angle is zero on the outer equator, and positive above
    it.

    Attributes
    ----------
    ring : radius of the tube's centre line [m]
    tube : radius of the tube [m]; negative for contact on the inside of a hollow tube
    """

    ring: float
    tube: float

    def __post_init__(self) -> None:
        _check_length(self, "tube", self.tube)
        _check_length(self, "ring", self.ring, may_be_zero=True)
        if self.ring < 0.0:
            raise ModelError(f"ring of {self} must not be negative")

    def _profile(self, w: Array) -> tuple[Array, ...]:
        across, along = abs(self.tube) * np.cos(w), abs(self.tube) * np.sin(w)
        return self.ring + across, along, -along, across, -across, -along

    def side(self, u: ArrayLike) -> Array:
        """Return 1, or -1 for a hollow tube. The sign is opposite if the point is beyond the z axis, such as at a latitude above pi/2 on a sphere.

        Parameters
        ----------
        u : (..., 2) angle around z and angle around the tube [rad]
        """
        return np.asarray(np.sign(self.tube) * super().side(u))


class SphereSurface(TorusSurface):
    """Sphere about the origin; u = (longitude, latitude) [rad]. It has no frame at the poles.

    Parameters
    ----------
    radius : radius [m]; negative for contact on the inside of a hollow sphere
    """

    def __init__(self, radius: float) -> None:
        super().__init__(0.0, radius)  # a sphere is a torus whose centre line has radius zero

    def __repr__(self) -> str:
        return f"SphereSurface({self.tube!r})"


@dataclass(frozen=True)
class Patch(Surface):
    """User-defined surface: a function of the coordinates u (..., 2) returns the point c (..., 3). It must accept batches, so write ``u[..., 0]``.

    dc/du_1 x dc/du_2 must be an outward normal. Second derivatives must be continuous, because they define the curvature.

    Attributes
    ----------
    place : function that returns c (..., 3) [m]
    slopes : function that returns dc/du (..., 3, 2) [m per unit of u]; if None, five-point finite differences are used
    bends : function that returns d2c/du2 (..., 3, 2, 2) [m per squared unit of u]; if None, five-point finite differences are used
    step : step of the finite differences [unit of u]; the error is about 1e-10 if c is smooth on the scale of ten steps

    Examples
    --------
    A saddle with coordinates that are not orthogonal:

    >>> import numpy as np
    >>> from sarrus.rolling import Patch
    >>> saddle = Patch(lambda u: np.stack([u[..., 0], u[..., 1], u[..., 0] * u[..., 1]], axis=-1))
    >>> (saddle.geometry([0.0, 0.0]).curvature.round(6) + 0.0).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]
    """

    place: Callable[[Array], Any]
    slopes: Callable[[Array], Any] | None = None
    bends: Callable[[Array], Any] | None = None
    step: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("place", "slopes", "bends"):
            function = getattr(self, name)
            if not callable(function) and (name == "place" or function is not None):
                raise ModelError(f"a patch's {name} must be a function of u; got {function!r}")
        checked_number("step", self.step)

    def point(self, u: ArrayLike) -> Array:
        """Return the point c (..., 3) [m].

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of `place` [rad, m]
        """
        u = real_rows("u", u, 2)
        return _returned("place", self.place(u), (*u.shape[:-1], 3))

    def first(self, u: ArrayLike) -> Array:
        """Return dc/du (..., 3, 2).

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of `place` [rad, m]
        """
        u = real_rows("u", u, 2)
        if self.slopes is not None:
            return _returned("slopes", self.slopes(u), (*u.shape[:-1], 3, 2))
        return self._differences(self.point, u)

    def second(self, u: ArrayLike) -> Array:
        """Return d2c/du2 (..., 3, 2, 2).

        Parameters
        ----------
        u : (..., 2) coordinates of the surface, in the units of `place` [rad, m]
        """
        u = real_rows("u", u, 2)
        if self.bends is not None:
            return _returned("bends", self.bends(u), (*u.shape[:-1], 3, 2, 2))
        return self._differences(self.first, u)

    def _differences(self, function: Callable[[Array], Array], u: Array) -> Array:
        def along(k: int, steps: float) -> Array:
            return function(u + steps * self.step * np.eye(2)[k])

        each = [(8 * (along(k, 1) - along(k, -1)) - along(k, 2) + along(k, -2)) / (12 * self.step) for k in range(2)]
        return np.stack(each, axis=-1)


@dataclass(frozen=True)
class RollingContact:
    """Two surfaces in contact at one point, with five coordinates eta = (u of the first surface (2), u of the second surface (2), psi).

    The angle psi [rad] defines the second surface's frame. Expressed in the first surface's frame, its x axis is (cos psi, -sin psi, 0), and its y
    axis is (-sin psi, -cos psi, 0).

    The velocity (w_x, w_y, w_z, v_x, v_y) [rad/s, m/s] is that of the second body relative to the first, at the contact, in the axes of the first
    surface's frame. w_x and w_y are rolling, w_z is spinning, v_x and v_y are sliding. The normal velocity is zero, because contact is permanent.

    Attributes
    ----------
    first, second : the two surfaces, each expressed in the frame of its body

    Examples
    --------
    A ball rolls around a square of 0.1 m. The sides are great circles on the ball, which returns rotated:

    >>> import numpy as np
    >>> from sarrus.rolling import PlaneSurface, RollingContact, SphereSurface
    >>> ball = RollingContact(PlaneSurface(), SphereSurface(0.1))
    >>> sides = [(0.1, 0.0), (0.0, 0.1), (-0.1, 0.0), (0.0, -0.1)]
    >>> eta = np.zeros(5)
    >>> for side in sides:
    ...     eta = ball.motion(eta, lambda t, eta, side=side: ball.along(eta, side), [0.0, 1.0])[-1]
    >>> eta[:2].round(6) + 0.0
    array([0., 0.])
    >>> turned = ball.pose(eta)[:3, :3] @ ball.pose(np.zeros(5))[:3, :3].T
    >>> float(np.arccos((np.trace(turned) - 1) / 2).round(6))
    0.927689
    """

    first: Surface
    second: Surface

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            if not isinstance(getattr(self, name), Surface):
                raise ModelError(
                    f"{name} must be a surface, such as sarrus.rolling.SphereSurface(0.1); got {getattr(self, name)!r}"
                )

    def pose(self, eta: ArrayLike) -> Array:
        """Return the pose (..., 4, 4) of the second body in the first for eta (..., 5).

        Parameters
        ----------
        eta : (..., 5) contact coordinates [units of both surfaces, rad]
        """
        first, second, psi = self._geometries(real_rows("eta", eta, 5))
        c, s, o = np.cos(psi), np.sin(psi), 0 * psi
        between = _columns((c, -s, o), (-s, -c, o), (o, o, o - 1))
        pose = np.zeros((*psi.shape, 4, 4))
        pose[..., 3, 3] = 1.0
        pose[..., :3, :3] = first.frame @ between @ second.frame.swapaxes(-1, -2)
        pose[..., :3, 3] = first.point - (pose[..., :3, :3] @ second.point[..., None])[..., 0]
        return pose

    def locate(self, pose: ArrayLike, near: ArrayLike) -> tuple[Array, float]:
        """Return the coordinates eta (5,) of the contact or of the nearest points, and the gap along the normal [m], negative for an overlap.

        Newton's method starts from the coordinates `near`. It solves two conditions: the normals are opposite, and both points are on a common
        normal.

        Parameters
        ----------
        pose : (4, 4) pose of the second body in the first [dimensionless, m]
        near : initial guess of eta (5,) [units of both surfaces, rad]; the result's psi is the one nearest to the guess

        Raises
        ------
        StateError
            No such points were found near the initial guess.

        Examples
        --------
        >>> import numpy as np
        >>> from sarrus.rolling import PlaneSurface, RollingContact, SphereSurface
        >>> ball = RollingContact(PlaneSurface(), SphereSurface(0.1))
        >>> pose = ball.pose([0.3, 0.2, 0.5, 0.4, 0.0])
        >>> pose[2, 3] += 0.05
        >>> eta, gap = ball.locate(pose, np.zeros(5))
        >>> eta[:4].round(6).tolist(), round(gap, 6)
        ([0.3, 0.2, 0.5, 0.4], 0.05)
        """
        X, start = real_array("pose", pose), real_rows("near", near, 5)
        if X.shape != (4, 4) or start.ndim != 1:
            raise ShapeError(f"pose must be (4, 4) and near (5,); got {X.shape} and {start.shape}")
        if not np.isfinite(X).all():
            raise StateError(f"pose must be finite; got {X}")

        def relative(u: Array) -> tuple[Array, Array]:
            """Return point and frame of the second surface relative to the first surface's frame."""
            first, second = self.first.geometry(u[:2]), self.second.geometry(u[2:])
            vector = X[:3, :3] @ second.point + X[:3, 3] - first.point
            return first.frame.T @ vector, first.frame.T @ X[:3, :3] @ second.frame

        # scales of the coordinates: changes by these scales move the point by one radius of the more curved surface
        length, unit = self._units(start)

        def residual(u: Array) -> Array:
            vector, axes = relative(u)
            return np.concatenate([vector[:2] / length, axes[:2, 2]])

        u, h = start[:4].copy(), 1e-6
        for _ in range(50):
            slopes = np.stack([(residual(u + h * e) - residual(u - h * e)) / (2 * h) for e in np.diag(unit)], axis=-1)
            step = np.linalg.lstsq(slopes, -residual(u), rcond=None)[0]
            u = u + unit * step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-12))
            if np.abs(step).max() < 1e-12:
                break
        vector, axes = relative(u)
        if not np.abs(residual(u)).max() < 1e-9 or not axes[2, 2] < 0.0:
            raise StateError(
                f"{self.first} and {self.second} have no pair of points with opposite normals near eta = {start}"
            )
        psi = np.arctan2(-axes[1, 0], axes[0, 0])
        turns = np.round((start[4] - psi) / (2 * np.pi))
        return np.array([*u, psi + 2 * np.pi * turns]), float(vector[2])

    def rates(self, eta: ArrayLike, velocity: ArrayLike) -> Array:
        """Return d(eta)/dt (..., 5) for velocities (..., 5), by Montana's equations of contact.

        M_1 du_1 = (K_1 + K)^-1 ((w_y, -w_x) + K v)        K = R K_2 R: the second surface's curvature in the axes of the first surface
        M_2 du_2 = R (M_1 du_1 - v)                        R = [cos psi, -sin psi; -sin psi, -cos psi]
        dpsi = T_1 M_1 du_1 + T_2 M_2 du_2 - w_z

        Parameters
        ----------
        eta : (..., 5) contact coordinates [units of both surfaces, rad]
        velocity : (..., 5) w_x, w_y, w_z, v_x, v_y of the second body relative to the first, in the first surface's frame [rad/s, m/s]

        Raises
        ------
        StateError
            The surfaces touch along a line (K_1 + K is singular), or a surface has no frame at u. In a batch, such rows are NaN instead.

        References
        ----------
        Montana 1988; Murray, Li and Sastry 1994, ch. 5; Li and Wu 2011, 4.6 (where the velocity is that of the first body relative to the second).
        """
        eta, velocity = real_rows("eta", eta, 5), real_rows("velocity", velocity, 5, np.shape(eta)[:-1])
        first, second, psi = self._geometries(eta)
        w, v = velocity[..., :3], velocity[..., 3:]
        R, K = self._relative_curvature(first, second, psi)
        turn = _vector(w[..., 1], -w[..., 0])
        along = _solved(K, turn + _times(K - first.curvature, v), self)
        along_second = _times(R, along - v)
        dpsi = _times(first.torsion, along) + _times(second.torsion, along_second) - w[..., 2:]
        dots = [_times(_inverse(first.metric), along), _times(_inverse(second.metric), along_second), dpsi]
        return np.concatenate(dots, axis=-1)

    def along(
        self, eta: ArrayLike, rate: ArrayLike, *, spin: ArrayLike = 0.0, sliding: ArrayLike = (0.0, 0.0)
    ) -> Array:
        """Return the velocity (..., 5) that moves the contact point over the first surface at du_1/dt (..., 2). Use it to plan a path on the surface.

        Parameters
        ----------
        eta : (..., 5) contact coordinates [units of both surfaces, rad]
        rate : (..., 2) rates of the first surface's coordinates [its units per s]
        spin : w_z (...), rotation about the first surface's normal [rad/s]
        sliding : v (..., 2) along the x and y axes of the first surface's frame [m/s]
        """
        eta = real_rows("eta", eta, 5)
        lead = eta.shape[:-1]
        rate, v = real_rows("rate", rate, 2, lead), real_rows("sliding", sliding, 2, lead)
        first, second, psi = self._geometries(eta)
        _, K = self._relative_curvature(first, second, psi)
        along = _times(first.metric, rate)
        turn = _times(K, along) - _times(K - first.curvature, v)
        w_z = real_array("spin", spin)
        shape = common_axes({"eta, rate and sliding": turn.shape[:-1], "spin": w_z.shape})
        parts = (-turn[..., 1], turn[..., 0], w_z, v[..., 0], v[..., 1])
        return np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1)

    def motion(
        self, start: ArrayLike, plan: Callable[[float, Array], ArrayLike], times: ArrayLike, *, tolerance: float = 1e-9
    ) -> Array:
        """Integrate the contact coordinates for prescribed velocities, and return them (n, 5) at `times`.

        Each interval is integrated by a Runge-Kutta method with a step and with two half steps.
        The step is halved until both results differ by less than the tolerance; the returned result is extrapolated from both.

        Parameters
        ----------
        start : (5,) contact coordinates at the first time [units of both surfaces, rad]
        plan : function (t, eta (5,)) that returns the velocity (5,), as for :meth:`rates`
        times : (n,) times of the results [s]
        tolerance : largest difference between both results of an interval, in the units of eta [units of both surfaces, rad]

        Raises
        ------
        IntegrationError
            1024 steps between two times are not enough, for example because `plan` is discontinuous. The error's ``trajectory`` has the coordinates
            up to there.
        """
        eta, t = real_rows("start", start, 5), real_array("times", times)
        if eta.ndim != 1:
            raise ShapeError(f"start has shape {eta.shape}; it must be (5,)")
        if t.ndim != 1 or not len(t) or not np.isfinite(t).all():
            raise ShapeError(f"times must be finite numbers (n,); got {times!r}")
        checked_number("tolerance", tolerance)
        check_callable("plan", plan)

        def slope(t: float, eta: Array) -> Array:
            return self.rates(eta, real_rows("plan(t, eta)", plan(t, eta), 5))

        path = [eta]
        for begin, end in pairwise(t.tolist()):
            coarse = _runge_kutta(slope, path[-1], begin, end, 1)
            for halvings in range(1, 11):
                fine = _runge_kutta(slope, path[-1], begin, end, 2**halvings)
                # the method has order four, so that half the step has a sixteenth of the error
                error = (fine - coarse) / 15.0
                if np.abs(error).max() <= tolerance:
                    break
                coarse = fine
            else:
                raise IntegrationError(
                    f"no convergence within tolerance {tolerance:g} in 1024 steps between t = {begin:g} and {end:g} s, from eta = {path[-1]}; "
                    "if the path of the contact jumps, include the time of the jump in times",
                    np.array(path),
                )
            path.append(fine + error)
        return np.array(path)

    def _units(self, eta: Array) -> tuple[float, Array]:
        """Return a length [m] and the changes of the surface coordinates (4,) that move the contact points by it.

        The length is a radius of curvature at eta (5,), or 1 m if both surfaces are flat.
        """
        surfaces = self._geometries(eta)[:2]
        largest = float(max(np.abs(s.curvature).max() for s in surfaces))
        length = 1.0 / largest if largest > 0.0 else 1.0
        return length, length / np.concatenate([np.linalg.norm(s.metric, axis=0) for s in surfaces])

    def _geometries(self, eta: Array) -> tuple[SurfaceGeometry, SurfaceGeometry, Array]:
        return self.first.geometry(eta[..., :2]), self.second.geometry(eta[..., 2:4]), eta[..., 4]

    @staticmethod
    def _relative_curvature(first: SurfaceGeometry, second: SurfaceGeometry, psi: Array) -> tuple[Array, Array]:
        """Return R, and K_1 + R K_2 R (..., 2, 2)."""
        R = _columns((np.cos(psi), -np.sin(psi)), (-np.sin(psi), -np.cos(psi)))
        return R, first.curvature + R @ second.curvature @ R


def _runge_kutta(slope: Callable[[float, Array], Array], x: Array, begin: float, end: float, steps: int) -> Array:
    """Integrate with the classical Runge-Kutta method of order four."""
    dt = (end - begin) / steps
    for k in range(steps):
        t = begin + k * dt
        k1 = slope(t, x)
        k2 = slope(t + dt / 2, x + dt / 2 * k1)
        k3 = slope(t + dt / 2, x + dt / 2 * k2)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + slope(t + dt, x + dt * k3))
    return x


def _vector(*entries: Array) -> Array:
    """Return vectors (..., n) from entries (...)."""
    stacked = np.array(entries)
    return stacked.transpose(*range(1, stacked.ndim), 0)


def _columns(*columns: tuple[Array, ...]) -> Array:
    """Return matrices (..., rows, columns) from entries (...)."""
    stacked = np.array(columns)
    return stacked.transpose(*range(2, stacked.ndim), 1, 0)


def _times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


def _inverse(A: Array) -> Array:
    """Return the inverses of matrices (..., 2, 2)."""
    a, b, c, d = (A[..., i, j] for i in range(2) for j in range(2))
    return _columns((d, -c), (-b, a)) / (a * d - b * c)[..., None, None]


def _solved(A: Array, b: Array, contact: RollingContact) -> Array:
    """Return A^-1 b for relative curvatures (..., 2, 2)."""
    determinant = A[..., 0, 0] * A[..., 1, 1] - A[..., 0, 1] * A[..., 1, 0]
    bad = ~(np.abs(determinant) > SINGULAR * np.abs(A).max(axis=(-2, -1)) ** 2)
    if bad.any() and A.ndim == 2:
        raise StateError(
            f"{contact.first} and {contact.second} touch along a line or a face: their relative curvature {A.tolist()} is singular, so the "
            "motion of the bodies does not determine the motion of the contact"
        )
    return _times(_inverse(np.where(bad[..., None, None], np.nan, A)), b)


def _check_length(surface: Surface, name: str, value: float, *, may_be_zero: bool = False) -> None:
    value = checked_number(name, value, "")
    if value == 0.0 and not may_be_zero:
        raise ModelError(f"{name} of {surface} must not be zero")
    if value and not 1.0 / LARGEST <= abs(value) <= LARGEST:
        raise ModelError(
            f"{name} of {surface} must be between {1.0 / LARGEST:g} and {LARGEST:g} m, because otherwise its curvature overflows"
        )


def _returned(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    values = real_array(f"the result of {name}", value)
    if values.shape != shape:
        raise ShapeError(f"{name} returned an array {values.shape} for u; it must be {shape}")
    return values
