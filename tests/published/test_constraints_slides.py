"""Lagrange's equations with constraints: the examples of Li and Wu's slides, section 4.6, with misprints corrected.

tests/data/mls004_*.json has the values, and the differences from the slides.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from tests.oracles.steps import rk4

DATA = Path(__file__).parents[1] / "data"


def case(name):
    return json.loads((DATA / f"mls004_{name}.json").read_text())


def columns(rows):
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def agree(got, expected, tolerance):
    """Check agreement to `tolerance` times the largest entry."""
    assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


def point_mass(mass, axes, gravity):
    """Return a point mass that slides along the axes of the world."""
    b = sarrus.Builder("point mass", gravity=gravity)
    b.add_body("point", sarrus.Inertia.from_points([mass], [(0, 0, 0)]))
    b.add_joint("place", sarrus.Gimbal(axes), "ground", "point")
    return b


def position_rows(q):
    """Return A(q) = q^T of |q|^2 = l^2, one row."""
    return q[..., None, :]


def velocity_rows(q, v):
    return v[..., None, :]


# ---- x^2 + y^2 = l^2 -----------------------------------------------------------------------------------------------


def pendulum(how):
    """Return the pendulum in Cartesian coordinates, y upwards, with a rod or with the slides' row as its constraint."""
    p = case("pendulum_constraint")["definition"]
    b = point_mass(p["m"], "tx ty", (0, -p["g"], 0))
    if how == "rod":
        b.add_distance("rod", ("ground", (0, 0, 0)), ("point", (0, 0, 0)), length=p["l"])
    else:
        b.add_pfaffian("circle", position_rows, ["place"], derivative=velocity_rows)
    return b.build()


@pytest.mark.parametrize("how", ["rod", "row"])
def test_pendulum_multiplier(how):
    """lambda = (m / l^2) (x'^2 + y'^2 - g y) if M q'' + N + A^T lambda = 0, which is the opposite sign; A has norm l."""
    c = case("pendulum_constraint")
    e, robot = columns(c["expected"]), pendulum(how)
    q, v = np.stack([e["x"], e["y"]], axis=-1), np.stack([e["xd"], e["yd"]], axis=-1)
    multiplier = -e["tension"] if how == "rod" else -e["lam_slide_convention"]
    equations = sarrus.formulations.projected_dynamics(robot, q, v)
    agree(equations.multipliers[:, 0], multiplier, c["tolerance"])
    _, reactions = robot.forward_dynamics(q, v, np.zeros(2), return_reactions=True)
    agree(reactions.multipliers[:, 0], multiplier, c["tolerance"])


# ---- spherical pendulum --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spherical():
    c = case("spherical_pendulum")
    d = c["definition"]
    b = point_mass(d["m"], "tx ty tz", (0, 0, -d["g"]))
    b.add_pfaffian("sphere", position_rows, ["place"], derivative=velocity_rows)
    return b.build(), columns(c["expected"]), c["tolerance"]


def test_spherical_pendulum_projections(spherical):
    robot, e, tolerance = spherical
    P_omega, P_T = sarrus.formulations.projections(robot, e["r"])
    agree(P_omega, e["P_omega"], tolerance)
    agree(P_T, e["P_omega"], tolerance)


def test_spherical_pendulum_motion_and_multiplier(spherical):
    robot, e, tolerance = spherical
    equations = sarrus.formulations.projected_dynamics(robot, e["r"], e["v"])
    agree(equations.acceleration, e["acc"], tolerance)
    agree(-equations.multipliers[:, 0], e["lam"], tolerance)
    agree(robot.kinetic_energy(e["r"], e["v"]) + robot.potential_energy(e["r"]), e["E"], tolerance)


def test_spherical_pendulum_second_fundamental_form(spherical):
    """S(q', q') = -(mu'^2 + cos^2 mu nu'^2) q on the sphere, which is -|q'|^2 q / r^2."""
    robot, e, tolerance = spherical
    S = -(e["v"] ** 2).sum(axis=1, keepdims=True) * e["r"]
    agree(sarrus.formulations.projected_dynamics(robot, e["r"], e["v"]).curvature, S, tolerance)


def test_equations_on_both_spaces(spherical):
    """Equations on T*Q and on its complement, each with an effort that belongs to neither."""
    robot, e, tolerance = spherical
    tau = np.array([1.0, -2.0, 0.5])
    s = sarrus.formulations.projected_dynamics(robot, e["r"], e["v"], tau)
    along = (s.inertia @ s.acceleration[..., None])[..., 0] + s.bias
    agree(along, s.force, tolerance)
    agree(s.curvature, s.across + s.constraint_force, tolerance)
    agree((s.P_omega @ s.constraint_force[..., None])[..., 0], np.zeros_like(tau * e["r"]), tolerance)
    agree(
        sarrus.formulations.virtual_work(robot, e["r"], e["v"], s.acceleration, tau), np.zeros_like(e["r"]), tolerance
    )
    assert np.abs(sarrus.formulations.virtual_work(robot, e["r"], e["v"], s.acceleration)).max(axis=1).min() > 0.1


# ---- rolling disk --------------------------------------------------------------------------------------------------


def contact_rows(radius):
    """Return the rows x' = radius cos(theta) phi', y' = radius sin(theta) phi', and their rate."""

    def two_rows(one, cos, sin):
        nothing = np.zeros_like(cos)
        x, y = [one, nothing, nothing, -radius * cos], [nothing, one, nothing, -radius * sin]
        return np.stack([np.stack(x, axis=-1), np.stack(y, axis=-1)], axis=-2)

    def rows(q):
        theta = q[..., 2]
        return two_rows(np.ones_like(theta), np.cos(theta), np.sin(theta))

    def derivative(q, v):
        theta, rate = q[..., 2], v[..., 2]
        return two_rows(np.zeros_like(rate), -np.sin(theta) * rate, np.cos(theta) * rate)

    return rows, derivative


@pytest.fixture(scope="module")
def disk():
    """Return the disk in coordinates x, y, theta, phi with the slides' Lagrangian, and its Pfaffian rows."""
    d = case("rolling_disk")["definition"]
    b = sarrus.Builder("rolling disk")
    for name in ("across", "hub", "fork", "wheel"):
        b.add_body(name, sarrus.Inertia.from_points([d["m"]], [(0, 0, 0)]) if name == "hub" else None)
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "across")
    b.add_joint("y", sarrus.Prismatic("y"), "across", "hub")
    b.add_joint("theta", sarrus.Revolute("z", armature=d["I1_steer"]), "hub", "fork", actuated=True)
    b.add_joint("phi", sarrus.Revolute("y", armature=d["I2_roll"]), "fork", "wheel", actuated=True)
    rows, derivative = contact_rows(d["rho"])
    b.add_pfaffian("contact", rows, ["x", "y", "theta", "phi"], derivative=derivative)
    return b.build()


def disk_states(rows, radius):
    e = columns(rows)
    q = np.stack([e[name] for name in ("x", "y", "theta", "phi")], axis=-1)
    roll = radius * e["phid"]
    v = np.stack([roll * np.cos(e["theta"]), roll * np.sin(e["theta"]), e["thetad"], e["phid"]], axis=-1)
    return q, v, np.stack([e["friction_force_x"], e["friction_force_y"]], axis=-1)


def test_rolling_disk_lagrange_dalembert(disk):
    """[I1, 0; 0, I2 + m rho^2] in theta and phi; x and y are eliminated with the multipliers."""
    d = case("rolling_disk")["definition"]
    q, v, _ = disk_states(case("rolling_disk")["expected_both_torques"], d["rho"])
    form = sarrus.formulations.reduced_dynamics(disk, q, v, independent=["theta", "phi"])
    inertia = np.diag([d["I1_steer"], d["I2_roll"] + d["m"] * d["rho"] ** 2])
    tolerance = case("rolling_disk")["tolerance"]
    agree(form.mass_matrix, np.broadcast_to(inertia, (6, 2, 2)), tolerance)
    agree(form.bias, np.zeros((6, 2)), tolerance)
    agree(form.full_velocity(v[:, 2:]), v, tolerance)


@pytest.mark.parametrize(
    ("rows", "steering"),
    [("expected_both_torques", "tau_theta"), ("expected_tau_theta_0", None)],
    ids=["both", "phi only"],
)
def test_rolling_disk_friction(disk, rows, steering):
    c = case("rolling_disk")
    d = c["definition"]
    q, v, friction = disk_states(c[rows], d["rho"])
    tau = [0.0, 0.0, d[steering] if steering else 0.0, d["tau_phi"]]
    equations = sarrus.formulations.projected_dynamics(disk, q, v, tau)
    agree(equations.constraint_force[:, :2], friction, c["tolerance"])
    agree(equations.multipliers, friction, c["tolerance"])
    efforts = disk.actuator_efforts(q, v, equations.acceleration)
    agree(efforts, np.broadcast_to(tau[2:], (len(q), 2)), c["tolerance"])


def test_rolling_disk_path(disk):
    """The first second, by Runge and Kutta's rule: the path is no function of the angles."""
    c = case("rolling_disk")
    d = c["definition"]
    q, v, _ = disk_states(c["expected_both_torques"], d["rho"])
    tau = [0.0, 0.0, d["tau_theta"], d["tau_phi"]]

    def rate(t, x):
        return np.concatenate([x[4:], disk.forward_dynamics(x[:4], x[4:], tau)])

    end = rk4(rate, np.concatenate([q[0], v[0]]), 1.0 / 60, 60)[-1]
    agree(end, np.concatenate([q[2], v[2]]), 1e-9)


# ---- redundant parallel manipulator --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manipulator():
    c = case("redundant_parallel")
    e = columns(c["expected"])
    return sarrus.mechanisms.three_rrr(), e["theta"], e["thetad"], e["thetadd"], e, c["tolerance"]


def test_manipulator_closes(manipulator):
    robot, q, v, a, e, tolerance = manipulator
    agree(robot.pose(q, "tip")[:, :2, 3], e["p"], tolerance)
    agree(robot.constraint_residual(q), np.zeros((len(q), robot.nc)), tolerance)
    agree((robot.constraint_jacobian(q) @ a[..., None])[..., 0], robot.constraint_bias(q, v), tolerance)


def test_manipulator_efforts(manipulator):
    """Three motors for two degrees of freedom: the least torques, and the direction in which torques only strain the links."""
    robot, q, v, a, e, tolerance = manipulator
    agree(robot.actuator_efforts(q, v, a), e["tau_active_minnorm"], tolerance)
    agree(
        robot.actuator_efforts(q, v, a, actuated=["base1", "base3", "base2"])[:, [0, 2, 1]],
        e["tau_active_minnorm"],
        tolerance,
    )
    internal = robot.internal_efforts(q)[..., 0]
    agree(internal * np.sign(internal[:, :1]), e["internal_torque_direction"], tolerance)


def test_manipulator_in_task_coordinates(manipulator):
    robot, q, v, a, e, tolerance = manipulator
    form = sarrus.formulations.reduced_dynamics(robot, q, v, task=("tip", "tx ty"))
    acceleration = -4 * np.pi**2 * (e["p"] - robot.pose(q[:1], "tip")[:, :2, 3] + [0.05, 0.0])
    agree(form.inverse(acceleration), e["generalized_force_at_end"], tolerance)
    agree(form.full_acceleration(acceleration), a, tolerance)
    agree(
        np.linalg.inv(
            sarrus.formulations.operational_inertia(robot, q, "tip", components="tx ty", expressed_in="world_aligned")
        ),
        np.linalg.inv(form.mass_matrix),
        1e-9,
    )


def test_manipulator_forward(manipulator):
    robot, *_, tolerance = manipulator
    c = case("redundant_parallel")["forward_dynamics_at_rest_at_centroid"]
    tau = robot.actuation_matrix(robot.neutral()) @ c["tau_active"]
    equations = sarrus.formulations.projected_dynamics(robot, c["theta"], np.zeros(6), tau)
    p = robot.acceleration(c["theta"], np.zeros(6), equations.acceleration, "tip", expressed_in="world_aligned")
    agree(p[3:5], c["p_acc"], tolerance)
    agree(robot.forward_dynamics(c["theta"], np.zeros(6), tau), equations.acceleration, tolerance)


# ---- which constraints could be of positions (slide 44) ----------------------------------------------------------------


def rows_of(A):
    b = point_mass(1.0, "tx ty tz", (0, 0, 0))
    b.add_pfaffian("row", A, ["place"])
    return b.build()


def row(x, y, z):
    return lambda q: np.stack([f(q[..., 0], q[..., 1]) + 0 * q[..., 0] for f in (x, y, z)], axis=-1)[..., None, :]


@pytest.mark.parametrize(
    ("robot", "involutive"),
    [
        (rows_of(position_rows), True),  # x dx + y dy + z dz = d(r^2) / 2
        (rows_of(row(lambda x, y: -y, lambda x, y: x, lambda x, y: 0)), True),  # with an integrating factor
        (rows_of(row(lambda x, y: -y, lambda x, y: x, lambda x, y: 1)), False),  # the contact form
        (rows_of([[1.0, 2.0, -0.5]]), True),
        (sarrus.mechanisms.rolling_disc(), False),
        (sarrus.mechanisms.rolling_disc(upright=True), False),
        (sarrus.mechanisms.six_axis_arm(sphere=0.2), True),
        (sarrus.mechanisms.six_axis_arm(sphere=0.2, fingertip=0.02), False),  # slide 68
        (sarrus.mechanisms.stewart(), True),  # balls and free bodies, whose velocities are no rates of coordinates
        (sarrus.mechanisms.three_finger_hand(), True),
        (sarrus.mechanisms.pendulum(), True),
    ],
)
def test_which_distributions_are_involutive(robot, involutive):
    q = robot.random(3, closed=True)
    assert sarrus.formulations.is_involutive(robot, q) == involutive
    assert sarrus.formulations.is_involutive(robot, np.stack([q, q])).tolist() == [involutive] * 2


# ---- a force along a contact for what it carries across (van der Merwe 5.2.4) ------------------------------------------


def arm_on_a_wall():
    """Return a double pendulum with a point of its lower link on a wall, along which it slides up and down."""
    arm = sarrus.mechanisms.double_pendulum()
    q, point = np.array([0.4, 0.5]), (0.0, 0.0, -0.6)
    b = arm.to_builder()
    place = (arm.pose(q, "lower") @ [*point, 1.0])[:3]
    b.add_joint("wall", sarrus.Gimbal("ry tz"), "ground", "lower", at_parent=place, at_child=point, loop=True)
    return b.build(), q


def test_a_tip_that_slides_with_friction():
    """M a + n = tau + J^T lambda + S h with h = ratio lambda; along the wall the friction force is mu times the normal force."""
    robot, q = arm_on_a_wall()
    v = robot.project_velocity(q, [1.0, 0.0])
    tau = np.array([3.0, -1.0])
    normal = int(np.abs(robot.constraint_jacobian(q)).max(axis=1).argmax())  # the other rows are out of the plane
    ratio = np.zeros((2, 4))
    ratio[1, normal] = -0.3
    a, multipliers, h = sarrus.formulations.sliding_contact(robot, q, v, tau, "wall", ratio)
    J, S = robot.constraint_jacobian(q), robot.actuation_matrix(q, actuated=["wall"])
    agree(robot.mass_matrix(q) @ a + robot.bias_forces(q, v), tau + J.T @ multipliers + S @ h, 1e-12)
    agree(J @ a, robot.constraint_bias(q, v), 1e-12)
    agree(h, [0.0, -0.3 * multipliers[normal]], 1e-12)
    assert abs(h[1]) > 0.1
    several = sarrus.formulations.sliding_contact(robot, np.stack([q, q]), v, tau, "wall", np.stack([ratio, 0 * ratio]))
    free = robot.forward_dynamics(q, v, tau)
    agree(several[0], np.stack([a, free]), 1e-12)


def test_a_tip_that_jams():
    """The tip jams if the ratio is the quotient of the required force and the force that friction causes."""
    robot, q = arm_on_a_wall()
    v, tau = np.zeros(2), np.array([3.0, -1.0])
    normal = int(np.abs(robot.constraint_jacobian(q)).max(axis=1).argmax())  # the other rows are out of the plane

    def needed(h):
        push = robot.actuation_matrix(q, actuated=["wall"]) @ [0.0, h]
        return robot.forward_dynamics(q, v, tau + push, return_reactions=True)[1].multipliers[normal]

    ratio = np.zeros((2, 4))
    ratio[1, normal] = 1.0 / (needed(1.0) - needed(0.0))
    with pytest.raises(sarrus.StateError, match="joint 'wall' jams"):
        sarrus.formulations.sliding_contact(robot, q, v, tau, "wall", ratio)


def test_a_bad_state_of_many_slides_alone():
    robot, q = arm_on_a_wall()
    v, tau, ratio = np.zeros(2), np.array([3.0, -1.0]), np.zeros((2, 4))
    normal = int(np.abs(robot.constraint_jacobian(q)).max(axis=1).argmax())
    ratio[1, normal] = -0.3
    one = sarrus.formulations.sliding_contact(robot, q, v, tau, "wall", ratio)
    many = sarrus.formulations.sliding_contact(robot, np.stack([q, np.nan * q]), v, tau, "wall", ratio)
    for x, alone in zip(many, one, strict=True):
        agree(x[0], alone, 1e-12)
        assert np.isnan(x[1]).all()
    with pytest.raises(sarrus.StateError, match="overflow"):
        sarrus.formulations.sliding_contact(robot, q, v, tau, "wall", np.full((2, 4), 1e308))
