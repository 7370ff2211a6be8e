"""The functions of a state that closed loops add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn, cast, overload

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, check_mapping, checked_truth, common_axes, into, real_array, real_rows
from .._core import Status, tolerances
from .._showing import Brief, largest, table
from ..description.constraints import PfaffianSpec, TargetSpec
from ..description.joints import LIMIT_MARGIN, turns_into
from ..errors import ShapeError, StateError, check_choice
from .operations import Joint, StateFunctions, _operation, _undeclared
from .options import BatchOptions, FrameTimeOptions, Metric, Solver, TimeOptions, Unpack, Wrenches, shows_options
from .reactions import determined, least_reactions
from .states import of_states


@dataclass(frozen=True, eq=False, repr=False)
class LoopReactions(Brief):
    """What the constraints carry in a motion.

    Attributes
    ----------
    multipliers : (..., nc), one a row: M a + h = tau + J^T multipliers [N m, N]; where rigid bodies leave reactions open, those of least
        norm over all joints (docs/reactions.md)
    wrenches : per constraint (..., 6), [moment; force] on the child at its frame's origin and in its axes [N m, N]; zero for
        relations between coordinates. Of a joint that closes a loop it is all that the joint carries: friction, springs and armature along
        it too, but not what its motor gives, which is part of tau; of all joints: :meth:`~sarrus.Mechanism.joint_wrenches`
    residual : (...) size of what the equations of motion and the constraints leave, relative to what they hold
    error : (...) how far the accelerations may be off because of rounding, relative: 1e-15, but near a singular position more, in
        proportion to 1 / distance (docs/closed-chains.md); NaN by solver="reference-member", which does not tell
    """

    multipliers: Array
    wrenches: dict[str, Array]
    residual: Array
    error: Array

    def _repr_html_(self) -> str:
        rows = [(name, largest(load[..., 3:]), largest(load[..., :3])) for name, load in self.wrenches.items()]
        return table(rows, "What constraints carry at most", ("", "force [N]", "moment [N m]"))


@dataclass(frozen=True, eq=False, repr=False)
class JointStates(Brief):
    """Of every joint by its name, those that close loops too.

    Attributes
    ----------
    q : coordinates (..., nq of the joint)
    v, a : velocities and accelerations (..., nv of the joint), none where they were not asked for
    """

    q: dict[str, Array]
    v: dict[str, Array]
    a: dict[str, Array]


class LoopFunctions(StateFunctions):
    """Constraints of a mechanism and what follows from them in one state."""

    @cached_property
    def _asks_for_rows(self) -> bool:
        """Whether a constraint's rows are a function of q that the core has to be told."""
        return any(isinstance(c.spec, PfaffianSpec) and callable(c.spec.rows) for c in self._constraints.values())

    @property
    def _base(self) -> LoopFunctions:
        """The mechanism itself; of variants the one that they are varied from."""
        return self

    def _of_rows(self, which: Any) -> LoopFunctions:
        """The mechanism that these rows of a batch are of; where they are variants not all rows have the same."""
        return self

    @cached_property
    def _rough(self) -> dict[str, Joint]:
        """Joints with Coulomb friction."""
        return {name: j for name, j in self._joints.items() if np.any(np.asarray(j.type.friction) > 0.0)}

    @overload
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None, return_reactions: Literal[False] = False,
        solver: Solver | None = None, check: bool = True, **options: Unpack[TimeOptions],
    ) -> Array: ...  # fmt: skip
    @overload
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None, return_reactions: Literal[True],
        solver: Solver | None = None, check: bool = True, **options: Unpack[TimeOptions],
    ) -> tuple[Array, LoopReactions]: ...  # fmt: skip
    @_operation
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None, return_reactions: bool = False,
        solver: Solver | None = None, check: bool = True, **options: Unpack[TimeOptions],
    ) -> Any:  # fmt: skip
        """Generalised acceleration a (..., nv) under the generalised force tau, which satisfies the loops: J a = gamma.

        On a tree by articulated bodies, O(bodies). With loops M a + h = tau + J^T lambda is solved as one sparse equation; rows that
        say the same twice change nothing, and in singular positions the acceleration that exists is found. Friction at rest does not
        stick here: Coulomb friction is zero at zero velocity.

        Parameters
        ----------
        q, v, tau : (..., nq), (..., nv), (..., nv); v is to satisfy the loops, see :meth:`project_velocity`
        return_reactions : True returns (a, :class:`~sarrus.results.LoopReactions`), what the constraints carry
        solver : None, or "reference-member" for the algorithm of van der Merwe's chapter 6 (:func:`sarrus.formulations.reference_member`)
        check : whether a state off the loops is refused (status 4): one where a loop stands open, or where v is not allowed, by more than
            would take 1e-3 rad or m of the coordinates to mend, or 1e-3 of the velocities (1e-3 rad/s or m/s of slow ones). Measured states
            may be that far off; False answers any, as if the loops were closed there

        Raises
        ------
        StateError
            A joint moves nothing that has inertia; or the constraints contradict one another in this state, and which does most; or the
            state is off the loops.

        References
        ----------
        Featherstone 2008, Table 7.1; van der Merwe 1995, eqs 5.22-5.33; Carpentier, Budhiraja and Mansard 2021.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(length=0.5).forward_dynamics([np.pi / 2], [0.0], [0.0]).round(3)
        array([-19.62])
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> a, loops = fourbar.forward_dynamics(fourbar.assemble(), np.zeros(3), np.zeros(3), return_reactions=True)
        >>> a.shape, bool(loops.residual < 1e-14)
        ((3,), True)
        """
        if solver is not None:
            if not isinstance(solver, str) or solver != "reference-member":  # type: ignore[redundant-expr]
                raise ValueError(f"solver must be None or 'reference-member'; got {solver!r}")
            how = {"wrenches": wrenches, "return_reactions": return_reactions}
            return cast(Any, self)._forward_by_reference_member(q, v, tau, **how, **options)
        if not checked_truth("return_reactions", return_reactions):
            return self.forward_dynamics(q, v, tau, wrenches=wrenches, check=check, **options)
        out = options.pop("out", None)
        answer = self._constrained_motion(q, v, tau, wrenches=wrenches, check=check, **options)
        everything, *status = answer if options.get("return_status") else (answer,)
        a, multipliers, accuracy = np.split(everything, [self.nv, self.nv + self.nc], axis=-1)
        if not determined(accuracy[..., 2]):
            along = self._efforts_of_closing_motors(q, tau, options.get("time"))
            known: Any = {"wrenches": wrenches, "time": options.get("time"), "least_pivot": accuracy[..., 2]}
            multipliers = least_reactions(self, q, v, a, multipliers, along, **known)
        carried = self._loop_wrenches(q, multipliers, time=options.get("time"), return_status=True)[0]
        carried = carried + self._loop_joint_wrenches(q, v, a, return_status=True)[0]
        by_name = {name: carried[..., k, :].copy() for k, name in enumerate(self.constraints)}
        reactions = LoopReactions(multipliers.copy(), by_name, accuracy[..., 0].copy(), accuracy[..., 1].copy())
        return into(out, a.copy()), reactions, *status

    @_operation
    def constraint_jacobian(self, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """J (..., nc, nv) of all constraints on the tree: J v = c(q, t), with c = :meth:`constraint_velocity` zero where nothing is driven.

        The rows of a closing joint are the complement of its motion space (van der Merwe 2.10-2.16): components, in the child's
        joint frame, of the child's velocity relative to the parent that the joint does not leave free.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.constraint_jacobian(fourbar.neutral()).shape
        (5, 3)
        """

    @_operation
    def constraint_jacobian_derivative(self, q: ArrayLike, v: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """J-dot (..., nc, nv) on the tree, the exact rate of :meth:`constraint_jacobian` along v; where v is allowed, J-dot v = dc/dt - gamma.

        The forward dynamics needs J-dot v alone, which is in :meth:`constraint_bias`. Of Pfaffian rows that are functions of q it is their
        `derivative`, or found by differences.

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
        >>> bool(np.allclose(fourbar.constraint_jacobian_derivative(q, v) @ v, -fourbar.constraint_bias(q, v)))
        True
        """

    @_operation
    def constraint_velocity(self, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """c (..., nc) of J v = c: what prescribed motions and Pfaffian rows ask for; zero elsewhere.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.constraint_velocity(fourbar.neutral()).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        """

    @_operation
    def constraint_bias(self, q: ArrayLike, v: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """gamma (..., nc) of J a = gamma on the tree: minus J-dot v, and what prescribed motions add (van der Merwe 5.22-5.26).

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> (fourbar.constraint_bias(fourbar.neutral(), np.zeros(3)).round(12) + 0.0).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        """

    @_operation
    def constraint_residual(self, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """How far the loops are open, (..., nc) [rad, m] along the rows; zero where they close. Its rate is J v - c there.

        Rows that hold velocities only (rolling without slip, Pfaffian) are zero.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> bool(abs(fourbar.constraint_residual(fourbar.assemble())).max() < 1e-12)
        True
        """

    @_operation
    def loop_jacobian(self, q: ArrayLike, frame: str, **options: Unpack[FrameTimeOptions]) -> Array:
        """The Jacobian (..., 6, nu) of a frame on the closed loops: its velocity is J times the motors' velocities, in the order of `actuated`.

        What laws of time prescribe comes besides. Of motors that depend on one another each takes the share of least norm. Where the motors do not
        determine how the frame moves, a StateError says so; in a batch the status is 3.

        >>> import numpy as np
        >>> import sarrus
        >>> robot = sarrus.mechanisms.delta()
        >>> q = robot.inverse_kinematics({"platform": (0.05, 0.0, -0.5)})
        >>> J = robot.loop_jacobian(q, "platform", expressed_in="world_aligned")[3:]
        >>> v = robot.complete_velocity(q, dict(zip(robot.actuated, [0.1, -0.2, 0.3])))
        >>> bool(np.allclose(J @ [0.1, -0.2, 0.3], robot.velocity(q, v, "platform", expressed_in="world_aligned")[3:]))
        True
        """

    @of_states
    def joint_states(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *,
        near: Mapping[str, ArrayLike] | None = None, time: ArrayLike | None = None,
        **options: Unpack[BatchOptions],
    ) -> JointStates:  # fmt: skip
        """Coordinates, velocities and accelerations of every joint, whether it stands in the tree or closes a loop.

        A joint that closes a loop reads them off the bodies that it joins. These do not tell how often it has turned: its angles are those in
        [-pi, pi], or as many whole turns from there as its limits ask for; or those nearest to `near`.

        Parameters
        ----------
        q, v, a : (..., nq), (..., nv), (..., nv); what is left out is not in the answer
        near : name to coordinates (..., nq of the joint) from which whole turns are counted, such as an answer for the state before; default,
            and for joints that are not named: zeros, and limits. For velocities it makes a difference to gimbals that turn about all three
            axes, of which two sets of angles say the same: the middle one turns backwards in the other set
        time : (...) [s], where motion is prescribed

        Raises
        ------
        TypeError
            `near` is no mapping; a without v.
        NameNotFoundError
            A joint that `near` names does not exist.
        ShapeError
            q, or the coordinates of a joint in `near`, of another shape.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble(fixed={"motor": 0.5})
        >>> {name: angle.round(4).tolist() for name, angle in fourbar.joint_states(q).q.items()}
        {'motor': [0.5], 'pin1': [-1.744], 'pivot': [-1.9057], 'pin2': [-0.6617]}
        >>> fourbar.joint_states(q, near={"pin2": [7.0]}).q["pin2"].round(4).tolist()
        [5.6214]
        >>> a = fourbar.forward_dynamics(q, np.zeros(3), [1.0, 0.0, 0.0])
        >>> rates = fourbar.joint_states(q, np.zeros(3), a).a
        >>> bool(np.isclose(rates["motor"] + rates["pin1"], rates["pivot"] - rates["pin2"]))
        True
        """
        if a is not None and v is None:
            raise TypeError("accelerations of joints that close loops depend on the velocities: give v, too")
        q = real_array("q", q)
        start = self._near(near, q)
        x = self._within_limits(self._loop_joint_coordinates(q, start, time=time), near or {})
        rates, accelerations = {}, {}
        if v is not None:
            rates = self._by_joint("_all_v", real_array("v", v), self._loop_joint_velocities(q, v, start, time=time))
        if v is not None and a is not None:
            of_loops = self._loop_joint_accelerations(q, v, a, start, time=time)
            accelerations = self._by_joint("_all_v", real_array("a", a), of_loops)
        return JointStates(self._by_joint("_all_q", self.normalize(q), x), rates, accelerations)

    def _within_limits(self, x: Array, near: Mapping[str, ArrayLike]) -> Array:
        """Coordinates of all joints that close loops, where nothing else says how often they have turned as often as limits ask for."""
        for joint in self._closing_joints:
            if joint.limits is None or joint.name in near or not joint.type.whole_turns_return:
                continue
            at = slice(joint._all_q.start - self.nq, joint._all_q.stop - self.nq)
            angles = [unit == "rad" for _, unit in joint.type.coordinates]
            x[..., at] += np.where(angles, turns_into(x[..., at], *joint.limits, LIMIT_MARGIN), 0.0)
        return x

    def _near(self, near: Mapping[str, ArrayLike] | None, q: Array) -> Array:
        """From where the coordinates of all joints that close loops are counted."""
        check_mapping("near", near, "joints' names to their coordinates", 0, optional=True)
        start = np.zeros((*q.shape[:-1], sum(j._all_q.stop - j._all_q.start for j in self._closing_joints)))
        for name, x in ({} if near is None else near).items():
            joint = self.joint(name)
            if joint.closes_loop:
                coordinates = slice(joint._all_q.start - self.nq, joint._all_q.stop - self.nq)
                start[..., coordinates] = real_rows(f"near['{name}']", x, joint.type.nq, q.shape[:-1])
        return start

    def _efforts_of_closing_motors(self, q: ArrayLike, tau: ArrayLike, time: ArrayLike | None) -> Array | None:
        """(..., all nv - nv) of motors in joints that close loops, where motors are what tau comes from; None: there are none, or it is not."""
        driven = [joint for joint in self._closing_joints if joint.actuated]
        if not driven:
            return None
        along = np.concatenate([np.arange(j._all_v.start, j._all_v.stop) for j in driven]) - self.nv
        closing = self._loop_joint_jacobian(q, time=time, return_status=True)[0][..., along, :]
        tree = np.eye(self.nv)[np.concatenate([np.arange(self.nv)[self.joint(n).v_slice] for n in self.actuated])]
        rows = np.concatenate([np.broadcast_to(tree, (*closing.shape[:-2], *tree.shape)), closing], axis=-2)
        S = np.swapaxes(np.nan_to_num(rows), -1, -2)
        tau = np.asarray(tau, dtype=float)
        u = (np.linalg.pinv(S) @ tau[..., None])[..., 0]
        missing = np.abs((S @ u[..., None])[..., 0] - tau).max(axis=-1, initial=0.0)
        by_motors = missing <= tolerances.allowed * np.abs(tau).max(axis=-1, initial=0.0)
        efforts = np.zeros((*u.shape[:-1], self._all_nv - self.nv))
        efforts[..., along] = np.where(by_motors[..., None], u[..., len(tree) :], 0.0)
        return efforts

    @cached_property
    def _closing_joints(self) -> list[Joint]:
        return [joint for joint in self._joints.values() if joint.closes_loop]

    @cached_property
    def _prescribed(self) -> tuple[tuple[str, slice], ...]:
        """Names and rows of motions that laws of time prescribe."""
        return tuple((name, c.rows) for name, c in self._constraints.items() if c.kind == "PrescribedMotion")

    @cached_property
    def _all_nv(self) -> int:
        """How many velocities there are, with those of joints that close loops."""
        return max((joint._all_v.stop for joint in self._closing_joints), default=self.nv)

    def _by_joint(self, place: str, of_tree: Array, of_loops: Array) -> dict[str, Array]:
        lead = np.broadcast_shapes(of_tree.shape[:-1], of_loops.shape[:-1])
        both = np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (of_tree, of_loops)], axis=-1)
        return {joint.name: both[..., getattr(joint, place)].copy() for joint in self._joints.values()}

    # (..., constraints, 6) on the children, that multipliers (..., nc) stand for
    _loop_wrenches = _undeclared("loop_wrenches")

    @cached_property
    def _load_places(self) -> tuple[tuple[str, int], ...]:
        """Joints, then other constraints between bodies, and where the core tells what each carries."""
        bodies = {body: k for k, body in enumerate(self.bodies)}
        of = {j.name: bodies[j.parent if j.reversed else j.child] for j in map(self.joint, self.joints)}
        of |= {name: len(bodies) + k for k, (name, c) in enumerate(self._constraints.items()) if c.bodies}
        return tuple((name, of[name]) for name in dict.fromkeys((*self._joints, *of)))

    # of all joints that close loops
    _loop_joint_coordinates = _undeclared("loop_joint_coordinates")
    _loop_joint_velocities = _undeclared("loop_joint_velocities")
    _loop_joint_accelerations = _undeclared("loop_joint_accelerations")
    _loop_joint_jacobian = _undeclared("loop_joint_jacobian")
    # of their friction, springs and armature, as `loop_wrenches`
    _loop_joint_wrenches = _undeclared("loop_joint_wrenches")
    _effort_wrenches = _undeclared("effort_wrenches")  # of forces along joints that close loops, as `loop_wrenches`
    _joint_loads = _undeclared("joint_loads")  # on the children of the bodies' joints and of the constraints
    _least_reactions = _undeclared("least_reactions")  # [multipliers; loads], of loads (..., 6 (bodies + constraints))
    _constrained_motion = _undeclared("constrained_motion")  # [a; multipliers; residual; error; least pivot]
    _velocity_by_mass = _undeclared("velocity_by_mass")
    _velocity_plain = _undeclared("velocity_plain")
    _velocity_jump = _undeclared("velocity_jump")
    _configuration_by_mass = _undeclared("configuration_by_mass")
    _configuration_plain = _undeclared("configuration_plain")
    # v + weight x with J (v + weight x) = c and least |x|; with a: a + weight x, gamma
    _least_motion = _undeclared("least_motion")
    # a configuration near q that closes the loops as well as it can, and what is left: closing.hpp
    _close = _undeclared("close")
    _branch = _undeclared("branch")  # configurations along inputs, NaN where it has ended: branch.hpp
    # [q; outcome, residual, inputs passed, singular positions passed]
    _move_along_branch = _undeclared("move_along_branch")
    _mobility_numbers = _undeclared("mobility_numbers")
    _bounded_efforts = _undeclared("bounded_efforts")  # [efforts; what limits lack]: see bounded_efforts.hpp
    _effort_regressor = _undeclared("effort_regressor")  # of each motor [motion; parameters]: see effort_regressor.hpp
    _loop_motions = _undeclared("loop_motions")  # the projector onto free motions, and how many there are
    _path_motion = _undeclared("path_motion")  # [q; v; a; lost]: see path_motion.hpp
    _reduced_dynamics = _undeclared("reduced_dynamics")  # see reduced_dynamics.hpp
    _equilibrium = _undeclared("equilibrium")  # [q; multipliers; held; freedom; gap; stiffness; imbalance; motions]

    @shows_options
    def project_velocity(
        self, q: ArrayLike, v: ArrayLike, *, metric: Metric = "mass", **options: Unpack[TimeOptions]
    ) -> Array:
        """The nearest velocity (..., nv) that the constraints allow, J v = c.

        Parameters
        ----------
        q, v : (..., nq), (..., nv)
        metric : "mass", nearest in kinetic energy: what stiff loops make of v at once (Li and Wu 4.6); "euclidean", in |v|

        Raises StateError where no velocity satisfies the constraints.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
        >>> bool(abs(fourbar.constraint_jacobian(q) @ v).max() < 1e-12)
        True
        """
        return _by_metric(metric, self._velocity_by_mass, self._velocity_plain)(q, v, **options)

    @shows_options
    def project_configuration(
        self, q: ArrayLike, *, locked: Iterable[str] = (), metric: Metric = "mass", **options: Unpack[TimeOptions]
    ) -> Array:
        """A configuration (..., nq) nearby that closes the loops: Newton's steps, each as short as the metric can have it.

        For drift and small changes; from far away :meth:`assemble`. `locked` are names of joints that stay where they are; metric and
        time as in :meth:`project_velocity`. Where the steps do not close the loops, StateError says how far they came; in a batch the
        status is 2.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> start = fourbar.assemble() + 1e-3
        >>> q = fourbar.project_configuration(start, locked=["motor"])
        >>> bool(abs(fourbar.constraint_residual(q)).max() < 1e-12), bool(q[0] == start[0])
        (True, True)
        """
        if "fixed" in options:
            raise TypeError("project_configuration() takes names of joints as locked=, no longer as fixed=")
        if isinstance(locked, str) or not isinstance(locked, Iterable):
            raise TypeError(f"locked are names of joints, such as ['motor']; got {locked!r}")
        robot, weight, besides = self, None, {}
        if names := tuple(locked):
            robot, weight, besides = cast(Any, self)._holding(q, names, options.get("time"))
        project = _by_metric(metric, robot._configuration_by_mass, robot._configuration_plain)
        return project(q, weight, **besides, **options)

    @shows_options
    def impact(
        self, q: ArrayLike, v: ArrayLike, *, restitution: ArrayLike = 0.0, time: ArrayLike | None = None, **options: Unpack[BatchOptions],
    ) -> tuple[Array, Array]:  # fmt: skip
        """Velocity after the constraints take hold at once, and the impulses that this takes.

        M (v_after - v) = J^T impulses and J v_after - c = -restitution (J v - c): for a mechanism whose loops close with a velocity
        that does not satisfy them.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) before the impact
        restitution : (...) 0: plastic; 1: no energy is lost

        Returns
        -------
        velocity (..., nv), impulses (..., nc), of those that rigid bodies leave open the ones of least norm over all joints [N m s, N s]

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> after, impulses = fourbar.impact(q, [1.0, 0.0, 0.0])
        >>> bool(fourbar.kinetic_energy(q, after) < fourbar.kinetic_energy(q, [1.0, 0.0, 0.0]))
        True
        """
        answer: Any = self._velocity_jump(q, v, restitution=restitution, time=time, **options)
        both, *status = answer if options.get("return_status") else (answer,)
        after, impulses = both[..., : self.nv], both[..., self.nv :]
        # what a change of velocity takes of bodies at rest; weights and springs are taken away
        rest, change = np.zeros(self.nv), after - np.asarray(v, dtype=float)
        shared = least_reactions(self, q, rest, change, impulses, time=time)
        shared = shared - least_reactions(self, q, rest, rest, np.zeros(self.nc), time=time)
        return cast("tuple[Array, Array]", (after, shared, *status))

    def _open_reactions(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Any
    ) -> tuple[dict[str, Array], Array]:
        """As if every loop were open, and the status."""
        f, status = cast("tuple[Array, Array]", self._reactions(q, v, a, **{**options, "return_status": True}))
        if status.ndim == 0 and status and not options.get("return_status", False):
            self._reactions(q, v, a, **options)  # which says what is wrong
        return {name: f[..., self.joint(name)._body - 1, :] for name in self.joints}, status

    def _pfaffian_numbers(self, q: ArrayLike, v: ArrayLike | None, rates: bool = False) -> Array:
        """A, c and gamma of the constraints whose rows depend on q, as the core wants them (..., numbers); or the rates of these rows."""
        q = real_rows("q", q, self.nq, finite=False)
        v = real_rows("v", np.zeros(self.nv) if v is None else v, self.nv, finite=False)
        lead = common_axes({"q": q.shape[:-1], "v": v.shape[:-1]})
        q, v = np.broadcast_to(q, (*lead, self.nq)), np.broadcast_to(v, (*lead, self.nv))
        # the core says what is wrong with an unsound state; the functions need not bear it
        q, status = cast("tuple[Array, Array]", self.normalize(q, return_status=True))
        sound = (np.asarray(status) == 0)[..., None] & np.isfinite(v).all(axis=-1, keepdims=True)
        q, v = np.where(sound, q, self.neutral()), np.where(sound, v, 0.0)
        parts = [np.zeros((*lead, 0))]
        for spec in (c.spec for c in self._constraints.values()):
            if not isinstance(spec, PfaffianSpec) or not callable(spec.rows):
                continue
            columns = np.concatenate([np.arange(self.nv)[self.joint(name).v_slice] for name in spec.joints])
            shape = len(spec.value), len(columns)

            def returned(what: str, *at: Array, spec: PfaffianSpec = spec, shape: tuple[int, int] = shape) -> Array:
                answer = real_array(f"what {what} of constraint '{spec.name}' returns", getattr(spec, what)(*at))
                if answer.shape[-2:] != shape or answer.shape[:-2] not in ((), lead):
                    raise ShapeError(
                        f"{what} of constraint '{spec.name}' returned shape {answer.shape} for q of shape {q.shape}; "
                        f"it must return {(*lead, *shape)}"
                    )
                return np.broadcast_to(answer, (*lead, *shape))

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
            value = np.broadcast_to(np.array(spec.value), gamma.shape)
            moves = (rate, 0.0 * value) if rates else (rows, value)
            parts += [moves[0].reshape(*lead, shape[0] * shape[1]), moves[1], gamma]
        return np.concatenate(parts, axis=-1)


def _by_metric(metric: Metric, by_mass: Any, plain: Any) -> Callable[..., Array]:
    check_choice("metric", metric, Metric)
    chosen: Callable[..., Array] = by_mass if metric == "mass" else plain
    return chosen


# ---- what a status means ---------------------------------------------------------------------------------------------


DERIVATIVES = tuple(f"derivatives.forward_dynamics{kind}" for kind in ("", "_jvp", "_vjp"))
PUBLIC = {
    "velocity_by_mass": "project_velocity", "velocity_plain": "project_velocity", "velocity_jump": "impact",
    "joint_loads": "joint_wrenches", "linear_equations": "linearize", "forward_dynamics_derivatives": DERIVATIVES[0], "forward_dynamics_jvp": DERIVATIVES[1],
    "forward_dynamics_vjp": DERIVATIVES[2], "actuator_efforts_vjp": "actuator_efforts", "bounded_efforts": "actuator_efforts", "configuration_by_mass": "project_configuration", "configuration_plain": "project_configuration",
}  # fmt: skip
VELOCITIES = ("project_velocity", "impact")  # take velocities that the loops need not allow
CHECKED = (*VELOCITIES, "linearize")  # and what else asks for the loops whatever `check` says


def explain(
    mechanism: LoopFunctions, operation: str, status: int, arguments: dict[str, Any], result: Array
) -> NoReturn:
    """Raise what the core's status of one state means."""
    of_efforts, operation = operation == "actuator_efforts_vjp", PUBLIC.get(operation, operation)
    if status == Status.OFF_LOOPS:
        raise_off_loops(mechanism, operation, arguments)
    if status == Status.INCONSISTENT_CONSTRAINTS:
        raise_contradiction(mechanism, operation, arguments)
    if of_efforts or (operation in DERIVATIVES and status_of_motion(mechanism, arguments) == Status.FINE):
        raise StateError(
            f"{'derivatives.' if of_efforts else ''}{operation} has no answer: the position is so near to a singular one that "
            "rounding decides about derivatives"
        )
    if operation not in ("project_configuration", "loop_jacobian"):
        raise_undecided(mechanism, operation, arguments)
    name, gap = _worst(mechanism, mechanism.constraint_residual(result, **_besides(arguments)))
    raise StateError(
        f"{operation} does not close the loops from here: '{name}' stays open by {gap:.3g} rad or m at q = "
        f"{np.array2string(result, precision=4, threshold=12)}; start nearer, or let assemble() look farther, which "
        "tells what to do where parts do not fit"
    )


def status_of_motion(mechanism: LoopFunctions, arguments: dict[str, Any]) -> int:
    """Of forward dynamics at the same state."""
    state: Any = {name: arguments.get(name) for name in ("wrenches", "time", "pfaffian_values")}
    motion = (arguments[name] for name in ("q", "v", "tau"))
    return int(mechanism.forward_dynamics(*motion, check=False, return_status=True, **state)[1])


def _besides(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call was given besides the state."""
    return {name: arguments.get(name) for name in ("time", "pfaffian_values")}


def _worst(mechanism: LoopFunctions, rows: Array, order: float = np.inf) -> tuple[str, float]:
    """The constraint whose rows are farthest from zero, and how far."""
    sizes = {
        name: float(np.linalg.norm(rows[c.rows], order)) for name, c in mechanism._constraints.items() if c.row_names
    }
    return max(sizes.items(), key=lambda item: item[1])


def raise_contradiction(mechanism: LoopFunctions, operation: str, arguments: dict[str, Any]) -> NoReturn:
    """Say which constraint cannot be satisfied, or which joints lack a motor."""
    q, besides = arguments["q"], _besides(arguments)
    J = mechanism.constraint_jacobian(q, **besides)
    if operation == "actuator_efforts":
        cast(Any, mechanism)._raise_not_realizable(**arguments)  # which says what is lacking
    if operation == "loop_jacobian":
        motors = ", ".join(map(repr, mechanism.actuated)) or "no motors"
        raise StateError(f"{operation} has no answer: {motors} do not determine how the frame moves here")
    if operation == "least_motion":
        moving, v, a = np.asarray(arguments["weight"]) > 0.0, np.asarray(arguments["v"]), arguments.get("a")
        rows = mechanism.constraint_velocity(q, **besides) if a is None else mechanism.constraint_bias(q, v, **besides)
        rows = rows if arguments.get("rates") is None else rows + np.asarray(arguments["rates"])
        J, required = J * moving, rows - J @ (v if a is None else np.asarray(a))
        held = [f"'{name}'" for name in mechanism.joints if not moving[mechanism.joint(name).v_slice].all()]
        specs = [c.spec for c in mechanism._constraints.values() if isinstance(c.spec, TargetSpec)]
        held += [f"'{spec.joint or spec.frame}'" for spec in specs]
        operation, what = f"this motion of {', '.join(held) or 'nothing'}", "motion of the others"
    elif operation in ("forward_dynamics", "constrained_motion", "reference_member", "linearize", *DERIVATIVES):
        required, what = mechanism.constraint_bias(q, arguments["v"], **besides), "acceleration"
    else:
        required, what = mechanism.constraint_velocity(q, **besides), "velocity"
        if operation in VELOCITIES and not required.any():  # which rest satisfies
            raise StateError(
                f"{operation} has no answer: this configuration is so near to a singular one that rounding decides which velocities "
                "the constraints allow; a little away from there they tell"
            )
    if operation in DERIVATIVES and status_of_motion(mechanism, arguments) == Status.FINE:
        raise StateError(
            f"{operation} has no answer: the constraints allow displacements here along which they contradict one another; the position is "
            "singular, and the acceleration has no derivative"
        )
    name, left = _worst(mechanism, required - J @ np.linalg.lstsq(J, required, rcond=1e-9)[0], 2)
    raise StateError(
        f"{operation} has no answer: no {what} satisfies all constraints in this state; they contradict one another, "
        f"most at '{name}' ({left:.3g} is left)"
    )


def raise_undecided(mechanism: LoopFunctions, operation: str, arguments: dict[str, Any]) -> NoReturn:
    """Say which motion moves nothing that has inertia, or which rows nearly say the same."""
    q, time = arguments["q"], arguments.get("time")
    J, M = mechanism.constraint_jacobian(q, time=time), mechanism.mass_matrix(q)
    size = np.linalg.norm(J, axis=0)
    J = J / np.where(size > 0.0, size, 1.0)
    U, s, V = np.linalg.svd(J)
    s = np.concatenate([s, np.zeros(len(V) - len(s))])
    free = V[s <= tolerances.negligible * s[0]] / np.where(size > 0.0, size, 1.0)
    # each velocity beside what it would move if it moved alone with all that is tied to it
    inertia, ways = np.linalg.eigh(free @ M @ free.T) if len(free) else (np.zeros(0), free)
    if len(inertia) and inertia[0] <= tolerances.negligible * max(inertia[-1], np.abs(M).max() * (free[0] ** 2).sum()):
        moving = np.abs(ways[:, 0] @ free) * np.where(size > 0.0, size, 1.0)
        names = [
            j for j in mechanism.joints if moving[mechanism.joint(j).v_slice].max(initial=0.0) > 0.1 * moving.max()
        ]
        raise StateError(
            f"{operation} has no answer: the loops allow a motion along which nothing has inertia, that of joints "
            f"{', '.join(map(repr, names))}: give a body that moves in it a mass, or one of these joints an armature"
        )
    weak = [k for k in range(min(J.shape)) if s[k] < tolerances.nearly_singular * s[0]]
    if weak:
        k = max(weak, key=lambda k: s[k] if s[k] > tolerances.rounding * s[0] else 0.0)
        share = {n: float(np.abs(U[c.rows, k]).max(initial=0.0)) for n, c in mechanism._constraints.items()}
        names = [name for name, part in share.items() if part > 0.1 * max(share.values())]
        opened, gap = _worst(mechanism, mechanism.constraint_residual(q, time=time))
        judge, cure = "rounding", ""
        if gap > 10.0 * tolerances.rounding:
            judge = f"the gap by which '{opened}' stands open, {gap:.3g} rad or m,"
            cure = "project_configuration() closes it; "
        raise StateError(
            f"{operation} has no answer: rows of {', '.join(map(repr, names))} say nearly, but not quite, the same here (singular value "
            f"{s[k] / s[0]:.1g} of the largest), so that {judge} decides whether they hold the mechanism fast; {cure}if they are meant to "
            "say the same, without_redundant_constraints() gives the mechanism without those that are redundant; else this is a singular position, and a "
            "little away from it they tell"
        )
    raise StateError(f"{operation} has no answer: the numbers overflow")


def raise_off_loops(mechanism: LoopFunctions, operation: str, arguments: dict[str, Any]) -> NoReturn:
    """Say which constraint stands open, or which forbids the velocity."""
    q, v, time = arguments["q"], np.asarray(arguments["v"]), arguments.get("time")
    J, unit = mechanism.constraint_jacobian(q, time=time), cast(Any, mechanism)._units_of_motion[1][0, : mechanism.nv]
    rows = np.linalg.norm(J * unit, axis=1)  # what a radian or a length of the mechanism moves each by
    rows = np.where(rows > 0.0, rows, 1.0)
    gaps, slips = mechanism.constraint_residual(q, time=time), J @ v - mechanism.constraint_velocity(q, time=time)
    (opened, gap), (forbidding, rate) = _worst(mechanism, gaps / rows), _worst(mechanism, slips / rows)
    by, along = (
        np.abs(x[mechanism._constraints[name].rows]).max() for x, name in ((gaps, opened), (slips, forbidding))
    )
    fault = f"'{opened}' stands open by {by:.3g} rad or m"
    cure = "assemble() and project_configuration() find a configuration that closes the loops"
    if operation in VELOCITIES or (
        gap <= tolerances.off_loops and rate <= tolerances.off_loops * float(np.abs(v / unit).max(initial=1.0))
    ):
        fault += ", near a position in which rows say the same: that gap decides whether they hold the mechanism fast"
    elif gap <= 1e-3 * max(1.0, rate):
        fault = f"'{forbidding}' does not allow this velocity ({along:.3g} rad/s or m/s along its rows)"
        cure = "project_velocity() finds the nearest one that the loops allow"
    raise StateError(
        f"{operation} has no answer off the loops: {fault}; {cure}{'' if operation in CHECKED else ', and check=False answers all the same'}"
    )


_core.hand_over(explain=explain, pfaffian_values=LoopFunctions._pfaffian_numbers)
