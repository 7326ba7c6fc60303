"""with_layout_constraint: the order of a value's dimensions in memory, inside a program."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from xlamini.core import (
    Axis,
    Dims,
    Primitive,
    ShapedArray,
    Values,
    aval_of,
    flatten_axes,
    flatten_from_user,
    is_zero,
    unflatten,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sharding.facet import same_dimensions
from xlamini.primitives.base.batch_ops import move_batch_dim
from xlamini.primitives.base.promotion import check_operands
from xlamini.runtime.arrays.layout import Layout

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """An identity whose result the compiler stores in a layout: a `Layout`, or a pytree of them, a prefix of `x`.

    It has an effect between the operations of a compiled program; results of programs are in row-major order.
    TypeError for what is no layout, ValueError for one of another rank than its array.

    >>> xlamini.jit(lambda x: with_layout_constraint(2 * x, Layout((1, 0))))(xlamini.numpy.ones((2, 2)))
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    given, tree = flatten_from_user(x)
    leaves = check_operands("with_layout_constraint", given)
    every = flatten_axes("with_layout_constraint", layouts, tree, ("layouts", "x"))
    for layout, leaf in zip(every, leaves, strict=True):
        if not isinstance(layout, Layout):
            raise TypeError(f"with_layout_constraint: a Layout is needed, got {layout!r}")
        check_rank("with_layout_constraint", layout, leaf)
    bound = [layout_constraint_p.bind(leaf, layout=layout) for leaf, layout in zip(leaves, every, strict=True)]
    return unflatten(tree, bound)


def check_rank(face: str, layout: Layout, x: Any) -> None:
    """ValueError if a layout has another number of dimensions than an array."""
    rank = aval_of(x).ndim
    if len(layout.major_to_minor) != rank:
        raise ValueError(f"{face}: {layout} has {len(layout.major_to_minor)} dimensions, the array {rank}")


class LayoutConstraint(Primitive):
    """An identity; tangents and cotangents have the layout too."""

    name = "layout_constraint"
    sharding: Sharding = same_dimensions()
    checks = NO_NEW_NAN

    def shape_rule(self, aval: ShapedArray, *, layout: Layout) -> ShapedArray:
        return aval

    def jvp(self, primals: Values, tangents: Values, *, layout: Layout) -> Any:
        (t,) = tangents
        return self.bind(*primals, layout=layout), t if is_zero(t) else self.bind(t, layout=layout)

    def transpose(self, ct: Any, x: Any, *, layout: Layout) -> Values:
        return [self.bind(ct, layout=layout)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, layout: Layout) -> Any:
        """The batch is the major dimension."""
        first = move_batch_dim(operands[0], axis.size, dims[0], 0)
        return self.bind(first, layout=Layout((0, *(d + 1 for d in layout.major_to_minor)), layout.tiling)), 0

    def lower(self, ctx: Any, x: Any, *, layout: Layout) -> Any:
        order = ", ".join(map(str, layout.major_to_minor[::-1]))
        layouts = f"[dense<[{order}]> : tensor<{len(layout.major_to_minor)}xindex>]"
        target = '"LayoutConstraint"'
        return ctx.op(
            "stablehlo.custom_call", x, call_target_name=target, operand_layouts=layouts, result_layouts=layouts
        )


layout_constraint_p: Final = LayoutConstraint()
