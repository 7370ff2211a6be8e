"""Beams of Builder.add_beam: closed forms of Euler-Bernoulli, Timoshenko and the elastica; loops; files, variants and generated code."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.generation import generate

ROOTS = np.array([1.8751040687, 4.6940911330, 7.8547574382])  # of Euler-Bernoulli's cantilever
POINT = np.zeros((3, 3))  # inertia of a point mass
# stiffness of a general beam: about and along y and z, along x, about x
GENERAL = {"EI": (50.0, 70.0), "GA": (400.0, 300.0), "EA": 1e3, "GJ": 30.0, "rotary_inertia": (0.1, 0.2)}
PLANAR = {"without shear": {}, "with shear": {"GA": (None, math.inf)}}


def cantilever(elements=20, gravity=0.0, weight=0.0, **beam):
    """Return a cantilever of unit length, stiffness and mass (massless with a weight at its end), which bends in the x-z plane."""
    beam = {"length": 1.0, "mass_per_length": 1e-14 if weight else 1.0, "EI": (1.0, None), "elements": elements} | beam
    b = sarrus.Builder("cantilever", gravity=(0, 0, -gravity))
    b.add_beam("beam", "ground", **beam)
    if weight:
        b.add_body("weight", sarrus.Inertia(weight, (0, 0, 0), POINT))
        b.add_joint("screw", sarrus.Fixed(), "beam_end", "weight")
    return b.build()


def tip(robot, q=None):
    q = sarrus.equilibrium(robot).q if q is None else q
    return robot.pose(q, "beam_end")[:3, 3]


def frequencies(robot):
    modes = robot.linearize(robot.neutral(), np.zeros(robot.nv)).modes()
    return np.sort(abs(modes.eigenvalues.imag))[::2][:3]


def stiffness(robot):
    return np.concatenate([robot.joint(name).type.stiffness for name in robot.joints])


# ---- small displacements ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elements", [1, 2, 5])
def test_compliance_of_the_end_is_exact(elements):
    """For any number of elements, wrenches at the end cause the twist of the linear theory, with all six strains."""
    length = 2.0
    robot = cantilever(elements, length=length, **GENERAL)
    J = robot.jacobian(robot.neutral(), "beam_end")
    about, along, stretch, twist = GENERAL["EI"], GENERAL["GA"], GENERAL["EA"], GENERAL["GJ"]
    shears = [length / along[k] + length**3 / (3 * about[1 - k]) for k in (0, 1)]
    expected = np.diag([length / twist, length / about[0], length / about[1], length / stretch, *shears])
    expected[1, 5] = expected[5, 1] = -(length**2) / (2 * about[0])
    expected[2, 4] = expected[4, 2] = length**2 / (2 * about[1])
    assert_allclose(
        J @ np.diag(1 / stiffness(robot)) @ J.T, expected, atol=1e-15 * elements * np.abs(expected).max() * 10
    )


@pytest.mark.parametrize("elements", [5, 20])
def test_deflection_without_shear_has_the_stated_error(elements):
    """Without GA, a force at the end deflects it by 1/4n^2 too little, and the own weight by 1/2n^2: midpoint rule of the curvature."""
    small = 1e-5  # of the load: the deflection changes the lever arm by the square of this
    by_force = -3 * tip(cantilever(elements, 1.0, small))[2] / small
    assert by_force == pytest.approx(1 - 1 / (4 * elements**2), rel=1e-8)
    by_weight = -8 * tip(cantilever(elements, small))[2] / small
    assert by_weight == pytest.approx(1 - 1 / (2 * elements**2), rel=1e-8)
    by_weight = -8 * tip(cantilever(elements, small, **PLANAR["with shear"]))[2] / small
    assert by_weight == pytest.approx(1 - 1 / (6 * elements**2), rel=1e-8)


@pytest.mark.parametrize(("kind", "largest"), [("without shear", 3.4e-3), ("with shear", 4.8e-3)])
def test_frequencies_of_euler_and_bernoulli(kind, largest):
    """With 20 elements the first three frequencies are within 0.5 %, and with 40 elements four times nearer."""
    errors = [frequencies(cantilever(n, **PLANAR[kind])) / ROOTS**2 - 1 for n in (20, 40)]
    assert abs(errors[0]).max() < largest
    assert_allclose(errors[0] / errors[1], 4.0, rtol=0.02)


def timoshenko(EI, GA, mass, rotary):
    """Return the first three frequencies of a cantilever of unit length, at which its clamped transfer matrix is singular."""
    from scipy.linalg import expm
    from scipy.optimize import brentq

    def free_end(w):
        by_x = np.zeros((4, 4))  # of deflection, rotation, moment and shear force
        by_x[0, 1], by_x[0, 3], by_x[1, 2] = 1.0, 1 / GA, 1 / EI
        by_x[2, 1], by_x[2, 3], by_x[3, 0] = -rotary * w**2, -1.0, -mass * w**2
        return np.linalg.det(expm(by_x)[2:, 2:])

    grid = np.linspace(0.01, 1.0, 200) * 65.0 * np.sqrt(EI / mass)
    values = [free_end(w) for w in grid]
    return np.array([brentq(free_end, *grid[k : k + 2]) for k in range(199) if values[k] * values[k + 1] < 0][:3])


def test_frequencies_of_timoshenko():
    """A square steel bar of 10 cm and 1 m: shear and rotary inertia change the third frequency by 12 %."""
    side, E, density = 0.1, 210e9, 7850.0
    EI, mass, rotary = E * side**4 / 12, density * side**2, density * side**4 / 12
    GA = 5 / 6 * E / 2.6 * side**2
    exact = timoshenko(EI, GA, mass, rotary)
    assert ROOTS[2] ** 2 * np.sqrt(EI / mass) / exact[2] > 1.1
    robot = cantilever(20, mass_per_length=mass, EI=(EI, None), GA=(None, GA), rotary_inertia=rotary)
    errors = frequencies(robot) / exact - 1
    assert abs(errors).max() < 4e-3
    assert abs(errors[0]) < 1e-4


def test_inertia_is_that_of_a_bar():
    """Mass, centre of mass and inertia of the straight beam do not depend on the number of elements."""
    for elements in (1, 7):
        robot = cantilever(elements, length=2.0, mass_per_length=3.0, **GENERAL)
        assert robot.mass == pytest.approx(6.0, rel=1e-15)
        assert_allclose(robot.center_of_mass(robot.neutral()), (1.0, 0, 0), atol=1e-15)
        b = sarrus.Builder("rigid")
        total = sarrus.Inertia.zero()
        for spec in robot.description.bodies:
            at = sarrus.Transform.from_matrix(robot.pose(robot.neutral(), spec.name))
            total += spec.inertia.transformed(at)
        b.add_body("beam", total)
        assert_allclose(total.about_com, np.diag([0.6, 2.2, 2.4]), atol=1e-14)


def test_damping_is_proportional_to_stiffness():
    """A mode of angular frequency w has the real part -damping w^2 / 2."""
    robot = cantilever(6, damping=1e-3)
    modes = robot.linearize(robot.neutral(), np.zeros(robot.nv)).modes()
    slow = [x for x in modes.eigenvalues if 0 < x.imag < 200.0]
    assert len(slow) >= 3
    for x in slow:
        assert x.real == pytest.approx(-0.5e-3 * abs(x) ** 2, rel=1e-9)


# ---- large displacements ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [1, 2])
def test_a_moment_bends_it_to_a_circle(axis):
    """2 pi EI / L at the end closes a circle in both planes, with any number of elements of less than a quarter revolution."""
    for elements in (5, 20):
        robot = cantilever(elements, **{**GENERAL, "EI": (1.0, 1.0)})
        moments = np.zeros((elements, 6))
        moments[:, axis] = 2 * math.pi
        q = sarrus.equilibrium(robot, tau=moments.ravel()).q
        assert_allclose(robot.pose(q, "beam_end"), np.eye(4), atol=1e-9)  # Newton's tolerance, times the lever arm


# deflection and shortening for F L^2 / EI by elliptic integrals: Bisshop and Drucker 1945; digits of Mattiasson 1981
ELASTICA = {1.0: (0.30172, 0.05643), 2.0: (0.49346, 0.16064), 5.0: (0.71379, 0.38763), 10.0: (0.81061, 0.55500)}


@pytest.mark.parametrize("kind", PLANAR)
@pytest.mark.parametrize("force", ELASTICA)
def test_elastica_of_bisshop_and_drucker(force, kind):
    """A vertical force at the end: within 0.13 % of the length with 20 elements, and of second order."""
    exact = np.array(ELASTICA[force])
    errors = []
    for elements in (10, 20):
        x, _, z = tip(cantilever(elements, 1.0, force, **PLANAR[kind]))
        errors.append(np.abs((-z, 1 - x) - exact))
    assert errors[1].max() < 1.3e-3
    assert (errors[1] < errors[0] / 3.5 + 1e-5).all()  # the published numbers have five digits


# ---- loops -------------------------------------------------------------------------------------------------------------


def guide(push, elements=20, **beam):
    """Return a stage of unit mass on two parallel leaf springs that hang from the ground; gravity pushes it sideways."""
    down = sarrus.Rotation.from_axis_angle("y", np.pi / 2)
    b = sarrus.Builder("parallel guide", gravity=(push, 0, 0))
    b.add_body("stage", sarrus.Inertia.box(1.0, (0.4, 0.1, 0.02)))
    for name, x in (("left", -0.2), ("right", 0.2)):
        at = sarrus.Transform(down, (x, 0, 0))
        b.add_beam(
            name, "ground", length=1.0, mass_per_length=1e-12, elements=elements, EI=(1.0, None), at_parent=at, **beam
        )
        b.add_joint(f"{name} weld", sarrus.Fixed(), f"{name}_end", "stage", at_child=at)
    return b.build()


@pytest.mark.parametrize(("beam", "error"), [({"GA": math.inf, "EA": 1e9}, 0.0), ({}, 1 / 20**2)], ids=str)
def test_a_parallel_guide_closes_a_loop(beam, error):
    """Stiffness 24 EI / L^3; the stage moves along the leaves by 3/5 of the squared displacement."""
    robot, push = guide(2.4e-2, **beam), 2.4e-2
    assert robot.loop_joints == ("right weld",)
    before, after = (robot.pose(q, "stage")[:3, 3] for q in (robot.assemble(), sarrus.equilibrium(robot).q))
    x, _, z = after - before
    assert x == pytest.approx(push / 24 * (1 - error), rel=2e-4 if error else 1e-5)  # stiffening by bending: x^2
    assert z == pytest.approx(0.6 * x**2, rel=1e-2)


def test_energy_is_conserved():
    """A twisted and bent beam vibrates in space; implicit midpoint conserves quadratic energies."""
    robot = cantilever(4, **GENERAL)
    q = 0.1 * np.random.default_rng(0).normal(size=robot.nv) / np.tile([1, 1, 1, 5, 5, 5], 4)
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.2, dt=1e-4, method="implicit_midpoint")
    assert_allclose(run.energy, run.energy[0], rtol=1e-4)


# ---- the description ---------------------------------------------------------------------------------------------------


def test_parts():
    b = sarrus.Builder("two")
    b.add_beam("a", "ground", length=1.0, mass_per_length=1.0, elements=2, EI=1.0, at_parent=(0, 0, 1))
    b.add_beam("b", "a_end", length=0.5, mass_per_length=1.0, elements=1, GA=(1.0, None))
    robot = b.build()
    assert robot.bodies == ("a_0", "a_1", "a_2", "b_0", "b_1")
    assert robot.joints == ("a_clamp", "a_element_1", "a_element_2", "b_clamp", "b_element_1")
    assert_allclose(tip_of(robot, "a_1"), (0.5, 0, 1))
    assert_allclose(tip_of(robot, "a_end"), (1, 0, 1))
    assert_allclose(tip_of(robot, "b_end"), (1.5, 0, 1))
    assert robot.joint("b_element_1").type == sarrus.Prismatic("y", stiffness=2.0)
    assert robot.joint("a_element_1").type == sarrus.Gimbal("ry rz", stiffness=2.0)


def tip_of(robot, frame):
    return robot.pose(robot.neutral(), frame)[:3, 3]


def test_files_variants_and_generated_code(tmp_path):
    robot = cantilever(3, damping=1e-3, **GENERAL)
    robot.save(tmp_path / "beam.json")
    assert sarrus.load(tmp_path / "beam.json").description == robot.description
    for suffix in ("xml", "sdf"):
        robot.save(tmp_path / f"beam.{suffix}")
        read = sarrus.load(tmp_path / f"beam.{suffix}")
        assert_allclose(read.mass_matrix(read.neutral()), robot.mass_matrix(robot.neutral()), atol=1e-12)
        assert_allclose(stiffness(read), stiffness(robot))
    with pytest.raises(sarrus.ModelError, match=r"URDF cannot represent: .*stiffness of joint 'beam_element_1'"):
        robot.save(tmp_path / "beam.urdf")
    stiffer = robot.replace(stiffness={name: 4 * robot.joint(name).type.stiffness for name in robot.joints[1:]})
    assert_allclose(frequencies(stiffer), 2 * frequencies(robot), rtol=1e-2)  # damping is the same
    assert generate(robot, ["forward_dynamics"], tmp_path / "c").functions


BAD = {
    "length": [{"length": -1.0}, {"length": math.nan}, {"length": "long"}],
    "mass_per_length": [{"mass_per_length": 0.0}, {"mass_per_length": None}],
    "elements": [{"elements": 0}, {"elements": 2.5}, {"elements": True}, {"elements": 10**30}, {"elements": [1, 2]}],
    "EI": [{"EI": 0.0}, {"EI": (1, 2, 3)}, {"EI": "stiff"}, {"EI": (1.0, math.inf)}, {"EI": True}],
    "GA": [{"GA": -1.0}, {"GA": (1.0, "b")}],
    "EA": [{"EA": (1.0, 2.0)}],
    "is rigid, because none of EI, GA, EA and GJ is finite": [{"EI": None}, {"EI": None, "GA": math.inf}],
    "the spring along ry": [{"EI": 1e300, "length": 1e-30}],
    "expected rotary_inertia with GJ": [{"GJ": 1.0}],
    "rotary_inertia": [{"rotary_inertia": -1.0}],
    "damping": [{"damping": -1.0}, {"damping": math.inf}],
    "at_parent": [{"at_parent": (1, 2)}],
}


@pytest.mark.parametrize(("fault", "beam"), [(fault, beam) for fault, beams in BAD.items() for beam in beams], ids=str)
def test_wrong_arguments(fault, beam):
    b = sarrus.Builder("bad")
    with pytest.raises(sarrus.ModelError, match=f"beam 'beam'.*{fault}"):
        b.add_beam("beam", "ground", **{"length": 1.0, "mass_per_length": 1.0, "EI": 1.0} | beam)
    b.add_body("beam_0")  # no part of the beam was added


def test_wrong_names():
    b = sarrus.Builder("bad")
    b.add_body("beam_3")
    for name, parent, fault in (
        (5, "ground", "a beam needs a name; got 5"),
        ("", "ground", "a beam needs a name; got ''"),
        ("beam", 5, "beam 'beam': parent and child must be names of bodies; got 5"),
        ("beam", "ground", "two bodies are named 'beam_3'"),
        ("b", "b_0", "joint 'b_clamp' connects body 'b_0' to itself"),
    ):
        with pytest.raises(sarrus.ModelError, match=fault):
            b.add_beam(name, parent, length=1.0, mass_per_length=1.0, EI=1.0)
    b.add_body("beam_0"), b.add_body("b_0")
