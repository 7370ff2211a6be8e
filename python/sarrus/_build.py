"""Selection of the compiled kernels: the best level of the instruction set that the processor supports and the wheel contains."""

from __future__ import annotations

import importlib
import importlib.util
import os

from . import _core
from .errors import SarrusError

__version__ = "0.1.0"

_LEVELS = {"x86-64-v4": "_kernels_v4", "x86-64-v3": "_kernels_v3", "baseline": "_kernels_baseline"}
_REBUILD = "pip install --force-reinstall --no-cache-dir --no-binary sarrus sarrus"


def _built() -> list[str]:
    """Return the levels of the instruction set that this build contains, the best first."""
    return [level for level, module in _LEVELS.items() if importlib.util.find_spec(f"sarrus.{module}")]


def _choose() -> None:
    """Load the kernels of the best supported level, or of the level in SARRUS_ISA. Kernels that the processor does not support are never loaded."""
    isa, built = os.environ.get("SARRUS_ISA", ""), _built()
    if isa not in ("", *_LEVELS):
        raise SarrusError(f"SARRUS_ISA={isa} is not one of the levels {', '.join(_LEVELS)}")
    if isa and isa not in built:
        cure = "install sarrus from source with SARRUS_LEVELS=all, or unset SARRUS_ISA"
        raise SarrusError(f"SARRUS_ISA={isa} was not built; this build contains {', '.join(built)}: {cure}")
    if isa and not _core.processor_supports(isa):
        raise SarrusError(f"SARRUS_ISA={isa} is not supported by this processor: unset SARRUS_ISA")
    for level in [isa] if isa else built:
        if _core.processor_supports(level):
            return _core.use_kernels(importlib.import_module(f"sarrus.{_LEVELS[level]}").table)
    raise ImportError(
        f"sarrus was built for processors of the level {built[-1]}, which this processor does not support: build it on this machine ({_REBUILD}), "
        "or set the environment variable SARRUS_LEVELS=all when you build it, to support all processors"
    )


def build_info() -> dict[str, object]:
    """Return information about the build and the loaded kernels.

    Returns
    -------
    dict with these entries:

    - ``version``, ``compiler``
    - ``isa``: level of the loaded kernels; the environment variable ``SARRUS_ISA`` selects another level
    - ``lanes``: number of states that a kernel evaluates at once
    - ``available``: levels that were built and that this processor supports, the best first
    - ``processor``: the best level that this processor supports. If it is not in ``available``, sarrus was built for other processors; ``pip install
      --force-reinstall --no-cache-dir --no-binary sarrus sarrus`` builds this level

    >>> import sarrus
    >>> sorted(sarrus.build_info())
    ['available', 'compiler', 'isa', 'lanes', 'processor', 'version']
    """
    runs = [level for level in _LEVELS if _core.processor_supports(level)]
    return {
        "version": __version__,
        "compiler": _core.compiler(),
        "isa": _core.level(),
        "lanes": _core.lanes(),
        "available": [level for level in _built() if level in runs],
        "processor": runs[0],
    }


_choose()
