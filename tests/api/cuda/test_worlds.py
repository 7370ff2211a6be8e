"""Worlds side by side on both devices, compared with the core. Without a GPU, the CUDA sources run as C++, and NVRTC compiles them if it is installed."""

import importlib.util
import os
import shutil

import numpy as np
import pytest

import fake_driver
import gallery
import sarrus
import sarrus.cuda
from generated_states import difference, states
from sarrus.cuda import devices
from tests.laws.test_dry_friction import chain
from tests.small_mechanisms import gate

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
SOAK = bool(os.environ.get("SARRUS_SOAK"))
# a tree, a loop with dependent rows, quaternions
SOME = ("double_pendulum", "four_bar", "free_flyer")
OVERCONSTRAINED = "bennett bricard goldberg_5r goldberg_6r hoberman_ring hoberman_sphere miura_fold myard sarrus_linkage schatz two_links wren_platform"
REFUSED = dict.fromkeys(OVERCONSTRAINED.split(), "redundant rows of its loops") | {
    "cable_platform": "no entries for the loop joint"
}
ACCEPTED = [name for name in sarrus.mechanisms.__all__ if name not in REFUSED]
EXACT = {
    "double": 1e-12,
    "float": 1e-5,
}  # relative to the largest entry: rounding, times the condition of the equations
# mechanisms of the gallery whose functions in a type of numbers, or steps, are less accurate
ILL_CONDITIONED = "thin rods on ball joints: the condition of M is 3e5, and the core's own rounding error is 2e-11"
TWO_CORRECTIONS = "two corrections do not close its loops to rounding"
NOT_REACHED = {
    ("ring", "double"): ILL_CONDITIONED,
    ("ring", "float"): ILL_CONDITIONED,
    ("strandbeest_leg", "float"): "one of the states is near a singular position: 8e-5",
    ("chain_mail", "semi_implicit"): TWO_CORRECTIONS,
    ("gripper", "semi_implicit"): TWO_CORRECTIONS,
    ("double_hooke", "semi_implicit"): "needs other decisions in these states than in the samples, as its status shows",
}
COUNT = 21  # neither a multiple of the lanes nor of the threads of a block
DEVICES = ("cpu", "cuda")


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    """Kernels are cached for all tests of the process, and in no other folder."""
    monkeypatch.setenv("SARRUS_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))


@pytest.fixture
def driver(monkeypatch):
    fake = fake_driver.Driver()
    monkeypatch.setattr(devices, "_bindings", lambda name: {"driver": fake, "nvrtc": fake_driver.NVRTC}[name])
    monkeypatch.setattr(devices, "cubin", fake_driver.cubin)
    return fake


def host(x):
    return np.asarray(x).astype(float)


def _not_reached(request, *key):
    """Expect a failure where the accuracy is known to be missed."""
    if key in NOT_REACHED:
        request.applymarker(pytest.mark.xfail(strict=True, reason=NOT_REACHED[key]))


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("name", ACCEPTED if SOAK else SOME)
def test_functions_agree_with_the_core(name, scalar, driver, request):
    """Functions of the state, on both devices."""
    _not_reached(request, name, scalar)
    robot = gallery.made(name)
    given = states(robot, COUNT)
    core = robot.forward_dynamics(given["q"], given["v"], given["tau"], return_status=True)[0]
    pose = robot.pose(given["q"], robot.bodies[-1])
    for device in DEVICES[: 1 + (scalar == "double")]:
        worlds = sarrus.cuda.Worlds(robot, COUNT, scalar=scalar, device=device)
        worlds.reset(q=given["q"], v=given["v"])
        answer = worlds.call("forward_dynamics", tau=given["tau"])
        good = host(answer["status"]) == 0
        assert good.sum() > COUNT // 2
        assert difference(host(answer["a"])[good], core[good]).max() < EXACT[scalar]
        assert difference(host(worlds.call(f"pose:{robot.bodies[-1]}")["pose"]), pose).max() < EXACT[scalar]


@pytest.mark.parametrize("name", REFUSED if SOAK else ("bennett", "cable_platform"))
def test_mechanisms_of_the_gallery_that_are_refused(name):
    with pytest.raises(sarrus.ModelError, match=REFUSED[name]):
        sarrus.cuda.Worlds(gallery.made(name), COUNT, device="cpu")


# Residual at which the core's projection of a step ends [rad, body sizes], and twice that for the displacements that correct it. Semi-implicit velocities
# on loops are displacements divided by dt, so that they agree to this fraction of dt; all other numbers agree to EXACT
NO_DRIFT = 1e-14


@needs_compiler
@pytest.mark.parametrize(
    ("name", "method"), [*((name, "semi_implicit") for name in (ACCEPTED if SOAK else SOME)), ("four_bar", "euler")]
)
def test_steps_agree_with_the_core(name, method, driver, request):
    """Ten steps from each of several states, on both devices."""
    _not_reached(request, name, method)
    robot = gallery.made(name)
    given, steps, options = states(robot, COUNT), 10, {"dt": 1e-3, "method": method}
    runs = sarrus.simulate_many(robot, given["q"], given["v"], steps * 1e-3, limits="ignore", every=steps, **options)
    for device in DEVICES:
        worlds = sarrus.cuda.Worlds(robot, COUNT, scalar="double", substeps=steps // 2, device=device, **options)
        worlds.reset(q=runs.q[:, 0], v=runs.v[:, 0])
        worlds.step()
        worlds.step(np.zeros(worlds.motors))
        assert (host(worlds.status) % 8 == 0).all() and np.allclose(host(worlds.time), steps * 1e-3, rtol=1e-12)
        assert difference(host(worlds.q), runs.q[:, -1]).max() < EXACT["double"]
        if robot.nc and method == "semi_implicit":
            assert np.abs(host(worlds.v) - runs.v[:, -1]).max() < 2.0 * NO_DRIFT / 1e-3
        else:
            assert difference(host(worlds.v), runs.v[:, -1]).max() < EXACT["double"]
        assert host(worlds.residual)[:, 0].max() < NO_DRIFT
    if name not in SOME:  # elsewhere, the rounding errors of the two compilations grow near singular positions
        return
    other = sarrus.cuda.Worlds(robot, COUNT, scalar="double", substeps=steps, device="cpu", threads=2, **options)
    other.reset(q=runs.q[:, 0], v=runs.v[:, 0])
    other.step()
    assert difference(other.q, host(worlds.q)).max() < 1e-14


@needs_compiler
def test_elements_agree_with_the_core(driver):
    """Contact, friction with internal states, and an end stop, on both devices."""
    robot = sarrus.mechanisms.double_pendulum()
    tip, (first, second) = robot.frames[-1], robot.joints
    q = np.linspace([0.3, 0.2], [0.5, 0.1], 5)  # some of the tips are in the ground
    height = float(np.median(robot.pose(q, tip)[:, 2, 3]))
    ground = sarrus.control.CompliantContact(tip, offset=height, stiffness=1e4, exponent=1.0, slip_velocity=0.05)
    friction = sarrus.control.LuGreFriction(first, sliding=1.0, sticking=1.5, stiffness=100.0, damping=1.0)
    elements = [ground, friction, sarrus.control.EndStop(second, (-0.1, 0.15), stiffness=100.0, damping=1.0)]
    options = {"dt": 1e-4, "method": "rk4"}
    runs = sarrus.simulate_many(robot, q, np.zeros(robot.nv), 1e-2, elements, every=100, limits="ignore", **options)
    for device in DEVICES:
        worlds = sarrus.cuda.Worlds(
            robot, 5, scalar="double", substeps=100, elements=elements, device=device, **options
        )
        worlds.reset(q=runs.q[:, 0], v=runs.v[:, 0])
        worlds.step()
        assert worlds.z.shape == (5, 1) and (host(worlds.status) % 8 == 0).all()
        assert difference(host(worlds.q), runs.q[:, -1]).max() < EXACT["double"]
        assert difference(host(worlds.v), runs.v[:, -1]).max() < EXACT["double"]


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_powers_agree_with_the_core(scalar, driver):
    """Gas springs, and contact with another exponent than 1 or 1.5, from the home of an open chain, where the length of the strut is in its range."""
    robot = gate()
    spring = sarrus.control.GasSpring("stud", "pillar", extended_length=0.7, stroke=0.45, force=320.0, exponent=1.2)
    ground = sarrus.control.CompliantContact("edge", offset=-0.62, stiffness=1e4, exponent=1.3)
    options = {"dt": 1e-3, "method": "rk4"}
    run = sarrus.simulate(robot, robot.assemble(), [0.0], 0.1, [spring, ground], limits="ignore", **options)
    for device in DEVICES:
        worlds = sarrus.cuda.Worlds(
            robot, 3, scalar=scalar, substeps=100, elements=[spring, ground], device=device, **options
        )
        assert np.allclose(host(worlds.q), robot.assemble(), rtol=1e-6)
        worlds.step()
        assert (host(worlds.status) % 8 == 0).all()
        assert np.abs(host(worlds.q) - run.q[-1]).max() < {"double": 1e-13, "float": 1e-5}[scalar]


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_corners_of_a_box_on_rough_ground(device, driver):
    """A box falls onto ground whose height is a wave or a spline, and rolls on its corners."""
    b = sarrus.Builder("box")
    size = np.array([0.3, 0.2, 0.1])
    b.add_body("box", sarrus.Inertia.box(2.0, size))
    b.add_joint("float", sarrus.Free(), "ground", "box")
    corners = [f"corner{k}" for k in range(8)]
    for k, name in enumerate(corners):
        b.add_frame(name, "box", 0.5 * size * [1 if k >> axis & 1 else -1 for axis in range(3)])
    robot, rng = b.build(), np.random.default_rng(3)
    q = np.zeros((5, robot.nq))
    q[:, :4] = rng.normal(size=(5, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:] = np.column_stack([rng.uniform(-1.0, 1.0, (5, 2)), np.full(5, 0.12)])
    v = rng.normal(size=(5, robot.nv))
    wave = sarrus.laws.harmonic(0.03, 6.0)
    spline = sarrus.laws.spline(np.linspace(-3.0, 3.0, 13), 0.03 * np.cos(np.arange(13.0)))
    options = {"dt": 1e-4, "method": "rk4"}
    for height in (wave, spline):
        ground = [
            sarrus.control.CompliantContact(
                name, height=height, along="x", stiffness=1e4, exponent=1.0, slip_velocity=0.05
            )
            for name in corners
        ]
        runs = sarrus.simulate_many(robot, q, v, 0.1, ground, every=1000, limits="ignore", **options)
        worlds = sarrus.cuda.Worlds(robot, 5, scalar="double", substeps=1000, elements=ground, device=device, **options)
        worlds.reset(q=q, v=v)
        worlds.step()
        assert (host(worlds.status) % 8 == 0).all()
        falls = sarrus.simulate_many(robot, q, v, 0.1, every=1000, limits="ignore", **options)
        assert np.abs(falls.v[:, -1] - runs.v[:, -1]).max(axis=1).min() > 1e-2  # all boxes touch the ground
        # edges of contacts and friction at 20 rad/s increase rounding errors by a factor of about 100 in 1,000 steps
        assert difference(host(worlds.q), runs.q[:, -1]).max() < 1e-10
        assert difference(host(worlds.v), runs.v[:, -1]).max() < 1e-10


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_dry_friction_and_delays(device, driver):
    """Joints stop and stick, and motors act late, as in the core; also with friction that differs from world to world."""
    robot, q = chain([1.0, 1.0]), np.array([[0.5, 0.3], [1.2, 0.0], [1.5, 0.1], [-0.4, 0.6]])
    pid = sarrus.control.PID("j1", target=0.2, proportional=30.0, integral=5.0, derivative=0.5, limits=(-3.0, 3.0))
    motor = sarrus.control.SampleAndHold(pid, period=0.005, delay=0.007)
    variants = robot.variants(friction={"j0": [0.5, 1.0, 2.0, 8.0]})
    for simulated in (robot, variants):
        runs = sarrus.simulate_many(
            simulated, q, np.zeros((4, 2)), 0.3, motor, dt=1e-3, method="semi_implicit", every=300, limits="ignore"
        )
        worlds = sarrus.cuda.Worlds(simulated, 4, scalar="double", dt=1e-3, substeps=150, elements=motor, device=device)
        worlds.reset(q=q)
        worlds.step()
        worlds.step()
        assert (host(worlds.status) % 8 == 0).all()
        assert difference(host(worlds.q), runs.q[:, -1]).max() < 1e-11
        assert np.abs(host(worlds.v) - runs.v[:, -1]).max() < 1e-10
        worlds.reset()
        assert not host(worlds.z).any()


def test_defaults_of_an_initial_configuration_are_refused():
    """Worlds have no initial configuration when their steps are recorded."""
    stop = sarrus.control.EndStop("pivot", (-1.95, -1.6), damping=1.0)
    with pytest.raises(sarrus.ModelError, match=r"give stiffness= to EndStop\(pivot\)"):
        sarrus.cuda.Worlds(sarrus.mechanisms.four_bar(), 2, elements=stop, device="cpu")


def varied(name, count):
    """Return variants with different masses, gravity, lengths, springs and dampers; some of them are zero in the first variant."""
    robot, rng = gallery.made(name), np.random.default_rng(2)
    numbers = np.linspace(0.0, 1.0, count)
    first = robot.joints[0]
    changes = {
        "inertias": {
            b.name: np.outer(rng.uniform(0.5, 2.0, count), b.inertia.parameters)
            for b in robot.description.bodies
            if b.inertia.mass > 0.0
        },
        "gravity": 9.0 * rng.normal(size=(count, 3)),
    }
    if robot.joint(first).type.nv == 1:
        changes |= {key: {first: numbers} for key in ("damping", "stiffness", "cubic_stiffness", "armature")}
    if name == "four_bar":
        changes["placements"] = {"pin1.parent": np.outer(np.linspace(0.35, 0.45, count), [1.0, 0.0, 0.0])}
    if name == "double_pendulum":
        changes["placements"] = {robot.frames[-1]: rng.normal(size=(count, 3))}
    return robot.variants(**changes)


@needs_compiler
@pytest.mark.parametrize("name", [*SOME, "quadruped", "humanoid_leg"] if SOAK else ("double_pendulum", "four_bar"))
def test_variants_agree_with_the_core(name, driver):
    """Functions of the state and steps, with parameters that differ between worlds, on both devices."""
    variants = varied(name, COUNT)
    robot, given = variants.base, states(variants.base, COUNT)
    q = variants.assemble(given["q"]) if robot.constraints else given["q"]
    v = variants.project_velocity(q, given["v"]) if robot.constraints else given["v"]
    frame, options = robot.frames[-1], {"dt": 1e-3, "method": "euler"}
    runs = sarrus.simulate_many(variants, q, v, 1e-2, limits="ignore", every=10, **options)
    assert difference(runs.q[:, -1], runs.q[[*range(1, COUNT), 0], -1]).min() > 1e-3  # worlds differ
    for device in DEVICES:
        worlds = sarrus.cuda.Worlds(variants, COUNT, scalar="double", substeps=10, device=device, **options)
        worlds.reset(q=q, v=v)
        a = host(worlds.call("forward_dynamics", tau=given["tau"])["a"])
        assert difference(a, variants.forward_dynamics(q, v, given["tau"])).max() < EXACT["double"]
        pose = host(worlds.call(f"pose:{frame}")["pose"])
        assert difference(pose, variants.pose(q, frame)).max() < EXACT["double"]
        worlds.reset(q=runs.q[:, 0], v=runs.v[:, 0])
        worlds.step()
        assert (host(worlds.status) == 0).all()
        assert difference(host(worlds.q), runs.q[:, -1]).max() < EXACT["double"]
        assert difference(host(worlds.v), runs.v[:, -1]).max() < EXACT["double"]


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_parameters_of_elements_differ_between_worlds(device, driver):
    """Friction of contacts and stiffness of end stops, also without variants of the mechanism."""
    robot = sarrus.mechanisms.double_pendulum()
    tip, second = robot.frames[-1], robot.joints[1]
    q, friction, stiffness = [0.3, 0.2], np.linspace(0.0, 1.0, 5), np.linspace(10.0, 100.0, 5)
    height = robot.pose(q, tip)[2, 3] + 1e-3
    ground = sarrus.control.CompliantContact(
        tip, offset=height, stiffness=1e4, exponent=1.0, slip_velocity=0.05, friction=friction
    )
    elements = [ground, sarrus.control.EndStop(second, (-0.1, 0.15), stiffness=stiffness, damping=1.0)]
    options = {"dt": 1e-4, "method": "rk4"}
    runs = sarrus.simulate_many(robot, [q] * 5, np.zeros(2), 1e-2, elements, every=100, limits="ignore", **options)
    order = np.array([4, 2, 2, 0, 1, 3])
    worlds = sarrus.cuda.Worlds(robot, 6, scalar="double", substeps=100, elements=elements, device=device, **options)
    assert host(worlds.variant).tolist() == [0, 1, 2, 3, 4, 0]
    worlds.reset(q=q, variants=order)
    worlds.step()
    assert difference(host(worlds.q), runs.q[order, -1]).max() < EXACT["double"]
    assert difference(host(worlds.q)[[0]], host(worlds.q)[[1]]).max() > 1e-6
    with pytest.raises(sarrus.ShapeError, match=r"as many values as there are variants; got 3 and 5"):
        sarrus.cuda.Worlds(robot.variants(gravity=np.eye(3)), 6, elements=elements, device=device)


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_reset_changes_variants(device, driver):
    """Worlds whose mask is true get the numbers of other variants, and the others keep theirs."""
    robot = sarrus.mechanisms.four_bar()
    variants = robot.variants(placements={"pin1.parent": np.outer(np.linspace(0.35, 0.45, 4), [1.0, 0.0, 0.0])})
    worlds = sarrus.cuda.Worlds(variants, 6, scalar="double", device=device)
    rows = np.array([3, 3, 1, 0, 2, 1])
    worlds.reset(np.arange(6) < 3, variants=rows)
    expected = [3, 3, 1, 3, 0, 1]
    assert host(worlds.variant).tolist() == expected
    pose = worlds.call("pose:coupler")["pose"]
    assert difference(host(pose), variants[expected].pose(host(worlds.q), "coupler")).max() < EXACT["double"]
    # the loops of each variant are closed
    assert np.abs(variants[expected].constraint_residual(host(worlds.q))).max() < 1e-12
    if device == "cpu":
        with pytest.raises(ValueError, match="variants must be indices below 4"):
            worlds.reset(variants=np.arange(6))
    else:
        rows = sarrus.cuda.Worlds(robot, 6, scalar="double").variant  # an array on the device
        worlds.reset(q=variants.assemble()[0], variants=rows)
        assert host(worlds.variant).tolist() == [0] * 6
    with pytest.raises(TypeError, match="variants must be an array of integers"):
        worlds.reset(variants=np.zeros(6))


@needs_compiler
def test_threads_do_not_change_results():
    robot = sarrus.mechanisms.double_pendulum()
    q = np.random.default_rng(0).normal(size=(1001, 2))
    ends = []
    for threads in (1, 3):
        worlds = sarrus.cuda.Worlds(robot, 1001, device="cpu", threads=threads)
        worlds.reset(q=q)
        worlds.step()
        ends.append(worlds.q)
    assert np.array_equal(*ends) and not np.array_equal(ends[0], q.astype(np.float32))


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_a_failed_world_keeps_its_state(device, driver):
    """Efforts that are not finite fail in one world only, until it is reset."""
    worlds = sarrus.cuda.Worlds(sarrus.mechanisms.four_bar(), COUNT, scalar="double", device=device)
    worlds.assemble({"motor": np.linspace(-0.5, 0.5, COUNT)})
    q = host(worlds.q)
    u = np.zeros((COUNT, 1))
    u[3] = np.nan
    worlds.step(u)
    worlds.step(np.zeros(1))
    assert host(worlds.status).tolist() == [2.0 * (k == 3) for k in range(COUNT)]
    moved = np.abs(host(worlds.q) - q).max(axis=1) > 0.0
    assert moved.tolist() == [k != 3 for k in range(COUNT)] and np.array_equal(host(worlds.q)[3], q[3])
    assert host(worlds.time)[3] == 0.0 and np.allclose(np.delete(host(worlds.time), 3), 2e-3)
    mask = np.arange(COUNT) == 3
    worlds.reset(mask, q[0])
    assert host(worlds.status).max() == 0.0 and np.array_equal(host(worlds.q)[3], q[0])
    assert np.allclose(np.delete(host(worlds.time), 3), 2e-3)


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_assemble_closes_loops(device, driver):
    robot, angles = sarrus.mechanisms.four_bar(), np.linspace(-1.0, 1.0, COUNT)
    worlds = sarrus.cuda.Worlds(robot, COUNT, scalar="double", device=device)
    worlds.assemble({"motor": angles})
    turns = (host(worlds.q) - robot.assemble(fixed={"motor": angles[:, None]})) / (2.0 * np.pi)
    assert np.abs(turns - np.rint(turns)).max() < 1e-9
    assert host(worlds.status).max() == 0.0
    q = host(worlds.q)
    worlds.assemble({"motor": 2.5}, mask=np.arange(COUNT) < 5)
    assert (host(worlds.status)[5:] == 0.0).all() and np.array_equal(host(worlds.q)[5:], q[5:])


@needs_compiler
def test_seeds_draw_the_same_states(driver):
    robot, starts = sarrus.mechanisms.double_pendulum(), np.random.default_rng(1).normal(size=(7, 2))
    drawn = []
    for device in DEVICES:
        worlds = sarrus.cuda.Worlds(robot, COUNT, scalar="double", device=device)
        worlds.reset(q=starts, seed=4)
        drawn.append(host(worlds.q))
        worlds.reset(q=starts, seed=5)
        assert not np.array_equal(host(worlds.q), drawn[-1])
    assert np.array_equal(*drawn) and len(np.unique(drawn[0], axis=0)) > 3


@needs_compiler
def test_loops_stay_closed_in_single_precision():
    """After 10,000 steps loops are open by rounding only."""
    robot = sarrus.mechanisms.four_bar()
    worlds = sarrus.cuda.Worlds(robot, 16, dt=1e-3, substeps=5000, device="cpu")
    worlds.assemble({"motor": np.linspace(-1.0, 1.0, 16)})
    worlds.step()
    first = worlds.residual.max()
    worlds.step()
    assert (worlds.status % 8 == 0).all() and worlds.residual[:, 0].max() < 1e-6
    gaps = np.abs(robot.constraint_residual(worlds.q.astype(float))).max()
    assert gaps < 1e-6 and worlds.residual.max() < 10 * max(first, 1e-6)


@needs_compiler
def test_functions_of_a_recorder_and_derivatives():
    robot = sarrus.mechanisms.double_pendulum()
    given = states(robot, COUNT)
    worlds = sarrus.cuda.Worlds(robot, COUNT, scalar="double", device="cpu")
    worlds.reset(q=given["q"], v=given["v"])

    def power(r):
        return {"power": np.array([r.v @ r.call("inverse_dynamics", r.q, r.v, r.a)])}

    tau = robot.inverse_dynamics(given["q"], given["v"], given["a"])
    answer = worlds.call(power, a=given["a"])
    assert np.allclose(answer["power"][:, 0], (given["v"] * tau).sum(axis=1), rtol=1e-12)
    D = sarrus.derivatives.forward_dynamics(robot, given["q"], given["v"], given["tau"])
    dq = worlds.call("forward_dynamics_derivatives", tau=given["tau"])["da_dq"]
    assert np.abs(dq - D.q).max() < 1e-9 * np.abs(D.q).max()


@needs_compiler
@pytest.mark.parametrize("several", [False, True])
def test_without_a_compiler_the_core_computes(several, monkeypatch):
    """The same program, with the same results, if there is no compiler."""
    robot, ends = sarrus.mechanisms.four_bar(), []
    lengths = np.outer(np.linspace(0.35, 0.45, 4), [1.0, 0.0, 0.0])
    simulated = robot.variants(placements={"pin1.parent": lengths}) if several else robot
    for compiler in (shutil.which, lambda name: None):
        monkeypatch.setattr(devices.shutil, "which", compiler)
        worlds = sarrus.cuda.Worlds(simulated, COUNT, scalar="double", dt=1e-4, substeps=10, device="cpu")
        if several:
            worlds.reset(np.arange(COUNT) < 8, variants=np.arange(COUNT)[::-1] % 4)
        worlds.assemble({"motor": np.linspace(-0.5, 0.5, COUNT)})
        worlds.step(np.full((COUNT, 1), 5.0))
        worlds.reset(np.arange(COUNT) == 2)
        a = worlds.call("forward_dynamics", tau=np.zeros(robot.nv))["a"]
        ends.append((worlds.q, worlds.v, worlds.time, worlds.status, a))
        with pytest.raises(TypeError, match="forward_dynamics has no input 'torque'"):
            worlds.call("forward_dynamics", tau=np.zeros(robot.nv), torque=1.0)
        with pytest.raises(TypeError, match="forward_dynamics requires tau"):
            worlds.call("forward_dynamics")
    for x, y in zip(*ends, strict=True):
        assert np.abs(x - y).max() < 1e-9 * max(1.0, np.abs(y).max())
    with pytest.raises(sarrus.SarrusError, match=r"compiler c\+\+"):
        worlds.call("positions:motor", coordinates=[0.0], near=robot.assemble())


@needs_compiler
def test_arrays_are_shared(driver):
    """DLPack and __cuda_array_interface__ refer to the memory itself."""
    worlds = sarrus.cuda.Worlds(sarrus.mechanisms.double_pendulum(), COUNT, scalar="double", device="cuda")
    described = worlds.q.__cuda_array_interface__
    assert described["shape"] == (COUNT, 2) and described["strides"] == (8, 8 * COUNT)
    worlds.q.__class__.__dlpack_device__ = lambda self: (1, 0)  # the fake GPU's memory is the host's
    try:
        shared = np.from_dlpack(worlds.q)
    finally:
        worlds.q.__class__.__dlpack_device__ = lambda self: (2, self.device.index)
    assert shared.shape == (COUNT, 2) and shared.strides == (8, 8 * COUNT)
    worlds.reset(q=[0.5, -0.5])
    assert (shared == [0.5, -0.5]).all()
    worlds.reset(q=worlds.call("pose:" + worlds.robot.bodies[0])["status"].numpy()[:2] * 0.0)
    efforts = sarrus.cuda.Worlds(worlds.robot, COUNT, scalar="double", device="cuda").v  # an array on the device
    worlds.step(efforts)
    assert (host(worlds.status) == 0).all()
    blocks = len(driver.blocks)
    del worlds, efforts
    assert len(driver.blocks) < blocks and driver.blocks  # the shared array keeps its memory
    del shared
    assert not driver.blocks


@needs_compiler
def test_kernels_are_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("SARRUS_CACHE", str(tmp_path / "kernels"))
    robot = sarrus.mechanisms.pendulum()
    sarrus.cuda.Worlds(robot, 4, device="cpu").step()
    files = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "kernels").iterdir()}
    assert len(files) == 2  # reset and step
    monkeypatch.setattr(devices, "shared_library", None)  # nothing is compiled again
    sarrus.cuda.Worlds(robot, 4, device="cpu").step()
    assert files == {file.name: file.stat().st_mtime_ns for file in (tmp_path / "kernels").iterdir()}


def test_worlds_beyond_the_memory_are_refused(driver):
    driver.memory = 10_000
    with pytest.raises(MemoryError, match=r"; 156 worlds fit into the memory of 'cuda'"):
        sarrus.cuda.Worlds(sarrus.mechanisms.double_pendulum(), 1000, scalar="double")


def test_missing_driver_and_packages_are_named(monkeypatch):
    robot = sarrus.mechanisms.pendulum()

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"device='cpu': pip install cuda-bindings nvidia-cuda-nvrtc$"):
        sarrus.cuda.Worlds(robot, 4)

    class NoDriver:
        def cuInit(self, _):
            raise RuntimeError("libcuda.so.1 not found")

    monkeypatch.setattr(devices, "_bindings", lambda name: NoDriver())
    with pytest.raises(sarrus.SarrusError, match=r"no driver of NVIDIA.*device='cpu'"):
        sarrus.cuda.Worlds(robot, 4)


@needs_compiler
def test_wrong_arguments_are_named(driver):
    robot = sarrus.mechanisms.four_bar()
    worlds = sarrus.cuda.Worlds(robot, 5, device="cpu")
    with pytest.raises(sarrus.ShapeError, match=r"efforts must be \(1,\) or \(5, 1\); got shape \(5, 3\)"):
        worlds.step(np.zeros((5, 3)))
    with pytest.raises(TypeError, match="efforts must be an array of real numbers"):
        worlds.step("much")
    with pytest.raises(sarrus.ShapeError, match="mask must be"):
        worlds.reset(np.ones(4, bool))
    with pytest.raises(TypeError, match="mask must be an array of booleans"):
        worlds.reset(np.ones(5))
    with pytest.raises(sarrus.StateError, match="q must be finite"):
        worlds.reset(q=[np.nan, 0.0, 0.0])
    with pytest.raises(TypeError, match="forward_dynamics requires tau"):
        worlds.call("forward_dynamics")
    with pytest.raises(TypeError, match="forward_dynamics has no input 'u'"):
        worlds.call("forward_dynamics", u=[0.0], tau=np.zeros(3))
    with pytest.raises(sarrus.NameNotFoundError, match="forward_dynamic"):
        worlds.call("forward_dynamic")
    with pytest.raises(ValueError, match="device must be"):
        sarrus.cuda.Worlds(robot, 5, device="gpu")
    with pytest.raises(TypeError, match="robot must be a Mechanism or Variants"):
        sarrus.cuda.Worlds("robot", 5, device="cpu")
    single, double = (sarrus.cuda.Worlds(robot, 5, scalar=scalar) for scalar in ("float", "double"))
    with pytest.raises(TypeError, match="q must have type float32; got <f8"):
        single.reset(q=double.q)


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("cuda", "cuda.bindings")[: 1 + bool(importlib.util.find_spec("cuda"))])),
    reason="needs cuda-bindings and nvidia-cuda-nvrtc",
)
@pytest.mark.parametrize(("name", "scalar"), [("four_bar", "double"), ("quadruped", "float")])
def test_nvrtc_compiles_steps(name, scalar, driver, monkeypatch):
    """NVRTC compiles a step for an H100 without a GPU, and without spilling registers."""
    monkeypatch.undo()
    real, sources = sarrus.cuda.cubin, []
    fake = fake_driver.Driver()
    bindings = devices._bindings
    monkeypatch.setattr(devices, "_bindings", lambda name: fake if name == "driver" else bindings(name))
    monkeypatch.setattr(devices, "cached", lambda key, suffix, compile: compile())
    monkeypatch.setattr(
        devices,
        "cubin",
        lambda source, architecture: (sources.append(real(source, architecture)), fake_driver.cubin(source, ""))[1],
    )
    sarrus.cuda.Worlds(getattr(sarrus.mechanisms, name)(), 4, scalar=scalar).step()
    assert len(sources) == 2 and all(content[:4] == b"\x7fELF" for content, _ in sources)
    assert all("0 bytes spill stores, 0 bytes spill loads" in report for _, report in sources)
