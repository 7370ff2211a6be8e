"""Demonstrations of rigid contact: each runs, draws and films; their claims are checked, against published values if there are any."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(path.stem for path in (EXAMPLES / "contact").glob("*.py") if path.stem != "touching"))
SOAK = bool(os.environ.get("SARRUS_SOAK"))
# what steps are held to: loops to rounding, cones to 1e-10 of the largest velocity, at rest to nothing but that
LOOPS, CONES, AT_REST = 1e-12, 1e-8, 1e-9


@pytest.fixture
def example(monkeypatch):
    """Import an example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(EXAMPLES / "contact"))
    return importlib.import_module


def is_held(found):
    assert found["loops open by [m, rad]"] < LOOPS
    assert found["loops, velocities [m/s, rad/s]"] < LOOPS
    assert found["cones, natural map [N s, m/s]"] < CONES


@pytest.mark.parametrize("name", NAMES)
def test_demonstration_runs(example, name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    found = example(name).main(output=tmp_path / "figures.png", duration=0.1, films=tmp_path)
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")
    assert all("<script" in film.read_text() for film in tmp_path.glob("*.html")) and [*tmp_path.glob("*.html")]
    assert found and "sarrus" in capsys.readouterr().out


def test_a_walker_stands_and_is_pushed(example):
    found = example("walker").main(duration=4.0)
    is_held(found)
    assert found["feet creep while it stands [m]"] < AT_REST
    assert found["swings after the push [rad]"] > 0.05  # it was pushed
    assert found["moves at the end [m/s, rad/s]"] < 0.02
    assert 0.3 < found["pelvis at the end [m]"] < 0.335


def test_a_walker_is_shaken(example):
    """Every step of every run is solved, for any motor efforts; the soak test shakes twelve walkers for 1,000,000 steps."""
    module = example("walker")
    runs, duration = (250, 16.0) if SOAK else (4, 1.0)
    many = module.shaken(runs, duration, threads=2)
    assert not many.status.any()
    assert np.abs(many.v).max() > 2.0
    robot = many.mechanism
    closed = robot.constraint_residual(many.q.reshape(-1, robot.nq))
    assert np.abs(closed).max() < LOOPS


def test_a_gripper_lifts_a_cube_and_holds_it_for_a_minute(example):
    found = example("gripper").main()
    is_held(found)
    assert found["lifted by [m]"] > 0.14
    assert found["slips by [m]"] < 1e-4
    assert found["moves by [m/s, rad/s]"] < AT_REST
    assert_allclose(found["vertical forces at the end [N]"], 0.1 * 9.81, rtol=1e-6)
    assert found["off the stops by [rad]"] < 1e-9


def test_boxes_fall_and_rest(example):
    """The final energies are those of boxes and balls that lie on the ground."""
    found = example("dropped").main()
    assert_allclose(found["four-bar of boxes: energy [J]"], 4 * 9.81 * 0.005, rtol=1e-4)
    assert_allclose(found["nunchaku: energy [J]"], 3 * 9.81 * 0.05, rtol=1e-4)
    for name in ("four-bar of boxes", "nunchaku"):
        is_held({what.removeprefix(f"{name}: "): x for what, x in found.items() if what.startswith(name)})
        assert found[f"{name}: moves by [m/s, rad/s]"] < AT_REST
        assert found[f"{name}: gained in a step [J]"] < 1e-2
    # for a minute, which newton issue 3086 has tremble
    assert found["on its side: moves by [m/s, rad/s]"] < AT_REST
    assert found["on its side: energy at the end [J]"] == pytest.approx(4 * 9.81 * 0.005, rel=1e-6)


@pytest.mark.filterwarnings(
    "ignore:by .contact.:sarrus.StiffnessWarning"
)  # steps of 4 ms lose 2 % of the energy in the hits
@pytest.mark.parametrize(
    ("turn", "height"),
    [
        ((0.3, 0.4, 0.1), 0.15),
        ((0.37, 0.82, 0.14), 0.154),
        ((0.37, -0.55, -0.17), 0.196),
        ((-0.73191661, -0.19377403, -0.59308952), 0.18934700),
        # and these have hinges that are nearly upright, whose own motion hardly moves a corner
        ((0.66996326, 0.19310805, -0.42227352), 0.10644274),
        ((-0.69267729, -0.66139340, 0.01192863), 0.19871783),
        # and these raised the error later: their corners lie in one plane to rounding, so that impulses must grow by 1e8 until one of them opens
        ((0.03978767, 0.18688704, 2.27525442), 0.16572793),
        ((0.03897280602532471, 0.6176763938729444, 2.37259455611916), 0.12289888405176772),
        ((-0.11675580744953629, 0.7378863924537302, -1.7157838285747236), 0.1378689598898252),
    ],
)
def test_boxes_dropped_askew_land_with_sixteen_corners(example, turn, height):
    """With loops such corners outnumber the motions by far, and no three of them determine the load. Such runs used to raise IntegrationError."""
    dropped = example("dropped")
    robot = dropped.four_bar()
    q = dropped.started(robot, turn, height)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.5, method="contact", dt=4e-3)
    held = run.statistics["contact"]
    assert held["natural_map"] < CONES
    assert held["kinematics"] < LOOPS
    assert held["as_touching"] < 10
    # it lies flat, on the ground
    assert abs(run.v[-1]).max() < AT_REST
    assert_allclose(run.energy[-1], 4 * 9.81 * 0.005, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:by 'contact' the energy balance")  # these steps are long for a fall
def test_contact_is_exact_and_energy_falls_in_all_drops(example):
    """In some drops nearly touching corners count as touching, but rounding decides in which, so that they are not counted here."""
    dropped = example("dropped")
    robot = dropped.four_bar()
    rng = np.random.default_rng(2)
    for _ in range(40):
        q = dropped.started(robot, rng.uniform([-1.2, -1, -np.pi], [1.2, 1, np.pi]), rng.uniform(0.1, 0.25))
        run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.5, method="contact", dt=4e-3)
        assert run.statistics["contact"]["natural_map"] < CONES
        assert run.energy[-1] < run.energy[0]


def test_a_strandbeest_walks(example):
    """It walks the distance that its lowest feet indicate."""
    found = example("strandbeest").main(duration=4.5)
    is_held(found)
    assert found["walked [m]"] > 2.5
    assert_allclose(found["walked [m]"], found["by the lowest feet [m]"], rtol=0.05)
    assert found["sideways [m]"] < 0.02
    assert found["rises and falls by [m]"] < 0.03


def test_a_passive_walker_walks_as_the_simplest_model_does(example):
    """Values of Garcia et al., up to errors of the order of the step and of the feet's mass."""
    module = example("passive_walker")
    found = module.main()
    assert found["steps"] == 7
    assert_allclose(found["half a step [rad]"], module.WIDE, rtol=0.01)
    assert_allclose(found["period"], module.PERIOD, rtol=0.01)
    assert found["cones, natural map [N s, m/s]"] < CONES


def rolled(module, spin, duration, dt=1e-3):
    """Return the spin of an ellipsoid that rolls without slip: Newton's and Euler's equations about its centre of mass, in its axes, by RK4."""
    A, low, m, g = np.array(module.SEMI_AXES), np.array([0, 0, -module.LOW]), module.MASS, 9.81
    inertia = np.diag(module.MOMENTS)
    inertia[0, 1] = inertia[1, 0] = module.PRODUCT

    def rates(n, w):
        size, turned = np.linalg.norm(A * n), -np.cross(w, n)  # the vertical in the body's axes
        r = -A * A * n / size - low
        moved = -A * A * turned / size + A * A * n * ((A * n) @ (A * turned)) / size**3  # of the point that touches
        S = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        pushed = -np.cross(w, moved) - np.cross(w, np.cross(w, r)) + g * n
        return turned, np.linalg.solve(inertia - m * S @ S, -np.cross(w, inertia @ w) + m * np.cross(r, pushed))

    start = sarrus.Rotation.from_rpy(module.TILT, module.TILT, 0.0).matrix
    x = np.array([start.T @ [0, 0, 1.0], start.T @ [0, 0, spin]])
    spins = [spin]
    for _ in range(round(duration / dt)):
        a = np.array(rates(*x))
        b = np.array(rates(*(x + dt / 2 * a)))
        c = np.array(rates(*(x + dt / 2 * b)))
        x = x + dt / 6 * (a + 2 * b + 2 * c + rates(*(x + dt * c)))
        spins.append(x[0] @ x[1] / np.linalg.norm(x[0]))
    return np.array(spins)


def test_a_rattleback_turns_one_way(example):
    """Spun in its preferred direction the rattleback continues, as the equations of rolling predict; in the other it reverses.

    Its mirror image does the same in the opposite direction.
    """
    module = example("rattleback")
    liked = module.spin_of(module.spun(module.SPIN, 1.0))
    expected = rolled(module, module.SPIN, 1.0)
    assert_allclose(liked[::50], expected[::100], atol=0.02 * module.SPIN)
    disliked = module.spin_of(module.spun(-module.SPIN, 4.5))
    assert disliked[-1] > 0.2 * module.SPIN
    mirrored = module.spin_of(module.spun(-module.SPIN, 1.0, product=-module.PRODUCT))
    assert_allclose(mirrored, -liked, atol=1e-3 * module.SPIN)
