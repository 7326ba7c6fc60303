"""`jax.interpreters.xla`: tables of classes whose objects are arrays.

An object with `__array__` is an array for xlamini without an entry; libraries may add theirs.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.primitive import apply_primitive as apply_primitive
from xlamini.core.program.avals import aval_of

__getattr__: Final = fall_through(__name__)

canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray}
pytype_aval_mappings: dict[type, Callable[[Any], Any]] = {np.ndarray: aval_of}
