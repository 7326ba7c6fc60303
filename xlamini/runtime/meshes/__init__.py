"""Meshes: devices in a grid with named axes, shardings of arrays over it, and the placement of programs."""
