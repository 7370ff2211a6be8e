"""Couplers with functions of coordinates: cams, variable gears and products, against closed form, in all that is done with a mechanism."""

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import generation, laws
from sarrus.errors import ModelWarning
from sarrus.io import complete
from tests.api.io.test_complete import validator
from tests.oracles import Closed

EXACT = (
    1e-12  # rounding of a few operations on numbers of size 1, for lifts of some centimetres and speeds of some rad/s
)
MASS, INERTIA, GRAVITY, STIFFNESS = 0.8, 0.02, 9.81, 500.0
ANGLES = np.linspace(0.0, 2.0 * np.pi, 37)
RISE = (0.0, 0.01, 0.03, 0.04, 0.038, 0.02, 0.004, 0.0, 0.0)
LIFTS = {
    "harmonic": laws.harmonic(-0.02, rate=2.0, phase=np.pi / 2, offset=0.02),
    "cubic spline": laws.spline(np.linspace(0.0, 2.0 * np.pi, 9), RISE),
    "table": laws.table(np.linspace(0.0, 2.0 * np.pi, 9), RISE, periodic=True),
    "table and harmonics": laws.table(np.linspace(-1.0, 9.0, 12), np.linspace(0.0, 0.05, 12) ** 2)
    + laws.harmonic(0.01, rate=3.0),
}


def cam(lift, **options):
    """A cam lifts a follower on a spring, vertically: z = lift(angle)."""
    b = sarrus.Builder("cam", gravity=(0.0, 0.0, -GRAVITY))
    b.add_body("cam", sarrus.Inertia(1.0, (0.0, 0.0, 0.0), INERTIA * np.eye(3)))
    b.add_body("follower", sarrus.Inertia(MASS, (0.0, 0.0, 0.0), 0.01 * np.eye(3)))
    b.add_joint("shaft", sarrus.Revolute("y"), "ground", "cam", actuated=True, tree=True)
    b.add_joint("lift", sarrus.Prismatic("z", stiffness=STIFFNESS), "ground", "follower", tree=True)
    b.add_coupler("contact", {"lift": 1.0, "shaft": -lift}, **options)
    return b.build()


def multiplier():
    """z = x y: three slides in series along the axes."""
    b = sarrus.Builder("multiplier", gravity=(0.0, 0.0, -GRAVITY))
    before = "ground"
    for axis in "xyz":
        b.add_body(f"along {axis}", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(axis, sarrus.Prismatic(axis, stiffness=2.0), before, f"along {axis}", tree=True)
        before = f"along {axis}"
    b.add_coupler("product", {"z": 1.0, ("x", "y"): -1.0})
    return b.build()


def curved():
    """Terms of all forms: polynomials, functions and products, one of them of two functions, driven by a function of time."""
    b = sarrus.Builder("curved")
    before = "ground"
    for name, joint in {"a": sarrus.Revolute("x"), "b": sarrus.Cylindrical("y"), "c": sarrus.Revolute("z")}.items():
        b.add_body(f"{name} body", sarrus.Inertia(1.0, (0.1, 0.2, 0.3), np.diag([0.2, 0.3, 0.4])))
        b.add_joint(name, joint, before, f"{name} body", at_parent=(0.1, 0.0, 0.2), tree=True)
        before = f"{name} body"
    wave, ramp = (
        laws.harmonic(0.3, rate=2.0, phase=0.4),
        laws.table([-2.0, -1.0, 0.0, 1.0, 2.0], [0.1, 0.4, 0.2, 0.9, 0.3]),
    )
    terms = {"a": (1.0, 0.2), ("a",): wave, ("b", 0): ramp, ("a", ("b", 1)): 0.7, ("c", ("b", 0)): (ramp, wave)}
    b.add_coupler("curve", terms, offset=laws.harmonic(0.1, rate=1.5))
    return b.build()


# ---- closed form ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS)
def test_cam_moves_as_its_lift(lift):
    """Position, velocity, acceleration and contact force of the follower: z = s, z' = s' w, z'' = s'' w^2 + s' a."""
    robot, w, a = cam(lift), 7.0, -3.0
    q = robot.follow({"shaft": ANGLES})
    s, slope, bend = lift.derivatives(ANGLES)
    assert_allclose(q, np.stack([ANGLES, s], axis=-1), atol=EXACT)
    v = robot.complete_velocity(q, {"shaft": np.full(37, w)})
    assert_allclose(v[:, 1], slope * w, atol=EXACT)
    acceleration = robot.complete_acceleration(q, v, {"shaft": np.full(37, a)})
    assert_allclose(acceleration[:, 1], bend * w**2 + slope * a, atol=100 * EXACT)

    # (I + m s'^2) a + m s' s'' w^2 + s' (m g + k s) = torque, and the force of the cam on the follower
    a = (0.3 - slope * (MASS * bend * w**2 + MASS * GRAVITY + STIFFNESS * s)) / (INERTIA + MASS * slope**2)
    found, reactions = robot.forward_dynamics(q, v, np.tile([0.3, 0.0], (37, 1)), return_reactions=True)
    assert_allclose(found[:, 0], a, rtol=EXACT, atol=EXACT * np.abs(a).max())
    force = MASS * (bend * w**2 + slope * a + GRAVITY) + STIFFNESS * s
    assert_allclose(reactions.multipliers[:, 0], force, rtol=EXACT, atol=EXACT * np.abs(force).max())
    torque = robot.actuator_efforts(q, v, found)[:, 0]
    assert_allclose(torque, 0.3, atol=100 * EXACT)


def test_product_of_coordinates():
    """z = x y, z' = x' y + x y', z'' = x'' y + 2 x' y' + x y'', also in a singular position of the product, x = y = 0."""
    robot, rng = multiplier(), np.random.default_rng(0)
    (x, y), (vx, vy), (ax, ay) = rng.normal(size=(3, 2, 20))
    x[0] = y[0] = 0.0
    q = robot.assemble(fixed={"x": x, "y": y})
    assert_allclose(q[:, 2], x * y, atol=EXACT)
    v = robot.complete_velocity(q, {"x": vx, "y": vy})
    assert_allclose(v[:, 2], vx * y + x * vy, atol=EXACT)
    a = robot.complete_acceleration(q, v, {"x": ax, "y": ay})
    assert_allclose(a[:, 2], ax * y + 2 * vx * vy + x * ay, atol=10 * EXACT)
    assert_allclose(robot.constraint_bias(q, v)[:, 0], 2 * vx * vy, atol=10 * EXACT)


def test_simulation_keeps_the_relation_and_the_energy():
    for robot, fixed in ((multiplier(), {"x": 0.5, "y": 0.4}), (cam(LIFTS["table"]), {"shaft": 0.4})):
        q = robot.assemble(fixed=fixed)
        v = robot.project_velocity(q, np.ones(robot.nv))
        run = sarrus.simulate(robot, q, v, duration=0.5, dt=1e-3, method="rk4")
        assert np.abs(robot.constraint_residual(run.q)).max() < EXACT
        assert np.ptp(run.energy) < 1e-8 * np.abs(run.energy).max()  # of a step of order 4


def test_many_turns_of_a_periodic_table():
    """A cam has the same lift in every turn, in both directions, also in batches of runs."""
    lift = LIFTS["table"]
    robot = cam(lift)
    far = ANGLES + 2.0 * np.pi * np.array([[-30.0], [0.0], [1000.0]])
    assert_allclose(robot.assemble(fixed={"shaft": far})[..., 1], np.broadcast_to(lift(ANGLES), far.shape), atol=1e-11)
    q = robot.follow({"shaft": ANGLES[:8]})
    v = robot.complete_velocity(q, {"shaft": np.full(8, 40.0)})
    runs = sarrus.simulate_many(robot, q, v, duration=0.5, dt=1e-3)
    assert np.abs(runs.q[..., 0]).max() > 6.0
    assert_allclose(runs.q[..., 1], lift(runs.q[..., 0]), atol=1e-10)


@pytest.mark.parametrize("form", [(-0.01, 0.001), -LIFTS["cubic spline"], -LIFTS["table and harmonics"]])
def test_relations_that_differ_from_turn_to_turn(form):
    """Whole turns of a coupled angle are not removed, as they are for hinges. Before, the loops stayed open by up to 0.3 m."""
    b = cam(LIFTS["harmonic"]).to_builder()
    b.remove_constraint("contact")
    b.add_coupler("contact", {"lift": 1.0, "shaft": form})
    robot, far = b.build(), np.array([-14.7, 10.5486, 19.3])
    for q in (robot.assemble(fixed={"shaft": far}), np.array([robot.assemble(fixed={"shaft": x}) for x in far])):
        assert_allclose(q[:, 0], far, rtol=1e-15)
        assert np.abs(robot.constraint_residual(q)).max() < EXACT


# ---- the oracle, derivatives and copies --------------------------------------------------------------------------------------------------


def state(robot, seed, time=0.3):
    rng = np.random.default_rng(seed)
    q = robot.assemble(robot.neutral() + 0.3 * rng.normal(size=robot.nq), time=time)
    v = robot.project_velocity(q, rng.normal(size=robot.nv), time=time)
    return q, v, rng.normal(size=robot.nv)


@pytest.mark.parametrize("make", [lambda: cam(LIFTS["table and harmonics"]), multiplier, curved])
def test_rows_and_motions_are_those_of_the_oracle(make):
    robot = make()
    oracle = Closed(robot.description)
    for seed in range(5):
        q, v, tau = state(robot, seed)
        J, c, gamma = oracle.constraint_rows(q, v, time=0.3)
        assert_allclose(robot.constraint_jacobian(q, time=0.3), J, atol=EXACT)
        assert_allclose(robot.constraint_velocity(q, time=0.3), c, atol=EXACT)
        assert_allclose(robot.constraint_bias(q, v, time=0.3), gamma, atol=100 * EXACT)


@pytest.mark.parametrize("make", [lambda: cam(LIFTS["table and harmonics"]), multiplier, curved])
def test_derivatives_are_those_of_differences(make):
    """Derivatives along all directions: of the accelerations, which take the third derivative of functions, and of the rows."""
    robot, h = make(), 1e-4

    def difference(function):
        """Return the derivative at zero, of fourth order."""
        a, b, c, d = (function(s * h) for s in (2, 1, -1, -2))
        return (8 * (b - c) - (a - d)) / (12 * h)

    for seed in range(3):
        q, v, tau = state(robot, seed)

        def motion(at, q=q, v=v, tau=tau):
            return robot.forward_dynamics(robot.integrate(q, at), v, tau, time=0.3, check=False)

        found = sarrus.derivatives.forward_dynamics(robot, q, v, tau, time=0.3, along="any").q
        expected = np.stack([difference(lambda s, e=e: motion(s * e)) for e in np.eye(robot.nv)], axis=-1)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        rate = difference(lambda s, q=q, v=v: robot.constraint_jacobian(robot.integrate(q, s * v), time=0.3))
        assert_allclose(robot.constraint_jacobian_derivative(q, v, time=0.3), rate, atol=1e-8)


def test_numbers_of_couplers_cannot_be_calibrated():
    """The error names the coupler's number and the dimensions that are supported."""
    for name in ("contact.coefficients", "contact.offset", "contact.lift"):
        with pytest.raises(
            sarrus.ModelError,
            match=f"'{name}' is a number of a coupler, which cannot be designed or calibrated: expected placements",
        ):
            sarrus.dimensions.Dimensions(cam(LIFTS["table"]), ["shaft"], [name])


def test_copies_are_equal():
    for robot in (curved(), multiplier(), cam(LIFTS["table"])):
        for same in (robot.to_builder().build(), pickle.loads(pickle.dumps(robot))):
            assert same == robot and hash(same) == hash(robot)


def test_files(tmp_path):
    """JSON stores all terms; formats that cannot hold them raise an error with the constraint's name."""
    for name, robot in {"curved": curved(), "multiplier": multiplier(), "cam": cam(LIFTS["table"])}.items():
        robot.save(tmp_path / f"{name}.json")
        same = sarrus.load(tmp_path / f"{name}.json")
        assert same == robot
        text = (tmp_path / f"{name}.json").read_text(encoding="utf-8")
        assert complete.write(complete.read(text)._described()) == text
        validator().validate(json.loads(text))
        q, v, _ = state(robot, 1)
        assert (robot.constraint_bias(q, v, time=0.3) == same.constraint_bias(q, v, time=0.3)).all()
        for suffix in ("urdf", "sdf", "xml"):
            with pytest.raises(sarrus.ModelError, match=robot.constraints[0]):
                robot.save(tmp_path / f"{name}.{suffix}")


def test_variants():
    """Each variant moves as a mechanism of its own."""
    robot = curved()
    q, v, tau = state(robot, 0)
    inertias = [sarrus.Inertia.sphere(mass, 0.2) for mass in (1.0, 2.0, 5.0)]
    heavy = [robot.replace(inertias={"c body": inertia}) for inertia in inertias]
    variants = robot.variants(inertias={"c body": inertias})
    a = variants.forward_dynamics(np.tile(q, (3, 1)), np.tile(v, (3, 1)), np.tile(tau, (3, 1)), time=0.3)
    for k in range(3):
        assert_allclose(a[k], heavy[k].forward_dynamics(q, v, tau, time=0.3), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("make", [lambda: cam(LIFTS["table"]), lambda: cam(LIFTS["cubic spline"]), multiplier])
def test_generated_code_agrees_with_the_core(make, tmp_path):
    robot = make()
    rng = np.random.default_rng(0)
    names = ["constraint_residual", "constraint_jacobian", "constraint_bias", "forward_dynamics"]
    code = generation.compiled(generation.generate(robot, {name: name for name in names}, tmp_path))
    fixed = {robot.joints[0]: rng.uniform(-20.0, 20.0, 30)} | ({"y": rng.normal(size=30)} if robot.nv > 2 else {})
    q = robot.assemble(fixed=fixed)
    v = robot.project_velocity(q, rng.normal(size=q.shape))
    for name, arguments in zip(names, ((q,), (q,), (q, v), (q, v, np.ones_like(v))), strict=True):
        results, status = code(name, *arguments)
        core = getattr(robot, name)(*arguments)
        assert not status.any()
        (found,) = results.values()
        assert_allclose(found, core, rtol=1e-11, atol=1e-11 * np.abs(core).max() + EXACT)


def test_locked_joints():
    """A locked coordinate of a product becomes a factor; of a function, a constant."""
    b = multiplier().to_builder()
    b.lock("y", at=0.25)
    robot = b.build()
    assert_allclose(robot.assemble(fixed={"x": 2.0}), [2.0, 0.5], atol=EXACT)
    b = cam(LIFTS["harmonic"]).to_builder()
    b.lock("shaft", at=0.3)
    assert_allclose(b.build().assemble(), [LIFTS["harmonic"](0.3)], atol=EXACT)


def test_rows_that_hold_velocities_only_are_named():
    """`assemble` and `follow` do not use them, and warn; not if all joints of the rows are prescribed, or none is.

    A position does not depend on the tangential rows of a rolling wheel, but a path does.
    """
    b = cam(LIFTS["harmonic"]).to_builder()
    b.remove_constraint("contact")
    b.add_pfaffian("gear", [[1.0, 2.0]], ["shaft", "lift"])
    robot = b.build()
    with pytest.warns(
        ModelWarning,
        match=r"assemble\(\) does not use rows that constrain velocities only: those of 'gear'; .*add_coupler",
    ):
        robot.assemble(fixed={"shaft": 0.3})
    with pytest.warns(ModelWarning, match=r"follow\(\) .*'gear'") as warned:
        robot.follow({"shaft": [0.0, 0.3]})
    assert len(warned) == 1 and warned[0].filename == __file__
    with pytest.warns(ModelWarning, match=r"inverse_kinematics\(\) .*'gear'"):
        robot.inverse_kinematics({"cam": robot.pose(robot.neutral(), "cam")})
    two = robot.variants(armature={"shaft": [[0.1], [0.2]]})
    with pytest.warns(ModelWarning, match=r"follow\(\) .*'gear'"):
        two.follow({"shaft": [0.0, 0.3]})
    with pytest.warns(ModelWarning, match=r"assemble\(\) .*'gear'"):
        two.assemble(fixed={"shaft": 0.3})
    robot.assemble()
    robot.assemble(fixed={"shaft": 0.3, "lift": 0.1})
    disc = sarrus.mechanisms.rolling_disc()
    joint = disc.joints[0]
    disc.assemble(fixed={joint: disc.assemble()[disc.joint(joint).q_slice]})
    path = np.tile(disc.assemble()[disc.joint(joint).q_slice], (2, 1))
    with pytest.warns(ModelWarning, match=r"follow\(\) does not use rows that constrain velocities only: those of"):
        disc.follow({joint: path})


def test_slopes_that_vanish_by_cancellation():
    """At a double zero of the relation, its row is rounding: the joints move as without it."""
    b = sarrus.Builder("double zero", gravity=(0.0, 0.0, 0.0))
    for name in "ab":
        b.add_body(f"{name} body", sarrus.Inertia(1.0, (0.0, 0.0, 0.0), np.eye(3)))
        b.add_joint(name, sarrus.Revolute("z"), "ground", f"{name} body", tree=True)
    sine = laws.harmonic(1.0, rate=1.0)
    b.add_coupler("product", {("a", "b"): (sine, sine)})
    robot = b.build()
    for q in ([0.0, 0.0], [np.pi, np.pi]):
        assert_allclose(robot.forward_dynamics(q, [0.0, 0.0], [1.0, 0.0]), [1.0, 0.0], atol=1e-12)
        assert_allclose(robot.project_velocity(q, [1.0, 0.0]), [1.0, 0.0], atol=1e-12)


def test_generated_code_at_whole_periods(tmp_path):
    """The second derivative jumps where a period begins; there the first piece applies, in the core and in generated code."""
    lift = laws.Law((0.0, np.pi), ((0.0, 0.0, 0.01), (0.0987, 0.0, -0.01)), (), 2.0 * np.pi)
    robot = cam(lift)
    code = generation.compiled(generation.generate(robot, {"bias": "constraint_bias"}, tmp_path))
    q = np.array([[turns * 2.0 * np.pi, 0.0] for turns in (-2, -1, 0, 1, 2, 3)])
    v = np.tile([1.0, 0.0], (len(q), 1))
    (found,) = code("bias", q, v)[0].values()
    assert_allclose(found, robot.constraint_bias(q, v), rtol=0, atol=1e-12)


def test_a_product_locked_at_zero():
    """A locked factor of zero removes the product, and with it the row."""
    b = sarrus.Builder("products")
    for name in "ab":
        b.add_body(f"{name} body", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(name, sarrus.Revolute("z"), "ground", f"{name} body", tree=True)
    b.add_coupler("product", {("a", "b"): 1.0})
    b.lock("a", at=0.0)
    robot = b.build()
    assert robot.nc == 0
