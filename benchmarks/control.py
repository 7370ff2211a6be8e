"""Task control: time of a step of several controllers, of many runs, and comparison with Pinocchio and ProxQP. ``python -m benchmarks --control``

The comparison is the usual form of inverse dynamics control: Pinocchio computes M, h and Jacobians, and ProxQP solves for accelerations and torques,
with the dynamics as equality constraints. All constants are computed once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import sarrus
from sarrus import control

from .models import all_models
from .tables import Row, Run, installed


def rows(run: Run) -> Iterator[Row]:
    """Measure a step of each controller [µs], many runs, and two tasks in comparison with Pinocchio and ProxQP."""
    repeats, rounds = run.of((2000, 9), (500, 5), (2, 1))
    for name, law, q, v in laws():
        what = f"{law.robot.name}: {name}"
        run.tell(what)
        times = [law._core.time_one_state(q[None], v[None], repeats) * 1e6 for _ in range(rounds)]
        acting = len(law.solve(0.0, q, v).active)
        yield Row(what, statistics.median(times), "µs", f"C++, {acting} limits act")
    yield many(run)
    yield from by_hand(run)


def laws() -> Iterator[tuple[str, control.TaskControl, Any, Any]]:
    """Measure a frame task at a distance from its target: without limits, with inactive effort limits, and with active effort limits."""
    for make, frame, components in (
        (sarrus.mechanisms.delta, "platform", "tx ty tz"),
        (sarrus.mechanisms.stewart, "platform", None),
        (sarrus.mechanisms.three_rrr, "tip", "tx ty"),
    ):
        robot: sarrus.Mechanism = make()
        q, v = robot.assemble(), np.zeros(robot.nv)
        goal = robot.pose(q, frame)
        goal[:3, 3] += [0.03, 0.02, 0.01]
        task = control.FrameTask(frame, goal, components)
        free = control.TaskControl(robot, task, limits=None)
        most = float(np.abs(np.ravel(list(free.solve(0.0, q, v).efforts.values()))).max())
        yield "a frame", free, q, v
        for share, what in ((2.0, "a frame, limits far"), (0.8, "a frame, limits act")):
            yield what, control.TaskControl(robot, task, control.Limits(effort=share * most)), q, v
    robot = sarrus.mechanisms.six_axis_arm(sphere=0.2)
    q, v = robot.assemble(), np.zeros(robot.nv)
    tasks = [control.ForceTask(robot.constraints[0], -5.0), control.PostureTask(q, priority=1)]
    yield "force and posture on the sphere", control.TaskControl(robot, tasks, limits=None), q, v
    robot = sarrus.mechanisms.quadruped()
    q, v = robot.assemble(), np.zeros(robot.nv)
    feet = [control.PointContact(f"{leg}_foot", 0.7) for leg in ("LF", "RF", "LH", "RH")]
    for what, shift in (("trunk on four feet, cones far", 0.01), ("trunk on four feet, cones act", 0.3)):
        goal = robot.pose(q, "trunk")
        goal[:3, 3] += shift
        task = control.FrameTask("trunk", goal, stiffness=30.0)
        yield what, control.TaskControl(robot, task, contacts=feet), q, v


def many(run: Run) -> Row:
    """Measure runs with different targets: a batch on two threads, relative to single runs on one thread."""
    robot, count = sarrus.mechanisms.delta(), run.of(10_000, 1000, 50)
    run.tell(f"{count} runs of a Delta")
    q, v = robot.assemble(), np.zeros(robot.nv)
    goals = robot.pose(q, "platform")[:3, 3] + np.random.default_rng(0).normal(size=(count, 3)) * 0.03

    def law(goal: Any) -> control.TaskControl:
        return control.TaskControl(robot, control.FrameTask("platform", goal, "tx ty tz"), limits=None)

    start = time.perf_counter()
    sarrus.simulate_many(
        robot, np.tile(q, (count, 1)), np.tile(v, (count, 1)), 0.02, controller=law(goals), threads=2, limits="ignore"
    )
    together = time.perf_counter() - start
    some = count // 50
    start = time.perf_counter()
    for goal in goals[:some]:
        sarrus.simulate(robot, q, v, 0.02, controller=law(goal), limits="ignore")
    one_by_one = (time.perf_counter() - start) * count / some
    told = f"{count} runs: {together:.2f} s, one by one {one_by_one:.2f} s"
    return Row("many runs of a Delta, two threads, over one by one", one_by_one / together, "times", told)


def by_hand(run: Run) -> Iterator[Row]:
    """Measure a Panda's hand and posture tasks within torque limits: TaskControl from Python, and Pinocchio with ProxQP."""
    if (urdf := next((m.urdf for m in all_models() if m.name == "panda"), None)) is None:
        return
    run.tell("Panda, two tasks")
    robot = sarrus.loads(urdf)
    q, v = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.7]), np.zeros(robot.nv)
    frame = "panda_hand"
    goal = robot.pose(q, frame)
    goal[:3, 3] += [0.02, -0.03, 0.04]
    tasks = [control.FrameTask(frame, goal, weight=1.0), control.PostureTask(q, weight=1e-3)]
    law = control.TaskControl(robot, tasks, control.Limits(velocity=np.inf, position={}), actuated=list(robot.joints))
    ours = fastest(lambda: law(0.0, q, v), run)
    yield Row("Panda, two tasks, limits, from Python", ours, "µs")
    if not (installed("pin") and installed("proxsuite")):
        yield Row("the same by hand with Pinocchio and ProxQP, times as long", None)
        return
    import pinocchio as pin
    import proxsuite

    model = pin.buildModelFromXML(urdf)
    data, n = model.createData(), model.nv
    moving = [robot.joint(name).type for name in robot.joints if robot.joint(name).nv]
    limit = np.concatenate([np.ravel(kind.effort_limit) for kind in moving])
    index, X = model.getFrameId(frame), pin.SE3(goal)
    qp = proxsuite.proxqp.dense.QP(2 * n, n, n)
    qp.settings.eps_abs, qp.settings.compute_timings = 1e-6, False
    C = np.hstack([np.zeros((n, n)), np.eye(n)])
    begun = False

    def hand() -> Any:
        nonlocal begun
        M = pin.crba(model, data, q)
        h = pin.nonLinearEffects(model, data, q, v)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacement(model, data, index)
        pin.forwardKinematics(model, data, q, v, 0.0 * v)
        J = pin.getFrameJacobian(model, data, index, pin.LOCAL_WORLD_ALIGNED)
        drift = pin.getFrameClassicalAcceleration(model, data, index, pin.LOCAL_WORLD_ALIGNED).vector
        at = data.oMf[index]
        e = np.r_[X.translation - at.translation, pin.log3(X.rotation @ at.rotation.T)]
        b = 100.0 * e - 20.0 * (J @ v) - drift
        H = np.zeros((2 * n, 2 * n))
        H[:n, :n] = J.T @ J + 1e-3 * np.eye(n)
        H[n:, n:] = 1e-8 * np.eye(n)
        g = np.r_[-J.T @ b, np.zeros(n)]
        A = np.hstack([M, -np.eye(n)])
        if begun:
            qp.update(H=H, g=g, A=A, b=-h, C=C, l=-limit, u=limit)
        else:
            qp.init(H, g, A, -h, C, -limit, limit)
            begun = True
        qp.solve()
        return qp.results.x[n:]

    difference = float(np.abs(hand() - law(0.0, q, v)).max())
    theirs = fastest(hand, run)
    told = f"{theirs:.1f} µs; torques differ by {difference:.2g} N m"
    yield Row("the same by hand with Pinocchio and ProxQP, times as long", theirs / ours, "times", told)


def fastest(call: Callable[[], Any], run: Run) -> float:
    """Return the median time of a call [µs]."""
    times, (rounds, seconds) = [], run.of((7, 0.1), (5, 0.02), (1, 0.0))
    for _ in range(rounds):
        start, count = time.perf_counter(), 0
        while not count or time.perf_counter() - start < seconds:
            for _ in range(50):
                call()
            count += 50
        times.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(times)
