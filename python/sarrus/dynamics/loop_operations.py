"""Functions of a state of mechanisms with loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, NoReturn, cast, overload

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, check_mapping, checked_truth, common_axes, into, real_array, real_rows
from .._core import Status
from .._deferred import dataclass
from .._showing import Brief, largest, table
from ..description.constraints import PfaffianSpec
from ..description.joints import LIMIT_MARGIN, turns_into
from ..errors import ShapeError, StateError, check_choice
from .operations import Joint, StateFunctions, _operation, _undeclared
from .options import (
    BatchOptions,
    FrameTimeOptions,
    Metric,
    Solver,
    TimeOptions,
    Unpack,
    Wrenches,
    of_states,
    shows_options,
)
from .reactions import determined, least_reactions


@dataclass(frozen=True, eq=False, repr=False)
class LoopReactions(Brief):
    """Reactions of the constraints in a motion.

    Attributes
    ----------
    multipliers : (..., nc) multiplier of each constraint row: M a + h = tau + J^T multipliers [N m, N]. If reactions are indeterminate, these
        are the multipliers for which the reactions of all joints have least norm (docs/reactions.md)
    wrenches : constraint name to (..., 6) [moment; force] on the child, at the origin and in the axes of its joint frame [N m, N]; zero for
        relations between coordinates. For a loop joint it is the total wrench, including friction, springs and armature of the joint, but
        without its motor effort, which is part of tau. For tree joints see :meth:`~sarrus.Mechanism.joint_wrenches`
    residual : (...) relative residual of the equations of motion and the constraints (dimensionless)
    error : (...) estimated relative error of the accelerations due to rounding (dimensionless): 1e-15 in regular positions, and growing as
        1 / distance near a singular position (docs/closed-chains.md). NaN with solver="reference-member", which does not estimate it
    """

    multipliers: Array
    wrenches: dict[str, Array]
    residual: Array
    error: Array

    def _repr_html_(self) -> str:
        rows = [(name, largest(load[..., 3:]), largest(load[..., :3])) for name, load in self.wrenches.items()]
        return table(rows, "Largest constraint wrenches", ("", "force [N]", "moment [N m]"))


@dataclass(frozen=True, eq=False, repr=False)
class JointStates(Brief):
    """Coordinates and their rates of every joint of the tree and every loop joint, by name.

    Attributes
    ----------
    q : coordinates (..., nq of the joint) [rad, m]
    v, a : velocities and accelerations (..., nv of the joint) [rad/s, m/s; rad/s^2, m/s^2]; empty if v or a was not an argument
    """

    q: dict[str, Array]
    v: dict[str, Array]
    a: dict[str, Array]


_with_reactions: Any = _core.of_one_state("dynamics_and_reactions", LoopReactions)
_joint_states: Any = _core.of_one_state("joint_states", JointStates)
_impact: Any = _core.of_one_state("impact")


class LoopFunctions(StateFunctions):
    """Functions of a state of a mechanism with constraints."""

    @cached_property
    def _asks_for_rows(self) -> bool:
        """True if the rows of a constraint are a Python function of q, which must be evaluated before the core is called."""
        return any(isinstance(c.spec, PfaffianSpec) and callable(c.spec.rows) for c in self._constraints.values())

    @property
    def _base(self) -> LoopFunctions:
        """The mechanism itself; for variants, their base mechanism."""
        return self

    def _of_rows(self, rows: Any) -> LoopFunctions:
        """Return the mechanism of these rows of a batch: itself, or the variants with these indices."""
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
        """Return the generalised acceleration a (..., nv) under the generalised force tau, consistent with the loops: J a = gamma.

        Without loops it uses the articulated-body algorithm, O(bodies). With loops, M a + h = tau + J^T lambda and J a = gamma are solved as one
        sparse linear system. Redundant rows do not change the accelerations. In singular positions the result is the pseudo-inverse
        solution. There is no static friction: Coulomb friction is zero at zero velocity.

        Parameters
        ----------
        q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; v must satisfy the
            loops, see :meth:`project_velocity`
        wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
        return_reactions : True returns (a, :class:`~sarrus.results.LoopReactions`)
        solver : None, or "reference-member" for the algorithm of van der Merwe's chapter 6 (:func:`sarrus.formulations.reference_member`)
        check : True rejects states that violate the loop constraints (status 4). A state is rejected if closing the loops would change a
            coordinate by more than 1e-3 rad or m, or the velocities by more than 1e-3 of their norm (1e-3 rad/s or m/s for slow motions).
            Smaller violations, as of measured states, are accepted. False accepts every state, and treats its loops as closed
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Raises
        ------
        StateError
            - A joint can move without moving any mass or inertia.
            - The constraints contradict one another in this state; the message names the constraint with the largest residual.
            - The state violates the loop constraints.

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
            reference: dict[str, Any] = {"wrenches": wrenches, "return_reactions": return_reactions}
            return cast(Any, self)._forward_by_reference_member(q, v, tau, **reference, **options)
        usual = return_reactions is True and wrenches is None and check is True and not options
        if usual and (answer := _with_reactions(self, q, v, tau)):
            return answer
        if not checked_truth("return_reactions", return_reactions):
            return self.forward_dynamics(q, v, tau, wrenches=wrenches, check=check, **options)
        out = options.pop("out", None)
        answer = self._constrained_motion(q, v, tau, wrenches=wrenches, check=check, **options)
        everything, *status = answer if options.get("return_status") else (answer,)
        a, multipliers, accuracy = np.split(everything, [self.nv, self.nv + self.nc], axis=-1)
        if not determined(accuracy[..., 2]):
            along = self._efforts_of_closing_motors(q, tau, options.get("time"))
            state: Any = {"wrenches": wrenches, "time": options.get("time"), "least_pivot": accuracy[..., 2]}
            multipliers = least_reactions(self, q, v, a, multipliers, along, **state)
        carried = self._loop_wrenches(q, multipliers, time=options.get("time"), return_status=True)[0]
        carried = carried + self._loop_joint_wrenches(q, v, a, return_status=True)[0]
        by_name = {name: carried[..., k, :].copy() for k, name in enumerate(self.constraints)}
        reactions = LoopReactions(multipliers.copy(), by_name, accuracy[..., 0].copy(), accuracy[..., 1].copy())
        return into(out, a.copy()), reactions, *status

    @_operation
    def constraint_jacobian(self, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """Return the Jacobian J (..., nc, nv) of all constraints by the tree's velocities: J v = c(q, t), with c = :meth:`constraint_velocity`.

        c is zero without prescribed motions. The rows of a loop joint span the complement of its motion space (van der Merwe 2.10-2.16): each
        row is a component of the child's velocity relative to the parent that the joint does not allow, in the child's joint frame.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.constraint_jacobian(fourbar.neutral()).shape
        (5, 3)
        """

    @_operation
    def constraint_jacobian_derivative(self, q: ArrayLike, v: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """Return J-dot (..., nc, nv), the exact rate of :meth:`constraint_jacobian` along the velocities v of the tree.

        For a consistent v, J-dot v = dc/dt - gamma, with gamma of :meth:`constraint_bias`. For Pfaffian rows that are Python functions of q, the
        rate is the constraint's `derivative` if it has one; otherwise it is computed by finite differences.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
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
        """Return the right-hand side c (..., nc) of the velocity constraints J v = c [rad/s, m/s].

        c is nonzero only for prescribed motions and Pfaffian constraints.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> fourbar.constraint_velocity(fourbar.neutral()).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        """

    @_operation
    def constraint_bias(self, q: ArrayLike, v: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """Return the right-hand side gamma (..., nc) of the constraints J a = gamma of the tree's acceleration a (van der Merwe 5.22-5.26).

        gamma = dc/dt - J-dot v, where dc/dt is the acceleration of prescribed motions.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> (fourbar.constraint_bias(fourbar.neutral(), np.zeros(3)).round(12) + 0.0).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        """

    @_operation
    def constraint_residual(self, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
        """Return the constraint violation (..., nc) along the rows [rad, m]; it is zero if the loops are closed.

        At closed loops its time derivative is J v - c. The entries of velocity constraints (rolling without slip, Pfaffian) are zero.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> bool(abs(fourbar.constraint_residual(fourbar.assemble())).max() < 1e-12)
        True
        """

    @_operation
    def loop_jacobian(self, q: ArrayLike, frame: str, **options: Unpack[FrameTimeOptions]) -> Array:
        """Return the Jacobian J (..., 6, nu) of a frame with closed loops: the frame's velocity is J times the velocities of the motors in
        `actuated`.

        The velocity of the frame due to prescribed motions is not included. If the motor velocities are dependent, J is the Jacobian of least
        norm. If the motors do not determine the motion of the frame, a StateError is raised; in a batch the status is 3.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        frame : name of a frame, see `frames` of the mechanism
        time : (...) time for prescribed motions [s]
        expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
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
        """Return coordinates, velocities and accelerations of every joint of the tree and every loop joint.

        The coordinates of a loop joint are computed from the poses of its bodies, which determine angles only up to full revolutions. An angle is
        returned in [-pi, pi], or in the joint's limits if it has limits, or nearest to its entry in `near`.

        Parameters
        ----------
        q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]; quantities that are
            omitted are not in the result
        near : loop joint name to nearby coordinates (..., nq of the joint) [rad, m], such as the result for the previous state. Angles of these
            joints are returned within half a revolution of these values. For gimbals with three angles, where two sets of angles have the same
            rotation, `near` also selects the set, and so the sign of the middle angle's velocity
        time : (...) time for prescribed motions [s]
        threads, return_status : as in :class:`~sarrus.Mechanism`

        Raises
        ------
        TypeError
            `near` is not a mapping, or `a` is an argument without `v`.
        NameNotFoundError
            `near` has a name that is not a joint.
        ShapeError
            q, or the coordinates of a joint in `near`, have the wrong shape.

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
        if near is None and time is None and not self._limited and (states := _joint_states(self, q, v, a)):
            return cast(JointStates, states)
        if a is not None and v is None:
            raise TypeError(
                "joint_states() with accelerations a also needs v: accelerations of loop joints depend on velocities"
            )
        q = real_array("q", q)
        start = self._near(near, q)
        x = self._within_limits(self._loop_joint_coordinates(q, start, time=time), near or {})
        rates, accelerations = {}, {}
        if v is not None:
            rates = self._by_joint("_all_v", real_array("v", v), self._loop_joint_velocities(q, v, start, time=time))
        if v is not None and a is not None:
            loop_a = self._loop_joint_accelerations(q, v, a, start, time=time)
            accelerations = self._by_joint("_all_v", real_array("a", a), loop_a)
        return JointStates(self._by_joint("_all_q", self.normalize(q), x), rates, accelerations)

    def _within_limits(self, x: Array, near: Mapping[str, ArrayLike]) -> Array:
        """Return the coordinates of all loop joints, shifted by full revolutions into the limits of joints that are not in `near`."""
        for joint in self._closing_joints:
            if joint.limits is None or joint.name in near or not joint.type.whole_turns_return:
                continue
            at = slice(joint._all_q.start - self.nq, joint._all_q.stop - self.nq)
            angles = [unit == "rad" for _, unit in joint.type.coordinates]
            x[..., at] += np.where(angles, turns_into(x[..., at], *joint.limits, LIMIT_MARGIN), 0.0)
        return x

    def _near(self, near: Mapping[str, ArrayLike] | None, q: Array) -> Array:
        """Return the nearby coordinates of all loop joints that select full revolutions: from `near`, otherwise zero."""
        check_mapping("near", near, "joints' names to their coordinates", 0, optional=True)
        start = np.zeros((*q.shape[:-1], sum(j._all_q.stop - j._all_q.start for j in self._closing_joints)))
        for name, x in ({} if near is None else near).items():
            joint = self.joint(name)
            if joint.closes_loop:
                coordinates = slice(joint._all_q.start - self.nq, joint._all_q.stop - self.nq)
                start[..., coordinates] = real_rows(f"near['{name}']", x, joint.type.nq, q.shape[:-1])
        return start

    def _efforts_of_closing_motors(self, q: ArrayLike, tau: ArrayLike, time: ArrayLike | None) -> Array | None:
        """Return the efforts (..., all nv - nv) of loop joints if motors in loop joints produce part of tau; None without such motors.

        The entries are zero if the motors cannot produce tau.
        """
        if not any(joint.actuated for joint in self._closing_joints):
            return None
        across, tau = self._loop_joint_jacobian(q, time=time, return_status=True)[0], np.asarray(tau, dtype=float)
        lead = np.broadcast_shapes(across.shape[:-2], tau.shape[:-1])
        across, tau = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (across, tau[..., None]))
        return _core.efforts_of_closing_motors(self._base, across, tau)[..., 0]

    @cached_property
    def _limited(self) -> bool:
        """True if the limits of a loop joint select the full revolutions of its angle."""
        return any(joint.limits is not None and joint.type.whole_turns_return for joint in self._closing_joints)

    @cached_property
    def _closing_joints(self) -> list[Joint]:
        return [joint for joint in self._joints.values() if joint.closes_loop]

    @cached_property
    def _prescribed(self) -> tuple[tuple[str, slice], ...]:
        """Names of the prescribed motions, and slices of their constraint rows."""
        return tuple((name, c.rows) for name, c in self._constraints.items() if c.kind == "PrescribedMotion")

    @cached_property
    def _all_nv(self) -> int:
        """Number of velocities, including those of loop joints."""
        return max((joint._all_v.stop for joint in self._closing_joints), default=self.nv)

    def _by_joint(self, place: str, tree: Array, loops: Array) -> dict[str, Array]:
        lead = np.broadcast_shapes(tree.shape[:-1], loops.shape[:-1])
        both = np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (tree, loops)], axis=-1)
        return {joint.name: both[..., getattr(joint, place)].copy() for joint in self._joints.values()}

    # wrenches (..., constraints, 6) on the children, from multipliers (..., nc)
    _loop_wrenches = _undeclared("loop_wrenches")

    @cached_property
    def _load_places(self) -> tuple[tuple[str, int], ...]:
        """Names of joints, then of other constraints between bodies, with the index of each one's load in the core's array of loads."""
        return tuple(_core.load_places(self._base))

    # of all loop joints
    _loop_joint_coordinates = _undeclared("loop_joint_coordinates")
    _loop_joint_velocities = _undeclared("loop_joint_velocities")
    _loop_joint_accelerations = _undeclared("loop_joint_accelerations")
    _loop_joint_jacobian = _undeclared("loop_joint_jacobian")
    # wrenches of the joints' friction, springs and armature, in the same form as `loop_wrenches`
    _loop_joint_wrenches = _undeclared("loop_joint_wrenches")
    _effort_wrenches = _undeclared("effort_wrenches")  # of forces along loop joints, as `loop_wrenches`
    _joint_loads = _undeclared("joint_loads")  # on the children of the bodies' joints and of the constraints
    _least_reactions = _undeclared("least_reactions")  # [multipliers; loads], of loads (..., 6 (bodies + constraints))
    _constrained_motion = _undeclared("constrained_motion")  # [a; multipliers; residual; error; least pivot]
    _velocity_by_mass = _undeclared("velocity_by_mass")
    _velocity_plain = _undeclared("velocity_plain")
    _velocity_jump = _undeclared("velocity_jump")
    _configuration_by_mass = _undeclared("configuration_by_mass")
    _configuration_plain = _undeclared("configuration_plain")
    # [v + weight x], where x has least norm with J (v + weight x) = c; if a is an argument, [a + weight x] with J (a + weight x) = gamma
    _least_motion = _undeclared("least_motion")
    # [configuration near q that closes the loops as well as possible; residual]: see closing.hpp
    _close = _undeclared("close")
    _branch = _undeclared("branch")  # configurations along inputs, NaN after the end of the branch: see branch.hpp
    # [q; outcome; residual; numbers of inputs and of singular positions that the path has passed]
    _move_along_branch = _undeclared("move_along_branch")
    _mobility_numbers = _undeclared("mobility_numbers")
    _bounded_efforts = _undeclared(
        "bounded_efforts"
    )  # [efforts; missing effort because of limits]: see bounded_efforts.hpp
    _effort_regressor = _undeclared("effort_regressor")  # of each motor [motion; parameters]: see effort_regressor.hpp
    _loop_motions = _undeclared("loop_motions")  # the projector onto free motions, and their number
    _path_motion = _undeclared("path_motion")  # [q; v; a; lost]: see path_motion.hpp
    _reduced_dynamics = _undeclared("reduced_dynamics")  # see reduced_dynamics.hpp
    _equilibrium = _undeclared(
        "equilibrium"
    )  # [q; multipliers; holding efforts; degrees of freedom; gap; stiffness; imbalance; motions; compliance]

    @shows_options
    def project_velocity(
        self, q: ArrayLike, v: ArrayLike, *, metric: Metric = "mass", **options: Unpack[TimeOptions]
    ) -> Array:
        """Return the nearest velocity (..., nv) that satisfies the constraints, J v = c.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        metric : norm of the change of v that is minimised. "mass": kinetic energy, as after an inelastic impact of the loops (Li and Wu 4.6);
            "euclidean": Euclidean norm
        time : (...) time for prescribed motions [s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Raises StateError if no velocity satisfies the constraints.

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
        """Return a nearby configuration (..., nq) that closes the loops, by Newton's method with steps of least norm in the metric.

        Use this method to correct drift and small violations of the constraints. If the loops are far from closed, use :meth:`assemble`.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        locked : names of joints whose coordinates do not change
        metric, time : as in :meth:`project_velocity`
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Raises StateError with the remaining loop error if Newton's method does not close the loops; in a batch the status is 2.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> start = fourbar.assemble() + 1e-3
        >>> q = fourbar.project_configuration(start, locked=["motor"])
        >>> bool(abs(fourbar.constraint_residual(q)).max() < 1e-12), bool(q[0] == start[0])
        (True, True)
        """
        if "fixed" in options:
            raise TypeError("project_configuration() accepts names of joints as locked=, not as fixed=")
        if isinstance(locked, str) or not isinstance(locked, Iterable):
            raise TypeError(f"locked must be names of joints, such as ['motor']; got {locked!r}")
        robot, weight, lock_options = self, None, {}
        if names := tuple(locked):
            robot, weight, lock_options = cast(Any, self)._holding(q, names, options.get("time"))
        project = _by_metric(metric, robot._configuration_by_mass, robot._configuration_plain)
        return project(q, weight, **lock_options, **options)

    @shows_options
    def impact(
        self, q: ArrayLike, v: ArrayLike, *, restitution: ArrayLike = 0.0, time: ArrayLike | None = None, **options: Unpack[BatchOptions],
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return the velocity after an impact of the constraints, and its impulses.

        The result satisfies M (v_after - v) = J^T impulses and J v_after - c = -restitution (J v - c), for example when a clutch or latch closes a
        loop at a velocity v that violates the loop's constraint.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] before the impact
        restitution : (...) coefficient of restitution (dimensionless): 0 for a plastic impact, 1 if energy is conserved
        time : (...) time for prescribed motions [s]
        threads, return_status : as in :class:`~sarrus.Mechanism`

        Returns
        -------
        velocity (..., nv), impulses (..., nc) [N m s, N s]; indeterminate impulses are of least norm over all joints

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> after, impulses = fourbar.impact(q, [1.0, 0.0, 0.0])
        >>> bool(fourbar.kinetic_energy(q, after) < fourbar.kinetic_energy(q, [1.0, 0.0, 0.0]))
        True
        """
        if time is None and not options and (fast := _impact(self, q, v, restitution)):
            return cast("tuple[Array, Array]", fast)
        answer: Any = self._velocity_jump(q, v, restitution=restitution, time=time, **options)
        both, *status = answer if options.get("return_status") else (answer,)
        after, impulses = both[..., : self.nv], both[..., self.nv :]
        # impulses change velocities just as reactions change accelerations. Therefore call the function for reactions with bodies at rest and with
        # the acceleration a = change, and subtract the loads of gravity and springs
        rest, change = np.zeros(self.nv), after - np.asarray(v, dtype=float)
        shared = least_reactions(self, q, rest, change, impulses, time=time)
        shared = shared - least_reactions(self, q, rest, rest, np.zeros(self.nc), time=time)
        return cast("tuple[Array, Array]", (after, shared, *status))

    def _open_reactions(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Any
    ) -> tuple[dict[str, Array], Array]:
        """Return the reactions of the tree with all loops open, and the status."""
        f, status = cast("tuple[Array, Array]", self._reactions(q, v, a, **{**options, "return_status": True}))
        if status.ndim == 0 and status and not options.get("return_status", False):
            self._reactions(q, v, a, **options)  # raises the error
        return {name: f[..., self.joint(name)._body - 1, :] for name in self.joints}, status

    def _pfaffian_numbers(self, q: ArrayLike, v: ArrayLike | None, rates: bool = False) -> Array:
        """Return the flattened A, c and gamma of constraints whose rows are functions of q, as the core's input (..., n); or the rates of A."""
        q = real_rows("q", q, self.nq, finite=False)
        v = real_rows("v", np.zeros(self.nv) if v is None else v, self.nv, finite=False)
        lead = common_axes({"q": q.shape[:-1], "v": v.shape[:-1]})
        q, v = np.broadcast_to(q, (*lead, self.nq)), np.broadcast_to(v, (*lead, self.nv))
        # replace invalid states by the neutral configuration, because the caller's functions may fail for NaN; the core reports these states
        q, status = cast("tuple[Array, Array]", self.normalize(q, return_status=True))
        sound = (np.asarray(status) == 0)[..., None] & np.isfinite(v).all(axis=-1, keepdims=True)
        q, v = np.where(sound, q, self.neutral()), np.where(sound, v, 0.0)
        parts = [np.zeros((*lead, 0))]
        for spec in (c.spec for c in self._constraints.values()):
            if not isinstance(spec, PfaffianSpec) or not callable(spec.rows):
                continue
            columns = np.concatenate([np.arange(self.nv)[self.joint(name).v_slice] for name in spec.joints])
            shape = len(spec.value), len(columns)

            def returned(name: str, *at: Array, spec: PfaffianSpec = spec, shape: tuple[int, int] = shape) -> Array:
                answer = real_array(f"the return value of {name} of constraint '{spec.name}'", getattr(spec, name)(*at))
                if answer.shape[-2:] != shape or answer.shape[:-2] not in ((), lead):
                    raise ShapeError(
                        f"{name} of constraint '{spec.name}' returned shape {answer.shape} for q of shape {q.shape}; "
                        f"it must return {(*lead, *shape)}"
                    )
                return np.broadcast_to(answer, (*lead, *shape))

            rows = returned("rows", q)
            if spec.derivative is not None:
                rate = returned("derivative", q, v)
            else:
                # fourth-order central differences along the velocity
                h = 3e-4 / np.maximum(1.0, np.abs(v).max(axis=-1, keepdims=True))
                A = [returned("rows", self.integrate(q, steps * h * v)) for steps in (-2.0, -1.0, 1.0, 2.0)]
                rate = (8.0 * (A[2] - A[1]) - (A[3] - A[0])) / (12.0 * h[..., None])
            with np.errstate(over="ignore", invalid="ignore"):  # reported by the core
                gamma = -(rate @ v[..., columns, None])[..., 0]
            value = np.broadcast_to(np.array(spec.value), gamma.shape)
            moves = (rate, 0.0 * value) if rates else (rows, value)
            parts += [moves[0].reshape(*lead, shape[0] * shape[1]), moves[1], gamma]
        return np.concatenate(parts, axis=-1)


def _by_metric(metric: Metric, by_mass: Any, plain: Any) -> Callable[..., Array]:
    check_choice("metric", metric, Metric)
    chosen: Callable[..., Array] = by_mass if metric == "mass" else plain
    return chosen


# ---- errors by status ------------------------------------------------------------------------------------------------


DERIVATIVES = tuple(f"derivatives.forward_dynamics{kind}" for kind in ("", "_jvp", "_vjp"))
PUBLIC = {
    "velocity_by_mass": "project_velocity", "velocity_plain": "project_velocity", "velocity_jump": "impact",
    "constrained_motion": "forward_dynamics",
    "joint_loads": "joint_wrenches", "linear_equations": "linearize", "forward_dynamics_derivatives": DERIVATIVES[0], "forward_dynamics_jvp": DERIVATIVES[1],
    "forward_dynamics_vjp": DERIVATIVES[2], "actuator_efforts_vjp": "actuator_efforts", "bounded_efforts": "actuator_efforts", "configuration_by_mass": "project_configuration", "configuration_plain": "project_configuration",
}  # fmt: skip


def explain(
    mechanism: LoopFunctions, operation: str, status: int, arguments: dict[str, Any], result: Array
) -> NoReturn:
    """Raise the error for the core's status of one state."""
    efforts, operation = operation == "actuator_efforts_vjp", PUBLIC.get(operation, operation)
    if status == Status.OFF_LOOPS:
        raise_explained(mechanism, operation, Status.OFF_LOOPS, arguments)
    if status == Status.INCONSISTENT_CONSTRAINTS:
        raise_contradiction(mechanism, operation, arguments)
    if efforts or (operation in DERIVATIVES and status_of_motion(mechanism, arguments) == Status.FINE):
        raise StateError(
            f"{'derivatives.' if efforts else ''}{operation} has no result: the position is so near to a singular position that "
            "rounding dominates the derivatives"
        )
    stays_open = operation in ("project_configuration", "loop_jacobian")
    raise_explained(mechanism, operation, Status.NO_ANSWER, arguments, result if stays_open else None)


def status_of_motion(mechanism: LoopFunctions, arguments: dict[str, Any]) -> int:
    """Return the status that forward dynamics has at this state."""
    state: Any = {name: arguments.get(name) for name in ("wrenches", "time", "pfaffian_values")}
    motion = (arguments[name] for name in ("q", "v", "tau"))
    return int(mechanism.forward_dynamics(*motion, check=False, return_status=True, **state)[1])


def raise_contradiction(mechanism: LoopFunctions, operation: str, arguments: dict[str, Any]) -> NoReturn:
    """Raise StateError with the constraint of largest residual, or with the joints that lack a motor."""
    if operation == "actuator_efforts":
        cast(Any, mechanism)._raise_not_realizable(**arguments)  # its message names the missing motors
    if operation == "loop_jacobian":
        motors = ", ".join(map(repr, mechanism.actuated))
        reason = f"{motors} do not determine" if motors else "no motors determine"
        raise StateError(f"{operation} has no result: {reason} the motion of the frame in this state")
    if operation in DERIVATIVES and status_of_motion(mechanism, arguments) == Status.FINE:
        raise StateError(
            f"{operation} has no result: constraint rows become inconsistent along displacements that the loops allow; the position "
            "is singular, so the acceleration has no derivative"
        )
    raise_explained(mechanism, operation, Status.INCONSISTENT_CONSTRAINTS, arguments)


def raise_explained(
    mechanism: LoopFunctions, operation: str, status: Status, arguments: dict[str, Any], result: Array | None = None
) -> NoReturn:
    """Raise StateError with the core's explanation of a state that has no answer."""
    names = ("q", "v", "a", "weight", "rates", "time", "pfaffian_values")
    state = {name: arguments[name] for name in names if arguments.get(name) is not None}
    raise StateError(_core.explanation(mechanism, operation, int(status), **state, result=result))


_core.hand_over(explain=explain, pfaffian_values=LoopFunctions._pfaffian_numbers)
