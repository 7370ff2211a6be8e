"""Frozen dataclasses of sarrus, whose methods are not compiled, behave as those of Python."""

import copy
import dataclasses
import inspect

import pytest

import sarrus
from sarrus import _deferred


@pytest.mark.parametrize(
    "options", [{}, {"eq": False}, {"repr": False}, {"eq": False, "repr": False, "kw_only": True}, {"slots": True}]
)
def test_frozen_dataclasses_behave_as_those_of_python(options):
    def kinds(make):
        @make(frozen=True, **options)
        class First:
            a: int
            b: object = dataclasses.field(default=2, compare=False)

        @make(frozen=True, **options)
        class Second(First):
            c: tuple = ()

            def __str__(self):
                return "second"

        return First, Second

    def outcome(action, *arguments):
        try:
            return action(*arguments)
        except (AttributeError, TypeError) as error:
            return type(error), str(error)

    facts = []
    for make in (_deferred.dataclass, dataclasses.dataclass):
        x, y, z = (kind(a=1, b=b) for kind, b in zip(kinds(make) + kinds(make)[:1], (3, 3, 3), strict=True))
        other = type(x)(a=1, b=4)
        facts.append([
            x == other, x != type(x)(a=2), x == y, x == z, (hash(x) == hash(other)), str(y), repr(x).partition(" at ")[0],
            inspect.signature(type(y)), [field.name for field in dataclasses.fields(y)], dataclasses.replace(y, c=(1,)).c,
            copy.deepcopy(y).b, outcome(vars, y), *(outcome(setattr, y, name, 1) for name in "abc"), outcome(delattr, y, "a"),
            type(y).__match_args__,
        ])  # fmt: skip
    assert facts[0] == facts[1]


def test_subclasses_and_class_variables():
    @dataclasses.dataclass(frozen=True)
    class Coloured(sarrus.shapes.Sphere):
        colour: str = "red"

    assert Coloured(0.1).colour == "red"
    with pytest.raises(dataclasses.FrozenInstanceError):
        sarrus.Revolute("x").nq = 5
