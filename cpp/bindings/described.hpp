// Small parts of descriptions, from Python.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "../constraints/law.hpp"
#include "../spatial/conversions.hpp"
#include "arrays.hpp"

namespace sarrus::bindings {

inline Vec3<double> to_vec3(const pybind11::handle& h) {
  const auto x = h.cast<std::array<double, 3>>();
  return vec3<double>(x[0], x[1], x[2]);
}

/// Read attributes that are arrays of known sizes into consecutive values. They are not checked, because Python checked them at construction.
template <int... sizes> void read_arrays(const pybind11::handle& h, PyObject* const (&names)[sizeof...(sizes)], double* out) {
  int k = 0;
  for (const int size : {sizes...}) {
    const auto array = pybind11::reinterpret_steal<pybind11::object>(PyObject_GetAttr(h.ptr(), names[k++]));
    if (!array) throw pybind11::error_already_set();
    const pybind11::object plain = as_plain(array.ptr(), "an array");
    const Array* x = proxy(plain.ptr());
    pybind11::ssize_t n = 1;
    for (int i = 0; i < x->nd; ++i) n *= x->dimensions[i];
    if (n != size)
      throw pybind11::value_error("expected an array of " + std::to_string(size) + " numbers; got " + std::to_string(n));
    out = std::copy_n(reinterpret_cast<const double*>(x->data), size, out);
  }
}
inline PyObject* interned(const char* name) { return PyUnicode_InternFromString(name); }

/// Convert a Transform, or a list of twelve numbers: rotation (row-major) and translation.
inline Transform<double> to_transform(const pybind11::handle& h) {
  std::array<double, 12> v;
  if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) {
    v = h.cast<std::array<double, 12>>();
  } else {
    static PyObject* const names[] = {interned("rotation"), interned("translation")};
    read_arrays<9, 3>(h, names, v.data());
  }
  Transform<double> X;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) X.R(i, j) = v[3 * i + j];
    X.p(i) = v[9 + i];
  }
  return X;
}

/// Convert an Inertia to one about the origin of its frame.
inline Inertia<double> to_inertia(const pybind11::handle& h) {
  static PyObject* const mass_name = interned("mass");
  static PyObject* const names[] = {interned("com"), interned("about_com")};
  const auto mass = pybind11::reinterpret_steal<pybind11::object>(PyObject_GetAttr(h.ptr(), mass_name));
  if (!mass) throw pybind11::error_already_set();
  const double m = mass.cast<double>();
  double x[12];
  read_arrays<3, 9>(h, names, x);
  const double* I = x + 3;
  const Vec3<double> com = vec3(x[0], x[1], x[2]);
  return {m, com * m, parallel_axes<double>(m, com, {I[0], I[1], I[2], I[4], I[5], I[8]})};
}

/// Convert a time function: either (starts, coefficients of all pieces, harmonics, period, which earlier versions do not store), or (a list of such
/// functions, index of the run's parameter that selects one of them).
inline Law to_law(const pybind11::handle& h) {
  const auto t = h.cast<pybind11::tuple>();
  if (t.size() == 2) {
    Law chosen{{}, {}, {}, {}, t[1].cast<int>()};
    for (const pybind11::handle& law : t[0].cast<pybind11::list>()) chosen.each.push_back(to_law(law));
    return chosen;
  }
  Law law{t[0].cast<std::vector<double>>(), t[1].cast<std::vector<double>>(), t[2].cast<std::vector<double>>()};
  if (t.size() > 3) law.period = t[3].cast<double>();
  return law;
}
inline std::optional<Law> to_optional_law(const pybind11::handle& h) {
  if (h.is_none()) return std::nullopt;
  return to_law(h);
}

}  // namespace sarrus::bindings
