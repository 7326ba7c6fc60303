"""Collectives: communication between the positions along a named axis, as `vmap(..., axis_name=)` binds it."""
