"""The compile cache: executables on disk, keyed by a digest of the program's equations.

As the key needs no StableHLO, a cache hit skips lowering. Where no file has a program's sketch, its key is not computed
until it is stored. A program for several devices is lowered, as its inputs' shardings are only part of its module. One
that calls Python functions is never stored, because another process does not have these functions.
"""
from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from xlamini.core import Jaxpr, subjaxprs
from xlamini.core.caching.digest import NoDigest, digest, sketch
from xlamini.core.errors import FfiTargetError, JaxRuntimeError
from xlamini.core.events import LOADED, MISSING, Phase, emit
from xlamini.core.flags.cache_flags import compilation_cache_check_contents, programs_are_keyed_by_module
from xlamini.core.program.call_graph import Places
from xlamini.runtime.execution.executable import Executable, ProgramOrigin, check_options, load_program
from xlamini.runtime.execution.host_memory import memory_needed
from xlamini.runtime.files import disk_cache
from xlamini.runtime.files.disk_entry import Damaged
from xlamini.runtime.files.disk_key import Key, key, module_key
from xlamini.runtime.meshes.program_placement import MeshPlacement, devices_of
from xlamini.staging.compile.compile_request import CompileRequest, Options, backend_compile, interface_of

_METADATA = r", metadata=\{[^}]*\}"


def cached_executable(program: CompileRequest, options: Options) -> Executable:
    """Load a program from disk, or compile it and put it there."""
    if (where := disk_cache.folder()) is None:
        return backend_compile(program, options)
    check_options(options or {})
    known = key_of(program, options) if disk_cache.may_have(sketch(program.pruned), where) else None
    found = None if known is None else _loaded(program, options, known)
    return _kept(program, options, known) if found is None else found


def key_of(program: CompileRequest, options: Options) -> Key | None:
    """The program's key in the compile cache; None for one that calls Python functions."""
    if isinstance(program.device, MeshPlacement) or programs_are_keyed_by_module():
        return _module_key(program, options)
    try:
        code = digest(program.pruned)
    except NoDigest:
        # A param has no digest that another process would compute too, so the key is a hash of the module's text.
        if _is_of_this_process(program):
            return None
        text = program.module.operation.get_asm(enable_debug_info=False)
        code = f"module {hashlib.sha256(text.encode()).hexdigest()}"
    donated = " ".join(f"{i}->{a}" for i, a in enumerate(program.aliases) if a is not None)
    return key(program.name, sketch(program.pruned), code, donated, _meaning(program), program.device, options)


def _module_key(program: CompileRequest, options: Options) -> Key | None:
    if _is_of_this_process(program):
        return None
    text = program.module.operation.get_asm(enable_debug_info=False)
    return module_key(program.name, sketch(program.pruned), text, devices_of(program.device), options)


def _meaning(program: CompileRequest) -> dict[str, Any]:
    """The flags that its lowering depends on."""
    return {**program.flags, "outlining": program.outlines}


def _loaded(program: CompileRequest, options: Options, known: Key) -> Executable | None:
    start = time.perf_counter()
    found = disk_cache.find(known)
    if found is None:
        return None
    header, serialized = found
    try:
        with Phase(LOADED, program.name):
            executable = load_program(serialized, **interface_of(program, options))
    except FfiTargetError:
        raise  # the entry is fine, and compiling would fail too
    except JaxRuntimeError as error:
        disk_cache.reject(known, error)
        return None
    if compilation_cache_check_contents.value and _differs(executable, backend_compile(program, options)):
        disk_cache.reject(known, Damaged("is another program than XLA compiles now"))
        return None
    executable.memory_needed = header["about"].get("memory")
    executable.origin = ProgramOrigin(program.name, Places(program.pruned))
    disk_cache.record_hit(known, header, time.perf_counter() - start)
    return executable


def _differs(one: Executable, other: Executable) -> bool:
    """Whether two executables differ in their optimized HLO. Their bytes differ even for equal programs."""
    return _without_metadata(one.as_text()) != _without_metadata(other.as_text())


def _without_metadata(hlo: str) -> str:
    """The text of a module without source lines: those of its instructions, and the tables before the first one."""
    start, end = hlo.find("\nFileNames"), hlo.find("\n\n\n")
    return re.sub(_METADATA, "", hlo if start < 0 else hlo[:start] + hlo[end:])


def _kept(program: CompileRequest, options: Options, known: Key | None) -> Executable:
    """Compile it, and store it on disk if that took long enough; a key of None is computed for that.

    The least time is divided among the segments of a program, so that those not stored take less than it in all.
    """
    start = time.perf_counter()
    executable = backend_compile(program, options)
    seconds = time.perf_counter() - start
    if known is None:
        emit(MISSING, program.name, {"misses": not _is_of_this_process(program)})
    if disk_cache.takes(seconds * program.segment_count) and (known := known or key_of(program, options)) is not None:
        _store(program, executable, known, seconds)
    return executable


def _is_of_this_process(program: CompileRequest) -> bool:
    """Whether it calls Python functions, which no other process has."""
    return bool(program.host_callbacks or program.partitioners)


def _store(program: CompileRequest, executable: Executable, known: Key, seconds: float) -> None:
    described, platform = about(program.pruned), program.device.platform
    if platform == "cpu":
        described["memory"] = memory_needed(executable)
    try:
        serialized = executable.serialize()
    except JaxRuntimeError as error:
        disk_cache.report_unkept(platform, f"programs of platform {platform} cannot be stored: {error}", error)
        return
    disk_cache.store(known, serialized, seconds, described)


def about(jaxpr: Jaxpr) -> dict[str, Any]:
    """The types and the number of equations of each primitive, for people who compare cache entries."""
    return {
        "arguments": " ".join(map(str, jaxpr.in_avals)),
        "results": " ".join(map(str, jaxpr.out_avals)),
        "equations": dict(Counter(_names(jaxpr)).most_common()),
    }


def _names(jaxpr: Jaxpr) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for inner in subjaxprs(eqn):
            yield from _names(inner)
