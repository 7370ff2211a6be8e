"""Published models next to the checkout, with results of other engines, and the comparison with them."""

import dataclasses
import json
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose

import sarrus
from sarrus.description.joints import PASSIVE

MODELS = Path(__file__).parents[2] / "shared" / "models"


def references(folder):
    """Return the files with reference numbers in a folder of models; an empty list without the folder."""
    return sorted((MODELS / folder).glob("**/*reference.json"))


def read(reference):
    """Return the reference numbers, and the file of the model."""
    numbers = json.loads(reference.read_text())
    return numbers, reference.parent / Path(numbers["file"]).name


def on_tree(builder, tree):
    """Return the mechanism with these joints in its tree, without damping, friction and springs, which the references omit."""
    d = builder.build().description
    joints = [
        dataclasses.replace(
            j,
            joint=dataclasses.replace(j.joint, **dict.fromkeys(PASSIVE, 0.0)),
            tree=j.name in tree and j.joint.nv > 0,
            loop=j.name not in tree and j.loop | (j.joint.nv > 0),
        )
        for j in d.joints
    ]
    return sarrus.Mechanism(dataclasses.replace(d, joints=tuple(joints)))


def check(robot, one, order, roots):
    """Compare one configuration of a reference, in which `order` names the joints of its velocities; `roots` are joints that float.

    Returns the rank of J, the difference of accelerations, and its tolerance. The reference's ball joints have velocities in axes of the parent, its
    floating links in those of the world; those of sarrus are in the body's own axes.
    """
    q, T, T_dot_v, columns = robot.neutral(), [], [], []
    for name in dict.fromkeys(order):
        joint, value = robot.joint(roots.get(name, name)), one["q"][name]
        columns += list(range(robot.nv))[joint.v_slice]
        T.append(np.eye(joint.type.nv))
        T_dot_v.append(np.zeros(joint.type.nv))
        if isinstance(value, dict):
            R = np.array(value["rotation"])
            T[-1] = np.kron(np.eye(joint.type.nv // 3), R)
            value = [*sarrus.Rotation.from_matrix(nearest_rotation(R)).quaternion, *value.get("position", ())]
            if joint.type.nv == 6:
                w, v = np.split(np.array(one["v"][name]), 2)
                T_dot_v[-1][3:] = np.cross(w, v)
        q[joint.q_slice] = value
    T, T_dot_v = block_diagonal(T), np.concatenate(T_dot_v)

    def flat(x):
        return np.concatenate([np.atleast_1d(x[name]) for name in dict.fromkeys(order)])

    to_ours, v_theirs = np.linalg.inv(T), flat(one["v"])
    v = np.zeros(robot.nv)
    v[columns] = to_ours @ v_theirs
    tau = np.zeros(robot.nv)
    tau[columns] = T.T @ flat(one["tau"])

    tolerance = one["tolerance"]
    assert sorted(columns) == list(range(robot.nv))
    for kind in ("links", "frames"):
        for name, place in one.get(kind, {}).items():
            if name not in robot.frames:  # of a joint: that of its child
                name = next(j.child for j in robot.description.joints if j.name == name)
            pose = robot.pose(q, name)
            assert_allclose(pose[:3, 3], place["position"], rtol=0, atol=10 * tolerance["position"], err_msg=name)
            assert_allclose(pose[:3, :3], place["rotation"], rtol=0, atol=1e-11, err_msg=name)
    assert np.abs(robot.constraint_residual(q)).max(initial=0.0) < 1e-11
    s = np.linalg.svd(robot.constraint_jacobian(q), compute_uv=False)
    rank = int((s > 1e-9 * s.max(initial=0.0)).sum())
    assert robot.nv - rank == one["dof"]
    M = to_ours.T @ robot.mass_matrix(q)[np.ix_(columns, columns)] @ to_ours
    theirs = np.array(one["mass_matrix"])
    assert_allclose(M, theirs, rtol=0, atol=10 * tolerance["mass_matrix_relative"] * np.abs(theirs).max())
    h = to_ours.T @ robot.bias_forces(q, v)[columns] - M @ T_dot_v
    # as large as the terms that cancel in it
    scale = max(np.abs(flat(one["bias"])).max(), (np.abs(M) @ np.abs(v_theirs)).max())
    assert_allclose(h, flat(one["bias"]), rtol=0, atol=1e-10 * scale)
    a = T @ robot.forward_dynamics(q, v, tau)[columns] + T_dot_v
    return rank, np.abs(a - flat(one["acceleration"])).max(), tolerance["acceleration"]


def nearest_rotation(R):
    U, _, V = np.linalg.svd(R)
    return U @ V


def block_diagonal(blocks):
    n = [len(block) for block in blocks]
    whole = np.zeros((sum(n), sum(n)))
    for k, block in enumerate(blocks):
        at = sum(n[:k])
        whole[at : at + n[k], at : at + n[k]] = block
    return whole
