"""How hard random tests look: a little, or, in a soak, for as long as anybody waits."""

from hypothesis import settings

SOAK = settings().max_examples > 1000


def examples(count):
    """So many random examples; in a soak as many as that wants of each test."""
    return settings(max_examples=settings().max_examples if SOAK else count)
