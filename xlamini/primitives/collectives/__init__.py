"""Collectives: what the positions along a named axis, as `vmap(..., axis_name=)` gives it, do together."""
