"""What a mechanism did: samples of a motion, and all that follows from them.

Only samples are kept: energies, accelerations, reactions and the rest are functions of t, q and v, computed when asked for.
Between samples see :mod:`~sarrus.control.interpolation`, for files :mod:`~sarrus.simulation.storage`, for what figures
and films show :mod:`~sarrus.figures.figures`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_names, checked_path, checked_truth, real_array
from .._renamed import renamed_arguments, renamed_attribute
from ..dynamics.loop_operations import LoopReactions
from ..dynamics.reactions import compliance_roots, least_reactions
from ..errors import ModelError, NotRealizableError, ShapeError, StateError
from ..laws import Law
from ..mechanism import Mechanism, checked_mechanism

if TYPE_CHECKING:
    import pandas
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from .histories import ContactForces, JointWrenchHistory, PlaneContact

Efforts: TypeAlias = Callable[[Array, Array, Array, Array], ArrayLike]


class Trajectory:
    """A motion, sampled: made by :func:`~sarrus.simulate`, or of a motion that is known by :meth:`from_motion`.

    It does not change; its arrays are read-only. What is not given is computed when it is asked for first, for all samples at once, and
    kept. Samples of t, q and v alone do not tell what acts: `tau`, `a` and `reactions` then raise ModelError.

    Parameters
    ----------
    mechanism : what moves
    t : (n,) [s], finite and not decreasing
    q, v : (n, nq), (n, nv)
    internal_state : (n, nz) internal states of force elements: integrals of controllers, bristles of friction; behind them what :class:`~sarrus.control.SampleAndHold` and tables hold,
        and `loop_q`
    loop_q : (n, those of joints that close loops) coordinates of these joints, one joint after the other, with the turns that a run has counted
        because something acts on them or is watched there; None: nobody counted
    efforts : generalised forces (n, nv) of force elements and functions, zeros where there are none, or the function (t, q, v, z) -> (n, nv)
        that tells them; None: unknown
    a : (n, nv) generalised acceleration; default: that of forward dynamics under the efforts
    friction : forces of dry friction (n, nv + those of joints that close loops), as a simulation decided of them, or the function
        (t, q, v, z) that tells them: at rest they are what holds. None: against each velocity, and zero at rest
    wrenches : frame name to wrenches (n, 6) or (6,) [moment; force] on the mechanism, in that frame's axes at its origin, which act besides the efforts
        [N m, N]
    statistics : what it took, and how well it holds what it is to hold: "method", "steps", "rejected", "evaluations", "seconds"; "beyond_tolerance": steps of "dopri5" that rounding
        near a singular position left no better than that; "limits": those of joints that were left, a list of dicts (joint, index,
        quantity, lower, upper, time, reached), efforts as controllers asked for them; "stiffness": the largest |rate| dt of what acts; "work": that of controllers, loads, dampers, friction, contacts and laws of time [J], "work_known_to": how far it may be off; "contact": of steps of rigid
        contact the largest of all: "kinematics" (J v - c of the loops) and "positions" as they are left [rad/s, m/s; rad, m], "penetration" [m],
        "momentum" (what is left of the equations of motion, of 1), of the cones "primal" [N s], "dual" [m/s], "complementarity" [J] and
        "natural_map" [m/s], and "work", that of contacts in a step [J], which is positive where they gain energy; and "as_touching", in how many steps
        what nearly touches had to count as touching
    status : "finished", "terminated: <event>", "interrupted", "diverged"; "prescribed" of :meth:`from_motion`; "unknown" when read
        from a .csv
    events : name -> times (k,) at which it happened [s]
    checkpoint : from where :func:`~sarrus.simulate` can go on
    touching : where `internal_state` has what shapes do to each other in steps of rigid contact, of how many points, and how many numbers each; see `contacts`
    on_planes : every :class:`~sarrus.control.RigidContact`, and where `internal_state` has its states
    sensitivities : :class:`~sarrus.results.Sensitivities` (n, ...) of the samples by the start and by numbers of force elements, where
        :func:`~sarrus.simulate` was asked for them; else None. They are not saved

    Raises ShapeError, ValueError or TypeError for arrays that do not fit the mechanism or one another, for times that are none, and for
    complex or masked numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sarrus import Trajectory
    >>> import sarrus
    >>> t = np.linspace(0.0, 1.0, 11)
    >>> run = Trajectory(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), t, np.sin(t)[:, None], np.cos(t)[:, None])
    >>> run
    Trajectory of 'pendulum': 11 samples over 1 s, finished
    >>> round(float(run.energy[0]), 2), run.frame("tip").shape
    (-9.56, (11, 4, 4))
    >>> q, v = run.at(0.25)
    >>> bool(abs(q[0] - np.sin(0.25)) < 1e-6)
    True
    """

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    internal_state: Array | None
    loop_q: Array | None
    efforts: Efforts | Array | None
    wrenches: dict[str, Array]
    _given_friction: Efforts | Array | None
    _given_a: Array | None
    statistics: dict[str, Any]
    status: str
    events: dict[str, Array]
    checkpoint: dict[str, Any] | None
    touching: tuple[int, int, int] | None
    on_planes: tuple[PlaneContact, ...]
    sensitivities: Any = None

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    @renamed_arguments(z="internal_state")
    def __init__(
        self,
        mechanism: Mechanism,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        *,
        internal_state: ArrayLike | None = None,
        loop_q: ArrayLike | None = None,
        efforts: Efforts | ArrayLike | None = None,
        a: ArrayLike | None = None,
        friction: Efforts | ArrayLike | None = None,
        wrenches: Mapping[str, ArrayLike] | None = None,
        statistics: Mapping[str, Any] | None = None,
        status: str = "finished",
        events: Mapping[str, ArrayLike] | None = None,
        checkpoint: dict[str, Any] | None = None,
        touching: tuple[int, int, int] | None = None,
        on_planes: Sequence[PlaneContact] = (),
    ) -> None:
        times = _kept(real_array("t", t))
        if times.ndim != 1:
            raise ShapeError(f"t must be (n,); got {times.shape}")
        if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
            raise ValueError("t must be finite times, none before the one that it follows")
        check_mapping("events", events, "names to times", 0, optional=True)
        check_mapping("statistics", statistics, "names to values", 0, optional=True)
        nq, nv, n = checked_mechanism(mechanism).nq, mechanism.nv, len(times)
        closing, all_nv = sum(j.type.nq for j in mechanism._closing_joints), mechanism._all_nv

        def rows(name: str, values: Any, wide: int | str) -> Array:
            x = _kept(real_array(name, values))
            if x.ndim != 2 or len(x) != n or wide not in (x.shape[1], "m"):
                raise ShapeError(f"{name} must be ({n}, {wide}), a row a time; got {x.shape}")
            return x

        # past __setattr__, which refuses
        self.__dict__.update(
            mechanism=mechanism,
            t=times,
            q=rows("q", q, nq),
            v=rows("v", v, nv),
            internal_state=None if internal_state is None else rows("internal_state", internal_state, "m"),
            loop_q=None if loop_q is None else rows("loop_q", loop_q, closing),
            _given_a=None if a is None else rows("a", a, nv),
            efforts=efforts if efforts is None or callable(efforts) else rows("efforts", efforts, nv),
            _given_friction=friction if friction is None or callable(friction) else rows("friction", friction, all_nv),
            wrenches=_wrenches(mechanism, wrenches, times),
            statistics=dict(statistics or {}),
            status=status,
            events={name: _kept(real_array(f"times of event '{name}'", at)) for name, at in (events or {}).items()},
            checkpoint=checkpoint,
            touching=touching,
            on_planes=_places(on_planes),
        )

    @classmethod
    def from_motion(
        cls,
        mechanism: Mechanism,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        actuated: Sequence[str] | None = None,
        wrenches: Mapping[str, ArrayLike | Sequence[float | Law]] | None = None,
    ) -> Trajectory:
        """A motion that is planned or measured, with the generalised forces that bring it about.

        On a tree these are of all joints, by inverse dynamics; where loops close, of the motors alone, of least norm, by
        :meth:`Mechanism.actuator_efforts`.

        Parameters
        ----------
        t : (n,) [s], not decreasing
        q, v, a : (n, nq), (n, nv), (n, nv); where loops close, a motion that they allow
        actuated : names of the joints that drive a mechanism with loops; default: those that its description says
        wrenches : loads that act in the motion, such as digging, gas or cutting forces: frame name to [moment; force] on the mechanism, in that frame's
            axes at its origin: (n, 6), (6,), or six numbers and laws of time [N m, N]. `tau`, `reactions` and :meth:`joint_wrenches` have them

        Raises NotRealizableError where the motors cannot bring the motion about, StateError where the loops do not allow it or a state is
        no state.

        Examples
        --------
        A pendulum that is turned evenly:

        >>> import numpy as np
        >>> import sarrus
        >>> from sarrus import Trajectory
        >>> t = np.linspace(0.0, 1.0, 11)
        >>> q, v, a = 2.0 * t[:, None], np.full((11, 1), 2.0), np.zeros((11, 1))
        >>> run = Trajectory.from_motion(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), t, q, v, a)
        >>> bool(np.allclose(run.tau[:, 0], 9.81 * np.sin(run.q[:, 0]))), float(run.a[3, 0])
        (True, 0.0)
        """
        if actuated is not None and not checked_mechanism(mechanism).nc:
            raise ModelError(f"'{mechanism.name}' has no loops, and every joint is driven; leave actuated= out")
        plan = cls(mechanism, t, q, v, a=a, wrenches=_evaluated_laws(wrenches, t), status="prescribed")

        def needed(k: int | slice, **asked: Any) -> Any:
            motion = plan.q[k], plan.v[k], plan.a[k]
            asked["wrenches"] = {name: f[k] for name, f in plan.wrenches.items()}
            if not mechanism.nc:
                return mechanism.inverse_dynamics(*motion, **asked)
            # a plan is to be one that the loops allow
            asked |= {"actuated": actuated, "time": plan.t[k], "exact": True}
            return mechanism.actuator_efforts(*motion, **asked)

        tau, status = needed(slice(None), return_status=True)
        for k in np.flatnonzero(status)[:1]:
            try:
                needed(int(k))
            except (StateError, NotRealizableError) as error:
                raise type(error)(f"sample {k} at t = {plan.t[k]:.9g} s: {error}") from None
        if mechanism.nc:
            tau = (mechanism.actuation_matrix(plan.q, actuated=actuated) @ tau[..., None])[..., 0]
        return cls(**plan._fields() | {"efforts": tau})

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"a Trajectory does not change; cannot set or delete '{name}'")

    __delattr__ = __setattr__

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.t)

    def __repr__(self) -> str:
        over = f" over {self.t[-1] - self.t[0]:.6g} s" if len(self) else ""
        how = [str(self.statistics["method"])] if "method" in self.statistics else []
        samples = "1 sample" if len(self) == 1 else f"{len(self)} samples"
        return f"Trajectory of '{self.mechanism.name}': {samples}{over}, {', '.join([*how, self.status])}"

    def _repr_html_(self) -> str:
        from ..figures.notebook import trajectory

        return trajectory(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Trajectory, **self._fields()), ()

    def _fields(self) -> dict[str, Any]:
        """What it is made from."""
        names = ["mechanism", "t", "q", "v", "internal_state", "loop_q", "friction", "wrenches"]
        names += ["statistics", "status", "events", "checkpoint", "touching", "on_planes"]
        # a function of the controllers does not travel; what it says does
        return {name: getattr(self, name) for name in names} | {"efforts": self._known_efforts, "a": self._given_a}

    # ---- what follows from the samples -------------------------------------------------------------------------------

    @cached_property
    def tau(self) -> Array:
        """(n, nv) generalised force of all that acts, contacts and end stops too, motors as their limits let them; joint friction and springs
        of the mechanism are not in it. Of rigid contact it is the mean of the step that leads to a sample [N m, N].

        ModelError where it is unknown.
        """
        if self.efforts is None:
            raise ModelError(
                "what acts in this Trajectory is unknown, and with it tau, a and reactions: it was made of t, q and v alone. "
                "Trajectory.from_motion(mechanism, t, q, v, a) tells what a given motion needs; with efforts=np.zeros_like(v) nothing acts"
            )
        return self._evaluated("efforts", self.efforts, self.mechanism.nv)

    @cached_property
    def friction(self) -> Array | None:
        """(n, nv + those of joints that close loops) force of dry friction along each joint: where one is at rest, what holds it [N m, N].

        None where it is unknown: in a motion that was not simulated, or comes from a .csv. Then it is what forward dynamics takes it for, its
        limit against each velocity, and zero at rest.
        """
        known = self._given_friction
        return None if known is None else self._evaluated("friction", known, self.mechanism._all_nv)

    @cached_property
    def contacts(self) -> ContactForces:
        """:class:`~sarrus.results.ContactForces`: where shapes, and points on planes, press on each other, and by how much.

        ModelError where there is no rigid contact: shapes and :class:`~sarrus.control.RigidContact` act in steps of ``method="contact"``.
        """
        if self._contacts is None:
            raise ModelError(
                "no rigid contact acts in this Trajectory: shapes and RigidContact do in steps of method='contact'"
            )
        return self._contacts

    @cached_property
    def _contacts(self) -> ContactForces | None:
        if self.internal_state is None or not (self.touching or self.on_planes):
            return None
        from .histories import BEFORE, ContactForces

        parts = ContactForces.of_planes(self.mechanism, self.q, self.internal_state, self.on_planes)
        if self.touching is not None:
            first, kept, each = self.touching
            parts += [
                ContactForces.of_states(
                    self.mechanism, self.internal_state[:, first : first + BEFORE + each * kept], kept
                )
            ]
        return ContactForces.together(parts)

    @cached_property
    def _pressed(self) -> dict[str, tuple[Array, Array]]:
        """Where the pairs of rigid contact press, and their forces on the first: name -> (n, 3), (n, 3)."""
        return {} if self._contacts is None else self._contacts.by_pair(len(self))

    @cached_property
    def _pushed(self) -> dict[str, Array]:
        """Wrenches on bodies by rigid contact: name -> (n, 6)."""
        return {} if self._contacts is None else self._contacts.wrenches(self.mechanism, self.q)

    @cached_property
    def _loads(self) -> dict[str, Array]:
        """All wrenches on frames and bodies: name -> (n, 6)."""
        loads = dict(self.wrenches)
        for name, wrench in self._pushed.items():
            loads[name] = loads[name] + wrench if name in loads else wrench
        return loads

    def _evaluated(self, what: str, values: Efforts | Array, wide: int) -> Array:
        """Forces (n, wide), or what their function says."""
        if not callable(values):
            return values
        z = np.empty((len(self), 0)) if self.internal_state is None else self.internal_state
        forces = _kept(values(self.t, self.q, self.v, z)) if len(self) else _kept(np.empty((0, wide)))
        if forces.shape != (len(self), wide):
            raise ShapeError(f"{what} returned shape {forces.shape}; it must return {(len(self), wide)}")
        return forces

    @cached_property
    def _acting(self) -> tuple[Mechanism, Array]:
        """A mechanism, and the generalised force on it (n, nv) besides `_loads`: the mechanism itself, or without what the run knows better, and that in
        the force.
        """
        tau = self.tau
        for name, wrench in self._pushed.items():
            tau = tau - np.einsum("nij,ni->nj", self.mechanism.jacobian(self.q, name), wrench)
        if self._passive is None:
            return self.mechanism, tau
        from ..analysis.actuation.joint_wrenches import along_tree

        return self._without_passive, tau + along_tree(self.mechanism, self.q, self._passive, self.t)

    @cached_property
    def _passive(self) -> Array | None:
        """(n, nv + those of joints that close loops) dry friction, and springs whose turns were counted; None where no state has more to tell."""
        if self._springs is None or self.friction is None:
            return self.friction if self._springs is None else self._springs[0]
        return np.asarray(self.friction + self._springs[0])

    @cached_property
    def _springs(self) -> tuple[Array, Array] | None:
        """Forces (n, nv + those of joints that close loops) and energy (n,) of springs with the turns that were counted; None: there are none."""
        robot, force, energy = self.mechanism, np.zeros((len(self), self.mechanism._all_nv)), np.zeros(len(self))
        if self.loop_q is None:
            return None
        for joint in robot._closing_joints:
            for k in _turning_springs(robot, joint.name):
                off = self.loop_q[:, joint._all_q.start - robot.nq + k] - joint.type.rest[k]
                force[:, joint._all_v.start + k] = -joint.type.stiffness[k] * off
                energy += 0.5 * joint.type.stiffness[k] * off**2
        return (force, energy) if energy.any() else None

    @cached_property
    def _without_passive(self) -> Mechanism:
        robot, joints = self.mechanism, []
        for spec in robot.description.joints:
            known: dict[str, Any] = {} if self.friction is None else {"friction": 0.0}
            springs = [] if self._springs is None else _turning_springs(robot, spec.name)
            for name in ("stiffness", "rest") if springs else ():
                known[name] = np.array(getattr(spec.joint, name))
                known[name][springs] = 0.0
            joints.append(replace(spec, joint=replace(spec.joint, **known)))
        return Mechanism(replace(robot.description, joints=tuple(joints)))

    @property
    def _known_efforts(self) -> Array | None:
        return None if self.efforts is None else self.tau

    @cached_property
    def a(self) -> Array:
        """(n, nv) generalised acceleration [rad/s2, m/s2]; NaN where there is none. ModelError where what acts is unknown."""
        if self._given_a is not None:
            return self._given_a
        # a run may leave its loops by more than the call for one state takes; loop_error tells
        robot, tau = self._acting
        return _kept(robot.forward_dynamics(self.q, self.v, tau, wrenches=self._loads, time=self.t, check=False))

    @cached_property
    def reactions(self) -> LoopReactions:
        """What the constraints of loops carry; on a tree there are none. What joints carry, of any mechanism: :meth:`joint_wrenches`.

        Rigid contact and `wrenches` act where they do; another force that acts elsewhere than at a joint (compliant contact, a function's wrench on a
        frame) counts as `tau` would.
        ModelError where what acts is unknown.
        """
        carried: LoopReactions
        state: Any = {"time": self.t, "check": False, "wrenches": self._loads}
        robot, tau = self._acting
        _, carried = robot.forward_dynamics(self.q, self.v, tau, return_reactions=True, **state)
        if self._passive is not None and self.mechanism.constraints:
            if np.any(along := self._passive[:, robot.nv :]):  # which joints it acts in changes what they share
                known: Any = {"wrenches": self.wrenches, "time": self.t}
                shared = least_reactions(robot, self.q, self.v, self.a, carried.multipliers, along, **known)
                change = robot._loop_wrenches(self.q, shared - carried.multipliers, time=self.t, return_status=True)[0]
                by_name = {name: carried.wrenches[name] + change[:, k] for k, name in enumerate(robot.constraints)}
                carried = replace(carried, multipliers=shared, wrenches=by_name)
            from ..analysis.actuation.joint_wrenches import by_friction

            for name, wrench in by_friction(self.mechanism, self.q, self._passive, self.t).items():
                carried.wrenches[name] = carried.wrenches[name] + wrench
        for x in (carried.multipliers, carried.residual, *carried.wrenches.values()):
            x.setflags(write=False)
        return carried

    def joint_wrenches(
        self, *, actuated: Sequence[str] | None = None, compliance: Mapping[str, ArrayLike] | None = None
    ) -> JointWrenchHistory:
        """What every joint carries along the motion, and the efforts of motors and prescribed motions; printed, a table.

        Parameters
        ----------
        actuated : names of the joints that are driven; default: those that the description says, and all in the tree that are
        compliance : how much joints give, by which they share what rigid bodies do not determine, as in :meth:`Mechanism.joint_wrenches`

        Raises ModelError as :meth:`Mechanism.joint_wrenches` does, and where what acts is unknown.

        Examples
        --------
        >>> import sarrus
        >>> robot = sarrus.mechanisms.four_bar()
        >>> run = sarrus.simulate(robot, robot.assemble(fixed={"motor": 0.5}), [0.0, 0.0, 0.0], 0.5)
        >>> loads = run.joint_wrenches()
        >>> loads["pin2"].shape, loads.indeterminate["pin2"]
        ((501, 6), ('moment x', 'moment z', 'force y'))
        """
        if actuated is None:
            if compliance is None:
                return self._joint_wrenches
            actuated = self._driven
        from ..analysis.actuation.joint_wrenches import joint_wrenches_with
        from .histories import JointWrenchHistory

        robot = self.mechanism
        known: dict[str, Any] = {"wrenches": self._loads}
        known["compliance"] = None if compliance is None else compliance_roots(robot, compliance)
        if robot.constraints:  # of which a free joint, which closes a loop by no row, is one
            carried = self.reactions.multipliers if robot.nc else np.zeros((len(self), 0))
            known |= {"multipliers": carried, "actuated": actuated, "time": self.t}
        if self._passive is not None:
            loads = joint_wrenches_with(self._without_passive, self.q, self.v, self.a, friction=self._passive, **known)
        else:
            loads = joint_wrenches_with(robot, self.q, self.v, self.a, **known)
        return JointWrenchHistory(loads, self.t)

    @cached_property
    def _joint_wrenches(self) -> JointWrenchHistory:
        return self.joint_wrenches(actuated=self._driven)

    @property
    def _driven(self) -> tuple[str, ...]:
        robot = self.mechanism
        tau, rounding = self.tau, 0.0
        if self._pushed:  # what is left without them is rounding of theirs
            tau, rounding = self._acting[1], 1e-9 * float(np.abs(self.tau).max(initial=0.0))
        driven = [name for name in robot.joints if np.any(np.abs(tau[:, robot.joint(name).v_slice]) > rounding)]
        if not {robot.joint(name).closes_loop for name in robot.actuated} <= {False}:
            driven = []  # what a motor in a joint that closes a loop does is seen in all joints of the tree
        return tuple(dict.fromkeys((*robot.actuated, *driven)))

    @cached_property
    def kinetic_energy(self) -> Array:
        """(n,) [J]."""
        return _kept(self.mechanism.kinetic_energy(self.q, self.v))

    @cached_property
    def potential_energy(self) -> Array:
        """(n,) of gravity and springs, with the turns that a run has counted [J]."""
        if self._springs is None:
            return _kept(self.mechanism.potential_energy(self.q))
        return _kept(self._without_passive.potential_energy(self.q) + self._springs[1])

    @cached_property
    def energy(self) -> Array:
        """(n,) kinetic and potential [J]; without what contacts, end stops and controllers hold."""
        return _kept(self.kinetic_energy + self.potential_energy)

    @cached_property
    def momentum(self) -> Array:
        """(n, 6) [angular, about the world's origin; linear], world axes [kg m2/s, kg m/s]."""
        return _kept(self.mechanism.momentum(self.q, self.v))

    @cached_property
    def loop_error(self) -> Array:
        """(n,) how far the loops are open: the largest row of :meth:`Mechanism.constraint_residual` [rad, m]; zero without loops."""
        if not self.mechanism.nc:
            return _kept(np.zeros(len(self)))
        return _kept(np.abs(self.mechanism.constraint_residual(self.q, time=self.t)).max(axis=-1))

    def joint(self, name: str) -> Array:
        """(n, nq of the joint) its coordinates; of one that closes a loop with the turns that a run has counted, or else counted from
        sample to sample by its velocities.
        """
        joint = self.mechanism.joint(name)
        if not joint.closes_loop:
            return self.q[:, joint.q_slice]
        if self.loop_q is not None:
            return self.loop_q[:, joint._all_q.start - self.mechanism.nq : joint._all_q.stop - self.mechanism.nq]
        x = self.mechanism.joint_states(self.q, time=self.t).q[name]
        v = self.mechanism.joint_states(self.q, self.v, time=self.t).v[name]
        from ..control.coordinates import loses_turns

        for k in (k for k in range(joint.type.nv) if loses_turns(self.mechanism, name, k)):
            way = 0.5 * (v[1:, k] + v[:-1, k]) * np.diff(self.t)  # which may be more than half a turn
            x[1:, k] -= 2.0 * np.pi * np.cumsum(np.round((np.diff(x[:, k]) - way) / (2.0 * np.pi)))
        return _kept(x)

    def frame(self, name: str) -> Array:
        """(n, 4, 4) poses of a frame or body in the world."""
        return self.mechanism.pose(self.q, name)

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Configuration and velocity at any times (...) from the first sample to the last: q (..., nq), v (..., nv).

        A cubic between samples that has their coordinates and velocities (Hermite's), for rotations on their manifold; off by O(dt^4), as
        is the loops' closure, and exact at samples. Between two samples a body should turn by less than half a turn.

        Raises ValueError for a time outside.
        """
        t = real_array("t", t)
        inside = (t >= self.t[0]) & (t <= self.t[-1]) if len(self) else np.zeros(t.shape, dtype=bool)
        if not inside.all():
            known = f"{self.t[0]:.9g} s to {self.t[-1]:.9g} s" if len(self) else "no time at all"
            raise ValueError(f"t = {t[~inside].flat[0]:.9g} s is outside: the trajectory holds {known}")
        k = np.searchsorted(self.t, t, side="right") - 1
        q, v = self.q.take(k, axis=0), self.v.take(k, axis=0)
        between = t != self.t[k]
        if between.any():
            from ..control import interpolation

            k = k[between]
            q[between], v[between] = interpolation.between(self.mechanism, self.t, self.q, self.v, t[between], k)
        return q, v

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, frames: str | Sequence[str] = ()) -> None:
        """Write to a file, as its name ends: all of it to .npz, the table of :meth:`to_dataframe`, with these frames, to .csv.

        The .npz holds the mechanism too, pickled. The .csv has every digit of its numbers (an older pandas reads the last one right
        with ``float_precision="round_trip"``).

        Raises ValueError where the name ends otherwise, or frames are asked for of an .npz, which has no table; ModelError where the mechanism
        holds a function that cannot be pickled; NameNotFoundError for a frame that there is not.
        """
        from . import storage

        path = checked_path(path)
        if storage.suffix(path) == ".npz":
            if len(checked_names("frames", frames)):
                raise ValueError("frames are columns of a .csv; an .npz holds what tells where all of them are")
            storage.write_npz(path, self._fields())
            return
        heads, parts = self._table(frames)
        starts = range(0, len(self), 65536)  # numbers as objects take a multiple of their memory
        blocks = (np.column_stack([x[first : first + 65536] for x in parts]) for first in starts)
        storage.write_csv(path, heads, blocks)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | None = None) -> Trajectory:
        """Read what :meth:`save` wrote.

        Without ``mechanism=`` an .npz is **unpickled**, and a pickle can run any program: load only files from people whom you trust.
        With it nothing is unpickled; the checkpoint is then left out. A .csv needs it: it holds no mechanism, and no status, events
        or statistics.

        Raises OSError where there is no such file, ValueError where it is none that sarrus wrote, or is of another mechanism; which a .csv tells by its columns and its
        energy alone.
        """
        from . import storage

        path = checked_path(path)
        if mechanism is not None:
            checked_mechanism(mechanism)
        try:
            if storage.suffix(path) == ".npz":
                return cls(**storage.read_npz(path, mechanism))
            if mechanism is not None:
                fields, energy = storage.read_csv(path, mechanism)
                with contextlib.suppress(ValueError):
                    return cls(**fields)._with_energy(energy)
                return cls(**fields | {"loop_q": None})._with_energy(energy)  # nobody had counted turns
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error
        raise TypeError("a .csv does not hold the mechanism: Trajectory.load(path, mechanism=...)")

    def _with_energy(self, energy: Array) -> Trajectory:
        """Itself; ValueError where a table says that the mechanism had another energy."""
        with np.errstate(invalid="ignore"):  # of samples that diverged
            size = np.abs(self.kinetic_energy) + np.abs(self.potential_energy)
            largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
            swing = self.mechanism.mass * self.mechanism._length * float(np.linalg.norm(self.mechanism.gravity))
            off = np.abs(self.energy - energy) > 1e-6 * size + 1e-9 * (largest + swing)
        for k in np.flatnonzero(off)[:1]:
            fault = f"its energy at t = {self.t[k]:.9g} s is {energy[k]:.9g} J, not {self.energy[k]:.9g} J"
            raise ValueError(f"it is of another mechanism than '{self.mechanism.name}': {fault}")
        return self

    def to_dataframe(self, *, frames: str | Sequence[str] = ()) -> pandas.DataFrame:
        """Table with a row per sample, whose heads end in units: ``q:motor [rad]``, ``v:slider [m/s]``, ``t [s]``. Needs pandas.

        In turn: t; q, v of the joints of the tree, tau where it is known, a where it was given; energy; loop_error; q and v of joints that
        close loops, with their turns; loads that :attr:`wrenches` has, ``wrench:teeth:0 [N m]`` to ``wrench:teeth:5 [N]``; where `frames` are,
        ``x:tip [m]`` and so on; of rigid contact the force of each pair on its first shape, in the world, ``contact:ball-floor:x [N]`` to
        ``contact:ball-floor:z [N]``, and :attr:`contacts` has each point. Joints of several coordinates have a column for each, ``q:joint:0 [rad]`` and so on.

        Parameters
        ----------
        frames : names of frames or bodies whose origins in the world are columns

        Raises NameNotFoundError for a frame that there is not.
        """
        from .._files import needed

        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        heads, parts = self._table(frames)
        for name, (_, force) in self._pressed.items():
            heads += [f"contact:{name}:{axis} [N]" for axis in "xyz"]
            parts.append(force)
        return pandas.DataFrame(np.column_stack(parts), columns=heads)

    def _table(self, frames: str | Sequence[str]) -> tuple[list[str], list[Array]]:
        """Heads, and columns (n,) or (n, k) of them."""
        from . import storage

        robot, names = self.mechanism, checked_names("frames", frames)
        efforts, loops = self._known_efforts, robot.loop_joints
        heads = storage.columns(robot, efforts is not None, self._given_a is not None, self.wrenches, names)
        parts = [self.t, self.q, self.v, efforts, self._given_a, self.energy, self.loop_error]
        rates = robot.joint_states(self.q, self.v, time=self.t).v if loops else {}
        parts += [*(self.joint(name) for name in loops), *(rates[name] for name in loops), *self.wrenches.values()]
        return heads, [x for x in [*parts, *(self.frame(name)[:, :3, 3] for name in names)] if x is not None]

    # ---- pictures ----------------------------------------------------------------------------------------------------

    @renamed_arguments(what="quantities")
    def plot(self, quantities: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw something against time: up to five lines in black of different dashes, more in colours.

        Of two units with up to three lines each, the second one is blue and has its axis on the right; more lines or units have panels, one
        below the other.

        Needs matplotlib.

        Parameters
        ----------
        quantities : "q", "v", "a", "tau" of all joints; "efforts" of motors and prescribed motions; "energy"; "loop_error"; "momentum"; "reactions", the
            size of the force in every constraint or joint, and "joint_wrenches", with what motors in them do; "contacts", the size of the force of
            every pair in rigid contact; the name of a joint: its
            coordinates, also where it closes a loop; the name of a frame: where it is; or several of these names. Default: "q", of more
            than twelve coordinates those of the joints that have motors
        ax : where to draw what needs no panels; default: a new figure

        Returns
        -------
        The axes; of several the left or the upper one (all: its ``figure.axes``).

        Raises NameNotFoundError where no quantity, joint or frame has this name, ValueError for panels and one `ax` to be drawn into, ModelError for "a", "tau" or "reactions" of a motion of which it is unknown what acts,
        and for "contacts" of one without rigid contact.
        """
        from ..figures import figures as pictures

        return pictures.figure(self, quantities, ax)

    def plot_phase(self, joint: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw velocities over coordinates of joints, each path from a dot on. Needs matplotlib.

        Parameters
        ----------
        joint : a name, or several of one unit; default: those that have motors, or all in the tree
        ax : where to draw; default: a new figure

        Raises NameNotFoundError for a joint that there is not, ValueError for several units, ModelError for a joint whose velocities
        are no rates of coordinates.
        """
        from ..figures import figures as pictures

        return pictures.phase(self, joint, ax)

    def animate(
        self, path: str | os.PathLike[str] | None = None, *, speed: float = 1.0, frames_per_second: float = 30.0,
        trace: str | Sequence[str] = (), forces: str | Sequence[str] = (), labels: bool = False,
    ) -> FuncAnimation:  # fmt: skip
        """Film of the motion; a notebook shows it as a player that can be turned. Needs matplotlib.

        Parameters
        ----------
        path : where it goes: .gif, .mp4 (needs the program ffmpeg), or .html, a page of its own that needs no network
        speed : 2.0 shows it twice as fast
        frames_per_second : of the film; at most 50 of a .gif
        trace : names of frames whose origins leave a trace
        forces : names of joints and rods: an arrow for the force on the child; of frames that :attr:`wrenches` loads, for the load's; and
            "contacts", for that of each pair in rigid contact on its first shape. The largest is 0.4 times the mechanism's size
        labels : whether bodies and rods have their names beside them

        Raises ValueError where the name ends otherwise, or there is nothing to show; FileNotFoundError without ffmpeg for an .mp4.
        """
        from ..figures import figures as pictures

        return pictures.film(self, path, speed, frames_per_second, trace, forces, checked_truth("labels", labels))


def _places(on_planes: Any) -> tuple[PlaneContact, ...]:
    if on_planes == ():
        return ()
    from .histories import PlaneContact

    if not isinstance(on_planes, Sequence) or not all(isinstance(one, PlaneContact) for one in on_planes):
        raise TypeError(f"on_planes must be a sequence of PlaneContact, as a run has it; got {on_planes!r}")
    return tuple(on_planes)


def _wrenches(robot: Mechanism, wrenches: Any, t: Array) -> dict[str, Array]:
    """Frame name to (n, 6)."""
    check_mapping("wrenches", wrenches, "frame names to [moment; force]", 0, optional=True)
    rows = {}
    for name, wrench in (wrenches or {}).items():
        robot.pose(robot.neutral(), name)  # says what is no frame
        x = real_array(f"wrenches['{name}']", wrench)
        if x.shape not in ((6,), (len(t), 6)):
            raise ShapeError(f"wrenches['{name}'] must be (6,) or ({len(t)}, 6), a row a time; got {x.shape}")
        if not np.isfinite(x).all():
            raise StateError(f"wrenches['{name}'] must be finite")
        rows[name] = _kept(np.broadcast_to(x, (len(t), 6)))
    return rows


def _evaluated_laws(wrenches: Any, t: ArrayLike) -> Any:
    """Those that are six numbers and laws, as (n, 6)."""
    if not isinstance(wrenches, Mapping):
        return wrenches
    times, rows = real_array("t", t), dict(wrenches)
    for name, wrench in rows.items():
        if isinstance(wrench, (list, tuple)) and any(isinstance(x, Law) for x in wrench):
            columns = [x(times) if isinstance(x, Law) else np.full(len(times), x) for x in wrench]
            rows[name] = np.stack(columns, axis=-1)
    return rows


def _turning_springs(robot: Mechanism, name: str) -> list[int]:
    """Coordinates of a joint on which a spring acts that counts turns which no pose tells."""
    joint = robot.joint(name).type
    sprung = [] if joint.quaternion else np.flatnonzero(joint.stiffness).tolist()
    if not sprung:
        return []
    from ..control.coordinates import loses_turns

    return [k for k in sprung if loses_turns(robot, name, k)]


def _kept(values: ArrayLike) -> Array:
    """A copy that does not change."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy
