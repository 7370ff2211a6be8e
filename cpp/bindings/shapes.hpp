// Touching shapes, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <tuple>
#include <vector>

#include "../contact/scene.hpp"

namespace sarrus::bindings {

/// A pair of shapes: (first, second, friction, restitution, torsional friction, rolling friction, Python function that returns the points, or None).
using DescribedPair = std::tuple<int, int, double, double, double, double, pybind11::object>;
/// Scene of shapes and pairs in the form of description/contacts.py.
Scene to_scene(const std::vector<pybind11::tuple>& shapes, const std::vector<DescribedPair>& pairs);

void bind_shapes(pybind11::module_& m);

}  // namespace sarrus::bindings
