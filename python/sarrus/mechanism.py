"""A mechanism: every question that can be asked of it, each answered in the module that it is about."""

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

    A mechanism does not change. It pickles, compares and hashes by what it describes, and any number of threads may use it at once.

    **Functions of a state** broadcast over leading axes: q (..., nq) and v, a, tau (..., nv) give (..., k). One state takes the shortest
    way; many states are worked on several at a time and, with ``threads=``, on several cores, without the GIL. Of those that take them

    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    time : (...) [s], where motion is prescribed

    and all of them take

    out : float64 array for the result, C-contiguous, of exactly its shape, where that is one array
    threads : int, how many threads work on a batch; results do not depend on it
    return_status : bool; True returns (result, status), status (...) int8: 0 fine, 1 the state is not finite or its quaternion is no
        rotation, 2 there is no answer, 3 the loops' constraints contradict one another here, 4 q or v is off the loops. In a batch the
        rows of bad states are NaN and the others are not touched by them; a single bad state raises :class:`~sarrus.StateError` unless
        its status is asked for.

    These are not all of that kind, and do not take all of these: `kinematics`, whose answer is asked further; `joint_wrenches`,
    `derivatives.assembled_positions`,
    `constraint_forces`, `poe_factors` and `reference_member`, which answer with structures of a batch whose bad rows are NaN; `mobility`, of
    one state; `mobility_map` and `dynamic_singularity_map`, whose answer holds a status;
    `motion` and `path`, which are runs; `plot`, which is a picture; `contacts`, of which there are more in one state than in another;
    `contact_dynamics` and `contact_impact`, of one state; `derivatives.step`, `derivatives.step_jvp`, `derivatives.step_vjp` and
    `derivatives.rollouts_vjp`, of steps from states, of which each has to lead somewhere.

    Wrong sizes raise :class:`~sarrus.ShapeError`, unknown names :class:`~sarrus.NameNotFoundError`.

    Velocities are [angular; linear] in the axes of the frame that they belong to, unless ``expressed_in`` says otherwise:

    "frame" : the frame's own axes, at its origin
    "world_aligned" : the world's axes, at the frame's origin
    "world" : the world's axes, for the point of the body that passes through the world's origin (the spatial velocity)

    Functions that only one work or only floating bases ask for take the mechanism first: :mod:`sarrus.formulations`, :mod:`sarrus.floating`.

    Attributes
    ----------
    description : :class:`~sarrus.Description` of all that it consists of, as plain data
    warnings : tuple of sentences: what a file or a description says and nothing reads

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.double_pendulum()
    >>> robot.nq, robot.nv
    (2, 2)
    """

    _units_of_motion = cached_property(scaling.units_of_motion)  # asked for by every run

    # positions: configurations that close the loops, and the motions that they allow
    assemble = position.assemble
    assembly_modes = position.assembly_modes
    inverse_kinematics = position.inverse_kinematics
    follow = position.follow
    random = position.random
    complete_velocity = position.complete_velocity
    complete_acceleration = position.complete_acceleration

    _holding = rates.holding  # which projections ask

    # motors, and what joints carry
    actuation_matrix = efforts.actuation_matrix
    actuator_efforts = efforts.actuator_efforts
    internal_efforts = efforts.internal_efforts
    joint_wrenches = wrenches.joint_wrenches

    # rigid contact
    contact_dynamics = contact.contact_dynamics
    contact_impact = contact.contact_impact

    _raise_not_realizable = efforts.raise_not_realizable

    # what touches
    _may_touch, _touching = cached_property(contacts.may_touch), cached_property(contacts.touching)
    contacts = contacts.contacts

    @cached_property
    def _solids(self) -> list[ContactShape]:
        """Shapes that touch, meshes as the points of their hulls; of those that touch nothing the files are not read, and a point stands for them."""
        from .io.mesh_files import hull

        asked = {k for pair in self._may_touch for k in pair[:2]}
        shapes = enumerate(spec.shape for spec in self.description.shapes)
        return [x if not isinstance(x, Mesh) else hull(x) if k in asked else Point() for k, x in shapes]

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
        """Draw the mechanism: one configuration, or several, the last one solid and the others faint. Needs matplotlib.

        Parameters
        ----------
        q : (nq,) or (n, nq); default: the assembled home
        v, a : (nv,) of one configuration: beside it the polygon of its velocities, and that of its accelerations, with normal parts dashed; of what
            moves in a plane of two of the world's axes [rad/s, m/s; per s]
        trace : names of frames whose paths through all q are drawn, such as a coupler's curve
        wrenches : frame name to (6,) [moment; force] on the mechanism, or (n, 6) as q is, such as a motion's own loads, in that frame: arrows with their sizes,
            and moments in words [N m, N]
        labels : whether joints have their names beside them
        drive : name of a joint with one coordinate, which is led from q to where loops or limits end, and at most half a turn or the mechanism's size
            each way: a film, which a notebook shows as a player with a slider
        ax : where to draw; default: a new figure

        Returns
        -------
        matplotlib's Axes, those of the mechanism; with ``drive=`` the film

        Raises
        ------
        NameNotFoundError
            No frame or joint has that name.
        ShapeError, ValueError
            q, v or a of another shape; several configurations, or `ax`, with v; a motion that is not in such a plane.

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
        """A :class:`~sarrus.Builder` that holds all of it, to be changed and built anew.

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
        """A copy with other numbers, made in microseconds: what is found once of a mechanism's structure is shared with it.

        It answers, and is described, exactly as if it had been built so. What it does not name stays.

        Parameters
        ----------
        inertias : body to its :class:`~sarrus.Inertia`
        placements : frame to where it sits in its body, a Transform or a translation (3,) [m]: one that was added, or "JOINT.parent" and
            "JOINT.child", where a joint sits in the two bodies that it joins
        lengths : rod (:meth:`~sarrus.Builder.add_distance`) to its length [m]
        pitch : :class:`~sarrus.Helical` joint to its pitch [m/rad]
        stiffness, damping, rest : joint to a number or one per velocity, or spring (:meth:`~sarrus.Builder.add_spring`) to its number; rest is its
            rest_length then
        friction, armature : joint to a number or one per velocity
        gravity : (3,) acceleration of free fall in the world's axes [m/s2]

        Raises
        ------
        ModelError
            A number that the part cannot have; or numbers that ask for another structure: armature for a joint that closes a loop and has none, or
            none for one that has, and where the mechanism is cut into substructures, inertia or armature that bodies or joints had not, or had. Build
            such a mechanism anew, by :meth:`to_builder` or ``Mechanism(description)``.
        NameNotFoundError
            No such part.

        Notes
        -----
        What acts on nothing is a :class:`~sarrus.ModelWarning`. The description of a copy is made when it is asked for; functions of a state,
        `assemble` without inputs and `simulate` do without.

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
        """N copies with other numbers, asked all at once: row i of a batch is a state of the i-th.

        Parameters
        ----------
        inertias : body to N :class:`~sarrus.Inertia`, or their parameters (N, 10), in the order of :attr:`sarrus.Inertia.parameters`
        placements : frame, or "JOINT.parent" and "JOINT.child", to where it sits: translations (N, 3) [m] or poses (N, 4, 4)
        lengths, pitch, stiffness, damping, friction, armature, rest : as :meth:`replace`, (N,) each, or (N, nv of the joint)
        gravity : (N, 3) [m/s2]

        Returns
        -------
        :class:`~sarrus.results.Variants`

        Raises
        ------
        ModelError
            A number that the part cannot have, or that asks for another structure, as :meth:`replace` says: of which variant. Rows of a constraint
            that are a function of q.
        NameNotFoundError, ShapeError
            No such part; not equally many of everything.

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
        """Write a model file; its suffix tells the format.

        Parameters
        ----------
        path : .json (sarrus' own form, which holds everything), .urdf (loops in a .yaml beside it), .xml (MJCF), .sdf or
            .usda, .usd (needs ``pip install usd-core``)
        lossy : whether what the format cannot say, and what changes the motion, may be left out, with a warning

        Raises
        ------
        ModelError
            The format cannot say something that changes the motion; the message lists it all. What does not change it and cannot be
            said, such as the home, is a :class:`~sarrus.ModelWarning`.
        OSError
            The file cannot be written.

        Notes
        -----
        What becomes of each part: docs/files.md.

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
