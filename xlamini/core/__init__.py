"""Private: the language. Types, programs, primitives and the tracer; nothing here compiles or runs."""

from xlamini.core.avals import ShapedArray as ShapedArray
from xlamini.core.tracer import Tracer as Tracer
