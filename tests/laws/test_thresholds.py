"""Thresholds for closed loops, motion, locking and contradiction in any units, for mechanisms of micrometres and of kilometres."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Builder, ContactPoint, Free, Inertia, Prismatic, Revolute
from sarrus.identification import Samples
from sarrus.identification.identify import check_states
from sarrus.rolling import CylinderSurface, PlaneSurface, RollingContact, SphereSurface, TorusSurface
from tests.laws.test_invariance_laws import nearly_flat
from tests.random_closed import ALL_CONSTRAINTS, DRIVEN, random_closed
from tests.variants import scaled

# metre, kilogram, second: small things in SI, and those of a metre in micrometres, nanograms and milliseconds, or kilometres and tonnes
UNITS = [(1.0, 1.0, 1.0), (1e-6, 1e-12, 1e-3), (1e6, 1e12, 1e3), (1e-3, 1e-3, 1.0), (1e3, 1e9, 30.0)]
in_units = pytest.mark.parametrize("how", UNITS)


def cart(friction=0.0):
    """A cart on a rail that carries a rod, which a rocker on the ground closes to a loop of two freedoms; its state, and what it moves by."""
    b = Builder("cart")
    b.add_body("cart", Inertia.sphere(1.0, 0.1))
    b.add_joint("rail", Prismatic("x", friction=friction), "ground", "cart", actuated=True)
    for name, length in (("rod", 0.6), ("rocker", 0.5)):
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.02))
    b.add_joint("pin", Revolute("y"), "cart", "rod")
    b.add_joint("foot", Revolute("y"), "ground", "rocker", at_parent=(0.9, 0, 0), actuated=True)
    b.add_joint("knee", Revolute("y"), "rod", "rocker", at_parent=(0.6, 0, 0), at_child=(0.5, 0, 0), loop=True)
    robot = b.build()
    q = robot.assemble(near={"rail": 0.0, "pin": 0.9, "foot": -1.9})
    return robot, q, robot.complete_velocity(q, {"foot": 0.4})


def in_other_units(robot, q, v, how):
    """The same mechanism and state, what coordinates are worth, and the units."""
    other, units = scaled(robot, *how)
    return other, q * units.coordinates(robot), v * units.velocities(robot), units


@in_units
@pytest.mark.parametrize("open_by", [1e-3, 1e-8])
def test_loops_that_stand_open(how, open_by):
    """A gap as a fraction of the mechanism's size: fixed joints prevent closing, otherwise loops close to rounding."""
    robot, q, v, units = in_other_units(*cart(), how)
    start = robot.integrate(q, open_by * units.velocities(robot) * units.s * [1.0, 0.0, 0.0])
    with pytest.raises(sarrus.StateError, match="does not close the loops"):
        robot.project_configuration(start, locked=robot.joints)
    for metric in ("mass", "euclidean"):
        closed = robot.project_configuration(start, metric=metric)
        assert abs(robot.constraint_residual(closed) / [1.0, 1.0, units.m, units.m, units.m]).max() < 1e-15


@in_units
def test_a_run_does_not_start_off_its_loops(how):
    """A slider that two rails hold, a hundred-thousandth of the mechanism's size apart."""
    b = Builder("rails")
    b.add_body("a", Inertia.box(1.0, (0.1, 0.1, 0.1)))
    b.add_body("b", Inertia.box(1.0, (0.1, 0.1, 0.1)))
    b.add_joint("one", Prismatic("x"), "ground", "a")
    b.add_joint("arm", Prismatic("x"), "a", "b", at_parent=(0.0, 1.0, 0.0))
    b.add_joint("other", Prismatic("x"), "ground", "b", at_parent=(0.0, 1.00001, 0.0), loop=True)
    robot, q, v, units = in_other_units(b.build(), np.zeros(2), np.zeros(2), how)
    runs = sarrus.simulate_many(robot, q, v, 0.01 * units.s, dt=0.001 * units.s)
    assert runs.status.all()


@pytest.mark.parametrize("second", [1.0, 1e-6, 1e-12])
def test_a_run_that_chooses_its_steps_may_be_as_short_as_it_likes(second):
    """It fails at steps that are short relative to the run."""
    plain, q, v = cart()
    robot, at, moving, units = in_other_units(plain, q, v, (1e-9, 1e-21, second))
    runs = [
        sarrus.simulate(one, x, rate, 0.3 * s, dt=0.02 * s, method="dopri5").q[-1]
        for one, x, rate, s in ((plain, q, v, 1.0), (robot, at, moving, second))
    ]
    assert_allclose(runs[1] / units.coordinates(robot), runs[0], atol=1e-6)


@in_units
def test_it_is_said_what_is_off_the_loops(how):
    """A hundredth of the size, or ten sizes a second."""
    robot, q, v, units = in_other_units(*cart(), how)
    slider = units.velocities(robot) * units.s * [0.01, 0.0, 0.0]
    with pytest.raises(sarrus.StateError, match=r"violates the loops: 'knee' is open by [^:,]*; assemble"):
        robot.forward_dynamics(robot.integrate(q, slider), v, np.zeros(3))
    with pytest.raises(sarrus.StateError, match="'knee' does not allow this velocity"):
        robot.forward_dynamics(q, v + 1e3 * slider / units.s, np.zeros(3))


@in_units
def test_motions_that_contradict_the_loops(how):
    """All three joints are given, one by a thousandth too fast: no motion is that; and the same without it is one."""
    robot, q, v, units = in_other_units(*cart(), how)
    a = robot.forward_dynamics(q, v, np.zeros(3))
    wrong = np.array([1.001, 1.0, 1.0])

    def given(x):
        return dict(zip(("rail", "pin", "foot"), x, strict=True))

    assert_allclose(robot.complete_velocity(q, given(v)), v, rtol=1e-9)
    assert_allclose(robot.complete_acceleration(q, v, given(a)), a, rtol=1e-9)
    with pytest.raises(sarrus.StateError, match="contradict"):
        robot.complete_velocity(q, given(v * wrong))
    with pytest.raises(sarrus.StateError, match="contradict"):
        robot.complete_acceleration(q, v, given(a * wrong))
    with pytest.raises(sarrus.StateError, match="do not allow"):
        robot.actuator_efforts(q, v, a * wrong, exact=True)
    robot.actuator_efforts(q, v, a, exact=True)


@in_units
@pytest.mark.parametrize("away", [1e-5, 1e-6])
def test_linear_equations_near_a_singular_position(how, away):
    """Differences of states that are projected onto the loops, for a nearly flat parallelogram."""
    c = nearly_flat(away)
    robot, q, v, units = in_other_units(c.robot, c.q, c.v, how)
    A = robot.linearize(q, v, c.tau * units.efforts(robot)).A * [[1.0, 1.0], [units.s**2, units.s]]
    wanted = c.robot.linearize(c.q, c.v, c.tau).A
    assert_allclose(A, wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("how", [*UNITS, (1e6, 1.0, 1.0)])
def test_dimensions_that_leave_loops_open(how):
    """There is no derivative by them, however fast a slider is in the numbers of its unit."""
    robot, q, v, units = in_other_units(*cart(), how)
    w = 1.0 / units.velocities(robot)
    found = sarrus.derivatives.forward_dynamics_vjp(robot, q, 25.0 * v, np.zeros(3), w, dimensions=True).dimensions
    assert np.isnan(found).sum() == 24  # out of the plane: three joints and the one that closes, six each


@in_units
def test_dry_friction_has_a_direction_where_its_joint_moves(how):
    """A cart that moves by a sixth of its length per second is not at rest."""
    robot, q, v, units = in_other_units(*cart(friction=0.1), how)
    plain, at, moving = cart(friction=0.1)
    found = np.sort(abs(np.linalg.eigvals(robot.linearize(q, v).A))) * units.s
    wanted = np.sort(abs(np.linalg.eigvals(plain.linearize(at, moving).A)))
    assert_allclose(found, wanted, atol=1e-6 * wanted.max())
    with pytest.raises(sarrus.StateError, match="is at rest"):
        robot.linearize(q, 0.0 * v)


@in_units
def test_what_slides_slowly_has_friction_against_it(how):
    """A millionth of its size per second, on level ground: a = -mu g, and not sticking."""
    b = Builder("block")
    b.add_body("block", Inertia.box(2.0, (0.2, 0.2, 0.1)))
    b.add_joint("float", Free(), "ground", "block")
    for i, (x, y) in enumerate([(-0.1, -0.1), (-0.1, 0.1), (0.1, -0.1), (0.1, 0.1)]):
        b.add_frame(f"foot{i}", "block", (x, y, -0.05))
    robot, q, v, units = in_other_units(
        b.build(), np.array([0, 0, 0, 1, 0, 0, 0.05]), np.array([0, 0, 0, 1e-6, 0, 0]), how
    )
    answer = robot.contact_dynamics(q, v, np.zeros(6), [ContactPoint(f"foot{i}", friction=0.5) for i in range(4)])
    acceleration = answer.motion / (units.velocities(robot) / units.s)
    assert_allclose(acceleration, [0, 0, 0, -0.5 * 9.81, 0, 0], atol=1e-6)


@in_units
def test_samples_off_the_loops_are_refused(how):
    """Samples of an identification, off by a millionth of the mechanism's size."""
    robot, q, v, units = in_other_units(*cart(), how)
    rows = np.tile(q, (3, 1))
    samples = Samples(
        t=np.arange(3.0), q=rows, v=np.tile(v, (3, 1)), a=None, efforts={"rail": np.zeros(3), "foot": np.zeros(3)}
    )
    check_states(robot, samples)
    rows[1, 0] += 1e-6 * units.m
    with pytest.raises(sarrus.StateError, match="sample 1 violates the loops"):
        check_states(robot, samples)


# ---- contacts that loops hold fast -------------------------------------------------------------------------------------------


def truss():
    """Two rods that hold each other fast, and a pendulum on one of them; where its tip and the pendulum's end are."""
    b = Builder("truss and pendulum")
    for name in "abp":
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.02))
    b.add_joint("pin1", Revolute("y"), "ground", "a")
    b.add_joint("pin2", Revolute("y"), "ground", "b", at_parent=(0.7, 0, 0))
    b.add_joint("apex", Revolute("y"), "a", "b", at_parent=(1, 0, 0), at_child=(1, 0, 0))
    b.add_joint("motor", Revolute("y"), "a", "p", at_parent=(0.3, 0, 0.2), actuated=True)
    for name, body in (("tip", "a"), ("bob", "p")):
        b.add_frame(name, body, (1, 0, 0))
    robot = b.build()
    return robot, robot.assemble(near={"pin1": -1.0, "pin2": -2.0, "motor": 0.4})


@pytest.mark.parametrize("sunk", [0.0, 1e-3, -1e-9])
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_what_loops_hold_fast_may_touch(sunk, size):
    """No force moves the locked part, and none is needed, for any rounding or gap: the pendulum swings as without that contact."""
    robot, q = truss()
    robot, units = scaled(robot, size, size**3)
    tip, bob = (robot.pose(q, name)[2, 3] for name in ("tip", "bob"))
    touches = sarrus.control.RigidContact("tip", offset=tip + sunk * size, friction=0.5)
    ground = sarrus.control.RigidContact("bob", offset=bob - 0.3 * size, friction=0.5)
    how = {"method": "contact", "dt": 2e-3 * units.s, "limits": "ignore"}
    with_it = sarrus.simulate(robot, q, np.zeros(3), 0.6 * units.s, [touches, ground], **how)
    without = sarrus.simulate(robot, q, np.zeros(3), 0.6 * units.s, ground, **how)
    assert_allclose(with_it.q, without.q, atol=1e-9)


def test_what_loops_hold_fast_has_no_forces():
    """One state of a closed mechanism with contacts of all bodies, most of them locked."""
    robot, q = truss()
    for speed in np.linspace(0.1, 1.0, 7):
        v = robot.project_velocity(q, [0.0, 0.0, speed])
        touching = [ContactPoint(name, (0.3, 0.1, 1.0), 0.5) for name in ("a", "b", "tip", "bob")]
        for answer in (
            robot.contact_impact(q, v, touching),
            robot.contact_dynamics(q, 0.0 * v, [0.0, 0.0, speed], touching),
        ):
            assert not answer.forces[:3].any()
            assert abs(answer.forces[3]).max() > 1e-3


@pytest.mark.parametrize("seed", [3, 28])
def test_rounding_of_what_is_held_finds_forces(seed):
    """Random closed mechanisms that failed before: touching bodies with hardly any freedom, at rest."""
    kinds = tuple(kind for kind in ALL_CONSTRAINTS if kind not in DRIVEN and "pfaffian" not in kind)
    closed, rng = random_closed(seed, kinds=kinds, loops=1, bodies=4, mobility=3), np.random.default_rng(seed)
    robot, q = closed.robot, closed.q
    touching = [ContactPoint(name, rng.normal(size=3), 0.5) for name in robot.bodies]
    J = np.vstack([robot.constraint_jacobian(q), *(robot.jacobian(q, name)[3:] for name in robot.bodies)])
    _, s, V = np.linalg.svd(J)
    still = V[int((s > 1e-9).sum()) :]
    v = still.T @ (still @ rng.normal(size=robot.nv))
    assert abs(robot.contact_impact(q, v, touching).forces).max() < 1e-9 * max(1.0, abs(v).max())


# ---- surfaces ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metre", [1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9])
def test_where_surfaces_face_each_other_is_found(metre):
    """Starts are off by a hundredth of the coordinates, also with coordinates in micrometres."""
    for one, other, lengths in (
        (PlaneSurface(), SphereSurface(0.1 * metre), [metre, metre, 1.0, 1.0]),
        (CylinderSurface(0.5 * metre), SphereSurface(0.1 * metre), [1.0, metre, 1.0, 1.0]),
        (PlaneSurface(), TorusSurface(0.3 * metre, 0.1 * metre), [metre, metre, 1.0, 1.0]),
    ):
        contact = RollingContact(one, other)
        eta = np.array([0.3, 0.2, 0.5, 0.4, 0.1]) * [*lengths, 1.0]
        pose = contact.pose(eta)
        found, gap = contact.locate(pose, 1.01 * eta)
        assert_allclose(found / [*lengths, 1.0], eta / [*lengths, 1.0], atol=1e-9)
        assert abs(gap) < 1e-12 * metre
