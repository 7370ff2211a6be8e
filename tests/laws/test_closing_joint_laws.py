"""Nothing depends on which joint closes a loop: terms along a joint act the same in the tree and where it closes one."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.test_choice_laws import recut
from tests.laws.test_laws import assert_equal
from tests.random_closed import CLOSING, closed_mechanisms
from tests.random_mechanisms import seeds

# of accelerations and forces, relative to the largest: the same equations, solved in other coordinates
RECUT = 1e-9

law = settings(max_examples=40, deadline=None)
TREE_JOINTS = tuple(kind for kind in CLOSING if kind != "fixed")


def with_terms(closed, rng, *names):
    """The same mechanism with such terms in every joint."""

    def filled(spec):
        joint, x = spec.joint, closed.coordinates[spec.name]
        if joint.nv == 0 or spec.laws:
            return spec
        terms = {name: rng.uniform(0.1, 1.0, joint.nv) for name in names if name != "stiffness"}
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
    """The same state of the same mechanism, with terms in every joint, cut in several ways."""
    closed = with_terms(closed, rng, *names)
    first = closed.in_other_tree(closed.description, closed.robot.loop_joints)
    return [first, *(recut(closed, rng) for _ in range(count - 1))]


RECUTS = closed_mechanisms(hints=False, copies=st.just(0), kinds=CLOSING)


@law
@given(
    RECUTS,
    seeds(),
    st.sampled_from([("damping",), ("friction",), ("stiffness",), ("damping", "friction", "stiffness")]),
)
def test_forces_along_joints(closed, seed, names):
    """Accelerations of all bodies, energies and the work of the efforts that a motion needs."""
    answers = []
    for one in cuts(closed, np.random.default_rng(seed), *names):
        robot, q, v = one.robot, one.q, one.v
        assert robot.warnings == ()
        a = robot.forward_dynamics(q, v, one.tau)
        bodies = np.concatenate([robot.acceleration(q, v, a, body) for body in sorted(robot.bodies)])
        needed = robot.inverse_dynamics(q, v, a) @ v
        answers.append((bodies, needed, robot.kinetic_energy(q, v), robot.potential_energy(q)))
    for other in answers[1:]:
        for mine, theirs in zip(answers[0], other, strict=True):
            assert_equal(theirs, mine, RECUT, scale=np.abs(answers[0][0]).max(initial=1.0))
