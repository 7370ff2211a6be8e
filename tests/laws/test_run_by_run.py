"""Time functions, tasks and mechanisms that differ between runs: each run equals that of simulate()."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import (
    PID,
    AppliedWrench,
    CenterOfMassTask,
    CompliantContact,
    ComputedTorque,
    EffortTable,
    FeedforwardEffort,
    FrameTask,
    ImpedanceTask,
    JointTask,
    MomentumTask,
    PDPlus,
    PostureTask,
    ReactionWheel,
    SampleAndHold,
    TaskControl,
    Thruster,
    rest_to_rest,
)
from sarrus.laws import Law, harmonic, polynomial, spline
from tests.small_mechanisms import FIXED, double_pendulum

# different in kind, so that no two have equally many pieces, terms or harmonics; more than lanes hold, and some twice
KINDS = [
    polynomial(0.2),
    harmonic(0.3, rate=7.0),
    rest_to_rest(0.1, 0.5, 0.1, begin=0.02),
    spline([0.0, 0.03, 0.08, 0.1], [0.0, 0.2, -0.1, 0.3]),
    harmonic(0.2, rate=20.0, phase=0.4) + harmonic(0.1, rate=31.0) + polynomial(0.0, 1.0),
    0.1,
]
LAWS = KINDS + KINDS[:5]


def assert_single_runs(robot, q, v, controller_of, all_of_them, method="rk4", **options):
    """Check equality up to the rounding of lanes, some 1e-16 per step, times the sensitivity of the motion."""
    together = sarrus.simulate_many(robot, q, v, 0.1, all_of_them, method=method, every=20, **options)
    assert not together.status.any()
    for i in range(len(LAWS)):
        one = robot[i] if isinstance(robot, list) else robot
        here = {"controller": controller_of(i), "method": method, "dt": 1e-3, **options}
        run = sarrus.simulate(one, q[i], v, 0.1, **here)
        assert_allclose(together.q[i], run.q[::20], atol=1e-11)
        assert_allclose(together.v[i], run.v[::20], atol=1e-9)
        assert_allclose(together[i].tau, run.tau[::20], atol=1e-7)
    assert np.ptp(together.v[: len(KINDS), -1], axis=0).max() > 1e-5  # they do differ, by far more than the tolerances


@pytest.mark.parametrize("method", FIXED)
def test_every_element_that_has_a_law(method):
    robot = sarrus.mechanisms.free_flyer(wheels=True)
    first, second, *_ = (n for n in robot.joints if "axle" not in n and robot.joint(n).nv == 1)
    ground = [height if isinstance(height, Law) else polynomial(height) for height in LAWS]

    def elements(take):
        return [
            PID(first, 30.0, 5.0, 2.0, target=take(LAWS)),
            FeedforwardEffort(second, take(LAWS)),
            ReactionWheel("z axle", take(LAWS), torque_limit=0.25),
            Thruster("satellite", take(LAWS), "x"),
            AppliedWrench("satellite", [0.0, take(LAWS), 0.0, 0.1, take(LAWS), 0.0]),
            CompliantContact("satellite", 0.5, height=take(ground), stiffness=1e3, friction=0.1),
        ]

    q = np.array([robot.assemble()] * len(LAWS))
    v = np.full(robot.nv, 0.1)
    assert_single_runs(robot, q, v, lambda i: elements(lambda laws: laws[i]), elements(list), method)


@pytest.mark.parametrize("law", [ComputedTorque, PDPlus])
def test_laws_by_the_model_on_trees_and_loops(law):
    for robot in (double_pendulum()[0], sarrus.mechanisms.four_bar()):
        name = next(iter(robot.joints))
        q = np.array([robot.assemble()] * len(LAWS))
        gains = np.linspace(50.0, 100.0, len(LAWS))[:, None]
        assert_single_runs(
            robot,
            q,
            np.zeros(robot.nv),
            lambda i, n=name, g=gains: law({n: LAWS[i]}, g[i, 0], 10.0),
            law({name: LAWS}, gains, 10.0),
        )


def test_laws_behind_a_clock():
    robot = sarrus.mechanisms.pendulum()
    q = np.array([robot.neutral()] * len(LAWS))

    def slow(target):
        both = [PID("pivot", 30.0, 1.0, 2.0, target=target), FeedforwardEffort("pivot", target)]
        return SampleAndHold(both, 0.005, 0.002)

    assert_single_runs(robot, q, np.zeros(1), lambda i: slow(LAWS[i]), slow(LAWS))


TASKS = {
    "frame": lambda tip, law: FrameTask(tip, [law, 0.5, law], "tx ty tz"),
    "pose": lambda tip, law: FrameTask(tip, [0.0, law, 0.0, 0.5, 0.0, law]),
    "joint": lambda tip, law: JointTask("joint1", law),
    "posture": lambda tip, law: PostureTask({"joint2": law, "joint1": [law], "joint3": 0.2}),
    "centre of mass": lambda tip, law: CenterOfMassTask([law], "tx"),
    "momentum": lambda tip, law: MomentumTask([law, 0.1], "rz tx"),
    "impedance": lambda tip, law: ImpedanceTask(tip, [0.5, 0.0, 0.0], 2.0, 20.0, 5.0, [law, 0.0, 1.0], "tx ty tz"),
}


@pytest.mark.parametrize("kind", TASKS)
def test_tasks_run_by_run(kind):
    robot = sarrus.mechanisms.free_flyer()
    rest = PostureTask(robot.assemble(), priority=1)
    law = lambda target: TaskControl(robot, [TASKS[kind]("hand", target), rest], actuated=list(robot.joints))  # noqa: E731
    q = np.array([robot.assemble()] * len(LAWS))
    assert_single_runs(robot, q, np.zeros(robot.nv), lambda i: law(LAWS[i]), law(LAWS))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("method", FIXED)
def test_mechanisms_run_by_run(method, threads):
    """Lengths and masses differ; three runs share a mechanism, and each run has a time function."""
    lengths = [*np.linspace(0.3, 0.5, len(LAWS) - 3), *[0.35] * 3]
    made = {x: sarrus.mechanisms.four_bar(crank=x, mass=2.0 * x) for x in lengths}
    robots = [made[x] for x in lengths]
    q = np.array([robot.assemble(fixed={"motor": 0.5}) for robot in robots])
    push = lambda law: [FeedforwardEffort("motor", law)]  # noqa: E731
    assert_single_runs(robots, q, np.zeros(3), lambda i: push(LAWS[i]), push(LAWS), method)
    one, two = (
        sarrus.simulate_many(robots, q, np.zeros(3), 0.05, push(LAWS), method=method, threads=n) for n in (1, threads)
    )
    assert_array_equal(one.q, two.q)
    with ThreadPoolExecutor(2) as pool:
        jobs = sarrus.simulate_many(robots, q, np.zeros(3), 0.05, push(LAWS), method=method, executor=pool)
    assert_array_equal(one.q, jobs.q)
    assert one.mechanisms == robots and one[3].mechanism is robots[3] and one[2:5].mechanisms == robots[2:5]
    assert_allclose(one[2:5][1].tau, one[3].tau)


def test_limits_of_each_mechanism_act_on_its_runs():
    """Strokes and effort limits differ: each run stops at its own limits, which its reported excess refers to."""

    def slider(stroke, strength):
        b = sarrus.Builder("slider", gravity=(0.0, 0.0, 0.0))
        b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
        kept = {"limits": (-stroke, stroke), "effort_limit": strength}
        b.add_joint("slide", sarrus.Prismatic("x", **kept), "ground", "block", actuated=True)
        return b.build()

    robots = [slider(0.1 * k, 10.0 * k) for k in (1, 2, 3)]
    push = [FeedforwardEffort("slide", 100.0)]
    for mode in ("enforce", "ignore"):
        runs = sarrus.simulate_many(robots, [0.0], [0.0], 0.5, push, limits=mode)
        for robot, q in zip(robots, runs.q, strict=True):
            alone = sarrus.simulate(robot, [0.0], [0.0], 0.5, push, limits=mode)
            assert_allclose(q, alone.q, atol=1e-12)
    with pytest.warns(sarrus.LimitWarning, match="in 3 of 3 runs"):
        watched = sarrus.simulate_many(robots, [0.0], [0.0], 0.2, push, limits="warn")
    reached = watched.q[:, -1, 0]
    assert_allclose(watched.excess[:, 0], reached - [0.1, 0.2, 0.3], atol=1e-6)


def test_numbers_and_tables_run_by_run():
    """A number is a constant time function: targets in an array."""
    robot = sarrus.mechanisms.pendulum()
    targets = np.linspace(-0.5, 0.5, 9)
    u = np.random.default_rng(1).normal(size=(9, 3, 1))
    acts = [PID("pivot", 30.0, 0.0, 3.0, target=targets), EffortTable([0.0, 0.02, 0.05], u)]
    together = sarrus.simulate_many(robot, [0.0], [0.0], 0.1, acts)
    for i in range(9):
        alone = sarrus.simulate(
            robot,
            [0.0],
            [0.0],
            0.1,
            [PID("pivot", 30.0, 0.0, 3.0, target=targets[i]), EffortTable([0.0, 0.02, 0.05], u[i])],
        )
        assert_allclose(together.q[i], alone.q, atol=1e-12)


PENDULUM = sarrus.mechanisms.pendulum()
CANNOT = [
    ({"controller": PID("pivot", target=[harmonic(1.0, 2.0), "up"])}, "target of 'pivot' must be a time function"),
    (
        {"controller": FeedforwardEffort("pivot", [])},
        "effort of 'pivot' must be a time function or number, or one for each run",
    ),
    ({"controller": FeedforwardEffort("pivot", [1.0, 2.0, 3.0]), "q": np.zeros((2, 1))}, "different numbers of runs"),
    (
        {"controller": EffortTable(np.zeros((2, 3)), np.zeros((2, 3, 1)))},
        r"times of EffortTable must be \(n,\), the same in all runs",
    ),
    ({"controller": SampleAndHold(PID("pivot"), [1e-3, 2e-3])}, "period of SampleAndHold must be a finite number"),
    ({"mechanism": [PENDULUM, sarrus.mechanisms.four_bar()]}, "differ in parameters only; .* different joints"),
    ({"mechanism": [PENDULUM] * 3, "q": np.zeros((2, 1))}, "with 3 mechanisms, have different numbers of runs"),
    ({"mechanism": [PENDULUM, 3]}, "mechanism must be a Mechanism"),
]


@pytest.mark.parametrize(("given", "message"), CANNOT)
def test_what_cannot_differ_is_said(given, message):
    given = {"mechanism": PENDULUM, "q": [0.0], "v": [0.0], "duration": 0.1} | given
    with pytest.raises((sarrus.SarrusError, TypeError), match=message):
        sarrus.simulate_many(**given)
    with pytest.raises(sarrus.ShapeError, match=re.escape("use simulate_many()")):
        sarrus.simulate(PENDULUM, [0.0], [0.0], 0.1, PID("pivot", target=[1.0, 2.0]))


def test_runs_of_several_mechanisms_are_drawn_and_written(tmp_path):
    robots = [sarrus.mechanisms.pendulum(mass=m) for m in (1.0, 2.0, 3.0)]
    runs = sarrus.simulate_many(robots, [0.3], [0.0], 0.2, every=50)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert runs.plot("energy") is not None
    pyplot.close("all")
    runs.save(tmp_path / "runs.npz")
    again = sarrus.results.Sweep.load(tmp_path / "runs.npz")
    assert again.mechanisms == robots and repr(again) == repr(runs)
    assert_array_equal(again[2].tau, runs[2].tau)
    assert again[2].mechanism.mass == 3.0
    with pytest.raises(ValueError, match="the runs of the file have different mechanisms"):
        sarrus.results.Sweep.load(tmp_path / "runs.npz", mechanism=robots[0])
    runs[1].save(tmp_path / "one.npz")
    assert_array_equal(sarrus.Trajectory.load(tmp_path / "one.npz").q, runs.q[1])


def test_a_policy_for_several_mechanisms():
    """Random four-bars under one policy: each run equals that of the policy alone, with one call of the policy per step for all runs."""
    robots = [sarrus.mechanisms.four_bar(mass=mass) for mass in (1.0, 2.0, 1.0, 0.5)]
    q = np.array([robot.assemble(fixed={"motor": 0.2 * k}) for k, robot in enumerate(robots)])
    q[3] = np.nan  # fails at once, and the others do not know
    asked = []

    def policy(t, q, v):
        asked.append(t)
        return np.stack([20.0 * (1.0 - q[:, 0]) - v[:, 0], 0.0 * q[:, 0], 0.0 * q[:, 0]], axis=1)

    runs = sarrus.simulate_many(robots, q, np.zeros(3), 0.05, policy=policy, dt=1e-3, every=7)
    assert len(asked) == 50
    assert runs.status.tolist() == [0, 0, 0, sarrus.results.Status.INVALID_STATE]
    for k, robot in enumerate(robots[:3]):
        alone = sarrus.simulate_many(robot, q[k], np.zeros(3), 0.05, policy=policy, dt=1e-3, every=7)
        assert_allclose(runs.q[k], alone.q[0], rtol=1e-12, atol=1e-12)
        assert_allclose(runs.efforts[k], alone.efforts[0], rtol=1e-12, atol=1e-11)
        assert_allclose(runs[k].tau, alone[0].tau, rtol=1e-12, atol=1e-11)
    assert np.abs(runs.q[0, -1] - runs.q[2, -1]).max() > 1e-3
