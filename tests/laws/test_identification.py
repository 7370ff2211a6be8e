"""Identification: it recovers the parameters behind the data, names unidentifiable ones, and estimates errors; choices of the model have no effect."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.identification import Samples, exciting_motion, identify, identify_runs
from sarrus.identification.model import EffortModel, base_of, independent_columns, pseudo_inertias
from tests.variants import scaled

ROUNDING = 1e-9  # of solves of condition 1e3 and less


def states(robot, count=60, seed=0):
    """Return states on the loops near home and on its branch, with velocities and accelerations in all allowed directions."""
    rng = np.random.default_rng(seed)
    away = 0.15 * rng.normal(size=(count, robot.nv))
    home = np.tile(robot.assemble(), (count, 1))
    if robot.nc:
        q = robot.project_configuration(robot.integrate(home, robot.project_velocity(home, away)))
    else:
        q = robot.integrate(home, 3.0 * away)
    return moving(robot, q, rng)


def moving(robot, q, rng):
    count = len(q)
    v = robot.project_velocity(q, rng.normal(size=(count, robot.nv)))
    return q, v, robot.forward_dynamics(q, v, 5.0 * rng.normal(size=(count, robot.nv)))


def driven(robot, *joints):
    b = robot.to_builder()
    for name in joints:
        b.set_actuated(name)
    return b.build()


def with_motors(robot, *names):
    """Return the same mechanism with motors in these joints."""
    from sarrus.analysis.closing import on_its_tree

    return on_its_tree(robot, actuated=names)


def otherwise(robot, seed=1, **terms):
    """Return the same machine with other inertias."""
    rng = np.random.default_rng(seed)
    bodies = {}
    for body in robot.description.bodies:
        I = body.inertia
        com = I.com + 0.03 * rng.normal(size=3)
        bodies[body.name] = sarrus.Inertia(1.2 * I.mass, com, I.about_com + 0.02 * np.diag([1.0, 1.1, 0.9]))
    return robot.replace(inertias=bodies, **terms)


def samples(robot, q, v, a, noise=0.0, seed=2, real=None, closed=None):
    u = (real or robot).actuator_efforts(q, v, a)
    u = u + noise * np.random.default_rng(seed).normal(size=u.shape)
    return Samples(dict(zip(robot.actuated, u.T)), q, v, a)


def arm():
    return with_motors(sarrus.mechanisms.stanford_arm(), *sarrus.mechanisms.stanford_arm().joints)


def double_pendulum():
    return with_motors(sarrus.mechanisms.double_pendulum(), *sarrus.mechanisms.double_pendulum().joints)


MECHANISMS = {
    "arm": arm,
    "four_bar": sarrus.mechanisms.four_bar,
    "driven where it closes": lambda: with_motors(sarrus.mechanisms.four_bar(), "pin2"),
    "redundant": lambda: sarrus.mechanisms.five_bar(actuated=3),
    "delta": sarrus.mechanisms.delta,
    "stewart": sarrus.mechanisms.stewart,
    "three motors and one": lambda: sarrus.mechanisms.three_rrr(actuated=4),
    "three motors and two": lambda: sarrus.mechanisms.three_rrr(actuated=5),
    "two motors": lambda: with_motors(sarrus.mechanisms.four_bar_ladder(9), "pivot0", "pivot7"),
    "substructures": lambda: sarrus.Mechanism(sarrus.mechanisms.stewart().description, substructures=1),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_rows_of_many_states_are_those_of_each(name):
    """Efforts of many states are solved three at a time."""
    robot = MECHANISMS[name]()
    q, v, a = states(robot, 7)
    many = robot._effort_regressor(q, v, a)
    each = np.stack([robot._effort_regressor(*state) for state in zip(q, v, a)])
    assert_allclose(many, each, rtol=0, atol=ROUNDING * np.abs(each).max())


@pytest.mark.parametrize("name", MECHANISMS)
def test_rows_are_derivatives_of_efforts(name):
    """W is the derivative of efforts by inertial parameters, and x_k . tau is effort k: by the pullback, and by inverse dynamics."""
    robot = MECHANISMS[name]()
    q, v, a = states(robot, 5)
    every = robot._effort_regressor(q, v, a)
    by_pullback = sarrus.derivatives.actuator_efforts(robot, q, v, a).parameters
    assert_allclose(every[..., robot.nv :], by_pullback, rtol=0, atol=ROUNDING * np.abs(by_pullback).max())
    u = robot.actuator_efforts(q, v, a)
    by_power = np.einsum("nuv,nv->nu", every[..., : robot.nv], robot.inverse_dynamics(q, v, a))
    assert_allclose(by_power, u, rtol=0, atol=ROUNDING * np.abs(u).max())
    J = robot.constraint_jacobian(q)
    assert_allclose(np.einsum("ncv,nuv->nuc", J, every[..., : robot.nv]), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["arm", "four_bar", "delta", "stewart"])
def test_base_has_the_rank_of_the_projected_equations(name):
    """The number of base parameters is the rank of N^T Y, with N from another computation; they give the efforts of all parameters."""
    robot = MECHANISMS[name]()
    q, v, a = states(robot, 80)
    model = EffortModel(robot, robot.actuated, {}, None)
    base = base_of(model, samples(robot, q, v, a))
    N = sarrus.formulations.free_motions(robot, q).basis
    X = (np.swapaxes(N, 1, 2) @ robot.regressor(q, v, a)).reshape(-1, len(model.names))
    size = np.linalg.norm(X, axis=0)
    seen = size > 1e-9 * size.max()
    s = np.linalg.svd(X[:, seen] / size[seen], compute_uv=False)
    assert len(base.kept) == np.count_nonzero(s > 1e-8 * s[0])
    W = model.rows(q, v, a)[0][..., :-1]
    pi = np.random.default_rng(3).normal(size=W.shape[-1])
    assert_allclose(W[..., base.kept] @ (base.combination @ pi), W @ pi, rtol=0, atol=1e-7 * np.abs(W @ pi).max())


def test_base_is_of_all_branches_that_the_data_are_of():
    """A Delta's platform never rotates: 34 parameters are identifiable. A few states on a branch with rotated platform make all 67 identifiable."""
    robot = sarrus.mechanisms.delta()
    rng = np.random.default_rng(0)
    off = robot.integrate(robot.assemble(), 0.15 * rng.normal(size=(160, robot.nv)))
    q, v, a = moving(robot, robot.project_configuration(off), rng)
    turned = np.abs(robot.pose(q, "platform")[:, :3, :3] - np.eye(3)).max(axis=(1, 2)) > 1e-3
    few = np.flatnonzero(turned)[:6]
    model = EffortModel(robot, robot.actuated, {}, None)
    for rows, rank in ((np.flatnonzero(~turned), 34), (np.concatenate([np.flatnonzero(~turned)[:60], few]), 67)):
        base = base_of(model, samples(robot, q[rows], v[rows], a[rows]))
        assert len(base.kept) == rank
        W = model.rows(q[rows], v[rows], a[rows])[0][..., :-1]
        pi = rng.normal(size=W.shape[-1])
        assert_allclose(W[..., base.kept] @ (base.combination @ pi), W @ pi, rtol=0, atol=1e-7 * np.abs(W @ pi).max())


def test_base_of_a_planar_arm_is_the_published_one():
    """Khalil and Dombre, Modeling, Identification and Control of Robots, 2002, ch. 9: six parameters of two links in a vertical plane.

    m2 is part of mx1 and I1.
    """
    robot = double_pendulum()
    model = EffortModel(robot, robot.actuated, {}, None)
    names = base_of(model, samples(robot, *states(robot))).expressions(model.names, model.units)
    assert len(names) == 6
    lumped = [name for name in names if " " in name]
    assert sum("lower.m" in name or ".m" in name.split(" ")[-1] for name in lumped) == 2


def test_dependent_columns_are_told_by_name_and_factor():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 2] = 0.4 * X[:, 0] - 2.0 * X[:, 1]
    X[:, 3] = 0.0
    base = independent_columns(X, np.arange(4), np.zeros(4))
    assert base.expressions(["m2", "m1", "m3", "m4"], np.ones(4)) == ("m2 + 0.4 m3", "m1 - 2 m3")
    assert base.unseen.tolist() == [3]


TERMS = {
    "arm": {"damping": ["joint1", "joint2"], "friction": ["joint1"], "offset": ["joint3"]},
    "four_bar": {"damping": ["motor", "pin2"], "friction": ["pivot"], "stiffness": ["pivot"]},
    "delta": {"damping": ["motor1", "motor2", "motor3"], "friction": ["motor1"], "armature": ["motor1"]},
    "stewart": {"damping": ["leg1"], "friction": ["leg1", "leg2"]},
}


@pytest.mark.parametrize("name", ["four_bar", "delta", "stewart"])
def test_what_made_the_data_is_found(name):
    """Without noise all base parameters and joint terms, also of loop joints, are exact; and the robot predicts new efforts."""
    robot, terms = MECHANISMS[name](), TERMS[name]
    numbers = {"damping": 0.3, "friction": 0.2, "stiffness": 1.5}
    changed = {t: dict.fromkeys(joints, numbers[t]) for t, joints in terms.items() if t in numbers}
    real = otherwise(robot, **changed)
    q, v, a = states(robot, 300)
    found = identify(robot, samples(robot, q, v, a, real=real), terms=terms)
    model = EffortModel(real, real.actuated, terms, None)
    truth = found._base.combination @ model.values
    assert_allclose(found.values, truth, rtol=0, atol=1e-6 * np.abs(truth).max())
    q, v, a = states(robot, 20, seed=9)
    expected = real.actuator_efforts(q, v, a)
    assert_allclose(found.robot.actuator_efforts(q, v, a), expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_every_parameter_is_within_three_deviations_in_95_of_100():
    robot = sarrus.mechanisms.stewart()
    real = otherwise(robot)
    q, v, a = states(robot, 300)
    u = real.actuator_efforts(q, v, a)
    inside = 0
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(size=u.shape) * [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
        found = identify(robot, Samples(dict(zip(robot.actuated, (u + noise).T)), q, v, a), consistent=False)
        truth = found._base.combination @ EffortModel(real, real.actuated, {}, None).values
        inside = inside + (np.abs(found.values - truth) < 3.0 * found.deviations)
    assert found.names[0].startswith("platform.m + piston1.m")
    assert inside.min() >= 95
    assert inside.mean() < 99.95  # deviations are no larger than they are: of normal errors 0.27 % are beyond three
    assert_allclose(found.noise, [0.1, 0.2, 0.3, 0.1, 0.2, 0.3], rtol=0.3)
    assert_allclose(found.held_out, found.noise, rtol=0.5)


def test_bodies_that_are_found_can_exist():
    """Least squares alone returns impossible inertias; the consistent ones are as accurate as noise allows."""
    robot = sarrus.mechanisms.stewart()
    q, v, a = states(robot, 200)
    data = samples(robot, q, v, a, noise=1.0, real=otherwise(robot))
    found = identify(robot, data)
    n = 10 * len(robot.description.bodies)
    assert np.linalg.eigvalsh(pseudo_inertias(found.parameters[:n].reshape(-1, 10))).min() > 0.0
    assert found.misfit < 2.0 * np.sqrt(len(found.names))
    assert found.robot.mass > 0.0
    alone = identify(robot, data, consistent=False)
    assert np.linalg.eigvalsh(pseudo_inertias(alone.parameters[:n].reshape(-1, 10))).min() < 0.0
    with pytest.raises(sarrus.ModelError):
        _ = alone.robot


def test_what_the_motion_does_not_excite_is_said():
    """A crank with constant speed gives no information on its own inertia."""
    robot = sarrus.mechanisms.pendulum()
    robot = with_motors(robot, *robot.joints)
    t = np.linspace(0.0, 6.0, 300)
    q, v, a = t[:, None], np.ones((300, 1)), np.zeros((300, 1))
    found = identify(robot, samples(robot, q, v, a))
    still = [name for name, s in zip(found.names, found.deviations) if np.isinf(s)]
    assert still == ["bob.Iyy"] and found.unexcited == ("(bob.Iyy)",)
    assert "not excited by this motion: (bob.Iyy)" in found.report()


def test_what_the_motion_does_not_tell_apart_is_said():
    """At rest, a pendulum gives one combination of two moments, and no information on its inertia."""
    robot = sarrus.mechanisms.pendulum()
    robot = with_motors(robot, *robot.joints)
    q = np.full((300, 1), 0.3)
    found = identify(robot, samples(robot, q, 0.0 * q, 0.0 * q, real=otherwise(robot)))
    assert np.isinf(found.deviations).all() and len(found.unexcited) == 2
    assert any("(bob.mx)" in name and "(bob.mz)" in name for name in found.unexcited)
    assert_allclose(found.noise, 0.0, atol=1e-7)


def test_which_joint_closes_a_loop_does_not_matter():
    answers = []
    for free in (True, False):
        robot = sarrus.mechanisms.delta(platform_free=free)
        crank = {f"motor{k}": 0.3 * np.sin(np.linspace(0, 6, 200) + k) for k in (1, 2, 3)}
        q = robot.follow(crank)
        v = robot.complete_velocity(q, {name: np.cos(3.0 * x) for name, x in crank.items()})
        a = robot.complete_acceleration(q, v, {name: np.sin(7.0 * x) for name, x in crank.items()})
        found = identify(
            robot, samples(robot, q, v, a, real=otherwise(robot)), terms={"damping": ["ball1a"]}, consistent=False
        )
        answers.append(dict(zip(found.names, found.values)))
        last = found.held_out
        assert last.max() < 1e-5
    assert answers[0].keys() == answers[1].keys()


SIZES = {
    "micrometres": (1e-6, 1e-15, 1e-3),
    "millimetres": (1e-3, 1e-3, 1.0),
    "kilometres": (1e3, 1e9, 30.0),
    "grams": (1.0, 1e-3, 1.0),
}
ROUGH = {"damping": ["motor"], "friction": ["pin1"], "armature": ["motor"]}


def by_motor(robot, u):
    ends = np.cumsum([robot.joint(name).type.nv for name in robot.actuated])[:-1]
    return dict(zip(robot.actuated, np.split(u, ends, axis=1)))


def in_other_units(robot, data, m, kg, s):
    """Return mechanism and samples in other units, and the factor of each parameter of a body."""
    there, units = scaled(robot, m, kg, s)
    motors = [unit for name in robot.actuated for _, unit in robot.joint(name).type.velocities]
    rate = units.velocities(robot)
    u = np.hstack(list(data.efforts.values())) * [units.force * m / units.of(unit) for unit in motors]
    t = None if data.t is None else data.t * s
    a = None if data.a is None else data.a * rate / s
    return there, Samples(by_motor(there, u), data.q * units.coordinates(robot), data.v * rate, a, t)


def agree_in_units(found, usual, m, kg):
    """Check that the base by name, its relative uncertainties and the bodies agree, although the units differ."""
    parts = [[name.count(" + ") + name.count(" - ") for name in of.names] for of in (found, usual)]
    assert parts[0] == parts[1]
    assert (len(found.unexcited), found.unseen) == (len(usual.unexcited), usual.unseen)
    sure = [of.values / of.deviations for of in (found, usual)]
    assert_allclose(*sure, rtol=0, atol=1e-6 * np.abs(sure[1]).max())
    each = kg * m ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
    bodies = [of.parameters[: len(of.parameters) // 10 * 10].reshape(-1, 10) for of in (found, usual)]
    assert_allclose(bodies[0] / each, bodies[1], rtol=0, atol=1e-5 * np.abs(bodies[1]).max())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_units_do_not_matter(name, size):
    """Machines of micrometres or of kilometres give as much information as one of metres, with the same names."""
    robot = MECHANISMS[name]()
    q, v, a = states(robot, 200)
    u = otherwise(robot).actuator_efforts(q, v, a)
    u = u + 1e-3 * np.abs(u).max(axis=0) * np.random.default_rng(4).normal(size=u.shape)
    data = Samples(by_motor(robot, u), q, v, a)
    terms = ROUGH if name == "four_bar" else {}
    usual = identify(robot, data, terms=terms)
    there, same = in_other_units(robot, data, *SIZES[size])
    agree_in_units(identify(there, same, terms=terms), usual, *SIZES[size][:2])


def test_passive_joints_are_named_with_zeros():
    robot = double_pendulum()
    q, v, _ = states(robot)
    first, second = robot.joints
    real = otherwise(robot)
    a = real.forward_dynamics(q, v, np.tile([2.0, 0.0], (len(q), 1)))
    with pytest.raises(sarrus.NotRealizableError):
        identify(robot, Samples({first: np.full(len(q), 2.0)}, q, v, a))
    found = identify(robot, Samples({first: np.full(len(q), 2.0), second: np.zeros(len(q))}, q, v, a))
    assert found.noise.max() < 1e-6


def test_passive_joints_named_with_zeros_do_not_drown_a_motor_with_noise():
    """Parameters that only the motor observes are excited, however exact the zeros are."""
    robot = sarrus.mechanisms.double_pendulum()
    real, t = robot.replace(damping={"shoulder": 0.3}), np.linspace(0.0, 6.0, 600)
    push = sarrus.control.FeedforwardEffort("shoulder", sarrus.laws.harmonic(8.0, 3.0))
    run = sarrus.simulate(real, [0.3, 0.2], [0.0, 0.0], 6.0, push, dt=1e-3, times=t)
    u = 8.0 * np.sin(3.0 * t) + 0.05 * np.random.default_rng(1).standard_normal(600)
    found = identify(
        robot, Samples({"shoulder": u, "elbow": 0.0 * t}, run.q, run.v, run.a), terms={"damping": ["shoulder"]}
    )
    assert found.names[0] == "shoulder.damping" and not found.unexcited
    assert 1e-3 < found.deviations[0] < 5e-3
    assert abs(found.values[0] - 0.3) < 3.0 * found.deviations[0]
    assert abs(found.noise[0] - 0.05) < 0.01


REDUNDANT = {
    "arms": lambda: sarrus.mechanisms.three_rrr(actuated=5),
    "driven where it closes": lambda: with_motors(sarrus.mechanisms.four_bar(), "motor", "pin2"),
    "cables": sarrus.mechanisms.cable_platform,
}


@pytest.mark.parametrize("name", REDUNDANT)
def test_internal_efforts_tell_nothing(name):
    """Efforts of redundant motors against each other change neither the estimate nor its deviations, and noise of the efforts is found."""
    robot = REDUNDANT[name]()
    q, v, a = states(robot, 200)
    u = otherwise(robot).actuator_efforts(q, v, a)
    u = u + 0.1 * np.random.default_rng(3).normal(size=u.shape)
    between = robot.internal_efforts(q)
    tense = u + between @ np.full(between.shape[-1], 30.0)
    usual, found = (identify(robot, Samples(by_motor(robot, x), q, v, a), consistent=False) for x in (u, tense))
    assert_allclose(found.values, usual.values, rtol=0, atol=1e-6 * np.abs(usual.values).max())
    assert_allclose(found.deviations, usual.deviations, rtol=1e-6)
    assert_allclose(found.noise, usual.noise, rtol=1e-6)
    assert_allclose(found.noise, 0.1, rtol=0.25)
    assert_allclose(found.held_out, 0.1, rtol=0.4)


def test_covariance_of_redundant_motors_is_that_of_the_errors():
    """In the metric of the inverse covariance, the squares of 300 errors sum to a chi-square variable of 300 degrees of freedom."""
    robot = REDUNDANT["arms"]()
    real = otherwise(robot)
    q, v, a = states(robot, 300)
    u, off = real.actuator_efforts(q, v, a), []
    for seed in range(30):
        noise = 0.1 * np.random.default_rng(seed).normal(size=u.shape)
        found = identify(robot, Samples(by_motor(robot, u + noise), q, v, a), consistent=False)
        error = found.values - found.of(real)
        off.append(error @ np.linalg.solve(found.covariance, error))
    assert abs(np.sum(off) / 300.0 - 1.0) < 3.0 * np.sqrt(2.0 / 300.0)


@pytest.mark.parametrize("joints", [["pivot"], ["pin1", "pivot"], ["pin2"]])
def test_passive_joints_named_with_zeros_change_no_estimate(joints):
    robot = sarrus.mechanisms.four_bar()
    q, v, a = states(robot, 300)
    u = otherwise(robot).actuator_efforts(q, v, a)[:, 0]
    alone, found = (
        identify(robot, Samples({"motor": u} | dict.fromkeys(more, 0.0 * u), q, v, a)) for more in ([], joints)
    )
    assert found.names == alone.names
    assert_allclose(found.values, alone.values, rtol=0, atol=1e-6 * np.abs(alone.values).max())
    assert_allclose(found.robot.actuator_efforts(q, v, a)[:, 0], u, rtol=0, atol=1e-5 * np.abs(u).max())


@pytest.mark.parametrize("term", ["damping", "friction", "armature", "stiffness"])
def test_joints_that_the_loops_hold_fast_tell_nothing(term):
    """The motion of such joints is rounding: its sign, and the acceleration that would be needed to affect the efforts, too."""
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    across = np.cross(axis, [1.0, 0.0, 0.0])
    b = sarrus.Builder("four-bar of an oblique plane")
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), length * across, 0.01))
    b.add_body("cross", sarrus.Inertia.sphere(0.1, 0.01))
    hinge = sarrus.Revolute(axis)
    b.add_joint("m", hinge, "ground", "a", actuated=True)
    b.add_joint("p1", hinge, "a", "cross", at_parent=0.4 * across)
    b.add_joint("fast", sarrus.Revolute(across), "cross", "b")
    b.add_joint("p", hinge, "ground", "c", at_parent=1.0 * across)
    b.add_joint("p2", hinge, "b", "c", at_parent=1.1 * across, at_child=0.9 * across, loop=True)
    robot, t = b.build(), np.linspace(0.0, 4.0, 400)
    q = robot.follow({"m": 3 * t + 0.5 * np.sin(5 * t)})
    v = robot.complete_velocity(q, {"m": 3 + 2.5 * np.cos(5 * t)})
    a = robot.complete_acceleration(q, v, {"m": -12.5 * np.sin(5 * t)})
    u = robot.actuator_efforts(q, v, a)[:, 0] + 1e-3 * np.random.default_rng(0).standard_normal(400)
    found = identify(robot, Samples({"m": u}, q, v, a), terms={term: ["fast"]}, bodies=["a"])
    assert f"fast.{term}" in found.unseen


@pytest.mark.parametrize("cutoff", [5.0, 10.0])
def test_friction_is_not_biased_by_the_filter(cutoff):
    """The efforts' jumps at reversals are filtered, and so are the signs of velocities in the model."""
    robot, n = sarrus.mechanisms.four_bar(), 20001
    t, rng = np.linspace(0.0, 20.0, n), np.random.default_rng(0)
    parts = [(0.9, 2.0, 0.0), (0.4, 5.0, 1.0)]
    x, dx, ddx = (
        sum(size * rate**k * np.sin(rate * t + phase + k * np.pi / 2) for size, rate, phase in parts) for k in range(3)
    )
    q = robot.follow({"motor": x})
    v = robot.complete_velocity(q, {"motor": dx})
    a = robot.complete_acceleration(q, v, {"motor": ddx})
    real = robot.replace(damping={"motor": 0.1}, friction={"motor": 0.15})
    felt = real.actuator_efforts(q, v, a)[:, 0] + 0.02 * rng.standard_normal(n)
    data = Samples.from_joints(robot, t, {"motor": x + 1e-4 * rng.standard_normal(n)}, {"motor": felt}, cutoff=cutoff)
    every = data.rows(slice(None, None, 40))
    assert every.directions["motor"].shape == (len(every), 1)
    found = identify(robot, every, terms={"damping": ["motor"], "friction": ["motor"]})
    of = {name: k for k, name in enumerate(found.names)}
    for name, right in (("motor.damping", 0.1), ("motor.friction", 0.15)):
        k = of[name]
        assert abs(found.values[k] - right) < 3.0 * found.deviations[k]
    assert found.deviations[of["motor.friction"]] < 0.01


def test_readings_of_encoders_are_enough():
    """Positions are filtered and differentiated, and completed by the loops: friction of a four-bar within a percent, from 0.2 mrad of noise."""
    robot = sarrus.mechanisms.four_bar()
    real = robot.replace(damping={"motor": 0.5}, friction={"motor": 0.3})
    t = np.arange(0.0, 5.0, 0.005)
    angle, rate, bend = 0.5 + np.sin(3 * t) + 2 * t, 3 * np.cos(3 * t) + 2, -9 * np.sin(3 * t)
    q = robot.follow({"motor": angle})
    v = robot.complete_velocity(q, {"motor": rate})
    u = real.actuator_efforts(q, v, robot.complete_acceleration(q, v, {"motor": bend}))[:, 0]
    rng = np.random.default_rng(0)
    read, felt = angle + 2e-4 * rng.normal(size=len(t)), u + 0.05 * rng.normal(size=len(t))
    data = Samples.from_joints(robot, t, {"motor": read}, {"motor": felt}, cutoff=10.0)
    found = identify(
        robot, data.rows(slice(None, None, 2)), terms={"damping": ["motor"], "friction": ["motor"]}, bodies=[]
    )
    assert_allclose(found.values, [0.5, 0.3], rtol=0.03)


def test_runs_tell_what_equations_do():
    """A four-bar with a motor is identified from positions and velocities, without accelerations."""
    robot = sarrus.mechanisms.four_bar()
    real = robot.replace(
        damping={"motor": 0.5}, inertias={"crank": sarrus.Inertia.rod(1.3, (0, 0, 0), (0.4, 0, 0), 0.02)}
    )
    t = np.arange(301) / 200
    u = (8.0 * np.sin(9.0 * t) + 4.0)[:, None]
    run = sarrus.simulate(
        real, robot.assemble(), np.zeros(3), 1.5, sarrus.control.EffortTable(t, u, ["motor"]), dt=0.005
    )
    data = Samples({"motor": u}, run.q, run.v, t=run.t)
    found = identify_runs(robot, data, terms={"damping": ["motor"]}, bodies=["crank"])
    model = EffortModel(real, real.actuated, {"damping": ["motor"]}, ["crank"])
    assert_allclose(found.values, found._base.combination @ model.values, rtol=0, atol=1e-6)
    assert found.held_out.max() < 1e-6
    assert_allclose(found.robot.joint("motor").type.damping, 0.5, atol=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_units_do_not_matter_to_runs_and_motions(size):
    """A slider-crank, whose velocities have two units, with slightly wrong data, so that noise is weighed."""
    robot, (m, kg, s) = sarrus.mechanisms.slider_crank(), SIZES[size]
    t = np.arange(201) / 200
    u = (8.0 * np.sin(9.0 * t) + 4.0)[:, None]
    real = robot.replace(damping={"motor": 0.5})
    run = sarrus.simulate(
        real, robot.assemble(), np.zeros(3), 1.0, sarrus.control.EffortTable(t, u, ["motor"]), dt=0.005
    )
    v = run.v * (1.0 + 1e-4 * np.random.default_rng(0).normal(size=(len(t), 1)))
    data, asked = Samples({"motor": u}, run.q, v, t=run.t), {"terms": {"damping": ["motor"]}, "bodies": ["rod"]}
    there, same = in_other_units(robot, data, m, kg, s)
    agree_in_units(identify_runs(there, same, **asked), identify_runs(robot, data, **asked), m, kg)

    asked = {"rounds": 3, "samples": 20, "efforts": ["motor", "guide"]}
    motions = [
        exciting_motion(robot, {"motor": (0.2, 0.9)}, 2.0, **asked),
        exciting_motion(there, {"motor": (0.2, 0.9)}, 2.0 * s, **asked),
    ]
    assert_allclose(motions[1].condition, motions[0].condition, rtol=1e-3)


def shaken():
    """Return a four-bar on a base that is shaken, with springs and dampers in a hinge of the tree and in the loop joint."""
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_body("base", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("rail", sarrus.Prismatic("x"), "ground", "base", tree=True)
    b.add_prescribed_motion("shake", "rail", sarrus.laws.harmonic(0.05, rate=7.0))
    for name in ("motor", "pivot"):
        b.set_joint(name, parent="base")
    b.set_joint("pin2", joint=sarrus.Revolute("y", stiffness=2.0, damping=0.15), loop=True)
    return b.build()


def test_prescribed_motions_are_at_the_times_of_the_samples():
    """Data of a machine on a shaken base give its parameters; from encoders too; and motions are made whose loops are closed at their times."""
    robot, t = shaken(), np.linspace(0.0, 6.0, 1201)
    real = otherwise(robot, damping={"motor": 0.5, "pin2": 0.4})
    motor = 0.5 + 0.9 * np.sin(t) + 0.4 * np.sin(3 * t)
    q = robot.follow({"motor": motor}, time=t)
    v = robot.complete_velocity(q, {"motor": 0.9 * np.cos(t) + 1.2 * np.cos(3 * t)}, time=t)
    a = robot.complete_acceleration(q, v, {"motor": -0.9 * np.sin(t) - 3.6 * np.sin(3 * t)}, time=t)
    u, terms = real.actuator_efforts(q, v, a, time=t)[:, 0], {"damping": ["motor", "pin2"]}
    read = Samples.from_joints(robot, t, {"motor": motor}, {"motor": u}, cutoff=10.0, near=q[0])
    assert_allclose(read.q, robot.follow({"motor": np.interp(read.t, t, motor)}, q[0], time=read.t), rtol=0, atol=1e-4)
    for data, error in ((Samples({"motor": u}, q, v, a, t), 1e-6), (read, 1e-2)):
        found = identify(robot, data, terms=terms)
        assert_allclose(found.values[:2], [0.5, 0.4], rtol=error)
        assert_allclose(found.robot.actuator_efforts(q, v, a, time=t)[:, 0], u, rtol=0, atol=error * np.abs(u).max())
    motion = exciting_motion(robot, {"motor": (0.2, 0.8)}, 2.0, near=q[0], rounds=1, samples=20)
    assert np.abs(robot.constraint_residual(motion.q, time=motion.t)).max() < 1e-9
    with pytest.raises(sarrus.ModelError, match="prescribed motions"):
        identify_runs(robot, Samples({"motor": u}, q, v, t=t))


def test_a_motion_is_made_that_tells_more():
    robot = sarrus.mechanisms.five_bar()
    home = robot.joint_states(robot.assemble()).q
    ranges = {name: (home[name][0] - 0.4, home[name][0] + 0.4) for name in robot.actuated}
    motion = exciting_motion(robot, ranges, 2.0, rounds=10, samples=30, terms={"damping": list(ranges)})
    assert motion.condition < 0.85 * motion.first_condition  # the best of 24 at random
    assert np.abs(robot.constraint_residual(motion.q)).max() < 1e-9
    finer = motion.joints(np.linspace(0.0, 2.0, 500))
    for name, (low, high) in ranges.items():
        assert low - 0.05 < finer[name].min() and finer[name].max() < high + 0.05
        assert_allclose(finer[name][0], finer[name][-1], atol=1e-12)
    q = robot.follow(motion.joints(motion.t))
    assert_allclose(q, motion.q, atol=1e-9)


def four_bar_samples(**changes):
    robot = sarrus.mechanisms.four_bar()
    q, v, a = states(robot, 100)
    parts = {"efforts": {"motor": np.zeros(100)}, "q": q, "v": v, "a": a} | changes
    return robot, Samples(**parts)


REFUSED = {
    "no mapping": (lambda: four_bar_samples(efforts=[1.0]), TypeError, "mapping of joints"),
    "rows": (lambda: four_bar_samples(efforts={"motor": np.zeros(5)}), sarrus.ShapeError, "100 rows of q"),
    "not finite": (
        lambda: four_bar_samples(efforts={"motor": np.full(100, np.nan)}),
        sarrus.ShapeError,
        "finite; row 0",
    ),
    "no joint": (
        lambda: identify(*four_bar_samples(efforts={"motr": np.zeros(100)})),
        sarrus.NameNotFoundError,
        "did you mean 'motor'",
    ),
    "no body": (lambda: identify(*four_bar_samples(), bodies=["crankk"]), sarrus.NameNotFoundError, "crank"),
    "no term": (
        lambda: identify(*four_bar_samples(), terms={"drag": ["motor"]}),
        sarrus.ModelError,
        "damping, friction",
    ),
    "held out": (lambda: identify(*four_bar_samples(), held_out=0.9), ValueError, "0 to 0.5"),
    "held out of runs": (
        lambda: identify_runs(*four_bar_samples(t=np.arange(100.0)), held_out=1.0),
        ValueError,
        "0 to 0.5",
    ),
    "off the loops": (
        lambda: identify(*four_bar_samples(q=np.random.default_rng(0).normal(size=(100, 3)))),
        sarrus.StateError,
        "violates the loops",
    ),
    "no accelerations": (lambda: identify(*four_bar_samples(a=None)), sarrus.ModelError, "identify_runs"),
    "too few": (
        lambda: identify(*(lambda r, d: (r, d.rows(slice(8))))(*four_bar_samples())),
        sarrus.ModelError,
        "too few",
    ),
    "no times": (lambda: identify_runs(*four_bar_samples()), sarrus.ModelError, "times"),
    "no samples": (lambda: identify(sarrus.mechanisms.four_bar(), {"motor": [0.0]}), TypeError, "Samples"),
    "no samples of runs": (lambda: identify_runs(sarrus.mechanisms.four_bar(), None), TypeError, "Samples"),
    "uneven": (
        lambda: Samples.from_joints(
            sarrus.mechanisms.four_bar(), [0, 1, 3], {"motor": [0, 0, 0]}, {"motor": [0, 0, 0]}, cutoff=1.0
        ),
        sarrus.ShapeError,
        "evenly",
    ),
    "short": (
        lambda: Samples.from_joints(
            sarrus.mechanisms.four_bar(), [0, 1, 2], {"motor": [0, 0, 0]}, {"motor": [0, 0, 0]}, cutoff=1.0
        ),
        sarrus.ModelError,
        "twelve|12 periods",
    ),
    "nothing told": (
        lambda: identify(*four_bar_samples(), bodies=[], terms={}),
        sarrus.ModelError,
        "do not depend on the parameters",
    ),
    "of no mechanism": (lambda: identify(*four_bar_samples()).of(np.ones(3)), TypeError, "robot must be a Mechanism"),
    "terms of no joints": (
        lambda: identify(*four_bar_samples(), terms={"damping": 5}),
        TypeError,
        "joints of 'damping' must be names",
    ),
    "no q": (lambda: Samples({"motor": [0.0]}, None, [[0.0]]), sarrus.ShapeError, "q needs one row for one sample"),
    "rows of none": (lambda: four_bar_samples()[1].rows([[1, 2], [3]]), IndexError, "selection must be a slice"),
    "no ranges": (
        lambda: exciting_motion(sarrus.mechanisms.four_bar(), {}, 1.0),
        TypeError,
        "ranges must be a mapping",
    ),
    "one end": (
        lambda: exciting_motion(sarrus.mechanisms.four_bar(), {"motor": 1.0}, 1.0),
        sarrus.ShapeError,
        "lowest, highest",
    ),
    "endless": (
        lambda: exciting_motion(sarrus.mechanisms.four_bar(), {"motor": (0.0, np.inf)}, 1.0),
        sarrus.ModelError,
        "lowest, highest",
    ),
    "one time": (
        lambda: exciting_motion(sarrus.mechanisms.four_bar(), {"motor": (0.0, 1.0)}, 1.0, samples=10, rounds=1).joints(
            0.0
        ),
        sarrus.ShapeError,
        "times",
    ),
    "ranges": (
        lambda: exciting_motion(sarrus.mechanisms.four_bar(), {"motor": (1.0, 0.0)}, 1.0),
        sarrus.ModelError,
        "lowest, highest",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
