"""docs/spacedyn.md: each call of its table is compared with the manual's equations (tests/oracles/spacedyn.py) or a closed form."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from tests.oracles import spacedyn
from tests.oracles.spacedyn import SpaceDyn, c1, c2, c3, rodrigues, tilde

PAGE = (Path(__file__).parents[2] / "docs" / "spacedyn.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (.+?) \| `(.+?)`.* \|$", PAGE, re.MULTILINE))
# to rounding of sums of a few dozen terms, none above 1e3
EXACT = {"rtol": 1e-10, "atol": 1e-10}

# SpaceDyn's functions, by the names of its files: of version 1 (1999 to 2006), and what version 2 has besides
VERSION_1 = """
    aw calc_aa calc_acc calc_gh calc_gj calc_hh calc_je calc_jr calc_jre calc_jt calc_jte calc_pos calc_vel cross cx cy cz dc2eul dc2qtn dc2rpy
    eul2dc f_dyn f_dyn_nb f_dyn_nb2 f_dyn_rk f_dyn_rk2 f_dyn_tr f_kin_e f_kin_j i_kine int_eu int_eu2 j_num r_ne rpy2dc tilde
"""
VERSION_2 = "calc_gj11 f_dyn_f0 init_SV int_sr int_sr2 qtn2dc tr2diff w2dQtn"


@pytest.fixture(scope="module")
def names():
    """Return the names that the page's calls use, and the same state in SpaceDyn's variables."""
    named = {}
    exec(re.search(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1], named)
    rng = np.random.default_rng(4)
    roll, pitch, yaw = 0.3, -0.5, 0.8
    A0 = (c3(yaw) @ c2(pitch) @ c1(roll)).T
    R0, v0, w0, vd0, wd0 = rng.normal(size=(5, 3))
    phi, rate, rate2, torque = 0.5 * rng.normal(size=(4, 4))
    Fe, Te = rng.normal(size=(2, 3))
    manual = SpaceDyn(**named["model"])
    at_e1 = manual.end(R0, A0, phi, 0)[1].T @ np.transpose([Te, Fe])
    half = np.sqrt(1 + np.trace(A0)) / 2
    quaternion = [*np.array([A0[2, 1] - A0[1, 2], A0[0, 2] - A0[2, 0], A0[1, 0] - A0[0, 1]]) / (4 * half), half]
    angles = rng.uniform(0.1, 1.0, size=3)
    there = np.eye(4)
    there[:3, 3], there[:3, :3] = manual.end(R0, A0, phi + np.array([0, 0, 0, 0.2]), 1)
    return named | {
        "q": np.concatenate([quaternion, R0, phi]),
        "v": np.concatenate([A0.T @ w0, A0.T @ v0, rate]),
        "a": np.concatenate([A0.T @ wd0, A0.T @ (vd0 - np.cross(w0, v0)), rate2]),
        "tau": np.concatenate([np.zeros(6), torque]),
        "motors": [sarrus.control.FeedforwardEffort(f"joint{k + 1}", x) for k, x in enumerate(torque)],
        "at_e1": at_e1.T.ravel(),
        "A0": A0, "C0": A0.T, "w0": w0, "h": 1e-4, "x": v0, "roll": roll, "pitch": pitch, "yaw": yaw, "angle": 0.7,
        "a1": angles[0], "a2": angles[1], "a3": angles[2], "there": there,
        "A1": rodrigues(np.array([0.02, -0.01, 0.03])) @ A0, "A2": A0,
        "is": SimpleNamespace(
            manual=manual, place=(R0, A0, phi), state=(R0, A0, v0, w0, phi, rate), rates=(vd0, wd0, rate2), torque=torque,
            end_forces=np.array([[0] * 6, [0] * 6, [*Fe, *Te], [0] * 6]), quaternion=quaternion, angles=angles,
        ),
    }  # fmt: skip


def call(names, row):
    """Return the result of the call in a row."""
    return eval(ROWS[row], dict(names))


def angular_first(x):
    """Swap [linear; angular] along the first axis; other axes are unchanged."""
    return np.concatenate([x[3:6], x[:3], x[6:]])


def test_every_function_has_a_row():
    functions = {name for row in {*ROWS} - {*VARIABLES} for name in re.findall(r"`(\w+)`", row)}
    assert functions == {*VERSION_1.split(), *VERSION_2.split()}
    assert {row for row in ROWS if "`" not in row} == {"3.18, c", "3.38, 3.39"}
    assert {*ROWS} == {*KINEMATICS, *DYNAMICS, *SIMULATIONS, *ROTATIONS, *VARIABLES}, "each is tested"


# ---- kinematics ------------------------------------------------------------------------------------------------------


def moving(s, *which):
    links = s.manual.motion(*s.state, *s.rates)
    return [np.concatenate([link[k] for k in which]) for link in links]


def of_links(s, which):
    _, RR, *_ = s.manual.places(*s.place)
    return [s.manual.jacobians(*s.place, RR[i], i)[which] for i in range(4)]


def of_end(s):
    """Return [J_R; J_T] of the first end-point."""
    J_T, J_R = s.manual.jacobians(*s.place, s.manual.end(*s.place, 0)[0], 2)
    return np.concatenate([J_R, J_T])


def joints(s):
    AA, _, places, _ = s.manual.places(*s.place)
    return [[*np.linalg.norm(A[:, 2:], axis=0), *p] for A, p in zip(AA, places, strict=True)]


def end_pose(s):
    pose = np.eye(4)
    pose[:3, 3], pose[:3, :3] = s.manual.end(*s.place, 0)
    return pose


def generalized(s):
    """Return J_m - J_b H_b^-1 H_bm with linear rows first, rotated."""
    H, J = s.manual.hh(*s.place), of_end(s)
    J_b = np.eye(6)
    J_b[:3, 3:] = -tilde(s.manual.end(*s.place, 0)[0] - s.place[0])
    return J - angular_first(J_b @ np.linalg.solve(H[:6, :6], H[:6, 6:]))


KINEMATICS = {
    "`calc_aa`": lambda s: s.manual.places(*s.place)[0],
    "`calc_pos`": lambda s: s.manual.places(*s.place)[1],
    "`calc_vel`": lambda s: moving(s, 1, 0),
    "`calc_acc`": lambda s: moving(s, 3, 2),
    "`calc_jt`": lambda s: of_links(s, 0),
    "`calc_jr`": lambda s: of_links(s, 1),
    "`calc_jte`": lambda s: of_end(s)[3:],
    "`calc_jre`": lambda s: of_end(s)[:3],
    "`calc_je`": of_end,
    "`calc_gj`, `calc_gj11`": generalized,
    "`f_kin_e`": end_pose,
    "`j_num`": lambda s: s.manual.way(2),
    "`f_kin_j`": None,
    "`i_kine`": None,
}


@pytest.mark.parametrize("row", [row for row, expected in KINEMATICS.items() if expected])
def test_kinematics(names, row):
    assert_allclose(call(names, row), KINEMATICS[row](names["is"]), **EXACT)


def test_joints(names):
    """Positions of the joints; the z-axis of a joint's frame is its axis, before and after the joint moves."""
    poses = np.array(call(names, "`f_kin_j`"))
    _, _, places, axes = names["is"].manual.places(*names["is"].place)
    assert_allclose(poses[:, :3, 3], places, **EXACT)
    assert_allclose(poses[:, :3, 2], axes, **EXACT)


def test_inverse_kinematics(names):
    """The base does not move; the second arm has rotated by the 0.2 rad for which its end-point was computed."""
    found = call(names, "`i_kine`")
    assert_allclose(found[:7], names["q"][:7], **EXACT)
    assert_allclose(found[10] - names["q"][10], 0.2, rtol=1e-9)


# ---- dynamics --------------------------------------------------------------------------------------------------------


def newton_euler(s, **forces):
    F0, on_base = s.manual.r_ne(*s.state, *s.rates, **forces)
    return angular_first(F0), angular_first(on_base)


def in_body_axes(s, wrench):
    A0 = s.place[1]
    return np.concatenate([A0.T @ wrench[:3], A0.T @ wrench[3:6], wrench[6:]])


def biases(s):
    none = np.zeros(3)
    return s.manual.r_ne(*s.state, none, none, np.zeros(4))[0]


def accelerations(s):
    vd0, wd0, qdd = np.split(s.manual.f_dyn(*s.state, s.torque, s.end_forces), [3, 6])
    _, A0, v0, w0, _, _ = s.state
    return np.concatenate([A0.T @ wd0, A0.T @ (vd0 - np.cross(w0, v0)), qdd])


def reduced_inertia(s):
    H = s.manual.hh(*s.place)
    return H[6:, 6:] - H[:6, 6:].T @ np.linalg.solve(H[:6, :6], H[:6, 6:])


DYNAMICS = {
    "`calc_hh`": lambda s: angular_first(angular_first(s.manual.hh(*s.place)[:6, :6]).T).T,
    "`calc_gh`": reduced_inertia,
    "`r_ne`": lambda s: in_body_axes(s, newton_euler(s, Fe=s.end_forces)[0]),
    "3.18, c": lambda s: angular_first(biases(s)[:6]),
    "3.38, 3.39": lambda s: newton_euler(s)[1],
    "`f_dyn`, `f_dyn_f0`": accelerations,
}


@pytest.mark.parametrize("row", DYNAMICS)
def test_dynamics(names, row):
    assert_allclose(call(names, row), DYNAMICS[row](names["is"]), **EXACT)


def test_other_parts_of_the_equations_of_motion(names):
    """3.18 to 3.23, the quantities that the page lists after its calls."""
    s = names["is"]
    form = sarrus.floating.equations_of_motion(names["robot"], names["q"], names["v"], expressed_in="world_aligned")
    H = s.manual.hh(*s.place)
    assert_allclose(form.coupling_inertia, angular_first(H[:6, 6:]), **EXACT)
    assert_allclose(form.joint_inertia, H[6:, 6:], **EXACT)
    assert_allclose(form.joint_bias, biases(s)[6:], **EXACT)


# ---- variables -------------------------------------------------------------------------------------------------------


def pose_of(R, p):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, p
    return pose


def inertial_forces(s):
    """Compute 3.30, 3.31."""
    AA, *_ = s.manual.places(*s.place)
    answer = []
    for A, I, m, (_, w, vd, wd) in zip(
        AA, s.manual.inertia, s.manual.m, s.manual.motion(*s.state, *s.rates), strict=True
    ):
        I = A @ I @ A.T
        answer.append([*(I @ wd + np.cross(w, I @ w)), *(m * vd)])
    return answer


def joint_forces(s):
    """Compute 3.32 to 3.35 in the link's axes at the joint; the frame of a sliding joint moves with the link."""
    AA, RR, joints, _ = s.manual.places(*s.place)
    forces = inertial_forces(s)
    answer = []
    for i in range(s.manual.n):
        at = joints[i] if s.manual.J_type[i] == "R" else RR[i] + AA[i] @ s.manual.cc[:, i, i]
        beyond = [k for k in range(s.manual.n) if i in s.manual.way(k)]
        moment = sum(np.array(forces[k][:3]) + np.cross(RR[k] - at, forces[k][3:]) for k in beyond)
        answer.append((AA[i].T @ moment, AA[i].T @ sum(np.array(forces[k][3:]) for k in beyond)))
    return answer


VARIABLES = {
    "`RR`, `AA`": lambda s, k: pose_of(*(s.manual.places(*s.place)[x][k] for x in (0, 1))),
    "`vv`, `ww`": lambda s, k: moving(s, 1, 0)[k],
    "`vd`, `wd`": lambda s, k: moving(s, 3, 2)[k],
    "`Pe`, `Qe` of an end point": lambda s, k: end_pose(s),
    "`JJ_t`, `JJ_r`": lambda s, k: np.concatenate([of_links(s, 1)[k], of_links(s, 0)[k]]),
    "`JJ_te`, `JJ_re`": lambda s, k: of_end(s),
    "`HH_w`": lambda s, k: s.manual.hh(*s.place)[3:6, 3:6],
    "`HH_wq`": lambda s, k: s.manual.hh(*s.place)[3:6, 6:],
    "`JJ_tg`": lambda s, k: s.manual.hh(*s.place)[:3, 6:],
    "`HH_q`": lambda s, k: s.manual.hh(*s.place)[6:, 6:],
    "`Force0`, of the base": lambda s, k: angular_first(biases(s)[:6]),
    "`Force0`, of the joints": lambda s, k: biases(s)[6:],
    "`FF`, `TT`": lambda s, k: inertial_forces(s)[k],
    "`Fj`, `Tj`": lambda s, k: np.concatenate(joint_forces(s)[k]),
    "`mass`": lambda s, k: s.manual.m0 + sum(s.manual.m),
    "`ll` (3.6)": lambda s, k: [0.0, 0.1, 0.8],
    "`le` (3.7)": lambda s, k: [0.6, -0.1, 0.1],
}


@pytest.mark.parametrize("row", VARIABLES)
def test_variables(names, row):
    given = names | {"i": 2 if row.startswith("`le`") else 1, "j": 2}
    for block in re.findall(r"^```python\n(def inertial_force.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(block, given)
    for k in range(4):
        assert_allclose(eval(ROWS[row], given | {"k": k}), VARIABLES[row](names["is"], k), **EXACT)


# ---- simulation ------------------------------------------------------------------------------------------------------

# greatest error at 0.5 s with 50 steps, of motions of order 1: what h^4, h^2 and h leave
SIMULATIONS = {
    "`f_dyn_rk`, `f_dyn_rk2`": 1e-6,
    "`int_sr`, `int_sr2`": 1e-6,
    "`f_dyn_nb`, `f_dyn_nb2`, `f_dyn_tr`": 2e-3,
    "`int_eu`, `int_eu2`": 0.1,
}


@pytest.fixture(scope="module")
def reached(names):
    """Return R0, A0 and q after half a second, by the manual's equations."""
    s = names["is"]
    return s.manual.simulate(*s.state, s.torque, 0.5, 100)


@pytest.mark.parametrize("row", SIMULATIONS)
def test_simulation(names, reached, row):
    run = call(names, row)
    R0, A0, q = reached
    pose = names["robot"].pose(run.q[-1], "base")
    off = [np.abs(pose[:3, 3] - R0).max(), np.abs(pose[:3, :3] - A0).max(), np.abs(run.q[-1, 7:] - q).max()]
    assert max(off) < SIMULATIONS[row]
    assert max(off) > 0.0 and np.abs(run.q[-1] - run.q[0]).max() > 0.1
    if "midpoint" in ROWS[row]:
        assert_allclose(run.momentum[-1], run.momentum[0], rtol=0, atol=1e-10)


# ---- rotations -------------------------------------------------------------------------------------------------------


def quaternion_rate(s):
    x, (w, real) = np.array(s.quaternion[:3]), (s.state[3], s.quaternion[3])
    return np.array([*(real * w + np.cross(w, x)), -w @ x]) / 2


def euler_cosines(s):
    return c3(s.angles[2]) @ c1(s.angles[1]) @ c3(s.angles[0])


ROTATIONS = {
    "`aw`": lambda s: rodrigues(s.state[3] * 1e-4),
    "`w2dQtn`": quaternion_rate,
    "`rpy2dc`": lambda s: s.place[1].T,
    "`dc2rpy`": lambda s: [0.3, -0.5, 0.8],
    "`eul2dc`": euler_cosines,
    "`dc2eul`": lambda s: s.angles,
    "`dc2qtn`": lambda s: s.quaternion,
    "`qtn2dc`": lambda s: s.place[1].T,
    "`cx`": lambda s: c1(0.7),
    "`cy`": lambda s: c2(0.7),
    "`cz`": lambda s: c3(0.7),
    "`cross`": lambda s: tilde(s.state[3]) @ s.state[2],
    "`tilde`": lambda s: tilde(s.state[3]),
    "`tr2diff`": lambda s: [0.02, -0.01, 0.03],
    "`init_SV`": lambda s: [0, 0, 0, 1, *[0] * 7],
}


@pytest.mark.parametrize("row", ROTATIONS)
def test_rotations(names, row):
    given = dict(names)
    if row == "`dc2eul`":
        given["C0"] = euler_cosines(names["is"])
    # w2dQtn is a central difference of step 1e-4
    assert_allclose(
        eval(ROWS[row], given), ROTATIONS[row](names["is"]), **EXACT if row != "`w2dQtn`" else {"atol": 1e-7}
    )


def test_the_oracle_keeps_momentum(names):
    """For the manual's equations, H [v0; w0; q-dot] is the momentum, which forward dynamics conserves."""
    s = names["is"]
    R0, A0, v0, w0, phi, rate = s.state
    a = s.manual.f_dyn(*s.state, s.torque)

    def momentum(h):
        turned = spacedyn.rodrigues((w0 + h / 2 * a[3:6]) * h) @ A0
        place = R0 + h * v0 + h * h / 2 * a[:3]
        speed = np.concatenate([v0, w0, rate]) + h * a
        p = (s.manual.hh(place, turned, phi + h * rate + h * h / 2 * a[6:]) @ speed)[:6]
        return np.concatenate([p[:3], p[3:] + np.cross(place, p[:3])])

    h = 1e-5
    assert_allclose((momentum(h) - momentum(-h)) / (2 * h), 0.0, atol=1e-6)
