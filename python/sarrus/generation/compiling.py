"""Compilation of generated code with the system's compiler, and calls of the code on arrays, for tests in Python."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, common_axes, real_rows
from ..errors import SarrusError, ShapeError, raise_no_such_name

if TYPE_CHECKING:
    from .writing import CFunction, Generated

# -std=c99 without these options disables fused multiply-add and sets errno in square roots
FLAGS = ("-std=c99", "-O2", "-ffp-contract=fast", "-fno-math-errno")
JAX_FLAGS = ("-std=c++17", "-O2", "-march=native", "-ffp-contract=fast", "-fno-math-errno")


class Compiled:
    """Compiled code. ``code(name, *arrays)`` calls its function of that name; leading axes broadcast."""

    def __init__(self, generated: Generated, library: Path) -> None:
        self._generated, self._library = generated, ctypes.CDLL(str(library))

    def __call__(self, name: str, *arguments: ArrayLike) -> tuple[dict[str, Array], NDArray[np.int32]]:
        """Call the function `name`; return its results by name, and the status (...) of each state."""
        functions = self._generated.functions
        if name not in functions:
            raise_no_such_name("function", name, functions)
        f: CFunction = functions[name]
        if len(arguments) != len(f.inputs):
            raise TypeError(f"{name} requires {', '.join(f.inputs)}; got {len(arguments)} arrays")
        kind = np.float64 if self._generated.scalar == "double" else np.float32
        rows = [np.asarray(x, dtype=np.float64) for x in arguments]
        lead = common_axes({key: x.shape[:-1] for key, x in zip(f.inputs, rows, strict=True)})
        inputs = [
            np.ascontiguousarray(np.broadcast_to(real_rows(key, x, shape[-1]), (*lead, shape[-1])), dtype=kind)
            for (key, shape), x in zip(f.inputs.items(), rows, strict=True)
        ]
        outputs = {key: np.zeros((*lead, max(1, math.prod(shape))), kind) for key, shape in f.outputs.items()}
        status = np.zeros(lead, np.int32)
        call = getattr(self._library, f.name)
        call.restype = ctypes.c_int if f.returns_status else None
        for i in np.ndindex(lead):
            pointers = [ctypes.c_void_p(x[i].ctypes.data) for x in (*inputs, *outputs.values())]
            status[i] = call(*pointers) or 0
        answers = {
            key: outputs[key][..., : math.prod(shape)].reshape((*lead, *shape)).astype(np.float64)
            for key, shape in f.outputs.items()
        }
        return answers, status


def compiled(generated: Generated, compiler: str = "cc", flags: Sequence[str] = FLAGS) -> Compiled:
    """Compile generated code with the system's compiler and load it; raise SarrusError if that fails.

    >>> import sarrus, tempfile
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> made = sarrus.generation.generate(robot, ["inverse_dynamics"], tempfile.mkdtemp())
    >>> code = sarrus.generation.compiled(made)                            # doctest: +SKIP
    >>> code("inverse_dynamics", [1.0], [0.0], [0.0])[0]["tau"].round(3)   # doctest: +SKIP
    array([8.255])
    """
    library = Path(tempfile.mkdtemp(prefix="sarrus")) / f"{generated.source.stem}.so"
    return Compiled(generated, shared_library(compiler, flags, library, generated.source.resolve()))


def shared_library(compiler: str, flags: Sequence[str], library: Path, *sources: str | Path) -> Path:
    """Compile sources into a shared library and return its path. Relative paths of sources are relative to the library's folder."""
    path = shutil.which(compiler)
    if path is None:
        raise SarrusError(f"compiler '{compiler}' is not on the PATH")
    command = [path, *flags, "-fPIC", "-shared", *map(str, sources), "-o", str(library), "-lm"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=library.parent)
    if run.returncode:
        raise SarrusError(f"{compiler} failed: {run.stderr.strip()}")
    return library


def jax_functions(
    generated: Generated, compiler: str = "c++", flags: Sequence[str] = JAX_FLAGS
) -> dict[str, Callable[..., Any]]:
    """Return the functions for JAX in code that was generated with the target "jax".

    The functions accept float64 arrays with leading axes and return a tuple of results. They run on the CPU, and support ``jit``, ``vmap`` and
    ``grad`` (reverse mode only). Rows whose status is not 0 are NaN. Derivatives are with respect to the entries of q.

    The code is specific to one mechanism. In contrast, functions of :mod:`sarrus.jax` call the core; they work for any mechanism, and include
    simulations.

    >>> import jax, sarrus, tempfile
    >>> jax.config.update("jax_enable_x64", True)
    >>> robot = sarrus.mechanisms.pendulum()
    >>> made = sarrus.generation.generate(robot, ["inverse_dynamics"], tempfile.mkdtemp(), targets=["jax"])
    >>> f = sarrus.generation.jax_functions(made)["inverse_dynamics"]                     # doctest: +SKIP
    >>> jax.grad(lambda q: f(q, jax.numpy.zeros(1), jax.numpy.zeros(1))[0][0])(jax.numpy.zeros(1))   # doctest: +SKIP
    """
    import jax

    source = generated.source.with_name(f"{generated.source.stem}_jax.cc")
    if source not in generated.others:
        raise ValueError("generated has no source for JAX; write it by generate(..., targets=['jax'])")
    place = Path(tempfile.mkdtemp(prefix="sarrus")) / f"{source.stem}.so"
    library = ctypes.CDLL(
        str(shared_library(compiler, [*flags, f"-I{jax.ffi.include_dir()}"], place, source.resolve()))
    )

    def target(name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> Callable[..., Any]:
        # a unique name, because JAX registers targets by name until the process ends
        unique = f"{name}_{place.parent.name}"
        jax.ffi.register_ffi_target(unique, jax.ffi.pycapsule(getattr(library, f"{name}_handler")), platform="cpu")

        def call(*x: Any) -> Any:
            lead = x[0].shape[:-1]
            rows = [array.reshape(*lead, math.prod(shape)) for array, shape in zip(x, inputs, strict=True)]
            sizes = [jax.ShapeDtypeStruct((*lead, math.prod(shape)), np.float64) for shape in outputs]
            answers = jax.ffi.ffi_call(unique, sizes, vmap_method="broadcast_all")(*rows)
            return tuple(y.reshape(*lead, *shape) for y, shape in zip(answers, outputs, strict=True))

        return call

    def jax_function(f: CFunction) -> Callable[..., Any]:
        inputs, outputs = [*f.inputs.values()], [*f.outputs.values()]
        value, back = target(f.name, inputs, outputs), target(f"{f.name}_vjp", [*inputs, *outputs], inputs)
        call = jax.custom_vjp(value)
        call.defvjp(lambda *x: (value(*x), x), lambda x, w: back(*x, *w))

        def function(*arguments: Any) -> Any:
            if len(arguments) != len(inputs):
                raise TypeError(f"{f.name} requires {', '.join(f.inputs)}; got {len(arguments)} arrays")
            if not jax.config.jax_enable_x64:
                raise TypeError("the code requires double precision: jax.config.update('jax_enable_x64', True)")
            arrays = [jax.numpy.asarray(x, dtype=np.float64) for x in arguments]
            for (key, (size,)), x in zip(f.inputs.items(), arrays, strict=True):
                if x.shape[-1:] != (size,):
                    raise ShapeError(f"{key} must be (..., {size}); got {x.shape}")
            lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
            return call(*(jax.numpy.broadcast_to(x, (*lead, *shape)) for x, shape in zip(arrays, inputs, strict=True)))

        return function

    return {key: jax_function(f) for key, f in generated.functions.items()}
