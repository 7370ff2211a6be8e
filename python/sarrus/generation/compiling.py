"""Generated code within Python, to try it: compiled by the system's compiler, called on arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import Array, common_axes, real_rows
from ..errors import SarrusError, raise_no_such_name
from .writing import CFunction, Generated

# ISO C alone would switch fused multiplication off, and keep errno of roots
FLAGS = ("-std=c99", "-O2", "-ffp-contract=fast", "-fno-math-errno")


class Compiled:
    """Generated code that was compiled: ``code(name, *arrays)`` calls a function, of which leading axes broadcast."""

    def __init__(self, generated: Generated, library: Path) -> None:
        self._generated, self._library = generated, ctypes.CDLL(str(library))

    def __call__(self, name: str, *arguments: ArrayLike) -> tuple[dict[str, Array], NDArray[np.int32]]:
        """Results by name, and the status (...) of each state."""
        functions = self._generated.functions
        if name not in functions:
            raise_no_such_name("function", name, functions)
        f: CFunction = functions[name]
        if len(arguments) != len(f.inputs):
            raise TypeError(f"{name} takes {', '.join(f.inputs)}; got {len(arguments)} arrays")
        kind = np.float64 if self._generated.scalar == "double" else np.float32
        rows = [np.asarray(x, dtype=np.float64) for x in arguments]
        lead = common_axes({key: x.shape[:-1] for key, x in zip(f.inputs, rows, strict=True)})
        inputs = [
            np.ascontiguousarray(np.broadcast_to(real_rows(key, x, shape[-1]), (*lead, shape[-1])), dtype=kind)
            for (key, shape), x in zip(f.inputs.items(), rows, strict=True)
        ]
        outputs = {key: np.zeros((*lead, *shape), kind) for key, shape in f.outputs.items()}
        status = np.zeros(lead, np.int32)
        call = getattr(self._library, f.name)
        call.restype = ctypes.c_int if f.returns_status else None
        for i in np.ndindex(lead):
            pointers = [ctypes.c_void_p(x[i].ctypes.data) for x in (*inputs, *outputs.values())]
            status[i] = call(*pointers) or 0
        return {key: x.astype(np.float64) for key, x in outputs.items()}, status


def compiled(generated: Generated, compiler: str = "cc", flags: Sequence[str] = FLAGS) -> Compiled:
    """Compile generated code with the system's compiler, and load it; SarrusError where that fails.

    >>> import sarrus, tempfile
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> made = sarrus.generation.generate(robot, ["inverse_dynamics"], tempfile.mkdtemp())
    >>> code = sarrus.generation.compiled(made)                            # doctest: +SKIP
    >>> code("inverse_dynamics", [1.0], [0.0], [0.0])[0]["tau"].round(3)   # doctest: +SKIP
    array([8.255])
    """
    path = shutil.which(compiler)
    if path is None:
        raise SarrusError(f"no compiler '{compiler}' is on the PATH")
    library = Path(tempfile.mkdtemp(prefix="sarrus")) / f"{generated.source.stem}.so"
    command = [path, *flags, "-fPIC", "-shared", str(generated.source), "-o", str(library), "-lm"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SarrusError(f"{compiler} failed: {run.stderr.strip()}")
    return Compiled(generated, library)
