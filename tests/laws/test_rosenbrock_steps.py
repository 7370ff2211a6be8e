"""Steps of "auto" with contacts and bristles: linearly implicit if forces are too stiff, otherwise of order 4."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import _differentiable, control
from tests.small_mechanisms import table

G = 1 - np.sqrt(0.5)


def oscillator(mass, stiffness, damping):
    """Return an oscillator with joint spring and damper."""
    b = sarrus.Builder("oscillator", gravity=(0.0, 0.0, 0.0))
    b.add_body("mass", sarrus.Inertia(mass, (0.0, 0.0, 0.0), 0.01 * np.eye(3)))
    b.add_joint("slide", sarrus.Prismatic("x", stiffness=stiffness, damping=damping), "ground", "mass")
    return b.build()


def block_on_ramp(slope, **ground):
    """Return a block on a ramp, held by half of the available friction at its feet."""
    b = sarrus.Builder("block", gravity=(9.81 * np.sin(slope), 0.0, -9.81 * np.cos(slope)))
    b.add_body("block", sarrus.Inertia.box(mass=2.0, size=(0.4, 0.4, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "block")
    feet = [f"foot{i}" for i in range(4)]
    for i, name in enumerate(feet):
        b.add_frame(name, "block", (0.2 * (1 - 2 * (i & 1)), 0.2 * (1 - (i & 2)), -0.05))
    return b.build(), [control.CompliantContact(name, **ground) for name in feet]


def linear(method, h, steps=1):
    """Return an oscillator with a rate of 20 per step of 1 s, and more."""
    robot = oscillator(2.0, 800.0, 16.0)
    run = sarrus.simulate(robot, [0.3], [-1.0], steps * h, method=method, dt=h, limits="ignore")
    return np.array([run.q[-1, 0], run.v[-1, 0]]), run.statistics["linearly_implicit"]


@pytest.mark.parametrize("h", [0.04, 0.1, 1.0, 100.0])
def test_linear_forces_are_taken_by_the_stability_function(h):
    """R(z) = (1 + (1 - 2 g) z) / (1 - g z)^2 of Verwer et al.: L-stable, so long steps remove a fast motion."""
    A = np.array([[0.0, 1.0], [-400.0, -8.0]])
    one, inverse = np.eye(2), np.linalg.inv(np.eye(2) - G * h * A)
    R = (one + (1 - 2 * G) * h * A) @ inverse @ inverse
    found, implicit = linear("rosenbrock", h)
    assert implicit == 1
    assert_allclose(found, R @ [0.3, -1.0], rtol=1e-6, atol=1e-7)


def test_slow_forces_are_taken_by_order_four():
    found, implicit = linear("rosenbrock", 0.03, 7)
    assert implicit == 0
    assert_array_equal(found, sarrus_rk4(0.03, 7))


def sarrus_rk4(h, steps):
    run = sarrus.simulate(oscillator(2.0, 800.0, 16.0), [0.3], [-1.0], steps * h, method="rk4", dt=h, limits="ignore")
    return np.array([run.q[-1, 0], run.v[-1, 0]])


@pytest.mark.parametrize("slip", [1e-2, 1e-3, 1e-5])
def test_what_friction_holds_creeps_as_the_law_says(slip):
    """mu N v / sqrt(v^2 + slip^2) = m g sin a, for steps of 5 to 5,000 times the time constant of the friction."""
    slope, mu = np.arctan(0.3), 0.6
    robot, feet = block_on_ramp(slope, friction=mu, slip_velocity=slip, dissipation=20.0)
    q = np.array([0, 0, 0, 1, 0, 0, 0.05])
    run = sarrus.simulate(robot, q, np.zeros(6), 2.0, feet)
    assert run.statistics["method"] == "rosenbrock"
    assert run.statistics["linearly_implicit"] > 1900
    creep = slip / np.sqrt(3.0)  # held at half of what it can: r / sqrt(1 + r^2) = 1 / 2
    assert run.v[-1, 3] == pytest.approx(creep, rel=1e-6)
    assert_allclose(
        run.v[-1], [0, 0, 0, creep, 0, 0], atol=1e-3 * creep
    )  # feet sink in unequally: it is a little inclined


def test_what_slides_stops_as_short_explicit_steps_say():
    """The body rocks on its feet, each of which slips and sticks again; short explicit steps are the reference."""
    robot, feet = block_on_ramp(0.0, friction=0.6, slip_velocity=1e-4, dissipation=2.0)
    start = robot, np.array([0, 0, 0, 1, 0, 0, 0.05]), [0, 0, 0, 1.0, 0, 0], 0.6, feet
    run, right = sarrus.simulate(*start), sarrus.simulate(*start, method="rk4", dt=1e-5)
    step = 0.6 * 9.81 * 1e-3  # what friction makes of a velocity in one
    assert np.abs(run.v[:, 3] - right.v[::100, 3]).max() < step / 2
    assert run.q[-1, 4] == pytest.approx(right.q[-1, 4], abs=1e-5)
    assert abs(run.v[-1, 3]) < 1e-6


def test_errors_fall_with_the_steps_on_loops():
    """All steps are linearly implicit, with a motor that is stiff for each; loops stay closed."""
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    hold = control.PID("motor", proportional=3e5, derivative=2e4, target=sarrus.laws.harmonic(0.3, 5.0, offset=0.5))
    ends = {}
    for h in (4e-3, 2e-3, 1e-3, 2.5e-5):
        method = "dopri5" if h < 1e-4 else "rosenbrock"
        how = {"rtol": 1e-10, "atol": 1e-10} if method == "dopri5" else {}
        run = sarrus.simulate(robot, q, np.zeros(3), 0.4, hold, method=method, dt=h, limits="ignore", **how)
        ends[h] = run.v[-1]
        if method == "rosenbrock":
            assert run.statistics["linearly_implicit"] == round(0.4 / h)
            assert run.loop_error.max() < 1e-12
    e = [np.abs(ends[h] - ends[2.5e-5]).max() for h in (4e-3, 2e-3, 1e-3)]
    assert e[0] > 2.0 * e[1] > 4.0 * e[2], e


def held_at_a_motor(make, name):
    """Return the mechanism with a motor that is stiff for all steps, and one with an internal state."""
    robot = make()
    target = sarrus.laws.harmonic(0.1, 5.0)
    return robot, robot.assemble(), [control.PID(name, 3e5, integral=1e4, derivative=2e4, target=target)]


def in_pieces(robot):
    """Return the mechanism in substructures, whose equation is solved by fronts."""
    return sarrus.Mechanism(robot.description, substructures=1)


def slides_down_the_ramp():
    robot, feet = block_on_ramp(0.2, friction=0.4, slip_velocity=1e-3)
    return robot, np.array([0, 0, 0, 1, 0, 0, 0.0499]), feet


@pytest.mark.filterwarnings(
    "ignore:by .rosenbrock.:sarrus.StiffnessWarning"
)  # two thousandths, of how loops turn what is so stiff
@pytest.mark.parametrize(
    "case",
    [
        slides_down_the_ramp,
        lambda: held_at_a_motor(sarrus.mechanisms.double_pendulum, "shoulder"),
        lambda: held_at_a_motor(sarrus.mechanisms.delta, "motor1"),
        lambda: held_at_a_motor(sarrus.mechanisms.stewart, "leg1"),
        lambda: held_at_a_motor(lambda: in_pieces(sarrus.mechanisms.stewart()), "leg1"),
    ],
)
def test_states_side_by_side_are_those_one_by_one(case):
    """With a function of the caller, which accepts one state, differences are computed one by one."""
    robot, q, acts = case()
    v, how = np.zeros(robot.nv), {"method": "rosenbrock", "dt": 1e-3, "limits": "ignore"}
    together = sarrus.simulate(robot, q, v, 0.02, acts, **how)
    one_by_one = sarrus.simulate(robot, q, v, 0.02, [*acts, lambda t, q, v: np.zeros(robot.nv)], **how)
    assert together.statistics["linearly_implicit"] == one_by_one.statistics["linearly_implicit"] > 2
    # differences of forces over steps of 1e-6 have a rounding of 1e-9, by which the steps hardly change
    assert_allclose(together.v[-1], one_by_one.v[-1], atol=1e-7 * np.abs(one_by_one.v).max())


def test_many_and_resumed_runs_are_the_same():
    robot, feet = block_on_ramp(0.2, friction=0.4, slip_velocity=1e-4)
    q, v = np.array([0, 0, 0, 1, 0, 0, 0.06]), np.array([0.0, 1.0, 0.0, 0.4, 0.0, 0.0])
    whole = sarrus.simulate(robot, q, v, 0.2, feet)
    assert 0 < whole.statistics["linearly_implicit"] < whole.statistics["steps"]  # it falls, and strikes
    first = sarrus.simulate(robot, q, v, 0.0837, feet)
    then = sarrus.simulate(robot, duration=0.2 - 0.0837, resume=first, controller=feet)
    many = sarrus.simulate_many(robot, [q, q, q], v, 0.2, feet, threads=2)
    assert_array_equal(then.q[-1], whole.q[-1])
    for k in range(3):
        assert_array_equal(many.q[k], whole.q)
        assert_array_equal(many.v[k], whole.v)


def test_joints_that_dry_friction_holds_stay():
    """A ball bounces in the same model: linearly implicit steps would move these joints."""
    b = sarrus.Builder("pendulum and ball")
    b.add_body("rod", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.02))
    b.add_body("ball", sarrus.Inertia.sphere(0.2, 0.05))
    b.add_joint("pivot", sarrus.Revolute("y", friction=20.0), "ground", "rod")
    b.add_joint("slide", sarrus.Prismatic("z"), "rod", "ball", at_parent=(1.0, 0, 0))
    robot = b.build()
    ground = control.CompliantContact("ball", radius=0.05, offset=-0.1, stiffness=1e8)
    fast = control.PID("slide", proportional=1e6, derivative=1e3)
    run = sarrus.simulate(robot, [0.0, 0.0], [0.0, 0.0], 0.3, [ground, fast])
    assert run.statistics["method"] == "rosenbrock"
    assert run.frame("ball")[:, 2, 3].min() < -1e-6  # which is pushed by something fast
    assert np.abs(run.joint("pivot")).max() < 1e-12


def test_what_has_no_derivatives_names_a_method_that_has():
    robot, feet = block_on_ramp(0.2)
    runs = sarrus.simulate_many(robot, robot.neutral(), np.zeros(6), 0.01, feet)
    with pytest.raises(
        sarrus.ModelError,
        match="method 'rosenbrock' has no derivatives through a step; give 'rk4' or 'implicit_midpoint'",
    ):
        sarrus.derivatives.rollouts_vjp(runs)
    above = [0, 0, 0, 1, 0, 0, 0.06]
    D = sarrus.derivatives.step(robot, above, np.zeros(6), 1e-3, controller=feet)  # by the midpoint rule
    assert np.isfinite(D.q).all()
    run = sarrus.simulate(robot, above, np.zeros(6), 0.01, feet, sensitivities=())
    assert run.statistics["method"] == "implicit_midpoint"


def test_what_learns_goes_forth_by_the_method_by_which_it_goes_back():
    robot, ground = table(), control.CompliantContact("block", radius=0.1)
    f = _differentiable.Function(_differentiable.ROWS["rollouts"], robot, {"dt": 1e-3, "controller": ground})
    q, v, u = np.array([[0.0, 0.099]]), np.array([[0.3, 0.0]]), np.zeros((1, 3, 2))
    found, speeds = _differentiable.samples(f, [q, v, u])
    wanted = sarrus.simulate_many(robot, q, v, 3e-3, ground, method="implicit_midpoint")
    assert_allclose(found[0], wanted.q[0], atol=1e-15)
    ends = np.zeros_like(speeds)
    ends[:, -1] = 1.0
    back = _differentiable.back_through(f, [q, v, u], [], [np.zeros_like(found), ends])
    assert np.abs(back[0]).max() > 1.0
