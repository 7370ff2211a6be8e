"""The class Mechanism. Its methods are defined as functions in one module for each topic."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ._deferred import Deferred
from ._renamed import raise_renamed
from .dynamics.loop_operations import LoopFunctions
from .dynamics.operations import Constraint, Joint, Kinematics

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from .analysis import actuation, assembly, contacts, linear_algebra, linearization, mobility
    from .building.builder import Builder
    from .shapes import ContactShape
    from .spatial import Inertia, Transform
    from .variants import Variants

    Placement = Transform | ArrayLike
else:
    actuation, assembly, contacts, linear_algebra, linearization, mobility = (
        Deferred(f"analysis.{name}")
        for name in ("actuation", "assembly", "contacts", "linear_algebra", "linearization", "mobility")
    )

__all__ = ["Constraint", "Joint", "Kinematics", "Mechanism"]


class Mechanism(LoopFunctions):
    """Rigid bodies connected by joints; created by :class:`~sarrus.Builder`, :func:`~sarrus.load` or one of the ``from_`` functions.

    A mechanism is immutable and can be pickled. Equality and hash depend on its description. Any number of threads may use it at the same time.

    **Functions of a state** broadcast over leading axes: q (..., nq) and v, a, tau (..., nv) give (..., k). A single state has the least overhead.
    Batches are evaluated with SIMD instructions, without the GIL, and on several cores if ``threads`` is larger than 1. Some functions have these
    options:

    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    time : (...) [s], for prescribed motions

    All functions of a state have these options:

    out : C-contiguous float64 array with the shape of the result, into which the result is written; only if the result is one array
    threads : int, number of threads for a batch; results do not depend on it
    return_status : bool; True returns (result, status), with status (...) int8:

        - 0: fine
        - 1: the state is not finite, or its quaternion is not a rotation
        - 2: no result exists
        - 3: the constraints are inconsistent in this state
        - 4: q or v violates the loop constraints

        In a batch, invalid states yield NaN in their own rows only. A single invalid state raises :class:`~sarrus.StateError` unless
        its status is returned.

    Exceptions, which have only some of these options:

    - `kinematics`, whose result is an object with methods
    - `joint_wrenches`, `derivatives.assembled_positions`, `constraint_forces`, `poe_factors` and `reference_member`, which return
      structures of a batch, with NaN in the rows of invalid states
    - `mobility`, `contact_dynamics` and `contact_impact`, which accept a single state only
    - `mobility_map` and `dynamic_singularity_map`, whose results contain a status
    - `motion` and `path`, which return runs, and `plot`, which returns a figure
    - `contacts`, whose number of rows depends on the state
    - `derivatives.step`, `derivatives.step_jvp`, `derivatives.step_vjp` and `derivatives.rollouts_vjp`, which raise an error if any time step fails

      Arrays of wrong shape raise :class:`~sarrus.ShapeError`, unknown names :class:`~sarrus.NameNotFoundError`.

    Velocities of a frame are [angular; linear]. The argument ``expressed_in`` selects the axes and the point; the default is "frame":

    "frame" : the frame's own axes, at its origin
    "world_aligned" : the world's axes, at the frame's origin
    "world" : the world's axes, for the point of the body that passes through the world's origin (the spatial velocity)

    Equations of single publications, and functions for floating bases, are not methods: :mod:`sarrus.formulations` and :mod:`sarrus.floating`.

    Attributes
    ----------
    description : :class:`~sarrus.Description` of all parts of the mechanism, as plain data
    warnings : tuple of messages about entries of the model or of its file that have no effect
    substructures : largest number of bodies of a substructure, for the solver of the loop equations; 0 for a solver without substructures. By default
        the mechanism selects the solver

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.double_pendulum()
    >>> robot.nq, robot.nv
    (2, 2)
    """

    _units_of_motion = cached_property(linear_algebra.units_of_motion)  # cached, because every simulation needs them

    # positions: configurations that close the loops, and the motions that the loops allow
    assemble = assembly.assemble
    assembly_modes = assembly.assembly_modes
    inverse_kinematics = assembly.inverse_kinematics
    follow = assembly.follow
    random = assembly.random
    complete_velocity = assembly.complete_velocity
    complete_acceleration = assembly.complete_acceleration

    _holding = assembly.holding  # for projections onto the constraints

    # efforts of motors, and wrenches of joints
    actuation_matrix = actuation.actuation_matrix
    actuator_efforts = actuation.actuator_efforts
    internal_efforts = actuation.internal_efforts
    joint_wrenches = actuation.joint_wrenches

    # rigid contact
    contact_dynamics = contacts.contact_dynamics
    contact_impact = contacts.contact_impact

    _raise_not_realizable = actuation.raise_not_realizable

    # collision shapes
    _may_touch, _touching = cached_property(contacts.may_touch), cached_property(contacts.touching)
    contacts = contacts.contacts

    @cached_property
    def _solids(self) -> list[ContactShape]:
        """Collision shapes; meshes are replaced by the corners of their convex hulls.

        The file of a mesh in no collision pair is not read: a point replaces the mesh.
        """
        from .io.mesh_files import hull
        from .shapes import Mesh, Point

        colliding = {k for pair in self._may_touch for k in pair[:2]}
        shapes = enumerate(spec.shape for spec in self.description.shapes)
        return [x if not isinstance(x, Mesh) else hull(x) if k in colliding else Point() for k, x in shapes]

    # analysis
    mobility_map = mobility.mobility_map
    mobility = mobility.mobility
    linearize = linearization.linearize

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise_renamed("Mechanism", name)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def _forward_by_reference_member(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, **options: Any) -> Any:
        from .formulations.reference_member import forward_by_reference_member

        return forward_by_reference_member(self, q, v, tau, **options)

    def plot(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, a: ArrayLike | None = None, *,
        trace: str | Sequence[str] = (), wrenches: Mapping[str, ArrayLike] | None = None, labels: bool = False,
        drive: str | None = None, ax: Axes | None = None,
    ) -> Axes | FuncAnimation:  # fmt: skip
        """Draw the mechanism in one or several configurations. All configurations except the last one are drawn faint. Needs matplotlib.

        Parameters
        ----------
        q : (nq,) or (n, nq) configurations [rad, m]; default: the assembled home configuration
        v, a : (nv,) velocity and acceleration of one configuration [rad/s, m/s; per s]. The velocity and acceleration polygons are drawn next to the
            mechanism; normal accelerations are dashed. The motion must be parallel to a plane through two of the world's axes
        trace : names of frames whose paths through all q are drawn, such as a coupler curve
        wrenches : frame name to (6,) or (n, 6) [moment; force] on the mechanism, in that frame [N m, N]. Forces are drawn as arrows, moments as arcs
        labels : True to label joints with their names
        drive : name of a joint with one coordinate. The joint is moved from q in both directions, until the loops block it or its limits are reached,
            but at most by pi or by the mechanism's size. The result is an animation, which a notebook shows as a player with a slider
        ax : axes to draw in; default: a new figure

        Returns
        -------
        matplotlib's Axes with the mechanism; if ``drive`` is passed, the animation

        Raises
        ------
        NameNotFoundError
            No frame or joint has that name.
        ShapeError, ValueError
            q, v or a has a wrong shape; v is combined with several configurations or with `ax`; the motion is not planar.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> robot = sarrus.mechanisms.four_bar()
        >>> turn = robot.follow({"motor": np.linspace(0.5, 6.7, 60)})
        >>> ax = robot.plot(turn[::12], trace="pin1.child")  # doctest: +SKIP
        """
        from .figures import figures

        return figures.plot(self, q, v, a, trace, wrenches, labels, drive, ax)

    def _repr_html_(self) -> str:
        from .figures.figures import mechanism_html

        return mechanism_html(self)

    def to_builder(self) -> Builder:
        """Return a :class:`~sarrus.Builder` with all parts of the mechanism, which can be modified and built again.

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.mechanisms.double_pendulum().to_builder()
        >>> b.lock("elbow", at=0.5)
        >>> b.build().nv
        1
        """
        from .building.builder import Builder

        return Builder._of(self.description)

    def replace(
        self, *, inertias: Mapping[str, Inertia] | None = None, placements: Mapping[str, Placement] | None = None,
        lengths: Mapping[str, float] | None = None, pitch: Mapping[str, float] | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None, damping: Mapping[str, ArrayLike] | None = None,
        friction: Mapping[str, ArrayLike] | None = None, armature: Mapping[str, ArrayLike] | None = None,
        rest: Mapping[str, ArrayLike] | None = None, gravity: ArrayLike | None = None,
        quadratic_stiffness: Mapping[str, ArrayLike] | None = None, cubic_stiffness: Mapping[str, ArrayLike] | None = None,
        quadratic_damping: Mapping[str, ArrayLike] | None = None, cubic_damping: Mapping[str, ArrayLike] | None = None,
    ) -> Self:  # fmt: skip
        """Return a copy with different parameters. This takes microseconds, because the copy shares the mechanism's structure.

        Results and description are exactly those of a mechanism that is built with these parameters. Parameters that are not passed are unchanged.

        Parameters
        ----------
        inertias : body to its :class:`~sarrus.Inertia`
        placements : frame to its pose in its body: a Transform or a translation (3,) [m]. The frame was added to the mechanism, or it is
            "JOINT.parent" or "JOINT.child", the frames of a joint on its two bodies
        lengths : rod (:meth:`~sarrus.Builder.add_distance`) to its length [m]
        pitch : :class:`~sarrus.Helical` joint to its pitch [m/rad]
        stiffness, damping, rest : joint to a number, or a value for each velocity [N m/rad, N/m; N m s/rad, N s/m; rad, m]; or spring
            (:meth:`~sarrus.Builder.add_spring`) to a number, where rest is the rest_length of the spring [m]
        friction, armature : joint to a number, or a value for each velocity [N m, N; kg m2, kg]
        gravity : (3,) acceleration of free fall in the world's axes [m/s2]
        quadratic_stiffness, cubic_stiffness, quadratic_damping, cubic_damping : joint, or spring, to numbers as for stiffness [N m/rad², N/m²;
            N m/rad³, N/m³; N m s²/rad², N s²/m²; N m s³/rad³, N s³/m³]

        Raises
        ------
        ModelError
            A parameter is invalid, or requires another structure. The structure depends on whether the armature of a loop joint is zero. In a
            mechanism that is cut into substructures, it also depends on whether the inertias of bodies and the armature of all joints are zero. For a
            mechanism with another structure, use :meth:`to_builder` or ``Mechanism(description)``.
        NameNotFoundError
            No part has this name.

        Notes
        -----
        Parameters without effect raise :class:`~sarrus.ModelWarning`. The description of a copy is created at the first access; functions of a state,
        `assemble` without inputs and `simulate` do not need it.

        Examples
        --------
        >>> import sarrus
        >>> robot = sarrus.mechanisms.four_bar()
        >>> heavier = robot.replace(inertias={"coupler": sarrus.Inertia.rod(3.0, (0, 0, 0), (1.0, 0, 0))})
        >>> heavier.mass > robot.mass
        True
        >>> longer = robot.replace(placements={"pin1.parent": (0.45, 0, 0)})
        >>> float(longer.pose(longer.neutral(), "pin1.parent")[0, 3])
        0.45
        """
        from .dynamics.variants import checked_changes

        return self._copy(
            checked_changes({
                "inertias": inertias, "placements": placements, "lengths": lengths, "pitch": pitch, "stiffness": stiffness,
                "damping": damping, "friction": friction, "armature": armature, "rest": rest, "gravity": gravity,
                "quadratic_stiffness": quadratic_stiffness, "cubic_stiffness": cubic_stiffness,
                "quadratic_damping": quadratic_damping, "cubic_damping": cubic_damping,
            })
        )  # fmt: skip

    def variants(
        self, *, inertias: Mapping[str, ArrayLike] | None = None, placements: Mapping[str, ArrayLike] | None = None,
        lengths: Mapping[str, ArrayLike] | None = None, pitch: Mapping[str, ArrayLike] | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None, damping: Mapping[str, ArrayLike] | None = None,
        friction: Mapping[str, ArrayLike] | None = None, armature: Mapping[str, ArrayLike] | None = None,
        rest: Mapping[str, ArrayLike] | None = None, gravity: ArrayLike | None = None,
        quadratic_stiffness: Mapping[str, ArrayLike] | None = None, cubic_stiffness: Mapping[str, ArrayLike] | None = None,
        quadratic_damping: Mapping[str, ArrayLike] | None = None, cubic_damping: Mapping[str, ArrayLike] | None = None,
    ) -> Variants:  # fmt: skip
        """Return N copies with different parameters, which are evaluated together in a batch: row i of the batch is a state of the i-th copy.

        Parameters
        ----------
        inertias : body to N :class:`~sarrus.Inertia`, or their parameters (N, 10), in the order of :attr:`sarrus.Inertia.parameters` [kg, kg m, kg m2]
        placements : frame, or "JOINT.parent" and "JOINT.child", to its placement: translations (N, 3) [m] or poses (N, 4, 4)
        lengths, pitch, stiffness, damping, friction, armature, rest : as in :meth:`replace`, (N,) each, or (N, nv of the joint)
        quadratic_stiffness, cubic_stiffness, quadratic_damping, cubic_damping : as these [N m/rad², N/m²; N m/rad³, N/m³; N m s²/rad², N s²/m²;
            N m s³/rad³, N s³/m³]
        gravity : (N, 3) acceleration of free fall in the world's axes [m/s2]

        Returns
        -------
        :class:`~sarrus.results.Variants`

        Raises
        ------
        ModelError
            A parameter of a variant is invalid, or requires another structure (:meth:`replace`); or the mechanism has constraint rows that a Python
            function of q computes.
        NameNotFoundError, ShapeError
            No part has this name; the arguments have unequal numbers of variants.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
        >>> moons = pendulum.variants(gravity=[(0, 0, -9.81), (0, 0, -1.62), (0, 0, -3.72)])
        >>> moons.forward_dynamics([np.pi / 2], [0.0], [0.0]).round(2).ravel().tolist()
        [-19.62, -3.24, -7.44]
        >>> moons[1].gravity.tolist()
        [0.0, 0.0, -1.62]
        """
        changes = {
            "inertias": inertias, "placements": placements, "lengths": lengths, "pitch": pitch, "stiffness": stiffness,
            "damping": damping, "friction": friction, "armature": armature, "rest": rest, "gravity": gravity,
            "quadratic_stiffness": quadratic_stiffness, "cubic_stiffness": cubic_stiffness,
            "quadratic_damping": quadratic_damping, "cubic_damping": cubic_damping,
        }  # fmt: skip
        from .variants import Variants

        return Variants(self, {key: value for key, value in changes.items() if value is not None})

    def save(self, path: str | os.PathLike[str], *, lossy: bool = False) -> None:
        """Write a model file; its suffix selects the format.

        Parameters
        ----------
        path : .json (sarrus' own format, which is complete), .urdf (loops in a .yaml in the same folder), .xml (MJCF), .sdf or
            .usda, .usd (needs ``pip install usd-core``)
        lossy : if True, parts that the format cannot represent are omitted with a warning, even if the motion changes

        Raises
        ------
        ModelError
            The format cannot represent parts that change the motion; the message lists them. Other omitted parts, such as the home,
            raise :class:`~sarrus.ModelWarning`.
        OSError
            The file cannot be written.

        Notes
        -----
        docs/files.md has a table of the parts that each format can represent.

        Examples
        --------
        >>> import sarrus
        >>> robot = sarrus.mechanisms.four_bar()
        >>> robot.save("four_bar.json")
        >>> sarrus.load("four_bar.json") == robot
        True
        """
        from .io import save

        save(self, path, lossy=lossy)


def checked_mechanism(robot: Any, name: str = "mechanism") -> Mechanism:
    if not isinstance(robot, Mechanism):
        raise TypeError(f"{name} must be a Mechanism, such as sarrus.mechanisms.four_bar(); got {robot!r}")
    return robot
