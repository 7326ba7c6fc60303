"""A lowered program: a jaxpr without what its outputs do not need, and its StableHLO module."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from xlamini.core.config import outlining, programs_are_kept, trace_flags, under
from xlamini.core.dtypes import float0
from xlamini.core.errors import ShapeError
from xlamini.core.jaxpr import Jaxpr, once, subjaxprs
from xlamini.interpreters.dce import dce
from xlamini.interpreters.physical import is_extended, physical
from xlamini.runtime.meshes.program_placement import Place, Spread
from xlamini.staging.compile.outlining import outlined

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
        if not programs_are_kept():
            _ = self._lowered  # now, so that what cannot be lowered is said here

    def _kept_of(self, device: Place) -> Place:
        """The program's place, with the shardings of what it reads and computes only."""
        if not isinstance(device, Spread):
            return device
        ins = itertools.compress(device.of_inputs(len(self.kept)), self.kept)
        outs = itertools.compress(device.of_typed(self.out_avals), self.computed)
        return device._replace(ins=tuple(ins), outs=tuple(outs))

    @property
    def spread(self) -> Spread | None:
        """Its place, if that is a mesh."""
        return self.device if isinstance(self.device, Spread) else None

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
