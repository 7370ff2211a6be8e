"""The format of sarrus: a read model equals the written one, and the schema is complete."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
from sarrus import ModelError
from sarrus.io import complete
from sarrus.shapes import Mesh
from tests.gallery import every
from tests.random_closed import ALL_CONSTRAINTS, random_closed
from tests.random_mechanisms import random_mechanism, random_state

WRITABLE = tuple(kind for kind in ALL_CONSTRAINTS if kind != "pfaffian of q")


def again(robot):
    return complete.read(complete.write(robot.description)).build()


@cache
def validator():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(json.dumps(complete.schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check_same(robot, q, v):
    """Check equality bit for bit."""
    other = again(robot)
    assert other == robot and other.description.visuals == robot.description.visuals
    assert other.joints == robot.joints and other.loop_joints == robot.loop_joints
    assert other.constraints == robot.constraints and other.frames == robot.frames and other.warnings == robot.warnings
    assert_array_equal(other.mass_matrix(q), robot.mass_matrix(q))
    assert_array_equal(other.bias_forces(q, v), robot.bias_forces(q, v))
    assert_array_equal(other.constraint_jacobian(q, time=0.5), robot.constraint_jacobian(q, time=0.5))
    assert_array_equal(other.constraint_bias(q, v, time=0.5), robot.constraint_bias(q, v, time=0.5))


@every
def test_gallery(mechanism):
    rng = np.random.default_rng(0)
    q = mechanism.integrate(mechanism.neutral(), rng.normal(size=mechanism.nv))
    check_same(mechanism, q, rng.normal(size=mechanism.nv))
    validator().validate(json.loads(complete.write(mechanism.description)))


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_all_joints(seed):
    robot = random_mechanism(seed, bodies=17, friction=True, armature=True, springs=True, backward=0.3)
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    check_same(robot, q, v)
    validator().validate(json.loads(complete.write(robot.description)))


@pytest.mark.parametrize("kind", WRITABLE)
def test_constraints(kind):
    closed = random_closed(11, kinds=(kind,), loops=2, bodies=8)
    assert closed.robot.nc
    check_same(closed.robot, closed.q, closed.v)
    validator().validate(json.loads(complete.write(closed.description)))


def test_everything_else():
    """Infinite limits, springs, home, configurations, shapes, colours."""
    b = sarrus.Builder("thing", gravity=(0.1, 0.2, -1.6))
    b.add_body("a", sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    b.add_body("b", sarrus.Inertia.sphere(1.0, 0.1))
    joint = sarrus.Revolute("-z", limits=(-np.inf, 1 / 3), effort_limit=np.inf, velocity_limit=2, stiffness=3, rest=0.1)
    b.add_joint("hinge", joint, "ground", "a", actuated=True)
    b.add_joint("ball", sarrus.Spherical(), "a", "b", tree=True)
    b.add_spring("coil", ("ground", (0, 0, 1)), ("b", (0, 0, 0)), stiffness=10, rest_length=1, damping=0.5)
    b.set_home({"ball": [0.1, 0.2, 0.3, 0.4]})
    b.set_configuration("up", {"hinge": 1.0})
    b.add_visual("a", sarrus.shapes.Box((0.1, 0.2, 0.3)), (0, 0, 1), color="#123456")
    b.add_visual("a", sarrus.shapes.Mesh("a.stl", (1, 1, -0.001), "meshes", ("packages",)))
    b.add_frame("tip", "b", sarrus.Transform.from_rpy(0.1, 0.2, 0.3, (1, 2, 3)))
    b.warnings.append("read from a napkin")
    robot = b.build()
    check_same(robot, robot.neutral(), np.ones(4))
    validator().validate(json.loads(complete.write(robot.description)))
    assert again(robot).configuration("up")[0] == 1.0


def test_schema_is_printed():
    printed = subprocess.run([sys.executable, "-m", "sarrus.io.complete"], capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout[printed.stdout.index("{") :]) == complete.schema()


def test_schema_refuses():
    document = json.loads(complete.write(sarrus.mechanisms.pendulum().description))
    for change in ({"format": 2}, {"bodys": []}, {"joints": [{"name": "a"}]}, {"gravity": [0, 0]}, {"name": 3}):
        assert not validator().is_valid(document | change), change


def test_files(tmp_path, monkeypatch):
    """Mesh files are found relative to the file, wherever its folder is."""
    robot = sarrus.mechanisms.four_bar()
    mesh = sarrus.description.VisualSpec("crank", Mesh("crank.stl", beside=str(tmp_path / "old" / "meshes")))
    robot = sarrus.Mechanism(replace(robot.description, visuals=(mesh,)))
    (tmp_path / "old").mkdir()
    robot.save(tmp_path / "old" / "robot.json")
    assert str(tmp_path) not in (tmp_path / "old" / "robot.json").read_text(encoding="utf-8")
    (tmp_path / "old").rename(tmp_path / "new")
    loaded = sarrus.load(tmp_path / "new" / "robot.json")
    assert loaded == robot
    assert loaded.description.visuals[0].shape.beside == str(tmp_path / "new" / "meshes")
    builder = sarrus.load_builder(tmp_path / "new" / "robot.json")
    assert builder.build() == robot


def test_readable():
    """No line is long, and lists of numbers are on one line."""
    lines = complete.write(sarrus.mechanisms.delta().description).splitlines()
    assert max(map(len, lines)) <= 130 and '  "gravity": [0.0, 0.0, -9.81],' in lines


def test_an_inertia_that_no_body_has_is_kept_with_a_warning():
    b = sarrus.Builder()
    b.add_body("a", sarrus.Inertia(1.0, (0, 0, 0), np.diag([1.0, 1.0, 3.0]), check=False))
    b.add_joint("j", sarrus.Revolute("z"), "ground", "a")
    once = again(b.build())
    assert once.warnings == (
        "body 'a': no body of 1 kg has principal moments of inertia 1, 1, 3 kg m²; the values are kept",
    )
    assert again(once).warnings == once.warnings and once == b.build()


def document(**changes):
    d = json.loads(complete.write(sarrus.mechanisms.four_bar().description))
    return json.dumps(d | changes)


def joint(**changes):
    d = json.loads(document())
    d["joints"][1] |= changes
    return json.dumps(d)


FAULTS = {
    "no JSON": ('{"format": 1,\n "name": }', r"<string>:2:10: not well-formed JSON"),
    "another document": ('{"a": 1}', "is not a mechanism in the format of sarrus"),
    "a later format": (document(format=2), '"format" is 2: a newer version of sarrus wrote it'),
    "a format of another kind": (document(format="1"), '"format" is "1": expected 1'),
    "a number that is none": (document(gravity=[0, 0, float("nan")]), "NaN is not a number in JSON"),
    "a number without end": ('{"format": 1, "name": "a", "gravity": [0, 0, 1e400]}', "1e400 is too large for a float64 number"),
    "a long integer": (document(gravity=[0, 0, 10**400]), r"gravity\[2\] is 1000.* which is not finite"),
    "a key twice": ('{"format": 1, "format": 1}', 'the key "format" occurs twice'),
    "a key that is unknown": (joint(at_parant={}), "joints\\[1\\] 'pin1' has an unknown key \"at_parant\"; did you mean 'at_parent'"),
    "a key that is missing": ('{"format": 1, "name": "a", "gravity": [0, 0, 1], "bodies": []}', 'has no "joints"'),
    "a type that is unknown": (joint(joint={"type": "Hinge"}), "pin1'.joint has the \"type\" \"Hinge\""),
    "no type": (joint(joint={"axis": "x"}), "pin1'.joint has the \"type\" null"),
    "an axis without direction": (joint(joint={"type": "Revolute", "axis": [0, 0, 0]}), "pin1'.joint: an axis must be longer than 1e-12"),
    "a text for a truth value": (joint(actuated="yes"), "pin1'.actuated must be true or false; got \"yes\""),
    "a body that is not there": (joint(child="couple"), "'couple', which does not exist; did you mean 'coupler'"),
    "two of one name": (joint(name="motor"), "two joints are named 'motor'"),
    "a list of a wrong length": (document(gravity=[1, 2]), r"gravity must be a list of 3; got \[1, 2\]"),
    "a function": (document(constraints=[{"type": "Target", "name": "a"}]), 'has the "type" "Target"'),
    "depth": ("[" * 100000, "nested too deeply|not well-formed"),
    "a floating base": (None, "floating_base does not apply to this format"),
    "no mechanism": ("{}", "is not a mechanism"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS)
def test_faults(text, message):
    with pytest.raises(ModelError, match=message):
        sarrus.loads(text) if text else sarrus.loads(document(), floating_base=True)


def test_what_no_file_can_hold():
    b = sarrus.Builder("skate")
    b.add_body("skate", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("ice", sarrus.Planar("z"), "ground", "skate")
    b.add_pfaffian(
        "blade", lambda q: np.stack([0 * q[..., 0], 1 + 0 * q[..., 0], 0 * q[..., 0]], -1)[..., None, :], ["ice"]
    )
    with pytest.raises(
        ModelError,
        match=r"constraints\[0\] 'blade'\.rows is a function, which a file cannot contain: replace it by numbers",
    ):
        b.build().save("skate.json")


def test_axes_by_name_and_defaults():
    """A document as written by hand."""
    text = """{"format": 1, "name": "pendulum", "gravity": [0, 0, -9.81],
      "bodies": [{"name": "bob", "inertia": {"mass": 2, "com": [0, 0, -0.5], "about_com": [[0, 0, 0], [0, 0, 0], [0, 0, 0]]}}],
      "joints": [{"name": "pivot", "joint": {"type": "Revolute", "axis": "y", "damping": 0.1}, "parent": "ground", "child": "bob"}]}"""
    assert sarrus.loads(text).gravity_forces([np.pi / 2]).round(9) == 9.81
    assert sarrus.loads(text.encode()) == sarrus.loads(text)


def test_meshes_of_a_document_stay_in_its_folder(tmp_path):
    """Mesh files must be in the document's folder or in folders that the user names."""
    meshes = pytest.importorskip("sarrus.viewer.shapes")
    models, documents = tmp_path / "models", tmp_path / "documents"
    models.mkdir()
    documents.mkdir()
    (models / "crank.stl").write_text("")
    robot = sarrus.mechanisms.four_bar()
    for mesh in (Mesh("crank.stl", beside=str(models)), Mesh("package://models/crank.stl", beside=str(models)),
                 Mesh("package://models/crank.stl", beside=str(documents), package_dirs=(str(tmp_path),))):  # fmt: skip
        visual = sarrus.description.VisualSpec("crank", mesh)
        assert meshes.find(mesh).samefile(models / "crank.stl")
        sarrus.Mechanism(replace(robot.description, visuals=(visual,))).save(documents / "robot.json")
        with pytest.raises(meshes.MeshError, match=r"outside of|there is no folder"):
            meshes.find(sarrus.load(documents / "robot.json").description.visuals[0].shape)
        for folder in (models, tmp_path):
            found = sarrus.load(documents / "robot.json", package_dirs=[folder]).description.visuals[0].shape
            assert meshes.find(found).samefile(models / "crank.stl")


@pytest.mark.parametrize(
    "where", ['"name": "{}"', '"home": {{"{}": [1]}}', '"home": {{"{}": ["x"]}}', '"{}": 1', '"joints": "{}"']
)
def test_errors_are_short_whatever_a_name_is(where):
    text = '{"format": 1, "name": "m", "gravity": [0, 0, 0], "bodies": [{"name": "b"}], "joints": []}'
    key = where.partition(":")[0]
    kept = {name: part for name, part in json.loads(text).items() if json.dumps(name) != key}
    text = json.dumps(kept)[:-1] + ", " + where.format("x" * 10**6) + "}"
    with pytest.raises(ModelError) as error:
        sarrus.loads(text)
    assert len(str(error.value)) < 20000


def everything():
    """Return a document with control characters in all of its names and texts."""
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_frame("f", "crank", (0, 0, 1))
    b.add_shape("crank", sarrus.shapes.Sphere(0.1), name="s", group="g")
    b.add_shape("rocker", sarrus.shapes.Sphere(0.1), name="t")
    b.set_contact("g", "t", friction=0.3)
    b.add_spring("spring", ("crank", (0, 0, 0)), ("ground", (0, 0, 2)), stiffness=1.0, rest_length=1.0)
    b.add_distance("rod", ("crank", (0, 0, 0)), ("ground", (0, 0, 0)), length=1.0)
    b.add_coupler("gear", {"motor": 1.0, "pin1": 2.0})
    b.add_visual("crank", sarrus.shapes.Mesh("a.stl"))
    b.set_configuration("stand", {"motor": [0.1]})
    return b.build()


def test_messages_escape_what_a_document_holds(tmp_path):
    """Control characters in names or texts are escaped in messages to a terminal."""
    everything().save(tmp_path / "all.json")
    document, bad, tried = json.loads((tmp_path / "all.json").read_text()), "x\x1b[2J", 0

    def read(text):
        try:
            return " ".join(sarrus.loads(text).warnings)
        except sarrus.ModelError as error:
            return str(error)

    pending = [document]
    for part in pending:
        for key, value in [*(part.items() if isinstance(part, dict) else enumerate(part))]:
            pending += [value] if isinstance(value, dict | list) else []
            if isinstance(value, str):
                part[key] = bad
                assert "\x1b" not in read(json.dumps(document)), key
                part[key], tried = value, tried + 1
    assert tried > 40
