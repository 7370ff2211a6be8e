"""Heaps of shapes with stops, dry friction of joints, restitution, and friction against sliding, spinning and rolling at once."""

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
    """Return a shape of each kind, of about a decimetre."""
    a, b, c = draw.uniform(0.05, 0.15, 3) * m
    return (Sphere(a), Box((2 * a, 2 * b, 2 * c)), Capsule(a / 2, 2 * b))[draw.integers(3)], (a, b, c)


def heap(seed, *, order=None, turn=None, m=1.0, kg=1.0, s=1.0):
    """Return three bodies that fall on each other, one with a link with stops and dry friction; in another order, axes or units."""
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
    """Return the run, and the positions of bodies along it, in the axes and units of the original heap."""
    robot, q, v, up = heap(seed, **how)
    s = how.get("s", 1.0)
    run = sarrus.simulate(robot, q, v, DURATION * s, method="contact", dt=DT * s, limits="enforce")
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
    """Return the components along a normal, and across it."""
    along = float(n @ x)
    return along, x - along * n


def glide(robot, q, v, time):
    """Return the configuration after uniform motion, and the velocities in its axes."""
    q, v = q.copy(), v.copy()
    for k in range(3):
        at, by = robot.joint(f"f{k}").q_slice, robot.joint(f"f{k}").v_slice
        R = Rotation.from_quat(q[at][:4])
        turned = R * Rotation.from_rotvec(time * v[by][:3])
        q[at] = [*turned.as_quat(), *q[at][4:] + time * R.apply(v[by][3:])]
        v[by][3:] = turned.inv().apply(R.apply(v[by][3:]))
    q[robot.joint("hinge").q_slice] += time * v[robot.joint("hinge").v_slice]
    return q, v


def middle(run, sample):
    """Return the configuration in the middle of the step to a sample, and the velocities before and after its impulse, in its axes."""
    q, before = glide(run.mechanism, run.q[sample - 1], run.v[sample - 1], 0.5 * DT)
    _, after = glide(run.mechanism, run.q[sample], run.v[sample], -0.5 * DT)
    return q, before, after


def meeting(robot, q, v, bodies, point):
    """Return the normal at the contact, and the relative velocity of the two bodies: angular, and at the contact."""
    near = robot.contacts(q, within=0.05)
    (i,) = np.flatnonzero(near.id == point)
    V = np.zeros(6)
    for body, sign in zip(bodies, (1.0, -1.0), strict=True):
        w, u = np.split(robot.velocity(q, v, body, expressed_in="world_aligned"), 2)
        V += sign * np.concatenate([w, u + np.cross(w, near.position[i] - robot.pose(q, body)[:3, 3])])
    return near, i, near.normal[i], V


def bend(robot, q, v, bodies, point):
    """Return the change of that velocity in the rest of the step without forces: the contact moves along both surfaces, and the normal turns."""
    (*_, n, V), e = meeting(robot, q, v, bodies, point), 1e-6
    (*_, n0, V0), (*_, n1, V1) = (meeting(robot, *glide(robot, q, v, by), bodies, point) for by in (-e, e))
    rate, turns = (V1 - V0)[3:] / (2 * e), (n1 - n0) / (2 * e)
    return 0.5 * DT * (rate + n * (turns @ V[3:]) - turns * (n @ V[3:]))


@pytest.mark.parametrize("seed", range(6))
def test_forces_that_are_told_satisfy_the_laws_of_friction(seed):
    """Reported forces of each pressed point satisfy bounds and the directions of slipping, spinning and rolling, without approach.

    Impacts are in the middle of a step; motion along a surface satisfies the laws at the end of the step.
    """
    run, _ = fallen(seed)
    robot, pressed = run.mechanism, run.contacts
    slipping = at_the_end = 0
    for k, sample in enumerate(pressed.sample):
        q, before, after = middle(run, sample)
        which = pressed.bodies[k], pressed.id[k]
        near, i, n, V = meeting(robot, q, after, *which)
        np.testing.assert_allclose(near.position[i], pressed.position[k], atol=1e-12)
        (f_n, f_t), (m_n, m_t) = in_directions(n, pressed.force[k]), in_directions(n, pressed.moment[k])
        (w_n, w_t) = in_directions(n, V[:3])
        assert f_n > 0.0

        def off(mu, rate, push, f_n=f_n):
            fast = np.linalg.norm(rate)
            assert np.linalg.norm(push) <= mu * f_n * (1.0 + HELD) + 1e-9
            return np.abs(push + mu * f_n * rate / fast).max() / f_n if fast > 1e-5 and f_n > 1e-2 else 0.0

        assert off(near.torsional_friction[i], np.array([w_n]), np.array([m_n])) <= HELD
        assert off(near.rolling_friction[i], w_t, m_t) <= HELD

        def laws(besides, i=i, near=near, n=n, V=V, f_t=f_t, off=off):
            """Return the error of the friction law, and the excess of the approach or separation."""
            (u_n, u_t), gap = in_directions(n, V[3:] + besides), near.distance[i] - 0.25 * DT * (n @ besides)
            # what is away may just touch, what has sunk in comes out, not faster than it falls as deep
            most, least = np.sqrt(2 * G * max(-gap, 0.0)) - max(gap, 0.0) / DT, -max(gap, 0.0) / DT
            nearing = max(least - u_n, u_n - most) if near.restitution[i] == 0.0 else 0.0
            return max(off(near.friction[i], u_t, f_t) / HELD, nearing / 1e-8)

        in_the_middle = laws(np.zeros(3))
        if in_the_middle > 1.0:
            assert laws(bend(robot, q, before, *which)) <= 1.0, (sample, which, in_the_middle)
            at_the_end += 1
        slipping += np.linalg.norm(in_directions(n, V[3:])[1]) > 1e-5
    assert slipping and at_the_end


def torques(robot, q, name, contacts, sample, places=None):
    """Return the moment about a body's origin, in the world, and the force, of the points with contact in the step to a sample."""
    force, moment, origin = np.zeros(3), np.zeros(3), robot.pose(q, name)[:3, 3]
    for k in np.flatnonzero(contacts.sample == sample):
        place = contacts.position[k] if places is None else places(k)
        for body, sign in zip(contacts.bodies[k], (1.0, -1.0), strict=True):
            if body == name and place is not None:
                force += sign * contacts.force[k]
                moment += sign * (np.cross(place - origin, contacts.force[k]) + contacts.moment[k])
    return force, moment


@pytest.mark.parametrize("seed", range(6))
def test_forces_that_are_told_make_the_motion(seed):
    """Reported forces cause the motion: Newton's law of each free body in world axes, and Euler's in its own, about the middle of the step.

    m (R' u' - R u) = h (m g + f), I (w' - w) = h (R_m^T t - c), where c is that of the mean velocity that the last step's forces would cause or,
    after an impact, the mean of c before and after.
    """
    run, _ = fallen(seed)
    robot, pressed = run.mechanism, run.contacts
    inertias = {body.name: body.inertia for body in robot.description.bodies}
    worst = 0.0
    for name in BODIES[1:3]:
        inertia, joint = inertias[name], robot.joint(f"f{name[1]}")
        I, mass = inertia.about_com, inertia.mass
        for sample in np.unique(pressed.sample):
            q = middle(run, sample)[0]
            X, near = robot.pose(q, name), robot.contacts(q, within=0.05)
            force, moment = torques(robot, q, name, pressed, sample)
            (w, u), (w1, u1) = (np.split(run.v[k][joint.v_slice], 2) for k in (sample - 1, sample))
            scale = DT * np.abs(pressed.force).max()
            R, R1 = (robot.pose(run.q[k], name)[:3, :3] for k in (sample - 1, sample))
            gravity = mass * np.array(robot.description.gravity)
            np.testing.assert_allclose(mass * (R1 @ u1 - R @ u), DT * (force + gravity), atol=1e-9 * scale)
            needed = (I @ (w1 - w) - DT * X[:3, :3].T @ moment) / DT

            def there(k, near=near):
                """Return the current position of a point of the previous step."""
                those = np.flatnonzero([shapes == pressed.shapes[k] for shapes in near.shapes])
                away = np.linalg.norm(near.position[those] - pressed.position[k], axis=1)
                return near.position[those[away.argmin()]] if len(those) else None

            expected, turn = torques(robot, q, name, pressed, sample - 1, there)[1], w
            for _ in range(50):
                mean = 0.5 * (w + turn)
                turn = w + DT * np.linalg.solve(I, X[:3, :3].T @ expected - np.cross(mean, I @ mean))
            hit = 0.5 * (np.cross(w, I @ w) + np.cross(w1, I @ w1))
            off = min(np.abs(needed + c).max() for c in (np.cross(mean, I @ mean), hit))
            worst = max(worst, DT * off / scale)
    assert worst < HELD, worst  # the mean velocity is found to 1e-8 of itself
