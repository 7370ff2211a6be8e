"""Cassie of MuJoCo's menagerie stands and squats on heel and toe; skipped if the models are not beside the checkout."""

import importlib
import time
from pathlib import Path

import numpy as np
import pytest

import sarrus
from reference_models import MODELS
from sarrus import control

FILE = MODELS / "menagerie" / "agility_cassie" / "cassie.xml"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="needs the models beside the checkout")

DEPTH, FRICTION = 0.1, 0.6
PLACES = {"toe": (0.069746, -0.010224, 0.0), "heel": (-0.052821, 0.092622, 0.0)}  # ends of the foot's capsule
POINTS = [f"{side}-{end}" for side in ("left", "right") for end in PLACES]
SPRINGS = {"shin": -0.042, "heel-spring": -0.031}  # as the weight bends them


@pytest.fixture(scope="module")
def cassie():
    """Return Cassie with frames at toes and heels, a standing configuration on the ground z = 0, and a lower one."""
    b = sarrus.load(FILE).to_builder()
    for point in POINTS:
        side, end = point.split("-")
        b.add_frame(point, f"{side}-foot", PLACES[end])
    robot = b.build()
    half = np.linalg.norm(np.subtract(PLACES["heel"], PLACES["toe"])) / 2
    goals = {p: np.array([half if "heel" in p else -half, 0.135 if "left" in p else -0.135, 0.0]) for p in POINTS}
    springs = {f"{side}-{name}": angle for side in ("left", "right") for name, angle in SPRINGS.items()}
    near = dict(dict(robot.description.configurations)["home"])

    def standing(height):
        X = np.eye(4)
        X[:3, 3] = [0.02, 0.0, height]
        return robot.inverse_kinematics({"cassie-pelvis": X, **goals}, near=near, fixed=springs)

    up = standing(0.97)
    near = up
    return robot, up, standing(0.97 - DEPTH)


def motors_follow(robot, up, down):
    """Return contacts, and a motor motion from one posture to the other and back in two seconds."""

    def law(name):
        a, b = (float(q[robot.joint(name).q_slice][0]) for q in (up, down))
        return sarrus.laws.harmonic((a - b) / 2, np.pi, np.pi / 2, offset=(a + b) / 2)

    feet = [control.PointContact(point, friction=FRICTION) for point in POINTS]
    task = control.PostureTask({name: law(name) for name in robot.actuated}, stiffness=100.0)
    return control.TaskControl(robot, task, control.Limits(position={}, velocity=np.inf), feet)


@pytest.mark.parametrize("speed", [0.0, 1e-6, 1e-3, 0.1])
def test_heel_and_toe_agree(cassie, speed):
    robot, up, down = cassie
    v = robot.project_velocity(up, np.random.default_rng(0).normal(size=robot.nv))
    answer = motors_follow(robot, up, down).solve(0.0, up, speed * v)
    assert answer.status == "solved"
    assert sum(f[2] for f in answer.forces.values()) == pytest.approx(9.81 * robot.mass, rel=0.2)


def test_it_squats(cassie):
    """Heel and toe have contact constraints; every contact force pushes and is within its cone."""
    robot, up, down = cassie
    b = robot.to_builder()
    for point in POINTS:
        side, end = point.split("-")
        b.add_joint(
            f"{point} stands", sarrus.Spherical(), "ground", f"{side}-foot",
            at_parent=tuple(robot.pose(up, point)[:3, 3]), at_child=PLACES[end], loop=True,
        )  # fmt: skip
    held, law = b.build(), motors_follow(robot, up, down)
    run = sarrus.simulate(
        held, up, np.zeros(robot.nv), 2.0, control.SampleAndHold(lambda t, q, v: law(t, q, v), 1e-3), limits="ignore"
    )
    answers = [law.solve(*state) for state in zip(run.t[::50], run.q[::50], run.v[::50], strict=True)]
    assert {answer.status for answer in answers} == {"solved"}
    assert min(force[2] for answer in answers for force in answer.forces.values()) > 1.0
    height = run.frame("cassie-pelvis")[:, 2, 3]
    assert height[0] - height.min() == pytest.approx(DEPTH, abs=0.02)
    assert abs(height[-1] - height[0]) < 0.02
    upright = run.frame("cassie-pelvis")[:, 2, 2]
    assert upright.min() > 0.98


def test_it_stands_on_rigid_ground_under_pd(cassie):
    """The default method, from the equilibrium of the springs: impulses balance weight and momentum, and the heels do not move."""
    robot, up, _ = cassie
    angles = {name: float(up[robot.joint(name).q_slice][0]) for name in robot.actuated}
    rest = sarrus.equilibrium(robot, up, fixed=angles, contacts=POINTS).q
    motors = [control.PID(name, 800.0, 0.0, 20.0, target=angle) for name, angle in angles.items()]
    feet = [control.RigidContact(point, friction=FRICTION) for point in POINTS]
    run = sarrus.simulate(robot, rest, np.zeros(robot.nv), 0.5, [*motors, *feet])
    pushed = np.diff(run.t) @ run.internal_state[1:, len(motors) :: 4].sum(
        axis=1
    )  # behind the motors' integrals: of each contact, along the normal first
    assert pushed == pytest.approx(9.81 * robot.mass * 0.5 + run.momentum[-1, 5], rel=1e-6)
    for heel in ("left-heel", "right-heel"):
        assert np.abs(run.frame(heel)[:, :3, 3] - run.frame(heel)[0, :3, 3]).max() < 1e-3


def test_compliant_ground_costs_less_than_the_explicit_steps_that_are_right(cassie):
    """Light feet give friction a rate of 2e5/s, so rk4 needs steps of 10 us. The default method ends at the same state with steps of 1 ms."""
    robot, up, _ = cassie
    angles = {name: float(up[robot.joint(name).q_slice][0]) for name in robot.actuated}
    rest = sarrus.equilibrium(robot, up, fixed=angles, contacts=POINTS).q
    acts = [control.PID(name, 800.0, 0.0, 20.0, target=angle) for name, angle in angles.items()]
    acts += [control.CompliantContact(point, friction=FRICTION) for point in POINTS]

    def run(**how):
        begun = time.process_time()
        return sarrus.simulate(robot, rest, np.zeros(robot.nv), 0.1, acts, **how), time.process_time() - begun

    right, its_cost = run(method="rk4", dt=1e-5)
    found, cost = min((run() for _ in range(3)), key=lambda pair: pair[1])
    assert found.statistics["method"] == "rosenbrock"
    assert found.statistics["linearly_implicit"] == 100
    assert np.abs(found.q[-1] - right.q[-1]).max() < 1e-4
    assert cost < its_cost / 5  # a thirtieth


def test_it_squats_on_rigid_ground(monkeypatch, tmp_path):
    """The controller's model has rigid joints in the place of the springs; the robot has the springs."""
    pytest.importorskip("matplotlib")
    for folder in ("", "control"):
        monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / folder))
    found = importlib.import_module("cassie_squat").main(FILE, tmp_path)
    assert found["squat [m]"] == pytest.approx(0.1, abs=2e-3)
    assert found["error of the height [m]"] < 5e-3
    assert found["feet move at most by [m]"] < 1e-6
    assert found["inclination of the pelvis at most [rad]"] < 0.01
    assert found["least force of a foot's end [N]"] > 50.0
    assert (tmp_path / "cassie_squat.png").exists()
