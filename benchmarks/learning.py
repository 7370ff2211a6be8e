"""What gradients cost for PyTorch and JAX beside the core's own, and how many steps an environment takes: ``python -m benchmarks.learning``.

Medians of processor time of calls that alternate, on one thread; PyTorch and JAX where they are installed.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np

import sarrus

BATCH = 1000


def medians(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            begun = process_time()
            call()
            seconds[name].append(process_time() - begun)
    return {name: float(np.median(taken[1:])) for name, taken in seconds.items()}


def report(what: str, times: dict[str, float]) -> None:
    core = times["core"]
    ratios = ", ".join(f"{name} {x / core:.2f}" for name, x in times.items() if name != "core")
    print(f"{what:52} {1e3 * core:9.2f} ms; times that: {ratios}")


def programs() -> dict[str, Callable[..., tuple[Callable[[], object], Callable[[], object]]]]:
    """Of each that is there, what makes a function's call, and its gradient's, of arrays."""
    found: dict[str, Callable[..., tuple[Callable[[], object], Callable[[], object]]]] = {}
    try:
        import torch

        import sarrus.torch

        torch.set_num_threads(1)

        def of_torch(name, robot, x, w, options):
            x, w = [torch.from_numpy(one) for one in x], torch.from_numpy(w)
            f = getattr(sarrus.torch, name)

            def first(y):
                return y[0] if isinstance(y, tuple) else y

            def gradient():
                leaves = [one.detach().requires_grad_() for one in x]
                return torch.autograd.grad(first(f(robot, *leaves, **options)), leaves, w)

            return lambda: f(robot, *x, **options), gradient

        found["torch"] = of_torch
    except ImportError:
        pass
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        import sarrus.jax

        def of_jax(name, robot, x, w, options):
            x, w = [jax.numpy.asarray(one) for one in x], jax.numpy.asarray(w)
            f = getattr(sarrus.jax, name)

            def first(*x):
                y = f(robot, *x, **options)
                return y[0] if isinstance(y, tuple) else y

            forth, back = jax.jit(first), jax.jit(lambda x, w: jax.vjp(first, *x)[1](w))
            return lambda: jax.block_until_ready(forth(*x)), lambda: jax.block_until_ready(back(x, w))

        found["jax"] = of_jax
    except ImportError:
        pass
    return found


def overheads() -> None:
    rng = np.random.default_rng(0)
    for maker in ("four_bar", "stewart"):
        robot = getattr(sarrus.mechanisms, maker)()
        q = robot.project_configuration(
            robot.integrate(robot.assemble(), 0.01 * rng.standard_normal((BATCH, robot.nv)))
        )
        v = robot.project_velocity(q, rng.standard_normal((BATCH, robot.nv)))
        for name in ("inverse_dynamics", "forward_dynamics"):
            of_function(name, robot, [q, v, rng.standard_normal((BATCH, robot.nv))])


def of_function(name: str, robot: sarrus.Mechanism, x: list[np.ndarray]) -> None:
    w, value, vjp = np.ones(x[1].shape), getattr(robot, name), getattr(sarrus.derivatives, f"{name}_vjp")
    calls = {key: make(name, robot, x, w, {}) for key, make in programs().items()}
    forth = {"core": lambda: value(*x)} | {key: one[0] for key, one in calls.items()}
    back = {"core": lambda: (value(*x), vjp(robot, *x, w))} | {key: one[1] for key, one in calls.items()}
    report(f"{name}, {BATCH} of {robot.name}", medians(forth, 30))
    report("    with its gradient", medians(back, 15))


def rollouts(steps: int = 100) -> None:
    rng, others = np.random.default_rng(0), programs()
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": rng.uniform(-1.0, 1.0, BATCH)})
    u, w = rng.standard_normal((BATCH, steps, 1)), np.zeros((BATCH, steps + 1, 3))
    w[:, -1, 0] = 1.0

    def run():
        return sarrus.simulate_many(
            robot, q, np.zeros(3), 1e-3 * steps, sarrus.control.Efforts(1e-3 * np.arange(steps), u), dt=1e-3
        )

    x = [q, np.zeros((BATCH, 3)), u]
    calls = {key: make("rollouts", robot, x, w, {"dt": 1e-3}) for key, make in others.items()}
    times = medians(
        {"core": run} | {key: one[0] for key, one in calls.items()}
        | {f"gradient by {key}": one[1] for key, one in calls.items()}
        | {"gradient by the core": lambda: sarrus.derivatives.rollouts_vjp(run(), q=w)}, 3,
    )  # fmt: skip
    report(f"rollouts of {steps} steps, {BATCH} of four_bar", times)


def environment(runs: int = 4096) -> None:
    import sarrus.gymnasium

    robot = sarrus.mechanisms.four_bar()
    for stabilisation in ("projection", "baumgarte"):
        for period in (1e-3, 1e-2):
            env = sarrus.gymnasium.VectorEnv(
                robot, runs, observe=lambda q, v: np.hstack([q, v]), reward=lambda q, v, u: -abs(v[:, 0] - 2.0),
                start={"motor": (-0.5, 0.5)}, efforts=[5.0], period=period, stabilisation=stabilisation,
            )  # fmt: skip
            env.reset(seed=0)
            actions = env.action_space.sample()
            taken = medians({"core": lambda env=env, actions=actions: env.step(actions)}, 40)["core"]
            off = abs(robot.constraint_residual(env.q)).max()
            rate = runs * round(period / 1e-3) / taken / 1e6
            print(
                f"environment of {runs} four-bars, periods of {1e3 * period:.0f} steps, {stabilisation}: {rate:.2f} M steps/s, loops open by {off:.1e}"
            )


if __name__ == "__main__":
    environment()
    overheads()
    rollouts()
