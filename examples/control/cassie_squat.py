"""Cassie, whose legs have springs in series, stands and squats on rigid ground.

    python examples/control/cassie_squat.py mujoco_menagerie/agility_cassie/cassie.xml --figures .

The model is a file of MuJoCo's menagerie. The controller's model has rigid joints in the place of the four springs, whose deflections it cannot control. The simulated robot
has the springs, friction at heels and toes, and closed loops. The controller is sampled at 1 kHz, as on a real robot.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
from following import Figures, Panel, norm, table, written

import sarrus
from sarrus import control

DEPTH, PERIOD = 0.1, 2.0  # of the squat [m, s]
FRICTION, GROUND = 0.5, 0.7  # friction of the controller's model, and of the simulated ground
SIDES = ("left", "right")
SPRINGS = {f"{side}-{name}": angle for side in SIDES for name, angle in (("shin", -0.042), ("heel-spring", -0.031))}
ENDS = {"toe": (0.069746, -0.010224, 0.0), "heel": (-0.052821, 0.092622, 0.0)}  # of the foot's capsule
FEET = [f"{side}-{end}" for side in SIDES for end in ENDS]


def standing(model: Path) -> tuple[sarrus.Mechanism, np.ndarray]:
    """Return Cassie with frames at heels and toes, and its configuration on the ground with balanced springs."""
    b = sarrus.load(model).to_builder()
    for foot in FEET:
        side, end = foot.split("-")
        b.add_frame(foot, f"{side}-foot", ENDS[end])
    robot = b.build()
    half = np.linalg.norm(np.subtract(ENDS["heel"], ENDS["toe"])) / 2
    goals = {p: np.array([half if "heel" in p else -half, 0.135 if "left" in p else -0.135, 0.0]) for p in FEET}
    pelvis = sarrus.Transform(translation=(0.02, 0.0, 0.97))
    near = dict(dict(robot.description.configurations)["home"])
    q = robot.inverse_kinematics({"cassie-pelvis": pelvis, **goals}, near=near, fixed=SPRINGS)
    motors = {name: float(q[robot.joint(name).q_slice][0]) for name in robot.actuated}
    return robot, sarrus.equilibrium(robot, q, fixed=motors, contacts=FEET).q


def main(model: Path, figures: Figures = None, duration: float = PERIOD) -> dict[str, float]:
    """Simulate a squat, draw figures."""
    robot, q = standing(model)
    start = robot.center_of_mass(q)
    height = sarrus.laws.harmonic(DEPTH / 2, 2 * np.pi / PERIOD, np.pi / 2, offset=start[2] - DEPTH / 2)
    tasks = [
        control.CenterOfMassTask([float(start[0]), float(start[1]), height], stiffness=100.0),
        control.FrameTask("cassie-pelvis", robot.pose(q, "cassie-pelvis"), "rx ry rz", stiffness=100.0),
    ]
    feet = [control.PointContact(foot, friction=FRICTION) for foot in FEET]
    free = control.Limits(position={}, velocity=np.inf)  # the limits of effort only
    law = control.TaskControl(robot, tasks, free, feet, rigid=list(SPRINGS))
    ground = [control.RigidContact(foot, friction=GROUND) for foot in FEET]
    acts = [control.SampleAndHold(law, period=1e-3), *ground]
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), duration, acts, limits="ignore")
    place = np.array([robot.center_of_mass(x) for x in run.q])
    solutions = [law.solve(run.t[k], run.q[k], run.v[k]) for k in range(0, len(run.t), 20)]
    slip = max(norm(run.frame(foot)[:, :3, 3] - run.frame(foot)[0, :3, 3]).max() for foot in FEET)
    results = {
        "squat [m]": start[2] - place[:, 2].min(),
        "error of the height [m]": np.abs(place[:, 2] - height(run.t)).max(),
        "feet move at most by [m]": slip,
        "inclination of the pelvis at most [rad]": np.arccos(run.frame("cassie-pelvis")[:, 2, 2].min().clip(-1, 1)),
        "least force of a foot's end [N]": min(f[2] for solution in solutions for f in solution.forces.values()),
    }
    table("Cassie squats", ["sarrus"], [(name, [x]) for name, x in results.items()])
    bent = {name: run.q[:, robot.joint(name).q_slice][:, 0] for name in SPRINGS}
    panels = [
        Panel("Centre of mass", "m", run.t, {"height": place[:, 2], "target": height(run.t)}),
        Panel("Deflection of the springs", "rad", run.t, bent),
    ]
    written(figures, "cassie_squat", "Cassie squats on rigid ground", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="the file cassie.xml of MuJoCo's menagerie")
    parser.add_argument("--figures", metavar="FOLDER", help="folder for the figures; default: no figures")
    parser.add_argument("--duration", type=float, default=PERIOD, help="duration [s]")
    main(**vars(parser.parse_args()))
