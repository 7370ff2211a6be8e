"""Checks of results and errors of a case."""

from __future__ import annotations

import dis
import os
import re
import traceback
from typing import Any

import numpy as np

import sarrus

from .calls import Target
from .pieces import Refused, has_nan

STRICT = "SARRUS_FUZZ_STRICT"  # environment variable that passes --strict to children


def place(error: BaseException) -> tuple[str, bool]:
    """Return the innermost line of sarrus' code in an error's traceback, and True if sarrus raised the error explicitly."""
    location, on_purpose = "", True
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if f"{os.sep}sarrus{os.sep}" in path:
            location = f"{path.rpartition(f'{os.sep}sarrus{os.sep}')[2]}:{frame.f_lineno} in {frame.f_code.co_name}"
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None and location:
        code = last.tb_frame.f_code
        raised = dis.opname[code.co_code[last.tb_lasti]].startswith(("RAISE", "RERAISE"))
        on_purpose = raised and f"{os.sep}sarrus{os.sep}" in code.co_filename
    return location, on_purpose


def in_argument(error: BaseException, line: str) -> bool:
    """Return True if the error is raised in the case itself, by the expression of an argument."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != "<case>":
        frame = frame.tb_next
    if frame is None or not hasattr(frame.tb_frame.f_code, "co_positions"):
        return False
    _, _, start, end = list(frame.tb_frame.f_code.co_positions())[frame.tb_lasti // 2]
    return (start not in (0, 4) or end != len(line.encode("utf-8", "surrogatepass"))) and "pickle" not in line


def fault(error: BaseException, target: Target, strict: bool = False) -> str | None:
    """Return a description of what is wrong with an error; None for a proper error."""
    kind = type(error)
    if isinstance(error, (Refused, MemoryError)) or re.search(
        "lambda|local object", str(error)
    ):  # objects that the case defines, and that cannot be pickled
        return None
    if isinstance(error, RuntimeWarning) and traceback.extract_tb(error.__traceback__)[-1].filename.endswith(
        "pieces.py"
    ):
        return None  # of NumPy, in a function of the case
    documented = any(
        re.search(rf"\b{c.__name__}\b", target.doc) for c in kind.__mro__ if c not in (Exception, BaseException, object)
    )
    if isinstance(error, sarrus.SarrusError) or kind in (TypeError, ValueError):
        if not str(error).strip():
            return "an error without a message"
        location, on_purpose = place(error)
        if kind is TypeError and not strict and not os.environ.get(STRICT):
            return None  # an error of Python itself for a value of the wrong type
        clear = isinstance(error, sarrus.SarrusError) or re.match(
            r"\w+(\(\)| = \S+ s)? (must|is|has|got|missing|takes|needs|requires)\b", str(error)
        )
        return None if on_purpose or clear else "an error that sarrus did not raise"
    return None if documented else "an undocumented exception"


def silent(target: Target, r: Any, names: dict[str, Any], line: str) -> str | None:
    """Return a description of what is wrong with a result that was returned without an error; None for a proper result."""
    if target.owner is not sarrus.Mechanism or isinstance(r, sarrus.Mechanism):
        return None
    if (
        re.search(r"\b(q|v|a|tau|q0|q1|dv|multipliers)=(np\.ma\.masked_array\(|[^=]+ \* 1j\b)", line)
        and "0 * v" not in line
        and np.size(names.get("q")) > 0  # an empty array has no masked entry
    ):
        return "masked or imaginary numbers were accepted"
    status: Any = 0
    if isinstance(r, tuple) and "return_status=" in line and len(r) > 1 and np.asarray(r[-1]).dtype == np.int8:
        r, status = r[0], np.asarray(r[-1])
    elif np.ndim(names.get("q")) != 1 or re.search(
        r"broadcast_to|reshape|np\.matrix|\bq=\(|\bq=np\.\w+\(\(|\[None\]|time=[^0-9N-]", line
    ):
        return None  # NaN replaces the status in a batch
    if isinstance(r, np.ndarray) and np.ndim(status) and r.shape[: np.ndim(status)] == np.shape(status):
        r = r[status == 0]
        status = 0
    if np.ndim(status) == 0 and status == 0 and has_nan(r):
        return "NaN, and status 0" if "return_status" in line else "NaN without an error"
    m = names.get("m")
    closes_loops = target.name in ("project_configuration", "assemble") and not re.search("time|tolerance", line)
    if (
        closes_loops
        and np.ndim(status) == 0
        and status == 0
        and isinstance(r, np.ndarray)
        and r.shape[-1:] == (m.nq,)
        and r.size
    ):
        off = float(np.abs(m.constraint_residual(r, time=0.0)).max(initial=0.0))
        if off > 1e-6 * max(1.0, float(np.abs(r).max())):
            return f"loops open by {off:.1g}, and status 0"
    return None
