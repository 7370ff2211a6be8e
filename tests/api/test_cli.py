"""The command `sarrus`: what it prints, what it refuses, and with which exit code."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import sarrus
from sarrus import demo
from sarrus.cli import main

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
    """Write a file into the working directory and give its name."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="robot.urdf"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def run(*argv, **environment):
    """As a process of its own."""
    command = [sys.executable, "-m", "sarrus", *argv]
    return subprocess.run(command, capture_output=True, env=os.environ | environment, timeout=60)


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
    """The plain install: everything but the figure, and how to get it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert 'pip install "sarrus[plot]"' in err and "matplotlib" in err
    assert "-19.191" in out and "ns each" in out
    assert not list(tmp_path.iterdir())


# --- faults -------------------------------------------------------------------------------------------------------

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
    if argv[:1] == ["demo"] and code == 1 and find_spec("matplotlib") is None:
        code, said = 0, "sarrus[plot]"
    assert got == code and said in err
    assert "Traceback" not in out + err


# --- as a process -------------------------------------------------------------------------------------------------


def test_module_is_the_command(write):
    done = run("--version")
    assert (done.returncode, done.stdout.decode().strip(), done.stderr) == (0, f"sarrus {sarrus.__version__}", b"")
    done = run("info", "none.urdf")
    assert done.returncode == 1 and done.stderr.decode().startswith("sarrus: none.urdf: ")


def test_terminal_without_the_letters(write):
    """Names and branches that cannot be shown become question marks."""
    done = run("info", write(ROBOT.replace("right", "Füße")), PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and b"F??e" in done.stdout


def test_reader_who_has_seen_enough(write):
    """`sarrus info robot.urdf | head` ends without complaint."""
    command = [sys.executable, "-m", "sarrus", "info", write(ROBOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0
