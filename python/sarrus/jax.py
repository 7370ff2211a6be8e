"""Functions of a mechanism for JAX, with their gradients: ``pip install jax``.

They call the core: every mechanism, runs included, without a compiler. Code of one mechanism that JAX calls without Python is made by
:func:`sarrus.generation.generate` with ``targets=["jax"]`` and loaded by :func:`sarrus.generation.jax_functions`.

Arrays are of float64 (``jax.config.update("jax_enable_x64", True)``), on the CPU; leading axes are batches and broadcast. The core is called back
on JAX's own memory (``jax.experimental.buffer_callback``; before jax 0.6 ``jax.pure_callback``), under ``jit`` too, and ``vmap`` makes one call of a batch. Functions go back (``grad``, ``vjp``, ``jacrev``: ``jax.custom_vjp``); those of
`forward`, of the same names, on (``jvp``, ``jacfwd``: ``jax.custom_jvp``): JAX lets one do one of the two. Gradients by q are by its entries, those of
quaternions along no change of their length. On loops they are those of the function of the nearest state on them, along what they allow. Where a row of a batch has no answer it is NaN, and
one state by itself raises.

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
except ImportError:  # before 0.6
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
    def of_arrays(robot: Any, *arguments: Any, **options: Any) -> Any:
        f, arrays = function(name, robot, arguments, options)
        x = [_checked(one, array) for one, array in zip(f.row.inputs, arrays, strict=True)]
        y = call(f, *map(jnp.broadcast_to, x, f.spread([one.shape for one in x])))
        return y if len(y) > 1 else y[0]

    of_arrays.__name__ = of_arrays.__qualname__ = name
    of_arrays.__doc__, of_arrays.__signature__ = docstring(name), signature(name)  # type: ignore[attr-defined]
    return of_arrays


def _checked(name: str, x: Any) -> Any:
    if not jax.config.jax_enable_x64:
        raise TypeError("sarrus computes in double, which JAX does not yet: jax.config.update('jax_enable_x64', True)")
    kind = getattr(x, "dtype", None)
    if kind not in (None, np.float64) and np.issubdtype(kind, np.inexact):
        raise TypeError(f"{name} must be float64, as sarrus computes: {name}.astype(float); got {kind}")
    return jnp.asarray(x, dtype=np.float64)


# ---- the core, called back -------------------------------------------------------------------------------------------


def _call(of: Callable[..., Any], like: Any, *groups: Any) -> Any:
    """of(places, *groups of NumPy's arrays), answers like these; places, if there are any, are where JAX looks for the answers."""
    shapes = tuple(jax.ShapeDtypeStruct(jnp.shape(one), np.float64) for one in like)
    flat, tree = jax.tree.flatten(groups)

    def call(places: Any, *x: Any) -> Any:
        return of(places, *jax.tree.unflatten(tree, map(np.asarray, x)))

    if buffer_callback is None or jax.default_backend() != "cpu":  # where arrays have to come from there, and go back
        return jax.pure_callback(partial(call, ()), shapes, *flat, vmap_method="broadcast_all")

    def write(_: Any, out: Any, *x: Any) -> None:
        places = [*map(np.asarray, out)]
        for place, y in zip(places, call(places, *x), strict=True):
            if y is not place:
                place[...] = y

    return buffer_callback(write, shapes, vmap_method="broadcast_all")(*flat)


def _value(f: Function, *x: Any) -> Any:
    answers = [jax.ShapeDtypeStruct(shape, np.float64) for shape in f.outputs([one.shape for one in x])]
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


#: functions of the same names that go on: ``jax.jvp``, ``jax.jacfwd``
forward = SimpleNamespace(**{name: _made(name, _on) for name, row in ROWS.items() if row.jvp})
