// Small parts of descriptions, as Python hands them over.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <vector>

#include "../constraints/law.hpp"
#include "../spatial/motion.hpp"

namespace sarrus::bindings {

inline Vec3<double> to_vec3(const pybind11::handle& h) {
  const auto x = h.cast<std::array<double, 3>>();
  return vec3<double>(x[0], x[1], x[2]);
}

/// Rotation (row by row) and translation, twelve numbers.
inline Transform<double> to_transform(const pybind11::handle& h) {
  const auto v = h.cast<std::array<double, 12>>();
  Transform<double> X;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) X.R(i, j) = v[3 * i + j];
    X.p(i) = v[9 + i];
  }
  return X;
}

/// (starts, coefficients piece by piece, harmonics); or (such laws, where the number of a run's own stands).
inline Law to_law(const pybind11::handle& h) {
  const auto t = h.cast<pybind11::tuple>();
  if (t.size() == 2) {
    Law chosen{{}, {}, {}, {}, t[1].cast<int>()};
    for (const pybind11::handle& law : t[0].cast<pybind11::list>()) chosen.each.push_back(to_law(law));
    return chosen;
  }
  return {t[0].cast<std::vector<double>>(), t[1].cast<std::vector<double>>(), t[2].cast<std::vector<double>>()};
}
inline std::optional<Law> to_optional_law(const pybind11::handle& h) {
  if (h.is_none()) return std::nullopt;
  return to_law(h);
}

}  // namespace sarrus::bindings
