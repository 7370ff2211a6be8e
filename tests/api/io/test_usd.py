"""USD: stages written by pxr, compared with values by hand from UsdPhysics' documentation, and the writer's stages of robots."""

import math
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Inertia, ModelError, ModelWarning, Transform
from sarrus.io import mesh_files, usd
from sarrus.io.mesh_files import mass_properties
from tests.api.io.test_writing import KINDS, check_accelerations, check_same_motion, counterpart, freedoms, save
from tests.gallery import made
from tests.random_mechanisms import ALL_JOINTS, random_mechanism, random_state

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

TURN = Transform.from_rpy(0.3, -0.4, 0.5, (0.2, 0.1, -0.3))


def new_stage(metres=1.0, kilograms=1.0, up="Z"):
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilograms)
    UsdGeom.SetStageUpAxis(stage, up)
    return stage


def body(stage, path, place=Transform(), scale=None, mass=1.0, kind="Xform"):  # noqa: B008
    prim = stage.DefinePrim(path, kind)
    xform = UsdGeom.Xformable(prim)
    x, y, z, w = sarrus.Rotation(place.rotation).quaternion
    xform.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*place.translation))
    xform.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(w, x, y, z))
    if scale is not None:
        xform.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*scale))
    UsdPhysics.RigidBodyAPI.Apply(prim)
    if mass:
        api = UsdPhysics.MassAPI.Apply(prim)
        api.CreateMassAttr(mass)
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(0.1, 0.2, 0.25))
        api.CreateCenterOfMassAttr(Gf.Vec3f(0, 0, 0))
    return prim


def joint(stage, kind, path, ends, places=(Transform(), Transform())):  # noqa: B008
    made = getattr(UsdPhysics, f"{kind}Joint").Define(stage, path) if kind else UsdPhysics.Joint.Define(stage, path)
    for side, (end, place) in enumerate(zip(ends, places, strict=True)):
        if end:
            getattr(made, f"CreateBody{side}Rel")().SetTargets([Sdf.Path(end)])
        x, y, z, w = sarrus.Rotation(place.rotation).quaternion
        getattr(made, f"CreateLocalPos{side}Attr")(Gf.Vec3f(*map(float, place.translation)))
        getattr(made, f"CreateLocalRot{side}Attr")(Gf.Quatf(w, x, y, z))
    return made


def loaded(stage, **options):
    return sarrus.loads(stage.GetRootLayer().ExportToString(), **options)


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return function(*arguments, **options)


# ---- stages ----------------------------------------------------------------------------------------------------------


def test_units_of_a_pendulum():
    """Centimetres, grams and degrees, y up: every value by hand."""
    stage = new_stage(0.01, 0.001, "Y")
    bob = body(stage, "/bob", mass=2000.0)
    UsdPhysics.MassAPI(bob).GetCenterOfMassAttr().Set(Gf.Vec3f(0, -50, 0))
    UsdPhysics.MassAPI(bob).GetDiagonalInertiaAttr().Set(Gf.Vec3f(1e7, 2e7, 2.5e7))  # g cm²
    hinge = joint(stage, "Revolute", "/hinge", ("", "/bob"), (Transform(translation=(10, 0, 0)), Transform()))
    hinge.CreateAxisAttr("Z")
    hinge.CreateLowerLimitAttr(-90)
    hinge.CreateUpperLimitAttr(180)
    drive = UsdPhysics.DriveAPI.Apply(hinge.GetPrim(), "angular")
    drive.CreateMaxForceAttr(3e7)  # g cm²/s²
    drive.CreateStiffnessAttr(1e7)
    drive.CreateTargetPositionAttr(90)
    slider = joint(stage, "Prismatic", "/slider", ("/bob", "/block"))
    slider.CreateLowerLimitAttr(-25)
    body(stage, "/block", mass=500.0)
    robot = loaded(stage)
    assert robot.description.gravity == (0.0, -9.81, 0.0)
    bob = robot.description.bodies[0].inertia
    assert (bob.mass, bob.com.tolist()) == (2.0, [0.0, -0.5, 0.0])
    assert_allclose(np.diag(bob.about_com), [1.0, 2.0, 2.5], rtol=1e-15)
    assert_allclose(robot.joint("hinge").type.limits, [[-np.pi / 2], [np.pi]], rtol=1e-15)
    assert_allclose(robot.joint("hinge").type.effort_limit, [3.0], rtol=1e-14)
    assert_allclose(robot.joint("slider").type.limits, [[-0.25], [np.inf]])
    assert robot.actuated == ("hinge",)
    assert_allclose(robot.pose([0.0, 0.0], "bob")[:3, 3], [0.1, 0, 0], atol=1e-16)
    q = np.array([np.pi / 2, 0.0])
    assert_allclose(robot.gravity_forces(q)[0], 2.0 * 9.81 * 0.5, rtol=1e-12)  # the block is on the axis
    law = usd.drives(stage.GetRootLayer().ExportToString())["hinge"]
    assert_allclose(law, (1.0 * 180 / np.pi, 0.0, np.pi / 2, 0.0), rtol=1e-14)
    assert sum("belongs to a control law" in text for text in robot.warnings) == 2


@pytest.mark.parametrize("kind", ["Revolute", "Prismatic", "Spherical", "Fixed"])
@pytest.mark.parametrize("scale", [None, (2.0, 3.0, 0.5)])
def test_frames_of_joints(kind, scale):
    """Frame 1 is frame 0 moved by the joint; positions in a body have the body's scale."""
    stage = new_stage()
    places = TURN, Transform.from_rpy(-0.2, 0.1, 0.7, (0.4, -0.1, 0.25))
    body(stage, "/a", TURN, scale)
    body(stage, "/b", TURN @ TURN)
    made = joint(stage, kind, "/j", ("/a", "/b"), places)
    if kind in ("Revolute", "Prismatic"):
        made.CreateAxisAttr("Y")
    robot = loaded(stage)
    q = robot.neutral()
    part = robot.joint("j")
    motion = Transform()
    if kind == "Revolute":
        q[part.q_slice], motion = 0.3, Transform.from_rpy(0, 0.3, 0)
    elif kind == "Prismatic":
        q[part.q_slice], motion = 0.3, Transform(translation=(0, 0.3, 0))
    elif kind == "Spherical":
        motion = Transform.from_rpy(0.3, 0.2, 0.1)
        q[part.q_slice] = sarrus.Rotation(motion.rotation).quaternion
    size = np.ones(3) if scale is None else np.array(scale)
    X_0 = Transform(places[0].rotation, size * places[0].translation)
    expected = Transform.from_matrix(robot.pose(q, "a")) @ X_0 @ motion @ places[1].inverse()
    assert_allclose(robot.pose(q, "b"), expected.matrix, atol=1e-7)  # quaternions of 32 bits
    assert part.parent == "a" and part.child == "b"


def test_ends_of_joints_that_are_no_bodies():
    """A frame may be in the world, in a static prim, or in a prim that a body carries."""
    stage = new_stage()
    body(stage, "/a", TURN)
    body(stage, "/b", TURN)
    for path, of in (("/post", TURN), ("/a/handle", TURN)):
        prim = UsdGeom.Xform.Define(stage, path)
        prim.AddTransformOp().Set(Gf.Matrix4d(*of.matrix.T.ravel().tolist()))
    joint(stage, "Fixed", "/weld", ("/post", "/a"))
    joint(stage, "Revolute", "/hinge", ("/a/handle", "/b"))
    robot = loaded(stage)
    assert_allclose(robot.pose([0.0], "a"), TURN.matrix, atol=1e-15)
    assert_allclose(robot.pose([0.0], "b"), (TURN @ TURN).matrix, atol=1e-15)


def test_home_is_where_the_bodies_stand():
    stage = new_stage()
    for name, place in (
        ("a", TURN), ("b", TURN @ Transform.from_rpy(0.7, 0, 0)),
        ("c", TURN @ Transform.from_rpy(0.7, 0, 0, (0.25, 0, 0))), ("d", TURN @ Transform.from_rpy(0.1, 0.2, 0.3)),
    ):  # fmt: skip
        body(stage, f"/{name}", place)
    joint(stage, "Revolute", "/hinge", ("/a", "/b"))
    joint(stage, "Prismatic", "/slide", ("/a", "/c"), (Transform.from_rpy(0.7, 0, 0), Transform()))
    joint(stage, "Spherical", "/ball", ("/a", "/d"))
    robot = loaded(stage)
    home = robot.assemble() if robot.nc else robot._at(robot.description.home)
    for name in "abcd":
        world = UsdGeom.XformCache().GetLocalToWorldTransform(stage.GetPrimAtPath(f"/{name}"))
        assert_allclose(robot.pose(home, name), np.array(world).T, atol=1e-7)
    assert robot.joint("root_joint").kind == "Free"
    assert loaded(stage, floating_base=False).joint("root_joint").kind == "Fixed"
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath("/c"))
    assert loaded(stage).joint("root_joint").child == "c"
    UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath("/b")).CreateKinematicEnabledAttr(True)
    held = loaded(stage)
    assert held.joint("root_joint").kind == "Fixed" and held.joint("root_joint").child == "b"


LOCKS = [
    ("rotX",), ("rotX", "transX"), ("rotZ", "transX", "transY"), ("rotY", "transX", "transZ"), ("rotX", "rotY", "rotZ"), ("transY",),
    ("transX", "transZ"), ("rotZ", "transX"), ("rotX", "rotY", "transZ"), ("rotY", "rotZ"), ("rotX", "rotY", "rotZ", "transY"), (),
]  # fmt: skip


@pytest.mark.parametrize("free", LOCKS, ids=map(" ".join, LOCKS))
def test_general_joints_leave_what_no_limit_locks(free):
    """For the pose of frame 1 in frame 0, locked axes are fixed, limits are those of the axis, and all other axes are free."""
    stage, axes = new_stage(), [f"{way}{x}" for way in ("trans", "rot") for x in "XYZ"]
    body(stage, "/a", mass=2.0)
    made = joint(stage, "", "/j", ("", "/a"), (TURN, TURN.inverse()))
    for axis in axes:
        limit = UsdPhysics.LimitAPI.Apply(made.GetPrim(), axis)
        limit.CreateLowAttr(-2.0 if axis in free else 1.0)
        limit.CreateHighAttr(3.0 if axis in free else -1.0)
    robot = loaded(stage)
    assert robot.nv == len(free)
    rng = np.random.default_rng(0)
    moved = np.zeros(6)
    frame = Transform(
        sarrus.Rotation.from_quaternion(np.float32(sarrus.Rotation(TURN.rotation).quaternion)).matrix, TURN.translation
    )
    for _ in range(5):
        q = robot.integrate(robot.neutral(), rng.uniform(-0.3, 0.3, robot.nv))
        X = frame.inverse() @ Transform.from_matrix(robot.pose(q, "a")) @ TURN.inverse()
        angles = sarrus.Rotation(X.rotation).log()
        moved = np.maximum(moved, np.abs([*X.translation, *angles]))
    if sum(name[0] == "r" for name in free) in (0, 1, 3):
        assert [axis for axis, x in zip(axes, moved, strict=True) if x > 1e-6] == [
            axis for axis in axes if axis in free
        ]
    else:  # of two the third follows by the square
        assert all(x < 1e-6 for axis, x in zip(axes, moved, strict=True) if axis not in free and axis[0] == "t")
    if len(free) == 1:
        unit = np.pi / 180 if free[0][0] == "r" else 1.0
        assert_allclose(np.ravel(robot.joint("j").type.limits), [-2.0 * unit, 3.0 * unit])
    if free == ("rotY", "transX", "transZ"):  # which of the plane's axes slides on
        assert robot.joint("j").type.limits[0][2] == pytest.approx(-np.pi / 90)


def test_joints_that_hold_less_than_it_seems():
    stage = new_stage()
    for name in "abc":
        body(stage, f"/{name}")
    joint(stage, "Fixed", "/weld", ("", "/a"))
    joint(stage, "", "/nothing", ("/a", "/b"))
    loose = joint(stage, "Distance", "/loose", ("/a", "/b"))
    loose.CreateMaxDistanceAttr(2.0)
    rod = joint(stage, "Distance", "/rod", ("/b", "/c"), (Transform(translation=(0.5, 0, 0)), Transform()))
    rod.CreateMinDistanceAttr(0.25)
    rod.CreateMaxDistanceAttr(0.25)
    joint(stage, "Fixed", "/off", ("/a", "/b")).CreateJointEnabledAttr(False)
    joint(stage, "Fixed", "/itself", ("/b", "/b"))
    cone = joint(stage, "Spherical", "/ball", ("/a", "/c"))
    cone.CreateConeAngle0LimitAttr(30)
    cone.GetPrim().CreateAttribute("newton:massModel", Sdf.ValueTypeNames.Token).Set("shell")
    robot = loaded(stage)
    assert robot.constraint("rod").spec.length == 0.25 and robot.constraints == ("rod",)
    assert robot.constraint("rod").spec.points == (("b", (0.5, 0.0, 0.0)), ("c", (0.0, 0.0, 0.0)))
    said = "\n".join(robot.warnings)
    for text in ("'physics:coneAngle0Limit' of <joint> is not read", "not enabled are not read: off", "range of distances are not read: loose",
                 "six free axes are not read: nothing", "to itself are not read: itself", "'newton:massModel' of <joint> is not read"):  # fmt: skip
        assert text in said


# ---- masses ----------------------------------------------------------------------------------------------------------


def volume(prim, *_):
    """Return the data that UsdPhysics requires of a physics engine: volume, inertia for density one, and pose in the body."""
    info = UsdPhysics.RigidBodyAPI.MassInformation()
    scale = np.linalg.norm(np.array(UsdGeom.XformCache().GetLocalToWorldTransform(prim))[:3, :3], axis=1)
    if prim.IsA(UsdGeom.Cube):
        x, y, z = UsdGeom.Cube(prim).GetSizeAttr().Get() * scale
        info.volume, spread = x * y * z, np.array([x * x, y * y, z * z]) / 12.0
    else:
        r = UsdGeom.Sphere(prim).GetRadiusAttr().Get() * scale[0]
        info.volume, spread = 4.0 / 3.0 * np.pi * r**3, np.full(3, r * r / 5.0)
    moments = info.volume * (spread.sum() - spread)
    info.inertia = Gf.Matrix3f(*map(float, np.diag(moments).ravel()))
    owner = prim
    while not owner.HasAPI(UsdPhysics.RigidBodyAPI):
        owner = owner.GetParent()
    place = np.array(UsdGeom.XformCache().ComputeRelativeTransform(prim, owner)[0]).T
    R = place[:3, :3] / np.linalg.norm(place[:3, :3], axis=0)
    info.localPos = Gf.Vec3f(*map(float, place[:3, 3]))
    x, y, z, w = sarrus.Rotation(R).quaternion
    info.localRot = Gf.Quatf(w, x, y, z)
    return info


TOLD = {
    "nothing": {}, "mass": {"mass": 3.0}, "density": {"density": 500.0}, "mass before density": {"mass": 3.0, "density": 500.0},
    "com": {"mass": 3.0, "centerOfMass": Gf.Vec3f(0.1, 0.2, 0.3)}, "inertia": {"mass": 3.0, "diagonalInertia": Gf.Vec3f(1, 2, 2.5), "principalAxes": Gf.Quatf(1, 0, 0, 0)},
    "axes": {"mass": 3.0, "diagonalInertia": Gf.Vec3f(1, 2, 2.5), "principalAxes": Gf.Quatf(0.5, 0.5, 0.5, 0.5)},
    "com alone": {"centerOfMass": Gf.Vec3f(0.1, 0.2, 0.3)},
}  # fmt: skip


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
@pytest.mark.parametrize("of_child", [{}, {"mass": 0.7}, {"density": 200.0}], ids=["plain", "mass", "density"])
@pytest.mark.parametrize("material", [False, True])
def test_masses_as_usd_physics_says(told, of_child, material):
    """UsdPhysics' own computation of masses, with the test's volumes."""
    stage = new_stage()
    prim = body(stage, "/a", TURN, mass=0.0)
    box = UsdGeom.Cube.Define(stage, "/a/box")
    box.AddTranslateOp().Set(Gf.Vec3d(0.3, 0.1, 0.0))
    box.AddRotateXYZOp().Set(Gf.Vec3f(20, 30, 40))
    box.AddScaleOp().Set(Gf.Vec3f(0.1, 0.2, 0.3))
    ball = UsdGeom.Sphere.Define(stage, "/a/ball")
    ball.AddTranslateOp().Set(Gf.Vec3d(-0.3, 0.2, 0.1))
    ball.CreateRadiusAttr(0.2)
    for part in (box, ball):
        UsdPhysics.CollisionAPI.Apply(part.GetPrim())
    for owner, numbers in ((prim, told), (box.GetPrim(), of_child)):
        for name, value in numbers.items():
            UsdPhysics.MassAPI.Apply(owner)
            owner.GetAttribute(f"physics:{name}").Set(value)
    if material:
        steel = UsdShade.Material.Define(stage, "/steel")
        UsdPhysics.MaterialAPI.Apply(steel.GetPrim()).CreateDensityAttr(7800.0)
        UsdShade.MaterialBindingAPI.Apply(ball.GetPrim()).Bind(steel, UsdShade.Tokens.weakerThanDescendants, "physics")
    mass, moments, com, axes = UsdPhysics.RigidBodyAPI(prim).ComputeMassProperties(volume)
    R = sarrus.Rotation.from_quaternion([*axes.GetImaginary(), axes.GetReal()]).matrix
    found = loaded(stage).description.bodies[0].inertia
    assert_allclose(found.mass, mass, rtol=1e-6)
    assert_allclose(found.com, com, atol=1e-6)
    assert_allclose(found.about_com, R @ np.diag(moments) @ R.T, atol=2e-5 * max(moments))


def test_meshes_weigh_what_their_faces_hold():
    """A brick of quads, in feet, with a scale: its volume is known."""
    stage = new_stage(0.3048)
    body(stage, "/a", mass=0.0, scale=(1.0, 2.0, 1.0))
    mesh = UsdGeom.Mesh.Define(stage, "/a/mesh")
    mesh.CreatePointsAttr([Gf.Vec3f(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 2)])
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    quads = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    mesh.CreateFaceVertexIndicesAttr(quads)
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    UsdPhysics.MassAPI.Apply(mesh.GetPrim()).CreateDensityAttr(10.0)  # kg/foot³
    robot = loaded(stage)
    inertia, size = robot.description.bodies[0].inertia, 0.3048 * np.array([1.0, 2.0, 2.0])
    assert_allclose(inertia.mass, 40.0, rtol=1e-7)
    assert_allclose(inertia.com, size / 2, rtol=1e-6)
    assert_allclose(inertia.about_com, Inertia.box(40.0, size).about_com, atol=1e-5)
    assert any("touches planes only, by its convex hull" in text for text in robot.warnings)
    mesh.GetFaceVertexIndicesAttr().Set([99, *quads[1:]])
    with pytest.raises(ModelError, match=r"<string>:/a/mesh: <joint name='mesh'>|has no faces, or indices of faces"):
        loaded(stage)


# ---- loops, and numbers of 32 bits -----------------------------------------------------------------------------------


def four_bar(angle=0.4, excluded="/pin"):
    """Return a parallelogram whose frames are rotated by an angle that 32 bits round."""
    stage = new_stage()
    R = Transform.from_rpy(angle, 2 * angle, 3 * angle)
    at = {"a": (0, 0, 0), "b": (0.3, 0, 0.4), "c": (1, 0, 0)}
    for name, p in at.items():
        body(stage, f"/{name}", Transform(translation=p))
    up, along = (0.3, 0.0, 0.4), (1.0, 0.0, 0.0)
    for name, ends, places in (
        ("motor", ("", "a"), ((0, 0, 0), (0, 0, 0))), ("knee", ("a", "b"), (up, (0, 0, 0))), ("foot", ("", "c"), (along, (0, 0, 0))),
        ("pin", ("b", "c"), (along, up)),
    ):  # fmt: skip
        frames = [Transform(translation=p) @ R @ Transform.from_rpy(0.3 * k, 0, 0) for k, p in enumerate(places)]
        made = joint(stage, "Revolute", f"/{name}", [f"/{end}" if end else "" for end in ends], frames)
        made.CreateExcludeFromArticulationAttr(f"/{name}" == excluded)
        if name == "motor":
            UsdPhysics.DriveAPI.Apply(made.GetPrim(), "angular")
    return stage


@pytest.mark.parametrize("excluded", ["/pin", "/foot", "/knee"])
def test_what_is_excluded_from_the_articulation_closes_the_loop(excluded):
    robot = loaded(four_bar(excluded=excluded))
    assert robot.loop_joints == (excluded[1:],) and robot.nv == 3


def test_loops_of_numbers_of_32_bits_are_healed():
    """Hinges whose axes differ by rounding lock the loop; loosened it can move, with a warning."""
    robot = loaded(four_bar())
    q = robot.assemble()
    assert robot.mobility(q).degrees_of_freedom == 1
    said = [text for text in robot.warnings if text.startswith("loosened")]
    assert said and "'pin' has 2 constraint rows" in said[0]
    assert any("numbers of 32 bits" in text for text in robot.warnings)
    straight = loaded(four_bar(angle=0.0))  # where nothing is rounded nothing is changed
    assert straight.joint("pin").kind == "Revolute" and not any("loosened" in text for text in straight.warnings)


def test_numbers_of_32_bits_are_the_shortest_decimals():
    stage = new_stage()
    a = body(stage, "/a", mass=0.1)
    hinge = joint(stage, "Revolute", "/j", ("", "/a"), (Transform(translation=(0.1, 0.2, 0.3)), Transform()))
    robot = loaded(stage)
    assert robot.description.bodies[0].inertia.mass == 0.1
    assert robot.description.joints[0].at_parent.translation.tolist() == [0.1, 0.2, 0.3]
    # what our writer sets beside counts for as long as it means the same number
    a.CreateAttribute("sarrus:physics:mass", Sdf.ValueTypeNames.Double, True).Set(0.1 + 1e-10)
    assert loaded(stage).description.bodies[0].inertia.mass == 0.1 + 1e-10
    UsdPhysics.MassAPI(a).GetMassAttr().Set(0.2)
    changed = loaded(stage)
    assert changed.description.bodies[0].inertia.mass == 0.2
    assert any("sarrus:physics:mass is not read" in text for text in changed.warnings)
    assert hinge


# ---- what else -------------------------------------------------------------------------------------------------------


def test_instances_are_what_they_stand_for(tmp_path):
    """One leg in a file, twice in another, with names that already exist."""
    leg = Usd.Stage.CreateNew(str(tmp_path / "leg.usda"))
    UsdGeom.SetStageMetersPerUnit(leg, 1.0)
    leg.SetDefaultPrim(UsdGeom.Xform.Define(leg, "/leg").GetPrim())
    body(leg, "/leg/thigh")
    body(leg, "/leg/shin", Transform(translation=(0, 0, -1)))
    joint(leg, "Revolute", "/leg/knee", ("/leg/thigh", "/leg/shin"), (Transform(translation=(0, 0, -1)), Transform()))
    leg.Save()
    whole = Usd.Stage.CreateNew(str(tmp_path / "whole.usdc"))
    UsdGeom.SetStageMetersPerUnit(whole, 1.0)
    body(whole, "/trunk", mass=5.0)
    for k, name in enumerate(("left", "right")):
        prim = UsdGeom.Xform.Define(whole, f"/{name}")
        prim.AddTranslateOp().Set(Gf.Vec3d(0, k, 0))
        prim.GetPrim().GetReferences().AddReference("./leg.usda")
        prim.GetPrim().SetInstanceable(True)
        joint(
            whole,
            "Revolute",
            f"/hip_{name}",
            ("/trunk", f"/{name}/thigh"),
            (Transform(translation=(0, k, 0)), Transform()),
        )
    whole.Save()
    robot = sarrus.load(tmp_path / "whole.usdc")
    assert robot.bodies == ("trunk", "thigh", "shin", "right/thigh", "right/shin")
    assert set(robot.joints) == {"root_joint", "hip_left", "knee", "hip_right", "right/knee"}
    assert_allclose(robot.pose(robot.neutral(), "right/shin")[:3, 3], [0, 1, -1])
    # only what lies in the file's folder, or where one says
    (tmp_path / "in").mkdir()
    whole.GetRootLayer().Export(str(tmp_path / "in" / "whole.usda"))
    text = (tmp_path / "in" / "whole.usda").read_text()
    (tmp_path / "in" / "whole.usda").write_text(text.replace("leg.usda", "../leg.usda").replace("./../", "../"))
    with pytest.raises(ModelError, match=r"whole.usda: refers to '.*leg.usda', outside of the file's folder"):
        sarrus.load(tmp_path / "in" / "whole.usda")
    assert sarrus.load(tmp_path / "in" / "whole.usda", package_dirs=[tmp_path]).nv == robot.nv
    with pytest.raises(ModelError, match="refers to other files, which need its folder"):
        sarrus.loads(text)
    (tmp_path / "leg.usda").unlink()
    with pytest.raises(ModelError, match="which does not exist"):
        sarrus.load(tmp_path / "in" / "whole.usda", package_dirs=[tmp_path])


def test_colliders_and_looks():
    stage = new_stage(0.1)
    body(stage, "/a", Transform(translation=(0, 0, 20)))
    steel = UsdShade.Material.Define(stage, "/steel")
    surface = UsdPhysics.MaterialAPI.Apply(steel.GetPrim())
    surface.CreateDynamicFrictionAttr(0.3)
    surface.CreateStaticFrictionAttr(0.4)
    surface.CreateRestitutionAttr(0.5)
    shapes = {}
    for kind, path in (("Cube", "/a/cube"), ("Sphere", "/a/sphere"), ("Capsule", "/a/capsule"), ("Cylinder", "/a/cylinder"),
                       ("Cone", "/a/cone"), ("Plane", "/floor"), ("Sphere", "/a/eye"), ("Sphere", "/a/egg")):  # fmt: skip
        prim = shapes[path] = getattr(UsdGeom, kind).Define(stage, path)
        if path != "/a/eye":
            UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
    UsdShade.MaterialBindingAPI.Apply(shapes["/a/cube"].GetPrim()).Bind(
        steel, UsdShade.Tokens.weakerThanDescendants, "physics"
    )
    shapes["/a/cube"].AddScaleOp().Set(Gf.Vec3f(1, 2, 3))
    shapes["/a/egg"].AddScaleOp().Set(Gf.Vec3f(1, 2, 3))
    shapes["/a/capsule"].CreateAxisAttr("X")
    shapes["/a/cylinder"].CreateAxisAttr("Y")
    shapes["/a/cylinder"].AddScaleOp().Set(Gf.Vec3f(1, 3, 1))
    shapes["/a/eye"].CreateDisplayColorAttr([Gf.Vec3f(0.1, 0.2, 0.3)])
    shapes["/floor"].CreateAxisAttr("Y")
    robot = quietly(loaded, stage)
    found = {spec.name: spec for spec in robot.description.shapes}
    assert_allclose(found["cube"].shape.size, (0.2, 0.4, 0.6))
    assert (found["cube"].friction, found["cube"].restitution, found["sphere"].friction) == (0.3, 0.5, None)
    assert_allclose((found["capsule"].shape.radius, found["capsule"].shape.length), (0.05, 0.1))
    assert_allclose((found["cylinder"].shape.radius, found["cylinder"].shape.length), (0.1, 0.6))
    for name, axis in (("capsule", 0), ("cylinder", 1), ("floor", 1)):
        assert_allclose(found[name].placement.rotation[:, 2], np.eye(3)[axis], atol=1e-15)
    assert found["floor"].body == "ground" and "egg" not in found
    (eye,) = robot.description.visuals
    assert_allclose(eye.shape.radius, 0.1)
    assert eye.color == (0.1, 0.2, 0.3, 1.0)
    said = "\n".join(robot.warnings)
    assert (
        "Cone prims are not read" in said
        and "with different scales across its axis" in said
        and "staticFriction is not read" in said
    )


WEDGE = [(-2, -1, 0), (2, -1, 0), (2, 1, 0), (-2, 1, 0), (-2, -1, 1), (-2, 1, 1), (0, 0, 0.125), (9, 9, 9)]
SIDES = [(0, 3, 2, 1), (0, 1, 4), (3, 5, 2), (0, 4, 5, 3), (1, 2, 6), (1, 6, 4), (4, 6, 5), (6, 2, 5)]


def wedge(stage, path="/a/hull", approximation="convexHull"):
    """Return a prism with a notch, and a point that belongs to no face."""
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([Gf.Vec3f(*p) for p in WEDGE])
    mesh.CreateFaceVertexCountsAttr([len(side) for side in SIDES])
    mesh.CreateFaceVertexIndicesAttr([k for side in SIDES for k in side])
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    if approximation:
        UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(approximation)
    return mesh


def corners_of(robot):
    """Return the corners of all convex points, in the axes of their bodies."""
    for spec in robot.description.shapes:
        if isinstance(spec.shape, sarrus.shapes.ConvexPoints):
            yield spec.name, np.array(spec.shape.points) @ spec.placement.rotation.T + spec.placement.translation


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("approximation", ["", "convexHull", "boundingSphere"])
def test_meshes_touch_planes_by_their_hulls(approximation, scipy, monkeypatch):
    if not scipy:
        monkeypatch.setattr(mesh_files, "find_spec", lambda name: None)
    stage = new_stage(0.1)
    body(stage, "/a", Transform(translation=(0, 0, 30)))
    for k in range(2):
        mesh = wedge(stage, f"/a/hull{k}", approximation)
        mesh.AddTranslateOp().Set(Gf.Vec3d(0, 0, 4 * k))
        mesh.AddScaleOp().Set(Gf.Vec3f(1, 1, 1 - 2 * k))  # the other one is mirrored
    steel = UsdShade.Material.Define(stage, "/steel")
    UsdPhysics.MaterialAPI.Apply(steel.GetPrim()).CreateDynamicFrictionAttr(0.25)
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(steel, UsdShade.Tokens.weakerThanDescendants, "physics")
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Plane.Define(stage, "/floor").GetPrim())
    robot = quietly(loaded, stage)
    found, hull = dict(corners_of(robot)), np.array(WEDGE[:6])
    for k, side in enumerate((1.0, -1.0)):
        expected = 0.1 * (hull * (1, 1, side) + (0, 0, 4 * k))
        within = 0.1 * (np.array(WEDGE[6:7]) * (1, 1, side) + (0, 0, 4 * k))
        expected = expected if scipy else [*expected, *within]
        assert_allclose(sorted(map(tuple, found[f"hull{k}"])), sorted(map(tuple, expected)), rtol=0.0, atol=1e-15)
    assert [spec.friction for spec in robot.description.shapes][:2] == [None, 0.25]
    said = "\n".join(robot.warnings)
    assert "touches planes only, by its convex hull" in said
    assert ("its approximation boundingSphere is not read" in said) == (approximation == "boundingSphere")
    q = robot.assemble()
    touching = robot.contacts(q, within=3.0 + 1e-9)
    assert_allclose(touching.distance[[pair == ("hull0", "floor") for pair in touching.shapes]], 3.0, atol=1e-12)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 1.5, method="contact", dt=4e-3)
    assert robot.pose(run.q[-1], "a")[2, 3] == pytest.approx(0.0, abs=1e-6)


def test_meshes_that_cannot_touch_are_told():
    stage = new_stage()
    body(stage, "/a")
    wedge(stage, "/a/nothing").GetPointsAttr().Clear()
    wedge(stage, "/a/far").GetFaceVertexIndicesAttr().Set([99] * sum(map(len, SIDES)))
    flat = wedge(stage, "/a/flat")
    flat.GetPointsAttr().Set([Gf.Vec3f(x, y, 0) for x, y, _ in WEDGE])
    wedge(stage, "/a/wild").GetPointsAttr().Set([Gf.Vec3f(math.nan, 0, 0)] * len(WEDGE))
    UsdGeom.Mesh.Define(stage, "/a/looks")
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Xform.Define(stage, "/a/collisions").GetPrim())
    robot = quietly(loaded, stage)
    assert [spec.name for spec in robot.description.shapes] == ["flat"]
    said = "\n".join(robot.warnings)
    assert said.count("it is not read as collision shapes") == 3
    assert "Mesh prims are not read as visuals" in said
    assert "CollisionAPI is read for shapes only; prims for which it is not read: collisions" in said


def test_convex_points_there_and_back(tmp_path):
    """By the mesh of the hull, whose vertices UsdPhysics reads; numbers keep all digits."""
    pytest.importorskip("scipy")
    rng = np.random.default_rng(3)
    b = sarrus.Builder("stone")
    b.add_body("a", Inertia.sphere(1.0, 0.1))
    b.add_joint("hinge", sarrus.Revolute("y"), "ground", "a")
    points = rng.normal(size=(40, 3))
    b.add_shape("a", sarrus.shapes.ConvexPoints([*points, (0.0, 0.0, 0.0)]), TURN, friction=0.3, name="stone")
    b.add_shape("a", sarrus.shapes.ConvexPoints([(0, 0, 0), (1, 0, 0), (0, 1, 0)]), name="leaf")
    robot = b.build()
    with pytest.warns(ModelWarning, match="the shape ConvexPoints of body 'a', which has no volume"):
        robot.save(tmp_path / "r.usda")
    other = quietly(sarrus.load, tmp_path / "r.usda")
    (shape,) = other.description.shapes
    assert (shape.name, shape.friction, shape.body) == ("stone", 0.3, "a")
    (_, found), (_, before), _ = *corners_of(other), *corners_of(robot)
    directions = rng.normal(size=(100, 3))
    assert len(found) < len(before)
    assert_allclose((found @ directions.T).max(0), (before @ directions.T).max(0), rtol=0.0, atol=1e-14)
    stage = Usd.Stage.Open(str(tmp_path / "r.usda"))
    (mesh,) = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)]
    assert UsdPhysics.MeshCollisionAPI(mesh).GetApproximationAttr().Get() == "convexHull"
    volume, com, _ = mass_properties(triangles_of(mesh), "exact")  # its faces are seen from outside
    assert volume > 0.0 and (np.abs(com) < 1.0).all()


def triangles_of(mesh):
    points = np.array(mesh.GetAttribute("points").Get(), np.float64)
    return points[np.reshape(mesh.GetAttribute("faceVertexIndices").Get(), (-1, 3))]


def test_mesh_files_are_written_by_their_hulls(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / "brick.stl")
    b = sarrus.Builder("brick")
    b.add_body("a", Inertia.sphere(1.0, 0.1))
    b.add_joint("hinge", sarrus.Revolute("y"), "ground", "a")
    for name in ("brick", "nowhere"):
        b.add_shape("a", sarrus.shapes.Mesh(f"{name}.stl", beside=str(tmp_path)), name=name)
    with pytest.warns(ModelWarning, match=r"the shape Mesh of body 'a', whose file cannot be read"):
        b.build().save(tmp_path / "r.usda")
    ((name, found),) = corners_of(quietly(sarrus.load, tmp_path / "r.usda"))
    assert name == "brick" and len(found) == 8
    assert_allclose(np.abs(found), [(0.5, 1.0, 1.5)] * 8)


def test_what_is_not_read_is_said():
    stage = Usd.Stage.CreateInMemory()
    a = body(stage, "/a", mass=0.0)
    a.CreateAttribute("physxRigidBody:linearDamping", Sdf.ValueTypeNames.Float).Set(0.5)
    a.CreateAttribute("newton:strange", Sdf.ValueTypeNames.Float).Set(0.5)
    UsdGeom.PointInstancer.Define(stage, "/many")
    UsdPhysics.Scene.Define(stage, "/one").CreateGravityMagnitudeAttr(2.0)
    UsdPhysics.Scene.Define(stage, "/two")
    UsdPhysics.FilteredPairsAPI.Apply(a).CreateFilteredPairsRel().SetTargets([Sdf.Path("/b")])
    b = body(stage, "/b", mass=1.0)
    b.GetAttribute("physics:diagonalInertia").Clear()
    robot = loaded(stage)
    assert robot.description.gravity == (0.0, -0.02, 0.0)
    said = "\n".join(robot.warnings)
    for text in ("'physxRigidBody:linearDamping' of <prim>", "'newton:strange' of <prim>", "'physics:filteredPairs' of <prim>", "PointInstancer",
                 "of several PhysicsScenes the first", "have no inertia: a", "are point masses: b", "metersPerUnit is missing"):  # fmt: skip
        assert text in said, text


def bad(change):
    def make():
        stage = new_stage()
        a = body(stage, "/a")
        hinge = joint(stage, "Revolute", "/j", ("", "/a"))
        change(stage, a, hinge)
        return stage.GetRootLayer().ExportToString()

    return make


def scaled(*scale):
    return lambda stage, a, hinge: UsdGeom.Xformable(a).AddScaleOp().Set(Gf.Vec3f(*scale))


def sheared(stage, a, hinge):
    UsdGeom.Xformable(a).AddTransformOp().Set(Gf.Matrix4d(1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1))


HEAD = '#usda 1.0\n(\n defaultPrim = "R"\n metersPerUnit = 1\n upAxis = "Z"\n)\n'
HELD = """def Xform "R" {{
    def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
        float physics:mass = 1
        float3 physics:diagonalInertia = (1, 1, 1)
    }}
    {}
}}
"""


def doubling(n, arc):
    """Return prims A0 to An, each of which references the next one twice: 2**n prims below the first."""
    twice = 'def Xform "A{0}" {{\n def Xform "x" (prepend {1} = </A{2}>) {{}}\n def Xform "y" (prepend {1} = </A{2}>) {{}}\n}}\n'
    return "".join(twice.format(k, arc, k + 1) for k in range(n)) + f'def Xform "A{n}" {{}}\n'


@pytest.mark.parametrize("arc", ["references", "inherits", "specializes", "payload"])
def test_stages_that_double_are_refused_before_they_are_composed(arc, tmp_path):
    """Thirty levels are a thousand million prims."""
    text = HEAD + HELD.format("") + doubling(30, arc)
    (tmp_path / "d.usda").write_text(text)
    start = time.process_time()
    for read in (lambda: sarrus.loads(text), lambda: sarrus.load(tmp_path / "d.usda")):
        with pytest.raises(ModelError, match="composed of more than 300000 parts"):
            read()
    assert time.process_time() - start < 2.0
    few = sarrus.loads(HEAD + HELD.format("") + doubling(5, arc))
    assert few.bodies == ("b",) and not few.warnings


def test_files_that_double_are_refused_before_they_are_composed(tmp_path):
    """By references between files, in variants, and by sublayers."""
    plain, variants = (
        'def Xform "R" {{\n{}}}\n',
        'def Xform "R" (variants = {{ string v = "one" }}\n prepend variantSets = "v") {{\n variantSet "v" = {{\n "one" {{\n{}}}\n}}\n}}\n',
    )
    for k in range(30):
        inside = "".join(f'def Xform "{x}" (prepend references = @./{k + 1}.usda@) {{}}\n' for x in "xy")
        (tmp_path / f"{k}.usda").write_text(HEAD + (variants if k % 2 else plain).format(inside))
        (tmp_path / f"s{k}.usda").write_text(f"#usda 1.0\n(\n subLayers = [@./s{k + 1}.usda@, @./s{k + 1}.usda@]\n)\n")
    (tmp_path / "30.usda").write_text(HEAD + HELD.format(""))
    (tmp_path / "s30.usda").write_text("#usda 1.0\n")
    with pytest.raises(ModelError, match="composed of more than"):
        sarrus.load(tmp_path / "0.usda")
    with pytest.raises(ModelError, match="more than 1000 sublayers"):
        sarrus.load(tmp_path / "s0.usda")


def test_folders_with_brackets_in_their_names(tmp_path):
    """usd-core defines packages; a link leads out of the folder, whatever its name."""
    for folder in ("a[1]", "m", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a[1]" / "x.usda").write_text(HEAD + HELD.format(""))
    assert sarrus.load(tmp_path / "a[1]" / "x.usda").bodies == ("b",)
    (tmp_path / "out" / "s.usda").write_text(HEAD + HELD.format(""))
    (tmp_path / "m" / "ok.usda").write_text(HEAD + 'def Xform "R" {}\n')
    (tmp_path / "m" / "ok.usda[x").symlink_to("../out")
    (tmp_path / "m" / "main.usda").write_text(
        HEAD + HELD.format('def Xform "k" (prepend references = @./ok.usda[x/s.usda@) {}')
    )
    with pytest.raises(ModelError, match="outside of the file's folder"):
        sarrus.load(tmp_path / "m" / "main.usda")


@pytest.mark.parametrize("names", ["@./leg.usda@</Nope>", "@./none.usda@", "@./main.usda@"])
def test_references_to_what_is_not_there_are_told(names, tmp_path):
    """A prim, a default prim, and the stage itself."""
    (tmp_path / "leg.usda").write_text(HEAD + 'def Xform "R" {}\n')
    (tmp_path / "none.usda").write_text('#usda 1.0\ndef Xform "R" {}\n')
    (tmp_path / "main.usda").write_text(HEAD + HELD.format(f'def Xform "k" (prepend references = {names}) {{}}'))
    (told,) = sarrus.load(tmp_path / "main.usda").warnings
    assert "a reference of the stage cannot be resolved, and is left out: " in told and "/R" in told


def test_text_may_refer_to_itself():
    text = (
        HEAD
        + HELD.format('def Xform "k" (prepend references = </A>) {}')
        + 'def Xform "A" {\n def "c" (references = </R/b>) {}\n}\n'
    )
    assert sarrus.loads(text).bodies == ("b", "c", "A/c")


def of_text(*parts):
    return quietly(sarrus.loads, '#usda 1.0\n(\n metersPerUnit = 0.5\n upAxis = "Z"\n)\n' + "\n".join(parts))


def prim(kind, name, *inside, apis=()):
    listed = ", ".join(f'"{api}"' for api in apis)
    lines = "".join(f" {line}\n" for line in inside)
    return f'def {kind} "{name}"{f" (prepend apiSchemas = [{listed}])" if apis else ""} {{\n{lines}}}\n'


def a_body(name, *inside):
    told = (
        "float physics:mass = 1",
        "float3 physics:diagonalInertia = (0.1, 0.2, 0.25)",
        "point3f physics:centerOfMass = (0.3, 0.1, 0.2)",
    )
    return prim("Xform", name, *told, *inside, apis=("PhysicsRigidBodyAPI", "PhysicsMassAPI"))


def an_axis(kind, name, parent, child, axis, *inside, apis=()):
    ends = [f"rel physics:body{k} = </{body}>" for k, body in enumerate((parent, child)) if body]
    return prim(f"Physics{kind}Joint", name, *ends, f'uniform token physics:axis = "{axis}"', *inside, apis=apis)


def test_general_joints_stand_where_their_bodies_do():
    """Bodies are apart from the joint's frames, or rotated: home closes the gap of the stage."""
    held = [
        f"float limit:{axis}:physics:{end} = {x}"
        for axis in ("rotX", "rotY", "rotZ")
        for end, x in (("low", 1), ("high", -1))
    ]
    place = "double3 xformOp:translate = (0.5, 0.25, -1)", 'uniform token[] xformOpOrder = ["xformOp:translate"]'
    apis = [f"PhysicsLimitAPI:{axis}" for axis in ("rotX", "rotY", "rotZ")]
    robot = of_text(a_body("a", *place), prim("PhysicsJoint", "j", "rel physics:body1 = </a>", *held, apis=apis))
    assert_allclose(robot.assemble(), [0.25, 0.125, -0.5])
    assert_allclose(robot.pose(robot.assemble(), "a")[:3, 3], [0.25, 0.125, -0.5])
    rng = np.random.default_rng(0)
    for free in ("rx ry tz", "rx ty", "ry rz tx ty"):
        b = sarrus.Builder("g")
        b.add_body("a", Inertia.sphere(1.0, 0.1))
        b.add_joint("j", sarrus.Gimbal(free.split()), "ground", "a")
        q = rng.uniform(-1.0, 1.0, len(free.split()))
        pose = Transform.from_matrix(b.build().pose(q, "a")).inverse()  # USD translates along the axes of body0
        x, y, z, w = sarrus.Rotation(pose.rotation).quaternion.tolist()
        place = (
            f"double3 xformOp:translate = {tuple((pose.translation / 0.5).tolist())}",  # a unit is 0.5 m
            f"quatd xformOp:orient = {(w, x, y, z)}",
            'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]',
        )
        locked = [name for name in sarrus.description.joints.PARAMETERS if name not in free.split()]
        axes = [("rot" if name[0] == "r" else "trans") + name[1].upper() for name in locked]
        held = [f"float limit:{axis}:physics:{end} = {x}" for axis in axes for end, x in (("low", 1), ("high", -1))]
        apis = [f"PhysicsLimitAPI:{axis}" for axis in axes]
        robot = of_text(a_body("a", *place), prim("PhysicsJoint", "j", "rel physics:body1 = </a>", *held, apis=apis))
        assert_allclose(robot.assemble(), q, atol=1e-12)
        assert_allclose(robot.pose(robot.assemble(), "a"), pose.matrix, atol=1e-12)


def test_hinges_between_one_pair_of_bodies_are_a_chain():
    """mujoco-usd-converter writes such hinges: they equal MuJoCo's joints of one body in order; hinges on one line remain a loop."""
    axes = [("Revolute", "j1", "X"), ("Revolute", "j2", "Y"), ("Prismatic", "j3", "Z")]
    robot = of_text(a_body("a"), *(an_axis(kind, name, "", "a", axis) for kind, name, axis in axes))
    like = sarrus.loads(
        """<mujoco><worldbody><body name="a"><inertial mass="1" pos=".15 .05 .1" diaginertia=".025 .05 .0625"/>
        <joint name="j1" axis="1 0 0"/><joint name="j2" axis="0 1 0"/><joint name="j3" type="slide" axis="0 0 1"/></body></worldbody></mujoco>"""
    )
    q = [0.1, 0.2, 0.3]
    assert robot.joints == ("j1", "j2", "j3") and not robot.nc
    assert any("are read as a chain, in the order of the stage: j1, j2, j3" in one for one in robot.warnings)
    assert_allclose(robot.pose(q, "a"), like.pose(q, "a"), atol=1e-12)
    assert_allclose(robot.mass_matrix(q), like.mass_matrix(q), atol=1e-12)
    away = "point3f physics:localPos0 = (1, 0, 0)", "point3f physics:localPos1 = (1, 0, 0)"
    door = of_text(a_body("a"), an_axis("Revolute", "j1", "", "a", "X"), an_axis("Revolute", "j2", "", "a", "X", *away))
    assert door.nc and door.mobility(door.assemble()).degrees_of_freedom == 1


@pytest.mark.parametrize("apis", [("NewtonMimicAPI",), ("NewtonMimicAPI", "MjcEqualityJointAPI")], ids=len)
def test_mimics_of_newton(apis):
    """q = 90 degrees - 2 q_leader for hinges; the other coefficients count in radians and in the stage's length, 0.5 m."""
    told = "rel newton:mimicJoint = </j1>", "float newton:mimicCoef0 = 90", "float newton:mimicCoef1 = -2"
    robot = of_text(
        a_body("a"),
        a_body("b"),
        an_axis("Revolute", "j1", "", "a", "X"),
        an_axis("Revolute", "j2", "a", "b", "Y", *told, apis=apis),
    )
    (spec,) = robot.description.constraints
    assert (spec.name, {name: c for name, _, c in spec.terms}) == ("j2 mimics j1", {"j2": (1.0,), "j1": (2.0,)})
    assert spec.offset == pytest.approx(np.pi / 2)
    slide = an_axis("Prismatic", "j2", "a", "b", "Y", told[0], "float newton:mimicCoef1 = -2", apis=apis[:1])
    (spec,) = of_text(a_body("a"), a_body("b"), an_axis("Revolute", "j1", "", "a", "X"), slide).description.constraints
    assert {name: c for name, _, c in spec.terms}["j1"][0] == pytest.approx(2 * 0.5)
    held = an_axis("Revolute", "j2", "a", "b", "Y", *told[:2], "float newton:mimicCoef1 = 0", apis=apis[:1])
    robot = of_text(a_body("a"), a_body("b"), an_axis("Revolute", "j1", "", "a", "X"), held)
    (spec,) = robot.description.constraints
    assert [name for name, *_ in spec.terms] == ["j2"] and spec.offset == pytest.approx(np.pi / 2)
    assert any("the ratio of 'j2 mimics j1' is zero: joint 'j2' is held at 1.5708" in x for x in robot.warnings)
    off = an_axis("Revolute", "j2", "a", "b", "Y", *told, "bool newton:mimicEnabled = 0", apis=apis)
    assert not of_text(a_body("a"), a_body("b"), an_axis("Revolute", "j1", "", "a", "X"), off).nc


def test_couplers_and_screws_are_written_as_mimics(tmp_path):
    """With all digits; a screw is written as a hinge and a slide that mimics it."""
    b = sarrus.Builder("coupled")
    for name in "ab":
        b.add_body(name, Inertia.sphere(1.0, 0.1))
    b.add_joint("j", sarrus.Revolute("y"), "ground", "a", actuated=True)
    b.add_joint("k", sarrus.Prismatic("x", limits=(-1, 1)), "a", "b")
    b.add_coupler("c", {"k": 1.0, "j": -0.3}, offset=0.1)
    robot = quietly(save, b.build(), tmp_path / "c.usda") or quietly(sarrus.load, tmp_path / "c.usda")
    (spec,) = robot.description.constraints
    assert ({name: c for name, _, c in spec.terms}, spec.offset) == ({"k": (1.0,), "j": (-0.3,)}, 0.1)
    assert robot.actuated == ("j",) and robot.joints == ("j", "k")
    b = sarrus.Builder("screw")
    b.add_body("a", Inertia.sphere(1.0, 0.1))
    b.add_joint("j", sarrus.Helical("z", 0.01), "ground", "a", actuated=True)
    screw = b.build()
    screw.save(tmp_path / "s.usda")
    robot = sarrus.load(tmp_path / "s.usda")
    q = robot.assemble(fixed={"j": 0.7})
    assert_allclose(robot.pose(q, "a"), screw.pose([0.7], "a"), atol=1e-12)
    assert robot.actuated == ("j",) and robot.nc == 1


@pytest.mark.parametrize(("kind", "turn"), [("Revolute", np.pi / 180), ("Prismatic", 0.5)])
def test_joints_of_newton(kind, turn):
    """Coefficients per degree or per unit of length, which is 0.5 m; armature and friction of a hinge in SI units of mass and the stage's lengths."""
    told = [
        f"float newton:{name} = {x}"
        for name, x in {"damping": 1, "velocityLimit": 3, "armature": 2, "friction": 5}.items()
    ]
    told += ["float urdf:limit:effort = 7"]
    found = of_text(a_body("a"), an_axis(kind, "j", "", "a", "X", *told, apis=("NewtonJointAPI",)))
    force = 0.25 if kind == "Revolute" else 0.5  # N m or N, in kg and 0.5 m
    numbers = {"damping": force / turn, "velocity_limit": 3 * turn, "armature": 2 * (0.25 if kind == "Revolute" else 1)}
    numbers |= {"friction": 5 * force, "effort_limit": 7 * force}
    for name, value in numbers.items():
        assert_allclose(getattr(found.joint("j").type, name), value, err_msg=name)
    assert found.actuated == ("j",)


def test_joints_of_mujoco():
    """MuJoCo's schema: damping per radian, limits and rest from the reference, polynomial couplers, the efforts of actuators by their gears."""
    scene = prim("PhysicsScene", "s", 'uniform token mjc:compiler:angle = "radian"', apis=("MjcSceneAPI",))
    told = {
        "damping": 4,
        "stiffness": 8,
        "springref": 0.5,
        "ref": 0.2,
        "actuatorfrcrange:min": -90,
        "actuatorfrcrange:max": 90,
    }
    told = [f"double mjc:{name} = {x}" for name, x in told.items()]
    limits = "float physics:lowerLimit = -90", "float physics:upperLimit = 90"
    hinge = an_axis("Revolute", "j", "", "a", "X", *told, *limits, apis=("MjcJointAPI",))
    numbers = "double mjc:coef0 = 0.1", "double mjc:coef1 = 2", "double mjc:coef2 = 3"
    follower = an_axis("Revolute", "k", "a", "b", "Y", "rel mjc:target = </j>", *numbers, apis=("MjcEqualityJointAPI",))

    def motor(name, target, *parts):
        return prim(
            "MjcActuator", name, f"rel mjc:target = <{target}>", "double[] mjc:gear = [3, 0, 0, 0, 0, 0]", *parts
        )

    ranged = [
        f"double mjc:{name}Range:{end} = {x}"
        for name, y in (("ctrl", 6), ("force", 5))
        for end, x in (("min", -y), ("max", y))
    ]
    affine = 'uniform token mjc:biasType = "affine"'
    parts = scene, a_body("a"), a_body("b"), hinge, follower
    robot = of_text(
        *parts, motor("m", "/j", *ranged), motor("n", "/j", *ranged[:2], affine, "double mjc:forceRange:max = 4")
    )
    joint = robot.joint("j").type
    assert_allclose(
        [joint.damping[0], joint.stiffness[0], joint.rest[0]], [1.0, 2.0, 0.3]
    )  # N m are 0.25 of the stage's
    assert_allclose(np.ravel(joint.limits), [-np.pi / 2 - 0.2, np.pi / 2 - 0.2])
    assert joint.effort_limit[0] == 0.25 * (3 * 5 + 3 * 4) and robot.actuated == ("j",)
    assert any("control laws are not read: n" in one for one in robot.warnings)
    (spec,) = robot.description.constraints
    assert ({name: c for name, _, c in spec.terms}, spec.offset) == ({"k": (1.0,), "j": (-2.0, -3.0)}, 0.1)
    newton = prim(
        "NewtonActuator",
        "o",
        "rel newton:targets = </j>",
        "float newton:maxEffort = 8",
        "float newton:kp = 3",
        apis=("NewtonPDControlAPI",),
    )
    driven = of_text(*parts, newton)
    assert driven.joint("j").type.effort_limit[0] == 0.25 * 8 and driven.actuated == ("j",)
    assert any("control laws are not read: o" in one for one in driven.warnings)
    loose = of_text(*parts, motor("o", "/a"))
    assert not loose.actuated and any("do not act on a joint are not read: o" in one for one in loose.warnings)


def test_the_inertia_of_newton():
    """It overrides the principal moments, and keeps all digits."""
    told = (
        "float physics:mass = 2",
        "float3 physics:diagonalInertia = (9, 9, 9)",
        "double[] newton:inertia = [1.1, 1.3, 1.7, 0.1, 0.3, -0.123456789012]",
    )
    robot = of_text(prim("Xform", "a", *told, apis=("PhysicsRigidBodyAPI", "PhysicsMassAPI", "NewtonMassAPI")))
    right = 0.25 * np.array([[1.1, 0.1, 0.3], [0.1, 1.3, -0.123456789012], [0.3, -0.123456789012, 1.7]])
    assert_allclose(robot.description.bodies[-1].inertia.about_com, right, rtol=1e-15)


def test_a_mass_of_zero_is_none():
    """UsdPhysics' rule for colliders; mujoco-usd-converter writes zeros for geoms without mass."""
    ball = prim(
        "Sphere",
        "ball",
        "double radius = 0.5",
        "float physics:mass = 0",
        apis=("PhysicsCollisionAPI", "PhysicsMassAPI"),
    )
    robot = of_text(prim("Xform", "a", ball, apis=("PhysicsRigidBodyAPI",)))
    assert robot.description.bodies[-1].inertia.mass == pytest.approx(1000 * 4 / 3 * np.pi * 0.25**3)
    assert any(
        "a mass of zero counts as none, as in UsdPhysics, and the density applies: ball" in x for x in robot.warnings
    )


def test_gravity_of_newton():
    for said, size in (("1", 0.5 * 7), ("0", 0.0)):
        told = "float physics:gravityMagnitude = 7", f"bool newton:gravityEnabled = {said}"
        robot = of_text(a_body("a"), prim("PhysicsScene", "s", *told, apis=("NewtonSceneAPI",)))
        assert_allclose(robot.gravity, [0, 0, -size])


def test_what_newton_and_mujoco_say_and_is_not_read():
    path = "rel mjc:path = </j>", "double[] mjc:path:coef = [1]"
    robot = of_text(
        a_body("a"), an_axis("Revolute", "j", "", "a", "X"), prim("MjcTendon", "t", *path), prim("MjcKeyframe", "k")
    )
    for text in ("tendons are not read, nor the actuators that drive them: t", "keyframes are not read: k"):
        assert any(text in one for one in robot.warnings)
    lonely = an_axis("Revolute", "j", "", "a", "X", "rel newton:mimicJoint = </j>", apis=("NewtonMimicAPI",))
    assert any(
        "is read only if it couples two joints of one axis" in one for one in of_text(a_body("a"), lonely).warnings
    )
    axes = prim(
        "Xform",
        "a",
        "float physics:mass = 1",
        "quatf physics:principalAxes = (0.6, 0.8, 0, 0)",
        apis=("PhysicsRigidBodyAPI", "PhysicsMassAPI"),
    )
    assert any("principal axes without moments of inertia are not read: a" in one for one in of_text(axes).warnings)


@pytest.mark.parametrize(("angle", "rest"), [("radian", 0.5), ("degree", np.radians(0.5))])
def test_the_unit_of_springref(angle, rest):
    scene = prim("PhysicsScene", "s", f'uniform token mjc:compiler:angle = "{angle}"', apis=("MjcSceneAPI",))
    spring = an_axis("Revolute", "j", "", "a", "X", "double mjc:stiffness = 4", "double mjc:springref = 0.5")
    assert of_text(scene, a_body("a"), spring).joint("j").type.rest == pytest.approx(rest)


def test_meshes_that_are_wound_inside_out():
    mesh = 'def Mesh "m" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{\n int[] faceVertexCounts = [3, 3, 3, 3]\n int[] faceVertexIndices = [{}]\n point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]\n}}'
    read = [
        of_text(f'def Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{\n{mesh.format(faces)}\n}}')
        for faces in ("0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3", "0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2")
    ]
    one, other = (robot.description.bodies[0].inertia for robot in read)
    assert_allclose(one.mass, 1000 / 6 / 8)
    assert_allclose([other.mass, *other.com, *other.about_com.ravel()], [one.mass, *one.com, *one.about_com.ravel()])
    assert [any("meshes are inside out" in warning for warning in robot.warnings) for robot in read] == [False, True]


BAD = {
    "no text": (lambda: "#usda 1.0\nnonsense", "cannot be read as USD"),
    "no bodies": (lambda: "#usda 1.0\n", "has no prim with RigidBodyAPI"),
    "units": (bad(lambda s, a, j: UsdGeom.SetStageMetersPerUnit(s, -1.0)), "expects metersPerUnit"),
    "large units": (bad(lambda s, a, j: UsdGeom.SetStageMetersPerUnit(s, 1e300)), "expects metersPerUnit"),
    "up": (lambda: HEAD.replace('"Z"', '"Q"') + HELD.format(""), "has an upAxis 'Q'; expected one of X, Y, Z"),
    "mass": (bad(lambda s, a, j: a.GetAttribute("physics:mass").Set(-1.0)), r"<string>:/a: <prim name='a'> has a negative mass: -1"),
    "moments": (bad(lambda s, a, j: a.GetAttribute("physics:diagonalInertia").Set(Gf.Vec3f(np.nan, 1, 1))), "not finite"),
    "limits": (bad(lambda s, a, j: (j.CreateLowerLimitAttr(2), j.CreateUpperLimitAttr(1))), "has its lower limit above the upper"),
    "axis": (bad(lambda s, a, j: j.CreateAxisAttr("Q")), "expects one of X, Y, Z in physics:axis"),
    "body": (bad(lambda s, a, j: j.CreateBody0Rel().SetTargets([Sdf.Path("/ghost")])), "has body0 .*expected one prim"),
    "rotation": (bad(lambda s, a, j: j.CreateLocalRot0Attr(Gf.Quatf(0, 0, 0, 0))), "expected a quaternion"),
    "mirror": (bad(scaled(1, -1, 1)), "is mirrored"),
    "flat": (bad(scaled(1, 0, 1)), "is mirrored, or has zero size"),
    "shear": (bad(sheared), "is sheared"),
    "reference": (bad(lambda s, a, j: a.GetReferences().AddReference("/etc/passwd")), "which need its folder"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "said"), BAD.values(), ids=BAD)
def test_what_no_mechanism_can_be_is_refused(make, said):
    with pytest.raises(ModelError, match=said):
        sarrus.loads(make())


def test_without_usd_core_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pxr.Tf", None)
    for call in (lambda: sarrus.loads("#usda 1.0"), lambda: sarrus.mechanisms.pendulum().save(tmp_path / "a.usda")):
        with pytest.raises(ModuleNotFoundError, match=r"pip install usd-core"):
            call()
    assert not list(tmp_path.iterdir())


def test_binary_files_are_read_from_files(tmp_path):
    four_bar(angle=0.0).Export(str(tmp_path / "f.usdc"))
    four_bar(angle=0.0).Export(str(tmp_path / "f.usd"))
    assert sarrus.load(tmp_path / "f.usdc").nv == sarrus.load(tmp_path / "f.usd").nv == 3
    (tmp_path / "g.usdc").write_bytes(b"PXR-USDC and nothing more")
    with pytest.raises(ModelError, match="cannot be read as USD"):
        sarrus.load(tmp_path / "g.usdc")


def test_a_file_that_changes_is_read_anew(tmp_path):
    """Also if the earlier object still exists."""
    path = tmp_path / "f.usda"
    four_bar(excluded="/pin").Export(str(path))
    held = Usd.Stage.Open(str(path))
    assert sarrus.load(path).loop_joints == ("pin",)
    four_bar(excluded="/knee").Export(str(path))
    assert sarrus.load(path).loop_joints == ("knee",)
    assert held


# ---- written ---------------------------------------------------------------------------------------------------------

LOST = {
    "rolling_disc": "Rolling", "whipple_bicycle": "Rolling", "tensegrity_prism": "spring 'spring1'",
}  # fmt: skip
# of which several float, or whose closing joints become chains with coordinates of their own: looked at where they stand
OTHERWISE = ("chain_mail", "tsai_3upu")


def again(robot, path):
    """Return the mechanism that is read from the written stage, with the same name of the floating joint."""
    save(robot, path)
    other = quietly(sarrus.load, path)
    free = next((name for name in robot.joints if robot.joint(name).kind == "Free"), None)
    joints = (replace(spec, name=free) if spec.name == "root_joint" else spec for spec in other.description.joints)
    home = tuple((free if name == "root_joint" else name, q) for name, q in other.description.home)
    return type(other)(replace(other.description, joints=tuple(joints), home=home))


@pytest.mark.parametrize("name", [name for name in sarrus.mechanisms.__all__ if name not in (*LOST, "cable_platform")])
def test_gallery_as_usd(name, tmp_path):
    robot = made(name)
    other = again(robot, tmp_path / "robot.usda")
    assert other.description.gravity == pytest.approx(robot.description.gravity, abs=1e-15)
    if name in OTHERWISE:
        check_accelerations(robot, other, robot.assemble())
        return
    rng = np.random.default_rng(0)
    q = robot.assemble() if robot.nc else robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    v = robot.project_velocity(q, rng.normal(size=robot.nv))
    check_same_motion(robot, other, q, v, *counterpart(robot, other, q, v))
    assert other.loop_joints == robot.loop_joints and set(robot.frames) <= set(other.frames)
    assert not [text for text in other.warnings if "may touch" not in text]


@pytest.mark.parametrize("name", LOST)
def test_what_usd_cannot_say_is_refused(name, tmp_path):
    with pytest.raises(ModelError, match=f"USD cannot represent: .*{LOST[name]}"):
        made(name).save(tmp_path / "robot.usda")
    save(made(name), tmp_path / "robot.usda", lossy=True)
    quietly(sarrus.load, tmp_path / "robot.usda")


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_all_joints_as_usd(seed, tmp_path):
    kinds = [kind for kind in ALL_JOINTS if kind != "free"]
    robot = random_mechanism(seed, bodies=17, joints=kinds, backward=0.3, floating=False, springs=False, friction=False)
    other = again(robot, tmp_path / "robot.usd")
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    check_same_motion(robot, other, q, v, *counterpart(robot, other, q, v))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_closes_a_loop(kind, tmp_path):
    """A loop joint of any type is written such that it can be read; for a screw, another joint of the loop closes it."""
    b = sarrus.Builder("loop")
    for name in "ab":
        b.add_body(name, Inertia.sphere(1.0, 0.1))
    b.add_joint("j", sarrus.Spherical(), "ground", "a")
    b.add_joint("k", sarrus.Gimbal(("rx", "ry", "rz", "tx", "ty", "tz")), "a", "b", at_parent=(0.3, 0, 0))
    b.add_joint(
        "closing", replace(KINDS[kind], stiffness=0.0) if KINDS[kind].nv else KINDS[kind], "ground", "b", loop=True
    )
    robot = b.build()
    save(robot, tmp_path / "r.usda")
    other = quietly(sarrus.load, tmp_path / "r.usda")
    q = other.assemble() if other.nc else other.neutral()
    assert freedoms(other, q) == robot.nv - len(range(robot.nc)[robot.constraint("closing").rows])


def test_loops_of_screws_only_are_refused(tmp_path):
    """Coupled joints have coordinates when they are read, so that none of them can close the loop."""
    b = sarrus.Builder("differential screw")
    for name in "ab":
        b.add_body(name, Inertia.box(1.0, (0.3, 0.2, 0.1)))
    for name, pitch, *ends in (("p", 0.05, "ground", "a"), ("q", 0.03, "a", "b"), ("r", 0.02, "ground", "b")):
        b.add_joint(name, sarrus.Helical("z", pitch=pitch), *ends)
    robot = b.build()
    with pytest.raises(
        ModelError, match=r"USD cannot represent: the relation of '._slide' and '.' in a loop of screws"
    ):
        save(robot, tmp_path / "r.usda")
    save(robot, tmp_path / "r.usda", lossy=True)
    other = quietly(sarrus.load, tmp_path / "r.usda")
    assert (
        freedoms(other, other.assemble()) == 2
    )  # 6 hinges and slides, of which the loop determines 2 and the relations 2


def test_everything_that_has_a_word(tmp_path):
    b = sarrus.Builder("all of it", gravity=(0.1, 0.2, -3.0))
    for k in range(4):
        b.add_body(f"b {k}", Inertia.box(1.0 + k, (0.1, 0.2, 0.3)).transformed(TURN))
    terms = {"damping": 0.1, "friction": 0.2, "armature": 0.3, "stiffness": 0.4, "rest": 0.7}
    arm = sarrus.Revolute((1, 2, 3), limits=(-1, 2), effort_limit=5, velocity_limit=0.7, **terms)
    b.add_joint("arm", arm, "ground", "b 0", at_parent=TURN, at_child=TURN, actuated=True)
    b.add_joint("slide", sarrus.Prismatic("-x", limits=(-0.1, np.inf), **terms), "b 0", "b 1")
    b.add_joint("gliding", sarrus.Planar((1, 2, 0)), "b 0", "b 2", at_child=TURN)
    barrel = sarrus.Cylindrical("y", limits=([-1, -2], [1, 2]), effort_limit=[3.0, 4.0])
    b.add_joint("barrel", barrel, "b 1", "b 3", at_parent=TURN, actuated=True)
    b.add_frame("tip", "b 2", TURN)
    b.add_frame("base", "ground", TURN)
    b.add_visual("b 0", sarrus.shapes.Box((0.1, 0.2, 0.3)), (0, 0, 1), color=(0.1, 0.2, 0.3, 0.5))
    b.add_shape("b 1", sarrus.shapes.Capsule(0.1, 0.5), TURN, friction=0.3, restitution=0.1, name="thumb")
    b.add_shape("b 2", sarrus.shapes.Box((0.1, 0.2, 0.3)), name="block")
    b.add_shape("ground", sarrus.shapes.Plane(), (0, 0, -9))
    robot = b.build()
    save(robot, tmp_path / "r.usda")
    other = quietly(sarrus.load, tmp_path / "r.usda")
    found = other.joint("arm").type
    for name in ("limits", "effort_limit", "velocity_limit", *terms):
        assert np.array_equal(getattr(found, name), getattr(arm, name)), name
    assert other.joint("slide").type.limits == ((-0.1,), (np.inf,)) or np.ravel(
        other.joint("slide").type.limits
    ).tolist() == [-0.1, np.inf]
    assert other.joint("barrel").type.limits[1].tolist() == [1, 2]
    assert other.joint("barrel").type.effort_limit.tolist() == [3, 4]
    assert other.actuated == robot.actuated and other.bodies == robot.bodies and set(robot.frames) == set(other.frames)
    assert (
        other.description.visuals[0].color == (0.1, 0.2, 0.3, 0.5)
        and other.description.visuals[0].shape == robot.description.visuals[0].shape
    )
    shapes = {spec.name: spec for spec in other.description.shapes}
    assert (
        shapes["thumb"].shape == robot.description.shapes[0].shape
        and shapes["thumb"].friction == 0.3
        and shapes["ground"].body == "ground"
    )
    assert_allclose(shapes["block"].shape.size, (0.1, 0.2, 0.3), rtol=1e-15)
    rng = np.random.default_rng(1)
    q, v, tau = (
        robot.integrate(robot.neutral(), rng.normal(size=robot.nv)),
        rng.normal(size=robot.nv),
        rng.normal(size=robot.nv),
    )
    # Planar is now told along its own axes: the same body, the same plane
    q1 = q.copy()
    check = robot.joint("gliding").q_slice
    q[check] = q1[other.joint("gliding").q_slice] = 0.0
    assert_allclose(
        other.forward_dynamics(q1, 0 * v, 0 * tau)[:2], robot.forward_dynamics(q, 0 * v, 0 * tau)[:2], rtol=1e-11
    )


def test_lengths_of_rods_and_homes_survive(tmp_path):
    b = sarrus.Builder("rod")
    for name in "ab":
        b.add_body(name, Inertia.sphere(1.0, 0.1))
        b.add_joint(
            f"{name} hinge", sarrus.Revolute("y"), "ground", name, at_parent=(0.0 if name == "a" else 1.0, 0, 0)
        )
    b.add_distance("rod", ("a", (0, 0, 0.5)), ("b", (0, 0, 0.5)), length=1.1)
    b.set_home({"a hinge": 0.3, "b hinge": 0.5})
    robot = b.build()
    save(robot, tmp_path / "r.usda")
    other = sarrus.load(tmp_path / "r.usda")
    assert other.constraint("rod").spec.length == 1.1
    assert_allclose(other._at(other.description.home), robot.assemble(), atol=1e-12)


def test_motors_of_what_floats_and_losses_are_named(tmp_path):
    b = sarrus.Builder("lossy")
    b.add_body("a", Inertia.sphere(1.0, 0.1))
    b.add_body("b", Inertia.sphere(1.0, 0.1))
    b.add_joint("float", sarrus.Free(damping=0.1), "ground", "a")
    b.add_joint("ball", sarrus.Spherical(damping=[0.1, 0.2, 0.3], effort_limit=2.0), "a", "b", actuated=True)
    with pytest.raises(
        ModelError,
        match=r"damping of joint 'float' \(Free\); .*differences between directions in damping of joint 'ball'",
    ):
        b.build().save(tmp_path / "r.usda")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ModelWarning)
        b.build().save(tmp_path / "r.usda", lossy=True)
    text = "\n".join(str(one.message) for one in said)
    assert "limits of joint 'ball' (Spherical)" in text and "the name and the frames of joint 'float'" in text


def test_orders_of_transformations_that_name_none_are_refused():
    placed = 'double3 xformOp:translate = (1, 2, 3)\n uniform token[] xformOpOrder = ["xformOp:translate", "0x1"]'
    with pytest.raises(ModelError, match="has transformations that USD cannot read"):
        sarrus.loads(HEAD + HELD.format(f'def Xform "k" {{\n {placed}\n }}'))


@pytest.mark.parametrize(
    ("joint", "q"),
    [
        (sarrus.Universal("x", "y"), (0.3, 0.4)),
        (sarrus.Helical("z", 0.2), (0.5,)),
        (sarrus.Gimbal(("rx", "ry", "tz")), (0.3, -0.2, 0.1)),
    ],
)
def test_homes_of_chains_are_kept(joint, q, tmp_path):
    """The massless bodies of a chain are placed at home, from which the coordinates of its hinges and slides are read."""
    b = sarrus.Builder("chain")
    b.add_body("plate", Inertia.box(1.0, (0.1, 0.2, 0.3)))
    b.add_joint("joint", joint, "ground", "plate", at_parent=(0, 0, 1), at_child=(0.1, 0, 0))
    b.set_home({"joint": q})
    robot = b.build()
    save(robot, tmp_path / "chain.usda")
    other = sarrus.load(tmp_path / "chain.usda")
    assert_allclose(other.pose(other.assemble(), "plate"), robot.pose(robot.assemble(), "plate"), atol=1e-12)
