"""A new user-visible type needs changes in as many product files as CONTRIBUTING's recipes state; toys are added to a copy."""

import re
import shutil

import pytest

from tests.toys.project import ROOT, TOYS, Copy, soak


class Toy:
    """Toy that is added by its own file, an include and a line of a list.

    `include` is inserted before another include, `line` before another line of the list.
    """

    def __init__(self, name, folder, listed_in, include, line):
        self.file, self.listed_in = f"cpp/{folder}/{name}.hpp", f"cpp/{folder}/{listed_in}"
        self.text = (TOYS / f"{name}.hpp").read_text()
        self.program = TOYS / f"use_{name}.py"
        self.include, self.line = (include, f'#include "{name}.hpp"\n'), line

    def add_to(self, copy):
        before = set(copy.changed)
        copy.add(self.file, self.text)
        copy.put_before(self.listed_in, *self.include)
        copy.put_before(self.listed_in, *self.line)
        assert len(copy.changed - before) == 2

    def lacks(self, copy, question, source):
        """Return true if the compiler reports a member that the toy does not define."""
        copy.add(self.file, re.sub(rf"\b{question}\b", f"{question}_of_another_name", self.text))
        return copy.compile(source).returncode != 0


JOINT = Toy(
    "elliptic",
    "joints",
    "joint_set.hpp",
    '#include "fixed.hpp"',
    ("  X(gimbal, Gimbal<1>", "  X(elliptic, Elliptic)       \\\n"),
)
ELEMENT = Toy(
    "van_der_pol", "elements", "set.hpp", '#include "thruster.hpp"', ("    Of<LoopSpring>", "    Of<VanDerPol>,  //\n")
)
CONSTRAINT = Toy(
    "paraboloid", "constraints", "set.hpp", '#include "pfaffian.hpp"', ("    Pfaffian    ", "    Paraboloid,  //\n")
)
# with the source in which the compiler meets every question, and some of these
TOYS_AND_QUESTIONS = [
    (JOINT, "cpp/kernels/shared_joints.cpp", ("read", "close", "subspace_rate")),
    (ELEMENT, "cpp/kernels/simulation_kernels.cpp", ("fields", "has_rates", "apply")),
    (CONSTRAINT, "cpp/kernels/shared_one.cpp", ("evaluate",)),
    (CONSTRAINT, "cpp/mechanism/closing.cpp", ("rows",)),
]


@pytest.mark.parametrize(
    ("toy", "source", "questions"),
    TOYS_AND_QUESTIONS,
    ids=["joint", "force element", "constraint", "constraint's size"],
)
def test_a_toy_is_its_file_and_a_line(tmp_path, toy, source, questions):
    assert shutil.which("c++"), "a C++ compiler"
    copy = Copy(tmp_path)
    toy.add_to(copy)
    said = copy.compile(source)
    assert said.returncode == 0, said.stderr
    for question in questions:
        assert toy.lacks(copy, question, source), question


@soak
def test_toys_that_were_added_work(tmp_path):
    copy = Copy(tmp_path)
    for toy in (JOINT, ELEMENT, CONSTRAINT):
        toy.add_to(copy)
    copy.install()
    for toy in (JOINT, ELEMENT, CONSTRAINT):
        copy.run(toy.program)


def test_no_file_but_its_own_knows_a_joint():
    """No C++ file outside of cpp/joints names a joint type.

    Exceptions: Gimbal moves frames, Spherical leads target points, and the origins of Planar and Free joints glide.
    """
    names = {
        re.search(r'name = "(\w+)"', f.read_text())[1]
        for f in (ROOT / "cpp" / "joints").glob("*.hpp")
        if "name = " in f.read_text()
    }
    assert len(names) == 11
    for file in (ROOT / "cpp").rglob("*.[ch]pp"):
        if file.parent.name != "joints":
            code = re.sub(r"//.*", "", file.read_text())
            known = {n for n in names - {"Fixed", "Free"} if re.search(rf"\b{n}\b|JointKind::{n.lower()}\b", code)}
            glides = {"Planar"} if file.name == "glide.hpp" else set()
            # the error of a cable's own number, and functions that make joints for C++ programs
            written = {"joint_type.cpp": {"Cable"}, "joint_type.hpp": names}.get(file.name, set())
            written |= (
                {"Revolute"} if file == ROOT / "cpp" / "reading" / "elements.cpp" else set()
            )  # of a reaction wheel
            assert known - glides - written <= {"Gimbal", "Spherical"}, (file, known)


def test_no_file_but_its_own_knows_a_force_element():
    """No C++ file outside of cpp/elements names a force element.

    Exceptions: controllers with a clock, in System; springs that a run takes from the mechanism; elements that are rows of a step with rigid contact;
    loads, whose wrenches are a result of a run; efforts that are inputs of a recorded step; effort tables, of which derivatives use the efforts of a step; and in cpp/reading, arguments that are not fields.
    """
    files = [f for f in (ROOT / "cpp" / "elements").glob("*.hpp") if "name = " in f.read_text()]
    names = {re.search(r"struct (\w+) [^{]*{\n  static constexpr const char\* name", f.read_text())[1] for f in files}
    assert len(names) == 22
    efforts = {"step_kernels.cpp", "step_rates.hpp", "repeated_step.hpp"}
    allowed = {
        "SampleAndHold": {"system.hpp"},
        "LoopSpring": {"system.hpp", "run_numbers.hpp", "simulation.cpp"},
    }
    allowed |= {
        "RigidContact": {"step_rows.hpp", "contact_step.hpp", "simulation.cpp"},
        "CollisionContacts": {"step_rows.hpp", "contact_step.hpp", "simulation.cpp"},
        "EndStop": {"step_rows.hpp", "contact_step.hpp"},
        "AppliedWrench": {"simulation.cpp"},
        "FeedforwardEffort": {"step.cpp"},
        "EffortTable": efforts,
        "ZeroOrderHold": efforts,
    }
    for file in (ROOT / "cpp").rglob("*.[ch]pp"):
        if file.parent.name not in ("elements", "reading"):
            code = re.sub(r"//.*", "", file.read_text())
            known = {n for n in names if re.search(rf"\b{n}\b", code) and file.name not in allowed.get(n, ())}
            assert not known, (file, known)
