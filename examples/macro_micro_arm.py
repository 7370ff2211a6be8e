"""A small arm damps vibrations of the long arm that carries it. SpaceDyn 1999, figure 7(b).

The long arm has flexible joints x_b; it is bent and released. If the joints of the small arm are fixed, the long arm swings for minutes. In the
second simulation the small arm damps the swing. H_bm is the inertia that couples the arms (SpaceDyn 3.20). Joint accelerations g H_bm' x_b' add
the matrix g H_bm H_bm' to the damping of the long arm; it is positive semidefinite in every posture. Accelerations in the null space of H_bm do
not act on the long arm: they move the joints back to their initial angles, with slow damping. Nenchev, Yoshida, Vichitkulsawat and Uchiyama 1999.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import showing
from showing import Panel, Path, command_line, figure, table

import sarrus

BENT = (0.005, 0.004, -0.0025)  # initial angles of the long arm's joints [rad]
GAIN = 0.02  # g [1/(kg m2 s)]
RETURN = 0.25  # rate at which the small arm's joints come to rest [1/s]; slow compared with the swing of 3.6 rad/s


def motors(
    robot: sarrus.Mechanism, home: np.ndarray, gain: float
) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
    """Return a controller of the small arm, which damps the swing; with zero gain it only keeps its own joints fixed."""

    def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        M, h = robot.mass_matrix(q), robot.bias_forces(q, v)
        H_b, H_bm, H_m = M[:3, :3], M[:3, 3:], M[3:, 3:]
        unfelt = np.eye(6) - np.linalg.pinv(H_bm) @ H_bm
        a = gain * H_bm.T @ v[:3] - 2 * RETURN * v[3:] - RETURN**2 * unfelt @ (q - home)[3:]
        base = -np.linalg.solve(H_b, h[:3] + H_bm @ a)  # acceleration of the long arm, which has no motors
        return np.concatenate([np.zeros(3), H_bm.T @ base + H_m @ a + h[3:]])

    return tau


def swing(gain: float, duration: float) -> sarrus.Trajectory:
    """Simulate from rest; initially the long arm is bent."""
    robot = sarrus.mechanisms.macro_micro_arm()
    home = robot.assemble()
    q = home.copy()
    q[:3] = BENT
    return sarrus.simulate(robot, q, np.zeros(9), duration, motors(robot, home, gain), method="rk4", dt=0.01)


def slowest_rate(gain: float) -> float:
    """Return the slowest decay rate [1/s] of H_b x_b'' + (D + g H_bm H_bm') x_b' + K x_b = 0."""
    robot = sarrus.mechanisms.macro_micro_arm()
    M, springs = robot.mass_matrix(robot.assemble()), [robot.joint(name).type for name in ("yaw", "shoulder", "elbow")]
    H_b, H_bm = M[:3, :3], M[:3, 3:]
    D = np.diag([joint.damping[0] for joint in springs]) + gain * H_bm @ H_bm.T
    K = np.diag([joint.stiffness[0] for joint in springs])
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.linalg.solve(H_b, K), -np.linalg.solve(H_b, D)]])
    return float(-np.linalg.eigvals(A).real.max())


def main(output: Path | None = None, duration: float = 20.0, films: Path | None = None) -> dict[str, float]:
    """Simulate with and without damping, compare the results, draw figures."""
    held, damped = swing(0.0, duration), swing(GAIN, duration)
    rest = held.mechanism.pose(held.mechanism.assemble(), "wrist")[:3, 3]
    off = [np.linalg.norm(run.frame("wrist")[:, :3, 3] - rest, axis=1) for run in (held, damped)]
    late = held.t > 0.8 * duration
    results = {
        "left, held": float(off[0][late].max() / off[0][0]),
        "left, damped": float(off[1][late].max() / off[1][0]),
        "greatest joint angle": float(np.abs(damped.q[:, 3:] - damped.q[0, 3:]).max()),
        "rate, held": slowest_rate(0.0),
        "rate, damped": slowest_rate(GAIN),
    }
    table(
        "Macro-micro arm: the swing of the wrist",
        ["held", "damped, sarrus"],
        [
            (
                "amplitude in the last fifth, relative to the initial one",
                (results["left, held"], results["left, damped"]),
            ),
            ("slowest rate of decay [1/s]", (results["rate, held"], results["rate, damped"])),
            ("largest joint displacement of the small arm [rad]", (0.0, results["greatest joint angle"])),
        ],
    )
    figure(
        "A small arm damps a long one",
        [
            Panel("Distance of the wrist from its rest position", "m", held.t, {"held": off[0], "damped": off[1]}),
            Panel("Joints of the small arm", "rad", damped.t, {f"{k + 1}": damped.q[:, 3 + k] for k in range(6)}),
        ],
        output,
    )
    showing.films({"macro-micro arm, held": held, "macro-micro arm, damped": damped}, films)
    return results


if __name__ == "__main__":
    command_line(main)
