"""Memos, and the keys by which programs and calls are found again."""
