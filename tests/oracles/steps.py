"""Runge-Kutta steps as references for simulations."""

import numpy as np


def rk4(rate, y, dt, steps):
    """RK4 steps in Python, the same as the core's, for coordinates that are integrals of velocities."""
    kept, t = [y], 0.0
    for k in range(steps):
        t = k * dt
        k1 = rate(t, y)
        k2 = rate(t + dt / 2, y + dt / 2 * k1)
        k3 = rate(t + dt / 2, y + dt / 2 * k2)
        k4 = rate(t + dt, y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        kept.append(y)
    return np.array(kept)
