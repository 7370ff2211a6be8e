"""Agreement and throughput of sarrus.cuda on a GPU, beside the core's batches on all cores: see device.sh. ``--device cpu`` tries it without a GPU."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import sarrus
import sarrus.cuda
from sarrus.generation.recorder import sample_configurations, sample_motion

AGREEING = ("double_pendulum", "four_bar", "free_flyer", "watt", "quadruped", "delta")
LIMITS = {"double": 1e-12, "float": 1e-5}  # relative to the largest entry
SECONDS = 2.0  # duration of each measurement


def states(robot: sarrus.Mechanism, count: int, samples: int = 64) -> dict[str, Any]:
    """Return states of worlds, of which `samples` differ."""
    rng, time = np.random.default_rng(0), np.zeros(samples)
    q = sample_configurations(robot, time, rng)
    each = {"q": q, **sample_motion(robot, q, time, rng)}
    return {key: x[np.arange(count) % samples] for key, x in each.items()}


def agreement(name: str, scalar: str, device: str) -> dict[str, Any]:
    """Return the largest error of forward dynamics and of ten steps, relative to the core and to the processor's worlds."""
    robot, count = getattr(sarrus.mechanisms, name)(), 256
    given = states(robot, count)
    core = robot.forward_dynamics(given["q"], given["v"], given["tau"], return_status=True)[0]
    both = []
    for where in dict.fromkeys((device, "cpu")):
        worlds = sarrus.cuda.Worlds(robot, count, scalar=scalar, dt=1e-4, substeps=10, device=where)
        worlds.reset(q=given["q"], v=given["v"])
        a = np.asarray(worlds.call("forward_dynamics", tau=given["tau"])["a"], float)
        worlds.step()
        both.append((a, np.asarray(worlds.q, float), np.asarray(worlds.v, float)))

    def error(x: Any, y: Any) -> float:
        return float((np.abs(x - y).max(axis=1) / np.abs(y).max(axis=1).clip(1e-9)).max())

    step = max(error(x, y) for x, y in zip(both[0][1:], both[-1][1:], strict=True))
    return {"forward dynamics": error(both[0][0], core), "step": step, "to reach": LIMITS[scalar]}


def rate(run: Callable[[], Any], wait: Callable[[], Any], count: int) -> float:
    """Return worlds per second."""
    run()
    wait()
    done, begin = 0, perf_counter()
    while perf_counter() - begin < SECONDS:
        for _ in range(4):
            run()
        wait()
        done += 4
    return done * count / (perf_counter() - begin)


def throughput(name: str, scalar: str, function: str, device: str, count: int, threads: int) -> dict[str, Any]:
    """Return worlds per second of a step or of a function, beside those of the core's batches."""
    robot = getattr(sarrus.mechanisms, name)()
    begin = perf_counter()
    worlds = sarrus.cuda.Worlds(robot, count, scalar=scalar, device=device, threads=threads)
    given, few = states(robot, count), states(robot, 4096)
    worlds.reset(q=given["q"], v=given["v"])
    tau = worlds.device.array("tau", given["tau"], worlds.kind)

    def wait() -> None:
        np.asarray(worlds.status)  # a copy to the host waits for the device

    if function == "step":
        run: Callable[[], Any] = worlds.step
        core = lambda: sarrus.simulate_many(  # noqa: E731
            robot, few["q"], few["v"], 1e-2, dt=1e-3, method="semi_implicit", limits="ignore", threads=threads, every=10
        )
    else:
        run = lambda: worlds.call(function, tau=tau)  # noqa: E731
        core = lambda: robot.forward_dynamics(  # noqa: E731
            few["q"], few["v"], few["tau"], threads=threads, return_status=True
        )
    run()
    wait()
    compiled = perf_counter() - begin
    ours = rate(run, wait, count)
    theirs = rate(core, lambda: None, 4096 * (10 if function == "step" else 1))
    return {
        "worlds": count,
        "per second": ours,
        "core per second": theirs,
        "ratio": ours / theirs,
        "compiled in s": compiled,
    }


def training(device: str, seed: int) -> dict[str, Any]:
    """Return the result of training the walking biped of the examples, which needs torch."""
    folder = Path(__file__).parents[1] / "examples"
    sys.path[:0] = [str(folder), str(folder / "learning")]
    from walking_biped import main as trained

    return trained(None, device, 200, 4096, seed)


def main() -> int:
    """Print all rows, and store them."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?", help="file for the results, JSON")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--worlds", type=int, default=2**16)
    arguments = parser.parse_args()
    device, threads = arguments.device, os.cpu_count() or 1
    rows: dict[str, Any] = {}
    sarrus.cuda.Worlds(sarrus.mechanisms.pendulum(), 1, device=device)  # raises if there is no driver or package

    def add(key: str, measure: Callable[..., dict[str, Any]], *values: Any) -> None:
        try:
            rows[key] = measure(*values)
        except Exception as error:  # the other rows are measured anyway
            rows[key] = {"error": f"{type(error).__name__}: {error}"}
        print(f"{key}: {rows[key]}", flush=True)
        if arguments.results:
            Path(arguments.results).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")

    for name in AGREEING:
        for scalar in ("double", "float"):
            add(f"agreement, {name}, {scalar}", agreement, name, scalar, device)
    for name, scalar, function in (
        ("quadruped", "float", "step"), ("four_bar", "float", "step"), ("humanoid_leg", "float", "forward_dynamics"),
        ("delta", "float", "forward_dynamics"), ("stewart", "double", "forward_dynamics"),
    ):  # fmt: skip
        add(
            f"throughput, {name}, {scalar}, {function}",
            throughput,
            name,
            scalar,
            function,
            device,
            arguments.worlds,
            threads,
        )
    add("training, biped, float", training, device, 0)
    return int(any("error" in row for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
