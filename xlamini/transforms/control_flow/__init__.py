"""Loops and branches: cond, switch, while_loop, fori_loop, scan, map, associative_scan, each with its primitive."""
