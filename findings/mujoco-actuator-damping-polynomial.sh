#!/bin/sh
# MuJoCo 4.0.0: the polynomial damping of an actuator acts on the joint's velocity, while its linear damping acts on the actuator's. MuJoCo 4 reads several
# numbers of damping="c0 c1 c2" as c0 u + c1 u|u| + c2 u^3. An actuator with gear g moves at u = g v, and its force acts on the joint with the factor g. So the
# terms grow with g^2, g^3 and g^4 if the damper sits at the motor. MuJoCo multiplies each of them by g^2: of the terms, only the linear one is that of a motor's
# damper, and a quadratic drag of a fan behind a gear of 10 is too small by the factor 10.
#
# Output seen: passive force of the joint at v = 0.5 rad/s for gears of 1, 3 and 10
#   mujoco 4.0.0
#     damping="1"       -0.5     -4.5    -50     at the motor:  -0.5     -4.5    -50
#     damping="0 1"     -0.25    -2.25   -25     at the motor:  -0.25    -6.75   -250
#     damping="0 0 1"   -0.125   -1.125  -12.5   at the motor:  -0.125   -10.125 -1250
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet mujoco==4.0.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import mujoco

V, GEARS = 0.5, (1, 3, 10)


def passive_force(damping, gear):
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="axle"/><geom size="0.1"/></body></worldbody>
    <actuator><motor joint="axle" gear="{gear}" damping="{damping}"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[0] = V
    mujoco.mj_forward(model, data)
    return float(data.qfrc_passive[0] + data.qfrc_actuator[0])


print("mujoco", mujoco.__version__)
for power, damping in enumerate(("1", "0 1", "0 0 1"), 1):
    seen = [passive_force(damping, gear) for gear in GEARS]
    motor = [-gear * (gear * V) ** power for gear in GEARS]
    columns = [" ".join(f"{x:<7g}" for x in row) for row in (seen, motor)]
    print(f'  damping="{damping}"'.ljust(21), columns[0], " at the motor: ", columns[1])
    assert all(abs(x + gear**2 * V**power) < 1e-12 for x, gear in zip(seen, GEARS)), "the gear acts otherwise"
PYTHON
