"""How hard random tests look: a little; ten times as hard where SARRUS_SOAK is set; or, in a soak, for as long as anybody waits."""

import os

from hypothesis import settings

ENDLESS = settings().max_examples > 1000
SOAK = ENDLESS or "SARRUS_SOAK" in os.environ


def examples(count):
    """So many random examples; ten times as many in a soak, and as many as that wants of each test in an endless one."""
    return settings(max_examples=settings().max_examples if ENDLESS else 10 * count if SOAK else count)
