"""TaskControl for users: printed form, errors, simulations, and functions as targets."""

import numpy as np
import pytest

import sarrus
from sarrus import _core, control


@pytest.fixture(scope="module")
def arm():
    return sarrus.mechanisms.six_axis_arm()


@pytest.fixture(scope="module")
def delta():
    return sarrus.mechanisms.delta()


def test_the_answer_prints_as_a_table(delta):
    q = delta.assemble()
    place = delta.pose(q, "platform")[:3, 3]
    law = control.TaskControl(
        delta, control.FrameTask("platform", place + np.array([0.01, 0.0, 0.0])), control.Limits(effort=0.1)
    )
    answer = law.solve(0.0, q, np.zeros(delta.nv))
    said = str(answer)
    assert "FrameTask('platform')" in said and "effort of 'motor1'" in said and "status: solved" in said
    assert answer.active and not answer.conflicts
    assert repr(law).startswith("<TaskControl of 'Delta robot'")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: [control.FrameTask("tip2", np.eye(4))], "tip2"),
        (lambda r: [control.FrameTask("tip", np.eye(5))], "a pose"),
        (lambda r: [control.FrameTask("tip", np.eye(4), "tx ty tq")], "components"),
        (lambda r: [control.FrameTask("tip", np.eye(4), stiffness=[1.0, 2.0])], "stiffness"),
        (lambda r: [control.FrameTask("tip", np.eye(4), stiffness=-1.0)], "not negative"),
        (lambda r: [control.FrameTask("tip", np.eye(4), damping="strong")], "critical"),
        (lambda r: [control.FrameTask("tip", np.eye(4), weight=0.0)], "weight"),
        (lambda r: [control.FrameTask("tip", np.eye(4), priority=-1)], "priority"),
        (lambda r: [control.FrameTask("tip", np.eye(4), axes="tool")], "axes"),
        (lambda r: [control.FrameTask("tip", np.eye(4), axes=np.array(["world", "target"]))], "axes"),
        (lambda r: [control.FrameTask("tip", 2.0 * np.eye(4))], "target"),
        (lambda r: [control.JointTask("elbow2", 0.0)], "elbow2"),
        (lambda r: [control.PostureTask({})], "has no targets"),
        (lambda r: [control.PostureTask([1.0, 2.0])], "PostureTask"),
        (lambda r: [control.CenterOfMassTask([0.0, 0.0])], "3 components"),
        (lambda r: [control.ImpedanceTask("tip", np.eye(4), -1.0, 1.0, 1.0)], "positive definite"),
        (lambda r: [control.RelativeTask("tip", "tip", np.eye(4))], "must differ"),
        (lambda r: [control.CenterOfMassTask([0.0], "rx")], "from 'tx ty tz'"),
        (lambda r: [control.ImpedanceTask("tip", np.eye(4), 1.0, 1.0, 1.0, [0.0])], "each of 6 components"),
        (lambda r: ["tip"], "tasks must be tasks"),
        (lambda r: [sarrus.control.tasks.Task()], "tasks must be tasks"),
    ],
)
def test_wrong_tasks_have_errors_of_their_own(arm, make, message):
    with pytest.raises((sarrus.SarrusError, TypeError, ValueError), match=message):
        control.TaskControl(arm, make(arm))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda task: task.update(kind="Tilt"), "no task type is named 'Tilt'"),
        (lambda task: task.update(tilt=1.0), "FrameTask has no field 'tilt'; expected one of level, weight"),
        (lambda task: task.pop("weight"), "FrameTask has no field 'weight' in its description"),
        (
            lambda task: task["fields"].update(tilt=1.0),
            "FrameTask has no field 'tilt'; expected one of frame, reference",
        ),
        (lambda task: task["fields"].pop("target"), "FrameTask has no field 'target' in its description"),
        (lambda task: task["fields"].update(stiffness=(0, 2)), "FrameTask has 3 rows, but its stiffness has 2"),
    ],
)
def test_the_core_refuses_what_no_kind_has(arm, change, message):
    law = control.TaskControl(arm, control.FrameTask("tip", [0.5, 0.0, 0.5]))
    described = law._core.described
    _core.TaskDescription(arm, described)
    change(described["tasks"][0])
    with pytest.raises(ValueError, match=message):
        _core.TaskDescription(arm, described)


def test_a_class_of_ones_own_is_the_task_that_it_derives_from(arm):
    class Reach(control.FrameTask):
        """A frame task with a different name."""

    q, v = np.full(6, 0.3), np.zeros(6)
    place = [0.5, 0.0, 0.5]
    answers = [
        control.TaskControl(arm, kind("tip", place), limits=None)(0.0, q, v) for kind in (Reach, control.FrameTask)
    ]
    assert np.array_equal(*answers)


def test_a_list_in_itself_is_an_error_of_its_own(arm):
    endless = []
    endless.append(endless)
    for make in (
        lambda: control.FrameTask("tip", endless),
        lambda: control.JointTask(arm.joints[0], endless),
        lambda: control.PostureTask({arm.joints[0]: endless}),
        lambda: endless,
    ):
        with pytest.raises((sarrus.SarrusError, TypeError, ValueError)):
            control.TaskControl(arm, make())


@pytest.mark.parametrize("hard", ["x", float("nan"), 1, None])
def test_hard_is_true_or_false(arm, hard):
    with pytest.raises(TypeError, match="hard of JointTask"):
        control.TaskControl(arm, control.JointTask(arm.joints[0], 0.0, hard=hard))


def test_a_time_that_is_none_is_named(arm):
    law = control.TaskControl(arm, control.JointTask(arm.joints[0], 0.0))
    for ask in (law, law.solve):
        with pytest.raises(TypeError, match="t must be a number; got 'x'"):
            ask("x", np.zeros(6), np.zeros(6))


def test_wrong_contacts_and_limits(arm):
    task = control.FrameTask("tip", [0.5, 0.0, 0.5])
    with pytest.raises(sarrus.ModelError, match="friction"):
        control.TaskControl(arm, task, contacts=control.PointContact("tip", friction=-0.1))
    with pytest.raises(sarrus.ModelError, match="size"):
        control.TaskControl(arm, task, contacts=control.SurfaceContact("tip", size=(0.1, 0.0)))
    with pytest.raises(sarrus.NameNotFoundError):
        control.TaskControl(arm, task, control.Limits(effort={"nowhere": 1.0}))
    with pytest.raises(sarrus.ModelError, match="include 0"):
        control.TaskControl(arm, task, control.Limits(effort=(1.0, 2.0)))
    with pytest.raises(TypeError, match="limits"):
        control.TaskControl(arm, task, 3.0)
    for weights in (np.ones(5), np.ones((1, 6))):
        with pytest.raises(sarrus.ShapeError, match=r"effort_weights must be a number, or \(6,\) for the motors"):
            control.TaskControl(arm, task, effort_weights=weights)
    with pytest.raises(sarrus.ModelError, match="needs motors"):
        control.TaskControl(arm, task, actuated=[])
    other = control.TaskControl(arm, task)
    with pytest.raises(sarrus.ModelError, match="was made for the mechanism"):
        sarrus.simulate(sarrus.mechanisms.double_pendulum(), [0.0, 0.0], [0.0, 0.0], 0.1, controller=other)


def test_hard_tasks_that_contradict_each_other_are_named(arm):
    law = control.TaskControl(
        arm,
        [control.JointTask(arm.joints[0], 0.0, hard=True), control.JointTask(arm.joints[0], 1.0, hard=True)],
        limits=None,
    )
    with pytest.raises(sarrus.StateError, match="are inconsistent"):
        law(0.0, np.zeros(6), np.zeros(6))


def test_unsound_states(arm, delta):
    law = control.TaskControl(arm, control.JointTask(arm.joints[0], 0.0))
    with pytest.raises(sarrus.StateError, match="finite"):
        law(0.0, np.full(6, np.nan), np.zeros(6))
    with pytest.raises((sarrus.ShapeError, ValueError), match="shape"):
        law(0.0, np.zeros(5), np.zeros(6))
    held = control.TaskControl(delta, control.JointTask("motor1", 0.0))
    q = delta.assemble()
    q[delta.joint("motor1").q_slice] += 0.5
    with pytest.raises(sarrus.StateError, match="violates the loop constraints"):
        held(0.0, q, np.zeros(delta.nv))


def test_limits_that_contradict_a_hard_task_are_named(arm):
    law = control.TaskControl(
        arm, control.JointTask(arm.joints[1], 3.0, stiffness=1e4, hard=True), control.Limits(effort=1e-3, velocity=np.inf, position={})
    )  # fmt: skip
    with pytest.raises(sarrus.NotRealizableError, match="effort of"):
        law(0.0, np.zeros(6), np.zeros(6))
    answer = law.solve(0.0, np.zeros(6), np.zeros(6))
    assert max(abs(u) for u in answer.efforts.values()) <= 1e-3
    assert "effort of" in answer.status


@pytest.mark.parametrize("hard", [False, True])
def test_a_velocity_limit_of_nothing_is_relaxed_as_one_of_little(hard):
    """Efforts are too weak to hold the arm: a motion limit that leaves one value does not become an equation then."""
    b = sarrus.Builder("arm")
    b.add_body("a", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0), 0.02))
    b.add_joint("m", sarrus.Revolute("y"), "ground", "a", actuated=True)
    arm = b.build()
    answers = []
    for velocity in (1e-9, 0.0):
        limits = control.Limits(effort=1.0, velocity=velocity)
        answers.append(
            control.TaskControl(arm, control.JointTask("m", 1.0, hard=hard), limits=limits).solve(0.0, [0.3], [0.0])
        )
    little, nothing = answers
    assert nothing.efforts["m"] == pytest.approx(-1.0)
    assert nothing.efforts["m"] == pytest.approx(little.efforts["m"], abs=1e-6)
    assert nothing.acceleration == pytest.approx(little.acceleration, abs=1e-5)
    strong = control.TaskControl(arm, control.JointTask("m", 1.0), limits=control.Limits(effort=100.0, velocity=0.0))
    assert strong.solve(0.0, [0.3], [0.0]).acceleration == pytest.approx(0.0, abs=1e-9), "it holds where it can"


def test_functions_as_targets_run_in_python_and_agree(arm):
    q, v = np.array([0.3, 0.8, -1.6, 0.2, 1.2, 0.1]), np.zeros(6)
    rest = control.PostureTask(q, priority=1)
    X = arm.pose(q, "tip")

    def circle(t):
        goal = X.copy()
        goal[:3, 3] += [0.05 * np.sin(2 * t), 0.05 * (1 - np.cos(2 * t)), 0.0]
        return goal

    laws = [
        sarrus.laws.harmonic(0.05, 2.0, offset=X[0, 3]),
        sarrus.laws.harmonic(-0.05, 2.0, np.pi / 2, offset=X[1, 3] + 0.05),
        X[2, 3],
    ]
    function = control.TaskControl(arm, [control.FrameTask("tip", circle, "tx ty tz"), rest], limits=None)
    native = control.TaskControl(arm, [control.FrameTask("tip", laws, "tx ty tz"), rest], limits=None)
    assert native.native and not function.native
    for t in (0.0, 0.3, 1.0):
        assert np.abs(function(t, q, v) - native(t, q, v)).max() < 1e-5 * (1.0 + np.abs(native(t, q, v)).max())
    runs = [sarrus.simulate(arm, q, v, 0.1, controller=law, limits="ignore") for law in (function, native)]
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() < 1e-6
    with pytest.raises((sarrus.ModelError, TypeError)):
        sarrus.simulate_many(arm, [q, q], [v, v], 0.1, controller=function, limits="ignore")


def test_position_limits_hold_while_a_task_pushes_beyond(arm):
    """The joint brakes in time, and stays there."""
    name = arm.joints[0]
    law = control.TaskControl(
        arm, [control.JointTask(name, 2.0), control.PostureTask(np.zeros(6), priority=1)],
        control.Limits(effort=np.inf, velocity=3.0, position={name: (-0.5, 0.5)}, braking=20.0),
    )  # fmt: skip
    run = sarrus.simulate(arm, np.zeros(6), np.zeros(6), 2.0, controller=law, limits="ignore")
    assert run.q[:, 0].max() < 0.5 + 1e-4
    assert run.q[-1, 0] > 0.499
    assert np.abs(run.v).max() < 3.0 + 1e-6


def test_a_force_with_integral_action_outlasts_friction_that_the_model_does_not_know():
    """The internal force of a redundantly driven linkage: the error by unmodelled joint friction decays."""
    robot = sarrus.mechanisms.five_bar(actuated=3)
    q = robot.assemble()
    v = np.zeros(robot.nv)
    closing = robot.loop_joints[0]
    tasks = [control.JointTask(name, float(q[robot.joint(name).q_slice][0])) for name in robot.actuated[:2]]
    law = control.TaskControl(
        robot, [*tasks, control.ForceTask(closing, 3.0, rows=[2], integral=20.0, priority=1)], limits=None
    )
    push = control.FeedforwardEffort(robot.actuated[0], 0.5)
    run = sarrus.simulate(robot, q, v, 2.0, controller=[law, push], limits="ignore")
    assert np.isfinite(run.q).all()


def test_a_force_that_no_model_tells_is_warned_of():
    """The pins share the load across the plane of a linkage indeterminately, the load in the plane not."""
    robot = sarrus.mechanisms.five_bar(actuated=3)
    with pytest.warns(sarrus.ModelWarning, match=r"ForceTask\('pin'\): the forces of rows \[0, 1, 4\] are not unique"):
        control.TaskControl(robot, control.ForceTask("pin", 0.0))
    q = robot.assemble()
    load = robot.joint_wrenches(q, np.zeros(robot.nv), np.zeros(robot.nv))
    assert load.indeterminate["pin"] == ("moment x", "moment z", "force y")  # those rows
    control.TaskControl(robot, control.ForceTask("pin", 0.0, rows=[2, 3]))  # warnings are errors here
