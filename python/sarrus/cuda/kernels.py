"""Kernels that evaluate a recorded function for worlds side by side; the same source is compiled for processors and GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .. import _recording
from .._core import Status
from ..generation.targets import Recorded, _filled

# threads of a block on the GPU; more threads have fewer registers each. Without the number of blocks in __launch_bounds__, ptxas 13.5 gives long
# functions 32 registers only
THREADS = 128


@dataclass(frozen=True)
class Kernel:
    """Source of a kernel.

    `arrays` are the names of the arrays and the types of their numbers, in the order of the kernel's arguments: each is a pointer, and the distances
    between worlds and between numbers. `numbers` are the types of further arguments.
    """

    name: str
    source: str
    arrays: Mapping[str, str]
    numbers: tuple[str, ...] = ()


def called(f: Recorded) -> Kernel:
    """Return a kernel that evaluates a function: its arguments, its results, and the status."""
    arrays = dict.fromkeys(f.inputs, "const scalar") | dict.fromkeys(f.results, "scalar") | {"sarrus_status": "int"}
    lines = [_load(key, len(x)) for key, x in f.inputs.items()]
    lines += [f"real x_{key}[{max(1, np.size(x))}];" for key, x in f.results.items()]
    lines += [_status(f, [*f.inputs, *f.results]), "store<1>(&code, a_sarrus_status, i, m);"]
    lines += [f"store<{np.size(x)}>(x_{key}, a_{key}, i, m);" for key, x in f.results.items() if np.size(x)]
    return _kernel(f, arrays, (), lines)


STATE = ("q", "v", "z")


def advanced(f: Recorded, motors: list[int]) -> Kernel:
    """Return a kernel that replaces q, v and z by the results q_next, v_next and z_next of a function, as often as its argument `substeps` requires.

    A world whose status is not 0 or 8, or whose mask is 0, keeps its state. Further arguments are `fresh`, which ignores the status before the call,
    begins with time zero, and considers the residual after the last substep only; the duration `dt` of a substep [s]; and the largest residual. Entry
    `motors[k]` of the input tau is effort k; the other entries are zero.
    """
    state = [key for key in STATE if np.size(f.results.get(f"{key}_next", ()))]
    others = [key for key in f.inputs if key not in (*STATE, "tau", "time")]
    arrays = dict.fromkeys((*state, "residual"), "scalar") | {"time": "double", "status": "int"}
    arrays |= {"mask": "const unsigned char", "efforts": "const scalar"} | dict.fromkeys(others, "const scalar")
    lines = [_load(key, len(f.inputs[key])) for key in others]
    lines += [_load(key, np.size(f.results[f"{key}_next"])) for key in state]
    lines += [f"real y_{key}[{np.size(f.results[f'{key}_next'])}];" for key in state]
    lines += ["real x_residual[2], y_residual[2] = {}, x_time[1], x_status[1], x_mask[1] = {real{} + 1};"]
    lines += ["load<2>(x_residual, View<const scalar>{a_residual.at, a_residual.world, a_residual.number}, i, m);"]
    lines += ["load<1>(x_time, View<const double>{a_time.at, a_time.world, 1}, i, m);"]
    lines += ["load<1>(x_status, View<const int>{a_status.at, a_status.world, 1}, i, m);"]
    lines += ["if (a_mask.at) load<1>(x_mask, a_mask, i, m);"]
    if "tau" in f.inputs:
        lines += [f"real x_tau[{len(f.inputs['tau'])}] = {{}};"]
        lines += [
            f"load<1>(x_tau + {at}, View<const scalar>{{a_efforts.at + {k} * a_efforts.number, a_efforts.world, 1}}, i, m);"
            for k, at in enumerate(motors)
        ]
    arguments = [f"x_{key}" for key in f.inputs] + [
        f"y_{key.removesuffix('_next')}" for key in f.results if np.size(f.results[key])
    ]
    lines += [
        "const flags chosen = x_mask[0] > real{} + (scalar)0.5;",
        "real late = x_status[0] < (scalar)7.5 ? real{} : real{} + 8, code = x_status[0] - late;",
        "if (fresh) code = chosen ? real{} : code, late = chosen ? real{} : late;",
        "const real start = fresh ? real{} : x_time[0];",
        "real done = real{};",
        "for (int k = 0; k < substeps; ++k) {",
        "x_time[0] = start + (scalar)dt * done;",
        "const real most_now = real{} + (scalar)(fresh && k + 1 < substeps ? 1e30 : most);",
        f"const real s = {_call(f, arguments)};",
        "const real late_now = s < (scalar)7.5 ? real{} : real{} + 8;",
        "real code_now = s - late_now;",
        f"code_now = (code_now < (scalar)0.5) & (y_residual[0] > most_now) ? real{{}} + {int(Status.NO_CONVERGENCE)} : code_now;",
        # infinity and NaN make this sum NaN; functions without a division return no status
        "real sum = real{};",
        *(f"for (int j = 0; j < {np.size(f.results[f'{key}_next'])}; ++j) sum += y_{key}[j] - y_{key}[j];" for key in state),
        "code_now = (code_now > (scalar)0.5) | (sum < (scalar)0.5) ? code_now : real{} + 2;",
        "const flags alive = chosen & (code < (scalar)0.5);",
        "const flags ok = alive & (code_now < (scalar)0.5);",
        "code = alive ? code_now : code, late = ok & (late < late_now) ? late_now : late;",
        "for (int j = 0; j < 2; ++j) x_residual[j] = alive ? y_residual[j] : x_residual[j];",
        "done = ok ? done + 1 : done;",
        *(f"for (int j = 0; j < {np.size(f.results[f'{key}_next'])}; ++j) x_{key}[j] = ok ? y_{key}[j] : x_{key}[j];" for key in state),
        "}",
        "const real now = code + late;",
        "store<1>(&now, a_status, i, m), store<2>(x_residual, a_residual, i, m);",
        "put_time(a_time, i, m, done, dt, fresh, chosen);",
        *(f"store<{np.size(f.results[f'{key}_next'])}>(x_{key}, a_{key}, i, m);" for key in state),
    ]  # fmt: skip
    return _kernel(f, arrays, ("int substeps", "int fresh", "double dt", "double most"), lines)


def drawn(scalar: str, sizes: Mapping[str, int]) -> Kernel:
    """Return a kernel that copies row `rows` of the arrays KEY_of_variants to the numbers KEY of each world; worlds without such a row fail."""
    arrays = {"rows": "const int", "mask": "const unsigned char", "variant": "int", "status": "int"}
    arrays |= {f"{key}_of_variants": "const scalar" for key in sizes} | dict.fromkeys(sizes, "scalar")
    lines = ["for (long long w = i, row; w < i + m; ++w) {"]
    lines += ["if (!drawn_row(w, row, a_rows, a_mask, a_variant, a_status, variants)) continue;"]
    lines += [f"copy_row<{n}>(a_{key}_of_variants, row, a_{key}, w);" for key, n in sizes.items()]
    return _filled_kernel("sarrus_draw", scalar, arrays, ("int variants",), [*lines, "}"])


def _load(key: str, size: int) -> str:
    load = f"load<{size}>(x_{key}, View<const scalar>{{a_{key}.at, a_{key}.world, a_{key}.number}}, i, m);"
    return f"real x_{key}[{max(1, size)}]; {load if size else ''}"


def _call(f: Recorded, arguments: list[str]) -> str:
    call = f"{f.name}({', '.join(arguments)})"
    return call if f.returns_status else f"({call}, real{{}})"


def _status(f: Recorded, keys: list[str]) -> str:
    return f"const real code = {_call(f, [f'x_{key}' for key in keys])};"


def _kernel(f: Recorded, arrays: Mapping[str, str], numbers: tuple[str, ...], lines: list[str]) -> Kernel:
    scalar = f.recorder.scalar
    turn = _recording.turn(scalar == "float") if f.text.turns else ""
    turn = turn.replace("#include <float.h>", "").replace("static inline", "SARRUS_INLINE")
    functions = [f"SARRUS_FUNCTION {in_reals(text)}" for text in f.text.called]
    functions += [f"SARRUS_INLINE {in_reals(f.text.definition)}"]
    return _filled_kernel(f"{f.name}_worlds", scalar, arrays, numbers, lines, in_reals(turn), "\n".join(functions))


def _filled_kernel(
    name: str, scalar: str, arrays: Mapping[str, str], numbers: tuple[str, ...], lines: list[str], turn: str = "", functions: str = "",
) -> Kernel:  # fmt: skip
    views = [f"View<{kind}> a_{key}" for key, kind in arrays.items()]
    arguments, body = ", ".join(("long long first", "long long last", *views, *numbers)), "\n    ".join(lines)
    kernel = f"SARRUS_KERNEL {name}({arguments}) {{\n  SARRUS_EACH_BLOCK(i, m) {{\n    {body}\n  }}\n}}"
    flag = "int" if scalar == "float" else "long long"
    source = _filled(
        "worlds.cc.txt", scalar=scalar, flag=flag, threads=THREADS, kernel=kernel, turn=turn, functions=functions
    )
    return Kernel(name, source, arrays, tuple(x.split()[0] for x in numbers))


def in_reals(text: str) -> str:
    """Return C code in which `real` replaces the floating-point type: a number on the GPU, the numbers of several worlds on a processor."""
    text = re.sub(r"^int ", "real ", re.sub(r"\b(double|float)\b", "real", text)).replace("const int ", "const flags ")
    text = text.replace("return (int)", "return real{} + ")
    text = re.sub(r"(sarrus_again\d+ = )(.*);", r"\1SARRUS_AGAIN(\2);", text)
    text = re.sub(r"(\] = )(-?[\d.]\S*;)", r"\1real{} + \2", text)  # constants
    return re.sub(r"(?<=\] = \{).*(?=\};)", lambda at: ", ".join(f"real{{}} + {x}" for x in at[0].split(", ")), text)
