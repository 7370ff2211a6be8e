"""A crank-rocker, written down with sarrus: a script to start a model of your own from.

python examples/crank_rocker.py
"""

import numpy as np

import sarrus

# ---- bodies and joints -----------------------------------------------------------------------------------------------
# Each body has a frame of its own: here at its first pin, with x along the rod. Units are SI, angles in radians.

b = sarrus.Builder("crank-rocker")  # gravity is (0, 0, -9.81) unless gravity= says otherwise

CRANK, COUPLER, ROCKER, GROUND = 0.4, 1.1, 0.9, 1.0  # from pin to pin [m]
for name, length in (("crank", CRANK), ("coupler", COUPLER), ("rocker", ROCKER)):
    b.add_body(name, sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(length, 0, 0), radius=0.01))

# a joint leads from a place on its parent to one on its child; a position is enough where the axes are parallel
b.add_joint("motor", sarrus.Revolute("y", damping=0.01), "ground", "crank", actuated=True)
b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(CRANK, 0, 0))
b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=(GROUND, 0, 0))
# this one closes the loop: coupler and rocker are both connected already
b.add_joint("pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(COUPLER, 0, 0), at_child=(ROCKER, 0, 0))

b.add_frame("tracer", "coupler", (0.5 * COUPLER, 0, 0.3))  # a point to look at

# where assembly starts to look: of the two ways to put a four-bar together, the one that is nearer
b.set_home({"motor": -0.5, "pin1": -0.5, "pivot": -2.0})

robot = b.build()
print(robot)

# ---- how it can move -------------------------------------------------------------------------------------------------

q = robot.assemble(fixed={"motor": -0.5})  # a configuration that closes the loop
print(robot.mobility(q))

# ---- what a motion takes ---------------------------------------------------------------------------------------------
# the crank turns once, evenly, in two seconds

t = np.linspace(0.0, 2.0, 201)
rate = np.pi
path = robot.follow({"motor": -0.5 + rate * t}, near=q)
v = robot.complete_velocity(path, {"motor": np.full(len(t), rate)})
a = robot.complete_acceleration(path, v, {"motor": np.zeros(len(t))})
torque = robot.actuator_efforts(path, v, a)[:, 0]
print(f"\nturned at {rate:.2f} rad/s, the motor gives up to {np.abs(torque).max():.2f} N m")

turn = sarrus.Trajectory.from_motion(robot, t, path, v, a)
print(turn.joint_wrenches())  # what its pins carry

# ---- simulation ------------------------------------------------------------------------------------------------------

motor = sarrus.control.PID("motor", proportional=50.0, derivative=10.0, target=sarrus.laws.polynomial(-0.5, rate))
run = sarrus.simulate(robot, q, np.zeros(robot.nv), 2.0, motor)
print(f"\n{run}; loops open by {run.loop_error.max():.1e}")

# What to try next:
#   run.plot(["motor", "pivot"]).figure.savefig("angles.png")      needs matplotlib
#   run.animate("run.html", trace="tracer")
#   sarrus.view(robot, trajectory=run)                              needs viser; in the browser
#   robot.save("crank_rocker.json")                                      or .urdf, .xml (MJCF), .sdf
#   sarrus check crank_rocker.json         on the command line: what is suspicious about it
