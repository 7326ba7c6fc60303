# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.example_libraries import optimizers as optimizers, stax as stax
