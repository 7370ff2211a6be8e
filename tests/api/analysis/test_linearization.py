"""Calls of linearize(): names, errors, warnings, and modes for a viewer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import mechanisms as gallery


@pytest.fixture(scope="module")
def fourbar():
    robot = gallery.four_bar()
    return robot, robot.assemble()


def sliding(friction=0.0, damping=0.0):
    b = sarrus.Builder()
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", friction=friction, damping=damping), "ground", "block")
    return b.build()


def test_names_of_states(fourbar):
    robot, q = fourbar
    assert robot.linearize(q, np.zeros(3), coordinates=["pivot"]).states == ("pivot", "pivot'")
    assert robot.linearize(q, np.zeros(3), coordinates="actuated").states == ("motor", "motor'")
    ball = gallery.rolling_disc().linearize(gallery.rolling_disc().assemble(), np.zeros(6))
    assert len(ball.states) == 8 and all(name.startswith("float[") for name in ball.states)


def test_shapes_move_as_the_loops_allow(fourbar):
    robot, q = fourbar
    modes = robot.linearize(q, np.zeros(3)).modes()
    assert_allclose(robot.constraint_jacobian(q) @ modes.shapes.T, 0, atol=1e-9)
    assert_allclose(abs(modes.shapes).max(axis=1), 1.0)
    way = modes.configurations(0, amplitude=0.3, count=20)
    assert way.shape == (20, 3)
    assert abs(robot.constraint_residual(way)).max() < 1e-9
    assert_allclose(way[0], way[-1], atol=1e-12)


def test_the_inputs_of_motors_and_of_all_else(fourbar):
    robot, q = fourbar
    linear = robot.linearize(q, np.zeros(3), coordinates=["motor"])
    assert (linear.A.shape, linear.B.shape, linear.E.shape) == ((2, 2), (2, 1), (2, 3))
    a, b = robot.forward_dynamics(q, np.zeros(3), [[0, 0, 0], [0.3, 0.2, -0.4]])
    assert_allclose(linear.E[1] @ [0.3, 0.2, -0.4], b[0] - a[0], atol=1e-12)
    assert_allclose(linear.B, linear.E[:, :1], atol=1e-12)
    assert gallery.bennett().linearize(gallery.bennett().assemble(), np.zeros(3)).B.shape[0] == 2


def test_of_a_mechanism_that_does_not_move():
    b = sarrus.Builder()
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("weld", sarrus.Fixed(), "ground", "block")
    linear = b.build().linearize(np.zeros(0), np.zeros(0))
    assert linear.A.shape == (0, 0) and linear.modes().eigenvalues.shape == (0,)
    b = sarrus.Builder()
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x"), "ground", "block")
    b.add_prescribed_motion("drive", "slide", 0.0)
    linear = b.build().linearize([0.0], [0.0])
    assert linear.A.shape == (0, 0) and linear.modes().shapes.shape == (0, 1)


@pytest.mark.parametrize(
    ("coordinates", "error", "message"),
    [
        (["motor", "pivot"], sarrus.StateError, "motor, pivot are not independent: there are 1 degrees of freedom"),
        ([], sarrus.StateError, "no coordinates determine 0 of 1 degrees of freedom"),
        (["crank"], sarrus.NameNotFoundError, "no joint is named 'crank'"),
        (["pin2"], sarrus.ModelError, "joint 'pin2' closes a loop"),
        ("motor", sarrus.ModelError, r"such as \['motor'\]"),
        ([("motor", 1)], sarrus.ModelError, "joint 'motor' has 1 velocities"),
    ],
)
def test_coordinates_that_will_not_do(fourbar, coordinates, error, message):
    robot, q = fourbar
    with pytest.raises(error, match=message):
        robot.linearize(q, np.zeros(3), coordinates=coordinates)


def test_coordinates_that_leave_something_moving():
    robot = gallery.rolling_disc(upright=True)
    with pytest.raises(sarrus.StateError, match="x, y determine 1 of 2 degrees of freedom"):
        robot.linearize(robot.assemble(), np.zeros(4), coordinates=["x", "y"])


def test_states_that_will_not_do(fourbar):
    robot, q = fourbar
    with pytest.raises(sarrus.StateError, match="loop"):
        robot.linearize(q + 0.3, np.zeros(3))
    with pytest.raises(sarrus.StateError):
        robot.linearize(q, np.ones(3))
    with pytest.raises(sarrus.ShapeError, match="tau"):
        robot.linearize(q, np.zeros(3), np.zeros(2))
    with pytest.raises(sarrus.StateError, match="nan"):
        robot.linearize(np.full(3, np.nan), np.zeros(3))


def test_coulomb_friction_has_a_slope_only_where_it_slides():
    linear = sliding(friction=3.0, damping=2.0).linearize([0.0], [0.5])
    assert_allclose(linear.A, [[0, 1], [0, -2.0]], atol=1e-9)
    with pytest.raises(sarrus.StateError, match="joint 'slide' is at rest and has Coulomb friction"):
        sliding(friction=3.0).linearize([0.0], [0.0])
    robot = gallery.four_bar()
    assert robot.linearize(robot.assemble(), np.zeros(3)).A.shape == (2, 2)


def test_singular_positions_are_told():
    """A flat parallelogram seems to have two degrees of freedom, but no nearby configuration moves along both."""
    robot = gallery.four_bar(1.0, 0.5, 1.0, 0.5)
    q = np.zeros(3)
    assert (
        abs(robot.constraint_residual(q)).max() < 1e-14 and int(sarrus.formulations.free_motions(robot, q).freedom) == 2
    )
    with pytest.raises(sarrus.StateError, match="singular"):
        robot.linearize(q, np.zeros(3))


def test_motion_that_is_not_smooth_is_warned_of():
    """A row whose coefficients jump at this configuration."""
    b = sarrus.Builder()
    for name in "ab":
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(name, sarrus.Prismatic("x"), "ground", name)

    def rows(q):
        return np.stack([1.0 + 0.5 * np.sign(q[..., :1]), -np.ones_like(q[..., :1])], axis=-1)

    b.add_pfaffian("jump", rows, ["a", "b"], derivative=lambda q, v: np.zeros((*q.shape[:-1], 1, 2)))
    robot = b.build()
    with pytest.warns(sarrus.ModelWarning, match="differences that approximate A disagree"):
        robot.linearize([0.0, 0.0], robot.project_velocity([0.0, 0.0], [1.0, 1.0]))


def test_modes_of_many_states_have_no_one_film():
    pendulum = gallery.pendulum()
    modes = pendulum.linearize(np.zeros((3, 1)), np.zeros(1)).modes()
    assert modes.frequencies.shape == (3, 2) and modes.shapes.shape == (3, 2, 1)
    with pytest.raises(sarrus.StateError, match="modes of many states"):
        modes.configurations(0)
    one = pendulum.linearize([0.0], [0.0]).modes()
    for wrong, error in ((2, ValueError), (0.5, TypeError), (-1, ValueError)):
        with pytest.raises(error, match="mode must be"):
            one.configurations(wrong)
    with pytest.raises(TypeError, match="amplitude must be a number"):
        one.configurations(0, amplitude="far")
