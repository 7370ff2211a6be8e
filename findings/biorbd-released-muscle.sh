#!/bin/sh
# biorbd 1.12.4: a muscle that wraps over a half cylinder becomes shorter than the straight line between its ends as soon as it leaves the cylinder. On the
# cylinder its length is that of the closed form to rounding. Once it is free, the path runs through the two points that divide the straight line into thirds,
# and the middle third counts as the arc between them all the same: the cylinder's radius times their angle about its axis. So the length of this muscle jumps
# by 55 of 587 mm, and the state of its fibre with it. The Jacobian is that of the straight line: it is no longer the derivative of the length.
#
# Behaviour: a hinge, a muscle from (0.05, 0.3) to the arm's (0.05, -0.3), and a cylinder of 0.08 m about the hinge. The true path has two tangents and an arc
# up to 0.202 rad, and is straight from there on.
# Output seen:
#   q = -0.50: length 0.64302, true 0.64302, straight 0.60609; derivative -0.08000, Jacobian -0.08000
#   q =  0.00: length 0.60302, true 0.60302, straight 0.60000; derivative -0.08000, Jacobian -0.08000
#   q =  0.20: length 0.58702, true 0.58702, straight 0.58702; derivative -0.08000, Jacobian -0.08000
#   q =  0.21: length 0.53122, true 0.58621, straight 0.58621; derivative -0.20700, Jacobian -0.08117
#   q =  0.50: length 0.47467, true 0.55661, straight 0.55661; derivative -0.18606, Jacobian -0.12267
#   q =  1.00: length 0.38337, true 0.47861, straight 0.47861; derivative -0.18444, Jacobian -0.18771
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet biorbd==1.12.4 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import biorbd
import numpy as np

R, ORIGIN, INSERTION = 0.08, np.array([0.05, 0.3]), np.array([0.05, -0.3])
SEGMENT = "segment {}\n{}\nmass 1\ninertia\n1 0 0\n0 1 0\n0 0 1\nendsegment\n"
with open("arm.bioMod", "w") as file:
    file.write("version 4\n" + SEGMENT.format("ground", "") + SEGMENT.format("arm", "parent ground\nrotations z"))
    file.write("musclegroup group\noriginparent ground\ninsertionparent arm\nendmusclegroup\n")
    file.write("muscle muscle\ntype hill\nstatetype degroote\nmusclegroup group\noriginposition 0.05 0.3 0\ninsertionposition 0.05 -0.3 0\n")
    file.write("optimallength 0.3\nmaximalforce 100\ntendonslacklength 0.2\npennationangle 0\nmaxvelocity 10\nendmuscle\n")
    file.write("wrapping cylinder\ntype halfcylinder\nparent ground\nmuscle muscle\nmusclegroup group\nrt 0 0 0 xyz 0 0 0\nradius 0.08\nlength 1\nendwrapping\n")
model = biorbd.Model("arm.bioMod")


def length(q):
    """Return the length of muscle and tendon in biorbd."""
    model.updateMuscles(np.array([q]), True)
    return model.muscle(0).musculoTendonLength(model, biorbd.GeneralizedCoordinates(np.array([q])), True)


def shortest(q):
    """Return the length of the shortest path on the right side of the cylinder, that of the straight line, the arc, and the angle at the middle third."""
    end = np.array([[np.cos(q), -np.sin(q)], [np.sin(q), np.cos(q)]]) @ INSERTION
    radii = np.linalg.norm([ORIGIN, end], axis=1)
    arc = np.arctan2(ORIGIN[1], ORIGIN[0]) - np.arctan2(end[1], end[0]) - np.arccos(R / radii).sum()
    straight = np.linalg.norm(end - ORIGIN)
    thirds = np.array([2 * ORIGIN + end, ORIGIN + 2 * end]) / 3
    angle = np.arccos(thirds[0] @ thirds[1] / np.prod(np.linalg.norm(thirds, axis=1)))
    return (np.sqrt(radii**2 - R**2).sum() + R * arc if arc > 0 else straight), straight, arc, angle


h = 1e-6
for q in -0.5, 0.0, 0.2, 0.21, 0.5, 1.0:
    L, (true, straight, arc, angle) = length(q), shortest(q)
    slope, wanted = (length(q + h) - length(q - h)) / (2 * h), (shortest(q + h)[0] - shortest(q - h)[0]) / (2 * h)
    J = float(model.musclesLengthJacobian(np.array([q])).to_array().squeeze())
    print(f"q = {q:5.2f}: length {L:.5f}, true {true:.5f}, straight {straight:.5f}; derivative {slope:.5f}, Jacobian {J:.5f}")
    assert abs(J - wanted) < 1e-7, "the Jacobian is right"
    if arc > 0:
        assert abs(L - true) < 1e-12 and abs(slope - wanted) < 1e-7, "the length on the cylinder is right"
    else:
        assert L < straight - 0.05 and abs(L - 2 / 3 * straight - R * angle) < 1e-12, "the length of the free muscle changed"
PYTHON
