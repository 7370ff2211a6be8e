"""Fastest timing of a path by a dynamic programme over its parameter and the square of its rate; slow."""

import numpy as np


def fastest_duration(path, samples, *, velocity=np.inf, acceleration=np.inf, effort=np.inf, levels=300, choices=41):
    """Return the duration along `samples` of the path's parameter, for limits of all motors, which are joints of the tree.

    In each interval s'' is constant, and the limits hold at both of its ends. The programme compares `choices` values of s'' at each of `levels`
    rates, and interpolates the remaining duration linearly.
    """
    robot = path.mechanism
    q, v, a = path.at(samples)
    S = robot.actuation_matrix(q[0])
    bound = np.concatenate([np.full(robot.nu, acceleration), np.full(robot.nu, effort)])

    def values(u, x):
        """Return accelerations and efforts of the motors at s'' = u and s'^2 = x, divided by their limits."""
        change = a * x + v * u
        return np.concatenate([change @ S, robot.actuator_efforts(q, v * np.sqrt(x), change)], axis=1) / bound

    C = values(0.0, 0.0)
    A, B = values(1.0, 0.0) - C, values(0.0, 1.0) - C
    with np.errstate(divide="ignore"):
        fastest = ((velocity / np.abs(v @ S)) ** 2).min(axis=1)
    free = np.abs(v[[0, -1]]).max(axis=1) <= 1e-9 * np.abs(v).max()
    x = np.array([0.0, 1e6 * free[1]])
    left = np.zeros(2)  # duration from each x to the end
    for i in reversed(range(len(samples) - 1)):
        h = samples[i + 1] - samples[i]
        most = min(x[-1], fastest[i + 1])

        def bounds(y, i=i, h=h, most=most):
            ends = [_bounds(A[i], B[i], C[i], y), _bounds(A[i + 1] + 2.0 * h * B[i + 1], B[i + 1], C[i + 1], y)]
            ends.append((-y / (2.0 * h), (most - y) / (2.0 * h)))
            return np.max([low for low, _ in ends], axis=0), np.min([high for _, high in ends], axis=0)

        at = np.linspace(0.0, 1.0, levels) ** 2 * _largest(bounds, min(fastest[i], 1e6))
        low, high = bounds(at)
        u = low[:, None] + np.maximum(high - low, 0.0)[:, None] * np.linspace(0.0, 1.0, choices)
        end = np.clip(at[:, None] + 2.0 * h * u, 0.0, most)
        with np.errstate(divide="ignore"):
            step = 2.0 * h / (np.sqrt(at)[:, None] + np.sqrt(end))
        left = (step + np.interp(end, x, left)).min(axis=1)
        left = np.minimum(left, 1e9)  # infinite at standstill, which np.interp would turn into NaN
        x = at
    return left.min() if free[0] else left[0]


def _bounds(A, B, C, x):
    """Return the bounds of u at each x (n,) by |A u + B x + C| <= 1."""
    rest = B[:, None] * x + C[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(-1.0 - rest) / A[:, None], (1.0 - rest) / A[:, None]]), axis=0)
    still = np.abs(A) < 1e-12
    sound = np.abs(rest[still]) <= 1.0
    ends[:, still] = np.where(sound, [[[-np.inf]], [[np.inf]]], [[[np.inf]], [[-np.inf]]])
    return ends[0].max(axis=0), ends[1].min(axis=0)


def _largest(bounds, most):
    """Return the largest x, of at most `most`, at which some u is within the bounds, by bisection; 0 is such an x."""
    least = 0.0
    for _ in range(50):
        middle = (least + most) / 2.0
        low, high = bounds(np.array([middle]))
        least, most = (middle, most) if (low <= high)[0] else (least, middle)
    return least
