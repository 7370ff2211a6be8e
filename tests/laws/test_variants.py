"""Variants: each result of a function of a state equals that of the mechanism with these numbers."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import Inertia, ModelError, Transform
from sarrus import derivatives as D
from sarrus.dynamics.variants import VariantFunctions
from tests.gallery import made
from tests.laws.test_copies import ASKED, KINDS, LIST, OF_FRAMES, OPERATIONS, outcome, random_changes
from tests.random_closed import random_closed
from tests.random_mechanisms import random_mechanism

GALLERY = (
    "four_bar",
    "slider_crank",
    "stewart",
    "delta",
    "four_bar_ladder",
    "whipple_bicycle",
    "ring",
    "net",
    "double_pendulum",
)
N = 11  # more than the lanes of any register, and no multiple
# asks for pieces of a path, which are no states; and ranks, and a condition number, of rows that may be dependent
WITHOUT = {"path_motion", "mobility_numbers"}
OF_FLOATING = set(re.findall(r"X\((\w+), [^)]*\bfloats\)", LIST.read_text()))
# steps from far away make much of rounding; those of `lead` are on a branch, or say what a jump beyond it leaves open
FAR = {"configuration_by_mass": 1e-5, "configuration_plain": 1e-5, "move_along_branch": 1e-7}


def varied(robot, rng, kinds=KINDS, count=N):
    """Return variants, and the same mechanisms one by one."""
    each = [random_changes(robot, rng, kinds) for _ in range(count)]
    changes = {}
    for key in each[0]:
        if key == "gravity":
            changes[key] = [x[key] for x in each]
        else:
            of = {name: [x[key][name] for x in each] for name in each[0][key]}
            changes[key] = of if key in ("inertias", "placements") else {n: np.array(x) for n, x in of.items()}
    return robot.variants(**changes), [robot.replace(**x) for x in each]


def states(robot, rng, count=N):
    q = np.stack([robot.integrate(robot.neutral(), x) for x in 0.3 * rng.normal(size=(count, robot.nv))])
    return {"q": q} | {key: rng.normal(size=(count, robot.nv)) for key in ("v", "a", "tau")}


def inputs_of(robot, name, numbers):
    """Return the arguments of the function, found by calls for one mechanism, and the last result."""
    options = {"return_status": True} | ({"frame": robot.bodies[-1]} if name in OF_FRAMES else {})
    inputs = {}
    for key in (x for x in OPERATIONS[name].split() if not x.endswith("?")):
        source = {"dv": "v", "q0": "q"}.get(key, key)
        inputs[key] = numbers["q"][::-1] if key == "q1" else np.ones(N) if key == "tangent" else numbers.get(source)
    for _ in range(len(inputs) + 2):
        given = {k: np.ones(1) if x is None else x[0] for k, x in inputs.items()}
        said = outcome(lambda given=given: ASKED[name](robot, **given, **options))
        found = (
            re.match(
                r"(\w+) (?:has|is) .*; (?:it must have|it needs an axis of|this mechanism has nv =) (\d+)", said[1]
            )
            if isinstance(said[0], type)
            else None
        )
        if not found:
            return {k: np.ones((N, 1)) if x is None else x for k, x in inputs.items()}, options, said
        inputs[found[1]] = np.tile(np.linspace(0.1, 1.0, int(found[2])), (N, 1))
    raise AssertionError(name, said)


def rounding_decides(robot, name, inputs, options, rng):
    """Return True if starts within 1e-10 of each other have different results: far from the loops, Newton's steps are that chaotic."""
    q = robot.integrate(np.repeat(inputs["q"], 64, axis=0), 1e-10 * rng.normal(size=(64, robot.nv)))
    ends, status = ASKED[name](robot, **{k: np.repeat(x, 64, axis=0) for k, x in inputs.items()} | {"q": q}, **options)
    return np.ptp(status) > 0 or (status[0] == 0 and np.ptp(ends, axis=0).max() > min(1e-6, FAR[name]))


def same_answers(variants, each, rng):
    robot, checked, refused, undecided = variants.base, 0, [], 0
    numbers = states(robot, rng)
    for name in sorted((ASKED.keys() & OPERATIONS.keys()) - WITHOUT):
        inputs, options, said = inputs_of(robot, name, numbers)
        if isinstance(said[0], type):
            refused.append(name)
            continue
        result, status = ASKED[name](variants, **inputs, **options)
        for i, one in enumerate(each):
            if name in FAR and rounding_decides(one, name, {k: x[i : i + 1] for k, x in inputs.items()}, options, rng):
                undecided += 1
                continue
            rows = {k: np.repeat(x[i : i + 1], 4, axis=0) for k, x in inputs.items()}  # side by side, too
            expected, expected_status = (x[0] for x in ASKED[name](one, **rows, **options))
            assert status[i] == expected_status, (name, i)
            size = max(1e-4, np.nanmax(np.abs(expected), initial=0.0))  # smaller ones are rounding
            assert_allclose(result[i], expected, rtol=0, atol=FAR.get(name, 3e-9) * size, err_msg=f"{name}, {i}")
        checked += 1
    assert checked > 55 and undecided < N
    assert not [name for name in refused if name not in OF_FLOATING and not name.startswith("cached")], refused


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning")
@pytest.mark.parametrize("name", GALLERY)
def test_variants_answer_as_their_mechanisms_do(name):
    rng = np.random.default_rng(4)
    same_answers(*varied(made(name), rng), rng)


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning")
@pytest.mark.parametrize("seed", range(6))
def test_random_variants(seed):
    rng = np.random.default_rng(seed)
    options = {"friction": True, "armature": seed % 2 == 0, "springs": True, "floating": seed % 3 == 0}
    tree = random_mechanism(seed, bodies=8, backward=0.3, **options).description
    closed = random_closed(seed, bodies=7, hints=seed % 2 == 0, **options).description
    cut = random_closed(seed + 100, bodies=9, loops=3, **options).description
    for description, substructures in ((tree, None), (closed, None), (cut, 1)):
        robot = sarrus.Mechanism(description, substructures=substructures)
        if robot._asks_for_rows:
            with pytest.raises(ModelError, match="function of q"):
                robot.variants(gravity=np.zeros((2, 3)))
            continue
        same_answers(*varied(robot, rng), rng)


def four_bars(count=N, seed=0):
    rng = np.random.default_rng(seed)
    robot = sarrus.mechanisms.four_bar()
    lengths = {name: rng.uniform(0.9, 1.1, count) for name in ("pin1.parent", "pin2.parent", "pin2.child")}
    at = {
        f"{j.name}.{end}": getattr(j, f"at_{end}").translation
        for j in robot.description.joints
        for end in ("parent", "child")
    }
    placements = {name: np.outer(f, at[name]) for name, f in lengths.items()}
    variants = robot.variants(placements=placements)
    return variants, [robot.replace(placements={n: x[i] for n, x in placements.items()}) for i in range(count)]


@pytest.mark.parametrize("threads", [1, 3])
def test_positions_of_variants(threads):
    variants, each = four_bars(100)
    angles = np.linspace(0.3, 0.9, 100)
    q = variants.assemble(fixed={"motor": angles}, threads=threads)
    for i, one in enumerate(each):
        assert_allclose(q[i], one.assemble(fixed={"motor": angles[i]}), rtol=0, atol=1e-12)
    # a joint that closes the loop may be held, too
    led = variants.assemble(near=q, fixed={"pin2": -0.6})
    assert_allclose(led[7], each[7].assemble(near=q[7], fixed={"pin2": -0.6}), rtol=0, atol=1e-10)
    several = variants.assemble(near=q[:, None], fixed={"motor": np.linspace(0.4, 0.8, 5)[None]})
    assert several.shape == (100, 5, 3)
    assert_allclose(several[3, 2], each[3].assemble(near=q[3], fixed={"motor": 0.6}), rtol=0, atol=1e-12)


def test_frames_of_variants_are_led():
    robot, rng = sarrus.mechanisms.stewart(), np.random.default_rng(2)
    feet = {f"{j.name}.parent": j.at_parent.translation for j in robot.description.joints if j.name.startswith("foot")}
    variants = robot.variants(placements={name: p + 0.03 * rng.normal(size=(5, 3)) for name, p in feet.items()})
    goals = robot.pose(robot.assemble(), "platform")[:3, 3] + 0.03 * rng.normal(size=(5, 3))
    q = variants.inverse_kinematics({"platform": goals}, near=robot.assemble())
    assert_allclose(variants.pose(q, "platform")[:, :3, 3], goals, rtol=0, atol=1e-10)
    assert_allclose(variants.constraint_residual(q), 0.0, rtol=0, atol=1e-10)
    for i in range(5):
        one = variants[i].inverse_kinematics({"platform": goals[i]}, near=robot.assemble())
        assert_allclose(q[i], one, rtol=0, atol=1e-6)


def test_paths_of_variants():
    variants, each = four_bars(9)
    angles = np.linspace(0.3, 6.6, 60)
    q = variants.follow({"motor": angles})
    for i, one in enumerate(each):
        assert_allclose(q[i], one.follow({"motor": angles}), rtol=0, atol=1e-9)
    long = np.array([0.4, 0.95])
    robot = sarrus.mechanisms.four_bar()
    ends = robot.variants(placements={"pin1.parent": np.outer(long, [1.0, 0, 0])}).follow({"motor": angles})
    assert np.isfinite(ends[0]).all()
    with pytest.raises(sarrus.PathTrackingError) as end:
        robot.replace(placements={"pin1.parent": (0.95, 0, 0)}).follow({"motor": angles})
    count = len(end.value.path)
    assert_allclose(ends[1, :count], end.value.path, rtol=0, atol=1e-9)
    assert np.isnan(ends[1, count:]).all()


@pytest.mark.parametrize("joint", ["motor", "pin2"])
@pytest.mark.parametrize(
    "inputs",
    [[0.5, 0.6, 0.6, 0.7], [0.5, 0.7, 0.71], [0.5, 0.6, 0.5], [0.5, 3.0], 0.5 + 0.3 * np.sin(np.linspace(0, 9, 50))],
)
def test_inputs_of_variants_may_pause_and_turn_back(joint, inputs):
    variants, each = four_bars(9)
    start = variants.assemble(fixed={"motor": 0.5})
    at = [one.joint_states(q).q[joint][0] for one, q in zip(each, start, strict=True)][4]
    share = 1.0 if joint == "motor" else -0.05  # the other one does not go round
    way = {joint: at + share * (np.array(inputs) - inputs[0])}
    q = variants.follow(way, near=start)
    for i in (4, 7):
        assert_allclose(q[i], each[i].follow(way, near=start[i]), rtol=0, atol=1e-9)


def test_paths_of_variants_stay_on_their_branches():
    """Nearly exact parallelograms fold near the branch point, each a little later; an exact one goes straight on."""
    rockers = np.array([0.51, 0.501, 0.5001, 0.500001, 0.5])
    variants = sarrus.mechanisms.four_bar(0.5, 1.0, 0.5, 1.0).variants(
        placements={"pin2.child": np.outer(rockers, [1.0, 0.0, 0.0])}
    )
    pivot = variants.base.joint("pivot").q_slice.start
    angles = np.linspace(-0.9, -0.9 - 4.0 * np.pi, 13)
    q, status = variants.follow({"motor": angles}, return_status=True)
    assert (status == 0).all()
    knee = 0.5 * np.exp(-1j * angles)
    for i, rocker in enumerate(rockers[:-1]):
        # where circles about knee and pivot cross, on the side on which they start
        d = 1.0 - knee
        along = (np.abs(d) ** 2 + 1.0 - rocker**2) / (2.0 * np.abs(d))
        tip = knee + d / np.abs(d) * (along + 1j * np.sqrt(1.0 - along**2))
        assert_allclose(1.0 + rocker * np.exp(-1j * q[i, :, pivot]), tip, rtol=0, atol=1e-9)
    assert_allclose(np.exp(-1j * q[-1, :, pivot]), np.exp(-1j * angles), rtol=0, atol=1e-6)


def test_paths_of_variants_have_statuses():
    variants, each = four_bars(9)
    long = variants[[0, 1]].base.variants(
        placements={"pin1.parent": np.outer(np.r_[np.linspace(0.35, 0.45, 7), 0.95, 3.0], [1.0, 0, 0])}
    )
    way = {"motor": np.linspace(0.3, 6.6, 200)}
    out = np.empty((9, 200, 3))
    q, status = long.follow(way, out=out, threads=3, return_status=True)
    assert q is out
    assert status.tolist() == [0] * 7 + [2, 2]
    assert np.isfinite(q[:7]).all() and np.isfinite(q[7, 0]).all() and np.isnan(q[7, -1]).all() and np.isnan(q[8]).all()
    assert np.array_equal(long.follow(way), q, equal_nan=True)


def test_paths_of_variants_lead_any_joint():
    """A tree joint with several coordinates, like the pose of a platform, and a loop joint."""
    robot = sarrus.mechanisms.stewart()
    feet = [j for j in robot.description.joints if j.name.startswith("foot")]
    rng = np.random.default_rng(5)
    variants = robot.variants(
        placements={f"{j.name}.parent": j.at_parent.translation + 0.03 * rng.normal(size=(6, 3)) for j in feet}
    )
    s, zero = np.linspace(0.0, 1.0, 9), np.zeros(9)
    way = np.stack([zero, zero, np.sin(0.1 * s), np.cos(0.1 * s), 0.1 * s, -0.05 * s, 1.0 + 0.2 * s], axis=-1)
    q = variants.follow({"float": way})
    for i in range(6):
        assert_allclose(q[i], variants[i].follow({"float": way}), rtol=0, atol=1e-9)
    assert np.ptp(q[:, -1], axis=0).max() > 0.01


def test_paths_of_variants_in_time():
    """Joints with time functions move along the path; at constant time they rest."""
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_body("slide", Inertia.sphere(1.0, 0.1))
    b.add_joint("rail", sarrus.Prismatic("x"), "rocker", "slide")
    b.add_prescribed_motion("push", "rail", sarrus.laws.harmonic(0.2, 2.0))
    robot = b.build()
    lengths = np.array([0.38, 0.42])
    variants = robot.variants(placements={"pin1.parent": np.outer(lengths, [1.0, 0, 0])})
    angles = np.linspace(0.5, 1.0, 8)
    for time in (np.linspace(0.1, 0.9, 8), np.full(8, 0.3)):
        q = variants.follow({"motor": angles}, time=time)
        for i in (0, 1):
            assert_allclose(q[i], variants[i].follow({"motor": angles}, time=time), rtol=0, atol=1e-9)


def test_derivatives_of_variants():
    variants, each = four_bars(5)
    q = variants.assemble(fixed={"motor": 0.6})
    v = variants.project_velocity(q, [1.0, 0.0, 0.0])
    tau = np.ones(3)
    found = D.forward_dynamics(variants, q, v, tau)
    pulled = D.forward_dynamics_vjp(variants, q, v, tau, np.ones(3))
    for i, one in enumerate(each):
        assert_allclose(found.q[i], D.forward_dynamics(one, q[i], v[i], tau).q, rtol=0, atol=1e-10)
        expected = D.forward_dynamics_vjp(one, q[i], v[i], tau, np.ones(3))
        assert_allclose(pulled.parameters[i], expected.parameters, rtol=1e-9, atol=1e-10)
    rough = variants.base.variants(friction={"pin2": [0.1, 0.2]})
    q = rough.assemble(fixed={"motor": 0.6})
    v = rough.project_velocity(q, [1.0, 0.0, 0.0])
    found = D.forward_dynamics(rough, q, v, tau).q
    assert_allclose(found[1], D.forward_dynamics(rough[1], q[1], v[1], tau).q, rtol=0, atol=1e-10)
    with pytest.warns(sarrus.ModelWarning, match="'pin2' is at rest and has Coulomb friction"):
        D.forward_dynamics(rough, q, 0 * v, tau)
    wrenches = {"rocker": np.linspace(-1.0, 1.0, 30).reshape(5, 6)}
    for q, v, at in (
        (variants.assemble(fixed={"motor": 0.6}), np.array([1.0, 0.0, 0.0]), 0),
        (np.stack([variants.assemble(fixed={"motor": x}) for x in (0.6, 0.8)], axis=1), np.array([1.0, 0.0, 0.0]), 1),
    ):
        v = variants.project_velocity(q, v)
        loads = {"wrenches": {"rocker": wrenches["rocker"].reshape(5, *[1] * at, 6)}}
        found, inverse = D.forward_dynamics(variants, q, v, tau, **loads), D.inverse_dynamics(variants, q, v, tau)
        ground = {"base_acceleration": np.arange(6.0)}
        moved = D.inverse_dynamics(variants, q, v, tau, **ground)
        pulled = D.forward_dynamics_vjp(variants, q, v, tau, np.ones(3), dimensions=True, **loads)
        for i, one in enumerate(each):
            load = {"wrenches": {"rocker": wrenches["rocker"][i]}}
            expected = D.forward_dynamics(one, q[i], v[i], tau, **load)
            for name in ("q", "v", "tau"):
                wanted = getattr(expected.multipliers, name)
                size = max(1.0, np.abs(wanted).max())
                assert_allclose(getattr(found.multipliers, name)[i], wanted, rtol=0, atol=1e-5 * size)
            assert_allclose(found.dimensions[i], expected.dimensions, rtol=1e-9, atol=1e-9)
            assert_allclose(pulled.dimensions[i], np.ones(3) @ expected.dimensions, rtol=1e-9, atol=1e-9)
            wanted = D.inverse_dynamics(one, q[i], v[i], tau)
            assert_allclose(inverse.dimensions[i], wanted.dimensions, rtol=1e-9, atol=1e-9)
            wanted = D.inverse_dynamics(one, q[i], v[i], tau, **ground)
            assert_allclose(moved.parameters[i], wanted.parameters, rtol=1e-9, atol=1e-9)
    everywhere = D.inverse_dynamics(variants, q[0, 0], v[0, 0], tau)  # one state for all variants
    assert_allclose(everywhere.dimensions[3], D.inverse_dynamics(each[3], q[0, 0], v[0, 0], tau).dimensions, atol=1e-9)
    with pytest.raises(TypeError, match="must be a Mechanism"):
        D.assembled_positions(variants, q, ["motor"])


def test_axes_and_some_of_them():
    variants, each = four_bars(6)
    q = variants.assemble(fixed={"motor": 0.6})
    assert len(variants) == 6
    assert variants.pose(q[0], "rocker").shape == (6, 4, 4)
    many = variants.pose(np.tile(q[:, None], (1, 20, 1)), "rocker")
    assert many.shape == (6, 20, 4, 4)
    assert_allclose(many[4, 7], each[4].pose(q[4], "rocker"), rtol=0, atol=1e-14)
    assert variants.pose(q[None, :3], "rocker").shape == (6, 3, 4, 4)
    with pytest.raises(sarrus.ShapeError, match="first leading axis must be that of the 6 variants"):
        variants.pose(q[:4], "rocker")
    for which in ([4, 1, 4], slice(1, 5, 2), np.arange(6) % 2 == 0):
        some = variants[which]
        rows = np.arange(6)[which]
        assert_allclose(some.mass_matrix(q[rows]), variants.mass_matrix(q)[rows], rtol=0, atol=1e-14)
        assert some[1] == each[rows[1]]
    assert [one == other for one, other in zip(variants, each, strict=True)] == [True] * 6
    again = pickle.loads(pickle.dumps(variants[[3, 2]]))
    assert_allclose(again.mass_matrix(q[[3, 2]]), variants.mass_matrix(q)[[3, 2]], rtol=0, atol=0)
    for wrong in (None, True, [[0, 1]]):
        with pytest.raises(IndexError, match="one axis"):
            variants[wrong]
    empty = variants.base.variants(damping={}, gravity=np.ones((2, 3)))
    assert pickle.loads(pickle.dumps(empty))[1] == empty[1]
    out = np.empty((6, 3))
    assert variants.gravity_forces(q, out=out) is out


def test_a_bad_row_spoils_only_itself():
    variants, _ = four_bars(20)
    q = variants.assemble(fixed={"motor": 0.6})
    q[3, 1], q[5, 2] = np.nan, q[5, 2] + 0.3
    a, status = variants.forward_dynamics(q, np.zeros(3), np.zeros(3), return_status=True)
    assert (status[3], status[5]) == (1, 4)
    good = np.ones(20, bool)
    good[[3, 5]] = False
    assert not status[good].any()
    assert np.isfinite(a[good]).all()
    assert np.isnan(a[~good]).all()


REFUSED = {
    "none": ({}, sarrus.ShapeError, "got none"),
    "none of some": ({"damping": {}}, sarrus.ShapeError, "got none"),
    "unequal": (
        {"gravity": np.zeros((3, 3)), "damping": {"motor": np.ones(4)}},
        sarrus.ShapeError,
        "got 3 and 4",
    ),
    "no such joint": ({"damping": {"motr": np.ones(3)}}, sarrus.NameNotFoundError, "motor"),
    "negative": ({"damping": {"motor": [1.0, -1.0]}}, ModelError, "variant 1 has the invalid value"),
    "not finite": ({"gravity": [[0, 0, 1], [0, np.nan, 0]]}, ModelError, "variant 1 has the invalid value"),
    "one for all": ({"damping": {"motor": 2.0}}, sarrus.ShapeError, "the first one over variants|needs"),
    "no inertia": ({"inertias": {"crank": np.eye(2, 10)}}, ModelError, "variant 1"),
    "reflected": ({"placements": {"pin1.parent": np.diag([1.0, 1.0, -1.0, 1.0])[None]}}, ModelError, "not a rotation"),
    "armature across": ({"armature": {"pin2": [0.0, 1.0]}}, ModelError, "variant 1: loop joint 'pin2'"),
    "next to no inertia": (
        {"inertias": {"crank": np.array([Inertia.sphere(m, 0.1).parameters for m in (1.0, 1e-9)])}},
        ModelError,
        "variant 1: the subtree of joint 'motor' has negligible inertia",
    ),
    "pitch": ({"pitch": {"motor": [0.1]}}, ModelError, "no pitch"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_no_variants_can_have(which):
    changes, error, text = REFUSED[which]
    with pytest.raises(error, match=text):
        sarrus.mechanisms.four_bar().variants(**changes)


def test_what_is_asked_of_one_mechanism_says_so():
    variants, _ = four_bars(3)
    for ask in (lambda: sarrus.simulate(variants, np.zeros(3), np.zeros(3), 0.1), lambda: sarrus.view(variants)):
        with pytest.raises((TypeError, AttributeError)):
            ask()
    with pytest.raises(TypeError, match=r"use variants\[i\]"):
        variants.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), return_reactions=True)
    with pytest.raises(TypeError, match="does not support locked="):
        variants.project_configuration(np.zeros(3), locked=["motor"])
    with pytest.raises(AttributeError, match="variants are immutable"):
        variants.base = None
    screw = sarrus.Builder("screw")
    screw.add_body("nut", Inertia.sphere(1.0, 0.1))
    screw.add_joint("thread", sarrus.Helical("z", 0.0), "ground", "nut")
    with pytest.raises(ModelError, match="variant 1"):
        screw.build().variants(pitch={"thread": [0.0, 0.1]})
    assert issubclass(sarrus.results.Variants, VariantFunctions)
    assert not isinstance(variants, sarrus.Mechanism)
    assert Transform() is not None


def test_variants_run_as_a_list_of_them_does():
    variants, each = four_bars(3)
    q, v = variants.assemble(fixed={"motor": 0.6}), np.zeros(3)
    runs, listed = (sarrus.simulate_many(robots, q, v, 0.05, dt=0.005) for robots in (variants, each))
    assert_allclose(runs.q, listed.q, rtol=0, atol=1e-12)


def test_variants_of_all_sizes():
    """A tenth of a millimetre to a kilometre in one batch: each closes as accurately as alone, also from a nearly closed initial guess."""
    robot = sarrus.mechanisms.slider_crank()
    sizes = np.geomspace(1e-4, 1e3, 16)
    places = {f"{j.name}.{e}": getattr(j, f"at_{e}") for j in robot.description.joints for e in ("parent", "child")}
    poses = {name: np.tile(X.matrix, (16, 1, 1)) for name, X in places.items()}
    for H in poses.values():
        H[:, :3, 3] *= sizes[:, None]
    variants = robot.variants(placements=poses)
    unit = np.ones((16, 3))
    unit[:, robot.joint("guide").q_slice] = sizes[:, None]
    closed = unit * robot.assemble(fixed={"motor": 0.5})
    for off in (1e-2, 1e-6, 1e-9):
        start = closed + off * unit * [0.0, 1.0, -1.0]
        q, status = variants.assemble(near=start, fixed={"motor": 0.5}, return_status=True)
        assert not status.any()
        assert_allclose(q / unit, closed / unit, rtol=0, atol=1e-12)


def test_maps_of_variants():
    """Ranks, singular values and condition numbers of each variant equal those of the mechanism alone, with its own length as unit."""
    robot, rng = sarrus.mechanisms.five_bar(), np.random.default_rng(0)
    sizes = np.geomspace(1e-2, 1e2, N)
    places = {
        f"{j.name}.{e}": getattr(j, f"at_{e}").matrix for j in robot.description.joints for e in ("parent", "child")
    }
    places |= {frame.name: frame.placement.matrix for frame in robot.description.frames}
    poses = {name: np.tile(H, (N, 1, 1)) for name, H in places.items()}
    for H in poses.values():
        H[:, :3, 3] *= sizes[:, None]
    variants = robot.variants(placements=poses)
    tip = np.column_stack([rng.uniform(0.1, 0.3, N), np.zeros(N), rng.uniform(0.6, 0.7, N)])
    q = robot.inverse_kinematics({"tip": tip}, near=robot.assemble())
    for motors, output in ((None, "tx tz"), (None, "ry tx"), (list(robot.joints)[:1], "tx tz")):
        asked = {"output": ("tip", output), "actuated": motors}
        found = variants.mobility_map(np.stack([q, q], axis=1), **asked)
        for i in range(N):
            alone = variants[i].mobility_map(q[i], **asked)
            for name in ("rank", "locked_freedoms", "singularity", "status"):
                assert getattr(found, name)[i, 1] == getattr(alone, name), (i, name)
            for name in ("smallest", "actuation", "condition"):
                assert_allclose(getattr(found, name)[i, 1], getattr(alone, name), rtol=1e-9, err_msg=f"{name} of {i}")


def test_statuses_of_functions_in_numpy():
    """One state of all variants, and an invalid one among many: each has its own status."""
    robot = sarrus.mechanisms.four_bar()
    many = robot.variants(damping={"motor": np.array([1.0, 2.0, 3.0])})
    q = robot.assemble()
    one, status = many.joint_states(q, return_status=True)
    assert_array_equal(status, [0, 0, 0])
    for name, x in robot.joint_states(q).q.items():
        assert_array_equal(one.q[name], np.tile(x, (3, 1)))
    rows = np.tile(q, (3, 2, 1))
    rows[1, 0] = np.nan
    some, status = many.joint_states(rows, return_status=True)
    assert_array_equal(status, [[0, 0], [1, 0], [0, 0]])
    assert all(np.isnan(x[1, 0]).all() and np.isfinite(x[[0, 2]]).all() for x in some.q.values())
