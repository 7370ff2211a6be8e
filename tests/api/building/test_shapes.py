"""Collision shapes: pairs that may touch, coefficients, errors, and storage in a model."""

import numpy as np
import pytest

import sarrus
from sarrus import Inertia, ModelError, ModelWarning, NameNotFoundError
from sarrus.description import ContactSpec
from sarrus.io import complete
from sarrus.shapes import Box, Capsule, ConvexPoints, Cylinder, Ellipsoid, Mesh, Plane, Point, Sphere, Terrain

BALL = Inertia.sphere(1.0, 0.1)


def chain(joints, **shape):
    """Return bodies a, b, c, ... connected by these joints, from the ground on, each with a ball of radius 1 at the origin."""
    b, below = sarrus.Builder(), "ground"
    for name, joint in zip("abcdef", joints, strict=False):
        b.add_body(name, BALL)
        b.add_joint(f"to_{name}", joint, below, name)
        b.add_shape(name, Sphere(1.0), **shape)
        below = name
    return b


def who_touches(builder, q=None):
    with pytest.warns(ModelWarning, match="overlap"):
        robot = builder.build()
    return set(robot.contacts(robot.neutral() if q is None else q).shapes), robot


def test_neighbours_do_not_touch_and_the_ground_does_what_moves():
    hinge = sarrus.Revolute("y")
    b = chain([hinge] * 4)
    b.add_shape("ground", Plane())
    found, _ = who_touches(b)
    assert found == {("a", "c"), ("a", "d"), ("b", "d"), *((name, "ground") for name in "abcd")}


def test_what_is_welded_together_is_one_body():
    hinge, weld = sarrus.Revolute("y"), sarrus.Fixed()
    b = chain([weld, hinge, weld, hinge])  # a on the ground; b and c in one; d
    b.add_shape("ground", Plane())
    assert who_touches(b)[0] == {(name, "ground") for name in "bcd"} | {("a", name) for name in "bcd"}


def test_joints_that_close_loops_join_too():
    b = chain([sarrus.Revolute("y")] * 3)
    b.add_joint("closing", sarrus.Revolute("y"), "a", "c", loop=True)
    robot = b.build()
    assert robot.nc and not robot.contacts(robot.neutral()).shapes
    b.remove_joint("closing")
    assert who_touches(b)[0] == {("a", "c")}


def test_pairs_and_groups_are_told_and_pairs_go_first():
    b = chain([sarrus.Revolute("y")] * 4, group="all")
    b.set_contact("all", "all", enabled=False)
    assert not b.build().contacts([0.0] * 4).shapes
    b.set_contact("b", "a", friction=0.25)  # which a joint joins
    found, robot = who_touches(b)
    assert found == {("a", "b")} and robot.contacts([0.0] * 4).friction.tolist() == [0.25]
    b.set_contact("a", "b", enabled=False)
    assert not b.build().contacts([0.0] * 4).shapes


@pytest.mark.parametrize(
    ("one", "other", "pair", "expected"),
    [
        (None, None, None, 1.0),
        (0.4, None, None, 0.4),
        (None, 0.0, None, 0.0),
        (0.4, 0.9, None, 0.6),
        (0.4, 0.9, 0.7, 0.7),
    ],
)
def test_friction_of_a_pair(one, other, pair, expected):
    b = chain([sarrus.Free()])
    b.remove_shape("a")
    b.add_shape("a", Point(), friction=one, restitution=other)
    b.add_shape("ground", Plane(), friction=other, restitution=one)
    if pair is not None:
        b.set_contact("a", "ground", friction=pair, restitution=pair)
    robot = b.build()
    found = robot.contacts(robot.neutral())
    assert found.friction[0] == pytest.approx(expected)
    assert found.restitution[0] == pytest.approx(0.0 if one is None is other else expected)


def brick():
    b = sarrus.Builder("brick")
    b.add_body("brick", Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "brick")
    b.add_shape("brick", Box((0.3, 0.2, 0.1)), friction=0.5, group="bricks")
    b.add_shape("brick", Capsule(0.01, 0.06), (0.1, 0.0, 0.0), restitution=0.25)
    b.add_shape("brick", Cylinder(0.01, 0.1))
    b.add_shape("brick", Ellipsoid((0.1, 0.08, 0.04)))
    b.add_shape("brick", Point(), (0.0, 0.0, 0.05), name="top")
    b.add_shape("ground", Plane(), (0, 0, -0.05))
    b.add_shape("ground", Terrain(((0.0, 0.0), (0.0, 0.25)), (1.0, 2.0)), (0, 0, -9.0), name="hill")
    for name in ("bricks", "brick_2", "brick_3", "brick_4"):
        b.set_contact("hill", name, enabled=False)
    return b


def test_a_model_keeps_its_shapes():
    robot = brick().build()
    assert [spec.name for spec in robot.description.shapes] == [
        "brick",
        "brick_2",
        "brick_3",
        "brick_4",
        "top",
        "ground",
        "hill",
    ]
    again = complete.read(complete.write(robot.description)).build()
    assert again == robot == robot.to_builder().build()
    lighter = robot.replace(gravity=(0.0, 0.0, -1.0))
    assert lighter.description.shapes == robot.description.shapes
    q = robot.neutral()
    assert lighter.contacts(q).shapes == robot.contacts(q).shapes
    changed = robot.to_builder()
    changed.add_shape("brick", Point(), name="another")
    assert changed.build() != robot


def test_attached_robots_touch_each_other_and_take_their_names_along():
    b = sarrus.Builder("two")
    for prefix in ("left_", "right_"):
        b.attach(brick().build(), prefix=prefix)
    d = b._described()
    assert ContactSpec("left_hill", "left_bricks", touching=False) in d.contacts
    assert [s.body for s in d.shapes[-2:]] == ["right_ground"] * 2 and d.shapes[1].group is None
    b.remove_shape("right_hill")
    assert len(b._described().contacts) == 4
    assert b.remove_body("left_brick") == (
        "left_float",
        "left_brick",
        "left_brick_2",
        "left_brick_3",
        "left_brick_4",
        "left_top",
    )
    assert len(b._described().contacts) == 0


def test_contacts_of_many_states_are_those_of_each():
    robot, rng = brick().build(), np.random.default_rng(3)
    q = robot.integrate(robot.neutral(), 0.3 * rng.normal(size=(2, 3, robot.nv)))
    many = robot.contacts(q, within=0.02)
    assert len(many.distance) > 6
    for k, one in enumerate(q.reshape(-1, robot.nq)):
        found, rows = robot.contacts(one, within=0.02), many.state == k
        np.testing.assert_allclose(many.position[rows], found.position, atol=1e-14)  # lanes round otherwise
        np.testing.assert_array_equal(many.id[rows], found.id)
        assert tuple(pair for pair, row in zip(many.shapes, rows, strict=True) if row) == found.shapes
    assert not robot.contacts(q[:0]).shapes
    assert not sarrus.mechanisms.pendulum().contacts([0.0]).shapes


def test_contacts_stand_where_the_body_is():
    """A point of a rotated pendulum over a ramp: heights by hand."""
    b = sarrus.mechanisms.pendulum().to_builder()
    b.add_shape("bob", Point(), (0.0, 0.0, -1.0))
    b.add_shape("ground", Plane(), sarrus.Transform(sarrus.Rotation.from_rpy(0.0, -0.3, 0.0), (0.0, 0.0, -3.0)))
    found, n = b.build().contacts([0.4], within=9.0), np.array([-np.sin(0.3), 0.0, np.cos(0.3)])
    p = np.array([-np.sin(0.4), 0.0, -np.cos(0.4)])
    d = n @ (p - [0.0, 0.0, -3.0])
    np.testing.assert_allclose(found.distance, [d], atol=1e-14)
    np.testing.assert_allclose(found.normal, [n], atol=1e-14)
    np.testing.assert_allclose(found.position, [p - n * d / 2], atol=1e-14)
    assert found.bodies == (("bob", "ground"),)


def test_convex_points_are_kept_and_touch_as_a_box_of_these_corners_does(tmp_path):
    corners = np.array([[x, y, z] for x in (-0.15, 0.15) for y in (-0.1, 0.1) for z in (-0.05, 0.05)])
    runs = []
    for shape in (Box((0.3, 0.2, 0.1)), ConvexPoints(corners)):
        b = sarrus.Builder("brick")
        b.add_body("brick", Inertia.box(2.0, (0.3, 0.2, 0.1)))
        b.add_joint("float", sarrus.Free(), "ground", "brick")
        b.add_shape("brick", shape, friction=0.5)
        b.add_shape("ground", Plane(), (0, 0, -0.05))
        robot = b.build()
        robot.save(tmp_path / "brick.json")
        assert sarrus.load(tmp_path / "brick.json").description.shapes == robot.description.shapes
        runs.append(sarrus.simulate(robot, robot.neutral(), [0, 0, 0, 1.0, 0.3, 0], 0.5, method="contact", dt=2e-3))
    np.testing.assert_allclose(runs[1].v, runs[0].v, atol=1e-8)
    assert abs(runs[1].v[-1]).max() < 1e-9  # both have slid, and rest


# ---- what is refused, and what is told ----------------------------------------------------------------------------------------------

BAD_SHAPES = [
    ({"shape": "a.stl"}, "needs a Box, Capsule"),
    ({"shape": Mesh("")}, "a mesh needs the name of a file"),
    ({"shape": Capsule(0.0, 1.0)}, "radius of a capsule must be positive"),
    ({"shape": Ellipsoid((1.0, 0.0, 1.0))}, "semi-axes of an ellipsoid must be positive"),
    ({"shape": Ellipsoid((1.0, 1.0))}, "semi-axes of an ellipsoid"),
    ({"shape": ConvexPoints(())}, "points must be"),
    ({"shape": ConvexPoints(((0.0, 1.0),))}, "points must be"),
    ({"shape": ConvexPoints(((0.0, 1.0, np.inf),))}, "finite numbers"),
    ({"shape": ConvexPoints(np.zeros((16385, 3)))}, "from 1 to 16384"),
    ({"shape": Terrain(((0.0, 1.0),), (1.0, 1.0))}, "two rows and two columns"),
    ({"shape": Terrain(((0.0, 1.0), (0.0, np.nan)), (1.0, 1.0))}, "finite numbers"),
    ({"shape": Terrain(((0.0, 1.0), (0.0, 1.0)), (1.0, 0.0))}, "size of a terrain must be positive"),
    ({"friction": -0.1}, "friction must not be negative; got -0.1"),
    ({"restitution": 1.5}, "restitution must be from 0 to 1; got 1.5"),
    ({"name": "taken"}, "two shapes are named 'taken'"),
    ({"name": "crowd"}, "'crowd' has the name of a group"),
    ({"group": "taken"}, "group must be a name that no shape has"),
    ({"group": ""}, "group must be a name"),
]


@pytest.mark.parametrize(("wrong", "told"), BAD_SHAPES)
def test_bad_shapes(wrong, told):
    b = chain([sarrus.Free()])
    b.add_shape("a", Point(), name="taken", group="crowd")
    with pytest.raises(ModelError, match=told):
        b.add_shape(**{"body": "a", "shape": Point()} | wrong)


def test_bad_contacts():
    b = brick()
    with pytest.raises(NameNotFoundError, match="brik"):
        b.set_contact("brik", "ground")
    with pytest.raises(ModelError, match="both shapes are on body 'brick'"):
        b.set_contact("brick", "top")
    with pytest.raises(NameNotFoundError, match="shape"):
        b.add_shape("brik", Point())
    with pytest.raises(ValueError, match="within must be finite"):
        b.build().contacts(b.build().neutral(), within=np.inf)
    with pytest.raises(sarrus.ShapeError):
        b.build().contacts([0.0])


def test_pairs_without_a_closed_form_are_refused_and_may_be_excluded():
    b = brick()
    b.set_contact("hill", "brick_3", enabled=True)
    with pytest.raises(
        ModelError,
        match=r"'brick_3' \(Cylinder\) and 'hill' \(Terrain\) may touch, but the library cannot compute contact points",
    ) as error:
        b.build()
    assert "these, cylinder, ellipsoid and convex points with plane" in str(error.value)


def test_overlap_at_home_is_told_and_what_touches_only_is_not():
    b = brick()
    b.build()
    b.set_home({"float": (0, 0, 0, 1, 0, 0, -0.01)})
    with pytest.warns(ModelWarning, match="shapes overlap in the home configuration: 'brick' and 'ground'"):
        b.build()
    for name in ("bricks", "brick_2", "brick_3"):
        b.set_contact(name, "ground", enabled=False)
    b.build()


def test_a_simulation_says_that_shapes_pass_through_each_other():
    robot = brick().build()
    with pytest.warns(
        ModelWarning, match=r"shapes 'brick' and 'ground' \(and 5 more pairs\) may touch, but method='rk4' lets"
    ):
        robot_run = sarrus.simulate(robot, robot.neutral(), np.zeros(6), duration=0.01, dt=0.01, method="rk4")
    assert robot_run.q[-1, 6] < 0.0
    b = brick()
    for name in ("bricks", "brick_2", "brick_3", "brick_4", "top"):
        b.set_contact(name, "ground", enabled=False)
        b.set_contact(name, "hill", enabled=False)
    sarrus.simulate(b.build(), robot.neutral(), np.zeros(6), duration=0.01, dt=0.01, method="rk4")
