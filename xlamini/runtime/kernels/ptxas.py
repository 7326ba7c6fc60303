"""The registers of a kernel, from NVIDIA's assembler `ptxas`, where it is installed: XLA does not write them."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from xlamini.runtime.devices.nvidia import toolkit
from xlamini.runtime.kernels.ptx import Registers, architecture

_USED, _SPILLS = re.compile(r"Used (\d+) registers"), re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_LONGEST = 60
"""Seconds that the assembler may take."""


def registers_of(ptx: str) -> Registers | None:
    """The registers of the kernel in a PTX text; None without an assembler that takes it."""
    arch, found = architecture(ptx), assembler()
    if arch is None or found is None:
        return None
    command = [found, "-v", f"-arch={arch}", "-o", "/dev/null", "/dev/stdin"]
    try:
        done = subprocess.run(command, input=ptx, capture_output=True, encoding="utf-8", timeout=_LONGEST, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_registers(done.stdout + done.stderr)


def read_registers(text: str) -> Registers | None:
    """The registers that the assembler's report names; None if it failed."""
    used, spills = _USED.search(text), _SPILLS.search(text)
    if used is None:
        return None
    return Registers(int(used[1]), *(map(int, spills.groups()) if spills else (0, 0)))


def assembler() -> str | None:
    """The path of `ptxas`: the one in NVIDIA's wheels, which XLA uses, or that of the PATH."""
    folder = toolkit()
    own = Path(folder or "") / "bin" / "ptxas"
    return str(own) if folder and own.is_file() else shutil.which("ptxas")
