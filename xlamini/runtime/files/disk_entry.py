"""The file of one cache entry, in the format of file_format.py, named by the hash of the header's `parts`.

The body is machine code, so the checksum is compared before anything of the file is used.
"""
from __future__ import annotations

from typing import Final

from xlamini.runtime.files.file_format import Damaged as Damaged, Header as Header, Kind

_FIELDS = {"name": str, "made": (int, float), "seconds": (int, float), "parts": dict, "about": dict}
_ENTRY = Kind("xlamini program", 1, _FIELDS, "an entry")

MAGIC = _ENTRY.magic
packed: Final = _ENTRY.packed
unpacked: Final = _ENTRY.unpacked
read_header: Final = _ENTRY.read_header
