"""Prescribed motions of tree joints, loop joints and frames: for any size, near singular positions, for any spanning tree."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from benchmarks.loop_models import almost_flat
from sarrus import mechanisms
from sarrus.analysis.closing import closing
from sarrus.calibration import Measurements, calibrate
from sarrus.design import FramePath, Variable, design
from tests.laws.test_choice_laws import recut as cut_anywhere
from tests.random_closed import random_closed
from tests.random_mechanisms import ALL_JOINTS, random_mechanism
from tests.variants import in_tree_of, recut, scaled

SAME = 1e-8  # as positions are compared in the laws of assembly
NEAR_SINGULAR = 1e-6  # [rad]
SMALL = [mechanisms.four_bar, mechanisms.slider_crank, mechanisms.five_bar, mechanisms.delta, mechanisms.stewart]


def units(robot, joint, length):
    """Return the units of a joint's velocities in another size [rad, m]."""
    return np.array([length if unit == "m" else 1.0 for _, unit in robot.joint(joint).type.velocities])


def twist(robot, q, v, length):
    """Return the twists of all bodies, in the first size."""
    return np.array([robot.velocity(q, v, body) for body in sorted(robot.bodies)]) / np.repeat([1.0, length], 3)


def bodies(robot, q, length):
    places = np.array([robot.pose(q, body)[:3] for body in sorted(robot.bodies)])
    return places / [1.0, 1.0, 1.0, length]


@pytest.mark.parametrize("length", [1e-5, 1.0, 1e3])
@pytest.mark.parametrize("make", SMALL)
def test_led_by_motors_in_any_cut_and_size(make, length):
    """Motors as inputs, in tree joints and loop joints: positions, rates and their bounds are equal."""
    robot, rng = make(), np.random.default_rng(3)
    q = robot.assemble()
    motors = robot.actuated
    rates, speeding = ({name: rng.normal(size=robot.joint(name).type.nv) for name in motors} for _ in range(2))
    steps = {name: 0.02 * rng.normal(size=robot.joint(name).type.nq) for name in motors}
    answers = []
    for one in (robot, *(recut(robot, name) for name in motors)):
        if one is None:
            continue
        other, by = scaled(one, length, length**3)
        start = in_tree_of(one, robot, q) if one is not robot else q
        start = start * by.coordinates(one)
        now = other.joint_states(start).q
        moved = {name: now[name] + steps[name] * units(robot, name, length) for name in motors}
        there = other.assemble(start, fixed=moved)
        by_path = other.follow({name: np.stack([now[name], moved[name]]) for name in motors}, start)[-1]
        many = other.assemble(np.stack([start, start]), fixed=moved)[1]
        v = other.complete_velocity(start, {name: rates[name] * units(robot, name, length) for name in motors})
        a = other.complete_acceleration(
            start, v, {name: speeding[name] * units(robot, name, length) for name in motors}
        )
        answers.append(
            [
                *(bodies(other, x, length) for x in (there, by_path, many)),
                twist(other, start, v, length),
                np.array([other.acceleration(start, v, a, body) for body in sorted(other.bodies)])
                / np.repeat([1.0, length], 3),
            ]
        )
    assert len(answers) > 1
    for answer in answers:
        for mine, theirs in zip(answer, answers[0], strict=True):
            assert_allclose(mine, theirs, atol=SAME * max(1.0, np.abs(theirs).max()))
        assert_allclose(answer[1], answer[0], atol=SAME)
        assert_allclose(answer[2], answer[0], atol=SAME)


@pytest.mark.parametrize("angle", [1e-3, NEAR_SINGULAR, -NEAR_SINGULAR])
def test_led_near_a_singular_position(angle):
    """A parallelogram flat within a millionth of a radian, with each joint as input, on every tree, continues on its branch."""
    robot = mechanisms.four_bar_ladder(1)
    q, v, _ = (x[0] for x in almost_flat(robot, angle, 1))
    v = v / np.abs(v).max()
    a = robot.complete_acceleration(q, v, {robot.joints[0]: 0.3})
    states = robot.joint_states(q, v, a)
    flat = robot.joint_states(almost_flat(robot, 0.0, 1)[0][0]).q
    every = sorted({*robot.joints, *robot.loop_joints})
    names = [name for name in every if robot.joint(name).type.nv == 1]
    cuts = [robot, *filter(None, (recut(robot, name) for name in names))]
    assert len(cuts) > 2
    there = [robot.pose(almost_flat(robot, 1.1 * angle, 1)[0][0], body) for body in robot.bodies]
    seen = np.array([robot.velocity(q, v, body) for body in robot.bodies])
    accelerated = np.array([robot.acceleration(q, v, a, body) for body in robot.bodies])
    for one in cuts:
        start, v_, a_ = in_tree_of(one, robot, q, v, a)
        for name in names:
            x = one.complete_velocity(start, {name: states.v[name]})
            y = one.complete_acceleration(start, v_, {name: states.a[name]})
            assert_allclose([one.velocity(start, x, body) for body in robot.bodies], seen, atol=1e-6)
            assert_allclose(
                [one.acceleration(start, v_, y, body) for body in robot.bodies],
                accelerated,
                atol=1e-6 * np.abs(accelerated).max() + 1e-6,
            )
            aside = states.q[name] + 0.1 * (states.q[name] - flat[name])
            moved = one.assemble(start, fixed={name: aside})
            assert_allclose(one.joint_states(moved, near={name: aside}).q[name], aside, atol=1e-12)
            assert_allclose([one.pose(moved, body) for body in robot.bodies], there, atol=1e-6)
            assert np.abs(one.constraint_residual(moved)).max() < 1e-12


@pytest.mark.parametrize("make", [mechanisms.delta, mechanisms.stewart, mechanisms.five_bar])
def test_rates_of_frames_are_rates_of_inverse_kinematics(make):
    """Velocities and accelerations of a prescribed frame, and the loops' Jacobian, by differences of its targets."""
    robot, rng, h = make(), np.random.default_rng(0), 1e-4
    q = robot.assemble()
    frame = "platform" if "platform" in robot.bodies else robot.bodies[-1]
    rates = {name: rng.normal(size=robot.joint(name).type.nv) for name in robot.actuated}
    v = robot.complete_velocity(q, rates)
    a = robot.complete_acceleration(q, v, dict.fromkeys(robot.actuated, 0.0))
    V = robot.velocity(q, v, frame, expressed_in="world_aligned")
    A = robot.acceleration(q, v, a, frame, expressed_in="world_aligned")
    now = robot.pose(q, frame)
    poses = []
    for t in (-h, h):
        turn = sarrus.Rotation.exp(t * V[:3] + 0.5 * t**2 * A[:3]).matrix @ now[:3, :3]
        place = now[:3, 3] + t * V[3:] + 0.5 * t**2 * A[3:]
        poses.append(sarrus.Transform(turn, place).matrix)
    before, after = (robot.inverse_kinematics({frame: pose}, near=q, tolerance=1e-7) for pose in poses)
    motors = np.r_[tuple(robot.joint(name).v_slice for name in robot.actuated)]
    v_ = robot.complete_velocity(q, {}, frames={frame: V}, expressed_in="world_aligned")
    a_ = robot.complete_acceleration(q, v, {}, frames={frame: A}, expressed_in="world_aligned")
    forth, back = robot.difference(q, after)[motors], robot.difference(q, before)[motors]
    assert_allclose(v_[motors], (forth - back) / (2 * h), atol=1e-5 * np.abs(v).max())
    assert_allclose(a_[motors], (forth + back) / h**2, atol=1e-2 * max(np.abs(a).max(), np.abs(v).max() ** 2))
    J = robot.loop_jacobian(q, frame, expressed_in="world_aligned")
    assert_allclose(J @ v[motors], V, atol=SAME * np.abs(V).max())


@pytest.mark.parametrize("length", [1e-5, 1.0, 1e3])
def test_the_jacobian_of_the_loops_in_any_cut_and_size(length):
    """Motors in tree or loop joints, small or large: the columns are the motions that the motors cause."""
    robot = mechanisms.delta()
    q = robot.inverse_kinematics({"platform": (0.05, 0.02, -0.5)})
    J = robot.loop_jacobian(q, "platform")
    for one in (robot, *(recut(robot, name) for name in ("motor1", "elbow2a", "ball1a"))):
        start = q if one is robot else in_tree_of(one, robot, q)
        other, by = scaled(one, length, length**3)
        found, status = other.loop_jacobian(start * by.coordinates(one), "platform", return_status=True)
        assert status == 0
        order = [one.actuated.index(name) for name in robot.actuated]
        assert_allclose(found[:, order] / np.repeat([1.0, length], 3)[:, None], J, atol=SAME)
    for k, name in enumerate(robot.actuated):
        v = robot.complete_velocity(q, {motor: float(motor == name) for motor in robot.actuated})
        assert_allclose(J[:, k], robot.velocity(q, v, "platform"), atol=SAME)


def test_motors_that_do_not_determine_a_frame():
    """A status in a batch, an error for one state; a frame that the motors do determine still has its Jacobian."""
    b = sarrus.Builder("pendulum on a driven arm")
    for name in ("arm", "bob"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "arm", actuated=True)
    b.add_joint("pin", sarrus.Revolute("y"), "arm", "bob", at_parent=(1, 0, 0))
    robot = b.build()
    q = np.zeros(2)
    assert_allclose(robot.loop_jacobian(q, "arm")[:, 0], [0, 1, 0, 0, 0, 0])
    with pytest.raises(sarrus.StateError, match="'motor' do not determine the motion of the frame"):
        robot.loop_jacobian(q, "bob")
    found, status = robot.loop_jacobian(np.stack([q, q]), "bob", return_status=True)
    assert status.tolist() == [3, 3]
    assert np.isnan(found).all()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            {"frames": {"platform": [1.0, 2.0]}},
            sarrus.ShapeError,
            r"velocities of frame 'platform' must be \(\.\.\., 6\)",
        ),
        ({"frames": {"platform": np.zeros(3)}, "expressed_in": "world"}, ValueError, "'frame' or 'world_aligned'"),
        ({"expressed_in": "world"}, ValueError, "'frame' or 'world_aligned'"),
        ({"frames": {"ground": np.zeros(3)}}, sarrus.ModelError, "fixed to the ground"),
        (
            {"frames": {"motor1": 1.0}},
            sarrus.ModelError,
            "'motor1' is a joint; expected a frame, pass joints to joints=",
        ),
        ({"frames": {"plattform": np.zeros(3)}}, sarrus.NameNotFoundError, "platform"),
        ({"frames": [1.0]}, TypeError, "frames must be a mapping"),
        ({"joints": {"platform": 1.0}}, sarrus.NameNotFoundError, "platform"),
        ({"frames": {"platform": [1.0, 0, 0, 0, 0, 0]}}, sarrus.StateError, "'platform' has no result"),
        ({"frames": {"platform": [np.inf, 0, 0]}}, sarrus.StateError, "finite"),
        ({"frames": {"platform": [np.nan] * 3}}, sarrus.StateError, "NaN in all components"),
    ],
)
def test_what_cannot_lead(arguments, error, text):
    """Errors with and without an earlier call for the same frame, whose names and shapes are cached."""
    robot = mechanisms.delta()
    q = robot.inverse_kinematics({"platform": (0.05, 0.0, -0.5)})
    for _ in range(2):
        with pytest.raises(error, match=text):
            robot.complete_velocity(q, **{"joints": {}, **arguments})
        robot.complete_velocity(q, {}, frames={"platform": np.zeros(3)})


@pytest.mark.parametrize("expressed_in", ["frame", "world_aligned"])
@pytest.mark.parametrize(("make", "size"), [(mechanisms.delta, 3), (mechanisms.stewart, 3), (mechanisms.stewart, 6)])
def test_a_call_that_was_made_before_is_answered_as_the_first(make, size, expressed_in):
    """Calls for tree joints, loop joints and frames, by numbers, arrays, lists and integers, for one state and several."""
    robot, rng = make(), np.random.default_rng(1)
    q = robot.random(rng, closed=True)
    x, way = rng.normal(size=size), {"expressed_in": expressed_in}
    first = robot.complete_velocity(q, {}, frames={"platform": x}, **way)
    assert_allclose(robot.velocity(q, first, "platform", **way)[-size:], x, atol=SAME)
    for value in (x, x.tolist(), tuple(x), x[:, None].repeat(2, axis=1)[:, 0], x.astype(object)):
        assert_allclose(robot.complete_velocity(q, {}, frames={"platform": value}, **way), first, atol=1e-12)
    many = robot.complete_velocity(q, {}, frames={"platform": np.tile(x, (size, 1))}, **way)
    assert_allclose(many, np.tile(first, (size, 1)), atol=1e-12)
    cut = recut(robot, robot.actuated[0])
    for one in (robot, cut):
        start = q if one is robot else in_tree_of(one, robot, q)
        rates = dict.fromkeys(robot.actuated, 2.0)
        v = one.complete_velocity(start, rates)
        for value in (2.0, np.float64(2.0), 2, np.float32(2.0), np.array(2.0), [2.0]):
            assert_allclose(one.complete_velocity(start, dict.fromkeys(rates, value)), v, atol=1e-12)
        with pytest.raises(sarrus.StateError, match="finite"):
            one.complete_velocity(start, dict.fromkeys(rates, np.nan))


def test_a_joint_that_is_led_a_little_at_a_time():
    """After a step the residual of its rows shifts the coordinates that are computed from poses: the next step must converge nevertheless."""
    led = 0
    for seed in range(60):
        kinds = ("gimbal rz tx",)
        closed = random_closed(
            seed, bodies=3, loops=1, copies=0, floating=True, branching=0.0, hints=False, kinds=kinds
        )
        here = cut_anywhere(closed, np.random.default_rng(seed))
        robot, q = here.robot, here.q
        step = 1e-3 * np.random.default_rng(seed).normal(size=robot.nv)
        aside = robot.project_configuration(robot.integrate(q, step), metric="euclidean")
        now, goal = (robot.joint_states(x).q for x in (q, aside))
        for name in robot.loop_joints:
            if robot.joint(name).kind == "Gimbal" and now[name].shape == (2,):
                path = robot.follow({name: np.stack([now[name], goal[name]])}, q)
                assert_allclose(robot.joint_states(path[-1], near=goal).q[name], goal[name], atol=1e-10)
                led += 1
    assert led > 10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0])
def test_single_coordinates_are_rows(seed, size):
    """phi = x_k - target with x = q, or the rotation vector of a quaternion; J is its rate. For every joint type, at and away from neutral."""
    robot, rng = random_mechanism(seed, bodies=len(ALL_JOINTS)), np.random.default_rng(seed)
    single = [(name, k) for name in robot.joints for k in range(robot.joint(name).type.nv)]
    how = closing(robot, (), (), tuple(single))
    targets = rng.normal(size=len(single))

    def coordinates(q):
        for name in robot.joints:
            x = q[robot.joint(name).q_slice]
            ball = robot.joint(name).type.quaternion
            yield from (*sarrus.Rotation.from_quaternion(x[:4]).log(), *x[4:]) if ball else x

    q = robot.integrate(robot.neutral(), size * rng.normal(size=robot.nv))
    phi, J = (ask(q, pfaffian_values=targets) for ask in (how.robot.constraint_residual, how.robot.constraint_jacobian))
    assert_allclose(phi, np.array([*coordinates(q)]) - targets, rtol=0, atol=1e-13)
    step = 1e-5  # truncation is its square, rounding 1e-16 / step
    for k, unit in enumerate(np.eye(robot.nv)):
        ahead, back = (np.array([*coordinates(robot.integrate(q, s * unit))]) for s in (step, -step))
        assert_allclose(J[:, k], (ahead - back) / (2 * step), rtol=0, atol=1e-8)


def led_everywhere(robot, configurations):
    """Return all joints of the tree with their coordinates in these configurations."""
    return {
        name: np.stack([robot.joint_states(q).q[name] for q in configurations])
        for name in robot.joints
        if robot.joint(name).type.nq
    }


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_of_which_every_joint_is_led(seed):
    """No degree of freedom remains: the configurations are the given ones, for any number of them."""
    robot, rng = random_mechanism(seed, bodies=5), np.random.default_rng(seed)
    q = [robot.random(rng)]
    for _ in range(5):
        q.append(robot.integrate(q[-1], 0.05 * rng.normal(size=robot.nv)))
    for count in (1, 2, 3, 6):
        there = robot.follow(led_everywhere(robot, q[:count]), q[0])
        assert_allclose(robot.difference(np.stack(q[:count]), there), 0.0, atol=1e-12)


def test_a_closed_chain_of_which_every_joint_is_led():
    robot = mechanisms.four_bar()
    start = robot.assemble()
    (motor,) = robot.actuated
    path = robot.follow({motor: robot.joint_states(start).q[motor] + np.linspace(0.0, 0.5, 8)}, start)
    assert_allclose(robot.follow(led_everywhere(robot, path), start), path, atol=SAME)


def arm():
    b = sarrus.Builder("arm")
    for name, parent in (("upper", "ground"), ("lower", "upper")):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.01))
        b.add_joint(name + " joint", sarrus.Revolute("y"), parent, name, at_parent=(0.1, 0, 0), actuated=True)
    b.add_frame("hand", "lower", (1.0, 0, 0))
    return b.build()


LED = {"upper joint": np.linspace(0.1, 0.9, 12), "lower joint": np.linspace(-0.3, 0.5, 12) ** 2}


def test_an_arm_led_by_all_its_joints_is_calibrated_and_designed():
    """An arm follows paths of all its joints as inputs, without a loop, in calibration and design."""
    robot, true = arm(), arm().replace(placements={"lower joint.parent": (0.103, 0, 0)})
    hand = true.pose(true.follow(LED), "hand")[:, :3, 3]
    measured = Measurements(LED, {"hand": hand}, noise=(1e-6, 1e-6))
    found = calibrate(robot, measured, dimensions=["lower joint.parent.x"])
    assert_allclose(found.changes["lower joint.parent.x"], 0.003, atol=1e-8)
    variables = [Variable("lower joint.parent.x", -0.01, 0.01)]
    best = design(robot, LED, variables, [FramePath("hand", hand)], starts=1)
    assert_allclose(best.robot.pose(best.robot.follow(LED), "hand")[:, :3, 3], hand, atol=1e-6)


def test_an_arm_is_drawn_along_one_of_its_joints():
    pytest.importorskip("matplotlib").use("agg")
    assert mechanisms.pendulum().plot(drive=mechanisms.pendulum().joints[0]) is not None


def test_what_has_no_coordinates_follows():
    """A body that is welded to the ground, with its joint, which has no coordinates, as input."""
    b = sarrus.Builder("welded")
    b.add_body("block", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("weld", sarrus.Fixed(), "ground", "block")
    robot = b.build()
    assert robot.follow({"weld": np.zeros((4, 0))}).shape == (4, 0)
    assert robot.follow(frames={"block": np.tile(np.eye(4), (4, 1, 1))}).shape == (4, 0)
