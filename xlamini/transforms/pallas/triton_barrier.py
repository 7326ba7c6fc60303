"""`debug_barrier`: the threads of a GPU's program wait for each other."""
from __future__ import annotations

from typing import Any, Final

from xlamini.core import Avals, Axis, Dims, Params, Primitive, Values
from xlamini.core.program.effects import Effect
from xlamini.transforms.pallas.grid import kernel_builder

_barrier_effect = Effect("barrier", observing=True)


class DebugBarrier(Primitive):
    """An instruction in a GPU's kernel, nothing elsewhere."""

    name = "debug_barrier"
    multiple_results = True

    def shape_rule(self) -> Avals:
        return []

    def effects(self, avals: Avals, params: Params) -> frozenset[Effect]:
        return frozenset({_barrier_effect})

    def jvp(self, primals: Values, tangents: Values) -> Any:
        return self.bind(), []

    def transpose(self, cts: Values) -> list[Any]:
        return []

    def batch(self, axis: Axis, operands: Values, dims: Dims) -> Any:
        return self.bind(), []

    def lower(self, ctx: Any) -> list[Any]:
        barrier = getattr(ctx, "barrier", None)
        if barrier is not None:
            barrier()
        return []


debug_barrier_p: Final = DebugBarrier()


def debug_barrier() -> None:
    """Wait until all threads of the program are here, and see what they wrote; only inside of a kernel.

    It does nothing but on a GPU. Raises RuntimeError outside of kernels.

    >>> def kernel(x, o):
    ...     o[...] = x[...]
    ...     debug_barrier()
    >>> pl.pallas_call(kernel, xlamini.ShapeDtypeStruct((2,), "float32"))(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    kernel_builder("debug_barrier")
    debug_barrier_p.bind()
