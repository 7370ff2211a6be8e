"""A user's program for type checkers: .ci/run checks it by mypy and basedpyright; pytest does not run it.

A wrong call has an ignore comment for each checker. Both report the comment as unused if the call is no longer an error.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

import sarrus
from sarrus import control, interop, laws
from sarrus.simulation.histories import JointWrenchHistory

Array = NDArray[np.float64]

# ---- a mechanism is written down -------------------------------------------------------------------------------------

b = sarrus.Builder("pendulum")
b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
b.add_joint("pivot", sarrus.Revolute("y", damping=0.1, limits=(-1.0, 1.0)), "ground", "bob", actuated=True)
pendulum: sarrus.Mechanism = b.build()
robot = sarrus.mechanisms.four_bar()
q: Array = robot.assemble(fixed={"motor": 0.5})
v: Array = robot.complete_velocity(q, {"motor": 2.0})
a: Array = robot.complete_acceleration(q, v, {"motor": 0.0})

# ---- functions of a state --------------------------------------------------------------------------------------------

tau: Array = robot.inverse_dynamics(q, v, a)
also: Array = robot.forward_dynamics(q, v, tau, threads=2)
moved, reactions = robot.forward_dynamics(q, v, tau, return_reactions=True)
motors: Array = robot.actuator_efforts(q, v, a)
some, multipliers = robot.actuator_efforts(q, v, a, return_reactions=True)
total: Array = some + multipliers.sum()
wrenches: dict[str, Array] = sarrus.formulations.reactions(robot, q, v, a)
pins: dict[str, Array] = robot.joint_states(q, v).v
J_star: Array = sarrus.floating.generalized_jacobian(robot, q, "coupler")
loads: sarrus.results.JointWrenches = robot.joint_wrenches(q, v, a)
loose: tuple[str, ...] = loads.indeterminate["pin1"]
M: Array = robot.mass_matrix(q)
J: Array = robot.jacobian(q, "coupler", expressed_in="world_aligned")
nearest: Array = robot.project_velocity(q, v, metric="euclidean")
energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
degrees: int = robot.mobility(q).degrees_of_freedom
slow: Array = robot.linearize(q, v).modes().frequencies

robot.jacobian(q, "coupler", expressed_in="body")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
robot.project_velocity(q, v, metric="energy")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
robot.inverse_dynamics(q, v)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
robot.mass_matrix(q, thread=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
print(robot.mass_matrix(q).shapes)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
print(tau.shapes)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

# ---- simulation ------------------------------------------------------------------------------------------------------

drive = control.PID("motor", proportional=10.0, derivative=1.0, target=laws.polynomial(0.0, 1.0))
run: sarrus.Trajectory = sarrus.simulate(robot, q, v, 0.1, controller=drive, method="rk4", limits="ignore")
carried: JointWrenchHistory = run.joint_wrenches()
largest: float = carried.summary[0].maximum
there, speed = run.at(0.05)
half: Array = there + speed

pushes = control.FeedforwardEffort("motor", [laws.harmonic(1.0, 2.0), laws.polynomial(0.5)])
with ThreadPoolExecutor(2) as pool:
    runs: sarrus.results.Sweep = sarrus.simulate_many([robot, robot], [q, q], v, 0.1, pushes, executor=pool)

sarrus.simulate_many(robot, q, v, 0.1, executor=2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
sarrus.simulate(robot, q, v, 0.1, method="RK45")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
sarrus.simulate(robot, q, v, 0.1, limits="clamp")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
sarrus.simulate(robot, q, v, 0.1, stabilisation="ggl")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# ---- other programs --------------------------------------------------------------------------------------------------

qpos: Array = interop.to_mujoco_state(robot, q)
qpos, qvel = interop.to_mujoco_state(robot, q, v)
