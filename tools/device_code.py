"""Size of recorded steps on a GPU, from the report of NVIDIA's compiler; no GPU is needed: python tools/device_code.py [NAME ...].

It requires nvidia-cuda-nvrtc and cuda-bindings. Without names, all mechanisms of the gallery are compiled, which takes about an hour.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import sarrus
from sarrus import control, generation

STEP = 1e-3  # [s]


@dataclass(frozen=True)
class DeviceCode:
    """Statements of a step; registers of its kernel; bytes of spill stores, spill loads and stack of all functions; CPU time of the compiler [s]."""

    statements: int
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    seconds: float


def compiled(text: str, architecture: str = "sm_90") -> tuple[str, float]:
    """Compile CUDA for an architecture; return the compiler's report and its CPU time [s]."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"step.cu", 0, [], [])
    options = [f"--gpu-architecture={architecture}".encode(), b"--ptxas-options=-v"]
    start = time.process_time()
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    seconds = time.process_time() - start
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(log.decode())
    return log.decode(), seconds


def device_code(robot: sarrus.Mechanism, elements: Any = (), scalar: str = "float", **options: Any) -> DeviceCode:
    """Record a step, write it as CUDA, and compile it."""

    def step(recorder: generation.Recorder) -> dict[str, Any]:
        return {
            f"{key}_next": x
            for key, x in generation.recorded_step(recorder, dt=STEP, elements=elements, **options).items()
        }

    with tempfile.TemporaryDirectory() as folder:
        made = generation.generate(
            robot, {"step": step}, folder, name="step", scalar=scalar, targets=["cuda"], most_statements=10**9
        )
        log, seconds = compiled(made.others[0].read_text(encoding="utf-8"))
    sizes = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    stack, stores, loads = (sum(map(int, column)) for column in zip(*sizes, strict=True))
    registers = max(map(int, re.findall(r"Used (\d+) registers", log)))
    return DeviceCode(made.functions["step"].statements, registers, stores, loads, stack, seconds)


def standing(robot: sarrus.Mechanism) -> list[Any]:
    """Return PD motors of all joints of a quadruped, and contacts of its feet with the ground."""
    motors = [
        control.PID(joint, target=0.3, proportional=50.0, integral=0.0, derivative=1.0, limits=(-30.0, 30.0))
        for joint in robot.actuated or robot.joints[1:]
    ]
    feet = [frame for frame in robot.frames if frame.endswith("_foot")]
    return [*motors, *(control.CompliantContact(foot, stiffness=1e4, dissipation=0.1, friction=0.8) for foot in feet)]


def main(names: list[str]) -> None:
    """Print the table."""
    print("| mechanism | statements | registers | spill stores, loads [B] | stack [B] | compile [s] |")
    print("|---|---|---|---|---|---|")
    for name in names or sarrus.mechanisms.__all__:
        try:
            robot = getattr(sarrus.mechanisms, name)()
            c = device_code(robot, standing(robot) if name == "quadruped" else ())
        except (sarrus.errors.ModelError, TypeError) as error:
            print(f"| {name} | {error} | | | | |", flush=True)
            continue
        numbers = f"{c.statements} | {c.registers} | {c.spill_stores}, {c.spill_loads} | {c.stack} | {c.seconds:.1f}"
        print(f"| {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
