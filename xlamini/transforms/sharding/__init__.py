"""Explicit placement: device_put, sharding constraints, axis types, and multi-process arrays."""
