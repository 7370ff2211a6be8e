"""The slow reference for control by tasks: accelerations, efforts, forces of contacts and multipliers are all unknowns, and dense.

Dynamics, loops and contacts are equations between the unknowns x = (a, u, f, lambda):

    M a + h = S u + J_f^T f + J^T lambda        J a = gamma        J_f a = gamma_f

Tasks are rows A x = b. Hard ones are further equations; the others are met one priority after the other in the sense of weighted least squares,
each within what all before it leave free: x + N z, where N is a basis of the null space of everything that is settled. Limits are rows
G x <= g of all levels. Last come levels of least norm: of efforts, forces and multipliers, in that order or as they are told, so that the
answer is unique.

Nothing is eliminated, factorised or regularised, and no derivative is taken from the library: Jacobians of tasks and their
rates are finite differences of poses.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import sarrus

UNKNOWNS = ("acceleration", "efforts", "forces", "multipliers")
NEGLIGIBLE = 1e-9  # singular values below this times the largest count as zero
STEP = 1e-3  # of five-point differences: truncation and rounding are both about 1e-10


class Task(NamedTuple):
    """Rows over some of the unknowns, by name; their values; weight (one number, or one per row)."""

    rows: Mapping[str, Any]
    goal: Any
    weight: Any = 1.0
    priority: int = 0
    hard: bool = False


class Limit(NamedTuple):
    """Rows x <= upper over some of the unknowns, and their name in a result."""

    name: str
    rows: Mapping[str, Any]
    upper: Any


class Contact(NamedTuple):
    """Frame constrained along some directions: jacobian (k, nv) a = acceleration (k,), with forces (k,) along them, cone f <= 0."""

    jacobian: Any
    acceleration: Any
    cone: Any = np.zeros((0, 0))


class Answer(NamedTuple):
    """The unknowns by name, and the remaining weighted sum of squares of each priority; if infeasible, the conflicting limits."""

    found: Mapping[str, Any]
    left: Mapping[int, float]
    conflict: tuple[str, ...]


def solve(
    robot,
    q,
    v,
    tasks,
    *,
    actuated=None,
    contacts=(),
    limits=(),
    time=None,
    last=({"efforts": 1.0}, {"forces": 1.0}, {"multipliers": 1.0}),
):
    """Solve tasks of all priorities within limits. `last`: levels of least norm, of unknowns times weights (one, or one each)."""
    M, h = robot.mass_matrix(q), robot.bias_forces(q, v)
    S = robot.actuation_matrix(q, actuated=actuated)
    when = {} if time is None else {"time": time}
    J, gamma = robot.constraint_jacobian(q, **when), robot.constraint_bias(q, v, **when)
    J_f = np.concatenate([c.jacobian for c in contacts]) if contacts else np.zeros((0, robot.nv))
    gamma_f = np.concatenate([c.acceleration for c in contacts]) if contacts else np.zeros(0)
    sizes = dict(zip(UNKNOWNS, (robot.nv, S.shape[1], len(J_f), len(J)), strict=True))

    def over(rows):
        """Return rows over all unknowns."""
        count = len(next(iter(rows.values())))
        return np.concatenate([np.asarray(rows.get(name, np.zeros((count, n)))) for name, n in sizes.items()], axis=1)

    equations = [
        (over({"acceleration": M, "efforts": -S, "forces": -J_f.T, "multipliers": -J.T}), -h),
        (over({"acceleration": J}), gamma),
        (over({"acceleration": J_f}), gamma_f),
        *((over(task.rows), np.asarray(task.goal, float)) for task in tasks if task.hard),
    ]
    x, N = met(np.concatenate([A for A, _ in equations]), np.concatenate([b for _, b in equations]))

    names, G, g = [], [np.zeros((0, len(x)))], [np.zeros(0)]
    start = 0
    for k, contact in enumerate(contacts):
        cone = np.zeros((len(contact.cone), len(J_f)))
        cone[:, start : start + len(contact.jacobian)] = contact.cone if len(contact.cone) else 0.0
        start += len(contact.jacobian)
        limits = (*limits, Limit(f"contact {k}", {"forces": cone}, np.zeros(len(cone))))
    for limit in limits:
        finite = np.isfinite(np.asarray(limit.upper, float))
        G.append(over(limit.rows)[finite])
        g.append(np.asarray(limit.upper, float)[finite])
        names += [limit.name] * int(finite.sum())
    G, g = np.concatenate(G), np.concatenate(g)

    z, beyond = feasible(within(G, N), g - G @ x)
    if beyond.any():
        return Answer(parts(np.full(len(x), np.nan), sizes), {}, tuple(dict.fromkeys(np.array(names)[beyond].tolist())))
    x = x + N @ z
    left = {}
    levels = sorted({task.priority for task in tasks if not task.hard})
    for priority in levels:
        chosen = [task for task in tasks if not task.hard and task.priority == priority]
        root = [np.sqrt(np.broadcast_to(task.weight, len(task.goal)))[:, None] for task in chosen]
        A = np.concatenate([w * over(task.rows) for w, task in zip(root, chosen, strict=True)])
        b = np.concatenate([w[:, 0] * task.goal for w, task in zip(root, chosen, strict=True)])
        x, N = best(A, b, x, N, G, g)
        left[priority] = float(np.sum((A @ x - b) ** 2))
    for level in last:
        A = np.concatenate([over({name: np.diag(np.broadcast_to(w, sizes[name]))}) for name, w in level.items()])
        x, N = best(A, np.zeros(len(A)), x, N, G, g)
    return Answer(parts(x, sizes), left, ())


def parts(x, sizes):
    """Return the unknowns by name."""
    return dict(zip(sizes, np.split(x, np.cumsum(list(sizes.values()))[:-1]), strict=True))


# ---- least squares -------------------------------------------------------------------------------------------------


def null_space(A):
    """Return an orthonormal basis (n, free) of A z = 0."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.count_nonzero(s > NEGLIGIBLE * max(s.max(initial=0.0), 1e-30)) :].T


def met(A, b):
    """Return x, N: all solutions x + N z of A x = b; ValueError if there are none."""
    x = np.linalg.lstsq(A, b, rcond=NEGLIGIBLE)[0]
    off = np.abs(A @ x - b).max(initial=0.0)
    if off > 1e-7 * (1.0 + np.abs(b).max(initial=0.0)):
        raise ValueError(f"equations contradict each other by {off:g}")
    return x, null_space(A)


def best(A, b, x, N, G, g):
    """Return the best x + N z for A x = b with G x <= g, and the null space that keeps A x; x itself satisfies the limits."""
    AN = within(A, N)
    x = x + N @ least_squares(AN, b - A @ x, within(G, N), np.maximum(g - G @ x, 0.0))
    return x, N @ null_space(AN)


def within(A, N):
    """Return A N without rows that N annihilates, whose remaining rounding would count as a direction."""
    AN = A @ N
    AN[np.linalg.norm(AN, axis=1) <= NEGLIGIBLE * np.linalg.norm(A, axis=1)] = 0.0
    return AN


def feasible(H, k):
    """Return z with H z <= k if there is one, and the violated rows (m,): violations s of least norm, from H z - s <= k."""
    n, m = H.shape[1], len(H)
    s = np.maximum(-k, 0.0)
    if not s.any():
        return np.zeros(n), np.zeros(m, bool)
    # unknowns (z, t) from (0, 0), where violations are s + t
    A = np.concatenate([np.zeros((m, n)), np.eye(m)], axis=1)
    zt = least_squares(A, -s, np.concatenate([H, -np.eye(m)], axis=1), k + s)
    z, s = zt[:n], s + zt[n:]
    return z, s > 1e-7 * (1.0 + np.abs(k))


def least_squares(A, b, H, k):
    """Return z of least |A z - b| with H z <= k, by active sets from z = 0, where 0 <= k (Nocedal and Wright 2006, algorithm 16.3)."""
    z, working = np.zeros(A.shape[1]), []
    for turn in range(1000):
        N = null_space(H[working])
        p = N @ np.linalg.lstsq(A @ N, b - A @ z, rcond=NEGLIGIBLE)[0]
        if np.linalg.norm(A @ p) > 1e-11 * (1.0 + np.linalg.norm(b)):
            toward, room = H @ p, np.maximum(k - H @ z, 0.0)
            toward[working] = 0.0
            blocking = np.flatnonzero(toward > 1e-12 * (1.0 + np.abs(p).max()))
            steps = room[blocking] / toward[blocking]
            if len(steps) and steps.min() < 1.0:
                z = z + steps.min() * p
                working.append(int(blocking[np.argmin(steps)]))
            else:
                z = z + p
            continue
        mu = np.linalg.lstsq(H[working].T, A.T @ (b - A @ z), rcond=None)[0]
        wrong = np.flatnonzero(mu < -1e-10 * (1.0 + np.abs(mu).max(initial=0.0)))
        if not len(wrong):
            return z
        # the most wrong one; later, in case that goes round in circles, the first (Bland's rule)
        working.pop(int(min(wrong, key=lambda i: working[i]) if turn > 100 else wrong[np.argmin(mu[wrong])]))
    raise RuntimeError("active sets went round in circles")


# ---- rows of tasks, from finite differences of where things are ----------------------------------------------------


def rates(robot, q, v, displacement):
    """Return J (m, nv), bias (m,): displacement(q1) from q has rate J v and acceleration J a + bias, by five-point differences."""

    def along(u, t):
        return np.asarray(displacement(robot.integrate(q, t * u)), float)

    columns = [
        (8.0 * (along(u, STEP) - along(u, -STEP)) - along(u, 2 * STEP) + along(u, -2 * STEP)) / (12.0 * STEP)
        for u in np.eye(robot.nv)
    ]
    v = np.asarray(v, float)
    near, far = along(v, STEP) + along(v, -STEP), along(v, 2 * STEP) + along(v, -2 * STEP)
    return np.stack(columns, axis=-1), (16.0 * near - far - 30.0 * along(v, 0.0)) / (12.0 * STEP**2)


def turned(R, R_0):
    """Return the rotation vector (3,) from R_0 to R, in the axes in which both are given."""
    return Rotation.from_matrix(R @ R_0.T).as_rotvec()


def frame_displacement(robot, q, frame):
    """Return [rotation vector; position] of a frame relative to its pose at q, world axes; its acceleration at q is [angular; linear]."""
    X_0 = robot.pose(q, frame)

    def displacement(q_1):
        X = robot.pose(q_1, frame)
        return np.r_[turned(X[:3, :3], X_0[:3, :3]), X[:3, 3] - X_0[:3, 3]]

    return displacement


def relative_displacement(robot, q, frame, reference):
    """Return the displacement between two frames, in the reference's axes."""

    def pose(q):
        return np.linalg.solve(robot.pose(q, reference), robot.pose(q, frame))

    X_0 = pose(q)

    def displacement(q_1):
        X = pose(q_1)
        return np.r_[turned(X[:3, :3], X_0[:3, :3]), X[:3, 3] - X_0[:3, 3]]

    return displacement


def motion_task(
    robot,
    q,
    v,
    displacement,
    error,
    *,
    goal=0.0,
    goal_rate=0.0,
    stiffness=100.0,
    damping=None,
    rows=slice(None),
    axes=None,
    **task,
):
    """Task J a + bias = goal + damping (goal_rate - J v) + stiffness error.

    goal, goal_rate, error (m,): acceleration, velocity and distance that are wanted, along the displacement; damping: critical by default;
    rows: those that count; axes (m, m): their rows are directions along which all are split first.
    """
    J, bias = rates(robot, q, v, displacement)
    k = np.asarray(stiffness, float)
    d = 2.0 * np.sqrt(k) if damping is None else np.asarray(damping, float)
    A = np.eye(len(J)) if axes is None else axes
    far, fast, wanted = A @ error, A @ (goal_rate - J @ v), A @ (goal - bias)
    return Task({"acceleration": (A @ J)[rows]}, (wanted + d * fast + k * far)[rows], **task)


def pose_error(X, X_goal):
    """Return [rotation vector; position] from X to X_goal, world axes."""
    return np.r_[turned(X_goal[:3, :3], X[:3, :3]), X_goal[:3, 3] - X[:3, 3]]


def frame_task(robot, q, v, frame, X_goal, **options):
    """Task of a frame with a pose X_goal (4, 4); goal and goal_rate [angular; linear] in world axes."""
    displacement = frame_displacement(robot, q, frame)
    return motion_task(robot, q, v, displacement, pose_error(robot.pose(q, frame), X_goal), **options)


def relative_task(robot, q, v, frame, reference, X_goal, **options):
    """Task of a frame with a pose X_goal (4, 4) in another frame, in whose axes goal and goal_rate are."""
    X = np.linalg.solve(robot.pose(q, reference), robot.pose(q, frame))
    displacement = relative_displacement(robot, q, frame, reference)
    return motion_task(robot, q, v, displacement, pose_error(X, X_goal), **options)


def joint_task(robot, q, v, joint, goal_position, *, index=0, **options):
    """Task of a coordinate of any joint, including loop joints."""
    near = robot.joint_states(q).q

    def displacement(q_1):
        return np.atleast_1d(robot.joint_states(q_1, near=near).q[joint])[index : index + 1]

    return motion_task(robot, q, v, displacement, goal_position - displacement(q), **options)


def posture_task(robot, q, v, q_goal, **options):
    """Task of all coordinates of the tree."""
    return motion_task(robot, q, v, lambda q_1: robot.difference(q, q_1), robot.difference(q, q_goal), **options)


def center_of_mass_task(robot, q, v, goal_position, **options):
    """Task of the centre of mass with a position (3,)."""
    return motion_task(robot, q, v, robot.center_of_mass, goal_position - robot.center_of_mass(q), **options)


def momentum_task(robot, q, v, goal_momentum, *, goal=0.0, gain=20.0, rows=slice(None), **task):
    """Task of the momentum about the centre of mass, world axes [angular; linear]: its rate is goal + gain (goal_momentum - momentum)."""

    def momentum(t):
        return sarrus.floating.centroidal_momentum(robot, robot.integrate(q, t * np.asarray(v)), v)

    near, far = momentum(STEP) - momentum(-STEP), momentum(2 * STEP) - momentum(-2 * STEP)
    bias = (8.0 * near - far) / (12.0 * STEP)
    wanted = goal + gain * (goal_momentum - momentum(0.0)) - bias
    return Task({"acceleration": sarrus.floating.centroidal_momentum_matrix(robot, q)[rows]}, wanted[rows], **task)


def impedance_task(
    robot, q, v, frame, X_goal, *, inertia, stiffness, damping, goal=0.0, goal_rate=0.0, wrench=0.0, **task
):
    """Inertia (A - goal) + damping (V - goal_rate) - stiffness error = wrench, all (6, 6) and (6,) in world axes at the frame."""
    J, bias = rates(robot, q, v, frame_displacement(robot, q, frame))
    error = pose_error(robot.pose(q, frame), X_goal)
    force = wrench + damping @ (goal_rate - J @ v) + stiffness @ error
    return Task({"acceleration": J}, goal + np.linalg.solve(inertia, force) - bias, **task)


# ---- contacts ------------------------------------------------------------------------------------------------------


def world_axes(normal):
    """Return (3, 3) with rows: two directions across a normal, and the normal, right-handed."""
    n = np.asarray(normal, float) / np.linalg.norm(normal)
    across = np.eye(3)[np.argmin(np.abs(n))]
    t = across - n * (n @ across)
    t /= np.linalg.norm(t)
    return np.stack([t, np.cross(n, t), n])


def point_contact(robot, q, v, frame, *, friction, normal=(0.0, 0.0, 1.0), damping=0.0, torsion=0.0):
    """A frame's origin that stays, J_f a = -damping J_f v; forces (3,) across the normal and along it, in a pyramid within Coulomb's cone.

    Without friction: only the normal is held, and its force (1,) pushes. With torsion: the body does not spin about the normal, by a moment there,
    the fourth number.
    """
    all_J, all_bias = rates(robot, q, v, frame_displacement(robot, q, frame))
    J, bias = all_J[3:], all_bias[3:]
    axes, share = world_axes(normal), friction / np.sqrt(2.0)
    if friction == 0.0:
        axes, cone = axes[2:], [[-1.0]]
    else:
        cone = [[1, 0, -share], [-1, 0, -share], [0, 1, -share], [0, -1, -share], [0, 0, -1]]
    if torsion:
        J, bias, cone = all_J, all_bias, [[*side, 0] for side in cone] + [[0, 0, -torsion, s] for s in (1, -1)]
        axes = np.block([[np.zeros((3, 3)), axes], [axes[2:], np.zeros((1, 3))]])
    return Contact(axes @ J, -axes @ (bias + damping * (J @ v)), np.array(cone, float))


def points_of_one_body(robot, q, v, frames, *, friction, normal=(0.0, 0.0, 1.0), damping=0.0):
    """Points of a rigid body whose twist dies: w' = -damping w, and of the middle c of the points a_c = -damping v_c; from these each
    point's acceleration, a_c + w' x r + w x (w x r). Forces as those of one point.
    """
    places = [robot.pose(q, frame)[:3, 3] for frame in frames]
    middle = np.mean(places, axis=0)
    motion = [rates(robot, q, v, frame_displacement(robot, q, frame)) for frame in frames]
    w = motion[0][0][:3] @ v
    v_c = np.mean([J[3:] @ v for J, _ in motion], axis=0)
    contacts = []
    for frame, (_, bias), place in zip(frames, motion, places, strict=True):
        r = place - middle
        goal = -damping * (v_c + np.cross(w, r)) + np.cross(w, np.cross(w, r))
        one = point_contact(robot, q, v, frame, friction=friction, normal=normal)
        axes = world_axes(normal)[3 - len(one.jacobian) :]
        contacts.append(one._replace(acceleration=axes @ (goal - bias[3:])))
    return contacts


def surface_contact(robot, q, v, frame, *, size, friction, torsion, damping=0.0):
    """A patch, size (along x, along y) of the frame, whose z is the normal: [force; moment] (6,) in the frame's axes.

    Tangential forces in a pyramid, centre of pressure in the patch, |moment about z| <= torsion f_z.
    """
    J, bias = rates(robot, q, v, frame_displacement(robot, q, frame))
    R = np.kron([[0, 1], [1, 0]], robot.pose(q, frame)[:3, :3].T)
    x, y, share = size[0] / 2.0, size[1] / 2.0, friction / np.sqrt(2.0)
    cone = [[0, 0, -1, 0, 0, 0]]
    for sign in (1.0, -1.0):
        cone += [
            [sign, 0, -share, 0, 0, 0],
            [0, sign, -share, 0, 0, 0],
            [0, 0, -x, 0, sign, 0],  # the centre of pressure is at x = -m_y / f_z
            [0, 0, -y, sign, 0, 0],
            [0, 0, -torsion, 0, 0, sign],
        ]
    return Contact(R @ J, -R @ (bias + damping * (J @ v)), np.array(cone, float))


def effort_limits(lower, upper):
    """Return upper and lower limits on the efforts (nu,)."""
    n = len(np.asarray(upper))
    return (
        Limit("efforts above", {"efforts": np.eye(n)}, np.asarray(upper)),
        Limit("efforts below", {"efforts": -np.eye(n)}, -np.asarray(lower)),
    )


def acceleration_limits(rows, lower, upper):
    """Return limits on rows of the acceleration, from braking distances and largest velocities."""
    rows = np.asarray(rows, float)
    return (
        Limit("acceleration above", {"acceleration": rows}, np.asarray(upper)),
        Limit("acceleration below", {"acceleration": -rows}, -np.asarray(lower)),
    )
