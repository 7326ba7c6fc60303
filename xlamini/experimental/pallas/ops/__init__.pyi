# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.pallas.ops import gpu as gpu, tpu as tpu
