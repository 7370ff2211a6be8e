// What touches, from Python.
#pragma once

#include <pybind11/pybind11.h>

#include <tuple>
#include <vector>

#include "../contact/scene.hpp"

namespace sarrus::bindings {

/// Of shapes as description/contacts.py writes them, and of pairs (first, second, friction, restitution).
Scene to_scene(const std::vector<pybind11::tuple>& shapes, const std::vector<std::tuple<int, int, double, double>>& pairs);

void bind_shapes(pybind11::module_& m);

}  // namespace sarrus::bindings
