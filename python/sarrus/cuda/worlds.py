"""Many states of one mechanism on a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from .. import _recording
from .._arrays import ENDLESS, MOST_THREADS, Array, ArrayLike, checked_count, checked_number, real_array
from .._core import Status, tolerances
from ..analysis.closing import JointCoordinates
from ..control.element import ForceElement
from ..control.elements import velocities
from ..errors import ModelError, SarrusError, ShapeError, StateError, check_choice
from ..generation.recorder import Numbers, Recorder
from ..generation.step import Method, recorded_step
from ..generation.targets import Recorded
from ..generation.writing import RESULTS, _recorded, by_name
from ..mechanism import Mechanism
from ..simulation.sweep import simulate_many
from ..variants import Variants
from .devices import AnyArray, Device, Host, View, view
from .kernels import STATE, Kernel, advanced, called, drawn

# steps of assemble(), in which fixed coordinates move to their values at a constant rate, with one Newton step in each; and further Newton steps
PATH_STEPS, LAST_STEPS = 32, 6


class Worlds:
    """States of one mechanism, side by side on a device.

    A step is recorded from the core's method, so that results on both devices are those of :func:`~sarrus.simulate` to rounding. A world that fails
    keeps its last valid state and does not affect the others; its status is not 0 until it is reset.

    Parameters
    ----------
    robot : the mechanism, or variants of it, whose parameters differ from world to world: world k begins with variant k, and after the last
        variant follows the first; :meth:`reset` changes the variants of worlds
    count : number of worlds
    scalar : "float" or "double"
    dt : step of the simulation [s]
    substeps : number of steps in each call of :meth:`step`
    elements : force elements of :mod:`sarrus.control`, such as springs or contact. Their parameters may be arrays, one value for each variant
    method : method of the steps, as in :func:`~sarrus.generation.recorded_step`
    motors : names of the joints on which efforts act; default: all actuated joints, or all joints if none is actuated
    configurations : sample configurations of the recording, as for :class:`~sarrus.generation.Recorder`
    device : "cuda", "cuda:INDEX", or "cpu"
    threads : number of threads on the processor
    stream : stream of the GPU; default: torch's current stream if torch uses the GPU, otherwise the default stream

    Attributes
    ----------
    q, v, z : arrays (count, nq), (count, nv), (count, states) on the device: the state [rad, m; rad/s, m/s], and internal states of the elements. A
        number of all worlds is contiguous. The arrays may be written
    variants : number of variants of the mechanism and of its elements
    variant : (count,), int32: indices of the worlds' variants; zeros if there are none
    time : (count,) times since the worlds' resets [s], float64
    status : (count,), int32: 0 valid; 2 no result; 3 inconsistent constraints; 5 open loops; increased by 8 if a decision of the sample states does not
        hold, so that the result may be less accurate
    residual : (count, 2) largest residuals of the loops after the last step, in position [rad, or relative to the size] and velocity [the same per s]

    Raises
    ------
    MemoryError
        The worlds exceed the device's memory; the message has the number of worlds that do not.
    ModelError
        A step of the mechanism or an element cannot be recorded.
    SarrusError, ImportError
        There is no GPU, or no program that compiles for it.

    Examples
    --------
    >>> import sarrus, sarrus.cuda
    >>> robot = sarrus.mechanisms.pendulum()
    >>> worlds = sarrus.cuda.Worlds(robot, 1000, dt=1e-3, substeps=5, device="cpu")
    >>> worlds.reset(q=[0.3])
    >>> for _ in range(10):
    ...     worlds.step()
    >>> round(float(worlds.time[0]), 6), worlds.q.shape
    (0.05, (1000, 1))
    """

    def __init__(
        self, robot: Mechanism | Variants, count: int, *, scalar: str = "float", dt: float = 1e-3, substeps: int = 1,
        elements: ForceElement | Sequence[ForceElement] = (), method: Method = "semi_implicit", motors: Sequence[str] | None = None,
        configurations: ArrayLike | None = None, device: str = "cuda", threads: int = 1, stream: Any = None,
    ) -> None:  # fmt: skip
        if not isinstance(robot, (Mechanism, Variants)):
            raise TypeError(f"robot must be a Mechanism or Variants; got {robot!r}")
        self.simulated, self.count = robot, checked_count("count", count, most=ENDLESS)
        self.robot: Mechanism = cast("Mechanism", robot.base) if isinstance(robot, Variants) else robot
        robot = self.robot
        check_choice("scalar", scalar, ("float", "double"))
        self.scalar, self.dt, self.substeps = (
            scalar,
            checked_number("dt", dt),
            checked_count("substeps", substeps, most=ENDLESS),
        )
        self.kind = np.float32 if scalar == "float" else np.float64
        self._most = tolerances.torn_in_single if scalar == "float" else tolerances.torn
        self.method, self._configurations = method, configurations
        self._elements = [elements] if isinstance(elements, ForceElement) else list(elements)
        names = tuple(robot.actuated or robot.joints) if motors is None else tuple(motors)
        if closing := [name for name in names if robot.joint(name).closes_loop]:
            raise ModelError(
                f"motors act along velocities in v, which has no entries for the loop joint {closing[0]!r}; name other joints in motors="
            )
        self._motors = [int(k) for k in velocities(robot, names)]
        self._joints = [robot.joint(name).type for name in names]
        where = re.fullmatch(r"cpu|cuda(?::(\d+))?", str(device))
        if where is None:
            raise ValueError(f"device must be 'cuda', 'cuda:INDEX' or 'cpu'; got {device!r}")
        threads = checked_count("threads", threads, most=MOST_THREADS)
        self.device: Any = Host(threads) if device == "cpu" else Device(int(where[1] or 0), stream)
        self._functions: dict[Any, tuple[Kernel, Any, Any]] = {}
        stepped = self._recorded("step", self._stepped)
        numbers = stepped.recorder._numbers
        self.variants = max((len(x) for x in numbers.values()), default=1)
        if any(len(x) != self.variants for x in numbers.values()):
            counts = " and ".join(str(len(x)) for x in numbers.values())
            raise ShapeError(f"elements must have as many values as there are variants; got {counts}")
        self._states = {key: np.size(stepped.results.get(f"{key}_next", ())) for key in STATE}
        sizes = self._states | {"residual": 2} | {key: x.shape[1] for key, x in numbers.items()}
        needed = sum(sizes.values()) * np.dtype(self.kind).itemsize + 8 + 4 + 4
        if count * needed > (free := self.device.free()):
            fault = f"{count} worlds need {count * needed / 2**30:.3g} GiB"
            raise MemoryError(f"{fault}; {int(free / needed)} worlds fit into the memory of {device!r}")
        arrays: dict[str, AnyArray] = {key: self.device.zeros(self.count, n, self.kind) for key, n in sizes.items()}
        arrays |= {
            "time": self.device.zeros(self.count, 1, np.float64),
            "status": self.device.zeros(self.count, 1, np.int32),
            "variant": self.device.zeros(self.count, 1, np.int32),
        }
        self._varied = {key: self.device.array(key, x, self.kind) for key, x in numbers.items()}
        arrays |= {f"{key}_of_variants": x for key, x in self._varied.items()}
        self._arrays, self._views = arrays, {key: view(x) for key, x in arrays.items()}
        self.q, self.v, self.z, self.residual = (arrays[key] for key in (*STATE, "residual"))
        self.time: AnyArray = arrays["time"].reshape(self.count)
        self.status: AnyArray = arrays["status"].reshape(self.count)
        self.variant: AnyArray = arrays["variant"].reshape(self.count)
        self._home = self.simulated.assemble()
        self.reset(variants=np.arange(self.count) % self.variants)

    def __repr__(self) -> str:
        return f"<Worlds: {self.count} of '{self.robot.name}', {self.scalar}>"

    @property
    def motors(self) -> int:
        """Number of efforts of a world."""
        return len(self._motors)

    @property
    def effort_limits(self) -> Array:
        """Limits of the motors' efforts (motors,) [N m, N]; infinite if a joint has none."""
        limits = [np.broadcast_to(np.inf if j.effort_limit is None else j.effort_limit, j.nv) for j in self._joints]
        return np.concatenate(limits)

    # ---- the state ---------------------------------------------------------------------------------------------------

    def step(self, efforts: Any = None) -> None:
        """Advance all worlds whose status is 0 or 8 by `substeps` steps.

        Parameters
        ----------
        efforts : (count, motors) or (motors,) efforts of the motors during the call [N m, N], on the device or the host; limits of joints have no
            effect. Default: zero. A world whose efforts are not finite fails
        """
        u = np.zeros(len(self._motors)) if efforts is None else efforts
        if self._core:
            self._core_step(u)
        else:
            self._advance("step", self._stepped, {"efforts": u}, None, self.substeps, self.dt)

    def reset(
        self, mask: Any = None, q: Any = None, v: Any = None, *, seed: int | None = None, variants: Any = None
    ) -> None:
        """Set the state of worlds, their time to zero and their status to 0.

        Parameters
        ----------
        mask : (count,) booleans, True for the worlds to reset, on the device or the host; default: all
        q : (nq,) or (count, nq) configurations with closed loops [rad, m]; default: the configuration :meth:`~sarrus.Mechanism.assemble` returns
        v : (nv,) or (count, nv) velocities that satisfy the constraints [rad/s, m/s]; default: zero
        seed : if not None, q and v on the host have any number of rows, of which each world draws one; the same seed gives the same rows
        variants : (count,) indices of the variants that the worlds get, int32 on the device; default: they keep theirs. The status of a world with
            an index that does not exist is 2
        """
        if variants is not None and self.variants > 1:
            variants = self._given("variants", variants, 1, np.int32)
            if isinstance(variants, np.ndarray) and not ((variants >= 0) & (variants < self.variants)).all():
                raise ValueError(f"variants must be indices below {self.variants}; got {variants[:, 0]}")
        of_variants = q is None and self._home.ndim == 2
        if of_variants:
            rows = np.asarray(self.variant if variants is None else variants).ravel()
            q = self._home[np.clip(rows, 0, len(self._home) - 1)]
        q, v = self._home if q is None else q, np.zeros(self.robot.nv) if v is None else v
        if seed is not None:
            q, v = np.atleast_2d(real_array("q", q)), np.atleast_2d(real_array("v", v))
            rows = np.random.default_rng(checked_count("seed", seed, 0)).integers(len(q), size=self.count)
            q, v = q if of_variants else q[rows], v[rows if len(v) == len(q) else 0]
        arrays = {"to_q": q, "to_v": v, "to_z": np.zeros(self._states["z"])}
        for key, x in arrays.items():
            if isinstance(x, (np.ndarray, list, tuple)) and not np.isfinite(real_array(key[3:], x)).all():
                raise StateError(f"{key[3:]} must be finite; got {x!r}")
        self._advance("reset", self._moved, arrays, mask)
        if variants is not None and self.variants > 1:
            self._draw(variants, mask)

    def _draw(self, variants: AnyArray, mask: Any) -> None:
        if self._core:
            chosen = slice(None) if mask is None else self._given("mask", mask, 1, np.uint8)[:, 0].astype(bool)
            self.variant[chosen] = variants[chosen, 0]
            return
        if "draw" not in self._functions:
            kernel = drawn(self.scalar, {key: x.shape[1] for key, x in self._varied.items()})
            self._functions["draw"] = kernel, self.device.compiled(kernel), {}
        kernel, function, _ = self._functions["draw"]
        self._launch(kernel, function, {"rows": variants}, mask, [self.variants])

    def _launch(
        self, kernel: Kernel, function: Any, given: dict[str, AnyArray], mask: Any, numbers: Sequence[Any]
    ) -> None:
        if mask is not None:
            given["mask"] = self._given("mask", mask, 1, np.uint8)
        views = [self._views.get(name) or (view(given[name]) if name in given else View()) for name in kernel.arrays]
        self.device.launch(function, self.count, views, numbers)

    def assemble(self, fixed: JointCoordinates, near: Any = None, *, mask: Any = None) -> None:
        """Close the loops by Newton's method, with the coordinates of some joints fixed; the worlds are then at rest, with time zero.

        The fixed coordinates move to their values in 32 steps, so that the worlds stay on their branch. If the loops of a world cannot be closed, it keeps
        its state, and its status is 2 or 5.

        Parameters
        ----------
        fixed : joint to its coordinates (nq of the joint,), or (count, nq of the joint), or (count,) for one coordinate [rad, m]. They must determine
            the configuration
        near : (nq,) or (count, nq) initial guesses [rad, m]; default: the worlds' configurations
        mask : as for :meth:`reset`
        """
        names, columns = tuple(fixed), []
        for name, x in fixed.items():
            kind = self.robot.joint(name).type
            if (size := kind.nq) != kind.nv:
                raise ModelError(
                    f"fixed joint {name!r}: quaternions are not interpolated; use reset() with robot.assemble()"
                )
            a = real_array(name, np.asarray(self.device.array(name, x, np.float64)))
            a = a[:, None] if a.shape == (self.count,) and size == 1 else np.atleast_1d(a)
            if a.shape not in ((size,), (self.count, size)):
                raise ShapeError(f"fixed[{name!r}] must be ({size},) or ({self.count}, {size}); got {a.shape}")
            columns.append(np.broadcast_to(a, (self.count, size)))
        if not self.robot.constraints:
            raise ModelError(f"'{self.robot.name}' has no loops: use reset()")
        if near is not None:
            self.reset(mask, near)
        if self._core:
            at = dict(zip(names, columns, strict=True))
            q, status = self._mechanism().assemble(self.q, fixed=at, branch="only", return_status=True)
            self._put(mask, q, np.zeros(self.robot.nv), np.broadcast_to(status, self.count))
        else:
            arrays = {"coordinates": np.hstack(columns), "to_z": np.zeros(self._states["z"])}
            self._advance(("assemble", *names), lambda r: self._closed(r, names), arrays, mask, PATH_STEPS + LAST_STEPS)

    def _advance(
        self, key: Any, compute: Any, arrays: Mapping[str, Any], mask: Any, substeps: int = 1, dt: float = 0.0
    ) -> None:
        """Launch a kernel of :func:`advanced`; if dt is zero, from time zero to one, with status 0 before it."""
        if self._core:
            self._put(mask, arrays["to_q"], arrays["to_v"], np.zeros(self.count, int))
            return
        if key not in self._functions:
            f = self._recorded(key if isinstance(key, str) else key[0], compute)
            kernel = advanced(f, self._motors)
            sizes = {name: len(x) for name, x in f.inputs.items()} | {"efforts": len(self._motors)}
            self._functions[key] = kernel, self.device.compiled(kernel), sizes
        kernel, function, sizes = self._functions[key]
        given = {name: self._given(name, x, sizes[name]) for name, x in arrays.items() if name in sizes}
        self._launch(kernel, function, given, mask, [substeps, not dt, dt or 1 / PATH_STEPS, self._most])

    def _given(self, name: str, x: Any, size: int, kind: Any = None) -> AnyArray:
        """Return an argument as an array (size,) or (count, size) on the device."""
        array = self.device.array(name, x, self.kind if kind is None else kind)
        shape = tuple(array.shape)
        if kind is not None and shape == (self.count,):
            return array.reshape(self.count, 1)
        if kind is not None or shape not in ((size,), (self.count, size)):
            expected = f"({self.count},)" if kind is not None else f"({size},) or ({self.count}, {size})"
            raise ShapeError(f"{name} must be {expected}; got shape {shape}")
        return array

    # ---- recorded functions ------------------------------------------------------------------------------------------

    def call(self, function: str | Callable[[Recorder], Mapping[str, Numbers]], **inputs: Any) -> dict[str, AnyArray]:
        """Return the results of a function of the worlds' states, by name, as new arrays (count, ...) on the device, and "status" (count,).

        Parameters
        ----------
        function : name of a function that :func:`~sarrus.generation.generate` accepts, such as "forward_dynamics", "pose:FRAME", "jacobian:FRAME" or
            "forward_dynamics_derivatives"; or a Python function of a :class:`~sarrus.generation.Recorder`
        **inputs : arguments of the function, (numbers,) or (count, numbers); default for q, v, z and time: the worlds' state

        Examples
        --------
        >>> import sarrus, sarrus.cuda
        >>> worlds = sarrus.cuda.Worlds(sarrus.mechanisms.four_bar(), 100, scalar="double", device="cpu")
        >>> worlds.call("pose:coupler")["pose"].shape
        (100, 4, 4)
        """
        if self._core and isinstance(function, str):
            return self._core_call(function, inputs)
        if function not in self._functions:
            f = self._recorded("call", by_name(function) if isinstance(function, str) else function)
            kernel = called(f)
            self._functions[function] = kernel, self.device.compiled(kernel), f
        kernel, compiled, f = self._functions[function]
        own = {key: self._arrays[key] for key in ("q", "v", "z", "time", *self._varied)}
        _check_inputs(function, inputs, [key for key in f.inputs if key not in self._varied], own)
        given = {
            key: self._given(key, inputs[key], len(x)) if key in inputs else own[key] for key, x in f.inputs.items()
        }
        results = {key: self.device.zeros(self.count, np.size(x), self.kind) for key, x in f.results.items()}
        status = self.device.zeros(self.count, 1, np.int32)
        views = [self._views[key] if key in own and key not in inputs else view(x) for key, x in given.items()]
        self.device.launch(compiled, self.count, [*views, *map(view, results.values()), view(status)], [])
        shaped = {key: x.reshape(self.count, *np.shape(f.results[key])) for key, x in results.items()}
        return shaped | {"status": status.reshape(self.count)}

    def _recorded(self, name: str, compute: Callable[[Recorder], Mapping[str, Numbers]]) -> Recorded:
        recorder = Recorder(self.simulated, scalar=self.scalar, configurations=self._configurations)
        with np.errstate(all="ignore"):
            return _recorded("sarrus", name, compute, recorder, True, isinstance(self.device, Device))

    def _stepped(self, r: Recorder) -> Mapping[str, Numbers]:
        step = recorded_step(r, dt=self.dt, method=self.method, elements=self._elements)
        return {key if key == "residual" else f"{key}_next": x for key, x in step.items() if np.size(x)}

    def _moved(self, r: Recorder) -> Mapping[str, Numbers]:
        samples = len(r._configurations)
        values = {
            key: np.broadcast_to(r._samples[key], (samples, n)) if key != "z" else np.zeros((samples, n))
            for key, n in self._states.items()
        }
        return {f"{key}_next": r.input(f"to_{key}", x) for key, x in values.items() if x.shape[1]}

    def _closed(self, r: Recorder, names: tuple[str, ...]) -> Mapping[str, Numbers]:
        indices, _ = r._indices(names)
        to, left = r.input("coordinates", r._configurations[:, indices]), (1.0 - r.time[0]) * PATH_STEPS
        q = r.q.copy()
        q[indices] += (to - q[indices]) / left.larger(r.constant(1.0))
        closed, residual = r.closed(r._loop_coordinates(q), names, 1)
        closed, q = r._merged(closed, q), q[indices]
        closed[indices] = q
        rest = np.full(self.robot.nv, r.constant(0.0), dtype=object)
        z = r.input("to_z", np.zeros((len(r._configurations), n))) if (n := self._states["z"]) else ()
        results = {"q_next": closed, "v_next": rest, "residual": np.array([residual[0], r.constant(0.0)], dtype=object)}
        return results | ({"z_next": z} if n else {})

    # ---- the core, if there is no compiler ---------------------------------------------------------------------------

    @property
    def _core(self) -> bool:
        return isinstance(self.device, Host) and self.device.compiler is None

    def _mechanism(self, worlds: Any = slice(None)) -> Any:
        """Return the mechanism, or the variants of these worlds."""
        return self.simulated[self.variant[worlds]] if isinstance(self.simulated, Variants) else self.robot

    def _put(self, mask: Any, q: Any, v: Any, status: Any) -> None:
        chosen = (
            np.ones(self.count, bool) if mask is None else self._given("mask", mask, 1, np.uint8)[:, 0].astype(bool)
        )
        good = chosen & (status == 0)
        for array, name, x in ((self.q, "q", q), (self.v, "v", v)):
            array[good] = np.broadcast_to(self._given(name, x, array.shape[1]), array.shape)[good]
        self.status[chosen], self.time[good] = np.where(good, 0, 2)[chosen], 0.0

    def _core_step(self, efforts: Any) -> None:
        alive = np.flatnonzero(self.status % 8 == 0)
        if not alive.size:
            return
        if self._states["z"] or np.ptp(self.time[alive]) > 0.0 or "element_parameters" in self._varied:
            fault = "worlds with different times, or elements with internal states or different parameters"
            raise SarrusError(f"{fault}, require the compiler c++")
        u = self._given("efforts", efforts, len(self._motors))
        tau = np.zeros((len(alive), self.robot.nv))
        tau[:, self._motors] = np.broadcast_to(u, (self.count, len(self._motors)))[alive]
        method: Any = self.method
        runs = simulate_many(
            self._mechanism(alive), self.q[alive], self.v[alive], self.substeps * self.dt, self._elements, dt=self.dt, every=self.substeps, method=method,
            stabilisation="projection" if self.robot.constraints else "none", limits="ignore", start=self.time[alive[0]], threads=self.device.threads,
            policy=lambda t, q, v: tau,
        )  # fmt: skip
        good = alive[runs.status == Status.FINISHED]
        self.q[good], self.v[good] = (x[runs.status == Status.FINISHED, -1] for x in (runs.q, runs.v))
        self.time[good] += self.substeps * self.dt
        self.status[np.setdiff1d(alive, good)] = 2

    def _core_call(self, function: str, inputs: Mapping[str, Any]) -> dict[str, AnyArray]:
        name, _, frame = function.partition(":")
        if name not in _recording.operations:
            raise SarrusError(f"{function!r} requires the compiler c++, which is not on the PATH")
        keys = [key for key in _recording.operations[name][0].split() if key[-1] != "?"]
        own = {"q": self.q, "v": self.v}
        _check_inputs(function, inputs, keys, own)
        arrays = [np.asarray(inputs[key] if key in inputs else own[key], float) for key in keys]
        result, status = getattr(self._mechanism(), name)(*arrays, *([frame] if frame else []), return_status=True)
        return {
            RESULTS.get(name, name): result.astype(self.kind),
            "status": np.broadcast_to(status, self.count).astype(np.int32),
        }


def _check_inputs(function: Any, inputs: Iterable[str], keys: Iterable[str], own: Iterable[str]) -> None:
    """Raise TypeError if an input is not among the function's `keys`, or one is missing that the worlds' `own` state does not have."""
    if unknown := set(inputs) - set(keys):
        raise TypeError(f"{function} has no input {min(unknown)!r}; inputs: {', '.join(keys)}")
    if missing := set(keys) - set(inputs) - set(own):
        raise TypeError(f"{function} requires {', '.join(sorted(missing))}")
