"""Linear equations of motion, compared with nearby states and closed forms."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.analysis import linearization
from sarrus.analysis.independent_coordinates import velocity_names
from tests.effort import examples
from tests.gallery import made
from tests.oracles.linear_equations import linear_equations
from tests.random_closed import closed_mechanisms
from tests.random_mechanisms import mechanisms, random_state, seeds
from tests.variants import scaled

# of A, to the digits that its differences keep where all speeds and lengths are of order one
DIGITS = 1e-9


def picks(robot, names):
    """Return E (k, nv): the rows of the identity for these names of velocities."""
    all_names = [n if robot.joint(n).nv == 1 else f"{n}[{k}]" for n in robot.joints for k in range(robot.joint(n).nv)]
    return np.eye(robot.nv)[[all_names.index(name) for name in names]]


def rank(J):
    return np.linalg.matrix_rank(J) if J.size else 0


def deviation_rate(robot, q, v, q1, v1, h=1e-4):
    """Return d-dot of d = difference(q, q1) for two moving states, by a central difference of fourth order."""
    d = [robot.difference(robot.integrate(q, t * v), robot.integrate(q1, t * v1)) for t in h * np.array([-2, -1, 1, 2])]
    return (8 * (d[2] - d[1]) - (d[3] - d[0])) / (12 * h)


def assert_tells_of_states_nearby(linear, robot, q, v, tau, rng, **given):
    """Check x-dot - rate = A x, to second order in x, for states found by other projections than those of A."""
    E_q, E_v = picks(robot, linear.coordinates), picks(robot, linear.velocities)
    a = robot.forward_dynamics(q, v, tau, check=False, **given)
    size = 1e-5
    away = linear.configuration_basis @ rng.normal(size=len(linear.coordinates))
    q1 = robot.integrate(q, size * away / max(1.0, abs(away).max(initial=0.0)))
    if robot.nc:
        q1 = robot.project_configuration(q1, **given)
    v1 = v + size * rng.normal(size=robot.nv)
    v1 = robot.project_velocity(q1, v1, **given) if robot.nc else v1
    a1 = robot.forward_dynamics(q1, v1, tau, check=False, **given)
    x = np.concatenate([E_q @ robot.difference(q, q1), E_v @ (v1 - v)])
    x_dot = np.concatenate([E_q @ deviation_rate(robot, q, v, q1, v1), E_v @ (a1 - a)])
    scale = max(1.0, np.abs(linear.A).max(initial=0.0)) * np.abs(x).max(initial=0.0)
    assert_allclose(x_dot, linear.A @ x, rtol=0, atol=1e-3 * scale + 1e-9 * max(1.0, np.abs(a).max(initial=0.0)))


# ---- any mechanism -------------------------------------------------------------------------------------------------


@examples(15)
@given(mechanisms(springs=True), seeds())
def test_of_trees(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(robot, rng)
    linear = robot.linearize(q, v, tau)
    assert linear.coordinates == linear.velocities and linear.A.shape == (2 * robot.nv,) * 2
    assert_tells_of_states_nearby(linear, robot, q, v, tau, rng)
    assert_allclose(linear.E[robot.nv :], robot.mass_matrix_inverse(q), rtol=1e-8, atol=1e-8)


@examples(20)
@given(closed_mechanisms(), seeds())
def test_of_closed_mechanisms(closed, seed):
    """Every kind of constraint, including rolling, Pfaffian and driven ones, in motion."""
    robot, (q, v, tau, time), rng = closed.robot, closed.state, np.random.default_rng(seed)
    linear = robot.linearize(q, v, tau, time=time)
    J = robot.constraint_jacobian(q, time=time)
    held = [row for c in robot.constraints for row in robot.constraint(c).holonomic]
    assert len(linear.velocities) == robot.nv - rank(J)
    assert len(linear.coordinates) == robot.nv - rank(J[held])
    assert linear.coordinates[: len(linear.velocities)] == linear.velocities
    assert_allclose(J @ linear.velocity_basis, 0, atol=1e-9)
    assert_allclose(J[held] @ linear.configuration_basis, 0, atol=1e-9)
    assert_tells_of_states_nearby(linear, robot, q, v, tau, rng, time=time)


# ---- by dense algebra ------------------------------------------------------------------------------------------------


NAMES = ("A", "B", "E", "rate", "configuration_basis", "velocity_basis")


def assert_is_dense_algebra(robot, q, v, tau, digits=1e-10, coordinates=None, first=None, **given):
    """Compare the exact path, and all of its numbers, with dense algebra, relative to the sizes of the terms."""
    linear = robot.linearize(q, v, tau, coordinates=coordinates, **given)
    dense = linear_equations(robot, q, v, tau, first, **given)
    all_names = velocity_names(robot)
    assert linear.coordinates == tuple(all_names[k] for k in dense["columns"])
    assert linear.velocities == linear.coordinates[: dense["freedoms"]]
    assert (linear.error <= 1e-12 * max(1.0, np.abs(linear.A).max(initial=0.0))).all()  # rounding of q, if anything
    for name in NAMES:
        expected = dense[name]
        size = max(1.0, np.abs(expected).max(initial=0.0))
        assert getattr(linear, name).shape == expected.shape
        assert_allclose(getattr(linear, name), expected, rtol=0, atol=digits * size, err_msg=name)


ANY = [
    "stanford_arm", "four_bar", "delta", "stewart", "whipple_bicycle", "rolling_disc", "bricard", "bennett", "goldberg_6r", "sarrus_linkage",
    "tsai_3upu", "double_hooke", "free_flyer", "rover", "five_bar", "quadruped", "hoberman_ring", "scissor_lift", "biped_leg", "watt",
]  # fmt: skip


@pytest.mark.parametrize("at_rest", [False, True])
@pytest.mark.parametrize("name", ANY)
def test_of_the_gallery_by_dense_algebra(name, at_rest):
    robot, rng = made(name), np.random.default_rng(11)
    q = robot.assemble() if robot.nc else robot.random(1)
    v, tau = rng.normal(size=(2, robot.nv))
    v = np.zeros(robot.nv) if at_rest else robot.project_velocity(q, v) if robot.nc else v
    assert_is_dense_algebra(robot, q, v, tau)
    wrenches = {robot.bodies[-1]: rng.normal(size=6)}
    assert_is_dense_algebra(robot, q, v, tau, wrenches=wrenches)


@examples(20)
@given(closed_mechanisms(), seeds())
def test_of_closed_mechanisms_by_dense_algebra(closed, seed):
    robot, (q, v, tau, time) = closed.robot, closed.state
    if not robot._asks_for_rows:
        assert_is_dense_algebra(robot, q, v, tau, 1e-8, time=time)


@examples(10)
@given(mechanisms(springs=True, joints=("spherical", "gimbal rx ry rz", "universal", "free", "planar")), seeds())
def test_of_trees_in_any_order_of_coordinates(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(robot, rng)
    first = rng.permutation(robot.nv).tolist()
    assert_is_dense_algebra(robot, q, v, tau, 1e-8, places(robot, first), first)


def places(robot, columns):
    """Return the indices of coordinates by joint and index."""
    pairs = [(name, k) for name in robot.joints for k in range(robot.joint(name).nv)]
    return [pairs[k] for k in columns]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("delta", ["motor3", "motor1", "motor2"]),
        ("whipple_bicycle", ["lean", "steer", "rear wheel"]),
        ("five_bar", ["right_motor", "left_motor"]),
        ("stewart", [f"leg{k}" for k in (3, 1, 2, 6, 5, 4)]),
    ],
)
@pytest.mark.parametrize("at_rest", [False, True])
def test_in_coordinates_that_are_asked_for(name, first, at_rest):
    robot, rng = made(name), np.random.default_rng(5)
    q = robot.assemble()
    v, tau = robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    v = 0.0 * v if at_rest else v
    columns = [velocity_names(robot).index(joint) for joint in first]
    assert_is_dense_algebra(robot, q, v, tau, coordinates=first, first=columns)


def without_derivatives(*arguments, core=linearization._linear_equations, **options):
    numbers = core(*arguments, **options)
    numbers[..., 0] = 0.0
    return numbers


@pytest.mark.parametrize("name", ["stanford_arm", "four_bar", "delta", "whipple_bicycle", "bricard"])
def test_differences_say_what_derivatives_do(name, monkeypatch):
    """Differences of states on the loops, which replace missing derivatives."""
    robot, rng = getattr(sarrus.mechanisms, name)(), np.random.default_rng(3)
    q = robot.assemble() if robot.nc else robot.random(1)
    v, tau = rng.normal(size=(2, robot.nv))
    v = robot.project_velocity(q, v) if robot.nc else v
    exact = robot.linearize(q, v, tau)
    monkeypatch.setattr(linearization, "_linear_equations", without_derivatives)
    monkeypatch.setattr(linearization, "_linear_of_one_state", lambda *_: None)
    other = robot.linearize(q, v, tau)
    assert not exact.error.any() and other.error.any()
    assert_allclose(other.A, exact.A, rtol=0, atol=DIGITS * max(1.0, np.abs(exact.A).max()))


def test_a_batch_is_its_states():
    fourbar = sarrus.mechanisms.four_bar()
    q = fourbar.assemble(fixed={"motor": np.array([[0.3, 0.8, 1.5], [2.0, 2.5, 3.0]])[..., None]})
    v = fourbar.complete_velocity(q, {"motor": 2.0})
    tau = np.array([0.5, 0.0, 0.0])
    wrenches = {"coupler": np.random.default_rng(0).normal(size=(3, 6))}
    both = fourbar.linearize(q, v, tau, coordinates=["motor"], wrenches=wrenches)
    one = fourbar.linearize(q[1, 2], v[1, 2], tau, coordinates=["motor"], wrenches={"coupler": wrenches["coupler"][2]})
    for name in ("A", "B", "E", "rate", "configuration_basis", "velocity_basis"):
        assert_allclose(getattr(both, name)[1, 2], getattr(one, name), rtol=0, atol=DIGITS)
    assert_allclose(both.modes().eigenvalues[1, 2], one.modes().eigenvalues, rtol=0, atol=DIGITS)
    assert both.error.shape == both.A.shape == (2, 3, 2, 2)
    q = q.copy()
    q[0, 1, 0] = np.nan
    spoilt = fourbar.linearize(q, v, tau, coordinates=["motor"], wrenches=wrenches)
    assert np.isnan(spoilt.A[0, 1]).all() and np.isnan(spoilt.modes().eigenvalues[0, 1]).all()
    sound = np.arange(6) != 1
    assert_allclose(spoilt.A.reshape(6, 2, 2)[sound], both.A.reshape(6, 2, 2)[sound], rtol=0, atol=DIGITS)
    with pytest.raises(sarrus.StateError):
        fourbar.linearize(q[0, 1], v[0, 1])


def test_a_bad_state_spoils_its_own_row():
    """An invalid state, or one without derivatives, affects only its own row."""
    robot = sarrus.mechanisms.four_bar(1.0, 0.5, 1.0, 0.5)
    near = np.array([0.7, 4e-6, 1.2, 0.3, 0.4])  # the second is next to the flat one
    q, v, tau = np.stack([near, -near, near], axis=-1), np.zeros((5, 3)), np.array([0.2, 0.0, 0.0])
    q[3, 0], v[4] = np.nan, 1.0
    many, status = robot.linearize(q, v, tau, coordinates=["motor"], return_status=True)
    assert status.tolist() == [0, 0, 0, 1, 4]
    assert not many.error[[0, 2]].any() and many.error[1].any()
    assert np.isnan(many.A[3:]).all() and np.isnan(many.B[3:]).all()
    for k in range(3):
        one = robot.linearize(q[k], v[k], tau, coordinates=["motor"])
        assert_allclose(many.A[k], one.A, rtol=1e-9)
    # nor one in which more moves than the coordinates tell
    flat = np.stack([np.zeros(3), q[0], np.zeros(3)])
    lost, status = robot.linearize(flat, np.zeros(3), tau, coordinates=["motor"], return_status=True)
    assert status.tolist() == [2, 0, 2] and np.isnan(lost.A[[0, 2]]).all()
    assert_allclose(lost.A[1], many.A[0], rtol=0, atol=DIGITS)
    again = robot.linearize(q, v, tau, coordinates=["motor"], threads=2)
    assert np.array_equal(many.A, again.A, equal_nan=True)
    assert_allclose(many.A, robot.linearize(q, v, tau).A, rtol=1e-9)


def test_a_status_instead_of_an_error():
    robot = sarrus.mechanisms.four_bar(1.0, 0.5, 1.0, 0.5)
    cases = [(np.zeros(3), None, 2), (np.full(3, np.nan), ["motor"], 1), (np.full(3, 0.7), None, 4)]
    for q, coordinates, expected in cases:
        linear, status = robot.linearize(q, np.zeros(3), coordinates=coordinates, return_status=True)
        assert status == expected and np.isnan(linear.A).any()
    assert robot.linearize([0.7, -0.7, 0.7], np.zeros(3), return_status=True)[1] == 0


# ---- what does not depend on how it is asked -------------------------------------------------------------------------


def bars(loop, rest):
    """Return a four-bar on springs, without weight, with one of its joints as loop joint."""
    b = sarrus.Builder(gravity=(0, 0, 0))
    for name, length in (("crank", 0.4), ("coupler", 1.1), ("rocker", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    ends = {
        "motor": ("ground", "crank", {}),
        "pin1": ("crank", "coupler", {"at_parent": (0.4, 0, 0)}),
        "pivot": ("ground", "rocker", {"at_parent": (1.0, 0, 0)}),
        "pin2": ("coupler", "rocker", {"at_parent": (1.1, 0, 0), "at_child": (0.9, 0, 0)}),
    }
    for k, (name, (parent, child, places)) in enumerate(ends.items()):
        hinge = sarrus.Revolute("y", stiffness=8.0 + k, rest=rest.get(name, 0.0), damping=0.1 * k)
        b.add_joint(name, hinge, parent, child, **places, loop=name == loop)
    return b.build()


def test_eigenvalues_of_equilibria_depend_neither_on_coordinates_nor_on_where_a_loop_is_closed():
    fourbar = bars("pin2", {})
    place = fourbar.joint_states(fourbar.assemble(fixed={"motor": 0.5})).q
    rest, found = {name: float(x[0]) for name, x in place.items()}, []
    for loop in rest:
        robot = bars(loop, rest)
        q = np.concatenate([place[name] for name in robot.joints])
        for name in robot.joints:
            linear = robot.linearize(q, np.zeros(3), coordinates=[name])
            assert linear.states == (name, f"{name}'")
            found.append(np.sort_complex(linear.modes().eigenvalues))
    assert len(found) == 12
    assert_allclose(found, np.tile(found[0], (12, 1)), rtol=0, atol=1e-8)


def test_eigenvalues_of_a_mechanism_go_with_the_root_of_its_size():
    """Under gravity alone, held by the motor, eigenvalues scale with the square root of the mechanism's size."""
    found = []
    for size in (1.0, 1e-6, 1e-3, 1e4):
        robot = sarrus.mechanisms.slider_crank(0.3 * size, 1.0 * size)
        q, rest = robot.assemble(fixed={"motor": 0.7}), np.zeros(3)
        tau = robot.actuation_matrix(robot.neutral()) @ robot.actuator_efforts(q, rest, rest)
        modes = [robot.linearize(q, rest, tau, coordinates=[name]).modes() for name in robot.joints]
        found += [mode.frequencies * np.sqrt(size) for mode in modes]
    assert_allclose(found, np.full((12, 2), found[0][0]), rtol=1e-9)


# ---- closed forms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1e-6, 1e-3, 1e3])
def test_coordinates_are_chosen_and_judged_in_no_unit(m):
    """The best-conditioned coordinates of a slider-crank, and the test of the slide's independence, up to dead centre."""
    robot = sarrus.mechanisms.slider_crank()
    other, units = scaled(robot, m, m**3)
    for angle in (0.7, 1e-2, 1e-5, 1e-8, 1e-11):
        q = robot.assemble(fixed={"motor": angle})
        v = robot.complete_velocity(q, {"motor": 1.0})
        states = (robot, q, v), (other, q * units.coordinates(robot), v * units.velocities(robot))
        usual, there = (each.linearize(*state) for each, *state in states)
        assert there.coordinates == usual.coordinates
        rates = [np.sort_complex(np.linalg.eigvals(of.A)) for of in (usual, there)]
        assert_allclose(rates[1] * units.s, rates[0], rtol=0, atol=1e-6 * np.abs(rates[0]).max())
        asked = [each.linearize(*state, coordinates=["guide"], return_status=True)[1] for each, *state in states]
        assert asked[0] == asked[1]
        reduced = sarrus.formulations.reduced_dynamics
        asked = [reduced(each, *state, independent=["guide"], return_status=True)[1] for each, *state in states]
        assert asked[0] == asked[1]
        forms = [reduced(each, *state) for each, *state in states]
        assert forms[0].coordinates == forms[1].coordinates


def test_pendulum():
    robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    linear = robot.linearize([0.0], [0.0])
    assert_allclose(linear.A, [[0, 1], [-9.81 / 0.5, 0]], rtol=0, atol=DIGITS)
    assert_allclose(linear.E, [[0], [1 / (2.0 * 0.5**2)]], rtol=0, atol=DIGITS)
    upright = robot.linearize([np.pi], [0.0]).modes()
    assert_allclose(np.sort(upright.eigenvalues.real), [-np.sqrt(19.62), np.sqrt(19.62)], rtol=0, atol=DIGITS)
    modes = linear.modes()
    assert_allclose(modes.damping, 0, atol=DIGITS)
    assert_allclose(modes.shapes, 1.0, atol=DIGITS)


def test_damped_oscillator():
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("mass", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x", stiffness=50.0, damping=4.0), "ground", "mass", actuated=True)
    linear = b.build().linearize([0.0], [0.0])
    modes = linear.modes()
    assert_allclose(modes.frequencies, 5.0, rtol=0, atol=DIGITS)
    assert_allclose(modes.damping, 4.0 / (2 * np.sqrt(50.0 * 2.0)), rtol=0, atol=DIGITS)
    assert_allclose(linear.B, [[0], [0.5]], rtol=0, atol=DIGITS)


def test_a_body_that_spins_about_a_principal_axis():
    """Euler's equations; relative to the rotating body, deviations of attitude rotate backwards."""
    I, rate = np.array([0.2, 0.3, 0.4]), 2.0
    b = sarrus.Builder(gravity=(0, 0, 0))
    b.add_body("body", sarrus.Inertia(2.0, (0, 0, 0), np.diag(I)))
    b.add_joint("float", sarrus.Free(), "ground", "body")
    robot = b.build()
    for axis in range(3):
        v = np.zeros(6)
        v[axis] = rate
        eigenvalues = robot.linearize(robot.neutral(), v).modes().eigenvalues
        j, k = (axis + 1) % 3, (axis + 2) % 3
        nutation = rate * np.sqrt(complex((I[j] - I[axis]) * (I[axis] - I[k]) / (I[j] * I[k])))
        for wanted in (nutation, -nutation, 1j * rate, -1j * rate):
            assert abs(eigenvalues - wanted).min() < 1e-7


@pytest.mark.parametrize("speed", [0.0, 1.5, 4.0])
def test_a_disc_rolls_upright_if_it_is_fast_enough(speed):
    """lambda^2 = (A m g r - C (C + m r^2) W^2) / (A (A + m r^2)), A about a diameter, C about the axle, W the rate of rolling (Routh)."""
    m, r, A, C = 2.0, 0.3, 0.05, 0.1
    b = sarrus.Builder()
    for name in ("at place", "at height", "leaning"):
        b.add_body(name)
    b.add_body("disc", sarrus.Inertia(m, (0, 0, 0), np.diag([A, C, A])))
    b.add_joint("place", sarrus.Planar("z"), "ground", "at place", at_parent=(0, 0, r))
    b.add_joint("height", sarrus.Prismatic("z"), "at place", "at height")
    b.add_joint("lean", sarrus.Revolute("x"), "at height", "leaning")
    b.add_joint("roll", sarrus.Revolute("y"), "leaning", "disc")
    b.add_rolling("contact", "disc", radius=r, axle="y")
    robot = b.build()
    q = robot.assemble()
    v = robot.complete_velocity(q, {"roll": speed / r, "lean": 0.0, "place": [speed, 0.0, 0.0]})
    squared = (A * m * 9.81 * r - C * (C + m * r**2) * (speed / r) ** 2) / (A * (A + m * r**2))
    linear = robot.linearize(q, v)
    assert (len(linear.coordinates), len(linear.velocities)) == (5, 3)
    eigenvalues = linear.modes().eigenvalues
    for wanted in (np.sqrt(complex(squared)), -np.sqrt(complex(squared))):
        assert abs(eigenvalues - wanted).min() < 1e-8


def test_a_four_bar_on_a_spring():
    """m(y) y'' + m'(y)/2 y'^2 + U'(y) = tau: about any equilibrium with tau, lambda^2 = -U''/m."""
    spring = sarrus.description.SpringSpec("spring", ("crank", (0.2, 0, 0)), ("rocker", (0.4, 0, 0)), 300.0, 0.5, 0.0)
    robot = sarrus.Mechanism(dataclasses.replace(sarrus.mechanisms.four_bar().description, springs=(spring,)))
    y = 0.7
    angles = y + 1e-2 * np.arange(-3, 4)
    q = robot.assemble(near=robot.assemble(fixed={"motor": y}), fixed={"motor": angles[:, None]})
    U = robot.potential_energy(q)
    slope, curvature = np.array([-1, 9, -45, 0, 45, -9, 1]) / 0.6, np.array([2, -27, 270, -490, 270, -27, 2]) / 180e-4
    G = sarrus.formulations.reduced_dynamics(robot, q[3], np.zeros(3), independent=["motor"])
    tau = np.array([slope @ U, 0.0, 0.0])
    linear = robot.linearize(q[3], np.zeros(3), tau, coordinates=["motor"])
    assert_allclose(linear.rate, 0.0, atol=1e-7)
    assert_allclose(linear.A[0], [0, 1], atol=DIGITS)
    assert_allclose(linear.A[1], [-curvature @ U / G.mass_matrix[0, 0], 0], rtol=1e-7, atol=1e-6)


def test_a_stewart_platform_on_springs():
    """Relaxed legs without weight: K = sum of k l l^T over the legs' lines l, as wrenches on the platform, and M with the legs' inertia."""
    k, c = 5e3, 20.0
    robot = sarrus.mechanisms.stewart()
    d, q, legs = robot.description, robot.assemble(), robot.actuated

    def on_spring(joint):
        here = float(q[robot.joint(joint.name).q_slice][0])
        return dataclasses.replace(joint, joint=dataclasses.replace(joint.joint, stiffness=k, damping=c, rest=here))

    joints = tuple(on_spring(j) if j.name in legs else j for j in d.joints)
    soft = sarrus.Mechanism(dataclasses.replace(d, joints=joints, gravity=(0.0, 0.0, 0.0)))
    linear = soft.linearize(q, np.zeros(soft.nv), coordinates=legs)
    assert linear.coordinates == tuple(legs)
    # independent of the differences: all in the legs' own lengths
    form = sarrus.formulations.reduced_dynamics(soft, q, np.zeros(soft.nv), independent=legs)
    stiffness, damping = (-np.linalg.solve(form.mass_matrix, x * np.eye(6)) for x in (k, c))
    size = np.abs(stiffness).max()
    assert_allclose(linear.A[6:], np.hstack([stiffness, damping]), rtol=0, atol=1e-9 * size)
    undamped = np.sqrt(np.linalg.eigvals(-stiffness).real)
    assert_allclose(np.sort(linear.modes().frequencies)[::2], np.sort(undamped), rtol=1e-6)


@pytest.mark.parametrize("speed", [0.0, 2.0])
@pytest.mark.parametrize("angle", [1e-4, 1e-3, 1e-2, 1e-1, 0.5])
def test_rounding_near_a_singular_position_is_in_the_error(angle, speed):
    """A parallelogram rotated so that its angles lose digits, compared with the equation of its crank."""
    turned = (0.7, -1.1, 0.4)

    def about_y(a):
        return sarrus.Transform([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]], (0, 0, 0))

    def placed(k, x):
        return sarrus.Transform(about_y(-turned[k]).rotation, (x, 0, 0))

    b = sarrus.Builder("parallelogram")
    for name, length in (("a", 1.0), ("b", 2.0), ("c", 1.0)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    y = sarrus.Revolute("y")
    b.add_joint("m", y, "ground", "a", at_parent=placed(0, 0), actuated=True)
    b.add_joint("p1", y, "a", "b", at_parent=placed(1, 1))
    b.add_joint("p", y, "ground", "c", at_parent=placed(2, 2))
    b.add_joint("p2", y, "b", "c", at_parent=(2, 0, 0), at_child=(1, 0, 0))
    robot, d = b.build(), np.array([1.0, -1.0, 1.0])
    q, v = np.stack([x * d + turned for x in angle * np.linspace(0.9, 1.1, 9)]), speed * d
    linear = robot.linearize(q, v, [3.0, 0, 0], coordinates=["m"])
    off = np.abs(linear.A[:, 1, 0] + 19.62 * np.sin(q[:, 0] - turned[0]) / (5 / 3))
    error = linear.error.max(axis=(-2, -1))
    assert (off < 10.0 * error + 1e-12).all()
    assert np.median(error) < 100.0 * np.median(off)
    assert_array_equal(error > 0.0, angle < 0.2)
    assert_allclose(
        robot.linearize(q[0], v, [3.0, 0, 0], coordinates=["m"]).error, linear.error[0], rtol=1e-3, atol=1e-13
    )
