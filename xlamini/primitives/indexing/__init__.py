"""Gathers, scatters and dynamic slices."""
