"""Flags, the environment variables that set them, and contexts."""
