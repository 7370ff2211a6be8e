"""Writing a mechanism down by hand: bodies, joints between any two of them, and what else ties their motion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, checked_truth
from .._renamed import renamed_arguments
from ..analysis.joint_targets import start_near
from ..description.constraints import DECLARED, KINDS, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec
from ..description.contacts import NO_CONTACTS, SOME_CONTACTS, ContactSpec, PointsFunction, ShapeSpec, names_of_contacts
from ..description.joints import PARAMETERS, Cable, Fixed, JointType
from ..description.specs import BodySpec, FrameSpec, JointSpec, SpringSpec, VisualSpec, doubtful
from ..errors import ModelError, check_name, check_printable, did_you_mean, printable, warn_of_model
from ..laws import Law, as_law
from ..mechanism import Mechanism
from ..shapes import ContactShape, Shape
from ..spatial import Inertia
from . import values
from .changes import Changes
from .values import BodyPoint, Coordinate, Placement

_WELD = Fixed()


class Builder(Changes):
    """Collects bodies, joints and other constraints, and makes a :class:`~sarrus.Mechanism` of them.

    Parameters
    ----------
    name : str
    gravity : (3,) acceleration of free fall in the world's axes [m/s2]

    Raises
    ------
    ModelError
        From all its methods: a name that is taken (joints and constraints share theirs), what is no joint, shape or law, numbers
        that are not finite or have the wrong sign, a body tied to itself.
    NameNotFoundError
        A body or joint that is not there: what is referred to must have been added before, but for the bodies of joints.

    Notes
    -----
    The world is the body "ground". Any two bodies may be joined; a joint between bodies that other joints already connect closes
    a loop, and which ones do is the library's business (a spanning tree of least depth, actuated joints in it where possible). Every
    moving body needs some way of joints to the ground: a robot that floats has a :class:`~sarrus.Free` joint there.

    Where a frame, a shape or a joint sits in a body is told by a Transform, or by a translation (3,) [m]; default: at the body's frame.
    Points are (body, (3,) in its frame [m]).

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder("pendulum")
    >>> b.add_body("bob", sarrus.Inertia(2.0, com=(0, 0, -0.5), about_com=np.zeros((3, 3))))
    >>> b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
    >>> b.build().gravity_forces([np.pi / 2]).round(3)
    array([9.81])
    """

    # ---- bodies, joints, frames --------------------------------------------------------------------------------------

    def add_body(self, name: str, inertia: Inertia | None = None) -> None:
        """Add a rigid body; without an inertia it has no mass."""
        name, what = self._new("body", name)
        if inertia is None:
            inertia = Inertia.zero()
        if not isinstance(inertia, Inertia):
            raise ModelError(f"{what} needs a sarrus.Inertia; got {inertia!r}")
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
        tree: bool = False,
        loop: bool = False,
    ) -> None:
        """Join two bodies, which may be added later.

        Parameters
        ----------
        joint : one of the joint types, e.g. ``sarrus.Revolute("z")``; its axes are in the joint's frame
        parent, child : names of bodies, or of frames on them that are there already
        at_parent, at_child : where the joint's frame sits in either
        actuated : whether a motor drives it
        tree, loop : hints in case it is one of several that close a loop: keep it in the spanning tree, so that q holds its
            coordinates, or close the loop with it, so that q does not; not both
        """
        name, what = self._new("joint", name)
        for value in (actuated, tree, loop):
            if not isinstance(value, Integral | np.bool_):
                raise ModelError(f"{what}: actuated, tree and loop are True or False; got {value!r}")
        if tree and loop:
            raise ModelError(f"{what} cannot both stay in the tree and close a loop: give tree=True or loop=True")
        placed = self._on_bodies(values.joined(what, joint, parent, child, at_parent, at_child), what)
        self._joints[name] = JointSpec(name, *placed, actuated=bool(actuated), tree=bool(tree), loop=bool(loop))

    def add_frame(self, name: str, body: str, placement: Placement = None) -> None:
        """Name a frame on a body: a tool, a sensor, a point to push at. Every body's own frame has its name already."""
        name, what = self._new("frame", name)
        self._frames[name] = FrameSpec(name, self._known_body(body, what), values.checked_placement(placement, what))

    def add_visual(
        self, body: str, shape: Shape, placement: Placement = None, *, color: str | ArrayLike | None = None
    ) -> None:
        """Say what a body looks like in :func:`sarrus.view`; several visuals add up. Bodies without one are shown as bars.

        Parameters
        ----------
        shape : a ``Box``, ``Cylinder``, ``Sphere`` or ``Mesh`` of :mod:`sarrus.shapes`
        color : red, green, blue (and opacity) from 0 to 1, or text such as "#4477aa"; default: the mesh's own, else one per body

        Notes
        -----
        Mesh files are looked for when they are shown: a mechanism can be computed with where its meshes are not.

        Examples
        --------
        >>> import sarrus
        >>> from sarrus.shapes import Box
        >>> b = sarrus.Builder("brick")
        >>> b.add_body("brick", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
        >>> b.add_joint("float", sarrus.Free(), "ground", "brick")
        >>> b.add_visual("brick", Box((0.3, 0.2, 0.1)), color="#cc4433")
        >>> b.build().description.visuals[0].color
        (0.8, 0.26666666666666666, 0.2, 1.0)
        """
        what = f"visual of body '{self._known_body(body, 'visual')}'"
        at = values.checked_placement(placement, f"{what}: placement")
        rgba = None if color is None else values.checked_color(color, what)
        self._visuals.append(VisualSpec(body, values.checked_shape(shape, what), at, rgba))

    # ---- what touches ------------------------------------------------------------------------------------------------

    def add_shape(
        self,
        body: str,
        shape: ContactShape,
        placement: Placement = None,
        *,
        friction: float | None = None,
        restitution: float | None = None,
        torsional_friction: float | None = None,
        rolling_friction: float | None = None,
        name: str | None = None,
        group: str | None = None,
    ) -> None:
        """Give a body, or the ground, a shape with which it touches others: :meth:`~sarrus.Mechanism.contacts` says where.

        Parameters
        ----------
        body : its name; "ground" for the world
        shape : a ``Box``, ``Capsule``, ``ConvexPoints``, ``Cylinder``, ``Ellipsoid``, ``Mesh``, ``Plane``, ``Point``, ``Sphere`` or ``Terrain`` of :mod:`sarrus.shapes`
        placement : where the shape's frame sits in the body
        friction : Coulomb's coefficient; default: that of what it touches. Of two that are told the geometric mean is taken, of none 1
        restitution : from 0 to 1, likewise; of none 0
        torsional_friction, rolling_friction : by which a point that presses with f resists spinning about its normal and rolling, with moments
            of up to so much times f, likewise; of none 0 [m]
        name : of the shape; default: the body's, with a number behind it from the second one on
        group : a name that shapes share, for :meth:`set_contact`

        Notes
        -----
        Shapes of bodies that a joint joins, in the tree or closing a loop, do not touch each other unless :meth:`set_contact` says so, nor do
        those of bodies welded together. The ground touches all but what is welded to it.

        Examples
        --------
        >>> import sarrus
        >>> from sarrus.shapes import Box, Plane
        >>> b = sarrus.Builder("brick")
        >>> b.add_body("brick", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
        >>> b.add_joint("float", sarrus.Free(), "ground", "brick")
        >>> b.add_shape("brick", Box((0.3, 0.2, 0.1)), friction=0.5)
        >>> b.add_shape("ground", Plane(), (0, 0, -0.05))
        >>> robot = b.build()
        >>> len(robot.contacts(robot.neutral(), within=1e-3).distance)
        4
        """
        known = self._known_body(body, "shape")
        if name is None:
            name, k = known, 2
            while name in self._shapes:
                name, k = f"{known}_{k}", k + 1
        name, what = self._new("shape", name)
        shared: object = group
        if shared is not None and (not isinstance(shared, str) or not shared or shared in self._shapes):
            raise ModelError(f"{what}: group is a name, and no shape's; got {shared!r}")
        if any(spec.group == name for spec in self._shapes.values()):
            raise ModelError(f"{what} is named as a group")
        at = values.checked_placement(placement, f"{what}: placement")
        numbers = values.checked_coefficients(
            what, friction=friction, restitution=restitution, torsional_friction=torsional_friction, rolling_friction=rolling_friction
        )  # fmt: skip
        solid = values.checked_shape(shape, what, ContactShape)
        self._shapes[name] = ShapeSpec(name, known, solid, at, group=group, **numbers)
        # those of a file are not all any more: whoever adds one wants to know whether it acts
        self.warnings[:] = [text.replace(NO_CONTACTS, SOME_CONTACTS) for text in self.warnings]

    @renamed_arguments(touching="enabled")
    def set_contact(
        self,
        first: str,
        second: str,
        *,
        enabled: bool = True,
        friction: float | None = None,
        restitution: float | None = None,
        torsional_friction: float | None = None,
        rolling_friction: float | None = None,
        points: PointsFunction | None = None,
    ) -> None:
        """Say whether two shapes may touch, and how; it takes the place of what was said of the same two.

        Parameters
        ----------
        first, second : names of shapes or groups; one group twice: its shapes among themselves. What is told of shapes goes before what is
            told of their groups
        enabled : False: they pass through each other
        friction, restitution, torsional_friction, rolling_friction : of the pair; default: those of the shapes, as :meth:`add_shape` says
        points : where two shapes touch of which that is not known, two meshes say: a function of their poses (4, 4) in the world and of how far
            apart [m] points may be, which returns at most four points' positions (n, 3) midway between the surfaces [m], normals (n, 3), unit, that
            push the first away from the second, and distances (n,), negative: sunk in [m]. It is asked where the spheres that hold the
            shapes come near each other, and a point keeps its place from step to step. For ``contacts`` and
            :func:`~sarrus.simulate`, not for ``simulate_many``; JSON cannot hold it

        Raises
        ------
        ModelError
            No shape or group is called so, or both shapes are on one body; points of groups, or of what is not to touch.

        Examples
        --------
        >>> import sarrus
        >>> from sarrus.shapes import Sphere
        >>> b = sarrus.mechanisms.double_pendulum().to_builder()
        >>> b.add_shape("upper", Sphere(0.1), name="elbow")
        >>> b.add_shape("lower", Sphere(0.1), (0, 0, -1), name="hand")
        >>> b.set_contact("elbow", "hand", friction=0.3)  # which a joint joins

        Two ellipsoids touch where their caller says, here along the line through their centres:

        >>> import numpy as np
        >>> from sarrus.shapes import Ellipsoid
        >>> def along_centres(first, second, within):
        ...     n = (first[:3, 3] - second[:3, 3]) / np.linalg.norm(first[:3, 3] - second[:3, 3])
        ...     radii = [1 / np.linalg.norm(pose[:3, :3].T @ n / (0.1, 0.1, 0.2)) for pose in (first, second)]
        ...     distance = np.linalg.norm(first[:3, 3] - second[:3, 3]) - sum(radii)
        ...     return [second[:3, 3] + (radii[1] + distance / 2) * n], [n], [distance]
        >>> b = sarrus.Builder("eggs")
        >>> for name, z in (("low", 0.2), ("high", 0.65)):
        ...     b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        ...     b.add_joint(f"{name}_slide", sarrus.Prismatic("z"), "ground", name, at_parent=(0, 0, z))
        ...     b.add_shape(name, Ellipsoid((0.1, 0.1, 0.2)))
        >>> b.set_contact("low", "high", points=along_centres)
        >>> b.build().contacts([0.0, 0.0], within=0.1).distance.round(9)
        array([0.05])
        """
        what, known = f"contact of '{first}' and '{second}'", dict.fromkeys(names_of_contacts(self._shapes.values()))
        for name in (first, second):
            check_name("shape or group", name, known, what)
        ends = [self._shapes[name].body for name in (first, second) if name in self._shapes]
        if len(ends) == 2 and ends[0] == ends[1] and enabled:
            raise ModelError(f"{what}: both are on body '{ends[0]}'")
        numbers = values.checked_coefficients(
            what, friction=friction, restitution=restitution, torsional_friction=torsional_friction, rolling_friction=rolling_friction
        )  # fmt: skip
        if points is not None:
            if not callable(points):
                raise TypeError(f"{what}: points must be a function of two poses and a distance; got {points!r}")
            if not enabled or not {first, second} <= self._shapes.keys():
                raise ModelError(f"{what}: points are of two shapes that touch")
        key = tuple(sorted((first, second)))
        self._contacts.pop(key, None)
        self._contacts[key] = ContactSpec(first, second, checked_truth("enabled", enabled), **numbers, points=points)

    # ---- what else ties their motion ---------------------------------------------------------------------------------

    def add_spring(
        self,
        name: str,
        first: BodyPoint,
        second: BodyPoint,
        *,
        stiffness: float,
        rest_length: float,
        damping: float = 0.0,
    ) -> None:
        """Pull two points of different bodies together by stiffness (length - rest_length) + damping d(length)/dt, along their line.

        A part of the mechanism: of its forward and inverse dynamics, bias forces, reactions and potential energy, not of
        ``gravity_forces``, ``coriolis_matrix`` and ``regressor``. Points that coincide have no line, and no force.

        Parameters
        ----------
        first, second : points
        stiffness, damping : not negative [N/m, N s/m]
        rest_length : not negative [m]

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("bob")
        >>> b.add_body("bob", sarrus.Inertia.sphere(2.0, 0.1))
        >>> b.add_joint("guide", sarrus.Prismatic("z"), "ground", "bob")
        >>> b.add_spring("coil", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), stiffness=100.0, rest_length=0.5)
        >>> b.build().bias_forces([-0.5 - 0.1962], [0.0]).round(9) + 0.0  # hangs in balance
        array([0.])
        """
        name, what = self._new("spring", name)
        ends = self._two_points(first, second, what)
        numbers_of = {"stiffness": stiffness, "rest_length": rest_length, "damping": damping}
        numbers = [values.checked_number(value, f"{what}: {label}") for label, value in numbers_of.items()]
        if min(numbers) < 0.0:
            raise ModelError(f"{what}: stiffness, rest_length and damping must not be negative; got {numbers}")
        self._springs[name] = SpringSpec(name, *ends, *numbers)

    def add_cable(
        self,
        name: str,
        first: BodyPoint,
        second: BodyPoint,
        *,
        radius: float = 0.0,
        axis: str | ArrayLike = "z",
        actuated: bool = False,
        **passive: Any,
    ) -> None:
        """Measure the line between points of two bodies: a cable, whose length is a coordinate as that of a joint which closes a loop.

        By itself it holds nothing and weighs nothing. A motor along it is a winch; `stiffness` and `damping` are a spring, which pushes too. What
        pulls only is a :class:`~sarrus.control.EndStop` at the length at which it is taut, of several cables at the sum of their lengths, with
        a spring or, in steps of ``method="contact"``, without. Efforts count as its length does: negative ones pull.

        Parameters
        ----------
        first, second : points; the first may have a pulley. A pulley with inertia, or two, are bodies of their own
        radius, axis : of a pulley at the first point, 0: none [m]. The cable comes there along the axis, in the axes of the first body, tangent
            to the rim. The pulley swivels about that tangent so that the second point is in its plane. The length is counted from there on: around
            the rim, and straight
        actuated : whether a motor drives it
        passive : limits, effort_limit, velocity_limit, armature (of a winch [kg]), stiffness, rest, damping, friction: as of any joint

        Raises
        ------
        ModelError
            A point that is on no body, both on one body, a negative radius.

        References
        ----------
        Pott, Cable-Driven Parallel Robots, 2018, 3.4 (pulleys).

        Examples
        --------
        A weight of 2 kg on a rope of 1 m is lifted by 0.3 m and let fall:

        >>> import sarrus
        >>> b = sarrus.Builder("weight")
        >>> b.add_body("weight", sarrus.Inertia.sphere(2.0, 0.1))
        >>> b.add_joint("float", sarrus.Free(), "ground", "weight")
        >>> b.add_cable("rope", ("ground", (0, 0, 0)), ("weight", (0, 0, 0)), limits=(0.0, 1.0))
        >>> robot = b.build()
        >>> q = [0, 0, 0, 1, 0, 0, -0.7]
        >>> run = sarrus.simulate(robot, q, [0.0] * 6, 1.0, method="contact", limits="enforce", dt=2e-3)
        >>> bool(abs(run.q[-1, 6] + 1.0) < 1e-9), bool(abs(run.v[-1]).max() < 1e-9)
        (True, True)
        """
        from_, to = self._two_points(first, second, f"cable '{name}'")
        self.add_joint(
            name, Cable(axis, radius, **passive), from_[0], to[0], at_parent=from_[1], at_child=to[1], actuated=actuated, loop=True
        )  # fmt: skip

    def add_distance(self, name: str, first: BodyPoint, second: BodyPoint, *, length: float) -> None:
        """Keep a point of one body at a distance from a point of another: a rod without mass, with a ball at either end. One row.

        Parameters
        ----------
        first, second : points
        length : positive [m]

        Examples
        --------
        A bar that hangs on two parallel rods:

        >>> import sarrus
        >>> b = sarrus.Builder("swing")
        >>> b.add_body("bar", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
        >>> b.add_joint("float", sarrus.Planar("y"), "ground", "bar")
        >>> b.add_distance("left", ("ground", (0, 0, 2)), ("bar", (0, 0, 0)), length=2.0)
        >>> b.add_distance("right", ("ground", (1, 0, 2)), ("bar", (1, 0, 0)), length=2.0)
        >>> b.build().constraints
        ('left', 'right')
        """
        name, what = self._new("constraint", name)
        ends = self._two_points(first, second, what)
        cure = "; for two points that coincide take a Spherical joint"
        size = values.checked_positive(length, f"{what}: length", cure)
        self._constraints[name] = DistanceSpec(name, *ends, size)

    def add_coupler(self, name: str, coordinates: Mapping[Any, ArrayLike], *, offset: Law | float = 0.0) -> None:
        """Relate joint coordinates to each other: a gear, a belt, a differential, a cam. One row, sum of P_i(q_i) = offset.

        Parameters
        ----------
        coordinates : joint, or (joint, index) where it has several coordinates, to the coefficients of its polynomial: a number r for
            r q, a sequence (c1, c2, ...) for c1 q + c2 q^2 + ...
        offset : a number, or a law of time: what drives a differential [rad, m]

        Raises
        ------
        ModelError
            A coordinate twice, zeros only; a coordinate whose rate is no velocity (all of Spherical and Free joints, the displacements
            of Planar ones); a joint that closes a loop and so has no coordinates (where the library chooses it, that shows when it is
            built: give it ``tree=True``).

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> b = sarrus.Builder("gears")
        >>> for wheel, x in (("small", 0.0), ("large", 0.3)):
        ...     b.add_body(wheel, sarrus.Inertia(1.0, (0, 0, 0), 0.01 * np.eye(3)))
        ...     b.add_joint(f"{wheel}_axle", sarrus.Revolute("z"), "ground", wheel, at_parent=(x, 0, 0))
        >>> b.add_coupler("mesh", {"small_axle": 0.1, "large_axle": 0.2})
        >>> b.build().constraint_residual([1.0, -0.5]).tolist()
        [0.0]
        """
        name, what = self._new("constraint", name)
        values.check_mapping(coordinates, what, "joints to coefficients")
        terms: dict[tuple[str, int], tuple[float, ...]] = {}
        for key, value in coordinates.items():
            coordinate = self._coordinate(key, what)
            if coordinate in terms:
                raise ModelError(f"{what} names coordinate {coordinate[1]} of joint '{coordinate[0]}' twice")
            terms[coordinate] = values.checked_sequence(value, f"{what}: coefficients of {key!r}")
        if not any(any(coefficients) for coefficients in terms.values()):
            raise ModelError(f"{what} has zeros for all its coefficients: it would couple nothing")
        flat = tuple((*coordinate, coefficients) for coordinate, coefficients in terms.items())
        law = offset if isinstance(offset, Law) else None
        constant = 0.0 if law else values.checked_number(offset, f"{what}: offset")  # type: ignore[arg-type]
        self._constraints[name] = CouplerSpec(name, flat, constant, law)

    def add_prescribed_motion(self, name: str, joint: Coordinate, law: Law | float) -> None:
        """Move a joint by a law, q(t) = law(t), whatever that takes. One row; the joint keeps its place in q.

        Parameters
        ----------
        joint : its name, or (name, index) where it has several coordinates; as of :meth:`add_coupler`
        law : of time, from :mod:`sarrus.laws` [rad, m]; a number holds it still. No coordinate has two

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("metronome")
        >>> b.add_body("bob", sarrus.Inertia.sphere(0.1, 0.01))
        >>> b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
        >>> b.add_prescribed_motion("swing", "pivot", sarrus.laws.harmonic(0.5, rate=4.0))
        >>> b.build().constraint_velocity([0.0]).tolist()
        [2.0]
        """
        name, what = self._new("constraint", name)
        spec = CouplerSpec(name, ((*self._coordinate(joint, what), (1.0,)),), 0.0, as_law(law, f"{what}: law"))
        for other in self._constraints.values():
            if isinstance(other, CouplerSpec) and other.law and other.terms == spec.terms and other.law != spec.law:
                raise ModelError(f"{what} contradicts '{other.name}', which gives {joint!r} another law")
        self._constraints[name] = spec

    def add_prescribed_frame(
        self,
        name: str,
        body: str,
        laws: Mapping[str, Law | float],
        *,
        joint: JointType = _WELD,
        at_parent: Placement = None,
        at_child: Placement = None,
        relative_to: str = "ground",
    ) -> None:
        """Lead a body along a moving frame: a joint that closes a loop, and whose frame on the parent moves by laws.

        That frame is carried from `at_parent` by a :class:`~sarrus.Gimbal` with the laws' values, and whatever the joint does not leave
        free of the body's frame goes with it: the frame motion g^c(t) of van der Merwe 5.22.

        Parameters
        ----------
        body : that is led
        laws : some of "rx", "ry", "rz", "tx", "ty", "tz" to laws of time or numbers [rad, m]; the others stay zero
        joint : what connects the body to the moving frame; a weld if not given
        at_parent, at_child : the frame on `relative_to` where all laws are zero, and that on the body
        relative_to : body that the laws are relative to

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("shaker")
        >>> b.add_body("table", sarrus.Inertia.sphere(1.0, 0.1))
        >>> b.add_joint("float", sarrus.Free(), "ground", "table")
        >>> b.add_prescribed_frame("shake", "table", {"tx": sarrus.laws.harmonic(0.01, rate=50.0)})
        >>> b.build().constraint_velocity([0, 0, 0, 1, 0, 0, 0]).tolist()
        [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
        """
        name, what = self._new("constraint", name)
        values.check_mapping(laws, what, f"some of {' '.join(PARAMETERS)} to laws")
        for parameter in laws:
            if parameter not in PARAMETERS:
                raise ModelError(f"{what}: laws are for {' '.join(PARAMETERS)}; got {parameter!r}")
        six = tuple(as_law(laws[p], f"{what}: {p}") if p in laws else None for p in PARAMETERS)
        ends = self._known_body(relative_to, what), self._known_body(body, what)
        placed = values.joined(what, joint, *ends, at_parent, at_child)
        self._joints[name] = JointSpec(name, *placed, actuated=False, loop=True, laws=six)

    def add_rolling(
        self,
        name: str,
        body: str,
        *,
        radius: float,
        center: ArrayLike = (0.0, 0.0, 0.0),
        axle: str | ArrayLike | None = None,
        on: str = "ground",
        point: ArrayLike = (0.0, 0.0, 0.0),
        normal: str | ArrayLike | None = None,
        on_radius: float | None = None,
        spin: bool = True,
    ) -> None:
        """Let a disc or a sphere roll without slip on a plane, or a sphere on a sphere, in lasting contact.

        Three rows: the bodies' points in contact have one velocity, along the normal (where it holds positions too: they touch) and in
        two directions across it (nonholonomic). A disc may lean. Without spin there is a fourth row: no angular velocity about the normal.

        Parameters
        ----------
        body, on : what rolls, and on what
        radius : of the disc's rim or the sphere, positive [m]
        center : (3,) of the disc or the sphere, in the body's frame [m]
        axle : of a disc, in the body's axes, "x", "y", "z" or a vector; None: it is a sphere
        point : (3,) of the plane, or the centre of the sphere, in the frame of `on` [m]
        normal : of the plane, towards the rolling body, in the axes of `on`; default: "z"
        on_radius : of the sphere that a sphere rolls on, negative where it rolls inside it, and then the larger one [m]; None: it is a
            plane
        spin : whether they may spin on each other, about the normal

        References
        ----------
        Li and Wu 2011, 4.6 (rolling disk; an arm's tip that rolls without spin on a sphere).

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("ball")
        >>> b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.1))
        >>> b.add_joint("float", sarrus.Free(), "ground", "ball")
        >>> b.add_rolling("contact", "ball", radius=0.1)
        >>> b.build().constraint("contact").holonomic
        (True, False, False)
        """
        name, what = self._new("constraint", name)
        size = values.checked_positive(radius, f"{what}: radius")
        other = None if on_radius is None else values.checked_number(on_radius, f"{what}: on_radius")
        if other is not None:
            if axle is not None:
                raise ModelError(f"{what}: a disc rolls on planes only; got an axle and on_radius = {on_radius!r}")
            if normal is not None:
                fault = f"normal is a plane's, and on_radius = {on_radius!r} makes it a sphere"
                raise ModelError(f"{what}: {fault}; got both")
            if other == 0.0:
                expected = "positive, or negative for the inside of a sphere"
                raise ModelError(f"{what}: on_radius must be {expected}; got {on_radius!r}")
            if -size <= other < 0.0:
                raise ModelError(f"{what}: a sphere of radius {radius!r} cannot roll inside one of radius {-other!r}")
        if self._known_body(body, what) == self._known_body(on, what):
            raise ModelError(f"{what}: body '{body}' cannot roll on itself")
        z = values.checked_direction("z" if normal is None else normal, f"{what}: normal")
        along = None if axle is None else values.checked_direction(axle, f"{what}: axle")
        self._constraints[name] = RollingSpec(
            name, body, size, values.checked_point(center, f"{what}: center"), along, on, values.checked_point(point, f"{what}: point"), z,
            other, checked_truth(f"{what}: spin", spin),
        )  # fmt: skip

    def add_constraint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        *,
        at_parent: Placement = None,
        at_child: Placement = None,
        **numbers: float,
    ) -> None:
        """Tie a frame of one body to a frame of another by a kind of constraint that has no method of its own.

        That is what a file in cpp/constraints adds to the library: CONTRIBUTING.md says how.

        Parameters
        ----------
        kind : as the core calls it
        parent, child : bodies
        at_parent, at_child : the frame on each; what it is of the child is told relative to that of the parent
        **numbers : of the kind

        Raises
        ------
        ModelError
            No such kind, or one with a method of its own; other numbers than it has.

        Examples
        --------
        >>> import sarrus
        >>> sarrus.Builder("swing").add_constraint("rod", "Distance", "ground", "bar", length=1.0)
        Traceback (most recent call last):
            ...
        sarrus.errors.ModelError: constraint 'rod': 'Distance' is no kind that add_constraint() knows: none is
        """
        name, what = self._new("constraint", name)
        if f"{kind}Spec" not in DECLARED:
            known = ", ".join(DECLARED) or "none is"
            raise ModelError(f"{what}: {kind!r} is no kind that add_constraint() knows: {known}")
        expected = KINDS[kind] or ()
        if set(numbers) != set(expected):
            got = ", ".join(numbers) or "none"
            raise ModelError(f"{what}: {kind} has the numbers {', '.join(expected)}; got {got}")
        ends = self._known_body(parent, what), self._known_body(child, what)
        _, *bodies, on_parent, on_child = values.joined(what, _WELD, *ends, at_parent, at_child)
        of_kind: dict[str, Any] = {key: values.checked_number(x, f"{what}: {key}") for key, x in numbers.items()}
        of_kind |= {"at_parent": on_parent, "at_child": on_child}
        self._constraints[name] = DECLARED[f"{kind}Spec"](name, *bodies, **of_kind)

    def add_pfaffian(
        self,
        name: str,
        rows: ArrayLike | Callable[[Any], Any],
        joints: Iterable[str],
        *,
        value: ArrayLike = 0.0,
        derivative: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Tie velocities by rows of your own, A(q) v = c, which hold no positions.

        Parameters
        ----------
        rows : (k, n) numbers for the n velocities of the joints; or a function of the mechanism's configuration, q (..., nq) to
            (..., k, n), which takes many at once: write ``q[..., i]``. It is tried when the mechanism is built. Pickling a mechanism
            wants it to have a name in a module
        joints : names, each once, in the order in which their velocities are stacked; as of :meth:`add_coupler`
        value : c, one number or (k,)
        derivative : function of configuration and velocity, q (..., nq) and v (..., nv) to dA/dt (..., k, n); central differences if
            not given

        Examples
        --------
        A skate's blade does not slip sideways:

        >>> import numpy as np
        >>> import sarrus
        >>> b = sarrus.Builder("skate")
        >>> b.add_body("skate", sarrus.Inertia.sphere(1.0, 0.1))
        >>> b.add_joint("ice", sarrus.Planar("z"), "ground", "skate")
        >>> b.add_pfaffian("blade", [[0.0, 1.0, 0.0]], ["ice"])
        >>> b.build().constraint_jacobian(np.zeros(3)).tolist()
        [[0.0, 1.0, 0.0]]
        """
        name, what = self._new("constraint", name)
        names = values.checked_names(joints, f"{what}: joints")
        if len(set(names)) < len(names):
            raise ModelError(f"{what} names a joint twice: {', '.join(names)}")
        n = sum(self._tree_joint(joint, what).joint.nv for joint in names)
        c = values.checked_sequence(value, f"{what}: value")
        if derivative is not None and not (callable(rows) and callable(derivative)):
            raise ModelError(f"{what}: derivative is a function of q and v, where rows is one of q; got {derivative!r}")
        if callable(rows):  # how many rows there are shows when it is called, which wants a mechanism
            self._constraints[name] = PfaffianSpec(name, rows, names, c, derivative)
            return
        A = values.checked_numbers(rows, f"{what}: rows", f"(k, {n}) finite numbers or a function of q", 2)
        if A.ndim != 2 or A.shape[1] != n or not A.size:
            raise ModelError(f"{what}: rows must be (k, {n}), for the velocities of {', '.join(names)}; got {A.shape}")
        c = values.per_row(c, len(A), what)
        self._constraints[name] = PfaffianSpec(name, tuple(map(tuple, A.tolist())), names, c)

    def set_home(self, home: Mapping[str, ArrayLike]) -> None:
        """Give a plausible configuration, where ``assemble`` starts: near one that closes the loops.

        Parameters
        ----------
        home : joint to its coordinates, (nq,) or a number for a single one [rad, m, quaternions (x, y, z, w)]; joints left out are at
            their neutral position, joints that close loops have none. It takes the place of an earlier one

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("pendulum")
        >>> b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
        >>> b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
        >>> b.set_home({"pivot": 0.5})
        >>> b.build().description.home
        (('pivot', (0.5,)),)
        """
        self._home = self._joint_coordinates(home, "home")

    def set_configuration(self, name: str, coordinates: Mapping[str, ArrayLike]) -> None:
        """Name a configuration, for ``robot.configuration(name)``. It takes the place of an earlier one of that name.

        Parameters
        ----------
        coordinates : as of :meth:`set_home`

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("pendulum")
        >>> b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
        >>> b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
        >>> b.set_configuration("raised", {"pivot": 3.0})
        >>> b.build().configuration("raised")
        array([3.])
        """
        name, what = self._new("configuration", name)
        self._configurations[name] = self._joint_coordinates(coordinates, what)

    # ---- the mechanism -----------------------------------------------------------------------------------------------

    def build(self) -> Mechanism:
        """The mechanism as described so far.

        Raises ModelError where a joint names a body that is not there, a body is not connected to the ground, a constraint or the home
        refers to a joint that closes a loop, a function does not return the rows that it should, or shapes may touch of which it is not
        known where. Warns with a :class:`~sarrus.ModelWarning` of what acts on nothing; the mechanism's `warnings` have it too. It warns of
        shapes that overlap at home.
        """
        check_printable("mechanism", self.name)
        if not self._bodies:
            raise ModelError("a mechanism needs at least one body")
        for joint in self._joints.values():
            for end in joint.bodies:
                if end != "ground" and end not in self._bodies:
                    hint = did_you_mean(end, [*self._bodies, "ground"])
                    raise ModelError(
                        f"joint '{joint.name}' refers to body '{printable(end)}', which does not exist{hint}"
                    )
        constraints = self._constraints
        functions = [c for c in constraints.values() if isinstance(c, PfaffianSpec) and callable(c.rows)]
        if functions:
            tree = Mechanism(self._described(()))
            self._check_home(tree)
            constraints = constraints | {spec.name: _tried(spec, tree) for spec in functions}
        mechanism = Mechanism(self._described(tuple(constraints.values())))
        self._check_home(mechanism)
        for text in doubtful(mechanism.description.joints):
            warn_of_model(text)
        if mechanism.description.shapes:
            from ..analysis.contacts import overlapping

            for text in overlapping(mechanism, start_near(mechanism, None, {}, 0.0)):
                warn_of_model(text)
        return mechanism

    def _check_home(self, mechanism: Mechanism) -> None:
        named = {f"configuration '{name}'": coordinates for name, coordinates in self._configurations.items()}
        for of, coordinates in {"home": self._home, **named}.items():
            for name in coordinates:
                if mechanism.joint(name).closes_loop:
                    what = f"{of} gives joint '{name}', which closes a loop and so has no coordinates"
                    raise ModelError(f"{what}: leave it out, or add it with tree=True")


# ---- rows that are a function of q -----------------------------------------------------------------------------------


def _tried(spec: PfaffianSpec, tree: Mechanism) -> PfaffianSpec:
    """The constraint with a value for each of the rows that its function is seen to return."""
    what = f"constraint '{spec.name}'"
    for name in spec.joints:
        if tree.joint(name).closes_loop:
            fault = f"{what} refers to joint '{name}', which closes a loop and so has no coordinates"
            raise ModelError(f"{fault}: add it with tree=True")
    v = np.array([0.0, 0.1])[:, None] * np.ones(tree.nv)
    states = tree.integrate(start_near(tree, None, {}, 0.0), v), v
    n, k = sum(tree.joint(name).nv for name in spec.joints), 0
    for label, function, arguments in (("rows", spec.rows, states[:1]), ("derivative", spec.derivative, states)):
        if not callable(function):
            continue
        called = f"{what}: {label}"
        one, two = (_returned(function, called, *(x[i] for x in arguments)) for i in (0, 1))
        k = k or len(one)
        if one.shape != (k, n) or not k:
            expected = f"({'k' if label == 'rows' else k}, {n})"
            raise ModelError(f"{called} must return {expected} for q of shape ({tree.nq},); got {one.shape}")
        try:
            # a function that takes q[i] for q[..., i], or makes one number of all states, shows here
            both = np.broadcast_to(_returned(function, called, *arguments), (2, k, n))
            least = 1e-9 * float(np.nan_to_num(np.abs(both), posinf=0.0).max(initial=0.0))
            alike = np.allclose(both, np.stack([one, two]), rtol=1e-9, atol=least, equal_nan=True)
            fault = "" if alike else "something else than for each of them"
        except (IndexError, TypeError, ValueError) as error:
            fault = f"an error ({error})"
        if fault:
            raise ModelError(
                f"{called} takes many states at once, q[..., i] being coordinate i, and returns (..., {k}, {n}); "
                f"for q of shape (2, {tree.nq}) it has {fault}"
            )
    return replace(spec, value=values.per_row(spec.value, k, what))


def _returned(function: Callable[..., Any], called: str, *arguments: Array) -> Array:
    with np.errstate(all="ignore"):  # rows need not be finite here
        rows = np.asarray(function(*arguments))
    if rows.dtype.kind not in "fiu" or rows.ndim < 2:
        raise ModelError(f"{called} must return an array (..., k, n) of numbers; got {rows!r}")
    return rows.astype(np.float64)
