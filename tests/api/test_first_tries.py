"""Calls that users tried first: they work, or their error contains the cure."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.cli import main
from sarrus.control import path_through
from sarrus.design import grashof_class
from sarrus.laws import polynomial


def four_bar():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    return robot, q, robot.complete_velocity(q, {"motor": 6.0})


def test_frames_alone_determine_a_motion():
    robot, q, v = four_bar()
    twist = robot.velocity(q, v, "coupler")
    assert_allclose(robot.complete_velocity(q, frames={"coupler": twist}), v, atol=1e-12)
    a = robot.complete_acceleration(q, v, {"motor": 1.0})
    found = robot.complete_acceleration(q, v, frames={"coupler": robot.acceleration(q, v, a, "coupler")})
    assert_allclose(found, a, atol=1e-10)
    with pytest.raises(TypeError, match="pass that of joints, as 'joints', or that of frames, as 'frames'"):
        robot.complete_velocity(q)


def test_a_polynomial_accepts_a_sequence():
    assert polynomial([1.0, -2.0]) == polynomial(1.0, -2.0) == polynomial(np.array([1.0, -2.0]))
    with pytest.raises(sarrus.ModelError, match="coefficients"):
        polynomial([[1.0, 2.0]])
    with pytest.raises(sarrus.ModelError, match="needs one coefficient or more"):
        polynomial([])


@pytest.mark.parametrize("make", [sarrus.Free, lambda **x: sarrus.Planar("z", **x)], ids=["Free", "Planar"])
def test_a_spring_without_a_coordinate_is_refused_at_once(make):
    with pytest.raises(sarrus.ModelError, match=r'use sarrus.Gimbal\("rx ry rz tx ty tz", stiffness=...\)'):
        make(stiffness=100.0)
    assert make(damping=100.0).nv


@pytest.mark.parametrize("name", ["Revolute", "Prismatic", "Free", "Gimbal", "Fixed"])
def test_help_of_a_joint_explains_all_its_arguments(name):
    text = inspect.getdoc(getattr(sarrus, name))
    assert "as for" not in text and "viscous friction" in text
    for argument in inspect.signature(getattr(sarrus, name)).parameters:
        assert any(argument in line.partition(" : ")[0] for line in text.splitlines() if " : " in line)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_samples_every_few_steps(method):
    """As in simulate_many: the initial state, every n steps, and the final state, equal to those of a run with all samples."""
    robot, q, v = four_bar()
    every, each = (sarrus.simulate(robot, q, v, 0.105, method=method, every=n) for n in (10, 1))
    assert_allclose(every.t, [*np.arange(11) * 0.01, 0.105], atol=1e-15)
    assert_allclose(every.q, each.q[[*range(0, 105, 10), 105]], rtol=0, atol=0 if method == "rk4" else 1e-12)
    longer = sarrus.simulate(robot, duration=0.02, resume=every, every=10)
    # steps of fixed length are counted from the start of the first run
    assert_allclose(longer.t - 0.105, [0.0, 0.005, 0.015, 0.02] if method == "rk4" else [0.0, 0.01, 0.02], atol=1e-12)
    with pytest.raises(ValueError, match="times= and every= both"):
        sarrus.simulate(robot, q, v, 0.1, every=10, times=[0.0, 0.1])
    with pytest.raises(ValueError, match="omit events, times, every, resume"):
        sarrus.simulate(robot, q, v, 0.1, every=10, sensitivities=())


def floating_arm():
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia.box(20.0, (1, 1, 1)))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    before = "satellite"
    for name in "abc":
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), radius=0.05))
        b.add_joint(name + " joint", sarrus.Revolute("z"), before, name, at_parent=(0.5, 0, 0))
        before = name
    b.add_frame("hand", "c", (0.5, 0, 0))
    return b


@pytest.mark.parametrize("poses", [False, True])
def test_paths_of_a_floating_arm_may_begin_at_time_zero(poses):
    robot, q = floating_arm().build(), [0, 0, 0, 1, 0, 0, 0, 0.5, -1.2, 0.8]
    X = robot.pose(q, "hand")
    goal = X.copy()
    goal[:3, 3] += [-0.05, 0.05, 0.0]
    way = np.stack([X, goal]) if poses else np.stack([X, goal])[:, :3, 3]
    with_start = sarrus.floating.path(robot, q, {"hand": way}, [0.0, 1.0], step=0.02)
    without = sarrus.floating.path(robot, q, {"hand": way[1:]}, [1.0], step=0.02)
    assert_array_equal(with_start.q, without.q)
    assert path_through(robot, [0.0, 1.0], [q, q]).at(0.0)[0].shape == (robot.nq,)
    elsewhere = way.copy()
    elsewhere[0, ..., -1] += 0.01
    with pytest.raises(sarrus.StateError, match=r"way_points\['hand'\] at time 0 must be .* they differ by 0.01"):
        sarrus.floating.path(robot, q, {"hand": elsewhere}, [0.0, 1.0])


def test_a_captured_target_needs_no_joint_of_its_own():
    """The generalized Jacobian with two free bodies is refused with the cure, which works."""
    b = floating_arm()
    b.add_body("target", sarrus.Inertia.sphere(5.0, 0.3))
    b.add_joint("drift", sarrus.Free(), "ground", "target")
    b.add_joint("grasp", sarrus.Fixed(), "c", "target", at_parent=(0.5, 0, 0))
    robot = b.build()
    with pytest.raises(sarrus.ModelError, match="remove joint 'drift', so that only the grasp connects this body"):
        sarrus.floating.generalized_jacobian(robot, robot.neutral(), "hand")
    b.remove_joint("drift")
    robot = b.build()
    assert sarrus.floating.generalized_jacobian(robot, robot.neutral(), "hand").shape == (6, 3)


def test_grashofs_class_without_a_configuration():
    assert grashof_class(sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)).startswith(
        "crank-rocker: 0.4 + 1.1 < 0.9 + 1 m"
    )
    assert grashof_class(sarrus.mechanisms.delta()) == ""
    with pytest.raises(sarrus.ShapeError, match="q must be one configuration"):
        grashof_class(sarrus.mechanisms.four_bar(), np.zeros((2, 3)))


def test_generated_code_states_its_lines(tmp_path, capsys):
    made = sarrus.generation.generate(sarrus.mechanisms.pendulum(), ["inverse_dynamics"], tmp_path)
    assert made.lines == len(made.source.read_text().splitlines()) > 5
    main(["generate", "pendulum", "--functions", "inverse_dynamics", "-o", str(tmp_path)])
    assert f": {made.lines} lines of C" in capsys.readouterr().out


def test_a_plot_returns_axes(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 0.01)
    assert {type(run.plot(x)).__name__ for x in (None, "q", ["q", "tau", "energy"])} == {"Axes"}
    matplotlib.pyplot.close("all")
