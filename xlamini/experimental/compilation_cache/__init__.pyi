# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.compilation_cache import compilation_cache as compilation_cache
