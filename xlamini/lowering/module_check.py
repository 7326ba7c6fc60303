"""The check of StableHLO that another process wrote: the types of `main`, and what calls it has.

MLIR's reader of bytecode can crash on bytes that were made to make it crash. So bytes that nobody vouches for are read
in a child process first; the first file costs the start of a Python process, and the next ones milliseconds.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

from xlamini.core import LoadError, ShapedArray
from xlamini.core.caching.memo import Memo
from xlamini.core.errors import JaxRuntimeError
from xlamini.lowering.mlir import interned
from xlamini.runtime.files.module_reader import Call, described
from xlamini.runtime.files.reader_process import answer_of_child


class ModuleSummary(NamedTuple):
    """The types of a module's arguments and results, as MLIR writes them, its custom calls, and its number of devices.

    `symbolic` says whether it has symbolic sizes, and `vouched` whether it was read without a child, because somebody
    knows who made it.
    """

    arguments: list[str]
    results: list[str]
    calls: list[Call]
    devices: int
    symbolic: bool
    vouched: bool

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels that it calls."""
        return sorted({call[0] for call in self.calls})


checked: Final = Memo("file: StableHLO that was read", 512)
"""Summaries by the SHA-256 of the artifact."""


def summary(artifact: bytes, trusted: bool) -> ModuleSummary:
    """The summary of a portable artifact, read in a child process unless trusted; LoadError if it cannot be read."""
    return checked.get_or_make(hashlib.sha256(artifact).digest(), lambda: _summary(artifact, trusted))


def type_text(aval: ShapedArray) -> str:
    """The type as MLIR writes it, such as `tensor<2x3xf32>`."""
    return str(interned().type(aval))


def _summary(artifact: bytes, trusted: bool) -> ModuleSummary:
    found = _described(artifact) if trusted else answer_of_child(artifact)
    if "refused" in found:
        raise LoadError(
            f"the StableHLO has {found['refused']}, which no exported function has; if you know who made the file, "
            "pass trusted=True"
        )
    if "error" in found:
        raise LoadError(f"the StableHLO cannot be read by this jaxlib: {found['error']}")
    return ModuleSummary(**found, vouched=trusted)


def _described(artifact: bytes) -> dict[str, Any]:
    try:
        return described(artifact, interned().context)
    except (JaxRuntimeError, ValueError) as error:
        return {"error": error}
