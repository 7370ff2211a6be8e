"""Reader and writer of sarrus' JSON, which contains the complete description of a mechanism.

docs/files.md has an example, and :func:`schema` returns the grammar. The core reads and writes the text (cpp/model/document.cpp), for C++ and Python.
This module converts a description to plain values (dicts, lists, strings and floats) for the core, and back. The conversion and the schema are
derived from the fields and declared types of the dataclasses in `sarrus.description`. Therefore this file has no list of joints or constraints. If a
class has several kinds (joint type, constraint, shape), the entry "type" of the JSON object names the kind. Pairs (name, value) become a JSON object.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import types
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np

from .. import _core, shapes
from .._arrays import NDArray
from .._files import is_within, relative, replacing
from ..building.builder import Builder
from ..description import Description, TargetSpec
from ..description.contacts import ContactSpec, ShapeSpec
from ..errors import ModelError
from ..laws import Law
from ..mechanism import Mechanism
from ..spatial import Inertia

FORMAT = 1
SCHEMA = "https://json-schema.org/draft/2020-12/schema"

# many robot files contain unphysical inertias: the core accepts them with a warning
_MAKE: dict[type, Callable[..., Any]] = {Inertia: partial(Inertia, check=False)}


def save(robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a mechanism to a file. JSON can represent every mechanism, so that `lossy` has no effect."""
    text = write(robot.description, str(path.absolute().parent))
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
    return [path]


def write(description: Description, beside: str = "") -> str:
    """Return the JSON text of a description. Folders of meshes are written relative to `beside`, the folder of the file.

    >>> import sarrus
    >>> from sarrus.io import complete
    >>> text = complete.write(sarrus.mechanisms.pendulum().description)
    >>> complete.read(text).build() == sarrus.mechanisms.pendulum()
    True
    """

    def moved(mesh: shapes.Mesh) -> shapes.Mesh:
        dirs = tuple(relative(beside, folder) for folder in mesh.package_dirs)
        return replace(mesh, beside=relative(beside, mesh.beside), package_dirs=dirs)

    document = _plain(Description, _with_meshes(description, moved), "")
    return str(_core.write_json({"format": FORMAT, **document}))


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str = "",
    package_dirs: Iterable[str] = (),
) -> Builder:  # fmt: skip
    """Return a builder of the mechanism in a document; `source` is the document's name in errors. `beside` is the folder of the file; `floating_base`
    and `package_dirs` are described in :func:`sarrus.load`.

    Raises ModelError with the line and column of a syntax error, or with the path of a wrong value.
    """
    if floating_base:
        fault = "floating_base does not apply to this format, which has all joints of the bodies"
        raise ModelError(f"{source}: {fault}; omit it")
    if not isinstance(text, str):
        try:
            text = text.decode(json.detect_encoding(text))
        except UnicodeDecodeError as error:
            raise ModelError(f"{source}: cannot decode: {error}") from None
    document: dict[str, Any] = _core.read_json(text, source)
    del document["format"]
    description: Description = _made(Description, document)
    return Builder._of(_with_own_folders(description, beside, tuple(package_dirs)))


# ---- declared types --------------------------------------------------------------------------------------------------


@cache
def _declared(cls: type) -> dict[str, tuple[Any, Any]]:
    """Return a dict: field -> (declared type, default value of the constructor or Parameter.empty)."""
    # types of parts that description/specs.py imports for type checkers only
    late = {"ShapeSpec": ShapeSpec, "ContactSpec": ContactSpec, "Shape": shapes.Shape, "Law": Law}
    hints, parameters = get_type_hints(cls, localns=late), inspect.signature(cls).parameters
    return {f.name: (hints[f.name], parameters[f.name].default) for f in fields(cls)}


def _kinds(hint: Any) -> dict[str, type]:
    """Return the classes that a declared type allows, by name: the members of a union, or the subclasses of a class."""
    below: list[type] = []
    if _is_union(hint):
        below = [c for c in get_args(hint) if _is_class(c)]
    elif _is_class(hint):
        below = _heirs(hint)
    if len(below) == 1:  # X | None: there is no choice between classes
        return {}
    return {c.__name__.removesuffix("Spec"): c for c in below}


def _heirs(cls: type) -> list[type]:
    classes: list[type] = []
    children: list[type] = cls.__subclasses__()
    for child in children:
        if child.__module__.startswith("sarrus.") and child is not TargetSpec:
            classes += [child, *_heirs(child)]
    return classes


def _is_class(hint: Any) -> TypeGuard[type]:
    return isinstance(hint, type) and is_dataclass(hint)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _choices(hint: Any) -> list[Any]:
    """Return the types of a union that a file can contain: all of them except functions and None."""
    parts = get_args(hint) if _is_union(hint) else (hint,)
    return [p for p in parts if p is not type(None) and get_origin(p) is not Callable and p is not Callable]


def _is_numbers(hint: Any) -> bool:
    return get_origin(hint) in (np.ndarray, NDArray)  # NDArray is a separate type from NumPy 2.5 on


def _named_values(hint: Any) -> Any:
    """Return X for the type tuple[tuple[str, X], ...], whose values are JSON objects in the file; None for other types."""
    args = get_args(hint)
    if get_origin(hint) is tuple and args[1:] == (...,) and get_origin(args[0]) is tuple:
        inner = get_args(args[0])
        if len(inner) == 2 and inner[0] is str and inner[1] is not ...:
            return inner[1]
    return None


# ---- plain values ----------------------------------------------------------------------------------------------------


def _plain(hint: Any, value: Any, path: str) -> Any:
    """Return an object as a plain value for JSON; `path` locates the object in error messages."""
    if is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        several = cls not in _choices(hint) or len(_choices(hint)) > 1
        plain = {"type": cls.__name__.removesuffix("Spec")} if several else {}
        for name, (declared, default) in _declared(cls).items():
            # omit defaults that are the same object, such as None; the core omits all other values that equal their default
            if (part := getattr(value, name)) is not default:
                plain[name] = _plain(declared, part, f"{path}.{name}" if path else name)
        return plain
    if isinstance(value, np.ndarray):
        return _plain(Any, value.tolist(), path)
    if (inner := _named_values(hint)) is not None:
        return {name: _plain(inner, x, f"{path}['{name}']") for name, x in value}
    if isinstance(value, tuple | list):
        hints = get_args(_choices(hint)[0]) if hint is not Any else ()
        each = (lambda k: Any) if not hints else (lambda k: hints[0] if hints[1:] == (...,) else hints[k])
        names = [getattr(x, "name", None) for x in value]
        paths = [f"{path}[{k}]" + (f" '{name}'" if name else "") for k, name in enumerate(names)]
        return [_plain(each(k), x, paths[k]) for k, x in enumerate(value)]
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else "inf" if value > 0.0 else "-inf"
    label = "a function" if callable(value) else f"{value!r}"
    raise ModelError(f"{path} is {label}, which a file cannot contain: replace it by numbers, or pickle the mechanism")


def _made(hint: Any, value: Any) -> Any:
    """Return an object of the declared type from a plain value, which the core has checked."""
    choices = _choices(hint)
    if value is None:
        return None
    if hint is Any or _is_numbers(hint):
        return _numbers(value)
    only = choices[0]
    if isinstance(value, dict) and (_is_class(only) or len(choices) > 1):
        kinds = _kinds(hint)
        cls = kinds[value["type"]] if kinds else only
        declared = _declared(cls)
        return _MAKE.get(cls, cls)(**{key: _made(declared[key][0], x) for key, x in value.items() if key != "type"})
    if (inner := _named_values(only)) is not None:
        return tuple((name, _made(inner, x)) for name, x in value.items())
    if get_origin(only) is tuple:
        hints = get_args(only)
        each = hints[:1] * len(value) if hints[1:] == (...,) else hints
        return tuple(map(_made, each, value))
    return float(value) if only is float else value


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(x) for x in value]
    return float(value) if value in ("inf", "-inf") else value


# ---- folders of meshes -----------------------------------------------------------------------------------------------


def _with_own_folders(description: Description, beside: str, package_dirs: tuple[str, ...]) -> Description:
    """Return the description with meshes restricted to the folder of the document and to `package_dirs`.

    If the document names another folder for a mesh, the folder becomes part of the mesh's file name. The mesh is then found only if `package_dirs`
    contains this folder.
    """
    named = [beside or os.curdir, *package_dirs]

    def is_named(folder: str) -> bool:
        return any(os.path.realpath(folder) == os.path.realpath(root) for root in named) or is_within(folder, named)

    def restricted(mesh: shapes.Mesh) -> shapes.Mesh:
        folder, packages = os.path.join(beside, mesh.beside), [os.path.join(beside, x) for x in mesh.package_dirs]
        dirs = (*filter(is_named, packages), *package_dirs)
        if is_named(folder or os.curdir):
            return replace(mesh, beside=folder, package_dirs=dirs)
        file = mesh.file if "://" in mesh.file else os.path.join(mesh.beside, mesh.file)
        return replace(mesh, file=file, beside=beside, package_dirs=dirs)

    return _with_meshes(description, restricted)


def _with_meshes(description: Description, changed: Callable[[shapes.Mesh], shapes.Mesh]) -> Description:
    visuals = list(description.visuals)
    for k, visual in enumerate(visuals):
        if isinstance(visual.shape, shapes.Mesh):
            visuals[k] = replace(visual, shape=changed(visual.shape))
    return replace(description, visuals=tuple(visuals))


# ---- the schema ------------------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the documents; `python -m sarrus.io.complete` prints it.

    >>> from sarrus.io import complete
    >>> complete.schema()["properties"]["format"]
    {'const': 1}
    """
    definitions: dict[str, Any] = {}
    document = _class_schema(Description, definitions)
    document["properties"] = {"$schema": {"type": "string"}, "format": {"const": FORMAT}} | document["properties"]
    document["required"] = ["format", *document["required"]]
    return {"$schema": SCHEMA, "title": "Mechanism of sarrus", **document, "$defs": definitions}


def _class_schema(cls: type, definitions: dict[str, Any], tag: str = "") -> dict[str, Any]:
    declared = _declared(cls)
    properties = {name: _schema(hint, definitions) for name, (hint, _) in declared.items()}
    required = [name for name, (_, default) in declared.items() if default is inspect.Parameter.empty]
    if tag:
        properties, required = {"type": {"const": tag}, **properties}, ["type", *required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    choices = _choices(hint)
    if hint is Any or _is_numbers(hint):
        return _defined("numbers", lambda: _NUMBERS, definitions)
    if _is_union(hint) and len(get_args(hint)) > len(choices) == 1 and type(None) in get_args(hint):
        return {"anyOf": [_schema(choices[0], definitions), {"type": "null"}]}
    if kinds := _kinds(hint):
        each = [_defined(name, partial(_class_schema, c, definitions, name), definitions) for name, c in kinds.items()]
        return {"oneOf": each}
    if not choices:  # a file cannot contain functions
        return {"type": "null"}
    only = choices[0]
    if _is_class(only):
        name = only.__name__.removesuffix("Spec")
        return _defined(name, partial(_class_schema, only, definitions), definitions)
    if (inner := _named_values(only)) is not None:
        return {"type": "object", "additionalProperties": _schema(inner, definitions)}
    if get_origin(only) is tuple:
        hints = get_args(only)
        if hints[1:] == (...,):
            return {"type": "array", "items": _schema(hints[0], definitions)}
        size = len(hints)
        parts = [_schema(h, definitions) for h in hints]
        return {"type": "array", "prefixItems": parts, "minItems": size, "maxItems": size}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[only]}


_NUMBERS = {
    "description": 'Numbers in lists; "inf" and "-inf" for no limit; "x", "-z" for an axis',
    "anyOf": [{"type": ["number", "string", "null"]}, {"type": "array", "items": {"$ref": "#/$defs/numbers"}}],
}


def _defined(name: str, make: Callable[[], dict[str, Any]], definitions: dict[str, Any]) -> dict[str, Any]:
    if name not in definitions:
        definitions[name] = {}  # an empty entry ends the recursion, because a definition may refer to itself
        definitions[name] = make()
    return {"$ref": f"#/$defs/{name}"}


if __name__ == "__main__":
    print(_core.json_in_lines(schema()))
