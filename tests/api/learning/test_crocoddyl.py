"""sarrus.crocoddyl: state and step, compared with Crocoddyl's own differences."""

import numpy as np
import pytest

from tests.api.learning.states import inputs, stewart

crocoddyl = pytest.importorskip("crocoddyl")
H = 1e-6


def costs(state, goal, nu):
    import sarrus.crocoddyl

    known = crocoddyl.CostModelSum(state, nu)
    residuals = {"x": sarrus.crocoddyl.StateResidual(state, goal, nu), "u": crocoddyl.ResidualModelControl(state, nu)}
    for name, residual in residuals.items():
        known.addCost(name, crocoddyl.CostModelResidual(state, residual), 0.5)
    return known


def test_displacements_of_states():
    import sarrus.crocoddyl

    given, rng = inputs("step"), np.random.default_rng(0)
    state = sarrus.crocoddyl.State(stewart())
    x = np.concatenate([given["q"], given["v"]])
    dx, change = 0.3 * rng.standard_normal(state.ndx), rng.standard_normal(state.ndx)
    there = state.integrate(x, dx)
    np.testing.assert_allclose(state.diff(x, there), dx, atol=1e-12)
    first, second = state.Jdiff(x, there)
    for J, at in (
        (first, lambda h: (state.integrate(x, h * change), there)),
        (second, lambda h: (x, state.integrate(there, h * change))),
    ):
        np.testing.assert_allclose((state.diff(*at(H)) - state.diff(*at(-H))) / (2 * H), J @ change, atol=1e-7)
    first, second = state.Jintegrate(x, dx)
    for J, at in ((first, lambda h: (state.integrate(x, h * change), dx)), (second, lambda h: (x, dx + h * change))):
        moved = [state.diff(there, state.integrate(*at(h))) for h in (H, -H)]
        np.testing.assert_allclose((moved[0] - moved[1]) / (2 * H), J @ change, atol=1e-7)


def test_a_step_and_its_derivatives():
    import sarrus.crocoddyl

    robot, given = stewart(), inputs("step")
    state = sarrus.crocoddyl.State(robot)
    x, u = np.concatenate([given["q"], given["v"]]), given["u"]
    model = sarrus.crocoddyl.ActionModel(robot, 1e-2, costs(state, state.zero(), robot.nu))
    data, rng = model.createData(), np.random.default_rng(0)
    model.calc(data, x, u)
    model.calcDiff(data, x, u)
    run = sarrus.simulate(
        robot, x[: robot.nq], x[robot.nq :], 1e-2, sarrus.control.EffortTable([0.0], u[None]), dt=1e-2
    )
    np.testing.assert_allclose(data.xnext, np.concatenate([run.q[-1], run.v[-1]]), atol=1e-10)
    beside = model.createData()
    for by, gradient, at in (
        (data.Fx, data.Lx, lambda h, d: (state.integrate(x, h * d), u)),
        (data.Fu, data.Lu, lambda h, d: (x, u + h * d)),
    ):
        d, ends, worth = rng.standard_normal(by.shape[1]), [], []
        for h in (H, -H):
            model.calc(beside, *at(h, d))
            ends.append(state.diff(data.xnext, beside.xnext))
            worth.append(beside.cost)
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * H), by @ d, atol=1e-6)
        assert abs((worth[0] - worth[1]) / (2 * H) - gradient @ d) < 1e-6 * (1.0 + abs(gradient @ d))


def test_states_without_an_answer_are_nan():
    """An exception in a solver's call would end the process; with NaN it takes a shorter step, or gives up."""
    import sarrus.crocoddyl

    robot = stewart()
    state = sarrus.crocoddyl.State(robot)
    model = sarrus.crocoddyl.ActionModel(robot, 1e-2, costs(state, state.zero(), robot.nu))
    data, u = model.createData(), np.zeros(robot.nu)
    for x in (np.full(state.nx, np.nan), 1e300 * state.zero()):
        model.calc(data, x, u)
        model.calcDiff(data, x, u)
        assert np.isnan(data.xnext).all() and np.isnan(data.Fx).all() and np.isnan(data.cost)
    far = state.integrate(state.zero(), 1e3 * np.random.default_rng(0).standard_normal(state.ndx))
    problem = crocoddyl.ShootingProblem(far, [model] * 3, model)
    for solver in (crocoddyl.SolverFDDP(problem), crocoddyl.SolverDDP(problem)):
        assert not solver.solve([far] * 4, [u] * 3, 3, False)


def test_zero_and_drawn_states_close_the_loops():
    import sarrus.crocoddyl

    robot = stewart()
    state = sarrus.crocoddyl.State(robot)
    for x in (state.zero(), state.rand()):
        assert np.abs(robot.constraint_residual(x[: robot.nq])).max() < 1e-12
        assert np.abs(robot.constraint_jacobian(x[: robot.nq]) @ x[robot.nq :]).max() < 1e-10
    np.testing.assert_array_equal(state.zero()[: robot.nq], robot.assemble())


def test_last_nodes_do_not_pay_for_efforts():
    import sarrus.crocoddyl

    robot = sarrus.mechanisms.four_bar()
    state = sarrus.crocoddyl.State(robot)
    known = crocoddyl.CostModelSum(state, 1)
    wanted = crocoddyl.ResidualModelControl(state, np.array([3.0]))
    known.addCost("u", crocoddyl.CostModelResidual(state, wanted), 1.0)
    model = sarrus.crocoddyl.ActionModel(robot, 0.01, known)
    data = model.createData()
    model.calc(data, state.zero())
    model.calcDiff(data, state.zero())
    assert data.cost == 0.0 and not data.Lu.any()
    np.testing.assert_array_equal(data.xnext, state.zero())
    model.calc(data, state.zero(), np.zeros(1))
    assert data.cost == 4.5


def test_what_crocoddyl_would_differentiate_wrongly_is_refused():
    """Crocoddyl's residual of states assumes a diagonal derivative, which is correct for some mechanisms only."""
    import sarrus.crocoddyl

    for robot in (sarrus.mechanisms.four_bar(), stewart()):
        state = sarrus.crocoddyl.State(robot)
        known = crocoddyl.CostModelSum(state, robot.nu)
        residual = crocoddyl.ResidualModelState(state, state.zero(), robot.nu)
        known.addCost("x", crocoddyl.CostModelResidual(state, residual), 1.0)
        if robot.nq == robot.nv:
            sarrus.crocoddyl.ActionModel(robot, 0.01, known)
            continue
        with pytest.raises(sarrus.ModelError, match=r"'x': .*use sarrus\.crocoddyl\.StateResidual"):
            sarrus.crocoddyl.ActionModel(robot, 0.01, known)
    robot = sarrus.mechanisms.four_bar()
    state = sarrus.crocoddyl.State(robot)
    with pytest.raises(ValueError, match="method must be one of"):
        sarrus.crocoddyl.ActionModel(robot, 0.01, costs(state, state.zero(), 1), method="none")


def test_a_leg_jumps(monkeypatch):
    """From the standing pose at all nodes, FDDP converges to a jump of 0.2 m. The foot stays flat: the pressure is below it, and nothing pulls."""
    import runpy
    from pathlib import Path

    pytest.importorskip("matplotlib")
    folder = Path(__file__).parents[3] / "examples"
    monkeypatch.syspath_prepend(str(folder))
    found = runpy.run_path(str(folder / "learning" / "jumping_leg.py"))["main"]()
    assert found["solved"] and found["iterations"] <= 100
    assert found["rise"] == pytest.approx(0.2, abs=1e-3)  # the weight of the height against that of the efforts
    assert found["loops"] < 1e-12
    assert found["least force"] > 0.0 and found["friction"] < 0.6 and found["pressure"] < 0.08  # of the foot's 0.1 m


def test_fddp_brings_a_crank_to_rest():
    import sarrus.crocoddyl

    robot = sarrus.mechanisms.four_bar()
    state = sarrus.crocoddyl.State(robot)
    begin, goal = (np.concatenate([robot.assemble(fixed={"motor": angle}), np.zeros(3)]) for angle in (0.0, 0.3))
    run, last = (sarrus.crocoddyl.ActionModel(robot, dt, costs(state, goal, 1)) for dt in (0.02, 0.0))
    last.costs.costs["x"].weight, run.costs.costs["u"].weight, run.costs.costs["x"].weight = 1e3, 1e-2, 0.0
    solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(begin, [run] * 10, last))
    assert solver.solve([begin] * 11, [np.zeros(1)] * 10, 30, False)
    assert abs(solver.xs[-1] - goal).max() < 0.02
