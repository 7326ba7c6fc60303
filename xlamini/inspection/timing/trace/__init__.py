"""Recordings of the profiler, read: their events, and the programs that these are of."""
