"""Contact points computed by a user's function have the effect of those of the library."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.shapes import Box, Capsule, ConvexPoints, Cylinder, Plane, Sphere

SIZE = (0.3, 0.2, 0.1)
CORNERS = np.array([(x, y, z) for x in (-0.15, 0.15) for y in (-0.1, 0.1) for z in (-0.05, 0.05)])


def ball_on_plane(ball, plane, within):
    n = plane[:3, 2]
    distance = n @ (ball[:3, 3] - plane[:3, 3]) - 0.1
    return [ball[:3, 3] - (0.1 + distance / 2) * n], [n], [distance]


def plane_under_ball(plane, ball, within):
    positions, normals, distances = ball_on_plane(ball, plane, within)
    return positions, -np.array(normals), distances


def box_on_plane(box, plane, within):
    n, corners = plane[:3, 2], CORNERS @ box[:3, :3].T + box[:3, 3]
    distances = (corners - plane[:3, 3]) @ n
    near = np.argsort(distances, kind="stable")[:4]
    near = near[distances[near] <= within]
    return corners[near] - distances[near, None] / 2 * n, np.tile(n, (len(near), 1)), distances[near]


def balls(one, other, within):
    d = one[:3, 3] - other[:3, 3]
    length = np.linalg.norm(d)
    return [(one[:3, 3] + other[:3, 3]) / 2], [d / length], [length - 0.2]


def falling(shape, points=None, order=("thing", "floor"), **pair):
    b = sarrus.Builder("fall")
    b.add_body("thing", sarrus.Inertia.box(1.0, SIZE))
    b.add_joint("float", sarrus.Free(), "ground", "thing")
    b.add_shape("thing", shape, name="thing")
    b.add_shape("ground", Plane(), name="floor", friction=0.4)
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 1)})
    if points or pair:
        b.set_contact(*order, points=points, **pair)
    return b


Q, V = np.array([0.28, 0.0, 0.0, 0.96, 0.0, 0.0, 0.35]), np.array([0.3, 0.0, 0.0, 0.5, 0.0, 0.0])


def test_poses_are_those_of_frames_as_they_were_given():
    """Poses are those of the frames in the call, also for convex points with another frame; the order is that of set_contact."""
    away, seen = np.array([0.4, -0.3, 0.2]), []

    def look(thing, floor, within):
        seen.append((thing, floor))
        return box_on_plane(thing, floor, within)

    for order in (("thing", "floor"), ("floor", "thing")):
        turned = look if order[0] == "thing" else lambda *x: turn(look(x[1], x[0], x[2]))
        b = falling(ConvexPoints(CORNERS), turned, order)
        b.remove_shape("thing")
        b.add_shape("thing", ConvexPoints(CORNERS + away), -away, name="thing")
        b.set_contact(*order, points=turned)
        robot = b.build()
        robot.contacts(Q, within=1.0)
        thing, floor = seen[-1]
        assert_allclose(thing, robot.pose(Q, "thing") @ sarrus.Transform(translation=-away).matrix, atol=1e-15)
        assert_allclose(floor, np.eye(4), atol=1e-15)


def turn(answer):
    position, normal, distance = answer
    return position, -np.asarray(normal), distance


def run(robot):
    return sarrus.simulate(robot, Q, V, 0.6, method="contact", dt=2e-3)


@pytest.mark.parametrize(
    ("shape", "points", "order"),
    [
        (Sphere(0.1), ball_on_plane, ("thing", "floor")),
        (Sphere(0.1), plane_under_ball, ("floor", "thing")),
        (Box(SIZE), box_on_plane, ("thing", "floor")),
    ],
)
def test_what_it_says_acts_as_what_is_known(shape, points, order):
    known, said = run(falling(shape).build()), run(falling(shape, points, order).build())
    assert len(known.contacts.force) > 10  # it has come down
    assert_allclose(said.q, known.q, atol=1e-9)
    assert_allclose(said.v, known.v, atol=1e-8)
    assert len(said.contacts.force) == len(known.contacts.force)


def test_shapes_that_the_library_knows_nothing_of():
    """A cylinder lies on a level box by the two ends of its lowest line."""

    def cylinder_on_box(cylinder, box, within):
        ends = cylinder[:3, 3] + np.array([[-1.0], [1.0]]) * 0.1 * cylinder[:3, 2]
        n = box[:3, 2]
        distances = (ends - box[:3, 3]) @ n - 0.05 - 0.05
        return ends - (0.05 + distances[:, None] / 2) * n, np.tile(n, (2, 1)), distances

    b = falling(Cylinder(0.05, 0.2))
    b.add_shape("ground", Box((2.0, 2.0, 0.1)), (0, 0, 0.05), name="table")
    with pytest.raises(sarrus.ModelError, match=r"'thing' \(Cylinder\) and 'table' \(Box\) .*points="):
        b.build()
    b.set_contact("thing", "table", points=cylinder_on_box, friction=0.5)
    lies = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5), 0, 0, 0.15])
    rest = sarrus.simulate(b.build(), lies, np.zeros(6), 0.5, method="contact", dt=4e-3)
    assert abs(rest.q - lies).max() < 1e-9
    last = rest.contacts.force[-2:]
    assert_allclose(last.sum(axis=0), [0, 0, 9.81], atol=1e-8)


def test_two_bodies_and_a_prefix():
    def pair(points):
        b = sarrus.Builder("balls")
        for name, x in (("a", 0.0), ("b", 0.5)):
            b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
            b.add_joint(f"{name}_slide", sarrus.Prismatic("x"), "ground", name, at_parent=(x, 0, 0))
            b.add_shape(name, Sphere(0.1), name=f"{name}_ball", restitution=1.0)
        if points:
            b.set_contact("b_ball", "a_ball", points=points)
        whole = sarrus.Builder("whole")
        whole.add_body("frame", sarrus.Inertia.sphere(1.0, 0.1))
        whole.add_joint("hold", sarrus.Fixed(), "ground", "frame")
        whole.attach(b, prefix="left_", body="frame")
        return whole.build()

    ends = [sarrus.simulate(pair(p), np.zeros(2), [1.0, 0.0], 0.6, method="contact", dt=1e-3) for p in (None, balls)]
    assert_allclose(ends[1].v[-1], [0.0, 1.0], atol=1e-9)
    assert_allclose(ends[1].q, ends[0].q, atol=1e-12)


def test_it_is_asked_where_they_are_near_and_once_a_state():
    asked = []

    def noting(ball, plane, within):
        asked.append((ball[2, 3], within))
        return ball_on_plane(ball, plane, within)

    b = falling(Sphere(0.1))
    b.add_shape("thing", ConvexPoints(CORNERS), name="hull")
    b.add_shape("ground", Capsule(0.1, 0.2), (5.0, 0, 0), name="post")
    b.set_contact("hull", "post", points=noting)
    robot = b.build()
    asked.clear()
    assert "post" not in {name for pair in robot.contacts(Q, within=1.0).shapes for name in pair}
    assert not asked
    b = falling(Sphere(0.1), noting)
    robot = b.build()
    asked.clear()
    robot.contacts(np.stack([Q, Q]), within=0.3)
    assert asked == [(0.35, 0.3), (0.35, 0.3)]
    known = falling(Sphere(0.1)).build().contacts(Q, within=0.3)
    assert_allclose(robot.contacts(Q, within=0.3).position, known.position, atol=1e-15)


class OurError(Exception):
    pass


@pytest.mark.parametrize("after", [0, 40])
def test_what_it_raises_is_what_comes_out(after):
    left = [after]

    def raising(ball, plane, within):
        if left[0] <= 0:
            raise OurError("no more")
        left[0] -= 1
        return ball_on_plane(ball, plane, within)

    robot = falling(Sphere(0.1), raising)
    left[0] = 10**9
    robot = robot.build()
    left[0] = after
    with pytest.raises(OurError, match="no more"):
        sarrus.simulate(robot, [0, 0, 0, 1, 0, 0, 0.11], np.zeros(6), 1.0, method="contact", dt=2e-3)
    left[0] = 0
    with pytest.raises(OurError, match="no more"):
        robot.contacts(Q, within=1.0)
    left[0] = 10**9
    assert len(robot.contacts(Q, within=1.0).distance) == 1


def answering(answer):
    return lambda one, other, within: answer


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (None, TypeError, r"points of 'thing' and 'floor' must be \(positions, normals, distances\); got NoneType"),
        (([[0, 0, 0]], [[0, 0, 1]], 0.0), sarrus.ShapeError, r"\(1, 3\), \(1, 3\), \(\)"),
        (([[0, 0]], [[0, 1]], [0.0]), sarrus.ShapeError, r"\(1, 2\)"),
        ((np.zeros((5, 3)), np.tile([0, 0, 1], (5, 1)), np.zeros(5)), sarrus.ShapeError, "n at most 4"),
        (([[0, 0, 0]], [[0, 0, 1]], [np.nan]), sarrus.StateError, "not finite"),
        (([[0, 0, 0]], [[0, 0, 2]], [0.1]), sarrus.StateError, "not of length 1"),
    ],
)
def test_wrong_answers(answer, error, told):
    with pytest.raises(error, match=told):
        falling(Sphere(0.1), answering(answer)).build().contacts(Q, within=1.0)


def test_no_points_are_no_contact():
    robot = falling(Sphere(0.1), answering(([], [], []))).build()
    through = sarrus.simulate(robot, Q, np.zeros(6), 0.5, method="contact", dt=2e-3)
    assert_allclose(through.q[-1, 6], 0.35 - 0.5 * 9.81 * 0.25, atol=1e-9)


def test_what_is_refused(tmp_path):
    b = falling(Sphere(0.1))
    with pytest.raises(TypeError, match="points must be a function"):
        b.set_contact("thing", "floor", points=3)
    with pytest.raises(sarrus.ModelError, match="points are only for a pair of shapes"):
        b.set_contact("thing", "floor", points=ball_on_plane, enabled=False)
    b.add_shape("ground", Sphere(0.1), (3, 0, 0), group="stones")
    with pytest.raises(sarrus.ModelError, match="points are only for a pair of shapes"):
        b.set_contact("thing", "stones", points=balls)
    robot = falling(Sphere(0.1), ball_on_plane).build()
    with pytest.raises(sarrus.ModelError, match=r"points.* is a function, which a file cannot contain"):
        robot.save(tmp_path / "fall.json")
    with pytest.raises(sarrus.ModelError, match=r"points of shapes .* cannot run in parallel: use simulate\(\)"):
        sarrus.simulate_many(robot, Q, V, 0.1, method="contact", dt=2e-3)
    assert_array_equal(run(pickle.loads(pickle.dumps(robot))).q, run(robot).q)
