"""Kernels for GPUs, in Triton's dialect: the context of their lowering, with a rule for each StableHLO operation."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core import Equation
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.ref_parts import Part
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import ELEMENTWISE, element_of, is_float
from xlamini.lowering.kernels.context import KernelContext, Regions
from xlamini.lowering.kernels.control_flow import CONTROL_FLOW
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_atomics import atomic, compare_and_swap
from xlamini.lowering.kernels.triton_dialect import TritonDialect
from xlamini.lowering.kernels.triton_dot import PRODUCTS
from xlamini.lowering.kernels.triton_gathers import GATHERS
from xlamini.lowering.kernels.triton_math import MATH, approx_tanh
from xlamini.lowering.kernels.triton_memory import TritonRef, load, masked, place_of, store
from xlamini.lowering.kernels.triton_order import ATOMIC, READ, WRITE, MemoryOrder
from xlamini.lowering.kernels.triton_reduce import REDUCTIONS
from xlamini.lowering.kernels.triton_shapes import SHAPES
from xlamini.lowering.kernels.triton_sizes import check_equation, check_sizes
from xlamini.lowering.kernels.triton_slices import SLICES


def is_byte(x: Any) -> bool:
    """Whether a value is of floats of 8 bits."""
    return isinstance(x, ir.Value) and is_float(x) and ir.FloatType(element_of(x.type)).width == 8


_OF_BYTES = frozenset(
    f"stablehlo.{name}"
    for name in "convert broadcast_in_dim reshape transpose select dot_general optimization_barrier bitcast_convert "
    "return while case".split()
)
"""The operations on floats of 8 bits; on others the compiler ends the process."""


class TritonContext(KernelContext):
    """The lowering of a kernel's equations for a GPU. The values of refs' variables are `TritonRef`s."""

    mlir: TritonDialect
    rules: Mapping[str, Any] = ELEMENTWISE | CONTROL_FLOW | SHAPES | SLICES | GATHERS | REDUCTIONS | PRODUCTS | MATH
    target = "Triton"
    takes_arrays = True
    reorders = True

    def many(
        self,
        name: str,
        /,
        operands: Sequence[Value],
        types: Sequence[ir.Type],
        regions: Regions = (),
        **attributes: Any,
    ) -> list[Value]:
        if name == "stablehlo.compare" and is_byte(operands[0]):
            wide = self.mlir.floats_like(operands[0].type)
            operands = [self.many("stablehlo.convert", [x], [wide])[0] for x in operands]
        elif name not in _OF_BYTES and any(is_byte(x) for x in operands):
            raise KernelError(
                f"{named(self.eqn)} computes with floats of 8 bits, which a GPU only multiplies in matrices; convert "
                "to float32 first"
            )
        return super().many(name, operands, types, regions, **attributes)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.order: MemoryOrder = MemoryOrder(set())

    def _before(self, access: str, ref: TritonRef) -> None:
        """Let the threads wait where the access must come after earlier ones."""
        if self.order.needs_wait(ref.memory, access):
            self.barrier()

    def _fill(self, region: ir.Region, types: Sequence[ir.Type], write: Any) -> None:
        before = self.order.pending()
        super()._fill(region, types, write)
        self.order.join(before)

    def load(self, ref: TritonRef, part: Part, indices: Sequence[Value]) -> Value:
        self._before(READ, ref)
        return load(self, ref, place_of(self, ref, part, indices))

    def store(self, ref: TritonRef, part: Part, indices: Sequence[Value], value: Value) -> None:
        self._before(WRITE, ref)
        store(self, ref, place_of(self, ref, part, indices), value)

    def masked_load(
        self, ref: TritonRef, part: Part, indices: Sequence[Value], mask: Value | None, other: Value | None = None
    ) -> Value:
        """The value of a part where a mask is true, elsewhere another one, by default 0."""
        self._before(READ, ref)
        return load(self, ref, masked(self, place_of(self, ref, part, indices), mask), other)

    def masked_store(
        self, ref: TritonRef, part: Part, indices: Sequence[Value], mask: Value | None, value: Value
    ) -> None:
        """Write a value to a part where a mask is true."""
        self._before(WRITE, ref)
        store(self, ref, masked(self, place_of(self, ref, part, indices), mask), value)

    def atomic(
        self, ref: TritonRef, part: Part, indices: Sequence[Value], mask: Value | None, operation: str, value: Value
    ) -> Value:
        """Update a part where a mask is true, in one step for each element; the elements before."""
        self._before(ATOMIC, ref)
        return atomic(self, ref, masked(self, place_of(self, ref, part, indices), mask), operation, value)

    def compare_and_swap(
        self, ref: TritonRef, part: Part, indices: Sequence[Value], expected: Value, value: Value
    ) -> Value:
        """Write a value to an element that is the expected one, in one step; the element before."""
        self._before(ATOMIC, ref)
        return compare_and_swap(self, ref, place_of(self, ref, part, indices), expected, value)

    def barrier(self) -> None:
        """Wait for the program's other threads."""
        self.emit("gpu.barrier", [], [])

    def approx_tanh(self, x: Value) -> Value:
        """The GPU's instruction for tanh."""
        return approx_tanh(self, x)

    def add_hint(self, x: Value, hint: str, values: Sequence[int]) -> Value:
        """Say something of the operation that computes a value; an argument of a block has none."""
        if isinstance(x.owner, ir.Operation) and x.owner.name != "arith.constant":
            text = f"dense<{list(values)}> : tensor<{len(values)}xi32>"
            x.owner.attributes[f"tt.{hint}"] = self.mlir.parse(text)
        return x

    def _lowered(self, eqn: Equation, inputs: list[Any]) -> Sequence[Value]:
        check_equation(eqn)
        inside = [x.memory for x in inputs if isinstance(x, TritonRef)] if eqn.primitive.higher_order else []
        self.order.accessed(inside)
        outs = super()._lowered(eqn, inputs)
        self.order.accessed(inside)
        check_sizes(eqn)  # after a read of a ref, whose error names the ref
        return outs
