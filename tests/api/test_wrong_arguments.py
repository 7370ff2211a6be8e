"""All public functions, by inspection: one wrong argument raises an error of sarrus that names it; objects can be copied and compared."""

import dataclasses
import importlib.util
import os
import random
import re

import pytest

from tests.effort import SOAK
from tools.fuzz.calls import OF_ALL, modules
from tools.fuzz.one_wrong import WRONG, OneWrong

# these take models of MuJoCo's or Pinocchio's, or a mechanism with a name for a configuration
UNTRIED = {
    "Mechanism.configuration",
    "from_pinocchio_state",
    "from_mujoco",
    "from_pinocchio",
    "to_pinocchio",
    "to_pinocchio_state",
}
UNTRIED |= {"Builder.add_constraint"}  # for kinds that somebody adds: tests/api/building has its errors
UNTRIED |= {
    "Builder.add_shape",
    "Builder.remove_shape",
    "Builder.set_contact",
}  # tests/api/building/test_shapes.py has theirs
UNTRIED |= {
    *(f"Dimensions.{name}" for name in ("changed", "driven", "moves", "numbers", "some", "variants")),
    *("Moves", "Moves.coordinates", "Moves.numbers"),
}  # tests/laws/test_calibration.py has theirs
UNTRIED |= {"TimedPath"}  # whose objects Path.timed creates
if importlib.util.find_spec("pandas") is None:
    UNTRIED |= {"Trajectory.to_dataframe", "JointWrenches.to_dataframe"}
EACH = len(WRONG) if SOAK else 5  # of the wrong values
PARTS = 4


@pytest.fixture
def calls(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    return OneWrong()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("part", range(PARTS))
def test_one_wrong_argument(calls, part):
    """Never Python's, NumPy's or pybind11's own words."""
    told, untried = [], set()
    for target in calls.asked[part::PARTS]:
        if target.key.startswith(("View", "view")):  # its own tests ask them, of a server
            continue
        found = calls.findings(target, random.Random(target.key).sample(WRONG, EACH))
        if found is None:
            untried.add(target.key)
        else:
            told += [f"{what}\n    {'; '.join(program)}" for what, program in found]
    assert not told, f"{len(told)} bad errors, such as\n" + os.linesep.join(told[:10])
    assert untried <= UNTRIED


@pytest.mark.filterwarnings("default")
def test_objects_show_compare_copy_and_pickle(calls):
    asked = [
        t
        for t in calls.targets.values()
        if t.template in OF_ALL and t.owner.__name__ not in ("View", "TaskControl", "Compiled")
    ]
    failed = [f"{t.template} of {t.owner.__name__}" for t in asked if calls.right_call(t) is None]
    assert len(asked) > 500 and not failed


def test_dataclasses_of_arrays_compare_by_identity():
    """`==` of arrays is an array, which is neither true nor false."""
    classes = {cls for module in modules() for cls in vars(module).values() if dataclasses.is_dataclass(cls)}
    with_arrays = {
        cls
        for cls in classes
        if any(re.search("Array|ndarray", str(f.type).partition("Callable")[0]) for f in dataclasses.fields(cls))
    }
    assert len(with_arrays) > 20
    assert not {cls.__name__ for cls in with_arrays if cls.__eq__ is not object.__eq__ and cls.__dataclass_params__.eq}
