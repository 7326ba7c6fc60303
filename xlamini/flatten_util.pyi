# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy.tree_vector import ravel_pytree as ravel_pytree
