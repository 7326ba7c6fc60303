"""Starting up: what the floors need to know of each other once all are there."""
from __future__ import annotations

import xlamini.core.concrete  # gives tracers their conversions to Python numbers
import xlamini.primitives.operators  # gives tracers their operators
from xlamini.core.config import config
from xlamini.core.edges import edge_methods
from xlamini.core.tracer import Tracer, install_evaluator
from xlamini.runtime.crowding import crowd
from xlamini.runtime.dispatch import set_tracer_class
from xlamini.transforms.eager import evaluate_primitive
from xlamini.transforms.jit import forget_own
from xlamini.transforms.shape_struct import ShapeDtypeStruct

set_tracer_class(Tracer)
install_evaluator(evaluate_primitive)
crowd.forget = forget_own

edge_methods(type(config))
edge_methods(ShapeDtypeStruct)
