"""The Builder: bodies, joints between any two of them, and other constraints, one call each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike
from .._renamed import renamed_arguments
from ..analysis.joint_targets import start_near
from ..description.constraints import DECLARED, KINDS, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec
from ..description.contacts import NO_CONTACTS, SOME_CONTACTS, ContactSpec, PointsFunction, ShapeSpec
from ..description.joints import PARAMETERS, Cable, Fixed, JointType
from ..description.specs import BodySpec, FrameSpec, JointSpec, SpringSpec, VisualSpec
from ..errors import ModelError, check_printable, warn_of_model
from ..laws import Law, as_law
from ..mechanism import Mechanism
from ..shapes import ContactShape, Shape
from ..spatial import Inertia
from . import values
from .changes import Changes
from .values import BodyPoint, Coordinate, Placement

_WELD = Fixed()


class Builder(Changes):
    """A description in progress: bodies, joints and other constraints, from which :meth:`build` makes a :class:`~sarrus.Mechanism`.

    Parameters
    ----------
    name : str
    gravity : (3,) acceleration of free fall in the world's axes [m/s2]

    Raises
    ------
    ModelError
        From all methods: a duplicate name (joints and constraints share one space), an object of the wrong type, numbers that are not
        finite or have the wrong sign, a body tied to itself. A refused call changes nothing.
    NameNotFoundError
        A body or joint that does not exist. Parts must be added before other parts refer to them, except for the bodies of joints.

    Notes
    -----
    The world is the body "ground". Any two bodies may be joined. A joint between bodies that other joints already connect closes a
    loop. The library chooses the loop joints: the spanning tree has the least depth, with actuated joints in it if possible. Joints must
    connect every moving body to the ground; a floating robot has a :class:`~sarrus.Free` joint there.

    A Transform, or a translation (3,) [m], places a frame, a shape or a joint in a body; default: at the body's frame. Points are (body,
    (3,) in its frame [m]).

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
        self._add(BodySpec, name, Inertia.zero() if inertia is None else inertia)

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
        """Add a joint between two bodies, which may be added later.

        Parameters
        ----------
        joint : a joint type, e.g. ``sarrus.Revolute("z")``; its axes are in the joint's frame
        parent, child : names of bodies, or of frames that were added before
        at_parent, at_child : placement of the joint's frame in either body
        actuated : True if a motor drives it
        tree, loop : hints for joints of a loop, not both. `tree` keeps it in the spanning tree, so that q contains its coordinates; `loop`
            makes it a loop joint
        """
        self._add(JointSpec, name, joint, parent, child, at_parent, at_child, actuated, tree, loop)

    def add_frame(self, name: str, body: str, placement: Placement = None) -> None:
        """Add a named frame to a body: a tool, a sensor, a point of application. Each body's own frame has the body's name."""
        self._add(FrameSpec, name, body, placement)

    def add_visual(
        self, body: str, shape: Shape, placement: Placement = None, *, color: str | ArrayLike | None = None
    ) -> None:
        """Add a visual to a body for :func:`sarrus.view`; a body may have several. Bodies without visuals are shown as bars.

        Parameters
        ----------
        shape : a ``Box``, ``Cylinder``, ``Sphere`` or ``Mesh`` of :mod:`sarrus.shapes`
        color : red, green, blue (and opacity) from 0 to 1, or text such as "#4477aa"; default: the mesh's own, else one per body

        Notes
        -----
        Mesh files are opened when they are shown. Computations do not require them.

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
        self._add(VisualSpec, body, shape, placement, color)

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
        """Add collision geometry to a body, or to the ground; :meth:`~sarrus.Mechanism.contacts` returns the contact points.

        Parameters
        ----------
        body : its name; "ground" for the world
        shape : a ``Box``, ``Capsule``, ``ConvexPoints``, ``Cylinder``, ``Ellipsoid``, ``Mesh``, ``Plane``, ``Point``, ``Sphere`` or ``Terrain`` of :mod:`sarrus.shapes`
        placement : of the shape's frame in the body
        friction : Coulomb's coefficient; default: the other shape's. A pair has the geometric mean of its shapes' coefficients; 1 if neither
            has one
        restitution : from 0 to 1, likewise; default of a pair: 0
        torsional_friction, rolling_friction : lever arms [m], likewise; default of a pair: 0. At a normal force f the moments that resist
            spinning about the normal and rolling are at most these times f
        name : of the shape; default: the body's, with a number after it from the second shape on
        group : a name that shapes share, for :meth:`set_contact`

        Notes
        -----
        By default, shapes of bodies that a joint connects do not touch each other, nor do shapes of bodies welded together. The ground touches
        all bodies that are not welded to it. :meth:`set_contact` changes that.

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
        name = self._core.shape_name(body) if name is None else name
        coefficients = friction, restitution, group, torsional_friction, rolling_friction
        self._add(ShapeSpec, name, body, shape, placement, *coefficients)
        # a caller who adds a shape to those of a file needs to see whether it acts
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
        """Set whether two shapes may touch, and the coefficients of the pair. A later call for the same pair replaces an earlier one.

        Parameters
        ----------
        first, second : names of shapes or groups; a group twice: the pairs within it. Settings of shapes take precedence over those of groups
        enabled : False: they pass through each other
        friction, restitution, torsional_friction, rolling_friction : of the pair; default: those of the shapes, see :meth:`add_shape`
        points : the contact points of a pair without a closed form, such as two meshes. It is a function of the shapes' poses (4, 4) in the
            world and the largest distance [m] of points. It returns at most four points: positions (n, 3) midway between the surfaces [m]; unit
            normals (n, 3), which push the first shape away from the second; distances (n,) [m], negative in penetration. It is called if the
            bounding spheres of the shapes come near each other, and must return points in the same order from step to step. For ``contacts`` and
            :func:`~sarrus.simulate`, not for ``simulate_many``; JSON cannot store it

        Raises
        ------
        ModelError
            No shape or group has such a name, or both shapes are on one body; `points` of groups, or with ``enabled=False``.

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
        if points is not None and not callable(points):
            called = f"contact of '{first}' and '{second}'"
            raise TypeError(f"{called}: points must be a function of two poses and a distance; got {points!r}")
        coefficients = friction, restitution, torsional_friction, rolling_friction
        self._add(ContactSpec, first, second, enabled, *coefficients, points)

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
        """Add a spring between two points: its tension is stiffness (length - rest_length) + damping d(length)/dt, along their line.

        It acts in forward and inverse dynamics, bias forces, reactions and potential energy, but not in ``gravity_forces``,
        ``coriolis_matrix`` and ``regressor``. Points that coincide have no line, and no force.

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
        self._add(SpringSpec, name, first, second, stiffness, rest_length, damping)

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
        """Add a cable: a line between points of two bodies, whose length is a coordinate, as of a loop joint.

        By itself it constrains nothing and weighs nothing. A motor along it is a winch. `stiffness` and `damping` are a spring, which pushes
        too. A :class:`~sarrus.control.EndStop` at the length at which the cable is taut pulls only; for several cables, at the sum of their
        lengths. It has a spring, or none in steps of ``method="contact"``. Efforts have the sign of the length: negative efforts pull.

        Parameters
        ----------
        first, second : points; the first may have a pulley. A pulley with inertia, or two, are bodies of their own
        radius, axis : of a pulley at the first point; radius 0: none [m]. The cable arrives there along the axis, in the axes of the first body,
            tangent to the rim. The pulley swivels about that tangent so that the second point is in its plane. The length starts there: around
            the rim, then straight
        actuated : True if a motor drives it
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
        A weight of 2 kg on a rope of 1 m falls from 0.3 m above the end of the rope:

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
        from_, to = self._core.ends(first, second, f"cable '{name}'")
        type_ = Cable(axis, radius, **passive)
        self._add(JointSpec, name, type_, from_[0], to[0], from_[1], to[1], actuated, False, True)

    def add_distance(self, name: str, first: BodyPoint, second: BodyPoint, *, length: float) -> None:
        """Add a massless rod between points of two bodies, with a ball joint at either end. One row.

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
        self._add(DistanceSpec, name, first, second, length)

    def add_coupler(self, name: str, coordinates: Mapping[Any, ArrayLike], *, offset: Law | float = 0.0) -> None:
        """Add a relation of joint coordinates: a gear, a belt, a differential, a cam. One row, sum of P_i(q_i) = offset.

        Parameters
        ----------
        coordinates : joint, or (joint, index) if it has several coordinates, to the coefficients of its polynomial: a number r for
            r q, a sequence (c1, c2, ...) for c1 q + c2 q^2 + ...
        offset : a number, or a law of time: what drives a differential [rad, m]

        Raises
        ------
        ModelError
            A coordinate twice, or zeros only. A coordinate whose rate is no velocity: all of Spherical and Free joints, the displacements of
            Planar joints. A loop joint, which has no coordinates; if the library chooses the loop joint, :meth:`build` raises: add the
            joint with ``tree=True``.

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
        by_coordinate = values.checked_dict(coordinates, f"constraint '{name}'", "joints to coefficients")
        terms = tuple(values.term(coordinate, coefficients) for coordinate, coefficients in by_coordinate.items())
        law = offset if isinstance(offset, Law) else None
        self._add(CouplerSpec, name, terms, 0.0 if law else offset, law)

    def add_prescribed_motion(self, name: str, joint: Coordinate, law: Law | float) -> None:
        """Prescribe a coordinate of a joint, q(t) = law(t). One row; the joint keeps its place in q.

        Parameters
        ----------
        joint : its name, or (name, index) if it has several coordinates; see :meth:`add_coupler`
        law : of time, from :mod:`sarrus.laws` [rad, m]; a number locks the coordinate. A coordinate has one law at most

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
        law = as_law(law, f"constraint '{name}': law")
        self._add(CouplerSpec, name, (values.term(joint, (1.0,)),), 0.0, law)

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
        """Prescribe the motion of a body: add a loop joint whose frame on the parent moves by laws of time.

        A :class:`~sarrus.Gimbal` with the laws' values moves that frame from `at_parent`. The body's frame follows it in the directions that the
        joint constrains: the frame motion g^c(t) of van der Merwe 5.22.

        Parameters
        ----------
        body : whose motion is prescribed
        laws : some of "rx", "ry", "rz", "tx", "ty", "tz" to laws of time or numbers [rad, m]; the others stay zero
        joint : between the moving frame and the body; default: a weld
        at_parent, at_child : placement of the frame on `relative_to` if all laws are zero, and of the frame on the body
        relative_to : body in whose frame the laws are given

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
        subject = f"constraint '{name}'"
        by_parameter = values.checked_dict(laws, subject, f"some of {' '.join(PARAMETERS)} to laws")
        for parameter in by_parameter:
            if parameter not in PARAMETERS:
                raise ModelError(f"{subject}: laws are for {' '.join(PARAMETERS)}; got {parameter!r}")
        six = tuple(as_law(laws[p], f"{subject}: {p}") if p in by_parameter else None for p in PARAMETERS)
        self._add(JointSpec, name, joint, relative_to, body, at_parent, at_child, False, False, True, six)

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
        """Add a rolling contact without slip, which lasts: of a disc or a sphere on a plane, or of a sphere on a sphere.

        Three rows: the contact points of both bodies have the same velocity along the normal (holonomic: the bodies touch) and in two
        tangential directions (nonholonomic). A disc may lean. Without spin there is a fourth row: no angular velocity about the normal.

        Parameters
        ----------
        body, on : the rolling body, and the body on which it rolls
        radius : of the disc's rim or the sphere, positive [m]
        center : (3,) of the disc or the sphere, in the body's frame [m]
        axle : of a disc, in the body's axes, "x", "y", "z" or a vector; None: the body is a sphere
        point : (3,) of the plane, or the centre of the sphere, in the frame of `on` [m]
        normal : of the plane, towards the rolling body, in the axes of `on`; default: "z"
        on_radius : of the sphere on which a sphere rolls [m]; negative, and larger than `radius`, if it rolls inside that; None: a plane
        spin : True if they may spin on each other about the normal

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
        if on_radius is not None and normal is not None:
            fault = f"normal is a plane's, and on_radius = {on_radius!r} makes it a sphere"
            raise ModelError(f"constraint '{name}': {fault}; got both")
        z = "z" if normal is None else normal
        self._add(RollingSpec, name, body, radius, center, axle, on, point, z, on_radius, spin)

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
        """Add a constraint between frames of two bodies, of a kind without a method of its own.

        A file in cpp/constraints adds such a kind to the library: see CONTRIBUTING.md.

        Parameters
        ----------
        kind : its name in the core
        parent, child : bodies
        at_parent, at_child : placement of the frame on each; the constraint relates the child's frame to the parent's
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
        sarrus.errors.ModelError: constraint 'rod': 'Distance' is no kind of add_constraint(); expected none
        """
        subject = f"constraint '{name}'"
        if f"{kind}Spec" not in DECLARED:
            kinds = ", ".join(DECLARED) or "none"
            raise ModelError(f"{subject}: {kind!r} is no kind of add_constraint(); expected {kinds}")
        expected = KINDS[kind] or ()
        if set(numbers) != set(expected):
            got = ", ".join(numbers) or "none"
            raise ModelError(f"{subject}: {kind} has the numbers {', '.join(expected)}; got {got}")
        fields: dict[str, Any] = {"at_parent": at_parent, "at_child": at_child, **numbers}
        self._add(partial(DECLARED[f"{kind}Spec"], **fields), name, parent, child)

    def add_pfaffian(
        self,
        name: str,
        rows: ArrayLike | Callable[[Any], Any],
        joints: Iterable[str],
        *,
        value: ArrayLike = 0.0,
        derivative: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Add constraint rows on velocities, A(q) v = c, which do not constrain positions.

        Parameters
        ----------
        rows : (k, n) numbers for the n velocities of the joints; or a function of the mechanism's configuration, q (..., nq) to
            (..., k, n), which takes many at once: write ``q[..., i]``. :meth:`build` calls it once. To pickle the mechanism, define it at
            the top level of a module
        joints : names, each once, in the order in which their velocities are stacked; see :meth:`add_coupler`
        value : c, one number or (k,)
        derivative : function of configuration and velocity, q (..., nq) and v (..., nv) to dA/dt (..., k, n); default: central differences

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
        if derivative is not None and not (callable(rows) and callable(derivative)):
            fault = "derivative is a function of q and v, where rows is one of q"
            raise ModelError(f"constraint '{name}': {fault}; got {derivative!r}")
        self._add(PfaffianSpec, name, rows, joints, value, derivative)

    def set_home(self, home: Mapping[str, ArrayLike]) -> None:
        """Set a plausible configuration, at which ``assemble`` starts: near one that closes the loops.

        Parameters
        ----------
        home : joint to its coordinates, (nq,) or a number for a single one [rad, m, quaternions (x, y, z, w)]; other joints are at their
            neutral position, and loop joints have no coordinates. A later call replaces an earlier one

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
        self._home = self._core.set_home(values.checked_dict(home, "home", "joints to coordinates"))

    def set_configuration(self, name: str, coordinates: Mapping[str, ArrayLike]) -> None:
        """Add a named configuration, for ``robot.configuration(name)``. It replaces an earlier one of that name.

        Parameters
        ----------
        coordinates : see :meth:`set_home`

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
        by_joint = values.checked_dict(coordinates, f"configuration '{name}'", "joints to coordinates")
        self._configurations[name] = self._core.set_configuration(name, by_joint)

    # ---- the mechanism -----------------------------------------------------------------------------------------------

    def build(self) -> Mechanism:
        """Return the mechanism as described so far.

        Raises ModelError if a joint refers to a body that does not exist, a body is not connected to the ground, a constraint or the home
        refers to a loop joint, a function does not return the rows that it should, or shapes may touch whose contact points have no closed form.
        Emits a :class:`~sarrus.ModelWarning` for numbers that have no effect, which the mechanism's `warnings` list too, and for shapes that
        overlap at home.
        """
        check_printable("mechanism", self.name)
        self._core.complete()
        constraints = self._constraints
        functions = [c for c in constraints.values() if isinstance(c, PfaffianSpec) and callable(c.rows)]
        if functions:
            tree = Mechanism(self._described(()))
            self._check_home(tree)
            constraints = constraints | {spec.name: _tried(spec, tree) for spec in functions}
        mechanism = Mechanism(self._described(tuple(constraints.values())))
        self._check_home(mechanism)
        for text in _core.doubtful(mechanism.description.joints):
            warn_of_model(text)
        if mechanism.description.shapes:
            from ..analysis.contacts import overlapping

            for text in overlapping(mechanism, start_near(mechanism, None, {}, 0.0)):
                warn_of_model(text)
        return mechanism

    def _check_home(self, mechanism: Mechanism) -> None:
        named = {f"configuration '{name}'": coordinates for name, coordinates in self._configurations.items()}
        for subject, coordinates in {"home": self._home, **named}.items():
            for name in coordinates:
                if mechanism.joint(name).closes_loop:
                    fault = f"{subject} gives joint '{name}', which closes a loop and so has no coordinates"
                    raise ModelError(f"{fault}: leave it out, or add it with tree=True")


# ---- rows that are a function of q -----------------------------------------------------------------------------------


def _tried(spec: PfaffianSpec, tree: Mechanism) -> PfaffianSpec:
    """Return the constraint with a value for each of the rows that its function returns."""
    subject = f"constraint '{spec.name}'"
    for name in spec.joints:
        if tree.joint(name).closes_loop:
            fault = f"{subject} refers to joint '{name}', which closes a loop and so has no coordinates"
            raise ModelError(f"{fault}: add it with tree=True")
    v = np.array([0.0, 0.1])[:, None] * np.ones(tree.nv)
    states = tree.integrate(start_near(tree, None, {}, 0.0), v), v
    n, k = sum(tree.joint(name).nv for name in spec.joints), 0
    for label, function, arguments in (("rows", spec.rows, states[:1]), ("derivative", spec.derivative, states)):
        if not callable(function):
            continue
        called = f"{subject}: {label}"
        first, second = (_returned(function, called, *(x[i] for x in arguments)) for i in (0, 1))
        k = k or len(first)
        if first.shape != (k, n) or not k:
            expected = f"({'k' if label == 'rows' else k}, {n})"
            raise ModelError(f"{called} must return {expected} for q of shape ({tree.nq},); got {first.shape}")
        try:
            # a function that takes q[i] for q[..., i], or makes one number of all states, shows here
            both = np.broadcast_to(_returned(function, called, *arguments), (2, k, n))
            least = 1e-9 * float(np.nan_to_num(np.abs(both), posinf=0.0).max(initial=0.0))
            alike = np.allclose(both, np.stack([first, second]), rtol=1e-9, atol=least, equal_nan=True)
            fault = "" if alike else "something else than for each of them"
        except (IndexError, TypeError, ValueError) as error:
            fault = f"an error ({error})"
        if fault:
            raise ModelError(
                f"{called} must accept many states at once (q[..., i] is coordinate i) and return (..., {k}, {n}); "
                f"for q of shape (2, {tree.nq}) it has {fault}"
            )
    return replace(spec, value=_core.per_row(spec.value, k, subject))


def _returned(function: Callable[..., Any], called: str, *arguments: Array) -> Array:
    with np.errstate(all="ignore"):  # rows need not be finite here
        rows = np.asarray(function(*arguments))
    if rows.dtype.kind not in "fiu" or rows.ndim < 2:
        raise ModelError(f"{called} must return an array (..., k, n) of numbers; got {rows!r}")
    return rows.astype(np.float64)
