"""Newton's and Poisson's restitution: cases in which they agree, cases in which they differ, and energy."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import sarrus
from sarrus import ContactPoint
from sarrus.control import CollisionContacts, RigidContact
from sarrus.shapes import Plane, Sphere
from tests.effort import examples
from tests.random_mechanisms import seeds

G = 9.81
LAWS = ["newton", "poisson"]


def ball():
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(mass=0.5, radius=0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    return b.build()


AT = np.array([0, 0, 0, 1, 0, 0, 0.1])


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
def test_they_agree_of_one_contact_without_friction(e):
    for law in LAWS:
        hit = [ContactPoint("ball", radius=0.1, friction=0.0, restitution=e, restitution_law=law)]
        after = ball().contact_impact(AT, [0.2, 0, 0, 1.0, 0, -2.0], hit)
        assert_allclose(after.motion, [0.2, 0, 0, 1.0, 0, 2.0 * e], atol=1e-9)
        assert_allclose(after.forces, [[0, 0, 0.5 * 2.0 * (1 + e)]], atol=1e-9)


def test_a_ball_that_spins_has_friction_of_both_phases():
    """Normal and tangential motions are uncoupled: friction is mu times the whole impulse, for both laws."""
    mu, e = 0.1, 0.6
    for law in LAWS:
        hit = [ContactPoint("ball", radius=0.1, friction=mu, restitution=e, restitution_law=law)]
        after = ball().contact_impact(AT, [0, 0, 0, 3.0, 0, -2.0], hit).motion
        assert_allclose(after[3], 3.0 - mu * 2.0 * (1 + e), atol=1e-9)
        assert_allclose(after[5], 2.0 * e, atol=1e-9)


def rod(degrees):
    """Return a slender rod of 1 kg and 1 m in the plane x, z, whose lower end is in contact."""
    b = sarrus.Builder("rod")
    for name in ("along", "up"):
        b.add_body(name, sarrus.Inertia.zero())
    b.add_body("rod", sarrus.Inertia(1.0, (0, 0, 0), np.diag([1 / 12, 1 / 12, 1e-6])))
    b.add_joint("x", sarrus.Prismatic("x"), "ground", "along")
    b.add_joint("z", sarrus.Prismatic("z"), "along", "up")
    b.add_joint("turn", sarrus.Revolute("y"), "up", "rod")
    b.add_frame("end", "rod", (0, 0, -0.5))
    return b.build(), np.array([0.0, 0.0, np.radians(degrees)])


def phases(robot, q, v, mu, e, direction):
    """Return Poisson's impact for an end that slips in one direction in both phases: p_t = -mu p_n d, u_n is zero after compression."""
    J = robot.jacobian(q, "end", expressed_in="world_aligned")[3:][[2, 0]]
    G = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
    along = np.array([1.0, -mu * direction])
    u = J @ v
    compression = -u[0] / (G[0] @ along)
    return u + G @ along * compression * (1 + e), (1 + e) * compression


def test_a_rod_that_slips_in_both_phases():
    """The impulse of expansion is e times that of compression, and so is the velocity, because the direction does not change."""
    robot, q = rod(40)
    mu, e, v = 0.05, 0.5, np.array([2.0, -1.0, 0.0])
    u, impulse = phases(robot, q, v, mu, e, 1.0)
    assert u[1] > 0.0  # it slips on
    after = robot.contact_impact(q, v, [ContactPoint("end", friction=mu, restitution=e, restitution_law="poisson")])
    assert_allclose(after.forces[0, 2], impulse, rtol=1e-9)
    assert_allclose((robot.jacobian(q, "end", expressed_in="world_aligned") @ after.motion)[[5, 3]], u, atol=1e-9)
    assert_allclose(u[0], e * 1.0, rtol=1e-9)


def test_neither_law_adds_energy():
    """A double pendulum hits the ground (Kane and Levinson 1985). Where Newton's equation would add energy, the impact keeps it."""
    robot = sarrus.mechanisms.double_pendulum()
    rng, gained, rebounds = np.random.default_rng(3), {law: [] for law in LAWS}, []
    for _ in range(300):
        q, v = rng.uniform(-1.5, 1.5, 2), rng.normal(size=2)
        J = robot.jacobian(q, "tip", expressed_in="world_aligned")[5]
        if J @ v > -0.1:
            continue
        for law in LAWS:
            hit = [ContactPoint("tip", friction=0.6, restitution=0.8, restitution_law=law)]
            after = robot.contact_impact(q, v, hit).motion
            gained[law].append(float(robot.kinetic_energy(q, after) / robot.kinetic_energy(q, v)) - 1.0)
            if law == "newton":
                rebounds.append(J @ after / -(J @ v))
    assert max(*gained["newton"], *gained["poisson"]) < 1e-9
    rebounds, kept = np.array(rebounds), np.abs(gained["newton"]) < 1e-7
    assert 0.0 < kept.mean() < 0.2
    assert_allclose(rebounds[~kept], 0.8, atol=1e-9)
    assert (rebounds[kept] < 0.8).all() and (rebounds[kept] > 0.0).all()


def test_a_run_in_which_newtons_law_would_add_energy():
    """Such hits used to multiply the energy, at any length of the step."""
    robot = sarrus.mechanisms.double_pendulum()
    rng, hits = np.random.default_rng(3), 0
    for _ in range(400):
        q, v = rng.uniform(-1.5, 1.5, 2), 3 * rng.normal(size=2)
        if (robot.jacobian(q, "tip", expressed_in="world_aligned") @ v)[5] > -0.3:
            continue
        ground = RigidContact("tip", offset=float(robot.pose(q, "tip")[2, 3]) - 1e-4, friction=0.6, restitution=0.8)
        run = sarrus.simulate(robot, q, v, 0.02, ground, dt=1e-3)
        hits += run.internal_state.any()
        assert run.statistics["contact"]["work"] < 1e-8 * run.kinetic_energy.max()
        assert run.energy[-1] - run.energy[0] < 0.02 * run.kinetic_energy.max()
    assert hits > 100


def test_separate_impacts_do_not_affect_each_other():
    """A ball keeps its rebound beside a pendulum whose restitution is reduced."""
    rng, arm = np.random.default_rng(3), sarrus.mechanisms.double_pendulum()
    b = arm.to_builder()
    b.add_body("ball", sarrus.Inertia.sphere(mass=0.5, radius=0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball", at_parent=(0, 5.0, 0))
    both, reduced = b.build(), 0
    ball, arms = both.joint("float"), [both.joint(name).v_slice.start for name in arm.joints]
    for _ in range(100):
        q, v = rng.uniform(-1.5, 1.5, 2), rng.normal(size=2)
        if (rate := (arm.jacobian(q, "tip", expressed_in="world_aligned") @ v)[5]) > -0.1:
            continue
        full, rates = both.neutral(), np.zeros(both.nv)
        full[[both.joint(name).q_slice.start for name in arm.joints]], rates[arms] = q, v
        rates[ball.v_slice.stop - 1] = -2.0
        numbers = {"friction": 0.6, "restitution": 0.8}
        tip, foot = ContactPoint("tip", **numbers), ContactPoint("ball", radius=0.1, **numbers)
        after = both.contact_impact(full, rates, [tip, foot]).motion
        assert_allclose(after[ball.v_slice], [0, 0, 0, 0, 0, 1.6], atol=1e-9)
        assert_allclose(after[arms], arm.contact_impact(q, v, [tip]).motion, atol=1e-9)
        reduced += (both.jacobian(full, "tip", expressed_in="world_aligned") @ after)[5] < -0.79 * rate
    assert reduced > 0


@examples(40)
@given(seed=seeds())
def test_poissons_law_adds_no_energy(seed):
    """Expansion returns at least its fraction where this adds no energy: for one contact, and for several without friction (Glocker 2013)."""
    body_that_hits(seed, proven=True)


def test_poissons_law_adds_no_energy_of_several_contacts():
    for seed in range(60):
        body_that_hits(seed, proven=False)


def body_that_hits(seed, proven):
    rng = np.random.default_rng(seed)
    b = sarrus.Builder("body")
    b.add_body("body", sarrus.Inertia.box(1.0, tuple(rng.uniform(0.1, 1.0, 3))))
    b.add_joint("float", sarrus.Free(), "ground", "body")
    points = [f"point{i}" for i in range(int(rng.integers(1, 5)))]
    rubs = len(points) == 1 or not proven
    for name in points:
        b.add_frame(name, "body", tuple(rng.normal(size=3)))
    robot = b.build()
    v = rng.normal(size=6)
    normals, turning = rng.normal(size=(len(points), 3)), not proven and rng.random() < 0.5
    numbers = [
        {
            "friction": rubs * rng.uniform(0, 1), "restitution": rng.uniform(0, 1),
            "torsional_friction": turning * rng.uniform(0, 0.1), "rolling_friction": turning * rng.uniform(0, 0.1),
        }
        for _ in points
    ]  # fmt: skip

    def hit(law, share=1.0):
        return [
            ContactPoint(name, normal=n, restitution_law=law, **(one | {"restitution": share * one["restitution"]}))
            for name, n, one in zip(points, normals, numbers, strict=True)
        ]

    q = robot.neutral()
    after = robot.contact_impact(q, v, hit("poisson"))
    assert robot.kinetic_energy(q, after.motion) <= robot.kinetic_energy(q, v) * (1 + 1e-9)
    pressed = np.einsum("ni,ni->n", after.forces, normals / np.linalg.norm(normals, axis=1)[:, None])
    assert pressed.min() >= -1e-9
    for k, name in enumerate(points):  # nothing sinks in
        n = normals[k] / np.linalg.norm(normals[k])
        assert n @ (robot.jacobian(q, name, expressed_in="world_aligned") @ after.motion)[3:] >= -1e-8
    # without restitution they are one
    assert_allclose(
        robot.contact_impact(q, v, hit("poisson", 0.0)).motion, robot.contact_impact(q, v, hit("newton", 0.0)).motion, atol=1e-12
    )  # fmt: skip


def chain_that_hits(rng):
    """Return a chain of rods in a random state, and contacts at its points with much friction."""
    b = sarrus.Builder("chain")
    bodies = [f"rod{k}" for k in range(int(rng.integers(1, 4)))]
    points = []
    for k, name in enumerate(bodies):
        b.add_body(name, sarrus.Inertia.rod(rng.uniform(0.1, 3), (0, 0, 0), (1, 0, 0), radius=0.02))
        kind = [sarrus.Revolute("y"), sarrus.Spherical(), sarrus.Revolute("z")][rng.integers(3)] if k else sarrus.Free()
        b.add_joint(f"joint{k}", kind, bodies[k - 1] if k else "ground", name, at_parent=(float(k > 0), 0, 0))
        for end in range(2):
            points.append(f"{name} {end}")
            b.add_frame(points[-1], name, tuple(rng.uniform(-0.3, 1.3, 3) * (1, 0.2, 0.2)))
    robot = b.build()
    q, v = robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), 3 * rng.normal(size=robot.nv)
    hits = [
        {"frame": str(point), "normal": rng.normal(size=3), "friction": rng.uniform(0, 2), "restitution": rng.choice([1.0, rng.random()])}
        for point in rng.permutation(points)[: rng.integers(1, len(points) + 1)]
    ]  # fmt: skip
    return robot, q, v, hits


@pytest.mark.parametrize("law", LAWS)
def test_no_impact_of_chains_adds_energy(law):
    """Without the limit 1 in 13 of these impacts adds energy by Newton's law, up to 494 times what there was, and 1 in 1,000 by Poisson's."""
    rng, done = np.random.default_rng(1), 0
    for _ in range(600):
        robot, q, v, hits = chain_that_hits(rng)
        try:
            after = robot.contact_impact(q, v, [ContactPoint(**hit, restitution_law=law) for hit in hits]).motion
        except sarrus.StateError:  # Painleve
            continue
        done += 1
        assert robot.kinetic_energy(q, after) <= robot.kinetic_energy(q, v) * (1 + 1e-7)
    assert done > 550


@pytest.mark.parametrize("shapes", [False, True])
def test_a_bouncing_ball_is_the_same_by_both(shapes):
    runs = []
    for law in LAWS:
        b = sarrus.Builder("ball")
        b.add_body("ball", sarrus.Inertia.sphere(mass=0.5, radius=0.1))
        b.add_joint("float", sarrus.Free(), "ground", "ball")
        if shapes:
            b.add_shape("ball", Sphere(0.1), restitution=0.7)
            b.add_shape("ground", Plane(), (0, 0, -0.1), name="floor")
            acting = CollisionContacts(restitution_law=law)
        else:
            acting = RigidContact("ball", radius=0.1, offset=-0.1, restitution=0.7, restitution_law=law)
        run = sarrus.simulate(b.build(), [0, 0, 0, 1, 0, 0, 0.3], np.zeros(6), 2.5, acting, method="contact", dt=2e-3)
        held = run.statistics["contact"]
        assert held["natural_map"] < 1e-8
        assert held["primal"] < 1e-8
        assert held["dual"] < 1e-8
        assert held["complementarity"] < 1e-8
        assert held["work"] < 1e-9
        runs.append(run)
    # to the first order of a step: by Poisson's law gravity's part of it is compressed, too
    for run in runs:
        landed = np.argmax(run.v[:, 5] > 0.5)
        assert_allclose(run.v[landed, 5], 0.7 * np.sqrt(2 * G * 0.3), atol=2 * G * 2e-3)
        assert_allclose(run.q[landed:, 6].max(), 0.49 * 0.3, rtol=0.03)
        assert abs(run.v[-1, 5]) < 1e-9
    assert not np.array_equal(runs[0].v, runs[1].v)


def test_a_rod_that_is_dropped_loses_energy():
    robot, q = rod(30)
    acting = [
        RigidContact("end", offset=-0.6, friction=0.6, restitution=0.8, restitution_law="poisson"),
    ]
    run = sarrus.simulate(robot, q, [1.0, 0, 2.0], 1.0, acting, method="contact", dt=1e-3)
    assert run.internal_state[:, 0].max() > 100.0
    assert run.statistics["contact"]["work"] < 1e-9


def test_what_is_refused():
    with pytest.raises(sarrus.errors.NameNotFoundError, match="restitution_law"):
        ball().contact_impact(AT, np.zeros(6), [ContactPoint("ball", restitution_law="stronge")])
    with pytest.raises(sarrus.errors.NameNotFoundError, match="restitution_law"):
        sarrus.simulate(ball(), AT, np.zeros(6), 0.1, RigidContact("ball", radius=0.1, restitution_law=1))


def jamming(with_ball=False):
    """Return a slide at 65 degrees to the normal, which friction of 0.5 jams: no impulse in the friction cone reverses its motion."""
    angle = np.radians(65.0)
    b = sarrus.Builder("slide")
    b.add_body("peg", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("guide", sarrus.Prismatic((np.sin(angle), 0, -np.cos(angle))), "ground", "peg")
    if with_ball:
        b.add_body("ball", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint("height", sarrus.Prismatic("z"), "ground", "ball")
    return b.build()


@pytest.mark.parametrize("speed", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_guided_body_that_friction_jams_does_not_bounce(restitution, speed):
    contact = sarrus.control.RigidContact("peg", friction=0.5, restitution=restitution)
    run = sarrus.simulate(jamming(), [0.0], [speed], 0.05, contact, method="contact")
    assert abs(run.v[-1, 0]) < 1e-4 * speed  # a slow one leaves the depth of the first half step, ever more slowly
    assert np.all((run.v <= speed) & (run.v > -0.1 * speed))
    assert run.q[-1, 0] < 1.1e-3 * speed  # a fast one remains at that depth
    assert run.statistics["contact"]["as_touching"] > 0


def test_a_jammed_body_does_not_take_the_bounce_of_others():
    contacts = [sarrus.control.RigidContact(name, friction=0.5, restitution=0.5) for name in ("peg", "ball")]
    run = sarrus.simulate(jamming(with_ball=True), [0.0, 0.01], [10.0, -2.0], 0.1, contacts, method="contact")
    hit = np.argmax(run.v[:, 1] > 0.0)
    assert hit > 0
    assert_allclose(run.v[hit, 1], 0.5 * np.sqrt(2.0**2 + 2 * G * 0.01), atol=2 * G * 1e-3)
    assert abs(run.v[-1, 0]) < 1e-4
