"""Copies with other parameters equal newly built mechanisms bit for bit; impossible changes raise errors with their names."""

import dataclasses
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import sarrus
from sarrus import Builder, Inertia, ModelError, Prismatic, Revolute, Transform, _core
from sarrus.description import DistanceSpec
from tests.gallery import made
from tests.random_closed import random_closed
from tests.random_mechanisms import random_mechanism

LIST = Path(__file__).parents[2] / "cpp" / "kernels" / "operation_list.hpp"
OPERATIONS = dict(re.findall(r'X\((\w+), "([^"]*)"', LIST.read_text()))
OF_FRAMES = set(re.findall(r'X\((\w+), "[^"]*", "[^"]*",[^)]*at_frame', LIST.read_text()))
NONLINEAR = ("quadratic_stiffness", "cubic_stiffness", "quadratic_damping", "cubic_damping")
KINDS = (
    "inertias",
    "placements",
    "lengths",
    "pitch",
    "stiffness",
    "damping",
    "friction",
    "armature",
    "rest",
    "gravity",
    *NONLINEAR,
)


def asked():
    """Return the core's functions of a state by name; of several with the same name, one is enough."""
    places = [vars(c) for c in sarrus.Mechanism.__mro__]
    places += [vars(module) for name, module in sys.modules.items() if name.startswith("sarrus")]
    found = {}
    for place in places:
        for function in list(place.values()):
            if type(function).__name__ == "method_descriptor" and function.__objclass__ is _core.Mechanism:
                found[function.__name__] = function
    return found


ASKED = asked()


def random_changes(robot, rng, kinds):
    """Return random changes of these kinds for the parts that have such parameters; zeros stay zero, so that the structure is the same."""
    d, changes = robot.description, {}

    def factor(n=None):
        return rng.uniform(0.8, 1.2, n)

    def placed(X):
        return Transform(
            X.rotation @ sarrus.spatial.exp(0.02 * rng.normal(size=3)),
            X.translation * factor() + 0.01 * rng.normal(size=3),
        )

    def of_joints(key):
        terms = {j.name: getattr(j.joint, key) * factor(j.joint.nv) for j in d.joints if np.any(getattr(j.joint, key))}
        names = {"stiffness": "stiffness", "damping": "damping", "rest": "rest_length"} | {
            name: name for name in NONLINEAR
        }
        return terms | {s.name: getattr(s, names[key]) * factor() for s in d.springs if key in names}

    for kind in kinds:
        if kind == "inertias":
            changes[kind] = {
                b.name: Inertia(b.inertia.mass * factor(), b.inertia.com * factor(), b.inertia.about_com, check=False)
                for b in d.bodies
            }
            changes[kind] = {name: i if i.mass else Inertia.zero() for name, i in changes[kind].items()}
        elif kind == "placements":
            ends = {f"{j.name}.{end}": getattr(j, f"at_{end}") for j in d.joints for end in ("parent", "child")}
            changes[kind] = {name: placed(X) for name, X in (ends | {f.name: f.placement for f in d.frames}).items()}
        elif kind == "lengths":
            changes[kind] = {c.name: c.length * factor() for c in d.constraints if isinstance(c, DistanceSpec)}
        elif kind == "pitch":
            changes[kind] = {j.name: j.joint.pitch * factor() for j in d.joints if j.kind == "Helical"}
        elif kind == "gravity":
            changes[kind] = rng.normal(size=3)
        else:
            changes[kind] = of_joints(kind)
    return changes


def written(d, changes):
    """Return the description with these changes, part by part."""

    def number(key, name, old):
        return changes.get(key, {}).get(name, old)

    def joint(spec):
        keys = (
            "stiffness",
            "damping",
            "friction",
            "armature",
            "rest",
            *NONLINEAR,
            *(["pitch"] if spec.kind == "Helical" else []),
        )
        joint_type = dataclasses.replace(
            spec.joint, **{key: number(key, spec.name, getattr(spec.joint, key)) for key in keys}
        )
        parent, child = (
            number("placements", f"{spec.name}.{end}", getattr(spec, f"at_{end}")) for end in ("parent", "child")
        )
        return dataclasses.replace(spec, joint=joint_type, at_parent=parent, at_child=child)

    def spring(s):
        numbers = (
            number("stiffness", s.name, s.stiffness),
            number("rest", s.name, s.rest_length),
            number("damping", s.name, s.damping),
        )
        return dataclasses.replace(
            s,
            stiffness=float(numbers[0]),
            rest_length=float(numbers[1]),
            damping=float(numbers[2]),
            **{name: float(number(name, s.name, getattr(s, name))) for name in NONLINEAR},
        )

    def constraint(c):
        return (
            dataclasses.replace(c, length=float(number("lengths", c.name, c.length)))
            if isinstance(c, DistanceSpec)
            else c
        )

    return dataclasses.replace(
        d,
        gravity=tuple(np.asarray(changes.get("gravity", d.gravity)).tolist()),
        bodies=tuple(dataclasses.replace(b, inertia=number("inertias", b.name, b.inertia)) for b in d.bodies),
        joints=tuple(map(joint, d.joints)),
        frames=tuple(dataclasses.replace(f, placement=number("placements", f.name, f.placement)) for f in d.frames),
        constraints=tuple(map(constraint, d.constraints)),
        springs=tuple(map(spring, d.springs)),
    )


def outcome(function, *args, **keywords):
    """Return the exact result, or the error."""
    try:
        answer = function(*args, **keywords)
    except (sarrus.SarrusError, ArithmeticError) as error:
        return type(error), str(error)
    parts = answer if isinstance(answer, tuple) else (answer,)
    return tuple((np.shape(x), np.asarray(x).tobytes()) for x in parts)


def one_answer(robot, name, numbers, batch):
    """Return the result of a function of a state, with random inputs of the required sizes."""
    options = {"return_status": True} | ({"frame": robot.bodies[-1]} if name in OF_FRAMES else {})
    inputs = {}
    for key in (x for x in OPERATIONS[name].split() if not x.endswith("?")):
        inputs[key] = (
            numbers[{"dv": "v", "q0": "q", "q1": "q"}.get(key, key)]
            if key in (*numbers, "dv", "q0", "q1")
            else np.ones(1)
        )
    for _ in range(len(inputs) + 2):
        given = {k: x if batch or x.ndim == 1 else x[0] for k, x in inputs.items()}
        said = outcome(lambda given=given: ASKED[name](robot, **given, **options))
        if said[0] is sarrus.ShapeError and (wants := re.match(r"(\w+) has .*; it must have (\d+)", said[1])):
            inputs[wants[1]] = np.linspace(0.1, 1.0, int(wants[2]))
        else:
            break
    return said


def answers(robot, rng):
    """Return the results of all functions for one state and for three, and combinations of many."""
    d = robot.description
    q = np.stack([robot.integrate(robot.neutral(), x) for x in 0.3 * rng.normal(size=(3, robot.nv))])
    numbers = {"q": q} | {key: rng.normal(size=(3, robot.nv)) for key in ("v", "a", "tau")}
    said = {}
    names = ASKED.keys() & OPERATIONS.keys()
    if robot._asks_for_rows:  # whose caller brings their rates along
        names -= {"reduced_dynamics"}
    for name in names:
        for batch in (False, True):
            said[name, batch] = one_answer(robot, name, numbers, batch)
    for frame in (*robot.frames, *(f"{j.name}.{end}" for j in d.joints for end in ("parent", "child"))):
        said["pose", frame] = outcome(robot.pose, q, frame)
    return said


def same(copy, anew, seed=0, *, runs=True):
    """Compare a copy with a mechanism that is built anew: results, positions, runs and texts."""
    one, other = (answers(robot, np.random.default_rng(seed)) for robot in (copy, anew))
    assert {key for key in one if one[key] != other[key]} == set()
    assert len(one) > 100
    assert copy._length == anew._length
    assert copy._solver == anew._solver
    if not runs:
        return
    q = outcome(copy.assemble)
    assert q == outcome(anew.assemble)
    if not isinstance(q[0], type):
        start = copy.assemble()
        one, other = (
            outcome(lambda robot=robot: sarrus.simulate(robot, start, np.zeros(robot.nv), 0.01, dt=0.002).q)
            for robot in (copy, anew)
        )
        assert one == other


def described_alike(copy, anew):
    assert copy.description == anew.description
    assert (copy == anew, hash(copy)) == (True, hash(anew))
    assert copy.warnings == anew.warnings
    assert [str(copy.joint(name)) for name in copy.joints] == [str(anew.joint(name)) for name in anew.joints]
    assert str(copy) == str(anew)


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning", "ignore::sarrus.errors.LimitWarning")
@pytest.mark.parametrize("name", sarrus.mechanisms.__all__)
def test_copies_in_the_gallery(name):
    robot, rng = made(name), np.random.default_rng(1)
    for kinds in (KINDS, ("inertias", "gravity")):
        changes = random_changes(robot, rng, kinds)
        copy, anew = robot.replace(**changes), sarrus.Mechanism(written(robot.description, changes))
        same(copy, anew)
        described_alike(copy, anew)


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning")
@pytest.mark.parametrize("seed", range(12))
def test_random_copies(seed):
    options = {"friction": True, "armature": seed % 2 == 0, "springs": True, "floating": seed % 3 == 0}
    tree = random_mechanism(seed, bodies=8, backward=0.3, **options).description
    closed = random_closed(seed, bodies=7, hints=seed % 2 == 0, **options).description
    cut = random_closed(seed + 100, bodies=9, loops=3, **options).description
    for description, substructures in ((tree, None), (closed, None), (cut, 1)):
        robot = sarrus.Mechanism(description, substructures=substructures)
        changes = random_changes(robot, np.random.default_rng(seed), KINDS)
        anew = sarrus.Mechanism(written(description, changes), substructures=substructures)
        copy = robot.replace(**changes)
        same(copy, anew, seed, runs=seed < 4)
        described_alike(copy, anew)


@pytest.mark.parametrize(
    ("name", "substructures"), [("four_bar_ladder", 1), ("ring", 1), ("ring", 2), ("net", 1), ("net", 2)]
)
def test_copies_that_are_cut(name, substructures):
    description = made(name).description
    robot = sarrus.Mechanism(description, substructures=substructures)
    changes = random_changes(robot, np.random.default_rng(2), KINDS)
    copy = robot.replace(**changes)
    same(copy, sarrus.Mechanism(written(description, changes), substructures=substructures))
    assert copy._solver[2] > 1


def test_copies_of_copies_keep_what_they_have(tmp_path):
    robot, rng = sarrus.mechanisms.stewart(), np.random.default_rng(5)
    copy, d = robot, robot.description
    for kind in (*KINDS, *KINDS):
        changes = random_changes(robot, rng, (kind,))
        if isinstance(changes[kind], dict):  # of half of them: the others keep the earlier ones
            changes[kind] = {name: x for k, (name, x) in enumerate(changes[kind].items()) if (k + len(kind)) % 2}
        copy, d = copy.replace(**changes), written(d, changes)
    same(copy, sarrus.Mechanism(d))
    described_alike(copy, sarrus.Mechanism(d))
    copy.save(tmp_path / "copy.json")
    assert sarrus.load(tmp_path / "copy.json") == copy
    assert robot == sarrus.mechanisms.stewart()


def two_rods():
    b = Builder("bar")
    b.add_body("bar", Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), 0.01))
    b.add_joint("float", sarrus.Planar("y"), "ground", "bar")
    b.add_frame("end", "bar", (1, 0, 0))
    b.add_distance("left", ("ground", (0, 0, 2)), ("bar", (0, 0, 0)), length=2.0)
    b.add_distance("right", ("ground", (1, 0, 2)), ("bar", (1, 0, 0)), length=2.0)
    b.add_spring("coil", ("ground", (0, 0, 0)), ("bar", (1, 0, 0)), stiffness=10.0, rest_length=0.5)
    b.add_body("screw", Inertia.sphere(1.0, 0.1))
    b.add_joint("thread", sarrus.Helical("x", 0.01), "bar", "screw", at_parent=(0, 0, -0.1))
    return b.build()


def test_what_a_caller_changes_later_does_not_reach_the_copy():
    robot, stiffness, ends = two_rods(), np.array([3.0]), {"float.child": (0.1, 0, 0)}
    rods = {"left": 2.1}
    copy = robot.replace(stiffness={"thread": stiffness}, placements=ends, lengths=rods)
    stiffness[:], rods["left"], ends["float.child"] = 7.0, 9.0, (5, 5, 5)
    assert copy.description.joints[1].joint.stiffness.tolist() == [3.0]
    assert copy.description.constraints[0].length == 2.1
    assert copy.description.joints[0].at_child.translation.tolist() == [0.1, 0, 0]


def test_a_copy_lives_alone():
    """A copy is valid after its original is destroyed."""
    robot = sarrus.mechanisms.ring(3)
    expected = robot.mass_matrix(robot.neutral())
    copies = [robot.replace() for _ in range(3)]
    del robot
    for copy in copies:
        again = copy.replace().replace()
        assert again.mass_matrix(again.neutral()).tobytes() == expected.tobytes()


def test_a_second_init_of_a_copy_is_refused():
    with pytest.raises(TypeError, match="a Mechanism is immutable"):
        two_rods().replace().__init__(two_rods().description)


def weld_across(armature):
    """Return a four-bar whose last pin is the loop joint and has armature."""
    d = sarrus.mechanisms.four_bar().description
    pins = tuple(
        dataclasses.replace(j, joint=Revolute("y", armature=armature)) if j.name == "pin2" else j for j in d.joints
    )
    return sarrus.Mechanism(dataclasses.replace(d, joints=pins))


def test_armature_across_a_loop():
    changes = {"armature": {"pin2": 0.3}}
    same(weld_across(0.1).replace(**changes), weld_across(0.3))
    for robot, armature in ((weld_across(0.0), 0.3), (weld_across(0.1), 0.0)):
        with pytest.raises(ModelError, match="loop joint 'pin2': a copy cannot add or remove armature"):
            robot.replace(armature={"pin2": armature})


def test_inertia_where_it_is_cut():
    robot = sarrus.Mechanism(sarrus.mechanisms.four_bar_ladder(4).description, substructures=1)
    body = robot.bodies[4]
    with pytest.raises(ModelError, match=f"body '{body}': a copy cannot add or remove the inertia"):
        robot.replace(inertias={body: Inertia.zero()})


BAD = {
    "no body": (
        {"inertias": {"bra": Inertia.zero()}},
        sarrus.NameNotFoundError,
        "no body is named 'bra'; did you mean 'bar'?",
    ),
    "no inertia": ({"inertias": {"bar": 3.0}}, ModelError, "inertias of 'bar' needs a sarrus.Inertia; got 3.0"),
    "no mapping": ({"inertias": [Inertia.zero()]}, TypeError, "inertias must be a mapping of names"),
    "no name": ({"damping": {3: 1.0}}, TypeError, "damping must be a mapping whose keys are names"),
    "no joint": (
        {"damping": {"hread": 1.0}},
        sarrus.NameNotFoundError,
        "no joint is named 'hread'; did you mean 'thread'?",
    ),
    "no frame": (
        {"placements": {"thread.parnet": (0, 0, 0)}},
        sarrus.NameNotFoundError,
        "no frame is named 'thread.parnet'",
    ),
    "a body's own frame": (
        {"placements": {"bar": (0, 0, 0)}},
        ModelError,
        "'bar' is a body, whose position its joints determine",
    ),
    "no placement": (
        {"placements": {"end": (0, 0)}},
        ModelError,
        "placements of 'end' must be a Transform or a translation",
    ),
    "far away": ({"placements": {"end": (0, 0, 1e200)}}, ModelError, "placement of 'end' is too far away"),
    "no rod": ({"lengths": {"coil": 1.0}}, sarrus.NameNotFoundError, "no constraint is named 'coil'"),
    "no length": ({"lengths": {"left": 0.0}}, ModelError, "constraint 'left': length must be positive; got 0.0"),
    "two lengths": ({"lengths": {"left": [1.0, 2.0]}}, ModelError, "constraint 'left': length must be one number"),
    "no pitch": ({"pitch": {"float": 1.0}}, ModelError, "joint 'float' is Planar, which has no pitch"),
    "endless": ({"pitch": {"thread": np.inf}}, ModelError, "joint 'thread': pitch must be finite"),
    "negative": ({"damping": {"thread": -1.0}}, ModelError, "joint 'thread': damping cannot be negative; got -1.0"),
    "two": ({"damping": {"thread": [1.0, 2.0]}}, ModelError, "joint 'thread': damping needs one number or 1"),
    "text": ({"damping": {"thread": "much"}}, ModelError, "damping of 'thread' needs numbers; got 'much'"),
    "a spring's armature": ({"armature": {"coil": 1.0}}, ModelError, "spring 'coil' has no armature"),
    "a spring's length": ({"rest": {"coil": -1.0}}, ModelError, "spring 'coil': rest cannot be negative"),
    "no coordinate": ({"stiffness": {"float": [1.0, 0, 0]}}, ModelError, "cannot have stiffness along velocity 0"),
    "gravity": ({"gravity": (0, 0)}, ModelError, "gravity needs three finite numbers"),
    "no gravity": ({"gravity": (0, 0, np.nan)}, ModelError, "gravity needs three finite numbers"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_numbers_are_refused(what):
    robot = two_rods()
    changes, error, message = BAD[what]
    with pytest.raises(error, match=re.escape(message)):
        robot.replace(**changes)
    assert robot == two_rods()


def test_names_of_two_parts():
    b = two_rods().to_builder()
    b.add_spring("thread", ("ground", (0, 0, 0)), ("bar", (0, 0, 0)), stiffness=1.0, rest_length=0.1)
    with pytest.raises(ModelError, match="a joint and a spring are both named 'thread', so damping is ambiguous"):
        b.build().replace(damping={"thread": 1.0})


def test_what_acts_on_nothing_is_told():
    robot = two_rods()
    with pytest.warns(sarrus.ModelWarning, match="joint 'thread' has a rest but no stiffness"):
        copy = robot.replace(rest={"thread": 0.3})
    assert any("rest but no stiffness" in text for text in copy.warnings)


def test_a_joint_in_the_place_of_a_frame():
    """Frames are distinguished by name: an added frame comes before a joint's frame at the same place."""
    b = Builder()
    b.add_body("arm", Inertia.sphere(1.0, 0.1))
    b.add_joint("hinge", Prismatic("x"), "ground", "arm", at_parent=(1, 0, 0))
    b.add_frame("hinge.child", "arm", (0, 2, 0))
    copy = b.build().replace(placements={"hinge.child": (0, 3, 0), "hinge.parent": (4, 0, 0)})
    assert copy.pose([0.0], "hinge.child")[:3, 3].tolist() == [4, 3, 0]
    assert copy.description.frames[0].placement.translation.tolist() == [0, 3, 0]
    assert copy.description.joints[0].at_child.translation.tolist() == [0, 0, 0]
