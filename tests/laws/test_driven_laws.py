"""Prescribed motions: a result at a time is that of the mechanism whose prescribed motions are earlier by this time, at time zero."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
import sarrus.calibration
import sarrus.design
import sarrus.identification
from tests.public import ROWS, ask, case, leaves, public
from tests.small_mechanisms import bars, shaken_four_bar

T = 0.7
# resolved_rate: the velocity of the table is no motion of these mechanisms; it has a test of its own
TIMED = [
    name for name, s in public().items() if "time" in s.parameters and name not in ("reference_member", "resolved_rate")
]


def law(earlier=0.0):
    return sarrus.laws.harmonic(0.5, rate=2.0, phase=2.0 * earlier)


def with_rider(robot, earlier=0.0):
    """Return the mechanism with a rider that a prescribed motion moves along the last body."""
    b = robot.to_builder()
    b.add_body("rider", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("rail", sarrus.Prismatic((1, 2, 2)), robot.bodies[-1], "rider", tree=True)
    b.add_prescribed_motion("drive", "rail", law(earlier))
    return b.build()


def assert_same(found, wanted):
    found, wanted = leaves(found), leaves(wanted)
    assert found.keys() == wanted.keys() and found
    for at, x in wanted.items():
        if x.dtype.kind == "f":  # the phase of the earlier motion is rounded, and both searches end within 1e-12
            size = max(1.0, np.abs(x[np.isfinite(x)]).max(initial=0.0))
            assert_allclose(found[at], x, rtol=0, atol=1e-10 * size, err_msg=at)
        else:
            assert_array_equal(found[at], x, err_msg=at)


@pytest.mark.parametrize("name", TIMED)
def test_all_functions_of_time(name):
    of = ROWS[name].of
    which = "four-bar" if "four-bar" in of else of[0]
    base, robot, earlier = case(which), *(with_rider(case(which).robot, t) for t in (0.0, T))
    places = (base.robot.joint(joint) for joint in base.robot.joints)
    q = robot.assemble({j.name: base.q[j.q_slice] for j in places if not j.closes_loop}, time=T)
    v, tau = np.random.default_rng(5).standard_normal((2, robot.nv))
    v = robot.project_velocity(q, v, time=T)
    c = dataclasses.replace(base, robot=robot, q=q, v=v, a=robot.forward_dynamics(q, v, tau, time=T), tau=tau)
    assert_same(
        ask(robot, name, c, time=[T, T] if name == "follow" else T),
        ask(earlier, name, dataclasses.replace(c, robot=earlier)),
    )


def test_dead_centres():
    """A dead centre is singular at all times: the regular configurations for comparison are closed at the same time."""
    robot, earlier = (with_rider(sarrus.mechanisms.slider_crank(), t) for t in (0.0, T))
    q = robot.assemble({"motor": [0.0, np.pi]}, fixed={"motor": [0.0, np.pi]}, time=T)
    there = robot.mobility_map(q, output=("slider", "tx"), time=T)
    assert there.singularity.tolist() == ["input", "input"] and np.isinf(there.condition).all()
    assert_same(there, earlier.mobility_map(q, output=("slider", "tx")))


def test_dynamic_singularities():
    """A stretched arm is singular for any number of times; the velocity of the hand agrees with that of the earlier mechanism."""
    b = sarrus.Builder("satellite", gravity=(0, 0, 0))
    b.add_body("hull", sarrus.Inertia.box(20.0, (1, 1, 1)))
    b.add_joint("base", sarrus.Free(), "ground", "hull")
    for before, name in (("hull", "a"), ("a", "b"), ("b", "c")):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), radius=0.05))
        b.add_joint(f"{name} joint", sarrus.Revolute("z"), before, name, at_parent=(0.5, 0, 0))
    b.add_frame("hand", "c", (0.5, 0, 0))
    robot, earlier = (with_rider(b.build(), t) for t in (0.0, T))
    output, times = ("hand", "tx ty rz"), T + np.arange(3.0)
    q = robot.assemble(np.tile(robot.neutral(), (3, 1)), time=times)
    there = sarrus.floating.dynamic_singularity_map(robot, q, output, time=times)
    assert there.singularity.tolist() == ["both"] * 3
    bent = robot.integrate(q[0], [0.0] * 6 + [0.2, 0.5, -0.4, 0.0])
    for function in (sarrus.floating.dynamic_singularity_map, sarrus.floating.resolved_rate):
        wish = output if function is sarrus.floating.dynamic_singularity_map else {output: [0.1, 0.2, 0.3]}
        assert_same(function(robot, bent, wish, time=T), function(earlier, bent, wish))


@pytest.mark.parametrize("method", ["auto", "implicit_midpoint"])
def test_runs_that_start_later(method):
    """Default parameters of an end stop, too, are those of the initial configuration at the start."""
    robot, earlier = (shaken_four_bar(t) for t in (0.0, T))
    q = robot.assemble(fixed={"motor": 0.5}, time=T)
    v = robot.complete_velocity(q, {"motor": 2.0}, time=T)
    stop = sarrus.control.EndStop("motor", limits=(0.0, 0.6))
    late, early = (
        sarrus.simulate_many(r, q[None], v, 0.2, stop, method=method, start=t) for r, t in ((robot, T), (earlier, 0.0))
    )
    assert late.q[0, :, robot.joint("motor").q_slice].max() > 0.6
    assert_same((late.q, late.v), (early.q, early.v))


def test_samples_of_joints():
    """The samples satisfy the constraints at their times."""
    robot, t = shaken_four_bar(), np.linspace(0.0, 8.0, 1601)
    crank = {"motor": 0.6 + 0.3 * np.sin(3.0 * t)}
    data = sarrus.identification.Samples.from_joints(robot, t, crank, {"motor": 0.0 * t}, cutoff=5.0)
    state, at = (data.q, data.v), {"time": data.t}
    J = robot.constraint_jacobian(data.q, **at)
    assert_allclose(robot.constraint_residual(data.q, **at), 0.0, atol=1e-12)
    assert_allclose((J @ data.v[..., None])[..., 0], robot.constraint_velocity(data.q, **at), atol=1e-12)
    assert_allclose((J @ data.a[..., None])[..., 0], robot.constraint_bias(*state, **at), atol=1e-11)


WITHOUT_TIMES = {
    "calibrate": lambda r, x: sarrus.calibration.calibrate(r, sarrus.calibration.Measurements(x, joints={"pivot": np.ones(5)})),
    "design": lambda r, x: sarrus.design.design(
        r, x, [sarrus.design.Variable("pin1.parent.x", -0.1, 0.1)], [sarrus.design.JointAngle("pivot", np.ones(5))]
    ),
    "tolerances": lambda r, x: sarrus.design.tolerances(r, {"pin1.parent.x": 1e-4}, x, ["pivot"], samples=0),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_TIMES)
def test_configurations_without_times(name):
    with pytest.raises(
        sarrus.ModelError, match=f"{name}: the prescribed motion 'drive' of 'shaken four-bar' varies in time"
    ):
        WITHOUT_TIMES[name](shaken_four_bar(), {"motor": np.linspace(0.3, 0.9, 5)})


def test_locked_coordinates_need_no_times():
    robot = bars((0.4, 1.1, 0.9, 0.5), 1.0, laws={1: 1.0}, actuated=(0,))
    assert (
        sarrus.design.tolerances(robot, {"pin1.parent.x": 1e-4}, {"pin0": np.full(3, 0.4)}, ["pin2"], samples=0).lost
        == 0
    )
