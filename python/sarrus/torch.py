"""Functions of a mechanism for PyTorch, with their gradients: ``pip install torch``.

Tensors are float64 on the CPU, and share memory with sarrus (DLPack). Leading axes are batches and broadcast. Gradients are with respect to the
entries of q; the component along a quaternion itself is zero. For closed chains, steps and rollouts begin at the nearest state that satisfies the
constraints, dynamics require such a state, and gradients are along motions that the loops allow. Rows without a result are NaN; a single state without a result raises an error.
``torch.func.vmap`` adds a leading axis. ``grad``, ``vjp``, ``jvp``, ``jacrev`` and ``jacfwd`` are supported; :func:`rollouts` supports reverse mode
only. Second derivatives raise an error.

>>> import torch
>>> import sarrus, sarrus.torch
>>> robot = sarrus.mechanisms.four_bar()
>>> angle = torch.linspace(0.3, 0.6, 4, dtype=torch.float64, requires_grad=True)
>>> q = sarrus.torch.assemble(robot, angle[:, None], ["motor"])
>>> height = sarrus.torch.pose(robot, q, "coupler")[:, 2, 3]
>>> height.sum().backward()
>>> angle.grad.shape
torch.Size([4])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from ._arrays import Array
from ._differentiable import ROWS, Function, docstring, function, signature
from .errors import ModelError

__all__ = [*ROWS]

Tensors = tuple[torch.Tensor, ...]


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in ROWS:
        raise AttributeError(f"module 'sarrus.torch' has no attribute '{name}'")

    def tensor_function(robot: Any, *arguments: Any, **options: Any) -> Any:
        f, arrays = function(name, robot, arguments, options, remembers=True)
        x = [_checked(argument, tensor) for argument, tensor in zip(f.row.inputs, arrays, strict=True)]
        shapes = f.spread([tuple(tensor.shape) for tensor in x])
        y = _Value.apply(f, *(tensor.expand(shape) for tensor, shape in zip(x, shapes, strict=True)))
        return y if len(y) > 1 else y[0]

    tensor_function.__name__ = tensor_function.__qualname__ = name
    tensor_function.__doc__, tensor_function.__signature__ = docstring(name), signature(name)  # type: ignore[attr-defined]
    globals()[name] = tensor_function
    return tensor_function


def __dir__() -> list[str]:
    return sorted(__all__)


def _checked(name: str, x: Any) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        x = torch.as_tensor(x, dtype=torch.float64)
    if x.dtype != torch.float64 or x.device.type != "cpu":
        raise TypeError(
            f"{name} must be float64 on the CPU, because sarrus computes there in double precision: {name}.double().cpu(); got {x.dtype} on {x.device}"
        )
    return x


def _arrays(x: Tensors) -> list[Array]:
    return [tensor.detach().numpy() for tensor in x]


def _tensors(x: tuple[Array, ...]) -> Tensors:
    return tuple(torch.from_numpy(array) for array in x)


class _Differentiable(torch.autograd.Function):
    """Base class of differentiable functions of (f, *tensors), with f a :class:`~sarrus._differentiable.Function`; vmap adds a leading axis."""

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, f: Function, *x: torch.Tensor) -> tuple[Tensors, tuple[int, ...]]:
        n = info.batch_size
        wide = [
            tensor.expand(n, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
            for tensor, axis in zip(x, in_dims[1:], strict=True)
        ]
        y = cls.apply(f, *wide)
        return y, (0,) * len(y)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *w: Any) -> Any:
        raise ModelError("sarrus.torch has no second derivatives")

    jvp = backward


class _Value(_Differentiable):
    @staticmethod
    def forward(f: Function, *x: torch.Tensor) -> Tensors:
        return _tensors(f.value(*_arrays(x)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.f = inputs[0]
        ctx.save_for_backward(*inputs[1:], *output)
        ctx.save_for_forward(*inputs[1:], *output)

    @staticmethod
    def backward(ctx: Any, *w: Any) -> Any:
        return (None, *_Vjp.apply(ctx.f, *ctx.saved_tensors, *w))

    @staticmethod
    def jvp(ctx: Any, _: None, *dx: Any) -> Any:
        return _Jvp.apply(ctx.f, *ctx.saved_tensors, *dx)


def _cut(f: Function, x: Tensors) -> tuple[list[Array], list[Array], list[Array]]:
    """Split arrays into the inputs of f, its results, and the remaining arrays."""
    arrays, n, m = _arrays(x), len(f.row.inputs), len(f.row.outputs)
    return arrays[:n], arrays[n : n + m], arrays[n + m :]


class _Vjp(_Differentiable):
    @staticmethod
    def forward(f: Function, *x: torch.Tensor) -> Tensors:
        return _tensors(f.vjp(*_cut(f, x)))


class _Jvp(_Differentiable):
    @staticmethod
    def forward(f: Function, *x: torch.Tensor) -> Tensors:
        return _tensors(f.jvp(*_cut(f, x)))


for _kind in (_Value, _Vjp, _Jvp):  # torch inspects the signature in every call
    _kind.forward.__signature__ = inspect.signature(_kind.forward)  # type: ignore[attr-defined]
