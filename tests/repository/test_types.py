"""Types and names for type checkers and tab completion. user_code.py, which .ci/run checks, is a user's program."""

import ast
import inspect
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import sarrus
from sarrus import _core
from sarrus.dynamics import options
from sarrus.mechanisms import overconstrained
from sarrus.simulation import setup

MODULES = [
    sarrus, sarrus.control, sarrus.errors, sarrus.floating, sarrus.interop, sarrus.io, sarrus.laws, sarrus.mechanisms, sarrus.formulations,
]  # fmt: skip
# fields of whichever type of joint it is; what a layer above makes
OF_ANY_TYPE = {
    "Builder.add_cable(passive)",
    "Builder.add_transmission(properties)",
    "Builder.set_joint(changes)",
    "IntegrationError.__init__(trajectory)",
}


def functions(thing):
    """Yield (name, declarations) of a public function, or of the public methods of a class and its bases."""
    if inspect.isclass(thing):
        for base in thing.__mro__:
            if base.__module__.startswith("sarrus.") and base.__module__ != "sarrus._core":
                (tree,) = (x for x in parsed(inspect.getsourcefile(base)) if getattr(x, "name", "") == base.__name__)
                yield from by_name(tree.body, f"{thing.__name__}.")
                for name, x in vars(base).items():  # methods that are functions of another module
                    if inspect.isfunction(x) and x.__module__ != base.__module__ and not name.startswith("_"):
                        yield from functions(x)
    elif inspect.isfunction(thing):
        yield from (
            (n, found)
            for n, found in by_name(parsed(inspect.getsourcefile(inspect.unwrap(thing))), "")
            if n == thing.__name__
        )


@cache
def parsed(path):
    return ast.parse(Path(path).read_text(encoding="utf-8")).body


def by_name(body, prefix):
    declared = {}
    for f in body:
        if isinstance(f, ast.FunctionDef) and (not f.name.startswith("_") or f.name == "__init__"):
            declared.setdefault(prefix + f.name, []).append(f)
    for name, found in declared.items():  # what a function with overloads says of itself, nobody sees
        overloads = [f for f in found if any(isinstance(d, ast.Name) and d.id == "overload" for d in f.decorator_list)]
        yield name, overloads or found


def of_any_type(name, f):
    a = f.args
    arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    for x in arguments:
        if x.arg not in ("self", "cls", "robot") and (x.annotation is None or ast.unparse(x.annotation) == "Any"):
            yield f"{name}({x.arg})"
    if f.name != "__init__" and (f.returns is None or ast.unparse(f.returns) == "Any"):
        yield f"{name} returns"


def test_public_functions_have_types():
    public = {id(x): x for module in MODULES for x in (getattr(module, name) for name in module.__all__)}
    declared = [one for x in public.values() for one in functions(x)]
    assert len(declared) > 270
    assert {any_ for name, found in declared for f in found for any_ in of_any_type(name, f)} == OF_ANY_TYPE


def test_choices_are_those_of_the_core():
    assert get_args(setup.MethodName) == ("auto", *_core.methods)
    assert get_args(setup.Stabilisation) == tuple(_core.stabilisations)
    robot, q = sarrus.mechanisms.pendulum(), [0.3]
    for axes in get_args(options.ExpressedIn):
        assert robot.jacobian(q, "tip", expressed_in=axes).shape == (6, 1)
    for kind in get_args(overconstrained.Kind):
        assert sarrus.mechanisms.bricard(kind=kind).nc
    fourbar = sarrus.mechanisms.four_bar()
    for metric in get_args(options.Metric):
        assert fourbar.project_velocity(fourbar.assemble(), [0.0, 0.0, 0.0], metric=metric).shape == (3,)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_completion_shows_public_names(module):
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert not {"Any", "TYPE_CHECKING", "annotations", "np"} & set(dir(module))
