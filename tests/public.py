"""Table of all public functions of a state: their arguments and the transformation of their results, for the laws of all of them.

A row has a word for each of the last axes of a result:

    q v acc tau u rows mult     coordinates, their rates, generalised forces, efforts, rows of the constraints and their multipliers
    /v /acc ...                 per unit of this quantity
    twist twist' wrench         [angular; linear] in the axes of a frame, its rate, [moment; force]
    Twist Twist' Wrench         the same in the world's axes, Momentum too
    Point Vector                in the world
    Pose                        two axes, 4 by 4

and the unit of its entries: energy, mass. "tree" marks a result in the coordinates of the spanning tree, with all loops open: it depends on the
tree, and the first line of its docstring states that.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

import sarrus
from tests.variants import per_joint

mechanisms = sarrus.mechanisms


@dataclass(frozen=True)
class Case:
    """A mechanism in a state that its loops allow, and other arguments of its functions."""

    robot: Any
    q: Any
    v: Any
    a: Any
    tau: Any
    frame: str
    fixed: tuple

    @property
    def loops(self):
        return self.robot.nc > 0

    @property
    def floats(self):
        return any(self.robot.joint(name).kind == "Free" for name in self.robot.joints) and not any(
            "ground" in spec.bodies for spec in self.robot.description.constraints
        )

    @functools.cached_property
    def simple(self):
        return all(self.robot.joint(name).type.nv <= 1 for name in self.robot.joints)

    def given(self, x):
        """Return the part of v or a of each joint that determines the motion."""
        return {name: x[..., self.robot.joint(name).v_slice] for name in self.fixed}

    @property
    def held(self):
        return {name: self.q[..., self.robot.joint(name).q_slice] for name in self.fixed}


def floating_four_bar():
    """Return a four-bar with a floating ground link."""
    b = sarrus.Builder("floating four-bar")
    b.add_body("base", sarrus.Inertia.box(4.0, (1.0, 0.2, 0.3)))
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.02))
    b.add_joint("float", sarrus.Free(), "ground", "base")
    b.add_joint("m", sarrus.Revolute("y"), "base", "a", at_parent=(-0.5, 0, 0), actuated=True)
    b.add_joint("p1", sarrus.Revolute("y"), "a", "b", at_parent=(0.4, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "base", "c", at_parent=(0.5, 0, 0))
    b.add_joint("p2", sarrus.Revolute("y"), "b", "c", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=True)
    return b.build()


MAKERS = {
    "pendulum": mechanisms.double_pendulum,
    "four-bar": mechanisms.four_bar,
    "slider-crank": mechanisms.slider_crank,
    "delta": mechanisms.delta,
    "floating": floating_four_bar,
}


@functools.lru_cache
def case(which):
    robot, rng = MAKERS[which](), np.random.default_rng(3)
    home = robot.assemble() if robot.nc else robot._at(robot.description.home)
    step = 0.1 * rng.uniform(-1, 1, robot.nv)
    if robot.nc:
        step = robot.project_velocity(home, step, metric="euclidean")
    q = robot.integrate(home, step)
    q = robot.project_configuration(q, metric="euclidean") if robot.nc else q
    v, tau = rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    v = robot.project_velocity(q, v, metric="euclidean") if robot.nc else v
    a = robot.forward_dynamics(q, v, tau)
    fixed = tuple(name for name in robot.joints if robot.joint(name).kind == "Free" or name in robot.actuated)
    return Case(robot, q, v, a, tau, robot.bodies[-1], fixed or robot.joints)


ANY = ("pendulum", "four-bar", "slider-crank", "delta", "floating")
LOOPS = ANY[1:]
FLOATS = ("floating",)
DRIVEN = ANY[:-1]
OF_STATES = "test_state_derivatives.py"


@dataclass(frozen=True)
class Row:
    """Arguments of a function, `args(case)` and by keyword `more(case)`; transformation of its result; mechanisms that have it."""

    args: Any
    answer: Any = None  # axes of an array, or field to axes of a structure; None: covered by other tests
    unit: str = "1"
    tree: bool = False
    of: tuple = ANY
    more: Any = lambda c: {}
    why: str = ""  # without an answer: the law that applies instead, and its test


def q(c):
    return (c.q,)


def qv(c):
    return c.q, c.v


def qva(c):
    return c.q, c.v, c.a


def qf(c):
    return c.q, c.frame


def qvf(c):
    return c.q, c.v, c.frame


def qvaf(c):
    return c.q, c.v, c.a, c.frame


ROWS = {
    # functions that do not depend on a state
    "configuration": Row(None, why="a name's"),
    "constraint": Row(None, why="a name's"),
    "joint": Row(None, why="a name's"),
    "neutral": Row(lambda c: (), why="of each joint by itself"),
    "random": Row(lambda c: (1, 3), why="drawn in the coordinates of the tree: test_assembly_laws.py"),
    "save": Row(None, why="files: tests/api/io"),
    "plot": Row(None, why="a picture: tests/api/figures"),
    "contacts": Row(q, why="of shapes: test_contact_geometry.py"),
    "contact_dynamics": Row(lambda c: (c.q, c.v, c.tau, []), why="cones: test_contact_dynamics.py"),
    "contact_impact": Row(lambda c: (c.q, c.v, []), why="cones: test_contact_dynamics.py"),
    "derivatives.step": Row(lambda c: (c.q, c.v, 1e-3), why="test_through_time.py"),
    "derivatives.step_jvp": Row(lambda c: (c.q, c.v, 1e-3, c.v, c.a), why="test_through_time.py"),
    "derivatives.step_vjp": Row(lambda c: (c.q, c.v, 1e-3, c.v, c.a), why="test_through_time.py"),
    "derivatives.rollouts_vjp": Row(None, why="of runs: test_through_time.py"),
    "replace": Row(None, why="copies: test_copies.py"),
    "variants": Row(None, why="many copies: test_variants.py"),
    "to_builder": Row(None, why="the description"),
    # configurations: test_assembly_laws.py
    "assemble": Row(q, "q", of=LOOPS, more=lambda c: {"fixed": c.held}),
    "assembly_modes": Row(
        lambda c: (),
        why="test_assembly_laws.py",
        of=("four-bar", "slider-crank"),
        more=lambda c: {"fixed": c.held, "attempts": 8},
    ),
    "inverse_kinematics": Row(lambda c: ({},), "q", of=LOOPS, more=lambda c: {"near": c.q, "fixed": c.held}),
    "follow": Row(
        lambda c: ({c.fixed[-1]: np.stack([c.held[c.fixed[-1]]] * 2)}, c.q), "q", of=("four-bar", "slider-crank")
    ),
    "integrate": Row(qv, why="the step's time is not scaled: displacements instead"),
    "difference": Row(lambda c: (c.q, c.q), "v"),
    "normalize": Row(q, "q"),
    "project_configuration": Row(q, "q", of=LOOPS),
    "project_velocity": Row(qv, "v", of=LOOPS),
    "complete_velocity": Row(lambda c: (c.q, c.given(c.v)), "v"),
    "complete_acceleration": Row(lambda c: (c.q, c.v, c.given(c.a)), "acc"),
    "joint_states": Row(qva, why="test_choice_laws.py"),
    "joint_bases": Row(lambda c: (c.q, c.fixed[0]), why="test_laws.py"),
    # kinematics
    "pose": Row(qf, "Pose"),
    "velocity": Row(qvf, "twist"),
    "acceleration": Row(qvaf, "twist'"),
    "jacobian": Row(qf, "twist /v", tree=True),
    "jacobian_derivative": Row(qvf, "twist' /v", tree=True),
    "kinematics": Row(qva, why="the functions above in one: tests/api/dynamics"),
    "joint_screws": Row(q, why="tests/api/analysis", of=("pendulum", "four-bar"), tree=True),
    "center_of_mass": Row(q, "Point"),
    "center_of_mass_jacobian": Row(q, "Velocity /v", tree=True),
    "momentum": Row(qv, "Momentum"),
    "momentum_about": Row(qv, "Momentum0"),
    "centroidal_momentum": Row(qv, "Momentum0"),
    "centroidal_momentum_matrix": Row(q, "Momentum0 /v", tree=True),
    "centroidal_momentum_bias": Row(qv, "Wrench0", tree=True),
    # dynamics
    "forward_dynamics": Row(lambda c: (c.q, c.v, c.tau), "acc"),
    "inverse_dynamics": Row(qva, "tau", tree=True),
    "mass_matrix": Row(q, "tau /acc", tree=True),
    "mass_matrix_inverse": Row(q, "acc /tau", tree=True),
    "mass_matrix_derivative": Row(q, "tau /acc /step", tree=True),
    "bias_forces": Row(qv, "tau", tree=True),
    "gravity_forces": Row(q, "tau", tree=True),
    "coriolis_matrix": Row(qv, "tau /v", tree=True),
    "christoffel_symbols": Row(q, "tau /v /v", tree=True),
    "regressor": Row(qva, why="columns of parameters: test_laws.py", tree=True),
    "kinetic_energy": Row(qv, "", "energy"),
    "potential_energy": Row(q, why="its zero is where the world's origin is: test_laws.py"),
    "poe_factors": Row(qv, why="tests/api/analysis", of=("pendulum", "four-bar"), tree=True),
    "omega": Row(qf, "acc /wrench", tree=True),
    "derivatives.inverse_dynamics": Row(
        qva, {"q": "tau /step", "v": "tau /v", "a": "tau /acc"}, tree=True, of=("pendulum", "four-bar", "floating")
    ),
    "derivatives.forward_dynamics": Row(
        lambda c: (c.q, c.v, c.tau),
        {"q": "acc /step", "v": "acc /v", "tau": "acc /tau", "displacement": "v /v", "velocity": "v /step"},
        tree=True,
    ),
    "derivatives.actuator_efforts": Row(qva, why="test_derivatives.py", of=("four-bar", "slider-crank")),
    "derivatives.actuator_efforts_vjp": Row(
        lambda c: (c.q, c.v, c.a, np.ones(c.robot.nu)), why="test_derivatives.py", of=("four-bar", "slider-crank")
    ),
    "derivatives.assembled_positions": Row(
        lambda c: (c.q, list(c.robot.actuated)), why="test_assembled_positions.py", of=("four-bar", "slider-crank")
    ),
    **{
        f"derivatives.{of}_dynamics_{kind}": Row(
            lambda c, k=count, of=of: (c.q, c.v, c.a if of == "inverse" else c.tau, *(c.tau,) * k),
            why="products of the matrices above: test_derivatives.py",
            of=("pendulum", "four-bar"),
        )
        for of in ("inverse", "forward")
        for kind, count in (("jvp", 3), ("vjp", 1))
    },
    "derivatives.dimensions": Row(None, why="names: test_dimensions.py"),
    "derivatives.pose": Row(qf, why=OF_STATES),
    "derivatives.velocity": Row(qvf, {"q": "twist /step", "v": "twist /v"}, tree=True),
    "derivatives.acceleration": Row(qvaf, {"q": "twist' /step", "v": "twist' /v", "a": "twist' /acc"}, tree=True),
    "derivatives.center_of_mass": Row(q, "Velocity /v", tree=True),
    "derivatives.momentum": Row(qv, why=OF_STATES),
    "derivatives.centroidal_momentum": Row(qv, {"q": "Momentum0 /step", "v": "Momentum0 /v"}, tree=True),
    "derivatives.gravity_forces": Row(q, "tau /step", tree=True),
    "derivatives.kinetic_energy": Row(qv, why=OF_STATES),
    "derivatives.potential_energy": Row(q, "tau", tree=True),
    "derivatives.constraint_residual": Row(q, "rows /step", tree=True, of=LOOPS),
    "derivatives.constraint_rates": Row(qv, {"q": "rows /s /step", "v": "rows /step"}, tree=True, of=LOOPS),
    "derivatives.integrate": Row(qv, why=OF_STATES),
    "derivatives.difference": Row(lambda c: (c.q, c.robot.integrate(c.q, 0.1 * c.v)), why=OF_STATES),
    "derivatives.coordinates_by_tangent": Row(q, why=OF_STATES),
    "derivatives.tangent_by_coordinates": Row(q, why=OF_STATES),
    # loops
    "constraint_jacobian": Row(q, "rows /step", tree=True, of=LOOPS),
    "constraint_jacobian_derivative": Row(qv, "rows /step /s", tree=True, of=LOOPS),
    "constraint_velocity": Row(q, "rows /s", of=LOOPS),
    "constraint_bias": Row(qv, "rows /s /s", tree=True, of=LOOPS),
    "constraint_residual": Row(q, "rows", of=LOOPS),
    "impact": Row(qv, why="the velocity is allowed here: test_loop_laws.py", of=LOOPS),
    "reactions": Row(qva, why="joint by joint: test_reaction_laws.py", of=DRIVEN),
    "constraint_forces": Row(qva, why="reactions in bases of joints: test_laws.py", of=DRIVEN),
    "joint_wrenches": Row(
        qva, why="joint by joint: test_joint_wrenches.py", of=("pendulum", "four-bar", "slider-crank", "delta")
    ),
    # motors
    "actuation_matrix": Row(q, "tau /u", tree=True),
    "actuator_efforts": Row(qva, "u", of=("four-bar", "slider-crank")),
    "loop_jacobian": Row(
        qf, why="per velocity of the motors: test_led_motion.py", of=("four-bar", "slider-crank", "delta")
    ),
    "internal_efforts": Row(q, why="a basis: test_choice_laws.py"),
    "mobility": Row(q, {"degrees_of_freedom": "", "redundant": "", "singular_values": None}, of=LOOPS),
    "mobility_map": Row(q, {"degrees_of_freedom": "", "singularity": "", "locked_freedoms": ""}, of=LOOPS),
    # other forms of the equations
    "linearize": Row(lambda c: (c.q, c.v, c.tau), why="a state of its own: test_linearization_laws.py"),
    "free_motions": Row(q, {"freedom": ""}, of=LOOPS),
    "is_involutive": Row(q, "", of=LOOPS),
    "sliding_contact": Row(
        lambda c: (c.q, c.v, c.tau, c.robot.loop_joints[0], np.zeros((1, 5))),
        why="tests/published/test_constraints_slides.py",
        of=("four-bar",),
    ),
    "projections": Row(q, why="tests/api/analysis: in the tree's coordinates", of=LOOPS, tree=True),
    "projected_dynamics": Row(lambda c: (c.q, c.v, c.tau), {"acceleration": "acc"}, of=LOOPS),
    "virtual_work": Row(lambda c: (c.q, c.v, c.a, c.tau), why="zero here", of=LOOPS),
    "cog_jacobians": Row(qv, {"mass": None}, of=("four-bar",)),
    "reduced_dynamics": Row(
        qv, {"mass_matrix": "u /uacc"}, of=("four-bar", "slider-crank"), more=lambda c: {"independent": "actuated"}
    ),
    "reference_member": Row(lambda c: (c.q, c.v, c.tau), why="tests/api/analysis", of=("four-bar",)),
    "operational_inertia": Row(
        qf, why="the inverse of the inverse: test_laws.py", of=("four-bar",), more=lambda c: {"components": "ry"}
    ),
    "operational_inertia_inverse": Row(qf, "twist' /wrench"),
    # floating bases
    "base_reaction": Row(qva, "wrench", of=FLOATS),
    "equations_of_motion": Row(qv, {"base_inertia": None}, of=FLOATS),
    "motion": Row(None, why="a run: test_free_floating_laws.py"),
    "path": Row(None, why="a run: test_free_floating_laws.py"),
    "generalized_jacobian": Row(qf, why="test_free_floating_laws.py", of=FLOATS),
    "generalized_jacobian_derivative": Row(qvf, why="test_free_floating_laws.py", of=FLOATS),
    "momentum_velocity": Row(qv, "v", of=FLOATS),
    "reaction_null_space": Row(q, {"freedom": ""}, of=FLOATS),
    "resolved_rate": Row(lambda c: (c.q, {c.frame: np.zeros(6)}), "v", of=FLOATS),
    "dynamic_singularity_map": Row(qf, {"rank": "", "rank_fixed": "", "singularity": ""}, of=FLOATS),
}


OF_A_ROBOT = (sarrus.formulations, sarrus.floating)  # modules of functions whose first argument is a mechanism
BY_MODULE = {"derivatives": sarrus.derivatives}  # modules whose functions have the names of methods


def functions():
    """Return all public functions of a mechanism by name: methods, and functions of modules."""
    methods = {name: getattr(sarrus.Mechanism, name) for name in dir(sarrus.Mechanism) if not name.startswith("_")}
    found = {name: f for name, f in methods.items() if callable(f)}
    for module in OF_A_ROBOT:
        found |= {name: getattr(module, name) for name in module.__all__}
    for home, module in BY_MODULE.items():
        found |= {f"{home}.{name}": getattr(module, name) for name in module.__all__}
    return found


def public():
    """Return the signature of each public function, with the mechanism as its first parameter."""
    return {name: inspect.signature(f) for name, f in functions().items()}


def of(robot, name):
    """Return the function of this name for a mechanism, or for an oracle, whose functions are all methods."""
    module, _, short = name.rpartition(".")
    if module:
        return functools.partial(getattr(BY_MODULE[module], short), robot)
    home = next((m for m in OF_A_ROBOT if name in m.__all__ and isinstance(robot, sarrus.Mechanism)), None)
    return functools.partial(getattr(home, name), robot) if home else getattr(robot, name)


def ask(robot, name, c, **more):
    row = ROWS[name]
    return of(robot, name)(*row.args(c), **(row.more(c) | more))


def leaves(answer, name="") -> dict[str, np.ndarray]:
    """Return all numbers, bools and names in a result, by their paths."""
    if isinstance(answer, dict):
        return {k: x for key, of in answer.items() for k, x in leaves(of, f"{name}[{key}]").items()}
    if isinstance(answer, (list, tuple)) and not all(isinstance(x, str) for x in answer):
        return {k: x for i, of in enumerate(answer) for k, x in leaves(of, f"{name}[{i}]").items()}
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        fields = [
            f.name
            for f in dataclasses.fields(answer)
            if not f.name.startswith("_") and f.name not in ("mechanism", "time")
        ]
        return {k: x for f in fields for k, x in leaves(getattr(answer, f), f"{name}.{f}").items()}
    if isinstance(answer, (np.ndarray, np.generic, float, int, bool, str, type(None), tuple)):
        return {name: np.asarray(answer)}
    if isinstance(answer, sarrus.results.Kinematics):
        return {name: answer.pose(answer.mechanism.bodies[-1])} if hasattr(answer, "mechanism") else {}
    if hasattr(answer, "description"):
        return {name: np.asarray(repr(answer.description))}
    return {f"{name}.{k}": np.asarray(x) for k, x in vars(answer).items() if isinstance(x, (np.ndarray, float, int))}


# ---- transformation of results to other units, and to other axes of the world ----------------------------------------


def unit_of_rows(robot, units):
    parts = [np.zeros(0)]
    for name in robot.constraints:
        constraint = robot.constraint(name)
        parts.append([1.0 if "rotation" in row or "rad" in row else units.m for row in constraint.row_names])
    return np.concatenate(parts)


def scale_of(axis, robot, units):
    """Return the factors of the entries along an axis."""
    if axis.startswith("/"):
        return 1.0 / scale_of(axis[1:], robot, units)
    u, m, s = units, units.m, units.s
    motors = [robot.joint(name).type.velocities[0][1] for name in robot.actuated]
    six = {
        "twist": (1 / s, m / s),
        "twist'": (1 / s**2, m / s**2),
        "wrench": (u.force * m, u.force),
        "momentum": (u.force * m * s, u.force * s),
    }
    key = axis.lower().rstrip("0")
    if key in six:
        return np.repeat(six[key], 3)
    return {
        "q": lambda: u.coordinates(robot),
        "v": lambda: u.velocities(robot),
        "step": lambda: u.velocities(robot) * s,
        "acc": lambda: u.velocities(robot) / s,
        "tau": lambda: u.efforts(robot),
        "u": lambda: np.array([u.force * m / u.of(unit) for unit in motors]),
        "uacc": lambda: np.array([u.of(unit) / s**2 for unit in motors]),
        "rows": lambda: unit_of_rows(robot, u),
        "s": lambda: np.array(s),
        "Point": lambda: np.full(3, m),
        "Velocity": lambda: np.full(3, m / s),
    }[axis]()


def scaled_answer(axes, unit, robot, units):
    """Return the factors of a result, an array of its last axes."""
    factor = np.array({"1": 1.0, "energy": units.force * units.m, "mass": units.kg}[unit])
    for axis in axes.split():
        if axis == "Pose":
            pose = np.ones((4, 4))
            pose[:3, 3] = units.m
            return pose
        by = scale_of(axis, robot, units)
        factor = factor * by if by.ndim == 0 else factor[..., None] * by
    return factor


def turned_answer(axes, T):
    """Return the function that maps a result to that of the moved mechanism."""
    R = T.rotation

    def six(x):
        return np.concatenate([R @ x[:3], R @ x[3:]])

    def about_origin(x):
        y = six(x)
        return np.concatenate([y[:3] + np.cross(T.translation, y[3:]), y[3:]])

    first = axes.split()[0] if axes else ""
    return {
        "Pose": lambda x: T.matrix @ x,
        "Point": lambda x: R @ x + T.translation,
        "Velocity": lambda x: R @ x,
        "Momentum": about_origin,
        "Momentum0": six,
        "Wrench0": six,
    }.get(first, lambda x: x)


__all__ = [
    "ANY",
    "FLOATS",
    "LOOPS",
    "MAKERS",
    "ROWS",
    "Case",
    "ask",
    "case",
    "functions",
    "leaves",
    "of",
    "per_joint",
    "public",
]
