"""Random numbers, under the names JAX users know as `jax.random`: the same keys give the same numbers.

There is no hidden state: a key is a value, `split` makes independent keys of it, and a draw depends on its key alone.
"""

from xlamini.core.stubs import attach_stub as _attach_stub
from xlamini.random import key_arrays as _key_arrays

__getattr__, __dir__, __all__ = _attach_stub(__name__)
