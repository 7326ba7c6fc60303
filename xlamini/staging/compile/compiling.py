"""From a lowered program to a compiled one: through the disk cache where that is on, else by XLA's compiler."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xlamini.core.config import programs_are_kept
from xlamini.runtime.executable import Executable, is_elsewhere
from xlamini.runtime.processes.group import spans_processes
from xlamini.staging.compile.backend_compile import Options, backend_compile, interface_of
from xlamini.staging.compile.lowered_program import LoweredProgram
from xlamini.staging.compile.program import Program

if TYPE_CHECKING:
    from xlamini.runtime.targets.compile_only import Unloaded

# The imports inside functions load what most processes never use: other targets, the disk cache, other processes.


def compile_lowered(lowered: LoweredProgram, options: Options = None) -> Program:
    """The program, ready to run; `options` are XLA's, by name."""
    return Program(lowered, _executable_of(lowered, options), _check_of_others(lowered))


def _executable_of(program: LoweredProgram, options: Options) -> Executable | Unloaded:
    if is_elsewhere(program.device):
        from xlamini.runtime.targets.compile_only import compile_elsewhere

        about = {"name": program.name, "calls_python": bool(program.host_callbacks)}
        return compile_elsewhere(program.module, **about, **interface_of(program, options))
    if not programs_are_kept() or program.spread:
        return backend_compile(program, options)
    from xlamini.staging.compile.compile_cache import cached_executable

    return cached_executable(program, options)


def _check_of_others(lowered: LoweredProgram) -> Callable[[], None] | None:
    """The check that the other processes run the same program; None for a program of this process alone."""
    if lowered.spread is None or not spans_processes(lowered.spread.devices):
        return None
    from xlamini.staging.compile.process_check import check_before_first_run

    return check_before_first_run(lowered, lowered.spread.devices)
