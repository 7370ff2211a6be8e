"""Functions of time and of coordinates: tables, periods and arithmetic; the core evaluates them as Python does."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import laws

TURN = np.linspace(0.0, 2.0 * np.pi, 25)
UNEVEN = np.array([-1.0, -0.6, 0.1, 0.5, 1.4, 1.9, 2.0, 3.0])


def left_and_right(law):
    """Return derivatives 0 to 5 (starts, 2, 6) at the initial times of pieces: of the piece before, and of the piece."""
    starts, pieces = np.array(law.starts), [np.polynomial.Polynomial(c) for c in law.coefficients]
    both = []
    for k in range(0 if law.period else 1, len(starts)):
        reach = starts[k] - starts[k - 1] + (law.period if k == 0 else 0.0)
        both.append(
            [[p.deriv(n)(x) if n else p(x) for n in range(6)] for p, x in ((pieces[k - 1], reach), (pieces[k], 0.0))]
        )
    return np.array(both)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("times", [TURN, UNEVEN])
def test_tables_are_smooth(times, periodic):
    """Derivatives up to the fourth are continuous, of a table that is not periodic at inner points; up to the second at its ends."""
    values = np.random.default_rng(0).normal(size=len(times))
    values[-1] = values[0]
    law = laws.table(times, values, periodic=periodic)
    assert_allclose(law(times), values, atol=1e-13)
    both = left_and_right(law)
    inner = both if periodic else both[2:-1]
    size = np.abs(both).max(axis=(0, 1))
    assert (np.abs(inner[:, 0] - inner[:, 1]).max(axis=0)[:5] < 1e-10 * size[:5]).all()
    assert (np.abs(both[:, 0] - both[:, 1]).max(axis=0)[:3] < 1e-10 * size[:3]).all()
    if periodic:
        assert law.period == times[-1] - times[0]
        for n in (-3, 1, 100):
            assert_allclose(law(times + n * law.period), values, atol=1e-10)


def test_tables_reproduce_polynomials_of_degree_five():
    p = np.polynomial.Polynomial(np.random.default_rng(1).normal(size=6))
    law, x = laws.table(UNEVEN, p(UNEVEN)), np.linspace(-1.0, 3.0, 100)
    for k, found in enumerate(law.derivatives(x)):
        expected = p.deriv(k)(x) if k else p(x)
        assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
    assert_allclose(laws.table([0.0, 1.0, 3.0], [0.0, 1.0, 9.0])([-2.0, 2.0, 5.0]), [4.0, 4.0, 25.0], atol=1e-12)


def test_tables_converge_with_the_sixth_power_of_the_distance():
    errors = []
    for n in (24, 48):
        x = np.linspace(0.0, 2.0 * np.pi, n + 1)
        at = np.linspace(-7.0, 7.0, 999)
        errors.append(np.abs(laws.table(x, np.sin(x), periodic=True)(at) - np.sin(at)).max())
    assert 55.0 < errors[0] / errors[1] < 75.0  # 64


def test_arithmetic():
    f, g = laws.table(TURN, np.sin(TURN), periodic=True), laws.harmonic(0.3, rate=2.0, phase=0.1, offset=0.2)
    cubic = laws.spline([0.0, 1.0, 3.0], [0.0, 2.0, 1.0])
    t = np.linspace(-5.0, 20.0, 200)
    for law, expected in (
        (f + g, f(t) + g(t)), (g - f, g(t) - f(t)), (-f, -f(t)), (2 * f - 1.5, 2 * f(t) - 1.5), (1 - g, 1 - g(t)), (f + f * 0.5, 1.5 * f(t)),
        (cubic - g * np.float64(3.0), cubic(t) - 3 * g(t)), (f + 0.25 + laws.polynomial(1.0), f(t) + 1.25),
    ):  # fmt: skip
        assert_allclose(law(t), expected, atol=1e-12)
    assert pickle.loads(pickle.dumps(f)) == f and f != laws.Law(f.starts, f.coefficients)


BAD = {
    "pieces that do not repeat": (lambda: laws.table(TURN, np.cos(TURN), periodic=True) + laws.polynomial(0.0, 1.0), "must have equal periods; got 6.28319 and 0"),
    "other start": (lambda: laws.table(TURN, np.cos(TURN), periodic=True) + laws.table(TURN - 1.0, np.cos(TURN), periodic=True), "begin at the same time"),
    "short period": (lambda: laws.Law((0.0, 2.0), ((1.0,), (2.0,)), (), 1.0), r"period .* begin at \[0.0, 2.0\]; got 1"),
    "negative period": (lambda: laws.Law(period=-1.0), "period of a time function must not be shorter"),
    "open table": (lambda: laws.table(TURN, TURN, periodic=True), "must equal the first, 0; got 6.28319"),
    "two points": (lambda: laws.table([0.0, 1.0], [0.0, 1.0]), "equal lengths, at least 3; got 2 and 2"),
    "unsorted": (lambda: laws.table([0.0, 2.0, 1.0], [0.0, 1.0, 2.0]), "times must increase; got 2 and then 1"),
    "factor": (lambda: laws.harmonic(1.0, 1.0) * np.inf, "a factor must be"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input(call, message):
    with pytest.raises(sarrus.ModelError, match=message):
        call()


def test_periodic_functions_of_time():
    """The core repeats the pieces, in prescribed motions and in efforts, and files store the period."""
    wave = laws.table(TURN, 0.1 * np.sin(TURN) ** 3, periodic=True)
    b = sarrus.Builder("shaker", gravity=(0.0, 0.0, 0.0))
    for name in ("driven", "pushed"):
        b.add_body(name, sarrus.Inertia.sphere(2.0, 0.1))
        b.add_joint(f"{name} slide", sarrus.Prismatic("x"), "ground", name, actuated=name == "pushed", tree=True)
    b.add_prescribed_motion("drive", "driven slide", wave)
    robot, t = b.build(), 17.3
    assert_allclose(robot.assemble(time=t)[0], wave(t), atol=1e-15)
    v, a = wave.derivatives(t)[1:]
    assert_allclose(robot.constraint_velocity(robot.neutral(), time=t), [v], atol=1e-14)
    assert_allclose(robot.constraint_bias(robot.neutral(), np.zeros(2), time=t), [a], atol=1e-13)
    effort = sarrus.control.FeedforwardEffort("pushed slide", wave)
    v = [wave.derivatives(0.0)[1], 0.0]
    run = sarrus.simulate(robot, robot.assemble(time=0.0), v, duration=20.0, dt=0.01, controller=effort)
    assert_allclose(run.q[:, 0], wave(run.t), atol=1e-9)
    assert_allclose(run.a[:, 1], wave(run.t) / 2.0, atol=1e-9)
