"""Branches of configurations with fixed joints or frames far from the start: the result is on the branch of the start, or its status reports another one."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import _core
from sarrus.analysis.closing import closing
from sarrus.results import Status
from tests.gallery import made

mechanisms = sarrus.mechanisms

SAME = 1e-7  # rad and m: closed to 1e-10, of positions that may be a thousand times ill-conditioned


def crank_rockers(count):
    """Four-bars (crank, coupler, rocker, ground) whose crank rotates fully, not near a change point."""
    rng, found = np.random.default_rng(5), []
    while len(found) < count:
        crank, coupler, rocker, ground = rng.uniform(0.2, 0.5), *rng.uniform(0.5, 1.5, 3)
        x = sorted((crank, coupler, rocker, ground))
        if x[0] == crank and x[0] + x[3] < 0.98 * (x[1] + x[2]):
            found.append((crank, coupler, rocker, ground))
    return found


def rocker_angle(lengths, motor, side):
    """Return the rocker's angle in closed form, by the diagonal; angles about y turn x towards -z."""
    crank, coupler, rocker, ground = lengths
    x, z = crank * np.cos(motor) - ground, -crank * np.sin(motor)
    d = np.hypot(x, z)
    return np.arctan2(-z, x) + side * np.arccos((d**2 + rocker**2 - coupler**2) / (2 * d * rocker))


def between(a, b):
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)


def placed(robot, q):
    return np.concatenate([robot.pose(q, body)[..., :3, :] for body in robot.bodies], axis=-1)


@pytest.mark.parametrize("lengths", crank_rockers(12), ids=lambda x: "-".join(f"{a:.2f}" for a in x))
def test_crank_rockers_stay_on_the_side_of_their_home(lengths):
    robot = mechanisms.four_bar(*lengths)
    home, motor, pivot = robot.assemble(), robot.joint("motor").q_slice.start, robot.joint("pivot").q_slice.start
    side = min((1, -1), key=lambda s: between(home[pivot], rocker_angle(lengths, home[motor], s)))
    angles = np.linspace(0.0, 2 * np.pi, 73)
    wanted = rocker_angle(lengths, angles, side)
    many = robot.assemble(fixed={"motor": angles})
    assert between(many[:, pivot], wanted).max() < SAME
    assert_allclose(many[:, motor], angles, rtol=0, atol=1e-12)
    for k in range(0, 73, 8):
        for near in (None, home, home.tolist()):
            assert between(robot.assemble(near, fixed={"motor": float(angles[k])})[pivot], wanted[k]) < SAME


CASES = [
    ("strandbeest_leg", "motor"),
    ("schatz", "joint1"),
    ("bennett", "joint1"),
    ("slider_crank", "crank"),
    ("peaucellier", "motor"),
]


@pytest.mark.parametrize(("name", "joint"), CASES)
def test_the_answer_is_that_of_many_small_steps(name, joint):
    """Every state of a batch has its own initial guess, and joints keep their number of turns."""
    robot = getattr(mechanisms, name)()
    joint = joint if joint in robot.joints else robot.actuated[0]
    home = robot.assemble()
    x0 = float(home[robot.joint(joint).q_slice][0])
    for reach in (np.pi, -np.pi):
        way = x0 + np.linspace(0.0, reach, 181)
        path, ended = robot.follow({joint: way}, near=home, return_status=True)
        some = np.arange(0, 181, 20)
        some = some[np.isfinite(path[some]).all(axis=1)]
        q, status = robot.assemble(home, fixed={joint: way[some]}, return_status=True)
        on = status == 0
        assert on.all() or name == "peaucellier"  # beyond a singular position a status says so
        assert_allclose(placed(robot, q[on]), placed(robot, path[some][on]), atol=SAME)
        # and from one place of the path to another
        q, status = robot.assemble(path[some], fixed={joint: way[some[::-1]]}, return_status=True)
        assert_allclose(placed(robot, q[status == 0]), placed(robot, path[some[::-1]][status == 0]), atol=SAME)


def test_whole_turns_of_what_leads_come_back():
    robot = mechanisms.four_bar()
    home = robot.assemble()
    turned = robot.assemble(home, fixed={"motor": float(home[0]) + 4 * np.pi})
    assert_allclose(turned - home, [4 * np.pi, 0.0, 0.0], atol=SAME)


def test_joints_that_close_loops_lead_as_others_do():
    robot = mechanisms.four_bar()
    assert "pin2" in robot.loop_joints
    home = robot.assemble()
    x0 = float(robot.joint_states(home).q["pin2"][0])
    for x in x0 + np.array([-0.4, -0.2, 0.1, 0.3]):
        right = robot.follow({"pin2": np.linspace(x0, x, 101)}, near=home)[-1]
        assert_allclose(placed(robot, robot.assemble(home, fixed={"pin2": float(x)})), placed(robot, right), atol=SAME)


def test_frames_lead_as_joints_do():
    """Frames that determine the motion have branches; otherwise the result is the nearest one."""
    robot = mechanisms.five_bar()
    home = robot.assemble()
    frame = next(f for f in robot.bodies if f not in robot.joints and f != "ground")
    targets = np.array([-0.6, 0.9])
    path = robot.follow({name: np.linspace(home[robot.joint(name).q_slice][0], home[robot.joint(name).q_slice][0] + d, 41)
                         for name, d in zip(robot.actuated, targets, strict=True)}, near=home)  # fmt: skip
    point = robot.pose(path[-1], frame)[:3, 3]
    line = np.linspace(robot.pose(home, frame)[:3, 3], point, 201)
    led, status = robot.follow(frames={frame: line}, near=home, return_status=True)
    q, state = robot.inverse_kinematics({frame: point}, near=home, return_status=True)
    assert state == 0 or status != 0
    if status == 0:
        assert_allclose(placed(robot, q), placed(robot, led[-1]), atol=SAME)


def test_more_joints_than_freedoms():
    """Dependent joints reach their prescribed coordinates, or a status reports that they do not."""
    robot = mechanisms.three_rrr()
    home = robot.assemble()
    now = robot.joint_states(home).q
    led = {
        name: np.linspace(now[name][0], now[name][0] + d, 41)
        for name, d in zip(robot.actuated[:2], (0.4, -0.3), strict=True)
    }
    end = robot.follow(led, near=home)[-1]
    fixed = {name: float(robot.joint_states(end, near=now).q[name][0]) for name in robot.actuated}
    q, status = robot.assemble(home, fixed=fixed, return_status=True)
    assert status == 0
    assert_allclose(placed(robot, q), placed(robot, end), atol=SAME)


@pytest.mark.parametrize("size", [1e-7, 1e-5, 1e-3, 1.0, 1e6])
def test_dependent_joints_on_the_other_branch_have_a_status_in_any_size_alone_and_in_a_batch(size):
    """A point on a circle: x determines y up to its sign, and y is prescribed with the other sign, close to the first."""
    b = sarrus.Builder("point on a circle")
    for name in ("slide", "point"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1 * size))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "slide")
    b.add_joint("y", sarrus.Prismatic("y"), "slide", "point")
    b.add_distance("rod", ("ground", (0, 0, 0)), ("point", (0, 0, 0)), length=size)
    robot, near = b.build(), size * np.array([np.cos(0.5), np.sin(0.5)])
    for angle, expected in ((-0.02, Status.OTHER_BRANCH), (0.02, Status.FINE)):
        x, y = size * np.array([np.cos(angle), np.sin(angle)])
        for start in (near, near.tolist(), {"x": near[0], "y": near[1]}, np.stack([near, near])):
            q, status = robot.assemble(start, fixed={"x": x, "y": y}, return_status=True)
            assert_allclose(q, np.broadcast_to((x, y), q.shape), rtol=0.0, atol=1e-12 * size)
            assert (status == expected).all()


def test_where_the_branch_ends_another_one_is_told():
    robot = mechanisms.four_bar()
    beyond = {"pivot": 1.6}  # where only the other circuit is
    with pytest.warns(sarrus.BranchWarning, match="the branch ends, at pivot"):
        q = robot.assemble(fixed=beyond)
    found, status = robot.assemble(fixed=beyond, return_status=True)
    assert status == Status.OTHER_BRANCH
    assert_allclose(found, q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(robot.assemble(fixed=beyond, branch="any"), q)
    with pytest.raises(
        sarrus.PathTrackingError,
        match="the target is not on the branch of the initial configuration: the branch ends, at pivot",
    ) as end:
        robot.assemble(fixed=beyond, branch="only")
    assert np.isfinite(end.value.last_configuration).all()
    assert np.abs(robot.constraint_residual(end.value.last_configuration)).max() < 1e-9
    many = np.array([-1.8, 1.6, -0.2])  # on the branch; on another one; nowhere
    with pytest.warns(sarrus.BranchWarning, match="1 of 3"):
        robot.assemble(fixed={"pivot": many})
    assert robot.assemble(fixed={"pivot": many}, return_status=True)[1].tolist() == [0, Status.OTHER_BRANCH, 2]
    q, status = robot.assemble(fixed={"pivot": many}, branch="only", return_status=True)
    assert status.tolist() == [0, 2, 2]
    assert np.isfinite(q).all(axis=1).tolist() == [True, False, False]


def test_nothing_there_says_how_far_the_branch_goes():
    robot = mechanisms.four_bar()
    with pytest.raises(
        sarrus.PathTrackingError,
        match=r"no configuration was found.*the target is not on the branch of the initial configuration",
    ) as end:
        robot.assemble(fixed={"pivot": -0.2})
    assert end.value.path.shape == (1, 3)


@pytest.mark.parametrize("fixed", [{"motor1": 0.3}, {"motor1": 1.0, "motor2": 0.2}])
def test_what_is_left_free_has_no_branch(fixed):
    robot = mechanisms.delta()
    assert_allclose(robot.assemble(fixed=fixed), robot.assemble(fixed=fixed, branch="any"), atol=SAME)


def test_each_variant_stays_on_its_branch():
    lengths = crank_rockers(6)
    base = mechanisms.four_bar(*lengths[0])
    several = base.variants(placements={"pin1.parent": [(x[0], 0.0, 0.0) for x in lengths]})
    motor = np.linspace(-3.0, 3.0, 6)
    q, status = several.assemble(fixed={"motor": motor}, return_status=True)
    for k in range(6):
        alone, state = several[k].assemble(fixed={"motor": float(motor[k])}, return_status=True)
        assert state == status[k]
        if state == 0:
            assert_allclose(placed(several[k], q[k]), placed(several[k], alone), atol=SAME)
    assert (status == 0).any()


def test_passed_singular_positions_are_counted_by_the_core():
    """A parallelogram passes its flat position, at which branches intersect."""
    robot = mechanisms.four_bar(0.5, 1.0, 0.5, 1.0)
    start = robot.assemble(fixed={"motor": 0.7}, branch="any")
    q, status = robot.assemble(start, fixed={"motor": -0.7}, return_status=True)
    assert status == Status.OTHER_BRANCH
    with pytest.warns(sarrus.BranchWarning, match="the branch passes a singular position"):
        robot.assemble(start, fixed={"motor": -0.7})


def test_statuses_of_another_branch_and_of_unsound_starts_differ():
    """A state on another branch has a result, an invalid initial guess has none; the status distinguishes them."""
    robot = mechanisms.four_bar()
    near = np.tile(robot.assemble(), (4, 1))
    near[1] = np.nan
    pivot = np.array([-1.8, -1.8, 1.6, -0.2])
    for many in (robot, robot.variants(gravity=np.ones((4, 3)))):
        q, status = many.assemble(near, fixed={"pivot": pivot}, return_status=True)
        assert status.tolist() == [Status.FINE, Status.INVALID_STATE, Status.OTHER_BRANCH, Status.NO_ANSWER]
        assert np.isfinite(q).all(axis=1).tolist() == [True, False, True, False]


@pytest.mark.parametrize("name", ["three_rrr", "delta", "five_bar", "stewart"])
def test_joints_that_lead_determine_the_motion_of_those_that_follow(name):
    """If all joints are given, in any order, as many become inputs as there are degrees of freedom, and the choice by name is unique."""
    robot = getattr(mechanisms, name)()
    home = robot.assemble()
    numbers = robot._loop_motions(home, closing(robot, (), ()).loops.scale())
    projector, count = numbers[:-1].reshape(robot.nv, robot.nv), numbers[-1]
    assert_allclose(projector @ projector, projector, atol=1e-9)
    names = sorted(robot.joints)
    groups = [(robot.joint(x).v_slice.start, robot.joint(x).v_slice.stop) for x in names]
    leads = _core.determining_groups(projector, groups)
    columns = np.concatenate([np.arange(*g) for g, one in zip(groups, leads, strict=True) if one])
    basis = np.linalg.eigh(projector)[1][:, -int(count) :]
    assert np.linalg.matrix_rank(basis[columns], tol=1e-3) == count
    for k in range(len(names)):  # each of them adds to the ones before it, and what follows does not
        before = np.concatenate([np.zeros(0, int), *(np.arange(*g) for g in groups[:k])])
        ranks = [
            np.linalg.matrix_rank(basis[rows], tol=1e-3) if len(rows) else 0
            for rows in (before, np.append(before, np.arange(*groups[k])))
        ]
        assert leads[k] == (ranks[1] > ranks[0])


@pytest.mark.parametrize("name", ["bricard", "delta", "peaucellier"])
def test_random_starts_of_a_batch_are_those_of_its_states(name):
    """With `starts` a batch has the solutions of single states; without, each state is searched from its own guess only."""
    robot = getattr(mechanisms, name)()
    near = robot.random(1, 20)
    q, status = robot.assemble(near, starts=60, return_status=True)
    single = [robot.assemble(start, return_status=True) for start in near]
    assert (status == 0).all() and [int(state) for _, state in single] == status.tolist()
    assert_allclose(q, [x for x, _ in single], rtol=0, atol=1e-7)
    alone, state = robot.assemble(near, return_status=True)
    assert np.isnan(alone[state != 0]).all()
    assert_allclose(alone[state == 0], robot.assemble(near, starts=0)[state == 0], rtol=0, atol=0)
    if name == "bricard":
        assert (state != 0).any()


def test_branch_is_one_of_three_words():
    with pytest.raises(ValueError, match="branch must be one of 'start', 'only' or 'any'; got 'all'"):
        mechanisms.four_bar().assemble(fixed={"motor": 0.5}, branch="all")


def test_frames_of_variants_that_prescribe_too_much():
    """No path exists, and none is required: the search returns the result, as for one mechanism."""
    robot = sarrus.mechanisms.double_hooke()
    variants = robot.variants(gravity=np.ones((2, 3)))
    pose = {robot.frames[-1]: sarrus.Transform(translation=(0.1, 0, 0.1))}
    q, status = variants.inverse_kinematics(frames=pose, near=robot.assemble() + 0.01, return_status=True)
    assert status.tolist() == [2, 2] and np.isnan(q).all()


@pytest.mark.filterwarnings("ignore::sarrus.BranchWarning")
@pytest.mark.parametrize("name", [name for name in sarrus.mechanisms.__all__ if made(name).loop_joints])
def test_options_of_computation_change_no_result(name):
    """Also where the fixed joints leave motion, and a jump is longer than the first steps of a search."""
    robot = made(name)
    home, rng = robot.assemble(), np.random.default_rng(3)
    single = [j for j in robot.joints if robot.joint(j).type.nq == 1]
    for size in (0.3, 1.0):
        for j in rng.permutation(single)[:2]:
            fixed = {str(j): float(home[robot.joint(str(j)).q_slice][0]) + size * rng.uniform(-1.0, 1.0)}
            plain, status = robot.assemble(home, fixed=fixed, return_status=True)
            try:
                assert_allclose(robot.assemble(home, fixed=fixed), plain, rtol=0.0, atol=1e-9, err_msg=str(fixed))
            except sarrus.AssemblyError:
                assert status not in (0, 9)
