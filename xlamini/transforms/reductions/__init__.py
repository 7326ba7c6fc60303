"""Reductions with a user-defined computation, over dimensions (reduce) or windows (reduce_window)."""
