"""The call of XLA's compiler for a lowered program."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xlamini.core.effects import any_ordered
from xlamini.runtime.executable import Executable, compile_module
from xlamini.runtime.meshes.program_placement import as_placed
from xlamini.staging.compile.lowered_program import LoweredProgram

Options = Mapping[str, Any] | None


def backend_compile(program: LoweredProgram, options: Options) -> Executable:
    """Compile a program with these options of XLA."""
    return compile_module(
        program.module,
        host_callbacks=program.host_callbacks,
        ordered=any_ordered(program.pruned.effects),
        **interface_of(program, options),
    )


def interface_of(program: LoweredProgram, options: Options) -> dict[str, Any]:
    """The keyword arguments that compiling and loading a program share: types, donation, device, options."""
    return {
        "place": program.device,
        "in_avals": program.pruned.in_avals,
        "out_avals": as_placed(program.device, program.pruned.out_avals),
        "donated": [i for i, a in enumerate(program.aliases) if a is not None],
        "compiler_options": options,
    }
