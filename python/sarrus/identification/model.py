"""Samples of measured motions, and the regressor of motor efforts, which are linear in the parameters of bodies and joints, and the base parameters.

Motors contribute S u and loops J^T lambda to tau. The effort of motor k is u_k = x_k . tau, with a motion x_k that the loops allow
(cpp/loops/effort_regressor.hpp). Therefore constraint forces cancel, and u = W pi has a row for each motor. If motors are redundant, W pi is the
effort of least norm. Measured efforts are projected accordingly: P u has no internal efforts, with P = X S for the motions X = [x_k].

References
----------
Gautier, M. (1991). Numerical calculation of the base inertial parameters of robots. *Journal of Robotic Systems* 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, check_mapping, checked_names, checked_number, real_array
from .._core.spatial import pseudo_inertia
from .._renamed import renamed_arguments
from .._showing import Brief
from ..analysis.closing import on_its_tree
from ..analysis.independent_coordinates import joint_velocity
from ..analysis.linear_algebra import velocity_scale
from ..errors import ModelError, ShapeError, StateError, check_name
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import Inertia

# ---- samples of measured motions and efforts, and their computation from encoder readings ----------------------------

SETTLES = 4.0  # half length of the filter, in periods of the cut-off frequency


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Brief):
    """Measured motion and efforts, with a row for each sample.

    Attributes
    ----------
    efforts : joint to the efforts of its motor (n,) or (n, nv of the joint) [N m, N]. A passive joint may be included with zeros, as a measurement
    q, v : (n, nq), (n, nv) configurations and velocities [rad, m; rad/s, m/s], with closed loops
    a : (n, nv) accelerations [rad/s^2, m/s^2], or None, for :func:`identify_runs`
    t : (n,) times [s], also of prescribed motions, or None; uniformly spaced if `a` is None
    directions : joint to (n, nv of the joint) factors of Coulomb friction from -1 to 1 (dimensionless); None: the signs of the velocities. If efforts
        are filtered, use the filtered signs, because the filtered friction does not jump at reversals
    """

    efforts: Mapping[str, Array]
    q: Array
    v: Array
    a: Array | None = None
    t: Array | None = None
    directions: Mapping[str, Array] | None = None

    def __post_init__(self) -> None:
        for name in ("q", "v", "a", "t"):
            if (value := getattr(self, name)) is not None or name in "qv":
                object.__setattr__(self, name, real_array(name, value))
        parts: dict[str, Any] = {"q": self.q, "v": self.v, "a": self.a, "t": self.t}
        check_mapping("efforts", self.efforts, "joints to (n,) efforts each")
        check_mapping("directions", self.directions, "joints to (n, nv of the joint) numbers each", 0, optional=True)
        for name in ("efforts", "directions") if self.directions is not None else ("efforts",):
            by_joint: Mapping[str, Any] = getattr(self, name)
            numbers = {joint: real_array(f"{name} of '{joint}'", x) for joint, x in by_joint.items()}
            if name == "efforts":
                numbers = {joint: u[:, None] if u.ndim == 1 else u for joint, u in numbers.items()}
            object.__setattr__(self, name, numbers)
            parts |= {f"{name} of '{joint}'": x for joint, x in numbers.items()}
        for label, x in parts.items():
            if x is None:
                continue
            if x.ndim != (1 if label == "t" else 2) or x.shape[:1] != self.q.shape[:1]:
                rows = f" for each of the {len(self.q)} rows of q" if self.q.ndim else " for one sample"
                raise ShapeError(f"{label} needs one row{rows}; got shape {x.shape}")
            if not np.isfinite(x).all():
                raise ShapeError(
                    f"{label} must be finite; row {int(np.argwhere(~np.isfinite(x))[0, 0])} is not: remove such samples"
                )

    def __len__(self) -> int:
        return len(self.q)

    @renamed_arguments(which="selection")
    def rows(self, selection: Any) -> Samples:
        """Return a subset of the samples; raise IndexError for an invalid selection.

        Parameters
        ----------
        selection : slice, indices or mask of the samples
        """
        try:
            indices = np.arange(len(self))[selection]
        except (IndexError, TypeError, ValueError) as error:
            raise IndexError(f"selection must be a slice, indices or a mask of {len(self)} samples; {error}") from None

        def sampled(x: Any) -> Any:
            if isinstance(x, Mapping):
                return {joint: part[indices] for joint, part in x.items()}
            return None if x is None else x[indices]

        return Samples(*(sampled(getattr(self, field.name)) for field in fields(self)))

    @classmethod
    def from_joints(
        cls, robot: Mechanism, t: ArrayLike, joints: Mapping[str, ArrayLike], efforts: Mapping[str, ArrayLike], *, cutoff: float,
        near: ArrayLike | None = None,
    ) -> Samples:  # fmt: skip
        """Return samples from encoder readings: filtered without delay and differentiated; the coordinates of all joints follow from the loops.

        Parameters
        ----------
        robot : the nominal mechanism
        t : (n,) uniformly spaced times [s]
        joints : joint with one coordinate to its readings (n,) [rad, m]; the joints must determine the motion
        efforts : joint to measured efforts (n,) or (n, nv of the joint) [N m, N]. They, and the signs of the velocities in Coulomb friction,
            are filtered like the readings, so that both sides of the equations lose the same frequencies
        cutoff : cut-off frequency of half amplitude [Hz]; the amplitude error is 1e-4 below 0.7 of it, and the signal vanishes above 1.3 of it
        near : initial guess of the first configuration [rad, m], as in :meth:`sarrus.Mechanism.follow`

        Returns
        -------
        Samples without four periods of the cut-off frequency at each end of the record, where the filter is incomplete

        Raises
        ------
        ShapeError, ModelError
            Times are not uniformly spaced, or the record is shorter than twelve periods of the cut-off.
        AssemblyError
            The loops do not close along the readings.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> from sarrus.identification import Samples
        >>> robot = sarrus.mechanisms.four_bar()
        >>> t = np.linspace(0.0, 4.0, 801)
        >>> crank = {"motor": 0.5 + np.sin(2 * t)}
        >>> data = Samples.from_joints(robot, t, crank, {"motor": np.zeros(801)}, cutoff=5.0)
        >>> bool(abs(data.v[:, 0] - 2 * np.cos(2 * data.t)).max() < 1e-3)
        True
        """
        checked_mechanism(robot, "robot")
        t, cutoff = real_array("t", t), checked_number("cutoff", cutoff)
        if t.ndim != 1 or len(t) < 3 or np.ptp(np.diff(t)) > 1e-6 * (t[-1] - t[0]) / len(t) or t[-1] <= t[0]:
            raise ShapeError(f"t must be increasing, evenly spaced times (n,); got shape {t.shape}")
        step = (t[-1] - t[0]) / (len(t) - 1)
        half = int(np.ceil(SETTLES / (cutoff * step)))
        if len(t) < 3 * half:
            raise ModelError(
                f"{len(t)} samples last {t[-1] - t[0]:.3g} s, but the filter requires at least {3 * SETTLES:g} periods of the cut-off of {cutoff:g} Hz: pass a longer record or a higher cutoff"
            )
        readings = [_readings(argument, x, t) for argument, x in (("joints", joints), ("efforts", efforts))]
        smooth, rate, acceleration = _kernels(step, cutoff, half)
        inside = slice(half, len(t) - half)
        # the signs of velocities are filtered, too. This requires velocities at the ends of the record; therefore the readings are extended at both
        # ends by point reflection
        mirrored = {name: np.pad(y, half, mode="reflect", reflect_type="odd") for name, y in readings[0].items()}
        positions, rates, accelerations = (
            {name: np.convolve(y, kernel, "valid") for name, y in mirrored.items()}
            for kernel in (smooth, rate, acceleration)
        )
        q = robot.follow(positions, near, time=t)
        v = robot.complete_velocity(q, rates, time=t)
        directions = {
            name: np.stack([np.convolve(np.sign(x), smooth, "valid") for x in rates.T], axis=1)
            for name, rates in robot.joint_states(q, v, time=t).v.items()
            if rates.shape[1]
        }
        q, v, t = q[inside], v[inside], t[inside]
        a = robot.complete_acceleration(q, v, {name: x[inside] for name, x in accelerations.items()}, time=t)
        forces = {name: np.convolve(u, smooth, "valid") for name, u in readings[1].items()}
        return cls(forces, q, v, a, t, directions)


def _readings(argument: str, value: Any, t: Array) -> dict[str, Array]:
    """Return the readings of each joint; raise ShapeError unless they have a value for each time."""
    check_mapping(argument, value, "joints to (n,) readings each")
    readings = {name: real_array(f"{argument}['{name}']", x) for name, x in list(value.items())}
    for name, x in readings.items():
        if x.shape != t.shape:
            raise ShapeError(f"{argument}['{name}'] needs ({len(t)},) numbers, one for each time; got shape {x.shape}")
    return readings


def _kernels(step: float, cutoff: float, half: int) -> list[Array]:
    """Return the kernels of a low-pass filter (sinc in Kaiser's window) and of its first two derivatives."""
    t = step * np.arange(-half, half + 1)
    h = np.sinc(2.0 * cutoff * t) * np.kaiser(len(t), 8.0)
    spectrum, rate = np.fft.rfft(np.pad(h / h.sum(), half)), 2j * np.pi * np.fft.rfftfreq(len(t) + 2 * half, step)
    kernels = [np.fft.irfft(spectrum * rate**k, len(t) + 2 * half)[half : half + len(t)] for k in range(3)]
    # the truncated kernels of derivatives have a nonzero sum. A multiple of the filter is subtracted, so that a machine at rest has zero velocity
    return [kernels[0], *(kernel - kernel.sum() * kernels[0] for kernel in kernels[1:])]


def checked_samples(data: Any) -> Samples:
    """Return the samples; raise TypeError for other types."""
    if not isinstance(data, Samples):
        raise TypeError(f"data are sarrus.identification.Samples; got {data!r}")
    return data


# ---- physically consistent parameters --------------------------------------------------------------------------------
# Consistent parameters nearest to an estimate of the base parameters: pseudo-inertias positive semidefinite, friction not negative.
#
# Unidentified combinations are as near as possible to the nominal parameters, as measured by the log-determinant divergence D. D does not depend on
# frames and units, and is a barrier for physical consistency. The sum (B pi - beta)^T C^-1 (B pi - beta) + mu D(pi | nominal) is minimised by Newton
# steps in the metric of D, while mu decreases to zero.
#
# References
# ----------
# Wensing, P., Kim, S., Slotine, J.-J. (2018). Linear matrix inequalities for physically consistent inertial parameter identification.
# Lee, T., Wensing, P., Park, F. (2019). Geometric robot dynamic identification: a convex programming approach. *IEEE Transactions on Robotics* 36.

THIN = 1e-2  # relative thickness that is assigned to a thin rod, because the divergence requires bodies with volume
FLAT = 1e-11  # relative eigenvalue below which a pseudo-inertia is singular
ENOUGH = 1e-6  # Newton decrement, relative to an estimate's variance, at which the iterations end

_UNITS = pseudo_inertia(np.eye(10))  # pseudo-inertias of unit parameters


def pseudo_inertias(parameters: Array) -> Array:
    """Return the pseudo-inertias (..., 4, 4) of inertial parameters (..., 10)."""
    return np.asarray(np.einsum("...p,pij->...ij", parameters, _UNITS))


def with_volume(parameters: Array) -> Array:
    """Return parameters (n, 10) with positive definite pseudo-inertias.

    Thin rods and points are replaced by bodies with a small volume.
    """
    x = parameters.copy()
    P = pseudo_inertias(x)
    size = np.trace(P[:, :3, :3] - P[:, :3, 3:] * P[:, 3:, :3] / P[:, 3:, 3:], axis1=1, axis2=2)
    more = THIN * np.maximum(size, 1e-4 * x[:, 0])
    x[:, [4, 6, 9]] += 2.0 * more[:, None]
    return x


def consistent_parameters(
    B: Array, beta: Array, root: Array, nominal: Array, bodies: int, signed: Array, final_weight: float = 1e-3
) -> Array:
    """Return consistent parameters pi (p,) with B pi near beta, in the metric root^T root = C^-1.

    pi has 10 parameters of each body, then joint parameters, which are positive unless `signed`.

    Parameters
    ----------
    nominal : (p,) reference parameters of the divergence; where the nominal value is zero, the parameter's expected magnitude
    final_weight : final weight of the divergence, in units of an estimate's variance
    """
    n, x = 10 * bodies, nominal.astype(float)
    x[:n] = with_volume(x[:n].reshape(-1, 10)).ravel()
    x0, P0 = x.copy(), pseudo_inertias(x[:n].reshape(-1, 10))
    inverse0, scale = np.linalg.inv(P0), np.abs(x0[n:])
    M, rhs = root @ B, root @ beta

    def barrier(x: Array) -> float:
        P, s = pseudo_inertias(x[:n].reshape(-1, 10)), x[n:] / x0[n:]
        eigenvalues = np.linalg.eigvalsh(P)
        if (eigenvalues[:, 0] <= FLAT * eigenvalues[:, -1]).any() or s[np.logical_not(signed)].min(initial=1.0) <= FLAT:
            return float(np.inf)
        by_body = np.sum(inverse0 * P, axis=(1, 2)) - np.linalg.slogdet(P)[1] + np.linalg.slogdet(P0)[1] - 4.0
        by_joint = np.where(signed, 0.5 * (s - 1.0) ** 2, s - np.log(np.where(signed, 1.0, s)) - 1.0)
        return float(by_body.sum() + by_joint.sum())

    def value(x: Array, mu: float) -> float:
        return float(np.sum((M @ x - rhs) ** 2)) + mu * barrier(x)

    # the initial weight is as large as the misfit, so that both terms have the same magnitude and the Newton iterations converge
    most = max(float(np.sum((M @ x - rhs) ** 2)), 1e2 * final_weight)
    weights = np.append(10.0 ** np.arange(np.log10(most), np.log10(final_weight), -1.0), final_weight)
    for mu in weights:
        now = value(x, mu)
        for _ in range(30):
            inverse = np.linalg.inv(pseudo_inertias(x[:n].reshape(-1, 10)))
            each = inverse[:, None] @ _UNITS
            gradient = ((inverse0 - inverse).reshape(-1, 16) @ _UNITS.reshape(10, 16).T).ravel()
            H = each.reshape(-1, 10, 16) @ each.swapaxes(2, 3).reshape(-1, 10, 16).swapaxes(1, 2)
            L = np.linalg.cholesky(H + 1e-14 * np.eye(10) * np.trace(H, axis1=1, axis2=2)[:, None, None])
            s = x[n:]
            # use coordinates y in which the barrier's Hessian is the unit matrix: x = back y
            back = np.zeros((len(x), len(x)))
            for b, block in enumerate(np.linalg.inv(L).swapaxes(1, 2)):
                back[10 * b : 10 * b + 10, 10 * b : 10 * b + 10] = block
            slope = np.where(signed, scale, s)
            back[range(n, len(x)), range(n, len(x))] = slope
            g = np.concatenate([gradient, np.where(signed, (s - x0[n:]) / scale**2, 1.0 / x0[n:] - 1.0 / s)]) @ back
            A, r = M @ back, M @ x - rhs
            # minimise |A d + r|^2 + mu/2 |d + g|^2 by normal equations, in the smaller of their two dimensions
            e = -A.T @ np.linalg.solve(A @ A.T + 0.5 * mu * np.eye(len(A)), r - A @ g)
            # a step within Dikin's ellipsoid leaves eigenvalues above a tenth of their value, so that the metric of the next step is accurate
            step, length = back @ (e - g), min(1.0, 0.9 / max(float(np.linalg.norm(e - g)), 0.9))
            while length > 1e-9 and not (trial := value(x + length * step, mu)) <= now:
                length *= 0.5
            if length <= 1e-9:
                break
            x, now = x + length * step, trial
            if (decrement := float(np.sum((e - g) ** 2))) * mu < ENOUGH or (decrement < 1e-2 and mu > final_weight):
                break
    return x


# ---- regressor and base parameters -----------------------------------------------------------------------------------

PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
TERMS = ("damping", "friction", "armature", "stiffness", "offset")
# relative distance of a column from the span of other columns, below which it is dependent; the core's columns are exact to 1e-12
SAME = 1e-8
ROUNDING = 1e-10  # relative influence of a parameter on the efforts, below which the influence is rounding
BLOCK = 256  # number of states per block: their rows fit in the cache, and the overhead of NumPy's calls is small


class EffortModel:
    """Regressor of the efforts of selected motors with respect to the parameters of selected bodies and joints.

    Attributes
    ----------
    robot : the mechanism, with motors in the joints whose efforts were measured
    names : names of all parameters: "body.m", "body.Ixx", "joint.damping"
    values : (p,) nominal values
    bodies, terms : names of the bodies, with 10 parameters each, followed by (term, joint, index) of the joint parameters
    units : (p,) scales of the parameters, from the mechanism's mass, length and pendulum rate, so that tolerances do not depend on the mechanism's
        scale
    turn, turn_of_motors : (nv,), (nu,) scales of all velocities, and of the motors' velocities: 1 for an angular velocity, the mechanism's
        characteristic length for a sliding velocity
    """

    def __init__(
        self, robot: Mechanism, joints: Sequence[str], terms: Mapping[str, Sequence[str]] | None, bodies: Sequence[str] | None
    ) -> None:  # fmt: skip
        for joint in joints:
            check_name("joint", joint, robot._joints, "efforts")
        motors = tuple(joints)
        self.robot = robot if motors == robot.actuated else cast(Mechanism, on_its_tree(robot, actuated=motors))
        specs = {body.name: body.inertia for body in robot.description.bodies}
        chosen = (
            [name for name, I in specs.items() if I.mass > 0.0] if bodies is None else checked_names("bodies", bodies)
        )
        for name in chosen:
            check_name("body", name, specs, "bodies")
        self.bodies = tuple(name for name in specs if name in chosen)
        self.terms = tuple(self._terms({} if terms is None else terms))
        self.names = (
            *(f"{body}.{p}" for body in self.bodies for p in PARAMETERS),
            *(f"{joint}.{term}" + f"[{k}]" * (robot.joint(joint).type.nv > 1) for term, joint, k in self.terms),
        )
        self.values = self.values_of(robot)
        order = list(specs)
        place = self.robot.nv + 10 * np.array([order.index(name) for name in self.bodies], int)[:, None] + np.arange(10)
        self._columns = place.ravel()
        self.turn = velocity_scale(self.robot)
        self.turn_of_motors = velocity_scale(self.robot, self.robot.actuated)
        gravity = float(np.linalg.norm(robot.gravity))
        self.rate = np.sqrt(gravity / robot._length) if gravity > 0.0 else 1.0
        self.units = self._units()

    def _units(self) -> Array:
        mass, length, rate = self.robot.mass or 1.0, self.robot._length, self.rate
        body_units = mass * length ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
        orders = {"armature": (0, 2), "damping": (1, 2), "stiffness": (2, 2), "friction": (2, 1), "offset": (2, 1)}
        joint_units = [
            mass * length**2 * rate ** orders[term][0] / velocity_scale(self.robot, [joint])[k] ** orders[term][1]
            for term, joint, k in self.terms
        ]
        return np.concatenate([np.tile(body_units, len(self.bodies)), joint_units])

    def values_of(self, robot: Mechanism) -> Array:
        """Return the parameters (p,) of a mechanism with the same parts."""
        bodies = {body.name: body.inertia.parameters for body in robot.description.bodies}
        kinds = [(robot.joint(joint).type, term, k) for term, joint, k in self.terms]
        by_joint = [np.broadcast_to(getattr(kind, term, 0.0), kind.nv)[k] for kind, term, k in kinds]
        return np.concatenate([np.zeros(0), *(bodies[name] for name in self.bodies), by_joint])

    def changes(self, parameters: Array, *, check: bool = True) -> dict[str, Any]:
        """Return the arguments of :meth:`sarrus.Mechanism.variants` for parameters (n, p). Offsets are omitted; they belong to the measurement."""
        inertial, frictional = np.split(parameters, [10 * len(self.bodies)], axis=1)
        each = zip(self.bodies, inertial.reshape(len(parameters), -1, 10).swapaxes(0, 1), strict=True)
        inertias = {body: [Inertia.from_parameters(x, check=check) for x in rows] for body, rows in each}
        changes: dict[str, Any] = {"inertias": inertias}
        for (term, joint, k), x in zip(self.terms, frictional.T, strict=True):
            if term != "offset":
                kind = self.robot.joint(joint).type
                nominal = np.tile(np.broadcast_to(getattr(kind, term), kind.nv), (len(parameters), 1))
                changes.setdefault(term, {}).setdefault(joint, nominal)[:, k] = x
        return changes

    def _terms(self, terms: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, int]]:
        check_mapping("terms", terms, "names of terms to joints", 0)
        for term, joints in terms.items():
            if term not in TERMS:
                raise ModelError(f"'{term}' is not one of {', '.join(TERMS)}")
            for joint in checked_names(f"joints of '{term}'", joints):
                check_name("joint", joint, self.robot._joints, term)
                kind = self.robot.joint(joint).type
                if term == "stiffness" and kind.nv != 1:
                    raise ModelError(
                        f"stiffness can be identified for joints with one coordinate; '{joint}' has {kind.nv}"
                    )
                yield from ((term, joint, k) for k in range(kind.nv))

    @property
    def motors(self) -> tuple[str, ...]:
        """Name of the joint of each effort, or "joint[1]" if the joint has several velocities."""
        sizes = {name: self.robot.joint(name).type.nv for name in self.robot.actuated}
        return tuple(name + f"[{k}]" * (size > 1) for name, size in sizes.items() for k in range(size))

    def measured(self, data: Samples) -> Array:
        """Return measured efforts (n, nu) in the order of the mechanism's motors."""
        sizes = {name: self.robot.joint(name).type.nv for name in self.robot.actuated}
        for name, size in sizes.items():
            if data.efforts[name].shape[1] != size:
                raise ShapeError(f"efforts of '{name}' need {size} columns; got shape {data.efforts[name].shape}")
        return np.concatenate([data.efforts[name] for name in sizes], axis=1)

    def rows(
        self, q: Array, v: Array, a: Array, kept: NDArray[np.intp] | None = None, directions: Mapping[str, Array] | None = None,
        time: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return the kept columns of W and the nominal efforts (nu, n, kept + 1), and matrices P (n, nu, nu); raise StateError if efforts are
        undetermined.

        P u are the efforts u without internal efforts of redundant motors: those of least norm that produce the same motion.
        """
        rows, along, status = self._rows(q, v, a, kept, directions, time)
        if np.any(status):
            raise StateError(
                f"sample {int(np.argmax(status != 0))}: the motion does not determine the efforts, or it is invalid"
            )
        columns = [along @ np.swapaxes(joint_velocity(self.robot, q, name), -1, -2) for name in self.robot.actuated]
        return rows, np.concatenate(columns, axis=-1)

    def _rows(
        self, q: Array, v: Array, a: Array, kept: NDArray[np.intp] | None = None, directions: Mapping[str, Array] | None = None,
        time: Array | None = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Return the result of :meth:`rows`, the motions x_k of the motors (n, nu, nv), and the status of each state."""
        robot, nv, bodies = self.robot, self.robot.nv, 10 * len(self.bodies)
        kept = np.arange(len(self.names)) if kept is None else kept
        every, status = robot._effort_regressor(q, v, a, time=time, return_status=True)
        # columns of joint parameters, which the core does not compute, are placeholders here. A single call of take for all motors is twice as fast
        columns = np.append(self._columns, np.zeros(len(self.terms) + 1, int))[np.append(kept, -1)]
        rows: Array = every.take(columns, axis=-1, mode="clip").swapaxes(0, 1)
        along = every[..., :nv]
        for i in np.flatnonzero(kept >= bodies):
            rows[..., i] = self._joint_column(self.terms[kept[i] - bodies], q, v, a, along, directions, time).T
        rows[..., -1] = (along @ robot.inverse_dynamics(q, v, a)[..., None])[..., 0].T
        return rows, along, np.asarray(status)

    def _joint_column(
        self, place: tuple[str, str, int], q: Array, v: Array, a: Array, along: Array, directions: Mapping[str, Array] | None, time: Array | None
    ) -> Array:  # fmt: skip
        """Return the efforts of the motors (n, nu) due to a unit value of a joint parameter."""
        term, joint, k = place
        j = self.robot.joint(joint)
        if j.closes_loop:
            states = self.robot.joint_states(q, v, a, time=time)
            x, dx, ddx = states.q[joint], states.v[joint][:, k], states.a[joint][:, k]
            moves = (along @ joint_velocity(self.robot, q, joint)[..., k, :, None])[..., 0]
        else:
            x, dx, ddx = q[:, j.q_slice], v[:, j.v_slice][:, k], a[:, j.v_slice][:, k]
            moves = along[..., j.v_slice.start + k]
        if term == "stiffness":
            return np.asarray(moves * (x - np.broadcast_to(j.type.rest, 1)))
        signs = np.sign(dx) if directions is None or joint not in directions else directions[joint][:, k]
        by = {"damping": dx, "friction": signs, "armature": ddx, "offset": np.ones(len(q))}[term]
        return np.asarray(moves * by[:, None])

    def anywhere(self, data: Samples, seed: int = 0) -> Array:
        """Return regressor rows (., p) in random states near the measured ones, with random motions that the loops allow.

        There are twice as many rows as columns. Each `seed` selects different states.
        """
        robot, turn, rng = self.robot, self.turn, np.random.default_rng(seed)
        states = 10 + 2 * len(self.names) // robot.nu

        def random() -> Array:
            return rng.normal(size=(states, robot.nv))

        chosen = rng.integers(len(data), size=states) if seed else np.linspace(0, len(data) - 1, states).astype(int)
        q, time = data.q[chosen], None if data.t is None else data.t[chosen]
        away = robot.integrate(q, 0.1 * robot.project_velocity(q, turn * random(), time=time))
        closed, status = robot.project_configuration(away, time=time, return_status=True)
        q = np.where((status == 0)[:, None], closed, q)
        v = robot.project_velocity(q, self.rate * turn * random(), time=time)
        efforts = random() * np.abs(turn * robot.bias_forces(q, v)).max() / turn
        a, status = robot.forward_dynamics(q, v, efforts, time=time, return_status=True)
        q, v, a = (x[status == 0] for x in (q, v, a))
        rows, along, status = self._rows(q, v, a, time=None if time is None else time[status == 0])
        good = status == 0
        if robot.nc:  # states near singular positions are rejected, because their rounding errors are large
            J, x = robot.constraint_jacobian(q) * turn, np.swapaxes(along / turn, 1, 2)
            size = np.linalg.norm(J, axis=(1, 2)) * np.linalg.norm(x, axis=(1, 2))
            good &= np.linalg.norm(J @ x, axis=(1, 2)) < 1e-3 * SAME * size
        rows = self.turn_of_motors[:, None, None] * rows[:, good, :-1]
        return np.asarray(rows.reshape(rows.shape[0] * rows.shape[1], len(self.names)))


@dataclass(frozen=True, eq=False)
class Base:
    """Base parameters of a set of regressor rows W: W pi = W[:, kept] (combination @ pi).

    Attributes
    ----------
    kept : indices of the columns that are independent of all columns before them
    combination : (base, p) base parameters as linear combinations of all parameters
    unseen : indices of zero columns
    size : (base,) root mean square of the columns `kept`
    """

    kept: NDArray[np.intp]
    combination: Array
    unseen: NDArray[np.intp]
    size: Array

    def expressions(self, names: Sequence[str], units: Array, least: float = 1e-7) -> tuple[str, ...]:
        """Return names of the base parameters: "arm.m + 0.4 hand.m"."""
        rows = zip(self.combination, self.kept.tolist(), strict=True)
        return tuple(combined(row, names, first, units, least) for row, first in rows)


def combined(row: Array, names: Sequence[str], first: int, units: Array, least: float) -> str:
    """Return a linear combination of parameters as text, beginning with the parameter `first`.

    Coefficients below `least` of the largest one, scaled by `units`, are omitted.
    """
    parts_of_row = np.abs(row * units)
    rest = [i for i in np.flatnonzero(parts_of_row > least * parts_of_row.max(initial=0.0)).tolist() if i != first]
    parts = [
        f" {'-' if row[i] < 0 else '+'} {'' if abs(abs(row[i]) - 1) < 1e-7 else f'{abs(row[i]):.4g} '}{names[i]}"
        for i in rest
    ]
    return names[first] + "".join(parts)


def independent_columns(X: Array, order: NDArray[np.intp] | None, floor: Array) -> Base:
    """Return the columns of X (rows, p) that are independent of all columns before them, in a given order, or by pivoting.

    Columns whose norm is below `floor` (p,) count as zero. The method is modified Gram-Schmidt, applied twice. For columns of unit norm, the
    remainder is the distance from the span of the previous columns.
    """
    rows, X = len(X), np.asarray(np.linalg.qr(X, mode="r")) if len(X) > X.shape[1] else X
    size = np.linalg.norm(X, axis=0)
    seen = size > np.maximum(floor, np.finfo(float).tiny)
    least = np.maximum(SAME, np.where(seen, floor / np.where(seen, size, 1.0), np.inf))
    unit = X / np.where(seen, size, 1.0)
    kept, left = list[int](), np.where(seen, unit, 0.0)
    for k in range(len(size)):
        distance = np.linalg.norm(left, axis=0) / least
        # the first column among equal remainders
        j = int(np.argmax(distance > (1.0 - SAME) * distance.max()) if order is None else order[k])
        if distance[j] > 1.0:
            kept.append(j)
            basis = left[:, j] / np.linalg.norm(left[:, j])
            for _ in range(2):
                left = left - np.outer(basis, basis @ left)
        elif order is None:
            break
    rest = np.linalg.lstsq(unit[:, kept], unit, rcond=None)[0] if kept else np.zeros((0, X.shape[1]))
    rest[np.abs(rest) < 0.1 * SAME] = 0.0
    combination = rest * size / size[kept][:, None]
    combination[:, ~seen] = 0.0
    combination[:, kept] = np.eye(len(kept))
    return Base(np.array(kept, np.intp), combination, np.flatnonzero(~seen), size[kept] / np.sqrt(rows))


def base_of(model: EffortModel, data: Samples) -> Base:
    """Return the base parameters that the efforts of the given motors determine near the data. Parameters of the heaviest bodies are chosen first."""
    mass = np.repeat(model.values[: 10 * len(model.bodies) : 10], 10)
    order = np.concatenate([np.arange(len(mass), len(model.names)), np.argsort(-mass, kind="stable")]).astype(np.intp)

    def reduced(X: Array) -> tuple[Base, Array]:
        # influence of each parameter on the efforts. An influence at the rounding level of the largest is treated as zero, for example in joints
        # that the loops lock
        moves = np.linalg.norm(X, axis=0) * model.units
        floor = ROUNDING * moves.max(initial=0.0) / model.units
        return independent_columns(X, order, floor), np.maximum(SAME * np.linalg.norm(X, axis=0), floor)

    X = model.anywhere(data)
    base, least = reduced(X)
    # if the data are on several branches, one branch may have too few rows: add rows until the number of base parameters is constant
    for seed in count(1):
        more = model.anywhere(data, seed)
        left = more - more[:, base.kept] @ base.combination
        if np.all(np.linalg.norm(left, axis=0) <= least):
            break
        before, X = len(base.kept), np.vstack([X, more])
        base, least = reduced(X)
        if len(base.kept) <= before:
            break
    if not len(base.kept):
        raise ModelError(f"efforts of {', '.join(model.motors) or 'no motor'} do not depend on the parameters")
    return base
