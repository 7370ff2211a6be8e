"""Gallery: mechanisms ready to use, from the literature and from textbooks.

Each comes with a home: a plausible configuration that closes its loops, where ``assemble()`` starts.

Trees:

======================  ======================================================================================
`pendulum`              a point mass on a rod
`double_pendulum`       one on the end of another
`stanford_arm`          the Stanford manipulator of van der Merwe's thesis
======================  ======================================================================================

Planar linkages:

======================  ======================================================================================
`four_bar`              crank, coupler and rocker: the simplest loop that moves
`slider_crank`          what is in every piston engine
`watt`                  an almost straight line
`peaucellier`           an exactly straight line
`scissor_lift`          crossed bars, any number of stages
`four_bar_ladder`       any number of parallelograms side by side, closed in points or welded
======================  ======================================================================================

Parallel manipulators:

======================  ======================================================================================
`five_bar`              two cranks and two rods, with two motors or more
`three_rrr`             three chains in a plane, redundantly actuated, with or without a platform
`delta`                 three arms and a platform that never turns
`stewart`               a platform on six legs
======================  ======================================================================================

Overconstrained:

======================  ======================================================================================
`bennett`               four skew hinges
`bricard`               six hinges along the edges of a cube
`sarrus_linkage`        hinged plates, and a straight line in space
======================  ======================================================================================

Van der Merwe's thesis:

======================  ======================================================================================
`four_link_chain`       pinned at its tip (5.5)
`two_links`             two links and a reference member (6.5)
`hslm`                  the High Stiffness Low Mass mechanism (ch. 8)
======================  ======================================================================================

Contact with the world:

======================  ======================================================================================
`rolling_disc`          free as a coin, or upright
`three_finger_hand`     holds a ball
`strandbeest_leg`       walks by turning a crank
`biped_leg`             a knee of crossed links, on a floating base
======================  ======================================================================================
"""

from .hand import three_finger_hand
from .ladders import four_bar_ladder
from .legs import biped_leg, strandbeest_leg
from .linkages import four_bar, peaucellier, scissor_lift, slider_crank, watt
from .overconstrained import bennett, bricard, sarrus_linkage
from .parallel import delta, five_bar, stewart, three_rrr
from .pendulums import double_pendulum, pendulum
from .rolling import rolling_disc
from .stanford import stanford_arm
from .thesis import four_link_chain, hslm, two_links

__all__ = [
    "bennett",
    "biped_leg",
    "bricard",
    "delta",
    "double_pendulum",
    "five_bar",
    "four_bar",
    "four_bar_ladder",
    "four_link_chain",
    "hslm",
    "peaucellier",
    "pendulum",
    "rolling_disc",
    "sarrus_linkage",
    "scissor_lift",
    "slider_crank",
    "stanford_arm",
    "stewart",
    "strandbeest_leg",
    "three_finger_hand",
    "three_rrr",
    "two_links",
    "watt",
]
