"""A compiled program, which takes and returns flat arrays, and the way from a lowered program to it.

Unused inputs never reach the executable. A random key is passed to it, and returned by it, as the key's words.
"""
from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xlamini.core import Values, float0, unflatten
from xlamini.core.errors import DeletedArrayError
from xlamini.core.events import CALLED, COMPILED, COMPILING, Phase, emit, is_heard
from xlamini.core.flags.compile_flags import compile_key, disable_most_optimizations, options_of
from xlamini.core.flags.jax_flags import no_execution
from xlamini.core.pytree.nodes import dispatch_registry
from xlamini.primitives.windows.cpu_compiler import cpu_options
from xlamini.runtime import device_put_value, key_words
from xlamini.runtime.arrays.keys import as_keys
from xlamini.runtime.arrays.layout import order_of, relaid, use
from xlamini.runtime.arrays.lifetime import explain_failure, release
from xlamini.runtime.arrays.transfer_guards import unguarded
from xlamini.runtime.execution.dispatch import FastPath, fast_path
from xlamini.runtime.execution.executable import Executable, check_options, is_compile_only
from xlamini.runtime.execution.host_memory import check_fits_in_memory
from xlamini.runtime.processes.group import spans_processes
from xlamini.runtime.versions import DISPATCH_ERRORS
from xlamini.staging.compile.compile_request import (
    CompileRequest,
    Options,
    backend_compile,
    check_nesting,
    interface_of,
)
from xlamini.staging.compile.ledger import compiling

if TYPE_CHECKING:
    from xlamini.runtime.meshes.program_placement import DeviceOrMesh
    from xlamini.runtime.targets.compile_only import CompileOnlyModule

_SMALL = 2**24
"""Bytes computed by a program that is run without a look at the machine's memory."""

# The imports inside functions load what many processes never use: other targets, the disk cache, other
# processes.


def compile_lowered(lowered: CompileRequest, options: Options = None) -> Program:
    """Compile a lowered program, or load it from the disk cache; `options` are XLA's, by name, besides the flags'."""
    check_nesting(lowered)
    emit(COMPILING, lowered.name, lowered)
    with Phase(COMPILED, lowered.name, call=compiling(lowered.ledger_entry, lowered.name)):
        executable = _executable(lowered, with_flags(lowered, options))
    return Program(lowered, executable, _check_of_others(lowered))


def with_flags(lowered: CompileRequest, options: Options) -> Options:
    """XLA's options for a program: those of the flags and of its convolutions, and those given, which come first."""
    by_flags = options_of(compile_key())
    if lowered.device.platform == "cpu":
        by_flags = by_flags | cpu_options(lowered.pruned, disable_most_optimizations.value)
    if not by_flags or options is None:
        return by_flags or options
    check_options(options)
    return {**by_flags, **options}


def _executable(lowered: CompileRequest, options: Options) -> Any:
    if not lowered.in_segments:
        return _executable_of(lowered, options)
    from xlamini.staging.compile.segments import compile_segments  # for deep programs only

    return compile_segments(lowered, lambda segment: _executable_of(segment, options))


def _executable_of(program: CompileRequest, options: Options) -> Executable | CompileOnlyModule:
    of_others = program.spread is not None and spans_processes(program.spread.devices)
    if is_compile_only(program.device) or not program.uses_disk_cache or of_others:
        return compile_uncached(program, options)
    from xlamini.staging.compile.compile_cache import cached_executable

    return cached_executable(program, options)


def compile_uncached(program: CompileRequest, options: Options) -> Executable | CompileOnlyModule:
    """Call XLA's compiler, whatever is in the disk cache; nothing is written there. `options` are all of XLA's."""
    if not is_compile_only(program.device):
        return backend_compile(program, options)
    from xlamini.runtime.targets.compile_only import compile_for_target

    about = {"name": program.name, "calls_python": bool(program.host_callbacks)}
    return compile_for_target(program.module, **about, **interface_of(program, options))


def _check_of_others(lowered: CompileRequest) -> Callable[[], None] | None:
    """The check that the other processes run the same program; None for a program of this process alone."""
    if lowered.spread is None or not spans_processes(lowered.spread.devices):
        return None
    from xlamini.staging.compile.process_check import check_before_first_run

    return check_before_first_run(lowered, lowered.spread.devices)


def _lies_so(x: Any, sharding: Any) -> bool:
    """Whether a value has a sharding, or is on other devices."""
    own = getattr(x, "_sharding", sharding)
    if own is sharding or own.num_devices != sharding.num_devices:
        return True
    return own.is_equivalent_to(sharding, x.ndim)


def scatter_where(mask: Sequence[bool], values: Values) -> list[Any]:
    """One entry for each flag: the next value where it is set, else None."""
    found = iter(values)
    return [next(found) if marked else None for marked in mask]


class Program:
    """A compiled jaxpr. It drops the module it was compiled from, which takes more memory than all the rest.

    It keeps its source, to which its executable refers weakly. `check_others` runs once, before the first call: it
    compares the program with those of the other processes.
    """

    computed: tuple[Any, ...]
    used_inputs: Sequence[bool]
    device: DeviceOrMesh
    executable: Any
    name: str

    def __init__(
        self,
        lowered: CompileRequest,
        executable: Any,
        check_others: Callable[[], None] | None = None,
    ):
        self.name, self.device, self.executable = lowered.name, lowered.device, executable
        self.used_inputs, self.computed = lowered.used_inputs, lowered.computed
        self._out_avals = lowered.out_avals
        self._takes_keys, self._returns_keys = lowered.takes_keys, lowered.returns_keys
        self._bytes_made = lowered.bytes_made
        self._used = [i for i, is_used in enumerate(lowered.used_inputs) if is_used]
        self._has_run = False
        self._source = lowered.source
        if self._source is not None and executable.is_single:
            executable.source = weakref.ref(self._source)
        self._check_others = check_others

    @property
    def runs_in_cpp(self) -> bool:
        """Whether C++ dispatch can run it by itself.

        It cannot run a program that calls Python functions, or FFI targets with side effects: their effects are waited
        for, and their failures explained; one that runs alone; and one with outputs of dtype float0, which are NumPy's.
        While somebody listens to calls, it runs none.
        """
        executable = self.executable
        if is_heard(CALLED):
            return False
        return executable.is_single and not (executable.is_awaited or executable.runs_alone) and all(self.computed)

    def takes_as_they_lie(self, inputs: Values) -> bool:
        """Whether it takes the inputs in their shardings over several devices, and in their layouts; C++ does not look.

        C++ moves those that lie on other devices, and copies those of the host.
        """
        executable = self.executable
        given = [inputs[i] for i in self._used]
        if executable.orders or use.any_other:
            orders = executable.orders or [None] * len(given)
            if any(map(operator.ne, map(order_of, given), orders)):
                return False
        return not executable.several or all(map(_lies_so, given, executable.in_shardings))

    def __call__(self, inputs: Values, committed: bool = False, names: Sequence[str] = ()) -> list[Any]:
        """The outputs; `names` are the names of the last inputs, the arguments, for messages."""
        if no_execution.value:
            raise RuntimeError(f"{self.name} would run, but flag no_execution is set")
        if not self._has_run:
            self._check_before_first_run()
        if is_heard(CALLED):
            emit(CALLED, self.name, self)
        given = [inputs[i] for i in self._used]
        if self._takes_keys:
            given = list(map(key_words, given))
        try:
            outs = self.executable.call(self.executable.place(given), committed)
        except (DeletedArrayError, *DISPATCH_ERRORS) as error:
            self.explain(error, inputs, names)
            raise
        if self.executable.donated:
            release(given[i] for i in self.executable.donated)
        if not all(self.computed):
            outs = self._with_float0(outs)
        return list(map(as_keys, outs, self._out_avals)) if self._returns_keys else outs

    def _check_before_first_run(self) -> None:
        if self._bytes_made > _SMALL:
            check_fits_in_memory(self.executable, self.device.platform, self.name, self._bytes_made)
        self._has_run = True
        check, self._check_others = self._check_others, None
        if check is not None:
            check()

    def _with_float0(self, outs: Values) -> list[Any]:
        """All outputs: arrays of dtype float0, which hold nothing, were not computed."""
        computed, pairs = iter(outs), zip(self.computed, self._out_avals, strict=True)
        return [next(computed) if is_computed else np.zeros(aval.shape, float0) for is_computed, aval in pairs]

    def explain(self, error: Exception, inputs: Values, names: Sequence[str]) -> None:
        """Raise the typed error behind one that a call with these inputs raised, if there is one."""
        explained = explain_failure(error, self._named(inputs, names))
        if explained is not None:
            raise explained from None

    def _named(self, inputs: Values, names: Sequence[str]) -> list[tuple[str, Any]]:
        """Each input with a description for messages."""
        captured = [f"the array that {self.name} captured"] * (len(inputs) - len(names))
        arguments = [f"the argument {name!r} of {self.name}" for name in names]
        return list(zip([*captured, *arguments], map(key_words, inputs), strict=True))

    def fast_path(self, captured: Values, leaves: Values, out_tree: Any, committed: bool) -> FastPath:
        """The fast path by which C++ dispatch runs this program; `out_tree` is the output's structure there."""
        used, constants = self.used_inputs, self.constants(captured)
        return fast_path(
            self.executable, out_tree, used_inputs=used, const_args=constants, leaves=leaves, committed=committed
        )

    def shardings_of_inputs(self) -> list[Any]:
        """The sharding of each input; None for an unused one."""
        return scatter_where(self.used_inputs, self.executable.in_shardings)

    def constants(self, captured: Values) -> list[Any]:
        """The captured values as arrays on the program's devices, so that no call moves them.

        They are part of the program, so guards of transfers do not see it.
        """
        if not captured:
            return []
        pairs = zip(map(key_words, captured), self.shardings_of_inputs(), strict=False)
        with unguarded():
            constants = [device_put_value(x, sharding) for x, sharding in pairs]
        orders = (
            scatter_where(self.used_inputs, self.executable.orders)
            if self.executable.orders
            else [None] * len(constants)
        )
        return relaid(constants, orders) if use.any_other else constants


class BoundProgram(NamedTuple):
    """A program with its captured values and the tree of its output, as calls of one signature run it.

    `names` are those of its arguments, for errors; `committed` says whether its outputs are committed to their device.
    """

    program: Program
    captured: Values
    out_tree: Any
    names: Sequence[str]
    committed: bool

    def outs(self, leaves: Values) -> list[Any]:
        """The outputs for these leaves of the arguments, flat."""
        return self.program([*self.captured, *leaves], self.committed, self.names)

    def __call__(self, leaves: Values) -> Any:
        """The output for these leaves of the arguments."""
        return unflatten(self.out_tree, self.outs(leaves))

    def in_cpp(self, leaves: Values, out: Any) -> FastPath:
        """How C++ dispatch runs it from now on; `out` is the output for these leaves."""
        out_tree = dispatch_registry.flatten(out)[1]
        return self.program.fast_path(self.captured, leaves, out_tree, self.committed)
