"""Joints reduced to the rows that their loops need: rank and degrees of freedom are unchanged, for exact rows and for rounded ones."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import AssemblyError, Inertia, ModelError, NameNotFoundError, Transform
from tests.gallery import made

CLOSED = [name for name in sarrus.mechanisms.__all__ if made(name).loop_joints]
# overconstrained in so many ways that such parts do not close within the tolerance
STIFF = ("hoberman_sphere", "miura_fold")
SMALL = ("biped", "gripper", "hoberman_ring")  # linkages, for which that is more


def twisted(robot, size, seed=1):
    """Return the same mechanism with slightly displaced joints."""
    rng, d = np.random.default_rng(seed), robot.description
    joints = (
        replace(
            j,
            at_parent=j.at_parent @ Transform.exp(rng.uniform(-size, size, 6)),
            tree=j.name in robot.joints,
            loop=j.name in robot.loop_joints,
        )
        for j in d.joints
    )
    return sarrus.Mechanism(replace(d, joints=tuple(joints)))


def near_home(robot):
    return robot.assemble()


@pytest.mark.parametrize("name", CLOSED)
def test_as_many_rows_as_count(name):
    """For exact mechanisms redundant rows are removed: rank, degrees of freedom and motion are unchanged, and reactions are unique."""
    robot = made(name)
    q = robot.assemble()
    report = robot.mobility(q)
    loose = sarrus.without_redundant_constraints(robot, q)
    assert loose.nc == report.rank and loose.joints == robot.joints and loose.nq == robot.nq
    found = loose.mobility(q)
    assert found.rank == report.rank and found.redundant == 0
    assert found.degrees_of_freedom == report.degrees_of_freedom
    assert found.finite_degrees_of_freedom == report.finite_degrees_of_freedom
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    assert_allclose(loose.forward_dynamics(q, v, np.zeros(robot.nv)), a, atol=1e-8 * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("name", [name for name in CLOSED if name not in STIFF])
def test_parts_that_do_not_fit(name):
    """Off by a ten-thousandth, overconstrained loops lock or do not close; loosened ones move like the exact mechanism."""
    exact = made(name)
    parts = twisted(exact, 1e-4)
    loose = sarrus.without_redundant_constraints(parts, tolerance=3e-3 if name in SMALL else 1e-3)
    report = exact.mobility(exact.assemble())
    assert loose.nc == report.rank
    q = loose.assemble()
    assert np.abs(loose.constraint_residual(q)).max(initial=0.0) < 1e-12
    assert loose.mobility(q).degrees_of_freedom == report.degrees_of_freedom


def planar(tilt=0.0, **top):
    """Return a four-bar whose rocker's hinge is tilted from the normal: 1.57 for a quarter turn."""
    b = sarrus.Builder("four-bar")
    for name, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(0.4, 0, 0))
    pivot = Transform.from_rpy(tilt, 0, 0, (1, 0, 0))
    b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=pivot)
    places = {"at_parent": (1.1, 0, 0), "at_child": (0.9, 0, 0)}
    b.add_joint("pin2", sarrus.Revolute("y", **top), "coupler", "rocker", loop=True, **places)
    b.set_home({"motor": -1.37, "pin1": 0.89, "pivot": -1.5})
    return b


def test_157_for_a_quarter_turn():
    parts = planar(np.pi / 2 - 1.57).build()
    with pytest.raises(AssemblyError):
        parts.assemble(fixed={"motor": 1.0})
    loose = sarrus.without_redundant_constraints(parts)
    assert loose.joint("pin2").type.free == ("rx", "ry", "rz", "tz")
    turn = loose.follow({"motor": np.linspace(-1.37, -1.37 + 2 * np.pi, 30)})
    assert len(turn) == 30
    texts = [w for w in loose.warnings if w.startswith("loosened")]
    assert texts[0].startswith("loosened: 'pin2' has 2 constraint rows as Gimbal(('rx', 'ry', 'rz', 'tz')")
    assert "the smallest nonzero singular value is 0." in texts[1] and "is treated as zero" in texts[1]
    assert "is violated by 0.0" in texts[2]


def test_terms_and_limits_stay_with_their_coordinate():
    """A damped hinge with a spring as loop joint keeps its effect."""
    given = {"damping": 0.3, "friction": 0.01, "stiffness": 2.0, "rest": 0.4, "limits": (-3, 3), "effort_limit": 9}
    robot = planar(**given).build()
    q = robot.assemble(fixed={"motor": 0.3})
    loose = sarrus.without_redundant_constraints(robot, q)
    joint = loose.joint("pin2").type
    assert joint.damping.tolist() == [0, 0, 0.3, 0] and joint.rest.tolist() == [0, 0, 0.4, 0]
    assert joint.limits[0].tolist() == [-np.inf, -np.inf, -3, -np.inf] and joint.effort_limit[2] == 9
    v = robot.project_velocity(q, [1.0, 0.0, 0.0])
    assert_allclose(loose.bias_forces(q, v), robot.bias_forces(q, v), rtol=1e-9)
    assert_allclose(loose.forward_dynamics(q, v, np.zeros(3)), robot.forward_dynamics(q, v, np.zeros(3)), rtol=1e-9)


def test_two_balls_that_make_a_hinge():
    """Six rows of rank five: the second ball joint slides along the line through both, for any axes of its frame."""
    b = sarrus.Builder("door")
    b.add_body("door", BALL := Inertia.sphere(1.0, 0.1))
    b.add_body("frame", BALL)
    b.add_joint("float", sarrus.Free(), "ground", "door")
    b.add_joint("fixed", sarrus.Fixed(), "ground", "frame")
    along = np.array([0.3, 0.4, 1.2])
    turned = Transform.from_rpy(0.4, 0.5, 0.6)
    for k, name in enumerate(("low", "high")):
        place = Transform(translation=k * along) @ turned
        b.add_joint(name, sarrus.Spherical(), "frame", "door", at_parent=place, at_child=place, loop=True)
    robot = b.build()
    loose = sarrus.without_redundant_constraints(robot, robot.neutral())
    assert (robot.nc, loose.nc) == (6, 5)
    spec = next(j for j in loose.description.joints if j.name == "high")
    free = next(k for k, p in enumerate(("tx", "ty", "tz")) if p in spec.joint.free)
    assert_allclose(np.abs(spec.at_child.rotation[:, free]), along / np.linalg.norm(along), atol=1e-12)
    assert loose.mobility(robot.neutral()).degrees_of_freedom == 1


def test_a_joint_that_holds_nothing_is_left_out():
    b = planar()
    b.add_joint(
        "again", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=True
    )
    loose = sarrus.without_redundant_constraints(b.build())
    assert loose.loop_joints == ("pin2",) and loose.nc == 2
    assert any(w.startswith("loosened: 'again' is omitted; it had 5 rows") for w in loose.warnings)


def test_nothing_to_do_is_the_mechanism_itself():
    robot = sarrus.mechanisms.delta()
    assert sarrus.without_redundant_constraints(robot) is robot


def test_only_some_joints():
    robot = sarrus.mechanisms.three_rrr()
    loose = sarrus.without_redundant_constraints(robot, joints=["tip3"])
    assert loose.joint("tip2").type == robot.joint("tip2").type and loose.nc == 7
    assert any("3 redundant rows are left" in w for w in loose.warnings)


def test_it_is_saved_and_the_original_is_untouched():
    robot = sarrus.mechanisms.four_bar()
    loose = sarrus.without_redundant_constraints(robot)
    assert robot == sarrus.mechanisms.four_bar() and loose != robot
    assert loose.to_builder().build() == loose
    assert_array_equal(loose.mass_matrix(np.ones(3)), robot.mass_matrix(np.ones(3)))


def stretched():
    """Return a flat parallelogram, where rows are dependent that are independent elsewhere."""
    b = sarrus.Builder("flat")
    for name in ("left", "right", "top"):
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("l", sarrus.Revolute("y"), "ground", "left")
    b.add_joint("r", sarrus.Revolute("y"), "ground", "right", at_parent=(1, 0, 0))
    b.add_joint("t", sarrus.Revolute("y"), "left", "top", at_parent=(1, 0, 0))
    b.add_joint("c", sarrus.Revolute("y"), "top", "right", at_parent=(1, 0, 0), at_child=(1, 0, 0), loop=True)
    return b.build()


def motor():
    b = planar()
    b.set_joint("pin2", actuated=True)
    b.set_joint("motor", actuated=False, tree=True)
    return b.build()


REFUSED = {
    "open loops": (lambda: sarrus.without_redundant_constraints(sarrus.mechanisms.four_bar(), [0, 0, 0]), AssemblyError, "q violates the loops by .* expected at most the tolerance, 0.003"),
    "no such joint": (lambda: sarrus.without_redundant_constraints(sarrus.mechanisms.four_bar(), joints=["pin1"]), NameNotFoundError, "no loop joint is named 'pin1'; did you mean 'pin2'"),
    "a motor": (lambda: sarrus.without_redundant_constraints(motor()), ModelError, "3 of 5 rows are redundant within 0.003; 'pin2' cannot be replaced .it has a motor.; tree= and loop="),
    "a singular position": (lambda: sarrus.without_redundant_constraints(stretched(), [0, 0, 0]), ModelError, "'flat' is in a singular position at q: in nearby positions 'c: .*' is violated by"),
    "a tolerance of nothing": (lambda: sarrus.without_redundant_constraints(sarrus.mechanisms.four_bar(), tolerance=0), ValueError, "tolerance must be positive"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
