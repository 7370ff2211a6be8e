"""Mechanisms of the gallery, each created once."""

import inspect

import pytest

import sarrus

# in every configuration, its rows allow more velocities than it has finite motions
SHAKY = ("wren_platform",)


def made(name):
    """Return a mechanism of the gallery, with three members if the number is a required argument."""
    make = getattr(sarrus.mechanisms, name)
    return make(*(3 for p in inspect.signature(make).parameters.values() if p.default is p.empty))


def of_the_gallery(names):
    return pytest.mark.parametrize("mechanism", [made(name) for name in names], ids=names)


every = of_the_gallery(sarrus.mechanisms.__all__)
every_steady = of_the_gallery([name for name in sarrus.mechanisms.__all__ if name not in SHAKY])
