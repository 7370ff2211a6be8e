"""Functions of a mechanism for CasADi, with their Jacobians: ``pip install casadi``.

These functions call the core, work for any mechanism and need no compiler. Iterative functions such as `assemble` are included. For faster
evaluation, or for programs without Python, :func:`sarrus.generation.generate` with ``targets=["casadi"]`` writes functions of one mechanism as C
code, with their Jacobians.

Each function returns a CasADi callback for single states. It has first derivatives only; therefore use limited-memory Hessians in IPOPT. Gradients
are with respect to the entries of q; the component along a quaternion itself is zero. For closed chains, gradients are along motions that the loops
allow.

>>> import casadi
>>> import sarrus, sarrus.casadi
>>> robot = sarrus.mechanisms.four_bar()
>>> assemble = sarrus.casadi.assemble(robot, ["motor"])
>>> pose = sarrus.casadi.pose(robot, "coupler")
>>> angle = casadi.MX.sym("angle")
>>> height = pose(assemble(angle))[2, 3]
>>> slope = casadi.Function("slope", [angle], [casadi.jacobian(height, angle)])
>>> round(float(slope(0.5)), 3)
-0.351
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import casadi
import numpy as np

from ._arrays import Array, real_array
from ._differentiable import ROWS, Function, docstring, function, signature
from .mechanism import Mechanism

# rollouts is excluded, because the sizes of its arrays are unknown before the first call
__all__ = [name for name in ROWS if name != "rollouts"]


def __getattr__(name: str) -> Callable[..., Callback]:
    if name not in __all__:
        raise AttributeError(f"module 'sarrus.casadi' has no attribute '{name}'")

    def callback(robot: Mechanism, *words: Any, **options: Any) -> Callback:
        f, _ = function(name, robot, (*(None for _ in ROWS[name].inputs), *words), options)
        return Callback(name, f)

    callback.__name__ = callback.__qualname__ = name
    every = signature(name)
    arguments = [p for key, p in every.parameters.items() if key not in ROWS[name].inputs]
    callback.__doc__ = docstring(name, callback=True)
    callback.__signature__ = every.replace(parameters=arguments)  # type: ignore[attr-defined]
    globals()[name] = callback
    return callback


def __dir__() -> list[str]:
    return sorted(__all__)


class _Dense(casadi.Callback):
    """CasADi callback with dense inputs and results of given shapes."""

    def __init__(self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs

    def get_n_in(self) -> int:
        return len(self.inputs)

    def get_n_out(self) -> int:
        return len(self.outputs)

    def get_sparsity_in(self, i: int) -> Any:
        return casadi.Sparsity.dense(*self.inputs[i] or (1,))

    def get_sparsity_out(self, i: int) -> Any:
        return casadi.Sparsity.dense(*self.outputs[i] or (1,))


class Callback(_Dense):
    """CasADi callback of a function of one state. The caller must keep a reference to it, because CasADi does not."""

    def __init__(self, name: str, f: Function) -> None:
        sizes = f.shapes([*f.row.inputs.values()])
        super().__init__(sizes, f.outputs(sizes))
        self.f, self._jacobians = f, list[_Jacobian]()
        self.construct(name, {})

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Return the results for NumPy arrays, or for CasADi's numbers or symbols.

        Complex arrays raise TypeError, because CasADi would silently drop their imaginary parts.
        """
        for name, x in (*zip(self.f.row.inputs, inputs, strict=False), *named.items()):
            if isinstance(x, (np.ndarray, np.generic, complex)):
                real_array(name, x)
        return super().__call__(*inputs, **named)

    def get_name_in(self, i: int) -> str:
        return [*self.f.row.inputs][i]

    def eval(self, x: Sequence[Any]) -> list[Any]:
        return [casadi.DM(y) for y in self.f.value(*_vectors(x))]

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, inputs: Any, outputs: Any, options: Any) -> Any:
        self._jacobians.append(_Jacobian(name, self, (inputs, outputs), options))
        return self._jacobians[-1]


class _Jacobian(_Dense):
    """CasADi callback for the Jacobian: a function of the inputs and results.

    It returns the derivative of each result with respect to each input, flattened by columns.
    """

    def __init__(self, name: str, callback: Callback, names: tuple[Any, Any], options: Any) -> None:
        blocks = [(math.prod(answer), *size) for answer in callback.outputs for size in callback.inputs]
        super().__init__([*callback.inputs, *callback.outputs], blocks)
        self.callback, self.names = callback, names
        self.construct(name, options)

    def get_name_in(self, i: int) -> str:
        return str(self.names[0][i])

    def get_name_out(self, i: int) -> str:
        return str(self.names[1][i])

    def eval(self, arguments: Sequence[Any]) -> list[Any]:
        callback, x = self.callback, _vectors(arguments[: len(self.callback.inputs)])
        y = callback.f.value(*x)
        blocks: list[Any] = []
        for k, answer in enumerate(y):
            n = answer.size  # the unit cotangents of all entries of the result, evaluated in one call
            w = [np.zeros((n, *array.shape)) for array in y]
            w[k] = np.eye(n).reshape(n, *answer.shape[::-1]).transpose(0, *range(answer.ndim, 0, -1))
            repeated = [[np.broadcast_to(array, (n, *array.shape)) for array in arrays] for arrays in (x, y)]
            blocks += callback.f.vjp(repeated[0], repeated[1], w)
        return [casadi.DM(block) for block in blocks]


def _vectors(x: Sequence[Any]) -> list[Array]:
    return [np.array(vector, dtype=float)[:, 0] for vector in x]
