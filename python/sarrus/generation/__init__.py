"""C code of one mechanism, loops included, for the computer that runs it: C99 in double or single precision without heap, library or
recursion, in straight lines. :func:`generate` writes it; what is written can be composed of functions of a state with a :class:`Recorder`.
"""

from .compiling import Compiled, compiled, jax_functions
from .recorder import Recorder
from .writing import CFunction, Generated, generate

__all__ = ["CFunction", "Compiled", "Generated", "Recorder", "compiled", "generate", "jax_functions"]


def __dir__() -> list[str]:
    return sorted(__all__)
