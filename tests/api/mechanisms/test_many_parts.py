"""Numbers of parts that nobody can build are refused at once; rows that say the same hundreds of times are told apart in seconds."""

import numpy as np
import pytest

import sarrus
from sarrus.analysis.mobility.self_stress import removable_rows


def test_a_paddle_of_too_many_panels():
    with pytest.raises(sarrus.ModelError, match="panels must be a whole number, from 1 to 1000"):
        sarrus.mechanisms.free_flyer(panels=2**70)


def test_rows_that_can_go_are_the_last_ones():
    """All but the first weld of two hundred between two bodies: blocks of rows and one row at a time choose the same."""
    U, s, _ = np.linalg.svd(np.tile(np.eye(6), (200, 1)))
    assert removable_rows(U[:, len(s) :]) == list(range(6, 1200))
