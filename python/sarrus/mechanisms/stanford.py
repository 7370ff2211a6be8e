"""The Stanford manipulator of van der Merwe's thesis, chapters 2 and 4."""

from __future__ import annotations

from ..building.tables import from_sdof
from ..mechanism import Mechanism

__all__ = ["stanford_arm"]

# Table 4.1, one row a link: Rot(x), Rot(y), Rot(z) [rad], Disp(x), Disp(y), Disp(z) [m]; then which of them are free
PARAMETERS = (
    (0, 0, 0, 0, 0.5, -0.15),
    (0, 0, 0, 0.8, 0, 0),
    (0, 0, 0, 0.2, 0, 0),
    (0, 0, 0, 0.05, 0, 0),
)
FREE = ("ry", "rz tx", "rz", "rx")

# 4.33-4.35 and Table 4.2: mass [kg], centre of mass [m] and principal moments about it [kg m²], along the link's axes
MASS = (2, 2, 0.8, 0.5)
COM = ((0, 0.3, -0.07), (0.3, 0, 0), (0.12, 0, 0), (0.05, 0, 0))
INERTIA = ((0.1, 0.02, 0.1), (0.002, 0.25, 0.25), (0.002, 0.008, 0.008), (0.001, 0.004, 0.004))


def stanford_arm() -> Mechanism:
    """Stanford manipulator: four links, five degrees of freedom, y up.

    q = (turn of the base about y, turn of the arm about z, slide of the arm along its x, turn of the wrist about z,
    turn of the gripper about x) [rad, rad, m, rad, rad]. At q = (0, 0, 0.8, 0, 0), the table's configuration, all link
    frames are parallel and the arm is stretched along x. The arm slides as one piece, so that its centre of mass moves
    against link frame 2 as 4.63 has it. Bodies "link1" to "link4"; the frame "tip" is the end of the gripper.

    Returns
    -------
    Mechanism, gravity (0, -9.81, 0)

    References
    ----------
    van der Merwe 1995: Tables 4.1 and 4.2, 4.33-4.35; the result below is 4.62.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.stanford_arm()
    >>> arm.inverse_dynamics([0, 0, 0.8, 0, 0], [1.5, 0, 0.4, 1, 3], np.zeros(5)).round(5).tolist()
    [2.26935, 18.25191, -4.40825, 2.16351, 0.0015]
    """
    return from_sdof(PARAMETERS, FREE, MASS, COM, INERTIA, gravity=(0, -9.81, 0))
