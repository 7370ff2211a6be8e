"""Mechanisms from tables of the literature have the printed results. tests/data/*.json has the values, their sources and their accuracy."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

DATA = Path(__file__).parents[1] / "data"


def case(name):
    return json.loads((DATA / f"{name}.json").read_text())


def agree(got, expected, tolerance):
    """Check agreement to `tolerance` times the largest entry, because a zero may be as inaccurate as its neighbours."""
    assert_allclose(got, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))


# --- six-degree-of-freedom parameters -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stanford():
    c = case("thesis_4_5_stanford")
    return sarrus.from_sdof(c["parameters"], c["free"], c["mass"], c["com"], c["inertia"], gravity=c["gravity"])


def test_stanford_worked_example(stanford):
    c = case("thesis_4_5_stanford")
    q, v, a, expected, tolerance = c["q"], c["v"], c["a"], c["expected"], c["tolerance"]
    agree(stanford.inverse_dynamics(q, v, a), expected["tau"], tolerance)  # 4.62
    agree(stanford.gravity_forces(q), expected["gravity_forces"], tolerance)
    agree(stanford.mass_matrix(q), expected["mass_matrix"], tolerance)


def test_stanford_link_motion(stanford):
    """4.50-4.53: velocity and acceleration of the link frames, which are the bodies' frames."""
    c = case("thesis_4_5_stanford")
    upward = [0, 0, 0, 0, 9.81, 0]  # the thesis' base accelerates; all frames happen to be parallel
    for i in "1234":
        frame = f"link{i}"
        agree(stanford.velocity(c["q"], c["v"], frame), c["expected"]["velocity"][i], c["tolerance"])
        a = stanford.acceleration(c["q"], c["v"], c["a"], frame)
        agree(a + upward, c["expected"]["acceleration"][i], c["tolerance"])


def test_stanford_resultant_forces(stanford):
    """4.54-4.57 as printed: the force for each link's motion, at its frame (4.29), which is not a joint wrench."""
    c = case("thesis_4_5_stanford")
    printed = [
        [1.4679, 0, 0, 0, 19.62, 0.315],
        [0, 0.5175, 5.886, -1.35, 19.62, -1.725],
        [0.003, 0.0828, 0.94176, -1.752, 7.848, -0.69],
        [0.0015, 0.0245625, 0.24075, -1.30625, 4.905, -0.43125],
    ]
    for body, expected in zip(stanford.description.bodies, printed, strict=True):
        V = stanford.velocity(c["q"], c["v"], body.name)
        A = stanford.acceleration(c["q"], c["v"], c["a"], body.name) + np.eye(6)[4] * 9.81
        spatial = A - np.r_[np.zeros(3), np.cross(V[:3], V[3:])]
        inertia = body.inertia.matrix
        agree(inertia @ spatial + sarrus.spatial.cross_force(V, inertia @ V), expected, c["tolerance"])


def test_stanford_joint_reactions(stanford):
    """4.58-4.61: the force through each joint, in the thesis at the link frame, in sarrus at the joint's frame, which is the far end."""
    c = case("thesis_4_5_stanford")
    reactions = sarrus.formulations.reactions(stanford, c["q"], c["v"], c["a"])
    for i, gamma in enumerate(c["parameters"], start=1):
        moment, force = reactions[f"joint{i}"].reshape(2, 3)
        at_near_end = [*(moment + np.cross(gamma[3:], force)), *force]
        agree(at_near_end, c["expected"]["reaction"][str(i)], c["tolerance"])


def test_stanford_inertias(stanford):
    """4.37-4.42: inertias about the link frames."""
    for body, expected in zip(
        stanford.description.bodies,
        case("thesis_4_5_stanford")["expected"]["inertia_about_frame"],
        strict=True,
    ):
        agree(body.inertia.about_origin, expected, 1e-12)


def test_stanford_tabulated_configuration(stanford):
    """q contains absolute values: at q = gamma[free] frame i is at the pose of Table 4.1, and slides with its link."""
    frames = [stanford.pose(np.array([0, 0, 0.8, 0, 0]), f)[:3, 3] for f in ("link1", "link2", "link3", "link4", "tip")]
    agree(frames, [[0, 0, 0], [0, 0.5, -0.15], [0.8, 0.5, -0.15], [1.0, 0.5, -0.15], [1.05, 0.5, -0.15]], 1e-12)
    pulled_in = [stanford.pose(np.array([0, 0, 0.6, 0, 0]), f)[:3, 3] for f in ("link2", "link3")]
    agree(pulled_in, [[-0.2, 0.5, -0.15], [0.6, 0.5, -0.15]], 1e-12)


def test_stanford_closes_the_valve(stanford):
    c = case("thesis_4_6_valve")
    for row in c["rows"]:
        on_gripper = {"tip": [-row["tip_moment"], 0, 0, 0, 0, 0]}
        tau = stanford.inverse_dynamics(row["q"], row["v"], row["a"], wrenches=on_gripper)
        agree(tau, row["tau"], c["tolerance"])


def test_sdof_row_without_freedom_is_rigid():
    """A row without degrees of freedom is one more displacement: dividing a link by it changes nothing."""
    gamma = [[0.1, 0.2, 0.3, 0.4, 0, 0.1], [0.3, -0.2, 0.5, 0.1, 0.2, 0.3], [0.4, 0.5, 0.6, 0.2, 0, 0]]
    arm = sarrus.from_sdof(gamma, ["rz", [], "ry rx"], [1, 0, 2], np.zeros((3, 3)), np.ones((3, 3)) * [[1], [0], [1]])
    assert arm.nq == 3
    q = np.array([0.3, 0.4, 0.5])
    rotation = np.eye(3)
    for x, y, z in [(0.1, 0.2, 0.3), (0.3, -0.2, 0.5), (0.4, 0.5, 0.6)]:
        rotation = rotation @ rotate("x", x) @ rotate("y", y) @ rotate("z", z)
    agree(arm.pose(q, "tip")[:3, :3], rotation, 1e-12)


# --- Denavit and Hartenberg ---------------------------------------------------------------------------------------


def planar_2r(l1, l2, c1, c2, m1, m2, I1, I2, gravity, convention="standard"):
    if convention == "standard":  # frames at the far ends of the links
        rows, com = [[l1, 0, 0, 0], [l2, 0, 0, 0]], [[c1 - l1, 0, 0], [c2 - l2, 0, 0]]
    else:
        rows, com = [[0, 0, 0, 0], [l1, 0, 0, 0]], [[c1, 0, 0], [c2, 0, 0]]
    inertia = [[0, I1, I1], [0, I2, I2]]
    return sarrus.from_dh(rows, convention=convention, mass=[m1, m2], com=com, inertia=inertia, gravity=gravity)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_open_chain_of_the_cog_jacobian_paper(convention):
    c = case("paper003_A_openchain")
    l, m, I = (c["definition"][name] for name in ("l", "m", "I"))
    for gravity, expected in (((0, 0, 0), "tau_no_gravity"), ((0, -9.81, 0), "tau_gravity")):
        arm = planar_2r(l, l, l / 2, l / 2, m, m, I, I, gravity, convention)
        q, v, a, tau = (np.array([row[k] for row in c["rows"]]) for k in ("q", "v", "a", expected))
        for row in range(len(q)):
            agree(arm.inverse_dynamics(q[row], v[row], a[row]), tau[row], c["tolerance"])


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_slides_planar_2r(convention):
    c = case("mls004_2R_3R")
    p, expected = c["planar2R"]["params"], c["planar2R"]
    arm = planar_2r(p["l1"], p["l1"], p["r1"], p["r2"], p["m1"], p["m2"], p["I1"], p["I2"], (0, 0, 0), convention)
    q, v = np.array([p["t1"], p["t2"]]), np.array([p["d1"], p["d2"]])
    agree(arm.mass_matrix(q), expected["M"], c["tolerance"])
    agree(arm.bias_forces(q, v), expected["C"] @ v, c["tolerance"])


PUMA = np.array(  # a, alpha, d, theta of a Puma 560, Craig's assignment with made-up offsets in theta
    [
        [0, 0, 0, 0.1],
        [0, -np.pi / 2, 0, -0.2],
        [0.4318, 0, 0.1501, 0.3],
        [0.0203, -np.pi / 2, 0.4318, 0.4],
        [0, np.pi / 2, 0, -0.5],
        [0, -np.pi / 2, 0, 0.6],
    ]
)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_dh_frames_are_products_of_their_rows(convention):
    """2.18, 2.19 for the modified convention; Paul's product for the standard one."""
    types, q = "RRPRPR", np.array([0.3, -0.4, 0.5, 0.6, 0.7, -0.8])
    arm = sarrus.from_dh(PUMA, convention=convention, joint_types=types, offsets=[0, 0, 0, 0.01, 0.02, 0])
    pose = np.eye(4)
    for i, (a, alpha, d, theta) in enumerate(PUMA):
        moved = q[i] + (0, 0, 0, 0.01, 0.02, 0)[i]
        theta, d = (theta + moved, d) if types[i] == "R" else (theta, d + moved)
        about_x, about_z = (
            homogeneous(rotate("x", alpha), (a, 0, 0)),
            homogeneous(rotate("z", theta), (0, 0, d)),
        )
        pose = pose @ (about_z @ about_x if convention == "standard" else about_x @ about_z)
        agree(arm.pose(q, f"link{i + 1}"), pose, 1e-12)
    agree(arm.pose(q, "tip"), pose, 1e-12)


def test_modified_dh_is_eq_2_18():
    a, alpha, d, theta = 0.3, 0.4, 0.5, 0.6
    (c, s), (ca, sa) = (np.cos(theta), np.sin(theta)), (np.cos(alpha), np.sin(alpha))
    A = np.array([[c, s * ca, s * sa], [-s, c * ca, c * sa], [0, -sa, ca]])  # from frame i to frame i+1
    b = [a, -d * sa, d * ca]
    link = sarrus.from_dh([[a, alpha, d, 0]], convention="modified")
    agree(link.pose([theta], "link1")[:3], np.column_stack([A.T, b]), 1e-12)


# --- products of exponentials -------------------------------------------------------------------------------------


def test_slides_elbow_manipulator():
    """Slides 4.3: the 3R elbow, with link frames at the centres of mass; C q' from the bias forces, without gravity."""
    c = case("mls004_2R_3R")
    e, p = c["elbow"], c["elbow"]["params"]
    l0, l1, r0, r1, r2 = (p[k] for k in ("l0", "l1", "r0", "r1", "r2"))
    turn = [(0, 0, 1), (-1, 0, 0), (-1, 0, 0)]
    through = [(0, 0, 0), (0, 0, l0), (0, l1, l0)]
    elbow = {
        "twists": [[*w, *-np.cross(w, x)] for w, x in zip(turn, through, strict=True)],
        "home": [(0, 0, r0), (0, r1, l0), (0, l1 + r2, l0)],
        "mass": [p["m1"], p["m2"], p["m3"]],
        "inertia": [[p[f"I{x}{i}"] for x in "xyz"] for i in (1, 2, 3)],
    }
    heavy, light = sarrus.from_screws(**elbow), sarrus.from_screws(**elbow, gravity=(0, 0, 0))
    q, v = np.array([p["t1"], p["t2"], p["t3"]]), np.array(e["qd"])
    agree(heavy.mass_matrix(q), e["M"], c["tolerance"])
    agree(heavy.gravity_forces(q), e["N_gravity"], c["tolerance"])
    agree(light.bias_forces(q, v), e["C"] @ v, c["tolerance"])
    agree(sarrus.formulations.christoffel_symbols(heavy, q) @ v, e["C"], c["tolerance"])
    # all 27 symbols, as the slides list them; those that are not here are zero
    (s2, s3, s23), (c2, c23) = np.sin([q[1], q[2], q[1] + q[2]]), np.cos([q[1], q[1] + q[2]])
    reach, drop = l1 * c2 + r2 * c23, l1 * s2 + r2 * s23
    wrist = (p["Iy3"] - p["Iz3"]) * c23 * s23 - p["m3"] * r2 * s23 * reach
    arm = (p["Iy2"] - p["Iz2"] - p["m2"] * r1**2) * c2 * s2 + (p["Iy3"] - p["Iz3"]) * c23 * s23 - p["m3"] * reach * drop
    elbow_only = -l1 * p["m3"] * r2 * s3
    Gamma = np.zeros((3, 3, 3))
    Gamma[0, 0, 1] = Gamma[0, 1, 0] = arm
    Gamma[0, 0, 2] = Gamma[0, 2, 0] = wrist
    Gamma[1, 0, 0], Gamma[2, 0, 0] = -arm, -wrist
    Gamma[1, 1, 2] = Gamma[1, 2, 1] = Gamma[1, 2, 2] = elbow_only
    Gamma[2, 1, 1] = -elbow_only
    agree(sarrus.formulations.christoffel_symbols(heavy, q), Gamma, c["tolerance"])
    agree(sarrus.formulations.poe_factors(heavy, q, v).mass_matrix, e["M"], c["tolerance"])
    linear_first = [3, 4, 5, 0, 1, 2]
    for frame, expected in (("link2", e["J2_body"]), ("link3", e["J3_body"])):
        agree(heavy.jacobian(q, frame)[linear_first], expected, c["tolerance"])


def test_screws_are_products_of_exponentials():
    """Every kind of joint, rotated link frames, and a frame at the end."""
    twists = np.array(
        [
            [0, 0, 1, 0.2, -0.1, 0],
            [0.6, 0, 0.8, *(-np.cross((0.6, 0, 0.8), (0.1, 0.2, 0.3)) + 0.05 * np.array((0.6, 0, 0.8)))],
            [0, 0, 0, 0, 0.6, -0.8],
        ]
    )
    home = [homogeneous(rotate("x", 0.3 * i) @ rotate("z", 0.5), (i, 0.1, 0.2)) for i in (1, 2, 3)]
    tip = homogeneous(rotate("y", 0.7), (4, 0, 0))
    q = np.array([0.4, -0.7, 0.3])
    chain = sarrus.from_screws(twists, home, tip=tip)
    kinds = [type(spec.joint) for spec in chain.description.joints]
    assert kinds == [sarrus.Revolute, sarrus.Helical, sarrus.Prismatic]
    motion = np.eye(4)
    for i, (twist, x) in enumerate(zip(twists, q, strict=True)):
        motion = motion @ exponential(twist * x)
        agree(chain.pose(q, f"link{i + 1}"), motion @ home[i], 1e-12)
    agree(chain.pose(q, "tip"), motion @ tip, 1e-12)


def test_screws_and_dh_describe_one_arm():
    """Both tables with the same masses have the same mass matrix, bias and gravity forces."""
    rng = np.random.default_rng(4)
    mass, com = rng.uniform(1, 2, 6), rng.normal(size=(6, 3))
    inertia = [np.diag([2, 3, 4]) + 0.1 * (A + A.T) for A in rng.normal(size=(6, 3, 3))]
    dh = sarrus.from_dh(PUMA, convention="modified", mass=mass, com=com, inertia=inertia)
    home = [dh.pose(np.zeros(6), f"link{i + 1}") for i in range(6)]
    twists = [[*T[:3, 2], *np.cross(T[:3, 3], T[:3, 2])] for T in home]  # joint i turns about the z axis of frame i
    screws = sarrus.from_screws(twists, home, mass=mass, com=com, inertia=inertia)
    q, v, a = rng.normal(size=(3, 6))
    agree(screws.mass_matrix(q), dh.mass_matrix(q), 1e-12)
    agree(screws.inverse_dynamics(q, v, a), dh.inverse_dynamics(q, v, a), 1e-12)


# --- SpaceDyn -----------------------------------------------------------------------------------------------------


def rpy(R):
    """Return the angles of R = Rot(x) Rot(y) Rot(z), SpaceDyn's roll, pitch and yaw."""
    return np.arctan2(-R[1, 2], R[2, 2]), np.arcsin(R[0, 2]), np.arctan2(-R[0, 1], R[0, 0])


def satellite(**changes):
    """Return the case's satellite in SpaceDyn's variables.

    Its joints rotate about z: frame i is rotated by A[i] from the case's link frame, which is parallel to the base at q = 0.
    """
    d = case("spacedyn002_freefloating")["definition"]
    onto = {(0, 0, 1): np.eye(3), (0, 1, 0): rotate("x", -np.pi / 2), (1, 0, 0): rotate("y", np.pi / 2)}
    A = [onto[tuple(axis)] for axis in d["axes"]]
    n = len(A)
    com, offset = [np.array(b["com"]) for b in d["bodies"]], np.array(d["offsets"])
    cc, c0, ce = np.zeros((3, n, n)), np.zeros((3, n)), np.zeros((3, n))
    c0[:, 0] = offset[0]
    for i in range(n):
        cc[:, i, i] = -A[i].T @ com[i]
        if i + 1 < n:
            cc[:, i, i + 1] = A[i].T @ (offset[i + 1] - com[i])
    ce[:, -1] = A[-1].T @ (d["end_effector_in_link6"] - com[-1])
    variables = {
        "BB": range(n),
        "cc": cc,
        "c0": c0,
        "Qi": np.transpose([rpy(before.T @ R) for before, R in zip([np.eye(3), *A], A, strict=False)]),
        "J_type": "R" * n,
        "m0": d["m0"],
        "m": [b["m"] for b in d["bodies"]],
        "inertia0": d["I0"],
        "inertia": np.hstack([R.T @ np.diag(b["I_com_diag"]) @ R for R, b in zip(A, d["bodies"], strict=True)]),
        "ce": ce,
    }
    return sarrus.from_spacedyn(**variables | changes)


@pytest.fixture(scope="module")
def free_floating():
    """Return the case with the robot, q and v of sarrus, and the map from SpaceDyn's base twist to sarrus' v."""
    c = case("spacedyn002_freefloating")
    s = c["state"]
    R = np.array(s["base_R"])
    w = 0.5 * np.sqrt(1 + np.trace(R))
    quaternion = [*np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w), w]
    to_body = np.block([[np.zeros((3, 3)), R.T], [R.T, np.zeros((3, 3))]])  # [linear; angular] inertial -> ours
    q = np.array([*quaternion, *s["base_pos"], *s["q"]])
    v = np.array([*to_body @ s["base_twist"], *s["qd"]])
    return c, satellite(), q, v, to_body


def test_free_floating_accelerations(free_floating):
    c, robot, q, v, to_body = free_floating
    a = robot.forward_dynamics(q, v, np.array([0] * 6 + c["state"]["tau"]))
    agree(a[6:], c["expected"]["qdd"], c["tolerance"]["instant"])
    base = robot.acceleration(q, v, a, "base", expressed_in="world_aligned")
    agree(base[[3, 4, 5, 0, 1, 2]], c["expected"]["base_acc"], c["tolerance"]["instant"])


def test_free_floating_inertia_matrix(free_floating):
    """3.18-3.23"""
    c, robot, q, v, to_body = free_floating
    M, e = robot.mass_matrix(q), c["expected"]
    agree(to_body.T @ M[:6, :6] @ to_body, e["H_b"], c["tolerance"]["instant"])
    agree(to_body.T @ M[:6, 6:], e["H_bm"], c["tolerance"]["instant"])
    agree(M[6:, 6:], e["H_m"], c["tolerance"]["instant"])


def test_free_floating_momentum_and_energy(free_floating):
    c, robot, q, v, to_body = free_floating
    momentum, e = robot.momentum(q, v), c["expected"]
    agree(momentum[:3], e["L_about_inertial_origin"], c["tolerance"]["momentum_per_instant"])
    agree(momentum[3:], e["P"], c["tolerance"]["momentum_per_instant"])
    agree(robot.kinetic_energy(q, v), e["T"], c["tolerance"]["instant"])


def test_free_floating_end_point(free_floating):
    """3.16, and the generalised Jacobian: the hand's motion at constant momentum."""
    c, robot, q, v, to_body = free_floating
    e, linear_first = c["expected"], [3, 4, 5, 0, 1, 2]
    agree(robot.pose(q, "e1")[:3, 3], e["ee_pos"], c["tolerance"]["instant"])
    J = robot.jacobian(q, "e1", expressed_in="world_aligned")[linear_first]
    J_b, J_m = J[:, :6] @ to_body, J[:, 6:]
    agree(J_b, e["J_b"], c["tolerance"]["instant"])
    agree(J_m, e["J_m"], c["tolerance"]["instant"])
    generalized = sarrus.floating.generalized_jacobian(robot, q, "e1", expressed_in="world_aligned")
    agree(generalized[linear_first], e["J_star"], c["tolerance"]["instant"])
    moving = sarrus.floating.momentum_velocity(robot, q, v)
    base = robot.velocity(q, moving, "base", expressed_in="world_aligned")
    agree(base[linear_first], e["zero_momentum_base_twist_for_qd"], c["tolerance"]["instant"])


def test_free_floating_partition(free_floating):
    """3.16-3.28 in SpaceDyn's inertial coordinates; 3.18 holds with the case's accelerations and torques, so the bias is also correct."""
    c, robot, q, v, _ = free_floating
    e, tolerance, linear_first = c["expected"], c["tolerance"]["instant"], [3, 4, 5, 0, 1, 2]
    form = sarrus.floating.equations_of_motion(
        robot, q, v, base="base", expressed_in="world_aligned", end_points=["e1"]
    )
    agree(form.base_velocity[linear_first], c["state"]["base_twist"], tolerance)
    agree(form.base_inertia[np.ix_(linear_first, linear_first)], e["H_b"], tolerance)
    agree(form.coupling_inertia[linear_first], e["H_bm"], tolerance)
    agree(form.joint_inertia, e["H_m"], tolerance)
    hand = form.end_points["e1"]
    agree(hand.base_jacobian[np.ix_(linear_first, linear_first)], e["J_b"], tolerance)
    agree(hand.joint_jacobian[linear_first], e["J_m"], tolerance)
    agree(form.generalized_jacobian("e1")[linear_first], e["J_star"], tolerance)
    base_acc, qdd = np.array(e["base_acc"])[linear_first], np.array(e["qdd"])  # its own inverse
    needed = form.base_inertia @ base_acc + form.coupling_inertia @ qdd + form.base_bias
    agree(needed, np.zeros(6), 1e-9)
    agree(form.coupling_inertia.T @ base_acc + form.joint_inertia @ qdd + form.joint_bias, c["state"]["tau"], 1e-9)
    agree(form.generalized_inertia @ qdd + form.generalized_bias, c["state"]["tau"], 1e-9)


def test_spacedyn_fixed_base_is_the_arm_of_the_floating_one(free_floating):
    _, robot, q, _, _ = free_floating
    fixed = satellite(floating_base=False)
    assert (fixed.nq, fixed.nv) == (6, 6)
    agree(fixed.mass_matrix(q[7:]), robot.mass_matrix(q)[6:, 6:], 1e-12)


def test_spacedyn_branches_prismatic_joints_and_end_points():
    """A base with two arms, the first with a sliding link that carries a third arm: 3.9, 3.13, and the frames of the hands."""
    cc = np.zeros((3, 3, 3))
    cc[:, 0, 0], cc[:, 1, 1], cc[:, 2, 2], cc[:, 0, 2] = (
        (0, 0, -0.5),
        (-0.2, 0, 0),
        (0, -0.1, 0),
        (0.3, 0, 0.5),
    )
    robot = sarrus.from_spacedyn(
        BB=[0, 0, 1],
        cc=cc,
        c0=np.transpose([(1, 0, 0), (-1, 0, 0), (9, 9, 9)]),
        Qi=np.transpose([(0, np.pi / 2, 0), (0.1, 0.2, 0.3), (0, 0, 0)]),
        J_type="PRR",
        m0=10,
        m=[1, 2, 3],
        inertia0=np.eye(3),
        inertia=[np.eye(3)] * 3,
        ce=np.transpose([(0, 0, 0), (1, 0, 0), (0, 1, 0)]),
        Qe=np.transpose([(0, 0, 0), (0, 0, 0), (0.4, 0.5, 0.6)]),
        floating_base=False,
    )
    q = np.array([0.25, 0.7, -0.3])
    link1 = homogeneous(rotate("y", np.pi / 2), (1 + 0.25 + 0.5, 0, 0))
    agree(robot.pose(q, "link1"), link1, 1e-12)
    link3 = (
        link1
        @ homogeneous(np.eye(3), (0.3, 0, 0.5))
        @ homogeneous(rotate("z", -0.3))
        @ homogeneous(np.eye(3), (0, 0.1, 0))
    )
    agree(robot.pose(q, "link3"), link3, 1e-12)
    turned = rotate("x", 0.1) @ rotate("y", 0.2) @ rotate("z", 0.3 + 0.7)
    link2 = homogeneous(np.eye(3), (-1, 0, 0)) @ homogeneous(turned) @ homogeneous(np.eye(3), (0.2, 0, 0))
    agree(robot.pose(q, "link2"), link2, 1e-12)
    agree(robot.pose(q, "e1"), link2 @ homogeneous(np.eye(3), (1, 0, 0)), 1e-12)  # link 2 ends a branch, and link 3
    hand = homogeneous(rotate("x", 0.4) @ rotate("y", 0.5) @ rotate("z", 0.6), (0, 1, 0))
    agree(robot.pose(q, "e2"), link3 @ hand, 1e-12)


# --- bad tables: an error that names the table and the row --------------------------------------------------------

POINTS = {"mass": [1, 1], "com": np.zeros((2, 3)), "inertia": np.zeros((2, 3))}
SDOF = {"parameters": np.zeros((2, 6)), "free": ["rx", "rz"], **POINTS}
DH = {"rows": np.zeros((2, 4)), **POINTS}
SCREWS = {"twists": np.eye(6)[:2], **POINTS}
SPACEDYN = {
    "BB": [0, 1],
    "cc": np.zeros((3, 2, 2)),
    "c0": np.zeros((3, 2)),
    "Qi": np.zeros((3, 2)),
    "J_type": "RR",
    "m0": 1,
    "m": [1, 1],
    "inertia0": np.eye(3),
    "inertia": np.hstack([np.eye(3)] * 2),
}
TABLES = {
    sarrus.from_sdof: SDOF,
    sarrus.from_dh: DH,
    sarrus.from_screws: SCREWS,
    sarrus.from_spacedyn: SPACEDYN,
}
BAD_TABLES = [
    (
        sarrus.from_sdof,
        {"parameters": [[0] * 6, [0] * 5]},
        r"parameters, row 2 has shape \(5,\); expected \(6,\)",
    ),
    (
        sarrus.from_sdof,
        {"parameters": [[0] * 6, [0, 0, "a", 0, 0, 0]]},
        "parameters, row 2 must contain numbers only",
    ),
    (
        sarrus.from_sdof,
        {"parameters": [[0] * 6, [0, 0, np.nan, 0, 0, 0]]},
        "parameters, row 2 must contain finite numbers only",
    ),
    (sarrus.from_sdof, {"parameters": []}, "parameters is empty"),
    (sarrus.from_sdof, {"parameters": 3.0}, "parameters must have a row for each link"),
    (sarrus.from_sdof, {"free": ["rx"]}, "free has 1 rows; expected 2, one for each link"),
    (sarrus.from_sdof, {"free": ["rx", "px"]}, "free, row 2: .*px"),
    (sarrus.from_sdof, {"free": ["rx", "ry ry"]}, "free, row 2: .*ry"),
    (sarrus.from_sdof, {"mass": [1, 1, 1]}, "mass has 3 rows; expected 2, one for each link"),
    (sarrus.from_sdof, {"mass": [1, -1]}, "row 2: .*mass"),
    (sarrus.from_sdof, {"com": [[0, 0, 0], [0, 0]]}, r"com, row 2 has shape \(2,\)"),
    (sarrus.from_sdof, {"inertia": [[1, 1, 1], [1, 1, 3]]}, "mass, com, inertia, row 2: "),
    (sarrus.from_sdof, {"inertia": [[1, 1, 1], np.eye(2)]}, r"inertia, row 2 has shape \(2, 2\)"),
    (sarrus.from_sdof, {"names": ["a"]}, "names has 1 entries; expected 2, one for each link"),
    (sarrus.from_sdof, {"names": ["a", "a"]}, "'a'"),
    (sarrus.from_dh, {"rows": np.zeros((2, 5))}, r"rows, row 1 has shape \(5,\); expected \(4,\)"),
    (sarrus.from_dh, {"convention": "craig"}, "convention must be 'standard' or 'modified'; got 'craig'"),
    (sarrus.from_dh, {"joint_types": "RX"}, "joint_types is 'RX'; expected 2 letters, R or P"),
    (sarrus.from_dh, {"joint_types": "RRR"}, "joint_types is 'RRR'; expected 2 letters"),
    (sarrus.from_dh, {"offsets": [0]}, "offsets has 1 rows"),
    (
        sarrus.from_screws,
        {"twists": [[0, 0, 1, 0, 0, 0], [0, 0, 2, 0, 0, 0]]},
        "twists, row 2: omega has length 2",
    ),
    (
        sarrus.from_screws,
        {"twists": [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]]},
        "twists, row 2: v has length 0",
    ),
    (sarrus.from_screws, {"home": [np.eye(4), np.eye(3)]}, r"home, row 2 has shape \(3, 3\)"),
    (sarrus.from_screws, {"home": [np.eye(4)]}, "home has 1 rows"),
    (sarrus.from_screws, {"home": [np.eye(4), np.diag([1, 1, 2, 1])]}, "home, row 2: "),
    (sarrus.from_screws, {"tip": np.eye(3)}, r"tip has shape \(3, 3\)"),
    (sarrus.from_spacedyn, {"BB": [0, 2]}, r"BB\(2\) is 2; expected the index of a lower link, from 0 to 1"),
    (sarrus.from_spacedyn, {"BB": [0, 0.5]}, r"BB\(2\) is 0.5"),
    (sarrus.from_spacedyn, {"cc": np.zeros((2, 2, 3))}, r"cc has shape \(2, 2, 3\); expected \(3, 2, 2\)"),
    (sarrus.from_spacedyn, {"Qi": np.zeros((2, 3))}, r"Qi has shape \(2, 3\); expected \(3, 2\)"),
    (sarrus.from_spacedyn, {"c0": [[0, 0], [0, 0], [0, np.inf]]}, "c0 must contain finite numbers only"),
    (sarrus.from_spacedyn, {"J_type": "RQ"}, "J_type is 'RQ'"),
    (sarrus.from_spacedyn, {"m": [1]}, "m has 1 rows"),
    (sarrus.from_spacedyn, {"inertia0": np.diag([1, 1, 3])}, "inertia0: "),
    (sarrus.from_spacedyn, {"inertia": [np.eye(3), np.diag([1, 1, 3])]}, "inertia, row 2: "),
]


@pytest.mark.parametrize(("build", "change", "message"), BAD_TABLES)
def test_bad_tables(build, change, message):
    build(**TABLES[build])  # the rest of it is well
    with pytest.raises((sarrus.ModelError, sarrus.ShapeError), match=message):
        build(**TABLES[build] | change)


# --- by hand ------------------------------------------------------------------------------------------------------


def rotate(axis, angle):
    c, s, i = np.cos(angle), np.sin(angle), "xyz".index(axis)
    R = np.eye(3)
    j, k = (i + 1) % 3, (i + 2) % 3
    R[j, j], R[j, k], R[k, j], R[k, k] = c, -s, s, c
    return R


def homogeneous(rotation, translation=(0, 0, 0)):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation, translation
    return T


def exponential(twist):
    """Return exp of a twist [omega; v] by its power series."""
    x, y, z = twist[:3]
    xi = np.zeros((4, 4))
    xi[:3, :3], xi[:3, 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]], twist[3:]
    term = total = np.eye(4)
    for k in range(1, 40):
        term = term @ xi / k
        total = total + term
    return total
