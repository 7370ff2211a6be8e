"""States in which a recording looks what its algorithms decide."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..errors import SarrusError
from ..mechanism import Mechanism

COUNT = 6  # where all of them agree, nearly all states do
SEED = 0  # the same file for the same mechanism
SPREAD = 0.3  # of states about home [rad, sizes of the bodies], where none is found elsewhere


def configurations(robot: Mechanism, time: Array, rng: np.random.Generator) -> Array:
    """A configuration for each time, on the loops."""
    if not robot.constraints:
        return robot.random(rng, size=len(time))
    if not np.any(time):
        try:
            return robot.random(rng, size=len(time), closed=True)
        except SarrusError:
            pass
    starts = [robot.assemble(time=t) for t in time]
    for k, (q, t) in enumerate(zip(starts, time, strict=True)):
        for spread in SPREAD * 0.5 ** np.arange(4):
            try:
                starts[k] = robot.assemble(near=robot.integrate(q, spread * rng.uniform(-1.0, 1.0, robot.nv)), time=t)
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
