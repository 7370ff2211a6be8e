"""Changing what a Builder holds: a model from a file, with other masses, without its hand, with a second arm.

Each change makes a new description and writes it once more from the start: what would not be accepted by hand is refused, and then nothing
has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .._arrays import ArrayLike
from ..description.constraints import PfaffianSpec
from ..description.contacts import names_of_contacts
from ..description.joints import Fixed, JointType
from ..description.part import renamed
from ..description.specs import BodySpec, Description, JointSpec
from ..errors import ModelError, check_name
from ..mechanism import Mechanism
from ..spatial import Inertia, Transform
from .parts import Parts
from .values import Placement, checked_placement, joint_coordinates

PARTS = ("bodies", "joints", "frames", "constraints", "springs", "shapes", "visuals", "contacts", "home")


class Changes(Parts):
    """What a :class:`~sarrus.Builder` changes and takes away."""

    def set_inertia(self, body: str, inertia: Inertia) -> None:
        """Give a body another inertia.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.four_bar().to_builder()
        >>> b.set_inertia("coupler", sarrus.Inertia.rod(3.0, (0, 0, 0), (1.0, 0, 0)))
        >>> b.build().mass > sarrus.mechanisms.four_bar().mass
        True
        """
        bodies = self._bodies | {self._there("body", body, self._bodies): BodySpec(body, inertia)}
        self._become(bodies=bodies.values())

    def set_joint(self, name: str, joint: JointType | None = None, **changes: Any) -> None:
        """Give a joint another type, or change how it sits in its bodies and what else :meth:`~sarrus.Builder.add_joint` was told.

        Parameters
        ----------
        joint : its new type; default: as it is
        **changes : some of parent, child, at_parent, at_child, actuated, tree, loop, as of :meth:`~sarrus.Builder.add_joint`

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.pendulum().to_builder()
        >>> b.set_joint("pivot", sarrus.Revolute("y", damping=0.1), actuated=True)
        >>> b.build().actuated
        ('pivot',)
        """
        spec = self._joints[self._there("joint", name, self._joints)]
        if unknown := changes.keys() - {"parent", "child", "at_parent", "at_child", "actuated", "tree", "loop"}:
            raise TypeError(
                f"set_joint changes parent, child, at_parent, at_child, actuated, tree, loop; got {sorted(unknown)}"
            )
        for end in changes.keys() & {"at_parent", "at_child"}:
            changes[end] = checked_placement(changes[end], f"joint '{name}': {end}")
        new = replace(spec, joint=spec.joint if joint is None else joint, **changes)
        self._become(joints=(self._joints | {name: new}).values())

    def lock(self, joint: str, at: ArrayLike | None = None) -> None:
        """Weld the two bodies of a joint to each other.

        The joint becomes :class:`~sarrus.Fixed`, with its name; couplers go on without its coordinates, home and configurations too.

        Parameters
        ----------
        at : coordinates (nq,) at which it is locked, or a number for a single one [rad, m]; default: the neutral ones

        Raises
        ------
        ModelError
            It is driven by a law, other constraints need its coordinates, or a coupler is not satisfied there.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.double_pendulum().to_builder()
        >>> b.lock("elbow", at=0.3)
        >>> robot = b.build()
        >>> robot.nv, robot.joints
        (1, ('shoulder', 'elbow'))
        """
        spec = self._joints[self._there("joint", joint, self._joints)]
        what = f"joint '{joint}'"
        if spec.laws:
            raise ModelError(
                f"{what} cannot be locked: it is led by laws of time; remove it, and join its bodies by a Fixed joint"
            )
        alone = JointSpec(joint, spec.joint, "ground", "child")
        probe = Mechanism(Description(joint, (0.0, 0.0, 0.0), (BodySpec("child", Inertia.sphere(1.0, 1.0)),), (alone,)))
        q = tuple(probe.neutral().tolist()) if at is None else joint_coordinates(spec.joint, at, f"{what}: at")
        turned = Transform.from_matrix(probe.pose(q, "child"))
        locked = replace(spec, joint=Fixed(), at_parent=spec.at_parent @ turned, actuated=False)
        left = [c.with_locked(joint, q) if joint in c.joints_related else c for c in self._constraints.values()]
        joints, constraints = (self._joints | {joint: locked}).values(), (c for c in left if c is not None)
        self._become(joints=joints, constraints=constraints, **self._coordinates_without({joint}))

    # ---- taking away -------------------------------------------------------------------------------------------------

    def remove_body(self, name: str) -> tuple[str, ...]:
        """Take a body away, with the joints, frames, shapes, visuals, springs and constraints that hold on to it.

        Returns
        -------
        Names of the joints, frames, constraints, springs and shapes that went with it

        Notes
        -----
        What it carried is not removed: bodies that hang on nothing then are refused when the mechanism is built.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.double_pendulum().to_builder()
        >>> b.remove_body("lower")
        ('elbow', 'tip')
        """
        self._there("body", name, self._bodies)
        joints = {spec.name for spec in self._joints.values() if name in spec.bodies}
        frames = {spec.name for spec in self._frames.values() if spec.body == name}
        springs = {spec.name for spec in self._springs.values() if name in (spec.first[0], spec.second[0])}
        ties = {spec.name for spec in self._constraints.values() if name in spec.bodies}
        shapes = {spec.name for spec in self._shapes.values() if spec.body == name}
        return self._without(
            bodies={name}, joints=joints, frames=frames, springs=springs, constraints=ties, shapes=shapes
        )

    def remove_joint(self, name: str) -> tuple[str, ...]:
        """Take a joint away, and the constraints that relate its coordinates; returns the names of these.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.four_bar().to_builder()
        >>> b.remove_joint("pin2")
        ()
        >>> b.build().nc
        0
        """
        return self._without(joints={self._there("joint", name, self._joints)})[1:]

    def remove_constraint(self, name: str) -> None:
        """Take a constraint that is no joint away: a distance, a coupler, a prescribed motion, a rolling contact, rows."""
        self._without(constraints={self._there("constraint", name, self._constraints)})

    def remove_frame(self, name: str) -> None:
        """Take a named frame away."""
        self._without(frames={self._there("frame", name, self._frames)})

    def remove_spring(self, name: str) -> None:
        """Take a spring between two points away."""
        self._without(springs={self._there("spring", name, self._springs)})

    def remove_shape(self, name: str) -> None:
        """Take a shape away that touches, and what was told of its contacts.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.pendulum().to_builder()
        >>> b.add_shape("bob", sarrus.shapes.Sphere(0.1), name="ball")
        >>> b.remove_shape("ball")
        >>> b.build().description.shapes
        ()
        """
        self._without(shapes={self._there("shape", name, self._shapes)})

    # ---- putting together --------------------------------------------------------------------------------------------

    def attach(self, other: Mechanism | Changes, *, prefix: str, body: str = "ground", at: Placement = None) -> None:
        """Put another robot onto a body: all that it consists of, each name with a prefix.

        Its ground becomes a body without mass, named prefix + "ground", welded to `body` by a joint of that name.

        Parameters
        ----------
        other : a mechanism, or a builder with one
        prefix : what its names are to begin with, such as "left_"
        body : that it is put onto
        at : where its ground's frame sits in that body

        Raises
        ------
        ModelError
            No prefix, or one that makes names which are taken; rows of the other robot that are a function of its q.

        Notes
        -----
        Gravity stays as it is, and that of the other is not used; if they differ, `warnings` say so. Configurations of one name are put
        together.

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
            expected = "a prefix for the names of what is attached, such as 'left_'"
            raise ModelError(f"attach needs {expected}; got {text!r}")
        if not isinstance(other, Mechanism | Changes):
            raise ModelError(f"attach takes a Mechanism or a Builder; got {other!r}")
        d, mine = other.description if isinstance(other, Mechanism) else other._described(), self._described()
        for c in d.constraints:
            if isinstance(c, PfaffianSpec) and callable(c.rows):
                raise ModelError(f"'{d.name}' cannot be attached: constraint '{c.name}' is a function of its own q")
        called, ground = f"what attaches '{d.name}'", f"{prefix}ground"
        place = checked_placement(at, f"{called}: at")
        base = replace(
            mine,
            bodies=(*mine.bodies, BodySpec(ground, Inertia.zero())),
            joints=(*mine.joints, JointSpec(ground, Fixed(), self._known_body(body, called), ground, place)),
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

    # ---- how ---------------------------------------------------------------------------------------------------------

    def _become(self, **parts: Iterable[Any]) -> None:
        """All of it again with other parts, written as if by hand."""
        changed = replace(self._described(), **{name: tuple(those) for name, those in parts.items()})  # type: ignore[arg-type]
        vars(self).update(vars(type(self)._of(changed)))

    def _without(self, **names: Iterable[str]) -> tuple[str, ...]:
        """Leave out what has these names (bodies=, joints=, ...), with what relates coordinates of such joints; what went besides bodies."""
        gone = {key: set(those) for key, those in names.items()}
        joints = gone.get("joints", set())
        related = {name for name, c in self._constraints.items() if not joints.isdisjoint(c.joints_related)}
        gone["constraints"] = gone.get("constraints", set()) | related
        held = self._described()
        kept = {key: [part for part in getattr(held, key) if part.name not in those] for key, those in gone.items()}
        visuals = [visual for visual in held.visuals if visual.body not in gone.get("bodies", ())]
        known = {*names_of_contacts(kept.get("shapes", held.shapes))}
        contacts = [contact for contact in held.contacts if {contact.first, contact.second} <= known]
        self._become(**kept, visuals=visuals, contacts=contacts, **self._coordinates_without(joints))
        order = (part.name for key in PARTS[1:-3] for part in getattr(held, key) if part.name in gone.get(key, ()))
        return tuple(order)

    def _coordinates_without(self, joints: set[str]) -> dict[str, Any]:
        """Home and configurations, these joints left out."""

        def left(coordinates: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
            return tuple((name, q) for name, q in coordinates.items() if name not in joints)

        return {
            "home": left(self._home),
            "configurations": [(name, left(coordinates)) for name, coordinates in self._configurations.items()],
        }

    def _there(self, kind: str, name: object, known: Mapping[str, Any]) -> str:
        check_name(kind, name, known)
        return str(name)
