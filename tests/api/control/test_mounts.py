"""Elements between frames: bushings, play of pins and gas springs satisfy their formulas, and act in every way to run."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.control import Bushing, CompliantContact, GasSpring, PinClearance, Thruster
from sarrus.spatial import exp, log
from tests.small_mechanisms import METHODS, double_pendulum, slider

G = 9.81
AT_REST = np.array([0, 0, 0, 1.0, 0, 0, 0])
K = np.array([3.0, 4.0, 5.0, 200.0, 300.0, 400.0])


def floating(mass=2.0, gravity=(0.0, 0.0, 0.0), inertia=None):
    b = sarrus.Builder("block", gravity=gravity)
    b.add_body("block", sarrus.Inertia.box(mass, (0.3, 0.2, 0.1)) if inertia is None else inertia)
    b.add_joint("float", sarrus.Free(), "ground", "block")
    return b.build()


def two_arms():
    """Two bodies on branches of a tree, with a frame on each."""
    b = sarrus.Builder("arms", gravity=(0.0, 0.0, 0.0))
    for name in ("left", "right"):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.05))
    b.add_body("trunk", sarrus.Inertia.sphere(3.0, 0.2))
    b.add_joint("float", sarrus.Free(), "ground", "trunk")
    b.add_joint("shoulder", sarrus.Spherical(), "trunk", "left", at_parent=(0.2, 0, 0))
    b.add_joint("hip", sarrus.Universal("x", "z"), "trunk", "right", at_parent=(0, 0.1, 0))
    b.add_frame("a", "left", sarrus.Transform.from_rpy(0.3, -0.2, 0.5, (0.4, 0.1, 0.0)))
    b.add_frame("b", "right", sarrus.Transform.from_rpy(-0.4, 0.6, 0.1, (0.3, 0.0, 0.2)))
    return b.build()


def coordinates(robot, q, frame, on):
    """Return the rotation vector and the displacement in the middle frame, from their definition."""
    A, B = robot.pose(q, on), robot.pose(q, frame)
    turn = log(A[:3, :3].T @ B[:3, :3])
    half = A[:3, :3] @ exp(0.5 * turn)
    return np.concatenate([turn, half.T @ (B[:3, 3] - A[:3, 3])])


def forces(robot, q, v, *elements):
    return sarrus.simulate(robot, q, v, 0.0, list(elements), method="rk4").tau[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_bushing_derives_from_its_energy(seed):
    """tau.v is the power -(k x + c x') x' + f x' of the six coordinates, whose rates are differences: h^2 and rounding / h."""
    robot, rng = two_arms(), np.random.default_rng(seed)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    c, f, h = rng.uniform(0, 9, 6), rng.normal(size=6), 1e-4
    ends = [coordinates(robot, robot.integrate(q, s * h * v), "a", "b") for s in (-2, -1, 1, 2)]
    x, rate = coordinates(robot, q, "a", "b"), (8.0 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12.0 * h)
    for damping, preload in ((0.0, 0.0), (c, 0.0), (0.0, f)):
        tau = forces(robot, q, v, Bushing("a", "b", K, damping, preload))
        assert_allclose(tau @ v, (preload - K * x - damping * rate) @ rate, rtol=1e-8, atol=1e-8)
    assert np.linalg.norm(x[:3]) > 0.3


def test_a_bushing_has_no_first_frame():
    """Exchanged frames have the same force, and opposite wrenches do not move a floating trunk."""
    robot, rng = two_arms(), np.random.default_rng(7)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    tau = forces(robot, q, v, Bushing("a", "b", K, 0.1 * K))
    assert_allclose(forces(robot, q, v, Bushing("b", "a", K, 0.1 * K)), tau, atol=1e-12 * abs(tau).max())
    assert abs(tau[:6]).max() < 1e-12 * abs(tau).max()  # of the floating trunk


def test_a_bushing_conserves_energy():
    """Large rotations and displacements, without damping: kinetic energy and that of the springs, to the error of the steps."""
    robot, v = floating(), np.array([8.0, -4.0, 12.0, 1.0, -2.0, 0.5])
    run = sarrus.simulate(robot, AT_REST, v, 2.0, Bushing("block", "ground", K), method="rkmk4", dt=5e-4)
    x = np.array([coordinates(robot, q, "block", "ground") for q in run.q[::50]])
    energy = run.energy[::50] + 0.5 * x**2 @ K
    assert np.linalg.norm(x[:, :3], axis=1).max() > 0.5
    assert_allclose(energy, energy[0], rtol=1e-8)


def test_a_bushing_of_small_motions_is_a_gimbal_with_springs():
    """The joint with six stiffnesses has the same linear motions: eigenfrequencies sqrt(k/m)."""
    robot = floating()
    x = 1e-7 * np.arange(1.0, 7.0)
    q = robot.integrate(AT_REST, x)
    b = robot.to_builder()
    b.add_joint("mount", sarrus.Gimbal("rx ry rz tx ty tz", stiffness=K), "ground", "block", loop=True)
    joint = b.build()
    assert_allclose(
        forces(robot, q, np.zeros(6), Bushing("block", "ground", K)), -K * x, rtol=1e-3
    )  # the moment of the force is small
    assert_allclose(-joint.bias_forces(q, np.zeros(6)), -K * x, rtol=1e-3)


def test_preload_balances_weight():
    """A force of m g holds the body where the frames coincide."""
    robot = floating(gravity=(0, 0, -G))
    run = sarrus.simulate(
        robot, AT_REST, np.zeros(6), 0.5, Bushing("block", "ground", K, preload=[0, 0, 0, 0, 0, 2.0 * G])
    )
    assert_allclose(run.q[-1], AT_REST, atol=1e-12)


@pytest.mark.parametrize("stiffness", [1e4, 1e8])
def test_stiff_mounts_in_contact_steps(stiffness):
    """Springs and dampers are implicit: a body dropped on its mount comes to rest at m g / k with steps of 1 ms."""
    k, robot = np.full(6, stiffness), floating(gravity=(0, 0, -G))
    mount = Bushing("block", "ground", k, 2.0 * np.sqrt(2.0 * k))
    run = sarrus.simulate(robot, AT_REST, [0, 0, 0, 0.1, 0, 0], 2.0, mount, method="contact", dt=1e-3)
    assert_allclose(run.q[-1, 6], -2.0 * G / stiffness, rtol=1e-5, atol=1e-12)
    assert np.isfinite(run.q).all() and abs(run.v[-1]).max() < 1e-6


# ---- play of a pin -----------------------------------------------------------------------------------------------------


def pin(gravity=(0.0, 0.0, 0.0), mass=0.5, spin=1e-3):
    """A pin along y that moves in the plane x, z."""
    b = sarrus.Builder("pin", gravity=gravity)
    b.add_body("slide")
    b.add_body("carriage")
    b.add_body("pin", sarrus.Inertia(mass, (0, 0, 0), np.diag([spin, spin, spin])))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "slide")
    b.add_joint("z", sarrus.Prismatic("z"), "slide", "carriage")
    b.add_joint("spin", sarrus.Revolute("y"), "carriage", "pin")
    return b.build()


PLAY = {"clearance": 1e-3, "radius": 0.01, "stiffness": 1e7, "axis": "y"}


def test_no_force_within_the_play():
    """Force begins at the clearance, along the line of centres."""
    robot = pin()
    for angle in np.linspace(0.0, 6.0, 7):
        n = np.array([np.cos(angle), np.sin(angle), 0.0])
        for distance, force in ((0.0, 0.0), (0.999e-3, 0.0), (1.1e-3, 1e7 * 1e-4**1.5)):
            tau = forces(robot, distance * n, [0.0, 0.0, 5.0], PinClearance("pin", "ground", **PLAY))
            assert_allclose(tau, -force * n, rtol=1e-9, atol=1e-9)


def test_a_pin_hangs_in_its_bearing():
    """Static penetration: k d^n = m g."""
    play = PinClearance("pin", "ground", dissipation=10.0, **PLAY)
    run = sarrus.simulate(pin((0, 0, -G)), np.zeros(3), np.zeros(3), 1.0, play)
    assert_allclose(run.q[-1], [0.0, -1e-3 - (0.5 * G / 1e7) ** (1 / 1.5), 0.0], atol=1e-8)


@pytest.mark.parametrize("dissipation", [0.0, 0.5, 5.0])
def test_restitution_of_an_impact(dissipation):
    """In an impact, u/c - ln(1 + c u)/c^2 at the speed before it equals the value at minus the speed after it; none is lost for c = 0."""
    before = 0.2
    play = PinClearance("pin", "ground", dissipation=dissipation, **PLAY)
    run = sarrus.simulate(
        pin(), np.zeros(3), [0.6 * before, 0.8 * before, 0.0], 0.012, play, method="rk4", dt=2e-6, every=100
    )
    c, after, low, high = dissipation, np.linalg.norm(run.v[-1, :2]), 0.0, before
    for _ in range(60 if c else 0):
        middle = 0.5 * (low + high)
        loss = [u / c - np.log1p(c * u) / c**2 for u in (-middle, before)]
        low, high = (middle, high) if loss[0] < loss[1] else (low, middle)
    assert_allclose(after, high, rtol=1e-6)  # of steps
    assert_allclose(run.v[-1, :2] / after, [-0.6, -0.8], atol=1e-9)


def test_a_pin_that_rolls_around_keeps_its_energy():
    """Without dissipation and friction: energy of the contact k d^(n+1)/(n+1), in a bearing of a moving body."""
    robot, rng = two_arms(), np.random.default_rng(3)
    q, v = robot.random(rng), rng.normal(size=robot.nv)

    def depth(q):
        A, B = robot.pose(q, "b"), robot.pose(q, "a")
        return np.linalg.norm((A[:3, :3].T @ (B[:3, 3] - A[:3, 3]))[:2])

    play = PinClearance("a", "b", depth(q) - 0.05, 0.02, 1e4, dissipation=0.0)
    run = sarrus.simulate(robot, q, v, 0.1, play, method="rkmk4", dt=1e-4)
    deep = np.maximum(np.array([depth(x) for x in run.q]) - depth(q) + 0.05, 0.0)
    energy = run.energy + 1e4 * deep**2.5 / 2.5
    assert np.ptp(deep) > 0.01
    assert_allclose(energy, energy[0], rtol=1e-7)
    assert_allclose(run.momentum, np.tile(run.momentum[0], (len(run.t), 1)), atol=1e-7)


def test_a_spinning_pin_climbs():
    """A pin that spins under load balances where the line of centres leans by atan(mu); friction brakes the spin by mu N r."""
    mu, mass, slip = 0.2, 0.5, 20.0 * 0.01
    play = PinClearance("pin", "ground", friction=mu, **PLAY)
    mu *= slip / np.hypot(slip, 1e-3)  # smoothed
    press, lean = mass * G / np.hypot(1.0, mu), np.arctan(mu)
    distance = 1e-3 + (press / 1e7) ** (1 / 1.5)
    q = [distance * np.sin(lean), -distance * np.cos(lean), 0.0]
    run = sarrus.simulate(pin((0, 0, -G), mass), q, [0.0, 0.0, 20.0], 0.0, play)
    assert_allclose(run.a[0, :2], 0.0, atol=1e-9)
    assert_allclose(run.tau[0, 2], -mu * press * 0.01, rtol=1e-9)


def test_a_wide_pin_is_a_ball_in_a_bowl():
    """At one point of the wall, the force is that of a contact with the tangent plane."""
    robot, q, v = pin(), [0.0, -1.2e-3, 0.0], [0.01, -0.02, 3.0]
    numbers = {"stiffness": 1e7, "dissipation": 0.7, "friction": 0.3, "slip_velocity": 0.01}
    plane = CompliantContact("pin", radius=0.01, offset=-1e-3 - 0.01, **numbers)
    play = PinClearance("pin", "ground", 1e-3, 0.01, axis="y", **numbers)
    assert_allclose(forces(robot, q, v, play), forces(robot, q, v, plane), rtol=1e-9)


# ---- gas springs -------------------------------------------------------------------------------------------------------

STRUT = {"extended_length": 0.5, "stroke": 0.2, "force": 400.0, "progression": 1.6, "stop_stiffness": 0.0}


@pytest.mark.parametrize("exponent", [1.0, 1.4])
def test_gas_follows_its_law(exponent):
    """P V^n is constant: F1 extended, and F1 times the progression over the stroke."""
    robot = slider("z")
    strut = GasSpring("block", "ground", exponent=exponent, **STRUT)
    seen = [forces(robot, [0.5 - x], [0.0], strut)[0] for x in (0.0, 0.1, 0.2)]
    volume = 1.0 - (1.0 - 1.6 ** (-1.0 / exponent)) / 2.0
    assert_allclose(seen, [400.0, 400.0 * volume**-exponent, 640.0], rtol=1e-12)
    assert_allclose(forces(robot, [-0.3], [0.0], strut), [-640.0], rtol=1e-12)  # it pushes away on either side


def test_gas_gives_back_its_energy():
    """Isothermal: U = -F1 ln(1 - k x)/k. A weight oscillates on the gas with constant energy."""
    robot = slider("z", gravity=(0, 0, -G), mass=50.0)
    run = sarrus.simulate(robot, [0.45], [0.0], 2.0, GasSpring("block", "ground", **STRUT), method="rk4")
    k = (1.0 - 1.0 / 1.6) / 0.2
    energy = run.energy - 400.0 * np.log(1.0 - k * (0.5 - run.q[:, 0])) / k
    assert np.ptp(run.q) > 0.05
    assert_allclose(energy, energy[0], rtol=1e-9)


def test_friction_and_damping_of_a_gas_spring():
    """F1 and F3 of a datasheet: extending and compressing at one length differ by twice the friction, and by the damping."""
    robot = slider("z")
    strut = GasSpring("block", "ground", damping=50.0, friction=30.0, slip_velocity=1e-3, **STRUT)
    out, back = (forces(robot, [0.4], [speed], strut)[0] for speed in (0.1, -0.1))
    assert_allclose(back - out, 2.0 * (30.0 / np.hypot(1.0, 0.01) + 5.0), rtol=1e-12)


def test_a_gas_spring_ends_at_its_stops():
    """Extended, it rests on the stop: the gas and the stop balance; a dropped load stops beyond the stroke."""
    strut = GasSpring("block", "ground", 0.5, 0.2, 400.0, 1.0)
    run = sarrus.simulate(slider("z", mass=5.0), [0.49], [0.0], 3.0, strut)
    assert_allclose(run.q[-1], 0.5 + 0.2 / 100.0, rtol=1e-6)  # 100 F1/stroke
    run = sarrus.simulate(slider("z", gravity=(0, 0, -G), mass=100.0), [0.45], [0.0], 3.0, strut)
    assert_allclose(run.q[-1], 0.3 - (100.0 * G - 400.0) / (100.0 * 400.0 / 0.2), rtol=1e-6)


def hatch(angle=0.0):
    b = sarrus.Builder("hatch")
    b.add_body("hatch", sarrus.Inertia.rod(20.0, (0, 0, 0), (1.0, 0, 0)))
    b.add_joint("hinge", sarrus.Revolute("-y"), "ground", "hatch")
    b.add_frame("eye", "hatch", (0.4, 0, 0))
    b.add_frame("foot", "ground", (0.1, 0, -0.4))
    return b.build()


def test_a_hatch_balances():
    """Moment of the gas = moment of the weight: the force for balance at an angle holds it there, more opens it and less closes it."""
    robot, angle = hatch(), 0.5
    eye, foot = 0.4 * np.array([np.cos(angle), np.sin(angle)]), np.array([0.1, -0.4])
    line = eye - foot
    length = np.linalg.norm(line)
    arm = (eye[0] * line[1] - eye[1] * line[0]) / length
    balance = 20.0 * G * 0.5 * np.cos(angle) / arm
    k = (1.0 - 1.0 / 1.3) / 0.25
    extended = length + 0.1
    for share in (0.9, 1.0, 1.1):
        force = share * balance * (1.0 - k * 0.1)
        run = sarrus.simulate(robot, [angle], [0.0], 0.0, GasSpring("eye", "foot", extended, 0.25, force))
        assert_allclose(run.a[0, 0], (share - 1.0) * balance * arm / (20.0 / 3.0), atol=1e-9)


# ---- every way to run --------------------------------------------------------------------------------------------------


def mounts(scale=1.0):
    """All three between the tips of a double pendulum's bodies and the ground."""
    return [
        Bushing(
            "tip", "ground", scale * np.array([0, 5.0, 0, 30.0, 0, 20.0]), scale * np.array([0, 0.1, 0, 1.0, 0, 1.0])
        ),
        PinClearance("tip", "ground", 0.5 * scale, 0.1, 30.0, friction=0.1, slip_velocity=0.1, axis="y"),
        GasSpring("tip", "ground", 2.5, 2.4, 5.0 * scale, friction=0.5, slip_velocity=0.1, damping=1.0),
    ]


@pytest.mark.parametrize("method", [*METHODS, "contact"])
def test_methods_agree(method):
    """Every method follows the same motion, within its order."""
    robot, q, v = double_pendulum()
    exact = sarrus.simulate(robot, q, v, 0.3, mounts(), method="rk4", dt=1e-4)
    assert abs(exact.tau).max() > 1.0
    dt = 1e-5 if method in ("euler", "semi_implicit", "contact") else 1e-3
    run = sarrus.simulate(robot, q, v, 0.3, mounts(), method=method, dt=dt)
    assert_allclose(run.q[-1], exact.q[-1], atol=2e-4)


def test_many_runs_are_as_one_by_one():
    """A number for each run, also in arrays of six."""
    robot, q, v = double_pendulum()
    scale = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
    six = [mounts(x)[0] for x in scale]
    together = [
        Bushing("tip", "ground", [x.stiffness for x in six], [x.damping for x in six]),
        PinClearance("tip", "ground", 0.5 * scale, 0.1, 30.0, friction=0.1, slip_velocity=0.1, axis="y"),
        GasSpring("tip", "ground", 2.5, 2.4, 5.0 * scale, friction=0.5, slip_velocity=0.1, damping=1.0),
    ]
    for method in ("rk4", "implicit_midpoint", "contact"):
        runs = sarrus.simulate_many(robot, q, v, 0.1, together, method=method)
        assert np.ptp(runs.q[:, -1], axis=0).max() > 1e-3
        for i, x in enumerate(scale):
            one = sarrus.simulate(robot, q, v, 0.1, mounts(x), method=method)
            assert_allclose(runs.q[i, -1], one.q[-1], atol=1e-10)


def test_stiff_mounts_choose_an_implicit_method():
    run = sarrus.simulate(floating(), AT_REST, [0, 0, 0, 1.0, 0, 0], 0.01, Bushing("block", "ground", 1e6))
    assert run.statistics["method"] == "rosenbrock"


def test_derivatives_by_numbers_of_mounts():
    """The cotangent of each number of an element is the difference of runs with other numbers."""
    robot, h, how = slider("z"), 1e-5, {"method": "rk4", "dt": 2e-3}

    def final(stiffness=30.0, progression=1.5, clearance=0.1):
        act = [
            Bushing("block", "ground", stiffness),
            GasSpring("block", "ground", 0.5, 0.4, 5.0, progression),
            PinClearance("block", "ground", clearance, 0.0, 200.0, axis="y"),
        ]
        return sarrus.simulate_many(robot, [0.15], [0.5], 0.1, act, **how)

    runs = final()
    wq = np.zeros((len(runs.t), 1))
    wq[-1] = 1.0
    found = sarrus.derivatives.rollouts_vjp(runs, q=wq).parameters
    names = {"stiffness": "Bushing(block).stiffness", "progression": "GasSpring(block).progression"}
    names["clearance"] = "PinClearance(block).clearance"
    for key, value in (("stiffness", 30.0), ("progression", 1.5), ("clearance", 0.1)):
        slope = (final(**{key: value + h}).q[0, -1, 0] - final(**{key: value - h}).q[0, -1, 0]) / (2 * h)
        assert abs(slope) > 1e-6
        assert_allclose(found[names[key]].sum(), slope, rtol=1e-5)


BAD = [
    (Bushing("block", "ground", [1.0, 2.0]), sarrus.ShapeError, r"stiffness of Bushing must be a number, \(6,\).*got \(2,\)"),
    (Bushing("block", "ground", -1.0), sarrus.ModelError, "stiffness of Bushing must not be negative; got -1.0"),
    (Bushing("block", "ground", 1.0, [0, 0, np.nan, 0, 0, 0]), sarrus.ModelError, "damping of Bushing must be finite"),
    (Bushing("block", "block", 1.0), sarrus.ModelError, "'block', which belongs to the same body, so it has no effect"),
    (Bushing("block", "wall", 1.0), sarrus.NameNotFoundError, "wall"),
    (Bushing("block", "ground", None), sarrus.ModelError, "stiffness of Bushing must be a number"),
    (PinClearance("block", "ground", -1e-3, 0.01, 1e7), sarrus.ModelError, "clearance of PinClearance must not be negative"),
    (PinClearance("block", "ground", 1e-3, 0.01, 0.0), sarrus.ModelError, "stiffness of PinClearance must be positive"),
    (PinClearance("block", "ground", 1e-3, 0.01, 1e7, axis="q"), sarrus.ModelError, "q"),
    (PinClearance("block", "block", 1e-3, 0.01, 1e7), sarrus.ModelError, "same body, so it has no play"),
    (GasSpring("block", "ground", 0.5, 0.6, 400.0), sarrus.ModelError, "stroke of GasSpring must be less than extended_length"),
    (GasSpring("block", "ground", 0.5, 0.2, 400.0, 0.9), sarrus.ModelError, "progression of GasSpring must be at least 1"),
    (GasSpring("block", "ground", 500, 200, 400.0), sarrus.ModelError, r"initial length is 0.4 m; expected 300.0 \(compressed\) to 500.0"),
    (GasSpring("block", "ground", 0.5, 0.2, "400 N"), sarrus.ModelError, "force of GasSpring must be a number"),
    (GasSpring("block", "ground", [0.5, 0.6], 0.2, 400.0), sarrus.ShapeError, "use simulate_many"),
]  # fmt: skip


@pytest.mark.parametrize(("element", "error", "message"), BAD)
def test_bad_mounts(element, error, message):
    with pytest.raises(error, match=message):
        sarrus.simulate(slider("z"), [0.4], [0.0], 0.1, element)


def test_initial_lengths_of_many_runs():
    """The initial length of each run is checked, with the numbers of that run."""
    b = sarrus.Builder("slide", gravity=(0, 0, 0))
    b.add_body("p", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x"), "ground", "p")
    robot = b.build()
    for lengths, q in ((np.array([0.5, 5.0]), [[0.45], [0.45]]), (0.5, [[0.45], [5.0]])):
        with pytest.raises(sarrus.ModelError, match="in run 1: the initial length is"):
            sarrus.simulate_many(robot, q, np.zeros((2, 1)), 0.01, GasSpring("p", "ground", lengths, 0.2, 300.0))


def test_a_bushing_that_turns_through_half_a_revolution():
    """Its moment jumps there, with a warning that names it; a bushing without a torsional spring may turn freely."""
    b = sarrus.Builder("disc", gravity=(0, 0, 0))
    b.add_body("disc", sarrus.Inertia(1.0, (0, 0, 0), np.eye(3)))
    b.add_joint("hinge", sarrus.Revolute("z"), "ground", "disc")
    robot = b.build()
    soft = Bushing("disc", "ground", [0, 0, 0.1, 0, 0, 0])
    for end, warns in ((0.4, False), (1.0, True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sarrus.simulate(robot, [0.0], [4.0], end, soft)
        assert bool(caught) == warns
    assert "the Bushing of 'disc' on 'ground' turns through half a revolution at t = 0.7" in str(caught[0].message)
    with pytest.warns(sarrus.ModelWarning, match=r"at t = 0.7\d* s in run 1, where the direction of its moment"):
        sarrus.simulate_many(robot, [[0.0], [0.0]], [[0.1], [4.0]], 1.0, soft)
    sarrus.simulate(robot, [0.0], [4.0], 1.0, Bushing("disc", "ground", [0, 0, 0, 5.0, 5.0, 5.0]))


def mounted_arm(loop=False):
    """Return a two-link arm with a tool that is welded to its end, optionally held by a link to the ground, and its state at rest."""
    b = sarrus.Builder("arm")
    rod = sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), 0.05)
    for name in ("upper", "lower", "tool", *(["stay"] if loop else [])):
        b.add_body(name, rod)
    b.add_joint("shoulder", sarrus.Revolute("y"), "ground", "upper", at_parent=(0, 0, 1.0))
    b.add_joint("elbow", sarrus.Universal("y", "z"), "upper", "lower", at_parent=(0.5, 0, 0))
    b.add_joint(
        "weld", sarrus.Fixed(), "lower", "tool", at_parent=sarrus.Transform.from_rpy(0.2, 0.3, 0.1, (0.5, 0, 0))
    )
    b.add_frame("tip", "tool", sarrus.Transform.from_rpy(0.5, -0.4, 0.2, (0.3, 0.1, 0.05)))
    b.add_frame("hook", "upper", sarrus.Transform.from_rpy(0.1, 0.2, 0.3, (0.2, 0.1, 0.15)))
    if loop:
        b.add_joint("stay pin", sarrus.Spherical(), "upper", "stay", at_parent=(0.25, 0, 0))
        b.add_joint("stay end", sarrus.Spherical(), "stay", "ground", at_parent=(0.5, 0, 0), at_child=(0.6, 0.1, 0.8))
    robot = b.build()
    q = robot.assemble({"shoulder": 0.4, "elbow": [0.3, -0.2]}) if loop else [0.4, 0.3, -0.2]
    return robot, q, np.zeros(robot.nv)


def moved(X, point, force):
    """Return the wrench (6,) of a force at a point of the world, at the origin and in the axes of a frame with the pose X."""
    R = X[:3, :3]
    return np.concatenate([R.T @ np.cross(point - X[:3, 3], force), R.T @ force])


# element at rest -> its force on "tip", by the documented law, and the point of the world at which it acts
LAWS = {
    "Thruster": (lambda: Thruster("tip", 30.0, axis="y"), lambda p, o, R: (30.0 * R[:, 1], p)),
    "GasSpring": (
        lambda: GasSpring("tip", "hook", 1.5, 1.2, 300.0, progression=1.0, stop_stiffness=0.0, stop_damping=0.0),
        lambda p, o, R: (300.0 * (p - o) / np.linalg.norm(p - o), p),
    ),
    "Bushing": (lambda: Bushing("tip", "hook", [0, 0, 0, 200.0, 200.0, 200.0]), lambda p, o, R: (-200.0 * (p - o), (p + o) / 2)),
    "CompliantContact": (
        lambda: CompliantContact("tip", 0.3, offset=1.0, stiffness=1e4, exponent=1.0),
        lambda p, o, R: (np.array([0, 0, 1e4 * max(0.0, 0.3 - (p[2] - 1.0))]), p - [0, 0, 0.3]),
    ),
    "PinClearance": (
        lambda: PinClearance("tip", "ground", 0.1, 0.02, 1e4, exponent=1.0),
        lambda p, o, R: (-1e4 * (1 - 0.1 / np.hypot(*p[:2])) * np.array([*p[:2], 0.0]), p + 0.02 * np.array([*p[:2], 0.0]) / np.hypot(*p[:2])),
    ),
    "function": (
        lambda: lambda t, q, v: (0.0 * v, {"tip": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "tool": [0, 0, 0, 0, 0, 7.0]}),
        lambda p, o, R: None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("kind", LAWS)
def test_joint_wrenches_of_forces_at_frames(kind, loop, tmp_path):
    """The wrenches of joints, welds included, are those of the same forces as external wrenches; each body is in equilibrium."""
    robot, q, v = mounted_arm(loop)
    element, law = LAWS[kind]
    run = sarrus.simulate(robot, q, v, 0.01, element(), dt=5e-3)
    tip, hook = robot.pose(run.q[0], "tip"), robot.pose(run.q[0], "hook")
    if kind == "function":
        wrenches = {"tip": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "tool": [0, 0, 0, 0, 0, 7.0]}
    else:
        force, point = law(tip[:3, 3], hook[:3, 3], tip[:3, :3])
        assert np.linalg.norm(force) > 1.0
        wrenches = {"tip": moved(tip, point, force)}
        if kind in ("GasSpring", "Bushing"):
            wrenches["hook"] = moved(hook, point, -force)
    options = {"multipliers": run.reactions.multipliers[0], "actuated": [], "time": 0.0} if loop else {}
    loads = run.joint_wrenches()
    expected = robot.joint_wrenches(run.q[0], v, run.a[0], wrenches=wrenches, **options)
    size = max(np.abs(x).max() for x in expected.values())
    for name, wrench in expected.items():
        assert_allclose(loads[name][0], wrench, rtol=0, atol=1e-12 * size)
    weld = expected["weld"]
    bare = robot.joint_wrenches(run.q[0], v, run.a[0], **options)["weld"]
    assert np.abs(weld - bare).max() > 0.1  # as a generalised force alone, the element would not load the weld
    run.save(tmp_path / "run.npz")
    again = sarrus.Trajectory.load(tmp_path / "run.npz", robot)
    for name, wrench in loads.items():
        assert_allclose(again.joint_wrenches()[name], wrench, rtol=0, atol=1e-12 * size)


def test_joint_wrenches_of_elements_in_many_runs_and_phases():
    """Runs with their own parameters, and phases between which a lock engages, have the wrenches of their elements."""
    robot, q, v = mounted_arm()
    thrusts = np.array([10.0, 20.0, 40.0])
    runs = sarrus.simulate_many(
        robot,
        np.tile(q, (3, 1)),
        np.tile(v, (3, 1)),
        0.01,
        [Thruster("tip", thrusts, axis="y"), Bushing("tip", "hook", 50.0)],
    )
    for k, thrust in enumerate(thrusts):
        one = sarrus.simulate(robot, q, v, 0.01, [Thruster("tip", thrust, axis="y"), Bushing("tip", "hook", 50.0)])
        for name, wrench in one.joint_wrenches().items():
            assert_allclose(runs[k].joint_wrenches()[name], wrench, rtol=0, atol=1e-9)
    lock = sarrus.control.Lock("shoulder", on=0.005)
    locked = sarrus.simulate(robot, q, v, 0.01, [Thruster("tip", 30.0, axis="y"), lock])
    same = sarrus.simulate(robot, q, v, 0.01, [lock], wrenches={"tip": [0, 0, 0, 0, 30.0, 0]})
    for name, wrench in locked.joint_wrenches().items():
        assert_allclose(wrench[:5], same.joint_wrenches()[name][:5], rtol=0, atol=1e-9)
