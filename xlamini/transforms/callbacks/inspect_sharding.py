"""debug.inspect_array_sharding: the sharding that the compiler chose for a value."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Effects,
    Params,
    Primitive,
    ShapedArray,
    Tracer,
    Values,
    flatten_from_user,
    leaked,
)
from xlamini.core.program.effects import debug_effect
from xlamini.core.sharding.facet import Sharding as SplitRule, unrelated_dimensions
from xlamini.core.tracing.state import state
from xlamini.runtime import Array, Sharding, device_put_value
from xlamini.runtime.meshes.inspection import Inspector
from xlamini.runtime.meshes.pictures import ColorMap, visualize_sharding
from xlamini.runtime.sharding import default_sharding
from xlamini.staging import check_callable


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Call a Python function with the sharding of each array of a pytree.

    In a traced function the partitioner calls it, so once per compilation, not per call of the program. Its result is
    ignored; an exception is printed, because it cannot stop the compiler. In a program on one device it is called when
    the program is lowered, with the default device's sharding.

    Args:
      value: a pytree of arrays.
      callback: takes a sharding.

    >>> inspect_array_sharding(xlamini.numpy.ones(2), callback=lambda s: print(s.num_devices))
    1
    """
    check_callable("inspect_array_sharding", callback)
    _inspect(value, lambda shape: Inspector(callback))


def visualize_array_sharding(
    arr: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Print which device holds which part of an array of one or two dimensions, in a traced function too.

    There it prints once per compilation. The options are those of `visualize_sharding`; ValueError for another number
    of dimensions.

    >>> visualize_array_sharding(xlamini.numpy.ones((2, 4)), scale=0.3)
    ┌─────────────┐
    │    CPU 0    │
    │             │
    └─────────────┘
    """
    options = {"scale": scale, "min_width": min_width, "max_width": max_width, "color_map": color_map}

    def show(shape: tuple[int, ...]) -> Inspector:
        return Inspector(lambda sharding: visualize_sharding(shape, sharding, use_color=use_color, **options))

    _inspect(arr, show)


def _inspect(value: Any, inspector: Callable[[tuple[int, ...]], Inspector]) -> None:
    for x in flatten_from_user(value)[0]:
        if type(x) is Tracer and not x.builder.is_tracing():
            raise leaked(x)
        found = x if isinstance(x, Array) else device_put_value(x)
        inspect_sharding_p.bind(found, callback=inspector(found.shape))


class InspectSharding(Primitive):
    """An operation that the partitioner removes, calling a Python function with the sharding of its operand."""

    traits = 0
    name = "inspect_sharding"
    multiple_results = True
    sharding: SplitRule = unrelated_dimensions()
    lacks: Mapping[str, str] = {"transpose": "without results"}

    def bind(self, *operands: Any, callback: Inspector) -> list[Any]:
        if state.builder is not None:
            return super().bind(*operands, callback=callback)
        callback.fun(operands[0].sharding)
        return []

    def shape_rule(self, *avals: ShapedArray, callback: Inspector) -> list[ShapedArray]:
        return []

    def jvp(self, primals: Values, tangents: Values, *, callback: Inspector) -> Any:
        return self.bind(*primals, callback=callback), []

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, callback: Inspector
    ) -> tuple[list[Any], list[int]]:
        return self.bind(*operands, callback=callback), []

    def lower(self, ctx: Any, x: Any, *, callback: Inspector) -> list[Any]:
        if not ctx.module.meshes.devices:
            callback.fun(default_sharding())
            return []
        ctx.forbid_repetition()
        key = callback.of_program(ctx.module.meshes.symbols, ctx.avals_in[0].ndim)
        ctx.op(
            "stablehlo.custom_call",
            x,
            avals=ctx.avals_in,
            call_target_name='"InspectSharding"',
            has_side_effect=True,
            backend_config=ctx.mlir.string(key),
        )
        return []

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset([debug_effect])


inspect_sharding_p: Final = InspectSharding()
