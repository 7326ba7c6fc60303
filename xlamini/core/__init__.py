"""The language: types, programs, primitives and the tracer. Nothing here compiles or runs."""

from xlamini.core.avals import ShapedArray as ShapedArray
from xlamini.core.tracer import Tracer as Tracer
