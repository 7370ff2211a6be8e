"""A satellite's solar paddles swing while its arm moves, and hardly swing if the motion is reactionless. SpaceDyn 1999, figure 7(a).

Two motions of the arm, from rest to rest, are compared. In the first, the joints move along a straight line in joint space. In the second,
joint velocities are projected onto the reaction null space: these motions change neither attitude nor height of the satellite, and such a change
would bend the paddles. The second motion is planned with rigid paddles, and scaled to the same joint travel. Both motions are simulated with
flexible paddles, modelled as chains of panels with springs. There are no external forces, so momentum stays zero.
"""

from __future__ import annotations

import numpy as np
import showing
from showing import Panel, Path, command_line, figure, table

import sarrus

TRAVEL = np.array([0.6, 0.5, -0.9, 0.8, -0.7, 0.5])  # displacement of joint1 to joint6 [rad]
STILL = "rx ry rz tz"  # components of the satellite's velocity that stay zero
SECONDS = 5.0  # duration of the motion


def rigid(robot: sarrus.Mechanism) -> sarrus.Mechanism:
    """Return the mechanism with locked paddles."""
    b = robot.to_builder()
    for name in robot.joints:
        if name.endswith("hinge"):
            b.lock(name)
    return b.build()


def reactionless(robot: sarrus.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,) [s] and joint angles (n, 6) [rad] of the reactionless motion."""
    stiff, t = rigid(robot), np.linspace(0.0, SECONDS, 101)

    def velocity(t: float, q: np.ndarray) -> np.ndarray:
        s = min(t / SECONDS, 1.0)
        along = sarrus.floating.reaction_null_space(stiff, q, components=STILL).projector @ TRAVEL
        return np.r_[
            np.zeros(6), along * np.linalg.norm(TRAVEL) / np.linalg.norm(along) * 30 * s**2 * (1 - s) ** 2 / SECONDS
        ]

    return t, sarrus.floating.motion(stiff, stiff.assemble(), velocity, t, step=0.05).q[:, 7:13]


def driven(laws: list[sarrus.laws.Law], duration: float) -> sarrus.Trajectory:
    """Simulate the satellite with flexible paddles; time functions prescribe the joint angles of its arm."""
    b = sarrus.mechanisms.free_flyer().to_builder()
    for k, law in enumerate(laws, 1):
        b.add_prescribed_motion(f"law{k}", f"joint{k}", law)
    robot = b.build()
    return sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), duration, method="rk4", dt=5e-3)


def main(output: Path | None = None, duration: float = 12.0, films: Path | None = None) -> dict[str, float]:
    """Plan and simulate both motions, compare them, draw figures."""
    robot = sarrus.mechanisms.free_flyer()
    home = robot.assemble()[7:13]
    straight = [sarrus.control.rest_to_rest(x, x + travel, SECONDS) for x, travel in zip(home, TRAVEL, strict=True)]
    t, angles = reactionless(robot)
    bent = [sarrus.laws.spline(np.r_[t, 2 * SECONDS], np.r_[x, x[-1]]) for x in angles.T]
    runs = {"straight": driven(straight, duration), "reactionless": driven(bent, duration)}

    def tip(run: sarrus.Trajectory) -> np.ndarray:
        """Return the deflection (n,) [m] of the left paddle's end from its plane."""
        last = np.linalg.inv(run.frame("satellite")) @ run.frame("left3")
        return (last @ [0.0, 2.0, 0.0, 1.0])[:, 2]

    def turn(run: sarrus.Trajectory) -> np.ndarray:
        """Return the rotation (n,) [rad] of the satellite."""
        return np.linalg.norm(sarrus.spatial.log(run.frame("satellite")[:, :3, :3]), axis=1)

    bends, turns = ({name: measure(run) for name, run in runs.items()} for measure in (tip, turn))
    after = runs["straight"].t >= min(SECONDS, 0.5 * duration)
    results = {f"swing, {name}": float(np.ptp(bend[after])) for name, bend in bends.items()}
    results |= {f"turn, {name}": float(x.max()) for name, x in turns.items()}
    results |= {f"momentum, {name}": float(np.abs(run.momentum).max()) for name, run in runs.items()}
    names = ("swing, {}", "turn, {}", "momentum, {}")
    labels = (
        "swing of a paddle after the motion [m]",
        "largest rotation of the satellite [rad]",
        "largest momentum (exactly: 0)",
    )
    rows = [(label, [results[name.format(kind)] for kind in runs]) for label, name in zip(labels, names, strict=True)]
    table("Free flyer", ["straight", "reactionless, sarrus"], rows)
    figure(
        "Solar paddles under the motion of an arm",
        [
            Panel("Deflection of the left paddle's end", "m", runs["straight"].t, bends),
            Panel("Rotation of the satellite", "rad", runs["straight"].t, turns),
            Panel("Joint angles of the reactionless motion", "rad", t, {f"{k + 1}": x for k, x in enumerate(angles.T)}),
        ],
        output,
    )
    showing.films({f"free flyer, {name}": run for name, run in runs.items()}, films)
    return results


if __name__ == "__main__":
    command_line(main)
