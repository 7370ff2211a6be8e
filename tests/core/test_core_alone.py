"""The core without Python: build, install, find by CMake; the programs in examples/cpp print the same results as Python."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.description.joints import PARAMETERS
from sarrus.errors import NotRealizableError
from tests.random_closed import random_closed

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
CMAKE, COMPILER = shutil.which("cmake", path=PATH), shutil.which(os.environ.get("CXX", "c++"), path=PATH)

pytestmark = pytest.mark.skipif(not (CMAKE and COMPILER), reason="CMake and a C++ compiler build it")


@pytest.fixture(scope="module")
def printed(examples):
    """Return the output of examples/cpp/four_bar.cpp, by name."""
    return numbers_of(examples, "four_bar")


def run(folder, name, *arguments):
    (program,) = (p for p in folder.glob(f"**/{name}*") if p.is_file() and os.access(p, os.X_OK))
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def numbers_of(folder, name, *arguments):
    done = run(folder, name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (line.split(":") for line in done.stdout.splitlines())
    return {name: np.array(numbers.split(), dtype=np.float64) for name, numbers in lines}


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Return the folder with the compiled programs of examples/cpp.

    The library is compiled without optimisation (a quarter of the time), with several files in a unit (half of that again).
    """
    folder = tmp_path_factory.mktemp("core")
    debug = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_UNITY_BUILD=ON"]
    eigen = sysconfig.get_path("platlib")

    def cmake(*arguments):
        done = subprocess.run(
            [CMAKE, *map(str, arguments)], env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=False
        )
        if "Eigen 3.4 or newer was not found" in done.stderr:
            pytest.skip("Eigen's headers are not there")
        if "pip could not download DAQP" in done.stderr:
            pytest.skip("DAQP's sources are not there")
        assert done.returncode == 0, done.stdout + done.stderr

    core, daqp = (
        folder / "core",
        next(ROOT.glob("build/*/headers/daqp/*/csrc"), ""),
    )  # as the package's build has fetched it
    cmake(
        "-S",
        ROOT,
        "-B",
        core,
        "-DSARRUS_PYTHON=OFF",
        "-DSARRUS_LEVELS=baseline",
        f"-DCMAKE_PREFIX_PATH={eigen}",
        f"-DSARRUS_DAQP={daqp}",
        *debug,
    )
    cmake("--build", core, "--parallel", "2")
    cmake("--install", core, "--prefix", folder / "installed")
    found = f"-DCMAKE_PREFIX_PATH={folder / 'installed'};{eigen};{eigen}/cmeel.prefix"
    cmake("-S", ROOT / "examples" / "cpp", "-B", folder / "example", found, *debug)
    cmake("--build", folder / "example")
    return folder / "example"


def test_it_says_what_python_says(printed):
    robot = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
    q = robot.assemble([0.5, -1.7, -1.9], fixed={"motor": 0.5})
    v = robot.project_velocity(q, [6.0, -8.0, -4.0])
    tau = np.array([2.0, 0.0, 0.0])
    a = robot.forward_dynamics(q, v, tau)
    run = sarrus.simulate(robot, q, v, 1.0, method="rk4")
    event = sarrus.Event(lambda t, q, v: q[0] - 1.5, "turned", direction=1)
    until = sarrus.simulate(robot, q, v, 1.0, method="rk4", events=event)
    expected = {
        "q": q,
        "constraint_residual": robot.constraint_residual(q),
        "v": v,
        "pose": robot.pose(q, "coupler").ravel(),
        "a": a,
        "inverse_dynamics": robot.inverse_dynamics(q, v, a),
        "actuator_efforts": robot.actuator_efforts(q, v, a),
        "pushed": robot.forward_dynamics(q, v, tau, wrenches={"rocker": [0, 3, 0, 0, 0, 0]}),
        "simulated": np.concatenate([run.q[-1], run.v[-1]]),
        "event": until.events["turned"],
        "state": np.concatenate([until.q[-1], until.v[-1]]),
    }
    assert printed.keys() == expected.keys()
    for name, numbers in expected.items():
        # rounding, of other instructions; a second of motion multiplies it by a thousand at most
        assert_allclose(printed[name], numbers, rtol=0.0, atol=1e-10 if name == "simulated" else 1e-12, err_msg=name)
    assert abs(printed["pushed"] - printed["a"]).max() > 1.0 and abs(printed["simulated"][:3] - q).max() > 1.0


def test_a_control_loop_allocates_nothing(examples):
    """The control loop allocates nothing, and its result is that of the same loop in Python."""
    said = numbers_of(examples, "control_loop")
    assert said["allocations"] == 0
    robot, dt = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0), 1e-3
    q, v = robot.project_configuration([0.5, -1.7, -1.9]), np.zeros(3)
    start = q[0]
    for k in range(1000):
        phase = 3.0 * k * dt
        error, rate = start + 0.3 * (1.0 - np.cos(phase)) - q[0], 0.9 * np.sin(phase) - v[0]
        reference = 2.7 * np.cos(phase) + 100.0 * error + 20.0 * rate
        idle = robot.forward_dynamics(q, v, [0.0, 0.0, 0.0])[0]
        gain = robot.forward_dynamics(q, v, [1.0, 0.0, 0.0])[0] - idle
        v = v + dt * robot.forward_dynamics(q, v, [(reference - idle) / gain, 0.0, 0.0])
        q = robot.project_configuration(robot.integrate(q, dt * v))
        v = robot.project_velocity(q, v)
    assert_allclose(said["q"], q, rtol=0.0, atol=1e-10)
    assert abs(q[0] - start - 0.3 * (1.0 - np.cos(3.0))) < 2e-3


def test_a_mobility_report_has_the_fields_of_python(examples):
    """Names and texts are the same; numbers agree to rounding."""
    (program,) = (p for p in examples.glob("**/mobility*") if p.is_file() and os.access(p, os.X_OK))
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    said = dict(line.split(" = ", 1) if " = " in line else (line[:-2], "") for line in done.stdout.splitlines())

    robot = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
    q = robot.project_configuration([0.5, -1.7, -1.9])
    found = robot.mobility(q, output=("rocker", "ry"))
    expected = vars(found.actuation) | {
        name: x for name, x in vars(found).items() if name not in ("actuation", "report")
    }
    expected["internal_efforts"] = robot.internal_efforts(q, actuated=["motor", "pivot"])
    with pytest.raises(sarrus.AssemblyError) as refused:
        robot.mobility([0.1, 0.2, 0.3])
    expected["refused"] = str(refused.value)

    def parts(x):
        """Split a line into words and numbers."""
        if isinstance(x, str | tuple):
            return [x] if isinstance(x, str) else list(x), []
        if isinstance(x, dict):
            return list(x), np.concatenate([np.ravel(y).astype(float) for y in x.values()] or [[]])
        return ["none"] * (x is None), np.ravel([] if x is None else x).astype(float)

    assert said.keys() == expected.keys()
    assert min(float(said.pop("gap")), expected.pop("gap")) > 1e10  # the last singular value is rounding
    for name, x in expected.items():
        words, numbers = parts(x)
        line = said[name]
        for word in words:
            assert word in line, name
            line = line.replace(f"'{word}'", "", 1).replace(word, "", 1)
        assert_allclose(np.array(line.split(), float), numbers, rtol=1e-12, atol=1e-12, err_msg=name)
    assert found.redundant == 3
    assert found.actuation.verdict == "exact"


def test_joint_wrenches_are_those_of_python(examples):
    """For one state and for two, with other motors, and the same components are indeterminate."""
    done = run(examples, "joint_wrenches")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = dict(line.split(":") for line in done.stdout.splitlines())
    robot = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
    q = robot.project_configuration([0.5, -1.7, -1.9])
    v = robot.project_velocity(q, [6.0, -8.0, -4.0])
    a = robot.forward_dynamics(q, v, [2.0, 0.0, 0.0])
    push = {"rocker": [0, 3, 0, 0, 0, 0]}
    one = robot.joint_wrenches(q, v, a, wrenches=push)
    two = robot.joint_wrenches([q, q], [v, 0 * v], [a, 0 * a], wrenches=push, actuated=["pivot", "motor"])
    expected = [
        (f"{kind}{plural} {name}", x)
        for plural, loads in (("", one), ("s", two))
        for kind, named in (("wrench" + "e" * bool(plural), loads), ("effort", loads.efforts))
        for name, x in named.items()
    ]
    assert [name for name in printed if not name.startswith("indeterminate")] == [name for name, _ in expected]
    largest = max(abs(x).max() for _, x in expected)
    for name, x in expected:
        numbers = np.array(printed.pop(name).split(), float)
        assert_allclose(numbers, np.ravel(x), rtol=0.0, atol=1e-12 * largest, err_msg=name)
    components = {
        f"indeterminate {name}": " ".join(c[0] + c[-1] for c in some) for name, some in one.indeterminate.items()
    }
    assert components and {name: line.strip() for name, line in printed.items()} == components


def test_a_file_that_python_wrote(examples, tmp_path):
    robot = sarrus.mechanisms.delta()
    robot.save(tmp_path / "delta.json")
    printed = numbers_of(examples, "load", tmp_path / "delta.json")
    home = np.concatenate([x for _, x in robot.description.home])
    joints = {name: robot.joint(name) for name in (*robot.joints, *robot.loop_joints)}
    for name, joint in joints.items():
        assert printed.pop(name).tolist() == [
            joint.q_slice.start,
            joint.nq,
            joint.v_slice.start,
            joint.nv,
            joint.closes_loop,
        ]
    assert printed.keys() == {"home", "q", "gravity_forces"} and len(home) == robot.nq
    assert_allclose(printed["home"], home, rtol=1e-14, atol=0.0)  # it prints fifteen digits
    q = robot.project_configuration(printed["home"])
    assert_allclose(printed["q"], q, rtol=0.0, atol=1e-12)
    assert_allclose(printed["gravity_forces"], robot.gravity_forces(q), rtol=0.0, atol=1e-10)
    (tmp_path / "delta.json").write_text((tmp_path / "delta.json").read_text().replace('"platform"', '"platfrom"', 1))
    assert "did you mean 'platf" in run(examples, "load", tmp_path / "delta.json").stderr


def test_efforts_along_a_path(examples, tmp_path):
    robot = sarrus.mechanisms.delta()
    robot.save(tmp_path / "delta.json")
    printed = numbers_of(examples, "delta", tmp_path / "delta.json")
    t = np.arange(50) / 50
    angle, rate, zero = 2.0 * np.pi * t, 2.0 * np.pi, np.zeros(50)
    circle = 0.1 * np.stack([np.cos(angle), np.sin(angle), zero], axis=1)
    velocity = 0.1 * rate * np.stack([-np.sin(angle), np.cos(angle), zero], axis=1)
    q = robot.follow(frames={"platform": circle - (0.0, 0.0, 0.55)}, time=t)
    options = {"expressed_in": "world_aligned"}
    v = robot.complete_velocity(q, {}, frames={"platform": velocity}, **options)
    a = robot.complete_acceleration(q, v, {}, frames={"platform": -(rate**2) * circle}, **options)
    efforts = robot.actuator_efforts(q, v, a)
    assert_allclose([printed[str(k)] for k in range(50)], efforts, rtol=0.0, atol=1e-9)
    assert printed["largest"] == pytest.approx(abs(efforts).max(), rel=1e-12)


# ---- positions -------------------------------------------------------------------------------------------------------

POSITIONS = [
    *("four_bar", "slider_crank", "delta", "stewart", "gripper", "cable_platform", "three_finger_hand", "tsai_3upu"),
    *range(6),  # seeds of random mechanisms
]


def built(examples, name):
    """Return a program of tests/cpp, built with the installed library."""
    program, installed = examples / name, examples.parent / "installed"
    eigen = next(
        ROOT.glob("build/*/headers/Eigen"), Path(sysconfig.get_path("platlib")) / "cmeel.prefix/include/eigen3"
    )
    flags = ["-std=c++17", "-DEIGEN_DONT_VECTORIZE", "-I", installed / "include" / "sarrus", "-isystem", eigen]
    files = [ROOT / "tests" / "cpp" / f"{name}.cpp", installed / "lib" / "libsarrus.a", "-pthread", "-o", program]
    done = subprocess.run([COMPILER, *map(str, flags + files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def positions(examples):
    """The program that answers requests for positions."""
    return built(examples, "positions")


class Requests:
    """Requests of a mechanism: lines for the program, and what Python returns."""

    def __init__(self, robot):
        self.robot, self.lines, self.expected = robot, [], []

    def add(self, question, words, function, *arguments, **options):
        """Add a request, `words` by key and name, and return what the function returns."""
        parts = [question]
        for key, named in words.items():
            for name, x in named.items():
                numbers = np.ravel(x)
                parts += [key, name, str(numbers.size), *map(repr, numbers.tolist())]
        self.lines.append(" ".join(parts))
        try:
            self.expected.append(np.ravel(function(*arguments, **options)))
        except (sarrus.AssemblyError, sarrus.ModelError, sarrus.StateError, NotRealizableError) as error:
            self.expected.append(error)
        return self.expected[-1]

    def check(self, program, file):
        self.robot.save(file)
        text = "\n".join(self.lines) + "\n"
        done = subprocess.run([program, file], input=text, capture_output=True, text=True, check=True)
        for line, expected, answer in zip(self.lines, self.expected, done.stdout.splitlines(), strict=True):
            if isinstance(expected, Exception):
                assert answer.startswith(" error: "), line
                words = answer.removeprefix(" error: ").split()
                assert words[:7] == str(expected).split()[:7] or isinstance(expected, sarrus.StateError), line
            else:
                numbers = np.array(answer.split("|")[0].split(), float)
                assert_allclose(numbers, expected, rtol=0.0, atol=1e-9, err_msg=line)


def plain(by_joint):
    """Numbers of joints with one coordinate, or paths of these, as Python takes them."""
    return {name: float(x[0]) if x.shape == (1,) else x[:, 0] for name, x in by_joint.items()}


@pytest.mark.filterwarnings("ignore::sarrus.BranchWarning")
@pytest.mark.parametrize("name", POSITIONS)
def test_positions(positions, name, tmp_path):
    """Near and far from the home, on a branch and on any, of tree joints and loop joints, frames, paths and velocities."""
    robot = getattr(sarrus.mechanisms, name)() if isinstance(name, str) else random_closed(name).robot
    rng, requests, home = np.random.default_rng(0), Requests(robot), robot.assemble()
    requests.add("assemble", {}, robot.assemble)
    current, near = robot.joint_states(home).q, {"near": {"q": home}}
    given = [j for j in robot.actuated or robot.joints if robot.joint(j).type.nq == 1 == robot.joint(j).type.nv]
    given = given[
        : max(robot.nv - robot.nc, 1)
    ]  # no more than determine the motion: other coordinates never close the loops
    for size in (0.1, 1.0) if given else ():
        fixed = {j: current[j] + size * rng.uniform(-1.0, 1.0, 1) for j in given}
        goal, words = plain(fixed), {"fixed": fixed}
        q = requests.add("assemble", words, robot.assemble, fixed=goal)
        requests.add("assemble", words | near, robot.assemble, home, fixed=goal)
        requests.add("assemble", {"guess": fixed}, robot.assemble, near=goal)
        for branch in ("any", "only"):
            requests.add("assemble", words | {"branch": {branch: ()}}, robot.assemble, fixed=goal, branch=branch)
        path = {j: np.linspace(current[j], x, 7) for j, x in fixed.items()}
        requests.add("follow", {"fixed": path} | near, robot.follow, plain(path), home)
        if not isinstance(q, Exception):
            rates = {j: rng.normal(size=1) for j in given}
            words = {"near": {"q": q}, "fixed": rates}
            v = requests.add("velocity", words, robot.complete_velocity, q, plain(rates))
            if not isinstance(v, Exception):
                requests.add("acceleration", words | {"v": {"v": v}}, robot.complete_acceleration, q, v, plain(rates))
    for j in [j for j in robot.loop_joints if robot.joint(j).type.nv == 1][:2]:
        x = current[j] + 0.05
        requests.add("assemble", {"fixed": {j: x}}, robot.assemble, fixed=plain({j: x}))
    body = robot.bodies[-1]
    point = robot.pose(home, body)[:3, 3] + 0.01 * rng.normal(size=3)
    requests.add("assemble", {"frame": {body: point}} | near, robot.inverse_kinematics, {body: point}, near=home)
    nan, free = np.nan, {body: np.where([True, False, False], np.nan, point)}
    requests.add("assemble", {"frame": free} | near, robot.inverse_kinematics, free, near=home)
    rate, axes = {body: np.array([nan, 0.1, nan])}, {"axes": {"world_aligned": ()}}
    options = {"frames": rate, "expressed_in": "world_aligned"}
    v = requests.add("velocity", {"frame": rate} | near | axes, robot.complete_velocity, home, **options)
    if not isinstance(v, Exception):
        words = {"frame": rate, "v": {"v": v}} | near | axes
        requests.add("acceleration", words, robot.complete_acceleration, home, v, **options)
    several = np.tile(home, (6, 1))
    words = {"near": {"q": several}, "starts": {"n": 60}}
    points = point + 0.01 * rng.normal(size=(6, 3))
    targets = {"frame": {body: points}}
    requests.add("many", words | targets, robot.inverse_kinematics, targets["frame"], near=several, starts=60)
    if given:
        inputs = {j: current[j] + 0.1 * rng.uniform(-1.0, 1.0, (6, 1)) for j in given}
        requests.add("many", words | {"fixed": inputs}, robot.assemble, several, fixed=plain(inputs), starts=60)
    if name in ("four_bar", "delta"):
        requests.add("modes", {"fixed": fixed}, robot.assembly_modes, fixed=goal)
    requests.check(positions, tmp_path / "robot.json")
    assert sum(not isinstance(x, Exception) for x in requests.expected) > 3


def test_positions_of_prescribed_motions(positions, tmp_path):
    b = sarrus.Builder("driven four-bar")
    for bar, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        b.add_body(bar, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    pin = sarrus.Revolute("y")
    b.add_joint("motor", pin, "ground", "crank")
    b.add_joint("pin1", pin, "crank", "coupler", at_parent=(0.4, 0, 0))
    b.add_joint("pivot", pin, "ground", "rocker", at_parent=(1.0, 0, 0))
    b.add_joint("pin2", pin, "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0))
    b.add_prescribed_motion("drive", "motor", sarrus.laws.polynomial(0.5, 2.0))
    robot = b.build()
    requests = Requests(robot)
    for time in (0.0, 0.7, 30.0):
        words = {"time": {"t": time}}
        q = requests.add("assemble", words, robot.assemble, time=time)
        requests.add("velocity", words | {"near": {"q": q}}, robot.complete_velocity, q, {}, time=time)
    assert requests.expected[4][0] == pytest.approx(60.5, rel=1e-12)
    requests.check(positions, tmp_path / "robot.json")


@pytest.mark.parametrize("name", ["four_bar", "stewart", "stanford_arm"])
def test_paths_through_waypoints(positions, name, tmp_path):
    """With loops, with ball joints, and without loops; and times that do not increase."""
    robot, rng = getattr(sarrus.mechanisms, name)(), np.random.default_rng(1)
    home = robot.assemble()
    steps = robot.integrate(home, 0.1 * rng.standard_normal((3, robot.nv)))
    q = np.array([home, *(robot.project_configuration(steps) if robot.nc else steps)])
    t, requests = np.array([0.0, 0.4, 0.6, 1.0]), Requests(robot)

    def motions(times):
        path = sarrus.control.path_through(robot, times, q)
        return np.concatenate(path.at(times[:-1] + 0.3 * np.diff(times)), axis=-1)

    for times in (t, t[[0, 2, 1, 3]]):
        requests.add("waypoints", {"near": {"q": q}, "time": {"t": times}}, motions, times)
    requests.check(positions, tmp_path / "robot.json")


def test_states_without_an_answer_are_explained_as_in_python(positions, tmp_path):
    """Open loops, velocities that they forbid, a motion without inertia, loops that a projection does not close, and missing motors."""
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble()
    v = robot.project_velocity(q, [1.0, 0.0, 0.0])
    none = {name: sarrus.Inertia.zero() for name in robot.bodies if name != "ground"}
    massless = robot.replace(inertias=none)
    without_motor = robot.to_builder()
    without_motor.set_joint("motor", actuated=False)
    cases = [
        (robot, "dynamics", {"q": q + 0.1, "v": v}),
        (robot, "dynamics", {"q": q, "v": v + np.array([0.0, 0.1, 0.0])}),
        (massless, "dynamics", {"q": q, "v": v}),
        (robot.replace(placements={"pivot.parent": (5.0, 0.0, 0.0)}), "project", {"q": q}),
        (without_motor.build(), "efforts", {"q": q, "v": v}),
    ]
    functions = {
        "dynamics": lambda m, q, v: m.forward_dynamics(q, v, np.zeros(3)),
        "project": lambda m, q: m.project_configuration(q),
    }
    functions["efforts"] = lambda m, q, v: m.actuator_efforts(q, v, np.zeros(3))
    for model, question, state in cases:
        with pytest.raises((sarrus.StateError, NotRealizableError)) as refused:
            functions[question](model, **state)
        model.save(tmp_path / "robot.json")
        numbers = {name: " ".join(map(repr, x.tolist())) for name, x in state.items()}
        words = [f"{'near' if name == 'q' else name} {name} 3 {text}" for name, text in numbers.items()]
        request = " ".join([question, *words]) + "\n"
        file = tmp_path / "robot.json"
        done = subprocess.run([positions, file], input=request, capture_output=True, text=True, check=True)
        assert done.stdout.strip().removeprefix("error: ") == str(refused.value)


@pytest.mark.parametrize("name", ["four_bar", "three_rrr", "gripper"])
def test_looser_joints_are_those_of_python(positions, name, tmp_path):
    robot = getattr(sarrus.mechanisms, name)()
    requests = Requests(robot)

    def loosened():
        loose = sarrus.without_redundant_constraints(robot)
        parts = [[loose.nc]]
        for spec in loose.description.joints:
            free = [PARAMETERS.index(p) for p in getattr(spec.joint, "free", ())]
            parts += [spec.at_child.translation, [sum(1 << k for k in free)]]
        return np.concatenate(parts)

    requests.add("loosened", {}, loosened)
    requests.check(positions, tmp_path / "robot.json")
    assert requests.expected[0][0] < robot.nc


def test_random_configurations(positions, tmp_path):
    """Closed ones close the loops, all differ, and all are within the limits."""
    robot = sarrus.mechanisms.delta()
    robot.save(tmp_path / "robot.json")
    file = tmp_path / "robot.json"
    done = subprocess.run([positions, file], input="random\n", capture_output=True, text=True, check=True)
    q = np.array(done.stdout.split(), float).reshape(8, robot.nq)
    residuals = np.abs(robot.constraint_residual(q)).max(axis=-1)
    assert residuals[:4].max() < 1e-12
    assert residuals[4:].min() > 1e-3
    assert len(np.unique(q.round(6), axis=0)) == 8
    for name in robot.joints:
        low, high = robot.joint(name).type.limits or (-np.inf, np.inf)
        x = q[:, robot.joint(name).q_slice]
        assert ((low - 1e-5 <= x) & (x <= high + 1e-5)).all()


def test_motions_of_a_floating_base(positions, tmp_path):
    b = sarrus.Builder("arm on a satellite", gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia.box(20.0, (1, 1, 1)))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    before = "satellite"
    for name, axis in zip("abc", "zyz", strict=True):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), radius=0.05))
        b.add_joint(name + " joint", sarrus.Revolute(axis), before, name, at_parent=(0.5, 0, 0))
        before = name
    b.add_frame("hand", "c", (0.5, 0, 0))
    robot = b.build()
    q = np.array([0.1, 0, 0, np.sqrt(0.99), 0, 0, 0, 0.5, -1.2, 0.8])
    place = robot.pose(q, "hand")[:3, 3]
    requests, speed = Requests(robot), np.array([0.1, -0.2, 0.05])
    words = {"near": {"q": q}}
    move = {("hand", "tx ty tz"): speed}
    requests.add("rate", words | {"frame": {"hand": speed}}, sarrus.floating.resolved_rate, robot, q, move)
    for shift in ([-0.05, 0.05, 0.02], [9.0, 0.0, 0.0]):
        ways = {"hand": place + np.array([[-0.02, 0.0, 0.0], shift])}

        def path(ways=ways):
            run = sarrus.floating.path(robot, q, ways, [0.5, 1.0], step=0.05, tolerance=1e-4)
            return np.concatenate([run.q.ravel(), run.base_rotation.ravel()])

        requests.add("path", words | {"frame": ways, "time": {"t": [0.5, 1.0]}}, path)
    requests.check(positions, tmp_path / "robot.json")
    assert [isinstance(x, Exception) for x in requests.expected] == [False, False, True]


@pytest.mark.parametrize(
    ("question", "option", "value"),
    [
        ("assemble", "starts", -1),
        ("assemble", "tolerance", 1e-14),
        ("assemble", "tolerance", np.nan),
        ("follow", "tolerance", np.inf),
        ("follow", "min_step", 0.0),
        ("follow", "min_step", -1e-7),
        ("follow", "min_step", np.nan),
        ("follow", "min_step", 2.0),
        ("follow", "max_step", 1e-9),
        ("follow", "max_step", np.inf),
        ("follow", "max_step", np.nan),
    ],
)
def test_options_of_positions(positions, question, option, value, tmp_path):
    """Options with which a search has no start, or a path no end, are errors in both languages."""
    robot = sarrus.mechanisms.four_bar()
    robot.save(tmp_path / "robot.json")
    request = (
        f"{question} fixed motor 2 0.1 0.2 {option} x 1 {value}\n"
        if question == "follow"
        else f"assemble {option} x 1 {value}\n"
    )
    done = subprocess.run(
        [positions, tmp_path / "robot.json"], input=request, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith(f" error: {option} must be")
    arguments = {"joints": {"motor": [0.1, 0.2]}} if question == "follow" else {}
    with pytest.raises(ValueError, match=f"^{option} must be"):
        getattr(robot, question)(**arguments, **{option: value})


def test_path_timing(examples):
    built(examples, "path_timing")
    x = numbers_of(examples, "path_timing")["x"]
    one = np.ones((201, 1))
    timing = sarrus._core.fastest_timing(
        np.full(100, 0.01), 0.25 * one, 0.0 * one, 0.0 * one, 0.1 * one, vectors=0, free_start=False, free_end=False
    )
    assert_allclose(x, timing["x"], rtol=1e-12)


# ---- force elements --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sarrus.StiffnessWarning")
@pytest.mark.filterwarnings("ignore:the Bushing of 'rocker' on 'crank' turns:sarrus.ModelWarning")
def test_force_elements_and_tasks_by_names(examples, tmp_path):
    """Runs, parameters and messages are those of Python."""
    control = sarrus.control
    robot = sarrus.mechanisms.four_bar()
    delta = sarrus.mechanisms.delta()
    files = [tmp_path / "robot.json", tmp_path / "delta.json"]
    robot.save(files[0]), delta.save(files[1])
    done = subprocess.run([built(examples, "elements"), *files], capture_output=True, text=True, check=True, timeout=60)
    lines = [line.split(": ", 1) for line in done.stdout.splitlines()]
    texts = {name: [text for each, text in lines if each == name] for name in ("error", "task", "wrong task")}
    errors = texts["error"]
    printed = {name: np.array(text.split(), float) for name, text in lines if name not in texts}

    target = sarrus.laws.harmonic(0.3, 3.0, offset=0.5)
    pid = control.PID("motor", 40.0, 10.0, 3.0, target, (-15.0, 15.0))
    elements = {
        "controlled": [control.FeedforwardEffort("pin1", 0.2), pid],
        "stopped": [control.EndStop("motor", (-0.2, 0.3)), control.FeedforwardEffort("motor", 5.0)],
        "computed": control.ComputedTorque({"motor": 1.0}),
        "loaded": control.AppliedWrench("rocker", [0.0, target, 0.0, 1.0, 0.0, -2.0]),
        "rubbing": control.LuGreFriction("motor", 0.5),
        "mounted": [
            control.Bushing("rocker", "crank", [0, 0.1, 0, 5, 0, 6], 0.1, [0, 0, 0, 1, 0, 0]),
            control.PinClearance("rocker", "ground", 0.9, 0.1, 30.0, axis="y"),
            control.GasSpring("rocker", "crank", 2.0, 1.9, 2.0, damping=0.5),
        ],
    }
    methods = {"rubbing": "rosenbrock", "mounted": "contact"}
    q, v = robot.assemble(), np.zeros(robot.nv)
    for name, acting in elements.items():
        run = sarrus.simulate(robot, q, v, 1.0, acting, method=methods.get(name, "rk4"), limits="ignore", dt=1e-3)
        expected = np.concatenate([run.q[-1], run.v[-1]])
        # rounding of other instructions; a stop multiplies it
        assert_allclose(printed[name], expected, rtol=0.0, atol=1e-7, err_msg=name)
    assert abs(printed["controlled"] - printed["computed"]).max() > 0.1

    home = np.concatenate([x for _, x in delta.description.home])
    reach = control.FrameTask("platform", [0.1, 0.0, -0.6], stiffness=400.0)
    law = control.TaskControl(delta, [reach, control.PostureTask(home, priority=1)], control.Limits(effort=60.0))
    run = sarrus.simulate(delta, delta.assemble(), np.zeros(delta.nv), 1.0, law, method="rk4", limits="ignore", dt=1e-3)
    assert_allclose(printed["tasks"], np.concatenate([run.q[-1], run.v[-1]]), rtol=0.0, atol=1e-7)
    assert texts["task"] == ["FrameTask('platform')", "PostureTask"]
    wrong_tasks = [
        (control.FrameTask("platfrm", [0.0, 0.0, 0.0]), sarrus.NameNotFoundError),
        (control.FrameTask("platform", [0.0, 0.0]), sarrus.ShapeError),
        (control.JointTask("platform", 0.0), sarrus.NameNotFoundError),
    ]
    for (task, error), message in zip(wrong_tasks, texts["wrong task"], strict=True):
        with pytest.raises(error) as refused:
            control.TaskControl(delta, task)
        assert message == str(refused.value)
    assert printed["parameters"].reshape(3, -1)[:, 0].tolist() == [1.0, 2.0, 3.0]

    wrong = [
        (control.PID("moter"), sarrus.NameNotFoundError),
        (control.PID("motor", limits=(1.0, -1.0)), sarrus.ModelError),
        (control.ComputedTorque({}), sarrus.ModelError),
        (control.EndStop("motor"), sarrus.ModelError),
        (control.LuGreFriction("motor", 1.0, 0.5), sarrus.ModelError),
        (control.Thruster("rockr", 1.0), sarrus.NameNotFoundError),
        (control.AppliedWrench("rocker", [1.0, 2.0, 3.0]), sarrus.ModelError),
        (control.Bushing("rocker", "rocker", 1.0), sarrus.ModelError),
        (control.Bushing("rocker", "crank", [1.0, 2.0]), sarrus.ShapeError),
    ]
    for element, error in wrong:
        with pytest.raises(error) as refused:
            sarrus.simulate(robot, q, v, 1.0, element)
        assert errors.pop(0).replace("[1.0, -1.0]", "(1.0, -1.0)") == str(refused.value)
    assert errors == [
        "PID has no argument 'propotional'; did you mean 'proportional'?",
        "PID needs the argument 'joint'",
        "no force element is named 'Pid'",
    ]
