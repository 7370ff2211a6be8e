"""Turns of loop joints in runs: the spanning tree has no effect on a motion, for any number of turns."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import (
    Builder,
    Cylindrical,
    Gimbal,
    Helical,
    Inertia,
    Planar,
    Revolute,
    Trajectory,
    Universal,
    control,
    laws,
)

PINS = (
    ("m", "ground", "a", 0.0, 0.0), ("p1", "a", "b", 0.4, 0.0), ("p", "ground", "c", 1.0, 0.0), ("p2", "b", "c", 1.1, 0.9),
)  # fmt: skip
NAMES = [name for name, *_ in PINS]
TOLERANCE = 1e-6  # of angles [rad], after two turns and a half: what the methods' errors grow to, at these steps
STEPS = {
    "rk4": {"dt": 5e-4}, "dopri5": {"rtol": 3e-10, "atol": 3e-12},
    "implicit_midpoint": {"dt": 2.5e-4},
}  # fmt: skip
KINDS = ("spring", "pid", "sampled", "stop", "tasks", "model law")


def four_bar(closing, kind, **own):
    """Its crank m turns round and round; where its loop is closed, and what is in its pins, is a matter of taste."""
    b = Builder("four-bar", gravity=(0, 0, 0))
    for name, length in ("a", 0.4), ("b", 1.1), ("c", 0.9):
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    sprung = {"stiffness": 0.5, "rest": 1.0} if kind in ("spring", "model law", "tasks") else {}
    for name, parent, child, at_parent, at_child in PINS:
        b.add_joint(
            name, Revolute("y", **sprung, **(own if name == "m" else {})), parent, child, at_parent=(at_parent, 0, 0),
            at_child=(at_child, 0, 0), tree=name != closing, loop=name == closing, actuated=name == "m",
        )  # fmt: skip
    return b.build()


def begun(closing, kind, **own):
    """Return the mechanism, and a state with pins as in all others, angles within half a turn, and a fast crank."""
    first, robot = four_bar("p2", kind), four_bar(closing, kind, **own)
    x = first.joint_states(first.assemble(fixed={"m": 0.5}, near={"p": -1.9})).q
    q = np.concatenate([x[name] for name in robot.joints])
    return robot, q, robot.complete_velocity(q, {"m": 12.0})


def acting(robot, kind):
    pids = [control.PID(name, proportional=0.5, integral=0.1, derivative=0.01, target=1.0) for name in NAMES]
    round_and_round = laws.polynomial(-1.0, -8.0)
    return {
        "spring": None,
        "pid": pids,
        "sampled": control.SampleAndHold(pids, 0.01, delay=0.005),
        "stop": [control.EndStop("m", limits=(-3.0, 8.0), stiffness=20.0, damping=0.0)],
        "tasks": control.TaskControl(robot, [control.JointTask("p1", round_and_round)]),
        "model law": control.GravityCompensation(0.5),
    }[kind]


def motion(closing, kind, method, duration=2.0, **steps):
    robot, q, v = begun(closing, kind)
    options = {**STEPS[method], **steps}
    return sarrus.simulate(
        robot, q, v, duration, acting(robot, kind), method=method, times=np.linspace(0, duration, 21), **options
    )


def angles(run):
    return np.hstack([run.joint(name) for name in NAMES])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit_midpoint"])
def test_no_motion_depends_on_which_joint_closes(kind, method):
    """The crank turns more than once; the integrator's error is all that differs."""
    found = []
    for closing in NAMES:
        x = angles(motion(closing, kind, method))
        if method == "implicit_midpoint":  # of order 2: without the first term of its error
            x = (4.0 * angles(motion(closing, kind, method, dt=STEPS[method]["dt"] / 2.0)) - x) / 3.0
        found.append(x)
    assert np.ptp(found[0][:, 0]) > 2.5 * np.pi
    for x in found[1:]:
        assert_allclose(x, found[0], rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["spring", "pid", "sampled"])
def test_batches_count_for_each_run(kind):
    """Runs side by side turn their cranks each as fast as it likes."""
    found = []
    for closing in NAMES:
        robot, q, v = begun(closing, kind)
        fast = np.array([1.0, -1.0, 0.3, 0.7, 1.1])[:, None] * v
        runs = sarrus.simulate_many(robot, q, fast, 2.0, acting(robot, kind), dt=5e-4, every=100, threads=2)
        found.append([angles(runs[k]) for k in range(len(runs))])
        alone = sarrus.simulate(robot, q, fast[1], 2.0, acting(robot, kind), dt=5e-4)
        assert_allclose(found[-1][1], angles(alone)[::100], rtol=0.0, atol=1e-9)
    assert max(np.ptp(x[:, 0]) for x in found[0]) > 2.5 * np.pi
    for x in found[1:]:
        assert_allclose(x, found[0], rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit_midpoint"])
@pytest.mark.parametrize("closing", ["m", "p1"])
def test_a_run_that_goes_on_remembers_its_turns(closing, method, tmp_path):
    """Bit for bit, and out of a file too."""
    robot, q, v = begun(closing, "spring")
    options = {**STEPS[method], "method": method, "dt": 1e-3, "limits": "ignore"}
    acts = acting(robot, "pid")
    whole = sarrus.simulate(robot, q, v, 1.5, acts, **options)
    part = sarrus.simulate(robot, q, v, 0.9, acts, **options)
    part.save(tmp_path / "part.npz")
    for begin in (part, Trajectory.load(tmp_path / "part.npz")):
        rest = sarrus.simulate(robot, duration=0.6, controller=acts, resume=begin, **options)
        there = rest.t == whole.t[len(part) - 1 :]  # but for rounding of when samples are
        there[0] = False  # it is within a step of the first part
        assert there[-1] and there.mean() > 0.5
        for name in ("q", "v", "internal_state", "loop_q"):
            assert_array_equal(getattr(rest, name)[there], getattr(whole, name)[len(part) - 1 :][there])
    assert_array_equal(begin.loop_q, part.loop_q)


def test_what_begins_to_act_later_counts_from_there():
    robot, q, v = begun("m", "stop")
    part = sarrus.simulate(robot, q, v, 0.9)
    assert part.loop_q is None
    stop = control.EndStop("m", limits=(-1e3, 1e3))
    rest = sarrus.simulate(robot, duration=0.6, controller=stop, resume=part)
    free = sarrus.simulate(robot, duration=0.6, resume=rest)
    assert abs(rest.loop_q[0, 0]) <= np.pi < abs(rest.loop_q[-1, 0]) and free.loop_q is None
    assert_allclose(free.q[-1], sarrus.simulate(robot, q, v, 2.1).q[-1], rtol=0.0, atol=1e-9)


def test_what_follows_from_a_run():
    """Energy, accelerations of joints, and wrenches of pins, with springs that have turned farther than poses show."""
    found = []
    for closing in NAMES:
        run = motion(closing, "spring", "dopri5")
        assert_allclose(run.energy, run.energy[0], rtol=1e-6)
        robot, loads = run.mechanism, run.joint_wrenches()
        rates = robot.joint_states(run.q, run.v, run.a).a
        carried = [np.linalg.norm(loads[name][:, 3:], axis=1) for name in NAMES]
        moments = [np.abs(loads[name][:, 4 - 3]) for name in NAMES]
        found.append([run.energy, *(rates[name][:, 0] for name in NAMES), *carried, *moments])
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert_allclose(theirs, mine, rtol=0.0, atol=1e-5 * np.abs(mine).max())


def test_samples_may_be_half_a_turn_apart():
    """No element depends on the angle, so that turns are not counted between samples."""
    times, found = np.linspace(0.0, 3.0, 11), []
    for closing in NAMES:
        robot, q, v = begun(closing, "")
        run = sarrus.simulate(robot, q, v, 3.0, method="dopri5", rtol=1e-9, atol=1e-11, times=times)
        assert run.loop_q is None
        found.append(angles(run))
    assert np.abs(np.diff(found[1][:, 0])).max() > np.pi
    for x in found[1:]:
        assert_allclose(x, found[0], rtol=0.0, atol=TOLERANCE)


def test_sweeps_keep_turns_in_files(tmp_path):
    robot, q, v = begun("m", "spring")
    runs = sarrus.simulate_many(robot, q, [v, -v], 1.0, dt=1e-3, every=50)
    runs.save(tmp_path / "runs.npz")
    for there in (
        runs[:1],
        sarrus.results.Sweep.load(tmp_path / "runs.npz"),
        sarrus.results.Sweep.load(tmp_path / "runs.npz", robot),
    ):
        assert_array_equal(there[0].loop_q, runs[0].loop_q)
        assert_array_equal(there[0].energy, runs[0].energy)


def test_limits_are_watched_by_turns():
    left = []
    for closing in NAMES:
        robot, q, v = begun(closing, "", limits=(-1.0, 10.0))
        with pytest.warns(sarrus.LimitWarning, match="position of joint 'm'"):
            left += sarrus.simulate(robot, q, v, 1.0).statistics["limits"]
    assert len(left) == 4 and 0.5 < left[0]["time"] < 1.0
    assert_allclose([[x["time"], x["reached"]] for x in left], [[left[0]["time"], left[0]["reached"]]] * 4, rtol=1e-6)


KINDS_OF_JOINTS = {
    "revolute": (Revolute("z"), 0), "cylindrical": (Cylindrical("z"), 0), "screw without pitch": (Helical("z", 0.0), 0),
    "universal": (Universal("z", "x"), 0), "gimbal": (Gimbal("rx ry rz"), 2), "planar": (Planar("z"), 2),
}  # fmt: skip


def shaft(kind, index):
    """Return a shaft in two bearings, the second of which is the loop joint."""
    b = Builder("shaft", gravity=(0, 0, 0))
    b.add_body("shaft", Inertia.cylinder(1.0, 0.1, 1.0, axis="z"))
    b.add_joint("bearing", Revolute("z"), "ground", "shaft", tree=True)
    b.add_joint("other", kind, "ground", "shaft", at_parent=(0, 0, 0.2), at_child=(0, 0, 0.2), loop=True)
    return b.build()


@pytest.mark.parametrize("kind", KINDS_OF_JOINTS)
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_angles_of_all_joints_are_counted(kind, method):
    """A controller has the same effect with either bearing."""
    robot, index = shaft(*KINDS_OF_JOINTS[kind]), KINDS_OF_JOINTS[kind][1]
    runs = [
        sarrus.simulate(
            robot, [0.5], [18.0], 2.0, control.PID(name, proportional=0.02, target=1.0, index=k), method=method
        )
        for name, k in (("bearing", 0), ("other", index))
    ]
    assert np.ptp(runs[0].q) > 4.0 * np.pi
    assert_allclose(runs[1].q, runs[0].q, rtol=0.0, atol=1e-8)
    assert_allclose(runs[1].joint("other")[:, index], runs[1].q[:, 0], rtol=0.0, atol=1e-8)


def test_steps_may_be_longer_than_half_a_turn():
    robot = shaft(Revolute("z"), 0)
    stop = control.EndStop("other", limits=(-1e6, 1e6))
    run = sarrus.simulate(robot, [0.5], [50.0], 100.0, stop, method="dopri5", dt=1.0)
    assert run.statistics["steps"] < 200
    assert_allclose(run.joint("other")[:, 0], run.q[:, 0], rtol=1e-12)


def test_runs_begin_within_limits():
    robot, q, v = begun("m", "", limits=(5.0, 8.0))
    run = sarrus.simulate(robot, q, 0.0 * v, 0.1, limits="enforce")
    assert_allclose(run.joint("m"), 0.5 + 2.0 * np.pi, atol=1e-9)


@pytest.mark.parametrize("kind", ["spring", "pid", "model law"])
def test_a_run_begins_in_the_turn_that_near_says(kind):
    """Pins start at two turns and at minus a turn: tree joints by q, a loop joint by `near`."""
    turns = 2.0 * np.pi * np.array([2.0, -1.0, 0.0, 1.0])
    ends, sides = [], []
    for closing in NAMES:
        robot, q, v = begun(closing, kind)
        start = dict(zip(NAMES, turns, strict=True))
        x = {name: angle + start[name] for name, angle in robot.joint_states(q).q.items()}
        q = np.concatenate([x[name] for name in robot.joints])
        near = {closing: x[closing] + 0.5}
        run = sarrus.simulate(robot, q, v, 0.5, acting(robot, kind), near=near, method="rk4", dt=5e-4)
        ends.append(angles(run)[-1])
        several = {closing: np.stack([near[closing], near[closing] - 2.0 * np.pi])}
        both = sarrus.simulate_many(robot, q, np.stack([v, v]), 0.5, acting(robot, kind), near=several, dt=5e-4)
        assert_allclose(angles(both[0])[-1], ends[-1], rtol=0.0, atol=1e-9)
        assert np.abs(angles(both[1])[-1] - ends[-1]).max() > 1.0
        sides.append(sarrus.simulate(robot, q, v, 0.5, acting(robot, kind), method="rk4", dt=5e-4))
    for x in ends[1:]:
        assert_allclose(x, ends[0], rtol=0.0, atol=TOLERANCE)
    # without it a joint that closes the loop begins within half a turn
    assert max(np.abs(angles(run)[-1] - ends[0]).max() for run in sides) > 1.0


def test_near_is_of_joints_that_close_loops():
    robot, q, v = begun("p2", "spring")
    with pytest.raises(sarrus.ModelError, match="near: joint 'm' is in the tree"):
        sarrus.simulate(robot, q, v, 0.1, near={"m": [7.0]})
    with pytest.raises(sarrus.NameNotFoundError, match="nobody"):
        sarrus.simulate_many(robot, q, v, 0.1, near={"nobody": [7.0]})
    with pytest.raises(TypeError, match="omit q, v and near"):
        sarrus.simulate(robot, duration=0.1, resume=sarrus.simulate(robot, q, v, 0.1), near={"p2": [7.0]})


@pytest.mark.parametrize("many", [False, True])
def test_energy_from_nowhere_is_seen_wherever_the_loop_is_closed(many):
    """Springs in all pins, one of which closes the loop; its energy is that of the turns that the run has counted."""
    seen = []
    for closing in NAMES:
        robot, q, v = begun(closing, "spring")
        for dt in (5e-4, 0.03):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if many:
                    sarrus.simulate_many(robot, q, np.stack([v, v]), 2.0, dt=dt, method="rk4")
                else:
                    sarrus.simulate(robot, q, v, 2.0, dt=dt, method="rk4")
            seen.append((dt, [w.category for w in caught]))
    assert seen == [(5e-4, []), (0.03, [sarrus.StiffnessWarning])] * len(NAMES)
