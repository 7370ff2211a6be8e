"""Pictures of configurations, the path of a joint, and polygons of velocities and accelerations."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.design import grashof_class

pytest.importorskip("matplotlib")


@pytest.fixture
def pyplot():
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context({"backend": "agg"}):
        yield pyplot
        pyplot.close("all")


@pytest.fixture
def coupled():
    """Return a four-bar with a point P on its coupler."""
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_frame("P", "coupler", (0.5, 0.0, 0.3))
    return b.build()


def texts(ax):
    return {text.get_text(): text.xy for text in ax.texts if text.get_text() and hasattr(text, "xy")}


def test_configurations_coupler_curve_and_loads(pyplot, coupled):
    q = coupled.follow({"motor": np.linspace(0.5, 6.5, 20)})
    ax = coupled.plot(q[:6], trace="P", wrenches={"P": [0, 3, 0, 3.0, 0, -4.0]}, labels=True)
    # edges and fills of five faint ones, and of the one that is meant
    bars = [np.array(lines.get_segments()) for lines in ax.collections if hasattr(lines, "get_segments")]
    assert len(bars) == 12 and [lines.get_alpha() for lines in ax.collections[:10]] == [0.2] * 10
    drawn = sarrus.Skeleton(coupled).segments_flat(q[:6])[..., [0, 2]]
    assert_allclose(bars[1::2], drawn, atol=1e-12)
    point = coupled.pose(q[:6], "P")[:, [0, 2], 3]
    assert any(np.shape(line.get_xydata()) == (6, 2) and np.allclose(line.get_xydata(), point) for line in ax.lines)
    told = texts(ax)
    assert {"P 5 N", "P 3 N m", "motor", "pin1", "pivot", "pin2"} <= set(told) and "5 N" in {
        t.get_text().strip() for t in ax.texts
    }
    # the arrow: the force in P's axes
    force = (coupled.pose(q[5], "P")[:3, :3] @ [3.0, 0, -4.0])[[0, 2]]
    arrow = np.array(told["P 5 N"]) - point[5]
    assert_allclose(arrow / np.linalg.norm(arrow), force / 5.0, atol=1e-12)
    assert coupled.plot(ax=pyplot.subplots()[1]) is pyplot.gca()
    assert len({tuple(color) for color in ax.collections[-2].get_edgecolor()}) == 3  # a colour a body


@pytest.mark.parametrize("direction", [[0.0, 3.0, 0.0], [0.0, -0.2, 0.0], [1.0, 2.0, -1.0]])
def test_a_moment_is_an_arc_in_its_normal_plane(pyplot, coupled, direction):
    """The arc has the frame's origin as its centre, and turns by the right-hand rule: the ratio of its area to a circle's is the moment's share
    along the normal of the picture, with its sign.
    """
    q = coupled.follow({"motor": np.linspace(0.5, 1.5, 5)})[-1]
    before = len(coupled.plot(q).lines)
    ax = coupled.plot(q, wrenches={"P": [*direction, 0.0, 0.0, 0.0]})
    (arc,) = (np.asarray(line.get_xydata()) for line in ax.lines[before:])
    centre = coupled.pose(q, "P")[[0, 2], 3]
    x, z = (np.vstack([arc, centre]) - centre).T
    area = 0.5 * np.sum(x * np.roll(z, -1) - z * np.roll(x, -1))
    radius = 0.08 * sarrus.Skeleton(coupled).size
    share = -direction[1] / np.linalg.norm(direction)  # y points into the picture of x and z
    assert_allclose(area / (radius**2 * np.radians(280.0) / 2.0), share, atol=2e-3)
    assert (np.hypot(x, z) <= radius * (1.0 + 1e-12)).all()
    arrows = [text for text in ax.texts if getattr(text, "arrow_patch", None) and not text.get_text()]
    assert any(np.hypot(*(np.array(arrow.xy) - centre)) <= radius * (1.0 + 1e-12) for arrow in arrows)


def test_the_rod_is_thinner_than_its_cylinder(pyplot):
    robot = sarrus.mechanisms.stewart()
    lines = robot.plot().collections[1]
    owners = [bar.owner for bar in sarrus.Skeleton(robot).bars]
    widths = dict(zip(owners, lines.get_linewidths(), strict=True))
    assert all(widths[name] < widths["platform"] for name in sarrus.Skeleton(robot).slender) and len(set(owners)) > 12


@pytest.mark.parametrize(
    ("robot", "motor"), [(sarrus.mechanisms.four_bar(), "motor"), (sarrus.mechanisms.slider_crank(), "motor")]
)
def test_polygons_are_the_rates_of_the_joints_places(pyplot, robot, motor):
    """Differences of the joints' positions, with constant motor speed."""
    rate, h = 3.0, 1e-4
    start = robot.joint_states(robot.assemble()).q[motor][0]
    q = robot.follow({motor: start + rate * h * np.arange(-1, 2)}, near=robot.assemble())
    v = robot.complete_velocity(q[1], {motor: rate})
    a = robot.complete_acceleration(q[1], v, {motor: 0.0})
    figure = robot.plot(q[1], v, a).figure
    skeleton = sarrus.Skeleton(robot)
    ours = []
    for ax in figure.axes[1:]:
        ours.append({name: xy for text, xy in texts(ax).items() for name in text.split(", ")})
    for name, place in skeleton.joints.items():
        p = np.array([robot.pose(x, place.body)[:3, :3] @ place.point + robot.pose(x, place.body)[:3, 3] for x in q])[
            :, [0, 2]
        ]
        # of order h^2, and rounding over h and h^2
        assert_allclose(ours[0][name], (p[2] - p[0]) / (2 * h), atol=1e-6)
        assert_allclose(ours[1][name], (p[2] - 2 * p[1] + p[0]) / h**2, atol=1e-5)
    assert ours[0]["o"] == pytest.approx((0, 0)) == ours[1]["o"]
    # from one end of a bar to the other first the part along the bar, then that across it
    dashed = [np.array(line.get_xydata()) for line in figure.axes[2].lines if line.get_linestyle() == "--"]
    assert dashed
    for first, corner, last in dashed:
        assert abs((corner - first) @ (last - corner)) < 1e-9 * max(1.0, np.abs(last - first).max() ** 2)


def test_a_joint_leads_a_player(pyplot, coupled):
    page = coupled.plot(drive="motor", trace="P")._repr_html_()
    assert "&quot;clock&quot;: [&quot;motor&quot;, &quot;rad&quot;]" in page
    b = coupled.to_builder()
    b.set_joint("motor", sarrus.Revolute("y", limits=(-1.5, -1.2)))
    from sarrus.figures.figures import _drive_path

    q = b.build().assemble(fixed={"motor": -1.3})
    values, path = _drive_path(b.build(), q, "motor")
    assert (values[0], values[-1]) == (-1.5, -1.2) and (np.diff(values) > 0.0).all()
    assert_allclose(path[:, 0], values, atol=1e-12)
    rocker = sarrus.mechanisms.four_bar(1.0, 0.4, 1.0, 1.5)  # which does not turn all the way round
    values, path = _drive_path(rocker, rocker.assemble(fixed={"motor": -0.9}), "motor")
    assert len(values) == len(path) < 119 and np.abs(rocker.constraint_residual(path)).max() < 1e-9


def test_refused(pyplot, coupled):
    q = coupled.assemble()
    with pytest.raises(sarrus.ShapeError, match=r"expected \(nq,\) or \(n, nq\)"):
        coupled.plot(np.zeros((2, 2, 3)))
    for velocities in (np.zeros((0, coupled.nv)), np.zeros((2, coupled.nv))):
        with pytest.raises(sarrus.ShapeError, match="of one configuration can be drawn"):
            coupled.plot(v=velocities)
    with pytest.raises(ValueError, match="one configuration and a new figure"):
        coupled.plot(np.stack([q, q]), np.zeros(3))
    with pytest.raises(sarrus.NameNotFoundError, match="no frame is named 'Q'"):
        coupled.plot(trace="Q")
    with pytest.raises(sarrus.ShapeError, match="wrench on 'P'"):
        coupled.plot(wrenches={"P": [1, 2, 3]})
    with pytest.raises(TypeError, match="wrenches must be a mapping of frames"):
        coupled.plot(wrenches=5)
    delta = sarrus.mechanisms.delta()
    with pytest.raises(sarrus.ModelError, match="joint 'float' has 7 coordinates"):
        delta.plot(drive="float")
    start = delta.assemble()
    with pytest.raises(ValueError, match="does not move in a coordinate plane of the world"):
        delta.plot(start, delta.complete_velocity(start, {"motor1": 1.0}))
    with pytest.raises(ValueError, match="accelerations are drawn together with velocities"):
        coupled.plot(q, a=np.zeros(3))


def test_wrenches_that_change_while_they_are_read(pyplot):
    """A mapping that its own values change is read as it was passed."""
    robot = sarrus.mechanisms.pendulum()
    loads = {}

    class Emptying:
        def __array__(self, *_, **__):
            loads.clear()
            return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])

    loads["tip"] = Emptying()
    assert robot.plot(wrenches=loads) is not None


@pytest.mark.parametrize("seed", range(12))
def test_grashofs_class_is_what_can_turn(seed):
    """Comparison with positions: a link rotates fully if its triangle with the diagonal closes at every angle."""
    lengths = np.random.default_rng(seed).uniform(0.3, 1.0, 4)  # crank, coupler, rocker, ground
    if 2 * lengths.max() >= lengths.sum():
        return
    robot = sarrus.mechanisms.four_bar(*lengths)
    said = grashof_class(robot, robot.assemble())

    def turns(one, next_to, *others):
        """Return True if link `one` rotates fully relative to the next: both diagonals form triangles with the other links."""
        return all(abs(others[0] - others[1]) <= d <= sum(others) for d in (abs(one - next_to), one + next_to))

    crank, coupler, rocker, ground = lengths
    grounded = [turns(crank, ground, coupler, rocker), turns(rocker, ground, coupler, crank)]
    expected = {(True, True): "double crank", (False, False): ("double rocker", "triple rocker")}
    kinds = expected.get(tuple(grounded), "crank-rocker")
    assert said.partition(":")[0] in np.atleast_1d(kinds)
    if said.startswith("crank-rocker"):
        assert said.endswith(f"{'crank' if grounded[0] else 'rocker'} turns fully")
    if not any(grounded):
        assert said.startswith("double") == turns(coupler, crank, rocker, ground)


def test_grashof_of_what_is_no_four_bar():
    for name, other in itertools.product(("slider_crank", "bennett", "five_bar", "pendulum"), [""]):
        robot = getattr(sarrus.mechanisms, name)()
        assert grashof_class(robot, robot.assemble()) == other


def test_a_picture_has_a_scale_and_the_axes_of_the_world(pyplot, coupled):
    """A bar of a round length, and an arrow for each axis that is not normal to the picture."""
    ax = coupled.plot()
    (bar,) = [line for line in ax.lines if line.get_marker() == "|"]
    length = float(np.ptp(bar.get_xdata()))
    assert f"{length:.3g} m" in {text.get_text().strip() for text in ax.texts} and f"{length:.0e}"[0] in "125"
    arrows = [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 2 and {"x", "z"} <= {text.get_text() for text in ax.texts}
