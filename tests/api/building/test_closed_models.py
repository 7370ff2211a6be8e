"""Descriptions of closed chains: fields that each call writes, copies, and the core's interpretation."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import (
    Builder,
    Cylindrical,
    Fixed,
    Free,
    Inertia,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Transform,
    laws,
)
from sarrus.description import CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec

EPS = np.finfo(float).eps
BALL = Inertia.sphere(1.0, 0.1)
RAMP, WAVE = laws.polynomial(0.1, 0.2), laws.harmonic(0.3, rate=2.0, phase=0.4)


def skew_rows(q):
    """Return two rows over "slide" and "turn" that rotate with q[1]."""
    c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
    return np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], -2)


def skew_rows_rate(q, v):
    c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
    return np.stack([np.stack([-s, c], -1), np.stack([-c, -s], -1)], -2) * v[..., 1, None, None]


def tree():
    """Return six bodies in series on the ground, without loops."""
    b = Builder("everything", gravity=(0.0, 0.0, -9.81))
    joints = {"slide": Prismatic("x"), "turn": Revolute("z"), "screw": Cylindrical("y"), "glide": Planar("z")}
    before = "ground"
    for name, joint in (joints | {"ball": Spherical(), "float": Free()}).items():
        b.add_body(f"{name}_body", BALL)
        b.add_joint(name, joint, before, f"{name}_body", at_parent=(0.1, 0.0, 0.2), actuated=name == "turn")
        before = f"{name}_body"
    return b


def everything():
    """Return a model with every kind of constraint."""
    b = tree()
    b.add_joint("pin", Revolute("x"), "ground", "ball_body", at_child=(0, 0, 1), loop=True)
    b.add_distance("rod", ("ground", (0, 1, 0)), ("float_body", (0, 0, 0.5)), length=2.0)
    b.add_coupler("gear", {"turn": 2.0, ("screw", 1): (1.0, 0.5)}, offset=0.25)
    b.add_prescribed_motion("drive", ("glide", 2), WAVE)
    b.add_prescribed_frame(
        "crane", "screw_body", {"tz": WAVE, "rx": RAMP, "ty": 0.5}, joint=Spherical(), at_parent=(0, 0, 1)
    )
    b.add_rolling("coin", "float_body", radius=0.2, axle=(0, 3, 4), center=(0, 0, 0.1), normal="-y")
    b.add_rolling("marble", "ball_body", radius=0.1, on="turn_body", point=(0, 0, 1), on_radius=-0.5, spin=False)
    b.add_pfaffian("plain", [[1, 2, 3], [0, 0, 1]], ["turn", "screw"], value=(0.5, 0))
    b.add_pfaffian("curved", skew_rows, ["slide", "turn"], value=0.1, derivative=skew_rows_rate)
    b.set_home({"turn": 0.5, "ball": (0, 0, 3, 4), "screw": (0.1, 0.2)})
    return b


EVERYTHING = everything().build()


# ---- what each call writes down --------------------------------------------------------------------------------------


def test_constraints_as_they_were_described():
    assert EVERYTHING.description.constraints == (
        DistanceSpec("rod", ("ground", (0.0, 1.0, 0.0)), ("float_body", (0.0, 0.0, 0.5)), 2.0),
        CouplerSpec("gear", (("turn", 0, (2.0,)), ("screw", 1, (1.0, 0.5))), 0.25),
        CouplerSpec("drive", (("glide", 2, (1.0,)),), 0.0, WAVE),
        RollingSpec("coin", "float_body", 0.2, (0.0, 0.0, 0.1), (0.0, 0.6, 0.8), "ground", (0.0, 0.0, 0.0), (0.0, -1.0, 0.0), None),
        RollingSpec("marble", "ball_body", 0.1, (0.0, 0.0, 0.0), None, "turn_body", (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), -0.5, False),
        PfaffianSpec("plain", ((1.0, 2.0, 3.0), (0.0, 0.0, 1.0)), ("turn", "screw"), (0.5, 0.0)),
        PfaffianSpec("curved", skew_rows, ("slide", "turn"), (0.1, 0.1), skew_rows_rate),
    )  # fmt: skip


def test_joints_that_close_loops_as_they_were_described():
    pin, crane = EVERYTHING.description.joints[-2:]
    assert (pin.name, pin.tree, pin.loop, pin.laws) == ("pin", False, True, ())
    still = laws.polynomial(0.5)
    assert (crane.joint, crane.parent, crane.child, crane.loop) == (Spherical(), "ground", "screw_body", True)
    assert crane.laws == (RAMP, None, None, None, still, WAVE)
    assert (crane.at_parent, crane.at_child) == (Transform(translation=(0, 0, 1)), Transform())


def test_home_is_in_the_order_given_with_unit_quaternions():
    home = dict(EVERYTHING.description.home)
    assert list(home) == ["turn", "ball", "screw"]
    assert_allclose(home["ball"], (0, 0, 0.6, 0.8), rtol=2 * EPS)
    assert (home["turn"], home["screw"]) == ((0.5,), (0.1, 0.2))


def test_a_home_takes_the_place_of_an_earlier_one():
    b = tree()
    b.set_home({"turn": 0.5, "slide": 1.0})
    b.set_home({"slide": 2})
    assert b.build().description.home == (("slide", (2.0,)),)
    b.set_home({})
    assert b.build().description.home == ()


def test_constraints_are_named_joints_first():
    assert EVERYTHING.loop_joints == ("pin", "crane")
    assert EVERYTHING.constraints == ("pin", "crane", "rod", "gear", "drive", "coin", "marble", "plain", "curved")
    kinds = [EVERYTHING.constraint(name).kind for name in EVERYTHING.constraints]
    expected = "Revolute Spherical Distance Coupler PrescribedMotion Rolling Rolling Pfaffian Pfaffian"
    assert kinds == expected.split()
    rows = [len(EVERYTHING.constraint(name).row_names) for name in EVERYTHING.constraints]
    assert rows == [5, 3, 1, 1, 1, 3, 4, 2, 2]


def test_numbers_of_any_kind_are_the_same_numbers():
    """NumPy's numbers and arrays become plain numbers, which can be hashed and compared."""
    b, c = tree(), tree()
    b.add_coupler("gear", {"turn": np.array([1, 2]), ("screw", np.int64(0)): np.float32(0.5)}, offset=np.int8(1))
    c.add_coupler("gear", {("turn", 0): (1.0, 2.0), ("screw", 0): [0.5]}, offset=1.0)
    for builder, number in ((b, np.array), (c, tuple)):
        builder.add_distance(
            "rod", ("ground", number((0, 0, 1))), ("turn_body", number((0, 1, 0))), length=number((2,))[0]
        )
        builder.add_pfaffian("rows", number(((1.0, 0.0),)), number(("slide", "turn")), value=number((3,)))
    assert b.build().description == c.build().description
    assert hash(b.build()) == hash(c.build())


# ---- it survives -----------------------------------------------------------------------------------------------------


def test_round_trips():
    for same in (
        everything().build(),
        pickle.loads(pickle.dumps(EVERYTHING)),
        copy.copy(EVERYTHING),
        copy.deepcopy(EVERYTHING),
        sarrus.Mechanism(pickle.loads(pickle.dumps(EVERYTHING.description))),
    ):
        assert same == EVERYTHING
        assert hash(same) == hash(EVERYTHING)
        assert same.description == EVERYTHING.description
        q = EVERYTHING.neutral()
        assert_array_equal(same.constraint_jacobian(q, time=0.3), EVERYTHING.constraint_jacobian(q, time=0.3))
        assert_array_equal(same.constraint_residual(q, time=0.3), EVERYTHING.constraint_residual(q, time=0.3))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pin", {"tree": True, "loop": False}),
        ("turn", {"tree": True}),
        ("crane", {"laws": (RAMP, None, None, None, None, WAVE)}),
        ("rod", {"length": 2.5}),
        ("rod", {"first": ("ground", (0.0, 1.0, 1e-9))}),
        ("gear", {"offset": 0.5}),
        ("gear", {"terms": (("turn", 0, (2.0,)), ("screw", 0, (1.0, 0.5)))}),
        ("drive", {"law": RAMP}),
        ("coin", {"axle": None}),
        ("marble", {"on_radius": 0.5}),
        ("plain", {"value": (0.5, 0.1)}),
        ("curved", {"derivative": None}),
    ],
)
def test_every_detail_tells_mechanisms_apart(name, change):
    d = EVERYTHING.description
    joints, constraints = (
        tuple(replace(spec, **change) if spec.name == name else spec for spec in specs)
        for specs in (d.joints, d.constraints)
    )
    assert replace(d, joints=joints, constraints=constraints) != d


def test_homes_tell_mechanisms_apart_and_warnings_do_not():
    d = EVERYTHING.description
    assert replace(d, home=()) != d
    assert replace(d, warnings=("heavy",)) == d
    assert sarrus.Mechanism(replace(d, warnings=("heavy",))).warnings == ("heavy",)


def test_rows_by_a_function_without_a_name_do_not_pickle():
    b = tree()
    b.add_pfaffian("rows", lambda q: np.ones((*q.shape[:-1], 1, 1)), ["turn"])
    robot = b.build()
    assert {robot: 1}[robot] == 1
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(robot)


def test_what_cannot_be_added_leaves_nothing_behind():
    b = everything()
    before = b.build()
    bad = [
        lambda: b.add_joint("new", Fixed(), "ground", "ground"),
        lambda: b.add_distance("new", ("ground", (0, 0, 0)), ("turn_body", (0, 0, 0)), length=0.0),
        lambda: b.add_coupler("new", {"turn": float("nan")}),
        lambda: b.add_prescribed_motion("new", "turn", "fast"),
        lambda: b.add_prescribed_frame("new", "turn_body", {"tx": 1.0}, at_child=(1, 2)),
        lambda: b.add_rolling("new", "ball_body", radius=-1.0),
        lambda: b.add_constraint("new", "Distance", "ground", "turn_body", length=1.0),
        lambda: b.add_pfaffian("new", [[1.0]], ["slide", "turn"]),
        lambda: b.set_home({"turn": 0.0, "slide": (1, 2)}),
    ]
    for attempt in bad:
        with pytest.raises(ModelError):
            attempt()
    assert b.build() == before
    b.add_distance("new", ("ground", (0, 0, 0)), ("turn_body", (0, 0, 0)), length=1.0)


OF_THE_CORE = """
import pytest, sarrus
from sarrus.description import constraints
constraints.DECLARED["DistanceSpec"] = made = constraints._declared("Distance")

def swing():
    b = sarrus.Builder("swing")
    b.add_body("bar", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("float", sarrus.Planar("y"), "ground", "bar")
    return b

for length in ({}, {"length": 1.0, "width": 1.0}, {"length": float("nan")}):
    with pytest.raises(sarrus.ModelError, match="constraint 'rod'"):
        swing().add_constraint("rod", "Distance", "ground", "bar", **length)
with pytest.raises(sarrus.NameNotFoundError, match="bat"):
    swing().add_constraint("rod", "Distance", "ground", "bat", length=1.0)
ends = {"at_parent": (0, 0, 2), "at_child": sarrus.Transform.from_rpy(0.1, 0.2, 0.3, (0.4, 0, 0))}
b, by_hand = swing(), swing()
b.add_constraint("rod", "Distance", "ground", "bar", length=2.0, **ends)
by_hand.add_distance("rod", ("ground", (0, 0, 2)), ("bar", (0.4, 0, 0)), length=2.0)
spec = b.build().description.constraints[0]
assert str(spec) == "rod: Distance(length=2) ─ from ground to bar" and spec.points[1] == ("bar", (0.4, 0.0, 0.0))
q = by_hand.build().assemble()
assert abs(b.build().constraint_jacobian(q) - by_hand.build().constraint_jacobian(q)).max() < 1e-15
assert sarrus.Mechanism(b.build().description) == b.build()
"""


def test_a_kind_without_a_class_gets_one_from_the_core():
    """By add_constraint; a separate process removes the class of an existing kind for this test."""
    subprocess.run([sys.executable, "-c", OF_THE_CORE], check=True)


# ---- hints -----------------------------------------------------------------------------------------------------------


def ring(**hints):
    """Return two arms from the ground, connected at their ends, with hints for some of the joints."""
    b = Builder()
    for name in ("a", "b"):
        b.add_body(name, BALL)
    for name, ends, place in (
        ("left", ("ground", "a"), 0.0),
        ("right", ("ground", "b"), 1.0),
        ("top", ("a", "b"), 1.0),
    ):
        b.add_joint(name, Revolute("y"), *ends, at_parent=(place, 0, 0), **{hints[name]: True} if name in hints else {})
    return b.build()


@pytest.mark.parametrize(
    ("hints", "loops"),
    [
        ({}, ("top",)),
        ({"top": "tree"}, ("right",)),
        ({"top": "tree", "right": "tree"}, ("left",)),
        ({"left": "loop"}, ("left",)),
        ({"right": "loop", "top": "tree"}, ("right",)),
    ],
)
def test_hints_decide_what_closes_the_loop(hints, loops):
    assert ring(**hints).loop_joints == loops


def test_a_free_joint_closes_nothing():
    b = tree()
    b.add_joint("tether", Free(), "ground", "turn_body", loop=True)
    robot = b.build()
    assert (robot.loop_joints, robot.nc) == (("tether",), 0)


@pytest.mark.parametrize("joint", [Revolute("x"), Spherical(), Free(), Planar("z"), Cylindrical("y")])
def test_a_joint_may_lead_to_the_ground(joint):
    """q keeps its meaning: pose of the child, here the ground, in the parent."""
    there, back = Builder(), Builder()
    for b, ends in ((there, ("ground", "a")), (back, ("a", "ground"))):
        b.add_body("a", BALL)
        b.add_joint("j", joint, *ends)
    there, back = there.build(), back.build()
    assert back.joint("j").reversed
    q = there.random(np.random.default_rng(3), size=4)
    # two poses of entries below some metres multiply to the identity but for rounding
    assert_allclose(there.pose(q, "a") @ back.pose(q, "a"), np.broadcast_to(np.eye(4), (4, 4, 4)), atol=64 * EPS)


# ---- what the core makes of it ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
Q, V, T = EVERYTHING.random(RNG, size=20), RNG.normal(size=(20, EVERYTHING.nv)), RNG.uniform(-2, 4, 20)


def rows(name, array):
    return array[:, EVERYTHING.constraint(name).rows]


def coordinate(joint, index=0):
    return Q[:, EVERYTHING.joint(joint).q_slice.start + index]


def test_a_coupler_is_its_polynomials():
    turn, screw = coordinate("turn"), coordinate("screw", 1)
    expected = 2 * turn + screw + 0.5 * screw**2 - 0.25
    assert_allclose(rows("gear", EVERYTHING.constraint_residual(Q, time=T))[:, 0], expected, atol=64 * EPS)
    J = rows("gear", EVERYTHING.constraint_jacobian(Q))[:, 0]
    wanted = np.zeros((20, EVERYTHING.nv))
    wanted[:, EVERYTHING.joint("turn").v_slice] = 2
    wanted[:, EVERYTHING.joint("screw").v_slice.start + 1] = 1 + screw
    assert_allclose(J, wanted, atol=8 * EPS)


def test_a_rod_has_its_length():
    ends = EVERYTHING.pose(Q, "float_body") @ (0, 0, 0.5, 1)
    expected = np.linalg.norm(ends[:, :3] - (0, 1, 0), axis=-1) - 2.0
    # ends are some metres away, at the end of six joints
    assert_allclose(rows("rod", EVERYTHING.constraint_residual(Q))[:, 0], expected, atol=256 * EPS)


def test_a_wheel_touches_at_its_height():
    """The lowest point of an inclined disc is below its centre by radius times the sine of the angle between axle and normal."""
    pose, normal = EVERYTHING.pose(Q, "float_body"), np.array([0, -1, 0])
    centre, axle = pose @ (0, 0, 0.1, 1), pose[:, :3, :3] @ (0, 0.6, 0.8)
    expected = centre[:, :3] @ normal - 0.2 * np.linalg.norm(np.cross(axle, normal), axis=-1)
    assert_allclose(rows("coin", EVERYTHING.constraint_residual(Q))[:, 0], expected, atol=256 * EPS)


def test_a_marble_inside_a_sphere_keeps_its_distance():
    middle, bowl = EVERYTHING.pose(Q, "ball_body")[:, :3, 3], (EVERYTHING.pose(Q, "turn_body") @ (0, 0, 1, 1))[:, :3]
    expected = np.linalg.norm(middle - bowl, axis=-1) - 0.4
    assert_allclose(rows("marble", EVERYTHING.constraint_residual(Q))[:, 0], expected, atol=256 * EPS)


def test_rows_of_ones_own():
    J, c = EVERYTHING.constraint_jacobian(Q), EVERYTHING.constraint_velocity(Q, time=T)
    turn, screw = EVERYTHING.joint("turn").v_slice, EVERYTHING.joint("screw").v_slice
    plain = np.zeros((2, EVERYTHING.nv))
    plain[:, turn], plain[:, screw] = [[1], [0]], [[2, 3], [0, 1]]
    assert_array_equal(rows("plain", J), np.broadcast_to(plain, (20, *plain.shape)))
    assert_array_equal(rows("curved", J)[..., :2], skew_rows(Q))
    assert not rows("curved", J)[..., 2:].any()
    assert_array_equal(rows("plain", c), np.tile([0.5, 0.0], (20, 1)))
    assert_array_equal(rows("curved", c), np.full((20, 2), 0.1))
    expected = -np.einsum("nij,nj->ni", skew_rows_rate(Q, V), V[:, :2])
    assert_allclose(rows("curved", EVERYTHING.constraint_bias(Q, V, time=T)), expected, atol=16 * EPS)


@pytest.mark.parametrize("joint", [Fixed(), Spherical(), Planar("z"), Revolute("y"), Cylindrical((1, 2, 3))])
def test_a_body_led_along_a_frame_is_where_the_frame_is(joint):
    """At joint coordinate zero; the time functions move the frame in its own axes, for any axis of the joint."""
    b = Builder()
    b.add_body("cart", BALL)
    b.add_body("table", BALL)
    b.add_joint("track", Prismatic("x"), "ground", "cart")
    b.add_joint("float", Free(), "ground", "table")
    at_parent, at_child = Transform.from_rpy(0.1, 0.2, 0.3, (1, 2, 3)), Transform.from_rpy(0.5, -0.4, 0.3, (0, 1, 0))
    moves = {"rx": RAMP, "rz": WAVE, "ty": WAVE, "tz": 0.5}
    places = {"at_parent": at_parent, "at_child": at_child, "relative_to": "cart"}
    b.add_prescribed_frame("crane", "table", moves, joint=joint, **places)
    robot = b.build()
    for t in (-1.0, 0.0, 2.5):
        turn = Transform.from_rpy(RAMP(t), 0, 0) @ Transform.from_rpy(0, 0, WAVE(t))  # about x, then about the new z
        place = Transform(translation=(0.7, 0, 0)) @ at_parent @ turn @ Transform(translation=(0, WAVE(t), 0.5))
        body = place @ at_child.inverse()
        q = np.array([0.7, *sarrus.Rotation(body.rotation).quaternion, *body.translation])
        assert_allclose(robot.constraint_residual(q, time=t), 0.0, atol=64 * EPS)
        assert np.abs(robot.constraint_residual(q, time=t + 0.5)).max() > 0.01


# ---- rows by a function: how many there are shows when it is tried -------------------------------------------------------


def test_a_function_is_tried_at_home():
    seen = []

    def spy(q):
        seen.append(np.array(q))
        return np.ones((*q.shape[:-1], 1, 1))

    b = tree()
    b.add_pfaffian("spy", spy, ["turn"])
    b.set_home({"turn": 0.25})
    robot = b.build()
    home = robot.neutral()
    home[robot.joint("turn").q_slice] = 0.25
    assert_array_equal(seen[0], home)
    assert robot.constraint("spy").rows == slice(0, 1)


def test_a_function_may_be_undefined_at_home_and_constant():
    for function in (lambda q: 1.0 / np.zeros((*q.shape[:-1], 2, 1)), lambda q: [[1.0], [2.0]]):
        b = tree()
        b.add_pfaffian("rows", function, ["turn"], value=3)
        assert b.build().description.constraints[0].value == (3.0, 3.0)


# ---- laws ------------------------------------------------------------------------------------------------------------


def random_law(rng, pieces=3, terms=4, harmonics=2):
    starts = np.sort(rng.uniform(-1, 1, pieces))
    return laws.Law(
        tuple(starts),
        tuple(map(tuple, rng.normal(size=(pieces, terms)))),
        tuple(map(tuple, rng.normal(size=(harmonics, 3)))),
    )


LAWS = {
    "constant": laws.polynomial(0.7),
    "polynomial": laws.polynomial(1.0, -2.0, 0.5, 3.0),
    "harmonic": laws.harmonic(2.0, rate=3.0, phase=0.5, offset=-1.0),
    "spline": laws.spline([-1.0, 0.0, 0.5, 2.0], [0.3, 1.0, -1.0, 0.5], slopes=(0.5, -0.25)),
    "sum": laws.polynomial(0.0, 1.0) + laws.harmonic(0.1, rate=10.0) + 0.5,
    "pieces that jump": random_law(np.random.default_rng(6)),
}


def test_laws_by_their_formulas():
    t = np.linspace(-2, 3, 21)
    assert_allclose(laws.polynomial(1.0, -2.0, 0.5, 3.0)(t), 1 - 2 * t + t**2 / 2 + 3 * t**3, atol=256 * EPS)
    g = laws.harmonic(2.0, rate=3.0, phase=0.5, offset=-1.0).derivatives(t)
    s, c = np.sin(3 * t + 0.5), np.cos(3 * t + 0.5)
    assert_allclose(np.stack(g), [2 * s - 1, 6 * c, -18 * s], atol=64 * EPS)
    law = laws.Law((0.0, 1.0), ((1.0, 2.0), (5.0, 0.0)))
    assert law([-1.0, 0.0, 1.0 - EPS, 1.0, 9.0]).tolist() == [-1.0, 1.0, 3.0 - 2 * EPS, 5.0, 5.0]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_derivatives_are_those_of_the_value(law):
    t = np.random.default_rng(7).uniform(-3, 4, 50)
    away = np.abs(t[:, None] - np.array(law.starts[1:])).min(axis=-1, initial=np.inf) > 1e-3
    t, h = t[away], 1e-4
    g = [law.derivatives(t + k * h) for k in (-1, 0, 1)]
    # truncation h^2/6 g''' and rounding eps g/h, with g''' below 100 (the ripple's) and g below 1e3
    for k in (0, 1):
        assert_allclose((g[2][k] - g[0][k]) / (2 * h), g[1][k + 1], rtol=1e-7, atol=2e-6)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_times_broadcast(law):
    t = np.linspace(-2, 3, 6).reshape(2, 3)
    for k, g in enumerate(law.derivatives(t)):
        assert g.shape == (2, 3)
        singles = [law.derivatives(x)[k] for x in t.ravel()]
        assert all(type(x) is float for x in singles)
        assert_array_equal(g.ravel(), singles)
    assert_array_equal(law(t), law.derivatives(t)[0])
    assert law([]).shape == (0,)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_core_evaluates_the_same_law(law):
    b = tree()
    b.add_prescribed_motion("drive", "turn", law)
    robot = b.build()
    t = np.concatenate([np.random.default_rng(8).uniform(-3, 4, 29), law.starts])
    q, v = np.broadcast_to(robot.neutral(), (len(t), robot.nq)), np.zeros(robot.nv)
    g = np.stack(law.derivatives(t))
    found = (
        -robot.constraint_residual(q, time=t),
        robot.constraint_velocity(q, time=t),
        robot.constraint_bias(q, v, time=t),
    )
    # the same sums, but for the order and the sines; terms are below 1e3
    assert_allclose(np.concatenate(found, axis=-1).T, g, atol=1e3 * EPS, rtol=32 * EPS)


def test_a_spline_is_smooth_and_goes_through_its_points():
    """Interpolation, end slopes and continuous acceleration determine the spline."""
    rng = np.random.default_rng(9)
    t, y = np.cumsum(rng.uniform(0.1, 2.0, 12)), rng.normal(size=12)
    law = laws.spline(t, y, slopes=(1.5, -0.5))
    # rates reach 2 y/h and accelerations 6 y/h^2, with h down to 0.1: some hundreds
    tolerance = 1e3 * 64 * EPS
    assert_allclose(law(t), y, atol=tolerance)
    assert_allclose(law.derivatives(t[[0, -1]])[1], (1.5, -0.5), atol=tolerance)
    for k, limit in enumerate(t[1:-1], start=1):
        earlier = laws.Law(law.starts[k : k + 1], law.coefficients[k : k + 1])
        assert_allclose(earlier.derivatives(limit), law.derivatives(limit), atol=tolerance)
    assert_allclose(law(t[-1] + 2.0), y[-1] - 1.0, atol=tolerance)
    assert_allclose(law(t[0] - 2.0), y[0] - 3.0, atol=tolerance)


def test_a_spline_from_rest_to_rest_rests_outside():
    law = laws.spline([1.0, 2.0, 4.0], [0.0, 1.0, 3.0])
    for t, value in ((0.0, 0.0), (1.0 - EPS, 0.0), (4.0, 3.0), (100.0, 3.0)):
        assert law.derivatives(t) == (value, 0.0, 0.0)
    assert abs(law.derivatives(np.nextafter(4.0, 0.0))[1]) < 64 * EPS


def test_a_spline_through_a_cubic_is_the_cubic():
    cubic, t = laws.polynomial(1.0, -1.0, 0.5, 0.25), np.array([-1.0, -0.3, 0.1, 1.4, 2.0])
    law = laws.spline(t, cubic(t), slopes=tuple(cubic.derivatives(t[[0, -1]])[1]))
    between = np.linspace(-1, 2, 50, endpoint=False)
    assert_allclose(np.stack(law.derivatives(between)), np.stack(cubic.derivatives(between)), atol=256 * EPS)


def test_a_long_spline_costs_its_length():
    n = 20_000
    law = laws.spline(np.arange(n), np.arange(n) % 2)
    assert len(law.starts) == n + 1
    assert_array_equal(law(np.arange(n)), np.arange(n) % 2)


def test_sums_of_laws():
    t = np.linspace(-3, 3, 61)
    for a in LAWS.values():
        for b in LAWS.values():
            for g, g_a, g_b in zip((a + b).derivatives(t), a.derivatives(t), b.derivatives(t), strict=True):
                # a polynomial about another start: coefficients grow with the distance's powers
                assert_allclose(g, g_a + g_b, atol=1e4 * EPS)
        both = [a + 2, 2 + a, a + np.float64(2), np.float64(2) + a]
        assert all(law == both[0] and isinstance(law, laws.Law) for law in both)
        assert_allclose(both[0](t), a(t) + 2, atol=1e3 * EPS)
    assert sum([laws.polynomial(1.0), laws.polynomial(0.0, 1.0)]) == laws.polynomial(1.0, 1.0)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_laws_are_values(law):
    for same in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law), eval(repr(law), {"Law": laws.Law})):
        assert same == law
        assert hash(same) == hash(law)
    assert law + 1 != law
    with pytest.raises(AttributeError, match="cannot assign"):
        law.starts = ()


def test_numbers_in_a_law_become_plain_ones():
    assert laws.Law(np.zeros(1), np.ones((1, 2)), np.ones((1, 3))) == laws.Law((0,), ((1, 1),), ((1, 1, 1),))
    assert isinstance(hash(laws.Law(np.zeros(1), [[1, 2]], [])), int)


def test_a_bad_time_spoils_its_own_value_only():
    for law in LAWS.values():
        values = law([0.0, np.nan, 1.0])
        assert np.isnan(values).tolist() == [False, True, False]
