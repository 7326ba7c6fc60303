"""Tracing: from a user's function and arguments to a jaxpr."""
