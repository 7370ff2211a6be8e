"""Worlds side by side on a GPU, or on the processor: thousands of states of one mechanism, which advance together.

The functions of :mod:`sarrus.generation` are recorded for the mechanism, and compiled when they are first used: for a GPU of NVIDIA by NVRTC
(``pip install cuda-bindings nvidia-cuda-nvrtc``), for the processor by the system's C++ compiler, in SIMD registers and threads. Programs for both devices are the same.

>>> import numpy as np
>>> import sarrus, sarrus.cuda
>>> robot = sarrus.mechanisms.four_bar()
>>> worlds = sarrus.cuda.Worlds(robot, 64, dt=1e-3, device="cpu")
>>> worlds.assemble({"motor": np.linspace(-0.5, 0.5, 64)})
>>> worlds.step(np.full((64, 1), 5.0))
>>> worlds.q.shape, int(worlds.status.max())
((64, 3), 0)
"""

from .devices import cubin
from .environment import Environment
from .worlds import Worlds

__all__ = ["Environment", "Worlds", "cubin"]


def __dir__() -> list[str]:
    return sorted(__all__)
