"""Clutches, brakes and welds: constraints that engage and release during a simulation, at given times or at events."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._arrays import checked_number, checked_text, real_array
from .._deferred import dataclass
from ..errors import ShapeError
from .element import Element

__all__ = ["Clutch", "Lock", "Weld"]

When = float | Sequence[float] | Callable[..., float] | None  # times [s], or an event
Coordinate = str | tuple[str, int]  # name of a joint, or (name, index of its coordinate)


@dataclass(frozen=True, eq=False)
class Switch(Element):
    """Base class of constraints that engage and release during a simulation by :func:`sarrus.simulate`."""

    on: When = field(default=None, kw_only=True)
    off: When = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)

    native = False

    def __post_init__(self) -> None:
        checked_text(f"name of a {type(self).__name__}", self.name)
        changes = sorted((time, key) for key in ("on", "off") for time in self._times(key))
        timed = self._event("on") is None and self._event("off") is None
        begins = (-np.inf, "on" if self.on is None else "off")
        for (before, first), (time, then) in itertools.pairwise([begins, *changes]):
            if time == before or (timed and first == then):
                raise ValueError(
                    f"{type(self).__name__}: times of on and off do not alternate; got on={self.on!r}, off={self.off!r}"
                )

    @property
    def _label(self) -> str:
        """Default name."""
        keys = [x.name for x in fields(self) if not x.kw_only and x.name not in ("capacity", "ratio")]
        named = [str(getattr(self, key)) for key in keys]
        return f"{type(self).__name__}({', '.join(named)})"

    def _event(self, key: str) -> Any:
        """Return the event of "on" or "off": an Event or a function; None if there are times."""
        when: Any = getattr(self, key)
        return when if callable(getattr(when, "function", when)) else None

    def _times(self, key: str) -> list[float]:
        """Return the times of "on" or "off" [s]."""
        when: Any = getattr(self, key)
        if when is None or self._event(key) is not None:
            return []
        times = np.array([checked_number(key, when, "")]) if isinstance(when, Real) else real_array(key, when)
        if times.ndim != 1 or not np.isfinite(times).all():
            raise ShapeError(f"{key} must be a time, finite times (n,) [s], or an event; got {when!r}")
        return [float(time) for time in times]


@dataclass(frozen=True, eq=False)
class Lock(Switch):
    """Lock of a joint at its present coordinates; with a capacity, a brake.

    Without a capacity, the joint stops at once, by an impulse. A brake with a capacity C opposes the motion with the force C. If the motion stops, it
    holds the joint, and slips again if that requires more than C.

    Attributes
    ----------
    joint : name of the joint
    capacity : largest effort of the brake [N m, N]; it requires a tree joint with one coordinate. Infinite for a lock
    on, off : times at which it engages and releases [s]: numbers or (n,); or events, :class:`sarrus.Event` or functions (t, q, v), at whose zeros it
        does so. Without `on`, it is engaged at the start
    name : key of its data in ``statistics["switches"]`` of the trajectory; default: "Lock(joint)"

    Examples
    --------
    A brake of 2 N m stops a wheel of 0.1 kg m2 and 10 rad/s in half a second:

    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder("wheel")
    >>> b.add_body("disc", sarrus.Inertia(1.0, (0, 0, 0), 0.1 * np.eye(3)))
    >>> b.add_joint("axle", sarrus.Revolute("z"), "ground", "disc")
    >>> run = sarrus.simulate(b.build(), [0.0], [10.0], 1.0, sarrus.control.Lock("axle", capacity=2.0, on=0.1))
    >>> [(x["change"], round(x["time"], 12)) for x in run.statistics["switches"]]
    [('slips', 0.1), ('locks', 0.6)]
    """

    joint: str
    capacity: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_text("joint of a Lock", self.joint)
        checked_number("capacity of a Lock", self.capacity, finite=False)


@dataclass(frozen=True, eq=False)
class Clutch(Switch):
    """Clutch between two shafts or slides, which ends their relative motion: v1 = ratio v2.

    Without a capacity, it engages by an impulse. With a capacity C, it slips with the torque C along the first coordinate, and -ratio C along the
    second one, until the relative motion ends. It slips again if locking requires more than C.

    Attributes
    ----------
    first, second : names of the tree joints, or (name, index) of a coordinate, as in :meth:`sarrus.Builder.add_coupler`
    ratio : speed of the first coordinate divided by that of the second one, when it is engaged [units of the first per those of the second]
    capacity : largest effort along the first coordinate [N m, N]; infinite for a dog clutch
    on, off, name : as for :class:`Lock`
    """

    first: Coordinate
    second: Coordinate
    ratio: float = 1.0
    capacity: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if not checked_number("ratio of a Clutch", self.ratio, ""):
            raise ValueError(
                "ratio of a Clutch: zero; expected a ratio of speeds, or sarrus.control.Lock for one joint"
            )
        for key in ("first", "second"):
            named, *index = several if isinstance(several := getattr(self, key), tuple) and several else (several,)
            if not isinstance(named, str) or len(index) > 1 or not all(isinstance(k, Integral) for k in index):
                raise TypeError(f"{key} of a Clutch must be the name of a joint, or (name, index); got {several!r}")
        if self.first == self.second:
            raise ValueError(f"second of a Clutch: same as first; expected another joint, got {self.second!r}")
        checked_number("capacity of a Clutch", self.capacity, finite=False)


@dataclass(frozen=True, eq=False)
class Weld(Switch):
    """Weld of two bodies in their present relative pose: a gripper, docking, a latch, or a separation if it releases.

    It engages by an impulse, which conserves momentum. Releasing changes no velocity.

    Attributes
    ----------
    parent, child : names of the bodies; "ground" for the world
    capacity : magnitudes of the moment [N m] and the force [N] on the child, at the origin of its frame, that break the weld; infinite by default
    on, off, name : as for :class:`Lock`
    """

    parent: str
    child: str
    capacity: tuple[float, float] = (np.inf, np.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("parent", "child"):
            checked_text(f"{key} of a Weld", getattr(self, key))
        if np.shape(self.capacity) != (2,):
            raise ShapeError(f"capacity of a Weld must be (moment, force) [N m, N]; got {self.capacity!r}")
        for limit in self.capacity:
            checked_number("capacity of a Weld", limit, finite=False)
