"""Measurements of the package: `python -m benchmarks --help`."""
