"""The cone problem by its definition: its conditions, looked at one by one, and a fixed point that needs thousands of rounds.

    u = G p + w,   contacts: |p_t| <= mu p_n,  u + mu |u_t| n in the dual cone,  perpendicular;   intervals: lo <= p <= hi and u against them

Rows n, t1, t2 of every contact, then the intervals. Nothing of the library's solver is in here: no scaling, no Newton's method.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Problem:
    G: np.ndarray
    w: np.ndarray
    friction: np.ndarray
    low: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    high: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def velocity(self, p):
        return self.G @ p + self.w


def violations(problem, p):
    """How much each condition is violated, by name [N s, m/s, J]."""
    u, m = problem.velocity(p), 3 * len(problem.friction)
    worst = {"primal": 0.0, "dual": 0.0, "complementarity": 0.0}

    def see(what, x):
        worst[what] = max(worst[what], x)

    for mu, (pn, *pt), (un, *ut) in zip(problem.friction, p[:m].reshape(-1, 3), u[:m].reshape(-1, 3), strict=True):
        see("primal", np.hypot(*pt) - mu * pn)
        see("primal", -pn)
        shifted = un + mu * np.hypot(*ut)
        # the dual cone of |p_t| <= mu p_n: mu |z_t| <= z_n
        see("dual", mu * np.hypot(*ut) - shifted)
        see("complementarity", abs(pn * shifted + np.dot(pt, ut)))
    for x, v, lo, hi in zip(p[m:], u[m:], problem.low, problem.high, strict=True):
        see("primal", max(lo - x, x - hi))
        if x > lo:
            see("complementarity", max(v, 0.0) * min(x - lo, 1.0))
        if x < hi:
            see("complementarity", max(-v, 0.0) * min(hi - x, 1.0))
    return worst


def onto_cone(mu, y):
    n, t = y[0], np.hypot(y[1], y[2])
    if t <= mu * n:
        return y
    along = (n + mu * t) / (1 + mu**2)
    if along <= 0:
        return np.zeros(3)
    return np.array([along, *(mu * along / t * y[1:])])


def projected(problem, y):
    m = 3 * len(problem.friction)
    cones = [onto_cone(mu, x) for mu, x in zip(problem.friction, y[:m].reshape(-1, 3), strict=True)]
    return np.concatenate([*cones, np.clip(y[m:], problem.low, problem.high)])


def natural_map(problem, p):
    """p - proj(p - u - mu |u_t| n): zero in a solution, and nowhere else."""
    u = problem.velocity(p)
    for i, mu in enumerate(problem.friction):
        u[3 * i] += mu * np.hypot(*u[3 * i + 1 : 3 * i + 3])
    return p - projected(problem, p - u)


def by_fixed_point(problem, rounds=50000, tolerance=1e-13):
    """De Saxce and Feng's Uzawa: p becomes proj(p - rho (u + mu |u_t| n)), with a rho below what makes it contract."""
    p, rho = np.zeros(len(problem.w)), 0.6 / max(np.linalg.eigvalsh(problem.G)[-1], 1e-300)
    for _ in range(rounds):
        u = problem.velocity(p)
        for i, mu in enumerate(problem.friction):
            u[3 * i] += mu * np.hypot(*u[3 * i + 1 : 3 * i + 3])
        after = projected(problem, p - rho * u)
        if abs(after - p).max() <= tolerance * abs(p).max():
            return after
        p = after
    return p
