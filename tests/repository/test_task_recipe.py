"""A new kind of task needs changes in as many product files as CONTRIBUTING's recipe states: a toy is added to a copy."""

import re
import shutil

from tests.toys.project import ROOT, TOYS, Copy, soak


def with_a_task(folder):
    copy = Copy(folder)
    copy.add("cpp/control/tasks/distance.hpp", (TOYS / "distance_task.hpp").read_text())
    path = "cpp/control/tasks/set.hpp"
    copy.put_before(path, '#include "forces.hpp"', '#include "distance.hpp"\n')
    copy.put_before(path, "    JointsTask,", "    DistanceTask,\n")
    path = "python/sarrus/control/tasks.py"
    copy.put_before(path, '    "ForceTask",', '    "DistanceTask",\n')
    line = "@dataclass(frozen=True, eq=False)\nclass PostureTask"
    added = (TOYS / "distance_task.py").read_text()
    copy.put_before(path, line, added[added.index("@dataclass") :] + "\n\n")
    assert len(copy.changed) == 3
    return copy


def test_a_task_is_its_file_a_line_and_its_dataclass(tmp_path):
    copy = with_a_task(tmp_path)
    assert shutil.which("c++"), "a C++ compiler"
    controller = "cpp/kernels/control_kernels.cpp"
    said = copy.compile(controller)
    assert said.returncode == 0, said.stderr
    whole = (TOYS / "distance_task.hpp").read_text()
    for question in ("rows", "evaluate", "rigid_mobility"):
        changed, count = re.subn(rf"(int|void|T) {question}\(", rf"\1 {question}_of_another_name(", whole)
        assert count == 1, question
        copy.add("cpp/control/tasks/distance.hpp", changed)
        assert copy.compile(controller).returncode != 0, question


@soak
def test_a_task_that_was_added_works(tmp_path):
    copy = with_a_task(tmp_path)
    copy.install()
    copy.run(TOYS / "use_distance_task.py")


def test_no_file_but_its_own_knows_a_task():
    """All other C++ files visit the set of tasks, except cpp/reading, for arguments that are not fields."""
    tasks = ROOT / "cpp" / "control" / "tasks"
    names = {name for f in tasks.glob("*.hpp") for name in re.findall(r'name = "(\w+)"', f.read_text())}
    assert len(names) == 7
    for file in (ROOT / "cpp").rglob("*.[ch]pp"):
        if file.parent not in (tasks, ROOT / "cpp" / "reading"):
            code = re.sub(r"//.*", "", file.read_text())
            assert not {n for n in names if re.search(rf"\b{n}\b", code)}, file
