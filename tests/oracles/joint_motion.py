"""Definition of each joint: the displacement for its coordinates, and the velocity for its generalised velocity.

A joint is a sequence of elementary displacements, each about (``turn``) or along (``slide``) an axis fixed in the frame that the previous ones have
reached. Ball and free joints, which are no such sequence, are defined directly. Nothing here divides by a quantity that can vanish, branches on a
coordinate or computes an absolute value, so all functions continue to complex coordinates, where `kinematics.py` differentiates them.
"""

import numpy as np

GIMBAL = ("rx", "ry", "rz", "tx", "ty", "tz")


def skew(a):
    """Return the matrix of the cross product: skew(a) @ b = a x b."""
    x, y, z = a
    return np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])


def cross(a, b):
    """Return a x b of vectors (3,) or of the columns of (3, n), ten times as fast as NumPy's for few columns."""
    (a_x, a_y, a_z), (b_x, b_y, b_z) = a, b
    return np.array([a_y * b_z - a_z * b_y, a_z * b_x - a_x * b_z, a_x * b_y - a_y * b_x])


def turned(R, V):
    """Return [angular; linear] (6,) or (6, n) in axes rotated by R."""
    return np.concatenate([R @ V[:3], R @ V[3:]])


def rotation(axis, angle):
    """Return the rotation about a unit axis (Rodrigues)."""
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def quaternion_rotation(quaternion):
    """Return the rotation matrix of the quaternion (x, y, z, w), after normalisation."""
    x, y, z, w = quaternion / np.sqrt(np.sum(quaternion * quaternion))
    K = skew((x, y, z))
    return np.eye(3) + 2 * w * K + 2 * (K @ K)


def quaternion_product(a, b):
    """Return Hamilton's product of (x, y, z, w) and (x, y, z, w)."""
    vector = a[3] * b[:3] + b[3] * a[:3] + cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])


def axis_frame(normal):
    """Return the planar joint's in-plane axes, which are a convention that no law determines."""
    import sarrus.description.joints

    return np.asarray(sarrus.description.joints.axis_frame(normal))


def displacements(joint, q):
    """Return the joint as successive elementary displacements: a list of ("turn" | "slide", axis, amount)."""
    match type(joint).__name__:
        case "Fixed":
            return []
        case "Revolute":
            return [("turn", joint.axis, q[0])]
        case "Prismatic":
            return [("slide", joint.axis, q[0])]
        case "Helical":
            return [("turn", joint.axis, q[0]), ("slide", joint.axis, joint.pitch * q[0])]
        case "Cylindrical":
            return [("turn", joint.axis, q[0]), ("slide", joint.axis, q[1])]
        case "Universal":
            return [("turn", joint.axis1, q[0]), ("turn", joint.axis2, q[1])]
        case "Planar":
            ex, ey, normal = axis_frame(joint.normal).T
            return [("slide", ex, q[0]), ("slide", ey, q[1]), ("turn", normal, q[2])]
        case "Gimbal":
            # rotations about x, y, z, each where the last one left it, then the displacement along
            # the rotated axes (thesis 2.26-2.29)
            amounts = np.array(joint.fixed, dtype=q.dtype)
            amounts[gimbal_free(joint)] = q
            kinds = ["turn"] * 3 + ["slide"] * 3
            return list(zip(kinds, np.eye(3)[[0, 1, 2, 0, 1, 2]], amounts, strict=True))
        case kind:
            raise NotImplementedError(f"the oracle knows no joint {kind!r}")


def gimbal_free(joint):
    """Return the indices of a gimbal's free parameters among (rx, ry, rz, tx, ty, tz)."""
    return [GIMBAL.index(name) for name in joint.free]


def compose(steps):
    """Return the pose (R, p) after the steps, and [angular; linear] velocity there for unit rates (6, steps)."""
    R, p, pushes = np.eye(3), np.zeros(3), []
    for kind, axis, amount in steps:
        direction = R @ np.asarray(axis)
        pushes.append((kind, direction, p))
        if kind == "turn":
            R = R @ rotation(axis, amount)
        else:
            p = p + amount * direction
    columns = [[*u, *cross(u, p - point)] if kind == "turn" else [0, 0, 0, *u] for kind, u, point in pushes]
    return R, p, np.array(columns).T.reshape(6, len(steps))


def joint_motion(joint, q):
    """Return the pose of the successor's joint frame in the predecessor, and its velocity for v.

    Returns R (3, 3), p (3,) and J (6, nv): v -> [angular; linear] velocity of the successor's joint frame relative to the predecessor, at the
    successor's origin, in the predecessor's axes.
    """
    kind = type(joint).__name__
    if kind in ("Spherical", "Free"):
        R = quaternion_rotation(q[:4])
        J = np.kron(np.eye(2), R)  # the velocity is given in the successor's axes
        return (R, np.zeros(3), J[:, :3]) if kind == "Spherical" else (R, q[4:], J)

    R, p, J = compose(displacements(joint, q))
    if kind == "Helical":
        J = J[:, :1] + joint.pitch * J[:, 1:]
    elif kind == "Planar":  # (x, y) velocity in the successor's axes, not of the coordinates
        ex, ey, normal = axis_frame(joint.normal).T
        zero = np.zeros(3)
        J = np.array([[*zero, *(R @ ex)], [*zero, *(R @ ey)], [*normal, *zero]]).T
    elif kind == "Gimbal":
        J = J[:, gimbal_free(joint)]
    return R, p, J


def coordinate_rate(joint, q, v):
    """Return dq/dt for a generalised velocity; they are equal except for quaternions and the planar joint."""
    match type(joint).__name__:
        case "Spherical":
            return 0.5 * quaternion_product(q, np.array([*v, 0]))
        case "Free":
            orientation = 0.5 * quaternion_product(q[:4], np.array([*v[:3], 0]))
            return np.concatenate([orientation, quaternion_rotation(q[:4]) @ v[3:]])
        case "Planar":
            c, s = np.cos(q[2]), np.sin(q[2])
            return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])
        case _:
            return v


def integrate(joint, q, dv):
    """Return the flow of dq/dt = coordinate_rate(q, dv) after unit time, for constant dv."""
    match type(joint).__name__:
        case "Spherical":
            return quaternion_flow(q, dv)
        case "Free":  # a screw motion: the velocity stays the same for the body, not for the world
            twist = np.block([[skew(dv[:3]), dv[3:, None]], [np.zeros((1, 4))]])
            position = q[4:] + quaternion_rotation(q[:4]) @ exponential(twist)[:3, 3]
            return np.concatenate([quaternion_flow(q[:4], dv[:3]), position])
        case "Planar":
            vx, vy, w = dv
            x, y = exponential(np.array([[0, -w, vx], [w, 0, vy], [0, 0, 0]]))[:2, 2]
            return q + coordinate_rate(joint, q, np.array([x, y, w]))
        case _:
            return q + dv


def quaternion_flow(quaternion, angle):
    """Rotate by a rotation vector that is given in the rotated axes."""
    rates = [0.5 * quaternion_product(e, np.array([*angle, 0])) for e in np.eye(4)]
    return exponential(np.array(rates).T) @ quaternion


def exponential(A):
    """Return the exponential of a small matrix of moderate norm: Taylor's series of A / 16, squared four times."""
    term = E = np.eye(len(A))
    for k in range(1, 30):
        term = term @ A / (16 * k)
        E = E + term
    for _ in range(4):
        E = E @ E
    return E


def neutral(joint):
    """Return the neutral coordinates of the joint."""
    q = np.zeros(joint.nq)
    if type(joint).__name__ in ("Spherical", "Free"):
        q[3] = 1.0
    return q


def joint_coordinates(joint, R, p):
    """q (nq,) of the joint that has been displaced to R, p: `joint_motion` the other way round, for real numbers.

    Where the joint cannot get there, coordinates of a displacement near it.
    """
    match type(joint).__name__:
        case "Fixed":
            return np.zeros(0)
        case "Revolute":
            return np.array([turn(joint.axis, R)])
        case "Prismatic":
            return np.array([joint.axis @ p])
        case "Helical":  # the displacement tells how often it has turned
            angle = turn(joint.axis, R)
            turns = np.round((joint.axis @ p / joint.pitch - angle) / (2 * np.pi)) if joint.pitch else 0
            return np.array([angle + 2 * np.pi * turns])
        case "Cylindrical":
            return np.array([turn(joint.axis, R), joint.axis @ p])
        case "Universal":
            return np.array(two_turns(joint.axis1, np.eye(3), joint.axis2, R))
        case "Planar":
            ex, ey, normal = axis_frame(joint.normal).T
            return np.array([ex @ p, ey @ p, turn(normal, R)])
        case "Spherical":
            return quaternion(R)
        case "Free":
            return np.concatenate([quaternion(R), p])
        case "Gimbal":
            return gimbal_coordinates(joint, R, p)
        case kind:
            raise NotImplementedError(f"the oracle knows no joint {kind!r}")


def turn(axis, R):
    """Return the angle of the rotation about an axis that is nearest to R."""
    return np.arctan2(axis @ (unskew(R)), np.trace(R) - axis @ R @ axis)


def unskew(A):
    """Return twice the vector of a matrix' skew part: unskew(skew(a)) = 2 a."""
    return np.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])


def two_turns(first, between, second, R):
    """Return x, y of R = Rot(first, x) Rot(second, y), with the other axis fixed between them."""

    def angle(axis, start, end):
        return np.arctan2(axis @ cross(start, end), start @ end - (axis @ start) * (axis @ end))

    x = angle(first, between @ second, R @ second)
    return x, angle(second, R.T @ first, between.T @ first)


def gimbal_coordinates(joint, R, p):
    """Return a gimbal's coordinates; one or two free angles are those about their axes, for any fixed angles."""
    free = [k for k in gimbal_free(joint) if k < 3]
    E, angles = np.eye(3), np.zeros(3, R.dtype)

    def held(some):
        A = np.eye(3)
        for k in some:
            A = A @ rotation(E[k], joint.fixed[k])
        return A

    if len(free) == 3:
        angles = np.array(
            [
                np.arctan2(-R[1, 2], R[2, 2]),
                np.arctan2(R[0, 2], np.hypot(R[1, 2], R[2, 2])),
                np.arctan2(-R[0, 1], R[0, 0]),
            ]
        )
    elif len(free) == 2:
        i, j = free
        angles[free] = two_turns(E[i], held(range(i + 1, j)), E[j], held(range(i)).T @ R @ held(range(j + 1, 3)).T)
    elif len(free) == 1:
        (i,) = free
        angles[i] = turn(E[i], held(range(i)).T @ R @ held(range(i + 1, 3)).T)
    return np.concatenate([angles, R.T @ p])[gimbal_free(joint)]


def quaternion(R):
    """Return (x, y, z, w), w >= 0, of a rotation matrix."""
    squares = np.array([1 + 2 * R[k, k] - np.trace(R) for k in range(3)] + [1 + np.trace(R)])  # times four
    largest = np.argmax(squares)
    products = np.zeros((4, 4), R.dtype)  # 4 q q^T
    products[:3, :3], products[:3, 3], products[3, :3] = R + R.T, unskew(R), unskew(R)
    q = products[largest].copy()
    q[largest] = squares[largest]
    return q / np.sqrt(q @ q) * (1 if q[3] >= 0 else -1)
