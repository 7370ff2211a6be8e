"""The dimensions of a mechanism by name, and mechanisms that have others: what calibration, tolerances and synthesis share.

"elbow.parent.x" is a shift [m] of the joint's frame on its parent along the x that it has there, "elbow.parent.rx" a turn [rad] about it, "tool.x" the same of an
added frame, "rod.length" the length of a distance constraint [m], "motor.offset" what is added to an encoder's reading, to have the coordinate [rad, m].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ._arrays import Array, ArrayLike, check_mapping, checked_names, real_array
from .analysis.assembly.sensitivity import SIDES, AssembledPositions, assembled_positions
from .description.constraints import DistanceSpec
from .description.joints import unit_axis
from .errors import ModelError, NameNotFoundError, ShapeError, StateError, did_you_mean
from .mechanism import Mechanism
from .spatial import Transform, exp, right_jacobian

AXES = ("rx", "ry", "rz", "x", "y", "z")


class Dimensions:
    """Some dimensions of a mechanism that is led by some joints; x (p,) are their changes, from the mechanism's own.

    Attributes
    ----------
    robot, leading : the mechanism, and the joints whose coordinates are given
    names : (p) of the dimensions
    angular : (p,) whether it is in radians
    """

    def __init__(
        self, robot: Mechanism, leading: Sequence[str], names: Sequence[str] | None = None, frames: Sequence[str] = (), read: Sequence[str] = ()
    ) -> None:  # fmt: skip
        self.robot, self.leading = robot, tuple(leading)
        own = {f.name: f.placement for f in robot.description.frames}
        joints = {f"{j.name}.{side}": getattr(j, f"at_{side}") for j in robot.description.joints for side in SIDES}
        joints = {
            f"{name}.{side}": joints[f"{name}.{side}"] for name in (*robot.joints, *robot.loop_joints) for side in SIDES
        }
        self._at = {name: at.matrix for name, at in (joints | own).items()}
        self.rods = {c.name: c.length for c in robot.description.constraints if isinstance(c, DistanceSpec)}
        known: dict[str, tuple[str, str, int]] = {}
        for joint in (*leading, *read):
            for k in range(robot.joint(joint).type.nv):
                known[f"{joint}.offset" + f"[{k}]" * (robot.joint(joint).type.nv > 1)] = ("offset", joint, k)
        known |= {f"{rod}.length": ("length", rod, 0) for rod in self.rods}
        # shifts first: of those that cannot be told apart they are easier to understand
        for axes in (AXES[3:], AXES[:3]):
            known |= {f"{frame}.{axis}": ("frame", frame, AXES.index(axis)) for frame in self._at for axis in axes}
        usual = [n for n, (kind, of, _) in known.items() if kind != "frame" or of in joints or of in frames]
        self.names = tuple(usual if names is None else checked_names("names of dimensions", names))
        for name in self.names:
            if name not in known:
                raise NameNotFoundError(f"no dimension is named '{name}'{did_you_mean(name, known)}")
        if len(set(self.names)) < len(self.names):
            raise ModelError(f"a dimension is named twice among {', '.join(self.names)}")
        self._which = [known[name] for name in self.names]
        self.angular = np.array([
            k < 3 if kind == "frame" else kind == "offset" and robot.joint(of).kind != "Prismatic" for kind, of, k in self._which
        ], bool)  # fmt: skip

    def __len__(self) -> int:
        return len(self.names)

    def some(self, which: Sequence[int]) -> Dimensions:
        """Those of them alone."""
        return Dimensions(self.robot, self.leading, [self.names[i] for i in which])

    def numbers(self, changes: Mapping[str, float]) -> Array:
        """(p,) of named changes; the others are zero."""
        for name in changes:
            if name not in self.names:
                raise NameNotFoundError(f"no dimension is named '{name}'{did_you_mean(name, self.names)}")
        return np.array([float(changes.get(name, 0.0)) for name in self.names])

    # ---- mechanisms ----

    def _changes(self, x: Array) -> dict[str, dict[str, Array]]:
        """Placements (N, 4, 4) and lengths (N,) of changes (N, p)."""
        moved: dict[str, Array] = {}
        changes: dict[str, dict[str, Array]] = {}
        for (kind, of, k), each in zip(self._which, x.T, strict=True):
            if kind == "frame":
                moved.setdefault(of, np.zeros((len(x), 6)))[:, k] = each
            elif kind == "length":
                changes.setdefault("lengths", {})[of] = self.rods[of] + each
        for frame, by in moved.items():
            H = np.tile(np.eye(4), (len(x), 1, 1))
            H[:, :3, :3], H[:, :3, 3] = exp(by[:, :3]), by[:, 3:]
            changes.setdefault("placements", {})[frame] = self._at[frame] @ H
        return changes

    def changed(self, x: ArrayLike) -> Mechanism:
        """The mechanism with changed dimensions; offsets are the leading joints', and not in it."""
        changes: Any = self._changes(real_array("x", x).reshape(1, -1))
        make: dict[str, Any] = {"placements": Transform.from_matrix, "lengths": float}
        one: Any = {key: {name: make[key](values[0]) for name, values in of.items()} for key, of in changes.items()}
        return self.robot.replace(**one) if one else self.robot

    def variants(self, x: Array) -> Any:
        """Variants of changes (N, p)."""
        changes: Any = self._changes(x)
        return self.robot.variants(**(changes or {"gravity": np.tile(self.robot.gravity, (len(x), 1))}))

    def led(self, inputs: Mapping[str, Array], x: Array) -> dict[str, Array]:
        """Coordinates to which joints are led (..., n, nv of the joint), offsets of x (..., p) added to the inputs (n, nv)."""
        led = {name: np.array(np.broadcast_to(way, (*x.shape[:-1], *way.shape))) for name, way in inputs.items()}
        for i, (kind, joint, k) in enumerate(self._which):
            if kind == "offset" and joint in led:
                led[joint][..., k] += x[..., i, None]
        return led

    # ---- derivatives ----

    def moves(self, robot: Mechanism, q: Array, x: Array, frames: Sequence[str], joints: Sequence[str] = ()) -> Moves:
        """How frames and joints of `changed(x)` at q (n, nq) move with each dimension."""
        return Moves(self, assembled_positions(robot, q, list(self.leading)), x, frames, joints)

    def _turned(self, x: Array) -> dict[str, Array]:
        """Frame to (6, 6): its displacement, in its changed axes, by changes of what it was displaced by."""
        turns: dict[str, Array] = {}
        for (kind, of, k), change in zip(self._which, x, strict=True):
            if kind == "frame":
                turn = turns.setdefault(of, np.zeros(3))
                if k < 3:
                    turn[k] = change
        blocks = {}
        for frame, turn in turns.items():
            blocks[frame] = np.zeros((6, 6))
            blocks[frame][:3, :3], blocks[frame][3:, 3:] = right_jacobian(turn), exp(turn).T
        return blocks


class Moves:
    """Derivatives by dimensions.

    Attributes
    ----------
    frames : frame to (n, 6, p), its displacement [rotation; translation] in its own axes
    joints : joint with one coordinate to (n, p), how it changes, less the offset of its own reading
    closes : (p,) whether the loops close again after a change, in all configurations that are determined
    determined : (n,) whether what leads determines the position; where not, as at singular ones, derivatives are NaN
    of, x : the dimensions, and their changes (p,) so far
    """

    def __init__(
        self, of: Dimensions, D: AssembledPositions, x: Array, frames: Sequence[str] = (), joints: Sequence[str] = ()
    ) -> None:
        self.of, self.x, self._D, robot = of, x, D, of.robot
        self.determined = here = np.isfinite(D.leading).all(axis=(1, 2))
        if not here.any():
            raise StateError(f"{', '.join(of.leading)} do not determine the position: lead more joints, or other ones")
        self.closes = np.ones(len(of), bool)
        for i, (kind, name, k) in enumerate(of._which):
            if kind == "frame" and (place := self._place(name)) is not None:
                self.closes[i] = D.closes[here, place[0], place[1], k].all()
            elif kind == "length":
                self.closes[i] = np.isfinite(D.lengths[here][:, :, D.rods.index(name)]).all()
        self._turned = of._turned(x)
        self.frames = {frame: self._columns(D.frame(frame), frame) for frame in frames}
        self.joints = {}
        for joint in joints:
            j = robot.joint(joint)
            if j.closes_loop:
                self.joints[joint] = self._closing(joint, D)
            else:
                parts = [part[:, j.v_slice] for part in (D.leading, D.placements, D.lengths)]
                self.joints[joint] = self._columns(parts, None)[:, 0]
            if joint not in of.leading and f"{joint}.offset" in of.names:
                self.joints[joint][:, of.names.index(f"{joint}.offset")] -= 1.0

    def coordinates(self) -> Array:
        """(n, nv, p) displacements."""
        return self._columns([self._D.leading, self._D.placements, self._D.lengths], None)

    def numbers(self, places: Mapping[str, slice]) -> Array:
        """(numbers, p) those of :func:`sarrus.derivatives.dimensions`, of which places are told."""
        by = np.zeros((max((place.stop for place in places.values()), default=0), len(self.of)))
        for i, (kind, name, k) in enumerate(self.of._which):
            place = places.get(f"{name}.length" if kind == "length" else name)
            if self.closes[i] and place is not None and kind != "offset":
                by[place, i] = 1.0 if kind == "length" else self._turned[name][:, k]
        return by

    def _place(self, frame: str) -> tuple[int, int] | None:
        joint, _, side = frame.rpartition(".")
        return (self._D.joints.index(joint), SIDES.index(side)) if joint in self._D.joints and side in SIDES else None

    def _columns(self, parts: Sequence[Array], frame: str | None) -> Array:
        """(n, rows, p), zero where loops would not close."""
        by_leading, by_placements, by_lengths = parts
        columns, first = np.zeros((*by_leading.shape[:2], len(self.of))), dict[str, int]()
        for joint in self.of.leading:
            first[joint] = sum(int(self.of.robot.joint(name).type.nv) for name in first)
        for i, (kind, name, k) in enumerate(self.of._which):
            if not self.closes[i]:
                continue
            if kind == "offset" and name in first:
                columns[..., i] = by_leading[..., first[name] + k]
            elif kind == "length":
                columns[..., i] = by_lengths[..., self._D.rods.index(name)]
            elif (place := self._place(name)) is not None:
                columns[..., i] = np.nan_to_num(by_placements[..., place[0], place[1], :]) @ self._turned[name][:, k]
            elif name == frame:
                columns[..., i] = self._turned[name][:, k]
        columns[~self.determined] = np.nan
        return columns

    def _closing(self, joint: str, D: AssembledPositions) -> Array:
        """Of a joint that closes a loop: how its child's frame moves from its parent's, along the joint."""
        robot, q = D._at[0], D._at[1]
        j = robot.joint(joint)
        if j.kind not in ("Revolute", "Prismatic"):
            raise ModelError(
                f"joint '{joint}' closes a loop and is {j.kind}: readings of Revolute and Prismatic ones have derivatives there"
            )
        parent, child = (self._columns(D.frame(f"{joint}.{side}"), f"{joint}.{side}") for side in SIDES)
        R = np.swapaxes(robot.pose(q, f"{joint}.parent")[:, :3, :3], 1, 2) @ robot.pose(q, f"{joint}.child")[:, :3, :3]
        # a turn of the parent's frame carries a slide's child along across the axis only
        part = slice(0, 3) if j.kind == "Revolute" else slice(3, 6)
        relative = R @ child[:, part] - parent[:, part]
        return np.asarray(np.asarray(unit_axis(cast(Any, j.type).axis)) @ relative)


def checked_inputs(robot: Mechanism, inputs: Any, what: str = "inputs") -> dict[str, Array]:
    """Joint to the coordinates that it is led to, (n, nv of the joint); ShapeError where they are not equally many."""
    check_mapping(what, inputs, "joints to the coordinates that they are led to, (n,)")
    ways = {}
    for name, x in inputs.items():
        way = real_array(f"{what} of '{name}'", x)
        way = way[:, None] if way.ndim == 1 else way
        if way.ndim != 2 or way.shape[1] != robot.joint(name).type.nv or robot.joint(name).type.nq != way.shape[1]:
            raise ShapeError(f"{what} of '{name}' need (n,) coordinates of a joint with one; got shape {way.shape}")
        ways[name] = way
    if len({len(way) for way in ways.values()}) > 1:
        raise ShapeError(
            f"{what} must be equally many of each joint; got {', '.join(str(len(way)) for way in ways.values())}"
        )
    return ways
