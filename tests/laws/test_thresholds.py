"""What counts as closed, as moving, as held fast or as a contradiction does so in any units: of a mechanism of micrometres as of one of kilometres."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Builder, Inertia, Prismatic, Revolute
from sarrus.identification import Samples
from sarrus.identification.identify import check_states
from tests.laws.test_invariance_laws import nearly_flat
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
    """By a share of the mechanism's size: nothing that is held closes them, and all else to rounding."""
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
    """Where they are differences of states that are brought onto the loops: of a parallelogram that is hardly open."""
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
    """A cart that moves by a sixth of its size in a second does not stand still."""
    robot, q, v, units = in_other_units(*cart(friction=0.1), how)
    plain, at, moving = cart(friction=0.1)
    found = np.sort(abs(np.linalg.eigvals(robot.linearize(q, v).A))) * units.s
    wanted = np.sort(abs(np.linalg.eigvals(plain.linearize(at, moving).A)))
    assert_allclose(found, wanted, atol=1e-6 * wanted.max())
    with pytest.raises(sarrus.StateError, match="stands still"):
        robot.linearize(q, 0.0 * v)


@in_units
def test_samples_off_the_loops_are_refused(how):
    """Of an identification: by a millionth of the mechanism's size."""
    robot, q, v, units = in_other_units(*cart(), how)
    rows = np.tile(q, (3, 1))
    samples = Samples(
        t=np.arange(3.0), q=rows, v=np.tile(v, (3, 1)), a=None, efforts={"rail": np.zeros(3), "foot": np.zeros(3)}
    )
    check_states(robot, samples)
    rows[1, 0] += 1e-6 * units.m
    with pytest.raises(sarrus.StateError, match="sample 1 is off the loops"):
        check_states(robot, samples)
