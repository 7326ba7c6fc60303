"""Starting up: what the floors need to know of each other once all are there."""
from __future__ import annotations

import xlamini.core.concretization  # gives tracers their conversions to Python numbers
import xlamini.primitives.operators  # gives tracers their operators
from xlamini.core.api_boundary import edge_methods
from xlamini.core.config import config
from xlamini.core.tracer import Tracer, install_evaluator
from xlamini.runtime.dispatch import set_tracer_class
from xlamini.runtime.program_limit import crowd
from xlamini.staging.run.eager import evaluate_primitive
from xlamini.staging.run.jit import forget_own
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct

set_tracer_class(Tracer)
install_evaluator(evaluate_primitive)
crowd.forget = forget_own

edge_methods(type(config))
edge_methods(ShapeDtypeStruct)
