"""A crank-rocker: a template for your own model.

python examples/crank_rocker.py
"""

import numpy as np

import sarrus

# ---- bodies and joints -----------------------------------------------------------------------------------------------
# Each body has its own frame: in this model it is at the body's first pin, with x along the rod. Units are SI, angles are in radians.

b = sarrus.Builder("crank-rocker")  # gravity= is (0, 0, -9.81) by default

CRANK, COUPLER, ROCKER, GROUND = 0.4, 1.1, 0.9, 1.0  # from pin to pin [m]
for name, length in (("crank", CRANK), ("coupler", COUPLER), ("rocker", ROCKER)):
    b.add_body(name, sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(length, 0, 0), radius=0.01))

# a joint connects a pose on its parent with a pose on its child; a position is enough if the axes are parallel
b.add_joint("motor", sarrus.Revolute("y", damping=0.01), "ground", "crank", actuated=True)
b.add_joint("pin1", sarrus.Revolute("y"), "crank", "coupler", at_parent=(CRANK, 0, 0))
b.add_joint("pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=(GROUND, 0, 0))
# the next joint closes the loop, because coupler and rocker are already connected to the ground
b.add_joint("pin2", sarrus.Revolute("y"), "coupler", "rocker", at_parent=(COUPLER, 0, 0), at_child=(ROCKER, 0, 0))

b.add_frame("tracer", "coupler", (0.5 * COUPLER, 0, 0.3))  # coupler point

# initial guess of assemble(); it selects the nearer of the two assembly modes of the four-bar
b.set_home({"motor": -0.5, "pin1": -0.5, "pivot": -2.0})

robot = b.build()
print(robot)

# ---- mobility --------------------------------------------------------------------------------------------------------

q = robot.assemble(fixed={"motor": -0.5})  # a configuration that closes the loop
print(robot.mobility(q))

# ---- inverse dynamics ------------------------------------------------------------------------------------------------
# one revolution of the crank at constant speed, in two seconds

t = np.linspace(0.0, 2.0, 201)
rate = np.pi
path = robot.follow({"motor": -0.5 + rate * t}, near=q)
v = robot.complete_velocity(path, {"motor": np.full(len(t), rate)})
a = robot.complete_acceleration(path, v, {"motor": np.zeros(len(t))})
torque = robot.actuator_efforts(path, v, a)[:, 0]
print(f"\nlargest motor torque at {rate:.2f} rad/s: {np.abs(torque).max():.2f} N m")

turn = sarrus.Trajectory.from_motion(robot, t, path, v, a)
print(turn.joint_wrenches())  # loads of the pins

# ---- simulation ------------------------------------------------------------------------------------------------------

motor = sarrus.control.PID("motor", proportional=50.0, derivative=10.0, target=sarrus.laws.polynomial(-0.5, rate))
run = sarrus.simulate(robot, q, np.zeros(robot.nv), 2.0, motor)
print(f"\n{run}; loop error {run.loop_error.max():.1e}")

# Next steps:
#   run.plot(["motor", "pivot"]).figure.savefig("angles.png")      needs matplotlib
#   run.animate("run.html", trace="tracer")
#   sarrus.view(robot, trajectory=run)                              needs viser; in the browser
#   robot.save("crank_rocker.json")                                      or .urdf, .xml (MJCF), .sdf
#   sarrus check crank_rocker.json         on the command line: reports suspicious properties
