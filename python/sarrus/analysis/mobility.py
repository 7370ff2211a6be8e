"""Mobility: degrees of freedom and redundant constraints of one configuration and of batches, and removal of redundant constraint rows.

The core computes ranks and singular values (``cpp/loops/mobility.hpp``) and replaces loop joints (``cpp/position/loosening.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_names, checked_number, checked_time, real_array
from .._showing import Brief, table
from ..description.joints import JOINT_TYPES
from ..description.specs import JointSpec
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ShapeError
from .actuation import motors_of
from .assembly import usual_configurations
from .closing import closing, on_its_tree, positions, prepared
from .independent_coordinates import frame_components
from .linear_algebra import CLOSED, sliding_velocities

if TYPE_CHECKING:
    from ..dynamics.variants import VariantFunctions


@dataclass(frozen=True, eq=False, repr=False)
class ActuationMobility(Brief):
    """Mobility with respect to the motors, in one configuration.

    Attributes
    ----------
    actuators : number of velocities that motors drive
    verdict : actuation in nearby configurations: "exact"; "redundant", if motors can act against each other; "deficient", if motors do not determine
        all motions
    locked_freedoms : number of degrees of freedom in this configuration while all motors are locked
    uncontrolled : names of the joints that can move while all motors are locked
    output_singular : True if `locked_freedoms` is larger than in nearby configurations, so that the motors lose control (second type of Gosselin and
        Angeles). None if `locked_freedoms` is positive and no nearby configuration was found for comparison
    input_singular : True if, only in this configuration, motors can move without motion of the output, so that the output loses degrees of freedom
        (first type). None without an output
    singular_values : singular values of the map from unit motions (`Mobility.motions`) to motor velocities (dimensionless), as many as its rank in nearby
        configurations. The last one is zero at an output singularity
    output_jacobian : (components, actuators) output velocity per motor velocity [rad, m per rad, m]; None if the motor velocities do not determine the motion
    condition : condition number of the output Jacobian, scaled by the characteristic length (dimensionless); infinite at singularities of both types
    """

    actuators: int
    verdict: str
    locked_freedoms: int
    uncontrolled: tuple[str, ...]
    output_singular: bool | None
    input_singular: bool | None
    singular_values: Array
    output_jacobian: Array | None
    condition: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Mobility:
    """Result of :meth:`~sarrus.Mechanism.mobility`; ``print`` displays it as a report.

    The constraints are scaled to R J C: C scales velocities by the characteristic length l, and R scales each row to norm one.

    Attributes
    ----------
    name : name of the mechanism
    kutzbach : degrees of freedom by the formula of Kutzbach and Grübler, nv - nc: 6 per body minus the constrained directions of all joints
    degrees_of_freedom : number of independent velocities that all constraints allow in this configuration, nv - rank
    finite_degrees_of_freedom : number of degrees of freedom of finite motions from this configuration, on the branch with the most; None if
        undecided. With constraints on velocities (rolling, Pfaffian), the number of independent velocities in nearby configurations
    finite_because : reason for the value of `finite_degrees_of_freedom`
    motions : (nv, degrees_of_freedom) basis of the possible velocities, orthonormal after division by C [rad/s, m/s]
    rank, singular_values : rank and singular values of R J C (dimensionless)
    gap : ratio of the smallest nonzero singular value to the largest that counts as zero; infinite if none counts as zero (dimensionless)
    tolerance : largest singular value that counts as zero (dimensionless)
    closing_error : largest scaled residual of the loops [rad, l]
    length : characteristic length l [m]
    row_scale : (nc,) diagonal of R [1, 1/m]
    redundant : number of redundant rows, nc - rank
    redundant_rows : names of `redundant` rows that can be omitted together, the last ones possible in the order of rows
    dependent_groups : constraint -> number of its rows that can be omitted if all other constraints remain; constraints without such rows are omitted
    unique_reactions : joint or other constraint -> True if motion and loads determine its wrench
    self_stress : joint or other constraint -> (redundant, 6) [moment; force] for each of the `redundant` independent states of self-stress. The
        wrench acts on the body that the joint carries (for a loop joint, its child), at the joint's frame and in its axes
    idle : names of joints that cannot move in this configuration
    actuation : mobility with respect to the motors; None without motors
    warnings : other remarks for the designer
    report : the text that ``print`` displays
    """

    name: str
    kutzbach: int
    degrees_of_freedom: int
    finite_degrees_of_freedom: int | None
    finite_because: str
    motions: Array
    rank: int
    singular_values: Array
    gap: float
    tolerance: float
    closing_error: float
    length: float
    row_scale: Array
    redundant: int
    redundant_rows: tuple[str, ...]
    dependent_groups: Mapping[str, int]
    unique_reactions: Mapping[str, bool]
    self_stress: Mapping[str, Array]
    idle: tuple[str, ...]
    actuation: ActuationMobility | None
    warnings: tuple[str, ...]
    report: str = ""

    def __repr__(self) -> str:
        finite = "?" if self.finite_degrees_of_freedom is None else self.finite_degrees_of_freedom
        counts = f"{self.degrees_of_freedom} (finite {finite}, Kutzbach {self.kutzbach})"
        return f"<Mobility of '{self.name}': degrees of freedom {counts}, redundant rows {self.redundant}>"

    def __str__(self) -> str:
        return self.report

    def _repr_html_(self) -> str:
        head, *lines = self.report.splitlines() or [""]
        return table([(line[2:22].rstrip(), line[22:]) for line in lines], head)


def mobility(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, output: str | tuple[str, str] | None = None,
    time: float | None = None,
) -> Mobility:  # fmt: skip
    """Analyse the mobility of the mechanism in a configuration, its redundant constraints, and its motors.

    The rank of J determines the number of independent velocities. If constraint rows are dependent, a possible velocity may not belong to a finite
    motion. This is tested by random steps of two lengths along possible velocities, after each of which the loops are closed again. If the results of
    the steps are contradictory, `finite_degrees_of_freedom` is None.

    States of self-stress, the null space of J^T, are joint forces in equilibrium without an external load. If a self-stress changes a component of a
    joint's wrench, a rigid-body model does not determine this component.

    Parameters
    ----------
    q : (nq,) configuration that closes the loops [rad, m, quaternions (x, y, z, w)]
    actuated : names of the joints with motors; default: the actuated joints of the description
    output : frame whose motion is the output of the mechanism, such as the end effector, or (frame, components), e.g. ("tip", "tx tz"). Components
        are names of rx ry rz tx ty tz, along the world's axes at the frame's origin; default: all six. Default of `output`: no output
    time : time for prescribed motions [s]

    Returns
    -------
    Mobility; print it for a report

    Raises
    ------
    AssemblyError
        q does not close the loops.
    ShapeError, StateError, NameNotFoundError
        q is not a single configuration; q is not finite; a joint or frame does not exist.

    References
    ----------
    Gosselin and Angeles, Singularity analysis of closed-loop kinematic chains, IEEE Trans. Robotics and Automation 6, 1990: the
    types. Wojtyra, Joint reaction forces in multibody systems with redundant constraints, Multibody System Dynamics 14, 2005.
    Wampler, Hauenstein and Sommese, Mechanism mobility and a local dimension test, Mechanism and Machine Theory 46, 2011: the finite
    mobility by numerical algebraic geometry.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.sarrus_linkage()
    >>> robot.mobility(robot.assemble())
    <Mobility of 'Sarrus linkage': degrees of freedom 1 (finite 1, Kutzbach 0), redundant rows 1>
    """
    q = _one_configuration(robot, q)
    frame, components = (None, []) if output is None else frame_components("output", output)
    result: dict[str, Any] = _core.mobility(robot, q, motors_of(robot, actuated), frame, components, checked_time(time))
    motors = result["actuation"]
    return Mobility(**result | {"actuation": None if motors is None else ActuationMobility(**motors)})


def _one_configuration(robot: LoopFunctions, q: ArrayLike) -> Array:
    array = real_array("q", q)
    if array.shape != (robot.nq,):
        raise ShapeError(f"q has shape {array.shape}; expected one configuration, ({robot.nq},)")
    return robot.normalize(array)


@dataclass(frozen=True, eq=False, repr=False)
class MobilityMap(Brief):
    """Result of :meth:`~sarrus.Mechanism.mobility_map`; each attribute is an array (...).

    A configuration is singular if its ranks are lower than those of regular configurations. For this comparison, a few closed configurations are
    drawn at random, once for each mechanism and time. Therefore the result of a configuration does not depend on its batch. J is scaled such that
    the norm of each row is at most one.

    Attributes
    ----------
    rank : (...) rank of the scaled J; -1 without a result
    smallest : (...) smallest nonzero singular value of the scaled J; zero if the rank is lower than in regular configurations (dimensionless)
    degrees_of_freedom : (...) number of independent velocities, nv - rank
    actuation : (...) smallest singular value of the map from unit motions to motor velocities (dimensionless); zero at output singularities
    locked_freedoms : (...) number of degrees of freedom while all motors are locked
    condition : (...) condition number of the map from motor velocities to the output velocity, scaled by the characteristic length (dimensionless);
        infinite at singularities, NaN without an output
    singularity : (...) type of Gosselin and Angeles. "regular"; "output": the motors lose control (second type); "input": the output loses a degree
        of freedom (first type); "both"; "" without a result
    status : (...) 0: fine; 1: the configuration is not finite or its quaternion is not a rotation; 4: its loops are open
    """

    rank: NDArray[np.int64]
    smallest: Array
    degrees_of_freedom: NDArray[np.int64]
    actuation: Array
    locked_freedoms: NDArray[np.int64]
    condition: Array
    singularity: NDArray[np.str_]
    status: NDArray[np.int8]


def mobility_map(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, output: str | tuple[str, str] | None = None,
    time: float | None = None, threads: int = 1,
) -> MobilityMap:  # fmt: skip
    """Compute rank, smallest singular value, condition number and type of singularity of a batch of configurations.

    Singular values below 1e-6 count as zero. A position is singular if its ranks are lower than those of a few closed configurations, which are drawn
    at random once for each mechanism and time.

    Parameters
    ----------
    q : (..., nq) configurations [rad, m] that close the loops; for variants (N, ..., nq), each scaled by its own characteristic length
    actuated, output, time : as in :meth:`mobility`
    threads : number of threads; the result does not depend on it

    Returns
    -------
    MobilityMap

    Raises
    ------
    ShapeError, NameNotFoundError
        q does not have nq entries in its last axis; a joint or frame does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar()
    >>> q = robot.inverse_kinematics({"tip": [(0.2, 0.0, 0.7), (0.25, 0.0, 0.65)]}, near=robot.assemble())
    >>> robot.mobility_map(q, output=("tip", "tx tz")).singularity.tolist()
    ['regular', 'regular']
    """
    motors = [name for name in motors_of(robot, actuated) if robot.joint(name).type.nv]
    frame, rows = ("ground", []) if output is None else frame_components("output", output)
    q, time = real_array("q", q), checked_time(time)
    base = robot._base
    single = _with_motors(base, tuple(motors))
    many = single if base is robot else robot if single is base else cast("VariantFunctions", robot)._like(single)
    is_output = np.isin(np.arange(6), rows)

    def counted(robot: Any, q: Array) -> tuple[Array, NDArray[np.int8], NDArray[np.int64]]:
        """Return the core's result (..., 8), NaN without a result, the status, and six counts (..., 6), -1 without a result.

        The counts are: rank; independent motions of the motors; independent motions of the output; rank of the output velocity per motor velocity;
        degrees of freedom with locked motors; motor motions without motion of the output.
        """
        loops = closing(robot, (), ()).at(time, None)
        l: Any = loops.length
        row_scale = loops.row_scale
        scale = np.concatenate([loops.column_scale, row_scale], axis=-1)
        if robot._base is not robot:
            rows_of = (slice(None), *[None] * (q.ndim - 2))  # the scales of a variant apply to all of its states
            l, scale, row_scale = robot._lengths[:, None][rows_of], scale[rows_of], row_scale[rows_of]
        slides = sliding_velocities(robot, robot.actuated)
        motor_gains, frame_gains = 1.0 / np.where(slides, l, 1.0), is_output / np.where(np.arange(6) < 3, 1.0, l)
        gains = np.concatenate([motor_gains, frame_gains], axis=-1)
        keywords: dict[str, Any] = {"time": time, "threads": threads, "return_status": True}
        numbers, status = robot._mobility_numbers(q, scale, gains, frame, **keywords)
        residual = row_scale * robot.constraint_residual(q, **keywords)[0]
        off = np.abs(residual).max(axis=-1, initial=0.0) > CLOSED
        status = np.where((status == 0) & off, 4, status).astype(np.int8)
        fine = (status == 0)[..., None]
        counts = np.where(fine, numbers, -1.0).round().astype(np.int64)
        rank, seen, felt, together, gained = (counts[..., k] for k in (0, 2, 4, 5, 7))
        each = np.stack([rank, seen, felt, gained, robot.nv - rank - seen, together - felt], axis=-1)
        return np.where(fine, numbers, np.nan), status, np.where(fine, each, -1)

    x, status, each = counted(many, q)
    fine = status == 0
    rank, seen, _, gained, locked, unfelt = np.moveaxis(each, -1, 0)
    key = ("usual", frame, tuple(rows), time)

    def drawn() -> Any:
        _, state, counts = counted(single, usual_configurations(single, time))
        return counts[state == 0]

    usual = prepared(single, key, drawn)
    if len(usual) == 0:
        usual = each[fine]
    best, least = usual.max(axis=0, initial=0), usual.min(axis=0, initial=robot.nv + 6)
    lost, stuck = fine & (locked > least[4]), fine & (unfelt > least[5]) & is_output.any()
    condition = np.where(fine & (lost | stuck | (gained < best[2])), np.inf, x[..., 6])
    kinds = np.array(["regular", "output", "input", "both", ""])
    return MobilityMap(
        rank=rank,
        smallest=np.where(fine & (rank < best[0]), 0.0, x[..., 1]),
        degrees_of_freedom=np.where(fine, robot.nv - rank, -1),
        actuation=np.where(fine & (seen < best[1]), 0.0, x[..., 3]),
        locked_freedoms=locked,
        condition=condition if is_output.any() else np.full(status.shape, np.nan),
        singularity=kinds[np.where(fine, lost + 2 * stuck, 4)],
        status=status,
    )


def _with_motors(robot: LoopFunctions, motors: tuple[str, ...]) -> LoopFunctions:
    """Return the mechanism with motors in these joints only."""
    if set(motors) == {name for name in robot.actuated if robot.joint(name).type.nv}:
        return robot
    return prepared(robot, ("motors", motors), lambda: on_its_tree(robot, actuated=motors))


M = TypeVar("M", bound=LoopFunctions)


def without_redundant_constraints(
    robot: M, q: ArrayLike | None = None, *, tolerance: float = 3e-3, joints: Iterable[str] | None = None
) -> M:
    """Return a mechanism without redundant constraint rows, in which loop joints have more degrees of freedom.

    Each loop joint is replaced by the joint with the fewest rows that does not change the mobility of the mechanism. For example, a revolute joint
    in a planar loop becomes a ball in a slot. The tree and q do not change. If no row is redundant, the mechanism itself is returned. The
    last `warnings` of the new mechanism list the changes:

    - the replaced joints
    - the ratio of the smallest singular value above the tolerance to the largest below it
    - the loop error before and after
    - the residual of the omitted rows in nearby configurations

    Parameters
    ----------
    robot : the mechanism
    q : (nq,) configuration [rad, m] that closes the loops within the tolerance; default: the home configuration if it does, otherwise
        assemble(tolerance=tolerance)
    tolerance : largest singular value that counts as zero, of rows scaled to norm 1 (dimensionless), and largest residual of a closed loop
        [rad, mean body sizes]
    joints : names of the loop joints that may be replaced; default: all

    Raises
    ------
    AssemblyError
        The loops are open by more than the tolerance, or the loops with the replaced joints do not close.
    NameNotFoundError
        A name is not that of a loop joint.
    ModelError
        No joint can be replaced. Or the rows are redundant only because q is a singular position: in nearby configurations, the residual of the
        omitted rows exceeds ten times the tolerance.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> loose = sarrus.without_redundant_constraints(fourbar)
    >>> fourbar.nc, loose.nc, loose.mobility(loose.assemble()).degrees_of_freedom
    (5, 2, 1)
    >>> print(loose.warnings[0])
    loosened: 'pin2' has 2 constraint rows as Gimbal(('rx', 'ry', 'rz', 'tz'), [0, 0, 0, 0, 0, 0]) instead of 5 rows as Revolute('y')
    """
    tolerance = checked_number("tolerance", tolerance)
    if not isinstance(robot, LoopFunctions):
        raise TypeError(f"robot must be a Mechanism; got {robot!r}")
    if q is not None:
        q = robot.normalize(q)
        if q.ndim != 1:
            raise ShapeError(f"q has shape {q.shape}; expected one configuration, ({robot.nq},)")
    names = None if joints is None else list(checked_names("joints", joints))
    d = robot.description
    fields, messages = positions(robot).without_redundant_constraints(d, q, tolerance, names)
    if not messages:
        return robot
    specs = tuple(_changed(spec, changes) for spec, changes in zip(d.joints, fields, strict=True) if changes)
    changed = replace(d, joints=specs, warnings=(*d.warnings, *messages))
    return type(robot)(changed, substructures=robot._substructures)


def _changed(spec: JointSpec, changes: dict[str, Any]) -> JointSpec:
    kind, numbers = changes["joint"]
    joint = spec.joint if kind == spec.kind else JOINT_TYPES[kind](**numbers)
    return replace(spec, **changes | {"joint": joint})
