"""Compiled programs as files: the cache on disk, and what tells whether a file fits this machine."""
