"""Random closed mechanisms in a closed configuration: a random tree in a random state, with constraints that this state satisfies.

The coordinates of a loop joint are drawn, and its placement on the child follows from the poses of both
bodies. So every loop closes exactly, for joints of any type, for nested loops and with a floating base.
"""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import sarrus
from sarrus.description import CouplerSpec, DistanceSpec, JointSpec, PfaffianSpec, RollingSpec
from sarrus.laws import Law, table
from tests.oracles import Closed
from tests.oracles.closed import law_values, unit
from tests.oracles.joint_motion import compose, joint_motion
from tests.random_mechanisms import ALL_JOINTS, _random_coordinates, random_joint, random_mechanism, random_state, seeds

CLOSING = (*(kind for kind in ALL_JOINTS if kind not in ("free", "gimbal rx ry rz tx ty tz")), "gimbal rx ry tx tz")
RELATIONS = (
    "distance",
    "coupler",
    "disc",
    "sphere",
    "sphere on sphere",
    "sphere in sphere",
    "pfaffian",
    "pfaffian of q",
)
DRIVEN = ("prescribed motion", "prescribed frame")
ALL_CONSTRAINTS = (*CLOSING, *RELATIONS, *DRIVEN)

# a constraint that almost depends on the others is drawn again: rounding over this is what comparisons can see
INDEPENDENT = 0.03


class State(NamedTuple):
    """Arguments of the functions of a state; in a batch the arrays have leading axes."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    time: np.ndarray


@dataclass(frozen=True)
class ClosedState:
    """A mechanism's description and a state that satisfies its constraints, for the tree that ``closing`` leaves."""

    description: sarrus.description.Description
    coordinates: dict  # of every joint, those that close loops too
    v: np.ndarray
    tau: np.ndarray
    time: float
    closing: tuple

    @cached_property
    def robot(self):
        return sarrus.Mechanism(self.description)

    @cached_property
    def oracle(self):
        return Closed(self.description, closing=self.closing)

    @cached_property
    def precise(self):
        """Oracle in extended precision."""
        return Closed(self.description, closing=self.closing, dtype=np.longdouble, negligible=1e-11)

    @property
    def q(self):
        q = [self.coordinates[spec.name] for spec in self.description.joints if spec.name not in self.closing]
        return np.concatenate([np.zeros(0), *q])

    @property
    def state(self):
        return State(self.q, self.v, self.tau, np.array(self.time))

    def states(self, rng, count, spread=0.1):
        """Return this state and nearby ones with the same rank of the constraints, or states with other velocities only."""
        states = [self.state]
        while len(states) < count:
            q = self.q
            try:
                found = self.oracle.close(
                    self.oracle.integrate(q, spread * rng.normal(size=self.oracle.nv)), time=self.time
                )
                s = np.linalg.svd(self.oracle.constraint_jacobian(found, time=self.time))[1]
                s = s[s > 1e-9 * s.max(initial=0)]
                q = found if s.min(initial=1) > INDEPENDENT / 3 else q
            except ValueError:
                pass
            v = self.oracle.project_velocity(q, rng.normal(size=self.oracle.nv), metric="euclidean", time=self.time)
            states.append(State(q, v, rng.normal(size=self.oracle.nv), np.array(self.time)))
        return states

    def in_other_tree(self, description, closing):
        """Return the same state on another spanning tree, with a transformed tau, so that the motion is unchanged."""
        closed = self.oracle.closing_velocities(self.q, self.v, self.time)
        velocities = {name: self.v[where] for name, where in self.oracle.v_slice.items()} | closed
        names = [spec.name for spec in description.joints if spec.name not in closing]
        v = np.concatenate([np.zeros(0), *(velocities[name] for name in names)])
        other = ClosedState(description, self.coordinates, v, np.zeros(len(v)), self.time, tuple(closing))
        # the other tree's efforts do the same work in all that is free to move
        Z = self.oracle.spaces(self.oracle.constraint_jacobian(self.q, time=self.time))[0]
        to_tree = self.oracle.actuation_matrix(self.q, names, time=self.time)
        tau = np.linalg.lstsq(Z.T @ to_tree, Z.T @ self.tau, rcond=None)[0]
        return dataclasses.replace(other, tau=tau)


def random_closed(
    seed,
    *,
    bodies=7,
    joints=ALL_JOINTS,
    loops=2,
    kinds=ALL_CONSTRAINTS,
    copies=0,
    mobility=1,
    hints=True,
    conditioned=INDEPENDENT,
    **options,
):
    """A random mechanism with loops, as a `ClosedState`.

    Parameters
    ----------
    seed : int; the same seed and options give the same mechanism
    bodies, joints, options : options of the tree, as for `random_mechanism`
    loops : number of added constraints, if the tree has enough freedoms
    kinds : kinds of constraints to draw from, see ``ALL_CONSTRAINTS``
    copies : number of redundant copies of constraints, displaced if that has no effect
    mobility : remaining number of degrees of freedom
    hints : the description selects the loop joints; otherwise the library chooses
    """
    if not hints:  # rows that are functions of q are written for one tree only
        kinds = tuple(kind for kind in kinds if kind != "pfaffian of q")
    rng = np.random.default_rng([seed, 1])
    tree = random_mechanism(seed, bodies=bodies, joints=joints, **options)
    q, v, _ = random_state(tree, rng)
    d = tree.description
    d = dataclasses.replace(d, joints=tuple(dataclasses.replace(spec, tree=hints) for spec in d.joints))
    draw = _Draw(d, q, float(rng.uniform(0, 2)) if set(kinds) & set(DRIVEN) else 0.0, rng)
    added = []
    for _ in range(40 * loops):
        if len(added) == loops:
            break
        found = draw.constraint(f"loop{len(added)}", kinds[rng.integers(len(kinds))])
        if found is None:
            continue
        candidate = draw.extended(found[0])
        oracle = Closed(candidate, closing=draw.closing(candidate))
        J = oracle.constraint_jacobian(q, time=draw.time)
        s = np.linalg.svd(J)[1]
        if len(J) <= oracle.nv - mobility and s.min(initial=1) > conditioned:
            draw.description = candidate
            draw.coordinates |= {found[0].name: found[1]}
            added.append(found)
    for k in range(copies if added else 0):
        spec, x = added[rng.integers(len(added))]
        copy = draw.copy(spec, f"copy{k}")
        draw.description = draw.extended(copy)
        draw.coordinates |= {copy.name: x}
    d = draw.description
    closing = draw.closing(d)
    oracle = Closed(d, closing=closing)
    v = oracle.project_velocity(q, v, metric="euclidean", time=draw.time)
    if not hints:
        needed = {name for spec in d.constraints for name in draw.needs(spec)}
        specs = (dataclasses.replace(s, loop=bool(s.laws), tree=s.name in needed, actuated=False) for s in d.joints)
        d = dataclasses.replace(d, joints=tuple(specs))
    return ClosedState(d, draw.coordinates, v, rng.normal(size=oracle.nv), draw.time, closing)


class _Draw:
    """Drawing of constraints that a tree satisfies in one configuration."""

    def __init__(self, description, q, time, rng):
        self.description, self.time, self.rng = description, time, rng
        self.tree = Closed(description)
        self.place = self.tree.place(q)
        self.coordinates = {name: q[where] for name, where in self.tree.q_slice.items()}

    def closing(self, description):
        return tuple(spec.name for spec in description.joints if spec.name not in self.tree.joints)

    def extended(self, spec):
        d = self.description
        if isinstance(spec, JointSpec):
            return dataclasses.replace(d, joints=(*d.joints, spec))
        return dataclasses.replace(d, constraints=(*d.constraints, spec))

    def needs(self, spec):
        """Return the joints that must be in the tree."""
        if isinstance(spec, CouplerSpec):
            return set(spec.position_joints)
        return set(spec.joints) if isinstance(spec, PfaffianSpec) else set()

    def two_bodies(self):
        names = ["ground", *(body.name for body in self.description.bodies)]
        i, j = self.rng.choice(len(names), 2, replace=False)
        return names[i], names[j]

    def pose(self, body):
        b = self.tree.index[body]
        return self.place.R[b], self.place.p[b]

    def into(self, body, point):
        R, p = self.pose(body)
        return tuple((R.T @ (point - p)).tolist())

    def point(self):
        return tuple(self.rng.normal(size=3) * 0.3)

    def constraint(self, name, kind):
        """Return a constraint of this kind and its coordinates; None if the mechanism has no suitable joints."""
        if kind == "distance":
            first, second = ((body, self.point()) for body in self.two_bodies())
            (R_0, p_0), (R_1, p_1) = self.pose(first[0]), self.pose(second[0])
            length = np.linalg.norm(p_1 + R_1 @ second[1] - p_0 - R_0 @ first[1])
            return DistanceSpec(name, first, second, float(length)), np.zeros(0)
        if kind in ("coupler", "prescribed motion"):
            return self.coupler(name, kind)
        if kind in ("disc", "sphere", "sphere on sphere", "sphere in sphere"):
            return self.rolling(name, kind), np.zeros(0)
        if kind.startswith("pfaffian"):
            return self.pfaffian(name, kind)
        return self.closing_joint(name, kind)

    def closing_joint(self, name, kind):
        rng = self.rng
        laws = tuple(random_law(rng) if rng.random() < 0.6 else None for _ in range(6))
        driven = kind == "prescribed frame"
        joint = random_joint(CLOSING[rng.integers(len(CLOSING))] if driven else kind, rng)
        x = _random_coordinates(joint, rng, "random")
        parent, child = self.two_bodies()
        at_parent = sarrus.Transform.from_rpy(*rng.uniform(-np.pi, np.pi, 3), self.point())
        R, p = self.pose(parent)
        R, p = R @ at_parent.rotation, p + R @ at_parent.translation
        steps = [(np.zeros(3), np.eye(3))] if not driven else []
        if driven:
            g = [law_values(law, self.time)[0] if law else 0.0 for law in laws]
            R_g, p_g, _ = compose(
                list(zip(["turn"] * 3 + ["slide"] * 3, np.eye(3)[[0, 1, 2, 0, 1, 2]], g, strict=True))
            )
            steps.append((p_g, R_g))
        R_x, p_x, _ = joint_motion(joint, x)
        for p_step, R_step in (*steps, (p_x, R_x)):
            R, p = R @ R_step, p + R @ p_step
        R_C, p_C = self.pose(child)
        at_child = sarrus.Transform(R_C.T @ R, R_C.T @ (p - p_C))
        spec = JointSpec(name, joint, parent, child, at_parent, at_child, False, loop=True, laws=laws if driven else ())
        return spec, x

    def coupler(self, name, kind):
        free = [
            (spec.name, k)
            for spec in self.tree.joints.values()
            if spec.joint.nq == spec.joint.nv
            for k in range(spec.joint.nq)
            if not (spec.joint.kind == "Planar" and k < 2)
        ]
        if len(free) < 2:
            return None
        chosen = [free[i] for i in self.rng.permutation(len(free))[: self.rng.integers(2, 4)]]
        if kind == "prescribed motion":
            joint, k = chosen[0]
            law = random_law(self.rng)
            start = self.coordinates[joint][k] - law_values(law, self.time)[0]
            pieces = tuple((c[0] + start, *c[1:]) for c in law.coefficients)
            law = Law(law.starts, pieces, law.harmonics)
            return CouplerSpec(name, ((joint, k, (1.0,)),), 0.0, law), np.zeros(0)
        terms = tuple((joint, k, tuple(self.rng.normal(size=self.rng.integers(1, 4)))) for joint, k in chosen)
        offset = sum(c * self.coordinates[joint][k] ** n for joint, k, cs in terms for n, c in enumerate(cs, 1))
        products = random_products(chosen, self.rng)
        for product in products:
            offset += np.prod([law_values(f, self.coordinates[joint][k])[0] for joint, k, f in product])
        return CouplerSpec(name, terms, float(offset), None, products), np.zeros(0)

    def rolling(self, name, kind):
        rng = self.rng
        body, on = self.two_bodies()
        radius = rng.uniform(0.1, 0.5)
        center = self.point()
        spin = bool(rng.random() < 0.5)
        R, p = self.pose(body)
        at = p + R @ center
        if kind.startswith("sphere "):
            on_radius = rng.uniform(0.1, 0.5) if kind == "sphere on sphere" else -radius - rng.uniform(0.2, 0.5)
            point = at - abs(radius + on_radius) * unit(rng.normal(size=3))
            return RollingSpec(
                name, body, radius, center, None, on, self.into(on, point), (0.0, 0.0, 1.0), float(on_radius), spin
            )
        normal, axle = unit(rng.normal(size=3)), None
        R_on, _ = self.pose(on)
        toward = R_on @ normal
        if kind == "disc":
            axle = unit(rng.normal(size=3))
            across = R @ axle
            toward = unit(toward - across * (across @ toward))
            axle = tuple(axle.tolist())
        contact = at - radius * toward
        aside = np.cross(R_on @ normal, rng.normal(size=3))
        return RollingSpec(
            name, body, radius, center, axle, on, self.into(on, contact + aside), tuple(normal.tolist()), None, spin
        )

    def pfaffian(self, name, kind):
        joints = [spec.name for spec in self.tree.joints.values() if spec.joint.nv]
        if not joints:
            return None
        joints = tuple(joints[i] for i in self.rng.permutation(len(joints))[:3])
        columns = sum(self.tree.joints[joint].joint.nv for joint in joints)
        rows = int(self.rng.integers(1, 3))
        if columns < rows:
            return None
        value = tuple(self.rng.normal(size=rows))
        A = self.rng.normal(size=(rows, columns))
        if kind == "pfaffian":
            return PfaffianSpec(name, tuple(map(tuple, A.tolist())), joints, value), np.zeros(0)
        A = RowsOfCoordinates(A, self.rng.normal(size=(rows, columns, self.tree.nq)))
        return PfaffianSpec(name, A, joints, value, A.rate(self.tree)), np.zeros(0)

    def copy(self, spec, name):
        spec = dataclasses.replace(spec, name=name)
        if not isinstance(spec, JointSpec) or spec.laws:
            return spec
        angles, point = self.rng.normal(size=3), self.rng.normal(size=3) * 0.3
        shift = {
            "Fixed": lambda: sarrus.Transform.from_rpy(*angles, point),
            "Revolute": lambda: sarrus.Transform(translation=spec.joint.axis * point[0]),
            "Prismatic": lambda: sarrus.Transform(translation=point),
        }.get(spec.joint.kind, sarrus.Transform)()
        return dataclasses.replace(spec, at_parent=spec.at_parent @ shift, at_child=spec.at_child @ shift)


class RowsOfCoordinates:
    """Rows A(q) = A0 + sin(B q), entry by entry; picklable."""

    def __init__(self, A, B):
        self.A, self.B = A, B

    def __call__(self, q):
        return self.A + np.sin(np.einsum("kij,...j->...ki", self.B, q))

    def rate(self, tree):
        return RateOfRows(self, tree)


class RateOfRows:
    """Derivative dA/dt, by the complex step."""

    def __init__(self, rows, tree):
        self.rows, self.tree = rows, tree

    def __call__(self, q, v):
        shape = np.shape(q)[:-1]
        pairs = zip(np.reshape(q, (-1, self.tree.nq)), np.reshape(v, (-1, self.tree.nv)), strict=True)
        rates = [self.tree.rate(self.rows, q, v) for q, v in pairs]
        return np.reshape(rates, (*shape, *self.rows.A.shape))


def random_law(rng):
    """Two pieces of a cubic, which meet smoothly, and a harmonic; moderate on 0 <= t <= 2."""
    c = rng.normal(size=4) * 0.3
    at_one = np.array([sum(c), c[1] + 2 * c[2] + 3 * c[3], c[2] + 3 * c[3], rng.normal() * 0.3])
    harmonic = rng.normal() * 0.2, rng.uniform(0.5, 3), rng.uniform(0, 6)
    return Law((0.0, 1.0), (tuple(c.tolist()), tuple(at_one.tolist())), (tuple(map(float, harmonic)),))


def random_products(coordinates, rng):
    """Return products of functions for a coupler: none, a function, or also a product of functions of two coordinates.

    The generator is copied, so that the other draws are those of mechanisms without functions.
    """
    own = np.random.default_rng(rng.bit_generator.state["state"]["state"] % 2**63)
    if own.random() < 0.4:
        return ()
    (a, i), (b, k) = coordinates[-1], coordinates[0]
    values = own.normal(size=8) * 0.5
    periodic = table(np.linspace(-1.0, 1.0 + own.uniform(0.0, 3.0), 9), [*values, values[0]], periodic=True)
    f, g = (periodic, random_law(own)) if own.random() < 0.5 else (random_law(own), periodic)
    return ((a, i, f),), *(((a, i, random_law(own)), (b, k, g)),) * int(own.random() < 0.5)


def closed_mechanisms(**options):
    """Return a Hypothesis strategy for closed states. Options of `random_closed` may be values or strategies."""
    defaults = {
        "bodies": st.integers(3, 7),
        "loops": st.integers(1, 3),
        "copies": st.sampled_from([0, 0, 1, 2]),
        "floating": st.booleans(),
        "branching": st.sampled_from([0.0, 0.3, 1.0]),
    }
    drawn = {name: x if isinstance(x, st.SearchStrategy) else st.just(x) for name, x in (defaults | options).items()}
    # now and then there is no room for a loop
    return st.builds(random_closed, seeds(), **drawn).filter(lambda closed: closed.robot.nc > 0)
