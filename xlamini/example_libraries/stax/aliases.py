"""Second names of what `xlamini.nn` has under others."""
from __future__ import annotations

from xlamini.nn.initializers import glorot_normal, normal
from xlamini.nn.softmax import log_softmax

logsoftmax, randn, glorot = log_softmax, normal, glorot_normal
