"""Loops on the CPU: scans, sorts and reductions in the form that XLA makes fast code of."""
