"""The stages of ahead-of-time compilation: traced, lowered, compiled. Each can be inspected, and leads to the next."""
from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core import ShapedArray, api_boundary_methods, float0, hooks, unflatten
from xlamini.core.errors import JaxRuntimeError
from xlamini.core.program.hi_types import HiAval
from xlamini.core.program.jaxpr import ClosedJaxpr
from xlamini.runtime import device_put_value
from xlamini.runtime.arrays.layout import formats_of
from xlamini.runtime.execution.executable import CompilerOptions
from xlamini.runtime.hlo.translation import hlo_cost, hlo_of, hlo_text
from xlamini.runtime.meshes.named_sharding import type_sharding
from xlamini.runtime.meshes.program_placement import AbsentPlacement
from xlamini.staging.aot.compiled_call import CompiledCall
from xlamini.staging.aot.cost_queries import Estimates
from xlamini.staging.aot.kernel_queries import Anew, KernelQueries
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.cost import CostAnalysis, cost_of_program
from xlamini.staging.compile.lowering_target import Elsewhere, destination, device_of
from xlamini.staging.compile.pipeline import for_platform
from xlamini.staging.compile.program import Program, compile_lowered, scatter_where
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import Trace, TracedCall

if TYPE_CHECKING:
    from xlamini.runtime.hlo.collectives import Collectives
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.compile.prediction import Prediction
    from xlamini.staging.run.jit.ahead_of_time import AheadOfTime

DIALECTS = ("stablehlo", "hlo")


@dataclass(frozen=True)
class ArgInfo:
    """The type of an argument, its `shape` and `dtype`, and whether it is `donated`.

    >>> step = xlamini.jit(lambda w, g: w - g, donate_argnums=0).trace(jnp.ones(3), jnp.ones(3))
    >>> (w, g), _ = step.args_info
    >>> w.shape, w.dtype, w.donated, g.donated
    ((3,), dtype('float32'), True, False)
    """

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype


def _info(aval: ShapedArray) -> Any:
    """The type of an output as users see it: that of an array, or a type of their own."""
    if type(aval) is HiAval:
        return aval.ty
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, sharding=type_sharding(aval.explicit_sharding), weak_type=aval.weak_type
    )


class Stage(Estimates):
    """The base class of all stages: the structure and types of the arguments and of the output.

    >>> traced = xlamini.jit(lambda x: {"twice": 2 * x}).trace(jnp.ones(3))
    >>> isinstance(traced, Stage), traced.in_avals, traced.out_info
    (True, ((ShapedArray(float32[3]),), {}), {'twice': ShapeDtypeStruct(shape=(3,), dtype=float32)})
    """

    def __init__(self, call: TracedCall):
        self._call = call

    in_tree: property = property(lambda self: self._call.in_tree, doc="That of `(args, kwargs)` without static ones.")
    out_tree: property = property(lambda self: self._call.trace.out_tree, doc="The structure of the output.")

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in the structure `(args, kwargs)`."""
        return unflatten(self.in_tree, self._call.avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure `(args, kwargs)`."""
        pairs = zip(self._call.avals, self._call.donated, strict=True)
        return unflatten(self.in_tree, [ArgInfo(aval, donated) for aval, donated in pairs])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The indices of the donated leaves."""
        return tuple(i for i, donated in enumerate(self._call.donated) if donated)

    @property
    def out_info(self) -> Any:
        """The types of the outputs, in the output's structure."""
        return unflatten(self.out_tree, self._out_info())

    def _out_info(self) -> list[ShapeDtypeStruct]:
        return list(map(_info, self._call.trace.jaxpr.out_avals[: self.out_tree.num_leaves]))

    def __repr__(self) -> str:
        pairs = zip(self._call.trace.names, self._call.avals, strict=True)
        arguments = ", ".join(f"{name}: {aval.str_short(short_dtypes=False)}" for name, aval in pairs)
        return f"<{type(self).__name__} {self._call.name}({arguments})>"


class Traced(Stage):
    """A function traced for arguments of certain types.

    >>> traced = xlamini.jit(lambda x: x + 1).trace(xlamini.ShapeDtypeStruct((3,), "float32"))
    >>> traced
    <Traced <lambda>(x: float32[3])>
    >>> print(traced.jaxpr)
    { lambda ; a:f32[3]. let b:f32[3] = add a 1.0:f32[] in (b,) }
    """

    def __init__(self, call: TracedCall, ahead: AheadOfTime):
        super().__init__(call)
        self._ahead = ahead

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._call.name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The jaxpr, closed over the captured values."""
        return self._program if hooks.handed_out is None else hooks.handed_out(self._program)

    @property
    def _program(self) -> ClosedJaxpr:
        return closed(self._call.trace)

    def specialized(self, platform: str) -> ClosedJaxpr:
        """The program as it is lowered for a platform, in the forms that operations have there."""
        return closed(for_platform(self._call.trace, platform))

    @property
    def out_avals(self) -> Any:
        """The types of the outputs, in the output's structure."""
        return unflatten(self.out_tree, self._call.trace.jaxpr.out_avals[: self.out_tree.num_leaves])

    def lower(self, *, lowering_platforms: Sequence[str] | None = None, target: Target | None = None) -> Lowered:
        """Lower to StableHLO; `lowering_platforms` names a platform other than that of the arguments.

        With a `target` (see `xlamini.target`) the program is lowered and compiled for that target. Raises ValueError
        for an unknown platform and for both arguments at once, NotImplementedError for several platforms, TypeError for
        an object that is no target.
        """
        where = destination(self.fun_name, lowering_platforms, target)
        program = self._ahead.lower(where)
        _ = program.module  # a call lowers only what is not on disk; here an error of a lowering rule is raised
        return Lowered(self._ahead.lowered(), program, self._ahead)

    def _compiled_for(self, target: Target | None) -> Compiled:
        return self.lower(target=target).compile()


class Lowered(Stage):
    """A function as StableHLO.

    >>> def successor(x):
    ...     return x + 1
    >>> lowered = xlamini.jit(successor).lower(jnp.ones(3))
    >>> lowered, "stablehlo.add" in lowered.as_text()
    (<Lowered successor(x: float32[3])>, True)
    """

    def __init__(self, call: TracedCall, program: CompileRequest, ahead: AheadOfTime):
        super().__init__(call)
        self._program, self._ahead = program, ahead
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
        return hlo_cost(self._program.module)

    def outline_report(self) -> str:
        """The repeated blocks that were outlined, to be compiled once; or the reason why there are none."""
        return self._program.outline.report

    def compile(
        self, compiler_options: CompilerOptions | None = None, *, target: Target | None = None
    ) -> Compiled:
        """Compile; `compiler_options` are XLA's, by name, in addition to those given to `jit`.

        With a `target` (see `xlamini.target`) the program is lowered again and compiled for that target, to be
        inspected or serialized. Raises TypeError for options that are no dict and for an object that is no target,
        JaxRuntimeError for an option unknown to XLA and a program that it cannot compile, PlatformError for a program
        with Python callbacks and a target.
        """
        if target is not None:
            return self._for_target(target).compile(compiler_options)
        self._check_here("compile")
        if compiler_options is None:
            self._compiled = self._compiled or self._loaded(self._ahead.compile(self._program), self._ahead.options)
            return self._compiled
        if not isinstance(compiler_options, Mapping):
            raise TypeError(f"compile: compiler_options must be a dict of XLA's options, got {compiler_options!r}")
        options = {**(self._ahead.options or {}), **compiler_options}
        return self._loaded(compile_lowered(self._program, options), options)

    def _compiled_for(self, target: Target | None) -> Compiled:
        return self.compile(target=target)

    def _loaded(self, program: Program, options: CompilerOptions | None) -> Compiled:
        again = self._program.again
        return Compiled(self._call, program, self._program.committed, Anew(again, options))

    def _for_target(self, target: Target) -> Lowered:
        device = device_of("compile", target)
        if getattr(self._program.device, "client", None) is device.client:
            return self
        return Lowered(self._call, self._ahead.lower(device), self._ahead)

    def _check_here(self, what: str) -> None:
        device = self._program.device
        if isinstance(device, Elsewhere | AbsentPlacement):
            raise ValueError(
                f"{what}: {self._call.name} was lowered for {device.platform}, not for a device that is here; leave "
                "out lowering_platforms, read as_text(), or compile(target=xlamini.target(...))"
            )


def _checked_dialect(what: str, dialect: str | None) -> str:
    if dialect is not None and dialect not in DIALECTS:
        raise ValueError(
            f"{what}: dialect must be 'stablehlo' or 'hlo', got {dialect!r}; compile().as_text() has the optimised HLO"
        )
    return dialect or DIALECTS[0]


class Compiled(KernelQueries, Stage):
    """A compiled function, for arguments of exactly the types that it was compiled for.

    >>> compiled = xlamini.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    >>> compiled(jnp.arange(3.0))
    Array([1., 2., 3.], dtype=float32)
    >>> compiled.memory_analysis().argument_size_in_bytes
    12
    >>> compiled(jnp.arange(4.0))
    Traceback (most recent call last):
        ...
    TypeError: compiled <lambda> was called with arguments of other types: ...
    """

    def __init__(
        self, call: TracedCall, program: Program, committed: bool, anew: Anew | None = None
    ):
        super().__init__(call)
        self._program, self._anew = program, anew
        self._captured = [_as_array(x) for x in call.trace.captured]
        self._run = CompiledCall(call, program, self._captured, committed).in_cpp()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it, without the static arguments.

        Raises TypeError, with the difference, for arguments of other types, ValueError for an array that is committed
        to other devices; one that is not committed is moved.
        """
        return self._run(*args, **kwargs)

    def as_text(self) -> str:
        """The optimised HLO."""
        return self._program.executable.as_text()

    def cost_analysis(self, source: str | None = None) -> CostAnalysis:
        """The cost of a call: a dict of flops, bytes accessed, and so on, whose attribute `source` names its origin.

        "xla" is XLA's estimate of the optimised program, in which a loop's body counts once. "xlamini" is a count of
        the equations before fusion, with every iteration of a scan. By default it is the first one available.
        """
        return cost_of_program(self._program.executable, self._call.trace.jaxpr, source)

    def prediction(self) -> Prediction | None:
        """The predicted run time on the target, and its source; None for a program that was compiled to run here.

        On a TPU it is XLA's own estimate. On a GPU it is a roofline bound: the flops at the device's peak, or the
        memory traffic at full bandwidth, whichever takes longer. Neither includes most collectives.
        """
        from xlamini.staging.compile.prediction import predicted  # most programs are compiled to run

        return predicted(self._program.executable, self._call.trace.jaxpr)

    def collectives(self) -> Collectives:
        """The collectives of a call: kind, bytes, count and the user's line; it prints as a table."""
        from xlamini.runtime.hlo.collectives import Collectives, collectives_of  # for those who look only

        names = [*(["a captured array"] * len(self._captured)), *self._call.trace.names]
        given = list(itertools.compress(names, self._program.used_inputs))
        return Collectives(c.named(given) for c in collectives_of(self.as_text()))

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return self._program.executable.memory_analysis()

    def serialize(self) -> bytes:
        """The executable and its captured arrays as bytes for `xlamini.load`; see docs/export.md.

        They hold machine code for this version of jaxlib and this kind of device. Raises ValueError for a program that
        calls Python functions, and for containers of a class that is not registered for serialization.
        """
        return self._serialized(with_trees=True)

    def _serialized(self, with_trees: bool) -> bytes:
        from xlamini.staging.aot.compiled_file import packed  # most programs are never saved

        try:
            return packed(self._call, self._program, self._captured, with_trees)
        except JaxRuntimeError:
            if self._anew is None:
                raise
            # A sort that has run on the CPU holds a comparison that XLA cannot write.
            return packed(self._call, self._anew(), self._captured, with_trees)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `serialize()` to a file, for `xlamini.load`."""
        from xlamini.runtime.files.file_format import write_file

        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"save: path must be a text or a path, got {path!r} of type {type(path).__name__}")
        write_file(path, self.serialize())

    def runtime_executable(self) -> Any:
        """PJRT's executable."""
        return self._program.executable.loaded

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, as a tree `(args, kwargs)`; None for an unused one."""
        return unflatten(self.in_tree, self._program.shardings_of_inputs()[len(self._captured) :])

    @property
    def output_shardings(self) -> Any:
        """The sharding of each output; None for one of dtype float0, which has no memory."""
        return unflatten(self.out_tree, self._out_shardings())

    @property
    def input_formats(self) -> Any:
        """The layout and sharding of each argument, as a tree `(args, kwargs)`; None for an unused one."""
        program = self._program.executable
        found = formats_of(program.loaded.get_parameter_layouts(), program.in_shardings)
        return unflatten(self.in_tree, scatter_where(self._program.used_inputs, found)[len(self._captured) :])

    @property
    def output_formats(self) -> Any:
        """The layout and sharding of each output; None for one of dtype float0."""
        program = self._program.executable
        found = formats_of(program.loaded.get_output_layouts(), program.out_shardings)
        return unflatten(self.out_tree, scatter_where(self._program.computed, found))

    def _out_shardings(self) -> list[Any]:
        return scatter_where(self._program.computed, self._program.executable.out_shardings)

    def _out_info(self) -> list[ShapeDtypeStruct]:
        pairs = zip(super()._out_info(), self._out_shardings(), strict=True)
        return [info.update(sharding=where) for info, where in pairs]


def _as_array(x: Any) -> Any:
    """A captured value as an Array, unless it has dtype float0, and so no memory."""
    return device_put_value(x) if isinstance(x, np.ndarray) and x.dtype != float0 else x


for _stage in (Traced, Lowered, Compiled):
    api_boundary_methods(_stage)


def closed(traced: Trace) -> ClosedJaxpr:
    """The traced program, closed over its captured values."""
    count = len(traced.captured)
    invars = traced.jaxpr.invars
    return ClosedJaxpr(traced.jaxpr.replace(constvars=invars[:count], invars=invars[count:]), traced.captured)
