"""A program for a child process: it compiles kernels for a TPU, while libtpu writes what it made of each.

libtpu reads the options of its dumps once, when it is loaded, so a process that has loaded it cannot ask for them.

`tpu.py` starts it with a folder, a target and options as its arguments. The folder has the kernels as StableHLO,
0.mlirbc and so on, and takes the dumps; 0.json is the list of the first one's.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from xlamini.runtime.files.module_reader import new_context
from xlamini.runtime.targets.compile_only import compiled_ahead
from xlamini.runtime.targets.topology import target


def main(arguments: Sequence[str]) -> None:
    """Compile every kernel of the folder."""
    folder, devices, options = Path(arguments[0]), target(arguments[1]).devices[:1], json.loads(arguments[2])
    for i in range(len(list(folder.glob("*.mlirbc")))):
        dumped = _dumped(folder, i, devices, options)
        (folder / f"{i}.json").write_text(json.dumps(dumped))


def _dumped(folder: Path, i: int, devices: Sequence[Any], options: dict[str, Any]) -> list[str]:
    """The names of the files that libtpu wrote."""
    before = set(folder.iterdir())
    module = ir.Module.parse((folder / f"{i}.mlirbc").read_bytes(), new_context())
    compiled_ahead(module, devices, options)
    return sorted(path.name for path in set(folder.iterdir()) - before)


if __name__ == "__main__":
    main(sys.argv[1:])
