"""The ankle of a humanoid on a microcontroller: generated C in single precision, compiled for a Cortex-M4F, run under qemu.

Two motors on the shank move the foot by rods. A joint controller at 1 kHz needs three quantities: the motor angles for given angles of the foot, the
Jacobian between them, and the foot's torques for given motor efforts. One generated function computes all of them. The example needs Debian's
gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. Run ``python examples/embedded/ankle.py [FOLDER]``.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import sarrus

HERE = Path(__file__).parent
NEEDED = ("arm-none-eabi-gcc", "arm-none-eabi-nm", "qemu-system-arm")
CPU = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Werror"]
FAST = ["-O2", "-ffp-contract=fast", "-fno-math-errno"]
STATES, MOTORS = 20, ["left_motor", "right_motor"]


def states(leg, rng):
    """Return configurations within 0.15 rad of the home configuration, and previous configurations within 0.03 rad of them."""
    home = leg.assemble()
    foot = home[leg.joint("ankle").q_slice] + rng.uniform(-0.15, 0.15, (STATES, 2))
    q = np.array([leg.assemble(near=home, fixed={"ankle": angles}) for angles in foot])
    before = foot + rng.uniform(-0.03, 0.03, foot.shape)
    return q, np.array([leg.assemble(near=x, fixed={"ankle": angles}) for angles, x in zip(before, q, strict=True)])


def table(name, x):
    """Return a C array of floats."""
    rows = ",\n  ".join("{" + ", ".join(f"{y:.9e}f" for y in row) + "}" for row in x)
    return f"static const float {name}[{x.shape[0]}][{x.shape[1]}] = {{\n  {rows}}};\n"


def run(folder):
    """Return (instructions of a call, output of the program, bytes of code, bytes of stack, external functions)."""
    leg = sarrus.mechanisms.humanoid_leg()
    rng = np.random.default_rng(0)
    q, last = states(leg, rng)
    made = sarrus.generation.generate(
        leg, {"ankle": f"transmission:ankle>{','.join(MOTORS)}"}, folder, scalar="float", configurations=q[:6]
    )
    motors = [leg.joint(name).q_slice.start for name in MOTORS]
    tables = {
        "foot": q[:, leg.joint("ankle").q_slice],
        "last": last,
        "effort": rng.normal(size=(STATES, 2)),
        "motor": q[:, motors],
    }
    text = f"#define STATES {STATES}\n" + "".join(table(name, x) for name, x in tables.items())
    (folder / "states.h").write_text(text)
    command = ["arm-none-eabi-gcc", *CPU, *STRICT, *FAST, "-fstack-usage", "-c", made.source.name, "-o", "ankle.o"]
    subprocess.run(command, cwd=folder, check=True)
    undefined = subprocess.run(
        ["arm-none-eabi-nm", "-u", "ankle.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    sizes = subprocess.run(
        ["arm-none-eabi-nm", "-S", "ankle.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    code = sum(int(line.split()[1], 16) for line in sizes.stdout.splitlines() if len(line.split()) == 4)
    stack = max(int(line.split("\t")[1]) for line in (folder / "ankle.su").read_text().splitlines())
    files = [str(HERE / "start.c"), str(HERE / "main.c"), "ankle.o", "-I", "."]
    link = ["--specs=rdimon.specs", "-T", str(HERE / "link.ld"), "-lm", "-o", "ankle.elf"]
    subprocess.run(["arm-none-eabi-gcc", *CPU, "-O1", "-std=gnu99", *files, *link], cwd=folder, check=True)
    machine = ["-M", "mps2-an386", "-nographic", "-semihosting", "-icount", "shift=0", "-kernel", "ankle.elf"]
    output = subprocess.run(
        ["qemu-system-arm", *machine], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return int(output.stdout.split()[0]), output.stdout.strip(), code, stack, undefined.stdout.split()


def main():
    """Run the example, and print its results."""
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        print(f"needs {', '.join(missing)}")
        return
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    _, output, code, stack, calls = run(folder)
    print(output)
    print(f"{code} bytes of code, {stack} bytes of stack, external functions: {', '.join(calls) or 'none'}")


if __name__ == "__main__":
    main()
