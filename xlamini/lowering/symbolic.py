"""Lowering of programs with symbolic sizes: the operations of StableHLO that take sizes as operands.

Rules of primitives ask for operations as always, `ctx.op("stablehlo.slice", x, limit_indices=[n])`. Where a size among
the attributes, or one that the result's type does not say, is symbolic, the context emits the dynamic operation
instead. The values of the variables are leading arguments of each function. `main` takes them from the shapes of its
arguments, and checks that these fit. A compiler that knows the shapes refines such a module to one of numbers.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import Avals, Equation, Jaxpr, ShapedArray, paused_gc
from xlamini.core.sizes.expression import Size, is_symbolic_shape
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.core.sizes.solving import SizeEntry, SolutionStep, entries_of, solution
from xlamini.core.sizes.values import evaluate
from xlamini.lowering.context import Context, Value
from xlamini.lowering.dynamic_operations import DYNAMIC, dimension_of, takes_sizes
from xlamini.lowering.leading import NUMBER, LeadingContext, LeadingModule
from xlamini.lowering.module import identifier, lower_jaxpr, set_attributes
from xlamini.lowering.multi_platform import (
    INDEX_NAME,
    MultiPlatformContext,
    MultiPlatformModule,
    drop_unused,
    lower_multi_platform,
)
from xlamini.lowering.size_numbers import SizeNumber, size_number

_INNER = "main_for_sizes"
"""The name of the function that takes the values of the variables."""


class SymbolicContext(LeadingContext):
    """A lowering context for types with symbolic sizes."""

    module: Any

    def op(
        self,
        name: str,
        *operands: Value,
        avals: Avals | None = None,
        regions: Sequence[Callable[[ir.Region], None]] = (),
        **attributes: Any,
    ) -> Value:
        outs = self.avals_out if avals is None else avals
        dynamic, sized = DYNAMIC.get(name), takes_sizes(attributes)
        if sized and (dynamic is None or len(outs) > 1):
            raise NotImplementedError(f"{self.eqn.primitive}: {name} takes no symbolic sizes; give numbers there")
        if dynamic is None or len(outs) > 1 or not (sized or any(is_symbolic_shape(a.shape) for a in outs)):
            return super().op(name, *operands, avals=avals, regions=regions, **attributes)
        options = {"regions": regions, **attributes} if regions else attributes
        return dynamic(self, *operands, out=outs[0], **options)

    def _lowered(self, eqn: Equation, inputs: list[Value]) -> Sequence[Value]:
        return self._by_rule(eqn, inputs)  # recipes have types, but not the values of sizes

    def size(self, size: Size) -> Value:
        """The value of a size, an int32 of rank 0."""
        return size_number(self, evaluate(size, self._variables)).value

    @property
    def _variables(self) -> dict[str, SizeNumber]:
        pairs = zip(self.module.names, self.leading, strict=True)
        return {name: SizeNumber(self, x) for name, x in pairs if name != INDEX_NAME}

    def sizes(self, shape: Sequence[Size]) -> Value:
        """The values of sizes, as an int32 array of rank 1."""
        if is_symbolic_shape(shape):
            return self.vector([self.size(size) for size in shape])
        return self.constant(np.array(shape, NUMBER.dtype), ShapedArray((len(shape),), NUMBER.dtype))

    def vector(self, numbers: Sequence[Value]) -> Value:
        """An int32 array of rank 1, of these elements."""
        each = [self.reshape(x, ShapedArray((1,), NUMBER.dtype)) for x in numbers]
        if len(each) == 1:
            return each[0]
        out = ShapedArray((len(each),), NUMBER.dtype)
        return self.op("stablehlo.concatenate", *each, avals=[out], dimension="0 : i64")

    def assert_unequal(self, x: Size, y: Size, message: str) -> None:
        """Let whoever calls the program with sizes that are equal get an error with this message."""
        values = [size_number(self, evaluate(size, self._variables)) for size in (x, y)]
        _assert(self, values[0].compare("NE", values[1]), message, *values)


class SymbolicPlatformsContext(SymbolicContext, MultiPlatformContext):
    """The same, in a module for several platforms."""

    _lowered = MultiPlatformContext._lowered  # type: ignore[assignment]


class SymbolicModule(LeadingModule):
    """A module under construction, whose functions take the values of symbolic sizes."""

    context_type = SymbolicContext


class SymbolicPlatformsModule(MultiPlatformModule):
    """The same, for several platforms."""

    context_type = SymbolicPlatformsContext


# --- the module


def lower_portable(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    constants: Sequence[np.ndarray],
    placement: Any,
    names: Sequence[str],
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """The module of an exported function, with its callbacks: for one platform or several, and any sizes that fit.

    The first inputs of the jaxpr are the constants; `names` are those of the others, for errors.
    """
    if any(is_symbolic_shape(a.shape) for a in jaxpr.in_avals):
        return lower_symbolic(jaxpr, name, platforms, constants, placement, names)
    if len(platforms) > 1:
        return lower_multi_platform(jaxpr, name, platforms, constants, placement)
    module, callbacks, _ = lower_jaxpr(jaxpr, name, platforms[0], constants=constants, placement=placement)
    return module, callbacks


def lower_symbolic(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    constants: Sequence[np.ndarray],
    placement: Any,
    names: Sequence[str],
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """The module whose `main` computes `jaxpr` for arguments of any sizes that fit, with its callbacks.

    For several platforms `main` takes the platform index first. `names` are those of the arguments, for errors.
    """
    avals = jaxpr.in_avals[len(constants) :]
    steps = solution(entries_of(a.shape for a in avals))
    found = [step.variable for step in steps]
    several, title, mesh = len(platforms) > 1, f"jit_{identifier(name)}", placement and placement.mesh
    builder: Any = (
        SymbolicPlatformsModule(title, platforms, mesh, found)
        if several
        else SymbolicModule(title, platforms[0], mesh, found)
    )
    builder.unused("main")
    inner = builder.unused(_INNER)
    with paused_gc():
        builder.define(jaxpr, inner, f"jit({name})", "", "private", constants=constants)
        main = _define_main(builder, jaxpr, avals, inner, steps, names)
    set_attributes(builder, main, jaxpr, placement, constants=len(constants))
    drop_unused(builder)
    return builder.module, builder.host_callbacks


def _define_main(
    builder: Any, jaxpr: Jaxpr, avals: Avals, inner: str, steps: Sequence[SolutionStep], names: Sequence[str]
) -> Any:
    """Define `main`, which calls `inner` with the values of the variables."""
    mlir, several = builder.mlir, len(builder.platforms) > 1
    builder.module.operation.attributes["jax.uses_shape_polymorphism"] = mlir.parse("true")
    index = [mlir.type(NUMBER)] * several
    ins, outs = [*index, *map(mlir.type, avals)], [mlir.type(a) for a in jaxpr.out_avals]
    function = builder.new_function("main", ins, outs, "public")
    block = function.regions[0].blocks.append(*ins, arg_locs=[mlir.unknown] * len(ins))
    ctx = Context(builder, mlir, block, "", "")
    arguments = list(block.arguments)
    values = _values(ctx, arguments[several:], steps)
    _assert_sizes(ctx, arguments[several:], avals, values, names)
    operands = [*arguments[:several], *(values[step.variable].value for step in steps), *arguments[several:]]
    results = ctx.many("func.call", operands, outs, callee=ir.FlatSymbolRefAttr.get(inner, mlir.context))
    ctx.op("func.return", *results, avals=[])
    if several:
        builder.mark(function, [INDEX_NAME])
    return function


def _values(ctx: Context, arguments: Sequence[Value], steps: Sequence[SolutionStep]) -> dict[str, SizeNumber]:
    values: dict[str, SizeNumber] = {}
    for step in steps:
        found = _dimension(ctx, arguments, step.entry)
        rest = evaluate(step.rest, values)
        left = found if isinstance(rest, int) and rest == 0 else found - rest
        values[step.variable] = left if step.factor == 1 else left // step.factor
    return values


def _dimension(ctx: Context, arguments: Sequence[Value], entry: SizeEntry) -> SizeNumber:
    return SizeNumber(ctx, dimension_of(ctx, arguments[entry.argument], entry.dimension))


def _assert_sizes(
    ctx: Context, arguments: Sequence[Value], avals: Avals, values: dict[str, SizeNumber], names: Sequence[str]
) -> None:
    """Assert that the arguments have the sizes of their types, and that these fulfil the constraints."""
    entries = entries_of(a.shape for a in avals)
    for entry in entries:
        found, wanted = _dimension(ctx, arguments, entry), evaluate(entry.size, values)
        text = f"{names[entry.argument]}.shape[{entry.dimension}] must be {entry.size}, which is {{1}}, but it is {{0}}"
        _assert(ctx, found.compare("EQ", wanted), text, found, wanted)
    if entries:
        _assert_constraints(ctx, entries[0].size.scope, values)


def _assert_constraints(ctx: Context, scope: SymbolicScope, values: dict[str, SizeNumber]) -> None:
    for constraint in scope.demands(values):
        left, right = (size_number(ctx, evaluate(side, values)) for side in (constraint.left, constraint.right))
        holds = left.compare("EQ" if constraint.sign == "==" else "GE", right)
        _assert(ctx, holds, f"the sizes do not fulfil {constraint.text}: {{0}} and {{1}}", left, right)


def _assert(ctx: Context, holds: Value, message: str, *values: Any) -> None:
    ctx.many(
        "stablehlo.custom_call",
        [holds, *(size_number(ctx, v).value for v in values)],
        [],
        call_target_name=ctx.mlir.string("shape_assertion"),
        error_message=ctx.mlir.string(message),
        has_side_effect=True,
        api_version="2 : i32",
    )
