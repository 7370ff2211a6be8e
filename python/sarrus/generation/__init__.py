"""Generation of C code for one mechanism, also with closed loops, for use in a controller: straight-line C99 in double or single precision.

The code uses no heap, no library except math.h, and no recursion. :func:`generate` writes the code; a :class:`Recorder` defines new functions of a
state.
"""

from .recorder import Recorder
from .step import recorded_step
from .targets import Compiled, compiled, jax_functions
from .writing import CFunction, Generated, generate

__all__ = ["CFunction", "Compiled", "Generated", "Recorder", "compiled", "generate", "jax_functions", "recorded_step"]


def __dir__() -> list[str]:
    return sorted(__all__)
