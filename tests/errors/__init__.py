"""Rows of failing programs, a file for each topic."""
