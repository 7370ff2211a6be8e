"""Gallery: mechanisms ready to use, from the literature and from textbooks.

====================  =======================================================
`pendulum`            a point mass on a rod
`double_pendulum`     one on the end of another
`stanford_arm`        the Stanford manipulator of van der Merwe's thesis
====================  =======================================================
"""

from .pendulums import double_pendulum, pendulum
from .stanford import stanford_arm

__all__ = ["double_pendulum", "pendulum", "stanford_arm"]
