"""Benchmarks of sarrus and of libraries that it is compared with (peers): ``python -m benchmarks``. See README.md."""
