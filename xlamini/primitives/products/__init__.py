"""Products of arrays: `dot_general` and what is made of it."""
