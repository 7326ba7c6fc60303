"""The lowering context: the interface between a primitive's `lower` rule and the MLIR builder.

A rule names an operation (`ctx.op("stablehlo.tanh", x)`); the context adds block, location, output types and platform.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import Atom, Avals, Equation, Jaxpr, Literal, Shape, ShapedArray, Values, Var
from xlamini.core.errors.frames import Source
from xlamini.core.flags.config import trace_context_key
from xlamini.core.program.call_graph import place_inside
from xlamini.core.program.effects import any_ordered
from xlamini.core.program.form_call import NOINLINE, original
from xlamini.core.sizes.expression import refuse_size
from xlamini.core.tracing.tracer import build
from xlamini.lowering.call_depth import is_too_deep
from xlamini.lowering.control_flow import counted_loop
from xlamini.lowering.frontend_attributes import add_attributes
from xlamini.lowering.kernels.calls import kernel_call
from xlamini.lowering.mlir import Interned, lowering_recipes
from xlamini.lowering.replay import Constant, EmittedOperation, FunctionCall, RecipeBlock, Tape, recipe_key
from xlamini.lowering.specialize import specialize_part
from xlamini.lowering.terms import constrained, has_typed_shardings

Value = Any

_NOINLINE: dict[str, Any] = {"mhlo.frontend_attributes": '{inlineable = "false"}'}


class Context:
    """The lowering of equations into one block, with the builder methods for their rules."""

    eqn: Equation
    takes_calls = True
    reorders = False  # whether reductions combine elements in another order than theirs
    takes_ranges = False  # whether it has loops over a range of integers, `loop_over_range`
    counted_loop: Callable[..., list[Value]] = counted_loop
    call_kernel: Callable[..., list[Value]] = kernel_call
    size: Callable[..., Any] = refuse_size  # the values of symbolic sizes, which exported programs have (symbolic.py)
    sizes: Callable[..., Any] = refuse_size
    leading: Sequence[Value] = ()  # of the function's leading arguments (`ModuleBuilder.leading`)

    def __init__(self, module: Any, mlir: Interned, block: ir.Block, scope: str, prefix: str):
        self.module: Any = module
        self.mlir: Interned = mlir
        self.insertion: ir.InsertionPoint = ir.InsertionPoint(block)
        self.scope: str = scope
        self.prefix: str = prefix
        self.location: ir.Location = mlir.unknown
        self.constants: dict[Any, Value] = {}
        self.places: dict[Source | None, ir.Location] = {}
        self.recipes: Any = mlir.recipes(module.platform, module.spans_devices, trace_context_key())
        self.tape: Tape | None = None
        self.token: Value = None
        self.loose_token: Value = None

    @property
    def platform(self) -> str:
        """The platform of the lowered program: `cpu`, `cuda`, `rocm` or `tpu`."""
        return self.module.platform

    @property
    def avals_in(self) -> list[ShapedArray]:
        return [a.aval for a in self.eqn.invars]

    @property
    def avals_out(self) -> list[ShapedArray]:
        return [v.aval for v in self.eqn.outvars]

    aval_out: property = property(lambda self: self.eqn.outvars[0].aval)

    def op(
        self, name: str, *operands: Value,
        avals: Avals | None = None, regions: Sequence[Callable[[ir.Region], None]] = (), **attributes: Any,
    ) -> Value:  # fmt: skip
        """Create an operation; returns its result, or the list of its results.

        Result types are the equation's outputs unless `avals` says otherwise. An attribute may be text in MLIR's
        notation, a list of ints (an i64 array), a bool, or an attribute.
        """
        types = [self.mlir.type(a) for a in (self.avals_out if avals is None else avals)]
        results = self.many(name, operands, types, regions, **attributes)
        return results[0] if len(types) == 1 else results

    def many(
        self,
        name: str,
        /,
        operands: Sequence[Value],
        types: Sequence[ir.Type],
        regions: Sequence[Callable[[ir.Region], None]] = (),
        **attributes: Any,
    ) -> list[Value]:
        """Create an operation with results of these types; returns the list of results."""
        attrs = {k: self._attribute(v) for k, v in attributes.items()} if attributes else None
        made = ir.Operation.create(name, types, operands, attrs, None, len(regions), self.location, self.insertion)
        results, tape = list(made.results), self.tape
        if tape is None:
            for fill, region in zip(regions, made.regions, strict=True):
                fill(region)
            return results
        bodies = [tape.body(fill, region) for fill, region in zip(regions, made.regions, strict=True)]
        tape.operation(EmittedOperation(name, (), types, attrs, bodies), operands, results)
        return results

    def current_token(self) -> Value:
        """The token that the next ordered effect consumes; the effect stores its own token in `token`."""
        self.forbid_repetition()
        if self.token is None:
            self.token = self.new_token()
        return self.token

    def new_token(self) -> Value:
        """A token without predecessors."""
        return self.many("stablehlo.create_token", (), [self.mlir.token])[0]

    def _attribute(self, value: Any) -> ir.Attribute:
        if isinstance(value, str):
            return self.mlir.parse(value)
        if isinstance(value, bool):
            return self.mlir.parse("true" if value else "false")
        if isinstance(value, list | tuple):
            return self.mlir.i64s(value)
        return value

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """A constant array of the type `aval`, filled with a scalar or with an array's elements."""
        # The key is the bytes, because nan is not equal to itself, and -0.0 equals 0.0.
        raw = value if isinstance(value, np.generic | np.ndarray) else np.asarray(value, aval.dtype)
        key = (raw.tobytes(), raw.dtype, aval.shape, aval.dtype)
        found = self.constants.get(key)
        if found is None:
            tape, self.tape = self.tape, None
            found = self.constants[key] = self._new_constant(np.asarray(raw, aval.dtype), aval)
            self.tape = tape
        if self.tape is not None:
            self.tape.constant(Constant(key, raw, aval), found)
        return found

    def _new_constant(self, array: np.ndarray, aval: ShapedArray) -> Value:
        if array.shape == aval.shape:
            return self.op("stablehlo.constant", avals=[aval], value=self.mlir.dense(array))
        return self.broadcast(self.constant(array, ShapedArray(array.shape, aval.dtype)), (), aval)

    def broadcast(self, x: Value, dims: Sequence[int], aval: ShapedArray) -> Value:
        """`broadcast_in_dim` to the type `aval`."""
        return self.op("stablehlo.broadcast_in_dim", x, avals=[aval], broadcast_dimensions=list(dims))

    def filled(self, x: Value, atom: Atom, shape: Shape) -> Value:
        """A scalar operand broadcast to `shape`; a literal becomes a constant, shared by all its uses in the block."""
        aval = ShapedArray(shape, atom.aval.dtype)
        return self.constant(atom.val, aval) if isinstance(atom, Literal) else self.broadcast(x, (), aval)

    def reshape(self, x: Value, aval: ShapedArray) -> Value:
        return self.op("stablehlo.reshape", x, avals=[aval])

    def scalar_region(self, avals: Avals, body: Callable[..., Sequence[Value]]) -> Callable[[ir.Region], None]:
        """A region with block arguments of the types `avals`, which returns the values of `body(*arguments)`.

        XLA takes no calls in it, so parts are inlined.
        """

        def without_calls(*arguments: Value) -> Sequence[Value]:
            outer, self.takes_calls = self.takes_calls, False
            results = body(*arguments)
            self.takes_calls = outer
            return results

        return self.region([self.mlir.type(a) for a in avals], without_calls)

    def region(
        self, types: Sequence[ir.Type], body: Callable[..., Sequence[Value]], ends: str = "stablehlo.return"
    ) -> Callable[[ir.Region], None]:
        """A region with block arguments of these types, which returns `body(*arguments)` by the terminator `ends`."""

        def write(arguments: Sequence[Value]) -> None:
            if self.tape is not None:
                self.tape.block(types, arguments)
            self.op(ends, *body(*arguments), avals=[])

        return lambda region: self._fill(region, types, write)

    def _fill(self, region: ir.Region, types: Sequence[ir.Type], write: Callable[[list[Value]], None]) -> None:
        """Add a block to a region, and emit its operations."""
        block = region.blocks.append(*types, arg_locs=[self.location] * len(types))
        outer, constants, loose_token = self.insertion, self.constants, self.loose_token
        self.insertion, self.constants, self.loose_token = ir.InsertionPoint(block), dict(constants), None
        write(list(block.arguments))
        self.insertion, self.constants, self.loose_token = outer, constants, loose_token

    def loop_over_range(self, start: Value, stop: Value, state: Sequence[Value], body: Any) -> list[Value]:
        """The final state of `for i in range(start, stop): state = body(i, *state)`."""
        raise NotImplementedError

    def body(self, jaxpr: Jaxpr, operands: Sequence[Value], scope: str) -> list[Value]:
        """Lower a jaxpr of the current equation's params inline, under `scope`; its equations keep their locations."""
        eqn, outer, prefix, location = self.eqn, self.scope, self.prefix, self.location
        self.scope, self.prefix = f"{self._scope(eqn)}/{scope}", self.path(jaxpr)
        del self.eqn
        outs = self.run(jaxpr, operands)
        self.eqn, self.scope, self.prefix, self.location = eqn, outer, prefix, location
        return outs

    def reduce(self, combine: str, x: Value, start: Any, axes: Sequence[int]) -> Value:
        """Reduce `x` over `axes` with the StableHLO op `combine`, from the number `start`."""
        scalar = ShapedArray((), self.aval_out.dtype)
        body = self.scalar_region([scalar] * 2, lambda a, b: [self.op(combine, a, b, avals=[scalar])])
        return self.op("stablehlo.reduce", x, self.constant(start, scalar), regions=[body], dimensions=list(axes))

    def inline(self, fun: Callable[..., Any], *operands: Value, avals: Avals | None = None) -> Any:
        """Lower by tracing: trace `fun` on the equation's operand types and lower the resulting jaxpr inline."""
        single = False

        def flat(*tracers: Any) -> Values:
            nonlocal single
            out = fun(*tracers)
            single = not isinstance(out, list | tuple)
            return [out] if single else out

        operand_avals = self.avals_in if avals is None else avals
        jaxpr, consts = build(flat, [ShapedArray(a.shape, a.dtype, a.weak_type, a.vma) for a in operand_avals])
        if consts:
            raise TypeError(
                f"the lowering of {self.eqn.primitive} captured array constants; write them as iota or literals"
            )
        outs = self.run(specialize_part(jaxpr, self.module.platforms), operands)
        return outs[0] if single else outs

    def call(self, jaxpr: Jaxpr, operands: Sequence[Value], name: str, noinline: bool = False) -> list[Value]:
        """Call a jaxpr as a function of the module, emitted once for all its calls.

        XLA inlines the call, unless `noinline` is set, here or in the equation: then the function is optimized
        separately, once.
        Inlined here: a jaxpr too deep (call_depth.py); one with ordered effects, on which XLA of jaxlib 0.12 may abort.
        """
        if any_ordered(jaxpr.effects) or is_too_deep(jaxpr):
            return self.body(jaxpr, operands, name)
        return self._called(jaxpr, operands, self.function(jaxpr, name), noinline)

    def _called(self, jaxpr: Jaxpr, operands: Sequence[Value], symbol: ir.Attribute, noinline: bool) -> list[Value]:
        types = [self.mlir.type(a) for a in jaxpr.out_avals]
        attributes = _NOINLINE if noinline or self.is_noinline() else {}
        return self.many("func.call", operands, types, callee=symbol, **attributes)

    def is_noinline(self) -> bool:
        """Whether XLA must not inline the current equation's call (fusion_cuts.py); other platforms inline it."""
        return NOINLINE in self.eqn.params and self.platform == "cpu"

    def part(self, jaxpr: Jaxpr, operands: Sequence[Value], name: str, noinline: bool = False) -> list[Value]:
        """Call a jaxpr that implements the current equation, as a function shared by all equations of that kind.

        XLA inlines the calls, unless `noinline` is set, here or in the equation, and gives operations without a
        location that of the call, so that each equation's operations have its own.
        """
        if not self.takes_calls:
            return self.run(jaxpr, operands)
        symbol = self.module.part(jaxpr, name, self.eqn)
        tape, self.tape = self.tape, None
        results = self._called(jaxpr, operands, symbol, noinline)
        self.tape = tape
        if tape is not None:
            tape.operation(FunctionCall(jaxpr, (), name, noinline), operands, results)
        return results

    def function(self, jaxpr: Jaxpr, name: str) -> ir.Attribute:
        """The symbol of the module's function for a jaxpr, emitted at its first use."""
        self.forbid_repetition()
        function = self.module.function(jaxpr, name, f"{self._scope(self.eqn)}/{name}", self.path(jaxpr))
        return ir.FlatSymbolRefAttr.get(function, self.mlir.context)

    def path(self, jaxpr: Jaxpr) -> str:
        """How the ids in a jaxpr of the current equation's params begin: as where the module's code first has it."""
        return self.module.paths.setdefault(jaxpr, f"{self.prefix}{place_inside(self.eqn, jaxpr)}")

    def run(self, jaxpr: Jaxpr, operands: Sequence[Value]) -> list[Value]:
        """Lower the equations of a jaxpr into the current block; returns the values of its outputs."""
        env: dict[Var, Value] = dict(zip(jaxpr.invars, operands, strict=True))
        outer = getattr(self, "eqn", None)
        nested = outer is not None
        explicit = not nested and self.module.spans_devices and has_typed_shardings(jaxpr)
        for eqn in jaxpr.eqns:
            self.eqn = eqn
            if not nested:
                self.location = self._location(eqn)
            inputs = [env[a] if type(a) is Var else self._number(a) for a in eqn.invars]
            outs = self._lowered(eqn, inputs)
            if explicit:
                outs = constrained(self, original(eqn), outs)
            env.update(zip(eqn.outvars, outs, strict=True))
        if nested:
            self.eqn = outer
        return [env[a] if type(a) is Var else self._number(a) for a in jaxpr.outvars]

    def _lowered(self, eqn: Equation, inputs: list[Value]) -> Sequence[Value]:
        """The results of an equation, by replay of the recipe for its kind, or else by its primitive's rule."""
        kind = eqn.kind
        if kind is None or not kind.shared or self.tape is not None:
            return self._by_rule(eqn, inputs)
        key = recipe_key(kind, eqn.invars)
        recipe = self.recipes.table.get(key)
        if recipe:
            return self._follow(recipe.steps, inputs, recipe.results)
        return self._by_rule(eqn, inputs) if recipe is False else self._record(key, eqn, inputs)

    def _record(self, key: Any, eqn: Equation, inputs: list[Value]) -> Sequence[Value]:
        self.tape = tape = Tape(eqn.invars, inputs)
        try:
            outs = self._by_rule(eqn, inputs)
        finally:
            self.tape = None
        recipe = tape.recipe(outs)
        if recipe is not None or tape.forbidden:
            lowering_recipes.keep(self.recipes, key, recipe or False)
        return outs

    def emit(self, eqn: Equation, inputs: Sequence[Value]) -> Sequence[Value]:
        """The results of the equation that the current one stands in for, by its primitive's rule."""
        self.eqn = eqn
        return self._by_rule(eqn, inputs)

    def _by_rule(self, eqn: Equation, inputs: Sequence[Value]) -> Sequence[Value]:
        outs = eqn.primitive.lower(self, *inputs, **eqn.params)
        return outs if eqn.primitive.multiple_results else (outs,)

    def _follow(self, steps: Sequence[Any], values: list[Value], results: Sequence[int]) -> list[Value]:
        """Replay the steps of a recipe; `values` starts with the operands, and the results are appended."""
        create, location, insertion = ir.Operation.create, self.location, self.insertion
        for step in steps:
            if type(step) is not EmittedOperation:
                self._follow_step(step, values)
                continue
            name, operands, types, attributes, bodies = step
            chosen = [values[i] for i in operands]
            made = create(name, types, chosen, attributes, None, len(bodies), location, insertion)
            if bodies:
                self._follow_bodies(bodies, made.regions, values)
            if len(types) == 1:
                values.append(made.result)
            else:
                values.extend(made.results)
        return [values[i] for i in results]

    def _follow_step(self, step: Constant | FunctionCall, values: list[Value]) -> None:
        if isinstance(step, FunctionCall):
            values.extend(self.part(step.jaxpr, [values[i] for i in step.operands], step.name, step.noinline))
        else:
            found = self.constants.get(step.key)
            values.append(self.constant(step.array, step.aval) if found is None else found)

    def _follow_bodies(self, bodies: Sequence[RecipeBlock], regions: Sequence[ir.Region], values: list[Value]) -> None:
        for body, region in zip(bodies, regions, strict=True):

            def write(arguments: list[Value], steps: Sequence[Any] = body.steps) -> None:
                values.extend(arguments)
                self._follow(steps, values, ())

            self._fill(region, body.types, write)

    def with_sharding(self, x: Value, sharding: Any, ndim: int) -> Value:
        """An array of rank `ndim` with a sharding constraint for the partitioner."""
        if not self.module.spans_devices or self.module.manual_axes.issuperset(sharding.mesh.axis_names):
            return x
        self.forbid_repetition()  # the mesh is the module's
        attribute = self.module.meshes.sharding(sharding, ndim)
        return self.many("sdy.sharding_constraint", [x], [x.type], sharding=attribute)[0]

    def add_frontend_attributes(self, x: Value, attributes: Sequence[tuple[str, str]]) -> None:
        """Add attributes for XLA to the operation that computes a value; an argument or a constant gets none."""
        self.forbid_repetition()
        add_attributes(x.owner, attributes)

    def forbid_repetition(self) -> None:
        """Mark the rule's output as specific to this module or block, so that it is not recorded for replay."""
        if self.tape is not None:
            self.tape.forbidden = True

    def _location(self, eqn: Equation) -> ir.Location:
        """`loc("path/primitive#e17"("file":line))`."""
        source = eqn.provenance.source
        place = self.places.get(source)
        if place is None:
            place = self.places[source] = self.mlir.place(source)
        name = f"{self._scope(eqn)}/{original(eqn).primitive.name}#e{self.prefix}{eqn.id}"
        return ir.Location.name(name, place, self.mlir.context)

    def _number(self, literal: Literal) -> Value:
        """The constant for a literal."""
        found = self.constants.get(literal) if self.tape is None else None
        if found is None:
            found = self.constants[literal] = self.constant(literal.val, literal.aval)
        return found

    def _scope(self, eqn: Equation) -> str:
        scope = eqn.provenance.scope
        return "/".join((self.scope, *scope)) if scope else self.scope
