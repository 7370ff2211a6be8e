"""Loop closure: results close the loops near their start, as those of an independent dense solver do; batches and threads
have no effect.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import mechanisms as gallery
from tests.effort import examples
from tests.random_closed import CLOSING, closed_mechanisms
from tests.random_mechanisms import seeds

# to rounding: a few dozen eps over lengths of order one, times a condition of 100
CLOSED = 1e-12
# Of a place that follows from the loops alone, to rounding times the condition of their rows.
PLACED = 1e-9
# Starts this far off the loops lead onto them in straight lines; two solvers then differ by the curvature of the loops along them.
OFF, CURVATURE = 1e-3, 100.0

law = examples(15)


def near(closed, rng, count=None):
    """Return configurations slightly off the loops."""
    shape = () if count is None else (count,)
    return closed.robot.integrate(closed.q, OFF * rng.uniform(-1.0, 1.0, (*shape, closed.robot.nv)))


def open_by(robot, q, time):
    return np.abs(robot.constraint_residual(q, time=time)).max(initial=0.0)


@law
@given(closed_mechanisms(), seeds())
def test_against_oracle(closed, seed):
    """Both solvers close the loops, with equal distances from the initial configuration up to its curvature."""
    robot, start = closed.robot, near(closed, np.random.default_rng(seed))
    q = robot.assemble(near=start, time=closed.time)
    assert open_by(robot, q, closed.time) < CLOSED
    other = closed.oracle.close(start, time=closed.time)
    moved, moved_there = (np.linalg.norm(robot.difference(start, x)) for x in (q, other))
    # radians and metres compare differently there, and sizes of bodies are about one here
    assert moved <= 10.0 * moved_there + CURVATURE * OFF**2


@law
@given(closed_mechanisms(), seeds(), st.integers(1, 40))
def test_batch_is_its_states(closed, seed, count):
    robot, start = closed.robot, near(closed, np.random.default_rng(seed), count)
    q, status = robot.assemble(near=start, time=closed.time, return_status=True)
    assert (status == 0).all() and open_by(robot, q, closed.time) < CLOSED
    assert_array_equal(robot.assemble(near=start, time=closed.time, threads=3), q)
    assert_array_equal([robot.assemble(near=one[None], time=closed.time)[0] for one in start], q)
    # one state may be looked for with other steps: where loops leave something free, these end beside each other
    one_by_one = [robot.assemble(near=one, time=closed.time) for one in start]
    assert_allclose(one_by_one, q, rtol=0, atol=CURVATURE * OFF**2)


@law
@given(closed_mechanisms(), seeds())
def test_what_is_fixed_stays(closed, seed):
    """A fixed joint keeps its coordinates (up to the rounding of a quaternion's norm), and the loops close by the other joints."""
    rng = np.random.default_rng(seed)
    robot = closed.robot
    name = str(rng.choice([name for name in robot.joints if robot.joint(name).nv]))
    there = robot.joint(name).q_slice
    start = near(closed, rng)
    start[there] = closed.q[there]
    q, status = robot.assemble(near=start, fixed={name: closed.q[there]}, time=closed.time, return_status=True)
    assert status == 0
    assert_allclose(q[there], closed.q[there], rtol=0, atol=4e-16)
    projected, status = robot.project_configuration(start, locked=[name], time=closed.time, return_status=True)
    if status == 0:  # undamped steps need not arrive where the joint stands at a limit of its motion
        assert open_by(robot, projected, closed.time) < 1e-8
        assert_allclose(robot.difference(start, projected)[robot.joint(name).v_slice], 0.0, rtol=0, atol=1e-14)


@law
@given(closed_mechanisms(kinds=CLOSING), seeds())
def test_frames_are_where_they_are_led(closed, seed):
    rng = np.random.default_rng(seed)
    robot = closed.robot
    frame = str(rng.choice(robot.bodies))
    pose = robot.pose(closed.q, frame)
    starts = near(closed, rng, 9)
    q, status = robot.inverse_kinematics({frame: pose}, near=starts, time=closed.time, return_status=True)
    assert (status == 0).all()
    assert_allclose(robot.pose(q, frame), np.broadcast_to(pose, (9, 4, 4)), rtol=0, atol=CLOSED)
    assert open_by(robot, q, closed.time) < CLOSED
    points = np.broadcast_to(pose[:3, 3], (9, 3))
    q = robot.inverse_kinematics({frame: points}, near=starts, time=closed.time)
    assert_allclose(robot.pose(q, frame)[:, :3, 3], points, rtol=0, atol=CLOSED)


@law
@given(closed_mechanisms(), seeds())
def test_velocities_and_accelerations(closed, seed):
    """A possible motion is returned unchanged, with J v = c and J a = gamma."""
    rng = np.random.default_rng(seed)
    robot, (q, v, tau, time) = closed.robot, closed.state
    name = str(rng.choice([name for name in robot.joints if robot.joint(name).nv]))
    there = robot.joint(name).v_slice
    found = robot.complete_velocity(q, {name: v[there]}, time=time)
    size = 1.0 + np.abs(v).max()
    assert_array_equal(found[there], v[there])
    missing = robot.constraint_jacobian(q, time=time) @ found - robot.constraint_velocity(q, time=time)
    assert np.abs(missing).max() < 1e-11 * size
    a = robot.forward_dynamics(q, v, tau, time=time)
    found = robot.complete_acceleration(q, v, {name: a[there]}, time=time)
    assert_array_equal(found[there], a[there])
    missing = robot.constraint_jacobian(q, time=time) @ found - robot.constraint_bias(q, v, time=time)
    assert np.abs(missing).max() < 1e-10 * (size**2 + np.abs(a).max())
    everything = {j: v[robot.joint(j).v_slice] for j in robot.joints if robot.joint(j).nv}
    assert_allclose(
        robot.complete_velocity(np.stack([q, q]), everything, time=time), np.stack([v, v]), rtol=0, atol=1e-9 * size
    )


@pytest.mark.parametrize("make", [gallery.delta, gallery.stewart], ids=["delta", "stewart"])
def test_whichever_joints_close(make):
    """Motors and tools determine the poses of all bodies, for any spanning tree."""
    robots = make(), make(platform_free=False)
    home = [robot.assemble() for robot in robots]
    where = robots[0].pose(home[0], "platform")
    rng = np.random.default_rng(0)
    poses = np.repeat(where[None], 20, axis=0)
    poses[:, :3, 3] += rng.uniform(-0.03, 0.03, (20, 3))
    tools = poses if make is gallery.stewart else poses[:, :3, 3]
    found = [robot.inverse_kinematics({"platform": tools}, near=q) for robot, q in zip(robots, home, strict=True)]
    motors = [
        [q[:, robot.joint(name).q_slice] for name in robot.actuated] for robot, q in zip(robots, found, strict=True)
    ]
    assert_allclose(*motors, rtol=0, atol=PLACED)
    again = [
        robot.assemble(near=q, fixed=dict(zip(robot.actuated, motors[0], strict=True)))
        for robot, q in zip(robots, home, strict=True)
    ]
    for robot, q in zip(robots, again, strict=True):
        for body in robot.bodies:
            assert_allclose(
                robot.pose(q, body)[:, :3, 3], robots[0].pose(again[0], body)[:, :3, 3], rtol=0, atol=PLACED
            )


def test_singular_positions():
    """Steps converge at and near positions with dependent rows."""
    robot = sarrus.mechanisms.four_bar_ladder(3)
    flat = robot.neutral()
    for off in (0.0, 1e-9, 1e-6, 1e-3):
        starts = robot.integrate(flat, off * np.random.default_rng(1).normal(size=(16, robot.nv)))
        q, status = robot.assemble(near=starts, return_status=True)
        assert (status == 0).all()
        assert np.abs(robot.difference(starts, q)).max() <= 1e-6 + 10.0 * off


def test_one_bad_state_spoils_no_other():
    robot = sarrus.mechanisms.stewart()
    q = robot.assemble()
    poses = np.repeat(robot.pose(q, "platform")[None], 20, axis=0)
    poses[3, :3, 3] += 100.0  # out of a jump's reach, though not of legs that grow without limits
    poses[5, 0, 0] = np.nan
    poses[7, :3, :3] *= 2.0  # no rotation
    for branch, bad in (("any", {3: 2, 5: 1, 7: 2}), ("start", {5: 1, 7: 2})):
        found, status = robot.inverse_kinematics({"platform": poses}, near=q, branch=branch, return_status=True)
        assert status.tolist() == [bad.get(k, 0) for k in range(20)]
        assert np.isnan(found[[*bad]]).all()
        good = status == 0
        assert_array_equal(found[good], robot.inverse_kinematics({"platform": poses[good]}, near=q, branch=branch))


def test_random_closed():
    robot = sarrus.mechanisms.delta()
    q = robot.random(3, size=(4, 5), closed=True)
    assert q.shape == (4, 5, robot.nq) and open_by(robot, q, None) < CLOSED
    assert len(np.unique(q.reshape(20, -1).round(6), axis=0)) == 20
    assert_array_equal(q, robot.random(3, size=(4, 5), closed=True))


def carousel():
    """Return a spatial four-bar with three dependent rows on a turntable: gamma is rounding of the rotation's terms."""
    b = sarrus.Builder("carousel")
    b.add_body("table", sarrus.Inertia.sphere(5.0, 0.5))
    for name, end in (("crank", (0, 0, 0.3)), ("coupler", (1, 0, 0)), ("rocker", (0, 0, 0.3))):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), end))
    b.add_joint("spin", sarrus.Revolute("z"), "ground", "table", actuated=True)
    b.add_joint("motor", sarrus.Revolute("y"), "table", "crank", at_parent=(0.7, 0.2, 0.1), actuated=True)
    b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0, 0, 0.3))
    b.add_joint("pivot", sarrus.Revolute("y"), "table", "rocker", at_parent=(1.7, 0.2, 0.1))
    b.add_joint("pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(1, 0, 0), at_child=(0, 0, 0.3))
    robot = b.build()
    return robot, robot.assemble(fixed={"motor": 0.4, "spin": 0.3})


@pytest.mark.parametrize("speed", [0.0, 1.0, 30.0, 1000.0])
def test_rounding_of_what_turns_is_no_contradiction(speed):
    """With near-zero accelerations at large velocities there is a result, accurate to the rounding of squared velocities."""
    robot, q = carousel()
    v = robot.complete_velocity(q, {"spin": speed, "motor": 0.0})
    rounding = 1e-13 * (1.0 + speed**2)
    for motor in (0.0, 1e-9, 1e-3):
        a = robot.complete_acceleration(q, v, {"spin": 0.0, "motor": motor})
        expected = robot.complete_velocity(q, {"spin": 0.0, "motor": motor})  # without gamma both are the same rows
        assert_allclose(a, expected, rtol=0, atol=rounding)
    many, status = robot.complete_acceleration(np.stack([q, q]), np.stack([v, v]), {"spin": 0.0}, return_status=True)
    assert_array_equal(status, [0, 0])
    assert_allclose(many, 0.0, rtol=0, atol=rounding)


@pytest.mark.parametrize("speed", [0.0, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("ask", ["velocities", "accelerations"])
def test_and_no_contradiction_passes_for_rounding(speed, ask):
    """Two joints with equal rates by the loop have different prescribed rates, by at most a hundred times the above rounding."""
    robot, q = carousel()
    v = robot.complete_velocity(q, {"spin": speed, "motor": 0.0})
    for off in (1e-11 * (1.0 + speed**2), 1e-3):
        given = {"spin": 0.0, "motor": 0.0, "pivot": off}
        with pytest.raises(sarrus.StateError, match="contradict one another, most at 'pin2'"):
            robot.complete_velocity(q, given) if ask == "velocities" else robot.complete_acceleration(q, v, given)


@pytest.mark.parametrize("law", [sarrus.control.ComputedTorque, sarrus.control.PDPlus])
def test_control_knows_that_rounding_too(law):
    """Targets without acceleration on a fast turntable: the motion continues."""
    robot, q = carousel()
    v = robot.complete_velocity(q, {"spin": 30.0, "motor": 0.0})
    targets = {"spin": sarrus.laws.polynomial(0.3, 30.0), "motor": 0.4}
    run = sarrus.simulate(robot, q, v, 0.05, law(targets, 100.0, 20.0), limits="ignore")
    assert_allclose(run.v[-1], v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("metric", ["mass", "euclidean"])
def test_steps_that_lead_away_are_shortened(metric):
    """A light wrist moves far, because the metric of the mass matrix favours it over the arm; every loop closes nevertheless."""
    robot = sarrus.mechanisms.six_axis_arm(sphere=0.2)
    q = robot.assemble() + 0.1 * np.random.default_rng(0).normal(size=(400, 6))
    closed, status = robot.project_configuration(q, metric=metric, return_status=True)
    assert not status.any()
    assert np.abs(robot.constraint_residual(closed)).max() < 1e-12


def stretched(count):
    """Return a nearly straight chain with both ends on the ground: `count` links of 1 m over 0.999 of their total length."""
    b = sarrus.Builder("stretched")
    for k in range(count):
        b.add_body(f"link{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.02))
        b.add_joint(
            f"pin{k}",
            sarrus.Spherical(),
            f"link{k - 1}" if k else "ground",
            f"link{k}",
            at_parent=(1.0 if k else 0.0, 0, 0),
        )
    end = (0.999 * count, 0.0, 0.0)
    b.add_joint("end", sarrus.Spherical(), "ground", f"link{count - 1}", at_parent=end, at_child=(1.0, 0, 0), loop=True)
    return b.build()


CHAINS = {
    "ring of 30": (lambda: gallery.ring(30), 0.05, 40),
    "ring of 60": (lambda: gallery.ring(60), 0.05, 20),
    "net": (lambda: gallery.net(4, 4), 0.05, 40),
    "chain mail": (lambda: gallery.chain_mail(2, 3), 0.03, 20),
    "ladder": (lambda: gallery.four_bar_ladder(10), 0.05, 40),
    "stretched": (lambda: stretched(12), 0.05, 40),
}


@pytest.mark.parametrize("metric", ["mass", "euclidean"])
@pytest.mark.parametrize("chain", CHAINS)
def test_projection_closes_long_chains(chain, metric):
    """Initial guesses are off by 0.05 rad, for any folding of the chain."""
    make, off, count = CHAINS[chain]
    robot, rng = make(), np.random.default_rng(3)
    home = robot.assemble()
    folded, status = robot.assemble(robot.integrate(home, 0.5 * rng.normal(size=(count, robot.nv))), return_status=True)
    for places in (np.repeat(home[None], count, axis=0), folded[status == 0]):
        starts = robot.integrate(places, off * rng.normal(size=(len(places), robot.nv)))
        q, status = robot.project_configuration(starts, metric=metric, return_status=True)
        assert (status == 0).all()
        assert np.abs(robot.constraint_residual(q)).max() < 1e-8
        alone = robot.project_configuration(starts[0], metric=metric)
        assert np.abs(robot.constraint_residual(alone)).max() < 1e-8
