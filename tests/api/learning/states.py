"""Closed states, and nearby ones, for every function of the interfaces to other programs."""

import functools

import numpy as np

import sarrus
from sarrus import _differentiable

WORDS = {
    "pose": ("platform",), "velocity": ("platform",), "acceleration": ("platform",), "assemble": ([f"leg{k}" for k in range(1, 7)],),
    "step": (1e-2,), "rollouts": (1e-2,),
}  # fmt: skip
NAMES = tuple(_differentiable.ROWS)


@functools.lru_cache
def stewart():
    """Return a Stewart platform with a quaternion, six loops and six motors."""
    return sarrus.mechanisms.stewart()


def inputs(name, seed=0):
    robot, rng = stewart(), np.random.default_rng(seed)
    q = robot.project_configuration(robot.integrate(robot.assemble(), 0.05 * rng.standard_normal(robot.nv)))
    v = robot.project_velocity(q, rng.standard_normal(robot.nv))
    return {
        "q": q, "v": v, "tau": rng.standard_normal(robot.nv), "a": rng.standard_normal(robot.nv),
        "x": np.array([q[robot.joint(leg).q_slice][0] for leg in WORDS["assemble"][0]]),
        "u": rng.standard_normal((3, 6) if name == "rollouts" else 6),
    }  # fmt: skip


def asked(name, seed=0, **options):
    """Return the function, and arrays as its arguments."""
    given = inputs(name, seed)
    x = [given[key] for key in _differentiable.ROWS[name].inputs]
    if name == "assemble":
        options = {"near": given["q"]} | options
    return _differentiable.function(name, stewart(), (*x, *WORDS.get(name, ())), options)


def on_loops(kinds, x):
    """Return the nearest state on the loops, if the arrays contain a state."""
    if "q" not in kinds:
        return list(x)
    robot, q = stewart(), stewart().normalize(x[0])
    q = robot.project_configuration(q)
    rest = [robot.project_velocity(q, one) if kind == "v" else one for kind, one in zip(kinds[1:], x[1:])]
    return [q, *rest]
