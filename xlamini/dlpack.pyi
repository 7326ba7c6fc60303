# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.runtime.arrays.dlpack import from_dlpack as from_dlpack, is_supported_dtype as is_supported_dtype
