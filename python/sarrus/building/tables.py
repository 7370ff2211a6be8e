"""Mechanisms from the tables of the literature, without conversion.

=====================  =============================================================================================
`from_sdof`            van der Merwe's six parameters of each joint: chains with joints of up to six degrees of freedom
`from_dh`              Denavit-Hartenberg parameters, standard or modified
`from_screws`          products of exponentials: joint twists in space and home poses
`from_spacedyn`        SpaceDyn's connection index and link vectors: trees on a free base
=====================  =============================================================================================

Links and joints are counted from one, as in the tables: bodies "link1", "link2", … (or `names`), joints "joint1", "joint2", …, and a frame "tip" at
the end of a chain. Common arguments, with a row for each body:

mass : (n,) [kg]; None: massless links, for kinematics
com : (n, 3) centre of mass in the link's frame [m]; None: its origin
inertia : (n, 3, 3), or (n, 3) for principal moments, about the centre of mass, in the axes of the link's frame [kg m²]; None: point masses

The messages of ShapeError and ModelError name the table and its row or column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np

from .._arrays import ArrayLike, checked_names, checked_truth, real_numbers
from ..description.joints import Fixed, Free, Gimbal, Helical, JointType, Prismatic, Revolute
from ..errors import ModelError, ShapeError, check_choice
from ..mechanism import Mechanism
from ..spatial import Inertia, Rotation, Transform
from .builder import Builder

Link = tuple[
    JointType, Transform, Transform | None
]  # a joint, and its placements on the previous link and on its own link
Convention = Literal["standard", "modified"]
JOINTS = {"R": Revolute("z"), "P": Prismatic("z")}


def from_sdof(
    parameters: ArrayLike,
    free: Sequence[str | Sequence[str]],
    mass: ArrayLike,
    com: ArrayLike,
    inertia: ArrayLike,
    *,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    names: Sequence[str] | None = None,
) -> Mechanism:
    """Serial chain from its six-degree-of-freedom ("SDOF") joint parameters.

    Link i rotates relative to link i-1 by Rot(x), then Rot(y), then Rot(z), about successively rotated axes. Frame i is at the near end of
    the link. The displacement Disp(x, y, z) along the axes of frame i is from there to the far end of the link, which is the origin of frame i+1. Any
    of the six parameters may be free. A free displacement moves the whole link through the joint at its near end.

    Parameters
    ----------
    parameters : (n, 6) gamma of each link: Rot(x), Rot(y), Rot(z), Disp(x), Disp(y), Disp(z) [rad, m]
    free : free parameters of each link, as "ry" or ["rz", "tx"]; their order in q is rx ry rz tx ty tz.
        q has their absolute values: the tabulated configuration is q = gamma[free]
    mass, com, inertia : (n,) [kg], (n, 3) [m], (n, 3, 3) or (n, 3) [kg m²] of each link, in frame i at the tabulated gamma; see the module's
        docstring
    gravity : (3,) acceleration of gravity [m/s²]
    names : names of the bodies; default: "link1", "link2", …

    Returns
    -------
    Mechanism. The frame of body "link2" is frame 2 of the table at the tabulated gamma; the frame "tip" is at the far
    end of the last link.

    References
    ----------
    van der Merwe 1995: 2.17, 2.26-2.29; Tables 4.1 and 4.2; the result below is 4.62.

    Examples
    --------
    The Stanford manipulator:

    >>> import numpy as np
    >>> import sarrus
    >>> stanford = sarrus.from_sdof(
    ...     parameters=[[0, 0, 0, 0, 0.5, -0.15], [0, 0, 0, 0.8, 0, 0], [0, 0, 0, 0.2, 0, 0], [0, 0, 0, 0.05, 0, 0]],
    ...     free=["ry", "rz tx", "rz", "rx"],
    ...     mass=[2, 2, 0.8, 0.5],
    ...     com=[[0, 0.3, -0.07], [0.3, 0, 0], [0.12, 0, 0], [0.05, 0, 0]],
    ...     inertia=[[0.1, 0.02, 0.1], [0.002, 0.25, 0.25], [0.002, 0.008, 0.008], [0.001, 0.004, 0.004]],
    ...     gravity=(0, -9.81, 0),
    ... )
    >>> stanford.inverse_dynamics(q=[0, 0, 0.8, 0, 0], v=[1.5, 0, 0.4, 1, 3], a=np.zeros(5)).round(5).tolist()
    [2.26935, 18.25191, -4.40825, 2.16351, 0.0015]
    """
    n = _rows("parameters", parameters)
    gamma = _table("parameters", parameters, n, 6)
    if _rows("free", free) != n:
        raise ShapeError(f"free has {len(free)} rows; expected {n}, one for each link in parameters")
    links: list[Link] = []
    near_end = Transform()
    for i, row in enumerate(free):
        rotation, far_end = _xyz(gamma[i, :3]), Transform(translation=gamma[i, 3:])
        with _row("free", i):
            joint = Gimbal(row, fixed=gamma[i])
        links.append((joint, near_end, far_end) if joint.nq else (Fixed(), near_end @ rotation, None))
        near_end = far_end
    return _chain(links, mass, com, inertia, gravity, names, tip=near_end)


def from_dh(
    rows: ArrayLike,
    *,
    convention: Convention = "standard",
    joint_types: str | None = None,
    offsets: ArrayLike | None = None,
    mass: ArrayLike | None = None,
    com: ArrayLike | None = None,
    inertia: ArrayLike | None = None,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    names: Sequence[str] | None = None,
) -> Mechanism:
    """Serial chain from its Denavit-Hartenberg parameters.

    Parameters
    ----------
    rows : (n, 4) of a, alpha, d, theta [m, rad, m, rad], in this order for both conventions. q adds to the joint's own
        entry (theta or d), so that q = 0 is the configuration of the table
    convention : position of frame i, which determines the meaning of a row:
        "standard", at the far end of link i: Rot(z, theta) Trans(z, d) Trans(x, a) Rot(x, alpha) from frame i-1 to i;
        "modified", at joint i: Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d), with a and alpha of link i-1
    joint_types : "R" (revolute, about z) or "P" (prismatic, along z) for each row, as "RRP"; all revolute by default
    offsets : (n,) offsets that are added to q, for tables that list them separately [rad, m]
    mass, com, inertia : (n,) [kg], (n, 3) [m], (n, 3, 3) or (n, 3) [kg m²] of each link, in frame i; see the module's docstring
    gravity : (3,) acceleration of gravity [m/s²]
    names : names of the bodies; default: "link1", "link2", …

    Returns
    -------
    Mechanism. The body "link2" is frame 2; "tip" is the last frame.

    References
    ----------
    Standard: Denavit and Hartenberg 1955; Paul 1981. Modified: Craig 1986; van der Merwe 1995, 2.18 and 2.19.

    Examples
    --------
    A planar arm of two links, each of 1 m:

    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.from_dh([[1, 0, 0, 0], [1, 0, 0, 0]])
    >>> arm.pose([np.pi / 2, np.pi / 2], "tip")[:3, 3].round(6)
    array([-1.,  1.,  0.])
    """
    check_choice("convention", convention, Convention, ModelError)
    n = _rows("rows", rows)
    table = _table("rows", rows, n, 4)
    types = _joint_types("joint_types", "R" * n if joint_types is None else joint_types, n)
    offset = np.zeros(n) if offsets is None else _table("offsets", offsets, n)
    links: list[Link] = []
    for (a, alpha, d, theta), kind, q0 in zip(table.tolist(), types, offset.tolist(), strict=True):
        theta, d = (theta + q0, d) if kind == "R" else (theta, d + q0)
        x = Transform.from_rpy(alpha, 0, 0, (a, 0, 0))  # a and alpha: Trans(x, a) and Rot(x, alpha) commute
        z = Transform.from_rpy(0, 0, theta, (0, 0, d))  # d, theta and the joint's motion commute too
        ends = (Transform(), (z @ x).inverse()) if convention == "standard" else (x, z.inverse())
        links.append((JOINTS[kind], *ends))
    return _chain(links, mass, com, inertia, gravity, names)


def from_screws(
    twists: ArrayLike,
    home: Sequence[Transform] | ArrayLike | None = None,
    *,
    tip: Transform | ArrayLike | None = None,
    mass: ArrayLike | None = None,
    com: ArrayLike | None = None,
    inertia: ArrayLike | None = None,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    names: Sequence[str] | None = None,
) -> Mechanism:
    """Serial chain from its joint twists: the pose of link i is exp(xi_1 q_1) … exp(xi_i q_i) home_i.

    Parameters
    ----------
    twists : (n, 6) twist [omega; v] of each joint at q = 0, in the space frame, angular part *first* as everywhere in sarrus [rad, m; per unit of q].
        (Murray, Li and Sastry, and Li and Wu, write (v, omega): `twists[:, [3, 4, 5, 0, 1, 2]]` converts their twists.)
        A rotation about an axis through p has a unit vector omega and v = -omega x p, plus pitch * omega for a screw;
        a sliding joint has omega = 0 and a unit vector v
    home : poses g_i(0) of the link frames in space at q = 0: n Transforms, (n, 4, 4) matrices, or (n, 3) positions of
        frames parallel to space [m]; None: every link frame coincides with the space frame at q = 0
    tip : pose of the frame "tip" in space at q = 0, a Transform, (4, 4) or (3,) [m]; None: the last link's frame
    mass, com, inertia : (n,) [kg], (n, 3) [m], (n, 3, 3) or (n, 3) [kg m²] of each link, in its frame; see the module's docstring
    gravity : (3,) acceleration of gravity [m/s²]
    names : names of the bodies; default: "link1", "link2", …

    Returns
    -------
    Mechanism of revolute, prismatic and helical joints. A twist whose norm differs from one by more than 1e-3 raises ModelError, because q would
    not be an angle or displacement; smaller deviations are normalised.

    References
    ----------
    Li and Wu 2011, 4.3; Murray, Li and Sastry 1994, 3.2.2 and 4.3.2.

    Examples
    --------
    A planar arm of two links, each of 1 m:

    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.from_screws([[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -1, 0]], tip=(2, 0, 0))
    >>> arm.pose([np.pi / 2, np.pi / 2], "tip")[:3, 3].round(6)
    array([-1.,  1.,  0.])
    """
    n = _rows("twists", twists)
    homes = (
        [Transform()] * n if home is None else [_pose("home", i, row) for i, row in enumerate(_each("home", home, n))]
    )
    links: list[Link] = []
    predecessor = Transform()
    for i, (twist, pose) in enumerate(zip(_table("twists", twists, n, 6), homes, strict=True)):
        with _row("twists", i):
            joint, point = _screw(twist)
        axis = Transform(translation=point)
        links.append((joint, predecessor.inverse() @ axis, pose.inverse() @ axis))
        predecessor = pose
    at_tip = None if tip is None else predecessor.inverse() @ _pose("tip", None, tip)
    return _chain(links, mass, com, inertia, gravity, names, at_tip)


def from_spacedyn(
    BB: ArrayLike,
    cc: ArrayLike,
    c0: ArrayLike,
    Qi: ArrayLike,
    J_type: str | Sequence[str],
    m0: float,
    m: ArrayLike,
    inertia0: ArrayLike,
    inertia: ArrayLike,
    ce: ArrayLike | None = None,
    SE: ArrayLike | None = None,
    Qe: ArrayLike | None = None,
    *,
    floating_base: bool = True,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
) -> Mechanism:
    """Tree of n links on a base (link 0) from the variables of a SpaceDyn model, in MATLAB's layout.

    Joint i connects link i to link BB(i), and rotates about or slides along the z axis of frame i. The orientation of frame i relative to the frame
    of link BB(i) is roll about x, pitch about y, yaw about z, about successively rotated axes (the transpose of the product in 3.2), followed by the
    joint's rotation. Vectors of link i are expressed in the axes of frame i.

    Parameters
    ----------
    BB : (n,) index of the predecessor of each link (dimensionless), 0 for the base; BB(i) < i
    cc : (3, n, n) `cc[:, i, j]`: from the centroid of link i+1 to joint j+1; `cc[:, i, i]` to its own joint [m]
    c0 : (3, n) from the centroid of the base to joint i [m]; only used if BB(i) = 0
    Qi : (3, n) roll, pitch, yaw from frame BB(i) to frame i [rad]
    J_type : "R" or "P" for each joint
    m0, m : mass of the base, (n,) masses of the links [kg]
    inertia0 : (3, 3) inertia tensor of the base about its centroid [kg m²]
    inertia : (3, 3n) inertia tensors of the links side by side, or (n, 3, 3), each about the link's centroid [kg m²]
    ce : (3, n) from the centroid of link i to its end-point [m]; None: no end-points
    SE : (n,) 1 if link i has an end-point (dimensionless); None: links without successors have one
    Qe : (3, n) roll, pitch, yaw from frame i to the end-point's frame [rad]; None: parallel
    floating_base : True: the base is free (joint "base_joint", the first joint); False: it is fixed to the ground
    gravity : (3,) acceleration of gravity [m/s²]

    Returns
    -------
    Mechanism with bodies "base", "link1", …, whose frames are at the centroids, parallel to frames 0, 1, …; end-points
    are frames "e1", "e2", … in the order of their links. A free base has q = [quaternion x y z w; position] and
    v = [angular; linear] in its own axes, where SpaceDyn has [linear; angular] in inertial ones.

    References
    ----------
    SpaceDyn 1999, Tables 2.1-2.3; 3.1, 3.8-3.15.

    Examples
    --------
    A satellite with an arm of one link, which turns about the satellite's z axis:

    >>> import numpy as np
    >>> import sarrus
    >>> satellite = sarrus.from_spacedyn(
    ...     BB=[0], cc=[[[-0.5]], [[0]], [[0]]], c0=[[1], [0], [0]], Qi=[[0], [0], [0]], J_type="R",
    ...     m0=100, m=[10], inertia0=np.diag([20, 20, 20]), inertia=np.diag([0.1, 1, 1]), ce=[[0.5], [0], [0]],
    ... )
    >>> satellite.nv, satellite.pose(satellite.neutral(), "e1")[:3, 3]
    (7, array([2., 0., 0.]))
    """
    n = _rows("BB", BB)
    below = _table("BB", BB, n)
    for i, k in enumerate(below):
        if k not in range(i + 1):
            raise ModelError(f"BB({i + 1}) is {k:g}; expected the index of a lower link, from 0 to {i}")
    below = below.astype(int)
    to_joint = _columns("cc", cc, n, n)
    from_base, tilt = _columns("c0", c0, n), _columns("Qi", Qi, n)
    types = _joint_types("J_type", J_type if isinstance(J_type, str) else "".join(checked_names("J_type", J_type)), n)
    tensors = _numbers(inertia, "inertia")
    if tensors.shape == (3, 3 * n):
        tensors = tensors.reshape(3, n, 3).swapaxes(0, 1)
    masses, tensors = _table("m", m, n), _table("inertia", tensors, n, 3, 3)

    builder = Builder(name="spacedyn", gravity=gravity)
    with _row("inertia0", None):
        builder.add_body("base", Inertia(m0, np.zeros(3), inertia0))
    root = Free() if checked_truth("floating_base", floating_base) else Fixed()
    builder.add_joint("base_joint", root, "ground", "base")
    links = ["base", *(f"link{i + 1}" for i in range(n))]
    for i, k in enumerate(below):
        with _row("inertia", i):
            builder.add_body(links[i + 1], Inertia(masses[i], np.zeros(3), tensors[i]))
        place = _xyz(tilt[i], from_base[i] if k == 0 else to_joint[k - 1, i])
        at = {"at_parent": place, "at_child": to_joint[i, i]}
        builder.add_joint(f"joint{i + 1}", JOINTS[types[i]], links[k], links[i + 1], **at)
    if ce is not None:
        points, turn = _columns("ce", ce, n), np.zeros((n, 3)) if Qe is None else _columns("Qe", Qe, n)
        ends = np.setdiff1d(np.arange(n), below - 1) if SE is None else np.flatnonzero(_table("SE", SE, n))
        for e, i in enumerate(ends, start=1):
            builder.add_frame(f"e{e}", links[i + 1], _xyz(turn[i], points[i]))
    return builder.build()


# --- chains -------------------------------------------------------------------------------------------------------


def _chain(
    links: Sequence[Link],
    mass: ArrayLike | None,
    com: ArrayLike | None,
    inertia: ArrayLike | None,
    gravity: ArrayLike,
    names: Sequence[str] | None,
    tip: Transform | None = None,
) -> Mechanism:
    """Return a serial chain of links, each with its row in the tables of masses."""
    n = len(links)
    masses = np.zeros(n) if mass is None else _table("mass", mass, n)
    centres = np.zeros((n, 3)) if com is None else _table("com", com, n, 3)
    tensors = np.zeros((n, 3, 3)) if inertia is None else _table("inertia", inertia, n, 3, 3)
    bodies = [f"link{i + 1}" for i in range(n)] if names is None else checked_names("names", names)
    if len(bodies) != n:
        raise ShapeError(f"names has {len(bodies)} entries; expected {n}, one for each link")
    builder = Builder(gravity=gravity)
    for i, (body, (joint, at_parent, at_child)) in enumerate(zip(bodies, links, strict=True)):
        with _row("mass, com, inertia", i):
            builder.add_body(body, Inertia(masses[i], centres[i], tensors[i]))
        parent = bodies[i - 1] if i else "ground"
        builder.add_joint(f"joint{i + 1}", joint, parent, body, at_parent=at_parent, at_child=at_child)
    builder.add_frame("tip", bodies[-1], tip)
    return builder.build()


def _screw(twist: np.ndarray) -> tuple[JointType, np.ndarray]:
    """Return the joint with the twist [omega; v], and the point of its axis that is nearest to the origin."""
    size = np.linalg.norm(twist[:3])
    slides = size < 1e-9  # rounding of a computed zero, such as cos(pi/2)
    if slides:
        size = np.linalg.norm(twist[3:])
    if abs(size - 1) > 1e-3:
        raise ModelError(f"{'v' if slides else 'omega'} has length {size:.6g}; expected a unit vector")
    omega, v = (twist / size).reshape(2, 3)
    if slides:
        return Prismatic(v), np.zeros(3)
    pitch, point = omega @ v, np.cross(omega, v)
    return (Helical(omega, pitch) if abs(pitch) > 1e-9 * np.abs(v).max() else Revolute(omega)), point


def _xyz(angles: np.ndarray, translation: ArrayLike = (0.0, 0.0, 0.0)) -> Transform:
    """Return Rot(x) Rot(y) Rot(z), about successively rotated axes: the inverse of roll, pitch and yaw by the negative angles."""
    return Transform(Rotation.from_rpy(*-angles).inverse(), translation)


# --- tables, checked row by row -----------------------------------------------------------------------------------


@contextmanager
def _row(name: str, i: int | None) -> Iterator[None]:
    """Add the table and the row to errors of the model raised inside."""
    try:
        yield
    except (ModelError, ShapeError) as error:
        raise type(error)(f"{name if i is None else f'{name}, row {i + 1}'}: {error}") from None


def _rows(name: str, value: ArrayLike) -> int:
    try:
        n = len(value)  # type: ignore[arg-type]
    except TypeError:
        raise ShapeError(f"{name} must have a row for each link; got {value!r}") from None
    if n == 0:
        raise ShapeError(f"{name} is empty: a mechanism has at least one link")
    return n


def _each(name: str, value: object, n: int) -> list[object]:
    rows = list(value) if np.iterable(value) else [value]
    if len(rows) != n:
        raise ShapeError(f"{name} has {len(rows)} rows; expected {n}, one for each link")
    return rows


def _numbers(value: object, where: str) -> np.ndarray:
    try:
        x = real_numbers(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ModelError(f"{where} must contain numbers only; got {value!r}") from None
    if not np.isfinite(x).all():
        raise ModelError(f"{where} must contain finite numbers only; got {value!r}")
    return x


def _table(name: str, value: object, n: int, *shape: int) -> np.ndarray:
    """Return a checked table (n, *shape); an error names the row. Tensors (3, 3) may be replaced by their principal moments (3,)."""
    rows = []
    for i, entry in enumerate(_each(name, value, n), start=1):
        row = _numbers(entry, f"{name}, row {i}")
        row = np.diag(row) if (row.shape, shape) == ((3,), (3, 3)) else row
        if row.shape != shape:
            raise ShapeError(f"{name}, row {i} has shape {row.shape}; expected {shape}")
        rows.append(row)
    return np.array(rows)


def _columns(name: str, value: ArrayLike, *counts: int) -> np.ndarray:
    """Return MATLAB's (3, *counts) with the vectors last."""
    x = _numbers(value, name)
    if x.shape != (3, *counts):
        raise ShapeError(f"{name} has shape {x.shape}; expected {(3, *counts)}: x, y, z come first")
    return np.moveaxis(x, 0, -1)


def _joint_types(name: str, types: object, n: int) -> str:
    if not isinstance(types, str) or len(types) != n or set(types) - set("RP"):
        raise ModelError(f"{name} is {types!r}; expected {n} letters, R or P")
    return types


def _pose(name: str, i: int | None, value: object) -> Transform:
    if isinstance(value, Transform):
        return value
    where = name if i is None else f"{name}, row {i + 1}"
    x = _numbers(value, where)
    if x.shape == (3,):
        return Transform(translation=x)
    if x.shape != (4, 4):
        raise ShapeError(f"{where} has shape {x.shape}; expected a Transform, (4, 4) or (3,)")
    with _row(name, i):
        return Transform.from_matrix(x)
