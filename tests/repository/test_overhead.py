"""A law of speed: no function of one state needs more instructions outside of the kernels than before."""

import json

import pytest

import sarrus
from benchmarks import overhead

# counts differ by a tenth between builds of Python and NumPy; small ones by some hundred instructions
MOST, ROUNDING = 1.2, 0.5


def test_every_function_of_a_state_is_counted():
    methods = {
        name for name in dir(sarrus.Mechanism) if not name.startswith("_") and callable(getattr(sarrus.Mechanism, name))
    }
    functions = methods | {f"derivatives.{name}" for name in sarrus.derivatives.__all__}
    counted = {name.split(",")[0] for name in overhead.codes()}
    assert functions - counted == overhead.NOT_OF_ONE_STATE


def test_overhead_of_every_function():
    if not overhead.can_count():
        pytest.skip("valgrind, its header or a C compiler is not installed")
    if sarrus.build_info()["isa"].endswith("v4"):
        pytest.skip("valgrind cannot run kernels with AVX-512")
    stored = json.loads(overhead.KEPT.read_text(encoding="utf-8")).get(overhead.VERSION)
    if stored is None:
        pytest.skip(f"no instruction counts are stored for {overhead.VERSION}")
    counts = {name: row["overhead"] for name, row in overhead.count().items()}
    assert counts.keys() == stored.keys()
    more = {name: (count, stored[name]) for name, count in counts.items() if count > MOST * stored[name] + ROUNDING}
    assert not more, (
        "thousands of instructions, and stored ones; store them by python -m benchmarks.overhead --keep if there is a good reason"
    )
