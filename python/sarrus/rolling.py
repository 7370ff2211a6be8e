"""Two surfaces that roll and slide on each other: Montana's equations of contact, for planes, spheres, cylinders, tori and patches of your own.

These surfaces have coordinates and curvature. Shapes of bodies, which are drawn and which touch in simulations, are those of :mod:`sarrus.shapes`.

Where they touch are two coordinates u (2,) on each, and an angle psi between the frames that these make there. The frame of a surface at u has
x along its first coordinate line, z along the normal, out of what is solid, and y across both. In contact both points are one, both
normals oppose, and psi turns the one x onto the other. How fast the five coordinates go, in rolling, sliding and spinning, is a matter
of each surface's metric, curvature and torsion:

>>> import numpy as np
>>> from sarrus.rolling import PlaneSurface, RollingContact, SphereSurface
>>> ball = RollingContact(PlaneSurface(), SphereSurface(0.1))
>>> ball.rates([0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0, 0.0])   # about y at 2 rad/s: along x at 0.2 m/s
array([0.2, 0. , 2. , 0. , 0. ])

References
----------
Montana, The kinematics of contact and grasp, Int. J. Robotics Research 7, 1988; Murray, Li and Sastry, A mathematical introduction to robotic
manipulation, 1994, ch. 5. Both want coordinate lines at right angles; here a metric is a matrix, so that any will do.
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

LARGEST = 1e50  # [m] lengths of which fourth powers and their inverses are numbers
SINGULAR = 1e-9  # determinants below this times the product of the columns' lengths: no inverse that means something


@dataclass(frozen=True, eq=False)
class SurfaceGeometry:
    """What a surface is like at a point, in the axes of its frame there.

    Attributes
    ----------
    point : (..., 3) [m]
    frame : (..., 3, 3) columns x along the first coordinate line, y, and the normal z
    metric : M (..., 2, 2): M du is how far the point goes along x and y [m]. Diagonal where coordinate lines cross at right angles
    curvature : K (..., 2, 2), symmetric: K M du is how the normal turns, dz along x and y [1/m]. A ball's is positive
    torsion : T (..., 1, 2): T M du is by how much the frame turns about z [1/m]
    """

    point: Array
    frame: Array
    metric: Array
    curvature: Array
    torsion: Array


class Surface:
    """A surface by its coordinates u (..., 2): where a point is, and how that changes with them.

    What a surface of one's own does not define raises NotImplementedError.
    """

    def point(self, u: Array) -> Array:
        """c (..., 3) [m]."""
        raise NotImplementedError("a surface has its own point")

    def first(self, u: Array) -> Array:
        """dc/du (..., 3, 2)."""
        raise NotImplementedError("a surface has its own first derivatives")

    def second(self, u: Array) -> Array:
        """d2c/du2 (..., 3, 2, 2)."""
        raise NotImplementedError("a surface has its own second derivatives")

    def side(self, u: Array) -> Array:
        """1 (...) where dc/du_1 x dc/du_2 points out of what is solid, otherwise -1."""
        return np.ones(real_rows("u", u, 2).shape[:-1])

    def geometry(self, u: ArrayLike) -> SurfaceGeometry:
        """Frame, metric, curvature and torsion at u (..., 2).

        Raises
        ------
        StateError
            Where coordinate lines do not cross, as at a sphere's poles; among many states, their rows are NaN.

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
                f"{self} has no frame at u = {u}, where its coordinate lines do not cross; turn the surface on its body"
            )
        length, area = np.where(bad[..., None], np.nan, length), np.where(bad, np.nan, area)
        x, z = c_u[..., 0] / length[..., :1], normal / area[..., None]
        y = np.cross(z, x)
        metric = np.stack([x, y], axis=-2) @ c_u
        per_length = _inverse(metric)
        # z . c_j = 0, so that z_k . c_j = -z . c_jk
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
    """The plane z = 0, solid below; u = (x, y) [m]."""

    def point(self, u: ArrayLike) -> Array:
        """c (..., 3) [m]."""
        u = real_rows("u", u, 2)
        return np.concatenate([u, np.zeros_like(u[..., :1])], axis=-1)

    def first(self, u: ArrayLike) -> Array:
        """dc/du (..., 3, 2): the axes x and y."""
        u = real_rows("u", u, 2)
        return np.broadcast_to(np.eye(3)[:, :2], (*u.shape[:-1], 3, 2))

    def second(self, u: ArrayLike) -> Array:
        """d2c/du2 (..., 3, 2, 2): zero."""
        u = real_rows("u", u, 2)
        return np.zeros((*u.shape[:-1], 3, 2, 2))


@dataclass(frozen=True)
class CylinderSurface(Surface):
    """A cylinder around the z axis; u = (angle around z [rad], height [m]).

    Attributes
    ----------
    radius : [m]; negative: a hollow one, touched from inside
    """

    radius: float

    def __post_init__(self) -> None:
        _check_length(self, "radius", self.radius)

    def point(self, u: ArrayLike) -> Array:
        """c (..., 3) [m]."""
        u = real_rows("u", u, 2)
        r = abs(self.radius)
        return _vector(r * np.cos(u[..., 0]), r * np.sin(u[..., 0]), u[..., 1])

    def first(self, u: ArrayLike) -> Array:
        """dc/du (..., 3, 2): around and along."""
        u = real_rows("u", u, 2)
        x, y = self.point(u)[..., 0], self.point(u)[..., 1]
        return _columns((-y, x, 0 * x), (0 * x, 0 * x, 0 * x + 1))

    def second(self, u: ArrayLike) -> Array:
        """d2c/du2 (..., 3, 2, 2): inwards, for twice around."""
        u = real_rows("u", u, 2)
        c_uu = np.zeros((*u.shape[:-1], 3, 2, 2))
        c_uu[..., :2, 0, 0] = -self.point(u)[..., :2]
        return c_uu

    def side(self, u: ArrayLike) -> Array:
        """-1 inside a hollow one."""
        u = real_rows("u", u, 2)
        return np.full(u.shape[:-1], np.sign(self.radius))


@dataclass(frozen=True)
class TorusSurface(Surface):
    """A tube around the z axis; u = (angle around z, angle around the tube, from outside upwards) [rad].

    Attributes
    ----------
    ring : radius of the tube's middle [m]
    tube : radius of the tube [m]; negative: a hollow one, touched from inside
    """

    ring: float
    tube: float

    def __post_init__(self) -> None:
        _check_length(self, "tube", self.tube)
        _check_length(self, "ring", self.ring, may_be_zero=True)
        if self.ring < 0.0:
            raise ModelError(f"ring of {self} must not be negative")

    def _turned(self, u: ArrayLike) -> tuple[Array, ...]:
        """Sines and cosines, and the distance from the z axis."""
        u = real_rows("u", u, 2)
        c, s = np.cos(u), np.sin(u)
        return c[..., 0], s[..., 0], c[..., 1], s[..., 1], self.ring + abs(self.tube) * c[..., 1]

    def point(self, u: ArrayLike) -> Array:
        """c (..., 3) [m]."""
        c1, s1, _, s2, far = self._turned(u)
        return _vector(far * c1, far * s1, abs(self.tube) * s2)

    def first(self, u: ArrayLike) -> Array:
        """dc/du (..., 3, 2): around the ring, around the tube."""
        c1, s1, c2, s2, far = self._turned(u)
        r = abs(self.tube)
        return _columns((-far * s1, far * c1, 0 * far), (-r * s2 * c1, -r * s2 * s1, r * c2))

    def second(self, u: ArrayLike) -> Array:
        """d2c/du2 (..., 3, 2, 2)."""
        c1, s1, c2, s2, far = self._turned(u)
        r = abs(self.tube)
        mixed = (r * s2 * s1, -r * s2 * c1, 0 * far)
        around = _columns((-far * c1, -far * s1, 0 * far), mixed)
        return np.stack([around, _columns(mixed, (-r * c2 * c1, -r * c2 * s1, -r * s2))], axis=-1)

    def side(self, u: ArrayLike) -> Array:
        """-1 inside a hollow one, and, the other way about, where a point is beyond the z axis, as behind a sphere's pole."""
        return np.asarray(np.sign(self.tube) * np.sign(self._turned(u)[-1]))


class SphereSurface(TorusSurface):
    """A sphere about the origin; u = (longitude, latitude) [rad]. It has no frame at the poles.

    Parameters
    ----------
    radius : [m]; negative: a hollow one, touched from inside
    """

    def __init__(self, radius: float) -> None:
        super().__init__(0.0, radius)  # a tube around a point

    def __repr__(self) -> str:
        return f"SphereSurface({self.tube!r})"


@dataclass(frozen=True)
class Patch(Surface):
    """A surface of your own, u (..., 2) to c (..., 3): it takes many points at once, so write ``u[..., 0]``.

    dc/du_1 x dc/du_2 points out of what is solid. The curvature is that of the second derivatives: they must be continuous.

    Attributes
    ----------
    place : c (..., 3) [m]
    slopes : dc/du (..., 3, 2); None: five-point differences
    bends : d2c/du2 (..., 3, 2, 2); None: five-point differences
    step : of differences, in units of u; they are right to about 1e-10 where c does not change much on the scale of ten of them

    Examples
    --------
    A saddle, of coordinates that do not cross at right angles:

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
            defined = getattr(self, name)
            if not callable(defined) and (name == "place" or defined is not None):
                raise ModelError(f"a patch's {name} must be a function of u; got {defined!r}")
        checked_number("step", self.step)

    def point(self, u: ArrayLike) -> Array:
        """c (..., 3) [m]."""
        u = real_rows("u", u, 2)
        return _returned("place", self.place(u), (*u.shape[:-1], 3))

    def first(self, u: ArrayLike) -> Array:
        """dc/du (..., 3, 2)."""
        u = real_rows("u", u, 2)
        if self.slopes is not None:
            return _returned("slopes", self.slopes(u), (*u.shape[:-1], 3, 2))
        return self._differences(self.point, u)

    def second(self, u: ArrayLike) -> Array:
        """d2c/du2 (..., 3, 2, 2)."""
        u = real_rows("u", u, 2)
        if self.bends is not None:
            return _returned("bends", self.bends(u), (*u.shape[:-1], 3, 2, 2))
        return self._differences(self.first, u)

    def _differences(self, function: Callable[[Array], Array], u: Array) -> Array:
        def along(k: int, far: float) -> Array:
            return function(u + far * self.step * np.eye(2)[k])

        each = [(8 * (along(k, 1) - along(k, -1)) - along(k, 2) + along(k, -2)) / (12 * self.step) for k in range(2)]
        return np.stack(each, axis=-1)


@dataclass(frozen=True)
class RollingContact:
    """Two surfaces in contact at one point: five coordinates, eta = (u of the first, u of the second, psi).

    psi [rad]: seen in the frame of the first surface, x of the second is (cos psi, -sin psi, 0), and y (-sin psi, -cos psi, 0).

    Velocities are those of the second body relative to the first, at the contact and along the axes of the first surface's frame:
    (w_x, w_y, w_z, v_x, v_y) [rad/s, m/s]. w_x and w_y roll, w_z spins, v_x and v_y slide; along the normal there is none, as contact lasts.

    Attributes
    ----------
    first, second : the surfaces, each in the axes of its body

    Examples
    --------
    A ball rolls round a square of 0.1 m; on its own surface the sides are great circles, and it comes back turned:

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
        """Pose (..., 4, 4) of the second body in the first for eta (..., 5)."""
        one, two, psi = self._geometries(real_rows("eta", eta, 5))
        c, s, o = np.cos(psi), np.sin(psi), 0 * psi
        between = _columns((c, -s, o), (-s, -c, o), (o, o, o - 1))
        pose = np.zeros((*psi.shape, 4, 4))
        pose[..., 3, 3] = 1.0
        pose[..., :3, :3] = one.frame @ between @ two.frame.swapaxes(-1, -2)
        pose[..., :3, 3] = one.point - (pose[..., :3, :3] @ two.point[..., None])[..., 0]
        return pose

    def locate(self, pose: ArrayLike, near: ArrayLike) -> tuple[Array, float]:
        """Where two bodies touch, or are nearest to each other: eta (5,) and the gap along the normal [m], negative where they overlap.

        Newton's method, from coordinates nearby: there normals oppose and the points are one above the other.

        Parameters
        ----------
        pose : (4, 4) of the second body in the first
        near : eta (5,) to start from; psi counts its turns from there

        Raises
        ------
        StateError
            No such points near there.

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

        def seen(u: Array) -> tuple[Array, Array]:
            """The second surface's point and frame from the first one's, along its axes."""
            one, two = self.first.geometry(u[:2]), self.second.geometry(u[2:])
            way = X[:3, :3] @ two.point + X[:3, 3] - one.point
            return one.frame.T @ way, one.frame.T @ X[:3, :3] @ two.frame

        # what is as far on either surface as a radian is on the more curved one
        length, unit = self._units(start)

        def off(u: Array) -> Array:
            way, axes = seen(u)
            return np.concatenate([way[:2] / length, axes[:2, 2]])

        u, h = start[:4].copy(), 1e-6
        for _ in range(50):
            slopes = np.stack([(off(u + h * e) - off(u - h * e)) / (2 * h) for e in np.diag(unit)], axis=-1)
            step = np.linalg.lstsq(slopes, -off(u), rcond=None)[0]
            u = u + unit * step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-12))
            if np.abs(step).max() < 1e-12:
                break
        way, axes = seen(u)
        if not np.abs(off(u)).max() < 1e-9 or not axes[2, 2] < 0.0:
            raise StateError(f"{self.first} and {self.second} have no points that face each other near eta = {start}")
        psi = np.arctan2(-axes[1, 0], axes[0, 0])
        turns = np.round((start[4] - psi) / (2 * np.pi))
        return np.array([*u, psi + 2 * np.pi * turns]), float(way[2])

    def rates(self, eta: ArrayLike, velocity: ArrayLike) -> Array:
        """d(eta)/dt (..., 5) for velocities (..., 5): Montana's equations of contact.

        M_1 du_1 = (K_1 + K)^-1 ((w_y, -w_x) + K v)        K = R K_2 R: the second surface's curvature along the axes of the first
        M_2 du_2 = R (M_1 du_1 - v)                        R = [cos psi, -sin psi; -sin psi, -cos psi]
        dpsi = T_1 M_1 du_1 + T_2 M_2 du_2 - w_z

        Raises
        ------
        StateError
            Where surfaces touch along a line, K_1 + K being singular, or a surface has no frame; among many states, their rows are NaN.

        References
        ----------
        Montana 1988; Murray, Li and Sastry 1994, ch. 5; Li and Wu 2011, 4.6. There the velocity is the first body's relative to the second.
        """
        eta, velocity = real_rows("eta", eta, 5), real_rows("velocity", velocity, 5, np.shape(eta)[:-1])
        one, two, psi = self._geometries(eta)
        w, v = velocity[..., :3], velocity[..., 3:]
        R, K = self._relative_curvature(one, two, psi)
        turn = _vector(w[..., 1], -w[..., 0])
        along = _solved(K, turn + _times(K - one.curvature, v), self)
        along_second = _times(R, along - v)
        dpsi = _times(one.torsion, along) + _times(two.torsion, along_second) - w[..., 2:]
        dots = [_times(_inverse(one.metric), along), _times(_inverse(two.metric), along_second), dpsi]
        return np.concatenate(dots, axis=-1)

    def along(
        self, eta: ArrayLike, rate: ArrayLike, *, spin: ArrayLike = 0.0, sliding: ArrayLike = (0.0, 0.0)
    ) -> Array:
        """Velocity (..., 5) for which the contact goes on over the first surface at du_1/dt (..., 2): the plan of a path on it.

        Parameters
        ----------
        rate : of the first surface's coordinates
        spin : w_z (...) [rad/s]
        sliding : v (..., 2) [m/s]
        """
        eta = real_rows("eta", eta, 5)
        lead = eta.shape[:-1]
        rate, v = real_rows("rate", rate, 2, lead), real_rows("sliding", sliding, 2, lead)
        one, two, psi = self._geometries(eta)
        _, K = self._relative_curvature(one, two, psi)
        along = _times(one.metric, rate)
        turn = _times(K, along) - _times(K - one.curvature, v)
        w_z = real_array("spin", spin)
        shape = common_axes({"eta, rate and sliding": turn.shape[:-1], "spin": w_z.shape})
        parts = (-turn[..., 1], turn[..., 0], w_z, v[..., 0], v[..., 1])
        return np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1)

    def motion(
        self, start: ArrayLike, plan: Callable[[float, Array], ArrayLike], times: ArrayLike, *, tolerance: float = 1e-9
    ) -> Array:
        """Coordinates (n, 5) at times (n,), from start (5,), for velocities plan(t, eta) (5,).

        Runge-Kutta's method, extrapolated from steps and half steps; each interval is halved until these differ by the tolerance.

        Raises
        ------
        IntegrationError
            1024 steps between two times do not suffice, as where the plan jumps. Its ``trajectory`` holds the coordinates before.
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
                error = (fine - coarse) / 15.0  # of the fourth order: of half the step it is a sixteenth
                if np.abs(error).max() <= tolerance:
                    break
                coarse = fine
            else:
                raise IntegrationError(
                    f"from t = {begin:g} to {end:g} s, eta = {path[-1]} onwards, 1024 steps do not meet the tolerance of {tolerance:g}; where the "
                    "plan jumps, make that one of the times",
                    np.array(path),
                )
            path.append(fine + error)
        return np.array(path)

    def _units(self, eta: Array) -> tuple[float, Array]:
        """A radius of curvature at eta (5,), or a metre where there is none, and how much of the coordinates of both surfaces (4,) goes as far."""
        surfaces = self._geometries(eta)[:2]
        largest = float(max(np.abs(s.curvature).max() for s in surfaces))
        length = 1.0 / largest if largest > 0.0 else 1.0
        return length, length / np.concatenate([np.linalg.norm(s.metric, axis=0) for s in surfaces])

    def _geometries(self, eta: Array) -> tuple[SurfaceGeometry, SurfaceGeometry, Array]:
        return self.first.geometry(eta[..., :2]), self.second.geometry(eta[..., 2:4]), eta[..., 4]

    @staticmethod
    def _relative_curvature(one: SurfaceGeometry, two: SurfaceGeometry, psi: Array) -> tuple[Array, Array]:
        """R, and K_1 + R K_2 R (..., 2, 2)."""
        R = _columns((np.cos(psi), -np.sin(psi)), (-np.sin(psi), -np.cos(psi)))
        return R, one.curvature + R @ two.curvature @ R


def _runge_kutta(slope: Callable[[float, Array], Array], x: Array, begin: float, end: float, steps: int) -> Array:
    """The classical method of fourth order."""
    dt = (end - begin) / steps
    for k in range(steps):
        t = begin + k * dt
        k1 = slope(t, x)
        k2 = slope(t + dt / 2, x + dt / 2 * k1)
        k3 = slope(t + dt / 2, x + dt / 2 * k2)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + slope(t + dt, x + dt * k3))
    return x


def _vector(*entries: Array) -> Array:
    """(..., n) of its entries (...)."""
    stacked = np.array(entries)
    return stacked.transpose(*range(1, stacked.ndim), 0)


def _columns(*columns: tuple[Array, ...]) -> Array:
    """Matrices (..., rows, columns) of their entries (...)."""
    stacked = np.array(columns)
    return stacked.transpose(*range(2, stacked.ndim), 1, 0)


def _times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


def _inverse(A: Array) -> Array:
    """Of matrices (..., 2, 2)."""
    a, b, c, d = (A[..., i, j] for i in range(2) for j in range(2))
    return _columns((d, -c), (-b, a)) / (a * d - b * c)[..., None, None]


def _solved(A: Array, b: Array, contact: RollingContact) -> Array:
    """A^-1 b for the relative curvatures (..., 2, 2)."""
    determinant = A[..., 0, 0] * A[..., 1, 1] - A[..., 0, 1] * A[..., 1, 0]
    bad = ~(np.abs(determinant) > SINGULAR * np.abs(A).max(axis=(-2, -1)) ** 2)
    if bad.any() and A.ndim == 2:
        raise StateError(
            f"{contact.first} and {contact.second} touch along a line or a face here: their relative curvature {A.tolist()} is singular, and no "
            "motion says where the contact goes"
        )
    return _times(_inverse(np.where(bad[..., None, None], np.nan, A)), b)


def _check_length(surface: Surface, name: str, value: float, *, may_be_zero: bool = False) -> None:
    value = checked_number(name, value, "")
    if value == 0.0 and not may_be_zero:
        raise ModelError(f"{name} of {surface} must not be zero")
    if value and not 1.0 / LARGEST <= abs(value) <= LARGEST:
        raise ModelError(
            f"{name} of {surface} must be between {1.0 / LARGEST:g} and {LARGEST:g} m, for its curvature to be a number"
        )


def _returned(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    values = real_array(f"what {name} returns", value)
    if values.shape != shape:
        raise ShapeError(f"{name} returned an array {values.shape} for u; it must be {shape}")
    return values
