#!/bin/sh
# mujoco-usd-converter 0.8.0 gives mass to geoms that have none. A geom with mass="0", such as a decoration, becomes a collider with physics:mass = 0, which
# UsdPhysics reads as "not stated": it takes the default density, 1000 kg/m³. dm_control's acrobot gets an upper arm of 1.98 kg instead of 1 kg.
#
# Output seen:
#   mujoco 3.16.0, mujoco-usd-converter 0.8.0:  1 kg in MuJoCo, 17 kg by UsdPhysics; physics:mass of the colliders: [1.0, 0.0]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet mujoco-usd-converter==0.8.0 mujoco==3.16.0 numpy==2.4.6
cd "$folder"
venv/bin/python -W ignore - 2>/dev/null <<'PYTHON'
from importlib.metadata import version
from pathlib import Path

import mujoco
import mujoco_usd_converter
from pxr import Gf, Usd, UsdGeom, UsdPhysics

text = """<mujoco model="decorated"><worldbody><body name="body"><freejoint/><geom type="box" size="0.5 0.5 0.5" mass="1"/>
<geom type="box" size="0.1 0.1 0.2" pos="2 0 0" mass="0"/></body></worldbody></mujoco>"""
Path("decorated.xml").write_text(text)
mass = mujoco.MjModel.from_xml_string(text).body("body").mass[0]
mujoco_usd_converter.Converter().convert("decorated.xml", "stage")
stage = Usd.Stage.Open(str(next(Path("stage").glob("*.usda"))))


def box(prim, *_):
    """Return volume and unit inertia of a collider, which UsdPhysics requires of a physics engine."""
    size = [UsdGeom.Cube(prim).GetSizeAttr().Get() * x for x in UsdGeom.XformCommonAPI(prim).GetXformVectors(Usd.TimeCode.Default())[2]]
    info = UsdPhysics.RigidBodyAPI.MassInformation()
    info.volume = size[0] * size[1] * size[2]
    info.inertia = Gf.Matrix3f(info.volume)
    info.localPos = Gf.Vec3f(UsdGeom.Xformable(prim).GetLocalTransformation().ExtractTranslation())
    info.localRot = Gf.Quatf(1)
    return info


(prim,) = (prim for prim in stage.Traverse() if prim.GetName() == "body")
found, *_ = UsdPhysics.RigidBodyAPI(prim).ComputeMassProperties(box)
masses = [UsdPhysics.MassAPI(x).GetMassAttr().Get() for x in Usd.PrimRange(prim) if x.HasAPI(UsdPhysics.CollisionAPI)]
programs = ", ".join(f"{name} {version(name)}" for name in ("mujoco", "mujoco-usd-converter"))
print(f"{programs}:  {mass:g} kg in MuJoCo, {found:g} kg by UsdPhysics; physics:mass of the colliders: {masses}")
assert mass == 1.0 and abs(found - 17.0) < 1e-3, "the converter changed"
PYTHON
