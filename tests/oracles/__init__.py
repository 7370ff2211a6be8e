"""Slow, independent answers to hold the library against: definitions, not algorithms.

``Dense`` works in the world frame and knows of the library nothing but a mechanism's description,
so that a shared mistake would have to be made twice, in two frames and in two ways.
"""

from .closed import Closed
from .dense import Dense
from .structurally_recursive import structurally_recursive_mass_matrix

__all__ = ["Closed", "Dense", "structurally_recursive_mass_matrix"]
