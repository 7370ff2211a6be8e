#!/bin/sh
# Exudyn 1.13.6: the tangent operator of the exponential map of SE(3), which Lie group integrators and geometrically exact beams need, is not the derivative of
# Exudyn's own ExpSE3, and its inverse is not its inverse. The blocks of rotations (TExpSO3) are right, ExpSE3 and LogSE3 too. Two terms of the block that
# couples rotation and translation differ from the closed form: a square of a skew matrix is taken element by element, and a cotangent lacks its factor, the
# angle.
#
# Behaviour: the right matrix is the series of the adjoint, which agrees with central differences of a matrix exponential (scipy 1.17.1). TExpSE3 is right only
# where the translation is normal to the axis. The error of TExpSE3Inv grows fast as the angle falls, and is gone below 0.01 rad, where a series takes over.
# Output seen (largest error of an entry, for translations of 0.6 m; the entries are of the size of 1):
#   angle [rad]  TExpSO3  TExpSE3  TExpSE3Inv  TExpSE3 TExpSE3Inv - 1
#   0.009        1e-16    6e-09    1e-09       5e-09
#   0.011        1e-16    1e-08    9e+03       9e+03
#   0.1          1e-17    9e-06    1e+02       1e+02
#   0.7          1e-16    3e-03    6e-01       6e-01
#   2            1e-16    6e-02    2e-01       1e-01
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet exudyn==1.13.6 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
from exudyn.lieGroupBasics import ExpSE3, LogSE3, TExpSE3, TExpSE3Inv, TExpSO3
from scipy.linalg import expm


def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def matrix(x):
    """Return the 4x4 matrix of a screw (translation first)."""
    return np.block([[skew(x[3:]), x[:3, None]], [np.zeros((1, 4))]])


def screw(X):
    return np.array([X[0, 3], X[1, 3], X[2, 3], X[2, 1], X[0, 2], X[1, 0]])


def by_differences(x, h=1e-5):
    """Return the derivative of the exponential, moved back to the unit element."""
    back = np.linalg.inv(expm(matrix(x)))
    return np.array([screw(back @ (expm(matrix(x + d)) - expm(matrix(x - d)))) / (2 * h) for d in h * np.eye(6)]).T


def by_series(x):
    """Return the sum of (-ad x)^k / (k + 1)!."""
    ad = np.block([[skew(x[3:]), skew(x[:3])], [np.zeros((3, 3)), skew(x[3:])]])
    term, total = np.eye(6), np.eye(6)
    for k in range(1, 40):
        term = -term @ ad / (k + 1)
        total += term
    return total


def error(A, B):
    return np.abs(A - B).max()


print("angle [rad]  TExpSO3  TExpSE3  TExpSE3Inv  TExpSE3 TExpSE3Inv - 1")
seen = {}
for angle in 0.009, 0.011, 0.1, 0.7, 2.0:
    x = np.concatenate([[0.4, -0.2, 0.4], angle * np.array([2.0, -1.0, 2.0]) / 3.0])
    true = by_series(x)
    assert error(by_differences(x), true) < 1e-9
    assert error(ExpSE3(x), expm(matrix(x))) < 1e-14 and error(screw(LogSE3(ExpSE3(x))), x) < 1e-13
    inverse = np.linalg.inv(true)
    seen[angle] = error(TExpSO3(x[3:]), true[3:, 3:]), error(TExpSE3(x), true), error(TExpSE3Inv(x), inverse), error(TExpSE3(x) @ TExpSE3Inv(x), np.eye(6))
    print(f"{angle:<12g} {'{:<8.0e} {:<8.0e} {:<11.0e} {:.0e}'.format(*seen[angle])}")
assert all(rotation < 1e-12 for rotation, *_ in seen.values()), "the rotations are right"
assert seen[2.0][1] > 1e-3 and seen[0.7][1] > 1e-5, "the tangent operator changed"
assert seen[0.011][2] > 100.0 and seen[0.7][2] > 0.1 and seen[0.009][2] < 1e-5, "the inverse changed"
PYTHON
