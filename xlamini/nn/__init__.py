"""Functions that neural networks are made of, under the names JAX users know as `jax.nn`.

Activation functions keep shapes, but for `glu`, and floating dtypes. Integers become floats, but for `relu`,
`hard_tanh` and `identity`, which keep them. What is no array or number is a TypeError.
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
