"""How to inspect a program of a recording: the command and the line of Python that a reader copies."""
from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any

from xlamini.inspection.timing.page.sources import Sources
from xlamini.lowering.module import identifier
from xlamini.staging.compile.ledger import Function, compilations

_LAYOUT = re.compile(r"\bentry_computation_layout=\{\((.*?)\)->")
_MOST_TYPES = 8
"""More arrays than these are leaves of trees, which a function makes more readily than a command line."""


def functions_of_programs() -> dict[str, Function]:
    """The functions of this process by the names of their programs."""
    return {f"jit_{identifier(entry.name)}": entry.function for entry in compilations()}


def types_of_programs(executables: Iterable[Any], wanted: set[str]) -> dict[str, list[str]]:
    """The types of the arrays that programs take, by their names; none of those that take trees, which have several."""
    found: dict[str, list[str]] = {}
    for executable in executables:
        source = executable.source and executable.source()
        if source is None or source.takes_arrays:
            own = [module for module in executable.loaded.hlo_modules() if module.name in wanted]
            found |= {module.name: types_in(module.to_string()) for module in own}
    return found


def types_in(text: str) -> list[str]:
    """The types of a module's arguments, as the command `inspect` takes them.

    >>> types_in("HloModule jit_f, entry_computation_layout={(f32[8,4]{1,0}, /*index=1*/s32[])->f32[8]{0}}")
    ['f32[8,4]', 'i32[]']
    """
    found = _LAYOUT.search(text.split("\n", 1)[0])
    if not found:
        return []
    bare = re.sub(r"/\*.*?\*/|\{[^{}]*\}", "", found[1])
    return [_type(each) for each in bare.split(", ") if each]


def _type(text: str) -> str:
    return re.sub(r"^pred\b", "bool", re.sub(r"^s(?=\d)", "i", text))


def command(function: Function, types: list[str], sources: Sources) -> str | None:
    """The command that inspects a function; None for one without a name in a file."""
    if not sources.defines(function.file, function.name):
        return None
    given = [f"--arg {shlex.quote(type_)}" for type_ in types]
    arguments = given if 0 < len(types) <= _MOST_TYPES else ["--args-from FILE:FUNCTION"]
    place = shlex.quote(f"{function.file}:{function.name}")
    program = "python -m xlamini run -m xlamini" if sources.imports_jax(function.file) else "python -m xlamini"
    return " ".join([program, f"inspect {place}", *arguments, f"--measure -o {function.name}.html"])


def snippet(function: Function) -> str:
    """The Python that inspects a function where it is called."""
    name = function.name if function.name.isidentifier() else "fun"
    return f'xlamini.inspect({name}, measure=True)(*args).save("{name}.html")  # with the arguments of a call'
