// Extension module of an instruction set level. It contains only the address of the level's kernel table. Python loads it with hidden symbols, so
// that inline functions of different levels are never merged.
#include <Python.h>

extern "C" const void* sarrus_kernel_table();

#define SARRUS_JOIN_(a, b) a##b
#define SARRUS_JOIN(a, b) SARRUS_JOIN_(a, b)
#define SARRUS_TEXT_(a) #a
#define SARRUS_TEXT(a) SARRUS_TEXT_(a)

static int fill(PyObject* module) {
  PyObject* table = PyCapsule_New(const_cast<void*>(sarrus_kernel_table()), nullptr, nullptr);
  if (!table) return -1;
  const int failed = PyModule_AddObjectRef(module, "table", table);
  Py_DECREF(table);
  return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&fill)},
#ifdef Py_mod_gil
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, SARRUS_TEXT(SARRUS_MODULE), nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};

PyMODINIT_FUNC SARRUS_JOIN(PyInit_, SARRUS_MODULE)() { return PyModuleDef_Init(&definition); }
