#!/bin/sh
# MotrixSim 0.10.1 gives every capsule of a MuJoCo file too much inertia: 6.3 times across the axis for a link of ten diameters, 1.8 times about it. Mass and
# centre are right, and so are its boxes, cylinders and ellipsoids, so the model stands and falls as it should. It only swings too slowly, without a warning.
# About the axis the moment is always 0.9 m r², which is that of the whole mass as a cylinder plus that of the whole mass as a ball.
#
# Behaviour: a rod that hangs from its end, let go at 0.3 rad, takes 1.6 times the time for a swing that the same file takes in mujoco 4.0.0.
# Output seen (times a true one; a pendulum's period in seconds):
#   capsule   0.02 x 0.2  across 6.317  along 1.823
#   capsule   0.2 x 0.2   across 3.085  along 1.957
#   cylinder  0.02 x 0.2  across 1.000  along 1.000
#   period of the rod: mujoco 1.062, motrixsim 1.668
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet motrixsim==0.10.1 mujoco==4.0.0 numpy==2.4.6
"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import motrixsim
import mujoco
import numpy as np

H = 1e-3


def true_moments(kind, r, half):
    """Return the moments per mass across and along the axis of a solid cylinder, or of one with half a ball at each end."""
    ends = 4 / 3 * r / (2 * half + 4 / 3 * r) if kind == "capsule" else 0.0
    across = (1 - ends) * (r * r / 4 + half * half / 3) + ends * (0.4 * r * r + half * half + 0.75 * r * half)
    return np.array([across, (1 - ends) * r * r / 2 + ends * 0.4 * r * r])


def period(times, velocity):
    """Return twice the time from the release to the first turn of a swing."""
    turns = [t for t, before, after in zip(times[1:], velocity, velocity[1:]) if before < -1e-6 and after >= 0]
    return 2 * turns[0]


seen = {}
for kind, r, half in ("capsule", 0.02, 0.2), ("capsule", 0.2, 0.2), ("cylinder", 0.02, 0.2):
    text = f'<mujoco><worldbody><body name="link"><freejoint/><geom type="{kind}" size="{r} {half}" mass="1"/></body></worldbody></mujoco>'
    model, wanted = motrixsim.load_mjcf_str(text), true_moments(kind, r, half)
    found = model.get_link("link").get_inertia_override(motrixsim.SceneData(model))
    assert np.allclose(sorted(mujoco.MjModel.from_xml_string(text).body("link").inertia), sorted([*wanted, wanted[0]]), rtol=1e-9)
    seen[kind, r] = np.array([found[0], found[2]]) / wanted
    print(f"{kind:9} {f'{r:g} x {half:g}':11} across {seen[kind, r][0]:.3f}  along {seen[kind, r][1]:.3f}")

text = f"""<mujoco><option timestep="{H}"/><worldbody><body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.02" mass="1"/></body></worldbody></mujoco>"""
model = mujoco.MjModel.from_xml_string(text)
data = mujoco.MjData(model)
data.qpos[0] = 0.3
other = motrixsim.load_mjcf_str(text)
state = motrixsim.SceneData(other)
state.set_dof_pos(np.array([0.3], np.float32), other)
times, velocity = [H * (k + 1) for k in range(1500)], ([], [])
for _ in times:
    mujoco.mj_step(model, data)
    other.step(state)
    velocity[0].append(float(data.qvel[0]))
    velocity[1].append(float(state.dof_vel[0]))
periods = [period(times, v) for v in velocity]
print("period of the rod: mujoco {:.3f}, motrixsim {:.3f}".format(*periods))
assert np.allclose(seen["cylinder", 0.02], 1.0, atol=1e-5)
assert np.allclose(seen["capsule", 0.02], [6.3169, 1.8228], atol=1e-3), "the inertia changed"
assert np.allclose(seen["capsule", 0.2], [3.0854, 1.9565], atol=1e-3), "the inertia changed"
assert 1.5 < periods[1] / periods[0] < 1.65, "the swing changed"
PYTHON
