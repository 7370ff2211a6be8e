"""A task controller as generated C, compared with `TaskControl.solve` in the same states and with the same targets."""

import os

import numpy as np
import pytest

import gallery
import sarrus
from generated_states import STRICT, needs_compiler, states
from sarrus import control, generation
from sarrus.laws import harmonic, polynomial

SOAK = bool(os.environ.get("SARRUS_SOAK"))
COUNT = 12
MOST = 30_000  # statements that are compiled here
EXACT = {"double": 1e-12, "float": 1e-5}
CONDITION = 10  # so many times what rounding of the arguments to single precision changes,
MOST_MOVED = 1e-5  # which tells nothing where rows depend on one another
ROUGH_IN_SINGLE = {"free_flyer": 1e-3}  # near singular positions all along
# a tree, loops, rows that depend on one another, a floating base
SOME = ("double_pendulum", "five_bar", "bennett", "free_flyer")


class Drawn:
    """Random targets, `inputs` of the generated function; in tasks they are numbers and functions, or laws in state `at`."""

    def __init__(self, robot, at=None):
        self.robot, self.at, self.inputs, self.rng = robot, at, {}, np.random.default_rng(7)

    def of_frame(self, frame, turns):
        X = self.robot.pose(states(self.robot, COUNT, seed=11)["q"], frame)
        if not turns:
            return self.numbers(frame, X[:, :3, 3])
        V, A = 0.3 * self.rng.normal(size=(2, COUNT, 6))
        self._keep(frame, X.reshape(COUNT, 16), V, A)
        k = self.at or 0
        return lambda t: (X[k], V[k], A[k])

    def numbers(self, name, x, rates=2):
        v, a = 0.3 * self.rng.normal(size=(2, *x.shape))
        self._keep(name, *(x, v, a)[: rates + 1])
        k = self.at
        return [0.0] * x.shape[1] if k is None else [polynomial(*c) for c in zip(x[k], v[k], 0.5 * a[k], strict=True)]

    def _keep(self, name, *arrays):
        short = "".join(c if c.isalnum() else "_" for c in name)
        self.inputs |= dict(
            zip([f"{short}_target{s}" for s in ("", "_velocity", "_acceleration")], arrays, strict=False)
        )


def law_of(robot, which, at=None):
    """Return a controller of several tasks and priorities, and the inputs of its function."""
    t, frame = Drawn(robot, at), robot.bodies[-1]
    plain = [(j, robot.joint(j).type) for j in robot.joints]
    plain = {j: kind.nv for j, kind in plain if kind.nv and not kind.quaternion and all(kind.rates)}
    several = iter(t.numbers("posture", t.rng.normal(size=(COUNT, sum(plain.values())))) if plain else [])
    posture = {j: [next(several) for _ in range(n)] for j, n in plain.items()}
    if which == "position":
        tasks = [control.FrameTask(frame, t.of_frame(frame, False), "tx ty tz", stiffness=50.0)]
        tasks += [control.PostureTask(posture, priority=1, weight=2.0)] * bool(plain)
    else:
        momentum = t.numbers("momentum", t.rng.normal(size=(COUNT, 2)), 1)
        tasks = [control.MomentumTask(momentum, "tx rz", gain=3.0, priority=1)]
        tasks += [control.FrameTask(frame, t.of_frame(frame, True), axes="target")]
        tasks += [control.PostureTask(posture, priority=2)] * bool(plain)
    motors = None if robot.nu else list(robot.joints)
    return control.TaskControl(robot, tasks, None, actuated=motors), t.inputs


def answers(robot, which, k, q, v):
    said = law_of(robot, which, k)[0].solve(0.0, q, v)
    return {
        "efforts": np.concatenate([np.ravel(u) for u in said.efforts.values()]),
        "missed": np.concatenate(said.missed),
    }


def off(a, b):
    return np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1.0)


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("which", ["position", "pose"])
@pytest.mark.parametrize("name", sarrus.mechanisms.__all__ if SOAK else SOME)
def test_generated_tasks_agree_with_the_core(name, which, scalar, tmp_path):
    robot, rng = gallery.made(name), np.random.default_rng(1)
    law, inputs = law_of(robot, which)
    given = states(robot, COUNT) | inputs
    made = generation.generate(robot, {"control": law}, tmp_path, scalar=scalar, most_statements=10**6)
    f = made.functions["control"]
    assert set(f.inputs) == {"q", "v", *inputs}
    if f.statements > MOST:
        pytest.skip("too long for a compiler")
    results, status = generation.compiled(made, flags=STRICT)("control", *(given[key] for key in f.inputs))
    compared = 0
    for k, (q, v) in enumerate(zip(given["q"], given["v"], strict=True)):
        try:
            core = answers(robot, which, k, q, v)
        except sarrus.StateError:
            assert status[k] or scalar == "float", f"answers in state {k}, where the core has none"
            continue
        if status[k]:
            continue
        compared += 1
        moved = dict.fromkeys(core, 0.0)
        if scalar == "float":
            for _ in range(4):
                near = [x * (1.0 + 2.0**-24 * rng.choice([-1.0, 1.0], size=x.shape)) for x in (q, v)]
                try:
                    again = answers(robot, which, k, *near)
                except sarrus.StateError:
                    again = {key: np.inf * np.ones_like(x) for key, x in core.items()}
                moved = {key: min(max(moved[key], off(again[key], core[key])), MOST_MOVED) for key in core}
        for key in core:
            exact = EXACT[scalar] if scalar == "double" else ROUGH_IN_SINGLE.get(name, EXACT[scalar])
            assert off(results[key][k], core[key]) < exact + CONDITION * moved[key], (k, key)
    assert compared > 3, "flags are up in most states"


@needs_compiler
def test_what_acts_on_an_impedance_and_forces_with_memory(tmp_path):
    """A loop force beside an impedance with external wrench: its integral counts as a target, and integrates the error."""
    robot, integral, row = sarrus.mechanisms.five_bar(actuated=3), 3.0, 2

    def law(wrench, target, force):
        tasks = [
            control.ImpedanceTask(
                "tip", list(target), components="tx tz", inertia=2.0, stiffness=50.0, damping=9.0, wrench=list(wrench)
            ),
            control.ForceTask("pin", list(force), rows=[row], integral=integral, priority=1),
        ]
        return control.TaskControl(robot, tasks, None)

    made = generation.generate(robot, {"f": law([1.0, 2.0], [0.1, 0.9], [4.0])}, tmp_path)
    code, rng, inputs = generation.compiled(made, flags=STRICT), np.random.default_rng(0), made.functions["f"].inputs
    given = states(robot, COUNT)
    for q, v in zip(given["q"], given["v"], strict=True):
        x, wrench, force, z = robot.pose(q, "tip")[:3, 3] + 0.05, *(rng.normal(size=n) for n in (2, 1, 1))
        known = {"q": q, "v": v, "tip_target": x, "tip_wrench": wrench, "pin_target": force, "z": z}
        results, status = code("f", *(known.get(name, np.zeros(3)) for name in inputs))
        said = law(wrench, x[[0, 2]], force + integral * z).solve(0.0, q, v)
        tau = np.zeros(robot.nv)
        for name, u in said.efforts.items():
            tau[robot.joint(name).v_slice] = u
        carried = robot.forward_dynamics(q, v, tau, return_reactions=True)[1].multipliers[row]
        assert status == 0
        assert (
            off(results["efforts"], tau[[robot.joint(name).v_slice.start for name in said.efforts]]) < EXACT["double"]
        )
        assert off(results["z_dot"], force - carried) < 1e-10


@needs_compiler
def test_flag_near_a_singular_position(tmp_path):
    """A stretched arm cannot move outwards: its priority is damped there, although no sample state needs damping."""
    robot = sarrus.mechanisms.double_pendulum()
    task = control.FrameTask("tip", [0.1, -0.2], "tx tz")
    law = control.TaskControl(robot, task, None, actuated=list(robot.joints))
    made = generation.generate(robot, {"f": law}, tmp_path, configurations=[[0.2, 0.9], [1.0, 1.3], [-0.4, 1.8]])
    code = generation.compiled(made, flags=STRICT)
    for bend, flag in ((1.1, 0), (0.1, 0), (1e-4, 8)):
        q, v = [0.3, bend], [0.1, 0.2]
        results, status = code("f", q, v, [0.1, 0.0, -0.2], np.zeros(3), np.zeros(3))
        said = law.solve(0.0, q, v)
        assert status == flag and (said.damping > 0.0) == (flag > 0)
        efforts = np.array(list(said.efforts.values()))
        assert (off(results["efforts"], efforts) < 1e-12) == (flag == 0)


@needs_compiler
def test_hard_tasks_that_contradict_each_other(tmp_path):
    robot = sarrus.mechanisms.four_bar()
    motor = robot.actuated[0]
    law = control.TaskControl(robot, [control.JointTask(motor, x, hard=True) for x in (0.0, 0.0)], limits=None)
    made = generation.generate(robot, {"f": law}, tmp_path)
    f = made.functions["f"]
    assert [key for key in f.inputs if key.endswith("target")] == [f"{motor}_target", f"{motor}_2_target"]
    code, q, none = generation.compiled(made, flags=STRICT), robot.assemble(), np.zeros(1)
    for second, said in ((0.5, 0), (0.6, 3)):
        assert code("f", q, np.zeros(robot.nv), [0.5], none, none, [second], none, none)[1] == said


@needs_compiler
def test_laws_of_time_stay_and_other_results_are_composed(tmp_path):
    robot = sarrus.mechanisms.four_bar()
    motor = robot.actuated[0]
    law = control.TaskControl(robot, control.JointTask(motor, harmonic(0.3, rate=2.0, offset=0.7)), limits=None)
    made = generation.generate(robot, {"f": lambda r: dict(r.tasks(law))}, tmp_path)
    assert list(made.functions["f"].inputs) == ["q", "v", "time"]
    q, v = robot.assemble(fixed={motor: 0.8}), np.zeros(robot.nv)
    results, _ = generation.compiled(made, flags=STRICT)("f", q, v, [0.4])
    said = law.solve(0.4, q, v)
    assert off(results["acceleration"], said.acceleration) < 1e-12
    assert off(results["errors"], said.errors[0]) < 1e-12
    assert off(results["efforts"], said.efforts[motor]) < 1e-12


BAD = {
    "limits": (lambda r: control.TaskControl(r, control.JointTask("motor", 0.0)), "limits=None"),
    "contacts": (
        lambda r: control.TaskControl(r, control.JointTask("motor", 0.0), None, control.PointContact("rocker")),
        "contacts: 'rocker'",
    ),
    "another mechanism": (
        lambda r: control.TaskControl(sarrus.mechanisms.four_bar(), control.JointTask("motor", 0.0), None),
        "belongs to another mechanism",
    ),
    "numbers of many runs": (
        lambda r: control.TaskControl(r, control.JointTask("motor", np.zeros(3)), None),
        "different parameters for each run",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case, tmp_path):
    robot = sarrus.mechanisms.four_bar()
    made, words = BAD[case]
    with pytest.raises(sarrus.ModelError, match=words):
        generation.generate(robot, {"f": made(robot)}, tmp_path)
    with pytest.raises(TypeError, match="must be a TaskControl"):
        generation.Recorder(robot).tasks("motor")
