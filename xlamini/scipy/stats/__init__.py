"""Probability distributions, one a file, and what is said of samples, under the names of `jax.scipy.stats`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
