"""Loops built on scan and while_loop (fori_loop, map, associative_scan), and helpers that all loops share."""
