"""The processor and GPUs: memory, compilation of kernels with a cache on disk, and launches."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .._arrays import NDArray
from .._files import needed, replacing
from ..errors import SarrusError, ShapeError
from ..generation.targets import shared_library
from .kernels import THREADS, Kernel

AnyArray = Any  # array on a device
LEAST_WORLDS = (
    256  # worlds for each thread of the processor; with fewer worlds, starting threads takes longer than they save
)
LANES = 8  # largest number of worlds in a register
# More than -O2 costs time and gains nothing, because the code is straight. With fewer candidates for a register that must be spilled, GCC needs two
# thirds of the time, or less for the longest functions, and its code is as fast. Clang ignores this parameter.
FLAGS = (
    "-std=c++17",
    "-O2",
    "--param=lra-max-considered-reload-pseudos=5",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
)


class View(ctypes.Structure):
    """Argument of a kernel: pointer, and distances between worlds and between numbers."""

    _fields_ = (("at", ctypes.c_void_p), ("world", ctypes.c_longlong), ("number", ctypes.c_longlong))


NUMBERS = {"int": ctypes.c_int, "double": ctypes.c_double}


def cached(key: str, suffix: str, compile: Any) -> bytes:
    """Return the content of a file of the cache; if there is none, write the result of `compile` into it.

    The cache is the folder SARRUS_CACHE, or ~/.cache/sarrus. Names of its files are hashes of all that determines their content.
    """
    folder = Path(os.environ.get("SARRUS_CACHE") or Path.home() / ".cache" / "sarrus")
    path = folder / f"{sha256(key.encode()).hexdigest()[:40]}{suffix}"
    if path.is_file():
        return path.read_bytes()
    content: bytes = compile()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write_bytes(content)
    except OSError:  # a home that cannot be written; the kernel is compiled again by the next process
        pass
    return content


# ---- the processor ---------------------------------------------------------------------------------------------------


@cache
def _processor(compiler: str) -> str:
    """Return the compiler's definitions for this processor: its version, and the processor's instruction sets."""
    command = [compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


class Host:
    """The processor. Arrays are NumPy's; kernels are compiled by `compiler`, which is None if there is none."""

    def __init__(self, threads: int) -> None:
        self.threads, self._pool = threads, ThreadPoolExecutor(threads) if threads > 1 else None
        self.compiler = shutil.which("c++")

    def free(self) -> float:
        """Return the memory that arrays may use [bytes]."""
        try:
            return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):  # systems that do not report it
            return np.inf

    def zeros(self, worlds: int, numbers: int, kind: Any) -> AnyArray:
        """Return an array (worlds, numbers) of zeros, in which a number of all worlds is contiguous."""
        return np.zeros((numbers, worlds), kind).T

    def array(self, name: str, x: Any, kind: Any) -> AnyArray:
        """Return an argument as an array of a type."""
        return _on_host(name, x, kind)

    def compiled(self, kernel: Kernel) -> Any:
        def compile() -> bytes:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / "kernel.cc"
                source.write_text(kernel.source, encoding="utf-8")
                return shared_library("c++", FLAGS, source.with_suffix(".so"), source).read_bytes()

        content = cached("\n".join([kernel.source, *FLAGS, _processor(self.compiler or "c++")]), ".so", compile)
        with tempfile.NamedTemporaryFile(suffix=".so") as file:  # the loader reads files only
            file.write(content)
            file.flush()
            function = getattr(ctypes.CDLL(file.name), kernel.name)
        function.restype = None
        kinds = [NUMBERS[kind] for kind in kernel.numbers]
        function.argtypes = [ctypes.c_longlong, ctypes.c_longlong, *[View] * len(kernel.arrays), *kinds]
        return function

    def launch(self, function: Any, count: int, views: Sequence[View], numbers: Sequence[Any]) -> None:
        parts = min(self.threads, max(1, count // LEAST_WORLDS))
        ends = [count * k // (parts * LANES) * LANES for k in range(parts)] + [count]
        if self._pool is None or parts == 1:
            function(0, count, *views, *numbers)
        else:
            runs = [self._pool.submit(partial(function, *part, *views, *numbers)) for part in pairwise(ends)]
            for run in runs:
                run.result()


def _on_host(name: str, x: Any, kind: Any) -> NDArray[Any]:
    if hasattr(x, "numpy") and hasattr(x, "detach"):  # a tensor of torch, also of a GPU
        x = x.detach().cpu()
    try:
        array = np.asarray(x)
        if array.dtype.kind in {np.uint8: "b", np.int32: "iu"}.get(kind, "biuf"):
            return array.astype(kind, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    expected = {np.uint8: "booleans", np.int32: "integers"}.get(kind, "real numbers")
    raise TypeError(f"{name} must be an array of {expected}; got {x!r}")


# ---- GPUs ------------------------------------------------------------------------------------------------------------

PACKAGES = "cuda-bindings nvidia-cuda-nvrtc"
CURE = "sarrus.cuda needs NVIDIA's driver and its packages for Python; without a GPU use device='cpu'"


def _bindings(name: str) -> ModuleType:
    module: ModuleType = needed(f"cuda.bindings.{name}", CURE, PACKAGES)
    return module


def _checked(answer: Any, task: str, log: Any = None) -> Any:
    error, *results = answer
    if int(error):
        raise SarrusError(f"{task} failed: {error.name}{log() if log else ''}; {CURE}")
    return results[0] if len(results) == 1 else results


def cubin(source: str, architecture: str) -> tuple[bytes, str]:
    """Compile a kernel by NVRTC, and return its machine code, and the compiler's report of registers and stack. No GPU is necessary.

    Parameters
    ----------
    source : CUDA source of the kernel, without includes
    architecture : architecture of a GPU, such as "sm_90"
    """
    nvrtc = _bindings("nvrtc")
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"worlds.cu", 0, [], []), "nvrtcCreateProgram")
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"--ptxas-options=-v", b"-w"]
    answer = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program), "nvrtcGetProgramLogSize")
    nvrtc.nvrtcGetProgramLog(program, log)
    report = log.decode(errors="replace").strip("\0 \n")
    _checked(answer, "compilation by NVRTC", lambda: f"\n{report}")
    content = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program), "nvrtcGetCUBINSize")
    _checked(nvrtc.nvrtcGetCUBIN(program, content), "nvrtcGetCUBIN")
    return content, report


class Device:
    """A GPU of NVIDIA."""

    def __init__(self, index: int, stream: Any) -> None:
        self.index, self.stream = index, stream
        self.cuda = cuda = _bindings("driver")
        try:
            _checked(cuda.cuInit(0), "cuInit")
        except RuntimeError as missing:  # the library of the driver is not there
            raise SarrusError(f"there is no driver of NVIDIA ({missing}); {CURE}") from None
        device = _checked(cuda.cuDeviceGet(index), f"cuDeviceGet({index})")
        # the primary context, which torch, JAX and CuPy use too
        self.context = _checked(cuda.cuDevicePrimaryCtxRetain(device), "cuDevicePrimaryCtxRetain")
        attribute = cuda.CUdevice_attribute
        names = [f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}" for part in ("MAJOR", "MINOR")]
        capability = [_checked(cuda.cuDeviceGetAttribute(getattr(attribute, name), device), name) for name in names]
        self.architecture = "sm_{}{}".format(*capability)

    def _use(self) -> Any:
        """Make the context current, and return the stream: the chosen one, or torch's current stream, or the default stream."""
        _checked(self.cuda.cuCtxSetCurrent(self.context), "cuCtxSetCurrent")
        stream = self.stream
        if stream is None and (torch := sys.modules.get("torch")) is not None and torch.cuda.is_initialized():
            stream = torch.cuda.current_stream(self.index)
        return int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream or 0)))

    def free(self) -> float:
        self._use()
        return float(_checked(self.cuda.cuMemGetInfo(), "cuMemGetInfo")[0])

    def zeros(self, worlds: int, numbers: int, kind: Any) -> DeviceArray:
        size = max(1, worlds * numbers) * np.dtype(kind).itemsize
        stream = self._use()
        at = int(_checked(self.cuda.cuMemAllocAsync(size, stream), f"allocation of {size} bytes"))
        _checked(self.cuda.cuMemsetD8Async(at, 0, size, stream), "cuMemsetD8Async")
        array = DeviceArray(self, at, (worlds, numbers), (1, worlds), kind)
        weakref.finalize(array, self.cuda.cuMemFreeAsync, at, stream)
        return array

    def array(self, name: str, x: Any, kind: Any) -> Any:
        """Return an argument as an array on the device; arrays of the host are copied."""
        if hasattr(x, "__cuda_array_interface__"):
            described = x.__cuda_array_interface__
            expected = np.dtype(kind)
            if np.dtype(described["typestr"]) != (np.dtype(bool) if expected == np.uint8 else expected):
                raise TypeError(f"{name} must have type {expected}; got {described['typestr']}")
            steps = described.get("strides")
            shape = tuple(described["shape"])
            sizes = steps or tuple(int(np.prod(shape[k + 1 :])) * expected.itemsize for k in range(len(shape)))
            array = DeviceArray(self, described["data"][0], shape, tuple(s // expected.itemsize for s in sizes), kind)
            array.owner = x
            return array
        host = _on_host(name, x, kind)
        flat = np.ascontiguousarray(host)
        array = self.zeros(1, flat.size, kind)
        stream = self._use()
        # in the stream in which the memory was allocated; wait, because the host's array may be freed
        _checked(self.cuda.cuMemcpyHtoDAsync(array.at, flat.ctypes.data, flat.nbytes, stream), "cuMemcpyHtoDAsync")
        _checked(self.cuda.cuStreamSynchronize(stream), "cuStreamSynchronize")
        array.shape, array.steps = flat.shape, tuple(s // flat.itemsize for s in flat.strides)
        return array

    def compiled(self, kernel: Kernel) -> Any:
        nvrtc = _bindings("nvrtc")
        version = _checked(nvrtc.nvrtcVersion(), "nvrtcVersion")
        key = f"{version} {self.architecture}\n{kernel.source}"
        content = cached(key, ".cubin", lambda: cubin(kernel.source, self.architecture)[0])
        self._use()
        module = _checked(self.cuda.cuModuleLoadData(content), "cuModuleLoadData")
        function = _checked(self.cuda.cuModuleGetFunction(module, kernel.name.encode()), "cuModuleGetFunction")
        return function, [NUMBERS[kind] for kind in kernel.numbers]

    def launch(self, function: Any, count: int, views: Sequence[View], numbers: Sequence[Any]) -> None:
        handle, kinds = function
        ends = [ctypes.c_longlong(0), ctypes.c_longlong(count)]
        arguments = [*ends, *views, *(kind(x) for kind, x in zip(kinds, numbers, strict=True))]
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        blocks = -(-count // THREADS)
        stream = self._use()
        _checked(
            self.cuda.cuLaunchKernel(handle, blocks, 1, 1, THREADS, 1, 1, 0, stream, ctypes.addressof(pointers), 0),
            "cuLaunchKernel",
        )


class DeviceArray:
    """Array on a GPU, which torch, JAX and CuPy share without a copy (DLPack, ``__cuda_array_interface__``); :meth:`numpy` copies it to the host."""

    def __init__(self, device: Any, at: int, shape: tuple[int, ...], steps: tuple[int, ...], kind: Any) -> None:
        self.device, self.at, self.shape, self.steps = device, at, shape, steps
        self.dtype = np.dtype(kind)
        self.owner: Any = None

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device='cuda:{self.device.index}')"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = tuple(step * self.dtype.itemsize for step in self.steps)
        kind = "|b1" if self.dtype == np.uint8 else self.dtype.str
        stream = self.device._use() or 1  # 1: the default stream
        return {
            "shape": self.shape,
            "strides": strides,
            "typestr": kind,
            "data": (self.at, False),
            "version": 3,
            "stream": stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device.index)  # kDLCUDA

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        own = self.device._use()
        if stream not in (
            -1,
            own,
            own or 1,
        ):  # the consumer uses another stream: wait, so that it reads finished results
            _checked(self.device.cuda.cuStreamSynchronize(own), "cuStreamSynchronize")
        return capsule(self)

    def numpy(self) -> NDArray[Any]:
        """Return a copy on the host."""
        extent = 1 + sum((n - 1) * step for n, step in zip(self.shape, self.steps, strict=True))
        flat = np.empty(extent if 0 not in self.shape else 0, self.dtype)
        own = self.device._use()
        _checked(self.device.cuda.cuStreamSynchronize(own), "cuStreamSynchronize")
        _checked(self.device.cuda.cuMemcpyDtoH(flat.ctypes.data, self.at, flat.nbytes), "cuMemcpyDtoH")
        steps = [step * self.dtype.itemsize for step in self.steps]
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.numpy().astype(dtype or self.dtype, copy=False)

    def reshape(self, worlds: int, *shape: int) -> DeviceArray:
        """Return the same memory as an array (worlds, *shape) of numbers in row-major order."""
        steps = tuple(worlds * int(np.prod(shape[k + 1 :])) for k in range(len(shape)))
        array = DeviceArray(self.device, self.at, (worlds, *shape), (1, *steps), self.dtype)
        array.owner = self
        return array


# ---- DLPack ----------------------------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    """DLTensor, with the fields of DLManagedTensor after it; see dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


_exported: dict[int, Any] = {}  # address of an exported tensor -> what its consumer needs


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _delete(address: int) -> None:
    _exported.pop(address, None)


_CODES: Mapping[str, int] = {"i": 0, "u": 1, "f": 2, "b": 6}


def capsule(array: Any) -> Any:
    """Return a capsule "dltensor" of an array with the attributes of :class:`DeviceArray`; its memory lives until the consumer releases it."""
    n = len(array.shape)
    sizes = [(ctypes.c_int64 * n)(*x) for x in (array.shape, array.steps)]
    kind = np.dtype(bool) if array.dtype == np.uint8 else array.dtype
    tensor = _Tensor(
        array.at, *array.__dlpack_device__(), n, _CODES[kind.kind], 8 * kind.itemsize, 1, *map(ctypes.addressof, sizes), 0, None,
        ctypes.cast(_delete, ctypes.c_void_p),
    )  # fmt: skip
    address = ctypes.addressof(tensor)
    _exported[address] = (tensor, sizes, array)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, b"dltensor", None)


def view(array: Any) -> View:
    """Return the argument of a kernel for an array (numbers,) or (worlds, numbers) of either device."""
    if isinstance(array, np.ndarray):
        at, shape, steps = array.ctypes.data, array.shape, [s // array.itemsize for s in array.strides]
    else:
        at, shape, steps = array.at, array.shape, array.steps
    if len(shape) == 1:
        return View(at, 0, steps[0])
    if len(shape) != 2:
        raise ShapeError(f"expected an array (worlds, numbers); got shape {tuple(shape)}")
    return View(at, 0 if shape[0] == 1 else steps[0], steps[1])
