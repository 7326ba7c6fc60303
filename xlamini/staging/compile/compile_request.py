"""What a program is compiled from: its jaxpr, place, donations and StableHLO; and the call of XLA's compiler."""
from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import Jaxpr, ShapeError, any_ordered, float0, once, subjaxprs
from xlamini.core.events import LOWERED, XLA_COMPILED, XLA_COMPILING, Phase, emit
from xlamini.core.flags.cache_flags import programs_are_kept, programs_are_keyed_by_module
from xlamini.core.flags.compile_flags import outlining
from xlamini.core.flags.config import trace_flags, under
from xlamini.core.program.bindable import further
from xlamini.core.program.effects import ffi_effect
from xlamini.core.program.form import Platform
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.interpreters.physical import is_extended
from xlamini.runtime.arrays.layout import Order
from xlamini.runtime.execution.executable import Executable, compile_module
from xlamini.runtime.meshes.program_placement import DeviceOrMesh, MeshPlacement, placed_avals
from xlamini.runtime.targets.topology import runs_kernels
from xlamini.staging.compile import pipeline

if TYPE_CHECKING:
    from xlamini.core.program.avals import ShapedArray
    from xlamini.staging.compile.outlining import Outline

Options = Mapping[str, Any] | None
"""Options of XLA, by name."""

_DEEPEST = 160
"""How deep loops and branches may be nested; compiling so many takes ten seconds already."""
_GIGANTIC = 2**36
"""The number of elements at which XLA's CPU compiler crashes on an array."""


class CompileRequest:
    """A program to be compiled for a place: its jaxpr, which inputs are donated, and its StableHLO module.

    With the disk cache on, the passes of the back end and lowering are deferred: a program that is loaded from disk
    needs neither. `ledger_entry` is the entry of the call that it was made for, if there was one; `of_calls` is the key
    of the program that a call runs, if it is this one, and `committed` whether its results are committed;
    `segment_count` is of how many different segments it is one, 1 for a whole program. `again` makes the whole
    program once more, and `source` says of a jitted function's what else one needs to look into it.
    """

    ledger_entry: Any = None
    source: Any = None
    of_calls: Any = None
    device: DeviceOrMesh
    name: str
    flags: dict[str, Any]
    uses_disk_cache: bool
    again: Callable[..., CompileRequest]
    out_avals: list[ShapedArray]
    pruned: Jaxpr
    used_inputs: Sequence[bool]

    committed = False
    segment_count = 1

    def __init__(
        self,
        jaxpr: Jaxpr,
        name: str,
        device: DeviceOrMesh,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        outline: bool | None = None,
        in_segments: bool = False,
        orders: Orders | None = None,
    ):
        self.again = functools.partial(type(self), jaxpr, name, device, donated, keep_unused, outline, orders=orders)
        self.outlines: Any | bool = outlining.value if outline is None else outline
        self._options = self._options_of(name, device, keep_unused, in_segments and orders is None)
        front = self._front = pipeline.front(jaxpr, self._options)
        self.pruned, self.used_inputs, self.out_avals = front.jaxpr, front.used_inputs, jaxpr.out_avals
        self.takes_keys: bool = any(map(is_extended, jaxpr.in_avals))
        self.returns_keys: bool = any(map(is_extended, self.out_avals))
        self.computed: tuple[Any, ...] = tuple(a.dtype != float0 for a in self.out_avals)
        self.orders: Orders | None = orders and orders.of(self.used_inputs, self.computed)
        self.bytes_made: int = _bytes_made(self.pruned) if device.platform == "cpu" else 0
        self.name, self.device = name, self._pruned_place(device)
        self.spread: MeshPlacement | None = self.device if isinstance(self.device, MeshPlacement) else None
        """The mesh that it runs on, with its shardings; None on one device."""
        self.aliases: list[int | None] = [None] * len(self.pruned.invars)
        self.unusable: list[int] = []
        if any(donated):
            aliases = alias_outputs(self.pruned, list(itertools.compress(donated, self.used_inputs)))
            self.aliases = aliases if self.orders is None else self.orders.aliases(aliases)
            self.unusable = _unusable(donated, self.used_inputs, self.aliases)
        self.flags, self.uses_disk_cache = trace_flags(), programs_are_kept() and orders is None
        self._back: pipeline.PipelineStage | None = None
        self._module: tuple[Any, list[Any], list[Any]] | None = None
        self.in_segments: bool = self._options.in_segments and not self.pruned.effects and self.back.in_segments
        """Whether each segment is compiled by itself; others do not run the back end to answer this."""
        if self.in_segments:
            return  # each is lowered by itself
        if not self.uses_disk_cache or programs_are_keyed_by_module():
            self.lower()  # now, so that an error of a lowering rule is raised here

    def _options_of(
        self, name: str, device: DeviceOrMesh, keep_unused: bool, in_segments: bool
    ) -> pipeline.PipelineOptions:
        mesh = device.mesh if isinstance(device, MeshPlacement) else None
        several = mesh is not None and mesh.size > 1
        platforms = (Platform(device.platform, several, device.platform != "cpu" and runs_kernels(device)),)
        outs = device.outs if isinstance(device, MeshPlacement) else ()
        return pipeline.PipelineOptions(name, platforms, outs, keep_unused, self.outlines, in_segments and mesh is None)

    def _pruned_place(self, device: DeviceOrMesh) -> DeviceOrMesh:
        """The program's place, without the shardings of unused inputs and of outputs that are not computed."""
        if not isinstance(device, MeshPlacement):
            return device
        ins = itertools.compress(device.of_inputs(len(self.used_inputs)), self.used_inputs)
        outs = itertools.compress(device.of_typed_outputs(self.out_avals), self.computed)
        return device._replace(ins=tuple(ins), outs=tuple(outs))

    # Not cached_property, whose frame would show in the tracebacks of lowering errors.

    @property
    def back(self) -> pipeline.PipelineStage:
        """The program after all passes."""
        if self._back is None:
            with under(self.flags):
                self._back = pipeline.back(self._front, self._options)
        return self._back

    @property
    def outline(self) -> Outline:
        """Which blocks were outlined, or why none was."""
        found = self.back.outline
        assert found is not None
        return found

    def lower(self) -> tuple[Any, list[Any], list[Any]]:
        """The StableHLO module, with the Python functions that it calls and those by which XLA partitions it."""
        if self._module is None:
            _refuse_symbolic(self.name, self.jaxpr)
            # Imported here because MLIR's bindings cost 0.1 s, which a user who only looks at jaxprs should not pay.
            from xlamini.lowering.module import lower_jaxpr

            with under(self.flags), Phase(LOWERED, self.name):
                how = (), self.spread, self.orders and (*self.orders.ins, *self.orders.outs)
                self._module = lower_jaxpr(self.jaxpr, self.name, self.device.platform, self.aliases, *how)
        return self._module

    @property
    def jaxpr(self) -> Jaxpr:
        """The program as it is lowered."""
        return self.back.jaxpr

    @property
    def donated(self) -> Any:
        """The inputs whose memory a result takes."""
        return [i for i, alias in enumerate(self.aliases) if alias is not None]

    @property
    def module(self) -> Any:
        """The StableHLO module."""
        return self.lower()[0]

    @property
    def host_callbacks(self) -> Any:
        """The Python functions that the module calls."""
        return self.lower()[1]

    @property
    def partitioners(self) -> Any:
        """The Python functions that XLA calls to compile it."""
        return self.lower()[2]


def _refuse_symbolic(name: str, jaxpr: Jaxpr) -> None:
    """TypeError for a program with symbolic sizes, which has no executable of its own."""
    symbolic = next((a for a in (*jaxpr.in_avals, *jaxpr.out_avals) if type(a.size) is SymbolicSize), None)
    if symbolic is not None:
        raise TypeError(
            f"{name} has symbolic sizes, as in {symbolic.str_short()}, so it is not compiled by itself; export it, and "
            f"call the result: export.export(jit({name}))(...).call(...)"
        )


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


def check_nesting(program: CompileRequest) -> None:
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


def backend_compile(program: CompileRequest, options: Options) -> Executable:
    """Call XLA's compiler for a lowered program."""
    effects, start = program.pruned.effects, time.monotonic()
    emit(XLA_COMPILING, program.name, program)
    module, host_callbacks, partitioners = program.lower()
    executable = compile_module(
        module,
        host_callbacks=host_callbacks,
        partitioners=partitioners,
        ordered=bool(effects) and any_ordered(effects),
        **interface_of(program, options),
    )
    if program.orders is not None:
        executable.read_orders()
    emit(XLA_COMPILED, program.name, program, time.monotonic() - start)
    return executable


def interface_of(program: CompileRequest, options: Options) -> dict[str, Any]:
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
