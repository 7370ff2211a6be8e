"""Every kind of constraint exists in the core, in Python, among the random mechanisms and in the oracle."""

import numpy as np
import pytest

import sarrus
from sarrus import _core
from sarrus.description.constraints import ConstraintSpec
from tests.random_closed import RELATIONS, random_closed

SPECS = {cls.__name__.removesuffix("Spec"): cls for cls in ConstraintSpec.__subclasses__()}
DRAWN = [random_closed(7, kinds=(kind,), loops=1, bodies=5).description.constraints[0] for kind in RELATIONS]


def test_core_and_python_know_the_same_kinds():
    # a target is a closing joint to where a call wants a frame
    assert sorted(_core.constraint_kinds()) == sorted(set(SPECS) - {"Target"})


@pytest.mark.parametrize("kind", _core.constraint_kinds())
def test_a_kind_is_drawn(kind):
    """The oracle finds states that are consistent with the constraint, so it implements the kind."""
    assert any(type(spec) is SPECS[kind] for spec in DRAWN), f"tests/random_closed.py draws no {kind}"


@pytest.mark.parametrize("spec", DRAWN, ids=lambda spec: type(spec).__name__)
def test_a_spec_answers_for_itself(spec):
    """Facts that Python derives from a spec alone agree with the mechanism."""
    assert len(spec.bodies) in (0, 2)
    assert {body for body, _ in spec.points} <= set(spec.bodies)
    assert str(spec).startswith(f"{spec.name}: {spec.kind}")


def test_a_kind_that_the_core_does_not_know_is_refused():
    class StrangeSpec(ConstraintSpec):
        pass

    b = sarrus.Builder("pendulum")
    b.add_body("bob", sarrus.Inertia(1.0, (0.0, 0.0, -1.0), np.eye(3)))
    b.add_joint("pivot", sarrus.Revolute("y"), "ground", "bob")
    b._constraints["strange"] = StrangeSpec("strange")
    with pytest.raises(sarrus.ModelError, match="constraint 'strange' has the unknown kind 'Strange'"):
        b.build()
