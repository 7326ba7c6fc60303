"""The library's version, which saved programs carry, and that of the JAX whose names and meanings it has."""

from typing import Final

__version__ = "0.1.0"
"""The version of this package, as text.

>>> __version__ == ".".join(map(str, __version_info__))
True
"""
__version_info__: Final = (0, 1, 0)
"""The version of this package as a tuple of ints, to be compared.

>>> __version_info__ >= (0, 1)
True
"""

JAX_VERSION = "0.12.0.1"
