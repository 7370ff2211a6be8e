"""States in which a recording looks what its algorithms decide."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..analysis.scaling import ScaledLoops
from ..errors import SarrusError
from ..mechanism import Mechanism

COUNT = 6  # where all of them agree, nearly all states do
SEED = 0  # the same file for the same mechanism
SPREAD = 0.3  # of states about home [rad, sizes of the bodies]
NEARER = 0.1  # the same about configurations of the caller, which say themselves how far the mechanism goes


def configurations(robot: Mechanism, time: Array, rng: np.random.Generator, about: Array | None = None) -> Array:
    """A configuration for each time, on the loops: the home, or the first of those `about` which they are to be, and others near these.

    Not anywhere: what is decided there, such as which pivots are large, need not hold where the mechanism works.
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
    """Velocities, accelerations and forces of these configurations that the loops allow."""
    v, tau = rng.normal(size=(2, len(q), robot.nv))
    a = v[::-1].copy()
    if robot.constraints:
        v = np.nan_to_num(robot.project_velocity(q, v, metric="euclidean", time=time, return_status=True)[0])
        a = np.nan_to_num(robot.complete_acceleration(q, v, {}, time=time, return_status=True)[0])
    return {"v": v, "a": a, "tau": tau}
