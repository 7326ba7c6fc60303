"""A lowered program's executable: taken from disk where programs are kept, else compiled."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xlamini.core.config import programs_are_kept, programs_are_keyed_by_module
from xlamini.core.effects import any_ordered
from xlamini.runtime.executable import Executable, compile_module, is_compile_only
from xlamini.runtime.meshes.program_placement import placed_avals
from xlamini.runtime.processes.group import spans_processes

if TYPE_CHECKING:
    from xlamini.runtime.targets.compile_only import CompileOnlyModule
    from xlamini.staging.compile.program import LoweredProgram

Options = Mapping[str, Any] | None


def executable_of(program: LoweredProgram, options: Options) -> Executable | CompileOnlyModule:
    """Compile a program with these options of XLA, or load it from disk."""
    if is_compile_only(program.device):
        # Imported here, as below, because most processes neither compile for other machines nor keep programs.
        from xlamini.runtime.targets.compile_only import compile_for_target

        about = {"name": program.name, "calls_python": bool(program.host_callbacks)}
        return compile_for_target(program.module, **about, **io_of(program, options))
    if not _may_be_stored(program):
        return compiled(program, options)
    from xlamini.staging.compile.compile_cache import stored_executable

    return stored_executable(program, options)


def _may_be_stored(program: LoweredProgram) -> bool:
    if not programs_are_kept():
        return False
    if program.spread is None:
        return True
    # The shardings of the inputs are part of the module's text, but not of the digest of the equations.
    return programs_are_keyed_by_module() and not spans_processes(program.spread.devices)


def compiled(program: LoweredProgram, options: Options) -> Executable:
    """Compile a program."""
    return compile_module(
        program.module,
        host_callbacks=program.host_callbacks,
        ordered=any_ordered(program.pruned.effects),
        **io_of(program, options),
    )


def io_of(program: LoweredProgram, options: Options) -> dict[str, Any]:
    """What is said of a program to whoever compiles or loads it: types, donation, device, options."""
    return {
        "place": program.device,
        "in_avals": program.pruned.in_avals,
        "out_avals": placed_avals(program.device, program.pruned.out_avals),
        "donated": [i for i, a in enumerate(program.aliases) if a is not None],
        "compiler_options": options,
    }
