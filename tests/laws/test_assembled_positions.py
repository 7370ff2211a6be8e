"""Derivatives of closed configurations, compared with differences of mechanisms with other dimensions, for all spanning trees."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus

D = sarrus.derivatives
Transform = sarrus.spatial.Transform
STEP = 1e-4  # truncation of fourth order, and loops closed to 1e-13


def slope(f):
    return (8 * (f(STEP) - f(-STEP)) - (f(2 * STEP) - f(-2 * STEP))) / (12 * STEP)


def displaced(description, name, side, twist):
    """Return the mechanism with a joint's frame displaced on its parent (0) or child (1)."""
    moved = Transform.from_matrix(sarrus.spatial.exp(twist))
    at = ("at_parent", "at_child")[side]
    joints = [
        dataclasses.replace(j, **{at: getattr(j, at) @ moved}) if j.name == name else j for j in description.joints
    ]
    return sarrus.Mechanism(dataclasses.replace(description, joints=joints))


def held(robot, q, leading):
    states = robot.joint_states(q).q
    return {name: states[name] for name in leading}


def closed(robot, near, fixed):
    return robot.assemble(near=near, fixed=fixed, tolerance=1e-13)


def rod_crank():
    """Return a slider-crank whose coupler is a rod of given length."""
    b = sarrus.Builder("rod crank")
    body = sarrus.Inertia.sphere(1.0, 0.1)
    b.add_body("crank", body)
    b.add_body("slider", body)
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("guide", sarrus.Prismatic("x"), "ground", "slider")
    b.add_distance("rod", ("crank", (0.0, 0.0, 0.3)), ("slider", (0.0, 0.0, 0.0)), length=1.0)
    return b.build()


MECHANISMS = {
    "four_bar": (sarrus.mechanisms.four_bar, ["motor"]),
    "slider_crank": (sarrus.mechanisms.slider_crank, ["motor"]),
    "stewart": (sarrus.mechanisms.stewart, [f"leg{k}" for k in range(1, 7)]),
    "delta": (sarrus.mechanisms.delta, None),
    "led by what closes": (sarrus.mechanisms.four_bar, None),
}


def example(name):
    make, leading = MECHANISMS[name]
    robot = make()
    if leading is None:
        leading = list(robot.loop_joints[:1]) if name == "led by what closes" else list(robot.actuated)
    of_one = {n: 0.9 for n in robot.actuated if len(robot.actuated) == 1}
    return robot, leading, robot.assemble(fixed=of_one)


@pytest.mark.parametrize("name", MECHANISMS)
def test_by_placements_of_joints(name):
    robot, leading, q = example(name)
    found, rng = D.assembled_positions(robot, q, leading), np.random.default_rng(0)
    fixed, frame = held(robot, q, leading), robot.bodies[-1]
    X, of_frame = robot.pose(q, frame), found.frame(frame)[1]
    for _ in range(12):
        i, side, k = rng.integers(len(found.joints)), rng.integers(2), rng.integers(6)
        if not found.closes[i, side, k]:
            assert np.isnan(found.placements[:, i, side, k]).all()
            continue

        def there(s, i=i, side=side, k=k):
            other = displaced(robot.description, found.joints[i], side, s * np.eye(6)[k])
            moved = closed(other, q, fixed)
            twist = sarrus.spatial.log(np.linalg.inv(X) @ other.pose(moved, frame))
            return np.concatenate([other.difference(q, moved), twist])

        wanted = slope(there)
        columns = np.concatenate([found.placements[:, i, side, k], of_frame[:, i, side, k]])
        assert_allclose(columns, wanted, rtol=0, atol=1e-7 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_a_joints_own_frame_moves_with_its_placement(name, side):
    robot, leading, q = example(name)
    found, fixed = D.assembled_positions(robot, q, leading), held(robot, q, leading)
    for i in (1, len(found.joints) - 1):
        joint = found.joints[i]
        frame = f"{joint}.{('parent', 'child')[side]}"
        X, columns = robot.pose(q, frame), found.frame(frame)[1]
        for k in np.flatnonzero(found.closes[i, side]):

            def there(s, joint=joint, k=k, X=X, frame=frame):
                other = displaced(robot.description, joint, side, s * np.eye(6)[k])
                return sarrus.spatial.log(np.linalg.inv(X) @ other.pose(closed(other, q, fixed), frame))

            assert_allclose(columns[:, i, side, k], slope(there), rtol=0, atol=1e-7)


def test_by_the_length_of_a_rod():
    robot = rod_crank()
    q = robot.assemble(fixed={"motor": 0.4})
    found = D.assembled_positions(robot, q, ["motor"])

    def there(s):
        longer = [dataclasses.replace(c, length=c.length + s) for c in robot.description.constraints]
        other = sarrus.Mechanism(dataclasses.replace(robot.description, constraints=longer))
        return robot.difference(q, closed(other, q, {"motor": q[:1]}))

    assert found.rods == ("rod",)
    assert_allclose(found.lengths[:, 0], slope(there), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", MECHANISMS)
def test_by_the_leading_joints(name):
    robot, leading, q = example(name)
    found = D.assembled_positions(robot, q, leading)
    first = found.leading[:, 0]
    assert_allclose(first, robot.complete_velocity(q, {n: float(n == leading[0]) for n in leading}), atol=1e-12)
    frame = robot.bodies[-1]
    assert_allclose(found.frame(frame)[0][:, 0], robot.jacobian(q, frame) @ first, atol=1e-12)


def test_a_misalignment_that_no_planar_linkage_absorbs():
    found = D.assembled_positions(sarrus.mechanisms.four_bar(), sarrus.mechanisms.four_bar().assemble(), ["motor"])
    # pins turn about y: along x and z, and about y, there is play for it; no other
    assert_array_equal(found.closes, np.broadcast_to([False, True, False, True, False, True], found.closes.shape))


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "delta"])
def test_the_cut_is_a_choice(name):
    robot = MECHANISMS[name][0]()
    leading = list(robot.actuated)
    q = robot.assemble()
    cut = next(j for j in robot.joints if j not in leading and robot.joint(j).nv)
    specs = [
        dataclasses.replace(j, tree=j.name in robot.loop_joints, loop=j.name == cut) for j in robot.description.joints
    ]
    other = sarrus.Mechanism(dataclasses.replace(robot.description, joints=specs))
    assert other.loop_joints != robot.loop_joints
    states = robot.joint_states(q).q
    at = other.assemble(fixed={j: states[j] for j in other.joints}, tolerance=1e-13)
    one, two = D.assembled_positions(robot, q, leading), D.assembled_positions(other, at, leading)
    order = [two.joints.index(j) for j in one.joints]
    frame = robot.bodies[-1]
    assert_array_equal(two.closes[order], one.closes)
    assert_allclose(two.frame(frame)[1][:, order], one.frame(frame)[1], atol=1e-8)
    assert_allclose(two.frame(frame)[0], one.frame(frame)[0], atol=1e-8)


def test_loops_that_stand_open_have_no_derivatives():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.9})
    off = q + np.array([0.0, 0.01, 0.0])
    with pytest.raises(sarrus.StateError, match="loop"):
        D.assembled_positions(robot, off, ["motor"])
    found = D.assembled_positions(robot, [q, off], ["motor"])
    assert np.isnan(found.placements[1]).all() and np.isnan(found.leading[1]).all() and not found.closes[1].any()
    assert found.closes[0].any() and np.isfinite(found.leading[0]).all()


def test_a_batch_is_its_states_and_a_singular_one_is_nan():
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    q = robot.project_configuration([[0.4, -0.4, 0.4], [0.0, 0.0, 0.0], [0.7, -0.7, 0.7]])
    found = D.assembled_positions(robot, q, ["motor"])
    assert found.placements.shape == (3, 3, 4, 2, 6)
    for k in (0, 2):
        one = D.assembled_positions(robot, q[k], ["motor"])
        assert_allclose(found.placements[k], one.placements, rtol=0, atol=1e-14)
        assert_allclose(found.frame("rocker")[1][k], one.frame("rocker")[1], rtol=0, atol=1e-14)
    assert np.isnan(found.placements[1]).all() and not found.closes[1].any()
    with pytest.raises(sarrus.StateError, match="singular"):
        D.assembled_positions(robot, [0.0, 0.0, 0.0], ["motor"])
