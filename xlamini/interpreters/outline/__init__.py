"""Outlining: equations that a program repeats, layer by layer, become one function with several calls.

`repeats.py` finds repeating stretches, `blocks.py` cuts them where little is in flight and compares the pieces,
`boundary.py` chooses what a call is given and what it computes again, and `outline.py` writes the program anew.
"""
