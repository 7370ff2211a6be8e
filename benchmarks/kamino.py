"""Kamino's closed chains DR Legs and DR TestMech, whose files are not part of the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import sarrus
from sarrus.shapes import Box, Plane

FLOATS = 1e-6  # the file's numbers have 32 bits: axes that should be parallel are parallel within this error


def numbers() -> dict[str, Any] | None:
    """Return the contents of the file, None if it does not exist."""
    folders = [parent / "shared" / "references" for parent in Path(__file__).resolve().parents]
    file = next((folder / "kamino.json" for folder in folders if (folder / "kamino.json").is_file()), None)
    return None if file is None else json.loads(file.read_text())


def _turned(quaternion: list[float]) -> sarrus.Rotation:
    """Return the rotation of a quaternion (w, x, y, z), normalised because its numbers have 32 bits."""
    q = np.roll(quaternion, -1)
    return sarrus.Rotation.from_quaternion(q / np.linalg.norm(q))


def _inertia(body: dict[str, Any]) -> sarrus.Inertia:
    R = _turned(body["principal_axes"]).matrix
    return sarrus.Inertia(body["mass"], (0, 0, 0), R @ np.diag(body["principal_inertia"]) @ R.T)


def legs(numbers: dict[str, Any], friction: float = 0.7) -> tuple[sarrus.Mechanism, sarrus.Mechanism]:
    """Return two models of DR Legs as in newton's example, with the soles on z = 0.

    Loop joints have no armature and no damping, because other formats cannot represent them. The first model has the file's numbers. In the second
    one, constraint rows are removed that are redundant up to rounding.
    """
    data, b = numbers["dr_legs"], sarrus.Builder("DR Legs")
    drives = data["drives"]["newton_example"]
    for name, body in data["bodies"].items():
        b.add_body(name, _inertia(body))
    b.add_joint("float", sarrus.Free(), "ground", "pelvis")
    for name, joint in data["joints"].items():
        R = _turned(joint["rotation_in_both"])
        passive = {} if joint["closes_loop"] else {
            "armature": drives["armature_of_all_36_joints"], "damping": drives["damping_of_all_36_joints"]}  # fmt: skip
        ends = {end: sarrus.Transform(R, joint[end]) for end in ("at_parent", "at_child")}
        b.add_joint(
            name, sarrus.Revolute("x", **passive), joint["parent"], joint["child"], **ends,
            actuated=joint["driven"], loop=joint["closes_loop"],
        )  # fmt: skip
    for name, box in data["collision_boxes"].items():
        at = sarrus.Transform.from_rpy(0, 0, np.radians(box["rotation_about_z_deg"]), box["centre"])
        b.add_shape(name, Box(tuple(2.0 * x for x in box["half"])), at, friction=friction)
    b.add_shape("ground", Plane(), friction=friction)
    height = data["facts"]["height_of_pelvis_frame_with_soles_on_z_0"]
    b.set_home(
        {"float": (0, 0, 0, 1, 0, 0, height)} | {n: 0.0 for n, j in data["joints"].items() if not j["closes_loop"]}
    )
    robot = b.build()
    return robot, sarrus.without_redundant_constraints(robot, tolerance=FLOATS)


def testmech(numbers: dict[str, Any]) -> sarrus.Mechanism:
    """Return DR TestMech, which falls freely: a joint of each kind, four loops closed by ball joints, one degree of freedom.

    Its translational joint is a chain of three slides. The bodies between the slides have a mass of 1 mg, because some engines require mass.
    """
    data, b = numbers["dr_testmech"], sarrus.Builder("DR TestMech")
    bodies, joints = data["bodies"], data["joints"]
    for name, body in bodies.items():
        b.add_body(name, _inertia(body))
    kinds = {"revolute": sarrus.Revolute("x"), "prismatic": sarrus.Prismatic("x"), "fixed": sarrus.Fixed(),
             "cylindrical": sarrus.Cylindrical("x"), "universal": sarrus.Universal("x", "y"), "spherical": sarrus.Spherical()}  # fmt: skip
    balls = ("link1_1", "link2_1", "link3_2", "cartlink_ee")
    for name, joint in joints.items():
        R = _turned(joint["rotation_in_both"])
        parent, child = joint["parent"] or "ground", joint["child"]
        at_parent, at_child = (sarrus.Transform(R, joint[end]) for end in ("at_parent", "at_child"))
        # the joint is reversed: the body on the slider is connected by a ball joint that closes the loop
        if name == "link1_2":
            parent, child, at_parent, at_child = child, parent, at_child, at_parent
        if joint["type"] == "cartesian":
            for axis, before, behind in (
                ("x", parent, "slide_x"),
                ("y", "slide_x", "slide_y"),
                ("z", "slide_y", child),
            ):
                if behind != child:
                    b.add_body(behind, sarrus.Inertia.sphere(1e-6, 1e-3))
                at = at_parent if axis == "x" else sarrus.Transform()
                end = at_child if axis == "z" else sarrus.Transform()
                b.add_joint(f"{name}_{axis}", sarrus.Prismatic(axis), before, behind, at_parent=at, at_child=end)
        else:
            b.add_joint(
                name, kinds[joint["type"]], parent, child, at_parent=at_parent, at_child=at_child, loop=name in balls
            )
    robot = b.build()
    # corrects the positions of ball joints, which have 32 bits, such that the loops close
    where = robot.project_configuration(robot.neutral())
    states = robot.joint_states(where).q
    b.set_home({name: states[name] for name in robot.joints})
    return b.build()
