"""The parts of a Builder, and changes of them, for example of a model from a file: other masses, removal of a hand, a second arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core
from .._arrays import ArrayLike
from ..description.constraints import ConstraintSpec, Part, PfaffianSpec, renamed
from ..description.joints import Fixed, JointType
from ..description.specs import BodySpec, Description, FrameSpec, JointSpec, SpringSpec, VisualSpec
from ..errors import ModelError, check_name
from ..laws import Law, as_law, polynomial
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform

if TYPE_CHECKING:
    from typing import Self

    from ..description.contacts import ContactSpec, ShapeSpec


# ---- arguments; the core checks their values -------------------------------------------------------------------------

Placement = Transform | ArrayLike | None
Coordinate = str | tuple[str, int]
BodyPoint = tuple[str, ArrayLike]
Pair = ArrayLike | tuple[float | None, float | None] | None


def checked_dict(value: object, subject: str, content: str) -> dict[Any, Any]:
    """Return a mapping as a dict. Raise ModelError for anything else."""
    if not isinstance(value, Mapping):
        raise ModelError(f"{subject} needs a dict from {content}; got {value!r}")
    return dict(value)


def term(coordinate: object, coefficients: ArrayLike) -> tuple[Any, Any, ArrayLike]:
    """Return (joint, index, coefficients); the index of a joint's only coordinate is None."""
    if isinstance(coordinate, tuple) and len(coordinate) == 2:
        return (*coordinate, coefficients)
    return coordinate, None, coefficients


def product(key: object, value: Any, subject: str) -> tuple[tuple[Any, Any, Law], ...]:
    """Return the factors (joint, index, function) of a product of functions of coordinates."""
    coordinates = key if isinstance(key, tuple) and not _is_coordinate(key) else (key,)
    functions = list(value) if isinstance(value, (list, tuple)) else [value] if isinstance(value, Law) else []
    if isinstance(value, Real):
        number = as_law(value, f"{subject}: factor of {key!r}").coefficients[0][0]
        functions = [polynomial(0.0, x) for x in (number, *[1.0] * (len(coordinates) - 1))]
    if len(functions) != len(coordinates) or not all(isinstance(function, Law) for function in functions):
        raise ModelError(
            f"{subject}: the product {key!r} needs a number, or {len(coordinates)} functions such as sarrus.laws.harmonic(1.0, rate=2.0), one for "
            f"each coordinate; got {value!r}"
        )
    return tuple((*term(x, 0.0)[:2], function) for x, function in zip(coordinates, functions, strict=True))


def is_product(key: object, value: object) -> bool:
    """Return True for several coordinates, or for one with a function, in the dict of a coupler."""
    return isinstance(value, Law) or (isinstance(key, tuple) and bool(key) and not _is_coordinate(key))


def _is_coordinate(key: tuple[Any, ...]) -> bool:
    return not all(isinstance(part, (str, tuple)) for part in key)


# ---- parts, by name ----------------------------------------------------------------------------------------------

# fields of a description, in an order in which objects refer only to objects of earlier fields
NAMED = ("bodies", "joints", "frames", "springs", "shapes", "contacts")
IN_ORDER = ("bodies", "joints", "frames", "springs", "constraints", "visuals", "shapes", "contacts")


_FIELDS = {
    "BodySpec": "_bodies", "JointSpec": "_joints", "FrameSpec": "_frames", "SpringSpec": "_springs", "ShapeSpec": "_shapes",
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
        elif type(part).__name__ == "ContactSpec":
            key = tuple(sorted((part.first, part.second)))  # type: ignore[attr-defined]
            self._contacts.pop(key, None)
            self._contacts[key] = part  # type: ignore[assignment]
        else:
            parts: dict[str, Part] = getattr(self, _FIELDS.get(type(part).__name__, "_constraints"))
            parts[part.name] = part  # type: ignore[attr-defined]


# ---- changes ---------------------------------------------------------------------------------------------------------

PARTS = ("bodies", "joints", "frames", "constraints", "springs", "shapes", "visuals", "contacts", "home")


class Changes(Parts):
    """Changes and removals of a :class:`~sarrus.Builder`.

    Each change makes a new description and adds all its parts again, with the checks of the methods that add parts. A change that raises an error
    has no effect.
    """

    def set_inertia(self, body: str, inertia: Inertia) -> None:
        """Set the inertia of a body.

        Parameters
        ----------
        body : name of the body
        inertia : new inertia, in the body's frame [kg, m, kg m²]

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.four_bar().to_builder()
        >>> b.set_inertia("coupler", sarrus.Inertia.rod(3.0, (0, 0, 0), (1.0, 0, 0)))
        >>> b.build().mass > sarrus.mechanisms.four_bar().mass
        True
        """
        bodies = self._bodies | {self._name("body", body, self._bodies): BodySpec(body, inertia)}
        self._become(bodies=bodies.values())

    def set_joint(self, name: str, joint: JointType | None = None, **changes: Any) -> None:
        """Change the type of a joint, its placement in its bodies, or other arguments of :meth:`~sarrus.Builder.add_joint`.

        Parameters
        ----------
        name : name of the joint
        joint : new joint type; default: unchanged
        **changes : any of parent, child, at_parent, at_child, actuated, tree, loop; see :meth:`~sarrus.Builder.add_joint`

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.pendulum().to_builder()
        >>> b.set_joint("pivot", sarrus.Revolute("y", damping=0.1), actuated=True)
        >>> b.build().actuated
        ('pivot',)
        """
        spec = self._joints[self._name("joint", name, self._joints)]
        if unknown := changes.keys() - {"parent", "child", "at_parent", "at_child", "actuated", "tree", "loop"}:
            raise TypeError(
                f"set_joint changes parent, child, at_parent, at_child, actuated, tree, loop; got {sorted(unknown)}"
            )
        new = replace(spec, joint=spec.joint if joint is None else joint, **changes)
        self._become(joints=(self._joints | {name: new}).values())

    def lock(self, joint: str, at: ArrayLike | None = None) -> None:
        """Weld the two bodies of a joint to each other.

        The joint type becomes :class:`~sarrus.Fixed`; the name does not change. The joint's coordinates are removed from couplers, the home and named
        configurations.

        Parameters
        ----------
        joint : name of the joint
        at : (nq,) coordinates at which the joint is locked, or a number for a single coordinate [rad, m, quaternion (x, y, z, w)]; default: neutral

        Raises
        ------
        ModelError
            The motion of the joint is prescribed, another constraint depends on its coordinates, or a coupler is not satisfied there.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.double_pendulum().to_builder()
        >>> b.lock("elbow", at=0.3)
        >>> robot = b.build()
        >>> robot.nv, robot.joints
        (1, ('shoulder', 'elbow'))
        """
        spec = self._joints[self._name("joint", joint, self._joints)]
        subject = f"joint '{joint}'"
        if spec.laws:
            raise ModelError(
                f"{subject} cannot be locked: time functions prescribe its motion; remove the joint, and connect its bodies by a Fixed joint"
            )
        probed = JointSpec(joint, spec.joint, "ground", "child")
        probe = Mechanism(
            Description(joint, (0.0, 0.0, 0.0), (BodySpec("child", Inertia.sphere(1.0, 1.0)),), (probed,))
        )
        q = tuple(probe.neutral().tolist()) if at is None else _core.joint_coordinates(spec.joint, at, f"{subject}: at")
        turned = Transform.from_matrix(probe.pose(q, "child"))
        locked = replace(spec, joint=Fixed(), at_parent=spec.at_parent @ turned, actuated=False)
        left = [c.with_locked(joint, q) if joint in c.joints_related else c for c in self._constraints.values()]
        joints, constraints = (self._joints | {joint: locked}).values(), (c for c in left if c is not None)
        self._become(joints=joints, constraints=constraints, **self._coordinates_without({joint}))

    # ---- removals -----------------------------------------------------------------------------------------------------

    def remove_body(self, name: str) -> tuple[str, ...]:
        """Remove a body, with the joints, frames, shapes, visuals, springs and constraints that refer to it.

        Parameters
        ----------
        name : name of the body

        Returns
        -------
        Names of the joints, frames, constraints, springs and shapes that were removed with the body

        Notes
        -----
        Bodies that were connected to it are not removed. If no other joint connects them to the ground, :meth:`~sarrus.Builder.build` raises an
        error.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.double_pendulum().to_builder()
        >>> b.remove_body("lower")
        ('elbow', 'tip')
        """
        self._name("body", name, self._bodies)
        joints = {spec.name for spec in self._joints.values() if name in spec.bodies}
        frames = {spec.name for spec in self._frames.values() if spec.body == name}
        springs = {spec.name for spec in self._springs.values() if name in (spec.first[0], spec.second[0])}
        ties = {spec.name for spec in self._constraints.values() if name in spec.bodies}
        shapes = {spec.name for spec in self._shapes.values() if spec.body == name}
        return self._without(
            bodies={name}, joints=joints, frames=frames, springs=springs, constraints=ties, shapes=shapes
        )

    def remove_joint(self, name: str) -> tuple[str, ...]:
        """Remove a joint and the constraints that relate its coordinates; return the names of these constraints.

        Parameters
        ----------
        name : name of the joint

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.four_bar().to_builder()
        >>> b.remove_joint("pin2")
        ()
        >>> b.build().nc
        0
        """
        return self._without(joints={self._name("joint", name, self._joints)})[1:]

    def remove_constraint(self, name: str) -> None:
        """Remove a constraint that is not a joint: a distance, a coupler, a prescribed motion, a rolling contact or Pfaffian rows.

        Parameters
        ----------
        name : name of the constraint
        """
        self._without(constraints={self._name("constraint", name, self._constraints)})

    def remove_frame(self, name: str) -> None:
        """Remove a named frame.

        Parameters
        ----------
        name : name of the frame
        """
        self._without(frames={self._name("frame", name, self._frames)})

    def remove_spring(self, name: str) -> None:
        """Remove a spring between two points.

        Parameters
        ----------
        name : name of the spring
        """
        self._without(springs={self._name("spring", name, self._springs)})

    def remove_shape(self, name: str) -> None:
        """Remove a collision shape and the contact settings that refer to it.

        Parameters
        ----------
        name : name of the shape

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.pendulum().to_builder()
        >>> b.add_shape("bob", sarrus.shapes.Sphere(0.1), name="ball")
        >>> b.remove_shape("ball")
        >>> b.build().description.shapes
        ()
        """
        self._without(shapes={self._name("shape", name, self._shapes)})

    # ---- composition ------------------------------------------------------------------------------------------------

    def attach(self, other: Mechanism | Changes, *, prefix: str, body: str = "ground", at: Placement = None) -> None:
        """Attach another mechanism to a body: add all its parts, with a prefix to each name.

        The ground of the other mechanism becomes a massless body, named prefix + "ground". A joint of the same name welds it to `body`.

        Parameters
        ----------
        other : the other mechanism, or a builder
        prefix : prefix of all names of the other mechanism, such as "left_"
        body : name of the body to which it is attached
        at : placement of the other mechanism's ground frame in this body, a Transform or (3,) [m]

        Raises
        ------
        ModelError
            The prefix is empty or leads to duplicate names, or constraint rows of the other mechanism are functions of its q.

        Notes
        -----
        The gravity of this builder applies; a different gravity of the other mechanism is listed in `warnings`. Configurations of the same name are
        merged.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("two arms")
        >>> b.add_body("torso", sarrus.Inertia.box(20.0, (0.3, 0.4, 0.6)))
        >>> b.add_joint("base", sarrus.Fixed(), "ground", "torso")
        >>> for side, y in (("left_", 0.3), ("right_", -0.3)):
        ...     b.attach(sarrus.mechanisms.stanford_arm(), prefix=side, body="torso", at=(0.0, y, 0.3))
        >>> b.build().nv
        10
        """
        text: object = prefix
        if not isinstance(text, str) or not text:
            expected = "a prefix for the names of the attached parts, such as 'left_'"
            raise ModelError(f"attach needs {expected}; got {text!r}")
        if not isinstance(other, Mechanism | Changes):
            raise ModelError(f"attach requires a Mechanism or a Builder; got {other!r}")
        d, mine = other.description if isinstance(other, Mechanism) else other._described(), self._described()
        for c in d.constraints:
            if isinstance(c, PfaffianSpec) and callable(c.rows):
                raise ModelError(
                    f"'{d.name}' cannot be attached: constraint '{c.name}' is a Python function of the q of '{d.name}' alone"
                )
        called, ground = f"what attaches '{d.name}'", f"{prefix}ground"
        place: Any = at
        base = replace(
            mine,
            bodies=(*mine.bodies, BodySpec(ground, Inertia.zero())),
            joints=(*mine.joints, JointSpec(ground, Fixed(), self._core.body(body, called), ground, place)),
        )

        def with_prefix(name: str) -> str:
            return prefix + name

        merged = {key: (*getattr(base, key), *renamed(getattr(d, key), with_prefix)) for key in PARTS}
        named = {name: dict(text) for name, text in mine.configurations}
        for name, text in d.configurations:
            named[name] = named.get(name, {}) | dict(renamed(text, with_prefix))
        warnings = [*mine.warnings, *(f"{prefix}*: {warning}" for warning in d.warnings)]
        if d.gravity != mine.gravity:
            warnings.append(
                f"the gravity {d.gravity} of '{d.name}' is not used: that of '{self.name}' is {mine.gravity}"
            )
        listed = [(name, tuple(text.items())) for name, text in named.items()]
        self._become(**merged, configurations=listed, warnings=warnings)

    # ---- rebuilding ---------------------------------------------------------------------------------------------------

    def _become(self, **parts: Iterable[Any]) -> None:
        """Replace the state of this builder by the state of a builder with these parts exchanged."""
        changed = replace(self._described(), **{kind: tuple(listed) for kind, listed in parts.items()})  # type: ignore[arg-type]
        vars(self).update(vars(type(self)._of(changed)))

    def _without(self, **names: Iterable[str]) -> tuple[str, ...]:
        """Remove parts by name (bodies=, joints=, ...) and the constraints that relate coordinates of these joints.

        Return the names of all removed parts except bodies.
        """
        removed = {key: set(several) for key, several in names.items()}
        joints = removed.get("joints", set())
        related = {name for name, c in self._constraints.items() if not joints.isdisjoint(c.joints_related)}
        removed["constraints"] = removed.get("constraints", set()) | related
        d = self._described()
        left = {key: [part for part in getattr(d, key) if part.name not in names] for key, names in removed.items()}
        visuals = [visual for visual in d.visuals if visual.body not in removed.get("bodies", ())]
        shapes = {name for spec in left.get("shapes", d.shapes) for name in (spec.name, spec.group)}
        contacts = [contact for contact in d.contacts if {contact.first, contact.second} <= shapes]
        self._become(**left, visuals=visuals, contacts=contacts, **self._coordinates_without(joints))
        order = (part.name for key in PARTS[1:-3] for part in getattr(d, key) if part.name in removed.get(key, ()))
        return tuple(order)

    def _coordinates_without(self, joints: set[str]) -> dict[str, Any]:
        """Return home and configurations without these joints."""

        def left(coordinates: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
            return tuple((name, q) for name, q in coordinates.items() if name not in joints)

        return {
            "home": left(self._home),
            "configurations": [(name, left(coordinates)) for name, coordinates in self._configurations.items()],
        }

    def _name(self, kind: str, name: object, parts: Mapping[str, Any]) -> str:
        check_name(kind, name, parts)
        return str(name)
