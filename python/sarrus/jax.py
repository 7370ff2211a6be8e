"""Functions of a mechanism for JAX, with their gradients: ``pip install jax``.

These functions call the core; they work for every mechanism and for simulations, and need no compiler. Alternatively,
:func:`sarrus.generation.generate` with ``targets=["jax"]`` generates code for one mechanism, which JAX calls without Python;
:func:`sarrus.generation.jax_functions` loads it.

Arrays are float64 (``jax.config.update("jax_enable_x64", True)``) on the CPU. Leading axes are batches and broadcast. Callbacks use JAX's memory
without copies (``jax.experimental.buffer_callback``; before jax 0.6 ``jax.pure_callback``), also under ``jit``. ``vmap`` calls the core once for a
batch.

The functions of this module have reverse mode (``grad``, ``vjp``, ``jacrev``: ``jax.custom_vjp``). The functions of the same names in `forward` have
forward mode (``jvp``, ``jacfwd``: ``jax.custom_jvp``), because JAX allows only one mode for a function. Gradients are with respect to the entries of
q; the component along a quaternion itself is zero. For closed chains, steps and rollouts begin at the nearest state that satisfies the constraints,
dynamics require such a state, and gradients are along motions that the loops allow. Rows without a result are NaN; a single state without a result raises an error.

>>> import jax
>>> jax.config.update("jax_enable_x64", True)
>>> import sarrus, sarrus.jax
>>> robot = sarrus.mechanisms.four_bar()
>>> def height(angle):
...     q = sarrus.jax.assemble(robot, angle[None], ["motor"])
...     return sarrus.jax.pose(robot, q, "coupler")[2, 3]
>>> round(float(jax.jit(jax.grad(height))(0.5)), 3)
-0.351
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._differentiable import ROWS, Function, docstring, function, signature

try:
    from jax.experimental.buffer_callback import buffer_callback
except ImportError:  # versions of JAX before 0.6
    buffer_callback = None

__all__ = [*ROWS, "forward"]


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in ROWS:
        raise AttributeError(f"module 'sarrus.jax' has no attribute '{name}'")
    made = globals()[name] = _made(name, _back)
    return made


def __dir__() -> list[str]:
    return sorted(__all__)


def _made(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def array_function(robot: Any, *arguments: Any, **options: Any) -> Any:
        f, arrays = function(name, robot, arguments, options)
        x = [_checked(argument, array) for argument, array in zip(f.row.inputs, arrays, strict=True)]
        y = call(f, *map(jnp.broadcast_to, x, f.spread([array.shape for array in x])))
        return y if len(y) > 1 else y[0]

    array_function.__name__ = array_function.__qualname__ = name
    array_function.__doc__, array_function.__signature__ = docstring(name), signature(name)  # type: ignore[attr-defined]
    return array_function


def _checked(name: str, x: Any) -> Any:
    if not jax.config.jax_enable_x64:
        raise TypeError(
            "sarrus computes in double precision, which JAX has disabled: jax.config.update('jax_enable_x64', True)"
        )
    kind = getattr(x, "dtype", None)
    if kind not in (None, np.float64) and np.issubdtype(kind, np.inexact):
        raise TypeError(
            f"{name} must be float64, because sarrus computes in double precision: {name}.astype(float); got {kind}"
        )
    return jnp.asarray(x, dtype=np.float64)


# ---- the core, called back -------------------------------------------------------------------------------------------


def _call(function: Callable[..., Any], results: Any, *groups: Any) -> Any:
    """Call function(places, *groups of NumPy arrays); `places` are JAX's buffers for the results, or an empty tuple if JAX has none."""
    shapes = tuple(jax.ShapeDtypeStruct(jnp.shape(x), np.float64) for x in results)
    flat, tree = jax.tree.flatten(groups)

    def call(places: Any, *x: Any) -> Any:
        return function(places, *jax.tree.unflatten(tree, map(np.asarray, x)))

    if buffer_callback is None or jax.default_backend() != "cpu":  # arrays must be copied from and to the device
        return jax.pure_callback(partial(call, ()), shapes, *flat, vmap_method="broadcast_all")

    def write(_: Any, out: Any, *x: Any) -> None:
        places = [*map(np.asarray, out)]
        for place, y in zip(places, call(places, *x), strict=True):
            if y is not place:
                place[...] = y

    return buffer_callback(write, shapes, vmap_method="broadcast_all")(*flat)


def _value(f: Function, *x: Any) -> Any:
    answers = [jax.ShapeDtypeStruct(shape, np.float64) for shape in f.outputs([array.shape for array in x])]
    return _call(lambda places, x: f.value(*x, out=places), answers, x)


def _vjp(f: Function, kept: Any, w: Any) -> Any:
    return _call(lambda _, kept, w: f.vjp(kept[0], kept[1], w), kept[0], kept, w)


_back = jax.custom_vjp(_value, nondiff_argnums=(0,))


@partial(_back.defvjp, bwd=_vjp)
def _forth(f: Function, *x: Any) -> Any:
    y = _value(f, *x)
    return y, (x, y)


_on = jax.custom_jvp(_value, nondiff_argnums=(0,))


@_on.defjvp  # type: ignore[untyped-decorator]
def _along(f: Function, x: Any, dx: Any) -> Any:
    y = _on(f, *x)
    return y, _call(lambda _, kept, dx: f.jvp(kept[0], kept[1], dx), y, (x, y), dx)


#: functions of the same names that support forward mode: ``jax.jvp``, ``jax.jacfwd``
forward = SimpleNamespace(**{name: _made(name, _on) for name, row in ROWS.items() if row.jvp})
