"""Commands: what `python -m xlamini.NAME` runs. Private; the doors are the root modules of the same names."""
