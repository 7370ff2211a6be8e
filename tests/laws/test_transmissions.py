"""Transmissions: motors that drive joints through a matrix G, against the equations (M + G' J G) a + h = G' tau."""

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import control, generation
from sarrus.errors import LimitWarning, NotRealizableError
from sarrus.identification import Samples, identify
from sarrus.io import complete
from tests.api.io.test_complete import validator

EXACT = 1e-13  # rounding of equations of a few bodies, relative to the largest number
DIFFERENTIAL = np.array([[20.0, 10.0], [20.0, -10.0]])
MATRICES = {
    "differential": DIFFERENTIAL,
    "remote motor and belt": np.array([[50.0, 0.0], [30.0, 30.0]]),
    "one motor, two joints": np.array([[12.0, 7.0]]),
    "three motors, two joints": np.array([[20.0, 10.0], [20.0, -10.0], [0.0, 15.0]]),
    "two motors, one joint": np.array([[10.0, 0.0], [-25.0, 0.0]]),
}
ROTORS = np.array([1e-4, 2e-4, 3e-4])


def wrist(matrix=None, **numbers):
    """An elbow and a wrist of two joints; `matrix` maps the wrist's coordinates to those of the motors."""
    b = sarrus.Builder("wrist")
    b.add_body("arm", sarrus.Inertia(3.0, (0.2, 0.0, 0.01), np.diag([0.01, 0.1, 0.1])))
    b.add_body("yoke", sarrus.Inertia(1.0, (0.02, 0.01, 0.0), np.diag([0.01, 0.02, 0.025])))
    b.add_body("hand", sarrus.Inertia(0.7, (0.1, 0.02, 0.01), np.diag([0.004, 0.005, 0.006])))
    b.add_joint("elbow", sarrus.Revolute("y"), "ground", "arm", actuated=True)
    b.add_joint("bend", sarrus.Revolute("y"), "arm", "yoke", at_parent=(0.4, 0.0, 0.0), actuated=True)
    b.add_joint("roll", sarrus.Revolute("x"), "yoke", "hand", actuated=True)
    b.add_frame("tool", "hand", (0.2, 0.0, 0.0))
    if matrix is not None:
        motors = ["left", "right", "third"][: len(matrix)]
        numbers = {"rotor_inertia": ROTORS[: len(matrix)]} | numbers
        b.add_transmission("cables", motors, ["bend", "roll"], matrix, **numbers)
    return b.build()


def states(matrix, count=20, seed=0):
    """Return (q, v, tau) of the joints, the same of joints and motors, and the matrix from the joints to the motors."""
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=(2, count, 3))
    G = np.hstack([np.zeros((len(matrix), 1)), matrix])
    u = rng.normal(size=(count, 1 + len(matrix)))
    tau = np.concatenate([u[:, :1], np.zeros((count, 2)), u[:, 1:]], axis=1)
    return (q, v, u[:, :1] * [1.0, 0.0, 0.0] + u[:, 1:] @ G), (np.c_[q, q @ G.T], np.c_[v, v @ G.T], tau), G


# ---- equations of motion ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_inertia_of_rotors_and_torques_of_motors(matrix):
    """Accelerations are those of (M + G' J G) a + h = G' tau, with 1e-13."""
    joints, robot = wrist(), wrist(matrix)
    (q, v, joint_torques), (all_q, all_v, tau), G = states(matrix)
    M = joints.mass_matrix(q) + G.T @ np.diag(ROTORS[: len(G)]) @ G
    expected = np.linalg.solve(M, (joint_torques - joints.bias_forces(q, v))[..., None])[..., 0]
    a = robot.forward_dynamics(all_q, all_v, tau)
    assert_allclose(a, np.c_[expected, expected @ G.T], rtol=0, atol=EXACT * np.abs(a).max())
    one = np.stack([robot.forward_dynamics(*state) for state in zip(all_q, all_v, tau, strict=True)])
    assert_allclose(one, a, rtol=0, atol=EXACT * np.abs(a).max())
    assert robot.actuated == ("elbow", *("left", "right", "third")[: len(G)])


def test_friction_and_damping_of_motors():
    """tau = J a + d v + f sign(v) at each motor."""
    friction, damping = np.array([0.01, 0.02]), np.array([1e-3, 2e-3])
    joints, robot = wrist(), wrist(DIFFERENTIAL, friction=list(friction), damping=list(damping))
    (q, v, _), (all_q, all_v, _), G = states(DIFFERENTIAL)
    a = np.random.default_rng(1).normal(size=q.shape)
    motor_v, motor_a = v @ G.T, a @ G.T
    lost = motor_a * ROTORS[:2] + damping * motor_v + friction * np.sign(motor_v)
    at_joints = joints.inverse_dynamics(q, v, a)
    expected = np.c_[at_joints[:, 0], at_joints[:, 1:] @ np.linalg.inv(DIFFERENTIAL) + lost]
    u = robot.actuator_efforts(all_q, all_v, np.c_[a, motor_a])
    assert_allclose(u, expected, rtol=0, atol=EXACT * np.abs(expected).max())


def test_fewer_motors_than_joints():
    """One motor bends two joints of a finger with springs: its coordinate follows the joints, and the springs share the motion."""
    b = sarrus.Builder("finger", gravity=(0.0, 0.0, 0.0))
    stiffness = np.array([2.0, 3.0])
    for k, parent in enumerate(["ground", "link0"]):
        b.add_body(f"link{k}", sarrus.Inertia.rod(0.1, (0, 0, 0), (0.05, 0, 0), 0.005))
        at = (0.05 * k, 0.0, 0.0)
        b.add_joint(f"joint{k}", sarrus.Revolute("y", stiffness=stiffness[k]), parent, f"link{k}", at_parent=at)
    radii = np.array([0.01, 0.006])
    b.add_transmission("tendon", ["pull"], ["joint0", "joint1"], [radii], linear=True, rotor_inertia=0.2)
    finger = b.build()
    assert finger.mobility(finger.neutral()).degrees_of_freedom == 2
    rest = sarrus.equilibrium(finger, tau=[0.0, 0.0, 20.0])
    assert_allclose(rest.q[:2], 20.0 * radii / stiffness, rtol=1e-9)  # of the search
    assert_allclose(rest.q[2], radii @ rest.q[:2], rtol=1e-9)


def test_units_of_prismatic_joints_and_linear_motors():
    """A ball screw with a spline nut: rad/m for the slide; a rope over a drum: m/rad for the axle."""
    pitch = 0.02 / (2 * np.pi)  # [m/rad]
    b = sarrus.Builder("screw and spline", gravity=(0.0, 0.0, -10.0))
    b.add_body("carriage")
    b.add_body("shaft", sarrus.Inertia.cylinder(2.0, 0.01, 0.4))
    b.add_joint("lift", sarrus.Prismatic("z"), "ground", "carriage")
    b.add_joint("turn", sarrus.Revolute("z"), "carriage", "shaft")
    matrix = [[1 / pitch, 1.0], [0.0, 1.0]]
    b.add_transmission("nuts", ["screw", "spline"], ["lift", "turn"], matrix, rotor_inertia=1e-4)
    robot = b.build()
    zero = np.zeros(robot.nv)
    assert_allclose(robot.actuator_efforts(zero, zero, zero), [20.0 * pitch, -20.0 * pitch], rtol=1e-12)
    q = robot.assemble(fixed={"screw": 2 * np.pi, "spline": 0.0})
    assert_allclose(q[:2], [0.02, 0.0], atol=1e-12)

    b = sarrus.Builder("drum", gravity=(0.0, 0.0, 0.0))
    b.add_body("drum", sarrus.Inertia(1.0, (0, 0, 0), 0.3 * np.eye(3)))
    b.add_joint("axle", sarrus.Revolute("y"), "ground", "drum")
    b.add_transmission("rope", ["pull"], ["axle"], [[0.1]], linear=True, rotor_inertia=2.0)
    drum = b.build()
    assert drum.joint("pull").kind == "Prismatic"
    a = drum.forward_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 5.0])
    assert_allclose(a[0], 5.0 * 0.1 / (0.3 + 2.0 * 0.1**2), rtol=EXACT)


def test_rows_are_independent():
    """Each motor has a row of its own, also if there are more motors than joints."""
    for matrix in MATRICES.values():
        robot = wrist(matrix)
        assert robot.mobility(robot.neutral()).degrees_of_freedom == 3
        assert sarrus.without_redundant_constraints(robot) == robot
    robot = wrist(MATRICES["three motors, two joints"])
    q, v = robot.assemble(), np.zeros(robot.nv)
    inner = robot.internal_efforts(q)
    assert inner.shape == (4, 1)
    assert_allclose(MATRICES["three motors, two joints"].T @ inner[1:], 0.0, atol=1e-12)
    assert not wrist(DIFFERENTIAL, rotor_inertia=0.0).warnings
    light = wrist(DIFFERENTIAL, rotor_inertia=0.0).forward_dynamics(q[:5], v[:5], np.ones(5))
    expected = wrist().forward_dynamics(q[:3], v[:3], [1.0, *(DIFFERENTIAL.T @ [1.0, 1.0] + 1.0)])
    assert_allclose(light[:3], expected, rtol=1e-12)


# ---- limits, control, identification -----------------------------------------------------------------------------------------------


def test_limits_are_those_of_the_motors():
    robot = wrist(DIFFERENTIAL, limits=[(-5.0, 2.0), (-6.0, 6.0)], velocity_limit=[30.0, 40.0], effort_limit=0.2)
    assert robot.joint("left").limits[1] == 2.0 and robot.joint("right").limits[1] == 6.0
    q, v = robot.assemble(), np.zeros(5)
    swung = robot.complete_velocity(q, {"elbow": 0.0, "bend": 1.2, "roll": 0.3})
    run = sarrus.simulate(robot, q, swung, 0.4, limits="enforce", method="contact", dt=1e-3)
    assert 1.99 < run.q[:, 3].max() < 2.0 + 1e-6  # left stops, before right does
    with pytest.warns(LimitWarning, match="left"):
        sarrus.simulate(robot, q, swung, 0.4, dt=1e-3)
    torque = robot.actuator_efforts(q, v, v)
    bound = np.array([100.0, 0.03, 0.03])
    assert 0.015 < np.abs(torque[1:]).max() < 0.03
    with pytest.raises(NotRealizableError):
        robot.actuator_efforts(q, v, v, limits=(-0.5 * bound, 0.5 * bound))
    assert_allclose(robot.actuator_efforts(q, v, v, limits=(-bound, bound)), torque, atol=1e-12)


def test_tasks_within_the_efforts_of_motors():
    """A task of the hand is reached with efforts of the motors, within their limits."""
    robot = wrist(DIFFERENTIAL, effort_limit=0.5)
    q = robot.assemble(fixed={"elbow": 0.3, "bend": 0.2, "roll": 0.1})
    task = control.JointTask("bend", 0.4, stiffness=100.0)
    law = control.TaskControl(robot, [task, control.JointTask("roll", 0.0, stiffness=100.0)])
    solved = law.solve(0.0, q, np.zeros(5))
    a = robot.forward_dynamics(q, np.zeros(5), law(0.0, q, np.zeros(5)))
    assert_allclose(a[1:3], [100.0 * 0.2, -100.0 * 0.1], rtol=1e-9)
    assert list(solved.efforts) == ["elbow", "left", "right"]
    bounded = control.TaskControl(robot, [task], control.Limits(effort=0.05)).solve(0.0, q, np.zeros(5)).efforts
    assert max(abs(bounded["left"]), abs(bounded["right"])) == pytest.approx(0.05, abs=1e-9)


def test_identification_of_rotors():
    """Rotor inertia, damping and friction of both motors, from the motion of the joints and the efforts of the motors."""
    real = wrist(DIFFERENTIAL, friction=[0.01, 0.02], damping=[1e-3, 2e-3])
    rng = np.random.default_rng(3)
    joints = rng.normal(size=(3, 200, 3))
    G = np.hstack([np.zeros((2, 1)), DIFFERENTIAL])
    q, v, a = (np.c_[x, x @ G.T] for x in joints)
    u = real.actuator_efforts(q, v, a)
    model = wrist(DIFFERENTIAL, rotor_inertia=5e-4)
    found = identify(
        model,
        Samples(dict(zip(real.actuated, u.T, strict=True)), q, v, a),
        bodies=[],
        terms={key: ["left", "right"] for key in ("armature", "damping", "friction")},
    )
    for name, truth in (("left", (1e-4, 1e-3, 0.01)), ("right", (2e-4, 2e-3, 0.02))):
        joint = found.robot.joint(name).type
        assert_allclose([joint.armature[0], joint.damping[0], joint.friction[0]], truth, rtol=1e-8)


# ---- configurations, copies, files -------------------------------------------------------------------------------------------------


def test_motors_follow_configurations():
    """Home, named configurations and starts of searches contain the coordinates of motors that close the rows."""
    b = wrist(DIFFERENTIAL, offset=[0.5, -0.5]).to_builder()
    assert_allclose(b.build().assemble(), [0.0, 0.0, 0.0, 0.5, -0.5], atol=1e-15)
    b.set_home({"bend": 0.3})
    b.set_configuration("turned", {"roll": 0.2})
    b.set_configuration("named", {"left": 7.0})
    robot = b.build()
    assert_allclose(robot.configuration("turned"), [0.0, 0.0, 0.2, 2.5, -2.5], atol=1e-15)
    assert_allclose(robot.configuration("named"), [0.0, 0.0, 0.0, 7.0, -0.5], atol=1e-15)
    assert_allclose(robot.assemble(), [0.0, 0.3, 0.0, 6.5, 5.5], atol=1e-15)
    assert_allclose(robot.assemble(fixed={"left": 0.5, "right": -0.5})[1:3], 0.0, atol=1e-12)


def test_copies_and_changes():
    robot = wrist(DIFFERENTIAL, friction=0.01, limits=(-5.0, 5.0), offset=0.3)
    text = complete.write(robot.description)
    validator().validate(json.loads(text))
    for same in (robot.to_builder().build(), pickle.loads(pickle.dumps(robot)), complete.read(text).build()):
        assert same == robot and same.actuated == robot.actuated
    b = robot.to_builder()
    assert b.remove_body("left_rotor") == ("left", "cables_left")
    assert b.build().actuated == ("elbow", "right")
    b = sarrus.Builder("two")
    for side in ("l_", "r_"):
        b.attach(robot, prefix=side)
    assert b.build().actuated == ("l_elbow", "l_left", "l_right", "r_elbow", "r_left", "r_right")
    assert list(b.build()._motors) == ["l_left", "l_right", "r_left", "r_right"]
    b = robot.to_builder()
    b.lock("roll", at=0.1)
    locked = b.build()
    assert_allclose(locked.assemble(fixed={"bend": 0.2}), [0.0, 0.2, 5.3, 3.3], atol=1e-12)


def test_an_error_changes_nothing():
    b = wrist().to_builder()
    before = b.build()
    with pytest.raises(sarrus.ModelError):
        b.add_transmission("cables", ["left", "elbow"], ["bend", "roll"], DIFFERENTIAL)
    assert b.build() == before
    b.add_transmission("cables", ["left", "right"], ["bend", "roll"], DIFFERENTIAL)
    with pytest.raises(sarrus.ModelError, match="two joints are named 'left'"):
        b.add_transmission("again", ["left"], ["elbow"], [[1.0]])
    assert b.build() == wrist(DIFFERENTIAL, rotor_inertia=0.0)


def test_motors_on_a_floating_base():
    """Rotors turn relative to the body that carries the joints: no torque on the base, and functions of floating mechanisms apply."""
    b = sarrus.Builder("satellite", gravity=(0.0, 0.0, 0.0))
    b.add_body("base", sarrus.Inertia.box(10.0, (1.0, 1.0, 1.0)))
    b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1.0, 0, 0)))
    b.add_joint("float", sarrus.Free(), "ground", "base")
    b.add_joint("joint", sarrus.Revolute("z"), "base", "arm", at_parent=(0.5, 0, 0))
    b.add_transmission("gear", ["motor"], ["joint"], [[30.0]], rotor_inertia=1e-4)
    robot = b.build()
    assert robot.joint("motor").parent == "base"
    a = robot.forward_dynamics(robot.neutral(), np.zeros(8), [0.0] * 7 + [1.0])
    momentum = sarrus.floating.centroidal_momentum(robot, robot.neutral(), a)
    assert_allclose(momentum, 0.0, atol=1e-12 * np.abs(a).max())
    plain = sarrus.Builder("satellite", gravity=(0.0, 0.0, 0.0))
    for body in robot.description.bodies[:2]:
        plain.add_body(body.name, body.inertia)
    plain.add_joint("float", sarrus.Free(), "ground", "base")
    geared = sarrus.Revolute("z", armature=1e-4 * 30.0**2)
    plain.add_joint("joint", geared, "base", "arm", at_parent=(0.5, 0, 0), actuated=True)
    expected = plain.build().forward_dynamics(robot.neutral()[:8], np.zeros(7), [0.0] * 6 + [30.0])
    assert_allclose(a[:7], expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_joints_in_loops():
    """Remote motors of a five-bar's two cranks; a joint that closes a loop is rejected."""
    robot = sarrus.mechanisms.five_bar()
    b, cranks = robot.to_builder(), robot.actuated
    b.add_transmission("belts", ["one", "two"], cranks, [[3.0, 0.0], [3.0, 3.0]], rotor_inertia=1e-3)
    belted = b.build()
    q = belted.assemble()
    rest = np.zeros(belted.nv)
    u = robot.actuator_efforts(q[: robot.nq], rest[: robot.nv], rest[: robot.nv])
    assert_allclose(np.array([[3.0, 3.0], [0.0, 3.0]]) @ belted.actuator_efforts(q, rest, rest), u, atol=1e-12)
    closed = sarrus.mechanisms.four_bar().to_builder()
    closed.set_joint("pin2", loop=True)
    with pytest.raises(sarrus.ModelError, match="closes a loop"):
        closed.add_transmission("belt", ["one"], ["pin2"], [[1.0]])


# ---- derivatives, variants, batches, generated code --------------------------------------------------------------------------------


def test_derivatives_variants_and_batches():
    robot = wrist(DIFFERENTIAL, damping=1e-3)
    _, (q, v, tau), G = states(DIFFERENTIAL, 3)
    allowed = np.vstack([np.eye(3), G])
    h = 1e-6
    for k in range(3):
        found = sarrus.derivatives.forward_dynamics(robot, q[k], v[k], tau[k])
        steps = [robot.forward_dynamics(q[k] + s * h * allowed.T, v[k], tau[k]) for s in (1.0, -1.0)]
        expected = (steps[0] - steps[1]).T / (2.0 * h)
        assert_allclose(found.q @ allowed, expected, rtol=0, atol=1e-6 * np.abs(expected).max())

    armatures = {"left": [[1e-4], [1e-3]], "right": [[2e-4], [5e-4]]}
    variants = robot.variants(armature=armatures)
    runs = sarrus.simulate_many(variants, np.tile(q[0], (2, 1)), np.tile(v[0], (2, 1)), 0.05, dt=1e-3, method="rk4")
    for k in range(2):
        alone = robot.replace(armature={name: x[k] for name, x in armatures.items()})
        run = sarrus.simulate(alone, q[0], v[0], 0.05, dt=1e-3, method="rk4")
        assert_allclose(runs.q[k, -1], run.q[-1], rtol=0, atol=1e-10 * np.abs(run.q).max())


def test_generated_code_is_the_core(tmp_path):
    robot = wrist(DIFFERENTIAL, damping=1e-3, friction=0.01)
    names = ["forward_dynamics", "actuator_efforts", "positions:bend,roll"]
    code = generation.compiled(generation.generate(robot, {n.partition(":")[0]: n for n in names}, tmp_path))
    _, (q, v, tau), _ = states(DIFFERENTIAL)
    a = robot.forward_dynamics(q, v, tau)
    for name, arguments in (("forward_dynamics", (q, v, tau)), ("actuator_efforts", (q, v, a))):
        (found,), core = code(name, *arguments)[0].values(), getattr(robot, name)(*arguments)
        assert_allclose(found, core, rtol=0, atol=1e-12 * np.abs(core).max())
