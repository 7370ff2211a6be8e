"""Generated C, compiled by the system's compiler and called, compared with the core.

``SARRUS_SOAK=1`` compares all mechanisms of the gallery, which takes the compiler a quarter of an hour.
"""

import dataclasses
import os
import shutil
import subprocess

import numpy as np
import pytest

import gallery
import sarrus
from ankles import MOTORS, ankle
from generated_states import CC, STRICT, difference, needs_compiler, states
from sarrus import generation

SOAK = bool(os.environ.get("SARRUS_SOAK"))
EXACT = {"double": 1e-12, "float": 1e-5}  # of the largest entry of an answer: rounding, times what solving costs
# a few of all kinds: trees, quaternions, redundant rows, a rolling knee, springs across loops
SOME = ("double_pendulum", "four_bar", "bennett", "six_axis_arm", "free_flyer", "sarrus_linkage")
MOST = 35_000  # statements that are compiled here
# in single precision besides: these solve for small inertias beside large ones; the Delta near where its legs are singular is corrected too seldom
ROUGH_IN_SINGLE = {"delta": 1e-3, "humanoid_leg": 1e-3, "miura_fold": 1e-3, "two_arms": 1e-4, "whipple_bicycle": 1e-4}
# where rows depend on one another one more correction can move an answer by 1e-5 of it, and that is where the flag begins
ROUGH_IN_SINGLE |= {"bennett": 3e-5}
# and of these, loops with rows that depend on one another, rounded arguments have no answer to measure that by
ROUGH_IN_SINGLE |= dict.fromkeys(("goldberg_6r", "net", "scissor_lift"), 1e-4)
CONDITION = 10  # so many times what rounding of the arguments to single precision changes


def names_of(robot):
    frame = robot.bodies[-1]
    all_ = ["inverse_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "forward_dynamics"]
    all_ += [f"{what}:{frame}" for what in ("pose", "velocity", "jacobian")]
    all_ += ["constraint_residual", "constraint_jacobian", "constraint_bias"] * (robot.nc > 0) + [
        "actuator_efforts"
    ] * (robot.nu > 0)
    return all_


def of_the_core(robot, name, arguments):
    operation, _, frame = name.partition(":")
    unchecked = {"check": False} if operation in ("forward_dynamics", "actuator_efforts") else {}
    return getattr(robot, operation)(*arguments, *([frame] if frame else []), return_status=True, **unchecked)


def rounding_moves(robot, name, arguments, core):
    """Return the change of results, as `difference`, for arguments rounded to single precision, up or down; zero if they become NaN."""
    rng, most = np.random.default_rng(0), np.zeros(len(core))
    for _ in range(6):
        moved = [x * (1.0 + 2.0**-24 * rng.choice([-1.0, 1.0], size=x.shape)) for x in arguments]
        most = np.fmax(most, np.nan_to_num(difference(of_the_core(robot, name, moved)[0], core)))
    return most


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("name", sarrus.mechanisms.__all__ if SOAK else SOME)
def test_generated_functions_agree_with_the_core(name, scalar, tmp_path):
    robot = gallery.made(name)
    given = states(robot, 12)
    asked = names_of(robot)
    made = generation.generate(robot, dict(enumerate_names(asked)), tmp_path, scalar=scalar, most_statements=10**6)
    long = {key for key, f in made.functions.items() if f.statements > MOST}
    if long:  # what a compiler would take minutes for
        asked_here = {k: n for k, n in enumerate_names(asked) if k not in long}
        made = generation.generate(robot, asked_here, tmp_path, scalar=scalar)
    code = generation.compiled(made, flags=STRICT)
    exact = EXACT[scalar] if scalar == "double" else ROUGH_IN_SINGLE.get(name, EXACT[scalar])
    compared = 0
    for key, what in enumerate_names(asked):
        if key in long:
            continue
        arguments = [given[k] for k in made.functions[key].inputs]
        results, status = code(key, *arguments)
        core, said = of_the_core(robot, what, arguments)
        answered = (said == 0) & (status == 0)
        (result,) = results.values()
        if what in (
            "constraint_residual",
            "constraint_bias",
        ):  # differences of what may be equal: of sizes and of velocities squared
            size = max(1.0, robot._length) * (1.0 if len(arguments) == 1 else 1.0 + (given["v"] ** 2).sum(axis=1))
            off = np.abs(result - core).max(axis=1, initial=0.0) / size
        else:
            off = difference(result, core)
        if scalar == "float":
            off = off - CONDITION * rounding_moves(robot, what, arguments, core)
        assert off[answered].max(initial=0.0) < exact, what
        if scalar == "double":  # single precision does not see what leaves a residual of 1e-12
            assert np.all((status & 7)[said != 0] != 0), f"{what}: answers where the core has none"
        compared += answered.sum()
    assert compared > 6 * (len(asked) - len(long)), "flags are up in most states"


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("name", ["bennett", "bricard"])
def test_dry_friction_of_what_loops_hold_still(name, scalar, tmp_path):
    """A joint that could slide, and moves only by rounding: its friction is that of rest, as in the core."""
    robot = getattr(sarrus.mechanisms, name)()
    home, loop = robot.assemble(), robot.loop_joints[0]
    kind = sarrus.Cylindrical(robot.joint(loop).type.axis, friction=5.0)
    joints = [
        dataclasses.replace(j, joint=kind if j.name == loop else j.joint, tree=j.name != loop, loop=j.name == loop)
        for j in robot.description.joints
    ]
    robot, rng = (
        sarrus.Mechanism(dataclasses.replace(robot.description, joints=tuple(joints))),
        np.random.default_rng(0),
    )
    q = robot.assemble(home, fixed={robot.joints[0]: home[0] + rng.uniform(-0.5, 0.5, 40)})
    v = robot.project_velocity(q, rng.normal(size=(40, robot.nv)))
    asked = {"bias": "bias_forces", "motion": "forward_dynamics"}
    code = generation.compiled(generation.generate(robot, asked, tmp_path, scalar=scalar), flags=STRICT)
    tau = rng.normal(size=v.shape)
    for key, arguments in (("bias", (q, v)), ("motion", (q, v, tau))):
        results, status = code(key, *arguments)
        assert not status.any()
        off = difference(*results.values(), getattr(robot, asked[key])(*arguments))
        assert off.max() < EXACT[scalar]  # 0.1 to 0.8 in single precision where its rounding counted as motion


def enumerate_names(names):
    return [(name.replace(":", "_at_").replace(" ", "_").replace("-", "_"), name) for name in names]


@needs_compiler
@pytest.mark.parametrize(("scalar", "closed", "exact"), [("double", 1e-10, 1e-10), ("float", 1e-6, 1e-5)])
def test_maps_of_an_ankle(scalar, closed, exact, tmp_path):
    """Positions, Jacobian and torques in both directions, from 0.03 rad away."""
    robot, rng = ankle(), np.random.default_rng(3)
    home = robot.assemble()
    q = np.array([robot.assemble(near=robot.integrate(home, 0.15 * rng.uniform(-1, 1, robot.nv))) for _ in range(20)])
    last = robot.integrate(q, rng.uniform(-0.03, 0.03, (20, robot.nv)))
    foot, motors = [0, 1], [robot.joint(name).q_slice.start for name in MOTORS]
    pair = ",".join(MOTORS)
    asked = {
        "all": f"transmission:ankle>{pair}", "back": f"positions:{pair}", "J": f"joint_jacobian:ankle>{pair}", "rates": "rates:ankle",
        "map": f"torque_map:ankle>{pair}", "inverse": f"torque_map:{pair}>ankle", "inertia": f"reduced_inertia:{pair}",
        "gravity": f"reduced_gravity:{pair}",
    }  # fmt: skip
    made = generation.generate(robot, asked, tmp_path, scalar=scalar, configurations=q[:6])
    code = generation.compiled(made, flags=STRICT)
    v = np.array([robot.complete_velocity(q, {"ankle": e}) for e in np.eye(2)])
    J = v[..., motors].transpose(1, 2, 0)
    by_motors = np.array([robot.complete_velocity(q, dict(zip(MOTORS, e, strict=True))) for e in np.eye(2)]).transpose(
        1, 2, 0
    )
    u = rng.normal(size=(20, 2))

    both, status = code("all", q[:, foot], last, u)
    assert not status.any()
    assert np.abs(robot.constraint_residual(both["q"])).max() < closed
    assert np.abs(both["q"][:, motors] - q[:, motors]).max() < 10 * closed
    assert np.abs(both["J"] - J).max() < exact
    assert np.abs(both["tau"] - np.einsum("nij,ni->nj", J, u)).max() < exact
    near, _ = code("back", q[:, motors], last)
    assert np.abs(robot.constraint_residual(near["q"])).max() < closed
    assert np.abs(code("J", q)[0]["J"] - J).max() < exact
    assert np.abs(code("rates", q, u)[0]["v"] - np.einsum("fnv,nf->nv", v, u)).max() < exact
    tau = code("map", q, u)[0]["tau"]
    assert np.abs(tau - np.einsum("nij,ni->nj", J, u)).max() < exact, "virtual work"
    assert np.abs(code("inverse", q, tau)[0]["tau"] - u).max() < 10 * exact, "there and back"
    M = np.einsum("nvi,nvw,nwj->nij", by_motors, robot.mass_matrix(q), by_motors)
    assert np.abs(code("inertia", q)[0]["M"] - M).max() < exact * np.abs(M).max()
    g = np.einsum("nvi,nv->ni", by_motors, robot.gravity_forces(q))
    assert np.abs(code("gravity", q)[0]["tau"] - g).max() < 10 * exact * np.abs(g).max()


@needs_compiler
def test_status_where_no_sample_was(tmp_path):
    """The pivots of an elimination are those of the samples: towards the dead centre of a slider-crank they vanish, and the flag is set."""
    robot = sarrus.mechanisms.slider_crank()
    slider = next(name for name in robot.joints if robot.joint(name).kind == "Prismatic")
    crank = robot.joints[0] if robot.joints[0] != slider else robot.joints[1]
    turned = [robot.assemble(fixed={crank: x}) for x in (0.8, 1.2, 1.6, 2.0)]
    made = generation.generate(robot, {"J": f"joint_jacobian:{slider}>{crank}"}, tmp_path, configurations=turned)
    code = generation.compiled(made, flags=STRICT)
    assert not code("J", turned)[1].any()
    assert code("J", robot.assemble(fixed={crank: 1e-6}))[1] == 8


@needs_compiler
@pytest.mark.parametrize(
    "name", ["six_axis_arm", "free_flyer"]
)  # the latter with a quaternion: by displacements in its tangent space
def test_derivatives_of_trees(name, tmp_path):
    robot = gallery.made(name)
    given = states(robot, 4)
    asked = ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"][: 2 if name == "six_axis_arm" else 1]
    code = generation.compiled(generation.generate(robot, asked, tmp_path), flags=STRICT)
    q, v, a, tau = (given[k] for k in ("q", "v", "a", "tau"))
    inverse, core = code(asked[0], q, v, a)[0], sarrus.derivatives.inverse_dynamics(robot, q, v, a)
    for key in ("q", "v"):
        assert difference(inverse[f"dtau_d{key}"], getattr(core, key)).max() < 1e-12
    if len(asked) > 1:
        forward, core = code(asked[1], q, v, tau)[0], sarrus.derivatives.forward_dynamics(robot, q, v, tau)
        for key in ("q", "v", "tau"):
            assert difference(forward[f"da_d{key}"], getattr(core, key)).max() < 1e-11, key


@needs_compiler
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "bennett"])  # the last of rows that depend on one another
def test_derivatives_of_loops(name, tmp_path):
    """By the implicit function along the loops; for any displacement if the rows are independent."""
    robot = gallery.made(name)
    given = states(robot, 6)
    q, v, a, tau = (given[k] for k in ("q", "v", "a", "tau"))
    asked = ["forward_dynamics_derivatives", "actuator_efforts_derivatives"]
    code = generation.compiled(generation.generate(robot, asked, tmp_path), flags=STRICT)
    of, status = code(asked[0], q, v, tau)
    D = sarrus.derivatives.forward_dynamics(robot, q, v, tau)
    assert not status.any()
    assert difference(of["da_dq"] @ D.displacement + of["da_dv"] @ D.velocity, D.q).max() < 1e-11
    assert difference(of["da_dv"] @ D.change, D.v).max() < 1e-11
    assert difference(of["da_dtau"], D.tau).max() < 1e-11
    if name != "bennett":
        D_any = sarrus.derivatives.forward_dynamics(robot, q, v, tau, along="any")
        assert difference(of["da_dq"], D_any.q).max() < 1e-11
    of, _ = code(asked[1], q, v, a)
    D_u = sarrus.derivatives.actuator_efforts(robot, q, v, a)
    assert difference(of["du_dq"] @ D.displacement, D_u.q @ D.displacement).max() < 1e-11
    assert difference(of["du_dv"], D_u.v).max() < 1e-11
    assert difference(of["du_da"], D_u.a).max() < 1e-11


def test_derivatives_beside_numbers_do_not_see_what_these_are_made_of():
    """(q - g) + g is folded to q. An expression that is constant in a derivative is stored separately, so that nothing is folded into it."""
    r = generation.Recorder(sarrus.mechanisms.pendulum())
    made = r.q - 9.81
    held = r.apart(made)
    for other, rates in ((made, [1.0, 0.0]), (held, [0.0, 1.0])):
        assert r.values(r.derivatives(other + 9.81, np.concatenate([r.q, other])))[0].tolist() == [rates]
    assert np.array_equal(r.values(held), r.values(made))


@needs_compiler
def test_composition(tmp_path):
    """NumPy's operations on symbolic numbers, with equal expressions stored once."""
    robot = sarrus.mechanisms.six_axis_arm()

    def power(r):
        tau = r.call("inverse_dynamics", r.q, r.v, r.a)
        J = r.call("jacobian", r.q, frame="tool")
        return {
            "power": np.array([r.v @ tau]),
            "force": J.T @ r.input("F", np.ones((6, 6))),
            "twice": 2.0 * tau - tau / 2,
        }

    made = generation.generate(robot, {"power": power, "id": "inverse_dynamics", "J": "jacobian:tool"}, tmp_path)
    f = made.functions
    added = 6 * 12 + 6 * 2 + 11  # J^T F, 2 tau - tau / 2, v^T tau
    assert f["power"].statements < f["id"].statements + f["J"].statements + added - 30
    given = states(robot, 3)
    F = np.random.default_rng(1).normal(size=(3, 6))
    result, _ = generation.compiled(made)("power", given["q"], given["v"], given["a"], F)
    tau = robot.inverse_dynamics(given["q"], given["v"], given["a"])
    J = robot.jacobian(given["q"], "tool")
    assert np.abs(result["power"][:, 0] - (given["v"] * tau).sum(axis=1)).max() < 1e-12 * np.abs(tau).max()
    assert np.abs(result["force"] - np.einsum("nij,ni->nj", J, F)).max() < 1e-12
    assert np.abs(result["twice"] - 1.5 * tau).max() < 1e-12 * np.abs(tau).max()


@needs_compiler
def test_results_may_stand_where_arguments_stood(tmp_path):
    robot = sarrus.mechanisms.double_pendulum()
    made = generation.generate(robot, {"swap": lambda r: {"out": np.concatenate([r.q[::-1], r.q * 2.0])}}, tmp_path)
    source = tmp_path / "main.c"
    source.write_text(
        '#include "double_pendulum.h"\nint main(void) {\n  double x[4] = {1.0, 2.0, 0.0, 0.0};\n  double_pendulum_swap(x, x);\n'
        "  return x[0] == 2.0 && x[1] == 1.0 && x[2] == 2.0 && x[3] == 4.0 ? 0 : 1;\n}\n"
    )
    subprocess.run([CC, "-O2", source, made.source, "-o", tmp_path / "main"], check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang", "clang-19", "g++"])
def test_compilers_have_nothing_to_say(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    for scalar in ("double", "float"):
        robot = sarrus.mechanisms.four_bar()
        made = generation.generate(
            robot, ["forward_dynamics", "constraint_residual", "pose:rocker"], tmp_path, scalar=scalar
        )
        flags = ["-x", "c++", "-std=c++17"] if compiler == "g++" else ["-std=c99", "-Wstrict-prototypes"]
        warnings = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Werror"]
        subprocess.run([compiler, *flags, *warnings, "-O1", "-c", made.source, "-o", tmp_path / "a.o"], check=True)


def test_same_input_same_files(tmp_path):
    robot = sarrus.mechanisms.four_bar()
    texts = [
        generation.generate(robot, ["forward_dynamics", "positions:motor"], tmp_path / k).source.read_text()
        for k in "ab"
    ]
    assert texts[0] == texts[1]
    assert "forward_dynamics: q[3], v[3], tau[3] -> a[3]" in texts[0]
    assert "stack: at most" in texts[0]
    for word in ("malloc", "static double", "static int", "for (", "while", "#define"):
        assert word not in texts[0]


def test_names_are_the_models(tmp_path):
    b = sarrus.Builder("a/b 2*/c")
    b.add_body("body", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("left hip", sarrus.Revolute("z"), "ground", "body")
    made = generation.generate(b.build(), {"tau of": "inverse_dynamics"}, tmp_path)
    header = made.header.read_text()
    assert made.header.name == "a_b_2_c.h"
    assert "a_b_2_c_q_left_hip = 0" in header
    assert "void a_b_2_c_tau_of(const double q[1]" in header
    assert header.count("*/") == header.count("/*")


BAD = {
    "no function": (["no_such"], sarrus.NameNotFoundError, "did you mean|no function"),
    "a frame that is none": (["pose:hand"], sarrus.NameNotFoundError, "no frame is named 'hand'"),
    "no frame": (["pose"], ValueError, "requires the name of a frame"),
    "a frame too many": (["mass_matrix:rocker"], ValueError, "takes no name after a colon"),
    "no joint": (["positions:knee"], sarrus.NameNotFoundError, "knee"),
    "joints to nothing": (["transmission:motor"], ValueError, "input and output joints"),
    "too few joints": (
        lambda r: {"v": r.velocities(r.q, [], [])},
        sarrus.ModelError,
        "do not determine the configuration",
    ),
    "a result called as an input": (lambda r: {"q": r.q * 2.0}, ValueError, "'q' cannot be"),
    "a result that C cannot name": (lambda r: {"double": r.q * 2.0}, ValueError, "'double' cannot be"),
    "nothing": ([], ValueError, "at least one name"),
    "two of a name": (["pose:rocker", "pose_rocker"], (ValueError, KeyError), "no function|two functions"),
    "a decision": (lambda r: {"x": np.maximum(r.q, 0.0)}, TypeError, "a condition .* cannot depend"),
    "a comparison": (lambda r: {"x": np.where(r.q == 0.0, 1.0, 2.0)}, TypeError, "a condition .* cannot depend"),
    "a truth": (lambda r: {"x": r.q if r.q[0] else r.v}, TypeError, "a condition .* cannot depend"),
    "a division by zero": (lambda r: {"x": r.q / 0.0}, sarrus.ModelError, "'x' of 'f' is not finite in any sample"),
    "a number that is none": (lambda r: {"x": [1.0 / (r.q[0] - r.q[0])]}, sarrus.ModelError, "a division by zero"),
    "a result called as the code's own number": (lambda r: {"t0": r.q * 2.0}, ValueError, "'t0' cannot be"),
    "a result called as a number of an input": (lambda r: {"q_0": r.q * 2.0}, ValueError, "'q_0' cannot be"),
    "a result called as what the code calls": (lambda r: {"sqrt": r.q * 2.0}, ValueError, "'sqrt' cannot be"),
    "a result called as a keyword of C++": (lambda r: {"namespace": r.q * 2.0}, ValueError, "'namespace' cannot be"),
    "a function called as a number of coordinates": ({"nq": "mass_matrix"}, ValueError, "name of an index in q or v"),
    "a function called as what a target writes": (
        {"f": "mass_matrix", "f_vjp": "mass_matrix"},
        ValueError,
        "'f_vjp' is a name that targets use",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case, tmp_path):
    functions, error, words = BAD[case]
    with pytest.raises(error, match=words):
        generation.generate(
            sarrus.mechanisms.four_bar(), {"f": functions} if callable(functions) else functions, tmp_path
        )


@needs_compiler
@pytest.mark.parametrize("name", ["delta", "five_bar", "watt"])
def test_positions_about_home(name, tmp_path):
    """Near home and at home, where a step may have a singular position among its pivots."""
    robot, rng = gallery.made(name), np.random.default_rng(1)
    joints = list(robot.actuated) or [robot.joints[0]]
    held = np.concatenate([np.arange(robot.nq)[robot.joint(joint).q_slice] for joint in joints])
    code = generation.compiled(generation.generate(robot, {"f": f"positions:{','.join(joints)}"}, tmp_path, name="x"))
    home = robot.assemble()
    near = [robot.assemble(near=robot.integrate(home, 0.1 * rng.uniform(-1, 1, robot.nv))) for _ in range(12)]
    q = np.array([home, *near])
    results, status = code("f", q[:, held], q)
    assert not status.any()
    assert np.abs(results["q"] - q).max() < 1e-11


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("assumptions", [True, False])
def test_what_is_not_finite_has_no_answer(assumptions, scalar, tmp_path):
    """Status 2 if a result is not finite, also if results of both signs cancel; for example a motor at its dead centre."""
    robot = sarrus.mechanisms.pendulum()

    def inverse(r):
        return {"y": [1.0 / r.q[0], -1.0 / r.q[0]]}

    made = generation.generate(robot, {"f": inverse}, tmp_path, scalar=scalar, assumptions=assumptions)
    results, status = generation.compiled(made, flags=STRICT)("f", [[2.0], [0.0]])
    assert status.tolist() == [0, 2]
    assert results["y"][0].tolist() == [0.5, -0.5]
    crank = sarrus.mechanisms.slider_crank()
    slider = next(joint for joint in crank.joints if isinstance(crank.joint(joint).type, sarrus.Prismatic))
    made = generation.generate(
        crank, {"f": f"rates:{slider}"}, tmp_path / "crank", scalar=scalar, assumptions=assumptions
    )
    dead_centre = crank.assemble(fixed={crank.actuated[0]: 0.0})
    results, status = generation.compiled(made, flags=STRICT)("f", dead_centre, [1.0])
    assert np.isfinite(results["v"]).all() or status & 7 == 2


def test_home_may_be_a_singular_position(tmp_path):
    """A singular home does not affect the choice of pivots, and the code reports no answer there."""
    robot = flat_parallelogram()
    assert not np.any(robot.assemble())
    made = generation.generate(robot, {"f": "rates:m"}, tmp_path)
    if CC is None:
        return
    code = generation.compiled(made)
    q = np.array([0.3, -0.3, 0.3])
    v, status = code("f", [q, np.zeros(3)], [1.0])
    assert np.abs(v["v"][0] - [1.0, -1.0, 1.0]).max() < 1e-12
    assert status[0] == 0 and status[1] & 8


def flat_parallelogram():
    b = sarrus.Builder("parallelogram")
    for name, length in (("a", 1.0), ("b", 2.0), ("c", 1.0)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    hinge = sarrus.Revolute("y")
    b.add_joint("m", hinge, "ground", "a", actuated=True)
    b.add_joint("p1", hinge, "a", "b", at_parent=(1, 0, 0))
    b.add_joint("p", hinge, "ground", "c", at_parent=(2, 0, 0))
    b.add_joint("p2", hinge, "b", "c", at_parent=(2, 0, 0), at_child=(1, 0, 0))
    return b.build()


@needs_compiler
def test_a_relative_folder_and_a_result_that_is_one_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = generation.generate(sarrus.mechanisms.pendulum(), {"f": lambda r: {"y": r.q[0] * 2.0}}, "here")
    results, _ = generation.compiled(made)("f", [[1.5], [2.0]])
    assert results["y"].tolist() == [3.0, 4.0]


def test_numbers_come_from_recorders_alone():
    """Numbers from __new__ have no value."""
    r = generation.Recorder(sarrus.mechanisms.pendulum())
    number, recording = type(r.q[0]), type(r._recording)
    for use in (lambda: -number.__new__(number), lambda: recording.__new__(recording).driven):
        with pytest.raises(TypeError, match="was never initialised"):
            use()


def test_open_chains_and_names_that_are_none(tmp_path):
    recorder = generation.Recorder(sarrus.mechanisms.double_pendulum())
    q, lacking = recorder.positions([])  # what is in no loop stays where it was
    assert q.shape == (2,) and recorder.values(lacking).max() == 0.0
    with pytest.raises(TypeError, match="name must be a str"):
        generation.generate(sarrus.mechanisms.four_bar(), ["mass_matrix"], tmp_path, name=[])
    with pytest.raises(TypeError, match="robot must be a Mechanism"):
        generation.generate(np.zeros(3), ["mass_matrix"], tmp_path)


def test_arrays_of_wrong_sizes_are_not_read():
    r = generation.Recorder(sarrus.mechanisms.four_bar())
    for inputs in ((), (None,), (r.q[:2],), (r.q, r.v[:1]), (r.q, r.v, [1.0, 2.0])):
        with pytest.raises(sarrus.ShapeError, match="inverse_dynamics requires"):
            r.call("inverse_dynamics", *inputs)
    with pytest.raises(TypeError, match="requires q; got 2 arrays"):
        r.call("mass_matrix", r.q, r.v)
    with pytest.raises(ValueError, match="expressed_in must be one of"):
        r.call("jacobian", r.q, frame="rocker", expressed_in="body")
    with pytest.raises(sarrus.ShapeError, match="with 3 entries; got 1"):
        r.joint_jacobian(0.5, ["motor"])
    with pytest.raises(sarrus.ShapeError, match="rates must have 1 entries"):
        r.velocities(r.q, ["motor"], [1.0, 2.0])


def test_names_of_inputs_are_those_of_c(tmp_path):
    robot = sarrus.mechanisms.pendulum()
    with pytest.raises(ValueError, match="'double' cannot be the name"):
        generation.generate(robot, {"f": lambda r: {"x": r.q + r.input("double", np.ones((6, 1)))}}, tmp_path)
    with pytest.raises(TypeError, match="result of 'f' must be a mapping"):
        generation.generate(robot, {"f": lambda r: r.q}, tmp_path)


def test_too_long_a_function(tmp_path):
    with pytest.raises(sarrus.ModelError, match=r"forward_dynamics has .* more than most_statements = 100"):
        generation.generate(sarrus.mechanisms.four_bar(), ["forward_dynamics"], tmp_path, most_statements=100)


def test_single_precision_is_as_long_as_double_by_default(tmp_path):
    """A mechanism whose singular positions need many corrections: 150,000 statements for random samples, 18,000 in double."""
    robot = sarrus.mechanisms.stewart()
    double, single = (
        generation.generate(robot, ["actuator_efforts"], tmp_path, scalar=scalar).functions["actuator_efforts"]
        for scalar in ("double", "float")
    )
    assert single.statements < 1.5 * double.statements


def test_numbers_of_two_recordings_do_not_mix():
    r, other = (generation.Recorder(sarrus.mechanisms.pendulum()) for _ in range(2))
    with pytest.raises(ValueError, match="two different recordings"):
        r.q + other.q
    with pytest.raises(ValueError, match="another recording"):
        r.call("mass_matrix", other.q)
    with pytest.raises(sarrus.ShapeError, match=r"must be \(n, 1\)"):
        generation.Recorder(r.robot, configurations=[[1.0, 2.0]])
    with pytest.raises(ValueError, match="'double' or 'float'"):
        generation.Recorder(r.robot, scalar="half")


def test_values_beside_expressions():
    """Values of a recording at its samples are the core's."""
    robot = sarrus.mechanisms.five_bar()
    q = robot.random(1, size=3, closed=True)
    r = generation.Recorder(robot, configurations=q)
    assert np.abs(r.values(r.call("mass_matrix", r.q)) - robot.mass_matrix(q)).max() < 1e-14


def test_command_line(tmp_path, capsys):
    from sarrus.cli import main

    command = [
        "generate",
        "four_bar",
        "--functions",
        "positions:motor",
        "mass_matrix",
        "-o",
        str(tmp_path),
        "--scalar",
        "float",
    ]
    assert main(command) == 0
    assert "four_bar_positions_motor: " in capsys.readouterr().out
    assert (
        "const float coordinates[1], const float near[3], float q[3], float residual[1]"
        in (tmp_path / "four_bar.h").read_text()
    )
    assert main(["generate", "four_bar", "--functions", "no_such", "-o", str(tmp_path)]) == 1


@needs_compiler
def test_single_precision_towards_a_singular_position(tmp_path):
    """Errors above 1e-4 have the flag, results near the samples are right to 1e-5, and regular states have no flag."""
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    turns = np.array([0.1, 0.03, 0.01, 0.006, 0.003, 0.002, 0.001, 0.0005])
    q = np.array([robot.assemble(fixed={"motor": x}, branch="any") for x in turns])
    v = np.array([robot.complete_velocity(x, {"motor": 1.0}) for x in q])
    tau = np.ones((len(q), 3))
    core = robot.forward_dynamics(q, v, tau)
    far = [robot.assemble(fixed={"motor": x}, branch="any") for x in (0.7, 1.0, 1.3, 1.7, 2.0)]
    for name, samples in {"far": far, "near": [*far, q[-1]]}.items():
        made = generation.generate(robot, ["forward_dynamics"], tmp_path / name, scalar="float", configurations=samples)
        answer, status = generation.compiled(made, flags=STRICT)("forward_dynamics", q, v, tau)
        off = difference(answer["a"], core)
        if name == "far":
            assert not status[:4].any() and off[-1] > 0.01 and status[-1] == 8
            assert off[status == 0].max() < 1e-4
        else:
            assert not status.any()
            off -= CONDITION * rounding_moves(robot, "forward_dynamics", (q, v, tau), core)
            assert off.max() < 1e-5


@needs_compiler
def test_flag_where_more_corrections_are_wanted(tmp_path):
    """A parallelogram is recorded far from its flat position; close to it its equation needs corrections that the code does not have."""
    robot = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    far = [robot.assemble(fixed={"motor": x}, branch="any") for x in (0.7, 1.0, 1.3, 1.7, 2.0)]
    made = generation.generate(robot, ["forward_dynamics"], tmp_path, configurations=far)
    code = generation.compiled(made, flags=STRICT)
    v, tau = np.zeros(3), np.ones(3)
    assert code("forward_dynamics", far, v, tau)[1].max() == 0
    near = robot.assemble(fixed={"motor": 1e-6}, branch="any")
    assert code("forward_dynamics", near, v, tau)[1] & 8
