"""The command `sarrus`: output, errors and exit codes."""

import contextlib
import csv
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import sarrus
from sarrus import errors
from sarrus.analysis.linear_algebra import ScaledLoops
from sarrus.cli import commands, demo, main
from sarrus.figures.skeleton import Skeleton

BALL = '<inertial><mass value="{}"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
ROBOT = f"""<robot name="dumbbell">
  <link name="left">{BALL.format(3)}</link>
  <link name="right">{BALL.format(1)}</link>
  <joint name="handle" type="revolute">
    <parent link="left"/><child link="right"/><origin xyz="2 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="1" velocity="1"/>
  </joint>
</robot>"""
UNKNOWN_TAG = ROBOT.replace("</robot>", "<colour/></robot>")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the working directory and return its name."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="robot.urdf"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def run(*argv, stdout=subprocess.PIPE, **environment):
    """Run the command as a separate process."""
    command = [sys.executable, "-m", "sarrus", *argv]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=os.environ | environment)


# --- info ---------------------------------------------------------------------------------------------------------


def test_info(write, capsys):
    name = write(ROBOT)
    assert main(["info", name]) == 0
    out, err = capsys.readouterr()
    facts = dict(line.strip().split(maxsplit=1) for line in out.split("\n\n")[0].splitlines()[1:])
    assert out.startswith("dumbbell\n") and not err
    assert facts["degrees"] == "of freedom  1"
    assert facts["bodies"] == "2"
    assert facts["joints"] == "2, 1 of them movable"
    assert facts["mass"] == "4 kg"
    assert facts["centre"] == "of mass      x 0.5, y 0, z 0 m, in the world at the neutral configuration"
    # 0.1 each about themselves; the reduced mass of 3/4 kg, 2 m apart, across the handle
    assert facts["inertia"] == "about it    xx 0.2, yy 3.2, zz 3.2, xy 0, xz 0, yz 0 kg m²"
    tree = out.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in tree] == ["mass", "3", "1"]
    assert [line[13:] for line in tree] == str(sarrus.load(name)).splitlines()[1:]
    assert "warnings" not in out


def test_info_floating_base(write, capsys):
    assert main(["info", write(ROBOT), "--floating-base"]) == 0
    out = capsys.readouterr().out
    assert "degrees of freedom  7 (nq = 8, nv = 7)" in out
    assert "joints              2, 2 of them movable" in out
    assert "Free()" in out


def test_info_lists_warnings(write, capsys):
    robot = sarrus.load(write(UNKNOWN_TAG))
    assert robot.warnings
    assert main(["info", "robot.urdf"]) == 0
    assert capsys.readouterr().out.endswith("\nwarnings\n" + "".join(f"  {line}\n" for line in robot.warnings))


def test_info_without_mass(write, capsys):
    assert main(["info", write('<robot name="ghost"><link name="sheet"/></robot>')]) == 0
    out = capsys.readouterr().out
    assert "mass                0 kg" in out and "centre" not in out


def test_info_of_loops(capsys):
    assert main(["info", "four_bar"]) == 0
    out = capsys.readouterr().out
    robot = sarrus.mechanisms.four_bar()
    assert out.startswith("four-bar\n")
    assert "degrees of freedom  1 (nq = 3, nv = 3; Kutzbach -2)" in out
    assert "joints              4, 4 of them movable" in out
    assert "loops               1 constraint of nc = 5 rows, 3 of them redundant" in out
    assert "             loop  pin2: " in out, "what closes a loop carries no body's mass"
    assert f"{robot.mobility(robot.assemble())}\n" in out
    assert out.endswith("\n  Grashof             crank-rocker: 0.4 + 1.1 < 0.9 + 1 m; crank turns fully\n")
    # where it stands, not where all coordinates are zero: the rods' centres of mass
    q = robot.assemble()
    x, y, z = (round(x, 12) + 0.0 for x in robot.center_of_mass(q))
    assert f"centre of mass      x {x:.4g}, y {y:.4g}, z {z:.4g} m, in the world at home" in out


def test_info_of_a_tree_of_the_gallery(capsys):
    assert main(["info", "pendulum"]) == 0
    out = capsys.readouterr().out
    assert "degrees of freedom  1\n" in out and "loops" not in out and "Mobility" not in out


def test_info_of_loops_that_cannot_close(tmp_path, capsys, monkeypatch):
    """All properties that need no configuration, and the reason why there is none."""
    b = sarrus.Builder("too short")
    b.add_body("a", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    b.add_body("b", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    b.add_joint("left", sarrus.Revolute("y"), "ground", "a")
    b.add_joint("middle", sarrus.Revolute("y"), "a", "b", at_parent=(1, 0, 0))
    b.add_joint(
        "right",
        sarrus.Revolute("y"),
        "ground",
        "b",
        at_parent=(9, 0, 0),
        at_child=(1, 0, 0),
    )
    monkeypatch.chdir(tmp_path)
    b.build().save("short.json")
    assert main(["info", "short.json"]) == 0
    out = capsys.readouterr().out
    assert "degrees of freedom  unknown (nq = 2, nv = 2)" in out and "mass                2 kg" in out
    assert "no configuration was found that closes all loops" in out


# --- demo ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_calls(monkeypatch):
    monkeypatch.setattr(demo, "CALLS", 200)
    monkeypatch.setattr(demo, "BATCH", 100)


def test_demo(write, few_calls, capsys, tmp_path):
    assert main(["demo", "-o", str(tmp_path / "tap.png")]) == 0
    out, err = capsys.readouterr()
    assert demo.table(sarrus.mechanisms.stanford_arm()) in out
    for way in ("one state a call, out=", "100 states a call, threads=1", "100 states a call, threads=2"):
        assert way in out
    drawn = find_spec("matplotlib") is not None
    assert (tmp_path / "tap.png").exists() == ("tap.png" in out) == (not err) == drawn


def test_demo_without_matplotlib(write, few_calls, capsys, monkeypatch, tmp_path):
    """The plain install: everything except the figure, with a hint how to install matplotlib."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "pip install matplotlib" in err
    assert "-19.191" in out and "ns each" in out
    assert not list(tmp_path.iterdir())


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(commands, "DURATION", 0.02)
    monkeypatch.setattr(commands, "DURATIONS", {})


def table(out):
    """Return rows of numbers of a demonstration."""
    lines = out[out.index("t [s]") :].split("\n\n")[0].splitlines()[1:]
    return np.array([[float(x) for x in line.split()] for line in lines])


@pytest.mark.parametrize("name", sarrus.mechanisms.__all__)
def test_demo_of_the_gallery(name, short, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "_draw", lambda run, what, path: drawn.append((run, what, path)))
    drawn = []
    assert main(["demo", name]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{name}: ") and not err and f"Joint coordinates: {name}.png" in out
    run, what, path = drawn[0]
    assert str(path) == f"{name}.png"
    curves = sum(run.mechanism.joint(joint).nq for joint in (run.mechanism.joints if what == "q" else what))
    assert 1 <= curves <= 9, "a figure that can be read"
    assert np.abs(run.q[-1] - run.q[0]).max() > 1e-6, "it moves"
    t, drift, opened = table(out).T
    assert t.tolist() == [0.0, 0.005, 0.01, 0.015, 0.02]
    # in 200 steps: rounding, of a few J at most, and in the overconstrained ones what stages beside the loops cost
    assert "energy lost" in out or name in commands.DRIVEN or drift.max() < 1e-8
    assert opened.max() < 1e-12


@pytest.mark.parametrize("name", sarrus.mechanisms.__all__)
def test_demos_stay_in_the_picture(name, capsys, monkeypatch, tmp_path):
    """Nothing leaves the picture: the swept area is at most three times as large as the mechanism, except for a bicycle."""
    monkeypatch.chdir(tmp_path)
    # arms that fall with a load between them pass next to singular positions, where steps of 1 ms end by how rounding goes
    monkeypatch.setattr(commands, "STEP", 5e-4 if name == "two_arms" else 1e-3)
    monkeypatch.setattr(commands, "STRIDE", 20)
    monkeypatch.setattr(commands, "_draw", lambda run, what, path: shown.append(run))
    shown = []
    assert main(["demo", name]) == 0
    (run,) = shown
    skeleton = Skeleton(run.mechanism)
    low, high = skeleton.bounds(run.q)
    assert (high - low).max() < (8.0 if name == "whipple_bicycle" else 3.0) * skeleton.size
    assert ("motors that swing it about its home" in capsys.readouterr().out) == (name in commands.DRIVEN)


def test_demo_pushes_what_would_rest(short, capsys, tmp_path):
    for name, how in (("pendulum", "pushed"), ("three_rrr", "pushed"), ("four_bar", "from rest")):
        assert main(["demo", name, "-o", str(tmp_path / "x.svg")]) == 0
        assert f"s of free motion, {how}, rk4" in capsys.readouterr().out


def test_demo_says_lost_where_there_is_friction(short, capsys, tmp_path):
    assert main(["demo", "four_link_chain", "-o", str(tmp_path / "x.png")]) == 0
    out = capsys.readouterr().out
    assert "energy lost [J]" in out and table(out)[-1, 1] > 1e-6


def test_demo_draws(short, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    for name in ("a.png", "b.svg", "c.pdf"):
        assert main(["demo", "hslm", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 5000
    assert pyplot.get_fignums() == before, "figures are closed again"


def test_demo_of_the_gallery_without_matplotlib(short, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "four_bar"]) == 0
    out, err = capsys.readouterr()
    assert err.count("pip install matplotlib") == 1 and len(table(out)) == 5
    assert not list(tmp_path.iterdir())


def test_demo_list(capsys):
    assert main(["demo", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["valve", *sarrus.mechanisms.__all__]
    assert f"{'pendulum':<22}Point mass at the end of a massless rod." in lines


def test_demo_without_docstrings(short, capsys, monkeypatch, tmp_path):
    """Docstrings are missing under python -OO."""
    done = run("demo", "--list", PYTHONOPTIMIZE="2")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines()[1:] == sarrus.mechanisms.__all__
    monkeypatch.setattr(sarrus.mechanisms.pendulum, "__doc__", None)
    assert main(["demo", "pendulum", "-o", str(tmp_path / "x.png")]) == 0
    assert capsys.readouterr().out.startswith("pendulum\n")


# --- check, convert -----------------------------------------------------------------------------------------------


def test_nothing_suspicious(capsys):
    assert main(["check", "double_pendulum"]) == 0
    assert capsys.readouterr().out == "double pendulum: no findings\n"


SUSPICIOUS = {
    "unknown tag": (UNKNOWN_TAG, "robot.urdf:8: <colour> in <robot> is not read"),
    "next to no mass": (ROBOT.replace('value="1"', 'value="1e-9"'), "tiny mass (least 1e-09 kg, largest body 3 kg)"),
    "no mass": (ROBOT.replace('value="1"', 'value="0"').replace('value="3"', 'value="0"'), "no body has mass"),
    "grams and millimetres": (
        ROBOT.replace('izz="0.1"', 'izz="1e6"').replace('iyy="0.1"', 'iyy="1e6"'),
        "is the inertia in kg m²? left, right",
    ),
    "millimetres": (ROBOT.replace("<mass", '<origin xyz="900 0 0"/><mass'), "is it in m? left, right"),
    "outside of limits": (ROBOT.replace('lower="-1"', 'lower="1"'), "joint 'handle' starts outside its limits"),
}


@pytest.mark.parametrize(("text", "said"), SUSPICIOUS.values(), ids=SUSPICIOUS)
def test_suspicious(write, capsys, text, said):
    assert main(["check", write(text)]) == 1
    out = capsys.readouterr().out
    assert said in out and out.startswith("dumbbell: ")


def four_bar(tilt, length=0.9):
    b = sarrus.mechanisms.four_bar().to_builder()
    b.set_joint("pivot", at_parent=sarrus.Transform.from_rpy(tilt, 0, 0, (1, 0, 0)))
    b.set_joint("pin2", at_child=(length, 0, 0))
    return b.build()


@pytest.mark.parametrize(
    ("robot", "said"),
    [
        (
            sarrus.mechanisms.bennett(),
            ["Bennett linkage: 1 finding", "3 of 5 rows are redundant", "joint3: z"],
        ),
        (four_bar(0.0, 9.0), ["open loops: no configuration was found that closes all loops"]),
        (
            four_bar(1e-7),
            [
                "rows are inconsistent within rounding",
                "and 1 within 0.003",
                "sarrus.without_redundant_constraints(robot)",
            ],
        ),
    ],
)
def test_suspicious_loops(tmp_path, capsys, robot, said):
    robot.save(tmp_path / "robot.json")
    assert main(["check", str(tmp_path / "robot.json")]) == 1
    out = capsys.readouterr().out
    assert all(text in out for text in said), out


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "scissor_lift", "watt", "peaucellier", "three_rrr"])
def test_planar_linkages_are_as_they_should_be(name, capsys):
    assert main(["check", name]) == 0
    out = capsys.readouterr().out
    assert ": no findings\n" in out and "as usual for planar linkages" in out


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "scissor_lift", "watt", "peaucellier", "three_rrr"])
def test_hinges_of_two_points_are_as_those_of_a_planar_linkage(tmp_path, name, capsys):
    """MJCF has two points on the axis of a hinge that closes a loop. Their opposite forces in the plane are a moment about an axis in it."""
    path = str(tmp_path / "robot.xml")
    assert main(["convert", name, path]) == 0
    assert main(["check", path]) == 0, capsys.readouterr().out


def test_two_hinges_side_by_side_are_suspicious(tmp_path, capsys):
    """Two hinges between the same bodies, at different points of the plane, lock them: their opposite forces are in the plane."""
    b = sarrus.mechanisms.four_bar().to_builder()
    robot = b.build()
    q = robot.assemble()
    T = np.linalg.solve(robot.pose(q, "rocker"), robot.pose(q, "coupler"))
    ends = {"at_parent": (1.0, 0, 0), "at_child": tuple(T[:3, :3] @ [1.0, 0, 0] + T[:3, 3])}
    b.add_joint("beside", sarrus.Revolute("y"), "coupler", "rocker", **ends, loop=True)
    b.build().save(tmp_path / "robot.json")
    assert main(["check", str(tmp_path / "robot.json")]) == 1
    assert "rows are redundant; some reactions" in capsys.readouterr().out


def test_redundancy_within_the_plane_is_suspicious(tmp_path, capsys):
    """A third rocker of a parallelogram moves like the others, and stiffens it in its plane."""
    b = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0).to_builder()
    b.add_body("third", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
    b.add_joint("low", sarrus.Revolute("y"), "ground", "third", at_parent=(0.5, 0, 0))
    b.add_joint("high", sarrus.Revolute("y"), "coupler", "third", at_parent=(0.5, 0, 0), at_child=(0.5, 0, 0))
    b.set_home({"motor": -1.0, "pin1": 1.0, "pivot": -1.0, "low": -1.0})
    b.build().save(tmp_path / "robot.json")
    assert main(["check", str(tmp_path / "robot.json")]) == 1
    assert "7 of 10 rows are redundant; some reactions" in capsys.readouterr().out


def test_motors_and_laws_of_a_simulation(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    start = ["simulate", "four_bar", "--position", "motor=0.5", "--save", "x.npz", "--time", "0.2"]
    robot = sarrus.mechanisms.four_bar()
    assert main([*start, "--effort", "motor=harmonic:2,6,0.1"]) == 0
    law = sarrus.control.FeedforwardEffort("motor", sarrus.laws.harmonic(2.0, 6.0, 0.1))
    run = sarrus.simulate(robot, robot.assemble(fixed={"motor": 0.5}), np.zeros(3), 0.2, [law])
    assert np.array_equal(sarrus.Trajectory.load("x.npz").q, run.q)
    assert main([*start, "--prescribe", "motor=polynomial:0.5,3"]) == 0
    turned = sarrus.Trajectory.load("x.npz")
    assert np.abs(turned.joint("motor")[:, 0] - 0.5 - 3.0 * turned.t).max() < 1e-12
    assert "energy change" in capsys.readouterr().out
    for wrong in ("motor", "=2", "motor=sin:2", "motor=1,2", "motor=harmonic:1", "motor=nan"):
        with pytest.raises(SystemExit):
            main([*start, "--effort", wrong])
        assert f"'{wrong}' is not JOINT=5" in capsys.readouterr().err


def test_hints_name_what_can_be_installed():
    """sarrus is not on a package index, so extras cannot be installed by name."""
    package = Path(sarrus.__file__).parents[0]
    said = [path for path in package.rglob("*.py") if re.search(r"sarrus\[\w+\]", path.read_text(encoding="utf-8"))]
    assert said == []


def test_convert_there_and_back(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for names in (
        ("four_bar", "a.json"),
        ("a.json", "b.json"),
        ("b.json", "c.urdf"),
        ("b.json", "d.xml"),
        ("d.xml", "e.sdf"),
    ):
        assert main(["convert", *names]) == 0
    assert main(["convert", "c.urdf", "f.json", "--loops", "c.yaml"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "wrote a.json", "wrote b.json", "wrote c.urdf and c.yaml", "wrote d.xml", "wrote e.sdf", "wrote f.json",
    ]  # fmt: skip
    assert "sarrus: c.urdf: URDF cannot represent, and the file omits: configurations 'home'" in err.splitlines()
    assert sarrus.load("b.json") == sarrus.mechanisms.four_bar()
    assert sarrus.load("f.json").loop_joints == ("pin2_A pin2_B",)


def test_convert_says_what_is_lost(tmp_path, capsys):
    wanted = "MJCF cannot represent: constraint 'contact: Rolling"
    assert main(["convert", "rolling_disc", str(tmp_path / "a.xml")]) == 1
    err = capsys.readouterr().err
    assert wanted in err and "or with --lossy, which omits them" in err and not list(tmp_path.iterdir())
    assert main(["convert", "rolling_disc", str(tmp_path / "a.xml"), "--lossy"]) == 0
    assert "the file omits: constraint 'contact: Rolling" in capsys.readouterr().err


def test_convert_takes_what_can_be_written(capsys):
    with pytest.raises(SystemExit) as end:
        main(["convert", "four_bar", "a.step"])
    assert end.value.code == 2 and "does not end in .json, .urdf, .xml, .sdf, .usda or .usd" in capsys.readouterr().err
    assert main(["convert", "four_bar", "no/such/folder/a.json"]) == 1


def test_loops_are_for_files(capsys):
    with pytest.raises(SystemExit):
        main(["info", "four_bar", "--loops", "a.yaml"])
    assert "--loops requires a model file; 'four_bar' is a mechanism of the gallery" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".json", ".sdf", ".xml"])
def test_info_and_simulate_take_all_formats(tmp_path, capsys, suffix):
    name = str(tmp_path / f"a{suffix}")
    sarrus.mechanisms.double_pendulum().save(name)
    assert main(["info", name]) == 0 and main(["simulate", name, "--time", "0.01"]) == 0
    assert "degrees of freedom  2" in capsys.readouterr().out


# --- simulate -----------------------------------------------------------------------------------------------------


def summary(out):
    return {line[:22].strip(): line[22:] for line in out.splitlines()[1:]}


def test_simulate(capsys, monkeypatch, tmp_path):
    """All options with a loop: the same run as in Python, and in files."""
    monkeypatch.chdir(tmp_path)
    argv = (
        "simulate four_bar --time 0.2 --dt 2e-3 --method rkmk4 --stabilisation baumgarte --csv run.csv --save run.npz"
    )
    assert main([*argv.split(), "--position", "motor=0.5", "--velocity", "motor=6"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("four-bar: 0.2 s by rkmk4\n") and not err
    facts = summary(out)
    assert facts["status"] == "finished" and facts["samples"] == "101" and "100 steps of " in facts["wall time"]

    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    v = robot.project_velocity(q, [1.0, 0.0, 0.0])
    expected = sarrus.simulate(robot, q, v * 6.0 / v[0], 0.2, dt=2e-3, method="rkmk4", stabilisation="baumgarte")
    saved = sarrus.Trajectory.load("run.npz")
    assert saved.mechanism == robot and saved.q[0, 0] == 0.5
    # two ways to one velocity differ in rounding
    np.testing.assert_allclose(saved.q, expected.q, atol=1e-12)
    np.testing.assert_allclose(saved.v, expected.v, atol=1e-11)
    with open("run.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == [
        "t [s]",
        *(
            f"{x} [{u}]"
            for y, u in (("q", "rad"), ("v", "rad/s"), ("tau", "N m"))
            for x in (f"{y}:motor", f"{y}:pin1", f"{y}:pivot")
        ),
        *("energy [J]", "loop_error [rad or m]", "q:pin2 [rad]", "v:pin2 [rad/s]"),
    ]
    np.testing.assert_array_equal(np.array(rows, float)[:, 1:4], saved.q)
    assert float(facts["energy drift"].split()[0]) == pytest.approx(
        np.abs(saved.energy - saved.energy[0]).max(), rel=5e-3
    )
    assert float(facts["loop error"].split()[0]) == pytest.approx(saved.loop_error.max(), rel=5e-3)


def test_simulate_from_home_at_rest(capsys, monkeypatch, tmp_path):
    assert main(["simulate", "delta", "--time", "0.01", "--save", str(tmp_path / "x.npz")]) == 0
    run = sarrus.Trajectory.load(tmp_path / "x.npz")
    np.testing.assert_allclose(run.q[0], run.mechanism.assemble(), atol=1e-12)
    assert np.abs(run.v[0]).max() == 0.0 and np.abs(run.v[-1]).max() > 1e-3
    assert len(run) == 11, "1 ms is the step"


def test_simulate_a_file(write, capsys):
    """A floating base with all of its coordinates; zero duration, no step."""
    name = write(ROBOT)
    turned = ["--position", "handle=0.5", "root=0,0,0,2,1,2,3", "--velocity", "root=0,0,1,0,0,0", "handle=-1"]
    joint = next(j for j in sarrus.load(name, floating_base=True).joints if j != "handle")
    turned = [word.replace("root", joint) for word in turned]
    assert main(["simulate", name, "--floating-base", *turned, "--time", "0", "--save", "x.npz"]) == 0
    assert summary(capsys.readouterr().out)["wall time"].endswith(" s, 0 steps")
    run = sarrus.Trajectory.load("x.npz")
    assert run.joint(joint)[0].tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0]
    assert run.joint("handle").tolist() == [[0.5]]
    assert run.v[0, run.mechanism.joint(joint).v_slice].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert run.v[0, run.mechanism.joint("handle").v_slice].tolist() == [-1.0]


@pytest.mark.parametrize(("name", "given"), [("stewart", 2), ("hslm", 3), ("rolling_disc", 1), ("three_rrr", 2)])
def test_given_velocities_come_out_as_given(name, given):
    """For mechanisms with several degrees of freedom, given velocities are unchanged, J v = c, and v is of least norm."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble()
    rng = np.random.default_rng(5)
    some = robot.project_velocity(q, rng.normal(size=robot.nv), metric="euclidean")
    joints = [robot.joint(j) for j in rng.permutation(robot.joints)[:given]]
    q1, v = commands.start(robot, {}, {j.name: some[j.v_slice] for j in joints})
    np.testing.assert_allclose(q1, q, atol=1e-12)
    assert np.abs(robot.constraint_jacobian(q) @ v).max() < 1e-12
    for j in joints:
        assert v[j.v_slice].tolist() == some[j.v_slice].tolist()
    scale = ScaledLoops(robot, q, None).column_scale
    held = np.concatenate([robot.constraint_jacobian(q), *(np.eye(robot.nv)[j.v_slice] for j in joints)]) * scale
    _, s, directions = np.linalg.svd(held)
    left = directions[(s > 1e-9).sum() :]
    assert np.abs(left @ (v / scale)).max(initial=0.0) < 1e-12


def test_simulate_adaptively(capsys, tmp_path):
    """Tolerances have an effect: tighter ones need more steps."""
    steps = []
    for tolerance in ("1e-4", "1e-9"):
        words = f"simulate four_bar --time 0.5 --dt 0.05 --method dopri5 --rtol {tolerance} --atol {tolerance}"
        assert main(words.split()) == 0
        facts = summary(capsys.readouterr().out)
        assert facts["samples"] == "11"
        steps.append(int(facts["wall time"].split()[2]))
    assert steps[1] > 2 * steps[0]


def test_simulate_draws(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    shown = []
    plot = sarrus.Trajectory.plot
    monkeypatch.setattr(sarrus.Trajectory, "plot", lambda run, what, ax=None: shown.append(what) or plot(run, what, ax))
    argv = ["simulate", "four_bar", "--time", "0.1", "--plot", "run.svg"]
    assert main([*argv, "--animate", "run.html"]) == 0
    assert main([*argv[:-1], "run.png", "--plot-quantity", "energy", "pin1"]) == 0
    # once before the run, to see whether it can be drawn
    assert shown == ["q", "q", ["energy", "pin1"], ["energy", "pin1"]]
    assert b"<svg" in (tmp_path / "run.svg").read_bytes() and (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert "<canvas" in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out.count("wrote") == 3


def test_simulate_makes_a_gif(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "pendulum", "--time", "0.1", "--velocity", "pivot=1", "--animate", "x.gif"]) == 0
    assert (tmp_path / "x.gif").read_bytes()[:3] == b"GIF"


def test_without_ffmpeg_no_long_simulation(capsys, monkeypatch):
    animation = pytest.importorskip("matplotlib.animation")
    monkeypatch.setattr(animation.FFMpegWriter, "isAvailable", classmethod(lambda _: False))
    assert main(["simulate", "four_bar", "--animate", "x.mp4"]) == 1
    out, err = capsys.readouterr()
    assert "program ffmpeg not found" in err and err.count("\n") == 1 and not out


def test_without_matplotlib_no_long_simulation(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["simulate", "four_bar", "--plot", "x.png", "--csv", "x.csv"]) == 1
    out, err = capsys.readouterr()
    assert "pip install matplotlib" in err and err.count("\n") == 1 and not out
    assert not list(tmp_path.iterdir())


def test_simulation_that_fails_keeps_what_it_has(capsys, monkeypatch, tmp_path):
    """An arm with far too long steps, for any rounding: the files contain the run up to the failure."""
    monkeypatch.chdir(tmp_path)
    wild = "--method euler --dt 0.5 --time 500 --velocity joint3=100"
    assert main(f"simulate stanford_arm {wild} --csv x.csv --save x.npz".split()) == 1
    out, err = capsys.readouterr()
    run = sarrus.Trajectory.load("x.npz")
    assert run.status == "diverged" and 1 < len(run) < 1000
    said = f"sarrus: the motion diverges at t = {run.t[-1]:.9g} s, after {len(run) - 1} steps of 'euler'\n"
    assert err == said, "the rest of the message is for Python"
    assert summary(out)["status"] == "diverged" and (tmp_path / "x.csv").read_text().count("\n") == len(run) + 1


def test_numbers_that_overflow(capsys, monkeypatch, tmp_path):
    """Only one line is printed, and the summary is of finite values."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    files = ["--csv", "x.csv", "--plot", "x.png", "--plot-quantity", "energy", "--animate", "x.html"]
    wild = ["--method", "euler", "--dt", "0.5", "--time", "500", "--velocity", "joint3=100"]
    assert main(["simulate", "stanford_arm", *wild, *files]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("sarrus: the motion diverges at t = ") and err.count("\n") == 1
    assert (
        "nan" not in out and "inf" not in out and {"x.csv", "x.png", "x.html"} == {f.name for f in tmp_path.iterdir()}
    )


def test_an_energy_that_is_no_number_is_no_success(capsys, monkeypatch, tmp_path):
    """The square of the speed overflows, and so does the energy; the files are still written."""
    monkeypatch.chdir(tmp_path)
    argv = ["--time", "0.01", "--csv", "x.csv", "--velocity"]
    for model, speed in (("pendulum", "pivot=1e300"), ("four_bar", "pivot=1e300")):
        assert main(["simulate", model, *argv, speed]) == 1
        out, err = capsys.readouterr()
        assert err.startswith("sarrus: the motion ") and err.count("\n") == 1
        assert summary(out)["energy drift"].startswith("unknown; the energy of ") and (tmp_path / "x.csv").exists()


def interrupting(robot, *state, **how):
    """Press Ctrl-C after 50 ms of motion."""

    def function(t, q, v):
        if t > 0.05:
            signal.raise_signal(signal.SIGINT)
        return 1.0

    return sarrus.simulate(robot, *state, events=sarrus.Event(function, terminal=False), **how)


def test_ctrl_c_keeps_what_there_is(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "simulate", interrupting)
    assert main(["simulate", "four_bar", "--time", "1", "--save", "x.npz", "--csv", "x.csv"]) == 130
    out, err = capsys.readouterr()
    run = sarrus.Trajectory.load("x.npz")
    assert run.status == "interrupted" and 0.05 < run.t[-1] < 0.1 and (tmp_path / "x.csv").exists()
    assert summary(out)["status"] == "interrupted" and not err


def test_ctrl_c_elsewhere(capsys, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "start", pressed)
    assert main(["simulate", "four_bar"]) == 130
    assert capsys.readouterr() == ("", "")


def test_energy_is_kept_only_where_nothing_takes_it(monkeypatch):
    damped = sarrus.mechanisms.four_link_chain()
    assert commands._keeps_energy(sarrus.mechanisms.hslm()) and not commands._keeps_energy(damped)
    for act in ("spring", "law", "friction"):
        b = sarrus.Builder("rod")
        b.add_body("rod", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
        b.add_joint("pin", sarrus.Revolute("y", friction=0.1 * (act == "friction")), "ground", "rod")
        if act == "spring":
            b.add_spring("s", ("ground", (0, 0, 1)), ("rod", (1, 0, 0)), stiffness=1.0, rest_length=0.0, damping=2.0)
        if act == "law":
            b.add_prescribed_motion("drive", "pin", sarrus.laws.harmonic(1.0, 2.0))
        assert not commands._keeps_energy(b.build()), act


# --- view ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def looked(monkeypatch):
    """Return the arguments of sarrus.view."""
    calls = []

    class Shown(contextlib.AbstractContextManager):
        url = "http://somewhere"

        def wait(self):
            raise KeyboardInterrupt

        def __exit__(self, *_):
            calls.append("closed")

    monkeypatch.setattr(commands, "view", lambda *state, **how: calls.append((state, how)) or Shown())
    return calls


def test_view(looked, capsys):
    assert main(["view", "four_bar"]) == 0
    assert (
        main(["view", "four_bar", "--position", "motor=1", "--port", "9000", "--host", "0.0.0.0", "--no-browser"]) == 0
    )
    assert capsys.readouterr().out == 2 * "four-bar at http://somewhere  (Ctrl-C ends it)\n"
    assert looked[1::2] == ["closed", "closed"]
    (robot, q), how = looked[0]
    assert robot.name == "four-bar" and q is None
    assert how == {"trajectory": None, "port": 8080, "host": "127.0.0.1", "open_browser": True, "block": False}
    (robot, q), how = looked[2]
    assert q[0] == 1.0 and np.abs(robot.constraint_residual(q)).max() < 1e-12
    assert how == {"trajectory": None, "port": 9000, "host": "0.0.0.0", "open_browser": False, "block": False}


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_view_plays_back(looked, monkeypatch, tmp_path, ending):
    monkeypatch.chdir(tmp_path)
    option = "--save" if ending == "npz" else "--csv"
    assert main(["simulate", "four_bar", "--time", "0.1", option, f"x.{ending}"]) == 0
    assert main(["view", "four_bar", "--trajectory", f"x.{ending}"]) == 0
    assert len(looked[0][1]["trajectory"]) == 101
    assert main(["view", "delta", "--trajectory", f"x.{ending}"]) == 1, "of another mechanism"


def test_view_without_viser(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["view", "four_bar", "--no-browser"]) == 1
    out, err = capsys.readouterr()
    assert "pip install 'viser<1.2'" in err and err.count("\n") == 1 and not out


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C of a process goes to its whole console there")
def test_view_until_ctrl_c():
    pytest.importorskip("viser")
    heard = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # jobs in the background are deaf
    )
    program = f"{heard}import sys; from sarrus.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "view", "four_bar", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        line = process.stdout.readline().decode()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert line.startswith("four-bar at http://127.0.0.1:"), err.decode()
    assert process.returncode == 0 and b"Traceback" not in err


# --- faults -------------------------------------------------------------------------------------------------------

FOUR_BAR = ("simulate", "four_bar", "--time", "0.01")
FAULTS = {
    "missing file": (["info", "none.urdf"], 1, "none.urdf: No such file or directory"),
    "a folder": (["info", "folder.urdf"], 1, "folder.urdf: "),
    "wrong suffix": (["info", "robot.txt"], 1, "robot.txt: cannot read .txt"),
    "truncated": (["info", "cut.urdf"], 1, "cut.urdf:"),
    "empty": (["info", "empty.urdf"], 1, "empty.urdf:1: "),
    "unknown link": (["info", "astray.urdf"], 1, "unknown link 'nowhere'"),
    "nowhere to draw": (["demo", "-o", "no/such/folder/x.png"], 1, "x.png: No such file or directory"),
    "no command": ([], 2, "usage: sarrus"),
    "unknown command": (["dmeo"], 2, "invalid choice: 'dmeo'"),
    "unknown option": (["info", "robot.urdf", "--sinking-base"], 2, "unrecognized arguments"),
    "no such demonstration": (["demo", "four_bra"], 1, "'four_bra'; did you mean 'four_bar'?"),
    "no such mechanism": (["info", "for_bar"], 1, "did you mean four_bar or five_bar"),
    "nothing like it": (["info", "zzz"], 1, "named 'zzz'; `sarrus demo --list` lists the gallery"),
    "a joint that is none": ([*FOUR_BAR, "--position", "mtor=1"], 1, "'motor'? joints: motor, pin1, pivot"),
    "a velocity of none": ([*FOUR_BAR, "--velocity", "x=1"], 1, "named 'x'; joints: motor, pin1, pivot"),
    "too many coordinates": ([*FOUR_BAR, "--position", "motor=1,2"], 1, "joint 'motor' has 1 coordinate; got 2"),
    "too many velocities": ([*FOUR_BAR, "--velocity", "motor=1,2"], 1, "joint 'motor' has 1 velocity; got 2"),
    "out of reach for what closes": ([*FOUR_BAR, "--position", "pin2=0"], 1, "stays open"),
    "velocities of what closes": ([*FOUR_BAR, "--velocity", "pin2=1,2"], 1, "joint 'pin2' has 1 velocity; got 2"),
    "not both, one closes": (
        [*FOUR_BAR, "--velocity", "motor=1", "pin2=5"],
        1,
        "the nearest allowed velocities: motor=",
    ),
    "loops cannot close": ([*FOUR_BAR, "--position", "motor=1", "pivot=5"], 1, "stays open"),
    "not both velocities": (
        [*FOUR_BAR, "--velocity", "motor=1", "pivot=5"],
        1,
        "the nearest allowed velocities: motor=",
    ),
    "no rotation": (["simulate", "rolling_disc", "--position", "float=0,0,0,0,0,0,1"], 1, "quaternion"),
    "nothing to plot": ([*FOUR_BAR, "--plot", "x.png", "--plot-quantity", "enrgy"], 1, "did you mean 'energy'?"),
    "nowhere to write": ([*FOUR_BAR, "--csv", "no/such/x.csv"], 1, "no/such/x.csv: No such file or directory"),
    "no run": (["view", "four_bar", "--trajectory", "none.npz"], 1, "none.npz: No such file or directory"),
    "floating gallery": (["info", "pendulum", "--floating-base"], 2, "--floating-base requires a model file"),
    "what without where": ([*FOUR_BAR, "--plot-quantity", "q"], 2, "--plot-quantity requires --plot FILE"),
    "no value": ([*FOUR_BAR, "--position", "motor"], 2, "'motor' is not JOINT=VALUE"),
    "no joint": ([*FOUR_BAR, "--position", "=1"], 2, "'=1' is not JOINT=VALUE"),
    "NaN": ([*FOUR_BAR, "--position", "motor=nan"], 2, "'nan' is not a finite number"),
    "infinite": ([*FOUR_BAR, "--velocity", "motor=inf"], 2, "'inf' is not a finite number"),
    "words for numbers": ([*FOUR_BAR, "--velocity", "motor=fast"], 2, "'fast' is not a finite number"),
    "half a list": ([*FOUR_BAR, "--velocity", "motor=1,"], 2, "'1,' is not a finite number"),
    "twice": ([*FOUR_BAR, "--velocity", "motor=1", "motor=2"], 2, "joint 'motor' occurs twice"),
    "model among positions": (["simulate", "--position", "motor=1", "four_bar"], 2, "MODEL comes before the options"),
    "negative time": ([*FOUR_BAR, "--time", "-1"], 2, "'-1' is not zero or a positive number"),
    "endless": ([*FOUR_BAR, "--time", "inf"], 2, "'inf' is not zero or a positive number"),
    "no step": ([*FOUR_BAR, "--dt", "0"], 2, "'0' is not a positive number"),
    "unknown method": ([*FOUR_BAR, "--method", "rk5"], 2, "invalid choice: 'rk5'"),
    "unknown stabilisation": ([*FOUR_BAR, "--stabilisation", "hope"], 2, "invalid choice: 'hope'"),
    "unknown table": ([*FOUR_BAR, "--csv", "x.xls"], 2, "'x.xls' does not end in .csv"),
    "unknown film": ([*FOUR_BAR, "--animate", "x.avi"], 2, "'x.avi' does not end in .gif, .html or .mp4"),
    "no port": (["view", "four_bar", "--port", "70000"], 2, "'70000' is not a port"),
    "no model": (["info"], 2, "MODEL"),
    "two models": (["info", "a.urdf", "b.urdf"], 2, "unrecognized arguments: b.urdf"),
    "unknown kind of figure": (["demo", "-o", "valve.jpg"], 2, "'valve.jpg' does not end in .png, .svg or .pdf"),
}


@pytest.mark.parametrize(("argv", "code", "said"), FAULTS.values(), ids=FAULTS)
def test_faults(write, capsys, tmp_path, few_calls, argv, code, said):
    write(ROBOT, "robot.txt")
    write(ROBOT[: len(ROBOT) // 2], "cut.urdf")
    write("", "empty.urdf")
    write(ROBOT.replace('child link="right"', 'child link="nowhere"'), "astray.urdf")
    (tmp_path / "folder.urdf").mkdir()
    try:
        got = main(argv)
    except SystemExit as leaving:  # argparse
        got = leaving.code
    out, err = capsys.readouterr()
    if find_spec("matplotlib") is None and code == 1 and {"-o", "--plot"} & set(argv):
        code, said = int("--plot" in argv), "pip install matplotlib"
    assert got == code and said in " ".join(err.split())
    assert "Traceback" not in out + err
    if code == 1:
        assert err.startswith("sarrus: ") and err.count("\n") == 1, "one line"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk here is always full")
@pytest.mark.parametrize(
    ("argv", "unbuffered"), [("--help", ""), ("--version", "1"), ("info four_bar", ""), ("info four_bar", "1")]
)
def test_what_cannot_be_written_is_a_failure(argv, unbuffered):
    with open("/dev/full", "wb") as full:
        done = run(*argv.split(), stdout=full, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr.startswith(b"sarrus: ") and b"No space left" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_terminal_shows_what_a_file_says_and_does_not_obey(write, capsys):
    """Escape sequences and changes of writing direction in a warning or error are printed as escapes."""
    ghost = ROBOT.replace("</limit>", "").replace(
        '<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="\x9b2J\u202e"/>'
    )
    assert main(["info", write(ghost)]) == 0
    out = capsys.readouterr().out
    assert "handle = 1 \\x9b2J\\u202e" in out and errors.printable(out.replace("\n", "")) == out.replace("\n", "")
    assert main(["info", write(ROBOT.replace('"left"', '"\x9b2J"'))]) == 1
    assert main(["info", "\x1b[2J.urdf"]) == 1
    err = capsys.readouterr().err
    assert (
        errors.printable(err.replace("\n", "")) == err.replace("\n", "") and "\\x9b2J" in err and "\\x1b[2J.urdf" in err
    )


def test_traceback_on_demand(capsys):
    for argv in (["--traceback", "info", "none.urdf"], ["info", "none.urdf", "--traceback"]):
        assert main(argv) == 1
        err = capsys.readouterr().err
        assert err.startswith("Traceback") and err.endswith("sarrus: none.urdf: No such file or directory\n")


def test_a_fault_of_ours_is_one_line_too(capsys, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("nobody\nthought of this")

    monkeypatch.setattr(commands, "start", broken)
    assert main(["simulate", "four_bar"]) == 1
    said = "sarrus: ZeroDivisionError: nobody thought of this (--traceback shows the place)\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("command", ["demo", "info", "simulate", "view"])
def test_help_has_an_example_that_runs_as_written(command, capsys):
    """The example is one line of known words."""
    with pytest.raises(SystemExit) as leaving:
        main([command, "--help"])
    assert leaving.value.code == 0
    out = capsys.readouterr().out
    example = out[out.index("Example:\n") :].splitlines()[1]
    assert "Exit codes: 0 done" in out
    words = example.split()
    assert words[:2] == ["sarrus", command]
    from sarrus.cli import _parser

    _parser().parse_args(words[1:])


# --- as a process -------------------------------------------------------------------------------------------------


def test_module_is_the_command(write):
    done = run("--version")
    assert (done.returncode, done.stdout.decode().strip(), done.stderr) == (0, f"sarrus {sarrus.__version__}", b"")
    done = run("info", "none.urdf")
    assert done.returncode == 1 and done.stderr.decode().startswith("sarrus: none.urdf: ")


def test_terminal_without_the_letters(write):
    """Names and branch characters that the terminal cannot show become question marks."""
    done = run("info", write(ROBOT.replace("right", "Füße")), PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and b"F??e" in done.stdout


def test_reader_who_has_seen_enough(write):
    """`sarrus info robot.urdf | head` ends without an error."""
    command = [sys.executable, "-m", "sarrus", "info", write(ROBOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
