"""Disc cams with a translating follower, from the lift of the follower: profile, pressure angle, curvature, contact force and jump speed.

The cam turns counterclockwise by the angle theta, and the follower moves along y with the lift s(theta). All results are for a frictionless contact:

>>> import numpy as np
>>> from sarrus import laws
>>> from sarrus.cams import cam_profile
>>> lift = laws.harmonic(-0.01, rate=1.0, phase=np.pi / 2, offset=0.01)   # 10 mm (1 - cos(theta))
>>> cam = cam_profile(lift, base_radius=0.03, follower="flat")            # an eccentric circle of radius 40 mm
>>> float(cam.curvature_radius.min().round(12)), round(cam.jump_speed(mass=0.5, stiffness=1000.0, preload=20.0), 3)
(0.04, 89.443)

In a mechanism, the same lift is a coupler of shaft and follower (:meth:`sarrus.Builder.add_coupler`).

References
----------
Norton, Cam design and manufacturing handbook, 2nd ed., 2009, ch. 7 (pressure angle, curvature, profile) and 9 (follower jump).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import Array, ArrayLike, checked_count, checked_number
from .errors import ModelError, check_choice, warn_of_model
from .laws import Law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CamProfile", "cam_profile"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, eq=False)
class CamProfile:
    """Disc cam with a translating follower, as :func:`cam_profile` returns it.

    Attributes
    ----------
    angle : (n,) angles of the cam in a turn, first and last are the same position [rad]
    lift : (n,) lift of the follower [m]
    points : (n, 2) points of the profile at which the follower touches it, in the cam's frame [m]
    centers : (n, 2) centres of the roller in the cam's frame [m]; equal to `points` for a flat follower
    pressure_angle : (n,) angle between the contact force and the direction of the follower [rad]; positive if the force also pushes along -x
    curvature_radius : (n,) radius of curvature of the profile [m]; negative where it is concave, infinite where it is straight
    law : function of the angle [rad] that returns the lift [m]
    """

    angle: Array
    lift: Array
    points: Array
    centers: Array
    pressure_angle: Array
    curvature_radius: Array
    law: Law

    def contact_force(self, speed: float, *, mass: float, stiffness: float = 0.0, preload: float = 0.0) -> Array:
        """Return the normal force (n,) of the cam on the follower [N]; where it is negative, the contact is lost.

        Parameters
        ----------
        speed : angular velocity of the cam [rad/s]
        mass : mass of the follower and of all that moves with it [kg]
        stiffness : stiffness of the return spring [N/m]
        preload : force of the spring, and of the weight along -y, at zero lift [N]
        """
        _, _, bend = self.law.derivatives(self.angle)
        speed = checked_number("speed", speed, "")
        m, k, f = _follower(mass, stiffness, preload)
        return np.asarray((m * bend * speed**2 + k * self.lift + f) / np.cos(self.pressure_angle))

    def jump_speed(self, *, mass: float, stiffness: float = 0.0, preload: float = 0.0) -> float:
        """Return the angular velocity of the cam above which the follower loses contact [rad/s]; infinite if it never does.

        At this speed, the least force along the follower's direction, m s'' w^2 + k s + preload, is zero.

        Parameters
        ----------
        mass, stiffness, preload : as for :meth:`contact_force` [kg; N/m; N]
        """
        m, k, f = _follower(mass, stiffness, preload)

        def square(angle: Array) -> Array:
            s, _, bend = self.law.derivatives(angle)
            falls = bend < 0.0
            return np.where(falls, np.maximum(k * s + f, 0.0) / np.where(falls, -m * bend, 1.0), np.inf)

        # the second derivative may jump between pieces, which are therefore searched separately, with their ends
        ends = np.unique([self.angle[0], self.angle[-1], *self.law.starts])
        ends = ends[(ends >= self.angle[0]) & (ends <= self.angle[-1])]
        low, high = (np.nextafter(x, y) for x, y in ((ends[:-1], np.inf), (ends[1:], -np.inf)))
        count = max(17, 2 * len(self.angle) // len(low))
        grid = low + (high - low) * np.linspace(0.0, 1.0, count)[:, None]
        values = square(grid)
        best = np.clip(values.argmin(axis=0), 1, count - 2)
        left, right = (np.take_along_axis(grid, best[None] + step, axis=0)[0] for step in (-1, 1))
        golden = (np.sqrt(5.0) - 1.0) / 2.0
        for _ in range(60):
            a, b = right - golden * (right - left), left + golden * (right - left)
            inner = square(a) < square(b)
            left, right = np.where(inner, left, a), np.where(inner, b, right)
        return float(np.sqrt(min(values.min(), square(0.5 * (left + right)).min())))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the profile and the path of the roller's centre in the cam's frame, in metres. Needs matplotlib.

        Parameters
        ----------
        ax : axes of Matplotlib; default: new ones
        """
        from .figures import canvas

        axes = canvas.axes_of(ax)
        axes.plot(*self.points.T, label="profile")
        if not np.array_equal(self.points, self.centers):
            axes.plot(*self.centers.T, "--", label="centre of the roller")
        axes.plot(0.0, 0.0, "k+")
        axes.set_aspect("equal")
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")
        axes.legend()
        return axes


def cam_profile(
    lift: Law, *, base_radius: float, follower: str = "roller", roller_radius: float = 0.0, offset: float = 0.0, count: int = 721,
) -> CamProfile:  # fmt: skip
    """Return the disc cam that gives a translating follower its lift.

    Issues a :class:`~sarrus.ModelWarning` if the profile is undercut: no cam then moves the follower by the whole lift.

    Parameters
    ----------
    lift : lift [m] as a function of the cam's angle [rad], from :mod:`sarrus.laws`, for a turn from 0 to 2 pi
    base_radius : smallest distance of the profile from the axis of the cam, at zero lift [m]
    follower : "roller", or "flat" for a face perpendicular to the direction of the follower
    roller_radius : radius of the roller [m]; zero: a knife edge
    offset : x of the line along which the roller's centre moves [m]; without effect on a flat follower
    count : number of angles

    Raises
    ------
    ModelError
        The lift does not return to its initial value, it is not a function, a radius is not positive, or the offset exceeds the radii.

    Examples
    --------
    >>> import numpy as np
    >>> from sarrus import laws
    >>> from sarrus.cams import cam_profile
    >>> lift = laws.harmonic(-0.01, rate=1.0, phase=np.pi / 2, offset=0.01)
    >>> cam = cam_profile(lift, base_radius=0.03, roller_radius=0.01)
    >>> float(np.degrees(np.abs(cam.pressure_angle).max()).round(2))
    11.54
    """
    if not isinstance(lift, Law):
        raise ModelError(
            f"lift must be a function of the angle, such as sarrus.laws.harmonic(0.01, rate=1.0); got {lift!r}"
        )
    check_choice("follower", follower, ("roller", "flat"))
    base = checked_number("base_radius", base_radius)
    roller = checked_number("roller_radius", roller_radius, "") if follower == "roller" else 0.0
    e, count = checked_number("offset", offset, ""), checked_count("count", count, 4, most=10**7)
    if roller < 0.0 or (follower == "roller" and abs(e) >= base + roller):
        raise ModelError(
            f"roller_radius must not be negative, and the offset less than both radii; got {roller:g} m and {e:g} m"
        )
    angle = np.linspace(0.0, 2.0 * np.pi, count)
    s, slope, bend = lift.derivatives(angle)
    if abs(s[-1] - s[0]) > 1e-9 * max(float(np.ptp(s)), 1e-9 * base):
        raise ModelError(f"the lift must be equal at angles 0 and 2 pi; got {s[0]:g} m and {s[-1]:g} m")

    def in_cam(x: Array, y: Array) -> Array:
        c, d = np.cos(angle), np.sin(angle)
        return np.stack([c * x + d * y, c * y - d * x], axis=-1)

    if follower == "flat":
        radius, pressure = base + s + bend, np.zeros(count)
        points = centers = in_cam(slope, base + s)
        cure = "a larger base_radius"
    else:
        y = np.sqrt((base + roller) ** 2 - e**2) + s
        if (y <= 0.0).any():
            raise ModelError(
                f"the lift must not take the roller's centre to the cam's axis; its least height is {y.min():g} m"
            )
        across = slope - e  # the roller's centre moves along (y, s' - e) in the cam
        speed = np.hypot(y, across)
        pressure = np.arctan2(across, y)
        centers = in_cam(np.full(count, e), y)
        points = centers - roller * in_cam(-across / speed, y / speed)
        with np.errstate(divide="ignore"):
            radius = speed**3 / (y * (y - bend) + across * (slope + across)) - roller
        cure = "a larger base_radius or a smaller roller_radius"
    undercut = radius <= 0.0 if follower == "flat" else (radius <= 0.0) & (radius > -roller)
    if undercut.any():
        k = int(np.argmax(undercut))
        warn_of_model(
            f"the cam is undercut at {np.degrees(angle[k]):.4g} degrees, where its radius of curvature is {radius[k]:.3g} m: use {cure}"
        )
    return CamProfile(angle, s, points, centers, pressure, radius, lift)


def _follower(mass: ArrayLike, stiffness: ArrayLike, preload: ArrayLike) -> tuple[float, float, float]:
    return (
        checked_number("mass", mass),
        checked_number("stiffness", stiffness, ""),
        checked_number("preload", preload, ""),
    )
