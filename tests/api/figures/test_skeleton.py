"""Skeletons agree with the mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import sarrus
from sarrus.figures.skeleton import Skeleton
from tests.gallery import every

# points are sums of a few products of numbers of order 1 m
ROUNDING = 1e-13


def lengths(segments):
    return np.linalg.norm(segments[..., 1, :] - segments[..., 0, :], axis=-1)


def test_bars_of_a_four_bar_are_its_links_and_meet_at_its_pins():
    fourbar = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
    q = fourbar.follow({"motor": np.linspace(0.0, 6.0, 25)})
    bars = Skeleton(fourbar).segments(q)
    for body, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        assert bars[body].shape == (25, 1, 2, 3)
        assert np.abs(lengths(bars[body]) - length).max() < ROUNDING
    crank, coupler, rocker = (bars[body][:, 0] for body in ("crank", "coupler", "rocker"))
    assert np.abs(gap(crank, coupler)).max() < ROUNDING
    # this one closes the loop
    assert np.abs(gap(coupler, rocker)).max() < 10 * ROUNDING
    anchors = Skeleton(fourbar).anchors
    assert np.linalg.norm(anchors[0] - anchors[1]) == pytest.approx(1.0, abs=ROUNDING)
    assert np.abs(gap(crank, np.broadcast_to(anchors, (25, 2, 3)))).max() < ROUNDING


def gap(one, other):
    """Return (n,) the distance of an end of one bar (n, 2, 3) from an end of another."""
    return np.linalg.norm(one[:, :, None] - other[:, None], axis=-1).min(axis=(1, 2))


@every
def test_many_configurations_are_each_one_and_bodies_stay_rigid(mechanism):
    skeleton = Skeleton(mechanism)
    q = mechanism.random(np.random.default_rng(1), size=(2, 3))
    flat = skeleton.segments_flat(q)
    assert flat.shape == (2, 3, len(skeleton.bars), 2, 3) and len(skeleton.bars) > 0
    # many are multiplied in another order than one
    assert np.abs(flat[1, 2] - skeleton.segments_flat(q[1, 2])).max() < ROUNDING
    by_owner = skeleton.segments(q)
    assert tuple(by_owner) == skeleton.owners and sum(b.shape[-3] for b in by_owner.values()) == len(skeleton.bars)
    rigid = [k for k, bar in enumerate(skeleton.bars) if bar.first[0] == bar.second[0]]
    long = lengths(flat)[..., rigid]
    assert np.abs(long - long[0, 0]).max(initial=0.0) < ROUNDING * (1 + np.abs(q).max())
    low, high = skeleton.bounds(q)
    assert (low <= flat.min(axis=(0, 1, 2, 3))).all() and (flat.max(axis=(0, 1, 2, 3)) <= high).all()


@every
def test_joints_that_hold_a_point_are_at_the_same_place_of_both_bodies(mechanism):
    q = mechanism.assemble()
    points = Skeleton(mechanism).joint_points(q)
    for spec in mechanism.description.joints:
        if spec.joint.kind in ("Revolute", "Spherical", "Universal", "Fixed"):
            parent = mechanism.pose(q, spec.parent)
            there = parent[:3, :3] @ spec.at_parent.translation + parent[:3, 3]
            # assembly closes loops to about 1e-13 of the size of bodies
            assert np.abs(points[spec.name] - there).max() < 1e-12


def test_a_joint_that_slides_shows_a_bar_that_stretches():
    stewart = sarrus.mechanisms.stewart()
    skeleton = Skeleton(stewart)
    q = stewart.assemble()
    stretch = [bar.owner for bar in skeleton.bars if bar.slides]
    assert len(stretch) == 6
    q1 = q.copy()
    q1[stewart.joint("leg1").q_slice] += 0.25
    before, after = (lengths(skeleton.segments_flat(x))[[b.slides for b in skeleton.bars]] for x in (q, q1))
    assert (after - before)[0] == pytest.approx(0.25, abs=ROUNDING) and np.abs((after - before)[1:]).max() < ROUNDING


def on_the_ground(closing):
    """Return a beam with the ground as child of its loop joint, beside a fixed body."""
    b = sarrus.Builder("beam")
    for body in ("post", "beam"):
        b.add_body(body, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("base", sarrus.Fixed(), "ground", "post")
    b.add_joint("pin", sarrus.Revolute("y"), "ground", "beam", at_child=(0.3, 0, 0))
    b.add_joint("tie", closing, "beam", "ground", at_parent=(0.1, 0, 0), at_child=(-0.2, 0, 0), loop=True)
    return b.build()


CLOSING = (sarrus.Spherical(), sarrus.Revolute("y"), sarrus.Prismatic("x"), sarrus.Cylindrical("x"), sarrus.Planar("y"))


@pytest.mark.parametrize("closing", CLOSING, ids=lambda joint: joint.kind)
def test_the_ground_may_be_the_child_of_what_closes(closing):
    """A slide along the ground shows its displacement."""
    robot = on_the_ground(closing)
    q = np.linspace(0.0, 0.1, 6).reshape(2, 3, 1)
    skeleton = Skeleton(robot)
    points = skeleton.joint_points(q)
    assert {there.shape for there in points.values()} == {(2, 3, 3)} and (points["tie"] == [-0.2, 0, 0]).all()
    assert skeleton.joint_axis(q, "tie").shape == (2, 3, 3)
    if closing.kind in ("Prismatic", "Cylindrical"):
        (bar,) = (bar for bar in skeleton.bars if bar.slides)
        assert (bar.owner, bar.first[0], bar.second[0]) == ("beam", "beam", "ground")
    robot.plot(q[0])
    assert "<svg" in robot._repr_html_()


def test_a_massless_rod_keeps_its_length():
    b = sarrus.Builder("held")
    b.add_body("plate", sarrus.Inertia.box(1.0, (0.2, 0.2, 0.02)))
    b.add_joint("float", sarrus.Free(), "ground", "plate")
    b.add_distance("rod", ("ground", (0, 0, 1)), ("plate", (0.1, 0, 0)), length=0.8)
    held = b.build()
    q = held.assemble()
    skeleton = Skeleton(held)
    rod = skeleton.segments(q)["rod"]
    assert rod.shape == (1, 2, 3) and lengths(rod)[0] == pytest.approx(0.8, abs=1e-12)
    assert skeleton.anchors.tolist() == [[0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("places", "count"),
    [
        ([(0, 0, 0), (1, 0, 0)], 1),
        ([(0, 0, 0), (1, 0, 0), (0.5, 0, 0), (0.2, 0, 0)], 3),  # on a line
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0)], 3),  # a triangle
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0.4, 0.3, 0)], 5),  # a square, and one inside
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], 4),  # in space
    ],
)
def test_places_of_a_body_are_all_joined_by_few_bars(places, count):
    b = sarrus.Builder("star")
    b.add_body("hub", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("held", sarrus.Spherical(), "ground", "hub", at_child=places[0])
    for k, place in enumerate(places[1:]):
        b.add_frame(f"frame{k}", "hub", place)
    bars = [bar for bar in Skeleton(b.build()).bars if bar.owner == "hub"]
    assert len(bars) == count
    ends = np.array([end for bar in bars for end in (bar.first[1], bar.second[1])])
    for place in places:
        assert np.abs(ends - place).max(axis=1).min() < ROUNDING
    # everything hangs together: ends that coincide, and the two ends of a bar, are one part
    part = list(range(len(ends)))
    for _ in part:
        for i in range(len(ends)):
            for j in range(len(ends)):
                if i // 2 == j // 2 or np.abs(ends[i] - ends[j]).max() < ROUNDING:
                    part[i] = min(part[i], part[j])
    assert set(part) == {0}


def test_a_free_body_without_places_is_the_box_of_its_inertia():
    b = sarrus.Builder("brick")
    b.add_body("brick", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "brick")
    brick = b.build()
    bars = Skeleton(brick).segments(brick.neutral())["brick"]
    assert sorted(lengths(bars).round(12)) == [0.1] * 4 + [0.2] * 4 + [0.3] * 4


def test_a_rolling_disc_is_round():
    disc = sarrus.mechanisms.rolling_disc(radius=0.3)
    q = disc.assemble()
    rim = np.array([bar.first[1] for bar in Skeleton(disc).bars])
    spec = disc.description.constraints[0]
    assert np.abs(np.linalg.norm(rim - spec.center, axis=1) - 0.3).max() < ROUNDING
    assert Skeleton(disc).bounds(q)[0][2] == pytest.approx(0.0, abs=1e-12)  # it stands on the ground


def test_wrong_sizes_are_refused():
    skeleton = Skeleton(sarrus.mechanisms.four_bar())
    with pytest.raises(sarrus.ShapeError, match="nq = 3"):
        skeleton.segments([0.0, 0.0])
    with pytest.raises(sarrus.NameNotFoundError, match="motr"):
        skeleton.joint_axis(np.zeros(3), "motr")
