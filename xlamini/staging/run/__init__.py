"""Execution: jit and its dispatch, eager primitives, eager transformations run as one program; make_jaxpr."""
