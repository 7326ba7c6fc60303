"""Shardings in types: meshes without devices, partition specs, and how a sharding passes through an equation."""
