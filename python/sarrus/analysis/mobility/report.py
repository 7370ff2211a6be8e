"""Report of the mobility in one configuration; the core computes its values (cpp/mobility)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ..._arrays import Array, ArrayLike, checked_time, real_array
from ..._showing import Brief, listed, table
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ShapeError
from ..actuation.efforts import motors_of
from ..independent_coordinates import frame_components
from ..scaling import PRESENT, six


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

    @property
    def _finite(self) -> str:
        return "?" if self.finite_degrees_of_freedom is None else str(self.finite_degrees_of_freedom)

    def __repr__(self) -> str:
        counts = f"{self.degrees_of_freedom} (finite {self._finite}, Kutzbach {self.kutzbach})"
        return f"<Mobility of '{self.name}': degrees of freedom {counts}, redundant rows {self.redundant}>"

    def __str__(self) -> str:
        return "\n".join([f"Mobility of '{self.name}'", *(f"  {head:<20}{text}" for head, text in self._lines())])

    def _repr_html_(self) -> str:
        return table(self._lines(), f"Mobility of '{self.name}'")

    def _lines(self) -> list[tuple[str, str]]:
        nv, nc = len(self.motions), self.rank + self.redundant
        kept, dropped = self.singular_values[: self.rank], self.singular_values[self.rank :]
        rank = f"{self.rank:<4}of {nc} rows"
        if kept.size:
            rank += f", singular values {kept[0]:.3g} to {kept[-1]:.3g}"
        if dropped.size:
            rank += f", then {dropped[0]:.1g}"
        if self.closing_error > 1e-12:
            rank += f"; loops open by {self.closing_error:.1g}"
        lines = [
            ("degrees of freedom", f"{self.degrees_of_freedom:<4}here: {nv} velocities, rank {self.rank}"),
            ("  finite", f"{self._finite:<4}{self.finite_because}"),
            ("  Kutzbach", f"{self.kutzbach:<4}{nv} velocities, {nc} rows"),
            ("rank", rank),
        ]
        if self.redundant:
            lines += _table(f"redundant rows {self.redundant}", [row.split(": ", 1) for row in self.redundant_rows])
            loose = [(name, self._loose(name)) for name, unique in self.unique_reactions.items() if not unique]
            lines += _table("not unique", loose or [("no reaction", "")])
        if self.idle:
            lines.append(("cannot move", listed(self.idle, 12)))
        if (motors := self.actuation) is not None:
            lines.append(("motors", f"{motors.actuators:<4}{motors.verdict}"))
            answers = {None: "?", True: "yes", False: "no"}
            lines.append(("  output singular", answers[motors.output_singular]))
            if motors.input_singular is not None:
                lines.append(("  input singular", answers[motors.input_singular]))
            if motors.locked_freedoms:
                moving = f"{motors.locked_freedoms:<4}left, of {listed(motors.uncontrolled, 12)}"
                lines.append(("  while they stand", moving))
            if motors.condition is not None:
                lines.append(("  condition", f"{motors.condition:.3g}"))
        return lines + [("warning", text) for text in self.warnings]

    def _loose(self, name: str) -> str:
        """Return the names of the indeterminate components of the wrench of a joint."""
        open_components = np.linalg.norm(self.self_stress[name] * six(1.0, self.length), axis=0) > PRESENT
        parts = []
        for kind, components in (("moment", open_components[:3]), ("force", open_components[3:])):
            if components.any():
                parts.append(
                    f"{kind} {' '.join(axis for axis, indeterminate in zip('xyz', components, strict=True) if indeterminate)}"
                )
        return ", ".join(parts) or "multiplier"


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


def _table(head: str, entries: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Return the lines of a table of joints and their entries; joints with the same entries share a line."""
    by_name: dict[str, list[str]] = {}
    for name, text in entries:
        by_name.setdefault(name, []).append(text)
    alike: dict[str, list[str]] = {}
    for name, parts in by_name.items():
        alike.setdefault(", ".join(parts), []).append(name)
    lines = [f"{listed(names, 12)}{': ' if text else ''}{text}" for text, names in alike.items()]
    return [(head if k == 0 else "", line) for k, line in enumerate(lines)]
