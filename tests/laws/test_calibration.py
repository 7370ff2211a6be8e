"""Calibration: it recovers the dimensions behind the measurements as far as they are observable, and names unobservable ones."""

import dataclasses
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.calibration import Measurements, calibrate
from sarrus.dimensions import Dimensions, Tied
from tests.variants import scaled

EXACT = 1e-9  # [m, rad] asked for; loops are closed to 1e-13


def delta(count=16, seed=0):
    """Return a Delta robot, q at points of its workspace, and the readings of its motors' encoders."""
    robot, rng = sarrus.mechanisms.delta(), np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-0.12, 0.12, (count, 2)), rng.uniform(-0.6, -0.42, count)])
    q = robot.inverse_kinematics({"platform": points}, near=np.tile(robot.assemble(), (count, 1)))
    return robot, q, {name: robot.joint_states(q).q[name] for name in robot.actuated}


def made(robot, q, inputs, errors):
    """Return a machine with errors {dimension: error}, and its configurations for the encoder readings."""
    of = Dimensions(robot, list(inputs), list(errors))
    x = np.array(list(errors.values()))
    real = of.changed(x)
    return real, real.assemble(near=q, fixed=of.driven(inputs, x))


def closed_by_its_guide():
    """Return a slider-crank whose slide is the loop joint."""
    b, body = sarrus.Builder("slider-crank"), sarrus.Inertia.sphere(1.0, 0.1)
    for name in ("crank", "rod", "slider"):
        b.add_body(name, body)
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("pin", sarrus.Revolute("y"), "crank", "rod", at_parent=(0.3, 0, 0))
    b.add_joint("wrist", sarrus.Revolute("y"), "rod", "slider", at_parent=(1.0, 0, 0))
    b.add_joint("guide", sarrus.Prismatic("x"), "ground", "slider", at_parent=(0.2, 0, 0.05), loop=True)
    b.set_home({"motor": 0.7})
    return b.build()


@pytest.mark.parametrize("name", ["slider_crank", "closed_by_its_guide", "delta", "stewart"])
def test_derivatives_by_dimensions_are_differences(name):
    """Derivatives of frames and joints, including loop joints, with respect to shifts, rotations and offsets, also at changed dimensions."""
    robot = closed_by_its_guide() if name == "closed_by_its_guide" else getattr(sarrus.mechanisms, name)()
    leading, q = list(robot.actuated), robot.assemble()[None]
    assert name != "closed_by_its_guide" or robot.loop_joints == ("guide",)
    frame, joint = {
        "slider_crank": ("slider", "wrist"),
        "closed_by_its_guide": ("slider", "wrist"),
        "delta": ("platform", "elbow1a"),
        "stewart": ("platform", "leg1"),
    }[name]
    joints = (
        []
        if robot.joint(joint).type.nv > 1
        else [joint, *[j for j in robot.loop_joints if robot.joint(j).type.nv == 1]]
    )
    every = Dimensions(robot, leading)
    usable = every.moves(robot, q, np.zeros(len(every)), [frame]).closes
    rng = np.random.default_rng(1)
    which = rng.permutation(np.flatnonzero(usable))[:16]
    of = every.some(which)
    inputs = {j: robot.joint_states(q).q[j] for j in leading}
    x0 = 0.02 * rng.normal(size=len(of))

    def at(x):
        changed = of.changed(x)
        there = changed.assemble(near=q, fixed=of.driven(inputs, x))
        return changed, there, changed.pose(there, frame)[0], [changed.joint_states(there).q[j][0, 0] for j in joints]

    changed, there, X, _ = at(x0)
    moves = of.moves(changed, there, x0, [frame], joints)
    h = 1e-5
    for i in range(len(of)):
        step = h * np.eye(len(of))[i]
        (_, _, ahead, a), (_, _, behind, b) = at(x0 + step), at(x0 - step)
        slope = (ahead - behind)[:3, 3] / (2 * h)
        assert_allclose(X[:3, :3] @ moves.frames[frame][0, 3:, i], slope, atol=1e-7), of.names[i]
        turn = sarrus.spatial.log(behind[:3, :3].T @ ahead[:3, :3]) / (2 * h)
        assert_allclose(moves.frames[frame][0, :3, i], turn, atol=1e-7)
        for j, name_of in enumerate(joints):
            assert_allclose(moves.joints[name_of][0, i], (a[j] - b[j]) / (2 * h), atol=1e-7)


def test_geometry_of_a_delta_is_recovered_in_what_shows():
    """Every dimension has an error of 0.1 %, and 42 are observable: poses without measurements are correct, and equivalent dimensions are recovered exactly."""
    robot, q, inputs = delta()
    rng = np.random.default_rng(3)
    every = Dimensions(robot, list(inputs))
    errors = dict(zip(every.names, 3e-4 * rng.normal(size=len(every)).clip(-2, 2)))
    real, there = made(robot, q, inputs, errors)
    noise = (1e-9, 1e-9)
    found = calibrate(robot, Measurements(inputs, {"platform": real.pose(there, "platform")}, noise=noise), near=q)
    _, q2, inputs2 = delta(8, seed=5)
    _, there2 = made(robot, q2, inputs2, errors)
    again = found.robot.assemble(near=q2, fixed={name: x + found.offsets[name] for name, x in inputs2.items()})
    assert_allclose(found.robot.pose(again, "platform"), real.pose(there2, "platform"), rtol=0, atol=EXACT)

    named = calibrate(robot, Measurements(inputs, {"platform": robot.pose(q, "platform")}, noise=noise), near=q)
    assert len(named.names) == 42
    lone = [name for name in named.unseen if name.startswith("elbow1a.child")]
    assert lone == ["elbow1a.child.x", "elbow1a.child.y"] or "elbow1a.child.x" in lone
    kept = {name.split(" ")[0]: 3e-4 * rng.normal() for name in named.names}
    real, there = made(robot, q, inputs, kept)
    found = calibrate(
        robot,
        Measurements(inputs, {"platform": real.pose(there, "platform")}, noise=noise),
        near=q,
        dimensions=list(kept),
    )
    assert_allclose([found.changes[name] for name in kept], list(kept.values()), rtol=0, atol=EXACT)


def slider_crank():
    robot = sarrus.mechanisms.slider_crank(offset=0.1)
    turn = np.linspace(0.0, 6.0, 40)
    return robot, robot.follow({"motor": turn}), {"motor": turn[:, None]}


def test_what_cannot_be_told_apart_is_named():
    """Five dimensions of a slider-crank with a measured slider are observable, as docs/dimensions.md derives by hand."""
    robot, q, inputs = slider_crank()
    x = np.where([True, False, False], robot.pose(q, "slider")[:, :3, 3], np.nan)
    plane = [n for n in Dimensions(robot, ["motor"]).names if n.endswith((".x", ".z")) or n == "motor.offset"]
    found = calibrate(robot, Measurements(inputs, {"slider": x}, noise=(1e-9, 1e-9)), near=q, dimensions=plane)
    assert len(found.names) == 5
    expected = ("motor.offset", "pin.parent.x", "wrist.parent.x", "guide.parent.z", "motor.parent.x")
    assert all(name in " ".join(found.names) for name in expected)
    assert "without influence" in found.report() or not found.unseen
    out = calibrate(robot, Measurements(inputs, {"slider": robot.pose(q, "slider")[:, :3, 3]}), near=q)
    assert "pin.parent.y" in out.binding and "pin.parent.x" not in out.binding


@pytest.mark.parametrize(
    "size", [(1e-6, 1e-15), (1e-3, 1e-3), (1e3, 1e9)], ids=["micrometres", "millimetres", "kilometres"]
)
def test_units_do_not_matter(size):
    """Results for mechanisms of micrometres or of kilometres have the same relative accuracy, and the same names."""
    robot, q, inputs = slider_crank()
    real, there = made(robot, q, inputs, {"motor.offset": 0.003, "wrist.parent.x": 0.001})
    seen, answers = real.pose(there, "slider")[:, :3, 3], []
    for m, kg in ((1.0, 1.0), size):
        scaled_robot, units = scaled(robot, m, kg)
        measured = Measurements(inputs, {"slider": m * seen}, noise=(1e-9 * m, 1e-9))
        near = q * units.coordinates(robot)
        answers.append(calibrate(scaled_robot, measured, near=near, spread=(0.01 * m, 0.01)))
    usual, other = answers
    assert other.unseen == usual.unseen and other.condition == pytest.approx(usual.condition, rel=1e-6)
    assert [re.sub(r"[-+] [\d.e+-]+ ", "+ ", name) for name in other.names] == [
        re.sub(r"[-+] [\d.e+-]+ ", "+ ", name) for name in usual.names
    ]
    assert max(usual.after, other.after) < 1e-6


def test_deviations_are_those_of_many_calibrations():
    robot, q, inputs = slider_crank()
    errors = {"motor.offset": 0.003, "wrist.parent.x": 0.001}
    real, there = made(robot, q, inputs, errors)
    p = real.pose(there, "slider")[:, :3, 3]
    found = []
    for seed in range(40):
        noisy = p + 2e-4 * np.random.default_rng(seed).normal(size=p.shape)
        m = Measurements(inputs, {"slider": noisy}, noise=(2e-4, 1e-4))
        found.append(calibrate(robot, m, near=q, dimensions=list(errors)))
    values = np.array([[f.changes[name] for name in errors] for f in found])
    order = [list(errors).index(name) for name in found[0].names]
    assert_allclose(values.mean(axis=0), list(errors.values()), atol=4 * values.std(axis=0).max() / 40**0.5)
    assert_allclose(found[0].deviations, values.std(axis=0)[order], rtol=0.35)


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_deviations_of_robust_losses_are_those_of_many_calibrations(loss):
    """A tenth of the points is off by twenty deviations; outliers that the loss suppresses do not increase the estimated spread."""
    robot, q, inputs = slider_crank()
    errors = {"motor.offset": 0.003, "wrist.parent.x": 0.001}
    real, there = made(robot, q, inputs, errors)
    p = real.pose(there, "slider")[:, :3, 3]
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noisy, bad = p + 2e-4 * rng.normal(size=p.shape), rng.random(len(p)) < 0.1
        noisy[bad] += 40e-4 * rng.normal(size=(bad.sum(), 3))
        m = Measurements(inputs, {"slider": noisy}, noise=(2e-4, 1e-4))
        found.append(calibrate(robot, m, near=q, dimensions=list(errors), loss=loss))
    values = np.array([[f.changes[name] for name in errors] for f in found])
    order = [list(errors).index(name) for name in found[0].names]
    stated = np.median([f.deviations for f in found], axis=0)
    assert_allclose(values.mean(axis=0), list(errors.values()), atol=4 * values.std(axis=0).max() / 40**0.5)
    assert_allclose(stated, values.std(axis=0)[order], rtol=0.35)  # by "huber" 1.5 and 1.9 times as much before


def test_an_outlier_that_pulls_at_all_residuals_is_found():
    """One of 50 deviations among 27 numbers for 14 combinations affects all residuals, and their estimated spread."""
    robot, q, inputs = delta(9, 0)
    every, rng = Dimensions(robot, list(inputs), None), np.random.default_rng(0)
    names = [name for name in every.names if name.endswith((".x", ".offset"))][:30]
    real, there = made(robot, q, inputs, {name: 1e-3 * rng.standard_normal() for name in names})
    seen = real.pose(there, "platform")[:, :3, 3] + 1e-4 * rng.standard_normal((9, 3))
    clean = calibrate(robot, Measurements(inputs, {"platform": seen}), dimensions=names, near=q, loss="cauchy")
    bad = seen.copy()
    bad[8] += 50e-4 * np.array([0.0, 0.6, 0.8])
    found = calibrate(robot, Measurements(inputs, {"platform": bad}), dimensions=names, near=q, loss="cauchy")
    assert {position for _, position in found.outliers} == {8}
    off = np.array([found.changes[name] - clean.changes[name] for name in names])
    assert np.abs(off).max() < 3e-3  # 14e-3 where it is believed


def test_numbers_that_are_few_are_warned_of():
    robot, q, inputs = delta(5)
    seen = robot.pose(q, "platform")[:, :3, 3] + 1e-4 * np.random.default_rng(0).standard_normal((5, 3))
    with pytest.warns(
        sarrus.ModelWarning, match="15 measured numbers are too few for .* combinations .* fits the noise"
    ):
        calibrate(robot, Measurements(inputs, {"platform": seen}), near=q)


def test_distances_and_angles_of_joints_are_enough_and_outliers_are_not_believed():
    robot, q, inputs = slider_crank()
    errors = {"motor.offset": 0.004, "wrist.parent.x": 0.002, "guide.offset": -0.003}
    of = Dimensions(robot, ["motor"], list(errors), read=["guide"])
    x = np.array(list(errors.values()))
    real = of.changed(x)
    there = real.assemble(near=q, fixed=of.driven(inputs, x))
    reading = real.joint_states(there).q["guide"][:, 0] + 0.003
    distance = np.linalg.norm(real.pose(there, "slider")[:, :3, 3] - real.pose(there, "pin.parent")[:, :3, 3], axis=1)
    distance[7] += 0.05
    m = Measurements(
        inputs, distances={("pin.parent", "slider"): distance}, joints={"guide": reading}, noise=(1e-6, 1e-6)
    )
    robust = calibrate(robot, m, near=q, dimensions=list(errors), loss="cauchy")
    assert_allclose([robust.changes[name] for name in errors], x, atol=2e-6)
    assert robust.outliers == (("pin.parent to slider", 7),)
    squares = calibrate(robot, m, near=q, dimensions=list(errors), loss="squares")
    assert abs(squares.changes["wrist.parent.x"] - 0.002) > 1e-4


REFUSED = {
    "nothing measured": (lambda r, q, i: calibrate(r, Measurements(i)), sarrus.ModelError, "no measurements"),
    "loss": (lambda r, q, i: calibrate(r, Measurements(i), loss="l1"), sarrus.ModelError, "'huber' or 'cauchy'"),
    "several losses": (
        lambda r, q, i: calibrate(r, Measurements(i), loss=np.zeros(2)),
        sarrus.ModelError,
        "'huber' or 'cauchy'",
    ),
    "one spread": (
        lambda r, q, i: calibrate(r, Measurements(i, {"slider": np.zeros((40, 3))}), spread=0.01),
        sarrus.ShapeError,
        "spread must be two numbers",
    ),
    "one noise": (
        lambda r, q, i: calibrate(r, Measurements(i, noise=1e-4)),
        sarrus.ShapeError,
        "noise must be two numbers",
    ),
    "no frames": (
        lambda r, q, i: calibrate(r, Measurements(i, None)),
        TypeError,
        "frames must be a mapping",
    ),
    "rows": (
        lambda r, q, i: calibrate(r, Measurements(i, {"slider": np.zeros((3, 3))})),
        sarrus.ShapeError,
        r"\(40, 3\)",
    ),
    "frame": (
        lambda r, q, i: calibrate(r, Measurements(i, {"slidr": np.zeros((40, 3))})),
        sarrus.NameNotFoundError,
        "slider",
    ),
    "dimension": (
        lambda r, q, i: calibrate(r, Measurements(i, {"slider": np.zeros((40, 3))}), dimensions=["pin.parent.w"]),
        sarrus.NameNotFoundError,
        "pin.parent",
    ),
    "near": (
        lambda r, q, i: calibrate(r, Measurements(i, {"slider": np.zeros((40, 3))}), near=np.zeros((3, r.nq))),
        sarrus.ShapeError,
        "near",
    ),
    "not determined": (
        lambda r, q, i: calibrate(
            sarrus.mechanisms.double_pendulum(), Measurements({"elbow": np.zeros(4)}, {"lower": np.zeros((4, 3))})
        ),
        sarrus.StateError,
        "do not determine",
    ),
    "inputs": (
        lambda r, q, i: calibrate(r, Measurements([1.0], {"slider": np.zeros((1, 3))})),
        TypeError,
        "mapping of joints",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call(*slider_crank())


FOUR_BAR = sarrus.mechanisms.four_bar()
OF = Dimensions(FOUR_BAR, ["motor"], ["pin1.parent.x", "motor.offset"])
WRONG_CALLS = {
    "no mechanism": (lambda: Dimensions("x", ["motor"]), TypeError, "robot must be a Mechanism"),
    "no names": (lambda: Dimensions(FOUR_BAR, None), TypeError, "leading must be names"),
    "a number of names": (lambda: Dimensions(FOUR_BAR, ["motor"], read=3), TypeError, "read must be names"),
    "unknown dimension": (lambda: Dimensions(FOUR_BAR, ["motor"], ["pin1.x"]), sarrus.NameNotFoundError, "no dimension is named 'pin1.x'"),
    "index beyond": (lambda: OF.some([2]), sarrus.ModelError, "those of 2 dimensions"),
    "half an index": (lambda: OF.some([0.5]), sarrus.ModelError, "indices must be integers"),
    "changes without names": (lambda: OF.numbers([1.0]), TypeError, "changes must be a mapping"),
    "a change that is no number": (lambda: OF.numbers({"motor.offset": "x"}), TypeError, "change of 'motor.offset'"),
    "too few changes": (lambda: OF.changed([1e-3]), sarrus.ShapeError, r"x must be \(..., 2\)"),
    "too many changes": (lambda: OF.variants(np.zeros((4, 3))), sarrus.ShapeError, r"x must be \(..., 2\)"),
    "readings without names": (lambda: OF.driven([0.1], np.zeros(2)), TypeError, "inputs must be a mapping"),
    "readings in words": (lambda: OF.driven({"motor": "x"}, np.zeros(2)), sarrus.ShapeError, "inputs of 'motor' must be"),
    "frames by number": (lambda: OF.moves(FOUR_BAR, FOUR_BAR.assemble()[None], np.zeros(2), [1]), TypeError, "frames must be names"),
    "places in words": (lambda: OF.moves(FOUR_BAR, FOUR_BAR.assemble()[None], np.zeros(2), []).numbers("x"), TypeError, "places must be a mapping"),
    "places that are no slices": (lambda: OF.moves(FOUR_BAR, FOUR_BAR.assemble()[None], np.zeros(2), []).numbers({"a": 1}), TypeError, "must be slices"),
    "no derivatives": (lambda: sarrus.dimensions.Moves(OF, None, np.zeros(2)), TypeError, "Dimensions.moves creates both"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_calls_of_dimensions(name):
    call, error, message = WRONG_CALLS[name]
    with pytest.raises(error, match=message):
        call()


# ---- tied dimensions, and a Delta printer ----------------------------------------------------------------------------

RODS = [f"ball{k}{side}.parent.z" for k in (1, 2, 3) for side in "ab"]
PRINTER = [
    *(f"carriage{k}.offset" for k in (1, 2, 3)),
    "tower1.parent.rz",
    "tower2.parent.rz",
    Tied("radius", [f"carriage{k}.parent.x" for k in (1, 2, 3)]),
    Tied("arm", dict.fromkeys(RODS, -1.0)),
]


def spiral(count, radius=0.12):
    turn, r = 2.399963 * np.arange(count), radius * np.sqrt((np.arange(count) + 0.5) / count)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), np.zeros(count)])


class Printer:
    """Delta printer with errors of its seven dimensions, whose firmware has the nominal ones."""

    robot = sarrus.mechanisms.delta_printer()

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.errors = np.array([3e-4, -5e-4, 2e-4, 2e-3, -3e-3, 1.5e-3, 1e-3]) * rng.choice([-1, 1], 7)
        self.of = Dimensions(self.robot, self.robot.actuated, PRINTER)
        self.real = self.of.changed(self.errors)

    def commanded(self, robot, points, offsets):
        """Return q of a model with the nozzle at the points, and the readings of its motors."""
        q = robot.inverse_kinematics({"nozzle": points}, near=np.tile(robot.assemble(), (len(points), 1)))
        return q, {name: robot.joint_states(q).q[name] - offsets.get(name, 0.0) for name in robot.actuated}

    def heights(self, q, inputs):
        """Return the true heights of the nozzle."""
        q = self.real.assemble(near=q, fixed=self.of.driven(inputs, self.errors))
        return self.real.pose(q, "nozzle")[:, 2, 3]

    def probed(self, count, noise, wrong):
        """Return q and readings at touches of the bed, with noise, and with deviations {touch: number of deviations}."""
        points = spiral(count)
        for _ in range(5):
            q, inputs = self.commanded(self.robot, points, {})
            points[:, 2] -= self.heights(q, inputs)
        points[:, 2] += noise * np.random.default_rng(count).normal(size=count)
        points[list(wrong), 2] += noise * np.array(list(wrong.values()))
        return self.commanded(self.robot, points, {})

    def flatness(self, found):
        """Return the largest difference in height on the bed, as the calibrated firmware moves the nozzle [m]."""
        return np.ptp(self.heights(*self.commanded(found.robot, spiral(100), found.offsets)))


def on_the_bed(count):
    return {"nozzle": np.column_stack([np.full((count, 2), np.nan), np.zeros(count)])}


@pytest.mark.parametrize(
    ("count", "noise", "stated"), [(50, 2e-5, True), (24, 2e-6, False)], ids=["stated noise", "estimated noise"]
)
def test_a_wrong_touch_of_a_delta_printer_is_named(count, noise, stated):
    """One touch of 50 deviations: it is named first, and the bed is as flat as without it; also if the noise is unknown."""
    printer, found = Printer(seed=0), []
    for wrong in ({}, {17: 50.0}):
        q, inputs = printer.probed(count, noise, wrong)
        measured = Measurements(inputs, on_the_bed(count), noise=(noise, noise) if stated else None)
        found.append(calibrate(printer.robot, measured, dimensions=PRINTER, near=q))
        assert 0.5 * noise < found[-1].noise[0] < 2.0 * noise
        assert set(found[-1].changes) == {d if isinstance(d, str) else d.name for d in PRINTER}
    without, with_it = found
    assert with_it.outliers[0] == ("nozzle", 17) and len(with_it.outliers) <= 3
    assert ("nozzle", 17) not in without.outliers
    flat = [printer.flatness(x) for x in found]
    assert flat[1] < flat[0] + noise and flat[1] < 3 * noise
    report = with_it.report()
    assert "outlier: nozzle at position 17, " in report and " standard deviations" in report and " m\n" in report


def test_derivatives_by_tied_dimensions_are_sums_of_those_of_their_members():
    """Also if a dimension is a member of two ties, and an encoder's offset is tied."""
    robot = sarrus.mechanisms.delta_printer()
    q = robot.inverse_kinematics({"nozzle": spiral(4)}, near=np.tile(robot.assemble(), (4, 1)))
    members = [*RODS, "carriage1.offset", "carriage2.offset"]
    ties = [Tied("arms", RODS), Tied("one arm", {RODS[0]: 2.0}), Tied("ends", {members[-2]: 1.0, members[-1]: -0.5})]
    weights = np.zeros((8, 3))
    weights[:6, 0], weights[0, 1], weights[6:, 2] = 1.0, 2.0, (1.0, -0.5)
    x = np.array([1e-3, -2e-4, 5e-4])
    apart, tied = (Dimensions(robot, robot.actuated, names) for names in (members, ties))
    assert_allclose(tied.changed(x).pose(q, "rod1a"), apart.changed(weights @ x).pose(q, "rod1a"))
    inputs = {name: robot.joint_states(q).q[name][:, 0] for name in robot.actuated}
    at = [of.changed(y).assemble(near=q, fixed=of.driven(inputs, y)) for of, y in ((tied, x), (apart, weights @ x))]
    assert_allclose(*at, atol=1e-12)
    moves = [
        of.moves(of.changed(y), at[0], y, ["nozzle"], ["carriage1"]) for of, y in ((tied, x), (apart, weights @ x))
    ]
    assert_allclose(moves[0].frames["nozzle"], moves[1].frames["nozzle"] @ weights, atol=1e-12)
    assert moves[0].closes.all() and tied.units == ("m", "m", "m")
    assert_allclose(tied.values([1e-3, 0.0, 0.0]), [-0.333, -0.167, 0.0], atol=1e-12)
    assert np.isnan(Dimensions(robot, [], [Tied("unequal", {RODS[0]: 1.0, RODS[1]: 2.0})]).values()).all()


def test_a_tie_is_checked():
    robot = sarrus.mechanisms.delta_printer()
    with pytest.raises(sarrus.ModelError, match="coefficients other than 0"):
        Tied("arm", {"a.length": 0.0})
    with pytest.raises(TypeError, match="members of 'arm' must be"):
        Tied("arm", [])
    with pytest.raises(sarrus.NameNotFoundError, match=r"no dimension is named 'ball1a\.parent\.w'"):
        Dimensions(robot, [], [Tied("arm", ["ball1a.parent.w"])])
    with pytest.raises(sarrus.ModelError, match="named twice"):
        Dimensions(robot, [], [Tied("arm", RODS), Tied("arm", RODS[:1])])
    with pytest.raises(TypeError, match=r"names, each a str, or Tied\(name, members\)"):
        Dimensions(robot, [], [3])


def test_readings_may_have_one_axis():
    of = Dimensions(sarrus.mechanisms.four_bar(), ["motor"], ["motor.offset"])
    assert_allclose(of.driven({"motor": [0.0, 1.0]}, [0.1])["motor"], [[0.1], [1.1]])
    with pytest.raises(sarrus.ShapeError, match=r"inputs of 'motor' must be \(n,\)"):
        of.driven({"motor": np.zeros((4, 2))}, [0.1])


def scale(robot):
    """Return the tie of all placements of joints that scales the whole mechanism: members alone open its loops."""
    of = Dimensions(robot, [])
    lengths = {n: x for n, x in zip(of.names, of.values()) if x and n.endswith((".x", ".y", ".z"))}
    return Tied("scale", lengths)


@pytest.mark.parametrize("name", ["bennett", "goldberg_5r", "sarrus_linkage", "four_bar"])
def test_members_that_close_the_loops_only_together(name):
    """An overconstrained linkage that is scaled: its frames move in proportion to their positions, and its angles stay."""
    robot = getattr(sarrus.mechanisms, name)()
    lead = [robot.joints[0]]
    q = robot.assemble()[None]
    frame, tie = robot.bodies[-1], scale(robot)
    assert len(tie.coefficients) > 1
    every = Dimensions(robot, lead, list(tie.coefficients)).moves(robot, q, np.zeros(len(tie.coefficients)), [frame])
    moves = Dimensions(robot, lead, [tie]).moves(robot, q, np.zeros(1), [frame], lead)
    assert moves.closes.all() and moves.together[0] == (not every.closes.all()) == (name in ("bennett", "goldberg_5r"))
    X = robot.pose(q, frame)[0]
    expected = np.concatenate([np.zeros(3), X[:3, :3].T @ X[:3, 3]])
    assert_allclose(moves.frames[frame][0, :, 0], expected, atol=1e-9)
    assert_allclose(moves.joints[lead[0]], 0.0, atol=1e-12)
    slides = [j.v_slice.start for j in map(robot.joint, robot.joints) if j.kind == "Prismatic"]
    assert_allclose(np.delete(moves.coordinates()[0, :, 0], slides), 0.0, atol=1e-9)


def test_an_overconstrained_linkage_is_calibrated_by_a_tie():
    robot = sarrus.mechanisms.bennett()
    tie, inputs = scale(robot), {robot.joints[0]: np.linspace(0.5, 1.5, 6)}
    real = Dimensions(robot, list(inputs), [tie]).changed([0.01])
    frame = robot.bodies[-1]
    seen = real.pose(real.follow(inputs, robot.assemble()), frame)[:, :3, 3]
    near = robot.follow(inputs, robot.assemble())
    found = calibrate(robot, Measurements(inputs, {frame: seen}), dimensions=[tie], near=near)
    assert_allclose(found.changes["scale"], 0.01, atol=EXACT)
    assert found.binding == ()


def test_estimated_noise_of_exact_measurements():
    """Measurements without noise: the estimate is limited by rounding."""
    robot = sarrus.mechanisms.four_bar()
    dimensions = sarrus.dimensions.Dimensions(robot, ["motor"], ["pin1.parent.x"])
    turn = np.linspace(0.0, 2.0, 11)
    seen = dimensions.changed([1e-3])
    points = seen.pose(seen.follow({"motor": turn}), "coupler")[:, :3, 3]
    found = calibrate(
        robot, Measurements({"motor": turn}, {"coupler": points}, noise=None), dimensions=["pin1.parent.x"]
    )
    assert found.changes["pin1.parent.x"] == pytest.approx(1e-3, abs=1e-9)


def test_ties_from_members_of_another():
    tied = sarrus.dimensions.Tied("arm", {"a.length": 1.0, "b.length": -1.0})
    assert dataclasses.replace(tied, name="other").coefficients == tied.coefficients
