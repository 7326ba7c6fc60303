"""Ahead of time: the stages of a jitted function, and compiled programs in files."""
