# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.primitives.xla_metadata import set_xla_metadata as set_xla_metadata
