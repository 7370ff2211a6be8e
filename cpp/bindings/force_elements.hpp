// Force elements, from Python's descriptions.
#pragma once

#include <pybind11/pybind11.h>

namespace sarrus {
class ForceElementList;
class Mechanism;
}  // namespace sarrus

namespace sarrus::bindings {

/// Add force elements from dicts; each contains the name of its kind and the values of its fields.
void add_force_elements(const Mechanism& mechanism, const pybind11::list& described, ForceElementList& list);

void bind_force_elements(pybind11::module_& m);

}  // namespace sarrus::bindings
