"""Gallery of mechanisms from the literature and from textbooks.

Each mechanism has a home configuration that closes its loops; ``assemble()`` uses it as the initial guess.

Trees:

======================  ======================================================================================
`pendulum`              a point mass on a rod
`double_pendulum`       a pendulum on the end of another
`stanford_arm`          the Stanford manipulator of van der Merwe's thesis
`six_axis_arm`          an arm with a spherical wrist; its tip may slide or roll on a ball
`human_arm`             a shoulder, an elbow and a wrist, with a person's masses
`quadruped`             twelve motors on a floating base
======================  ======================================================================================

Planar linkages:

======================  ======================================================================================
`four_bar`              crank, coupler and rocker: the simplest loop that moves
`slider_crank`          the linkage of piston engines
`watt`                  a point on an almost straight line
`peaucellier`           a point on an exactly straight line
`scissor_lift`          crossed bars in any number of stages
`four_bar_ladder`       any number of parallelograms in a row, closed by pins or by welds
======================  ======================================================================================

Parallel manipulators:

======================  ======================================================================================
`five_bar`              two cranks and two rods, with two motors or more
`three_rrr`             three chains in a plane, redundantly actuated, with or without a platform
`delta`                 three arms and a platform that does not rotate
`delta_printer`         a 3D printer with carriages on three towers, with Klipper's dimensions
`rotary_delta_printer`  a 3D printer with three swinging arms, with Klipper's dimensions
`stewart`               a platform on six legs
`cable_platform`        a platform on eight cables over pulleys
`two_arms`              two arms of six axes that hold one load
======================  ======================================================================================

Overconstrained:

======================  ======================================================================================
`bennett`               four skew hinges
`goldberg_5r`           five hinges, of two Bennett linkages
`goldberg_6r`           six hinges, of three Bennett linkages
`myard`                 five hinges, of a Bennett linkage and its mirror image
`bricard`               six hinges: along the edges of a cube, symmetric, or of flexible octahedra
`schatz`                six hinges, of which two are parallel: the Turbula mixer
`double_hooke`          six hinges: two Hooke joints between parallel shafts
`sarrus_linkage`        hinged plates that move a platform along a straight line
`tsai_3upu`             three legs and a platform that does not rotate, also at its singular position
`wren_platform`         any number of parallel legs
======================  ======================================================================================

Lattices of any number of cells:

======================  ======================================================================================
`net`                   rods pinned to rods: four-bars in rows and columns
`ring`                  a closed chain of rods with ball joints
`chain_mail`            rings tied to their neighbours
`tensegrity_prism`      struts that do not touch
`hoberman_ring`         scissors of angled bars: an expanding ring
`hoberman_sphere`       three such rings with hubs at their crossings
`miura_fold`            hinged parallelograms that fold in two directions at once
======================  ======================================================================================

Van der Merwe's thesis:

======================  ======================================================================================
`four_link_chain`       pinned at its tip (5.5)
`two_links`             two links and a reference member (6.5)
`hslm`                  the High Stiffness Low Mass mechanism (ch. 8)
======================  ======================================================================================

Contact with the world:

======================  ======================================================================================
`rolling_disc`          a disc on a plane: free like a coin, or upright
`whipple_bicycle`       two frames on two rolling wheels: stable between 4.3 and 6 m/s
`three_finger_hand`     three fingers that hold a ball
`gripper`               two fingers on linkages with one motor, on a slide
`strandbeest_leg`       a leg that walks by turning a crank
`biped`                 two feet on two limbs each: twelve motors, six loops
`biped_leg`             a knee of crossed links, on a floating base
`humanoid_leg`          a leg with an ankle of two axes, driven by two motors and rods
======================  ======================================================================================

Robots on a moving base, the applications of SpaceDyn:

======================  ======================================================================================
`free_flyer`            a satellite with an arm and two flexible solar paddles
`macro_micro_arm`       a small arm on a long flexible one
`sampler`               a spacecraft that touches an asteroid with a horn
`rover`                 six wheels on rockers and bogies
======================  ======================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._deferred import attributes

if TYPE_CHECKING:
    from .arms import gripper, human_arm, six_axis_arm, three_finger_hand, two_arms
    from .lattices import (
        chain_mail,
        four_bar_ladder,
        hoberman_ring,
        hoberman_sphere,
        miura_fold,
        net,
        ring,
        tensegrity_prism,
    )
    from .legs import biped, biped_leg, humanoid_leg, quadruped, strandbeest_leg
    from .linkages import double_pendulum, four_bar, peaucellier, pendulum, scissor_lift, slider_crank, watt
    from .mobile import free_flyer, macro_micro_arm, rolling_disc, rover, sampler, whipple_bicycle
    from .overconstrained import (
        bennett,
        bricard,
        double_hooke,
        goldberg_5r,
        goldberg_6r,
        myard,
        sarrus_linkage,
        schatz,
        tsai_3upu,
        wren_platform,
    )
    from .parallel import cable_platform, delta, delta_printer, five_bar, rotary_delta_printer, stewart, three_rrr
    from .thesis import four_link_chain, hslm, stanford_arm, two_links

__all__ = [
    "bennett", "biped", "biped_leg", "bricard", "cable_platform", "chain_mail", "delta", "delta_printer", "double_hooke", "double_pendulum", "five_bar",
    "four_bar", "four_bar_ladder", "four_link_chain", "free_flyer", "goldberg_5r", "goldberg_6r", "gripper",
    "hoberman_ring", "hoberman_sphere", "hslm", "human_arm", "humanoid_leg", "macro_micro_arm", "miura_fold", "myard", "net",
    "peaucellier", "pendulum", "quadruped", "ring", "rolling_disc", "rotary_delta_printer", "rover", "sampler", "sarrus_linkage", "schatz",
    "scissor_lift", "six_axis_arm", "slider_crank", "stanford_arm", "stewart", "strandbeest_leg", "tensegrity_prism",
    "three_finger_hand", "three_rrr", "tsai_3upu", "two_arms", "two_links", "watt", "whipple_bicycle",
    "wren_platform",
]  # fmt: skip

_MODULES = {
    "arms": ("gripper", "human_arm", "six_axis_arm", "three_finger_hand", "two_arms"),
    "lattices": ("chain_mail", "four_bar_ladder", "hoberman_ring", "hoberman_sphere", "miura_fold", "net", "ring", "tensegrity_prism"),
    "legs": ("biped", "biped_leg", "humanoid_leg", "quadruped", "strandbeest_leg"),
    "linkages": ("double_pendulum", "four_bar", "peaucellier", "pendulum", "scissor_lift", "slider_crank", "watt"),
    "mobile": ("free_flyer", "macro_micro_arm", "rolling_disc", "rover", "sampler", "whipple_bicycle"),
    "overconstrained": (
        "bennett", "bricard", "double_hooke", "goldberg_5r", "goldberg_6r", "myard", "sarrus_linkage", "schatz", "tsai_3upu", "wren_platform",
    ),
    "parallel": ("cable_platform", "delta", "delta_printer", "five_bar", "rotary_delta_printer", "stewart", "three_rrr"),
    "thesis": ("four_link_chain", "hslm", "stanford_arm", "two_links"),
}  # fmt: skip

__getattr__ = attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
