"""Execution: jit's dispatch, eager primitives, eager transformations run as one program."""
