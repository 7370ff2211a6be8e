"""sarrus.torch: tensors without copies, batches, and torch.func; test_table.py checks the derivatives."""

import re
from pathlib import Path

import numpy as np
import pytest

import sarrus
from tests.api.learning.states import NAMES, WORDS, asked, inputs, stewart

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*torch.jit:DeprecationWarning")


def ask(name):
    f, x = asked(name)
    words = WORDS.get(name, ())
    return (
        f,
        [torch.from_numpy(one) for one in x],
        lambda *x: getattr(sarrus.torch, name)(f.robot, *x, *words, **rest(f, words)),
    )


def rest(f, words):
    return {key: one for key, one in f.options.items() if key not in f.row.words}


@pytest.fixture(autouse=True)
def module():
    import sarrus.torch

    return sarrus.torch


@pytest.mark.parametrize("name", NAMES)
def test_gradients_arrive(name):
    """Also for inputs with other leading axes, over which gradients are summed."""
    f, x, call = ask(name)
    many = [x[0].expand(3, *x[0].shape), *x[1:]]
    many = [one.clone().requires_grad_() for one in many]
    y = call(*many)
    y = y if isinstance(y, tuple) else (y,)
    rng = np.random.default_rng(0)
    w = [rng.standard_normal((3, *one.shape[1:])) for one in y]
    sum((a * torch.from_numpy(b)).sum() for a, b in zip(y, w)).backward()
    alone = f.value(*(one.numpy() for one in x))
    expected = [f.vjp([one.numpy() for one in x], alone, [one[i] for one in w]) for i in range(3)]
    for k, one in enumerate(many):
        want = np.stack([g[k] for g in expected])
        want = want if k == 0 else want.sum(0)
        np.testing.assert_allclose(one.grad.numpy(), want, atol=1e-9 * max(1.0, abs(want).max()))


@pytest.mark.parametrize("name", ["pose", "inverse_dynamics"])
def test_torch_s_own_check(name):
    _, x, call = ask(name)
    x = [one.clone().requires_grad_() for one in x]
    assert torch.autograd.gradcheck(call, x, atol=1e-4, check_forward_ad=True)


@pytest.mark.parametrize("name", ["forward_dynamics", "step", "assemble"])
def test_functions_of_functions(name):
    """vmap adds a leading axis to inputs and cotangents; jacrev and jacfwd agree."""
    _, x, call = ask(name)
    first = call if name != "step" else lambda *x: call(*x)[1]
    by = tuple(range(len(x)))
    back, on = torch.func.jacrev(first, by)(*x), torch.func.jacfwd(first, by)(*x)
    for a, b in zip(back, on):
        torch.testing.assert_close(a, b, atol=1e-8, rtol=1e-8)
    two = torch.stack([x[0], x[0]], dim=1)
    mapped = torch.func.vmap(first, in_dims=(1, *(None,) * (len(x) - 1)))(two, *x[1:])
    torch.testing.assert_close(mapped, first(*x).expand_as(mapped), atol=1e-10, rtol=1e-10)
    gradients = torch.func.vmap(torch.func.grad(lambda *x: first(*x).sum()), in_dims=(1, *(None,) * (len(x) - 1)))(
        two, *x[1:]
    )
    torch.testing.assert_close(gradients[1], back[0].sum(0), atol=1e-8, rtol=1e-8)


def test_runs_under_vmap_with_gradients():
    robot = sarrus.mechanisms.four_bar()
    q = torch.from_numpy(robot.assemble(fixed={"motor": np.array([0.1, 0.2, 0.3])}))
    v, u = torch.zeros(3, dtype=torch.float64), torch.ones(4, 1, dtype=torch.float64)

    def end(u, q):
        return sarrus.torch.rollouts(robot, q, v, u, 1e-2)[0][..., -1, 0].sum()

    each = torch.func.vmap(torch.func.grad(end), in_dims=(None, 0))(u, q)
    whole = torch.func.grad(end)(u, q)
    torch.testing.assert_close(each.sum(0), whole, atol=1e-14, rtol=1e-10)


def test_nothing_is_copied(monkeypatch):
    robot, seen = stewart(), []
    x = inputs("kinetic_energy")
    q, v = torch.from_numpy(np.stack([x["q"]] * 4)), torch.from_numpy(np.stack([x["v"]] * 4))
    own = sarrus.Mechanism.kinetic_energy

    def watched(self, q, v):
        seen.extend([q.ctypes.data, v.ctypes.data])
        answer = own(self, q, v)
        seen.append(answer.ctypes.data)
        return answer

    monkeypatch.setattr(sarrus.Mechanism, "kinetic_energy", watched)
    y = sarrus.torch.kinetic_energy(robot, q, v)
    assert seen == [q.data_ptr(), v.data_ptr(), y.data_ptr()]


def test_what_torch_cannot_have_is_refused():
    robot, x = stewart(), inputs("kinetic_energy")
    q, v = torch.from_numpy(x["q"]), torch.from_numpy(x["v"])
    with pytest.raises(TypeError, match="q must be float64 on the CPU"):
        sarrus.torch.kinetic_energy(robot, q.float(), v)
    q.requires_grad_()
    (g,) = torch.autograd.grad(sarrus.torch.kinetic_energy(robot, q, v), q, create_graph=True)
    with pytest.raises(sarrus.ModelError, match="no second derivatives"):
        g.sum().backward()
    four = sarrus.mechanisms.four_bar()
    at, rest = torch.from_numpy(four.assemble()), torch.zeros(3, dtype=torch.float64)
    with pytest.raises(sarrus.ModelError, match="reverse-mode derivatives only"):
        torch.func.jacfwd(lambda u: sarrus.torch.rollouts(four, at, rest, u, 1e-2)[0])(
            torch.ones(2, 1, dtype=torch.float64)
        )
    with pytest.raises(AttributeError, match="no attribute 'mass_matrix'"):
        sarrus.torch.mass_matrix  # noqa: B018
    with pytest.raises(sarrus.StateError):
        sarrus.torch.forward_dynamics(four, at + 1.0, rest, rest)
    assert torch.isnan(sarrus.torch.forward_dynamics(four, torch.stack([at, at + 1.0]), rest, rest)).any(
        1
    ).tolist() == [False, True]


def test_what_the_documentation_shows_runs():
    page = (Path(__file__).parents[3] / "docs" / "learning.md").read_text(encoding="utf-8")
    shown = [
        block for block in re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "sarrus.torch" in block
    ]
    names = {}
    for block in shown:
        exec(compile(block, "learning.md", "exec"), names)
    assert len(shown) == 1 and all(one.grad is not None for one in names["policy"].parameters())
