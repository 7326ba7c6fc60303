"""Reductions, cumulative operations, sorts and searches along an axis."""
