"""A leg with a knee of crossed links jumps 0.2 m: optimal control by Crocoddyl's FDDP.

    pip install "sarrus[plot]" crocoddyl
    python examples/learning/jumping_leg.py --output jump.png

The foot stands for 0.3 s, fixed to the ground, and then flies for 0.2 s to the highest point of the jump. The knee is a closed loop, whose constraints hold at
every node. The initial guess is the standing pose at all nodes, with the efforts that hold it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

import crocoddyl
import numpy as np

import sarrus
import sarrus.crocoddyl

sys.path.append(str(Path(__file__).parents[1]))
from showing import Panel, figure, table

HEIGHT, STEP = 0.2, 0.02  # [m, s]
PUSH, FLIGHT = 15, 10  # number of steps; the flight lasts as long as a fall from the height
ANKLE = 20.0  # weight of the ankle's effort: a small effort keeps the centre of pressure below the foot


def standing(leg: sarrus.Mechanism) -> sarrus.Mechanism:
    """Return the leg with its foot fixed to the ground."""
    b = leg.to_builder()
    ground = sarrus.Transform.from_matrix(leg.pose(leg.assemble(), "foot"))
    b.add_joint("stance", sarrus.Fixed(), "ground", "foot", at_parent=ground, loop=True)
    return b.build()


def action(
    robot: sarrus.Mechanism, step: float, goal: np.ndarray, weights: np.ndarray, hold: np.ndarray
) -> sarrus.crocoddyl.ActionModel:
    """Return a node with costs of the distance from a state, and of the difference from the efforts `hold`."""
    state = sarrus.crocoddyl.State(robot)
    costs = crocoddyl.CostModelSum(state, robot.nu)
    distance = sarrus.crocoddyl.StateResidual(state, goal, robot.nu)
    by_weight = crocoddyl.ActivationModelWeightedQuad(weights)
    costs.addCost("state", crocoddyl.CostModelResidual(state, by_weight, distance), 1.0)
    effort = crocoddyl.ResidualModelControl(state, hold)
    by_motor = crocoddyl.ActivationModelWeightedQuad(np.array([1.0, 1.0, ANKLE]))
    costs.addCost("effort", crocoddyl.CostModelResidual(state, by_motor, effort), 1e-4)
    return sarrus.crocoddyl.ActionModel(robot, step, costs)


def main(output: Path | None = None, iterations: int = 100) -> dict[str, float]:
    """Solve, print the jump and the forces of the ground, draw the efforts."""
    leg = sarrus.mechanisms.biped_leg()
    on_ground = standing(leg)
    q, rest, joints = on_ground.assemble(), np.zeros(leg.nv), leg.nv - 6
    hold = on_ground.actuator_efforts(q, rest, rest)
    up = q.copy()
    up[leg.joint("float").q_slice.stop - 1] += HEIGHT
    stand, fly = np.concatenate([q, rest]), np.concatenate([up, rest])

    # weights of rotation and position of the pelvis, of the joints, and of the velocities of both
    on_the_way = 0.1 * np.repeat([1.0, 0.0, 0.1, 0.01], [3, 3, joints, leg.nv])
    at_the_end = np.repeat([1e5, 4e5, 10.0, 1e3, 1.0], [5, 1, joints, 6, joints])
    push, flight = (action(robot, STEP, goal, on_the_way, hold) for robot, goal in ((on_ground, stand), (leg, fly)))
    last = action(leg, 0.0, fly, at_the_end, hold)
    problem = crocoddyl.ShootingProblem(stand, [push] * PUSH + [flight] * FLIGHT, last)
    solver, nodes = crocoddyl.SolverFDDP(problem), PUSH + FLIGHT
    solved = solver.solve([stand] * (nodes + 1), [hold] * nodes, iterations, False)

    x, u = np.array(solver.xs), np.array(solver.us)
    q, v = x[:, : leg.nq], x[:, leg.nq :]
    rise = leg.pose(q, "pelvis")[:, 2, 3]
    during = q[:PUSH], v[:PUSH]
    tau = np.einsum("kij,kj->ki", on_ground.actuation_matrix(q[:PUSH]), u[:PUSH])
    a = on_ground.forward_dynamics(*during, tau)
    force = on_ground.joint_wrenches(*during, a)["stance"]
    result = {
        "solved": float(solved),
        "iterations": float(solver.iter),
        "rise": rise[-1] - rise[0],
        "loops": np.abs(leg.constraint_residual(q)).max(),
        "least force": force[:, 5].min(),
        "friction": np.abs(force[:, 3] / force[:, 5]).max(),
        "pressure": np.abs(force[:, 1] / force[:, 5]).max(),
    }
    rows = [
        ("iterations", (result["iterations"],)),
        ("height of the jump [m]", (result["rise"],)),
        ("largest violation of the loop", (result["loops"],)),
        ("least force of the ground [N]", (result["least force"],)),
        ("largest friction coefficient", (result["friction"],)),
        ("centre of pressure, from the ankle [m]", (result["pressure"],)),
    ]
    table("A leg jumps", ["sarrus"], rows)
    t = STEP * np.arange(nodes + 1)
    efforts = dict(zip(leg.actuated, u.T, strict=True))
    panels = [
        Panel("Height of the pelvis", "m", t, {"pelvis": rise}),
        Panel("Efforts", "N m", t[:-1], efforts),
    ]
    figure("A jump by FDDP", panels, output)
    return result


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="FILE", help="file of the figure (.png, .pdf, .svg); default: no figure")
    parser.add_argument("--iterations", type=int, default=100)
    main(**vars(parser.parse_args()))
