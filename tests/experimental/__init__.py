"""Tests of `xlamini.experimental`."""
