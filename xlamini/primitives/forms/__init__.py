"""The forms of operations on platforms."""
