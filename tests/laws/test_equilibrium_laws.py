"""Static equilibrium: balance of forces on the loops, minimal energy of stable results, and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

import sarrus
from sarrus import Inertia, Prismatic, Revolute
from sarrus.analysis.independent_coordinates import joint_velocity
from tests.variants import recut

GRAVITY = 9.81
EXACT = 1e-12  # steps end where the next one would move less than 1e-13


def sprung(robot, stiffness=30.0):
    """Return the mechanism with a spring in every hinge and slide."""
    b = robot.to_builder()
    for spec in robot.description.joints:
        if spec.joint.nv == 1:
            b.set_joint(spec.name, replace(spec.joint, stiffness=stiffness, rest=0.1 * (1 + len(spec.name) % 3)))
    return b.build()


def bar_on_a_torsion_spring(length=1.0, mass=2.0, stiffness=15.0):
    b = sarrus.Builder("bar")
    b.add_body("bar", Inertia(mass, (length / 2.0, 0.0, 0.0), np.eye(3) * mass * length**2 / 10.0))
    b.add_joint("hinge", Revolute("y", stiffness=stiffness), "ground", "bar")
    return b.build()


def truss(height=0.3, width=1.0, stiffness=200.0, size=1.0, mass=0.0):
    """Return von Mises' truss: a mass on a vertical rail between two springs that are relaxed at this height."""
    b = sarrus.Builder("truss", gravity=(0.0, 0.0, -GRAVITY if mass else 0.0))
    b.add_body("mass", Inertia.sphere(mass or 1.0, 0.01 * size))
    b.add_joint("rail", Prismatic("z"), "ground", "mass")
    rest = float(np.hypot(height, width)) * size
    for side in (-1.0, 1.0):
        b.add_spring(
            f"spring {side:g}",
            ("ground", (side * width * size, 0, 0)),
            ("mass", (0, 0, 0)),
            stiffness=stiffness,
            rest_length=rest,
        )
    return b.build()


def test_a_mass_on_a_spring():
    """x = -m g / k, and its compliance is 1 / k; a force lifts it by F / k."""
    b = sarrus.Builder("scale")
    b.add_body("pan", Inertia.sphere(2.0, 0.1))
    b.add_joint("spring", Prismatic("z", stiffness=500.0, rest=0.1), "ground", "pan")
    robot = b.build()
    rest = sarrus.equilibrium(robot, tau=[[0.0], [50.0]])
    assert_allclose(rest.q[:, 0], 0.1 + (np.array([0.0, 50.0]) - 2.0 * GRAVITY) / 500.0, rtol=EXACT)
    assert_allclose(rest.compliance[:, 0, 0], 1.0 / 500.0, rtol=1e-9)
    assert rest.stable.all()


@pytest.mark.parametrize("start", [0.0, 1.0, 2.5])
def test_a_bar_on_a_torsion_spring(start):
    """k angle = m g l/2 cos(angle), and the stiffness is k + m g l/2 sin(angle)."""
    robot = bar_on_a_torsion_spring()
    rest = sarrus.equilibrium(robot, [start])
    angle = brentq(lambda x: 15.0 * x - GRAVITY * np.cos(x), 0.0, 1.0, xtol=1e-15)
    assert_allclose(rest.q, [angle], rtol=EXACT)
    assert_allclose(rest.stiffness, [15.0 + GRAVITY * np.sin(angle)], rtol=1e-9)


def test_a_snap_through_truss():
    """Two stable positions and an unstable one in between; the stiffness is the second derivative of the energy."""
    robot = truss()
    for start, expected in ((0.2, 0.3), (1e-3, 0.3), (-1e-3, -0.3), (-0.5, -0.3)):
        rest = sarrus.equilibrium(robot, [start])
        assert_allclose(rest.q, [expected], atol=EXACT)
        assert rest.stable
        assert_allclose(rest.compliance, [[1.0 / (400.0 * 0.09 / 1.09)]], rtol=1e-9)
    top = sarrus.equilibrium(robot, [0.05], minimum=False)
    assert_allclose(top.q, [0.0], atol=EXACT)
    assert not top.stable
    assert_allclose(top.compliance, [[1.0 / (400.0 * (1.0 - np.sqrt(1.09)))]], rtol=1e-9)
    # on the very top nothing tells it which way to fall
    assert not sarrus.equilibrium(robot, [0.0]).stable
    # and a load beyond the snap leaves one
    force = 1.05 * max(400.0 * z * (np.sqrt(1.09) / np.hypot(z, 1.0) - 1.0) for z in np.linspace(0.0, 0.3, 1000))
    loaded = sarrus.equilibrium(robot, [0.3], tau=[-force])
    assert loaded.q[0] < -0.3
    assert_allclose(400.0 * loaded.q[0] * (1.0 - np.sqrt(1.09) / np.hypot(loaded.q[0], 1.0)), -force, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-5, 1e-2, 1.0, 1e3])
def test_sizes(size):
    """A structure of another size, whose spring forces scale like its weight, rests in the same shape."""
    robot = truss(size=size, mass=1.0, stiffness=200.0 / size)
    rest, one = sarrus.equilibrium(robot, [0.2 * size]), sarrus.equilibrium(truss(mass=1.0), [0.2])
    assert_allclose(rest.q / size, one.q, rtol=1e-12)
    assert_allclose(rest.stiffness[0] / one.stiffness[0], size, rtol=1e-8)


CLOSED = {
    "four bar": lambda: sprung(sarrus.mechanisms.four_bar()),
    "delta": lambda: sprung(sarrus.mechanisms.delta()),
    "stewart": lambda: sprung(sarrus.mechanisms.stewart(), 3000.0),
    "tensegrity": lambda: sarrus.mechanisms.tensegrity_prism(),
}
closed = pytest.mark.parametrize("robot", [make() for make in CLOSED.values()], ids=list(CLOSED))


@closed
def test_forces_balance_and_the_energy_is_least(robot):
    """g = tau + J^T lambda on closed loops, and no nearby configuration on the loops has less energy."""
    rng = np.random.default_rng(1)
    tau = 0.3 * rng.normal(size=robot.nv)
    rest = sarrus.equilibrium(robot, tau=tau)
    zero = np.zeros(robot.nv)
    g = robot.inverse_dynamics(rest.q, zero, zero)
    J = robot.constraint_jacobian(rest.q)
    size = abs(g).max() + abs(J.T @ rest.multipliers).max() + 1.0
    assert_allclose(J.T @ rest.multipliers + tau, g, atol=1e-11 * size)
    assert abs(robot.constraint_residual(rest.q)).max(initial=0.0) < 1e-12
    assert rest.stable
    for reach in (1e-3, 1e-2):
        aside = reach * rng.normal(size=(40, rest.motions.shape[0])) @ rest.motions
        q = robot.project_configuration(robot.integrate(rest.q, aside), metric="euclidean")
        work = robot.difference(rest.q, q) @ tau
        higher = robot.potential_energy(q) - robot.potential_energy(rest.q) - work
        # and by half of what the stiffness says
        along = np.linalg.lstsq(rest.motions.T, robot.difference(rest.q, q).T, rcond=None)[0]
        expected = 0.5 * (rest.stiffness[:, None] * along**2).sum(axis=0)
        assert (higher > 0.0).all()
        assert_allclose(higher, expected, rtol=60.0 * reach, atol=1e-9 * size)


@closed
def test_many_are_one_by_one(robot):
    """Batches equal single states bit for bit, for any number of threads; an invalid initial guess affects only its own row."""
    rng = np.random.default_rng(2)
    one = sarrus.equilibrium(robot)
    tau = 0.1 * rng.normal(size=(9, robot.nv))
    q = np.repeat(one.q[None], 9, axis=0)
    q[4] = np.nan
    many = sarrus.equilibrium(robot, q, tau=tau, threads=2)
    assert many.status[4] == 1
    assert np.isnan(many.q[4]).all()
    assert not many.stable[4]
    for k in (0, 3, 8):
        single = sarrus.equilibrium(robot, q[k], tau=tau[k])
        for name in ("q", "multipliers", "efforts", "stiffness", "motions", "stable"):
            assert_array_equal(getattr(many, name)[k], getattr(single, name))


def between_springs(joint):
    """Return a body with this joint and six springs. A constant force along velocities in the body's axes has no potential."""
    b = sarrus.Builder("between springs")
    b.add_body("body", Inertia.box(2.0, (0.3, 0.2, 0.4)).transformed(sarrus.Transform(translation=(0.05, 0.02, -0.3))))
    b.add_joint("joint", joint, "ground", "body")
    for k, x in enumerate(np.vstack([np.eye(3), -np.eye(3)])):
        ends = ("ground", tuple(2.0 * x)), ("body", tuple(0.3 * x[[1, 2, 0]]))
        b.add_spring(f"spring{k}", *ends, stiffness=40.0, rest_length=1.0)
    return b.build()


def rolling_sphere():
    """Return a sphere that rolls on the ground, between springs."""
    b = sarrus.Builder("sphere on springs")
    b.add_body("sphere", Inertia.sphere(1.0, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "sphere", at_parent=(0, 0, 0.1))
    b.add_rolling("roll", "sphere", radius=0.1)
    for k, (ground, point, stiffness) in enumerate(
        (
            ((0.3, 0.1, 0.3), (0.08, 0.02, 0.03), 80.0),
            ((-0.3, 0.2, 0.2), (-0.05, 0.06, -0.02), 50.0),
            ((0.0, -0.3, 0.25), (0.03, -0.06, 0.05), 60.0),
        )
    ):
        b.add_spring(f"spring{k}", ("ground", ground), ("sphere", point), stiffness=stiffness, rest_length=0.1)
    return b.build()


LOADED = {
    "spherical": lambda: between_springs(sarrus.Spherical()),
    "planar": lambda: between_springs(sarrus.Planar("y")),
    "free": lambda: between_springs(sarrus.Free()),
    "rolling": rolling_sphere,
    **CLOSED,
}


@pytest.mark.parametrize("make", LOADED.values(), ids=list(LOADED))
def test_compliance_is_the_change_of_the_equilibrium(make):
    """dq = compliance dtau, also if the force or the rolling makes the stiffness matrix not symmetric."""
    rng, robot = np.random.default_rng(4), make()
    tau = 0.3 * rng.normal(size=robot.nv)
    rest = sarrus.equilibrium(robot, tau=tau)
    assert rest.neutral == 0
    for change in 1e-4 * rng.normal(size=(3, robot.nv)):
        ends = sarrus.equilibrium(robot, rest.q, tau=[tau - change, tau + change]).q
        moved = 0.5 * robot.difference(*ends)
        assert_allclose(rest.compliance @ change, moved, atol=1e-6 * abs(moved).max())


def test_a_damped_motion_settles_there():
    robot = sarrus.mechanisms.four_bar()
    b = robot.to_builder()
    b.set_joint("motor", replace(robot.joint("motor").type, stiffness=20.0, rest=0.4, damping=3.0))
    robot = b.build()
    q = robot.assemble(fixed={"motor": 0.6})
    rest = sarrus.equilibrium(robot, q)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 20.0)
    assert_allclose(run.q[-1], rest.q, atol=1e-8)


def test_whichever_joint_closes_the_loop():
    robot = sprung(sarrus.mechanisms.four_bar())
    rest = sarrus.equilibrium(robot)
    poses = {body: robot.pose(rest.q, body) for body in robot.bodies[1:]}
    for cut in [j.name for j in robot.description.joints]:
        other = recut(robot, cut)
        again = sarrus.equilibrium(other)
        for body, pose in poses.items():
            assert_allclose(other.pose(again.q, body), pose, atol=1e-11)
        assert_allclose(again.stiffness.size, rest.stiffness.size)


def test_joints_that_are_fixed_are_held():
    """Fixed joints do not move, and their efforts are those of inverse dynamics."""
    robot = sprung(sarrus.mechanisms.double_pendulum())
    first = robot.joints[0]
    rest = sarrus.equilibrium(robot, fixed={first: 0.7})
    assert rest.q[0] == 0.7
    assert_allclose(rest.efforts, robot.inverse_dynamics(rest.q, [0.0, 0.0], [0.0, 0.0]), atol=1e-12)
    assert rest.efforts[1] == 0.0
    assert rest.stiffness.shape == (1,)


@pytest.mark.parametrize(
    "joint",
    [Revolute("y"), sarrus.Cylindrical("y"), sarrus.Universal("x", "y"), sarrus.Spherical(), sarrus.Free()],
    ids=lambda j: type(j).__name__,
)
def test_loop_joints_that_are_fixed_are_held(joint):
    """A fixed loop joint has its coordinates, and its efforts balance all other forces; one state of a batch is that state."""
    b = sarrus.Builder("two arms on a foot and a post")
    for name in "ab":
        b.add_body(name, Inertia.box(1.0, (0.3, 0.2, 0.1)))
    b.add_joint("foot", sarrus.Spherical(), "ground", "a", at_parent=(0.0, 0.1, 0.0))
    b.add_joint("knee", Revolute("y", stiffness=20.0), "a", "b", at_parent=(0.3, 0.0, 0.0))
    b.add_joint("rail", Prismatic("z", stiffness=50.0), "ground", "post")
    b.add_body("post", Inertia.box(2.0, (0.1, 0.1, 0.1)))
    b.add_joint("grip", joint, "post", "b", at_parent=(0.4, 0.1, 0.1), at_child=(0.2, 0.0, 0.0), loop=True)
    robot = b.build()
    q = robot.assemble()
    at = robot.joint_states(q).q["grip"]
    rest = sarrus.equilibrium(robot, q, fixed={"grip": at})
    assert_allclose(robot.joint_states(rest.q).q["grip"], at, atol=1e-12)
    still = np.zeros(robot.nv)
    held = joint_velocity(robot, rest.q, "grip").T @ rest.loop_efforts["grip"]
    others = robot.constraint_jacobian(rest.q).T @ rest.multipliers
    assert np.abs(held).max() > 0.1
    assert_allclose(held + others, robot.inverse_dynamics(rest.q, still, still), atol=1e-9)
    many = sarrus.equilibrium(robot, q, fixed={"grip": np.stack([at, at])})
    assert_array_equal(many.loop_efforts["grip"][1], rest.loop_efforts["grip"])


def test_a_joint_is_held_by_the_same_effort_in_the_tree_and_in_a_loop():
    """A hinge of a four-bar, and the cables of a platform, whose lengths are fixed."""
    robot = sarrus.mechanisms.four_bar()
    x = float(robot.joint_states(robot.assemble()).q["pin2"][0]) + 0.1
    rest = sarrus.equilibrium(robot, fixed={"pin2": x})
    other = recut(robot, "pin1")
    again = sarrus.equilibrium(other, fixed={"pin2": x})
    effort = again.efforts[other.joint("pin2").v_slice]
    assert_allclose(rest.loop_efforts["pin2"], effort, rtol=1e-9)
    platform = sarrus.mechanisms.cable_platform()
    q = platform.assemble()
    lengths = platform.joint_states(q).q
    hung = sarrus.equilibrium(platform, q, fixed={name: lengths[name] for name in platform.actuated[:6]})
    tensions = np.concatenate([hung.loop_efforts[name] for name in platform.actuated[:6]])
    S = platform.actuation_matrix(q)[:, :6]
    assert_allclose(S @ tensions, platform.bias_forces(q, np.zeros(6)), atol=1e-9)


def table():
    """Return a free plate with four feet."""
    b = sarrus.Builder("table")
    b.add_body("plate", Inertia.box(8.0, (1.0, 0.6, 0.1)))
    b.add_joint("base", sarrus.Free(), "ground", "plate")
    for k, (x, y) in enumerate(((0.5, 0.3), (-0.5, 0.3), (-0.5, -0.3), (0.5, -0.3))):
        b.add_frame(f"foot{k}", "plate", (x, y, -0.4))
    return b.build()


def test_contacts_carry_the_weight():
    robot = table()
    rest = sarrus.equilibrium(robot, contacts={f"foot{k}": 0.2 for k in range(4)})
    assert_allclose(robot.pose(rest.q, "plate")[:3, 3], [0.0, 0.0, 0.6], atol=1e-14)
    for force in rest.contact_forces.values():
        assert_allclose(force, [0.0, 0.0, 2.0 * GRAVITY], atol=1e-12)
    assert not any(rest.pulling.values())
    # pushed hard enough it hangs on the feet behind
    push = robot.jacobian(rest.q, "plate", expressed_in="world_aligned").T @ np.array([0, 0, 0, 300.0, 0, 0.0])
    pushed = sarrus.equilibrium(robot, rest.q, contacts=[f"foot{k}" for k in range(4)], tau=push)
    assert [bool(p) for p in pushed.pulling.values()] == [False, True, True, False]
    assert_allclose(sum(pushed.contact_forces.values()), [-300.0, 0.0, 8.0 * GRAVITY], atol=1e-10)


def test_a_free_base_falls():
    robot = table()
    with pytest.raises(sarrus.StateError, match=r"moves 'base\[.\]', and no spring.*contacts="):
        sarrus.equilibrium(robot)
    many = sarrus.equilibrium(robot, np.repeat(robot.neutral()[None], 2, axis=0))
    assert many.status.tolist() == [2, 2]
    assert np.isnan(many.q).all()


def test_wrong_arguments():
    robot = table()
    with pytest.raises(sarrus.ModelError, match="is fixed to the ground"):
        sarrus.equilibrium(robot, contacts=["ground"])
    with pytest.raises(sarrus.ShapeError, match="or a height"):
        sarrus.equilibrium(robot, contacts={"foot0": [0.0, 0.1]})
    with pytest.raises(TypeError, match="contacts must be names"):
        sarrus.equilibrium(robot, contacts=[1])
    with pytest.raises(sarrus.AssemblyError):
        sarrus.equilibrium(robot, contacts={"foot0": 0.0, "foot1": 0.0, "foot2": 0.0, "foot3": 0.5})
    with pytest.raises(TypeError, match="Mechanism"):
        sarrus.equilibrium(None)


def test_heights_and_joints_of_many():
    """A batch may result from heights, points and fixed joints, as well as from initial guesses."""
    robot = table()
    heights = np.array([0.0, 0.1, 0.3])
    rest = sarrus.equilibrium(robot, contacts={f"foot{k}": heights[:, None] for k in range(4)})
    assert_allclose(robot.pose(rest.q, "plate")[:, 2, 3], heights + 0.4, atol=EXACT)
    assert rest.contact_forces["foot0"].shape == (3, 3)
    points = {f"foot{k}": robot.pose(rest.q[1], f"foot{k}")[:3, 3] + [2.0, 0.0, 0.0] for k in range(4)}
    assert_allclose(
        robot.pose(sarrus.equilibrium(robot, contacts=points).q, "plate")[:3, 3], [2.0, 0.0, 0.5], atol=EXACT
    )
    arm = sprung(sarrus.mechanisms.double_pendulum())
    angles = np.linspace(0.0, 1.0, 4)
    many = sarrus.equilibrium(arm, fixed={arm.joints[0]: angles})
    assert_array_equal(many.q[:, 0], angles)
    assert_array_equal(many.q[2], sarrus.equilibrium(arm, fixed={arm.joints[0]: angles[2]}).q)
