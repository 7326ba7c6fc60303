"""Tests of `xlamini.example_libraries`."""
