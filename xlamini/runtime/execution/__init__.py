"""Execution: compiled programs, dispatch, callbacks, and the order of effects."""
