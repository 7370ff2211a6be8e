"""Tolerance of states off the loops: relative to the mechanism's size, for displacements and for rotations."""

import numpy as np
import pytest

import sarrus
from tests.variants import scaled

GAPS = 10.0 ** np.arange(-7.0, -0.9, 0.25)


def in_lengths_of(metre, base):
    robot, units = scaled(base, metre, 1.0, 1.0)
    return robot, base, units


def statuses(robot, base, units):
    """Return statuses of states with growing deviations: in angles, lengths of the mechanism, and their rates."""
    q, v = base.assemble(), np.zeros(base.nv)
    off = np.random.default_rng(0).standard_normal(base.nv)
    found = []
    for gap in GAPS:
        there, moves = base.integrate(q, gap * off) * units.coordinates(robot), gap * off * units.velocities(robot)
        for state in ((there, v), (q * units.coordinates(robot), moves)):
            found.append(int(robot.forward_dynamics(*state, v, return_status=True)[1]))
    return found


@pytest.mark.parametrize(
    "name", ["slider_crank", "delta", "stewart", "sarrus_linkage", "five_bar", "scissor_lift", "rover"]
)
def test_it_does_not_depend_on_the_unit_of_length(name):
    base = getattr(sarrus.mechanisms, name)()
    want = statuses(*in_lengths_of(1.0, base))
    assert {0, 4} <= set(want)
    for metre in (1e-5, 1e-2, 1e3):
        assert statuses(*in_lengths_of(metre, base)) == want, metre
