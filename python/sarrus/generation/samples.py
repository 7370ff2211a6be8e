"""Sample states that decide the branches of a recording's algorithms."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..analysis.scaling import ScaledLoops
from ..errors import SarrusError
from ..mechanism import Mechanism

COUNT = 6  # if all of them agree, nearly all states do
SEED = 0  # fixed, so that a mechanism gives the same file each time
SPREAD = 0.3  # of states about home [rad, sizes of the bodies]
NEARER = 0.1  # spread about configurations of the caller, which span the workspace already


def configurations(robot: Mechanism, time: Array, rng: np.random.Generator, about: Array | None = None) -> Array:
    """Return a configuration on the loops for each time: the home or the first row of `about`, and configurations near these.

    Decisions at random configurations, such as the choice of pivots, need not hold in the workspace.
    """
    if about is None and not robot.constraints:
        return robot.random(rng, size=len(time))
    starts = [robot.assemble(time=t) for t in time] if about is None else list(np.resize(about, (len(time), robot.nq)))
    scale = (SPREAD if about is None else NEARER) * ScaledLoops(robot, starts[0], time[0]).column_scale
    for k, (q, t) in enumerate(zip(starts[1:], time[1:], strict=True), 1):
        for nearer in 0.5 ** np.arange(4):
            near = robot.integrate(q, nearer * scale * rng.uniform(-1.0, 1.0, robot.nv))
            try:
                starts[k] = robot.assemble(near=near, time=t) if robot.constraints else near
                break
            except SarrusError:
                continue
    return np.array(starts)


def motion(robot: Mechanism, q: Array, time: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Return velocities and accelerations that the loops allow at these configurations (n, nq), and random forces."""
    v, tau = rng.normal(size=(2, len(q), robot.nv))
    a = v[::-1].copy()
    if robot.constraints:
        v = np.nan_to_num(robot.project_velocity(q, v, metric="euclidean", time=time, return_status=True)[0])
        a = np.nan_to_num(robot.complete_acceleration(q, v, {}, time=time, return_status=True)[0])
    return {"v": v, "a": a, "tau": tau}
