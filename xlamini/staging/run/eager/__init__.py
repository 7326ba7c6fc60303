"""Eager execution: single equations, composites and whole transformations as programs."""
