"""Objects of `cls.__new__(cls)` without __init__: every use raises TypeError, and none ends the interpreter."""

import enum
import subprocess
import sys

from sarrus import _core, _recording

PROGRAM = """
import sys
from sarrus import _core, _recording
of = {"sarrus._core": _core, "sarrus._core.spatial": _core.spatial, "sarrus._recording": _recording}
x_of = getattr(of[sys.argv[1]], sys.argv[2])
for name in dir(x_of):
    static = isinstance(vars(x_of).get(name), staticmethod) or name.startswith("_pybind11")
    if static or name in ("__init__", "__new__") or name.startswith("__") and not callable(vars(x_of).get(name)):
        continue
    for count in range(9):
        x = x_of.__new__(x_of)
        try:
            value = getattr(x, name)
            if not callable(value) or value(*[None, 1.0, "a", (), {}, x, 1, x][:count]) is not NotImplemented:
                raise AssertionError(f"{name} with {count} arguments has an answer")
        except TypeError:
            pass
"""


def classes():
    for module in (_core, _core.spatial, _recording):
        for name, value in vars(module).items():
            if isinstance(value, type) and not issubclass(value, enum.Enum):
                yield module.__name__, name


def test_every_use_is_a_type_error():
    every = list(classes())
    assert {"Scene", "Simulation", "TaskController", "Method", "Mechanism", "Number"} <= {name for _, name in every}
    for module, name in every:
        done = subprocess.run([sys.executable, "-c", PROGRAM, module, name], capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.returncode} {done.stderr[-500:]}"
