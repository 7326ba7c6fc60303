"""Inspection of a program: one report from the user's line to the kernel."""
