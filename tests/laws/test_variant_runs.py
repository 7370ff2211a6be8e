"""Variants in simulate_many: each run equals that of simulate() for its mechanism, for any other runs."""

import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Inertia, control, laws
from sarrus.results import Status
from sarrus.simulation import sweep
from sarrus.variants import Listed
from tests.gallery import made
from tests.laws.test_one_of_many import linkage
from tests.laws.test_variants import N, varied
from tests.random_closed import random_closed
from tests.random_mechanisms import random_mechanism
from tests.small_mechanisms import FIXED

ROUNDING = 1e-9  # of the largest number: lanes round otherwise, some 1e-16 a step, times what a motion makes of it
KNOWN = 1e-3  # of rates, which are found by differences
DURATION, DT, EVERY = 0.02, 1e-3, 5


def acting(robot):
    """Return elements that act on a mechanism with a joint of one coordinate."""
    name = next((n for n in robot.joints if robot.joint(n).nv == 1), None)
    push = [] if name is None else [control.FeedforwardEffort(name, laws.harmonic(0.3, rate=7.0))]
    ground = control.CompliantContact(
        robot.bodies[-1], 0.4, offset=-0.1, stiffness=300.0, friction=0.3, slip_velocity=0.1
    )
    return [*push, ground]


def assert_run_alone(variants, each, q, v, elements, *, duration=DURATION, atol=ROUNDING, **options):
    """Check positions, velocities, held values, statuses, limits, rates, and the record of forces."""
    options = {"dt": DT, "every": EVERY} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = sarrus.simulate_many(variants, q, v, duration, elements, **options)
        alone = []
        for i, one in enumerate(each):
            rows = [np.broadcast_to(x, (len(each), np.shape(x)[-1]))[i : i + 1] for x in (q, v)]
            alone.append(sarrus.simulate_many(one, *rows, duration, elements, **options))
    for i, run in enumerate(alone):
        assert runs.status[i] == run.status[0], i
        for name in ("q", "v", "internal_state"):
            mine, its = getattr(runs, name)[i], getattr(run, name)[0]
            assert_allclose(
                mine, its, rtol=0, atol=atol * max(1.0, np.nanmax(abs(its), initial=0.0)), err_msg=f"{name} of {i}"
            )
        assert_allclose(runs.excess[i], run.excess[0], rtol=0, atol=1e-7)
        assert_allclose(runs.stiffness[i], run.stiffness[0], rtol=KNOWN, atol=1e-9)
    some = next((i for i in range(len(each)) if not runs.status[i]), None)
    if some is not None:
        size = max(1.0, abs(alone[some][0].tau).max())
        assert_allclose(runs[some].tau, alone[some][0].tau, rtol=0, atol=1e-6 * size)
        assert_allclose(
            runs[some].mechanism.mass_matrix(runs.q[some]), each[some].mass_matrix(runs.q[some]), rtol=1e-9, atol=1e-12
        )
    return runs


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning")
@pytest.mark.parametrize("seed", range(6))
def test_random_variants_run_as_each_alone(seed):
    """All parameters at once, for trees, closed mechanisms and substructures; every method and stabilisation in turn."""
    rng = np.random.default_rng(seed)
    options = {"friction": seed % 3 == 1, "armature": seed % 2 == 0, "springs": True, "floating": seed % 3 == 0}
    tree = random_mechanism(seed, bodies=6, backward=0.3, **options).description
    closed = random_closed(seed, bodies=6, hints=seed % 2 == 0, **options).description
    cut = random_closed(seed + 100, bodies=7, loops=2, **options).description
    stabilisations = ("projection", "baumgarte", "none", "corrective")
    for k, (description, substructures) in enumerate(((tree, None), (closed, None), (cut, 1))):
        robot = sarrus.Mechanism(description, substructures=substructures)
        if robot._asks_for_rows:
            continue
        variants, each = varied(robot, rng)
        q = robot.integrate(robot.neutral(), 0.1 * rng.normal(size=(N, robot.nv)))
        if robot.nc:
            q, _ = variants.project_configuration(np.tile(robot.assemble(), (N, 1)), return_status=True)
        method, stabilisation = FIXED[(seed + k) % len(FIXED)], stabilisations[(seed + k) % 4]
        if stabilisation == "corrective" and robot._without_inertia:
            stabilisation = "projection"
        elements = acting(robot)
        assert_run_alone(variants, each, q, 0.1 * rng.normal(size=(N, robot.nv)), elements, method=method, stabilisation=stabilisation)  # fmt: skip


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("name", ["four_bar", "bennett", "stewart"])
def test_linkages_run_as_each_alone(name, method):
    """Bennett's rows agree only on the loops, and only for its proportions: its variants differ in mass."""
    rng = np.random.default_rng(2)
    if name == "four_bar":
        variants, q, _ = fleet(N)
        each = list(variants)
    else:
        robot = made(name)
        variants, each = varied(
            robot, rng, ("inertias", "gravity") if name == "bennett" else ("inertias", "placements")
        )
        q = variants.project_configuration(np.tile(robot.assemble(), (N, 1)))
    v = variants.project_velocity(q, rng.normal(size=(N, variants.nv)))
    assert_run_alone(variants, each, q, v, None, method=method, atol=1e-7)


def every_element(robot):
    ground, width = laws.harmonic(0.02, rate=3.0), robot.nu or robot.nv
    first, second, third, fourth, *_ = (n for n in robot.joints if "axle" not in n and robot.joint(n).nv == 1)
    pid = control.PID(third, 30.0, 5.0, 2.0, target=0.2)
    return [
        control.PID(first, 30.0, 5.0, 2.0, target=laws.harmonic(0.3, rate=7.0)),
        control.FeedforwardEffort(second, 0.3),
        control.ReactionWheel("z axle", 0.3, torque_limit=0.25, momentum_limit=0.02),
        control.Thruster("hand", 0.7, "x"),
        control.AppliedWrench("hand", [0.0, laws.harmonic(0.1, 5.0), 0.0, 0.2, 0.0, 0.3], expressed_in="world_aligned"),
        control.CompliantContact("hand", 0.6, height=ground, offset=-0.2, stiffness=1e3, friction=0.1),
        control.PinClearance("hand", "satellite", 0.01, 0.02, 1e3, friction=0.1, slip_velocity=0.1),
        control.Bushing("hand", "satellite", 3.0, 0.1),
        control.GasSpring("hand", "ground", 3.0, 2.9, 2.0, friction=0.1, slip_velocity=0.1),
        control.LuGreFriction(second, 0.2, stiffness=100.0),
        control.EndStop(fourth, limits=(-0.01, 0.01)),
        control.ActuatorModel(first, time_constant=0.01, torque_speed=(20.0, 30.0)),
        control.SampleAndHold(pid, 0.003, delay=0.002),
        control.EffortTable([0.0, 0.01], 0.01 * np.arange(2 * width).reshape(2, width), hold=False),
        control.EffortTable([0.005, 0.01], 0.01 * np.ones((2, width))),
    ]


def flyers(rng):
    return varied(sarrus.mechanisms.free_flyer(wheels=True), rng, ("inertias", "placements"))


@pytest.mark.parametrize("method", FIXED)
def test_every_element_acts_on_each_variant(method):
    """Frames, wheels, and defaults that depend on inertia are those of each variant."""
    variants, each = flyers(np.random.default_rng(1))
    robot = variants.base
    v = np.full(robot.nv, 0.3)
    runs = assert_run_alone(variants, each, robot.assemble(), v, every_element(robot), method=method)
    assert np.ptp(runs.v[:, -1], axis=0).max() > 1e-4


@pytest.mark.parametrize("law", [control.ComputedTorque, control.PDPlus, control.GravityCompensation])
@pytest.mark.parametrize("sampled", [False, True])
def test_control_laws_know_each_variant(law, sampled):
    for name in ("double_pendulum", "four_bar"):
        robot = made(name)
        variants, each = varied(robot, np.random.default_rng(3), ("inertias", "placements", "gravity"))
        q = variants.assemble() if robot.nc else np.full((N, robot.nq), 0.3)
        joint = "motor" if robot.nc else None
        targets = {joint: laws.harmonic(0.3, 5.0)} if joint else {n: laws.harmonic(0.3, 5.0) for n in robot.joints}
        controller = law() if law is control.GravityCompensation else law(targets, 60.0, 8.0)
        assert_run_alone(
            variants,
            each,
            q,
            np.zeros(robot.nv),
            control.SampleAndHold(controller, 0.004) if sampled else controller,
            atol=1e-8,
        )


@pytest.mark.parametrize("method", ["semi_implicit", "rk4", "implicit_midpoint", "independent"])
def test_friction_springs_and_turns_of_each_variant(method):
    """Terms of tree joints and of the loop joint; variants without friction slide on while others come to rest."""
    for kind in ("friction", "near"):
        robot = linkage(kind, closed=True)
        rng = np.random.default_rng(5)
        changes = {
            "inertias": {
                b.name: np.outer(rng.uniform(0.8, 1.2, N), b.inertia.parameters) for b in robot.description.bodies
            }
        }
        if kind == "friction":
            limits = rng.uniform(0.5, 3.0, N) * (np.arange(N) % 3 > 0)
            changes["friction"] = {"m": limits, "p2": limits[::-1] * 0.5, "p": np.zeros(N), "p1": limits * 0.2}
        else:
            changes |= {"stiffness": {"p2": rng.uniform(0.0, 2.0, N)}, "rest": {"p2": rng.normal(size=N)}}
        variants = robot.variants(**changes)
        each = list(variants)
        q = variants.assemble(fixed={"m": 0.3})
        v = variants.project_velocity(q, np.full((N, robot.nv), 2.0))
        near = {"p2": [7.0]} if kind == "near" else None
        runs = assert_run_alone(variants, each, q, v, None, duration=0.3, every=50, method=method, near=near, atol=1e-8)
        if kind == "friction" and method == "rk4":
            rests = (runs.v[:, -1] == 0.0).all(axis=1)
            assert rests.any() and not rests.all()
            assert_allclose(runs[1].friction[0], sarrus.simulate(each[1], q[1], v[1], 0.01).friction[0], atol=1e-9)


@pytest.mark.parametrize("limits", ["warn", "enforce"])
def test_limits_are_watched_and_kept(limits):
    robot = linkage("limits", closed=True)
    variants, each = varied(robot, np.random.default_rng(6), ("inertias", "placements"))
    q = variants.assemble(fixed={"m": 0.5})
    v = variants.project_velocity(q, np.full((N, robot.nv), 6.0))
    pid = control.PID("m", proportional=60.0, integral=5.0, derivative=1.0, target=1.0)
    runs = assert_run_alone(variants, each, q, v, pid, limits=limits, atol=1e-8)
    assert (runs.excess != 0.0).any()


def fleet(count=150):
    """Return four-bars with different cranks and masses, their states, and their efforts."""
    rng = np.random.default_rng(7)
    robot = sarrus.mechanisms.four_bar()
    size = rng.uniform(0.8, 1.2, count)
    crank = next(b for b in robot.description.bodies if b.name == "crank")
    variants = robot.variants(
        placements={"pin1.parent": np.outer(0.4 * size, [1.0, 0.0, 0.0])},
        inertias={"crank": np.outer(size, crank.inertia.parameters)}, damping={"motor": size},
    )  # fmt: skip
    q = variants.assemble(fixed={"motor": 0.5})
    return variants, q, control.PID("motor", rng.uniform(5.0, 10.0, count), 0.0, 1.0)


def test_threads_executors_and_subsets_change_nothing(tmp_path):
    variants, q, push = fleet()
    some = np.arange(16, 56)

    def run(robots, q, elements, **options):
        return sarrus.simulate_many(robots, q, np.zeros(3), 0.05, elements, every=10, **options)

    whole = run(variants, q, push)
    assert not whole.status.any()
    assert_array_equal(run(variants, q, push, threads=3).q, whole.q)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2) as processes:
        assert_array_equal(run(variants, q, push, executor=threads).v, whole.v)
        assert_array_equal(run(variants, q, push, executor=processes).v, whole.v)
    its = control.PID("motor", push.proportional[some], 0.0, 1.0)
    assert_array_equal(run(variants[some], q[some], its).q, whole.q[some])  # whole packets: the same neighbours
    twice = np.repeat(np.arange(20), 2)  # two runs of each
    both = run(variants[twice], q[twice], None)
    assert_array_equal(both.q[::2], both.q[1::2])
    assert_allclose(both.q[::2], run(variants[:20], q[:20], None).q, rtol=0, atol=1e-12)
    stored = run(variants, q, push, store=tmp_path / "runs")
    assert_array_equal(stored.q, whole.q)
    status = np.load(tmp_path / "runs" / "status.npy", mmap_mode="r+")
    status[37:90] = Status.INTERRUPTED
    status.flush()
    for name in ("q", "v", "z"):
        np.load(tmp_path / "runs" / f"{name}.npy", mmap_mode="r+")[37:90] = np.nan
    assert_array_equal(run(variants, q, push, store=tmp_path / "runs").q, whole.q)
    lighter = variants.base.variants(damping={"motor": np.ones(150)})
    with pytest.raises(sarrus.ModelError, match="mechanism"):
        run(lighter, q, push, store=tmp_path / "runs")
    again = pickle.loads(pickle.dumps(whole))
    assert again[3].mechanism == variants[3]
    assert_array_equal(again[3].tau, whole[3].tau)
    whole.save(tmp_path / "runs.npz")
    loaded = sarrus.results.Sweep.load(tmp_path / "runs.npz")
    assert loaded[5].mechanism == variants[5] and loaded.mechanisms[5] == variants[5]
    assert whole[4:9][2].mechanism == variants[6]
    assert_allclose(whole[4:9][2].tau, whole[6].tau)


def test_a_bad_run_spoils_only_itself():
    variants, q, push = fleet(20)
    good = sarrus.simulate_many(variants, q, np.zeros(3), 0.05, push, every=10)
    v = np.zeros((20, 3))
    q[3, 1], v[5] = np.nan, 1e200
    bad = sarrus.simulate_many(variants, q, v, 0.05, push, every=10)
    others = np.delete(np.arange(20), [3, 5])
    assert bad.status[3] == Status.INVALID_STATE and bad.status[5] != 0 and np.isnan(bad.q[[3, 5], -1]).all()
    assert_allclose(bad.q[others], good.q[others], rtol=0, atol=1e-12)
    assert not bad.status[others].any()


def test_a_policy_leads_variants():
    variants, q, _ = fleet(20)
    lead = lambda t, q, v: np.concatenate([5.0 * (1.0 - q[:, :1]) - v[:, :1], np.zeros((len(q), 2))], axis=1)  # noqa: E731
    runs = sarrus.simulate_many(variants, q, np.zeros(3), 0.05, policy=lead)
    for i in (0, 13):
        alone = sarrus.simulate_many(variants[i], q[i : i + 1], np.zeros(3), 0.05, policy=lead)
        assert_allclose(runs.q[i], alone.q[0], rtol=0, atol=1e-10)
        assert_allclose(runs[i].tau, alone[0].tau, rtol=0, atol=1e-8)


def test_lists_of_one_structure_are_side_by_side(monkeypatch):
    """Copies, and mechanisms that are built one by one; those that cannot be variants run separately."""
    seen = []
    alike = sweep._alike
    monkeypatch.setattr(sweep, "_alike", lambda robots: seen.append(alike(robots)) or seen[-1])
    variants, q, push = fleet(11)
    copies = list(variants)
    built = [sarrus.Mechanism(one.description) for one in copies]
    runs = [sarrus.simulate_many(r, q, np.zeros(3), 0.05, push, every=10) for r in (variants, copies, built)]
    assert [type(x) for x in seen] == [Listed, Listed]
    for other in runs[1:]:
        assert_allclose(other.q, runs[0].q, rtol=0, atol=1e-12)
    assert runs[1].mechanisms == copies and runs[1][4].mechanism is copies[4]
    order = [2, 0, 2, 5]
    several = sarrus.simulate_many([copies[i] for i in order], q[order], np.zeros(3), 0.05, every=10)
    assert several[2].mechanism is copies[2]
    assert_allclose(
        several.q, sarrus.simulate_many(variants[order], q[order], np.zeros(3), 0.05, every=10).q, rtol=0, atol=1e-12
    )

    def driven(rate):
        b = sarrus.Builder("driven")
        (
            b.add_body("arm", Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), 0.01)),
            b.add_joint("pin", sarrus.Revolute("y"), "ground", "arm"),
        )
        b.add_body("hand", Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), 0.01))
        b.add_joint("wrist", sarrus.Revolute("y"), "arm", "hand", at_parent=(1, 0, 0))
        b.add_prescribed_motion("drive", "pin", laws.polynomial(0.0, rate))
        return b.build()

    robots = [driven(rate) for rate in (1.0, 2.0)]
    del seen[:]
    runs = sarrus.simulate_many(robots, np.zeros(2), [[1.0, 0.0], [2.0, 0.0]], 0.1)
    assert seen == [None]  # laws of time are none of the numbers that variants have
    assert_allclose(runs.q[:, -1, 0], [0.1, 0.2], atol=1e-9)


def test_a_controller_of_tasks_knows_one_mechanism():
    robot = sarrus.mechanisms.double_pendulum()
    law = control.TaskControl(robot, [control.PostureTask(np.zeros(2))], actuated=list(robot.joints))
    with pytest.raises(sarrus.ModelError, match="was made for the mechanism"):
        sarrus.simulate_many(robot.variants(gravity=np.ones((3, 3))), [0.1, 0.2], [0.0, 0.0], 0.1, law)
