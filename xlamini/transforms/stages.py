"""The stages of a jitted function: traced, lowered, compiled. Each can be looked at, and leads to the next."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core.dtypes import canonicalize_dtype
from xlamini.core.jaxpr import ClosedJaxpr
from xlamini.core.pytree import first_difference, flatten, unflatten
from xlamini.core.tracer import Tracer
from xlamini.runtime.put import device_put_value
from xlamini.transforms.arguments import avals_of, check_values
from xlamini.transforms.program import LoweredProgram, Program
from xlamini.transforms.shape_struct import ShapeDtypeStruct
from xlamini.transforms.tracing import Trace

Options = Mapping[str, Any]


class Stage:
    """What all stages know: the structure of the arguments and of the output."""

    def __init__(self, traced: Trace, in_tree: Any, name: str):
        self._trace, self.in_tree, self._name = traced, in_tree, name

    @property
    def out_tree(self) -> Any:
        return self._trace.out_tree

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in the structure `(args, kwargs)`."""
        return unflatten(self.in_tree, self._leaf_avals)

    @property
    def _leaf_avals(self) -> list[Any]:
        return self._trace.jaxpr.in_avals[len(self._trace.captured) :]

    @property
    def out_info(self) -> Any:
        """The types of the outputs, in the output's structure."""
        avals = self._trace.jaxpr.out_avals
        return unflatten(self.out_tree, [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals])


class Traced(Stage):
    """A function traced for arguments of some types."""

    def __init__(self, traced: Trace, in_tree: Any, name: str, lower: Callable[[], LoweredProgram], options: Any):
        super().__init__(traced, in_tree, name)
        self._lower, self._options = lower, options

    @property
    def fun_name(self) -> str:
        return self._name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program, closed over the values it captured."""
        return closed(self._trace)

    def lower(self) -> Lowered:
        """The StableHLO of the program."""
        return Lowered(self._trace, self.in_tree, self._name, self._lower(), self._options)


class Lowered(Stage):
    """A function as StableHLO."""

    def __init__(self, traced: Trace, in_tree: Any, name: str, program: LoweredProgram, options: Any):
        super().__init__(traced, in_tree, name)
        self._program, self._options = program, options
        self._compiled: Compiled | None = None

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The StableHLO module as text; `debug_info` adds the user's line and the equation's id to operations."""
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: dialect must be 'stablehlo', got {dialect!r}; compile() for optimised HLO")
        return self._program.module.operation.get_asm(enable_debug_info=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The StableHLO module as an MLIR object."""
        return self._program.module

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of flops and bytes, of the compiled program."""
        return self._compile_once().cost_analysis()

    def compile(self, compiler_options: Options | None = None) -> Compiled:
        """The executable; `compiler_options` are XLA's, by name."""
        if compiler_options is None:
            return self._compile_once()
        return self._compile({**(self._options or {}), **compiler_options})

    def _compile_once(self) -> Compiled:
        if self._compiled is None:
            self._compiled = self._compile(self._options)
        return self._compiled

    def _compile(self, options: Options | None) -> Compiled:
        return Compiled(self._trace, self.in_tree, self._name, self._program.compile(options))


class Compiled(Stage):
    """A function as an executable, for arguments of just the types it was made for."""

    def __init__(self, traced: Trace, in_tree: Any, name: str, program: Program):
        super().__init__(traced, in_tree, name)
        self._program = program
        self._captured = [device_put_value(x) if isinstance(x, np.ndarray) else x for x in traced.captured]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; static arguments are left out. TypeError, with the difference, for arguments of other types."""
        leaves, tree = flatten((args, kwargs))
        self._check(leaves, tree)
        outs = self._program([*self._captured, *leaves], names=self._trace.names)
        return unflatten(self.out_tree, outs)

    def _check(self, leaves: Sequence[Any], tree: Any) -> None:
        if tree != self.in_tree:
            where = first_difference(self.in_tree, tree, ("expected", "given"))
            raise TypeError(f"compiled {self._name} was called with (args, kwargs) of another structure: {where}")
        names, wrong = self._trace.names, []
        found_avals = avals_of(leaves, names, self._name)
        _refuse_tracers(leaves, names, self._name)
        for i, (found, wanted) in enumerate(zip(found_avals, self._leaf_avals, strict=True)):
            if (found.shape, canonicalize_dtype(found.dtype, True)) != (wanted.shape, wanted.dtype):
                wrong.append(f"{names[i]}: compiled for {wanted.str_short()}, called with {found.str_short()}")
        if wrong:
            raise TypeError(f"compiled {self._name} was called with arguments of other types: {'; '.join(wrong)}")

    def as_text(self) -> str:
        """The optimised HLO."""
        return self._program.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: flops, bytes accessed, …"""
        return self._program.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return self._program.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """PJRT's own object."""
        return self._program.executable.loaded

    @property
    def input_shardings(self) -> Any:
        """Where each argument must be, as a tree `(args, kwargs)`; None for one that the program does not read."""
        shardings = iter(self._program.executable.in_shardings)
        every = [next(shardings) if kept else None for kept in self._program.lowered.kept]
        return unflatten(self.in_tree, every[len(self._trace.captured) :])

    @property
    def output_shardings(self) -> Any:
        """Where each output will be."""
        return unflatten(self.out_tree, self._program.executable.out_shardings)


def _refuse_tracers(leaves: Sequence[Any], names: Sequence[str], fun_name: str) -> None:
    for i, x in enumerate(leaves):
        if type(x) is Tracer:
            raise TypeError(
                f"compiled {fun_name} was called with a traced value, {x!r}, as the argument {names[i]!r}; a compiled "
                "program cannot be transformed or traced: call the jitted function itself"
            )
    check_values(leaves, names, fun_name)


def closed(traced: Trace) -> ClosedJaxpr:
    """The traced program with the values it captured."""
    count = len(traced.captured)
    invars = traced.jaxpr.invars
    return ClosedJaxpr(traced.jaxpr.replace(constvars=invars[:count], invars=invars[count:]), traced.captured)
