"""The folder of the persistent compilation cache; its entries and statistics are in `xlamini.cache`."""
from __future__ import annotations

import os

from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.flags.config import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Store compiled programs in this folder: the flag `compilation_cache_dir`.

    >>> set_cache_dir(xlamini.config.compilation_cache_dir)
    """
    config.update("compilation_cache_dir", path if path is None else os.fspath(path))


def reset_cache() -> None:
    """Nothing, for compatibility: the folder is read from the flag at each compilation.

    >>> reset_cache()
    """


_edge_of_face(globals())
