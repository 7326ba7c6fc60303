"""Dumps: under flag `dump_ir_to` each program is written to a folder as it is compiled, in files named as JAX's."""
from __future__ import annotations

import itertools
import os
import re
import warnings

from xlamini.core import user_stacklevel
from xlamini.core.flags.jax_flags import dump_ir_modes, dump_ir_to, include_debug_info_in_dumps
from xlamini.runtime.files.file_format import replace_file
from xlamini.staging.compile.compile_request import CompileRequest

_numbers = itertools.count()
_LONGEST_NAME = 128


def dump(program: CompileRequest) -> None:
    """Write a program in each of the modes of flag `dump_ir_modes`; warns of a mode that does not exist."""
    folder, number = os.path.expanduser(dump_ir_to.value), next(_numbers)
    os.makedirs(folder, exist_ok=True)
    name = re.sub(r"[^\w.)( -]", "", program.name)[:_LONGEST_NAME]
    for mode in dump_ir_modes.value.split(","):
        if mode == "stablehlo":
            text = program.module.operation.get_asm(enable_debug_info=include_debug_info_in_dumps.value)
            _write(folder, f"jax_ir{number:04}_jit_{name}_compile.mlir", text)
        elif mode == "jaxpr":
            _write(folder, f"jax_{number:06}_{name}.jaxpr.txt", f"{program.pruned}\n")
        else:
            text = f"flag dump_ir_modes has no mode {mode!r}; it takes 'stablehlo', 'jaxpr', or 'stablehlo,jaxpr'"
            warnings.warn(text, UserWarning, user_stacklevel())


def _write(folder: str, name: str, text: str) -> None:
    replace_file(os.path.join(folder, name), text.encode(errors="replace"))
