"""Which kernels run here: the best instruction set level that the processor has and the wheel holds."""

from __future__ import annotations

import importlib
import os

from . import _core
from .errors import SarrusError

__version__ = "0.1.0"

_LEVELS = {"x86-64-v4": "_kernels_v4", "x86-64-v3": "_kernels_v3"}


def _choose() -> None:
    wanted = os.environ.get("SARRUS_ISA", "")
    if wanted and wanted != "baseline" and wanted not in _LEVELS:
        raise SarrusError(f"SARRUS_ISA={wanted} is not one of {', '.join([*_LEVELS, 'baseline'])}")
    for level, module in _LEVELS.items():
        if wanted in ("", level) and _core.processor_supports(level):
            try:
                _core.use_kernels(importlib.import_module(f"sarrus.{module}").table)
                return
            except ModuleNotFoundError:  # a wheel for another processor family, or an editable build of one level
                continue
    if wanted not in ("", "baseline"):
        raise SarrusError(f"SARRUS_ISA={wanted} is not to be had on this processor or in this build")


def build_info() -> dict[str, object]:
    """How this sarrus was built and which kernels it uses.

    Returns
    -------
    dict with ``version``, ``compiler``, ``isa`` (level of the kernels in use; the environment variable ``SARRUS_ISA`` overrides the
    choice), ``lanes`` (states that a batch works on at once) and ``available`` (levels that would run here).

    >>> from sarrus import build_info
    >>> sorted(build_info())
    ['available', 'compiler', 'isa', 'lanes', 'version']
    """
    return {
        "version": __version__,
        "compiler": _core.compiler(),
        "isa": _core.level(),
        "lanes": _core.lanes(),
        "available": [
            level for level in (*_LEVELS, "baseline") if level == "baseline" or _core.processor_supports(level)
        ],
    }


_choose()
