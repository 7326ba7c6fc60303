"""Rows of the tests, a file for each family of operations; see row.py."""
from __future__ import annotations

import importlib
import pkgutil

from tests.rows.row import Row


def all_rows() -> list[Row]:
    """The rows of every file of this folder."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    return [row for module in modules for row in getattr(module, "ROWS", [])]
