"""From a jaxpr to something that runs: prune, lower, compile.

A `Program` takes the flat inputs of its jaxpr and returns flat outputs. Inputs that no equation reads never reach the
executable; in place of random keys it gets, and returns, the words they are made of.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core.config import outlining, programs_are_kept, programs_are_keyed_by_module, trace_flags, under
from xlamini.core.dtypes import float0
from xlamini.core.errors import DeletedArrayError, ShapeError
from xlamini.core.jaxpr import Jaxpr, once, subjaxprs
from xlamini.interpreters.dce import dce
from xlamini.interpreters.physical import is_extended, physical
from xlamini.runtime.dispatch import FastPath, fast_path
from xlamini.runtime.executable import Executable
from xlamini.runtime.host_memory import check_fits_in_memory
from xlamini.runtime.keys import as_keys, key_words
from xlamini.runtime.lifetime import explain_failure, release
from xlamini.runtime.meshes.program_placement import MeshPlacement, Place
from xlamini.runtime.processes.group import spans_processes
from xlamini.runtime.to_device import device_put_value
from xlamini.runtime.versions import DISPATCH_ERRORS
from xlamini.staging.compile.compiling import executable_of
from xlamini.staging.compile.outlining import outlined

if TYPE_CHECKING:
    from xlamini.runtime.targets.compile_only import CompileOnlyModule

_GIGANTIC = 2**36
"""Elements of one array that XLA's CPU compiler does not survive."""


class LoweredProgram:
    """A jaxpr and its StableHLO module, ready to compile.

    Where programs are kept on disk, outlining and the module wait until they are asked for: a program that is there
    needs neither.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        name: str,
        device: Place,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        outline: bool | None = None,
    ):
        self.out_avals = jaxpr.out_avals
        self.returns_keys = any(map(is_extended, self.out_avals))
        self.computed = tuple(a.dtype != float0 for a in self.out_avals)
        self.pruned, used = dce(physical(jaxpr), self.computed, keep_unused)
        self.kept = used
        self.outlines = outlining.value if outline is None else outline
        self.bytes_made = _bytes_made(self.pruned) if device.platform == "cpu" else 0
        self.name, self.device = name, self._kept_of(device)
        donated = donated or (False,) * len(jaxpr.invars)
        self.aliases = alias_outputs(self.pruned, [d for d, u in zip(donated, used, strict=True) if u])
        self.unusable = _unusable(donated, used, self.aliases)
        self.flags = trace_flags()
        self._outline: tuple[Jaxpr, str] | None = None
        self._module: tuple[Any, list[Any]] | None = None
        if not programs_are_kept() or programs_are_keyed_by_module():
            _ = self._lowered  # now, so that what cannot be lowered is said here

    def _kept_of(self, device: Place) -> Place:
        """The program's place, with the shardings of what it reads and computes only."""
        if not isinstance(device, MeshPlacement):
            return device
        ins = itertools.compress(device.of_inputs(len(self.kept)), self.kept)
        outs = itertools.compress(device.of_typed_outputs(self.out_avals), self.computed)
        return device._replace(ins=tuple(ins), outs=tuple(outs))

    @property
    def spread(self) -> MeshPlacement | None:
        """Its place, if that is a mesh."""
        return self.device if isinstance(self.device, MeshPlacement) else None

    # No cached_property: its frame would stand in the tracebacks of what cannot be lowered.

    @property
    def _outlined(self) -> tuple[Jaxpr, str]:
        if self._outline is None:
            self._outline = outlined(self.pruned, self.device.platform, self.outlines)
        return self._outline

    @property
    def _lowered(self) -> tuple[Any, list[Any]]:
        if self._module is None:
            # Imported here because MLIR's bindings cost 0.1 s, which a user who only looks at jaxprs should not pay.
            from xlamini.lowering.module import lower_jaxpr

            with under(self.flags):
                self._module = lower_jaxpr(self.jaxpr, self.name, self.device.platform, self.aliases, (), self.spread)
        return self._module

    jaxpr = property(lambda self: self._outlined[0], doc="The program as it is lowered.")
    outline_report = property(lambda self: self._outlined[1], doc="What outlining did.")
    module = property(lambda self: self._lowered[0], doc="The StableHLO module.")
    host_callbacks = property(lambda self: self._lowered[1], doc="The Python functions that it calls.")

    def compile(self, options: Mapping[str, Any] | None = None) -> Program:
        """The program, ready to run; `options` are XLA's, by name."""
        return Program(self, executable_of(self, options))


@once
def _bytes_made(jaxpr: Jaxpr) -> int:
    """Bytes of all values that a program makes, those of a body once.

    ShapeError for an array that XLA's CPU compiler does not survive: it would divide by zero.
    """
    avals = [v.aval for eqn in jaxpr.eqns for v in eqn.outvars]
    for aval in {*jaxpr.in_avals, *avals}:
        if aval.size >= _GIGANTIC:
            raise ShapeError(
                f"{jaxpr.name}: an array {aval.str_short(short_dtypes=False)} is too large for a CPU, whose programs "
                f"take fewer than {_GIGANTIC} elements; compute in parts"
            )
    bodies = [inner for eqn in jaxpr.eqns if eqn.primitive.higher_order for inner in subjaxprs(eqn)]
    return sum(aval.nbytes for aval in avals) + sum(map(_bytes_made, bodies))


def alias_outputs(jaxpr: Jaxpr, donated: Sequence[bool]) -> list[int | None]:
    """For each donated input, an output of the same shape and dtype that may take over its memory."""
    free: dict[tuple, list[int]] = {}
    for i, aval in reversed(list(enumerate(jaxpr.out_avals))):
        free.setdefault((aval.shape, aval.dtype), []).append(i)
    found: list[int | None] = []
    for aval, give in zip(jaxpr.in_avals, donated, strict=True):
        outputs = free.get((aval.shape, aval.dtype)) if give else None
        found.append(outputs.pop() if outputs else None)
    return found


def _unusable(donated: Sequence[bool], used: Sequence[bool], aliases: Sequence[int | None]) -> list[int]:
    """Which inputs are donated, and read, but no output can take over their memory."""
    alias = iter(aliases)
    return [i for i, (d, u) in enumerate(zip(donated, used, strict=True)) if u and (next(alias) is None) and d]


def _check_of_others(lowered: LoweredProgram) -> Callable[[], None] | None:
    """What asks the other processes, before the first run, whether they run the same program; None if it runs here."""
    if lowered.spread is None or not spans_processes(lowered.spread.devices):
        return None
    # Imported here because a process that computes alone does not need it.
    from xlamini.staging.compile.process_check import check_before_first_run

    return check_before_first_run(lowered, lowered.spread.devices)


class Program:
    """A compiled jaxpr. It does not hold the module it came from, which takes more memory than all the rest."""

    def __init__(self, lowered: LoweredProgram, executable: Executable | CompileOnlyModule):
        self.name, self.device, self.executable = lowered.name, lowered.device, executable
        self.kept, self.computed = lowered.kept, lowered.computed
        self._out_avals, self._returns_keys = lowered.out_avals, lowered.returns_keys
        self._bytes_made = lowered.bytes_made
        self._taken = [i for i, k in enumerate(lowered.kept) if k]
        self._has_run = False
        self._check_others = _check_of_others(lowered)

    def __call__(self, inputs: Sequence[Any], committed: bool = False, names: Sequence[str] = ()) -> list[Any]:
        """The outputs; `names` are those of the last inputs, the arguments, in messages."""
        if not self._has_run:
            check_fits_in_memory(self.executable, self.device.platform, self.name, self._bytes_made)
            self._has_run = True
            if self._check_others is not None:
                self._check_others = self._check_others()
        given = [key_words(inputs[i]) for i in self._taken]
        try:
            outs = self.executable.call(self.executable.place(given), committed)
        except (DeletedArrayError, *DISPATCH_ERRORS) as error:
            explained = explain_failure(error, self._named(inputs, names))
            if explained is None:
                raise
            raise explained from None
        release(given[i] for i in self.executable.donated)
        if not all(self.computed):
            outs = self._with_float0(outs)
        return list(map(as_keys, outs, self._out_avals)) if self._returns_keys else outs

    def _with_float0(self, outs: Sequence[Any]) -> list[Any]:
        """All outputs: those of dtype float0 have no elements to compute."""
        given, pairs = iter(outs), zip(self.computed, self._out_avals, strict=True)
        return [next(given) if computed else np.zeros(aval.shape, float0) for computed, aval in pairs]

    def _named(self, inputs: Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
        """Each input with what it is to the user."""
        captured = [f"the array that {self.name} captured"] * (len(inputs) - len(names))
        arguments = [f"the argument {name!r} of {self.name}" for name in names]
        return list(zip([*captured, *arguments], map(key_words, inputs), strict=True))

    def fast_path(self, captured: Sequence[Any], out_tree: Any, committed: bool) -> FastPath | None:
        """What lets C++ run this program by itself; `out_tree` is the output's for C++ dispatch.

        None for a program that calls Python functions: their effects are waited for, and their failures explained; for
        one that has to wait for its turn; and for one with outputs of dtype float0, which are NumPy's.
        """
        if self.executable.calls_python or self.executable.runs_alone or not all(self.computed):
            return None
        places = iter(self.executable.in_shardings)
        constants = [
            device_put_value(key_words(x), next(places) if kept else None)
            for x, kept in zip(captured, self.kept, strict=False)
        ]
        return fast_path(self.executable, out_tree, kept=self.kept, const_args=constants, committed=committed)
