"""Thesis 6.5: two links and a reference member, quantity by quantity; and the load for which the printed algorithm is wrong.

tests/data/thesis_6_5_two_links.json has the values, their sources and their accuracy.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

CASE = json.loads((Path(__file__).parents[1] / "data" / "thesis_6_5_two_links.json").read_text())
DEFINITION, EXPECTED, ANGLE = CASE["definition"], CASE["expected"], CASE["definition"]["q0"]
TIPS = ("tip1", "tip2")


def agree(got, expected, tolerance=CASE["tolerance"]):
    """Check agreement to `tolerance` times the largest entry, because a zero may be as inaccurate as its neighbours."""
    assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.fixture(scope="module", params=[True, False], ids=["reference free", "reference in the tree"])
def robot(request):
    return sarrus.mechanisms.two_links(reference_free=request.param)


def at(robot, angle, rate=0.0):
    """Return q and v with both links rotated by these angles; the reference member does not rotate."""
    q = robot.neutral()
    for name in ("joint1", "joint2"):
        q[robot.joint(name).q_slice] = angle
    length, apart = DEFINITION["link_length"], DEFINITION["pivots"][1][0]
    if "float" in robot.joints:
        q[robot.joint("float").q_slice][4:] = [length * np.cos(angle) + apart / 2, 0, -length * np.sin(angle)]
    else:
        q[robot.joint("tip1").q_slice] = -angle
    v = np.linalg.lstsq(
        np.vstack([robot.constraint_jacobian(q), np.eye(robot.nv)[:2]]), [0.0] * robot.nc + [rate] * 2, rcond=None
    )[0]
    return q, v


def links(robot, numbers):
    """Return a vector with these values for joints 1 and 2, and zeros elsewhere."""
    tau = np.zeros(robot.nv)
    tau[:2] = numbers
    return tau


def solve(robot, tau=(0, 0)):
    q, v = at(robot, ANGLE)
    return sarrus.formulations.reference_member(robot, q, v, links(robot, tau), member="reference")


def test_gallery_is_the_thesis(robot):
    for k, link in enumerate(("link1", "link2")):
        body = next(b.inertia for b in robot.description.bodies if b.name == link)
        joint = next(j for j in robot.description.joints if j.name == f"joint{k + 1}")
        agree(joint.at_parent.translation, DEFINITION["pivots"][k])
        agree(body.mass, DEFINITION["link_mass"])
        agree(body.com, DEFINITION["link_com"])
        tip = next(j for j in robot.description.joints if j.name == f"tip{k + 1}")
        agree(tip.at_parent.translation, [DEFINITION["link_length"], 0, 0])
        agree(tip.at_child.translation, DEFINITION[f"p{k + 1}"])
    body = next(b.inertia for b in robot.description.bodies if b.name == "reference")
    agree(body.mass, DEFINITION["ref_mass"])
    agree(body.principal_moments, DEFINITION["ref_Icom_diag"])
    agree(robot.gravity, DEFINITION["gravity"])
    agree(robot.constraint_residual(at(robot, ANGLE)[0]), 0.0)


@pytest.mark.parametrize("chain", TIPS)
def test_chain_let_go(robot, chain):
    """6.88-6.100."""
    s = solve(robot)
    agree(s.J[chain], np.array([[0, 1, 0, 0, 0, -1.5]]).T)
    agree(s.H[chain], [[EXPECTED["H"]]])
    agree(s.bias_forces[chain], [EXPECTED["bias"]])
    agree(s.open_accelerations[chain], [EXPECTED["qdd_open"]])
    agree(s.open_tip_acceleration[chain][[1, 5]], [EXPECTED["qdd_open"], EXPECTED["S_k_5"]])
    agree(s.Omega[chain], np.array([[0, 1, 0, 0, 0, -1.5]]) / EXPECTED["H"])
    printed = np.zeros((6, 6))  # 6.93
    printed[1, 1], printed[1, 5], printed[5, 1], printed[5, 5] = 1.2307692, -1.8461538, -1.8461538, 2.7692308
    agree(s.Lambda_inverse[chain], printed, 5e-8)


@pytest.mark.parametrize(("chain", "sign"), [("tip1", 1), ("tip2", -1)])
def test_answer_to_the_member(robot, chain, sign):
    """6.101-6.123, in the thesis' order of blocked directions."""
    s = solve(robot)
    agree(s.phi[chain], np.eye(6)[:, [1]])
    order = np.argmax(np.abs(s.phi_c[chain]), axis=0)
    agree(s.phi_c[chain], np.eye(6)[:, order])
    assert sorted(order) == [0, 2, 3, 4, 5]
    z = np.eye(6)[5]
    agree(s.phi_c[chain] @ s.S[chain], EXPECTED["S_k_5"] * z)
    agree(s.phi_c[chain] @ s.M[chain] @ s.phi_c[chain].T, EXPECTED["M_k_55"] * np.outer(z, z))
    agree(s.phi_c[chain] @ s.M_inverse[chain] @ s.phi_c[chain].T, np.outer(z, z) / EXPECTED["M_k_55"])
    half = np.sqrt(0.5)
    X = np.zeros((6, 6))  # 6.115 and 6.117
    X[:3, :3] = X[3:, 3:] = [[half, 0, -half], [0, 1, 0], [half, 0, half]]
    X[3:, :3] = sign * 0.4 * np.array([[0, -half, 0], [0, 0, -1], [0, half, 0]])
    agree(s.X[chain], X)
    agree(s.P[chain], EXPECTED["P_k_6"] * z)
    agree(s.R[chain][5], [0, sign * 0.1021376, 0, 0.2553441, 0, 0.2553441], 5e-8)
    agree(s.R[chain][:5], 0.0)


def test_reference_member(robot):
    """6.128-6.142, and the same by the other solver and in closed form."""
    s = solve(robot)
    effective = np.diag([0.5, 0.5577778, 0.5, 5.3611111, 5, 5.3611111])
    effective[3, 5] = effective[5, 3] = 0.3611111
    agree(s.effective_inertia, effective, 5e-8)
    agree(s.member_acceleration, EXPECTED["a_r"])
    agree(s.accelerations[:2], EXPECTED["qdd"])
    agree(s.accelerations[:2], [EXPECTED["closed_form_qdd"]] * 2)
    q, v = at(robot, ANGLE)
    agree(robot.forward_dynamics(q, v, np.zeros(robot.nv)), s.accelerations)
    for chain in TIPS:
        agree(s.P[chain] - s.R[chain] @ s.member_acceleration, EXPECTED["tip_force_link_frame"])
        # "one can not be sure that this tip force is the real force" (6.5.3): along the link, where the tip does not give way, it is not
        agree(s.tip_forces[chain][[3, 5]], [-25 * np.sqrt(0.5), EXPECTED["tip_force_link_frame"][5]])
    # 6.134 has a column too many
    space = np.array(EXPECTED["true_reference_motion_space"])
    agree(s.motion_space, space.T @ space)


def test_static(robot):
    """6.147-6.151."""
    s = solve(robot, [EXPECTED["static_torque"]] * 2)
    agree(s.accelerations, 0.0)
    agree(s.member_acceleration, 0.0)
    q, v = at(robot, ANGLE)
    agree(robot.forward_dynamics(q, v, links(robot, [EXPECTED["static_torque"]] * 2)), 0.0)
    agree([s.open_accelerations[chain][0] for chain in TIPS], [-32.635698] * 2, 5e-7 / 32)  # 6.149
    agree([s.open_tip_acceleration[chain][5] for chain in TIPS], [48.953546] * 2, 5e-7 / 48)  # 6.150


def test_unsymmetric_load(robot):
    """With one motor both links still move alike and the member does not rotate; by 6.63-6.65 it would."""
    case = EXPECTED["asymmetric_check"]
    s = solve(robot, case["tau"])
    agree(s.accelerations[:2], case["qdd"])
    agree(s.member_acceleration[:3], 0.0)
    q, v = at(robot, ANGLE)
    agree(robot.forward_dynamics(q, v, links(robot, case["tau"])), s.accelerations)


def test_thesis_shortcut_is_another_answer(robot):
    """6.63-6.65 as printed, with sarrus' quantities, give the file's other values, so the test above distinguishes the two."""
    s = solve(robot, EXPECTED["asymmetric_check"]["tau"])
    reflected = sum(s.X[chain].T @ s.R[chain] for chain in TIPS)
    load = sum(s.X[chain].T @ s.P[chain] for chain in TIPS) - [0, 0, 0, 0, 0, 50]
    U, sizes, _ = np.linalg.svd(reflected)
    b = U[:, sizes > 1e-9]
    a_r = np.linalg.solve(s.effective_inertia, b @ (b.T @ load))
    agree(a_r[[1, 3, 5]], [-0.33805902, -5.32509982, -5.32509982], 5e-9)


@pytest.mark.parametrize("row", CASE["motion"]["rows"], ids=lambda row: f"t={row['t']}")
def test_states_of_the_motion(robot, row):
    """theta'' = (90/12.875) cos theta in every state, with centripetal terms."""
    q, v = at(robot, row["theta"], row["thetad"])
    expected = 90 / 12.875 * np.cos(row["theta"])
    for a in (
        robot.forward_dynamics(q, v, np.zeros(robot.nv)),
        sarrus.formulations.reference_member(robot, q, v, np.zeros(robot.nv)).accelerations,
    ):
        agree(a[:2], [expected] * 2)
