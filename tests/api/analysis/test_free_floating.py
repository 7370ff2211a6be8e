"""Floating bases: arguments, results and errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import ModelError, NameNotFoundError, NotRealizableError, ShapeError, StateError
from tests.laws.test_free_floating_laws import BALANCED, FOLDED, seven_bodies, stewart_on_a_satellite

ROBOT, LINKAGE, PLATFORM = seven_bodies(), sarrus.mechanisms.four_bar(), stewart_on_a_satellite()
HERE, REST = FOLDED, np.zeros(12)
NAN = float("nan")


def tied(joint=None, *, hinge=None, second=False, constrain=None, spring=False):
    """Return a body with a constraint to the ground, or a floating one."""
    b = sarrus.Builder()
    ball = sarrus.Inertia.sphere(1.0, 0.1)
    b.add_body("body", ball)
    b.add_joint("root", joint or sarrus.Free(), "ground", "body")
    b.add_body("arm", ball)
    b.add_joint("hinge", hinge or sarrus.Revolute("z"), "body", "arm", at_parent=(1, 0, 0))
    if second:
        b.add_body("other", ball)
        b.add_joint("second root", sarrus.Free(), "ground", "other")
    if constrain:
        constrain(b)
    if spring:
        b.add_spring("tether", ("ground", (0, 0, 0)), ("arm", (0.1, 0, 0)), stiffness=1.0, rest_length=1.0)
    return b.build()


QUESTIONS = {
    "generalized_jacobian": lambda r: sarrus.floating.generalized_jacobian(r, r.neutral(), "ground"),
    "generalized_jacobian_derivative": lambda r: sarrus.floating.generalized_jacobian_derivative(
        r, r.neutral(), np.zeros(r.nv), "ground"
    ),
    "momentum_velocity": lambda r: sarrus.floating.momentum_velocity(
        r, r.neutral(), np.zeros(r.nv), [0, 0, 0, 1.0, 0, 0]
    ),
    "equations_of_motion": lambda r: sarrus.floating.equations_of_motion(r, r.neutral()),
    "base_reaction": lambda r: sarrus.floating.base_reaction(r, r.neutral(), np.zeros(r.nv), np.zeros(r.nv)),
    "reaction_null_space": lambda r: sarrus.floating.reaction_null_space(r, r.neutral()),
    "resolved_rate": lambda r: sarrus.floating.resolved_rate(r, r.neutral(), {}),
    "motion": lambda r: sarrus.floating.motion(r, r.neutral(), lambda t, q: np.zeros(r.nv), [0.0, 1.0]),
    "path": lambda r: sarrus.floating.path(r, r.neutral(), {}, [1.0]),
    "dynamic_singularity_map": lambda r: sarrus.floating.dynamic_singularity_map(r, r.neutral(), "ground"),
}
TIED = {
    "joint 'root' constrains its base relative to the ground": lambda: tied(sarrus.Revolute("z")),
    "joints 'root', 'second root' connect several bodies to the ground": lambda: tied(second=True),
    "constraint 'rod' constrains its base relative to the ground": lambda: tied(
        constrain=lambda b: b.add_distance("rod", ("ground", (0, 0, 0)), ("arm", (0, 0, 0)), length=1.0)
    ),
    "constraint 'weld' constrains its base": lambda: tied(
        constrain=lambda b: b.add_joint("weld", sarrus.Spherical(), "ground", "arm", at_parent=(1, 0, 0), loop=True)
    ),
    "constraint 'law' constrains its base": lambda: tied(
        constrain=lambda b: b.add_pfaffian("law", [[1.0, 0, 0, 0, 0, 0]], ["root"])
    ),
    "no body moves": lambda: tied(sarrus.Fixed(), hinge=sarrus.Fixed()),
}


@pytest.mark.parametrize("why", TIED)
@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_tied_to_the_ground_has_no_momentum_of_its_own(name, why):
    with pytest.raises(ModelError, match=f"^{name} requires a floating mechanism.*{why}"):
        QUESTIONS[name](TIED[why]())


def test_what_floats_though_it_hardly_looks_so():
    """Gimbals with six coordinates, reversed free joints, and bodies welded to the ground also float."""
    for joint in (sarrus.Free(), sarrus.Gimbal("rx ry rz tx ty tz")):
        b = sarrus.Builder()
        b.add_body("stand", sarrus.Inertia.sphere(100.0, 1.0))
        b.add_joint("weld", sarrus.Fixed(), "ground", "stand")
        b.add_body("body", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_body("arm", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint("hinge", sarrus.Revolute("z"), "body", "arm", at_child=(1, 0, 0))
        ends = ("stand", "body") if joint.nq == 6 else ("body", "stand")
        b.add_joint("base", joint, *ends, at_parent=(0.1, 0.2, 0.3))
        robot = b.build()
        q = robot.random(np.random.default_rng(0))
        v = sarrus.floating.momentum_velocity(robot, q, np.ones(7), np.arange(6.0))
        assert_allclose(robot.momentum(q, v), np.arange(6.0), atol=1e-12)
        form = sarrus.floating.equations_of_motion(robot, q, v, end_points="arm")
        # a gimbal's rates may lie almost along each other
        assert_allclose(
            form.generalized_jacobian("arm"), sarrus.floating.generalized_jacobian(robot, q, "arm"), atol=1e-11
        )
        assert form.coordinates == ("hinge",)


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hnad"), NameNotFoundError, "no frame is named 'hnad'; did you mean 'hand'?"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE[:-1], "hand"), ShapeError, "q has 12 entries in its last axis"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE * NAN, "hand"), StateError, r"q\[0\] is nan"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hand", expressed_in="inertial"), ValueError, "expressed_in must be"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hand", out=np.zeros((6, 5))), ShapeError, r"out has shape \(6, 5\)"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hand", independent=["joint0"]), StateError, "joint0 determine 7 of 12 degrees"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hand", independent=["joint9"]), NameNotFoundError, "no joint is named 'joint9'"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hand", independent="joint0"), ModelError, "coordinates must be 'actuated', or a sequence"),
        (lambda: sarrus.floating.generalized_jacobian(ROBOT, HERE, "hand", independent=3), TypeError, "coordinates must be 'actuated', or a sequence"),
        (lambda: sarrus.floating.momentum_velocity(ROBOT, HERE, REST, [0.0, 1.0]), ShapeError, "momentum has 2 entries in its last axis; it must have 6"),
        (lambda: sarrus.floating.momentum_velocity(ROBOT, HERE, REST, [NAN] * 6), StateError, r"momentum\[0\] is nan"),
        (lambda: sarrus.floating.equations_of_motion(ROBOT, HERE, base="nobody"), NameNotFoundError, "no frame is named 'nobody'"),
        (lambda: sarrus.floating.equations_of_motion(ROBOT, HERE, base="ground"), StateError, "frame 'ground' does not determine the motion of the base"),
        (lambda: sarrus.floating.equations_of_motion(ROBOT, HERE, REST[:-1]), ShapeError, "v has shape"),
        (lambda: sarrus.floating.momentum_about(ROBOT, HERE, REST, point="nowhere"), NameNotFoundError, "nowhere"),
        (lambda: sarrus.floating.momentum_about(ROBOT, HERE, REST, point=[1.0, 2.0]), ShapeError, "point has shape"),
        (lambda: sarrus.floating.base_reaction(ROBOT, HERE, REST, REST, "hand"), ModelError, "frame 'hand' is not on the base, which consists of satellite"),
        (lambda: sarrus.floating.base_reaction(ROBOT, HERE, REST, REST, "nowhere"), NameNotFoundError, "nowhere"),
        (lambda: sarrus.floating.base_reaction(r := tied(spring=True), r.neutral(), np.zeros(7), np.zeros(7)), ModelError, "spring 'tether'"),
        (lambda: sarrus.floating.reaction_null_space(ROBOT, HERE, components="roll"), ModelError, "'roll' is not one of rx ry rz"),
        (lambda: sarrus.floating.reaction_null_space(ROBOT, HERE, components=""), ModelError, "components of the base's velocity must be among"),
        (lambda: sarrus.floating.reaction_null_space(ROBOT, HERE, components=3), TypeError, "components must be"),
        (lambda: sarrus.floating.resolved_rate(ROBOT, HERE, {"hand": [1.0]}), ShapeError, r"motions\['hand'\] has shape \(1,\); its last axis must have 6"),
        (lambda: sarrus.floating.resolved_rate(ROBOT, HERE, "hand"), TypeError, "motions must be a mapping of frames to velocities; got 'hand'"),
        (lambda: sarrus.floating.resolved_rate(ROBOT, HERE, {"ground": [1.0, 0, 0, 0, 0, 0]}), StateError, "no joint velocity produces these frame"),
        (
            lambda: sarrus.floating.resolved_rate(ROBOT, HERE, {"hand": [0, 0, 0, 1.0, 0, 0]}, still="rx ry rz"),
            StateError,
            "with zero rx ry rz of the base",
        ),
        (lambda: sarrus.floating.motion(ROBOT, HERE, lambda t, q: REST, [1.0, 0.0]), ValueError, "times must be finite and increasing"),
        (lambda: sarrus.floating.motion(ROBOT, HERE[None], lambda t, q: REST, [0.0]), ShapeError, "expected one configuration"),
        (lambda: sarrus.floating.motion(ROBOT, HERE, lambda t, q: REST, [0.0], step=0.0), ValueError, "step must be positive"),
        (lambda: sarrus.floating.path(ROBOT, HERE, {"hand": [[0.0, 0, 0]]}, [-1.0]), ValueError, "increasing and after 0"),
        (lambda: sarrus.floating.path(ROBOT, HERE, {"hand": [[0.0, 0, 0]]}, [0.0]), StateError, "at time 0 must be where"),
        (lambda: sarrus.floating.path(ROBOT, HERE, {"hand": [[0.0, 0]]}, [1.0]), ShapeError, r"expected \(1, 3\) or \(1, 4, 4\)"),
        (lambda: sarrus.floating.path(ROBOT, HERE, {"hand": [[NAN, 0, 0]]}, [1.0]), StateError, "must be finite"),
        (lambda: sarrus.floating.dynamic_singularity_map(ROBOT, HERE, ("hand", "t")), ModelError, "'t' is not one of"),
        (lambda: sarrus.floating.generalized_jacobian(PLATFORM, PLATFORM.neutral(), "platform", independent=[]), StateError, "determine"),
    ],
)  # fmt: skip
def test_bad_input_is_named(ask, error, says):
    with pytest.raises(error, match=says):
        ask()


def test_way_points_that_no_reactionless_path_reaches():
    far = ROBOT.pose(HERE, "hand")[:3, 3] + [0.3, 0.3, 0.3]
    with pytest.raises(
        NotRealizableError,
        match=r"waypoint 0 of hand is not reached with zero rx ry rz of the base: at .* s the joints",
    ):
        sarrus.floating.path(ROBOT, HERE, {"hand": [far]}, [1.0], still="rx ry rz", step=0.05)
    with pytest.raises(NotRealizableError, match="waypoint 1 of hand is not reached: "):
        sarrus.floating.path(
            ROBOT, HERE, {"hand": [ROBOT.pose(HERE, "hand")[:3, 3], [9.0, 0, 0]]}, [0.5, 1.5], step=0.05
        )


def test_a_bad_state_spoils_no_other():
    rng = np.random.default_rng(0)
    robot = seven_bodies(balanced=True)
    q = robot.integrate(BALANCED, 0.1 * rng.normal(size=(4, robot.nv)))
    v = 0.1 * rng.normal(size=(4, robot.nv))
    bad = q.copy()
    bad[2, 5] = NAN
    twist = np.zeros(6)
    twist[3] = 0.1
    asked = {
        "generalized_jacobian": lambda q: sarrus.floating.generalized_jacobian(robot, q, "hand"),
        "independent": lambda q: sarrus.floating.generalized_jacobian(robot, q, "hand", independent="actuated"),
        "its rate": lambda q: sarrus.floating.generalized_jacobian_derivative(
            robot, q, v, "hand", independent="actuated"
        ),
        "momentum_velocity": lambda q: sarrus.floating.momentum_velocity(robot, q, v),
        "equations_of_motion": lambda q: (
            sarrus.floating.equations_of_motion(robot, q, v, end_points=["hand"]).generalized_inertia
        ),
        "coupling": lambda q: sarrus.floating.equations_of_motion(robot, q, v, end_points=["hand"]).coupling_factor(
            "hand"
        ),
        "momentum_about": lambda q: sarrus.floating.momentum_about(robot, q, v),
        "base_reaction": lambda q: sarrus.floating.base_reaction(robot, q, v, v),
        "reaction_null_space": lambda q: sarrus.floating.reaction_null_space(robot, q).projector,
        "resolved_rate": lambda q: sarrus.floating.resolved_rate(robot, q, {"hand": twist}),
        "map": lambda q: sarrus.floating.dynamic_singularity_map(robot, q, "hand").smallest,
    }
    for name, ask in asked.items():
        sound, spoilt = ask(q), ask(bad)
        assert np.isnan(spoilt[2]).all(), name
        assert_allclose(np.delete(spoilt, 2, 0), np.delete(sound, 2, 0), rtol=0, atol=1e-12, err_msg=name)
        for k in range(4):
            assert_allclose(ask(q)[k], np.asarray(sound)[k], atol=0)
    assert sarrus.floating.dynamic_singularity_map(robot, bad, "hand").singularity.tolist()[2] == ""
    closed = sarrus.mechanisms.humanoid_leg()
    none = np.zeros((0, closed.nq))
    assert sarrus.floating.dynamic_singularity_map(closed, none, closed.bodies[-1]).singularity.shape == (0,)
    assert sarrus.floating.reaction_null_space(robot, bad).freedom.tolist() == [6, 6, -1, 6]
    J, status = sarrus.floating.generalized_jacobian(robot, bad, "hand", independent="actuated", return_status=True)
    assert status.tolist() == [0, 0, 1, 0]
    out = np.empty((4, 6, 9))
    assert sarrus.floating.generalized_jacobian(robot, q, "hand", independent="actuated", out=out, threads=2) is out
    assert_array_equal(out, sarrus.floating.generalized_jacobian(robot, q, "hand"))


def test_bodies_without_any_inertia_about_an_axis():
    b = sarrus.Builder()
    for name in ("body", "arm"):
        b.add_body(name, sarrus.Inertia(1.0, (0, 0, 0), np.zeros((3, 3))))
    b.add_joint("base", sarrus.Free(), "ground", "body")
    b.add_joint("slide", sarrus.Prismatic("x"), "body", "arm", at_parent=(1, 0, 0))
    robot = b.build()
    with pytest.raises(
        StateError,
        match="generalized_jacobian has no result: all bodies together have no inertia about some axis",
    ):
        sarrus.floating.generalized_jacobian(robot, robot.neutral(), "arm")


def test_loops_through_the_base():
    robot, q = PLATFORM, PLATFORM.assemble()
    J = sarrus.floating.generalized_jacobian(robot, q, "platform", independent="actuated")
    batch = sarrus.floating.generalized_jacobian(robot, np.stack([q, q]), "platform", independent="actuated")
    assert_allclose(batch, np.stack([J, J]), rtol=0, atol=1e-12)
    form = sarrus.floating.equations_of_motion(robot, q, independent="actuated", end_points=["platform"])
    assert_allclose(form.generalized_jacobian("platform"), J, rtol=0, atol=1e-12)
    assert form.coordinates == robot.actuated
    assert form.coupling_factor("platform").shape == (6, 6)
    for ask in (form.generalized_jacobian, form.drift, form.coupling_factor):
        with pytest.raises(sarrus.NameNotFoundError, match="no end point is named 'plate'"):
            ask("plate")
