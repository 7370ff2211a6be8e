"""Trajectory of a mechanism: samples of a motion, and quantities computed from them.

A trajectory stores samples only. Energies, accelerations, reactions and other quantities are functions of t, q and v, and are computed at first
access. Interpolation is in :mod:`~sarrus.control.path`, files are in :mod:`~sarrus.simulation.storage`, figures and films
in :mod:`~sarrus.figures.figures`.
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
from ..description.joints import SPRINGS
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
    """Sampled motion, from :func:`~sarrus.simulate`, or from a prescribed or measured motion by :meth:`from_motion`.

    A trajectory is immutable, and its arrays are read-only. Derived quantities are computed at first access, for all samples at once, and
    cached. If a trajectory has only samples of t, q and v, its applied forces are unknown, and `tau`, `a` and `reactions` raise ModelError.

    Parameters
    ----------
    mechanism : the moving mechanism
    t : (n,) times of the samples [s], finite and not decreasing
    q, v : (n, nq), (n, nv) configuration and velocity [rad, m; rad/s, m/s]
    internal_state : (n, nz) internal states of force elements (integrals of controllers, bristles of friction), followed by the current values of
        :class:`~sarrus.control.SampleAndHold` and of tables, and by `loop_q` [unit of each state]
    loop_q : (n, k) coordinates of all loop joints in their order [rad, m], with full revolutions as the simulation counted them. A simulation counts
        them if a force or a limit of the joint requires it; None if they were not counted
    efforts : (n, nv) generalised forces of force elements and functions [N m, N], zeros if there are none; or the function (t, q, v, z) -> (n, nv)
        that computes them; None if they are unknown
    a : (n, nv) generalised acceleration [rad/s^2, m/s^2]; default: from forward dynamics with the efforts
    friction : (n, nv + velocities of loop joints) forces of dry friction as a simulation computed them [N m, N], including static friction; or the
        function (t, q, v, z) that computes them. None: Coulomb friction against each velocity, zero at rest
    wrenches : frame name to wrenches (n, 6) or (6,) [moment; force] on the mechanism, in that frame's axes at its origin, in addition to
        the efforts [N m, N]
    pushes : wrenches of force elements and functions, like `wrenches`, but included in the efforts; or the function (t, q, v, z) that computes them [N m, N]
    statistics : cost and errors of the simulation:

        - "method", "dt", "steps", "rejected", "evaluations", "seconds". If the default steps were divided, dt [s] is a fraction of the time between
          samples
        - "beyond_tolerance": number of steps of "dopri5" whose error exceeds the tolerance because of rounding near a singular position
        - "limits": violated limits of joints, a list of dicts (joint, index, quantity, lower, upper, time, reached); efforts before
          saturation
        - "stiffness": the largest |lambda| dt, for eigenvalues lambda of small motions under the applied forces
        - "work", "work_known_to": work of controllers, loads, dampers, friction, contacts, prescribed motions and impulses of locks, and a bound
          of its error [J]. It covers the whole duration, also if the samples at `times` do not
        - "switches": changes of clutches, locks and welds, a list of dicts: "time" [s], "name", "change" ("slips", "locks" or "releases"), "impulse" by
          which it engaged (a row of a joint [N m s, N s], or [moment; force] on the child of a weld) and "energy_lost" by this impulse [J]
        - "contact": largest errors of all steps with rigid contact. "kinematics" (J v - c of the loops) and "positions" after the step
          [rad/s, m/s; rad, m], "penetration" [m], "momentum" (relative residual of the equations of motion). Violation of the friction-cone
          conditions: "primal" [N s], "dual" [m/s], "complementarity" [J] and "natural_map" [m/s]. "work" of contacts in a step [J], positive if the
          motion gains energy. "as_touching": number of steps in which points at a small distance had to be treated as touching

    status : "finished", "terminated: <event>", "interrupted", "diverged"; "prescribed" from :meth:`from_motion`; "unknown" from a .csv
    events : name of an event -> (k,) times [s]
    checkpoint : state from which :func:`~sarrus.simulate` can resume
    touching : layout of the contacts of shapes in `internal_state`: first index, number of points, states of each point; used by `contacts`
    on_planes : every :class:`~sarrus.control.RigidContact`, with the indices of its states in `internal_state`
    sensitivities : :class:`~sarrus.results.Sensitivities` (n, ...) of the samples with respect to the initial state and parameters of force elements;
        None unless :func:`~sarrus.simulate` was called with sensitivities=. They are not saved to files

    Raises ShapeError, ValueError or TypeError for arrays that do not fit the mechanism or one another, for invalid times, and for
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
    _given_pushes: Callable[[Array, Array, Array, Array], dict[str, Array]] | dict[str, Array]
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
        self, mechanism: Mechanism, t: ArrayLike, q: ArrayLike, v: ArrayLike, *, internal_state: ArrayLike | None = None,
        loop_q: ArrayLike | None = None, efforts: Efforts | ArrayLike | None = None, a: ArrayLike | None = None,
        friction: Efforts | ArrayLike | None = None, wrenches: Mapping[str, ArrayLike] | None = None,
        statistics: Mapping[str, Any] | None = None, status: str = "finished", events: Mapping[str, ArrayLike] | None = None,
        checkpoint: dict[str, Any] | None = None, touching: tuple[int, int, int] | None = None, on_planes: Sequence[PlaneContact] = (),
        pushes: Callable[[Array, Array, Array, Array], dict[str, Array]] | Mapping[str, ArrayLike] | None = None,
    ) -> None:  # fmt: skip
        times = _kept(real_array("t", t))
        if times.ndim != 1:
            raise ShapeError(f"t must be (n,); got {times.shape}")
        if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
            raise ValueError("t must be finite times that do not decrease")
        check_mapping("events", events, "names to times", 0, optional=True)
        check_mapping("statistics", statistics, "names to values", 0, optional=True)
        nq, nv, n = checked_mechanism(mechanism).nq, mechanism.nv, len(times)
        closing = sum(joint.type.nq for joint in mechanism._closing_joints)

        def rows(name: str, values: Any, wide: int | str) -> Any:
            if (values is None and name not in "qv") or (name in ("efforts", "friction") and callable(values)):
                return values
            x = _kept(real_array(name, values))
            if x.ndim != 2 or len(x) != n or wide not in (x.shape[1], "m"):
                raise ShapeError(f"{name} must be ({n}, {wide}), a row for each time; got {x.shape}")
            return x

        # by __dict__, because Trajectory.__setattr__ raises an error
        self.__dict__.update(
            mechanism=mechanism, t=times, q=rows("q", q, nq), v=rows("v", v, nv), loop_q=rows("loop_q", loop_q, closing),
            internal_state=rows("internal_state", internal_state, "m"), efforts=rows("efforts", efforts, nv), _given_a=rows("a", a, nv),
            _given_friction=rows("friction", friction, mechanism._all_nv), wrenches=_wrenches(mechanism, wrenches, times),
            statistics=dict(statistics or {}), status=status, checkpoint=checkpoint, touching=touching, on_planes=_checked_contacts(on_planes),
            events={name: _kept(real_array(f"times of event '{name}'", at)) for name, at in (events or {}).items()},
            _given_pushes=pushes if callable(pushes) else _wrenches(mechanism, pushes, times),
        )  # fmt: skip

    @classmethod
    def from_motion(
        cls, mechanism: Mechanism, t: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, actuated: Sequence[str] | None = None,
        wrenches: Mapping[str, ArrayLike | Sequence[float | Law]] | None = None,
    ) -> Trajectory:  # fmt: skip
        """Return the trajectory of a planned or measured motion, with the generalised forces that it requires.

        Without loops, these are the forces of all joints, from inverse dynamics of the tree. With loops, they are the motor efforts of least norm,
        from :meth:`Mechanism.actuator_efforts`.

        Parameters
        ----------
        t : (n,) times of the samples [s], not decreasing
        q, v, a : (n, nq), (n, nv), (n, nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]; consistent with the loops
        actuated : names of the joints with motors in a mechanism with loops; default: the actuated joints of its description
        wrenches : loads during the motion, such as digging, gas or cutting forces. Frame name to [moment; force] on the mechanism, in that
            frame's axes at its origin: (n, 6), (6,), or a list of six numbers or functions of time [N m, N]. `tau`, `reactions` and
            :meth:`joint_wrenches` include them

        Raises NotRealizableError if the motors cannot realise the motion, StateError if it violates the loops or a state is invalid.

        Examples
        --------
        A pendulum at constant speed:

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
            raise ModelError(f"actuated: '{mechanism.name}' has no loops, so all joints are driven; omit actuated=")
        plan = cls(mechanism, t, q, v, a=a, wrenches=_evaluated_laws(wrenches, t), status="prescribed")

        def required_efforts(k: int | slice, **options: Any) -> Any:
            motion = plan.q[k], plan.v[k], plan.a[k]
            options["wrenches"] = {name: f[k] for name, f in plan.wrenches.items()}
            if not mechanism.nc:
                return mechanism.inverse_dynamics(*motion, **options)
            # exact=True, because a planned motion must be consistent with the loops
            options |= {"actuated": actuated, "time": plan.t[k], "exact": True}
            return mechanism.actuator_efforts(*motion, **options)

        tau, status = required_efforts(slice(None), return_status=True)
        for k in np.flatnonzero(status)[:1]:
            try:
                required_efforts(int(k))
            except (StateError, NotRealizableError) as error:
                raise type(error)(f"sample {k} at t = {plan.t[k]:.9g} s: {error}") from None
        if mechanism.nc:
            tau = (mechanism.actuation_matrix(plan.q, actuated=actuated) @ tau[..., None])[..., 0]
        return cls(**plan._fields() | {"efforts": tau})

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"a Trajectory is immutable; cannot set or delete '{name}'")

    __delattr__ = __setattr__

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.t)

    def __repr__(self) -> str:
        over = f" over {self.t[-1] - self.t[0]:.6g} s" if len(self) else ""
        method = [str(self.statistics["method"])] if "method" in self.statistics else []
        samples = "1 sample" if len(self) == 1 else f"{len(self)} samples"
        return f"Trajectory of '{self.mechanism.name}': {samples}{over}, {', '.join([*method, self.status])}"

    def _repr_html_(self) -> str:
        from ..figures.figures import trajectory_html

        return trajectory_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Trajectory, **self._fields()), ()

    def _fields(self) -> dict[str, Any]:
        """Return the constructor arguments of the trajectory."""
        names = ["mechanism", "t", "q", "v", "internal_state", "loop_q", "friction", "wrenches"]
        names += ["statistics", "status", "events", "checkpoint", "touching", "on_planes"]
        # store the values of efforts and friction, because the functions that compute them cannot be pickled
        known = {"efforts": self._known_efforts, "a": self._given_a, "pushes": self._pushes}
        return {name: getattr(self, name) for name in names} | known

    # ---- quantities computed from the samples ------------------------------------------------------------------------

    @cached_property
    def tau(self) -> Array:
        """(n, nv) generalised applied force, including contacts, end stops, clutches, locks and saturated motor efforts [N m, N].

        Friction and springs of the mechanism's joints are not included. The force of rigid contact is the mean over the step before the sample.

        Raises ModelError if the applied forces are unknown.
        """
        if self.efforts is None:
            raise ModelError(
                "the applied forces of this Trajectory are unknown, and so are tau, a and reactions: it was made from t, q and v only. "
                "Trajectory.from_motion(mechanism, t, q, v, a) computes the efforts of a motion; efforts=np.zeros_like(v) means no forces"
            )
        return self._evaluated("efforts", self.efforts, self.mechanism.nv)

    @cached_property
    def friction(self) -> Array | None:
        """(n, nv + velocities of loop joints) force of dry friction along each joint, including static friction at rest [N m, N].

        None if it is unknown, because the motion was not simulated or was read from a .csv. Derived quantities then use the friction of forward
        dynamics: Coulomb friction against each velocity, and zero at rest.
        """
        friction = self._given_friction
        return None if friction is None else self._evaluated("friction", friction, self.mechanism._all_nv)

    @cached_property
    def contacts(self) -> ContactForces:
        """:class:`~sarrus.results.ContactForces` of shapes, and of points on planes.

        Raises ModelError without rigid contact: shapes and :class:`~sarrus.control.RigidContact` require ``method="contact"``.
        """
        if self._contacts is None:
            raise ModelError("this Trajectory has no rigid contact, which requires method='contact'")
        return self._contacts

    @cached_property
    def _contacts(self) -> ContactForces | None:
        if self.internal_state is None or not (self.touching or self.on_planes):
            return None
        from .histories import ContactForces

        return ContactForces.of(self.mechanism, self.q, self.internal_state, self.touching, self.on_planes)

    @cached_property
    def _pressed(self) -> dict[str, tuple[Array, Array]]:
        """Contact point of each pair in rigid contact [m], and the force on its first body [N], in the world: name -> (n, 3), (n, 3)."""
        return {} if self._contacts is None else self._contacts.by_pair(len(self))

    @cached_property
    def _pushes(self) -> dict[str, Array]:
        """Wrenches of force elements and functions on frames: name -> (n, 6) [N m, N]."""
        given = self._given_pushes
        if not callable(given):
            return given
        z = np.empty((len(self), 0)) if self.internal_state is None else self.internal_state
        return {name: _kept(wrench) for name, wrench in given(self.t, self.q, self.v, z).items()}

    @cached_property
    def _pushed(self) -> dict[str, Array]:
        """Wrenches that the efforts include, with those of rigid contact: name of the frame or body -> (n, 6) [N m, N]."""
        contact = {} if self._contacts is None else self._contacts.wrenches(self.mechanism, self.q)
        return summed(self._pushes, contact)

    @cached_property
    def _loads(self) -> dict[str, Array]:
        """Sum of `wrenches` and the wrenches that the efforts include: name of the frame or body -> (n, 6) [N m, N]."""
        return summed(self.wrenches, self._pushed)

    def _evaluated(self, name: str, values: Efforts | Array, wide: int) -> Array:
        """Return the forces (n, wide) of an argument, evaluated if it is a function."""
        if not callable(values):
            return values
        z = np.empty((len(self), 0)) if self.internal_state is None else self.internal_state
        forces = _kept(values(self.t, self.q, self.v, z)) if len(self) else _kept(np.empty((0, wide)))
        if forces.shape != (len(self), wide):
            raise ShapeError(f"{name} returned shape {forces.shape}; it must return {(len(self), wide)}")
        return forces

    @cached_property
    def _acting(self) -> tuple[Mechanism, Array]:
        """Mechanism, and generalised force (n, nv) on it in addition to `_loads`.

        If the simulation computed static friction or springs with counted revolutions, the mechanism is a copy without friction and springs, and the
        generalised force includes them.
        """
        tau = self.tau
        for name, wrench in self._pushed.items():
            tau = tau - np.einsum("nij,ni->nj", self.mechanism.jacobian(self.q, name), wrench)
        if self._passive is None:
            return self.mechanism, tau
        from ..analysis.actuation import along_tree

        return self._without_passive, tau + along_tree(self.mechanism, self.q, self._passive, self.t)

    @cached_property
    def _passive(self) -> Array | None:
        """(n, nv + velocities of loop joints) forces of dry friction and of springs with counted revolutions; None if there are neither."""
        forces = [x for x in (self.friction, self._springs and self._springs[0]) if x is not None]
        return np.sum(forces, axis=0) if forces else None

    @cached_property
    def _springs(self) -> tuple[Array, Array] | None:
        """Forces (n, nv + velocities of loop joints) and energy (n,) of springs with counted revolutions; None without such springs."""
        mechanism, force, energy = self.mechanism, np.zeros((len(self), self.mechanism._all_nv)), np.zeros(len(self))
        if self.loop_q is None:
            return None
        for joint in mechanism._closing_joints:
            for k in _turning_springs(mechanism, joint.name):
                off = self.loop_q[:, joint._all_q.start - mechanism.nq + k] - joint.type.rest[k]
                for power, name in enumerate(SPRINGS, start=1):
                    stiffness = getattr(joint.type, name)[k]
                    force[:, joint._all_v.start + k] -= stiffness * off**power
                    energy += stiffness / (power + 1) * off ** (power + 1)
        return (force, energy) if energy.any() else None

    @cached_property
    def _without_passive(self) -> Mechanism:
        mechanism, joints = self.mechanism, []
        for spec in mechanism.description.joints:
            changes: dict[str, Any] = {} if self.friction is None else {"friction": 0.0}
            springs = [] if self._springs is None else _turning_springs(mechanism, spec.name)
            for name in (*SPRINGS, "rest") if springs else ():
                changes[name] = np.array(getattr(spec.joint, name))
                changes[name][springs] = 0.0
            joints.append(replace(spec, joint=replace(spec.joint, **changes)))
        return Mechanism(replace(mechanism.description, joints=tuple(joints)))

    @property
    def _known_efforts(self) -> Array | None:
        return None if self.efforts is None else self.tau

    @cached_property
    def a(self) -> Array:
        """(n, nv) generalised acceleration [rad/s2, m/s2]; NaN in states in which forward dynamics has no result.

        Raises ModelError if the applied forces are unknown.
        """
        if self._given_a is not None:
            return self._given_a
        # check=False, because a simulation may violate the loop constraints by more than forward_dynamics accepts; loop_error has the violation
        mechanism, tau = self._acting
        return _kept(mechanism.forward_dynamics(self.q, self.v, tau, wrenches=self._loads, time=self.t, check=False))

    @cached_property
    def reactions(self) -> LoopReactions:
        """Reactions of the loop constraints; empty without loops. For the wrenches of all joints, see :meth:`joint_wrenches`.

        Forces on bodies (contact, force elements, wrenches) act at their points of application.

        Raises ModelError if the applied forces are unknown.
        """
        carried: LoopReactions
        state: Any = {"time": self.t, "check": False, "wrenches": self._loads}
        mechanism, tau = self._acting
        _, carried = mechanism.forward_dynamics(self.q, self.v, tau, return_reactions=True, **state)
        if self._passive is not None and self.mechanism.constraints:
            # forces along loop joints change the least-norm distribution of reactions
            if np.any(along := self._passive[:, mechanism.nv :]):
                options: Any = {"wrenches": self.wrenches, "time": self.t}
                shared = least_reactions(mechanism, self.q, self.v, self.a, carried.multipliers, along, **options)
                off = shared - carried.multipliers
                change, _ = mechanism._loop_wrenches(self.q, off, time=self.t, return_status=True)
                by_name = {name: carried.wrenches[name] + change[:, k] for k, name in enumerate(mechanism.constraints)}
                carried = replace(carried, multipliers=shared, wrenches=by_name)
            from ..analysis.actuation import by_friction

            for name, wrench in by_friction(self.mechanism, self.q, self._passive, self.t).items():
                carried.wrenches[name] = carried.wrenches[name] + wrench
        for x in (carried.multipliers, carried.residual, *carried.wrenches.values()):
            x.setflags(write=False)
        return carried

    def joint_wrenches(
        self, *, actuated: Sequence[str] | None = None, compliance: Mapping[str, ArrayLike] | None = None
    ) -> JointWrenchHistory:
        """Return the wrench of every joint along the motion, and the efforts of motors and prescribed motions; ``print`` displays a table.

        Parameters
        ----------
        actuated : names of the joints with motors; default: the actuated joints of the description, and tree joints with an effort
        compliance : compliance of joints, which determines wrenches that are indeterminate for rigid bodies, as in
            :meth:`Mechanism.joint_wrenches`

        Forces of elements such as :class:`~sarrus.control.Bushing`, and wrenches that functions return, act on the bodies of their frames.

        Raises the errors of :meth:`Mechanism.joint_wrenches`, and ModelError if the applied forces are unknown.

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
        from ..analysis.actuation import joint_wrenches_with
        from .histories import JointWrenchHistory

        mechanism = self.mechanism
        options: dict[str, Any] = {"wrenches": self._loads}
        options["compliance"] = None if compliance is None else compliance_roots(mechanism, compliance)
        if mechanism.constraints:  # also for free loop joints, which have no constraint rows
            carried = self.reactions.multipliers if mechanism.nc else np.zeros((len(self), 0))
            options |= {"multipliers": carried, "actuated": actuated, "time": self.t}
        if self._passive is not None:
            options["friction"], mechanism = self._passive, self._without_passive
        return JointWrenchHistory(joint_wrenches_with(mechanism, self.q, self.v, self.a, **options), self.t)

    @cached_property
    def _joint_wrenches(self) -> JointWrenchHistory:
        return self.joint_wrenches(actuated=self._driven)

    @property
    def _driven(self) -> tuple[str, ...]:
        mechanism = self.mechanism
        tau, rounding = self.tau, 0.0
        if self._pushed:  # zeros up to the rounding of contact forces
            tau, rounding = self._acting[1], 1e-9 * float(np.abs(self.tau).max(initial=0.0))
        driven = [name for name in mechanism.joints if np.any(np.abs(tau[:, mechanism.joint(name).v_slice]) > rounding)]
        if not {mechanism.joint(name).closes_loop for name in mechanism.actuated} <= {False}:
            # empty with loop joints, because the effort of a motor in a loop joint appears in many entries of tau
            driven = []
        return tuple(dict.fromkeys((*mechanism.actuated, *driven)))

    @cached_property
    def kinetic_energy(self) -> Array:
        """(n,) kinetic energy [J]."""
        return _kept(self.mechanism.kinetic_energy(self.q, self.v))

    @cached_property
    def potential_energy(self) -> Array:
        """(n,) potential energy of gravity and springs, with counted revolutions of loop joints [J]."""
        if self._springs is None:
            return _kept(self.mechanism.potential_energy(self.q))
        return _kept(self._without_passive.potential_energy(self.q) + self._springs[1])

    @cached_property
    def energy(self) -> Array:
        """(n,) sum of kinetic and potential energy [J], without energy stored in contacts, end stops and controllers."""
        return _kept(self.kinetic_energy + self.potential_energy)

    @cached_property
    def momentum(self) -> Array:
        """(n, 6) momentum [angular, about the world's origin; linear] in world axes [kg m2/s, kg m/s]."""
        return _kept(self.mechanism.momentum(self.q, self.v))

    @cached_property
    def loop_error(self) -> Array:
        """(n,) constraint violation: the largest absolute row of :meth:`Mechanism.constraint_residual` [rad, m]; zero without loops."""
        if not self.mechanism.nc:
            return _kept(np.zeros(len(self)))
        return _kept(np.abs(self.mechanism.constraint_residual(self.q, time=self.t)).max(axis=-1))

    def joint(self, name: str) -> Array:
        """Return the coordinates (n, nq of the joint) of a joint [rad, m, quaternions (x, y, z, w)].

        Angles of a loop joint include the full revolutions that the simulation counted. If it did not count them, they are reconstructed from the
        joint's velocities at the samples.

        Parameters
        ----------
        name : name of a tree joint or loop joint
        """
        joint = self.mechanism.joint(name)
        if not joint.closes_loop:
            return self.q[:, joint.q_slice]
        if self.loop_q is not None:
            return self.loop_q[:, joint._all_q.start - self.mechanism.nq : joint._all_q.stop - self.mechanism.nq]
        x = self.mechanism.joint_states(self.q, time=self.t).q[name]
        v = self.mechanism.joint_states(self.q, self.v, time=self.t).v[name]
        from ..control.elements import loses_turns

        for k in (k for k in range(joint.type.nv) if loses_turns(self.mechanism, name, k)):
            # the samples contain rotations only up to whole turns; this estimate of the rotation between two samples may exceed half a revolution
            angle = 0.5 * (v[1:, k] + v[:-1, k]) * np.diff(self.t)
            x[1:, k] -= 2.0 * np.pi * np.cumsum(np.round((np.diff(x[:, k]) - angle) / (2.0 * np.pi)))
        return _kept(x)

    def frame(self, name: str) -> Array:
        """Return the poses (n, 4, 4) of a frame or body in the world.

        Parameters
        ----------
        name : name of the frame or body
        """
        return self.mechanism.pose(self.q, name)

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Return configurations q (..., nq) and velocities v (..., nv) at times between the first sample and the last.

        The interpolant is the cubic Hermite polynomial, for rotations on their manifold. It equals the samples at their times. Between samples its
        error, and its violation of the loop constraints, is O(dt^4). Between two samples a body should rotate by less than half a revolution.

        Parameters
        ----------
        t : (...) times [s]

        Raises ValueError for a time outside the trajectory.
        """
        t = real_array("t", t)
        inside = (t >= self.t[0]) & (t <= self.t[-1]) if len(self) else np.zeros(t.shape, dtype=bool)
        if not inside.all():
            interval = f"{self.t[0]:.9g} s to {self.t[-1]:.9g} s" if len(self) else "an empty trajectory"
            raise ValueError(f"t = {t[~inside].flat[0]:.9g} s is out of range; expected {interval}")
        k = np.searchsorted(self.t, t, side="right") - 1
        q, v = self.q.take(k, axis=0), self.v.take(k, axis=0)
        between = t != self.t[k]
        if between.any():
            from ..control.path import between as interpolated

            k = k[between]
            q[between], v[between] = interpolated(self.mechanism, self.t, self.q, self.v, t[between], k)
        return q, v

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, frames: str | Sequence[str] = ()) -> None:
        """Write all data to an .npz file, or the table of :meth:`to_dataframe` to a .csv file.

        The .npz includes the mechanism, pickled. The .csv has all digits of its values (an older pandas reads the last digit correctly
        only with ``float_precision="round_trip"``).

        Parameters
        ----------
        path : file name that ends in .npz or .csv
        frames : names of frames whose origins are columns of a .csv

        Raises ValueError for another ending, or for `frames` with an .npz, which has no table. ModelError if the mechanism contains a
        function that cannot be pickled. NameNotFoundError for an unknown frame.
        """
        from . import storage

        path = checked_path(path)
        if storage.suffix(path) == ".npz":
            if len(checked_names("frames", frames)):
                raise ValueError(
                    "frames= selects columns of a .csv; omit it for an .npz, whose data determine the motion of all frames"
                )
            storage.write_npz(path, self._fields())
            return
        heads, parts = self._table(frames)
        starts = range(0, len(self), 65536)  # in blocks, because Python's floats take several times the memory
        blocks = (np.column_stack([x[first : first + 65536] for x in parts]) for first in starts)
        storage.write_csv(path, heads, blocks)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | None = None) -> Trajectory:
        """Read a file that :meth:`save` wrote.

        Without ``mechanism=`` an .npz is **unpickled**, and a pickle can run any program: load only files from people whom you trust.
        With ``mechanism=`` nothing is unpickled, and the checkpoint is omitted. A .csv contains no mechanism, status, events or statistics.

        Parameters
        ----------
        path : file name that ends in .npz or .csv
        mechanism : the trajectory's mechanism; required for a .csv

        Raises OSError if the file does not exist, ValueError if sarrus did not write it, or if it belongs to another mechanism. For a .csv, another
        mechanism is detected only by its columns and its energy.
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
                # loop_q is None, because a table has no counted revolutions
                return cls(**fields | {"loop_q": None})._with_energy(energy)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error
        raise TypeError("a .csv does not contain the mechanism; pass it: Trajectory.load(path, mechanism=...)")

    def _with_energy(self, energy: Array) -> Trajectory:
        """Return the trajectory itself; raise ValueError if its energy differs from the energy (n,) of a table."""
        with np.errstate(invalid="ignore"):  # for samples that diverged
            size = np.abs(self.kinetic_energy) + np.abs(self.potential_energy)
            largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
            swing = self.mechanism.mass * self.mechanism._length * float(np.linalg.norm(self.mechanism.gravity))
            off = np.abs(self.energy - energy) > 1e-6 * size + 1e-9 * (largest + swing)
        for k in np.flatnonzero(off)[:1]:
            fault = f"at t = {self.t[k]:.9g} s the file has the energy {energy[k]:.9g} J, but this mechanism has {self.energy[k]:.9g} J"
            raise ValueError(f"the file belongs to a mechanism other than '{self.mechanism.name}': {fault}")
        return self

    def to_dataframe(self, *, frames: str | Sequence[str] = ()) -> pandas.DataFrame:
        """Return a table with a row for each sample. Needs pandas.

        Column names end in units: ``t [s]``, ``q:motor [rad]``, ``v:slider [m/s]``. The columns are, in this order:

        - t
        - q and v of tree joints; tau if it is known; a if it was an argument
        - energy and loop_error
        - q and v of loop joints, with full revolutions
        - loads of :attr:`wrenches`, ``wrench:teeth:0 [N m]`` to ``wrench:teeth:5 [N]`` for a frame "teeth"
        - origins of `frames`, ``x:tip [m]`` and so on
        - the force of each pair in rigid contact on its first shape, in the world, ``contact:ball-floor:x [N]`` to
          ``contact:ball-floor:z [N]``; for the force at each point, see :attr:`contacts`

        Joints with several coordinates have a column for each coordinate, ``q:joint:0 [rad]`` and so on.

        Parameters
        ----------
        frames : names of frames or bodies whose origins in the world are columns

        Raises NameNotFoundError for an unknown frame.
        """
        from .._files import needed

        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        heads, parts = self._table(frames)
        for name, (_, force) in self._pressed.items():
            heads += [f"contact:{name}:{axis} [N]" for axis in "xyz"]
            parts.append(force)
        return pandas.DataFrame(np.column_stack(parts), columns=heads)

    def _table(self, frames: str | Sequence[str]) -> tuple[list[str], list[Array]]:
        """Return the column names of the table, and its columns, as arrays (n,) or (n, k)."""
        from . import storage

        mechanism, names = self.mechanism, checked_names("frames", frames)
        efforts, loops = self._known_efforts, mechanism.loop_joints
        heads = storage.columns(mechanism, efforts is not None, self._given_a is not None, self.wrenches, names)
        parts = [self.t, self.q, self.v, efforts, self._given_a, self.energy, self.loop_error]
        rates = mechanism.joint_states(self.q, self.v, time=self.t).v if loops else {}
        parts += [*(self.joint(name) for name in loops), *(rates[name] for name in loops), *self.wrenches.values()]
        return heads, [x for x in [*parts, *(self.frame(name)[:, :3, 3] for name in names)] if x is not None]

    # ---- pictures ----------------------------------------------------------------------------------------------------

    @renamed_arguments(what="quantities")
    def plot(self, quantities: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Plot quantities against time. Needs matplotlib.

        Up to five lines are black with different dashes; more lines have colours. If the quantities have two units, with up to three lines each, the
        lines of the second unit are blue and have their axis on the right. More lines or units are drawn in panels, one below the other.

        Parameters
        ----------
        quantities : one or several of the following names. Default: "q"; for more than twelve coordinates, those of the joints with motors

            - "q", "v", "a", "tau" : coordinates, velocities, accelerations, applied forces of all joints
            - "efforts" : efforts of motors and prescribed motions
            - "energy", "loop_error", "momentum"
            - "reactions" : magnitude of the force in every loop joint and constraint, or in every joint without loops
            - "joint_wrenches" : magnitude of the force in every joint, including motor efforts
            - "contacts" : magnitude of the force of every pair in rigid contact
            - name of a joint : its coordinates
            - name of a frame : its position

        ax : axes of matplotlib, for quantities that need no panels; default: a new figure

        Returns
        -------
        The axes; if there are several, the left or the upper axes (all are in its ``figure.axes``).

        Raises NameNotFoundError if no quantity, joint or frame has this name, ValueError for `ax` with several panels. ModelError for "a",
        "tau" or "reactions" if the applied forces are unknown, and for "contacts" without rigid contact.
        """
        from ..figures import figures as pictures

        return pictures.figure(self, quantities, ax)

    def plot_phase(self, joint: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Plot velocities of joints over their coordinates, with a dot at the initial state. Needs matplotlib.

        Parameters
        ----------
        joint : name of a joint, or names of joints with the same unit; default: joints with motors, or all tree joints if there are none
        ax : axes of matplotlib; default: a new figure

        Raises NameNotFoundError for an unknown joint, ValueError for several units, ModelError for a joint whose velocities
        are not rates of its coordinates.
        """
        from ..figures import figures as pictures

        return pictures.phase(self, joint, ax)

    def animate(
        self, path: str | os.PathLike[str] | None = None, *, speed: float = 1.0, frames_per_second: float = 30.0,
        trace: str | Sequence[str] = (), forces: str | Sequence[str] = (), labels: bool = False,
    ) -> FuncAnimation:  # fmt: skip
        """Return an animation of the motion; a notebook displays it as a player with an adjustable view. Needs matplotlib.

        Parameters
        ----------
        path : file to write: .gif, .mp4 (needs the program ffmpeg), or .html, a self-contained page
        speed : playback speed relative to the motion (dimensionless); 2.0 is twice as fast
        frames_per_second : frame rate of the film [1/s]; at most 50 for a .gif
        trace : names of frames whose origins leave a trace
        forces : forces that are drawn as arrows. Names of joints and rods: the force on the child; names of frames in :attr:`wrenches`: the force of
            the load; "contacts": the force of each pair in rigid contact on its first shape. The longest arrow is 0.4 times the mechanism's size
        labels : True displays the names of bodies and rods

        Raises ValueError for another ending, or if no sample is finite; FileNotFoundError without ffmpeg for an .mp4.
        """
        from ..figures import figures as pictures

        return pictures.film(self, path, speed, frames_per_second, trace, forces, checked_truth("labels", labels))


def _checked_contacts(on_planes: Any) -> tuple[PlaneContact, ...]:
    if on_planes == ():
        return ()
    from .histories import PlaneContact

    if not isinstance(on_planes, Sequence) or not all(isinstance(x, PlaneContact) for x in on_planes):
        raise TypeError(f"on_planes must be a sequence of PlaneContact; got {on_planes!r}")
    return tuple(on_planes)


def _wrenches(mechanism: Mechanism, wrenches: Any, t: Array) -> dict[str, Array]:
    """Return checked wrenches (n, 6) by frame name."""
    check_mapping("wrenches", wrenches, "frame names to [moment; force]", 0, optional=True)
    rows = {}
    for name, wrench in dict(wrenches or {}).items():
        mechanism.pose(mechanism.neutral(), name)  # raises NameNotFoundError for an unknown frame
        x = real_array(f"wrenches['{name}']", wrench)
        if x.shape not in ((6,), (len(t), 6)):
            raise ShapeError(f"wrenches['{name}'] must be (6,) or ({len(t)}, 6), a row for each time; got {x.shape}")
        if not np.isfinite(x).all():
            raise StateError(f"wrenches['{name}'] must be finite")
        rows[name] = _kept(np.broadcast_to(x, (len(t), 6)))
    return rows


def _evaluated_laws(wrenches: Any, t: ArrayLike) -> Any:
    """Return the wrenches, with sequences of six numbers and laws evaluated to (n, 6)."""
    if not isinstance(wrenches, Mapping):
        return wrenches
    times, rows = real_array("t", t), dict(wrenches)
    for name, wrench in rows.items():
        if isinstance(wrench, (list, tuple)) and any(isinstance(x, Law) for x in wrench):
            columns = [x(times) if isinstance(x, Law) else np.full(len(times), x) for x in wrench]
            rows[name] = np.stack(columns, axis=-1)
    return rows


def summed(first: Mapping[str, Array], second: Mapping[str, Array]) -> dict[str, Array]:
    """Return the sums of arrays by name."""
    total = dict(first)
    for name, x in second.items():
        total[name] = total[name] + x if name in total else x
    return total


def _turning_springs(mechanism: Mechanism, name: str) -> list[int]:
    """Return the indices of a joint's coordinates with springs for which full revolutions must be counted, because poses do not determine them."""
    joint = mechanism.joint(name).type
    sprung = (
        [] if joint.quaternion else np.flatnonzero(np.any([getattr(joint, name) for name in SPRINGS], axis=0)).tolist()
    )
    if not sprung:
        return []
    from ..control.elements import loses_turns

    return [k for k in sprung if loses_turns(mechanism, name, k)]


def _kept(values: ArrayLike) -> Array:
    """Return a read-only copy."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy
