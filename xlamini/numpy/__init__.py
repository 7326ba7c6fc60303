"""NumPy on xlamini: the functions JAX users know as `jax.numpy`, with their names, arguments, defaults and dtypes.

One family of functions a file; the stub beside this file lists the public names. Importing it gives arrays and traced
values their operators and methods; the families are loaded on first use.
"""

from xlamini.core.stubs import attach_stub as _attach_stub
from xlamini.numpy import array_methods as _array_methods, array_operators as _array_operators
from xlamini.numpy.indexing import operators as _indexing

__getattr__, __dir__, __all__ = _attach_stub(__name__)
