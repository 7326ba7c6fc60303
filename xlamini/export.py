"""Export of functions as serialized StableHLO, for other platforms, other processes and later versions.

>>> double = xlamini.jit(lambda x: x * 2)
>>> exported = xlamini.export.export(double, platforms=("cpu", "cuda", "tpu"))(1.0)
>>> xlamini.export.deserialize(exported.serialize()).call(21.0)
Array(42., dtype=float32, weak_type=True)
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
