"""One recording for CasADi, JAX, CUDA, as an FMU, and as a check program: each compared with the core."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import sarrus
from generated_states import difference, states
from sarrus import generation

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
needs_cpp = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_check_program(scalar, tmp_path):
    """The check program passes, and fails for different C code."""
    robot = sarrus.mechanisms.four_bar()

    def power(r):
        return {"power": np.array([r.v @ r.call("inverse_dynamics", r.q, r.v, r.a)])}

    asked = {
        "fd": "forward_dynamics",
        "q_of": "positions:motor",
        "J": "jacobian:rocker",
        "power": power,
        "M": "mass_matrix",
    }
    made = generation.generate(robot, asked, tmp_path, scalar=scalar, targets=["check"])
    program = tmp_path / "four_bar_check.py"
    assert set(made.others) == {program, tmp_path / "four_bar_check.json"}
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("error ") == len(asked)
    body, name, matrix = made.source.read_text().rpartition("four_bar_M(")
    made.source.write_text(body + name + matrix.replace(" + ", " - ", 1))
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "four_bar_M: error" in run.stdout and run.stdout.count("FAILED") == 1


@needs_compiler
def test_check_program_has_the_cores_answers(tmp_path):
    robot = sarrus.mechanisms.five_bar()
    generation.generate(robot, ["forward_dynamics"], tmp_path, targets=["check"])
    for state in json.loads((tmp_path / "five_bar_check.json").read_text())["five_bar_forward_dynamics"]:
        a = robot.forward_dynamics(*state["arguments"])
        assert np.abs(a - state["results"]["a"]).max() < 1e-14 * np.abs(a).max()  # one state and several: rounding


@needs_compiler
def test_check_program_tries_home(tmp_path):
    """The check program fails if the code returns NaN at home."""
    robot = sarrus.mechanisms.five_bar()
    made = generation.generate(robot, {"f": "positions:left_motor,right_motor"}, tmp_path, targets=["check"])
    (states_,) = json.loads((tmp_path / "five_bar_check.json").read_text()).values()
    assert np.abs(states_[0]["results"]["q"] - robot.assemble()).max() < 1e-12
    made.source.write_text(made.source.read_text().replace("  q[0] = ", "  q[0] = 0.0 / 0.0 * "))
    run = subprocess.run([sys.executable, tmp_path / "five_bar_check.py"], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "error inf" in run.stdout, run.stdout


@needs_compiler
def test_casadi_external(tmp_path):
    """Values, matrices column by column, and sparse Jacobians."""
    casadi = pytest.importorskip("casadi")
    robot = sarrus.mechanisms.four_bar()
    made = generation.generate(robot, ["forward_dynamics", "jacobian:rocker"], tmp_path, targets=["casadi"])
    library = tmp_path / "external.so"
    strict = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    subprocess.run(
        ["cc", "-std=c99", "-O1", *strict, "-fPIC", "-shared", *made.others, "-o", library, "-lm"], check=True
    )
    f, J = (casadi.external(f"four_bar_{name}", str(library)) for name in ("forward_dynamics", "jacobian_rocker"))
    assert f.name_in() == ["q", "v", "tau"] and J.name_out() == ["J"]
    x = [casadi.MX.sym(name, 3) for name in f.name_in()]
    by_state = casadi.Function("by_state", x, [casadi.jacobian(f(*x), one) for one in x])
    by_q = casadi.Function("by_q", x[:1], [casadi.jacobian(casadi.vec(J(x[0])), x[0])])
    given = states(robot, 4)
    for q, v, tau in zip(given["q"], given["v"], given["tau"], strict=True):
        a, D = robot.forward_dynamics(q, v, tau), sarrus.derivatives.forward_dynamics(robot, q, v, tau, along="any")
        assert np.abs(np.array(f(q, v, tau))[:, 0] - a).max() < 1e-12 * np.abs(a).max()
        assert np.abs(np.array(J(q)) - robot.jacobian(q, "rocker")).max() < 1e-14
        for one, core in zip(by_state(q, v, tau), (D.q, D.v, D.tau), strict=True):
            assert np.abs(np.array(one) - core).max() < 1e-11 * np.abs(core).max()
        e = 1e-5 * np.eye(3)
        core = np.array([robot.jacobian(q + one, "rocker") - robot.jacobian(q - one, "rocker") for one in e]) / 2e-5
        assert np.abs(np.array(by_q(q)) - core.transpose(2, 1, 0).reshape(18, 3)).max() < 1e-9
    assert by_q.sparsity_out(0).nnz() < 18 * 3
    assert f.jacobian().n_in() == 4


@needs_compiler
def test_casadi_external_of_a_square_matrix(tmp_path):
    """Matrix results are also matrices in the Jacobian."""
    casadi = pytest.importorskip("casadi")
    robot = sarrus.mechanisms.four_bar()
    made = generation.generate(robot, ["mass_matrix"], tmp_path, targets=["casadi"])
    library = tmp_path / "external.so"
    subprocess.run(["cc", "-std=c99", "-O1", "-fPIC", "-shared", *made.others, "-o", library, "-lm"], check=True)
    M, x = casadi.external("four_bar_mass_matrix", str(library)), casadi.MX.sym("q", 3)
    by_q = casadi.Function("by_q", [x], [casadi.jacobian(casadi.sumsqr(M(x)), x)])
    q, e = robot.assemble(), 1e-5 * np.eye(3)
    core = [((robot.mass_matrix(q + one) ** 2).sum() - (robot.mass_matrix(q - one) ** 2).sum()) / 2e-5 for one in e]
    assert np.abs(np.array(by_q(q))[0] - core).max() < 1e-8


@needs_cpp
@pytest.mark.parametrize(
    ("name", "operation"), [("four_bar", "forward_dynamics"), ("six_axis_arm", "inverse_dynamics")]
)
def test_functions_for_jax(name, operation, tmp_path):
    """Values, gradients to 1e-10, vmap and jit; more states than lanes, and states without a result."""
    jax = pytest.importorskip("jax")
    robot = getattr(sarrus.mechanisms, name)()
    made = generation.generate(robot, [operation], tmp_path, targets=["jax"], assumptions=False)
    f = generation.jax_functions(made, flags=["-std=c++17", "-O0"])[operation]
    given = states(robot, 7)
    of = [given[key] for key in made.functions[operation].inputs]
    with jax.enable_x64(True):
        (value,) = jax.jit(f)(*of)
        core = getattr(robot, operation)(*of)
        assert difference(np.asarray(value), core).max() < 1e-12
        assert np.array_equal(jax.vmap(f)(*map(jax.numpy.asarray, of))[0], value)
        w = np.random.default_rng(2).normal(size=core.shape)
        gradients = jax.grad(lambda *x: (w * f(*x)[0]).sum(), argnums=(0, 1, 2))(*map(jax.numpy.asarray, of))
        D = getattr(sarrus.derivatives, operation)(robot, *of, **({"along": "any"} if robot.nc else {}))
        for one, by in zip(gradients, (D.q, D.v, D.tau if robot.nc else D.a), strict=True):
            assert difference(np.asarray(one), np.einsum("ni,nij->nj", w, by)).max() < 1e-10
        with pytest.raises(TypeError, match="requires q, v"):
            f(of[0])
    with jax.enable_x64(False), pytest.raises(TypeError, match="jax_enable_x64"):
        f(*of)
    with pytest.raises(ValueError, match="targets="):
        generation.jax_functions(generation.generate(robot, [operation], tmp_path))


@needs_cpp
def test_functions_for_jax_refuse_other_sizes(tmp_path):
    """A last axis of length one does not broadcast."""
    jax = pytest.importorskip("jax")
    made = generation.generate(sarrus.mechanisms.four_bar(), ["inverse_dynamics"], tmp_path, targets=["jax"])
    f = generation.jax_functions(made)["inverse_dynamics"]
    with jax.enable_x64(True):
        for wrong in (np.zeros((4, 1)), np.float64(1.0), np.zeros(4)):
            with pytest.raises(sarrus.ShapeError, match=r"v must be \(\.\.\., 3\)"):
                f(np.zeros(3), wrong, np.zeros(3))


@needs_cpp
def test_where_there_is_no_answer(tmp_path):
    """Off the loops redundant rows are inconsistent: NaN in JAX, a failure in CasADi."""
    jax, casadi = pytest.importorskip("jax"), pytest.importorskip("casadi")
    robot = sarrus.mechanisms.bennett()
    made = generation.generate(
        robot, {"fd": "forward_dynamics"}, tmp_path, targets=["casadi", "jax"], assumptions=False
    )
    given = states(robot, 7)
    given["q"][5] += 0.1
    with jax.enable_x64(True):
        a = generation.jax_functions(made, flags=["-std=c++17", "-O0"])["fd"](given["q"], given["v"], given["tau"])[0]
    a = np.asarray(a)
    assert np.isnan(a).all(axis=1).tolist() == [k == 5 for k in range(7)]
    library = generation.targets.shared_library("cc", ["-O0"], tmp_path / "external.so", made.others[0])
    f = casadi.external(made.functions["fd"].name, str(library))
    assert np.abs(np.array(f(given["q"][0], given["v"][0], given["tau"][0]))[:, 0] - a[0]).max() < 1e-10
    with pytest.raises(RuntimeError):
        f(given["q"][5], given["v"][5], given["tau"][5])


def test_cuda_kernels(tmp_path):
    """One thread per state; compiled for no particular device if nvcc is installed."""
    robot = sarrus.mechanisms.four_bar()
    for scalar in ("double", "float"):
        made = generation.generate(
            robot, ["forward_dynamics", "mass_matrix"], tmp_path, scalar=scalar, targets=["cuda"]
        )
        text = made.others[0].read_text()
        assert f"four_bar_forward_dynamics_batch(long sarrus_states, const {scalar} *q" in text
        assert (
            "status[sarrus_i] = four_bar_forward_dynamics(q + 3 * sarrus_i, v + 3 * sarrus_i, tau + 3 * sarrus_i"
            in text
        )
        if shutil.which("nvcc"):
            subprocess.run(
                ["nvcc", "-ptx", "-Werror", "all-warnings", made.others[0], "-o", tmp_path / "f.ptx"], check=True
            )
            assert ".entry four_bar_mass_matrix_batch" in (tmp_path / "f.ptx").read_text()


@needs_compiler
@pytest.mark.parametrize("name", ["four_bar", "free_flyer"])
def test_step_is_of_second_order_and_on_the_loops(name, tmp_path):
    robot = getattr(sarrus.mechanisms, name)()
    step = "step:motor" if robot.nc else "step"
    code = generation.compiled(generation.generate(robot, {"step": step}, tmp_path))
    q0, v0 = robot.assemble(), np.zeros(robot.nv)
    v0 = robot.complete_velocity(q0, {"motor": 1.0}) if robot.nc else np.linspace(-1.0, 1.0, robot.nv)
    end = sarrus.simulate(robot, q0, v0, 0.1, rtol=1e-11, atol=1e-12)
    errors = []
    for count in (20, 40):
        q, v = q0, v0
        for _ in range(count):
            results, status = code("step", q, v, np.zeros(robot.nv), [0.1 / count])
            q, v = results["q_next"], results["v_next"]
            assert status == 0
        errors.append(np.abs(robot.difference(end.q[-1], q)).max())
        assert np.abs(robot.constraint_residual(q)).max(initial=0.0) < 1e-12
    assert 3.5 < errors[0] / errors[1] < 4.5


@needs_compiler
def test_fmu(tmp_path):
    """The description is valid, the FMU runs and accepts forces, and the file is reproducible."""
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    robot = sarrus.mechanisms.four_bar()
    made, again = (generation.generate(robot, ["step:motor"], tmp_path / k, targets=["fmu"]) for k in "ab")
    fmu = str(made.others[0])
    assert made.others[0].read_bytes() == again.others[0].read_bytes()
    assert validate_fmu(fmu) == []
    time = np.linspace(0.0, 0.5, 51)
    push = np.rec.fromarrays([time, np.full(51, 3.0)], names=["time", "tau.motor"])
    run = fmpy.simulate_fmu(fmu, stop_time=0.5, step_size=0.01, output_interval=0.01, input=push)
    q = np.array([run[f"q.{name}"] for name in robot.joints]).T
    hold = [sarrus.control.FeedforwardEffort("motor", 3.0)]
    reference = sarrus.simulate(robot, robot.assemble(), np.zeros(3), 0.5, hold, rtol=1e-10, atol=1e-12)
    assert np.abs(q[-1] - reference.q[-1]).max() < 5e-4  # steps of 1 ms, of second order
    assert np.abs(robot.constraint_residual(q)).max() < 1e-12


BAD = {
    "no target": (["forward_dynamics"], {"targets": ["matlab"]}, sarrus.NameNotFoundError, "no target|matlab"),
    "single precision": (
        ["forward_dynamics"],
        {"targets": ["jax"], "scalar": "float"},
        ValueError,
        "requires scalar='double'",
    ),
    "no step": (["forward_dynamics"], {"targets": ["fmu"]}, ValueError, "requires one function 'step'"),
    "nothing held": (["step"], {}, sarrus.ModelError, "do not determine the configuration"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_targets_refuse(case, tmp_path):
    functions, options, error, words = BAD[case]
    with pytest.raises(error, match=words):
        generation.generate(sarrus.mechanisms.four_bar(), functions, tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()
