"""Thesis 5.5: four links with pinned tip. The first step, quantity by quantity, and states of the 10 s run.

tests/data/thesis_5_5_*.json has the values, their sources and their accuracy.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

DATA = Path(__file__).parents[1] / "data"
STEP, RUN = (json.loads((DATA / f"thesis_5_5_fourlink_{name}.json").read_text()) for name in ("step", "sim"))
REST = np.zeros(4)


def agree(got, expected, tolerance=STEP["tolerance"]):
    """Check agreement to `tolerance` times the largest entry, because a zero may be as inaccurate as its neighbours."""
    assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.fixture(scope="module")
def chain():
    return sarrus.mechanisms.four_link_chain()


@pytest.fixture(scope="module")
def let_go():
    """Return the open chain, from Tables 5.1 and 5.2 of the thesis."""
    d = STEP["definition"]
    moments = [np.diag(row) for row in d["I_com_diag"]]
    return sarrus.from_sdof(d["gamma"], ["ry"] * 4, d["mass"], d["com"], moments, gravity=d["gravity"])


def on_the_environment(robot, q, reactions):
    """Return the force of the pin on the ground in world axes: x and z, and the components that redundant rows must leave zero."""
    wrench = -reactions.wrenches["pin"].reshape(2, 3)
    turned = wrench @ robot.pose(q, "link4")[:3, :3].T
    return turned[1, [0, 2]], np.append(turned[0], turned[1, 1])


def test_gallery_is_the_table(chain, let_go):
    """The chain of the gallery is the table's, with friction, and pinned."""
    for q in (REST, np.array([0.3, -0.7, 1.1, 0.2])):
        agree(chain.mass_matrix(q), let_go.mass_matrix(q))
        agree(chain.jacobian(q, "tip", expressed_in="world"), let_go.jacobian(q, "tip", expressed_in="world"))
        for rate in (0.0, 1.0):
            friction = STEP["definition"]["friction_viscous"] * rate
            agree(chain.bias_forces(q, REST + rate), let_go.bias_forces(q, REST + rate) + friction)


def test_open_chain(let_go):
    """5.85-5.117: the motion of the chain without its pin."""
    e = STEP["expected"]
    agree(let_go.bias_forces(REST, REST), e["bias"])  # 5.85
    agree(let_go.mass_matrix(REST), e["H"])  # 5.104
    agree(let_go.jacobian(REST, "tip"), e["J_end"])  # 5.106
    a = let_go.forward_dynamics(REST, REST, REST)
    agree(a, e["qdd_open"])  # 5.114
    agree(let_go.acceleration(REST, REST, a, "tip"), e["xdd_open"])  # 5.117, which lost an entry


@pytest.mark.parametrize(
    ("links", "J", "H"),
    [
        (1, [[1, 0, 0]], [[3]]),  # 5.92, 5.94
        (2, [[1, 2, 0], [1, 0, 0]], [[7.45, 0.45], [0.45, 0.45]]),  # 5.97, 5.100
        (
            3,
            [[1, 2, -1], [1, 0, -1], [1, 0, 0]],
            [[14.9, 2.9, 1.45], [2.9, 1.9, 0.45], [1.45, 0.45, 0.45]],
        ),  # 5.101, 5.102
    ],
)
def test_chains_of_fewer_links(links, J, H):
    """5.91-5.102 as printed, link by link: H, and J of the last link's frame, whose columns rotate about y and move along x and z."""
    d = STEP["definition"]
    gamma, mass, com, moments = (d[name][:links] for name in ("gamma", "mass", "com", "I_com_diag"))
    chain = sarrus.from_sdof(gamma, ["ry"] * links, mass, com, [np.diag(row) for row in moments], gravity=d["gravity"])
    rest = np.zeros(links)
    expected = np.zeros((6, links))
    expected[[1, 3, 5]] = np.transpose(J)
    agree(chain.jacobian(rest, f"link{links}"), expected)
    agree(chain.mass_matrix(rest), H)


def test_operational_space(let_go):
    """5.109 and 5.111 as printed, and 5.122-5.129 with them; only two of the five rows are independent."""
    printed = np.zeros((4, 6))
    printed[:, 1] = [0, -0.5865103, 0.5865103, 2.8739003]
    printed[:, 3] = [-0.0078431, 0.0078431, 0.7058824, -0.7058824]
    printed[:, 5] = [0, 0.0586510, -0.0586510, -2.28739]
    agree(sarrus.formulations.omega(let_go, REST, "tip"), printed, 2e-6)
    inverse = sarrus.formulations.operational_inertia_inverse(let_go, REST, "tip")
    printed = np.diag([0, 2.8739003, 0, 0.6901961, 0, 2.228739])
    printed[1, 5] = printed[5, 1] = -2.28739
    agree(inverse, printed, 1e-6)
    blocked = [0, 2, 3, 4, 5]
    reflected = inverse[np.ix_(blocked, blocked)]
    assert np.linalg.matrix_rank(reflected) == 2
    agree(np.linalg.pinv(reflected) @ np.array(STEP["expected"]["xdd_open"])[blocked], STEP["expected"]["h_c"])


def test_first_step(chain):
    """5.131 and 5.133; three of the pin's five rows are redundant."""
    e = STEP["expected"]
    a, reactions = chain.forward_dynamics(REST, REST, REST, return_reactions=True)
    agree(a, e["qdd"])
    force, redundant = on_the_environment(chain, REST, reactions)
    agree(force, np.array(e["tip_force_on_environment"])[[3, 5]])
    agree(redundant, 0.0)  # of least norm
    agree(np.sort(np.abs(reactions.multipliers)), np.sort(np.abs(e["h_c"])))  # 5.129, in rows of another order and sign


@pytest.mark.parametrize("member", ["link1", "link2", "link3", "link4"])
def test_first_step_by_reference_member(chain, member):
    """Chapter 5's chain equals chapter 6's mechanism with two chains, for any choice of the reference member."""
    agree(
        sarrus.formulations.reference_member(chain, REST, REST, REST, member=member).accelerations,
        STEP["expected"]["qdd"],
    )


def test_tip_constraint(chain):
    """5.20-5.30 with the last link as member: the chain to it, released, moves like links 1 to 3 alone."""
    s = sarrus.formulations.reference_member(chain, REST, REST, REST, member="link4")
    assert s.chains == {"joint4": ("joint1", "joint2", "joint3"), "pin": ()}
    agree(s.Lambda_inverse["joint4"], s.J["joint4"] @ np.linalg.solve(s.H["joint4"], s.J["joint4"].T))
    assert s.M["pin"].shape == (5, 5)
    assert not s.M["pin"].any()  # the ground is a chain of no bodies: it does not give way
    assert round(np.trace(s.motion_space)) == 1  # link 4 can only turn about the pin
    # the pin's force on link 4, in the ground's axes
    agree(s.tip_forces["pin"], np.negative(STEP["expected"]["tip_force_on_environment"]))


@pytest.mark.parametrize("row", RUN["high_accuracy"]["rows"], ids=lambda row: f"t={row['t']}")
def test_states_of_the_run(chain, row):
    """5.5.5: accelerations, pin force and energy at states of the exact motion, where the tip has the file's drift of 1e-9."""
    q, v, tolerance = np.array(row["q"]), np.array(row["qd"]), float(RUN["high_accuracy"]["tolerance_q"])
    agree(chain.constraint_residual(q), 0.0, tolerance)
    # the pin's forces follow from differences of accelerations, which the state's own digits limit
    a, reactions = chain.forward_dynamics(q, v, REST, return_reactions=True)
    agree(a, row["qdd"], tolerance)
    agree(on_the_environment(chain, q, reactions)[0], row["tip_force_on_environment_xz"], tolerance)
    agree(chain.kinetic_energy(q, v) + chain.potential_energy(q), row["energy"], tolerance)
    agree(sarrus.formulations.reference_member(chain, q, v, REST).accelerations, row["qdd"], tolerance)


def test_equilibrium(chain):
    """The configuration at which friction stops the chain: half of it hangs from the pin, half stands on the ground."""
    q = RUN["equilibrium"]["q"]
    a, reactions = chain.forward_dynamics(q, REST, REST, return_reactions=True)
    # within rounding: the bars hang in one line, where forces of 50 N cancel over 0.2 kg m2
    agree(a, 0.0, 1e-11)
    agree(on_the_environment(chain, q, reactions)[0], RUN["equilibrium"]["tip_force_on_environment_xz"], 1e-11)


def test_thesis_peak(chain):
    """The thesis reads 230 N from a plot; the exact peak lies between its points."""
    peak = np.abs([row["tip_force_on_environment_xz"][1] for row in RUN["high_accuracy"]["rows"]]).max()
    assert peak < abs(RUN["high_accuracy"]["peak_fz"]["force_on_environment"][1]) < 1.02 * 230
