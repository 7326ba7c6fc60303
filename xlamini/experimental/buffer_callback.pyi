# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.runtime.execution.callbacks import (
    Buffer as Buffer, ExecutionContext as ExecutionContext, ExecutionStage as ExecutionStage,
)
from xlamini.transforms.ffi.buffer_callback import buffer_callback as buffer_callback
