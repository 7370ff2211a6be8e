"""How a mechanism can move in one configuration, what its constraints say twice, and what its motors can do about it.

Radians and metres are compared by the mechanism's characteristic length l, the mean size of its bodies between joints: one radian
weighs as much as a displacement of l. Singular values are those of R J C, where C multiplies the velocities of sliding joints by l and R
divides each row by what it could be at most, the size of its wrench [moment; l force]. Masses do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..description import CouplerSpec, Description, DistanceSpec, JointSpec, RollingSpec
from ..errors import AssemblyError, ShapeError
from ..joints import PARAMETERS, Gimbal, JointType, axis_frame
from ..spatial import Transform
from ..state import Array
from .actuation import Actuation
from .coordinates import component_rows
from .functions import LoopFunctions

CLOSED = 1e-6  # relative residual up to which loops count as closed
NEGLIGIBLE = 1e-9  # singular values below it are zero, if the loops are closed that well
PRESENT = 1e-6  # part of a unit vector of a null space that is more than rounding
STEP, SMALL_STEP = 0.02, 1e-3  # of the largest velocity [rad, l]: to a configuration nearby, and about there
SOLVED = 1e-13  # where closing the loops stops; a double root is then known to 3e-7
NEARLY = 1e-3  # singular values below it deserve a warning


@dataclass(frozen=True, eq=False)
class ActuationMobility:
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
        nv, nc = len(self.motions), self.rank + self.redundant
        kept, dropped = self.singular_values[: self.rank], self.singular_values[self.rank :]
        rank = f"{self.rank:<4}of {nc} rows"
        if kept.size:
            rank += f", singular values {kept[0]:.3g} to {kept[-1]:.3g}"
        if dropped.size:
            rank += f", then {dropped[0]:.1g}"
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
            lines.append(("cannot move", _listed(self.idle)))
        if (motors := self.actuation) is not None:
            lines.append(("motors", f"{motors.actuators:<4}{motors.verdict}"))
            answers = {None: "?", True: "yes", False: "no"}
            lines.append(("  output singular", answers[motors.output_singular]))
            if motors.input_singular is not None:
                lines.append(("  input singular", answers[motors.input_singular]))
            if motors.locked_freedoms:
                moving = f"{motors.locked_freedoms:<4}left, of {_listed(motors.uncontrolled)}"
                lines.append(("  while they stand", moving))
            if motors.condition is not None:
                lines.append(("  condition", f"{motors.condition:.3g}"))
        lines += [("warning", text) for text in self.warnings]
        return "\n".join([f"Mobility of '{self.name}'", *(f"  {head:<20}{text}" for head, text in lines)])

    def _loose(self, name: str) -> str:
        """Which components of a wrench nothing determines."""
        loose = np.linalg.norm(self.self_stress[name] * _six(1.0, self.length), axis=0) > PRESENT
        parts = []
        for kind, some in (("moment", loose[:3]), ("force", loose[3:])):
            if some.any():
                parts.append(f"{kind} {' '.join(axis for axis, one in zip('xyz', some, strict=True) if one)}")
        return ", ".join(parts) or "multiplier"


class MobilityAnalysis(Actuation):
    """Degrees of freedom, redundant constraints, and singularities."""

    def mobility(
        self,
        q: ArrayLike,
        *,
        actuated: Sequence[str] | None = None,
        output: str | tuple[str, str] | None = None,
        time: float | None = None,
    ) -> Mobility:
        """How the mechanism can move in a configuration, and what its motors can do about it.

        The rank of J, by singular values, gives the degrees of freedom of the velocities here. Whether these are the beginning of a
        motion is another question. Where all rows are independent they are. Elsewhere the mechanism is moved: steps along random
        possible velocities, of two sizes, each followed by closing the loops again. If they come back to q it is stuck; if they stay
        near where they aimed, it has all these freedoms; else (a bifurcation) the freedoms are counted in the configurations reached,
        by what further small steps from there can reach. Where the steps contradict each other the answer is None.

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
        question answered by numerical algebraic geometry. Damping by the residual: Fan and Yuan, Computing 74, 2005.

        Examples
        --------
        >>> import sarrus
        >>> robot = sarrus.mechanisms.sarrus_linkage()
        >>> robot.mobility(robot.assemble())
        <Mobility of 'Sarrus linkage': degrees of freedom 1 (finite 1, Kutzbach 0), redundant rows 1>
        """
        q = _one_configuration(self, q)
        motors = [name for name in self._motors(actuated) if self.joint(name).type.nv]
        loops = _Loops(self, q, time)
        residual = loops.check_closed(q)

        U, s, V = np.linalg.svd(loops.jacobian(q))
        s = np.abs(s)  # LAPACK gives -0 too
        tolerance = max(NEGLIGIBLE, 100.0 * residual) * max(1.0, s.max(initial=0.0))
        rank = int((s > tolerance).sum())
        N, stress = V[rank:].T, U[:, rank:]
        finite, because, nearby = _finite_mobility(loops, q, tolerance)
        actuation = _actuation(self, loops, q, N, finite, nearby, motors, output) if motors else None

        row_names = [row for name in self.constraints for row in self.constraint(name).row_names]
        groups = {name: _rank(stress[self.constraint(name).rows]) for name in self.constraints}
        wrenches = _self_stress(self, q, (loops.row_scale[:, None] * stress).T)
        unique = {name: groups.get(name) == 0 for name in dict.fromkeys((*self._joints, *self.constraints))}
        for name in self.joints:  # what couplers put along the joint's motion is no reaction
            through = wrenches[name] * _six(1.0, loops.length) @ self.joint_bases(q, name)[1]
            unique[name] = bool((np.abs(through) < PRESENT).all())

        moving, warnings = _moving(self, N), []
        gap = float(s[rank - 1] / s[rank]) if 0 < rank < len(s) and s[rank] > 0.0 else np.inf
        if gap < 1.0 / NEARLY:
            warnings.append(f"the rank is not clear: where it ends, singular values fall by a factor of {gap:.2g} only")
        if rank > 0 and s[rank - 1] < NEARLY:
            warnings.append(f"nearly singular: the smallest singular value that counts is {s[rank - 1]:.1g}")
        if finite is not None and finite < self.nv - rank:
            warnings.append(f"singular: {self.nv - rank} degrees of freedom here, of which {finite} are finite")
        if loops.contradicted(q, U[:, :rank]):
            warnings.append("no velocity does what is prescribed and keeps the loops closed")
        slowest = 1.0 if actuation is None or actuation.output_singular else actuation.singular_values.min(initial=1.0)
        if PRESENT < slowest < NEARLY:
            warnings.append(f"near an output singularity: joints move {1.0 / slowest:.1g} times as fast as motors")
        return Mobility(
            name=self.name,
            kutzbach=self.nv - self.nc,
            degrees_of_freedom=self.nv - rank,
            finite_degrees_of_freedom=finite,
            finite_because=because,
            motions=loops.column_scale[:, None] * N,
            rank=rank,
            singular_values=s,
            gap=gap,
            tolerance=tolerance,
            length=loops.length,
            row_scale=loops.row_scale,
            redundant=self.nc - rank,
            redundant_rows=tuple(row_names[k] for k in _removable(stress)),
            dependent_groups={name: count for name, count in groups.items() if count},
            unique_reactions=unique,
            self_stress=wrenches,
            idle=tuple(name for name in self.joints if self.joint(name).nv and name not in moving),
            actuation=actuation,
            warnings=tuple(warnings),
        )


def _one_configuration(robot: LoopFunctions, q: ArrayLike) -> Array:
    array = np.asarray(q, dtype=np.float64)
    if array.shape != (robot.nq,):
        raise ShapeError(f"q has shape {array.shape}; mobility takes one configuration, ({robot.nq},)")
    return robot.normalize(array)


# ---- scaled constraints --------------------------------------------------------------------------------------------------------------


class _Loops:
    """The constraints about one configuration, in units in which rotations and displacements compare."""

    def __init__(self, robot: LoopFunctions, q: Array, time: float | None) -> None:
        self.robot, self.time = robot, time
        self.length = _characteristic_length(robot.description)
        slides = np.concatenate([np.zeros(0, dtype=bool), *(_slides(robot.joint(name).type) for name in robot.joints)])
        self.column_scale = np.where(slides, self.length, 1.0)
        self.row_scale = 1.0 / self._row_sizes(q)
        self.holonomic = np.array(
            [h for name in robot.constraints for h in robot.constraint(name).holonomic], dtype=bool
        )

    def _row_sizes(self, q: Array) -> Array:
        """How large each row could be, whatever the configuration: a row that has become small says that it is near a singularity."""
        robot = self.robot
        wrenches = robot.loop_wrenches(q, np.eye(robot.nc)) * _six(1.0, self.length)
        sizes = np.sqrt((wrenches**2).sum(axis=(1, 2)))
        J = robot.constraint_jacobian(q, time=self.time) * self.column_scale
        for name in robot.constraints:
            rows, spec = robot.constraint(name).rows, robot.constraint(name).spec
            if isinstance(spec, CouplerSpec):  # as where all coordinates are one
                units = [self.column_scale[robot.joint(joint).v_slice][index] for joint, index, _ in spec.terms]
                terms = zip(units, (term[2] for term in spec.terms), strict=True)
                sizes[rows] = np.linalg.norm([sum(k * abs(c) * x**k for k, c in enumerate(cs, 1)) for x, cs in terms])
            elif not robot.constraint(name).bodies:
                sizes[rows] = np.linalg.norm(J[rows], axis=1)
        return np.where(sizes > 0.0, sizes, 1.0)

    def jacobian(self, q: Array) -> Array:
        """R J C (..., nc, nv)."""
        return self.row_scale[:, None] * self.robot.constraint_jacobian(q, time=self.time) * self.column_scale

    def residual(self, q: Array) -> Array:
        """R phi (..., nc)."""
        return self.row_scale * self.robot.loop_residual(q, time=self.time)

    def step(self, q: Array, x: Array) -> Array:
        """From q along scaled velocities."""
        return self.robot.integrate(q, self.column_scale * x)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The scaled velocities that lead from q0 to q1."""
        return self.robot.difference(q0, q1) / self.column_scale

    def check_closed(self, q: Array) -> float:
        """The largest relative residual; AssemblyError where it is too large."""
        robot, residual = self.robot, np.abs(self.residual(q))
        if residual.size == 0 or residual.max() <= CLOSED:
            return float(residual.max(initial=0.0))
        worst = int(residual.argmax())
        rows = [row for name in robot.constraints for row in robot.constraint(name).row_names]
        off = robot.loop_residual(q, time=self.time)[worst]
        raise AssemblyError(
            f"q does not close the loops: '{rows[worst]}' is off by {off:.3g} ({residual[worst]:.1g} of the mechanism's size, "
            f"{CLOSED:g} is allowed); mobility is that of a closed configuration, which assemble or project_configuration find"
        )

    def contradicted(self, q: Array, reach: Array) -> bool:
        """Whether no velocity gives what is prescribed; `reach` is a basis of what velocities can give."""
        c = self.row_scale * self.robot.constraint_velocity(q, time=self.time)
        return bool(np.linalg.norm(c - reach @ (reach.T @ c)) > PRESENT * np.linalg.norm(c))

    def close(self, q: Array) -> tuple[Array, Array]:
        """Configurations near q (k, nq) that close the loops as well as they can, and the residuals (k,) that are left.

        Levenberg and Marquardt's steps, damped in proportion to the residual: these converge quadratically even where solutions are
        not isolated and J loses rank on them, and they halve the way to a double root.
        """
        q, nv = q.copy(), self.robot.nv
        phi = self.residual(q)[:, self.holonomic]
        size, damping = np.linalg.norm(phi, axis=1), np.ones(len(q))
        for _ in range(100):
            far = np.flatnonzero(size > SOLVED)
            if far.size == 0:
                break
            J = self.jacobian(q[far])[:, self.holonomic]
            held = np.sqrt(damping[far] * size[far])[:, None, None] * np.eye(nv, nv + 1)
            # least squares by the triangle alone: the right-hand side goes along as the last column
            both = np.concatenate([J, -phi[far, :, None]], axis=2)
            R = np.asarray(np.linalg.qr(np.concatenate([both, held], axis=1), mode="r"))
            there = self.step(q[far], np.linalg.solve(R[:, :nv, :nv], R[:, :nv, nv:])[..., 0])
            phi_there = self.residual(there)[:, self.holonomic]
            size_there = np.linalg.norm(phi_there, axis=1)
            better = size_there < size[far]
            damping[far] = np.clip(damping[far] * np.where(better, 0.3, 4.0), 1e-6, 1e8)
            went = far[better]
            q[went], phi[went], size[went] = there[better], phi_there[better], size_there[better]
        return q, size


def _characteristic_length(description: Description) -> float:
    """Mean over the bodies of the largest distance between two places where something holds them, with rods and wheels [m]."""
    places: dict[str, list[ArrayLike]] = {}
    sizes: list[float] = []
    for joint in description.joints:
        places.setdefault(joint.parent, []).append(joint.at_parent.translation)
        places.setdefault(joint.child, []).append(joint.at_child.translation)
    for spec in description.constraints:
        if isinstance(spec, DistanceSpec):
            for body, point in (spec.first, spec.second):
                places.setdefault(body, []).append(point)
            sizes.append(spec.length)
        elif isinstance(spec, RollingSpec):
            places.setdefault(spec.body, []).append(spec.center)
            sizes.append(spec.radius)
    apart = {body: np.array(points)[:, None] - np.array(points) for body, points in places.items()}
    spans = {body: float(np.linalg.norm(d, axis=-1).max()) for body, d in apart.items()}
    ground = spans.pop("ground", 0.0)
    sizes += [span for span in spans.values() if span > 0.0]
    return float(np.mean(sizes)) if sizes else ground or 1.0


# ---- finite mobility -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Neighbour:
    """A configuration nearby, and a basis (nv, degrees of freedom) of the scaled velocities with which it can really move."""

    q: Array
    tangent: Array


def _finite_mobility(loops: _Loops, q: Array, tolerance: float) -> tuple[int | None, str, list[_Neighbour]]:
    """Dimension of the motions through q, how it was found, and configurations nearby."""
    dimension, because, found = _branches(loops, q, tolerance)
    if dimension and not loops.holonomic.all():  # velocities are held besides
        held = [(n, loops.jacobian(n.q)[~loops.holonomic] @ n.tangent) for n in found]
        found = [_Neighbour(n.q, n.tangent @ _null_space(A, PRESENT)) for n, A in held]
        dimension = max((n.tangent.shape[1] for n in found), default=None)
    return dimension, because, [n for n in found if n.tangent.shape[1] == dimension]


def _branches(loops: _Loops, q: Array, tolerance: float) -> tuple[int | None, str, list[_Neighbour]]:
    """The same for the configurations that close the loops, whatever else holds velocities."""
    J = loops.jacobian(q)[loops.holonomic]
    N = _null_space(J, tolerance)
    d = N.shape[1]
    if d == 0:
        return 0, "nothing moves here", []
    rng = np.random.default_rng(0)
    count = min(d, 8) + 4
    aim = _largest_one(rng.standard_normal((count, d)) @ N.T)
    step = np.where(np.arange(count) % 2, STEP / 4, STEP)
    ends, went, known = _walk(loops, q, aim, step)
    straight = known & (np.abs(went - aim).max(axis=1) < 0.2)
    independent = len(J) + d == loops.robot.nv
    if independent or straight.all():
        found = [
            _Neighbour(end, np.linalg.svd(loops.jacobian(end)[loops.holonomic])[2][-d:].T) for end in ends[straight]
        ]
        steps = f"{count} random steps along possible velocities could be taken"
        return d, "the constraints are independent here" if independent else steps, found[:4]

    for _ in range(2):  # once more, where the steps led: a branch is followed, a dead end is left
        ends, went, known = _walk(loops, q, _largest_one(went @ N @ N.T), step)
    far = np.abs(went).max(axis=1)
    if (known & (far < 0.02)).all():
        return 0, f"{count} random steps along possible velocities all led back", []
    moved = known & (far > 0.8) & (far < 1.25)
    per_size = [[_tangent(loops, end, rng) for end in ends[moved & (step == size)][:4]] for size in (STEP, STEP / 4)]
    found = [n for there in per_size for n in there if n is not None and n.tangent.shape[1] > 0]
    most = [max((n.tangent.shape[1] for n in there if n is not None), default=0) for there in per_size]
    if None in (*per_size[0], *per_size[1]) or most[0] != most[1] or not found:
        return None, "undecided: steps of different sizes and directions do not agree", found
    what = "bifurcation: of" if most[0] < d else "of"
    return most[0], f"{what} the largest branch, from {len(found)} configurations nearby", found


def _largest_one(v: Array) -> Array:
    """Rows scaled so that their largest entry is one."""
    return np.asarray(v / np.abs(v).max(axis=1, keepdims=True, initial=1e-300))


def _walk(loops: _Loops, q: Array, aim: Array, step: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Steps along scaled velocities (k, nv) and onto the loops: where they end, how far they went per step, and whether that is known."""
    ends, left = loops.close(loops.step(q, step[:, None] * aim))
    # a residual of x^2 is all that is seen of being x away from a double root
    return ends, loops.difference(q, ends) / step[:, None], np.sqrt(left) < 0.01 * step


def _tangent(loops: _Loops, q: Array, rng: np.random.Generator) -> _Neighbour | None:
    """Which of the velocities that J allows at q can be followed; None where that is not clear.

    J alone would not do: a mechanism that carries along a structure at its dead centre has a velocity everywhere that leads nowhere.
    """
    N = _null_space(loops.jacobian(q)[loops.holonomic], PRESENT)
    d = N.shape[1]
    directions = np.linalg.qr(rng.standard_normal((d, d)))[0]
    for aim in (directions[:8] * np.sqrt(d / 8), directions) if d > 16 else (directions,):
        _, went, known = _walk(loops, q, aim @ N.T, np.full(len(aim), SMALL_STEP))
        _, share, V = np.linalg.svd(went @ N)
        clear = known.all() and not ((share > 0.05) & (share < 0.3)).any()
        followed = int((share > 0.1).sum())
        if clear and followed < len(aim) // 2:  # a few of many directions are enough where they all lead to the same
            break
    return _Neighbour(q, N @ V[:followed].T) if clear else None


# ---- redundancy and reactions --------------------------------------------------------------------------------------------------------


def _removable(stress: Array) -> list[int]:
    """The last rows whose removal keeps the rank: those where the self-stresses (nc, k), restricted to them, are independent."""
    left, rows = stress.copy(), []
    for _ in range(stress.shape[1]):
        size = np.linalg.norm(left, axis=1)
        row = int(np.flatnonzero(size > 1e-3 * size.max())[-1])
        direction = left[row] / size[row]
        left -= np.outer(left @ direction, direction)
        left[row] = 0.0
        rows.append(row)
    return sorted(rows)


def _self_stress(robot: LoopFunctions, q: Array, multipliers: Array) -> dict[str, Array]:
    """Per joint and constraint (k, 6): what each of k sets of multipliers (k, nc), in equilibrium, puts through it."""
    k = len(multipliers)
    pose = {body: Transform.from_matrix(robot.pose(q, body)) for body in ("ground", *robot.bodies)}
    loads = {body: np.zeros((k, 6)) for body in robot.bodies}
    found = {}
    all_wrenches = np.broadcast_to(robot.loop_wrenches(q, multipliers), (k, len(robot.constraints), 6))
    for i, name in enumerate(robot.constraints):
        constraint, wrench = robot.constraint(name), all_wrenches[:, i]
        found[name] = np.array(wrench)
        if not constraint.bodies:
            continue
        place = _place_on_child(constraint.spec)
        for body, sign in zip(constraint.bodies, (-1.0, 1.0), strict=True):
            if body != "ground":
                there = pose[body].inverse() @ pose[constraint.bodies[1]] @ place
                loads[body] += sign * wrench @ there.force_matrix.T
    if k == 0:
        return found | {name: np.zeros((0, 6)) for name in robot.joints}
    rest = np.zeros(robot.nv)
    falling = np.concatenate([np.zeros(3), robot.gravity])  # together with the ground: nothing has weight
    through: dict[str, Array] = robot.reactions(q, rest, rest, wrenches=loads, base_acceleration=falling)
    return found | through


def _place_on_child(spec: object) -> Transform:
    """Frame of a constraint on its child."""
    if isinstance(spec, JointSpec):
        return spec.at_child
    if isinstance(spec, DistanceSpec):
        return Transform(translation=spec.second[1])
    assert isinstance(spec, RollingSpec)
    return Transform(np.eye(3) if spec.axle is None else axis_frame(spec.axle), spec.center)


# ---- motors --------------------------------------------------------------------------------------------------------------------------


def _actuation(
    robot: Actuation,
    loops: _Loops,
    q: Array,
    N: Array,
    finite: int | None,
    nearby: list[_Neighbour],
    motors: list[str],
    output: str | tuple[str, str] | None,
) -> ActuationMobility:
    """What motors and output feel of the motions N (nv, d), B and G, and how that is nearby."""
    motor_scale = np.where(np.concatenate([_slides(robot.joint(name).type) for name in motors]), loops.length, 1.0)
    frame, components = (output, " ".join(PARAMETERS)) if isinstance(output, str) else output or ("ground", "")
    rows = component_rows(components)
    output_scale = _six(1.0, loops.length)[rows]

    def felt(q: Array, motions: Array) -> tuple[Array, Array]:
        v = loops.column_scale[:, None] * motions
        twist = robot.jacobian(q, frame, expressed_in="world_aligned")[rows] @ v
        return robot.actuation_jacobian(q, motors).T @ v / motor_scale[:, None], twist / output_scale[:, None]

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
        uncontrolled=_moving(robot, N @ _null_space(B, PRESENT)),
        output_singular=singular_output if known else None,
        input_singular=singular_input if output is not None else None,
        singular_values=np.asarray(np.linalg.svd(B, compute_uv=False)[:usual_rank]),
        output_jacobian=jacobian,
        condition=condition,
    )


def _slides(joint: JointType) -> Array:
    """(nv,) which of a joint's velocities are in metres per second."""
    slides = {"Prismatic": (1,), "Cylindrical": (0, 1), "Planar": (1, 1, 0), "Free": (0, 0, 0, 1, 1, 1)}
    if isinstance(joint, Gimbal):
        return np.array([name.startswith("t") for name in joint.free], dtype=bool)
    return np.array(slides.get(joint.kind, (0,) * joint.nv), dtype=bool)


# ---- linear algebra ------------------------------------------------------------------------------------------------------------------


def _rank(A: Array) -> int:
    return int((np.linalg.svd(A, compute_uv=False) > PRESENT).sum())


def _null_space(A: Array, tolerance: float) -> Array:
    """Orthonormal basis (n, k) of the vectors that A (m, n) takes to less than the tolerance."""
    _, s, V = np.linalg.svd(A)
    return V[int((s > tolerance).sum()) :].T


def _six(angular: float, linear: float) -> Array:
    return np.repeat([angular, linear], 3)


def _moving(robot: LoopFunctions, motions: Array) -> tuple[str, ...]:
    """Joints of the tree that move in any of the scaled motions (nv, k)."""
    moves = np.abs(motions).max(axis=1, initial=0.0) > PRESENT
    return tuple(name for name in robot.joints if moves[robot.joint(name).v_slice].any())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _table(head: str, found: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Lines that say what was found of which joint, joints of which the same is to be said together."""
    said: dict[str, list[str]] = {}
    for name, what in found:
        said.setdefault(name, []).append(what)
    alike: dict[str, list[str]] = {}
    for name, parts in said.items():
        alike.setdefault(", ".join(parts), []).append(name)
    lines = [f"{_listed(names)}{': ' if what else ''}{what}" for what, names in alike.items()]
    return [(head if k == 0 else "", line) for k, line in enumerate(lines)]
