"""sarrus.casadi: callbacks and their Jacobians, entry by entry."""

import numpy as np
import pytest

from tests.api.learning.states import NAMES, WORDS, asked

casadi = pytest.importorskip("casadi")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rollouts"])
def test_jacobians(name):
    import sarrus.casadi

    f, x = asked(name)
    rest = {key: one for key, one in f.options.items() if key not in f.row.words}
    call = getattr(sarrus.casadi, name)(f.robot, *WORDS.get(name, ()), **rest)
    symbols = [casadi.MX.sym(f"x{k}", *one.shape) for k, one in enumerate(x)]
    y = call(*symbols)
    y = y if isinstance(y, tuple) else (y,)
    blocks = [casadi.jacobian(one, by) for one in y for by in symbols]
    numbers = casadi.Function("numbers", symbols, [*y, *blocks])(*x)
    expected = f.value(*x)
    for got, want in zip(numbers, expected):
        np.testing.assert_allclose(np.array(got).reshape(want.shape), want, atol=1e-12 * max(1.0, abs(want).max()))
    for k, want in enumerate(expected):
        for i, entry in enumerate(np.ndindex(want.T.shape)):  # column after column
            w = [np.zeros(one.shape) for one in expected]
            w[k][entry[::-1]] = 1.0
            for j, g in enumerate(f.vjp(x, expected, w)):
                block = np.array(numbers[len(y) + k * len(x) + j])
                np.testing.assert_allclose(block[i], g, atol=1e-9 * max(1.0, abs(g).max()))


def test_ipopt_finds_where_the_coupler_is_highest():
    import sarrus.casadi

    robot = sarrus.mechanisms.four_bar()
    assemble, pose = sarrus.casadi.assemble(robot, ["motor"]), sarrus.casadi.pose(robot, "coupler")
    x = casadi.MX.sym("x")
    quiet = {
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "print_time": 0,
        "ipopt.hessian_approximation": "limited-memory",
    }
    solve = casadi.nlpsol("solve", "ipopt", {"x": x, "f": -pose(assemble(x))[2, 3]}, quiet)
    found = float(solve(x0=1.0, lbx=0.0, ubx=3.0)["x"])
    angles = np.linspace(0.0, 3.0, 3001)
    heights = robot.pose(robot.assemble(fixed={"motor": angles}), "coupler")[:, 2, 3]
    assert abs(found - angles[heights.argmax()]) < 2e-3


def test_assemble_stays_on_the_branch_or_is_not_a_number():
    import sarrus.casadi

    robot = sarrus.mechanisms.four_bar(0.5, 1.2, 0.8, 1.0)
    home = robot.assemble()
    by_crank, by_rocker = sarrus.casadi.assemble(robot, ["motor"]), sarrus.casadi.assemble(robot, ["pivot"])
    for angle in np.linspace(-3.0, 3.0, 13):
        path = robot.follow({"motor": np.linspace(home[0], angle, 61)}, near=home)
        np.testing.assert_allclose(np.cos(np.array(by_crank(angle)).ravel() - path[-1]), 1.0, atol=1e-9)
    assert np.isnan(np.array(by_rocker(2.0))).all()


def test_complex_numbers_are_refused():
    import sarrus.casadi

    energy = sarrus.casadi.kinetic_energy(sarrus.mechanisms.four_bar())
    with pytest.raises(TypeError, match="v must be real"):
        energy(np.zeros(3), np.ones(3) * 1j)
