"""The closed mechanism of the COG-Jacobian paper, with one motor, and with two motors of which only a sum is determined.

The target motion is not the paper's, whose figures cannot be read. tests/data/*.json has the values and their derivation.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

CASE = json.loads((Path(__file__).parents[1] / "data" / "paper003_BC_fourbar.json").read_text())
LENGTH, MASS, INERTIA = 0.20, 0.628, 2.11e-3
GRAVITY = {"no_gravity": (0, 0, 0), "gravity": (0, -9.81, 0)}


def four_bar(base, gravity):
    """Return the four-bar: theta_1 from O1, theta_3 from O4, and the coupler's angle relative to link 1; the pin at B is the loop joint."""
    b = sarrus.Builder("four-bar of the COG Jacobian paper", gravity=gravity)
    for name in ("link1", "coupler", "link3"):
        b.add_body(name, sarrus.Inertia(MASS, (LENGTH / 2, 0, 0), np.diag([0, INERTIA, INERTIA])))
    tip = (LENGTH, 0, 0)
    b.add_joint("theta1", sarrus.Revolute("z"), "ground", "link1", actuated=True)
    b.add_joint("theta4", sarrus.Revolute("z"), "link1", "coupler", at_parent=tip)
    b.add_joint("theta3", sarrus.Revolute("z"), "ground", "link3", at_parent=(base, 0, 0), actuated=True)
    b.add_joint("B", sarrus.Revolute("z"), "link3", "coupler", at_parent=tip, at_child=tip, loop=True)
    return b.build()


def in_joints(absolute):
    """Convert rows (theta1, theta2, theta3) of absolute angles, or their rates, to theta1, coupler relative to link 1, theta3."""
    one, two, three = np.moveaxis(np.asarray(absolute), -1, 0)
    return np.stack([one, two - one, three], axis=-1)


@pytest.fixture(params=[(base, gravity) for base in CASE["expected"] for gravity in GRAVITY], ids="-".join)
def motion(request):
    """Return the mechanism, and the motion as a batch."""
    base, gravity = request.param
    rows = CASE["expected"][base]
    expected = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    by_gravity = {name.removesuffix(f"_{gravity}"): x for name, x in expected.items() if name.endswith(f"_{gravity}")}
    if gravity == "gravity":
        by_gravity = {name: x for name, x in by_gravity.items() if not name.endswith("_no")}
    q, v, a = (in_joints(expected[name]) for name in ("theta", "omega", "alpha"))
    return four_bar(float(base[2:]), GRAVITY[gravity]), q, v, a, by_gravity


def agree(got, expected):
    """Check agreement to the file's tolerance times the largest entry."""
    assert_allclose(got, expected, rtol=0, atol=CASE["tolerance"] * max(1.0, np.abs(expected).max()))


def test_the_loop_is_closed_as_given(motion):
    robot, q, v, a, _ = motion
    agree(robot.constraint_residual(q), np.zeros((21, 5)))
    agree((robot.constraint_jacobian(q) @ v[..., None])[..., 0], np.zeros((21, 5)))
    agree((robot.constraint_jacobian(q) @ a[..., None])[..., 0], robot.constraint_bias(q, v))


def test_one_motor(motion):
    """Equation 42, by the COG Jacobian and by both functions for efforts."""
    robot, q, v, a, expected = motion
    cog = sarrus.formulations.cog_jacobians(robot, q, v, active=["theta3"])
    agree(cog.efforts(a[:, 2:])[:, 0], expected["tau3_single"])
    agree((cog.H @ a[:, 2:, None])[..., 0] + cog.B, expected["tau3_single"][:, None])
    agree(robot.actuator_efforts(q, v, a, actuated=["theta3"])[:, 0], expected["tau3_single"])
    reduced = sarrus.formulations.reduced_dynamics(robot, q, v, independent=["theta3"])
    agree(reduced.inverse(a[:, 2:])[:, 0], expected["tau3_single"])
    agree(reduced.forward(expected["tau3_single"][:, None]), a[:, 2:])


def test_two_motors(motion):
    """44-47: theta_1 and theta_3 are dependent, so only tau_1 dtheta_1/dtheta_3 + tau_3 is determined."""
    robot, q, v, a, expected = motion
    cog = sarrus.formulations.cog_jacobians(robot, q, v)  # of both motors
    assert cog.coordinates == ("theta1", "theta3")
    agree(cog.efforts(a[:, [0, 2]]), expected["tau13_minnorm"])
    agree(robot.actuator_efforts(q, v, a), expected["tau13_minnorm"])
    ratio = sarrus.formulations.reduced_dynamics(robot, q, v, independent=["theta3"]).jacobian[:, 0, 0]
    for pair in (expected["tau13_minnorm"], expected["tau13_COG_pair"]):
        agree(ratio * pair[:, 0] + pair[:, 1], expected["tau3_single"])
    # the paper's distribution is one of those that the preload reaches
    agree(robot.actuator_efforts(q, v, a, preload=expected["tau13_COG_pair"]), expected["tau13_COG_pair"])


def test_distribution_of_the_paper(motion):
    """44-46 with the coupler between A(theta_1) and B(theta_3): G as a function of theta_1 and theta_3 that also holds for the open loop."""
    robot, q, v, a, expected = motion
    theta1, theta3 = q[:, 0], q[:, 2]
    A, B = (LENGTH * np.stack([np.cos(x), np.sin(x)], axis=-1) for x in (theta1, theta3))
    A_1, B_3 = (LENGTH * np.stack([-np.sin(x), np.cos(x)], axis=-1) for x in (theta1, theta3))
    along = np.array([float(robot.description.joints[2].at_parent.translation[0]), 0.0]) + B - A
    across = np.stack([-along[:, 1], along[:, 0]], axis=-1) / (along**2).sum(axis=-1, keepdims=True)
    F = sarrus.formulations.cog_jacobians(robot, q, v).forces(a[:, [0, 2]])[..., [0, 1, 5]]  # in the plane
    tau1 = (
        (A_1 / 2 * F[:, 0, :2]).sum(-1)
        + F[:, 0, 2]
        + (A_1 / 2 * F[:, 1, :2]).sum(-1)
        - (across * A_1).sum(-1) * F[:, 1, 2]
    )
    tau3 = (
        (B_3 / 2 * F[:, 2, :2]).sum(-1)
        + F[:, 2, 2]
        + (B_3 / 2 * F[:, 1, :2]).sum(-1)
        + (across * B_3).sum(-1) * F[:, 1, 2]
    )
    agree(np.stack([tau1, tau3], axis=-1), expected["tau13_COG_pair"])


def test_pin_forces(motion):
    """The loop's reaction on the coupler at B; the forces at other pins follow from Newton's law for each link."""
    robot, q, v, a, expected = motion
    u, multipliers = robot.actuator_efforts(q, v, a, actuated=["theta3"], return_reactions=True)
    on_coupler = robot.pose(q, "coupler")[:, :3, :3] @ robot._loop_wrenches(q, multipliers)[:, 0, 3:, None]
    at_B = on_coupler[:, :2, 0]
    link1, coupler, link3 = np.moveaxis(
        sarrus.formulations.cog_jacobians(robot, q, v, active=["theta3"]).forces(a[:, 2:])[..., :2], 1, 0
    )
    at_A = coupler - at_B
    agree(np.concatenate([link1 + at_A, at_A, at_B, link3 + at_B], axis=-1), expected["pin_forces_single"])


def test_equation_of_motion(motion):
    """theta-dot H theta-dot / 2 is the kinetic energy; B contains G-dot as in eq. 18; G of the mechanism is the weighted mean of the links'."""
    robot, q, v, a, expected = motion
    cog = sarrus.formulations.cog_jacobians(robot, q, v, active=["theta3"])
    rate = v[:, 2:]
    agree(0.5 * cog.H[:, 0, 0] * rate[:, 0] ** 2, robot.kinetic_energy(q, v))
    agree((cog.stack_derivative @ rate[..., None])[..., 0], cog.bias_acceleration.reshape(21, -1))
    agree(cog.link_H.sum(axis=1), cog.H)
    agree(
        cog.body_G,
        sarrus.floating.center_of_mass_jacobian(robot, q)
        @ sarrus.formulations.reduced_dynamics(robot, q, v, independent=["theta3"]).jacobian,
    )
    at_rest = sarrus.formulations.cog_jacobians(robot, q, np.zeros(3), active=["theta3"])
    agree(
        cog.B - at_rest.B,
        (transposed(cog.stack) @ block_masses(cog) @ cog.bias_acceleration.reshape(21, -1, 1))[..., 0],
    )


def transposed(A):
    return np.swapaxes(A, -1, -2)


def block_masses(cog):
    """Return M of eq. 12, with the links' masses on the diagonal."""
    M = np.zeros((len(cog.mass), 18, 18))
    for i in range(3):
        M[:, 6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = cog.mass[:, i]
    return M
