"""Distances and contact points of shapes: compared with a search over directions, and laws for any two bodies."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from sarrus import Rotation, Transform, _core
from sarrus.description.contacts import shape_terms
from sarrus.shapes import Box, Capsule, ConvexPoints, Cylinder, Ellipsoid, Plane, Point, Sphere, Terrain
from tests.oracles import contact as oracle

SHAPES = {
    "point": Point(),
    "sphere": Sphere(0.3),
    "capsule": Capsule(0.2, 0.9),
    "box": Box((0.5, 0.8, 1.1)),
    "cylinder": Cylinder(0.4, 0.7),
    "ellipsoid": Ellipsoid((0.5, 0.3, 0.2)),
    # a roof on a rectangle, and points that are no corners
    "points": ConvexPoints(
        (
            *itertools.product((-0.3, 0.0, 0.3), (-0.25, 0.0, 0.25), (-0.4,)),
            (-0.1, 0.0, 0.3),
            (0.2, 0.0, 0.3),
            (0.0, 0.0, 0.0),
        )
    ),
    "plane": Plane(),
}
PAIRS = [
    *itertools.combinations_with_replacement(("sphere", "capsule", "box"), 2),
    ("point", "point"), ("point", "box"), ("point", "capsule"), ("sphere", "cylinder"),
    *((name, "plane") for name in SHAPES if name != "plane"),
]  # fmt: skip
# what stands for a face or an edge where they are nearly parallel is off by half the square of 0.01
NEARLY = 6e-5


def touch(a, X, b, Y, within=1e9):
    """Return features, positions, normals, distances."""
    scene = _core.Scene(
        [shape_terms(a, 0, Transform()), shape_terms(b, 1, Transform())], [(0, 1, 1.0, 0.0, 0.0, 0.0, None)]
    )
    poses = np.stack([X.matrix, Y.matrix])[None]
    _, _, names, positions, normals, distances = scene.touching(poses, within)
    return names, positions, normals, distances


def pose(rng, far=1.0):
    q = rng.normal(size=4)
    return Transform(Rotation.from_quaternion(q / np.linalg.norm(q)), far * rng.normal(size=3))


def scaled(shape, s):
    return type(shape)(*(tuple(s * np.array(x)) if isinstance(x, tuple) else s * x for x in vars(shape).values()))


def placed(rng, a, b, at):
    """Return poses of two shapes with this distance or penetration, in a random direction."""
    X, Y = pose(rng), pose(rng)
    for _ in range(3):
        d, n = oracle.distance(a, X, b, Y, rng)
        X = Transform(Rotation(X.rotation), X.translation + (at - d) * n)
    return X, Y


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("at", [0.3, 1e-3, -1e-3, -0.05])
def test_nearest_point_has_the_distance_by_which_the_best_direction_parts_them(one, other, at):
    rng = np.random.default_rng(len(one) * 31 + len(other))
    a, b = SHAPES[one], SHAPES[other]
    for _ in range(6):
        X, Y = placed(rng, a, b, at)
        expected, _ = oracle.distance(a, X, b, Y, rng)
        _, positions, normals, distances = touch(a, X, b, Y)
        k = distances.argmin()
        # no direction parts them by more, and the normal does by as much
        assert expected < distances[k] + NEARLY * abs(at) + 1e-9 < expected + 1e-4
        assert oracle.gap(a, X, b, Y, normals[k : k + 1])[0] == pytest.approx(distances[k], rel=NEARLY, abs=1e-9)
        half = normals * distances[:, None] / 2
        assert np.abs(oracle.outside(a, X, positions + half)[k]) < 1e-9 + NEARLY * abs(at)
        assert np.abs(oracle.outside(b, Y, positions - half)[k]) < 1e-9 + NEARLY * abs(at)
        assert np.abs(np.linalg.norm(normals, axis=1) - 1.0).max() < 1e-14
        assert len(distances) <= 4
        # all points are on both shapes, or in them
        assert (
            max(oracle.outside(a, X, positions + half).max(), oracle.outside(b, Y, positions - half).max())
            < 1e-9 + NEARLY
        )


def test_a_capsule_whose_axis_is_in_a_box_leaves_it_by_the_shortest_way():
    """For some cases the shortest direction is perpendicular to an edge of the box and the axis."""
    rng = np.random.default_rng(12)
    a, b = SHAPES["capsule"], SHAPES["box"]
    for _ in range(20):
        X, Y = placed(rng, a, b, -0.22)
        expected, _ = oracle.distance(a, X, b, Y, rng)
        _, _, normals, distances = touch(a, X, b, Y)
        k = distances.argmin()
        assert expected < distances[k] + NEARLY < expected + 1e-3
        assert oracle.gap(a, X, b, Y, normals[k : k + 1])[0] == pytest.approx(distances[k], rel=NEARLY)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_bodies_change_places_and_are_moved_together(one, other):
    rng = np.random.default_rng(5)
    a, b = SHAPES[one], SHAPES[other]
    for at in (0.2, 1e-3, -1e-3):
        X, Y = placed(rng, a, b, at)
        names, positions, normals, distances = touch(a, X, b, Y)

        def same(found, positions, normals, distances):
            order = [min(range(len(positions)), key=lambda k, p=p: np.linalg.norm(positions[k] - p)) for p in found[1]]
            assert sorted(order) == list(range(len(positions)))
            np.testing.assert_allclose(found[1], positions[order], atol=1e-8)
            np.testing.assert_allclose(found[2], normals[order], atol=1e-8)
            np.testing.assert_allclose(found[3], distances[order], atol=1e-9)

        same(touch(b, Y, a, X), positions, -normals, distances)
        Z = pose(rng)
        moved = touch(a, Z @ X, b, Z @ Y)
        same(moved, positions @ Z.rotation.T + Z.translation, normals @ Z.rotation.T, distances)
        assert sorted(moved[0]) == sorted(names)


@pytest.mark.parametrize("s", [1e-6, 1e3])
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_scaling_scales(one, other, s):
    rng = np.random.default_rng(6)
    a, b = SHAPES[one], SHAPES[other]
    for at in (0.2, 1e-3, -1e-3):
        X, Y = placed(rng, a, b, at)
        names, positions, normals, distances = touch(a, X, b, Y)
        small = [Transform(Rotation(Z.rotation), s * Z.translation) for Z in (X, Y)]
        found = touch(scaled(a, s), small[0], scaled(b, s), small[1])
        assert found[0].tolist() == names.tolist()
        np.testing.assert_allclose(found[1], s * positions, atol=1e-8 * s)
        np.testing.assert_allclose(found[2], normals, atol=1e-8)
        np.testing.assert_allclose(found[3], s * distances, atol=1e-9 * s)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_distance_changes_by_the_normal_part_of_the_relative_velocity(one, other):
    rng, h = np.random.default_rng(7), 1e-6
    a, b = SHAPES[one], SHAPES[other]
    for at in (0.2, 1e-2, -1e-2):
        X, Y = placed(rng, a, b, at)
        _, positions, normals, distances = touch(a, X, b, Y)
        k, (w, v) = distances.argmin(), rng.normal(size=(2, 3))

        def moved(t, X=X, w=w, v=v):
            return Transform(Rotation.exp(t * w) @ Rotation(X.rotation), X.translation + t * v)

        rate = (touch(a, moved(h), b, Y)[3].min() - touch(a, moved(-h), b, Y)[3].min()) / (2 * h)
        n = normals[k]
        on_a = positions[k] + n * distances[k] / 2
        assert rate == pytest.approx(n @ (v + np.cross(w, on_a - X.translation)), abs=1e-4)


# ---- positions in which a formula divides by nothing ---------------------------------------------------------------------------------

DEGENERATE = {
    "concentric": Transform(),
    "parallel, touching": Transform(translation=(0.4, 0.0, 0.0)),
    "one behind the other": Transform(translation=(0.0, 0.0, 1.3)),
    "a quarter turned": Transform(Rotation.from_rpy(np.pi / 2, 0.0, 0.0), (0.0, 0.0, 0.3)),
    "corner on corner": Transform(translation=(0.5, 0.8, 1.1)),
}


@pytest.mark.parametrize("where", DEGENERATE)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_degenerate_positions_have_finite_answers_that_stay(one, other, where):
    a, b, X = SHAPES[one], SHAPES[other], DEGENERATE[where]
    first = touch(a, X, b, Transform())
    assert len(first[3])
    for numbers in first[1:]:
        assert np.isfinite(numbers).all()
    np.testing.assert_allclose(np.linalg.norm(first[2], axis=1), 1.0, atol=1e-12)
    for one_more, numbers in zip(touch(a, X, b, Transform()), first, strict=True):
        np.testing.assert_array_equal(one_more, numbers)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("box", "box"),
        ("capsule", "box"),
        ("capsule", "capsule"),
        ("box", "plane"),
        ("cylinder", "plane"),
        ("points", "plane"),
    ],
)
def test_what_lies_flat_keeps_its_points_and_their_names_through_rounding(one, other):
    """Shifts and tilts of 1e-10 of a body exactly on another change no id, and distances only by that amount."""
    rng = np.random.default_rng(8)
    a, b = SHAPES[one], SHAPES[other]
    turn = Rotation.from_rpy(0.0, np.pi / 2, 0.0) if one == "capsule" else Rotation()
    below = turn if (one, other) == ("capsule", "capsule") else Rotation()
    up = {"capsule": 0.2, "box": 0.55, "cylinder": 0.35, "points": 0.4, "plane": 0.0}
    X, Y = Transform(turn, (0.0, 0.0, up[one] + up[other])), Transform(below)
    names, _, normals, distances = touch(a, X, b, Y)
    assert len(names) == {"capsule": 2}.get(one, 4)
    np.testing.assert_allclose(distances, 0.0, atol=1e-15)
    np.testing.assert_allclose(normals, [[0.0, 0.0, 1.0]] * len(names), atol=1e-15)
    for _ in range(30):
        Z = Transform(Rotation.exp(1e-10 * rng.normal(size=3)), 1e-10 * rng.normal(size=3))
        found = touch(a, Z @ X, b, Y)
        assert sorted(found[0]) == sorted(names)
        np.testing.assert_allclose(found[3], 0.0, atol=1e-9)


def test_convex_points_stand_on_their_corners():
    """Nine points of a rectangle have contacts at the four corners, also if slightly tilted; a point cloud at its lowest points."""
    shape, rng = SHAPES["points"], np.random.default_rng(10)
    for _ in range(20):
        X = Transform(Rotation.exp(np.array([*0.05 * rng.normal(size=2), rng.normal()])), (0.0, 0.0, 0.4))
        names = touch(shape, X, Plane(), Transform())[0]
        assert sorted(names) == [0, 2, 6, 8]
    for n in (1, 2, 3, 50):
        heap = ConvexPoints(tuple(map(tuple, rng.normal(size=(n, 3)))))
        for _ in range(20):
            X = pose(rng)
            height = (np.array(heap.points) @ X.rotation.T + X.translation)[:, 2]
            names, _, _, distances = touch(heap, X, Plane(), Transform())
            assert distances.min() == pytest.approx(height.min(), abs=1e-14)
            assert len(set(names)) == len(names) <= min(n, 4)
            near = touch(heap, X, Plane(), Transform(), height.min() + 1e-9)[0]
            assert near.tolist() == [height.argmin()]


def test_box_on_box_has_the_corners_of_what_overlaps():
    """Shifted by (0.1, 0.3) without rotation: the overlap of two squares. Rotated by 45 degrees: four of eight corners, around its centre."""
    cube = Box((1.0, 1.0, 1.0))
    names, positions, _, distances = touch(cube, Transform(translation=(0.1, 0.3, 0.999)), cube, Transform())
    corners = {(x, y) for x in (-0.4, 0.5) for y in (-0.2, 0.5)}
    assert {tuple(p[:2].round(9)) for p in positions} == corners
    np.testing.assert_allclose(distances, -1e-3, atol=1e-12)
    turned = Transform(Rotation.from_rpy(0.0, 0.0, np.pi / 4), (0.0, 0.0, 1.0))
    names, positions, _, _ = touch(cube, turned, cube, Transform())
    assert len(names) == 4 == len(set(names))
    x, y = positions[:, :2].T
    area = 0.5 * abs(np.array([np.cross((x[i], y[i], 0), (x[j], y[j], 0))[2] for i, j in _around(x, y)]).sum())
    assert area > 0.585  # a square: no other four corners of the octagon hold more


def _around(x, y):
    order = np.argsort(np.arctan2(y - y.mean(), x - x.mean()))
    return list(zip(order, np.roll(order, -1), strict=True))


# ---- terrain -------------------------------------------------------------------------------------------------------------------------


def hills(n, size=(4.0, 3.0)):
    x, y = np.meshgrid(np.linspace(-size[0] / 2, size[0] / 2, n), np.linspace(-size[1] / 2, size[1] / 2, n - 10))
    return Terrain(tuple(map(tuple, height(x, y))), size)


def height(x, y):
    return 0.2 * np.sin(1.5 * x + 0.3) * np.cos(y) + 0.1 * x


def test_ground_of_heights_is_the_law_that_they_were_taken_from():
    """Spheres over a grid of 161 heights, compared with the nearest point of the height function, found by minimisation."""
    rng, ground, ball = np.random.default_rng(9), hills(161), Sphere(0.1)
    for _ in range(20):
        p = np.array([*rng.uniform(-1.2, 1.2, 2), rng.uniform(-0.1, 0.6)])
        p[2] += height(*p[:2])
        found = minimize(
            lambda xy, p=p: (xy[0] - p[0]) ** 2 + (xy[1] - p[1]) ** 2 + (height(*xy) - p[2]) ** 2, p[:2], tol=1e-14
        )
        side = np.sign(p[2] - height(*p[:2]))
        _, positions, normals, distances = touch(ball, Transform(translation=p), ground, Transform())
        assert distances[0] == pytest.approx(side * np.sqrt(found.fun) - 0.1, abs=2e-6)
        foot = positions[0] - normals[0] * distances[0] / 2
        assert foot[2] == pytest.approx(height(*foot[:2]), abs=2e-6)


def test_level_ground_of_heights_is_a_plane_and_goes_on():
    ground = Terrain(((0.5,) * 3,) * 2, (2.0, 1.0))
    for p in ((0.1, 0.2, 0.7), (0.9, -0.49, 0.2), (7.0, -9.0, 0.8)):
        _, positions, normals, distances = touch(Sphere(0.1), Transform(translation=p), ground, Transform())
        assert distances[0] == pytest.approx(p[2] - 0.6, abs=1e-14)
        np.testing.assert_allclose(normals[0], (0.0, 0.0, 1.0), atol=1e-14)


def test_ground_of_heights_goes_through_all_of_them():
    rng = np.random.default_rng(10)
    z = rng.normal(size=(4, 5)) * 0.01
    ground = Terrain(tuple(map(tuple, z)), (4.0, 3.0))
    for (j, i), expected in np.ndenumerate(z):
        at = (i - 2.0, j - 1.5, expected)
        assert touch(Point(), Transform(translation=at), ground, Transform())[3][0] == pytest.approx(0.0, abs=1e-15)


# ---- many ----------------------------------------------------------------------------------------------------------------------------


def test_sweep_finds_what_every_pair_does():
    """Sixty shapes in a box have the same points and ids as each pair alone."""
    rng = np.random.default_rng(11)
    kinds = [Sphere(0.1), Capsule(0.05, 0.3), Box((0.2, 0.1, 0.3)), Point()]
    shapes = [kinds[k % 4] for k in range(59)] + [Plane()]
    poses = [pose(rng, 0.3) for _ in shapes]
    pairs = [pair for pair in itertools.combinations(range(60), 2) if sum(pair) % 7]
    terms = [shape_terms(shape, k, Transform()) for k, shape in enumerate(shapes)]
    for within in (0.0, 0.05):
        scene = _core.Scene(terms, [(*pair, 1.0, 0.0, 0.0, 0.0, None) for pair in pairs])
        _, which, _, positions, _, distances = scene.touching(np.stack([X.matrix for X in poses])[None], within)
        expected = []
        for k, (i, j) in enumerate(pairs):
            found = touch(shapes[i], poses[i], shapes[j], poses[j], within)
            expected += [(k, *p, d) for p, d in zip(found[1], found[3], strict=True)]
        assert len(expected) > 50
        np.testing.assert_allclose(np.column_stack([which, positions, distances]), expected, atol=1e-12)


def test_edges_that_cross_at_a_small_angle_are_nearest_where_they_cross():
    long = Box((0.2, 0.2, 2.0))
    turned, apart = Rotation.from_rpy(0.0, 0.0, np.pi / 4), 0.01
    X = Transform(Rotation.from_rpy(0.005, 0.0, 0.0) @ turned, (0.2 * np.sqrt(2.0) + apart, 0.0, 0.0))
    _, positions, _, distances = touch(long, X, long, Transform(turned))
    assert distances.min() == pytest.approx(oracle.distance(long, X, long, Transform(turned), None)[0], rel=1e-6)
