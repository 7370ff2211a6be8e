"""Heaps of shapes with all that may push at once: stops, dry friction of joints, restitution, friction against sliding, spinning and rolling."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sarrus
from sarrus.shapes import Box, Capsule, Plane, Sphere

G, DT, DURATION = 9.81, 2e-3, 0.4
BODIES = ("b0", "b1", "b2", "link")
# of places after DURATION, in units of the heap: rounding, which impacts let grow
SAME = 1e-8
# of forces and velocities, beside those that the heap has: what cones are solved to (1e-10 of the largest velocity), over the smallest that is looked at
HELD = 1e-6


def shapes(draw, m):
    """One of a kind, of about a decimetre."""
    a, b, c = draw.uniform(0.05, 0.15, 3) * m
    return (Sphere(a), Box((2 * a, 2 * b, 2 * c)), Capsule(a / 2, 2 * b))[draw.integers(3)], (a, b, c)


def heap(seed, *, order=None, turn=None, m=1.0, kg=1.0, s=1.0):
    """Three bodies above the ground that fall on each other, a link with stops and dry friction on one of them: in another order, axes or units."""
    draw, up = np.random.default_rng(seed), Rotation.from_euler("zyx", turn or (0, 0, 0)).as_matrix()
    N = kg * m / s**2
    parts = {}
    for name in BODIES[:3]:
        shape, size = shapes(draw, m)
        place = sarrus.Transform(sarrus.Rotation.from_rpy(*0.3 * draw.normal(size=3)), 0.02 * m * draw.normal(size=3))
        numbers = {
            "friction": draw.uniform(0.1, 1.0), "restitution": draw.choice([0.0, 0.4]),
            "torsional_friction": draw.choice([0.0, 0.02]) * m, "rolling_friction": draw.choice([0.0, 0.005]) * m,
        }  # fmt: skip
        parts[name] = sarrus.Inertia.box(draw.uniform(0.2, 3) * kg, 2 * np.array(size)), shape, place, numbers
    rod = sarrus.Inertia.rod(0.3 * kg, (0, 0, 0), (0, 0, -0.2 * m), radius=0.02 * m)
    parts["link"] = rod, Capsule(0.02 * m, 0.1 * m), sarrus.Transform(translation=(0, 0, -0.1 * m)), {"friction": 0.4}
    hinge = sarrus.Revolute("y", limits=(-0.3, 0.4), friction=0.02 * N * m, damping=0.01 * N * m * s)
    b = sarrus.Builder("heap", gravity=tuple(up @ (0, 0, -G * m / s**2)))
    shuffled = [np.random.default_rng(order).permutation(4) if order else np.arange(4) for _ in range(3)]
    for k in shuffled[0]:
        b.add_body(BODIES[k], parts[BODIES[k]][0])
    for k in np.roll(shuffled[1], order or 0):
        if k == 3:
            b.add_joint("hinge", hinge, "b0", "link", at_parent=(0, 0, -0.1 * m))
        else:
            b.add_joint(f"f{k}", sarrus.Free(), "ground", f"b{k}")
    for k in shuffled[2][::-1] if order else shuffled[2]:
        _, shape, place, numbers = parts[BODIES[k]]
        b.add_shape(BODIES[k], shape, place, name=BODIES[k], **numbers)
    b.add_shape("ground", Plane(), sarrus.Transform(up), name="floor", friction=0.7, restitution=0.2)
    b.set_home({f"f{k}": (0, 0, 0, 1, *up @ (0, 0, 10.0 * (k + 1) * m)) for k in range(3)})
    robot = b.build()
    q, v = robot.neutral(), np.zeros(robot.nv)
    for k in range(3):
        R = Rotation.from_matrix(up) * Rotation.from_rotvec(0.5 * draw.normal(size=3))
        place = up @ (*0.1 * draw.normal(size=2), 0.22 + 0.22 * k) * m
        q[robot.joint(f"f{k}").q_slice] = [*R.as_quat(), *place]
        v[robot.joint(f"f{k}").v_slice] = [*2 / s * draw.normal(size=3), *m / s * draw.normal(size=3)]
    v[robot.joint("hinge").v_slice] = 3 / s * draw.normal()
    return robot, q, v, up


def fallen(seed, **how):
    """Its run, and the places of bodies along it, in axes and units of the heap as it is."""
    robot, q, v, up = heap(seed, **how)
    s = how.get("s", 1.0)
    run = sarrus.simulate(robot, q, v, DURATION * s, method="contact", dt=DT * s, limits="stop")
    poses = np.stack([robot.pose(run.q[::15], body) for body in BODIES])
    return run, np.concatenate([up.T @ poses[..., :3, :3], up.T @ poses[..., :3, 3:] / how.get("m", 1.0)], axis=-1)


HOW = {
    "order": {"order": 1}, "another order": {"order": 2}, "axes": {"turn": (0.4, -1.1, 2.0)}, "cm, g": {"m": 1e-2, "kg": 1e-3},
    "km, t": {"m": 1e3, "kg": 1e3}, "ms": {"s": 1e-3}, "mg": {"kg": 1e-6},
    "um": {"m": 1e-6, "kg": 1e-9},
}  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_nothing_depends_on_how_it_is_told(seed):
    run, places = fallen(seed)
    assert len(run.contacts.sample) > 5
    for name, how in HOW.items():
        np.testing.assert_allclose(fallen(seed, **how)[1], places, rtol=0.0, atol=SAME, err_msg=name)


def in_directions(n, x):
    """Along a normal, and across it."""
    along = float(n @ x)
    return along, x - along * n


def middle(run, sample):
    """Configuration in the middle of the step that leads to a sample, and the velocities after its kick, in the axes of that."""
    robot = run.mechanism
    (q0, q1), (v0, v1) = (x[sample - 1 : sample + 1].copy() for x in (run.q, run.v))
    q, v = q0.copy(), v1.copy()
    for k in range(3):
        at, by = robot.joint(f"f{k}").q_slice, robot.joint(f"f{k}").v_slice
        R0, R1 = Rotation.from_quat(q0[at][:4]), Rotation.from_quat(q1[at][:4])
        R = R0 * Rotation.from_rotvec(0.5 * DT * v0[by][:3])
        q[at] = [*R.as_quat(), *q0[at][4:] + 0.5 * DT * R0.apply(v0[by][3:])]
        v[by][3:] = R.inv().apply(R1.apply(v1[by][3:]))
    hinge = robot.joint("hinge")
    q[hinge.q_slice] += 0.5 * DT * v0[hinge.v_slice]
    return q, v


@pytest.mark.parametrize("seed", range(6))
def test_forces_that_are_told_satisfy_the_laws_of_friction(seed):
    """Of each point that presses, in the middle of its step: bounds, directions of what slips, spins and rolls, and no nearing."""
    run, _ = fallen(seed)
    robot, pressed = run.mechanism, run.contacts
    slipping = 0
    for k, sample in enumerate(pressed.sample):
        q, v = middle(run, sample)
        near = robot.contacts(q, within=0.05)
        (i,) = np.flatnonzero(near.id == pressed.id[k])
        np.testing.assert_allclose(near.position[i], pressed.position[k], atol=1e-12)
        V = np.zeros(6)
        for body, sign in zip(pressed.bodies[k], (1.0, -1.0), strict=True):
            w, u = np.split(robot.velocity(q, v, body, expressed_in="world_aligned"), 2)
            arm = pressed.position[k] - robot.pose(q, body)[:3, 3]
            V += sign * np.concatenate([w, u + np.cross(w, arm)])
        n = near.normal[i]
        (f_n, f_t), (m_n, m_t) = in_directions(n, pressed.force[k]), in_directions(n, pressed.moment[k])
        (u_n, u_t), (w_n, w_t) = in_directions(n, V[3:]), in_directions(n, V[:3])
        assert f_n > 0.0
        spin, torsion = np.array([w_n]), np.array([m_n])
        laws = ((near.friction, u_t, f_t), (near.torsional_friction, spin, torsion), (near.rolling_friction, w_t, m_t))
        for mu, rate, push in laws:
            assert np.linalg.norm(push) <= mu[i] * f_n * (1.0 + HELD) + 1e-9
            if (fast := np.linalg.norm(rate)) > 1e-5 and f_n > 1e-2:
                np.testing.assert_allclose(push, -mu[i] * f_n * rate / fast, atol=HELD * f_n)
                slipping += 1
        gap = near.distance[i]
        if (
            near.restitution[i] == 0.0
        ):  # what is away may just touch, what has sunk in comes out, not faster than it falls as deep
            fastest = np.sqrt(2 * G * max(-gap, 0.0)) + 1e-9
            assert -max(gap, 0.0) / DT - 1e-9 <= u_n <= fastest - max(gap, 0.0) / DT
    assert slipping


@pytest.mark.parametrize("seed", range(6))
def test_forces_that_are_told_make_the_motion(seed):
    """Newton's law of each free body in the world's axes, and Euler's in its own, about the middle of the step.

    m (R' u' - R u) = h (m g + f), I (w' - w) = h (R_m^T t - c), where c is w x I w of the mean velocity, or after a hit the mean of c before and after.
    """
    run, _ = fallen(seed)
    robot, pressed = run.mechanism, run.contacts
    inertias = {body.name: body.inertia for body in robot.description.bodies}
    for name in BODIES[1:3]:
        inertia, joint = inertias[name], robot.joint(f"f{name[1]}")
        for sample in np.unique(pressed.sample):
            X = robot.pose(middle(run, sample)[0], name)
            force, moment = inertia.mass * np.array(robot.description.gravity), np.zeros(3)
            for k in np.flatnonzero(pressed.sample == sample):
                for body, sign in zip(pressed.bodies[k], (1.0, -1.0), strict=True):
                    if body == name:
                        force += sign * pressed.force[k]
                        arm = pressed.position[k] - X[:3, 3]
                        moment += sign * (np.cross(arm, pressed.force[k]) + pressed.moment[k])
            (w, u), (w1, u1) = (np.split(run.v[k][joint.v_slice], 2) for k in (sample - 1, sample))
            I, scale = inertia.about_com, DT * np.abs(pressed.force).max()
            R, R1 = (robot.pose(run.q[k], name)[:3, :3] for k in (sample - 1, sample))
            np.testing.assert_allclose(inertia.mass * (R1 @ u1 - R @ u), DT * force, atol=1e-9 * scale)
            needed = I @ (w1 - w) - DT * X[:3, :3].T @ moment
            mean = 0.5 * (w + w1)
            glided = np.cross(mean, I @ mean)
            hit = 0.5 * (np.cross(w, I @ w) + np.cross(w1, I @ w1))
            off = min(np.abs(needed + DT * c).max() for c in (glided, hit))
            # the mean velocity is that with the impulses of the step before: what changes it by less than a tenth is no hit
            assert off < 0.2 * DT * np.linalg.norm(mean) * np.linalg.norm(I @ mean) + 1e-9 * scale
