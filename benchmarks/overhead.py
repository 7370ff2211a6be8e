"""Overhead of each function of one state: instructions of a call from Python outside of the kernels, counted by callgrind.

    python -m benchmarks.overhead [--keep]

A call is repeated after warm-up, and the instructions of an empty loop are subtracted. What a kernel calls, such as a sine, belongs to the kernel. The
counts depend on the versions of Python and NumPy and on the compiler, but neither on the processor's load nor on its speed. ``overhead.json`` stores
them for one version of Python; --keep stores new ones. A test compares them.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from .allocations import compiler

KEPT = Path(__file__).with_suffix(".json")
VERSION = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
CALLS = 2  # calls that are counted together
HEADER = Path("/usr/include/valgrind/callgrind.h")

# Calls at the state (q, v, a) of a closed chain, a Delta. Names of functions are attributes of the mechanism, or of a module.
ROBOT = {
    "acceleration": "q, v, a, 'platform'", "actuation_matrix": "q", "actuator_efforts": "q, v, a", "actuator_efforts, limits": "q, v, a, limits=limits",
    "actuator_efforts, actuated": "q, v, a, actuated=motors", "actuator_efforts, reactions": "q, v, a, return_reactions=True",
    "assemble": "q, fixed=fixed", "bias_forces": "q, v", "center_of_mass": "q", "complete_acceleration": "q, v, rates", "complete_velocity": "q, rates",
    "complete_velocity, frame": "q, frames=frame_rates", "constraint_bias": "q, v", "constraint_jacobian": "q",
    "constraint_jacobian_derivative": "q, v", "constraint_residual": "q", "constraint_velocity": "q", "contacts": "q", "coriolis_matrix": "q, v", "difference": "q, q",
    "forward_dynamics": "q, v, tau", "forward_dynamics, wrenches": "q, v, tau, wrenches=wrenches", "forward_dynamics, reactions": "q, v, tau, return_reactions=True",
    "gravity_forces": "q", "impact": "q, v", "integrate": "q, v", "internal_efforts": "q", "inverse_dynamics": "q, v, a", "inverse_kinematics": "targets, near=q",
    "jacobian": "q, 'platform'", "jacobian_derivative": "q, v, 'platform'", "joint_states": "q, v, a", "joint_wrenches": "q, v, a",
    "kinematics": "q, v, a", "kinetic_energy": "q, v", "linearize": "q, v", "linearize, coordinates": "q, v, tau, coordinates='actuated'",
    "loop_jacobian": "q, 'platform'", "mass_matrix": "q",
    "mass_matrix_inverse": "q", "momentum": "q, v", "normalize": "q", "pose": "q, 'platform'", "potential_energy": "q", "project_configuration": "q",
    "project_velocity": "q, v", "regressor": "q, v, a", "velocity": "q, v, 'platform'",
}  # fmt: skip
DERIVATIVES = {
    "acceleration": "q, v, a, 'platform'", "actuator_efforts": "q, v, a", "actuator_efforts_vjp": "q, v, a, u", "center_of_mass": "q",
    "constraint_rates": "q, v", "constraint_residual": "q", "coordinates_by_tangent": "q", "difference": "q, q",
    "forward_dynamics": "q, v, tau", "forward_dynamics_jvp": "q, v, tau, v, v, v", "forward_dynamics_vjp": "q, v, tau, v", "gravity_forces": "q", "integrate": "q, v",
    "inverse_dynamics": "q, v, a", "inverse_dynamics_jvp": "q, v, a, v, v, v", "inverse_dynamics_vjp": "q, v, a, v", "kinetic_energy": "q, v",
    "momentum": "q, v", "pose": "q, 'platform'", "potential_energy": "q", "tangent_by_coordinates": "q", "velocity": "q, v, 'platform'",
}  # fmt: skip
OTHERS = {
    "TaskControl()": "law(0.0, q, v)", "TaskControl.solve": "law.solve(0.0, q, v)",
}  # fmt: skip
# public functions that search, analyse, simulate or return descriptions, and functions of floating mechanisms
NOT_OF_ONE_STATE = {
    "assembly_modes", "configuration", "constraint", "contact_dynamics", "contact_impact", "follow", "joint", "mobility", "mobility_map", "neutral", "plot", "random",
    "replace", "save", "to_builder", "variants", *(f"derivatives.{name}" for name in ("assembled_positions", "centroidal_momentum", "dimensions", "rollouts_vjp", "step", "step_jvp", "step_vjp")),
}  # fmt: skip


def codes() -> dict[str, str]:
    """Return the calls by name."""
    calls = {name: f"robot.{name.split(',')[0]}({inputs})" for name, inputs in ROBOT.items()}
    calls |= {f"derivatives.{name}": f"D.{name}(robot, {inputs})" for name, inputs in DERIVATIVES.items()}
    return calls | OTHERS


def can_count() -> bool:
    """Return True if callgrind, its header and a C compiler are on this machine."""
    return sys.platform == "linux" and bool(shutil.which("valgrind") and shutil.which(compiler())) and HEADER.exists()


def state() -> dict[str, Any]:
    """Return the objects to which the calls refer."""
    import numpy as np

    import sarrus
    from sarrus import control

    robot = sarrus.mechanisms.delta()
    q = robot.assemble()
    rates = dict.fromkeys(robot.actuated, 0.1)
    v = robot.complete_velocity(q, rates)
    tau = np.zeros(robot.nv)
    motors = robot.actuated
    point = robot.pose(q, "platform")[:3, 3]
    return {
        "robot": robot, "q": q, "v": v, "tau": tau, "a": robot.forward_dynamics(q, v, tau), "u": np.ones(robot.nu), "rates": rates, "motors": motors,
        "fixed": {name: float(q[robot.joint(name).q_slice][0]) for name in motors}, "frame_rates": {"platform": (0.0, 0.0, 0.1)},
        "targets": {"platform": tuple(point.tolist())}, "wrenches": {"platform": np.ones(6)}, "limits": (-1e3, 1e3), "D": sarrus.derivatives,
        "law": control.TaskControl(robot, control.FrameTask("platform", point, stiffness=400.0)),
    }  # fmt: skip


def count(names: Iterable[str] | None = None) -> dict[str, dict[str, float]]:
    """Return the thousands of instructions of a call outside of the kernels ("overhead"), and in the kernels ("kernel"), for each function."""
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "requests.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([compiler(), "-O1", "-fPIC", "-shared", str(source), "-o", str(requests)], check=True)
        chosen = list(codes() if names is None else names)
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts", "--combine-dumps=no", "--dump-line=no", sys.executable,
             "-m", "benchmarks.overhead", "--here", str(requests), *chosen],
            env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, cwd=Path(__file__).parents[1], capture_output=True, check=True,
        )  # fmt: skip
        dumps = sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        counts = [_read(path.read_text()) for path in dumps]
    _, (empty, _), *rest = counts[: len(chosen) + 2]
    return {
        name: {"overhead": round((total - kernel - empty) / CALLS / 1e3, 2), "kernel": round(kernel / CALLS / 1e3, 2)}
        for name, (total, kernel) in zip(chosen, rest, strict=True)
    }


def _read(dump: str) -> tuple[int, int]:
    """Return all instructions of a dump, and those of calls from other files into the file of the kernels."""
    files: dict[str, str] = {}

    def named(text: str) -> str:
        number, _, path = text.partition(" ")
        return files.setdefault(number, path)

    kernel, here, there, inclusive = 0, "", "", False
    for line in dump.splitlines():
        if inclusive:
            kernel += int(line.split()[1]) if "_kernels" in there and "_kernels" not in here else 0
            inclusive, there = False, here
        elif line.startswith("ob="):
            here = there = named(line[3:])
        elif line.startswith("cob="):
            there = named(line[4:])
        elif line.startswith("calls="):
            inclusive = True
    total = re.search(r"^(?:totals|summary): (\d+)", dump, re.M)
    return int(total[1]) if total else 0, kernel


def _count_here(requests: str, names: Iterable[str]) -> None:
    """Count, in the process that `count` starts."""
    callgrind = ctypes.CDLL(requests)
    objects, known = state(), codes()
    loop = "for _ in loops: {}"
    compiled: Mapping[str, CodeType] = {
        name: compile(loop.format(code), name, "exec")
        for name, code in {"first": "pass", "empty": "pass", **{n: known[n] for n in names}}.items()
    }
    import warnings

    warnings.simplefilter("ignore")
    for code in compiled.values():  # caches are filled before the slow part begins
        exec(code, objects | {"loops": range(20)})
    gc.disable()
    callgrind.begin()
    for name, code in compiled.items():
        inputs, text = objects | {"loops": range(CALLS)}, name.encode()
        callgrind.zero()
        exec(code, inputs)
        callgrind.dump(text)


def main() -> None:
    counts = count()
    for name, row in sorted(counts.items(), key=lambda item: item[1]["overhead"]):
        print(f"{name:40} {row['overhead']:9.2f} {row['kernel']:9.2f}")
    if "--keep" in sys.argv:
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        kept[VERSION] = {name: row["overhead"] for name, row in counts.items()}
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    if "--here" in sys.argv:
        _count_here(sys.argv[2], sys.argv[3:])
    else:
        main()
