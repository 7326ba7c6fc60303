"""Layouts: the order of an array's dimensions in memory, and formats, which are layouts with shardings.

Nearly all arrays are in row-major order. XLA compiles a program for certain layouts of its arguments, and PJRT does not
compare: it would misread an array in another one. C++ dispatch tells arrays of different layouts apart. Where Python
runs a program, `relaid` brings its arguments to the layouts that it takes, as soon as any array has another layout.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from jaxlib import _jax

from xlamini.core import hooks, memoised
from xlamini.runtime.sharding import Sharding


class AutoLayout:
    """The layout that the compiler chooses."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """The order of the dimensions in memory, the one with the largest stride first.

    Args:
      major_to_minor: the dimensions; (0, 1, 2) is row-major order.
      tiling: shapes of the tiles that the minor dimensions are stored in; None leaves them to the compiler.
      sub_byte_element_size_in_bits: the size of an element that is smaller than a byte; 0 for the dtype's.

    `Layout.AUTO` leaves the layout to the compiler. ValueError where `major_to_minor` is no permutation.

    >>> Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def __post_init__(self) -> None:
        order = tuple(self.major_to_minor)
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"Layout: major_to_minor must be a permutation of the dimensions, got {order}")
        object.__setattr__(self, "major_to_minor", order)
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """The layout that the runtime reports."""
        found = pjrt_layout._xla_layout()
        return Layout(found.minor_to_major()[::-1], found.tiling(), found.element_size_in_bits())

    @property
    def is_row_major(self) -> bool:
        """Whether the dimensions are in their own order."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor)))


@dataclass(frozen=True)
class Format:
    """A layout and a sharding, either of which may be left open with None.

    `device_put`, and `jit` as `in_shardings` and `out_shardings`, take it in place of a sharding. A function is
    compiled for the layouts of its arguments; those of its results are row-major unless `out_shardings` says otherwise.
    Inside a program the compiler chooses layouts; `with_layout_constraint` sets that of a value. TypeError for what is
    no layout or no sharding.

    >>> x = jnp.ones((2, 3))
    >>> xlamini.device_put(x, Format(Layout((1, 0)), x.sharding)).format.layout
    Layout(major_to_minor=(1, 0), tiling=(), sub_byte_element_size_in_bits=0)
    """

    layout: Layout | AutoLayout | None = None
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.layout, Layout | AutoLayout | None):
            raise TypeError(f"Format: layout must be a Layout, Layout.AUTO or None, got {self.layout!r}")
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(f"Format: sharding must be a sharding or None, got {self.sharding!r}")


def sharding_of(format: Format, what: str) -> Sharding | None:
    """The sharding of a format; NotImplementedError, whose message begins with `what`, for arrays of another layout."""
    if isinstance(format.layout, Layout) and not format.layout.is_row_major:
        raise NotImplementedError(
            f"{what} {format.layout}, but arrays are made in row-major order here; bring the array into another layout "
            "afterwards, with xlamini.device_put(x, format)"
        )
    return format.sharding


def without_layout(where: Any) -> Any:
    """The sharding of a format, None if that is open; other values as they are."""
    return where.sharding if isinstance(where, Format) else where


# --- what programs take

Order = tuple[int, ...] | AutoLayout | None
"""The order of an argument or a result of a program: its dimensions, major to minor; None for row-major."""


class _LayoutUse:
    """Whether any array of this process may be in another order than row-major."""

    any_other = False


use: Final = _LayoutUse()


def order_asked(what: str, format: Any, ndim: int) -> Order:
    """The order that a format asks of an array; None for row-major and for what is no format.

    ValueError for a layout of another rank, NotImplementedError for one with tiles; messages begin with `what`.
    """
    layout = format.layout if isinstance(format, Format) else None
    if not isinstance(layout, Layout):
        return layout
    if len(layout.major_to_minor) != ndim:
        count = len(layout.major_to_minor)
        raise ValueError(f"{what} {layout}, which is of {count} dimensions, but the array has {ndim}")
    if layout.tiling or layout.sub_byte_element_size_in_bits:
        raise NotImplementedError(f"{what} {layout}; the compiler chooses tiles and bits, so leave them out")
    return None if layout.is_row_major else layout.major_to_minor


def order_of(x: Any) -> Order:
    """The order of an array on devices; None for a deleted one too, and for what is no array."""
    return _order(str(x._pjrt_layout)) if isinstance(x, _jax.ArrayImpl) and not x.is_deleted() else None


@memoised("helper: orders of layouts", 1024)
def _order(text: str) -> Order:
    minor_to_major = text.strip("{}").partition(":")[0]
    order = tuple(int(d) for d in reversed(minor_to_major.split(",")) if d)
    return None if order == tuple(range(len(order))) else order


def orders_of(layouts: Iterable[Any]) -> tuple[Order, ...]:
    """The orders of a compiled program's arguments or results, from the layouts that the runtime reports."""
    return tuple(_order(str(layout)) for layout in layouts)


def mode_of(order: Order) -> str:
    """What `mhlo.layout_mode` says of an argument or a result."""
    if isinstance(order, AutoLayout):
        return "auto"
    return "default" if order is None else f"{{{','.join(map(str, reversed(order)))}}}"


def relaid(arrays: Iterable[Any], orders: Iterable[Order]) -> list[Any]:
    """The arrays, those in another order than asked copied into it."""
    pairs = zip(arrays, orders, strict=False)
    return [x if order_of(x) == order or x.is_deleted() else hooks.in_order(x, order) for x, order in pairs]


def formats_of(layouts: Iterable[Any], shardings: Iterable[Any]) -> list[Format]:
    """The formats of a compiled program's arguments or results, from the layouts that the runtime reports."""
    return [Format(Layout.from_pjrt_layout(layout), s) for layout, s in zip(layouts, shardings, strict=False)]
