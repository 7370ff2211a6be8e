"""Whether velocity constraints could be written as constraints of position: Frobenius' theorem."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._arrays import ArrayLike, common_axes, real_array
from ..analysis.independent_coordinates import loop_motions
from ..analysis.linear_algebra import applied
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import BatchOptions
from ..dynamics.states import of_states
from ..mechanism import checked_mechanism

if TYPE_CHECKING:
    from typing import Unpack

BENT = 1e-7  # of the rates of J: what their differences, where a function gives rows without a derivative, may leave of nothing


@of_states
def is_involutive(
    robot: LoopFunctions, q: ArrayLike, *, time: ArrayLike | None = None, **options: Unpack[BatchOptions]
) -> NDArray[np.bool_]:
    """Whether the velocities that all constraints together allow, J v = 0, are an involutive distribution at a configuration.

    They are if the bracket of any two of them is one of them: dJ(x) y - dJ(y) x - J [x, y] = 0 for all x and y with J x = J y = 0. Where that holds
    in a neighbourhood the constraints hold positions, whatever they are written as (Frobenius); a disc that rolls goes anywhere.

    Parameters
    ----------
    q : (..., nq) closing the loops, in a regular position

    Returns
    -------
    (...) bool

    References
    ----------
    Li and Wu 2011, 4.6 (slide 44; the rolling arm's J_f is not involutive).

    Examples
    --------
    >>> import sarrus
    >>> disc, fourbar = sarrus.mechanisms.rolling_disc(), sarrus.mechanisms.four_bar()
    >>> bool(sarrus.works.is_involutive(disc, disc.assemble())), bool(sarrus.works.is_involutive(fourbar, fourbar.assemble()))
    (False, True)
    """
    checked_mechanism(robot, "robot")
    q, when = robot.normalize(q), real_array("time", 0.0 if time is None else time)
    lead = common_axes({"q": q.shape[:-1], "time": when.shape})
    q, when = np.broadcast_to(q, (*lead, robot.nq)), np.broadcast_to(when, lead)
    J = robot.constraint_jacobian(q, time=when)
    free = loop_motions(robot, J)
    answer = np.ones(lead, bool)
    for at in np.ndindex(lead):
        basis = np.atleast_2d(free.basis[at][:, : np.asarray(free.freedom)[at]].T)
        rates = robot.constraint_jacobian_derivative(q[at], basis, time=float(when[at]))
        for (x, dJ_x), (y, dJ_y) in itertools.combinations(zip(basis, rates, strict=True), 2):
            terms = np.array([applied(dJ_x, y), -applied(dJ_y, x), -applied(J[at], robot._bracket(x, y))])
            size = np.abs(rates).max(initial=0.0) + np.abs(J[at]).max(initial=0.0)
            answer[at] &= bool(np.abs(terms.sum(axis=0)).max(initial=0.0) <= BENT * size)
    return answer
