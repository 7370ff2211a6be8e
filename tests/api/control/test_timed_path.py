"""Timed paths: references of controllers, errors that name the limit and the place, and checks of arguments."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control.path import Path, path_through
from sarrus.control.timing import TimedPath


@pytest.fixture(scope="module")
def path():
    robot = sarrus.mechanisms.delta()
    points = [(0.0, 0.0, -0.5), (0.1, 0.0, -0.45), (0.0, 0.1, -0.5)]
    q = robot.inverse_kinematics({"platform": points}, near=robot.assemble())
    return path_through(robot, [0.0, 0.4, 0.8], q)


@pytest.fixture(scope="module")
def timed(path):
    return path.timed(effort=6.0, velocity=10.0)


def test_motion(path, timed):
    """v and a are derivatives of q; grid points are on the path; the ends are at rest, also before and after."""
    robot = path.mechanism
    assert isinstance(timed, TimedPath) and isinstance(timed, Path)
    assert timed.duration == timed.t[-1] < 0.8
    assert_allclose(timed.at(timed.t)[0], path.at(timed.s)[0], atol=1e-9)
    assert_allclose(timed.v, timed.at(timed.t)[1], atol=1e-6)
    t, h = (timed.t[1:] + timed.t[:-1]) / 2.0, 1e-2 * np.diff(timed.t)
    (before, v0, _), (_, v, a), (after, v1, _) = (timed.at(x) for x in (t - h, t, t + h))
    assert_allclose(robot.difference(before, after) / (2.0 * h)[:, None], v, atol=1e-5 * np.abs(v).max())
    assert_allclose((v1 - v0) / (2.0 * h)[:, None], a, atol=1e-5 * np.abs(a).max())
    for t, end in ((-1.0, 0.0), (timed.duration + 1.0, 0.8)):
        q, v, a = timed.at(t)
        assert_allclose(q, path.at(end)[0], atol=1e-12)
        assert not v.any() and not a.any()
    assert [x.shape for x in timed.at(np.zeros((2, 3)))] == [(2, 3, robot.nq), (2, 3, robot.nv), (2, 3, robot.nv)]


def test_copies(timed):
    for other in (pickle.loads(pickle.dumps(timed)), copy.deepcopy(timed)):
        assert other.duration == timed.duration and other.active == timed.active
        assert_array_equal(other.at(0.1)[0], timed.at(0.1)[0])
        for array in (timed.s, timed.rates, timed.t, other.s, other.rates, other.t):
            assert not array.flags.writeable
    assert repr(timed).startswith("<TimedPath of 'Delta")
    assert timed.timed(effort=6.0, velocity=10.0).duration == timed.duration


def test_laws(timed):
    """Time functions of motors equal the motion, with its accelerations, which jump at grid points."""
    law, t = timed.law("motor1"), (timed.t[1:] + timed.t[:-1]) / 2.0
    place = timed.mechanism.joint("motor1").v_slice.start
    for function, quantity in zip(law.derivatives(t), timed.at(t), strict=True):
        assert_allclose(function, quantity[:, place], atol=1e-6 * np.abs(quantity).max())
    assert law.derivatives(2.0 * timed.duration)[1] == pytest.approx(0.0, abs=1e-9)


def test_controllers(path, timed):
    """Feedforward of the timed motion needs the efforts that limit it, and feedback removes the rest of the error."""
    robot = path.mechanism
    targets = {name: timed.law(name) for name in robot.actuated}
    drive = sarrus.control.ComputedTorque(targets, proportional=400.0, derivative=40.0)
    run = sarrus.simulate(robot, timed.at(0.0)[0], np.zeros(robot.nv), timed.duration, drive)
    assert_allclose(run.frame("platform")[-1, :3, 3], (0.0, 0.1, -0.5), atol=1e-4)
    law = sarrus.control.TaskControl(robot, sarrus.control.PostureTask(timed))
    q, v, a = timed.at(0.1)
    assert_allclose(law(0.1, q, v), robot.actuation_matrix(q) @ robot.actuator_efforts(q, v, a), rtol=1e-5, atol=1e-5)


def test_limits_of_the_description():
    """Limits of motors in the description are the default; a mapping replaces those that it names."""
    b = sarrus.Builder("slide", gravity=(0.0, 0.0, 0.0))
    b.add_body("cart", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
    motor = sarrus.Prismatic("x", velocity_limit=0.5, effort_limit=8.0)
    b.add_joint("motor", motor, "ground", "cart", actuated=True)
    path = path_through(b.build(), [0.0, 1.0], [[0.0], [1.0]], v=([1.0], [1.0]))
    assert path.timed().duration == pytest.approx(2.125, rel=1e-4)
    assert path.timed(velocity=np.inf).duration == pytest.approx(1.0, rel=1e-4)
    assert path.timed(velocity={"motor": np.inf}, effort={}).duration == pytest.approx(1.0, rel=1e-4)
    assert path.timed(effort=np.inf, acceleration=1.0).duration == pytest.approx(2.5, rel=1e-4)


def test_too_weak(path):
    """An effort that cannot hold the pose: the error names the motor and the place."""
    place = "at s = 0.79[0-9]*, between waypoints 1 and 2"
    with pytest.raises(
        sarrus.StateError, match=rf"no speed satisfies the limits {place}: .*the effort 0.5 of 'motor\d' \(rest needs 3"
    ):
        path.timed(effort=0.5)


@pytest.mark.parametrize("limits", [{"velocity": 1e-200}, {"acceleration": 1e-310}, {"feed": {"platform": 1e-200}}])
def test_tiny_limits(path, limits):
    with pytest.raises(
        sarrus.StateError, match=r"no speed satisfies .*: expected .* the (velocity|acceleration|feed) 1e-"
    ):
        path.timed(**limits)


def test_unlimited(path):
    with pytest.raises(sarrus.ModelError, match=r"no limit bounds the motion .* between waypoints 1 and 2"):
        path.timed()
    robot = path.mechanism
    with pytest.raises(sarrus.ModelError, match="does not move: expected waypoints that differ"):
        path_through(robot, [0.0, 1.0, 2.0], path.q[[0, 0, 0]]).timed(effort=6.0)


def test_prescribed_motion():
    b = sarrus.Builder("led")
    for k, name in enumerate(("swing", "arm")):
        b.add_body(name, sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
        b.add_joint(f"joint{k}", sarrus.Revolute("y"), ("ground", "swing")[k], name, at_parent=(0.2, 0.0, 0.0))
    b.add_prescribed_motion("motion", "joint0", sarrus.laws.harmonic(0.5, rate=1.0))
    robot, t = b.build(), np.array([0.0, 0.5, 1.0])
    path = path_through(robot, t, np.column_stack([0.5 * np.sin(t), [0.0, 1.0, 0.0]]))
    with pytest.raises(sarrus.ModelError, match="paths of 'led' have one timing"):
        path.timed(velocity=1.0)


@pytest.mark.parametrize(
    ("limits", "error", "text"),
    [
        ({"velocity": -1.0}, sarrus.ModelError, "velocity of 'motor1' must be positive; got -1.0"),
        ({"effort": 0.0}, sarrus.ModelError, "effort of 'motor1' must be positive"),
        ({"acceleration": np.nan}, sarrus.ModelError, "acceleration of 'motor1' must be positive"),
        ({"acceleration": [1.0, 2.0]}, sarrus.ShapeError, r"acceleration of 'motor1' must be a number or \(1,\); got shape \(2,\)"),
        ({"velocity": {"motor9": 1.0}}, sarrus.NameNotFoundError, "motor9"),
        ({"effort": {"rod1a": 1.0}}, sarrus.NameNotFoundError, "rod1a"),
        ({"effort": {"joint1a": 1.0}}, sarrus.NameNotFoundError, "joint1a"),
        ({"velocity": "fast"}, sarrus.ShapeError, "velocity of 'motor1'"),
        ({"feed": 0.1}, TypeError, "feed must be a mapping of frames to speeds"),
        ({"feed": {"platform": 0.0}}, sarrus.ModelError, "feed of 'platform' must be a positive speed"),
        ({"feed": {"platform": (0.1, 1.0, 1.0)}}, sarrus.ModelError, "or .speed, acceleration.; got"),
        ({"feed": {"nozzle": 0.1}}, sarrus.NameNotFoundError, "nozzle"),
        ({"velocity": 1.0, "grid": 0}, ValueError, "grid must be at least 1"),
        ({"velocity": 1.0, "grid": 2.5}, TypeError, "grid must be an integer"),
    ],
)  # fmt: skip
def test_arguments(path, limits, error, text):
    with pytest.raises(error, match=text):
        path.timed(**limits)


def slide(**options):
    b = sarrus.Builder("slide", gravity=(0.0, 0.0, 0.0))
    b.add_body("cart", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_body("load", sarrus.Inertia(0.0, (0.0, 0.0, 0.0), np.zeros((3, 3))))
    b.add_joint("motor", sarrus.Prismatic("x", **options), "ground", "cart", actuated=bool(options))
    b.add_joint("weld", sarrus.Fixed(), "cart", "load")
    return b.build()


@pytest.mark.parametrize("damping", [0.5, 2.0, 5.0, 20.0])
def test_terminal_speeds_far_below_those_without_damping(damping):
    """The speed approaches effort / damping, which is far below the speed of the motion without damping."""
    path = path_through(slide(damping=damping, effort_limit=1.0), [0.0, 1.0], [[0.0], [2.0]])
    timed = path.timed(grid=2000)
    # at full effort: v = (1 - exp(-d t)) / d; then full braking
    t = np.linspace(0.0, timed.duration, 20001)
    q, v, a = timed.at(t)
    assert np.abs(a + damping * v).max() <= 1.0 + 1e-3
    assert v.max() <= 1.0 / damping
    assert timed.duration >= 2.0 * damping
    assert timed.duration <= 2.0 * damping + 2.0 / damping + 2.0


@pytest.mark.parametrize(("term", "power"), [("quadratic_damping", 2), ("cubic_damping", 3)])
@pytest.mark.parametrize("damping", [0.5, 20.0, 1e4])
def test_terminal_speeds_of_nonlinear_dampers(term, power, damping):
    """The speed approaches (effort / damping)^(1 / power)."""
    path = path_through(slide(effort_limit=1.0, **{term: damping}), [0.0, 1.0], [[0.0], [2.0]])
    timed, terminal = path.timed(grid=2000), damping ** (-1.0 / power)
    q, v, a = timed.at(np.linspace(0.0, timed.duration, 20001))
    assert np.abs(a + damping * v**power).max() <= 1.0 + 1e-3
    assert v.max() <= terminal * (1.0 + 1e-9)
    assert 2.0 / terminal <= timed.duration <= 2.0 / terminal + 2.0 * terminal + 2.0


def test_a_joint_without_velocities():
    robot = slide()
    path = path_through(robot, [0.0, 1.0], [[0.0], [2.0]])
    assert path.timed(velocity=1.0, acceleration=1.0).duration == pytest.approx(3.0, rel=1e-3)


def test_a_path_that_does_not_move():
    with pytest.raises(sarrus.ModelError, match="does not move"):
        path_through(slide(), [0.0, 1.0], [[1.0], [1.0]]).timed(velocity=1.0)
