"""Comparison of every algorithm with the slow reference, over random trees with all joint types."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.oracles import Dense
from tests.public import of
from tests.random_mechanisms import COORDINATE_JOINTS, PLACES, mechanisms, random_mechanism, random_state, seeds

# the issue's; where a mass matrix is solved for, rounding of M alone may move the answer by its condition number
RELATIVE = 1e-10
EPS = np.finfo(float).eps


class State(NamedTuple):
    """Inputs of the functions of a state; in a batch the arrays have leading axes."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    wrench: np.ndarray  # (..., 3, 6): one for each of three frames
    base: np.ndarray  # (..., 2, 6): velocity and acceleration of the ground
    frame: str

    @property
    def wrenches(self):
        return {
            name: self.wrench[..., k, :] for k, name in enumerate((self.frame, "tool", "body0")) if name != "ground"
        }

    @property
    def ground_motion(self):
        return {"base_velocity": self.base[..., 0, :], "base_acceleration": self.base[..., 1, :]}


# the same question to a Mechanism and to an oracle; a line here tests one function, one state and batch, everywhere
OPERATIONS: dict[str, Callable] = {
    "inverse_dynamics": lambda m, s: m.inverse_dynamics(s.q, s.v, s.a),
    "inverse_dynamics, pushed": lambda m, s: m.inverse_dynamics(s.q, s.v, s.a, wrenches=s.wrenches),
    "inverse_dynamics, carried": lambda m, s: m.inverse_dynamics(s.q, s.v, s.a, **s.ground_motion),
    "reactions": lambda m, s: of(m, "reactions")(s.q, s.v, s.a, wrenches=s.wrenches),
    "reactions, carried": lambda m, s: of(m, "reactions")(s.q, s.v, s.a, **s.ground_motion),
    "bias_forces": lambda m, s: m.bias_forces(s.q, s.v),
    "gravity_forces": lambda m, s: m.gravity_forces(s.q),
    "mass_matrix": lambda m, s: m.mass_matrix(s.q),
    "regressor": lambda m, s: m.regressor(s.q, s.v, s.a),
    "integrate": lambda m, s: m.integrate(s.q, s.v),
    "center_of_mass": lambda m, s: m.center_of_mass(s.q),
    "center_of_mass_jacobian": lambda m, s: of(m, "center_of_mass_jacobian")(s.q),
    "momentum": lambda m, s: m.momentum(s.q, s.v),
    "centroidal_momentum": lambda m, s: of(m, "centroidal_momentum")(s.q, s.v),
    "centroidal_momentum_matrix": lambda m, s: of(m, "centroidal_momentum_matrix")(s.q),
    "centroidal_momentum_bias": lambda m, s: of(m, "centroidal_momentum_bias")(s.q, s.v),
    "kinetic_energy": lambda m, s: m.kinetic_energy(s.q, s.v),
    "potential_energy": lambda m, s: m.potential_energy(s.q),
    "pose": lambda m, s: m.pose(s.q, s.frame),
    "velocity": lambda m, s: m.velocity(s.q, s.v, s.frame),
    "acceleration": lambda m, s: m.acceleration(s.q, s.v, s.a, s.frame),
    "jacobian": lambda m, s: m.jacobian(s.q, s.frame),
    "jacobian_derivative": lambda m, s: m.jacobian_derivative(s.q, s.v, s.frame),
    "velocity, world": lambda m, s: m.velocity(s.q, s.v, s.frame, expressed_in="world"),
    "acceleration, world": lambda m, s: m.acceleration(s.q, s.v, s.a, s.frame, expressed_in="world"),
    "jacobian, world": lambda m, s: m.jacobian(s.q, s.frame, expressed_in="world"),
    "jacobian_derivative, world": lambda m, s: m.jacobian_derivative(s.q, s.v, s.frame, expressed_in="world"),
    "velocity, aligned": lambda m, s: m.velocity(s.q, s.v, s.frame, expressed_in="world_aligned"),
    "acceleration, aligned": lambda m, s: m.acceleration(s.q, s.v, s.a, s.frame, expressed_in="world_aligned"),
    "jacobian, aligned": lambda m, s: m.jacobian(s.q, s.frame, expressed_in="world_aligned"),
    "jacobian_derivative, aligned": lambda m, s: m.jacobian_derivative(s.q, s.v, s.frame, expressed_in="world_aligned"),
}
# these divide by the mass matrix, and have no answer where a gimbal is singular
SOLVING: dict[str, Callable] = {
    "forward_dynamics": lambda m, s: m.forward_dynamics(s.q, s.v, s.tau),
    "forward_dynamics, pushed": lambda m, s: m.forward_dynamics(s.q, s.v, s.tau, wrenches=s.wrenches),
    "mass_matrix_inverse": lambda m, s: m.mass_matrix_inverse(s.q),
    "omega": lambda m, s: of(m, "omega")(s.q, s.frame),
    "operational_inertia_inverse": lambda m, s: of(m, "operational_inertia_inverse")(s.q, s.frame),
}


def draw_state(robot, rng, at="random"):
    q, v, a = random_state(robot, rng, at)
    frame = robot.frames[
        sum(map(ord, robot.name)) % len(robot.frames)
    ]  # one for a mechanism: all rows of a batch ask about it
    return State(q, v, a, rng.normal(size=robot.nv), rng.normal(size=(3, 6)), rng.normal(size=(2, 6)), frame)


def stack(states):
    *arrays, _ = zip(*states, strict=True)
    return State(*map(np.array, arrays), states[0].frame)


def numbers(answer):
    """Return a result as one array. Reactions are sorted by name, because the order of a dict does not matter."""
    return (
        np.stack([answer[name] for name in sorted(answer)], axis=-2) if isinstance(answer, dict) else np.asarray(answer)
    )


def assert_agrees(ours, theirs, relative=RELATIVE):
    ours, theirs = numbers(ours), np.asarray(numbers(theirs), float)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max(initial=0.0) <= relative * (1.0 + np.abs(theirs).max(initial=0.0))


def rows(answer, k):
    return {name: x[k] for name, x in answer.items()} if isinstance(answer, dict) else answer[k]


def assert_all_agree(operations, robot, oracle, states, relative):
    """Compare the results for single states, and for all states in one call."""
    batch = stack(states)
    for ask in operations.values():
        many = ask(robot, batch)
        for k, state in enumerate(states):
            expected = ask(oracle, state)
            assert_agrees(ask(robot, state), expected, relative)
            assert_agrees(rows(many, k), expected, relative)


def solving_tolerance(oracle, states):
    """Return the tolerance of a backward stable solver: its rounding times the condition number, times a constant of twelve."""
    worst = max(np.linalg.cond(oracle.mass_matrix(s.q)) if oracle.nv else 1.0 for s in states)
    return max(RELATIVE, 12 * EPS * worst)


REVERSIBLE = (
    "fixed",
    "revolute",
    "prismatic",
    "helical",
    "cylindrical",
)  # seen from the other end these are of their own kind
ANY_TREE = mechanisms(friction=st.booleans(), armature=st.booleans(), springs=st.booleans())


@pytest.mark.parametrize("name", OPERATIONS)
@examples(10)
@given(robot=ANY_TREE, seed=seeds())
def test_agrees(name, robot, seed):
    """Five states, more than a packet has lanes: two random ones, zero, one near zero, and one with singular gimbals."""
    rng = np.random.default_rng(seed)
    states = [draw_state(robot, rng, at) for at in (*PLACES, "singular", "random")]
    assert_all_agree({name: OPERATIONS[name]}, robot, Dense(robot.description), states, RELATIVE)


@pytest.mark.parametrize("name", SOLVING)
@examples(10)
@given(robot=ANY_TREE, seed=seeds())
def test_agrees_on_what_is_solved_for(name, robot, seed):
    rng = np.random.default_rng(seed)
    states = [draw_state(robot, rng, at) for at in (*PLACES, "random", "random")]
    oracle = Dense(robot.description)
    assert_all_agree({name: SOLVING[name]}, robot, oracle, states, solving_tolerance(oracle, states))


@examples(10)
@given(robot=mechanisms(joints=COORDINATE_JOINTS, floating=False), seed=seeds())
def test_coriolis_matrix_holds_christoffels_symbols(robot, seed):
    """If v is dq/dt, the matrix of Christoffel symbols is unique and must agree; otherwise other tests check its laws."""
    rng = np.random.default_rng(seed)
    ask = {
        "coriolis_matrix": lambda m, s: m.coriolis_matrix(s.q, s.v),
        "christoffel_symbols": lambda m, s: of(m, "christoffel_symbols")(s.q),
    }
    assert_all_agree(
        ask, robot, Dense(robot.description), [draw_state(robot, rng, at) for at in (*PLACES, "singular")], RELATIVE
    )


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize(("bodies", "branching"), [(25, 0.3), (60, 0.1), (60, 0.6)])
def test_agrees_on_large_trees(bodies, branching, floating):
    """Trees with every joint type several times: chains of tens of bodies, friction, armature and springs."""
    robot = random_mechanism(
        bodies, bodies=bodies, branching=branching, floating=floating, friction=True, armature=True, springs=True
    )
    oracle = Dense(robot.description)
    state = draw_state(robot, np.random.default_rng(bodies))
    assert_all_agree(OPERATIONS, robot, oracle, [state], RELATIVE)
    assert_all_agree(SOLVING, robot, oracle, [state], solving_tolerance(oracle, [state]))


@examples(12)
@given(
    robot=mechanisms(
        joints=REVERSIBLE,
        floating=False,
        backward=st.sampled_from([0.5, 1.0]),
        friction=True,
        armature=True,
        springs=True,
    ),
    seed=seeds(),
)
def test_agrees_where_joints_point_to_the_ground(robot, seed):
    """Joints whose parent is the body farther from the ground. Their reactions act on the other body, so they are not compared."""
    state = draw_state(robot, np.random.default_rng(seed))
    oracle = Dense(robot.description)
    asked = {name: ask for name, ask in OPERATIONS.items() if not name.startswith("reactions")}
    assert_all_agree(asked, robot, oracle, [state], RELATIVE)
    assert_all_agree(SOLVING, robot, oracle, [state], solving_tolerance(oracle, [state]))
