"""XLA's profiler: traces of host and devices, memory profiles, and links to viewers."""
