"""Benchmarks: `python -m bench` runs them all, `make bench` in the locked environment."""
