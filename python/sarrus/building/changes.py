"""Changes of a Builder's parts: a model from a file, with other masses, without its hand, with a second arm.

Each change makes a new description and adds all its parts again. The checks are those of the methods that add parts, and a refused change
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .. import _core
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
from .values import Placement

PARTS = ("bodies", "joints", "frames", "constraints", "springs", "shapes", "visuals", "contacts", "home")


class Changes(Parts):
    """Changes and removals of a :class:`~sarrus.Builder`."""

    def set_inertia(self, body: str, inertia: Inertia) -> None:
        """Set the inertia of a body.

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
        joint : its new type; default: unchanged
        **changes : some of parent, child, at_parent, at_child, actuated, tree, loop, see :meth:`~sarrus.Builder.add_joint`

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

        The joint becomes :class:`~sarrus.Fixed` and keeps its name. Couplers, home and configurations lose its coordinates.

        Parameters
        ----------
        at : coordinates (nq,) at which it is locked, or a number for a single one [rad, m]; default: the neutral ones

        Raises
        ------
        ModelError
            A law prescribes its motion, other constraints need its coordinates, or a coupler is not satisfied there.

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

        Returns
        -------
        Names of the joints, frames, constraints, springs and shapes that were removed with it

        Notes
        -----
        Bodies that it carried stay. :meth:`~sarrus.Builder.build` raises if no joint connects them to the ground.

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
        """Remove a constraint that is no joint: a distance, a coupler, a prescribed motion, a rolling contact, rows."""
        self._without(constraints={self._name("constraint", name, self._constraints)})

    def remove_frame(self, name: str) -> None:
        """Remove a named frame."""
        self._without(frames={self._name("frame", name, self._frames)})

    def remove_spring(self, name: str) -> None:
        """Remove a spring between two points."""
        self._without(springs={self._name("spring", name, self._springs)})

    def remove_shape(self, name: str) -> None:
        """Remove a collision shape and the settings of its contacts.

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
        """Attach another robot to a body: add all its parts, with a prefix to each name.

        Its ground becomes a body without mass, named prefix + "ground", welded to `body` by a joint of that name.

        Parameters
        ----------
        other : a mechanism, or a builder with one
        prefix : of its names, such as "left_"
        body : to which it is attached
        at : placement of its ground's frame in that body

        Raises
        ------
        ModelError
            No prefix, or one that makes duplicate names; rows of the other robot that are a function of its q.

        Notes
        -----
        This builder's gravity applies; if the other's differs, `warnings` lists that. Configurations of the same name are merged.

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
            raise ModelError(f"attach requires a Mechanism or a Builder; got {other!r}")
        d, mine = other.description if isinstance(other, Mechanism) else other._described(), self._described()
        for c in d.constraints:
            if isinstance(c, PfaffianSpec) and callable(c.rows):
                raise ModelError(f"'{d.name}' cannot be attached: constraint '{c.name}' is a function of its own q")
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
        """Replace the state by that of a builder with other parts."""
        changed = replace(self._described(), **{kind: tuple(listed) for kind, listed in parts.items()})  # type: ignore[arg-type]
        vars(self).update(vars(type(self)._of(changed)))

    def _without(self, **names: Iterable[str]) -> tuple[str, ...]:
        """Remove parts by name (bodies=, joints=, ...) and the constraints that relate coordinates of such joints; return the names other than bodies'."""
        removed = {key: set(several) for key, several in names.items()}
        joints = removed.get("joints", set())
        related = {name for name, c in self._constraints.items() if not joints.isdisjoint(c.joints_related)}
        removed["constraints"] = removed.get("constraints", set()) | related
        d = self._described()
        left = {key: [part for part in getattr(d, key) if part.name not in names] for key, names in removed.items()}
        visuals = [visual for visual in d.visuals if visual.body not in removed.get("bodies", ())]
        shapes = {*names_of_contacts(left.get("shapes", d.shapes))}
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
