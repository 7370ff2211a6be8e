"""The state of a Builder: the parts of a description, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core
from .._arrays import ArrayLike
from ..description.constraints import ConstraintSpec
from ..description.contacts import ContactSpec, ShapeSpec
from ..description.part import Part
from ..description.specs import BodySpec, Description, FrameSpec, JointSpec, SpringSpec, VisualSpec

if TYPE_CHECKING:
    from typing import Self


# fields of a description, sorted such that parts refer only to parts of earlier fields
NAMED = ("bodies", "joints", "frames", "springs", "shapes", "contacts")
IN_ORDER = ("bodies", "joints", "frames", "springs", "constraints", "visuals", "shapes", "contacts")


_FIELDS: dict[type[Part], str] = {
    BodySpec: "_bodies", JointSpec: "_joints", FrameSpec: "_frames", SpringSpec: "_springs", ShapeSpec: "_shapes",
}  # fmt: skip
P = TypeVar("P", bound=Part)


class Parts:
    """State of a :class:`~sarrus.Builder`.

    It consists of the core's builder, which checks every element (body, joint, ...), and of the elements as Python objects.
    """

    def __init__(self, name: str = "mechanism", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"a Builder requires the name of the mechanism, such as Builder('robot'); got {name!r}. To change "
                "a mechanism, use robot.to_builder()"
            )
        self._core = _core.Builder(name, gravity)
        self.name = name
        self.gravity: tuple[float, float, float] = self._core.gravity
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
        """Return a builder with all parts of a description, checked as if they were added one after another."""
        d, made = description, cls(description.name, description.gravity)
        for part in (part for kind in IN_ORDER for part in getattr(d, kind)):
            made._keep(made._core.add(part))
        made._home = made._core.set_home(dict(d.home))
        for name, coordinates in d.configurations:
            made._configurations[name] = made._core.set_configuration(name, dict(coordinates))
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

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self._described(),)

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _add(self, kind: Callable[..., P], *fields: Any) -> None:
        """Add a part with these fields, which the core checks."""
        self._keep(self._core.add(kind(*fields)))

    def _keep(self, part: Part) -> None:
        if isinstance(part, VisualSpec):
            self._visuals.append(part)
        elif isinstance(part, ContactSpec):
            key = tuple(sorted((part.first, part.second)))
            self._contacts.pop(key, None)
            self._contacts[key] = part
        else:
            parts: dict[str, Part] = getattr(self, _FIELDS.get(type(part), "_constraints"))
            parts[part.name] = part  # type: ignore[attr-defined]
