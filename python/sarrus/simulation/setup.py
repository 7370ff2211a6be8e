"""What the runs of a mechanism share, be it one or many: their force elements and limits, the core's Simulation, and where they start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, real_array
from .._core import Status
from ..control.element import Element, ForceElements, Run
from ..errors import ModelError
from ..mechanism import Mechanism
from .arguments import Stepping
from .limits import JointLimits

if TYPE_CHECKING:
    from ..variants import Variants
    from .histories import PlaneContact

BLOCK = 1024  # runs a thread of which all is kept at once
SOME_STARTS = 8  # where rates of joints are looked at
NOBODY = np.zeros(0, np.int64)
ELSEWHERE = 1.0  # [rad, sizes of the bodies] that closing the loops moves a joint by, from which on it is another start and no nearby one
Ended = NDArray[np.int8]  # (runs,), a Status each


@dataclass(frozen=True, eq=False)
class Setup:
    """Of what the core makes a Simulation, here or in another process."""

    mechanism: Any  # a Mechanism; or Variants, of which each run has one
    method: str
    stabilisation: str
    gains: tuple[float, float]
    terms: list[dict[str, Any]]
    effort_limits: list[float]
    limits: list[tuple[int, int, float, float]]
    stops: tuple[tuple[str, int, float, float], ...] = ()  # of joints that close loops: joint, coordinate, limits

    def core(
        self,
        parameters: ArrayLike = (),
        controller: Any = None,
        sampled: Sequence[Any] = (),
        events: Sequence[Any] = (),
    ) -> _core.Simulation:
        """With the numbers of force elements, and with functions of the caller's."""
        robot = self.mechanism
        return _core.Simulation(
            robot, self.method, self.stabilisation, self.gains, self.terms, self.effort_limits, parameters, controller, sampled,
            robot._pfaffian_numbers if has_functions_of_q(robot) else None, events, self.limits, robot._units_of_motion,
        )  # fmt: skip

    @property
    def _varied(self) -> bool:
        """True if each run has a variant."""
        return self.mechanism._base is not self.mechanism

    def of(self, rows: Any) -> Setup:
        """Of some of the runs, where each has a variant."""
        if not self._varied:
            return self
        return replace(self, mechanism=self.mechanism[rows])

    def variants(self, rows: Any) -> NDArray[np.int64]:
        """Which of the variants these runs are of."""
        return np.arange(self.mechanism._count)[rows] if self._varied else NOBODY

    def begin(
        self, core: _core.Simulation, q: Array, v: Array, time: float, near: Mapping[str, Array], threads: int = 1
    ) -> tuple[Array, Ended]:
        """States (runs, size) from which runs start, on the loops, neutral ones where there is none; and why there is none (runs,)."""
        nq, nv = self.mechanism.nq, self.mechanism.nv
        x, begun = np.zeros((len(q), core.size)), np.full(len(q), Status.FINISHED, np.int8)
        # of one run by the functions of one state: in lanes their last digits are others, and impacts make much of them
        alone = len(q) == 1 or _core.methods[self.method].rigid
        for rows in range(len(q)) if alone else shares(len(q), BLOCK * threads):
            one = isinstance(rows, int) and self._varied
            robot = self.mechanism[rows] if one else self.mechanism._of_rows(np.arange(len(q))[rows])
            q_on, v_on, begun[rows] = self._on_the_loops(robot, q[rows], v[rows], time, threads)
            x[rows, :nq], x[rows, nq : nq + nv] = _replaced(begun[rows] != Status.FINISHED, robot, q_on, v_on)
            if core.counted or near:
                turns = self._within_stops(
                    robot, x[rows, :nq], time, {name: angles[rows] for name, angles in near.items()}
                )
                coordinates = loop_coordinates(robot, x[rows, :nq], time, turns)
                x[rows, core.size - core.counted :] = coordinates[..., : core.counted]
        return x, begun

    def _within_stops(self, robot: Mechanism, q: Array, time: float, near: dict[str, Array]) -> dict[str, Array]:
        """The same, and of joints with end stops of their own the turns in which they are within them."""
        turns = dict(near)
        for joint, k, lower, upper in self.stops:
            if joint not in near:
                x = np.array(robot.joint_states(q, near=turns, time=time).q[joint])
                outside = (x[..., k] < lower) | (x[..., k] > upper)
                x[..., k] = np.where(outside, 0.5 * (lower + upper), x[..., k])
                turns[joint] = x
        return turns

    def _on_the_loops(
        self, robot: Mechanism, q: Array, v: Array, time: float, threads: int
    ) -> tuple[Array, Array, Array]:
        """The nearest states, and a Status each: INVALID_STATE where loops stay open, INCONSISTENT_CONSTRAINTS where they allow no velocity."""
        asked: dict[str, Any] = {"threads": threads, "return_status": True}
        q, off = robot.normalize(q, **asked)
        unsound = (off != 0) | ~np.isfinite(v).all(axis=-1)
        if not robot.nc or self.stabilisation == "none":
            return q, v, np.where(unsound, Status.INVALID_STATE, Status.FINISHED)
        asked["time"] = time
        given, v = _replaced(unsound, robot, q, v)
        q, lost = robot.project_configuration(given, **asked)
        v, forbidden = robot.project_velocity(q, v, **asked)
        closed = (
            ~unsound & (lost == 0) & ((forbidden == Status.FINISHED) | (forbidden == Status.INCONSISTENT_CONSTRAINTS))
        )
        closed &= moved_by_closing(robot, given, q).max(axis=-1, initial=0.0) <= ELSEWHERE
        return q, v, np.where(closed, forbidden, Status.INVALID_STATE)


def _replaced(rows: Any, robot: Mechanism | Variants, q: Array, v: Array) -> tuple[Array, Array]:
    """The states, with the neutral one at rest in these rows."""
    if not np.any(rows):
        return q, v
    return np.where(rows[..., None], robot.neutral(), q), np.where(rows[..., None], 0.0, v)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A mechanism with all that acts on it in runs.

    Attributes
    ----------
    functions, elements : of the caller, and force elements, end stops at limits among them
    felt_at : (..., nq) from which elements took defaults, or None
    """

    setup: Setup
    forces: ForceElements
    limits: JointLimits
    functions: list[Callable[..., Any]]
    elements: list[Any]
    felt_at: Array | None

    @property
    def acts(self) -> bool:
        """True if controllers, loads or laws of time act, or dampers and dry friction of the mechanism."""
        d = self.setup.mechanism.description
        damped = any(np.any(j.joint.damping) or np.any(j.joint.friction) for j in d.joints) or any(
            s.damping for s in d.springs
        )
        driven = any(j.laws for j in d.joints) or any(hasattr(c, "rows") or c.prescribed(0.0) for c in d.constraints)
        return bool(self.functions or self.elements or damped or driven)

    @classmethod
    def of(
        cls, robot: Mechanism | Variants, controllers: tuple[list[Any], list[Any]], limits: JointLimits, how: Stepping,
        start: ArrayLike | None, rows: Any = None, runs: int = 0, varies: bool = False, at: ArrayLike | None = None,
    ) -> Prepared:  # fmt: skip
        """From functions and elements; those take what defaults they have from where runs start, and numbers of those of its runs. `varies`:
        steps are to have derivatives. `at`: where runs start, whoever has defaults.
        """
        functions, elements = controllers
        method = method_for(how.method, elements, varies, robot, start if at is None else at, how.dt)
        check_contact(robot, method, how.stabilisation, elements)
        elements = elements + limits.end_stops + shapes_that_touch(robot, method, elements)
        felt_at = None if start is None else start_of(robot, start)
        run = Run(limits.effort_limits, felt_at, rows, runs, _core.methods[method].rigid)
        forces = ForceElements.of(robot, elements, run)
        setup = Setup(
            robot,
            method,
            how.stabilisation,
            how.gains,
            forces.terms,
            forces.effort_limits,
            limits.terms,
            stops_of(robot, elements),
        )
        return cls(setup, forces, limits, functions, elements, felt_at)


def moved_by_closing(robot: Mechanism | Variants, given: Array, closed: Array) -> Array:
    """(..., nv) displacements from what was given to where loops are closed [rad, sizes of the bodies]; none where they could not be."""
    one = cast(Mechanism, robot._base)
    start = one.normalize(given, return_status=True)[0]
    moved = one.difference(start, np.where(np.isfinite(closed).all(axis=-1, keepdims=True), closed, start))
    return np.asarray(np.abs(moved) / one._units_of_motion[1][0, : one.nv])


def mechanism_of(robot: Mechanism | Variants, run: int) -> Mechanism:
    """The mechanism of a run."""
    return cast(Mechanism, robot if robot._base is robot else cast("Variants", robot)[run % robot._count])


def stops_of(robot: Mechanism | Variants, elements: Iterable[Any]) -> tuple[tuple[str, int, float, float], ...]:
    """Of end stops at joints that close loops, whose angles are taken within these limits: joint, coordinate and limits."""
    return tuple(
        (e.joint, e.index, *map(float, e.limits))
        for e in elements
        if e._kind == "EndStop" and isinstance(e.joint, str) and robot.joint(e.joint).closes_loop
        if e.limits is not None and all(isinstance(x, Real) and np.isfinite(float(x)) for x in e.limits)
    )


def feel_the_start(elements: Iterable[Any]) -> bool:
    """Return True if a default of an element depends on the effective inertia where runs start."""
    return any(getattr(e, name, 0.0) is None for e in elements for name in ("damping", "stiffness"))


def start_of(robot: Any, q: ArrayLike) -> Array:
    """Configurations (..., nq) brought onto the loops, the neutral one in place of what is none."""
    x = real_array("q", q)
    if x.shape[-1:] != (robot.nq,):
        return np.asarray(robot.neutral())  # of which the run says what is wrong
    x, unsound = robot.normalize(x, return_status=True)
    if robot.nc:
        x, _ = _replaced(unsound != 0, robot, x, x)
        x, _ = robot.project_configuration(x, return_status=True)
    return _replaced((unsound != 0) | ~np.isfinite(x).all(axis=-1), robot, x, x)[0]


def loop_coordinates(robot: Mechanism, q: Array, time: float, near: Mapping[str, Array] | None = None) -> Array:
    """Coordinates (..., those of joints that close loops) from which runs count turns: angles in [-pi, pi], or within their joints' limits, or
    those nearest to `near`.
    """
    x = robot.joint_states(q, near=near, time=time).q
    return np.concatenate([q[..., :0], *(x[joint.name] for joint in robot._closing_joints)], axis=-1)


def method_for(
    method: str, elements: Iterable[Any], varies: bool, robot: Mechanism | Variants, start: ArrayLike | None, dt: float
) -> str:
    """What "auto" stands for: friction of contacts and bristles is too stiff for explicit steps of any length that one would ask for, and so
    may be dampers and springs of joints and between points where runs start.
    """
    if method != "auto":
        return method
    if any(e.rigid for e in elements):
        return "contact"
    stiff = "implicit_midpoint" if varies else "rosenbrock"
    if any(e.stiff for e in elements):
        return stiff
    for one, q in _some_starts(robot, start):
        from .stiffness import outruns

        if outruns(one, start_of(one, q), dt):
            return "implicit_midpoint"
    return "rk4"


def _some_starts(robot: Mechanism | Variants, start: ArrayLike | None) -> Iterator[tuple[Mechanism, Array]]:
    """Mechanisms, each with a configuration in which one of its runs starts: a few of many."""
    d = robot.description
    if not d.springs and not any(np.any(j.joint.damping) or np.any(j.joint.stiffness) for j in d.joints):
        return
    q = np.asarray(robot.neutral() if start is None else real_array("q", start))
    q = q.reshape(-1, q.shape[-1]) if q.ndim else q[None, None]
    runs = max(len(q), robot._count)
    for k in np.unique(np.linspace(0, runs - 1, SOME_STARTS).astype(int)).tolist():
        yield mechanism_of(robot, k), q[k % len(q)]


def check_contact(robot: Mechanism | Variants, method: str, stabilisation: str, elements: Iterable[Any]) -> None:
    """ModelError where rigid contact would act on nothing, or would be given what its steps do not take."""
    if not _core.methods[method].rigid:
        for e in elements:
            if e.rigid:
                raise ModelError(f"{type(e).__name__} acts in steps of method='contact' alone; got {method!r}")
        return
    compliant = next((type(e).__name__ for e in elements if e.stiff), None)
    if compliant:
        raise ModelError(
            f"method='contact' takes RigidContact, and dry friction of joints as it is; got {compliant}, which is compliant"
        )
    if stabilisation != "projection":
        raise ModelError(f"method='contact' closes loops by stabilisation='projection'; got {stabilisation!r}")
    if robot._solver[2]:
        raise ModelError(
            "method='contact' takes mechanisms that are not cut into substructures: build it with substructures=0"
        )


def touching_states(core: _core.Simulation) -> tuple[int, int, int] | None:
    """Where z has what shapes do to each other, of how many points, and how many numbers each; None: they do nothing."""
    return None if core.touching[1] < 0 else core.touching


def plane_contacts(setup: Setup, core: _core.Simulation) -> tuple[PlaneContact, ...]:
    """The RigidContacts of a simulation, and where their states are in z."""
    given = [term for term in setup.terms if term["kind"] == "RigidContact"]
    if not given:
        return ()
    from .histories import PlaneContact

    return tuple(
        PlaneContact(term["frame"], term["on"], tuple(term["normal"]), float(term["radius"]), *place)
        for term, place in zip(given, core.rigid_contacts, strict=True)
    )


def shapes_that_touch(robot: Mechanism | Variants, method: str, elements: Iterable[Element]) -> list[Element]:
    """What acts between shapes without being given."""
    if not _core.methods[method].rigid or any(e._kind == "CollisionContacts" for e in elements) or not robot._may_touch:
        return []
    from ..control.elements import CollisionContacts

    return [CollisionContacts()]


def has_functions_of_q(mechanism: Mechanism | Variants) -> bool:
    return any(callable(getattr(spec, "rows", None)) for spec in mechanism.description.constraints)


def shares(runs: int, size: int) -> Iterator[slice]:
    for first in range(0, runs, size):
        yield slice(first, min(first + size, runs))
