"""The lowering of a kernel's equations: the same `lower` rules, in a dialect of kernels instead of StableHLO.

A primitive's rule names StableHLO operations, as everywhere. A kernel's context has one rule for each such operation,
which emits what the dialect has for it; so a primitive works in kernels as soon as its operations do. Rules that both
dialects share are here and in `arith.py`; `triton.py` and `mosaic.py` have those of memory, shapes and products.

A value of rank 0 is a scalar, another one a tensor (Triton) or a vector (Mosaic). Integers have no sign in the types.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import Equation, Jaxpr, ShapedArray
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.form import Platform
from xlamini.core.program.ref_parts import Part, Start
from xlamini.lowering.context import Context, Value
from xlamini.lowering.kernels.equations import check_effects, named
from xlamini.lowering.mlir import Interned
from xlamini.lowering.specialize import specialize_part

Regions = Sequence[Callable[[ir.Region], None]]
Rule = Callable[["KernelContext", Sequence[Value], Sequence[ir.Type], Regions, Mapping[str, Any]], Any]
"""`rule(ctx, operands, types, regions, attributes)`: the results, a value or a list, of one StableHLO operation.

`attributes` are as the primitive gave them: text, lists, bools.
"""

INDEX = ShapedArray((), np.dtype(np.int32))


class KernelDialect(Interned):
    """An MLIR context with the dialects of kernels, and its types."""

    array: str
    """The text of the type of arrays: `tensor` or `vector`."""

    def type(self, aval: ShapedArray) -> ir.Type:
        found = self._types.get(aval)
        if found is None:
            text = str(self.element_type(aval.dtype))
            if aval.shape:
                text = f"{self.array}<{'x'.join(map(str, aval.shape))}x{text}>"
            found = self._types[aval] = ir.Type.parse(text, self.context)
        return found

    def bools_like(self, kind: Any) -> ir.Type:
        """The type of a comparison of values of this type."""
        return self.like(kind, np.dtype(bool))

    def floats_like(self, kind: ir.Type) -> ir.Type:
        """The type of float32s in the shape of this type."""
        return self.like(kind, np.dtype(np.float32))

    def like(self, kind: Any, dtype: np.dtype) -> ir.Type:
        """The type of elements of `dtype` in the shape of this type."""
        shape = tuple(kind.shape) if hasattr(kind, "shape") else ()
        return self.type(ShapedArray(shape, dtype))

    def element_type(self, dtype: Any) -> ir.Type:
        found = super().element_type(dtype)
        text = str(found)
        return ir.Type.parse(text.removeprefix("u"), self.context) if text.startswith("ui") else found


class NotOfKernels(AttributeError):
    """A rule asked for what the module of a program has, and that of a kernel has not."""


class KernelModule:
    """What the context of a kernel asks of its module: the target, and how ids of inner equations begin."""

    platform: str
    platforms: tuple[Platform]

    spans_devices = False
    manual_axes: frozenset[Any] = frozenset()

    def __init__(self, platform: str):
        self.platform, self.platforms = platform, (Platform(platform),)
        self.paths: dict[Jaxpr, str] = {}

    def __getattr__(self, name: str) -> Any:
        raise NotOfKernels(name)


class KernelContext(Context):
    """The lowering of a kernel's equations into one block. A dialect has a subclass, with its `rules`."""

    takes_calls = False  # what would be a function is written in place
    mlir: Any  # a KernelDialect, of the dialect's own class
    takes_ranges = True
    rules: Mapping[str, Rule]
    """The rules by the names of StableHLO operations."""
    target: str
    """The dialect's name, for errors."""

    takes_arrays = False
    """Whether it can load and store the points that arrays of indices name."""

    ends: str = "scf.yield"
    """The operation that ends the region being filled."""

    def load(self, ref: Any, part: Part, indices: Sequence[Value]) -> Value:
        """The value of a part of a ref; `indices` are the operands in its starts."""
        raise NotImplementedError

    def store(self, ref: Any, part: Part, indices: Sequence[Value], value: Value) -> None:
        """Write a value, which has the shape of the part, to a part of a ref."""
        raise NotImplementedError

    def many(
        self,
        name: str,
        /,
        operands: Sequence[Value],
        types: Sequence[ir.Type],
        regions: Regions = (),
        **attributes: Any,
    ) -> list[Value]:
        rule = self.rules.get(name)
        if rule is None:
            raise KernelError(self._no_rule(name))
        found = rule(self, operands, types, regions, attributes)
        return list(found) if isinstance(found, list | tuple) else [found]

    def _no_rule(self, name: str) -> str:
        source = self.eqn.provenance.source
        return (
            f"{self.eqn.primitive.name}{f', at {source},' if source else ''} has no form in a {self.target} kernel: "
            f"there is no rule for {name}; compute it outside of the kernel, or add the rule to "
            f"xlamini/lowering/kernels/{self.target.lower()}.py"
        )

    def emit(  # type: ignore[override]
        self, name: str, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions = (), **attributes: Any
    ) -> list[Value]:
        """Create an operation of the dialect; the list of its results."""
        return super().many(name, operands, types, regions, **attributes)

    def one(self, name: str, operands: Sequence[Value], kind: ir.Type | None = None, **attributes: Any) -> Value:
        """Create an operation with one result, by default of the type of the first operand."""
        return self.emit(name, operands, [operands[0].type if kind is None else kind], **attributes)[0]

    def region_ending(self, ends: str, fill: Callable[[ir.Region], None]) -> Callable[[ir.Region], None]:
        """A region whose `stablehlo.return` becomes the operation `ends`."""

        def filled(region: ir.Region) -> None:
            outer, self.ends = self.ends, ends
            fill(region)
            self.ends = outer

        return filled

    def index(self, number: int) -> Value:
        """A constant int32."""
        return self.constant(number, INDEX)

    def start(self, start: Start, indices: Sequence[Value]) -> Value:
        """The place where a part begins, an int32."""
        total = self.index(start.number) if start.number or not start.terms else None
        atoms = self.eqn.invars[len(self.eqn.invars) - len(indices) :]  # an equation's last operands
        for factor, operand in start.terms:
            term = self.as_index(indices[operand], atoms[operand].aval.dtype.kind == "u")
            if factor != 1:
                term = self.one("arith.muli", [term, self.index(factor)])
            total = term if total is None else self.one("arith.addi", [total, term])
        return total

    def as_index(self, x: Value, is_unsigned: bool = False) -> Value:
        """An integer scalar as an int32."""
        width, kind = ir.IntegerType(x.type).width, self.mlir.type(INDEX)
        if width == 32:
            return x
        extended = "arith.extui" if is_unsigned else "arith.extsi"
        return self.one("arith.trunci" if width > 32 else extended, [x], kind)

    def _new_constant(self, array: np.ndarray, aval: ShapedArray) -> Value:
        kind = self.mlir.type(aval)
        scalars = np.unique(np.frombuffer(array.tobytes(), f"V{array.itemsize}")) if array.size else array
        if len(scalars) > 1:
            raise KernelError(
                f"{self.eqn.primitive.name} needs an array of constants, {aval.str_short()}, which no kernel has; "
                "pass it as an operand"
            )
        return self.one("arith.constant", [], kind, value=splat(self, array.flat[0], kind))

    def counted_loop(self, trips: int, step: int, state: Sequence[Value], body: Any, ordered: bool) -> list[Value]:
        return self._loop([self.index(n) for n in (0, trips, step)], state, body)

    def loop_over_range(self, start: Value, stop: Value, state: Sequence[Value], body: Any) -> list[Value]:
        step = self.one("arith.constant", [], start.type, value=splat(self, 1, start.type))
        return self._loop([start, stop, step], state, body)

    def _loop(self, trips: Sequence[Value], state: Sequence[Value], body: Any) -> list[Value]:
        """`scf.for`: the final state of `for i in range(*trips): state = body(i, *state)`."""
        types = [trips[0].type, *(x.type for x in state)]
        region = self.region_ending("scf.yield", self.region(types, body))
        return self.emit("scf.for", [*trips, *state], types[1:], [region])

    def call(self, jaxpr: Jaxpr, operands: Sequence[Value], name: str, noinline: bool = False) -> list[Value]:
        return self.body(jaxpr, operands, name)

    def part(self, jaxpr: Jaxpr, operands: Sequence[Value], name: str, noinline: bool = False) -> list[Value]:
        return self.run(specialize_part(jaxpr, self.module.platforms), operands)

    def _lowered(self, eqn: Equation, inputs: list[Value]) -> Sequence[Value]:
        check_effects(eqn, self.target)
        try:
            return self._by_rule(eqn, inputs)
        except NotOfKernels as error:
            raise KernelError(
                f"{named(eqn)} has no form in a {self.target} kernel: it needs the {error} of a whole program, to call "
                "the host or other devices; call it outside of the kernel, or run the kernel with interpret=True"
            ) from None

    def is_unsigned(self) -> bool:
        """Whether the first operand of the current equation is of an unsigned dtype."""
        return bool(self.eqn.invars) and self.eqn.invars[0].aval.dtype.kind in "ub"


def constant_like(ctx: KernelContext, number: Any, x: Value) -> Value:
    """A constant of the type of a value."""
    return filled(ctx, number, x.type)


def filled(ctx: KernelContext, number: Any, kind: ir.Type) -> Value:
    """A constant of a type, filled with one number."""
    return ctx.one("arith.constant", [], kind, value=splat(ctx, number, kind))


def splat(ctx: KernelContext, number: Any, kind: Any) -> ir.Attribute:
    """The attribute of a constant filled with one number."""
    shaped = hasattr(kind, "element_type")
    element = kind.element_type if shaped else kind
    with ctx.location:
        if isinstance(element, ir.IntegerType):
            scalar: ir.Attribute = ir.IntegerAttr.get(element, _signed(int(number), element.width))
        else:
            scalar = ir.FloatAttr.get(element, float(number))
        return ir.DenseElementsAttr.get_splat(kind, scalar) if shaped else scalar


def _signed(number: int, width: int) -> int:
    """The number of these bits that a signed integer has."""
    return number - (1 << width) if width > 1 and number >> (width - 1) == 1 else -number if width == 1 else number
