"""Runs in other units of length and mass: a scaled mechanism with scaled forces has the same motion under every method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Builder, Inertia, Prismatic, Revolute, control

METHODS = ("euler", "semi_implicit", "rk4", "rkmk4", "dopri5", "rosenbrock", "implicit_midpoint", "independent")
SIZES = ((1e-5, 1e-9), (1e-2, 1.0), (1e3, 1e6))


def cart(size, mass):
    """Return a cart on a rail with a pendulum, which a rocker and a rod on the ground connect to a loop."""
    b = Builder("cart", gravity=(0, 0, -9.81 * size))
    b.add_body("cart", Inertia.sphere(mass, 0.1 * size))
    b.add_joint("rail", Prismatic("x", damping=0.3 * mass), "ground", "cart", actuated=True)
    for name, length in ("rod", 0.6), ("rocker", 0.5):
        b.add_body(name, Inertia.rod(mass, (0, 0, 0), (length * size, 0, 0), 0.02 * size))
    b.add_joint("pin", Revolute("y", stiffness=0.5 * mass * size**2, rest=0.8), "cart", "rod")
    b.add_joint("foot", Revolute("y"), "ground", "rocker", at_parent=(0.9 * size, 0, 0), actuated=True)
    b.add_joint(
        "knee", Revolute("y"), "rod", "rocker", at_parent=(0.6 * size, 0, 0), at_child=(0.5 * size, 0, 0), loop=True
    )
    b.add_frame("tip", "rocker", (0.5 * size, 0, 0))
    return b.build()


def acting(kind, size, mass):
    torque, force = mass * size**2, mass * size
    return {
        "nothing": None,
        "pid": control.PID("rail", 30.0 * mass, 20.0 * mass, 5.0 * mass, target=0.2 * size, limits=(-8.0 * force, 8.0 * force)),
        "stiction": control.LuGreFriction("foot", 0.2 * torque, 0.3 * torque, 0.05, stiffness=100.0 * torque),
        "stop": control.EndStop("rail", limits=(-0.2 * size, 0.05 * size)),
        "contact": control.CompliantContact("tip", offset=-0.45 * size, stiffness=300.0 * mass, exponent=1.0, dissipation=0.3 / size, slip_velocity=0.05 * size),
        "mounts": [
            control.Bushing("tip", "cart", np.array([torque] * 3 + [mass] * 3), 0.1 * np.array([torque] * 3 + [mass] * 3)),
            control.PinClearance("tip", "ground", 0.5 * size, 0.1 * size, 30.0 * mass, 1.0, 0.3 / size, 0.2, 0.05 * size, "y"),
            control.GasSpring("tip", "ground", 2.0 * size, 1.9 * size, force, friction=0.2 * force, slip_velocity=0.05 * size),
        ],
        "drive": [control.PID("rail", 30.0 * mass, target=0.2 * size), control.ActuatorModel("rail", time_constant=0.02)],
    }[kind]  # fmt: skip


@pytest.mark.filterwarnings("ignore:the Bushing of 'tip' on 'cart' turns:sarrus.ModelWarning")
@pytest.mark.parametrize("kind", ["nothing", "pid", "stiction", "stop", "contact", "mounts", "drive"])
@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_another_size(method, kind):
    runs = []
    for size, mass in ((1.0, 1.0), *SIZES):
        robot = cart(size, mass)
        unit = np.where(
            [robot.joint(name).kind == "Prismatic" for name in robot.joints if not robot.joint(name).closes_loop],
            size,
            1.0,
        )
        q = robot.assemble(near={"rail": 0.0, "pin": 0.9, "foot": -1.9})
        run = sarrus.simulate(
            robot, q, robot.complete_velocity(q, {"foot": 0.4}), 0.6, acting(kind, size, mass), method=method, dt=2e-3
        )
        runs.append(np.concatenate([run.q / unit, run.v / unit], axis=1))
    # where a force has a kink, rounding decides which steps are taken again
    same = {("dopri5", "stop"): 1e-3, ("rosenbrock", "stop"): 1e-6}.get((method, kind), 1e-8)
    for run in runs[1:]:
        assert np.abs(run - runs[0]).max() < same


@pytest.mark.parametrize(("size", "mass"), [(1.0, 1.0), *SIZES])
def test_limits_are_of_their_own_size(size, mass):
    """A cart of any size warns at a hundredth beyond its limits, and not at a hundredth within."""

    def run(share):
        b = Builder("cart", gravity=(0, 0, 0))
        b.add_body("cart", Inertia.sphere(mass, 0.1 * size))
        limits = {
            "limits": (-size, share * 0.5 * size),
            "velocity_limit": share * size,
            "effort_limit": share * mass * size,
        }
        b.add_joint("rail", Prismatic("x", **limits), "ground", "cart", actuated=True)
        push = control.FeedforwardEffort("rail", mass * size)
        return sarrus.simulate(b.build(), [0.0], [0.0], 1.0, push, dt=1e-2)

    assert run(1.01).statistics["limits"] == []
    with pytest.warns(sarrus.LimitWarning, match="2 more limits are exceeded"):
        beyond = run(0.99)
    assert {limit["quantity"] for limit in beyond.statistics["limits"]} == {"position", "velocity", "effort"}


@pytest.mark.filterwarnings("ignore:derivatives do not include:sarrus.ModelWarning")  # default damping of stiction
@pytest.mark.parametrize("kind", ["pid", "stiction", "contact", "mounts", "drive"])
@pytest.mark.parametrize("method", ["euler", "semi_implicit", "rk4", "rkmk4", "implicit_midpoint"])
@pytest.mark.parametrize("size", SIZES)
def test_gradients_of_a_run_of_another_size(method, kind, size):
    """Gradients with respect to numbers of forces, whose changes have any size relative to those of the state: equal in forward and reverse mode."""
    robot = cart(*size)
    q = robot.assemble(near={"rail": 0.0, "pin": 0.9, "foot": -1.9})
    how = {"method": method, "dt": 2e-3, "limits": "ignore"}
    start = q, robot.complete_velocity(q, {"foot": 0.4}), 0.05, acting(kind, *size)
    runs = sarrus.simulate_many(robot, *start, **how)
    w = np.zeros((1, len(runs.t), robot.nv))
    w[:, -1] = [1.0 / size[0] if name == "rail" else 1.0 for name in robot.joints if name != "knee"]
    back = sarrus.derivatives.rollouts_vjp(runs, q=w).parameters
    S = sarrus.simulate(robot, *start, sensitivities=list(back), **how).sensitivities
    for name, found in back.items():
        wanted = w[0, -1] @ S.parameters[name][-1, : robot.nv]
        assert_allclose(found[0], wanted, rtol=0, atol=1e-8 * np.abs(wanted).max(), err_msg=name)
