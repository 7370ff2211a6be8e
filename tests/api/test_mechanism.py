"""Mechanisms as values: equal, hashed, pickled, unchanging, and what they say of themselves."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
from tests.random_mechanisms import random_mechanism, random_state


def make_robot():
    return random_mechanism(3, bodies=20, floating=True, friction=True, armature=True, springs=True)


ROBOT = make_robot()


def test_mechanisms_are_values():
    twin, other = make_robot(), random_mechanism(4)
    for same in (twin, copy.copy(ROBOT), copy.deepcopy(ROBOT), pickle.loads(pickle.dumps(ROBOT))):
        assert same == ROBOT
        assert hash(same) == hash(ROBOT)
        args = random_state(ROBOT, np.random.default_rng(0))
        assert_array_equal(same.forward_dynamics(*args), ROBOT.forward_dynamics(*args))
        assert (same.frames, same.joints, same.warnings) == (ROBOT.frames, ROBOT.joints, ROBOT.warnings)
    assert other != ROBOT
    assert ROBOT != "robot"
    assert len({ROBOT, twin, other}) == 2


def test_joints_of_mechanisms_are_values():
    for name in ("joint1", "joint7"):
        joint = ROBOT.joint(name)
        for same in (copy.copy(joint), copy.deepcopy(joint), pickle.loads(pickle.dumps(joint))):
            for attribute in (*joint.__slots__, "kind"):
                assert getattr(same, attribute) == getattr(joint, attribute)
            assert repr(same) == repr(joint)


def test_a_second_init_is_refused():
    """It would change description and hash, and none of the numbers."""
    robot, other = random_mechanism(4), random_mechanism(5)
    with pytest.raises(TypeError, match="a Mechanism is immutable"):
        robot.__init__(other.description)
    assert robot == random_mechanism(4)


def test_mechanisms_do_not_change():
    robot = random_mechanism(5)
    joint = robot.joint("joint1")
    for thing, attribute in (robot, "name"), (robot, "gravity"), (robot, "new"), (joint, "name"), (joint, "nv"):
        with pytest.raises(AttributeError):
            setattr(thing, attribute, 1)
    with pytest.raises(AttributeError):
        del robot.description
    robot.gravity[:] = 0.0  # a copy
    assert robot.gravity.any()
    body = robot.description.bodies[0]
    for array in (body.inertia.com, body.inertia.about_com, robot.description.joints[1].at_parent.translation):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_a_builder_can_go_on_after_building():
    builder = sarrus.Builder()
    builder.add_body("a", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_joint("j", sarrus.Revolute("x"), "ground", "a")
    first = builder.build()
    builder.add_body("b", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_joint("k", sarrus.Revolute("x"), "a", "b")
    assert (first.nv, builder.build().nv) == (1, 2)


def test_slices_stack_q_and_v_in_the_order_of_addition():
    q, v = [ROBOT.joint(name).q_slice for name in ROBOT.joints], [ROBOT.joint(name).v_slice for name in ROBOT.joints]
    for slices, size in ((q, ROBOT.nq), (v, ROBOT.nv)):
        assert slices[0].start == 0
        assert slices[-1].stop == size
        assert all(a.stop == b.start for a, b in itertools.pairwise(slices))
    assert ROBOT.joints == tuple(spec.name for spec in ROBOT.description.joints)
    assert ROBOT.bodies == tuple(spec.name for spec in ROBOT.description.bodies)
    assert ROBOT.frames == ("ground", *ROBOT.bodies, *(spec.name for spec in ROBOT.description.frames))


def test_nothing_moves():
    """nq = 0: shapes still say how many states there are."""
    builder = sarrus.Builder()
    builder.add_body("a", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_joint("weld", sarrus.Fixed(), "ground", "a")
    robot = builder.build()
    nothing = np.zeros((5, 0))
    assert robot.inverse_dynamics(nothing, nothing, nothing).shape == (5, 0)
    assert robot.mass_matrix(nothing[0]).shape == (0, 0)
    assert robot.pose(nothing, "a").shape == (5, 4, 4)
    assert robot.jacobian(nothing, "a").shape == (5, 6, 0)
    assert_array_equal(sarrus.formulations.operational_inertia_inverse(robot, nothing, "a"), np.zeros((5, 6, 6)))


def test_named_configurations():
    builder = sarrus.Builder()
    builder.add_body("a", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_body("b", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_joint("ball", sarrus.Spherical(), "ground", "a")
    builder.add_joint("hinge", sarrus.Revolute("x"), "a", "b")
    plain = builder.build()
    builder.set_configuration("bent", {"hinge": 0.5, "ball": [0, 0, 3, 4]})
    builder.set_configuration("turned", {"ball": [1, 0, 0, 0]})
    robot = builder.build()
    assert robot != plain
    assert pickle.loads(pickle.dumps(robot)).description.configurations == robot.description.configurations
    assert set(dict(robot.description.configurations)) == {"bent", "turned"}
    assert_array_equal(robot.configuration("bent"), [0, 0, 0.6, 0.8, 0.5])
    assert_array_equal(robot.configuration("turned"), [1, 0, 0, 0, 0])


# ---- where one begins ------------------------------------------------------------------------------------------------


def test_efforts_where_tau_is_expected_say_what_makes_tau_of_them():
    robot = sarrus.mechanisms.four_bar()
    q, v, u = robot.assemble(fixed={"motor": 0.5}), np.zeros(3), np.ones(1)
    asked = [
        lambda: robot.forward_dynamics(q, v, u),
        lambda: robot.forward_dynamics(np.stack([q, q]), v, u),
        lambda: robot.linearize(q, v, u),
        lambda: sarrus.simulate(robot, q, v, 0.01, lambda t, q, v: u),
        lambda: sarrus.simulate_many(robot, np.stack([q, q]), v, 0.01, policy=lambda t, q, v: np.ones((2, 1))),
    ]
    for ask in asked:
        with pytest.raises(sarrus.ShapeError, match=r"become tau by robot\.actuation_matrix\(q\) @ u$"):
            ask()
    robot.forward_dynamics(q, v, robot.actuation_matrix(q) @ u)
    with pytest.raises(sarrus.ShapeError) as wrong:
        robot.forward_dynamics(q, u, v)
    assert "actuation_matrix" not in str(wrong.value)


def test_joints_have_places_in_the_world():
    """Each joint has one pose on each body, tree or loop joint; for pins of a closed chain both are at the same point."""
    robot = sarrus.mechanisms.four_bar()
    q = np.stack([robot.assemble(fixed={"motor": angle}) for angle in (0.5, 1.0)])
    for name in (*robot.joints, *robot.loop_joints):
        spec = next(spec for spec in robot.description.joints if spec.name == name)
        on_parent, on_child = robot.pose(q, f"{name}.parent"), robot.pose(q, f"{name}.child")
        assert np.abs(on_parent - robot.pose(q, spec.parent) @ spec.at_parent.matrix).max() < 1e-14
        assert np.abs((on_parent - on_child)[:, :3, 3]).max() < 1e-12
    with pytest.raises(sarrus.NameNotFoundError, match=r"'pin2' is a joint; its frames are 'pin2\.parent'"):
        robot.pose(q, "pin2")
    with pytest.raises(
        sarrus.NameNotFoundError, match=r"no frame is named 'pin3'; there are: coupler, crank, ground, rocker$"
    ):
        robot.pose(q, "pin3")
    assert not any("." in name for name in robot.frames)


def test_a_frame_that_is_named_as_a_joints_place_stays_what_it_is():
    b = sarrus.mechanisms.pendulum().to_builder()
    b.add_frame("pivot.parent", "ground", (1.0, 2.0, 3.0))
    assert b.build().pose([0.3], "pivot.parent")[:3, 3].tolist() == [1.0, 2.0, 3.0]


def test_placements_are_transforms_or_translations():
    rod = sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    moved = sarrus.Transform.from_translation((0.3, 0, 0))
    assert moved == sarrus.Transform(translation=(0.3, 0, 0))
    assert rod.transformed((0.3, 0, 0)) == rod.transformed(moved)
    assert np.array_equal(sarrus.spatial.transform_motion((0, 1, 0), [0, 0, 2, 0, 0, 0]), [0, 0, 2, 2, 0, 0])
    for wrong in ("x", (1, 2), np.eye(4)):
        with pytest.raises(
            TypeError, match=r"a Transform, such as Transform.from_matrix\(H\), or a translation \(3,\)"
        ):
            rod.transformed(wrong)


def test_joints_join_frames_of_bodies():
    turned = sarrus.Transform.from_rpy(0.1, 0.2, 0.3, (0.5, 0, 0))
    robots = []
    for by_frames in (True, False):
        b = sarrus.Builder("arm")
        for name in ("upper", "lower"):
            b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
        if by_frames:
            b.add_frame("wrist", "upper", turned)
            b.add_frame("grip", "lower", turned)
        b.add_joint("shoulder", sarrus.Revolute("y"), "ground", "upper")
        ends = ("wrist", "grip") if by_frames else ("upper", "lower")
        at = ((0, 0, 0.2), None) if by_frames else (turned @ sarrus.Transform.from_translation((0, 0, 0.2)), turned)
        b.add_joint("elbow", sarrus.Revolute("y"), *ends, at_parent=at[0], at_child=at[1])
        if by_frames:
            with pytest.raises(sarrus.ModelError, match="connects body 'upper' to itself"):
                b.add_joint("knot", sarrus.Revolute("y"), "wrist", "upper")
        robots.append(b.build())
    assert robots[0].description.joints == robots[1].description.joints


def test_angles_that_look_like_degrees_are_warned_of():
    def hinged(limits):
        b = sarrus.Builder("door")
        b.add_body("door", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint("hinge", sarrus.Revolute("z", limits=limits), "ground", "door")
        return b.build()

    with pytest.warns(
        sarrus.ModelWarning, match="limits of joint 'hinge' look like degrees, but are read as radians: -90, 90"
    ):
        robot = hinged((-90, 90))
    assert "look like degrees" in robot.warnings[0]
    for fine in ((-12.5, 12.5), (-100.53, 100.53), (-1000, 1000), (-np.inf, np.inf), (-6, 6)):
        assert not hinged(fine).warnings
    four_bar = sarrus.mechanisms.four_bar()
    with pytest.warns(sarrus.ModelWarning, match="joint 'motor' at 30 looks like degrees"):
        four_bar.assemble(fixed={"motor": 30})
    four_bar.assemble(fixed={"motor": 30.1})  # of one that has turned often
    wide = four_bar.to_builder()
    wide.set_joint("motor", sarrus.Revolute("y", limits=(-33.0, 33.0)))
    wide.build().assemble(fixed={"motor": 30})
