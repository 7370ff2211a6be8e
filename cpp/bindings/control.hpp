// Task controllers, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include "../control/tasks.hpp"
#include "../mechanism/mechanism.hpp"

namespace sarrus::bindings {

TaskControl to_task_control(const Mechanism& mechanism, const pybind11::dict& described);

void bind_control(pybind11::module_& m);

}  // namespace sarrus::bindings
