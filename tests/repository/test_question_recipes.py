"""A new integration method and a new public method need changes in as many product files as CONTRIBUTING's recipes state.

Toys are added to a copy of the repository by these recipes.
"""

import os
import re
import shutil
import subprocess
import sysconfig

from tests.toys.project import ROOT, TOYS, Copy, soak

METHODS = "cpp/simulation/methods.hpp"


def with_a_method(folder):
    """Kutta's third-order method."""
    copy = Copy(folder)
    tableau, row = re.search(
        r"// tableau\n(.*?)// row\n(.*?)// end", (TOYS / "kutta3.hpp").read_text(), re.DOTALL
    ).groups()
    copy.put_before(METHODS, "// clang-format on\n}  // namespace tableaus", tableau)
    copy.put_before(METHODS, "  X(dopri5, ", row)
    copy.put_before("python/sarrus/simulation/setup.py", '"implicit_midpoint", "independent", "contact"', '"kutta3", ')
    assert len(copy.changed) == 2
    return copy


def test_a_runge_kutta_method_is_its_tableau_and_its_row(tmp_path):
    """A row without an implemented step does not compile."""
    assert shutil.which("c++"), "a C++ compiler"
    copy, source = with_a_method(tmp_path), "steps.cpp"
    copy.add(
        source,
        '#include "cpp/simulation/advance.hpp"\n'
        "using namespace sarrus;\n"
        "static_assert(facts(Method::kutta3).order == 3 && in_lanes(facts(Method::kutta3).step));\n"
        "template double sarrus::advance(const Tree&, Arena&, const Plan&, const double*, double, double, std::int64_t, std::int64_t, double*);\n",
    )
    said = copy.compile(source, "-Werror=switch")
    assert said.returncode == 0, said.stderr
    copy.put_before(METHODS, "contact, rosenbrock };", "leapfrog, ")
    said = copy.compile(source, "-Werror=switch")
    assert said.returncode != 0
    assert "leapfrog" in said.stderr and "not handled in switch" in said.stderr


def test_a_method_without_its_step_does_not_compile(tmp_path):
    copy, source = Copy(tmp_path), "steps.cpp"
    copy.add(source, '#include "cpp/simulation/methods.hpp"\n')
    assert copy.compile(source).returncode == 0
    copy.put_before(METHODS, "  X(dopri5, ", "  X(kutta3, 3, 3, 2.51, &tableaus::rk4, false, true, false) \\\n")
    assert copy.compile(source).returncode != 0


def built(copy, program):
    """Return the output of a C++ program that is linked with the copy's library."""
    folder = copy.folder / "built"
    (copy.folder / "program").mkdir()
    shutil.copy(ROOT / "examples" / "cpp" / "four_bar.hpp", copy.folder / "program")
    shutil.copy(program, copy.folder / "program" / "program.cpp")
    (copy.folder / "program" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(toy LANGUAGES C CXX)\nset(SARRUS_PYTHON OFF)\nadd_subdirectory(.. core)\n"
        "add_executable(program program.cpp)\ntarget_link_libraries(program PRIVATE sarrus::core)\n"
    )
    options = [
        f"-DCMAKE_PREFIX_PATH={sysconfig.get_path('platlib')}",
        "-DSARRUS_LEVELS=baseline",
        "-DCMAKE_BUILD_TYPE=Debug",
    ]
    options += [f"-DSARRUS_DAQP={next(ROOT.glob('build/*/headers/daqp/*/csrc'), '')}", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"]
    subprocess.run(["cmake", "-S", copy.folder / "program", "-B", folder, *options], check=True)
    subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count()), "--target", "program"], check=True)
    return subprocess.run([folder / "program"], check=True, capture_output=True, text=True).stdout


@soak
def test_a_method_that_was_added_has_its_order(tmp_path):
    """The method moves a pendulum and a closed loop, from C++ and from Python, for one state and for a batch."""
    copy = with_a_method(tmp_path)
    said = built(copy, TOYS / "use_kutta3.cpp")
    copy.install()
    copy.run(TOYS / "use_kutta3.py", said)


DEFINITION = """  m.def("manipulability", [](const py::object& self, const Row& q, const std::string& frame) {
    const Mechanism& m = built(self);
    const PlacedFrame& at = m.placed_frame(frame);
    Manipulability found = manipulability({m, kernels()}, configuration(q, m.tree()), {at.link, at.body, at.X});
    return as_python(found);
  });
"""
METHOD = """  Manipulability manipulability(const Input& q, const Frame& at) const {
    return sarrus::manipulability(functions(), configuration("manipulability", q), at);
  }
"""


def with_a_question(folder):
    """Yoshikawa's measure of manipulability."""
    copy = Copy(folder)
    copy.add("cpp/mobility/manipulability.hpp", (TOYS / "manipulability.hpp").read_text())
    copy.put_before("cpp/sarrus.hpp", '#include "mobility/mobility.hpp"', '#include "mobility/manipulability.hpp"\n')
    copy.put_before("cpp/sarrus.hpp", "  /// Compute S (nv, nu) for the mechanism's motors", METHOD)
    path = "cpp/bindings/mobility.cpp"
    copy.put_before(path, '#include "../mobility/mobility.hpp"', '#include "../mobility/manipulability.hpp"\n')
    copy.put_before(path, '  m.def("mobility"', DEFINITION)
    copy.add("python/sarrus/analysis/manipulability.py", (TOYS / "manipulability.py").read_text())
    path = "python/sarrus/mechanism.py"
    copy.put_before(path, "from ._deferred import", "from .analysis.manipulability import manipulability\n")
    copy.put_before(path, "    mobility_map = mobility.mobility_map", "    manipulability = manipulability\n")
    assert len(copy.changed) == 5
    return copy


def test_a_question_is_its_struct_and_a_method_in_either_language(tmp_path):
    assert shutil.which("c++"), "a C++ compiler"
    copy = with_a_question(tmp_path)
    program = 'double measure(const sarrus::Robot& r, sarrus::Numbers q) { return r.manipulability(q, r.frame("tool")).measure; }\n'
    copy.add("asks.cpp", '#include "cpp/sarrus.hpp"\n' + program)
    said = copy.compile("asks.cpp")
    assert said.returncode == 0, said.stderr


@soak
def test_a_question_that_was_added_is_answered(tmp_path):
    copy = with_a_question(tmp_path)
    copy.install()
    copy.run(TOYS / "use_manipulability.py")
