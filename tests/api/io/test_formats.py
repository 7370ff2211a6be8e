"""The tables of formats: one row more or less is read, written, rejected and documented."""

import importlib.util
import warnings
from dataclasses import replace

import numpy as np
import pytest

import sarrus
from sarrus import Inertia, ModelError, ModelWarning
from sarrus.io import formats
from sarrus.io.formats import POSITIVE, Row

FORMATS = {".urdf": formats.URDF, ".sdf": formats.SDF, ".xml": formats.MJCF, ".usda": formats.USD}
# where a file of tomorrow says friction, and a document that does
TOYS = {
    ".urdf": (Row("joint", "losses/@coulomb", "friction", POSITIVE), """<robot name="r"><link name="a"/><link name="b"/>
        <joint name="j" type="continuous"><parent link="a"/><child link="b"/><losses coulomb="{}"/></joint></robot>"""),
    ".sdf": (Row("axis axis2", "dynamics/coulomb", "friction", POSITIVE), """<sdf version="1.11"><model name="r"><link name="b"/>
        <joint name="j" type="revolute"><parent>world</parent><child>b</child><axis><dynamics><coulomb>{}</coulomb></dynamics></axis></joint>
        </model></sdf>"""),
    ".xml": (Row("joint", "@coulomb", "friction", POSITIVE), """<mujoco><worldbody><body name="b"><geom size="0.1"/>
        <joint name="j" coulomb="{}"/></body></worldbody></mujoco>"""),
    ".usda": (Row("joint", "@coulomb", "friction", POSITIVE), """#usda 1.0
        (metersPerUnit = 1)
        def Xform "b" (apiSchemas = ["PhysicsRigidBodyAPI"]) {{}}
        def PhysicsRevoluteJoint "j" {{ rel physics:body1 = </b>
            double coulomb = {}
        }}"""),
}  # fmt: skip
XML = list(TOYS)[:3]
if importlib.util.find_spec("pxr") is None:
    del TOYS[".usda"]


def rubbing(**terms):
    b = sarrus.Builder("rubbing")
    b.add_body("b", Inertia.sphere(1.0, 0.1))
    b.add_joint("j", sarrus.Revolute("y", **terms), "ground", "b", actuated=True)
    return b.build()


def without(monkeypatch, table, field):
    monkeypatch.setattr(table, "rows", tuple(row for row in table.rows if row.field != field))


@pytest.mark.parametrize("suffix", TOYS)
def test_a_number_of_joints_is_a_row(suffix, tmp_path, monkeypatch):
    table, (row, text), path = FORMATS[suffix], TOYS[suffix], tmp_path / f"r{suffix}"
    without(monkeypatch, table, "friction")
    robot = sarrus.loads(text.format(0.3))
    assert any("is not read" in warning and ("coulomb" in warning or "losses" in warning) for warning in robot.warnings)
    assert robot.joint("j").type.friction == 0.0 and row.place not in formats.page()
    with pytest.raises(ModelError, match="cannot represent: friction of joint 'j'"):
        rubbing(friction=0.3).save(path)

    monkeypatch.setattr(table, "rows", (*table.rows, row))
    robot = sarrus.loads(text.format(0.3))
    assert robot.joint("j").type.friction == 0.3 and not any("not read" in warning for warning in robot.warnings)
    with pytest.raises(ModelError, match=r":(\d+|/j): .*(is negative: -1|has a negative coulomb: -1)"):
        sarrus.loads(text.format(-1))
    if suffix in XML:  # in USD the attribute has a type
        with pytest.raises(ModelError, match=r":\d+: .*expects a number"):
            sarrus.loads(text.format("much"))
    rubbing(friction=0.3, damping=0.1).save(path)
    assert (
        "coulomb" in path.read_text()
        and sarrus.load(path).joint("j").type == rubbing(friction=0.3, damping=0.1).joint("j").type
    )
    rubbing(damping=0.1).save(path)
    assert "coulomb" not in path.read_text() or suffix == ".sdf"  # which says all of <dynamics> or nothing
    assert f"/{row.place}` | `friction`" in formats.page()


def test_stiffness_in_urdf_is_a_row(tmp_path, monkeypatch):
    """A hypothetical element of URDF, also for joints with several coordinates."""
    with pytest.raises(ModelError, match="cannot represent: stiffness of joint 'j'"):
        rubbing(stiffness=0.2).save(tmp_path / "r.urdf")
    monkeypatch.setattr(
        formats.URDF, "rows", (*formats.URDF.rows, Row("joint", "dynamics/@stiffness", "stiffness", POSITIVE))
    )
    b = sarrus.Builder("r")
    for name, joint in (("one", sarrus.Revolute("y", stiffness=0.2)), ("ball", sarrus.Spherical(stiffness=0.1))):
        b.add_body(name, Inertia.sphere(1.0, 0.1))
        b.add_joint(f"{name} joint", joint, "ground", name, actuated=True)
    b.build().save(tmp_path / "r.urdf")
    other = sarrus.load(tmp_path / "r.urdf")
    assert other.joint("one joint").type == sarrus.Revolute("y", stiffness=0.2)
    assert other.joint("ball joint").type.stiffness.tolist() == [0.1] * 3


@pytest.mark.parametrize("suffix", XML)
@pytest.mark.parametrize("kind", ["note", "refusal"])
def test_what_is_not_read_is_a_row(suffix, kind, monkeypatch):
    element = {".urdf": "link", ".sdf": "link", ".xml": "body"}[suffix]
    table, text = FORMATS[suffix], TOYS[suffix][1].format(1).replace('name="b"', 'name="b" colour="red"', 1)
    before = sarrus.loads(text).warnings
    assert any("attribute 'colour'" in warning for warning in before)
    row = Row(element, "@colour", values="red green", **{kind: "is red, which bodies are not"})
    monkeypatch.setattr(table, "rows", (*table.rows, row))
    for harmless in ("green", None):
        other = text.replace(' colour="red"', "" if harmless is None else f' colour="{harmless}"')
        assert not any("colour" in warning or "is red" in warning for warning in sarrus.loads(other).warnings)
    if kind == "note":
        assert any(warning.startswith("<string>:1: is red") for warning in sarrus.loads(text).warnings)
    else:
        with pytest.raises(ModelError, match=f"<string>:1: <{element} name='b'> is red, which bodies are not"):
            sarrus.loads(text)
    assert "is red, which bodies are not" in formats.page()
    with pytest.raises(ModelError, match="expects one of red, green in colour"):
        sarrus.loads(text.replace("red", "blue"))


def test_pages_know_all_elements():
    """The documentation lists exactly the elements that the reader knows."""
    page = formats.page()
    for table in FORMATS.values():
        section = page.partition(f"## {table.name}")[2].partition("\n## ")[0]
        for tag, (attributes, children) in table.grammar.items():
            line = next(line for line in section.splitlines() if line.startswith(f"| `{tag}` |"))
            assert all(f"`{word}`" in line for word in (*attributes, *children))
        assert all(row.place in section for row in table.rows)


@pytest.mark.parametrize("suffix", TOYS)
def test_every_number_survives(suffix, tmp_path):
    """Each parameter separately, so that a row that is read but not written is found."""
    table = FORMATS[suffix]
    for name in ("damping", "friction", "armature", "stiffness", "velocity_limit", "effort_limit", "limits"):
        robot = rubbing(
            **{name: (-1.0, 2.0) if name == "limits" else 0.7}, **({"rest": 0.1} if name == "stiffness" else {})
        )
        fields = {row.field for row in table.rows}
        if name in fields or (name == "limits" and "lower" in fields):
            robot.save(tmp_path / f"r{suffix}")
            again = sarrus.load(tmp_path / f"r{suffix}").joint("j").type
            assert (
                np.array_equal(getattr(again, name), getattr(robot.joint("j").type, name))
                and again.rest == robot.joint("j").type.rest
            )
            continue
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ModelWarning)
            robot.save(tmp_path / f"r{suffix}", lossy=True)
        assert any(f"{name.replace('_', ' ')} of joint 'j'" in str(one.message) for one in said)


@pytest.mark.parametrize("suffix", TOYS)
@pytest.mark.parametrize("named", [True, False])
def test_kinds_that_no_ladder_knows(suffix, named, tmp_path, monkeypatch):
    """Every writer raises an error for a joint type without known axes."""
    robot = rubbing()
    link = sarrus.io.outline.link_of(robot.description.joints[0])
    monkeypatch.setattr(sarrus.Revolute, "kind", "Elliptic")
    if not named:  # were outline.py to let it pass, without axes
        hollow = lambda spec, backward=False: replace(link, spec=spec, axes=())  # noqa: E731
        monkeypatch.setattr(sarrus.io.outline, "link_of", hollow)
    with pytest.raises(ModelError, match=r"'j.*Elliptic"):
        robot.save(tmp_path / f"r{suffix}")
    assert not list(tmp_path.iterdir())


LIMITS = {
    "effort of a ball": sarrus.Spherical(effort_limit=3.0),
    "speed of a ball": sarrus.Spherical(velocity_limit=3.0),
    "effort of what floats": sarrus.Free(effort_limit=3.0),
    "speed of what floats": sarrus.Free(velocity_limit=3.0),
    "way of what floats": sarrus.Free(limits=[(s * np.inf,) * 4 + (s,) * 3 for s in (-1.0, 1.0)]),
}


@pytest.mark.parametrize("suffix", TOYS)
@pytest.mark.parametrize("joint", LIMITS.values(), ids=LIMITS)
def test_limits_of_joints_of_many_directions_are_named(suffix, joint, tmp_path):
    """No format has such limits, and each writer reports them."""
    b = sarrus.Builder("one")
    b.add_body("b", Inertia.sphere(1.0, 0.1))
    b.add_joint("j", joint, "ground", "b")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ModelWarning)
        b.build().save(tmp_path / f"r{suffix}")
    assert sum(f"limits of joint 'j' ({joint.kind})" in str(one.message) for one in said) == 1
