"""An open chain, and a four-bar mechanism with one motor and with two motors. Sonoda, Ishii and Isobe, part III.

The efforts of a motion follow from the Jacobians of the links' centres of gravity (COG). If these efforts drive the mechanism without feedback,
it should repeat the motion. With two motors the motion determines only one combination of the two efforts; another combination only strains the
links. The paper's figures do not define the motions. In this example the angle of link 3 oscillates by 30 degrees about 120 degrees once a second.
The two angles of the open chain oscillate by 45 and 60 degrees.
"""

from __future__ import annotations

import cmath
from math import pi

import numpy as np
from showing import Panel, Path, command_line, figure, played_back, table

import sarrus
from sarrus.laws import Law, harmonic, polynomial

LENGTH, MASS, INERTIA = 0.20, 0.628, 2.11e-3  # of each link [m, kg, kg m²]
BASE = 0.3  # distance of the motors [m]
SWING: Law = polynomial(2 * pi / 3) + harmonic(pi / 6, rate=2 * pi)  # theta3 as a function of time [rad]
MODEL = {  # time [s]: effort of theta3 as the only motor; efforts of least norm of theta1 and theta3 as two motors [N m]
    0.25: (-1.4357106994612345, -0.07010991428988589, -1.432278825727268),
    0.75: (1.8898592117489548, 0.9188266585712745, 0.7243632177804553),
}


OPEN = {  # open chain of two links [m, kg, kg m²]; efforts by time [s]: theta1, theta2 [N m]
    "length": 0.1, "mass": 0.0154, "inertia": 1.29e-05,
    "efforts": {0.1: (0.024113108377606503, 0.005929256397097064), 0.4: (-0.03185432041831111, -0.009424539053717254)},
}  # fmt: skip


def open_chain(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return efforts (n, 2) [N m] of the open chain by COG Jacobians (III.A), and the largest difference from recursive inverse dynamics."""
    b = sarrus.Builder("open chain of the COG Jacobian paper", gravity=(0, -9.81, 0))
    for k, (below, reach) in enumerate((("ground", 0.0), ("link1", OPEN["length"])), start=1):
        b.add_body(
            f"link{k}",
            sarrus.Inertia(OPEN["mass"], (OPEN["length"] / 2, 0, 0), np.diag([0, OPEN["inertia"], OPEN["inertia"]])),
        )
        b.add_joint(f"theta{k}", sarrus.Revolute("z"), below, f"link{k}", at_parent=(reach, 0, 0), actuated=True)
    robot = b.build()
    angles = (
        polynomial(pi / 2) + harmonic(-pi / 4, rate=2 * pi, phase=pi / 2),
        polynomial(-pi / 6) + harmonic(pi / 3, rate=2 * pi),
    )
    q, v, a = (np.stack(x, axis=-1) for x in zip(*(angle.derivatives(t) for angle in angles), strict=True))
    efforts = sarrus.formulations.cog_jacobians(robot, q, v).efforts(a)
    return efforts, np.abs(efforts - robot.inverse_dynamics(q, v, a)).max()


def four_bar() -> sarrus.Mechanism:
    """Return the four-bar: theta1 and theta3 drive the two links on the ground; theta4 and B connect them with the coupler."""
    b = sarrus.Builder("four-bar of the COG Jacobian paper", gravity=(0, -9.81, 0))
    for name in ("link1", "coupler", "link3"):
        b.add_body(name, sarrus.Inertia(MASS, (LENGTH / 2, 0, 0), np.diag([0, INERTIA, INERTIA])))
    tip = (LENGTH, 0, 0)
    b.add_joint("theta1", sarrus.Revolute("z"), "ground", "link1", actuated=True)
    b.add_joint("theta4", sarrus.Revolute("z"), "link1", "coupler", at_parent=tip)
    b.add_joint("theta3", sarrus.Revolute("z"), "ground", "link3", at_parent=(BASE, 0, 0), actuated=True)
    b.add_joint("B", sarrus.Revolute("z"), "link3", "coupler", at_parent=tip, at_child=tip, loop=True)
    return b.build()


def closed(theta3: float) -> list[float]:
    """Return q for an angle of link 3 [rad], on the branch with link 1 to the left of the line from its pivot to B."""
    B = BASE + cmath.rect(LENGTH, theta3)
    theta1 = cmath.phase(B) + np.arccos(abs(B) / (2 * LENGTH))
    return [theta1, cmath.phase(B - cmath.rect(LENGTH, theta1)) - theta1, theta3]


def swing(robot: sarrus.Mechanism, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v and a (n, 3) of the oscillation at times t (n,) [s]."""
    theta, rate, acceleration = (x[:, None] for x in SWING.derivatives(t))
    q = np.array([closed(x) for x in theta[:, 0]])
    v = sarrus.formulations.reduced_dynamics(robot, q, np.zeros_like(q), independent=["theta3"]).full_velocity(rate)
    return (
        q,
        v,
        sarrus.formulations.reduced_dynamics(robot, q, v, independent=["theta3"]).full_acceleration(acceleration),
    )


def main(output: Path | None = None, duration: float = 1.0) -> dict[str, float]:
    """Compute the efforts of the oscillation, simulate the mechanism with them, compare the motions, draw figures."""
    robot = four_bar()
    t = np.linspace(0.0, duration, 401)
    q, v, a = swing(robot, t)
    both = ["theta1", "theta3"]
    one = sarrus.formulations.cog_jacobians(robot, q, v, active=["theta3"]).efforts(a[:, 2:])
    two = sarrus.formulations.cog_jacobians(robot, q, v).efforts(a[:, [0, 2]])
    tight = robot.actuator_efforts(q, v, a, preload=[1.0, 1.0])  # both efforts as near as possible to 1 N m

    runs = {
        name: sarrus.simulate(robot, q[0], v[0], duration, played_back(joints, t, efforts))
        for name, joints, efforts in (("one motor", ["theta3"], one), ("two", both, two), ("two, tight", both, tight))
    }
    results = {f"{name}, off": np.abs(run.q[:, 2] - SWING(run.t)).max() for name, run in runs.items()}

    def at(instant: float, efforts: np.ndarray, motor: int) -> float | None:
        k = int(np.argmin(np.abs(t - instant)))
        return float(efforts[k, motor]) if abs(t[k] - instant) < 1e-9 else None

    rows = []
    for instant, (single, least1, least3) in MODEL.items():
        rows += [
            (f"one motor at {instant:g} s: theta3 [N m]", (single, at(instant, one, 0))),
            (f"two motors at {instant:g} s: theta1 [N m]", (least1, at(instant, two, 0))),
            (f"two motors at {instant:g} s: theta3 [N m]", (least3, at(instant, two, 1))),
        ]
    rows += [(f"{name}: largest error of the motion [rad]", (0.0, results[f"{name}, off"])) for name in runs]
    of_chain, off = open_chain(t)
    rows += [
        (f"open chain at {instant:g} s: theta{k + 1} [N m]", (efforts[k], at(instant, of_chain, k)))
        for instant, efforts in OPEN["efforts"].items() for k in (0, 1)
    ]  # fmt: skip
    rows += [("open chain: difference from the recursive algorithm [N m]", (0.0, off))]
    results["open chain, off"] = off
    table("Four-bar mechanism with motors", ["dense model", "sarrus"], rows)
    results |= {f"at {instant:g} s": x for instant in MODEL if (x := at(instant, one, 0)) is not None}

    pin = {name: np.linalg.norm(run.reactions.wrenches["B"][:, 3:], axis=1) for name, run in runs.items()}
    figure(
        "Four-bar mechanism, one motor and two",
        [
            Panel("Open chain", "N m", t, {"theta1": of_chain[:, 0], "theta2": of_chain[:, 1]}),
            Panel(
                "Motion",
                "angle [rad]",
                runs["two"].t,
                {"theta1": runs["two"].q[:, 0], "theta3": runs["two"].q[:, 2]},
            ),
            Panel("One motor", "N m", t, {"theta3": one[:, 0]}),
            Panel("Two motors, efforts of least norm", "N m", t, {"theta1": two[:, 0], "theta3": two[:, 1]}),
            Panel("Two motors with preload", "N m", t, {"theta1": tight[:, 0], "theta3": tight[:, 1]}),
            Panel("Force in pin B", "N", runs["two"].t, pin),
        ],
        output,
    )
    return results


if __name__ == "__main__":
    command_line(main)
