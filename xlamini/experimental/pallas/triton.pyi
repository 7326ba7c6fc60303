# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.pallas.check.params import InterpretParams as InterpretParams
