"""Synthesis: it recovers the lengths behind a curve and satisfies its constraints; budgets agree with random mechanisms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.analysis.closing import on_its_tree
from sarrus.design import (
    Clearance,
    FramePath,
    JointAngle,
    MotorEfforts,
    Reaction,
    TransmissionAngle,
    Variable,
    _Problem,
    design,
    tolerances,
)
from sarrus.dimensions import Dimensions, Tied, checked_inputs

CRANK = {"motor": np.linspace(0.3, 2.4, 8)}
LENGTHS = [Variable(name, -0.12, 0.12) for name in ("pin1.parent.x", "pin2.parent.x", "pin2.child.x", "pivot.parent.x")]


def four_bar():
    b = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0).to_builder()
    b.add_frame("tracer", "coupler", (0.5, 0, 0.3))
    return b.build()


def other_points(robot):
    """Return points of a four-bar with other lengths."""
    x = {
        "pin1.parent": (0.44, 0, 0),
        "pin2.parent": (1.05, 0, 0),
        "pin2.child": (0.93, 0, 0),
        "pivot.parent": (1.04, 0, 0),
    }
    other = robot.replace(placements=x)
    return other.pose(other.follow(CRANK), "tracer")[:, :3, 3]


def objectives(robot):
    points = other_points(robot)
    points[2] = np.nan
    return {
        "path": FramePath("tracer", points, scale=0.5),
        "poses": FramePath("tracer", robot.pose(robot.follow(CRANK), "tracer"), scale=0.5, turn=0.1),
        "angle": JointAngle("pivot", np.linspace(1.2, 1.6, 8)),
        "of a joint that closes": JointAngle("pin2", np.linspace(1.2, 1.6, 8), scale=2.0),
        "transmission": TransmissionAngle("pin2", least=1.5),
        "efforts": MotorEfforts({"motor": np.full(8, 6.0)}, {"motor": np.zeros(8)}),
        "clearance": Clearance(1.5),
    }


def rough_four_bar():
    """Return a four-bar with friction, springs and a rotor, also in its loop joint."""
    b = four_bar().to_builder()
    b.set_joint("pin2", sarrus.Revolute("y", stiffness=3.0, damping=0.5, friction=0.3, rest=0.2))
    b.set_joint("pivot", sarrus.Revolute("y", friction=0.2, armature=0.1))
    return b.build()


def rod_bar():
    """Return a four-bar whose coupler is a massless rod."""
    b = sarrus.Builder("rod-bar")
    for name, length in (("crank", 0.4), ("rocker", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0, 0, length)))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint(
        "pivot", sarrus.Revolute("y"), "ground", "rocker", at_parent=sarrus.Transform.from_translation((1.0, 0, 0))
    )
    b.add_distance("rod", ("crank", (0, 0, 0.4)), ("rocker", (0, 0, 0.9)), length=1.1)
    return b.build()


def rates(robot, count=3):
    rng = np.random.default_rng(1)
    return [{name: 4.0 * rng.normal(size=count) for name in robot.actuated} for _ in range(2)]


def inputs(robot, joints=None):
    start = robot.joint_states(robot.assemble()).q
    return {
        name: start[name][0] + 0.3 + np.linspace(0.0, 0.4, 3) * (k + 1)
        for k, name in enumerate(joints or robot.actuated)
    }


# mechanism, joints that lead, dimensions, axes of the reactions that it determines, joints with such
EXACT = {
    "four_bar": (rough_four_bar, None, ["pin1.parent.x", "pin2.parent.x", "pin2.child.z", "pivot.parent.x", "motor.parent.ry"], "xz", ["motor", "pin1", "pin2"]),
    "slider_crank": (sarrus.mechanisms.slider_crank, None, ["pin.parent.x", "wrist.child.z", "guide.parent.z", "guide.parent.ry"], "xz", ["wrist", "guide"]),
    "led elsewhere": (sarrus.mechanisms.slider_crank, ["pin"], ["pin.parent.x", "wrist.child.z", "guide.parent.z"], "xz", ["pin"]),
    "rod_bar": (rod_bar, None, ["rod.length", "pivot.parent.x", "motor.parent.ry"], "xz", ["pivot"]),
    "redundant": (lambda: sarrus.mechanisms.five_bar(actuated=3), ["left_motor", "right_motor"], ["pin.parent.x", "left_elbow.parent.z"], "", []),
    "delta": (sarrus.mechanisms.delta, None, ["motor1.parent.x", "elbow2a.parent.rx", "elbow2a.child.z", "ball1a.child.y"], "xyz", ["elbow2a", "ball1a"]),
}  # fmt: skip


def measured(of, robot, q, length):
    """Return the rows of one mechanism by functions of a state."""
    if isinstance(of, Clearance):
        slides = {"Prismatic": [True], "Free": [False] * 3 + [True] * 3}
        kinds = [slides.get(robot.joint(name).kind, [False] * robot.joint(name).nv) for name in robot.joints]
        C, motors = (
            np.where(np.concatenate(kinds), length, 1.0),
            [robot.joint(name).v_slice.start for name in robot.actuated],
        )
        seen = []
        for J in robot.constraint_jacobian(q) * C:
            _, size, V = np.linalg.svd(J)
            free = V[(size > 1e-9 * size[0]).sum() :]
            seen.append(np.linalg.svd(free[:, motors], compute_uv=False).min())
        return np.maximum(of.least - np.array(seen), 0.0)
    v = robot.complete_velocity(q, of.velocity)
    a = robot.complete_acceleration(q, v, of.acceleration)
    if isinstance(of, MotorEfforts):
        u = robot.actuator_efforts(q, v, a)
        return (np.sign(u) * np.maximum(np.abs(u) - of.limit, 0.0)).ravel()
    where = ["xyz".index(axis) + 3 for axis in of.axes]
    return np.maximum(np.linalg.norm(robot.joint_wrenches(q, v, a)[of.joint][:, where], axis=1) - of.limit, 0.0)


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_of_forces_are_differences_over_mechanisms_built_anew(name):
    """Differences of fourth order; rows and derivatives are those of functions of a state, without variants."""
    make, leading, names, axes, joints = EXACT[name]
    robot = make()
    way, (velocity, acceleration) = inputs(robot, leading), rates(robot)
    of = [Clearance(5.0), *(Reaction(joint, velocity, acceleration, axes) for joint in joints)]
    of += [MotorEfforts(velocity, acceleration), MotorEfforts(velocity, acceleration, limit=0.5)] if axes else []
    x, h = 0.003 * np.random.default_rng(0).normal(size=len(names)), 1e-4
    for each in of:
        problem = _Problem(robot, checked_inputs(robot, way), [Variable(n, -1.0, 1.0) for n in names], [each], None)

        def rows(x, each=each, problem=problem):
            other = sarrus.Mechanism(problem.dimensions.changed(x).description)
            return measured(each, other, other.follow(way), robot._length)

        slopes = np.stack([(8 * (rows(x + h * e) - rows(x - h * e)) - (rows(x + 2 * h * e) - rows(x - 2 * h * e))) / (12 * h)
                           for e in np.eye(len(x))], axis=-1)  # fmt: skip
        assert np.abs(slopes).max() > 1e-3
        assert_allclose(problem.residual(x), rows(x), atol=1e-9 * np.abs(rows(x)).max())
        assert_allclose(problem.jacobian(x), slopes, atol=1e-8 * np.abs(slopes).max())


@pytest.mark.parametrize("name", ["path", "poses", "angle", "of a joint that closes", "transmission"])
def test_derivatives_are_differences_of_rows(name):
    robot = four_bar()
    problem = _Problem(robot, checked_inputs(robot, CRANK), LENGTHS, [objectives(robot)[name]], None)
    x, h = np.array([0.01, -0.02, 0.015, 0.03]), 1e-5
    ends = [(problem.residual(x + h * e), problem.residual(x - h * e)) for e in np.eye(4)]
    slopes = np.stack([(ahead - behind) / (2 * h) for ahead, behind in ends], axis=-1)
    assert np.abs(slopes).max() > 1e-3
    assert_allclose(problem.jacobian(x), slopes, rtol=0, atol=1e-6 * max(1.0, np.abs(slopes).max()))


def test_a_row_means_what_it_says():
    robot = four_bar()
    q = robot.follow(CRANK)
    variants, every = robot.variants(gravity=[(0, 0, -9.81)] * 2), np.stack([q, q])
    of = objectives(robot)
    v = robot.complete_velocity(q, {"motor": np.full(8, 6.0)})
    u = robot.actuator_efforts(q, v, robot.complete_acceleration(q, v, {"motor": np.zeros(8)}))
    assert_allclose(of["efforts"].rows(variants, every), [u.ravel()] * 2, atol=1e-9)
    limited = MotorEfforts({"motor": np.full(8, 6.0)}, {"motor": np.zeros(8)}, limit=2.0).rows(variants, every)[0]
    assert_allclose(limited, np.sign(u[:, 0]) * np.maximum(abs(u[:, 0]) - 2.0, 0.0), atol=1e-9)
    angle = robot.joint_states(q).q["pin2"][:, 0]
    lacking = TransmissionAngle("pin2", least=1.2).rows(variants, every)[0]
    assert_allclose(lacking, np.maximum(1.2 - np.abs(np.arcsin(np.sin(angle))), 0.0), atol=1e-12)
    assert_allclose(Clearance(2.0).rows(variants, every)[1], np.maximum(2.0 - robot.mobility_map(q).actuation, 0.0))


def test_lengths_that_made_a_curve_are_found():
    robot = four_bar()
    made = design(robot, CRANK, LENGTHS, [FramePath("tracer", other_points(robot))], starts=32, improved=3)
    assert made.cost < 1e-20 < made.first_cost
    assert_allclose(list(made.changes.values()), [0.04, -0.05, 0.03, 0.04], atol=1e-7)
    assert_allclose(made.robot.pose(made.q, "tracer")[:, :3, 3], other_points(robot), atol=1e-9)
    assert np.abs(made.robot.constraint_residual(made.q)).max() < 1e-9
    assert 1 <= made.closed <= made.starts == 32


def test_a_constraint_holds_in_what_is_made():
    """The curve alone leads to a bad transmission angle; the constraint limits it, at the expense of the curve."""
    robot = four_bar()
    path, kept = FramePath("tracer", other_points(robot)), TransmissionAngle("pin2", least=np.radians(54), scale=1e-3)

    def least(made):
        return np.abs(np.arcsin(np.sin(made.robot.joint_states(made.q).q["pin2"][:, 0]))).min()

    free, held = (design(robot, CRANK, LENGTHS, of, starts=16, improved=2) for of in ([path], [path, kept]))
    assert held.largest[1] < np.radians(0.1) and held.largest[0] > free.largest[0]
    impossible = design(
        robot, CRANK, LENGTHS, [path, TransmissionAngle("pin2", least=np.radians(70))], starts=4, improved=1
    )
    assert impossible.largest[1] > np.radians(10)  # which is told
    assert least(free) < np.radians(53) < np.radians(53.9) < least(held)


def test_nothing_that_closes_is_an_error():
    robot = four_bar()
    with pytest.raises(sarrus.AssemblyError, match="wider bounds"):
        design(
            robot, CRANK, [Variable("pivot.parent.x", 5.0, 6.0)], [FramePath("tracer", other_points(robot))], starts=4
        )


@pytest.mark.parametrize("name", ["slider_crank", "delta", "double_pendulum"])
def test_budgets_are_those_of_mechanisms_drawn_at_random(name):
    robot = getattr(sarrus.mechanisms, name)()
    if name == "delta":
        inputs = {j: [0.0, 0.3] for j in robot.actuated}
        of, spread = (
            ["platform.x", "platform.z", "platform.rx"],
            {"joints.x": 2e-4, "joints.z": 2e-4, "motor1.offset": 1e-3},
        )
    elif name == "double_pendulum":  # which has no loops
        inputs, of = {j: [0.3, 1.0] for j in robot.joints}, ["lower.x", "lower.z"]
        spread = {"joints.x": 2e-4, "joints.ry": 1e-3}
    else:
        inputs, of = {"motor": [0.6, 2.0]}, ["slider.x", "guide", "wrist.child.z"]
        spread = {"joints.x": 5e-5, "joints.z": 5e-5, "joints.y": 1e-4}
    budget = tolerances(robot, spread, inputs, of, samples=4000)
    assert budget.lost == 0
    assert_allclose(
        budget.drawn, budget.first_order, rtol=0.06, atol=1e-12
    )  # of 4000 draws a deviation is known to 1.1 %
    assert_allclose(budget.first_order**2, np.sum(budget.parts**2, axis=-1))
    assert (budget.worst > 2.5 * budget.drawn)[budget.drawn > 1e-9].all()
    assert ("pin.parent.y" in budget.binding) == (name == "slider_crank")
    # one dimension alone, by a mechanism that has it
    j = int(np.argmax(budget.parts[0, 0]))
    alone = tolerances(robot, {budget.names[j]: budget.spread[j]}, inputs, of, samples=2000)
    assert_allclose(alone.drawn[:, 0], budget.parts[:, 0, j], rtol=0.08)
    assert budget.names[j] in budget.report()


def test_at_a_singular_position_a_budget_says_so():
    """The crank of a slider-crank with a driven slider is in line; nearby, the contributions are finite."""
    robot = sarrus.mechanisms.slider_crank()
    q = robot.follow({"motor": [np.pi / 2, 0.0]})
    moves = Dimensions(robot, ["guide"], ["wrist.parent.x"]).moves(robot, q, np.zeros(1), ["slider"], ["motor"])
    assert moves.determined.tolist() == [True, False] and moves.closes.all()
    assert np.isfinite(moves.joints["motor"][0]).all() and np.isnan(moves.joints["motor"][1]).all()


def test_minimax_makes_the_largest_residuals_equal():
    """Chebyshev: at the least of the largest residuals, p + 1 residuals have this size, or a variable is at its bound."""
    robot = four_bar()
    points = other_points(robot) + [0, 0, 0.01] * np.sin(np.arange(8))[:, None]
    options = {"starts": 4, "improved": 2}
    squares, largest = (
        design(robot, CRANK, LENGTHS, [FramePath("tracer", points * [1, np.nan, 1])], minimax=minimax, **options)
        for minimax in (False, True)
    )
    size = np.abs(largest.rows)
    assert_allclose(size.max(), largest.cost, rtol=1e-12)
    assert largest.cost < 0.95 * np.abs(squares.rows).max()
    assert (size > largest.cost * (1 - 1e-5)).sum() + len(largest.at_bounds) >= len(LENGTHS) + 1
    report = largest.report()
    assert "FramePath: largest residual" in report and "pin1.parent.x" in report and " m" in report
    assert_allclose(largest.values["pin1.parent.x"], 0.4 + largest.changes["pin1.parent.x"])
    assert "pin1.parent.x: " in repr(largest)


def test_tied_variables_stay_equal():
    """Rods of a parallelogram printer of one length: the design has one variable, and derivatives of differences."""
    printer = sarrus.mechanisms.delta_printer()
    arm = Tied("arm", {f"ball{k}{side}.parent.z": -1.0 for k in (1, 2, 3) for side in "ab"})
    longer = Dimensions(printer, printer.actuated, [arm]).changed([2e-3])
    inputs = {name: np.array([0.28, 0.3, 0.29]) + 0.01 * k for k, name in enumerate(printer.actuated)}
    points = longer.pose(longer.follow(inputs), "nozzle")[:, :3, 3]
    made = design(printer, inputs, [Variable(arm, -0.01, 0.01)], [FramePath("nozzle", points)], starts=3, improved=1)
    assert_allclose(made.changes["arm"], 2e-3, atol=1e-9)
    assert_allclose(made.values["arm"], 0.336, atol=1e-9)
    lengths = [joint.at_parent.translation[2] for joint in made.robot.description.joints if joint.name[:4] == "ball"]
    assert_allclose(lengths, -0.336, atol=1e-9)


def test_tied_errors_have_one_share_and_units():
    robot = sarrus.mechanisms.slider_crank()
    crank, inputs = Tied("crank", ["pin.parent.x"]), {"motor": [0.6, 2.0]}
    ends = Tied("both", {"pin.parent.x": 1.0, "wrist.parent.x": 1.0})
    budget = tolerances(robot, {crank: 5e-5, "motor.offset": 1e-3}, inputs, ["slider.x", "wrist"], samples=0)
    assert (
        budget.names == ("crank", "motor.offset") and budget.units == ("m", "rad") and budget.units_of == ("m", "rad")
    )
    assert "drawn" not in budget.report()
    assert "5e-05 m causes" in budget.report() and "0.001 rad causes" in budget.report()
    alone = tolerances(robot, {"pin.parent.x": 5e-5, "wrist.parent.x": 5e-5}, inputs, ["slider.x"], samples=0)
    both = tolerances(robot, {ends: 5e-5}, inputs, ["slider.x"], samples=2000)
    parts = alone.parts[:, 0]  # the second crank angle is obtuse: a longer crank pulls the slider back
    assert_allclose(both.first_order[:, 0], [parts[0].sum(), abs(parts[1, 0] - parts[1, 1])])
    assert_allclose(both.drawn, both.first_order, rtol=0.08)


def test_one_error_for_each_length():
    """With "joints.parent.x" each bar between two joints has one error; "joints.x" has one at both frames of both joints."""
    robot, inputs = sarrus.mechanisms.slider_crank(), {"motor": [0.6]}
    names = {
        key: tolerances(robot, {key: 5e-5}, inputs, ["slider.x"], samples=0).names
        for key in ("joints.x", "joints.parent.x", "joints.child.x")
    }
    assert sum("pin.parent.x" in n for n in names.values()) == 2
    assert len(names["joints.x"]) == 2 * len(names["joints.parent.x"]) == 2 * len(names["joints.child.x"])
    assert all(name.endswith(".parent.x") for name in names["joints.parent.x"])


def test_a_budget_is_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    robot = sarrus.mechanisms.slider_crank()
    budget = tolerances(robot, {"joints.x": 5e-5}, {"motor": np.linspace(0.0, 6.0, 20)}, ["slider.x"], samples=100)
    axes = budget.plot(count=3)
    with pytest.raises(sarrus.NameNotFoundError, match="did you mean 'slider"):
        budget.plot("slider.y")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "the rest" in labels and "drawn" in labels and len(labels) == 5


def rows_of(robot, kind, *where, **more):
    once = {name: [1.0] for name in robot.actuated}
    return kind(*where, once, once, **more).rows(robot.variants(gravity=[robot.gravity]), robot.assemble()[None, None])


REFUSED = {
    "bounds": (
        lambda r: design(r, CRANK, [Variable("pin1.parent.x", 1.0, 0.0)], [JointAngle("pivot", np.zeros(8))]),
        "with low < high",
    ),
    "nothing": (lambda r: design(r, CRANK, LENGTHS, []), "requires objectives and variables"),
    "no variables": (
        lambda r: design(r, CRANK, [], [JointAngle("pivot", np.zeros(8))]),
        "requires objectives and variables",
    ),
    "too few points": (
        lambda r: design(r, CRANK, LENGTHS, [FramePath("tracer", np.zeros((7, 3)))]),
        r"points of a FramePath must have a value for each of 8 inputs, shape \(8, 3\); got shape \(7, 3\)",
    ),
    "a point for all": (lambda r: design(r, CRANK, LENGTHS, [FramePath("tracer", np.zeros(3))]), r"got shape \(3,\)"),
    "one value for all": (lambda r: design(r, CRANK, LENGTHS, [JointAngle("pivot", [0.0])]), r"values .* \(1,\)"),
    "rates of too few": (
        lambda r: design(r, CRANK, LENGTHS, [MotorEfforts({"motor": [1.0]}, {"motor": np.zeros(8)})]),
        "rates of 'motor' must have a value",
    ),
    "no such frame": (
        lambda r: design(r, CRANK, LENGTHS, [FramePath("tracr", np.zeros((8, 3)))]),
        "did you mean 'tracer'",
    ),
    "no such joint": (lambda r: design(r, CRANK, LENGTHS, [TransmissionAngle("pin")]), "did you mean 'pin"),
    "joint of several": (
        lambda r: design(
            sarrus.mechanisms.delta(),
            {"motor1": [0.1]},
            [Variable("motor1.parent.x", 0, 1)],
            [TransmissionAngle("ball1a")],
        ),
        "joints with one coordinate",
    ),
    "scale of none": (
        lambda r: FramePath("tracer", np.zeros((8, 3)), scale=0.0),
        "scale of a FramePath must be positive",
    ),
    "frame by number": (lambda r: FramePath(5, np.zeros((8, 3))), "frame of a FramePath must be a str"),
    "one rate": (lambda r: MotorEfforts(3.0, {}), "velocity of a MotorEfforts must be a mapping"),
    "no objective": (
        lambda r: design(r, CRANK, LENGTHS, ["pivot"]),
        r"objectives must be of sarrus.design, or have rows",
    ),
    "endless seconds": (
        lambda r: design(r, CRANK, LENGTHS, [TransmissionAngle("pin2")], seconds=2.0**70),
        "seconds must be at most 1e",
    ),
    "endless starts": (
        lambda r: design(r, CRANK, LENGTHS, [TransmissionAngle("pin2")], starts=2**70),
        "starts must be at most 1000000000",
    ),
    "offset": (
        lambda r: design(r, CRANK, [Variable("motor.offset", -1.0, 1.0)], [JointAngle("pivot", np.zeros(8))]),
        "offset",
    ),
    "name": (
        lambda r: design(r, CRANK, [Variable("pin1.parent.u", -1.0, 1.0)], [JointAngle("pivot", np.zeros(8))]),
        "pin1.parent",
    ),
    "redundant motors": (
        lambda _: rows_of(sarrus.mechanisms.five_bar(actuated=3), MotorEfforts),
        "as many motors as degrees of freedom",
    ),
    "not unique": (lambda r: rows_of(r, Reaction, "pin2", axes="xyz"), "indeterminate"),
    "motor where it closes": (lambda r: rows_of(on_its_tree(r, actuated=["pin2"]), MotorEfforts), "tree=True"),
    "no component": (lambda r: rows_of(r, Reaction, "pin2", axes="q"), "axes of a Reaction"),
    "no rates": (
        lambda r: MotorEfforts({}, {}).rows(r.variants(gravity=[r.gravity]), r.assemble()[None, None]),
        "'motor' is missing",
    ),
    "no motors": (lambda _: rows_of(sarrus.mechanisms.double_pendulum(), MotorEfforts), "has no motors"),
    "not determined": (
        lambda _: tolerances(sarrus.mechanisms.double_pendulum(), {"joints.x": 1e-4}, {"elbow": [0.3]}, ["lower.x"]),
        "do not determine",
    ),
    "not a name": (lambda r: tolerances(r, {"joints.x": 1e-4}, CRANK, [3]), "must be names"),
    "no joint": (lambda r: rows_of(r, Reaction, "pin9"), "pin9"),
    "of": (lambda r: tolerances(r, {"joints.x": 1e-4}, CRANK, ["tracer"]), "FRAME.x"),
    "more than one coordinate": (
        lambda _: tolerances(
            sarrus.mechanisms.delta(),
            {"joints.x": 1e-4},
            {f"motor{k}": [0.3] for k in (1, 2, 3)},
            ["elbow1a"],
        ),
        "joints with one coordinate",
    ),
    "spread": (lambda r: tolerances(r, {"joints.x": -1e-4}, CRANK, ["tracer.x"]), "positive"),
}


def test_variables_are_of_their_class():
    with pytest.raises(TypeError, match="Variable"):
        design(four_bar(), CRANK, [("pin1.parent.x", 0.0, 1.0)], [JointAngle("pivot", np.zeros(8))])


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    call, words = REFUSED[case]
    with pytest.raises((sarrus.SarrusError, ValueError, TypeError), match=words):
        call(four_bar())
