"""sarrus beside its peers in one run: ``python -m benchmarks``. See README.md."""
