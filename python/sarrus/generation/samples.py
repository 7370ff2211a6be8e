"""Sample states, in which the branches of recorded algorithms are decided."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..analysis.scaling import ScaledLoops
from ..errors import SarrusError
from ..mechanism import Mechanism

COUNT = 6  # number of samples; if a decision is equal in all of them, it is equal in nearly all states
SEED = 0  # a fixed seed, so that the same mechanism always gives the same file
SPREAD = 0.3  # spread of states about home [rad, or relative to the size of the bodies]
NEARER = 0.1  # spread about the user's configurations, which span the workspace already


def configurations(robot: Mechanism, time: Array, rng: np.random.Generator, about: Array | None = None) -> Array:
    """Return a configuration with closed loops for each time.

    The first is the home, or the first row of `about`; the others are near the home, or near the rows of `about`.

    Configurations are not drawn from the whole space, because decisions there, such as the choice of pivots, may be invalid in the workspace.
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
    """Return random velocities and accelerations that satisfy the constraints at configurations q (n, nq), and random forces."""
    v, tau = rng.normal(size=(2, len(q), robot.nv))
    a = v[::-1].copy()
    if robot.constraints:
        v = np.nan_to_num(robot.project_velocity(q, v, metric="euclidean", time=time, return_status=True)[0])
        a = np.nan_to_num(robot.complete_acceleration(q, v, {}, time=time, return_status=True)[0])
    return {"v": v, "a": a, "tau": tau}
