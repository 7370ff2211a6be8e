"""NVIDIA's driver and compiler for tests on machines without a GPU: the CUDA sources are compiled as C++, and threads run one after another."""

import ctypes
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

PRELUDE = """#include <math.h>
#include <string.h>
#undef NAN
#undef INFINITY
#define __CUDACC__
#define __global__
#define __device__
#define __noinline__
#define __forceinline__ inline
#define __launch_bounds__(...)
struct Dim { unsigned x; };
static Dim blockIdx, blockDim, threadIdx;
"""


def cubin(source, architecture):
    """Compile a CUDA source as C++, with a function `launch` that runs all threads."""
    assert "#include" not in source.partition("#else")[0]  # NVRTC has no headers
    name, arguments = re.search(r"^SARRUS_KERNEL (\w+)\((.*)\) \{$", source, re.MULTILINE).groups()
    types = [argument.rpartition(" ")[0] for argument in arguments.split(", ")]
    values = ", ".join(f"*({kind} *)arguments[{k}]" for k, kind in enumerate(types))
    launch = f"""
extern "C" void launch(unsigned blocks, unsigned threads, void **arguments) {{
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {name}({values});
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cc"
        file.write_text(PRELUDE + source + launch)
        flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared"]
        subprocess.run(["c++", *flags, file, "-o", file.with_suffix(".so")], check=True)
        return file.with_suffix(".so").read_bytes(), ""


class Driver:
    """The functions of ``cuda.bindings.driver`` that sarrus calls, with the host's memory as the device's."""

    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0
    )

    def __init__(self, memory=2**30):
        self.memory, self.blocks = memory, {}

    def __getattr__(self, name):
        if name not in ("cuInit", "cuCtxSetCurrent", "cuStreamSynchronize"):
            raise AttributeError(name)
        return lambda *_: (0,)

    def cuDeviceGet(self, index):
        return 0, index

    def cuDevicePrimaryCtxRetain(self, device):
        return 0, "context"

    def cuDeviceGetAttribute(self, attribute, device):
        return 0, attribute

    def cuMemGetInfo(self):
        return 0, self.memory, self.memory

    def cuMemAllocAsync(self, size, stream):
        block = ctypes.create_string_buffer(b"\xff" * size, size)
        self.blocks[ctypes.addressof(block)] = block
        return 0, ctypes.addressof(block)

    def cuMemFreeAsync(self, at, stream):
        del self.blocks[at]
        return (0,)

    def cuMemsetD8Async(self, at, value, size, stream):
        ctypes.memset(at, value, size)
        return (0,)

    def cuMemcpyHtoDAsync(self, to, at, size, stream):
        ctypes.memmove(to, at, size)
        return (0,)

    def cuMemcpyDtoH(self, to, at, size):
        ctypes.memmove(to, at, size)
        return (0,)

    def cuModuleLoadData(self, content):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(content)
            file.flush()
            return 0, ctypes.CDLL(file.name)

    def cuModuleGetFunction(self, module, name):
        return 0, module.launch

    def cuLaunchKernel(self, function, blocks, y, z, threads, *rest):
        *_, arguments, extra = rest
        function(blocks, threads, ctypes.c_void_p(arguments))
        return (0,)


NVRTC = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
