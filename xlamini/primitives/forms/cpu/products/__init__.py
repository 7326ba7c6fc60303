"""Products on the CPU."""
