"""A mechanism taken apart at one body, the reference member, into the chains that carry it (van der Merwe 1995, 6.1 and 6.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from .._arrays import Array, NDArray
from ..description.joints import Free
from ..description.specs import Description, FrameSpec, JointSpec
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError
from ..spatial import Inertia, Transform

INSTEAD = "choose another body with member=, or let forward_dynamics() solve it, which takes any mechanism"


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial chain from the ground to the joint by which it ends at the member. Its tip is the body on this joint's far side.

    Attributes
    ----------
    name : that of the end joint
    joints : the others, from the ground to the tip
    tip, frame : the last body (the ground, where there are no others), and a frame of the pieces: the end joint's on it
    at_member : the end joint's frame on the member
    sign : 1 where the end joint's motion is the member's against the tip, -1 where it is the other way round
    closes : whether the end joint closes a loop in the mechanism; if not, it has coordinates there
    armature : of the end joint
    inner : the joint on the way that closes a loop in the mechanism, if there is one. Then the tree carries the tip from the member
    kept : its velocities in the mechanism
    columns : the same among the velocities of the pieces, and those of a tip that is afloat there
    rows, inner_rows : of the end joint and of the inner one among the rows of the pieces
    """

    name: str
    joints: tuple[str, ...]
    tip: str
    frame: str
    at_member: Transform
    sign: float
    closes: bool
    armature: Array
    inner: str | None
    kept: NDArray[np.intp]
    columns: NDArray[np.intp]
    rows: slice
    inner_rows: slice


@dataclass(frozen=True)
class TakenApart:
    """A mechanism with the joints of one body, and those that close loops on the chains' way, cut.

    Attributes
    ----------
    member : that body
    chains : what carries it
    pieces : the mechanism in which the cut joints are constraints, so that the chains' coordinates are independent of one another
    weightless : the mechanism without masses and gravity: of its bias forces what acts along the joints is left
    kept : joints that have coordinates in the mechanism and in the pieces
    afloat : bodies that nothing carries in the pieces, and the free joints that they have there
    """

    member: str
    chains: tuple[Chain, ...]
    pieces: LoopFunctions
    weightless: LoopFunctions
    kept: tuple[str, ...]
    afloat: dict[str, str]


@lru_cache(maxsize=64)
def taken_apart(robot: LoopFunctions, member: str | None) -> TakenApart:
    """The mechanism apart at that body; by default at the first that will do of those with many joints and far from the ground."""
    d = robot.description
    for constraint in d.constraints:
        raise ModelError(
            f"the reference-member algorithm takes loops that joints close, and constraint '{constraint.name}' is no joint: "
            "forward_dynamics() takes all constraints"
        )
    errors = []
    for body in _candidates(d) if member is None else [member]:
        try:
            return _apart(robot, body, _ways(d, body))
        except ModelError as error:
            errors.append(error)
    raise errors[0]


def _joints_at(d: Description) -> dict[str, list[JointSpec]]:
    bodies = ("ground", *(body.name for body in d.bodies))
    return {body: [j for j in d.joints if body in (j.parent, j.child)] for body in bodies}


def _across(joint: JointSpec, body: str) -> str:
    return joint.child if joint.parent == body else joint.parent


def _candidates(d: Description) -> list[str]:
    """Bodies with many joints first; of equal ones, those far from the ground."""
    at, distance, queue = _joints_at(d), {"ground": 0}, ["ground"]
    for body in queue:
        for other in (_across(j, body) for j in at[body]):
            if other not in distance:
                distance[other] = distance[body] + 1
                queue.append(other)
    return sorted((b.name for b in d.bodies), key=lambda body: (-len(at[body]), -distance[body]))


def _ways(d: Description, member: str) -> list[list[JointSpec]]:
    """The joints from the member to the ground, chain by chain."""
    at, ways, met = _joints_at(d), [], {member, "ground"}

    def refuse(why: str) -> None:
        raise ModelError(
            "the reference-member algorithm takes one body and serial chains from it to the ground; "
            f"with '{member}' as that body, {why}: {INSTEAD}"
        )

    for end in at[member]:
        way, body = [end], _across(end, member)
        while body != "ground":
            onward = [j for j in at[body] if j is not way[-1]]
            if body == member:
                refuse(f"the chain that starts with joint '{end.name}' comes back to it")
            if len(onward) != 1:
                does = "branches at" if onward else "does not reach the ground but ends with"
                refuse(f"the chain that starts with joint '{end.name}' {does} body '{body}'")
            met.add(body)
            way += onward
            body = _across(onward[0], body)
        ways.append(way)
    for stray in [body for body in at if body not in met]:
        refuse(f"body '{stray}' is on none of them")
    return ways


def _apart(robot: LoopFunctions, member: str, ways: list[list[JointSpec]]) -> TakenApart:
    d, closing = robot.description, set(robot.loop_joints)
    tips = {end.name: _across(end, member) for end, *_ in ways}
    # the bodies on a way have two joints each and hang together with the tree, so that at most one joint of it closes a loop
    inner = {end.name: next((j.name for j in way if j.name in closing), None) for end, *way in ways}
    names = _new_names({*robot.joints, *closing, *robot.frames})

    # the tree enters a chain that closes on its way from both sides: its outer part is carried by the member
    carried = (member, *(tip for end, tip in tips.items() if inner[end]))
    afloat = {body: next(names) for body in carried}
    frames = {end: next(names) for end in tips}
    cut = closing | set(tips)
    for j in d.joints:
        if j.name in closing and j.joint.armature.any():
            raise ModelError(
                f"the reference-member algorithm takes no armature of a joint that closes a loop, such as '{j.name}': forward_dynamics() does"
            )
    # of an end joint that has coordinates, what acts along it is known apart from the pieces
    specs = [_without_terms(j) if j.name in tips and j.name not in closing else j for j in d.joints]
    joints = [replace(j, actuated=False, tree=j.name not in cut, loop=j.name in cut) for j in specs]
    for body, name in afloat.items():
        joints.append(JointSpec(name, Free(), "ground", body, Transform(), Transform(), False, tree=True))
    places = {end.name: end.at_child if end.parent == member else end.at_parent for end, *_ in ways}
    at_tip = [FrameSpec(frames[name], tips[name], place) for name, place in places.items()]
    pieces = type(robot)(replace(d, joints=tuple(joints), frames=(*d.frames, *at_tip), home=()))
    massless = tuple(replace(body, inertia=Inertia.zero()) for body in d.bodies)

    def rows(name: str | None) -> slice:
        return pieces.constraint(name).rows if name in pieces.constraints else slice(0, 0)

    def chain(end: JointSpec, *way: JointSpec) -> Chain:
        name, tip = end.name, tips[end.name]
        kept = [j.name for j in reversed(way) if j.name not in closing]
        return Chain(
            name=name,
            joints=tuple(j.name for j in reversed(way)),
            tip=tip,
            frame=frames[name],
            at_member=end.at_parent if end.parent == member else end.at_child,
            sign=1.0 if end.child == member else -1.0,
            closes=name in closing,
            armature=np.zeros(0) if name in closing else np.array(end.joint.armature),
            inner=inner[name],
            kept=_columns(robot, kept),
            columns=_columns(pieces, [*kept, *([afloat[tip]] if inner[name] else [])]),
            rows=rows(name),
            inner_rows=rows(inner[name]),
        )

    return TakenApart(
        member=member,
        chains=tuple(chain(*way) for way in ways),
        pieces=pieces,
        weightless=type(robot)(
            replace(
                d,
                gravity=(0.0, 0.0, 0.0),
                bodies=massless,
                joints=tuple(_without_terms(j) if j.name in closing else j for j in d.joints),
            )
        ),
        kept=tuple(name for name in robot.joints if name not in tips),
        afloat=afloat,
    )


def _without_terms(spec: JointSpec) -> JointSpec:
    """The joint with nothing that acts along it."""
    nothing = dict.fromkeys(("damping", "friction", "armature", "stiffness", "rest"), 0.0)
    return replace(spec, joint=replace(spec.joint, **nothing))


def _columns(mechanism: LoopFunctions, names: list[str]) -> NDArray[np.intp]:
    return np.array([i for name in names for i in range(mechanism.nv)[mechanism.joint(name).v_slice]], dtype=np.intp)


def _new_names(taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        if (name := f"piece {number}") not in taken:
            yield name
        number += 1
