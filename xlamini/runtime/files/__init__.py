"""Compiled programs as files: the persistent compilation cache, the file format, and the machine check."""
