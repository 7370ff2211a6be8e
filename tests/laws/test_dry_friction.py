"""Dry friction of joints that come to rest: they stick, steps stay long, and method, spanning tree and units have no effect."""

import numpy as np
import pytest

import sarrus
from sarrus import Builder, Inertia, Revolute, control

FIXED = ("rk4", "rkmk4", "independent", "implicit_midpoint", "semi_implicit", "euler")
METHODS = (*FIXED, "dopri5")
GRAVITY = 9.81


def chain(friction, length=1.0, mass=1.0, gravity=GRAVITY):
    """Return a chain of rods with these frictions."""
    b = Builder("chain", gravity=(0, 0, -gravity))
    for i, limit in enumerate(friction):
        b.add_body(f"b{i}", Inertia.rod(mass, (0, 0, 0), (length, 0, 0), 0.02 * length))
        b.add_joint(
            f"j{i}", Revolute("y", friction=limit), f"b{i - 1}" if i else "ground", f"b{i}", at_parent=(length, 0, 0) if i else (0, 0, 0)
        )  # fmt: skip
    return b.build()


def four_bar(closing, friction, size=1.0, mass=1.0):
    b = Builder("four-bar", gravity=(0, 0, -GRAVITY * size))
    for name, length in ("a", 0.4), ("b", 1.1), ("c", 0.9):
        b.add_body(name, Inertia.rod(mass, (0, 0, 0), (length * size, 0, 0), 0.01 * size))
    for name, parent, child, at_parent, at_child in (
        ("m", "ground", "a", 0.0, 0.0), ("p1", "a", "b", 0.4, 0.0), ("p", "ground", "c", 1.0, 0.0), ("p2", "b", "c", 1.1, 0.9),
    ):  # fmt: skip
        b.add_joint(
            name, Revolute("y", friction=friction * mass * size**2), parent, child, at_parent=(at_parent * size, 0, 0),
            at_child=(at_child * size, 0, 0), tree=name != closing, loop=name == closing,
        )  # fmt: skip
    return b.build()


def rest_of_pendulum(q, friction):
    """Return the angle at which a rod of 1 kg and 1 m comes to rest, by its energy: each swing loses friction times its angle."""
    weight = 0.5 * GRAVITY
    while weight * abs(np.cos(q)) > friction:
        way = np.sign(np.cos(q))

        def energy(x, start=q, way=way):
            return weight * (np.sin(x) - np.sin(start)) - friction * (x - start) * way

        low, high = q + 1e-9 * way, 0.5 * np.pi + way * 0.5 * np.pi
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if energy(middle) > 0.0 else (low, middle)
        q = low
    return q


@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_stops_where_its_energy_says(method):
    run = sarrus.simulate(chain([1.0]), [0.5], [0.0], 3.0, method=method)
    assert abs(run.v[-1, 0]) < 1e-10 and abs(run.q[-1, 0] - run.q[-1000, 0]) < 1e-10
    first_order = method in ("euler", "semi_implicit")
    assert abs(run.q[-1, 0] - rest_of_pendulum(0.5, 1.0)) < (1e-2 if first_order else 1e-6)
    free = sarrus.simulate(chain([0.0]), [0.5], [0.0], 3.0, method=method)
    assert run.statistics["steps"] + run.statistics["rejected"] <= 2 * (
        free.statistics["steps"] + free.statistics["rejected"]
    )


def test_where_it_stops_is_as_accurate_as_the_method():
    right = rest_of_pendulum(0.5, 1.0)
    for method, order in (("rk4", 4), ("implicit_midpoint", 2)):
        coarse, fine = (
            abs(sarrus.simulate(chain([1.0]), [0.5], [0.0], 2.0, method=method, dt=dt).q[-1, 0] - right)
            for dt in (0.02, 0.01)
        )
        assert fine < coarse * 2.0 ** (1 - order)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit_midpoint"])
@pytest.mark.parametrize("friction", [0.3, 2.0])
def test_the_cut_changes_nothing(method, friction):
    """Four joints of a loop stop at once, and one reverses while the crank continues."""
    ends = []
    for closing in ("p2", "p", "p1", "m"):
        robot = four_bar(closing, friction)
        q = robot.assemble(fixed={"m": 0.5}, near={"p": 1.9})
        run = sarrus.simulate(robot, q, robot.complete_velocity(q, {"m": 6.0}), 2.0, method=method)
        assert run.loop_error.max() < 1e-10
        ends.append([robot.pose(run.q[-1], body)[:3, 3] for body in "abc"])
    assert np.ptp(ends, axis=0).max() < (2e-5 if method == "implicit_midpoint" else 1e-5)


def lever(kind, closes, size, mass):
    """Return a body on a joint with friction, which is in the tree, or closes the loop of a free body."""
    b = Builder("lever", gravity=np.array([0.5, 0.3, -0.4]) * size)
    box = Inertia.box(2.0 * mass, np.array([0.3, 0.2, 0.1]) * size)
    b.add_body("lever", box.transformed(sarrus.Transform(translation=np.array([0.2, 0.1, -0.3]) * size)))
    if closes:
        b.add_joint("float", sarrus.Free(), "ground", "lever", tree=True)
    turning, sliding = 0.1 * mass * size**2, mass * size
    joint = (
        Revolute("z", friction=turning) if kind == "revolute" else sarrus.Cylindrical("z", friction=[turning, sliding])
    )
    at = {"at_parent": np.array([0.1, 0.2, 0.3]) * size, "at_child": np.array([0.05, 0.0, 0.02]) * size}
    b.add_joint("joint", joint, "ground", "lever", loop=closes, **at)
    return b.build()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["revolute", "cylindrical"])
@pytest.mark.parametrize(("size", "mass"), [(1.0, 1.0), (1e-5, 1e-9)])
def test_a_loop_joint_stays_at_rest(size, mass, kind, method):
    """The weight is too small to move the joint again after it has stopped."""
    tree, loop = (lever(kind, closes, size, mass) for closes in (False, True))
    unit = np.array([1.0, size])[: tree.nv]
    v = np.array([0.5, 0.2])[: tree.nv] * unit
    pose = sarrus.Transform.from_matrix(tree.pose(tree.neutral(), "lever"))
    q = loop.inverse_kinematics({"lever": pose})
    begun = loop.complete_velocity(q, frames={"lever": tree.velocity(tree.neutral(), v, "lever")})
    ends = []
    for robot, start, rates in ((tree, tree.neutral(), v), (loop, q, begun)):
        run = sarrus.simulate(robot, start, rates, 0.8, method=method, dt=1e-3)
        speeds = robot.joint_states(run.q, run.v).v["joint"] / unit
        moving = np.flatnonzero((abs(speeds) > 1e-10).any(axis=1))  # errors of projections
        assert 0.1 < run.t[moving[-1]] < 0.6 and len(moving) == moving[-1] + 1
        end = robot.pose(run.q[-1], "lever")
        ends.append([end[:3, :3], end[:3, 3:] / size])
    for here, there in zip(*ends, strict=True):
        assert np.abs(here - there).max() < 1e-4


@pytest.mark.parametrize("offset", [0.0, 1e-4, -1e-4])
def test_friction_of_a_loop_stops_all_joints_at_once(offset):
    """Friction brings the four joints to rest without turning any of them back."""
    robot = four_bar("p2", 0.3)
    q = robot.assemble(fixed={"m": 1.0 + offset})
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 2.0, method="rk4", dt=1e-3)
    stopped = np.flatnonzero(run.v.any(axis=1))[-1] + 1
    assert 1000 < stopped < 2000
    assert (np.sign(run.v[stopped - 10 : stopped]) == np.sign(run.v[stopped - 1])).all()


@pytest.mark.parametrize("method", METHODS)
def test_units_change_nothing(method):
    runs = []
    for size, mass in ((1.0, 1.0), (1e-5, 1e-9), (1e3, 1e6)):
        scale = mass * size**2
        robot = chain([1.0 * scale, 0.6 * scale], size, mass, GRAVITY * size)
        runs.append(sarrus.simulate(robot, [0.5, 0.3], [0.0, 0.0], 2.0, method=method).q)
    for run in runs[1:]:
        assert np.abs(run - runs[0]).max() < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_motor_below_breakaway_moves_nothing(method):
    robot = chain([1.0])
    hanging = [0.5 * np.pi]
    held = sarrus.simulate(robot, hanging, [0.0], 1.0, control.FeedforwardEffort("j0", 0.99), method=method)
    assert np.abs(held.q - hanging).max() < 1e-10
    # one that grows by 1 N m/s lets go at 1 s: then I x'' = t - 1 - m g l/2 x, whose start is (t - 1)^3 / 6 I
    pulled = sarrus.simulate(robot, hanging, [0.0], 1.1, control.FeedforwardEffort("j0", sarrus.laws.polynomial(0.0, 1.0)), method=method)  # fmt: skip
    inertia = robot.mass_matrix(hanging)[0, 0]
    assert pulled.q[-1, 0] - hanging[0] == pytest.approx(0.1**3 / 6.0 / inertia, rel=0.05)


def test_side_by_side_and_alone():
    robot = chain([1.0, 0.5])
    starts = np.array([[0.5, 0.0], [1.5, 0.1], [-1.0, 2.0], [0.5 * np.pi, 0.0], [2.0, 0.3]])
    many = sarrus.simulate_many(robot, starts, [0.0, 0.0], 2.0, every=100, method="rk4")
    for k, start in enumerate(starts):
        alone = sarrus.simulate(robot, start, [0.0, 0.0], 2.0, method="rk4")
        assert np.abs(many.q[k, -1] - alone.q[-1]).max() < 1e-12


@pytest.mark.parametrize("method", ["auto", "dopri5", "rk4"])
def test_a_ball_on_the_ground_beside_it(method):
    b = Builder("pendulum and ball")
    b.add_body("rod", Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.02))
    b.add_joint("pivot", Revolute("y", friction=1.0), "ground", "rod")
    b.add_body("ball", Inertia.sphere(1.0, 0.1))
    b.add_joint("free", sarrus.Free(), "ground", "ball")
    robot = b.build()
    q = robot.neutral().copy()
    q[robot.joint("pivot").q_slice], q[robot.joint("free").q_slice.start + 6] = 0.5, 0.3
    with pytest.warns() if method == "rk4" else np.errstate():  # rk4 is too coarse for the ground, and says so
        run = sarrus.simulate(
            robot, q, np.zeros(robot.nv), 3.0, control.CompliantContact("ball", radius=0.1), method=method
        )
    assert run.status == "finished"
    assert run.q[-1, robot.joint("pivot").q_slice][0] == pytest.approx(rest_of_pendulum(0.5, 1.0), abs=1e-6)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit_midpoint"])
def test_what_holds_is_in_accelerations_and_loads(method, tmp_path):
    robot, limit = chain([6.0, 2.0]), np.array([6.0, 2.0])
    motor = control.FeedforwardEffort("j1", 3.0)
    run = sarrus.simulate(robot, [0.2, 0.3], [0.0, 0.0], 1.5, motor, method=method)
    rests = np.abs(run.v) < 1e-9  # dense output has rounding there
    assert rests[:, 1].any() and not rests.all()
    assert np.abs(run.a[1:-1][rests[2:] & rests[1:-1] & rests[:-2]]).max() < 1e-8 * np.abs(run.a).max()
    assert (np.abs(run.friction) <= limit * (1.0 + 1e-9)).all() and (run.friction * run.v < 1e-8).all()
    assert np.allclose(np.abs(run.friction[~rests]), np.broadcast_to(limit, rests.shape)[~rests])
    # what the bodies need is what acts
    needed = chain([0.0, 0.0]).inverse_dynamics(run.q, run.v, run.a)
    assert np.abs(needed - run.tau - run.friction).max() < 1e-9
    efforts = run.joint_wrenches().efforts
    assert np.abs(efforts["j0"]).max() < 1e-9 and np.allclose(efforts["j1"], 3.0)
    # and a run that is kept knows it
    run.save(tmp_path / "run.npz")
    assert np.array_equal(sarrus.Trajectory.load(tmp_path / "run.npz").a, run.a)
    if method == "rk4":
        alike = sarrus.simulate_many(robot, [[0.2, 0.3]], [0.0, 0.0], 1.5, motor, method=method)[0]
        assert np.abs(alike.a - run.a).max() < 1e-6


def test_what_holds_between_steps():
    """Samples within steps have velocities at rounding level, which count as rest."""
    for method in ("rk4", "dopri5"):
        run = sarrus.simulate(chain([1.0]), [0.5], [0.0], 3.0, method=method, times=np.linspace(2.5, 3.0, 57), dt=0.01)
        assert np.abs(run.a).max() < 1e-9
        assert np.allclose(run.friction[:, 0], run.friction[0, 0]) and 1e-3 < abs(run.friction[0, 0]) < 1.0


@pytest.mark.parametrize(("size", "mass"), [(1.0, 1.0), (1e3, 1e6), (1e-4, 1e-6)])
def test_what_holds_knows_no_cut(size, mass):
    """Friction of the four pins of a loop at rest: the loads and frictions of all pins do not depend on the loop joint."""
    loads = []
    for closing in ("p2", "p", "p1", "m"):
        robot = four_bar(closing, 2.0, size, mass)
        q = robot.assemble(fixed={"m": 0.5}, near={"p": 1.9})
        run = sarrus.simulate(robot, q, robot.complete_velocity(q, {"m": 6.0}), 2.0)
        assert not run.v[-1].any() and np.abs(run.a[-1]).max() < 1e-9 * np.abs(run.a).max()
        loads.append([run.joint_wrenches()[name][-1] / (mass * size) / np.r_[size, size, size, 1, 1, 1] for name in ("m", "p1", "p", "p2")])  # fmt: skip
        assert np.abs(loads[-1][3][1]) > 0.1  # the moment of friction
        wrench = run.reactions.wrenches[closing][-1] / (mass * size) / np.r_[size, size, size, 1, 1, 1]
        assert np.abs(wrench - loads[-1][("m", "p1", "p", "p2").index(closing)]).max() < 1e-8
    assert np.ptp(loads, axis=0).max() < 0.02  # as far as the positions at rest differ
