"""Turns that a run loses: joints that close loops read their angle off the bodies, which do not count them.

What acts on such an angle takes the value that is nearest to where it is relaxed, so that more than half a turn from there its force is
that of another turn. A joint of the tree counts on; there the same mechanism moves otherwise, and a run that comes to such a place says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._arrays import Array
from ..control.coordinates import loses_turns
from ..control.elements import PID, EndStop, Sampled
from ..control.terms import functions_and_elements
from ..description.joints import middle
from ..dynamics.loop_operations import LoopFunctions
from ..errors import TurnWarning
from ..laws import Law, as_law

BETWEEN = np.pi / 2  # a joint that may turn farther from sample to sample is not to be judged by them


def warn_of_turns(mechanism: LoopFunctions, elements: Sequence[Any], t: Array, q: Array, v: Array) -> bool:
    """Whether, and where, samples (..., n) of runs lose a turn that a spring, a PID or an end stop counts on; to the caller of simulate() or simulate_many()."""
    read = list(_read(mechanism, elements, t))
    if not read or len(t) < 2:
        return False
    start = np.zeros((*np.shape(q)[:-1], sum(joint.type.nq for joint in mechanism._closing_joints)))
    x = mechanism._loop_joint_coordinates(q, start, time=t, return_status=True)[0]
    u = mechanism._loop_joint_velocities(q, v, start, time=t, return_status=True)[0]
    for name, index, what, at in read:
        with np.errstate(invalid="ignore"):  # of runs that have failed
            off = (
                np.remainder(
                    x[..., mechanism.joint(name)._all_q.start - mechanism.nq + index] - at + np.pi, 2.0 * np.pi
                )
                - np.pi
            )
            fast = np.abs(u[..., mechanism.joint(name)._all_v.start - mechanism.nv + index])
            slow = np.maximum(fast[..., 1:], fast[..., :-1]) * np.diff(t) < BETWEEN
            lost = slow & (np.abs(np.diff(off)) > np.pi)
        if not lost.any():
            continue
        k = int(np.argmax(lost.reshape(-1, lost.shape[-1]).any(axis=0))) + 1
        which = f"'{name}'" + (f"[{index}]" if index else "")
        at_k = float(np.broadcast_to(at, t.shape)[k])
        warnings.warn(
            f"joint {which} closes a loop and is more than half a turn from {what}, {at_k:.6g} rad, at t = {t[k]:.6g} s: its angle is read off "
            f"the bodies, which do not count turns, and from there on that of another turn acts. Keep it in the tree, where turns count: "
            f"add_joint('{name}', ..., tree=True)",
            TurnWarning,
            stacklevel=3,
        )
        return True
    return False


def _read(mechanism: LoopFunctions, elements: Sequence[Any], t: Array) -> Iterator[tuple[str, int, str, Any]]:
    """Joint, index, and from what, where (at each time) its angle is counted, of angles that lose their turns."""
    for joint in mechanism._closing_joints:
        for k in np.flatnonzero(joint.type.stiffness):
            if joint.type.nq == joint.type.nv and loses_turns(mechanism, joint.name, int(k)):
                yield joint.name, int(k), "the rest of its spring", float(joint.type.rest[k])
    for element in elements:
        if isinstance(element, Sampled):
            yield from _read(mechanism, functions_and_elements(element.law)[1], t)
        if not isinstance(element, (PID, EndStop)) or not loses_turns(mechanism, element.joint, element.index):
            continue
        of_each_run: Sequence[Any] = element.limits or () if isinstance(element, EndStop) else [element.target]
        if any(not isinstance(x, Law) and np.ndim(x) > 0 for x in of_each_run):
            continue  # of many runs, each with its own
        if isinstance(element, PID):
            yield element.joint, element.index, "the target of its PID", as_law(element.target, "a target")(t)
            continue
        own = mechanism.joint(element.joint).limits
        bounds: Any = element.limits or (np.asarray(own)[:, element.index] if own is not None else (-np.inf, np.inf))
        yield element.joint, element.index, "the middle of its end stops", middle(float(bounds[0]), float(bounds[1]))
