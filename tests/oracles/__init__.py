"""Slow, independent references for tests: definitions, not algorithms.

``Dense`` works in the world frame and uses nothing of the library except a mechanism's description. A shared mistake would have to be made twice, in
two frames and by two methods.
"""

from .closed import Closed
from .dense import Dense
from .structurally_recursive import structurally_recursive_mass_matrix

__all__ = ["Closed", "Dense", "structurally_recursive_mass_matrix"]
