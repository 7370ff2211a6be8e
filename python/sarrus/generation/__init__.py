"""C code of one mechanism, loops included, for a controller: straight-line C99 in double or single precision.

The code has no heap, no library and no recursion. :func:`generate` writes it; a :class:`Recorder` composes functions of a state.
"""

from .compiling import Compiled, compiled, jax_functions
from .recorder import Recorder
from .writing import CFunction, Generated, generate

__all__ = ["CFunction", "Compiled", "Generated", "Recorder", "compiled", "generate", "jax_functions"]


def __dir__() -> list[str]:
    return sorted(__all__)
