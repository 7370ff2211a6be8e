"""An arm that keeps its distance from a post: run where the task was added."""

import pickle
import warnings

import numpy as np
import pytest

import sarrus
from sarrus import control

warnings.simplefilter("error")


def arm():
    b = sarrus.Builder("arm")
    for i, axis in enumerate("zyyx"):
        b.add_body(f"b{i}", sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.02))
        place = (0.5, 0, 0) if i else (0, 0, 0)
        b.add_joint(
            f"j{i}", sarrus.Revolute(axis), f"b{i - 1}" if i else "ground", f"b{i}", at_parent=place, actuated=True
        )
    b.add_frame("tip", "b3", (0.5, 0.1, 0))
    b.add_frame("post", "ground", (1.0, 0.8, 0.2))
    return b.build()


robot = arm()
q, v = np.array([0.3, 0.4, -0.9, 0.2]), np.array([0.5, -0.3, 0.2, 0.1])


def distances(run):
    return np.linalg.norm(run.frame("tip")[..., :3, 3] - run.frame("post")[..., :3, 3], axis=-1)


def law(target, stiffness):
    near = control.DistanceTask("tip", "post", target, stiffness=stiffness)
    return control.TaskControl(robot, [near, control.PostureTask(q, priority=1)], limits=None)


# the row is the rate of the rate: with the accelerations of the answer the distance accelerates as an oscillator does
answer = law(0.7, 400.0).solve(0.0, q, v)
h = 1e-4
ways = [robot.integrate(q, s * h * v + 0.5 * (s * h) ** 2 * answer.acceleration) for s in (-1.0, 0.0, 1.0)]
d = [np.linalg.norm(robot.pose(x, "tip")[:3, 3] - robot.pose(x, "post")[:3, 3]) for x in ways]
rate, acceleration = (d[2] - d[0]) / (2 * h), (d[2] - 2 * d[1] + d[0]) / h**2
assert abs(acceleration - (400.0 * (0.7 - d[1]) - 40.0 * rate)) < 1e-5 * 400.0, acceleration
assert np.allclose(answer.errors[0], 0.7 - d[1])
assert "DistanceTask('tip')" in str(answer)

move = sarrus.laws.harmonic(0.05, 3.0, offset=0.7)
run = sarrus.simulate(robot, q, v, 2.0, law(move, 400.0), limits="ignore")
late = run.t > 1.5
assert np.abs(distances(run)[late] - [move(t) for t in run.t[late]]).max() < 1e-4

gains = np.array([25.0, 100.0, 400.0])
many = sarrus.simulate_many(robot, [q] * 3, [v] * 3, 0.5, law([[move, 0.6, 0.8]], gains[:, None]), limits="ignore")
for k, target in enumerate((move, 0.6, 0.8)):
    alone = sarrus.simulate(robot, q, v, 0.5, law(target, gains[k]), limits="ignore", dt=many.t[1] - many.t[0])
    assert np.abs(many.q[k, -1] - alone.q[-1]).max() < 1e-6, k

again = pickle.loads(pickle.dumps(law(0.7, 400.0)))
assert np.array_equal(again(0.0, q, v), law(0.7, 400.0)(0.0, q, v))
with pytest.raises(sarrus.NameNotFoundError, match="pole"):
    control.TaskControl(robot, control.DistanceTask("tip", "pole", 0.7))
with pytest.raises(
    sarrus.ShapeError, match=r"stiffness of DistanceTask\('tip'\) must be a number, \(1,\) for its rows"
):
    law(0.7, [1.0, 2.0])
print("an arm keeps its distance")
