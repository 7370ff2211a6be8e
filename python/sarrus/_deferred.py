"""Modules that are imported at the first use of one of their names, which halves the time of ``import sarrus``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._renamed import raise_renamed


class Deferred:
    """Reference to a module of sarrus whose functions serve as methods of a class. The first access to such a method imports the module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Method:
        return Method(self._module, name)


class Method:
    """Descriptor for a function of a deferred module; the first access imports the function and replaces the descriptor in its class."""

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
    """Return the ``__getattr__`` of a package, which imports the modules, and the names in them, at first access."""
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
