"""Loads of a run, `wrenches=` and AppliedWrench: beside forward dynamics, functions of the caller, momentum, work and joint wrenches."""

import functools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import cumulative_simpson

import sarrus
from sarrus import laws, mechanisms
from sarrus.control import PID, AppliedWrench, RigidContact

RNG = np.random.default_rng(4)
LAWS = [laws.harmonic(*row) for row in RNG.uniform(0.3, 3.0, size=(6, 2))]  # amplitude, rate


def values(t):
    return np.stack([law(t) for law in LAWS], axis=-1)


@functools.cache
def plate():
    """Free body with gravity, and a frame that is turned and shifted."""
    b = sarrus.Builder("plate")
    b.add_body("plate", sarrus.Inertia.box(20.0, (1.0, 0.8, 0.3)))
    b.add_joint("float", sarrus.Free(), "ground", "plate")
    b.add_frame("corner", "plate", sarrus.Transform.from_rpy(0.5, -0.4, 0.2, (0.15, -0.1, 0.02)))
    return b.build()


def in_world(run, frame, wrench):
    """Wrenches (n, 6) of a frame about the world's origin, in world axes."""
    X = run.frame(frame)
    moment, force = (np.einsum("nij,nj->ni", X[:, :3, :3], x) for x in (wrench[:, :3], wrench[:, 3:]))
    return np.concatenate([moment + np.cross(X[:, :3, 3], force), force], axis=-1)


@pytest.mark.parametrize("axes", ["frame", "world_aligned"])
def test_the_momentum_of_a_free_body_is_the_integral_of_its_loads(axes):
    """The momentum about the world's origin, with the loads' own axes and point; gravity acts too."""
    robot = plate()
    q = robot.random(np.random.default_rng(1))
    load = AppliedWrench("corner", LAWS, scale=0.5, expressed_in=axes)
    run = sarrus.simulate(robot, q, np.full(6, 0.3), 1.0, load, dt=1e-3)
    wrench = 0.5 * values(run.t)
    if axes == "world_aligned":
        R = run.frame("corner")[:, :3, :3]
        wrench = np.concatenate([np.einsum("nji,nj->ni", R, x) for x in (wrench[:, :3], wrench[:, 3:])], axis=-1)
    assert_allclose(run.wrenches["corner"], wrench, rtol=0, atol=1e-14)
    weight = np.array([0.0, 0.0, -9.81 * 20.0])
    rate = in_world(run, "corner", wrench)
    rate[:, 3:] += weight
    rate[:, :3] += np.cross(run.frame("plate")[:, :3, 3], weight)
    change = cumulative_simpson(rate, dx=1e-3, axis=0, initial=0.0)
    assert_allclose(run.momentum - run.momentum[0], change, rtol=0, atol=1e-9)  # Simpson and rk4: h^4


METHODS = ["euler", "semi_implicit", "rk4", "rkmk4", "dopri5", "implicit_midpoint", "independent", "rosenbrock"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_integrates_loads_as_it_does_those_of_a_function(method):
    """A four-bar with loads on its coupler, as from a Python function that returns wrenches; `tau` is without, `a` with the loads."""
    robot = mechanisms.four_bar()
    q, v = robot.assemble(fixed={"motor": 0.5}), np.zeros(3)
    loads = {"coupler": LAWS, "rocker": [0.0, 0.1, 0.0, 1.0, 0.0, -2.0]}

    def function(t, q, v):
        return np.zeros(3), {"coupler": values(t), "rocker": loads["rocker"]}

    # at rest the rates of forces are zero, and neither is stiff: "rosenbrock" then takes steps of rk4
    options = {"method": method, "dt": 1e-3, "atol": 1e-12, "rtol": 1e-9}
    run = sarrus.simulate(robot, q, v, 0.2, wrenches=loads, **options)
    other = sarrus.simulate(robot, q, v, 0.2, function, **options)
    assert_allclose(run.q, other.q, rtol=0, atol=1e-11)
    assert_array_equal(run.tau, np.zeros_like(run.v))
    assert_allclose(run.wrenches["coupler"], values(run.t), rtol=1e-15)
    expected = robot.forward_dynamics(run.q, run.v, np.zeros_like(run.v), wrenches=run.wrenches, check=False)
    assert_allclose(run.a, expected, rtol=1e-12)


def test_accelerations_of_a_run_are_those_of_forward_dynamics():
    """Differences of the velocities, of fourth order, beside forward dynamics with the loads at each sample; with a controller."""
    robot = mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    drive = PID("motor", proportional=5.0, derivative=0.5)
    run = sarrus.simulate(robot, q, np.zeros(3), 0.5, drive, dt=1e-3, wrenches={"coupler": LAWS})
    a = robot.forward_dynamics(run.q, run.v, run.tau, wrenches={"coupler": values(run.t)}, check=False)
    slope = (run.v[:-4] - 8 * run.v[1:-3] + 8 * run.v[3:-1] - run.v[4:]) / 12e-3
    assert_allclose(a[2:-2], slope, rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint", "contact", "rosenbrock"])
def test_work_of_loads_is_in_the_balance_of_energy(method):
    """The energy changes by the work, which is the integral of the loads' power; no warning is issued."""
    robot = mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sarrus.simulate(robot, q, np.zeros(3), 0.5, method=method, wrenches={"coupler": LAWS})
    work = run.statistics["work"]
    assert abs(work) > 0.05
    tolerance = 1e-4 if method in ("contact", "rosenbrock", "implicit_midpoint") else 1e-8  # second order, fourth order
    assert run.energy[-1] - run.energy[0] == pytest.approx(work, abs=tolerance)
    power = (robot.velocity(run.q, run.v, "coupler") * values(run.t)).sum(axis=1)
    assert cumulative_simpson(power, dx=1e-3)[-1] == pytest.approx(work, abs=tolerance)


def test_pins_carry_loads_that_no_coordinate_feels():
    """A pull along a pendulum's rod has no generalised force; the pin carries it. Joint wrenches are those of the mechanism with the loads."""
    robot = mechanisms.pendulum(mass=2.0, length=0.5)
    pull = [0.0, 0.0, 0.0, 0.0, 0.0, -30.0]
    R = robot.pose([0.0], "tip")[:3, :3]
    assert_allclose(robot.jacobian([0.0], "tip").T @ pull, 0.0, atol=1e-15)
    with_load, without = (sarrus.simulate(robot, [0.0], [0.0], 0.1, wrenches=loads) for loads in ({"tip": pull}, None))
    assert_array_equal(with_load.q, without.q)
    force = with_load.joint_wrenches()["pivot"][:, 3:] - without.joint_wrenches()["pivot"][:, 3:]
    at_pin = robot.pose([0.0], robot.joint("pivot").child if hasattr(robot.joint("pivot"), "child") else "rod")[:3, :3]
    assert_allclose(np.linalg.norm(force, axis=1), 30.0, rtol=1e-12)
    assert_allclose(at_pin @ force[0], -(R @ pull[3:]), rtol=0, atol=1e-12)

    fourbar = mechanisms.four_bar()
    q = fourbar.assemble(fixed={"motor": 0.5})
    run = sarrus.simulate(fourbar, q, np.zeros(3), 0.1, wrenches={"coupler": LAWS, "rocker": np.arange(6.0)})
    expected = fourbar.joint_wrenches(run.q, run.v, run.a, actuated=(), wrenches=run.wrenches)
    for name, wrench in run.joint_wrenches(actuated=()).items():
        assert_allclose(wrench, expected[name], rtol=0, atol=1e-9, err_msg=name)
    planned = sarrus.Trajectory.from_motion(
        fourbar, run.t, run.q, run.v, run.a, actuated=["motor"], wrenches={"coupler": LAWS, "rocker": np.arange(6.0)}
    )
    assert_allclose(planned.tau, 0.0, atol=1e-9)  # the loads alone cause this motion


def runs_of_laws():
    push = np.linspace(-1.0, 1.0, 4)
    turns = [laws.harmonic(amplitude, 5.0) for amplitude in (0.1, 0.2, 0.3, 0.4)]
    together = {"coupler": [0.0, turns, 0.0, push, 0.0, 1.0], "rocker": RNG.normal(size=(4, 6))}
    return together, lambda k: {"coupler": [0.0, turns[k], 0.0, push[k], 0.0, 1.0], "rocker": together["rocker"][k]}


@pytest.mark.parametrize("varied", [False, True])
def test_loads_that_differ_from_run_to_run(varied):
    """Arrays, sequences of laws and rows (runs, 6), with one mechanism or variants: as one by one, with the loads of each run."""
    robot = mechanisms.four_bar()
    together, of_run = runs_of_laws()
    robots = robot.variants(gravity=[(0.0, 0.0, -g) for g in (9.81, 5.0, 2.0, 0.0)]) if varied else [robot] * 4
    q = robot.assemble(fixed={"motor": 0.5})
    runs = sarrus.simulate_many(robots if varied else robot, q, np.zeros(3), 0.3, wrenches=together, every=10)
    for k in range(4):
        one = sarrus.simulate(robots[k], q, np.zeros(3), 0.3, wrenches=of_run(k), every=10, dt=1e-3)
        assert_allclose(runs.q[k], one.q, rtol=0, atol=1e-10)
        for name in together:
            assert_allclose(runs[k].wrenches[name], one.wrenches[name], rtol=1e-14)
        assert_allclose(runs[k].a, one.a, rtol=0, atol=1e-7)
    scaled = [
        AppliedWrench("coupler", [0, 0, 0, 1, 0, 0], scale=np.array([1.0, 2.0])),
        AppliedWrench("coupler", [0, 0, 0, 1, 0, 0]),
    ]
    two = sarrus.simulate_many(robot, q, np.zeros(3), 0.01, scaled)
    assert two[1].wrenches["coupler"][0].tolist() == [0, 0, 0, 3, 0, 0]  # two loads on one frame are added
    assert two[1:][0].wrenches["coupler"][0].tolist() == [0, 0, 0, 3, 0, 0]


def test_a_push_overcomes_dry_friction():
    """A block on a plane with friction 0.5 stays below mu m g, and accelerates by F/m - mu g above it."""
    b = sarrus.Builder("block")
    b.add_body("block", sarrus.Inertia.box(2.0, (0.2, 0.2, 0.2)))
    b.add_joint("slide", sarrus.Planar("y"), "ground", "block")
    block = b.build()
    contacts = [RigidContact("block", friction=0.5)]
    for push, acceleration in ((9.0, 0.0), (12.0, 6.0 - 0.5 * 9.81)):
        start = np.zeros(block.nq)
        run = sarrus.simulate(
            block, start, np.zeros(block.nv), 0.2, contacts, wrenches={"block": [0, 0, 0, push, 0, 0]}
        )
        assert run.momentum[-1, 3] == pytest.approx(2.0 * acceleration * 0.2, abs=1e-6)
        assert_allclose(run.contacts.force[:, 0], -min(push, 0.5 * 2.0 * 9.81), rtol=1e-6)
        assert_allclose(run.a[1:] - run.a[-1], 0.0, atol=1e-6)


def test_sensitivities_to_the_scale_of_a_load():
    robot, q = mechanisms.pendulum(), [0.3]

    def end(scale, **options):
        load = AppliedWrench("tip", [0, 0, 0, LAWS[3], 0.0, LAWS[4]], scale=scale)
        return sarrus.simulate(robot, q, [0.0], 0.2, load, dt=1e-3, **options)

    slope = end(0.7, sensitivities=["AppliedWrench(tip).scale"]).sensitivities.parameters["AppliedWrench(tip).scale"][
        -1, 0, 0
    ]
    assert slope == pytest.approx((end(0.7 + 1e-4).q[-1, 0] - end(0.7 - 1e-4).q[-1, 0]) / 2e-4, rel=1e-6)
    assert abs(slope) > 1e-3


def test_a_resumed_run_and_a_saved_one(tmp_path):
    robot, loads = plate(), {"corner": LAWS}
    q, v = robot.neutral(), np.zeros(6)
    whole = sarrus.simulate(robot, q, v, 0.2, wrenches=loads, dt=1e-3)
    first = sarrus.simulate(robot, q, v, 0.1, wrenches=loads, dt=1e-3)
    rest = sarrus.simulate(robot, duration=0.1, wrenches=loads, resume=first)
    assert_array_equal(rest.q[-1], whole.q[-1])
    whole.save(tmp_path / "run.npz")
    assert_array_equal(sarrus.Trajectory.load(tmp_path / "run.npz").wrenches["corner"], whole.wrenches["corner"])


@pytest.mark.parametrize(
    ("wrenches", "error", "text"),
    [
        ({"tipp": np.zeros(6)}, sarrus.NameNotFoundError, "no frame is named 'tipp'; did you mean 'tip'"),
        (
            {"ground": np.zeros(6)},
            sarrus.ModelError,
            "AppliedWrench: frame 'ground' is fixed to the ground; expected a frame of a moving body",
        ),
        (
            {"tip": np.zeros(3)},
            sarrus.ModelError,
            r"wrench of AppliedWrench on 'tip' must be six numbers or functions of time, \[moment; force\]",
        ),
        ({"tip": 1.0}, sarrus.ModelError, "wrench of AppliedWrench on 'tip' must be six numbers or functions of time"),
        ({"tip": [0, 0, 0, "x", 0, 0]}, sarrus.ModelError, r"wrench\[3\] on 'tip' .*'x'"),
        ({"tip": [0, 0, 0, np.nan, 0, 0]}, sarrus.ModelError, r"wrench\[3\] on 'tip' .*nan"),
        ({"tip": np.zeros((5, 6))}, sarrus.ShapeError, "differ from run to run"),
        ([np.zeros(6)], TypeError, r"wrenches must be a mapping of frames to \[moment; force\]"),
    ],
)
def test_invalid_loads(wrenches, error, text):
    with pytest.raises(error, match=text):
        sarrus.simulate(mechanisms.pendulum(), [0.1], [0.0], 0.1, wrenches=wrenches)


def test_invalid_axes_and_runs():
    robot = mechanisms.pendulum()
    with pytest.raises(
        sarrus.NameNotFoundError,
        match="AppliedWrench: no expressed_in is named 'world'; there are: frame, world_aligned",
    ):
        sarrus.simulate(robot, [0.1], [0.0], 0.1, AppliedWrench("tip", np.zeros(6), expressed_in="world"))
    with pytest.raises(sarrus.ShapeError):
        sarrus.simulate_many(robot, np.zeros((3, 1)), [0.0], 0.1, wrenches={"tip": np.zeros((4, 6))})
