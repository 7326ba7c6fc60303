"""Padding: a program of symbolic sizes becomes one of numbers, whose arrays are longer than what they hold."""
