"""Benchmarks that compare xlamini with JAX: `python -m benchmarks`."""
