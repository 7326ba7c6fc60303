"""Linear solves and roots, by any method, whose derivatives are linear solves."""
