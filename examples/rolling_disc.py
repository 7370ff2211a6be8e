"""An upright disc rolls without slip while it is steered. Li and Wu 2011, 4.6.

One constant moment steers the disc, another drives it. Rolling is nonholonomic: the position depends on the path, not only on the angles.
"""

from __future__ import annotations

import numpy as np
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import FeedforwardEffort

STEERING, DRIVING = 0.02, 0.5  # [N m]
RADIUS, HEADING, STEER_RATE, ROLL_RATE = 0.3, 0.2, 0.3, 1.0  # [m], and the initial state [rad, rad/s, rad/s]
# time [s]: x, y [m], friction along x, y [N]; computed by quadrature in multiple precision
PATH = {
    1.0: (0.5046103004443517, 0.24749796118389833, 0.06573907802242483, 1.585098595448949),
    2.0: (0.9373379129076074, 1.2225630650900423, -3.0471415590708935, 0.9828725874011531),
    5.0: (0.20742189381089385, -0.01593213233181168, -4.567326039224716, 12.962123164553425),
    10.0: (-1.5505778298706672, 1.6329426992922287, 45.119912181168495, -18.229179520431867),
}


def main(output: Path | None = None, duration: float = 10.0) -> dict[str, float]:
    """Simulate the disc, compare the result with the quadrature, draw figures."""
    disc = sarrus.mechanisms.rolling_disc(upright=True, radius=RADIUS)
    q = [0.0, 0.0, HEADING, 0.0]
    v = [RADIUS * ROLL_RATE * np.cos(HEADING), RADIUS * ROLL_RATE * np.sin(HEADING), STEER_RATE, ROLL_RATE]
    motors = [FeedforwardEffort("steer", STEERING), FeedforwardEffort("roll", DRIVING)]
    run = sarrus.simulate(disc, q, v, duration, motors, method="dopri5", rtol=1e-12, atol=1e-12, dt=0.01)

    # force of the ground on the disc along x and y
    friction = sarrus.formulations.projected_dynamics(disc, run.q, run.v, run.tau).constraint_force[:, :2]
    slip = (disc.constraint_jacobian(run.q) @ run.v[..., None]).max()
    results = {"slip": abs(slip)}
    rows = []
    for t, reference in PATH.items():
        computed: list[float | None] = [None] * 4
        if t <= duration:
            k = int(np.searchsorted(run.t, t - 1e-9))
            computed = [*run.q[k, :2], *friction[k]]
            results[f"off at {t:g} s"] = float(np.abs(np.subtract(computed, reference)).max())
        names = ("x [m]", "y [m]", "friction x [N]", "friction y [N]")
        rows += [(f"{name} at {t:g} s", pair) for name, *pair in zip(names, reference, computed, strict=True)]
    table("Rolling disc", ["quadrature", "sarrus"], rows)
    figure(
        "A disc rolls without slip",
        [
            Panel(
                "Path of the disc's centre", "y [m]", run.q[:, 0], {"path": run.q[:, 1]}, x_label="x [m]", equal=True
            ),
            Panel("Steering and rolling angle", "rad", run.t, {"steer": run.q[:, 2], "roll": run.q[:, 3]}),
            Panel("Force of the ground", "N", run.t, {"x": friction[:, 0], "y": friction[:, 1]}),
        ],
        output,
    )
    return results


if __name__ == "__main__":
    command_line(main)
