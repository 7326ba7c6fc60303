# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.array_serialization import pytree_serialization as pytree_serialization
