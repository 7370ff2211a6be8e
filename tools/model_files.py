#!/usr/bin/env python3
"""Comparison of model files with MuJoCo and Pinocchio: mass matrix, bias forces, loops and limits of all files in folders.

    python tools/model_files.py FOLDER ...           # MJCF beside MuJoCo, URDF beside Pinocchio
    python tools/model_files.py --usd FOLDER ...     # MJCF, converted by mujoco-usd-converter to USD, beside MuJoCo

A file is "same" if all quantities agree within the tolerance. Of any other file the table lists what differs, and the warnings of sarrus. Files without a
body that moves, and files that the other program refuses, are counted only. Folders are, for example, those of the packages example-robot-data,
dm_control, robosuite, gymnasium, gymnasium-robotics and newton.
"""

import argparse
import contextlib
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

import sarrus
from sarrus.spatial import Rotation, Transform

FREE, BALL = 0, 1  # MuJoCo's mjtJoint


class Refused(Exception):
    """The other program does not read the file."""


def moving(robot):
    """Return the joints that are not fixed."""
    return [name for name in robot.joints if robot.joint(name).nv]


def lengths_of(robot, names):
    """Return {tendon: {joint: coefficient}} for tendons, which are joints of hinges and slides after those of MuJoCo."""
    couplers = [
        {joint: c[0] for joint, _, c in x.terms}
        for x in robot.description.constraints
        if x.name.startswith("length of ")
    ]
    return {name: {k: -c for k, c in next(x for x in couplers if name in x).items() if k != name} for name in names}


def states(n, count=3):
    """Return velocities, and displacements from the file's configuration, of a few states."""
    rng = np.random.default_rng(0)
    return [(0.3 * (k > 0) * rng.normal(size=n), rng.normal(size=n)) for k in range(count)]


def theirs(path, tag):
    """Return the other program's model of a file."""
    try:
        if tag == "robot":
            import pinocchio

            return pinocchio.buildModelFromUrdf(str(path))
        import mujoco

        return mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError) as error:
        raise Refused(str(error)) from None


def beside_mujoco(model, robot, by_name):
    """Yield (quantity, error) of a robot and a compiled model; `by_name` is False if the joints are in MuJoCo's order."""
    import mujoco

    data, joints = mujoco.MjData(model), moving(robot)
    specs = {spec.name: spec for spec in robot.description.joints}
    names = [model.joint(j).name or None for j in range(model.njnt)]
    if by_name:  # a floating body has a root joint
        roots = {specs[name].child: name for name in joints if robot.joint(name).kind == "Free"}
        names = [roots.get(model.body(model.jnt_bodyid[j]).name, names[j]) for j in range(model.njnt)]
    elif len(names) <= len(joints):
        names = list(joints[: len(names)])
    joints, tendons = joints[: len(names)], joints[len(names) :]
    if missing := [str(name) for name in names if name not in joints] or len(joints) - len(names):
        yield f"joints {missing}", np.inf
        return
    lengths = lengths_of(robot, tendons)
    terms = np.array(
        [getattr(model, f"tendon_{name}") for name in ("stiffness", "damping", "armature", "frictionloss")]
    )
    frictions = terms[3, terms.any(axis=0)] if tendons else []
    G = np.vstack(
        [np.eye(model.nv), np.zeros((len(tendons), model.nv))]
    )  # all velocities, from those of MuJoCo's joints
    for tendon, length in lengths.items():
        for name, c in length.items():
            G[robot.joint(tendon).v_slice, robot.joint(name).v_slice] = c
    low, high = (np.full(model.nv, sign * np.inf) for sign in (-1, 1))
    for j, name in enumerate(names):
        joint, offset = robot.joint(name), model.qpos0[model.jnt_qposadr[j]] if by_name else 0.0
        if joint.nv == 1 and model.jnt_limited[j]:
            low[joint.v_slice], high[joint.v_slice] = model.jnt_range[j] - offset
    found = [robot.joint(name) for name in joints]
    limits = [np.concatenate([np.broadcast_to(j.type.limits[k], j.nv) if j.nv == 1 and j.type.limits is not None else np.full(j.nv, s * np.inf)
                              for j in found]) for k, s in ((0, -1), (1, 1))]  # fmt: skip
    yield (
        "limits",
        max(np.abs(np.nan_to_num(a - b, nan=0.0)).max(initial=0.0) for a, b in ((limits[0], low), (limits[1], high))),
    )
    for dq, dv in states(model.nv):
        data.qpos[:] = model.qpos0
        mujoco.mj_integratePos(model, data.qpos, dq, 1.0)
        data.qvel[:] = dv
        mujoco.mj_forward(model, data)
        q, T, turning = np.zeros(robot.nq), np.zeros((model.nv, model.nv)), np.zeros(model.nv)  # qacc = T a + turning
        for j, name in enumerate(names):
            joint, at, vat = robot.joint(name), model.jnt_qposadr[j], model.jnt_dofadr[j]
            offset = model.qpos0[at] if by_name else 0.0
            if model.jnt_type[j] == FREE:
                w, x, y, z = data.qpos[at + 3 : at + 7]
                R = Rotation.from_quaternion((x, y, z, w)).matrix
                placed = specs[name].at_parent.inverse() @ Transform(R, data.qpos[at : at + 3]) @ specs[name].at_child
                q[joint.q_slice] = [*Rotation(placed.rotation).quaternion, *placed.translation]
                T[vat : vat + 6, joint.v_slice] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                turning[vat : vat + 3] = np.cross(R @ data.qvel[vat + 3 : vat + 6], data.qvel[vat : vat + 3])
            elif model.jnt_type[j] == BALL:
                q[joint.q_slice] = data.qpos[[at + 1, at + 2, at + 3, at]]
                T[vat : vat + 3, joint.v_slice] = np.eye(3)
            else:
                q[joint.q_slice], T[vat, joint.v_slice] = data.qpos[at] - offset, 1.0
        v = G @ np.linalg.solve(T, data.qvel)
        for tendon, length in lengths.items():
            q[robot.joint(tendon).q_slice] = sum(c * q[robot.joint(name).q_slice] for name, c in length.items())
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        yield "M", relative(G.T @ robot.mass_matrix(q) @ G, T.T @ M @ T)
        theirs = data.qfrc_bias + M @ turning - data.qfrc_passive + model.dof_frictionloss * np.sign(data.qvel)
        theirs = T.T @ theirs
        for tendon, friction in zip(tendons, frictions, strict=True):  # a constraint in MuJoCo
            row = G[robot.joint(tendon).v_slice][0]
            theirs += row * friction * np.sign(row @ v[: model.nv])
        yield "bias", relative(G.T @ robot.bias_forces(q, v), theirs, 1e-6 * np.abs(M).max())
        if not dq.any() and (robot.nc or data.ne):
            J = np.zeros((data.nefc, model.nv))
            if mujoco.mj_isSparse(model):
                mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
            else:
                J = data.efc_J.reshape(J.shape)
            # where a loop is open, the rows of the two programs differ by as much
            is_open = 3.0 * np.abs(data.efc_pos[: data.ne]).max(initial=0.0)
            yield "loops", max(0.0, angle(robot.constraint_jacobian(q) @ G, J[: data.ne] @ T) - is_open)


def relative(a, b, least=0.0):
    """Return the largest difference, relative to the largest entry, or to `least` if this is larger."""
    return np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), least, 1e-12)


def angle(J, K):
    """Return the sine of the largest angle between the row spaces of two matrices; 1 if their dimensions differ."""
    bases = []
    for A in (J, K):
        size = np.linalg.norm(A, axis=1, keepdims=True)
        _, s, Vt = (
            np.linalg.svd(A / np.where(size > 1e-12, size, 1.0), full_matrices=False) if A.size else (0, np.zeros(0), A)
        )
        bases.append(Vt[: (s > 1e-8).sum()])
    if len(bases[0]) != len(bases[1]):
        return 1.0
    return float(np.linalg.norm(bases[0] - bases[0] @ bases[1].T @ bases[1], 2)) if len(bases[0]) else 0.0


def beside_pinocchio(model, robot):
    """Yield (quantity, error) of a robot and Pinocchio's model."""
    import pinocchio as pin

    from sarrus import interop

    data, names = model.createData(), list(model.names)[1:]
    if set(names) != set(moving(robot)):
        yield f"joints {sorted(set(names) ^ set(moving(robot)))[:6]}", np.inf
        return
    for dq, _ in states(model.nv):
        their_q = pin.integrate(model, pin.neutral(model), dq)
        q, v = interop.from_pinocchio_state(robot, model, their_q, dq + 0.5)
        M, h = pin.crba(model, data, their_q), pin.nonLinearEffects(model, data, their_q, dq + 0.5)
        M = np.triu(M) + np.triu(M, 1).T
        order = np.concatenate(
            [
                np.arange(model.nv)[model.idx_vs[k] : model.idx_vs[k] + model.nvs[k]]
                for k in map(model.getJointId, moving(robot))
            ]
        )
        passive = np.concatenate([robot.joint(j).type.damping * v[robot.joint(j).v_slice]
                                  + robot.joint(j).type.friction * np.sign(v[robot.joint(j).v_slice]) for j in moving(robot)])  # fmt: skip
        yield "M", relative(robot.mass_matrix(q), M[np.ix_(order, order)])
        yield "bias", relative(robot.bias_forces(q, v) - passive, h[order], 1e-6 * np.abs(M).max())
    for name in moving(robot):
        joint, k = robot.joint(name), model.getJointId(name)
        if joint.nv == 1 and model.nqs[k] == 1:
            ends = [x[model.idx_qs[k]] for x in (model.lowerPositionLimit, model.upperPositionLimit)]
            ours = [-np.inf, np.inf] if joint.type.limits is None else np.ravel(joint.type.limits)
            yield "limits", np.abs(np.nan_to_num(np.array(ends) - ours, nan=0.0)).max()


def converted(path):
    """Return the mechanism of an MJCF after conversion to USD."""
    import mujoco_usd_converter

    with tempfile.TemporaryDirectory() as folder:
        try:
            mujoco_usd_converter.Converter().convert(str(path), folder)
        except Exception as error:  # of another program
            raise Refused(str(error)) from None
        return sarrus.load(next(Path(folder).glob("*.usda")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--usd", action="store_true", help="convert MJCF files to USD first")
    arguments = parser.parse_args()
    tolerance, count = 1e-6 if arguments.usd else 1e-9, Counter()
    warnings.simplefilter("ignore")
    files = [
        (f, folder) for folder in arguments.folders for f in sorted(folder.rglob("*")) if f.suffix in (".xml", ".urdf")
    ]
    for path, folder in files:
        with contextlib.suppress(ET.ParseError):
            tag = ET.parse(path).getroot().tag
            if tag == "mujoco" or (tag == "robot" and not arguments.usd):
                verdict, text = compared(path, folder, tag, arguments.usd, tolerance)
                count[verdict] += 1
                if text:
                    print(f"{verdict:8} {path}\n   {text}", flush=True)
    print(dict(count))


def compared(path, folder, tag, usd, tolerance):
    """Return the verdict on a file, and what differs."""
    robot, fault, errors = None, "", dict[str, float]()
    try:
        robot = converted(path) if usd else sarrus.load(path, package_dirs=[folder])
    except (sarrus.ModelError, OSError) as error:
        fault = " ".join(str(error).split())[:300]
    except Refused as error:
        return "theirs", str(error)[:300]
    try:
        model = theirs(path, tag)
    except Refused as error:
        return ("neither" if fault else "theirs"), " ".join(str(error).split())[:200]
    if not model.nv:
        return "still", ""
    if robot is None:
        return "refused", fault
    for quantity, error in beside_pinocchio(model, robot) if tag == "robot" else beside_mujoco(model, robot, usd):
        errors[quantity] = max(errors.get(quantity, 0.0), float(error))
    if different := {k: x for k, x in errors.items() if not x <= tolerance}:
        return "differs", "\n   ".join([str(different), *(warning[:240] for warning in robot.warnings)])
    return "same", ""


if __name__ == "__main__":
    main()
