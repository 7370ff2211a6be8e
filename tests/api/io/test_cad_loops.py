"""Loops that CAD exporters describe beside a tree: frames with certain names, and loop_closures.yaml."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import ModelError
from tests.api.io.test_writing import save

UP, ALONG = (0.0, 0.0, 0.5), (1.0, 0.0, 0.0)
# of a four-bar that is cut at its last hinge: turning about y, where a frame's z-axis is turned to by -90 degrees about x
HALF = np.sqrt(0.5)


def parallelogram(closing="", kind="urdf"):
    """Return two cranks and a coupler on one of them; `closing` names the frames of the cut, if any."""
    if kind == "urdf":
        links = "".join(
            f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            for name in ("left", "coupler", "right")
        )
        joints = "".join(
            f'<joint name="{name}" type="continuous"><parent link="{a}"/><child link="{b}"/><origin xyz="{x} 0 {z}"/><axis xyz="0 1 0"/></joint>'
            for name, a, b, x, z in (
                ("motor", "base", "left", 0, 0),
                ("knee", "left", "coupler", 0, 0.5),
                ("foot", "base", "right", 1, 0),
            )
        )
        frames = "".join(
            f'<link name="{closing}_{k}"/><joint name="{closing}_{k}_frame" type="fixed"><parent link="{a}"/><child link="{closing}_{k}"/>'
            f'<origin xyz="{x} 0 {z}" rpy="{-np.pi / 2!r} 0 0"/></joint>'
            for k, a, x, z in ((1, "coupler", 1, 0), (2, "right", 0, 0.5))
            if closing
        )
        return f'<robot name="r"><link name="base"/>{links}{joints}{frames}</robot>'
    site = '<site name="{}_{}" pos="{}" quat="{} {} 0 0"/>'
    one, two = (site.format(closing, k, p, HALF, -HALF) if closing else "" for k, p in ((1, "1 0 0"), (2, "0 0 .5")))
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    return f"""<mujoco><worldbody><body name="left">{inertial}<joint name="motor" axis="0 1 0"/>
        <body name="coupler" pos="0 0 .5">{inertial}<joint name="knee" axis="0 1 0"/>{one}</body></body>
        <body name="right" pos="1 0 0">{inertial}<joint name="foot" axis="0 1 0"/>{two}</body></worldbody></mujoco>"""


def check_closes(robot, kind="Revolute", name="closing_pin"):
    """Check that one degree of freedom remains, and that the two points of the cut coincide along it."""
    assert robot.loop_joints == (name,) and robot.joint(name).kind == kind
    q = robot.assemble(fixed={"motor": 0.3})
    assert_allclose(q[robot.joint("foot").q_slice], 0.3, atol=1e-9)
    assert_allclose(q[robot.joint("knee").q_slice], -0.3, atol=1e-9)
    ends = [robot.pose(q, body) @ [*p, 1.0] for body, p in (("coupler", ALONG), ("right", UP))]
    assert_allclose(*ends, atol=1e-9)


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_frames_of_a_closing_mate(kind):
    robot = sarrus.loads(parallelogram("closing_pin", kind))
    check_closes(robot)
    assert any("'closing_pin_1' and 'closing_pin_2' close a loop as Revolute('z')" in text for text in robot.warnings)
    assert robot.mobility(robot.assemble(fixed={"motor": 0.3})).degrees_of_freedom == 1
    check_closes(sarrus.loads(parallelogram("closing_ball_pin", kind)), "Spherical", "closing_ball_pin")
    assert sarrus.loads(parallelogram("closing_fixed_pin", kind)).joint("closing_fixed_pin").kind == "Fixed"
    assert sarrus.loads(parallelogram("", kind)).nc == sarrus.loads(parallelogram("close_pin", kind)).nc == 0


def test_frames_of_a_closing_mate_in_sdf(tmp_path):
    """Frames of an SDF, such as those that sarrus writes for sites."""
    b = sarrus.loads(parallelogram("", "mjcf")).to_builder()
    for name, body, p in (("closing_pin_1", "coupler", ALONG), ("closing_pin_2", "right", UP)):
        b.add_frame(name, body, sarrus.Transform.from_rpy(-np.pi / 2, 0, 0, p))
    robot = b.build()
    assert robot.nc == 0
    save(robot, tmp_path / "r.sdf")
    check_closes(sarrus.load(tmp_path / "r.sdf"))


def test_what_is_closed_already_stays():
    text = parallelogram("closing_pin", "mjcf")
    connected = text.replace(
        "</mujoco>", '<equality><connect site1="closing_pin_1" site2="closing_pin_2"/></equality></mujoco>'
    )
    robot = sarrus.loads(connected)
    assert len(robot.loop_joints) == 1 and robot.joint(robot.loop_joints[0]).kind == "Spherical"
    by_hand = sarrus.loads(
        parallelogram("closing_pin"), loops={"closed_loop": [["closing_pin_1", "closing_pin_2"]], "type": ["3d"]}
    )
    assert len(by_hand.loop_joints) == 1 and by_hand.joint(by_hand.loop_joints[0]).kind == "Spherical"
    lonely = text.replace("closing_pin_2", "closing_other_2")
    assert sarrus.loads(lonely).nc == 0


CLOSURES = {
    "closures": [{"link_a": "coupler", "link_b": "right", "point": [1.0, 0.0, 0.5], "axis": [0.0, 2.0, 0.0]}],
    "dependent": ["knee", "foot"], "independent": ["motor"],
}  # fmt: skip


def test_loop_closures_of_a_file_beside(tmp_path):
    """Point and axis are in the root's frame, at q = 0."""
    robot = sarrus.loads(parallelogram(), loops=CLOSURES)
    check_closes(robot, name="coupler right")
    assert robot.actuated == ("motor",)
    (tmp_path / "r.urdf").write_text(parallelogram())
    (tmp_path / "loop_closures.yaml").write_text(json.dumps(CLOSURES))
    check_closes(sarrus.load(tmp_path / "r.urdf", loops="loop_closures.yaml"), name="coupler right")
    assert any(
        "loop_closures.yaml in its folder seems to contain loops" in text
        for text in sarrus.load(tmp_path / "r.urdf").warnings
    )
    some = sarrus.loads(parallelogram(), loops={**CLOSURES, "independent": None})
    assert any("dependent is not read" in text for text in some.warnings)


BAD = {
    "no mapping": ([1], "closures: expected mappings with link_a"), "no axis": ([{"link_a": "left"}], "closures: expected mappings"),
    "axis": ([{**CLOSURES["closures"][0], "axis": [0, 0, 0]}], "axis is zero"),
    "point": ([{**CLOSURES["closures"][0], "point": [0, 0]}], "point: expected three numbers"),
    "link": ([{**CLOSURES["closures"][0], "link_a": "couplr"}], "is not a link.*coupler"),
}  # fmt: skip


@pytest.mark.parametrize(("closures", "said"), BAD.values(), ids=BAD)
def test_loop_closures_that_are_none(closures, said):
    with pytest.raises(ModelError, match=said):
        sarrus.loads(parallelogram(), loops={"closures": closures})
