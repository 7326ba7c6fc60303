"""Second names of what `xlamini.nn` has under others."""
from __future__ import annotations

from typing import Final

from xlamini.nn.initializers import glorot_normal, normal
from xlamini.nn.softmax import log_softmax

logsoftmax: Final = log_softmax
randn: Final = normal
glorot: Final = glorot_normal
