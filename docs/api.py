"""The API reference: pages that are written from the package, and the check that every public name stands on one of them."""

import importlib
import inspect
import re
import sys

import sarrus
from sarrus.io import formats

for _name in dir(sarrus.Mechanism):
    getattr(sarrus.Mechanism, _name)  # methods of deferred modules take their places

MODULES = sorted(
    {name for name in sarrus.__all__ if inspect.ismodule(getattr(sarrus, name))}
    | {
        "spatial",
        "calibration",
        "cams",
        "cuda",
        "design",
        "dimensions",
        "generation",
        "gymnasium",
        "identification",
        "jax",
    }
)
GROUPS = {  # pages of what `sarrus` itself holds; what no other page names is on the last one
    "building": ("Building a mechanism", ["Builder", "from_dh", "from_screws", "from_sdof", "from_spacedyn", "load", "loads", "load_builder"]),
    "joints": ("Joint types", ["Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Gimbal", "Spherical", "Planar",
                               "Free", "Fixed"]),
    "simulation": ("Simulation and equilibrium", ["simulate", "simulate_many", "Event", "Trajectory", "equilibrium"]),
    "showing": ("Pictures and the viewer", ["view", "Skeleton"]),
    "spatial_classes": ("Poses and inertias", ["Transform", "Rotation", "Inertia"]),
}  # fmt: skip
METHODS = {  # pages of the class Mechanism, by the module in which a function stands
    "dynamics": ("Mechanism: functions of a state", "sarrus.dynamics"),
    "positions": ("Mechanism: positions and loops", "sarrus.analysis.assembly"),
    "mobility": ("Mechanism: mobility", "sarrus.analysis.mobility"),
    "actuation": ("Mechanism: actuation", "sarrus.analysis.actuation"),
    "linearization": ("Mechanism: linear equations", "sarrus.analysis.linearization"),
    "contacts": ("Mechanism: contact", "sarrus.analysis.contacts"),
}


def public(module):
    """Public names of a module, in its order."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    own = vars(module).items()
    return [
        n
        for n, x in own
        if not n.startswith("_")
        and inspect.isclass(x)
        and x.__module__ == module.__name__
    ]


def methods():
    """Public members of Mechanism to the module where they stand."""
    members = {}
    for owner in reversed(sarrus.Mechanism.__mro__):
        members |= {
            name: home(owner, name, x)
            for name, x in vars(owner).items()
            if not name.startswith("_")
        }
    return members


def home(owner, name, member):
    """Of a method the module of its function; those of the core do not tell it."""
    if inspect.isfunction(member):
        return member.__module__
    modules = [
        m
        for path, m in sys.modules.items()
        if path.startswith("sarrus.analysis.") and vars(m).get(name) is member
    ]
    return modules[0].__name__ if modules else owner.__module__


def names():
    """Every public name with its path, as the pages' targets are called."""
    for name in public(sarrus):
        if not inspect.ismodule(getattr(sarrus, name)):
            yield f"sarrus.{name}"
    yield from (f"sarrus.Mechanism.{name}" for name in methods())
    for module in MODULES:
        yield from (
            f"sarrus.{module}.{name}"
            for name in public(importlib.import_module(f"sarrus.{module}"))
        )


def page(title, directives, text=""):
    """Markdown with directives of autodoc."""
    return (
        f"# {title}\n\n{text}\n\n```{{eval-rst}}\n" + "\n\n".join(directives) + "\n```\n"
    )


def directive(path, thing):
    """The one of autodoc that shows it."""
    if inspect.isclass(thing):
        options = "\n   :members:\n   :inherited-members: Exception, VectorEnv, int, tuple, dict"
        return f".. autoclass:: {path}{options}"
    return f".. auto{'function' if callable(thing) else 'data'}:: {path}"


def write(folder):
    """Write the pages."""
    made = {}
    members = methods()
    for key, (title, module) in METHODS.items():
        chosen = [name for name, where in members.items() if where.startswith(module)]
        made[key] = page(title, [of_mechanism(name) for name in chosen])
    rest = [
        n
        for n, where in members.items()
        if not any(where.startswith(m) for _, m in METHODS.values())
    ]
    made["mechanism"] = page(
        "Mechanism", [".. autoclass:: sarrus.Mechanism", *map(of_mechanism, rest)]
    )
    placed = {"Mechanism", *public(sarrus.errors)}
    for key, (title, chosen) in GROUPS.items():
        made[key] = page(
            title, [directive(f"sarrus.{name}", getattr(sarrus, name)) for name in chosen]
        )
        placed |= {*chosen}
    left = [
        n
        for n in public(sarrus)
        if n not in placed and not inspect.ismodule(getattr(sarrus, n))
    ]
    made["other"] = page(
        "Other names", [directive(f"sarrus.{n}", getattr(sarrus, n)) for n in left]
    )
    for name in MODULES:
        module = importlib.import_module(f"sarrus.{name}")
        shown = [
            n
            for n in public(module)
            if name == "errors" or getattr(sarrus, n, None) is not getattr(module, n)
        ]
        of = "sarrus" if name == "errors" else f"sarrus.{name}"
        made[name] = page(f"sarrus.{name}", [f".. automodule:: sarrus.{name}\n   :no-members:",
                                             *(directive(f"{of}.{n}", getattr(module, n)) for n in shown)])  # fmt: skip
    made["file_tables"] = formats.page()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.stem not in made:
            old.unlink()
    for key, text in made.items():
        path = folder / f"{key}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def of_mechanism(name):
    """A method or a property of it."""
    member = inspect.getattr_static(sarrus.Mechanism, name)
    return f".. auto{'method' if inspect.isroutine(member) else 'attribute'}:: sarrus.Mechanism.{name}"


MARKUP = re.compile(
    r"(`+[^`]*`+)|(\||(?<=\w)_(?!\w))"
)  # what docutils would take for substitutions and links
RULE = re.compile(r"-{3,}")
ITEM = re.compile(r'("[^"]+"|\w+)[^:]* : ')


def as_rst(app, what, name, thing, options, lines):
    """What docstrings say in plain text and Sphinx would misread: |x|; `name : text`, where text is no type; lists of choices; returns."""
    made, listing, example, section = [], -1, False, ""
    for before, line, after in zip(
        ["", *lines[:-1]], lines, [*lines[1:], ""], strict=True
    ):
        indent, text = len(line) - len(line.lstrip()), line.lstrip()
        example = text.startswith(">>>") or (example and bool(text))
        if not example:
            line = MARKUP.sub(lambda m: m[1] or "\\" + m[2], line)
            text = line.lstrip()
        if RULE.fullmatch(after) and indent == 0 and text:
            section, listing = text, -1
            made.append("Returned" if text == "Returns" else line)  # a section of prose
        elif section in ("Parameters", "Attributes") and indent == 0 and ITEM.match(text):
            listing, (names, _, said) = -1, text.partition(" : ")
            made += [names, "    " + said]
        elif (
            (indent >= 4 or section in ("", "Returns"))
            and not example
            and ITEM.match(text)
            and (listing == indent or not before.strip() or RULE.fullmatch(before))
        ):
            listing = indent
            made.append(" " * indent + "* " + text)
        elif listing >= 0 and indent > listing:
            made.append(" " * (listing + 2) + text)
        else:
            if text:
                made += [""] if listing >= 0 else []
                listing = -1
            made.append(line)
    lines[:] = made


def check(app, exception):
    """Every public name has a place in the reference, or the build warns."""
    from sphinx.util import logging

    if exception is not None or app.builder.name != "html":
        return
    found = {entry[0] for entry in app.env.get_domain("py").get_objects()}
    for name in names():
        # sarrus.io.load is sarrus.load
        if name not in found and f"sarrus.{name.rsplit('.', 1)[1]}" not in found:
            logging.getLogger("sarrus").warning(
                "the API reference does not show %s", name
            )
