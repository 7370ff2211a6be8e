"""A control loop at 1 kHz in real time: a controller, and a Delta robot simulated in another process, connected by a socket.

Every millisecond of the wall clock the controller reads the last state, computes efforts and sends them. The other process simulates one
millisecond with these efforts, and sends the new state. The motion does not depend on delays of either process. The histogram shows the delays:
the time from the tick of the clock until the efforts are sent.
"""

from __future__ import annotations

import gc
import multiprocessing
import socket
import time
from argparse import ArgumentParser

import numpy as np

import sarrus
from sarrus import control
from sarrus.laws import spline

PERIOD = 1e-3  # [s]
RADIUS, TURNS = 0.05, 2.0  # radius of the platform's circle [m], revolutions per second
ROBOT = sarrus.mechanisms.delta()
HOME = ROBOT.pose(ROBOT.assemble(), "platform")[:3, 3]


def circle(t: np.ndarray) -> np.ndarray:
    """Return positions (n, 3) [m] of the platform, which enters the circle within a second."""
    s = np.clip(t, 0.0, 1.0)
    size = RADIUS * s**3 * (10 - 15 * s + 6 * s**2)
    angle = 2 * np.pi * TURNS * t
    return HOME + np.stack([size * np.cos(angle), size * np.sin(angle), 0.0 * t], axis=-1)


def plant(port: int) -> None:
    """Run the other process: receive efforts, simulate a millisecond, send the state; an empty message ends it."""
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.connect(("127.0.0.1", port))
    q, v = ROBOT.assemble(), np.zeros(ROBOT.nv)
    wire.send(np.r_[q, v].tobytes())
    while message := wire.recv(4096):
        v = v + PERIOD * ROBOT.forward_dynamics(q, v, np.frombuffer(message))
        q = ROBOT.project_configuration(ROBOT.integrate(q, PERIOD * v))
        v = ROBOT.project_velocity(q, v)
        wire.send(np.r_[q, v].tobytes())


def histogram(title: str, seconds: np.ndarray) -> None:
    """Print a histogram of durations [s]; each bin is twice as wide as the one before."""
    micro = 1e6 * seconds
    print(
        f"\n{title}: median {np.median(micro):.0f} us, 99 % {np.percentile(micro, 99):.0f} us, longest {micro.max():.0f} us"
    )
    edges = np.r_[0.0, 2.0 ** np.arange(3, 15), np.inf]
    counts, _ = np.histogram(micro, edges)
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if count:
            print(f"{low:7.0f} ... {high:5.0f} us {count:7d}  {'#' * int(np.ceil(50 * count / counts.max()))}")


def main(seconds: float = 5.0) -> dict[str, float]:
    """Run the loop; print its delays and the position error."""
    t = np.arange(0.0, seconds + 0.01, 0.005)
    path = [spline(t, x) for x in circle(t).T]
    law = control.TaskControl(ROBOT, control.FrameTask("platform", path, components="tx ty tz", stiffness=400.0))
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("127.0.0.1", 0))
    wire.settimeout(10.0)  # so that the loop ends if the other process has crashed
    other = multiprocessing.get_context("spawn").Process(target=plant, args=(wire.getsockname()[1],), daemon=True)
    other.start()
    steps = round(seconds / PERIOD)
    late, took, waited, off = np.zeros((4, steps))
    message, address = wire.recvfrom(4096)
    wire.connect(address)
    gc.collect()
    gc.disable()  # a collection would delay a tick by milliseconds
    start = time.perf_counter() + PERIOD
    for k in range(steps):
        tick = start + k * PERIOD
        # sleep() may return 50 us late, so wait for the last 200 us in a loop
        if (left := tick - time.perf_counter()) > 2e-4:
            time.sleep(left - 2e-4)
        while time.perf_counter() < tick:
            pass
        if k:
            before = time.perf_counter()
            message = wire.recv(4096)
            waited[k] = time.perf_counter() - before
        state = np.frombuffer(message)
        q, v = state[: ROBOT.nq], state[ROBOT.nq :]
        before = time.perf_counter()
        tau = law(k * PERIOD, q, v)
        took[k] = time.perf_counter() - before
        wire.send(np.asarray(tau).tobytes())
        late[k] = time.perf_counter() - tick
        off[k] = np.abs(ROBOT.pose(q, "platform")[:3, 3] - circle(np.array(k * PERIOD))).max()
    gc.enable()
    wire.recv(4096)
    wire.send(b"")
    other.join(10.0)
    wire.close()
    histogram("efforts sent after the tick", late)
    histogram("computation of the efforts, part of this delay", took)
    missed = int((late > PERIOD).sum())
    print(
        f"\n{steps} ticks of {1e3 * PERIOD:g} ms, {missed} missed; platform off its circle by at most {off.max():.2g} m"
    )
    return {"ticks": steps, "missed": missed, "off": off.max(), "median": np.median(late), "longest": late.max()}


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    main(parser.parse_args().seconds)
