"""Springs and dampers with quadratic and cubic terms, of joints, of loop joints and between points: forces, energies, motions in closed form."""

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import derivatives, generation
from tests.random_mechanisms import random_inertia

NONLINEAR = {"quadratic_stiffness": -3.0, "cubic_stiffness": 7.0, "quadratic_damping": 0.4, "cubic_damping": 0.3}
LINEAR = {"stiffness": 5.0, "damping": 0.6}
TERMS = LINEAR | NONLINEAR


def force(
    x, v, *, stiffness=0, quadratic_stiffness=0, cubic_stiffness=0, damping=0, quadratic_damping=0, cubic_damping=0
):
    """Return the force against the deflection x and the velocity v."""
    spring = stiffness * x + quadratic_stiffness * x**2 + cubic_stiffness * x**3
    return spring + damping * v + quadratic_damping * v * abs(v) + cubic_damping * v**3


def energy(x):
    return TERMS["stiffness"] * x**2 / 2 + TERMS["quadratic_stiffness"] * x**3 / 3 + TERMS["cubic_stiffness"] * x**4 / 4


def slider(**terms):
    b = sarrus.Builder("slider", gravity=(0, 0, 0))
    b.add_body("cart", sarrus.Inertia(2.0, (0, 0, 0), np.eye(3)))
    b.add_joint("slide", sarrus.Prismatic("x", **terms), "ground", "cart", actuated=True)
    return b.build()


def closed(terms, loop=False, spring=None):
    """Return a four-bar mechanism with these terms at a joint of its tree or at a loop joint, or with a spring between points."""
    robot = sarrus.mechanisms.four_bar()
    b = robot.to_builder()
    name = robot.loop_joints[0] if loop else robot.joints[1]
    if spring:
        b.add_spring("coil", ("ground", (0.1, 0, -0.2)), (robot.bodies[1], (0.2, 0.1, 0.1)), rest_length=0.3, **spring)
    else:
        b.set_joint(name, dataclasses.replace(robot.joint(name).type, rest=0.3, **terms))
    return b.build()


STATES = {"tree": closed(TERMS), "loop": closed(TERMS, loop=True), "spring": closed({}, spring=TERMS)}
EVERY = pytest.mark.parametrize("robot", STATES.values(), ids=STATES)


def state(robot, seed=1):
    rng = np.random.default_rng(seed)
    q = robot.assemble(fixed={"motor": rng.uniform(0.3, 1.0)})
    return q, robot.complete_velocity(q, {"motor": 1.3}), rng.normal(size=robot.nv)


@pytest.mark.parametrize("x", [-1.3, 0.0, 0.7])
@pytest.mark.parametrize("v", [-0.9, 0.0, 1.1])
def test_force_and_energy_of_a_joint(x, v):
    """The force and the energy are the polynomials; coefficients of either sign act."""
    robot = slider(rest=0.2, **TERMS)
    assert_allclose(robot.inverse_dynamics([x], [v], [0.0]), [force(x - 0.2, v, **TERMS)], rtol=1e-15, atol=1e-15)
    assert_allclose(robot.potential_energy([x]), energy(x - 0.2), rtol=1e-14)


def test_force_of_a_ball():
    """A ball joint's spring acts along the rotation vector, with its angle as the deflection; dampers act on each component."""
    b = sarrus.Builder("ball", gravity=(0, 0, 0))
    b.add_body("a", random_inertia(np.random.default_rng(0)))
    b.add_joint("ball", sarrus.Spherical(**TERMS), "ground", "a")
    robot, axis, angle = b.build(), np.array([0.48, -0.6, 0.64]), 0.8
    q, v = [*(np.sin(angle / 2) * axis), np.cos(angle / 2)], np.array([0.3, -1.2, 0.7])
    bare = b.build().replace(**{name: {"ball": 0.0} for name in TERMS})
    springs = {name: x for name, x in TERMS.items() if "stiffness" in name}
    dampers = {name: x for name, x in TERMS.items() if "damping" in name}
    expected = axis * force(angle, 0.0, **springs) + [force(0.0, x, **dampers) for x in v]
    a = np.zeros(3)
    assert_allclose(robot.inverse_dynamics(q, v, a) - bare.inverse_dynamics(q, v, a), expected, rtol=1e-13)
    assert_allclose(robot.potential_energy(q), energy(angle), rtol=1e-14)
    assert np.isfinite(
        derivatives.inverse_dynamics(robot, robot.neutral(), v, a).q
    ).all()  # the norm's derivative at zero
    with pytest.raises(sarrus.ModelError, match="equal stiffness about all axes"):
        sarrus.Spherical(cubic_stiffness=[1, 2, 1])


@EVERY
def test_power_is_the_rate_of_energy_plus_dissipation(robot):
    """Inverse dynamics without acceleration: tau.v - d(T + U)/dt is the power of the dampers."""
    q, v, _ = state(robot)
    still = robot.replace(**{name: dict.fromkeys(names_of(robot), 0.0) for name in TERMS if "damping" in name})
    a = robot.complete_acceleration(q, v, {"motor": 0.4})
    h = 1e-5

    def total(t):
        at = robot.integrate(q, t * v + t * t / 2 * a)
        return robot.kinetic_energy(at, v + t * a) + robot.potential_energy(at)

    rate = (total(h) - total(-h)) / (2 * h)
    power = still.inverse_dynamics(q, v, a) @ v
    assert_allclose(
        power, rate, rtol=0, atol=1e-7 * max(1.0, abs(rate))
    )  # second differences: h² times third derivatives
    assert (robot.inverse_dynamics(q, v, a) - still.inverse_dynamics(q, v, a)) @ v > 0


def names_of(robot):
    names = [s.name for s in robot.description.springs]
    return names or [s.name for s in robot.description.joints if np.any(s.joint.cubic_stiffness)]


@EVERY
def test_derivatives_by_state_and_numbers(robot):
    """Analytical derivatives equal differences, by q and v, and by the new numbers and the rest of the spring."""
    q, v, a = state(robot)
    D, h = derivatives.inverse_dynamics(robot, q, v, a), 1e-5
    for k in range(robot.nv):
        d = np.eye(robot.nv)[k] * h
        ends = [robot.inverse_dynamics(robot.integrate(q, s * d), v, a) for s in (1, -1)]
        assert_allclose(D.q[:, k], (ends[0] - ends[1]) / (2 * h), rtol=0, atol=1e-7)
        ends = [robot.inverse_dynamics(q, v + s * d, a) for s in (1, -1)]
        assert_allclose(D.v[:, k], (ends[0] - ends[1]) / (2 * h), rtol=0, atol=1e-7)
    x, (name,) = np.random.default_rng(2).normal(size=robot.nv), names_of(robot)
    by, places = (
        derivatives.inverse_dynamics_vjp(robot, q, v, a, x, dimensions=True).dimensions,
        derivatives.dimensions(robot),
    )
    for term in (*TERMS, "rest"):
        source = next(s for s in robot.description.springs) if robot.description.springs else robot.joint(name).type
        number = np.ravel(getattr(source, "rest_length" if term == "rest" and robot.description.springs else term))
        number = float(number[0])
        ends = [robot.replace(**{term: {name: number + s * h}}).inverse_dynamics(q, v, a) @ x for s in (1, -1)]
        assert_allclose(by[places[f"{name}.{term}"]], [(ends[0] - ends[1]) / (2 * h)], rtol=1e-6, atol=1e-7)


def swinging(joint):
    """Return a body on a joint of three freedoms, and a slider on it."""
    b = sarrus.Builder("swinging")
    b.add_body("a", random_inertia(np.random.default_rng(0)))
    b.add_body("b", random_inertia(np.random.default_rng(1)))
    b.add_joint("ball", joint, "ground", "a", at_child=(0.1, 0.2, 0.3))
    b.add_joint("slide", sarrus.Prismatic("x", rest=0.1, **TERMS), "a", "b", actuated=True)
    return b.build()


REVERSED = {
    "ball": swinging(sarrus.Spherical(**TERMS)),
    "angles": swinging(sarrus.Gimbal("rx ry rz", **TERMS)),
} | STATES


@pytest.mark.parametrize("robot", REVERSED.values(), ids=REVERSED)
def test_both_modes_of_derivatives_agree(robot):
    """Products of cotangents with derivatives equal those of the matrices, of functions of a state and of steps of every method."""
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, robot.nv))
    q = robot.integrate(robot.neutral(), 0.3 * q)
    if robot.nc:
        q, v, a = state(robot)
    x, y = rng.normal(size=(2, robot.nv))
    for name in ("inverse_dynamics", "forward_dynamics"):
        D, back = (getattr(derivatives, name + end)(robot, q, v, a, *more) for end, more in (("", ()), ("_vjp", (x,))))
        for by in ("q", "v"):
            assert_allclose(getattr(back, by), x @ getattr(D, by), rtol=0, atol=1e-9 * np.abs(getattr(D, by)).max())
    for method in ("euler", "semi_implicit", "rk4", "implicit_midpoint"):
        D = derivatives.step(robot, q, v, 1e-3, method=method)
        back = derivatives.step_vjp(robot, q, v, 1e-3, x, y, method=method)
        n = robot.nv
        for by in ("q", "v"):
            expected = x @ getattr(D, by)[:n] + y @ getattr(D, by)[n:]
            assert_allclose(
                getattr(back, by), expected, rtol=0, atol=1e-9 * np.abs(getattr(D, by)).max(), err_msg=method
            )


@EVERY
def test_variants_files_and_generated_code(robot, tmp_path):
    """Lanes of variants equal single evaluations; JSON keeps the numbers."""
    (name,) = names_of(robot)
    q, v, a = state(robot)
    numbers = np.linspace(-1, 2, 7)
    several = robot.variants(cubic_stiffness={name: numbers}, quadratic_damping={name: 0.1 * numbers})
    one_by_one = [
        robot.replace(cubic_stiffness={name: x}, quadratic_damping={name: 0.1 * x}).inverse_dynamics(q, v, a)
        for x in numbers
    ]
    each = [np.tile(x, (7, 1)) for x in (q, v, a)]
    assert_allclose(several.inverse_dynamics(*each), one_by_one, rtol=1e-13, atol=1e-13)
    assert (
        several[3].description
        == robot.replace(cubic_stiffness={name: numbers[3]}, quadratic_damping={name: 0.1 * numbers[3]}).description
    )
    code = generation.compiled(
        generation.generate(robot, {"tau": "inverse_dynamics", "a": "forward_dynamics"}, tmp_path)
    )
    for name, function in (("tau", robot.inverse_dynamics), ("a", robot.forward_dynamics)):
        ((found,), status), core = (
            (lambda answer: (answer[0].values(), answer[1]))(code(name, q, v, a)),
            function(q, v, a),
        )
        assert not np.any(status)
        assert_allclose(found, core, rtol=1e-11, atol=1e-11 * np.abs(core).max())
    robot.save(tmp_path / "robot.json")
    again = sarrus.load(tmp_path / "robot.json")
    assert again.description == robot.description
    assert np.array_equal(again.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a))


@pytest.mark.parametrize("name", ["motor", "pin", "guide", "wrist"])
def test_reference_member(name):
    """The other formulation of forward dynamics has the same accelerations."""
    b = sarrus.mechanisms.slider_crank().to_builder()
    b.set_joint(name, dataclasses.replace(sarrus.mechanisms.slider_crank().joint(name).type, **TERMS))
    robot = b.build()
    q, tau = robot.assemble(), np.linspace(-1.0, 1.0, robot.nv)
    v = robot.project_velocity(q, np.linspace(0.3, 1.0, robot.nv))
    expected = robot.forward_dynamics(q, v, tau)
    found = robot.forward_dynamics(q, v, tau, solver="reference-member")
    assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


METHODS = ("rk4", "dopri5", "rkmk4", "implicit_midpoint", "rosenbrock", "independent", "contact")


@pytest.mark.parametrize("method", METHODS)
def test_cubic_oscillator_and_quadratic_damper(method):
    """m x'' = -k x³ has the period Gamma(1/4)² / sqrt(pi) sqrt(m / k) / x0; m v' = -c v |v| gives v0 / (1 + c v0 t / m)."""
    order = 2 if method in ("implicit_midpoint", "rosenbrock", "contact") else 4
    dt, tolerance = (5e-4, 2e-5) if order == 2 else (2e-3, 1e-7)
    robot = slider(cubic_stiffness=8.0)
    period = math.gamma(0.25) ** 2 / math.sqrt(math.pi) * math.sqrt(2.0 / 8.0) / 0.7
    run = sarrus.simulate(robot, [0.7], [0.0], period, method=method, dt=dt, times=[0.0, period / 4, period])
    assert_allclose(run.q[:, 0], [0.7, 0.0, 0.7], rtol=0, atol=tolerance)
    damped = slider(quadratic_damping=3.0)
    run = sarrus.simulate(damped, [0.0], [-1.5], 2.0, method=method, dt=dt)
    assert_allclose(run.v[:, 0], -1.5 / (1 + 3.0 * 1.5 * run.t / 2.0), rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint", "contact"])
@EVERY
def test_energy_balance_of_runs(robot, method):
    """The change of energy is the work of the dampers, which the run counts."""
    q, v, _ = state(robot)
    run = sarrus.simulate(robot, q, v, 0.5, method=method, dt=5e-4)
    change = run.energy[-1] - run.energy[0]
    assert change < -1e-3
    assert_allclose(run.statistics["work"], change, rtol=0, atol=2e-5 * abs(run.energy).max())


@pytest.mark.filterwarnings(
    "ignore::sarrus.StiffnessWarning"
)  # the work of dampers in such long steps is inaccurate, as that of linear ones
@pytest.mark.parametrize("method", ["implicit_midpoint", "rosenbrock", "contact"])
def test_implicit_steps_with_stiff_terms(method):
    """Steps h with h D / M = 2 and h omega = 1/4 by the tangents follow the motion, although explicit steps would diverge."""
    robot = slider(cubic_stiffness=1e4, quadratic_damping=200.0)
    run = sarrus.simulate(robot, [0.2], [1.0], 0.5, method=method, dt=0.01)
    exact = sarrus.simulate(robot, [0.2], [1.0], 0.5, method="dopri5")
    assert_allclose(run.q[-1], exact.q[-1], rtol=0, atol=2e-3)


def test_turns_of_a_loop_joint_are_counted():
    """A cubic spring of a loop joint winds up over several revolutions, with the energy of the counted angle."""
    b = sarrus.Builder("wound", gravity=(0, 0, 0))
    for name in ("a", "b"):
        b.add_body(name, sarrus.Inertia(1.0, (0, 0, 0), np.eye(3)))
    b.add_joint("first", sarrus.Revolute("z"), "ground", "a", tree=True)
    b.add_joint("second", sarrus.Revolute("z"), "a", "b", tree=True)
    b.add_joint(
        "spring", sarrus.Revolute("z", cubic_stiffness=0.01, quadratic_stiffness=0.02), "ground", "b", loop=True
    )
    b.add_coupler("fixed", {"second": 1.0})
    robot = b.build()
    run = sarrus.simulate(robot, [0.0, 0.0], [8.0, 0.0], 1.5, dt=1e-3)
    angle = run.q[:, 0]
    assert angle.max() > 2 * np.pi
    potential = 0.02 * angle**3 / 3 + 0.01 * angle**4 / 4
    assert_allclose(potential + 0.5 * 2.0 * run.v[:, 0] ** 2, 64.0, rtol=1e-7)
    assert_allclose(run.energy, 64.0, rtol=1e-7)


@pytest.mark.parametrize("name", NONLINEAR)
def test_bad_numbers(name):
    """Numbers that are not finite, on velocities without a coordinate, or without effect raise errors and warnings."""
    for value in (np.nan, np.inf, "stiff", [1.0, 2.0]):
        with pytest.raises(sarrus.ModelError, match=name):
            sarrus.Revolute("y", **{name: value})
    b = sarrus.Builder("spring")
    b.add_body("a", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("j", sarrus.Prismatic("x"), "ground", "a")
    with pytest.raises(sarrus.ModelError, match=f"spring 's': {name}"):
        b.add_spring("s", ("ground", (0, 0, 0)), ("a", (0, 0, 0)), stiffness=1.0, rest_length=0.1, **{name: np.nan})
    if "stiffness" in name:
        with pytest.raises(sarrus.ModelError, match="cannot have stiffness along velocity 1"):
            sarrus.Planar("z", **{name: [0.0, 1.0, 0.0]})


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_formats_without_these_terms(suffix, tmp_path):
    for robot in STATES.values():
        with pytest.raises(sarrus.ModelError, match="quadratic_stiffness"):
            robot.save(tmp_path / f"robot.{suffix}")
