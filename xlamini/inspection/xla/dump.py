"""One compilation with XLA's dumps, in a temporary folder: the files that it writes, by what they hold.

The options are given with this compilation, so that no other one writes files. They change nothing in the program.
"""
from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xlamini.core.errors import JaxRuntimeError
from xlamini.core.flags.jax_flags import log_compiles
from xlamini.inspection.xla.fusion_choices import PASS as FUSION_PASS
from xlamini.inspection.xla.passes import PassFile, pass_file
from xlamini.staging.compile.compile_request import CompileRequest, Options
from xlamini.staging.compile.program import check_nesting, compile_uncached, with_flags

if TYPE_CHECKING:
    from xlamini.runtime.execution.executable import CompiledModule

_WHAT = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}
_WHAT_ON_CPU = {"xla_dump_emitter_re": "llvm"}
"""The LLVM of kernels, which jaxlib 0.12 leaves out otherwise. The GPU compiler takes a minute with this option."""
_UNKNOWN = "No such compile option: 'xla_dump"
_MODULE = re.compile(r"(module_\d+\..*?)\.(?:cl_\d+\.)?before_optimizations\.txt")
_LLVM = re.compile(r"(.+)\.ir-with-opt\.ll")
_PTX = re.compile(r".*\.ptx")


class Missing(Exception):
    """A dump lacks a file; the text says which in a sentence."""


class Dump:
    """The files of a folder that XLA wrote for one module."""

    def __init__(self, folder: Path):
        names = sorted(path.name for path in folder.iterdir())
        modules = [found[1] for name in names if (found := _MODULE.fullmatch(name))]
        if not modules:
            raise Missing("XLA's compiler for this device wrote no dump")
        self._folder, self._prefix = folder, f"{modules[-1]}."
        self._names = [name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)]
        found = [(about, name) for name in self._names if (about := pass_file(re.sub(r"^cl_\d+\.", "", name)))]
        self._passes = sorted(found)

    def passes(self) -> Iterator[tuple[PassFile, bytes]]:
        """The program after each pass, in order."""
        if not self._passes:
            raise Missing("XLA's compiler for this device did not write the program after its passes")
        for about, name in self._passes:
            yield about, self._bytes(name)

    def before_fusion(self) -> str:
        """The program before the GPU compiler's main fusion."""
        for (_, before), (about, _) in zip(self._passes, self._passes[1:], strict=False):
            if about.name == FUSION_PASS:
                return self._text(before)
        raise Missing("XLA's compiler did not write the program before its main fusion")

    def only(self, ending: str, what: str) -> str:
        """The text of the one file with an ending; `what` says what it holds, for the error."""
        found = [name for name in self._names if name.endswith(ending)]
        if not found:
            raise Missing(f"XLA's compiler for this device does not write {what}")
        return self._text(found[-1])

    def assembly(self) -> tuple[str, list[str]]:
        """The name of the assembly, and its texts: PTX of a GPU, LLVM's IR of a CPU."""
        ptx = [self._text(name) for name in self._names if _PTX.fullmatch(name)]
        if ptx:
            return "PTX", ptx
        llvm = [self._text(name) for name in self._names if _LLVM.fullmatch(name)]
        if llvm:
            return "LLVM", llvm
        raise Missing("XLA's compiler for this device writes no assembly")

    def _bytes(self, name: str) -> bytes:
        return (self._folder / f"{self._prefix}{name}").read_bytes()

    def _text(self, name: str) -> str:
        return self._bytes(name).decode("utf-8", "replace")


class DumpedProgram(NamedTuple):
    """A compiled program, the seconds that it took, and its dump, or why there is none."""

    executable: CompiledModule
    seconds: float
    dump: Dump | None
    why_none: str


@contextmanager
def compilation_with_dump(program: CompileRequest, options: Options) -> Iterator[Callable[[], DumpedProgram]]:
    """Compile a program with dumps in a thread of its own; the disk cache is neither read nor written.

    The dumps are there until the block ends. The function that the block gets waits for the program, and raises what
    the compiler raises. At the exit of the process, when no thread can begin, it compiles.
    """
    given, logs = with_flags(program, options), log_compiles.value

    def compiled(folder: Path | None) -> DumpedProgram:
        check_nesting(program)
        with log_compiles(logs):  # a thread has its own value of a flag
            if folder is None:
                return _compiled_without(program, given, "no temporary folder can be made for XLA's dumps")
            return _compiled_to(folder, program, given)

    with _temporary_folder() as folder, ThreadPoolExecutor(1, "xlamini-inspect") as thread:
        try:
            wait = thread.submit(compiled, folder).result
        except RuntimeError:
            wait = partial(compiled, folder)
        yield wait


def _compiled_to(folder: Path, program: CompileRequest, options: Options) -> DumpedProgram:
    what = {"xla_dump_to": str(folder), **_WHAT, **(_WHAT_ON_CPU if program.device.platform == "cpu" else {})}
    start = time.monotonic()
    try:
        executable = compile_uncached(program, {**(options or {}), **what})
    except JaxRuntimeError as error:
        if _UNKNOWN not in str(error):
            raise
        return _compiled_without(program, options, "XLA's compiler for this device does not take the options of dumps")
    seconds = time.monotonic() - start
    try:
        return DumpedProgram(executable, seconds, Dump(folder), "")
    except Missing as error:
        return DumpedProgram(executable, seconds, None, str(error))


def _compiled_without(program: CompileRequest, options: Options, why: str) -> DumpedProgram:
    start = time.monotonic()
    executable = compile_uncached(program, options)
    return DumpedProgram(executable, time.monotonic() - start, None, why)


@contextmanager
def _temporary_folder() -> Iterator[Path | None]:
    """A folder that is removed in the end; None if the machine allows none."""
    try:
        made = tempfile.TemporaryDirectory(prefix="xlamini-inspect-", ignore_cleanup_errors=True)
    except OSError:
        yield None
        return
    with made as name:
        yield Path(name)
