"""The numbers by which the events of a recording name programs, which may have one name.

A number is that of the HLO module, in the process that compiled it. On the CPU it is in the code, so that a program
which was loaded from a file keeps it there, while its module gets a new one. Programs of several processes may have one
number; so may two functions with equal equations, of which the second one gets the code of the first from the disk.
"""
from __future__ import annotations

import re
from typing import Any

from xlamini.inspection.timing.trace.metadata import number_of_module, varint


def program_names(executable: Any) -> list[str]:
    """The names of an executable's modules with their numbers, as events have them: `jit_step(3)`."""
    return [f"{each.name}({program_number(each, executable)})" for each in executable.loaded.hlo_modules()]


def program_number(module: Any, executable: Any) -> int:
    """The number by which events name a module of an executable."""
    code = None if executable.serialized is None else _number_in_code(executable.serialized, module.name)
    return number_of_module(module.as_serialized_hlo_module_proto()) if code is None else code


def _number_in_code(code: bytes, name: str) -> int | None:
    """The number beside the module's name in the description of a kernel; None if there is no such description.

    These are the fields 2 and 3 of a message, of which the second is left out if it is 0.
    """
    size = len(name.encode())
    prefix = bytes([0x12, size]) if size < 128 else bytes([0x12, size & 127 | 128, size >> 7])
    found = re.findall(re.escape(prefix + name.encode()) + rb"(?:\x18([\x80-\xff]{0,9}[\x00-\x7f]))?", code)
    return max((varint(memoryview(number or b"\0"), 0)[0] for number in found), default=None)
