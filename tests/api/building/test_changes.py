"""Changes of a model: the result equals a directly written model; impossible changes raise errors and change nothing."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Inertia, ModelError, NameNotFoundError
from tests.gallery import every
from tests.random_closed import random_closed
from tests.random_mechanisms import ALL_JOINTS, random_joint, random_mechanism, random_state, random_transform
from tests.small_mechanisms import at

BALL = Inertia.sphere(1.0, 0.1)


@every
def test_there_and_back(mechanism):
    again = mechanism.to_builder().build()
    assert again == mechanism and again.description.visuals == mechanism.description.visuals


@pytest.mark.parametrize("seed", range(8))
def test_there_and_back_of_all_constraints(seed):
    closed = random_closed(seed, loops=3, copies=1)
    assert closed.robot.to_builder().build() == closed.robot


def test_a_law_in_a_coupler():
    """Wheels of a differential: the time function on the right side, and the velocity that it requires."""
    b = sarrus.Builder("differential")
    for k, name in enumerate(("left", "right")):
        b.add_body(name, BALL)
        b.add_joint(name, sarrus.Revolute("z"), "ground", name, at_parent=(0.2 * k, 0, 0))
    b.add_coupler("cage", {"left": 0.5, "right": 0.5}, offset=sarrus.laws.polynomial(1.0, 2.0))
    robot = b.build()
    assert robot.constraint_residual([1.5, 0.5], time=0.0).tolist() == [0.0]
    assert robot.constraint_velocity([1.5, 0.5], time=0.0).tolist() == [2.0]
    assert robot.to_builder().build() == robot


# ---- locking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in ALL_JOINTS if kind != "fixed"])
def test_a_locked_joint_holds_its_coordinates(kind):
    """Poses, and the mass matrix of the remaining joints, are those of the free mechanism in that configuration."""
    rng = np.random.default_rng(5)
    joints = {
        "first": sarrus.Revolute("x"),
        "middle": random_joint(kind, rng, friction=True),
        "last": sarrus.Revolute("y"),
    }
    b, below = sarrus.Builder(), "ground"
    for k, (name, joint) in enumerate(joints.items()):
        b.add_body(f"body{k}", BALL)
        places = {"at_parent": random_transform(rng), "at_child": random_transform(rng)}
        b.add_joint(name, joint, below, f"body{k}", **places)
        below = f"body{k}"
    free = b.build()
    q = random_state(free, rng)[0]
    middle = free.joint("middle")
    b.set_home({"middle": q[middle.q_slice], "last": 0.3})
    b.lock("middle", q[middle.q_slice])
    locked = b.build()
    ends = {name: q[free.joint(name).q_slice] for name in ("first", "last")}
    assert locked.nv == 2 and locked.description.home == (("last", (0.3,)),)
    assert_allclose(locked.pose(at(locked, ends), "body2"), free.pose(q, "body2"), atol=1e-14)
    rest = [0, free.nv - 1]
    assert_allclose(locked.mass_matrix(at(locked, ends)), free.mass_matrix(q)[np.ix_(rest, rest)], rtol=1e-12)


def test_locking_one_joint_of_a_four_bar_leaves_nothing():
    free = sarrus.mechanisms.four_bar()
    q = free.assemble(fixed={"motor": 0.5})
    b = free.to_builder()
    b.lock("motor", 0.5)
    locked = b.build()
    found = locked.assemble(near={name: q[free.joint(name).q_slice] for name in ("pin1", "pivot")})
    assert locked.mobility(found).degrees_of_freedom == 0
    assert_allclose(locked.pose(found, "rocker"), free.pose(q, "rocker"), atol=1e-12)


def geared(*links, offset=0.0):
    b = sarrus.Builder()
    for k in range(3):
        b.add_body(f"wheel{k}", BALL)
        b.add_joint(f"axle{k}", sarrus.Revolute("z"), "ground", f"wheel{k}", at_parent=(0.2 * k, 0, 0))
    b.add_coupler("gear", dict.fromkeys(links, (1.0, 2.0)), offset=offset)
    return b


def test_a_coupler_goes_on_without_a_locked_joint():
    b = geared("axle0", "axle1", "axle2", offset=5.0)
    b.lock("axle0", 0.5)  # 0.5 + 2 0.25 = 1 of the 5
    robot = b.build()
    assert_allclose(robot.constraint_residual([0.5, 1.0]), [1.0 + 3.0 - 4.0], atol=1e-14)
    b.lock("axle1", 0.5)
    b.lock("axle2", 1.0)
    assert b.build().constraints == () and b.build().nv == 0


# ---- taking away, putting together -------------------------------------------------------------------------------


def scene():
    """Return a builder with every kind of part on a cart."""
    b = sarrus.Builder("scene")
    for name in ("cart", "arm", "hand"):
        b.add_body(name, BALL)
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "cart", actuated=True)
    b.add_joint("shoulder", sarrus.Revolute("y"), "cart", "arm")
    b.add_joint("wrist", sarrus.Revolute("y"), "arm", "hand", at_parent=(1, 0, 0))
    b.add_frame("tip", "hand", (0.1, 0, 0))
    b.add_visual("hand", sarrus.shapes.Sphere(0.1))
    b.add_spring("coil", ("cart", (0, 0, 1)), ("hand", (0, 0, 0)), stiffness=1.0, rest_length=0.1)
    b.add_coupler("gear", {"shoulder": 1.0, "wrist": 1.0})
    b.add_distance("rod", ("ground", (0, 0, 0)), ("hand", (0, 0, 0)), length=1.0)
    b.add_pfaffian("rows", [[1.0, 2.0]], ["rail", "shoulder"])
    b.set_home({"rail": 0.1, "wrist": 0.2})
    b.set_configuration("out", {"wrist": 1.0, "rail": 2.0})
    return b


def test_remove_body():
    b = scene()
    assert b.remove_body("hand") == ("wrist", "tip", "gear", "rod", "coil")
    robot, d = b.build(), b.build().description
    assert robot.bodies == ("cart", "arm") and robot.constraints == ("rows",) and not d.visuals and not d.springs
    assert d.home == (("rail", (0.1,)),) and d.configurations == (("out", (("rail", (2.0,)),)),)


def test_remove_what_else():
    b = scene()
    assert b.remove_joint("rail") == ("rows",)
    b.remove_spring("coil")
    b.remove_frame("tip")
    b.remove_constraint("rod")
    b.add_joint("new rail", sarrus.Fixed(), "ground", "cart")
    robot = b.build()
    assert robot.constraints == ("gear",) and robot.frames == ("ground", "cart", "arm", "hand") and robot.nv == 2


def test_what_hangs_on_nothing_is_refused_when_built():
    b = scene()
    b.remove_body("cart")
    with pytest.raises(ModelError, match=r"no joint connects the ground to .arm., .hand."):
        b.build()


def test_set_inertia_and_joint():
    b = scene()
    b.set_inertia("arm", Inertia.sphere(7.0, 0.1))
    b.set_joint("rail", sarrus.Revolute("z", damping=0.5), actuated=False, at_parent=(0, 0, 3))
    robot = b.build()
    assert robot.mass == 9.0 and robot.actuated == () and robot.joint("rail").type.damping == 0.5
    assert robot.pose(robot.neutral(), "cart")[2, 3] == 3.0
    b.set_joint("wrist", loop=False, tree=True)
    assert b.build() != robot


def two(prefixes=("left_", "right_"), other=None):
    b = sarrus.Builder("two")
    b.add_body("torso", Inertia.box(20.0, (0.3, 0.4, 0.6)))
    b.add_joint("base", sarrus.Free(), "ground", "torso")
    for k, prefix in enumerate(prefixes):
        b.attach(other or scene(), prefix=prefix, body="torso", at=sarrus.Transform.from_rpy(0.1, 0.2, 0.3, (0, k, 0)))
    return b


@pytest.mark.parametrize("seed", range(4))
def test_attached_mechanisms_are_what_they_were(seed):
    """The grounds of attached mechanisms move with the torso: relative poses, and kinetic energy at rest, are unchanged."""
    rng = np.random.default_rng(seed)
    alone = random_mechanism(seed, bodies=6)
    q, v, _ = random_state(alone, rng)
    whole = two(other=alone).build()
    state = np.concatenate([random_state(whole, rng)[0][:7], q, q])
    for prefix in ("left_", "right_"):
        base = whole.pose(state, f"{prefix}ground")
        for frame in alone.frames:
            assert_allclose(whole.pose(state, prefix + frame), base @ alone.pose(q, frame), atol=1e-12)
    rest = np.concatenate([np.zeros(6), v, v])
    energy = v @ alone.mass_matrix(q) @ v
    assert_allclose(rest @ whole.mass_matrix(state) @ rest, 2 * energy, rtol=1e-12)


def test_attach_takes_everything_along():
    robot = two().build()
    d = robot.description
    assert [c.name for c in d.constraints] == [f"{p}{c}" for p in ("left_", "right_") for c in ("gear", "rod", "rows")]
    assert d.constraints[1].first[0] == "left_ground" and d.springs[1].second[0] == "right_hand"
    assert {v.body for v in d.visuals} == {"left_hand", "right_hand"}
    assert dict(d.home)["right_wrist"] == (0.2,) and tuple(dict(robot.description.configurations)) == ("out",)
    assert robot.configuration("out").tolist() == [0, 0, 0, 1, 0, 0, 0, 2.0, 0, 1.0, 2.0, 0, 1.0]
    assert robot.actuated == ("left_rail", "right_rail")


def test_attach_says_that_gravity_differs():
    b = sarrus.Builder("moon", gravity=(0, 0, -1.62))
    b.attach(sarrus.mechanisms.pendulum(), prefix="a_")
    assert b.warnings == [
        "the gravity (0.0, 0.0, -9.81) of 'pendulum' is not used: that of 'moon' is (0.0, 0.0, -1.62)"
    ]
    assert_array_equal(b.build().gravity, [0, 0, -1.62])


# ---- what is refused ---------------------------------------------------------------------------------------------


def skate():
    b = sarrus.Builder("skate")
    b.add_body("skate", BALL)
    b.add_joint("ice", sarrus.Planar("z"), "ground", "skate")
    b.add_pfaffian("blade", lambda q: np.zeros((*q.shape[:-1], 1, 3)), ["ice"])
    return b


def driven():
    b = sarrus.Builder("shaker")
    b.add_body("table", BALL)
    b.add_joint("float", sarrus.Free(), "ground", "table")
    b.add_prescribed_frame("shake", "table", {"tx": 0.1})
    b.add_body("wheel", BALL)
    b.add_joint("axle", sarrus.Revolute("z"), "table", "wheel")
    b.add_prescribed_motion("turn", "axle", sarrus.laws.polynomial(0, 1))
    return b


REFUSED = {
    "lock what is not there": (scene, lambda b: b.lock("wrst"), NameNotFoundError, "no joint is named 'wrst'; did you mean 'wrist'"),
    "lock at two numbers": (scene, lambda b: b.lock("wrist", (1, 2)), ModelError, r"joint 'wrist': at needs one finite number; got \(1, 2\)"),
    "lock what rows relate": (scene, lambda b: b.lock("rail"), ModelError, "joint 'rail' cannot be locked: constraint 'rows' relates it"),
    "lock against a coupler": (lambda: geared("axle0", offset=3.0), lambda b: b.lock("axle0", 2.0), ModelError, "'gear' would be violated by -7"),
    "lock against a law": (driven, lambda b: b.lock("axle"), ModelError, "constraint 'turn' prescribes it by a time function; first remove the constraint"),
    "lock what laws lead": (driven, lambda b: b.lock("shake"), ModelError, "joint 'shake' cannot be locked: time functions prescribe its motion"),
    "an inertia of nobody": (scene, lambda b: b.set_inertia("arn", BALL), NameNotFoundError, "no body is named 'arn'; did you mean 'arm'"),
    "a mass for an inertia": (scene, lambda b: b.set_inertia("arm", 3.0), ModelError, r"body 'arm' needs a sarrus.Inertia; got 3.0"),
    "a joint that is none": (scene, lambda b: b.set_joint("rail", "x"), ModelError, "needs a joint type"),
    "a change that is none": (scene, lambda b: b.set_joint("rail", damping=1), TypeError, "set_joint changes .*; got .'damping'."),
    "a joint that its coupler does not fit": (scene, lambda b: b.set_joint("wrist", sarrus.Spherical()), ModelError, "'gear': the rate of coordinate 0"),
    "a loop that is coupled": (scene, lambda b: b.set_joint("wrist", loop=True), ModelError, "'wrist', which closes a loop"),
    "remove no body": (scene, lambda b: b.remove_body("ground"), NameNotFoundError, "no body is named 'ground'"),
    "remove no joint": (scene, lambda b: b.remove_joint("rod"), NameNotFoundError, "no joint is named 'rod'"),
    "remove no constraint": (scene, lambda b: b.remove_constraint("wrist"), NameNotFoundError, "no constraint is named 'wrist'"),
    "remove no frame": (scene, lambda b: b.remove_frame("hand"), NameNotFoundError, "no frame is named 'hand'"),
    "remove no spring": (scene, lambda b: b.remove_spring(3), NameNotFoundError, "no spring is named '3'"),
    "attach without a prefix": (scene, lambda b: b.attach(scene(), prefix=""), ModelError, "attach needs a prefix for the names of the attached parts"),
    "attach no robot": (scene, lambda b: b.attach("robot.urdf", prefix="a"), ModelError, "requires a Mechanism or a Builder; got 'robot.urdf'"),
    "attach to nobody": (scene, lambda b: b.attach(scene(), prefix="a", body="leg"), NameNotFoundError, "what attaches 'scene': no body is named 'leg'"),
    "attach nowhere": (scene, lambda b: b.attach(scene(), prefix="a", at=(1, 2)), ModelError, "joint 'aground': at_parent must be a Transform"),
    "attach twice": (lambda: two(("a_",)), lambda b: b.attach(scene(), prefix="a_"), ModelError, "two bodies are named 'a_ground'"),
    "attach a function": (scene, lambda b: b.attach(skate(), prefix="a"), ModelError, "'skate' cannot be attached: constraint 'blade' is a Python function"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "change", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(make, change, error, message):
    b = make()
    before = b._described()
    with pytest.raises(error, match=message):
        change(b)
    assert b._described() == before


# ---- the core's builder ----------------------------------------------------------------------------------------------

REFUSED = {
    "body": lambda b: b.add_body("new", 1.0),
    "joint": lambda b: b.add_joint("new", sarrus.Revolute("z"), "ground", "turn_body", at_child=(0, 0, np.nan)),
    "joint of no type": lambda b: b.add_joint("new", "Revolute", "ground", "turn_body"),
    "frame": lambda b: b.add_frame("new", "turn_body", (0, 0, 1e200)),
    "visual": lambda b: b.add_visual("turn_body", sarrus.shapes.Sphere(0.1), color=(2, 0, 0)),
    "shape": lambda b: b.add_shape("turn_body", sarrus.shapes.Box((1, 1, -1)), name="new", group="new_group"),
    "contact": lambda b: b.set_contact("ground", "ground", friction=-1),
    "spring": lambda b: b.add_spring("new", ("ground", (0, 0, 0)), ("turn_body", (0, 0, 0)), stiffness=-1, rest_length=0),
    "distance": lambda b: b.add_distance("new", ("ground", (0, 0, 0)), ("turn_body", (0, 0, 0)), length=-1.0),
    "coupler": lambda b: b.add_coupler("new", {"turn": "one"}),
    "rolling": lambda b: b.add_rolling("new", "turn_body", radius=0.1, axle=(0, 0, 0)),
    "rows": lambda b: b.add_pfaffian("new", [[1.0, 2.0]], ["turn"]),
    "home": lambda b: b.set_home({"turn": (1.0, 2.0)}),
    "configuration": lambda b: b.set_configuration("new", {"turn": np.nan}),
}  # fmt: skip


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_a_refused_call_leaves_nothing(refused):
    """After a rejected call the builders of Python and core are unchanged: they accept the same names."""
    b = chain_of_one()
    before = b._described()
    with pytest.raises(sarrus.SarrusError):
        refused(b)
    assert b._described() == before
    b.add_body("new")
    b.add_joint("new_hinge", sarrus.Revolute("z"), "turn_body", "new")
    b.add_distance("new_rod", ("ground", (0, 0, 2)), ("new", (0, 0, 0)), length=2.0)
    b.add_shape("new", sarrus.shapes.Sphere(0.1), name="new_group")
    assert b.build().nv == 2


def chain_of_one():
    b = sarrus.Builder("one")
    b.add_body("turn_body", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("turn", sarrus.Revolute("y"), "ground", "turn_body")
    return b


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_copies_of_builders_are_builders_of_their_own(copied):
    b = chain_of_one()
    b.warnings.append("read from a napkin")
    other = copied(b)
    other.add_frame("tip", "turn_body")
    assert other.warnings == b.warnings and not b._described().frames
    b.add_frame("tip", "turn_body", (0, 0, 1))
    assert b.build() != other.build()


def test_numbers_of_every_kind_become_floats():
    """NumPy integers, numbers and arrays become plain floats in a description."""
    b = chain_of_one()
    b.add_spring(
        "coil",
        ["ground", np.array([0, 0, 1])],
        ("turn_body", (np.float32(0.5), 0, 0)),
        stiffness=np.int64(2),
        rest_length=1,
    )
    (spring,) = b._described().springs
    assert spring.first == ("ground", (0.0, 0.0, 1.0)) and spring.second == ("turn_body", (0.5, 0.0, 0.0))
    assert [type(x) for x in (*spring.first[1], spring.stiffness, spring.rest_length)] == [float] * 5
    b.add_joint("weld", sarrus.Fixed(), "ground", "turn_body", loop=np.True_)
    assert b._described().joints[1].loop is True


def test_arguments_that_contain_themselves():
    endless = []
    endless.append(endless)
    with pytest.raises(sarrus.ModelError, match="an axis"):
        sarrus.Revolute(endless)
    with pytest.raises(sarrus.ModelError, match="needs three finite numbers"):
        sarrus.Builder(gravity=endless)
