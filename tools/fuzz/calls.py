"""Programs that call the public functions of the package."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib
import inspect
import pkgutil
import random
import re
import types
from pathlib import Path
from typing import Any

import sarrus
import sarrus.design

from .pieces import GALLERY


def _tables() -> dict[str, tuple[str, ...]]:
    text = Path(__file__).with_name("arguments.txt").read_text(encoding="utf-8")
    text = re.sub(r"\n +", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    rows = [line.split(" :", 1) for line in text.strip().splitlines()]
    return {name: tuple(x.strip() for x in values.split(" | ")) for names, values in rows for name in names.split()}


RIGHT = _tables()
ELEMENTS = [name for name in sarrus.control.__all__ if hasattr(getattr(sarrus.control, name), "_kind")] + [
    "TaskControl"
]
SPOILED, ANYTHING = RIGHT.pop("SPOILED"), RIGHT.pop("ANYTHING")
# arguments whose large values cause long computations, which are not hangs
COUNTS = {"n", "stages", "starts", "attempts", "size", "every", "frames_per_second", "speed", "max_step", "min_step"}
FORCED = {"open_browser": "False", "block": "False"}
NEEDED = {
    "simulate": ("q", "v", "duration"),
    "assembly_modes": ("fixed",),
    # optional arguments that limit the work
    "design": ("starts", "improved"),
    "tolerances": ("samples",),
    "calibrate": ("iterations",),
    "identify_runs": ("iterations", "horizon"),
    "exciting_motion": ("samples", "rounds"),
    "generate": ("most_statements",),
}
# not called: functions that serve until Ctrl-C, that have a fuzzer of their own or that run a compiler; and classes that only the library constructs
SKIPPED = {
    "View.wait",
    "main",
    "compiled",
    "Compiled",
    "jax_functions",
    "Joint",
    "Kinematics",
    "Constraint",
    "JointWrenches",
    "Sweep",
    "Variants",
}
# methods of objectives, which only `design` calls
SKIPPED |= {f"{name}.{method}" for name in sarrus.design.__all__ for method in ("rows", "derivatives")}


# operations of every object
OF_ALL = (
    "repr(x)", "str(x)", "hash(x)", "copy.copy(x)", "copy.deepcopy(x)", "pickle.loads(pickle.dumps(x))", "x == copy.copy(x)", "x != m",
)  # fmt: skip


class Target:
    """Target of a call: a function, a constructor, a method or property of a class, or an operation of all objects."""

    def __init__(self, name: str, value: Any, owner: type | None, template: str) -> None:
        self.name, self.value, self.owner, self.template = name, value, owner, template
        self.key = f"{owner.__name__}.{name}" if owner else name
        self.plain = False  # True for a constructor that only stores its arguments
        function = value.func if isinstance(value, functools.cached_property) else getattr(value, "fget", None) or value
        self.doc = (getattr(function, "__doc__", "") or "") + ((owner and owner.__doc__) or "")
        parameters: list[inspect.Parameter] = []
        self.returns = ""  # annotation of the returned value
        if "(" in template and "{}" in template:
            with contextlib.suppress(TypeError, ValueError):
                signature = inspect.signature(value)
                parameters, self.returns = list(signature.parameters.values()), str(signature.return_annotation)
        bound = owner is not None and not isinstance(
            inspect.getattr_static(owner, name, None), (classmethod, staticmethod)
        )
        self.parameters = (
            parameters[1:] if bound and parameters and parameters[0].name in ("self", "robot") else parameters
        )

    def call(self, arguments: dict[str, str]) -> str:
        """Return the expression of a call with these arguments, parameter -> expression."""
        by_place = {p.name for p in self.parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
        if any(p.kind == p.VAR_POSITIONAL and p.name in arguments for p in self.parameters):
            by_place |= {p.name for p in self.parameters if p.kind == p.POSITIONAL_OR_KEYWORD}
        return self.template.format(", ".join(t if n in by_place else f"{n}={t}" for n, t in arguments.items()))


# adapters, whose arguments are arrays of other libraries that may not be installed, and functions that run a compiler; separate tests check
# their errors
OTHERS = {"casadi", "crocoddyl", "cuda", "gymnasium", "jax", "torch", "works"}


def modules() -> list[types.ModuleType]:
    """Return the modules of the package, except private ones and OTHERS."""
    names = [info.name for info in pkgutil.walk_packages(sarrus.__path__, "sarrus.") if "._" not in info.name]
    return [sarrus, *(importlib.import_module(name) for name in names if name.split(".")[1] not in OTHERS)]


@functools.cache
def surface() -> dict[str, Target]:
    """Return all public targets, found by inspection: names in `__all__` of the modules, and members of their classes."""
    found: dict[int, tuple[str, Any]] = {}
    for module in modules():
        if module.__name__.startswith("sarrus.io."):  # modules of formats, which `load` calls
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value) and str(getattr(value, "__module__", "")).startswith("sarrus"):
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    targets: dict[str, Target] = {}
    for path, value in found.values():
        short = path.rpartition(".")[2]
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        # two classes, a shape and a surface, may have the same name
        if short in targets and dataclasses.is_dataclass(value):
            continue
        if short in targets:  # the name is already used by another module
            short = path.removeprefix("sarrus.")
        targets[short] = Target(short, value, None, f"{path}({{}})")
        targets[short].plain = dataclasses.is_dataclass(value) and not hasattr(value, "__post_init__")
        if not isinstance(value, type):
            continue
        for name in dir(value):
            home = next((c for c in value.__mro__ if name in vars(c)), object)
            if name.startswith("_") or not home.__module__.startswith("sarrus"):
                continue
            static = inspect.getattr_static(value, name)
            bound = isinstance(static, (classmethod, staticmethod))
            called = callable(getattr(value, name, None)) and not isinstance(
                static, (property, functools.cached_property)
            )
            template = (f"{path}.{name}" if bound else f"x.{name}") + ("({})" if called else "")
            member = Target(name, getattr(value, name) if called else static, value, template)
            targets[f"{short}.{name}"] = member
        for each in OF_ALL:
            targets[f"{each}: {short}"] = Target(each, value, value, each)
    return targets


class Calls:
    """Generator of programs that call public targets; results are stored and used in later calls."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.targets = rng, surface()
        self.hostility, self.optional = (
            0.0,
            0.3,
        )  # fractions of hostile arguments, and of optional arguments that are passed
        self.classes = {
            t.value.__name__: t.value for t in self.targets.values() if t.owner is None and isinstance(t.value, type)
        }
        self.pool: dict[type, list[list[str]]] = {}
        data = {t.value for t in self.targets.values() if t.plain}
        asked = [
            t
            for name, t in self.targets.items()
            if name not in SKIPPED and not t.plain and not isinstance(t.value, enum.EnumType)
        ]
        self.asked = [t for t in asked if (t.owner not in data or self.makers(t.owner)) and "Compiled" not in t.key]
        self.weights = [4 if t.parameters else 1 for t in self.asked]

    def makers(self, owner: type) -> list[Target]:
        """Return the functions, and methods of a mechanism, that return an object of this class according to their annotation."""
        word = re.compile(rf"\b{owner.__name__}\b")
        found = [t for t in self.targets.values() if t.parameters and t.owner in (None, sarrus.Mechanism)]
        return [t for t in found if not t.plain and word.search(t.returns)]

    def program(self) -> tuple[list[str], Target]:
        rng, target = self.rng, self.rng.choices(self.asked, self.weights)[0]
        self.about = rng.choice(GALLERY)
        self.hostility = rng.choice((0.0, 0.1, 0.4))
        lines = self.receiver(target.owner) if re.search(r"\bx\b", target.template) and target.owner else []
        if target.owner is sarrus.Builder:
            several = [t for t in self.targets.values() if t.owner is sarrus.Builder and "{}" in t.template]
            lines += [self.call(t) for t in rng.choices(several, k=rng.randrange(3))]
        lines.append(f"r = {self.call(target)}")
        if target.owner is sarrus.Builder:
            lines.append("touch(x.build())")
        text = "\n".join(lines)
        header = []
        if re.search(r"\b[qvam]\b", text) and not text.startswith("m ="):
            header.append(f"m = mechanism({self.about!r})")
        if re.search(r"\b[qva]\b", text) and "q, v, a =" not in text:
            lead = rng.choice(("()", "()", "()", "()", "(5,)", "(0,)", "(2, 3)"))
            header.append(f"q, v, a = state(m, {lead}, {rng.random() < 0.2})")
        at = 1 if lines[0].startswith("m =") else 0
        return lines[:at] + header + lines[at:], target

    def receiver(self, owner: type) -> list[str]:
        """Return lines of code that create an object x of this class: from an earlier result, or by a call of a function or of the constructor."""
        rng = self.rng
        if rng.random() < 0.03:
            return [f"x = {self.path(owner)}.__new__({self.path(owner)})"]
        if owner is sarrus.Mechanism:
            return [f"m = x = mechanism({self.about!r})"]
        if owner is sarrus.Builder:
            return ["x = builder()"]
        if owner in self.pool and rng.random() < 0.7:
            return list(rng.choice(self.pool[owner]))
        if owner.__name__ in RIGHT:
            return [f"m = mechanism({self.about!r})", "q, v, a = state(m)", f"x = {rng.choice(RIGHT[owner.__name__])}"]
        maker, calm = rng.choice(self.makers(owner) or [self.targets[owner.__name__]]), self.hostility
        self.hostility = 0.0
        made = self.call(maker).replace("x.", "m.", 1) if maker.owner is sarrus.Mechanism else self.call(maker)
        self.hostility = calm
        return [f"m = mechanism({self.about!r})", "q, v, a = state(m)", f"x = {made}"]

    def path(self, owner: type) -> str:
        return self.targets[owner.__name__].template.removesuffix("({})")

    def call(self, target: Target) -> str:
        return target.call(self.arguments(target))

    def arguments(self, target: Target) -> dict[str, str]:
        """Return the arguments to pass, parameter -> expression."""
        rng, arguments = self.rng, {}
        for p in target.parameters:
            if p.kind == p.VAR_KEYWORD:
                continue
            required = p.default is p.empty and p.kind != p.VAR_POSITIONAL
            required |= p.name in NEEDED.get(target.name, ())
            if not required and p.name not in FORCED and rng.random() > self.optional:
                continue
            if required and rng.random() < 0.02 * (self.hostility > 0):
                continue
            arguments[p.name] = FORCED.get(p.name) or (self.hostile if rng.random() < self.hostility else self.right)(
                p, target
            )
        if rng.random() < 0.02 * self.hostility:
            arguments["unheard_of"] = "1"
        return arguments

    def right(self, p: inspect.Parameter, target: Target) -> str:
        annotation = str(getattr(p.annotation, "__name__", p.annotation))
        owner = target.owner.__name__ if target.owner else ""
        keys = (f"{owner}.{target.name}.{p.name}", f"{owner}.{p.name}", f"{target.name}.{p.name}")
        words = re.findall(r"\w+", annotation)
        keys += ("bool",) if words == ["bool"] else (p.name, *words)
        if p.name == "controller" and self.rng.random() < 0.5:
            return self.call(self.targets[self.rng.choice(ELEMENTS)])
        for key in keys:
            if key in RIGHT and not (key == p.name and "float" in words and isinstance(p.default, float)):
                return self.rng.choice(RIGHT[key])
        if isinstance(p.default, (int, float)) and not isinstance(p.default, bool):
            return repr(p.default * self.rng.choice((1, 1, 1.1, 0.9)))
        for word in words:
            if word in self.classes and self.classes[word] is not target.value:
                return self.call(self.targets[word])
        return repr(p.default) if p.default is not p.empty else self.rng.choice(ANYTHING)

    def hostile(self, p: inspect.Parameter, target: Target) -> str:
        if p.name in COUNTS:
            return self.rng.choice(
                ("None", "-1", "0", "1.5", "'x'", "math.nan", "True", "(-1,)", "(2, 'x')", "0.0", "-0.1", "Hostile()")
            )
        if p.name == "threads":
            return self.rng.choice(("0", "-1", "2**31", "2**63", "10**6", "1.5", "None", "True", "'2'"))
        if self.rng.random() < 0.5:
            return self.rng.choice(ANYTHING)
        right = self.right(p, target)
        return self.rng.choice(SPOILED).replace("{x}", f"({right})" if right.startswith("lambda") else right)

    def keep(self, lines: list[str], r: Any) -> None:
        """Store the lines of code that created an object of a public class."""
        owner = type(r)
        if self.classes.get(owner.__name__) is owner and len(lines) <= 6 and lines[-1].startswith("r = "):
            pool = self.pool.setdefault(owner, [])
            made = [re.sub(r"\bx\b", "y", line) for line in lines[:-1]] + [
                "x = " + re.sub(r"\bx\b", "y", lines[-1][4:])
            ]
            pool.append([line for line in made if not line.startswith("touch")])
            del pool[:-20]
