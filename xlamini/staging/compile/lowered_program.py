"""A lowered program: a jaxpr after dead code elimination, its StableHLO module, and XLA's compiler called for it."""
from __future__ import annotations

import functools
import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import (
    Jaxpr,
    ShapedArray,
    ShapeError,
    any_ordered,
    close_over,
    float0,
    once,
    rewrite,
    subjaxprs,
)
from xlamini.core.bindable import further
from xlamini.core.cache_flags import programs_are_kept, programs_are_keyed_by_module
from xlamini.core.compile_flags import outlining
from xlamini.core.config import trace_flags, under
from xlamini.core.effects import ffi_effect
from xlamini.core.hi_types import HiAval
from xlamini.core.jax_flags import log_compiles
from xlamini.core.jaxpr import is_expanded
from xlamini.core.phases import LOWER, Phase
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.core.tracer import build
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.expand import expand
from xlamini.interpreters.physical import is_extended, physical
from xlamini.primitives.sharding_constraint import moved_to
from xlamini.runtime.executable import Executable, compile_module
from xlamini.runtime.layout import Order
from xlamini.runtime.meshes.program_placement import MeshPlacement, Place, placed_avals
from xlamini.staging.compile.outlining import Outline, outlined
from xlamini.staging.trace.tracing import Trace

_logger = logging.getLogger("xlamini")

Options = Mapping[str, Any] | None
"""Options of XLA, by name."""

_DEEPEST = 160
"""How deep loops and branches may be nested; compiling so many takes ten seconds already."""
_GIGANTIC = 2**36
"""The number of elements at which XLA's CPU compiler crashes on an array."""


class LoweredProgram:
    """A jaxpr and its StableHLO module, ready to compile.

    With the disk cache on, lowering is deferred, and so is the outlining of what cannot run in segments: a program that
    is loaded from disk needs neither. `ledger_entry` is the entry of the call that it was lowered for, if there was
    one; `of_calls` is the key of the program that a call runs, if it is this one, and `committed` whether its results
    are committed; `segment_count` is of how many different segments it is one, 1 for a whole program. `recipe`
    makes the whole program once more.
    """

    ledger_entry: Any = None
    of_calls: Any = None
    committed = False
    segment_count = 1

    def __init__(
        self,
        jaxpr: Jaxpr,
        name: str,
        device: Place,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        outline: bool | None = None,
        in_segments: bool = False,
        orders: Orders | None = None,
    ):
        self.again = functools.partial(type(self), jaxpr, name, device, donated, keep_unused, outline, orders=orders)
        if isinstance(device, MeshPlacement) and any(map(_moves_terms, jaxpr.out_avals, device.outs)):
            jaxpr = _with_terms(jaxpr, device.outs)
        self.out_avals = jaxpr.out_avals
        self.takes_keys = any(map(is_extended, jaxpr.in_avals))
        self.returns_keys = any(map(is_extended, self.out_avals))
        self.computed = tuple(a.dtype != float0 for a in self.out_avals)
        self.pruned, used = dce(_on_words(jaxpr, name), self.computed, keep_unused)
        self.used_inputs = used
        self.outlines = outlining.value if outline is None else outline
        self.orders = orders and orders.of(used, self.computed)
        in_segments = in_segments and orders is None and not self.pruned.effects
        self._in_segments = in_segments and not isinstance(device, MeshPlacement)
        self.bytes_made = _bytes_made(self.pruned) if device.platform == "cpu" else 0
        self.name, self.device = name, self._pruned_place(device)
        donated = donated or (False,) * len(jaxpr.invars)
        self.aliases = self._alias_outputs(list(itertools.compress(donated, used)))
        self.unusable = _unusable(donated, used, self.aliases)
        self.flags, self.uses_disk_cache = trace_flags(), programs_are_kept() and orders is None
        self._outline: Outline | None = None
        self._module: tuple[Any, list[Any], list[Any]] | None = None
        if self.segments is not None:
            return  # each is lowered by itself
        if not self.uses_disk_cache or programs_are_keyed_by_module():
            _ = self._lowered  # now, so that an error of a lowering rule is raised here

    def _alias_outputs(self, donated: Sequence[bool]) -> list[int | None]:
        aliases = alias_outputs(self.pruned, donated)
        return aliases if self.orders is None else self.orders.aliases(aliases)

    def _pruned_place(self, device: Place) -> Place:
        """The program's place, without the shardings of unused inputs and of outputs that are not computed."""
        if not isinstance(device, MeshPlacement):
            return device
        ins = itertools.compress(device.of_inputs(len(self.used_inputs)), self.used_inputs)
        outs = itertools.compress(device.of_typed_outputs(self.out_avals), self.computed)
        return device._replace(ins=tuple(ins), outs=tuple(outs))

    @property
    def spread(self) -> MeshPlacement | None:
        """The mesh that it runs on, with its shardings; None on one device."""
        return self.device if isinstance(self.device, MeshPlacement) else None

    # Not cached_property, whose frame would show in the tracebacks of lowering errors.

    @property
    def _outlined(self) -> Outline:
        if self._outline is None:
            self._outline = outlined(self.pruned, self.device.platform, self.outlines, self._in_segments)
        return self._outline

    @property
    def _lowered(self) -> tuple[Any, list[Any], list[Any]]:
        if self._module is None:
            # Imported here because MLIR's bindings cost 0.1 s, which a user who only looks at jaxprs should not pay.
            from xlamini.lowering.module import lower_jaxpr

            with under(self.flags), Phase(LOWER, self.name):
                how = (), self.spread, self.orders and (*self.orders.ins, *self.orders.outs)
                self._module = lower_jaxpr(self.jaxpr, self.name, self.device.platform, self.aliases, *how)
        return self._module

    jaxpr = property(lambda self: self._outlined.jaxpr, doc="The program as it is lowered.")
    outline_report = property(lambda self: self._outlined.report, doc="Which blocks were outlined, or why none was.")
    segments = property(
        lambda self: self._outlined.segments if self._in_segments else None,  # others are not outlined to answer this
        doc="Its segments, if each is compiled by itself.",
    )
    donated = property(
        lambda self: [i for i, alias in enumerate(self.aliases) if alias is not None],
        doc="The inputs whose memory a result takes.",
    )
    module = property(lambda self: self._lowered[0], doc="The StableHLO module.")
    host_callbacks = property(lambda self: self._lowered[1], doc="The Python functions that the module calls.")
    partitioners = property(lambda self: self._lowered[2], doc="The Python functions that XLA calls to compile it.")


class Orders(NamedTuple):
    """The orders of a program's arguments and results in memory."""

    ins: Sequence[Order]
    outs: Sequence[Order]

    def of(self, used: Sequence[bool], computed: Sequence[bool]) -> Orders:
        """Those of the used arguments, and of the computed results."""
        return Orders(tuple(itertools.compress(self.ins, used)), tuple(itertools.compress(self.outs, computed)))

    def aliases(self, aliases: Sequence[int | None]) -> list[int | None]:
        """The outputs that may reuse the memory of the inputs, where both have one layout."""
        pairs = zip(aliases, self.ins, strict=True)
        return [None if alias is None or self.outs[alias] != order else alias for alias, order in pairs]


def expanded(traced: Trace) -> Trace:
    """The trace in terms of primitives that are lowered; what their rules captured joins the captured values."""
    if is_expanded(traced.jaxpr):
        return traced
    _refuse_users_types(traced.jaxpr)
    whole = expand(traced.jaxpr)
    return traced._replace(jaxpr=close_over(whole), captured=[*whole.consts, *traced.captured])


def _refuse_users_types(jaxpr: Jaxpr) -> None:
    """TypeError for a program that takes or returns values that are no arrays, as an exported one would."""
    found = [a for a in (*jaxpr.in_avals, *jaxpr.out_avals) if type(a) is HiAval]
    if found:
        raise TypeError(
            f"{jaxpr.name} takes or returns a value of the type {found[0]}, but an exported program takes and returns "
            "arrays, as who calls it may not have the type; export a function of arrays that makes the value inside"
        )


def _moves_terms(aval: ShapedArray, there: Any) -> bool:
    """Whether an output with this sharding is unreduced, or has a sum to take."""
    return there is not None and bool(there.spec.unreduced or sums_of(aval).unreduced)


@rewrite
def _with_terms(jaxpr: Jaxpr, outs: Sequence[Any]) -> Jaxpr:
    """The jaxpr with those outputs resharded; Shardy would take any value for a term, and refuse to return a sum."""

    def resharded(*operands: Any) -> list[Any]:
        found = zip(evaluate(jaxpr, operands), jaxpr.out_avals, outs, strict=True)
        return [moved_to(x, there) if _moves_terms(aval, there) else x for x, aval, there in found]

    return build(resharded, jaxpr.in_avals, jaxpr.name)[0]


def _on_words(jaxpr: Jaxpr, name: str) -> Jaxpr:
    """The program with random keys as the words that they are, after they have been checked."""
    on_words = physical(jaxpr)
    if on_words is not jaxpr:
        from xlamini.staging.compile.key_reuse import check_keys  # for programs with keys

        check_keys(name, jaxpr)
    return on_words


@once
def _bytes_made(jaxpr: Jaxpr) -> int:
    """The bytes of all values that a program computes, those of a loop's body once.

    Raises ShapeError for an array so large that XLA's CPU compiler would divide by zero.
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


def check_nest(program: LoweredProgram) -> None:
    """RecursionError for loops and branches nested so deep that XLA's compiler would end the process."""
    depth = _nest(program.pruned)
    if depth > _DEEPEST:
        raise RecursionError(
            f"{program.name}: loops and branches are nested {depth} deep, and XLA's compiler takes {_DEEPEST}: beyond "
            "200 it ends the process; write one lax.while_loop or lax.switch in place of the nest"
        )


@once
def _nest(jaxpr: Jaxpr) -> int:
    """How deep loops and branches are nested; calls are inlined."""
    inner = [(eqn, max(map(_nest, subjaxprs(eqn)), default=0)) for eqn in jaxpr.eqns if eqn.primitive.higher_order]
    return max([depth + further(eqn.primitive, "is_nested")(eqn.params) for eqn, depth in inner], default=0)


def alias_outputs(jaxpr: Jaxpr, donated: Sequence[bool]) -> list[int | None]:
    """For each input, the output that may reuse its memory: of the same size and space, if the input is donated."""
    free: dict[tuple, list[int]] = {}
    for i, aval in reversed(list(enumerate(jaxpr.out_avals))):
        free.setdefault((aval.shape, aval.dtype, aval.memory_space), []).append(i)
    aliases: list[int | None] = []
    for aval, is_donated in zip(jaxpr.in_avals, donated, strict=True):
        outputs = free.get((aval.shape, aval.dtype, aval.memory_space)) if is_donated else None
        aliases.append(outputs.pop() if outputs else None)
    return aliases


def _unusable(donated: Sequence[bool], used: Sequence[bool], aliases: Sequence[int | None]) -> list[int]:
    """The donated inputs that the program reads, but whose memory no output can reuse."""
    alias = iter(aliases)
    return [i for i, (d, u) in enumerate(zip(donated, used, strict=True)) if u and (next(alias) is None) and d]


def backend_compile(program: LoweredProgram, options: Options) -> Executable:
    """Call XLA's compiler for a lowered program; under flag `log_compiles` two messages say so."""
    effects, logs = program.pruned.effects, log_compiles.value
    if logs:
        types = ", ".join(aval.str_short() for aval in program.pruned.in_avals)
        _logger.warning("Compiling jit(%s) with global shapes and types [%s]", program.name, types)
    start = time.monotonic()
    executable = compile_module(
        program.module,
        host_callbacks=program.host_callbacks,
        partitioners=program.partitioners,
        ordered=bool(effects) and any_ordered(effects),
        **interface_of(program, options),
    )
    if program.orders is not None:
        executable.read_orders()
    if logs:
        _logger.warning("Finished XLA compilation of jit(%s) in %.3f sec", program.name, time.monotonic() - start)
    return executable


def interface_of(program: LoweredProgram, options: Options) -> dict[str, Any]:
    """The keyword arguments that compiling and loading a program share: types, donation, device, options."""
    out_avals = program.pruned.out_avals
    return {
        "place": program.device,
        "in_avals": program.pruned.in_avals,
        "out_avals": placed_avals(program.device, out_avals) if program.spread else out_avals,
        "donated": program.donated,
        "compiler_options": options,
        "effectful": ffi_effect in program.pruned.effects,
    }
