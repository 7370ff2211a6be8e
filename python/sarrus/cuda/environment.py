"""Environments for reinforcement learning whose states, observations and rewards are torch's tensors on the device of the worlds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import ArrayLike, checked_count, checked_number, real_array
from .._files import needed
from ..errors import ModelError, ShapeError
from .devices import Host
from .worlds import Worlds

Tensor = Any  # torch.Tensor


class Environment:
    """Environments with the methods and attributes that rsl_rl and IsaacLab's users expect: a world is one environment.

    An action is constant during `substeps` steps of the worlds. An environment whose episode ends restarts in the same step. A world that fails ends
    its episode in its last valid state, so that observations are finite. If the worlds have variants, each episode draws one (domain randomisation).
    Needs ``pip install torch``.

    Parameters
    ----------
    worlds : the worlds
    observe : function (q (n, nq) [rad, m], v (n, nv) [rad/s, m/s]) of tensors that returns observations (n, k)
    reward : function (q, v, u (n, motors) [N m, N]) that returns rewards (n,) for the state after an action and its efforts
    q : (rows, nq) initial configurations with closed loops [rad, m]; each episode draws one row. Variants of different lengths need their own
        configurations: (variants, rows, nq)
    v : (rows, nv) or (variants, rows, nv) initial velocities [rad/s, m/s]; default: zero
    ends : function (q, v) that returns True for terminated episodes (n,)
    efforts : (motors,) efforts for actions of 1 [N m, N]; actions are clipped to -1 and 1. Default: the joints' limits
    seconds : duration after which an episode is truncated [s]
    seed : seed of the drawn rows and variants, the same on all devices

    Attributes
    ----------
    num_envs, num_obs, num_actions : sizes
    max_episode_length, episode_length_buf : largest length of an episode, and lengths (n,) of the present episodes [actions]
    device : torch's device

    Examples
    --------
    >>> import torch                                                        # doctest: +SKIP
    >>> robot = sarrus.mechanisms.pendulum()                                # doctest: +SKIP
    >>> env = sarrus.cuda.Environment(                                      # doctest: +SKIP
    ...     sarrus.cuda.Worlds(robot, 64, substeps=20, device="cpu"), observe=lambda q, v: torch.cat([q.cos(), q.sin(), v], 1),
    ...     reward=lambda q, v, u: -q.cos()[:, 0], q=[[0.1], [-0.1]], efforts=[2.0], seconds=4.0)
    >>> observations, rewards, dones, extras = env.step(torch.zeros(64, 1))  # doctest: +SKIP
    """

    def __init__(
        self, worlds: Worlds, observe: Callable[[Tensor, Tensor], Tensor], reward: Callable[[Tensor, Tensor, Tensor], Tensor], *,
        q: ArrayLike, v: ArrayLike | None = None, ends: Callable[[Tensor, Tensor], Tensor] | None = None, efforts: ArrayLike | None = None,
        seconds: float = 20.0, seed: int = 0,
    ) -> None:  # fmt: skip
        if not isinstance(worlds, Worlds):
            raise TypeError(f"worlds must be sarrus.cuda.Worlds; got {worlds!r}")
        torch = self._torch = needed("torch", "sarrus.cuda.Environment needs torch", "torch")
        self.worlds = worlds
        self.cfg: dict[str, Any] = {}
        on_host = isinstance(worlds.device, Host)
        self.device = torch.device("cpu" if on_host else f"cuda:{worlds.device.index}")
        arrays = (worlds.q, worlds.v, worlds.status)
        # the memory of the worlds' arrays
        self.q, self.v, self._status = map(
            torch.from_numpy if on_host else lambda x: torch.as_tensor(x, device=self.device), arrays
        )
        self._functions = (observe, reward, ends)
        start = np.atleast_2d(real_array("q", q))
        rest = np.zeros((1, worlds.robot.nv)) if v is None else np.atleast_2d(real_array("v", v))
        of_q, of_v = (f"(rows, {n})" for n in (worlds.robot.nq, worlds.robot.nv))
        of_rest = (*start.shape[:-1], worlds.robot.nv)
        if start.shape[:-2] not in ((), (worlds.variants,)) or start.shape[-1] != worlds.robot.nq:
            raise ShapeError(f"q must be {of_q} or {worlds.variants} of these for the variants; got {start.shape}")
        if rest.shape not in (of_rest, (1, worlds.robot.nv)):
            raise ShapeError(f"v must be {of_v} or {of_rest}; got {rest.shape}")
        rest = np.broadcast_to(rest, of_rest)
        self._starts = [torch.tensor(x.astype(worlds.kind), device=self.device) for x in (start, rest)]
        limits = worlds.effort_limits if efforts is None else real_array("efforts", efforts)
        if limits.shape not in ((), (1,), (worlds.motors,)) or not (np.isfinite(limits) & (limits > 0.0)).all():
            raise ModelError(
                f"efforts for actions of 1 must be positive and finite, one for each of {worlds.motors} motors; got {limits}"
            )
        self._efforts = torch.tensor(np.broadcast_to(limits, worlds.motors).astype(worlds.kind), device=self.device)
        self.max_episode_length = max(1, round(checked_number("seconds", seconds) / (worlds.dt * worlds.substeps)))
        self._generator = torch.Generator().manual_seed(checked_count("seed", seed, 0))
        self.num_envs, self.num_actions = worlds.count, worlds.motors
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self.num_obs = self.reset()[0].shape[1]

    def reset(self, ids: Tensor | None = None) -> tuple[Tensor, dict[str, Any]]:
        """Restart environments, and return the observations (n, k) of all, and an empty mapping.

        Parameters
        ----------
        ids : indices of the environments; default: all
        """
        mask = self._torch.full((self.num_envs,), ids is None, dtype=self._torch.bool, device=self.device)
        if ids is not None:
            mask[ids] = True
        self._restart(mask)
        return self.get_observations(), {}

    def get_observations(self) -> Tensor:
        """Return the observations (n, k)."""
        return self._functions[0](self.q, self.v)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        """Apply actions, and return observations (n, k), rewards (n,), ended episodes (n,), and a mapping with "time_outs" (n,) and "status" (n,).

        Parameters
        ----------
        actions : (n, motors) fractions of `efforts` (dimensionless)
        """
        _, reward, ends = self._functions
        u = self._efforts * actions.detach().to(self._efforts).clamp(-1.0, 1.0)
        self.worlds.step(u)
        self.episode_length_buf += 1
        status = self._status.clone()
        terminated = status % 8 != 0
        if ends is not None:
            terminated |= ends(self.q, self.v)
        rewards = reward(self.q, self.v, u)
        time_outs = (self.episode_length_buf >= self.max_episode_length) & ~terminated
        dones = terminated | time_outs
        self._restart(dones)
        return self.get_observations(), rewards, dones, {"time_outs": time_outs, "status": status}

    def _restart(self, mask: Tensor) -> None:
        def drawn(n: int) -> Tensor:
            return self._torch.randint(n, (self.num_envs,), generator=self._generator).to(self.device)

        rows, several = drawn(self._starts[0].shape[-2]), self.worlds.variants > 1
        variants = drawn(self.worlds.variants).int() if several else None
        states = (x[rows] if x.ndim == 2 else x[variants, rows] for x in self._starts)
        self.worlds.reset(mask, *states, variants=variants)
        self.episode_length_buf[mask] = 0
