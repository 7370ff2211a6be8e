"""The class Mechanism; its methods are functions of the modules of each topic."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ._deferred import Deferred
from ._renamed import raise_renamed
from .dynamics.loop_operations import LoopFunctions
from .dynamics.operations import Constraint, Joint, Kinematics
from .shapes import ContactShape, Mesh, Point

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from .analysis import contacts, linearization, scaling
    from .analysis.actuation import efforts
    from .analysis.actuation import joint_wrenches as wrenches
    from .analysis.assembly import position, rates
    from .analysis.mobility import map, report
    from .building.builder import Builder
    from .dynamics import contact
    from .spatial import Inertia, Transform
    from .variants import Variants

    Placement = Transform | ArrayLike
else:
    contacts, linearization, scaling = (
        Deferred(f"analysis.{name}") for name in ("contacts", "linearization", "scaling")
    )
    efforts, wrenches = Deferred("analysis.actuation.efforts"), Deferred("analysis.actuation.joint_wrenches")
    position, rates = Deferred("analysis.assembly.position"), Deferred("analysis.assembly.rates")
    map, report = Deferred("analysis.mobility.map"), Deferred("analysis.mobility.report")
    contact = Deferred("dynamics.contact")

__all__ = ["Constraint", "Joint", "Kinematics", "Mechanism"]


class Mechanism(LoopFunctions):
    """Rigid bodies connected by joints; made by :class:`~sarrus.Builder`, :func:`~sarrus.load` or one of the ``from_`` functions.

    A mechanism is immutable. It can be pickled, compares and hashes by its description, and any number of threads may use it at once.

    **Functions of a state** broadcast over leading axes: q (..., nq) and v, a, tau (..., nv) give (..., k). A single state has the least overhead.
    Batches are evaluated in SIMD lanes and, with ``threads=``, on several cores, without the GIL. Some functions have these options:

    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    time : (...) [s], for prescribed motions

    All functions of a state have these options:

    out : float64 array for the result, C-contiguous, of exactly its shape, if the result is one array
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

    - `kinematics`, whose result has methods of its own
    - `joint_wrenches`, `derivatives.assembled_positions`, `constraint_forces`, `poe_factors` and `reference_member`, which return
      structures of a batch, with NaN in the rows of invalid states
    - `mobility`, `contact_dynamics` and `contact_impact`, of one state
    - `mobility_map` and `dynamic_singularity_map`, whose results contain a status
    - `motion` and `path`, which return runs, and `plot`, which returns a figure
    - `contacts`, whose number of rows depends on the state
    - `derivatives.step`, `derivatives.step_jvp`, `derivatives.step_vjp` and `derivatives.rollouts_vjp`, of time steps, which must all succeed

    Wrong sizes raise :class:`~sarrus.ShapeError`, unknown names :class:`~sarrus.NameNotFoundError`.

    Velocities are [angular; linear] in the axes of the frame that they belong to, unless ``expressed_in`` is given:

    "frame" : the frame's own axes, at its origin
    "world_aligned" : the world's axes, at the frame's origin
    "world" : the world's axes, for the point of the body that passes through the world's origin (the spatial velocity)

    Functions of single publications and of floating bases take the mechanism as first argument: :mod:`sarrus.formulations`, :mod:`sarrus.floating`.

    Attributes
    ----------
    description : :class:`~sarrus.Description` of all its parts, as plain data
    warnings : tuple of sentences about entries of the model or its file that have no effect

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.double_pendulum()
    >>> robot.nq, robot.nv
    (2, 2)
    """

    _units_of_motion = cached_property(scaling.units_of_motion)  # every run needs them

    # positions: configurations that close the loops, and the motions that they allow
    assemble = position.assemble
    assembly_modes = position.assembly_modes
    inverse_kinematics = position.inverse_kinematics
    follow = position.follow
    random = position.random
    complete_velocity = position.complete_velocity
    complete_acceleration = position.complete_acceleration

    _holding = rates.holding  # for projections

    # efforts of motors, and wrenches of joints
    actuation_matrix = efforts.actuation_matrix
    actuator_efforts = efforts.actuator_efforts
    internal_efforts = efforts.internal_efforts
    joint_wrenches = wrenches.joint_wrenches

    # rigid contact
    contact_dynamics = contact.contact_dynamics
    contact_impact = contact.contact_impact

    _raise_not_realizable = efforts.raise_not_realizable

    # collision shapes
    _may_touch, _touching = cached_property(contacts.may_touch), cached_property(contacts.touching)
    contacts = contacts.contacts

    @cached_property
    def _solids(self) -> list[ContactShape]:
        """Collision shapes, meshes as the points of their hulls; meshes in no collision pair are not read, and are replaced by a point."""
        from .io.mesh_files import hull

        colliding = {k for pair in self._may_touch for k in pair[:2]}
        shapes = enumerate(spec.shape for spec in self.description.shapes)
        return [x if not isinstance(x, Mesh) else hull(x) if k in colliding else Point() for k, x in shapes]

    # analysis
    mobility = report.mobility
    mobility_map = map.mobility_map
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
        """Draw the mechanism in one configuration, or in several, with all but the last one faint. Needs matplotlib.

        Parameters
        ----------
        q : (nq,) or (n, nq) configurations [rad, m]; default: the assembled home configuration
        v, a : (nv,) velocity and acceleration of one configuration [rad/s, m/s; per s]. The velocity and acceleration polygons are drawn next to the
            mechanism, normal parts dashed. The motion must be in a plane of two of the world's axes
        trace : names of frames whose paths through all q are drawn, such as a coupler curve
        wrenches : frame name to (6,) or (n, 6) [moment; force] on the mechanism, in that frame [N m, N]: arrows for forces, texts for moments
        labels : True to label joints with their names
        drive : name of a joint with one coordinate. It is driven from q to the end of the loops' range or the joint's limits, at most half a turn
            or the mechanism's size in each direction. The result is a film, which a notebook shows as a player with a slider
        ax : axes to draw in; default: a new figure

        Returns
        -------
        matplotlib's Axes, those of the mechanism; with ``drive=`` the film

        Raises
        ------
        NameNotFoundError
            No frame or joint has that name.
        ShapeError, ValueError
            q, v or a has a wrong shape; v is combined with several configurations or with `ax`; the motion is not in such a plane.

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
        from .figures.notebook import mechanism

        return mechanism(self)

    def to_builder(self) -> Builder:
        """Return a :class:`~sarrus.Builder` with all parts of the mechanism, to modify and build.

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
    ) -> Self:  # fmt: skip
        """Return a copy with different parameters, in microseconds, because the copy shares the structure.

        Results and description are exactly those of a mechanism built with these numbers. Other numbers are unchanged.

        Parameters
        ----------
        inertias : body to its :class:`~sarrus.Inertia`
        placements : frame to its placement in its body, a Transform or a translation (3,) [m]; the frame is one that was added, or "JOINT.parent"
            or "JOINT.child", the frames of a joint on its two bodies
        lengths : rod (:meth:`~sarrus.Builder.add_distance`) to its length [m]
        pitch : :class:`~sarrus.Helical` joint to its pitch [m/rad]
        stiffness, damping, rest : joint to a number, or a value for each velocity [N m/rad, N/m; N m s/rad, N s/m; rad, m]; or spring
            (:meth:`~sarrus.Builder.add_spring`) to a number, where rest is the rest_length of the spring [m]
        friction, armature : joint to a number, or a value for each velocity [N m, N; kg m2, kg]
        gravity : (3,) acceleration of free fall in the world's axes [m/s2]

        Raises
        ------
        ModelError
            A number is invalid for its part, or requires another structure. Armature of a loop joint cannot become zero or stop being zero.
            In a mechanism that is cut into substructures, the same holds for the inertia of bodies and the armature of all joints.
            Build such a mechanism by :meth:`to_builder` or ``Mechanism(description)``.
        NameNotFoundError
            No part has this name.

        Notes
        -----
        Numbers without effect raise :class:`~sarrus.ModelWarning`. The description of a copy is made at the first access; functions of a state,
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
        from .description.replaced import checked_changes

        return self._copy(
            checked_changes({
                "inertias": inertias, "placements": placements, "lengths": lengths, "pitch": pitch, "stiffness": stiffness,
                "damping": damping, "friction": friction, "armature": armature, "rest": rest, "gravity": gravity,
            })
        )  # fmt: skip

    def variants(
        self, *, inertias: Mapping[str, ArrayLike] | None = None, placements: Mapping[str, ArrayLike] | None = None,
        lengths: Mapping[str, ArrayLike] | None = None, pitch: Mapping[str, ArrayLike] | None = None,
        stiffness: Mapping[str, ArrayLike] | None = None, damping: Mapping[str, ArrayLike] | None = None,
        friction: Mapping[str, ArrayLike] | None = None, armature: Mapping[str, ArrayLike] | None = None,
        rest: Mapping[str, ArrayLike] | None = None, gravity: ArrayLike | None = None,
    ) -> Variants:  # fmt: skip
        """Return N copies with different parameters, which are evaluated at once: row i of a batch is a state of the i-th copy.

        Parameters
        ----------
        inertias : body to N :class:`~sarrus.Inertia`, or their parameters (N, 10), in the order of :attr:`sarrus.Inertia.parameters` [kg, kg m, kg m2]
        placements : frame, or "JOINT.parent" and "JOINT.child", to its placement: translations (N, 3) [m] or poses (N, 4, 4)
        lengths, pitch, stiffness, damping, friction, armature, rest : as in :meth:`replace`, (N,) each, or (N, nv of the joint)
        gravity : (N, 3) [m/s2]

        Returns
        -------
        :class:`~sarrus.results.Variants`

        Raises
        ------
        ModelError
            A number of a variant is invalid for its part, or requires another structure (:meth:`replace`); or constraint rows are a function of q.
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
        }  # fmt: skip
        from .variants import Variants

        return Variants(self, {key: value for key, value in changes.items() if value is not None})

    def save(self, path: str | os.PathLike[str], *, lossy: bool = False) -> None:
        """Write a model file; its suffix selects the format.

        Parameters
        ----------
        path : .json (sarrus' own format, which is complete), .urdf (loops in a .yaml in the same folder), .xml (MJCF), .sdf or
            .usda, .usd (needs ``pip install usd-core``)
        lossy : True to omit, with a warning, parts that change the motion and that the format cannot represent

        Raises
        ------
        ModelError
            The format cannot represent parts that change the motion; the message lists them. Other omitted parts, such as the home,
            raise :class:`~sarrus.ModelWarning`.
        OSError
            The file cannot be written.

        Notes
        -----
        docs/files.md has a table of the parts and formats.

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
