"""Numbers with a name, and the warning about complex numbers made real."""

import math
from typing import Final

import numpy as np

pi: Final = math.pi
"""The circumference of a circle divided by its diameter, a Python float.

>>> jnp.cos(jnp.pi)
Array(-1., dtype=float32, weak_type=True)
"""
e: Final = math.e
"""The base of natural logarithms, a Python float.

>>> jnp.log(jnp.e)
Array(1., dtype=float32, weak_type=True)
"""
inf: Final = math.inf
"""Positive infinity, a Python float.

>>> jnp.max(jnp.array([1.0, 2.0]), initial=-jnp.inf)
Array(2., dtype=float32)
>>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf, 1.0]))
Array([ True, False, False], dtype=bool)
"""
nan: Final = math.nan
"""Not a number, a Python float; it differs from itself.

>>> jnp.isnan(jnp.array([jnp.nan, 1.0])), jnp.nan == jnp.nan
(Array([ True, False], dtype=bool), False)
"""
euler_gamma: Final = 0.5772156649015329
"""Euler's constant: the limit of the sum of the first n reciprocals less `log(n)`. A Python float.

>>> jnp.round(jnp.sum(1 / jnp.arange(1, 10001)) - jnp.log(10000), 3), round(jnp.euler_gamma, 3)
(Array(0.577, dtype=float32), 0.577)
"""
newaxis = None
"""None, as an index: a new dimension of size 1.

>>> x = jnp.arange(3)
>>> x[:, jnp.newaxis].shape, x[jnp.newaxis].shape
((3, 1), (1, 3))
"""
ComplexWarning = np.exceptions.ComplexWarning
"""NumPy's warning that a conversion drops the imaginary part.

>>> import warnings
>>> with warnings.catch_warnings(record=True) as seen:
...     warnings.simplefilter("always")
...     _ = jnp.array([1 + 2j]).astype("float32")
>>> seen[0].category is ComplexWarning, jnp.real(jnp.array([1 + 2j]))
(True, Array([1.], dtype=float32))
"""
