"""Checks of the slow reference of closed chains: constraints, energy, and closed-form examples, which the library must also satisfy."""

import dataclasses

import numpy as np
import pytest

import sarrus
from sarrus.description import CouplerSpec, DistanceSpec, RollingSpec
from tests.core.test_against_oracle import assert_agrees
from tests.oracles import Closed
from tests.random_closed import ALL_CONSTRAINTS, random_closed
from tests.random_mechanisms import COORDINATE_JOINTS

# a few bodies, each turned and moved a few times
ROUNDING = 1e-12

# ---- closed forms ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["library", "oracle"])
def ask(request):
    """Return the functions of oracle and library, which are both compared with closed forms."""
    if request.param == "library":
        return sarrus.Mechanism
    return lambda description: Closed(description, closing=sarrus.Mechanism(description).loop_joints)


def with_constraints(builder, *specs):
    return dataclasses.replace(builder.build().description, constraints=specs)


def test_a_point_on_a_rod_is_a_pendulum(ask):
    """x'' = -lambda x/l, y'' = -g - lambda y/l with lambda = m (l w^2 + g cos); slides 4.6 with the sign corrected."""
    m, l, g, angle, w = 1.3, 0.8, 9.81, 1.1, -0.7
    b = sarrus.Builder(gravity=(0, -g, 0))
    b.add_body("slide")
    b.add_body("bob", sarrus.Inertia(m, (0, 0, 0), np.zeros((3, 3))))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "slide")
    b.add_joint("y", sarrus.Prismatic("y"), "slide", "bob")
    pendulum = ask(with_constraints(b, DistanceSpec("rod", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), l)))
    radial, along = np.array([np.sin(angle), -np.cos(angle)]), np.array([np.cos(angle), np.sin(angle)])
    a = pendulum.forward_dynamics(l * radial, l * w * along, np.zeros(2))
    expected = -g * np.sin(angle) * along - l * w * w * radial
    assert_agrees(a, expected, ROUNDING)


def test_a_rolling_disc_that_stands_upright(ask):
    """mls004: (I1) theta'' = tau, (I2 + m rho^2) phi'' = tau, x' = rho cos(theta) phi', y' = rho sin(theta) phi'."""
    m, steer, roll, radius = 2.0, 0.05, 0.1, 0.3
    theta, theta_rate, phi_rate, tau_theta, tau_phi = 0.2, 0.3, 1.0, 0.02, 0.5
    b = sarrus.Builder(gravity=(0, 0, -9.81))
    b.add_body("yoke")
    b.add_body("disc", sarrus.Inertia(m, (0, 0, 0), np.diag([steer, roll, steer])))
    b.add_joint("plane", sarrus.Gimbal("rz tx ty"), "ground", "yoke", at_parent=(0, 0, radius))
    b.add_joint("axle", sarrus.Revolute("y"), "yoke", "disc")
    spec = RollingSpec("floor", "disc", radius, (0, 0, 0), (0, 1, 0), "ground", (0, 0, 0), (0, 0, 1), None)
    disc = ask(with_constraints(b, spec))
    q = np.array([theta, 0.4, -0.2, 0.7])
    # the gimbal's tx, ty are along the turned axes: ahead (u) and aside (w), of which the centre's velocity is along the first
    x, y = q[1], q[2]
    v = np.array([theta_rate, radius * phi_rate + y * theta_rate, -x * theta_rate, phi_rate])
    a = disc.forward_dynamics(q, v, [tau_theta, 0, 0, tau_phi])
    phi_acceleration, theta_acceleration = tau_phi / (roll + m * radius**2), tau_theta / steer
    assert_agrees(
        a,
        np.array(
            [
                theta_acceleration,
                radius * phi_acceleration + v[2] * theta_rate + y * theta_acceleration,
                -v[1] * theta_rate - x * theta_acceleration,
                phi_acceleration,
            ]
        ),
        ROUNDING,
    )


def test_a_ball_in_a_bowl(ask):
    """A ball of radius r rolls in a hollow sphere of radius R: (1 + 2/5) (R - r) theta'' = -g sin(theta)."""
    m, r, R, g, angle = 0.7, 0.2, 1.5, 9.81, 0.4
    b = sarrus.Builder(gravity=(0, 0, -g))
    b.add_body("ball", sarrus.Inertia(m, (0, 0, 0), 0.4 * m * r * r * np.eye(3)))
    b.add_joint("free", sarrus.Free(), "ground", "ball")
    bowl = ask(with_constraints(b, RollingSpec("bowl", "ball", r, (0, 0, 0), None, "ground", (0, 0, 0), (0, 0, 1), -R)))
    q = np.array([0, 0, 0, 1, (R - r) * np.sin(angle), 0, -(R - r) * np.cos(angle)])
    a = bowl.forward_dynamics(q, np.zeros(6), np.zeros(6))
    theta = -g * np.sin(angle) / (1.4 * (R - r))
    along = (R - r) * theta * np.array([np.cos(angle), 0, np.sin(angle)])
    assert_agrees(a, np.array([0, (R - r) * theta / r, 0, *along]), ROUNDING)


def test_a_pair_of_gears(ask):
    """Two discs with q1 = -2 q0 have one effective inertia."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    for k, inertia in enumerate((0.3, 0.1)):
        b.add_body(f"gear{k}", sarrus.Inertia(1.0, (0, 0, 0), inertia * np.eye(3)))
        b.add_joint(f"shaft{k}", sarrus.Revolute("z"), "ground", f"gear{k}", at_parent=(k, 0, 0))
    gears = ask(with_constraints(b, CouplerSpec("teeth", (("shaft0", 0, (2.0,)), ("shaft1", 0, (1.0,))), 0.5)))
    a = gears.forward_dynamics([0.1, 0.3], [1.0, -2.0], [0.4, 0.3])
    alpha = (0.4 - 2 * 0.3) / (0.3 + 4 * 0.1)
    assert_agrees(a, np.array([alpha, -2 * alpha]), ROUNDING)


FOURBAR = {  # 003 III.B/C with D = 0.3 m, gravity, at t = 0.1 s: absolute angles, rates, accelerations, torque at the third link
    "theta": (1.7622456150284147, -0.3129426825007986, 2.402158740808271),
    "omega": (1.2576476415038758, -1.8153544126701007, 2.6615592294130215),
    "alpha": (-15.999063320318934, 1.7839563757484729, -12.150021440786835),
}


def test_a_four_bar_with_a_closed_form(ask):
    """The loop has two equations in three angles; motion and motor torque follow from Lagrange's equations with multipliers."""
    L, m, inertia, D, g = 0.2, 0.628, 2.11e-3, 0.3, 9.81
    b = sarrus.Builder(gravity=(0, -g, 0))
    link = sarrus.Inertia(m, (L / 2, 0, 0), inertia * np.eye(3))
    for name in "crank", "coupler", "rocker":
        b.add_body(name, link)
    b.add_joint("q1", sarrus.Revolute("z"), "ground", "crank", tree=True)
    b.add_joint("q2", sarrus.Revolute("z"), "crank", "coupler", at_parent=(L, 0, 0), tree=True)
    b.add_joint("q3", sarrus.Revolute("z"), "ground", "rocker", at_parent=(D, 0, 0), tree=True)
    b.add_joint("pin", sarrus.Revolute("z"), "coupler", "rocker", at_parent=(L, 0, 0), at_child=(L, 0, 0), loop=True)
    fourbar = ask(b.build().description)
    relative = np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]])
    theta, omega, alpha = (np.array(FOURBAR[name]) for name in ("theta", "omega", "alpha"))
    # the published ones close the loop to all their digits
    c, s = np.cos(theta), np.sin(theta)
    assert np.allclose(L * (c[0] + c[1] - c[2]), D, atol=1e-14) and np.allclose(s[0] + s[1] - s[2], 0, atol=1e-14)
    # power: theta_3's torque does all of the work of the three links' inertia and weight
    mass = np.array(
        [
            [inertia + m * L * L / 4 + m * L * L, m * L * L / 2 * np.cos(theta[0] - theta[1]), 0],
            [m * L * L / 2 * np.cos(theta[0] - theta[1]), inertia + m * L * L / 4, 0],
            [0, 0, inertia + m * L * L / 4],
        ]
    )
    sine = m * L * L / 2 * np.sin(theta[0] - theta[1])
    bias = np.array([sine * omega[1] ** 2, -sine * omega[0] ** 2, 0])
    weight = m * g * L * c * np.array([1.5, 0.5, 0.5])
    tau = omega @ (mass @ alpha + bias + weight) / omega[2]
    a = fourbar.forward_dynamics(relative @ theta, relative @ omega, [0, 0, tau])
    assert_agrees(a, relative @ alpha, 1e-11)


# ---- the oracle itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL_CONSTRAINTS)
def test_the_oracle_stays_on_its_constraints(kind):
    """Along q + v h + a h^2/2 the residual is of third order in h: half of h gives an eighth."""
    for seed in range(2):
        closed = random_closed(seed, bodies=4, kinds=(kind,))
        oracle, (q, v, tau, time) = closed.oracle, closed.state
        assert np.abs(oracle.constraint_residual(q, time=time)).max(initial=0) < ROUNDING
        J, c, gamma = oracle.constraint_rows(q, v, time)
        assert_agrees(J @ v, c, ROUNDING)
        a = oracle.forward_dynamics(q, v, tau, time=time)
        assert_agrees(J @ a, gamma, ROUNDING)
        left = [
            np.abs(oracle.constraint_residual(oracle.integrate(q, h * v + h * h / 2 * a), time=time + h)).max(initial=0)
            for h in (2e-3, 1e-3)
        ]
        assert left[1] < left[0] / 6 + ROUNDING


def test_the_oracle_conserves_energy():
    """RK4 steps with the oracle's accelerations: half of h gives a sixteenth of the energy error, in the limit of small h."""
    closed = random_closed(4, bodies=5, joints=COORDINATE_JOINTS, kinds=("revolute", "distance", "disc"), floating=True)
    oracle = closed.oracle
    tau = np.zeros(oracle.nv)

    def energy_gained(h, steps):
        q, v = closed.q, closed.v
        energy = oracle.kinetic_energy(q, v) + oracle.potential_energy(q)
        for _ in range(steps):
            rates = []
            for share in (0, 0.5, 0.5, 1):
                dq, dv = rates[-1] if rates else (0 * q, 0 * v)
                at, w = q + share * h * dq, v + share * h * dv
                rates.append((oracle.coordinate_rate(at, w), oracle.forward_dynamics(at, w, tau)))
            dq, dv = (sum(c * r[k] for c, r in zip((1, 2, 2, 1), rates)) * h / 6 for k in (0, 1))
            q, v = q + dq, v + dv
        return oracle.kinetic_energy(q, v) + oracle.potential_energy(q) - energy

    coarse, fine = energy_gained(4e-3, 10), energy_gained(2e-3, 20)
    assert abs(fine) < abs(coarse) / 8 + 1e-12
    assert abs(coarse) < 1e-3
