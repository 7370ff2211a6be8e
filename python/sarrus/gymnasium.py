"""Vector environment of Gymnasium: many runs of a mechanism, simulated together in C++. Needs ``pip install gymnasium``.

>>> import numpy as np
>>> import sarrus, sarrus.gymnasium
>>> robot = sarrus.mechanisms.four_bar()
>>> env = sarrus.gymnasium.VectorEnv(
...     robot, 8, observe=lambda q, v: np.hstack([q, v]), reward=lambda q, v, u: -abs(v[:, 0] - 2.0),
...     start={"motor": (-0.5, 0.5)}, efforts=[5.0], period=0.02, seconds=1.0)
>>> seen, _ = env.reset(seed=0)
>>> seen, reward, terminated, truncated, infos = env.step(np.zeros((8, 1)))
>>> seen.shape, reward.shape, bool(terminated.any())
((8, 6), (8,), False)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import _core
from ._arrays import Array, ArrayLike, NDArray, checked_count, checked_number, real_array
from ._core import Status
from .control.element import ForceElement
from .control.elements import velocities
from .errors import AssemblyError, ModelError, ShapeError, StateError, check_choice
from .mechanism import Mechanism
from .simulation.setup import MethodName, Stabilisation, Stepping
from .simulation.sweep import _prepared
from .simulation.workers import hold, set_efforts
from .variants import Variants

__all__ = ["VectorEnv", "for_stable_baselines3"]

Tensors = Literal["numpy", "torch"]
DRAWS = 20  # largest number of random initial states that are tried before an error is raised

Ranges = Mapping[str, tuple[ArrayLike, ArrayLike]]
Start = Ranges | Callable[[np.random.Generator, NDArray[np.intp]], tuple[ArrayLike, ArrayLike]]


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Vector environment whose actions are efforts of motors, constant for a period.

    If a run fails (its loops cannot be closed, or the dynamics has no solution), its episode ends in the last valid state, so that observations are
    finite. ``infos["status"]`` has a :class:`~sarrus.results.Status` for each run. All runs share one clock for time functions; :meth:`reset` sets it
    to zero.

    Parameters
    ----------
    robot : the mechanism; for domain randomisation, variants of it, one for each run
    num_envs : number of runs
    observe : function (q (n, nq) [rad, m], v (n, nv) [rad/s, m/s]) that returns observations (n, k)
    reward : function (q, v, u (n, motors) [N m, N]) that returns rewards (n,) for the state after a period and the efforts in it
    start : random initial states. Either a mapping of joints to ranges of their coordinates: these are drawn uniformly, the loops are closed by
        :meth:`~sarrus.Mechanism.assemble` at the clock's time, and the velocity is zero. Or a function (random generator, indices of runs (m,)) that
        returns q (m, nq) and v (m, nv), which are projected onto the constraints
    ends : function (q, v), as for `observe`, that returns True for terminated episodes (n,)
    efforts : (motors,) efforts for actions of 1 [N m, N]; actions are between -1 and 1. Default: the joints' limits
    motors : names of the joints that actions drive; default: all actuated joints
    period : duration of an action [s]
    dt : step of the simulation [s]; the period must be a multiple of it
    seconds : duration after which an episode is truncated [s]
    controller : additional force elements, such as contact. Defaults of parameters that depend on the initial configuration, as of end stops, are
        computed anew for each run that restarts
    method, stabilisation, gains : as for :func:`~sarrus.simulate_many`
    tensors : "numpy", or "torch" for tensors that share the arrays' memory
    dtype : type of observations and rewards
    autoreset_mode : time at which a run restarts after its episode. It is the same step (``infos["final_obs"]`` and ``infos["final_info"]`` then have
        the last observation and info), the next step, or the next call of ``reset(options={"reset_mask": mask})``
    threads : number of threads

    Raises
    ------
    ModelError, NameNotFoundError, ShapeError, TypeError, ValueError
        An argument does not fit the mechanism.
    AssemblyError
        The loops of a run could not be closed for any of 20 drawn initial states.
    """

    def __init__(
        self, robot: Mechanism | Variants, num_envs: int, *, observe: Callable[[Array, Array], Array],
        reward: Callable[[Array, Array, Array], Array], start: Start, ends: Callable[[Array, Array], NDArray[np.bool_]] | None = None,
        efforts: ArrayLike | None = None, motors: Sequence[str] | None = None, period: float = 0.02, dt: float = 1e-3, seconds: float = 10.0,
        controller: ForceElement | Sequence[ForceElement] | None = None, method: MethodName = "semi_implicit",
        stabilisation: Stabilisation = "projection", gains: tuple[float, float] | None = None,
        tensors: Tensors = "numpy", dtype: Any = np.float32,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP, threads: int = 1,
    ) -> None:  # fmt: skip
        self._made_with = {key: x for key, x in locals().items() if key not in ("self", "__class__")}
        self.num_envs, self.robot = checked_count("num_envs", num_envs), robot
        if isinstance(robot, Variants) and len(robot) != num_envs:
            raise ShapeError(f"there must be a variant for each of {num_envs} environments; got {len(robot)}")
        check_choice("tensors", tensors, Tensors)
        self._functions, self._dtype = (observe, reward, ends, start), np.dtype(dtype)
        self._threads, self._tensors = threads, tensors
        base: Any = robot.base if isinstance(robot, Variants) else robot
        names = tuple(base.actuated or base.joints) if motors is None else tuple(motors)
        self._motors = np.array(velocities(base, names), int)  # also where no motor is named
        if closing := [name for name in names if base.joint(name).closes_loop]:
            raise ModelError(
                f"motors of environments act along velocities in v, which has no entries for loop joints such as {', '.join(map(repr, closing))}: name other joints "
                "in motors=, or keep these in the tree by Builder.add_joint(..., tree=True)"
            )
        self._efforts = _efforts(base, names, efforts, len(self._motors))
        self._period, self._dt = checked_number("period", period), checked_number("dt", dt)
        self._length = max(1, round(checked_number("seconds", seconds) / self._period))
        if abs(round(period / dt) * dt - period) > 1e-9 * period:
            raise ValueError(f"a period must be a whole number of steps; got {period!r} s and dt = {dt!r} s")
        self._x = np.zeros((0, 0))
        options = {"method": method, "stabilisation": stabilisation, "gains": gains, "dt": self._dt, "limits": "ignore"}
        stepping = Stepping.checked("VectorEnv", base, self._period, options)
        self._prepare = partial(_prepared, [robot], controller, rows=[slice(None)])
        self._stepping = stepping
        (prepared,) = self._prepare(stepping, base.assemble())
        self._felt = prepared.felt_at is not None
        hold(prepared.forces, base.nv)
        self._setup, self._core = prepared.setup, prepared.setup.core()
        parameters = prepared.forces.parameters
        self._parameters = np.array(np.broadcast_to(parameters, (num_envs, parameters.shape[-1])))
        self._variants = self._setup.variants(slice(None))
        self._clock, self._count = 0.0, np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, bool)
        self.metadata = {"autoreset_mode": AutoresetMode(autoreset_mode)}
        self._x = np.zeros((num_envs, self._core.size))
        # one evaluation, to get the size of the observation space
        self._begin(np.arange(num_envs), np.random.default_rng(0))
        seen = self._observed()
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, seen.shape[1:], self._dtype.type)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self._motors),), self._dtype.type)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def q(self) -> Array:
        """Configurations (n, nq)."""
        return self._x[:, : self.robot.nq].copy()

    @property
    def v(self) -> Array:
        """Velocities (n, nv)."""
        return self._x[:, self.robot.nq : self.robot.nq + self.robot.nv].copy()

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without the core's simulations; these are created again from the arguments."""
        return {
            key: x
            for key, x in self.__dict__.items()
            if key not in ("_setup", "_core", "_variants", "_functions", "_prepare")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["_made_with"])  # type: ignore[misc]
        self.__dict__.update(state)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Restart all runs, and the clock; or only some of the runs.

        Parameters
        ----------
        seed : seed of the random initial states; None continues the sequence of random numbers
        options : ``{"reset_mask": mask}`` restarts only the runs for which the mask (n,) is True
        """
        super().reset(seed=seed)
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ShapeError(
                f"options['reset_mask'] must be ({self.num_envs},) of booleans, at least one of them True; got {mask!r}"
            )
        if mask.all():
            self._clock = 0.0
        self._over[mask] = False
        self._begin(np.flatnonzero(mask), self.np_random)
        return self._out(self._observed()), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Simulate a period, and return observations, rewards, terminated, truncated and infos.

        Parameters
        ----------
        actions : (n, motors) fractions of `efforts`, clipped to -1 and 1 (dimensionless)
        """
        if self.metadata["autoreset_mode"] == AutoresetMode.DISABLED and self._over.any():
            raise StateError(
                f"environments {np.flatnonzero(self._over).tolist()} have ended: without automatic resets call reset(options={{'reset_mask': mask}})"
            )
        u = self._efforts * np.clip(_finite(actions, (self.num_envs, len(self._motors))), -1.0, 1.0)
        tau = np.zeros((self.num_envs, self.robot.nv))
        tau[:, self._motors] = u
        set_efforts(self._parameters, tau)
        schedule = _core.Schedule(self._clock, self._clock + self._period, self._dt, 2**31)
        states, status, _ = self._core.run_many(self._x, self._parameters, self._variants, schedule, self._threads)
        if (status == Status.INTERRUPTED).any():
            raise KeyboardInterrupt
        self._clock += self._period
        failed = status != Status.FINISHED
        self._x = np.where(failed[:, None], self._x, states[:, -1])
        self._count += 1
        next_step = self.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
        late = self._over.copy() if next_step else np.zeros(self.num_envs, bool)
        if late.any():  # these runs restart instead of simulating this period
            self._begin(np.flatnonzero(late), self.np_random)
            failed &= ~late
        _, reward, ends, _ = self._functions
        q, v = self.q, self.v
        rewards = np.where(late, 0.0, reward(q, v, u)).astype(self._dtype)
        terminated = failed if ends is None else failed | (np.asarray(ends(q, v), bool) & ~late)
        truncated = (self._count >= self._length) & ~terminated
        self._over = terminated | truncated
        infos: dict[str, Any] = {"status": status}
        seen = self._observed()
        if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP and self._over.any():
            over = self._over.copy()
            last = {"status": status, "_status": over}
            infos |= {"final_obs": self._out(seen), "_final_obs": over, "final_info": last, "_final_info": over}
            self._begin(np.flatnonzero(over), self.np_random)
            seen = np.where(over[:, None], self._observed(), seen)
        return (*(self._out(x) for x in (seen, rewards, terminated, truncated)), infos)

    def _observed(self) -> Array:
        seen = np.asarray(self._functions[0](self.q, self.v), self._dtype)
        if seen.ndim != 2 or len(seen) != self.num_envs:
            raise ShapeError(f"observe must return ({self.num_envs}, k); it returned {seen.shape}")
        return seen

    def _out(self, x: NDArray[Any]) -> Any:
        if self._tensors == "numpy":
            return x
        import torch

        return torch.from_numpy(x)

    def _begin(self, rows: NDArray[np.intp], rng: np.random.Generator) -> None:
        """Set new initial states of the runs with indices `rows`."""
        self._count[rows] = 0
        for _ in range(DRAWS):
            q, v = self._drawn(rows, rng)
            closed = np.asarray(np.isfinite(q).all(axis=1))
            q = np.where(closed[:, None], q, self.robot.neutral())
            # at least two rows, because variants are evaluated in SIMD lanes, which need a batch
            lanes = np.resize(np.arange(len(rows)), max(2, len(rows)))
            setup = self._setup.of(rows[lanes])
            x, begun = setup.begin(self._core, q[lanes], v[lanes], self._clock, {}, self._threads)
            good = closed & (begun == Status.FINISHED)[: len(rows)]
            self._x[rows[good]] = x[: len(rows)][good]
            self._set_defaults(rows[good])
            rows = rows[~good]
            if not rows.size:
                return
        raise AssemblyError(f"no initial state of environment {rows[0]} closes the loops in {DRAWS} random draws")

    def _set_defaults(self, rows: NDArray[np.intp]) -> None:
        """Set the parameters of force elements whose defaults depend on the initial configurations of these runs."""
        if self._felt and rows.size:
            q = np.repeat(self.q[rows[:1]], self.num_envs, axis=0)  # the other runs have no initial configuration now
            q[rows] = self.q[rows]
            stepping = replace(self._stepping, start=self._clock)
            parameters = self._prepare(stepping, q)[0].forces.parameters
            parameters = np.broadcast_to(parameters, (self.num_envs, parameters.shape[-1]))
            self._parameters[rows, : parameters.shape[-1]] = parameters[rows]

    def _drawn(self, rows: NDArray[np.intp], rng: np.random.Generator) -> tuple[Array, Array]:
        start = self._functions[3]
        if callable(start):
            q, v = (np.asarray(x, float) for x in start(rng, rows))
        else:
            n, robot = len(rows), self.robot[rows.tolist()] if isinstance(self.robot, Variants) else self.robot
            ranges = {name: np.broadcast_arrays(*bounds) for name, bounds in start.items()}
            fixed = {name: low + (high - low) * rng.random((n, *low.shape)) for name, (low, high) in ranges.items()}
            q = robot.assemble(fixed=fixed, branch="only", time=self._clock, return_status=True)[0]
            v = np.zeros(self.robot.nv)
        return np.broadcast_to(q, (len(rows), self.robot.nq)), np.broadcast_to(v, (len(rows), self.robot.nv))


def _efforts(robot: Mechanism, names: Sequence[str], efforts: ArrayLike | None, count: int) -> Array:
    limits = []
    for joint in (robot.joint(name).type for name in names):
        limits.append(np.broadcast_to(np.inf if joint.effort_limit is None else joint.effort_limit, joint.nv))
    u = real_array("efforts", np.concatenate(limits) if efforts is None else efforts)
    if u.shape not in ((), (1,), (count,)):
        raise ShapeError(f"efforts must be ({count},), one for each of {', '.join(names)}; got shape {u.shape}")
    u = np.broadcast_to(u, count)
    if not np.isfinite(u).all() or (u <= 0.0).any():
        raise ModelError(
            f"the efforts for an action of 1 must be positive, but {', '.join(names)} have no effort limits: pass efforts=; got {u}"
        )
    return np.asarray(u)


def _finite(actions: Any, shape: tuple[int, ...]) -> Array:
    u = np.asarray(actions, float)
    if u.shape != shape:
        raise ShapeError(f"actions have shape {u.shape}; expected {shape}")
    if not np.isfinite(u).all():
        raise ShapeError("actions must be finite; got NaN or infinity")
    return u


def for_stable_baselines3(env: VectorEnv) -> Any:
    """Return the environments as a ``VecEnv`` of stable-baselines3; a run restarts in the step that ends its episode.

    Parameters
    ----------
    env : environments with NumPy arrays, whose runs restart in the step that ends an episode

    >>> from stable_baselines3 import PPO  # doctest: +SKIP
    >>> PPO("MlpPolicy", sarrus.gymnasium.for_stable_baselines3(env)).learn(100_000)  # doctest: +SKIP
    """
    from stable_baselines3.common.vec_env import VecEnv

    if env.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
        raise ModelError(
            "stable-baselines3 requires environments that restart in the step that ends an episode: AutoresetMode.SAME_STEP"
        )

    if env._tensors != "numpy":
        raise ModelError(
            f"stable-baselines3 requires arrays: make the environments with tensors='numpy'; got {env._tensors!r}"
        )

    class Many(VecEnv):
        def __init__(self) -> None:
            super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

        def __reduce__(self) -> Any:
            """Pickle the function's argument, because a local class cannot be pickled."""
            return for_stable_baselines3, (env,), {"_seeds": self._seeds, "_options": self._options}

        def reset(self) -> Any:
            seed = self._seeds[0]
            self._reset_seeds()  # a seed is used for one reset only
            self._reset_options()
            return env.reset(seed=seed)[0]

        def step_async(self, actions: Any) -> None:
            self.actions = actions

        def step_wait(self) -> Any:
            seen, rewards, terminated, truncated, infos = env.step(self.actions)
            each: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            for i in np.flatnonzero(terminated | truncated):
                each[i] = {"terminal_observation": infos["final_obs"][i], "TimeLimit.truncated": bool(truncated[i])}
            return seen, rewards, terminated | truncated, each

        def close(self) -> None:
            env.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(env, attr_name)] * len(self._get_indices(indices))

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(env, attr_name, value)

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
            raise ModelError(
                "env_method() is not supported, because the environments are one object without methods of single environments"
            )

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * len(self._get_indices(indices))

    return Many()
