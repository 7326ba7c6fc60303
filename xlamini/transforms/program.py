"""From a jaxpr to something that runs: prune, lower, compile.

A `Program` takes the flat inputs of its jaxpr and returns flat outputs. Inputs that no equation reads never reach the
executable; in place of random keys it gets, and returns, the words they are made of.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core.dtypes import float0
from xlamini.core.effects import any_ordered
from xlamini.core.errors import DeletedArrayError, ShapeError
from xlamini.core.jaxpr import Jaxpr, subjaxprs
from xlamini.interpreters.dce import dce
from xlamini.interpreters.physical import is_extended, physical
from xlamini.runtime.dispatch import FastPath, fast_path
from xlamini.runtime.executable import Executable, compile_module
from xlamini.runtime.host_memory import check_fits_in_memory
from xlamini.runtime.keys import overlaid, overlay
from xlamini.runtime.lifetime import explain_failure, release
from xlamini.runtime.put import device_put_value
from xlamini.runtime.versions import DISPATCH_ERRORS

_GIGANTIC = 2**36
"""Elements of one array that XLA's CPU compiler does not survive."""


class LoweredProgram:
    """A jaxpr and its StableHLO module, ready to compile."""

    def __init__(
        self,
        jaxpr: Jaxpr,
        name: str,
        device: Any,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
    ):
        self.out_avals = jaxpr.out_avals
        self.returns_keys = any(map(is_extended, self.out_avals))
        self.computed = tuple(a.dtype != float0 for a in self.out_avals)
        self.jaxpr, used = dce(physical(jaxpr), self.computed, keep_unused)
        self.kept = used
        if device.platform == "cpu":
            _refuse_gigantic(self.jaxpr)
        self.name, self.device = name, device
        donated = donated or (False,) * len(jaxpr.invars)
        self.aliases = alias_outputs(self.jaxpr, [d for d, u in zip(donated, used, strict=True) if u])
        self.unusable = _unusable(donated, used, self.aliases)
        self.module, self.host_callbacks = _lower(self.jaxpr, name, device.platform, self.aliases)

    def compile(self, options: Mapping[str, Any] | None = None) -> Program:
        executable = compile_module(
            self.module,
            devices=[self.device],
            in_avals=self.jaxpr.in_avals,
            out_avals=self.jaxpr.out_avals,
            donated=[i for i, a in enumerate(self.aliases) if a is not None],
            compiler_options=options,
            host_callbacks=self.host_callbacks,
            ordered=any_ordered(self.jaxpr.effects),
        )
        return Program(self, executable)


def _refuse_gigantic(jaxpr: Jaxpr) -> None:
    """ShapeError for an array that XLA's CPU compiler does not survive: it would divide by zero."""
    for aval in {*jaxpr.in_avals, *(v.aval for eqn in jaxpr.eqns for v in eqn.outvars)}:
        if aval.size >= _GIGANTIC:
            raise ShapeError(
                f"{jaxpr.name}: an array {aval.str_short(short_dtypes=False)} is too large for a CPU, whose programs "
                f"take fewer than {_GIGANTIC} elements; compute in parts"
            )
    for eqn in jaxpr.eqns:
        if eqn.primitive.higher_order:
            for inner in subjaxprs(eqn):
                _refuse_gigantic(inner)


def _lower(jaxpr: Jaxpr, name: str, platform: str, aliases: Sequence[int | None]) -> Any:
    # Imported here because MLIR's bindings cost 0.1 s, which a user who only looks at jaxprs should not pay.
    from xlamini.lowering.module import lower_jaxpr

    return lower_jaxpr(jaxpr, name, platform, aliases)


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


class Program:
    """A compiled jaxpr."""

    def __init__(self, lowered: LoweredProgram, executable: Executable):
        self.lowered, self.executable = lowered, executable
        self.kept = [i for i, k in enumerate(lowered.kept) if k]
        self._has_run = False

    def __call__(self, inputs: Sequence[Any], committed: bool = False, names: Sequence[str] = ()) -> list[Any]:
        """The outputs; `names` are those of the last inputs, the arguments, in messages."""
        if not self._has_run:
            check_fits_in_memory(self.executable.loaded, self.lowered.device.platform, self.lowered.name)
            self._has_run = True
        given = [overlaid(inputs[i]) for i in self.kept]
        try:
            outs = self.executable.call(self.executable.place(given), committed)
        except (DeletedArrayError, *DISPATCH_ERRORS) as error:
            explained = explain_failure(error, self._named(inputs, names))
            if explained is None:
                raise
            raise explained from None
        release(given[i] for i in self.executable.donated)
        if not all(self.lowered.computed):
            outs = self._with_float0(outs)
        return list(map(overlay, outs, self.lowered.out_avals)) if self.lowered.returns_keys else outs

    def _with_float0(self, outs: Sequence[Any]) -> list[Any]:
        """All outputs: those of dtype float0 have no elements to compute."""
        given, lowered = iter(outs), self.lowered
        pairs = zip(lowered.computed, lowered.out_avals, strict=True)
        return [next(given) if computed else np.zeros(aval.shape, float0) for computed, aval in pairs]

    def _named(self, inputs: Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
        """Each input with what it is to the user."""
        captured = [f"the array that {self.lowered.name} captured"] * (len(inputs) - len(names))
        arguments = [f"the argument {name!r} of {self.lowered.name}" for name in names]
        return list(zip([*captured, *arguments], map(overlaid, inputs), strict=True))

    def fast_path(self, captured: Sequence[Any], out_tree: Any, committed: bool) -> FastPath | None:
        """What lets C++ run this program by itself; `out_tree` is the output's for C++ dispatch.

        None for a program that calls Python functions: their effects are waited for, and their failures explained; and
        for one with outputs of dtype float0, which are NumPy's.
        """
        if self.lowered.host_callbacks or not all(self.lowered.computed):
            return None
        device = self.lowered.device
        constants = [device_put_value(overlaid(x), device) for x in captured]
        kept = self.lowered.kept
        return fast_path(self.executable, out_tree, kept=kept, const_args=constants, committed=committed)
