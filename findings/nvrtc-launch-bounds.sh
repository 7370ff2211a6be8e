#!/bin/sh
# NVRTC 13.5: a launch bound of 128 threads takes seven eighths of the registers from a kernel whose function does not fit into them. The kernel calls a
# __noinline__ function with 250 live numbers. Without a bound, ptxas gives 255 registers and spills 904 bytes. With __launch_bounds__(128), which permits 512
# registers a thread, it gives 32 registers and spills 18 kB, and takes five times as long to compile. __launch_bounds__(128, 1) gives 255 registers again.
#
# Output seen (registers; bytes of spill stores of the kernel and of the function):
#   nvidia-cuda-nvrtc 13.5.37, sm_90
#     no bound                    255 ['16', '888']
#     __launch_bounds__(128)       32 ['6572', '11588']
#     __launch_bounds__(128, 1)   255 ['24', '888']
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet cuda-bindings==13.5.0 nvidia-cuda-nvrtc==13.5.37
"$folder/venv/bin/python" - <<'PYTHON'
import re
from importlib.metadata import version

from cuda.bindings import nvrtc

NUMBERS, ROUNDS = 250, 8
each = range(NUMBERS)
function = [f"const float x0_{i} = x[{i}];" for i in each]
for r in range(ROUNDS):
    function += [f"const float x{r + 1}_{i} = x{r}_{i} * x{r}_{(7 * i + 3 * r + 1) % NUMBERS} + x{r}_{(11 * i + r) % NUMBERS};" for i in each]
function += [f"y[{i}] = x{ROUNDS}_{i};" for i in each]
kernel = [f"a[{i}] = x[{i} * count + w];" for i in each] + ["rates(a, b);", "rates(b, a);"] + [f"y[{i} * count + w] = a[{i}];" for i in each]


def compiled(bound):
    """Return the registers of a kernel, and the spilled bytes of the kernel and of its function."""
    source = f"""static __device__ __noinline__ void rates(const float *x, float *y) {{ {" ".join(function)} }}
extern "C" __global__ void {bound} worlds(const float *x, float *y, int count) {{
  const int w = blockIdx.x * blockDim.x + threadIdx.x;
  if (w >= count) return;
  float a[{NUMBERS}], b[{NUMBERS}];
  {" ".join(kernel)}
}}"""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"worlds.cu", 0, [], [])
    options = [b"--gpu-architecture=sm_90", b"--ptxas-options=-v"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    text = log.decode(errors="replace")
    assert int(error) == 0, text
    (registers,) = re.findall(r"Used (\d+) registers", text)
    return int(registers), re.findall(r"(\d+) bytes spill stores", text)


print(f"nvidia-cuda-nvrtc {version('nvidia-cuda-nvrtc')}, sm_90")
found = {}
for bound in ("", "__launch_bounds__(128)", "__launch_bounds__(128, 1)"):
    found[bound] = registers, spills = compiled(bound)
    print(f"  {bound or 'no bound':27} {registers:3} {spills}")
spilled = [sum(map(int, spills)) for _, spills in found.values()]
assert [registers for registers, _ in found.values()] == [255, 32, 255], "the registers changed"
assert spilled[1] > 10 * max(spilled[0], spilled[2]) > 0, "the spills changed"
PYTHON
