"""Simulations of the sources: comparison with independent references and benchmark laws; every example runs.

References and their accuracy: tests/data/thesis_5_5_fourlink_sim.json, thesis_8_hslm.json, thesis_6_5_two_links.json, mls004_rolling_disk.json.
"""

import importlib
import json
import math
from itertools import pairwise
from math import hypot
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.control import PID, FeedforwardEffort
from tests.oracles.steps import rk4

ROOT = Path(__file__).parents[2]
DATA, EXAMPLES = ROOT / "tests" / "data", ROOT / "examples"
FOUR_LINKS, HSLM, TWO_LINKS, DISC = (
    json.loads((DATA / f"{name}.json").read_text())
    for name in ("thesis_5_5_fourlink_sim", "thesis_8_hslm", "thesis_6_5_two_links", "mls004_rolling_disk")
)


@pytest.fixture
def example(monkeypatch):
    """Import an example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


# ---- four links, pinned (5.5.5) ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain():
    return sarrus.mechanisms.four_link_chain()


def fall(chain, **how):
    return sarrus.simulate(chain, np.zeros(4), np.zeros(4), 10.0, **({"dt": 1e-3} | how))


ROWS = {
    name: np.array([row[name] for row in FOUR_LINKS["high_accuracy"]["rows"]]) for name in ("t", "q", "qd", "energy")
}


@pytest.mark.parametrize(
    ("tolerance", "reach", "evaluations"),
    # errors grow with the tolerance; the numbers of evaluations are those seen, with a fifth to spare
    [(1e-9, 1e-8, 9_700), (1e-10, 1e-9, 15_300), (1e-12, 1e-11, 38_500)],
)
def test_four_links_adaptive(chain, tolerance, reach, evaluations):
    """Accurate to 1e-8 rad at 10 s and before; the error per step is within the tolerance."""
    run = fall(chain, method="dopri5", rtol=tolerance, atol=tolerance, times=ROWS["t"])
    assert_allclose(run.q, ROWS["q"], rtol=0, atol=reach)
    assert_allclose(
        run.v, ROWS["qd"], rtol=0, atol=100 * reach
    )  # dense output is of one order less, over steps of 1 ms to 10 ms
    assert_allclose(run.energy, ROWS["energy"], rtol=0, atol=100 * reach)
    assert run.statistics["evaluations"] < evaluations


def test_four_links_peaks(chain):
    """The largest force of the pin, which is between the points of the thesis' plot: from steps of 1e-6 s around it."""
    for peak, component in (("peak_fx", 0), ("peak_fz", 1)):
        known = FOUR_LINKS["high_accuracy"][peak]
        # what the file gives of the time is as exact as a maximum is flat
        times = known["t"] + np.linspace(-1e-3, 1e-3, 2001)
        run = fall(chain, method="dopri5", rtol=1e-12, atol=1e-12, times=times)
        force = np.einsum("nij,nj->ni", run.frame("tip")[:, :3, :3], -run.reactions.wrenches["pin"][:, 3:])[:, [0, 2]]
        k = np.abs(force[:, component]).argmax()
        assert abs(run.t[k] - known["t"]) < 1e-4
        # of two steps' size where it is not flat: the other component moves by 1e3 N/s
        assert abs(force[k, component] - known["force_on_environment"][component]) < 1e-7


def test_four_links_as_in_the_thesis(chain, example):
    """Euler steps of 1 ms with the corrective force added to lambda: the file's run, up to rounding of 10,000 steps."""
    known = FOUR_LINKS["euler_1ms"]["values"]["explicit_analyticJdot"]
    run, constraint, correction = example("four_link_chain").as_in_the_thesis(chain, 10.0)
    tolerance = FOUR_LINKS["euler_1ms"]["tolerance_rel_self"]
    away = (run.frame("tip")[:, :3, 3] - [2, 0, 3])[:, [0, 2]]
    last = slice(0, -1)  # the file looks before each step
    for got, expected in (
        (np.abs(constraint[last]).max(axis=0), [known["peak_fx"], known["peak_fz"]]),
        (np.linalg.norm(constraint[last], axis=1).max(), known["peak_norm"]),
        (run.t[np.abs(constraint[last]).argmax(axis=0)], [known["t_peak_fx"], known["t_peak_fz"]]),
        (np.abs(correction[last]).max(axis=0), known["max_abs_corrective_force_xz"]),
        (np.abs(away[last]).max(axis=0), known["max_abs_tip_error_xz"]),
        (run.q[2500], known["q_2p5s"]),
        (run.v[2500], known["qd_2p5s"]),
        (run.q[-1], known["q_10s"]),
        (run.v[-1], known["qd_10s"]),
    ):
        assert_allclose(got, expected, rtol=tolerance, atol=0)


@pytest.mark.filterwarnings("ignore::sarrus.DriftWarning")
@pytest.mark.parametrize(
    ("method", "case"), [("euler", "explicit_analyticJdot"), ("semi_implicit", "semi_analyticJdot")]
)
def test_four_links_with_corrective_force(chain, method, case):
    """The corrective force of the closed chain does hold the tip.

    If the tip has a remaining velocity, the closed chain uses its components in the link's axes, the thesis in the world's. The runs differ by a
    fraction of the drift, a hundredth of the links' length.
    """
    known = FOUR_LINKS["euler_1ms"]["values"][case]
    run = fall(chain, method=method, stabilisation="corrective", gains=(40.0, 60.0))
    force = np.einsum("nij,nj->ni", run.frame("tip")[:, :3, :3], run.reactions.wrenches["pin"][:, 3:])
    away = np.abs(run.frame("tip")[:, :3, 3] - [2, 0, 3]).max(axis=0)
    assert_allclose(np.abs(force[:, 2]).max(), known["peak_fz"], rtol=2e-3)
    assert_allclose(away[[0, 2]], known["max_abs_tip_error_xz"], rtol=3e-2)
    # without it the tip goes three times as far
    free = fall(chain, method=method, stabilisation="none")
    assert np.abs(free.frame("tip")[:, :3, 3] - [2, 0, 3]).max() > 3 * away.max()


def test_four_links_come_to_rest(chain):
    """Half of the chain hangs from the pin, half stands on the ground; friction needs most of a minute."""
    run = sarrus.simulate(chain, np.zeros(4), np.zeros(4), 90.0, method="dopri5", rtol=1e-9, atol=1e-11, dt=1.0)
    # friction of 0.25 N m s/rad on about 2 kg m2: 10 s to a third, after a swing of 0.1 rad at 10 s
    assert_allclose(run.q[-1], FOUR_LINKS["equilibrium"]["q"], rtol=0, atol=1e-3)
    assert (np.diff(run.energy) < 1e-8).all()


# ---- two links and a reference member (6.5) ------------------------------------------------------------------------


@pytest.mark.parametrize("reference_free", [True, False])
def test_two_links_motion(reference_free):
    robot = sarrus.mechanisms.two_links(reference_free=reference_free)
    rows = TWO_LINKS["motion"]["rows"]
    times = [row["t"] for row in rows]
    run = sarrus.simulate(
        robot, robot.assemble(), np.zeros(robot.nv), 5.0, method="dopri5", rtol=1e-11, atol=1e-11, times=times
    )
    tolerance = TWO_LINKS["motion"]["tolerance"]
    for k in (0, 1):
        assert_allclose(run.q[:, k], [row["theta"] for row in rows], rtol=0, atol=tolerance)
        assert_allclose(run.v[:, k], [row["thetad"] for row in rows], rtol=0, atol=tolerance)


# ---- High Stiffness Low Mass mechanism (8.2.2) -----------------------------------------------------------------------

CONTROLLED = HSLM["pid"]["results"]["sliding"]
GAINS = {"proportional": 800.0, "integral": 1000.0, "derivative": 50.0}


@pytest.fixture(scope="module", params=[True, False], ids=["reference free", "reference in the tree"])
def hslm(request):
    return sarrus.mechanisms.hslm(reference_free=request.param)


def legs(height):
    """Return the length and the last rotation of every leg."""
    slope, reach = HSLM["definition"]["chains"][0]["gamma1"][2:4]
    across, up = reach * np.cos(slope), reach * np.sin(slope) + height
    return hypot(across, up), -np.arctan2(up, across)


def pid(height, turns=True):
    length, angle = legs(height)
    slides = [PID(f"slide{k}", target=length, **GAINS) for k in (1, 2, 3)]
    return slides + [PID(f"pitch{k}", target=angle, **GAINS) for k in (1, 2, 3) if turns]


def agree(robot, run, case):
    """Compare heights and efforts at the file's instants; all legs move alike."""
    rows = CONTROLLED[case]["rows"]
    k = np.searchsorted(run.t - run.t[0], np.array([row["t"] for row in rows]) - 1e-9)
    pose = run.frame("reference")[k]
    # steps of 1 ms: their error is below the file's
    tolerance = HSLM["pid"]["tolerance"]
    assert_allclose(pose[:, 1, 3], [row["y"] for row in rows], rtol=0, atol=tolerance)
    assert_allclose(pose[:, [0, 2], 3], 0.0, rtol=0, atol=tolerance)
    assert_allclose(pose[:, :3, :3], np.broadcast_to(np.eye(3), (len(k), 3, 3)), rtol=0, atol=tolerance)
    for joint, name in (("slide", "prismatic_force"), ("pitch", "theta2_torque")):
        for leg in (1, 2, 3):
            got = run.tau[k, robot.joint(f"{joint}{leg}").v_slice][:, 0]
            # kp, and kd times the rate's error, which is larger by 1 / 10 ms
            assert_allclose(got, [row[name] for row in rows], rtol=0, atol=1e3 * tolerance)


def test_hslm_held_then_moved_up(hslm):
    """Figures 8.3 and 8.4: released with zero integrators; then 0.25 m up."""
    start = hslm.assemble(), np.zeros(hslm.nv)
    held = sarrus.simulate(hslm, *start, 10.0, pid(0.0))
    agree(hslm, held, "sim1_hold")
    integral = held.internal_state[-1] / 1000.0
    last = CONTROLLED["sim1_hold"]["rows"][-1]
    assert_allclose(np.sort(integral), np.sort([last["int_e_d"]] * 3 + [last["int_e_th2"]] * 3), rtol=0, atol=1e-9)
    moved = sarrus.simulate(hslm, duration=10.0, controller=pid(0.25), resume=held.checkpoint)
    agree(hslm, moved, "sim2_move_up_0p25")
    for run, case in ((held, "sim1_hold"), (moved, "sim2_move_up_0p25")):
        y, known = run.frame("reference")[:, 1, 3], CONTROLLED[case]["extrema"]
        # the file's are those of samples of 0.5 ms, ours of 1 ms: of a parabola of 40 m/s2
        assert_allclose([y.min(), y.max()], [known["y_min"], known["y_max"]], rtol=0, atol=5e-6)


def test_hslm_slides_alone(hslm):
    """Figure 8.5: integrators that already carry the weight are equivalent to zero integrators with a constant force."""
    case = CONTROLLED["sim3_prismatic_only_move_up"]
    start = hslm.assemble(), np.zeros(hslm.nv)
    weight = hslm.actuator_efforts(start[0], start[1], start[1], actuated=[f"slide{k}" for k in (1, 2, 3)])
    assert_allclose(weight, case["static_prismatic_force"], rtol=0, atol=1e-9)
    carried = [FeedforwardEffort(f"slide{k}", float(weight[0])) for k in (1, 2, 3)]
    resting = sarrus.simulate(hslm, *start, 0.2, carried)
    assert_allclose(resting.q, np.broadcast_to(start[0], resting.q.shape), rtol=0, atol=1e-11)
    agree(
        hslm,
        sarrus.simulate(hslm, *start, 10.0, [*pid(0.25, turns=False), *carried]),
        "sim3_prismatic_only_move_up",
    )


def test_hslm_contradicting_set_points(hslm):
    """With set-points of two digits slides and rotations work against each other, each by 1000/s of its remaining error, so forces grow.

    With exact set-points they do not.
    """
    start = hslm.assemble(), np.zeros(hslm.nv)
    length, angle = legs(0.25)
    pushing = {}
    for name, targets in (("exact", (length, angle)), ("rounded", (round(length, 2), round(angle, 2)))):
        motors = [PID(f"slide{k}", target=targets[0], **GAINS) for k in (1, 2, 3)]
        motors += [PID(f"pitch{k}", target=targets[1], **GAINS) for k in (1, 2, 3)]
        run = sarrus.simulate(hslm, *start, 8.0, motors)
        slide, pitch = hslm.joint("slide1").v_slice, hslm.joint("pitch1").v_slice
        pushing[name] = [(run.tau[-1, of] - run.tau[6000, of])[0] / 2.0 for of in (slide, pitch)]
        left = targets[0] - run.joint("slide1")[-1, 0], targets[1] - run.joint("pitch1")[-1, 0]
        assert_allclose(pushing[name], 1000.0 * np.array(left), rtol=1e-2, atol=1e-3)
    assert np.abs(pushing["exact"]).max() < 1e-2
    assert pushing["rounded"][0] > 0.1 and pushing["rounded"][1] < -0.1


def test_hslm_free_fall_and_held(hslm):
    """8.7 as a motion, and 8.8: printed efforts of 8 digits hold the mechanism for a while."""
    start = hslm.assemble(), np.zeros(hslm.nv)
    fall = sarrus.simulate(hslm, *start, 0.01)
    ydd = HSLM["expected"]["free_fall"]["ref_acc_y"]
    # y = ydd t2 / 2 but for the change of acceleration, which is even in time: 1/24 of some 100 m/s4 by t4
    assert_allclose(fall.frame("reference")[:, 1, 3], ydd * fall.t**2 / 2, rtol=0, atol=5e-8)
    assert abs(fall.frame("reference")[-1, 1, 3] - ydd * 0.01**2 / 2) > 1e-10
    case = HSLM["expected"]["static_gamma"]
    for name, reach in (("exact", 1e-10), ("printed", 1e-7)):
        _, swing, slide, _, pitch = case[name]
        motors = [FeedforwardEffort(f"swing{k}", swing, index=1) for k in (1, 2, 3)]
        motors += [FeedforwardEffort(f"slide{k}", slide) for k in (1, 2, 3)]
        motors += [FeedforwardEffort(f"pitch{k}", pitch) for k in (1, 2, 3)]
        held = sarrus.simulate(hslm, *start, 0.2, motors)
        assert np.abs(held.q - start[0]).max() < reach


# ---- rolling disc (Li and Wu 4.6) ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "steering"), [("expected_both_torques", DISC["definition"]["tau_theta"]), ("expected_tau_theta_0", 0.0)]
)
def test_rolling_disc(case, steering):
    """Ten seconds and sixteen revolutions of the wheel; the path by quadrature."""
    d, rows = DISC["definition"], DISC[case]
    disc = sarrus.mechanisms.rolling_disc(upright=True)
    roll = d["rho"] * d["phid0"]
    v = [roll * np.cos(d["theta0"]), roll * np.sin(d["theta0"]), d["thetad0"], d["phid0"]]
    motors = [FeedforwardEffort("steer", steering), FeedforwardEffort("roll", d["tau_phi"])]
    times = [row["t"] for row in rows]
    run = sarrus.simulate(
        disc, [0, 0, d["theta0"], 0], v, 10.0, motors, method="dopri5", rtol=1e-12, atol=1e-12, times=times
    )
    known = np.array([[row[name] for name in ("x", "y", "theta", "phi")] for row in rows])
    assert_allclose(run.q, known, rtol=1e-11, atol=DISC["tolerance"])  # phi reaches 100 rad
    friction = sarrus.formulations.projected_dynamics(disc, run.q, run.v, run.tau).constraint_force[:, :2]
    known = np.array([[row["friction_force_x"], row["friction_force_y"]] for row in rows])
    assert_allclose(friction, known, rtol=0, atol=50 * DISC["tolerance"])  # of 50 N


# ---- IFToMM's benchmarks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "duration"), [(2, 10.0), (40, 20.0)])
def test_row_of_four_bars(example, n, duration):
    """IFToMM A02: through flat positions, at which the rank drops; standing rods stay parallel, energy within 1e-4 J."""
    ladder = sarrus.mechanisms.four_bar_ladder(n)
    run = sarrus.simulate(ladder, *example("iftomm").upright(ladder, 1.0), duration, dt=0.005)
    assert run.status == "finished"
    assert np.abs(run.energy - run.energy[0]).max() < 1e-4
    assert run.loop_error.max() < 1e-12
    pivots = [ladder.joint(f"pivot{k}").q_slice.start for k in range(n + 1)]
    assert np.abs(run.q[:, pivots] - run.q[:, pivots[:1]]).max() < 1e-6  # a parallelogram, no antiparallelogram
    # it went all the way round, through flat at both sides
    assert np.ptp(run.q[:, pivots[0]]) > 2 * np.pi


@pytest.mark.parametrize("n", [2, 40])
def test_row_of_four_bars_is_a_pendulum(example, n):
    """n + 1 rods rotate, and n translate with their tops: ((n + 1) / 3 + n) angle'' = ((n + 1) / 2 + n) g sin(angle), upright at zero."""
    ladder = sarrus.mechanisms.four_bar_ladder(n)
    run = sarrus.simulate(ladder, *example("iftomm").upright(ladder, 1.0), 5.0, dt=0.005)
    stiffness = ((n + 1) / 2 + n) / ((n + 1) / 3 + n) * 9.81

    def rate(t, x):
        return np.array([x[1], stiffness * math.sin(x[0])])

    angles = rk4(rate, np.array([0.0, 1.0]), 0.00125, 4000)[::4, 0]
    # the pendulum's own steps are a quarter as long and off by 1/256 as much
    assert np.abs(run.joint("pivot0")[:, 0] - angles).max() < 1e-6


@pytest.fixture(scope="module")
def bricard():
    return sarrus.mechanisms.bricard()


def turn_over(robot, duration=10.0, **how):
    """Return the initial state: along the edges of a cube, at rest."""
    return sarrus.simulate(robot, robot.assemble(), np.zeros(5), duration, **how)


@pytest.mark.parametrize(("method", "dt"), [("independent", 5e-3), ("independent", 1e-2), ("rk4", 1e-3)])
def test_bricard(bricard, method, dt):
    """IFToMM A04: energy within 1e-4 J. Off the loops the redundant row is an additional condition, so stages must stay close to them."""
    run = turn_over(bricard, method=method, dt=dt)
    assert run.status == "finished"
    assert np.abs(run.energy - run.energy[0]).max() < 1e-4
    assert run.loop_error.max() < 1e-12
    assert np.ptp(run.q[:, 0]) > 3.0  # it turns inside out
    # alternate hinges do the same
    assert_allclose(run.q, run.q[:, [0, 1, 0, 0, 1]] * [1, 1, -1, 1, -1], rtol=0, atol=1e-6)


def test_bricard_half_the_step(bricard):
    """Fourth order: half of the step gives a sixteenth of the error, in the limit of small errors."""
    times = np.linspace(0.0, 10.0, 201)
    runs = [turn_over(bricard, method="independent", dt=dt, times=times).q for dt in (1e-2, 5e-3, 2.5e-3)]
    first, second = (np.abs(a - b).max() for a, b in pairwise(runs))
    assert second < 1e-5 and 8.0 < first / second < 40.0


# ---- the examples --------------------------------------------------------------------------------------------------


NAMES = (
    "four_bar_motors",
    "four_link_chain",
    "free_flyer",
    "hslm",
    "iftomm",
    "lattices",
    "macro_micro_arm",
    "rolling_disc",
    "rover",
    "sweep",
    "three_rrr",
    "touch_down",
    "two_links",
)


def test_examples_are_all_known():
    """Examples of control have their own folder and test; so have the real-time loop and the introductory model."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*NAMES, "control_loop", "crank_rocker", "showing"}


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(example, name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "figures.png"
    found = example(name).main(output=path, duration=0.3)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert all(np.isfinite(x) for x in found.values())
    said = capsys.readouterr().out
    assert "sarrus" in said or "exact" in said


@pytest.mark.parametrize(("name", "films"), [("rover", ["rover.html"]), ("lattices", None)])
def test_example_films(example, name, films, tmp_path):
    """Each film is one page that needs no network."""
    pytest.importorskip("matplotlib")
    module = example(name)
    module.main(duration=0.05, films=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == (
        films or sorted(f"{r.name}.html" for r, *_ in module.CASES)
    )
    for path in tmp_path.iterdir():
        text = path.read_text()
        assert "<script" in text
        assert 'src="http' not in text
