"""Montana's equations of contact, compared with geometry: poses from coordinates, and known motions of rolling spheres."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

import sarrus
from sarrus.rolling import CylinderSurface, Patch, PlaneSurface, RollingContact, SphereSurface, Surface, TorusSurface

NAN = float("nan")


def wavy(u):
    """A patch whose coordinate lines intersect at any angle."""
    x, y = u[..., 0] + 0.3 * u[..., 1], u[..., 1]
    return np.stack([x, y, 0.05 * np.sin(2 * x) * np.cos(3 * y)], axis=-1)


def sheared_ball(u):
    """A sphere of 0.3 m with a linear combination of longitude and latitude as coordinates."""
    return SphereSurface(0.3).point(np.stack([u[..., 0] + 0.5 * u[..., 1], u[..., 1] - 0.2 * u[..., 0] ** 2], axis=-1))


SURFACES = {
    "plane": PlaneSurface(),
    "sphere": SphereSurface(0.3),
    "hollow sphere": SphereSurface(-2.0),
    "cylinder": CylinderSurface(0.4),
    "hollow cylinder": CylinderSurface(-1.5),
    "torus": TorusSurface(1.0, 0.2),
    "hollow torus": TorusSurface(3.0, -1.1),
    "patch": Patch(wavy),
    "sheared": Patch(sheared_ball),
}
BALL = RollingContact(PlaneSurface(), SphereSurface(1.0))
# pairs that are not flat against each other
PAIRS = [
    (one, two)
    for one in SURFACES
    for two in SURFACES
    if not {one, two} <= {"plane", "cylinder", "hollow cylinder"}
    and not (one.startswith("hollow") and two.startswith("hollow"))
]


def drawn(*names):
    """Return random numbers that do not depend on other tests."""
    return np.random.default_rng([ord(letter) for letter in " ".join(names)])


def state(*names):
    """Return coordinates of a contact away from poles, and a velocity."""
    rng = drawn(*names)
    return np.r_[rng.uniform(-0.8, 0.8, 4), rng.uniform(-3, 3)], rng.normal(size=5)


def twist(contact, eta, rate):
    """Return the [angular; linear] velocity of the second body at the contact relative to the first, in its frame: from poses alone."""
    h = 1e-4

    def pose(k):
        return contact.pose(eta + k * h * rate)

    dot = (8 * (pose(1) - pose(-1)) - pose(2) + pose(-2)) / (12 * h)
    X, here = pose(0), contact.first.geometry(eta[:2])
    spin = dot[:3, :3] @ X[:3, :3].T
    w = np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2
    return np.r_[here.frame.T @ w, here.frame.T @ (dot[:3, 3] + np.cross(w, here.point - X[:3, 3]))]


@pytest.mark.parametrize("name", SURFACES)
def test_frames_metrics_and_curvatures_are_what_points_do(name):
    """Five-point differences: M, K and T du are the motion of the point, and rotations of the normal and of the frame about it."""
    surface, h = SURFACES[name], 1e-4
    rng = drawn(name)
    u, du = rng.uniform(-0.8, 0.8, 2), rng.normal(size=2)
    here = surface.geometry(u)
    assert_allclose(here.frame.T @ here.frame, np.eye(3), atol=1e-12)
    assert np.linalg.det(here.frame) == pytest.approx(1.0)

    def rate(what):
        def at(k):
            return getattr(surface.geometry(u + k * h * du), what)

        return (8 * (at(1) - at(-1)) - at(2) + at(-2)) / (12 * h)

    x, y, _ = here.frame.T
    gone = here.metric @ du
    assert_allclose(here.frame.T @ rate("point"), [*gone, 0.0], atol=1e-8)
    x_dot, _, z_dot = rate("frame").T
    assert_allclose([x @ z_dot, y @ z_dot], here.curvature @ gone, atol=1e-7)
    assert_allclose(y @ x_dot, here.torsion[0] @ gone, atol=1e-7)
    assert_allclose(here.curvature, here.curvature.T, atol=1e-7)


@pytest.mark.parametrize("hollow", [1.0, -1.0])
def test_normals_point_out_of_what_is_solid(hollow):
    """Away from the centre of a sphere, cylinder and tube, also behind the poles; towards it for hollow ones."""
    for u in drawn("normals").uniform(-3, 3, (20, 2)):
        for surface in (SphereSurface(0.3 * hollow), CylinderSurface(0.3 * hollow), TorusSurface(1.0, 0.3 * hollow)):
            here = surface.geometry(u)
            middle = np.array([0, 0, u[1]]) if isinstance(surface, CylinderSurface) else np.zeros(3)
            if surface == TorusSurface(1.0, 0.3 * hollow):
                middle = np.array([np.cos(u[0]), np.sin(u[0]), 0.0])
            assert_allclose(here.frame[:, 2], hollow * (here.point - middle) / 0.3, atol=1e-12)
            assert here.curvature.trace() * hollow > 0 or isinstance(surface, TorusSurface)


def test_known_curvatures():
    """A sphere's, from its definition; a torus' Gaussian curvature, cos b / (r (R + r cos b))."""
    b = 0.7
    sphere, torus = SphereSurface(0.5).geometry([0.2, b]), TorusSurface(1.0, 0.25).geometry([0.2, b])
    assert_allclose(sphere.metric, np.diag([0.5 * np.cos(b), 0.5]), atol=1e-12)
    assert_allclose(sphere.curvature, 2.0 * np.eye(2), atol=1e-12)
    assert_allclose(sphere.torsion, [[2.0 * np.tan(b), 0.0]], atol=1e-12)
    assert np.linalg.det(torus.curvature) == pytest.approx(np.cos(b) / (0.25 * (1.0 + 0.25 * np.cos(b))))


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_coordinates_move_as_the_bodies_do(one, two):
    """The pose of eta relative to the first body has the velocity of rates(), without a normal component."""
    contact = RollingContact(SURFACES[one], SURFACES[two])
    eta, velocity = state(one, two)
    rate = contact.rates(eta, velocity)
    size = 1 + np.abs(rate).max()
    assert_allclose(twist(contact, eta, rate), [*velocity[:3], *velocity[3:], 0.0], atol=1e-7 * size**2)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_points_coincide_and_normals_oppose(one, two):
    contact = RollingContact(SURFACES[one], SURFACES[two])
    eta, _ = state(one, two)
    X, first, second = contact.pose(eta), contact.first.geometry(eta[:2]), contact.second.geometry(eta[2:4])
    assert_allclose(X[:3, :3] @ second.point + X[:3, 3], first.point, atol=1e-12)
    assert_allclose(X[:3, :3] @ second.frame[:, 2], -first.frame[:, 2], atol=1e-12)
    x = first.frame.T @ X[:3, :3] @ second.frame[:, 0]
    assert_allclose(x, [np.cos(eta[4]), -np.sin(eta[4]), 0.0], atol=1e-12)


@pytest.mark.parametrize(("one", "two"), PAIRS[::3])
def test_either_body_may_come_first(one, two):
    """The same motion, seen from the other body."""
    eta, velocity = state(one, two)
    there, back = RollingContact(SURFACES[one], SURFACES[two]), RollingContact(SURFACES[two], SURFACES[one])
    swapped = eta[[2, 3, 0, 1, 4]]
    assert_allclose(back.pose(swapped), np.linalg.inv(there.pose(eta)), atol=1e-12)
    c, s = np.cos(eta[4]), np.sin(eta[4])
    into = np.array([[c, -s, 0], [-s, -c, 0], [0, 0, -1]])
    seen = -np.r_[into @ velocity[:3], (into @ [*velocity[3:], 0.0])[:2]]
    rate = there.rates(eta, velocity)
    assert_allclose(back.rates(swapped, seen), rate[[2, 3, 0, 1, 4]], atol=1e-9 * (1 + np.abs(rate).max()))


def test_a_motion_does_not_depend_on_coordinates():
    """A sphere in longitude and latitude, and in a combination of them by differences, moves equally under equal forces."""
    common = (
        RollingContact(TorusSurface(1.0, 0.4), SphereSurface(0.3)),
        RollingContact(TorusSurface(1.0, 0.4), SURFACES["sheared"]),
    )
    u = np.array([0.2, 0.3])
    eta = np.array([0.1, 0.4, u[0] + 0.5 * u[1], u[1] - 0.2 * u[0] ** 2, 0.6]), np.array([0.1, 0.4, *u, 0.0])
    # psi is from the x axes, which differ
    turned = SphereSurface(0.3).geometry(eta[0][2:4]).frame.T @ SURFACES["sheared"].geometry(u).frame[:, 0]
    eta[1][4] = 0.6 + np.arctan2(turned[1], turned[0])
    assert_allclose(common[1].pose(eta[1]), common[0].pose(eta[0]), atol=1e-9)

    def plan(t, eta):
        return [0.3 * np.cos(t), 0.5, 0.2, 0.02 * np.sin(t), 0.01]

    paths = [
        contact.motion(start, plan, [0.0, 0.5, 1.0], tolerance=1e-10)
        for contact, start in zip(common, eta, strict=True)
    ]
    assert_allclose(common[1].pose(paths[1]), common[0].pose(paths[0]), atol=1e-7)


def test_a_ball_rolls_on_a_plane_as_turns_about_its_middle():
    """Around a square with sides of one radian: Rx(1) Ry(-1) Rx(-1) Ry(1)."""
    ball, eta = RollingContact(PlaneSurface(), SphereSurface(0.1)), np.array([0.0, 0.0, 0.3, 0.2, 0.5])
    before = ball.pose(eta)[:3, :3]
    for side in ((0.1, 0.0), (0.0, 0.1), (-0.1, 0.0), (0.0, -0.1)):
        eta = ball.motion(eta, lambda t, eta, side=side: ball.along(eta, side), [0.0, 1.0], tolerance=1e-7)[-1]
    turns = [Rotation.from_euler(*turn).as_matrix() for turn in (("x", 1.0), ("y", -1.0), ("x", -1.0), ("y", 1.0))]
    known = np.linalg.multi_dot(turns)
    assert_allclose(eta[:2], 0.0, atol=1e-6)
    assert_allclose(ball.pose(eta)[:3, :3] @ before.T, known, atol=1e-6)
    assert_allclose(ball.pose(eta)[:3, 3], [0.0, 0.0, 0.1], atol=1e-6)


def test_holonomy_is_the_area_on_the_ball():
    """The contact follows a closed curve on a sphere that rolls without spin: the rotation is the enclosed area over the squared radius."""
    ball = RollingContact(SphereSurface(0.1), PlaneSurface())

    def curve(t):
        return np.array([0.5 * np.cos(t), 0.4 + 0.3 * np.sin(t)])

    def plan(t, eta):
        return ball.along(eta, [-0.5 * np.sin(t), 0.3 * np.cos(t)])

    path = ball.motion([*curve(0.0), 0.0, 0.0, 0.0], plan, np.linspace(0.0, 2 * np.pi, 20))
    assert_allclose(path[-1, :2], curve(0.0), atol=1e-9)
    t = np.linspace(0.0, 2 * np.pi, 201)[:-1]  # the trapezoidal rule on a smooth period is exact to rounding
    area = (
        np.mean(np.sin(0.4 + 0.3 * np.sin(t)) * 0.5 * np.sin(t)) * 2 * np.pi
    )  # - integral of sin(latitude) d(longitude)
    assert 0.3 < area < 0.5
    assert path[-1, 4] == pytest.approx(-area, abs=1e-8)


def test_a_ball_in_a_bowl():
    """Pure rolling: the centre moves on a sphere with the difference of the radii, with the angular velocity times its radius."""
    contact, eta = RollingContact(SphereSurface(-1.0), SphereSurface(0.2)), np.array([0.3, -0.9, 0.1, 0.2, 0.4])
    velocity = np.array([0.7, -0.4, 0.0, 0.0, 0.0])
    assert np.linalg.norm(contact.pose(eta)[:3, 3]) == pytest.approx(0.8)
    rate, h = contact.rates(eta, velocity), 1e-5
    fast = (contact.pose(eta + h * rate) - contact.pose(eta - h * rate))[:3, 3] / (2 * h)
    assert np.linalg.norm(fast) == pytest.approx(0.2 * np.hypot(0.7, 0.4), rel=1e-8)


def test_along_is_the_inverse_of_rates():
    contact = RollingContact(SURFACES["patch"], SphereSurface(0.3))
    eta, _ = state("along")
    velocity = contact.along(eta, [0.3, -0.2], spin=0.4, sliding=[0.1, 0.05])
    assert_allclose(velocity[2:], [0.4, 0.1, 0.05])
    assert_allclose(contact.rates(eta, velocity)[:2], [0.3, -0.2], atol=1e-9)


@pytest.mark.parametrize(("one", "two"), PAIRS[::4])
def test_contacts_are_found_again(one, two):
    """Contacts are recovered from the pose alone, and from one that is lifted along the normal."""
    contact = RollingContact(SURFACES[one], SURFACES[two])
    eta, _ = state(one, two)
    X, away = contact.pose(eta), np.array([0.02, -0.01, 0.03, 0.01, 0.1])
    found, gap = contact.locate(X, eta + away)
    # contacts that nearly fit each other leave their place open
    assert_allclose(contact.pose(found), X, atol=1e-7)
    assert abs(gap) < 1e-9
    X[:3, 3] += 0.001 * contact.first.geometry(eta[:2]).frame[:, 2]
    found, gap = contact.locate(X, eta)
    assert gap == pytest.approx(0.001, abs=1e-9)
    assert_allclose(found, eta, atol=1e-6)


@pytest.mark.parametrize("spin", [True, False])
def test_it_is_what_the_constraint_of_rolling_does(spin):
    """A sphere on a sphere moves equally by add_rolling and by its contact coordinates."""
    b = sarrus.Builder("ball on ball", gravity=(0, 0, 0))
    b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.2))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    b.add_rolling("contact", "ball", radius=0.2, on_radius=0.5, spin=spin)
    robot, contact = b.build(), RollingContact(SphereSurface(0.5), SphereSurface(0.2))
    eta = np.array([0.1, 0.3, -0.2, 0.4, 0.7])
    X = contact.pose(eta)
    q = np.r_[Rotation.from_matrix(X[:3, :3]).as_quat(), X[:3, 3]]
    v = robot.project_velocity(q, drawn("rolling").normal(size=6))
    w = contact.first.geometry(eta[:2]).frame.T @ X[:3, :3] @ v[:3]
    assert spin == (abs(w[2]) > 1e-12)
    h = 1e-4
    moved = contact.pose(eta + h * contact.rates(eta, [*w, 0.0, 0.0]))
    known = robot.pose(robot.integrate(q, h * v), "ball")
    # of Euler's step: some times (h v)^2, and a little more towards the pole
    assert_allclose(moved, known, atol=10 * (h * np.abs(v).max()) ** 2)


def test_many_states_are_as_one_and_a_bad_one_is_nan_alone():
    contact = RollingContact(TorusSurface(1.0, 0.3), SphereSurface(0.2))
    etas, velocities = (np.array(x) for x in zip(*(state("many", str(k)) for k in range(5)), strict=True))
    etas[2, 3] = np.pi / 2
    rates, poses = contact.rates(etas, velocities), contact.pose(etas)
    for k in (0, 1, 3, 4):
        assert_allclose(rates[k], contact.rates(etas[k], velocities[k]), rtol=1e-13)
        assert_allclose(poses[k], contact.pose(etas[k]), atol=1e-14)
    assert np.isnan(rates[2, :2]).all()


def test_a_radius_of_few_digits():
    assert CylinderSurface(np.float16(0.5)).radius == 0.5  # with which 1e50 is no number


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: SphereSurface(0.0), sarrus.ModelError, "must not be zero"),
        (lambda: TorusSurface(0.1, 1e60), sarrus.ModelError, "between 1e-50 and 1e.50 m"),
        (lambda: TorusSurface(1e-60, 0.1), sarrus.ModelError, "between 1e-50 and 1e.50 m"),
        (lambda: CylinderSurface(NAN), ValueError, "radius must be finite"),
        (lambda: TorusSurface(-1.0, 0.2), sarrus.ModelError, "ring"),
        (lambda: Patch(3), sarrus.ModelError, "place must be a function"),
        (lambda: Patch(wavy, 3), sarrus.ModelError, "slopes must be a function"),
        (lambda: Patch(lambda u: u).geometry([0.0, 0.0]), sarrus.ShapeError, "place returned"),
        (lambda: RollingContact(PlaneSurface(), 0.1), sarrus.ModelError, "second must be a surface"),
        (lambda: SphereSurface(1.0).geometry([0.0, np.pi / 2]), sarrus.StateError, "no frame at"),
        (lambda: SphereSurface(1.0).geometry([0.0]), sarrus.ShapeError, "u has shape"),
        (
            lambda: RollingContact(PlaneSurface(), PlaneSurface()).rates(np.zeros(5), np.ones(5)),
            sarrus.StateError,
            "touch along a line",
        ),
        (
            lambda: RollingContact(PlaneSurface(), CylinderSurface(1.0)).rates(np.zeros(5), np.ones(5)),
            sarrus.StateError,
            "touch along a line",
        ),
        (
            lambda: RollingContact(SphereSurface(-1.0), SphereSurface(1.0)).rates(np.zeros(5), np.ones(5)),
            sarrus.StateError,
            "touch along",
        ),
        (
            lambda: BALL.rates(np.zeros(4), np.ones(5)),
            sarrus.ShapeError,
            "eta has shape",
        ),
        (
            lambda: BALL.rates(np.zeros(5), [NAN] * 5),
            sarrus.StateError,
            "velocity must be finite",
        ),
        (
            lambda: BALL.motion(np.zeros(5), lambda t, eta: [1.0], [0.0, 1.0]),
            sarrus.ShapeError,
            "plan",
        ),
        (
            lambda: BALL.motion(
                np.zeros(5), lambda t, eta: [float(t < 0.1234), 0, 0, 0, 0], [0.0, 1.0], tolerance=1e-12
            ),
            sarrus.IntegrationError,
            "no convergence within tolerance 1e-12 .* between t = 0 and 1 s.*path of the contact jumps",
        ),
        (
            lambda: BALL.motion(np.zeros(5), lambda t, eta: np.zeros(5), []),
            sarrus.ShapeError,
            "times",
        ),
        (
            lambda: BALL.locate(np.eye(3), np.zeros(5)),
            sarrus.ShapeError,
            "pose must be",
        ),
        (
            lambda: BALL.locate(NAN * np.eye(4), np.zeros(5)),
            sarrus.StateError,
            "pose must be finite",
        ),
        (
            lambda: BALL.locate(BALL.pose(np.zeros(5)), [0, 0, 3, 0.1, 0]),
            sarrus.StateError,
            "no pair of points with opposite normals",
        ),
        (lambda: Surface().geometry([0.0, 0.0]), NotImplementedError, "does not define first"),
        *((lambda s=s: s.first(0.1), sarrus.ShapeError, "u has shape") for s in SURFACES.values()),
        *((lambda s=s: s.side([[0.1]]), sarrus.ShapeError, "u has shape") for s in SURFACES.values()),
        *((lambda s=s: s.point({0: 1}), (TypeError, sarrus.ShapeError), "u must") for s in SURFACES.values()),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
