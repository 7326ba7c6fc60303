"""XLA's profiler: recordings of host and devices, memory profiles, and links to viewers."""
