"""Terms along loop joints: they have the same effect as along tree joints, and no result depends on the spanning tree."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sarrus
from sarrus.control import PID, EndStop, FeedforwardEffort, LuGreFriction, ReactionWheel
from tests.effort import examples
from tests.laws.test_choice_laws import recut
from tests.laws.test_laws import assert_equal
from tests.laws.test_substructure_laws import CHAINS, in_two_ways
from tests.random_closed import CLOSING, closed_mechanisms
from tests.random_mechanisms import seeds

# of accelerations and forces, relative to the largest: the same equations, solved in other coordinates
RECUT = 1e-9

law = examples(20)
TREE_JOINTS = tuple(kind for kind in CLOSING if kind != "fixed")


def with_terms(closed, rng, *names):
    """Return the same mechanism with terms in every joint; dry friction only if it slips, because rounding determines its direction at rest."""
    here = closed.in_other_tree(closed.description, closed.robot.loop_joints)
    velocities = here.robot.joint_states(here.q, here.v, time=here.time).v

    def filled(spec):
        joint, x = spec.joint, closed.coordinates[spec.name]
        if joint.nv == 0 or spec.laws:
            return spec
        terms = {name: rng.uniform(0.1, 1.0, joint.nv) for name in names if name != "stiffness"}
        if "friction" in names:
            terms["friction"] *= np.abs(velocities[spec.name]) > 1e-6
        if "stiffness" in names and joint.kind == "Spherical":
            terms["stiffness"] = rng.uniform(1.0, 10.0)
        elif "stiffness" in names and joint.kind != "Free":
            along = (
                [0, 0, 1] if joint.kind == "Planar" else np.ones(joint.nv)
            )  # where velocities are rates of coordinates
            terms["stiffness"] = rng.uniform(1.0, 10.0, joint.nv) * along
            # near where it stands: a pose does not tell whole turns
            terms["rest"] = (x + rng.uniform(-0.3, 0.3, joint.nv)) * along
        return dataclasses.replace(spec, joint=dataclasses.replace(joint, **terms))

    d = dataclasses.replace(closed.description, joints=tuple(map(filled, closed.description.joints)))
    return dataclasses.replace(closed, description=d)


def cuts(closed, rng, *names, count=3):
    """Return the same state of the same mechanism, with terms in every joint, for several spanning trees."""
    closed = with_terms(closed, rng, *names)
    first = closed.in_other_tree(closed.description, closed.robot.loop_joints)
    return [first, *(recut(closed, rng) for _ in range(count - 1))]


RECUTS = closed_mechanisms(hints=False, copies=st.just(0), kinds=CLOSING)
TERMS = ("damping", "friction", "stiffness", "armature")
SETS = st.sampled_from([*((name,) for name in TERMS), TERMS])


def compared(answers, scale=1.0):
    """Check that all results equal the first one."""
    for other in answers[1:]:
        for mine, theirs in zip(answers[0], other, strict=True):
            assert_equal(theirs, mine, RECUT, scale=max(scale, np.abs(mine).max(initial=1.0)))


@law
@given(RECUTS, seeds(), SETS)
def test_motion_and_energy(closed, seed, names):
    """Accelerations of all bodies, energies, work of the required efforts, and the joints' coordinates, rates and accelerations."""
    answers = []
    for one in cuts(closed, np.random.default_rng(seed), *names):
        robot, q, v = one.robot, one.q, one.v
        assert robot.warnings == ()
        a = robot.forward_dynamics(q, v, one.tau)
        answers.append(
            [
                np.concatenate([robot.acceleration(q, v, a, body) for body in sorted(robot.bodies)]),
                robot.inverse_dynamics(q, v, a) @ v,
                robot.kinetic_energy(q, v),
                robot.potential_energy(q),
            ]
        )
        joints = (
            robot.joint_states(q, near=closed.coordinates).q,
            robot.joint_states(q, v, near=closed.coordinates).v,
            robot.joint_states(q, v, a, near=closed.coordinates).a,
        )
        for spec in sorted(closed.description.joints, key=lambda spec: spec.name):
            x, *rates = (found[spec.name] for found in joints)
            if spec.joint.quaternion:  # q and -q are one rotation
                x = np.concatenate([x[:4] * np.sign(x[3]), x[4:]])
            answers[-1] += [x, *rates]
    compared(answers, scale=np.abs(answers[0][0]).max(initial=1.0))


@law
@given(RECUTS, seeds())
def test_what_joints_carry(closed, seed):
    """The full wrench of every joint, including its part along the joint's axes, as a tree joint and as a loop joint."""
    answers, unique = [], []
    for one in cuts(closed, np.random.default_rng(seed), *TERMS):
        robot, q, v = one.robot, one.q, one.v
        a, loops = robot.forward_dynamics(q, v, np.zeros(robot.nv), return_reactions=True)
        known = (
            loops.wrenches | sarrus.formulations.reactions(robot, q, v, a, multipliers=loops.multipliers)
            if robot.nc
            else {}
        )
        found = []
        for spec in sorted(robot.description.joints, key=lambda spec: spec.name) if known else ():
            back = robot.joint(spec.name).reversed and spec.name in robot.joints
            body, at = (spec.parent, spec.at_parent) if back else (spec.child, spec.at_child)
            pose = robot.pose(q, body) @ at.matrix
            moment, force = pose[:3, :3] @ known[spec.name][:3], pose[:3, :3] @ known[spec.name][3:]
            found.append((-1 if back else 1) * np.concatenate([moment + np.cross(pose[:3, 3], force), force]))
        answers.append(found)
        unique.append(robot.mobility(q).unique_reactions)
    heaviest = np.abs([x for found in answers for x in found] or [0.0]).max()
    for found, theirs in zip(answers[1:], unique[1:], strict=True):
        assert theirs == unique[0]
        for spec, mine, other in zip(
            sorted(closed.description.joints, key=lambda spec: spec.name), answers[0], found, strict=False
        ):
            if unique[0][spec.name]:
                assert_equal(other, mine, RECUT, heaviest)


@law
@given(RECUTS, seeds())
def test_armature_of_closing_joints_is_inertia(closed, seed):
    """M of the joints that they couple: tau = M a + h, its inverse, 1/2 v^T M v, and the Coriolis matrix, which gives the bias forces."""
    rng = np.random.default_rng(seed)
    one = with_terms(closed, rng, "armature")
    one = one.in_other_tree(one.description, one.robot.loop_joints)
    robot, q, v = one.robot, one.q, one.v
    a = rng.normal(size=robot.nv)
    M, h, C = robot.mass_matrix(q), robot.bias_forces(q, v), robot.coriolis_matrix(q, v)
    scale = np.abs(M).max()
    assert_equal(robot.inverse_dynamics(q, v, a), M @ a + h, RECUT, scale=np.abs(h).max(initial=scale))
    assert_equal(robot.mass_matrix_inverse(q) @ M, np.eye(robot.nv), 1e-7)
    assert_equal(robot.kinetic_energy(q, v), 0.5 * v @ M @ v, RECUT)
    assert_equal(h, C @ v + robot.gravity_forces(q), RECUT, scale=np.abs(C).max(initial=1.0))
    step = 1e-5 / max(1.0, np.abs(v).sum())
    ahead, behind = (robot.mass_matrix(robot.integrate(q, sign * step * v)) for sign in (1, -1))
    skew = (ahead - behind) / (2 * step) - 2 * C
    assert_equal(skew, -skew.T, 1e-4, scale=np.abs(C).max(initial=scale))
    frame = robot.frames[-1]
    J = robot.jacobian(q, frame)
    assert_equal(
        J @ sarrus.formulations.omega(robot, q, frame), J @ np.linalg.solve(M, J.T), 1e-7, scale=np.abs(J).max()
    )


@law
@given(RECUTS, seeds())
def test_other_forms_of_the_equations(closed, seed):
    """Projected equations, equations in independent coordinates, and the nearest velocity on the loops."""
    rng = np.random.default_rng(seed)
    one = with_terms(closed, rng, *TERMS)
    robot, q, v = one.robot, one.q, one.v
    one = one.in_other_tree(one.description, robot.loop_joints)
    q, v, tau = one.q, one.v, one.tau
    a = robot.forward_dynamics(q, v, tau)
    scale = np.abs(a).max(initial=1.0)
    assert_equal(sarrus.formulations.projected_dynamics(robot, q, v, tau).acceleration, a, 1e-7, scale=scale)
    if robot.nc:
        form = sarrus.formulations.reduced_dynamics(robot, q, v)
        assert_equal(form.full_acceleration(form.forward(form.jacobian.T @ tau)), a, 1e-6, scale=scale)
        P = sarrus.formulations.projections(robot, q)[1]
        w = rng.normal(size=robot.nv)
        assert_equal(robot.project_velocity(q, w), P @ w, 1e-7, scale=np.abs(P).max() * 3)


@pytest.mark.parametrize("armature", [0.0, 0.3])
def test_derivatives_of_the_effort_of_a_slider_that_closes_the_loop(armature):
    """For one state and for several, along consistent motions."""
    b = sarrus.Builder(gravity=(0, -9.81, 0))
    for name, parent, length, at in (
        ("crank", "ground", 0.4, 0.0),
        ("rod", "crank", 1.1, 0.4),
        ("slider", "rod", 0.2, 1.1),
    ):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
        b.add_joint(f"{name} pin", sarrus.Revolute("z"), parent, name, at_parent=(at, 0, 0))
    slide = sarrus.Prismatic("x", armature=armature)
    b.add_joint("slide", slide, "slider", "ground", at_child=(0.2, 0.1, 0), loop=True, actuated=True)
    robot, rng = b.build(), np.random.default_rng(0)
    q = robot.assemble(fixed={"crank pin": 0.8})
    v, dq = (robot.project_velocity(q, x) for x in rng.normal(size=(2, robot.nv)))
    tau = rng.normal(size=robot.nv)

    def state(s):
        at = robot.project_configuration(robot.integrate(q, s * dq))
        rate = robot.project_velocity(at, v)
        return at, rate, robot.forward_dynamics(at, rate, tau)

    (q0, v0, a0), (q1, v1, a1) = state(-1e-5), state(1e-5)
    changes = robot.difference(q0, q1), v1 - v0, a1 - a0
    wanted = robot.actuator_efforts(q1, v1, a1) - robot.actuator_efforts(q0, v0, a0)
    here = [np.tile(x, (5, 1)) for x in state(0.0)]
    D = sarrus.derivatives.actuator_efforts(robot, *here)
    found = sum((x @ d[..., None])[..., 0] for x, d in zip((D.q, D.v, D.a), changes, strict=True))
    np.testing.assert_allclose(found, np.tile(wanted, (5, 1)), rtol=1e-7)


@law
@given(
    closed_mechanisms(
        hints=False, copies=st.just(0), kinds=CLOSING, joints=("revolute", "cylindrical", "universal", "planar")
    ),
    seeds(),
)
def test_efforts_of_motors_in_any_joint(closed, seed):
    """Efforts of motors in all joints cause the original motion, and those of least norm are equal."""
    answers = []
    for one in cuts(closed, np.random.default_rng(seed), *TERMS):
        robot, q, v = one.robot, one.q, one.v
        motors = sorted(spec.name for spec in closed.description.joints if spec.joint.nv)
        u = np.linspace(1.0, 2.0, sum(robot.joint(name).type.nv for name in motors))
        a = robot.forward_dynamics(q, v, robot.actuation_matrix(q, actuated=motors) @ u)
        found = robot.actuator_efforts(q, v, a, actuated=motors)
        driven = [
            dataclasses.replace(
                s, actuated=s.name in motors, tree=s.name in robot.joints, loop=s.name in robot.loop_joints
            )
            for s in sorted(one.description.joints, key=lambda s: s.name)
        ]
        same = sarrus.Mechanism(dataclasses.replace(one.description, joints=tuple(driven)))
        assert same.loop_joints == tuple(sorted(robot.loop_joints))
        places = [same.joint(name) for name in same.joints]
        x, w, b = (
            np.concatenate([np.zeros(0), *(y[getattr(robot.joint(j.name), at)] for j in places)])
            for y, at in ((q, "q_slice"), (v, "v_slice"), (a, "v_slice"))
        )
        answers.append([found, same.actuator_efforts(x, w, b)])
    compared(answers, scale=max(np.abs(found).max() for found, _ in answers))


@law
@given(
    closed_mechanisms(hints=False, copies=st.just(0), kinds=CLOSING, joints=st.just(CHAINS)), st.integers(1, 2), seeds()
)
def test_terms_in_substructures(closed, bodies, seed):
    """The solver by substructures includes these terms."""
    rng = np.random.default_rng(seed)
    one = with_terms(closed, rng, *TERMS)
    one = one.in_other_tree(one.description, one.robot.loop_joints)
    q, v, tau, w = one.q, one.v, one.tau, rng.normal(size=len(one.v))
    answers = []
    for robot in in_two_ways(one.description, bodies):
        a, loops = robot.forward_dynamics(q, v, tau, return_reactions=True)
        names = [spec.name for spec in one.description.joints if spec.joint.nv]
        u = robot.actuator_efforts(q, v, a, actuated=names)
        answers.append([a, loops.multipliers, robot.project_velocity(q, w), robot.impact(q, w)[0], u])
    compared(answers, scale=max(np.abs(x).max(initial=0.0) for x in answers[0]))


# ---- a four-bar, cut at each of its pins ---------------------------------------------------------------------------------

PINS = {  # parent, child, where in either
    "motor": ("ground", "crank", 0.0, 0.0),
    "pin1": ("crank", "coupler", 0.4, 0.0),
    "pin2": ("coupler", "rocker", 1.1, 0.9),
    "pivot": ("ground", "rocker", 1.0, 0.0),
}


def four_bar(closing, *, actuated=(), pins=None, **terms):
    """Return the README's four-bar with this pin as loop joint, and with terms for all pins or for one of them."""
    b = sarrus.Builder("four-bar")
    for name, length in {"crank": 0.4, "coupler": 1.1, "rocker": 0.9}.items():
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)))
    for name, (parent, child, at_parent, at_child) in PINS.items():
        joint = sarrus.Revolute("y", **(terms | (pins or {}).get(name, {})))
        ends = {"at_parent": (at_parent, 0, 0), "at_child": (at_child, 0, 0)}
        b.add_joint(
            name, joint, parent, child, **ends, loop=name == closing, tree=name != closing, actuated=name in actuated
        )
    return b.build()


def state(robot, crank=0.5, rate=1.0):
    """Return (q, v) with the crank at an angle and rotating, and bars that do not cross, for any loop joint."""
    known = four_bar("pin2")
    q = known.assemble(near={"pin1": -1.744, "pivot": -1.906}, fixed={"motor": crank})
    v = known.complete_velocity(q, {"motor": rate})
    states = known.joint_states(q, v)
    x, w = states.q, states.v
    return tuple(np.concatenate([y[name] for name in robot.joints]) for y in (x, w))


@pytest.mark.parametrize(
    "terms", [{"damping": 0.3}, {"armature": 0.7}, {"friction": 0.4}, {"stiffness": 5.0, "rest": 0.2}]
)
def test_one_number_for_the_crank(terms):
    found = []
    for closing in PINS:
        robot = four_bar(closing, **terms)
        q, v = state(robot)
        a = robot.forward_dynamics(q, v, np.zeros(3))
        found.append(
            [robot.joint_states(q, v, a).a["motor"].item(), robot.kinetic_energy(q, v) + robot.potential_energy(q)]
        )
    assert np.ptp(found, axis=0).max() < RECUT * np.abs(found).max()
    plain = four_bar("pin2")
    q, v = state(plain)
    assert abs(found[0][0] - plain.forward_dynamics(q, v, np.zeros(3))[0]) > 0.05


ELEMENTS = {
    "PID": lambda name: PID(name, 20.0, 5.0, 2.0, target=-1.0, limits=(-15.0, 15.0)),
    "effort": lambda name: FeedforwardEffort(name, 2.0),
    "LuGreFriction": lambda name: LuGreFriction(name, 0.5, 0.8, 0.05, 200.0),
    "EndStop": lambda name: EndStop(name, (-1.7, -0.7), 400.0, 5.0),
    "ReactionWheel": lambda name: ReactionWheel(name, 4.0, 2.0, 0.3),
}


@pytest.mark.parametrize("name", ["pin1", "pin2", "pivot"])
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_force_elements_act_by_the_name_of_a_joint(name, element, method):
    """Any pin may be the loop joint, including the named one."""
    ends, how = [], {"method": method, "dt": 1e-3} | ({"rtol": 1e-9, "atol": 1e-9} if method == "dopri5" else {})
    for closing in ("pin2", "pin1", "pivot"):
        robot = four_bar(closing, damping=0.1)
        run = sarrus.simulate(robot, *state(robot), 0.4, ELEMENTS[element](name), **how)
        free = sarrus.simulate(robot, *state(robot), 0.4, **how)
        ends.append(np.concatenate([run.joint(pin)[-1] for pin in PINS]))
        moved = np.abs(run.joint("motor")[-1] - free.joint("motor")[-1]).max()
    assert np.ptp(ends, axis=0).max() < 1e-6  # steps on other coordinates are off by other errors
    assert moved > 1e-3


def test_limits_of_a_pin_wherever_it_stands():
    """assemble() respects limits; a run that exceeds them warns with the excess, and limits="enforce" enforces them, as effort limits do."""
    said, stopped = [], []
    for closing in ("pin2", "pivot", "pin1"):
        robot = four_bar(closing, pins={"pin2": {"limits": (-3.1, -0.01), "velocity_limit": 0.1, "effort_limit": 1.0}})
        found = robot.assemble(near={"motor": 0.5} if closing != "motor" else None)
        assert -3.1 <= robot.joint_states(found).q["pin2"].item() <= -0.01
        tight = four_bar(closing, pins={"pin2": {"limits": (-0.8, -0.55), "effort_limit": 1.0}})
        drive = PID("pin2", 100.0, target=-2.0)
        with pytest.warns(sarrus.LimitWarning, match="of joint 'pin2' leaves its limits"):
            run = sarrus.simulate(tight, *state(tight), 0.3, drive, dt=1e-3)
        said.append([(x["quantity"], round(x["reached"], 5), x["lower"]) for x in run.statistics["limits"]])
        run = sarrus.simulate(tight, *state(tight), 0.3, drive, dt=1e-3, limits="enforce")
        stopped.append(run.joint("pin2")[:, 0])
    assert {x[0] for x in said[0]} == {"position", "effort"} and said[0] == said[1] == said[2]
    for angles in stopped:
        assert (
            -0.83 < angles.min() < -0.8 - 1e-4
        )  # how deep: an end stop's own stiffness is from the inertia that the tree has there


def test_turns_are_counted_from_a_state():
    """The turns of a full-rotation crank with its pin as loop joint: from sample to sample, and nearest to given coordinates."""
    robot = four_bar("motor")
    path = four_bar("pin2").follow(
        {"motor": np.linspace(0.5, 0.5 + 4 * np.pi, 90)}, near={"pin1": -1.744, "pivot": -1.906}
    )
    q = np.concatenate([path[:, 1:], four_bar("pin2").joint_states(path).q["pin2"]], axis=-1)
    order = {"pin1": 0, "pivot": 1, "pin2": 2}
    q = q[:, [order[name] for name in robot.joints]]
    near, turned = None, []
    for x in q:
        near = robot.joint_states(x, near=near).q
        turned.append(near["motor"].item())
    np.testing.assert_allclose(turned, np.linspace(0.5, 0.5 + 4 * np.pi, 90), atol=1e-9)
    run = sarrus.Trajectory(robot, np.arange(90.0), q, np.zeros((90, 3)))
    np.testing.assert_allclose(run.joint("motor")[:, 0], turned, atol=1e-9)


def test_reference_member_with_terms():
    """The algorithm of chapter 6 includes forces along loop joints, and rejects their armature."""
    for closing in PINS:
        robot = four_bar(closing, damping=0.3, stiffness=2.0)
        q, v = state(robot)
        np.testing.assert_allclose(
            robot.forward_dynamics(q, v, np.ones(3), solver="reference-member"),
            robot.forward_dynamics(q, v, np.ones(3)),
            atol=1e-9,
        )
        with pytest.raises(sarrus.ModelError, match=f"armature of a loop joint, such as '{closing}'"):
            four_bar(closing, armature=0.3).forward_dynamics(q, v, np.ones(3), solver="reference-member")


@pytest.mark.parametrize("led", ["motor", "pin1", "pin2", "pivot"])
def test_any_joint_leads_by_its_name(led):
    """Configurations, rates, paths and assembly modes are equal for a given tree joint or loop joint."""
    robots = {closing: four_bar(closing) for closing in ("motor", "pin1", "pin2", "pivot")}
    x = robots["pin2"].joint_states(state(robots["pin2"])[0]).q[led][0]
    bodies = robots["pin2"].bodies

    def seen(robot, q):
        return np.array([robot.pose(q, body) for body in bodies])

    def rates(robot, of_joints):
        return np.array([of_joints[name][0] for name in robot._joints])

    answers = []
    for robot in robots.values():
        near = state(robot)[0]
        with_led = robot.assemble(near, fixed={led: x + 0.01})
        assert robot.joint_states(with_led).q[led][0] == pytest.approx(x + 0.01, abs=1e-12)
        assert np.abs(robot.constraint_residual(with_led)).max() < 1e-12
        many = robot.assemble(near, fixed={led: x + np.array([0.01, 0.02])})
        np.testing.assert_allclose(many[0], with_led, atol=1e-11)
        turning = robot.complete_velocity(near, {led: 2.0})
        speeding = robot.complete_acceleration(near, turning, {led: 3.0})
        path = robot.follow({led: x + np.linspace(0.0, 0.03, 5)}, near)
        modes = robot.assembly_modes(fixed={led: x})
        answers.append(
            (
                seen(robot, with_led),
                rates(robot, robot.joint_states(near, turning).v),
                rates(robot, robot.joint_states(near, turning, speeding).a),
                np.array([seen(robot, one) for one in path]),
                np.array(sorted(seen(robot, one).ravel().round(9).tolist() for one in modes)),
            )
        )
    compared(answers)
    assert answers[0][1][list(robots["pin2"]._joints).index(led)] == pytest.approx(2.0)


def test_a_closing_joint_goes_round():
    """A crank that is a loop joint makes two turns and returns, without jumps of the tree joints."""
    robot = four_bar("motor")
    q = robot.follow({"motor": 0.5 + np.linspace(0.0, 4.0 * np.pi, 61)})
    assert np.abs(np.diff(q, axis=0)).max() < 0.5
    np.testing.assert_allclose(
        [robot.pose(q[k], "coupler") for k in (0, -1)], [robot.pose(q[30], "coupler")] * 2, atol=1e-9
    )
    out = np.empty((2, robot.nq))
    found, status = robot.assemble(q[:2], fixed={"motor": [0.5, 0.6]}, out=out, return_status=True)
    assert found is out
    assert status.tolist() == [0, 0]
    with pytest.raises(sarrus.AssemblyError, match="branch ends") as end:
        four_bar("pivot").follow({"pivot": np.linspace(-1.6, -1.0, 31)}, near={"motor": 0.5})
    assert end.value.path.shape[1] == 3
    with pytest.raises(sarrus.ModelError, match="they form a loop"):
        robot.assemble(fixed=dict.fromkeys(["motor", "pin1", "pin2", "pivot"], 0.1))


def other_trees(robot):
    """Return the mechanism on other trees, each of which contains one of the loop joints."""
    d = robot.description
    related = {name for spec in d.constraints for name in spec.joints_related}
    for name in robot.loop_joints:
        if robot.joint(name).type.nv == 0 or robot.joint(name).type.kind in ("Fixed", "Free"):
            continue
        joints = tuple(
            dataclasses.replace(j, tree=j.name in {name, *related}, loop=bool(j.laws))
            for j in sorted(d.joints, key=lambda j: j.name)
        )
        try:
            yield sarrus.Mechanism(dataclasses.replace(d, joints=joints, home=(), configurations=()))
        except sarrus.ModelError:  # a joint that laws of time carry along closes its loop wherever it is
            continue


@law
@given(RECUTS, seeds())
def test_states_are_equal_in_any_tree(closed, seed):
    """Coordinates of the joints of another tree determine those of all joints, and their rates determine all rates."""
    here = recut(closed, np.random.default_rng(seed))
    robot, q, v = here.robot, here.q, here.v
    a = robot.forward_dynamics(q, v, here.tau)
    states = robot.joint_states(q, v, a)
    for other in other_trees(robot):
        rates = {name: states.v[name] for name in other.joints}
        speeding = {name: states.a[name] for name in other.joints}
        compared(
            [
                [q, v, a],
                [
                    robot.assemble(q, fixed={name: states.q[name] for name in other.joints}),
                    robot.complete_velocity(q, rates),
                    robot.complete_acceleration(q, v, speeding),
                ],
            ]
        )


@law
@given(RECUTS, seeds())
def test_configurations_led_by_any_joints(closed, seed):
    """If all joints of another tree are moved a little, mechanisms on any tree close in the same configuration, single or batch, from nearby or by a path."""
    rng = np.random.default_rng(seed)
    here = recut(closed, rng)
    robot, q = here.robot, here.q
    aside = robot.project_configuration(robot.integrate(q, 1e-3 * rng.normal(size=robot.nv)), metric="euclidean")
    for other in other_trees(robot):
        now, goal = (robot.joint_states(x).q for x in (q, aside))
        fixed = {name: goal[name] for name in other.joints}
        compared(
            [
                [aside] * 3,
                [
                    robot.assemble(q, fixed=fixed),
                    robot.assemble(np.stack([q, q]), fixed=fixed)[1],
                    robot.project_configuration(
                        robot.assemble(aside, fixed=fixed), locked=list(other.joints), metric="euclidean"
                    ),
                ],
            ]
        )
        for name in set(other.joints) & set(robot.loop_joints):
            path = robot.follow({name: np.stack([now[name], goal[name]])}, q)
            there = robot.joint_states(path[-1], near=goal).q[name]
            if robot.joint(name).type.quaternion:
                there = there * np.sign(there[:4] @ goal[name][:4])
            np.testing.assert_allclose(there, goal[name], atol=RECUT)
            assert np.abs(robot.constraint_residual(path)).max() < RECUT


def without_rounding(V):
    """Return zeros for the velocity of a body that the loops hold: its rounding errors, as a target, contradict the loops by as much as themselves."""
    return V if np.abs(V).max() > RECUT else np.zeros_like(V)


@law
@given(closed_mechanisms(), seeds())
def test_frames_are_led_by_their_rates(closed, seed):
    """A frame with its own velocity and acceleration as target moves as before, in either axes, with rotation, translation or both."""
    robot, q, v = closed.robot, closed.q, closed.v
    a = robot.forward_dynamics(q, v, closed.tau, time=closed.time)
    frame = sorted(robot.bodies)[seed % len(robot.bodies)]
    for axes in ("frame", "world_aligned"):
        V = without_rounding(robot.velocity(q, v, frame, expressed_in=axes))
        A = robot.acceleration(q, v, a, frame, expressed_in=axes)
        for part in (slice(0, 6), slice(3, 6)):
            v_ = robot.complete_velocity(q, {}, frames={frame: V[part]}, expressed_in=axes, time=closed.time)
            assert_equal(
                robot.velocity(q, v_, frame, expressed_in=axes)[part], V[part], RECUT, max(1.0, np.abs(V).max())
            )
            a_ = robot.complete_acceleration(q, v, {}, frames={frame: A[part]}, expressed_in=axes, time=closed.time)
            A_ = robot.acceleration(q, v, a_, frame, expressed_in=axes)
            assert_equal(A_[part], A[part], RECUT, max(1.0, np.abs(A).max()))
            for x, c in (
                (v_, robot.constraint_velocity(q, time=closed.time)),
                (a_, robot.constraint_bias(q, v, time=closed.time)),
            ):
                J = robot.constraint_jacobian(q, time=closed.time)
                assert_equal(J @ x, c, RECUT, max(1.0, np.abs(c).max()))
    both, status = robot.complete_velocity(
        np.stack([q, q]),
        {},
        frames={frame: np.stack([V, np.nan * V])},
        return_status=True,
        expressed_in=axes,
        time=closed.time,
    )
    assert status[0] == 0
    assert status[1] != 0
    assert np.isnan(both[1]).all()


def test_the_other_set_of_angles():
    """A gimbal follows a parallel one with the other set of angles for the same rotation; its rates are those of its own angles."""
    b = sarrus.Builder()
    b.add_body("plate", sarrus.Inertia.box(1.0, (0.3, 0.2, 0.1)))
    b.add_joint("A", sarrus.Gimbal("rx ry rz"), "ground", "plate", tree=True)
    b.add_joint("B", sarrus.Gimbal("rx ry rz"), "ground", "plate", loop=True)
    robot = b.build()
    q, w = np.array([2.5, 2.0, -2.4]), np.array([0.5, -0.7, 1.1])  # nearer to zeros it is (-0.64, 1.14, 0.74)
    v = robot.complete_velocity(q, {"B": w})
    np.testing.assert_allclose(robot.joint_states(q, v).v["B"], w, atol=1e-12)
    np.testing.assert_allclose(v, [0.5, 0.7, 1.1], atol=1e-12)
    near = {"B": q}
    np.testing.assert_allclose(robot.joint_states(q, near=near).q["B"], q, atol=1e-12)
    np.testing.assert_allclose(robot.joint_states(q, v, near=near).v["B"], v, atol=1e-12)
    a = robot.complete_acceleration(q, v, {"B": w})
    np.testing.assert_allclose(robot.joint_states(q, v, a).a["B"], w, atol=1e-12)
    np.testing.assert_allclose(robot.joint_states(q, v, a, near=near).a["B"], a, atol=1e-12)


def test_paths_go_on_where_joints_have_two_ways_to_say_it():
    """With parallel input joints, a gimbal's middle angle passes a quarter turn, and a ball's quaternion half a turn."""
    through = np.linspace(0.0, 4.0, 81)
    for joint, far in ((sarrus.Gimbal("rx ry rz"), 4.0), (sarrus.Spherical(), np.pi + 1.0)):
        b = sarrus.Builder()
        b.add_body("plate", sarrus.Inertia.box(1.0, (0.3, 0.2, 0.1)))
        b.add_joint("A", joint, "ground", "plate", tree=True)
        b.add_joint("B", sarrus.Revolute("y"), "ground", "plate", loop=True)
        robot = b.build()
        q = robot.follow({"B": through * far / 4.0})
        assert np.abs(np.diff(q, axis=0)).max() < 0.1
        assert np.abs(robot.constraint_residual(q)).max() < 1e-12


def test_all_joints_as_a_guess():
    """The result of joint_states is a valid initial guess, although its coordinates are dependent; fixed coordinates are respected."""
    for closing in ("motor", "pin2"):
        robot = four_bar(closing)
        q = state(robot)[0]
        guess = robot.joint_states(q).q
        np.testing.assert_allclose(robot.assemble(guess), q, atol=1e-10)
        for led in ("pin1", "pin2", "pivot"):
            found = robot.assemble(guess, fixed={led: guess[led] + 0.01})
            assert robot.joint_states(found).q[led] == pytest.approx(guess[led] + 0.01, abs=1e-12)
            assert np.abs(found - q).max() < 0.1
            path = robot.follow({led: guess[led] + np.linspace(0.0, 0.01, 3)}, guess)
            np.testing.assert_allclose(path[-1], found, atol=1e-9)
        many = {name: np.stack([x, x]) for name, x in guess.items()}
        np.testing.assert_allclose(robot.assemble(many), [q, q], atol=1e-10)
        with pytest.raises(sarrus.ModelError, match="cannot all be fixed"):
            robot.assemble(guess, fixed=dict(guess))
