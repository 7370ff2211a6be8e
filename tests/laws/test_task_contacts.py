"""Contacts of a TaskControl that open and close: an open one has no effect, and the active ones are those of the simulation."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sarrus
from sarrus import control
from sarrus.control import FrameTask, PointContact, RigidContact, SurfaceContact, TaskControl
from sarrus.laws import harmonic, polynomial

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
STANDS, LIFTED = polynomial(1.0), polynomial(-1.0)
# of efforts of two programmes whose unknowns are scaled otherwise, relative
SAME = 1e-8


def quadruped():
    robot = sarrus.mechanisms.quadruped()
    q, rng = robot.assemble(), np.random.default_rng(1)
    return robot, q, 0.1 * rng.normal(size=robot.nv)


def trunk(robot, q):
    return FrameTask("trunk", robot.pose(q, "trunk"), stiffness=60.0)


def assert_same_efforts(one, other):
    np.testing.assert_allclose(one, other, rtol=0.0, atol=SAME * max(1.0, abs(other).max()))


@pytest.mark.parametrize("limits", [control.Limits(), None])
def test_what_does_not_stand_is_not_there(limits):
    robot, q, v = quadruped()
    robot_task = trunk(robot, q)
    come_and_go = [
        PointContact(foot, stands=law) for foot, law in zip(FEET, (STANDS, LIFTED, LIFTED, STANDS), strict=True)
    ]
    law = TaskControl(robot, robot_task, limits, come_and_go)
    two = TaskControl(robot, robot_task, limits, [PointContact(FEET[0]), PointContact(FEET[3])])
    solution = law.solve(0.0, q, v)
    assert_same_efforts(solution.tau, two.solve(0.0, q, v).tau)
    assert not solution.forces[FEET[1]].any() and not solution.forces[FEET[2]].any()
    assert solution.forces[FEET[0]][2] > 0.0
    # in time
    walks = [PointContact(foot, stands=polynomial(1.0, (-1) ** k)) for k, foot in enumerate(FEET)]
    later = TaskControl(robot, robot_task, limits, walks)
    all_four = TaskControl(robot, robot_task, limits, [PointContact(foot) for foot in FEET])
    assert_same_efforts(later(0.0, q, v), all_four(0.0, q, v))
    odd = TaskControl(robot, robot_task, limits, [PointContact(foot) for foot in FEET[::2]])
    assert_same_efforts(later(2.0, q, v), odd(2.0, q, v))


def test_it_stands_while_it_touches():
    """The simulation's own contacts, with one foot lifted."""
    robot, q, v = quadruped()
    q[robot.joint("LF_KFE").q_slice] -= 0.1
    ground = [RigidContact(foot, friction=0.5) for foot in FEET]
    law = TaskControl(robot, trunk(robot, q), contacts=ground)
    assert robot.pose(q, FEET[0])[2, 3] > 2e-3
    three = TaskControl(robot, trunk(robot, q), contacts=[PointContact(foot, friction=0.5) for foot in FEET[1:]])
    solution = law.solve(0.0, q, v)
    assert_same_efforts(solution.tau, three(0.0, q, v))
    assert not solution.forces[FEET[0]].any()
    soft = TaskControl(robot, trunk(robot, q), contacts=[control.CompliantContact(foot, friction=0.5) for foot in FEET])
    assert_same_efforts(soft(0.0, q, v), solution.tau)
    # forces of those that stand are within their cones
    for foot in FEET[1:]:
        x, y, z = solution.forces[foot]
        assert z >= 0.0 and max(abs(x), abs(y)) <= 0.5 / np.sqrt(2.0) * z + 1e-9


def test_heel_and_toe_of_one_foot():
    """Several contacts of one body constrain the motion of their centre; for a rotating foot, only the heel counts."""
    b = sarrus.Builder("leg")
    b.add_body("foot", sarrus.Inertia.box(2.0, (0.3, 0.1, 0.05)))
    b.add_joint("float", sarrus.Planar("y"), "ground", "foot")
    b.add_body("shank", sarrus.Inertia.rod(3.0, (0, 0, 0), (0, 0, 0.4), radius=0.05))
    b.add_joint("ankle", sarrus.Revolute("y"), "foot", "shank", actuated=True)
    for name, x in (("heel", -0.1), ("toe", 0.2)):
        b.add_frame(name, "foot", (x, 0, 0))
    robot = b.build()
    q, v = np.array([0.0, 0.0, 0.1, 0.2]), np.array([0.1, 0.2, 1.5, -0.7])
    task = control.JointTask("ankle", 0.0)
    both = [PointContact("heel", friction=5.0, stands=STANDS), PointContact("toe", friction=5.0, stands=LIFTED)]
    assert_same_efforts(
        TaskControl(robot, task, None, both)(0.0, q, v), TaskControl(robot, task, None, both[0])(0.0, q, v)
    )


@pytest.mark.parametrize(("seed", "size"), [(108, 0.01), (133, 0.01), (207, 0.01), (265, 0.1)])
def test_four_surfaces_on_legs_of_three_joints(seed, size):
    """Feet that must not rotate require more than the legs can do, and limits of their forces are coupled: the nearest solution is returned."""
    robot, rng = sarrus.mechanisms.quadruped(), np.random.default_rng(seed)
    home = robot.assemble()
    q, v = robot.integrate(home, 0.05 * rng.normal(size=robot.nv)), 0.1 * rng.normal(size=robot.nv)
    feet = [SurfaceContact(foot, (size, size), friction=0.3) for foot in FEET]
    solution = TaskControl(robot, trunk(robot, home), control.Limits(), feet).solve(0.0, q, v)
    assert solution.status == "solved" or "hard tasks violated, because these limits are reached:" in solution.status
    for force in solution.forces.values():
        x, y, z = force[:3]
        assert max(abs(x), abs(y)) <= 0.3 / np.sqrt(2.0) * z + 1e-9 * robot.mass * 9.81


def test_a_sphere_rolls():
    """The lowest point of a spherical foot keeps zero velocity while the foot rolls."""
    b = sarrus.Builder("roller")
    b.add_body("ball", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    b.add_body("bar", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, 0.5), radius=0.02))
    b.add_joint("hip", sarrus.Universal("x", "y"), "ball", "bar", actuated=True)
    robot = b.build()
    r = 0.1
    q = robot.neutral()
    q[robot.joint("float").q_slice][4:] = (0.1, 0.2, r)
    w = np.array([0.5, 1.0, 0.3])
    v = np.concatenate([w, np.cross(w, (0, 0, r)), [0.3, -0.4]])  # rolls: v = -w x (-r n)
    law = TaskControl(
        robot, control.JointTask("hip", [0.2, 0.1]), contacts=RigidContact("ball", radius=r, friction=2.0)
    )
    a = law.solve(0.0, q, v).acceleration
    h = 1e-5

    def slip(t):
        at, now = robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a
        V = robot.velocity(at, now, "ball", expressed_in="world_aligned")
        return V[3:] + np.cross(V[:3], (0, 0, -r))

    assert abs(slip(0.0)).max() < 1e-15
    assert abs((slip(h) - slip(-h)) / (2 * h)).max() < 1e-8


def test_torsion_holds_against_spinning():
    """A flywheel acts on a body on a soft fingertip, which resists by the moment about the normal, in the simulation too."""
    wheel = sarrus.Inertia.cylinder(1.0, 0.1, 0.05)
    b = sarrus.Builder("top")
    b.add_body("foot", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "foot")
    b.add_body("wheel", wheel)
    b.add_joint("motor", sarrus.Revolute("z"), "foot", "wheel", actuated=True)
    robot, torsion, weight = b.build(), 0.02, 3.0 * 9.81
    q, v, radius = robot.neutral(), np.zeros(7), 0.05
    q[6] = radius
    turns = control.JointTask("motor", polynomial(0.0, 0.0, 5.0), stiffness=0.0, damping=0.0)  # 10 rad/s2
    moment = wheel.about_com[2, 2] * 10.0
    soft = PointContact("foot", 0.5, radius=radius, offset=0.0, torsion=torsion)
    held = TaskControl(robot, turns, contacts=soft)
    solution = held.solve(0.0, q, v)
    np.testing.assert_allclose(solution.forces["foot"], [0.0, 0.0, weight, moment], atol=1e-9)
    np.testing.assert_allclose(solution.acceleration, [0, 0, 0, 0, 0, 0, 10.0], atol=1e-9)
    ground = RigidContact("foot", radius=radius, friction=0.5, torsional_friction=torsion)
    run = sarrus.simulate(robot, q, v, 0.1, [held, ground], method="contact", dt=1e-3)
    np.testing.assert_allclose(run.v[-1], [0, 0, 0, 0, 0, 0, 1.0], atol=1e-9)
    # less torsion holds as far as it can, none not at all; the simulation's friction against spinning is not relied on, which is said
    little = PointContact("foot", 0.5, radius=radius, offset=0.0, torsion=0.5 * moment / weight)
    solution = TaskControl(robot, turns, contacts=little).solve(0.0, q, v)
    assert solution.forces["foot"][3] == pytest.approx(0.5 * moment) and "torsion of 'foot'" in solution.active
    with pytest.warns(sarrus.ModelWarning, match=r"RigidContact of 'foot' .* spins and rolls freely"):
        law = TaskControl(robot, turns, contacts=ground)
    solution = law.solve(0.0, q, v)
    np.testing.assert_allclose(solution.forces["foot"], [0.0, 0.0, weight], atol=1e-9)
    assert solution.acceleration[2] < -0.1


def test_lanes_have_contacts_of_their_own():
    """Many runs, whose feet touch at different times, equal single runs."""
    robot, q, _ = quadruped()
    law = TaskControl(robot, trunk(robot, q), contacts=[RigidContact(foot) for foot in FEET])
    starts = np.stack([q] * 6)
    for k in range(6):
        starts[k, robot.joint(f"{FEET[k % 4][:2]}_KFE").q_slice] += 0.03 * k * (1 if k % 4 > 1 else -1)
    rest = np.zeros((6, robot.nv))
    many = sarrus.simulate_many(robot, starts, rest, 0.005, law, dt=1e-3, method="rk4", limits="ignore")
    for k in range(6):
        one = sarrus.simulate(robot, starts[k], rest[k], 0.005, law, dt=1e-3, method="rk4", limits="ignore")
        np.testing.assert_allclose(many.q[k, -1], one.q[-1], atol=1e-9)


def test_a_tick_depends_on_its_state_alone():
    """The efforts of ticks in which cones act have the same bits in any order, after other laws and failures, and from two threads."""
    robot, q, _ = quadruped()
    X = robot.pose(q, "trunk")
    X[:3, 3] += 0.3
    law = TaskControl(robot, FrameTask("trunk", X, stiffness=30.0), contacts=[PointContact(foot, 0.7) for foot in FEET])
    other = TaskControl(robot, trunk(robot, q), contacts=[PointContact(foot, 0.3) for foot in FEET[:3]])
    rng = np.random.default_rng(2)
    ticks = [(robot.integrate(q, 0.02 * rng.normal(size=robot.nv)), 0.1 * rng.normal(size=robot.nv)) for _ in range(20)]
    forth = [law(0.0, *tick) for tick in ticks]
    assert sum(bool(law.solve(0.0, *tick).active) for tick in ticks) == len(ticks)
    back = []
    for tick in reversed(ticks):
        other(0.0, *tick)
        with pytest.raises(sarrus.StateError):
            law(0.0, np.full(robot.nq, np.nan), tick[1])
        back.append(law(0.0, *tick))
    with ThreadPoolExecutor(2) as pool:
        threads = list(pool.map(lambda tick: law(0.0, *tick), ticks))
    for answers in (back[::-1], threads, [copy.deepcopy(law)(0.0, *tick) for tick in ticks]):
        assert np.array_equal(forth, answers)


def trot(duration, dt=2e-3):
    """Return pairs of diagonal feet in alternation, on rigid ground."""
    robot = sarrus.mechanisms.quadruped()
    q = robot.assemble()
    turn, lift = 2.0 * np.pi / 0.5, 0.03  # two steps [rad/s]; how high [m]
    tasks, contacts = [FrameTask("trunk", robot.pose(q, "trunk"), stiffness=80.0)], []
    for foot, phase in zip(FEET, (0.0, np.pi, np.pi, 0.0), strict=True):
        x, y, _ = robot.pose(q, foot)[:3, 3]
        tasks.append(
            FrameTask(foot, [x, y, harmonic(lift, turn, phase)], components="tx ty tz", stiffness=900.0, priority=1)
        )
        stands = harmonic(1.0, turn, phase + np.pi, offset=0.1)
        contacts.append(PointContact(foot, friction=0.4, stands=stands, offset=0.0, within=2e-3))
    law = TaskControl(robot, tasks, contacts=contacts)
    ground = [RigidContact(foot, friction=0.6) for foot in FEET]
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), duration, [law, *ground], method="contact", dt=dt)
    return robot, q, run


@pytest.mark.filterwarnings("ignore:by 'contact' the energy:sarrus.errors.StiffnessWarning")  # impacts at 2 ms: 1.3 %
def test_quadruped_trots_in_place():
    robot, q, run = trot(2.0)
    X = run.frame("trunk")
    home = robot.pose(q, "trunk")
    assert abs(X[:, :3, 3] - home[:3, 3]).max() < 0.02 and abs(X[:, :3, 2] - home[:3, 2]).max() < 0.05
    heights = np.stack([run.frame(foot)[:, 2, 3] for foot in FEET])
    assert (heights.max(axis=1) > 0.02).all() and heights.min() > -1e-6
    # each is up and down four times, and never all at once
    up = heights > 2e-3
    assert (np.diff(up.astype(int), axis=1) == 1).sum(axis=1).min() >= 3
    assert up.sum(axis=0).max() <= 2
    impulse = run.internal_state[:, 0::4] if run.internal_state.shape[1] == 16 else run.internal_state[:, -16:][:, 0::4]
    assert (impulse >= -1e-12).all()


BAD = [
    (lambda: RigidContact("LF_foot", on="trunk"), sarrus.ModelError, "plane that is fixed in the world"),
    (lambda: control.CompliantContact("LF_foot", height=STANDS), sarrus.ModelError, "plane that is fixed in the world"),
    (lambda: PointContact("LF_foot", radius=-1.0), sarrus.ModelError, "radius and within"),
    (lambda: PointContact("LF_foot", within=0.1), sarrus.ModelError, "also pass the plane's offset"),
    (lambda: PointContact("LF_foot", torsion=-0.1), sarrus.ModelError, "torsion of PointContact"),
    (lambda: PointContact("LF_foot", 0.0, torsion=0.1), sarrus.ModelError, "needs friction"),
    (lambda: PointContact("LF_foot", stands="always"), sarrus.ModelError, "stands of PointContact"),
    (lambda: SurfaceContact("LF_foot", (0.1, 0.1), stands=np.nan), sarrus.ModelError, "stands of SurfaceContact"),
    (lambda: control.EndStop("LF_KFE", (0.0, 1.0)), TypeError, "contacts of TaskControl"),
    (lambda: RigidContact("LF_foot", friction=[0.1, 0.2]), Exception, "friction"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "words"), BAD)
def test_bad_contacts(make, error, words):
    robot, q, _ = quadruped()
    with pytest.raises(error, match=words):
        TaskControl(robot, trunk(robot, q), contacts=make())
