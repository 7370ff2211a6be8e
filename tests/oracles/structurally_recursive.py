"""The thesis' structurally recursive mass matrix (van der Merwe 1995, 5.2.5, after Lilly), for trees.

It works in link frames with 6x6 matrices, so it also checks `Dense.mass_matrix`, which knows neither.
"""

import numpy as np

from .joint_motion import joint_motion, skew
from .kinematics import Tree


def structurally_recursive_mass_matrix(description, q, *, closing=()):
    """Bodies are added one by one to the end of what is there: H_i = J_i^T I_i J_i + H*_{i-1} (5.46).

    H* is the last H, bordered with zeros (5.43): here all matrices have their final size from the start.
    """
    tree = Tree(description, closing=closing)
    q = np.asarray(q, float)
    H = np.diag(np.concatenate([np.zeros(0), *(spec.joint.armature for spec in tree.joints.values())]))
    J = {"ground": np.zeros((6, tree.nv))}
    for spec, sign in tree.outward:
        near, far = (spec.parent, spec.child) if sign > 0 else (spec.child, spec.parent)
        X, phi = link_transform(spec, sign, q[tree.q_slice[spec.name]])
        J[far] = X @ J[near]
        J[far][:, tree.v_slice[spec.name]] = phi  # (5.6), (5.38)
        H += J[far].T @ spatial_inertia(tree.bodies[tree.index[far]].inertia) @ J[far]  # (5.46)
    return H


def link_transform(spec, sign, q):
    """X (6, 6) and phi (6, nv), in the frame of the link after the joint.

    X takes the motion of the link before the joint there (6.40); phi is the joint's motion space.
    """
    R, p, motion = joint_motion(spec.joint, q)
    T_joint = homogeneous(R, p)
    at_parent = homogeneous(spec.at_parent.rotation, spec.at_parent.translation)
    at_child = homogeneous(spec.at_child.rotation, spec.at_child.translation)
    T = at_parent @ T_joint @ np.linalg.inv(at_child)
    to_link = at_child @ np.linalg.inv(T_joint)  # predecessor's joint frame -> link after the joint
    if sign < 0:  # the joint is crossed backward: the link after it is the joint's parent
        T, to_link = np.linalg.inv(T), at_parent
    A, b = T[:3, :3].T, T[:3, 3]
    X = np.block([[A, np.zeros((3, 3))], [A @ skew(b).T, A]])

    # the joint's motion is given at the successor's joint frame's origin o; move it to the link's
    o = to_link[:3, :3] @ p + to_link[:3, 3]
    angular, linear = to_link[:3, :3] @ motion[:3], to_link[:3, :3] @ motion[3:]
    return X, sign * np.concatenate([angular, linear + skew(o) @ angular])


def homogeneous(R, p):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def spatial_inertia(inertia):
    """(4.1): about the link's origin, in its axes."""
    m, s = inertia.mass, skew(inertia.com)
    return np.block([[np.asarray(inertia.about_com) - m * s @ s, m * s], [m * s.T, m * np.eye(3)]])
