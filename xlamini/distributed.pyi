# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.runtime.processes.startup import (
    initialize as initialize,
    is_initialized as is_initialized,
    shutdown as shutdown,
)
