"""Laws of rotations, poses, inertias and spatial vectors."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Inertia, ModelError, Rotation, ShapeError, Transform, spatial
from sarrus.spatial import cross_force, cross_motion, transform_force, transform_motion

EPS = np.finfo(float).eps
# a dozen operations on numbers of order one; on numbers of order n, n times as much
ROUNDING = 64 * EPS
# of the power series below: a thousand squarings' worth of rounding
SERIES = 1e-12

X, Y, Z = np.eye(3)


def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def motion_operator(v):
    """Return crm with crm m = v x m, from its blocks."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def matrix_exponential(A):
    """Return the exponential: Taylor's series of A/1024, squared ten times."""
    term = total = np.eye(len(A))
    for k in range(1, 12):
        term = term @ A / (1024 * k)
        total = total + term
    for _ in range(10):
        total = total @ total
    return total


def vectors(n=3, size=2.0):
    return st.lists(st.floats(-size, size, allow_subnormal=False), min_size=n, max_size=n).map(np.array)


@st.composite
def directions(draw):
    if draw(st.booleans()):
        return draw(st.sampled_from([X, Y, Z, -X, -Y, -Z]))
    a = draw(vectors().filter(lambda a: a @ a > 1e-3))
    return a / np.linalg.norm(a)


# zero and near it, where the series take over (1e-4, 1e-2) and just beyond, anywhere, and near half a turn
ANGLES = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-16, 1e-8, 0.999e-4, 1.001e-4, 0.999e-2, 1.001e-2, np.pi / 2]),
    st.sampled_from([np.pi - 1e-2, np.pi - 1e-4, np.pi - 1e-8, np.pi - 1e-12]),
    st.floats(0, 3.14),
)


@st.composite
def rotation_vectors(draw):
    return draw(directions()) * draw(ANGLES)


@st.composite
def rotations(draw):
    return Rotation.exp(draw(rotation_vectors()))


@st.composite
def transforms(draw):
    return Transform(draw(rotations()), draw(vectors()))


@st.composite
def moments(draw):
    """Return principal moments of inertia that a body can have: sums of second moments a, b, c >= 0."""
    a, b, c = (draw(st.one_of(st.just(0.0), st.floats(1e-3, 2))) for _ in range(3))
    return np.array([b + c, a + c, a + b])


@st.composite
def inertias(draw):
    R = draw(rotations()).matrix
    return Inertia(draw(st.floats(0.1, 5)), draw(vectors()), R @ np.diag(draw(moments())) @ R.T)


def assert_same(a, b, tolerance=ROUNDING):
    """Check that two inertias, transforms or rotations agree."""
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert_allclose(x, y, rtol=0, atol=tolerance * max(1, np.abs(y).max()), err_msg=field.name)


# --- rotations ----------------------------------------------------------------------------------------------------


@given(rotation_vectors())
def test_logarithm_undoes_exponential(r):
    assert_allclose(Rotation.exp(r).log(), r, rtol=0, atol=ROUNDING)


@given(directions(), st.sampled_from([1e-300, 1e-12, 1e-8]))
def test_small_rotations_keep_all_their_digits(axis, angle):
    assert_allclose(Rotation.exp(axis * angle).log(), axis * angle, rtol=4 * EPS, atol=4 * EPS * angle)


@given(rotation_vectors())
def test_exponential_is_that_of_the_matrix(r):
    assert_allclose(Rotation.exp(r).matrix, matrix_exponential(skew(r)), rtol=0, atol=SERIES)


@given(vectors(size=1e3))
def test_many_turns(r):
    R = Rotation.exp(r)
    w = R.log()
    assert np.linalg.norm(w) <= np.pi * (1 + ROUNDING)
    assert_same(Rotation.exp(w), R)


@given(rotations())
def test_a_rotation_is_orthonormal(R):
    assert_allclose(R.matrix @ R.matrix.T, np.eye(3), rtol=0, atol=ROUNDING)
    assert_allclose(np.linalg.det(R.matrix), 1, rtol=0, atol=ROUNDING)


@given(rotations(), rotations(), vectors())
def test_rotations_form_a_group(A, B, v):
    assert_same(A @ A.inverse(), Rotation())
    assert_same((A @ B).inverse(), B.inverse() @ A.inverse())
    assert_allclose((A @ B).apply(v), A.apply(B.apply(v)), rtol=0, atol=4 * ROUNDING)


@given(rotations(), st.sampled_from([1e-200, 1e-3, -1.0, 7.0, 1e200]))
def test_quaternion_round_trip(R, scale):
    """Any multiple of q is the same rotation; the returned quaternion has length 1 and w >= 0."""
    q = R.quaternion
    assert_allclose(np.linalg.norm(q), 1, rtol=4 * EPS)
    assert q[3] >= 0
    assert_same(Rotation.from_quaternion(scale * q), R)


@given(directions(), st.sampled_from([0.0, 1e-15, 1e-8, 1e-4]))
def test_quaternion_of_half_a_turn(axis, short):
    """R + R^T = 4 u u^T - 2 determines the axis, although the trace does not."""
    q = Rotation.from_axis_angle(axis, np.pi - short).quaternion
    expected = np.append(axis * np.cos(short / 2), np.sin(short / 2))
    assert_allclose(q * np.sign(q @ expected), expected, rtol=0, atol=ROUNDING)


@given(rotations(), rotations())
def test_quaternions_multiply_as_rotations_do(A, B):
    a, b, (x, y, z, w) = A.quaternion, B.quaternion, (A @ B).quaternion
    product = np.append(a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), a[3] * b[3] - a[:3] @ b[:3])
    assert_allclose(product * (np.sign(product @ [x, y, z, w])), [x, y, z, w], rtol=0, atol=4 * ROUNDING)


def test_quaternion_order_is_x_y_z_w():
    half = np.sqrt(0.5)
    assert_allclose(Rotation.from_quaternion([0, 0, half, half]).apply(X), Y, atol=ROUNDING)
    assert_array_equal(Rotation().quaternion, [0, 0, 0, 1])


@given(rotation_vectors())
def test_axis_and_angle(r):
    axis, angle = Rotation.exp(r).axis_angle
    assert_allclose(np.linalg.norm(axis), 1, rtol=4 * EPS)
    assert 0 <= angle <= np.pi
    assert_allclose(axis * angle, r, rtol=0, atol=ROUNDING)
    assert_same(Rotation.from_axis_angle(axis * 3e-7, angle), Rotation.exp(r))


@pytest.mark.parametrize(("name", "axis"), [("x", X), ("y", Y), ("z", Z), ("-x", -X), ("-y", -Y), ("-z", -Z)])
def test_named_axes(name, axis):
    assert Rotation.from_axis_angle(name, 0.3) == Rotation.from_axis_angle(axis, 0.3)


@given(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1))
def test_roll_pitch_yaw_round_trip(roll, pitch, yaw):
    R = Rotation.from_rpy(roll, pitch, yaw)
    # an error in R is magnified by 1/cos(pitch) in roll and yaw
    assert_allclose(R.rpy, [roll, pitch, yaw], rtol=0, atol=ROUNDING / np.cos(pitch))
    turns = (
        Rotation.from_axis_angle("z", yaw),
        Rotation.from_axis_angle("y", pitch),
        Rotation.from_axis_angle("x", roll),
    )
    assert_same(turns[0] @ turns[1] @ turns[2], R)


@given(
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.sampled_from([0.0, 1e-16, 1e-15, 1e-12, 1e-8, 1e-4]),
    st.sampled_from([1, -1]),
)
def test_gimbal_lock(roll, yaw, off, side):
    """Near gimbal lock, at any distance, the returned angles give the same rotation."""
    R = Rotation.from_rpy(roll, side * (np.pi / 2 - off), yaw)
    for same in (R, Rotation.from_quaternion(R.quaternion)):
        assert_same(Rotation.from_rpy(*same.rpy), R)


@pytest.mark.parametrize("side", [1, -1])
def test_in_gimbal_lock_yaw_is_zero(side):
    roll, _, yaw = Rotation.from_quaternion(Rotation.from_rpy(0.5, side * np.pi / 2, 0.2).quaternion).rpy
    assert yaw == 0
    assert_allclose(roll, 0.5 - side * 0.2, atol=ROUNDING)


@given(rotations(), st.sampled_from([4, 5, 6, 8, 12]))
def test_rounded_digits_become_the_nearest_rotation(R, digits):
    typed = R.matrix.round(digits)
    U, _, Vt = np.linalg.svd(typed)
    found = Rotation(typed).matrix
    # Newton's two steps leave 3/8 of the defect's fourth power, of 3e-4 at four digits
    assert_allclose(found, U @ Vt, rtol=0, atol=ROUNDING)
    assert_array_equal(Rotation(found).matrix, found)


# --- poses --------------------------------------------------------------------------------------------------------


@given(transforms(), transforms(), vectors())
def test_transforms_form_a_group(A, B, p):
    assert_same(A @ A.inverse(), Transform())
    assert_allclose((A @ B).matrix, A.matrix @ B.matrix, rtol=0, atol=4 * ROUNDING)
    assert_allclose((A @ B).apply(p), A.apply(B.apply(p)), rtol=0, atol=8 * ROUNDING)
    assert Transform.from_matrix(A.matrix) == A


@given(rotation_vectors(), vectors())
def test_logarithm_of_a_pose_undoes_exponential(w, v):
    m = np.concatenate([w, v])
    # V^-1 has the norm (t/2)/sin(t/2) <= pi/2
    assert_allclose(Transform.exp(m).log(), m, rtol=0, atol=4 * ROUNDING)


@given(rotation_vectors(), vectors())
def test_exponential_of_a_pose_is_that_of_the_matrix(w, v):
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = skew(w), v
    assert_allclose(Transform.exp([*w, *v]).matrix, matrix_exponential(twist), rtol=0, atol=SERIES)


@given(transforms(), vectors(6, 1.0))
def test_a_motion_seen_from_another_frame_makes_the_same_displacement(T, m):
    """T exp(m) T^-1 = exp(X m)."""
    there = Transform.exp(transform_motion(T, m))
    assert_allclose((T @ Transform.exp(m) @ T.inverse()).matrix, there.matrix, rtol=0, atol=32 * ROUNDING)


@given(transforms(), transforms())
def test_spatial_matrices_multiply_as_poses_do(A, B):
    for kind in ("motion_matrix", "force_matrix"):
        product = getattr(A, kind) @ getattr(B, kind)
        assert_allclose(getattr(A @ B, kind), product, rtol=0, atol=16 * ROUNDING)


@given(transforms())
def test_motion_and_force_matrices_are_dual(T):
    assert_allclose(T.force_matrix.T @ T.motion_matrix, np.eye(6), rtol=0, atol=16 * ROUNDING)
    assert_allclose(T.inverse().motion_matrix, T.force_matrix.T, rtol=0, atol=4 * ROUNDING)


@given(transforms())
def test_matrices_of_the_thesis(T):
    """2.6 transforms motions from A to B, and 4.23 forces from B to A, with A = R^T and b = p."""
    A, b, zero = T.rotation.T, skew(T.translation), np.zeros((3, 3))
    assert_allclose(T.inverse().motion_matrix, np.block([[A, zero], [A @ b.T, A]]), rtol=0, atol=4 * ROUNDING)
    assert_allclose(T.force_matrix, np.block([[A.T, b @ A.T], [zero, A.T]]), rtol=0, atol=ROUNDING)


@given(transforms(), vectors(6), vectors(6))
def test_power_is_the_same_in_every_frame(T, m, f):
    assert_allclose(transform_motion(T, m) @ transform_force(T, f), m @ f, rtol=0, atol=64 * ROUNDING)


@given(vectors(6, 1.0))
def test_cross_products_are_rates_of_the_matrices(v):
    """The motion matrix of exp(v) is the exponential of v x, and the force matrix that of v x*."""
    crm = np.array([cross_motion(v, e) for e in np.eye(6)]).T
    crf = np.array([cross_force(v, e) for e in np.eye(6)]).T
    assert_array_equal(crm, motion_operator(v))
    assert_array_equal(crf, -crm.T)
    assert_allclose(Transform.exp(v).motion_matrix, matrix_exponential(crm), rtol=0, atol=SERIES)
    assert_allclose(Transform.exp(v).force_matrix, matrix_exponential(crf), rtol=0, atol=SERIES)


@pytest.mark.parametrize("function", [cross_motion, cross_force])
def test_cross_products_broadcast(function):
    rng = np.random.default_rng(0)
    v, m = rng.normal(size=(4, 1, 6)), rng.normal(size=(3, 6))
    both = function(v, m)
    assert both.shape == (4, 3, 6)
    for i, j in itertools.product(range(4), range(3)):
        assert_array_equal(both[i, j], function(v[i, 0], m[j]))
    assert function(np.zeros((0, 6)), m[0]).shape == (0, 6)


@pytest.mark.parametrize("function", [transform_motion, transform_force])
def test_transforms_broadcast(function):
    T = Transform.from_rpy(0.1, 0.2, 0.3, (1, 2, 3))
    m = np.random.default_rng(0).normal(size=(4, 3, 6))
    both = function(T, m)
    for i, j in itertools.product(range(4), range(3)):
        assert_allclose(both[i, j], function(T, m[i, j]), rtol=0, atol=16 * ROUNDING)


def test_one_bad_sample_spoils_no_other():
    m = np.ones((3, 6))
    m[1, 2] = np.nan
    for result in (cross_motion(m, np.arange(6.0)), transform_force(Transform(translation=(1, 2, 3)), m)):
        assert_array_equal(np.isfinite(result).all(axis=1), [True, False, True])


# --- exponentials, logarithms and their tangent maps ----------------------------------------------------------------


def operator(x):
    """Return ad of a rotation vector or of a motion."""
    return skew(x) if len(x) == 3 else motion_operator(x)


def tangent_series(x):
    """Return sum of ad^n / (n + 1)!, the upper right block of the exponential of [ad 1; 0 0]."""
    n = len(x)
    A = np.zeros((2 * n, 2 * n))
    A[:n, :n], A[:n, n:] = operator(x), np.eye(n)
    return matrix_exponential(A)[:n, n:]


def algebra():
    """Return rotation vectors, and motions with rotations of the same angles."""
    motions = st.builds(lambda w, v: np.concatenate([w, v]), rotation_vectors(), vectors())
    return st.one_of(rotation_vectors(), motions)


@given(algebra())
def test_arrays_have_the_exponentials_of_the_values(x):
    value = Rotation.exp(x) if len(x) == 3 else Transform.exp(x)
    assert_allclose(spatial.exp(x), value.matrix, rtol=0, atol=EPS)
    assert_allclose(spatial.log(value), value.log(), rtol=0, atol=4 * ROUNDING)
    assert_allclose(spatial.log(spatial.exp(x)), x, rtol=0, atol=4 * ROUNDING)


@given(algebra())
def test_tangent_maps_are_their_series(x):
    assert_allclose(spatial.left_jacobian(x), tangent_series(x), rtol=0, atol=SERIES)
    assert_allclose(spatial.right_jacobian(x), tangent_series(-x), rtol=0, atol=SERIES)


@given(algebra())
def test_tangent_maps_and_their_inverses(x):
    """The tangent maps have inverses, and Ad of the exponential is the left map times the inverse of the right."""
    for side in ("left", "right"):
        J, inverse = getattr(spatial, f"{side}_jacobian")(x), getattr(spatial, f"{side}_jacobian_inverse")(x)
        assert_allclose(J @ inverse, np.eye(len(x)), rtol=0, atol=16 * ROUNDING)
    Ad = spatial.exp(x) if len(x) == 3 else spatial.adjoint(spatial.exp(x))
    assert_allclose(Ad @ spatial.right_jacobian(x), spatial.left_jacobian(x), rtol=0, atol=16 * ROUNDING)


@given(directions(), vectors(), st.sampled_from([1e-300, 1e-12, 1e-8, 1e-4, 1e-2, 0.1, 0.499, 0.501]))
def test_tangent_maps_of_small_motions_keep_their_digits(axis, v, angle):
    """The first terms of the series, to the size of the next: no digit is lost between series and closed form."""
    for x in (angle * axis, np.concatenate([angle * axis, angle * v])):
        ad, one, size = operator(x), np.eye(len(x)), np.abs(x).max()
        series = one + ad / 2 + ad @ ad / 6 + ad @ ad @ ad / 24
        assert_allclose(spatial.left_jacobian(x), series, rtol=0, atol=4 * EPS + 2 * size**4)
        inverse = one - ad / 2 + ad @ ad / 12
        assert_allclose(spatial.left_jacobian_inverse(x), inverse, rtol=0, atol=4 * EPS + 2 * size**4)


@given(algebra(), vectors(6))
def test_tangent_maps_are_derivatives_of_the_exponential(x, direction):
    """log(exp(x)^-1 exp(x + h d)) = h J_r d + h^2 (...), by central differences of sixth order."""
    d = direction[: len(x)] / 4
    h = 1e-2 * np.array([-3, -2, -1, 1, 2, 3])[:, None]
    away = np.array([spatial.log(np.linalg.inv(spatial.exp(x)) @ moved) for moved in spatial.exp(x + h * d)])
    rate = np.array([-1, 9, -45, 45, -9, 1]) / 0.6 @ away
    # truncation h^6/140 times a seventh derivative, rounding EPS/h
    assert_allclose(spatial.right_jacobian(x) @ d, rate, rtol=0, atol=1e-10)


@given(transforms(), transforms(), vectors(6))
def test_adjoints_and_brackets(A, B, v):
    assert_array_equal(spatial.adjoint(A), A.motion_matrix)
    assert_array_equal(spatial.adjoint_dual(A.matrix), A.force_matrix)
    product = spatial.adjoint(A) @ spatial.adjoint(B)
    assert_allclose(spatial.adjoint(A @ B), product, rtol=0, atol=16 * ROUNDING)
    assert_array_equal(spatial.ad(v), motion_operator(v))
    assert_array_equal(spatial.ad_dual(v), -motion_operator(v).T)


def test_products_of_exponentials():
    rng = np.random.default_rng(0)
    screws, q, home = rng.normal(size=(5, 6)), rng.normal(size=(2, 3, 5)), Transform.exp(rng.normal(size=6))
    poses = spatial.product_of_exponentials(screws, q, home)
    spatial_J, body_J = spatial.spatial_jacobian(screws, q), spatial.body_jacobian(screws, q, home)
    assert (poses.shape, spatial_J.shape, body_J.shape) == ((2, 3, 4, 4), (2, 3, 6, 5), (2, 3, 6, 5))
    for i, j in itertools.product(range(2), range(3)):
        X, columns = Transform(), []
        for xi, angle in zip(screws, q[i, j], strict=True):
            columns.append(transform_motion(X, xi))
            X = X @ Transform.exp(xi * angle)
        assert_allclose(poses[i, j], (X @ home).matrix, rtol=0, atol=256 * ROUNDING)
        assert_allclose(spatial_J[i, j].T, columns, rtol=0, atol=256 * ROUNDING)
        seen = np.linalg.inv((X @ home).motion_matrix) @ np.transpose(columns)
        assert_allclose(body_J[i, j], seen, rtol=0, atol=4096 * ROUNDING)
    assert_array_equal(spatial.product_of_exponentials(np.zeros((0, 6)), []), np.eye(4))
    assert_allclose(spatial.body_jacobian(screws, q), spatial.body_jacobian(screws, q, np.eye(4)), rtol=0, atol=0)


@pytest.mark.parametrize(
    "name", ["exp", "left_jacobian", "right_jacobian", "left_jacobian_inverse", "right_jacobian_inverse"]
)
@pytest.mark.parametrize("n", [3, 6])
def test_functions_of_the_algebra_take_batches(name, n):
    function, x = getattr(spatial, name), np.random.default_rng(1).normal(size=(2, 3, n))
    x[1, 1, 0] = np.nan
    both = function(x)
    for i, j in itertools.product(range(2), range(3)):
        if (i, j) != (1, 1):
            assert_array_equal(both[i, j], function(x[i, j]))
    assert np.isnan(both[1, 1]).any() and np.isfinite(np.delete(both.reshape(6, -1), 4, axis=0)).all()
    assert function(np.zeros((0, n))).shape[0] == 0


def test_logarithms_take_batches():
    x = np.random.default_rng(2).normal(size=(2, 3, 6)) / 2
    X = spatial.exp(x)
    X[0, 2] = np.nan
    assert_allclose(
        np.delete(spatial.log(X).reshape(6, 6), 2, axis=0), np.delete(x.reshape(6, 6), 2, axis=0), rtol=0, atol=ROUNDING
    )
    assert np.isnan(spatial.log(X)[0, 2]).all()
    half = spatial.exp([[np.pi, 0, 0], [0, -np.pi, 0], [0.6 * np.pi, 0, 0.8 * np.pi]])
    assert_allclose(np.linalg.norm(spatial.log(half), axis=1), np.pi, rtol=0, atol=ROUNDING)
    assert_allclose(spatial.exp(spatial.log(half)), half, rtol=0, atol=ROUNDING)


# --- inertia: laws ------------------------------------------------------------------------------------------------


@given(inertias())
def test_parallel_axes(b):
    """3.31, 3.32, and 3.33 for the Euler tensor."""
    s = skew(b.com)
    assert_allclose(b.about_origin, b.about_com - b.mass * s @ s, rtol=0, atol=64 * ROUNDING)
    r2 = b.com @ b.com * np.eye(3) - np.outer(b.com, b.com)
    assert_allclose(b.about_origin, b.about_com + b.mass * r2, rtol=0, atol=64 * ROUNDING)
    centred = Inertia(b.mass, (0, 0, 0), b.about_com)
    expected = centred.euler_tensor + b.mass * np.outer(b.com, b.com)
    assert_allclose(b.euler_tensor, expected, rtol=0, atol=64 * ROUNDING)


@given(inertias())
def test_euler_tensor(b):
    """3.29 and its inverse 3.30."""
    inertia, euler = b.about_origin, b.euler_tensor
    assert_allclose(euler, np.trace(inertia) / 2 * np.eye(3) - inertia, rtol=0, atol=64 * ROUNDING)
    assert_allclose(inertia, np.trace(euler) * np.eye(3) - euler, rtol=0, atol=64 * ROUNDING)
    assert_allclose(sarrus._core.spatial.inertia_tensor(euler), inertia, rtol=0, atol=64 * ROUNDING)


@given(inertias())
def test_spatial_inertia(b):
    h = b.mass * skew(b.com)
    expected = np.block([[b.about_origin, h], [h.T, b.mass * np.eye(3)]])
    assert_allclose(b.matrix, expected, rtol=0, atol=ROUNDING)


@given(inertias(), transforms())
def test_inertia_from_another_frame(b, T):
    """4.4, and the pseudo-inertia as second moments of homogeneous points."""
    there, X, H = b.transformed(T), T.inverse().motion_matrix, T.matrix
    assert_allclose(there.matrix, X.T @ b.matrix @ X, rtol=0, atol=1024 * ROUNDING)
    assert_allclose(there.pseudo_inertia, H @ b.pseudo_inertia @ H.T, rtol=0, atol=1024 * ROUNDING)
    assert_allclose(there.principal_moments, b.principal_moments, rtol=0, atol=32 * ROUNDING)
    assert_same(there.transformed(T.inverse()), b, 32 * ROUNDING)


@given(inertias(), transforms(), vectors(6))
def test_kinetic_energy_is_the_same_in_every_frame(b, T, m):
    there = transform_motion(T, m)
    assert_allclose(there @ b.transformed(T).matrix @ there, m @ b.matrix @ m, rtol=64 * ROUNDING, atol=1e4 * ROUNDING)


@given(inertias(), inertias(), transforms())
def test_bodies_joined(a, b, T):
    assert_allclose((a + b).matrix, a.matrix + b.matrix, rtol=0, atol=256 * ROUNDING)
    assert_same((a + b).transformed(T), a.transformed(T) + b.transformed(T), 64 * ROUNDING)
    assert_same(a + b, b + a, 16 * ROUNDING)
    assert (a + b).is_physical()
    assert_same(a + Inertia.zero(), a)
    assert_same(Inertia.zero() + a, a)


def test_bodies_joined_far_from_the_origin():
    """The inertia about the common centre of mass keeps its digits, although that about the origin is 1e12."""
    near, far = Transform(translation=(0, 0, 1)), Transform(translation=(1e6, 0, 0))
    cube = Inertia.box(1, (1, 1, 1))
    pair = cube + cube.transformed(near)
    there = cube.transformed(far) + cube.transformed(far @ near)
    assert_allclose(there.about_com, pair.about_com, rtol=0, atol=ROUNDING)


@given(st.floats(0.1, 5), vectors(), rotations(), moments(), st.sampled_from([0.0, 1e-14, 1e-12, 1e-8]))
def test_a_small_body_from_its_parameters(mass, com, R, principal, size):
    """No error is raised for a body whose inertia about its centre of mass is a tiny fraction of that about the origin."""
    b = Inertia(mass, com, R.matrix @ np.diag(size * principal) @ R.matrix.T)
    assert_same(Inertia.from_parameters(b.parameters), b, 64 * ROUNDING)


@given(inertias())
def test_parameters_and_matrix_round_trip(b):
    # the subtraction of parallel axes leaves the rounding of the inertia about the origin
    assert_same(Inertia.from_parameters(b.parameters), b, 64 * ROUNDING)
    assert_same(Inertia.from_matrix(b.matrix), b, 64 * ROUNDING)


def test_order_of_the_parameters():
    b = Inertia(2, (0.1, 0.2, 0.3), [[5, 0.1, 0.2], [0.1, 6, 0.3], [0.2, 0.3, 7]])
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = b.about_origin
    expected = [2, 0.2, 0.4, 0.6, xx, xy, yy, xz, yz, zz]
    assert_allclose(b.parameters, expected, rtol=4 * EPS)


@given(rotations(), vectors(3, 3.0))
def test_principal_moments(R, values):
    tensor = R.matrix @ np.diag(values) @ R.matrix.T
    found = Inertia(1, (0, 0, 0), tensor, check=False).principal_moments
    assert_allclose(found, np.sort(values), rtol=0, atol=4 * ROUNDING)


@pytest.mark.parametrize("scale", [1e-250, 1e-9, 1.0, 1e9, 1e250])
def test_principal_moments_at_every_scale(scale):
    A = np.array([[2, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 4]])
    found = Inertia(1, (0, 0, 0), scale * A).principal_moments
    assert_allclose(found, scale * np.linalg.eigvalsh(A), rtol=ROUNDING)


# --- inertia: what a body can have --------------------------------------------------------------------------------


@given(st.floats(0.1, 3), vectors(3, 1.0), rotations(), vectors(3, 2.0))
def test_physical_means_that_the_pseudo_inertia_is_positive_semidefinite(mass, com, R, second_moments):
    """Physical means a positive semidefinite pseudo-inertia, for any second moments, including negative ones."""
    tensor = R.matrix @ np.diag(second_moments.sum() - second_moments) @ R.matrix.T
    b = Inertia(mass, com, tensor, check=False)
    lowest = np.linalg.eigvalsh(b.pseudo_inertia)[0]
    if abs(second_moments.min()) < 1e-3:
        return  # on the border rounding decides
    assert b.is_physical() == (lowest > -1e-12) == (second_moments.min() > 0)


@given(inertias())
def test_every_body_is_physical(b):
    assert b.is_physical()
    assert np.linalg.eigvalsh(b.pseudo_inertia)[0] > -1024 * ROUNDING


def test_the_tolerance_of_the_triangle_inequality():
    plate = np.diag([0.0833333, 0.0833333, 0.166667])  # printed with six digits: 4e-7 too flat
    assert Inertia(1, (0, 0, 0), plate).is_physical()
    assert not Inertia(1, (0, 0, 0), plate).is_physical(tolerance=1e-9)
    for excess, possible in ((0.99e-5, True), (1.01e-5, False)):
        tensor = np.diag([1, 1, 2 / (1 - excess)])
        assert Inertia(1, (0, 0, 0), tensor, check=False).is_physical() is possible


def test_unchecked_inertia_stays_what_it_is():
    """Robot files contain inertias that no body can have; these can be stored, moved, merged and pickled."""
    wrong = Inertia(1, (0.1, 0, 0), np.diag([1, 1, 3]), check=False)
    assert not wrong.is_physical()
    assert not wrong.transformed(Transform.from_rpy(1, 2, 3)).is_physical()
    assert pickle.loads(pickle.dumps(wrong)) == wrong
    assert_allclose((wrong + Inertia.zero()).about_com, wrong.about_com)
    assert not Inertia(-1, (0, 0, 0), np.zeros((3, 3)), check=False).is_physical()
    assert not Inertia(0, (0, 0, 0), np.eye(3), check=False).is_physical()


def test_massless():
    zero = Inertia.zero()
    assert zero.is_physical() and zero.mass == 0 and not zero.matrix.any() and zero + zero == zero
    assert Inertia.box(0, (1, 2, 3)) == zero
    assert Inertia.from_parameters(np.zeros(10)) == zero


# --- inertia: shapes ----------------------------------------------------------------------------------------------

CLOSED_FORMS = {
    "box": (Inertia.box(3, (1, 2, 4)), 3 / 12 * np.diag([4 + 16, 1 + 16, 1 + 4])),
    "plate": (Inertia.box(3, (1, 2, 0)), 3 / 12 * np.diag([4, 1, 5])),
    "cylinder": (Inertia.cylinder(3, 0.5, 2), np.diag([3 * (0.75 + 4) / 12] * 2 + [3 * 0.25 / 2])),
    "cylinder x": (Inertia.cylinder(3, 0.5, 2, "x"), np.diag([3 * 0.25 / 2] + [3 * (0.75 + 4) / 12] * 2)),
    "disc": (Inertia.cylinder(3, 0.5, 0), 3 * 0.25 * np.diag([0.25, 0.25, 0.5])),
    "sphere": (Inertia.sphere(3, 0.5), 2 / 5 * 3 * 0.25 * np.eye(3)),
    "rod": (Inertia.rod(3, (-1, 0, 0), (1, 0, 0)), 3 * 4 / 12 * np.diag([0, 1, 1])),
    "thick rod": (Inertia.rod(3, (0, -1, 0), (0, 1, 0), radius=0.5), Inertia.cylinder(3, 0.5, 2, "y").about_com),
    "point": (Inertia.from_points([3], [(0, 0, 0)]), np.zeros((3, 3))),
    "dumbbell": (Inertia.from_points([1.5, 1.5], [(0, 0, 1), (0, 0, -1)]), 3 * np.diag([1, 1, 0])),
}


@pytest.mark.parametrize("shape", CLOSED_FORMS)
def test_closed_forms(shape):
    found, about_com = CLOSED_FORMS[shape]
    assert found.mass == 3
    assert_array_equal(found.com, 0)
    assert_allclose(found.about_com, about_com, rtol=ROUNDING, atol=ROUNDING)
    assert found.is_physical()


def points_of(shape):
    """Return quadrature points and weights that are exact for the second moments of the shape with mass 1."""
    x, w = np.polynomial.legendre.leggauss(4)
    unit, weight = (x + 1) / 2, w / 2  # over [0, 1]
    turn = np.arange(8) * np.pi / 4  # exact for trigonometric polynomials of degree 7
    if shape == "box":
        parts = [
            (np.array([a, b, c]) * (0.5, 1, 2), u * v * t / 8)
            for (a, u), (b, v), (c, t) in itertools.product(zip(x, w), repeat=3)
        ]
    elif shape == "cylinder":
        parts = [
            (np.array([0.5 * r * np.cos(p), 0.5 * r * np.sin(p), z]), 2 * r * u * v / 2 / 8)
            for (r, u), (z, v), p in itertools.product(zip(unit, weight), zip(x, w), turn)
        ]
    elif shape == "sphere":
        parts = [
            (
                0.5 * r * np.array([np.sqrt(1 - c * c) * np.cos(p), np.sqrt(1 - c * c) * np.sin(p), c]),
                3 * r * r * u * v / 2 / 8,
            )
            for (r, u), (c, v), p in itertools.product(zip(unit, weight), zip(x, w), turn)
        ]
    else:
        parts = [(np.array([a, 0, 0]), u / 2) for a, u in zip(x, w)]
    points, weights = zip(*parts)
    return np.array(points), np.array(weights)


@pytest.mark.parametrize("shape", ["box", "cylinder", "sphere", "rod"])
def test_shapes_are_the_integrals_over_their_mass(shape):
    """3.20 and 3.21, with r~ r~ for r.r - r r^T (3.22 with the sign corrected)."""
    points, weights = points_of(shape)
    assert_allclose(weights.sum(), 1, rtol=ROUNDING)
    about_origin = -sum(3 * w * skew(r) @ skew(r) for r, w in zip(points, weights))
    euler = sum(3 * w * np.outer(r, r) for r, w in zip(points, weights))
    found = CLOSED_FORMS[shape][0]
    assert_allclose(found.about_origin, about_origin, rtol=ROUNDING, atol=16 * ROUNDING)
    assert_allclose(found.euler_tensor, euler, rtol=ROUNDING, atol=16 * ROUNDING)
    assert_same(Inertia.from_points(3 * weights, points), found, 16 * ROUNDING)


@given(st.lists(st.tuples(st.floats(0.01, 2), vectors()), min_size=1, max_size=6))
def test_points(parts):
    masses, points = zip(*parts)
    found = Inertia.from_points(masses, points)
    singly = [Inertia(m, p, np.zeros((3, 3))) for m, p in parts]
    assert_same(found, sum(singly[1:], start=singly[0]), 64 * ROUNDING)
    homogeneous = np.column_stack([points, np.ones(len(points))])
    assert_allclose(found.pseudo_inertia, (homogeneous.T * masses) @ homogeneous, rtol=0, atol=256 * ROUNDING)


@given(rotations(), vectors())
def test_turned_shapes(R, middle):
    """A cylinder along any axis is the rotated cylinder along z; a rod is a translated and rotated one."""
    axis = R.apply(Z)
    pose = Transform(R, middle)
    assert_same(
        Inertia.cylinder(2, 0.3, 1.5, axis).transformed(Transform(translation=middle)),
        Inertia.cylinder(2, 0.3, 1.5).transformed(pose),
    )
    ends = middle - axis, middle + axis
    assert_same(Inertia.rod(2, *ends), Inertia.rod(2, -Z, Z).transformed(pose), 4 * ROUNDING)
    assert_same(Inertia.rod(2, *ends, 0.3), Inertia.rod(2, -Z, Z, 0.3).transformed(pose), 4 * ROUNDING)


def test_two_halves_make_a_whole():
    half = Inertia.box(1, (1, 2, 1))
    left, right = (half.transformed(Transform(translation=(x, 0, 0))) for x in (-0.5, 0.5))
    assert_same(left + right, Inertia.box(2, (2, 2, 1)))


# --- published ----------------------------------------------------------------------------------------------------

# van der Merwe 1995, Table 4.2 (mass, centre of mass, principal moments about it) and 4.37-4.42, to all printed digits
STANFORD = [
    (
        (2, (0, 0.3, -0.07), (0.1, 0.02, 0.1)),
        [
            [0.2898, 0, 0, 0, 0.14, 0.6],
            [0, 0.0298, 0.042, -0.14, 0, 0],
            [0, 0.042, 0.28, -0.6, 0, 0],
            [0, -0.14, -0.6, 2, 0, 0],
            [0.14, 0, 0, 0, 2, 0],
            [0.6, 0, 0, 0, 0, 2],
        ],
    ),
    (
        (2, (0.3, 0, 0), (0.002, 0.25, 0.25)),
        [
            [0.002, 0, 0, 0, 0, 0],
            [0, 0.43, 0, 0, 0, -0.6],
            [0, 0, 0.43, 0, 0.6, 0],
            [0, 0, 0, 2, 0, 0],
            [0, 0, 0.6, 0, 2, 0],
            [0, -0.6, 0, 0, 0, 2],
        ],
    ),
    (
        (0.8, (0.12, 0, 0), (0.002, 0.008, 0.008)),
        [
            [0.002, 0, 0, 0, 0, 0],
            [0, 0.01952, 0, 0, 0, -0.096],
            [0, 0, 0.01952, 0, 0.096, 0],
            [0, 0, 0, 0.8, 0, 0],
            [0, 0, 0.096, 0, 0.8, 0],
            [0, -0.096, 0, 0, 0, 0.8],
        ],
    ),
    (
        (0.5, (0.05, 0, 0), (0.001, 0.004, 0.004)),
        [
            [0.001, 0, 0, 0, 0, 0],
            [0, 0.00525, 0, 0, 0, -0.025],
            [0, 0, 0.00525, 0, 0.025, 0],
            [0, 0, 0, 0.5, 0, 0],
            [0, 0, 0.025, 0, 0.5, 0],
            [0, -0.025, 0, 0, 0, 0.5],
        ],
    ),
]


@pytest.mark.parametrize(("table", "printed"), STANFORD, ids=["4.39", "4.40", "4.41", "4.42"])
def test_links_of_the_stanford_arm(table, printed):
    mass, com, principal = table
    assert_allclose(Inertia(mass, com, np.diag(principal)).matrix, printed, rtol=0, atol=1e-15)


# --- values -------------------------------------------------------------------------------------------------------

VALUES = [
    Rotation.from_rpy(0.1, 0.2, 0.3),
    Transform.from_rpy(0.1, 0.2, 0.3, (1, 2, 3)),
    Inertia.rod(1.5, (0, 0, 0), (0.4, 0.1, 0)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values(value):
    same = pickle.loads(pickle.dumps(value))
    assert same == value and hash(same) == hash(value) and {value: 1}[same] == 1
    assert eval(repr(value), {type(value).__name__: type(value)}) == value
    assert value != 1 and value not in [v for v in VALUES if v is not value]
    field = dataclasses.fields(value)[-1].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, np.zeros(3))
    for array in (getattr(same, field), getattr(value, field)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_values_keep_no_hold_of_their_arguments():
    R, p, tensor = np.eye(3), np.zeros(3), np.eye(3)
    pose, body = Transform(R, p), Inertia(1.0, p, tensor)
    R[0, 0], p[0], tensor[0, 0] = 5, 6, 7
    assert pose == Transform() and body == Inertia(1, (0, 0, 0), np.eye(3))


def test_minus_zero_is_zero():
    a, b = Transform(translation=(0.0, 0.0, 0.0)), Transform(translation=(-0.0, 0.0, -0.0))
    assert a == b and hash(a) == hash(b)


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda a: a.astype(np.float32),
        lambda a: a.astype(int),
        np.asfortranarray,
        lambda a: np.stack([a, a], axis=-1)[..., 0],
        lambda a: (a.setflags(write=False), a)[1],
    ],
    ids=["list", "float32", "int", "fortran", "strided", "read-only"],
)
def test_kinds_of_array(convert):
    R = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    p, tensor = np.array([1.0, 2, 3]), np.array([[4.0, 1, 0], [1, 5, 0], [0, 0, 6]])
    assert Transform(convert(R), convert(p)) == Transform(R, p)
    assert Inertia(2, convert(p), convert(tensor)) == Inertia(2, p, tensor)
    m = np.arange(6.0)
    assert_array_equal(cross_motion(convert(m), convert(m[::-1].copy())), cross_motion(m, m[::-1]))


def test_replace():
    link = VALUES[2]
    assert dataclasses.replace(link, mass=3.0) == Inertia(3.0, link.com, link.about_com)


def test_core_functions_take_leading_axes():
    core = sarrus._core.spatial
    rng = np.random.default_rng(0)
    r = rng.uniform(-1, 1, size=(2, 3, 3))
    R = core.exp_rotation(r)
    assert R.shape == (2, 3, 3, 3)
    assert_allclose(core.log_rotation(R), r, rtol=0, atol=ROUNDING)
    for i, j in itertools.product(range(2), range(3)):
        assert_array_equal(R[i, j], core.exp_rotation(r[i, j]))
        assert_array_equal(core.quaternion_from_rotation(R)[i, j], core.quaternion_from_rotation(R[i, j]))
    with pytest.raises(ValueError, match=r"vector has shape \(2, 4\); it must be \(\.\.\., 3\)"):
        core.exp_rotation(np.zeros((2, 4)))


# --- bad input ----------------------------------------------------------------------------------------------------

NAN, INF, EYE, O3, NONE = np.nan, np.inf, np.eye(3), np.zeros((3, 3)), (0, 0, 0)
BENT = np.array([[1, 0.01, 0], [0, 1, 0], [0, 0, 1]])

BAD = {
    "rotation shape": (lambda: Rotation(np.eye(4)), ShapeError, r"matrix has shape \(4, 4\); it must be \(3, 3\)"),
    "rotation ragged": (lambda: Rotation([[1, 0], [0, 1, 0], [0, 0, 1]]), ShapeError, "matrix must be an array"),
    "rotation nan": (lambda: Rotation(NAN * EYE), ModelError, "matrix = .* is not finite"),
    "rotation of texts": (
        lambda: Rotation([["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]),
        ShapeError,
        "real numbers",
    ),
    "rotation text": (lambda: Rotation("abc"), ShapeError, "matrix must be an array"),
    "rotation complex": (lambda: Rotation(1j * EYE), ShapeError, "matrix must be an array"),
    "rotation bent": (lambda: Rotation(BENT), ModelError, "is not a rotation: .* by 0.01"),
    "rotation scaled": (lambda: Rotation(2 * EYE), ModelError, "is not a rotation"),
    "rotation zero": (lambda: Rotation(O3), ModelError, "is not a rotation"),
    "rotation huge": (lambda: Rotation(1e200 * EYE), ModelError, "is not a rotation"),
    "reflection": (lambda: Rotation(np.diag([1, 1, -1])), ModelError, "is a reflection"),
    "quaternion zero": (lambda: Rotation.from_quaternion([0, 0, 0, 0]), ModelError, "is not a rotation"),
    "quaternion shape": (lambda: Rotation.from_quaternion([0, 0, 1]), ShapeError, r"quaternion has shape \(3,\)"),
    "quaternion nan": (lambda: Rotation.from_quaternion([0, 0, NAN, 1]), ModelError, "not finite"),
    "rpy inf": (lambda: Rotation.from_rpy(0, INF, 0), ModelError, "pitch = inf is not finite"),
    "rpy array": (lambda: Rotation.from_rpy([0, 1], 0, 0), ShapeError, r"roll has shape \(2,\)"),
    "axis zero": (lambda: Rotation.from_axis_angle((0, 0, 0), 1), ModelError, "axis = .* has no direction"),
    "axis name": (lambda: Rotation.from_axis_angle("w", 1), ModelError, 'axis = "w" is not one of'),
    "angle nan": (lambda: Rotation.from_axis_angle("x", NAN), ModelError, "angle = nan"),
    "rotation vector": (lambda: Rotation.exp([1, 2]), ShapeError, "vector has shape"),
    "apply": (lambda: Rotation().apply([1, 2]), ShapeError, "vectors has shape"),
    "transform rotation": (lambda: Transform(BENT), ModelError, "rotation = .* is not a rotation"),
    "transform translation": (lambda: Transform(translation=(1, 2)), ShapeError, "translation has shape"),
    "transform nan": (lambda: Transform(translation=(1, 2, NAN)), ModelError, "translation = .* is not finite"),
    "transform last row": (lambda: Transform.from_matrix(2 * np.eye(4)), ModelError, "matrix has the last row"),
    "transform 3x3": (lambda: Transform.from_matrix(EYE), ShapeError, "matrix has shape"),
    "transform exp": (lambda: Transform.exp([1, 2, 3]), ShapeError, "motion has shape"),
    "transform @ array": (lambda: Transform() @ np.eye(4), TypeError, "operand"),
    "array @ transform": (lambda: np.eye(4) @ Transform(), TypeError, "unsupported operand"),
    "inertia com shape": (lambda: Inertia(1, (0, 0), EYE), ShapeError, r"com has shape \(2,\); it must be \(3,\)"),
    "inertia shape": (lambda: Inertia(1, NONE, (1, 1, 1)), ShapeError, r"about_com has shape \(3,\)"),
    "inertia mass array": (lambda: Inertia([1], NONE, EYE), ShapeError, r"mass has shape \(1,\); it must be \(\)"),
    "inertia mass nan": (lambda: Inertia(NAN, NONE, EYE), ModelError, "mass = nan is not finite"),
    "inertia com inf": (lambda: Inertia(1, (0, INF, 0), EYE), ModelError, "com = .* is not finite"),
    "inertia nan unchecked": (
        lambda: Inertia(1, NONE, NAN * EYE, check=False),
        ModelError,
        "about_com = .* not finite",
    ),
    "inertia negative mass": (lambda: Inertia(-1, NONE, EYE), ModelError, "mass = -1 is negative"),
    "inertia massless": (lambda: Inertia(0, NONE, EYE), ModelError, "massless .* armature"),
    "inertia asymmetric": (lambda: Inertia(1, NONE, BENT), ModelError, "about_com = .* is not symmetric"),
    "inertia triangle": (lambda: Inertia(1, NONE, np.diag([1, 1, 3])), ModelError, "moments 1, 1, 3; no body .* sum"),
    "inertia negative": (lambda: Inertia(1, NONE, -EYE), ModelError, "principal moments -1, -1, -1"),
    "inertia off diagonal": (lambda: Inertia(1, NONE, EYE + 2 * (np.ones((3, 3)) - EYE)), ModelError, "moments"),
    "box size": (lambda: Inertia.box(1, (1, 2)), ShapeError, "size has shape"),
    "box negative": (lambda: Inertia.box(1, (1, 2, -3)), ModelError, "size = .* is negative"),
    "box mass": (lambda: Inertia.box(-1, (1, 2, 3)), ModelError, "mass = -1 is negative"),
    "cylinder radius": (lambda: Inertia.cylinder(1, -1, 1), ModelError, "radius = -1 is negative"),
    "cylinder axis": (lambda: Inertia.cylinder(1, 1, 1, axis="-"), ModelError, "axis"),
    "sphere radius": (lambda: Inertia.sphere(1, NAN), ModelError, "radius = nan"),
    "rod without direction": (lambda: Inertia.rod(1, (1, 1, 1), (1, 1, 1), 0.1), ModelError, "has no direction"),
    "points shape": (
        lambda: Inertia.from_points([1], [1, 2, 3]),
        ShapeError,
        r"points has shape \(3,\); it must be \(n, 3\)",
    ),
    "points count": (lambda: Inertia.from_points([1, 2], [(1, 2, 3)]), ShapeError, "2 entries, but points has 1 rows"),
    "points negative": (lambda: Inertia.from_points([2, -1], [NONE, NONE]), ModelError, "none may be negative"),
    "matrix structure": (lambda: Inertia.from_matrix(np.diag([1, 1, 1, 1, 1, 2])), ModelError, "not a rigid body's"),
    "matrix shape": (lambda: Inertia.from_matrix(EYE), ShapeError, r"it must be \(6, 6\)"),
    "parameters": (lambda: Inertia.from_parameters(np.zeros(9)), ShapeError, r"it must be \(10,\)"),
    "parameters massless": (lambda: Inertia.from_parameters([0, 1] + [0] * 8), ModelError, "without mass"),
    "parameters impossible": (lambda: Inertia.from_parameters([1, 1, 0, 0, 1, 0, 0, 0, 0, 1]), ModelError, "moments"),
    "masses cancel": (lambda: VALUES[2] + Inertia(-1.5, NONE, O3, check=False), ModelError, "sum to zero"),
    "inertia + number": (lambda: VALUES[2] + 1, TypeError, "unsupported operand"),
    "inertia + array": (lambda: VALUES[2] + EYE, TypeError, "operand"),
    "cross shape": (lambda: cross_motion(np.zeros(3), np.zeros(6)), ShapeError, "v has shape"),
    "force shape": (lambda: transform_force(Transform(), 1.0), ShapeError, r"f has shape \(\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()
