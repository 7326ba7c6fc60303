"""The commands behind `python -m xlamini.NAME`. Private; the root modules of these names are the entry points."""
