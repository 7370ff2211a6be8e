"""Every field of a description has an effect.

Each field of joints, bodies, frames, springs, constraints and visuals is changed, one at a time, and a result must change. Numbers must change a
result or a warning; names and switches may affect text only. The fields are found by inspection: a new field is covered, or
`test_every_field_was_changed` fails.
"""

import dataclasses
import functools
import importlib.util
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import sarrus
from sarrus import Inertia, Transform, laws
from sarrus.control import elements as control
from sarrus.description import constraints
from sarrus.description import specs as description
from sarrus.description.joints import JointType

TIME = 0.3
READS_MESHES = importlib.util.find_spec("trimesh") is not None  # an extra brings it
MESH = Path(__file__).parents[1] / "data" / "triangle.stl"
MODULES = description.__name__, constraints.__name__
NOTHING = object()  # there is no other value
# below this an answer counts as unchanged; changes are of a few per cent
SAME = 1e-9
# arguments of the joints that have any
OWN = {
    "axis": (0.36, 0.48, 0.8),
    "axis1": (1.0, 0.2, 0.0),
    "axis2": (0.0, 1.0, 0.3),
    "normal": (0.36, 0.48, 0.8),
    "pitch": 0.07,
    "radius": 0.05,
    "free": "rx ry tz",
    "fixed": (0.1, 0.2, 0.3, 0.1, 0.2, 0.3),
}
TERMS = {"damping": 0.3, "friction": 0.2, "armature": 0.1, "stiffness": 2.0, "rest": 0.2}
TERMS |= {"quadratic_stiffness": 0.4, "cubic_stiffness": 0.5, "quadratic_damping": 0.6, "cubic_damping": 0.7}
SPRINGS = ("stiffness", "quadratic_stiffness", "cubic_stiffness")
# of joints whose coordinates do not add up
NOT_TAKEN = {
    "Spherical": {"rest": 0.0},
    "Free": dict.fromkeys((*SPRINGS, "rest"), 0.0),
    "Planar": dict.fromkeys((*SPRINGS, "rest"), 0.0),
}
NO_SPRING = ("Free", "Planar")  # whose stiffness is an error
LIMITS = {"limits": (-0.1, 0.12), "velocity_limit": 1.5, "effort_limit": 0.7}
# quaternions take none
OWN_LIMITS = {
    "Spherical": {"limits": None},
    "Free": {"limits": (4 * (-np.inf,) + 3 * (-0.1,), 4 * (np.inf,) + 3 * (0.12,))},
}
BALL = Inertia(1.3, (0.1, 0.02, -0.05), np.diag([0.02, 0.03, 0.04]))


def kinds(base=JointType):
    """All joint types, by inspection."""
    found = [kind for sub in base.__subclasses__() for kind in (kinds(sub) or [sub])]
    return sorted(found, key=lambda kind: kind.__name__)


def made(kind):
    own = {f.name: OWN[f.name] for f in dataclasses.fields(kind) if not f.kw_only}
    terms = TERMS | NOT_TAKEN.get(kind.__name__, {})
    joint = kind(**own)
    return kind(**own, **terms, **(LIMITS | OWN_LIMITS.get(kind.__name__, {}))) if joint.nv else joint


def described(b):
    with warnings.catch_warnings():  # what acts on nothing is warned of again by the mechanism made of it
        warnings.simplefilter("ignore", sarrus.ModelWarning)
        return b.build().description


def skewed(x):
    return Transform.from_rpy(0.1 * x, -0.2, 0.3, (0.2, 0.1 * x, -0.1))


def in_tree(kind):
    b = sarrus.Builder(f"tree {kind.__name__}", gravity=(0.5, -1.0, -9.0))
    for name in ("arm", "hand"):
        b.add_body(name, BALL)
    b.add_joint("joint", made(kind), "ground", "arm", at_parent=skewed(1), at_child=skewed(2), actuated=True)
    b.add_joint("wrist", sarrus.Revolute("x"), "arm", "hand", at_parent=(0.1, 0.2, 0.3))
    b.add_frame("tip", "hand", skewed(3))
    return described(b)


def closing(kind):
    """Return a free body that the joint connects to an arm: only the joint's rows depend on it."""
    b = sarrus.Builder(f"loop {kind.__name__}", gravity=(0.5, -1.0, -9.0))
    for name in ("arm", "hand"):
        b.add_body(name, BALL)
    b.add_joint("shoulder", sarrus.Revolute("x"), "ground", "arm", at_parent=(0.1, 0.2, 0.3))
    b.add_joint("free", sarrus.Free(), "ground", "hand", tree=True)
    b.add_joint("joint", made(kind), "arm", "hand", at_parent=skewed(1), at_child=skewed(2), loop=True)
    return described(b)


def rows(q):
    return np.stack([np.ones_like(q[..., :1]), 0.5 + q[..., :1]], axis=-1)


def rows_rate(q, v):
    return np.stack([np.zeros_like(q[..., :1]), v[..., :1]], axis=-1)


def constrained():
    """Return a mechanism with constraints of all kinds except joints, springs, frames, visuals and a home."""
    b = sarrus.Builder("constrained", gravity=(0.5, -1.0, -9.0))
    b.warnings.append("what a reader of files had to say")
    for name in ("a", "b", "c", "d", "e"):
        b.add_body(name, BALL)
    for k, name in enumerate("abcd"):
        axis = (0.3, 1.0, 0.1 * k)
        b.add_joint(
            f"to {name}",
            sarrus.Revolute(axis),
            "ground",
            name,
            at_parent=(0.5 * k, 0.1, 0.2 * k),
            tree=True,
            actuated=k == 0,
        )
    b.add_joint("to e", sarrus.Free(), "ground", "e", tree=True)
    b.add_distance("rod", ("a", (0.1, 0.2, 0.3)), ("b", (0.2, 0.1, 0.1)), length=0.9)
    b.add_coupler("gear", {"to a": (1.0, 0.2), "to b": 0.7}, offset=0.1)
    b.add_prescribed_motion("drive", "to c", laws.harmonic(0.2, 3.0, 0.4) + laws.polynomial(0.1, 0.2, 0.3))
    b.add_prescribed_frame(
        "crane", "d", {"rx": laws.harmonic(0.2, 3.0, 0.4), "tz": 0.2}, joint=sarrus.Cylindrical("y"), relative_to="a"
    )
    b.add_rolling(
        "wheel",
        "e",
        radius=0.3,
        center=(0.1, 0.0, 0.1),
        axle=(0.1, 1.0, 0.2),
        on="a",
        point=(0.1, 0.0, 0.2),
        normal=(0.1, 0.2, 1.0),
    )
    b.add_rolling("marble", "e", radius=0.2, center=(0.0, 0.1, 0.0), on="b", point=(0.0, 0.1, 0.2), on_radius=0.4)
    b.add_pfaffian("skate", [[1.0, 0.3]], ["to a", "to b"], value=[0.2])
    b.add_pfaffian("blade", rows, ["to b", "to c"], value=[0.1], derivative=rows_rate)
    b.add_spring("coil", ("a", (0.1, 0.0, 0.2)), ("c", (0.0, 0.3, 0.1)), stiffness=20.0, rest_length=0.2, damping=0.4)
    b.add_frame("tip", "c", skewed(1))
    for k, shape in enumerate(
        (sarrus.shapes.Box((0.1, 0.2, 0.3)), sarrus.shapes.Cylinder(0.1, 0.2), sarrus.shapes.Sphere(0.1))
    ):
        b.add_visual("abc"[k], shape, skewed(k), color=(0.1, 0.2, 0.3, 0.4))
    if READS_MESHES:
        b.add_visual("d", sarrus.shapes.Mesh(MESH.name, (1.0, 2.0, 3.0), str(MESH.parent)), skewed(4))
    return described(b)


def four_bar(hint):
    """Return one loop with a hint for another spanning tree, and a home."""
    b = sarrus.Builder(f"four-bar {hint}")
    for name in ("crank", "rod", "rocker"):
        b.add_body(name, BALL)
    coupler, far = {"tree": hint == "tree"}, {"loop": hint == "loop"}
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("pin", sarrus.Revolute("y"), "crank", "rod", at_parent=(0, 0, 0.4), **coupler)
    b.add_joint("far", sarrus.Revolute("y"), "rod", "rocker", at_parent=(1.1, 0, 0), **coupler)
    b.add_joint("foot", sarrus.Revolute("y"), "ground", "rocker", at_parent=(1, 0, 0), at_child=(0, 0, -0.9), **far)
    b.set_home({"motor": 0.3})
    return described(b)


SOURCES = {f"tree {kind.__name__}": functools.partial(in_tree, kind) for kind in kinds() if not kind.holds_nothing}
SOURCES |= {f"loop {kind.__name__}": functools.partial(closing, kind) for kind in kinds() if kind.__name__ != "Free"}
SOURCES |= {"constrained": constrained} | {
    f"four-bar {hint}": functools.partial(four_bar, hint) for hint in ("tree", "loop")
}


# ---- one field after the other -------------------------------------------------------------------------------------------


def parts(value):
    """Yield (key, value, class, field) of the parts of a value."""
    if isinstance(value, Inertia):
        return [(name, getattr(value, name), "Inertia", name) for name in ("mass", "com", "about_com")]
    if isinstance(value, Transform):
        return [(name, getattr(value, name), "Transform", name) for name in ("rotation", "translation")]
    if dataclasses.is_dataclass(value):
        return [(f.name, getattr(value, f.name), type(value).__name__, f.name) for f in dataclasses.fields(value)]
    return []


def leaves(value, path=(), owner="", field=""):
    """Yield (path, class, field, value) of all parts that have no further parts."""
    found = parts(value)
    if isinstance(value, tuple) and field not in ("limits", "free") and value:
        found = [(k, x, owner, field) for k, x in enumerate(value)]
    if not found:
        yield path, owner, field, value
    for key, x, cls, name in found:
        yield from leaves(x, (*path, key), cls, name)


def changed(value, path, new):
    if not path:
        return new
    key, *rest = path
    if isinstance(key, int):
        return (*value[:key], changed(value[key], rest, new), *value[key + 1 :])
    inner = changed(getattr(value, key), rest, new)
    if isinstance(value, Inertia):
        given = {name: getattr(value, name) for name in ("mass", "com", "about_com")} | {key: inner}
        return Inertia(**given, check=False)
    if isinstance(value, Transform):
        return Transform(**({"rotation": value.rotation, "translation": value.translation} | {key: inner}))
    return dataclasses.replace(value, **{key: inner})


def other(source, path, cls, field, value):
    """Return another value for a field, as near as its type allows; NOTHING if there is none."""
    names = {
        "body": [b.name for b in source.bodies],
        "joint": [j.name for j in source.joints if not j.loop and not j.laws],
    }
    if isinstance(value, bool):
        return not value
    if field == "limits":
        return NOTHING if value is None else tuple(0.5 * x for x in value)
    if field == "free":
        return tuple("rz" if name == "ry" else name for name in value)
    if isinstance(value, str):
        refers = {"first": "body", "second": "body", "parent": "body", "child": "body", "body": "body", "on": "body"}
        refers |= {"joints": "joint", "terms": "joint", "home": "joint"}
        if field not in refers:
            return f"{value}x"
        near = changed_names(source, path)
        return next(name for name in [*names[refers[field]], "ground"] if name != value and name not in near)
    if callable(value):
        return lambda *x: 1.1 * value(*x) + 0.01
    if isinstance(value, int):
        return NOTHING  # the index of a coordinate, of which there is one
    if isinstance(value, float):
        return 1.1 * value + 0.02
    if isinstance(value, np.ndarray) and not (cls == "Spherical" and field == "rest"):
        if field == "rotation":
            return value @ Transform.from_rpy(0.1, 0.2, 0.3).rotation
        return NOTHING if not value.size else value * 1.1 + (0.0 if cls == "Spherical" else 0.05 * np.ones_like(value))
    return {"law": laws.harmonic(0.1, 1.0), "color": (0.1, 0.2, 0.3, 1.0)}.get(field, NOTHING)


def changed_names(source, path):
    """Return another name of the same kind: both ends of a joint must differ."""
    value = source
    for key in path[:2]:
        value = value[key] if isinstance(key, int) else getattr(value, key)
    return {x for _, _, _, x in leaves(value) if isinstance(x, str)}


def idle(source, name, path, cls, field):
    """Return True if a field has no effect by its definition."""
    value = source
    for key in path[: 2 if cls == "RollingSpec" else -1]:
        value = value[key] if isinstance(key, int) else getattr(value, key)
        if field == "rest" and isinstance(value, JointType) and not any(getattr(value, name).any() for name in SPRINGS):
            return True  # of no spring
        if field in ("starts", "period") and isinstance(value, laws.Law) and len(value.coefficients[0]) == 1:
            return True  # of a constant
    if field in SPRINGS and cls in NO_SPRING:
        return True
    if field == "normal" and cls == "RollingSpec":
        return value.on_radius is not None  # of a plane, which add_rolling() refuses for a sphere
    if field in ("tree", "loop"):
        return name != f"four-bar {field}" or not getattr(value, field)  # hints, where there is a choice
    if field == "about_com" and name in ("tree Fixed", "tree Prismatic"):
        return path[1] == 0  # of a body that never turns
    if name == "loop Cable" and path[-2:] == ("at_child", "rotation"):
        return True  # a point
    return name == "loop Spherical" and path[-2:] == ("at_parent", "rotation")  # a ball in its socket, without a spring


# ---- what shows ----------------------------------------------------------------------------------------------------------


def observed(d, driven=False):
    """Return results and texts that distinguish two descriptions."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            m = sarrus.Mechanism(d)
            numbers, texts = answers(m), [str(m), *m.frames, *m.joints, *m.loop_joints, *m.constraints, *m.actuated]
            numbers += looks(m)
            numbers += pushed(m) if driven else []
        except sarrus.SarrusError as error:
            return [], [], [str(error)]
    return numbers, texts, [*m.warnings, *(str(w.message) for w in said)]


def answers(m):
    closed = "loop" in m.name or m.name.startswith("four-bar")
    away = 0.02 if closed else 0.2
    q = m.integrate(m.neutral(), away * np.sin(np.arange(1.0, m.nv + 1)))
    if closed:
        q = m.project_configuration(q, metric="euclidean", time=TIME, return_status=True)[0]
    v = m.project_velocity(q, np.cos(np.arange(m.nv)), metric="euclidean", time=TIME, return_status=True)[0]
    v = v if np.isfinite(v).all() else np.cos(np.arange(m.nv))
    tau = 0.1 * np.arange(1.0, m.nv + 1)
    how = {"return_status": True}
    asked = [m.mass_matrix(q, **how), m.bias_forces(q, v, **how), m.inverse_dynamics(q, v, tau, **how)]
    asked += [m.forward_dynamics(q, v, tau, time=TIME, **how), m.potential_energy(q, **how)]
    asked += [m.constraint_jacobian(q, time=TIME, **how), m.constraint_velocity(q, time=TIME, **how)]
    asked += [m.constraint_bias(q, v, time=TIME, **how), m.constraint_residual(q, time=TIME, **how)]
    asked += [m.pose(q, frame, **how) for frame in m.frames]
    found = [q, *(np.asarray(x) for answer in asked for x in answer)]
    if m.name.startswith("four-bar"):
        found.append(m.assemble(starts=1))
    return found


def looks(m):
    from sarrus.viewer.scene import _looks

    seen, faults = _looks(m.description.visuals)
    of_bodies = [m.bodies.index(look.visual.body) for look in seen]
    colors = [np.zeros(4) if look.visual.color is None else np.array(look.visual.color) for look in seen]
    return [
        np.array(of_bodies, float),
        *(look.vertices for look in seen),
        *colors,
        np.frombuffer("".join(faults).encode(), np.uint8),
    ]


def pushed(m):
    """Return a simulation that exceeds limits of position, velocity and effort, which are enforced or reported."""
    joint = m.joint("joint")
    push = control.FeedforwardEffort("joint", 30.0) if joint.type.nv else ()
    limits = "warn" if joint.closes_loop or joint.kind in ("Planar", "Free") else "enforce"  # where end stops can be
    q = m.project_configuration(m.neutral(), metric="euclidean") if m.nc else m.neutral()
    v = m.project_velocity(q, np.full(m.nv, 2.0), metric="euclidean")
    run = sarrus.simulate(m, q, v, 0.1, push, dt=2e-3, limits=limits)
    return [
        run.q,
        run.v,
        np.array([x["reached"] - x[side] for x in run.statistics["limits"] for side in ("lower", "upper")]),
    ]


def ignored(joint, field, said):
    """Return True if a warning reports that this field of a joint has no effect."""
    return any(re.search(rf"joint '{joint}' .*, so its .*\b{field}\b.* have no effect", text) for text in said)


def differ(one, two):
    if len(one) != len(two):
        return True
    return any(
        x.shape != y.shape or not np.allclose(x, y, rtol=SAME, atol=SAME, equal_nan=True) for x, y in zip(one, two)
    )


# ---- the law -------------------------------------------------------------------------------------------------------------


def cases():
    """Yield source and field; one case for all numbers of a field."""
    for name, source in SOURCES.items():
        seen = {}
        for path, cls, field, value in leaves(source()):
            if cls and path[0] != "warnings":
                at = (
                    ".".join(str(key) for key in path[:-1] if not isinstance(key, int))
                    if cls in ("Transform", "Inertia")
                    else cls
                )
                seen.setdefault(f"{at}.{field}", []).append((path, cls, field, value))
        for what, several in seen.items():
            yield name, what, several


@functools.lru_cache(maxsize=4)
def as_it_was(name, driven):
    return observed(SOURCES[name](), driven)


@pytest.mark.parametrize(
    ("name", "several"),
    [
        pytest.param(name, several, id=f"{name}: {what}")
        for name, what, several in cases()
        if any(other(SOURCES[name](), *leaf) is not NOTHING for leaf in several)
    ],
)
def test_a_changed_field_shows(name, several):
    source = SOURCES[name]()
    for path, cls, field, value in several:
        new = other(source, path, cls, field, value)
        if new is NOTHING or idle(source, name, path, cls, field):
            continue
        driven = field in LIMITS
        before, after = as_it_was(name, driven), observed(changed(source, path, new), driven)
        text = isinstance(value, (str, bool))
        shows = differ(before[0], after[0]) or before[2] != after[2] or (text and before[1] != after[1])
        shows |= path[0] == "joints" and ignored(source.joints[path[1]].name, field, after[2])
        assert shows, f"{'.'.join(map(str, path))}: {value!r} -> {new!r} changes nothing"


def test_every_field_was_changed():
    """All classes of a description are covered."""
    held = [
        cls
        for _, cls in inspect.getmembers(description, dataclasses.is_dataclass)
        if cls.__module__ in MODULES
        and not cls.__subclasses__()
        and cls.__name__ != "TargetSpec"  # which no user describes
    ]
    held += [*kinds(), laws.Law]
    wanted = {(cls.__name__, f.name) for cls in held for f in dataclasses.fields(cls)}
    # made of others, which are changed; no part of what a mechanism is
    composed = {
        "bodies",
        "joints",
        "frames",
        "constraints",
        "springs",
        "visuals",
        "inertia",
        "joint",
        "at_parent",
        "at_child",
        "placement",
        "shape",
        "laws",
        "law",
    }
    reached = {(cls, field) for _, _, several in cases() for _, cls, field, value in several if value is not None}
    fixed = {("Fixed", name) for name in (*TERMS, *LIMITS)}  # there is nothing along which they could act
    fixed |= {("Spherical", "limits")}
    mesh = {("Mesh", "package_dirs"), ("Description", "warnings")}
    mesh |= set() if READS_MESHES else {("Mesh", field.name) for field in dataclasses.fields(sarrus.shapes.Mesh)}
    missing = {
        (cls, field) for cls, field in wanted - reached - fixed - mesh if field not in composed or cls == "PfaffianSpec"
    }
    assert not missing
