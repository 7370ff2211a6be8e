"""Disc cams against closed form: eccentric circles, harmonic lifts, and the same cam as a coupler."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import laws
from sarrus.cams import cam_profile
from sarrus.control import rest_to_rest
from sarrus.errors import ModelWarning

RADIUS, OFF_CENTRE = 0.04, 0.012  # of an eccentric circle [m]
ANGLES = np.linspace(0.0, 2.0 * np.pi, 361)
HARMONIC = laws.harmonic(-OFF_CENTRE, rate=1.0, phase=np.pi / 2, offset=OFF_CENTRE)


def circle_and_roller(roller, offset=0.0):
    """Return the lift of a roller on an eccentric circle, whose centre is below the axis at angle zero."""
    reach = RADIUS + roller
    x, y = offset - OFF_CENTRE * np.sin(ANGLES), -OFF_CENTRE * np.cos(ANGLES)
    height = y + np.sqrt(reach**2 - x**2)
    return laws.table(ANGLES, height - height[0], periodic=True), height[0]


def test_flat_follower_on_an_eccentric_circle():
    """s = e (1 - cos): the profile is a circle about a point at the distance e from the axis."""
    cam = cam_profile(HARMONIC, base_radius=RADIUS - OFF_CENTRE, follower="flat")
    assert_allclose(cam.curvature_radius, RADIUS, atol=1e-15)
    assert_allclose(np.linalg.norm(cam.points - [0.0, -OFF_CENTRE], axis=1), RADIUS, atol=1e-15)
    assert not cam.pressure_angle.any()
    assert_allclose(
        cam.points[:, 1] * np.cos(cam.angle) + cam.points[:, 0] * np.sin(cam.angle),
        RADIUS - OFF_CENTRE + cam.lift,
        atol=1e-15,
    )


@pytest.mark.parametrize("offset", [0.0, 0.01, -0.02])
def test_roller_on_an_eccentric_circle(offset):
    roller = 0.015
    lift, height = circle_and_roller(roller, offset)
    base = np.hypot(height, offset) - roller
    cam = cam_profile(lift, base_radius=base, roller_radius=roller, offset=offset)
    assert_allclose(np.linalg.norm(cam.points - [0.0, -OFF_CENTRE], axis=1), RADIUS, atol=1e-10)  # of the table
    assert_allclose(np.linalg.norm(cam.centers - [0.0, -OFF_CENTRE], axis=1), RADIUS + roller, atol=1e-10)
    assert_allclose(cam.curvature_radius, RADIUS, atol=1e-7)
    # the force acts along the line from the circle's centre to the roller's
    x = offset - OFF_CENTRE * np.sin(cam.angle)
    assert_allclose(np.sin(cam.pressure_angle), -x / (RADIUS + roller), atol=1e-9)


def test_jump_speed_of_a_harmonic_lift():
    """At the top m h/2 w^2 = k h + preload."""
    cam = cam_profile(HARMONIC, base_radius=0.03, roller_radius=0.01)
    m, k, f = 0.4, 2000.0, 15.0
    expected = np.sqrt((k * 2 * OFF_CENTRE + f) / (m * OFF_CENTRE))
    speed = cam.jump_speed(mass=m, stiffness=k, preload=f)
    assert_allclose(speed, expected, rtol=1e-9)
    force = cam.contact_force(speed, mass=m, stiffness=k, preload=f)
    assert abs(force.min()) < 1e-9 * force.max()
    assert cam.contact_force(1.01 * speed, mass=m, stiffness=k, preload=f).min() < 0.0


def test_jump_speed_of_pieces():
    """Parabolas with a jump of acceleration at the middle of the rise: the force is least there, after the jump."""
    half, h = np.pi / 2.0, 0.01
    c = h / 2.0 / half**2
    pieces = ((0.0, 0.0, c), (h / 2.0, 2.0 * c * half, -c), (h, 0.0, -c), (h / 2.0, -2.0 * c * half, c))
    lift = laws.Law(tuple(half * k for k in range(4)), pieces)
    cam = cam_profile(lift, base_radius=0.03, follower="flat")
    expected = np.sqrt((500.0 * h / 2.0 + 3.0) / (0.2 * 2.0 * c))
    assert_allclose(cam.jump_speed(mass=0.2, stiffness=500.0, preload=3.0), expected, rtol=1e-9)
    assert cam_profile(laws.polynomial(0.0), base_radius=0.1).jump_speed(mass=1.0) == np.inf


def test_force_is_that_of_the_mechanism():
    """The force of a cam at constant speed: the coupler's multiplier is its component along the follower."""
    lift = laws.table(
        np.linspace(0.0, 2.0 * np.pi, 10), [0.0, 0.001, 0.012, 0.02, 0.018, 0.009, 0.003, 0.0, 0.0, 0.0], periodic=True
    )
    b = sarrus.Builder("cam", gravity=(0.0, 0.0, -9.81))
    b.add_body("cam", sarrus.Inertia.sphere(1.0, 0.05))
    b.add_body("follower", sarrus.Inertia.sphere(0.3, 0.02))
    b.add_joint("shaft", sarrus.Revolute("y"), "ground", "cam", actuated=True, tree=True)
    b.add_joint("lift", sarrus.Prismatic("z", stiffness=800.0), "ground", "follower", tree=True)
    b.add_coupler("contact", {"lift": 1.0, "shaft": -lift})
    robot, speed = b.build(), 30.0
    cam = cam_profile(lift, base_radius=0.05, roller_radius=0.01, offset=0.005)
    q = robot.assemble(fixed={"shaft": cam.angle})
    v = robot.complete_velocity(q, {"shaft": np.full(len(q), speed)})
    a = robot.complete_acceleration(q, v, {"shaft": np.zeros(len(q))})
    torque = robot.actuator_efforts(q, v, a)
    tau = np.column_stack([torque, np.zeros(len(q))])
    along = robot.forward_dynamics(q, v, tau, return_reactions=True)[1].multipliers[:, 0]
    force = cam.contact_force(speed, mass=0.3, stiffness=800.0, preload=0.3 * 9.81)
    assert_allclose(force * np.cos(cam.pressure_angle), along, rtol=1e-11, atol=1e-11 * np.abs(along).max())


def test_undercut_is_reported():
    rise = rest_to_rest(0.0, 0.03, 0.8, begin=1.0) + rest_to_rest(0.0, -0.03, 0.8, begin=3.0)
    with pytest.warns(
        ModelWarning,
        match=r"the cam is undercut at .* degrees, where its radius of curvature is -.*: use a larger base_radius or a smaller",
    ):
        cam_profile(rise, base_radius=0.02, roller_radius=0.02)
    with pytest.warns(ModelWarning, match="undercut at .* use a larger base_radius"):
        cam_profile(rise, base_radius=0.02, follower="flat")
    assert (
        cam_profile(rise, base_radius=0.2, roller_radius=0.02).curvature_radius < 0.0
    ).any()  # concave is not undercut


BAD = {
    "a number": (lambda: cam_profile(0.1, base_radius=0.1), sarrus.ModelError, "lift must be a function of the angle.* got 0.1"),
    "open": (lambda: cam_profile(laws.polynomial(0.0, 0.01), base_radius=0.1), sarrus.ModelError, "equal at angles 0 and 2 pi; got 0 m and 0.06"),
    "follower": (lambda: cam_profile(HARMONIC, base_radius=0.1, follower="knife"), ValueError, "follower must be"),
    "radius": (lambda: cam_profile(HARMONIC, base_radius=-0.1), ValueError, "base_radius must be positive and finite; got -0.1"),
    "offset": (lambda: cam_profile(HARMONIC, base_radius=0.1, offset=0.2), sarrus.ModelError, "the offset less than both radii; got 0 m and 0.2 m"),
    "too low": (lambda: cam_profile(HARMONIC + -0.05, base_radius=0.03), sarrus.ModelError, "least height is -"),
    "mass": (lambda: cam_profile(HARMONIC, base_radius=0.1).jump_speed(mass=0.0), ValueError, "mass must be positive and finite; got 0.0"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    axes = cam_profile(HARMONIC, base_radius=0.03, roller_radius=0.01).plot()
    assert [line.get_label() for line in axes.lines][:2] == ["profile", "centre of the roller"]
    assert cam_profile(HARMONIC, base_radius=0.03, follower="flat").plot(axes) is axes
