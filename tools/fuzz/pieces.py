"""Functions and classes for the generated programs; every program begins with ``from tools.fuzz.pieces import *``."""

from __future__ import annotations

import contextlib
import copy  # noqa: F401 - programs use copy.copy and math.nan
import functools
import io
import json
import math  # noqa: F401
import pickle
import random
import re
import shlex
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sarrus
import sarrus.calibration
import sarrus.cli
import sarrus.design
import sarrus.identification
import sarrus.io

URDF = b'<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
NUMBERS = (
    "nan",
    "inf",
    "1e999",
    "-1",
    "0",
    "",
    "x",
    "1 2",
    "1e308",
    "1e-320",
    "1_0",
    "٣",
    "0x1",
    "-0",
    "1,5",
    " 1 ",
    "\t",
)
GALLERY = (*sarrus.mechanisms.__all__, *(f"closed {k}" for k in range(8)), *(f"tree {k}" for k in range(4)))


@functools.cache
def mechanism(name: str) -> Any:
    """Return a mechanism of the gallery, or a random one of the tests."""
    if " " not in name:
        return getattr(sarrus.mechanisms, name)(**({"n": 2} if name == "four_bar_ladder" else {}))
    from tests.random_closed import random_closed
    from tests.random_mechanisms import random_mechanism

    kind, seed = name.split()
    return random_closed(int(seed)).robot if kind == "closed" else random_mechanism(int(seed), bodies=6)


@functools.cache
def _home(m: Any) -> Any:
    try:
        return m.assemble()
    except sarrus.SarrusError:
        return m.neutral()


def state(m: Any, lead: tuple[int, ...] = (), wild: bool = False) -> Any:
    """Return q, v, a near a configuration with closed loops, or at random if `wild`."""
    rng = np.random.default_rng(1)
    q = m.random(rng, size=lead) if wild else np.broadcast_to(_home(m), (*lead, m.nq)).copy()
    return q, rng.normal(size=(*lead, m.nv)), rng.normal(size=(*lead, m.nv))


def trajectory(m: Any) -> Any:
    q, v, _ = state(m)
    return sarrus.simulate(m, q, 0 * v, 0.003, method="euler")


def builder() -> Any:
    b = sarrus.Builder()
    for name in ("one", "two", "three"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("hinge", sarrus.Revolute("y"), "ground", "one")
    b.add_frame("tip", "one")
    b.add_spring("string", ("one", (0, 0, 1)), ("two", (0, 0, 0)), stiffness=1.0, rest_length=0.5)
    b.add_distance("rod", ("one", (0, 0, 1)), ("three", (0, 0, 0)), length=1.0)
    return b


def couplings() -> Any:
    """Return a coupler and a Pfaffian constraint of a description."""
    b = builder()
    b.add_joint("slide", sarrus.Prismatic("x"), "ground", "two")
    b.add_joint("float", sarrus.Free(), "ground", "three")
    b.remove_constraint("rod")
    b.add_coupler("gear", {"hinge": 1.0, "slide": -2.0})
    b.add_pfaffian("blade", [[1.0, 1.0]], ["hinge", "slide"])
    return b.build().description.constraints


class Refused(Exception):
    """Error that a user's object raises; it must propagate, or become an error of sarrus."""


class Hostile:
    """Argument whose methods have side effects when sarrus reads it."""

    def __init__(self, act: Callable[[], Any] | None = None, array: Any = None) -> None:
        self.act, self.array = act, array

    def __array__(self, dtype: Any = None, **how: Any) -> Any:
        if self.act is None:
            raise Refused("__array__")
        self.act()
        return np.asarray(self.array, dtype)


class Changing(dict):  # type: ignore[type-arg]
    """Mapping that empties itself while it is read."""

    def __iter__(self) -> Iterator[Any]:
        for key in list(super().__iter__()):
            self.clear()
            yield key

    def items(self) -> Any:
        return ((key, self.pop(key)) for key in list(super().__iter__()))


def trap(frame: Any) -> Any:
    """Return {frame: array-like}, which becomes empty when the array-like is read."""
    wrenches: dict[Any, Any] = {}
    key = "".join(list(frame)) if isinstance(frame, str) else frame  # a new str object without other references

    def empty() -> list[Any]:
        wrenches.clear()
        return [np.full(6, np.nan) for _ in range(100)]  # overwrites the memory of the deleted array

    wrenches[key] = Hostile(empty, np.zeros(6))
    return wrenches


def saddle(u: Any) -> Any:
    """Surface that can be pickled by name."""
    return np.stack([u[..., 0], u[..., 1], u[..., 0] * u[..., 1]], axis=-1)


def led(m: Any) -> Any:
    """Return three target coordinates for each motor."""
    at = m.joint_states(_home(m)).q
    return {
        name: at[name][0] + np.array([0.0, 0.02, 0.05]) for name in m.actuated or m.joints[:1] if len(at[name]) == 1
    }


def objectives(m: Any) -> Any:
    rates = {name: np.ones(3) for name in m.actuated}
    return [
        sarrus.design.FramePath(m.frames[-1], np.zeros((3, 3))), sarrus.design.JointAngle(m.joints[-1], np.zeros(3)),
        sarrus.design.TransmissionAngle(m.joints[-1]), sarrus.design.MotorEfforts(rates, rates), sarrus.design.Clearance(1.0),
        sarrus.design.Reaction(m.joints[-1], rates, rates, axes=("x",)),
    ]  # fmt: skip


def measurements(m: Any) -> Any:
    inputs = led(m)
    X = m.pose(m.follow(inputs), m.bodies[-1])
    return sarrus.calibration.Measurements(inputs, frames={m.bodies[-1]: X})


def samples_of(m: Any) -> Any:
    t = np.linspace(0.0, 1.0, 60)
    x = {name: inputs[0] + 0.05 * np.sin(5 * t + k) for k, (name, inputs) in enumerate(led(m).items())}
    q = m.follow(x)
    v = m.complete_velocity(q, {name: np.gradient(inputs, t) for name, inputs in x.items()})
    a = m.complete_acceleration(q, v, {name: np.gradient(np.gradient(inputs, t), t) for name, inputs in x.items()})
    return sarrus.identification.Samples(
        {name: np.ones((60, m.joint(name).type.nv)) for name in m.actuated or m.joints[:1]}, q, v, a, t
    )


def strided(x: Any) -> Any:
    return np.repeat(np.asarray(x), 2, axis=-1)[..., ::2] if np.ndim(x) else x


def readonly(x: Any) -> Any:
    x = np.array(x)
    x.setflags(write=False)
    return x


def mapped(x: Any) -> Any:
    with tempfile.NamedTemporaryFile() as file:
        kept = np.memmap(file, dtype=float, mode="w+", shape=(max(1, np.size(x)),))
    kept[: np.size(x)] = np.ravel(x)
    return kept[: np.size(x)].reshape(np.shape(x))


def touch(m: Any) -> None:
    """Call operations that every mechanism supports on a resulting mechanism."""
    q, v = m.neutral(), np.zeros(m.nv)
    str(m), repr(m), hash(m), pickle.loads(pickle.dumps(m))
    for ask in (m.forward_dynamics, m.inverse_dynamics, m.joint_wrenches):
        with contextlib.suppress(sarrus.SarrusError):
            answer = ask(q, v, v, return_status=True) if ask != m.joint_wrenches else (ask(q, v, v), 0)
            assert answer[1] or not has_nan(answer[0]), f"{ask.__name__}: status 0, and NaN"
    for ask in (m.constraint_residual, m.mobility, lambda q: sarrus.simulate(m, q, v, 0.002)):
        with contextlib.suppress(sarrus.SarrusError):
            ask(q)


def has_nan(x: Any) -> bool:
    """Return True if an array, or one of several, contains NaN."""
    if isinstance(x, Mapping):
        return any(map(has_nan, x.values()))
    if isinstance(x, (tuple, list)):
        return any(map(has_nan, x))
    return isinstance(x, (float, np.ndarray)) and np.asarray(x).dtype.kind in "fc" and bool(np.isnan(x).any())


# ---- files and command lines ---------------------------------------------------------------------------------------------


def saved(m: Any, path: str) -> str:
    trajectory(m).save(path)
    return path


def swept(m: Any, path: str) -> str:
    q, v, _ = state(m, (2,))
    sarrus.simulate_many(m, q, 0 * v, 0.003).save(path)
    return path


def on_disk(path: str) -> str:
    Path(path).write_bytes(URDF)
    return path


def look(run: Any) -> None:
    """Call operations that every trajectory supports on a trajectory that was read."""
    assert all(x.dtype == float for x in (run.t, run.q, run.v)), "numbers that are not float64"
    (
        repr(run),
        len(run),
        run.energy,
        run.a,
        run.tau,
        run.loop_error,
        run.reactions,
        run.to_dataframe(),
        run.events,
        run.statistics,
        run.status,
    )


def valid(text: str, floating_base: bool | None) -> Any:
    """Read a valid file."""
    try:
        return sarrus.loads(text, floating_base=floating_base)
    except Exception as error:
        raise AssertionError(f"a valid file was refused: {error}") from error


def rewritten(m: Any, suffix: str) -> Any:
    """Write and read a model file. The result must have the same mass, motors and degrees of freedom, unless a warning reports a loss."""
    path, side = Path(f"robot{suffix}"), Path("robot.yaml")
    side.unlink(missing_ok=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m.save(path)
    told = " ".join(str(warning.message) for warning in said)
    r = sarrus.load(path, loops=side) if side.exists() else sarrus.load(path)
    digits = 1e-6 if suffix == ".usda" else 1e-9  # USD stores masses with 32 bits
    assert abs(r.mass - m.mass) <= digits * m.mass, f"{suffix}: another mass"

    def motors(robot: Any) -> int:
        return sum(spec.joint.nv for spec in robot.description.joints if spec.actuated)

    assert motors(r) == motors(m) or "motor" in told, f"{suffix}: motors lost"

    def freedoms(robot: Any) -> int:
        return robot.nv - (np.linalg.matrix_rank(robot.constraint_jacobian(robot.neutral())) if robot.nc else 0)

    assert m.nc or freedoms(r) == freedoms(m), f"{suffix}: another number of freedoms"
    return r


def spoil(path: str, seed: int) -> str:
    """Change bytes of a file, a member of an .npz, or a cell of a table."""
    rng, data = random.Random(seed), Path(path).read_bytes()
    mutation = rng.randrange(4)
    if mutation == 0 and data:
        for _ in range(rng.choice((1, 5, 50))):
            at = rng.randrange(len(data))
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    elif mutation == 1:
        data = rng.choice((data[: rng.randrange(len(data) + 1)], data + data, b"", b"\0" * 100, URDF, data[::-1]))
    elif path.endswith(".npz"):
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist() if name != "pickled.npy" or rng.random() < 0.9}
        new, name = io.BytesIO(), rng.choice(list(members))
        odd = (
            None,
            1j,
            [],
            "x",
            np.nan,
            [np.nan] * 4,
            np.zeros((4, 1)),
            np.zeros((2, 2)),
            [True],
            10**400,
            b"x",
            "{}",
            "[]",
            '{"format": 1}',
            "null",
        )
        if name == "notes.npy" and rng.random() < 0.7:
            notes = json.loads(np.load(io.BytesIO(members[name])).item())
            notes[rng.choice(list(notes))] = rng.choice((None, 1, "x", [], {}, ["x"], {"x": None}, [[]], 1e400))
            np.save(new, np.array(json.dumps(notes)))
        else:
            np.save(new, np.array(rng.choice(odd)), allow_pickle=True)
        members[name] = new.getvalue()
        if rng.random() < 0.2:
            members[rng.choice((name, "pickled.npy", "x"))] = rng.choice((b"", b"x", members[name][:50]))
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members.items():
                file.writestr(name, content)
        return path
    else:
        rows = [line.split(",") for line in data.decode("utf-8", "replace").splitlines()] or [[""]]
        for _ in range(rng.choice((1, 1, 5))):
            row = rng.choice(rows)
            at = rng.randrange(len(row) + 1)
            row[at : at + rng.randrange(3)] = rng.choice(([], [rng.choice((*NUMBERS, '"', "q:x", "1e400", "\n", "#"))]))
        data = "\n".join(map(",".join, rows)).encode()
    Path(path).write_bytes(data)
    return path


def command(words: list[str]) -> int:
    """Run a command line in this folder, and check that its output agrees with its exit code."""
    import sarrus.viewer.viewer

    sarrus.viewer.viewer.View.wait = sarrus.viewer.viewer.View.close  # type: ignore[method-assign]
    Path("robot.urdf").write_bytes(URDF)
    Path("bad.urdf").write_bytes(URDF[:-30])
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = sarrus.cli.main([*words, "--no-browser"] if words[0] == "view" else words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    for stream in (out, err):
        stream.seek(0)
    said, complaint = out.read(), err.read()
    shown = f"`sarrus {shlex.join(words)}`".encode("utf-8", "replace").decode()
    assert code in (0, 1, 2), f"{shown}: exit code {code}"
    assert "--traceback shows where" not in complaint and "Traceback" not in complaint, (
        f"{shown}: {complaint.strip()[-300:]}"
    )
    found = words[0] == "check" and said.strip()  # `sarrus check` prints its findings as regular output
    assert code == 0 or complaint.strip() or found, f"{shown}: exit code {code} without a word"
    assert code or not re.search(r"\bnan\b", said), f"{shown}: exit code 0, and NaN"
    return code
