"""`jax._src.checkify`."""
from __future__ import annotations

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.experimental.checkify import JaxRuntimeError

__getattr__ = fall_through(__name__, "xlamini.experimental.checkify")

JaxException = JaxRuntimeError
Out = Any
