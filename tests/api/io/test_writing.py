"""URDF, MJCF and SDF: a written model is the same mechanism for sarrus' readers and for MuJoCo, and omissions are reported."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Inertia, ModelError, ModelWarning, Transform
from sarrus.io.outline import tree_links
from tests.gallery import made
from tests.random_mechanisms import ALL_JOINTS, random_mechanism, random_state

BALL = Inertia.sphere(1.0, 0.1)
EARTH = (0.0, 0.0, -9.81)

# what a format cannot say of the gallery
ROLLING = {"rolling_disc": "constraint 'contact: Rolling", "whipple_bicycle": "constraint 'rear contact: Rolling"}
LOST = {
    ".urdf": ROLLING
    | {
        "cable_platform": r"'cable1: Cable\(.*loop joints can be",
        "free_flyer": "stiffness of joint 'left1 hinge'",
        "macro_micro_arm": "stiffness of joint 'yaw'",
        "gripper": "stiffness of joint 'left_link'",
        "sampler": "stiffness of joint 'swing'",
    },
    ".xml": ROLLING
    | {
        "tsai_3upu": r"'top2: Universal\(.*loop joints can be",
        "cable_platform": r"'cable1: Cable\(.*loop joints can be",
    },
    ".sdf": ROLLING,
}
# with or without losses no SDF has them
CABLES = ("cable_platform",)
# MuJoCo refuses bodies that move and have no mass
MASSLESS = ("hslm",)


def on_earth(robot):
    return sarrus.Mechanism(replace(robot.description, gravity=EARTH))


def save(robot, path, **options):
    """Save, and ignore warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot.save(path, **options)


def read(path):
    side = path.with_suffix(".yaml")
    return sarrus.load(path, loops=side) if path.suffix == ".urdf" and side.exists() else sarrus.load(path)


def counterpart(robot, other, q, v):
    """Return the state of the read model that corresponds to q and v of the written one, joint by joint."""
    q1, v1 = other.neutral(), np.zeros(other.nv)

    def put(name, x, dx):
        joint = other.joint(name)
        q1[joint.q_slice], v1[joint.v_slice] = x, dx

    for name, link in tree_links(robot).items():
        joint = robot.joint(name)
        x, dx, kind = q[joint.q_slice], v[joint.v_slice], joint.type.kind
        if kind == "Fixed":
            continue
        if name in other.joints and other.joint(name).type.kind == kind:
            put(name, x, dx)
        elif kind == "Helical":
            put(name, x, dx)
            put(f"{name}_slide", joint.type.pitch * x, joint.type.pitch * dx)
        elif len(link.axes) == 1:
            put(name, x, dx)
        else:
            if kind == "Planar":  # v is along the body's axes here, along the plane's there
                c, s = np.cos(x[2]), np.sin(x[2])
                dx = np.array([c * dx[0] - s * dx[1], s * dx[0] + c * dx[1], dx[2]])
            for k in range(len(x)):
                put(f"{name}_{k + 1}", x[k], dx[k])
    return q1, v1


def check_same_motion(robot, other, q, v, q1, v1):
    """Check poses, kinetic energy and the power of gravity; loops, and degrees of freedom."""
    for frame in robot.frames:
        if frame in other.frames:
            assert_allclose(other.pose(q1, frame), robot.pose(q, frame), atol=1e-12)
    M = robot.mass_matrix(q)
    assert_allclose(v1 @ other.mass_matrix(q1) @ v1, v @ M @ v, atol=1e-12 * np.abs(M).max() * (v @ v))
    power = v @ robot.gravity_forces(q)
    assert_allclose(v1 @ other.gravity_forces(q1), power, atol=1e-10 * max(1.0, abs(power)))
    if robot.nc:
        assert np.abs(other.constraint_residual(q1)).max() < 1e-12
        assert np.abs(other.constraint_jacobian(q1) @ v1).max() < 1e-11
        assert freedoms(other, q1) == freedoms(robot, q)


def freedoms(robot, q):
    s = np.linalg.svd(robot.constraint_jacobian(q), compute_uv=False)
    return robot.nv - int((s > 1e-9 * s.max(initial=1.0)).sum())


GALLERY = sarrus.mechanisms.__all__


@pytest.mark.parametrize("name", [name for name in GALLERY if name not in LOST[".urdf"]])
def test_gallery_as_urdf(name, tmp_path):
    robot = on_earth(made(name))
    save(robot, tmp_path / "robot.urdf")
    other = read(tmp_path / "robot.urdf")
    rng = np.random.default_rng(0)
    q = robot.assemble() if robot.nc else robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    v = robot.project_velocity(q, rng.normal(size=robot.nv))
    check_same_motion(robot, other, q, v, *counterpart(robot, other, q, v))
    motors = {name if name in robot.joints else name.rpartition("_")[0] for name in other.actuated}  # one an axis
    assert motors == set(robot.actuated) and set(robot.frames) <= set(other.frames)
    assert not other.warnings or name == "wren_platform" or all("has no <limit>" in w for w in other.warnings)


@pytest.mark.parametrize("seed", range(4))
def test_trees_of_all_joints_as_urdf(seed, tmp_path):
    robot = on_earth(random_mechanism(seed, bodies=17, friction=False, floating=seed % 2 == 1))
    save(robot, tmp_path / "robot.urdf")
    other = read(tmp_path / "robot.urdf")
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    check_same_motion(robot, other, q, v, *counterpart(robot, other, q, v))


@pytest.mark.parametrize("name", [name for name in GALLERY if name not in (*LOST[".sdf"], *CABLES)])
def test_gallery_as_sdf(name, tmp_path):
    """The file's pose is that of assemble(); accelerations from rest there compare masses, joints and loops."""
    robot = made(name)
    save(robot, tmp_path / "robot.sdf")
    other = read(tmp_path / "robot.sdf")
    rows = [r for name in robot.loop_joints for r in range(robot.nc)[robot.constraint(name).rows]]
    closed = np.abs(robot.constraint_residual(robot.neutral())[rows]).max(initial=0) < 1e-12
    if closed and robot.nc and np.abs(robot.constraint_residual(robot.neutral())).max() > 1e-12:
        pytest.skip("all coordinates zero, distances are not kept")
    check_accelerations(robot, other, robot.neutral() if closed else robot.assemble())


@pytest.mark.parametrize("seed", [0, 2, 4, 6])
def test_trees_of_all_joints_as_sdf(seed, tmp_path):
    robot = random_mechanism(seed, bodies=17, joints=[kind for kind in ALL_JOINTS if kind != "free"], backward=0.3)
    save(robot, tmp_path / "robot.sdf")
    check_accelerations(robot, read(tmp_path / "robot.sdf"), robot.neutral())


def check_accelerations(robot, other, q):
    q1 = other.neutral()
    for name, home in other.description.home:
        q1[other.joint(name).q_slice] = home
    still, still1 = np.zeros(robot.nv), np.zeros(other.nv)
    a, a1 = robot.forward_dynamics(q, still, still), other.forward_dynamics(q1, still1, still1)
    assert robot.nc == 0 or freedoms(other, q1) == freedoms(robot, q)
    for frame in robot.frames:
        assert_allclose(other.pose(q1, frame), robot.pose(q, frame), atol=1e-12)
        A, A1 = (
            m.jacobian(at, frame, expressed_in="world_aligned") @ x for m, at, x in ((robot, q, a), (other, q1, a1))
        )
        assert_allclose(A1, A, atol=1e-10 * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("name", [name for name in GALLERY if name not in LOST[".xml"]])
def test_gallery_as_mjcf(name, tmp_path):
    """By sarrus' reader: poses, mass matrix in the order of names, loops if they have coordinates."""
    robot = made(name)
    save(robot, tmp_path / "robot.xml")
    other = read(tmp_path / "robot.xml")
    rng = np.random.default_rng(0)
    q = robot.assemble() if robot.nc else robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    v = robot.project_velocity(q, rng.normal(size=robot.nv))
    check_same_motion(robot, other, q, v, *counterpart(robot, other, q, v))


# ---- MuJoCo ------------------------------------------------------------------------------------------------------


def check_mujoco(robot, path, seed=0):
    """Check poses of the bodies and the mass matrix at a random state, with coordinates and velocities converted joint by joint."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    T = np.zeros((m.nv, robot.nv))  # MuJoCo's velocities from ours
    for name, link in tree_links(robot).items():
        joint = robot.joint(name)
        x, columns = q[joint.q_slice], joint.v_slice
        near, far = (Transform.from_matrix(robot.pose(q, body)) for body in (link.inner, link.outer))
        if joint.type.kind == "Free":
            at, v = m.joint(name).qposadr[0], m.joint(name).dofadr[0]
            d.qpos[at : at + 7] = [*far.translation, *wxyz(far.rotation)]
            J = robot.jacobian(q, link.outer, expressed_in="world_aligned")
            T[v : v + 3], T[v + 3 : v + 6] = J[3:], far.rotation.T @ J[:3]
        elif joint.type.kind == "Spherical":
            at, v = m.joint(name).qposadr[0], m.joint(name).dofadr[0]
            d.qpos[at : at + 4] = wxyz(link.place.rotation.T @ (near.inverse() @ far).rotation)
            sign = -1.0 if link.backward else 1.0
            in_far = link.end.rotation.T if not link.backward else far.rotation.T @ near.rotation @ link.start.rotation
            T[v : v + 3, columns] = sign * in_far
        else:
            pitch = getattr(joint.type, "pitch", 1.0)
            names = {1: [name]}.get(len(link.axes), [f"{name}_{k + 1}" for k in range(joint.type.nq)])
            names = [name, f"{name}_slide"] if joint.type.kind == "Helical" else names
            rates = np.eye(joint.type.nv)
            if joint.type.kind == "Planar":
                c, s = np.cos(x[2]), np.sin(x[2])
                rates = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
            if joint.type.kind == "Helical":
                x, rates = np.array([x[0], pitch * x[0]]), np.array([[1.0], [pitch]])
            for k, one in enumerate(names):
                if joint.type.nv:
                    d.qpos[m.joint(one).qposadr[0]] = x[k]
                    T[m.joint(one).dofadr[0], columns] = rates[k]
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    ours = robot.mass_matrix(q)
    assert_allclose(T.T @ M @ T, ours, atol=1e-12 * np.abs(ours).max())
    for body in robot.bodies:
        assert_allclose(d.body(body).xpos, robot.pose(q, body)[:3, 3], atol=1e-12)
        assert_allclose(d.body(body).xmat.reshape(3, 3), robot.pose(q, body)[:3, :3], atol=1e-12)
    return m, d


def wxyz(rotation):
    x, y, z, w = sarrus.Rotation(rotation).quaternion
    return [w, x, y, z]


@pytest.mark.parametrize("name", [name for name in GALLERY if name not in {**LOST[".xml"], **dict.fromkeys(MASSLESS)}])
def test_mujoco_agrees_on_the_gallery(name, tmp_path):
    robot = made(name)
    save(robot, tmp_path / "robot.xml")
    m, d = check_mujoco(robot, tmp_path / "robot.xml")
    mujoco = pytest.importorskip("mujoco")
    if robot.nc and all(
        robot.joint(j).type.kind in ("Revolute", "Prismatic", "Fixed", "Universal") for j in robot.joints
    ):
        q = robot.assemble()  # there the equalities hold
        for joint in robot.joints:
            for k, x in enumerate(q[robot.joint(joint).q_slice]):
                d.qpos[m.joint(joint if robot.joint(joint).type.nq == 1 else f"{joint}_{k + 1}").qposadr[0]] = x
        mujoco.mj_forward(m, d)
        assert np.abs(d.efc_pos[: d.ne]).max() < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_mujoco_agrees_on_trees(seed, tmp_path):
    joints = [kind for kind in ALL_JOINTS if kind != "free"]
    robot = random_mechanism(seed, bodies=17, joints=joints, springs=True, backward=0.3, floating=False)
    save(robot, tmp_path / "robot.xml")
    check_mujoco(robot, tmp_path / "robot.xml", seed)


def test_mujoco_agrees_on_what_floats(tmp_path):
    b = sarrus.Builder("floats")
    b.add_body("trunk", Inertia.box(3.0, (0.1, 0.2, 0.3)))
    b.add_body("arm", BALL)
    b.add_joint("float", sarrus.Free(), "ground", "trunk")
    b.add_joint("ball", sarrus.Spherical(damping=0.1), "trunk", "arm", at_parent=(0.1, 0, 0))
    b.set_home({"float": [0, 0, 0.6, 0.8, 1, 2, 3], "ball": [0.6, 0, 0, 0.8]})
    robot = b.build()
    robot.save(tmp_path / "robot.xml")
    m, _ = check_mujoco(robot, tmp_path / "robot.xml")
    assert_allclose(m.key("home").qpos, [1, 2, 3, 0.8, 0, 0, 0.6, 0.8, 0.6, 0, 0], atol=1e-14)


def test_mujoco_agrees_on_forces(tmp_path):
    """Damping, springs along joints and between points, armature: accelerations at a state with velocities."""
    mujoco = pytest.importorskip("mujoco")
    b = sarrus.Builder("forces", gravity=(0.1, 0.2, -3.0))
    for k, axis in enumerate(("y", "x", (1, 2, 3))):
        b.add_body(
            f"b{k}", Inertia.box(1.0 + k, (0.1, 0.2, 0.3)).transformed(Transform.from_rpy(0.1, 0.2, 0.3, (0.1, 0, 0)))
        )
        joint = sarrus.Revolute(axis, damping=0.3, armature=0.1, stiffness=2.0, rest=0.2)
        b.add_joint(
            f"j{k}", joint, f"b{k - 1}" if k else "ground", f"b{k}", at_parent=(0.3, 0, 0.1), at_child=(0, 0.05, 0)
        )
    b.add_spring("coil", ("ground", (0, 0, 1)), ("b2", (0.1, 0, 0)), stiffness=30.0, rest_length=0.2, damping=0.7)
    robot = b.build()
    robot.save(tmp_path / "robot.xml")
    m, d = check_mujoco(robot, tmp_path / "robot.xml")
    d.qpos[:], d.qvel[:] = [0.3, -0.4, 0.5], [1.0, 2.0, -1.0]
    mujoco.mj_forward(m, d)
    assert_allclose(d.qacc, robot.forward_dynamics(d.qpos, d.qvel, np.zeros(3)), rtol=1e-9)


# ---- everything that has a word --------------------------------------------------------------------------------------


def rich():
    b = sarrus.Builder("rich")
    for k in range(3):
        b.add_body(f"b{k}", BALL)
    b.add_joint(
        "j0",
        sarrus.Revolute("z", limits=(-1, 2), effort_limit=5, damping=0.1, friction=0.2),
        "ground",
        "b0",
        actuated=True,
    )
    b.add_joint("j1", sarrus.Prismatic("x", limits=(-0.1, 0.2), velocity_limit=3), "b0", "b1", at_parent=(0.1, 0, 0))
    b.add_joint(
        "j2",
        sarrus.Revolute("y"),
        "b1",
        "b2",
        at_child=Transform.from_rpy(0.1, 0.2, 0.3, (0.1, 0.2, 0.3)),
        actuated=True,
    )
    b.add_coupler("gear", {"j0": 1.0, "j1": 2.0}, offset=0.05)
    b.add_frame("tip", "b2", Transform.from_rpy(0.3, 0.2, 0.1, (1, 2, 3)))
    b.add_visual("b0", sarrus.shapes.Box((0.1, 0.2, 0.3)), (0, 0, 1), color="#336699")
    b.add_visual("b1", sarrus.shapes.Cylinder(0.1, 0.5))
    b.add_visual("b2", sarrus.shapes.Sphere(0.2))
    return b


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf"])
def test_what_all_formats_say(suffix, tmp_path):
    robot = rich().build()
    save(robot, tmp_path / f"robot{suffix}")
    other = read(tmp_path / f"robot{suffix}")
    assert set(other.actuated) == {"j0", "j2"} and other.warnings == ()
    types = {name: other.joint(name).type for name in ("j0", "j1", "j2")}
    assert [x.tolist() for x in types["j0"].limits] == [[-1.0], [2.0]] and types["j0"].effort_limit == 5
    assert types["j0"].damping == 0.1 and types["j0"].friction == 0.2
    assert [x.tolist() for x in types["j1"].limits] == [[-0.1], [0.2]]
    q = np.array([0.3, -0.125, 0.7])
    q1 = other.neutral()
    for name, x in zip(("j0", "j1", "j2"), q, strict=True):
        q1[other.joint(name).q_slice] = x
    assert_allclose(other.pose(q1, "b2"), robot.pose(q, "b2"), atol=1e-14)
    if suffix != ".xml":  # whose sites are no frames to a reader of bodies
        assert_allclose(other.pose(q1, "tip"), robot.pose(q, "tip"), atol=1e-14)
    assert_allclose(other.constraint_residual(q1), [0.0], atol=1e-14)
    shapes = [(v.body, type(v.shape).__name__, v.color) for v in other.description.visuals]
    assert [s[:2] for s in shapes] == [("b0", "Box"), ("b1", "Cylinder"), ("b2", "Sphere")]
    assert_allclose(shapes[0][2], (0.2, 0.4, 0.6, 1.0))


def test_a_sidecar_is_json_and_names_the_motors(tmp_path):
    robot = sarrus.mechanisms.four_bar()
    save(robot, tmp_path / "a.urdf")
    assert json.loads((tmp_path / "a.yaml").read_text()) == {
        "closed_loop": [["pin2_A", "pin2_B"]], "type": ["revolute"], "name_mot": ["motor"],
    }  # fmt: skip
    with_motor = sarrus.load(tmp_path / "a.urdf", loops="a.yaml")
    assert with_motor.actuated == ("motor",) and with_motor.nc == 5


def test_a_plain_urdf_needs_nothing_beside(tmp_path):
    b = sarrus.Builder("arm")
    b.add_body("base", BALL)
    b.add_body("arm", BALL)
    b.add_joint("mount", sarrus.Fixed(), "ground", "base")
    b.add_joint("hinge", sarrus.Revolute("z"), "base", "arm", actuated=True)
    b.build().save(tmp_path / "arm.urdf")
    assert [p.name for p in tmp_path.iterdir()] == ["arm.urdf"]
    other = sarrus.load(tmp_path / "arm.urdf")
    assert other.bodies == ("base", "arm") and other.actuated == ("hinge",) and not other.warnings


def test_three_wheels_are_a_tendon(tmp_path):
    """Couplers of three joints: Drake's tendon in URDF and SDF, a fixed tendon in MJCF."""
    b = sarrus.Builder("differential")
    for k in range(3):
        b.add_body(f"wheel{k}", BALL)
        b.add_joint(f"axle{k}", sarrus.Revolute("z"), "ground", f"wheel{k}", at_parent=(0.2 * k, 0, 0), actuated=True)
    b.add_coupler("cage", {"axle0": 1.0, "axle1": 1.0, "axle2": -2.0}, offset=0.25)
    for suffix in (".urdf", ".sdf", ".xml"):
        b.build().save(tmp_path / f"a{suffix}")
        other = read(tmp_path / f"a{suffix}")
        assert_allclose(np.abs(other.constraint_residual([0.5, 0.5, 0.375])), [0.0], atol=1e-14)
        assert_allclose(
            np.abs(other.constraint_jacobian(np.zeros(3))) / np.abs(other.constraint_jacobian(np.zeros(3))).min(),
            [[1, 1, 2]],
        )


def test_meshes_are_named_from_where_the_file_lies(tmp_path):
    b = sarrus.Builder("a")
    b.add_body("a", BALL)
    b.add_joint("j", sarrus.Revolute("z"), "ground", "a", actuated=True)
    b.add_visual("a", sarrus.shapes.Mesh("a.stl", (1, 1, -2), str(tmp_path / "meshes")))
    robot = b.build()
    for suffix in (".urdf", ".sdf"):
        robot.save(tmp_path / f"a{suffix}")
        shape = read(tmp_path / f"a{suffix}").description.visuals[0].shape
        assert (shape.file, shape.scale) == ("meshes/a.stl", (1.0, 1.0, -2.0))
    b = robot.to_builder()
    for file in ("a.stl", "b.stl"):
        b.add_visual("a", sarrus.shapes.Mesh(file))
    with pytest.warns(
        ModelWarning, match=r"MJCF cannot represent, and the file omits: meshes 'a.stl', 'b.stl'$"
    ) as told:
        b.build().save(tmp_path / "a.xml")
    assert len(told) == 1


@pytest.mark.parametrize("limits", [(0, 0), (0.5, 0.5)])
@pytest.mark.parametrize("suffix", [".json", ".urdf", ".xml", ".sdf", ".usda"])
def test_limits_without_room_are_kept_or_told_of(suffix, limits, tmp_path):
    """Limits with equal bounds are kept, or reported."""
    if suffix == ".usda":
        pytest.importorskip("pxr")
    b = sarrus.Builder("held")
    b.add_body("a", BALL)
    b.add_joint("j", sarrus.Revolute("y", limits=limits), "ground", "a", actuated=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        b.build().save(tmp_path / f"held{suffix}")
    kept = sarrus.load(tmp_path / f"held{suffix}").joint("j").type.limits
    assert any("are equal" in str(one.message) for one in told) == (suffix in (".urdf", ".xml"))
    if (suffix, limits) == (".urdf", (0.5, 0.5)):
        assert kept is None
    else:
        np.testing.assert_array_equal(np.ravel(kept), limits)


@pytest.mark.parametrize("suffix", [".json", ".urdf", ".xml", ".sdf", ".usda"])
def test_what_cannot_move_is_read_again(suffix, tmp_path):
    """A model without coordinates has an empty home."""
    if suffix == ".usda":
        pytest.importorskip("pxr")
    robot = sarrus.loads('<mujoco><worldbody><body name="post"><geom size=".1"/></body></worldbody></mujoco>')
    save(robot, tmp_path / f"post{suffix}")
    assert read(tmp_path / f"post{suffix}").bodies[-1] == "post" and not sarrus.load(tmp_path / f"post{suffix}").nq


# ---- what cannot be said -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "name"), [(suffix, name) for suffix, names in LOST.items() for name in names])
def test_what_changes_the_motion_is_an_error(suffix, name, tmp_path):
    robot = on_earth(made(name))
    with pytest.raises(ModelError, match=LOST[suffix][name]):
        save(robot, tmp_path / f"a{suffix}")
    assert not list(tmp_path.iterdir())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        robot.save(tmp_path / f"a{suffix}", lossy=True)
    assert any(re.search(LOST[suffix][name], str(one.message)) for one in said)
    assert (tmp_path / f"a{suffix}").exists()


def hinge(gravity=EARTH, **terms):
    b = sarrus.Builder("hinge", gravity=gravity)
    b.add_body("a", BALL)
    b.add_joint("j", terms.pop("joint", None) or sarrus.Revolute("z", **terms), "ground", "a", actuated=True)
    return b


def looped(joint, **options):
    b = sarrus.Builder("looped")
    for name in "ab":
        b.add_body(name, BALL)
        b.add_joint(name, sarrus.Revolute("z"), "ground", name, actuated=True)
    b.add_joint("top", joint, "a", "b", loop=True, **options)
    return b


ERRORS = {
    "gravity": (hinge((0, 0, -1)), ".urdf", r"gravity \(0.0, 0.0, -1.0\)"),
    "springs": (hinge(stiffness=1, armature=1), ".urdf", "stiffness of joint 'j'"),
    "uneven damping": (hinge(joint=sarrus.Spherical(damping=(1, 2, 3))), ".urdf", "differences between directions in damping of joint 'j'"),
    "uneven damping in MJCF": (hinge(joint=sarrus.Spherical(damping=(1, 2, 3))), ".xml", "differences between directions in damping of joint 'j'"),
    "damped floating": (hinge(joint=sarrus.Free(damping=1)), ".xml", "damping of Free joint 'j'"),
    "damped floating in SDF": (hinge(joint=sarrus.Free(damping=1)), ".sdf", r"damping of joint 'j' \(Free\)"),
    "a spring of a ball": (hinge(joint=sarrus.Spherical(stiffness=1)), ".sdf", "stiffness of joint 'j'"),
    "armature of two axes": (hinge(joint=sarrus.Universal("x", "y", armature=1)), ".sdf", r"armature of joint 'j' \(Universal\)"),
    "a closing slide": (looped(sarrus.Prismatic("x")), ".urdf", r"'top: Prismatic\('x'\).* Fixed, Spherical, Revolute and Universal"),
    "a closing slide in MJCF": (looped(sarrus.Prismatic("x")), ".xml", "loop joints can be Fixed, Spherical and Revolute"),
    "a damped closing joint": (looped(sarrus.Revolute("x", damping=1)), ".urdf", "damping of loop joint 'top'"),
    "a damped closing joint in MJCF": (looped(sarrus.Revolute("x", damping=1)), ".xml", "damping of loop joint 'top'"),
    "a motor that closes": (looped(sarrus.Revolute("x"), actuated=True), ".xml", "the motor of loop joint 'top'"),
    "a motor that closes in URDF": (looped(sarrus.Revolute("x"), actuated=True), ".urdf", "the motor of loop joint 'top'"),
}  # fmt: skip


@pytest.mark.parametrize(("builder", "suffix", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(builder, suffix, message, tmp_path):
    cannot = {".urdf": "URDF", ".xml": "MJCF", ".sdf": "SDF"}[suffix] + " cannot represent: "
    with pytest.raises(ModelError, match=cannot + r".*" + message):
        builder.build().save(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_a_loop_stays_closed_without_what_acts_in_it(suffix, tmp_path):
    robot = looped(sarrus.Revolute("x", damping=1)).build()
    save(robot, tmp_path / f"a{suffix}", lossy=True)
    other = read(tmp_path / f"a{suffix}")
    assert freedoms(other, other.neutral()) == freedoms(robot, robot.neutral()) == 1


def homed():
    b = hinge()
    b.set_home({"j": 0.5})
    b.set_configuration("up", {"j": 1.0})
    return b


WARNINGS = {
    "home": (homed(), ".urdf", "configurations 'home', 'up'"),
    "home in SDF": (homed(), ".sdf", "configurations 'home', 'up'"),
    "limits on one side": (hinge(limits=(-np.inf, 1)), ".xml", "limits of joint 'j' on one side only"),
    "velocity limit": (hinge(velocity_limit=1), ".xml", "the velocity limit of joint 'j'"),
    "limits of a ball": (hinge(joint=sarrus.Spherical(effort_limit=1)), ".sdf", r"limits of joint 'j' \(Spherical\)"),
    "a driven ball": (hinge(joint=sarrus.Spherical()), ".xml", r"the motor of joint 'j' \(Spherical\)"),
    "closing limits": (looped(sarrus.Revolute("x", limits=(-1, 1))), ".urdf", "limits of loop joint 'top'"),
    "planar velocities": (hinge(joint=sarrus.Planar("z")), ".sdf", "velocities of joint 'j' along the body's axes"),
}  # fmt: skip


@pytest.mark.parametrize(("builder", "suffix", "message"), WARNINGS.values(), ids=WARNINGS)
def test_warnings(builder, suffix, message, tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        builder.build().save(tmp_path / f"a{suffix}")
    wanted = f"cannot represent, and the file omits: .*{message}"
    assert any(re.search(wanted, str(one.message)) and one.category is ModelWarning for one in said)


def test_configurations_are_keyframes(tmp_path):
    homed().build().save(tmp_path / "a.xml")
    other = sarrus.load(tmp_path / "a.xml")
    assert set(dict(other.description.configurations)) >= {"home", "up"} and other.configuration("up").tolist() == [1.0]


@pytest.mark.parametrize("tendon", [False, True])
def test_what_counts_from_where_an_sdf_is_closed(tendon, tmp_path):
    """Limits, springs and couplers of a five-bar whose loop is open if all coordinates are zero."""
    plain = sarrus.mechanisms.five_bar()
    start = plain.assemble()
    q0 = {name: float(start[plain.joint(name).q_slice][0]) for name in plain.joints}
    b = plain.to_builder()
    b.set_joint(
        "left_motor",
        sarrus.Revolute("y", limits=(q0["left_motor"] - 0.5, q0["left_motor"] + 0.25), stiffness=30.0, rest=0.3),
    )
    third = {"left_elbow": 0.5} if tendon else {}
    terms = {"left_motor": 1.0, "right_motor": 0.7, **third}
    b.add_coupler("gear", terms, offset=sum(c * q0[name] for name, c in terms.items()))
    robot = b.build()
    assert min(abs(q0[name]) for name in terms) > 0.1
    save(robot, tmp_path / "a.sdf")
    other = sarrus.load(tmp_path / "a.sdf")
    q = robot.assemble()
    assert_allclose(other.constraint_residual(other.neutral()), 0.0, atol=1e-12)
    low, high = (float(bound[0]) for bound in other.joint("left_motor").type.limits)
    zero = float(q[robot.joint("left_motor").q_slice][0])
    assert_allclose((low, high), (q0["left_motor"] - 0.5 - zero, q0["left_motor"] + 0.25 - zero), atol=1e-12)
    check_accelerations(robot, other, q)


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf"])
def test_names_that_mean_something_else_there(suffix, tmp_path):
    """A body called "world", one with the name of a nested model, and a joint with the name of its body."""
    b = sarrus.Builder("names")
    for name in ("world", "arm::hand", "finger"):
        b.add_body(name, BALL)
    b.add_joint("j", sarrus.Revolute("z"), "ground", "world", actuated=True)
    b.add_joint("a::b", sarrus.Revolute("y"), "world", "arm::hand", at_parent=(1, 0, 0), actuated=True)
    b.add_joint("finger", sarrus.Revolute("x"), "arm::hand", "finger", at_parent=(1, 0, 0), actuated=True)
    b.add_distance("rod", ("ground", (0, 0, 0)), ("world", (1, 0, 0)), length=1.0)
    robot = b.build()
    with pytest.warns(ModelWarning, match=r"names that are replaced: 'world' \('world_'\)"):
        robot.save(tmp_path / f"a{suffix}")
    if suffix == ".xml":
        return
    other = read(tmp_path / f"a{suffix}")
    assert set(other.bodies) >= {"world_", "arm_hand" if suffix == ".sdf" else "arm::hand", "finger"}
    assert other.nv == 3 and other.nc == 1
    q = [0.1, 0.2, 0.3]
    assert_allclose(other.pose(q, "finger"), robot.pose(q, "finger"), atol=1e-14)
    assert_allclose(other.mass_matrix(q), robot.mass_matrix(q), rtol=1e-12)


def test_what_floats_from_a_body_floats_in_the_world(tmp_path):
    """MJCF and SDF support only a floating body in the world; poses, and keyframes in MuJoCo's order, are unchanged."""
    b = sarrus.Builder("free")
    for name in ("a", "stone", "b"):
        b.add_body(name, BALL)
    b.add_joint("ja", sarrus.Revolute("z"), "ground", "a")
    b.add_joint("js", sarrus.Free(), "a", "stone", at_parent=(1, 2, 3))
    b.add_joint("jb", sarrus.Revolute("y"), "a", "b", at_parent=(1, 0, 0))
    b.set_home({"ja": 0.5, "jb": 0.25, "js": [0, 0, 0.6, 0.8, 1, 1, 1]})
    robot = b.build()
    q = robot._at(robot.description.home)
    for suffix in (".xml", ".sdf"):
        save(robot, tmp_path / f"a{suffix}")
    other = sarrus.load(tmp_path / "a.xml")
    assert_allclose(other.pose(other.configuration("home"), "stone"), robot.pose(q, "stone"), atol=1e-12)
    assert_allclose(other.pose(other.configuration("home"), "b"), robot.pose(q, "b"), atol=1e-12)
    other = sarrus.load(tmp_path / "a.sdf")
    at_zero = other._at(other.description.home)
    assert_allclose(other.pose(at_zero, "stone"), robot.pose(robot.neutral(), "stone"), atol=1e-12)


@pytest.mark.parametrize("name", ["a", "a.step", "a.yaml"])
def test_unknown_formats(name, tmp_path):
    with pytest.raises(
        ModelError, match=r"cannot write .*expected one of .*\.json, \.urdf, \.xml, \.sdf, \.usda, \.usd"
    ):
        sarrus.mechanisms.pendulum().save(tmp_path / name)


# ---- every kind of joint, wherever it is -------------------------------------------------------------------------------

KINDS = {
    "Fixed": sarrus.Fixed(),
    "Revolute": sarrus.Revolute("y"),
    "Prismatic": sarrus.Prismatic("x"),
    "Helical": sarrus.Helical("x", 0.1),
    "Cylindrical": sarrus.Cylindrical("x"),
    "Universal": sarrus.Universal("x", "y"),
    "Planar": sarrus.Planar("z"),
    "Spherical": sarrus.Spherical(),
    "Free": sarrus.Free(),
    "Gimbal of six": sarrus.Gimbal(("rx", "ry", "rz", "tx", "ty", "tz"), stiffness=[10.0] * 6),
    "Gimbal of two": sarrus.Gimbal(("rx", "tz")),
    "Gimbal of none": sarrus.Gimbal(()),
}


@pytest.mark.parametrize("suffix", [".json", ".urdf", ".xml", ".sdf"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_closes_a_loop_or_is_refused(kind, suffix, tmp_path):
    """A loop joint may have no rows, some, or six: it is written, or an error contains its name, lossy or not."""
    b = sarrus.Builder("loop")
    b.add_body("a", BALL)
    b.add_body("b", BALL)
    b.add_joint("j", sarrus.Spherical(), "ground", "a")
    b.add_joint("k", sarrus.Gimbal(("rx", "ry", "rz", "tx", "ty", "tz")), "a", "b", at_parent=(0.3, 0, 0))
    b.add_joint("closing", KINDS[kind], "ground", "b", loop=True)
    robot = b.build()
    try:
        save(robot, tmp_path / f"robot{suffix}")
    except ModelError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "'closing" in refused and suffix in (".urdf", ".xml")
        save(robot, tmp_path / f"robot{suffix}", lossy=True)
        read(tmp_path / f"robot{suffix}")
        return
    other = read(tmp_path / f"robot{suffix}")
    rows = robot.constraint("closing").rows
    held = len(range(robot.nc)[rows])
    assert freedoms(other, other.assemble() if other.nc else other.neutral()) == robot.nv - held


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("Spherical", "Free")])
def test_joints_passed_from_child_to_parent(kind, suffix, tmp_path):
    """The motion is unchanged; for a screw, the slide follows the rotation, whichever end the chain begins at."""
    b = sarrus.Builder("backward")
    b.add_body("b", BALL)
    b.add_body("a", Inertia(1.0, (0.1, 0.2, 0.3), 0.1 * np.eye(3)))
    b.add_joint("x", KINDS[kind], "b", "ground", at_parent=(0.1, 0.2, 0))
    b.add_joint("j", sarrus.Revolute("y"), "b", "a", at_parent=(0.3, 0, 0))
    if KINDS[kind].nv:
        b.set_configuration("there", {"x": np.linspace(0.1, 0.2, KINDS[kind].nq), "j": [0.3]})
    robot = b.build()
    path = tmp_path / f"robot{suffix}"
    save(robot, path, lossy=True)  # a URDF and its springs
    other = read(path)
    q, v = robot.integrate(robot.neutral(), np.linspace(0.2, 0.4, robot.nv)), np.linspace(1, 2, robot.nv)
    assert freedoms(other, other.neutral()) == robot.nv
    if suffix == ".urdf" or kind in ("Revolute", "Prismatic", "Helical"):
        q1, v1 = counterpart(robot, other, q, v)
        check_same_motion(robot, other, q, v, q1, v1)
    if suffix == ".xml" and KINDS[kind].nv:
        there, here = other.configuration("there"), robot.configuration("there")
        assert_allclose(other.pose(there, "a"), robot.pose(here, "a"), atol=1e-12)


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf", ".usda"])
@pytest.mark.parametrize("term", ["damping", "friction", "armature", "quadratic_damping", "cubic_damping"])
def test_forces_along_a_planar_joint_are_kept_or_refused(term, suffix, tmp_path):
    """In sarrus they act along the body's axes, in files along the plane's axes: a file is refused if the motion differs, and only then."""
    if suffix == ".usda":
        pytest.importorskip("pxr")
    path, push = tmp_path / f"robot{suffix}", {"b": (0.3, 0.2, 0.1, 4.0, 3.0, 2.0)}
    for values, ends in (
        ((3.0, 3.0, 0.5), ("ground", "b")),
        ((0.0, 3.0, 0.5), ("b", "ground")),
        ((0.0, 0.0, 0.5), ("ground", "b")),
    ):
        b = sarrus.Builder("puck")
        b.add_body("b", Inertia(1.0, (0.1, 0.2, 0.3), 0.1 * np.eye(3)))
        b.add_joint("j", sarrus.Planar("z", **{term: values}), *ends)
        robot = b.build()
        save(robot, path, lossy=True)
        other = read(path)
        q, v = np.array([0.1, -0.3, 1.0]), np.array([1.0, 0.5, 2.0])
        states = (robot, q, v), (other, *counterpart(robot, other, q, v))
        A, A1 = (m.acceleration(x, dx, m.forward_dynamics(x, dx, [0.0] * 3, wrenches=push), "b") for m, x, dx in states)
        if np.abs(A1 - A).max() < 1e-10:
            save(robot, path)
        else:
            with pytest.raises(ModelError, match=f"{term} of joint 'j'"):
                save(robot, path)


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".sdf"])
@pytest.mark.parametrize("loop", [False, True])
def test_joint_types_that_a_format_does_not_know(suffix, loop, tmp_path, monkeypatch):
    """An unknown joint type raises an error with its name, and is not written as a fixed joint."""
    b = sarrus.Builder("new")
    for name in "ab":
        b.add_body(name, BALL)
    b.add_joint("j", sarrus.Revolute("y"), "ground", "a")
    b.add_joint("k", sarrus.Revolute("y"), "a", "b", at_parent=(0.3, 0, 0))
    if not loop:
        b.add_body("c", BALL)
    b.add_joint("new", sarrus.Prismatic("x"), *(("ground", "b") if loop else ("b", "c")), loop=loop)
    robot = b.build()
    monkeypatch.setattr(sarrus.Prismatic, "kind", "Elliptic")
    with pytest.raises(ModelError, match=r"'new.*Elliptic"):
        save(robot, tmp_path / f"robot{suffix}")
    assert not list(tmp_path.iterdir())


def test_joint_types_that_pinocchio_does_not_know(monkeypatch):
    pytest.importorskip("pinocchio")
    robot = sarrus.mechanisms.pendulum()
    monkeypatch.setattr(sarrus.Revolute, "kind", "Elliptic")
    with pytest.raises(ModelError, match="type Elliptic"):
        sarrus.io.to_pinocchio(robot)


# ---- motors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".urdf", ".xml", ".sdf"])
@pytest.mark.parametrize("driven", ["ab", "a", "b", ""])
@pytest.mark.parametrize("linear", [True, False])
def test_motors_of_joints_that_follow(suffix, driven, linear, tmp_path):
    """A follower joint may have a motor too."""
    b = sarrus.Builder("belt")
    for k, name in enumerate("abc"):
        b.add_body(f"body {name}", BALL)
        hinge = sarrus.Revolute("y")
        b.add_joint(name, hinge, "ground", f"body {name}", at_parent=(k, 0, 0), actuated=name in driven, tree=True)
    b.add_coupler("belt", {"a": 1.0, "b": [-2.0] if linear else [-2.0, 0.5]}, offset=0.1)
    b.add_coupler("chain", {"a": 1.0, "c": 3.0})
    robot = b.build()
    path = tmp_path / f"robot{suffix}"
    if not linear and suffix in (".urdf", ".sdf"):
        with pytest.raises(ModelError, match="'belt"):
            save(robot, path)
        return
    save(robot, path)
    other = read(path)
    assert set(other.actuated) == set(robot.actuated) and other.nc == robot.nc
    q = {"a": 0.5, "b": 0.2, "c": -0.5 / 3}
    if linear:
        assert_allclose(other.constraint_residual([q[name] for name in other.joints if name in q]), 0, atol=1e-15)


@pytest.mark.parametrize("actuated", [False, True])
def test_what_floats_may_be_driven(actuated, tmp_path):
    b = sarrus.Builder("blimp")
    b.add_body("hull", BALL)
    b.add_joint("float", sarrus.Free(), "ground", "hull", actuated=actuated)
    b.add_body("fin", BALL)
    b.add_joint("hinge", sarrus.Revolute("y"), "hull", "fin", actuated=True)
    robot = b.build()
    robot.save(tmp_path / "robot.urdf")
    assert set(read(tmp_path / "robot.urdf").actuated) == set(robot.actuated)
    assert (tmp_path / "robot.yaml").exists() == actuated
