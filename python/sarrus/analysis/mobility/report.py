"""The mobility of one configuration as a report; its numbers are the core's (cpp/mobility)."""

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
    """What motors can do in one configuration.

    Attributes
    ----------
    actuators : number of velocities that they drive
    verdict : "exact", "redundant" (the motors can work against each other) or "deficient" (motions are left to themselves), nearby
    locked_freedoms : degrees of freedom that are left here while all motors stand still
    uncontrolled : joints that move then
    output_singular : whether these are more than nearby: motors lose control (Gosselin and Angeles' second type); None where there
        are some, and no configuration nearby was found to compare with
    input_singular : whether here, and not nearby, motors can move while the output stands still: it loses freedoms (the first type);
        None without an output
    singular_values : of what the motors see of unit motions (`Mobility.motions`), those of the rank that there is nearby; the last is
        zero at an output singularity
    output_jacobian : (components, actuators) output's velocity per motor velocity, where the motors stand for all motions, else None
    condition : of that, radians and metres compared by the characteristic length; infinite at singularities of both types
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
    """What :meth:`~sarrus.Mechanism.mobility` found; printed, a report.

    Attributes
    ----------
    name : of the mechanism
    kutzbach : degrees of freedom as counted, 6 bodies - constrained freedoms of all joints (Kutzbach, Grübler): nv - nc
    degrees_of_freedom : of the velocities that all constraints allow here, nv - rank
    finite_degrees_of_freedom : with how many it can move away from here, on the branch that has most; None where that is undecided.
        Where velocities are held too (rolling, Pfaffian rows), how many of them there are nearby
    finite_because : how that was found, or why not
    motions : (nv, degrees_of_freedom) basis of the possible velocities, orthonormal once divided by C [rad/s, m/s]
    rank, singular_values : of R J C
    gap : last singular value that counts over the first that does not; infinite if none is left out
    tolerance : singular values up to this one count as zero
    closing_error : how far the loops are open here [rad, l]
    length : characteristic length l [m]
    row_scale : (nc,) diagonal of R
    redundant : number of rows that say what others say: nc - rank
    redundant_rows : names of so many rows that can be left out together, the last possible ones
    dependent_groups : constraint -> how many of its rows can be left out while all others stay; those that have any
    unique_reactions : joint or other constraint -> whether its wrench follows from motion and loads
    self_stress : joint or other constraint -> (redundant, 6) [moment; force] on the body that it carries (on the child, where it
        closes a loop), at its frame and in its axes, if the mechanism is braced without loads in any of `redundant` independent ways
    idle : joints that cannot move here
    actuation : what the motors can do; None without motors
    warnings : what a designer should know besides
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
        """Which components of a wrench nothing determines."""
        loose = np.linalg.norm(self.self_stress[name] * six(1.0, self.length), axis=0) > PRESENT
        parts = []
        for kind, some in (("moment", loose[:3]), ("force", loose[3:])):
            if some.any():
                parts.append(f"{kind} {' '.join(axis for axis, one in zip('xyz', some, strict=True) if one)}")
        return ", ".join(parts) or "multiplier"


def mobility(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, output: str | tuple[str, str] | None = None,
    time: float | None = None,
) -> Mobility:  # fmt: skip
    """How the mechanism can move in a configuration, and what its motors can do about it.

    The rank of J, by singular values, gives the degrees of freedom of the velocities here. Whether these are the beginning of a
    motion is found by moving, where rows are not independent: by random steps of two sizes along possible velocities, after each of
    which the loops are closed again. Where these contradict each other the answer is None.

    Self-stress, the null space of J^T, loads the joints without any load on the mechanism: what it puts through a joint is what no
    rigid-body model can determine.

    Parameters
    ----------
    q : (nq,) configuration that closes the loops
    actuated : names of joints with motors; default: those that the description says
    output : frame whose velocity the mechanism is there for, or (frame, components), e.g. ("tip", "tx tz"): of rx ry rz tx ty tz,
        those that matter, along the world's axes at the frame's origin; default: all six
    time : [s], where motion is prescribed

    Returns
    -------
    Mobility; print it

    Raises
    ------
    AssemblyError
        q leaves the loops open.
    ShapeError, StateError, NameNotFoundError
        q is not one configuration; it is not finite; a name is not known.

    References
    ----------
    Gosselin and Angeles, Singularity analysis of closed-loop kinematic chains, IEEE Trans. Robotics and Automation 6, 1990: the
    types. Wojtyra, Joint reaction forces in multibody systems with redundant constraints, Multibody System Dynamics 14, 2005.
    Wampler, Hauenstein and Sommese, Mechanism mobility and a local dimension test, Mechanism and Machine Theory 46, 2011: the same
    question answered by numerical algebraic geometry.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.sarrus_linkage()
    >>> robot.mobility(robot.assemble())
    <Mobility of 'Sarrus linkage': degrees of freedom 1 (finite 1, Kutzbach 0), redundant rows 1>
    """
    q = _one_configuration(robot, q)
    frame, components = (None, []) if output is None else frame_components("output", output)
    found: dict[str, Any] = _core.mobility(robot, q, motors_of(robot, actuated), frame, components, checked_time(time))
    motors = found["actuation"]
    return Mobility(**found | {"actuation": None if motors is None else ActuationMobility(**motors)})


def _one_configuration(robot: LoopFunctions, q: ArrayLike) -> Array:
    array = real_array("q", q)
    if array.shape != (robot.nq,):
        raise ShapeError(f"q has shape {array.shape}; mobility takes one configuration, ({robot.nq},)")
    return robot.normalize(array)


def _table(head: str, entries: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Lines that say what was found of which joint, joints of which the same is to be said together."""
    said: dict[str, list[str]] = {}
    for name, what in entries:
        said.setdefault(name, []).append(what)
    alike: dict[str, list[str]] = {}
    for name, parts in said.items():
        alike.setdefault(", ".join(parts), []).append(name)
    lines = [f"{listed(names, 12)}{': ' if what else ''}{what}" for what, names in alike.items()]
    return [(head if k == 0 else "", line) for k, line in enumerate(lines)]
