# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.scipy.optimize.minimize import minimize as minimize, OptimizeResults as OptimizeResults
