// Task controllers, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "../control/tasks.hpp"
#include "../mechanism/mechanism.hpp"

namespace sarrus::bindings {

TaskControl to_task_control(const Mechanism& mechanism, const pybind11::dict& described);
/// Return the description from which to_task_control() makes the same controller.
pybind11::dict described(const TaskControl& law);
/// Return the controller of an object of the class TaskController.
std::shared_ptr<const TaskControl> controller_of(const pybind11::handle& object);

void bind_control(pybind11::module_& m);

}  // namespace sarrus::bindings
