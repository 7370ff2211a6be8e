"""Functions of a mechanism for PyTorch, with their gradients: ``pip install torch``.

Tensors are of float64 on the CPU, read and made in place (DLPack); leading axes are batches and broadcast. Gradients by q are by its entries, those of
quaternions along no change of their length. On loops they are those of the function of the nearest state on them, along what they allow. Where a row of
a batch has no answer it is NaN, and one state by itself raises, as everywhere in sarrus. ``torch.func.vmap`` adds a leading axis, ``grad``, ``vjp``, ``jvp``,
``jacrev`` and ``jacfwd`` work, of :func:`rollouts` those that go back; second derivatives raise.

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

    def of_tensors(robot: Any, *arguments: Any, **options: Any) -> Any:
        f, arrays = function(name, robot, arguments, options, remembers=True)
        x = [_checked(one, tensor) for one, tensor in zip(f.row.inputs, arrays, strict=True)]
        y = _Value.apply(
            f, *(one.expand(shape) for one, shape in zip(x, f.spread([tuple(one.shape) for one in x]), strict=True))
        )
        return y if len(y) > 1 else y[0]

    of_tensors.__name__ = of_tensors.__qualname__ = name
    of_tensors.__doc__, of_tensors.__signature__ = docstring(name), signature(name)  # type: ignore[attr-defined]
    globals()[name] = of_tensors
    return of_tensors


def __dir__() -> list[str]:
    return sorted(__all__)


def _checked(name: str, x: Any) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        x = torch.as_tensor(x, dtype=torch.float64)
    if x.dtype != torch.float64 or x.device.type != "cpu":
        raise TypeError(
            f"{name} must be float64 on the CPU, as sarrus computes: {name}.double().cpu(); got {x.dtype} on {x.device}"
        )
    return x


def _arrays(x: Tensors) -> list[Array]:
    return [one.detach().numpy() for one in x]


def _tensors(x: tuple[Array, ...]) -> Tensors:
    return tuple(torch.from_numpy(one) for one in x)


class _Differentiable(torch.autograd.Function):
    """Of (f, *tensors), with leading axes more where vmap has some."""

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, f: Function, *x: torch.Tensor) -> tuple[Tensors, tuple[int, ...]]:
        n = info.batch_size
        wide = [
            one.expand(n, *one.shape) if at is None else one.movedim(at, 0)
            for one, at in zip(x, in_dims[1:], strict=True)
        ]
        y = cls.apply(f, *wide)
        return y, (0,) * len(y)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *w: Any) -> Any:
        raise ModelError("sarrus.torch has first derivatives, and not those of derivatives")

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
    """Inputs, answers, and the rest."""
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


for _one in (_Value, _Vjp, _Jvp):  # at which torch looks in every call
    _one.forward.__signature__ = inspect.signature(_one.forward)  # type: ignore[attr-defined]
