"""What a Builder holds: the parts of a description by name, and how names and coordinates are looked up among them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING

from .._arrays import ArrayLike
from ..description.constraints import ConstraintSpec
from ..description.contacts import ContactSpec, ShapeSpec
from ..description.specs import BodySpec, Description, FrameSpec, JointSpec, SpringSpec, VisualSpec
from ..errors import ModelError, check_name, check_printable
from .values import Joined, Point, check_mapping, checked_point, joint_coordinates

if TYPE_CHECKING:
    from typing import Self


# what a description holds, each after all that it refers to
NAMED = ("bodies", "joints", "frames", "springs", "shapes", "contacts")
IN_ORDER = ("bodies", "joints", "frames", "springs", "constraints", "visuals", "shapes", "contacts")


class Parts:
    """The state of a :class:`~sarrus.Builder`."""

    def __init__(self, name: str = "mechanism", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"a Builder starts with no bodies and takes the mechanism's name, Builder('robot'); got {name!r}. To change "
                "a mechanism, robot.to_builder() has all of it"
            )
        check_printable("mechanism", name)
        self.name = name
        self.gravity = checked_point(gravity, "gravity", "[m/s2]")
        self.warnings: list[str] = []
        self._bodies: dict[str, BodySpec] = {}
        self._joints: dict[str, JointSpec] = {}
        self._frames: dict[str, FrameSpec] = {}
        self._constraints: dict[str, ConstraintSpec] = {}
        self._springs: dict[str, SpringSpec] = {}
        self._home: dict[str, tuple[float, ...]] = {}
        self._configurations: dict[str, dict[str, tuple[float, ...]]] = {}
        self._visuals: list[VisualSpec] = []
        self._shapes: dict[str, ShapeSpec] = {}
        self._contacts: dict[tuple[str, ...], ContactSpec] = {}

    # ---- descriptions ------------------------------------------------------------------------------------------------

    @classmethod
    def _of(cls, description: Description) -> Self:
        """A builder that has written all of this, so that everything is checked as if it had been written by hand."""
        d, made = description, cls(description.name, description.gravity)
        for part in (part for kind in IN_ORDER for part in getattr(d, kind)):
            method, arguments = part._written()
            if not hasattr(made, method):
                raise ModelError(f"no Builder can write {part}")
            getattr(made, method)(**arguments)
        made._home = made._joint_coordinates(dict(d.home), "home")
        for name, coordinates in d.configurations:
            made._configurations[name] = made._joint_coordinates(dict(coordinates), f"configuration '{name}'")
        made.warnings += d.warnings
        return made

    def _described(self, constraints: tuple[ConstraintSpec, ...] | None = None) -> Description:
        return Description(
            name=self.name,
            gravity=self.gravity,
            constraints=tuple(self._constraints.values()) if constraints is None else constraints,
            home=tuple(self._home.items()),
            warnings=tuple(self.warnings),
            visuals=tuple(self._visuals),
            configurations=tuple((name, tuple(q.items())) for name, q in self._configurations.items()),
            **{kind: tuple(getattr(self, f"_{kind}").values()) for kind in NAMED},
        )

    # ---- names -------------------------------------------------------------------------------------------------------

    def _new(self, kind: str, name: object) -> tuple[str, str]:
        """A new name, and what errors call its owner. Joints and constraints share one space, bodies and frames another."""
        if not isinstance(name, str) or not name:
            raise ModelError(f"a {kind} needs a name; got {name!r}")
        check_printable(kind, name)
        if kind == "body" and name == "ground":
            raise ModelError("a body cannot be named 'ground': that is the world")
        frames, ties = (self._bodies, self._frames, ("ground",)), (self._joints, self._constraints)
        names_of = {"body": frames, "frame": frames, "spring": (self._springs,), "shape": (self._shapes,)}
        taken = names_of.get(kind, () if kind == "configuration" else ties)
        if any(name in names for names in taken):
            if taken is ties and (name in self._joints) != (kind == "joint"):
                raise ModelError(f"a joint and a constraint are both named '{name}'")
            raise ModelError(f"two {'bodies' if kind == 'body' else kind + 's'} are named '{name}'")
        return name, f"{kind} '{name}'"

    def _on_bodies(self, placed: Joined, what: str) -> Joined:
        """A joint that joins bodies, where it was told to join frames on them."""
        joint, *ends = placed
        frames = [self._frames.get(end) for end in placed[1:3]]
        bodies = [end if frame is None else frame.body for end, frame in zip(placed[1:3], frames, strict=True)]
        if bodies[0] == bodies[1]:
            raise ModelError(f"{what} joins body '{bodies[0]}' to itself")
        at = [at if frame is None else frame.placement @ at for at, frame in zip(placed[3:], frames, strict=True)]
        return joint, bodies[0], bodies[1], at[0], at[1]

    def _known_body(self, name: object, what: str | None = None) -> str:
        check_name("body", name, {**self._bodies, "ground": None}, what)
        return str(name)

    def _tree_joint(self, name: object, what: str) -> JointSpec:
        check_name("joint", name, self._joints, what)
        spec = self._joints[str(name)]
        if spec.loop:
            raise ModelError(f"{what} refers to joint '{name}', which closes a loop and so has no coordinates")
        return spec

    def _coordinate(self, key: object, what: str) -> tuple[str, int]:
        """Joint and index of a coordinate whose rate is a velocity."""
        name, index = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if not (index is None or isinstance(index, Integral)):
            raise ModelError(f"{what}: a coordinate is a joint's name, or (name, index); got {key!r}")
        spec, k = self._tree_joint(name, what), int(index or 0)
        joint, called = spec.joint, f"joint '{name}'"
        if index is None and joint.nq > 1:
            raise ModelError(f"{what}: {called} has {joint.nq} coordinates; say which: ('{name}', 0) is the first")
        called += f" ({joint.kind})"
        if not 0 <= k < joint.nq:
            raise ModelError(f"{what}: {called} has {joint.nq} coordinates; there is none of index {k}")
        if not joint.rates[k]:
            raise ModelError(
                f"{what}: the rate of coordinate {k} of {called} is no velocity, so that nothing can be coupled to it; "
                "a chain of one-axis joints will do"
            )
        return spec.name, k

    def _two_points(self, first: object, second: object, what: str) -> tuple[tuple[str, Point], tuple[str, Point]]:
        """Of different bodies."""
        ends = []
        for which, end in (("first", first), ("second", second)):
            if not isinstance(end, tuple | list) or len(end) != 2:
                raise ModelError(f"{what}: {which} end must be a pair (body, point); got {end!r}")
            ends.append((self._known_body(end[0], f"{what}: {which}"), checked_point(end[1], f"{what}: {which} point")))
        one, other = ends
        if one[0] == other[0]:
            raise ModelError(f"{what} ties body '{one[0]}' to itself")
        return one, other

    def _joint_coordinates(self, by_joint: Mapping[str, ArrayLike], of: str) -> dict[str, tuple[float, ...]]:
        check_mapping(by_joint, of, "joints to coordinates", least=0)
        checked = {}
        for name, coordinates in by_joint.items():
            checked[name] = joint_coordinates(self._tree_joint(name, of).joint, coordinates, f"{of}: joint {name!r}")
        return checked
