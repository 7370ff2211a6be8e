// A mobility report of a four-bar: degrees of freedom, redundant rows of its loop, and the transmission of its motor. The fields have the names of
// Python's Mobility, and a visitor prints each of them (tests/core/test_core_alone.py compares them).
#include <sarrus.hpp>

#include <cstdio>

#include "four_bar.hpp"

void print(const int& x) { std::printf(" %d", x); }
void print(const bool& x) { std::printf(" %d", x); }
void print(const double& x) { std::printf(" %.15g", x); }
void print(const std::string& x) { std::printf(" %s", x.c_str()); }
void print(const sarrus::Matrix& x) {  // row by row
  for (Eigen::Index i = 0; i < x.rows(); ++i)
    for (Eigen::Index j = 0; j < x.cols(); ++j) print(x(i, j));
}
void print(const sarrus::Vector& x) { print(sarrus::Matrix(x)); }
void print(const sarrus::Names& names) {
  for (const std::string& name : names) std::printf(" '%s'", name.c_str());
}
template <class X> void print(const sarrus::Named<X>& all) {
  for (const auto& [name, x] : all) std::printf(" '%s'", name.c_str()), print(x);
}
template <class X> void print(const std::optional<X>& x) { x ? print(*x) : print(std::string("none")); }

int main() {
  const sarrus::Robot robot(four_bar(0.4, 1.1, 0.9, 1.0));
  const sarrus::Numbers q = robot.configuration_by_mass(sarrus::Numbers{0.5, -1.7, -1.9});  // projection onto the loop

  sarrus::MobilityOptions options;
  options.output = "rocker", options.components = {1};  // its angular velocity about y
  sarrus::Mobility found = robot.mobility(q, options);

  const auto line = [](const char* name, const auto& x) { std::printf("%s =", name), print(x), std::printf("\n"); };
  found.actuation->fields(line);
  found.actuation.reset();
  found.fields([&](const char* name, const auto& x) {
    if constexpr (!std::is_same_v<decltype(x), const std::optional<sarrus::ActuationMobility>&>) line(name, x);
  });

  options.actuated = {"motor", "pivot"};  // a redundant motor
  line("internal_efforts", robot.internal_efforts(q, options.actuated));
  try {
    robot.mobility(sarrus::Numbers{0.1, 0.2, 0.3});
  } catch (const sarrus::AssemblyError& error) {
    line("refused", std::string(error.what()));
  }
  return 0;
}
