"""A controller in Python swings up a pole on a cart; a PID in C++ keeps the cart near the centre.

The Python controller is energy-based (Astrom and Furuta 2000): the force on the cart increases the pole's energy to that of the upright position. Near
the upright position a linear quadratic regulator replaces it. The regulator is computed from the library's linearisation of the cart with the PID, which
acts like a spring and a damper.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, command_line, table, written

import sarrus
from sarrus import control

CART, POLE, LENGTH, GRAVITY = 1.0, 0.2, 0.6, 9.81  # [kg, kg, m, m/s2]
SPRING, DAMPER = 5.0, 2.0  # of the PID on the cart [N/m, N s/m]


def cart_pole() -> sarrus.Mechanism:
    """Return a cart on a rail along x, with a rod; the angle is zero upright."""
    b = sarrus.Builder("cart and pole", gravity=(0, 0, -GRAVITY))
    b.add_body("cart", sarrus.Inertia.box(CART, (0.2, 0.1, 0.1)))
    b.add_body("pole", sarrus.Inertia.rod(POLE, (0, 0, 0), (0, 0, LENGTH)))
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "cart", actuated=True)
    b.add_joint("hinge", sarrus.Revolute("y"), "cart", "pole")
    b.set_home({"hinge": np.pi})
    return b.build()


def regulator(A: np.ndarray, B: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the gains (n,) of the linear quadratic regulator for one input of weight 1, from the stable subspace of the Hamiltonian matrix."""
    values, vectors = np.linalg.eig(np.block([[A, -B @ B.T], [-Q, -A.T]]))
    stable = vectors[:, values.real < 0]
    return (B.T @ np.linalg.solve(stable[: len(A)].T, stable[len(A) :].T).T.real)[0]


def main(figures: Figures = None, duration: float = 8.0) -> dict[str, float]:
    """Simulate the swing-up, draw figures."""
    robot = cart_pole()
    linear = robot.linearize(np.zeros(2), np.zeros(2), np.zeros(2))
    push = linear.B[:, :1]
    gain = regulator(linear.A - push @ [[SPRING, 0.0, DAMPER, 0.0]], push, np.diag([10.0, 100.0, 1.0, 1.0]))
    upright = robot.potential_energy(np.zeros(2))
    inertia = POLE * LENGTH**2 / 3

    def swing(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        angle = np.remainder(q[1] + np.pi, 2 * np.pi) - np.pi
        if abs(angle) < 0.35 and abs(v[1]) < 5.0:
            return np.array([-gain @ [q[0], angle, *v], 0.0])
        energy = 0.5 * inertia * v[1] ** 2 + POLE * GRAVITY * LENGTH / 2 * np.cos(angle) - upright
        return np.array([np.clip(40.0 * energy * v[1] * np.cos(angle), -5.0, 5.0), 0.0])

    middle = control.PID("rail", proportional=SPRING, derivative=DAMPER)
    run = sarrus.simulate(robot, [0.0, np.pi - 0.05], [0.0, 0.0], duration, [swing, middle], dt=2e-3)
    angle = np.remainder(run.q[:, 1] + np.pi, 2 * np.pi) - np.pi
    up = np.abs(angle) > 0.01
    results = {
        "upright after [s]": float(run.t[np.flatnonzero(up)[-1]]),
        "angle at the end [rad]": float(abs(angle[-1])),
        "cart at the end [m]": float(abs(run.q[-1, 0])),
        "cart, farthest [m]": float(np.abs(run.q[:, 0]).max()),
    }
    table("Swing-up by energy", ["sarrus"], [(name, [x]) for name, x in results.items()])
    energy = 0.5 * inertia * run.v[:, 1] ** 2 + POLE * GRAVITY * LENGTH / 2 * np.cos(angle)
    panels = [
        Panel("Angle from upright", "rad", run.t, {"pole": run.q[:, 1]}),
        Panel(
            "Pole's energy in the cart's frame, and upright",
            "J",
            run.t,
            {"pole": energy, "upright": np.full_like(energy, upright)},
        ),
        Panel("Cart", "m", run.t, {"cart": run.q[:, 0]}),
    ]
    written(figures, "swing_up", "A pole swings up", panels)
    return results


if __name__ == "__main__":
    command_line(main)
