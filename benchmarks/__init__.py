"""Benchmarks of sarrus and its peers in one run: ``python -m benchmarks``. See README.md."""
