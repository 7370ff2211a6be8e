"""Parts of a mechanism, its representation, and functions of a state."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, checked_count
from .._deferred import dataclass
from .._showing import table
from ..description.constraints import ConstraintSpec, CouplerSpec
from ..description.joints import JointType
from ..description.specs import Description, JointSpec
from ..errors import ModelError, ShapeError, check_name, warn_of_model
from .options import ExpressedIn, F, FrameOptions, MotionOptions, StateOptions, Wrenches, keywords_behind

if TYPE_CHECKING:
    from typing import Self, Unpack

N = TypeVar("N", "Joint", "Constraint")


def _operation(declared: F) -> F:
    """Replace a declaration by the core's function of the same name, with the declaration's signature and docstring.

    A call of the C function takes a tenth of the time of a call through a Python function. The body of the declaration is called only for keywords
    that the core does not support.
    """
    function = cast(FunctionType, declared)
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[1 : code.co_argcount]
    plain = len(names) - len(defaults)
    keywords = (function.__kwdefaults__ or {}) | keywords_behind(function)
    shown = ["$" + code.co_varnames[0], *names[:plain]]
    shown += [f"{name}={value!r}" for name, value in zip(names[plain:], defaults, strict=True)]
    shown += ["*"] * bool(keywords) + [f"{name}={value!r}" for name, value in keywords.items()]
    name = function.__name__.removeprefix("_")
    doc = f"{name}({', '.join(shown)})\n--\n\n{function.__doc__ or ''}"
    return cast(F, _core.method(_core.Mechanism, name, doc, declared))


def _undeclared(name: str) -> Callable[..., Array]:
    """Return the core's function of this name, for internal use, with the arguments listed in ``cpp/kernels/operation_list.hpp``."""
    return cast("Callable[..., Array]", _core.method(_core.Mechanism, name, "", lambda: None))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joint:
    """Joint of a mechanism, with the positions of its coordinates in q and v.

    Attributes
    ----------
    name, parent, child : names of the joint and of its two bodies
    type : the joint type, e.g. ``Revolute('z')``
    kind : name of the joint type
    nq, nv : numbers of the joint's coordinates in q and velocities in v; zero for a loop joint. Its degrees of freedom are ``type.nv``
    q_slice, v_slice : slices into q and v, empty for a loop joint
    actuated : True if a motor drives the joint
    closes_loop : True for a loop joint, which is a constraint on the tree, with the rows of :meth:`Mechanism.constraint`
    reversed : True if the joint's child is its predecessor in the spanning tree, that is, nearer to the ground than its parent
    """

    name: str
    type: JointType
    parent: str
    child: str
    actuated: bool
    nq: int
    nv: int
    q_slice: slice
    v_slice: slice
    closes_loop: bool
    reversed: bool
    _body: int  # index of the body that the joint carries in the tree, from 1
    _all_q: slice  # slice into the coordinates of all joints: tree joints, then loop joints
    _all_v: slice

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def kind(self) -> str:
        """Name of the joint's type."""
        return self.type.kind

    @property
    def limits(self) -> tuple[Array, Array] | None:
        """(lower, upper) limits of the coordinates, each (nq,), or None."""
        return cast("tuple[Array, Array] | None", self.type.limits)

    def __repr__(self) -> str:
        return f"<joint '{self.name}': {self.type} from '{self.parent}' to '{self.child}'>"


@dataclass(frozen=True, eq=False, repr=False)
class Constraint:
    """Constraint of a mechanism: a loop joint, or another relation between velocities.

    Attributes
    ----------
    spec : description of the joint or constraint
    rows : slice into the nc constraint rows of the mechanism
    row_names : name of each row
    holonomic : for each row, True if it constrains positions, False if it constrains velocities only
    """

    spec: JointSpec | ConstraintSpec
    rows: slice
    row_names: tuple[str, ...]
    holonomic: tuple[bool, ...]

    @property
    def name(self) -> str:
        """Name of the constraint."""
        return self.spec.name

    @property
    def kind(self) -> str:
        """Name of the joint's type, or Distance, Coupler, PrescribedMotion, Rolling, Pfaffian."""
        return self.spec.kind

    @property
    def bodies(self) -> tuple[str, ...]:
        """(parent, child), or () for a relation between coordinates."""
        return self.spec.bodies

    def __str__(self) -> str:
        return str(self.spec)

    def __repr__(self) -> str:
        return f"<constraint {self.spec}, rows {self.rows.start}:{self.rows.stop}>"

    def _repr_html_(self) -> str:
        kinds = {True: "positions and velocities", False: "velocities"}
        pairs = zip(self.row_names, self.holonomic, strict=True)
        rows = [(name.partition(": ")[2], kinds[holonomic]) for name, holonomic in pairs]
        return table(rows, str(self.spec), ("row", "constrains"))


class StateFunctions(_core.Mechanism):
    """Functions of a state of the spanning tree; :class:`~sarrus.Mechanism` documents their shared options."""

    _substructures: int | None
    _prepared: dict[Any, Any]  # cache of prepared data, by purpose
    _changed: tuple[Description, dict[str, Any]]  # only of a copy: the original description, and the changed parameters

    def __init__(self, description: Description, *, substructures: int | None = None) -> None:
        if "_prepared" in vars(self):  # __init__ may run only once, because the core would keep the first parameters
            raise TypeError("a Mechanism is immutable: make another one instead of calling __init__ again")
        if substructures is not None:
            # largest number of bodies of a substructure; 0: no substructures
            substructures = checked_count("substructures", substructures, 0, most=1000)
        if not isinstance(description, Description):
            raise TypeError(
                f"a Mechanism is made from a Description, such as that of Builder.build(); got {description!r}"
            )
        super().__init__(description, -1 if substructures is None else substructures)
        vars(self).update(_description=description, _substructures=substructures, _prepared={})

    def _copy(self, changes: dict[str, Any]) -> Self:
        """Return a copy with different parameters; its description is created at first access."""
        from .variants import OF_JOINT_TYPES, merged

        copy = type(self).__new__(type(self))
        _core.Mechanism.__init__(copy, self, changes)
        mine, its = vars(self), vars(copy)
        if "_description" in mine:
            its["_changed"] = mine["_description"], changes
        else:
            described, earlier = mine["_changed"]
            its["_changed"] = described, merged(earlier, changes)
        its["_substructures"], its["_prepared"] = mine["_substructures"], {}
        if "_joints" in mine and not changes.keys() & OF_JOINT_TYPES.keys():
            its["_joints"] = mine["_joints"]
        if changes.keys() & OF_JOINT_TYPES.keys() and copy._doubtful:
            for text in _core.doubtful(copy.description.joints):
                if text not in self.warnings:
                    warn_of_model(text)
        return copy

    @property
    def description(self) -> Description:
        """Description of the mechanism as plain data."""
        return self._description

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about entries of the file or description that have no effect, and about doubtful values."""
        return self._warnings

    @cached_property
    def _description(self) -> Description:
        from .variants import replaced

        return replaced(*self._changed)

    @cached_property
    def _warnings(self) -> tuple[str, ...]:
        massless = (
            f"no body has inertia along joint '{name}': forward dynamics has no result" for name in self._massless
        )
        return (*self.description.warnings, *massless, *_core.doubtful(self.description.joints))

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        joints, all_q, all_v = {}, self.nq, self.nv
        for j, (iq, nq, iv, nv, closes, *rest) in zip(self.description.joints, self._placed_joints, strict=True):
            slices = all_slices = slice(iq, iq + nq), slice(iv, iv + nv)
            if closes:
                all_slices = slice(all_q, all_q + j.joint.nq), slice(all_v, all_v + j.joint.nv)
                all_q, all_v = all_slices[0].stop, all_slices[1].stop
            place = nq, nv, *slices, closes, *rest, *all_slices
            joints[j.name] = Joint(j.name, j.joint, j.parent, j.child, j.actuated, *place)
        return joints

    @cached_property
    def _constraints(self) -> dict[str, Constraint]:
        described: list[JointSpec | ConstraintSpec] = [*self.description.joints, *self.description.constraints]
        specs = {spec.name: spec for spec in described}
        return {
            name: Constraint(
                specs[name], slice(row, row + len(rows)), tuple(f"{name}: {r}" for r in rows), tuple(holonomic)
            )
            for name, row, rows, holonomic in self._placed_constraints
        }

    @cached_property
    def _velocity_rows(self) -> dict[str, tuple[str, ...]]:
        """Constraints with rows that constrain velocities only, and the joints that these rows relate; () for rows between bodies."""
        rows = {name: c for name, c in self._constraints.items() if not all(c.holonomic)}
        return {name: c.spec.joints_related if isinstance(c.spec, ConstraintSpec) else () for name, c in rows.items()}

    @cached_property
    def _motors(self) -> dict[str, CouplerSpec]:
        """Motors of transmissions, and the couplers that determine their coordinates."""
        specs = {spec.name: spec for spec in self.description.constraints}
        return {motor: cast(CouplerSpec, specs[name]) for motor, name in _core.motors_of(self.description).items()}

    def _set_motors(self, q: Array, known: Container[str] = (), *, rate: bool = False) -> None:
        """Set the coordinates (..., nq) of motors, except those in `known`, from those of the joints; velocities (..., nv) if `rate`."""
        for motor, coupler in self._motors.items():
            terms = [(self.joint(name), k, c) for name, k, (c, *_) in coupler.terms if name != motor]
            if motor not in known and not any(joint.closes_loop for joint, *_ in terms):
                moved = sum(c * q[..., (joint.v_slice if rate else joint.q_slice).start + k] for joint, k, c in terms)
                at = self.joint(motor).v_slice if rate else self.joint(motor).q_slice
                q[..., at.start] = (0.0 if rate else coupler.offset) - moved

    # ---- parts -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.description.name

    @property
    def gravity(self) -> Array:
        """(3,) acceleration of free fall in world axes [m/s2]."""
        return np.array(self.description.gravity)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the tree joints, in the order in which they were added, which is also the order of q and v."""
        return tuple(name for name, j in self._joints.items() if not j.closes_loop)

    @property
    def loop_joints(self) -> tuple[str, ...]:
        """Names of the loop joints."""
        return tuple(name for name, j in self._joints.items() if j.closes_loop)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Names of the constraints: loop joints, then constraints that are not joints, both in the order in which they were added.

        The rows of :meth:`constraint_jacobian` have this order.
        """
        return tuple(self._constraints)

    def constraint(self, name: str) -> Constraint:
        """Return the constraint with this name; raise NameNotFoundError if there is none.

        Parameters
        ----------
        name : name of a loop joint or another constraint

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.four_bar().constraint("pin2").rows
        slice(0, 5, None)
        """
        return _named("constraint", name, self._constraints)

    @property
    def _row_names(self) -> tuple[str, ...]:
        return tuple(name for c in self._constraints.values() for name in c.row_names)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies without the ground."""
        return tuple(b.name for b in self.description.bodies)

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames: the ground, all bodies, and added frames."""
        return ("ground", *self.bodies, *(f.name for f in self.description.frames))

    @property
    def actuated(self) -> tuple[str, ...]:
        """Names of the actuated joints."""
        return self._actuated

    @cached_property
    def _actuated(self) -> tuple[str, ...]:
        return tuple(name for name, j in self._joints.items() if j.actuated)

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return float(sum(b.inertia.mass for b in self.description.bodies))

    def joint(self, name: str) -> Joint:
        """Return the joint with this name; raise NameNotFoundError if there is none.

        Parameters
        ----------
        name : name of a tree joint or loop joint

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum().joint("pivot").v_slice
        slice(0, 1, None)
        """
        return _named("joint", name, self._joints)

    def _tree_joint(self, name: str, quantity: str = "coordinates in q") -> Joint:
        """Return a tree joint; raise ModelError for a loop joint, which does not have this `quantity`."""
        joint = self.joint(name)
        if joint.closes_loop:
            raise ModelError(f"joint '{name}' closes a loop and has no {quantity}: add it with tree=True")
        return joint

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Mechanism is immutable; cannot set '{name}'")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Mechanism is immutable; cannot delete '{name}'")

    def __reduce__(self) -> tuple[Callable[[Description], Self], tuple[Description]]:
        return partial(type(self), substructures=self._substructures), (self.description,)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateFunctions) and self.description == other.description

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # cached, because hashing a description is slow
        return hash(self.description)

    def __repr__(self) -> str:
        loops = f", {len(self.constraints)} constraints of nc = {self.nc} rows" if self.constraints else ""
        return f"<Mechanism '{self.name}': {len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}{loops}>"

    def __str__(self) -> str:
        children: dict[str, list[tuple[Joint, str]]] = {}
        for j in map(self.joint, self.joints):
            inner, outer = (j.child, j.parent) if j.reversed else (j.parent, j.child)
            children.setdefault(inner, []).append((j, outer))
        lines = [repr(self)[1:-1], "ground"]
        stack = [(j, body, "", k == 0) for k, (j, body) in enumerate(reversed(children.get("ground", [])))]
        while stack:
            joint, body, lead, last = stack.pop()
            lines.append(f"{lead}{'└─' if last else '├─'} {joint.name}: {joint.type} ─ {body}")
            below = lead + ("   " if last else "│  ")
            stack += [(j, b, below, k == 0) for k, (j, b) in enumerate(reversed(children.get(body, [])))]
        lines += [f"loop  {constraint}" for constraint in self._constraints.values()]
        springs = self.description.springs
        lines += [f"spring  {s.name}: {s.stiffness:g} N/m ─ from {s.first[0]} to {s.second[0]}" for s in springs]
        return "\n".join([*lines, *([f"solver  {self._how_solved()}"] if self.nc else [])])

    def _how_solved(self) -> str:
        """Return a description of the solver for the loop equations, joint coordinates or substructures, with its cost.

        In joint coordinates, the mass matrix of a long chain is full, and the rows of a loop around many joints are full, too. With substructures,
        the mechanism is cut at some joints into floating groups of bodies. These joints become constraint rows like loop joints. Both solvers have
        the same result. ``Mechanism(description, substructures=4)`` uses groups of at most four bodies, and ``substructures=0`` joint coordinates.
        Derived mechanisms, with other motors or locked joints, select their own solver.
        """
        joints, pieces, substructures, cuts = self._solver
        if cuts == 0:
            why = f"; substructures would take {pieces:,.0f}" if pieces else ""
            return f"joint coordinates: {joints:,.0f} multiplications per factorisation{why}"
        why = f"{joints:,.0f}" if joints else f"more than {2 * pieces:,.0f}"
        return (
            f"{substructures} substructures, cut at {cuts} joints: {pieces:,.0f} multiplications per factorisation; "
            f"joint coordinates would take {why}"
        )

    # ---- configurations ----------------------------------------------------------------------------------------------

    def neutral(self) -> Array:
        """Return the configuration (nq,) with all coordinates zero and all quaternions the identity.

        >>> import sarrus
        >>> sarrus.mechanisms.pendulum().neutral()
        array([0.])
        """
        q = np.zeros(self.nq)
        for joint in map(self.joint, self.joints):
            if joint.type.quaternion:
                q[joint.q_slice.start + 3] = 1.0
        return q

    def configuration(self, name: str) -> Array:
        """Return the named configuration (nq,), such as a keyframe of a file [rad, m, quaternions (x, y, z, w)].

        Joints that the named configuration omits have neutral coordinates. The loops may be open. The names are in ``description.configurations``.

        Parameters
        ----------
        name : name of the configuration

        Examples
        --------
        >>> import sarrus
        >>> b = sarrus.Builder("pendulum")
        >>> b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
        >>> b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
        >>> b.set_configuration("raised", {"pivot": 3.0})
        >>> robot = b.build()
        >>> robot.configuration("raised")
        array([3.])
        """
        named = dict(self.description.configurations)
        check_name("configuration", name, named)
        return self._at(named[name])

    def _at(self, coordinates: Iterable[tuple[str, ArrayLike]]) -> Array:
        """Return a configuration (nq,) with these coordinates of joints; loop joints are ignored.

        Other motors of transmissions follow their joints, and all other joints are neutral.
        """
        q, by_joint = self.neutral(), dict(coordinates)
        for name, x in by_joint.items():
            if not self.joint(name).closes_loop:
                q[self.joint(name).q_slice] = x
        self._set_motors(q, by_joint)
        return q

    def _drawn(self, rng: np.random.Generator, size: int | tuple[int, ...], metre: float = 1.0) -> Array:
        """Return random configurations (*size, nq) with open loops; displacements without limits are between -`metre` and `metre`."""
        lead = tuple(checked_count("size", n, 0) for n in (size if isinstance(size, tuple) else (size,)))
        try:
            q = np.empty((*lead, self.nq))
        except ValueError as error:
            raise ShapeError(f"size {size!r} is too large for an array: {error}") from None
        for joint in map(self.joint, self.joints):
            # range of coordinates without limits: half a revolution, or `metre`, in both directions
            spreads = {"rad": np.pi, "m": metre}
            spread = np.array([spreads.get(unit, 1.0) for _, unit in joint.type.coordinates])
            low, high = joint.limits if joint.limits is not None else (-spread, spread)
            # a missing lower limit is -spread, or twice the spread below the upper limit if this is below -spread; likewise for a missing upper
            # limit
            low = np.where(np.isfinite(low), low, np.where(high > -spread, -spread, high - 2 * spread))
            high = np.where(np.isfinite(high), high, np.where(low < spread, spread, low + 2 * spread))
            q[..., joint.q_slice] = rng.uniform(low, high, (*lead, joint.nq))
            if joint.type.quaternion:
                start = joint.q_slice.start
                four = rng.standard_normal((*lead, 4))
                q[..., start : start + 4] = four / np.linalg.norm(four, axis=-1, keepdims=True)
        return q

    @_operation
    def integrate(self, q: ArrayLike, dv: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the configuration (..., nq) after motion from q with constant velocity dv for unit time.

        The motion is on the configuration manifold: a free joint moves along a screw, and quaternions remain unit quaternions (SpaceDyn 3.4, van der
        Merwe 6.52).

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        dv : (..., nv) displacement: velocity times unit time [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum().integrate([0.5], [0.25])
        array([0.75])
        """

    @_operation
    def difference(self, q0: ArrayLike, q1: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the constant velocity (..., nv) that leads from q0 to q1 in unit time, by the shorter rotation: the inverse of :meth:`integrate`.

        Parameters
        ----------
        q0, q1 : (..., nq) configurations [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum().difference([0.5], [0.75])
        array([0.25])
        """

    _coordinate_rate = _undeclared("coordinate_rate")  # q-dot (..., nq) of (q, v), and its rate for the acceleration a
    _coordinate_acceleration = _undeclared("coordinate_acceleration")

    @_operation
    def normalize(self, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the configuration (..., nq) with normalised quaternions; all other coordinates are unchanged.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum().normalize([0.5])
        array([0.5])
        """

    # ---- kinematics --------------------------------------------------------------------------------------------------

    @_operation
    def pose(self, q: ArrayLike, frame: str, **options: Unpack[StateOptions]) -> Array:
        """Return the pose (..., 4, 4) of a frame in the world: [R p; 0 1] (van der Merwe 2.26, 2.29 composed).

        Valid frames are the names in `frames`, and for a joint "pin" the names "pin.parent" and "pin.child" of its frames on both bodies.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        frame : name of a frame, see `frames` of the mechanism
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> float(sarrus.mechanisms.pendulum(length=0.5).pose([0.0], "tip")[2, 3])
        -0.5
        >>> four_bar = sarrus.mechanisms.four_bar()
        >>> four_bar.pose(four_bar.assemble(fixed={"motor": 0.5}), "pin1.parent")[:3, 3].round(3).tolist()
        [0.351, 0.0, -0.192]
        """

    @_operation
    def velocity(self, q: ArrayLike, v: ArrayLike, frame: str, **options: Unpack[FrameOptions]) -> Array:
        """Return the velocity (..., 6) of a frame, [angular; linear] [rad/s, m/s] (van der Merwe 4.27).

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        frame : name of a frame, see `frames` of the mechanism
        expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(length=0.5).velocity([0.0], [2.0], "tip").tolist()
        [0.0, 2.0, 0.0, -1.0, 0.0, 0.0]
        """

    @_operation
    def acceleration(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str, **options: Unpack[FrameOptions]
    ) -> Array:
        """Return the classical acceleration (..., 6) of a frame: [angular acceleration; acceleration of its origin] [rad/s2, m/s2].

        Gravity is not included. In "world" the result is the time derivative of the spatial velocity. van der Merwe 4.28, corrected.

        Parameters
        ----------
        q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
        frame : name of a frame, see `frames` of the mechanism
        expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(length=0.5).acceleration([0.0], [2.0], [0.0], "tip").tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 2.0]
        """

    @_operation
    def jacobian(self, q: ArrayLike, frame: str, **options: Unpack[FrameOptions]) -> Array:
        """Return the geometric Jacobian J (..., 6, nv) of the tree, with all loops open: velocity = J v (van der Merwe 5.6, 5.14).

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        frame : name of a frame, see `frames` of the mechanism
        expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(length=0.5).jacobian([0.0], "tip").ravel().tolist()
        [0.0, 1.0, 0.0, -0.5, 0.0, 0.0]
        """

    @_operation
    def jacobian_derivative(self, q: ArrayLike, v: ArrayLike, frame: str, **options: Unpack[FrameOptions]) -> Array:
        """Return the exact time derivative (..., 6, nv) of :meth:`jacobian` of the tree, in the same representation (van der Merwe 5.64-5.71).

        The classical acceleration is J a + J-dot v in "world_aligned"; in "frame" the rotating axes add [0; w x linear velocity].

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        frame : name of a frame, see `frames` of the mechanism
        expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum().jacobian_derivative([0.3], [2.0], "bob").shape
        (6, 1)
        """

    def kinematics(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, threads: int = 1
    ) -> Kinematics:
        """Compute the motion of all bodies once, for many queries about the same state or states.

        Parameters
        ----------
        q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2];
            default of v and a: zero
        threads : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> state = sarrus.mechanisms.pendulum(length=0.5).kinematics([0.0], [2.0])
        >>> float(state.velocity("tip")[3])
        -1.0
        """
        return Kinematics(self, self._kinematics(q, v, a, threads=threads))

    _kinematics = _undeclared("kinematics")
    _cached_pose = _undeclared("cached_pose")
    _cached_velocity = _undeclared("cached_velocity")
    _cached_acceleration = _undeclared("cached_acceleration")
    _cached_jacobian = _undeclared("cached_jacobian")
    _cached_jacobian_derivative = _undeclared("cached_jacobian_derivative")

    # ---- dynamics ----------------------------------------------------------------------------------------------------

    @_operation
    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Unpack[MotionOptions]) -> Array:
        """Return the generalised force for a motion of the tree, with all loops open: tau = M(q) a + h(q, v), with friction and springs.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m, unit quaternions (x, y, z, w)]
        v, a : (..., nv) generalised velocity and acceleration [rad/s, m/s; per s]
        base_velocity, base_acceleration : (..., 6) motion of the ground, [angular; linear] in its own axes; the acceleration is
            classical, and gravity is added to it
        wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Returns
        -------
        (..., nv) generalised force [N m, N]; leading axes broadcast.

        References
        ----------
        van der Merwe 1995, eqs 4.26-4.32; Featherstone, Rigid Body Dynamics Algorithms, 2008, Table 5.1.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)  # hangs along -z
        >>> pendulum.inverse_dynamics([np.pi / 2], [0.0], [0.0]).round(3)
        array([9.81])
        """

    @_operation
    def mass_matrix(self, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the mass matrix M(q) (..., nv, nv) of the tree, with armature: composite rigid bodies (van der Merwe's H, 5.46).

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).mass_matrix([0.0])
        array([[0.5]])
        """

    @_operation
    def mass_matrix_inverse(self, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the inverse of the mass matrix M(q) (..., nv, nv) of the tree, by L^T D L factorisation (Featherstone 2008, 6.5).

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).mass_matrix_inverse([0.0])
        array([[2.]])
        """

    @_operation
    def bias_forces(
        self, q: ArrayLike, v: ArrayLike, *, wrenches: Wrenches | None = None, **options: Unpack[StateOptions]
    ) -> Array:
        """Return the bias force h(q, v) (..., nv) of the tree: Coriolis, gravity, friction and springs (5.61).

        The bias force is the inverse dynamics at zero acceleration.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).bias_forces([np.pi / 2], [3.0]).round(3)
        array([9.81])
        """

    @_operation
    def gravity_forces(self, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the generalised force (..., nv) that balances gravity on the tree, with all loops open (5.61 with v = 0, without springs).

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).gravity_forces([np.pi / 2]).round(3)
        array([9.81])
        """

    @_operation
    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return C(q, v) (..., nv, nv) of the tree: C v are the Coriolis and centrifugal forces, and dM/dt - 2C is skew.

        For joints with v = dq/dt it is the matrix of Christoffel symbols (Murray, Li and Sastry 4.23; Li and Wu 4.3), by the algorithm of
        Echeandia and Wensing (2021).

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.double_pendulum().coriolis_matrix([0.0, 0.5], [1.0, 0.0]).shape
        (2, 2)
        """

    _tree_operational_inertia_inverse = _undeclared("operational_inertia_inverse")  # with all loops open

    _reactions = _undeclared("reactions")
    _motion_space = _undeclared("motion_space")
    _joint_screws = _undeclared("joint_screws")  # (..., nv, 6) in world axes, at the world's origin
    # Lie bracket [u, v] of each joint: if the deviations from a motion with velocity v are u in q and dv in v, then the rate of u is dv + [u, v]
    _bracket = _undeclared("bracket")

    @_operation
    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the regressor Y (..., nv, 10 bodies) of the tree, tau = Y pi for the rigid-body part of :meth:`inverse_dynamics`.

        pi stacks the parameters (m, m com (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz) of all ``bodies``, about the origin of each body's frame, as in
        ``Inertia.parameters``. Armature, friction and springs are not included.

        Parameters
        ----------
        q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.double_pendulum().regressor([0.1, 0.2], [0.0, 0.0], [1.0, 0.0]).shape
        (2, 20)
        """

    # ---- centre of mass, momentum, energy ----------------------------------------------------------------------------

    @_operation
    def center_of_mass(self, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the centre of mass (..., 3) in the world [m], including bodies that are welded to the ground.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(length=0.5).center_of_mass([0.0]).tolist()
        [0.0, 0.0, -0.5]
        """

    @_operation
    def momentum(self, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the momentum (..., 6), [angular, about the world's origin; linear], in world axes [kg m2/s, kg m/s].

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).momentum([0.0], [1.0]).tolist()
        [0.0, 0.5, 0.0, -1.0, 0.0, 0.0]
        """

    @_operation
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the kinetic energy (...) [J], including that of armatures; a float for one state.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).kinetic_energy([0.0], [2.0])
        1.0
        """

    @_operation
    def potential_energy(self, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
        """Return the potential energy (...) of gravity and springs [J]; a float for one state.

        The energy is zero if all mass is at the world's origin and all springs are relaxed.

        Parameters
        ----------
        q : (..., nq) configuration [rad, m]
        out, threads, return_status : as in :class:`~sarrus.Mechanism`

        Examples
        --------
        >>> import sarrus
        >>> sarrus.mechanisms.pendulum(mass=2.0, length=0.5).potential_energy([0.0])
        -9.81
        """


class Kinematics:
    """Motion of all bodies in one state or many, from :meth:`Mechanism.kinematics`.

    Attributes
    ----------
    mechanism : the mechanism
    cached : (..., k) poses, velocities and accelerations of the bodies, as the core stores them [dimensionless, m; rad/s, m/s; rad/s2, m/s2]
    """

    __slots__ = ("_cached", "mechanism")

    def __init__(self, mechanism: StateFunctions, cached: Array) -> None:
        self.mechanism = mechanism
        self._cached = cached

    def pose(self, frame: str) -> Array:
        """Return the pose of a frame; see :meth:`Mechanism.pose`.

        Parameters
        ----------
        frame : name of a frame, see `frames` of the mechanism
        """
        return self.mechanism._cached_pose(self._cached, frame)

    def velocity(self, frame: str, *, expressed_in: ExpressedIn = "frame") -> Array:
        """Return the velocity of a frame; see :meth:`Mechanism.velocity`.

        Parameters
        ----------
        frame : name of a frame, see `frames` of the mechanism
        expressed_in : as in :class:`~sarrus.Mechanism`
        """
        return self.mechanism._cached_velocity(self._cached, frame, expressed_in=expressed_in)

    def acceleration(self, frame: str, *, expressed_in: ExpressedIn = "frame") -> Array:
        """Return the acceleration of a frame; see :meth:`Mechanism.acceleration`.

        Parameters
        ----------
        frame : name of a frame, see `frames` of the mechanism
        expressed_in : as in :class:`~sarrus.Mechanism`
        """
        return self.mechanism._cached_acceleration(self._cached, frame, expressed_in=expressed_in)

    def jacobian(self, frame: str, *, expressed_in: ExpressedIn = "frame") -> Array:
        """Return the Jacobian of a frame; see :meth:`Mechanism.jacobian`.

        Parameters
        ----------
        frame : name of a frame, see `frames` of the mechanism
        expressed_in : as in :class:`~sarrus.Mechanism`
        """
        return self.mechanism._cached_jacobian(self._cached, frame, expressed_in=expressed_in)

    def jacobian_derivative(self, frame: str, *, expressed_in: ExpressedIn = "frame") -> Array:
        """Return the Jacobian's derivative of a frame; see :meth:`Mechanism.jacobian_derivative`.

        Parameters
        ----------
        frame : name of a frame, see `frames` of the mechanism
        expressed_in : as in :class:`~sarrus.Mechanism`
        """
        return self.mechanism._cached_jacobian_derivative(self._cached, frame, expressed_in=expressed_in)


def _named(kind: str, name: str, items: dict[str, N]) -> N:
    """Return the item with this name; raise NameNotFoundError if there is none."""
    check_name(kind, name, items)
    return items[name]
