#!/bin/sh
# mujoco-usd-converter 0.8.0 loses small rotations of bodies: it rounds the cosine of the half angle to single precision, and takes the angle from it. A body
# that MJCF tilts by 3e-4 rad is not tilted at all in the stage, and one tilted by 4e-3 rad stands 0.8 % off. dm_control's humanoid is 5e-5 m off at its feet.
#
# Output seen:
#   mujoco 3.16.0, mujoco-usd-converter 0.8.0:
#   tilt in the MJCF [rad]  in MuJoCo   in the stage
#   0.0003                  0.0003      0
#   0.001                   0.001       0.000976563
#   0.004                   0.004       0.00396682
#   0.1                     0.1         0.0999996
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet mujoco-usd-converter==0.8.0 mujoco==3.16.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - 2>/dev/null <<'PYTHON'
import math
from importlib.metadata import version
from pathlib import Path

import mujoco
import mujoco_usd_converter
from pxr import Usd, UsdGeom

print(f"mujoco {mujoco.__version__}, mujoco-usd-converter {version('mujoco-usd-converter')}:")
print("tilt in the MJCF [rad]  in MuJoCo   in the stage")
found = {}
for angle in (3e-4, 1e-3, 4e-3, 0.1):
    text = f'<mujoco model="tilted"><worldbody><body name="body" quat="{math.cos(angle / 2)} {math.sin(angle / 2)} 0 0"><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    Path("tilted.xml").write_text(text)
    quat = mujoco.MjModel.from_xml_string(text).body("body").quat
    mujoco_usd_converter.Converter().convert("tilted.xml", f"stage {angle}")
    stage = Usd.Stage.Open(str(next(Path(f"stage {angle}").glob("*.usda"))))
    (prim,) = (prim for prim in stage.Traverse() if prim.GetName() == "body")
    matrix = UsdGeom.Xformable(prim).GetLocalTransformation()
    found[angle] = math.atan2(matrix[1][2], matrix[1][1])
    print(f"{angle:<23g} {2 * math.asin(quat[1]):<11.6g} {found[angle]:.6g}")
    assert abs(2 * math.asin(quat[1]) - angle) < 1e-12
assert found[3e-4] == 0.0 and 5e-3 < abs(found[4e-3] / 4e-3 - 1) < 1e-2, "the converter changed"
PYTHON
