"""docs/formulations.md: every call of its tables runs and returns finite numbers; also rows whose values no other test checks."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

PAGE = (Path(__file__).parents[2] / "docs" / "formulations.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `(\w.*)` \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def names():
    """Return the names that the calls of the page use."""
    found = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/formulations.md", "exec"), found)
    return found


def numbers(answer):
    """Yield the arrays in a result of any type."""
    if isinstance(answer, np.ndarray | float):
        yield np.asarray(answer)
    elif isinstance(answer, dict):
        for value in answer.values():
            yield from numbers(value)
    elif isinstance(answer, tuple):
        for value in answer:
            yield from numbers(value)
    elif hasattr(answer, "__dataclass_fields__"):
        for name in answer.__dataclass_fields__:
            yield from numbers(getattr(answer, name))


def test_every_row_is_found():
    tables = [line for line in PAGE.splitlines() if line.startswith("| ") and line.endswith("` |")]
    assert len(ROWS) == len(tables) > 45


@pytest.mark.parametrize(("where", "call"), ROWS, ids=[f"{where}-{k}" for k, (where, _) in enumerate(ROWS)])
def test_call(names, where, call):
    answer = eval(call, dict(names))
    assert answer is not None
    for array in numbers(answer):
        if array.dtype.kind == "f":
            assert not np.isnan(array).any()


def test_operational_bias(names):
    """5.62 with 5.57: Lambda xddot + mu + p = f, for any force f at the tip."""
    arm, q, v = names["arm"], names["q"], names["v"]
    (call,) = (call for where, call in ROWS if where == "5.62")
    bias, J = eval(call, dict(names)), names["J"][:3]
    f = np.array([0.3, -0.2, 0.5])
    a = arm.forward_dynamics(q, v, J.T @ f)
    inverse = sarrus.formulations.operational_inertia_inverse(arm, q, "tip")[:3, :3]
    assert_allclose(np.linalg.solve(inverse, J @ a + names["J_rate"][:3] @ v) + bias, f, rtol=0, atol=1e-12)


def test_oblique_slides_and_axes():
    """2.5.2 and its footnote: displacement along (1, 1, 0), then rotations about y and about an axis at 45 degrees to it."""
    b = sarrus.Builder("oblique")
    oblique = (0, 1, 1)
    b.add_body("slide"), b.add_body("link", sarrus.Inertia.box(1.0, (0.1, 0.2, 0.3)))
    b.add_joint("s", sarrus.Prismatic((1, 1, 0)), "ground", "slide")
    b.add_joint("u", sarrus.Universal("y", oblique), "slide", "link")
    robot = b.build()
    q, v, a = (np.array(x) for x in ((0.4, 0.3, -0.7), (0.2, 0.5, -0.4), (1.0, -2.0, 3.0)))
    turn = [sarrus.Rotation.from_axis_angle(axis, angle) for axis, angle in zip(("y", oblique), q[1:], strict=True)]
    X = robot.pose(q, "link")
    assert_allclose(X[:3, 3], 0.4 * np.array([1, 1, 0]) / np.sqrt(2), atol=1e-15)
    assert_allclose(X[:3, :3], (turn[0] @ turn[1]).matrix, atol=1e-15)
    # Euler's equation, of a body whose angular velocity is told by both axes
    rates = np.array([turn[1].inverse().apply((0, 1, 0)), np.array(oblique) / np.sqrt(2)])
    w = v[1:] @ rates
    moment_of = robot.description.bodies[1].inertia.about_com
    bias = np.cross(rates[0], rates[1]) * v[1] * v[2]
    tau = rates @ (moment_of @ (a[1:] @ rates + bias) + np.cross(w, moment_of @ w))
    assert_allclose(robot.inverse_dynamics(q, v, a), [a[0], *tau], atol=1e-14)


def test_chains_put_together_are_the_hslm():
    """8.1: the chains of Table 8.1 by `from_sdof`, attached to the ground and welded to the reference member, are the gallery's mechanism."""
    case = json.loads((Path(__file__).parents[1] / "data" / "thesis_8_hslm.json").read_text())["definition"]
    b = sarrus.Builder("typed in", gravity=case["gravity"])
    b.add_body("reference", sarrus.Inertia(5.0, (0, 0, 0), 0.5 * np.eye(3)))
    b.add_joint("float", sarrus.Free(), "ground", "reference")
    links, home = (case["link1"], case["link2"]), {}
    for k, chain in enumerate(case["chains"]):
        yaw, slope, reach = chain["gamma1"][1:4]
        of_links = ([link[key] for link in links] for key in ("m", "com", "I_com"))
        leg = sarrus.from_sdof(
            [chain["gamma1"], chain["gamma2"]], ["ry rz tx", "ry rz"], *of_links, gravity=case["gravity"]
        )
        q = np.array([yaw, slope, reach, 0.0, chain["gamma2"][2]])
        tip = leg.pose(q, "tip")
        b.attach(leg, prefix=f"{k}.", at=np.subtract(chain["p_k"], tip[:3, 3]))
        placed = sarrus.Transform(tip[:3, :3], chain["p_k"])
        b.add_joint(f"weld{k}", sarrus.Fixed(), f"{k}.tip", "reference", at_child=placed, loop=True)
        home |= {f"{k}.{name}": q[leg.joint(name).q_slice] for name in leg.joints}
    b.set_home(home)
    robot, gallery = b.build(), sarrus.mechanisms.hslm()
    falls = [
        mechanism.forward_dynamics(mechanism.assemble(), *np.zeros((2, mechanism.nv)))[mechanism.joint("float").v_slice]
        for mechanism in (robot, gallery)
    ]
    assert_allclose(*falls, rtol=0, atol=1e-12)
    assert falls[0][4] == pytest.approx(-10.0286429, abs=5e-8)
