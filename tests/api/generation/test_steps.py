"""Recorded steps of a simulation, beside those of simulate() with the same methods and elements; sizes of their code on a GPU."""

import importlib.util
import pathlib
import re
import sys
import tempfile

import numpy as np
import pytest

import sarrus
from generated_states import needs_compiler
from sarrus import control, errors, generation
from tests.laws import test_dry_friction as braked

DT = 1e-3
quadruped, delta, four_bar = sarrus.mechanisms.quadruped(), sarrus.mechanisms.delta(), sarrus.mechanisms.four_bar()
pendulum, biped_leg, watt = sarrus.mechanisms.pendulum(), sarrus.mechanisms.biped_leg(), sarrus.mechanisms.watt()
FOUR_BAR = braked.four_bar("p2", 0.0)
TOOL = pathlib.Path(__file__).parents[3] / "tools" / "device_code.py"


def feet(height):
    """Return contacts of the quadruped's feet with a plane at this height."""
    return [
        control.CompliantContact(foot, offset=height, stiffness=1e4, dissipation=0.1, friction=0.8, slip_velocity=1e-2)
        for foot in ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
    ]


def code(robot, scalar="double", **options):
    """Return the compiled step of the results q_next, v_next, z_next and residual_next."""

    def step(recorder):
        return {f"{key}_next": x for key, x in generation.recorded_step(recorder, dt=DT, **options).items()}

    with tempfile.TemporaryDirectory() as folder:
        return generation.compiled(
            generation.generate(robot, {"step": step}, folder, scalar=scalar, most_statements=10**6)
        )


def states(robot):
    recorder = generation.Recorder(robot)
    return zip(recorder._samples["q"], recorder._samples["v"], strict=True)


def compared(robot, method, scalar="double", elements=(), substeps=1, **options):
    """Return the largest errors of q and v, relative to the largest entry of each, and the last results."""
    compiled = code(robot, scalar, method=method, elements=elements, substeps=substeps, **options)
    inputs = compiled._generated.functions["step"].inputs
    errors_of = np.zeros(2)
    for q, v in states(robot):
        given = {"q": q, "v": v, "z": np.zeros(inputs.get("z", (0,))), "tau": np.zeros(robot.nv), "time": [0.0]}
        results, status = compiled("step", *(given[key] for key in inputs))
        assert status == 0
        run = sarrus.simulate(
            robot, q, v, DT, list(elements), method=method, dt=DT / substeps, every=substeps, limits="ignore"
        )
        for k, (x, expected) in enumerate(((results["q_next"], run.q[-1]), (results["v_next"], run.v[-1]))):
            errors_of[k] = max(errors_of[k], np.abs(x - expected).max() / np.abs(expected).max())
    return errors_of


def laws(robot):
    """Return an element of each kind that acts on one joint, for the first joint with one coordinate."""
    joint = next(name for name in robot.joints if robot.joint(name).type.nq == 1 and not robot.joint(name).closes_loop)
    return [
        control.PID(joint, target=0.2, proportional=30.0, integral=5.0, derivative=0.5, limits=(-3.0, 3.0)),
        control.ActuatorModel(joint, time_constant=0.005, torque_speed=(10.0, 30.0)),
        control.LuGreFriction(joint, sliding=0.3, stiffness=200.0, damping=2.0, stribeck_velocity=0.1),
        control.EndStop(joint, limits=(-0.2, 0.2), stiffness=500.0, damping=2.0),
    ]


@needs_compiler
@pytest.mark.filterwarnings("ignore::sarrus.errors.StiffnessWarning")
@pytest.mark.parametrize(
    ("robot", "method", "elements", "substeps"),
    [
        (pendulum, "semi_implicit", laws(pendulum), 1),
        (pendulum, "rk4", [control.EndStop("pivot", (-0.1, 0.1)), control.LuGreFriction("pivot", 0.3)], 1),
        (four_bar, "euler", (), 1),
        (four_bar, "semi_implicit", laws(four_bar), 3),
        (four_bar, "rk4", laws(four_bar), 2),
        (watt, "rk4", (), 1),
        (biped_leg, "semi_implicit", (), 1),
        (quadruped, "semi_implicit", feet(-0.3), 1),
        (quadruped, "rk4", feet(-5.0), 1),
    ],
    ids=lambda x: getattr(x, "name", x) if not isinstance(x, (list, tuple)) else len(x),
)
def test_steps_are_those_of_simulate(robot, method, elements, substeps):
    q, v = compared(robot, method, elements=elements, substeps=substeps)
    assert q < 1e-12
    # the projection of simulate() ends at a residual of 1e-14, and semi-implicit velocities are displacements divided by the step
    assert v < (3e-11 if method == "semi_implicit" and robot.nc else 1e-12)


@needs_compiler
@pytest.mark.filterwarnings("ignore::sarrus.errors.StiffnessWarning")
def test_contacts_begin_and_end():
    """A contact that presses in no sample presses in use, without a broken assumption."""
    compiled = code(quadruped, elements=feet(0.0))
    q, v, status = quadruped.neutral(), np.zeros(quadruped.nv), 0
    fallen = []
    for height in (5.0, 0.3):
        q[6] = height  # the base is a free joint: quaternion, then position; the feet are 0.6 m below it
        results, status = compiled("step", q, v, np.zeros(quadruped.nv))
        assert status == 0
        run = sarrus.simulate(quadruped, q, v, DT, feet(0.0), method="semi_implicit", dt=DT, limits="ignore")
        np.testing.assert_allclose(results["v_next"], run.v[-1], rtol=1e-12, atol=1e-12 * np.abs(run.v[-1]).max())
        fallen.append(results["v_next"])
    assert np.abs(fallen[0] - fallen[1]).max() > 1e-2


@needs_compiler
def test_efforts_are_commands_of_motors():
    """Efforts pass the lag of an ActuatorModel, like those of controllers."""
    motor = control.ActuatorModel(pendulum.joints[0], time_constant=0.01)
    compiled = code(pendulum, elements=[motor])
    q, v, z = np.array([0.3]), np.array([0.5]), np.zeros(1)
    for _ in range(5):
        results, _ = compiled("step", q, v, z, [2.0])
        q, v, z = results["q_next"], results["v_next"], results["z_next"]
    effort = control.FeedforwardEffort(pendulum.joints[0], 2.0)
    run = sarrus.simulate(pendulum, [0.3], [0.5], 5 * DT, [effort, motor], method="semi_implicit", dt=DT)
    np.testing.assert_allclose([*q, *v], [*run.q[-1], *run.v[-1]], rtol=1e-12)


def advanced(robot, q, v, steps, scalar="double", elements=(), **options):
    """Return the largest errors of q and v of a sequence of recorded steps, beside simulate(), and its velocities."""
    compiled = code(robot, scalar, elements=elements, **options)
    inputs = compiled._generated.functions["step"].inputs
    given = {"q": q, "v": v, "z": np.zeros(inputs.get("z", (0,))), "tau": np.zeros(robot.nv), "time": [0.0]}
    method = options.get("method", "semi_implicit")
    run = sarrus.simulate(robot, q, v, steps * DT, list(elements), method=method, dt=DT, limits="ignore")
    errors_of = np.zeros(2)
    for k in range(steps):
        results, status = compiled("step", *(given[key] for key in inputs))
        assert status == 0
        given |= {key.removesuffix("_next"): x for key, x in results.items()} | {"time": [(k + 1) * DT]}
        errors_of = np.maximum(errors_of, [np.abs(given[key] - getattr(run, key)[k + 1]).max() for key in ("q", "v")])
    return errors_of, run


@needs_compiler
@pytest.mark.parametrize(
    ("period", "delay", "quantisation", "method"),
    [
        (0.005, 0.0, None, "semi_implicit"), (0.005, 0.003, None, "rk4"), (0.002, 0.007, 1e-3, "semi_implicit"), (0.002, 0.008, None, "euler"),
        (0.001, 0.0, None, "semi_implicit"),
    ],
)  # fmt: skip
def test_motors_with_a_period_and_a_delay(period, delay, quantisation, method):
    """Samples, the current effort and delayed efforts are internal states of the step, as in the core."""
    pid, actuator, *_ = laws(pendulum)
    elements = [control.SampleAndHold(pid, period=period, delay=delay, quantisation=quantisation), actuator]
    errors_of, run = advanced(pendulum, [0.3], [0.5], 40, elements=elements, method=method)
    assert errors_of.max() < 1e-13
    assert np.ptp(run.tau[:, 0]) > 1.0
    errors_of, _ = advanced(pendulum, [0.3], [0.5], 40, "float", elements=elements, method=method)
    assert errors_of.max() < (1e-5 if quantisation is None else 1e-2)  # a position that is rounded to another multiple


@needs_compiler
@pytest.mark.parametrize(
    ("robot", "start", "steps", "method", "reach"),
    [
        (braked.chain([1.0]), {"j0": 0.5}, 1500, "semi_implicit", 1e-12), (braked.chain([1.0]), {"j0": 0.5}, 1500, "rk4", 1e-12),
        # perturbations of a double pendulum grow by a factor of 100 in this time
        (braked.chain([2.0, 1.0]), {"j0": 0.5, "j1": 0.3}, 800, "semi_implicit", 1e-10),
        (FOUR_BAR.replace(friction={"m": 1.0}), {"m": 1.0}, 1000, "rk4", 1e-12), (FOUR_BAR.replace(friction={"p2": 1.0}), {"m": 1.0}, 1000, "rk4", 1e-12),
    ],
    ids=lambda x: getattr(x, "name", None),
)  # fmt: skip
def test_dry_friction(robot, start, steps, method, reach):
    """Joints slide, stop within steps, and stick, as in the core."""
    q = (
        robot.assemble(fixed={name: [angle] for name, angle in start.items()})
        if robot.constraints
        else list(start.values())
    )
    errors_of, run = advanced(robot, q, np.zeros(robot.nv), steps, method=method)
    assert errors_of.max() < reach
    changes = np.abs(np.diff(np.sign(run.v), axis=0)) > 0
    assert changes.sum(axis=0).max() >= 2  # a joint turns round, or comes to rest
    single, _ = advanced(robot, q, np.zeros(robot.nv), 50, "float", method=method)
    assert single.max() < 1e-4


@needs_compiler
def test_midpoint_is_of_second_order():
    """The error of a step of the explicit midpoint rule is of third order."""
    (q, v), *_ = states(four_bar)
    errors_of = []
    for substeps in (1, 2):
        results, status = code(four_bar, method="midpoint", substeps=substeps)("step", q, v, np.zeros(four_bar.nv))
        run = sarrus.simulate(four_bar, q, v, DT, method="rk4", dt=DT / 16, limits="ignore")
        assert status == 0
        errors_of.append(np.abs(results["v_next"] - run.v[-1]).max())
        assert results["residual_next"].max() < 1e-10
    assert 3.0 < errors_of[0] / errors_of[1] < 5.0


@needs_compiler
@pytest.mark.parametrize(("robot", "method"), [(quadruped, "semi_implicit"), (four_bar, "rk4"), (biped_leg, "rk4")])
def test_single_precision(robot, method):
    """Coordinates have 24 bits; corrections and sums add some roundings."""
    assert compared(robot, method, "float").max() < 1e-5


@pytest.mark.parametrize(
    ("robot", "elements", "reason"),
    [
        (quadruped, [control.RigidContact("LF_foot")], "RigidContact cannot be recorded: it solves a contact problem"),
        (pendulum, [control.GravityCompensation()], "GravityCompensation solves equations"),
        # the effective inertia of these joints depends on the configuration
        (four_bar, [control.EndStop("pivot", (-1.0, 1.0))], r"EndStop\(pivot\).*; give stiffness= and damping= to"),
        (
            four_bar,
            [control.EndStop("motor", (-1.0, 1.0), stiffness=9.0)],
            r"depends.*; give damping= to EndStop\(motor",
        ),
        (
            four_bar.variants(damping={"motor": [0.1, 0.2]}),
            [control.LuGreFriction("motor", 0.3)],
            "give damping= to LuGre",
        ),
        (sarrus.mechanisms.bennett(), [], "consistent only on closed loops"),
        (pendulum, [lambda t, q, v: 0.0 * v], "Python function"),
        (pendulum, [control.SampleAndHold(laws(pendulum)[0], period=0.0105)], "no multiple of the step"),
        (pendulum, [control.SampleAndHold(laws(pendulum)[0], period=0.01, delay=5e-4)], "no multiple of the step"),
        (pendulum, [control.SampleAndHold(lambda t, q, v: 0.0 * v)], "SampleAndHold calls a Python function"),
        (pendulum, [control.SampleAndHold(control.GravityCompensation())], "GravityCompensation solves equations"),
    ],
)
def test_what_is_not_recorded_is_named(robot, elements, reason):
    with pytest.raises(errors.ModelError, match=reason):
        generation.recorded_step(generation.Recorder(robot), dt=DT, elements=elements)


def test_numbers_of_arrays_are_read_again(tmp_path):
    """CUDA code reads arguments and factors again far from their last use; a compiler cannot keep all of them in registers."""

    def step(recorder):
        return {f"{key}_next": x for key, x in generation.recorded_step(recorder, dt=DT).items()}

    made = generation.generate(biped_leg, {"step": step}, tmp_path, name="leg", targets=["cuda"])
    device, code = (path.read_text() for path in (made.others[0], made.source))
    again = re.findall(r"(\w+) (sarrus_again\d+) = \*\(volatile const (\w+) \*\)&\w+\[\d+\];", device)
    assert len(again) > 100 and {(a, b) for a, _, b in again} == {("double", "double")}
    assert "volatile" not in code and code.count("const double sarrus_again") == len(again)


def live_numbers(function):
    """Return the largest number of variables that are live at the same time in straight-line code."""
    lines, first, last = function.splitlines(), {}, {}
    for k, line in enumerate(lines):
        for name in re.findall(r"\b(?:t\d+|x\d+_\d+|sarrus_again\d+)\b", line):
            first.setdefault(name, k)
            last[name] = k
    live = np.zeros(len(lines) + 1, int)
    for name, k in first.items():
        live[k] += 1
        live[last[name] + 1] -= 1
    return np.cumsum(live).max()


def test_called_functions_fit_into_registers(tmp_path):
    """The functions that a large step calls need fewer numbers at a time than a thread of a GPU has registers (255)."""

    def step(recorder):
        return {f"{key}_next": x for key, x in generation.recorded_step(recorder, dt=DT).items()}

    robot, options = sarrus.mechanisms.biped(), {"targets": ["cuda"], "scalar": "float", "most_statements": 10**6}
    text = generation.generate(robot, {"step": step}, tmp_path, name="biped", **options).others[0].read_text()
    called = re.findall(r"__noinline__ (void .*?^\})", text, re.DOTALL | re.MULTILINE)
    assert sum("_factor(" in function for function in called) == 1
    assert max(map(live_numbers, called)) <= 200


def test_derivatives_of_called_functions():
    """Derivatives do not pass through called functions, and do not lose them silently."""
    recorder = generation.Recorder(pendulum)
    results = generation.recorded_step(recorder, dt=DT, method="rk4")
    with pytest.raises(ValueError, match="called functions"):
        recorder.derivatives(results["q"], recorder.q)


@pytest.mark.parametrize(
    ("robot", "spills", "seconds"),
    [(quadruped, 0, 6.0), (watt, 0, 3.0), (biped_leg, 0, 8.0), (delta, 1024, 30.0)],
)
def test_code_on_a_device(robot, spills, seconds, monkeypatch):
    """NVIDIA's compiler reports what a step needs; no GPU is required. The limits of the CPU time are several times the usual ones."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC")
    spec = importlib.util.spec_from_file_location("device_code", TOOL)
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "device_code", tool)  # dataclasses look up their module
    spec.loader.exec_module(tool)
    made = tool.device_code(robot, tool.standing(robot) if robot is quadruped else ())
    assert made.spill_stores <= spills
    assert made.seconds < seconds
