"""Measures xlamini beside JAX, in turn; run it with `python -m benchmarks`."""
