"""Simulations of a benchmark problem in other engines, with the settings that their developers recommend for closed chains."""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

import sarrus
from sarrus.shapes import Box, Plane, Sphere

from .engines import Engine, Motion, Problem, UnsupportedError
from .tables import installed as is_there


def installed() -> dict[str, Engine]:
    """Return installed engines by name."""
    known = {
        "mujoco": {"MuJoCo": in_mujoco, "MuJoCo, solref 2 dt": in_stiff_mujoco},
        "drake": {"Drake, SAP": in_drake},
        "exudyn": {"Exudyn": in_exudyn},
        "pin": {"Pinocchio, Baumgarte": in_pinocchio},
    }
    return {name: engine for package, those in known.items() if is_there(package) for name, engine in those.items()}


# ---- MuJoCo: implicitfast, Newton, elliptic cones, as its documentation advises; with the default time constant of constraints, and with the
# smallest that a step allows -----------


def in_mujoco(problem: Problem, dt: float, times: np.ndarray) -> Motion:
    """MuJoCo with its default stiffness of loops and contacts (0.02 s)."""
    return _mujoco(problem, dt, times, None)


def in_stiff_mujoco(problem: Problem, dt: float, times: np.ndarray) -> Motion:
    """MuJoCo with the stiffest allowed loops and contacts, a time constant of two steps."""
    return _mujoco(problem, dt, times, 2.0 * dt)


def mujoco_model(problem: Problem, dt: float, reference: float | None) -> tuple[Any, Any]:
    """Return MuJoCo's model, and its data in the initial state. `reference` is the time constant of loops and contacts [s]."""
    import mujoco

    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # none of the warnings is about a change of the motion
        file = Path(folder) / "model.xml"
        problem.robot.save(file, lossy=True)
        root = ET.parse(file).getroot()
    root.find("option").attrib.update(timestep=repr(dt), integrator="implicitfast", cone="elliptic")  # type: ignore[union-attr]
    for written in root.findall("actuator"):  # motors without further attributes
        root.remove(written)
    actuator = ET.SubElement(root, "actuator")
    for name, (kp, kd, _) in problem.gains.items():
        ET.SubElement(actuator, "position", joint=name, kp=repr(kp), kv=repr(kd))
    if reference is not None:
        for tag in ("connect", "weld", "joint"):
            for equality in root.findall(f"equality/{tag}"):
                equality.set("solref", f"{reference!r} 1")
        for joint in root.find("worldbody").iter("joint"):  # type: ignore[union-attr]
            joint.set("solreflimit", f"{reference!r} 1")
        for geom in root.iter("geom"):
            geom.set("solref", f"{reference!r} 1")
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    states = problem.robot.joint_states(problem.q, problem.v)
    if not problem.v.any() and model.nkey and np.array_equal(problem.q, (problem.solved or problem.robot).assemble()):
        mujoco.mj_resetDataKeyframe(model, data, 0)  # sets joints of several axes, too
    for name in () if data.qpos.any() else problem.robot.joints:
        joint, q = model.joint(name), states.q[name]
        if len(q) >= 4:  # in MuJoCo a quaternion begins with w, and a free joint's coordinates with its position
            q = np.r_[q[4:], q[3], q[:3]]
        data.qpos[joint.qposadr[0] :][: len(q)] = q
        data.qvel[joint.dofadr[0] :][: len(states.v[name])] = states.v[name] if len(q) < 7 else 0.0
    data.ctrl[:] = [target for *_, target in problem.gains.values()]
    mujoco.mj_forward(model, data)
    return model, data


def _mujoco(problem: Problem, dt: float, times: np.ndarray, reference: float | None) -> Motion:
    import mujoco

    model, data = mujoco_model(problem, dt, reference)
    bodies = [model.body(name).id for name in problem.robot.bodies]

    def poses() -> np.ndarray:
        X = np.tile(np.eye(4), (len(bodies), 1, 1))
        X[:, :3, :3], X[:, :3, 3] = data.xmat[bodies].reshape(-1, 3, 3), data.xpos[bodies]
        return X

    samples, seconds = [poses()], 0.0
    for steps in np.diff(np.round(times / dt).astype(int)):
        start = process_time()
        mujoco.mj_step(model, data, int(steps))
        seconds += process_time() - start
        mujoco.mj_kinematics(model, data)
        samples.append(poses())
    mujoco.mj_forward(model, data)
    twists = np.zeros((len(bodies), 6))
    for k, body in enumerate(bodies):
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, twists[k], 0)
    return Motion(np.array(samples), twists, seconds)


# ---- Pinocchio: it has no time integration; symplectic Euler steps with its constrained forward dynamics and Baumgarte stabilisation
# -----------------------------


def in_pinocchio(problem: Problem, dt: float, times: np.ndarray) -> Motion:
    """Pinocchio with critically damped Baumgarte gains, a time constant of ten steps; no contacts."""
    import pinocchio as pin

    if problem.touching:
        raise UnsupportedError("contacts")
    robot = problem.robot
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore warnings about motors
        model, loops = sarrus.io.to_pinocchio(robot)
    data = model.createData()
    rate = 0.1 / dt
    for loop in loops:
        loop.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(rate**2, 2.0 * rate))
    held = pin.StdVec_RigidConstraintData()
    for loop in loops:
        held.append(loop.createData())
    pin.initConstraintDynamics(model, data, loops, held)
    settings = pin.ProximalSettings(1e-12, 1e-12, 10)
    q, v = sarrus.interop.to_pinocchio_state(robot, model, problem.q, problem.v)
    q, v, no_effort, samples, seconds = np.array(q), np.array(v), np.zeros(model.nv), [], 0.0
    frames = [model.getFrameId(name, pin.FrameType.BODY) for name in robot.bodies]

    def poses() -> np.ndarray:
        pin.framesForwardKinematics(model, data, q)
        return np.array([data.oMf[frame].homogeneous for frame in frames])

    samples.append(poses())
    for steps in np.diff(np.round(times / dt).astype(int)):
        start = process_time()
        for _ in range(steps):
            a = pin.constraintDynamics(model, data, q, v, no_effort, loops, held, settings)
            v = v + dt * a
            q = pin.integrate(model, q, dt * v)
        seconds += process_time() - start
        samples.append(poses())
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    twists = [pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED) for frame in frames]
    return Motion(np.array(samples), np.array([np.r_[twist.angular, twist.linear] for twist in twists]), seconds)


# ---- Exudyn: redundant coordinates, generalised alpha with default parameters, and a dense solver that ignores redundant rows
# -----------------------------


def in_exudyn(problem: Problem, dt: float, times: np.ndarray) -> Motion:
    """Exudyn with all constraint rows of hinges, also redundant ones; no contacts."""
    import exudyn
    import exudyn.utilities as exu

    if problem.touching:
        raise UnsupportedError("contacts")
    if len(problem.robot.bodies) > 50:
        raise UnsupportedError(
            "way with redundant rows but its dense solver, which takes a minute for a simulated second here"
        )
    robot = problem.robot
    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.CreateGround()
    start = {body: robot.pose(problem.q, body) for body in robot.bodies}
    numbers, nodes = {"ground": ground}, []
    for body in robot.description.bodies:
        X, V = start[body.name], robot.velocity(problem.q, problem.v, body.name, expressed_in="world_aligned")
        inertia = exu.RigidBodyInertia(body.inertia.mass, body.inertia.about_origin, body.inertia.com)
        made = mbs.CreateRigidBody(
            inertia=inertia, referencePosition=X[:3, 3], referenceRotationMatrix=X[:3, :3], initialVelocity=V[3:],
            initialAngularVelocity=V[:3], gravity=list(robot.gravity), returnDict=True,
        )  # fmt: skip
        numbers[body.name] = made["bodyNumber"]
        nodes.append(made["nodeNumber"])
    for joint in robot.description.joints:
        X = start.get(joint.parent, np.eye(4)) @ joint.at_parent.matrix
        place = {
            "bodyNumbers": [numbers[joint.parent], numbers[joint.child]],
            "position": X[:3, 3],
            "useGlobalFrame": True,
        }
        if joint.kind == "Revolute":
            kind: Any = joint.joint
            mbs.CreateRevoluteJoint(axis=X[:3, :3] @ kind.axis, **place)
        elif joint.kind == "Spherical":
            mbs.CreateSphericalJoint(**place)
        else:
            raise UnsupportedError(joint.kind)
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(problem.duration / dt)
    settings.timeIntegration.endTime = problem.duration
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.linearSolverType = exudyn.LinearSolverType.EigenDense
    settings.linearSolverSettings.ignoreSingularJacobian = True
    begun = process_time()
    if not mbs.SolveDynamic(settings):
        raise UnsupportedError("its steps did not converge")
    seconds = process_time() - begun
    X = np.tile(np.eye(4), (len(nodes), 1, 1))
    twists = np.zeros((len(nodes), 6))
    for k, node in enumerate(nodes):
        X[k, :3, 3] = mbs.GetNodeOutput(node, exudyn.OutputVariableType.Position)
        X[k, :3, :3] = np.reshape(mbs.GetNodeOutput(node, exudyn.OutputVariableType.RotationMatrix), (3, 3))
        twists[k] = np.r_[
            mbs.GetNodeOutput(node, exudyn.OutputVariableType.AngularVelocity),
            mbs.GetNodeOutput(node, exudyn.OutputVariableType.Velocity),
        ]
    first = np.array([start[body] for body in robot.bodies])
    return Motion(np.stack([first, X]), twists, seconds)


# ---- Drake: discrete time, SAP solver, point contact; loops are closed by ball constraints, because SAP requires them
# -------------------------------------------------------


def in_drake(problem: Problem, dt: float, times: np.ndarray) -> Motion:
    """Drake with two ball constraints on the axis of each loop hinge."""
    from pydrake.multibody.plant import AddMultibodyPlant, DiscreteContactApproximation, MultibodyPlantConfig
    from pydrake.systems.analysis import Simulator
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlant(MultibodyPlantConfig(time_step=dt, discrete_contact_approximation="sap"), builder)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    plant.mutable_gravity_field().set_gravity_vector(problem.robot.gravity)
    bodies, motors = _drake_model(problem, plant)
    plant.Finalize()
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    _drake_start(problem, plant, context, motors)
    simulator.Initialize()

    def poses() -> np.ndarray:
        return np.array(
            [plant.EvalBodyPoseInWorld(context, bodies[name]).GetAsMatrix4() for name in problem.robot.bodies]
        )

    samples, seconds = [poses()], 0.0
    for t in times[1:]:
        start = process_time()
        simulator.AdvanceTo(t)
        seconds += process_time() - start
        samples.append(poses())
    velocities = [plant.EvalBodySpatialVelocityInWorld(context, bodies[name]) for name in problem.robot.bodies]
    return Motion(np.array(samples), np.array([np.r_[V.rotational(), V.translational()] for V in velocities]), seconds)


def _drake_model(problem: Problem, plant: Any) -> tuple[dict[str, Any], list[Any]]:
    """Add bodies, joints, loop constraints, shapes and motors to a MultibodyPlant."""
    from pydrake.geometry import Box as DrakeBox
    from pydrake.geometry import HalfSpace
    from pydrake.geometry import Sphere as DrakeSphere
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import CoulombFriction
    from pydrake.multibody.tree import (
        BallRpyJoint,
        PdControllerGains,
        PrismaticJoint,
        RevoluteJoint,
        SpatialInertia,
        UnitInertia,
    )

    d, robot, motors = problem.robot.description, problem.robot, []
    bodies = {"ground": plant.world_body()}
    for body in d.bodies:
        m, I = body.inertia.mass, body.inertia.about_origin
        unit = (
            UnitInertia(*(I[i, j] / m for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
            if m
            else UnitInertia()
        )
        bodies[body.name] = plant.AddRigidBody(
            body.name, SpatialInertia(m, body.inertia.com, unit, skip_validity_check=True)
        )
    for joint in d.joints:
        what: Any = joint.joint
        ends = (
            (bodies[joint.parent], RigidTransform(joint.at_parent.matrix)),
            (bodies[joint.child], RigidTransform(joint.at_child.matrix)),
        )
        if joint.name in robot.loop_joints:
            if joint.kind not in ("Revolute", "Spherical"):
                raise UnsupportedError(f"a loop closed by {joint.kind}")
            axis = 0.02 * np.asarray(what.axis) if joint.kind == "Revolute" else None
            for shift in (-1.0, 1.0) if axis is not None else (0.0,):
                p = [at @ (shift * axis if axis is not None else np.zeros(3)) for _, at in ends]
                plant.AddBallConstraint(ends[0][0], p[0], ends[1][0], p[1])
            continue
        kinds = {"Revolute": RevoluteJoint, "Prismatic": PrismaticJoint}
        if joint.kind in kinds:
            made = plant.AddJoint(
                kinds[joint.kind](
                    joint.name,
                    *_framed(plant, joint.name, ends),
                    np.asarray(what.axis),
                    damping=float(np.max(what.damping)),
                )
            )
            if np.any(what.stiffness):
                raise UnsupportedError("springs along joints")
            if joint.name in problem.gains or np.any(what.armature):
                motor = plant.AddJointActuator(joint.name, made)
                motor.set_default_rotor_inertia(float(np.max(what.armature)))
                motor.set_default_gear_ratio(1.0)
                if joint.name in problem.gains:
                    kp, kd, _ = problem.gains[joint.name]
                    motor.set_controller_gains(PdControllerGains(p=kp, d=kd))
                motors.append(motor)
        elif joint.kind == "Spherical":
            plant.AddJoint(BallRpyJoint(joint.name, *_framed(plant, joint.name, ends)))
        elif joint.kind != "Free":
            raise UnsupportedError(joint.kind)
    if d.constraints:
        raise UnsupportedError("gears beside springs and stops")
    for spec in d.shapes:
        shape = spec.shape
        solid = (
            DrakeBox(*shape.size)
            if isinstance(shape, Box)
            else DrakeSphere(shape.radius)
            if isinstance(shape, Sphere)
            else HalfSpace()
        )
        if not isinstance(shape, Box | Sphere | Plane):
            raise UnsupportedError(type(shape).__name__)
        mu = 1.0 if spec.friction is None else spec.friction
        plant.RegisterCollisionGeometry(
            bodies[spec.body], RigidTransform(spec.placement.matrix), solid, spec.name, CoulombFriction(mu, mu)
        )
    return bodies, motors


def _framed(plant: Any, name: str, ends: Any) -> list[Any]:
    """Return the frames of a joint on its two bodies."""
    from pydrake.multibody.tree import FixedOffsetFrame

    return [plant.AddFrame(FixedOffsetFrame(f"{name}.{k}", body.body_frame(), at)) for k, (body, at) in enumerate(ends)]


def _drake_start(problem: Problem, plant: Any, context: Any, motors: list[Any]) -> None:
    """Return the initial coordinates and velocities of hinges, and the targets of motors."""
    from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

    states = problem.robot.joint_states(problem.q, problem.v)
    for joint in problem.robot.description.joints:
        if joint.name in problem.robot.loop_joints:
            continue
        if joint.kind == "Free":
            plant.SetFreeBodyPose(
                context, plant.GetBodyByName(joint.child), RigidTransform(problem.robot.pose(problem.q, joint.child))
            )
            continue
        made, q, v = plant.GetJointByName(joint.name), plant.GetPositions(context), plant.GetVelocities(context)
        if joint.kind == "Spherical":
            turn = sarrus.Rotation.from_quaternion(states.q[joint.name]).matrix
            made.set_angles(context, RollPitchYaw(RotationMatrix(turn)).vector())
        else:
            q[made.position_start()], v[made.velocity_start()] = states.q[joint.name][0], states.v[joint.name][0]
            plant.SetPositions(context, q)
            plant.SetVelocities(context, v)
    if motors:
        wanted = []
        for motor in motors:
            _, _, target = problem.gains.get(motor.name(), (0.0, 0.0, 0.0))
            wanted.append(target)
        plant.get_desired_state_input_port(plant.GetModelInstanceByName("DefaultModelInstance")).FixValue(
            context, np.r_[wanted, np.zeros(len(wanted))]
        )
