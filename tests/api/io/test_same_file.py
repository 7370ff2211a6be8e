"""Valid files with different answers in different programs: each cell of the tables in docs/same-file.md is measured.

A class below is one program's view of a file, with the same attributes for all programs; a row is a function of such a view that returns the cell. Cells
of programs that are not installed, or of another version than the page states, are skipped.
"""

import importlib.metadata
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import sarrus

ROOT = Path(__file__).parents[3]
FILES = ROOT / "tests" / "data" / "same_file"
PAGE = (ROOT / "docs" / "same-file.md").read_text(encoding="utf-8")
INFINITE = 1e9
SPEED = -2.0  # of the hinge in damping.xml [rad/s]


def number(x):
    """Return a number as the page writes it."""
    return f"{float(x) + 0.0:.4g}".replace("-", "−")


def bound(x):
    return "unlimited" if x is None or not np.isfinite(x) or x > INFINITE else number(x)


class Mujoco:
    package = "mujoco"

    def __init__(self, path):
        import mujoco

        self.lib, self.model = mujoco, mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        self.nq, self.nv, self.mass = self.model.nq, self.model.nv, self.model.body_mass.sum()
        self.names = [self.model.body(i).name for i in range(self.model.nbody)]
        kinds = self.model.eq_type.tolist()
        self.couplers, self.loops = kinds.count(mujoco.mjtEq.mjEQ_JOINT), kinds.count(mujoco.mjtEq.mjEQ_CONNECT)
        self.floats = bool((self.model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).any())

    def at(self, q=None, v=None):
        self.data.qpos[:] = self.model.qpos0 if q is None else q
        self.data.qvel[:] = 0.0 if v is None else v
        self.lib.mj_forward(self.model, self.data)
        return self.data

    def moved(self, q):
        return self.at([*q, 0.0]).xpos[-1]

    def effort(self, name):
        joint, gear = self.model.joint(name), self.model.actuator_gear[:, 0]
        if self.model.nu and self.model.actuator_ctrllimited[0]:
            return gear[0] * self.model.actuator_ctrlrange[0, 1]
        return joint.actfrcrange[1] if self.model.jnt_actfrclimited[joint.id] else None

    def velocity(self, name):
        return None  # no array of the compiled model has velocity limits

    def friction(self, name):
        return self.model.dof_frictionloss[self.model.joint(name).dofadr[0]]

    def limits(self, name):
        return self.model.joint(name).range

    def inertia(self):
        M = np.zeros((self.nv, self.nv))
        self.lib.mj_fullM(self.model, self.at(), M)
        return M[0, 0]

    def spring(self):
        return self.at().qfrc_spring[0]

    def damping(self, v=1.0):
        at_rest = self.at().qfrc_passive + self.data.qfrc_actuator
        return (self.at(v=v).qfrc_passive + self.data.qfrc_actuator - at_rest)[0]

    def servo(self):
        return -self.at(q=1.0).qfrc_actuator[0]

    def key(self):
        return self.model.key_qpos[0]

    def rest(self):
        for _ in range(2000):
            self.lib.mj_step(self.model, self.data)
        return self.data.qpos[2]

    def gap(self):
        for _ in range(500):
            self.lib.mj_step(self.model, self.data)
        self.lib.mj_forward(self.model, self.data)
        return np.abs(self.data.efc_pos[: self.data.ne]).max()


class Pinocchio:
    package = "pin"

    def __init__(self, path):
        import pinocchio as pin

        self.lib, self.loops = pin, 0
        if path.suffix == ".urdf":
            self.model = pin.buildModelFromUrdf(str(path))
        elif "<connect" in path.read_text():
            self.model, constraints = pin.buildModelAndConstraintsFromMJCF(str(path))[:2]
            self.loops = len(constraints)
        else:
            self.model = pin.buildModelFromMJCF(str(path))
        self.data, self.nq, self.nv = self.model.createData(), self.model.nq, self.model.nv
        self.mass, self.names = sum(x.mass for x in self.model.inertias), [frame.name for frame in self.model.frames]
        self.couplers = sum("Mimic" in joint.shortname() for joint in self.model.joints)
        self.floats = "FreeFlyer" in self.model.joints[1].shortname()

    def moved(self, q):
        self.lib.forwardKinematics(self.model, self.data, np.array([*q, 1.0, 0.0]))
        return self.data.oMi[1].translation

    def v_of(self, name):
        return self.model.idx_vs[self.model.getJointId(name)]

    def effort(self, name):
        return self.model.upperEffortLimit[self.v_of(name)]

    def velocity(self, name):
        return self.model.upperVelocityLimit[self.v_of(name)]

    def friction(self, name):
        return self.model.upperDryFrictionLimit[self.v_of(name)]

    def limits(self, name):
        at = self.model.idx_qs[self.model.getJointId(name)]
        return self.model.lowerPositionLimit[at], self.model.upperPositionLimit[at]

    def inertia(self):
        return self.lib.crba(self.model, self.data, self.lib.neutral(self.model))[0, 0]

    def spring(self):
        return self.lib.rnea(self.model, self.data, self.lib.neutral(self.model), np.zeros(1), np.zeros(1))[0]

    def damping(self, v=1.0):
        return -self.model.damping[0] * v


class Newton:
    package = "newton"

    def __init__(self, path):
        import newton

        self.builder = b = newton.ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            {".urdf": b.add_urdf, ".xml": b.add_mjcf, ".usda": b.add_usd}[path.suffix](str(path))
        self.nq = b.joint_coord_count - 4 * (newton.JointType.BALL in b.joint_type)
        self.nv, self.mass = b.joint_dof_count - 3 * (newton.JointType.BALL in b.joint_type), sum(b.body_mass)
        self.names = [label.rpartition("/")[2] for label in b.body_label]
        self.couplers = sum(x >= 0 for x in b.joint_mimic_joint) + len(b.constraint_mimic_coef0)
        self.loops = sum(kind == newton.JointType.BALL for kind in b.joint_type)
        self.floats = newton.JointType.FREE in b.joint_type

    def moved(self, q):
        # the axes of a joint with slides only
        return sum(x * np.array(axis) for x, axis in zip(q, self.builder.joint_axis, strict=True))

    def v_of(self, name):
        return self.builder.joint_qd_start[[x.rpartition("/")[2] for x in self.builder.joint_label].index(name)]

    def effort(self, name):
        return self.builder.joint_effort_limit[self.v_of(name)]

    def velocity(self, name):
        return self.builder.joint_velocity_limit[self.v_of(name)]

    def friction(self, name):
        return self.builder.joint_friction[self.v_of(name)]

    def limits(self, name):
        return self.builder.joint_limit_lower[self.v_of(name)], self.builder.joint_limit_upper[self.v_of(name)]

    def inertia(self):
        return np.array(self.builder.body_inertia[0]).reshape(3, 3)[1, 1] + self.builder.joint_armature[0]

    def spring(self):
        return self.builder.joint_stiffness[0] * (self.builder.joint_rest_q[0] - self.builder.joint_q[0])

    def damping(self, v=1.0):
        return -self.builder.joint_damping[0] * v

    def servo(self):
        return self.builder.joint_target_ke[0]

    def height(self):
        return self.builder.body_q[0][2]

    def moments(self):
        return np.diag(np.array(self.builder.body_inertia[0]).reshape(3, 3))


class Drake:
    package = "drake"

    def __init__(self, path):
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant

        self.plant = plant = MultibodyPlant(1e-3)
        (model, *_) = Parser(plant).AddModels(str(path))
        plant.Finalize()
        self.context = plant.CreateDefaultContext()
        self.floats = bool(plant.GetFloatingBaseBodies())
        self.nv, self.nq = plant.num_velocities() - 6 * self.floats, plant.num_positions() - 7 * self.floats
        self.mass = plant.CalcTotalMass(self.context)
        self.names = [plant.get_body(i).name() for i in plant.GetBodyIndices(model)]
        self.couplers = self.loops = plant.num_constraints()

    def moved(self, q):
        self.plant.SetPositions(self.context, [1.0, *np.zeros(6 * self.floats), *q, 0.0][not self.floats :])
        return self.plant.EvalBodyPoseInWorld(self.context, self.plant.GetBodyByName(self.names[-1])).translation()

    def effort(self, name):
        actuators = [self.plant.get_joint_actuator(i) for i in self.plant.GetJointActuatorIndices()]
        return next((x.effort_limit() for x in actuators if x.joint().name() == name), "no motor")

    def velocity(self, name):
        return self.plant.GetJointByName(name).velocity_upper_limits()[0]

    def friction(self, name):
        return 0.0  # the plant has no dry friction of joints

    def limits(self, name):
        joint = self.plant.GetJointByName(name)
        return joint.position_lower_limits()[0], joint.position_upper_limits()[0]

    def inertia(self):
        return self.plant.CalcMassMatrix(self.context)[0, 0]

    def spring(self):
        return self.plant.CalcGravityGeneralizedForces(self.context)[0]  # and no force elements besides gravity

    def damping(self, v=1.0):
        return -self.plant.get_joint(self.plant.GetJointIndices()[0]).default_damping_vector()[0] * v


class UsdPhysics:
    package = "usd-core"

    def __init__(self, path):
        from pxr import Usd

        self.stage = Usd.Stage.Open(str(path))

    def moments(self):
        from pxr import Gf, UsdPhysics

        def collider(prim, *_):
            box = UsdPhysics.RigidBodyAPI.MassInformation()
            box.volume, box.centerOfMass = 6.0, (0, 0, 0)
            box.inertia, box.localPos, box.localRot = (
                Gf.Matrix3f(Gf.Vec3f(6.5, 5, 2.5)),
                (1, 0, 0),
                Gf.Quatf(1),
            )  # of unit density
            return box

        body = UsdPhysics.RigidBodyAPI(self.stage.GetPrimAtPath("/body"))
        _, moments, *_ = body.ComputeMassProperties(collider)
        return moments


class Sarrus:
    package = "sarrus"

    def __init__(self, path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.robot = robot = sarrus.load(path)
        self.nq, self.nv, self.mass = robot.nq, robot.nv, sum(x.inertia.mass for x in robot.description.bodies)
        self.names = list(robot.frames)
        kinds = [type(spec).__name__ for spec in robot.description.constraints]
        self.couplers, self.loops = kinds.count("CouplerSpec"), len(robot.loop_joints)
        self.floats = any(robot.joint(name).kind == "Free" for name in robot.joints)

    def moved(self, q):
        return self.robot.pose([*q, 0.0], self.robot.bodies[-1])[:3, 3]

    def of(self, name, field):
        value = getattr(self.robot.joint(name).type, field)
        return None if value is None else np.ravel(value)[0]

    def effort(self, name):
        return self.of(name, "effort_limit")

    def velocity(self, name):
        return self.of(name, "velocity_limit")

    def friction(self, name):
        return self.of(name, "friction")

    def limits(self, name):
        return np.ravel(self.robot.joint(name).type.limits)

    def inertia(self):
        return self.robot.mass_matrix(self.robot.configuration("qpos0"))[0, 0]

    def spring(self):
        return -self.robot.bias_forces(self.robot.configuration("qpos0"), np.zeros(1))[0]

    def damping(self, v=1.0):
        q = self.robot.configuration("qpos0")
        return self.robot.bias_forces(q, [0.0])[0] - self.robot.bias_forces(q, [v])[0]

    def servo(self):
        assert any("its control law is not read" in note for note in self.robot.warnings)
        return "not read"

    def key(self):
        return self.robot.configuration("short")

    def rest(self):
        robot = self.robot
        return sarrus.simulate(robot, robot.assemble(), np.zeros(6), 1.0, method="contact").q[-1, 6]

    def gap(self):
        robot = self.robot
        run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 1.0)
        return np.abs(robot.constraint_residual(run.q[-1])).max()

    def height(self):
        return self.robot.pose(self.robot.assemble(), "stone")[2, 3]

    def moments(self):
        return np.diag(self.robot.description.bodies[-1].inertia.about_com)


def vector(x):
    return f"({', '.join(map(number, np.round(x, 9)))})"


def effort(joint, unit="N m"):
    def row(m):
        x = m.effort(joint)
        return x if isinstance(x, str) else bound(x) + f" {unit}" * (bound(x) != "unlimited")

    return row


def counted(n, what):
    return f"{n} {what}{'s' * (n != 1)}"


def gap(m):
    x = m.gap()
    return f"{x:.0e} m" if x > 1e-12 else "0"


# case in the page -> (file, function that returns the cell)
ROWS = {
    "planar joint about y: (1, 2) moves the link to": (
        "planar.urdf",
        lambda m: vector(m.moved([1.0, 2.0])) + ", does not turn" * (m.nv == 2),
    ),
    "root link": ("arm.urdf", lambda m: "floats" if m.floats else "fixed"),
    "total mass; the root link has 3 kg": ("arm.urdf", lambda m: f"{number(m.mass)} kg"),
    "link `tool` on a fixed joint": ("arm.urdf", lambda m: "kept" if "tool" in m.names else "fused, name lost"),
    "`<mimic>`": ("arm.urdf", lambda m: f"{counted(m.nv, 'joint')}, {counted(m.couplers, 'coupler')}"),
    '`effort="0"`': ("arm.urdf", effort("grip")),
    '`velocity="3"`': ("arm.urdf", lambda m: bound(m.velocity("shoulder"))),
    '`friction="0.2"`': ("arm.urdf", lambda m: number(m.friction("shoulder"))),
    "massless link between two joints": ("massless.urdf", lambda m: f"{counted(m.nv, 'joint')}"),
    "coordinates of a continuous joint": ("continuous.urdf", lambda m: number(m.nq)),
    "effort limit of a joint without `<limit>`": ("continuous.urdf", effort("hinge")),
    "inertia at the joint: body 1, armature 0.1, motor's armature 0.02, gear 10": (
        "motor.xml",
        lambda m: f"{number(m.inertia())} kg m²",
    ),
    "damping 0.03 of the motor, at the joint": ("motor.xml", lambda m: f"{number(-m.damping())} N m s"),
    "effort limit of the joint: `ctrlrange` 1, gear 10": ("motor.xml", effort("hinge")),
    "range −60° to 90° with `ref` 30°": (
        "motor.xml",
        lambda m: " to ".join(f"{number(x)}°" for x in np.degrees(m.limits("hinge"))),
    ),
    "torque of the spring in the pose of the file": ("motor.xml", lambda m: f"{number(m.spring())} N m"),
    "`<position kp=100 gear=2>`: stiffness at the joint": (
        "servo.xml",
        lambda m: x if isinstance(x := m.servo(), str) else f"{number(x)} N m",
    ),
    '`damping="1 2 3"`: torque at −2 rad/s': ("damping.xml", lambda m: f"{number(m.damping(SPEED))} N m"),
    '`<frame scale="2">` around a body of 1 kg': ("scaled.xml", lambda m: f"{number(m.mass)} kg"),
    "bodies of two arms in the world": ("two_arms.xml", lambda m: f"{number(m.mass)} kg"),
    "`<connect>` of a four-bar": ("four_bar.xml", lambda m: f"{counted(m.nv, 'joint')}, {counted(m.loops, 'loop')}"),
    "gap of this loop after 1 s": ("four_bar.xml", gap),
    "`<equality><joint>`": ("gears.xml", lambda m: f"{counted(m.nv, 'joint')}, {counted(m.couplers, 'coupler')}"),
    "ball of radius 0.1 rests at; margins 0.05 and 0.02": ("margins.xml", lambda m: f"{number(m.rest())} m"),
    "keyframe with one number of two": ("keyframe.xml", lambda m: vector(m.key())),
    "`metersPerUnit = 0.01`: height of a body at 100": ("metres.usda", lambda m: f"{number(m.height())} m"),
    "moments of a box 1 m from the stated centre of mass": ("inertia.usda", lambda m: vector(m.moments())),
    "link that is the child of two joints": (
        "four_bar.sdf",
        lambda m: f"{counted(m.nv, 'joint')}, {counted(m.loops, 'loop')}",
    ),
}
PROGRAMS = {
    "MuJoCo": Mujoco,
    "Pinocchio": Pinocchio,
    "Newton": Newton,
    "Drake": Drake,
    "OpenUSD": UsdPhysics,
    "sarrus": Sarrus,
}
REFUSED = "error"
NOTHING = "—"


def cells():
    """Yield (case, program, version, cell) of the tables in the page."""
    for table in re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE):
        head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
        programs = [(name.split()[0], [*name.split(), ""][1]) for name in head[1:]]
        for case, *texts in lines:
            for (program, version), text in zip(programs, texts, strict=True):
                yield case, program, version, text


@cache
def opened(program, file):
    return PROGRAMS[program](FILES / file)


def measured(program, case):
    file, row = ROWS[case]
    try:
        m = opened(program, file)
    except Exception:  # each program has its own errors
        return REFUSED
    return row(m)


def test_the_page_has_all_cases():
    found = [case for case, program, *_ in cells() if program == "sarrus"]
    assert found == list(ROWS)


@pytest.mark.parametrize(("case", "program", "version", "text"), [*cells()], ids=lambda x: x.replace(" ", "-")[:40])
def test_cell(case, program, version, text):
    if version:
        try:
            installed = importlib.metadata.version(PROGRAMS[program].package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{program} is not installed")
        if installed != version:
            pytest.skip(f"{program} {version} is not installed, but {installed}")
    if not version and ROWS[case][0].endswith(".usda"):
        pytest.importorskip("pxr")
    if text != NOTHING:
        assert text.partition(";")[0] == measured(program, case)
