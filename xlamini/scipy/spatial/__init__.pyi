# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.scipy.spatial import transform as transform
