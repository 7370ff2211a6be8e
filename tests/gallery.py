"""The mechanisms of the gallery, each made once."""

import inspect

import pytest

import sarrus

# wherever it is, its rows say that more moves than does
SHAKY = ("wren_platform",)


def made(name):
    """A mechanism of the gallery, of three members where it asks how many."""
    make = getattr(sarrus.mechanisms, name)
    return make(*(3 for p in inspect.signature(make).parameters.values() if p.default is p.empty))


def of_the_gallery(names):
    return pytest.mark.parametrize("mechanism", [made(name) for name in names], ids=names)


every = of_the_gallery(sarrus.mechanisms.__all__)
every_steady = of_the_gallery([name for name in sarrus.mechanisms.__all__ if name not in SHAKY])
