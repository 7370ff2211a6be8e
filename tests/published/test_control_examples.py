"""Demonstrations of control: each runs, draws, and has the tracking error that it states."""

import importlib
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
OTHERS = {
    "following",
    "cassie_squat",
}  # functions for all; an example with a model of others (test_cassie_on_heel_and_toe.py)
NAMES = tuple(sorted({path.stem for path in (EXAMPLES / "control").glob("*.py")} - OTHERS))


@pytest.fixture
def example(monkeypatch):
    """Import an example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(EXAMPLES / "control"))
    return importlib.import_module


@pytest.mark.parametrize("name", NAMES)
def test_demonstration_runs(example, name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    found = example(name).main(figures=tmp_path, duration=0.2)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert all(np.isfinite(x) for x in found.values())
    assert "sarrus" in capsys.readouterr().out


def test_pole_is_caught_upright(example):
    found = example("swing_up").main()
    assert found["angle at the end [rad]"] < 1e-3 and found["cart, farthest [m]"] < 1.0


def test_hybrid_control_on_the_ball(example):
    """5 s with disturbances that the controller does not measure."""
    found = example("arm_on_sphere").main()
    assert found["position error [m]"] < 1e-4
    assert found["force error after 1 s, of the set value"] < 1e-3
    assert found["force error before, of the set value"] > 1e-2  # there is something to integrate


def test_internal_force_of_the_redundant_manipulator(example):
    found = example("redundant_parallel").main()
    assert found["force error at rest, of the set value"] < 1e-6
    assert found["position error [m]"] < 2e-5
    assert found["largest torque [N m]"] > 3 * found["largest torque without internal force [N m]"]


def test_a_rolled_ball_turns_as_montana_says(example):
    found = example("rolling_ball").main()
    assert found["turned after the circle [rad]"] > 1.0
    assert found["orientation off Montana's equations [rad]"] < 1e-5
    assert found["squeezing force, error of the set value"] < 1e-9


def test_three_fingers_need_the_internal_force(example):
    module = example("three_fingers")
    found = module.main()
    assert found["pressed: position error [m]"] < 1e-5
    assert found["pressed: friction needed"] < module.FRICTION < found["least efforts: friction needed"]


def test_pick_and_place_at_ten_g(example):
    found = example("delta_pick_and_place").main()
    assert 9.5 < found["acceleration [g]"] < 10.5
    assert found["TaskControl: position error [m]"] < 1e-4 < 1e-3 < found["PID: position error [m]"]


def test_a_delta_under_generated_c(example):
    found = example("delta_in_c").main(duration=0.2)
    assert found["efforts of the C off TaskControl's [N m]"] < 1e-11 and found["flags raised"] == 0.0
    assert found["position error [m]"] < 1e-3


def test_ankle_and_its_motors(example):
    """TaskControl with loops agrees with the explicit map of torques."""
    found = example("parallel_ankle").main()
    assert found["error of the ankle's angles [rad]"] < 1e-8
    assert found["TaskControl's torques off the map's [N m]"] < 1e-10


def test_quadruped_trots(example):
    module = example("quadruped_trot")
    found = module.main(duration=2.05)
    assert found["steps"] == 2
    assert found["trunk's position error, standing [m]"] < 1e-3 and found["trunk's position error, trotting [m]"] < 2e-3
    assert 0.9 * module.LIFT < found["height of a swing foot [m]"] < 1.2 * module.LIFT
    assert found["largest effort [N m]"] <= 80.0


def test_take_off_is_felt(example):
    """The platform reproduces the specific force of the take-off; without tilt half of it would be missing. It moves by less than a metre."""
    found = example("stewart_washout").main()
    assert found["position error [m]"] < 1e-6
    assert found["way of the platform [m]"] < 1.0
    felt = found["largest specific force of the aircraft [m/s2]"]
    assert found["specific force missed, root mean square [m/s2]"] < 0.3 * felt


def test_control_loop_runs(example, capsys):
    """The loop runs in real time; its delays are not checked."""
    found = example("control_loop").main(seconds=0.2)
    assert found["ticks"] == 200
    assert found["off"] < 1e-3
    assert "us" in capsys.readouterr().out


def test_an_arm_yields_as_a_mass_does(example):
    found = example("yielding").main()
    assert found["impedance: off the mass [m]"] < 1e-6
    assert found["admittance: off the mass [m]"] < 5e-5  # through a clock
    assert found["impedance: at the end [m]"] == pytest.approx(0.05, abs=1e-6)


def test_a_small_arm_damps_the_long_one(example):
    found = example("flexible_base").main()
    assert found["at work: swing in the last fifth [rad]"] < 0.2 * found["held: swing in the last fifth [rad]"]


def test_thrusters_hold_a_base_or_nothing_needs_to(example):
    found = example("held_base").main()
    for name in ("held", "quiet", "free"):
        assert found[f"{name}: hand off its way [m]"] < 1e-7
    assert found["held: base turned [rad]"] < 1e-12 and found["held: base moved [m]"] < 1e-12
    assert found["quiet: base turned [rad]"] < 1e-12 and found["quiet: fuel [kg]"] == 0.0
    assert found["free: base turned [rad]"] > 0.02
    # Newton: what thrusters have given is the momentum that there is
    assert found["held: impulse off it [N s]"] < 1e-6 * found["held: momentum half way [N s]"]


def test_a_leg_squats_on_the_corners_of_its_foot(example):
    """The ground is compliant and the foot rotates on it. Each corner pushes, and no corner needs more friction than assumed."""
    module = example("heel_and_toe")
    found = module.main()
    assert found["error of the centre of mass [m]"] < 2e-3
    assert found["squat [m]"] == pytest.approx(module.DEPTH, abs=2e-3)
    assert found["foot turns at most by [rad/s]"] > 0.1  # or there is nothing to agree on
    assert found["foot rises at most by [m]"] < 1e-4
    assert found["friction needed at most"] < module.FRICTION and found["least force of a corner [N]"] > 10.0
