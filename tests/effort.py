"""Number of random examples: a few; ten times as many if SARRUS_SOAK is set; unlimited under the soak profile of hypothesis."""

import os

from hypothesis import settings

ENDLESS = settings().max_examples > 1000
SOAK = ENDLESS or "SARRUS_SOAK" in os.environ


def examples(count):
    """Return settings with `count` random examples; ten times as many in a soak, and the profile's number in an endless soak."""
    return settings(max_examples=settings().max_examples if ENDLESS else 10 * count if SOAK else count)
