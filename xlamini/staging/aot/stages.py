"""The stages of a jitted function: traced, lowered, compiled. Each can be looked at, and leads to the next."""
from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from xlamini.core.api_boundary import edge_methods
from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.jaxpr import ClosedJaxpr
from xlamini.core.pytree import first_difference, flatten, unflatten
from xlamini.core.tracer import Tracer
from xlamini.runtime.hlo.translation import hlo_cost, hlo_of, hlo_text
from xlamini.runtime.meshes.named_sharding import type_sharding
from xlamini.runtime.to_device import device_put_value
from xlamini.staging.aot.mismatch import differences, shown
from xlamini.staging.compile.cost import CostAnalysis, cost_of_program
from xlamini.staging.compile.lowering_target import Elsewhere, destination, device_of
from xlamini.staging.compile.program import LoweredProgram, Program
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import Trace

if TYPE_CHECKING:
    from xlamini.runtime.hlo.collectives import Collectives
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.compile.prediction import Prediction

CompilerOptions = Mapping[str, str | bool | int | float]
DIALECTS = ("stablehlo", "hlo")


@runtime_checkable
class Wrapped(Protocol):
    """A function that `jit` returned: it can be called, traced and lowered."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...


@dataclass(frozen=True)
class ArgInfo:
    """The type of an argument, and whether the caller gives it away."""

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class Known(NamedTuple):
    """What all stages know of a call: its trace, its structure, what is donated, which arguments are static."""

    trace: Trace
    in_tree: Any
    name: str
    donated: Sequence[bool]
    statics: Sequence[str] = ()

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the arguments, flat."""
        return self.trace.jaxpr.in_avals[len(self.trace.captured) :]


class Stage:
    """What all stages have: the structure and types of the arguments and of the output."""

    def __init__(self, known: Known):
        self._known = known

    in_tree = property(lambda self: self._known.in_tree, doc="The structure of `(args, kwargs)`, static ones left out.")
    out_tree = property(lambda self: self._known.trace.out_tree, doc="The structure of the output.")

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in the structure `(args, kwargs)`."""
        return unflatten(self.in_tree, self._known.avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure `(args, kwargs)`."""
        pairs = zip(self._known.avals, self._known.donated, strict=True)
        return unflatten(self.in_tree, [ArgInfo(aval, donated) for aval, donated in pairs])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the leaves that are donated."""
        return tuple(i for i, donated in enumerate(self._known.donated) if donated)

    @property
    def out_info(self) -> Any:
        """The types of the outputs, in the output's structure."""
        return unflatten(self.out_tree, self._out_info())

    def _out_info(self) -> list[ShapeDtypeStruct]:
        avals = self._known.trace.jaxpr.out_avals
        return [
            ShapeDtypeStruct(a.shape, a.dtype, sharding=type_sharding(a.split), weak_type=a.weak_type) for a in avals
        ]

    def __repr__(self) -> str:
        pairs = zip(self._known.trace.names, self._known.avals, strict=True)
        arguments = ", ".join(f"{name}: {aval.str_short(short_dtypes=False)}" for name, aval in pairs)
        return f"<{type(self).__name__} {self._known.name}({arguments})>"


class Traced(Stage):
    """A function traced for arguments of some types."""

    def __init__(self, known: Known, lower: Callable[[Any], LoweredProgram], options: CompilerOptions | None):
        super().__init__(known)
        self._lower, self._options = lower, options

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._known.name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program, closed over the values it captured."""
        return closed(self._known.trace)

    @property
    def out_avals(self) -> Any:
        """The types of the outputs, in the output's structure."""
        return unflatten(self.out_tree, self._known.trace.jaxpr.out_avals)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None, target: Target | None = None) -> Lowered:
        """The StableHLO of the program; `lowering_platforms` names another platform than the one it runs on.

        With a `target` (see `xlamini.target`) it is for that, and `compile()` compiles for it. Raises ValueError for a
        platform that is not known and for both of them, NotImplementedError for more platforms, TypeError for what is
        no target.
        """
        where = destination(self.fun_name, lowering_platforms, target)
        return Lowered(self._known, self._lower(where), self._options, self._lower)


class Lowered(Stage):
    """A function as StableHLO."""

    def __init__(
        self,
        known: Known,
        program: LoweredProgram,
        options: CompilerOptions | None,
        lower: Callable[[Any], LoweredProgram],
    ):
        super().__init__(known)
        self._program, self._options, self._lower = program, options, lower
        self._compiled: Compiled | None = None

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text, in the dialect "stablehlo" (the default) or "hlo".

        `debug_info` adds the user's lines and the equations' ids. ValueError for another dialect.
        """
        if _checked_dialect("as_text", dialect) == "hlo":
            return hlo_text(self._program.module, debug_info)
        return self._program.module.operation.get_asm(enable_debug_info=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object of the compiler's: MLIR's for "stablehlo", XLA's for "hlo"."""
        if _checked_dialect("compiler_ir", dialect) == "hlo":
            return hlo_of(self._program.module)
        return self._program.module

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of flops and bytes before it optimises; a loop's body counts once."""
        self._check_here("cost_analysis")
        return hlo_cost(self._program.module, self._program.device)

    def outline_report(self) -> str:
        """Which repeated blocks were made functions of their own, compiled once; or why none was."""
        return self._program.outline_report

    def compile(
        self, compiler_options: CompilerOptions | None = None, *, target: Target | None = None
    ) -> Compiled:
        """The executable; `compiler_options` are XLA's, by name, on top of those given to `jit`.

        With a `target` (see `xlamini.target`) the program is lowered anew and compiled for that, to be looked at or
        serialized. Raises TypeError for options that are no dict and for what is no target, JaxRuntimeError for what
        XLA does not know or cannot compile, PlatformError for a program with Python functions and a target.
        """
        if target is not None:
            return self._for_target(target).compile(compiler_options)
        self._check_here("compile")
        if compiler_options is None:
            self._compiled = self._compiled or self._compile(self._options)
            return self._compiled
        if not isinstance(compiler_options, Mapping):
            raise TypeError(f"compile: compiler_options must be a dict of XLA's options, got {compiler_options!r}")
        return self._compile({**(self._options or {}), **compiler_options})

    def _for_target(self, target: Target) -> Lowered:
        device = device_of("compile", target)
        if getattr(self._program.device, "client", None) is device.client:
            return self
        return Lowered(self._known, self._lower(device), self._options, self._lower)

    def _compile(self, options: CompilerOptions | None) -> Compiled:
        return Compiled(self._known, self._program.compile(options))

    def _check_here(self, what: str) -> None:
        device = self._program.device
        if isinstance(device, Elsewhere):
            raise ValueError(
                f"{what}: {self._known.name} was lowered for {device.platform}, not for a device that is here; leave "
                "out lowering_platforms, read as_text(), or compile(target=xlamini.target(...))"
            )


def _checked_dialect(what: str, dialect: str | None) -> str:
    if dialect is not None and dialect not in DIALECTS:
        raise ValueError(
            f"{what}: dialect must be 'stablehlo' or 'hlo', got {dialect!r}; compile().as_text() has the optimised HLO"
        )
    return dialect or DIALECTS[0]


class Compiled(Stage):
    """A function as an executable, for arguments of just the types it was made for."""

    def __init__(self, known: Known, program: Program):
        super().__init__(known)
        self._program = program
        self._captured = [_as_array(x) for x in known.trace.captured]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; static arguments are left out. TypeError, with the difference, for arguments of other types."""
        leaves, tree = flatten((args, kwargs))
        self._check(leaves, tree)
        outs = self._program([*self._captured, *leaves], names=self._known.trace.names)
        return unflatten(self.out_tree, outs)

    def _check(self, leaves: Sequence[Any], tree: Any) -> None:
        name, names = self._known.name, self._known.trace.names
        if tree != self.in_tree:
            raise TypeError(
                f"compiled {name} was called with (args, kwargs) of another structure: "
                f"{first_difference(self.in_tree, tree, ('expected', 'given'))}{_without_statics(self._known.statics)}"
            )
        _refuse_tracers(leaves, names, name)
        if wrong := differences(leaves, names, self._known.avals, name):
            raise TypeError(
                f"compiled {name} was called with arguments of other types: {shown(wrong, 'compiled')}; convert them, "
                "or call the jitted function, which compiles for each type"
            )

    def as_text(self) -> str:
        """The optimised HLO."""
        return self._program.executable.as_text()

    def cost_analysis(self, source: str | None = None) -> CostAnalysis:
        """What a call costs: flops, bytes accessed, …; a dict that says in `source` whose count it is.

        "xla" is XLA's estimate of the optimised program, in which a loop's body counts once; "xlamini" our count of the
        equations before anything is fused, every step of a scan counted. Left out, it is the first that there is.
        """
        return cost_of_program(self._program.executable, self._known.trace.jaxpr, source)

    def prediction(self) -> Prediction | None:
        """How long a call on the target takes, and who says so; None for a program that was compiled to run here.

        On a TPU it is XLA's own estimate. On a GPU it is a bound of ours: the operations at the device's peak, or the
        memory traffic at its full bandwidth, whichever takes longer. Neither has the time of most collectives.
        """
        from xlamini.staging.compile.prediction import predicted  # most programs are compiled to run

        return predicted(self._program.executable, self._known.trace.jaxpr)

    def collectives(self) -> Collectives:
        """What its devices send one another in a call: kind, bytes, how often, the user's line; printed, a table."""
        from xlamini.runtime.hlo.collectives import Collectives, collectives_of  # for those who look only

        names = [*(["a captured array"] * len(self._captured)), *self._known.trace.names]
        given = list(itertools.compress(names, self._program.kept))
        return Collectives(c.named(given) for c in collectives_of(self.as_text()))

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return self._program.executable.memory_analysis()

    def serialize(self) -> bytes:
        """The executable as bytes that `xlamini.load` takes, with the arrays it captured; see docs/export.md.

        They are machine code for this version of jaxlib and this kind of device. ValueError for a program that calls
        Python functions, or with containers of a class that is not registered to be written.
        """
        return self._serialized(with_trees=True)

    def _serialized(self, with_trees: bool) -> bytes:
        from xlamini.staging.aot.compiled_file import packed  # most programs are never saved

        return packed(self._known, self._program, self._captured, with_trees)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `serialize()` to a file, for `xlamini.load`."""
        from xlamini.runtime.files.file_format import write_file

        write_file(path, self.serialize())

    def runtime_executable(self) -> Any:
        """PJRT's own object."""
        return self._program.executable.loaded

    @property
    def input_shardings(self) -> Any:
        """Where each argument must be, as a tree `(args, kwargs)`; None for one that the program does not read."""
        every = _spread(self._program.kept, self._program.executable.in_shardings)
        return unflatten(self.in_tree, every[len(self._captured) :])

    @property
    def output_shardings(self) -> Any:
        """Where each output will be; None for one of dtype float0, which has no memory."""
        return unflatten(self.out_tree, self._out_shardings())

    def _out_shardings(self) -> list[Any]:
        return _spread(self._program.computed, self._program.executable.out_shardings)

    def _out_info(self) -> list[ShapeDtypeStruct]:
        pairs = zip(super()._out_info(), self._out_shardings(), strict=True)
        return [info.update(sharding=where) for info, where in pairs]


def _as_array(x: Any) -> Any:
    """A captured value as an Array; one of dtype float0 has no memory."""
    return device_put_value(x) if isinstance(x, np.ndarray) and x.dtype != float0 else x


for _stage in (Traced, Lowered, Compiled):
    edge_methods(_stage)


def _spread(mask: Sequence[bool], values: Sequence[Any]) -> list[Any]:
    """The values at the marked places, None elsewhere."""
    found = iter(values)
    return [next(found) if marked else None for marked in mask]


def _without_statics(statics: Sequence[str]) -> str:
    return f"; leave out the static arguments ({', '.join(statics)}), whose values are compiled in" if statics else ""


def _refuse_tracers(leaves: Sequence[Any], names: Sequence[str], fun_name: str) -> None:
    for i, x in enumerate(leaves):
        if type(x) is Tracer:
            raise TypeError(
                f"compiled {fun_name} was called with a traced value, {x!r}, as the argument {names[i]!r}; a compiled "
                "program cannot be transformed or traced: call the jitted function itself"
            )


def closed(traced: Trace) -> ClosedJaxpr:
    """The traced program with the values it captured."""
    count = len(traced.captured)
    invars = traced.jaxpr.invars
    return ClosedJaxpr(traced.jaxpr.replace(constvars=invars[:count], invars=invars[count:]), traced.captured)
