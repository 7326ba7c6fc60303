# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.pallas.triton_params import CompilerParams as CompilerParams
