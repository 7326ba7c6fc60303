"""What tells of runs: cache misses, evictions, impure functions and bad values."""
