"""Placement that users ask for: device_put, sharding constraints, axis types, arrays of several processes."""
