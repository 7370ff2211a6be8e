"""Writing a mechanism down by hand: bodies, and joints between any two of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .description import BodySpec, Description, FrameSpec, JointSpec
from .errors import ModelError, raise_no_such_name
from .joints import JointType
from .mechanism import Mechanism
from .spatial import Inertia, Transform

Placement = Transform | ArrayLike | None


def _placement(value: Placement, what: str) -> Transform:
    if value is None:
        return Transform()
    if isinstance(value, Transform):
        return value
    try:
        return Transform(translation=np.array(value, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{what} must be a Transform or a translation of three numbers; got {value!r} ({error})"
        ) from None


class Builder:
    """Collects bodies and joints and makes a :class:`~sarrus.Mechanism` of them.

    Parameters
    ----------
    name : str
    gravity : (3,) acceleration of free fall in the world's axes [m/s2]

    Notes
    -----
    The world is the body "ground". Any two bodies may be joined; a joint between bodies that other joints already connect closes a loop,
    and which ones do is the library's business (a spanning tree of least depth, actuated joints in it where possible). Every moving body
    needs some way of joints to the ground: a robot that floats has a :class:`~sarrus.Free` joint there.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("pendulum")
    >>> b.add_body("bob", sarrus.Inertia(2.0, com=(0, 0, -0.5), about_com=np.zeros((3, 3))))
    >>> b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
    >>> b.build().gravity_forces([np.pi / 2]).round(3)
    array([9.81])
    """

    def __init__(self, name: str = "mechanism", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        try:
            vector = np.array(gravity, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"gravity needs three finite numbers [m/s2]; got {gravity!r}") from None
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise ModelError(f"gravity needs three finite numbers [m/s2]; got {gravity!r}")
        self.name = str(name)
        self.gravity: tuple[float, float, float] = (float(vector[0]), float(vector[1]), float(vector[2]))
        self.warnings: list[str] = []
        self._bodies: dict[str, BodySpec] = {}
        self._joints: dict[str, JointSpec] = {}
        self._frames: dict[str, FrameSpec] = {}

    def _new_name(self, kind: str, name: object, taken: dict[str, object]) -> str:
        if not isinstance(name, str) or not name:
            raise ModelError(f"a {kind} needs a name; got {name!r}")
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise ModelError(f"a {kind} needs a name that is text; {name!r} holds half a character")
        if name in taken:
            raise ModelError(f"two {'bodies' if kind == 'body' else kind + 's'} are named '{name}'")
        return name

    def _known_body(self, name: str) -> str:
        if name != "ground" and name not in self._bodies:
            raise_no_such_name("body", name, [*self._bodies, "ground"])
        return name

    def add_body(self, name: str, inertia: Inertia | None = None) -> None:
        """Add a rigid body; without an inertia it has no mass.

        Raises ModelError for a name that is taken or "ground".
        """
        name = self._new_name("body", name, {**self._bodies, **self._frames})
        if name == "ground":
            raise ModelError("a body cannot be named 'ground': that is the world")
        if inertia is None:
            inertia = Inertia.zero()
        if not isinstance(inertia, Inertia):
            raise ModelError(f"body '{name}' needs a sarrus.Inertia; got {inertia!r}")
        self._bodies[name] = BodySpec(name, inertia)

    def add_joint(
        self,
        name: str,
        joint: JointType,
        parent: str,
        child: str,
        *,
        at_parent: Placement = None,
        at_child: Placement = None,
        actuated: bool = False,
    ) -> None:
        """Join two bodies.

        Parameters
        ----------
        name : str, unique among joints
        joint : one of the joint types, e.g. ``sarrus.Revolute("z")``; its axes are in the joint's frame
        parent, child : names of bodies, added before or after; "ground" is the world
        at_parent, at_child : Transform or (3,) translation [m]: where the joint's frame sits in either body; default: at its frame
        actuated : bool, whether a motor drives it

        Raises ModelError for a name that is taken, something that is not a joint, or a body joined to itself.
        """
        name = self._new_name("joint", name, dict(self._joints))
        if not isinstance(joint, JointType):
            raise ModelError(f"joint '{name}' needs a joint type such as sarrus.Revolute('z'); got {joint!r}")
        if parent == child:
            raise ModelError(f"joint '{name}' joins body '{parent}' to itself")
        places = [
            _placement(at, f"joint '{name}': {end}") for at, end in ((at_parent, "at_parent"), (at_child, "at_child"))
        ]
        self._joints[name] = JointSpec(name, joint, str(parent), str(child), places[0], places[1], bool(actuated))

    def add_frame(self, name: str, body: str, placement: Placement = None) -> None:
        """Name a frame on a body: a tool, a sensor, a point to push at. Every body's own frame has its name already.

        Raises ModelError for a name that is taken and NameNotFoundError for a body that is not there.
        """
        name = self._new_name("frame", name, {**self._bodies, **self._frames, "ground": None})
        self._frames[name] = FrameSpec(name, self._known_body(body), _placement(placement, f"frame '{name}'"))

    def build(self) -> Mechanism:
        """The mechanism as described so far.

        Raises ModelError where a joint names a body that is not there or a body is not connected to the ground.
        """
        if not self._bodies:
            raise ModelError("a mechanism needs at least one body")
        for joint in self._joints.values():
            for end in (joint.parent, joint.child):
                if end != "ground" and end not in self._bodies:
                    raise ModelError(f"joint '{joint.name}' refers to body '{end}', which does not exist")
        for body in self._bodies.values():
            if not math.isfinite(body.inertia.mass):
                raise ModelError(f"body '{body.name}' has a mass that is not finite")
        return Mechanism(
            Description(
                self.name,
                self.gravity,
                tuple(self._bodies.values()),
                tuple(self._joints.values()),
                tuple(self._frames.values()),
                tuple(self.warnings),
            )
        )
