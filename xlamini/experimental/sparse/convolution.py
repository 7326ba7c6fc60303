"""Convolutions of two sparse arrays: bcoo_conv_general_dilated."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.layouts import with_layout
from xlamini.experimental.sparse.products import joined
from xlamini.experimental.sparse.shapes import bcoo_transpose
from xlamini.primitives.windows.geometry import as_pads, dilated, window_counts
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


class Window(NamedTuple):
    """The geometry of a convolution: for each spatial dimension, how a place of the result follows from two indices."""

    strides: Sequence[int]
    before: Sequence[int]
    lhs_dilation: Sequence[int]
    rhs_dilation: Sequence[int]
    sizes: tuple[int, ...]
    """The sizes of the result."""

    @classmethod
    def of(cls, space: Sequence[int], kernel: Sequence[int], strides: Any, padding: Any, *dilations: Any) -> Window:
        ones = (1,) * len(space)
        strides, of_space, of_kernel = (tuple(x or ones) for x in (strides, *dilations))
        extents = dilated(space, of_space), dilated(kernel, of_kernel)
        pads = as_pads("bcoo_conv_general_dilated", padding, *extents, strides)
        return cls(strides, [low for low, _ in pads], of_space, of_kernel, window_counts(*extents, strides, pads))

    def places(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Which pairs of indices meet in a window, and in which."""
        counts, found = jnp.ones((1, 1), bool), []
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            a, b = (c.astype(jnp.promote_types(c.dtype, jnp.int32)) for c in (a, b))
            offset = a * self.lhs_dilation[i] + self.before[i] - b * self.rhs_dilation[i]
            place = offset // self.strides[i]
            counts &= (offset % self.strides[i] == 0) & (place >= 0) & (place < self.sizes[i])
            found.append(place)
        return counts, found


@takes_sparse
@composite(
    static=(
        "window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers", "feature_group_count",
        "batch_group_count", "precision", "preferred_element_type", "out_sharding",
    )
)  # fmt: skip
def bcoo_conv_general_dilated(
    lhs: BCOO,
    rhs: BCOO,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """The convolution of two sparse arrays, as `lax.conv_general_dilated`, without groups (NotImplementedError).

    It takes time and memory for each pair of entries. The result has no batch and no dense dimensions.

    >>> from xlamini.experimental.sparse import BCOO
    >>> signal, kernel = (BCOO.fromdense(jnp.array([[x]])) for x in ([1.0, 0.0, 2.0], [0.0, 1.0, 3.0]))
    >>> bcoo_conv_general_dilated(signal, kernel, window_strides=(1,), padding="SAME").todense()
    Array([[[1., 6., 2.]]], dtype=float32)
    """
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo_conv_general_dilated: groups are for dense arrays alone; call todense() first")
    if not lhs.ndim == rhs.ndim > 1:
        raise ShapeError(f"bcoo_conv_general_dilated: operands need one rank, 2 or more, got {lhs.shape}, {rhs.shape}")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    left, right = (
        bcoo_transpose(with_layout(x, n_batch=0, n_dense=0), permutation=spec)
        for x, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec))
    )
    window = Window.of(left.shape[2:], right.shape[2:], window_strides, padding, lhs_dilation, rhs_dilation)

    def join(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        counts, places = window.places(a[2:], b[2:])
        return counts & (a[1] == b[1]), [a[0], b[0], *places]

    out = joined(left, right, join, (left.shape[0], right.shape[0], *window.sizes), preferred_element_type)
    return bcoo_transpose(out, permutation=tuple(numbers.out_spec.index(d) for d in range(lhs.ndim)))
