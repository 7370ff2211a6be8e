"""Mechanisms described in C++, and the core's Builder beside Python's: the same parts and the same errors."""

import json
import shutil
import subprocess
import warnings
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

import sarrus
from sarrus import _core
from sarrus.description import constraints as C
from sarrus.description.contacts import ContactSpec, ShapeSpec
from sarrus.description.specs import BodySpec, FrameSpec, JointSpec, SpringSpec, VisualSpec
from sarrus.io import complete
from sarrus.shapes import Box, Capsule, ConvexPoints, Ellipsoid, Mesh, Sphere, Terrain
from tests.gallery import every
from tests.toys.project import ROOT, eigen

# written by the version before the core read and wrote this form
EVERY_PART = Path(__file__).parents[1] / "data" / "every_part.json"


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_in_cpp(tmp_path):
    groups = [
        ["tests/cpp/test_model.cpp"],
        *(sorted(ROOT.glob(f"cpp/{folder}/*.cpp")) for folder in ("model", "mechanism")),
    ]
    for k, sources in enumerate(groups):  # what files of a folder have in common is compiled once
        (tmp_path / f"{k}.cpp").write_text("".join(f'#include "{ROOT / source}"\n' for source in sources))
    flags = ["-std=c++17", "-O0", "-DEIGEN_DONT_VECTORIZE", f"-I{eigen()}", "-o", tmp_path / "model"]
    subprocess.run(["c++", *flags, *sorted(tmp_path.glob("*.cpp"))], check=True)
    done = subprocess.run([tmp_path / "model", EVERY_PART], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_files_of_earlier_versions():
    text = EVERY_PART.read_text(encoding="utf-8")
    builder = complete.read(text)
    assert complete.write(builder._described()) == text
    assert complete.write(complete.read(text.encode())._described()) == text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sarrus.ModelWarning)
        robot = builder.build()
    assert (robot.nv, robot.nc, len(robot.description.shapes)) == (20, 19, 10)
    assert 'read from a napkin: "ü"' in robot.warnings


@every
def test_gallery(mechanism):
    """The core's document of a description equals that of Python's Builder, character by character."""
    text = complete.write(mechanism.description)
    assert complete.write(complete.read(text)._described()) == text


def scene():
    b = sarrus.Builder("scene")
    for name in ("arm", "hand"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("turn", sarrus.Revolute("z"), "ground", "arm")
    b.add_joint("ball", sarrus.Spherical(), "arm", "hand")
    b.add_joint("weld", sarrus.Fixed(), "ground", "hand", loop=True)
    b.add_frame("tip", "hand")
    b.add_coupler("gear", {"turn": 1.0})
    b.add_prescribed_motion("drive", "turn", sarrus.laws.harmonic(1.0, 2.0))
    b.add_spring("coil", ("ground", (0, 0, 1)), ("arm", (0, 0, 0)), stiffness=1.0, rest_length=1.0)
    b.add_shape("arm", Sphere(0.1), name="knob", group="knobs")
    b.add_shape("arm", Sphere(0.1), name="heel")
    b.add_shape("hand", Sphere(0.1), name="palm")
    return b._described()


FAR, ARM, HAND = sarrus.Transform(translation=(0, 0, 1e101)), ("arm", (0.0, 0.0, 0.0)), ("hand", (0.0, 0.0, 0.0))
BODY, PIN, LAW = sarrus.Inertia.sphere(1.0, 0.1), sarrus.Revolute("z"), sarrus.laws.harmonic(1.0, 3.0)
ZERO, Z = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
BAD = {
    "bodies": [BodySpec("", BODY), BodySpec("arm", BODY), BodySpec("ground", BODY), BodySpec("a\n", BODY)],
    "joints": [
        JointSpec("turn", PIN, "ground", "hand"), JointSpec("gear", PIN, "ground", "hand", laws=(LAW,)), JointSpec("j", PIN, "arm", "arm"),
        JointSpec("j", PIN, "arm", "hand", tree=True, loop=True), JointSpec("j", PIN, "arm", "hand", FAR), JointSpec("j", PIN, "arm", "hand", at_child=FAR),
        JointSpec("j", PIN, "arm", "hnd", laws=(LAW,)), JointSpec("j", PIN, "arm", "hand", laws=(None,)), JointSpec("", PIN, "arm", "hand"),
    ],
    "frames": [FrameSpec("arm", "hand"), FrameSpec("tip", "arm"), FrameSpec("f", "amr"), FrameSpec("f", "arm", FAR), FrameSpec("ground", "arm")],
    "springs": [
        SpringSpec("coil", ARM, HAND, 1.0, 1.0), SpringSpec("s", ARM, ARM, 1.0, 1.0), SpringSpec("s", ("arm", (inf, 0.0, 0.0)), HAND, 1.0, 1.0),
        SpringSpec("s", ARM, ("x", ZERO), 1.0, 1.0), SpringSpec("s", ARM, HAND, -1.0, 1.0), SpringSpec("s", ARM, HAND, 1.0, inf),
    ],
    "constraints": [
        C.DistanceSpec("gear", ARM, HAND, 1.0), C.DistanceSpec("turn", ARM, HAND, 1.0), C.DistanceSpec("c", ARM, HAND, 0.0),
        C.DistanceSpec("c", ARM, HAND, -2.0), C.DistanceSpec("c", ARM, ARM, 1.0), C.DistanceSpec("c", ("leg", ZERO), ARM, 1.0),
        C.RollingSpec("c", "arm", 0.0, ZERO, None, "ground", ZERO, Z, None), C.RollingSpec("c", "arm", 1.0, ZERO, Z, "ground", ZERO, Z, 2.0),
        C.RollingSpec("c", "arm", 1.0, ZERO, None, "ground", ZERO, Z, 0.0), C.RollingSpec("c", "arm", 1.0, ZERO, None, "ground", ZERO, Z, -0.5),
        C.RollingSpec("c", "arm", 1.0, ZERO, None, "arm", ZERO, Z, None), C.RollingSpec("c", "arm", 1.0, ZERO, None, "ground", ZERO, ZERO, None),
        C.RollingSpec("c", "arm", 1.0, ZERO, ZERO, "ground", ZERO, Z, None), C.RollingSpec("c", "arm", 1.0, (inf, 0.0, 0.0), None, "ground", ZERO, Z, None),
        C.RollingSpec("c", "leg", 1.0, ZERO, None, "ground", ZERO, Z, None), C.RollingSpec("c", "arm", 1.0, ZERO, None, "ground", (0.0, inf, 0.0), Z, None),
        C.CouplerSpec("c", ()), C.CouplerSpec("c", (("turn", 0, (0.0,)),)), C.CouplerSpec("c", (("turn", 1, (1.0,)),)),
        C.CouplerSpec("c", (("ball", 0, (1.0,)),)), C.CouplerSpec("c", (("weld", 0, (1.0,)),)), C.CouplerSpec("c", (("trn", 0, (1.0,)),)),
        C.CouplerSpec("c", (("turn", 0, (inf,)),)), C.CouplerSpec("c", (("turn", 0, ()),)), C.CouplerSpec("c", (("turn", 0, (1.0,)),), inf),
        C.CouplerSpec("c", (("turn", 0, (1.0,)),), 0.0, LAW), C.CouplerSpec("c", (), 0.0, None, ((),)),
        C.CouplerSpec("c", (), 0.0, None, ((("turn", 0, sarrus.laws.polynomial(1.0)),),)), C.CouplerSpec("c", (), 0.0, None, ((("ball", 0, LAW),),)),
        C.CouplerSpec("c", (), 0.0, None, ((("turn", 0, LAW), ("trn", 0, LAW)),)), C.CouplerSpec("c", (), 0.0, None, ((("turn", 2, LAW),),)),
        C.PfaffianSpec("c", ((1.0,),), (), (0.0,)), C.PfaffianSpec("c", ((1.0, 1.0),), ("turn", "turn"), (0.0,)),
        C.PfaffianSpec("c", ((1.0, 2.0),), ("turn",), (0.0,)), C.PfaffianSpec("c", (), ("turn",), (0.0,)), C.PfaffianSpec("c", ((inf,),), ("turn",), (0.0,)),
        C.PfaffianSpec("c", ((1.0,), ()), ("turn",), (0.0,)), C.PfaffianSpec("c", ((1.0,),), ("turn",), ()), C.PfaffianSpec("c", ((1.0,),), ("turn",), (0.0, 1.0)),
        C.PfaffianSpec("c", ((1.0,),), ("weld",), (0.0,)), C.PfaffianSpec("c", ((1.0,),), ("x",), (0.0,)),
    ],
    "visuals": [
        VisualSpec("leg", Sphere(1.0)), VisualSpec("arm", Sphere(0.0)), VisualSpec("arm", Box((1.0, -1.0, 1.0))), VisualSpec("arm", Mesh("")),
        VisualSpec("arm", Mesh("a", (1.0, 0.0, 1.0))), VisualSpec("arm", Sphere(1.0), FAR), VisualSpec("arm", Sphere(1.0), color=(2.0, 0.0, 0.0, 1.0)),
    ],
    "shapes": [
        ShapeSpec("knob", "arm", Sphere(1.0)), ShapeSpec("knobs", "arm", Sphere(1.0)), ShapeSpec("s", "leg", Sphere(1.0)), ShapeSpec("s", "arm", Sphere(1.0), FAR),
        ShapeSpec("s", "arm", Sphere(1.0), group="knob"), ShapeSpec("s", "arm", Sphere(1.0), group=""), ShapeSpec("s", "arm", Sphere(1.0), friction=-0.1),
        ShapeSpec("s", "arm", Sphere(1.0), restitution=1.5), ShapeSpec("s", "arm", Sphere(1.0), rolling_friction=inf), ShapeSpec("s", "arm", Capsule(0.0, 1.0)),
        ShapeSpec("s", "arm", Ellipsoid((1.0, 0.0, 1.0))), ShapeSpec("s", "arm", ConvexPoints(())), ShapeSpec("s", "arm", ConvexPoints(((0.0, 1.0, inf),))),
        ShapeSpec("s", "arm", ConvexPoints(np.zeros((16385, 3)))), ShapeSpec("s", "arm", Terrain(((0.0, 1.0),), (1.0, 1.0))),
        ShapeSpec("s", "arm", Terrain(((0.0, 1.0), (0.0, inf)), (1.0, 1.0))), ShapeSpec("s", "arm", Terrain(((0.0, 1.0), (0.0, 1.0)), (1.0, 0.0))),
    ],
    "contacts": [
        ContactSpec("knob", "heel"), ContactSpec("knob", "plam"), ContactSpec("", "palm"), ContactSpec("knobs", "palm", friction=-1.0),
        ContactSpec("knob", "palm", restitution=2.0),
    ],
    "home": [("turn", (1.0, 2.0)), ("turn", (inf,)), ("ball", (0.0, 0.0, 0.0, 0.0)), ("weld", ()), ("trun", (0.0,))],
    "configurations": [("up", (("turn", ()),)), ("up", (("x", (0.0,)),))],
}  # fmt: skip


@pytest.mark.parametrize(("parts", "part"), [(kind, part) for kind, parts in BAD.items() for part in parts])
def test_both_builders_refuse_the_same_in_the_same_words(parts, part):
    described = scene()
    described = replace(described, **{parts: (*getattr(described, parts), part)})
    with pytest.raises(sarrus.SarrusError) as error:
        sarrus.Builder._of(described)
    document = {"format": 1, **complete._plain(sarrus.Description, described, "")}
    with pytest.raises(sarrus.ModelError) as of_the_core:
        _core.read_json(json.dumps(document), "scene")
    assert str(of_the_core.value) == f"scene: {error.value}"


AXIS = {"type": "Revolute", "axis": [0.0, 0.0, 1.0]}
BAD_JOINTS = [
    {"axis": "w"}, {"axis": [0.0, 0.0, 0.0]}, {"axis": [1.0, 2.0]}, {"axis": ["a", 1.0, 2.0]}, {"axis": None}, {"axis": 1.0}, {"axis": [1e-300, 0.0, 0.0]},
    {"damping": -1.0}, {"friction": [1.0, 2.0]}, {"armature": "x"}, {"stiffness": "inf"}, {"rest": None}, {"rest": [[1.0]]}, {"limits": [1.0, -1.0]},
    {"limits": [1.0]}, {"limits": 3.0}, {"limits": [[1.0, 2.0], 3.0]}, {"velocity_limit": -1.0}, {"effort_limit": "a"},
    {"type": "Fixed", "damping": 1.0}, {"type": "Fixed", "limits": [0.0, 1.0]}, {"type": "Spherical", "stiffness": [1.0, 2.0, 1.0]},
    {"type": "Spherical", "rest": 1.0}, {"type": "Spherical", "limits": [-1.0, 1.0]}, {"type": "Cable", "radius": -1.0}, {"type": "Cable", "axis": "q"},
    {"type": "Gimbal", "free": "rx ra"}, {"type": "Gimbal", "free": ["rx", "rx"]}, {"type": "Gimbal", "free": 1.0}, {"type": "Gimbal", "free": [1.0]},
    {"type": "Gimbal", "free": "rx", "fixed": [1.0]}, {"type": "Helical", "axis": "x", "pitch": "inf"},
]  # fmt: skip


@pytest.mark.parametrize("fields", BAD_JOINTS)
def test_both_refuse_the_same_joints_in_the_same_words(fields):
    kind = fields.get("type", "Revolute")
    given = {"axis": "z"} | fields if kind == "Revolute" else fields

    def number(x):
        return [number(y) for y in x] if isinstance(x, list) else float(x) if x == "inf" else x

    with pytest.raises(sarrus.ModelError) as error:
        getattr(sarrus.description.joints, kind)(**{key: number(x) for key, x in given.items() if key != "type"})
    document = {"format": 1, **complete._plain(sarrus.Description, scene(), "")}
    document["joints"][0]["joint"] = {"type": kind, **given}
    with pytest.raises(sarrus.ModelError) as of_the_core:
        _core.read_json(json.dumps(document), "scene")
    assert str(of_the_core.value) == f"scene: joints[0] 'turn'.joint: {error.value}"


def test_numbers_that_are_none():
    document = {"format": 1, **complete._plain(sarrus.Description, scene(), "")} | {"gravity": [0.0, 0.0, nan]}
    with pytest.raises(sarrus.ModelError, match="NaN is not a number in JSON"):
        sarrus.loads(json.dumps(document))
