"""An old name raises an error with the new name, which exists; the table of the changelog lists all of them."""

import copy
import importlib
import io
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
from sarrus._renamed import ELEMENTS, MODULES, OPTIONS, RENAMED, SYNONYMS, with_new_kinds
from sarrus.cli import main
from sarrus.simulation.storage import _Unpickler

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
TABLE = CHANGELOG.partition("| old | new |")[2].partition("\n\n")[0]
OLD = [(owner, name) for owner, names in RENAMED.items() for name in names]


def run_of_a_pendulum():
    return sarrus.simulate(sarrus.mechanisms.pendulum(), [0.1], [0.0], 0.01)


def cotangents():
    runs = sarrus.simulate_many(sarrus.mechanisms.pendulum(), [[0.1]], [0.0], 0.01)
    return sarrus.derivatives.rollouts_vjp(runs, np.ones((len(runs.t), 1)))


OBJECTS = {
    "Mechanism": sarrus.mechanisms.pendulum,
    "Trajectory": run_of_a_pendulum,
    "Sweep": lambda: sarrus.simulate_many(sarrus.mechanisms.pendulum(), [[0.1]], [0.0], 0.01),
    "Sensitivities": lambda: sarrus.derivatives.step(sarrus.mechanisms.pendulum(), [0.1], [0.0], 0.01),
    "StateCotangents": cotangents,
    "JointWrenches": lambda: sarrus.mechanisms.pendulum().joint_wrenches([0.1], [0.0], [0.0]),
    "JointWrenchHistory": lambda: run_of_a_pendulum().joint_wrenches(),
    "PinLoad": lambda: run_of_a_pendulum().joint_wrenches().summary[0],
    "PathTrackingError": lambda: sarrus.PathTrackingError("", np.zeros((1, 1)), np.zeros(1)),
    "Status": lambda: sarrus.results.Status,
    "Builder": lambda: sarrus.Builder("nothing"),
    "Dimensions": lambda: sarrus.dimensions.Dimensions(sarrus.mechanisms.four_bar(), ["motor"]),
}


def owner_of(name):
    return OBJECTS[name]() if name in OBJECTS else importlib.import_module(name)


@pytest.mark.parametrize(("owner", "name"), OLD)
def test_an_old_name_raises_with_the_new_one(owner, name):
    holder = owner_of(owner)
    with pytest.raises(AttributeError, match=f"{owner}.{name} is now {re.escape(RENAMED[owner][name])}$"):
        getattr(holder, name)
    assert name not in dir(holder)


@pytest.mark.parametrize(("owner", "name"), OLD)
def test_the_new_name_is_there(owner, name):
    new = RENAMED[owner][name]
    if found := re.match(r"(sarrus\.(\w+)|Mechanism)\.(\w+)", new):
        home = importlib.import_module(f"sarrus.{found[2]}") if found[2] else sarrus.mechanisms.pendulum()
        assert hasattr(home, found[3])
    elif owner in OBJECTS and new.startswith(f"{owner}."):
        assert hasattr(owner_of(owner), new.partition(".")[2])


@pytest.mark.parametrize("owner", SYNONYMS)
def test_a_name_of_other_programs_raises_with_the_one_to_use(owner):
    """All names in a cure exist."""
    holder = owner_of(owner)
    homes = {
        "sarrus": sarrus,
        "sarrus.control": sarrus.control,
        "Mechanism": sarrus.mechanisms.pendulum(),
        "Builder": sarrus.Builder("nothing"),
    }
    for name, cure in SYNONYMS[owner].items():
        with pytest.raises(AttributeError, match=f"{owner} has no attribute '{name}': use {re.escape(cure)}$"):
            getattr(holder, name)
        assert name not in RENAMED.get(owner, ())
        names = re.findall(r"\b(sarrus\.control|sarrus|Mechanism|Builder)\.(\w+)", cure)
        assert names or "=" in cure
        assert all(hasattr(homes[home], attribute) for home, attribute in names)


def test_a_bushing_has_six_stiffnesses():
    """The joint that is named for Bushing, in the tree and as a loop joint: its wrench is stiffness times displacement."""
    b, K = sarrus.Builder("bushing", gravity=(0, 0, 0)), np.arange(1.0, 7.0) * 100
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("mount", sarrus.Gimbal("rx ry rz tx ty tz", stiffness=K, damping=0.1 * K), "ground", "block")
    robot, small = b.build(), 1e-3 * np.arange(1.0, 7.0)
    np.testing.assert_allclose(robot.bias_forces(small, small), K * small * 1.1, rtol=2e-3)
    b.add_joint("other", sarrus.Gimbal("rx ry rz tx ty tz", stiffness=K), "ground", "block", loop=True)
    np.testing.assert_allclose(b.build().bias_forces(small, 0 * small), 2 * K * small, rtol=2e-3)


@pytest.mark.parametrize("name", [*(name for _, name in OLD), *OPTIONS, 'limits="stop"'])
def test_the_changelog_lists_it(name):
    assert f"`{name}" in TABLE


@pytest.mark.parametrize("owner", ["Trajectory", "Sensitivities", "JointWrenches"])
def test_copies_and_other_names(owner):
    """Attributes that never existed raise the usual error; objects with renamed attributes can be copied."""
    holder = owner_of(owner)
    with pytest.raises(AttributeError, match=f"'{owner}' object has no attribute 'nothing'"):
        holder.nothing  # noqa: B018
    assert type(copy.copy(holder)) is type(holder)
    with pytest.raises(AttributeError, match="no attribute 'NOTHING'"):
        sarrus.results.Status.NOTHING  # noqa: B018
    assert pickle.loads(pickle.dumps(sarrus.results.Status.INVALID_STATE)) == 1


def test_an_old_module_raises_with_the_new_one():
    for statement in ("import sarrus.works", "from sarrus import works", "from sarrus.works import reactions"):
        with pytest.raises(ImportError, match=r"sarrus\.works is now sarrus\.formulations"):
            exec(statement)


def test_an_old_keyword_raises_with_the_new_one():
    robot = sarrus.mechanisms.four_bar()
    q, v = robot.assemble(), np.zeros(robot.nv)
    run = run_of_a_pendulum()
    with pytest.raises(TypeError, match="as locked="):
        robot.project_configuration(q, fixed=["motor"])
    with pytest.raises(TypeError, match="'frames'"):
        robot.inverse_kinematics(targets={})
    for call in (
        lambda: robot.complete_velocity(q, known={"motor": 1.0}),
        lambda: robot.complete_acceleration(q, v, known={"motor": 1.0}),
    ):
        with pytest.raises(TypeError, match="'joints'"):
            call()
    for call, old, new in (
        (lambda: run.plot(what="q"), "what", "quantities"),
        (lambda: sarrus.derivatives.step(robot, q, v, 1e-3, z=[]), "z", "internal_state"),
        (lambda: sarrus.Trajectory(run.mechanism, run.t, run.q, run.v, z=run.internal_state), "z", "internal_state"),
        (lambda: sarrus.mechanisms.two_arms(apart=0.5), "apart", "spacing"),
        (lambda: sarrus.Builder("b").set_contact("one", "other", touching=False), "touching", "enabled"),
    ):
        with pytest.raises(TypeError, match=rf"{old}= is now {new}=$"):
            call()


def test_an_old_value_raises_with_the_new_one():
    with pytest.raises(ValueError, match=r"got 'stop'; 'stop' is now 'enforce'$"):
        sarrus.simulate(sarrus.mechanisms.pendulum(), [0.1], [0.0], 0.01, limits="stop")


@pytest.mark.parametrize("arguments", [["--motion", "motor=1"], ["--show-what", "q"], ["--run", "run.npz"]])
def test_an_old_option_is_wrong_usage_and_the_new_one_is_named(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["view" if "--run" in arguments else "simulate", "four_bar", *arguments])
    assert ended.value.code == 2
    assert f"{arguments[0]} is now {OPTIONS[arguments[0]]}" in capsys.readouterr().err


def with_old_kinds(stored):
    old = {new: old for old, new in ELEMENTS.items()}
    if isinstance(stored, dict):
        new = {"kind": old[stored["kind"]]} if stored.get("kind") in old else {}
        return {key: with_old_kinds(value) for key, value in stored.items()} | new
    return type(stored)(map(with_old_kinds, stored)) if type(stored) in (list, tuple) else stored


def pushed():
    robot = sarrus.mechanisms.pendulum()
    acts = [
        sarrus.control.SampleAndHold(sarrus.control.FeedforwardEffort("pivot", 2.0), 0.004),
        sarrus.control.EffortTable([0.0, 0.005], [[1.0], [2.0]]),
        sarrus.control.LuGreFriction("pivot", 0.1),
    ]
    return robot, acts


def test_a_checkpoint_with_old_kinds_goes_on():
    robot, acts = pushed()
    options = {"method": "implicit_midpoint", "dt": 1e-3}
    first = sarrus.simulate(robot, [0.1], [0.0], 0.01, acts, **options)
    stored = {**first.checkpoint, "force_elements": with_old_kinds(first.checkpoint["force_elements"])}
    assert stored["force_elements"] != first.checkpoint["force_elements"]
    assert with_new_kinds(stored["force_elements"]) == first.checkpoint["force_elements"]
    new, old = (sarrus.simulate(robot, duration=0.01, resume=x, controller=acts, dt=1e-3) for x in (first, stored))
    assert_array_equal(new.internal_state, old.internal_state)


def test_a_stored_sweep_with_old_kinds_is_read(tmp_path):
    robot, acts = pushed()
    runs = sarrus.simulate_many(robot, [[0.1], [0.2]], [0.0], 0.01, acts[1:2], method="rk4", dt=1e-3)
    known = sarrus.derivatives.rollouts_vjp(runs, np.ones((len(runs.t), 1)))
    acting = runs._acting
    acting.__dict__["names"] = {name.replace("EffortTable", "Efforts"): x for name, x in acting.names.items()}
    acting.setup.__dict__["terms"] = with_old_kinds(acting.setup.terms)
    runs.save(tmp_path / "runs.npz")
    read = sarrus.results.Sweep.load(tmp_path / "runs.npz")
    found = sarrus.derivatives.rollouts_vjp(read, np.ones((len(runs.t), 1)))
    assert_array_equal(found.parameters["EffortTable.u"], known.parameters["EffortTable.u"])
    assert_array_equal(read[0].tau, sarrus.simulate(robot, [0.1], [0.0], 0.01, acts[1:2], method="rk4", dt=1e-3).tau)


@pytest.mark.parametrize(("module", "name"), [*zip(MODULES, ["Chart", "EffortTable", "TaskControl"], strict=True)])
def test_a_class_in_an_old_module_is_unpickled(module, name):
    found = _Unpickler(io.BytesIO(f"c{module}\n{name}\n.".encode()), "").load()
    assert (found.__module__, found.__name__) == (MODULES[module], name)
