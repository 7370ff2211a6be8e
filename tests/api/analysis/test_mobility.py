"""Mobility: classic linkages, bifurcations and structures, redundant rows, indeterminate reactions, and the effect of motors."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import mechanisms as gallery
from sarrus.analysis.linear_algebra import ScaledLoops
from sarrus.description import Description, JointSpec, SpringSpec
from tests.gallery import made
from tests.oracles.free_motions import row_scale
from tests.random_closed import CLOSING, random_closed
from tests.small_mechanisms import at, bars, two_wheels

# null spaces are known to a few eps over the smallest singular value that counts; the library itself asks for 1e-6
ROUNDING = 1e-9


def home(robot):
    return robot.project_configuration(at(robot, robot.description.home))


# ---- degrees of freedom --------------------------------------------------------------------------------------------------------------

COUNTS = {  # made by: Kutzbach, degrees of freedom
    gallery.pendulum: (1, 1),
    gallery.four_bar: (-2, 1),
    gallery.bennett: (-2, 1),
    gallery.bricard: (0, 1),
    gallery.sarrus_linkage: (0, 1),
    gallery.peaucellier: (-8, 1),
    gallery.scissor_lift: (-11, 1),
    gallery.five_bar: (-1, 2),
    gallery.delta: (3, 3),
    gallery.stewart: (6, 6),
    gallery.biped_leg: (6, 9),
    gallery.rolling_disc: (3, 3),  # its place in the plane is free, but not its velocity there
}


@pytest.mark.parametrize("make", COUNTS, ids=lambda make: make.__name__)
def test_degrees_of_freedom(make):
    robot = make()
    m = robot.mobility(home(robot))
    kutzbach, freedom = COUNTS[make]
    assert (m.kutzbach, m.degrees_of_freedom, m.finite_degrees_of_freedom) == (kutzbach, freedom, freedom)
    assert m.redundant == robot.nc - m.rank == freedom - kutzbach
    assert_allclose(robot.constraint_jacobian(home(robot)) @ m.motions, 0.0, atol=ROUNDING)
    assert np.linalg.matrix_rank(m.motions) == freedom
    assert m.gap > 1e10
    assert not m.idle


def folded_sarrus():
    robot = gallery.sarrus_linkage()
    return robot, at(robot, {"knee_a": -np.pi, "top_a": np.pi, "knee_b": -np.pi})


def flat_ladder():
    robot = gallery.four_bar_ladder(8)
    angles = ((name, np.pi / 2 if name.startswith("pivot") else -np.pi / 2) for name in robot.joints)
    return robot, at(robot, angles)


# made by, degrees of freedom here, and how many of them are finite
SINGULAR = {
    "flat parallelogram: it goes on, or turns over": (lambda: (bars([1, 2, 1], 2), [0, 0, np.pi]), 2, 1),
    "row of eight flat parallelograms": (flat_ladder, 9, 1),
    "four bars stretched: the longest as long as the others": (lambda: (bars([1, 1, 1], 3), [0, 0, 0]), 2, 0),
    "flat triangle": (lambda: (bars([1, 2], 3), [0, 0]), 1, 0),
    "triangle": (lambda: (bars([1, 1], 1), [-np.pi / 3, 2 * np.pi / 3]), 0, 0),
    "folded Sarrus linkage: either pair of plates swings about its edge": (folded_sarrus, 3, 2),
}


@pytest.mark.parametrize("case", SINGULAR)
def test_instantaneous_and_finite_mobility(case):
    make, here, finite = SINGULAR[case]
    m = sarrus.Mechanism.mobility(*make())
    assert (m.degrees_of_freedom, m.finite_degrees_of_freedom) == (here, finite)
    assert (here > finite) == any("singular" in warning for warning in m.warnings)


def test_mobility_that_leads_nowhere_everywhere():
    """Two bars in line between points of a crank: J loses a rank at every crank angle, and only the crank can move."""
    b = sarrus.Builder("crank with a flat triangle")
    for name in ("crank", "first", "second"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_joint("motor", sarrus.Revolute("y"), "ground", "crank", actuated=True)
    b.add_joint("a", sarrus.Revolute("y"), "crank", "first")
    b.add_joint("b", sarrus.Revolute("y"), "first", "second", at_parent=(1, 0, 0))
    b.add_joint("c", sarrus.Revolute("y"), "second", "crank", at_parent=(1, 0, 0), at_child=(2, 0, 0), loop=True)
    m = b.build().mobility([0.3, 0.0, 0.0])
    assert (m.degrees_of_freedom, m.finite_degrees_of_freedom) == (2, 1)
    assert m.actuation.verdict == "exact"
    assert m.actuation.uncontrolled == ("a", "b")


@pytest.mark.parametrize("power", [4, 6])
def test_undecided(power):
    """x^4 = 0 determines x to 1e-13^(1/4) only: no step is small or large enough to distinguish this from motion."""
    b = sarrus.Builder("slide that is held very softly")
    b.add_body("slider", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x"), "ground", "slider")
    b.add_coupler("soft", {"slide": (0.0,) * (power - 1) + (1.0,)})
    m = b.build().mobility([0.0])
    assert (m.degrees_of_freedom, m.finite_degrees_of_freedom) == (1, None)
    assert "undecided" in str(m)


def test_prescribed_motion_takes_freedoms_and_can_contradict():
    def driven(rate):
        return two_wheels(1.0 - rate / 2, rate).mobility([1.0, 1.0], time=0.5)

    agreeing = driven(2.0)
    assert (agreeing.degrees_of_freedom, agreeing.redundant, agreeing.warnings) == (0, 1, ())
    assert agreeing.idle == ("first", "second")
    assert "prescribed" in driven(3.0).warnings[0]


def test_units_do_not_matter():
    """The same slider-crank in millimetres."""
    small, large = (gallery.slider_crank(0.3 * k, k) for k in (1.0, 1000.0))
    m, n = small.mobility(home(small)), large.mobility(home(large))
    assert_allclose(n.singular_values, m.singular_values, rtol=1e-12, atol=m.tolerance)
    assert_allclose(n.actuation.singular_values, m.actuation.singular_values, rtol=1e-12)
    assert_allclose(n.length, 1000 * m.length, rtol=1e-12)


CLOSED = [name for name in gallery.__all__ if made(name).loop_joints]


@pytest.mark.parametrize("name", CLOSED)
def test_bases_are_those_of_the_scaled_jacobian(name):
    """Singular values as from LAPACK, orthonormal null spaces, and every removed row depends on the others."""
    robot = made(name)
    q = robot.assemble()
    m, loops = robot.mobility(q), ScaledLoops(robot, q, None)
    J = loops.jacobian(q)
    assert_allclose(m.singular_values, np.linalg.svd(J, compute_uv=False), rtol=0.0, atol=ROUNDING * 1e-4)
    assert_allclose(m.row_scale, loops.row_scale, rtol=1e-12)
    oracle = row_scale(robot, q)
    between_bodies = np.isfinite(oracle)
    assert_allclose(m.row_scale[between_bodies], oracle[between_bodies], rtol=1e-12)
    N = m.motions / loops.column_scale[:, None]
    assert_allclose(N.T @ N, np.eye(m.degrees_of_freedom), atol=1e-12)
    assert_allclose(J @ N, 0.0, atol=max(ROUNDING, m.tolerance))
    kept = [k for k, row in enumerate(robot._row_names) if row not in set(m.redundant_rows)]
    assert len(kept) == m.rank == np.linalg.matrix_rank(J[kept], tol=m.tolerance)


# ---- redundancy and reactions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [m for m, (kutzbach, freedom) in COUNTS.items() if freedom > kutzbach])
def test_redundant_rows_can_be_left_out(make):
    robot = make()
    q = home(robot)
    m = robot.mobility(q)
    names = [row for name in robot.constraints for row in robot.constraint(name).row_names]
    kept = [k for k, name in enumerate(names) if name not in m.redundant_rows]
    assert len(m.redundant_rows) == m.redundant
    assert len(kept) == m.rank == np.linalg.matrix_rank(robot.constraint_jacobian(q)[kept], tol=1e-9)
    assert m.redundant <= sum(m.dependent_groups.values())


def test_redundant_rows_of_a_planar_loop_are_those_out_of_its_plane():
    robot = gallery.four_bar_ladder(3)
    m = robot.mobility(home(robot))
    assert m.redundant_rows == ("pin1: y", "pin2: y", "pin3: y")
    assert m.dependent_groups == {"pin1": 1, "pin2": 1, "pin3": 1}


def components(m, name):
    """Return the components of self-stress in a joint: of moment x y z, force x y z."""
    return (np.abs(m.self_stress[name]).max(axis=0) > ROUNDING).astype(int).tolist()


def test_reactions_of_a_planar_four_bar_are_unique_in_its_plane():
    robot = gallery.four_bar()
    m = robot.mobility(home(robot))
    assert not any(m.unique_reactions.values())
    for name in (*robot.joints, *robot.loop_joints):
        assert components(m, name) == [1, 0, 1, 0, 1, 0]  # tilting moments and the force along the pins


def door(lower):
    """Return a door on a ball joint, with another joint 1 m below."""
    b = sarrus.Builder("door")
    b.add_body("door", sarrus.Inertia.box(20.0, (0.8, 0.04, 2.0)))
    b.add_joint("upper", sarrus.Spherical(), "ground", "door", at_parent=(0, 0, 1), at_child=(0, 0, 0.5))
    b.add_joint("lower", lower, "ground", "door", at_child=(0, 0, -0.5), loop=True)
    return b.build()


DOORS = {  # of each lower joint: redundant rows, and what self-stress puts through it
    "ball": (sarrus.Spherical(), 1, [0, 0, 0, 0, 0, 1]),  # who carries the weight?
    "ball that slides along the axis": (sarrus.Gimbal("rx ry rz tz"), 0, [0, 0, 0, 0, 0, 0]),
    "hinge": (sarrus.Revolute("z"), 3, [1, 1, 0, 1, 1, 1]),
}


@pytest.mark.parametrize("kind", DOORS)
def test_reactions_of_a_door(kind):
    lower, redundant, loose = DOORS[kind]
    robot = door(lower)
    m = robot.mobility(robot.neutral())
    assert (m.degrees_of_freedom, m.finite_degrees_of_freedom, m.redundant) == (1, 1, redundant)
    assert m.unique_reactions == {"upper": not redundant, "lower": not redundant}
    assert components(m, "lower") == loose if redundant else m.self_stress["lower"].shape == (0, 6)


@pytest.mark.parametrize("steer", [0.0, 0.7])
def test_an_upright_disc_may_be_pressed_onto_its_plane(steer):
    """The force is indeterminate: it acts straight down through every joint, including the slides."""
    robot = gallery.rolling_disc(upright=True)
    m = robot.mobility(at(robot, {"steer": steer}))
    assert m.redundant_rows == ("contact: contact",)
    assert not any(m.unique_reactions.values())
    for name in m.self_stress:
        assert components(m, name) == [0, 0, 0, 0, 0, 1]


def test_springs_are_no_part_of_self_stress():
    """The forces of springs on the joints are loads."""
    robot = gallery.four_bar()
    springs = (SpringSpec("spring", ("ground", (0.0, 0.2, 0.1)), ("coupler", (0.1, 0.3, 0.0)), 1e3, 0.1, 0.0),)
    sprung = sarrus.Mechanism(dataclasses.replace(robot.description, springs=springs))
    found, expected = sprung.mobility(home(robot)).self_stress, robot.mobility(home(robot)).self_stress
    for name in expected:
        assert_allclose(found[name], expected[name], atol=ROUNDING)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_redundant_coupler_strains_no_bearing(keyed):
    """Two belts, or a belt and a key, load the wheels against each other along the hinges' motion."""
    b = sarrus.Builder("two wheels on one axis")
    for name in ("first", "second"):
        b.add_body(name, sarrus.Inertia.cylinder(1.0, 0.1, 0.02))
        b.add_joint(name, sarrus.Revolute("z"), "ground", name, tree=True)
    b.add_coupler("belt", {"first": 1.0, "second": -1.0})
    if keyed:
        b.add_joint("other", sarrus.Gimbal("rx ry tx ty tz"), "first", "second", loop=True)
    else:
        b.add_coupler("other", {"first": 2.0, "second": -2.0})
    robot = b.build()
    m = robot.mobility([0.0, 0.0])
    assert (m.degrees_of_freedom, m.redundant_rows) == (1, (f"{robot.constraints[-1]}: row 1",))  # the last of equals
    assert m.unique_reactions == {"first": True, "second": True, "belt": False, "other": False}
    assert components(m, "first") == [0, 0, int(keyed), 0, 0, 0]


def every_joint_a_loop(robot, q):
    """Return the same mechanism with free bodies and constraints only: Wojtyra's formulation."""
    d = robot.description
    here = sarrus.Transform()
    free = [
        JointSpec(f"free {b.name}", sarrus.Free(), "ground", b.name, here, here, False, tree=True) for b in d.bodies
    ]
    held = [dataclasses.replace(spec, tree=False, loop=True, actuated=False) for spec in d.joints]
    loose = sarrus.Mechanism(Description(d.name, d.gravity, d.bodies, (*free, *held), ()))
    poses = (sarrus.Transform.from_matrix(robot.pose(q, b.name)) for b in d.bodies)
    quaternions = ([*sarrus.Rotation(pose.rotation).quaternion, *pose.translation] for pose in poses)
    return loose, np.concatenate(list(quaternions))


@pytest.mark.parametrize(
    "make", [gallery.four_bar_ladder, gallery.sarrus_linkage, gallery.bennett, gallery.delta, 0, 1, 2, 3]
)
def test_it_does_not_matter_which_joints_close_the_loops(make):
    if isinstance(make, int):
        kinds = tuple(kind for kind in CLOSING if "gimbal" not in kind and kind != "universal")
        closed = random_closed(make, bodies=5, joints=kinds, kinds=kinds, loops=2, copies=1)
        robot, q = closed.robot, closed.q
    else:
        robot = make(2) if make is gallery.four_bar_ladder else make()
        q = home(robot)
    m, n = robot.mobility(q), sarrus.Mechanism.mobility(*every_joint_a_loop(robot, q))
    assert (m.kutzbach, m.degrees_of_freedom, m.redundant) == (n.kutzbach, n.degrees_of_freedom, n.redundant)
    assert m.finite_degrees_of_freedom == n.finite_degrees_of_freedom is not None
    assert m.unique_reactions == {name: n.unique_reactions[name] for name in m.unique_reactions}


@pytest.mark.parametrize("seed", range(8))
def test_self_stress_leaves_every_body_in_equilibrium(seed):
    """The tree is welded in its configuration, so that self-stress of the constraints passes through it."""
    kinds = ("distance", "disc", "sphere", "sphere on sphere", *CLOSING)
    closed = random_closed(seed, bodies=6, kinds=kinds, loops=3, backward=0.5)
    d, q = closed.description, closed.q
    pose = {body: sarrus.Transform.from_matrix(closed.robot.pose(q, body)) for body in closed.robot.frames}
    welds = [
        spec
        if spec.name in closed.closing
        else dataclasses.replace(
            spec, joint=sarrus.Fixed(), at_parent=pose[spec.parent].inverse() @ pose[spec.child] @ spec.at_child
        )
        for spec in d.joints
    ]
    robot = sarrus.Mechanism(dataclasses.replace(d, joints=tuple(welds)))
    m = robot.mobility([])
    assert m.redundant == robot.nc > 0
    sums = {body: np.zeros((m.redundant, 6)) for body in ("ground", *robot.bodies)}

    def act(wrenches, onto, off, place):
        """A wrench on one body at this place, and back on the other, added up at the world's origin."""
        there = (pose[onto] @ place).force_matrix.T
        sums[onto] += wrenches @ there
        sums[off] -= wrenches @ there

    for spec in robot.description.joints:
        ends = (spec.child, spec.parent, spec.at_child)
        if robot.joint(spec.name).reversed:
            ends = (spec.parent, spec.child, spec.at_parent)
        act(m.self_stress[spec.name], *ends)
    for spec in robot.description.constraints:
        if hasattr(spec, "length"):
            (parent, _), (child, point) = spec.first, spec.second
            act(m.self_stress[spec.name], child, parent, sarrus.Transform(translation=point))
        else:
            act(m.self_stress[spec.name], spec.body, spec.on, sarrus.Transform(translation=spec.center))
    for body in robot.bodies:
        assert_allclose(sums[body], 0.0, atol=ROUNDING)


# ---- motors --------------------------------------------------------------------------------------------------------------------------

TIP = ("tip", "tx tz")


def five_bar(elbow, tip):
    """Return five bars of 0.5 m on a base of 0.4 m, and q for positions x + i z of the left elbow and the tip."""
    robot = gallery.five_bar(crank=0.5, rod=0.5, base=0.4)
    right = gallery.drawing.apex(tip, 0.4, 0.5, 0.5)
    angles = [-np.angle(z) for z in (elbow, tip - elbow, right - 0.4, tip - right)]
    q = np.array([angles[0], angles[1] - angles[0], angles[2], angles[3] - angles[2]])
    assert np.abs(robot.constraint_residual(q)).max() < 1e-12
    return robot, q


@pytest.mark.parametrize(
    ("motors", "verdict", "locked", "loose"),
    [
        (["left_motor"], "deficient", 1, ("left_elbow", "right_motor", "right_elbow")),
        (["left_motor", "right_motor"], "exact", 0, ()),
        (["left_motor", "pin"], "exact", 0, ()),  # the pin closes the loop
        (["left_motor", "left_elbow", "right_motor"], "redundant", 0, ()),
    ],
)
def test_one_motor_two_and_three(motors, verdict, locked, loose):
    robot = gallery.five_bar()
    found = robot.mobility(home(robot), actuated=motors, output=TIP).actuation
    assert (found.actuators, found.verdict, found.locked_freedoms) == (len(motors), verdict, locked)
    assert found.uncontrolled == loose
    assert not found.output_singular
    assert not found.input_singular
    assert locked or found.condition < 10
    across = robot.mobility(home(robot), actuated=motors, output=("tip", "tx")).actuation
    assert not across.input_singular  # there is always a motion that this output does not feel


def test_output_jacobian():
    robot = gallery.five_bar()
    q = home(robot)
    found = robot.mobility(q, output=TIP)
    v = found.motions @ [0.7, -0.4]
    tip = robot.velocity(q, v, "tip", expressed_in="world_aligned")[[3, 5]]
    assert_allclose(found.actuation.output_jacobian @ v[[0, 2]], tip, rtol=1e-12)


def test_singularities_of_both_types():
    """Gosselin and Angeles: rods in line do not resist the tip across them; a stretched leg cannot push the tip along itself."""
    rods_in_line = sarrus.Mechanism.mobility(*five_bar(-0.3 + 0.4j, 0.2 + 0.4j), output=TIP).actuation
    assert (rods_in_line.output_singular, rods_in_line.input_singular, rods_in_line.locked_freedoms) == (True, False, 1)
    tip = np.exp(1j)
    stretched = sarrus.Mechanism.mobility(*five_bar(tip / 2, tip), output=TIP).actuation
    assert (stretched.output_singular, stretched.input_singular, stretched.locked_freedoms) == (False, True, 0)
    assert rods_in_line.condition == stretched.condition == np.inf
    assert rods_in_line.verdict == stretched.verdict == "exact"


def test_dead_centre():
    """No force on the slider starts the crank there, and the crank does not move the slider."""
    robot = gallery.slider_crank(crank=0.3, rod=1.0)
    q = at(robot, {"guide": 1.3})
    by_slider, by_crank = (robot.mobility(q, actuated=[name], output="slider").actuation for name in ("guide", "motor"))
    assert (by_slider.output_singular, by_slider.input_singular) == (True, False)
    assert (by_crank.output_singular, by_crank.input_singular) == (False, True)
    assert by_slider.uncontrolled == ("motor", "pin")


def test_near_a_singularity():
    tip = 0.2 + 0.4002j
    elbow = gallery.drawing.apex(0, tip, 0.5, 0.5)
    m = sarrus.Mechanism.mobility(*five_bar(elbow, tip), output=TIP)
    assert not m.actuation.output_singular
    assert 100 < m.actuation.condition < np.inf
    assert "near an output singularity" in m.warnings[0]


# ---- maps ----------------------------------------------------------------------------------------------------------------------------

# eigenvalues of F F^T are right to eps of the largest: singular values above 1e-3 of it to nine digits and a half
MAPPED = 1e-8
MAPS = {
    "delta": (gallery.delta, ("platform", "tx ty tz")),
    "stewart": (gallery.stewart, "platform"),
    "five-bar": (gallery.five_bar, TIP),
    "redundant five-bar": (lambda: gallery.five_bar(actuated=4), TIP),
    "Sarrus linkage": (gallery.sarrus_linkage, None),
    "four-bar": (gallery.four_bar, ("rocker", "ry")),
}


@pytest.mark.parametrize("name", MAPS)
def test_map_says_what_mobility_says(name):
    make, output = MAPS[name]
    robot = make()
    start = robot.assemble()
    starts = robot.integrate(start, 0.05 * np.random.default_rng(0).normal(size=(20, robot.nv)))
    q = robot.assemble(near=starts)
    found = robot.mobility_map(q, output=output)
    assert (found.status == 0).all()
    assert found.singularity.tolist() == ["regular"] * 20
    for k in (0, 7, 19):
        m = robot.mobility(q[k], output=output)
        assert (found.rank[k], found.degrees_of_freedom[k]) == (m.rank, m.degrees_of_freedom)
        assert_allclose(found.smallest[k], m.singular_values[m.rank - 1], rtol=MAPPED)
        if m.actuation is not None:
            assert found.locked_freedoms[k] == m.actuation.locked_freedoms
            assert_allclose(found.actuation[k], m.actuation.singular_values.min(initial=1.0), rtol=MAPPED)
            assert output is None or np.isclose(found.condition[k], m.actuation.condition, rtol=1e-6)
    for name in ("rank", "smallest", "condition", "singularity"):
        assert_array_equal(getattr(robot.mobility_map(q, output=output, threads=2), name), getattr(found, name))
        assert getattr(robot.mobility_map(q.reshape(4, 5, -1), output=output), name).shape == (4, 5)


def test_map_tells_singularities():
    """Each type besides regular positions, an invalid quaternion, and open loops."""
    robot, regular = five_bar(-0.3 + 0.4j, 0.1 + 0.7j)
    tip = np.exp(1j)
    places = [regular, five_bar(-0.3 + 0.4j, 0.2 + 0.4j)[1], five_bar(tip / 2, tip)[1], regular + 0.1, regular * np.nan]
    found = robot.mobility_map(np.array(places), output=TIP)
    assert found.status.tolist() == [0, 0, 0, 4, 1]
    assert found.singularity[:3].tolist() == ["regular", "output", "input"]
    assert found.locked_freedoms.tolist() == [0, 1, 0, -1, -1]
    assert np.isfinite(found.condition).tolist() == [True, False, False, False, False]
    assert found.actuation[1] == 0.0
    slider_crank = gallery.slider_crank(crank=0.3, rod=1.0)
    q = slider_crank.assemble(near=at(slider_crank, {"guide": 1.3}), fixed={"motor": np.array([0.0, 0.5])})
    by = {name: slider_crank.mobility_map(q, actuated=[name], output="slider") for name in ("guide", "motor")}
    assert by["guide"].singularity.tolist() == ["output", "regular"]
    assert by["motor"].singularity.tolist() == ["input", "regular"]


def test_a_map_does_not_depend_on_neighbours():
    """A singular configuration is reported alone and among similar ones; one with open loops has no type."""
    robot, regular = five_bar(-0.3 + 0.4j, 0.1 + 0.7j)
    singular = five_bar(-0.3 + 0.4j, 0.2 + 0.4j)[1]
    assert robot.mobility_map(singular, output=TIP).singularity == "output"
    assert robot.mobility_map(np.array([singular, singular]), output=TIP).singularity.tolist() == ["output", "output"]
    assert np.isinf(robot.mobility_map(singular, output=TIP).condition)
    assert robot.mobility_map(regular, output=TIP).singularity == "regular"
    assert robot.mobility_map(regular + 0.1, output=TIP).singularity == ""


# ---- calls ---------------------------------------------------------------------------------------------------------------------------


def test_report():
    robot = gallery.four_bar()
    m = robot.mobility(home(robot), output="rocker")
    assert repr(m) == "<Mobility of 'four-bar': degrees of freedom 1 (finite 1, Kutzbach -2), redundant rows 3>"
    report = str(m)
    for line in (
        "Kutzbach          -2",
        "redundant rows 3    pin2:",
        "motor, pin1, pivot, pin2: moment x z, force y",
        "exact",
    ):
        assert line in report
    assert max(map(len, report.splitlines())) < 120


BAD = [
    ({"q": np.zeros((2, 3))}, sarrus.ShapeError, r"one configuration, \(3,\)"),
    ({"q": [0.0, np.nan, 0.0]}, sarrus.StateError, "q"),
    ({"q": [0.1, 0.2, 0.3]}, sarrus.AssemblyError, "'pin2: .*assemble"),
    ({"actuated": ["moter"]}, sarrus.NameNotFoundError, "did you mean 'motor'"),
    ({"actuated": "motor"}, sarrus.ModelError, r"\['motor'\]"),
    ({"output": "crnk"}, sarrus.NameNotFoundError, "did you mean 'crank'"),
    ({"output": ("crank", "x")}, sarrus.ModelError, "'x' is not one of rx ry rz"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_input(arguments, error, message):
    robot = gallery.four_bar()
    with pytest.raises(error, match=message):
        robot.mobility(**{"q": home(robot)} | arguments)


@pytest.mark.parametrize("actuated", [None, (), ("shoulder",)])
def test_map_of_a_tree(actuated):
    """A tree has no rows, so every motion is possible, and motors act on their own joints."""
    robot = sarrus.mechanisms.double_pendulum()
    found = robot.mobility_map(robot.random(0, size=5), actuated=actuated)
    assert_array_equal(found.rank, 0)
    assert_array_equal(found.degrees_of_freedom, 2)
    assert_array_equal(found.locked_freedoms, 2 - len(actuated or ()))
