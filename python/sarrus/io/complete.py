"""sarrus' own form: JSON that holds everything a description does. docs/files.md has an example, :func:`schema` is the grammar.

Reading, writing and the schema all follow the fields of the dataclasses in `sarrus.description` and the types that these are declared
with; there is no list of joints or constraints here. A field that is as the class has it by default is left out. An object whose class
has several kinds (a joint's type, a constraint, a shape) tells which in "type". Pairs (name, value) make an object.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np

from .._arrays import NDArray
from .._files import is_within, relative, replacing
from ..building.builder import Builder
from ..description import Description, TargetSpec
from ..errors import ModelError, ShapeError, did_you_mean, printable
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..spatial import Inertia, Rotation
from .document import no_body_has

FORMAT = 1
SCHEMA = "https://json-schema.org/draft/2020-12/schema"
WIDTH = 120

# what many real robots have is kept, with a warning
_MAKE: dict[type, Callable[..., Any]] = {Inertia: partial(Inertia, check=False)}


def save(robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a file; nothing is left out, whatever `lossy` says."""
    text = write(robot.description, str(path.absolute().parent))
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
    return [path]


def write(description: Description, beside: str = "") -> str:
    """The document of a description; folders of meshes are told from the folder `beside`, where it is to lie.

    >>> import sarrus
    >>> from sarrus.io import complete
    >>> text = complete.write(sarrus.mechanisms.pendulum().description)
    >>> complete.read(text).build() == sarrus.mechanisms.pendulum()
    True
    """
    plain = _plain(Description, _with_folders(description, partial(relative, beside)), "")
    return _text({"format": FORMAT, **plain}) + "\n"


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str = "",
    package_dirs: Iterable[str] = (),
) -> Builder:  # fmt: skip
    """Builder of the mechanism in a document; `source` is what errors call it. The other arguments are those of :func:`sarrus.load`.

    Raises ModelError, which says where: line and column of what is no JSON, else the path to it.
    """
    document = _parsed(text, source)
    with _at(source):
        if floating_base:
            raise ModelError(
                "floating_base is for formats that leave it open; this one says how its bodies hang together"
            )
        if not isinstance(document, dict) or "format" not in document:
            raise ModelError('is no mechanism in sarrus\' own form: an object with "format": 1 is wanted')
        number = document.pop("format")
        document.pop("$schema", None)  # which editors look for
        if number != FORMAT or isinstance(number, bool):
            newer = isinstance(number, int) and number > FORMAT
            cure = "a newer sarrus has written it" if newer else f"{FORMAT} is the format that is read"
            raise ModelError(f'"format" is {_shown(number)}: {cure}')
        description = _with_own_folders(_made(Description, document, ""), beside, tuple(package_dirs))
        builder = Builder._of(description)
        for body in description.bodies:
            fault = no_body_has(body.inertia)
            if fault and not any(fault in warning for warning in builder.warnings):
                builder.warnings.append(f"body '{body.name}': {fault}")
    return builder


# ---- what a declared type says ---------------------------------------------------------------------------------------


@cache
def _declared(cls: type) -> dict[str, tuple[Any, Any]]:
    """Field -> its declared type, and the default that its constructor has, or Parameter.empty."""
    hints, parameters = get_type_hints(cls), inspect.signature(cls).parameters
    return {f.name: (hints[f.name], parameters[f.name].default) for f in fields(cls)}


def _kinds(hint: Any) -> dict[str, type]:
    """Name -> class where the declared type leaves several open: those of a union, or all that inherit from one."""
    below: list[type] = []
    if _is_union(hint):
        below = [c for c in get_args(hint) if _is_class(c)]
    elif _is_class(hint):
        below = _heirs(hint)
    if len(below) == 1:  # X | None
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
    """What may stand for the declared type in a file; functions cannot."""
    parts = get_args(hint) if _is_union(hint) else (hint,)
    return [p for p in parts if p is not type(None) and get_origin(p) is not Callable and p is not Callable]


def _is_numbers(hint: Any) -> bool:
    return get_origin(hint) in (np.ndarray, NDArray)  # a name of its own from NumPy 2.5 on


def _named_values(hint: Any) -> Any:
    """X of tuple[tuple[str, X], ...]: names to values, an object in the file; else None."""
    args = get_args(hint)
    if get_origin(hint) is tuple and args[1:] == (...,) and get_origin(args[0]) is tuple:
        inner = get_args(args[0])
        if len(inner) == 2 and inner[0] is str and inner[1] is not ...:
            return inner[1]
    return None


# ---- writing ---------------------------------------------------------------------------------------------------------


def _plain(hint: Any, value: Any, path: str) -> Any:
    """The value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        cls, plain = type(value), {}
        if cls not in _choices(hint) or len(_choices(hint)) > 1:
            plain["type"] = cls.__name__.removesuffix("Spec")
        for name, (declared, default) in _declared(cls).items():
            part = getattr(value, name)
            if not _same(part, default):
                plain[name] = _plain(declared, part, f"{path}.{name}" if path else name)
        return plain
    if isinstance(value, np.ndarray):
        return _plain(Any, value.tolist(), path)
    if (of := _named_values(hint)) is not None:
        return {name: _plain(of, x, f"{path}['{name}']") for name, x in value}
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
    what = "a function" if callable(value) else f"{value!r}"
    raise ModelError(f"{path} is {what}, which no file can hold: give numbers in its place, or pickle the mechanism")


def _same(value: Any, default: Any) -> bool:
    if default is inspect.Parameter.empty:
        return False
    if isinstance(value, np.ndarray):
        default = default.matrix if isinstance(default, Rotation) else default
        usual = None if default is None else np.broadcast_to(np.array(default, float), value.shape)
        return usual is not None and value.tobytes() == usual.tobytes()
    return type(value) is type(default) and bool(value == default)


def _text(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON that people can read: what fits into a line stands in one."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(line) + indent + before <= WIDTH or not value or not isinstance(value, dict | list):
        return line
    lead, end = " " * (indent + 2), " " * indent
    if isinstance(value, list):
        parts = [_text(x, indent + 2) for x in value]
        return "[\n" + ",\n".join(lead + part for part in parts) + f"\n{end}]"
    keys = [json.dumps(key, ensure_ascii=False) + ": " for key in value]
    parts = [key + _text(x, indent + 2, len(key)) for key, x in zip(keys, value.values(), strict=True)]
    return "{\n" + ",\n".join(lead + part for part in parts) + f"\n{end}}}"


# ---- reading ---------------------------------------------------------------------------------------------------------


def _made(hint: Any, value: Any, path: str) -> Any:
    """What the value in the file stands for, by the declared type."""
    choices = _choices(hint)
    if value is None and len(get_args(hint)) > len(choices):
        return None
    if hint is Any or _is_numbers(hint):
        return _numbers(value, path)
    _check(bool(choices), path, "null", value)
    if kinds := _kinds(hint):
        return _object(kinds, value, path)
    only = choices[0]
    if _is_class(only):
        return _object(only, value, path)
    if (of := _named_values(only)) is not None:
        _check(isinstance(value, dict), path, "an object", value)
        return tuple((name, _made(of, x, f"{path}['{name}']")) for name, x in value.items())
    if get_origin(only) is tuple:
        return _tuple(get_args(only), value, path)
    if only is float:
        return _number(value, path)
    names = {str: "a text", bool: "true or false", int: "an integer"}
    _check(type(value) is only, path, names[only], value)
    return value


def _tuple(hints: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    _check(isinstance(value, list), path, "a list", value)
    if hints[1:] != (...,):
        _check(len(value) == len(hints), path, f"a list of {len(hints)}", value)
    else:
        hints = hints[:1] * len(value)
    names = [x.get("name") if isinstance(x, dict) else None for x in value]
    paths = [f"{path}[{k}]" + (f" '{name}'" if isinstance(name, str) else "") for k, name in enumerate(names)]
    return tuple(map(_made, hints, value, paths))


def _object(kinds: dict[str, type] | type, value: Any, path: str) -> Any:
    _check(isinstance(value, dict), path, "an object", value)
    entries = dict(value)
    if isinstance(kinds, dict):
        name = entries.pop("type", None)
        if not isinstance(name, str) or name not in kinds:
            _fail(path, f'has the "type" {_shown(name)}{did_you_mean(name, kinds)}')
        cls = kinds[name]
    else:
        cls = kinds
    declared = _declared(cls)
    for key in entries:
        if key not in declared:
            _fail(path, f"has an unknown key {_shown(key)}{did_you_mean(key, declared)}")
    for key, (_, default) in declared.items():
        if key not in entries and default is inspect.Parameter.empty:
            _fail(path, f'has no "{key}"')
    parts = {key: _made(declared[key][0], x, f"{path}.{key}" if path else key) for key, x in entries.items()}
    with _at(path):
        return _MAKE.get(cls, cls)(**parts)


def _numbers(value: Any, path: str) -> Any:
    """Numbers in lists, as deep as they are; constructors say how many they want, and know axes by name."""
    if isinstance(value, list):
        return [_numbers(x, f"{path}[{k}]") for k, x in enumerate(value)]
    return value if value is None or (isinstance(value, str) and value not in ("inf", "-inf")) else _number(value, path)


def _number(value: Any, path: str) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    _check(isinstance(value, int | float) and not isinstance(value, bool), path, "a number", value)
    try:
        return float(value)
    except OverflowError:
        _fail(path, f"is {_shown(value)}, which is not finite")


def _check(fine: bool, path: str, expected: str, value: Any) -> None:
    if not fine:
        _fail(path, f"wants {expected}, not {_shown(value)}")


def _fail(path: str, message: str) -> NoReturn:
    raise ModelError(_short(printable(f"{path} {message}" if path else message)))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:60] + " …"


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Inside, errors begin with the place."""
    try:
        yield
    except (ModelError, ShapeError, KeyError) as error:
        raise ModelError(_short(f"{place}: {error}" if place else str(error))) from None
    except (OverflowError, TypeError) as error:
        raise ModelError(_short(f"{place}: {error}")) from None


def _short(message: str) -> str:
    """Names in a document may have any length and hold anything, and what an error tells of them has not."""
    message = printable(message)
    return message if len(message) <= 4000 else f"{message[:3000]} … {message[-900:]}"


def _parsed(text: str | bytes, source: str) -> Any:
    def constant(name: str) -> NoReturn:
        raise ModelError(f'{source}: {name} is no number of JSON; without a limit is "inf" or "-inf"')

    def number(digits: str) -> float:
        if not math.isfinite(float(digits)):
            raise ModelError(f"{source}: {digits[:60]} is beyond what a number can be")
        return float(digits)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique_pairs = dict(pairs)
        if len(unique_pairs) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ModelError(f"{source}: the key {_shown(twice)} stands twice in one object")
        return unique_pairs

    try:
        return json.loads(text, parse_constant=constant, parse_float=number, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ModelError(f"{source}:{error.lineno}:{error.colno}: not well-formed JSON: {error.msg}") from None
    except ModelError:
        raise
    except RecursionError:
        raise ModelError(f"{source}: is nested too deeply for a model") from None
    except ValueError as error:  # undecodable bytes, integers of thousands of digits
        raise ModelError(f"{source}: cannot decode: {error}") from None


# ---- folders of meshes -----------------------------------------------------------------------------------------------


def _with_folders(description: Description, moved: Callable[[str], str]) -> Description:
    """The description, its meshes looked for from other folders."""

    def elsewhere(mesh: Mesh) -> Mesh:
        return replace(mesh, beside=moved(mesh.beside), package_dirs=tuple(map(moved, mesh.package_dirs)))

    return _with_meshes(description, elsewhere)


def _with_own_folders(description: Description, beside: str, package_dirs: tuple[str, ...]) -> Description:
    """The description, whose meshes may lie in the folder of the document and in those that the user names.

    A folder elsewhere, that the document names, is part of a mesh's name then: it is found there if the user names that folder too.
    """
    named = [beside or os.curdir, *package_dirs]

    def is_named(folder: str) -> bool:
        return any(os.path.realpath(folder) == os.path.realpath(root) for root in named) or is_within(folder, named)

    def here(mesh: Mesh) -> Mesh:
        folder, packages = os.path.join(beside, mesh.beside), [os.path.join(beside, x) for x in mesh.package_dirs]
        dirs = (*filter(is_named, packages), *package_dirs)
        if is_named(folder or os.curdir):
            return replace(mesh, beside=folder, package_dirs=dirs)
        file = mesh.file if "://" in mesh.file else os.path.join(mesh.beside, mesh.file)
        return replace(mesh, file=file, beside=beside, package_dirs=dirs)

    return _with_meshes(description, here)


def _with_meshes(description: Description, changed: Callable[[Mesh], Mesh]) -> Description:
    visuals = tuple(
        replace(visual, shape=changed(visual.shape)) if isinstance(visual.shape, Mesh) else visual
        for visual in description.visuals
    )
    return replace(description, visuals=visuals)


# ---- the schema ------------------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the documents; `python -m sarrus.io.complete` prints it.

    >>> from sarrus.io import complete
    >>> complete.schema()["properties"]["format"]
    {'const': 1}
    """
    definitions: dict[str, Any] = {}
    whole = _class_schema(Description, definitions)
    whole["properties"] = {"$schema": {"type": "string"}, "format": {"const": FORMAT}} | whole["properties"]
    whole["required"] = ["format", *whole["required"]]
    return {"$schema": SCHEMA, "title": "A mechanism in sarrus' own form", **whole, "$defs": definitions}


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
    if not choices:  # a function, or nothing
        return {"type": "null"}
    only = choices[0]
    if _is_class(only):
        name = only.__name__.removesuffix("Spec")
        return _defined(name, partial(_class_schema, only, definitions), definitions)
    if (of := _named_values(only)) is not None:
        return {"type": "object", "additionalProperties": _schema(of, definitions)}
    if get_origin(only) is tuple:
        hints = get_args(only)
        if hints[1:] == (...,):
            return {"type": "array", "items": _schema(hints[0], definitions)}
        size = len(hints)
        parts = [_schema(h, definitions) for h in hints]
        return {"type": "array", "prefixItems": parts, "minItems": size, "maxItems": size}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[only]}


_NUMBERS = {
    "description": 'Numbers in lists; "inf" and "-inf" where there is no limit; "x", "-z" for an axis',
    "anyOf": [{"type": ["number", "string", "null"]}, {"type": "array", "items": {"$ref": "#/$defs/numbers"}}],
}


def _defined(name: str, make: Callable[[], dict[str, Any]], definitions: dict[str, Any]) -> dict[str, Any]:
    if name not in definitions:
        definitions[name] = {}  # it may hold itself
        definitions[name] = make()
    return {"$ref": f"#/$defs/{name}"}


if __name__ == "__main__":
    print(_text(schema()))
