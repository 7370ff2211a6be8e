"""Random trees of bodies and their states, for the laws and the cross-checks.

A seed determines a mechanism, so that one line reproduces a failure: ``random_mechanism(1234, bodies=3)``.
"""

import numpy as np
from hypothesis import strategies as st

import sarrus

# every joint type, and gimbals with one to six free parameters: among them two rotations with the one
# between them fixed, and displacement across a rotation
ALL_JOINTS = (
    "fixed",
    "revolute",
    "prismatic",
    "helical",
    "cylindrical",
    "universal",
    "planar",
    "spherical",
    "free",
    "gimbal ry",
    "gimbal tz",
    "gimbal rx rz",
    "gimbal ry rz",
    "gimbal rz tx",
    "gimbal rx ry rz",
    "gimbal rx tx ty tz",
    "gimbal rx ry rz tx ty tz",
)
# v is dq/dt: the joints for which Christoffel's symbols are defined
COORDINATE_JOINTS = tuple(kind for kind in ALL_JOINTS if kind not in ("planar", "spherical", "free"))
# what every other library knows too
PLAIN_JOINTS = ("fixed", "revolute", "prismatic", "spherical", "free")

# where a law must hold, for `random_state`
PLACES = ("random", "neutral", "near")


def random_mechanism(
    seed,
    *,
    bodies=10,
    joints=ALL_JOINTS,
    floating=False,
    branching=0.3,
    offsets=True,
    shuffled=None,
    backward=0.0,
    friction=False,
    armature=False,
    springs=False,
):
    """A random tree, as a `sarrus.Mechanism`.

    Parameters
    ----------
    seed : int; the same seed and options give the same mechanism
    bodies : number of bodies, named "body0", "body1", ..., outward
    joints : the kinds to draw from, see ``ALL_JOINTS``; with as many bodies as kinds, each occurs
    floating : the first joint is a free one, and all else hangs on its body
    branching : probability that a body hangs on any of the earlier ones (or the ground), not on the
        last; 0 gives a chain
    offsets : joint frames sit anywhere in both bodies; otherwise only displaced, only in the parent
    shuffled : bodies and joints are added in any order, so that q is not stacked outward; if not
        given, half of the seeds do so
    backward : probability that a joint's parent is the body farther from the ground
    friction, armature : damping and Coulomb friction, and armature, in every joint
    springs : in the joints whose v is dq/dt

    Frames "frame0", "frame1" and "tool" sit somewhere in the first body, in any one and in the last.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.random() < 0.5 if shuffled is None else shuffled

    kinds = []
    while len(kinds) < bodies:
        kinds += rng.permutation(joints).tolist()
    if floating:
        kinds.insert(0, "free")

    added_joints = []
    for k, kind in enumerate(kinds[:bodies]):
        parent = f"body{k - 1}" if k else "ground"
        if k and rng.random() < branching:
            earliest = 0 if floating else -1
            near = int(rng.integers(earliest, k))
            parent = f"body{near}" if near >= 0 else "ground"
        ends = (f"body{k}", parent) if rng.random() < backward else (parent, f"body{k}")
        joint = random_joint(kind, rng, friction=friction, armature=armature, springs=springs)
        at_parent = random_transform(rng) if offsets else rng.normal(size=3) * 0.3
        at_child = random_transform(rng) if offsets else None
        added_joints.append((f"joint{k}", joint, *ends, at_parent, at_child))
    added_bodies = [(f"body{k}", random_inertia(rng)) for k in range(bodies)]
    if shuffled:
        added_bodies = [added_bodies[k] for k in rng.permutation(bodies)]
        added_joints = [added_joints[k] for k in rng.permutation(bodies)]

    builder = sarrus.Builder(f"random{seed}", gravity=tuple(rng.normal(size=3) * 6))
    for body in added_bodies:
        builder.add_body(*body)
    for name, joint, parent, child, at_parent, at_child in added_joints:
        builder.add_joint(name, joint, parent, child, at_parent=at_parent, at_child=at_child, actuated=joint.nv > 0)
    if bodies:
        for name, k in ("frame0", 0), ("frame1", rng.integers(bodies)), ("tool", bodies - 1):
            builder.add_frame(name, f"body{k}", random_transform(rng))
    return builder.build()


def random_joint(kind, rng, *, friction=False, armature=False, springs=False):
    """Return a joint of this kind with random axes and, if selected, passive forces."""
    name, *free = kind.split()
    axis = _unit(rng)
    other = _unit(rng)
    while abs(axis @ other) > 0.8:  # a universal joint needs two axes that differ
        other = _unit(rng)
    make, nv = {
        "fixed": (lambda **k: sarrus.Fixed(**k), 0),
        "revolute": (lambda **k: sarrus.Revolute(axis, **k), 1),
        "prismatic": (lambda **k: sarrus.Prismatic(axis, **k), 1),
        "helical": (lambda **k: sarrus.Helical(axis, pitch, **k), 1),
        "cylindrical": (lambda **k: sarrus.Cylindrical(axis, **k), 2),
        "universal": (lambda **k: sarrus.Universal(axis, other, **k), 2),
        "planar": (lambda **k: sarrus.Planar(axis, **k), 3),
        "spherical": (lambda **k: sarrus.Spherical(**k), 3),
        "free": (lambda **k: sarrus.Free(**k), 6),
        "gimbal": (lambda **k: sarrus.Gimbal(" ".join(free), fixed=fixed, **k), len(free)),
    }[name]
    pitch = rng.normal() * 0.1
    fixed = rng.uniform(-0.5, 0.5, 6)
    passive = {}
    if friction and nv:
        passive |= {"damping": rng.uniform(0, 1, nv), "friction": rng.uniform(0, 1, nv)}
    if armature and nv:
        passive |= {"armature": rng.uniform(0, 0.5, nv)}
    if springs and nv and kind in COORDINATE_JOINTS:
        passive |= {"stiffness": rng.uniform(0, 10, nv), "rest": rng.normal(size=nv)}
    return make(**passive)


def random_transform(rng, length=0.3):
    angles = rng.uniform(-np.pi, np.pi, 3)
    return sarrus.Transform.from_rpy(*angles, rng.normal(size=3) * length)


def random_inertia(rng):
    """Return the inertia of a random body: its second moments of mass are positive, so that the triangle inequality holds."""
    mass = rng.uniform(0.5, 3.0)
    R = random_transform(rng).rotation
    second_moments = R @ np.diag(mass * rng.uniform(0.05, 0.3, 3) ** 2) @ R.T
    about_com = np.trace(second_moments) * np.eye(3) - second_moments
    return sarrus.Inertia(mass, rng.normal(size=3) * 0.15, (about_com + about_com.T) / 2)


def _unit(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_state(robot, rng, at="random"):
    """q (nq,), v (nv,), a (nv,) of a mechanism.

    at : "random"; "neutral"; "near", 1e-8 from neutral; or "singular", random but for the gimbals that
        turn about all three axes: their first and third coincide, and the mass matrix is singular if
        there is no armature. In a random state they stay 0.3 rad away from there, so that comparisons
        to 1e-10 do not compare rounding errors.
    """
    q = [_random_coordinates(spec.joint, rng, at) for spec in robot.description.joints]
    nv = sum(spec.joint.nv for spec in robot.description.joints)
    return np.concatenate([np.zeros(0), *q]), rng.normal(size=nv), rng.normal(size=nv)


def _random_coordinates(joint, rng, at):
    kind = type(joint).__name__
    has_quaternion = kind in ("Spherical", "Free")
    if at in ("neutral", "near"):
        q = np.zeros(joint.nq) if at == "neutral" else 1e-8 * rng.normal(size=joint.nq)
        if has_quaternion:
            q[3] = 1.0
    elif at in ("random", "singular"):
        q = rng.normal(size=joint.nq)
        if kind == "Gimbal" and {"rx", "ry", "rz"} <= set(joint.free):
            q[1] = rng.choice([-1, 1]) * np.pi / 2 if at == "singular" else rng.uniform(-1, 1) * (np.pi / 2 - 0.3)
    else:
        raise ValueError(f"at={at!r}")
    if has_quaternion:
        q[:4] /= np.linalg.norm(q[:4])
    return q


def seeds():
    """Return a Hypothesis strategy for seeds."""
    return st.integers(0, 2**32 - 1)


def mechanisms(*, joints=ALL_JOINTS, **options):
    """Return a Hypothesis strategy for mechanisms of one to eight bodies: small ones first, so that failures shrink.

    Options of `random_mechanism` may be values or strategies.
    """
    defaults = {
        "bodies": st.integers(1, 8),
        "floating": st.booleans(),
        "branching": st.sampled_from([0.0, 0.3, 1.0]),
    }
    drawn = {name: x if isinstance(x, st.SearchStrategy) else st.just(x) for name, x in (defaults | options).items()}
    return st.builds(random_mechanism, seeds(), joints=st.just(joints), **drawn)
