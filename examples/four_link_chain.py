"""Four links pinned at both ends fall for ten seconds. van der Merwe 1995, 5.5.5, figures 5.1 and 5.4 to 5.11.

Two simulations are compared. The method of the thesis takes explicit Euler steps of the open chain; the force of the pin and a weak
corrective force act on its tip. The second simulation takes adaptive steps of the closed chain, whose tip stays on the pin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from showing import Panel, Path, command_line, figure, table

import sarrus

PIN = np.array([2.0, 0.0, 3.0])  # position of the pin [m]
K_P, K_V = 60.0, 40.0  # gains of the corrective force [N/m, N s/m]
AT_10_S = (
    1.5634173304061747,
    -2.9961163362541807,
    1.3861199808509932,
    -1.6153857098891158,
)  # joint angles after 10 s [rad], by DOP853 on a dense model
IN_PLANE = slice(3, None, 2)  # of [angular; linear]: the components that the pin blocks, x and z


def pin_force(chain: sarrus.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the constraint force (5.61) and the corrective force (5.75) on the tip of the open chain, x and z (..., 2) [N]."""
    inverse = sarrus.formulations.operational_inertia_inverse(chain, q, "tip", expressed_in="world_aligned")[
        ..., IN_PLANE, IN_PLANE
    ]
    a = chain.forward_dynamics(q, v, np.zeros_like(v))
    let_go = chain.acceleration(q, v, a, "tip", expressed_in="world_aligned")[..., IN_PLANE]
    constraint = -np.linalg.solve(inverse, let_go[..., None])[..., 0]
    away = (chain.pose(q, "tip")[..., :3, 3] - PIN)[..., [0, 2]]
    rate = chain.velocity(q, v, "tip", expressed_in="world_aligned")[..., IN_PLANE]
    return constraint, -K_P * away - K_V * rate


def as_in_the_thesis(pinned: sarrus.Mechanism, duration: float) -> tuple[sarrus.Trajectory, np.ndarray, np.ndarray]:
    """Return the simulation of the open chain with steps of 1 ms, the force of the pin and the corrective force (n, 2) [N]."""
    joints = tuple(joint for joint in pinned.description.joints if joint.name != "pin")
    chain = sarrus.Mechanism(replace(pinned.description, name="four-link chain, released", joints=joints))

    def hold(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        J = chain.jacobian(q, "tip", expressed_in="world_aligned")[IN_PLANE]
        return J.T @ np.add(*pin_force(chain, q, v))

    run = sarrus.simulate(chain, np.zeros(4), np.zeros(4), duration, hold, method="euler", dt=1e-3)
    return run, *pin_force(chain, run.q, run.v)


def two_terms(pinned: sarrus.Mechanism, run: sarrus.Trajectory) -> dict[str, np.ndarray]:
    """Return the magnitudes (n,) [m/s²] of J q'' and J' q', the terms of the released tip's acceleration (5.52)."""
    joints = tuple(joint for joint in pinned.description.joints if joint.name != "pin")
    chain = sarrus.Mechanism(replace(pinned.description, joints=joints))
    axes = {"expressed_in": "world_aligned"}
    a = chain.forward_dynamics(run.q, run.v, np.zeros_like(run.v))
    J, J_rate = chain.jacobian(run.q, "tip", **axes), chain.jacobian_derivative(run.q, run.v, "tip", **axes)
    return {
        name: np.linalg.norm((A @ x[..., None])[:, 3:, 0], axis=1)
        for name, A, x in (("J q''", J, a), ("J' q'", J_rate, run.v))
    }


def main(output: Path | None = None, duration: float = 10.0) -> dict[str, float]:
    """Simulate with both methods, compare the results, draw figures."""
    chain = sarrus.mechanisms.four_link_chain()
    rest = np.zeros(4)
    exact = sarrus.simulate(chain, rest, rest, duration, method="dopri5", rtol=1e-10, atol=1e-10, dt=1e-3)
    turn = exact.frame("tip")[:, :3, :3]
    on_ground = -np.einsum("nij,nj->ni", turn, exact.reactions.wrenches["pin"][:, 3:])[:, [0, 2]]

    euler, constraint, correction = as_in_the_thesis(chain, duration)
    away = (euler.frame("tip")[:, :3, 3] - PIN)[:, [0, 2]]

    terms = two_terms(chain, exact)
    results = {
        "peak": np.abs(on_ground[:, 1]).max(),
        "peak by Euler": np.abs(constraint[:, 1]).max(),
        "tip away": np.abs(away).max(),
        "corrective force": np.abs(correction).max(),
        "energy at the end": exact.energy[-1],
        **{f"largest {name}": size.max() for name, size in terms.items()},
        "evaluations": exact.statistics["evaluations"],
    }
    table(
        "Four links, pinned: largest values of the simulation",
        ["thesis", "Euler steps", "exact"],
        [
            ("vertical force of the pin [N]", (230, results["peak by Euler"], results["peak"])),
            (
                "time of this force [s]",
                (None, euler.t[np.abs(constraint[:, 1]).argmax()], exact.t[np.abs(on_ground[:, 1]).argmax()]),
            ),
            ("distance of the tip from the pin [m]", (None, results["tip away"], exact.loop_error.max())),
            ("corrective force [N]", (None, results["corrective force"], 0.0)),
            *((f"{name}, largest [m/s²]", (None, None, size.max())) for name, size in terms.items()),
            ("evaluations of the dynamics", (None, euler.statistics["evaluations"], results["evaluations"])),
            ("wall time [s]", (None, euler.statistics["seconds"], exact.statistics["seconds"])),
        ],
    )
    table(
        f"Joints at t = {duration:g} s [rad]",
        ["dense model", "Euler steps", "exact"],
        [(f"joint{k + 1}", (AT_10_S[k] if duration == 10 else None, euler.q[-1, k], exact.q[-1, k])) for k in range(4)],
    )

    joints = [f"joint{k}" for k in range(1, 5)]
    part = exact.t <= 2.5  # time range of the detail figures of the thesis

    def of_joints(x: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(joints, x.T, strict=True))

    def of_plane(x: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip("xz", x.T, strict=True))

    figure(
        "Four links, their tip pinned",
        [
            Panel("5.1  acceleration of the released tip", "m/s²", exact.t, terms),
            Panel("5.4  joint accelerations", "rad/s²", exact.t, of_joints(exact.a)),
            Panel("5.5  joint velocities", "rad/s", exact.t, of_joints(exact.v)),
            Panel("5.6  joint positions", "rad", exact.t, of_joints(exact.q)),
            Panel("5.7  joint accelerations, detail", "rad/s²", exact.t[part], of_joints(exact.a[part])),
            Panel("5.8  corrective force on the tip, explicit Euler", "N", euler.t, of_plane(correction)),
            Panel("5.9  distance of the tip from the pin, explicit Euler", "m", euler.t, of_plane(away)),
            Panel("5.10  force of the tip on the ground", "N", exact.t, of_plane(on_ground)),
            Panel("5.11  force of the tip on the ground, detail", "N", exact.t[part], of_plane(on_ground[part])),
        ],
        output,
    )
    return results


if __name__ == "__main__":
    command_line(main)
