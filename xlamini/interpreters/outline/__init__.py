"""Outlining: repeated equations, such as the layers of an unrolled model, become one function with several calls.

`repeats.py` finds periodic runs of equations, `blocks.py` cuts them into blocks where few bytes are live and compares
the blocks, `boundary.py` chooses the parameters and the recomputed values, and `outline.py` rewrites the program.
"""
