"""MJCF files of other projects, compared with MuJoCo's results, if the folder with both is beside the checkout."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import interop
from sarrus.spatial import Rotation

MODELS = Path(__file__).parents[4] / "shared" / "models"
REFERENCES = sorted(p for folder in ("menagerie", "mujoco") for p in (MODELS / folder).rglob("*.reference.json"))
pytestmark = pytest.mark.skipif(not REFERENCES, reason="the models of others are not beside this checkout")


def without(robot, *terms):
    """Return the mechanism without these terms of its joints."""
    joints = []
    for spec in robot.description.joints:
        has = {term: 0.0 for term in terms if getattr(spec.joint, term).any()}
        joints.append(replace(spec, joint=replace(spec.joint, **has)) if has else spec)
    return sarrus.Mechanism(replace(robot.description, joints=tuple(joints)))


def velocity_map(robot, q, v):
    """Return T and its rate: qvel = T v; free joints have world axes, and the linear part first."""
    T, rate = np.eye(robot.nv), np.zeros((robot.nv, robot.nv))
    for joint in map(robot.joint, robot.joints):
        if joint.kind == "Free":
            R, at = Rotation.from_quaternion(q[joint.q_slice][:4]).matrix, joint.v_slice.start
            T[at : at + 6, at : at + 6] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
            x, y, z = v[at : at + 3]
            rate[at : at + 3, at + 3 : at + 6] = R @ np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return T, rate


def stacked(reference, what):
    return np.concatenate([np.atleast_1d(what[name]) for name, _, _ in reference["joints"]])


def loaded(path):
    # meshes are not there; this file has the masses that MuJoCo takes from them
    name = {"2f85.xml": "2f85.explicit.xml"}.get(path.name.removesuffix(".reference.json"))
    return sarrus.load(path.with_name(name or path.name.removesuffix(".reference.json")))


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.name.removesuffix(".reference.json"))
def test_agrees_with_mujoco(path):
    reference = json.loads(path.read_text())
    robot = loaded(path)
    assert (robot.nq, robot.nv, robot.nc) == (reference["nq"], reference["nv"], reference["rows"])
    named = [spec.name for spec in robot.description.joints if not spec.loop and spec.joint.nv]
    assert all(
        theirs in (ours, f"#{i}")
        for i, (ours, (theirs, _, _)) in enumerate(zip(named, reference["joints"], strict=True))
    )
    assert_allclose(
        interop.to_mujoco_state(robot, robot.configuration("qpos0")),
        stacked(reference, reference["qpos0"]),
        rtol=0,
        atol=1e-12,
    )
    assert_allclose(robot.mass, reference["total_mass"], rtol=1e-12)
    smooth, free = without(robot, "friction"), without(robot, "friction", "damping", "stiffness", "rest")
    for case in reference["configurations"]:
        within = case["tolerance"]
        qpos, qvel, force = (stacked(reference, case[key]) for key in ("q", "v", "tau"))
        q, v = interop.from_mujoco_state(robot, qpos, qvel)
        T, rate = velocity_map(robot, q, v)
        back = np.linalg.inv(T)
        sites = {f"{name}_site" if name in robot.bodies else name: pose for name, pose in case["sites"].items()}
        for frame, pose in {**case["bodies"], **sites}.items():
            if frame in robot.frames:  # some of theirs have no name
                assert_allclose(robot.pose(q, frame)[:3, 3], pose["position"], rtol=0, atol=within["position"])
                assert_allclose(robot.pose(q, frame)[:3, :3], pose["rotation"], rtol=0, atol=1e-11)
        M, theirs = robot.mass_matrix(q), np.array(case["mass_matrix"])
        ours = back.T @ M @ back
        assert_allclose(ours, theirs, rtol=0, atol=within["mass_matrix_relative"] * abs(theirs).max())
        bias = back.T @ (free.bias_forces(q, v) - M @ back @ rate @ v)
        scale = max(abs(stacked(reference, case["bias"])).max(), 1.0)
        assert_allclose(bias, stacked(reference, case["bias"]), rtol=0, atol=1e-11 * scale)
        assert_allclose(robot.kinetic_energy(q, v), case["kinetic_energy"], rtol=1e-11)
        assert abs(robot.constraint_residual(q)).max(initial=0.0) < 1e-12
        mobility = robot.mobility(q)
        assert (mobility.rank, robot.nv - mobility.rank) == (case["rank"], case["dof"])
        for mechanism, key in ((free, "acceleration"), (smooth, "acceleration_with_passive")):
            if mechanism is smooth and any("drag" in warning for warning in robot.warnings):
                continue  # theirs has it
            a = mechanism.forward_dynamics(q, v, T.T @ force)
            wanted = stacked(reference, case[key])
            assert_allclose(T @ a + rate @ v, wanted, rtol=0, atol=within[key] * max(abs(wanted).max(), 1.0))
