"""Collision shapes in files: reading, writing, and warnings."""

import itertools
import json
import struct
import zipfile

import numpy as np
import pytest

import sarrus
from sarrus import ModelWarning
from sarrus.description.contacts import touching_pairs
from sarrus.io import mesh_files
from sarrus.shapes import Box, Capsule, Cylinder, Mesh, Plane, Point, Sphere

URDF = """<robot name="r"><link name="world"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision name="foot"><origin xyz="1 2 3" rpy="0 0 0.5"/><geometry><box size="1 2 3"/></geometry></collision>
<collision><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision>
<collision name="foot"><geometry><sphere radius="0.3"/></geometry></collision>
<collision><geometry><mesh filename="a.stl"/></geometry></collision>
<collision><geometry><sphere radius="-0.3"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="world"/><child link="a"/><axis xyz="0 1 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint>
</robot>"""


def test_urdf():
    robot = sarrus.loads(URDF)
    shapes = {spec.name: spec for spec in robot.description.shapes}
    assert {name: spec.shape for name, spec in shapes.items()} == {
        "foot": Box((1.0, 2.0, 3.0)),
        "a": Cylinder(0.1, 0.2),
        "a_2": Sphere(0.3),
    }
    at = shapes["foot"].placement
    np.testing.assert_allclose(at.translation, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(at.rotation, sarrus.Rotation.from_rpy(0.0, 0.0, 0.5).matrix)
    told = "\n".join(robot.warnings)
    assert "a mesh in <collision> is not read as a collision shape: its file or trimesh is missing" in told
    assert "radius of a sphere must be positive; got -0.3; it has no contacts" in told
    run = sarrus.simulate(robot, [0.0], [0.0], duration=0.01)  # the file's warnings say that nobody simulates them
    assert np.isfinite(run.q).all()


def walker():
    b = sarrus.Builder("walker")
    for k, name in enumerate("ab"):
        b.add_body(name, sarrus.Inertia.box(1.0, (0.3, 0.2, 0.1)))
        b.add_joint(f"to_{name}", sarrus.Revolute("y"), "a" if k else "ground", name, at_parent=(0.0, 0.0, 1.0 - 3 * k))
    turned = sarrus.Transform(sarrus.Rotation.from_rpy(0.1, 0.2, 0.3), (0.1, 0.0, 0.0))
    b.add_shape("a", Box((0.3, 0.2, 0.1)), turned, friction=0.5, restitution=0.25, name="trunk")
    b.add_shape("a", Sphere(0.05), friction=0.25)
    b.add_shape("b", Cylinder(0.1, 0.2), (0.0, 0.1, 0.0))
    return b


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml"])
def test_there_and_back(suffix, tmp_path):
    robot = walker().build()
    if suffix == "sdf":
        robot.save(tmp_path / "robot.sdf")
    else:
        with pytest.warns(ModelWarning, match="restitution of shapes"):
            robot.save(tmp_path / f"robot.{suffix}")
    found = {spec.name: spec for spec in sarrus.load(tmp_path / f"robot.{suffix}").description.shapes}
    for spec in robot.description.shapes:
        same = found.pop(spec.name)
        assert (same.body, same.shape) == (spec.body, spec.shape)
        np.testing.assert_allclose(same.placement.matrix, spec.placement.matrix, atol=1e-12)
        if suffix != "urdf":
            assert same.friction == (1.0 if suffix == "xml" and spec.friction is None else spec.friction)
        assert same.restitution == (spec.restitution if suffix == "sdf" else None)
    assert not found


@pytest.mark.parametrize(("suffix", "lost"), [("urdf", 3), ("sdf", 2), ("xml", 1)])
def test_what_a_format_cannot_say_is_told(suffix, lost, tmp_path):
    b = walker()
    b.add_shape("ground", Plane(), (0.0, 0.0, -9.0), name="floor")
    b.add_shape("b", Point(), name="tip")
    b.add_shape("b", Capsule(0.1, 0.2), name="arm")
    b.set_contact("arm", "floor", enabled=False)
    with pytest.warns(ModelWarning) as said:
        b.build().save(tmp_path / f"robot.{suffix}")
    told = "\n".join(str(warning.message) for warning in said)
    assert "groups of shapes, and which pairs may touch" in told and "the shape Point of body 'b'" in told
    assert ("shapes of the ground" in told) == (suffix != "xml") and ("the shape Capsule" in told) == (suffix == "urdf")
    read = {spec.name for spec in sarrus.load(tmp_path / f"robot.{suffix}").description.shapes}
    assert len({spec.name for spec in b.build().description.shapes} - read) == lost


def test_sdf():
    text = """<sdf version="1.9"><model name="m"><link name="a"><inertial/><collision name="foot"><pose>0 0 1 0 0 0</pose><geometry><capsule>
    <radius>0.1</radius><length>0.5</length></capsule></geometry><surface><friction><ode><mu>0.7</mu></ode></friction>
    <bounce><restitution_coefficient>0.3</restitution_coefficient></bounce></surface></collision></link>
    <link name="wall"><inertial/><collision name="side"><geometry><plane><normal>1 0 0</normal></plane></geometry></collision></link></model></sdf>"""
    robot = sarrus.loads(text)
    foot, side = robot.description.shapes
    assert (foot.shape, foot.friction, foot.restitution) == (Capsule(0.1, 0.5), 0.7, 0.3)
    assert foot.placement.translation.tolist() == [0.0, 0.0, 1.0]
    assert side.shape == Plane() and side.friction is None
    np.testing.assert_allclose(side.placement.rotation[:, 2], (1.0, 0.0, 0.0), atol=1e-15)


# ---- meshes ----------------------------------------------------------------------------------------------------------

BODY = """<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
MESHES = {
    "urdf": f"""<robot name="r"><link name="world"/><joint name="float" type="floating"><parent link="world"/>
      <child link="a"/></joint><link name="a">{BODY}<collision name="hull"><geometry><mesh filename="wedge.stl" scale="0.1 0.1 0.1"/></geometry>
      </collision><collision name="ball"><origin xyz="0 0 0.3"/><geometry><sphere radius="0.1"/></geometry></collision></link></robot>""",
    "sdf": """<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
      </inertial><collision name="hull"><geometry><mesh><uri>wedge.stl</uri><scale>0.1 0.1 0.1</scale></mesh></geometry></collision>
      <collision name="ball"><pose>0 0 0.3 0 0 0</pose><geometry><sphere><radius>0.1</radius></sphere></geometry></collision></link></model></sdf>""",
    "xml": """<mujoco><asset><mesh name="wedge" file="wedge.stl" scale="0.1 0.1 0.1"/></asset><worldbody><geom name="far" type="plane" size="1 1 1"
      pos="0 0 -9"/><body name="a"><freejoint/><inertial pos="0 0 0" mass="2" diaginertia="0.1 0.1 0.1"/><geom name="hull" type="mesh" mesh="wedge"/>
      <geom name="ball" size="0.1" pos="0 0 0.3"/></body></worldbody></mujoco>""",
}  # fmt: skip


def wedge(path):
    """Write a prism on a rectangle of 4 by 2, with duplicate vertices and an interior point."""
    trimesh = pytest.importorskip("trimesh")
    corners = [(-2, -1, 0), (2, -1, 0), (2, 1, 0), (-2, 1, 0), (-2, -1, 1), (-2, 1, 1), (0, 0, 0)]
    faces = [
        (0, 1, 6),
        (1, 2, 6),
        (2, 3, 6),
        (3, 0, 6),
        (0, 4, 1),
        (3, 2, 5),
        (0, 3, 5),
        (0, 5, 4),
        (1, 4, 5),
        (1, 5, 2),
    ]
    trimesh.Trimesh(corners, faces, process=False).export(path)


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("suffix", MESHES)
def test_meshes_touch_planes(suffix, scipy, tmp_path, monkeypatch):
    wedge(tmp_path / "wedge.stl")
    if not scipy:
        real = mesh_files.find_spec
        monkeypatch.setattr(mesh_files, "find_spec", lambda name: None if name == "scipy" else real(name))
    (tmp_path / f"robot.{suffix}").write_text(MESHES[suffix])
    robot = sarrus.load(tmp_path / f"robot.{suffix}")
    said = "\n".join(robot.warnings)
    assert "touches planes only, by its convex hull" in said
    assert {"hull", "ball"} <= {spec.name for spec in robot.description.shapes}
    b = robot.to_builder()
    b.add_shape("ground", Plane(), (0, 0, -0.5), name="floor")
    b.add_shape("ground", Sphere(0.1), (0, 0, 0.05), name="passed")  # which the hull lies over, and passes through
    b.set_contact("ball", "passed", enabled=False)
    robot = b.build()
    q = robot.assemble()
    touching = robot.contacts(q, within=0.5 + 1e-9)
    assert set(touching.shapes) >= {("hull", "floor")} and not any(
        "passed" in pair and "hull" in pair for pair in touching.shapes
    )
    mine = [k for k, pair in enumerate(touching.shapes) if pair == ("hull", "floor")]
    assert sorted(map(tuple, touching.position[mine][:, :2].round(9))) == [
        (-0.2, -0.1),
        (-0.2, 0.1),
        (0.2, -0.1),
        (0.2, 0.1),
    ]
    np.testing.assert_allclose(touching.distance[mine], 0.5, atol=1e-12)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 1.0, method="contact", dt=4e-3)
    height = robot.pose(run.q[-1], "a")[2, 3]
    assert height == pytest.approx(-0.5, abs=1e-6) and abs(run.v[-1]).max() < 1e-9


def test_what_a_mesh_lacks_is_told(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(MESHES["urdf"])
    robot = sarrus.load(path)
    assert "is not read as a collision shape: its file or trimesh is missing" in "\n".join(robot.warnings)
    assert [spec.name for spec in robot.description.shapes] == ["ball"]
    b = robot.to_builder()
    b.add_shape("a", Mesh("nowhere.stl", beside=str(tmp_path)), name="hull")
    b.build().contacts(robot.assemble())  # it has no contacts, and is not read
    b.add_shape("ground", Plane(), (0, 0, -9), name="floor")
    with pytest.raises(sarrus.ModelError, match=r"nowhere\.stl.*no such file"):
        b.build()
    pytest.importorskip("trimesh")
    (tmp_path / "nowhere.stl").write_text("solid none")
    with pytest.raises(sarrus.ModelError, match=r"nowhere\.stl"):
        b.build()


# ---- friction against spinning and rolling ---------------------------------------------------------------------------


def spinner(*, rolling=True):
    b = sarrus.Builder("spinner")
    b.add_body("a", sarrus.Inertia.box(1.0, (0.3, 0.2, 0.1)))
    b.add_joint("turns", sarrus.Revolute("y"), "ground", "a")
    b.add_shape("a", Sphere(0.1), name="plain", friction=0.5)
    b.add_shape("a", Sphere(0.1), name="spins", friction=0.5, torsional_friction=0.02)
    if rolling:
        b.add_shape("a", Sphere(0.1), name="rolls", rolling_friction=0.03)
    return b.build()


@pytest.mark.parametrize("suffix", ["json", "xml", "sdf"])
def test_moments_there_and_back(suffix, tmp_path):
    robot = spinner(rolling=suffix != "sdf")
    robot.save(tmp_path / f"robot.{suffix}")
    read = {spec.name: spec for spec in sarrus.load(tmp_path / f"robot.{suffix}").description.shapes}
    for spec in robot.description.shapes:
        for name in ("torsional_friction", "rolling_friction"):
            # MJCF tells of one that rolls that it spins without friction, too
            expected, got = getattr(spec, name), getattr(read[spec.name], name)
            assert (got or 0.0) == pytest.approx(expected or 0.0, rel=1e-14)


@pytest.mark.parametrize(
    ("suffix", "what"),
    [
        ("sdf", "rolling friction"),
        ("urdf", "friction, torsional friction and rolling friction of shapes"),
        ("usda", "torsional friction and rolling friction of shapes"),
    ],
)
def test_moments_that_a_format_cannot_say_are_told(suffix, what, tmp_path):
    if suffix == "usda":
        pytest.importorskip("pxr")
    with pytest.warns(ModelWarning, match=what):
        spinner().save(tmp_path / f"robot.{suffix}")


def test_mjcf_has_as_many_numbers_as_condim_says():
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" condim="1"/><body name="a"><freejoint/>
    <geom name="three" size="1" friction="0.5 0.1 0.2" group="3"/><geom name="four" size="1" friction="0.5 0.1 0.2" condim="4"/>
    <geom name="six" size="1" friction="0.5 0.1 0.2" condim="6"/><geom name="default" size="1" condim="6"/></body></worldbody>
    <contact><pair geom1="three" geom2="floor" condim="6" friction="0.5 0.6 0.3 0.4 0.4"/></contact></mujoco>"""
    robot = sarrus.loads(text)
    numbers = {s.name: (s.friction, s.torsional_friction, s.rolling_friction) for s in robot.description.shapes}
    assert (
        numbers["three"] == (0.5, None, None)
        and numbers["four"] == (0.5, 0.1, None)
        and numbers["six"] == (0.5, 0.1, 0.2)
    )
    assert numbers["default"] == (1.0, 0.005, 0.0001)
    (pair,) = robot.description.contacts
    assert (pair.friction, pair.torsional_friction, pair.rolling_friction) == (0.5, 0.3, 0.4)
    said = "\n".join(robot.warnings)
    assert "condim 1 (no friction) is read as 3" in said and "anisotropic friction is not read" in said


def test_mujocos_spinning_ball_stops_alike():
    """Its torsional friction in metres is sarrus': the same time to stop, except for MuJoCo's soft contact."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option timestep="0.001" cone="elliptic" impratio="10"/><worldbody><geom name="floor" type="plane" size="1 1 1" friction="0.5 {floor}"/>
    <body name="a" pos="0 0 0.1"><freejoint/><geom name="a" size="0.1" mass="0.5" condim="4" friction="0.5 0.002 0"/></body></worldbody></mujoco>"""
    larger = "MuJoCo takes the larger one"  # of the floor's, although its own condim is 3
    assert larger in "\n".join(sarrus.loads(text.format(floor=0.005)).warnings)
    robot, model = sarrus.loads(text.format(floor=0.002)), mujoco.MjModel.from_xml_string(text.format(floor=0.002))
    assert larger not in "\n".join(robot.warnings)
    data = mujoco.MjData(model)
    data.qvel[5] = 5.0
    for _ in range(200):
        mujoco.mj_step(model, data)
    run = sarrus.simulate(robot, [0, 0, 0, 1, 0, 0, 0.1], [0, 0, 5.0, 0, 0, 0], 0.2, method="contact", dt=1e-3)
    assert run.v[-1, 2] == pytest.approx(data.qvel[5], rel=0.02) and run.v[-1, 2] < 4.9


def test_sdf_has_torsional_friction_of_a_patch():
    surface = "<surface><friction><torsional><coefficient>0.8</coefficient>{}</torsional></friction></surface>"
    text = """<sdf version="1.9"><model name="m"><link name="a"><inertial/><collision name="foot"><geometry><sphere><radius>0.1</radius></sphere></geometry>
    {}</collision></link></model></sdf>"""
    robot = sarrus.loads(text.format(surface.format("<patch_radius>0.05</patch_radius>")))
    assert robot.description.shapes[0].torsional_friction == pytest.approx(3 * np.pi / 16 * 0.8 * 0.05)
    for rest in ("", "<patch_radius>0.05</patch_radius><use_patch_radius>false</use_patch_radius>"):
        robot = sarrus.loads(text.format(surface.format(rest)))
        assert robot.description.shapes[0].torsional_friction is None
        assert "torsional friction without a patch_radius is not read" in "\n".join(robot.warnings)


# ---- MJCF: the pairs that MuJoCo takes, and its distances ---------------------------------------------------------------------------

GEOMS = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" contype="{floor}"/>
<body name="a" pos="0 0 1"><freejoint/><geom name="a" size="0.3"/><geom name="a2" type="box" size="0.2 0.3 0.1" contype="2" conaffinity="2"/>
  <body name="b" pos="0.1 0 0"><joint axis="0 1 0"/><geom name="b" type="capsule" size="0.2 0.3" contype="2" conaffinity="1"/>
    <body name="c"><joint axis="1 0 0"/><geom name="c" type="box" size="0.2 0.2 0.2" friction="0.5"/>
    <geom name="unseen" size="1" contype="0" conaffinity="0"/></body></body></body>
<body name="d" pos="0.2 0.1 0.9"><freejoint/><geom name="d" type="cylinder" size="0.2 0.1" contype="8" conaffinity="8"/></body>
</worldbody><contact>{contact}</contact></mujoco>"""


@pytest.mark.parametrize(
    "contact", ["", '<exclude body1="a" body2="c"/>', '<pair geom1="b" geom2="a" friction="0.3"/>']
)
@pytest.mark.parametrize("floor", [1, 8])
def test_mjcf_masks_are_the_pairs_of_mujoco(contact, floor):
    mujoco = pytest.importorskip("mujoco")
    text = GEOMS.format(floor=floor, contact=contact)
    robot = sarrus.loads(text)
    assert "MuJoCo takes the larger one" in "\n".join(robot.warnings)
    d = robot.description
    assert "unseen" not in [spec.name for spec in d.shapes]
    ours = {frozenset((d.shapes[pair.first].name, d.shapes[pair.second].name)) for pair in touching_pairs(d)}
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng, theirs = np.random.default_rng(0), set()
    for _ in range(300):  # in all positions, those that ever touch
        data.qpos[:] = rng.normal(size=model.nq) * 0.3
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        mujoco.mj_forward(model, data)
        names = [[model.geom(int(g)).name for g in con.geom] for con in data.contact]
        theirs |= {frozenset(pair) for pair in names}
    assert ours == theirs
    if "pair" in contact:
        pair = next(p for p in touching_pairs(d) if {d.shapes[p.first].name, d.shapes[p.second].name} == {"a", "b"})
        assert pair.friction == 0.3


def test_distances_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    kinds = {"sphere": "0.2", "capsule": "0.1 0.3", "box": "0.2 0.3 0.1", "plane": "1 1 1"}
    rng = np.random.default_rng(1)
    for one, other in itertools.combinations_with_replacement(kinds, 2):
        if one == "plane":
            continue
        text = f"""<mujoco><worldbody><geom name="g" type="{other}" size="{kinds[other]}"/><body name="a"><freejoint/>
        <geom name="f" type="{one}" size="{kinds[one]}"/></body></worldbody></mujoco>"""
        robot, model = sarrus.loads(text), mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        for _ in range(40):
            q = robot.normalize(rng.normal(size=7))
            data.qpos[:] = [*q[4:], q[3], *q[:3]]
            mujoco.mj_forward(model, data)
            theirs = mujoco.mj_geomDistance(model, data, model.geom("f").id, model.geom("g").id, 9.0, None)
            if theirs > 1e-3:
                assert robot.contacts(q, within=9.0).distance.min() == pytest.approx(theirs, abs=2e-6)


@pytest.mark.parametrize("name", ["m.zip", "m.stl", "m.dae", "m.3mf", "m.off"])
def test_meshes_are_of_known_formats(name, tmp_path):
    """No archives, whatever their names, and no other formats that trimesh reads."""
    pytest.importorskip("trimesh")
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr(
            "a.stl",
            "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid x\n",
        )
    with pytest.raises(
        ValueError, match=r"the file is an archive; expected one of \.stl, \.obj, \.dae, \.glb, \.gltf, \.ply"
    ):
        mesh_files.opened(tmp_path / name)
    with pytest.raises(sarrus.ModelError, match="the file is an archive"):
        mesh_files.hull(Mesh(str(tmp_path / name)))
    (tmp_path / "m.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    with pytest.raises(ValueError, match="the file is of another format"):
        mesh_files.opened(tmp_path / "m.off")


def glb(document):
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    head = b"glTF" + struct.pack("<II", 2, 20 + len(text)) + struct.pack("<I", len(text)) + b"JSON"
    return head + text


@pytest.mark.parametrize(("count", "nodes"), [(10**12, 1), (10**6, 1000)])
def test_meshes_that_declare_more_than_is_read(count, nodes, tmp_path):
    """By an accessor without numbers, and by many instances of one mesh."""
    pytest.importorskip("trimesh")
    accessor = {"componentType": 5126, "type": "VEC3", "count": count}
    mesh = {"primitives": [{"attributes": {"POSITION": 0}}]}
    shown = {"nodes": [{"mesh": 0}] * nodes, "scenes": [{"nodes": [*range(nodes)]}], "scene": 0}
    (tmp_path / "m.glb").write_bytes(
        glb({"asset": {"version": "2.0"}, "accessors": [accessor], "meshes": [mesh], **shown})
    )
    with pytest.raises(ValueError, match=r"the file declares .*e\+.. numbers; expected at most"):
        mesh_files.opened(tmp_path / "m.glb")
