"""Memos, and the keys of programs and calls in them."""
