"""Pendulums: point masses on massless rods, hanging along -z at q = 0 and swinging about y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..building.builder import Builder
from ..description.joints import Revolute
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia
from .drawing import positive


def pendulum(mass: float = 1.0, length: float = 1.0) -> Mechanism:
    """Point mass at the end of a massless rod.

    Parameters
    ----------
    mass : mass of the bob [kg]
    length : length from the pivot, at the origin, to the mass [m]

    Returns
    -------
    Mechanism with the joint "pivot", the body "bob" (its frame at the pivot) and the frame "tip" at the mass

    Raises
    ------
    ModelError
        A mass or a length is not positive.

    Examples
    --------
    The horizontal pendulum needs the torque m g l:

    >>> import numpy as np
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> pendulum.inverse_dynamics([np.pi / 2], [0.0], [0.0]).round(3)
    array([9.81])
    """
    return _hang("pendulum", ["pivot"], ["bob"], [mass], [length])


def double_pendulum(masses: Sequence[float] = (1.0, 1.0), lengths: Sequence[float] = (1.0, 1.0)) -> Mechanism:
    """Pendulum on the end of a pendulum; the second angle is measured from the first rod.

    Parameters
    ----------
    masses : (2,) masses at the ends of the upper and the lower rod [kg]
    lengths : (2,) lengths of the upper and the lower rod [m]

    Returns
    -------
    Mechanism with the joints "shoulder" and "elbow", the bodies "upper" and "lower" (their frames at the joints) and the
    frame "tip" at the lower mass

    Raises
    ------
    ModelError
        A mass or a length is not positive, or there are not two of them.

    Examples
    --------
    In the horizontal, stretched configuration the upper joint carries both masses:

    >>> import numpy as np
    >>> import sarrus
    >>> double = sarrus.mechanisms.double_pendulum(masses=(1.0, 2.0), lengths=(0.5, 0.5))
    >>> double.gravity_forces([np.pi / 2, 0.0]).round(3)
    array([24.525,  9.81 ])
    """
    for name, value in (("masses", masses), ("lengths", lengths)):
        if np.shape(value) != (2,):
            raise ModelError(f"{name} needs two numbers, upper and lower; got {value!r}")
    return _hang("double pendulum", ["shoulder", "elbow"], ["upper", "lower"], masses, lengths)


def _hang(
    name: str, joints: Sequence[str], bodies: Sequence[str], masses: Sequence[float], lengths: Sequence[float]
) -> Mechanism:
    """Return a chain of massless rods that hang one below the other, each with a point mass at its lower end."""
    builder = Builder(name)
    parent, end = "ground", (0.0, 0.0, 0.0)
    for joint, body, mass, length in zip(joints, bodies, masses, lengths, strict=True):
        positive(**{f"mass of {body}": mass, f"length of {body}": length})
        lower_end = (0.0, 0.0, -length)
        builder.add_body(body, Inertia(mass, lower_end, np.zeros((3, 3))))
        builder.add_joint(joint, Revolute("y"), parent, body, at_parent=end)
        parent, end = body, lower_end
    builder.add_frame("tip", parent, end)
    return builder.build()
