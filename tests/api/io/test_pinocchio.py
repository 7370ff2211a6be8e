"""Pinocchio's models and states, in both directions, compared with Pinocchio's results if it is installed."""

import sys
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import sarrus
from sarrus import interop
from tests.effort import examples
from tests.gallery import made
from tests.random_closed import closed_mechanisms
from tests.random_mechanisms import ALL_JOINTS, PLACES, mechanisms, random_state, seeds

try:
    import pinocchio as pin
except ImportError:
    pin = None
with_pinocchio = pytest.mark.skipif(pin is None, reason="needs Pinocchio: pip install pin")
PARALLEL = Path(__file__).parents[4] / "shared" / "models" / "example-parallel-robots"
PARALLEL_FILES = sorted(PARALLEL.glob("*/reference.json"))
REVERSIBLE = tuple(kind for kind in ALL_JOINTS if kind not in ("planar", "spherical", "free"))

# accelerations by Pinocchio's proximal solver, with independent rows, and where some depend on others (a hinge is two points)
PROXIMAL, REDUNDANT = 1e-8, 1e-5


@contextmanager
def losses_allowed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sarrus.ModelWarning)
        yield


def converted(robot, **options):
    with losses_allowed():
        return sarrus.io.to_pinocchio(robot, **options)


def velocity_map(robot, model):
    """Return T with Pinocchio's v = T v."""
    q = np.tile(robot.neutral(), (robot.nv, 1))
    return interop.to_pinocchio_state(robot, model, q, np.eye(robot.nv))[1].T


def passive(robot, v):
    """Return the passive forces that Pinocchio omits."""
    damping, friction = np.zeros((2, robot.nv))
    for joint in map(robot.joint, robot.joints):
        damping[joint.v_slice], friction[joint.v_slice] = joint.type.damping, joint.type.friction
    return damping * v + friction * np.sign(v)


def along_couplers(robot, q):
    """Return a basis of the velocities that the couplers allow, as columns."""
    specs = [robot.constraint(name) for name in robot.constraints]
    J = np.vstack([robot.constraint_jacobian(q)[c.rows] for c in specs if c.spec.kind == "Coupler"])
    return np.linalg.svd(J)[2][len(J) :].T


def compare_trees(robot, model, q, v, tau, tolerance=1e-11):
    """Compare mass matrix, bias, inverse dynamics, and poses of all objects with names in both."""
    data, T = model.createData(), velocity_map(robot, model)
    q_theirs, v_theirs = interop.to_pinocchio_state(robot, model, q, v)
    L = np.linalg.pinv(T)  # v of all joints, of those that are Pinocchio's
    if model.nv < robot.nv:
        N = along_couplers(robot, q)
        L = N @ np.linalg.inv(T @ N)
    still, unit = np.zeros(model.nv), np.eye(model.nv)
    if model.nv == robot.nv:
        upper = np.triu(pin.crba(model, data, q_theirs))
        M = upper + np.triu(upper, 1).T
    else:  # crba of Pinocchio 4.1 leaves out what a mimic ties together across branches
        g = pin.rnea(model, data, q_theirs, still, still).copy()
        M = np.column_stack([pin.rnea(model, data, q_theirs, still, e) - g for e in unit])
    assert_allclose(L.T @ robot.mass_matrix(q) @ L, M, rtol=0, atol=tolerance * max(1.0, abs(M).max()))
    h = robot.bias_forces(q, v) - passive(robot, v)
    theirs = pin.nonLinearEffects(model, data, q_theirs, v_theirs)
    assert_allclose(L.T @ h, theirs, rtol=0, atol=tolerance * max(1.0, abs(h).max()))
    ours = robot.inverse_dynamics(q, v, L @ (T @ tau)) - passive(robot, v)
    theirs = pin.rnea(model, data, q_theirs, v_theirs, T @ tau)
    assert_allclose(L.T @ ours, theirs, rtol=0, atol=tolerance * max(1.0, abs(ours).max()))
    pin.framesForwardKinematics(model, data, q_theirs)
    for frame, pose in zip(list(model.frames)[1:], list(data.oMf)[1:], strict=True):
        if (
            frame.name != "ground"
            and frame.name in (*robot.bodies, *robot.frames)
            and str(frame.type) in ("BODY", "OP_FRAME")
        ):
            assert_allclose(robot.pose(q, frame.name), pose.homogeneous, rtol=0, atol=1e-11)
    if model.nv == robot.nv:
        # the same velocity leads to the same configuration
        ahead = interop.to_pinocchio_state(robot, model, robot.integrate(q, 0.3 * v))
        assert_allclose(pin.difference(model, ahead, pin.integrate(model, q_theirs, 0.3 * v_theirs)), 0, atol=1e-12)


def their_acceleration(robot, model, constraints, q, v, tau, mu):
    """Compute accelerations by Pinocchio's proximal solver."""
    data, T = model.createData(), velocity_map(robot, model)
    states = pin.StdVec_RigidConstraintData()
    states.extend([constraint.createData() for constraint in constraints])
    pin.initConstraintDynamics(model, data, constraints, states)
    q_theirs, v_theirs = interop.to_pinocchio_state(robot, model, q, v)
    settings = pin.ProximalSettings(1e-14, mu, 200)
    tau = T @ (tau - passive(robot, v))
    return T.T @ pin.constraintDynamics(model, data, q_theirs, v_theirs, tau, constraints, states, settings)


def compare_accelerations(robot, model, constraints, q, v, tau):
    redundant = np.linalg.matrix_rank(robot.constraint_jacobian(q), tol=1e-8) < sum(
        constraint.residualSize() for constraint in constraints
    )
    theirs = their_acceleration(robot, model, constraints, q, v, tau, 1e-8 if redundant else 1e-12)
    ours = robot.forward_dynamics(q, v, tau)
    assert_allclose(ours, theirs, rtol=0, atol=(REDUNDANT if redundant else PROXIMAL) * max(1.0, abs(theirs).max()))


def state(robot, seed=0):
    """Return a state, on the loops if there are any."""
    rng = np.random.default_rng(seed)
    q, v, tau = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    if robot.nc:
        q = robot.assemble()
        v = robot.project_velocity(q, v)
    return q, v, tau


# --- attributes alone -------------------------------------------------------------------------------------------------


class OneAxis:
    """A joint with the attributes of Pinocchio's that are read."""

    def __init__(self, name, S, at_q, at_v, nq=1):
        self.name, self.S, self.idx_q, self.idx_v, self.nq, self.nv = name, S, at_q, at_v, nq, 1

    def shortname(self):
        return self.name

    def createData(self):
        return SimpleNamespace()

    def calc(self, data, q):
        data.S = np.array(self.S)


def place(x=0.0, y=0.0, z=0.0):
    return SimpleNamespace(rotation=np.eye(3), translation=np.array([x, y, z]))


def arm_of_no_library():
    """Return a model: free base, wheel with cosine and sine of its angle, slide and screw; the last two mimic nothing."""
    base = SimpleNamespace(shortname=lambda: "JointModelFreeFlyer", idx_q=0, idx_v=0, nq=7, nv=6)
    wheel = OneAxis("JointModelRUBY", [0, 0, 0, 0, 1, 0], 7, 6, nq=2)
    slide = OneAxis("JointModelPrismaticUnaligned", [0.6, 0, 0.8, 0, 0, 0], 9, 7)
    screw = OneAxis("JointModelHZ", [0, 0, 0.25, 0, 0, 1], 10, 8)
    inertia = SimpleNamespace(mass=2.0, lever=np.array([0.0, 0, -1]), inertia=0.1 * np.eye(3))
    most = np.full(9, 1.7976931348623157e308)
    low, high = -np.full(11, most[0]), np.full(11, most[0])
    low[9], high[9], low[7:9], high[7:9] = -0.5, 0.25, -1.01, 1.01
    limits = {"upperEffortLimit": most.copy(), "lowerEffortLimit": -most, "velocityLimit": most}
    limits["upperEffortLimit"][7], limits["lowerEffortLimit"][7] = 20.0, -5.0
    return SimpleNamespace(
        name="arm", nq=11, nv=9, gravity=SimpleNamespace(linear=np.array([0, 0, -10.0]), angular=np.zeros(3)),
        names=["universe", "base", "wheel", "slide", "screw"], parents=[0, 0, 1, 1, 3], mimicking_joints=[], mimicked_joints=[],
        joints=[None, base, wheel, slide, screw], jointPlacements=[place(), place(), place(x=1), place(), place(z=2)],
        inertias=[inertia] * 5, armature=np.arange(9.0), damping=np.zeros(9), friction=np.zeros(9),
        lowerPositionLimit=low, upperPositionLimit=high, frames=[None], **limits,
    )  # fmt: skip


def test_attributes_of_no_library():
    model = arm_of_no_library()
    robot = sarrus.io.from_pinocchio(model)
    assert (robot.name, robot.joints, robot.bodies) == ("arm", tuple(model.names[1:]), tuple(model.names[1:]))
    assert [robot.joint(name).kind for name in robot.joints] == ["Free", "Revolute", "Prismatic", "Helical"]
    assert robot.joint("screw").type.pitch == 0.25
    assert_allclose(robot.joint("slide").type.axis, [0.6, 0, 0.8])
    assert_allclose(robot.joint("slide").limits, [[-0.5], [0.25]])
    assert robot.joint("wheel").limits is None
    assert (robot.joint("slide").type.effort_limit, robot.joint("screw").type.effort_limit) == ([20.0], None)
    assert_allclose(robot.joint("base").type.armature, [3, 4, 5, 0, 1, 2])
    assert_allclose(robot.gravity, [0, 0, -10])
    assert robot.warnings == ("Model: effort limits of the two directions differ; the larger one is used for both",)
    with pytest.raises(TypeError, match=r"model must be a pinocchio.Model, or have its attributes; got 3"):
        sarrus.io.from_pinocchio(3)


def test_states_by_hand():
    robot, model, h = sarrus.io.from_pinocchio(arm_of_no_library()), arm_of_no_library(), np.sqrt(0.5)
    q, v = [0, 0, h, h, 1, 2, 3, np.pi / 3, 0.1, 0.2], [1, 2, 3, 4, 5, 6, 7, 8, 9]
    theirs = interop.to_pinocchio_state(robot, model, q, v)
    assert_allclose(theirs[0], [1, 2, 3, 0, 0, h, h, 0.5, np.sqrt(0.75), 0.1, 0.2])
    assert_allclose(theirs[1], [4, 5, 6, 1, 2, 3, 7, 8, 9])
    for ours, back in zip((q, v), interop.from_pinocchio_state(robot, model, *theirs), strict=True):
        assert_allclose(back, ours, atol=1e-15)
    # many at once
    assert_allclose(interop.to_pinocchio_state(robot, model, [[q], [q]])[1, 0], theirs[0])
    assert interop.from_pinocchio_state(robot, model, [theirs[0]] * 2, theirs[1])[1].shape == (9,)


def test_the_order_of_joints_is_the_model_s():
    robot, model = sarrus.io.from_pinocchio(arm_of_no_library()), arm_of_no_library()
    b = robot.to_builder()
    b._joints = dict(reversed(b._joints.items()))
    other = b.build()
    q, v = robot.random(np.random.default_rng(1)), np.arange(9.0)
    q_other, v_other = interop.from_pinocchio_state(other, model, *interop.to_pinocchio_state(robot, model, q, v))
    assert other.joints == robot.joints[::-1]
    assert_allclose(v_other[other.joint("base").v_slice], v[:6])
    assert_allclose(other.mass_matrix(q_other)[::-1, ::-1][-3:, -3:], other.mass_matrix(q_other)[:3, :3][::-1, ::-1])
    assert_allclose(
        interop.to_pinocchio_state(other, model, q_other, v_other)[1], interop.to_pinocchio_state(robot, model, q, v)[1]
    )
    assert_allclose(other.potential_energy(q_other), robot.potential_energy(q))


def test_bad_states():
    robot, model = sarrus.io.from_pinocchio(arm_of_no_library()), arm_of_no_library()
    with pytest.raises(sarrus.ShapeError, match=r"q has shape \(11,\); this mechanism requires \(..., 10\)"):
        interop.to_pinocchio_state(robot, model, np.zeros(11))
    with pytest.raises(sarrus.ShapeError, match=r"q has shape \(10,\); Pinocchio's model requires \(..., 11\)"):
        interop.from_pinocchio_state(robot, model, np.zeros(10))
    with pytest.raises(TypeError, match="mechanism must be a Mechanism"):
        interop.to_pinocchio_state(None, model, [0.0])
    for turn in (interop.to_pinocchio_state, interop.from_pinocchio_state):
        with pytest.raises(TypeError, match=r"model must be a pinocchio.Model, or have its attributes; got None"):
            turn(robot, None, robot.neutral())
    model.names[2] = "wheeel"
    with pytest.raises(sarrus.NameNotFoundError, match="model: no joint is named 'wheeel'; did you mean 'wheel'"):
        interop.to_pinocchio_state(robot, model, robot.neutral())
    model = arm_of_no_library()
    for parts in (model.names, model.joints):
        del parts[4]
    with pytest.raises(sarrus.ModelError, match="the model has no joint 'screw', which the robot has"):
        interop.to_pinocchio_state(robot, model, robot.neutral())
    model = arm_of_no_library()
    model.joints[4] = SimpleNamespace(shortname=lambda: "JointModelSpherical", idx_q=10, idx_v=8, nq=4, nv=3)
    with pytest.raises(
        sarrus.ModelError, match="joint 'screw' is Helical with 1 coordinates in the robot, but a JointModelSph"
    ):
        interop.to_pinocchio_state(robot, model, robot.neutral())
    b = sarrus.Builder()
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("base", sarrus.Free(), "ball", "ground")
    model = arm_of_no_library()
    model.names, model.joints = model.names[:2], model.joints[:2]
    with pytest.raises(sarrus.ModelError, match=r"joint 'base' \(Free\) has its child nearer to the ground"):
        interop.to_pinocchio_state(b.build(), model, [0, 0, 0, 1, 0, 0, 0])


def test_pinocchio_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(ModuleNotFoundError, match=r"to_pinocchio\(\) needs Pinocchio: pip install pin"):
        sarrus.io.to_pinocchio(sarrus.mechanisms.pendulum())


# --- from Pinocchio ---------------------------------------------------------------------------------------------------


def composite():
    joint = pin.JointModelComposite()
    joint.addJoint(pin.JointModelRX(), pin.SE3.Random())
    joint.addJoint(pin.JointModelPlanar(), pin.SE3.Random())
    joint.addJoint(pin.JointModelSphericalZYX(), pin.SE3.Random())
    joint.addJoint(pin.JointModelRUBZ(), pin.SE3.Random())
    return joint


A, B = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
KINDS = {
    "RX": lambda: pin.JointModelRX(), "RY": lambda: pin.JointModelRY(), "RZ": lambda: pin.JointModelRZ(),
    "RUBX": lambda: pin.JointModelRUBX(), "RUBZ": lambda: pin.JointModelRUBZ(),
    "PX": lambda: pin.JointModelPX(), "PY": lambda: pin.JointModelPY(), "PZ": lambda: pin.JointModelPZ(),
    "HX": lambda: pin.JointModelHX(0.3), "HZ": lambda: pin.JointModelHZ(-0.2),
    "revolute": lambda: pin.JointModelRevoluteUnaligned(A), "prismatic": lambda: pin.JointModelPrismaticUnaligned(A),
    "helical": lambda: pin.JointModelHelicalUnaligned(A, 0.4), "unbounded": lambda: pin.JointModelRevoluteUnboundedUnaligned(),
    "spherical": lambda: pin.JointModelSpherical(), "zyx": lambda: pin.JointModelSphericalZYX(),
    "free": lambda: pin.JointModelFreeFlyer(), "planar": lambda: pin.JointModelPlanar(),
    "translation": lambda: pin.JointModelTranslation(), "universal": lambda: pin.JointModelUniversal(A, B),
    "composite": composite,
}  # fmt: skip


def chain(*joints):
    """Return a tree: a hinge carries these joints in series, and a slide beside them."""
    pin.seed(3)
    model, at = pin.Model(), 0
    model.name, model.gravity.linear = "chain", np.array([1.0, 2.0, -9.0])
    for k, joint in enumerate((pin.JointModelRY(), *joints, pin.JointModelPX())):
        at = model.addJoint(at, joint, pin.SE3.Random(), f"j{k}")
        model.appendBodyToJoint(at, pin.Inertia.FromBox(1.0 + k, 0.1, 0.2, 0.3), pin.SE3.Random())
        model.addBodyFrame(f"b{k}", at, pin.SE3.Random() if k % 2 else pin.SE3.Identity(), 0)
        model.addFrame(pin.Frame(f"f{k}", at, 0, pin.SE3.Random(), pin.OP_FRAME))
    at = model.addJoint(1, pin.JointModelPZ(), pin.SE3.Random(), "side")
    model.appendBodyToJoint(at, pin.Inertia.FromSphere(1.0, 0.5), pin.SE3.Random())
    model.armature = np.random.default_rng(0).uniform(0, 1, model.nv)
    return model


def their_state(model, seed=0):
    rng = np.random.default_rng(seed)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    return q, rng.normal(size=model.nv), rng.normal(size=model.nv)


@with_pinocchio
@pytest.mark.parametrize("kind", KINDS)
def test_joints(kind):
    model = chain(KINDS[kind]())
    robot = sarrus.io.from_pinocchio(model)
    q_theirs, v_theirs, a = their_state(model)
    q, v = interop.from_pinocchio_state(robot, model, q_theirs, v_theirs)
    back = interop.to_pinocchio_state(robot, model, q, v)
    assert_allclose(back[0], q_theirs, atol=1e-14)
    assert_allclose(back[1], v_theirs, atol=1e-14)
    compare_trees(robot, model, q, v, a)
    assert (robot.bodies[-1], robot.nv) == ("side", model.nv)


@with_pinocchio
@pytest.mark.parametrize(
    ("leader", "inner"),
    [
        *((a, b) for a in ("RX", "prismatic", "helical") for b in ("RX", "revolute", "PZ", "prismatic")),
        ("RUBX", "RUBZ"),
    ],
)
def test_mimics(leader, inner):
    """M, bias and inverse dynamics on the coupler. Pinocchio requires equal numbers of coordinates for both joints."""
    model = chain(KINDS[leader]())
    follower = KINDS[inner]()
    first = model.joints[2]
    follower.setIndexes(first.id, first.idx_q, first.idx_v, first.idx_v)
    at = model.addJoint(4, pin.JointModelMimic(pin.JointModel(follower), -1.5, 0.3), pin.SE3.Random(), "mimic")
    model.appendBodyToJoint(at, pin.Inertia.Random(), pin.SE3.Random())
    robot = sarrus.io.from_pinocchio(model)
    assert (robot.nv, model.nv, robot.constraints) == (model.nv + 1, 4, ("mimic follows j1",))
    q, v = interop.from_pinocchio_state(robot, model, *their_state(model)[:2])
    assert abs(robot.constraint_residual(q)).max() < 1e-14
    assert_allclose(robot.constraint_jacobian(q) @ v, 0, atol=1e-14)
    compare_trees(robot, model, q, v, robot.project_velocity(q, np.arange(5.0)))


@with_pinocchio
def test_joints_without_a_counterpart():
    model = chain(pin.JointModelEllipsoid(1, 2, 3))
    with pytest.raises(
        sarrus.ModelError, match="joint 'j1' is a JointModelEllipsoid, which has no counterpart in sarrus"
    ):
        sarrus.io.from_pinocchio(model)
    model = chain()
    model.addJoint(3, pin.JointModelMimic(model.joints[1], 0.0, 0.0), pin.SE3.Identity(), "mimic")
    with pytest.raises(
        sarrus.ModelError, match=r"joint 'mimic' is a JointModelMimic, .*: its scaling must not be zero"
    ):
        sarrus.io.from_pinocchio(model)
    model = chain()
    screw, first = pin.JointModelHX(0.3), model.joints[1]
    screw.setIndexes(first.id, first.idx_q, first.idx_v, first.idx_v)
    model.addJoint(3, pin.JointModelMimic(pin.JointModel(screw), 1.0, 0.0), pin.SE3.Identity(), "mimic")
    with pytest.raises(
        sarrus.ModelError,
        match=r"joint 'mimic' is a JointModelMimic of a screw, .*: Pinocchio's algorithms omit the pitch",
    ):
        sarrus.io.from_pinocchio(model)
    model = chain()
    model.inertias[1] = pin.Inertia(1.0, np.full(3, np.nan), np.eye(3))
    with pytest.raises(sarrus.ModelError, match="inertia of joint 'j0': "):
        sarrus.io.from_pinocchio(model)


@with_pinocchio
def test_inertias_that_no_body_has():
    """Such inertias are kept, in both directions."""
    b = sarrus.Builder()
    b.add_body("a", sarrus.Inertia(1.0, (0.1, 0, 0), np.diag([-0.1, 0.2, 0.5]), check=False))
    b.add_joint("j", sarrus.Revolute("y"), "ground", "a")
    robot = b.build()
    model, _ = converted(robot)
    compare_trees(robot, model, *np.ones((3, 1)))
    again = sarrus.io.from_pinocchio(model)
    assert again.warnings[0].startswith("Model: no body of 1 kg has principal moments of inertia -0.1, 0.2, 0.5")
    compare_trees(again, model, *np.ones((3, 1)))


@with_pinocchio
def test_limits_the_wrong_way_round():
    model = chain()
    model.upperPositionLimit[1], model.lowerPositionLimit[1] = -1.0, 1.0
    with pytest.raises(sarrus.ModelError, match="joint 'j1': Prismatic: lower limit"):
        sarrus.io.from_pinocchio(model)


@with_pinocchio
def test_what_is_not_read_of_a_model():
    model = chain()
    model.addFrame(pin.Frame("b0", 1, 0, pin.SE3.Identity(), pin.SENSOR))
    model.addFrame(pin.Frame("ground", 2, 0, pin.SE3.Identity(), pin.OP_FRAME))
    model.damping[0], model.friction[1], model.rotorInertia[0], model.gravity.angular = 3.0, 4.0, 5.0, np.ones(3)
    robot = sarrus.io.from_pinocchio(model)
    assert sorted(robot.warnings) == [
        "Model: OP_FRAME frame 'ground' becomes 'ground_': its name is in use",
        "Model: SENSOR frame 'b0' becomes 'b0_': its name is in use",
        "Model: damping and friction act in sarrus, and in none of Pinocchio's algorithms",
        "Model: rotorInertia and rotorGearRatio are not read; armature is",
        "Model: the angular part of gravity is not read",
    ]
    assert (robot.joint("j0").type.damping, robot.joint("j1").type.friction) == (3.0, 4.0)


@with_pinocchio
def test_configurations():
    model = chain(pin.JointModelFreeFlyer(), pin.JointModelRUBY())
    for name in ("home", "up"):
        model.referenceConfigurations[name] = their_state(model, len(name))[0]
    robot = sarrus.io.from_pinocchio(model)
    assert tuple(dict(robot.description.configurations)) == ("home", "up")
    for name in dict(robot.description.configurations):
        theirs = interop.to_pinocchio_state(robot, model, robot.configuration(name))
        assert_allclose(theirs, model.referenceConfigurations[name], atol=1e-14)
    again = converted(robot)[0]
    assert {x.key() for x in again.referenceConfigurations} == {"home", "up"}
    assert_allclose(
        interop.from_pinocchio_state(robot, again, again.referenceConfigurations["up"]), robot.configuration("up")
    )


# --- loops ------------------------------------------------------------------------------------------------------------


def contacts(model, kinds):
    """Return constraints between joints at a random configuration, with placements on both."""
    q, _, _ = their_state(model)
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    constraints = pin.StdVec_RigidConstraintModel()
    for k, (kind, one, other) in enumerate(kinds):
        at = pin.SE3.Random()
        there = data.oMi[other].actInv(data.oMi[one] * at)
        constraints.append(pin.RigidConstraintModel(kind, model, one, at, other, there, pin.ReferenceFrame.LOCAL))
        constraints[-1].name = f"contact{k}"
    return constraints, q


@with_pinocchio
@pytest.mark.parametrize("kinds", ["3", "6", "33", "36", "63"])
def test_rigid_constraints(kinds):
    model = chain(*(KINDS[kind]() for kind in ("free", "spherical", "RUBX", "planar", "universal", "revolute")))
    last = model.njoints - 2
    where = [(0, last), (last + 1, 3)]
    which = [getattr(pin.ContactType, f"CONTACT_{kind}D") for kind in kinds]
    constraints, q = contacts(model, [(kind, *ends) for kind, ends in zip(which, where)])
    robot = sarrus.io.from_pinocchio(model, constraints)
    assert robot.constraints == tuple(f"contact{k}" for k in range(len(kinds)))
    assert robot.nc == sum(map(int, kinds))
    q = interop.from_pinocchio_state(robot, model, q)
    assert abs(robot.constraint_residual(q)).max() < 1e-13
    rng = np.random.default_rng(4)
    v, tau = robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    compare_accelerations(robot, model, constraints, q, v, tau)


@with_pinocchio
def test_anchors_and_what_is_no_constraint():
    model = chain()
    both = [pin.PointAnchorConstraintModel(model, 1, pin.SE3.Identity(), 2, pin.SE3.Identity())]
    both.append(pin.ConstraintModel(pin.FrameAnchorConstraintModel(model, 2)))
    robot = sarrus.io.from_pinocchio(model, both)
    assert [robot.constraint(name).spec.kind for name in robot.constraints] == ["Spherical", "Fixed"]
    assert robot.constraints == ("b0 to b1", "b1 to ground")
    with pytest.raises(sarrus.ModelError, match="is a PointContactConstraintModel; expected"):
        sarrus.io.from_pinocchio(model, [pin.PointContactConstraintModel(model, 1)])
    with pytest.raises(sarrus.ModelError, match=r"constraints: expected pinocchio.RigidConstraintModel; got 3"):
        sarrus.io.from_pinocchio(model, [3])
    moved = pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, 1, pin.SE3.Identity())
    moved.desired_contact_velocity, moved.desired_contact_placement = pin.Motion.Random(), pin.SE3.Random()
    assert sorted(sarrus.io.from_pinocchio(model, [moved]).warnings) == [
        "Model: desired_contact_placement of constraints is not read: their frames coincide",
        "Model: desired_contact_velocity of constraints is not read: their frames coincide",
    ]


# --- to Pinocchio, and back -------------------------------------------------------------------------------------------


@with_pinocchio
@pytest.mark.parametrize("at", PLACES)
@examples(20)
@given(robot=mechanisms(armature=True).filter(lambda robot: robot.nv), seed=seeds())
def test_random_trees(at, robot, seed):
    model, _ = converted(robot)
    q, v, _ = random_state(robot, np.random.default_rng(seed), at)
    compare_trees(robot, model, q, v, v[::-1].copy())
    again = sarrus.io.from_pinocchio(model)
    q, v = interop.from_pinocchio_state(again, model, *interop.to_pinocchio_state(robot, model, q, v))
    compare_trees(again, model, q, v, v[::-1].copy())


@with_pinocchio
@examples(20)
@given(
    robot=mechanisms(joints=REVERSIBLE, floating=False, backward=0.5, armature=True).filter(lambda robot: robot.nv),
    seed=seeds(),
)
def test_random_trees_whose_joints_point_to_the_ground(robot, seed):
    model, _ = converted(robot)
    compare_trees(robot, model, *random_state(robot, np.random.default_rng(seed)))


@with_pinocchio
@examples(20)
@given(closed=closed_mechanisms(kinds=("revolute", "spherical", "fixed"), copies=0, armature=True))
def test_random_loops(closed):
    if not closed.robot.nc:
        return
    model, constraints = converted(closed.robot)
    q, v, tau, _ = closed.state
    compare_accelerations(closed.robot, model, constraints, q, v, tau)
    again = sarrus.io.from_pinocchio(model, constraints)
    q, v = interop.from_pinocchio_state(again, model, *interop.to_pinocchio_state(closed.robot, model, q, v))
    assert abs(again.constraint_residual(q)).max(initial=0.0) < 1e-9
    compare_accelerations(
        again, model, constraints, q, v, velocity_map(again, model).T @ velocity_map(closed.robot, model) @ tau
    )


# of which Pinocchio has no word for something that moves them
REFUSED = {
    "cable_platform": r"Cable\(.*loop joints can be Fixed, Spherical and Rev", "chain_mail": "Distance", "free_flyer": "stiffness", "gripper": "stiffness",
    "macro_micro_arm": "stiffness", "rolling_disc": "Rolling", "sampler": "stiffness", "tensegrity_prism": "Distance", "tsai_3upu": r"Universal\(.*loop joints can be Fixed, Spherical and Rev",
    "whipple_bicycle": "Rolling", "wren_platform": "Distance",
}  # fmt: skip


@with_pinocchio
@pytest.mark.parametrize("name", sarrus.mechanisms.__all__)
def test_gallery(name):
    mechanism = made(name)
    if name in REFUSED:
        with (
            losses_allowed(),
            pytest.raises(sarrus.ModelError, match=f"{REFUSED[name]}.*lossy=True omits them"),
        ):
            sarrus.io.to_pinocchio(mechanism)
        return
    model, constraints = converted(mechanism)
    again = sarrus.io.from_pinocchio(model, constraints)
    for robot in (mechanism, again):
        q, v, tau = state(mechanism)
        if robot is again:
            q, v = interop.from_pinocchio_state(again, model, *interop.to_pinocchio_state(mechanism, model, q, v))
            tau = velocity_map(again, model).T @ velocity_map(mechanism, model) @ tau
        compare_trees(robot, model, q, v, v if model.nv < robot.nv else tau)
        if len(constraints) and model.nv == robot.nv:
            compare_accelerations(robot, model, constraints, q, v, tau)


def everything():
    b = sarrus.Builder("all", gravity=(0, 1, -9))
    for name in "abcdef":
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    numbers = {"damping": 0.1, "friction": 0.2, "armature": 0.3, "velocity_limit": 4.0, "effort_limit": 5.0}
    b.add_joint("free", sarrus.Free(armature=[1, 2, 3, 4, 5, 6]), "ground", "a")
    b.add_joint(
        "hinge", sarrus.Revolute((1, 2, 3), limits=(-1, 2), **numbers), "a", "b", at_child=(0.1, 0, 0), actuated=True
    )
    b.add_joint("plane", sarrus.Planar("z", limits=((-1, -2, -3), (1, 2, 3))), "b", "c")
    b.add_joint("slide", sarrus.Prismatic("y", limits=(-np.inf, 1)), "c", "d")
    b.add_joint("gear", sarrus.Revolute("x", limits=(0, 1), **numbers), "d", "e", at_parent=(0, 0, 1))
    b.add_joint("weld", sarrus.Fixed(), "e", "f", at_parent=(0, 0.2, 0))
    b.add_coupler("ratio", {"gear": 2.0, "hinge": 1.0}, offset=0.5)
    b.add_frame("tool", "f", (0, 0, 0.3))
    b.set_home({"slide": 0.25, "gear": 0.25})
    return b


@with_pinocchio
def test_what_is_lost_is_told():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model, constraints = sarrus.io.to_pinocchio(everything().build())
    assert sorted(str(w.message) for w in said) == [
        "all: Pinocchio cannot represent, and the model omits: limits of joint 'gear', which mimics another",
        "all: Pinocchio cannot represent, and the model omits: limits of the angle of joint 'plane' (Planar)",
        "all: Pinocchio cannot represent, and the model omits: motors of joints 'hinge'",
        "all: damping and friction are in the model, but Pinocchio's algorithms do not use them",
    ]
    assert (list(constraints), model.name, list(model.gravity.linear)) == ([], "all", [0, 1, -9])
    assert list(model.names)[1:] == ["free", "hinge", "plane", "slide", "gear"]
    assert model.referenceConfigurations["home"][12] == 0.25
    b = everything()
    b.add_spring("coil", ("a", (0, 0, 0)), ("f", (0, 0, 0)), stiffness=1.0, rest_length=0.1)
    b.set_joint("slide", sarrus.Prismatic("y", stiffness=3.0))
    b.add_coupler("three", {"hinge": 1.0, "slide": 1.0, "gear": 1.0})
    with pytest.raises(sarrus.ModelError) as told:
        sarrus.io.to_pinocchio(b.build())
    assert str(told.value) == (
        "all: Pinocchio cannot represent: constraint 'three: Coupler ─ 1 hinge + 1 slide + 1 gear = 0'; stiffness of joint 'slide'; "
        "spring 'coil'. lossy=True omits them"
    )
    assert converted(b.build(), lossy=True)[0].nv == model.nv
    b = everything()
    b.add_joint("rivet", sarrus.Revolute("z", damping=1.0), "a", "f", loop=True)
    with pytest.raises(sarrus.ModelError, match="cannot represent: damping of loop joint 'rivet'"):
        sarrus.io.to_pinocchio(b.build())
    assert len(converted(b.build(), lossy=True)[1]) == 2  # points of its axis
    b = sarrus.Builder()
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("base", sarrus.Spherical(), "ball", "ground")
    with pytest.raises(sarrus.ModelError, match=r"joint 'base' \(Spherical\) has its child nearer to the ground"):
        sarrus.io.to_pinocchio(b.build())


@with_pinocchio
def test_there_and_back():
    robot = everything().build()
    model, constraints = converted(robot)
    again = sarrus.io.from_pinocchio(model, constraints)
    assert (again.name, again.bodies, again.joints) == (
        "all",
        tuple("abcde"),
        ("free", "hinge", "plane", "slide", "gear"),
    )
    assert set(again.frames) >= {"tool", "f"}
    for name in ("free", "plane", "slide"):
        one, other = robot.joint(name).type, again.joint(name).type
        for term in ("armature", "damping", "friction", "velocity_limit", "effort_limit"):
            assert_allclose(*(np.nan_to_num(np.array(getattr(x, term), float)) for x in (one, other)))
    assert_allclose(again.joint("hinge").limits, [[-1], [2]])
    assert_allclose(again.joint("plane").limits, [[-1, -2, -np.inf], [1, 2, np.inf]])
    assert_allclose(again.joint("slide").limits, [[-np.inf], [1]])
    hinge = again.joint("hinge").type
    # that of the joint that follows comes on top, by the ratio of velocities
    assert_allclose([hinge.damping, hinge.friction, hinge.armature], [[0.125], [0.3], [0.375]])
    assert_allclose([hinge.velocity_limit, hinge.effort_limit], [[4], [5]])
    assert_allclose(again.configuration("home"), robot._at(robot.description.home))
    q, v, tau = state(robot)
    q, v = interop.from_pinocchio_state(again, model, *interop.to_pinocchio_state(robot, model, q, v))
    assert_allclose(again.forward_dynamics(q, v, tau), robot.forward_dynamics(q, v, tau), atol=1e-10)
    for frame in ("a", "c", "tool", "f"):
        assert_allclose(again.pose(q, frame), robot.pose(q, frame), atol=1e-13)


@with_pinocchio
def test_couplers_one_after_another():
    """All follow the first hinge, whichever is coupled to which; a screw, and joints with two couplers, do not."""
    b = sarrus.Builder("train")
    for name, joint in (("a", sarrus.Revolute("x")), ("b", sarrus.Prismatic("y")), ("c", sarrus.Revolute((1, 1, 0)))):
        b.add_body(name, sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
        b.add_joint(f"j{name}", joint, "ground", name, at_parent=(0.1, 0.2, 0.3), at_child=(0, 0, 0.5))
    b.add_coupler("one", {"ja": 1.0, "jb": 2.0}, offset=0.3)
    b.add_coupler("two", {"jc": 4.0, "jb": -1.5}, offset=0.2)
    robot = b.build()
    model, _ = converted(robot)
    assert (model.nv, list(model.mimicked_joints)) == (1, [1, 1])
    q, v = interop.from_pinocchio_state(robot, model, np.array([0.4]), np.array([0.7]))
    assert abs(robot.constraint_residual(q)).max() < 1e-15
    assert_allclose(robot.constraint_jacobian(q) @ v, 0, atol=1e-15)
    compare_trees(robot, model, q, v, v)
    b.add_body("d", sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    b.add_joint("jd", sarrus.Revolute("z"), "ground", "d")
    b.add_body("e", sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    b.add_joint("je", sarrus.Revolute("z"), "d", "e")
    b.add_coupler("late", {"je": 1.0, "jd": 2.0}, offset=-0.4)
    b.add_coupler("both", {"je": 0.3, "jc": 2.0}, offset=0.7)
    robot = b.build()
    model, _ = converted(robot)
    assert (model.nv, list(model.mimicked_joints)) == (1, [1, 1, 1, 1])
    q, v = interop.from_pinocchio_state(robot, model, np.array([0.4]), np.array([0.7]))
    assert abs(robot.constraint_residual(q)).max() < 1e-14
    compare_trees(robot, model, q, v, v)
    b.add_coupler("three", {"ja": 1.0, "jc": 1.0})
    with losses_allowed(), pytest.raises(sarrus.ModelError, match="cannot represent: constraint 'three: "):
        sarrus.io.to_pinocchio(b.build())
    b.remove_constraint("three")
    b.set_joint("jc", sarrus.Helical("x", 0.1))
    with losses_allowed(), pytest.raises(sarrus.ModelError, match="cannot represent: constraint 'two: "):
        sarrus.io.to_pinocchio(b.build())


# --- robots -----------------------------------------------------------------------------------------------------------


def real_robots():
    prefix = find_spec("cmeel")
    if prefix is None or prefix.origin is None or pin is None:
        return []
    folder = Path(prefix.origin).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
    wanted = ("talos_reduced", "anymal", "panda", "solo12", "cassie", "ur5_robot", "tiago", "iCub_reduced", "hector")
    return [path for name in wanted for path in sorted(folder.rglob(f"{name}.urdf"))]


@pytest.mark.parametrize("path", real_robots(), ids=lambda path: path.stem)
@pytest.mark.parametrize("floating", [False, True])
def test_robots_of_others(path, floating):
    """Pinocchio's and sarrus' readings of a file; joints are matched by name."""
    roots = [pin.JointModelFreeFlyer()] if floating else []
    model = pin.buildModelFromUrdf(str(path), *roots)
    taken, read = sarrus.io.from_pinocchio(model), sarrus.load(path, floating_base=floating)
    assert taken.nv == read.nv == model.nv
    q_theirs, v_theirs, a = their_state(model)
    for robot in (taken, read):
        q, v = interop.from_pinocchio_state(robot, model, q_theirs, v_theirs)
        compare_trees(robot, model, q, v, a)
    again, _ = converted(read)
    q, v = interop.from_pinocchio_state(read, again, *interop.to_pinocchio_state(read, again, q, v))
    compare_trees(read, again, q, v, v)
    if floating:
        mass = sum(b.inertia.mass for b in taken.description.bodies)
        assert_allclose(mass, sum(b.inertia.mass for b in read.description.bodies))


@with_pinocchio
@pytest.mark.skipif(not PARALLEL_FILES, reason="the published models are not beside the checkout")
@pytest.mark.parametrize("path", PARALLEL_FILES, ids=lambda path: path.parent.name)
def test_parallel_robots(path):
    """Loops in files of other projects: accelerations by Pinocchio's solver."""
    robot = sarrus.load(path.parent / "robot.urdf", loops=path.parent / "robot.yaml")
    model, constraints = converted(robot)
    q, v, tau = state(robot)
    compare_trees(robot, model, q, v, tau)
    compare_accelerations(robot, model, constraints, q, v, tau)
    again = sarrus.io.from_pinocchio(model, constraints)
    q, v = interop.from_pinocchio_state(again, model, *interop.to_pinocchio_state(robot, model, q, v))
    assert abs(again.constraint_residual(q)).max() < 1e-9
    compare_trees(again, model, q, v, tau)
