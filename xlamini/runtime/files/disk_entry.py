"""One compiled program of the cache as a file (see framed.py), named by the hash of what its header calls `parts`.

The program is machine code, so nothing of a file is used before its checksum has been compared.
"""
from __future__ import annotations

from xlamini.runtime.files.file_format import Damaged as Damaged
from xlamini.runtime.files.file_format import Header as Header
from xlamini.runtime.files.file_format import Kind

_ENTRY = Kind("xlamini program", 1, frozenset({"name", "made", "seconds", "parts", "about"}), "an entry")

MAGIC = _ENTRY.magic
packed, unpacked, read_header = _ENTRY.packed, _ENTRY.unpacked, _ENTRY.read_header
