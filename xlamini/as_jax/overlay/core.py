"""`jax.core`: the types of values and programs."""

from typing import Any, Final

import xlamini.as_jax.overlay.traces  # gives traced values their attribute `_trace`
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.interpreters.xla import pytype_aval_mappings as pytype_aval_mappings
from xlamini.as_jax.overlay.refusals import Trace as Trace
from xlamini.core.program.avals import ShapedArray as ShapedArray
from xlamini.core.program.evaluation import eval_jaxpr as eval_jaxpr
from xlamini.core.program.jaxpr import Atom as Atom
from xlamini.core.sizes.expression import max_size as max_dim, min_size as min_dim
from xlamini.core.tracing.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from xlamini.core.tracing.tracer import Tracer as Tracer

AbstractValue = ShapedArray
ParamDict = dict[str, Any]
Value = Any
eval_context = ensure_compile_time_eval

__getattr__: Final = fall_through(__name__)
