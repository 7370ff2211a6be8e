#!/bin/sh
# SymPy 1.14.0: springs, dampers and muscles along a WrappingPathway push where they should pull. All pathways of sympy.physics.mechanics take an expansile
# force, and LinearSpring, LinearDamper and the musculotendons rely on it; LinearPathway and ObstacleSetPathway push the ends apart, as documented, but
# WrappingPathway pulls them together. So a stretched spring over a sphere or cylinder drives its ends apart, and a damper adds power. On a cylinder it is right
# again for a negative angle: the path's length is that of the short way, while its force has the direction of the positive way round whatever the angle is.
#
# Behaviour: a mass on a circle of R = 0.1 m, at the angle q from the other end of the path, which is fixed. Spring (1 N/m, no rest length) and damper (1 N s/m)
# act along the path. The generalised force of KanesMethod stands beside -dE/dq of the spring's energy E = L^2 / 2, the power of the damper beside -(dL/dt)^2.
# Output seen:
#   straight             q =  1: spring -0.00841, -dE/dq -0.00841; damper at 1 rad/s -0.00770 W, -(dL/dt)^2 -0.00770 W
#   over a point         q =  1: spring  0.01800, -dE/dq  0.01800; damper at 1 rad/s -0.00230 W, -(dL/dt)^2 -0.00230 W
#   around a sphere      q =  1: spring  0.01000, -dE/dq -0.01000; damper at 1 rad/s  0.01000 W, -(dL/dt)^2 -0.01000 W
#   around a cylinder    q =  1: spring  0.01000, -dE/dq -0.01000; damper at 1 rad/s  0.01000 W, -(dL/dt)^2 -0.01000 W
#   around a sphere      q = -1: spring -0.01000, -dE/dq  0.01000; damper at 1 rad/s  0.01000 W, -(dL/dt)^2 -0.01000 W
#   around a cylinder    q = -1: spring  0.01000, -dE/dq  0.01000; damper at 1 rad/s -0.01000 W, -(dL/dt)^2 -0.01000 W
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet sympy==1.14.0
"$folder/venv/bin/python" - <<'PYTHON'
import sympy as sm
import sympy.physics.mechanics as me

q, u = me.dynamicsymbols("q u")
N, W = me.ReferenceFrame("N"), me.ReferenceFrame("W")
W.orient_axis(N, q, N.z)
W.set_ang_vel(N, u * N.z)
O, A, B, C = (me.Point(name) for name in "OABC")
R = sm.Symbol("R", positive=True)
A.set_pos(O, R * N.x)
B.set_pos(O, R * W.x)
C.set_pos(O, -R * N.x)
for point in O, A, C:
    point.set_vel(N, 0)
B.set_vel(N, R * u * W.y)
PATHS = {
    "straight": me.LinearPathway(A, B),
    "over a point": me.ObstacleSetPathway(A, C, B),
    "around a sphere": me.WrappingPathway(A, B, me.WrappingSphere(R, O)),
    "around a cylinder": me.WrappingPathway(A, B, me.WrappingCylinder(R, O, N.z)),
}
DOCUMENTED = {("straight", 1), ("over a point", 1), ("around a cylinder", -1)}


def forces(actuator, angle, rate):
    """Return the generalised force of an actuator on the angle, after Kane."""
    kane = me.KanesMethod(N, q_ind=[q], u_ind=[u], kd_eqs=[q.diff() - u])
    kane.kanes_equations([me.Particle("mass", B, 1)], actuator.to_loads())
    return float(kane.forcing[0].subs({q.diff(): u}).subs({u: rate}).subs({q: angle, R: 0.1}))


for angle in 1, -1:
    for name, path in PATHS.items():
        if angle < 0 and "around" not in name:
            continue
        L, slope = (float(e.subs({q: angle, R: 0.1})) for e in (path.length, path.length.diff(q)))
        spring = forces(me.LinearSpring(1, path), angle, 0)
        damper = forces(me.LinearDamper(1, path), angle, 1)
        print(f"{name:20} q = {angle:2}: spring {spring:8.5f}, -dE/dq {-L * slope:8.5f}; damper at 1 rad/s {damper:8.5f} W, -(dL/dt)^2 {-(slope**2):8.5f} W")
        sign = 1 if (name, angle) in DOCUMENTED else -1
        assert abs(spring + sign * L * slope) < 1e-12 and abs(damper + sign * slope**2) < 1e-12, "the sign changed"
        if "around" in name:
            assert abs(L - 0.1) < 1e-12 and abs(slope - 0.1 * angle) < 1e-12
PYTHON
