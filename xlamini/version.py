"""The library's version, as text and as a tuple of ints."""

from xlamini.core.version import __version__ as __version__, __version_info__ as __version_info__

__all__ = ["__version__", "__version_info__"]
