"""Modules that are imported at the first use of one of their names, and dataclasses without compiled methods; ``import sarrus`` takes half the time."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

from ._renamed import raise_renamed

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True, **options: Any
    ):
        """Create a dataclass. Only `__init__` of a frozen one is compiled, because Python compiles each method of a dataclass at each import."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, **options)
        if not frozen or "slots" in options:
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, repr=repr, **options)
        bases = [vars(base)["__dataclass_params__"] for base in cls.__mro__[1:] if "__dataclass_params__" in vars(base)]
        for base in bases:  # a class that is not frozen must not have a frozen base
            base.frozen = False
        cls = dataclasses.dataclass(cls, eq=False, repr=False, **options)
        shown = cls.__dataclass_params__
        shown.frozen, shown.eq, shown.repr = True, eq, repr
        for base in bases:
            base.frozen = True
        cls._fields = frozenset(field.name for field in dataclasses.fields(cls))
        methods = {"__setattr__": _set_once, "__delattr__": _refuse_deletion}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            names = [field.name for field in dataclasses.fields(cls) if field.compare]
            values = attrgetter(*names) if names else lambda _: ()
            methods["__eq__"] = lambda a, b: values(a) == values(b) if b.__class__ is a.__class__ else NotImplemented
            methods["__hash__"] = lambda a: hash(values(a))
        for name, method in methods.items():
            if vars(cls).get(name) is None:
                setattr(cls, name, method)
        return cls


def _set_once(self: Any, name: str, value: object) -> None:
    """Set a field of a frozen dataclass, which only its `__init__` does."""
    if name in self.__dict__ or name not in self._fields:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


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
