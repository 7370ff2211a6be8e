"""The reference-member algorithm: the motion of the other formulations, and the thesis' statements on intermediate quantities."""

import dataclasses
import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import mechanisms as gallery
from sarrus.formulations.reference_member import _residual
from tests.oracles import Closed
from tests.oracles.joint_motion import joint_motion
from tests.random_mechanisms import ALL_JOINTS, _random_coordinates, random_inertia, random_joint, random_transform

# the chains are joined in another order than in the solver: what remains is rounding times the spread of masses and lengths (hslm: 1e5)
SAME = 1e-11


def home(robot):
    q = robot.neutral()
    for name, values in robot.description.home:
        q[robot.joint(name).q_slice] = values
    return robot.project_configuration(q)


def moving(robot, q, seed=0):
    rng = np.random.default_rng(seed)
    return robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)


def agrees(got, expected, tolerance=SAME):
    assert_allclose(got, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1.0))


# ---- the same motion -------------------------------------------------------------------------------------------------------------------

TAKEN_APART = {  # made by: members at which they come apart
    gallery.two_links: ("reference",),
    gallery.hslm: ("reference",),
    gallery.four_link_chain: ("link1", "link2", "link3", "link4"),
    gallery.four_bar: ("crank", "coupler", "rocker"),
    gallery.slider_crank: ("crank", "rod", "slider"),
    gallery.watt: ("left", "coupler", "right"),
    gallery.five_bar: ("left_crank", "left_rod", "right_crank", "right_rod"),
    gallery.three_rrr: ("lower1",),
    gallery.stewart: ("platform",),
    gallery.bennett: ("link1", "link2", "link3"),
    gallery.bricard: ("link1", "link2", "link3", "link4", "link5"),
    gallery.sarrus_linkage: ("platform", "lower_a", "upper_a", "lower_b", "upper_b"),
    gallery.three_finger_hand: ("object",),
    gallery.stanford_arm: ("link4",),
    gallery.pendulum: ("bob",),
}


def in_the_tree(make):
    return lambda: make(reference_free=False)


@pytest.mark.parametrize(
    ("make", "member"),
    [
        *((make, member) for make, members in TAKEN_APART.items() for member in members),
        (in_the_tree(gallery.two_links), "reference"),
        (in_the_tree(gallery.two_links), "link1"),
        (in_the_tree(gallery.hslm), "reference"),
    ],
)
def test_gallery_moves_as_the_solver_says(make, member):
    robot = make()
    q = home(robot)
    v, tau = moving(robot, q)
    solution = sarrus.formulations.reference_member(robot, q, v, tau, member=member)
    assert solution.member == member
    assert solution.status == 0
    a, reactions = robot.forward_dynamics(q, v, tau, return_reactions=True) if robot.nc else (None, None)
    if robot.nc == 0:
        agrees(solution.accelerations, robot.forward_dynamics(q, v, tau))
        return
    agrees(solution.accelerations, a)
    # both of least norm over the same rows; dependent rows share what rounding leaves
    agrees(solution.multipliers, reactions.multipliers, 1e-8)
    for name, wrench in reactions.wrenches.items():
        agrees(solution.wrenches[name], wrench, 1e-8)


@pytest.mark.parametrize("make", TAKEN_APART)
def test_default_member(make):
    """Of the bodies with the most joints, the default is the one farthest from the ground."""
    robot = make()
    q = home(robot)
    wanted = {
        gallery.four_bar: "coupler",
        gallery.slider_crank: "rod",
        gallery.bricard: "link3",
        gallery.watt: "coupler",
    }
    wanted |= {gallery.four_link_chain: "link2", gallery.five_bar: "left_rod", gallery.bennett: "link2"}
    solution = sarrus.formulations.reference_member(robot, q, np.zeros(robot.nv), np.zeros(robot.nv))
    assert solution.member == wanted.get(make, TAKEN_APART[make][0])


def delta(serial_length=0.8):
    """Return three arms, each with one rod on two ball joints (the rods may spin): the chains of a Delta robot, in series."""
    b = sarrus.Builder("delta")
    b.add_body("platform", sarrus.Inertia.cylinder(1.0, 0.1, 0.02))
    for k in range(3):
        turn = sarrus.Rotation.from_axis_angle("z", 2 * math.pi * k / 3)
        b.add_body(f"arm{k}", sarrus.Inertia.rod(0.5, (0, 0, 0), (0.3, 0, 0), radius=0.02))
        b.add_body(f"rod{k}", sarrus.Inertia.rod(0.2, (0, 0, 0), (0, 0, -serial_length), radius=0.02))
        at = sarrus.Transform(turn, turn.apply((0.2, 0, 0)))
        b.add_joint(f"motor{k}", sarrus.Revolute("y", armature=0.01), "ground", f"arm{k}", at_parent=at, actuated=True)
        b.add_joint(f"elbow{k}", sarrus.Universal("y", "x"), f"arm{k}", f"rod{k}", at_parent=(0.3, 0, 0))
        b.add_joint(
            f"ball{k}",
            sarrus.Spherical(),
            f"rod{k}",
            "platform",
            at_parent=(0, 0, -serial_length),
            at_child=turn.apply((0.1, 0, 0)),
        )
    robot = b.build()
    q = robot.neutral()
    for k in range(3):
        q[robot.joint(f"elbow{k}").q_slice] = [0.5, 0.0]
    return robot, robot.project_configuration(q)


def planar_3rrr():
    """Return three chains of two bars and a platform, whose planar loops have three redundant rows each."""
    b = sarrus.Builder("3-RRR", gravity=(0, 0, -9.81))
    corners = [sarrus.Rotation.from_axis_angle("y", 2 * math.pi * k / 3).apply((1, 0, 0)) for k in range(3)]
    b.add_body("platform", sarrus.Inertia.box(2.0, (0.3, 0.02, 0.3)))
    for k, corner in enumerate(corners):
        for part in ("upper", "lower"):
            b.add_body(f"{part}{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.6, 0, 0), radius=0.01))
        b.add_joint(f"motor{k}", sarrus.Revolute("y"), "ground", f"upper{k}", at_parent=corner, actuated=True)
        b.add_joint(f"elbow{k}", sarrus.Revolute("y", damping=0.1), f"upper{k}", f"lower{k}", at_parent=(0.6, 0, 0))
        places = {"at_parent": (0.6, 0, 0), "at_child": 0.2 * corner}
        b.add_joint(f"pin{k}", sarrus.Revolute("y"), f"lower{k}", "platform", **places)
    robot = b.build()
    q = robot.neutral()
    for k in range(3):
        inward = 2 * math.pi * k / 3 + math.pi
        q[robot.joint(f"motor{k}").q_slice] = inward - 0.8
        q[robot.joint(f"elbow{k}").q_slice] = 1.6
    for name in robot.joints:
        if name.startswith("pin"):
            k = int(name[-1])
            q[robot.joint(name).q_slice] = -(2 * math.pi * k / 3 + math.pi + 0.8)
    return robot, robot.project_configuration(q)


def quadruped(armature=0.0, legs=4):
    """Return type 1: a trunk on legs, motors at hip and knee, feet on ball joints; the tree goes from the trunk to the feet."""
    b = sarrus.Builder("quadruped")
    b.add_body("trunk", sarrus.Inertia.box(10.0, (0.8, 0.4, 0.2)))
    b.add_joint("float", sarrus.Free(), "ground", "trunk")
    hips = {"damping": [0.3, 0.2], "friction": [0.1, 0.2], "stiffness": [3.0, 1.0], "armature": [armature, 0.0]}
    for k in range(legs):
        x, y = (0.4 if k % 2 else -0.4), (0.2 if k < 2 else -0.2)
        for part in ("thigh", "shank"):
            b.add_body(f"{part}{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, -0.5)))
        b.add_joint(
            f"hip{k}",
            sarrus.Universal("x", "y", **hips),
            "trunk",
            f"thigh{k}",
            at_parent=(x, y, 0),
            actuated=True,
            tree=True,
        )
        knee = sarrus.Revolute("y", armature=armature)
        b.add_joint(f"knee{k}", knee, f"thigh{k}", f"shank{k}", at_parent=(0, 0, -0.5), actuated=True, tree=True)
        b.add_joint(
            f"foot{k}", sarrus.Spherical(), "ground", f"shank{k}", at_parent=(x, y, 0), at_child=(0, 0, -0.5), loop=True
        )
    robot = b.build()
    q = robot.neutral()
    q[robot.joint("float").q_slice][6] = 1 * math.cos(0.5)
    for k in range(legs):
        q[robot.joint(f"hip{k}").q_slice] = [0.0, -0.5]
        q[robot.joint(f"knee{k}").q_slice] = 1.0
    return robot, robot.project_configuration(q)


@pytest.mark.parametrize(
    ("made", "member", "chains"),
    [
        (delta, "platform", {f"ball{k}": (f"motor{k}", f"elbow{k}") for k in range(3)}),
        (planar_3rrr, "platform", {f"pin{k}": (f"motor{k}", f"elbow{k}") for k in range(3)}),
        (quadruped, "trunk", {f"hip{k}": (f"foot{k}", f"knee{k}") for k in range(4)}),
        (lambda: quadruped(armature=0.2), "trunk", {f"hip{k}": (f"foot{k}", f"knee{k}") for k in range(4)}),
    ],
)
def test_parallel_robots_and_legs(made, member, chains):
    robot, q = made()
    assert np.abs(robot.constraint_residual(q)).max() < 1e-12
    v, tau = moving(robot, q)
    wrenches = {member: np.arange(6.0)}
    solution = sarrus.formulations.reference_member(robot, q, v, tau, wrenches=wrenches)
    assert solution.member == member
    assert solution.chains == chains
    agrees(solution.accelerations, robot.forward_dynamics(q, v, tau, wrenches=wrenches))
    assert np.abs(solution.accelerations).max() > 0.1


# ---- any chains, any joints ------------------------------------------------------------------------------------------------------------


def random_carried(seed, *, passive):
    """Return a body on two to four random chains with loop joints anywhere, and a state on the loops.

    The chains have joints of all types, in both directions; each chain is built from both ends, which fit at one joint.
    """
    rng = np.random.default_rng(seed)
    b = sarrus.Builder(gravity=rng.normal(size=3) * 6)
    b.add_body("member", random_inertia(rng))
    pose, coordinates = {"ground": np.eye(4), "member": random_transform(rng).matrix}, {}
    for k in range(rng.integers(2, 5)):
        bodies = [f"link{k}{i}" for i in range(rng.integers(0, 4))]
        for body in bodies:
            b.add_body(body, random_inertia(rng))
        way = ["ground", *bodies, "member"]
        fits = rng.integers(len(way) - 1)
        joints = []
        for i, ends in enumerate(pairwise(way)):
            joint = random_joint(str(rng.choice(ALL_JOINTS)), rng, **passive)
            x = _random_coordinates(joint, rng, "random")
            coordinates[f"joint{k}{i}"] = x
            R, p, _ = joint_motion(joint, x)
            ends = ends if rng.random() < 0.5 else ends[::-1]
            joints.append((joint, ends, random_transform(rng), random_transform(rng), sarrus.Transform(R, p)))
        for i in [*range(fits), *reversed(range(fits + 1, len(joints)))]:
            _, (parent, child), at_parent, at_child, X = joints[i]
            across = (at_parent @ X @ at_child.inverse()).matrix
            if parent in pose:
                pose[child] = pose[parent] @ across
            else:
                pose[parent] = pose[child] @ np.linalg.inv(across)
        joint, (parent, child), at_parent, _, X = joints[fits]
        fitting = np.linalg.inv(pose[child]) @ pose[parent] @ (at_parent @ X).matrix
        joints[fits] = (joint, (parent, child), at_parent, sarrus.Transform.from_matrix(fitting), X)
        for i, (joint, (parent, child), at_parent, at_child, _) in enumerate(joints):
            hint = {"loop" if k and i == fits else "tree": True}
            if "loop" in hint:  # where nothing acts along it
                joint = dataclasses.replace(joint, damping=0.0, friction=0.0, armature=0.0, stiffness=0.0, rest=0.0)
            b.add_joint(f"joint{k}{i}", joint, parent, child, at_parent=at_parent, at_child=at_child, **hint)
    try:
        robot = b.build()
    except sarrus.ModelError:  # parallel axes of a universal joint that closes a loop
        return None
    q = np.concatenate([np.zeros(0), *(coordinates[name] for name in robot.joints)])
    s = np.linalg.svd(robot.constraint_jacobian(q))[1]
    s = s[s > 1e-9 * s.max(initial=0)]
    if s.min(initial=1) < 0.03:  # almost dependent rows: the answer is as uncertain as they are
        return None
    return robot, q, *moving(robot, q, seed)


PASSIVE = ({}, {"friction": True, "springs": True}, {"armature": True, "friction": True})


@pytest.mark.parametrize("seed", range(60))
def test_random_chains(seed):
    drawn = random_carried(seed, passive=PASSIVE[seed % 3])
    if drawn is None:
        return
    robot, q, v, tau = drawn
    assert np.abs(robot.constraint_residual(q)).max(initial=0) < 1e-12
    solution = sarrus.formulations.reference_member(robot, q, v, tau, member="member")
    expected = Closed(robot.description, closing=robot.loop_joints).forward_dynamics(q, v, tau)
    agrees(solution.accelerations, expected, 1e-9)
    agrees(solution.member_acceleration, robot.acceleration(q, v, expected, "member"), 1e-9)
    newton(robot, q, v, solution)
    for name, f in solution.tip_forces.items():
        chain_equation(robot, solution, name, f)


def test_random_chains_are_many_kinds():
    """The draw includes moving mechanisms, loop joints at the tip and before it, and motors and armatures at the tip."""
    drawn = [d for d in (random_carried(seed, passive=PASSIVE[seed % 3]) for seed in range(60)) if d]
    assert len(drawn) > 50
    solutions = [(d[0], sarrus.formulations.reference_member(d[0], *d[1:], member="member")) for d in drawn]
    gives_way = [s.phi[name].shape[1] + s.phi_c[name].shape[1] > 6 for _, s in solutions for name in s.chains]
    assert sum(gives_way) > 20
    moves = [np.trace(s.motion_space) > 0.5 for _, s in solutions]
    assert np.mean(moves) > 0.5
    ends = [(name in robot.loop_joints, robot.joint(name).type.nv) for robot, s in solutions for name in s.chains]
    assert {(closes, nv > 0) for closes, nv in ends} == {(a, b) for a in (True, False) for b in (True, False)}
    inner = [set(way) & set(robot.loop_joints) for robot, s in solutions for way in s.chains.values()]
    assert sum(map(bool, inner)) > 20


def newton(robot, q, v, solution):
    """Check 6.5-6.7 for the member: the tips' forces and its weight accelerate it."""
    inertia = next(body.inertia for body in robot.description.bodies if body.name == solution.member)
    w = robot.velocity(q, v, solution.member)[:3]
    R = robot.pose(q, solution.member)[:3, :3]
    about, m, s = inertia.matrix[:3, :3], inertia.mass, inertia.com
    weight = m * R.T @ robot.gravity
    b_r = np.concatenate([np.cross(w, about @ w), m * np.cross(w, np.cross(w, s))])
    g_r = np.concatenate([np.cross(s, weight), weight])
    tips = sum((solution.X[name].T @ f for name, f in solution.tip_forces.items()), np.zeros(6))
    # a joint to the ground that blocks nothing is no chain, and its motor pushes too
    for name in robot.joints:
        joint = robot.joint(name)
        if {joint.parent, joint.child} == {"ground", solution.member} and joint.nv == 6:
            return
    agrees(tips + g_r - b_r, inertia.matrix @ solution.member_acceleration, 1e-8)


def chain_equation(robot, solution, name, f):
    """Check 6.1-6.3: the tip's force changes the open acceleration of the chain to one that follows the member."""
    s = solution
    assert_allclose(
        s.Omega[name], np.linalg.solve(s.H[name], s.J[name].T), rtol=0, atol=1e-8 * np.abs(s.Omega[name]).max(initial=1)
    )
    agrees(s.Lambda_inverse[name], s.J[name] @ s.Omega[name])
    phi, phi_c = s.phi[name], s.phi_c[name][:, : 6 - s.phi[name].shape[1]]
    agrees(np.hstack([phi, phi_c]).T @ np.hstack([phi, phi_c]), np.eye(6))
    agrees(s.M[name] @ s.M_inverse[name] @ s.M[name], s.M[name], 1e-9)
    # P - R a_r is all of it but for what the chain does not feel, and that is in directions that the end joint blocks
    rest, size = f - (s.P[name] - s.R[name] @ s.member_acceleration), np.abs(f).max(initial=1.0)
    assert np.abs(phi.T @ rest).max(initial=0) < 1e-8 * size
    assert np.abs(s.Omega[name] @ rest).max(initial=0) < 1e-8 * size * np.abs(s.Omega[name]).max(initial=1.0)
    if name in robot.loop_joints:  # nothing drives it
        assert np.abs(phi.T @ f).max(initial=0) < 1e-12 * max(1.0, np.abs(f).max())


def test_tip_follows_the_member():
    """If the chain's coordinates are the mechanism's, J qdd + bias in the blocked directions of the end joint is the member's."""
    robot = gallery.hslm()
    q = home(robot)
    v, tau = moving(robot, q)
    s = sarrus.formulations.reference_member(robot, q, v, tau)
    for name, joints in s.chains.items():
        columns = np.concatenate([np.arange(robot.nv)[robot.joint(j).v_slice] for j in joints])
        qdd = s.accelerations[columns]
        agrees(s.H[name] @ qdd + s.bias_forces[name] + s.J[name].T @ s.tip_forces[name], tau[columns], 1e-9)
        agrees(s.H[name] @ s.open_accelerations[name] + s.bias_forces[name], tau[columns], 1e-9)
        tip = s.open_tip_acceleration[name] + s.J[name] @ (qdd - s.open_accelerations[name])
        link = robot.description.joints[[j.name for j in robot.description.joints].index(name)]
        framed = dataclasses.replace(
            robot.description, frames=(sarrus.description.FrameSpec("tip", link.parent, link.at_parent),)
        )
        agrees(tip, sarrus.Mechanism(framed).acceleration(q, v, s.accelerations, "tip"), 1e-9)


# ---- singular --------------------------------------------------------------------------------------------------------------------------


def straightening(bend):
    """Return a five-bar whose left chain is bent by this angle; near zero its tip cannot follow the pin along the bars."""
    b = sarrus.Builder()
    for name in ("left1", "left2", "right1", "right2"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.02))
    b.add_joint("a", sarrus.Revolute("y"), "ground", "left1")
    b.add_joint("b", sarrus.Revolute("y"), "left1", "left2", at_parent=(1, 0, 0))
    b.add_joint("c", sarrus.Revolute("y"), "ground", "right1", at_parent=(1.2, 0, 0))
    b.add_joint("d", sarrus.Revolute("y"), "right1", "right2", at_parent=(1, 0, 0))
    b.add_joint("pin", sarrus.Revolute("y"), "left2", "right2", at_parent=(1, 0, 0), at_child=(1, 0, 0), loop=True)
    angle = -1.0  # positive angles about y go down
    tip = np.exp(-1j * angle) + np.exp(-1j * (angle + bend))
    across = tip - 1.2
    knee = math.acos(abs(across) / 2)
    return b.build(), np.array([angle, bend, knee - np.angle(across), -2 * knee])


@pytest.mark.parametrize("bend", [1e-1, 1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 0.0])
@pytest.mark.parametrize("member", ["left1", "left2", "right1", "right2"])
def test_chain_that_is_nearly_straight(bend, member):
    robot, q = straightening(bend)
    assert np.abs(robot.constraint_residual(q)).max() < 1e-14
    v, tau = moving(robot, q)
    solution = sarrus.formulations.reference_member(robot, q, v, tau, member=member)
    agrees(solution.accelerations, Closed(robot.description).forward_dynamics(q, v, tau), 1e-9)


def flat(angle):
    """Return a parallelogram four-bar; at angle zero all bars are in line and a second motion exists."""
    b = sarrus.Builder(gravity=(0, 0, -9.81))
    for name, length in (("left", 1.0), ("top", 0.8), ("right", 1.0)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    b.add_joint("a", sarrus.Revolute("y"), "ground", "left")
    b.add_joint("b", sarrus.Revolute("y"), "left", "top", at_parent=(1, 0, 0))
    b.add_joint("c", sarrus.Revolute("y"), "ground", "right", at_parent=(0.8, 0, 0))
    b.add_joint("d", sarrus.Revolute("y"), "top", "right", at_parent=(0.8, 0, 0), at_child=(1, 0, 0), loop=True)
    return b.build(), np.array([angle, -angle, angle])


@pytest.mark.parametrize("angle", [1.0, 1e-2, 1e-4, 1e-6])
def test_nearly_flat(angle):
    """Nearly dependent rows amplify rounding by the inverse distance."""
    robot, q = flat(angle)
    v, tau = moving(robot, q)
    for member in robot.bodies:
        solution = sarrus.formulations.reference_member(robot, q, v, tau, member=member)
        agrees(solution.accelerations, robot.forward_dynamics(q, v, tau), 1e-14 / angle + 1e-14)
        assert round(np.trace(solution.motion_space)) == 1


def test_flat():
    """Of the possible motions the one that the forces cause; for some velocities there is none."""
    robot, q = flat(0.0)
    tau = np.array([1.0, -2.0, 0.5])
    solution = sarrus.formulations.reference_member(robot, q, np.zeros(3), tau, member="top")
    agrees(solution.accelerations, robot.forward_dynamics(q, np.zeros(3), tau))
    assert round(np.trace(solution.motion_space)) == 2
    v = np.array([1.0, 0.5, -0.2])
    v = robot.project_velocity(q, v)
    with pytest.raises(sarrus.StateError, match="contradict one another, most at 'd'"):
        sarrus.formulations.reference_member(robot, q, v, tau)
    solution = sarrus.formulations.reference_member(robot, q, v, tau, return_status=True)
    assert solution.status == 3
    assert np.isnan(solution.accelerations).all()
    assert np.isnan(solution.P["b"]).all()


# ---- prescribed motion -----------------------------------------------------------------------------------------------------------------


def prescribed():
    """Return two bars whose end has a prescribed motion."""
    b = sarrus.Builder()
    for k in (1, 2):
        b.add_body(f"link{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("a", sarrus.Revolute("y"), "ground", "link1")
    b.add_joint("b", sarrus.Revolute("y"), "link1", "link2", at_parent=(1, 0, 0))
    law = sarrus.laws.harmonic(0.1, 3.0, 0.4)
    place = {"at_parent": (1, 0, 1), "at_child": (1, 0, 0)}
    b.add_prescribed_frame("tool", "link2", {"tx": law, "tz": 0.0}, joint=sarrus.Revolute("y"), **place)
    return b.build()


def test_prescribed_frame():
    """alpha_c of 6.9: a tip whose frame on the ground moves."""
    robot, time = prescribed(), 0.7
    q = robot.project_configuration([0.0, -np.pi / 2], time=time)
    assert np.abs(robot.constraint_residual(q, time=time)).max() < 1e-12
    v = robot.project_velocity(q, np.zeros(2), time=time)
    tau = np.array([1.0, 2.0])
    for member in robot.bodies:
        solution = sarrus.formulations.reference_member(robot, q, v, tau, member=member, time=time)
        a, reactions = robot.forward_dynamics(q, v, tau, time=time, return_reactions=True)
        agrees(solution.accelerations, a)
        agrees(solution.multipliers, reactions.multipliers, 1e-8)
        assert np.trace(solution.motion_space) < 1e-9 or member == "link1"
    assert (
        np.abs(
            solution.accelerations - sarrus.formulations.reference_member(robot, q, v, tau, time=0.2).accelerations
        ).max()
        > 0.01
    )


# ---- many states -----------------------------------------------------------------------------------------------------------------------


def everything(solution):
    for field in dataclasses.fields(solution):
        value = getattr(solution, field.name)
        if isinstance(value, dict):
            yield from ((f"{field.name}[{name}]", x) for name, x in value.items() if isinstance(x, np.ndarray))
        elif isinstance(value, np.ndarray):
            yield field.name, value


@pytest.mark.parametrize(
    "made", [delta, quadruped, lambda: (lambda r: (r, home(r)))(gallery.two_links()), lambda: flat(0.0)]
)
def test_batch_is_the_single_states(made):
    robot, q = made()
    rng = np.random.default_rng(1)
    # flat and not flat, side by side: the rank differs from state to state
    states = np.array([q, robot.project_configuration(robot.integrate(q, 0.05 * rng.normal(size=robot.nv))), q])
    v = np.array([robot.project_velocity(x, rng.normal(size=robot.nv)) for x in states])
    v[[0, 2]] = 0.0
    tau = rng.normal(size=(2, 1, robot.nv))
    many = sarrus.formulations.reference_member(robot, states, v, tau)
    assert many.status.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            one = sarrus.formulations.reference_member(robot, states[j], v[j], tau[i, 0])
            for (name, x), (_, y) in zip(everything(many), everything(one), strict=True):
                assert x.shape == (2, 3, *y.shape), name
                assert_allclose(x[i, j], y, rtol=0, atol=1e-9 * np.abs(y).max(initial=1), err_msg=name)


def test_a_bad_state_spoils_no_other():
    robot, q = delta()
    v, tau = np.zeros(robot.nv), np.ones(robot.nv)
    good = sarrus.formulations.reference_member(robot, q, v, tau)
    qs, vs, taus = (np.tile(x, (4, 1)) for x in (q, v, tau))
    qs[0, 0], vs[1, 2], taus[3, 1] = np.nan, np.inf, np.nan
    many = sarrus.formulations.reference_member(robot, qs, vs, taus)
    assert many.status.tolist() == [1, 1, 0, 1]
    for (name, x), (_, y) in zip(everything(many), everything(good), strict=True):
        if name != "status":
            assert np.isnan(x[[0, 1, 3]]).all(), name
            assert_allclose(x[2], y, rtol=0, atol=1e-12 * np.abs(y).max(initial=1), err_msg=name)


def test_time_and_wrenches_broadcast():
    robot, q = delta()
    v, tau = moving(robot, q)
    pushes = np.random.default_rng(3).normal(size=(5, 6))
    many = sarrus.formulations.reference_member(robot, q, v, tau, wrenches={"platform": pushes})
    for k, push in enumerate(pushes):
        agrees(many.accelerations[k], robot.forward_dynamics(q, v, tau, wrenches={"platform": push}))


def test_numbers_that_overflow():
    robot, q = delta()
    rest = np.zeros(robot.nv)
    far, states = np.full(robot.nv, 1e300), np.array([q, q])
    elsewhere = states.copy()
    elsewhere[1, robot.joint("motor0").q_slice] = 1e300  # an angle: it is sound, whatever it means
    for q_, v, tau in ((q, far, rest), (q, rest, far)):
        with pytest.raises(sarrus.StateError, match="overflow"):
            sarrus.formulations.reference_member(robot, q_, v, tau)
        many = sarrus.formulations.reference_member(robot, states, np.array([rest, v]), np.array([rest, tau]))
        assert many.status.tolist() == [0, 2]
        assert np.isfinite(many.accelerations[0]).all()
        assert np.isnan(many.accelerations[1]).all()
    assert sarrus.formulations.reference_member(robot, elsewhere, rest, rest).status.shape == (2,)


# ---- as a solver -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", [(), (3,)])
def test_as_the_solver_of_forward_dynamics(lead):
    robot, q = delta()
    v, _ = moving(robot, q)
    tau, push = np.random.default_rng(2).normal(size=(*lead, robot.nv)), {"platform": np.arange(6.0)}
    usual, carried = robot.forward_dynamics(q, v, tau, wrenches=push, return_reactions=True)
    out = np.empty((*lead, robot.nv))
    a, reactions, status = robot.forward_dynamics(
        q,
        v,
        tau,
        solver="reference-member",
        wrenches=push,
        return_reactions=True,
        return_status=True,
        out=out,
        threads=2,
    )
    assert a is out
    assert (status == np.zeros(lead)).all()
    agrees(a, usual)
    agrees(reactions.multipliers, carried.multipliers, 1e-8)
    assert reactions.wrenches.keys() == carried.wrenches.keys()
    for name, wrench in reactions.wrenches.items():
        agrees(wrench, carried.wrenches[name], 1e-8)
    assert reactions.residual.shape == lead
    assert (reactions.residual < 1e-13).all()
    assert (robot.forward_dynamics(q, v, tau, solver="reference-member", wrenches=push) == a).all()
    with pytest.raises(sarrus.ShapeError, match="out has shape"):
        robot.forward_dynamics(q, v, tau, solver="reference-member", out=np.empty(2))
    for bad in (np.nan, 1e300):
        a, reactions, status = robot.forward_dynamics(
            q, v, tau + bad, solver="reference-member", return_reactions=True, return_status=True
        )
        assert (status > 0).all()
        for nothing in (a, reactions.multipliers, reactions.residual, *reactions.wrenches.values()):
            assert np.isnan(nothing).all()


def test_residual_tells_a_wrong_answer():
    """The core's residual, for accelerations and multipliers with small errors."""
    robot, q = planar_3rrr()
    v, tau = moving(robot, q)
    solution = sarrus.formulations.reference_member(robot, q, v, tau)
    for part in ("accelerations", "multipliers"):
        worse = dataclasses.replace(solution, **{part: getattr(solution, part) * (1 + 1e-6)})
        assert 1e-8 < _residual(robot, q, v, tau, worse, wrenches=None, time=None) < 1e-4


def test_as_the_solver_of_a_tree_and_of_a_motion():
    robot = gallery.stanford_arm()
    q, v, tau = np.random.default_rng(4).normal(size=(3, robot.nv))
    a, reactions = robot.forward_dynamics(q, v, tau, solver="reference-member", return_reactions=True)
    agrees(a, robot.forward_dynamics(q, v, tau))
    assert reactions.wrenches == {}
    robot, time = prescribed(), 0.7
    q = robot.project_configuration([0.0, -np.pi / 2], time=time)
    v = robot.project_velocity(q, np.zeros(2), time=time)
    given, here = ({"solver": "reference-member", "time": t} for t in (time, 0.2))
    agrees(robot.forward_dynamics(q, v, np.ones(2), **given), robot.forward_dynamics(q, v, np.ones(2), time=time))
    assert (
        np.abs(
            robot.forward_dynamics(q, v, np.ones(2), **here) - robot.forward_dynamics(q, v, np.ones(2), **given)
        ).max()
        > 0.01
    )


# ---- what it does not take ---------------------------------------------------------------------------------------------------------------


def test_refused_mechanisms():
    refuse = sarrus.ModelError
    delta_with_loops = gallery.delta()
    rest = np.zeros(delta_with_loops.nv)
    with pytest.raises(
        refuse, match=r"serial chains.*'platform'.*joint 'ball1a' branches at body 'arm1': choose another"
    ):
        sarrus.formulations.reference_member(delta_with_loops, home(delta_with_loops), rest, rest)
    pendulum = gallery.double_pendulum()
    with pytest.raises(refuse, match="joint 'elbow' does not reach the ground but ends with body 'lower'"):
        sarrus.formulations.reference_member(pendulum, np.zeros(2), np.zeros(2), np.zeros(2), member="upper")
    with pytest.raises(sarrus.errors.NameNotFoundError, match="no body is named 'uper'; did you mean 'upper'"):
        sarrus.formulations.reference_member(pendulum, np.zeros(2), np.zeros(2), np.zeros(2), member="uper")

    def built(*more):
        b = sarrus.Builder()
        for name in ("a", "b", "c"):
            b.add_body(name, sarrus.Inertia.box(1.0, (1, 1, 1)))
        b.add_joint("base", sarrus.Revolute("z"), "ground", "a")
        for add in more:
            add(b)
        return b.build()

    ring = built(
        lambda b: b.add_joint("there", sarrus.Revolute("z"), "a", "b"),
        lambda b: b.add_joint("across", sarrus.Revolute("z"), "b", "c"),
        lambda b: b.add_joint("back", sarrus.Revolute("z"), "c", "a"),
    )
    with pytest.raises(refuse, match="joint 'there' returns to it"):
        sarrus.formulations.reference_member(ring, np.zeros(ring.nq), np.zeros(ring.nv), np.zeros(ring.nv), member="a")
    two = built(
        lambda b: b.add_joint("there", sarrus.Revolute("z"), "a", "b"),
        lambda b: b.add_joint("other", sarrus.Revolute("z"), "ground", "c"),
    )
    with pytest.raises(refuse, match="body 'c' is on no chain"):
        sarrus.formulations.reference_member(two, np.zeros(3), np.zeros(3), np.zeros(3), member="b")
    rod = built(
        lambda b: b.add_joint("there", sarrus.Revolute("z"), "a", "b"),
        lambda b: b.add_joint("on", sarrus.Revolute("z"), "b", "c"),
        lambda b: b.add_distance("rod", ("ground", (2, 0, 0)), ("c", (0, 0, 0)), length=2.0),
    )
    with pytest.raises(refuse, match=r"constraint 'rod' is not a joint: use forward_dynamics\(\), which accepts all"):
        sarrus.formulations.reference_member(rod, np.zeros(3), np.zeros(3), np.zeros(3))


def test_massless_chain():
    """A chain is solved separately first, and must have inertia then."""
    b = sarrus.Builder()
    b.add_body("arm")
    b.add_body("load", sarrus.Inertia.box(1.0, (1, 1, 1)))
    b.add_joint("base", sarrus.Revolute("y"), "ground", "arm")
    b.add_joint("grip", sarrus.Fixed(), "arm", "load", at_parent=(1, 0, 0))
    robot = b.build()
    with pytest.raises(sarrus.StateError, match="chain that ends with joint 'grip' has motions without inertia"):
        sarrus.formulations.reference_member(robot, [0.0], [0.0], [0.0], member="load")
    assert (
        sarrus.formulations.reference_member(robot, [0.0], [0.0], [0.0], member="load", return_status=True).status == 2
    )


def test_massless_member():
    b = sarrus.Builder()
    b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    b.add_body("wheel")
    b.add_joint("base", sarrus.Revolute("y"), "ground", "arm")
    b.add_joint("axle", sarrus.Revolute("y"), "arm", "wheel", at_parent=(1, 0, 0))
    robot = b.build()
    with pytest.raises(sarrus.StateError, match="let body 'wheel' move in a direction without inertia"):
        sarrus.formulations.reference_member(robot, np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(("locks", "reason"), [("grip", "axes of joint 'grip'"), ("base", "ends with joint 'grip'")])
def test_parallel_axes(locks, reason):
    """A gimbal with parallel axes has no accelerations for some forces; beside this position it has."""
    joints = {"base": sarrus.Spherical(), "grip": sarrus.Spherical()} | {locks: sarrus.Gimbal("rx ry rz")}
    b = sarrus.Builder()
    for name in ("arm", "load"):
        b.add_body(name, sarrus.Inertia.box(1.0, (0.3, 0.2, 0.1)))
    b.add_joint("base", joints["base"], "ground", "arm")
    b.add_joint("grip", joints["grip"], "arm", "load", at_parent=(1, 0, 0))
    robot = b.build()
    q = np.tile(robot.neutral(), (3, 1))
    q[:, robot.joint(locks).q_slice.start + 1] = [np.pi / 2, np.pi / 2 - 1e-2, 0.3]
    v, tau = np.random.default_rng(1).normal(size=(2, robot.nv))
    with pytest.raises(sarrus.StateError, match=reason):
        sarrus.formulations.reference_member(robot, q[0], v, tau, member="load")
    solution = sarrus.formulations.reference_member(robot, q, v, tau, member="load")
    expected, status = robot.forward_dynamics(q, v, tau, return_status=True)
    assert solution.status.tolist() == status.tolist() == [2, 0, 0]
    for k in (1, 2):  # what rounding of the masses makes of the accelerations
        agrees(
            solution.accelerations[k], expected[k], 8 * np.finfo(float).eps * np.linalg.cond(robot.mass_matrix(q[k]))
        )


def test_bad_arguments():
    robot, q = delta()
    v = np.zeros(robot.nv)
    with pytest.raises(sarrus.ShapeError, match=r"tau has shape \(11,\); .* 12 entries"):
        sarrus.formulations.reference_member(robot, q, v, v[:-1])
    with pytest.raises(sarrus.ShapeError):
        sarrus.formulations.reference_member(robot, q[:-1], v, v)
    with pytest.raises(sarrus.ShapeError, match=r"leading axes do not broadcast: q, v and wrenches \(2,\), tau \(3,\)"):
        sarrus.formulations.reference_member(robot, np.tile(q, (2, 1)), v, np.zeros((3, robot.nv)))
    for bad in (np.nan, np.inf):
        with pytest.raises(sarrus.StateError):
            sarrus.formulations.reference_member(robot, q, v + bad, v)
        with pytest.raises(sarrus.StateError):
            sarrus.formulations.reference_member(robot, q, v, v + bad)
    assert sarrus.formulations.reference_member(robot, q, v, v + np.nan, return_status=True).status == 1


def test_pickles_with_its_cuts():
    """Cached parts of the decomposition are not pickled."""
    robot, q = delta()
    v, tau = moving(robot, q)
    before = sarrus.formulations.reference_member(robot, q, v, tau).accelerations
    again = pickle.loads(pickle.dumps(robot))
    assert again == robot
    assert (sarrus.formulations.reference_member(again, q, v, tau).accelerations == before).all()
