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
    with pytest.raises(TypeError, match="a Mechanism does not change"):
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
    assert_array_equal(sarrus.works.operational_inertia_inverse(robot, nothing, "a"), np.zeros((5, 6, 6)))


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
