"""Modules that are imported at the first use of one of their names: an import of sarrus takes half the time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._renamed import raise_renamed


class Deferred:
    """A module of sarrus whose functions a class takes for methods: each loads the module when it is looked up first."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Method:
        return Method(self._module, name)


class Method:
    """A function of a deferred module, which takes its own place in the class that names it."""

    def __init__(self, module: str, function: str) -> None:
        self._module, self._function = module, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        function = self._loaded()
        setattr(self._owner, self._name, function)
        return function.__get__(instance, owner)

    def __call__(self, *arguments: Any) -> Any:
        return self._loaded()(*arguments)

    def _loaded(self) -> Any:
        return getattr(importlib.import_module(f"sarrus.{self._module}"), self._function)


def attributes(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package: the names of its modules, and modules by their own names."""
    module_of = {name: module for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in module_of:
            raise_renamed(package, name)
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name)
        module = importlib.import_module(f"{package}.{module_of[name]}")
        value = module if name == module_of[name] else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
