"""The Builder, which adds a body, a joint between any two bodies, or another constraint with each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, checked_truth
from .._renamed import renamed_arguments, renamed_attribute
from ..description import joints as joint_types
from ..description.constraints import DECLARED, KINDS, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec
from ..description.joints import PARAMETERS, Cable, Fixed, JointType, Prismatic, Revolute
from ..description.specs import BodySpec, FrameSpec, JointSpec, SpringSpec, VisualSpec
from ..errors import ModelError, check_printable, warn_of_model
from ..laws import Law, as_law
from ..mechanism import Mechanism
from ..spatial import Inertia
from .changes import BodyPoint, Changes, Coordinate, Pair, Placement, checked_dict, is_product, product, term

if TYPE_CHECKING:
    from ..description.contacts import PointsFunction
    from ..shapes import ContactShape, Shape

_WELD = Fixed()


class Builder(Changes):
    """Builder of a mechanism: add bodies, joints and other constraints; then :meth:`build` returns a :class:`~sarrus.Mechanism`.

    Parameters
    ----------
    name : name of the mechanism
    gravity : (3,) acceleration of free fall in the world's axes [m/s2]

    Raises
    ------
    ModelError
        All methods raise it for a duplicate name (joints and constraints must have different names, too), an object of the wrong type, values that
        are not finite or have the wrong sign, and a connection of a body to itself. A call that raises an error changes nothing.
    NameNotFoundError
        All methods raise it for a body or joint that does not exist. Only the bodies of a joint may be added after the joint.

    Notes
    -----
    The world is the body "ground". A joint may connect any two bodies. If other joints already connect these bodies, it closes a loop. The library
    selects the loop joints such that the spanning tree has the least depth and contains the actuated joints if possible. Joints must
    connect every moving body to the ground; for a floating robot, use a :class:`~sarrus.Free` joint.

    A placement of a frame, a shape or a joint in a body is a Transform, or a translation (3,) [m]; default: at the body's frame. A point is (name of
    the body, (3,) position in the body's frame [m]).

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

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    # ---- bodies, joints, frames --------------------------------------------------------------------------------------

    def add_body(self, name: str, inertia: Inertia | None = None) -> None:
        """Add a rigid body.

        Parameters
        ----------
        name : name of the body
        inertia : mass [kg], centre of mass [m] and inertia tensor [kg m2] as an :class:`~sarrus.Inertia`; None: massless
        """
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
        """Add a joint between two bodies; the bodies may be added later.

        Parameters
        ----------
        name : name of the joint
        joint : joint type, e.g. ``sarrus.Revolute("z")``; its axes are in the joint's frame
        parent, child : names of bodies, or of frames that were added before
        at_parent, at_child : placements of the joint's frame in the parent and in the child, Transforms or (3,) [m]
        actuated : True if a motor drives the joint
        tree, loop : True selects the role of a joint in a loop. `tree`: a tree joint, whose coordinates are in q; `loop`: a loop joint. At most one
            of both is True; by default the library decides
        """
        self._add(JointSpec, name, joint, parent, child, at_parent, at_child, actuated, tree, loop)

    def add_frame(self, name: str, body: str, placement: Placement = None) -> None:
        """Add a named frame to a body, such as a tool, a sensor, or a point of application of a force.

        The frame of a body itself exists already, and has the body's name.

        Parameters
        ----------
        name : name of the frame
        body : name of the body
        placement : placement in the body, a Transform or (3,) [m]; default: at the body's frame
        """
        self._add(FrameSpec, name, body, placement)

    def add_visual(
        self, body: str, shape: Shape, placement: Placement = None, *, color: str | ArrayLike | None = None
    ) -> None:
        """Add a visual shape to a body for :func:`sarrus.view`; a body may have several. Bodies without visuals are displayed as bars.

        Parameters
        ----------
        body : name of the body
        shape : a ``Box``, ``Cylinder``, ``Sphere`` or ``Mesh`` of :mod:`sarrus.shapes`
        placement : placement of the shape in the body, a Transform or (3,) [m]; default: at the body's frame
        color : (3,) or (4,) red, green, blue (and opacity) from 0 to 1 (dimensionless), or text such as "#4477aa". Default: the colours of the mesh
            file, otherwise a colour for each body

        Notes
        -----
        Mesh files are read only for display. Computations do not require them.

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

    # ---- collision shapes --------------------------------------------------------------------------------------------

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
        body : name of the body; "ground" for the world
        shape : a ``Box``, ``Capsule``, ``ConvexPoints``, ``Cylinder``, ``Ellipsoid``, ``Mesh``, ``Plane``, ``Point``, ``Sphere`` or ``Terrain`` of :mod:`sarrus.shapes`
        placement : placement of the shape's frame in the body, a Transform or (3,) [m]; default: at the body's frame
        friction : Coulomb coefficient (dimensionless). A pair of shapes has the geometric mean of both coefficients. If only one shape has a
            coefficient, the pair has this coefficient; if neither has, the pair has 1
        restitution : coefficient of restitution from 0 to 1 (dimensionless), combined like `friction`; if neither shape has one, the pair has 0
        torsional_friction, rolling_friction : largest moments against spinning about the normal and against rolling, per normal force [m], combined
            like `friction`; if neither shape has one, the pair has 0
        name : name of the shape; default: the body's name, followed by a number from the second shape of the body on
        group : name of a group of shapes, for :meth:`set_contact`

        Notes
        -----
        By default, shapes of bodies that a joint connects do not touch each other, nor do shapes of bodies that are welded to each other. Shapes of
        the ground touch all bodies that are not welded to it. :meth:`set_contact` changes these defaults.

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
        from ..description.contacts import NO_CONTACTS, SOME_CONTACTS, ShapeSpec

        name = self._core.shape_name(body) if name is None else name
        coefficients = friction, restitution, group, torsional_friction, rolling_friction
        self._add(ShapeSpec, name, body, shape, placement, *coefficients)
        # a file's warning states that only method='contact' uses its shapes. Shorten this warning, because the caller adds a shape on purpose
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
        first, second : names of shapes or groups; the same group twice means all pairs within the group. Settings of shapes take precedence over
            settings of groups
        enabled : True: the shapes touch; False: they pass through each other
        friction, restitution, torsional_friction, rolling_friction : coefficients of the pair [dimensionless, dimensionless, m, m]; default: combined
            from the shapes, see :meth:`add_shape`
        points : function that computes the contact points of a pair for which sarrus has no formula, such as two meshes. Its arguments are the poses
            (4, 4) of both shapes in the world and the largest distance of points [m]. It returns at most four points: positions (n, 3) midway between
            the surfaces [m]; unit normals (n, 3) from the second shape to the first; distances (n,), negative for penetration [m]. It is called if
            the bounding spheres of the shapes are near each other, and must return points in the same order from step to step. It is used by
            ``contacts`` and :func:`~sarrus.simulate`, not by ``simulate_many``, and cannot be saved to JSON

        Raises
        ------
        ModelError
            - No shape or group has this name, or both shapes belong to the same body.
            - `points` is an argument for groups, or with ``enabled=False``.

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
        from ..description.contacts import ContactSpec

        if points is not None and not callable(points):
            called = f"contact of '{first}' and '{second}'"
            raise TypeError(f"{called}: points must be a function of two poses and a distance; got {points!r}")
        coefficients = friction, restitution, torsional_friction, rolling_friction
        self._add(ContactSpec, first, second, enabled, *coefficients, points)

    # ---- springs and other constraints -------------------------------------------------------------------------------

    def add_spring(
        self,
        name: str,
        first: BodyPoint,
        second: BodyPoint,
        *,
        stiffness: float,
        rest_length: float,
        damping: float = 0.0,
        quadratic_stiffness: float = 0.0,
        cubic_stiffness: float = 0.0,
        quadratic_damping: float = 0.0,
        cubic_damping: float = 0.0,
    ) -> None:
        """Add a spring between two points, with the tension stiffness (length - rest_length) + damping d(length)/dt along the line between them.

        The spring acts in forward and inverse dynamics, bias forces, reactions and potential energy, but not in ``gravity_forces``,
        ``coriolis_matrix`` and ``regressor``. If the points coincide, the force is zero.

        Parameters
        ----------
        name : name of the spring
        first, second : end points, each (body, (3,) position in the body's frame [m])
        stiffness, damping : stiffness and damping, not negative [N/m, N s/m]
        rest_length : length at zero force, not negative [m]
        quadratic_stiffness, cubic_stiffness : with the stretch x, the tension increases by quadratic_stiffness x² + cubic_stiffness x³ [N/m², N/m³]
        quadratic_damping, cubic_damping : with the rate v, it increases by quadratic_damping v |v| + cubic_damping v³ [N s²/m², N s³/m³]

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
        nonlinear = quadratic_stiffness, cubic_stiffness, quadratic_damping, cubic_damping
        self._add(SpringSpec, name, first, second, stiffness, rest_length, damping, *nonlinear)

    def add_beam(
        self,
        name: str,
        parent: str,
        *,
        length: float,
        mass_per_length: float,
        elements: int = 20,
        EI: Pair = None,
        GA: Pair = None,
        EA: float | None = None,
        GJ: float | None = None,
        rotary_inertia: Pair = 0.0,
        damping: float = 0.0,
        at_parent: Placement = None,
    ) -> None:
        """Add a straight elastic beam: a chain of rigid bodies whose joints have the stiffness of the beam.

        The beam is clamped to the parent; its axis is x of the frame `at_parent`. It has the bodies NAME_0 to NAME_n, whose frames are the nodes at
        the distances k length / n, the frames NAME_start and NAME_end, and the joints NAME_clamp and NAME_element_1 to
        NAME_element_n. Rotations may be large, strains
        must be small. To connect the other end, add a joint to the frame NAME_end.

        Parameters
        ----------
        name : name of the beam, with which the names of its parts begin
        parent : name of the body or frame to which the beam is clamped
        length, mass_per_length : length and mass per length, positive [m, kg/m]
        elements : number n of elements, from 1 to 1000
        EI : bending stiffness about y and z, a number or a pair [N m²]; None in this and the following arguments: rigid, without coordinate
        GA : shear stiffness along y and z, with the shear correction factor, a number or a pair [N]; ``np.inf``: no shear strain
        EA, GJ : axial and torsional stiffness [N, N m²]
        rotary_inertia : inertia of the cross section per length, density times second moment of area, about y and z, a number or a pair [kg m]. The
            inertia about x is their sum
        damping : ratio of the damping of each joint to its stiffness [s]; a mode of angular frequency w then has the damping ratio damping w / 2
        at_parent : placement of the beam's start in the parent, a Transform or (3,) [m]; default: at the parent's frame

        Notes
        -----
        Each element has a :class:`~sarrus.Gimbal` at its centre, or a Revolute or Prismatic joint if it has one coordinate. Angles have the order x, y, z;
        bending about y must be less than a quarter revolution per element. With GA, small static displacements are exact for loads at nodes. Without
        GA, the deflection by a force at the end is too small by 1 / (4 n²), and the first three frequencies are more accurate. docs/beam.md has the
        errors.

        References
        ----------
        Winget and Huston 1976; Wittbrodt, Adamiec-Wójcik and Wojciech 2006.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("cantilever", gravity=(0, 0, 0))
        >>> b.add_beam("beam", "ground", length=1.0, mass_per_length=0.2, EI=(50.0, None), GA=(None, 4e5))
        >>> robot = b.build()
        >>> force = robot.jacobian(robot.neutral(), "beam_end").T @ [0, 0, 0, 0, 0, -1.5]
        >>> q = sarrus.equilibrium(robot, tau=force).q
        >>> robot.pose(q, "beam_end")[2, 3].round(5).item()  # -F L³ / (3 EI) - F L / GA
        -0.01
        """
        numbers = {
            "length": length, "mass_per_length": mass_per_length, "elements": elements, "EI": EI, "GA": GA, "EA": EA,
            "GJ": GJ, "rotary_inertia": rotary_inertia, "damping": damping,
        }  # fmt: skip
        bodies, kind, fields, joints, frames = self._core.beam(name, parent, at_parent, numbers)
        for body, *inertia in bodies:
            self._add(BodySpec, body, Inertia(*inertia))
        element = getattr(joint_types, kind)(**fields)
        for k, (joint, *ends) in enumerate(joints):
            clamp = (_WELD, parent, f"{name}_0", at_parent, None)
            self._add(JointSpec, joint, *((element, *ends) if k else clamp), False, True, False)
        for frame, body in frames:
            self._add(FrameSpec, frame, body)

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
        """Add a cable: a massless line between points of two bodies, whose length is a coordinate like that of a loop joint.

        Without further elements, a cable exerts no force:

        - A motor acts as a winch. Efforts have the sign of the length: negative efforts pull.
        - `stiffness` and `damping` act as a spring, which pulls and pushes.
        - A :class:`~sarrus.control.EndStop` at the length at which the cable is taut only pulls. For a rope over several cables, use an EndStop at
          the sum of their lengths. The EndStop is elastic; with ``method="contact"`` it is rigid.

        Parameters
        ----------
        name : name of the cable
        first, second : end points, each (body, (3,) position in the body's frame [m]). The first point may have a pulley. A pulley with inertia, or a
            second pulley, must be a separate body
        radius, axis : radius [m] of the pulley at the first point, 0 for none, and direction from which the cable arrives there, in the axes of the
            first body. The cable arrives tangent to the rim. The pulley swivels about this tangent so that the second point is in its plane. The
            length begins at the first point: around the rim, then straight to the second point
        actuated : True if a motor drives the cable
        passive : limits, effort_limit, velocity_limit, armature (of a winch [kg]), stiffness, rest, damping, friction: as for every joint type

        Raises
        ------
        ModelError
            A point has no body, both points are on the same body, or the radius is negative.

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
        """Add a massless rod between points of two bodies, with a ball joint at each end: one constraint row.

        Parameters
        ----------
        name : name of the constraint
        first, second : end points, each (body, (3,) position in the body's frame [m])
        length : length of the rod, positive [m]

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

    def add_coupler(
        self, name: str, coordinates: Mapping[Any, ArrayLike | Law | Sequence[Law]], *, offset: Law | float = 0.0
    ) -> None:
        """Add a relation of joint coordinates, such as a gear, a belt, a differential or a cam: one constraint row, sum of terms = offset.

        Each entry of `coordinates` is a term [rad, m], a function of one coordinate or a product of functions of several:

        ===========================  =============================  ===================================================
        key                          value                          term
        ===========================  =============================  ===================================================
        "a"                          number r                       r a
        "a"                          numbers (c1, c2, ...)          c1 a + c2 a^2 + ...
        "a"                          function f                     f(a)
        ("a", "b", ...)              number r                       r a b ...
        ("a", "b", ...)              functions (f, g, ...)          f(a) g(b) ...
        ===========================  =============================  ===================================================

        A coordinate is the name of a joint, or (name, index) if the joint has several coordinates. A function is one of :mod:`sarrus.laws`, such as
        ``table`` or ``harmonic``, whose argument is the coordinate [rad, m] instead of the time. For a second term of a coordinate, write ``("a",)``.

        Parameters
        ----------
        name : name of the constraint
        coordinates : dict of the terms, see above
        offset : right-hand side, a number or a function of time (``sarrus.laws``), which drives a differential [rad, m]

        Raises
        ------
        ModelError
            - A coordinate occurs twice in polynomials, or all terms are constant.
            - A product does not have one function for each coordinate.
            - The rate of a coordinate is not a velocity: Spherical and Free joints, and displacements of Planar joints.
            - A joint is a loop joint, which has no coordinates. If the library selects it as a loop joint, :meth:`build` raises the error; add the
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

        An eccentric lifts a follower by 10 mm, z = 0.01 (1 - cos(angle)):

        >>> b = sarrus.Builder("eccentric")
        >>> for body in ("cam", "follower"):
        ...     b.add_body(body, sarrus.Inertia.sphere(1.0, 0.05))
        >>> b.add_joint("shaft", sarrus.Revolute("y"), "ground", "cam", tree=True)
        >>> b.add_joint("lift", sarrus.Prismatic("z"), "ground", "follower", tree=True)
        >>> profile = sarrus.laws.harmonic(-0.01, rate=1.0, phase=np.pi / 2, offset=0.01)
        >>> b.add_coupler("contact", {"lift": 1.0, "shaft": -profile})
        >>> eccentric = b.build()
        >>> float(eccentric.assemble(fixed={"shaft": np.pi / 2})[1].round(12))
        0.01
        """
        subject = f"constraint '{name}'"
        by_coordinate = checked_dict(coordinates, subject, "joints to coefficients")
        terms = tuple(term(key, value) for key, value in by_coordinate.items() if not is_product(key, value))
        products = tuple(product(key, value, subject) for key, value in by_coordinate.items() if is_product(key, value))
        law = offset if isinstance(offset, Law) else None
        self._add(CouplerSpec, name, terms, 0.0 if law else offset, law, products)

    def add_transmission(
        self,
        name: str,
        motors: Iterable[str],
        joints: Iterable[Coordinate],
        matrix: ArrayLike,
        *,
        rotor_inertia: ArrayLike = 0.0,
        offset: ArrayLike = 0.0,
        base: str | None = None,
        linear: bool = False,
        **properties: Any,
    ) -> None:
        """Add motors that drive joints through gears, belts or cables: differentials, remote motors, coupled fingers.

        The coordinates of the motors are motors = G joints + offset. For each motor, this method adds a massless body, "MOTOR_rotor", an actuated
        joint with the motor's name, and a coupler, "NAME_MOTOR". The joints no longer have motors of their own; they are tree joints. The rotors add
        G^T J G to the mass matrix of the joints, and motor torques tau act on the joints as G^T tau. There may be fewer or more motors than joints.

        Parameters
        ----------
        name : name of the transmission
        motors : names of the motors, in the order of the rows of the matrix
        joints : coordinates in the order of the columns: names of joints, or (name, index) if a joint has several coordinates; see
            :meth:`add_coupler`
        matrix : G, (motors, joints), ratios of the motors to the coordinates [rad/rad; rad/m for a prismatic joint]
        rotor_inertia : inertia of each rotor about its axis, number or (motors,) [kg m2; kg if linear]
        offset : coordinates of the motors if all joints are at zero, number or (motors,) [rad; m if linear]
        base : name of the body or frame that carries the motors; default: the parent of the first joint
        linear : True if the motors move along a line; their coordinates are displacements [m]
        properties : limits, velocity_limit, effort_limit, damping, friction, stiffness, rest and nonlinear terms of the motors, as for every joint type: one value, or a
            list with a value for each motor

        Raises
        ------
        ModelError
            - The matrix does not have this shape, or one of its rows is zero.
            - A coordinate cannot be coupled, see :meth:`add_coupler`, or a joint is a loop joint.

        Notes
        -----
        Rotors turn relative to `base`. Their gyroscopic moments, and loads of bearings by tensions of belts and cables, are not included.

        Examples
        --------
        A differential: both motors together bend the wrist, and against each other they turn it.

        >>> import sarrus
        >>> b = sarrus.Builder("wrist")
        >>> for body, joint, axis, parent in (("yoke", "bend", "y", "ground"), ("hand", "roll", "x", "yoke")):
        ...     b.add_body(body, sarrus.Inertia.sphere(1.0, 0.1))
        ...     b.add_joint(joint, sarrus.Revolute(axis), parent, body)
        >>> b.add_transmission("cables", ["left", "right"], ["bend", "roll"], [[20, 10], [20, -10]], rotor_inertia=1e-4)
        >>> wrist = b.build()
        >>> wrist.actuated
        ('left', 'right')
        >>> wrist.assemble(fixed={"bend": 0.1, "roll": 0.2}).round(12).tolist()
        [0.1, 0.2, 4.0, 0.0]
        """
        numbers, kind = (
            {"rotor_inertia": rotor_inertia, **properties},
            Prismatic if checked_truth("linear", linear) else Revolute,
        )
        driven, body, place, parts = self._core.transmission(
            name, motors, joints, matrix, offset, base, linear, numbers
        )
        joint_specs = [replace(x, actuated=False, tree=True) if x.name in driven else x for x in self._joints.values()]
        rotors, couplers = [], []
        for motor, rotor, coupler, fields, terms, start in parts:
            rotors.append(BodySpec(rotor, Inertia.zero()))
            joint_specs.append(JointSpec(motor, kind(**fields), body, rotor, place, actuated=True))
            couplers.append(CouplerSpec(coupler, terms, start))
        bodies, constraints = (*self._bodies.values(), *rotors), (*self._constraints.values(), *couplers)
        self._become(bodies=bodies, joints=joint_specs, constraints=constraints)

    def add_prescribed_motion(self, name: str, joint: Coordinate, law: Law | float) -> None:
        """Prescribe a coordinate of a joint as a function of time, q(t) = law(t): one constraint row. The joint's coordinates remain in q.

        Parameters
        ----------
        name : name of the constraint
        joint : name of the joint, or (name, index) if it has several coordinates; see :meth:`add_coupler`
        law : function of time from :mod:`sarrus.laws` [rad, m]; a number locks the coordinate. A coordinate may be prescribed only once

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
        self._add(CouplerSpec, name, (term(joint, (1.0,)),), 0.0, law)

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
        """Prescribe the motion of a body by a loop joint whose frame on the parent moves as a function of time.

        The moving frame is displaced from `at_parent` like a :class:`~sarrus.Gimbal` whose coordinates are the values of the time functions. The
        body's frame follows the moving frame in the directions that the joint constrains: the frame motion g^c(t) of van der Merwe 5.22.

        Parameters
        ----------
        name : name of the constraint
        body : name of the body whose motion is prescribed
        laws : names from "rx", "ry", "rz", "tx", "ty", "tz" to functions of time (``sarrus.laws``) or numbers [rad, m]; default of each: zero
        joint : joint type between the moving frame and the body; default: Fixed
        at_parent, at_child : placement of the moving frame on `relative_to` if all functions are zero, and of the frame on the body, Transforms or
            (3,) [m]
        relative_to : name of the body relative to which the motion is prescribed

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
        by_parameter = checked_dict(laws, subject, f"some of {' '.join(PARAMETERS)} to laws")
        for parameter in by_parameter:
            if parameter not in PARAMETERS:
                raise ModelError(f"{subject}: keys of laws must be from {' '.join(PARAMETERS)}; got {parameter!r}")
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
        """Add a permanent rolling contact without slip: a disc or a sphere on a plane, or a sphere on a sphere.

        The contact has three constraint rows: the contact points of both bodies have the same velocity along the normal (holonomic: the bodies touch)
        and in two tangential directions (nonholonomic). A disc may lean. With ``spin=False`` a fourth row prevents angular velocity about the normal.

        Parameters
        ----------
        name : name of the constraint
        body, on : names of the rolling body, and of the body on which it rolls
        radius : radius of the disc's rim or of the sphere, positive [m]
        center : (3,) centre of the disc or the sphere, in the body's frame [m]
        axle : axis of the disc in the body's axes, "x", "y", "z" or a vector (dimensionless); None: the body is a sphere
        point : (3,) point of the plane, or centre of the sphere `on`, in the frame of `on` [m]
        normal : normal of the plane, towards the rolling body, in the axes of `on`: "x", "y", "z" or a vector (dimensionless); default: "z"
        on_radius : radius of the sphere on which a sphere rolls [m]; None: a plane. If the sphere rolls inside, the value is negative, and its
            magnitude larger than `radius`
        spin : True if the bodies may spin on each other about the normal

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
            fault = f"normal describes a plane, but on_radius = {on_radius!r} describes a sphere"
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
        """Add a constraint between frames of two bodies, of a kind for which the Builder has no special method.

        To extend the library by such a kind, add a file to cpp/constraints: see CONTRIBUTING.md.

        Parameters
        ----------
        name : name of the constraint
        kind : name of the kind in the core
        parent, child : names of the bodies
        at_parent, at_child : placements of the constraint's frames in the parent and in the child, Transforms or (3,) [m]
        **numbers : parameters of the kind by name [unit of each parameter]

        Raises
        ------
        ModelError
            The kind does not exist, or has a method of its own. Or it does not have these parameters.

        Examples
        --------
        >>> import sarrus
        >>> sarrus.Builder("swing").add_constraint("rod", "Distance", "ground", "bar", length=1.0)
        Traceback (most recent call last):
            ...
        sarrus.errors.ModelError: constraint 'rod': 'Distance' is not a constraint type of add_constraint(); expected none
        """
        subject = f"constraint '{name}'"
        if f"{kind}Spec" not in DECLARED:
            kinds = ", ".join(DECLARED) or "none"
            raise ModelError(f"{subject}: {kind!r} is not a constraint type of add_constraint(); expected {kinds}")
        expected = KINDS[kind] or ()
        if set(numbers) != set(expected):
            got = ", ".join(numbers) or "none"
            raise ModelError(f"{subject}: {kind} requires the parameters {', '.join(expected)}; got {got}")
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
        """Add constraint rows on velocities, A(q) v = c, which do not constrain positions (Pfaffian constraint).

        Parameters
        ----------
        name : name of the constraint
        rows : A, (k, n) for the n velocities of the joints [units such that A v has the unit of c]; or a function of the mechanism's configurations
            (..., nq) that returns (..., k, n). The function must support batches: write ``q[..., i]``. :meth:`build` calls it once as a test. To
            pickle the mechanism, define the function at the top level of a module
        joints : names of the joints, each once, in the order in which their velocities are stacked; see :meth:`add_coupler`
        value : c, a number or (k,) [rad/s, m/s]
        derivative : function of configurations (..., nq) and velocities (..., nv) that returns dA/dt (..., k, n); default: central differences

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
            fault = "derivative must be a function of q and v, and requires rows to be a function of q"
            raise ModelError(f"constraint '{name}': {fault}; got {derivative!r}")
        self._add(PfaffianSpec, name, rows, joints, value, derivative)

    def set_home(self, home: Mapping[str, ArrayLike]) -> None:
        """Set the home configuration, which is the default initial guess of ``assemble``; it should be near a configuration with closed loops.

        Parameters
        ----------
        home : joint to its coordinates, (nq of the joint,) or a number for a single coordinate [rad, m, quaternions (x, y, z, w)]. Joints without
            entry are in their neutral position; loop joints have no coordinates. A later call replaces an earlier one

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
        self._home = self._core.set_home(checked_dict(home, "home", "joints to coordinates"))

    def set_configuration(self, name: str, coordinates: Mapping[str, ArrayLike]) -> None:
        """Add a named configuration, for ``robot.configuration(name)``; an earlier configuration of the same name is replaced.

        Parameters
        ----------
        name : name of the configuration
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
        by_joint = checked_dict(coordinates, f"configuration '{name}'", "joints to coordinates")
        self._configurations[name] = self._core.set_configuration(name, by_joint)

    # ---- the mechanism -----------------------------------------------------------------------------------------------

    def build(self) -> Mechanism:
        """Return the mechanism with all parts that were added.

        Raises ModelError in these cases:

        - A joint refers to a body that does not exist, or a body is not connected to the ground.
        - A constraint or the home configuration refers to coordinates of a loop joint.
        - A function of constraint rows returns an array of the wrong shape.
        - Two shapes may touch, but contact points are not implemented for their types.

        Issues a :class:`~sarrus.ModelWarning` for values that have no effect (also listed in the mechanism's `warnings`), and for shapes that
        overlap in the home configuration.
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
            from ..analysis.closing import start_near
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


# ---- constraint rows that are functions of q---------------------------------------------------------------------------


def _tried(spec: PfaffianSpec, tree: Mechanism) -> PfaffianSpec:
    """Call the function of a constraint once, and return the constraint with a value c for each row that it returns."""
    from ..analysis.closing import start_near

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
            # a batch of two states detects functions that use q[i] instead of q[..., i], or that reduce over all states
            both = np.broadcast_to(_returned(function, called, *arguments), (2, k, n))
            least = 1e-9 * float(np.nan_to_num(np.abs(both), posinf=0.0).max(initial=0.0))
            alike = np.allclose(both, np.stack([first, second]), rtol=1e-9, atol=least, equal_nan=True)
            fault = "" if alike else "returns other values than for each state alone"
        except (IndexError, TypeError, ValueError) as error:
            fault = f"fails ({error})"
        if fault:
            raise ModelError(
                f"{called} must accept many states at once (q[..., i] is coordinate i) and return (..., {k}, {n}); "
                f"for q of shape (2, {tree.nq}) it {fault}"
            )
    return replace(spec, value=_core.per_row(spec.value, k, subject))


def _returned(function: Callable[..., Any], called: str, *arguments: Array) -> Array:
    with np.errstate(all="ignore"):  # rows may be infinite in this arbitrary configuration
        rows = np.asarray(function(*arguments))
    if rows.dtype.kind not in "fiu" or rows.ndim < 2:
        raise ModelError(f"{called} must return an array (..., k, n) of numbers; got {rows!r}")
    return rows.astype(np.float64)
