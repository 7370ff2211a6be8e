"""Construction of mechanisms: by the calls of a Builder, and from tables of the literature."""
