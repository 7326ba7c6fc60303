"""The lowering of a kernel for a TPU, in the dialects `arith`, `math`, `scf`, `vector` and `tpu` (Mosaic)."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from jaxlib.mlir import ir

from xlamini.core import Equation
from xlamini.core.program.ref_parts import Part
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import element_of, is_float
from xlamini.lowering.kernels.context import KernelContext, KernelModule, Regions, Rule, splat
from xlamini.lowering.kernels.control_flow import CONTROL_FLOW
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.mosaic_blocks import check_dtype
from xlamini.lowering.kernels.mosaic_copies import (
    read_semaphore,
    signal_semaphore,
    start_copy,
    wait_copy,
    wait_semaphore,
)
from xlamini.lowering.kernels.mosaic_dialect import SEMAPHORES, MosaicDialect
from xlamini.lowering.kernels.mosaic_elementwise import MOSAIC_ELEMENTWISE
from xlamini.lowering.kernels.mosaic_generator import GeneratorRules
from xlamini.lowering.kernels.mosaic_memory import load, store
from xlamini.lowering.kernels.mosaic_products import PRODUCTS
from xlamini.lowering.kernels.mosaic_reductions import REDUCTIONS
from xlamini.lowering.kernels.mosaic_rotations import ROTATIONS
from xlamini.lowering.kernels.mosaic_shapes import SHAPES, shape_of_value

if TYPE_CHECKING:
    from xlamini.lowering.kernels.mosaic_memory import MosaicRef


MOSAIC: dict[str, Rule] = {
    **MOSAIC_ELEMENTWISE,
    **CONTROL_FLOW,
    **SHAPES,
    **REDUCTIONS,
    **ROTATIONS,
    **PRODUCTS,
}
"""The rules by the names of StableHLO operations."""


class MosaicContext(KernelContext):
    """The lowering of a kernel's equations into one block of a Mosaic function."""

    rules: ClassVar[Mapping[str, Rule]] = MOSAIC  # type: ignore[misc]
    float32: ir.Type
    index_type: ir.Type
    int32: ir.Type

    target = "Mosaic"

    def __init__(self, module: KernelModule, mlir: MosaicDialect, block: ir.Block, scope: str):
        super().__init__(module, mlir, block, scope, "")
        self.int32, self.float32, self.index_type = (
            ir.Type.parse(text, mlir.context) for text in ("i32", "f32", "index")
        )
        self.heard: list[tuple[str, Mapping[str, Any]]] | None = None

    start_copy: Callable[..., None] = start_copy
    wait_copy: Callable[..., None] = wait_copy
    signal_semaphore: Callable[[Any, MosaicRef, Part, Sequence[Value], Value], None] = signal_semaphore
    wait_semaphore: Callable[[Any, MosaicRef, Part, Sequence[Value], Value], None] = wait_semaphore

    def load(self, ref: Any, part: Part, indices: Sequence[Value]) -> Value:
        if ref.space in SEMAPHORES:
            return read_semaphore(self, ref, part, indices)
        return load(self, ref, part, indices)

    def store(self, ref: Any, part: Part, indices: Sequence[Value], value: Value) -> None:
        store(self, ref, part, indices, value)

    def many(
        self,
        name: str,
        /,
        operands: Sequence[Value],
        types: Sequence[ir.Type],
        regions: Regions = (),
        **attributes: Any,
    ) -> list[Value]:
        if self.heard is not None and name not in ("stablehlo.return", "stablehlo.convert"):
            self.heard.append((name, attributes))
        return super().many(name, operands, types, regions, **attributes)

    def _lowered(self, eqn: Equation, inputs: list[Any]) -> Sequence[Value]:
        for out in eqn.outvars:
            check_dtype(f"the result of {named(eqn)}", out.aval)
        return super()._lowered(eqn, inputs)

    def generator(self) -> GeneratorRules:
        """The generator of random bits."""
        return GeneratorRules(self)

    def add_hint(self, x: Value, hint: str, values: Sequence[int]) -> Value:
        """The value, of which Mosaic knows that it is a multiple of a number; other hints say nothing to it."""
        if hint != "divisibility" or shape_of_value(x):
            return x
        return self.one("tpu.assume_multiple", [self.as_index(x)], multiple=f"{values[0]} : i32")

    def listen(self, fill: Callable[[ir.Region], None]) -> list[tuple[str, Mapping[str, Any]]]:
        """The StableHLO operations of a region, which is not kept: what a reduction combines by."""
        heard: list[tuple[str, Mapping[str, Any]]] = []
        outer, self.heard = self.heard, heard
        holder = ir.Operation.create("scf.execute_region", [], [], None, None, 1, self.mlir.unknown, False)
        fill(holder.regions[0])
        self.heard = outer
        return heard

    def place(self) -> str:
        """The equation, and the user's line that it is from, for errors."""
        source = self.eqn.provenance.source
        return f"{self.eqn.primitive.name}{f', at {source}' if source else ''}"

    def splat(self, number: Any, kind: ir.Type) -> Value:
        """A constant filled with one number."""
        return self.one("arith.constant", [], kind, value=splat(self, number, kind))

    def converted(self, x: Value, kind: ir.Type) -> Value:
        """A value in the element type of `kind`."""
        return self.many("stablehlo.convert", [x], [self.mlir.vector(shape_of_value(x), element_of(kind))])[0]

    def word(self, x: Value) -> Value:
        """A value in 32 bits: narrower floats as float32, narrower ints as int32."""
        return self.converted(x, self.float32 if is_float(x) else self.int32)

    def in_words(self, rule: Callable[..., Value], x: Value, *rest: Any) -> Value:
        """`rule(self, x, *rest)` computed in 32 bits, in the element type of `x`."""
        return self.converted(rule(self, self.word(x), *rest), x.type)
