"""The functions of a state that closed loops add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from ..description import PfaffianSpec
from ..errors import ModelError, NotRealizableError, ShapeError, StateError, real_array
from ..state import Array, StateFunctions, _operation, common_axes, into, real_rows


@dataclass(frozen=True)
class LoopReactions:
    """What the constraints carry in a motion.

    Attributes
    ----------
    multipliers : (..., nc), one a row, of least norm: M a + h = tau + J^T multipliers [N m, N]
    wrenches : per constraint (..., 6), [moment; force] on the child at its frame's origin and in its axes [N m, N]; zero for
        relations between coordinates
    residual : (...) size of what the equations of motion and the constraints leave, relative to what they hold
    """

    multipliers: Array
    wrenches: dict[str, Array]
    residual: Array


class LoopFunctions(StateFunctions):
    """Constraints of a mechanism and what follows from them in one state."""

    @property
    def _asks_for_rows(self) -> bool:
        """Whether a constraint's rows are a function of q that the core has to be told."""
        return any(isinstance(c.spec, PfaffianSpec) and callable(c.spec.rows) for c in self._constraints.values())

    @_operation
    def constraint_jacobian(
        self,
        q: ArrayLike,
        *,
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Array:
        """J (..., nc, nv) of all constraints: J v = c(q, t), with c = :meth:`constraint_velocity` zero where nothing is driven.

        The rows of a closing joint are the complement of its motion space (van der Merwe 2.10-2.16): components, in the child's
        joint frame, of the child's velocity relative to the parent that the joint does not leave free.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.constraint_jacobian(fourbar.neutral()).shape
        (5, 3)
        """
        raise NotImplementedError

    @_operation
    def constraint_velocity(
        self,
        q: ArrayLike,
        *,
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Array:
        """c (..., nc) of J v = c: what prescribed motions and Pfaffian rows ask for; zero elsewhere.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.constraint_velocity(fourbar.neutral()).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        """
        raise NotImplementedError

    @_operation
    def constraint_bias(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Array:
        """gamma (..., nc) of J a = gamma: minus J-dot v, and what prescribed motions add (van der Merwe 5.22-5.26).

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> (fourbar.constraint_bias(fourbar.neutral(), np.zeros(3)).round(12) + 0.0).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        """
        raise NotImplementedError

    @_operation
    def loop_residual(
        self,
        q: ArrayLike,
        *,
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Array:
        """How far the loops are open, (..., nc) [rad, m] along the rows; zero where they close. Its rate is J v - c there.

        Rows that hold velocities only (rolling without slip, Pfaffian) are zero.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> bool(abs(fourbar.loop_residual(fourbar.assemble())).max() < 1e-12)
        True
        """
        raise NotImplementedError

    @_operation
    def loop_wrenches(
        self,
        q: ArrayLike,
        multipliers: ArrayLike,
        *,
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Array:
        """Wrench (..., constraints, 6) on each constraint's child, [moment; force] at its frame and in its axes, that multipliers
        (..., nc) stand for; zero for relations between coordinates.

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.loop_wrenches(fourbar.neutral(), np.ones(5)).shape
        (1, 6)
        """
        raise NotImplementedError

    @_operation
    def _constrained_motion(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        time: ArrayLike | None = None,
        check: bool = True,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Any:
        """[a; multipliers; residual] (..., nv + nc + 1)."""
        raise NotImplementedError

    @_operation
    def _velocity_by_mass(self, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None, out: Array | None = None,
                          threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        raise NotImplementedError

    @_operation
    def _velocity_plain(self, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None, out: Array | None = None,
                        threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        raise NotImplementedError

    @_operation
    def _velocity_jump(self, q: ArrayLike, v: ArrayLike, *, restitution: ArrayLike | None = None, time: ArrayLike | None = None,
                       out: Array | None = None, threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        raise NotImplementedError

    @_operation
    def _configuration_by_mass(self, q: ArrayLike, weight: ArrayLike | None = None, *, time: ArrayLike | None = None,
                               out: Array | None = None, threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        raise NotImplementedError

    @_operation
    def _configuration_plain(self, q: ArrayLike, weight: ArrayLike | None = None, *, time: ArrayLike | None = None,
                             out: Array | None = None, threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        raise NotImplementedError

    @_operation
    def _close(self, q: ArrayLike, scale: ArrayLike, steps: ArrayLike, *, time: ArrayLike | None = None,
               given: ArrayLike | None = None, out: Array | None = None, threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        """(..., nq + 1): a configuration near q that closes the loops as well as it can, and what is left, by ``cpp/loops/closing.hpp``."""
        raise NotImplementedError

    @_operation
    def _mobility_numbers(self, q: ArrayLike, scale: ArrayLike, gains: ArrayLike, frame: str, *, time: ArrayLike | None = None,
                          out: Array | None = None, threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        """(..., 8): see ``cpp/loops/mobility.hpp``."""
        raise NotImplementedError

    @_operation
    def _least_motion(self, q: ArrayLike, v: ArrayLike, rows: ArrayLike, weight: ArrayLike, *, time: ArrayLike | None = None,
                      out: Array | None = None, threads: int = 1, return_status: bool = False) -> Any:  # fmt: skip
        """v (..., nv) + weight x with J (v + weight x) = rows and least |x|."""
        raise NotImplementedError

    @_operation
    def actuator_efforts(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        actuated: Sequence[str] | None = None,
        wrenches: Mapping[str, ArrayLike] | None = None,
        distribution: str = "minimum-norm",
        weights: ArrayLike | None = None,
        limits: tuple[ArrayLike, ArrayLike] | None = None,
        preload: ArrayLike | None = None,
        time: ArrayLike | None = None,
        return_reactions: bool = False,
        check: bool = True,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Any:
        """Efforts u (..., nu) of the motors that bring a motion about in a mechanism with loops.

        S u + J^T lambda = M a + h: one answer where there are as many motors as freedoms; of many answers the least (a loop of
        redundant motors can be tightened without moving); with too few motors only a motion that needs no more.

        The short way, taken unless `actuated`, `distribution`, `weights`, `preload` or `return_reactions` is given, does not
        look whether the loops allow the motion. It takes v as it is, and of a what the loops leave of it: the efforts are those of the
        acceleration that satisfies them and is nearest to a in the metric of the mass matrix (Gauss's principle), so that drift in a
        does no harm. The general way, and :meth:`is_realizable`, refuse such a motion.

        Parameters
        ----------
        q, v, a : (..., nq), (..., nv), (..., nv): a motion that the loops allow, J v = c and J a = gamma
        actuated : names of joints whose motors share the work; default: those that the description says
        wrenches : frame name to (..., 6) on the mechanism, in that frame [N m, N]
        distribution : "minimum-norm", or "weighted" with weights
        weights : (nu,), least u^T diag(weights) u
        limits : (lower, upper), each (nu,) or a number, which the efforts keep to; where the least efforts do, they are the answer
        preload : (nu,) efforts that the answer stays as near to as the motion lets it
        time : (...) [s], where motion is prescribed
        return_reactions : also return the multipliers (..., nc) of least norm
        check : whether a state whose loops stand open, or whose velocities they forbid, is refused: see :meth:`forward_dynamics`

        Returns
        -------
        (..., nu) [N m, N], in the order of `actuated`, or of the mechanism's own; `actuation_jacobian(q, actuated)` maps it to tau

        Raises
        ------
        NotRealizableError
            The motors cannot bring the motion about, or not within the limits.
        StateError
            The state is unsound; or, on the general way, the motion is none that the loops allow, and which row of them does not
            (status 3).

        References
        ----------
        Sonoda, Ishii and Isobe, eqs 36-47; Li and Wu 4.6; van der Merwe 5.22.

        Examples
        --------
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
        >>> a = fourbar.forward_dynamics(q, v, [2.0, 0.0, 0.0])
        >>> fourbar.actuator_efforts(q, v, a).round(9)
        array([2.])
        """
        raise NotImplementedError

    def _actuator_efforts(self, *motion: Any, **how: Any) -> Any:
        """What :meth:`actuator_efforts` returns, by the general way that takes all its keywords."""
        raise NotImplementedError

    def project_velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        metric: str = "mass",
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Any:
        """The nearest velocity (..., nv) that the constraints allow, J v = c.

        Parameters
        ----------
        q, v : (..., nq), (..., nv)
        metric : "mass", nearest in kinetic energy: what stiff loops make of v at once (Li and Wu 4.6); "plain", in |v|
        time : (...) [s], where motion is prescribed

        Raises StateError where no velocity satisfies the constraints.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
        >>> bool(abs(fourbar.constraint_jacobian(q) @ v).max() < 1e-12)
        True
        """
        project = _by_metric(metric, self._velocity_by_mass, self._velocity_plain)
        return project(q, v, time=time, out=out, threads=threads, return_status=return_status)

    def project_configuration(
        self,
        q: ArrayLike,
        fixed: Iterable[str] = (),
        *,
        metric: str = "mass",
        time: ArrayLike | None = None,
        out: Array | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Any:
        """A configuration (..., nq) nearby that closes the loops: Newton's steps, each as short as the metric can have it.

        For drift and small changes; from far away :meth:`assemble`. `fixed` are names of joints that stay where they are; metric and
        time as in :meth:`project_velocity`. Where the steps do not close the loops, StateError says how far they came; in a batch the
        status is 2.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> start = fourbar.assemble() + 1e-3
        >>> q = fourbar.project_configuration(start, fixed=["motor"])
        >>> bool(abs(fourbar.loop_residual(q)).max() < 1e-12), bool(q[0] == start[0])
        (True, True)
        """
        project = _by_metric(metric, self._configuration_by_mass, self._configuration_plain)
        if isinstance(fixed, str):
            raise TypeError(f"fixed are names of joints, such as ['{fixed}']; got {fixed!r}")
        weight = None
        for name in fixed:
            joint = self.joint(name)
            if joint.closes_loop:
                raise ModelError(f"joint '{name}' closes a loop and has no coordinates that could be fixed")
            weight = np.ones(self.nv) if weight is None else weight
            weight[joint.v_slice] = 0.0
        return project(q, weight, time=time, out=out, threads=threads, return_status=return_status)

    def impact(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        restitution: ArrayLike = 0.0,
        time: ArrayLike | None = None,
        threads: int = 1,
    ) -> tuple[Array, Array]:
        """Velocity after the constraints take hold at once, and the impulses that this takes.

        M (v_after - v) = J^T impulses and J v_after - c = -restitution (J v - c): for a mechanism whose loops close with a velocity
        that does not satisfy them.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) before the impact
        restitution : (...) 0: plastic; 1: no energy is lost

        Returns
        -------
        velocity (..., nv), impulses (..., nc) of least norm [N m s, N s]

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> after, impulses = fourbar.impact(q, [1.0, 0.0, 0.0])
        >>> bool(fourbar.kinetic_energy(q, after) < fourbar.kinetic_energy(q, [1.0, 0.0, 0.0]))
        True
        """
        both = self._velocity_jump(q, v, restitution=restitution, time=time, threads=threads)
        return both[..., : self.nv], both[..., self.nv :]

    def _motion_and_reactions(self, *, return_reactions: bool = True, out: Array | None = None, **state: Any) -> Any:
        answer = self._constrained_motion(**state)
        all_of_it, status = answer if state.get("return_status") else (answer, None)
        a, multipliers = all_of_it[..., : self.nv], all_of_it[..., self.nv : -1]
        wrenches = self.loop_wrenches(state["q"], multipliers, time=state.get("time"), return_status=True)[0]
        if out is not None:
            a = into(out, a)
        reactions = LoopReactions(
            np.array(multipliers),
            {name: np.array(wrenches[..., k, :]) for k, name in enumerate(self.constraints)},
            np.array(all_of_it[..., -1]),
        )
        return (np.array(a), reactions) if status is None else (np.array(a), reactions, status)

    def _pfaffian_numbers(self, q: ArrayLike, v: ArrayLike | None) -> Array:
        """A, c and gamma of the constraints whose rows depend on q, as the core wants them: (..., given)."""
        q = real_rows("q", q, self.nq, finite=False)
        v = real_rows("v", np.zeros(self.nv) if v is None else v, self.nv, finite=False)
        lead = common_axes({"q": q.shape[:-1], "v": v.shape[:-1]})
        q, v = np.broadcast_to(q, (*lead, self.nq)), np.broadcast_to(v, (*lead, self.nv))
        # the core says what is wrong with an unsound state; the functions need not bear it
        q, status = cast("tuple[Array, Array]", self.normalize(q, return_status=True))
        sound = (np.asarray(status) == 0)[..., None] & np.isfinite(v).all(axis=-1, keepdims=True)
        if not sound.all():
            q, v = np.where(sound, q, self.neutral()), np.where(sound, v, 0.0)
        parts = [np.zeros((*lead, 0))]
        for constraint in self._constraints.values():
            spec = constraint.spec
            if not isinstance(spec, PfaffianSpec) or not callable(spec.rows):
                continue
            columns = np.concatenate([np.arange(self.nv)[self.joint(name).v_slice] for name in spec.joints])
            k, n = len(spec.value), len(columns)

            def returned(what: str, *at: Array, spec: PfaffianSpec = spec, k: int = k, n: int = n) -> Array:
                answer = real_array(f"what {what} of constraint '{spec.name}' returns", getattr(spec, what)(*at))
                if answer.shape[-2:] != (k, n) or answer.shape[:-2] not in ((), lead):
                    raise ShapeError(
                        f"{what} of constraint '{spec.name}' returned shape {answer.shape} for q of shape {q.shape}; "
                        f"it must return {(*lead, k, n)}"
                    )
                return np.broadcast_to(answer, (*lead, k, n))

            rows = returned("rows", q)
            if spec.derivative is not None:
                rate = returned("derivative", q, v)
            else:
                # central differences of fourth order along the motion
                h = 3e-4 / np.maximum(1.0, np.abs(v).max(axis=-1, keepdims=True))
                A = [returned("rows", self.integrate(q, steps * h * v)) for steps in (-2.0, -1.0, 1.0, 2.0)]
                rate = (8.0 * (A[2] - A[1]) - (A[3] - A[0])) / (12.0 * h[..., None])
            with np.errstate(over="ignore", invalid="ignore"):  # of which the core tells
                gamma = -(rate @ v[..., columns, None])[..., 0]
            value = np.broadcast_to(np.array(spec.value), (*lead, k))
            parts += [rows.reshape(*lead, k * n), value, gamma]
        return np.concatenate(parts, axis=-1)


def _by_metric(metric: str, by_mass: Any, plain: Any) -> Any:
    if not isinstance(metric, str) or metric not in ("mass", "plain"):  # type: ignore[redundant-expr]
        raise ValueError(f"metric must be 'mass' or 'plain'; got {metric!r}")
    return by_mass if metric == "mass" else plain


def raise_contradiction(mechanism: LoopFunctions, operation: str, arguments: dict[str, Any]) -> NoReturn:
    """Say which constraint cannot be satisfied, or which joints lack a motor."""
    q, time = arguments["q"], arguments.get("time")
    J = mechanism.constraint_jacobian(q, time=time)
    if operation == "actuator_efforts":
        mechanism._actuator_efforts(**arguments)  # which says what is lacking
        raise NotRealizableError("the actuated joints cannot bring this motion about")
    if operation == "least_motion":
        moving, v = np.asarray(arguments["weight"]) > 0.0, np.asarray(arguments["v"])
        J, wanted = J * moving, np.asarray(arguments["rows"]) - J @ v
        held = [name for name in mechanism.joints if not moving[mechanism.joint(name).v_slice].all()]
        operation, what = (
            "this motion of " + (", ".join(f"'{name}'" for name in held) or "nothing"),
            "motion of the others",
        )
    elif operation in ("forward_dynamics", "constrained_motion", "reference_member"):
        wanted, what = mechanism.constraint_bias(q, arguments["v"], time=time), "acceleration"
    else:
        wanted, what = mechanism.constraint_velocity(q, time=time), "velocity"
    missing = wanted - J @ np.linalg.lstsq(J, wanted, rcond=1e-9)[0]
    worst = max(mechanism._constraints.values(), key=lambda c: float(np.linalg.norm(missing[c.rows])))
    left = float(np.linalg.norm(missing[worst.rows]))
    raise StateError(
        f"{operation} has no answer: no {what} satisfies all constraints in this state; they contradict one another, "
        f"most at '{worst.name}' ({left:.3g} is left)"
    )


def raise_off_loops(mechanism: LoopFunctions, operation: str, arguments: dict[str, Any]) -> NoReturn:
    """Say which constraint stands open, or which forbids the velocity."""
    q, v, time = np.asarray(arguments["q"]), np.asarray(arguments["v"]), arguments.get("time")
    open_by = mechanism.loop_residual(q, time=time)
    slips = mechanism.constraint_jacobian(q, time=time) @ v - mechanism.constraint_velocity(q, time=time)

    def worst(rows: Array) -> tuple[str, float]:
        name, spec = max(mechanism._constraints.items(), key=lambda item: float(np.abs(rows[item[1].rows]).max()))
        return name, float(np.abs(rows[spec.rows]).max())

    (opened, gap), (forbidding, rate) = worst(open_by), worst(slips)
    fault = f"'{opened}' stands open by {gap:.3g} rad or m"
    cure = "assemble() and project_configuration() find a configuration that closes the loops"
    if gap <= 1e-3 * max(1.0, rate):
        fault = f"'{forbidding}' does not allow this velocity ({rate:.3g} rad/s or m/s along its rows)"
        cure = "project_velocity() finds the nearest one that the loops allow"
    raise StateError(f"{operation} has no answer off the loops: {fault}; {cure}, and check=False answers all the same")


def raise_open_loops(mechanism: LoopFunctions, q: Array, arguments: dict[str, Any]) -> NoReturn:
    """Say how far the steps came."""
    open_by = mechanism.loop_residual(q, time=arguments.get("time"))
    worst = max(mechanism._constraints.values(), key=lambda c: float(np.abs(open_by[c.rows]).max()))
    raise StateError(
        f"project_configuration does not close the loops from here: '{worst.name}' stays open by "
        f"{float(np.abs(open_by[worst.rows]).max()):.3g} rad or m at q = {np.array2string(q, precision=4, threshold=12)}; "
        "start nearer, or let assemble() look farther"
    )
