"""Reductions with a computation that the user wrote: of dimensions, of windows."""
