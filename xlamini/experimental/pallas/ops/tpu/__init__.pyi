# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.pallas.ops.tpu import (
    flash_attention as flash_attention, megablox as megablox, paged_attention as paged_attention,
    splash_attention as splash_attention,
)
