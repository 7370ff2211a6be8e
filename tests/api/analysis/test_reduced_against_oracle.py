"""`reduced_dynamics` compared with singular values in NumPy: loops, coordinates, times, loads, near singular positions."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

import sarrus
from sarrus.analysis.independent_coordinates import ARRAYS, reduced_form
from tests.effort import examples
from tests.oracles.reduced import reduced, showing
from tests.random_closed import closed_mechanisms
from tests.small_mechanisms import near_home

law = examples(40)
GALLERY = (
    "four_bar",
    "five_bar",
    "three_rrr",
    "stewart",
    "bennett",
    "sarrus_linkage",
    "delta",
    "biped_leg",
    "slider_crank",
)


def agree(form, robot, q, v, E, E_dot, tolerance=1e-9, **more):
    expected = reduced(robot, q, v, E, E_dot, **more)
    for name, x in expected.items():
        scale = max(1.0, np.abs(x).max(initial=0.0), np.abs(expected["jacobian"]).max(initial=0.0))
        np.testing.assert_allclose(getattr(form, name), x, rtol=0, atol=tolerance * scale, err_msg=name)


def picked(robot, columns):
    E = np.eye(robot.nv)[columns]
    return E, 0.0 * E


@pytest.mark.parametrize("make", GALLERY)
def test_gallery(make):
    robot = getattr(sarrus.mechanisms, make)()
    rng = np.random.default_rng(5)
    q, v = near_home(robot, rng, (3,))
    loads = {robot.bodies[-1]: rng.normal(size=6)}
    form, status = sarrus.formulations.reduced_dynamics(robot, q, v, wrenches=loads, threads=2, return_status=True)
    columns = showing(robot, q)
    assert not status.any() and form._places == columns
    for i in range(3):
        one = sarrus.formulations.reduced_dynamics(robot, q[i], v[i], wrenches=loads)
        assert one._places == showing(robot, q[i : i + 1])
        agree(one, robot, q[i], v[i], *picked(robot, one._places), wrenches=loads)
        row = SimpleNamespace(**{name: getattr(form, name)[i] for name in ARRAYS})
        agree(row, robot, q[i], v[i], *picked(robot, columns), wrenches=loads)


@law
@given(closed_mechanisms())
def test_random_loops(closed):
    robot, q, v, time = closed.robot, closed.q, closed.v, closed.time
    form = sarrus.formulations.reduced_dynamics(robot, q, v, time=time)
    assert form._places == showing(robot, [q], time)
    agree(form, robot, q, v, *picked(robot, form._places), 1e-7, time=time)


@pytest.mark.parametrize("make", ["five_bar", "stewart", "delta"])
def test_task(make):
    robot = getattr(sarrus.mechanisms, make)()
    q, v = near_home(robot, np.random.default_rng(3))
    task = {
        "five_bar": ("tip", "tz tx"),
        "stewart": ("platform", "rx ry rz tx ty tz"),
        "delta": ("platform", "tx ty tz"),
    }[make]
    rows = [("rx", "ry", "rz", "tx", "ty", "tz").index(c) for c in task[1].split()]
    E, E_dot = (
        f[rows]
        for f in (
            robot.jacobian(q, task[0], expressed_in="world_aligned"),
            robot.jacobian_derivative(q, v, task[0], expressed_in="world_aligned"),
        )
    )
    agree(sarrus.formulations.reduced_dynamics(robot, q, v, task=task), robot, q, v, E, E_dot)
    with pytest.raises(sarrus.ModelError, match="named twice"):
        sarrus.formulations.reduced_dynamics(robot, q, v, task=(task[0], "tx tx"))


def test_more_coordinates_than_freedoms():
    """COG Jacobians of redundant motors are those of least norm."""
    robot = sarrus.mechanisms.three_rrr()
    q, v = near_home(robot, np.random.default_rng(2))
    form, _ = reduced_form(robot, q, v, "actuated", independent=False)
    agree(form, robot, q, v, *picked(robot, form._places))


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_near_a_singular_position(distance):
    """A nearly flat four-bar, near another branch: both formulas amplify rounding by 1 / distance squared."""
    robot = sarrus.mechanisms.four_bar(crank=1.0, coupler=2.0, rocker=1.0, ground=2.0)
    q = robot.project_configuration(robot.assemble(fixed={"motor": distance}, branch="any"))
    v = robot.project_velocity(q, [1.0, 0.0, 0.0])
    form = sarrus.formulations.reduced_dynamics(robot, q, v, independent=["motor"])
    agree(form, robot, q, v, *picked(robot, [0]), 1e-13 / distance**2)


def test_at_a_singular_position():
    """With more degrees of freedom than elsewhere, the usual coordinates are insufficient; in a batch this state has no result."""
    robot = sarrus.mechanisms.four_bar(crank=1.0, coupler=2.0, rocker=1.0, ground=2.0)
    q = np.stack([robot.assemble(fixed={"motor": 0.7}, branch="any"), np.zeros(3), np.full(3, np.nan)])
    with pytest.raises(sarrus.StateError, match="motor determine 1 of 2"):
        sarrus.formulations.reduced_dynamics(robot, q[1], np.zeros(3), independent=["motor"])
    with pytest.raises(sarrus.StateError, match="from 1 to 2 degrees of freedom"):
        sarrus.formulations.reduced_dynamics(robot, q, np.zeros(3), independent=["motor"])
    form, status = sarrus.formulations.reduced_dynamics(
        robot, q, np.zeros(3), independent=["motor"], return_status=True
    )
    assert status.tolist() == [0, 2, 1]
    assert np.isfinite(form.mass_matrix[0]).all() and np.isnan(form.mass_matrix[1:]).all()


def test_out_and_no_warning():
    robot = sarrus.mechanisms.delta()
    q, v = near_home(robot, np.random.default_rng(1), (4,))
    for at in (0, slice(None)):
        kept = sarrus.formulations.reduced_dynamics(robot, q[at], 0.0 * v[at], independent="actuated")
        fresh = sarrus.formulations.reduced_dynamics(robot, q[at], v[at], independent="actuated")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sarrus.formulations.reduced_dynamics(robot, q[at], v[at], independent="actuated", out=kept) is kept
        np.testing.assert_array_equal(kept.bias, fresh.bias)
        np.testing.assert_array_equal(kept.jacobian_derivative, fresh.jacobian_derivative)
    with pytest.raises(sarrus.errors.ShapeError, match="out"):
        sarrus.formulations.reduced_dynamics(robot, q[0], v[0], independent="actuated", out=kept)
