"""Bad input, in one table: every row raises the error that it names, and says what is wrong. Never a crash, never a silent wrong answer."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import (
    Builder,
    Cylindrical,
    Fixed,
    Free,
    Gimbal,
    Helical,
    Inertia,
    LoopsNotSolvedError,
    ModelError,
    NameNotFoundError,
    Planar,
    Prismatic,
    Revolute,
    ShapeError,
    Spherical,
    StateError,
    Universal,
)

NAN, INF = float("nan"), float("inf")
BALL = Inertia.sphere(1.0, 0.1)
ZERO = np.zeros(3)


def bodies(*names, inertia=BALL):
    builder = Builder()
    for name in names:
        builder.add_body(name, inertia)
    return builder


def joined(joint, *, inertia=BALL, **places):
    builder = bodies("arm", inertia=inertia)
    builder.add_joint("hinge", joint, "ground", "arm", **places)
    return builder.build()


def triangle():
    """A loop: two arms from the ground, joined at their ends."""
    builder = bodies("a", "b")
    builder.add_joint("left", Revolute("y"), "ground", "a")
    builder.add_joint("right", Revolute("y"), "ground", "b", at_parent=(1, 0, 0))
    builder.add_joint("top", Revolute("y"), "a", "b", at_parent=(1, 0, 0))
    return builder.build()


def massless_tip():
    builder = bodies("arm")
    builder.add_body("tip")
    builder.add_joint("hinge", Revolute("y"), "ground", "arm")
    builder.add_joint("wrist", Revolute("z"), "arm", "tip", at_parent=(1, 0, 0))
    return builder.build()


PENDULUM, BALL_JOINT, LOOP, TIP = joined(Revolute("y")), joined(Spherical()), triangle(), massless_tip()
Q = np.zeros(1)


def build(*ends, joint=None, called=None):
    """Bodies "a" and "b", and joints between these ends."""
    builder = bodies("a", "b")
    for k, (parent, child) in enumerate(ends):
        builder.add_joint(called or f"j{k}", joint or Revolute("z"), parent, child)
    return builder.build()


def id_(*args, **kwargs):
    return PENDULUM.inverse_dynamics(*(args or (Q, Q, Q)), **kwargs)


# fmt: off
BUILDING = {
    "gravity of two": (lambda: Builder(gravity=(0, 0)), ModelError, "gravity needs three finite numbers"),
    "gravity nan": (lambda: Builder(gravity=(0, 0, NAN)), ModelError, "gravity needs three finite numbers"),
    "gravity in words": (lambda: Builder(gravity="down"), ModelError, "gravity needs three finite numbers"),
    "no bodies": (lambda: Builder().build(), ModelError, "at least one body"),
    "body twice": (lambda: bodies("a", "a"), ModelError, "two bodies are named 'a'"),
    "body called ground": (lambda: bodies("ground"), ModelError, "a body cannot be named 'ground'"),
    "body without a name": (lambda: bodies(""), ModelError, "a body needs a name"),
    "body with a number for a name": (lambda: bodies(3), ModelError, "a body needs a name; got 3"),
    "body whose name is no text": (lambda: bodies("\ud800"), ModelError, "name"),
    "body with a mass for an inertia": (lambda: bodies("a", inertia=1.0), ModelError, "body 'a' needs a sarrus.Inertia; got 1.0"),
    "joint twice": (lambda: build(("ground", "a"), ("ground", "b"), called="j"), ModelError, "two joints are named 'j'"),
    "joint type, not a joint": (lambda: bodies("a").add_joint("j", Spherical, "ground", "a"), ModelError, "joint 'j' needs a joint type"),
    "joint in words": (lambda: bodies("a").add_joint("j", "revolute", "ground", "a"), ModelError, "joint 'j' needs a joint type"),
    "joint with itself": (lambda: build(("a", "a")), ModelError, "joint 'j0' joins body 'a' to itself"),
    "joint to nowhere": (lambda: build(("ground", "c")), ModelError, "joint 'j0' refers to body 'c', which does not exist"),
    "joint placed on a plane": (lambda: joined(Revolute("z"), at_parent=(1, 2)), ModelError, "at_parent must be a Transform or a transl"),
    "joint placed nowhere": (lambda: joined(Revolute("z"), at_child=(0, 0, NAN)), ModelError, "at_child"),
    "body not connected": (lambda: build(("ground", "a")), ModelError, "no joint leads from the ground to 'b'"),
    "bodies connected to each other only": (lambda: build(("a", "b")), ModelError, "no joint leads from the ground to 'a', 'b'"),
    "ball joint towards the ground": (lambda: build(("a", "ground"), ("ground", "b"), joint=Spherical()), ModelError, "swap parent and child"),
    "frame on no body": (lambda: bodies("arm").add_frame("f", "amr"), NameNotFoundError, "did you mean 'arm'?"),
    "frame called like a body": (lambda: bodies("a").add_frame("a", "a"), ModelError, "two frames are named 'a'"),
    "frame called ground": (lambda: bodies("a").add_frame("ground", "a"), ModelError, "two frames are named 'ground'"),
    "free spring": (lambda: joined(Free(stiffness=1.0)), ModelError, "free joint takes no stiffness"),
    "planar spring": (lambda: joined(Planar("z", stiffness=1.0)), ModelError, "planar joint takes no stiffness"),
}

JOINTS = {
    "axis zero": (lambda: Revolute((0, 0, 0)), ModelError, "an axis needs a direction"),
    "axis nan": (lambda: Prismatic((0, NAN, 0)), ModelError, "an axis needs three finite numbers"),
    "axis infinite": (lambda: Prismatic((0, INF, 0)), ModelError, "an axis needs three finite numbers"),
    "axis of two": (lambda: Cylindrical((1, 2)), ModelError, "an axis needs three finite numbers"),
    "axis by another name": (lambda: Revolute("w"), ModelError, "an axis is 'x', 'y', 'z', one of these with a minus"),
    "axis none": (lambda: Planar(None), ModelError, "an axis"),
    "second axis zero": (lambda: Universal("x", (0, 0, 0)), ModelError, "an axis needs a direction"),
    "axis left out": (lambda: Revolute(), TypeError, "axis"),
    "pitch nan": (lambda: Helical("z", NAN), ModelError, "pitch must be finite"),
    "pitch in words": (lambda: Helical("z", "steep"), ModelError, "pitch"),
    "two pitches": (lambda: Helical("z", [1, 2]), ModelError, "pitch"),
    "gimbal of unknown freedom": (lambda: Gimbal("rx rw"), ModelError, "'rw' is not one of rx ry rz tx ty tz"),
    "gimbal free twice": (lambda: Gimbal("rx rx"), ModelError, "named twice"),
    "gimbal of a number": (lambda: Gimbal(3), ModelError, "Gimbal"),
    "gimbal held by two": (lambda: Gimbal("rx", fixed=(1, 2)), ModelError, "fixed needs one number or 6"),
    "negative damping": (lambda: Revolute("z", damping=-1), ModelError, "damping cannot be negative; got -1"),
    "negative friction": (lambda: Revolute("z", friction=-1), ModelError, "friction cannot be negative; got -1"),
    "negative armature": (lambda: Free(armature=[0, 0, 0, 0, 0, -1]), ModelError, "armature cannot be negative"),
    "negative stiffness": (lambda: Revolute("z", stiffness=-1), ModelError, "stiffness cannot be negative; got -1"),
    "negative velocity limit": (lambda: Revolute("z", velocity_limit=-1), ModelError, "velocity_limit"),
    "damping nan": (lambda: Revolute("z", damping=NAN), ModelError, "damping must be finite"),
    "damping of two": (lambda: Revolute("z", damping=(1, 2)), ModelError, "damping needs one number or 1"),
    "damping in words": (lambda: Revolute("z", damping="some"), ModelError, "damping needs numbers"),
    "limits reversed": (lambda: Revolute("z", limits=(1, -1)), ModelError, "lower limit 1 is above upper limit -1"),
    "limits of one": (lambda: Revolute("z", limits=3.0), ModelError, "limits are a pair"),
    "limits of three": (lambda: Revolute("z", limits=(1, 2, 3)), ModelError, "limits are a pair"),
    "limits nan": (lambda: Revolute("z", limits=(NAN, 1)), ModelError, "limits must be"),
    "ball joint with three springs": (lambda: Spherical(stiffness=(1, 2, 3)), ModelError, "one stiffness"),
    "unknown keyword": (lambda: Revolute("z", dampign=1), TypeError, "dampign"),
}

INERTIAS = {
    "negative mass": (lambda: Inertia(-1, ZERO, np.eye(3)), ModelError, "mass"),
    "mass nan": (lambda: Inertia(NAN, ZERO, np.eye(3)), ModelError, "mass"),
    "centre of two": (lambda: Inertia(1, (0, 0), np.eye(3)), ShapeError, r"com has shape \(2,\)"),
    "centre infinite": (lambda: Inertia(1, (0, 0, INF), np.eye(3)), ModelError, "com"),
    "tensor of six": (lambda: Inertia(1, ZERO, np.ones(6)), ShapeError, r"about_com has shape \(6,\)"),
    "triangle inequality": (lambda: Inertia(1, ZERO, np.diag([1, 1, 3])), ModelError, "no body has one larger than the sum of the other two"),
    "negative moment": (lambda: Inertia(1, ZERO, np.diag([1, 1, -1])), ModelError, "moment|inertia"),
    "not symmetric": (lambda: Inertia(1, ZERO, [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), ModelError, "symmetric"),
    "turning without mass": (lambda: Inertia(0, ZERO, np.eye(3)), ModelError, "mass"),
}

STATES = {
    "too few": (lambda: PENDULUM.pose([], "arm"), ShapeError, "q has 0 entries in its last axis; this mechanism has nq = 1"),
    "v for q": (lambda: BALL_JOINT.pose(np.zeros(3), "arm"), ShapeError, r"nq = 4 \(nv = 3: did you pass v\?\)"),
    "q for v": (lambda: BALL_JOINT.velocity([0, 0, 0, 1], np.zeros(4), "arm"), ShapeError, r"nv = 3 \(nq = 4: did you pass q\?\)"),
    "a number": (lambda: id_(0.5, Q, Q), ShapeError, "q is a single number; it needs an axis of 1 entries"),
    "nothing": (lambda: id_(None, Q, Q), ShapeError, "q"),
    "none in a list": (lambda: id_([None], Q, Q), StateError, r"q\[0\] is nan"),
    "two and three": (lambda: id_(np.zeros((2, 1)), np.zeros((3, 1)), Q), ShapeError, r"v has leading axes \(3,\).* broadcast with \(2,\)"),
    "nan": (lambda: id_([NAN], Q, Q), StateError, r"q\[0\] is nan; it must be finite"),
    "infinite": (lambda: id_(Q, Q, [INF]), StateError, r"a\[0\] is infinite; it must be finite"),
    "quaternion of two": (lambda: BALL_JOINT.mass_matrix([0, 0, 0, 2.0]), StateError, r"q\[0:4\] is a quaternion of norm 2.0"),
    "quaternion of zero": (lambda: BALL_JOINT.mass_matrix([0, 0, 0, 0.0]), StateError, "see normalize"),
    "zero to normalize": (lambda: BALL_JOINT.normalize([0, 0, 0, 0.0]), StateError, r"q\[0:4\] is a quaternion of norm 0"),
    "complex": (lambda: id_([1j], Q, Q), TypeError, "q must hold real numbers"),
    "objects": (lambda: id_(np.array([1], object), Q, Q), TypeError, "q must hold real numbers"),
    "ragged": (lambda: id_([[1], [1, 2]], Q, Q), TypeError, "q must hold real numbers"),
    "text": (lambda: id_("up", Q, Q), TypeError, "q must hold real numbers"),
    "loop": (lambda: LOOP.inverse_dynamics(*np.zeros((3, 2))), LoopsNotSolvedError, "joint 'top' closes a loop"),
    "no inertia": (lambda: TIP.forward_dynamics(*np.zeros((3, 2))), StateError, "nothing has inertia along joint 'wrist'"),
    "no inertia, inverse": (lambda: TIP.mass_matrix_inverse(np.zeros(2)), StateError, "nothing has inertia along joint 'wrist'"),
    "too few directions": (lambda: PENDULUM.operational_inertia(Q, "arm"), StateError, "'arm' can move in 1 of 6 directions"),
    "centre of nothing": (lambda: joined(Revolute("z"), inertia=None).center_of_mass(Q), StateError, "mass"),
}

CALLS = {
    "unknown frame": (lambda: PENDULUM.pose(Q, "amr"), NameNotFoundError, "no frame is named 'amr'; did you mean 'arm'?"),
    "no frame like it": (lambda: PENDULUM.pose(Q, "tcp"), NameNotFoundError, "no frame is named 'tcp'; there are: arm, ground"),
    "frame by number": (lambda: PENDULUM.pose(Q, 0), TypeError, "frame must be the name of a frame"),
    "frame and a nul": (lambda: PENDULUM.pose(Q, "arm\0x"), NameNotFoundError, "no frame is named"),
    "frame that is no text": (lambda: PENDULUM.pose(Q, "\ud800"), NameNotFoundError, "no frame is named"),
    "frame left out": (lambda: PENDULUM.pose(Q), TypeError, "missing argument: 'frame'"),
    "unknown joint": (lambda: PENDULUM.joint("hing"), NameNotFoundError, "did you mean 'hinge'?"),
    "bases of an unknown joint": (lambda: PENDULUM.joint_bases(Q, "hing"), NameNotFoundError, "did you mean 'hinge'?"),
    "bases of a closing joint": (lambda: LOOP.joint_bases(np.zeros(2), "top"), ModelError, "joint 'top' closes a loop"),
    "too many arguments": (lambda: PENDULUM.mass_matrix(Q, Q), TypeError, r"mass_matrix\(\) takes 1 positional arguments but 2"),
    "missing argument": (lambda: PENDULUM.inverse_dynamics(Q, Q), TypeError, r"inverse_dynamics\(\) missing argument: 'a'"),
    "argument twice": (lambda: PENDULUM.mass_matrix(Q, q=Q), TypeError, "multiple values for argument 'q'"),
    "unknown keyword": (lambda: id_(Q, Q, Q, wrench={}), TypeError, "unexpected keyword argument 'wrench'"),
    "keyword of another function": (lambda: PENDULUM.mass_matrix(Q, wrenches={}), TypeError, "unexpected keyword argument 'wrenches'"),
    "wrenches in a list": (lambda: id_(wrenches=[np.zeros(6)]), TypeError, "wrenches must be a dict from frame names"),
    "wrench on an unknown frame": (lambda: id_(wrenches={"amr": np.zeros(6)}), NameNotFoundError, "did you mean 'arm'?"),
    "wrench on a number": (lambda: id_(wrenches={3: np.zeros(6)}), TypeError, "frame must be the name of a frame"),
    "wrench of three": (lambda: id_(wrenches={"arm": np.zeros(3)}), ShapeError, r"wrenches\['arm'\] has 3 entries in its last axis; it wants 6"),
    "wrench in words": (lambda: id_(wrenches={"arm": "push"}), TypeError, r"wrenches\['arm'\] must hold real numbers"),
    "base velocity of three": (lambda: id_(base_velocity=np.zeros(3)), ShapeError, "base_velocity has 3 entries"),
    "base velocity by position": (lambda: PENDULUM.inverse_dynamics(Q, Q, Q, np.zeros(6)), TypeError, "takes 3 positional arguments"),
    "no threads": (lambda: id_(threads=0), ValueError, "threads must be at least 1; got 0"),
    "negative threads": (lambda: id_(threads=-4), ValueError, "threads must be at least 1; got -4"),
    "half a thread": (lambda: id_(threads=1.5), TypeError, "integer"),
    "threads beyond counting": (lambda: id_(threads=2**70), OverflowError, "too large"),
    "expressed in the body": (lambda: PENDULUM.jacobian(Q, "arm", expressed_in="body"), ValueError, "'world_aligned'; got 'body'"),
    "expressed in nothing": (lambda: PENDULUM.jacobian(Q, "arm", expressed_in=None), ValueError, "expressed_in must be"),
    "out by position": (lambda: PENDULUM.mass_matrix(Q, np.zeros((1, 1))), TypeError, "positional"),
    "never built": (lambda: sarrus.Mechanism.__new__(sarrus.Mechanism).mass_matrix(Q), TypeError, "never built"),
    "of nothing": (lambda: sarrus.Mechanism.mass_matrix(None, Q), TypeError, "mass_matrix"),
}

SIZES = {
    "more rows than memory": (lambda: id_(np.broadcast_to(Q, (2**45, 1)), Q, Q), MemoryError, None),
    "a product of axes": (lambda: id_(np.zeros((2**23, 1, 1)), np.zeros((1, 2**23, 1)), Q), MemoryError, None),
    "more axes than numpy has": (lambda: PENDULUM.mass_matrix(np.zeros((1,) * 64)), ValueError, "dimensions"),
    "empty and endless": (lambda: joined(Fixed()).pose(np.empty((2**60, 0)), "arm"), ValueError, "too big|too large"),
    "two endless axes": (lambda: joined(Fixed()).velocity(np.empty((2**40, 1, 0)), np.empty((2**40, 0)), "arm"), ValueError, "too big|too large"),
}
# fmt: on

TABLE = {
    f"{part}: {name}": row
    for part, rows in {
        "building": BUILDING,
        "joints": JOINTS,
        "inertias": INERTIAS,
        "states": STATES,
        "calls": CALLS,
        "sizes": SIZES,
    }.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize(("attempt", "error", "message"), TABLE.values(), ids=TABLE)
def test_raises(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt()


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ModelError, ValueError),
        (ShapeError, ValueError),
        (StateError, ValueError),
        (NameNotFoundError, KeyError),
        (LoopsNotSolvedError, NotImplementedError),
        (sarrus.AssemblyError, ValueError),
        (sarrus.NotRealizableError, ValueError),
        (sarrus.IntegrationError, ArithmeticError),
    ],
)
def test_errors_are_ours_and_pythons(error, builtin):
    assert issubclass(error, sarrus.SarrusError)
    assert issubclass(error, builtin)


# what would crash shows in the exit code of a process of its own
def test_hostile_keywords_do_not_crash():
    code = """if True:
        import sarrus
        robot = sarrus.mechanisms.pendulum()
        for name in ("\\ud800", "q\\0", "", "q" * 10**6):
            try:
                robot.mass_matrix(**{name: [0.0]})
            except TypeError as error:
                assert "keyword" in str(error), error
            else:
                raise AssertionError(name)
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


# ---- what is handled as documented -----------------------------------------------------------------------------------


def test_loops_are_accepted_and_their_tree_moves():
    assert LOOP.warnings == ("joint 'top' closes a loop: loops are not solved yet",)
    assert (LOOP.joints, LOOP.loop_joints, LOOP.nv) == (("left", "right"), ("top",), 2)
    q, v, a = np.zeros((3, 2))
    assert_array_equal(LOOP.pose(q, "b")[:3, 3], [1, 0, 0])
    assert LOOP.kinematics(q, v, a).acceleration("b").shape == (6,)
    assert_array_equal(LOOP.difference(q, LOOP.integrate(q, v + 1)), v + 1)
    of_states = {
        "forward_dynamics": (q, v, a),
        "reactions": (q, v, a),
        "regressor": (q, v, a),
        "mass_matrix": (q,),
        "mass_matrix_inverse": (q,),
        "bias_forces": (q, v),
        "gravity_forces": (q,),
        "coriolis_matrix": (q, v),
        "omega": (q, "b"),
        "operational_inertia": (q, "b"),
    }
    for name, args in of_states.items():
        with pytest.raises(LoopsNotSolvedError, match="loops are not solved yet"):
            getattr(LOOP, name)(*args)
        with pytest.raises(LoopsNotSolvedError):
            getattr(LOOP, name)(np.zeros((3, 2)), *args[1:])


def test_a_cycle_through_a_weld_is_a_loop():
    builder = bodies("a", "b", "c")
    for name, ends in {"ab": ("a", "b"), "bc": ("b", "c"), "ca": ("c", "a"), "base": ("ground", "a")}.items():
        builder.add_joint(name, Fixed() if name == "ca" else Revolute("z"), *ends)
    assert len(builder.build().loop_joints) == 1


def test_a_tip_without_mass():
    """Its forces can be told, its acceleration cannot; unless the motor has a rotor."""
    assert TIP.warnings == ("nothing has inertia along joint 'wrist': forward dynamics has no answer",)
    q, v, a = np.array([0.3, 0.2]), np.ones(2), np.ones(2)
    assert_allclose(TIP.inverse_dynamics(q, v, a)[1], 0.0, atol=1e-15)
    assert_allclose(TIP.mass_matrix(q)[1], 0.0, atol=1e-15)
    result, status = TIP.forward_dynamics(np.stack([q, q]), v, a, return_status=True)
    assert_array_equal(status, [2, 2])
    assert np.isnan(result).all()

    builder = bodies("arm")
    builder.add_body("tip")
    builder.add_joint("hinge", Revolute("y"), "ground", "arm")
    builder.add_joint("wrist", Revolute("z", armature=0.1), "arm", "tip")
    geared = builder.build()
    assert geared.warnings == ()
    assert_allclose(geared.forward_dynamics(q, v, a)[1], 10.0)


@pytest.mark.parametrize("axis", ["z", (1, 2, 3), (-3, 1, 0.1)])
def test_a_point_on_its_axis_has_no_inertia(axis):
    """However the axis rounds."""
    joint = Revolute(axis)
    builder = bodies("arm", inertia=Inertia(1.0, 0.3 * joint.axis, np.zeros((3, 3))))
    builder.add_joint("spin", joint, "ground", "arm")
    with pytest.raises(StateError, match="nothing has inertia along joint 'spin'"):
        builder.build().forward_dynamics(Q, Q, Q)


def test_long_and_short_axes_have_their_direction():
    assert_allclose(Revolute((1e200, 1e200, 0)).axis, np.array([1, 1, 0]) / np.sqrt(2))
    assert_allclose(Revolute((1e-9, 0, 0)).axis, [1, 0, 0])


def test_long_quaternions_are_normalized():
    for length in (1e-9, 1.0, 1e100, 1e200):
        assert_allclose(BALL_JOINT.normalize([0, 0, 0.6 * length, -0.8 * length]), [0, 0, 0.6, -0.8])


def test_names_may_be_any_text():
    names = ["a", "a\0b", "ünïcödé", "關節", "a b/c", "'quoted'", "x" * 10**5]
    builder = bodies(*names)
    for k, name in enumerate(names):
        builder.add_joint(name, Fixed(), "ground", name, at_parent=(k, 0, 0))
    robot = builder.build()
    assert [robot.pose([], name)[0, 3] for name in names] == list(range(len(names)))


@pytest.mark.parametrize(("second", "q"), [(Revolute("y"), 1.0), (Prismatic("x"), 0.5)], ids=["tilt", "reach"])
def test_a_point_that_leaves_the_axis_has_inertia(second, q):
    """A point mass on the first axis at zero, and there only: the spherical pendulum, the polar arm."""
    builder = bodies("fork", inertia=None)
    builder.add_body("bob", Inertia(1.0, (0, 0, -1), np.zeros((3, 3))))
    builder.add_joint("pan", Revolute("z"), "ground", "fork")
    builder.add_joint("second", second, "fork", "bob")
    robot = builder.build()
    assert robot.warnings == ()
    q, tau = np.array([0.3, q]), np.ones(2)
    a = robot.forward_dynamics(q, 0 * tau, tau)
    assert_allclose(robot.inverse_dynamics(q, 0 * tau, a), tau)
