"""Private: what `python -m xlamini.NAME` runs; the root modules of the same names are the doors."""
