"""The mechanisms of the gallery, each made once."""

import inspect

import pytest

import sarrus


def made(name):
    """A mechanism of the gallery, of three members where it asks how many."""
    make = getattr(sarrus.mechanisms, name)
    return make(*(3 for p in inspect.signature(make).parameters.values() if p.default is p.empty))


every = pytest.mark.parametrize(
    "mechanism", [made(name) for name in sarrus.mechanisms.__all__], ids=sarrus.mechanisms.__all__
)
