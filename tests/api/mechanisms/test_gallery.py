"""The gallery: every mechanism closes at home, has the degrees of freedom of textbooks, and moves as published."""

import contextlib
import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

import sarrus
from oracles import Closed, Dense
from sarrus import mechanisms as gallery
from tests.gallery import SHAKY
from tests.small_mechanisms import at

# label: (how it is made, velocities, rows of constraints, degrees of freedom)
CLOSED = {
    "bennett": (gallery.bennett, 3, 5, 1),
    "bennett, other sizes": (lambda: gallery.bennett(1.0, 2.0, 0.5), 3, 5, 1),
    "biped": (gallery.biped, 36, 30, 18),
    "biped_leg": (gallery.biped_leg, 11, 5, 9),
    "bricard": (gallery.bricard, 5, 5, 1),
    "bricard, doubly collapsible octahedral": (lambda: gallery.bricard(kind="doubly collapsible octahedral"), 5, 5, 1),
    "bricard, line-symmetric": (lambda: gallery.bricard(kind="line-symmetric"), 5, 5, 1),
    "bricard, line-symmetric octahedral": (lambda: gallery.bricard(kind="line-symmetric octahedral"), 5, 5, 1),
    "bricard, plane-symmetric": (lambda: gallery.bricard(kind="plane-symmetric"), 5, 5, 1),
    "bricard, plane-symmetric octahedral": (lambda: gallery.bricard(kind="plane-symmetric octahedral"), 5, 5, 1),
    "chain_mail(2, 3)": (lambda: gallery.chain_mail(2, 3), 27, 7, 20),
    "delta": (gallery.delta, 21, 18, 3),
    "delta, platform on a rod": (lambda: gallery.delta(platform_free=False), 18, 15, 3),
    "delta_printer": (gallery.delta_printer, 21, 18, 3),
    "double_hooke": (gallery.double_hooke, 5, 5, 1),
    "five_bar": (gallery.five_bar, 4, 5, 2),
    "four_bar": (gallery.four_bar, 3, 5, 1),
    "four_bar, double rocker": (lambda: gallery.four_bar(1.0, 0.4, 1.1, 0.9), 3, 5, 1),
    "four_bar, no Grashof": (lambda: gallery.four_bar(1.0, 1.2, 1.4, 2.0), 3, 5, 1),
    "four_bar_ladder(1)": (lambda: gallery.four_bar_ladder(1), 3, 3, 1),
    "four_bar_ladder(5)": (lambda: gallery.four_bar_ladder(5), 11, 15, 1),
    "four_bar_ladder(5), welded": (lambda: gallery.four_bar_ladder(5, closing="weld"), 16, 30, 1),
    "four_link_chain": (gallery.four_link_chain, 4, 5, 2),
    "goldberg_5r": (gallery.goldberg_5r, 4, 5, 1),
    "goldberg_5r, other sizes": (lambda: gallery.goldberg_5r(1.0, 0.7, 1.5, 2.0), 4, 5, 1),
    "goldberg_6r": (gallery.goldberg_6r, 5, 5, 1),
    "gripper": (gallery.gripper, 9, 11, 4),
    "hoberman_ring": (gallery.hoberman_ring, 12, 36, 1),
    "hoberman_ring(3)": (lambda: gallery.hoberman_ring(3), 6, 21, 1),
    "hoberman_sphere": (gallery.hoberman_sphere, 35, 125, 1),
    "hslm": (gallery.hslm, 21, 18, 3),
    "hslm, reference member on a leg": (lambda: gallery.hslm(reference_free=False), 15, 12, 3),
    "humanoid_leg": (gallery.humanoid_leg, 18, 6, 12),
    "humanoid_leg, fixed": (lambda: gallery.humanoid_leg(floating=False), 12, 6, 6),
    "miura_fold(2, 2)": (lambda: gallery.miura_fold(2, 2), 3, 5, 1),
    "miura_fold(3, 4)": (lambda: gallery.miura_fold(3, 4), 11, 30, 1),
    "myard": (gallery.myard, 4, 5, 1),
    "net(1, 1)": (lambda: gallery.net(1, 1), 4, 5, 2),
    "net(2, 3)": (lambda: gallery.net(2, 3), 17, 30, 5),
    "peaucellier": (gallery.peaucellier, 7, 15, 1),
    "ring(3)": (lambda: gallery.ring(3), 9, 3, 6),
    "ring(8)": (lambda: gallery.ring(8), 24, 3, 21),
    "rolling_disc": (gallery.rolling_disc, 6, 3, 3),
    "rolling_disc, upright": (lambda: gallery.rolling_disc(upright=True), 4, 3, 2),
    "rover": (gallery.rover, 16, 1, 15),
    "rover, rolling": (lambda: gallery.rover(rolling=True), 16, 19, 1),
    "sarrus_linkage": (gallery.sarrus_linkage, 5, 5, 1),
    "schatz": (gallery.schatz, 5, 5, 1),
    "rotary_delta_printer": (gallery.rotary_delta_printer, 21, 18, 3),
    "scissor_lift": (gallery.scissor_lift, 9, 20, 1),
    "scissor_lift, one stage": (lambda: gallery.scissor_lift(stages=1), 5, 10, 1),
    "six_axis_arm on a ball": (lambda: gallery.six_axis_arm(sphere=0.2), 6, 1, 5),
    "six_axis_arm rolling": (lambda: gallery.six_axis_arm(sphere=0.2, fingertip=0.02), 6, 4, 2),
    "slider_crank": (gallery.slider_crank, 3, 5, 1),
    "slider_crank, offset": (lambda: gallery.slider_crank(offset=-0.4), 3, 5, 1),
    "stewart": (gallery.stewart, 24, 18, 6),
    "stewart, platform on a leg": (lambda: gallery.stewart(platform_free=False), 21, 15, 6),
    "strandbeest_leg": (gallery.strandbeest_leg, 7, 15, 1),
    "tensegrity_prism": (gallery.tensegrity_prism, 6, 3, 3),
    "tensegrity_prism(5)": (lambda: gallery.tensegrity_prism(5), 10, 5, 5),
    "three_finger_hand": (gallery.three_finger_hand, 15, 9, 6),
    "three_rrr": (gallery.three_rrr, 6, 10, 2),
    "three_rrr with a platform": (lambda: gallery.three_rrr(platform=0.1), 7, 10, 3),
    "tsai_3upu": (gallery.tsai_3upu, 11, 8, 3),
    "two_arms": (gallery.two_arms, 12, 6, 6),
    "two_links": (gallery.two_links, 8, 10, 1),
    "two_links, reference member on a link": (lambda: gallery.two_links(reference_free=False), 3, 5, 1),
    "watt": (gallery.watt, 3, 5, 1),
    "whipple_bicycle": (gallery.whipple_bicycle, 9, 6, 3),
    "whipple_bicycle, other sizes": (lambda: gallery.whipple_bicycle(1.1, -0.02, 0.2), 9, 6, 3),
}
TREES = (
    gallery.pendulum, gallery.double_pendulum, gallery.stanford_arm, gallery.free_flyer, gallery.macro_micro_arm, gallery.sampler,
    gallery.six_axis_arm, gallery.quadruped, gallery.human_arm,
)  # fmt: skip
closed = pytest.mark.parametrize("label", CLOSED)

# rounding of a few sums of lengths and angles of order one
CLOSES = 64 * np.finfo(float).eps


def make(label):
    return CLOSED[label][0]()


def home(robot):
    """Return the home of the description; for a lattice its neutral configuration."""
    return at(robot, robot.description.home)


def freedoms(J):
    """Return (nv - rank, nv) orthonormal: velocities that the constraints allow. Singular values are above a thousandth, or rounding."""
    _, values, directions = np.linalg.svd(J)
    return directions[np.sum(values > 1e-6 * values[0]) :]


def wander(robot, steps=40, step=0.05, seed=1):
    """Return (steps, nq) configurations along a path from home with closed loops; v keeps its direction if possible."""
    q, v = home(robot), np.random.default_rng(seed).normal(size=robot.nv)
    way = []
    for _ in range(steps):
        free = freedoms(robot.constraint_jacobian(q))
        v = free.T @ (free @ v)
        v /= np.linalg.norm(v)
        q = robot.project_configuration(robot.integrate(q, step * v))
        way.append(q)
    return np.array(way)


# ---- all of them


def test_every_mechanism_is_looked_at():
    tested = {label.split(",")[0].split("(")[0].split()[0] for label in CLOSED}
    elsewhere = {"cable_platform"}  # which has loops without rows: tests/laws/test_cables.py
    assert tested | elsewhere | {f.__name__ for f in TREES} | {*SHAKY} == set(gallery.__all__)


@pytest.mark.parametrize("name", gallery.__all__)
def test_documented(name):
    function = getattr(gallery, name)
    text = inspect.getdoc(function)
    for section in ("Returns", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text
    described = text.partition("Returns\n")[0]
    assert all(parameter in described for parameter in inspect.signature(function).parameters)
    assert f"`{name}`" in gallery.__doc__


@closed
def test_value(label):
    """Two instances are equal; a mechanism can be printed, copied and pickled."""
    robot = make(label)
    again = pickle.loads(pickle.dumps(robot))
    assert again == robot == make(label) and hash(again) == hash(robot)
    assert again.description.home == robot.description.home
    assert copy.deepcopy(robot) is robot
    text = str(robot)
    assert robot.name in text and all(name in text for name in (*robot.joints, *robot.constraints))
    assert robot.warnings == ()


@closed
def test_counts_and_motors(label):
    robot = make(label)
    _, nv, nc, _ = CLOSED[label]
    assert (robot.nv, robot.nc) == (nv, nc)
    assert set(robot.actuated) <= set(robot.joints)  # a motor's angle is a coordinate
    passive = ("rolling_disc", "net", "ring", "chain_mail", "tensegrity_prism")
    assert len(robot.actuated) > 0 or label.startswith(passive)


@closed
def test_home_closes_the_loops(label):
    """By the library, and by the frames' poses with independent kinematics."""
    robot = make(label)
    q = home(robot)
    assert np.abs(robot.constraint_residual(q)).max() < CLOSES
    oracle = Closed(robot.description, closing=robot.loop_joints)
    assert np.abs(oracle.constraint_residual(q)).max() < CLOSES


@closed
def test_assembly_starts_at_home(label):
    robot = make(label)
    q = robot.assemble()
    assert np.abs(robot.constraint_residual(q)).max() < CLOSES
    assert np.abs(robot.difference(home(robot), q)).max() < 1e-12


@closed
def test_degrees_of_freedom(label):
    """At home and along the path: the rank is a property of the mechanism, not of the configuration."""
    robot = make(label)
    *_, expected = CLOSED[label]
    way = np.concatenate([home(robot)[None], wander(robot)])
    assert np.abs(robot.constraint_residual(way)).max() < CLOSES
    for q in way[::8]:
        assert len(freedoms(robot.constraint_jacobian(q))) == expected
    oracle = Closed(robot.description, closing=robot.loop_joints)
    assert len(freedoms(oracle.constraint_jacobian(way[-1]))) == expected


@closed
def test_mobility(label):
    """The library's mobility, at home and elsewhere, besides Kutzbach's."""
    robot = make(label)
    _, nv, nc, expected = CLOSED[label]
    mobility = robot.mobility(home(robot))
    assert (mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom) == (expected, expected)
    assert mobility.kutzbach == nv - nc
    assert mobility.warnings == ()


@closed
def test_falls_as_the_oracle_has_it(label):
    robot = make(label)
    robot = sarrus.Mechanism(dataclasses.replace(robot.description, springs=()))  # the oracle knows none
    q, rest = wander(robot, steps=3)[-1], np.zeros(robot.nv)
    a = robot.forward_dynamics(q, rest, rest)
    oracle = Closed(robot.description, closing=robot.loop_joints)
    expected = oracle.forward_dynamics(q, rest, rest)
    np.testing.assert_allclose(a, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: gallery.four_bar(crank=-1.0), "crank must be a positive number, from 1e-60 to 1e+60; got -1.0"),
        (lambda: gallery.four_bar(4e-311, 1e-310, 9e-311, 1e-310), "crank must be a positive number, from 1e-60"),
        (lambda: gallery.four_bar(mass=0), "mass"),
        (lambda: gallery.four_bar(coupler=np.nan), "coupler"),
        (lambda: gallery.four_bar(rocker="long"), "rocker"),
        (lambda: gallery.four_bar(coupler=2.3), "does not close"),
        (lambda: gallery.four_bar(crank=0.1, coupler=0.1, rocker=0.1, ground=0.5), "does not close"),
        (lambda: gallery.slider_crank(rod=0.3), "rod"),
        (lambda: gallery.slider_crank(offset=0.8), "rod"),
        (lambda: gallery.watt(coupler=0), "coupler"),
        (lambda: gallery.peaucellier(long=0.4), "long"),
        (lambda: gallery.peaucellier(crank=0.2), "long"),
        (lambda: gallery.scissor_lift(stages=0), "stages"),
        (lambda: gallery.scissor_lift(stages=1.5), "stages"),
        (lambda: gallery.scissor_lift(platform_mass=-1), "platform_mass"),
        (lambda: gallery.four_bar_ladder(0), "n must"),
        (lambda: gallery.four_bar_ladder(2, closing="glue"), "'point' or 'weld'; got 'glue'"),
        (lambda: gallery.four_bar_ladder(2, length=np.inf), "length"),
        (lambda: gallery.five_bar(actuated=1), "from 2 to 4"),
        (lambda: gallery.five_bar(actuated=5), "from 2 to 4"),
        (lambda: gallery.five_bar(base=2.0), "do not reach each other"),
        (lambda: gallery.three_rrr(actuated=2), "actuated"),
        (lambda: gallery.three_rrr(base=1.1), "do not form a triangle"),
        (lambda: gallery.three_rrr(platform=-0.1), "platform"),
        (lambda: gallery.three_rrr(platform=0.5 / np.sqrt(3)), "do not form a triangle"),
        (lambda: gallery.delta(forearm=0.4), "forearm"),
        (lambda: gallery.delta_printer(arm=0.15), "arm must be longer than delta_radius = 0.18 m"),
        (lambda: gallery.delta_printer(angles=(0.0, 2.0)), "angles must be three angles"),
        (lambda: gallery.rotary_delta_printer(shoulder_height=0.6), "do not reach the bed"),
        (lambda: gallery.stewart(height=0), "height"),
        (lambda: gallery.cable_platform(mass=0), "mass"),
        (lambda: gallery.cable_platform(radius=-0.1), "radius"),
        (lambda: gallery.cable_platform(platform=3.0), "does not fit into the room"),
        (lambda: gallery.bennett(twist=0.0), "twist"),
        (lambda: gallery.bennett(other_twist=3.2), "other_twist"),
        (lambda: gallery.bennett(twist=1.0, other_twist=1.0), "must differ"),
        (lambda: gallery.bricard(edge=-1), "edge"),
        (lambda: gallery.bricard(kind="octahedral"), "'trihedral', 'line-symmetric', 'plane-symmetric'"),
        (lambda: gallery.goldberg_5r(leg_twist=0.5), "twist and leg_twist must differ; got 0.5 twice"),
        (lambda: gallery.goldberg_5r(other_twist=np.pi), "other_twist must be between 0 and pi"),
        (lambda: gallery.goldberg_6r(third_twist="0"), "third_twist"),
        (lambda: gallery.goldberg_6r(leg=0), "leg"),
        (lambda: gallery.myard(leg_twist=np.pi / 2), "must differ"),
        (lambda: gallery.schatz(shaft=-0.1), "shaft"),
        (lambda: gallery.net(0, 1), "rows must be a whole number from 1 to 100000; got 0"),
        (lambda: gallery.net(1, 1.5), "columns"),
        (lambda: gallery.ring(2), "n must be a whole number from 3 to 100000; got 2"),
        (lambda: gallery.chain_mail(radius=0), "radius"),
        (lambda: gallery.tensegrity_prism(stiffness=np.nan), "stiffness"),
        (lambda: gallery.hoberman_ring(2), "n must"),
        (lambda: gallery.hoberman_sphere(0), "scissors must"),
        (lambda: gallery.miura_fold(1, 3), "rows must be a whole number from 2 to 100000; got 1"),
        (lambda: gallery.miura_fold(fold=0.0), "fold must be between 0 and pi/2; got 0.0"),
        (lambda: gallery.sarrus_linkage(width=0), "width"),
        (lambda: gallery.rolling_disc(radius=0), "radius"),
        (lambda: gallery.rolling_disc(roll_inertia=0.2), "moments"),
        (lambda: gallery.three_finger_hand(object_height=1.0), "do not form a triangle"),
        (lambda: gallery.biped(leg=-0.3), "leg"),
        (lambda: gallery.biped(mass=np.inf), "mass"),
        (lambda: gallery.gripper(reach=0), "reach"),
        (lambda: gallery.strandbeest_leg(scale=0), "scale"),
        (lambda: gallery.biped_leg(shank=0), "shank"),
        (lambda: gallery.humanoid_leg(thigh=-1), "thigh"),
        (lambda: gallery.humanoid_leg(floating=2), "floating must be True or False"),
        (lambda: gallery.quadruped(mass=0), "mass"),
        (lambda: gallery.quadruped(thigh=0.3, shank=0.1), "shank must be longer than"),
        (lambda: gallery.six_axis_arm(sphere=-0.1), "sphere"),
        (lambda: gallery.six_axis_arm(tool=0), "tool"),
        (lambda: gallery.six_axis_arm(fingertip=0.02), "pass its radius sphere="),
        (lambda: gallery.six_axis_arm(sphere=0.2, fingertip=-0.02), "fingertip"),
        (lambda: gallery.free_flyer(panels=0), "panels must be a whole number from 1 to 1000; got 0"),
        (lambda: gallery.free_flyer(panels=2**70), f"from 1 to 1000; got {2**70}"),
        (lambda: gallery.net(400, 400), "rows times columns must be at most 100000; got 400 times 400"),
        (lambda: gallery.free_flyer(frequency=0.0), "frequency"),
        (lambda: gallery.free_flyer(wheels=3), "wheels must be True or False; got 3"),
        (lambda: gallery.macro_micro_arm(stiffness=-1.0), "stiffness"),
        (lambda: gallery.sampler(horn=0), "horn"),
        (lambda: gallery.rover(wheel=np.nan), "wheel"),
        (lambda: gallery.rover(rolling="yes"), "rolling must be True or False"),
    ],
)
def test_impossible_sizes(build, text):
    with pytest.raises(sarrus.ModelError) as error:
        build()
    assert text in str(error.value)


def test_numpy_numbers_are_numbers():
    assert gallery.four_bar(crank=np.float32(0.5), mass=np.int64(2)).mass == 6.0
    assert gallery.four_bar_ladder(np.int64(2)).nv == 5


# ---- arms and legs


def test_ball_under_the_arm():
    """The tip is on the ball, above its centre; the multiplier is the ball's force."""
    arm = gallery.six_axis_arm(sphere=0.2)
    q = arm.assemble()
    assert np.allclose(arm.pose(q, "tip")[:3, 3] - arm.pose(q, "ball")[:3, 3], [0, 0, 0.2], atol=CLOSES)
    assert np.allclose(arm.pose(q, "tip")[:3, 0], [0, 0, -1], atol=CLOSES)
    push = arm.jacobian(q, "tip", expressed_in="world_aligned")[5]
    assert np.allclose(arm.constraint_jacobian(q)[0], push, atol=1e-12)


def test_feet_are_on_the_ground():
    robot, leg = gallery.quadruped(), gallery.humanoid_leg()
    feet = [robot.pose(robot.assemble(), f"{name}_foot")[:3, 3] for name in ("LF", "RF", "LH", "RH")]
    assert np.allclose(feet, [[0.3, 0.25, 0], [0.3, -0.25, 0], [-0.3, 0.25, 0], [-0.3, -0.25, 0]], atol=CLOSES)
    assert robot.mass == pytest.approx(46.0) and leg.mass == pytest.approx(20.0)
    assert np.allclose(leg.pose(leg.assemble(), "sole")[[0, 1, 2], [0, 1, 2]], 1) and leg.pose(leg.assemble(), "sole")[
        2, 3
    ] == pytest.approx(0)


def test_motors_of_the_ankle():
    """Together the motors pitch the foot, one to one; against each other they roll it."""
    leg = gallery.humanoid_leg(floating=False)
    q = leg.assemble()
    pitch = leg.complete_velocity(
        q, {"left_motor": 1.0, "right_motor": 1.0, **dict.fromkeys(("hip_yaw", "hip_roll", "hip_pitch", "knee"), 0.0)}
    )
    roll = leg.complete_velocity(
        q, {"left_motor": 1.0, "right_motor": -1.0, **dict.fromkeys(("hip_yaw", "hip_roll", "hip_pitch", "knee"), 0.0)}
    )
    ankle = leg.joint("ankle").v_slice
    assert np.allclose(pitch[ankle], [1.0, 0.0], atol=1e-12)
    assert abs(roll[ankle][0]) < 1e-12 and abs(roll[ankle][1]) > 0.5


def test_six_motors_move_a_foot_in_all_its_freedoms():
    """With fixed pelvis, six motors per leg and no others; right and left are mirror images."""
    robot = gallery.biped()
    q, rng = robot.assemble(), np.random.default_rng(0)
    assert robot.mass == pytest.approx(2.5)
    soles = [robot.pose(q, f"{side}_sole") for side in ("left", "right")]
    assert np.allclose(soles[0][:3, 3] * [1, -1, 1], soles[1][:3, 3], atol=CLOSES) and abs(soles[0][2, 3]) < CLOSES
    motors = [name for name in robot.actuated if name.startswith("left")]
    assert len(motors) == 6
    columns = []
    for moving in motors:
        rates = {name: float(name == moving) for name in robot.actuated} | {"float": np.zeros(6)}
        v = robot.complete_velocity(q, rates)
        columns.append(robot.velocity(q, v, "left_foot") / [1, 1, 1, 0.3, 0.3, 0.3])
        assert np.abs(robot.velocity(q, v, "right_foot")).max() < 1e-12
    assert np.linalg.svd(columns)[1].min() > 0.05
    # the rods are no longer than they were drawn where the knees bend
    near = robot.assemble(near=robot.integrate(q, np.r_[np.zeros(6), 0.1 * rng.normal(size=30)]))
    assert np.abs(robot.constraint_residual(near)).max() < 1e-12


def test_pads_of_the_gripper_stay_upright():
    """While couplers are at their stops, fingers are parallelograms; off the stops a finger rotates inwards at its end."""
    robot = gallery.gripper()
    for angle in (0.0, 0.3, 0.6):
        q = robot.assemble(fixed={"right_driver": angle, "right_stop": 0.0, "left_stop": 0.0})
        left, right = (robot.pose(q, f"{side}_pad") for side in ("left", "right"))
        assert np.allclose(right[:3, :3], np.eye(3), atol=1e-12)
        assert np.allclose(left[:3, 3] * [-1, 1, 1], right[:3, 3], atol=1e-12)
    bent = robot.assemble(fixed={"right_driver": 0.6, "right_stop": -0.2, "left_stop": 0.0})
    assert robot.pose(bent, "right_pad")[0, 2] > 0.05


# ---- planar linkages


def test_four_bar_is_the_one_of_the_design():
    b = sarrus.Builder(gravity=(0, 0, -9.81))
    b.add_body("crank", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0.4, 0, 0)))
    b.add_body("coupler", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1.1, 0, 0)))
    b.add_body("rocker", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0.9, 0, 0)))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0.4, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=(1.0, 0, 0))
    b.add_joint("pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0))
    by_hand, robot = b.build().description, gallery.four_bar().description
    assert robot.bodies == by_hand.bodies and robot.joints == by_hand.joints and robot.gravity == by_hand.gravity


def turns(robot, name, steps=400):
    """Return (lowest, highest) value of a coordinate of a one-dof linkage along a long path in one direction."""
    at = robot.joint(name).q_slice.start
    coordinates = wander(robot, steps=steps)[:, at]
    return coordinates.min(), coordinates.max()


@pytest.mark.parametrize(
    ("sizes", "crank_turns", "rocker_turns"),
    [
        ((0.4, 1.1, 0.9, 1.0), True, False),  # Grashof, the crank is shortest
        ((1.0, 0.9, 1.1, 0.4), True, True),  # Grashof, the ground is shortest: drag link
        ((1.0, 0.4, 1.1, 0.9), False, False),  # Grashof, the coupler is shortest
        ((1.0, 1.2, 1.4, 2.0), False, False),  # not Grashof
    ],
)
def test_grashof(sizes, crank_turns, rocker_turns):
    robot = gallery.four_bar(*sizes)
    for name, expected in (("motor", crank_turns), ("pivot", rocker_turns)):
        lowest, highest = turns(robot, name)
        assert (highest - lowest > 2 * np.pi) == expected


@pytest.mark.parametrize("nozzle", [(0.0, 0.0, 0.0), (0.05, 0.02, 0.01), (-0.08, 0.03, 0.04)])
def test_delta_printers_follow_klippers_formulas(nozzle):
    """Kinematics of Klipper's delta.py and rotary_delta.py, with the dimensions of their example configurations."""
    x, y, z = nozzle
    printer = gallery.delta_printer(arm=0.333, delta_radius=0.17475)
    q = printer.inverse_kinematics({"nozzle": nozzle}, near=printer.assemble())
    for k, angle in enumerate(np.radians([210.0, 330.0, 90.0]), start=1):
        towards = 0.17475 * np.array([np.cos(angle), np.sin(angle)])
        height = z + np.sqrt(0.333**2 - np.sum((towards - [x, y]) ** 2))
        np.testing.assert_allclose(printer.joint_states(q).q[f"carriage{k}"][0], height, rtol=CLOSES)
    printer = gallery.rotary_delta_printer()
    q = printer.inverse_kinematics({"nozzle": nozzle}, near=printer.assemble())
    for k, turn in enumerate(np.radians([30.0, 150.0, 270.0]), start=1):
        along, across = np.cos(turn) * x + np.sin(turn) * y, np.cos(turn) * y - np.sin(turn) * x
        angle = printer.joint_states(q).q[f"arm{k}"][0]
        elbow = np.array([0.0339 + 0.17 * np.cos(angle), 0.0, 0.4129 - 0.17 * np.sin(angle)])
        np.testing.assert_allclose(np.linalg.norm(elbow - [along, across, z]), 0.32, rtol=CLOSES)
    np.testing.assert_allclose(printer.pose(q, "nozzle")[:3], np.column_stack([np.eye(3), nozzle]), atol=CLOSES)


def test_slider_crank_follows_the_formula():
    robot = gallery.slider_crank(crank=0.3, rod=1.0, offset=0.1)
    way = wander(robot, steps=150)
    angle, x = (way[:, robot.joint(name).q_slice.start] for name in ("motor", "guide"))
    expected = 0.3 * np.cos(angle) + np.sqrt(1.0 - (0.3 * np.sin(-angle) - 0.1) ** 2)
    np.testing.assert_allclose(x, expected, rtol=0, atol=CLOSES)


@pytest.mark.parametrize(("long", "short", "crank"), [(1.0, 0.5, 0.4), (2.0, 0.7, 0.9), (1.0, 0.9, 1.5)])
def test_peaucellier_draws_a_straight_line(long, short, crank):
    robot = gallery.peaucellier(long=long, short=short, crank=crank)
    pen = robot.pose(wander(robot), "pen")[:, :3, 3]
    np.testing.assert_allclose(pen[:, 0], (long**2 - short**2) / (2 * crank), rtol=CLOSES)
    np.testing.assert_allclose(pen[:, 1], 0, atol=CLOSES)
    assert np.ptp(pen[:, 2]) > 0.05 * long


def test_watt_draws_an_almost_straight_line():
    """Within a third of the arms' length the curve is straight, then no longer."""
    robot = gallery.watt(arm=1.0, coupler=0.5)
    pen = robot.pose(np.concatenate([wander(robot, seed=s) for s in (1, 2, 3)]), "midpoint")[:, :3, 3]
    x, z = pen[:, 0], pen[:, 2]
    middle = np.abs(z) < 0.3
    assert np.ptp(z) > 0.5 and np.abs(x[middle] - 1.0).max() < 1.5e-3
    assert np.abs(x - 1.0).max() > 1e-2


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_scissor_lift_rises_level(stages):
    robot = gallery.scissor_lift(stages=stages, length=0.8)
    way = wander(robot, steps=25, step=0.02)
    slide = way[:, robot.joint("slide").q_slice.start]
    expected = np.tile(np.eye(4), (25, 1, 1))
    expected[:, 2, 3] = stages * np.sqrt(0.8**2 - slide**2)
    np.testing.assert_allclose(robot.pose(way, "platform"), expected, rtol=0, atol=stages * CLOSES)
    assert np.ptp(slide) > 0.01


def test_ladder_stays_parallel():
    robot = gallery.four_bar_ladder(4)
    way = wander(robot, steps=10)
    for k in range(1, 5):
        np.testing.assert_allclose(way[:, robot.joint(f"pivot{k}").q_slice], way[:, :1], rtol=0, atol=CLOSES)
        np.testing.assert_allclose(
            robot.pose(way, f"horizontal{k}")[:, :3, :3], np.tile(np.eye(3), (10, 1, 1)), atol=CLOSES
        )


def test_cut_ladder_falls_like_the_whole_one():
    whole, cut = gallery.four_bar_ladder(6), gallery.four_bar_ladder(6, closing="weld")
    a = [r.forward_dynamics(home(r), np.zeros(r.nv), np.zeros(r.nv))[r.joint("pivot0").v_slice] for r in (whole, cut)]
    np.testing.assert_allclose(a[1], a[0], rtol=1e-10)


@pytest.mark.parametrize("closing", ["point", "weld"])
def test_ladder_loses_rank_where_it_is_flat(closing):
    robot = gallery.four_bar_ladder(8, closing=closing)
    flat = np.zeros(robot.nq)
    for name in robot.joints:
        flat[robot.joint(name).q_slice] = np.pi / 2 if name.startswith("pivot") else -np.pi / 2
    assert np.abs(robot.constraint_residual(flat)).max() < CLOSES * 8
    assert len(freedoms(robot.constraint_jacobian(home(robot)))) == 1
    assert len(freedoms(robot.constraint_jacobian(flat))) == 9  # one more for every loop


def test_strandbeest_walks():
    """The crank rotates fully; the foot is lifted for half of a revolution and keeps its height in the other half."""
    leg = gallery.strandbeest_leg(scale=0.01)
    crank = leg.joint("motor").q_slice.start
    way = wander(leg, steps=1000, step=0.03)
    turned = np.abs(way[:, crank] - way[0, crank])
    way = way[turned < 2 * np.pi]
    assert len(way) < 1000  # more than one turn
    x, y, z = leg.pose(way, "foot")[:, :3, 3].T
    lift, stride = np.ptp(z), np.ptp(x)
    assert 0.2 < lift < 0.25 and 0.6 < stride < 0.75
    np.testing.assert_allclose(y, 0, atol=CLOSES)
    angle = np.unwrap(way[:, crank])
    stance = z < z.min() + 0.1 * lift
    assert 0.45 < np.abs(np.diff(angle))[stance[1:]].sum() / (2 * np.pi) < 0.6
    assert np.ptp(x[stance]) > 0.8 * stride


# ---- parallel manipulators


def test_motors_of_the_redundant_ones():
    assert [len(gallery.five_bar(actuated=n).actuated) for n in (2, 3, 4)] == [2, 3, 4]
    assert [len(gallery.three_rrr(actuated=n).actuated) for n in (3, 4, 5, 6)] == [3, 4, 5, 6]
    assert gallery.three_rrr(actuated=4).actuated == ("base1", "elbow1", "base2", "base3")


def test_three_rrr_is_the_one_of_the_slides():
    """Angles of Li and Wu's manipulator at p = (0.3, 0.1443) m, on the branch with all elbows to the left."""
    theta = [
        1.4310349302625602,
        -1.9652016750200434,
        3.663623802205038,
        -2.294329802056578,
        -0.3386242384876039,
        -2.1213370686097583,
    ]
    robot = gallery.three_rrr()
    assert robot.joints == ("base1", "elbow1", "base2", "elbow2", "base3", "elbow3")
    assert np.abs(robot.constraint_residual(theta)).max() < CLOSES
    np.testing.assert_allclose(robot.pose(theta, "tip")[:3, 3], [0.3, 0.14433756729740643, 0], atol=CLOSES)
    assert (home(robot)[1::2] < 0).all()  # the same branch at home


@pytest.mark.parametrize("free", [True, False])
def test_delta_never_turns(free):
    robot = gallery.delta(platform_free=free)
    poses = robot.pose(wander(robot, seed=3), "platform")
    np.testing.assert_allclose(poses[:, :3, :3], np.tile(np.eye(3), (40, 1, 1)), rtol=0, atol=CLOSES)
    assert (np.ptp(poses[:, :3, 3], axis=0) > 0.01).all()


@pytest.mark.parametrize("free", [True, False])
def test_stewart_coordinates_are_leg_lengths(free):
    robot = gallery.stewart(platform_free=free)
    feet = [robot.description.joints[k].at_parent.translation for k in range(0, 12, 2)]
    tops = [j.at_child.translation for j in robot.description.joints if j.name.startswith("ball")]
    for q in wander(robot, steps=20)[::5]:
        T = robot.pose(q, "platform")
        for k, (foot, top) in enumerate(zip(feet, tops), start=1):
            length = np.linalg.norm(T[:3, :3] @ top + T[:3, 3] - foot)
            np.testing.assert_allclose(q[robot.joint(f"leg{k}").q_slice], length, rtol=CLOSES)
    legs = [q[robot.joint(f"leg{k}").q_slice][0] for q in [home(robot)] for k in range(1, 7)]
    np.testing.assert_allclose(legs, legs[0], rtol=CLOSES)


@pytest.mark.parametrize("free", [True, False])
def test_where_the_platform_hangs_does_not_matter(free):
    """The fall of the platform is the same with coordinates of its own, or as part of a leg."""
    for make_it, body in ((gallery.stewart, "platform"), (gallery.delta, "platform"), (gallery.two_links, "reference")):
        falls = []
        for robot in (make_it(), make_it(free)):
            q, rest = home(robot), np.zeros(robot.nv)
            a = robot.forward_dynamics(q, rest, rest)
            falls.append(robot.acceleration(q, rest, a, body))
        np.testing.assert_allclose(falls[1], falls[0], rtol=0, atol=1e-10)


# ---- overconstrained linkages


@pytest.mark.parametrize(("twist", "other"), [(np.pi / 6, np.pi / 3), (2.0, 0.5), (0.4, 1.2)])
def test_bennett_keeps_the_product_of_tangents(twist, other):
    robot = gallery.bennett(twist=twist, other_twist=other)
    one, two, four = wander(robot, steps=60).T
    product = np.sin((twist + other) / 2) / np.sin((twist - other) / 2)
    # t1 t2 = product, without dividing by what may be zero
    s1, c1, s2, c2 = np.sin(one / 2), np.cos(one / 2), np.sin(two / 2), np.cos(two / 2)
    np.testing.assert_allclose(s1 * s2, product * c1 * c2, rtol=0, atol=CLOSES * max(1, abs(product)))
    np.testing.assert_allclose(np.exp(1j * two), np.exp(1j * four), rtol=0, atol=CLOSES)
    assert np.ptp(one) > 1


def test_bennett_of_other_proportions_is_rigid():
    """With a tiny error of one length, the loop closes only at isolated positions."""
    robot = gallery.bennett()
    d = robot.description
    wrong = sarrus.Builder()
    for body in d.bodies:
        wrong.add_body(body.name, body.inertia)
    for joint in d.joints:
        at = joint.at_parent
        if joint.name == "joint2":
            at = sarrus.Transform(at.rotation, 1.01 * at.translation)
        wrong.add_joint(joint.name, joint.joint, joint.parent, joint.child, at_parent=at, at_child=joint.at_child)
    q = home(robot)
    sizes = np.linalg.svd(robot.constraint_jacobian(q), compute_uv=False)
    assert sizes[2] < CLOSES
    assert np.linalg.svd(wrong.build().constraint_jacobian(q), compute_uv=False)[2] > 1e-4


def test_bricard_moves_symmetrically():
    """Opposite hinges, 1 and 4, 2 and 5, rotate by equal angles, and 1 and 3 by opposite ones: their bars' frames start parallel."""
    robot = gallery.bricard()
    assert not home(robot).any()
    one, two, three, five, six = wander(robot, steps=60).T
    np.testing.assert_allclose(three, -one, rtol=0, atol=CLOSES)
    np.testing.assert_allclose(five, one, rtol=0, atol=CLOSES)
    np.testing.assert_allclose(six, -two, rtol=0, atol=CLOSES)
    assert np.ptp(one) > 0.4 and np.ptp(two) > 0.4


def test_bricard_starts_on_the_cube():
    robot = gallery.bricard(edge=2.0)
    corners = [robot.pose(home(robot), f"link{k}")[:3, 3] for k in range(1, 6)]
    assert np.array_equal(corners, [[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 2], [0, 0, 2]])


def test_goldbergs_loops_are_bennetts():
    """Legs on the ground bar move like those of Bennett loops: tangents of half their angles have a constant ratio."""
    for robot, twists in ((gallery.goldberg_5r(), (0.5, 0.8)), (gallery.goldberg_6r(), (0.5, 0.8, 0.3))):
        way = wander(robot, steps=60)
        first, last = 1.0 + way[:, 0], way[:, -1]
        ratio = np.prod([np.sin((1.2 + twist) / 2) / np.sin((1.2 - twist) / 2) for twist in twists])
        last += 2 * np.arctan(ratio * np.tan(0.5))
        # tan(last / 2) = ratio tan(first / 2), without dividing by what may be zero
        one, other = np.sin(last / 2) * np.cos(first / 2), ratio * np.sin(first / 2) * np.cos(last / 2)
        np.testing.assert_allclose(one, other, rtol=0, atol=CLOSES * ratio)
        assert np.ptp(first) > 0.5


def test_myard_stays_its_own_image():
    """Hinges that are mirror images rotate by equal angles."""
    robot = gallery.myard()
    way = wander(robot, steps=60)
    one, two, four, five = way.T
    np.testing.assert_allclose(np.abs(five), np.abs(two), rtol=0, atol=CLOSES)
    assert np.ptp(one) > 0.5 and np.ptp(two) > 0.5 and np.ptp(four) > 0.5


def test_schatz_shafts_turn_back_and_forth_together():
    """n1.n2 + n2.n3 + n3.n1 = 0 for the bars: their sum always has the length sqrt(3)."""
    robot = gallery.schatz()
    way = wander(robot, steps=60)
    points = [robot.pose(way, "link2")[:, :3, 3], robot.pose(way, "link3")[:, :3, 3]]
    elbow = (robot.pose(way, "link3") @ [*(0.3 * np.array([1 / 3**0.5, (2 / 3) ** 0.5, 0.0])), 1.0])[:, :3]
    bars = np.array([points[1] - points[0], elbow - points[1], [0.3 * 3**0.5, 0, 0] - elbow]) / 0.3
    np.testing.assert_allclose(np.linalg.norm(bars, axis=2), 1.0, rtol=0, atol=8 * CLOSES)
    np.testing.assert_allclose(sum((bars[k] * bars[k - 1]).sum(axis=1) for k in range(3)), 0.0, rtol=0, atol=8 * CLOSES)
    assert np.ptp(way[:, 0]) > 0.5


OCTAHEDRA = ("line-symmetric octahedral", "plane-symmetric octahedral", "doubly collapsible octahedral")


def corners(robot, q):
    """Return (..., 6, 3) intersections of neighbouring axes of a loop along an octahedron's edges, as nearest points."""
    frames = {joint.name: joint for joint in robot.description.joints}
    points, axes = [], []
    for k in range(1, 7):
        joint = frames[f"joint{k}"]
        pose = robot.pose(q, joint.parent)
        points.append((pose @ [*joint.at_parent.translation, 1.0])[..., :3])
        axes.append(pose[..., :3, :3] @ joint.joint.axis)
    meet = []
    for k in range(6):
        a, u, b, w = points[k - 1], axes[k - 1], points[k], axes[k]
        n = np.cross(u, w)
        t = (np.cross(b - a, w) * n).sum(axis=-1) / (n * n).sum(axis=-1)
        meet.append(a + t[..., None] * u)
    return np.stack(meet, axis=-2)


@pytest.mark.parametrize("kind", OCTAHEDRA)
def test_bricards_octahedra_keep_their_edges(kind):
    """All twelve edges, with hinges along six; the diagonals between opposite corners change."""
    robot = gallery.bricard(kind=kind)
    there = corners(robot, wander(robot, steps=30, step=0.02))
    apart = np.linalg.norm(there[:, :, None] - there[:, None], axis=-1)
    for i in range(6):
        for j in range(i):
            assert (np.ptp(apart[:, i, j]) < 1e-12) == (i - j != 3)
    if kind.startswith("doubly"):  # Baker's condition on the hinges' lengths
        lengths = [apart[0, k, (k + 1) % 6] for k in range(6)]
        assert np.prod(lengths[::2]) == pytest.approx(np.prod(lengths[1::2]), rel=1e-12)


@pytest.mark.parametrize("kind", ["line-symmetric", "line-symmetric octahedral"])
def test_bricards_opposite_hinges_turn_alike(kind):
    robot = gallery.bricard(kind=kind)
    one, two, three, five, six = wander(robot, steps=60, step=0.02).T
    # the bars beyond the ground are counted back to it
    np.testing.assert_allclose(five, -two, rtol=0, atol=8 * CLOSES)
    np.testing.assert_allclose(six, -three, rtol=0, atol=8 * CLOSES)
    assert np.ptp(two) > 0.1


def test_bricards_images_turn_alike():
    robot = gallery.bricard(kind="plane-symmetric")
    one, two, three, five, six = wander(robot, steps=60, step=0.02).T
    np.testing.assert_allclose(np.abs(six), np.abs(two), rtol=0, atol=8 * CLOSES)
    np.testing.assert_allclose(np.abs(five), np.abs(three), rtol=0, atol=8 * CLOSES)
    assert np.ptp(two) > 0.1


def test_double_hooke_passes_velocities_on():
    robot = gallery.double_hooke(angle=0.5)
    q = robot.follow({"joint1": np.linspace(0.0, 2 * np.pi, 40)})
    v = robot.project_velocity(q, np.ones(5))
    one, two, three, five, six = v.T
    np.testing.assert_allclose(six, one, rtol=0, atol=8 * CLOSES)
    # what the middle shaft turns by about its axis is cos(angle) to 1 / cos(angle) of it
    middle = robot.velocity(q, v, "link3")[:, :3] @ [1.0, 0.0, 0.0] / one
    assert middle.min() == pytest.approx(np.cos(0.5), rel=0.02) and middle.max() == pytest.approx(
        1 / np.cos(0.5), rel=0.02
    )


def test_tsai_does_not_turn_but_in_its_singular_position():
    robot = gallery.tsai_3upu()
    way = robot.pose(wander(robot, steps=30), "platform")
    np.testing.assert_allclose(way[:, :3, :3], np.tile(np.eye(3), (30, 1, 1)), rtol=0, atol=1e-12)
    assert np.ptp(way[:, :3, 3], axis=0).min() > 0.01
    singular = gallery.tsai_3upu(base=0.3, platform=0.3)
    mobility = singular.mobility(singular.assemble())
    assert (mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom) == (5, 3)
    J = singular.constraint_jacobian(singular.assemble())
    locked = np.vstack([J, np.eye(11)[[singular.joint(f"leg{k}").v_slice.start for k in (1, 2, 3)]]])
    assert len(freedoms(J)) == 5 and len(freedoms(locked)) == 2


@pytest.mark.parametrize("legs", [4, 5, 8])
def test_wren_platform_moves_without_turning(legs):
    robot = gallery.wren_platform(legs)
    mobility = robot.mobility(robot.assemble())
    assert (mobility.degrees_of_freedom, mobility.finite_degrees_of_freedom) == (3, 2)
    assert mobility.kutzbach == 6 - legs
    for lean in (0.1, 0.6, 1.2):
        assert (
            np.abs(robot.constraint_residual([0, 0, 0, 1, 0.0, -0.6 * np.sin(lean), 0.6 * np.cos(lean)])).max() < CLOSES
        )


def test_wren_platform_screws_itself_down_from_upright():
    """The ends of the legs are 2 r sin(rotation / 2) apart about the centre."""
    robot = gallery.wren_platform(radius=0.3, leg=0.6)
    for turn in (0.2, 1.0, 2.0):
        height = np.sqrt(0.6**2 - (2 * 0.3 * np.sin(turn / 2)) ** 2)
        assert (
            np.abs(robot.constraint_residual([0, 0, np.sin(turn / 2), np.cos(turn / 2), 0, 0, height])).max() < CLOSES
        )


def test_sarrus_moves_straight():
    robot = gallery.sarrus_linkage(plate=0.5)
    way = wander(robot, steps=30)
    angle = -way[:, robot.joint("base_a").q_slice.start]
    expected = np.tile(np.eye(4), (30, 1, 1))
    expected[:, 2, 3] = 2 * 0.5 * np.sin(angle)
    np.testing.assert_allclose(robot.pose(way, "platform"), expected, rtol=0, atol=CLOSES)
    assert np.ptp(angle) > 0.3


# ---- lattices


def test_net_is_one_of_parallelograms():
    """Horizontal rods of a column stay parallel, and so do vertical rods of a row."""
    robot = gallery.net(2, 3)
    way = wander(robot, steps=20)

    def direction(body):
        return robot.pose(way, body)[:, :3, 0]

    for j in range(3):
        for i in (1, 2):
            np.testing.assert_allclose(direction(f"across{i}_{j}"), direction(f"across0_{j}"), rtol=0, atol=8 * CLOSES)
    for i in range(2):
        for j in (1, 2, 3):
            np.testing.assert_allclose(direction(f"down{i}_{j}"), direction(f"down{i}_0"), rtol=0, atol=8 * CLOSES)


@pytest.mark.parametrize("n", [3, 6])
def test_hoberman_ring_stays_a_ring(n):
    """All centres stay on a growing circle, about the origin at home, below the pin on the ground."""
    robot = gallery.hoberman_ring(n)
    way = np.concatenate([home(robot)[None], wander(robot, steps=20, step=0.02)])
    middles = np.stack([robot.pose(way, f"left{k}")[:, :3, 3] for k in range(1, n + 1)], axis=1)
    centre = middles.mean(axis=1)
    out = np.linalg.norm(middles - centre[:, None], axis=2)
    np.testing.assert_allclose(out, out[:, :1] * np.ones(n), rtol=0, atol=8 * CLOSES)
    assert np.ptp(out[:, 0]) > 0.005
    np.testing.assert_allclose(centre[:, :2], 0.0, rtol=0, atol=8 * CLOSES)
    assert abs(centre[0, 2]) < CLOSES


@pytest.mark.parametrize("scissors", [1, 2])
def test_hoberman_sphere_stays_a_sphere(scissors):
    """The outer hubs stay at equal, changing distances from their common centre, without rotation."""
    robot = gallery.hoberman_sphere(scissors)
    way = wander(robot, steps=10, step=0.02)
    hubs = np.stack([robot.pose(way, f"outer{sign}{axis}") for axis in "xyz" for sign in "+-"], axis=1)
    places = hubs[..., :3, 3] - hubs[..., :3, 3].mean(axis=1, keepdims=True)
    out = np.linalg.norm(places, axis=2)
    np.testing.assert_allclose(out, out[:, :1] * np.ones(6), rtol=0, atol=64 * CLOSES)
    assert np.ptp(out[:, 0]) > 0.001
    np.testing.assert_allclose(
        hubs[..., :3, :3], np.broadcast_to(np.eye(3), (*out.shape, 3, 3)), rtol=0, atol=64 * CLOSES
    )


def test_miura_folds_in_both_directions_at_once():
    """By Schenk and Guest's formulas, width and depth of a cell follow from one angle."""
    robot = gallery.miura_fold(5, 5, side=0.2, angle=1.0, fold=0.6)
    way = wander(robot, steps=20, step=0.02)
    wide = np.linalg.norm(robot.pose(way, "facet0_4")[:, :3, 3], axis=1) / 4
    deep = np.linalg.norm(robot.pose(way, "facet4_0")[:, :3, 3], axis=1) / 4
    sine = np.sqrt(1 - (deep / 0.2) ** 2) / np.sin(1.0)  # of the fold
    tangent = np.sqrt(1 - sine**2) * np.tan(1.0)
    np.testing.assert_allclose(wide, 0.2 * tangent / np.hypot(1, tangent), rtol=0, atol=64 * CLOSES)
    assert np.ptp(wide) > 0.001 and np.ptp(deep) > 0.001


@pytest.mark.parametrize("n", [3, 4, 6])
def test_tensegrity_prism_stands_by_its_springs(n):
    """Without weight it rests at home, where any motion increases the energy."""
    description = dataclasses.replace(gallery.tensegrity_prism(n).description, gravity=np.zeros(3))
    prism = sarrus.Mechanism(description)
    q, rest = home(prism), np.zeros(prism.nv)
    assert np.abs(prism.forward_dynamics(q, rest, rest)).max() < 1e-9
    rng = np.random.default_rng(3)
    here = prism.potential_energy(q)
    for _ in range(10):
        v = prism.project_velocity(q, rng.normal(size=prism.nv))
        away = prism.project_configuration(prism.integrate(q, 0.05 / np.linalg.norm(v) * v))
        assert prism.potential_energy(away) > here


def test_chain_mail_and_ring_hang_together():
    """Neighbouring edges stay a ring's radius apart; each rod of a ring ends where the next one begins."""
    mail, ring = gallery.chain_mail(2, 3), gallery.ring(5)
    way, turns = wander(mail, steps=10), wander(ring, steps=10)
    for j in range(3):
        upper, lower = (mail.pose(way, f"ring{i}_{j}") for i in (0, 1))
        gap = np.linalg.norm((upper @ [0.05, 0, 0, 1] - lower @ [-0.05, 0, 0, 1])[:, :3], axis=1)
        np.testing.assert_allclose(gap, 0.05, rtol=0, atol=CLOSES)
    last, first = ring.pose(turns, "rod5"), ring.pose(turns, "rod1")
    far = 0.2 * np.array([np.cos(1.6 * np.pi), np.sin(1.6 * np.pi), 0.0])
    np.testing.assert_allclose((last @ [*far, 1.0])[:, :3], first[:, :3, 3], rtol=0, atol=8 * CLOSES)


# ---- energy

# over 1 s of "independent" with steps of 1 ms, at 1 rad/s: no more than what steps of fourth order cost where motion is this slow
KEEPS = ("bennett", "bricard", "bricard, line-symmetric", "goldberg_5r", "miura_fold(3, 4)", "myard", "schatz")


@pytest.mark.parametrize("label", KEEPS)
def test_energy_is_kept(label):
    robot = make(label)
    for k, q in enumerate(wander(robot, steps=20)[[0, 9, 19]]):
        v = robot.project_velocity(q, np.random.default_rng(k).normal(size=robot.nv))
        run = sarrus.simulate(robot, q, v / np.linalg.norm(v), 1.0, method="independent", times=[0.0, 0.5, 1.0])
        assert np.ptp(run.energy) < 1e-10 * max(run.kinetic_energy.max(), np.abs(run.energy).max())


# ---- the thesis, and contact with the world


def test_four_link_chain():
    """Thesis 5.85-5.133."""
    robot = gallery.four_link_chain()
    q = rest = np.zeros(4)
    H = [[26.35, 8.35, 5.4, 0.95], [8.35, 5.35, 2.4, 0.95], [5.4, 2.4, 1.9, 0.45], [0.95, 0.95, 0.45, 0.45]]
    np.testing.assert_allclose(robot.mass_matrix(q), H, rtol=1e-12)
    np.testing.assert_allclose(robot.bias_forces(q, rest), [-30, -30, -5, -5], rtol=1e-12)
    np.testing.assert_allclose(
        robot.forward_dynamics(q, rest, rest),
        [0, 10.526315789473685, -10.526315789473685, -10.526315789473685],
        atol=1e-12,
    )
    assert (robot.description.joints[0].joint.damping == 0.25).all()


@pytest.mark.parametrize("free", [True, False])
def test_two_links(free):
    """Thesis 6.152, and a load on one link."""
    robot = gallery.two_links(free)
    q, rest = home(robot), np.zeros(robot.nv)
    tau = rest.copy()
    np.testing.assert_allclose(robot.forward_dynamics(q, rest, tau)[:2], 4.942882353925381, rtol=1e-10)
    tau[0] = 1
    np.testing.assert_allclose(robot.forward_dynamics(q, rest, tau)[:2], 5.020552256838, rtol=1e-10)


@pytest.mark.parametrize("free", [True, False])
def test_hslm(free):
    """Thesis ch. 8: free fall, and unequal forces on the three slides."""
    robot = gallery.hslm(free)
    assert robot.actuated == ("slide1", "pitch1", "slide2", "pitch2", "slide3", "pitch3")
    q, rest = home(robot), np.zeros(robot.nv)
    tau = rest.copy()
    fall = robot.forward_dynamics(q, rest, tau)
    np.testing.assert_allclose(fall[:5], [0, -3.6239139473, 9.2218499162, 0, 3.6239139473], atol=1e-8)
    np.testing.assert_allclose(robot.acceleration(q, rest, fall, "reference")[4], -10.028642928678, rtol=1e-10)
    for k, force in enumerate((-30, -45, -40), start=1):
        tau[robot.joint(f"slide{k}").v_slice] = force
    a = robot.forward_dynamics(q, rest, tau)
    moved = [-0.1928804408, 0, 1.1023390494, -0.2013182139, -1.1906336788, -0.0352254108]
    np.testing.assert_allclose(robot.acceleration(q, rest, a, "reference"), moved, atol=1e-8)


def test_upright_disc_rolls_as_on_the_slides():
    """x'' and y'' follow from x' = radius cos(steer) roll', and the angles from their torques."""
    robot = gallery.rolling_disc(upright=True)
    steer, v = 0.2, np.array([0.3 * np.cos(0.2), 0.3 * np.sin(0.2), 0.3, 1.0])
    q = np.array([0.1, -0.2, steer, 0.5])
    assert np.abs(robot.constraint_jacobian(q) @ v).max() < CLOSES
    a = robot.forward_dynamics(q, v, [0, 0, 0.02, 0.5])
    turn, roll = 0.02 / 0.05, 0.5 / (0.1 + 2 * 0.3**2)
    c, s = np.cos(steer), np.sin(steer)
    expected = [0.3 * (c * roll - s * 0.3), 0.3 * (s * roll + c * 0.3), turn, roll]
    np.testing.assert_allclose(a, expected, rtol=1e-10)


def test_free_disc_rolls_straight_and_falls_when_leaning():
    robot = gallery.rolling_disc(radius=0.3)
    q = home(robot)
    np.testing.assert_allclose(robot.pose(q, "disc")[:3, 3], [0, 0, 0.3])
    straight = np.array([0, 2.0, 0, 0.6, 0, 0])
    assert np.abs(robot.constraint_jacobian(q) @ straight).max() < CLOSES
    a = robot.forward_dynamics(q, straight, np.zeros(6))
    np.testing.assert_allclose(robot.acceleration(q, straight, a, "disc"), 0, atol=1e-12)
    leaning = np.concatenate([sarrus.Rotation.from_axis_angle("x", 0.1).quaternion, [0, 0, 0.3 * np.cos(0.1)]])
    assert np.abs(robot.constraint_residual(leaning)).max() < CLOSES
    fall = robot.forward_dynamics(leaning, np.zeros(6), np.zeros(6))
    # about the point of contact: (I + m r^2) alpha = m g r sin(lean)
    np.testing.assert_allclose(fall[0], 2 * 9.81 * 0.3 * np.sin(0.1) / (0.05 + 2 * 0.3**2), rtol=1e-10)


def test_hand_can_squeeze():
    """Nine motors on six degrees of freedom: three ways to press on the ball without moving it."""
    hand = gallery.three_finger_hand()
    q = home(hand)
    motors = [hand.joint(name).v_slice.start for name in hand.actuated]
    free = freedoms(hand.constraint_jacobian(q))
    assert np.linalg.matrix_rank(free[:, motors], tol=1e-6) == 6
    centers = hand.pose(q, "object")[:3, 3]
    for k in range(3):
        tip = hand.pose(q, f"distal{k + 1}") @ [0, 0, 0.05, 1]
        np.testing.assert_allclose(np.linalg.norm(tip[:3] - centers), 0.03, rtol=1e-12)


def test_biped_stands_on_its_sole():
    leg = gallery.biped_leg()
    sole = leg.pose(home(leg), "sole")
    np.testing.assert_allclose(sole[:3, :3], np.eye(3), atol=CLOSES)
    assert abs(sole[2, 3]) < CLOSES
    np.testing.assert_allclose(leg.mass, 20.0, rtol=1e-12)


def test_crossed_knee_has_a_moving_axis():
    """The instantaneous axis of the shank in the thigh moves by centimetres when the knee bends."""
    leg = gallery.biped_leg()
    axes = []
    for q in wander(leg, steps=8, step=0.05, seed=5)[[0, -1]]:
        v = np.zeros(leg.nv)
        rows = leg.constraint_jacobian(q)
        inner = [leg.joint(name).v_slice.start for name in ("knee", "rear_upper", "front_lower")]
        v[inner] = freedoms(rows[:, inner])[0]
        w, u = np.split(leg.velocity(q, v, "shank", expressed_in="world_aligned"), 2)
        center = leg.pose(q, "shank")[:3, 3] + np.cross(w, u) / (w @ w)
        axes.append(np.linalg.inv(leg.pose(q, "thigh")) @ [*center, 1])
    assert 1e-3 < np.linalg.norm(axes[1] - axes[0]) < 0.1


# ---- robots whose base moves


@pytest.mark.parametrize(("panels", "off"), [(4, 0.03), (16, 0.002)])
def test_paddles_bend_as_beams_do(panels, off):
    """A clamped paddle has the first frequency of a beam, to second order in a panel's fraction of the length."""
    robot = gallery.free_flyer(panels=panels, frequency=0.3)
    hinges = [robot.joint(f"left{k + 1} hinge") for k in range(panels)]
    along = [hinge.v_slice.start for hinge in hinges]
    M = robot.mass_matrix(home(robot))[np.ix_(along, along)]
    K = np.diag([hinge.type.stiffness[0] for hinge in hinges])
    squared = np.linalg.eigvals(np.linalg.solve(M, K)).real.min()
    np.testing.assert_allclose(np.sqrt(squared) / (2 * np.pi), 0.3, rtol=off)


def test_satellite_floats_and_its_wheels_turn_it():
    robot = gallery.free_flyer(wheels=True)
    assert robot.nv == gallery.free_flyer().nv + 3
    tau = np.zeros(robot.nv)
    tau[robot.joint("z axle").v_slice] = 0.1
    a = robot.forward_dynamics(home(robot), np.zeros(robot.nv), tau)
    assert a[2] < 0.0 < a[robot.joint("z axle").v_slice][0]  # against each other
    rate = sarrus.floating.centroidal_momentum_matrix(robot, home(robot)) @ a
    np.testing.assert_allclose(rate, 0.0, atol=1e-13)


def test_long_arm_gives_way():
    """The deflection by a force at the wrist follows from Jacobian and springs: C = J K^-1 J^T."""
    robot = gallery.macro_micro_arm(stiffness=1e5)
    q, force = home(robot), np.array([0.2, 0.3, -0.4])  # [N]
    J = robot.jacobian(q, "wrist", expressed_in="world_aligned")[3:, :3]
    q[:3] = J.T @ force / 1e5
    wrench = np.concatenate([np.zeros(3), robot.pose(q, "wrist")[:3, :3].T @ force])
    left = robot.bias_forces(q, np.zeros(9), wrenches={"wrist": wrench})[:3]
    np.testing.assert_allclose(left, 0.0, atol=2e-4)  # of 5 N m, as it turns by 5e-5 rad


def test_horn_stands_on_the_asteroid():
    robot = gallery.sampler(horn=0.8, gravity=1e-4)
    rim = robot.kinematics(home(robot))
    heights = [rim.pose(f"rim{k}")[2, 3] for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(heights, 0.0, atol=1e-15)
    np.testing.assert_allclose(robot.gravity_forces(home(robot))[3:6], [0, 0, robot.mass * 1e-4], rtol=1e-12)


def test_rover_wheels_bear_the_same():
    """On level ground each carries a sixth of the weight, except for the weights of rockers and bogies."""
    robot = gallery.rover(rolling=True)
    still = np.zeros(robot.nv)
    _, held = robot.forward_dynamics(home(robot), still, still, return_reactions=True)
    loads = held.multipliers
    loads = loads[[robot.constraint(name).rows.start for name in robot.constraints if "wheel" in name]]
    np.testing.assert_allclose(loads.sum(), robot.mass * 9.81, rtol=1e-10)
    np.testing.assert_allclose(loads, robot.mass * 9.81 / 6, rtol=0.1)


def test_rover_rolls_straight_ahead():
    robot = gallery.rover(wheel=0.1, rolling=True)
    v = robot.complete_velocity(home(robot), {"left front axle": 2.0})
    np.testing.assert_allclose(v[:6], [0, 0, 0, 0.2, 0, 0], atol=1e-12)
    np.testing.assert_allclose([v[robot.joint(name).v_slice][0] for name in robot.actuated], 2.0, rtol=1e-12)


def test_differential_halves_a_climb():
    """The chassis pitches by the mean of both sides."""
    robot = gallery.rover()
    q = wander(robot, steps=3)[-1]
    pitches = {}
    for body in ("chassis", "left rocker", "right rocker"):
        axle = robot.pose(q, "chassis")[:3, 1]
        v = freedoms(robot.constraint_jacobian(q))
        pitches[body] = (v @ robot.jacobian(q, body, expressed_in="world_aligned")[:3].T) @ axle
    mean = (pitches["left rocker"] + pitches["right rocker"]) / 2
    np.testing.assert_allclose(pitches["chassis"], mean, atol=1e-14)
    assert np.abs(pitches["left rocker"] - mean).max() > 0.1


# ---- trees


@pytest.mark.parametrize("build", TREES)
def test_trees(build):
    robot = build()
    assert robot.constraints == () and pickle.loads(pickle.dumps(robot)) == robot == build()
    q = robot.random(np.random.default_rng(0))
    np.testing.assert_allclose(robot.mass_matrix(q), Dense(robot.description).mass_matrix(q), atol=1e-12)


@pytest.mark.parametrize("name", sarrus.mechanisms.__all__)
def test_no_parameter_takes_what_is_no_size(name):
    """An invalid parameter raises an error of sarrus, or gives a valid mechanism."""
    make = getattr(sarrus.mechanisms, name)
    parameters = inspect.signature(make).parameters.values()
    needed = {p.name: 2 for p in parameters if p.default is p.empty}
    for parameter in parameters:
        for value in ("x", "1", None, 1j, [1], np.nan, np.inf, -1e300, 1e300, np.ones(2), object()):
            with contextlib.suppress(sarrus.SarrusError):
                assert isinstance(make(**{**needed, parameter.name: value}), sarrus.Mechanism)
