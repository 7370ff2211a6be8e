"""Thesis chapter 8: the High Stiffness Low Mass mechanism in free fall, held, loaded unevenly, and along a controlled motion.

tests/data/thesis_8_hslm.json has the values, their sources and their accuracy, and the differences from the print.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

CASE = json.loads((Path(__file__).parents[1] / "data" / "thesis_8_hslm.json").read_text())
DEFINITION, EXPECTED = CASE["definition"], CASE["expected"]
LEGS = (1, 2, 3)


def agree(got, expected, tolerance=CASE["tolerance"]):
    """Check agreement to `tolerance` times the largest entry, because a zero may be as inaccurate as its neighbours."""
    assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.fixture(scope="module", params=[True, False], ids=["reference free", "reference in the tree"])
def robot(request):
    return sarrus.mechanisms.hslm(reference_free=request.param)


def columns(robot, leg):
    """Return the indices in v of a leg's two rotations, slide and two rotations; without the quaternions also those in q."""
    names = (f"swing{leg}", f"slide{leg}", f"yaw{leg}", f"pitch{leg}")
    return np.concatenate([np.arange(robot.nv)[robot.joint(name).v_slice] for name in names])


def efforts(robot, each_leg):
    tau = np.zeros(robot.nv)
    for leg in LEGS:
        tau[columns(robot, leg)] = each_leg
    return tau


def raised(robot, y=0.0, rate=0.0):
    """Return q and v with the reference member raised by y and level, so that all legs move alike."""
    slope, reach = DEFINITION["chains"][0]["gamma1"][2:4]
    across, up = reach * np.cos(slope), reach * np.sin(slope) + y
    length, angle = np.hypot(across, up), np.arctan2(up, across)
    longer, steeper = rate * np.sin(angle), rate * np.cos(angle) / length
    q, v = robot.neutral(), np.zeros(robot.nv)
    for leg, chain in zip(LEGS, DEFINITION["chains"], strict=True):
        for name, x in (
            (f"swing{leg}", (chain["gamma1"][1], angle)),
            (f"slide{leg}", length),
            (f"pitch{leg}", -angle),
        ):
            q[robot.joint(name).q_slice] = x
        v[columns(robot, leg)] = [0, steeper, longer, 0, -steeper]
    if "float" in robot.joints:
        q[robot.joint("float").q_slice][5] = y
        v[robot.joint("float").v_slice][4] = rate
    return q, v


def test_gallery_is_the_table(robot):
    """Table 8.2, and the ends of the legs of Table 8.1: 8.1-8.3, with the member's frame equal to the world's."""
    bodies = {body.name: body.inertia for body in robot.description.bodies}
    for k, inertia in (("link1", DEFINITION["link1"]), ("link2", DEFINITION["link2"])):
        for leg in LEGS:
            agree(bodies[f"{k}_{leg}"].mass, inertia["m"])
            agree(bodies[f"{k}_{leg}"].about_com, inertia["I_com"])
    # the second link from its own frame, the first from the pivot while the slide is as the table has it
    q, v = raised(robot)
    agree(robot.constraint_residual(q), 0.0, 1e-12)
    agree(robot.pose(q, "reference"), np.eye(4), 1e-12)
    joints = {joint.name: joint for joint in robot.description.joints}
    for leg, chain in zip(LEGS, DEFINITION["chains"], strict=True):
        com = robot.pose(q, f"link1_{leg}") @ [*bodies[f"link1_{leg}"].com, 1.0]
        about_y, about_z = (
            sarrus.Rotation.from_axis_angle(*turn) for turn in zip("yz", chain["gamma1"][1:3], strict=True)
        )
        at = joints[f"swing{leg}"].at_parent.translation
        agree(com[:3], at + (about_y @ about_z).apply(DEFINITION["link1"]["com"]), 1e-12)
        agree(bodies[f"link2_{leg}"].com, DEFINITION["link2"]["com"])
        agree(robot.pose(q, f"link2_{leg}")[:3, 1], [0, 1, 0], 1e-12)  # level
        agree((robot.pose(q, f"link2_{leg}") @ [chain["gamma2"][3], 0, 0, 1])[:3], chain["p_k"], 1e-12)


def solutions(robot, q, v, tau):
    """Return (accelerations, acceleration of the member) by each solver."""
    a = robot.forward_dynamics(q, v, tau)
    s = sarrus.formulations.reference_member(robot, q, v, tau)
    return [(a, robot.acceleration(q, v, a, "reference")), (s.accelerations, s.member_acceleration)]


def test_free_fall(robot):
    """8.2.1 and 8.7: the member falls faster than a free body, because the legs alone would fall still faster."""
    q, v = raised(robot)
    case = EXPECTED["free_fall"]
    for a, member in solutions(robot, q, v, np.zeros(robot.nv)):
        agree(member, [0, 0, 0, 0, case["ref_acc_y"], 0])
        for leg in LEGS:
            agree(a[columns(robot, leg)], case["chain_qdd"])


def test_forces_in_free_fall(robot):
    """8.2.1: each leg exerts 0.0477382 N downwards on the reference member; the other components of the welds' wrenches are checked too."""
    q, v = raised(robot)
    case = EXPECTED["free_fall"]
    s = sarrus.formulations.reference_member(robot, q, v, np.zeros(robot.nv))
    assert tuple(s.chains) == ("weld1", "weld2", "weld3")
    for leg, printed in zip(LEGS, case["tip_force_chain_on_ref"], strict=True):
        turn = robot.pose(q, f"link2_{leg}")[:3, :3]
        moment, force = s.tip_forces[f"weld{leg}"].reshape(2, 3) @ turn.T
        agree(force[1], case["vertical_force_of_each_chain_on_ref"])
        agree(force, printed[3:])


def test_mobility(robot):
    q, v = raised(robot)
    J = robot.constraint_jacobian(q)
    assert robot.nv - np.linalg.matrix_rank(J) == EXPECTED["dof"]
    # independent rows: all joints' reactions are determined
    assert np.linalg.matrix_rank(J) == robot.nc
    assert robot.nc == EXPECTED["constraint_rank"] - (0 if "float" in robot.joints else 6)
    s = sarrus.formulations.reference_member(robot, q, v, np.zeros(robot.nv))
    assert round(np.trace(s.motion_space)) == EXPECTED["dof"]
    for chain in s.chains:  # five freedoms under a weld: M^-1 is singular
        assert s.H[chain].shape == (5, 5)
        assert np.linalg.matrix_rank(s.M_inverse[chain]) == 5


def test_held(robot):
    """8.8: zero accelerations; also with gravity in place of forces, with efforts of least norm that do not exceed the given ones."""
    q, v = raised(robot)
    case = EXPECTED["static_gamma"]
    for a, member in solutions(robot, q, v, efforts(robot, case["exact"])):
        agree(a, 0.0)
        agree(member, 0.0)
    # as printed, to what half a unit of its last digit moves
    for a, _ in solutions(robot, q, v, efforts(robot, case["printed"])):
        agree(a, 0.0, 1e-6)


def test_uneven_load(robot):
    """Unevenly loaded slides: the member rotates; 6.63-6.65 as printed give other motions."""
    q, v = raised(robot)
    case = EXPECTED["asymmetric_check"]
    tau = np.zeros(robot.nv)
    for leg, push in zip(LEGS, case["tau_prismatic"], strict=True):
        tau[robot.joint(f"slide{leg}").v_slice] = push
    for a, member in solutions(robot, q, v, tau):
        agree(member, case["ref_acc_ang_lin"])
        agree(np.concatenate([a[columns(robot, leg)] for leg in LEGS]), case["joint_acc"])


SLIDING = {
    name: run["rows"]
    for name, run in CASE["pid"]["results"]["sliding"].items()
    if isinstance(run, dict) and "rows" in run
}


@pytest.mark.parametrize("name", SLIDING)
def test_states_of_controlled_motions(robot, name):
    """8.2.2: states of the controlled motion with the motors' efforts; the legs slide like rigid bodies."""
    rows = SLIDING[name]
    assert len(rows) > 5
    states = [raised(robot, row["y"], row["yd"]) for row in rows]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    tau = np.array([efforts(robot, [0, 0, row["prismatic_force"], 0, row["theta2_torque"]]) for row in rows])
    ydd = np.array([row["ydd"] for row in rows])
    for _, member in solutions(robot, q, v, tau):
        agree(member[:, 4], ydd)
        agree(np.delete(member, 4, axis=1), 0.0)
