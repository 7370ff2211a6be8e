"""Position analysis: loop closure from any configuration, all assembly modes, inverse kinematics of tools, and branches along paths."""

import itertools
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import mechanisms as gallery
from sarrus.analysis.closing import positions
from sarrus.laws import harmonic, polynomial
from tests.gallery import SHAKY
from tests.small_mechanisms import at, bars

# loops close to rounding: a few dozen eps, of lengths and angles of order one
CLOSED = 1e-12
# coordinates follow from closed loops by the inverse of J, of a norm below a hundred in the positions that are asked for here
KNOWN = 1e-12

GALLERY = {
    name: getattr(gallery, name)
    for name in gallery.__all__
    if name
    not in (
        "pendulum",
        "double_pendulum",
        "stanford_arm",
        "free_flyer",
        "macro_micro_arm",
        "quadruped",
        "six_axis_arm",
        "cable_platform",
        "human_arm",
        "sampler",
        "four_bar_ladder",
    )
} | {
    "ladder of welds": lambda: gallery.four_bar_ladder(4, closing="weld"),
    "ladder of pins": lambda: gallery.four_bar_ladder(8),
    "delta in the tree": lambda: gallery.delta(platform_free=False),
    "stewart in the tree": lambda: gallery.stewart(platform_free=False),
    "six-axis arm on a ball": lambda: gallery.six_axis_arm(sphere=0.2),
    "3-RRR with a platform": lambda: gallery.three_rrr(platform=0.1),
}
every = pytest.mark.parametrize("make", GALLERY.values(), ids=GALLERY)


def of(robot, q, name):
    """Return (...) a joint's only coordinate."""
    return q[..., robot.joint(name).q_slice][..., 0]


def open_by(robot, q, **time):
    return np.abs(robot.constraint_residual(q, **time)).max(initial=0.0)


# Points of the x-z plane are complex numbers, x + i z: a turn by q about y multiplies by exp(-i q).


def crossing(a, b, from_a, from_b, side):
    """Return the intersection of two circles: +1 to the left of the line from a to b, -1 to the right."""
    d = abs(b - a)
    along = (d**2 + from_a**2 - from_b**2) / (2 * d)
    return a + (along + 1j * side * np.sqrt(from_a**2 - along**2)) * (b - a) / d


def in_plane(pose):
    """Convert (..., 4, 4) or (..., 4) to complex numbers."""
    point = pose[..., :3, 3] if pose.shape[-2:] == (4, 4) else pose
    return point[..., 0] + 1j * point[..., 2]


def tip_of(robot, q, body, length):
    return in_plane(robot.pose(q, body) @ (length, 0.0, 0.0, 1.0))


# ---- assemble ------------------------------------------------------------------------------------------------------------------------


@every
def test_every_mechanism_closes_from_home_and_from_anywhere(make):
    robot = make()
    assert robot.nc > 0
    q = robot.assemble()
    assert_allclose(q, at(robot, robot.description.home), atol=1e-6)  # homes are given to rounding, and closed
    assert open_by(robot, q) < CLOSED
    turns_count = {name for spec in robot.description.constraints for name in spec.position_joints}  # to their couplers
    names = [name for name in robot.joints if robot.joint(name).kind == "Revolute" and name not in turns_count]
    turning = [robot.joint(name).q_slice for name in names]
    rng = np.random.default_rng(7)
    for reach in (0.1, 1.0, np.pi, np.pi, np.pi):
        start = robot.integrate(q, rng.uniform(-reach, reach, robot.nv))
        there = robot.assemble(start)
        assert open_by(robot, there) < CLOSED
        # joints need no more than half a turn to be anywhere
        assert all(np.abs(there[one] - start[one]) <= np.pi + CLOSED for one in turning)


@pytest.mark.parametrize("make", [gallery.four_bar, gallery.slider_crank, gallery.peaucellier])
def test_loops_close_to_rounding(make):
    """Loops close to rounding.

    Angles of two radians have digits of 2 eps, and the end of a chain of four is off by that times its lengths: up to 11 eps in one case of a
    hundred. Usually only the last digit differs.
    """
    robot = make()
    left = [open_by(robot, robot.assemble(near={"motor": motor})) for motor in np.linspace(-0.8, -0.2, 200)]
    assert np.median(left) < 2 * np.finfo(float).eps and max(left) < 16 * np.finfo(float).eps


@every
def test_what_closes_already_stays(make):
    robot = make()
    q = robot.assemble()
    assert_allclose(robot.assemble(q), q, rtol=0, atol=KNOWN)


@pytest.mark.parametrize(
    ("make", "fixed"),
    [
        (gallery.four_bar, {"motor": 2.0}),
        (gallery.four_bar, {"pivot": -1.6}),
        (gallery.slider_crank, {"guide": 0.9}),
        (gallery.five_bar, {"left_motor": -2.0, "right_motor": -1.1}),
        (gallery.scissor_lift, {"slide": 0.3}),
        (gallery.delta, {"motor1": 0.1, "motor2": 0.2, "motor3": 0.3}),
        (gallery.stewart, {f"leg{k}": 1.2 + 0.02 * k for k in range(1, 7)}),
        (gallery.stewart, {"float": [0.0, 0.1, 0.2, 0.97, 0.1, 0.05, 1.1]}),
    ],
)
def test_fixed_coordinates_are_kept(make, fixed):
    robot = make()
    q = robot.assemble(fixed=fixed)
    assert open_by(robot, q) < CLOSED
    for name, value in fixed.items():
        value = np.array(value, dtype=float)
        if name == "float":
            value[:4] /= np.linalg.norm(value[:4])
            assert_allclose(q[robot.joint(name).q_slice], value, rtol=0, atol=1e-15)  # made unit: an eps or two
        else:
            assert of(robot, q, name) == value


def test_near_chooses_between_answers():
    robot = gallery.four_bar()
    up, down = (crossing(0.4 * np.exp(-0.5j), 1.0, 1.1, 0.9, side) for side in (1, -1))
    for wanted in (up, down):
        rocker = -np.angle(wanted - 1.0)
        q = robot.assemble(
            near={"pivot": rocker + 0.1, "pin1": -np.angle(wanted - 0.4 * np.exp(-0.5j))}, fixed={"motor": 0.5}
        )
        assert_allclose(tip_of(robot, q, "rocker", 0.9), wanted, rtol=0, atol=KNOWN)
        # and so does a whole configuration
        again = robot.assemble(near=q + 1e-2, fixed={"motor": 0.5})
        assert_allclose(tip_of(robot, again, "rocker", 0.9), wanted, rtol=0, atol=KNOWN)


def test_coordinates_nearby_are_kept_if_the_loops_close_with_them():
    robot = gallery.five_bar()
    q = robot.assemble(near={"left_motor": -1.8}, fixed={"right_motor": -1.2})
    assert (of(robot, q, "left_motor"), of(robot, q, "right_motor")) == (-1.8, -1.2)
    assert open_by(robot, q) < CLOSED
    # the crank of a slider-crank reaches to 0.3 + 1.0 only
    robot = gallery.slider_crank()
    q = robot.assemble(near={"guide": 2.0})
    assert open_by(robot, q) < CLOSED
    assert 0.7 - KNOWN < of(robot, q, "guide") < 1.3 + KNOWN


def test_joint_limits_choose_and_turns_are_whole():
    """Two bars and the ground, all of 1 m: the knee is at 120 or -120 degrees, up to whole turns."""
    knee = 2 * np.pi / 3
    start = at(bars([1, 1], 1), {"pin0": 1.0, "pin1": -2.0})
    for limits, pin0, pin1 in (
        (None, np.pi / 3, -knee),
        ((0.0, np.pi), -np.pi / 3, knee),
        ((np.pi, 1.9 * np.pi), np.pi / 3, 2 * np.pi - knee),
        ((-2 * np.pi, -np.pi), -np.pi / 3, knee - 2 * np.pi),
    ):
        q = bars([1, 1], 1, limits={1: limits}).assemble(start)
        assert_allclose(q, [pin0, pin1], rtol=0, atol=KNOWN)
    # turns that nobody asked for are taken back, others stay
    assert_allclose(
        bars([1, 1], 1).assemble(start + 20 * np.pi), [np.pi / 3 + 20 * np.pi, 20 * np.pi - knee], atol=1e-10
    )


def test_prescribed_motion_depends_on_time():
    law = harmonic(0.8, 2.0, offset=0.5)
    robot = bars([0.4, 1.1, 0.9], 1.0, laws={0: law})
    for time in (0.0, 0.4, 3.0):
        q = robot.assemble(time=time)
        assert open_by(robot, q, time=time) < CLOSED
        assert_allclose(of(robot, q, "pin0"), 0.5 + 0.8 * np.sin(2.0 * time), rtol=0, atol=KNOWN)
    assert_array_equal(robot.assemble(), robot.assemble(time=0.0))
    # a motor that has run for long
    robot = bars([0.4, 1.1, 0.9], 1.0, laws={0: polynomial(0.5, 10.0)})
    assert of(robot, robot.assemble(time=100.0), "pin0") == pytest.approx(1000.5, rel=1e-15)


def test_tool_on_a_moving_frame():
    b = sarrus.Builder("arm that holds on to a conveyor")
    for k, length in enumerate((0.0, 1.0, 0.8)):
        b.add_body(f"link{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
        b.add_joint(
            f"pin{k}", sarrus.Revolute("y"), f"link{k - 1}" if k else "ground", f"link{k}", at_parent=(length, 0, 0)
        )
    b.add_prescribed_frame("belt", "link2", {"tx": polynomial(0.5, 0.2), "tz": 0.6, "ry": 0.3})
    robot = b.build()
    q = robot.assemble(time=1.5)
    turn = sarrus.Rotation.from_axis_angle("y", 0.3)  # which the displacement follows, as in a gimbal
    assert_allclose(robot.pose(q, "link2")[:3, :3], turn.matrix, rtol=0, atol=KNOWN)
    assert_allclose(robot.pose(q, "link2")[:3, 3], turn.matrix @ (0.8, 0.0, 0.6), rtol=0, atol=KNOWN)


def test_equally_near_answers_do_not_depend_on_the_seed():
    """From two stretched bars the triangle is beyond a saddle: only other initial guesses reach it, on either side, equally near."""
    robot = bars([1, 1], 1)
    answers = [robot.assemble([0.0, 0.0], seed=seed) for seed in range(8)]
    assert {tuple(q.round(9)) for q in answers} == {tuple(np.round([-np.pi / 3, 2 * np.pi / 3], 9))}
    assert_array_equal(answers, [robot.assemble([0.0, 0.0], seed=seed) for seed in range(8)])
    with pytest.raises(sarrus.AssemblyError, match=r"another initial guess is needed \(near=, starts=\)"):
        robot.assemble([0.0, 0.0], starts=0)


# ---- what does not close -------------------------------------------------------------------------------------------------------------


def test_lengths_that_cannot_close():
    """Three bars of 1 m cannot span 5 m: 2 m remain, twice the mean size of the bars."""
    with pytest.raises(
        sarrus.AssemblyError, match=r"'pin3' \(Revolute\) stays open by 2 times the mechanism's length.*lengths"
    ):
        bars([1, 1, 1], 5).assemble()
    assert bars([1, 1, 1], 5).assembly_modes(fixed={"pin0": 0.0}) == []


def test_the_loop_that_stays_open_is_named():
    b = sarrus.Builder("two rods between carts")
    for name in ("left", "right"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(name, sarrus.Prismatic("x", limits=(-5, 5)), "ground", name)
    b.add_distance("good", ("left", (0, 0, 1)), ("ground", (0, 0, 0)), length=1.5)
    b.add_distance("short", ("right", (0, 0, 1)), ("ground", (0, 0, 0)), length=0.5)
    with pytest.raises(sarrus.AssemblyError, match=r"'short' .Distance. stays open"):
        b.build().assemble()


def test_fixed_coordinates_that_contradict():
    robot = gallery.four_bar()
    with pytest.raises(
        sarrus.AssemblyError, match=r"'pin2'.*'motor', 'pivot' may move: their fixed coordinates contradict"
    ):
        robot.assemble(fixed={"motor": 0.5, "pivot": 0.5})
    with pytest.raises(sarrus.AssemblyError, match=r"'pin2'.*'pivot' may move"):
        robot.assemble(fixed={"pivot": 0.0})  # the crank would have to reach from 0 to 1.9


def test_prescriptions_that_contradict():
    robot = bars([0.4, 1.1, 0.9], 1.0, laws={0: 0.5, 1: 0.0, 2: 0.0})
    with pytest.raises(sarrus.AssemblyError, match="these constraints contradict one another"):
        robot.assemble()


def test_parts_that_nearly_fit():
    robot = bars([1, 1], 2 + 1e-6)
    with pytest.raises(sarrus.AssemblyError, match=r"if the remaining error comes from rounded numbers.*tolerance="):
        robot.assemble()
    assert open_by(robot, robot.assemble(tolerance=1e-5)) == pytest.approx(1e-6, rel=1e-3)


ROUNDED = """<mujoco><worldbody><body name="crank"><joint name="motor" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
<body name="coupler" pos=".4 0 0"><joint name="pin1" axis="0 1 0"/><geom size=".1" pos=".5 0 0"/><site name="s" pos="1.1 {} 0"/></body></body>
<body name="rocker" pos="1 0 0"><joint name="pivot" axis="0 1 0"/><geom size=".1" pos=".4 0 0"/><site name="t" pos=".9 0 0"/></body></worldbody>
<equality><connect name="pin2" site1="s" site2="t"/></equality></mujoco>"""


@pytest.mark.parametrize("off", ["1e-8", "2e-7", "-2e-7"])
def test_the_cure_of_loops_that_a_file_rounds_is_named(off):
    """A file as onshape-to-robot writes it: after the cure in the error, all functions work."""
    robot = sarrus.loads(ROUNDED.format(off))
    with pytest.raises(
        sarrus.AssemblyError, match=r"'pin2' .* stays open.*sarrus\.without_redundant_constraints\(robot\)"
    ):
        robot.assemble()
    with pytest.raises(sarrus.AssemblyError, match=r"sarrus\.without_redundant_constraints\(robot\)"):
        robot.follow({"motor": [0.3, 0.4]})
    with pytest.raises(
        sarrus.StateError, match=r"'pin2' still has an error .* use assemble\(\), which searches farther"
    ):
        robot.project_configuration(robot.assemble(tolerance=1e-6))
    loose = sarrus.without_redundant_constraints(robot)
    q = loose.assemble()
    assert loose.mobility(q).degrees_of_freedom == 1 and open_by(loose, loose.project_configuration(q)) < 1e-12
    assert sarrus.simulate(loose, q, np.zeros(loose.nv), 0.01).status == "finished"
    assert loose.follow({"motor": q[0] + np.linspace(0, 0.3, 4)}, near=q).shape == (4, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"fixed": {"motr": 0.5}}, sarrus.NameNotFoundError, "did you mean 'motor'"),
        ({"near": {"motr": 0.5}}, sarrus.NameNotFoundError, "did you mean 'motor'"),
        ({"fixed": dict.fromkeys(["motor", "pin1", "pin2", "pivot"], 0.5)}, sarrus.ModelError, "cannot all be fixed"),
        ({"fixed": {"motor": [0.5, 0.6]}, "near": np.zeros((3, 3))}, sarrus.ShapeError, "do not broadcast"),
        ({"fixed": {"motor": np.nan}}, sarrus.StateError, "'motor' must be finite; got .nan"),
        ({"fixed": [0.5]}, TypeError, "mapping"),
        ({"near": [0.0, 0.0]}, sarrus.ShapeError, r"near has shape \(2,\).*\(\.\.\., 3\)"),
        ({"near": np.zeros((2, 4))}, sarrus.ShapeError, r"near has shape \(2, 4\)"),
        ({"near": [0.0, np.inf, 0.0]}, sarrus.StateError, "inf"),
    ],
)
def test_bad_input(arguments, error, text):
    with pytest.raises(error, match=text):
        gallery.four_bar().assemble(**arguments)


def test_coordinates_that_are_no_rotation():
    with pytest.raises(sarrus.StateError, match="quaternion"):
        gallery.stewart().assemble(fixed={"float": np.zeros(7)})


# ---- assembly modes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("motor", [-2.0, 0.5, 3.0])
def test_four_bar_has_two_modes(motor):
    robot = gallery.four_bar()
    modes = robot.assembly_modes(fixed={"motor": motor})
    assert len(modes) == 2
    knee = 0.4 * np.exp(-1j * motor)
    found = sorted((tip_of(robot, q, "rocker", 0.9) for q in modes), key=np.imag)
    assert_allclose(
        found, sorted((crossing(knee, 1.0, 1.1, 0.9, side) for side in (1, -1)), key=np.imag), rtol=0, atol=KNOWN
    )
    for q in modes:
        assert of(robot, q, "motor") == motor
        assert open_by(robot, q) < CLOSED


def test_the_mode_nearest_to_the_home_comes_first():
    """With this number of initial guesses the last result is far away."""
    robot = gallery.four_bar()
    for motor in np.arange(-3.0, 3.0):
        home = at(robot, dict(robot.description.home) | {"motor": motor})
        far = [
            np.linalg.norm(robot.difference(home, q))
            for q in robot.assembly_modes(fixed={"motor": motor}, attempts=102)
        ]
        assert far == sorted(far)


def test_five_bar_has_two_modes():
    robot = gallery.five_bar()
    modes = robot.assembly_modes(fixed={"left_motor": -1.9, "right_motor": -1.0})
    elbows = 0.3 * np.exp(1.9j), 0.4 + 0.3 * np.exp(1.0j)
    found = sorted((in_plane(robot.pose(q, "tip")) for q in modes), key=np.imag)
    assert_allclose(
        found, sorted((crossing(*elbows, 0.5, 0.5, side) for side in (1, -1)), key=np.imag), rtol=0, atol=KNOWN
    )


def test_three_rrr_in_a_point_has_four_modes():
    """Two chains intersect in two points, and the third chain reaches each with its elbow on either side."""
    robot = gallery.three_rrr()
    q = robot.assemble()
    modes = robot.assembly_modes(fixed={name: of(robot, q, name) for name in ("base1", "base2")})
    points = {tuple(robot.pose(q, "tip")[:2, 3].round(9)) for q in modes}
    assert (len(modes), len(points)) == (4, 2)


def test_modes_of_three_rrr_with_a_platform():
    """As many modes as the platform's angle has roots; its centre follows from the angle by linear differences of circles."""
    robot = gallery.three_rrr(platform=0.1)
    home = robot.assemble()
    fixed = {f"base{k}": of(robot, home, f"base{k}") for k in (1, 2, 3)}
    elbows = [complex(*robot.pose(home, f"lower{k}")[:2, 3]) for k in (1, 2, 3)]
    corners = np.array([0.0, 0.5, 0.5 * np.exp(1j * np.pi / 3)])
    pins = 0.1 * (corners - corners.mean()) / abs(corners - corners.mean())

    def miss(angle):
        centers = (
            np.array(elbows) - np.exp(1j * angle) * pins
        )  # of the circles about which the middle turns, all of 0.3 m
        rows = np.array([[(centers[k] - centers[0]).real, (centers[k] - centers[0]).imag] for k in (1, 2)])
        middle = np.linalg.solve(2 * rows, abs(centers[1:]) ** 2 - abs(centers[0]) ** 2)
        return np.hypot(*(middle - (centers[0].real, centers[0].imag))) ** 2 - 0.3**2

    angles = np.linspace(-np.pi, np.pi, 2001) + 1e-4
    misses = np.array([miss(angle) for angle in angles])
    # where the determinant changes sign the miss has a pole, and goes to plus infinity on both sides
    roots = angles[:-1][misses[:-1] * misses[1:] < 0.0]
    modes = robot.assembly_modes(fixed=fixed)
    found = np.sort([np.arctan2(*robot.pose(q, "platform")[[1, 0], 0]) for q in modes])
    assert len(roots) >= 2
    assert_allclose(found, roots, rtol=0, atol=angles[1] - angles[0])


def test_modes_do_not_depend_on_the_seed():
    robot = gallery.three_rrr(platform=0.1)
    q = robot.assemble()
    fixed = {f"base{k}": of(robot, q, f"base{k}") for k in (1, 2, 3)}
    first, second = (robot.assembly_modes(fixed=fixed, seed=seed) for seed in (0, 1))
    assert_allclose(first, second, rtol=0, atol=1e-10)
    assert_array_equal(first, robot.assembly_modes(fixed=fixed, seed=0))


def test_modes_of_a_mechanism_that_still_moves():
    with pytest.raises(sarrus.ModelError, match=r"with no joint fixed 1 degrees of freedom remain.*fix more joints"):
        gallery.four_bar().assembly_modes()
    with pytest.raises(sarrus.ModelError, match="with 'left_motor' fixed 1 degrees of freedom remain"):
        gallery.five_bar().assembly_modes(fixed={"left_motor": -1.9})


# ---- inverse kinematics --------------------------------------------------------------------------------------------------------------


def delta_angles(point, *, base=0.2, arm=0.3, forearm=0.6, platform=0.06):
    """Clavel's robot: per arm, arm * (cos, -sin) and the forearm meet at the platform's corner, |corner - elbow| = forearm."""
    angles = []
    for k in range(3):
        c, s = np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)
        x, y, z = c * point[0] + s * point[1] + platform - base, c * point[1] - s * point[0], point[2]
        # x cos - z sin = (x^2 + y^2 + z^2 + arm^2 - forearm^2) / (2 arm)
        size, turn = np.hypot(x, z), np.arctan2(-z, x)
        away = np.arccos((x**2 + y**2 + z**2 + arm**2 - forearm**2) / (2 * arm * size))
        both = (np.array([turn - away, turn + away]) + np.pi) % (2 * np.pi) - np.pi
        angles.append(both[np.abs(both).argmin()])  # with the elbow outwards
    return np.array(angles)


@pytest.mark.parametrize("platform_free", [True, False])
@pytest.mark.parametrize("point", [(0.0, 0.0, -0.5), (0.05, 0.0, -0.5), (-0.1, 0.08, -0.6), (0.12, 0.15, -0.45)])
def test_delta(point, platform_free):
    robot = gallery.delta(platform_free=platform_free)
    q = robot.inverse_kinematics({"platform": point})
    assert open_by(robot, q) < CLOSED
    assert_allclose(robot.pose(q, "platform")[:3, 3], point, rtol=0, atol=KNOWN)
    assert_allclose([of(robot, q, f"motor{k}") for k in (1, 2, 3)], delta_angles(point), rtol=0, atol=KNOWN)


def stewart_legs(pose):
    """Return (..., 6) |p + R b - a|, with the feet a 1 m and the platform's corners b 0.5 m from the centre."""
    feet = np.radians([15, 105, 135, 225, 255, 345])
    tops = np.radians([45, 75, 165, 195, 285, 315])
    a = np.stack([np.cos(feet), np.sin(feet), 0 * feet], axis=-1)
    b = 0.5 * np.stack([np.cos(tops), np.sin(tops), 0 * tops], axis=-1)
    return np.linalg.norm(pose[..., None, :3, 3] + b @ np.swapaxes(pose[..., :3, :3], -1, -2) - a, axis=-1)


@pytest.mark.parametrize("as_matrix", [True, False])
def test_stewart_legs(as_matrix):
    robot = gallery.stewart(platform_free=as_matrix)
    for rpy, p in (((0, 0, 0), (0, 0, 1)), ((0.1, -0.2, 0.3), (0.1, 0.05, 1.1)), ((-0.3, 0.1, -0.4), (-0.2, 0.2, 0.9))):
        place = sarrus.Transform(sarrus.Rotation.from_rpy(*rpy), p)
        q = robot.inverse_kinematics({"platform": place.matrix if as_matrix else place})
        assert open_by(robot, q) < CLOSED
        assert_allclose(robot.pose(q, "platform"), place.matrix, rtol=0, atol=KNOWN)
        legs = [of(robot, q, f"leg{k}") for k in range(1, 7)]
        assert_allclose(legs, stewart_legs(place.matrix), rtol=0, atol=KNOWN)


def test_frame_of_a_planar_mechanism():
    robot = gallery.five_bar()
    goal = 0.15 + 0.5j
    q = robot.inverse_kinematics({"tip": (goal.real, 0.0, goal.imag)})
    assert_allclose(in_plane(robot.pose(q, "tip")), goal, rtol=0, atol=KNOWN)
    cranks = [tip_of(robot, q, "left_crank", 0.3), tip_of(robot, q, "right_crank", 0.3)]
    for elbow, axis in zip(cranks, (0.0, 0.4), strict=True):
        ways = [crossing(axis, goal, 0.3, 0.5, side) for side in (1, -1)]
        assert min(abs(elbow - way) for way in ways) < KNOWN


def test_open_chain():
    """An open chain: the pose of the last link of a double pendulum determines both angles, up to whole turns."""
    robot = gallery.double_pendulum()
    tool = robot.pose([0.4, 0.9], robot.bodies[-1])
    assert_allclose(robot.inverse_kinematics({robot.bodies[-1]: tool}), [0.4, 0.9], rtol=0, atol=KNOWN)


def test_fixed_joints_while_a_frame_is_led():
    robot = gallery.three_rrr(platform=0.1)
    home = robot.assemble()
    angle, point = of(robot, home, "base1") + 0.1, (0.26, 0.15, 0.0)
    fixed = robot.inverse_kinematics({"platform": point}, fixed={"base1": angle})
    assert of(robot, fixed, "base1") == angle
    assert_allclose(robot.pose(fixed, "platform")[:3, 3], point, rtol=0, atol=KNOWN)
    # without it the platform turns less, or as much
    free = robot.inverse_kinematics({"platform": point})
    assert abs(of(robot, free, "base1") - angle) > 1e-3


def test_out_of_reach():
    """Straight down the Delta reaches the length of arm and forearm in line, from 0.14 m beside the centre."""
    robot = gallery.delta()
    with pytest.raises(sarrus.AssemblyError, match=r"frame 'platform' stays ([0-9.]+) m away") as caught:
        robot.inverse_kinematics({"platform": (0.0, 0.0, -5.0)})
    told = float(re.search("stays ([0-9.]+) m", str(caught.value))[1])
    assert told == pytest.approx(5.0 - np.sqrt(0.9**2 - 0.14**2), abs=0.006)  # three digits are printed
    turned = sarrus.Transform(sarrus.Rotation.from_rpy(0, 0, 0.5), (0, 0, -0.5))
    with pytest.raises(sarrus.AssemblyError, match=r"stays .* m and [0-9.]+ rad away"):
        robot.inverse_kinematics({"platform": turned})
    with pytest.raises(sarrus.AssemblyError, match=r"with 'motor1' fixed: .* frame 'platform' stays 0.203 m away"):
        robot.inverse_kinematics({"platform": (0.0, 0.0, -0.5)}, fixed={"motor1": -1.0})


@pytest.mark.parametrize(
    ("targets", "error", "text"),
    [
        (
            {"platfrm": (0, 0, 1)},
            sarrus.NameNotFoundError,
            "no frame is named 'platfrm'; did you mean 'platform'",
        ),
        ({"platform": (0, 0)}, sarrus.ShapeError, r"\(\.\.\., 4, 4\) or a point \(\.\.\., 3\); got shape \(2,\)"),
        ({"platform": (0, 0, np.inf)}, sarrus.StateError, "'platform' must be finite, or NaN for free components"),
        ({"ground": (0, 0, 1)}, sarrus.ModelError, "fixed to the ground"),
        ({"motor1": 0.5}, sarrus.ModelError, "'motor1' is a joint; expected a frame, pass joints to fixed="),
    ],
)
def test_bad_targets(targets, error, text):
    with pytest.raises(error, match=text):
        gallery.delta().inverse_kinematics(targets)


# ---- following a branch --------------------------------------------------------------------------------------------------------------


def test_coupler_curve():
    """Two revolutions, with steps of 4 degrees and of 40."""
    robot = gallery.four_bar()
    for count in (181, 19):
        motor = np.linspace(0.0, 4 * np.pi, count)
        q = robot.follow({"motor": motor})
        knee = 0.4 * np.exp(-1j * motor)
        tip = np.array([crossing(k, 1.0, 1.1, 0.9, 1) for k in knee])
        assert_array_equal(of(robot, q, "motor"), motor)
        assert_allclose(tip_of(robot, q, "coupler", 0.55), (knee + tip) / 2, rtol=0, atol=KNOWN)
        # a full turn of the crank takes the rocker to and fro
        assert_allclose(of(robot, q[count // 2], "pivot"), of(robot, q[0], "pivot"), rtol=0, atol=KNOWN)


@pytest.mark.parametrize("side", [1, -1])
def test_either_branch(side):
    robot = gallery.four_bar()
    motor = np.linspace(0.5, 0.5 - 2 * np.pi, 37)
    knee = 0.4 * np.exp(-1j * motor)
    tip = np.array([crossing(k, 1.0, 1.1, 0.9, side) for k in knee])
    start = {"pin1": -np.angle(tip[0] - knee[0]) - 0.5, "pivot": -np.angle(tip[0] - 1.0)}
    q = robot.follow({"motor": motor}, near=start)
    assert_allclose(tip_of(robot, q, "rocker", 0.9), tip, rtol=0, atol=KNOWN)


@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_parallelogram_goes_straight_on(offset):
    """At 0 and 180 degrees all bars are in line, and the coupler could fold.

    There the residual is quadratic in its angle, whose accuracy is therefore the square root of rounding.
    """
    robot = gallery.four_bar(0.5, 1.0, 0.5, 1.0)
    motor = np.linspace(0.5 * np.pi, 4.5 * np.pi, 41) + offset
    q = robot.follow({"motor": motor})
    known = 1e-7 if offset == 0.0 else KNOWN
    assert_allclose(tip_of(robot, q, "coupler", 1.0), 1.0 + 0.5 * np.exp(-1j * motor), rtol=0, atol=known)


@pytest.mark.parametrize("rocker", [0.51, 0.501, 0.5001, 0.500001])
def test_branches_that_nearly_meet(rocker):
    """A nearly exact parallelogram folds near the branch point, within a few rocker - crank of the dead position."""
    robot = gallery.four_bar(0.5, 1.0, rocker, 1.0)
    motor = np.linspace(-0.9, -0.9 - 4 * np.pi, 13)
    q = robot.follow({"motor": motor})
    knee = 0.5 * np.exp(-1j * motor)
    expected = [crossing(one, 1.0, 1.0, rocker, 1) for one in knee]
    assert_allclose(tip_of(robot, q, "coupler", 1.0), expected, rtol=0, atol=KNOWN)


def test_rhombus_goes_straight_on():
    """All bars equal: at 0 the knee is at the pivot, and coupler and rocker could rotate about it together."""
    robot = gallery.four_bar(1.0, 1.0, 1.0, 1.0)
    motor = np.linspace(-0.53, -0.53 - 4 * np.pi, 47)
    q = robot.follow({"motor": motor})
    assert_allclose(tip_of(robot, q, "coupler", 1.0), 1.0 + np.exp(-1j * motor), rtol=0, atol=KNOWN)


def test_dead_point():
    """Driven by its rocker, the four-bar moves until crank and coupler are in line, 1.5 m from pivot to tip."""
    robot = gallery.four_bar()
    limit = np.arccos((1.5**2 - 1.0 - 0.9**2) / (2 * 0.9))
    inputs = np.linspace(-1.6, -1.0, 31)
    with pytest.raises(sarrus.AssemblyError, match=r"dead point.*'motor'") as caught:
        robot.follow({"pivot": inputs})
    end = caught.value
    reached = inputs[inputs < -limit]
    assert_allclose(of(robot, end.path, "pivot"), reached, rtol=0, atol=0)
    assert max(open_by(robot, q) for q in end.path) < CLOSED
    # known as closely as steps were halved: to 1e-7 of the way from one input to the next
    assert of(robot, end.last_configuration, "pivot") == pytest.approx(-limit, abs=1e-7)
    assert_allclose(of(robot, end.last_configuration, "pin1"), 0.0, atol=1e-2)
    assert isinstance(end, sarrus.errors.PathTrackingError)
    again = pickle.loads(pickle.dumps(end))
    assert str(again) == str(end) and type(again) is type(end)
    assert_array_equal(again.path, end.path)
    assert_array_equal(again.last_configuration, end.last_configuration)


def test_a_path_that_ends_may_be_asked_for_with_its_status():
    robot, inputs = gallery.four_bar(), np.linspace(-1.6, -1.0, 31)
    with pytest.raises(sarrus.PathTrackingError) as end:
        robot.follow({"pivot": inputs})
    out = np.empty((31, 3))
    path, status = robot.follow({"pivot": inputs}, out=out, return_status=True)
    assert path is out and status == 2
    reached = len(end.value.path)
    assert_array_equal(path[:reached], end.value.path)
    assert np.isnan(path[reached:]).all()
    whole, status = robot.follow({"pivot": inputs[:reached]}, return_status=True)
    assert status == 0
    assert_array_equal(whole, path[:reached])


@pytest.mark.parametrize("joint", ["motor", "pin1", "pivot", "pin2"])
def test_configurations_do_not_depend_on_what_else_is_asked(joint):
    """For a subset of the inputs the configurations are equal; with further inputs in between they agree to rounding, for any input or loop joint."""
    robot = gallery.four_bar()
    turn = robot.follow({"motor": np.linspace(0.5, 2.0, 61)})
    way = robot.joint_states(turn).q[joint]
    whole = robot.follow({joint: way}, near=turn[0])
    assert_allclose(whole, turn, rtol=0, atol=KNOWN)
    assert_array_equal(robot.follow({joint: way[:17]}, near=turn[0]), whole[:17])
    for every in (2, 5, 30):
        assert_allclose(robot.follow({joint: way[::every]}, near=turn[0]), whole[::every], rtol=0, atol=KNOWN)
    assert_allclose(robot.follow({joint: way[::-1]}, near=turn[-1])[::-1], whole, rtol=0, atol=KNOWN)


@pytest.mark.parametrize("count", [50, 200, 3000])
def test_each_configuration_is_closed_to_rounding(count):
    """Also configurations for which no second step checked the first one's remainder."""
    rng = np.random.default_rng(3)
    for crank in rng.uniform(0.2, 0.79, 5):  # Grashof's: up to 1.1 + 0.9 - 1 - 0.2, where it folds
        robot = gallery.four_bar(crank, 1.1, 0.9, 1.0)
        motor = np.linspace(0.0, 2.0 * np.pi, count)
        q = robot.follow({"motor": motor})
        assert open_by(robot, q) < 3e-14
        knee = crank * np.exp(-1j * motor)
        tip = np.array([crossing(k, 1.0, 1.1, 0.9, 1) for k in knee])
        assert_allclose(tip_of(robot, q, "rocker", 0.9), tip, rtol=0, atol=KNOWN)


def test_what_inputs_leave_free_moves_as_little_as_it_can():
    """For a five-bar driven by one motor, the other coordinates take the smallest step that keeps the loop closed, at each input."""
    robot = gallery.five_bar()
    start = robot.assemble()
    way = of(robot, start, "left_motor") + 0.5 * np.sin(np.linspace(0.0, 3.0, 301))
    q = robot.follow({"left_motor": way}, near=start)
    moving = np.ones(robot.nv, bool)
    moving[robot.joint("left_motor").v_slice] = False
    for a, b in itertools.pairwise(q):
        step = robot.difference(a, b)[moving]
        middle = robot.integrate(a, 0.5 * robot.difference(a, b))
        _, s, V = np.linalg.svd(robot.constraint_jacobian(middle)[:, moving])
        free = V[np.sum(s > 1e-6 * s[0]) :]
        # second over first order, of steps of 5e-3
        assert np.abs(free @ step).max() < 2e-2 * np.linalg.norm(step) + 1e-12


def test_prescribed_motion_is_followed_in_time():
    law = harmonic(3.0, 1.0, offset=0.2)
    robot = bars([0.4, 1.1, 0.9], 1.0, laws={0: law})
    time = np.linspace(0.3, 7.3, 15)
    q = robot.follow({}, time=time)
    crank = 0.2 + 3.0 * np.sin(time)
    assert_allclose(of(robot, q, "pin0"), crank, rtol=0, atol=KNOWN)
    knee = 0.4 * np.exp(-1j * crank)
    tips = {side: np.array([crossing(k, 1.0, 1.1, 0.9, side) for k in knee]) for side in (1, -1)}
    tip = tip_of(robot, q, "bar1", 1.1)
    side = min(tips, key=lambda side: abs(tip[0] - tips[side][0]))
    assert_allclose(tip, tips[side], rtol=0, atol=KNOWN)


def test_input_and_time_together():
    """A time function drives one motor of a five-bar, the input the other."""
    b = sarrus.Builder("five bars")
    near, end = "ground", 0.0
    for k, length in enumerate((0.3, 0.5, 0.5, 0.3)):
        b.add_body(f"bar{k}", sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
        b.add_joint(f"pin{k}", sarrus.Revolute("y"), near, f"bar{k}", at_parent=(end, 0, 0))
        near, end = f"bar{k}", length
    b.add_joint("pin4", sarrus.Revolute("y"), near, "ground", at_parent=(0.3, 0, 0), at_child=(0.4, 0, 0), loop=True)
    b.add_prescribed_motion("drive", "pin0", polynomial(-1.8, 0.3))
    b.set_home({"pin0": -1.8, "pin1": 0.9, "pin2": 1.4, "pin3": 0.9})
    robot = b.build()
    start = robot.assemble()
    time = np.linspace(0.0, 1.0, 6)
    way = of(robot, start, "pin1") + 0.2 * time**2
    q = robot.follow({"pin1": way}, near=start, time=time)
    assert_array_equal(of(robot, q, "pin1"), way)
    assert_allclose(of(robot, q, "pin0"), -1.8 + 0.3 * time, rtol=0, atol=KNOWN)
    middle = 0.3 * np.exp(-1j * (-1.8 + 0.3 * time)) + 0.5 * np.exp(-1j * (-1.8 + 0.3 * time + way))
    assert_allclose(tip_of(robot, q, "bar1", 0.5), middle, rtol=0, atol=KNOWN)
    assert max(open_by(robot, one, time=t) for one, t in zip(q, time, strict=True)) < CLOSED


def test_inputs_of_several_coordinates():
    """A Stewart platform along a screw: its legs agree with the closed form everywhere."""
    robot = gallery.stewart()
    s = np.linspace(0.0, 1.0, 9)
    half = 0.25 * s
    zero = 0.0 * s
    way = np.stack([zero, zero, np.sin(half), np.cos(half), 0.1 * s, -0.05 * s, 1.0 + 0.2 * s], axis=-1)
    q = robot.follow({"float": way})
    assert_allclose(q[:, robot.joint("float").q_slice], way, rtol=0, atol=1e-15)
    legs = np.stack([of(robot, q, f"leg{k}") for k in range(1, 7)], axis=-1)
    assert_allclose(legs, stewart_legs(robot.pose(q, "platform")), rtol=0, atol=KNOWN)
    assert np.ptp(legs, axis=0).min() > 0.05


@pytest.mark.parametrize(
    ("inputs", "more", "error", "text"),
    [
        ({}, {}, sarrus.ShapeError, "at least one each; got none"),
        ([0.0, 1.0], {}, TypeError, "mapping"),
        ({"motor": []}, {}, sarrus.ShapeError, "at least one"),
        ({"motor": 0.5}, {}, sarrus.ShapeError, r"'motor' requires \(n, 1\) coordinates; got shape \(\)"),
        ({"motor": [0.0, np.nan]}, {}, sarrus.StateError, "finite"),
        ({"motor": [0.0, 1.0], "pivot": [0.0]}, {}, sarrus.ShapeError, "equally many values"),
        ({"motor": [0.0, 1.0]}, {"time": [0.0]}, sarrus.ShapeError, "equally many values"),
        ({"motor": [0.0, 1.0]}, {"time": [0.0, np.nan]}, sarrus.StateError, "finite times"),
        ({"pin2": [0.0, 1.0], "motor": [0.0]}, {}, sarrus.ShapeError, "equally many values"),
        ({"motr": [0.0, 1.0]}, {}, sarrus.NameNotFoundError, "did you mean 'motor'"),
    ],
)
def test_bad_inputs(inputs, more, error, text):
    with pytest.raises(error, match=text):
        gallery.four_bar().follow(inputs, **more)


# ---- projection and residual ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["mass", "euclidean"])
@pytest.mark.parametrize(
    "make", [gallery.five_bar, gallery.delta, gallery.stewart, gallery.biped_leg, gallery.peaucellier]
)
def test_projection_is_orthogonal_to_the_motions(make, metric):
    """The displacement along the possible velocities is of second order in its length."""
    robot = make()
    closed = robot.assemble()
    away = 1e-5 * np.random.default_rng(4).normal(size=robot.nv)
    q = robot.integrate(closed, away)
    there = robot.project_configuration(q, metric=metric)
    assert open_by(robot, there) < CLOSED
    step = robot.difference(q, there)
    assert np.linalg.norm(step) > 1e-6
    _, values, V = np.linalg.svd(robot.constraint_jacobian(there))
    motions = V[np.sum(values > 1e-6 * values[0]) :]
    mass = robot.mass_matrix(there)

    def along(weight):
        return np.linalg.norm(motions @ weight @ step) / np.linalg.norm(weight @ step)

    by_metric = {"mass": along(mass), "euclidean": along(np.eye(robot.nv))}
    other = by_metric["euclidean" if metric == "mass" else "mass"]
    # second over first order: steps of 1e-5, times curvatures of a few per metre or radian
    assert by_metric[metric] < 1e-3
    assert other > 0.02  # which the wrong metric would not pass


@pytest.mark.parametrize("make", [GALLERY[name] for name in GALLERY if name not in SHAKY])
def test_projection_closes_nearby(make):
    robot = make()
    closed = robot.assemble()
    rng = np.random.default_rng(2)
    q = robot.integrate(closed, 1e-3 * rng.normal(size=(5, robot.nv)))
    there = robot.project_configuration(q)
    assert np.abs(robot.constraint_residual(q)).max() > 1e-5
    assert np.abs(robot.constraint_residual(there)).max() < CLOSED
    assert np.abs(robot.difference(q, there)).max() < 0.1  # fingers are a few centimetres long


def test_projection_in_time():
    robot = bars([0.4, 1.1, 0.9], 1.0, laws={0: polynomial(0.5, 1.0)})
    q = robot.assemble(time=0.0)
    there = robot.project_configuration(np.stack([q, q]), time=[0.0, 0.01])
    assert_allclose(of(robot, there, "pin0"), [0.5, 0.51], rtol=0, atol=KNOWN)
    with pytest.raises(ValueError, match="metric must be 'mass' or 'euclidean'"):
        robot.project_configuration(q, metric="plain")


def test_residual_is_the_gap():
    """For a four-bar: from the coupler's tip to the rocker's, in the plane."""
    robot = gallery.four_bar()
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (7, 3))
    motor, pin, pivot = (of(robot, q, name) for name in ("motor", "pin1", "pivot"))
    gap = 0.4 * np.exp(-1j * motor) + 1.1 * np.exp(-1j * (motor + pin)) - 1.0 - 0.9 * np.exp(-1j * pivot)
    phi = robot.constraint_residual(q)
    assert phi.shape == (7, robot.nc)
    assert_allclose(np.linalg.norm(phi, axis=-1), abs(gap), rtol=0, atol=CLOSED)


@every
def test_rate_of_the_residual(make):
    """d phi / dt = J v on closed loops; central differences of step h have an error h^2 times derivatives of order ten."""
    robot = make()
    q, h = robot.assemble(), 1e-5
    v = np.random.default_rng(3).normal(size=robot.nv)
    rate = (
        robot.constraint_residual(robot.integrate(q, h * v)) - robot.constraint_residual(robot.integrate(q, -h * v))
    ) / (2 * h)
    holonomic = np.array([h for name in robot.constraints for h in robot.constraint(name).holonomic])
    expected = robot.constraint_jacobian(q) @ v - robot.constraint_velocity(q)
    assert_allclose(rate[holonomic], expected[holonomic], rtol=0, atol=1e-7)
    assert_array_equal(rate[~holonomic], 0.0)


def test_rate_of_the_residual_in_time():
    robot = bars([0.4, 1.1, 0.9], 1.0, laws={0: harmonic(0.5, 3.0)})
    q, h = robot.assemble(time=0.4), 1e-5
    rate = (robot.constraint_residual(q, time=0.4 + h) - robot.constraint_residual(q, time=0.4 - h)) / (2 * h)
    assert_allclose(rate, -robot.constraint_velocity(q, time=0.4), rtol=0, atol=1e-8)
    assert_allclose(np.linalg.norm(rate), 1.5 * np.cos(1.2), rtol=0, atol=1e-8)


# ---- frames that are followed --------------------------------------------------------------------------------------------------------


def test_a_tool_goes_through_poses():
    """Both forms of a Stewart platform's targets lead to the same motors, and between poses it stays on its branch."""
    robot = gallery.stewart()
    start = robot.assemble()
    pose = robot.pose(start, "platform")
    way = np.repeat(pose[None], 20, axis=0)
    s = np.linspace(0.0, 1.0, 20)
    way[:, :3, 3] += np.outer(s, (0.05, -0.04, 0.06))
    way[:, :3, :3] = pose[:3, :3] @ np.array([sarrus.Rotation.exp(x * np.array([0.1, 0.2, -0.1])).matrix for x in s])
    q = robot.follow(frames={"platform": way}, near=start)
    assert_allclose(robot.pose(q, "platform"), way, rtol=0, atol=CLOSED)
    assert open_by(robot, q) < CLOSED
    assert_allclose(q, robot.inverse_kinematics({"platform": way}, near=q), rtol=0, atol=KNOWN)
    assert_allclose(robot.follow(frames={"platform": way[[0, -1]]}, near=start)[-1], q[-1], rtol=0, atol=1e-6)
    legs = {name: q[:, robot.joint(name).q_slice] for name in robot.actuated}
    assert_allclose(robot.pose(robot.follow(legs, near=start), "platform"), way, rtol=0, atol=1e-10)


def test_a_point_is_led_along_a_line():
    robot = gallery.five_bar()
    start = robot.assemble()
    tip = robot.pose(start, "tip")[:3, 3]
    points = tip + np.outer(np.linspace(0.0, 1.0, 9), (0.08, 0.0, -0.05))
    q = robot.follow(frames={"tip": points}, near=start)
    assert_allclose(robot.pose(q, "tip")[:, :3, 3], points, rtol=0, atol=CLOSED)
    with pytest.raises(sarrus.AssemblyError, match="the branch ends between inputs"):
        robot.follow(frames={"tip": tip + np.outer(np.linspace(0.0, 1.0, 9), (2.0, 0.0, 0.0))}, near=start)
    for bad in (points[:, :2], points * np.nan, np.eye(4)):
        with pytest.raises((sarrus.ShapeError, sarrus.StateError)):
            robot.follow(frames={"tip": bad}, near=start)
    with pytest.raises(sarrus.ModelError, match="'left_motor' is a joint; expected a frame, pass joints to joints="):
        robot.follow(frames={"left_motor": [0.0]}, near=start)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"motor": 1.0, "pivot": 1.0}, sarrus.StateError, "'motor', 'pivot' has no result.*most at 'pin2'"),
        ({"pin2": 1.0, "motor": 5.0}, sarrus.StateError, "'motor', 'pin2' has no result|'pin2', 'motor' has no result"),
        ({"moter": 1.0}, sarrus.NameNotFoundError, "did you mean 'motor'"),
        ({"motor": "fast"}, sarrus.ShapeError, "velocities of joint 'motor'"),
        ([1.0], TypeError, "velocities must be a mapping"),
    ],
)
def test_velocities_that_cannot_be(given, error, text):
    robot = gallery.four_bar()
    with pytest.raises(error, match=text):
        robot.complete_velocity(robot.assemble(fixed={"motor": 0.5}), given)


def test_near_the_last_is_what_is_found_from_anywhere():
    """The fast method of a control loop and the full search agree; undecided cases of the fast method use the search."""
    robot = gallery.delta()
    home = robot.assemble()
    motors = {name: float(home[robot.joint(name).q_slice][0]) + 0.03 for name in robot.actuated}
    short = robot.assemble(near=home, fixed=motors)
    long = robot.assemble(near=home, fixed=motors, seed=1)
    for body in robot.bodies:  # rods may turn about themselves
        assert_allclose(robot.pose(short, body)[:3, 3], robot.pose(long, body)[:3, 3], rtol=0, atol=1e-9)
    with pytest.raises(sarrus.ShapeError):
        robot.assemble(near=home, fixed={"motor1": "0.3"})
    with pytest.raises(sarrus.StateError):
        robot.assemble(near=home, fixed={"motor1": np.nan})
    with pytest.raises(sarrus.NameNotFoundError):
        robot.assemble(near=home, fixed={"motor9": 0.3})


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"out": np.empty((3, 1))}, sarrus.ShapeError),
        ({"threads": 0}, ValueError),
        ({"threads": np.ones(2)}, TypeError),
        ({"starts": np.ones(2)}, TypeError),
        ({"return_status": np.ones(2)}, TypeError),
    ],
)
def test_keywords_of_one_configuration_are_looked_at(keywords, error):
    robot = sarrus.mechanisms.four_bar()
    with pytest.raises(error, match=next(iter(keywords))):
        robot.assemble(robot.assemble(), **keywords)


def test_a_path_starts_at_one_configuration():
    robot = sarrus.mechanisms.four_bar()
    with pytest.raises(sarrus.ShapeError, match=r"near must be one configuration.*\(2, 3\)"):
        robot.follow({"motor": [0.0, 0.01]}, near=np.tile(robot.assemble(fixed={"motor": 0.0}), (2, 1)))


@pytest.mark.parametrize("way", [(0.05, 0.0, 0.0), (0.0, -0.05, 0.0), (0.0, 0.0, 0.05), (0.0, 0.0, -0.05)])
def test_a_jump_of_five_centimetres_is_near(way):
    """The few steps of small jumps, for which a 1 kHz control loop has time, suffice for a Delta, with the result of the search."""
    robot = gallery.delta()
    q = robot.assemble()
    target = robot.pose(q, "platform")[:3, 3] + way
    near = positions(robot).quick(q, {"platform": target}, None, 0.0)
    assert near is not None
    assert_array_equal(robot.inverse_kinematics({"platform": target}, near=q), near)
    searched = robot.inverse_kinematics(
        {"platform": target}, near=q, tolerance=1e-12
    )  # asks for more than the short way
    assert_allclose(near, searched, rtol=0, atol=1e-10)


def test_empty_batches():
    delta, four_bar = sarrus.mechanisms.delta(), sarrus.mechanisms.four_bar()
    assert delta.inverse_kinematics({"platform": np.zeros((0, 3))}, near=delta.assemble()).shape == (0, delta.nq)
    q, status = four_bar.assemble(np.zeros((2, 0, 3)), return_status=True)
    assert (q.shape, status.shape, status.dtype) == ((2, 0, 3), (2, 0), np.int8)
    with pytest.raises(sarrus.NameNotFoundError, match="no frame is named 'platfrm'"):
        delta.inverse_kinematics({"platfrm": np.zeros((0, 3))})
