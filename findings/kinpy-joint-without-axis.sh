#!/bin/sh
# kinpy 0.6.1 turns a URDF joint without an <axis> about z. The format's default is the x axis of the joint's frame, and ikpy 4.2.1, scikit-robot 0.4.7
# and yourdfpy 0.0.60 use it. No message names the difference: forward kinematics simply has another result. The file is plain URDF, with one hinge
# whose <axis> is omitted and a point at (0, 1, 0) in the child; it also holds for a sliding joint.
#
# Output seen:
#   revolute: kinpy (-0.2955, 0.9553, 0.0000), ikpy (0.0000, 0.9553, 0.2955), scikit-robot (0.0000, 0.9553, 0.2955), yourdfpy (0.0000, 0.9553, 0.2955)
#   prismatic: kinpy (0.0000, 1.0000, 0.3000), ikpy (0.3000, 1.0000, 0.0000), scikit-robot (0.3000, 1.0000, 0.0000), yourdfpy (0.3000, 1.0000, 0.0000)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet kinpy==0.6.1 ikpy==4.2.1 scikit-robot==0.4.7 yourdfpy==0.0.60 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import kinpy
import numpy as np
import skrobot
import yourdfpy
from ikpy.chain import Chain

LINK = """<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
ROBOT = (
    """<robot name="arm">"""
    + "".join(map(LINK.format, ("base", "arm", "tip")))
    + """<joint name="move" type="{}"><parent link="base"/><child link="arm"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="end" type="fixed"><parent link="arm"/><child link="tip"/><origin xyz="0 1 0"/></joint></robot>"""
)
Q = 0.3
expected = {"revolute": (0.0, np.cos(Q), np.sin(Q)), "prismatic": (Q, 1.0, 0.0)}
about_z = {"revolute": (-np.sin(Q), np.cos(Q), 0.0), "prismatic": (0.0, 1.0, Q)}
for kind in expected:
    with open("arm.urdf", "w") as file:
        file.write(ROBOT.format(kind))
    chain = kinpy.build_chain_from_urdf(ROBOT.format(kind))
    seen = {"kinpy": chain.forward_kinematics({"move": Q})["tip"].pos}
    chain = Chain.from_urdf_file("arm.urdf", base_elements=["base"])
    seen["ikpy"] = chain.forward_kinematics([0.0, Q, 0.0])[:3, 3]
    robot = skrobot.models.urdf.RobotModelFromURDF(urdf_file="arm.urdf")
    robot.joint_list[0].joint_angle(Q)
    seen["scikit-robot"] = next(link for link in robot.link_list if link.name == "tip").worldpos()
    robot = yourdfpy.URDF.load("arm.urdf", load_meshes=False)
    robot.update_cfg([Q])
    seen["yourdfpy"] = robot.get_transform("tip")[:3, 3]
    print(f"{kind}:", ", ".join(f"{name} ({', '.join(f'{x + 0.0:.4f}' for x in np.round(at, 12))})" for name, at in seen.items()))
    for name, at in seen.items():
        assert np.allclose(at, about_z[kind] if name == "kinpy" else expected[kind], atol=1e-6), (kind, name, at)
PYTHON
