"""sarrus.jax: callbacks under jit, vmap and grad; test_table.py checks the derivatives."""

import numpy as np
import pytest

import sarrus
from tests.api.learning.states import NAMES, WORDS, asked, inputs, stewart

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def in_double():
    import sarrus.jax

    jax.config.update("jax_enable_x64", True)
    yield sarrus.jax
    jax.config.update("jax_enable_x64", False)


def ask(name, of=None):
    f, x = asked(name)
    words, rest = WORDS.get(name, ()), {key: one for key, one in f.options.items() if key not in f.row.words}
    call = getattr(of or sarrus.jax, name)
    return f, x, lambda *x: call(f.robot, *x, *words, **rest)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_arrive_under_jit(name):
    """Also for inputs with other leading axes, over which gradients are summed."""
    f, x, call = ask(name)
    many = [np.stack([x[0]] * 3), *x[1:]]
    rng, alone = np.random.default_rng(0), f.value(*x)
    w = [rng.standard_normal((3, *one.shape)) for one in alone]

    def number(*x):
        y = call(*x)
        return sum((a * b).sum() for a, b in zip(y if isinstance(y, tuple) else (y,), w))

    g = jax.jit(jax.grad(number, argnums=tuple(range(len(x)))))(*many)
    expected = [f.vjp(x, alone, [one[i] for one in w]) for i in range(3)]
    for k, one in enumerate(g):
        want = np.stack([g[k] for g in expected])
        want = want if k == 0 else want.sum(0)
        np.testing.assert_allclose(one, want, atol=1e-9 * max(1.0, abs(want).max()))


@pytest.mark.parametrize("name", ["forward_dynamics", "pose", "step"])
def test_on_and_back_agree(name):
    """jacrev of the functions agrees with jacfwd of the forward ones."""
    _, x, call = ask(name)
    _, _, on = ask(name, sarrus.jax.forward)
    by = tuple(range(len(x)))
    back, forth = (jax.tree.leaves(jax.jit(jac)(*x)) for jac in (jax.jacrev(call, by), jax.jacfwd(on, by)))
    for a, b in zip(back, forth):
        np.testing.assert_allclose(a, b, atol=1e-8 * max(1.0, abs(a).max()))


def test_vmap_is_one_call_of_a_batch(monkeypatch):
    """The results are written into JAX's memory."""
    _, x, call = ask("inverse_dynamics")
    calls, own = [], sarrus.Mechanism.inverse_dynamics
    monkeypatch.setattr(
        sarrus.Mechanism,
        "inverse_dynamics",
        lambda self, *x, **how: calls.append((x[0].shape, [*how])) or own(self, *x, **how),
    )
    q = np.stack([x[0]] * 5, axis=1)
    y = jax.jit(jax.vmap(call, in_axes=(1, None, None)))(q, *x[1:])
    assert calls == [((5, len(x[0])), ["out"])]
    np.testing.assert_allclose(y, np.broadcast_to(own(stewart(), *x), y.shape), rtol=1e-12, atol=1e-9)
    g = jax.vmap(jax.grad(lambda *x: call(*x).sum()), in_axes=(1, None, None))(q, *x[1:])
    np.testing.assert_allclose(g[4], jax.grad(lambda *x: call(*x).sum())(*x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["pose", "step"])
def test_jax_s_own_memory_is_read_and_written(name, monkeypatch):
    """If JAX lacks such callbacks, copies have the same results."""
    _, x, call = ask(name)
    with monkeypatch.context() as patch:
        patch.setattr(jax, "pure_callback", None)
        there = jax.tree.leaves(call(*x))
    monkeypatch.setattr(sarrus.jax, "buffer_callback", None)
    for a, b in zip(there, jax.tree.leaves(call(*x)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_runs_are_a_scan_of_steps():
    robot = sarrus.mechanisms.four_bar()
    q, v = robot.assemble(fixed={"motor": 0.4}), np.zeros(3)

    def scanned(u):
        def body(state, u):
            state = sarrus.jax.step(robot, *state, u, 1e-2)
            return state, state[0]

        return jax.lax.scan(body, (jnp.asarray(q), jnp.asarray(v)), u)[1][-1, 0]

    def run(u):
        return sarrus.jax.rollouts(robot, q, v, u, 1e-2)[0][-1, 0]

    u = np.random.default_rng(0).standard_normal((6, 1))
    a, b = (jax.jit(jax.value_and_grad(of))(u) for of in (scanned, run))
    np.testing.assert_allclose(a[0], b[0], rtol=1e-12)
    np.testing.assert_allclose(a[1], b[1], rtol=1e-9, atol=1e-14)


def test_double_is_asked_for_aloud():
    robot, x = stewart(), inputs("kinetic_energy")
    with pytest.raises(TypeError, match="q must be float64"):
        sarrus.jax.kinetic_energy(robot, x["q"].astype(np.float32), x["v"])
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        sarrus.jax.kinetic_energy(robot, x["q"], x["v"])


def test_what_has_no_answer_says_so():
    four = sarrus.mechanisms.four_bar()
    q, rest = four.assemble(), np.zeros(3)
    both = jax.jit(lambda q: sarrus.jax.forward_dynamics(four, q, rest, rest))(np.stack([q, q + 1.0]))
    assert np.isnan(both).any(1).tolist() == [False, True]
    with pytest.raises(Exception, match="no result, because the state violates the loops"):
        sarrus.jax.forward_dynamics(four, q + 1.0, rest, rest)
    with pytest.raises(AttributeError, match="no attribute 'mass_matrix'"):
        sarrus.jax.mass_matrix  # noqa: B018
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda q: sarrus.jax.pose(four, q, "coupler"), (q,), (q,))
    assert not hasattr(sarrus.jax.forward, "rollouts")
