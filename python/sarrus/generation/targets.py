"""Targets besides the C files: CasADi, JAX, CUDA, FMU and a check program; compilation of generated code.

Each target is a template into which functions of the same recording are inserted.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from .. import _recording
from .._arrays import Array, ArrayLike, NDArray, common_axes, real_rows
from ..errors import SarrusError, ShapeError, raise_no_such_name
from ..mechanism import Mechanism
from .recorder import Numbers, Recorder, sample_configurations

if TYPE_CHECKING:
    from .writing import CFunction, Generated


STATES = 8  # number of states that a check program compares
LANES = 4  # states per call of a function for JAX, because registers have 256 bits
STEP = 1e-3  # largest step of an FMU [s]


@dataclass(frozen=True)
class Recorded:
    """Recorded function.

    `source` is the function's name, or a Python function of a Recorder. `written` is a function that writes further functions of the same recording,
    for a processor or a GPU.
    """

    name: str
    source: object
    recorder: Recorder
    inputs: dict[str, Numbers]
    results: Mapping[str, Numbers]
    text: _recording.C99Function
    returns_status: bool
    written: Callable[[str, Mapping[str, Numbers], Mapping[str, Numbers], bool], tuple[_recording.C99Function, bool]]
    compute: Callable[[Recorder], Mapping[str, Numbers]]


Writer = Callable[[str, list[Recorded], Mapping[str, str]], dict[str, str | bytes]]


def _filled(template: str, **words: object) -> str:
    text = (files(__package__) / "templates" / template).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda at: str(words[at[1]]), text)


def _double(target: str, functions: list[Recorded]) -> None:
    if any(f.recorder.scalar != "double" for f in functions):
        raise ValueError(f"target '{target}' requires scalar='double'")


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


# ---- CasADi ----------------------------------------------------------------------------------------------------------


def _casadi(prefix: str, functions: list[Recorded], c: Mapping[str, str]) -> dict[str, str | bytes]:
    _double("casadi", functions)
    parts = [c["about"] + "#include <math.h>\n\n" + c["turn"]]
    for f in functions:
        columns = {key: np.asarray(x, dtype=object).T.ravel() for key, x in f.results.items()}
        shapes = {key: np.shape(x) for key, x in f.results.items()}
        parts.append(_external(f, f.name, f.inputs, columns, shapes))
        nominal = {f"out_{key}": f.recorder._extra_input(len(x)) for key, x in columns.items()}
        pairs = [(key, x, by) for key, x in columns.items() for by in f.inputs]
        blocks = {f"jac_{key}_{by}": f.recorder.derivatives(x, f.inputs[by]).T for key, x, by in pairs}
        sparse = {key: [x for x in block.ravel() if x.constant != 0.0] for key, block in blocks.items()}
        answers = {f"out_{key}": shape for key, shape in shapes.items()}
        parts.append(_external(f, f"jac_{f.name}", {**f.inputs, **nominal}, sparse, blocks, answers))
    return {f"{prefix}_casadi.c": "\n".join(parts)}


def _external(
    f: Recorded, name: str, inputs: dict[str, Numbers], results: Mapping[str, Numbers], shapes: Mapping[str, Any],
    answers: Mapping[str, tuple[int, ...]] | None = None,
) -> str:  # fmt: skip
    """Return a function for CasADi.

    `shapes` has the shape of each dense result, and for a sparse result the transposed matrix without its zero entries. `answers` has the shapes of
    those inputs that are matrices; these are results of another function.
    """
    text, returns_status = f.written(f"{name}_columns", inputs, results, False)
    input_shapes = [(answers or {}).get(key, (len(x),)) for key, x in inputs.items()]
    patterns = []
    for shape in (*input_shapes, *shapes.values()):
        if isinstance(shape, tuple):
            # CasADi's dense pattern: 1 instead of the column indices
            patterns.append([*shape, *(1,) * (2 - len(shape)), 1])
            continue
        nonzero = np.array([x.constant != 0.0 for x in shape.ravel()]).reshape(shape.shape)
        starts = np.cumsum([0, *nonzero.sum(axis=1)])
        patterns.append([*shape.shape[::-1], *starts, *np.nonzero(nonzero)[1]])
    place = np.cumsum([0, *map(len, (*inputs.values(), *results.values()))])
    call = f"{name}_columns({_listed(f'w + {k}' for k in place[:-1])})"
    return f"static {text.definition}" + _filled(
        "casadi.c.txt", f=name, n_in=len(inputs), n_out=len(results), names_in=_listed(f'"{key}"' for key in inputs),
        names_out=_listed(f'"{key}"' for key in results), patterns=_listed(np.concatenate(patterns)),
        pattern_starts=_listed(np.cumsum([0, *map(len, patterns)])[:-1]), places=_listed(place), numbers=max(place[-1], 1),
        call=f"status = {call}" if returns_status else call,
    )  # fmt: skip


# ---- JAX -------------------------------------------------------------------------------------------------------------


def _jax(prefix: str, functions: list[Recorded], c: Mapping[str, str]) -> dict[str, str | bytes]:
    _double("jax", functions)
    texts, handlers = [], []
    for f in functions:
        tangents = {f"by_{key}": f.recorder._extra_input(np.size(x)) for key, x in f.results.items()}
        total = sum(np.dot(w, np.ravel(x)) for w, x in zip(tangents.values(), f.results.values(), strict=True))
        row = f.recorder.derivatives(total, np.concatenate([*f.inputs.values()]))[0]
        parts = np.split(row, np.cumsum([len(x) for x in f.inputs.values()])[:-1])
        back = {f"d_{key}": part for key, part in zip(f.inputs, parts, strict=True)}
        for name, inputs, results in ((f.name, f.inputs, f.results), (f"{f.name}_vjp", {**f.inputs, **tangents}, back)):
            text, returns_status = f.written(f"{name}_lanes", inputs, results, False)
            texts.append(f"inline {_in_lanes(text.definition)}")
            place = np.cumsum([0, *(np.size(x) for x in (*inputs.values(), *results.values()))])
            call = f"{name}_lanes({_listed(f'x + {k}' for k in place[:-1])})"
            body = f"return {call};" if returns_status else f"{call}; return real{{}};"
            handlers.append(
                f"static ffi::Error {name}_batch(ffi::RemainingArgs args, ffi::RemainingRets rets) {{\n"
                f"  return batch<{place[-1]}, {len(place) - 1}>(args, rets, [](real* x) {{ {body} }});\n}}\n"
                f"XLA_FFI_DEFINE_HANDLER_SYMBOL({name}_handler, {name}_batch, ffi::Ffi::Bind().RemainingArgs().RemainingRets());\n"
            )
    blocks = {"turn": _in_lanes(c["turn"]), "functions": "\n".join(texts), "handlers": "\n".join(handlers)}
    return {f"{prefix}_jax.cc": c["about"] + _filled("jax.cc.txt", lanes=LANES, **blocks)}


def _in_lanes(text: str) -> str:
    """Return the code converted to packets of LANES states, by the vector types of GCC and Clang."""
    text = re.sub(r"^int |\bdouble\b", "real", text.replace("return (int)", "return real{} + "))
    text = re.sub(r"(\] = )(-?[\d.]\S*;)", r"\1real{} + \2", text)  # constants
    return re.sub(r"^real(?=\w)", "real ", text).replace("const int ", "const flags ")


# ---- CUDA ------------------------------------------------------------------------------------------------------------


def _cuda(prefix: str, functions: list[Recorded], c: Mapping[str, str]) -> dict[str, str | bytes]:
    # nvrtc has no headers; it fuses sums and products, but does not reorder them
    texts = [re.sub("#.*\n+", "", c["turn"]).replace("static inline", "static __device__ inline")]
    for f in functions:
        real = "float" if f.recorder.scalar == "float" else "double"
        arguments = [f"const {real} *{key}" for key in f.inputs] + [f"{real} *{key}" for key in f.results]
        rows = [f"{key} + {np.size(x)} * sarrus_i" for key, x in (*f.inputs.items(), *f.results.items())]
        text, _ = f.written(f.name, f.inputs, f.results, True)
        call = f"{f.name}({_listed(rows)})"
        status = f"sarrus_status[sarrus_i] = {call}" if f.returns_status else f"{call};\n  sarrus_status[sarrus_i] = 0"
        # volatile: a number that an array contains is read again, instead of kept in a register or stored a second time
        again = partial(re.sub, r"(sarrus_again\d+ = )(.*);", rf"\1*(volatile const {real} *)&\2;")
        texts += (f"static __device__ __noinline__ {again(each)}" for each in text.called)
        texts.append(
            f"static __device__ {again(text.definition)}\n"
            f'extern "C" __global__ void {f.name}_batch(long sarrus_states, {_listed(arguments)}, int *sarrus_status) {{\n'
            "  const long sarrus_i = blockIdx.x * (long)blockDim.x + threadIdx.x;\n  if (sarrus_i >= sarrus_states) return;\n"
            f"  {status};\n}}\n"
        )
    return {f"{prefix}.cu": _filled("cuda.cu.txt", about=c["about"], functions="\n".join(texts))}


# ---- a check ---------------------------------------------------------------------------------------------------------


def _check(prefix: str, functions: list[Recorded], c: Mapping[str, str]) -> dict[str, str | bytes]:
    answers = {}
    for f in functions:
        robot, rng = f.recorder.robot, np.random.default_rng(1)
        driven = f.recorder._recording.driven
        samples = None if driven else sample_configurations(robot, np.zeros(STATES), rng, f.recorder._about)
        other = Recorder(robot, configurations=samples)
        results = f.compute(other)
        arguments = [other.values(x) for x in other.inputs.values()]
        core = _core_results(other, f.source, arguments)
        count = len(other._configurations)
        expected = {key: (other.values(x) if core is None else core).reshape(count, -1) for key, x in results.items()}
        answers[f.name] = [
            {"arguments": [x[k].tolist() for x in arguments], "status": f.returns_status,
             "results": {key: x[k].tolist() for key, x in expected.items()}}
            for k in range(count) if all(np.isfinite(x[k]).all() for x in expected.values())
        ]  # fmt: skip
    scalar = functions[0].recorder.scalar
    words = {"name": prefix, "scalar": scalar, "tolerance": 1e-10 if scalar == "double" else 1e-3}
    return {f"{prefix}_check.py": _filled("check.py.txt", **words), f"{prefix}_check.json": json.dumps(answers) + "\n"}


def _core_results(recorder: Recorder, source: object, arguments: list[Array]) -> Array | None:
    """Return the results of the core's function of the same name, or None if the core has none."""
    name, _, frame = source.partition(":") if isinstance(source, str) else ("", "", "")
    if name not in _recording.operations:
        return None
    state = [x for key, x in zip(recorder.inputs, arguments, strict=True) if key != "time"]
    options = {"time": arguments[-1][:, 0]} if "time" in recorder.inputs else {}
    function = getattr(recorder.robot, name)
    result: Array = function(*state, *([frame] if frame else []), return_status=True, **options)[0]
    return result


# ---- an FMU ----------------------------------------------------------------------------------------------------------


def _fmu(prefix: str, functions: list[Recorded], c: Mapping[str, str]) -> dict[str, str | bytes]:
    steps = [f for f in functions if isinstance(f.source, str) and f.source.partition(":")[0] == "step"]
    _double("fmu", steps)
    if len(steps) != 1:
        raise ValueError(f"target 'fmu' requires one function 'step' or 'step:JOINTS'; got {len(steps)}")
    robot = steps[0].recorder.robot
    tau = [f"tau.{n}" for n in entries(robot, "v")]
    names = [*tau, *(f"q.{n}" for n in entries(robot, "q")), *(f"v.{n}" for n in entries(robot, "v"))]
    start = [0.0] * robot.nv + [*map(float, robot.assemble())] + [0.0] * robot.nv
    guid = sha256((steps[0].text.definition + str(start)).encode()).hexdigest()[:32]
    call = f"{steps[0].name}(q, v, x, &dt, q, v)"
    words = {
        "name": prefix, "f": steps[0].name, "step": repr(STEP), "inputs": robot.nv, "nq": robot.nq, "nv": robot.nv, "guid": guid,
        "call": call if steps[0].returns_status else f"({call}, 0)", "start": _listed(map(repr, start)), "model": quoteattr(robot.name),
    }  # fmt: skip
    kinds = ['causality="input"'] * len(tau) + ['causality="output" initial="exact"'] * (len(names) - len(tau))
    variables = "\n".join(
        f'    <ScalarVariable name={quoteattr(n)} valueReference="{k}" {kind} variability="continuous"><Real start="{x!r}"/></ScalarVariable>'
        for k, (n, kind, x) in enumerate(zip(names, kinds, start, strict=True))
    )
    outputs = "".join(f'<Unknown index="{k + 1}" dependencies=""/>' for k in range(len(tau), len(names)))
    xml = _filled("fmu.xml.txt", **words, variables=variables, outputs=outputs)
    source = c["about"] + _filled("fmu.c.txt", **words)
    parts: dict[str, str | bytes] = {
        "modelDescription.xml": xml, f"sources/{prefix}.h": c[".h"], f"sources/{prefix}.c": c[".c"], f"sources/{prefix}_fmu.c": source,
    }  # fmt: skip
    # without a compiler, the FMU contains the sources only, and the importing program compiles them
    if shutil.which("cc"):
        with TemporaryDirectory() as folder:
            for name, text in [*parts.items()][1:]:
                (Path(folder) / Path(name).name).write_text(str(text), encoding="utf-8")
            library = shared_library("cc", FLAGS, Path(folder) / f"{prefix}.so", f"{prefix}.c", f"{prefix}_fmu.c")
            parts[f"binaries/linux64/{prefix}.so"] = library.read_bytes()
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            # ZipInfo without the current time, so that files are reproducible
            archive.writestr(zipfile.ZipInfo(name), content)
    return {f"{prefix}.fmu": packed.getvalue()}


def entries(robot: Mechanism, letter: str) -> list[str]:
    """Return names of the entries of q or v: the joint, with an index if it has several."""
    names = []
    for joint in map(robot.joint, robot.joints):
        part: slice = getattr(joint, f"{letter}_slice")
        count = part.stop - part.start
        names += [joint.name + (f"[{k}]" if count > 1 else "") for k in range(count)]
    return names


TARGETS: dict[str, Writer] = {"casadi": _casadi, "check": _check, "cuda": _cuda, "fmu": _fmu, "jax": _jax}


# ---- compilation with the system's compiler, and calls of the code on arrays, for tests in Python --------------------

# -std=c99 without these options disables fused multiply-add and sets errno in square roots
FLAGS = ("-std=c99", "-O2", "-ffp-contract=fast", "-fno-math-errno")
JAX_FLAGS = ("-std=c++17", "-O2", "-march=native", "-ffp-contract=fast", "-fno-math-errno")


class Compiled:
    """Compiled code. ``code(name, *arrays)`` calls its function of that name; leading axes broadcast.

    Parameters
    ----------
    generated : the generated code, result of :func:`generate`
    library : path of the shared library that was compiled from it
    """

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

    Parameters
    ----------
    generated : the generated code, result of :func:`generate`
    compiler : name of the C compiler on the PATH
    flags : options of the compiler

    Examples
    --------
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

    Parameters
    ----------
    generated : the generated code, result of :func:`generate` with the target "jax"
    compiler : name of the C++ compiler on the PATH
    flags : options of the compiler

    Examples
    --------
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
    options = [*flags, f"-I{jax.ffi.include_dir()}"]
    library = ctypes.CDLL(str(shared_library(compiler, options, place, source.resolve())))

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
