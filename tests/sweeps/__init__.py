"""Sweeps: largest errors of functions over all magnitudes of their arguments, in units in the last place (ulp).

    python -m tests.sweeps.report            a table of all sweeps, as in docs/accuracy.md

A sweep is one function in one family of inputs, beside a reference of more digits, with a budget for each dtype.
`pytest --all-rows` runs all of them, the quick tier a few.
"""
