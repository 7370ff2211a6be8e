// Release and reacquisition of the GIL, in a process that may end in between.
//
// During shutdown of the interpreter, a thread that requests the GIL never gets it. Python before 3.14 ends that thread by pthread_exit, which glibc
// implements by unwinding the stack. Unwinding would run C++ destructors that call std::terminate, and that release references to Python objects
// without the GIL. Therefore such a thread is stopped here: it waits forever, and the process ends without it.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

namespace sarrus::bindings {

[[noreturn]] inline void park_thread() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

inline bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

/// Return the result of `enter`, a function of Python's C API that waits for the GIL. This function must not throw C++ exceptions, because an
/// exception here is treated as the end of the thread.
template <class F> auto unless_interpreter_ends(F&& enter) {
  if (interpreter_ends()) park_thread();
  try {
    return enter();
  } catch (...) {  // this happens if the interpreter began to shut down while the thread waited
    park_thread();
  }
}

/// Scope without the GIL.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    unless_interpreter_ends([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Scope in which a thread that had released the GIL holds it again.
class WithGil {
 public:
  WithGil() : state_(unless_interpreter_ends([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Check for signals such as Ctrl-C. This is done only a few times per second, because it requires the GIL. Python delivers signals to the main
/// thread only.
class Signals {
 public:
  /// Return true if a signal handler raised; Python's exception is then set.
  bool raised() {
    const auto time = std::chrono::steady_clock::now();
    if (time < next_) return false;
    next_ = time + interval;
    const WithGil gil;
    return PyErr_CheckSignals() != 0;
  }

 private:
  static constexpr std::chrono::milliseconds interval{50};
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + interval;
};

/// Return f(*arguments), called from C++ without the GIL. During the call to Python, other threads may run, and may end the process.
inline pybind11::object call_python(const pybind11::object& f, const pybind11::tuple& arguments) {
  PyObject* answer = unless_interpreter_ends([&] { return PyObject_CallObject(f.ptr(), arguments.ptr()); });
  if (!answer) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(answer);
}

}  // namespace sarrus::bindings
