"""Symbolic sizes: dimensions of arrays that are expressions of variables, such as `2*n + 1`."""
