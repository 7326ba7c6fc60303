# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental import (
    jet as jet, multihost_utils as multihost_utils, ode as ode, rnn as rnn,
    serialize_executable as serialize_executable,
)
from xlamini.transforms.callbacks.io_callback import io_callback as io_callback
