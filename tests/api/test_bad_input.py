"""Table of invalid inputs: every row raises its error with the reason; never a crash or a silent wrong result."""

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
    Gimbal,
    Helical,
    Inertia,
    ModelError,
    NameNotFoundError,
    Planar,
    Prismatic,
    Revolute,
    ShapeError,
    Spherical,
    StateError,
    Universal,
    laws,
    spatial,
)
from sarrus.figures.canvas import curves
from sarrus.figures.skeleton import Skeleton

NAN, INF = float("nan"), float("inf")
BALL = Inertia.sphere(1.0, 0.1)
ZERO = np.zeros(3)


def bodies(*names, inertia=BALL):
    builder = Builder()
    for name in names:
        builder.add_body(name, inertia)
    return builder


def joined(joint, *, inertia=BALL, **keywords):
    builder = bodies("arm", inertia=inertia)
    builder.add_joint("hinge", joint, "ground", "arm", **keywords)
    return builder.build()


def triangle(**terms):
    """Return a loop: two arms from the ground, connected at their ends; joints have terms by name."""
    builder = bodies("a", "b")
    builder.add_joint("left", Revolute("y", **terms.get("left", {})), "ground", "a")
    builder.add_joint("right", Revolute("y", **terms.get("right", {})), "ground", "b", at_parent=(1, 0, 0))
    builder.add_joint("top", Revolute("y", **terms.get("top", {})), "a", "b", at_parent=(1, 0, 0))
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
    """Return bodies "a" and "b", and joints between these ends."""
    builder = bodies("a", "b")
    for k, (parent, child) in enumerate(ends):
        builder.add_joint(called or f"j{k}", joint or Revolute("z"), parent, child)
    return builder.build()


def id_(*args, **kwargs):
    return PENDULUM.inverse_dynamics(*(args or (Q, Q, Q)), **kwargs)


def scene():
    """Return bodies "a" and "b" on joints with all numbers of coordinates, and a bar with a loop."""
    builder = bodies("a", "b", "bar", "puck", "ball", "stone")
    builder.add_joint("hinge", Revolute("y"), "ground", "a")
    builder.add_joint("sleeve", Cylindrical("y"), "a", "b", at_parent=(1, 0, 0))
    builder.add_joint("weld", Fixed(), "ground", "bar", tree=True)
    builder.add_joint("rivet", Revolute("z"), "b", "bar", loop=True)
    builder.add_joint("ice", Planar("z"), "ground", "puck")
    builder.add_joint("socket", Spherical(), "ground", "ball")
    builder.add_joint("float", Free(), "ground", "stone")
    return builder


def distance(first=("a", ZERO), second=("b", ZERO), length=1.0, name="rod"):
    scene().add_distance(name, first, second, length=length)


def couple(coordinates, name="gear", **keywords):
    scene().add_coupler(name, coordinates, **keywords)


def transmit(
    motors=("left", "right"), joints=("hinge", ("sleeve", 1)), matrix=((2.0, 1.0), (2.0, -1.0)), name="belts", **numbers
):
    scene().add_transmission(name, motors, joints, matrix, **numbers)


def prescribe(joint="hinge", law=0.0):
    scene().add_prescribed_motion("drive", joint, law)


def lead(laws, body="b", **keywords):
    scene().add_prescribed_frame("crane", body, laws, **keywords)


def roll(body="ball", radius=0.1, **keywords):
    scene().add_rolling("contact", body, radius=radius, **keywords)


def pfaffian(rows, joints=("hinge", "sleeve"), **keywords):
    builder = scene()
    builder.add_pfaffian("blade", rows, joints, **keywords)
    return builder.build()


def chosen_loop(add):
    """Add a constraint on a joint that becomes a loop joint."""
    builder = bodies("a", "b")
    builder.add_joint("left", Revolute("y"), "ground", "a")
    builder.add_joint("right", Revolute("y"), "ground", "b", at_parent=(1, 0, 0))
    builder.add_joint("top", Revolute("y"), "a", "b", at_parent=(1, 0, 0))
    add(builder)
    return builder.build()


def all_in_the_tree():
    builder = bodies("a", "b")
    for name, ends in {"left": ("ground", "a"), "right": ("ground", "b"), "top": ("a", "b")}.items():
        builder.add_joint(name, Revolute("y"), *ends, tree=True)
    builder.build()


def named_twice(kind):
    builder = scene()
    builder.add_distance("rod", ("a", ZERO), ("b", ZERO), length=1.0)
    if kind == "joint":
        builder.add_joint("rod", Fixed(), "a", "b")
    else:
        builder.add_coupler("rod", {"hinge": 1})


def narrow(q):
    return np.ones((*q.shape[:-1], 1, 1))


def prescribe_twice():
    builder = scene()
    builder.add_prescribed_motion("one", "hinge", laws.polynomial(0, 1))
    builder.add_prescribed_motion("same", "hinge", laws.polynomial(0, 1))
    builder.add_prescribed_motion("other", "hinge", laws.polynomial(0, 2))


# fmt: off
BUILDING = {
    "gravity of two": (lambda: Builder(gravity=(0, 0)), ModelError, "gravity needs three finite numbers"),
    "gravity nan": (lambda: Builder(gravity=(0, 0, NAN)), ModelError, "gravity needs three finite numbers"),
    "gravity in words": (lambda: Builder(gravity="down"), ModelError, "gravity needs three finite numbers"),
    "no bodies": (lambda: Builder().build(), ModelError, "at least one body"),
    "body twice": (lambda: bodies("a", "a"), ModelError, "two bodies are named 'a'"),
    "body called ground": (lambda: bodies("ground"), ModelError, "a body cannot be named 'ground'"),
    "a mechanism to begin with": (lambda: Builder(PENDULUM), TypeError, r"requires the name of the mechanism, such as Builder\('robot'\).*to_builder"),
    "no name": (lambda: Builder(None), TypeError, "requires the name of the mechanism"),
    "a name that is no text": (lambda: Builder("\ud800"), ModelError, "a mechanism needs a name that can be printed"),
    "body without a name": (lambda: bodies(""), ModelError, "a body needs a name"),
    "body named by numbers": (lambda: bodies(np.zeros(3)), ModelError, "a body needs a name"),
    "body that clears the screen": (lambda: bodies("a\x1b[2J"), ModelError, r"a body needs a name that can be printed; 'a\\x1b\[2J' contains U\+001B"),
    "body on two lines": (lambda: bodies("a\nb"), ModelError, r"'a\\nb' contains U\+000A"),
    "cable with half a character": (lambda: bodies("a").add_cable("\ud800", ("ground", ZERO), "a\ud800"), ModelError, r"cable '\\ud800'"),
    "cable on two lines": (lambda: bodies("a").add_cable("up\n", ("ground", ZERO), ("b\n", ZERO)), NameNotFoundError, r"no body is named 'b\\n'"),
    "body with half a character": (lambda: bodies("a\ud800"), ModelError, r"contains U\+D800"),
    "joint written backwards": (lambda: build(("ground", "a"), called="\u202ej"), ModelError, r"a joint needs a name that can be printed; '\\u202ej' contains U\+202E"),
    "frame that ends its line": (lambda: bodies("a").add_frame("\u2028", "a"), ModelError, r"a frame needs a name that can be printed"),
    "spring with a bell": (lambda: bodies("a", "b").add_spring("\a", ("a", ZERO), ("b", ZERO), stiffness=1, rest_length=0), ModelError, r"a spring needs a name that can be printed"),
    "mechanism with a bell": (lambda: Builder("\a").build(), ModelError, r"a mechanism needs a name that can be printed; '\\x07'"),
    "unknown body with a bell": (lambda: bodies("a").add_frame("f", "\a"), NameNotFoundError, r"no body is named '\\x07'"),
    "body with a number for a name": (lambda: bodies(3), ModelError, "a body needs a name; got 3"),
    "body whose name is no text": (lambda: bodies("\ud800"), ModelError, "name"),
    "body with a mass for an inertia": (lambda: bodies("a", inertia=1.0), ModelError, "body 'a' needs a sarrus.Inertia; got 1.0"),
    "joint twice": (lambda: build(("ground", "a"), ("ground", "b"), called="j"), ModelError, "two joints are named 'j'"),
    "joint type, not a joint": (lambda: bodies("a").add_joint("j", Spherical, "ground", "a"), ModelError, "joint 'j' needs a joint type"),
    "joint in words": (lambda: bodies("a").add_joint("j", "revolute", "ground", "a"), ModelError, "joint 'j' needs a joint type"),
    "joint with itself": (lambda: build(("a", "a")), ModelError, "joint 'j0' connects body 'a' to itself"),
    "joint to nowhere": (lambda: build(("ground", "c")), ModelError, "joint 'j0' refers to body 'c', which does not exist; there are: a, b, ground"),
    "joint to a misspelt body": (lambda: build(("groud", "a")), ModelError, "body 'groud', which does not exist; did you mean 'ground'?"),
    "joint to none": (lambda: build(("ground", None)), ModelError, "joint 'j0': parent and child must be names of bodies; got None"),
    "joint from an array": (lambda: build((ZERO, "a")), ModelError, "joint 'j0': parent and child must be names of bodies"),
    "joint actuated in words": (lambda: joined(Revolute("z"), actuated="no"), ModelError, "joint 'hinge': actuated must be True or False; got 'no'"),
    "joint in an array of trees": (lambda: joined(Revolute("z"), tree=ZERO), ModelError, "tree must be True or False"),
    "joint placed beyond numbers": (lambda: joined(Revolute("z"), at_parent=10**400), ModelError, "at_parent must be a Transform or a transl"),
    "joint placed in text": (lambda: joined(Revolute("z"), at_parent=("1", "2", "3")), ModelError, "at_parent must be a Transform or a transl"),
    "spring without a name": (lambda: scene().add_spring(None, ("a", ZERO), ("b", ZERO), stiffness=1, rest_length=1), ModelError, "a spring needs a name; got None"),
    "joint placed on a plane": (lambda: joined(Revolute("z"), at_parent=(1, 2)), ModelError, "at_parent must be a Transform or a transl"),
    "joint placed nowhere": (lambda: joined(Revolute("z"), at_child=(0, 0, NAN)), ModelError, "at_child"),
    "body not connected": (lambda: build(("ground", "a")), ModelError, "no joint connects the ground to 'b'"),
    "bodies connected to each other only": (lambda: build(("a", "b")), ModelError, "no joint connects the ground to 'a', 'b'"),
    "frame on no body": (lambda: bodies("arm").add_frame("f", "amr"), NameNotFoundError, "frame 'f': no body is named 'amr'; did you mean 'arm'?"),
    "frame called like a body": (lambda: bodies("a").add_frame("a", "a"), ModelError, "two frames are named 'a'"),
    "frame called ground": (lambda: bodies("a").add_frame("ground", "a"), ModelError, "two frames are named 'ground'"),
    "free spring": (lambda: joined(Free(stiffness=1.0)), ModelError, "Free joint cannot have stiffness"),
    "planar spring": (lambda: joined(Planar("z", stiffness=1.0)), ModelError, "Planar joint cannot have stiffness"),
}

JOINTS = {
    "axis zero": (lambda: Revolute((0, 0, 0)), ModelError, "an axis must be longer than 1e-12"),
    "axis nan": (lambda: Prismatic((0, NAN, 0)), ModelError, "an axis needs three finite numbers"),
    "axis infinite": (lambda: Prismatic((0, INF, 0)), ModelError, "an axis needs three finite numbers"),
    "axis of two": (lambda: Cylindrical((1, 2)), ModelError, "an axis needs three finite numbers"),
    "axis by another name": (lambda: Revolute("w"), ModelError, "an axis must be 'x', 'y' or 'z', one of these with a minus"),
    "axis beyond numbers": (lambda: Revolute((0, 0, 10**400)), ModelError, "an axis must be a name or three numbers"),
    "axis masked": (lambda: Revolute(np.ma.masked_array([1, 2, 3], [0, 0, 1])), ModelError, "an axis must be a name or three numbers"),
    "axis none": (lambda: Planar(None), ModelError, "an axis"),
    "second axis zero": (lambda: Universal("x", (0, 0, 0)), ModelError, "an axis must be longer than 1e-12"),
    "axis left out": (lambda: Revolute(), TypeError, "axis"),
    "pitch nan": (lambda: Helical("z", NAN), ModelError, "pitch must be finite"),
    "pitch in words": (lambda: Helical("z", "steep"), ModelError, "pitch"),
    "two pitches": (lambda: Helical("z", [1, 2]), ModelError, "pitch"),
    "gimbal of unknown freedom": (lambda: Gimbal("rx rw"), ModelError, "'rw' is not one of rx ry rz tx ty tz"),
    "gimbal free twice": (lambda: Gimbal("rx rx"), ModelError, "contains a parameter twice"),
    "gimbal of arrays": (lambda: Gimbal(np.ones((2, 2))), ModelError, "is not one of rx ry rz tx ty tz"),
    "gimbal of a number": (lambda: Gimbal(3), ModelError, "Gimbal"),
    "gimbal held by two": (lambda: Gimbal("rx", fixed=(1, 2)), ModelError, "fixed needs one number or 6"),
    "negative damping": (lambda: Revolute("z", damping=-1), ModelError, "damping cannot be negative; got -1"),
    "negative friction": (lambda: Revolute("z", friction=-1), ModelError, "friction cannot be negative; got -1"),
    "negative armature": (lambda: Free(armature=[0, 0, 0, 0, 0, -1]), ModelError, "armature cannot be negative"),
    "negative stiffness": (lambda: Revolute("z", stiffness=-1), ModelError, "stiffness cannot be negative; got -1"),
    "negative velocity limit": (lambda: Revolute("z", velocity_limit=-1), ModelError, "velocity_limit"),
    "damping nan": (lambda: Revolute("z", damping=NAN), ModelError, "damping must be finite"),
    "damping of two": (lambda: Revolute("z", damping=(1, 2)), ModelError, "damping needs one number or 1"),
    "damping beyond numbers": (lambda: Revolute("z", damping=10**400), ModelError, "damping needs numbers"),
    "damping in text": (lambda: Revolute("z", damping="3"), ModelError, "damping needs numbers; got '3'"),
    "damping masked": (lambda: Spherical(damping=np.ma.masked_array([1, 2, 3], [0, 0, 1])), ModelError, "damping needs numbers"),
    "damping in words": (lambda: Revolute("z", damping="some"), ModelError, "damping needs numbers"),
    "limits reversed": (lambda: Revolute("z", limits=(1, -1)), ModelError, "lower limit 1 is above upper limit -1"),
    "limits of one": (lambda: Revolute("z", limits=3.0), ModelError, "limits must be a pair"),
    "limits of three": (lambda: Revolute("z", limits=(1, 2, 3)), ModelError, "limits must be a pair"),
    "limits of a quaternion": (lambda: Spherical(limits=(-0.1, 0.1)), ModelError, "Spherical: a quaternion cannot have limits"),
    "limits of a quaternion and a place": (lambda: Free(limits=(-1, 1)), ModelError, "infinite limits for the first four"),
    "limits nan": (lambda: Revolute("z", limits=(NAN, 1)), ModelError, "limits must be"),
    "ball joint with three springs": (lambda: Spherical(stiffness=(1, 2, 3)), ModelError, "equal stiffness about all axes"),
    "unknown keyword": (lambda: Revolute("z", dampign=1), TypeError, "dampign"),
    "damping of a weld": (lambda: Fixed(damping=1), ModelError, "Fixed: damping must be zero, because this joint does not move; got 1"),
    "limits of a weld": (lambda: Fixed(limits=(-1, 1)), ModelError, "Fixed: limits must be zero"),
    "spring of a gimbal with nothing free": (lambda: Gimbal("", stiffness=2.0), ModelError, "Gimbal: stiffness must be zero"),
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

HINTS = {
    "both hints": (lambda: bodies("a").add_joint("j", Fixed(), "ground", "a", tree=True, loop=True), ModelError, "joint 'j' cannot be both a tree joint and a loop joint"),
    "a loop of joints that stay": (lambda: all_in_the_tree(), ModelError, "joint 'top' cannot be in the tree"),
    "nothing left for the tree": (lambda: joined(Fixed(), loop=True), ModelError, "no joint connects the ground to 'arm'"),
}

CONSTRAINTS = {
    "name of a joint": (lambda: distance(name="hinge"), ModelError, "a joint and a constraint are both named 'hinge'"),
    "joint with the name of a constraint": (lambda: named_twice("joint"), ModelError, "a joint and a constraint are both named 'rod'"),
    "constraint twice": (lambda: named_twice("constraint"), ModelError, "two constraints are named 'rod'"),
    "constraint without a name": (lambda: distance(name=""), ModelError, "a constraint needs a name; got ''"),

    "rod of no length": (lambda: distance(length=0), ModelError, r"'rod': length must be positive; got 0\.0; .* Spherical"),
    "rod of negative length": (lambda: distance(length=-1.5), ModelError, r"'rod': length must be positive; got -1\.5$"),
    "rod of infinite length": (lambda: distance(length=INF), ModelError, "'rod': length needs one finite number; got inf"),
    "rod of two lengths": (lambda: distance(length=(1, 2)), ModelError, "'rod': length needs one finite number"),
    "rod from a body to itself": (lambda: distance(second=("a", (1, 0, 0))), ModelError, "'rod' connects body 'a' to itself"),
    "rod to nowhere": (lambda: distance(second=("balk", ZERO)), NameNotFoundError, "'rod': second: no body is named 'balk'; did you mean 'ball'"),
    "rod from a point of two": (lambda: distance(first=("a", (0, 0))), ModelError, r"'rod': first point needs three finite numbers \[m\]; got \(0, 0\)"),
    "rod to a point nan": (lambda: distance(second=("b", (0, NAN, 0))), ModelError, "'rod': second point needs three finite numbers"),
    "rod from a body without a point": (lambda: distance(first="a"), ModelError, r"'rod': first end must be a pair \(body, point\); got 'a'"),

    "nothing coupled": (lambda: couple({}), ModelError, "'gear' needs a dict from joints to coefficients; got {}"),
    "coupled in a list": (lambda: couple(["hinge"]), ModelError, "'gear' needs a dict from joints to coefficients"),
    "coupled to nothing": (lambda: couple({"hinge": 0, ("sleeve", 1): (0, 0)}), ModelError, "'gear' has only zero coefficients"),
    "coupled without coefficients": (lambda: couple({"hinge": ()}), ModelError, "'gear': coefficients of 'hinge' needs at least one number"),
    "coupled nan": (lambda: couple({"hinge": NAN}), ModelError, r"'gear': coefficients of 'hinge' needs a finite number or a sequence of them; got \(nan,\)"),
    "coupled in words": (lambda: couple({"hinge": "2"}), ModelError, "'gear': coefficients of 'hinge' needs a finite number"),
    "coupled with itself": (lambda: couple({"hinge": 1, ("hinge", 0): -1}), ModelError, "'gear' names coordinate 0 of joint 'hinge' twice"),
    "coupled to an unknown joint": (lambda: couple({"hing": 1}), NameNotFoundError, "'gear': no joint is named 'hing'; did you mean 'hinge'"),
    "coupled to a number": (lambda: couple({3: 1}), NameNotFoundError, "'gear': no joint is named '3'"),
    "coupled to one of two": (lambda: couple({"sleeve": 1}), ModelError, r"'gear': joint 'sleeve' has 2 coordinates; give an index, such as \('sleeve', 0\)"),
    "coupled to the third of two": (lambda: couple({("sleeve", 2): 1}), ModelError, r"joint 'sleeve' \(Cylindrical\) has 2 coordinates; index 2 is out of range"),
    "coupled from the end": (lambda: couple({("sleeve", -1): 1}), ModelError, "index -1 is out of range"),
    "coupled to half an index": (lambda: couple({("sleeve", 0.5): 1}), ModelError, r"a coordinate must be the name of a joint, or \(name, index\)"),
    "coupled to a weld": (lambda: couple({"weld": 1}), ModelError, r"joint 'weld' \(Fixed\) has 0 coordinates"),
    "coupled to a quaternion": (lambda: couple({("socket", 3): 1}), ModelError, r"the rate of coordinate 3 of joint 'socket' \(Spherical\) is not a velocity"),
    "coupled to a floating position": (lambda: couple({("float", 6): 1}), ModelError, r"coordinate 6 of joint 'float' \(Free\) is not a velocity"),
    "coupled to a planar displacement": (lambda: couple({("ice", 1): 1}), ModelError, r"coordinate 1 of joint 'ice' \(Planar\) is not a velocity"),
    "coupled to a closing joint": (lambda: couple({"rivet": 1}), ModelError, "'gear' refers to joint 'rivet', which closes a loop and so has no coordinates"),
    "coupled to a joint that came to close": (lambda: chosen_loop(lambda b: b.add_coupler("gear", {"top": 1})), ModelError, "'gear' refers to joint 'top', which closes a loop .*tree=True"),
    "transmission without a name": (lambda: transmit(name=3), ModelError, "a transmission needs a name; got 3"),
    "motors in one word": (lambda: transmit(motors="left"), ModelError, "'belts': motors needs a list of one or more names; got 'left'"),
    "motor twice": (lambda: transmit(motors=("left", "left")), ModelError, "'belts' names a motor twice: left, left"),
    "motor with the name of a joint": (lambda: transmit(motors=("left", "hinge")), ModelError, "two joints are named 'hinge'"),
    "joints of a transmission in one word": (lambda: transmit(joints="hinge"), ModelError, "'belts': joints needs a list .*got 'hinge'"),
    "driven twice": (lambda: transmit(joints=("hinge", "hinge")), ModelError, "'belts' names coordinate 0 of joint 'hinge' twice"),
    "driven where it closes a loop": (lambda: transmit(joints=("hinge", "rivet")), ModelError, "'belts' refers to joint 'rivet', which closes a loop"),
    "driven quaternion": (lambda: transmit(joints=("hinge", ("socket", 0))), ModelError, r"joint 'socket' \(Spherical\) is not a velocity"),
    "transmission of three by three": (lambda: transmit(matrix=np.eye(3)), ModelError, r"'belts': matrix must be \(2, 2\), a row for each motor"),
    "transmission nan": (lambda: transmit(matrix=[[1, NAN], [1, 1]]), ModelError, "'belts': matrix needs finite numbers"),
    "transmission in words": (lambda: transmit(matrix="G"), ModelError, "'belts': matrix needs rows of finite numbers, one for each motor; got 'G'"),
    "motor that drives nothing": (lambda: transmit(matrix=[[1, 1], [0, 0]]), ModelError, "the row of motor 'right' in matrix has only zeros"),
    "rotor lighter than nothing": (lambda: transmit(rotor_inertia=(1.0, -1.0)), ModelError, "'belts': rotor_inertia must be finite and not negative"),
    "rotor nan": (lambda: transmit(rotor_inertia=NAN), ModelError, "'belts': rotor_inertia must be finite and not negative"),
    "three rotors of two motors": (lambda: transmit(rotor_inertia=[1, 2, 3]), ModelError, r"'belts': rotor_inertia needs a number, or one for each motor: left, right; got \[1, 2, 3\]"),
    "motor that brakes backwards": (lambda: transmit(friction=-1), ModelError, "'belts': motor 'left': Revolute: friction cannot be negative"),
    "motor with reversed limits": (lambda: transmit(limits=[(-1, 1), (1, -1)]), ModelError, "'belts': motor 'right': Revolute: lower limit 1 is above upper limit -1"),
    "armature of a transmission": (lambda: transmit(armature=1), ModelError, "'belts' has no property 'armature'; expected some of rotor_inertia, damping"),
    "motor offset nan": (lambda: transmit(offset=NAN), ModelError, "'belts': offset needs a finite number, or one for each motor: left, right"),
    "motors on nothing": (lambda: transmit(base="balk"), NameNotFoundError, "'belts': base: no body is named 'balk'; did you mean 'ball'"),
    "linear in words": (lambda: transmit(linear="no"), ModelError, "'belts': linear must be True or False; got 'no'"),

    "coupled by a constant": (lambda: couple({"hinge": sarrus.laws.polynomial(2.0)}), ModelError, "'gear' has only constant terms; expected at least one that varies"),
    "product with an unknown joint": (lambda: couple({("hinge", "hing"): 1}), NameNotFoundError, "'gear': no joint is named 'hing'; did you mean 'hinge'"),
    "product of one of two": (lambda: couple({("hinge", "sleeve"): 1}), ModelError, r"'gear': joint 'sleeve' has 2 coordinates; give an index, such as \('sleeve', 0\)"),
    "product with a quaternion": (lambda: couple({("hinge", ("socket", 3)): 1}), ModelError, "the rate of coordinate 3 of joint 'socket'"),
    "product with too few functions": (lambda: couple({("hinge", ("sleeve", 0)): sarrus.laws.harmonic(1, 1)}), ModelError, r"the product \('hinge', \('sleeve', 0\)\) needs a number, or 2 functions .*, one for each coordinate; got Law"),
    "product of coefficients": (lambda: couple({("hinge", ("sleeve", 0)): (1.0, 2.0)}), ModelError, r"needs a number, or 2 functions .*; got \(1.0, 2.0\)"),
    "product in words": (lambda: couple({("hinge", ("sleeve", 0)): "2"}), ModelError, "needs a number, or 2 functions .*; got '2'"),
    "product nan": (lambda: couple({("hinge", ("sleeve", 0)): NAN}), ModelError, "'gear': factor of .* must be a time function, .* or a finite number; got nan"),
    "offset nan": (lambda: couple({"hinge": 1}, offset=NAN), ModelError, "'gear': offset needs one finite number; got nan"),

    "law in words": (lambda: prescribe(law="up"), ModelError, "'drive': law must be a time function, such as .* or a finite number; got 'up'"),
    "law nan": (lambda: prescribe(law=NAN), ModelError, "'drive': law must be a time function, .*; got nan"),
    "law by a function": (lambda: prescribe(law=np.sin), ModelError, "'drive': law must be a time function"),
    "law for a quaternion": (lambda: prescribe(("socket", 0)), ModelError, "is not a velocity"),
    "law for an unknown joint": (lambda: prescribe("hings"), NameNotFoundError, "'drive': no joint is named 'hings'; did you mean 'hinge'"),
    "two laws for one coordinate": (prescribe_twice, ModelError, "'other' contradicts 'one', which prescribes another time function for 'hinge'"),

    "led by no law": (lambda: lead({}), ModelError, "'crane' needs a dict whose keys are some of rx ry rz tx ty tz, and whose values are laws; got {}"),
    "led in a list": (lambda: lead([0.0]), ModelError, "'crane' needs a dict"),
    "led along w": (lambda: lead({"tw": 0.0}), ModelError, "'crane': keys of laws must be from rx ry rz tx ty tz; got 'tw'"),
    "led by words": (lambda: lead({"tx": "fast"}), ModelError, "'crane': tx must be a time function"),
    "led along itself": (lambda: lead({"tx": 0.0}, relative_to="b"), ModelError, "'crane' connects body 'b' to itself"),
    "led nowhere": (lambda: lead({"tx": 0.0}, body="ba"), NameNotFoundError, "'crane': no body is named 'ba'"),
    "led relative to nothing": (lambda: lead({"tx": 0.0}, relative_to="world"), NameNotFoundError, "'crane': no body is named 'world'"),
    "led by a word for a joint": (lambda: lead({"tx": 0.0}, joint="pin"), ModelError, "'crane' needs a joint type"),
    "led at a plane": (lambda: lead({"tx": 0.0}, at_child=(1, 2)), ModelError, "'crane': at_child must be"),

    "wheel of no radius": (lambda: roll(radius=0.0), ModelError, r"'contact': radius must be positive; got 0\.0$"),
    "wheel of negative radius": (lambda: roll(radius=-1), ModelError, "'contact': radius must be positive; got -1"),
    "wheel of radius nan": (lambda: roll(radius=NAN), ModelError, "'contact': radius needs one finite number"),
    "axle without direction": (lambda: roll(axle=ZERO), ModelError, "'contact': axle: an axis must be longer than 1e-12"),
    "normal without direction": (lambda: roll(normal=(0, 0, 0)), ModelError, "'contact': normal: an axis must be longer than 1e-12"),
    "normal by another name": (lambda: roll(normal="up"), ModelError, "'contact': normal: an axis must be 'x', 'y' or 'z'"),
    "wheel round nothing": (lambda: roll(center=(0, 0)), ModelError, "'contact': center needs three finite numbers"),
    "plane through infinity": (lambda: roll(point=(0, 0, INF)), ModelError, "'contact': point needs three finite numbers"),
    "disc on a sphere": (lambda: roll(axle="y", on_radius=1.0), ModelError, "'contact': a disc rolls on planes only; got an axle and on_radius = 1.0"),
    "normal of a sphere": (lambda: roll(normal="x", on_radius=1.0), ModelError, "'contact': normal describes a plane, but on_radius = 1.0 describes a sphere"),
    "sphere on a point": (lambda: roll(on_radius=0), ModelError, "'contact': on_radius must be positive, or negative for the inside"),
    "sphere inside its equal": (lambda: roll(on_radius=-0.1), ModelError, "a sphere of radius 0.1 cannot roll inside one of radius 0.1"),
    "sphere inside a smaller one": (lambda: roll(on_radius=-0.05), ModelError, "a sphere of radius 0.1 cannot roll inside one of radius 0.05"),
    "ball on itself": (lambda: roll(on="ball"), ModelError, "'contact': body 'ball' cannot roll on itself"),
    "ball on nothing": (lambda: roll(on="floor"), NameNotFoundError, "'contact': no body is named 'floor'"),
    "nothing rolls": (lambda: roll(body="bal"), NameNotFoundError, "'contact': no body is named 'bal'; did you mean 'ball'"),

    "rows of two": (lambda: pfaffian([[1, 2]]), ModelError, r"'blade': rows must be \(k, 3\), for the velocities of hinge, sleeve; got \(1, 2\)"),
    "one row, not rows": (lambda: pfaffian([1, 2, 3]), ModelError, r"'blade': rows needs rows of finite numbers or a function of q; got \[1, 2, 3\]"),
    "no rows": (lambda: pfaffian(np.zeros((0, 3))), ModelError, r"rows must be \(k, 3\), .*; got \(0,\)"),
    "ragged rows": (lambda: pfaffian([[1, 2, 3], [1]]), ModelError, r"'blade': rows needs \(k, 3\) finite numbers or a function of q"),
    "rows nan": (lambda: pfaffian([[1, 2, NAN]]), ModelError, "'blade': rows needs"),
    "rows for a name": (lambda: pfaffian([[1]], "hinge"), ModelError, "'blade': joints needs a list of one or more names; got 'hinge'"),
    "rows for nothing": (lambda: pfaffian([[1]], []), ModelError, r"'blade': joints needs a list of one or more names; got \[\]"),
    "rows for an unknown joint": (lambda: pfaffian([[1]], ["hing"]), NameNotFoundError, "'blade': no joint is named 'hing'"),
    "rows for a joint twice": (lambda: pfaffian([[1, 1]], ["hinge", "hinge"]), ModelError, "'blade' names a joint twice: hinge, hinge"),
    "rows for a closing joint": (lambda: pfaffian([[1]], ["rivet"]), ModelError, "'blade' refers to joint 'rivet', which closes a loop"),
    "rows for a joint that came to close": (lambda: chosen_loop(lambda b: b.add_pfaffian("blade", [[1]], ["top"])), ModelError, "'blade' refers to joint 'top', which closes a loop"),
    "function for a joint that came to close": (lambda: chosen_loop(lambda b: b.add_pfaffian("blade", narrow, ["top"])), ModelError, "'blade' refers to joint 'top', which closes a loop .*tree=True"),
    "two values for a row": (lambda: pfaffian([[1, 2, 3]], value=(1, 2)), ModelError, "'blade': value has 2 entries for 1 rows"),
    "value nan": (lambda: pfaffian([[1, 2, 3]], value=NAN), ModelError, "'blade': value needs a finite number"),
    "derivative of numbers": (lambda: pfaffian([[1, 2, 3]], derivative=lambda q, v: 0), ModelError, "'blade': derivative must be a function of q and v, and requires rows to be a function of q"),
    "derivative in words": (lambda: pfaffian(narrow, ["hinge"], derivative="none"), ModelError, "'blade': derivative must be a function of q and v"),
    "function of the wrong width": (lambda: pfaffian(narrow), ModelError, r"'blade': rows must return \(k, 3\) for q of shape \(17,\); got \(1, 1\)"),
    "function without numbers": (lambda: pfaffian(lambda q: "abc"), ModelError, "'blade': rows must return an array .* of numbers; got array.'abc'"),
    "function of one row, not rows": (lambda: pfaffian(lambda q: q[..., :3]), ModelError, r"'blade': rows must return an array \(..., k, n\)"),
    "function of no rows": (lambda: pfaffian(lambda q: np.zeros((*q.shape[:-1], 0, 3))), ModelError, r"'blade': rows must return \(k, 3\) .*; got \(0, 3\)"),
    "function of one state": (lambda: pfaffian(lambda q: np.array([[q[3], 1.0, 0.0]])), ModelError, r"rows must accept many states at once .* for q of shape \(2, 17\) it fails"),
    "function of one state, unnoticed": (lambda: pfaffian(lambda q: np.array([[q[0], q[1], q[1]]])), ModelError, "rows must accept many states at once"),
    "function of all states together": (lambda: pfaffian(lambda q: np.array([[np.linalg.norm(q), 0, 0]])), ModelError, "it returns other values than for each"),
    "derivative of the wrong width": (lambda: pfaffian(narrow, ["hinge"], derivative=lambda q, v: np.zeros((*q.shape[:-1], 2, 1))), ModelError, r"derivative must return \(1, 1\) .*; got \(2, 1\)"),
    "derivative of one state": (lambda: pfaffian(narrow, ["hinge"], derivative=lambda q, v: np.array([[v[3]]])), ModelError, "derivative must accept many states at once"),
    "two values for a function's row": (lambda: pfaffian(narrow, ["hinge"], value=(1, 2)), ModelError, "'blade': value has 2 entries for 1 rows"),

    "configuration of a closing joint": (lambda: scene().set_configuration("c", {"rivet": 0.0}), ModelError, "configuration 'c' refers to joint 'rivet', which closes a loop"),
    "configuration of a joint that came to close": (lambda: chosen_loop(lambda b: b.set_configuration("c", {"top": 0.0})), ModelError, "configuration 'c' gives joint 'top', which closes a loop"),
    "configuration without a name": (lambda: scene().set_configuration("", {}), ModelError, "a configuration needs a name; got ''"),
    "configuration that is not there": (lambda: sarrus.mechanisms.pendulum().configuration("up"), NameNotFoundError, "no configuration is named 'up'; there are none"),
    "home in a list": (lambda: scene().set_home([0.0]), ModelError, "home needs a dict from joints to coordinates"),
    "home of an unknown joint": (lambda: scene().set_home({"hing": 0.0}), NameNotFoundError, "home: no joint is named 'hing'"),
    "home of two for one": (lambda: scene().set_home({"hinge": (1, 2)}), ModelError, r"home: joint 'hinge' needs one finite number; got \(1, 2\)"),
    "home of one for two": (lambda: scene().set_home({"sleeve": 1}), ModelError, "home: joint 'sleeve' needs 2 finite numbers; got 1"),
    "home nan": (lambda: scene().set_home({"hinge": NAN}), ModelError, "home: joint 'hinge' needs one finite number; got nan"),
    "home without a direction": (lambda: scene().set_home({"socket": (0, 0, 0, 0)}), ModelError, "home: joint 'socket' needs a quaternion that is not zero"),
    "home of a closing joint": (lambda: scene().set_home({"rivet": 0.0}), ModelError, "home refers to joint 'rivet', which closes a loop"),
    "home of a joint that came to close": (lambda: chosen_loop(lambda b: b.set_home({"top": 0.0})), ModelError, "home gives joint 'top', which closes a loop .* tree=True"),
}

LAWS = {
    "no coefficients": (lambda: laws.polynomial(), ModelError, "a polynomial needs one coefficient or more"),
    "coefficient nan": (lambda: laws.polynomial(1, NAN), ModelError, "a polynomial's coefficients must be a sequence of finite numbers; got"),
    "coefficients in a list": (lambda: laws.polynomial([1, 2], 3), ModelError, "a polynomial's coefficients"),
    "rate infinite": (lambda: laws.harmonic(1.0, INF), ModelError, "a harmonic's amplitude, rate, phase and offset must be"),
    "amplitude in words": (lambda: laws.harmonic("loud", 1.0), ModelError, "a harmonic's amplitude"),
    "spline through one point": (lambda: laws.spline([0], [1]), ModelError, "equal lengths, at least 2; got 1 and 1"),
    "spline of two and three": (lambda: laws.spline([0, 1], [1, 2, 3]), ModelError, "equal lengths, at least 2; got 2 and 3"),
    "spline back in time": (lambda: laws.spline([0, 2, 1], [1, 2, 3]), ModelError, "a spline's times must increase; got 2 and then 1"),
    "spline standing in time": (lambda: laws.spline([0, 0], [1, 2]), ModelError, "a spline's times must increase; got 0 and then 0"),
    "spline nan": (lambda: laws.spline([0, 1], [1, NAN]), ModelError, "a spline's values must be a sequence of finite numbers"),
    "spline with one slope": (lambda: laws.spline([0, 1], [1, 2], slopes=(1,)), ModelError, "slopes of a spline must be two numbers"),
    "spline too steep": (lambda: laws.spline([0, 1e-300], [0, 1]), ModelError, "coefficients must be rows of finite numbers"),
    "law without pieces": (lambda: laws.Law((), ()), ModelError, "one start time or more, and one row of coefficients for each"),
    "law with pieces of two kinds": (lambda: laws.Law((0, 1), ((1,), (1, 2))), ModelError, "coefficients must be rows of equally many finite numbers"),
    "law with pieces out of order": (lambda: laws.Law((1, 0), ((1,), (1,))), ModelError, "start times of a time function must not decrease"),
    "law with half a harmonic": (lambda: laws.Law(harmonics=((1, 2),)), ModelError, "a harmonic must be .amplitude, rate, phase."),
    "law plus a word": (lambda: laws.polynomial(1) + "one", TypeError, "unsupported operand"),
    "array plus a law": (lambda: np.ones(2) + laws.polynomial(1), TypeError, None),  # in whatever words NumPy has
    "law at a complex time": (lambda: laws.polynomial(1)(1j), TypeError, "t must be real"),
    "law at a masked time": (lambda: laws.polynomial(1)(np.ma.array([1.0], mask=[True])), TypeError, "t has masked entries"),
    "law of complex numbers": (lambda: laws.polynomial(1j), ModelError, "must be a sequence of finite numbers"),
    "spline through masked points": (
        lambda: laws.spline([0, 1], np.ma.array([0.0, 1.0], mask=[0, 1])), ModelError, "a spline's values must have no masked entries"
    ),
    "law at a word": (lambda: laws.polynomial(1)("now"), ShapeError, "t must be an array"),
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
    "no inertia": (lambda: TIP.forward_dynamics(*np.zeros((3, 2))), StateError, "no body has inertia along joint 'wrist'"),
    "no inertia, inverse": (lambda: TIP.mass_matrix_inverse(np.zeros(2)), StateError, "no body has inertia along joint 'wrist'"),
    "too few directions": (lambda: sarrus.formulations.operational_inertia(PENDULUM, Q, "arm"), StateError, "'arm' can move in 1 of 6 directions"),
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
    "bases of an unknown joint": (lambda: sarrus.formulations.joint_bases(PENDULUM, Q, "hing"), NameNotFoundError, "did you mean 'hinge'?"),
    "bases of a closing joint": (lambda: sarrus.formulations.joint_bases(LOOP, np.zeros(2), "top"), ModelError, "joint 'top' closes a loop"),
    "too many arguments": (lambda: PENDULUM.mass_matrix(Q, Q), TypeError, r"mass_matrix\(\) takes 1 positional arguments but 2"),
    "missing argument": (lambda: PENDULUM.inverse_dynamics(Q, Q), TypeError, r"inverse_dynamics\(\) missing argument: 'a'"),
    "argument twice": (lambda: PENDULUM.mass_matrix(Q, q=Q), TypeError, "multiple values for argument 'q'"),
    "unknown keyword": (lambda: id_(Q, Q, Q, wrench={}), TypeError, "unexpected keyword argument 'wrench'"),
    "keyword of another function": (lambda: PENDULUM.mass_matrix(Q, wrenches={}), TypeError, "unexpected keyword argument 'wrenches'"),
    "wrenches in a list": (lambda: id_(wrenches=[np.zeros(6)]), TypeError, "wrenches must be a mapping of frame names"),
    "wrench on an unknown frame": (lambda: id_(wrenches={"amr": np.zeros(6)}), NameNotFoundError, "did you mean 'arm'?"),
    "wrench on a number": (lambda: id_(wrenches={3: np.zeros(6)}), TypeError, "frame must be the name of a frame"),
    "wrench of three": (lambda: id_(wrenches={"arm": np.zeros(3)}), ShapeError, r"wrenches\['arm'\] has 3 entries in its last axis; it must have 6"),
    "wrench in words": (lambda: id_(wrenches={"arm": "push"}), TypeError, r"wrenches\['arm'\] must hold real numbers"),
    "base velocity of three": (lambda: id_(base_velocity=np.zeros(3)), ShapeError, "base_velocity has 3 entries"),
    "base velocity by position": (lambda: PENDULUM.inverse_dynamics(Q, Q, Q, np.zeros(6)), TypeError, "takes 3 positional arguments"),
    "no threads": (lambda: id_(threads=0), ValueError, "threads must be at least 1; got 0"),
    "negative threads": (lambda: id_(threads=-4), ValueError, "threads must be at least 1; got -4"),
    "half a thread": (lambda: id_(threads=1.5), TypeError, "integer"),
    "threads beyond counting": (lambda: id_(threads=-(2**70)), ValueError, "threads must be at least 1"),
    "expressed in the body": (lambda: PENDULUM.jacobian(Q, "arm", expressed_in="body"), ValueError, "'world_aligned'; got 'body'"),
    "expressed in nothing": (lambda: PENDULUM.jacobian(Q, "arm", expressed_in=None), ValueError, "expressed_in must be"),
    "out by position": (lambda: PENDULUM.mass_matrix(Q, np.zeros((1, 1))), TypeError, "positional"),
    "never built": (lambda: sarrus.Mechanism.__new__(sarrus.Mechanism).mass_matrix(Q), TypeError, "never initialised"),
    "of nothing": (lambda: sarrus.Mechanism.mass_matrix(None, Q), TypeError, "mass_matrix"),
}

SIZES = {
    "more rows than memory": (lambda: id_(np.broadcast_to(Q, (2**45, 1)), Q, Q), MemoryError, None),
    "a product of axes": (lambda: id_(np.zeros((2**23, 1, 1)), np.zeros((1, 2**23, 1)), Q), MemoryError, None),
    "more axes than numpy has": (lambda: PENDULUM.mass_matrix(np.zeros((1,) * 32)), ShapeError, "would have 33 axes; expected at most 32"),
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
        "hints": HINTS,
        "constraints": CONSTRAINTS,
        "laws": LAWS,
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


def test_the_functions_of_the_tree_do_not_see_its_loops():
    assert LOOP.warnings == ()
    assert (LOOP.joints, LOOP.loop_joints, LOOP.nv) == (("left", "right"), ("top",), 2)
    tree = sarrus.Mechanism(replace(LOOP.description, joints=LOOP.description.joints[:2]))
    q, v, a = np.random.default_rng(1).normal(size=(3, 2))
    of_states = {
        "inverse_dynamics": (q, v, a),
        "regressor": (q, v, a),
        "mass_matrix": (q,),
        "mass_matrix_inverse": (q,),
        "bias_forces": (q, v),
        "gravity_forces": (q,),
        "coriolis_matrix": (q, v),
        "pose": (q, "b"),
        "integrate": (q, v),
    }
    for name, args in of_states.items():
        assert_array_equal(getattr(LOOP, name)(*args), getattr(tree, name)(*args))


TERMS = {"damping": 0.3, "friction": 0.2, "stiffness": 4.0, "armature": 0.7}


@pytest.mark.parametrize("name", ["left", "right", "top"])
@pytest.mark.parametrize("term", TERMS)
def test_what_a_joint_is_given_acts(name, term):
    """Every term has an effect, for any loop joint."""
    q, v = np.array([0.5, -0.5]), np.array([1.0, 2.0])
    robot = triangle(**{name: {term: TERMS[term]}})
    assert not np.array_equal(robot.inverse_dynamics(q, v, v), LOOP.inverse_dynamics(q, v, v))
    assert robot.warnings == ()


def test_a_warning_of_the_model_stands_at_the_users_line_and_names_all_terms():
    def led(**terms):
        b = scene()
        b.add_prescribed_frame("crane", "b", {"tx": 1.0}, joint=Revolute("x", **terms))
        return b

    with pytest.warns(sarrus.ModelWarning) as caught:
        robot = led(**TERMS, rest=0.1, limits=(-1, np.inf)).build()
    message = "joint 'crane' follows time functions, so its damping, friction, stiffness, armature have no effect. "
    message += "Set them at another joint"
    assert [(str(w.message), w.filename) for w in caught] == [(message, __file__)]
    assert robot.warnings == (message,)
    assert led(limits=(-1, np.inf)).build().warnings == ()


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (
            lambda b: b.add_joint("j", Revolute("z", rest=1.0), "ground", "a"),
            "joint 'j' has a rest but no stiffness",
        ),
        (lambda b: b.add_joint("j", Fixed(), "ground", "a", actuated=True), "joint 'j' is actuated but does not move"),
    ],
)
def test_what_acts_on_nothing_is_warned_of(add, message):
    builder = bodies("a")
    add(builder)
    with pytest.warns(sarrus.ModelWarning, match=message):
        robot = builder.build()
    assert message in robot.warnings[0]


def test_a_cycle_through_a_weld_is_a_loop():
    builder = bodies("a", "b", "c")
    for name, ends in {"ab": ("a", "b"), "bc": ("b", "c"), "ca": ("c", "a"), "base": ("ground", "a")}.items():
        builder.add_joint(name, Fixed() if name == "ca" else Revolute("z"), *ends)
    assert len(builder.build().loop_joints) == 1


def test_a_tip_without_mass():
    """Its forces can be computed, its acceleration cannot, unless the motor has a rotor."""
    assert TIP.warnings == ("no body has inertia along joint 'wrist': forward dynamics has no result",)
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
    """For any rounding of the axis."""
    joint = Revolute(axis)
    builder = bodies("arm", inertia=Inertia(1.0, 0.3 * joint.axis, np.zeros((3, 3))))
    builder.add_joint("spin", joint, "ground", "arm")
    with pytest.raises(StateError, match="no body has inertia along joint 'spin'"):
        builder.build().forward_dynamics(Q, Q, Q)


def test_long_and_short_axes_have_their_direction():
    assert_allclose(Revolute((1e200, 1e200, 0)).axis, np.array([1, 1, 0]) / np.sqrt(2))
    assert_allclose(Revolute((1e-9, 0, 0)).axis, [1, 0, 0])


def test_long_quaternions_are_normalized():
    for length in (1e-9, 1.0, 1e100, 1e200):
        assert_allclose(BALL_JOINT.normalize([0, 0, 0.6 * length, -0.8 * length]), [0, 0, 0.6, -0.8])


def test_names_may_be_any_text_that_can_be_printed():
    names = ["a", "ünïcödé", "關節", "מפרק", "نیم\u200cفاصله", "a\u00a0b", "a b/c", "'quoted'", "x" * 10**5]
    builder = bodies(*names)
    for k, name in enumerate(names):
        builder.add_joint(name, Fixed(), "ground", name, at_parent=(k, 0, 0))
    robot = builder.build()
    assert [robot.pose([], name)[0, 3] for name in names] == list(range(len(names)))


@pytest.mark.parametrize(("second", "q"), [(Revolute("y"), 1.0), (Prismatic("x"), 0.5)], ids=["tilt", "reach"])
def test_a_point_that_leaves_the_axis_has_inertia(second, q):
    """A point mass that is on the first axis only at zero: the spherical pendulum, the polar arm."""
    builder = bodies("fork", inertia=None)
    builder.add_body("bob", Inertia(1.0, (0, 0, -1), np.zeros((3, 3))))
    builder.add_joint("pan", Revolute("z"), "ground", "fork")
    builder.add_joint("second", second, "fork", "bob")
    robot = builder.build()
    assert robot.warnings == ()
    q, tau = np.array([0.3, q]), np.ones(2)
    a = robot.forward_dynamics(q, 0 * tau, tau)
    assert_allclose(robot.inverse_dynamics(q, 0 * tau, a), tau)


# ---- other modules ----------------------------------------------------------------------------------------------------


def path(**given):
    return sarrus.control.Path(**{"mechanism": PENDULUM, "t": [0.0, 1.0], "q": WAY, "v": WAY} | given)


def run(**given):
    return sarrus.Trajectory(**{"mechanism": PENDULUM, "t": [0.0, 1.0], "q": WAY, "v": WAY} | given)


def thrown(answer=0.0, **given):
    return sarrus.simulate(PENDULUM, Q, Q, 0.01, events=sarrus.Event(lambda t, q, v: answer, **given))


WAY, HUGE = np.zeros((2, 1)), 10**400
FAR = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><origin xyz="1e308 0 0"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
)
ELSEWHERE = {
    "ladder closed by numbers": (
        lambda: sarrus.mechanisms.four_bar_ladder(2, closing=np.zeros(2)),
        ModelError,
        "closing must be 'point' or 'weld'",
    ),
    "motion of no mechanism": (
        lambda: sarrus.Trajectory.from_motion(Q, [0.0], [Q], [Q], [Q], actuated=["pivot"]),
        TypeError,
        "mechanism must be a Mechanism",
    ),
    "inertia of many axes": (
        lambda: sarrus.Inertia(np.reshape(None, (1,) * 32), (0, 0, 0), np.eye(3)),
        (ModelError, ShapeError),
        "mass",
    ),
    "path of no mechanism": (lambda: path(mechanism={}), TypeError, "mechanism must be a Mechanism"),
    "path at no times": (lambda: path(t={None: None}), ShapeError, "times of a path must be an array"),
    "path at too many times": (lambda: path(t=[0, 1, 2]), ShapeError, r"\(n, nq\) = \(3, 1\); got shape \(2, 1\)"),
    "path with too few velocities": (lambda: path(v=[[0.0]]), ShapeError, r"\(n, nv\) = \(2, 1\); got shape \(1, 1\)"),
    "path that is imaginary": (lambda: path(q=1j * WAY), TypeError, "q of a path must be real"),
    "path with another guide": (lambda: path(_guide=3), TypeError, r"set by path_through\(\) only; got 3"),
    "path at a time beyond floats": (
        lambda: path().at(HUGE),
        ShapeError,
        "t of a path must be an array of real numbers",
    ),
    "path by several indices": (lambda: path().law("hinge", np.zeros(2)), ModelError, "has 1 coordinates; index array"),
    "skeleton of none": (lambda: Skeleton(Q), TypeError, "mechanism must be a Mechanism"),
    "skeleton at text": (lambda: Skeleton(PENDULUM).segments("q"), ShapeError, "q must be an array of real numbers"),
    "skeleton beyond floats": (
        lambda: Skeleton(PENDULUM).segments(HUGE),
        ShapeError,
        "q must be an array of real numbers",
    ),
    "skeleton masked": (lambda: Skeleton(PENDULUM).segments(np.ma.masked_array([1.0], [True])), TypeError, "masked"),
    "trajectory of none": (lambda: run(mechanism=3), TypeError, "mechanism must be a Mechanism"),
    "trajectory with a list of events": (lambda: run(events=[1]), TypeError, r"events must be a mapping .*; got \[1\]"),
    "trajectory loaded for none": (
        lambda: sarrus.Trajectory.load("x.npz", 3),
        TypeError,
        "mechanism must be a Mechanism",
    ),
    "event in several directions": (
        lambda: thrown(direction=np.zeros(2)),
        ValueError,
        "direction of event 'event' must be",
    ),
    "event with a list of names": (
        lambda: thrown(name=["a"]),
        TypeError,
        r"name of an Event must be a str; got \['a'\]",
    ),
    "event beyond floats": (lambda: thrown(HUGE), StateError, "must be finite"),
    "simulation beyond floats": (
        lambda: sarrus.simulate(PENDULUM, Q, Q, HUGE),
        ValueError,
        "duration must be a number within the range of float64",
    ),
    "simulation by several methods": (
        lambda: sarrus.simulate(PENDULUM, Q, Q, 1.0, method=Q),
        ValueError,
        "method must be one of",
    ),
    "motions that do not broadcast": (
        lambda: spatial.cross_motion(np.zeros((2, 6)), np.zeros((3, 6))),
        ShapeError,
        r"v \(2,\), m \(3,\)",
    ),
    "forces of too many axes": (
        lambda: spatial.cross_force(np.zeros((1,) * 39 + (6,)), np.zeros(6)),
        ShapeError,
        "40 axes; expected at most 32",
    ),
    "screws of too many axes": (
        lambda: spatial.body_jacobian(np.zeros((1,) * 39 + (2, 6)), np.zeros(2)),
        ShapeError,
        "41 axes; expected at most 32",
    ),
    "forces that do not broadcast": (
        lambda: spatial.cross_force(np.zeros((2, 6)), np.zeros((3, 6))),
        ShapeError,
        r"v \(2,\), f \(3,\)",
    ),
    "motion by a matrix": (
        lambda: spatial.transform_motion(np.eye(4), np.zeros(6)),
        TypeError,
        "pose must be a Transform",
    ),
    "force by a matrix": (
        lambda: spatial.transform_force(np.eye(4), np.zeros(6)),
        TypeError,
        "pose must be a Transform",
    ),
    "exponential of four numbers": (
        lambda: spatial.exp(np.zeros(4)),
        ShapeError,
        r"x has shape \(4,\); its last axis must be 3, rotation vectors, or 6, motions",
    ),
    "tangent map of a text": (lambda: spatial.left_jacobian("turn"), ShapeError, "x must be an array"),
    "logarithm of a stretch": (
        lambda: spatial.log(np.stack([np.eye(3), 2 * np.eye(3)])),
        ModelError,
        r"X\[1\] contains .* which is not a rotation: off by 3",
    ),
    "logarithm of a mirror": (lambda: spatial.log(np.diag([1, 1, -1])), ModelError, "a reflection"),
    "logarithm of a projection": (
        lambda: spatial.log(np.ones((4, 4))),
        ModelError,
        r"X has the last row \[1.0, 1.0, 1.0, 1.0\]; a pose has",
    ),
    "logarithm of numbers": (lambda: spatial.log(np.zeros(3)), ShapeError, r"X has shape \(3,\); it must be"),
    "adjoint of a rotation": (
        lambda: spatial.adjoint(np.eye(3)),
        ShapeError,
        r"pose has shape \(3, 3\); it must be a Transform, or poses",
    ),
    "bracket of a rotation vector": (lambda: spatial.ad(ZERO), ShapeError, "its last axis must be 6"),
    "more angles than screws": (
        lambda: spatial.product_of_exponentials(np.zeros((2, 6)), np.zeros(3)),
        ShapeError,
        "with 2 screws its last axis must be 2",
    ),
    "one screw that is no row": (
        lambda: spatial.spatial_jacobian(np.zeros(6), np.zeros(1)),
        ShapeError,
        r"screws has shape \(6,\); it must be \(\.\.\., n, 6\)",
    ),
    "screws that do not broadcast": (
        lambda: spatial.body_jacobian(np.zeros((2, 1, 6)), np.zeros((3, 1))),
        ShapeError,
        r"leading axes do not broadcast: screws \(2,\), q \(3,\)",
    ),
    "homes that do not broadcast": (
        lambda: spatial.product_of_exponentials(np.zeros((1, 6)), np.zeros((2, 1)), np.zeros((3, 4, 4)) + np.eye(4)),
        ShapeError,
        "do not broadcast: screws and q .*, home .*",
    ),
    "inertia by a matrix": (lambda: BALL.transformed(np.eye(4)), TypeError, "pose must be a Transform"),
    "poses beyond floats": (
        lambda: sarrus.Transform(translation=(1e308, 0, 0)) @ sarrus.Transform(translation=(1e308, 0, 0)),
        ModelError,
        "not finite",
    ),
    "huge rod": (
        lambda: Inertia.rod(1, ZERO, (1e300, 0, 0)),
        ModelError,
        r"end = \[1e\+300, 0.0, 0.0\] is too large for a body",
    ),
    "huge box": (lambda: Inertia.box(1, (1, 1, 1e200)), ModelError, "size = .* is too large for a body"),
    "huge sphere": (lambda: Inertia.sphere(1, 1e200), ModelError, r"radius = 1e\+200 is too large for a body"),
    "heavy sphere": (lambda: Inertia.sphere(1e300, 1e99), ModelError, "not finite"),
    "far centre": (lambda: Inertia(1, (1e200, 0, 0), np.eye(3)), ModelError, "no finite inertia about the origin"),
    "far centre in a file": (
        lambda: sarrus.loads(FAR),
        ModelError,
        "'b'>: com = .* no finite inertia about the origin",
    ),
    "table beyond floats": (
        lambda: sarrus.from_dh([[1, 0, 0, HUGE]]),
        ModelError,
        "row 1 must contain numbers only",
    ),
    "table with an offset that overflows": (
        lambda: sarrus.from_dh([[1, 0, 0, 1e308]], offsets=[1e308]),
        ModelError,
        "not finite",
    ),
    "table of several conventions": (
        lambda: sarrus.from_dh([[1, 0, 0, 0]], convention=np.zeros(2)),
        ModelError,
        "convention must be",
    ),
    "gallery, upright twice": (
        lambda: sarrus.mechanisms.rolling_disc(np.zeros(2)),
        ModelError,
        "upright must be True or False",
    ),
    "gallery, free twice": (
        lambda: sarrus.mechanisms.hslm(np.zeros(2)),
        ModelError,
        "reference_free must be True or False",
    ),
    "far joint": (
        lambda: bodies("ball").add_joint("far", sarrus.Revolute("z"), "ground", "ball", at_parent=(1e308, 0, 0)),
        ModelError,
        r"joint 'far': at_parent is 1e\+308 m from the origin",
    ),
    "a time that no float holds": (
        lambda: sarrus.control.rest_to_rest(1.0, 1.0, HUGE),
        ModelError,
        "must be a finite number",
    ),
    "gallery, several platforms": (
        lambda: sarrus.mechanisms.three_rrr(platform=np.ones(2)),
        ModelError,
        "platform must be a positive number",
    ),
    "gallery, huge coupler": (
        lambda: sarrus.mechanisms.watt(coupler=1e300),
        ModelError,
        "coupler must be a positive number, from 1e-60 to",
    ),
    "gallery, huge thigh": (
        lambda: sarrus.mechanisms.biped_leg(thigh=1e300),
        ModelError,
        "thigh must be a positive number, from 1e-60 to",
    ),
    "gallery, huge pendulum": (
        lambda: sarrus.mechanisms.pendulum(1e300, 1e300),
        ModelError,
        "mass of bob must be a positive number",
    ),
    "gallery, no pendulum": (
        lambda: sarrus.mechanisms.pendulum(np.zeros(0)),
        ModelError,
        "mass of bob must be a positive number",
    ),
    "gallery, twist in text": (
        lambda: sarrus.mechanisms.bennett(twist=np.array("1")),
        ModelError,
        "twist must be between 0 and pi",
    ),
    "gallery, true stages": (lambda: sarrus.mechanisms.scissor_lift(True), ModelError, "stages must be a whole number"),
    "rest to rest in several ways": (
        lambda: sarrus.control.rest_to_rest(0.0, 1.0, 1.0, order=np.ones(2)),
        ModelError,
        "must be 3 .cubic. or 5",
    ),
    "curves of a list": (lambda: curves(Q, [Q], "y"), TypeError, "lines must be a mapping"),
    "curves of other lengths": (
        lambda: curves(Q, {"a": WAY}, "y"),
        ShapeError,
        r"line 'a' must both be \(n,\); got \(1,\) and \(2, 1\)",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("attempt", "error", "message"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_other_modules_are_given(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt()


@pytest.mark.filterwarnings("error")
def test_vectors_that_are_not_finite_spoil_their_own_row():
    pose, rows = sarrus.Transform(translation=(1, 2, 3)), np.vstack([np.full(6, INF), np.ones(6)])
    for moved in (spatial.transform_motion(pose, rows), spatial.transform_force(pose, rows), pose.apply(rows[:, :3])):
        assert not np.isfinite(moved[0]).any() and np.isfinite(moved[1]).all()


def skate(rows, derivative=None):
    builder = bodies("skate")
    builder.add_joint("ice", Planar("z"), "ground", "skate")
    builder.add_pfaffian("blade", rows, ["ice"], derivative=derivative)
    return builder.build()


def across(q):
    return np.stack([np.sin(q[..., 2]), -np.cos(q[..., 2]), 0.0 * q[..., 2]], axis=-1)[..., None, :]


def test_states_for_functions_of_q():
    """Errors of the state are reported as such, and the function is not called."""
    robot = skate(across)
    for bad in (np.zeros(2), np.zeros((2, 2)), 1.0, None):
        with pytest.raises(ShapeError, match=r"\bq\b"):
            robot.constraint_jacobian(bad)
        with pytest.raises(ShapeError, match=r"\bv\b"):
            robot.constraint_bias(ZERO, bad)
    for bad in (NAN, INF):
        with pytest.raises(StateError, match=r"q\[0\]"):
            robot.constraint_jacobian([bad, 0.0, bad])
        with pytest.raises(StateError, match=r"v\[0\]"):
            robot.constraint_bias(ZERO, [bad, 0.0, 0.0])
        bias = robot.constraint_bias(np.array([[0.0, 0.0, bad], ZERO]), [0.0, 0.0, 1.0])
        assert np.isnan(bias[0]).all() and np.isfinite(bias[1]).all()
    with pytest.raises(ShapeError, match=r"leading axes do not broadcast: q \(2,\), v \(3,\)"):
        robot.constraint_bias(np.zeros((2, 3)), np.zeros((3, 3)))
    assert robot.constraint_jacobian(np.zeros((0, 3))).shape == (0, 1, 3)
    with pytest.raises(StateError, match="is infinite; it must be finite"):
        robot.constraint_bias(ZERO, np.full(3, 1e308))


def test_functions_of_q_see_rotations_only():
    """As for other invalid states, also in batches."""
    seen = []

    def rows(q):
        seen.append(np.linalg.norm(q[..., :4], axis=-1))
        return across(q[..., 4:])[..., [0, 0, 1, 1, 2, 2]]

    builder = bodies("ball")
    builder.add_joint("float", Free(), "ground", "ball")
    builder.add_pfaffian("blade", rows, ["float"])
    robot = builder.build()
    q = np.stack([robot.neutral()] * 3) * [[1.0], [0.0], [2.0]]
    assert np.isfinite(robot.constraint_bias(q, np.ones(6))).all(axis=-1).tolist() == [True, False, False]
    for bad in q[1:]:
        with pytest.raises(StateError, match=r"q\[0:4\] is a quaternion of norm"):
            robot.constraint_jacobian(bad)
    assert all(np.allclose(norm, 1.0) for norm in seen)


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda rows: None, ShapeError, r"'blade' returned shape \(\) .*; it must return \(1, 3\)"),
        (lambda rows: rows[..., :2], ShapeError, r"'blade' returned shape \(1, 2\) .*; it must return \(1, 3\)"),
        (lambda rows: rows[..., 0, :], ShapeError, r"'blade' returned shape \(3,\)"),
        (lambda rows: "abc", ShapeError, "'blade' must be an array of real numbers"),
        (lambda rows: rows * 1j, TypeError, "'blade' must be real"),
    ],
)
@pytest.mark.parametrize("which", ["rows", "derivative"])
def test_functions_of_q_that_change_their_mind(which, spoil, error, message):
    """When the mechanism was built they returned correct shapes."""
    spoilt = []

    def returned(name, answer):
        return spoil(answer) if name in spoilt else answer

    robot = skate(
        lambda q: returned("rows", across(q)), lambda q, v: returned("derivative", across(q) * v[..., 2:, None])
    )
    assert robot.constraint_bias(ZERO, ZERO).shape == (1,)
    spoilt.append(which)
    with pytest.raises(error, match=f"{which} .*{message}|{which} of constraint {message}"):
        robot.constraint_bias(ZERO, ZERO)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, q, v: sarrus.formulations.reactions(m, q, v, v, return_status=np.zeros(0)),
        lambda m, q, v: m.forward_dynamics(q, v, v, return_status=np.zeros(2)),
        lambda m, q, v: m.forward_dynamics(q, v, v, return_reactions=np.zeros(0)),
        lambda m, q, v: m.random(0, closed=np.zeros(2)),
    ],
)
def test_arrays_are_neither_true_nor_false(call):
    robot = sarrus.mechanisms.four_bar()
    with pytest.raises(TypeError, match=r"True or False"):
        call(robot, robot.assemble(), np.zeros(robot.nv))


def test_numbers_that_overflow_make_no_warning():
    """One such row of many is NaN; the polynomial of a law is infinite."""
    robot = sarrus.mechanisms.three_rrr()
    q, v = np.repeat(robot.assemble()[None], 2, axis=0), np.zeros((2, robot.nv))
    v[1] = 1e308
    for answer in (
        sarrus.formulations.cog_jacobians(robot, q, v).G_dot,
        sarrus.formulations.reduced_dynamics(robot, q, v).bias_acceleration,
    ):
        assert np.isfinite(answer[0]).all() and np.isnan(answer[1]).any()
    assert sarrus.laws.polynomial(1.0, 2.0, 3.0)(1e301) == np.inf
