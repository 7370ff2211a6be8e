"""Cost of gradients in PyTorch and JAX, compared with the core's gradients; steps per second of environments. ``python -m benchmarks --learning``

Times are medians of the processor time of alternating calls, on one thread. PyTorch and JAX are measured if they are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time

import numpy as np

import sarrus

from .tables import Row, Run, installed


def rows(run: Run) -> Iterator[Row]:
    """Measure times of the core [ms], times through PyTorch and JAX relative to these, and steps of environments."""
    if installed("gymnasium"):
        yield from environment(run)
    yield from overheads(run)
    yield rollouts(run)


def medians(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median time of each function [s]."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            begun = process_time()
            call()
            seconds[name].append(process_time() - begun)
    return {name: float(np.median(taken[1:])) for name, taken in seconds.items()}


def _row(what: str, times: dict[str, float]) -> Row:
    core = times["core"]
    ratios = ", ".join(f"{name} {x / core:.2f}" for name, x in times.items() if name != "core")
    return Row(what, 1e3 * core, "ms", ratios and f"times that: {ratios}")


def programs() -> dict[str, Callable[..., tuple[Callable[[], object], Callable[[], object]]]]:
    """Return for each installed library two functions: one creates a call of a function, the other a call of its gradient."""
    results: dict[str, Callable[..., tuple[Callable[[], object], Callable[[], object]]]] = {}
    try:
        import torch

        import sarrus.torch

        torch.set_num_threads(1)

        def of_torch(name, robot, x, w, options):
            x, w = [torch.from_numpy(array) for array in x], torch.from_numpy(w)
            f = getattr(sarrus.torch, name)

            def first(y):
                return y[0] if isinstance(y, tuple) else y

            def gradient():
                leaves = [array.detach().requires_grad_() for array in x]
                return torch.autograd.grad(first(f(robot, *leaves, **options)), leaves, w)

            return lambda: f(robot, *x, **options), gradient

        results["torch"] = of_torch
    except ImportError:
        pass
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        import sarrus.jax

        def of_jax(name, robot, x, w, options):
            x, w = [jax.numpy.asarray(array) for array in x], jax.numpy.asarray(w)
            f = getattr(sarrus.jax, name)

            def first(*x):
                y = f(robot, *x, **options)
                return y[0] if isinstance(y, tuple) else y

            forth, back = jax.jit(first), jax.jit(lambda x, w: jax.vjp(first, *x)[1](w))
            return lambda: jax.block_until_ready(forth(*x)), lambda: jax.block_until_ready(back(x, w))

        results["jax"] = of_jax
    except ImportError:
        pass
    return results


def overheads(run: Run) -> Iterator[Row]:
    rng, batch = np.random.default_rng(0), run.of(1000, 1000, 8)
    for maker in ("four_bar", "stewart"):
        robot = getattr(sarrus.mechanisms, maker)()
        q = robot.project_configuration(
            robot.integrate(robot.assemble(), 0.01 * rng.standard_normal((batch, robot.nv)))
        )
        v = robot.project_velocity(q, rng.standard_normal((batch, robot.nv)))
        for name in ("inverse_dynamics", "forward_dynamics"):
            run.tell(f"{name} of {robot.name}")
            yield from of_function(name, robot, [q, v, rng.standard_normal((batch, robot.nv))], run)


def of_function(name: str, robot: sarrus.Mechanism, x: list[np.ndarray], run: Run) -> Iterator[Row]:
    w, value, vjp = np.ones(x[1].shape), getattr(robot, name), getattr(sarrus.derivatives, f"{name}_vjp")
    calls = {key: make(name, robot, x, w, {}) for key, make in programs().items()}
    forth = {"core": lambda: value(*x)} | {key: call[0] for key, call in calls.items()}
    back = {"core": lambda: (value(*x), vjp(robot, *x, w))} | {key: call[1] for key, call in calls.items()}
    what = f"{name}, {len(w)} of {robot.name}"
    yield _row(what, medians(forth, run.of(30, 10, 1)))
    yield _row(f"{what}, with its gradient", medians(back, run.of(15, 5, 1)))


def rollouts(run: Run) -> Row:
    rng, others, (batch, steps) = np.random.default_rng(0), programs(), run.of((1000, 100), (1000, 100), (8, 4))
    run.tell("rollouts")
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": rng.uniform(-1.0, 1.0, batch)})
    u, w = rng.standard_normal((batch, steps, 1)), np.zeros((batch, steps + 1, 3))
    w[:, -1, 0] = 1.0

    def runs() -> sarrus.Trajectory:
        return sarrus.simulate_many(
            robot, q, np.zeros(3), 1e-3 * steps, sarrus.control.EffortTable(1e-3 * np.arange(steps), u), dt=1e-3
        )

    x = [q, np.zeros((batch, 3)), u]
    calls = {key: make("rollouts", robot, x, w, {"dt": 1e-3}) for key, make in others.items()}
    times = medians(
        {"core": runs} | {key: call[0] for key, call in calls.items()}
        | {f"gradient by {key}": call[1] for key, call in calls.items()}
        | {"gradient by the core": lambda: sarrus.derivatives.rollouts_vjp(runs(), q=w)}, run.of(3, 1, 1),
    )  # fmt: skip
    return _row(f"rollouts of {steps} steps, {batch} of four_bar", times)


def environment(run: Run) -> Iterator[Row]:
    import sarrus.gymnasium

    robot, runs = sarrus.mechanisms.four_bar(), run.of(4096, 4096, 16)
    for stabilisation in ("projection", "baumgarte"):
        for period in (1e-3, 1e-2):
            what = f"environment of {runs} four-bars, periods of {1e3 * period:.0f} steps, {stabilisation}"
            run.tell(what)
            env = sarrus.gymnasium.VectorEnv(
                robot, runs, observe=lambda q, v: np.hstack([q, v]), reward=lambda q, v, u: -abs(v[:, 0] - 2.0),
                start={"motor": (-0.5, 0.5)}, efforts=[5.0], period=period, stabilisation=stabilisation,
            )  # fmt: skip
            env.reset(seed=0)
            actions = env.action_space.sample()
            taken = medians({"core": lambda env=env, actions=actions: env.step(actions)}, run.of(40, 10, 1))["core"]
            off = abs(robot.constraint_residual(env.q)).max()
            yield Row(what, runs * round(period / 1e-3) / taken / 1e6, "million steps/s", f"loops open by {off:.1e}")
