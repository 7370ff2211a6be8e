"""The cone problem by its definition: its conditions, looked at one by one, and a fixed point that needs thousands of rounds.

    u = G p + w,   contacts: |p_t| <= mu p_n,  u + mu |u_t| n in the dual cone,  perpendicular;   intervals: lo <= p <= hi and u against them

Moments of a contact are bounded by its p_n as p_t is: K is the intersection of their cones, and the shift the sum of all mu |u_t|.
Rows n, t1, t2 of every contact, those of moments, then the intervals. Nothing of the library's solver is in here: no scaling, no Newton's method.
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
    moments: list = dataclasses.field(default_factory=list)  # (contact, rows, friction), contact by contact
    floor: np.ndarray | None = None  # of each p_n

    def velocity(self, p):
        return self.G @ p + self.w

    @property
    def first_interval(self):
        return 3 * len(self.friction) + sum(rows for _, rows, _ in self.moments)

    def disks(self, i):
        """Return (mu, its rows) of all friction of a contact."""
        disks, at = [(self.friction[i], [3 * i + 1, 3 * i + 2])], 3 * len(self.friction)
        for contact, rows, mu in self.moments:
            if contact == i:
                disks.append((mu, list(range(at, at + rows))))
            at += rows
        return disks

    def shift(self, u):
        """Return u + sum of mu |u_t| n."""
        u = u.copy()
        for i in range(len(self.friction)):
            u[3 * i] += sum(mu * np.linalg.norm(u[rows]) for mu, rows in self.disks(i))
        return u


def violations(problem, p):
    """Return the violation of each condition, by name [N s, m/s, J]."""
    u, m = problem.velocity(p), problem.first_interval
    shifted = problem.shift(u)
    worst = {"primal": 0.0, "dual": 0.0, "complementarity": 0.0}

    def see(what, x):
        worst[what] = max(worst[what], x)

    for i in range(len(problem.friction)):
        n, disks = 3 * i, problem.disks(i)
        floor = 0.0 if problem.floor is None else problem.floor[i]
        see("primal", floor - p[n])
        for mu, rows in disks:
            see("primal", np.linalg.norm(p[rows]) - mu * p[n])
        # the dual cone of all |p_t| <= mu p_n: the sum of mu |z_t| <= z_n
        see("dual", sum(mu * np.linalg.norm(u[rows]) for mu, rows in disks) - shifted[n])
        # at its floor p_n works along u_n
        see("complementarity", abs(p[n] * shifted[n] + sum(p[rows] @ u[rows] for _, rows in disks) - floor * u[n]))
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
    """Return the nearest point of the cone, by bisection in p_n."""
    x, m = y.copy(), problem.first_interval
    for i in range(len(problem.friction)):
        n, disks = 3 * i, problem.disks(i)
        if len(disks) == 1:
            x[n : n + 3] = onto_cone(disks[0][0], y[n : n + 3])
            continue

        def rises(normal, n=n, disks=disks):
            return normal - y[n] - sum(mu * max(np.linalg.norm(y[rows]) - mu * normal, 0.0) for mu, rows in disks)

        low, high = 0.0, abs(y[n]) + sum(mu * np.linalg.norm(y[rows]) for mu, rows in disks)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if rises(middle) > 0 else (middle, high)
        x[n] = high if rises(0.0) < 0 else 0.0
        for mu, rows in disks:
            x[rows] *= min(1.0, mu * x[n] / max(np.linalg.norm(y[rows]), 1e-300))
    x[m:] = np.clip(y[m:], problem.low, problem.high)
    return x


def natural_map(problem, p):
    """Return p - proj(p - u - shift), which is zero only in a solution."""
    return p - projected(problem, p - problem.shift(problem.velocity(p)))


def by_fixed_point(problem, rounds=50000, tolerance=1e-13):
    """Solve by De Saxce and Feng's Uzawa iteration p <- proj(p - rho (u + mu |u_t| n)), with rho small enough to contract."""
    p, rho = np.zeros(len(problem.w)), 0.6 / max(np.linalg.eigvalsh(problem.G)[-1], 1e-300)
    for _ in range(rounds):
        after = projected(problem, p - rho * problem.shift(problem.velocity(p)))
        if abs(after - p).max() <= tolerance * abs(p).max():
            return after
        p = after
    return p
