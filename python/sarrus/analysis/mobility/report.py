"""How a mechanism can move in one configuration, what its constraints say twice, and what its motors can do about it.

Rank and null spaces are those of the scaled J, R J C (:mod:`sarrus.analysis.scaling`): they say which velocities the constraints allow here, and which
loads on the joints are in equilibrium without any other. What becomes of these velocities is found by moving (:mod:`sarrus.analysis.mobility.finite_motion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._arrays import Array, ArrayLike, real_array
from ..._core import tolerances
from ..._showing import Brief, listed, table
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.reactions import carried_by_tree, joint_bases
from ...errors import ShapeError
from ..actuation.efforts import actuation_matrix, motors_of
from ..independent_coordinates import frame_components
from ..scaling import PRESENT, ScaledLoops, null_space, six, velocity_scale
from .finite_motion import Neighbour, finite_mobility

NEGLIGIBLE, NEARLY = tolerances.negligible, tolerances.nearly_singular


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
    motors = [name for name in motors_of(robot, actuated) if robot.joint(name).type.nv]
    loops = ScaledLoops(robot, q, time)
    residual = loops.check_closed(q)

    U, s, V = np.linalg.svd(loops.jacobian(q))
    s = np.abs(s)  # LAPACK gives -0 too
    tolerance = max(NEGLIGIBLE, 100.0 * residual) * max(1.0, s.max(initial=0.0))
    rank = int((s > tolerance).sum())
    N, stress = V[rank:].T, U[:, rank:]
    finite, because, nearby = finite_mobility(loops, q, tolerance)
    actuation = _actuation(robot, loops, q, N, finite, nearby, motors, output) if motors else None

    groups = {name: _rank(stress[robot.constraint(name).rows]) for name in robot.constraints}
    wrenches = braced_wrenches(robot, q, (loops.row_scale[:, None] * stress).T, time)
    unique = {name: groups.get(name) == 0 for name in dict.fromkeys((*robot._joints, *robot.constraints))}
    for name in robot.joints:  # what couplers put along the joint's motion is no reaction
        through = wrenches[name] * six(1.0, loops.length) @ joint_bases(robot, q, name)[1]
        unique[name] = bool((np.abs(through) < PRESENT).all())

    moving, gap = _moving(robot, N), _gap(s, rank)
    warnings = list(_warnings_of_rank(s, rank, gap))
    if finite is not None and finite < robot.nv - rank:
        warnings.append(f"singular: {robot.nv - rank} degrees of freedom here, of which {finite} are finite")
    if loops.contradicted(q, U[:, :rank]):
        warnings.append("no velocity does what is prescribed and keeps the loops closed")
    slowest = 1.0 if actuation is None or actuation.output_singular else actuation.singular_values.min(initial=1.0)
    if PRESENT < slowest < NEARLY:
        warnings.append(f"near an output singularity: joints move {1.0 / slowest:.1g} times as fast as motors")
    return Mobility(
        name=robot.name,
        kutzbach=robot.nv - robot.nc,
        degrees_of_freedom=robot.nv - rank,
        finite_degrees_of_freedom=finite,
        finite_because=because,
        motions=loops.column_scale[:, None] * N,
        rank=rank,
        singular_values=s,
        gap=gap,
        tolerance=tolerance,
        closing_error=residual,
        length=loops.length,
        row_scale=loops.row_scale,
        redundant=robot.nc - rank,
        redundant_rows=tuple(robot._row_names[k] for k in removable_rows(stress)),
        dependent_groups={name: count for name, count in groups.items() if count},
        unique_reactions=unique,
        self_stress=wrenches,
        idle=tuple(name for name in robot.joints if robot.joint(name).nv and name not in moving),
        actuation=actuation,
        warnings=tuple(warnings),
    )


def _one_configuration(robot: LoopFunctions, q: ArrayLike) -> Array:
    array = real_array("q", q)
    if array.shape != (robot.nq,):
        raise ShapeError(f"q has shape {array.shape}; mobility takes one configuration, ({robot.nq},)")
    return robot.normalize(array)


# ---- motors --------------------------------------------------------------------------------------------------------------------------


def _actuation(
    robot: LoopFunctions, loops: ScaledLoops, q: Array, N: Array, finite: int | None, nearby: list[Neighbour],
    motors: list[str], output: str | tuple[str, str] | None,
) -> ActuationMobility:  # fmt: skip
    """What motors and output feel of the motions N (nv, d), B and G, and how that is nearby."""
    motor_scale = velocity_scale(robot, motors)
    frame, rows = ("ground", []) if output is None else frame_components("output", output)
    output_scale = six(1.0, loops.length)[rows]

    def felt(q: Array, motions: Array) -> tuple[Array, Array]:
        v = loops.column_scale[:, None] * motions
        twist = robot.jacobian(q, frame, expressed_in="world_aligned")[rows] @ v
        return actuation_matrix(robot, q, actuated=motors).T @ v / motor_scale[:, None], twist / output_scale[:, None]

    def ranks(B: Array, G: Array) -> tuple[int, int, int]:
        """Of B, of G, and how many ways motors have to move while the output stands still."""
        return _rank(B), _rank(G), _rank(np.concatenate([B, G])) - _rank(G)

    B, G = felt(q, N)
    rank, _, unfelt = ranks(B, G)
    locked = N.shape[1] - rank
    # what is usual: the best of the neighbours. A structure has none: nothing moves there
    others = [(*ranks(*felt(n.q, n.tangent)), n.tangent.shape[1]) for n in nearby]
    known = bool(others) or finite == 0 or locked == 0
    if not others:
        others = [(0, 0, 0, 0)] if finite == 0 else [(*ranks(B, G), N.shape[1])]
    usual_rank, usual_output = max(other[0] for other in others), max(other[1] for other in others)
    usual_locked, usual_unfelt = min(other[3] - other[0] for other in others), min(other[2] for other in others)

    singular_output, singular_input = locked > usual_locked, unfelt > usual_unfelt
    jacobian = condition = None
    if output is not None and locked == 0:
        scaled = G @ np.linalg.pinv(B)
        gains = np.linalg.svd(scaled, compute_uv=False)[:usual_output]
        if gains.size:
            condition = np.inf if singular_input else float(gains[0] / gains[-1])
        jacobian = output_scale[:, None] * scaled / motor_scale
    elif output is not None and singular_output:
        condition = np.inf
    return ActuationMobility(
        actuators=len(B),
        verdict="deficient" if usual_locked else "redundant" if len(B) > usual_rank else "exact",
        locked_freedoms=locked,
        uncontrolled=_moving(robot, N @ null_space(B, PRESENT)),
        output_singular=singular_output if known else None,
        input_singular=singular_input if output is not None else None,
        singular_values=np.asarray(np.linalg.svd(B, compute_uv=False)[:usual_rank]),
        output_jacobian=jacobian,
        condition=condition,
    )


# ---- linear algebra and words --------------------------------------------------------------------------------------------------------


def _rank(A: Array) -> int:
    return int((np.linalg.svd(A, compute_uv=False) > PRESENT).sum())


def _gap(s: Array, rank: int) -> float:
    """The last singular value that counts over the first that does not."""
    if 0 < rank < len(s) and s[rank] > s[rank - 1] * 1e-300:
        return float(s[rank - 1] / s[rank])
    return np.inf  # a factor beyond floats is as clear


def _warnings_of_rank(s: Array, rank: int, gap: float) -> Iterator[str]:
    """What is not clear about the rank by the singular values s."""
    if gap < 1.0 / NEARLY:
        yield f"the rank is not clear: where it ends, singular values fall by a factor of {gap:.2g} only"
    if rank > 0 and s[rank - 1] < NEARLY:
        few = int((s[:rank] < NEARLY).sum())
        rounded = f", {few} are under {NEARLY:g}: numbers that a file rounds can hold fast what was meant to move"
        yield f"nearly singular: the smallest singular value that counts is {s[rank - 1]:.1g}" + rounded * (few > 1)


def _moving(robot: LoopFunctions, motions: Array) -> tuple[str, ...]:
    """Joints of the tree that move in any of the scaled motions (nv, k)."""
    moves = np.abs(motions).max(axis=1, initial=0.0) > PRESENT
    return tuple(name for name in robot.joints if moves[robot.joint(name).v_slice].any())


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


# ---- what constraints say twice: rows that can go, and wrenches that brace a mechanism without loads -----------------
# Multipliers of the null space of J^T load the joints without any load on the mechanism: what these self-stresses put through a joint is
# what no rigid-body model can determine.


BLOCK = 64  # rows that are looked at one by one, before all others are told what they span at once


def removable_rows(stress: Array) -> list[int]:
    """The last rows whose removal keeps the rank: those where the self-stresses (nc, k), restricted to them, are independent."""
    rows: list[int] = []
    left = stress.copy()
    while len(rows) < stress.shape[1]:
        size = np.linalg.norm(left, axis=1)
        last = np.flatnonzero(size > 1e-3 * size.max())[-BLOCK:]
        block, directions = left[last], []
        for k in reversed(range(len(last))):
            length = np.linalg.norm(block[k])
            if length <= 1e-3 * size.max() or len(rows) == stress.shape[1]:
                continue
            direction = block[k] / length
            block -= np.outer(block @ direction, direction)
            directions.append(direction)
            rows.append(int(last[k]))
        D = np.array(directions)
        left -= (left @ D.T) @ D
        left[rows] = 0.0
    return sorted(rows)


def braced_wrenches(robot: LoopFunctions, q: Array, multipliers: Array, time: float | None) -> dict[str, Array]:
    """Per joint and constraint (k, 6): what each of k sets of multipliers (k, nc), in equilibrium, puts through it."""
    k = len(multipliers)
    wrenches = np.broadcast_to(robot._loop_wrenches(q, multipliers, time=time), (k, len(robot.constraints), 6))
    of_constraints = {name: np.array(wrenches[:, i]) for i, name in enumerate(robot.constraints)}
    through = carried_by_tree(robot, q, wrenches)
    return of_constraints | {name: 0.0 - through.get(name, np.zeros((k, 6))) for name in robot.joints}
