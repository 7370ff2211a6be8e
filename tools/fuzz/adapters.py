"""Programs that call the adapters to PyTorch, JAX, CasADi, Gymnasium and Crocoddyl, and generated code."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sarrus
import sarrus.generation
from sarrus import _differentiable

from .calls import RIGHT, Target
from .pieces import GALLERY, Refused, has_nan

# installed libraries
OTHERS = tuple(name for name in ("torch", "jax", "casadi", "gymnasium", "crocoddyl") if importlib.util.find_spec(name))
ARRAYS = {
    "q": ("q",),
    "v": ("v", "0 * v"),
    "a": ("a",),
    "tau": ("a",),
    "x": ("leading(m, q)",),
    "u": ("np.ones(m.nu)",),
}
WRONG = (
    "{x} * np.nan", "{x} * 1e300", "{x} + np.inf", "{x}[..., :-1]", "{x}[..., None]", "np.broadcast_to({x}, (0, *np.shape({x})))",
    "{x}.astype('f4')", "{x}.astype(int)", "{x} * 1j", "{x}.tolist()", "None", "'x'", "1.0", "[{x}, {x}]", "object()",
)  # fmt: skip


def leading(m: Any, q: Any) -> Any:
    """Return the coordinates of the joints that `assemble` fixes."""
    return q[..., m.joint(leaders(m)[0]).q_slice]


def leaders(m: Any) -> Any:
    return [name for name in m.actuated or m.joints if m.joint(name).type.nq == 1][:1]


@contextlib.contextmanager
def foreign() -> Iterator[None]:
    """Context that converts an error of another library to `Refused` if the error repeats the name and message of an error of sarrus.

    CasADi repeats only the message.
    """
    try:
        yield
    except Exception as error:
        names = (
            rf"\b({'|'.join(sarrus.errors.__all__)}|TypeError|ValueError): |callback_internal\.cpp:\d+: Error calling"
        )
        if not isinstance(error, sarrus.SarrusError) and re.search(names, str(error)):
            raise Refused(str(error)) from error
        raise


def through(library: str, name: str, m: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function with arrays of another library, and compute the gradient of the sum of the results."""
    with_gradient = {"torch": _by_torch, "jax": _by_jax, "casadi": _by_casadi}[library]
    row = _differentiable.ROWS[name]
    count = len(row.inputs)
    with foreign():
        answers = with_gradient(name, m, arguments[:count], arguments[count:], options)
    # NaN in CasADi is allowed, because its solvers interpret NaN as a failed evaluation
    if library != "casadi" and all(
        np.ndim(one) == (2 if key == "u" and name == "rollouts" else 1)
        for key, one in zip(row.inputs, arguments, strict=False)
    ):
        assert not has_nan(answers), f"{library}, {name}: NaN without an error"
    return answers


def _by_torch(name: str, m: Any, arrays: Any, words: Any, options: Any) -> Any:
    import torch

    import sarrus.torch

    def given(x: Any) -> Any:
        return torch.tensor(x, requires_grad=True) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x

    x = [given(one) for one in arrays]
    y = getattr(sarrus.torch, name)(m, *x, *words, **options)
    y = y if isinstance(y, tuple) else (y,)
    total = sum(one.sum() for one in y)
    if total.requires_grad:
        total.backward()
    return [one.detach().numpy() for one in y] + [
        one.grad.numpy() for one in x if getattr(one, "grad", None) is not None
    ]


def _by_jax(name: str, m: Any, arrays: Any, words: Any, options: Any) -> Any:
    import jax

    import sarrus.jax

    def total(*x: Any) -> Any:
        y = getattr(sarrus.jax, name)(m, *x, *words, **options)
        y = y if isinstance(y, tuple) else (y,)
        return sum(one.sum() for one in y), y

    with jax.enable_x64(True):
        by, y = jax.grad(total, argnums=tuple(range(len(arrays))), has_aux=True)(*arrays)
        return [np.asarray(one) for one in (*y, *by)]


def _by_casadi(name: str, m: Any, arrays: Any, words: Any, options: Any) -> Any:
    import casadi

    import sarrus.casadi

    f = getattr(sarrus.casadi, name)(m, *words, **options)
    wanted = [f.size_in(k)[0] for k in range(f.n_in())]
    if [np.shape(one) for one in arrays] != [(n,) for n in wanted]:
        raise Refused("CasADi's own words")
    if any(map(np.iscomplexobj, arrays)):
        return f(*arrays)  # must raise
    x = [np.asarray(one, dtype=float) for one in arrays]
    y = f(*map(casadi.DM, x))
    y = y if isinstance(y, tuple) else (y,)
    f.jacobian()(*map(casadi.DM, x), *y)  # NaN if no result exists, because solvers accept NaN as a failed evaluation
    return [np.asarray(one) for one in y]


def environment(m: Any, count: Any, seed: int, **options: Any) -> Any:
    """Reset an environment and make a few steps with small and large actions; observations must be finite."""
    import sarrus.gymnasium

    home = dict.fromkeys(leaders(m), (-0.1, 0.1))
    how: dict[str, Any] = {
        "observe": lambda q, v: np.hstack([q, v]), "reward": lambda q, v, u: -(u**2).sum(axis=1), "start": home,
        "efforts": np.ones(m.nu or m.nv), "period": 2e-3, "seconds": 0.01,
    }  # fmt: skip
    env = sarrus.gymnasium.VectorEnv(m, count, **(how | options))
    rng = np.random.default_rng(seed)
    seen, _ = env.reset(seed=seed)
    for scale in (0.0, 1.0, 1e3, 1.0, 1.0, 1.0, 1.0):
        assert np.isfinite(np.asarray(seen)).all(), "what is seen is not finite"
        seen, reward, *_ = env.step(scale * rng.normal(size=env.action_space.shape))
        assert np.isfinite(np.asarray(reward)).all(), "a reward is not finite"
    return seen


def optimised(m: Any, q: Any, v: Any, dt: float, u: Any = None, **options: Any) -> Any:
    """Compute a step and its derivatives as Crocoddyl does."""
    import crocoddyl

    import sarrus.crocoddyl

    state = sarrus.crocoddyl.State(m)
    costs = crocoddyl.CostModelSum(state, m.nu)
    residual = sarrus.crocoddyl.StateResidual(state, state.zero(), m.nu)
    costs.addCost("x", crocoddyl.CostModelResidual(state, residual), 1.0)
    model = sarrus.crocoddyl.ActionModel(m, dt, costs, **options)
    data = model.createData()
    x = np.concatenate([q, v])
    try:
        model.calc(data, x, np.zeros(m.nu) if u is None else u)
        model.calcDiff(data, x, np.zeros(m.nu) if u is None else u)
    except Exception as error:
        if not isinstance(error, sarrus.SarrusError):  # the error is from Crocoddyl or Boost
            raise Refused(str(error)) from error
        raise
    return [
        np.array(one) for one in (data.xnext, data.Fx, data.Fu, data.Lx)
    ]  # NaN if no result exists, because solvers accept NaN as a failed evaluation


def compiled(m: Any, functions: Any, targets: Any, scalar: str = "double") -> Any:
    """Generate code, compile it if a C compiler is installed, and run its check program."""
    made = sarrus.generation.generate(m, functions, "generated", scalar=scalar, targets=targets, most_statements=3000)
    cc = shutil.which("cc")
    if cc is None:
        return made
    sources = [made.source, *(path for path in made.others if Path(path).suffix == ".c" and "fmu" not in str(path))]
    for path in sources:
        said = subprocess.run(
            [cc, "-std=c99", "-Wall", "-Werror", "-fsyntax-only", path], capture_output=True, text=True, check=False
        )
        assert said.returncode == 0, f"C that does not compile: {said.stderr[:300]}"
    for path in made.others:
        if str(path).endswith("_check.py"):
            said = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
            assert said.returncode == 0, f"its own check fails: {(said.stdout + said.stderr)[-300:]}"
    return made


def adapter_program(rng: random.Random) -> tuple[list[str], Target]:
    """Return a program with valid arguments, or with one wrong argument."""
    wrong = rng.random() < 0.4

    def value(*right: str) -> str:
        x = rng.choice(right)
        return rng.choice(WRONG).replace("{x}", f"({x})") if wrong and rng.random() < 0.5 else x

    library = rng.choice((*OTHERS, "generate"))
    lead = rng.choice(("()", "()", "()", "(3,)", "(0,)")) if library in ("torch", "jax") else "()"
    lines = [
        "from tools.fuzz.adapters import *",
        f"m = mechanism({rng.choice(GALLERY)!r})",
        f"q, v, a = state(m, {lead}, {rng.random() < 0.1})",
    ]
    if library in ("torch", "jax", "casadi"):
        name = rng.choice([name for name in _differentiable.ROWS if library != "casadi" or name != "rollouts"])
        row = _differentiable.ROWS[name]
        arguments = [value(*ARRAYS[key]) for key in row.inputs]
        if name == "rollouts":
            arguments[-1] = value("np.ones((2, m.nu))")
        words = {"frame": "m.frames[-1]", "leading": "leaders(m)", "dt": "1e-3"}
        arguments += [value(words[word]) for word in row.words]
        lines.append(f"r = through({library!r}, {name!r}, m, {', '.join(arguments)})")
    elif library == "gymnasium":
        options = [f", {name}={value(right)}" for name, right in (
            ("efforts", "np.ones(m.nu or m.nv)"), ("period", "2e-3"), ("dt", "1e-3"), ("seconds", "0.01"), ("tensors", "'numpy'"),
            ("method", "'semi_implicit'"), ("stabilisation", "'baumgarte'"), ("threads", "2"), ("motors", "m.joints[:1]"),
        ) if rng.random() < 0.2]  # fmt: skip
        lines.append(f"r = environment(m, {rng.choice((1, 2, 5))}, {rng.randrange(9)}{''.join(options)})")
    elif library == "crocoddyl":
        lines.append(
            f"r = optimised(m, {value('q')}, {value('v')}, {rng.choice(('1e-3', '0.0', '0.1'))}, {value('np.ones(m.nu)')})"
        )
    else:
        functions = rng.choice(RIGHT["generate.functions"])
        targets = rng.sample([*sarrus.generation.targets.TARGETS], rng.randrange(3))
        lines.append(f"r = compiled(m, {functions}, {targets!r}, {rng.choice(('double', 'double', 'float'))!r})")
    return lines, Target(library, adapter_program, None, "")
