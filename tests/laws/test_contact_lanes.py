"""Runs with rigid contact in lanes: each agrees with the same run alone, and its bits do not depend on its company."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import PID, CollisionContacts, EndStop, RigidContact
from sarrus.shapes import Box, Plane, Sphere

RUNS = 16  # a multiple of the number of lanes, at every level
SOME = 11  # not a multiple
# rounding of lanes, multiplied by the hits of a run: a step's cones are solved to 1e-10
ROUNDING = 1e-7
# impulses of least norm are computed with a regularisation of 1e-8 of G
FORCES = 1e-6


def linkage(rng):
    """Return falling four-bars of boxes: loops, corners on a plane, hits that bounce, and different friction in each run."""
    b = sarrus.Builder("four-bar")
    half = {"a": (0.1, 0.02, 0.02), "b": (0.02, 0.02, 0.1), "c": (0.1, 0.02, 0.02), "d": (0.02, 0.02, 0.1)}
    for name, h in half.items():
        b.add_body(name, sarrus.Inertia.box(0.5, np.multiply(h, 2.0)))
        b.add_shape(name, Box(np.multiply(h, 2.0)))
    b.add_shape("ground", Plane())
    b.add_joint("float", sarrus.Free(), "ground", "a")
    pins = (("a", "b", 1, 0), ("b", "c", 2, 1), ("c", "d", 3, 2), ("d", "a", 4, 3))
    place = [(0, 0, -0.12), (0.12, 0, 0), (0, 0, 0.12), (-0.12, 0, 0)]
    for k, (parent, child, at, of) in enumerate(pins):
        b.add_joint(
            f"pin{k}", sarrus.Revolute("y"), parent, child, at_parent=place[at % 4], at_child=place[of], loop=k == 3
        )
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.3)})
    robot = b.build()
    q = np.tile(robot.assemble(), (RUNS, 1))
    q[:, 6] = 0.0205 + 0.03 * rng.random(RUNS)
    v = robot.project_velocity(q, 0.2 * rng.normal(size=(RUNS, robot.nv)))
    return robot, q, v, [CollisionContacts(np.linspace(0.1, 0.9, RUNS), np.linspace(0.0, 0.5, RUNS))], 2e-3


def legs(rng):
    """Return quadrupeds that land, with different gains; some motors reach their limits."""
    robot = sarrus.mechanisms.quadruped()
    b = robot.to_builder()
    for foot in ("LF", "RF", "LH", "RH"):
        at = np.linalg.inv(robot.pose(robot.assemble(), f"{foot}_shank")) @ robot.pose(robot.assemble(), f"{foot}_foot")
        b.add_shape(f"{foot}_shank", Sphere(0.02), at[:3, 3], friction=0.7)
    b.add_shape("ground", Plane(), (0, 0, -0.02), friction=0.7)
    robot = b.build()
    q = np.tile(robot.assemble(), (RUNS, 1))
    home = robot.joint_states(q[0]).q
    q[:, 6] += 0.004 * rng.random(RUNS)
    v = 0.2 * rng.normal(size=(RUNS, robot.nv))
    gains = np.linspace(100.0, 400.0, RUNS)
    motors = [
        PID(name, proportional=gains, integral=5.0, derivative=10.0, target=float(home[name][0]), limits=(-4.0, 4.0))
        for name in robot.actuated
    ]
    return robot, q, v, motors, 1e-3


def rails(rng):
    """Return two blocks on a rail with end stops and dry friction, the second one above the ground."""
    b = sarrus.Builder("rail")
    b.add_body("cart", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_body("block", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", friction=0.8, limits=(-0.1, 0.1)), "ground", "cart")
    b.add_joint("lift", sarrus.Prismatic("z", damping=0.3, stiffness=5.0), "cart", "block")
    b.add_frame("tip", "block")
    robot = b.build()
    q = np.c_[0.09 * (2 * rng.random(RUNS) - 1), 0.02 * rng.random(RUNS)]
    v = np.c_[rng.normal(size=RUNS), -rng.random(RUNS)]
    return (
        robot,
        q,
        v,
        [EndStop("slide"), RigidContact("tip", friction=np.linspace(0.1, 1.0, RUNS), restitution=0.3)],
        2e-3,
    )


def folding(rng):
    """Return Bricard's linkages that hit a plane: their rows are consistent only on closed loops, so that each lane takes its steps alone."""
    b = sarrus.mechanisms.bricard().to_builder()
    b.add_frame("tip", "link3", (0.1, 0.1, 0.1))
    robot = b.build()
    q = np.tile(robot.assemble(), (RUNS, 1))
    v = robot.project_velocity(q, 2.0 * rng.random((RUNS, 1)) + np.zeros(robot.nv))
    return robot, q, v, [RigidContact("tip", offset=0.09, restitution=np.linspace(0.0, 0.6, RUNS))], 2e-3


def boxes(rng):
    """Return boxes that rest on a side, stand on an edge, fall, or slide: four corners, two, or none."""
    b = sarrus.Builder("box")
    b.add_body("box", sarrus.Inertia.box(1.0, (0.2, 0.2, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "box")
    b.add_shape("box", Box((0.2, 0.2, 0.1)), friction=0.4)
    b.add_shape("ground", Plane())
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.2)})
    robot = b.build()
    q, v = np.tile(robot.assemble(), (RUNS, 1)), np.zeros((RUNS, robot.nv))
    q[:, 6] = 0.05
    edge, fall, slip = (slice(k, None, 4) for k in (1, 2, 3))
    q[edge, 0], q[edge, 3], q[edge, 6] = np.sin(0.1), np.cos(0.1), 0.1 * np.sin(0.2) + 0.05 * np.cos(0.2)
    q[fall, 6] += 0.02 * rng.random(RUNS // 4)
    v[slip, 3:5] = rng.normal(size=(RUNS // 4, 2))
    return robot, q, v, [], 2e-3


CASES = [linkage, legs, rails, folding, boxes]


def run_many(case, rows=slice(None), steps=60, **how):
    robot, q, v, elements, dt = case(np.random.default_rng(3))
    elements = [of_runs(x, rows) for x in elements]
    return sarrus.simulate_many(robot, q[rows], v[rows], steps * dt, elements, dt=dt, method="contact", **how)


def of_runs(element, rows):
    """Return an element with the parameters of some runs."""
    fields = {k: x[rows] for k, x in vars(element).items() if np.shape(x) == (RUNS,)}
    return sarrus.control.__dict__[type(element).__name__](**{**vars(element), **fields})


@pytest.mark.parametrize("case", CASES)
def test_each_is_what_one_is(case):
    """Motions; contact points may share the impulse of a hit in several ways. The last runs, which do not fill the lanes, go one by one."""
    runs = run_many(case, slice(0, SOME))
    assert not runs.status.any()
    robot, q, v, elements, dt = case(np.random.default_rng(3))
    for k in range(SOME):
        of_run = [of_runs(x, k) for x in elements]
        one = sarrus.simulate(robot, q[k], v[k], 60 * dt, of_run, dt=dt, method="contact")
        for x, y in ((runs.q, one.q), (runs.v, one.v)):
            scale = max(np.abs(y).max(), 9.81 * dt)  # the speed that gravity adds in a step, for runs at rest
            assert_allclose(x[k], y, rtol=ROUNDING, atol=ROUNDING * scale)


@pytest.mark.parametrize("case", CASES)
def test_company_does_not_matter(case):
    """Bit for bit: other lanes, other runs beside them, threads."""
    runs = run_many(case)
    for rows in (np.arange(RUNS)[::-1], np.r_[7, 0:3, 9, 15, 4, 11]):
        some = run_many(case, rows, threads=2)
        assert_array_equal(some.q, runs.q[rows])
        assert_array_equal(some.v, runs.v[rows])
        assert_array_equal(some.internal_state, runs.internal_state[rows])


@pytest.mark.parametrize("feet", [(0.0,), (0.0, 0.0, 0.0, 0.3)])
def test_resting_contacts_press_as_those_of_one_run(feet):
    """The forces of four corners on a plane are not unique, but those of least norm are. Friction differs, and some boxes slide."""
    b = sarrus.Builder("table")
    b.add_body("table", sarrus.Inertia(2.0, (0.03, -0.02, 0.0), np.diag([0.02, 0.03, 0.04])))
    b.add_joint("float", sarrus.Free(), "ground", "table")
    b.add_shape("table", Box((0.4, 0.3, 0.1)))
    b.add_shape("ground", Plane())
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.3)})
    robot = b.build()
    q, v = robot.assemble(), np.zeros((RUNS, robot.nv))
    q[6] = 0.05
    v[:, 3] = np.resize(feet, RUNS)
    contacts = [CollisionContacts(np.linspace(0.3, 0.9, RUNS))]
    many = sarrus.simulate_many(robot, np.tile(q, (RUNS, 1)), v, 0.02, contacts, dt=2e-3, method="contact")
    for k in (0, 3, 6):
        one = sarrus.simulate(robot, q, v[k], 0.02, [of_runs(contacts[0], k)], dt=2e-3, method="contact")
        assert_allclose(many.internal_state[k, -1], one.internal_state[-1], rtol=0, atol=FORCES * 2.0 * 9.81)
        corners = many.internal_state[k, -1, 2:].reshape(-1, 7)[:4]
        assert_allclose(corners[:, 3].sum(), 2.0 * 9.81, rtol=1e-9)


@pytest.mark.parametrize("lengths", [{"rolling_friction": 0.005}, {"torsional_friction": 0.005}])
def test_balls_with_rotational_friction_roll_beside_each_other(lengths):
    """Rows of the first ball's moments lie between those of the two contacts or after them; lanes use the same order as a run alone."""
    b = sarrus.Builder("balls")
    for name in ("first", "second"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(f"{name}_motion", sarrus.Free(), "ground", name)
    robot = b.build()
    q, v = np.r_[0, 0, 0, 1, 0, 0, 0.1, 0, 0, 0, 1, 1, 0, 0.1], np.r_[0, 0, 5.0, 0.5, 0, 0, 3.0, 0, 0, 0, 0.3, 0]
    contacts = [RigidContact(name, radius=0.1, **lengths) for name in ("first", "second")]
    alone = sarrus.simulate(robot, q, v, 0.1, contacts, method="contact")
    many = sarrus.simulate_many(robot, np.tile(q, (RUNS, 1)), v, 0.1, contacts, method="contact")
    assert_allclose(many.v[:, -1], np.tile(alone.v[-1], (RUNS, 1)), rtol=0, atol=ROUNDING)
    assert_allclose(many.q[:, -1], np.tile(alone.q[-1], (RUNS, 1)), rtol=0, atol=ROUNDING)


@pytest.mark.filterwarnings("ignore:.*the steps are too long for the motion")  # of the fast world
@pytest.mark.parametrize("method", ["contact", "euler", "semi_implicit"])
@pytest.mark.parametrize("name", ["delta", "four_bar"])
def test_fast_companions_do_not_affect_the_closing_of_loops(name, method):
    """The factor that closes the loops of slow worlds stays, if a fast world needs a new one."""
    robot = getattr(sarrus.mechanisms, name)()
    q = np.tile(robot.assemble(), (4, 1))
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    v /= np.abs(v).max()
    far = RigidContact(robot.bodies[-1], offset=-50.0) if method == "contact" else None
    slow = sarrus.simulate_many(robot, q, v, 0.1, far, dt=5e-3, method=method)
    v[1] *= 30.0
    beside = sarrus.simulate_many(robot, q, v, 0.1, far, dt=5e-3, method=method)
    assert_array_equal(beside.v[[0, 2, 3]], slow.v[[0, 2, 3]])
