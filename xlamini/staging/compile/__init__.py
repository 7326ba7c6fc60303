"""Compilation: from a jaxpr to an executable, placed, outlined, lowered, and cached on disk."""
