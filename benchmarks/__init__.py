"""Benchmarks of xlamini against JAX; run them with `python -m benchmarks`."""
