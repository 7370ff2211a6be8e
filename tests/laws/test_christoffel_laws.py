"""Christoffel symbols, derivatives of the mass matrix, and the factors of the coordinate-invariant form, against the recursive algorithms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sarrus
from tests.effort import examples
from tests.oracles.joint_motion import skew
from tests.random_mechanisms import COORDINATE_JOINTS, mechanisms, random_mechanism, random_state, seeds

EPS = np.finfo(float).eps
# up to eight bodies deep, and three products an entry
ROUNDING = 512 * EPS
# of derivatives by central differences of sixth order at steps of 1e-2, as in test_laws.py
DIFFERENCING = 1e-11

PLACE = st.sampled_from(["random", "neutral", "near", "singular"])
SCREWS = ("revolute", "prismatic", "helical", "gimbal ry", "gimbal tz", "fixed")
ANY = mechanisms(armature=st.booleans(), backward=st.sampled_from([0.0, 0.5]))
law = examples(25)


def state(robot, seed, at="random"):
    return random_state(robot, np.random.default_rng(seed), at)


def agree(got, expected, tolerance=ROUNDING, scale=0.0):
    assert np.shape(got) == np.shape(expected)
    size = max(1.0, scale, np.abs(expected).max(initial=0.0))
    assert_allclose(got, expected, rtol=0, atol=tolerance * size)


def flipped(A):
    return np.swapaxes(A, -1, -2)


# ---- Christoffel symbols -------------------------------------------------------------------------------------------


@law
@given(ANY, seeds(), PLACE)
def test_they_make_the_coriolis_matrix(robot, seed, at):
    q, v, _ = state(robot, seed, at)
    agree(sarrus.formulations.christoffel_symbols(robot, q) @ v, robot.coriolis_matrix(q, v))


@law
@given(ANY, seeds(), PLACE)
def test_property_2_of_either_c(robot, seed, at):
    """M-dot - 2C is skew, C of Christoffel symbols or of factors; M-dot is the derivative of M."""
    q, v, _ = state(robot, seed, at)
    M_dot = sarrus.formulations.mass_matrix_derivative(robot, q) @ v
    agree(M_dot, flipped(M_dot))
    for C in (
        sarrus.formulations.christoffel_symbols(robot, q) @ v,
        sarrus.formulations.poe_factors(robot, q, v).coriolis_matrix,
    ):
        agree(C + C.T, M_dot)


@law
@given(ANY, seeds(), PLACE)
def test_the_derivative_of_the_mass_matrix_is_its_rate_along_each_velocity(robot, seed, at):
    q, _, _ = state(robot, seed, at)
    h = 1e-2 * np.array([-3, -2, -1, 1, 2, 3])[:, None, None]
    M = robot.mass_matrix(robot.integrate(q, h * np.eye(robot.nv)))  # (6, k, i, j)
    rate = np.tensordot(np.array([-1, 9, -45, 45, -9, 1]) / 0.6, M, 1)
    agree(
        sarrus.formulations.mass_matrix_derivative(robot, q),
        np.moveaxis(rate, 0, -1),
        DIFFERENCING,
        scale=np.abs(M).max(initial=0.0),
    )


@law
@given(mechanisms(joints=COORDINATE_JOINTS, floating=False, backward=st.sampled_from([0.0, 0.5])), seeds(), PLACE)
def test_where_v_is_the_rate_of_q_they_are_what_the_book_defines(robot, seed, at):
    """Murray, Li and Sastry 4.23."""
    q, _, _ = state(robot, seed, at)
    dM = sarrus.formulations.mass_matrix_derivative(robot, q)
    expected = 0.5 * (dM + flipped(dM) - np.moveaxis(dM, -1, 0))
    Gamma = sarrus.formulations.christoffel_symbols(robot, q)
    agree(Gamma, expected)
    agree(Gamma, flipped(Gamma))


def test_of_a_free_body_they_are_its_gyroscopic_terms():
    """The gyroscopic terms about the centre of mass; exchanging the last two indices adds I S_i . [S_j, S_k]."""
    I = np.diag([0.2, 0.3, 0.4])
    b = sarrus.Builder()
    b.add_body("body", sarrus.Inertia(2.0, (0, 0, 0), I))
    b.add_joint("float", sarrus.Free(), "ground", "body")
    robot = b.build()
    Gamma, w = sarrus.formulations.christoffel_symbols(robot, robot.neutral()), np.array([0.3, -0.5, 0.7])
    v = np.concatenate([w, np.zeros(3)])
    agree((Gamma @ v @ v)[:3], skew(w) @ I @ w)
    bracket = np.array([[skew(j) @ k for k in np.eye(3)] for j in np.eye(3)])  # [j, k, component]
    agree((Gamma - flipped(Gamma))[:3, :3, :3], np.einsum("il,jkl->ijk", I, -bracket))


@pytest.mark.parametrize("armature", [0.0, 0.7])
def test_armature_of_a_joint_that_closes_a_loop_turns_with_the_configuration(armature):
    b = sarrus.Builder()
    for name in ("left", "right"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
    b.add_joint("a", sarrus.Revolute("y"), "ground", "left")
    b.add_joint("b", sarrus.Universal("x", "y"), "ground", "right", at_parent=(0.4, 0, 0))
    b.add_joint("c", sarrus.Cylindrical("x", armature=armature), "left", "right", tree=False)
    robot = b.build()
    q, v = np.array([0.3, 0.4, -0.5]), np.array([0.7, -0.4, 0.9])
    C = robot.coriolis_matrix(q, v)
    agree(sarrus.formulations.christoffel_symbols(robot, q) @ v, C)
    agree(sarrus.formulations.mass_matrix_derivative(robot, q) @ v, C + C.T)


def test_they_are_too_many_to_count_on_long_chains():
    robot = random_mechanism(1, bodies=220, joints=("free",))
    with pytest.raises(sarrus.ShapeError, match=r"christoffel_symbols of this mechanism has .* numbers per state"):
        sarrus.formulations.christoffel_symbols(robot, robot.neutral())


# ---- factors -------------------------------------------------------------------------------------------------------


@law
@given(ANY, seeds(), PLACE)
def test_products_of_factors_are_the_recursive_algorithms(robot, seed, at):
    q, v, _ = state(robot, seed, at)
    form = sarrus.formulations.poe_factors(robot, q, v)
    S, G, M = form.S, form.G, form.M
    agree(S.T @ G.T @ M @ G @ S + form.armature, robot.mass_matrix(q))
    agree(form.mass_matrix, robot.mass_matrix(q))
    agree(form.gravity_forces, robot.gravity_forces(q))
    agree(form.coriolis_matrix @ v, robot.coriolis_matrix(q, v) @ v)
    for body, J in zip(form.bodies, form.J.reshape(len(form.bodies), 6, robot.nv), strict=True):
        agree(J, robot.jacobian(q, body))
    agree(form.J @ v, form.V)
    agree(sarrus.formulations.poe_factors(robot, q, frame="tool").J_t, robot.jacobian(q, "tool"))


@law
@given(ANY, seeds(), PLACE)
def test_factors_are_what_they_are_called(robot, seed, at):
    """G = (1 - Gamma)^-1 of a nilpotent Gamma, h_V skew with h_V V = ad_V^T M V, and the slides' C with ad_V^T M in place of h_V."""
    q, v, _ = state(robot, seed, at)
    form = sarrus.formulations.poe_factors(robot, q, v)
    one = np.eye(len(form.Gamma))
    agree(form.G @ (one - form.Gamma), one)
    assert not np.linalg.matrix_power(form.Gamma, len(form.bodies)).any()
    np.testing.assert_array_equal(form.h_V, -form.h_V.T)
    agree(form.h_V @ form.V, form.ad_V.T @ form.M @ form.V)
    J_dot = form.G @ (form.ad_S @ form.Gamma @ form.J + form.S_dot)
    agree(form.J.T @ (form.M @ J_dot + form.ad_V.T @ form.M @ form.J) @ v, robot.coriolis_matrix(q, v) @ v)


def test_factors_of_a_batch_are_those_of_its_states():
    robot, rng = random_mechanism(3, bodies=5, floating=True), np.random.default_rng(0)
    q, v = robot.random(rng, (2, 3)), rng.normal(size=(2, 3, robot.nv))
    both, one = sarrus.formulations.poe_factors(robot, q, v), sarrus.formulations.poe_factors(robot, q[1, 2], v[1, 2])
    for name in ("S", "S_dot", "Gamma", "G", "P_0", "P_t", "M", "ad_S", "ad_V", "h_V", "V"):
        agree(getattr(both, name)[1, 2], getattr(one, name))
    agree(both.gravity_forces, robot.gravity_forces(q))
    agree(both.coriolis_matrix[0, 1], sarrus.formulations.poe_factors(robot, q[0, 1], v[0, 1]).coriolis_matrix)


def test_factors_do_not_hold_armature_of_loops():
    b = sarrus.Builder()
    b.add_body("bar", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
    b.add_joint("a", sarrus.Revolute("y"), "ground", "bar")
    b.add_joint("b", sarrus.Revolute("y", armature=0.1), "ground", "bar", tree=False)
    with pytest.raises(sarrus.ModelError, match="joint 'b' has armature"):
        sarrus.formulations.poe_factors(b.build(), [0.0])


# ---- screws --------------------------------------------------------------------------------------------------------


@examples(15)
@given(mechanisms(joints=SCREWS, floating=False, shuffled=False, backward=st.sampled_from([0.0, 0.5])), seeds())
def test_frames_stand_at_products_of_exponentials_of_the_joints_screws(robot, seed):
    q, _, _ = state(robot, seed)
    zero = robot.neutral()
    at_tool = robot.jacobian(zero, "tool", expressed_in="world")
    carries = np.abs(at_tool).max(axis=0) > 0  # joints on the tool's way to the ground
    screws, home = sarrus.formulations.joint_screws(robot)[carries], robot.pose(zero, "tool")
    agree(screws, at_tool.T[carries])
    agree(sarrus.spatial.product_of_exponentials(screws, q[carries], home), robot.pose(q, "tool"))
    agree(
        sarrus.spatial.spatial_jacobian(screws, q[carries]), robot.jacobian(q, "tool", expressed_in="world")[:, carries]
    )
    agree(sarrus.spatial.body_jacobian(screws, q[carries], home), robot.jacobian(q, "tool")[:, carries])


def test_joints_of_several_freedoms_have_no_screw():
    with pytest.raises(sarrus.ModelError, match="joint 'float' has 6 freedoms"):
        sarrus.formulations.joint_screws(sarrus.mechanisms.rolling_disc())
