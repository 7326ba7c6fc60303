"""What a program says of the function that it was traced from."""
from __future__ import annotations

from typing import NamedTuple


class DebugInfo(NamedTuple):
    """What a function was traced for, and its name, perhaps followed by its place: `f at file.py:3`."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        return self.func_src_info.partition(" ")[0]
