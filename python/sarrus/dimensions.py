"""Named dimensions of a mechanism, for calibration, tolerances and synthesis.

- "elbow.parent.x": displacement [m] of the joint's frame on its parent, along its own x axis; "elbow.parent.rx": rotation [rad] about that axis
- "tool.x": displacement [m] of an added frame along its own x axis; also "tool.rx", as for joints
- "rod.length": length of a distance constraint [m]
- "motor.offset": difference between the joint's coordinate and its encoder's reading [rad, m]
- ``Tied("arm", ["rod1.length", "rod2.length"])``: several dimensions that change together, as one dimension with its own name

Derivatives of closed configurations: if a joint's frame is displaced on one of its bodies, the loops open. The derivative is the motion that closes
the loops again, with the input joints locked. The change of constraint row r follows from virtual work: it is the work, along the displacement, of the
wrench that a unit multiplier of row r exerts on the joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ._arrays import (
    Array,
    ArrayLike,
    NDArray,
    check_mapping,
    checked_names,
    checked_number,
    checked_several,
    checked_text,
    checked_times,
    real_array,
    real_rows,
)
from ._core import Status
from ._renamed import renamed_attribute
from ._showing import Brief
from .analysis.closing import closing
from .description.constraints import CouplerSpec, DistanceSpec
from .description.joints import unit_axis
from .dynamics.derivatives import check_robot
from .dynamics.loop_operations import LoopFunctions, raise_explained
from .errors import ModelError, NameNotFoundError, ShapeError, StateError, did_you_mean
from .mechanism import Mechanism, checked_mechanism
from .spatial import Transform, exp, right_jacobian

__all__ = ["Dimensions", "Moves", "Tied"]

AXES = ("rx", "ry", "rz", "x", "y", "z")
SAME = 1e-9  # values of tied dimensions are considered equal up to this relative difference


@dataclass(frozen=True)
class Tied:
    """Dimensions that change together: one change t, by which each member changes by its coefficient times t.

    A dimension may be a member of several ties; their changes add up.

    Attributes
    ----------
    name : name of the common change
    members : names of the dimensions; or a mapping from these names to coefficients, such as ``{"a.parent.x": 1, "b.parent.x": -1}`` for a constant
        sum. The change has the unit of the first member [rad, m]; coefficients convert it to the units of the others

    Examples
    --------
    >>> from sarrus.dimensions import Tied
    >>> Tied("arm", ["rod1.length", "rod2.length"]).coefficients
    {'rod1.length': 1.0, 'rod2.length': 1.0}
    """

    name: str
    members: Sequence[str] | Mapping[str, float]

    def __post_init__(self) -> None:
        checked_text("name of a Tied", self.name)
        label = f"members of '{self.name}'"
        members: Any = self.members
        if isinstance(members, tuple) and all(isinstance(x, tuple) and len(x) == 2 for x in members):
            members = dict(members)  # members of another Tied
        elif not isinstance(members, Mapping):
            members = dict.fromkeys(checked_names(label, members), 1.0)
        check_mapping(label, members, "dimensions to their coefficients")
        pairs = tuple(
            (name, checked_number(f"coefficient of '{name}' in '{self.name}'", x, "")) for name, x in members.items()
        )
        if not all(x for _, x in pairs):
            raise ModelError(f"{label} must have coefficients other than 0; got {dict(pairs)}")
        object.__setattr__(self, "members", pairs)  # hashable

    @property
    def coefficients(self) -> dict[str, float]:
        """Members, and their coefficients."""
        return dict(cast(Any, self.members))


class Dimensions:
    """List of p dimensions of a mechanism; vectors x (p,) are their changes from the nominal values.

    Attributes
    ----------
    robot, leading : the mechanism, and the names of its driven joints, whose coordinates are inputs
    names : (p) names of the dimensions, or :class:`Tied` dimensions; default: those of all joints and rods, of `frames`, and of the encoders of `leading` and
        `read`
    frames : names of added frames whose placements are dimensions, too
    read : names of further joints whose encoders have an offset
    angular : (p,) True for dimensions in radians
    """

    def __init__(
        self, robot: Mechanism, leading: Sequence[str], names: Sequence[str | Tied] | None = None, frames: Sequence[str] = (), read: Sequence[str] = ()
    ) -> None:  # fmt: skip
        self.robot, self.leading = checked_mechanism(robot, "robot"), tuple(checked_names("leading", leading))
        frames, read = checked_names("frames", frames), checked_names("read", read)
        frames_added = {f.name: f.placement for f in robot.description.frames}
        joints = {f"{j.name}.{side}": getattr(j, f"at_{side}") for j in robot.description.joints for side in SIDES}
        joints = {
            f"{name}.{side}": joints[f"{name}.{side}"] for name in (*robot.joints, *robot.loop_joints) for side in SIDES
        }
        self._at = {name: at.matrix for name, at in (joints | frames_added).items()}
        self.rods = {c.name: c.length for c in robot.description.constraints if isinstance(c, DistanceSpec)}
        places: dict[str, tuple[str, str, int]] = {}
        for joint in (*self.leading, *read):
            for k in range(robot.joint(joint).type.nv):
                places[f"{joint}.offset" + f"[{k}]" * (robot.joint(joint).type.nv > 1)] = ("offset", joint, k)
        places |= {f"{rod}.length": ("length", rod, 0) for rod in self.rods}
        # displacements come first, because a combination of indistinguishable dimensions is named after its first dimension, and displacements are
        # easier to understand
        for axes in (AXES[3:], AXES[:3]):
            places |= {f"{frame}.{axis}": ("frame", frame, AXES.index(axis)) for frame in self._at for axis in axes}
        usual = [n for n, (kind, of, _) in places.items() if kind != "frame" or of in joints or of in frames]
        ties = _ties(usual if names is None else names)
        self.names = tuple(tie.name for tie in ties)
        # the p changes move m members, which are dimensions without ties, by `_by_tie` (m, p)
        self._members = tuple(dict.fromkeys(name for tie in ties for name in tie.coefficients))
        for name in self._members:
            if name not in places and name.rpartition(".")[0] in {
                c.name for c in robot.description.constraints if isinstance(c, CouplerSpec)
            }:
                expected = "expected placements, lengths and encoder offsets; sarrus.derivatives.dimensions has coefficients, but no functions"
                raise ModelError(
                    f"'{name}' is a number of a coupler, which cannot be designed or calibrated: {expected}"
                )
            if name not in places:
                raise NameNotFoundError(f"no dimension is named '{name}'{did_you_mean(name, places)}")
        if len(set(self.names)) < len(self.names):
            raise ModelError(f"a dimension is named twice among {', '.join(self.names)}")
        self._ties = tuple(ties)
        shares = [[tie.coefficients.get(name, 0.0) for tie in ties] for name in self._members]
        self._by_tie = np.array(shares, float).reshape(len(self._members), len(ties))
        self._places = [places[name] for name in self._members]
        angular = {name: k < 3 if kind == "frame" else kind == "offset" and robot.joint(of).kind != "Prismatic" for name, (kind, of, k) in
            zip(self._members, self._places, strict=True)}  # fmt: skip
        self.angular = np.array([angular[next(iter(tie.coefficients))] for tie in ties], bool)

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    def __len__(self) -> int:
        return len(self.names)

    def some(self, indices: Sequence[int]) -> Dimensions:
        """Return the dimensions with the given indices.

        Parameters
        ----------
        indices : indices in `names`
        """
        chosen = real_array("indices", indices).ravel().tolist()
        if any(i % 1 or not -len(self) <= i < len(self) for i in chosen):
            raise ModelError(f"indices must be integers, those of {len(self)} dimensions; got {indices!r}")
        return Dimensions(self.robot, self.leading, [self._ties[int(i)] for i in chosen])

    def numbers(self, changes: Mapping[str, float]) -> Array:
        """Return the vector x (p,) of changes [rad, m] from a mapping; other entries are zero.

        Parameters
        ----------
        changes : dimension to its change [rad, m]
        """
        check_mapping("changes", changes, "dimensions to their changes", 0)
        for name in changes:
            if name not in self.names:
                raise NameNotFoundError(f"no dimension is named '{name}'{did_you_mean(name, self.names)}")
        return np.array([checked_number(f"change of '{name}'", changes.get(name, 0.0), "") for name in self.names])

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the p changes, "rad" or "m"."""
        return tuple("rad" if angular else "m" for angular in self.angular)

    def values(self, x: ArrayLike | None = None) -> Array:
        """Return the values (p,) of the dimensions after changes [rad, m].

        A displacement counts from the origin of the body, an angle and an encoder offset from the nominal one. Ties have the common value of their
        members, divided by the coefficients; NaN if the members have different values.

        Parameters
        ----------
        x : (p,) changes [rad, m]; default: zero

        Examples
        --------
        >>> import sarrus
        >>> from sarrus.dimensions import Dimensions, Tied
        >>> robot = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
        >>> Dimensions(robot, ["motor"], ["pin1.parent.x", Tied("ground", {"pivot.parent.x": 1.0})]).values([0.05, 0.0]).round(9).tolist()
        [0.45, 1.0]
        """
        nominal = [
            float(self._at[of][:3, k - 3] @ self._at[of][:3, 3])
            if kind == "frame" and k >= 3
            else self.rods.get(of, 0.0)
            for kind, of, k in self._places
        ]
        by_member = dict(zip(self._members, nominal, strict=True))
        member_values = [[by_member[name] / c for name, c in tie.coefficients.items()] for tie in self._ties]
        common = [v[0] if np.ptp(v) <= SAME * np.max(np.abs(v)) else np.nan for v in member_values]
        return np.array(common) + (0.0 if x is None else self._vectors(x))

    def _vectors(self, x: ArrayLike) -> Array:
        """Return changes (..., p) as an array; raise ShapeError for another number of changes."""
        values = real_array("x", x)
        if values.shape[-1:] != (len(self),):
            raise ShapeError(f"x must be (..., {len(self)}), a change of each dimension; got {values.shape}")
        return values

    # ---- mechanisms ----

    def _changes(self, x: Array) -> dict[str, dict[str, Array]]:
        """Return the placements, frame -> (N, 4, 4), and the lengths, rod -> (N,) [m], after changes x (N, p)."""
        moved: dict[str, Array] = {}
        changes: dict[str, dict[str, Array]] = {}
        for (kind, of, k), each in zip(self._places, self._by_tie @ x.T, strict=True):
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
        """Return the mechanism with changed dimensions.

        Encoder offsets in x have no effect, because they are not part of the mechanism.

        Parameters
        ----------
        x : (p,) changes [rad, m]
        """
        changes: Any = self._changes(self._vectors(x).reshape(1, len(self)))
        make: dict[str, Any] = {"placements": Transform.from_matrix, "lengths": float}
        numbers: Any = {key: {name: make[key](values[0]) for name, values in of.items()} for key, of in changes.items()}
        return self.robot.replace(**numbers) if numbers else self.robot

    def variants(self, x: Array) -> Any:
        """Return the variants with changed dimensions.

        Parameters
        ----------
        x : (N, p) changes [rad, m]
        """
        x = self._vectors(x).reshape(-1, len(self))
        changes: Any = self._changes(x)
        return self.robot.variants(**(changes or {"gravity": np.tile(self.robot.gravity, (len(x), 1))}))

    def driven(self, inputs: Mapping[str, Array], x: Array) -> dict[str, Array]:
        """Return the coordinates (..., n, nv of the joint) of the driven joints: the inputs plus the encoder offsets in x [rad, m].

        Parameters
        ----------
        inputs : driven joint to its encoder's readings (n,), or (n, nv of the joint) [rad, m]
        x : (..., p) changes [rad, m]
        """
        x, readings = self._vectors(x), checked_inputs(self.robot, inputs, least=0)
        driven = {name: np.array(np.broadcast_to(y, (*x.shape[:-1], *y.shape))) for name, y in readings.items()}
        members = x @ self._by_tie.T
        for i, (kind, joint, k) in enumerate(self._places):
            if kind == "offset" and joint in driven:
                driven[joint][..., k] += members[..., i, None]
        return driven

    # ---- derivatives ----

    def moves(self, robot: Mechanism, q: Array, x: Array, frames: Sequence[str], joints: Sequence[str] = ()) -> Moves:
        """Return the derivatives of frames and joints of `changed(x)` at the configurations q, with respect to each dimension.

        Parameters
        ----------
        robot : the mechanism `changed(x)`
        q : (n, nq) its configurations [rad, m]
        x : (p,) changes [rad, m]
        frames : names of the frames
        joints : names of the joints with one coordinate
        """
        return Moves(self, assembled_positions(robot, q, list(self.leading)), self._vectors(x), frames, joints)

    def _turned(self, x: Array) -> dict[str, Array]:
        """Return frame -> (6, 6), the derivative of the frame's displacement, in its changed axes, with respect to the six parameters of its
        placement.
        """
        turns: dict[str, Array] = {}
        for (kind, of, k), change in zip(self._places, self._by_tie @ x, strict=True):
            if kind == "frame":
                turn = turns.setdefault(of, np.zeros(3))
                if k < 3:
                    turn[k] = change
        blocks = {}
        for frame, turn in turns.items():
            blocks[frame] = np.zeros((6, 6))
            blocks[frame][:3, :3], blocks[frame][3:, 3:] = right_jacobian(turn), exp(turn).T
        return blocks


def _ties(names: Any) -> list[Tied]:
    """Return dimensions as ties; raise TypeError if an entry is neither a name nor a Tied."""
    entries = [names] if isinstance(names, str | Tied) else names
    expected = "names, each a str, or Tied(name, members)"
    several = checked_several("names of dimensions", entries, lambda entry: isinstance(entry, str | Tied), expected)
    return [entry if isinstance(entry, Tied) else Tied(entry, [entry]) for entry in several]


class Moves:
    """Derivatives with respect to dimensions.

    Attributes
    ----------
    frames : frame to (n, 6, p), the derivative of its displacement [rotation; translation] in its own axes; as an argument, the frames' names
    joints : joint with one coordinate to (n, p), the derivative of the coordinate, or of the encoder's reading if the joint has an offset; as an argument,
        the joints' names
    closes : (p,) True if the loops can be closed after a change of this dimension, in all determined configurations
    together : (p,) True for ties of which a member alone would open the loops; their derivatives are of positions only
    determined : (n,) True if the driven joints determine the position. In other configurations, such as singular positions, derivatives are NaN
    of : the dimensions
    x : (p,) their current changes [rad, m]
    D : derivatives of the assembled positions, of :func:`sarrus.derivatives.assembled_positions`
    """

    def __init__(
        self, of: Dimensions, D: AssembledPositions, x: Array, frames: Sequence[str] = (), joints: Sequence[str] = ()
    ) -> None:
        given: tuple[Any, Any] = of, D
        if not isinstance(given[0], Dimensions) or not isinstance(given[1], AssembledPositions):
            raise TypeError(
                "of and D must be Dimensions and derivatives of assembled positions; Dimensions.moves creates both"
            )
        frames, joints = checked_names("frames", frames), checked_names("joints", joints)
        self.of, self.x, self._D, robot = of, of._vectors(x), D, of.robot
        self.determined = determined = np.isfinite(D.leading).all(axis=(1, 2))
        if not determined.any():
            raise StateError(f"{', '.join(of.leading)} do not determine the position: name more or other input joints")
        closes = np.ones(len(of._places), bool)  # of the members, each alone
        for i, (kind, name, k) in enumerate(of._places):
            if kind == "frame" and (place := self._place(name)) is not None:
                closes[i] = D.closes[determined, place[0], place[1], k].all()
            elif kind == "length":
                closes[i] = np.isfinite(D.lengths[determined][:, :, D.rods.index(name)]).all()
        self.closes = ~(of._by_tie[~closes] != 0.0).any(axis=0)
        self._turned = of._turned(self.x)
        self._dq = self._columns([D.leading, D.placements, D.lengths], None)
        self.together = np.zeros(len(of), bool)
        if not self.closes[[len(tie.coefficients) > 1 for tie in of._ties]].all():
            self._close_together(np.flatnonzero(~self.closes))
        still = [np.zeros_like(part) for part in (D.leading, D.placements, D.lengths)]
        self._at_rest = replace(D, leading=still[0], placements=still[1], lengths=still[2])
        self.frames = {frame: self._of_frame(frame) for frame in frames}
        self.joints = {}
        for joint in joints:
            j = robot.joint(joint)
            if j.type.nv != 1:
                raise ModelError(
                    f"derivatives of joints require joints with one coordinate; '{joint}' ({j.kind}) has {j.type.nv}: "
                    f"use its frame '{joint}.child' instead"
                )
            if j.closes_loop:
                self.joints[joint] = self._closing(joint, D)
            else:
                self.joints[joint] = self._dq[:, j.v_slice.start].copy()
            if joint not in of.leading and f"{joint}.offset" in of._members:
                self.joints[joint] -= of._by_tie[of._members.index(f"{joint}.offset")]

    def coordinates(self) -> Array:
        """Return the derivatives (n, nv, p) of q, as displacements."""
        return self._dq.copy()

    def _close_together(self, ties: NDArray[np.intp]) -> None:
        """Compute the motions of ties whose members close the loops together, but not alone, as in overconstrained mechanisms."""
        robot, q, at_time = self._D._at
        displacements, joints = _Moves(robot, q, self.of.leading, at_time), self._D.joints
        eye = np.eye(displacements.robot.nc)
        placements, lengths = np.zeros((len(ties), len(joints), 2, 6)), np.zeros((len(ties), len(eye)))
        for i, (kind, name, k) in enumerate(self.of._places):
            by = self.of._by_tie[i, ties]
            if kind == "length":
                lengths += by[:, None] * eye[displacements.robot.constraint(name).rows.start]
            elif kind == "frame" and (place := self._place(name)) is not None:
                placements[:, place[0], place[1]] += by[:, None] * self._turned[name][:, k]
        opening = _power(robot, q, displacements.loads(eye))  # (n, nc, parameters)
        rows = lengths - placements.reshape(len(ties), -1) @ np.swapaxes(opening, -1, -2)
        dq, status = displacements.closing(rows)
        good = (status[self.determined] == 0).all(axis=0)
        ties = ties[good]
        self.closes[ties] = self.together[ties] = True
        offsets = self._columns([self._D.leading, *map(np.zeros_like, (self._D.placements, self._D.lengths))], None)
        self._dq[..., ties] = (dq[..., good] + offsets[..., ties]) * np.where(self.determined, 1.0, np.nan)[
            :, None, None
        ]

    def _of_frame(self, frame: str) -> Array:
        """Return the derivatives (n, 6, p) of a frame's displacement: with the moving coordinates, and of the frame on its body."""
        robot, q = self._D._at[:2]
        J = robot.jacobian(q, frame, return_status=True)[0]
        return np.asarray(J @ self._dq + self._columns(self._at_rest.frame(frame), frame))

    def numbers(self, places: Mapping[str, slice]) -> Array:
        """Return the derivatives (numbers, p) of the parameters in :func:`sarrus.derivatives.dimensions`.

        Parameters
        ----------
        places : parameter to its indices, see :func:`sarrus.derivatives.dimensions`
        """
        check_mapping("places", places, "parameters to their indices, as sarrus.derivatives.dimensions returns them", 0)
        slices: Iterable[Any] = places.values()
        if not all(isinstance(place, slice) and isinstance(place.stop, int) for place in slices):
            raise TypeError(f"places must be slices with an end; got {places!r}")
        by = np.zeros((max((place.stop for place in places.values()), default=0), len(self.of._places)))
        for i, (kind, name, k) in enumerate(self.of._places):
            place = places.get(f"{name}.length" if kind == "length" else name)
            if place is not None and kind != "offset":
                by[place, i] = 1.0 if kind == "length" else self._turned[name][:, k]
        return np.asarray(by @ np.where(self.closes, self.of._by_tie, 0.0))

    def _place(self, frame: str) -> tuple[int, int] | None:
        joint, _, side = frame.rpartition(".")
        return (self._D.joints.index(joint), SIDES.index(side)) if joint in self._D.joints and side in SIDES else None

    def _columns(self, parts: Sequence[Array], frame: str | None) -> Array:
        """Return derivatives (n, rows, p), which are zero for dimensions whose change would open the loops."""
        by_leading, by_placements, by_lengths = parts
        columns, first = np.zeros((*by_leading.shape[:2], len(self.of._places))), dict[str, int]()
        for joint in self.of.leading:
            first[joint] = sum(int(self.of.robot.joint(name).type.nv) for name in first)
        for i, (kind, name, k) in enumerate(self.of._places):
            if kind == "offset" and name in first:
                columns[..., i] = by_leading[..., first[name] + k]
            elif kind == "length":
                columns[..., i] = np.nan_to_num(by_lengths[..., self._D.rods.index(name)])
            elif (place := self._place(name)) is not None:
                columns[..., i] = np.nan_to_num(by_placements[..., place[0], place[1], :]) @ self._turned[name][:, k]
            elif name == frame:
                columns[..., i] = self._turned[name][:, k]
        columns[~self.determined] = np.nan
        return np.asarray(columns @ np.where(self.closes, self.of._by_tie, 0.0))

    def _closing(self, joint: str, D: AssembledPositions) -> Array:
        """Return the derivatives (n, p) of a loop joint's coordinate: the motion of its frame on the child relative to its frame on the parent, along
        the joint's axis.
        """
        robot, q = D._at[0], D._at[1]
        j = robot.joint(joint)
        if j.kind not in ("Revolute", "Prismatic"):
            raise ModelError(
                f"joint '{joint}' is a loop joint of type {j.kind}: only readings of Revolute and Prismatic loop joints have derivatives"
            )
        parent, child = (self._of_frame(f"{joint}.{side}") for side in SIDES)
        R = np.swapaxes(robot.pose(q, f"{joint}.parent")[:, :3, :3], 1, 2) @ robot.pose(q, f"{joint}.child")[:, :3, :3]
        # for a prismatic joint, rotations of the parent's frame are omitted: they move the child's origin, which is on the axis, only perpendicular
        # to the axis
        part = slice(0, 3) if j.kind == "Revolute" else slice(3, 6)
        relative = R @ child[:, part] - parent[:, part]
        return np.asarray(np.asarray(unit_axis(cast(Any, j.type).axis)) @ relative)


def checked_inputs(robot: Mechanism, inputs: Any, argument: str = "inputs", least: int = 1) -> dict[str, Array]:
    """Return driven joint -> its coordinates (n, nv of the joint); raise ShapeError if n differs between joints."""
    check_mapping(argument, inputs, "joints to their coordinates (n,)", least)
    paths = {}
    for name, x in inputs.items():
        path = real_array(f"{argument} of '{name}'", x)
        path = path[:, None] if path.ndim == 1 else path
        if path.ndim != 2 or path.shape[1] != robot.joint(name).type.nv or robot.joint(name).type.nq != path.shape[1]:
            raise ShapeError(
                f"{argument} of '{name}' must be (n,) coordinates, of a joint with one coordinate; got shape {path.shape}"
            )
        paths[name] = path
    if len({len(path) for path in paths.values()}) > 1:
        counts = ", ".join(str(len(path)) for path in paths.values())
        raise ShapeError(f"{argument} must have equally many values for each joint; got {counts}")
    return paths


SIDES = ("parent", "child")


@dataclass(frozen=True, eq=False, repr=False)
class AssembledPositions(Brief):
    """Derivatives of a closed configuration: dq = leading d(input coordinates) + placements d(frames of joints) + lengths d(rods).

    Attributes
    ----------
    leading : (..., nv, k) with respect to the coordinates of the input joints, as displacements along their velocities [rad, m]
    placements : (..., nv, joints, 2, 6) with respect to displacements [rotation; translation] of a joint's frame on its parent (0) and on its
        child (1), in the frame's axes [rad, m]; NaN if `closes` is False
    lengths : (..., nv, rods) with respect to the lengths of distance constraints [m]; NaN if the loops do not close with another length
    closes : (..., joints, 2, 6) True if the loops close after the displacement. Overconstrained mechanisms have displacements that open the loops,
        for example those of a planar linkage out of its plane
    joints, rods : names of joints and of distance constraints, in the order of the axes above
    """

    leading: Array
    placements: Array
    lengths: Array
    closes: Array
    joints: tuple[str, ...]
    rods: tuple[str, ...]
    _at: tuple[LoopFunctions, Array, dict[str, Any]] = field(repr=False)

    def frame(self, name: str) -> tuple[Array, Array, Array]:
        """Return the derivatives of a frame's pose, as displacements [rotation; translation] in its own axes.

        Parameters
        ----------
        name : name of the frame

        Returns
        -------
        (..., 6, k), (..., 6, joints, 2, 6), (..., 6, rods) : with respect to input coordinates, placements and lengths; see the attributes
        """
        robot, q, at_time = self._at
        J = robot.jacobian(q, name, return_status=True)[0]
        moves = [
            np.einsum("...fv,...vp->...fp", J, x.reshape(*x.shape[: J.ndim - 1], -1))
            for x in (self.leading, self.placements, self.lengths)
        ]
        keywords = {key: x[..., None] for key, x in at_time.items()}
        loads = _loads(robot, q[..., None, :], np.zeros(robot.nc), {name: np.eye(6)}, keywords)
        places = dict(robot._load_places)
        carried = _power(robot, q, loads[..., [places[joint] for joint in self.joints], :])
        by_placements = (moves[1] + carried).reshape(*moves[1].shape[:-1], *self.placements.shape[q.ndim :])
        joint, _, side = name.rpartition(".")
        if joint in self.joints and side in SIDES and name not in robot.frames:
            # a displacement of the frame itself
            by_placements[..., self.joints.index(joint), SIDES.index(side), :] += np.eye(6)
        return moves[0], by_placements, moves[2]


def assembled_positions(
    robot: LoopFunctions, q: ArrayLike, leading: Sequence[str], *, time: ArrayLike | None = None
) -> AssembledPositions:
    """Compute derivatives of closed configurations with respect to input coordinates, placements of joints and lengths of rods.

    Parameters
    ----------
    robot : the mechanism
    q : (..., nq) configuration that closes the loops [rad, m, quaternions (x, y, z, w)]
    leading : names of the input joints, tree or loop joints, whose coordinates determine the motion
    time : (...) time for prescribed motions [s]; it is constant

    Returns
    -------
    AssembledPositions

    Raises
    ------
    StateError
        The loops are open. Or the input joints do not determine the motion, because they are too few or the position is singular. In a batch, no
        error is raised and the row is NaN.
    NameNotFoundError, ModelError
        A joint does not exist; input joints close a loop among themselves; a constraint acts on velocities only.

    Examples
    --------
    Derivatives of a slider-crank, among them that of its slider per displacement of its wrist pin:

    >>> import sarrus
    >>> robot = sarrus.mechanisms.slider_crank()
    >>> q = robot.assemble(fixed={"motor": 0.6})
    >>> D = sarrus.derivatives.assembled_positions(robot, q, ["motor"])
    >>> D.leading.shape, D.placements.shape, len(D.joints)
    ((3, 1), (3, 4, 2, 6), 4)
    """
    check_robot(robot, variants=False)
    q = real_rows("q", q, robot.nq)
    names = tuple(checked_names("leading", leading))
    velocities = [name for name, c in robot._constraints.items() if not np.all(c.holonomic)]
    if velocities:
        raise ModelError(
            f"constraint '{velocities[0]}' constrains velocities only, so positions do not follow from dimensions; expected position constraints"
        )
    when = checked_times(time)
    at_time = {} if when is None else {"time": np.broadcast_to(when, q.shape[:-1])}
    velocity = robot.project_velocity(q, np.zeros(robot.nv), return_status=True, **cast(Any, at_time))[0]
    state = {"q": q, "v": velocity, "tau": np.zeros(robot.nv), **at_time}
    open_ = robot.forward_dynamics(**cast(Any, state), return_status=True)[1] == Status.OFF_LOOPS
    if q.ndim == 1 and open_:
        raise_explained(robot, "assembled_positions", Status.OFF_LOOPS, state)
    displacements = _Moves(robot, q, names, at_time)
    freedom = np.where(open_, np.nan, displacements.freedom())
    if q.ndim == 1 and freedom != 0.0:
        raise StateError(
            f"assembled_positions: the input joints ({', '.join(map(repr, names)) or 'none'}) leave {freedom:.0f} degrees of freedom; expected 0: "
            "name more joints, unless the position is singular"
        )
    by_input, _ = displacements.along_leading([np.eye(robot.joint(name).type.nv) for name in names])
    eye = np.eye(displacements.robot.nc)
    opening = _power(robot, q, displacements.loads(eye))  # (..., nc, parameters)
    placements, status = displacements.closing(-np.swapaxes(opening, -1, -2))
    rods = tuple(name for name, c in robot._constraints.items() if isinstance(c.spec, DistanceSpec))
    lengths, _ = displacements.closing(eye[[displacements.robot.constraint(name).rows.start for name in rods]])
    joints, closes = (*robot.joints, *robot.loop_joints), (status == 0) & (freedom == 0.0)[..., None]
    for x in (by_input, placements, lengths):
        x[freedom != 0.0] = np.nan
    shape = (len(joints), 2, 6)
    return AssembledPositions(
        by_input, placements.reshape(*placements.shape[:-1], *shape), lengths, closes.reshape(*q.shape[:-1], *shape), joints, rods, (robot, q,
        at_time)
    )  # fmt: skip


class _Moves:
    """Displacements that keep the loops closed, with the input joints locked or moving; input loop joints are target constraints of `robot`."""

    def __init__(self, robot: LoopFunctions, q: Array, leading: tuple[str, ...], at_time: dict[str, Any]) -> None:
        self.base, self.leading, self.closure = robot, leading, closing(robot, (), leading)
        self.robot, self.q = self.closure.robot, q[..., None, :]
        self.besides = {name: x[..., None] for name, x in at_time.items()}
        self.time = dict(self.besides)
        if self.closure.loop_joints or robot._asks_for_rows:
            current = cast(Any, robot.joint_states(q, return_status=True, **at_time))[0].q
            targets = np.concatenate([q[..., :0], *(current[name] for name in self.closure.loop_joints)], axis=-1)
            self.besides["pfaffian_values"] = self.closure.values(q, None, targets)[..., None, :]
        # offset that cancels the velocities of prescribed motions, because the derivatives are at constant time
        self.still = -self.robot.constraint_velocity(self.q, return_status=True, **self.besides)[0]

    def freedom(self) -> Array:
        """Return the number of degrees of freedom with locked input joints, (...); NaN without a result."""
        answer = self.robot._loop_motions(self.q, self.closure.scale, return_status=True, **self.besides)[0]
        return np.asarray(answer[..., 0, -1] - np.sum(self.closure.weight == 0.0))

    def along_leading(self, units: Sequence[Array]) -> tuple[Array, Array]:
        """Return the displacements (..., nv, k) for unit motions of the input joints, and the status of each."""
        count = sum(map(len, units))
        fixed_velocities, rows = np.zeros((count, self.base.nv)), np.zeros((count, self.robot.nc))
        places, first = dict(zip(self.closure.loop_joints, self.closure.rows, strict=True)), 0
        for name, unit in zip(self.leading, units, strict=True):
            columns = slice(first, first + len(unit))
            (rows if name in places else fixed_velocities)[columns, places.get(name, self.base.joint(name).v_slice)] = (
                unit
            )
            first += len(unit)
        return self._least(fixed_velocities, rows)

    def closing(self, rows: Array) -> tuple[Array, Array]:
        """Return the displacements (..., nv, k) for changes `rows` (..., k, nc) of the constraint rows, and the status of each."""
        return self._least(np.zeros(self.base.nv), rows)

    def loads(self, multipliers: Array) -> Array:
        """Return the wrenches (..., k, joints, 6) of multipliers (..., k, nc) on the joints, including the multipliers of target rows."""
        places = dict(self.robot._load_places)
        names = (*self.base.joints, *self.base.loop_joints)
        loads = _loads(self.robot, self.q, multipliers, None, self.time)
        joint_loads = loads[..., [places[name] for name in names], :]
        first_target = len(self.robot.constraints) - len(self.closure.loop_joints)
        for k, name in enumerate(self.closure.loop_joints):
            joint_loads[..., names.index(name), :] += loads[..., len(self.robot.bodies) + first_target + k, :]
        return joint_loads

    def _least(self, fixed_velocities: Array, rows: Array) -> tuple[Array, Array]:
        dq, status = self.robot._least_motion(
            self.q, fixed_velocities, None, self.closure.weight, rows + self.still, return_status=True, **self.besides
        )
        return np.swapaxes(dq, -1, -2), np.asarray(status)


def _loads(robot: LoopFunctions, q: Array, multipliers: Array, wrenches: Any, at_time: dict[str, Any]) -> Array:
    """Return the wrenches (..., bodies and constraints, 6) that multipliers or wrenches exert on the joints' children, in the joints' frames."""
    rest, no_efforts = np.zeros(robot.nv), np.zeros(robot._all_nv - robot.nv)
    weight_loads = robot._joint_loads(q, rest, rest, np.zeros(robot.nc), no_efforts, return_status=True, **at_time)[0]
    # scale the multipliers to the magnitude of the loads of the bodies' weight; otherwise the rounding of these loads could dominate the difference
    size = np.abs(weight_loads).max(axis=(-2, -1), initial=0.0)[..., None]
    size = np.where(size > 0.0, size, 1.0)
    wrenches = None if wrenches is None else {name: size * w for name, w in wrenches.items()}
    loads = robot._joint_loads(
        q, rest, rest, size * multipliers, no_efforts, wrenches=wrenches, return_status=True, **at_time
    )[0]
    return np.asarray((loads - weight_loads) / size[..., None])


def _power(robot: LoopFunctions, q: Array, loads: Array) -> Array:
    """Return the power (..., k, 12 joints) of loads (..., k, joints, 6) along displacements of the joints' frames on parents, then on children."""
    specs = {spec.name: spec for spec in robot.description.joints}
    on_parents = []
    for i, name in enumerate((*robot.joints, *robot.loop_joints)):
        spec = specs[name]
        parent, child = (
            robot.pose(q, body, return_status=True)[0] @ at.matrix
            for body, at in ((spec.parent, spec.at_parent), (spec.child, spec.at_child))
        )
        R = np.swapaxes(parent[..., :3, :3], -1, -2)[..., None, :, :]
        arm = (child - parent)[..., None, :3, 3]
        turn = np.einsum("...ij,...j->...i", child[..., None, :3, :3], loads[..., i, :3])
        push = np.einsum("...ij,...j->...i", child[..., None, :3, :3], loads[..., i, 3:])
        moment = turn + np.cross(arm, push)
        on_parents.append(-np.concatenate([(R @ moment[..., None])[..., 0], (R @ push[..., None])[..., 0]], axis=-1))
    both = np.stack([np.stack(on_parents, axis=-2), loads], axis=-2)
    return both.reshape(*both.shape[:-3], 12 * len(on_parents))
